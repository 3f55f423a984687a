/* The version that provenance, --version and man pages show. */
#ifndef DPF_BASE_VERSION_H
#define DPF_BASE_VERSION_H

#define DPF_VERSION "0.1.0"

#endif
