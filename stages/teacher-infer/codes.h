/* Codes: a teacher's scores as probabilities, compressed by an encoder (a network, or the
 * dense layer of principal components) or as they are, and cut to a public norm. */
#ifndef DPF_STAGE_TEACHER_CODES_H
#define DPF_STAGE_TEACHER_CODES_H

#include "asking.h"

/* Whether answers are codes and not votes. */
bool dpf_asking_gives_codes(const struct dpf_asking *v);
/* How many numbers a code has; 0: answers are votes. */
uint64_t dpf_code_values(const struct dpf_asking *v);
/* Read the encoder, which has to be public, and hold it against the teachers; the
 * provenance of what is written names it. */
enum dpf_status dpf_encoder_open(struct dpf_asking *v, struct dpf_stage *s,
                                 struct dpf_error *e);
void dpf_encoder_close(struct dpf_asking *v);
/* From v->scores of so many queries, which are overwritten, to their codes. */
enum dpf_status dpf_code_make(struct dpf_asking *v, uint64_t rows, float *codes,
                              struct dpf_error *e);

#endif
