#include "nn/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "kernels/mask.h"
#include "random/bernoulli.h"
#include "random/seeded.h"

#include "base/banned.h"

const struct dpf_sampling_choice dpf_sampling_choices[] = {
    {"shuffle", DPF_SAMPLE_SHUFFLE},
    {"poisson", DPF_SAMPLE_POISSON},
    {"sequence", DPF_SAMPLE_SEQUENCE},
    {NULL, DPF_SAMPLE_SHUFFLE},
};

const char *dpf_sampling_name(enum dpf_sampling sampling)
{
    const struct dpf_sampling_choice *c = dpf_sampling_choices;
    while (c->name && c->sampling != sampling)
        c++;
    return c->name;
}

/* ----------------------------------------------------------------------------- setup */

static void shuffle(uint32_t *rows, int64_t count, const char *purpose, uint64_t seed,
                    uint64_t index)
{
    struct dpf_seeded r;
    dpf_seeded_init(&r, purpose, seed, index);
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)dpf_seeded_below(&r, (uint64_t)i + 1);
        uint32_t row = rows[i];
        rows[i] = rows[j];
        rows[j] = row;
    }
}

/* Lots, keys and noise from the operating system, or from the plan's seed. */
static bool draws_securely(const struct dpf_training_plan *plan)
{
    return plan->noise.multiplier > 0 && !plan->noise.insecure;
}

enum dpf_status dpf_training_init(struct dpf_training *t,
                                  const struct dpf_training_plan *plan,
                                  struct dpf_engine *engine,
                                  struct dpf_optimiser *optimiser,
                                  const struct dpf_dataset *data, struct dpf_error *e)
{
    int64_t rows = plan->rows ? plan->row_count : (int64_t)data->rows;
    *t = (struct dpf_training){.plan = *plan,
                               .engine = engine,
                               .optimiser = optimiser,
                               .data = data,
                               .best_loss = INFINITY};
    t->held_count = (int64_t)((double)rows * plan->validation);
    t->train_count = rows - t->held_count;
    if (t->train_count < 1)
        return dpf_fail(e, DPF_USAGE, "there are no examples to train on");
    if (plan->validation > 0 && t->held_count < 1)
        return dpf_fail(e, DPF_USAGE, "of %lld examples, none is left for validation",
                        (long long)rows);
    t->population = plan->noise.population ? plan->noise.population : t->train_count;
    t->steps_per_epoch = (t->population + plan->lot - 1) / plan->lot;
    if (plan->sampling != DPF_SAMPLE_POISSON && t->population != t->train_count)
        return dpf_fail(e, DPF_USAGE,
                        "a public number of records in place of the true one needs "
                        "'--sampling poisson'");
    if (plan->noise.multiplier > 0 &&
        (t->held_count || plan->patience || plan->rule == DPF_CLIP_NONE))
        return dpf_fail(
            e, DPF_PRIVACY,
            "noise needs clipped gradients and no validation: records that are "
            "held back would be used without noise");
    enum dpf_status status = dpf_random_init(&t->random, e);
    if (status != DPF_OK)
        return status;
    uint32_t *all = dpf_calloc((size_t)rows, sizeof *all);
    t->order = dpf_calloc((size_t)t->train_count, sizeof *t->order);
    t->lot = dpf_calloc((size_t)t->train_count, sizeof *t->lot);
    t->keys = dpf_calloc((size_t)t->train_count, sizeof *t->keys);
    t->best = t->held_count ? dpf_calloc(engine->model->span, sizeof *t->best) : NULL;
    t->train = all;
    uint64_t watched = plan->watched ? plan->watched->rows : 0;
    t->watched = watched ? dpf_calloc(watched, sizeof *t->watched) : NULL;
    bool seeded = plan->rule != DPF_CLIP_NONE && !draws_securely(plan);
    t->identities = seeded ? dpf_calloc(data->rows, sizeof *t->identities) : NULL;
    if (!all || !t->order || !t->lot || !t->keys || (t->held_count && !t->best) ||
        (watched && !t->watched) || (seeded && !t->identities) ||
        (seeded && !dpf_dataset_identities(data, t->identities))) {
        dpf_training_release(t);
        return dpf_fail_memory(e);
    }
    for (int64_t i = 0; i < rows; i++)
        all[i] = plan->rows ? plan->rows[i] : (uint32_t)i;
    if (t->held_count)
        shuffle(all, rows, "validation", plan->seed, 0);
    t->held = all + t->train_count;
    for (uint32_t i = 0; i < watched; i++)
        t->watched[i] = i;
    return DPF_OK;
}

void dpf_training_release(struct dpf_training *t)
{
    free(t->train);
    free(t->order);
    free(t->lot);
    free(t->keys);
    free(t->identities);
    free(t->watched);
    free(t->best);
    free(t->history);
    free(t->losses);
    free(t->moments);
    dpf_random_release(&t->random);
    *t = (struct dpf_training){0};
}

bool dpf_training_done(const struct dpf_training *t)
{
    bool spent = t->plan.noise.max_steps &&
                 t->optimiser->step >= (uint64_t)t->plan.noise.max_steps;
    return t->stopped || spent || t->epoch >= t->plan.epochs;
}

/* ----------------------------------------------------------------------------- noise */

/* From `first` in epoch 0 to `last` in the last one. */
static double between(double first, double last, int64_t epoch, int64_t epochs)
{
    double share = epochs > 1 ? (double)epoch / (double)(epochs - 1) : 0;
    return first + (last - first) * share;
}

double dpf_training_multiplier(const struct dpf_training_plan *plan, int64_t epoch)
{
    const struct dpf_noise_plan *n = &plan->noise;
    return n->final_multiplier > 0
               ? between(n->multiplier, n->final_multiplier, epoch, plan->epochs)
               : n->multiplier;
}

double dpf_training_clip(const struct dpf_training_plan *plan, int64_t epoch)
{
    return plan->noise.final_clip_l2 > 0
               ? between(plan->clip_l2, plan->noise.final_clip_l2, epoch, plan->epochs)
               : plan->clip_l2;
}

double dpf_training_sampling_rate(const struct dpf_training *t)
{
    return fmin((double)t->plan.lot / (double)t->population, 1);
}

double dpf_training_sensitivity(const struct dpf_training *t, int64_t epoch)
{
    double parts = t->plan.rule == DPF_CLIP_LAYER
                       ? sqrt((double)dpf_model_layers(t->engine->model))
                       : 1;
    return dpf_training_clip(&t->plan, epoch) * parts *
           (1 + dpf_lot_sum_margin(t->engine->model->span));
}

static enum dpf_status prepare_noise(struct dpf_training *t, struct dpf_error *e)
{
    if (t->plan.noise.multiplier == 0 || t->mechanism_epoch == t->epoch + 1)
        return DPF_OK;
    struct dpf_gaussian_query query = {
        .sensitivity_l2 = dpf_training_sensitivity(t, t->epoch),
        .values = t->engine->model->span,
        .parts = 1,
        .least_step = dpf_lot_sum_step(dpf_training_clip(&t->plan, t->epoch))};
    t->mechanism_epoch = t->epoch + 1;
    return dpf_gaussian_init(&t->mechanism, &query,
                             dpf_training_multiplier(&t->plan, t->epoch), e);
}

/* ------------------------------------------------------------------------------ lots */

/* Each example with probability q exactly, independently. With noise the draws are the
 * operating system's: the guarantee counts on nobody knowing who was in a lot. */
static int64_t poisson_lot(struct dpf_training *t, const uint32_t **rows)
{
    enum { WORDS = 64 };
    bool secure = draws_securely(&t->plan);
    struct dpf_random seeded, *r = secure ? &t->random : &seeded;
    double q = dpf_training_sampling_rate(t);
    uint64_t chosen[WORDS];
    int64_t count = 0;
    if (!secure)
        dpf_random_init_insecure(&seeded, "lot", t->plan.seed, t->optimiser->step);
    for (int64_t i = 0; i < t->train_count; i++) {
        if (i % (64 * WORDS) == 0)
            dpf_bernoulli_words(r, q, chosen, WORDS);
        if (chosen[i / 64 % WORDS] >> (i % 64) & 1)
            t->lot[count++] = t->train[i];
    }
    *rows = t->lot;
    return count;
}

/* The rows of the step that comes next. */
static int64_t choose_lot(struct dpf_training *t, const uint32_t **rows)
{
    if (t->plan.sampling != DPF_SAMPLE_POISSON) {
        if (t->ordered != t->epoch + 1) {
            t->ordered = t->epoch + 1;
            memcpy(t->order, t->train, (size_t)t->train_count * sizeof *t->order);
            if (t->plan.sampling == DPF_SAMPLE_SHUFFLE)
                shuffle(t->order, t->train_count, "order", t->plan.seed,
                        (uint64_t)t->epoch);
        }
        int64_t first = t->step * t->plan.lot, left = t->train_count - first;
        *rows = t->order + first;
        return left < t->plan.lot ? left : t->plan.lot;
    }
    return poisson_lot(t, rows);
}

/* Targets of an example; an energy model has none. */
static double positions_of(const struct dpf_dataset *data)
{
    return data->positions ? (double)data->positions : 1;
}

/* Mean loss and accuracy of examples that are not learned from. */
static enum dpf_status score(struct dpf_training *t, const struct dpf_dataset *data,
                             const uint32_t *rows, int64_t count, double *loss,
                             double *accuracy, struct dpf_error *e)
{
    struct dpf_lot_result result = {0};
    /* records with classes have no coefficients: the loss that these expand will do */
    const struct dpf_loss *by =
        data->labels ? dpf_loss_for_labels(t->plan.loss) : t->plan.loss;
    struct dpf_lot lot = {
        .data = data, .rows = rows, .count = count, .loss = by, .energy = t->plan.energy};
    struct dpf_lot_values want = {.node = t->engine->model->output, .result = &result};
    enum dpf_status status = dpf_engine_values(t->engine, &lot, &want, e);
    *loss = result.loss / (double)count;
    *accuracy = (double)result.correct / (double)count / positions_of(data);
    return status;
}

static enum dpf_status validate(struct dpf_training *t, struct dpf_epoch_report *report,
                                struct dpf_error *e)
{
    enum dpf_status status =
        score(t, t->data, t->held, t->held_count, &report->validation_loss,
              &report->validation_accuracy, e);
    if (status == DPF_OK && report->validation_loss < t->best_loss) {
        t->best_loss = report->validation_loss;
        t->best_epoch = t->epoch + 1;
        dpf_engine_get(t->engine, t->best);
    }
    return status;
}

static enum dpf_status end_epoch(struct dpf_training *t,
                                 const struct dpf_epoch_report **report,
                                 struct dpf_error *e)
{
    if (!dpf_grow(&t->history, &t->history_capacity, t->history_count + 1,
                  sizeof *t->history))
        return dpf_fail_memory(e);
    struct dpf_epoch_report *r = &t->history[t->history_count];
    double seen = t->seen > 0 ? (double)t->seen : 1;
    *r = (struct dpf_epoch_report){
        .epoch = t->epoch + 1,
        .loss = t->loss_sum / seen,
        .accuracy = (double)t->correct / seen / positions_of(t->data),
        .validation_loss = NAN,
        .validation_accuracy = NAN,
        .watched_loss = NAN,
        .watched_accuracy = NAN,
        .clipped = (double)t->clipped / seen,
        .rate = dpf_optimiser_rate(t->optimiser),
        .examples_per_second = (double)t->timed / fmax(t->seconds, 1e-9)};
    enum dpf_status status = t->held_count ? validate(t, r, e) : DPF_OK;
    if (status == DPF_OK && t->watched)
        status = score(t, t->plan.watched, t->watched, (int64_t)t->plan.watched->rows,
                       &r->watched_loss, &r->watched_accuracy, e);
    if (status != DPF_OK)
        return status;
    t->history_count++;
    t->epoch++;
    t->step = 0;
    t->loss_sum = 0;
    t->correct = t->seen = t->clipped = t->timed = 0;
    t->seconds = 0;
    t->stopped = t->plan.patience > 0 && t->epoch - t->best_epoch >= t->plan.patience;
    *report = r;
    return DPF_OK;
}

/* Keys of a lot whose gradients are clipped: see the claim. */
static const uint64_t *draw_keys(struct dpf_training *t, const uint32_t *rows,
                                 int64_t count)
{
    uint64_t stream = dpf_mask_key(t->plan.seed, t->optimiser->step);
    if (t->plan.rule == DPF_CLIP_NONE)
        return NULL; /* the engine's: by place */
    if (draws_securely(&t->plan))
        dpf_random_bytes(&t->random, t->keys, (size_t)count * sizeof *t->keys);
    else
        for (int64_t i = 0; i < count; i++)
            t->keys[i] = dpf_mask_key(stream, t->identities[rows[i]]);
    return t->keys;
}

enum dpf_status dpf_training_step(struct dpf_training *t,
                                  const struct dpf_epoch_report **report,
                                  struct dpf_error *e)
{
    const uint32_t *rows;
    struct dpf_lot_result result = {0};
    struct dpf_lot lot = {.data = t->data,
                          .loss = t->plan.loss,
                          .energy = t->plan.energy,
                          .rule = t->plan.rule,
                          .clip_l2 = dpf_training_clip(&t->plan, t->epoch),
                          .expected = t->plan.lot,
                          .seed = t->plan.seed,
                          .step = t->optimiser->step};
    double began = dpf_clock_seconds();
    *report = NULL;
    if (!dpf_grow(&t->losses, &t->losses_capacity, t->losses_count + 1,
                  sizeof *t->losses))
        return dpf_fail_memory(e);
    lot.count = choose_lot(t, &rows);
    lot.rows = rows;
    lot.keys = draw_keys(t, rows, lot.count);
    enum dpf_status status = prepare_noise(t, e);
    if (status == DPF_OK)
        status = dpf_engine_gradients(t->engine, &lot, &result, e);
    /* With noise, a loss without bounds is an example's own affair: its gradient was left
     * out, and to stop here would tell of it. */
    bool noisy = t->plan.noise.multiplier > 0;
    if (status == DPF_OK && !noisy && !isfinite(result.loss))
        status =
            dpf_fail(e, DPF_SYSTEM,
                     "the loss is not a finite number: try a lower '--rate', or look "
                     "for values that are not finite");
    /* A Poisson lot is divided by its expected size: the real one is private. */
    int64_t expected = t->plan.lot < t->population ? t->plan.lot : t->population;
    double divisor =
        (double)(t->plan.sampling == DPF_SAMPLE_POISSON ? expected : lot.count);
    struct dpf_lot_noise noise = {.mechanism = &t->mechanism,
                                  .insecure = t->plan.noise.insecure,
                                  .seed = t->plan.seed,
                                  .step = t->optimiser->step};
    if (status == DPF_OK)
        status =
            dpf_engine_update(t->engine, t->optimiser, divisor, noisy ? &noise : NULL, e);
    if (status != DPF_OK)
        return dpf_error_prefix(e, status, "step %lld of epoch %lld",
                                (long long)t->step + 1, (long long)t->epoch + 1);
    t->losses[t->losses_count++] = (float)(result.loss / fmax((double)lot.count, 1));
    t->loss_sum += result.loss;
    t->correct += result.correct;
    t->clipped += result.clipped;
    t->seen += lot.count;
    t->timed += lot.count;
    t->seconds += dpf_clock_seconds() - began;
    t->step++;
    return t->step == t->steps_per_epoch ? end_epoch(t, report, e) : DPF_OK;
}

void dpf_training_result(struct dpf_training *t, float *parameters)
{
    if (t->plan.patience > 0 && t->best_epoch > 0)
        memcpy(parameters, t->best, t->engine->model->span * sizeof *parameters);
    else
        dpf_engine_get(t->engine, parameters);
}

/* ----------------------------------------------------------------------------- state */

static void encode_vector(struct dpf_encoder *enc, const char *key, float *values,
                          size_t count)
{
    struct dpf_tensor view;
    struct dpf_shape shape = {.rank = 1, .dim = {count}};
    dpf_encode_key(enc, key);
    if (dpf_tensor_view(&view, DPF_F32, &shape, values, NULL) != DPF_OK)
        enc->failed = true;
    dpf_encode_tensor(enc, &view);
}

/* The encoder only refers to them, so they have to stay. */
static void encode_moments(struct dpf_encoder *enc, struct dpf_training *t)
{
    const struct dpf_optimiser *o = t->optimiser;
    if (!t->moments)
        t->moments = dpf_calloc(2 * o->count + 1, sizeof *t->moments);
    if (!t->moments) {
        enc->failed = true;
        return;
    }
    dpf_optimiser_get(o, t->moments, t->moments + o->count);
    encode_vector(enc, "first", t->moments, o->count);
    encode_vector(enc, "second", t->moments + o->count, o->count);
}

static void encode_history(struct dpf_encoder *enc, const struct dpf_training *t)
{
    dpf_encode_key(enc, "history");
    msgpack_pack_array(&enc->packer, t->history_count);
    for (size_t i = 0; i < t->history_count; i++) {
        const struct dpf_epoch_report *r = &t->history[i];
        msgpack_pack_array(&enc->packer, 8);
        dpf_encode_real(enc, r->loss);
        dpf_encode_real(enc, r->accuracy);
        dpf_encode_real(enc, r->validation_loss);
        dpf_encode_real(enc, r->validation_accuracy);
        dpf_encode_real(enc, r->watched_loss);
        dpf_encode_real(enc, r->watched_accuracy);
        dpf_encode_real(enc, r->clipped);
        dpf_encode_real(enc, r->rate);
    }
}

void dpf_training_encode(struct dpf_encoder *enc, struct dpf_training *t)
{
    size_t span = t->engine->model->span;
    dpf_encode_key(enc, "training");
    msgpack_pack_map(&enc->packer, t->best ? 16 : 15);
    dpf_encode_key(enc, "seed");
    dpf_encode_uint(enc, t->plan.seed);
    dpf_encode_key(enc, "epoch");
    dpf_encode_uint(enc, (uint64_t)t->epoch);
    dpf_encode_key(enc, "step");
    dpf_encode_uint(enc, (uint64_t)t->step);
    dpf_encode_key(enc, "steps");
    dpf_encode_uint(enc, t->optimiser->step);
    dpf_encode_key(enc, "loss");
    dpf_encode_real(enc, t->loss_sum);
    dpf_encode_key(enc, "correct");
    dpf_encode_uint(enc, (uint64_t)t->correct);
    dpf_encode_key(enc, "seen");
    dpf_encode_uint(enc, (uint64_t)t->seen);
    dpf_encode_key(enc, "clipped");
    dpf_encode_uint(enc, (uint64_t)t->clipped);
    dpf_encode_key(enc, "best_loss");
    dpf_encode_real(enc, t->best_loss);
    dpf_encode_key(enc, "best_epoch");
    dpf_encode_uint(enc, (uint64_t)t->best_epoch);
    dpf_encode_key(enc, "stopped");
    dpf_encode_uint(enc, t->stopped);
    encode_history(enc, t);
    encode_vector(enc, "losses", t->losses, t->losses_count);
    encode_moments(enc, t);
    if (t->best)
        encode_vector(enc, "best", t->best, span);
}

static bool decode_count(const msgpack_object *o, const char *key, int64_t *out)
{
    uint64_t value;
    const msgpack_object *v = dpf_object_get(o, key);
    if (!v || !dpf_object_uint(v, &value) || value > INT64_MAX)
        return false;
    *out = (int64_t)value;
    return true;
}

static bool decode_vector(const msgpack_object *o, const char *key, float *to,
                          size_t count)
{
    struct dpf_tensor t;
    const msgpack_object *v = dpf_object_get(o, key);
    if (!v || dpf_object_tensor(v, &t, NULL) != DPF_OK)
        return false;
    bool fits = t.dtype == DPF_F32 && dpf_shape_elements(&t.shape) == count;
    if (fits)
        memcpy(to, t.data, count * sizeof *to);
    dpf_tensor_release(&t);
    return fits;
}

static bool decode_moments(struct dpf_optimiser *o, const msgpack_object *object)
{
    float *first = dpf_calloc(2 * o->count + 1, sizeof *first);
    bool good = first && decode_vector(object, "first", first, o->count) &&
                decode_vector(object, "second", first + o->count, o->count);
    if (good)
        dpf_optimiser_put(o, first, first + o->count);
    free(first);
    return good;
}

static bool decode_losses(struct dpf_training *t, const msgpack_object *o)
{
    int64_t steps;
    struct dpf_tensor said;
    const msgpack_object *v = dpf_object_get(o, "losses");
    if (!decode_count(o, "steps", &steps) || !v ||
        dpf_object_tensor(v, &said, NULL) != DPF_OK)
        return false;
    uint64_t have = dpf_shape_elements(&said.shape);
    dpf_tensor_release(&said);
    if (have != (uint64_t)steps || /* before anything is allocated for them */
        !dpf_grow(&t->losses, &t->losses_capacity, (size_t)steps + 1, sizeof *t->losses))
        return false;
    t->losses_count = (size_t)steps;
    return decode_vector(o, "losses", t->losses, t->losses_count);
}

static bool decode_history(struct dpf_training *t, const msgpack_object *o)
{
    const msgpack_object *all = dpf_object_get(o, "history");
    if (!all || all->type != MSGPACK_OBJECT_ARRAY || all->via.array.size > 1 << 20 ||
        !dpf_grow(&t->history, &t->history_capacity, all->via.array.size + 1,
                  sizeof *t->history))
        return false;
    for (uint32_t i = 0; i < all->via.array.size; i++) {
        const msgpack_object *one = &all->via.array.ptr[i];
        struct dpf_epoch_report *r = &t->history[i];
        double *to[] = {&r->loss,
                        &r->accuracy,
                        &r->validation_loss,
                        &r->validation_accuracy,
                        &r->watched_loss,
                        &r->watched_accuracy,
                        &r->clipped,
                        &r->rate};
        if (one->type != MSGPACK_OBJECT_ARRAY || one->via.array.size != 8)
            return false;
        for (int j = 0; j < 8; j++)
            if (!dpf_object_real(&one->via.array.ptr[j], to[j]))
                return false;
        r->epoch = (int64_t)i + 1;
        r->examples_per_second = 0;
    }
    t->history_count = all->via.array.size;
    return true;
}

enum dpf_status dpf_training_decode(struct dpf_training *t, const msgpack_object *o,
                                    struct dpf_error *e)
{
    size_t span = t->engine->model->span;
    int64_t seed, steps, stopped;
    const msgpack_object *loss = dpf_object_get(o, "loss");
    const msgpack_object *best_loss = dpf_object_get(o, "best_loss");
    bool good =
        decode_count(o, "seed", &seed) && decode_count(o, "steps", &steps) &&
        decode_count(o, "epoch", &t->epoch) && decode_count(o, "step", &t->step) &&
        decode_count(o, "correct", &t->correct) && decode_count(o, "seen", &t->seen) &&
        decode_count(o, "clipped", &t->clipped) &&
        decode_count(o, "best_epoch", &t->best_epoch) &&
        decode_count(o, "stopped", &stopped) && loss && best_loss &&
        dpf_object_real(loss, &t->loss_sum) &&
        dpf_object_real(best_loss, &t->best_loss) && decode_history(t, o) &&
        decode_losses(t, o) && decode_moments(t->optimiser, o) &&
        (!t->best || decode_vector(o, "best", t->best, span));
    if (!good || t->step >= t->steps_per_epoch || t->epoch > t->plan.epochs ||
        t->best_epoch > t->epoch || (int64_t)t->history_count != t->epoch ||
        steps != t->epoch * t->steps_per_epoch + t->step)
        return dpf_fail(e, DPF_BAD_STREAM, "the state of training does not fit together");
    t->plan.seed = (uint64_t)seed;
    t->optimiser->step = (uint64_t)steps;
    t->stopped = stopped != 0;
    if (t->held_count) { /* the same examples are held back again */
        for (uint32_t i = 0; i < t->data->rows; i++)
            t->train[i] = i;
        shuffle(t->train, (int64_t)t->data->rows, "validation", t->plan.seed, 0);
    }
    t->ordered = 0;
    return DPF_OK;
}
