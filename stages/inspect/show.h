/* A stream's header, records and statistics as text for people or as lines of JSON. */
#ifndef DPF_STAGE_SHOW_H
#define DPF_STAGE_SHOW_H

#include <stdio.h>

#include "data/summary.h"
#include "wire/stream.h"

enum dpf_status dpf_show_header_json(FILE *out, const struct dpf_header *h,
                                     struct dpf_error *e);
enum dpf_status dpf_show_header_text(FILE *out, const struct dpf_header *h,
                                     struct dpf_error *e);
/* Record `row` of a batch, which is record `number` of the stream. */
void dpf_show_record(FILE *out, bool json, const struct dpf_header *h,
                     const struct dpf_batch *b, uint64_t row, uint64_t number);
/* A frame that is no batch. */
void dpf_show_other(FILE *out, bool json, const msgpack_object *frame);
/* `summaries` has one entry a field. */
void dpf_show_statistics(FILE *out, bool json, const struct dpf_header *h,
                         const struct dpf_summary *summaries);

#endif
