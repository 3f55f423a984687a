/* The question that the options of `account` ask: parsed, and checked to go together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "account.h"
#include "base/memory.h"
#include "base/number.h"

#include "base/banned.h"

const char *const dpf_account_units[] = {"person", "record", NULL};

void dpf_account_list_methods(struct dpf_account_question *q)
{
    for (int i = 0; i <= DPF_METHOD_BEST; i++)
        q->methods[i] = dpf_methods[i].name;
    q->methods[DPF_METHOD_BEST + 1] = "all";
}

static double get_parameter(const struct dpf_spending *s)
{
    return s->parameter;
}

static double set_parameter(struct dpf_spending *s, double value)
{
    return s->parameter = value;
}

static double get_count(const struct dpf_spending *s)
{
    return (double)s->count;
}

static double set_count(struct dpf_spending *s, double value)
{
    s->count = (uint64_t)floor(value + 1e-9);
    return (double)s->count;
}

static double get_rate(const struct dpf_spending *s)
{
    return s->rate;
}

static double set_rate(struct dpf_spending *s, double value)
{
    s->rate = fmin(value, 1);
    return value;
}

const struct dpf_account_unknown dpf_account_unknowns[] = {
    {"sigma", "sigma", true, dpf_solve_parameter, get_parameter, set_parameter},
    {"steps", "steps", false, dpf_solve_count, get_count, set_count},
    {"rate", "q", false, dpf_solve_rate, get_rate, set_rate},
    {.name = NULL}};

static bool key_is(const char *key, size_t size, const char *name)
{
    return strlen(name) == size && memcmp(key, name, size) == 0;
}

/* One "key=value". */
static enum dpf_status parse_pair(struct dpf_spending *s, const char *text, size_t size,
                                  struct dpf_error *e)
{
    const char *main_key = s->kind->question.key;
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
            return dpf_fail(e, DPF_USAGE, "'%.*s' is not a whole number from 1 to 1e12",
                            (int)size, text);
        s->count = (uint64_t)value;
    } else if (s->kind->has_choices && key_is(text, key, "choices")) {
        if (!whole || value < 2)
            return dpf_fail(e, DPF_USAGE, "'%.*s' is not a whole number of at least 2",
                            (int)size, text);
        s->choices = (uint64_t)value;
    } else {
        return dpf_fail(e, DPF_USAGE, "unknown name in '%.*s': there are %s, q, steps%s",
                        (int)size, text, main_key,
                        s->kind->has_choices ? ", choices" : "");
    }
    return DPF_OK;
}

/* What is to be found, or is swept, need not be given. */
static enum dpf_status parse_mechanism(struct dpf_account_question *q,
                                       const struct dpf_spending_kind *kind,
                                       const char *text, struct dpf_error *e)
{
    struct dpf_spending *s = &q->list[q->count];
    *s = (struct dpf_spending){
        .kind = kind, .parameter = NAN, .choices = 2, .rate = 1, .count = 1};
    while (*text) {
        size_t size = strcspn(text, ",");
        enum dpf_status status = parse_pair(s, text, size, e);
        if (status != DPF_OK)
            return status;
        text += size + (text[size] == ',');
    }
    bool found = q->count == 0 && q->unknown && q->unknown->is_parameter;
    if (found && isnan(s->parameter))
        s->parameter = 1;
    if (isnan(s->parameter))
        return dpf_fail(e, DPF_USAGE, "'%s' is missing", kind->question.key);
    q->count++;
    return dpf_spending_check(s, e);
}

/* LO:HI:N, evenly in logarithms. */
static bool parse_points(struct dpf_account_question *q, const char *lo)
{
    const char *hi = strchr(lo, ':'), *n = hi ? strchr(hi + 1, ':') : NULL;
    double points;
    if (!n || !dpf_parse_real_n(lo, (size_t)(hi - lo), &q->sweep_lo) ||
        !dpf_parse_real_n(hi + 1, (size_t)(n - hi - 1), &q->sweep_hi) ||
        !dpf_parse_real(n + 1, &points) || !(q->sweep_lo > 0) ||
        !(q->sweep_hi >= q->sweep_lo) || points != floor(points) || points < 2 ||
        points > 100000)
        return false;
    q->sweep_points = (int64_t)points;
    return true;
}

/* sigma=LO:HI:N, q=..., steps=... */
static enum dpf_status parse_sweep(struct dpf_account_question *q, struct dpf_error *e)
{
    size_t key = strcspn(q->sweep, "=");
    for (const struct dpf_account_unknown *u = dpf_account_unknowns; u->name; u++)
        if (q->sweep[key] == '=' && key_is(q->sweep, key, u->key) &&
            parse_points(q, q->sweep + key + 1)) {
            q->unknown = u;
            return DPF_OK;
        }
    return dpf_fail(e, DPF_USAGE,
                    "'%s' is not sigma, q or steps=LO:HI:N with 0 < LO <= HI", q->sweep);
}

static enum dpf_status parse_budget(struct dpf_account_question *q, struct dpf_error *e)
{
    const char *comma = strchr(q->budget, ',');
    if (!comma ||
        !dpf_parse_real_n(q->budget, (size_t)(comma - q->budget), &q->budget_epsilon) ||
        !dpf_parse_real(comma + 1, &q->budget_delta) || !(q->budget_epsilon >= 0) ||
        !(q->budget_delta >= 0) || !(q->budget_delta < 1))
        return dpf_fail(e, DPF_USAGE, "'%s' is not EPSILON,DELTA", q->budget);
    return DPF_OK;
}

static bool needs_delta(const struct dpf_account_question *q)
{
    for (int i = 0; i < DPF_SPENDING_KIND_COUNT; i++)
        if (q->mechanisms[i].count && dpf_spending_kinds[i]->is_unbounded)
            return true;
    return false;
}

static enum dpf_status check_together(const struct dpf_account_question *q,
                                      struct dpf_error *e)
{
    bool direct = dpf_account_is_direct(q);
    if ((q->solve || q->sweep) && !direct)
        return dpf_fail(e, DPF_USAGE, "'--solve' and '--sweep' need a mechanism");
    if (q->solve && q->sweep)
        return dpf_fail(e, DPF_USAGE, "give one of --solve and --sweep");
    if (q->solve && (q->epsilon < 0 || q->delta < 0))
        return dpf_fail(e, DPF_USAGE, "'--solve' needs '--epsilon' and '--delta'");
    if (!q->solve && q->epsilon >= 0 &&
        (!direct || q->delta >= 0 || q->sweep || q->budget || q->relation ||
         strcmp(q->method, "best") != 0))
        return dpf_fail(e, DPF_USAGE,
                        "'--epsilon' goes with '--solve', or with mechanisms alone");
    if ((q->solve || q->sweep) && strcmp(q->method, "all") == 0)
        return dpf_fail(e, DPF_USAGE, "'--solve' and '--sweep' need one method");
    if ((q->solve || q->sweep) && q->relation)
        return dpf_fail(e, DPF_USAGE, "'--relation' does not go with --solve or --sweep");
    if (q->shuffled && (q->solve || q->sweep || q->epsilon >= 0 || !(q->delta > 0) ||
                        q->budget || strcmp(q->method, "all") == 0))
        return dpf_fail(e, DPF_USAGE,
                        "'--shuffled' needs a '--delta' above 0, and does not go with "
                        "--solve, --sweep, --epsilon, --budget or --method all");
    if (!q->budget && strcmp(q->unit, "person") != 0)
        return dpf_fail(e, DPF_USAGE, "'--unit' goes with '--budget'");
    if (direct && q->delta < 0 && q->epsilon < 0 && !q->budget &&
        (needs_delta(q) || q->sweep))
        return dpf_fail(e, DPF_USAGE, "give --delta");
    return DPF_OK;
}

enum dpf_status dpf_account_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_account_question *q = s->state;
    size_t all = 0;
    for (int i = 0; i < DPF_SPENDING_KIND_COUNT; i++)
        all += q->mechanisms[i].count;
    enum dpf_status status = check_together(q, e);
    if (status == DPF_OK && q->sweep)
        status = parse_sweep(q, e);
    if (status == DPF_OK && q->budget)
        status = parse_budget(q, e);
    if (q->solve)
        q->unknown = DPF_FIND(dpf_account_unknowns, q->solve);
    q->list = dpf_calloc(all + 1, sizeof *q->list);
    if (!q->list)
        return dpf_fail_memory(e);
    for (int i = 0; i < DPF_SPENDING_KIND_COUNT; i++)
        for (size_t k = 0; status == DPF_OK && k < q->mechanisms[i].count; k++)
            status =
                parse_mechanism(q, dpf_spending_kinds[i], q->mechanisms[i].items[k], e);
    s->no_input = dpf_account_is_direct(q);
    return status;
}

bool dpf_account_is_direct(const struct dpf_account_question *q)
{
    for (int i = 0; i < DPF_SPENDING_KIND_COUNT; i++)
        if (q->mechanisms[i].count)
            return true;
    return false;
}
