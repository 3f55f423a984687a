#include "features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exchange/relevance_stream.h"

#include "base/banned.h"

const char *const dpf_draw_words[] = {"record", "lot", "stream", NULL};
const char *const dpf_coefficient_words[] = {"all", "first", NULL};

static bool is(const char *word, const char *other)
{
    return word && strcmp(word, other) == 0;
}

enum dpf_status dpf_features_check(const struct dpf_features_job *j,
                                   const struct dpf_stage *s, struct dpf_error *e)
{
    static const char *const printed[] = {"lot", "neurons", "hidden", "draw",
                                          "coefficients"};
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++)
        if (!j->paper && dpf_option_given(&s->parsed, printed[i]))
            return dpf_fail(e, DPF_USAGE, "'--%s' goes with '--variant paper'",
                            printed[i]);
    if (j->plain)
        return j->relevance || j->label_epsilon > 0
                   ? dpf_fail(e, DPF_USAGE,
                              "the plain variant has no relevance and no epsilon")
                   : DPF_OK;
    if (!(j->label_epsilon > 0))
        return dpf_fail(e, DPF_USAGE,
                        "features leave with their classes: give '--label-epsilon'");
    if (j->paper && (!j->lot || !(j->neurons > 0) || !j->hidden))
        return dpf_fail(e, DPF_USAGE,
                        "the paper's sensitivities need '--lot', '--neurons' and "
                        "'--hidden'");
    return DPF_OK;
}

/* ------------------------------------------------------------------------- the noise */

/* Algorithm 1, lines 9 to 13: (1/B) Lap(Delta_h0 / (beta_j epsilon_2)), Delta_h0 =
 * 2 d |h_0|. (Line 14 adds noise to the bias, too, which is a constant before training
 * and learned in it: it tells of nobody, and gets none here.) Or what each value costs,
 * in proportion to the cube root of its relevance.
 */
static void feature_scales(const struct dpf_features_job *j, const double *widths,
                           double *scales)
{
    double d = (double)j->values;
    for (size_t i = 0; i < j->values; i++)
        scales[i] = j->paper ? 1 : 1 / d;
    if (j->weights && j->paper)
        dpf_share_by_relevance(j->weights, j->values, scales);
    else if (j->weights)
        dpf_share_by_cube_root(j->weights, j->values, scales);
    for (size_t i = 0; i < j->values; i++) {
        double share = scales[i] * j->epsilon;
        scales[i] = j->paper ? 2 * d * j->neurons / (share * (double)j->lot)
                             /* a hair more: the grid rounds widths up */
                             : fmax(widths[i], 1e-200) / share * (1 + 0x1p-10);
    }
}

/* Lines 17 to 19: (1/B) Lap(Delta_F / epsilon_3), Delta_F = M (|h_k| + |h_k|^2 / 4). The
 * constant of the expansion is no coefficient of anything that is learned, and is left
 * out. */
static double coefficient_scale(const struct dpf_features_job *j)
{
    double hidden = (double)j->hidden;
    return (double)j->classes * (hidden + hidden * hidden / 4) /
           (j->label_epsilon * (double)j->lot);
}

static enum dpf_status make_noise(struct dpf_features_job *j, struct dpf_error *e)
{
    j->noisy = j->values + (j->paper ? 2 * j->classes : 0);
    double *widths = dpf_calloc(2 * j->noisy, sizeof *widths);
    double *scales = widths ? widths + j->noisy : NULL;
    if (!widths)
        return dpf_fail_memory(e);
    for (size_t i = 0; i < j->values; i++)
        widths[i] = j->hi[i] - j->lo[i];
    feature_scales(j, widths, scales);
    for (size_t i = j->values; i < j->noisy; i++) {
        widths[i] = 1; /* 1/2 - y; 1/8 is the same for all, but costs nothing more */
        scales[i] = coefficient_scale(j);
    }
    enum dpf_status status = dpf_adaptive_init(&j->noise, j->noisy, widths, scales, e);
    if (status == DPF_OK && !j->paper)
        status = dpf_response_init(&j->response, j->label_epsilon, j->classes, e);
    free(widths);
    return status;
}

/* ---------------------------------------------------------------------------- threads */

enum { PIECE = 4 }; /* records: their noise stays in a cache */

struct dpf_features_worker {
    struct dpf_random random;
    int64_t *noise; /* [PIECE, noisy] */
    uint64_t clipped;
};

static enum dpf_status make_workers(struct dpf_features_job *j, struct dpf_error *e)
{
    bool shared = j->paper && !is(j->draw, "record");
    int processors = dpf_processors();
    j->threads = shared || j->plain ? 1 : processors;
    j->workers = dpf_calloc((size_t)j->threads, sizeof *j->workers);
    if (!j->workers)
        return dpf_fail_memory(e);
    for (int i = 0; i < j->threads; i++) {
        struct dpf_features_worker *w = &j->workers[i];
        enum dpf_status status = dpf_random_init(&w->random, e);
        w->noise = dpf_calloc(PIECE * (j->noisy + 1), sizeof *w->noise);
        if (status == DPF_OK && !w->noise)
            status = dpf_fail_memory(e);
        if (status != DPF_OK)
            return status;
    }
    j->shared = dpf_calloc(j->noisy + 1, sizeof *j->shared);
    return j->shared ? dpf_crew_init(&j->crew, j->threads, e) : dpf_fail_memory(e);
}

/* Of each class, 1/2 - y and 1/8; or the first alone. */
static struct dpf_shape coefficient_shape(const struct dpf_features_job *j)
{
    bool first = is(j->coefficients, "first");
    return (struct dpf_shape){.rank = first ? 1 : 2, .dim = {j->classes, 2}};
}

/* What leaves: x and y, and nothing else. */
static enum dpf_status declare(struct dpf_features_job *j, struct dpf_stage *s,
                               struct dpf_error *e)
{
    struct dpf_shape x = s->in.fields[j->x].shape;
    struct dpf_shape y =
        j->paper || j->plain ? coefficient_shape(j) : s->in.fields[j->y].shape;
    enum dpf_dtype dtype = j->paper || j->plain ? DPF_F32 : s->in.fields[j->y].dtype;
    dpf_header_drop_fields(&s->out);
    struct dpf_field *f = dpf_header_add_field(&s->out, "x", DPF_F32, &x);
    enum dpf_status status = f ? DPF_OK : dpf_fail_memory(e);
    if (status == DPF_OK && j->limit > 0)
        status = dpf_field_set_bounds(f, -j->limit, j->limit, e);
    f = status == DPF_OK ? dpf_header_add_field(&s->out, "y", dtype, &y) : NULL;
    if (status == DPF_OK && !f)
        status = dpf_fail_memory(e);
    if (status == DPF_OK && !j->paper && !j->plain)
        f->classes = j->classes;
    return status;
}

enum dpf_status dpf_features_open(struct dpf_features_job *j, struct dpf_stage *s,
                                  struct dpf_error *e)
{
    enum { MOST_CLASSES = 65536 };
    const struct dpf_field *y = &s->in.fields[j->y];
    uint64_t fit = y->dtype == DPF_U8 ? 256 : MOST_CLASSES;
    if (y->classes > fit)
        return dpf_fail(e, DPF_USAGE, "target '%s' has more than %llu classes", y->name,
                        (unsigned long long)fit);
    if (y->classes < 2 || dpf_shape_elements(&y->shape) != 1)
        return dpf_fail(e, DPF_USAGE, "target '%s' is not one class a record", y->name);
    j->classes = y->classes;
    enum dpf_status status =
        j->relevance ? dpf_relevance_read(s, j->relevance, j->values, &j->weights, e)
                     : DPF_OK;
    if (status == DPF_OK && !j->plain)
        status = make_noise(j, e);
    if (status == DPF_OK)
        status = make_workers(j, e);
    return status == DPF_OK ? declare(j, s, e) : status;
}

/* ------------------------------------------------------------------------ the ledger */

static void add_event(struct dpf_stage *s, double claimed, const char *source,
                      double proven, const char *theorem, const char *why,
                      const struct dpf_mechanism_event *more)
{
    struct dpf_mechanism_event m = *more;
    proven = fmax(proven, 1e-9); /* the least that a ledger holds */
    m.spending = (struct dpf_spending){
        .kind = DPF_SPEND_PURE, .parameter = proven, .choices = 2, .rate = 1, .count = 1};
    m.sampling = "none";
    m.relation = DPF_LOCAL;
    m.claimed = (struct dpf_guarantee){claimed, 0, source};
    m.proven = (struct dpf_guarantee){proven, 0, theorem};
    m.why = why;
    dpf_ledger_add_mechanism(&s->out.events, s->info->name, &m);
}

/* How far apart two records can be. */
static double total_width(const struct dpf_features_job *j)
{
    double sum = 0;
    for (size_t i = 0; i < j->values; i++)
        sum += j->hi[i] - j->lo[i];
    return sum * (1 + 1e-13);
}

static void describe_paper(const struct dpf_features_job *j, struct dpf_stage *s)
{
    static const char why[] =
        "the paper counts the noise of a whole lot for the sum of its records, but a sum "
        "of B draws is no Laplace noise of that scale, and the network reads each "
        "record: proven is what each record's own noise hides from everyone";
    struct dpf_mechanism_event more = {.method = j->weights ? "adlm" : "ilm",
                                       .units = j->values,
                                       .norm = "l1",
                                       .sensitivity = total_width(j)};
    add_event(s, j->epsilon,
              j->weights ? "Phan et al. 2017, Lemma 4" : "Phan et al. 2017, Appendix C",
              dpf_adaptive_epsilon(&j->noise, 0, j->values),
              "Laplace noise with a scale for each value (local)", why, &more);
    more.units = 2 * j->classes;
    more.sensitivity = 2;
    /* another class changes two of the coefficients */
    add_event(s, j->label_epsilon, "Phan et al. 2017, Lemma 6",
              dpf_adaptive_epsilon(&j->noise, j->values, j->values + 2),
              "Laplace noise on one-hot classes (local)", why, &more);
    if (!is(j->draw, "record"))
        dpf_ledger_add_none(
            &s->out.events, s->info->name,
            is(j->draw, "lot")
                ? "records of a lot carry the same noise: their differences leave as "
                  "they are"
                : "all records carry the same noise: their differences leave as they "
                  "are");
}

static void describe_sound(const struct dpf_features_job *j, struct dpf_stage *s)
{
    struct dpf_mechanism_event more = {.method = "laplace-each",
                                       .units = j->values,
                                       .norm = "l1",
                                       .sensitivity = total_width(j)};
    add_event(s, j->epsilon, "Dwork et al. 2006",
              dpf_adaptive_epsilon(&j->noise, 0, j->values),
              "Laplace noise with a scale for each value (local)", NULL, &more);
    more = (struct dpf_mechanism_event){.method = "response",
                                        .units = j->classes,
                                        .probabilities = &j->response.keep,
                                        .probability_count = 1};
    add_event(s, j->label_epsilon, "Warner 1965", j->response.epsilon,
              "M-ary randomised response", NULL, &more);
}

void dpf_features_describe(const struct dpf_features_job *j, struct dpf_stage *s)
{
    if (j->plain)
        dpf_ledger_add_none(&s->out.events, s->info->name,
                            "records were released without noise");
    else if (j->paper)
        describe_paper(j, s);
    else
        describe_sound(j, s);
    if (!j->plain)
        dpf_standing_protect(&s->out);
}

/* ------------------------------------------------------------------------ the stream */

struct work {
    struct dpf_features_job *job;
    uint64_t rows, first; /* of the batch; its first record's number */
    float *x, *coefficients;
    uint64_t each; /* coefficients of a record */
    struct dpf_tensor *y;
};

/* Everybody who knows the seed gets the same noise for a record, with any threads. */
static void seed_record(struct dpf_features_job *j, struct dpf_features_worker *w,
                        uint64_t record)
{
    if (j->seed >= 0) {
        dpf_random_release(&w->random);
        dpf_random_init_insecure(&w->random, "perturb", (uint64_t)j->seed, record);
    }
}

/* Noise for the records that follow: for at most a piece, or what the lot shares. How
 * many records it is for. */
static uint64_t draw(struct dpf_features_job *j, struct dpf_features_worker *w,
                     uint64_t record, uint64_t left)
{
    uint64_t lot = (uint64_t)j->lot;
    if (j->plain)
        return left;
    if (j->threads == 1 && j->paper && !is(j->draw, "record")) {
        bool anew = is(j->draw, "lot") ? record % lot == 0 : record == 0;
        if (anew) {
            seed_record(j, w, record);
            dpf_adaptive_draw(&j->noise, &w->random, 1, j->shared);
        }
        memcpy(w->noise, j->shared, j->noisy * sizeof *j->shared);
        return 1;
    }
    uint64_t count = j->seed >= 0 ? 1 : left < PIECE ? left : PIECE;
    seed_record(j, w, record);
    dpf_adaptive_draw(&j->noise, &w->random, count, w->noise);
    return count;
}

/* The plain variant: within bounds, and no more. */
static uint64_t only_clip(const struct dpf_features_job *j, float *x)
{
    uint64_t clipped = 0;
    for (size_t i = 0; i < j->values; i++) {
        double v = (double)x[i], lo = j->lo[i], hi = j->hi[i];
        bool inside = v >= lo && v <= hi;
        clipped += !inside;
        x[i] = inside ? x[i] : (float)(v > hi ? hi : v < lo ? lo : 0.5 * (lo + hi));
    }
    return clipped;
}

/* The expansion of the logistic cross-entropy at 0. */
static void take_coefficients(const struct dpf_features_job *j, uint64_t truth,
                              const int64_t *noise, float *out)
{
    static const double widest[2] = {-1, 1};
    size_t each = is(j->coefficients, "first") ? 1 : 2;
    for (size_t l = 0; l < j->classes; l++)
        for (size_t k = 0; k < each; k++, out++) {
            size_t at = j->values + 2 * l + k;
            struct dpf_adaptive_part one = {at, 1, &widest[0], &widest[1]};
            *out = k ? 0.125F : l == truth ? -0.5F : 0.5F;
            if (!j->plain)
                dpf_adaptive_add(&j->noise, &one, noise + at, out, out);
        }
}

static void take_record(struct dpf_features_job *j, struct dpf_features_worker *w,
                        const struct work *work, uint64_t row, const int64_t *noise)
{
    const struct dpf_adaptive_part all = {0, j->values, j->lo, j->hi};
    float *x = work->x + row * j->values, limit = (float)j->limit;
    limit = (double)limit > j->limit ? nextafterf(limit, 0) : limit;
    uint64_t truth = (uint64_t)dpf_tensor_get(work->y, row);
    w->clipped +=
        j->plain ? only_clip(j, x) : dpf_adaptive_add(&j->noise, &all, noise, x, x);
    for (size_t i = 0; j->limit > 0 && i < j->values; i++)
        x[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];
    if (work->coefficients)
        take_coefficients(j, truth, noise, work->coefficients + row * work->each);
    else
        dpf_tensor_put_class(work->y, row,
                             dpf_response_draw(&j->response, &w->random, truth));
}

/* A worker's part of a batch. */
static void take_part(void *context, int number)
{
    const struct work *work = context;
    struct dpf_features_job *j = work->job;
    struct dpf_features_worker *w = &j->workers[number];
    uint64_t share = (work->rows + (uint64_t)j->threads - 1) / (uint64_t)j->threads;
    uint64_t row = (uint64_t)number * share;
    uint64_t to = row + share < work->rows ? row + share : work->rows;
    while (row < to) {
        uint64_t count = draw(j, w, work->first + row, to - row);
        for (uint64_t i = 0; i < count; i++, row++)
            take_record(j, w, work, row, w->noise + (j->plain ? 0 : i * j->noisy));
    }
}

enum dpf_status dpf_features_take(struct dpf_features_job *j, struct dpf_batch *b,
                                  struct dpf_error *e)
{
    struct dpf_tensor *x = &b->tensor[j->x], *y = &b->tensor[j->y], loss;
    struct dpf_shape own = coefficient_shape(j), shape;
    bool replaced = j->paper || j->plain;
    if (!dpf_shape_prepend(&own, b->rows, &shape))
        return dpf_fail_memory(e);
    enum dpf_status status = dpf_tensor_make_f32(x, e);
    if (status == DPF_OK && replaced)
        status = dpf_tensor_init(&loss, DPF_F32, &shape, e);
    if (status != DPF_OK)
        return status;
    struct work work = {.job = j,
                        .rows = b->rows,
                        .first = j->records,
                        .x = x->data,
                        .coefficients = replaced ? loss.data : NULL,
                        .each = dpf_shape_elements(&own),
                        .y = y};
    dpf_crew_run(&j->crew, take_part, &work);
    j->records += b->rows;
    if (replaced) {
        dpf_tensor_release(y);
        *y = loss;
    }
    struct dpf_tensor kept[2] = {*x, *y};
    for (int i = 0; i < b->count; i++)
        if (i != j->x && i != j->y)
            dpf_tensor_release(&b->tensor[i]);
    memcpy(b->tensor, kept, sizeof kept);
    b->count = 2;
    return DPF_OK;
}

uint64_t dpf_features_clipped(const struct dpf_features_job *j)
{
    uint64_t all = 0;
    for (int i = 0; j->workers && i < j->threads; i++)
        all += j->workers[i].clipped;
    return all;
}

void dpf_features_release(struct dpf_features_job *j)
{
    dpf_crew_release(&j->crew);
    for (int i = 0; j->workers && i < j->threads; i++) {
        dpf_random_release(&j->workers[i].random);
        free(j->workers[i].noise);
    }
    dpf_adaptive_release(&j->noise);
    free(j->workers);
    free(j->shared);
    free(j->weights);
    j->workers = NULL;
    j->shared = NULL;
    j->weights = NULL;
}
