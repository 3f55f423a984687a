/* The man page of the front-end, made from the registry of stages. */
#ifndef DPF_PIPELINE_MANUAL_H
#define DPF_PIPELINE_MANUAL_H

#include "base/text.h"

void dpf_manual(struct dpf_text *out);

#endif
