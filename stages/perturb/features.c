/* Features and classes with noise, once, as AdLM and ILM release them: privacy/adlm.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "exchange/relevance_stream.h"
#include "privacy/adlm.h"
#include "release.h"

#include "base/banned.h"

const char *const dpf_coefficient_words[] = {"all", "first", NULL};
const char *const dpf_draw_words[] = {"record", "lot", "stream", NULL};

enum { PIECE = 4 }; /* records: their noise stays in a cache */

struct worker {
    struct dpf_random random;
    int64_t *noise; /* [PIECE, noisy] */
    uint64_t clipped;
};

struct own {
    int y; /* the number of the field with the classes */
    struct dpf_record_bounds bounds;
    double *relevance; /* of each value; or NULL */
    size_t classes;
    size_t each; /* coefficients of a class that leave: 1/2 - y, and 1/8 */
    struct dpf_adlm adlm;
    bool replaces;   /* y becomes coefficients */
    bool by_lot;     /* one draw for each lot, */
    bool by_all;     /* or for all records */
    int64_t *shared; /* that draw */
    int threads;
    struct dpf_thread_pool pool;
    struct worker *workers;
    uint64_t records;
};

static enum dpf_status check_features(const struct dpf_perturb *p,
                                      const struct dpf_stage *s, struct dpf_error *e)
{
    static const char *const printed[] = {"lot", "neurons", "hidden", "draw",
                                          "coefficients"};
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++)
        if (!p->paper && dpf_option_given(&s->parsed, printed[i]))
            return dpf_fail(e, DPF_USAGE, "'--%s' goes with '--variant paper'",
                            printed[i]);
    if (p->plain)
        return p->relevance || p->label_epsilon > 0
                   ? dpf_fail(e, DPF_USAGE,
                              "the plain variant has no relevance and no epsilon")
                   : DPF_OK;
    if (!(p->label_epsilon > 0))
        return dpf_fail(
            e, DPF_USAGE,
            "features are released with their classes: give '--label-epsilon'");
    if (p->paper && (!p->lot || !(p->neurons > 0) || !p->hidden))
        return dpf_fail(e, DPF_USAGE,
                        "the paper's sensitivities need '--lot', '--neurons' and "
                        "'--hidden'");
    return DPF_OK;
}

/* -------------------------------------------------------------------------- opening */

static enum dpf_status take_classes(struct dpf_perturb *p, struct dpf_header *h,
                                    struct dpf_error *e)
{
    enum { MOST_CLASSES = 65536 };
    struct own *own = p->own;
    enum dpf_status status = dpf_perturb_target(p, h, &own->y, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_field *y = &h->fields[own->y];
    uint64_t fit = y->dtype == DPF_U8 ? 256 : MOST_CLASSES;
    if (p->x == own->y)
        return dpf_fail(e, DPF_USAGE, "'%s' cannot be both features and class", y->name);
    if (y->classes > fit)
        return dpf_fail(e, DPF_USAGE, "target '%s' has more than %llu classes", y->name,
                        (unsigned long long)fit);
    if (y->classes < 2 || dpf_shape_elements(&y->shape) != 1)
        return dpf_fail(e, DPF_USAGE,
                        "target '%s' does not hold one class for each record", y->name);
    own->classes = y->classes;
    return DPF_OK;
}

static enum dpf_status make_noise(const struct dpf_perturb *p, struct dpf_error *e)
{
    struct own *own = p->own;
    const struct dpf_adlm_plan plan = {.bounds = &own->bounds,
                                       .relevance = own->relevance,
                                       .classes = own->classes,
                                       .epsilon = p->epsilon,
                                       .label_epsilon = p->label_epsilon,
                                       .paper = p->paper,
                                       .neurons = p->neurons,
                                       .lot = (double)p->lot,
                                       .hidden = (double)p->hidden};
    return dpf_adlm_init(&own->adlm, &plan, e);
}

static enum dpf_status make_workers(const struct dpf_perturb *p, struct dpf_error *e)
{
    struct own *own = p->own;
    size_t noisy = own->adlm.noisy;
    own->threads = own->by_lot || own->by_all || p->plain ? 1 : dpf_processors();
    own->workers = dpf_calloc((size_t)own->threads, sizeof *own->workers);
    if (!own->workers)
        return dpf_fail_memory(e);
    for (int i = 0; i < own->threads; i++) {
        struct worker *w = &own->workers[i];
        enum dpf_status status = dpf_random_init(&w->random, e);
        w->noise = dpf_calloc(PIECE * (noisy + 1), sizeof *w->noise);
        if (status == DPF_OK && !w->noise)
            status = dpf_fail_memory(e);
        if (status != DPF_OK)
            return status;
    }
    own->shared = dpf_calloc(noisy + 1, sizeof *own->shared);
    return own->shared ? dpf_thread_pool_init(&own->pool, own->threads, e)
                       : dpf_fail_memory(e);
}

/* Of each class, 1/2 - y and 1/8; or the first alone. */
static struct dpf_shape coefficient_shape(const struct own *own)
{
    return (struct dpf_shape){.rank = own->each == 1 ? 1 : 2, .dim = {own->classes, 2}};
}

/* What leaves: x and y, and nothing else. */
static enum dpf_status declare(const struct dpf_perturb *p, struct dpf_stage *s,
                               struct dpf_error *e)
{
    const struct own *own = p->own;
    const struct dpf_field *class = &s->in.fields[own->y];
    struct dpf_shape x = s->in.fields[p->x].shape;
    struct dpf_shape y = own->replaces ? coefficient_shape(own) : class->shape;
    enum dpf_dtype dtype = own->replaces ? DPF_F32 : class->dtype;
    dpf_header_drop_fields(&s->out);
    struct dpf_field *f = dpf_header_add_field(&s->out, "x", DPF_F32, &x);
    enum dpf_status status = f ? DPF_OK : dpf_fail_memory(e);
    if (status == DPF_OK && p->limit > 0)
        status = dpf_field_set_bounds(f, -p->limit, p->limit, e);
    f = status == DPF_OK ? dpf_header_add_field(&s->out, "y", dtype, &y) : NULL;
    if (status == DPF_OK && !f)
        status = dpf_fail_memory(e);
    if (status == DPF_OK && !own->replaces)
        f->classes = own->classes;
    return status;
}

/* ----------------------------------------------------------------------- the ledger */

static void add_event(struct dpf_stage *s, struct dpf_guarantee claimed,
                      struct dpf_guarantee proven, struct dpf_mechanism_event m)
{
    proven.epsilon = fmax(proven.epsilon, 1e-9); /* the least that a ledger holds */
    m.spending = dpf_perturb_spending(&dpf_spending_pure, proven.epsilon);
    m.sampling = "none";
    m.relation = DPF_LOCAL;
    m.claimed = claimed;
    m.proven = proven;
    dpf_ledger_add_mechanism(&s->out.events, s->info->name, &m);
}

static void add_feature_event(const struct dpf_perturb *p, struct dpf_stage *s,
                              const char *method, const char *source, const char *why)
{
    const struct own *own = p->own;
    double apart = dpf_adaptive_sensitivity(&own->adlm.noise, 0, own->bounds.values);
    add_event(s, (struct dpf_guarantee){p->epsilon, 0, source},
              (struct dpf_guarantee){dpf_adlm_feature_epsilon(&own->adlm), 0,
                                     "Laplace noise with a scale for each value (local)"},
              (struct dpf_mechanism_event){.method = method,
                                           .why = why,
                                           .units = own->bounds.values,
                                           .norm = "l1",
                                           .sensitivity = apart});
}

static void add_paper_events(const struct dpf_perturb *p, struct dpf_stage *s)
{
    static const char why[] =
        "the paper counts the noise of a whole lot for the sum of its records, but a sum "
        "of B draws is no Laplace noise of that scale, and the network reads each "
        "record: proven is what each record's own noise hides from everyone";
    const struct own *own = p->own;
    const char *method = own->relevance ? "adlm" : "ilm";
    add_feature_event(p, s, method,
                      own->relevance ? "Phan et al. 2017, Lemma 4"
                                     : "Phan et al. 2017, Appendix C",
                      why);
    add_event(s, (struct dpf_guarantee){p->label_epsilon, 0, "Phan et al. 2017, Lemma 6"},
              (struct dpf_guarantee){dpf_adlm_label_epsilon(&own->adlm), 0,
                                     "Laplace noise on one-hot classes (local)"},
              (struct dpf_mechanism_event){.method = method,
                                           .why = why,
                                           .units = 2 * own->classes,
                                           .norm = "l1",
                                           .sensitivity = 2});
    if (own->by_lot)
        dpf_ledger_add_none(&s->out.events, s->info->name,
                            "records of a lot carry the same noise: their differences "
                            "leave as they are");
    if (own->by_all)
        dpf_ledger_add_none(&s->out.events, s->info->name,
                            "all records carry the same noise: their differences leave "
                            "as they are");
}

static void add_sound_events(const struct dpf_perturb *p, struct dpf_stage *s)
{
    const struct own *own = p->own;
    add_feature_event(p, s, "laplace-each", "Dwork et al. 2006", NULL);
    add_event(s, (struct dpf_guarantee){p->label_epsilon, 0, "Warner 1965"},
              (struct dpf_guarantee){dpf_adlm_label_epsilon(&own->adlm), 0,
                                     "M-ary randomised response"},
              (struct dpf_mechanism_event){.method = "response",
                                           .units = own->classes,
                                           .probabilities = &own->adlm.response.keep,
                                           .probability_count = 1});
}

static void add_events(const struct dpf_perturb *p, struct dpf_stage *s)
{
    if (!s->in.is_private) {
        if (!p->plain)
            dpf_ledger_add_randomised(&s->out.events, s->info->name, "laplace");
        return;
    }
    if (p->seed >= 0)
        dpf_ledger_add_seed(&s->out.events, s->info->name);
    if (p->plain) {
        dpf_ledger_add_none(&s->out.events, s->info->name,
                            "records were released without noise");
        return;
    }
    if (p->paper)
        add_paper_events(p, s);
    else
        add_sound_events(p, s);
    dpf_standing_protect(&s->out);
}

static enum dpf_status open_features(struct dpf_perturb *p, struct dpf_stage *s,
                                     struct dpf_error *e)
{
    struct own *own = p->own;
    own->replaces = p->paper || p->plain;
    own->each = strcmp(p->coefficients, "first") == 0 ? 1 : 2;
    own->by_lot = p->paper && strcmp(p->draw, "lot") == 0;
    own->by_all = p->paper && strcmp(p->draw, "stream") == 0;
    enum dpf_status status = dpf_perturb_bounds(p, &s->in.fields[p->x], &own->bounds, e);
    if (status == DPF_OK)
        status = take_classes(p, &s->in, e);
    if (status == DPF_OK && p->relevance)
        status =
            dpf_relevance_read(s, p->relevance, own->bounds.values, &own->relevance, e);
    if (status == DPF_OK && !p->plain)
        status = make_noise(p, e);
    if (status == DPF_OK)
        status = make_workers(p, e);
    if (status == DPF_OK)
        status = declare(p, s, e);
    if (status == DPF_OK)
        add_events(p, s);
    return status;
}

/* -------------------------------------------------------------------------- records */

struct work {
    struct dpf_perturb *p;
    uint64_t rows, first; /* of the batch; its first record's number */
    float *x, *coefficients;
    struct dpf_tensor *y;
};

/* Everybody who knows the seed gets the same noise for a record, with any threads. */
static void seed_record(const struct dpf_perturb *p, struct worker *w, uint64_t record)
{
    if (p->seed >= 0) {
        dpf_random_release(&w->random);
        dpf_random_init_insecure(&w->random, "perturb", (uint64_t)p->seed, record);
    }
}

/* Noise for the records that follow: for at most a piece, or what the lot shares. How
 * many records it is for. */
static uint64_t draw(const struct dpf_perturb *p, struct worker *w, uint64_t record,
                     uint64_t left)
{
    struct own *own = p->own;
    const struct dpf_adaptive *noise = &own->adlm.noise;
    if (p->plain)
        return left;
    if (own->by_lot || own->by_all) {
        bool anew = own->by_lot ? record % (uint64_t)p->lot == 0 : record == 0;
        if (anew) {
            seed_record(p, w, record);
            dpf_adaptive_draw(noise, &w->random, 1, own->shared);
        }
        memcpy(w->noise, own->shared, own->adlm.noisy * sizeof *own->shared);
        return 1;
    }
    uint64_t count = p->seed >= 0 ? 1 : left < PIECE ? left : PIECE;
    seed_record(p, w, record);
    dpf_adaptive_draw(noise, &w->random, count, w->noise);
    return count;
}

/* The plain variant: within bounds, and no more. */
static uint64_t only_clip(const struct dpf_record_bounds *b, float *x)
{
    uint64_t clipped = 0;
    for (size_t i = 0; i < b->values; i++) {
        double v = (double)x[i], lo = b->lo[i], hi = b->hi[i];
        bool inside = v >= lo && v <= hi;
        clipped += !inside;
        x[i] = inside ? x[i]
                      : (float)(v > hi   ? hi
                                : v < lo ? lo
                                         : dpf_record_middle(lo, hi));
    }
    return clipped;
}

static void take_coefficients(const struct dpf_perturb *p, uint64_t truth,
                              const int64_t *noise, float *out)
{
    const struct own *own = p->own;
    for (size_t l = 0; l < own->classes; l++)
        for (size_t k = 0; k < own->each; k++, out++)
            *out = p->plain
                       ? dpf_adlm_coefficient(l == truth, k)
                       : dpf_adlm_noisy_coefficient(&own->adlm, l, l == truth, k, noise);
}

static void cut(double to, float *x, size_t values)
{
    float limit = (float)to;
    limit = (double)limit > to ? nextafterf(limit, 0) : limit;
    for (size_t i = 0; i < values; i++)
        x[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
}

static void take_record(const struct work *work, struct worker *w, uint64_t row,
                        const int64_t *noise)
{
    const struct dpf_perturb *p = work->p;
    const struct own *own = p->own;
    size_t values = own->bounds.values;
    const struct dpf_adaptive_part all = {0, values, own->bounds.lo, own->bounds.hi};
    float *x = work->x + row * values;
    uint64_t truth = (uint64_t)dpf_tensor_get(work->y, row);
    w->clipped += p->plain ? only_clip(&own->bounds, x)
                           : dpf_adaptive_add(&own->adlm.noise, &all, noise, x, x);
    if (p->limit > 0)
        cut(p->limit, x, values);
    if (work->coefficients)
        take_coefficients(p, truth, noise,
                          work->coefficients + row * own->classes * own->each);
    else
        dpf_tensor_put_class(work->y, row,
                             dpf_response_draw(&own->adlm.response, &w->random, truth));
}

/* A worker's part of a batch. */
static void take_part(void *context, int number)
{
    const struct work *work = context;
    struct own *own = work->p->own;
    struct worker *w = &own->workers[number];
    uint64_t share = (work->rows + (uint64_t)own->threads - 1) / (uint64_t)own->threads;
    uint64_t row = (uint64_t)number * share;
    uint64_t to = row + share < work->rows ? row + share : work->rows;
    while (row < to) {
        uint64_t count = draw(work->p, w, work->first + row, to - row);
        for (uint64_t i = 0; i < count; i++, row++)
            take_record(work, w, row,
                        w->noise + (work->p->plain ? 0 : i * own->adlm.noisy));
    }
}

/* x and y, and nothing else. */
static void keep_both(struct dpf_batch *b, int x, int y)
{
    struct dpf_tensor kept[2] = {b->tensor[x], b->tensor[y]};
    for (int i = 0; i < b->count; i++)
        if (i != x && i != y)
            dpf_tensor_release(&b->tensor[i]);
    memcpy(b->tensor, kept, sizeof kept);
    b->count = 2;
}

static enum dpf_status take_features(struct dpf_perturb *p, struct dpf_batch *b,
                                     struct dpf_error *e)
{
    struct own *own = p->own;
    struct dpf_tensor *x = &b->tensor[p->x], *y = &b->tensor[own->y], loss;
    struct dpf_shape each = coefficient_shape(own), shape;
    if (!dpf_shape_prepend(&each, b->rows, &shape))
        return dpf_fail_memory(e);
    enum dpf_status status = dpf_tensor_make_f32(x, e);
    if (status == DPF_OK && own->replaces)
        status = dpf_tensor_init(&loss, DPF_F32, &shape, e);
    if (status != DPF_OK)
        return status;
    struct work work = {.p = p,
                        .rows = b->rows,
                        .first = own->records,
                        .x = x->data,
                        .coefficients = own->replaces ? loss.data : NULL,
                        .y = y};
    dpf_thread_pool_run(&own->pool, take_part, &work);
    own->records += b->rows;
    if (own->replaces) {
        dpf_tensor_release(y);
        *y = loss;
    }
    keep_both(b, p->x, own->y);
    return DPF_OK;
}

static uint64_t clipped(const struct dpf_perturb *p)
{
    const struct own *own = p->own;
    uint64_t all = 0;
    for (int i = 0; own->workers && i < own->threads; i++)
        all += own->workers[i].clipped;
    return all;
}

static void release_features(struct dpf_perturb *p)
{
    struct own *own = p->own;
    dpf_thread_pool_release(&own->pool);
    for (int i = 0; own->workers && i < own->threads; i++) {
        dpf_random_release(&own->workers[i].random);
        free(own->workers[i].noise);
    }
    dpf_adlm_release(&own->adlm);
    dpf_record_bounds_release(&own->bounds);
    free(own->workers);
    free(own->shared);
    free(own->relevance);
}

static const char *const needs[] = {"variant", NULL};
static const char *const may[] = {"relevance",    "label-epsilon", "label-share", "lot",
                                  "neurons",      "hidden",        "draw",        "limit",
                                  "coefficients", "target",        NULL};
static const char *const variants[] = {"paper", "sound", "plain", NULL};

const struct dpf_release dpf_release_features = {.needs = needs,
                                                 .may = may,
                                                 .variants = variants,
                                                 .own_bytes = sizeof(struct own),
                                                 .check = check_features,
                                                 .open = open_features,
                                                 .take = take_features,
                                                 .clipped = clipped,
                                                 .release = release_features};
