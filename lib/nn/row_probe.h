/* Whether what a network computes of an example depends on anything but the example.
 *
 * A bound on a clipped gradient says nothing about the other examples: if one record more
 * makes a product take another path, the values of all others change in their last bits,
 * a ReLU flips, and a gradient that is as long as before points elsewhere. So the
 * operations that clipped training uses compute every example by one fixed expression of
 * its own numbers (kernels/table.inc): convolutions one example at a time, dense layers
 * by products of our own, everything else in loops over one example's numbers.
 *
 * This tries it on the machine at hand, for the case that a library or a compiler did
 * what nobody expected: with random weights, random examples have to give the same bits
 * in a microbatch as alone, next to each other and to rows that hold infinities and NaN.
 * If they do not, examples are computed one at a time.
 *
 * A trial is no proof, and the claim of nn/engine.h does not rest on it: a sum of few
 * terms may round the same way in two orders, so that a difference in one of few values
 * can be missed. */
#ifndef DPF_NN_ROW_PROBE_H
#define DPF_NN_ROW_PROBE_H

#include "nn/network.h"

/* Try a network that was made for training; its values are overwritten. */
enum dpf_status dpf_row_probe(struct dpf_network *net, bool *apart, struct dpf_error *e);

#endif
