/* From the messages of many owners (privacy/sphere.h) to the coefficients of least
 * squares: post-processing, it costs no privacy.
 *
 * A message x about a record's direction u has x / |x| = v with E[v v'] = a I + b u u'
 * for directions spread evenly, a d + b = 1 (the trace) and a + b = E[(v.u)^2] = s. So
 * the sum of x x' has, besides what is wanted, n a |x|^2 on its diagonal, which is known
 * and is taken away. A sign in front of u does not matter here. The moments are sums of
 * x y', y the code of the label. */
#ifndef DPF_NN_REPORT_FORM_H
#define DPF_NN_REPORT_FORM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct dpf_report_form {
    size_t values, outputs;
    double cosine, square; /* of the messages, as their ledger tells */
    uint64_t reports;
    double code_square;    /* sum of the squares of all codes */
    double *gram, *moment; /* [values, values], [values, outputs] */
    double *room;
    size_t room_capacity;
};

/* DPF_USAGE if the means cannot be those of messages. */
enum dpf_status dpf_report_form_init(struct dpf_report_form *f, size_t values,
                                     size_t outputs, const double moments[2],
                                     struct dpf_error *e);
void dpf_report_form_release(struct dpf_report_form *f);
/* Messages [count, values] and codes [count, outputs]. */
enum dpf_status dpf_report_form_add(struct dpf_report_form *f, const float *x,
                                    const float *code, size_t count, struct dpf_error *e);
/* Public records [count, values] and their codes, all at once, after the messages. Their
 * weight is in units of the messages' noise, its variance a message and entry of the
 * moments: however much the messages tell, the same weight is about right. */
enum dpf_status dpf_report_form_add_known(struct dpf_report_form *f, const float *x,
                                          const float *code, size_t count, double weight,
                                          struct dpf_error *e);
/* Take the known part away; deviation of an off-diagonal entry of the gram matrix and of
 * an entry of the moments. */
void dpf_report_form_finish(struct dpf_report_form *f, double noise[2]);

#endif
