/* Releasing votes: what it will cost, then the noisy maximum of each query. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "account/compose.h"
#include "aggregate.h"
#include "base/log.h"
#include "base/memory.h"
#include "inputs.h"
#include "privacy/vote_cost.h"
#include "published.h"

#include "base/banned.h"

/* What is released, while it is. */
struct release {
    struct dpf_stage *s;
    struct dpf_aggregate *v;
    struct dpf_vote_plan plan;
    struct dpf_vote vote;
    struct dpf_random random;
    uint64_t queries, allowed;    /* all of them; answers that are paid for */
    struct dpf_spending spent[3]; /* answers; tests; a published cost */
    size_t spent_count;
    struct dpf_published published;
    double epsilon; /* proven */
    uint64_t next, answered;
    bool *keep;
    uint64_t *labels;
    size_t keep_capacity, labels_capacity;
    int label; /* number of its field */
    struct dpf_inputs inputs;
};

/* ------------------------------------------------------------------------------- cost */

/* The mechanisms of a run: counts of answers and tests are the most that it may do. */
static void list_spending(struct release *r)
{
    size_t count = 1;
    bool lnmax = r->plan.kind == DPF_VOTE_LNMAX;
    r->spent[0] = (struct dpf_spending){
        .kind = lnmax ? &dpf_spending_pure : &dpf_spending_gaussian,
        .parameter = lnmax ? r->vote.laplace.epsilon : r->vote.maximum.noise_multiplier,
        .rate = 1,
        .count = r->allowed};
    if (r->plan.kind == DPF_VOTE_CONFIDENT)
        r->spent[count++] =
            (struct dpf_spending){.kind = &dpf_spending_gaussian,
                                  .parameter = r->vote.test.noise_multiplier,
                                  .rate = 1,
                                  .count = r->queries};
    if (r->v->publish_cost)
        r->spent[count++] = r->published.spent;
    r->spent_count = count;
}

static enum dpf_status make_vote(struct release *r, struct dpf_error *e)
{
    dpf_vote_release(&r->vote);
    enum dpf_status status =
        dpf_vote_init(&r->vote, &r->plan, (size_t)r->v->answers.values, e);
    if (status == DPF_OK && r->v->publish_cost)
        status = dpf_published_plan(&r->published, r->v, &r->plan, e);
    list_spending(r);
    return status;
}

/* The noise of the answers for --epsilon, with the tests paid for. */
static enum dpf_status choose_noise(struct release *r, struct dpf_error *e)
{
    const struct dpf_aggregate *v = r->v;
    r->plan.noise = 1; /* to have all but that */
    enum dpf_status status = make_vote(r, e);
    if (status == DPF_OK)
        status = dpf_solve_parameter(DPF_METHOD_BEST, r->spent, r->spent_count, 0,
                                     v->epsilon, v->delta, e);
    r->plan.noise = r->spent[0].parameter * M_SQRT2 * (1 + 0x1p-48);
    return status;
}

/* All of it public: nothing here depends on a vote. */
static void tell_plan(struct release *r)
{
    const struct dpf_aggregate *v = r->v;
    double teachers = (double)v->answers.count;
    struct dpf_spending copy[3] = {r->spent[0], r->spent[1], r->spent[2]};
    dpf_notice("%zu teachers, %llu queries, %llu classes", v->answers.count,
               (unsigned long long)r->queries, (unsigned long long)v->answers.values);
    dpf_notice("signal to noise: %g votes, if all agree, against noise of %g: %.3g",
               teachers, r->plan.noise, teachers / r->plan.noise);
    if (r->plan.kind == DPF_VOTE_CONFIDENT)
        dpf_notice("test: %g votes against a threshold of %g with noise of %g", teachers,
                   r->plan.threshold, r->plan.threshold_noise);
    if (v->publish_cost)
        dpf_published_tell_plan(&r->published);
    if (v->epsilon > 0 && dpf_solve_count(DPF_METHOD_BEST, copy, r->spent_count, 0,
                                          v->epsilon, v->delta, NULL) == DPF_OK)
        dpf_notice("epsilon %g at delta %g allows %llu answers, %llu are planned",
                   v->epsilon, v->delta, (unsigned long long)copy[0].count,
                   (unsigned long long)r->allowed);
}

static enum dpf_status plan_cost(struct release *r, struct dpf_error *e)
{
    const struct dpf_aggregate *v = r->v;
    r->plan = (struct dpf_vote_plan){
        .kind = dpf_vote_choices[DPF_INDEX(dpf_vote_choices, v->vote)].kind,
        .noise = v->noise,
        .threshold = v->threshold,
        .threshold_noise = v->threshold_noise};
    r->queries = v->tallies.queries;
    r->allowed = v->most_answers && (uint64_t)v->most_answers < r->queries
                     ? (uint64_t)v->most_answers
                     : r->queries;
    enum dpf_status status = v->noise > 0 ? DPF_OK : choose_noise(r, e);
    if (status == DPF_OK)
        status = make_vote(r, e);
    if (status == DPF_OK)
        status = dpf_compose_epsilon(DPF_METHOD_BEST, r->spent, r->spent_count, v->delta,
                                     &r->epsilon, NULL, e);
    if (status != DPF_OK)
        return status;
    tell_plan(r);
    if (v->epsilon > 0 && r->epsilon > v->epsilon * (1 + 1e-9))
        return dpf_fail(e, DPF_PRIVACY,
                        "%llu answers would cost epsilon %.4f at delta %g, more than %g: "
                        "more noise, fewer queries or a lower '--answers' cost less",
                        (unsigned long long)r->allowed, r->epsilon, v->delta, v->epsilon);
    return DPF_OK;
}

/* Events of answers and tests. The papers' figure is of both together, so it stands with
 * the answers. */
static void add_events(struct release *r)
{
    static const char *const theorems[] = {
        [DPF_VOTE_LNMAX] = "Laplace noise on counts of L1 sensitivity 2 (privacy/vote.h)",
        [DPF_VOTE_GNMAX] =
            "Gaussian noise on counts of L2 sensitivity sqrt 2 (privacy/vote.h)",
        [DPF_VOTE_CONFIDENT] =
            "Gaussian noise on counts of L2 sensitivity sqrt 2, after a Gaussian test "
            "(privacy/vote.h)"};
    static const char *const papers[] = {
        [DPF_VOTE_LNMAX] = "Papernot et al. 2017, LNMax, independent of the votes",
        [DPF_VOTE_GNMAX] = "Papernot et al. 2018, GNMax, independent of the votes",
        [DPF_VOTE_CONFIDENT] =
            "Papernot et al. 2018, Confident-GNMax, independent of the votes"};
    const struct dpf_aggregate *v = r->v;
    struct dpf_vote_total total = {.rdp = {0}};
    bool lnmax = r->plan.kind == DPF_VOTE_LNMAX;
    bool confident = r->plan.kind == DPF_VOTE_CONFIDENT;
    double one = 0, delta = v->delta;
    double share = delta / (double)r->spent_count; /* each event states its own */
    struct dpf_values *events = &r->s->out.events;
    dpf_vote_total_add(&total, &r->plan, 0, DPF_VOTE_ANY_PASS,
                       confident ? (double)r->queries : 0, (double)r->allowed);
    dpf_compose_epsilon(DPF_METHOD_BEST, r->spent, 1, share, &one, NULL, NULL);
    struct dpf_mechanism_event m = {
        .spending = r->spent[0],
        .sampling = "none",
        .norm = lnmax ? "l1" : "l2",
        .sensitivity = lnmax ? 2 : r->vote.maximum.sensitivity_l2,
        .relation = DPF_REPLACE_ONE,
        .method = v->vote,
        .units = v->answers.values,
        .claimed = {dpf_vote_total_epsilon(&total, delta, NULL), delta,
                    papers[r->plan.kind]},
        .proven = {one, share, theorems[r->plan.kind]}};
    if (v->publish_cost)
        dpf_published_claim(&r->published, &m);
    dpf_ledger_add_mechanism(events, r->s->info->name, &m);
    if (confident) {
        m.spending = r->spent[1];
        m.sensitivity = r->vote.test.sensitivity_l2;
        m.method = "confident test";
        m.units = 1;
        m.claimed = (struct dpf_guarantee){0, 0, "counted with the answers"};
        m.why = NULL;
        dpf_compose_epsilon(DPF_METHOD_BEST, r->spent + 1, 1, share, &one, NULL, NULL);
        m.proven = (struct dpf_guarantee){
            one, share, "Gaussian noise on a maximum of sensitivity 1 (privacy/vote.h)"};
        dpf_ledger_add_mechanism(events, r->s->info->name, &m);
    }
    if (v->publish_cost)
        dpf_published_add_event(&r->published, r->s, share);
    if (v->seed >= 0)
        dpf_ledger_add_seed(events, r->s->info->name);
}

/* What the votes themselves give: for the holder of the records alone. */
static enum dpf_status tell_private_cost(struct release *r, struct dpf_error *e)
{
    struct dpf_aggregate *v = r->v;
    struct dpf_vote_total total = {.rdp = {0}};
    enum dpf_status status = DPF_OK;
    double answers = 0;
    for (uint64_t from = 0, n; status == DPF_OK && from < r->queries; from += n) {
        n = dpf_tallies_most(&v->tallies, r->queries - from);
        status = dpf_tallies_load(&v->tallies, from, n, e);
        for (uint64_t i = 0; status == DPF_OK && i < n; i++) {
            const int32_t *counts = dpf_tallies_at(&v->tallies, i).counts;
            double pass = dpf_vote_log_pass(&r->plan, counts, r->vote.classes);
            answers += exp(pass);
            dpf_vote_total_add(&total, &r->plan,
                               dpf_vote_log_q(&r->plan, counts, r->vote.classes), pass,
                               r->plan.kind == DPF_VOTE_CONFIDENT, exp(pass));
        }
    }
    if (status == DPF_OK)
        dpf_notice("private, for the holder of the teachers' records only: epsilon %.4f "
                   "at delta %g from the votes themselves, %.1f answers expected",
                   dpf_vote_total_epsilon(&total, v->delta, NULL), v->delta, answers);
    return status;
}

/* --------------------------------------------------------------------------- answers */

/* Decide `n` queries from the next one on, which fit in memory; `keep` is of the first.
 */
static enum dpf_status decide_block(struct release *r, uint64_t n, bool *keep,
                                    uint64_t *kept, struct dpf_error *e)
{
    enum dpf_status status = dpf_tallies_load(&r->v->tallies, r->next, n, e);
    for (uint64_t i = 0; status == DPF_OK && i < n; i++) {
        const int32_t *counts = dpf_tallies_at(&r->v->tallies, i).counts;
        keep[i] =
            r->answered < r->allowed && dpf_vote_passes(&r->vote, &r->random, counts);
        if (!keep[i])
            continue;
        r->labels[(*kept)++] = dpf_vote_answer(&r->vote, &r->random, counts);
        r->answered++;
    }
    r->next += n;
    return status;
}

/* Decide the next `n` queries: say which ones are answered, and with what, one label
 * behind the other. */
static enum dpf_status decide(struct release *r, uint64_t n, uint64_t *kept,
                              struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    *kept = 0;
    if (!dpf_grow(&r->keep, &r->keep_capacity, n, sizeof *r->keep) ||
        !dpf_grow(&r->labels, &r->labels_capacity, n, sizeof *r->labels))
        return dpf_fail_memory(e);
    for (uint64_t done = 0, block; status == DPF_OK && done < n; done += block) {
        block = dpf_tallies_most(&r->v->tallies, n - done);
        status = decide_block(r, block, r->keep + done, kept, e);
    }
    return status;
}

static void put_labels(const struct release *r, struct dpf_batch *b)
{
    for (uint64_t i = 0; i < b->rows; i++)
        dpf_tensor_put_class(&b->tensor[r->label], i, r->labels[i]);
}

static enum dpf_status declare_label(struct release *r, struct dpf_error *e)
{
    const struct dpf_shape one = {.rank = 0};
    uint64_t classes = r->v->answers.values;
    enum dpf_dtype dtype = classes <= 256 ? DPF_U8 : DPF_I32;
    struct dpf_header *h = &r->s->out;
    struct dpf_field *f = dpf_header_add_field(h, r->v->label, dtype, &one);
    if (!f)
        return dpf_fail(e, DPF_USAGE, "there is no room for a field '%s'", r->v->label);
    f->classes = classes;
    r->label = (int)(f - h->fields);
    h->has_records = false; /* how many are answered, the tests decide */
    h->records = 0;
    return DPF_OK;
}

/* The header goes out: from here on it is spent. */
static enum dpf_status begin(void *context, struct dpf_error *e)
{
    struct release *r = context;
    struct dpf_stage *s = r->s;
    enum dpf_status status = declare_label(r, e);
    if (status == DPF_OK && s->in.is_private) {
        add_events(r);
        dpf_standing_protect(&s->out);
    }
    return status == DPF_OK ? dpf_once_begin(&r->v->once, s, e) : status;
}

/* Labels with the numbers of their queries. */
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
    while (status == DPF_OK && r->next < r->queries) {
        uint64_t from = r->next, left = r->queries - from, kept;
        uint64_t n = dpf_tallies_most(&r->v->tallies, left);
        struct dpf_batch b = {0};
        status = decide(r, n, &kept, e);
        if (status == DPF_OK)
            status = dpf_batch_init(&b, &s->out, kept, e);
        if (status != DPF_OK)
            return status;
        int64_t *numbers = b.tensor[0].data;
        for (uint64_t i = 0, k = 0; i < n; i++)
            if (r->keep[i])
                numbers[k++] = (int64_t)(from + i);
        put_labels(r, &b);
        status = dpf_stage_emit(s, &b, e);
        dpf_batch_release(&b);
    }
    return status;
}

/* The batch at hand has the input; the label comes beside it. */
static enum dpf_status write_batch(void *context, struct dpf_batch *b,
                                   struct dpf_error *e)
{
    struct release *r = context;
    uint64_t kept;
    enum dpf_status status = decide(r, b->rows, &kept, e);
    if (status != DPF_OK)
        return status;
    dpf_batch_select(b, r->keep);
    const struct dpf_shape rows = {.rank = 1, .dim = {b->rows}};
    b->count = 2;
    status =
        dpf_tensor_init(&b->tensor[r->label], r->s->out.fields[r->label].dtype, &rows, e);
    if (status == DPF_OK)
        put_labels(r, b);
    return status == DPF_OK ? dpf_stage_emit(r->s, b, e) : status;
}

static enum dpf_status write_inputs(struct release *r, struct dpf_error *e)
{
    const struct dpf_inputs_use use = {r, begin, write_batch};
    return dpf_inputs_write(&r->inputs, r->v, &r->s->out, &use, e);
}

enum dpf_status dpf_votes_release(struct dpf_stage *s, struct dpf_error *e)
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
    if (status == DPF_OK && v->private_cost)
        status = tell_private_cost(r, e);
    if (status == DPF_OK && v->seed < 0)
        status = dpf_random_init(&r->random, e);
    else if (status == DPF_OK)
        dpf_random_init_insecure(&r->random, "aggregate", (uint64_t)v->seed, 0);
    if (status == DPF_OK && v->publish_cost)
        status = dpf_published_draw(&r->published, v, &r->random, e);
    if (status == DPF_OK)
        status = v->inputs ? write_inputs(r, e) : write_numbers(r, e);
    if (status == DPF_OK)
        dpf_text_addf(
            &v->said,
            "%llu of %llu queries answered, epsilon %.4f at delta %g for at most "
            "%llu\n",
            (unsigned long long)r->answered, (unsigned long long)r->queries,
            ceil(r->epsilon * 1e4) / 1e4, v->delta, (unsigned long long)r->allowed);
    if (status == DPF_OK && v->publish_cost)
        dpf_published_tell(&r->published, &v->said);
    dpf_vote_release(&r->vote);
    dpf_published_release(&r->published);
    dpf_random_release(&r->random);
    dpf_inputs_release(&r->inputs);
    free(r->keep);
    free(r->labels);
    free(r);
    return status;
}
