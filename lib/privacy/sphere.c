#include "privacy/sphere.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "random/bernoulli.h"
#include "random/seeded.h"

#include "base/banned.h"

/* --------------------------------------------------------------- ranks and agreement */

/* agreement[j] = direction . v_j, all K at once: a row of the codebook is one coordinate
 * of every v. */
static inline __attribute__((always_inline)) void agree(const float *codebook,
                                                        size_t values, size_t directions,
                                                        const float *direction,
                                                        float *agreement)
{
    memset(agreement, 0, directions * sizeof *agreement);
    for (size_t i = 0; i < values; i++) {
        const float *row = codebook + i * directions;
        float own = direction[i];
        for (size_t j = 0; j < directions; j++)
            agreement[j] += own * row[j];
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void agree_avx2(const float *codebook,
                                                       size_t values, size_t directions,
                                                       const float *direction,
                                                       float *agreement)
{
    agree(codebook, values, directions, direction, agreement);
}
#endif

static void compute_agreement(struct dpf_sphere *m, const float *direction)
{
    const struct dpf_sphere_plan *p = &m->plan;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) {
        agree_avx2(m->codebook, p->values, p->directions, direction, m->agreement);
        return;
    }
#endif
    agree(m->codebook, p->values, p->directions, direction, m->agreement);
}

/* The t-th largest of `count` numbers, which are moved about. */
static float quick_select(float *x, size_t count, size_t t)
{
    size_t lo = 0, hi = count - 1, k = t - 1;
    while (lo < hi) {
        float pivot = x[lo + (hi - lo) / 2];
        size_t i = lo, j = hi;
        for (;;) {
            while (x[i] > pivot)
                i++;
            while (x[j] < pivot)
                j--;
            if (i >= j)
                break;
            float swap = x[i];
            x[i++] = x[j];
            x[j--] = swap;
        }
        if (i == j && k == i)
            return x[k];
        if (k <= j)
            hi = j;
        else
            lo = j + 1;
    }
    return x[lo];
}

/* Rank of the message among its equals: those above the t-th largest agreement are in the
 * region, then those equal to it, by their numbers, until there are t. */
struct region {
    float least;
    size_t equal_kept; /* how many of those equal to `least` belong to it */
};

static struct region find_region(struct dpf_sphere *m, size_t t)
{
    size_t count = m->plan.directions, above = 0;
    memcpy(m->ranked, m->agreement, count * sizeof *m->ranked);
    struct region r = {.least = quick_select(m->ranked, count, t)};
    for (size_t j = 0; j < count; j++)
        above += m->agreement[j] > r.least;
    r.equal_kept = t - above;
    return r;
}

/* Direction number `k` (from 0) of those in the region, or of those not in it. */
static size_t find_member(const struct dpf_sphere *m, const struct region *r, bool inside,
                          uint64_t k)
{
    size_t equal = 0;
    for (size_t j = 0; j < m->plan.directions; j++) {
        bool is_equal = m->agreement[j] == r->least;
        bool in = m->agreement[j] > r->least || (is_equal && equal < r->equal_kept);
        equal += is_equal;
        if (in == inside && k-- == 0)
            return j;
    }
    return m->plan.directions - 1; /* never: k counts members */
}

/* --------------------------------------------------------------------------- choosing */

static int larger_first(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static double probability_inside(double t, double messages, double epsilon)
{
    return 1 / (1 + (messages - t) / t * exp(-epsilon));
}

enum { PROBES = 48 };

/* Mean agreement of the best t and of their squares, for every t, over random records. */
static void probe(struct dpf_sphere *m, double *top, double *top_square,
                  double *all_square)
{
    size_t count = m->plan.directions;
    struct dpf_seeded r;
    dpf_seeded_init(&r, "sphere-probe", m->plan.seed, 0);
    *all_square = 0;
    for (int k = 0; k < PROBES; k++) {
        double norm = 0, sum = 0, square = 0;
        for (size_t i = 0; i < m->plan.values; i++) {
            m->turned[i] = (float)dpf_seeded_normal(&r);
            norm += (double)m->turned[i] * (double)m->turned[i];
        }
        for (size_t i = 0; i < m->plan.values; i++)
            m->turned[i] = (float)((double)m->turned[i] / sqrt(norm));
        compute_agreement(m, m->turned);
        memcpy(m->ranked, m->agreement, count * sizeof *m->ranked);
        qsort(m->ranked, count, sizeof *m->ranked, larger_first);
        for (size_t t = 1; t <= count; t++) {
            double one = (double)m->ranked[t - 1];
            sum += one;
            square += one * one;
            top[t] += sum / (double)t / PROBES;
            top_square[t] += square / (double)t / PROBES;
        }
        *all_square += square / (double)count / PROBES;
    }
}

/* Which way of telling, and how large a region, shows the class sums best: the square of
 * what a message is expected to say about its class against the variance of a sum. */
static void choose_region(struct dpf_sphere *m, const double *top,
                          const double *top_square, double all_square)
{
    double count = (double)m->plan.directions, labels = (double)m->plan.labels;
    double best = -1;
    for (int way = 0; way < (m->plan.labels ? 2 : 1); way++) {
        double messages = way ? count * labels : count;
        for (size_t t = 1; t < m->plan.directions; t++) {
            double p = probability_inside((double)t, messages, m->plan.epsilon);
            double rest = messages - (double)t;
            /* the rest of all directions of the true label has the opposite sum */
            double cosine = top[t] * (p - (1 - p) * (double)t / rest);
            double contrast = way || !labels ? 1 : labels / (labels - 1);
            double worth = cosine * cosine * contrast * contrast * (way ? labels : 1);
            if (worth <= best)
                continue;
            best = worth;
            m->tells_label = way == 1;
            m->region = t;
            m->messages = (uint64_t)messages;
            m->inside = p;
            m->cosine = cosine;
            m->square =
                p * top_square[t] +
                (1 - p) * (messages * all_square - (double)t * top_square[t]) / rest;
        }
    }
}

static void draw_codebook(struct dpf_sphere *m)
{
    size_t count = m->plan.directions, values = m->plan.values;
    struct dpf_seeded r;
    for (size_t j = 0; j < count; j++) {
        double norm = 0;
        dpf_seeded_init(&r, "sphere-codebook", m->plan.seed, j);
        for (size_t i = 0; i < values; i++) {
            double x = dpf_seeded_normal(&r);
            m->codebook[i * count + j] = (float)x;
            norm += x * x;
        }
        for (size_t i = 0; i < values; i++)
            m->codebook[i * count + j] =
                (float)((double)m->codebook[i * count + j] / sqrt(norm));
    }
}

static enum dpf_status check_plan(const struct dpf_sphere_plan *p, struct dpf_error *e)
{
    if (!(p->epsilon >= 1e-6) || !(p->epsilon <= 30))
        return dpf_fail(e, DPF_USAGE, "the epsilon of privunit is 1e-6 to 30, not '%g'",
                        p->epsilon);
    if (p->values < 2 || p->values > DPF_SPHERE_MAX_VALUES)
        return dpf_fail(e, DPF_USAGE, "privunit takes vectors of 2 to %d values, not %zu",
                        DPF_SPHERE_MAX_VALUES, p->values);
    if (p->directions < 2 || p->directions > DPF_SPHERE_MAX_DIRECTIONS)
        return dpf_fail(e, DPF_USAGE, "a codebook has 2 to %d directions, not %zu",
                        DPF_SPHERE_MAX_DIRECTIONS, p->directions);
    if (p->labels == 1 || p->labels > 65536)
        return dpf_fail(e, DPF_USAGE, "labels have 2 to 65536 classes, not %zu",
                        p->labels);
    return DPF_OK;
}

enum dpf_status dpf_sphere_init(struct dpf_sphere *m, const struct dpf_sphere_plan *plan,
                                struct dpf_error *e)
{
    enum dpf_status status = check_plan(plan, e);
    if (status != DPF_OK)
        return status;
    size_t count = plan->directions;
    *m = (struct dpf_sphere){.plan = *plan};
    m->codebook = dpf_calloc(plan->values * count, sizeof *m->codebook);
    m->agreement = dpf_calloc(count, sizeof *m->agreement);
    m->ranked = dpf_calloc(count, sizeof *m->ranked);
    m->order = dpf_calloc(plan->values, sizeof *m->order);
    m->turned = dpf_calloc(plan->values, sizeof *m->turned);
    double *top = dpf_calloc(2 * (count + 1), sizeof *top), all_square;
    if (m->codebook && m->agreement && m->ranked && m->order && m->turned && top) {
        draw_codebook(m);
        probe(m, top, top + count + 1, &all_square);
        choose_region(m, top, top + count + 1, all_square);
        /* downwards; then the epsilon of what is left, upwards */
        m->inside *= 1 - 0x1p-48;
        double actual = log(m->inside) - log1p(-m->inside) +
                        log((double)(m->messages - m->region)) - log((double)m->region);
        m->epsilon = fmin(actual + 1e-14 * (1 + fabs(actual)), plan->epsilon);
    } else {
        status = dpf_fail_memory(e);
    }
    free(top);
    return status;
}

void dpf_sphere_release(struct dpf_sphere *m)
{
    free(m->codebook);
    free(m->agreement);
    free(m->ranked);
    free(m->order);
    free(m->turned);
    *m = (struct dpf_sphere){0};
}

/* --------------------------------------------------------------------------- messages */

/* Public, for a place: the order of coordinates (their signs in the top bit). */
static void shuffle(struct dpf_sphere *m, struct dpf_seeded *r)
{
    for (size_t i = 0; i < m->plan.values; i++)
        m->order[i] = (uint32_t)i;
    for (size_t i = m->plan.values; i > 1; i--) {
        size_t k = dpf_seeded_below(r, i);
        uint32_t swap = m->order[i - 1];
        m->order[i - 1] = m->order[k];
        m->order[k] = swap;
    }
    for (size_t i = 0; i < m->plan.values; i += 64) {
        uint64_t signs = dpf_seeded_u64(r);
        for (size_t k = i; k < i + 64 && k < m->plan.values; k++, signs >>= 1)
            m->order[k] |= (uint32_t)(signs & 1) << 31;
    }
}

/* Public, for a place: as many labels with 1 as with -1 (one more or less if M is odd).
 */
static void draw_signs(const struct dpf_sphere *m, struct dpf_seeded *r, float *code)
{
    size_t labels = m->plan.labels;
    bool more = dpf_seeded_u64(r) & 1; /* which sign has one more, if one has */
    for (size_t i = 0; i < labels; i++)
        code[i] = i < (labels + more) / 2 ? 1 : -1;
    for (size_t i = labels; i > 1; i--) {
        size_t k = dpf_seeded_below(r, i);
        float swap = code[i - 1];
        code[i - 1] = code[k];
        code[k] = swap;
    }
}

/* The record's direction, turned and with its sign. */
static void turn(struct dpf_sphere *m, const float *record, double sign)
{
    double norm = 0;
    for (size_t i = 0; i < m->plan.values; i++)
        norm += (double)record[i] * (double)record[i];
    bool good = norm > 0 && isfinite(norm);
    double scale = good ? sign / sqrt(norm) : 0;
    for (size_t i = 0; i < m->plan.values; i++) {
        uint32_t from = m->order[i] & 0x7fffffff;
        double one = good ? (double)record[from] * scale : i == 0 ? 1 : 0;
        m->turned[i] = (float)(m->order[i] >> 31 ? -one : one);
    }
}

void dpf_sphere_draw(struct dpf_sphere *m, struct dpf_random *r, uint64_t place,
                     const float *record, uint64_t label, float *out, float *code)
{
    const struct dpf_sphere_plan *p = &m->plan;
    struct dpf_seeded shared;
    double sign = 1;
    size_t chosen;
    uint64_t told = label;
    char purpose[64];
    snprintf(purpose, sizeof purpose, "sphere-place of owner %llu",
             (unsigned long long)p->owner);
    dpf_seeded_init(&shared, purpose, p->seed, place);
    shuffle(m, &shared);
    if (p->labels && !m->tells_label) {
        draw_signs(m, &shared, code);
        sign = (double)code[label];
    }
    turn(m, record, sign);
    compute_agreement(m, m->turned);
    struct region region = find_region(m, m->region);
    if (dpf_bernoulli(r, m->inside)) {
        chosen = find_member(m, &region, true, dpf_random_below(r, m->region));
    } else {
        /* the rest: other directions of this label, then all of the other labels */
        uint64_t k = dpf_random_below(r, m->messages - m->region);
        uint64_t own = p->directions - m->region;
        if (k < own) {
            chosen = find_member(m, &region, false, k);
        } else {
            uint64_t other = (k - own) / p->directions;
            told = other + (other >= label);
            chosen = (k - own) % p->directions;
        }
    }
    for (size_t i = 0; i < p->values; i++) {
        double one = (double)m->codebook[i * p->directions + chosen] / m->cosine;
        out[m->order[i] & 0x7fffffff] = (float)(m->order[i] >> 31 ? -one : one);
    }
    for (size_t i = 0; m->tells_label && i < p->labels; i++)
        code[i] = i == told;
}
