#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "account/shuffle.h"
#include "base/memory.h"
#include "base/number.h"

#include "base/banned.h"

const char *const dpf_account_methods[] = {"basic", "strong", "moments", "rdp", "pld",
                                           "gdp",   "best",   "all",     NULL};
const char *const dpf_solve_words[] = {"sigma", "steps", "rate", NULL};

/* ------------------------------------------------------------------------- options */

/* What the parameter of a kind of mechanism is called here. */
static const char *const keys[] = {"sigma", "scale", "epsilon", "epsilon"};

static bool key_is(const char *key, size_t size, const char *name)
{
    return strlen(name) == size && memcmp(key, name, size) == 0;
}

/* One "key=value". */
static enum dpf_status take_pair(struct dpf_spending *s, const char *main_key,
                                 const char *text, size_t size, struct dpf_error *e)
{
    const char *equals = memchr(text, '=', size);
    size_t key = equals ? (size_t)(equals - text) : size;
    double value;
    if (!equals || !dpf_parse_real_n(equals + 1, size - key - 1, &value))
        return dpf_fail(e, DPF_USAGE, "'%.*s' is not NAME=NUMBER", (int)size, text);
    bool whole = value == floor(value) && value >= 1 && value <= 1e12;
    if (key_is(text, key, main_key)) {
        s->parameter = value;
    } else if (key_is(text, key, "q")) {
        s->rate = value;
    } else if (key_is(text, key, "steps") || key_is(text, key, "count")) {
        if (!whole)
            return dpf_fail(e, DPF_USAGE, "'%.*s' is no whole number from 1 to 1e12",
                            (int)size, text);
        s->count = (uint64_t)value;
    } else if (s->kind == DPF_SPEND_RESPONSE && key_is(text, key, "choices")) {
        if (!whole || value < 2)
            return dpf_fail(e, DPF_USAGE, "'%.*s' is no whole number from 2 on",
                            (int)size, text);
        s->choices = (uint64_t)value;
    } else {
        return dpf_fail(e, DPF_USAGE, "unknown name in '%.*s': there are %s, q, steps%s",
                        (int)size, text, main_key,
                        s->kind == DPF_SPEND_RESPONSE ? ", choices" : "");
    }
    return DPF_OK;
}

/* What is to be found, or is swept, need not be given. */
static enum dpf_status take_mechanism(struct dpf_account_job *j,
                                      enum dpf_spending_kind kind, const char *text,
                                      struct dpf_error *e)
{
    struct dpf_spending *s = &j->list[j->count];
    *s = (struct dpf_spending){
        .kind = kind, .parameter = NAN, .choices = 2, .rate = 1, .count = 1};
    while (*text) {
        size_t size = strcspn(text, ",");
        enum dpf_status status = take_pair(s, keys[kind], text, size, e);
        if (status != DPF_OK)
            return status;
        text += size + (text[size] == ',');
    }
    bool found = j->count == 0 && ((j->solve && j->what == DPF_SOLVE_SIGMA) ||
                                   (j->sweep && j->what == DPF_SOLVE_SIGMA));
    if (found && isnan(s->parameter))
        s->parameter = 1;
    if (isnan(s->parameter))
        return dpf_fail(e, DPF_USAGE, "'%s' is missing", keys[kind]);
    j->count++;
    return dpf_spending_check(s, e);
}

/* sigma=LO:HI:N, q=..., steps=... */
static enum dpf_status take_sweep(struct dpf_account_job *j, struct dpf_error *e)
{
    static const char *const names[] = {"sigma=", "steps=", "q="};
    double points;
    for (int i = 0; i < 3; i++) {
        if (!dpf_starts_with(j->sweep, names[i]))
            continue;
        const char *lo = j->sweep + strlen(names[i]), *hi = strchr(lo, ':');
        const char *n = hi ? strchr(hi + 1, ':') : NULL;
        if (!n || !dpf_parse_real_n(lo, (size_t)(hi - lo), &j->sweep_lo) ||
            !dpf_parse_real_n(hi + 1, (size_t)(n - hi - 1), &j->sweep_hi) ||
            !dpf_parse_real(n + 1, &points) || !(j->sweep_lo > 0) ||
            !(j->sweep_hi >= j->sweep_lo) || points != floor(points) || points < 2 ||
            points > 100000)
            break;
        j->what = (enum dpf_solve_what)i;
        j->sweep_points = (int64_t)points;
        return DPF_OK;
    }
    return dpf_fail(e, DPF_USAGE,
                    "'%s' is not sigma, q or steps=LO:HI:N with 0 < LO <= HI", j->sweep);
}

static enum dpf_status take_budget(struct dpf_account_job *j, struct dpf_error *e)
{
    const char *comma = strchr(j->budget, ',');
    if (!comma ||
        !dpf_parse_real_n(j->budget, (size_t)(comma - j->budget), &j->budget_epsilon) ||
        !dpf_parse_real(comma + 1, &j->budget_delta) || !(j->budget_epsilon >= 0) ||
        !(j->budget_delta >= 0) || !(j->budget_delta < 1))
        return dpf_fail(e, DPF_USAGE, "'%s' is not EPSILON,DELTA", j->budget);
    return DPF_OK;
}

static enum dpf_status check_together(const struct dpf_account_job *j,
                                      struct dpf_error *e)
{
    bool direct = dpf_account_job_is_direct(j);
    if ((j->solve || j->sweep) && !direct)
        return dpf_fail(e, DPF_USAGE, "'--solve' and '--sweep' need a mechanism");
    if (j->solve && j->sweep)
        return dpf_fail(e, DPF_USAGE, "give one of --solve and --sweep");
    if (j->solve && (j->epsilon < 0 || j->delta < 0))
        return dpf_fail(e, DPF_USAGE, "'--solve' needs '--epsilon' and '--delta'");
    if (!j->solve && j->epsilon >= 0 &&
        (!direct || j->delta >= 0 || j->sweep || j->budget || j->relation ||
         strcmp(j->method, "best") != 0))
        return dpf_fail(e, DPF_USAGE,
                        "'--epsilon' goes with '--solve', or with mechanisms alone");
    if ((j->solve || j->sweep) && strcmp(j->method, "all") == 0)
        return dpf_fail(e, DPF_USAGE, "'--solve' and '--sweep' need one method");
    if ((j->solve || j->sweep) && j->relation)
        return dpf_fail(e, DPF_USAGE, "'--relation' does not go with --solve or --sweep");
    if (j->shuffled && (j->solve || j->sweep || j->epsilon >= 0 || !(j->delta > 0) ||
                        j->budget || strcmp(j->method, "all") == 0))
        return dpf_fail(e, DPF_USAGE,
                        "'--shuffled' needs a '--delta' above 0, and does not go with "
                        "--solve, --sweep, --epsilon, --budget or --method all");
    if (direct && j->delta < 0 && j->epsilon < 0 && !j->budget &&
        (j->gaussian.count || j->sweep))
        return dpf_fail(e, DPF_USAGE, "give --delta");
    return DPF_OK;
}

enum dpf_status dpf_account_job_check(struct dpf_account_job *j, struct dpf_error *e)
{
    const struct dpf_list *lists[] = {&j->gaussian, &j->laplace, &j->response, &j->pure};
    size_t all = 0;
    for (int i = 0; i < 4; i++)
        all += lists[i]->count;
    enum dpf_status status = check_together(j, e);
    if (status == DPF_OK && j->sweep)
        status = take_sweep(j, e);
    if (status == DPF_OK && j->budget)
        status = take_budget(j, e);
    while (j->solve && strcmp(dpf_solve_words[j->what], j->solve) != 0)
        j->what++; /* the parser let no other word through */
    j->list = dpf_calloc(all + 1, sizeof *j->list);
    if (!j->list)
        return dpf_fail_memory(e);
    for (int i = 0; i < 4; i++)
        for (size_t k = 0; status == DPF_OK && k < lists[i]->count; k++)
            status = take_mechanism(j, (enum dpf_spending_kind)i, lists[i]->items[k], e);
    return status;
}

bool dpf_account_job_is_direct(const struct dpf_account_job *j)
{
    return j->gaussian.count || j->laplace.count || j->response.count || j->pure.count;
}

void dpf_account_job_release(struct dpf_account_job *j)
{
    free(j->list);
    j->list = NULL;
}

/* ------------------------------------------------------------------------- answers */

static enum dpf_method method_of(const struct dpf_account_job *j)
{
    int i = 0;
    while (strcmp(dpf_account_methods[i], j->method) != 0)
        i++;
    return i > DPF_METHOD_BEST ? DPF_METHOD_BEST : (enum dpf_method)i;
}

static double delta_of(const struct dpf_account_job *j)
{
    return j->delta >= 0                  ? j->delta
           : j->budget                    ? j->budget_delta
           : dpf_account_job_is_direct(j) ? 0
                                          : NAN;
}

/* Randomised response alone is a matter of one person's record; all else that is given
 * here is taken under add-remove. */
static enum dpf_relation relation_of(const struct dpf_account_job *j)
{
    bool local = true;
    for (size_t i = 0; i < j->count; i++)
        local = local && j->list[i].kind == DPF_SPEND_RESPONSE && j->list[i].rate == 1;
    return local ? DPF_LOCAL : DPF_ADD_REMOVE;
}

static enum dpf_status make_account(const struct dpf_account_job *j,
                                    const struct dpf_stage *s, enum dpf_method method,
                                    struct dpf_account *a, struct dpf_error *e)
{
    struct dpf_account_request request = {.method = method, .delta = delta_of(j)};
    for (int i = 0; j->relation && dpf_relation_words[i]; i++)
        if (strcmp(dpf_relation_words[i], j->relation) == 0) {
            request.relation = (enum dpf_relation)i;
            request.convert = true;
        }
    return dpf_account_job_is_direct(j)
               ? dpf_account_list(a, j->list, j->count, relation_of(j), &request, e)
               : dpf_account_ledger(a, &s->in, &request, e);
}

/* One line, or one JSON object, for each method that applies. */
static enum dpf_status add_methods(const struct dpf_account_job *j,
                                   const struct dpf_stage *s, struct dpf_text *out,
                                   struct dpf_error *e)
{
    for (int m = 0; m < DPF_METHOD_BEST; m++) {
        struct dpf_account a;
        struct dpf_error own = {.status = DPF_OK};
        const char *name = dpf_method_words[m];
        enum dpf_status status = make_account(j, s, (enum dpf_method)m, &a, &own);
        if (status == DPF_PRIVACY || status == DPF_SYSTEM)
            return dpf_fail(e, status, "%s", own.message);
        if (j->json)
            dpf_text_addf(out, "%s{\"method\":\"%s\",\"epsilon\":", m ? "," : "", name);
        else
            dpf_text_addf(out, "%-9s  ", name);
        if (status != DPF_OK && j->json) {
            dpf_text_add(out, "null,\"why\":");
            dpf_text_add_json(out, own.message, strlen(own.message));
        } else if (status != DPF_OK) {
            dpf_text_add(out, own.message);
        } else if (j->json && isfinite(a.proven.epsilon)) {
            dpf_text_add_real(out, a.proven.epsilon);
        } else if (j->json) {
            dpf_text_add(out, "null");
        } else {
            dpf_text_add(out, "epsilon ");
            dpf_text_add_epsilon(out, a.proven.epsilon);
        }
        if (!j->json && status == DPF_OK && m == DPF_METHOD_STRONG && j->count == 1 &&
            j->list[0].kind == DPF_SPEND_GAUSSIAN) {
            dpf_text_add(out, "  (with linear amplification, no valid bound: ");
            dpf_text_add_epsilon(out,
                                 dpf_strong_linear_epsilon(&j->list[0], delta_of(j)));
            dpf_text_add(out, ")");
        }
        dpf_text_add(out, j->json ? "}" : "\n");
        if (status == DPF_OK)
            dpf_account_release(&a);
    }
    return DPF_OK;
}

static enum dpf_status check_budget(const struct dpf_account_job *j,
                                    const struct dpf_account *a, struct dpf_error *e)
{
    struct dpf_text cost = {0};
    if (!j->budget ||
        (a->proven.epsilon <= j->budget_epsilon && a->proven.delta <= j->budget_delta))
        return DPF_OK;
    dpf_text_add_epsilon(&cost, a->proven.epsilon);
    enum dpf_status status =
        dpf_fail(e, DPF_PRIVACY,
                 "the proven cost, epsilon %s at delta %g, is above the budget '%s'",
                 dpf_text_get(&cost), a->proven.delta, j->budget);
    dpf_text_release(&cost);
    return status;
}

/* The theorem is about messages that were there, each from a local randomiser that every
 * person used for certain: not about more messages than that, nor about a sampled
 * epsilon, which is what an observer learns who does not know who took part. */
static enum dpf_status check_shuffled(const struct dpf_account_job *j,
                                      const struct dpf_stage *s, struct dpf_error *e)
{
    for (size_t i = 0; i < j->count; i++)
        if (j->list[i].rate < 1)
            return dpf_fail(e, DPF_PRIVACY,
                            "'--shuffled' needs a local epsilon: one with a sampling "
                            "rate of %g is none",
                            j->list[i].rate);
    if (!dpf_account_job_is_direct(j) && (uint64_t)j->shuffled > s->records_in)
        return dpf_fail(e, DPF_PRIVACY,
                        "'--shuffled %lld' is more than the %llu messages of the stream",
                        (long long)j->shuffled, (unsigned long long)s->records_in);
    return DPF_OK;
}

/* What is left of the local epsilon for whoever sees only shuffled messages. */
static enum dpf_status add_shuffled(const struct dpf_account_job *j,
                                    const struct dpf_stage *s, struct dpf_text *out,
                                    struct dpf_error *e)
{
    struct dpf_account_job pure = *j;
    struct dpf_account a;
    pure.delta = 0; /* the theorem takes a local epsilon without delta */
    enum dpf_status status = check_shuffled(j, s, e);
    if (status == DPF_OK)
        status = make_account(&pure, s, DPF_METHOD_BASIC, &a, e);
    if (status != DPF_OK)
        return status;
    bool direct = dpf_account_job_is_direct(j), alike = a.alike || direct;
    double epsilon =
        alike && isfinite(a.proven.epsilon)
            ? dpf_shuffled_epsilon(a.proven.epsilon, (uint64_t)j->shuffled, j->delta)
            : INFINITY;
    dpf_account_release(&a);
    if (!isfinite(epsilon))
        return dpf_fail(e, DPF_PRIVACY,
                        "'--shuffled' needs one local randomiser with a finite epsilon "
                        "for all, one message a person, and nothing beside it that tells "
                        "whose it is (clear labels, places, copies, different owners)");
    if (j->json) {
        out->size -= 1; /* the closing brace: more follows */
        dpf_text_addf(out, ",\"shuffled\":{\"epsilon\":");
        dpf_text_add_real(out, epsilon);
        dpf_text_add(out, ",\"delta\":");
        dpf_text_add_real(out, j->delta);
        dpf_text_addf(out, ",\"messages\":%lld,\"relation\":\"replace-one\"}}",
                      (long long)j->shuffled);
        return DPF_OK;
    }
    dpf_text_add(out, "shuffled   epsilon ");
    dpf_text_add_epsilon(out, epsilon);
    dpf_text_addf(out,
                  "  delta %g  replace-one, if a trusted shuffler hid the order of %lld "
                  "messages (Feldman et al. 2021)\n",
                  j->delta, (long long)j->shuffled);
    return DPF_OK;
}

static enum dpf_status answer_account(const struct dpf_account_job *j,
                                      const struct dpf_stage *s, struct dpf_text *out,
                                      enum dpf_status *budget, struct dpf_error *e)
{
    struct dpf_account a;
    bool all = strcmp(j->method, "all") == 0;
    enum dpf_status status = make_account(j, s, method_of(j), &a, e);
    if (status != DPF_OK)
        return status;
    if (j->json) {
        dpf_account_json(&a, dpf_account_job_is_direct(j) ? NULL : &s->in.events, out);
        out->size -= all; /* the closing brace: more follows */
    } else {
        dpf_account_table(&a, out);
    }
    if (j->shuffled)
        status = add_shuffled(j, s, out, e);
    if (all)
        dpf_text_add(out, j->json ? ",\"methods\":[" : "");
    if (all)
        status = add_methods(j, s, out, e);
    dpf_text_add(out, !j->json ? "" : all ? "]}\n" : "\n");
    *budget = check_budget(j, &a, e);
    dpf_account_release(&a);
    return status;
}

static enum dpf_status answer_solve(struct dpf_account_job *j, struct dpf_text *out,
                                    struct dpf_error *e)
{
    enum dpf_method method = method_of(j), used;
    enum dpf_status (*const solvers[])(enum dpf_method, struct dpf_spending *, size_t,
                                       size_t, double, double, struct dpf_error *) = {
        dpf_solve_parameter, dpf_solve_count, dpf_solve_rate};
    enum dpf_status status =
        solvers[j->what](method, j->list, j->count, 0, j->epsilon, j->delta, e);
    double epsilon;
    if (status == DPF_OK)
        status =
            dpf_compose_epsilon(method, j->list, j->count, j->delta, &epsilon, &used, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_spending *s = &j->list[0];
    double found = j->what == DPF_SOLVE_SIGMA  ? s->parameter
                   : j->what == DPF_SOLVE_RATE ? s->rate
                                               : (double)s->count;
    dpf_text_addf(out, j->json ? "{\"%s\":" : "%s ",
                  j->what == DPF_SOLVE_SIGMA ? keys[s->kind] : j->solve);
    dpf_text_add_real(out, found);
    dpf_text_add(out, j->json ? ",\"epsilon\":" : "  epsilon ");
    if (j->json)
        dpf_text_add_real(out, epsilon);
    else
        dpf_text_add_epsilon(out, epsilon);
    dpf_text_addf(out,
                  j->json ? ",\"delta\":%.17g,\"method\":\"%s\","
                            "\"relation\":\"add-remove\"}\n"
                          : "  delta %g  by %s, add-remove\n",
                  j->delta, dpf_method_words[used]);
    return DPF_OK;
}

/* The delta at an epsilon. */
static enum dpf_status answer_delta(const struct dpf_account_job *j, struct dpf_text *out,
                                    struct dpf_error *e)
{
    double delta;
    enum dpf_status status = dpf_compose_delta(j->list, j->count, j->epsilon, &delta, e);
    dpf_text_add(out, j->json ? "{\"epsilon\":" : "epsilon ");
    dpf_text_add_real(out, j->epsilon);
    dpf_text_addf(
        out, j->json ? ",\"delta\":%.17g,\"relation\":\"%s\"}\n" : "  delta %.6e  %s\n",
        j->json ? delta : delta * (1 + 1e-6), dpf_relation_words[relation_of(j)]);
    return status;
}

static enum dpf_status answer_sweep(struct dpf_account_job *j, struct dpf_text *out,
                                    struct dpf_error *e)
{
    static const char *const names[] = {"sigma", "steps", "q"};
    enum dpf_method method = method_of(j);
    struct dpf_spending *s = &j->list[0];
    enum dpf_status status = DPF_OK;
    dpf_text_addf(out, j->json ? "[" : "%s,epsilon\n", names[j->what]);
    for (int64_t i = 0; status == DPF_OK && i < j->sweep_points; i++) {
        double share = (double)i / (double)(j->sweep_points - 1), epsilon;
        double x = j->sweep_lo * pow(j->sweep_hi / j->sweep_lo, share);
        if (j->what == DPF_SOLVE_SIGMA)
            s->parameter = x;
        else if (j->what == DPF_SOLVE_RATE)
            s->rate = fmin(x, 1);
        else
            s->count = (uint64_t)(x = floor(x + 1e-9));
        status = dpf_compose_epsilon(method, j->list, j->count, delta_of(j), &epsilon,
                                     NULL, e);
        if (j->json)
            dpf_text_addf(out, "%s{\"%s\":", i ? "," : "", names[j->what]);
        dpf_text_add_real(out, x);
        dpf_text_add(out, j->json ? ",\"epsilon\":" : ",");
        dpf_text_add_real(out, epsilon);
        dpf_text_add(out, j->json ? "}" : "\n");
    }
    dpf_text_add(out, j->json ? "]\n" : "");
    return status;
}

enum dpf_status dpf_account_job_run(struct dpf_account_job *j, struct dpf_stage *s,
                                    struct dpf_error *e)
{
    struct dpf_text out = {0};
    enum dpf_status budget = DPF_OK;
    enum dpf_status status = j->solve          ? answer_solve(j, &out, e)
                             : j->sweep        ? answer_sweep(j, &out, e)
                             : j->epsilon >= 0 ? answer_delta(j, &out, e)
                                               : answer_account(j, s, &out, &budget, e);
    if (status == DPF_OK && out.failed)
        status = dpf_fail_memory(e);
    if (status == DPF_OK)
        fputs(dpf_text_get(&out), s->text);
    if (budget != DPF_OK)
        fflush(s->text);
    dpf_text_release(&out);
    return status == DPF_OK ? budget : status;
}
