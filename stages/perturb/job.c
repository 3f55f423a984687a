#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "exchange/form_stream.h"
#include "privacy/clip.h"
#include "privacy/grid.h"

#include "base/banned.h"

const char *const dpf_release_words[] = {"records",   "sum",      "quadratic",
                                         "relevance", "features", NULL};
const char *const dpf_perturb_words[] = {"laplace", "gaussian", NULL};
const char *const dpf_quadratic_words[] = {"paper", "sound", "gaussian", "plain", NULL};
const char *const dpf_central_words[] = {"add-remove", "replace-one", NULL};

/* Values are below 2^37 steps, so that sums of 2^26 records fit 64 bits. */
enum { VALUE_LOG2 = 36, RECORDS_LOG2 = 26 };

static bool is(const char *word, const char *other)
{
    return word && strcmp(word, other) == 0;
}

static bool is_gaussian(const struct dpf_perturb_job *j)
{
    return is(j->mechanism, "gaussian") || is(j->variant, "gaussian");
}

static bool is_plain(const struct dpf_perturb_job *j)
{
    return is(j->variant, "plain");
}

/* One record comes of all. */
static bool is_sum(const struct dpf_perturb_job *j)
{
    return is(j->release, "sum") || is(j->release, "relevance");
}

/* ------------------------------------------------------------------------- options */

/* Options that only one kind of release has. */
static enum dpf_status refuse_options(const struct dpf_perturb_job *j,
                                      const struct dpf_stage *s, const char *const *names,
                                      struct dpf_error *e)
{
    for (; *names; names++)
        if (dpf_option_given(&s->parsed, *names))
            return dpf_fail(e, DPF_USAGE, "'--%s' does not go with '--release %s'",
                            *names, j->release);
    return DPF_OK;
}

/* The mechanisms of AdLM have their own noise, under a fixed relation. */
static enum dpf_status check_adlm(const struct dpf_perturb_job *j,
                                  const struct dpf_stage *s, struct dpf_error *e)
{
    static const char *const others[] = {"mechanism", "relation",     "delta", "clip-l1",
                                         "clip-l2",   "no-intercept", NULL};
    static const char *const features_only[] = {
        "relevance", "label-epsilon", "label-share", "lot",          "neurons",
        "hidden",    "limit",         "draw",        "coefficients", NULL};
    static const char *const target[] = {"target", NULL};
    bool features = is(j->release, "features"), relevance = is(j->release, "relevance");
    enum dpf_status status = features ? DPF_OK : refuse_options(j, s, features_only, e);
    if (status == DPF_OK && relevance)
        status = refuse_options(j, s, target, e);
    if (status == DPF_OK && (features || relevance))
        status = refuse_options(j, s, others, e);
    if (status != DPF_OK || (!features && !relevance))
        return status;
    if (!is(j->variant, "paper") && !is(j->variant, "sound") &&
        !(features && is_plain(j)))
        return dpf_fail(e, DPF_USAGE, "'--release %s' needs '--variant paper' or 'sound'",
                        j->release);
    return features ? dpf_features_check(&j->features, s, e) : DPF_OK;
}

enum dpf_status dpf_perturb_job_check(const struct dpf_perturb_job *j,
                                      const struct dpf_stage *s, struct dpf_error *e)
{
    bool quadratic = is(j->release, "quadratic"), records = is(j->release, "records");
    bool adlm = is(j->release, "relevance") || is(j->release, "features");
    bool central_choice = is(j->release, "sum") || is(j->variant, "gaussian");
    enum dpf_status status = check_adlm(j, s, e);
    if (status != DPF_OK)
        return status;
    if (quadratic && (!j->variant || j->mechanism))
        return dpf_fail(e, DPF_USAGE,
                        "a quadratic form needs '--variant', and no "
                        "'--mechanism'");
    if (!quadratic && !adlm && (!j->mechanism || j->variant))
        return dpf_fail(e, DPF_USAGE,
                        "'--release %s' needs '--mechanism', and no "
                        "'--variant'",
                        j->release);
    if (is_plain(j) != j->non_private)
        return dpf_fail(e, is_plain(j) ? DPF_PRIVACY : DPF_USAGE,
                        is_plain(j)
                            ? "the plain variant adds no noise, which reveals the "
                              "records: accept it with --non-private"
                            : "'--non-private' goes with '--variant plain'");
    if (is_plain(j) ? j->epsilon > 0 || j->delta > 0 : j->epsilon == 0)
        return dpf_fail(e, DPF_USAGE,
                        is_plain(j) ? "the plain variant has no epsilon and no delta"
                                    : "give '--epsilon'");
    if (is_gaussian(j) != (j->delta > 0))
        return dpf_fail(e, DPF_USAGE,
                        is_gaussian(j) ? "Gaussian noise needs '--delta'"
                                       : "Laplace noise has no '--delta'");
    if (central_choice != (j->relation != NULL))
        return dpf_fail(e, DPF_USAGE,
                        central_choice ? "give '--relation': add-remove, or replace-one"
                                       : "'--relation' is fixed for this release");
    if ((j->clip_l1 > 0 && !is(j->mechanism, "laplace")) ||
        (j->clip_l2 > 0 && !is(j->mechanism, "gaussian")))
        return dpf_fail(e, DPF_USAGE,
                        "'--clip-l1' goes with Laplace noise on records and sums, "
                        "'--clip-l2' with Gaussian");
    if (j->only && !records)
        return dpf_fail(e, DPF_USAGE, "'--only' goes with '--release records'");
    if (!quadratic && !adlm &&
        (j->no_intercept || dpf_option_given(&s->parsed, "target")))
        return dpf_fail(e, DPF_USAGE,
                        "'--no-intercept' and '--target' go with '--release quadratic'");
    return DPF_OK;
}

/* ---------------------------------------------------------------------- boundaries */

/* What bounds a record: a norm that the user chose or that the header declares for
 * Gaussian noise, else the declared bounds, a pair for each value. */
static enum dpf_status take_bounds(struct dpf_perturb_job *j, const struct dpf_field *f,
                                   struct dpf_error *e)
{
    j->values = dpf_shape_elements(&f->shape);
    j->lo = dpf_calloc(j->values + 1, sizeof *j->lo);
    j->hi = dpf_calloc(j->values + 1, sizeof *j->hi);
    j->row = dpf_calloc(j->values + 1, sizeof *j->row);
    if (!j->lo || !j->hi || !j->row)
        return dpf_fail_memory(e);
    if (j->values == 0)
        return dpf_fail(e, DPF_USAGE, "field '%s' holds no values", f->name);
    j->radius = j->clip_l1 > 0   ? j->clip_l1
                : j->clip_l2 > 0 ? j->clip_l2
                : is_gaussian(j) ? f->norm_l2
                                 : 0;
    if (j->radius > 0)
        return DPF_OK;
    if (f->bounds.count == 0)
        return dpf_fail(
            e, DPF_USAGE,
            "field '%s' has no declared bounds: the sensitivity cannot be told "
            "from the data; normalize declares them",
            f->name);
    for (size_t i = 0; i < j->values; i++) {
        size_t at = f->bounds.count == 1 ? 0 : i;
        j->lo[i] = f->bounds.lo[at];
        j->hi[i] = f->bounds.hi[at];
    }
    return DPF_OK;
}

/* How far apart two records, or a record and none, can be. */
static double sensitivity(const struct dpf_perturb_job *j, bool l2, bool replace)
{
    double sum = 0;
    if (j->radius > 0)
        return j->radius * (replace ? 2 : 1);
    for (size_t i = 0; i < j->values; i++) {
        double one = replace ? j->hi[i] - j->lo[i] : fmax(fabs(j->lo[i]), fabs(j->hi[i]));
        sum += l2 ? one * one : one;
    }
    return (l2 ? sqrt(sum) : sum) * (1 + 1e-13);
}

static double largest_value(const struct dpf_perturb_job *j)
{
    double largest = fmax(j->radius, 1e-290);
    for (size_t i = 0; i < j->values; i++)
        largest = fmax(largest, fmax(fabs(j->lo[i]), fabs(j->hi[i])));
    return largest;
}

static double clip_value(struct dpf_perturb_job *j, size_t i, double value)
{
    if (value >= j->lo[i] && value <= j->hi[i])
        return value;
    j->clipped++;
    return value > j->hi[i]   ? j->hi[i]
           : value < j->lo[i] ? j->lo[i]
                              : 0.5 * (j->lo[i] + j->hi[i]); /* no number */
}

/* A record within its bounds, in j->row. */
static void clip_record(struct dpf_perturb_job *j, const float *value)
{
    for (size_t i = 0; i < j->values; i++)
        j->row[i] = j->radius > 0 ? (double)value[i] : clip_value(j, i, (double)value[i]);
    if (j->radius > 0)
        j->clipped += dpf_clip(is_gaussian(j) ? DPF_NORM_L2 : DPF_NORM_L1, j->radius,
                               j->row, j->values);
}

/* ------------------------------------------------------------------- records, sums */

static enum dpf_status open_additive(struct dpf_perturb_job *j, bool local,
                                     struct dpf_error *e)
{
    bool relevance = is(j->release, "relevance"), l2 = is_gaussian(j);
    bool replace = local || relevance || is(j->relation, "replace-one");
    double s = sensitivity(j, l2, replace);
    /* the paper counts a record twice: 2d / |D| for relevances in [0,1] */
    double epsilon = is(j->variant, "paper") ? j->epsilon / 2 : j->epsilon;
    struct dpf_mechanism_event *m = &j->event;
    enum dpf_status status;
    double least_step = ldexp(dpf_grid_floor_power(largest_value(j)), -VALUE_LOG2);
    if (l2) {
        struct dpf_gaussian_query query = {.sensitivity_l2 = s,
                                           .values = j->values,
                                           .parts = 1,
                                           .least_step = least_step};
        status = dpf_gaussian_init_epsilon(&j->gaussian, &query, j->epsilon, j->delta, e);
    } else {
        struct dpf_laplace_query query = {.sensitivity_l1 = s,
                                          .values = j->values,
                                          .parts = 1,
                                          .least_step = least_step};
        status = dpf_laplace_init(&j->laplace, &query, epsilon, e);
    }
    *m = (struct dpf_mechanism_event){
        .spending = {.kind = l2 ? DPF_SPEND_GAUSSIAN : DPF_SPEND_PURE,
                     .parameter = l2 ? j->gaussian.noise_multiplier : j->laplace.epsilon,
                     .choices = 2,
                     .rate = 1,
                     .count = 1},
        .sampling = "none",
        .norm = l2 ? "l2" : "l1",
        .sensitivity = l2 ? j->gaussian.sensitivity_l2 : j->laplace.sensitivity_l1,
        .method = local ? j->mechanism : NULL,
        .why =
            relevance && epsilon < j->epsilon
                ? "the paper allows each relevance to move by 2, but in [0,1] it moves "
                  "by 1"
                : NULL,
        .relation = local     ? DPF_LOCAL
                    : replace ? DPF_REPLACE_ONE
                              : DPF_ADD_REMOVE,
        .claimed = {j->epsilon, l2 ? j->delta : 0,
                    l2          ? "Balle and Wang 2018"
                    : relevance ? "Phan et al. 2017, Lemma 2"
                                : "Dwork et al. 2006"},
        .proven = {l2 ? j->epsilon : epsilon, l2 ? j->delta : 0,
                   l2 ? "Gaussian mechanism on a grid, trade-off function"
                      : "discrete Laplace mechanism"}};
    return status;
}

static void add_noise(struct dpf_perturb_job *j, int64_t *sums)
{
    if (is_gaussian(j))
        dpf_gaussian_add(&j->gaussian, &j->random, 1, sums, j->values);
    else
        dpf_laplace_add(&j->laplace, &j->random, sums, j->values);
}

static double step_of(const struct dpf_perturb_job *j)
{
    return is_gaussian(j) ? j->gaussian.step : j->laplace.step;
}

static enum dpf_status take_additive(struct dpf_perturb_job *j, struct dpf_tensor *x,
                                     bool local, struct dpf_error *e)
{
    enum dpf_status status = dpf_tensor_make_f32(x, e);
    float *value = x->data;
    double step = step_of(j);
    uint64_t rows = status == DPF_OK ? dpf_tensor_rows(x) : 0;
    for (uint64_t row = 0; row < rows; row++, value += j->values) {
        clip_record(j, value);
        for (size_t i = 0; i < j->values; i++) {
            int64_t whole = dpf_grid_round(j->row[i], step);
            j->sums[i] = local ? whole : j->sums[i] + whole;
        }
        if (!local)
            continue;
        add_noise(j, j->sums);
        for (size_t i = 0; i < j->values; i++)
            value[i] = (float)((double)j->sums[i] * step);
    }
    return status;
}

/* Nothing but the noisy field leaves, unless the user wants it to: then what leaves is
 * still private. */
static enum dpf_status open_records(struct dpf_perturb_job *j, struct dpf_stage *s,
                                    struct dpf_error *e)
{
    struct dpf_field *f = &s->out.fields[j->x];
    enum dpf_status status = open_additive(j, true, e);
    struct dpf_shape shape = f->shape;
    dpf_field_redefine(f, DPF_F32, &shape);
    if (status == DPF_OK && !j->only && s->out.field_count > 1) {
        dpf_notice("other fields stay as they are, and private: '--only' drops them");
        return DPF_OK;
    }
    dpf_header_keep_field(&s->out, j->x);
    if (s->out.is_private)
        dpf_standing_protect(&s->out);
    return status;
}

/* ----------------------------------------------------------------------- quadratic */

/* The target: a number in [-1, 1], or a class. */
static enum dpf_status take_target(struct dpf_perturb_job *j, struct dpf_header *h,
                                   struct dpf_quadratic_plan *plan, struct dpf_error *e)
{
    struct dpf_field *f = dpf_header_field(h, j->target);
    if (!f)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", j->target);
    j->y = (int)(f - h->fields);
    plan->classes = f->classes > 0;
    plan->outputs = plan->classes ? (size_t)f->classes : 1;
    if (dpf_shape_elements(&f->shape) != 1 || f->dtype == DPF_BITS)
        return dpf_fail(e, DPF_USAGE, "target '%s' is not one number a record", f->name);
    if (!plan->classes &&
        (f->bounds.count != 1 || f->bounds.lo[0] < -1 || f->bounds.hi[0] > 1))
        return dpf_fail(e, DPF_USAGE,
                        "target '%s' needs declared bounds within [-1, 1]: 'normalize "
                        "--field %s --signed'",
                        f->name, f->name);
    return DPF_OK;
}

static void describe_quadratic(struct dpf_perturb_job *j)
{
    static const char *const claims[] = {
        "Jiang, Deep Learning with Differential Privacy, section 4.2",
        "Jiang, with the joint sensitivity of the upper triangle", "Balle and Wang 2018"};
    static const char *const theorems[] = {
        "Laplace on all entries, true sensitivities n^2 and 2n",
        "Laplace on the upper triangle, joint sensitivity",
        "Gaussian on the upper triangle, trade-off function"};
    const struct dpf_quadratic *q = &j->quadratic;
    bool l2 = is_gaussian(j);
    int i = (int)q->plan.variant;
    double proven = l2 ? j->epsilon : q->proven_epsilon;
    j->event = (struct dpf_mechanism_event){
        .spending = {.kind = l2 ? DPF_SPEND_GAUSSIAN : DPF_SPEND_PURE,
                     .parameter = l2 ? q->gaussian.noise_multiplier : proven,
                     .choices = 2,
                     .rate = 1,
                     .count = 1},
        .sampling = "none",
        .norm = l2 ? "l2" : "l1",
        .sensitivity = q->sensitivity,
        .relation = l2 && !q->plan.replace_one ? DPF_ADD_REMOVE : DPF_REPLACE_ONE,
        .claimed = {j->epsilon, l2 ? j->delta : 0, claims[i]},
        .proven = {proven, l2 ? j->delta : 0, theorems[i]}};
}

static enum dpf_status open_quadratic(struct dpf_perturb_job *j, struct dpf_stage *s,
                                      struct dpf_error *e)
{
    const struct dpf_field *f = &s->in.fields[j->x];
    int variant = 0;
    while (strcmp(dpf_quadratic_words[variant], j->variant) != 0)
        variant++;
    struct dpf_quadratic_plan plan = {.variant = (enum dpf_quadratic_variant)variant,
                                      .features = dpf_shape_elements(&f->shape),
                                      .intercept = !j->no_intercept,
                                      .radius =
                                          is_gaussian(j) || is_plain(j) ? f->norm_l2 : 0,
                                      .replace_one = is(j->relation, "replace-one"),
                                      .epsilon = j->epsilon,
                                      .delta = j->delta};
    bool boxed = f->bounds.count > 0, negative = !boxed;
    for (size_t i = 0; i < f->bounds.count; i++) {
        boxed = boxed && f->bounds.lo[i] >= -1 && f->bounds.hi[i] <= 1;
        negative = negative || f->bounds.lo[i] < 0;
    }
    plan.non_negative = !negative;
    if (!boxed && !(plan.radius > 0))
        return dpf_fail(
            e, DPF_USAGE,
            "field '%s' needs declared bounds within [-1, 1]%s: see normalize", f->name,
            is_gaussian(j) || is_plain(j) ? ", or a norm" : "");
    enum dpf_status status = take_target(j, &s->in, &plan, e);
    if (status == DPF_OK)
        status = dpf_quadratic_init(&j->quadratic, &plan, e);
    if (status != DPF_OK)
        return status;
    if (!is_plain(j))
        describe_quadratic(j);
    s->out_deferred = true;
    return dpf_form_declare(&s->out, j->quadratic.n, j->quadratic.plan.outputs, e);
}

static enum dpf_status take_quadratic(struct dpf_perturb_job *j, struct dpf_batch *b,
                                      struct dpf_error *e)
{
    struct dpf_tensor *x = &b->tensor[j->x], *y = &b->tensor[j->y];
    bool classes = j->quadratic.plan.classes;
    int32_t *labels = classes ? dpf_calloc(b->rows + 1, sizeof *labels) : NULL;
    if (classes && !labels)
        return dpf_fail_memory(e);
    enum dpf_status status = dpf_tensor_make_f32(x, e);
    for (uint64_t i = 0; classes && i < b->rows; i++) /* the reader checked their range */
        labels[i] = (int32_t)dpf_tensor_get(y, i);
    if (status == DPF_OK && !classes)
        status = dpf_tensor_make_f32(y, e);
    if (status == DPF_OK)
        dpf_quadratic_add(&j->quadratic, x->data, classes ? NULL : y->data, labels,
                          b->rows);
    free(labels);
    return status;
}

static enum dpf_status emit_quadratic(struct dpf_perturb_job *j, struct dpf_stage *s,
                                      struct dpf_error *e)
{
    struct dpf_batch b = {0};
    enum dpf_status status = dpf_form_begin(s, &b, e);
    if (status != DPF_OK)
        return status;
    dpf_quadratic_release_noisy(&j->quadratic, &j->random, b.tensor[0].data,
                                b.tensor[1].data);
    const double noise[2] = {dpf_quadratic_noise_a(&j->quadratic),
                             dpf_quadratic_noise_b(&j->quadratic)};
    return dpf_form_send(s, &b, noise, j->quadratic.plan.intercept, e);
}

/* ----------------------------------------------------------------------------- all */

static enum dpf_status open_sum(struct dpf_perturb_job *j, struct dpf_stage *s,
                                struct dpf_error *e)
{
    struct dpf_shape shape = s->in.fields[j->x].shape;
    enum dpf_status status = open_additive(j, false, e);
    s->out_deferred = true;
    dpf_header_drop_fields(&s->out);
    s->out.has_records = true;
    s->out.records = 1;
    const char *name = is(j->release, "relevance") ? "relevance" : "sum";
    if (status == DPF_OK && !dpf_header_add_field(&s->out, name, DPF_F64, &shape))
        status = dpf_fail(e, DPF_SYSTEM, "the sum does not fit a header");
    return status;
}

static enum dpf_status emit_sum(struct dpf_perturb_job *j, struct dpf_stage *s,
                                struct dpf_error *e)
{
    struct dpf_batch b = {0};
    enum dpf_status status = dpf_stage_begin(s, e);
    if (status == DPF_OK)
        status = dpf_batch_init(&b, &s->out, 1, e);
    if (status != DPF_OK)
        return status;
    add_noise(j, j->sums);
    /* who replaces a record does not change how many there are */
    double divisor = is(j->release, "relevance") && j->records ? (double)j->records : 1;
    for (size_t i = 0; i < j->values; i++)
        ((double *)b.tensor[0].data)[i] = (double)j->sums[i] * step_of(j) / divisor;
    status = dpf_stage_emit(s, &b, e);
    dpf_batch_release(&b);
    return status;
}

static enum dpf_status open_features(struct dpf_perturb_job *j, struct dpf_stage *s,
                                     struct dpf_error *e)
{
    struct dpf_features_job *f = &j->features;
    const struct dpf_field *y = dpf_header_field(&s->in, j->target);
    if (!y)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", j->target);
    f->x = j->x;
    f->y = (int)(y - s->in.fields);
    if (f->x == f->y)
        return dpf_fail(e, DPF_USAGE, "'%s' cannot be both features and class", y->name);
    f->values = j->values;
    f->lo = j->lo;
    f->hi = j->hi;
    f->seed = j->seed;
    return dpf_features_open(f, s, e);
}

static void write_events(struct dpf_perturb_job *j, struct dpf_stage *s)
{
    struct dpf_values *events = &s->out.events;
    bool records = is(j->release, "records"), features = is(j->release, "features");
    if (!s->in.is_private && (records || features) && !is_plain(j))
        dpf_ledger_add_randomised(events, s->info->name,
                                  records ? j->mechanism : "laplace");
    if (!s->in.is_private)
        return;
    if (j->seed >= 0 && (features || !is_plain(j)))
        dpf_ledger_add_seed(events, s->info->name);
    if (features) {
        dpf_features_describe(&j->features, s);
    } else if (is_plain(j)) {
        dpf_ledger_add_none(events, s->info->name,
                            "the coefficients were released without noise");
    } else {
        dpf_ledger_add_mechanism(events, s->info->name, &j->event);
        if (!records)
            dpf_standing_protect(&s->out);
    }
}

enum dpf_status dpf_perturb_job_open(struct dpf_perturb_job *j, struct dpf_stage *s,
                                     struct dpf_error *e)
{
    struct dpf_field *f = dpf_header_field(&s->in, j->field);
    enum dpf_status status = DPF_OK;
    if (!f)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", j->field);
    if (f->dtype == DPF_BITS)
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' holds packed bits", f->name);
    j->x = (int)(f - s->in.fields);
    s->drops_others = true; /* nothing leaves that the mechanism has not seen */
    if (j->seed >= 0)
        dpf_random_init_insecure(&j->random, "perturb", (uint64_t)j->seed, 0);
    else
        status = dpf_random_init(&j->random, e);
    if (status == DPF_OK && is(j->release, "quadratic"))
        status = open_quadratic(j, s, e);
    else if (status == DPF_OK)
        status = take_bounds(j, f, e);
    if (status == DPF_OK && !is(j->release, "quadratic")) {
        j->sums = dpf_calloc(j->values + 1, sizeof *j->sums);
        status = !j->sums                     ? dpf_fail_memory(e)
                 : is_sum(j)                  ? open_sum(j, s, e)
                 : is(j->release, "features") ? open_features(j, s, e)
                                              : open_records(j, s, e);
    }
    if (status == DPF_OK)
        write_events(j, s);
    return status;
}

enum dpf_status dpf_perturb_job_take(struct dpf_perturb_job *j, struct dpf_stage *s,
                                     struct dpf_batch *b, struct dpf_error *e)
{
    j->records += b->rows;
    if (j->records > (uint64_t)1 << RECORDS_LOG2 &&
        (is_sum(j) || is(j->release, "quadratic")))
        return dpf_fail(e, DPF_USAGE, "a sum has at most 2^%d records",
                        (int)RECORDS_LOG2);
    if (is(j->release, "quadratic"))
        return take_quadratic(j, b, e);
    if (is(j->release, "features"))
        return dpf_features_take(&j->features, b, e);
    enum dpf_status status =
        take_additive(j, &b->tensor[j->x], is(j->release, "records"), e);
    if (is(j->release, "records") && s->out.field_count == 1 && b->count > 1) {
        struct dpf_tensor kept = b->tensor[j->x];
        for (int i = 0; i < b->count; i++)
            if (i != j->x)
                dpf_tensor_release(&b->tensor[i]);
        b->tensor[0] = kept;
        b->count = 1;
    }
    return status;
}

enum dpf_status dpf_perturb_job_finish(struct dpf_perturb_job *j, struct dpf_stage *s,
                                       struct dpf_error *e)
{
    uint64_t clipped =
        j->clipped + j->quadratic.clipped + dpf_features_clipped(&j->features);
    if (clipped && s->in.is_private) /* how many is nobody's business */
        dpf_notice("some values or records were outside their bounds and were clipped");
    else if (clipped)
        dpf_notice("%llu values or records were outside their bounds and were clipped",
                   (unsigned long long)clipped);
    return is(j->release, "quadratic") ? emit_quadratic(j, s, e)
           : is_sum(j)                 ? emit_sum(j, s, e)
                                       : DPF_OK;
}

void dpf_perturb_job_release(struct dpf_perturb_job *j)
{
    dpf_quadratic_release(&j->quadratic);
    dpf_features_release(&j->features);
    dpf_random_release(&j->random);
    free(j->lo);
    free(j->hi);
    free(j->row);
    free(j->sums);
    j->lo = j->hi = j->row = NULL;
    j->sums = NULL;
}
