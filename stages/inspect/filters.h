/* The filters of a model as pictures: what its convolutions, and dense layers that read a
 * flattened picture, look for. */
#ifndef DPF_STAGE_FILTERS_H
#define DPF_STAGE_FILTERS_H

#include "wire/decode.h"

/* Write FOLDER/NODE.png for each such node of a model frame, its first 100 filters from
 * black at the smallest weight of all to white at the largest; of the model number
 * `number` of a stream, from 1 on, FOLDER/NODE.NUMBER.png. Counts them. */
enum dpf_status dpf_filters_save(const char *folder, const msgpack_object *frame,
                                 int64_t number, int64_t *drawn, struct dpf_error *e);

#endif
