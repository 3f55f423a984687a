#include "privacy/quadratic.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "privacy/grid.h"
#include "random/noise.h"

#include "base/banned.h"

enum { BLOCK = 512, MAX_BITS = 18 };

/* ------------------------------------------------------------------- sensitivities */

double dpf_quadratic_l1(size_t features, bool intercept, bool classes)
{
    double d = (double)features, n = d + intercept;
    double triangle = intercept ? d * (d + 2) * (d + 2) / (2 * (d + 1)) : d * (d + 1) / 2;
    if (classes)
        return triangle + 2 * n;
    return intercept ? (d + 1) * (d + 4) / 2 : d * (d + 2) * (d + 2) / (2 * (d + 1));
}

double dpf_quadratic_l2(double norm_squared, double weight, bool replace_one,
                        bool classes_of_non_negative)
{
    double n = norm_squared, w2 = weight * weight;
    if (!replace_one)
        return sqrt(n * n + w2 * n) * (1 + 1e-15);
    /* at |x.x'| = w^2/2, or at the end of its range */
    double inner = fmin(w2 / 2, n), more = 2 * w2 * inner - 2 * inner * inner;
    return sqrt(2 * n * n + 2 * n * w2 + (classes_of_non_negative ? 0 : more)) *
           (1 + 1e-15);
}

/* --------------------------------------------------------------------------- setup */

/* The finest grid on which noise of this size (in units of x^2) can be drawn. */
static int bits_for(double noise)
{
    int bits = (int)floor((DPF_NOISE_MAX_LOG2 - 1 - log2(noise)) / 2);
    return bits < MAX_BITS ? bits : MAX_BITS;
}

/* The triangle inequality, record by record. */
static double group_of(const struct dpf_quadratic_plan *p)
{
    return p->group ? (double)p->group : 1;
}

static enum dpf_status coarse(struct dpf_error *e)
{
    return dpf_fail(e, DPF_USAGE,
                    "the noise would be too large for any grid: more "
                    "epsilon, or fewer features");
}

/* How far one record can move all entries of B: see the header. */
static double taylor_b(const struct dpf_quadratic *q)
{
    double n = (double)q->n, classes = (double)q->plan.outputs;
    return q->plan.non_negative ? n * fmax(classes, 4) : 2 * n * classes;
}

static enum dpf_status init_taylor(struct dpf_quadratic *q, struct dpf_error *e)
{
    double n = (double)q->n, size = n + n * n / 4;
    if (!(q->plan.epsilon > 0) || !isfinite(q->plan.epsilon))
        return dpf_fail(e, DPF_USAGE, "epsilon is a positive number, not '%g'",
                        q->plan.epsilon);
    q->bits = bits_for(8 * size / q->plan.epsilon);
    if (q->bits < 3)
        return coarse(e);
    double step = ldexp(1, -2 * q->bits);
    const struct dpf_laplace_query a = {.sensitivity_l1 = 8 * size, .exact_step = step};
    const struct dpf_laplace_query b = {.sensitivity_l1 = 2 * size, .exact_step = step};
    enum dpf_status status = dpf_laplace_init(&q->laplace_a, &a, q->plan.epsilon, e);
    if (status == DPF_OK)
        status = dpf_laplace_init(&q->laplace_b, &b, q->plan.epsilon, e);
    q->sensitivity = n * n / 8 + taylor_b(q) / 2;
    q->claimed_epsilon = q->plan.epsilon;
    q->proven_epsilon =
        (n * n / q->laplace_a.scale + taylor_b(q) / q->laplace_b.scale) * (1 + 1e-15);
    return status;
}

static enum dpf_status init_laplace(struct dpf_quadratic *q, struct dpf_error *e)
{
    const struct dpf_quadratic_plan *p = &q->plan;
    double n = (double)q->n, epsilon = p->epsilon;
    bool paper = p->variant == DPF_QUADRATIC_PAPER;
    double d1 = 2 * n * n, d2 = 4 * n;
    double joint = dpf_quadratic_l1(p->features, p->intercept, p->classes) * group_of(p);
    double ea = paper ? epsilon * d1 / (d1 + d2) : epsilon;
    double eb = paper ? epsilon * d2 / (d1 + d2) : epsilon;
    if (!(epsilon > 0) || !isfinite(epsilon))
        return dpf_fail(e, DPF_USAGE, "epsilon is a positive number, not '%g'", epsilon);
    q->bits = bits_for((paper ? d1 + d2 : joint) / epsilon);
    if (q->bits < 3)
        return coarse(e);
    double step = ldexp(1, -2 * q->bits);
    struct dpf_laplace_query a = {.sensitivity_l1 = paper ? d1 : joint,
                                  .exact_step = step};
    struct dpf_laplace_query b = {.sensitivity_l1 = paper ? d2 / 2 : joint,
                                  .exact_step = step};
    enum dpf_status status = dpf_laplace_init(&q->laplace_a, &a, ea, e);
    if (status == DPF_OK)
        status = dpf_laplace_init(&q->laplace_b, &b, eb, e);
    q->sensitivity = paper ? n * n + 2 * n : joint;
    q->claimed_epsilon = epsilon;
    q->proven_epsilon =
        paper ? (n * n / q->laplace_a.scale + 2 * n / q->laplace_b.scale) * (1 + 1e-15)
              : q->laplace_a.epsilon;
    return status;
}

static enum dpf_status init_gaussian(struct dpf_quadratic *q, struct dpf_error *e)
{
    const struct dpf_quadratic_plan *p = &q->plan;
    /* in units of x / unit: a box has radius sqrt d */
    double square =
        p->radius > 0 ? p->radius * p->radius / (q->unit * q->unit) : (double)p->features;
    square += p->intercept ? 1 / (q->unit * q->unit) : 0;
    q->weight = sqrt(square);
    q->sensitivity = dpf_quadratic_l2(square, q->weight, p->replace_one,
                                      p->classes && p->non_negative) *
                     group_of(p);
    struct dpf_gaussian_query query = {.sensitivity_l2 = q->sensitivity,
                                       .exact_step = 0x1p-36};
    enum dpf_status status =
        dpf_gaussian_init_epsilon(&q->gaussian, &query, p->epsilon, p->delta, NULL);
    if (status != DPF_OK) { /* for the message, or because the grid was too fine */
        query.exact_step = q->sensitivity;
        status = dpf_gaussian_init_epsilon(&q->gaussian, &query, p->epsilon, p->delta, e);
        if (status != DPF_OK)
            return status;
    }
    q->bits = bits_for(q->gaussian.noise_stddev);
    if (q->bits < 3)
        return coarse(e);
    query.exact_step = ldexp(1, -2 * q->bits);
    return dpf_gaussian_init_epsilon(&q->gaussian, &query, p->epsilon, p->delta, e);
}

enum dpf_status dpf_quadratic_init(struct dpf_quadratic *q,
                                   const struct dpf_quadratic_plan *plan,
                                   struct dpf_error *e)
{
    enum { MOST = 20000 };
    size_t n = plan->features + plan->intercept;
    *q = (struct dpf_quadratic){.plan = *plan, .n = n, .unit = 1, .bits = MAX_BITS};
    if (plan->features < 1 || n > MOST || plan->outputs < 1 || plan->outputs > MOST)
        return dpf_fail(e, DPF_USAGE, "a quadratic form has 1 to %d features and outputs",
                        (int)MOST);
    /* neither a record nor the 1 of the intercept is above 1 in this unit */
    if (plan->radius > 0)
        q->unit = plan->intercept ? fmax(plan->radius, 1) : plan->radius;
    enum dpf_status status = plan->variant == DPF_QUADRATIC_PLAIN ? DPF_OK
                             : plan->variant == DPF_QUADRATIC_GAUSSIAN
                                 ? init_gaussian(q, e)
                             : plan->taylor ? init_taylor(q, e)
                                            : init_laplace(q, e);
    if (status != DPF_OK)
        return status;
    q->a = dpf_calloc(n * n, sizeof *q->a);
    q->b = dpf_calloc(n * plan->outputs, sizeof *q->b);
    q->block_a = dpf_calloc(n * n, sizeof *q->block_a);
    q->block_b = dpf_calloc(n * plan->outputs, sizeof *q->block_b);
    q->rows = dpf_calloc(BLOCK * n, sizeof *q->rows);
    q->targets = dpf_calloc(BLOCK * plan->outputs, sizeof *q->targets);
    if (!q->a || !q->b || !q->block_a || !q->block_b || !q->rows || !q->targets) {
        dpf_quadratic_release(q);
        return dpf_fail_memory(e);
    }
    return DPF_OK;
}

void dpf_quadratic_release(struct dpf_quadratic *q)
{
    free(q->a);
    free(q->b);
    free(q->block_a);
    free(q->block_b);
    free(q->rows);
    free(q->targets);
    q->a = q->b = NULL;
    q->block_a = q->block_b = q->rows = q->targets = NULL;
}

/* ---------------------------------------------------------------------------- sums */

/* A value within [-1, 1] as an integer of the grid. */
static double to_grid(struct dpf_quadratic *q, double value, double scale)
{
    if (!(fabs(value) <= 1)) {
        q->clipped++;
        value = value > 1 ? 1 : value < -1 ? -1 : 0;
    }
    return nearbyint(value * scale);
}

/* Into the ball: scale down if need be, then towards 0, so that rounding does not lead
 * out of it again. */
static void row_to_ball(struct dpf_quadratic *q, const float *x, double *row)
{
    double square = 0, scale = ldexp(1, q->bits);
    size_t d = q->plan.features;
    for (size_t j = 0; j < d; j++)
        square += (double)x[j] * (double)x[j];
    double norm = sqrt(square) / q->plan.radius;
    bool good = isfinite(norm);
    if (!good || norm > 1 + 1e-6) /* a float's rounding is not worth counting */
        q->clipped++;
    /* above the rounding of the norm's sum of squares, of the root and of the products */
    double less = fmax(1e-12, 0x1p-40 + (double)d * 0x1p-52);
    double factor = !good ? 0 : norm > 1 ? (1 - less) / norm : 1 - less;
    for (size_t j = 0; j < d; j++) {
        double value = good ? (double)x[j] : 0;
        row[j] = trunc(value / q->unit * factor * scale);
        if (q->plan.non_negative && row[j] < 0) {
            row[j] = 0;
            q->clipped++;
        }
    }
}

static void row_to_box(struct dpf_quadratic *q, const float *x, double *row)
{
    double scale = ldexp(1, q->bits);
    for (size_t j = 0; j < q->plan.features; j++) {
        row[j] = to_grid(q, (double)x[j], scale);
        if (q->plan.non_negative && row[j] < 0) {
            row[j] = 0;
            q->clipped++;
        }
    }
}

/* Sums of up to 2^15 records of integers below 2^18 are below 2^53: every partial sum of
 * the product is exact in double precision, in any order. */
static void flush(struct dpf_quadratic *q)
{
    size_t n = q->n, outputs = q->plan.outputs;
    for (size_t i = 0; i < n * n; i++)
        q->a[i] += (int64_t)q->block_a[i];
    for (size_t i = 0; i < n * outputs; i++)
        q->b[i] += (int64_t)q->block_b[i];
    memset(q->block_a, 0, n * n * sizeof *q->block_a);
    memset(q->block_b, 0, n * outputs * sizeof *q->block_b);
    q->block_count = 0;
}

static void add_block(struct dpf_quadratic *q, size_t count)
{
    enum { FLUSH = 1 << 15 };
    int n = (int)q->n, outputs = (int)q->plan.outputs;
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, n, (int)count, 1, q->rows, n, 1,
                q->block_a, n);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, outputs, (int)count, 1,
                q->rows, n, q->targets, outputs, 1, q->block_b, outputs);
    q->block_count += count;
    if (q->block_count + BLOCK > FLUSH)
        flush(q);
}

void dpf_quadratic_add(struct dpf_quadratic *q, const float *x, const float *y,
                       const int32_t *labels, size_t count)
{
    const struct dpf_quadratic_plan *p = &q->plan;
    double scale = ldexp(1, q->bits);
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t left = count - done < BLOCK ? count - done : BLOCK;
        memset(q->targets, 0, left * p->outputs * sizeof *q->targets);
        for (size_t i = 0; i < left; i++) {
            double *row = q->rows + i * q->n;
            const float *from = x + (done + i) * p->features;
            row[0] = trunc(scale / q->unit);
            if (p->radius > 0)
                row_to_ball(q, from, row + p->intercept);
            else
                row_to_box(q, from, row + p->intercept);
            for (size_t k = 0; p->taylor && k < p->outputs; k++)
                q->targets[i * p->outputs + k] = -scale;
            if (p->classes)
                q->targets[i * p->outputs + (size_t)labels[done + i]] = scale;
            else
                q->targets[i] = to_grid(q, (double)y[done + i], scale);
        }
        add_block(q, left);
    }
}

/* ------------------------------------------------------------------------- release */

/* Noise on every entry (paper), or on one of each pair. */
static void add_noise(struct dpf_quadratic *q, struct dpf_random *r)
{
    size_t n = q->n, outputs = q->plan.outputs;
    switch (q->plan.variant) {
    case DPF_QUADRATIC_PAPER:
        for (size_t j = 0; j < n; j++)
            for (size_t k = 0; k < j; k++)
                q->a[j * n + k] = q->a[k * n + j];
        dpf_laplace_add(&q->laplace_a, r, q->a, n * n);
        dpf_laplace_add(&q->laplace_b, r, q->b, n * outputs);
        break;
    case DPF_QUADRATIC_SOUND:
        for (size_t j = 0; j < n; j++)
            dpf_laplace_add(&q->laplace_a, r, q->a + j * n + j, n - j);
        dpf_laplace_add(&q->laplace_b, r, q->b, n * outputs);
        break;
    case DPF_QUADRATIC_GAUSSIAN:
        for (size_t j = 0; j < n; j++) {
            dpf_gaussian_add(&q->gaussian, r, 1, q->a + j * n + j, 1);
            dpf_gaussian_add(&q->gaussian, r, M_SQRT1_2, q->a + j * n + j + 1, n - j - 1);
        }
        dpf_gaussian_add(&q->gaussian, r, 1 / q->weight, q->b, n * outputs);
        break;
    case DPF_QUADRATIC_PLAIN:
        break;
    }
}

void dpf_quadratic_release_noisy(struct dpf_quadratic *q, struct dpf_random *r, double *a,
                                 double *b)
{
    size_t n = q->n, outputs = q->plan.outputs;
    double step = ldexp(q->unit * q->unit, -2 * q->bits);
    double step_b = ldexp(q->unit, -2 * q->bits) * (q->plan.taylor ? 2 : 1);
    flush(q);
    add_noise(q, r);
    bool full = q->plan.variant == DPF_QUADRATIC_PAPER;
    for (size_t j = 0; j < n; j++)
        for (size_t k = j; k < n; k++) {
            double other = (double)q->a[full ? k * n + j : j * n + k];
            a[j * n + k] = a[k * n + j] = ((double)q->a[j * n + k] + other) / 2 * step;
        }
    for (size_t i = 0; i < n * outputs; i++)
        b[i] = (double)q->b[i] * step_b;
    /* a second release would be a second event */
    memset(q->a, 0, n * n * sizeof *q->a);
    memset(q->b, 0, n * outputs * sizeof *q->b);
}

double dpf_quadratic_noise_a(const struct dpf_quadratic *q)
{
    double square = q->unit * q->unit;
    switch (q->plan.variant) {
    case DPF_QUADRATIC_PAPER: /* the mean of two draws */
        return q->laplace_a.scale * square;
    case DPF_QUADRATIC_SOUND:
        return q->laplace_a.scale * M_SQRT2 * square;
    case DPF_QUADRATIC_GAUSSIAN:
        return q->gaussian.noise_stddev * M_SQRT1_2 * square;
    case DPF_QUADRATIC_PLAIN:
        break;
    }
    return 0;
}

double dpf_quadratic_noise_b(const struct dpf_quadratic *q)
{
    switch (q->plan.variant) {
    case DPF_QUADRATIC_PAPER:
    case DPF_QUADRATIC_SOUND:
        return q->laplace_b.scale * M_SQRT2 * q->unit * (q->plan.taylor ? 2 : 1);
    case DPF_QUADRATIC_GAUSSIAN:
        return q->gaussian.noise_stddev / q->weight * q->unit;
    case DPF_QUADRATIC_PLAIN:
        break;
    }
    return 0;
}
