/* Training: a run that was put aside ends with the bits of one that was not; lots are
 * what sampling promises; optimisers and first weights by their definitions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/initialise.h"
#include "nn/training.h"
#include "nn/weights.h"
#include "random/seeded.h"
#include "stream_fixture.h"

#include "base/banned.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
/* No more than one in a million good programs would be beyond. */
#define SIGMAS 4.9

/* ---- a training and all that it borrows ---- */

struct rig {
    struct dpf_model model;
    struct dpf_header header;
    struct dpf_dataset data;
    struct dpf_engine engine;
    struct dpf_optimiser optimiser;
    struct dpf_training training;
};

static void parse(struct dpf_model *m, const char *text)
{
    CU_ASSERT_FATAL(dpf_model_parse(m, text, strlen(text), "net", NULL) == DPF_OK);
}

static struct dpf_batch begin_batch(struct rig *g, uint64_t rows, uint64_t features,
                                    uint64_t targets, enum dpf_dtype target)
{
    struct dpf_shape x = {.rank = 1, .dim = {features}};
    struct dpf_shape y = {.rank = 1, .dim = {targets}};
    struct dpf_batch b;
    CU_ASSERT_FATAL(dpf_header_add_field(&g->header, "x", DPF_F32, &x) != NULL);
    CU_ASSERT_FATAL(dpf_header_add_field(&g->header, "y", target, &y) != NULL);
    CU_ASSERT_FATAL(dpf_batch_init(&b, &g->header, rows, NULL) == DPF_OK);
    memset(b.tensor[0].data, 0, b.tensor[0].bytes);
    return b;
}

static void take_batch(struct rig *g, struct dpf_batch *b, const struct dpf_loss *loss)
{
    struct dpf_dataset_need need = {&g->model, "x", "y", loss};
    CU_ASSERT_FATAL(dpf_dataset_init(&g->data, &g->header, &need, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_dataset_add(&g->data, &g->header, b, &need, NULL) == DPF_OK);
    dpf_batch_release(b);
}

static void start(struct rig *g, struct dpf_optimiser o,
                  const struct dpf_training_plan *plan, int threads)
{
    struct dpf_error e = {0};
    struct dpf_engine_setup setup = {.model = &g->model,
                                     .kernels = dpf_kernels_cpu(),
                                     .threads = threads,
                                     .microbatch = 3,
                                     .training = true,
                                     .clipping = true};
    CU_ASSERT_FATAL(dpf_engine_init(&g->engine, &setup, &e) == DPF_OK);
    float *parameters = dpf_calloc(g->model.span, sizeof *parameters);
    CU_ASSERT_FATAL(parameters != NULL);
    CU_ASSERT(dpf_initialise(&g->model, "he-normal", 4, parameters));
    dpf_engine_put(&g->engine, parameters);
    free(parameters);
    g->optimiser = o;
    CU_ASSERT_FATAL(dpf_optimiser_init(&g->optimiser, &dpf_kernels_ref, NULL,
                                       g->model.span, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_training_init(&g->training, plan, &g->engine, &g->optimiser,
                                      &g->data, &e) == DPF_OK);
}

static void end(struct rig *g)
{
    dpf_training_release(&g->training);
    dpf_engine_release(&g->engine);
    dpf_optimiser_release(&g->optimiser);
    dpf_dataset_release(&g->data);
    dpf_header_release(&g->header);
    dpf_model_release(&g->model);
}

/* Take `steps` steps, or all that are left. How many it were. */
static int64_t run(struct rig *g, int64_t steps)
{
    const struct dpf_epoch_report *report;
    int64_t done = 0;
    struct dpf_error e = {0};
    while (done < steps && !dpf_training_done(&g->training)) {
        CU_ASSERT_FATAL(dpf_training_step(&g->training, &report, &e) == DPF_OK);
        done++;
    }
    return done;
}

/* Few examples, a third of them with labels of chance: what there is to learn is learned
 * soon, then the rest by heart, and the loss of validation rises. */
enum { ROWS = 43, LOT = 8 };

static void begin(struct rig *g, struct dpf_optimiser o,
                  const struct dpf_training_plan *plan)
{
    struct dpf_seeded r;
    *g = (struct rig){0};
    parse(&g->model, "input x 6\na = dense x out=16\nb = relu a\nc = dropout b rate=0.2\n"
                     "y = dense c out=3\noutput y\n");
    struct dpf_batch b = begin_batch(g, ROWS, 6, 1, DPF_I32);
    dpf_seeded_init(&r, "test training", 1, 0);
    for (int i = 0; i < ROWS * 6; i++)
        ((float *)b.tensor[0].data)[i] = (float)dpf_seeded_normal(&r);
    for (int i = 0; i < ROWS; i++) {
        float sign = ((float *)b.tensor[0].data)[i * 6];
        int32_t chance = (int32_t)dpf_seeded_below(&r, 3);
        ((int32_t *)b.tensor[1].data)[i] = i % 3 == 0 ? chance : 1 + (sign > 0);
    }
    take_batch(g, &b, plan->loss);
    start(g, o, plan, 2);
}

/* of sgd, momentum, adam, adadelta, nesterov */
static const double rates[] = {0.3, 0.1, 0.03, 20, 0.1};

static struct dpf_training_plan plan_of(enum dpf_sampling sampling, double validation,
                                        int64_t patience)
{
    return (struct dpf_training_plan){.epochs = patience ? 60 : 3,
                                      .lot = LOT,
                                      .sampling = sampling,
                                      .loss = dpf_loss_find("cross-entropy"),
                                      .rule =
                                          validation > 0 ? DPF_CLIP_FLAT : DPF_CLIP_NONE,
                                      .clip_l2 = 1,
                                      .seed = 77,
                                      .validation = validation,
                                      .patience = patience};
}

/* ---- putting aside and taking up ---- */

/* A checkpoint, as a frame of a stream. */
static void put_aside(struct rig *g, struct maker *m)
{
    struct dpf_safetensors weights = {0};
    float *parameters = dpf_calloc(g->model.span, sizeof *parameters);
    CU_ASSERT_FATAL(parameters != NULL);
    dpf_engine_get(&g->engine, parameters);
    CU_ASSERT_FATAL(dpf_weights_export(&g->model, parameters, &weights, NULL) == DPF_OK);
    dpf_weights_encode(&m->enc, &g->model, &weights, 1);
    dpf_training_encode(&m->enc, &g->training);
    maker_frame(m);
    dpf_safetensors_release(&weights);
    free(parameters);
}

static const msgpack_object *read_frame(const struct maker *m, struct dpf_decoder *d)
{
    struct dpf_error e = {0};
    struct dpf_frame frame = {.data = m->out.data, .size = m->out.size};
    CU_ASSERT_FATAL(dpf_decoder_read(d, &frame, &e) == DPF_OK);
    const msgpack_object *state = dpf_object_get(&d->root, "training");
    CU_ASSERT_FATAL(state != NULL);
    return state;
}

static void take_up(struct rig *g, const struct maker *m)
{
    struct dpf_decoder d = {0};
    struct dpf_model model;
    struct dpf_error e = {0};
    float *parameters;
    const msgpack_object *state = read_frame(m, &d);
    CU_ASSERT_FATAL(dpf_weights_decode(&d.root, &model, &parameters, &e) == DPF_OK);
    dpf_engine_put(&g->engine, parameters);
    CU_ASSERT(dpf_training_decode(&g->training, state, &e) == DPF_OK);
    free(parameters);
    dpf_model_release(&model);
    dpf_decoder_release(&d);
}

static bool same_reports(const struct dpf_training *a, const struct dpf_training *b)
{
    bool same = a->history_count == b->history_count;
    for (size_t i = 0; same && i < a->history_count; i++) {
        struct dpf_epoch_report left = a->history[i], right = b->history[i];
        left.examples_per_second = right.examples_per_second = 0; /* the only one */
        same = left.epoch == right.epoch &&
               memcmp(&left.loss, &right.loss, sizeof left - sizeof left.epoch) == 0;
    }
    return same;
}

/* Everything that a training is and gives, bit for bit. */
static bool same_training(struct rig *a, struct rig *b)
{
    size_t span = a->model.span, bytes = span * sizeof(float);
    struct dpf_training *s = &a->training, *t = &b->training;
    float *all = dpf_calloc(4 * span, sizeof *all);
    CU_ASSERT_FATAL(all != NULL);
    dpf_engine_get(&a->engine, all);
    dpf_engine_get(&b->engine, all + span);
    dpf_training_result(s, all + 2 * span);
    dpf_training_result(t, all + 3 * span);
    bool same = memcmp(all, all + span, bytes) == 0 &&
                memcmp(all + 2 * span, all + 3 * span, bytes) == 0 &&
                memcmp(a->optimiser.first, b->optimiser.first, bytes) == 0 &&
                memcmp(a->optimiser.second, b->optimiser.second, bytes) == 0 &&
                a->optimiser.step == b->optimiser.step && s->epoch == t->epoch &&
                s->step == t->step && s->stopped == t->stopped &&
                s->best_epoch == t->best_epoch && s->losses_count == t->losses_count &&
                memcmp(s->losses, t->losses, s->losses_count * sizeof *s->losses) == 0 &&
                s->plan.seed == t->plan.seed && same_reports(s, t);
    free(all);
    return same;
}

/* Interrupt after k steps, go on in another training, compare at the end. */
static void check_interrupted(struct rig *whole, struct dpf_optimiser o,
                              const struct dpf_training_plan *plan, int64_t k)
{
    struct rig first, second;
    struct maker m = {0};
    struct dpf_training_plan other = *plan;
    other.seed += 1000; /* the state brings its own */
    begin(&first, o, plan);
    CU_ASSERT(run(&first, k) == k);
    put_aside(&first, &m);
    begin(&second, o, &other);
    run(&second, k % 2 ? 3 : 0); /* fresh or used: nothing of it may stay */
    take_up(&second, &m);
    CU_ASSERT(second.training.epoch == first.training.epoch &&
              second.training.step == first.training.step);
    run(&first, INT64_MAX);
    run(&second, INT64_MAX);
    bool same = same_training(whole, &second) && same_training(whole, &first);
    if (!same)
        printf("    optimiser %s, sampling %d, validation %g, patience %lld, step %lld\n",
               o.kind->name, (int)plan->sampling, plan->validation,
               (long long)plan->patience, (long long)k);
    CU_ASSERT(same);
    maker_release(&m);
    end(&first);
    end(&second);
}

static void check_resume(const struct dpf_step_kind *kind,
                         const struct dpf_training_plan *plan, bool must_stop)
{
    struct rig whole;
    struct dpf_optimiser o = dpf_optimiser_defaults(kind, rates[kind - dpf_step_kinds]);
    o.schedule = dpf_schedule_find("cosine");
    o.schedule_steps = 12;
    o.final_rate = rates[kind - dpf_step_kinds] / 2;
    begin(&whole, o, plan);
    int64_t total = run(&whole, INT64_MAX), epoch = whole.training.steps_per_epoch;
    CU_ASSERT(epoch > 3 && total % epoch == 0 && total >= 2 * epoch);
    CU_ASSERT(whole.training.stopped == must_stop);
    int64_t moments[] = {0,         1,         epoch / 2, epoch - 1, epoch,
                         epoch + 1, total / 2, total - 1, total};
    for (size_t i = 0; i < COUNT(moments); i++)
        check_interrupted(&whole, o, plan, moments[i]);
    end(&whole);
}

static void check_resume_all(enum dpf_sampling sampling)
{
    struct dpf_training_plan plain = plan_of(sampling, 0, 0);
    struct dpf_training_plan held = plan_of(sampling, 0.25, 0);
    struct dpf_training_plan early = plan_of(sampling, 0.25, 2);
    for (const struct dpf_step_kind *kind = dpf_step_kinds; kind->name; kind++) {
        check_resume(kind, &plain, false);
        check_resume(kind, &held, false);
        check_resume(kind, &early, true);
    }
}

static void test_resume_shuffle(void)
{
    check_resume_all(DPF_SAMPLE_SHUFFLE);
}

static void test_resume_poisson(void)
{
    check_resume_all(DPF_SAMPLE_POISSON);
}

static void test_resume_sequence(void)
{
    struct dpf_training_plan plan = plan_of(DPF_SAMPLE_SEQUENCE, 0.25, 0);
    check_resume(dpf_step_kind_find("adam"), &plan, false);
}

/* ---- damaged states ---- */

/* A state of two epochs and a half, with everything in it. */
struct state {
    struct rig rig;
    struct maker maker;
    struct dpf_decoder decoder;
    msgpack_object map; /* a copy whose entries may be changed */
    msgpack_object_kv pair[16];
};

static void begin_state(struct state *s)
{
    struct dpf_training_plan plan = plan_of(DPF_SAMPLE_SHUFFLE, 0.25, 0);
    *s = (struct state){0};
    begin(&s->rig, dpf_optimiser_defaults(dpf_step_kind_find("adam"), 0.01), &plan);
    run(&s->rig, 2 * s->rig.training.steps_per_epoch + 2);
    put_aside(&s->rig, &s->maker);
    s->map = *read_frame(&s->maker, &s->decoder);
    CU_ASSERT_FATAL(s->map.type == MSGPACK_OBJECT_MAP && s->map.via.map.size == 16);
    memcpy(s->pair, s->map.via.map.ptr, sizeof s->pair);
    s->map.via.map.ptr = s->pair;
}

static void end_state(struct state *s)
{
    dpf_decoder_release(&s->decoder);
    maker_release(&s->maker);
    end(&s->rig);
}

static msgpack_object *value(struct state *s, const char *key)
{
    for (int i = 0; i < 16; i++)
        if (dpf_object_is_string(&s->pair[i].key, key))
            return &s->pair[i].val;
    CU_FAIL_FATAL("no such key");
    return NULL;
}

static bool refuses(struct state *s)
{
    struct dpf_error e = {0};
    enum dpf_status status = dpf_training_decode(&s->rig.training, &s->map, &e);
    return refused(status, DPF_BAD_STREAM, &e,
                   "the state of training does not fit together");
}

/* With another value in place of one. */
static bool refuses_with(struct state *s, const char *key, msgpack_object other)
{
    msgpack_object *at = value(s, key), old = *at;
    *at = other;
    bool good = refuses(s);
    if (!good)
        printf("    with another '%s'\n", key);
    *at = old;
    return good;
}

static msgpack_object whole_number(uint64_t n)
{
    return (msgpack_object){.type = MSGPACK_OBJECT_POSITIVE_INTEGER, .via = {.u64 = n}};
}

static const char *const state_keys[] = {"seed",      "epoch",      "step",    "steps",
                                         "loss",      "correct",    "seen",    "clipped",
                                         "best_loss", "best_epoch", "stopped", "history",
                                         "losses",    "first",      "second",  "best"};

static void test_missing_keys(void)
{
    struct state s;
    struct dpf_error e = {0};
    begin_state(&s);
    CU_ASSERT(dpf_training_decode(&s.rig.training, &s.map, &e) == DPF_OK);
    msgpack_object word = {.type = MSGPACK_OBJECT_STR, .via = {.str = {4, "word"}}};
    msgpack_object minus = {.type = MSGPACK_OBJECT_NEGATIVE_INTEGER, .via = {.i64 = -1}};
    for (size_t k = 0; k < COUNT(state_keys); k++) {
        msgpack_object_kv *at = NULL;
        bool real =
            strcmp(state_keys[k], "loss") == 0 || strcmp(state_keys[k], "best_loss") == 0;
        for (int i = 0; i < 16; i++)
            if (dpf_object_is_string(&s.pair[i].key, state_keys[k]))
                at = &s.pair[i];
        CU_ASSERT_FATAL(at != NULL);
        msgpack_object key = at->key;
        at->key = word;
        CU_ASSERT(refuses(&s));
        at->key = key;
        CU_ASSERT(refuses_with(&s, state_keys[k], word));
        if (!real)
            CU_ASSERT(refuses_with(&s, state_keys[k], minus));
    }
    CU_ASSERT(refused(dpf_training_decode(&s.rig.training, &word, &e), DPF_BAD_STREAM, &e,
                      "does not fit together"));
    CU_ASSERT(dpf_training_decode(&s.rig.training, &s.map, &e) == DPF_OK);
    end_state(&s);
}

static void test_wrong_lengths(void)
{
    struct state s;
    begin_state(&s);
    struct dpf_training *t = &s.rig.training;
    msgpack_object losses = *value(&s, "losses"), first = *value(&s, "first");
    CU_ASSERT(t->losses_count != s.rig.model.span);
    CU_ASSERT(refuses_with(&s, "first", losses));
    CU_ASSERT(refuses_with(&s, "second", losses));
    CU_ASSERT(refuses_with(&s, "best", losses));
    CU_ASSERT(refuses_with(&s, "losses", first));
    CU_ASSERT(refuses_with(&s, "steps", whole_number(t->losses_count + 1)));
    CU_ASSERT(refuses_with(&s, "steps", whole_number(UINT64_MAX)));
    /* an epoch's report with a number too few */
    msgpack_object *epochs = value(&s, "history")->via.array.ptr;
    CU_ASSERT_FATAL(value(&s, "history")->via.array.size == 2);
    epochs[1].via.array.size--;
    CU_ASSERT(refuses(&s));
    epochs[1].via.array.size++;
    CU_ASSERT(refuses_with(&s, "history", epochs[0]));
    end_state(&s);
}

static void test_beyond_the_end(void)
{
    struct state s;
    struct dpf_error e = {0};
    begin_state(&s);
    struct dpf_training *t = &s.rig.training;
    CU_ASSERT(refuses_with(&s, "step", whole_number((uint64_t)t->steps_per_epoch)));
    CU_ASSERT(refuses_with(&s, "step", whole_number(INT64_MAX)));
    CU_ASSERT(refuses_with(&s, "step", whole_number(UINT64_MAX)));
    CU_ASSERT(refuses_with(&s, "epoch", whole_number((uint64_t)t->plan.epochs + 1)));
    CU_ASSERT(refuses_with(&s, "epoch", whole_number(UINT64_MAX)));
    CU_ASSERT(dpf_training_decode(t, &s.map, &e) == DPF_OK);
    end_state(&s);
}

/* Counts that contradict each other are no state of any training. */
static void test_contradictions(void)
{
    struct state s;
    begin_state(&s);
    msgpack_object history = *value(&s, "history"), shorter = history;
    shorter.via.array.size = 1;
    CU_ASSERT(refuses_with(&s, "history", shorter));
    CU_ASSERT(refuses_with(&s, "best_epoch", whole_number(3)));
    CU_ASSERT(refuses_with(&s, "epoch", whole_number(1)));
    CU_ASSERT(refuses_with(&s, "step", whole_number(1)));
    end_state(&s);
}

/* Kilobytes of address space that this process had at most. */
static long peak_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmPeak: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

static int decode_many_steps(void *context)
{
    struct state *s = context;
    long before = peak_kib();
    *value(s, "steps") = whole_number(1 << 28);
    bool good = refuses(s);
    fflush(stdout);
    return !good ? 1 : peak_kib() - before > 64 << 10 ? 2 : 0;
}

/* A count is held against what is there before memory is taken for it. */
static void test_promised_steps(void)
{
    struct state s;
    begin_state(&s);
    CU_ASSERT(in_child(decode_many_steps, &s, 5000) == 0);
    end_state(&s);
}

/* ---- sampling, by its footprints ---- */

/* Example i is the i-th unit vector with target 1, the network a weight for each: from 0,
 * a step moves the weights of the examples in the lot, each to 1 / divisor. */
enum { MARKS = 200 };

static void begin_marks(struct rig *g, const struct dpf_training_plan *plan)
{
    *g = (struct rig){0};
    parse(&g->model, "input x 200\ny = dense x out=1 bias=0\noutput y\n");
    struct dpf_batch b = begin_batch(g, MARKS, MARKS, 1, DPF_F32);
    for (int i = 0; i < MARKS; i++) {
        ((float *)b.tensor[0].data)[i * MARKS + i] = 1;
        ((float *)b.tensor[1].data)[i] = 1;
    }
    take_batch(g, &b, dpf_loss_find("squared"));
    start(g, dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 1), plan, 1);
}

static struct dpf_training_plan marks_plan(enum dpf_sampling sampling, int64_t lot)
{
    return (struct dpf_training_plan){.epochs = 1000,
                                      .lot = lot,
                                      .sampling = sampling,
                                      .loss = dpf_loss_find("squared"),
                                      .seed = 3};
}

/* The rows of the next lot; each must have been divided by `divisor` (0: by their
 * number). */
static int next_lot(struct rig *g, double divisor, int rows[MARKS])
{
    static float w[512];
    const struct dpf_epoch_report *report;
    int count = 0, wrong = 0;
    CU_ASSERT_FATAL(g->model.span <= COUNT(w));
    memset(w, 0, sizeof w);
    dpf_engine_put(&g->engine, w);
    CU_ASSERT_FATAL(dpf_training_step(&g->training, &report, NULL) == DPF_OK);
    dpf_engine_get(&g->engine, w);
    for (int i = 0; i < MARKS; i++)
        if (w[i] != 0)
            rows[count++] = i;
    for (int i = 0; i < count; i++)
        wrong += fabs((double)w[rows[i]] - 1 / (divisor > 0 ? divisor : count)) > 1e-6;
    CU_ASSERT(wrong == 0);
    return count;
}

static void test_poisson(void)
{
    enum { STEPS = 2000, LOT_SIZE = 12 };
    struct rig g;
    struct dpf_training_plan plan = marks_plan(DPF_SAMPLE_POISSON, LOT_SIZE);
    const double q = LOT_SIZE / (double)MARKS, one = MARKS * q * (1 - q);
    int rows[MARKS], seen[MARKS] = {0}, again = 0, before[MARKS] = {0};
    double sum = 0, squares = 0, worst = 0;
    begin_marks(&g, &plan);
    for (int s = 0; s < STEPS; s++) {
        int now[MARKS] = {0}, count = next_lot(&g, LOT_SIZE, rows);
        sum += count;
        squares += (count - LOT_SIZE) * (count - LOT_SIZE);
        for (int i = 0; i < count; i++) {
            seen[rows[i]]++;
            now[rows[i]] = 1;
            again += before[rows[i]];
        }
        memcpy(before, now, sizeof before);
    }
    CU_ASSERT(fabs(sum / STEPS - LOT_SIZE) < SIGMAS * sqrt(one / STEPS));
    /* the fourth moment of a binomial gives the spread of the variance */
    double fourth = 3 * one * one + one * (1 - 6 * q * (1 - q));
    CU_ASSERT(fabs(squares / STEPS - one) < SIGMAS * sqrt((fourth - one * one) / STEPS));
    for (int i = 0; i < MARKS; i++)
        worst = fmax(worst, fabs(seen[i] - STEPS * q));
    CU_ASSERT(worst < SIGMAS * sqrt(STEPS * q * (1 - q)));
    /* one lot says nothing about the next */
    double pairs = (STEPS - 1.0) * MARKS;
    CU_ASSERT(fabs(again - pairs * q * q) < SIGMAS * sqrt(pairs * q * q));
    end(&g);
}

/* A lot that is as large as the examples, or larger, takes them all. */
static void test_poisson_all(void)
{
    struct rig g;
    int rows[MARKS];
    struct dpf_training_plan plan = marks_plan(DPF_SAMPLE_POISSON, 300);
    begin_marks(&g, &plan);
    CU_ASSERT(g.training.steps_per_epoch == 1);
    CU_ASSERT(next_lot(&g, MARKS, rows) == MARKS); /* what is expected, again */
    end(&g);
}

/* One epoch with lots of one: the order, and whether all came once. */
static bool take_order(struct rig *g, int order[MARKS])
{
    int rows[MARKS], seen[MARKS] = {0}, wrong = 0;
    for (int i = 0; i < MARKS; i++) {
        wrong += next_lot(g, 1, rows) != 1;
        order[i] = rows[0];
        wrong += seen[rows[0]]++ != 0;
    }
    return wrong == 0 && g->training.step == 0;
}

static int places_in_common(const int *a, const int *b)
{
    int same = 0;
    for (int i = 0; i < MARKS; i++)
        same += a[i] == b[i];
    return same;
}

static void test_shuffle(void)
{
    struct rig g, h;
    int first[MARKS], second[MARKS], other[MARKS], again[MARKS], stream[MARKS];
    struct dpf_training_plan plan = marks_plan(DPF_SAMPLE_SHUFFLE, 1);
    begin_marks(&g, &plan);
    CU_ASSERT(take_order(&g, first));
    CU_ASSERT(take_order(&g, second));
    end(&g);
    begin_marks(&g, &plan);
    CU_ASSERT(take_order(&g, again));
    plan.seed++;
    begin_marks(&h, &plan);
    CU_ASSERT(take_order(&h, other));
    for (int i = 0; i < MARKS; i++)
        stream[i] = i;
    /* two permutations have one place in common, give or take one */
    CU_ASSERT(places_in_common(first, second) < 10);
    CU_ASSERT(places_in_common(first, other) < 10);
    CU_ASSERT(places_in_common(first, stream) < 10);
    CU_ASSERT(places_in_common(first, again) == MARKS);
    end(&g);
    end(&h);
}

/* Of all orders alike: an example stays at its place in one epoch of MARKS. (A shuffle
 * that never leaves one in place, or too often, is a mistake easily made.) */
static void test_all_orders(void)
{
    enum { EPOCHS = 60 };
    struct rig g;
    int order[MARKS], stream[MARKS], same = 0;
    struct dpf_training_plan plan = marks_plan(DPF_SAMPLE_SHUFFLE, 1);
    for (int i = 0; i < MARKS; i++)
        stream[i] = i;
    begin_marks(&g, &plan);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        CU_ASSERT(take_order(&g, order));
        same += places_in_common(order, stream);
    }
    CU_ASSERT(fabs(same - (double)EPOCHS) < SIGMAS * sqrt(EPOCHS));
    end(&g);
}

/* Lots that do not divide the examples: the last is smaller and divided by its size. */
static void check_lots(enum dpf_sampling sampling)
{
    struct rig g;
    int rows[MARKS], seen[MARKS] = {0}, wrong = 0;
    struct dpf_training_plan plan = marks_plan(sampling, 64);
    begin_marks(&g, &plan);
    CU_ASSERT(g.training.steps_per_epoch == 4);
    for (int epoch = 0; epoch < 2; epoch++)
        for (int s = 0; s < 4; s++) {
            int count = next_lot(&g, 0, rows);
            CU_ASSERT(count == (s < 3 ? 64 : MARKS - 3 * 64));
            for (int i = 0; i < count; i++) {
                wrong += seen[rows[i]]++ != epoch;
                if (sampling == DPF_SAMPLE_SEQUENCE)
                    wrong += rows[i] != s * 64 + i;
            }
        }
    CU_ASSERT(wrong == 0);
    end(&g);
}

static void test_lots(void)
{
    struct rig g;
    int order[MARKS], stream[MARKS];
    struct dpf_training_plan plan = marks_plan(DPF_SAMPLE_SEQUENCE, 1);
    check_lots(DPF_SAMPLE_SHUFFLE);
    check_lots(DPF_SAMPLE_SEQUENCE);
    begin_marks(&g, &plan);
    for (int i = 0; i < MARKS; i++)
        stream[i] = i;
    for (int epoch = 0; epoch < 2; epoch++)
        CU_ASSERT(take_order(&g, order) && places_in_common(order, stream) == MARKS);
    end(&g);
}

/* Held rows never leave a footprint, whatever the sampling; others do, and the report is
 * of the held ones. */
static void check_held(enum dpf_sampling sampling, uint64_t seed, int held[MARKS])
{
    struct rig g;
    int rows[MARKS], seen[MARKS] = {0}, trained = 0, wrong = 0;
    struct dpf_training_plan plan = marks_plan(sampling, 30);
    plan.validation = 0.3;
    plan.seed = seed;
    begin_marks(&g, &plan);
    CU_ASSERT(g.training.held_count == 60 && g.training.train_count == 140);
    CU_ASSERT(g.training.steps_per_epoch == 5);
    for (int s = 0; s < 200; s++)
        for (int i = 0,
                 count = next_lot(&g, sampling == DPF_SAMPLE_POISSON ? 30 : 0, rows);
             i < count; i++)
            seen[rows[i]]++;
    for (int i = 0; i < MARKS; i++)
        trained += seen[i] > 0;
    CU_ASSERT(trained == 140);
    for (int i = 0; i < 60; i++) {
        held[i] = (int)g.training.held[i];
        wrong += seen[held[i]] != 0;
    }
    CU_ASSERT(wrong == 0 && g.training.history_count == 40);
    for (size_t i = 0; i < g.training.history_count; i++) /* their weights stayed 0 */
        CU_ASSERT_DOUBLE_EQUAL(g.training.history[i].validation_loss, 0.5, 1e-6);
    end(&g);
}

static void test_held(void)
{
    int a[MARKS], b[MARKS], c[MARKS];
    check_held(DPF_SAMPLE_SHUFFLE, 3, a);
    check_held(DPF_SAMPLE_POISSON, 3, b);
    check_held(DPF_SAMPLE_SEQUENCE, 4, c);
    CU_ASSERT(memcmp(a, b, 60 * sizeof *a) == 0); /* of the seed alone */
    CU_ASSERT(memcmp(a, c, 60 * sizeof *a) != 0);
}

static void test_too_few(void)
{
    struct rig g;
    struct dpf_training t;
    struct dpf_error e = {0};
    struct dpf_training_plan plan = marks_plan(DPF_SAMPLE_SHUFFLE, 10);
    begin_marks(&g, &plan);
    plan.validation = 0.001;
    CU_ASSERT(refused(dpf_training_init(&t, &plan, &g.engine, &g.optimiser, &g.data, &e),
                      DPF_USAGE, &e, "none is left for validation"));
    dpf_dataset_clear(&g.data);
    plan.validation = 0;
    CU_ASSERT(refused(dpf_training_init(&t, &plan, &g.engine, &g.optimiser, &g.data, &e),
                      DPF_USAGE, &e, "no examples to train on"));
    end(&g);
}

/* ---- reports, early stopping, losses that are not finite ---- */

/* The mean loss and accuracy of rows under parameters, by the engine's own values. */
static void measure(struct rig *g, const uint32_t *rows, int64_t count, double *loss,
                    double *accuracy)
{
    struct dpf_lot_result result;
    struct dpf_lot lot = {
        .data = &g->data, .rows = rows, .count = count, .loss = g->training.plan.loss};
    struct dpf_lot_values want = {.result = &result};
    CU_ASSERT(dpf_engine_values(&g->engine, &lot, &want, NULL) == DPF_OK);
    *loss = result.loss / (double)count;
    *accuracy = (double)result.correct / (double)count;
}

static void test_early_stopping(void)
{
    struct rig g;
    struct dpf_training_plan plan = plan_of(DPF_SAMPLE_SHUFFLE, 0.25, 3);
    begin(&g, dpf_optimiser_defaults(dpf_step_kind_find("adam"), 0.02), &plan);
    struct dpf_training *t = &g.training;
    size_t span = g.model.span, bytes = span * sizeof(float);
    float *epochs = dpf_calloc(61 * span, sizeof *epochs), *last = epochs + 60 * span;
    double least = INFINITY;
    int64_t best = 0;
    CU_ASSERT_FATAL(epochs != NULL);
    while (!dpf_training_done(t)) {
        run(&g, t->steps_per_epoch);
        const struct dpf_epoch_report *r = &t->history[t->history_count - 1];
        double loss, accuracy;
        CU_ASSERT_FATAL(r->epoch >= 1 && r->epoch <= 60 && r->epoch == t->epoch);
        dpf_engine_get(&g.engine, epochs + (size_t)(r->epoch - 1) * span);
        measure(&g, t->held, t->held_count, &loss, &accuracy);
        CU_ASSERT_DOUBLE_EQUAL(r->validation_loss, loss, 1e-12);
        CU_ASSERT_DOUBLE_EQUAL(r->validation_accuracy, accuracy, 1e-12);
        if (loss < least) {
            least = loss;
            best = r->epoch;
        }
    }
    CU_ASSERT(t->stopped && t->best_epoch == best && t->epoch == best + 3 &&
              t->epoch < 60 && best > 1);
    dpf_training_result(t, last);
    CU_ASSERT(memcmp(last, epochs + (size_t)(best - 1) * span, bytes) == 0);
    CU_ASSERT(memcmp(last, epochs + (size_t)(t->epoch - 1) * span, bytes) != 0);
    t->plan.patience = 0; /* without early stopping, the last counts */
    dpf_training_result(t, last);
    CU_ASSERT(memcmp(last, epochs + (size_t)(t->epoch - 1) * span, bytes) == 0);
    free(epochs);
    end(&g);
}

/* The reports and the curve add up to what the lots were. */
static void test_reports(void)
{
    struct rig g;
    struct dpf_training_plan plan = plan_of(DPF_SAMPLE_SHUFFLE, 0, 0);
    plan.rule = DPF_CLIP_FLAT;
    plan.clip_l2 = 1e-9; /* nothing is as short */
    begin(&g, dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 0),
          &plan); /* stays where it starts */
    struct dpf_training *t = &g.training;
    CU_ASSERT(run(&g, INT64_MAX) == 18 && t->losses_count == 18 && t->history_count == 3);
    for (size_t epoch = 0; epoch < 3; epoch++) {
        double sum = 0;
        for (size_t s = 0; s < 6; s++)
            sum += (double)t->losses[6 * epoch + s] * (s < 5 ? LOT : ROWS - 5 * LOT);
        const struct dpf_epoch_report *r = &t->history[epoch];
        CU_ASSERT_DOUBLE_EQUAL(r->loss, sum / ROWS, 1e-5);
        CU_ASSERT(r->epoch == (int64_t)epoch + 1 && r->clipped == 1 && r->rate == 0);
        CU_ASSERT(isnan(r->validation_loss) && isnan(r->validation_accuracy));
        CU_ASSERT(r->accuracy > 0 && r->accuracy < 1 && r->examples_per_second > 0);
        double right = r->accuracy * ROWS;
        CU_ASSERT_DOUBLE_EQUAL(right, rint(right), 1e-9);
    }
    end(&g);
}

static void check_not_finite(float bad, int64_t good_steps, int row, const char *where)
{
    struct rig g;
    struct dpf_error e = {0};
    const struct dpf_epoch_report *report;
    struct dpf_training_plan plan = plan_of(DPF_SAMPLE_SEQUENCE, 0, 0);
    begin(&g, dpf_optimiser_defaults(dpf_step_kind_find("adam"), 0.01), &plan);
    size_t bytes = g.model.span * sizeof(float);
    float *before = dpf_calloc(g.model.span, sizeof *before);
    float *after = dpf_calloc(g.model.span, sizeof *after);
    CU_ASSERT_FATAL(before && after);
    CU_ASSERT(run(&g, good_steps) == good_steps);
    ((float *)(void *)g.data.x)[row * 6 + 2] = bad;
    uint64_t steps = g.optimiser.step;
    dpf_engine_get(&g.engine, before);
    CU_ASSERT(
        refused(dpf_training_step(&g.training, &report, &e), DPF_SYSTEM, &e, where));
    CU_ASSERT(strstr(e.message, "the loss is not a finite number") && report == NULL);
    dpf_engine_get(&g.engine, after);
    CU_ASSERT(memcmp(before, after, bytes) == 0);
    CU_ASSERT(g.optimiser.step == steps && g.training.losses_count == steps);
    free(before);
    free(after);
    end(&g);
}

static void test_not_finite(void)
{
    check_not_finite(NAN, 0, 3, "step 1 of epoch 1:");
    check_not_finite(INFINITY, 2, 16, "step 3 of epoch 1:");
    check_not_finite(-INFINITY, 7, 15, "step 2 of epoch 2:");
}

/* A step too wide: the loss is finite, what comes of it is not. */
static void test_not_finite_parameters(void)
{
    struct rig g;
    struct dpf_error e = {0};
    const struct dpf_epoch_report *report;
    struct dpf_training_plan plan = plan_of(DPF_SAMPLE_SEQUENCE, 0, 0);
    begin(&g, dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 0.01), &plan);
    CU_ASSERT(run(&g, 7) == 7);
    g.optimiser.rate = 1e300; /* no float */
    CU_ASSERT(refused(dpf_training_step(&g.training, &report, &e), DPF_SYSTEM, &e,
                      "step 2 of epoch 2:"));
    CU_ASSERT(strstr(e.message, "a parameter is not a finite number") && !report);
    end(&g);
}

/* With clipping, an example that has no finite loss is left out; the others' losses and
 * gradients are as without it. */
static void test_left_out(void)
{
    struct rig g, h;
    const struct dpf_epoch_report *report;
    struct dpf_training_plan plan = plan_of(DPF_SAMPLE_SEQUENCE, 0, 0);
    struct dpf_optimiser o = dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 0.1);
    plan.rule = DPF_CLIP_FLAT;
    begin(&g, o, &plan);
    begin(&h, o, &plan);
    size_t span = g.model.span;
    float *w = dpf_calloc(3 * span, sizeof *w);
    double worst = 0, moved = 0;
    CU_ASSERT_FATAL(w != NULL);
    dpf_engine_get(&g.engine, w);
    ((float *)(void *)g.data.x)[(LOT - 1) * 6] = NAN; /* the last of the first lot */
    CU_ASSERT(dpf_training_step(&g.training, &report, NULL) == DPF_OK);
    h.training.plan.lot = LOT - 1;
    CU_ASSERT(dpf_training_step(&h.training, &report, NULL) == DPF_OK);
    CU_ASSERT_DOUBLE_EQUAL(g.training.loss_sum, h.training.loss_sum, 1e-5);
    CU_ASSERT(g.training.clipped == h.training.clipped + 1);
    dpf_engine_get(&g.engine, w + span);
    dpf_engine_get(&h.engine, w + 2 * span);
    for (size_t i = 0; i < span; i++) { /* the same sum, over one more */
        double one = (double)(w[span + i] - w[i]) * LOT;
        double other = (double)(w[2 * span + i] - w[i]) * (LOT - 1);
        worst = isfinite(one) ? fmax(worst, fabs(one - other)) : INFINITY;
        moved = fmax(moved, fabs(other));
    }
    CU_ASSERT(worst < 1e-5 && moved > 1e-2);
    free(w);
    end(&g);
    end(&h);
}

/* ---- optimisers ---- */

/* The formulas in double precision. */
enum { NUMBERS = 6 };

struct exact {
    struct dpf_optimiser o;
    double w[NUMBERS], first[NUMBERS], second[NUMBERS];
};

static void exact_step(struct exact *x, int step, double rate, const double *gradient)
{
    const struct dpf_optimiser *o = &x->o;
    for (int i = 0; i < NUMBERS; i++) {
        double g =
            gradient[i] + o->l2 * x->w[i] + o->l1 * ((x->w[i] > 0) - (x->w[i] < 0));
        double *m = &x->first[i], *v = &x->second[i];
        if (o->kind == dpf_step_kind_find("sgd")) {
            x->w[i] -= rate * g;
        } else if (o->kind == dpf_step_kind_find("momentum")) {
            *m = 0.9 * *m + g;
            x->w[i] -= rate * *m;
        } else if (o->kind == dpf_step_kind_find("nesterov")) {
            *m = 0.9 * *m + g;
            x->w[i] -= rate * (g + 0.9 * *m);
        } else if (o->kind == dpf_step_kind_find("adam")) {
            *m = 0.9 * *m + 0.1 * g;
            *v = 0.999 * *v + 0.001 * g * g;
            x->w[i] -= rate * (*m / (1 - pow(0.9, step))) /
                       (sqrt(*v / (1 - pow(0.999, step))) + 1e-8);
        } else {
            CU_ASSERT(o->kind == dpf_step_kind_find("adadelta"));
            *v = 0.95 * *v + 0.05 * g * g;
            double change = sqrt(*m + 1e-6) / sqrt(*v + 1e-6) * g;
            *m = 0.95 * *m + 0.05 * change * change;
            x->w[i] -= rate * change;
        }
    }
}

static void check_optimiser(const struct dpf_step_kind *kind, double rate, double l1,
                            double l2)
{
    struct exact x = {.w = {1.5, -0.75, 2.25, -3, 0, 1}};
    struct dpf_optimiser o = dpf_optimiser_defaults(kind, rate);
    float w[NUMBERS], g[NUMBERS];
    double gradient[NUMBERS], worst = 0;
    o.l1 = l1;
    o.l2 = l2;
    o.schedule = dpf_schedule_find("linear");
    o.schedule_steps = 20;
    o.final_rate = rate / 4;
    x.o = o;
    CU_ASSERT_FATAL(dpf_optimiser_init(&o, &dpf_kernels_ref, NULL, NUMBERS, NULL) ==
                    DPF_OK);
    for (int i = 0; i < NUMBERS; i++)
        w[i] = (float)x.w[i];
    for (int step = 1; step <= 20; step++) {
        for (int i = 0; i < NUMBERS; i++)
            gradient[i] = (step * 7 % 11 - 5 + i) / 8.0;
        gradient[4] = 0;                /* and the parameter is 0: no penalty moves it */
        gradient[5] *= 1.0 / (1 << 20); /* so small that each epsilon counts */
        for (int i = 0; i < NUMBERS; i++)
            g[i] = (float)gradient[i];
        dpf_optimiser_begin(&o, 1);
        dpf_optimiser_update(&o, NULL, 3, NUMBERS - 3, w + 3,
                             g + 3); /* in pieces, in any order */
        dpf_optimiser_update(&o, NULL, 0, 3, w, g);
        exact_step(&x, step, rate - (step - 1) / 20.0 * (rate - rate / 4), gradient);
        for (int i = 0; i < NUMBERS; i++)
            worst = fmax(worst, fabs((double)w[i] - x.w[i]));
    }
    if (worst > 1e-5)
        printf("    optimiser %s, l1 %g, l2 %g: off by %g\n", kind->name, l1, l2, worst);
    CU_ASSERT(worst <= 1e-5);
    CU_ASSERT(w[4] == 0 && fabs(x.w[0] - 1.5) > 0.01);
    dpf_optimiser_release(&o);
}

static void test_optimisers(void)
{
    static const double scale[] = {0.02, 0.01, 0.02, 2, 0.01};
    for (const struct dpf_step_kind *kind = dpf_step_kinds; kind->name; kind++) {
        check_optimiser(kind, scale[kind - dpf_step_kinds], 0, 0);
        check_optimiser(kind, scale[kind - dpf_step_kinds], 0.125, 0);
        check_optimiser(kind, scale[kind - dpf_step_kinds], 0, 0.5);
        check_optimiser(kind, scale[kind - dpf_step_kinds], 0.25, 0.25);
    }
}

/* A constant gradient of 1 walks down by the rates. */
static void test_schedules(void)
{
    enum { STEPS = 12, OVER = 8 };
    for (const struct dpf_schedule *kind = dpf_schedules; kind->name; kind++) {
        struct dpf_optimiser o = dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 0.5);
        o.schedule = kind;
        o.schedule_steps = OVER;
        o.final_rate = 0.1;
        float w = 0;
        double down = 0;
        CU_ASSERT_FATAL(dpf_optimiser_init(&o, &dpf_kernels_ref, NULL, 1, NULL) ==
                        DPF_OK);
        for (int s = 0; s < STEPS; s++) {
            double done = s < OVER ? s / (double)OVER : 1, rate = 0.5;
            float g = 1;
            if (kind == dpf_schedule_find("linear"))
                rate = 0.5 - 0.4 * done;
            else if (kind == dpf_schedule_find("cosine"))
                rate = 0.1 + 0.4 * (1 + cos(acos(-1) * done)) / 2;
            CU_ASSERT_DOUBLE_EQUAL(dpf_optimiser_rate(&o), rate, 1e-12);
            dpf_optimiser_begin(&o, 1);
            dpf_optimiser_update(&o, NULL, 0, 1, &w, &g);
            down -= rate;
            CU_ASSERT_DOUBLE_EQUAL((double)w, down, 1e-5);
        }
        dpf_optimiser_release(&o);
    }
    struct dpf_optimiser none = dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 0.5);
    none.schedule = dpf_schedule_find("linear"); /* over no steps: constant */
    CU_ASSERT(dpf_optimiser_rate(&none) == 0.5);
}

/* ---- first weights ---- */

static const char layers[] = "input x 24x10x10\n"
                             "c = conv x out=48 kernel=3 pad=1\n"
                             "g = group-norm c groups=4\n"
                             "t = conv-transpose g out=12 kernel=4 stride=2\n"
                             "p = average-pool t kernel=2\n"
                             "f = flatten p\n"
                             "y = dense f out=16\n"
                             "output y\n";

struct weights {
    struct dpf_model model;
    float *values;
};

static struct weights draw(const char *text, const char *name, uint64_t seed)
{
    struct weights w;
    parse(&w.model, text);
    w.values = dpf_calloc(w.model.span, sizeof *w.values);
    CU_ASSERT_FATAL(w.values != NULL);
    memset(w.values, 0x55, w.model.span * sizeof *w.values);
    CU_ASSERT(dpf_initialise(&w.model, name, seed, w.values));
    return w;
}

static void drop(struct weights *w)
{
    free(w->values);
    dpf_model_release(&w->model);
}

static const float *tensor(const struct weights *w, const char *node, int k,
                           uint64_t *count)
{
    const struct dpf_node *n = dpf_model_find(&w->model, node);
    CU_ASSERT_FATAL(n != NULL && k < n->parameter_count);
    *count = dpf_shape_elements(&n->parameters[k]);
    return w->values + n->offset[k];
}

/* Mean 0, this deviation, and tails of the right kind. */
static void check_spread(const struct weights *w, const char *node, int k,
                         double deviation, bool uniform)
{
    uint64_t n;
    const float *v = tensor(w, node, k, &n);
    double sum = 0, squares = 0, top = 0, bound = deviation * sqrt(3);
    for (uint64_t i = 0; i < n; i++) {
        sum += (double)v[i];
        squares += (double)v[i] * (double)v[i];
        top = fmax(top, fabs((double)v[i]));
    }
    double variance = deviation * deviation, count = (double)n;
    bool good = fabs(sum / count) < SIGMAS * deviation / sqrt(count) &&
                fabs(squares / count - variance) <
                    SIGMAS * variance * sqrt((uniform ? 0.8 : 2) / count);
    if (!good)
        printf("    '%s': mean %g, deviation %g, not %g\n", node, sum / count,
               sqrt(squares / count), deviation);
    CU_ASSERT(good);
    bool ends = uniform ? top > bound * 0.98 : top > bound * 1.2;
    CU_ASSERT(!uniform || top <= bound * 1.000001);
    CU_ASSERT(ends || n < 1000); /* fewer need not reach them */
}

static bool all_are(const struct weights *w, const char *node, int k, float value)
{
    uint64_t n, good = 0;
    const float *v = tensor(w, node, k, &n);
    for (uint64_t i = 0; i < n; i++)
        good += v[i] == value;
    return n > 0 && good == n;
}

static void test_initialisers(void)
{
    /* inputs of an output, outputs of an input */
    static const struct {
        const char *node;
        double in, out;
    } fans[] = {{"c", 24 * 9, 48 * 9}, {"t", 48 * 16, 12 * 16}, {"y", 12 * 11 * 11, 16}};
    static const char *const names[] = {
        "he-normal",    "he-uniform", "xavier-normal", "xavier-uniform",
        "lecun-normal", "torch",      "zero"};
    for (size_t i = 0; i < COUNT(names); i++) {
        CU_ASSERT_FATAL(dpf_initialisers[i].name &&
                        strcmp(dpf_initialisers[i].name, names[i]) == 0);
        struct weights w = draw(layers, names[i], 9);
        CU_ASSERT(all_are(&w, "g", 0, 1) && all_are(&w, "g", 1, 0));
        for (size_t f = 0; f < COUNT(fans); f++) {
            double in = fans[f].in, out = fans[f].out;
            double deviation[] = {sqrt(2 / in),         sqrt(2 / in),
                                  sqrt(2 / (in + out)), sqrt(2 / (in + out)),
                                  sqrt(1 / in),         1 / sqrt(in) / sqrt(3)};
            bool uniform = i == 1 || i == 3 || i == 5, torch = i == 5;
            CU_ASSERT(all_are(&w, fans[f].node, 0, 0) == (i == 6));
            if (i < 6 && (!torch || strcmp(fans[f].node, "t") != 0))
                check_spread(&w, fans[f].node, 0, deviation[i], uniform);
            CU_ASSERT(all_are(&w, fans[f].node, 1, 0) == !torch);
            if (torch && strcmp(fans[f].node, "t") != 0)
                check_spread(&w, fans[f].node, 1, deviation[i], true);
        }
        drop(&w);
    }
    CU_ASSERT(strcmp(dpf_initialisers[COUNT(names)].name, "oriented") == 0);
    CU_ASSERT(strcmp(dpf_initialisers[COUNT(names) + 1].name, "he-centred") == 0);
    CU_ASSERT(strcmp(dpf_initialisers[COUNT(names) + 2].name, "mirrored") == 0);
    CU_ASSERT(dpf_initialisers[COUNT(names) + 3].name == NULL);
}

/* Edge detectors: no mean, an absolute sum of 1, opposite directions opposite, and the
 * one that looks along x answers to a step along x. */
static void test_oriented(void)
{
    struct weights w =
        draw("input x 2x9x9\nc = conv x out=8 kernel=5 pad=2\noutput c\n", "oriented", 1);
    uint64_t n;
    const float *v = tensor(&w, "c", 0, &n);
    CU_ASSERT(n == 8 * 2 * 25 && all_are(&w, "c", 1, 0));
    for (int o = 0; o < 8; o++) {
        const float *filter = v + o * 50, *opposite = v + (o + 4) % 8 * 50;
        double sum = 0, size = 0, turned = 0, step = 0;
        for (int i = 0; i < 50; i++) {
            sum += (double)filter[i];
            size += fabs((double)filter[i]);
            turned = fmax(turned, fabs((double)(filter[i] + opposite[i])));
            step += i % 5 > 2 ? (double)filter[i] : 0;
        }
        CU_ASSERT(fabs(sum) < 1e-6 && fabs(size - 1) < 1e-6 && turned < 1e-6);
        CU_ASSERT(o != 0 || step > 0.4);
        CU_ASSERT(o != 2 || fabs(step) < 1e-6);
    }
    drop(&w);
}

/* Features by --init mirrored are those of the mirror image, too; and centred filters do
 * not see brightness. */
static void test_mirrored(void)
{
    enum { SIDE = 12, IN = 3 * SIDE * SIDE, OUT = 32 };
    struct weights w = draw("input x 3x12x12\n"
                            "c = conv x out=8 kernel=4 stride=2 bias=0\n"
                            "n = lrn c window=15 base=0.01 alpha=0.125 beta=0.5\n"
                            "s = conv n out=16 kernel=1\n"
                            "r = relu s\n"
                            "p = average-pool r kernel=3 stride=2\n"
                            "f = flatten p\n"
                            "y = dense f out=32 bias=0\n"
                            "output y\n",
                            "mirrored", 4);
    struct dpf_network net;
    struct dpf_error e = {0};
    struct dpf_network_setup setup = {.model = &w.model,
                                      .kernels = &dpf_kernels_ref,
                                      .parameters = w.values,
                                      .capacity = 3};
    static float x[3][IN], y[3][OUT];
    struct dpf_seeded r;
    dpf_seeded_init(&r, "test mirrored", 0, 0);
    for (int i = 0; i < IN; i++)
        x[0][i] = (float)dpf_seeded_range(&r, 0, 1);
    for (int i = 0; i < IN; i++) {
        x[1][i] = x[0][i - i % SIDE + SIDE - 1 - i % SIDE];
        x[2][i] = x[0][i] + 3;
    }
    CU_ASSERT_FATAL(dpf_network_init(&net, &setup, &e) == DPF_OK);
    dpf_network_forward(&net, 3, x, false, NULL);
    dpf_network_read(&net, w.model.output, 3, y[0]);
    double size = 0;
    for (int k = 0; k < OUT; k++) {
        size += fabs((double)y[0][k]);
        CU_ASSERT(fabs((double)(y[0][k] - y[1][k])) < 1e-5);
        CU_ASSERT(fabs((double)(y[0][k] - y[2][k])) < 1e-4);
    }
    CU_ASSERT(size > 1);
    dpf_network_release(&net);
    drop(&w);
}

/* PyTorch takes the second dimension of [in, out, window] for the inputs of a transposed
 * convolution, so "torch" has to as well. */
static void test_torch_transposed(void)
{
    struct weights w = draw(layers, "torch", 9);
    check_spread(&w, "t", 0, 1 / sqrt(12 * 16) / sqrt(3), true);
    check_spread(&w, "t", 1, 1 / sqrt(12 * 16) / sqrt(3), true);
    drop(&w);
}

/* Packed bits turn the matrix round, not its inputs and outputs. */
static void test_initial_bits(void)
{
    struct weights w =
        draw("input x 3000 bits\ny = dense x out=10\noutput y\n", "xavier-uniform", 1);
    check_spread(&w, "y", 0, sqrt(2.0 / 3010), true);
    drop(&w);
    w = draw("input x 3000 bits\ny = dense x out=10\noutput y\n", "he-normal", 1);
    check_spread(&w, "y", 0, sqrt(2.0 / 3000), false);
    drop(&w);
}

static bool same_tensor(const struct weights *a, const struct weights *b,
                        const char *node, int k)
{
    uint64_t n, m;
    const float *left = tensor(a, node, k, &n), *right = tensor(b, node, k, &m);
    return n == m && memcmp(left, right, n * sizeof *left) == 0;
}

static void test_own_streams(void)
{
    static const char longer[] = "input x 24x10x10\n"
                                 "new = conv x out=24 kernel=3 pad=1\n"
                                 "c = conv new out=48 kernel=3 pad=1\n"
                                 "g = group-norm c groups=4\n"
                                 "t = conv-transpose g out=12 kernel=4 stride=2\n"
                                 "p = average-pool t kernel=2\n"
                                 "f = flatten p\n"
                                 "h = dense f out=1452\n"
                                 "y = dense h out=16\n"
                                 "output y\n";
    struct weights a = draw(layers, "torch", 9), b = draw(longer, "torch", 9);
    struct weights c = draw(layers, "torch", 10), d = draw(layers, "torch", 9);
    static const char *const nodes[] = {"c", "t", "y"};
    for (size_t i = 0; i < COUNT(nodes); i++)
        for (int k = 0; k < 2; k++) {
            CU_ASSERT(same_tensor(&a, &b, nodes[i], k));
            CU_ASSERT(same_tensor(&a, &d, nodes[i], k));
            CU_ASSERT(!same_tensor(&a, &c, nodes[i], k));
        }
    uint64_t n; /* nor do two layers share a stream */
    const float *first = tensor(&a, "c", 0, &n), *other = tensor(&b, "new", 0, &n);
    CU_ASSERT(fabs((double)(first[0] / other[0] - first[1] / other[1])) > 1e-3);
    drop(&a);
    drop(&b);
    drop(&c);
    drop(&d);
}

static void test_unknown_initialiser(void)
{
    struct weights w = draw(layers, "he-normal", 9);
    float first = w.values[0];
    CU_ASSERT(!dpf_initialise(&w.model, "he", 1, w.values));
    CU_ASSERT(!dpf_initialise(&w.model, "", 1, w.values));
    CU_ASSERT(w.values[0] == first);
    drop(&w);
}

const char dpf_suite[] = "training";
const struct dpf_test dpf_tests[] = {
    {"put aside and taken up, a shuffled training ends with the same bits",
     test_resume_shuffle},
    {"put aside and taken up, a Poisson training ends with the same bits",
     test_resume_poisson},
    {"put aside and taken up, a training in sequence ends with the same bits",
     test_resume_sequence},
    {"a state without one of its keys is refused", test_missing_keys},
    {"a state with wrong lengths is refused", test_wrong_lengths},
    {"a state beyond the end of epoch or training is refused", test_beyond_the_end},
    {"a state that contradicts itself is refused", test_contradictions},
    {"a state that promises many steps takes no memory for them", test_promised_steps},
    {"Poisson lots: mean, variance, every example's rate", test_poisson},
    {"Poisson lots as large as the examples take them all", test_poisson_all},
    {"a shuffle visits every example once, in a new order each epoch", test_shuffle},
    {"a shuffle takes all orders alike", test_all_orders},
    {"lots that do not divide the examples; sequence keeps the order", test_lots},
    {"examples held back are never trained on", test_held},
    {"too few examples are refused", test_too_few},
    {"early stopping returns the best epoch's parameters", test_early_stopping},
    {"reports add up to the lots", test_reports},
    {"a loss that is not finite names its step and changes nothing", test_not_finite},
    {"a parameter that is not finite names its step", test_not_finite_parameters},
    {"with clipping, an example without a finite loss is left out", test_left_out},
    {"optimisers follow their formulas over 20 steps", test_optimisers},
    {"schedules, step by step", test_schedules},
    {"oriented filters are edge detectors", test_oriented},
    {"mirrored features are those of the mirror image", test_mirrored},
    {"initialisers: means, deviations, biases, group norms", test_initialisers},
    {"torch's first weights of a transposed convolution", test_torch_transposed},
    {"first weights over packed bits", test_initial_bits},
    {"each layer has its own stream of the seed", test_own_streams},
    {"an unknown initialiser is refused", test_unknown_initialiser},
    {0},
};
