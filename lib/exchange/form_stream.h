/* A stream with one record that holds a quadratic form: gram, moment, the deviations of
 * their noise, and whether the first row is that of a constant. `perturb` and `aggregate`
 * write it, `solve --what quadratic` reads it. */
#ifndef DPF_EXCHANGE_FORM_STREAM_H
#define DPF_EXCHANGE_FORM_STREAM_H

#include "stage/stage.h"

/* Make the header that of a form of n variables and so many outputs. */
enum dpf_status dpf_form_declare(struct dpf_header *h, size_t n, size_t outputs,
                                 struct dpf_error *e);
/* Send the header, and with it the ledger, before there is anything to release; room for
 * the record: gram in tensor 0, moment in tensor 1. */
enum dpf_status dpf_form_begin(struct dpf_stage *s, struct dpf_batch *b,
                               struct dpf_error *e);
/* Complete the record, send it and release the batch. */
enum dpf_status dpf_form_send(struct dpf_stage *s, struct dpf_batch *take_b,
                              const double noise[2], bool intercept, struct dpf_error *e);

#endif
