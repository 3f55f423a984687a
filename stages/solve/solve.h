/* Models without training on records: from the coefficients of a quadratic form the dense
 * layer that minimises it, from those of a polynomial energy its filters, from records or
 * masks their principal components. Each is a solver: one row of a table, chosen by
 * '--what'. */
#ifndef DPF_STAGE_SOLVE_H
#define DPF_STAGE_SOLVE_H

#include "exchange/model_stream.h"
#include "nn/components.h"
#include "nn/mask_coder.h"

struct dpf_solve {
    /* what the user asked for */
    const char *what, *field, *repair, *prior, *export_file;
    const char *calibration;
    double ridge, whiten, prior_weight, radius, epsilon, delta;
    int64_t component_count, queries, teachers; /* 0: not given */
    bool shrink;
    const char *arch, *model, *init, *node, *filters; /* energy */
    int64_t epochs, seed;
    double rate, l1;
    /* what it takes */
    const struct dpf_solver *solver; /* the row of `what` */
    int x;                           /* number of the records' field */
    struct dpf_components components;
    struct dpf_mask_coder masks;
    struct dpf_shape mask_shape;
    struct dpf_model_stream result; /* has parameters as soon as it is solved */
    bool solved;                    /* energy: `result` may have been read before */
};

/* A row of the table in solve.c. */
struct dpf_solver {
    const char *name;
    const char *options[14]; /* those of this solver alone, ended by NULL */
    enum dpf_status (*check)(const struct dpf_stage *s, struct dpf_error *e);
    enum dpf_status (*open)(struct dpf_stage *s, struct dpf_error *e);
    enum dpf_status (*add)(struct dpf_stage *s, struct dpf_batch *b, struct dpf_error *e);
    enum dpf_status (*finish)(struct dpf_stage *s, struct dpf_error *e);
};

/* The minimum of a quadratic form, as perturb and aggregate write it. */
extern const char *const dpf_repair_words[]; /* "ridge", "none" */
enum dpf_status dpf_solve_form_check(const struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_solve_form_open(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_solve_form_add(struct dpf_stage *s, struct dpf_batch *b,
                                   struct dpf_error *e);
enum dpf_status dpf_solve_form_finish(struct dpf_stage *s, struct dpf_error *e);

/* The principal components of records, as a layer that projects onto them. */
enum dpf_status dpf_solve_components_check(const struct dpf_stage *s,
                                           struct dpf_error *e);
enum dpf_status dpf_solve_components_open(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_solve_components_add(struct dpf_stage *s, struct dpf_batch *b,
                                         struct dpf_error *e);
enum dpf_status dpf_solve_components_finish(struct dpf_stage *s, struct dpf_error *e);

/* The principal components of masks, as an encoder and its decoder. */
enum dpf_status dpf_solve_masks_check(const struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_solve_masks_open(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_solve_masks_add(struct dpf_stage *s, struct dpf_batch *b,
                                    struct dpf_error *e);
enum dpf_status dpf_solve_masks_finish(struct dpf_stage *s, struct dpf_error *e);

/* The filters of a node of a network, from the coefficients of a polynomial energy. */
enum dpf_status dpf_solve_energy_check(const struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_solve_energy_open(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_solve_energy_add(struct dpf_stage *s, struct dpf_batch *b,
                                     struct dpf_error *e);
enum dpf_status dpf_solve_energy_finish(struct dpf_stage *s, struct dpf_error *e);

/* A dense layer into `m`, its weights all 0. */
enum dpf_status dpf_solve_make_layer(struct dpf_model_stream *m, size_t features,
                                     size_t outputs, bool intercept, struct dpf_error *e);

#endif
