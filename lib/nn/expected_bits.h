/* A network that was trained on randomised bits, for bits that are not randomised.
 *
 * A bit b that was drawn anew with rates p (from 1) and q (from 0) has the mean
 * q + (p - q) b. The first layer is linear in its bits, so what it makes of a record on
 * average over the randomisation is W (q + (p - q) b) + c: other weights and another
 * bias, and the same network works on clean bits. Post-processing of the model by public
 * rates: it costs no privacy. */
#ifndef DPF_NN_EXPECTED_BITS_H
#define DPF_NN_EXPECTED_BITS_H

#include "nn/model.h"

/* rates: p and q at even places, then at odd ones. DPF_USAGE unless the network starts
 * with one dense layer with a bias over packed bits. */
enum dpf_status dpf_expect_bits(const struct dpf_model *m, const double rates[4],
                                float *parameters, struct dpf_error *e);

#endif
