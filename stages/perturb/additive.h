/* Noise that is added to records or to their sum: what `records`, `sum` and `relevance`
 * have in common. A mechanism is a row; sensitivity and noise are lib/privacy's. */
#ifndef DPF_PERTURB_ADDITIVE_H
#define DPF_PERTURB_ADDITIVE_H

#include "privacy/gaussian.h"
#include "privacy/laplace.h"
#include "release.h"

struct dpf_additive;

struct dpf_noise {
    const char *name;
    enum dpf_norm norm;
    const char *norm_word;
    const struct dpf_spending_kind *spends;
    const char *source, *theorem; /* of what is claimed; of what is proven */
    /* Noise for values of this sensitivity: fills in step, sensitivity, parameter. */
    enum dpf_status (*init)(struct dpf_additive *a, double sensitivity, double epsilon,
                            double delta, struct dpf_error *e);
    void (*add)(const struct dpf_additive *a, struct dpf_random *r, int64_t *sums);
};
/* The table; `perturb --mechanism` reads its words. */
extern const struct dpf_noise dpf_noises[];

struct dpf_additive {
    const struct dpf_noise *is;
    struct dpf_record_bounds bounds;
    struct dpf_laplace laplace;
    struct dpf_gaussian gaussian;
    double step, sensitivity, parameter; /* of the noise: with rounding; as it is spent */
    double *row;                         /* a clipped record */
    int64_t *sums;                       /* in steps */
    uint64_t clipped;
};

/* Bounds from the field, noise of `epsilon` for two neighbours. Its event, but for what a
 * release adds to it, is in `event`. */
enum dpf_status dpf_additive_open(struct dpf_additive *a, const struct dpf_perturb *p,
                                  const struct dpf_field *f, enum dpf_relation relation,
                                  double epsilon, struct dpf_mechanism_event *event,
                                  struct dpf_error *e);
void dpf_additive_release(struct dpf_additive *a);
/* The header of one record, the noisy sum. */
enum dpf_status dpf_sum_declare(const struct dpf_perturb *p, struct dpf_stage *s,
                                const char *name, struct dpf_error *e);
/* Add the records of a batch to the sums. */
enum dpf_status dpf_sum_take(struct dpf_perturb *p, struct dpf_batch *b,
                             struct dpf_error *e);
/* Add the noise, divide (after it) and send. */
enum dpf_status dpf_sum_send(struct dpf_perturb *p, struct dpf_stage *s, double divisor,
                             struct dpf_error *e);
/* For rows whose own state is a struct dpf_additive. */
uint64_t dpf_additive_clipped(const struct dpf_perturb *p);
void dpf_additive_close(struct dpf_perturb *p);

#endif
