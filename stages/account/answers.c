/* The answers of `account`: a cost, a parameter, a delta or a sweep. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "account.h"
#include "account/shuffle.h"
#include "base/log.h"

#include "base/banned.h"

enum { NAME_COLUMNS = 10 };

static enum dpf_method method_of(const struct dpf_account_question *q)
{
    size_t i = DPF_INDEX(q->methods, q->method);
    return i > DPF_METHOD_BEST ? DPF_METHOD_BEST : (enum dpf_method)i;
}

static double delta_of(const struct dpf_account_question *q)
{
    return q->delta >= 0              ? q->delta
           : q->budget                ? q->budget_delta
           : dpf_account_is_direct(q) ? 0
                                      : NAN;
}

/* Local mechanisms alone are a matter of one person's record; all else that is given here
 * is taken under add-remove. */
static enum dpf_relation relation_of(const struct dpf_account_question *q)
{
    bool local = true;
    for (size_t i = 0; i < q->count; i++)
        local = local && q->list[i].kind->is_local && q->list[i].rate == 1;
    return local ? DPF_LOCAL : DPF_ADD_REMOVE;
}

static enum dpf_status make_account(const struct dpf_account_question *q,
                                    const struct dpf_stage *s, enum dpf_method method,
                                    struct dpf_account *a, struct dpf_error *e)
{
    struct dpf_account_request request = {.method = method, .delta = delta_of(q)};
    for (int i = 0; q->relation && dpf_relation_words[i]; i++)
        if (strcmp(dpf_relation_words[i], q->relation) == 0) {
            request.relation = (enum dpf_relation)i;
            request.convert = true;
        }
    return dpf_account_is_direct(q)
               ? dpf_account_list(a, q->list, q->count, relation_of(q), &request, e)
               : dpf_account_ledger(a, &s->in, &request, e);
}

/* What one method says, as a row and as an object of the list in `members`. */
static void add_method(const struct dpf_account_question *q, enum dpf_method method,
                       const struct dpf_account *a, const char *why,
                       struct dpf_findings *f)
{
    const char *name = dpf_methods[method].name;
    struct dpf_text row = {0};
    dpf_text_addf(&f->members, "%s{\"method\":\"%s\",\"epsilon\":", method ? "," : "",
                  name);
    if (a) {
        dpf_text_add(&row, "epsilon ");
        dpf_text_add_epsilon(&row, a->proven.epsilon);
        dpf_text_add_real(&f->members, a->proven.epsilon);
    } else {
        dpf_text_add(&row, why);
        dpf_text_add(&f->members, "null,\"why\":");
        dpf_text_add_json(&f->members, why, strlen(why));
    }
    double linear = a && method == DPF_METHOD_STRONG && q->count == 1
                        ? dpf_strong_linear_epsilon(&q->list[0], delta_of(q))
                        : NAN;
    if (!isnan(linear)) {
        dpf_text_add(&row, "  (with linear amplification, no valid bound: ");
        dpf_text_add_epsilon(&row, linear);
        dpf_text_add(&row, ")");
    }
    dpf_findings_add_row(f, NAME_COLUMNS, name, "%s", dpf_text_get(&row));
    dpf_text_add(&f->members, "}");
    dpf_text_release(&row);
}

static enum dpf_status add_methods(const struct dpf_account_question *q,
                                   const struct dpf_stage *s, struct dpf_findings *f,
                                   struct dpf_error *e)
{
    dpf_text_add_key(&f->members, "methods");
    dpf_text_add(&f->members, "[");
    for (int m = 0; m < DPF_METHOD_BEST; m++) {
        enum dpf_method method = (enum dpf_method)m;
        struct dpf_account a;
        struct dpf_error own = {.status = DPF_OK};
        enum dpf_status status = make_account(q, s, method, &a, &own);
        if (status == DPF_PRIVACY || status == DPF_SYSTEM)
            return dpf_fail(e, status, "%s", own.message);
        add_method(q, method, status == DPF_OK ? &a : NULL, own.message, f);
        if (status == DPF_OK)
            dpf_account_release(&a);
    }
    dpf_text_add(&f->members, "]");
    return DPF_OK;
}

static bool is_within(const struct dpf_account_question *q,
                      const struct dpf_guarantee *cost)
{
    return cost->epsilon <= q->budget_epsilon && cost->delta <= q->budget_delta;
}

static enum dpf_status check_budget(const struct dpf_account_question *q,
                                    const struct dpf_account *a, struct dpf_error *e)
{
    struct dpf_text cost = {0};
    bool window = a->has_windows && strcmp(q->unit, "record") == 0;
    const struct dpf_guarantee *proven = window ? &a->per_window : &a->proven;
    if (q->budget && is_within(q, proven) && !is_within(q, &a->proven))
        dpf_notice("one window is within the budget '%s', a person is not", q->budget);
    if (!q->budget || is_within(q, proven))
        return DPF_OK;
    dpf_text_add_epsilon(&cost, proven->epsilon);
    enum dpf_status status =
        dpf_fail(e, DPF_PRIVACY,
                 "the proven cost%s, epsilon %s at delta %g, is above the budget '%s'",
                 !a->has_windows ? ""
                 : window        ? " for one window"
                                 : " for a person",
                 dpf_text_get(&cost), proven->delta, q->budget);
    dpf_text_release(&cost);
    return status;
}

/* The theorem is about messages that were there, each from a local randomiser that every
 * person used for certain: not about more messages than that, nor about a sampled
 * epsilon, which is what an observer learns who does not know who took part. */
static enum dpf_status check_shuffled(const struct dpf_account_question *q,
                                      const struct dpf_stage *s, struct dpf_error *e)
{
    for (size_t i = 0; i < q->count; i++)
        if (q->list[i].rate < 1)
            return dpf_fail(e, DPF_PRIVACY,
                            "'--shuffled' needs a local epsilon: one with a sampling "
                            "rate of %g is none",
                            q->list[i].rate);
    if (!dpf_account_is_direct(q) && (uint64_t)q->shuffled > s->records_in)
        return dpf_fail(e, DPF_PRIVACY,
                        "'--shuffled %lld' is more than the %llu messages of the stream",
                        (long long)q->shuffled, (unsigned long long)s->records_in);
    return DPF_OK;
}

/* What is left of the local epsilon for whoever sees only shuffled messages. */
static enum dpf_status shuffled_epsilon(const struct dpf_account_question *q,
                                        const struct dpf_stage *s, double *epsilon,
                                        struct dpf_error *e)
{
    struct dpf_account_question pure = *q;
    struct dpf_account a;
    pure.delta = 0; /* the theorem takes a local epsilon without delta */
    enum dpf_status status = check_shuffled(q, s, e);
    if (status == DPF_OK)
        status = make_account(&pure, s, DPF_METHOD_BASIC, &a, e);
    if (status != DPF_OK)
        return status;
    bool alike = a.alike || dpf_account_is_direct(q);
    *epsilon =
        alike && isfinite(a.proven.epsilon)
            ? dpf_shuffled_epsilon(a.proven.epsilon, (uint64_t)q->shuffled, q->delta)
            : INFINITY;
    dpf_account_release(&a);
    return isfinite(*epsilon)
               ? DPF_OK
               : dpf_fail(e, DPF_PRIVACY,
                          "'--shuffled' needs one local randomiser with a finite epsilon "
                          "for all, one message for each person, and nothing beside it "
                          "that identifies its person (clear labels, positions, copies, "
                          "different owners)");
}

static enum dpf_status add_shuffled(const struct dpf_account_question *q,
                                    const struct dpf_stage *s, struct dpf_findings *f,
                                    struct dpf_error *e)
{
    double epsilon;
    struct dpf_text shown = {0};
    enum dpf_status status = shuffled_epsilon(q, s, &epsilon, e);
    if (status != DPF_OK)
        return status;
    dpf_text_add_epsilon(&shown, epsilon);
    dpf_findings_add_row(f, NAME_COLUMNS, "shuffled",
                         "epsilon %s  delta %g  replace-one, if a trusted shuffler hid "
                         "the order of %lld messages (Feldman et al. 2021)",
                         dpf_text_get(&shown), q->delta, (long long)q->shuffled);
    dpf_text_release(&shown);
    dpf_text_add_key(&f->members, "shuffled");
    dpf_text_add(&f->members, "{\"epsilon\":");
    dpf_text_add_real(&f->members, epsilon);
    dpf_text_add(&f->members, ",\"delta\":");
    dpf_text_add_real(&f->members, q->delta);
    dpf_text_addf(&f->members, ",\"messages\":%lld,\"relation\":\"replace-one\"}",
                  (long long)q->shuffled);
    return DPF_OK;
}

static enum dpf_status answer_cost(const struct dpf_account_question *q,
                                   const struct dpf_stage *s, struct dpf_text *out,
                                   enum dpf_status *budget, struct dpf_error *e)
{
    struct dpf_account a;
    struct dpf_findings f = {0};
    enum dpf_status status = make_account(q, s, method_of(q), &a, e);
    if (status != DPF_OK)
        return status;
    dpf_account_report(&a, dpf_account_is_direct(q) ? NULL : &s->in.events, &f);
    if (q->shuffled)
        status = add_shuffled(q, s, &f, e);
    if (status == DPF_OK && strcmp(q->method, "all") == 0)
        status = add_methods(q, s, &f, e);
    if (status == DPF_OK)
        *budget = check_budget(q, &a, e);
    if (q->json) {
        dpf_findings_json(&f, out);
        dpf_text_add(out, "\n");
    } else {
        dpf_findings_table(&f, out);
    }
    dpf_findings_release(&f);
    dpf_account_release(&a);
    return status;
}

static enum dpf_status answer_solve(struct dpf_account_question *q, struct dpf_text *out,
                                    struct dpf_error *e)
{
    const struct dpf_account_unknown *u = q->unknown;
    enum dpf_method method = method_of(q), used;
    enum dpf_status status =
        u->solve(method, q->list, q->count, 0, q->epsilon, q->delta, e);
    double epsilon;
    if (status == DPF_OK)
        status =
            dpf_compose_epsilon(method, q->list, q->count, q->delta, &epsilon, &used, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_spending *s = &q->list[0];
    dpf_text_addf(out, q->json ? "{\"%s\":" : "%s ",
                  u->is_parameter ? s->kind->question.key : u->name);
    dpf_text_add_real(out, u->get(s));
    dpf_text_add(out, q->json ? ",\"epsilon\":" : "  epsilon ");
    if (q->json)
        dpf_text_add_real(out, epsilon);
    else
        dpf_text_add_epsilon(out, epsilon);
    dpf_text_addf(out,
                  q->json ? ",\"delta\":%.17g,\"method\":\"%s\","
                            "\"relation\":\"add-remove\"}\n"
                          : "  delta %g  by %s, add-remove\n",
                  q->delta, dpf_methods[used].name);
    return DPF_OK;
}

/* The delta at an epsilon. */
static enum dpf_status answer_delta(const struct dpf_account_question *q,
                                    struct dpf_text *out, struct dpf_error *e)
{
    double delta;
    enum dpf_status status = dpf_compose_delta(q->list, q->count, q->epsilon, &delta, e);
    dpf_text_add(out, q->json ? "{\"epsilon\":" : "epsilon ");
    dpf_text_add_real(out, q->epsilon);
    dpf_text_addf(
        out, q->json ? ",\"delta\":%.17g,\"relation\":\"%s\"}\n" : "  delta %.6e  %s\n",
        q->json ? delta : delta * (1 + 1e-6), dpf_relation_words[relation_of(q)]);
    return status;
}

static enum dpf_status answer_sweep(struct dpf_account_question *q, struct dpf_text *out,
                                    struct dpf_error *e)
{
    const struct dpf_account_unknown *u = q->unknown;
    enum dpf_method method = method_of(q);
    struct dpf_spending *s = &q->list[0];
    enum dpf_status status = DPF_OK;
    dpf_text_addf(out, q->json ? "[" : "%s,epsilon\n", u->key);
    for (int64_t i = 0; status == DPF_OK && i < q->sweep_points; i++) {
        double share = (double)i / (double)(q->sweep_points - 1), epsilon;
        double x = q->sweep_lo * pow(q->sweep_hi / q->sweep_lo, share);
        x = u->set(s, x);
        status = dpf_compose_epsilon(method, q->list, q->count, delta_of(q), &epsilon,
                                     NULL, e);
        if (q->json)
            dpf_text_addf(out, "%s{\"%s\":", i ? "," : "", u->key);
        dpf_text_add_real(out, x);
        dpf_text_add(out, q->json ? ",\"epsilon\":" : ",");
        dpf_text_add_real(out, epsilon);
        dpf_text_add(out, q->json ? "}" : "\n");
    }
    dpf_text_add(out, q->json ? "]\n" : "");
    return status;
}

enum dpf_status dpf_account_answer(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_account_question *q = s->state;
    struct dpf_text out = {0};
    enum dpf_status budget = DPF_OK;
    enum dpf_status status = q->solve          ? answer_solve(q, &out, e)
                             : q->sweep        ? answer_sweep(q, &out, e)
                             : q->epsilon >= 0 ? answer_delta(q, &out, e)
                                               : answer_cost(q, s, &out, &budget, e);
    if (status == DPF_OK && out.failed)
        status = dpf_fail_memory(e);
    if (status == DPF_OK)
        fputs(dpf_text_get(&out), s->text);
    if (budget != DPF_OK)
        fflush(s->text);
    dpf_text_release(&out);
    return status == DPF_OK ? budget : status;
}
