/* CIFAR-10 in its binary version: records of 3073 bytes, one label and then the red, the
 * green and the blue plane of a 32x32 picture, in several batch files. */
#ifndef DPF_DATA_CIFAR_H
#define DPF_DATA_CIFAR_H

#include <stddef.h>

#include "base/status.h"
#include "data/bytes.h"
#include "data/source.h"

/* The files one after the other, each plain, gzip or xz: "x" u8 [3,32,32] with bounds
 * 0..255 and "y" u8 with 10 classes. Paths are copied. The record count is known if all
 * files are plain. A file that is empty or not made of whole records, or a label above
 * 9, is DPF_BAD_STREAM. *take is destroyed by dpf_source_destroy(). */
enum dpf_status dpf_cifar_open(const char *const *paths, size_t count,
                               struct dpf_source **take, struct dpf_error *e);
/* The same over one opened file, which is consumed even on failure. */
enum dpf_status dpf_cifar_new(struct dpf_bytes *take_bytes, struct dpf_source **take,
                              struct dpf_error *e);

#endif
