/* Releasing codes: their mean with Gaussian noise, for each query. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "account/code_noise.h"
#include "account/compose.h"
#include "base/log.h"
#include "base/memory.h"
#include "inputs.h"

#include "base/banned.h"

struct release {
    struct dpf_stage *s;
    struct dpf_aggregate *v;
    struct dpf_code_mean mean;
    struct dpf_spending spent;
    struct dpf_random random;
    struct dpf_inputs inputs;
    uint64_t next; /* query */
    int code;      /* number of its field */
    double epsilon;
};

/* ------------------------------------------------------------------------------- cost */

/* All of it public: nothing here depends on a code. */
static void tell_plan(const struct release *r)
{
    const struct dpf_aggregate *v = r->v;
    double noise = dpf_code_noise(&r->mean), l = (double)r->mean.values;
    struct dpf_spending copy = r->spent;
    dpf_notice("%zu teachers, %llu queries, codes of %zu values and norm %g",
               v->answers.count, (unsigned long long)r->spent.count, r->mean.values,
               v->norm);
    dpf_notice("signal to noise: a norm of at most %g against noise of deviation %.6g a "
               "value, %.4g in all: %.3g, or %.3g bits a query",
               v->norm, noise, noise * sqrt(l), v->norm / (noise * sqrt(l)),
               l / 2 * log2(1 + v->norm * v->norm / (l * noise * noise)));
    if (v->epsilon > 0 && dpf_solve_count(DPF_METHOD_BEST, &copy, 1, 0, v->epsilon,
                                          v->delta, NULL) == DPF_OK)
        dpf_notice("epsilon %g at delta %g allows %llu queries with this noise",
                   v->epsilon, v->delta, (unsigned long long)copy.count);
}

/* The noise multiplier: as given, or for --epsilon by the calibration. */
static enum dpf_status choose_multiplier(const struct release *r, double *multiplier,
                                         struct dpf_error *e)
{
    const struct dpf_aggregate *v = r->v;
    if (v->noise > 0) {
        *multiplier = dpf_code_multiplier(v->answers.count, v->norm, v->noise);
        return DPF_OK;
    }
    return dpf_code_calibrate(v->calibration, v->tallies.queries, v->epsilon, v->delta,
                              multiplier, e);
}

static enum dpf_status plan_cost(struct release *r, struct dpf_error *e)
{
    const struct dpf_aggregate *v = r->v;
    double multiplier = 0;
    r->spent = (struct dpf_spending){
        .kind = &dpf_spending_gaussian, .rate = 1, .count = v->tallies.queries};
    enum dpf_status status = choose_multiplier(r, &multiplier, e);
    if (status == DPF_OK)
        status = dpf_code_mean_init(&r->mean, v->answers.values, v->answers.count,
                                    v->norm, multiplier, e);
    r->spent.parameter = r->mean.noise.noise_multiplier;
    if (status == DPF_OK)
        status = dpf_compose_epsilon(DPF_METHOD_BEST, &r->spent, 1, v->delta, &r->epsilon,
                                     NULL, e);
    if (status != DPF_OK)
        return status;
    tell_plan(r);
    return v->epsilon > 0 && r->epsilon > v->epsilon * (1 + 1e-9)
               ? dpf_fail(e, DPF_PRIVACY,
                          "%llu queries would cost epsilon %.4f at delta %g, more than "
                          "%g: more noise or fewer queries cost less",
                          (unsigned long long)r->spent.count, r->epsilon, v->delta,
                          v->epsilon)
               : DPF_OK;
}

static void add_event(const struct release *r)
{
    const struct dpf_aggregate *v = r->v;
    struct dpf_values *events = &r->s->out.events;
    const struct dpf_mechanism_event m = {
        .spending = r->spent,
        .sampling = "none",
        .norm = "l2",
        .sensitivity = r->mean.noise.sensitivity_l2,
        .relation = DPF_REPLACE_ONE,
        .method = "mean of codes",
        .units = v->answers.values,
        .claimed = {dpf_code_paper_epsilon(r->spent.parameter, (double)r->spent.count,
                                           v->delta),
                    v->delta, "Fay et al. 2020, Renyi divergence of Gaussian noise"},
        .proven = {r->epsilon, v->delta,
                   "Gaussian noise on a sum of codes of bounded norm "
                   "(privacy/code_mean.h)"}};
    dpf_ledger_add_mechanism(events, r->s->info->name, &m);
    if (v->seed >= 0)
        dpf_ledger_add_seed(events, r->s->info->name);
}

/* ------------------------------------------------------------------------------- means
 */

/* The header goes out: from here on it is spent. */
static enum dpf_status begin(void *context, struct dpf_error *e)
{
    struct release *r = context;
    struct dpf_stage *s = r->s;
    const struct dpf_shape vector = {.rank = 1, .dim = {r->mean.values}};
    struct dpf_field *f = dpf_header_add_field(&s->out, r->v->label, DPF_F32, &vector);
    if (!f)
        return dpf_fail(e, DPF_USAGE, "there is no room for a field '%s'", r->v->label);
    r->code = (int)(f - s->out.fields);
    s->out.has_records = true;
    s->out.records = r->spent.count;
    if (r->v->blank) { /* of the inputs alone, whose standing it has */
        dpf_values_release(&s->out.events);
        dpf_values_append(&s->out.events, &r->v->answers.asked);
    } else if (s->in.is_private) {
        add_event(r);
        dpf_standing_protect(&s->out);
    }
    return dpf_once_begin(&r->v->once, s, e);
}

/* The next n queries, which fit in memory, as codes with noise. */
static enum dpf_status release_block(struct release *r, uint64_t n, float *out,
                                     struct dpf_error *e)
{
    enum dpf_status status = dpf_tallies_load(&r->v->tallies, r->next, n, e);
    for (uint64_t i = 0; status == DPF_OK && i < n; i++) {
        int64_t *sums = dpf_tallies_at(&r->v->tallies, i).sums;
        if (r->v->blank)
            memset(sums, 0, r->mean.values * sizeof *sums);
        dpf_code_release(&r->mean, &r->random, sums, out + i * r->mean.values);
    }
    dpf_tallies_drop(&r->v->tallies); /* noise has been added to it */
    r->next += n;
    return status;
}

/* The next b->rows queries into the tensor of codes. */
static enum dpf_status release_rows(struct release *r, struct dpf_batch *b,
                                    struct dpf_error *e)
{
    float *out = b->tensor[r->code].data;
    enum dpf_status status = DPF_OK;
    for (uint64_t done = 0, n; status == DPF_OK && done < b->rows; done += n) {
        n = dpf_tallies_most(&r->v->tallies, b->rows - done);
        status = release_block(r, n, out + done * r->mean.values, e);
    }
    return status == DPF_OK ? dpf_stage_emit(r->s, b, e) : status;
}

static enum dpf_status write_numbers(struct release *r, struct dpf_error *e)
{
    const struct dpf_shape one = {.rank = 0};
    struct dpf_stage *s = r->s;
    if (strcmp(r->v->label, "query") == 0)
        return dpf_fail(e, DPF_USAGE, "'--target query' is the field of the numbers");
    dpf_header_drop_fields(&s->out);
    enum dpf_status status = dpf_header_add_field(&s->out, "query", DPF_I64, &one)
                                 ? begin(r, e)
                                 : dpf_fail_memory(e);
    while (status == DPF_OK && r->next < r->spent.count) {
        uint64_t left = r->spent.count - r->next, room = dpf_batch_rows(&s->out);
        struct dpf_batch b = {0};
        status = dpf_batch_init(&b, &s->out, left < room ? left : room, e);
        for (uint64_t i = 0; status == DPF_OK && i < b.rows; i++)
            ((int64_t *)b.tensor[0].data)[i] = (int64_t)(r->next + i);
        if (status == DPF_OK)
            status = release_rows(r, &b, e);
        dpf_batch_release(&b);
    }
    return status;
}

/* The batch at hand has the input; the code comes beside it. */
static enum dpf_status write_batch(void *context, struct dpf_batch *b,
                                   struct dpf_error *e)
{
    struct release *r = context;
    const struct dpf_shape rows = {.rank = 2, .dim = {b->rows, r->mean.values}};
    b->count = 2;
    enum dpf_status status = dpf_tensor_init(&b->tensor[r->code], DPF_F32, &rows, e);
    return status == DPF_OK ? release_rows(r, b, e) : status;
}

static enum dpf_status write_inputs(struct release *r, struct dpf_error *e)
{
    const struct dpf_inputs_use use = {r, begin, write_batch};
    return dpf_inputs_write(&r->inputs, r->v, &r->s->out, &use, e);
}

enum dpf_status dpf_codes_release(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_aggregate *v = s->state;
    struct release *r = dpf_calloc(1, sizeof *r);
    if (!r)
        return dpf_fail_memory(e);
    r->s = s;
    r->v = v;
    enum dpf_status status = dpf_answers_complete(v, e);
    if (status == DPF_OK)
        status = plan_cost(r, e);
    if (status == DPF_OK && v->seed < 0)
        status = dpf_random_init(&r->random, e);
    else if (status == DPF_OK)
        dpf_random_init_insecure(&r->random, "aggregate", (uint64_t)v->seed, 0);
    if (status == DPF_OK)
        status = v->inputs ? write_inputs(r, e) : write_numbers(r, e);
    if (status == DPF_OK && v->blank)
        dpf_text_addf(&v->said,
                      "%llu codes of noise alone: no answer was used, nothing is spent\n",
                      (unsigned long long)r->spent.count);
    else if (status == DPF_OK)
        dpf_text_addf(&v->said, "%llu queries answered, epsilon %.4f at delta %g\n",
                      (unsigned long long)r->spent.count, ceil(r->epsilon * 1e4) / 1e4,
                      v->delta);
    dpf_random_release(&r->random);
    dpf_inputs_release(&r->inputs);
    free(r);
    return status;
}
