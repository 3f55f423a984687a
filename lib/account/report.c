/* An account as a table and as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/ledger.h"
#include "wire/stream.h"

#include "base/banned.h"

void dpf_text_add_epsilon(struct dpf_text *t, double epsilon)
{
    if (!isfinite(epsilon)) {
        dpf_text_add(t, "unbounded");
        return;
    }
    /* the accountants add 1e-13 of their own, which need not show as another digit */
    double scaled = epsilon * 1e4, up = ceil(scaled * (1 - 1e-12));
    dpf_text_addf(t, "%.4f", up / 1e4);
}

enum { NAME_COLUMNS = 10 };

static void add_row(struct dpf_findings *f, const char *name, double epsilon,
                    double delta, const char *remark)
{
    struct dpf_text value = {0};
    dpf_text_add_epsilon(&value, epsilon);
    if (isfinite(epsilon)) {
        char digits[40];
        double shown = delta;
        /* six digits, upwards */
        do {
            snprintf(digits, sizeof digits, "%.6g", shown);
            shown *= 1 + 1e-6;
        } while (strtod(digits, NULL) < delta);
        dpf_text_addf(&value, "  delta %s", digits);
    }
    dpf_findings_add_row(f, NAME_COLUMNS, name, "epsilon %s%s%s", dpf_text_get(&value),
                         *remark ? "  " : "", remark);
    dpf_text_release(&value);
}

/* The next of the lines in a->assumes; NULL at the end. */
static const char *next_line(const char **at, size_t *size)
{
    const char *line = *at;
    *size = strcspn(line, "\n");
    *at = line + *size + (line[*size] == '\n');
    return *size ? line : NULL;
}

/* A paper's unit beside the person's: never shown alone. */
static void add_window_row(const struct dpf_account *a, struct dpf_findings *f)
{
    char how[128] = "";
    if (isfinite(a->per_window.epsilon))
        snprintf(how, sizeof how, "by %s, %s, for one window only: a person has many",
                 dpf_methods[a->window_method].name, dpf_relation_words[a->relation]);
    add_row(f, "window", a->per_window.epsilon, a->per_window.delta, how);
}

static void add_rows(const struct dpf_account *a, struct dpf_findings *f)
{
    bool unused = isfinite(a->proven.epsilon) && a->mechanisms == 0;
    char how[128] = "";
    if (a->has_claim && a->source.size)
        add_row(f, "claimed", a->claimed.epsilon, a->claimed.delta, a->source.data);
    if (isfinite(a->proven.epsilon))
        snprintf(how, sizeof how, "by %s, %s%s", dpf_methods[a->method].name,
                 dpf_relation_words[a->relation],
                 a->has_windows ? ", for a person with all rows" : "");
    if (unused)
        dpf_findings_add_row(f, NAME_COLUMNS, "proven",
                             "epsilon 0  no private data was used");
    else
        add_row(f, "proven", a->proven.epsilon, a->proven.delta, how);
    if (!unused && a->has_windows)
        add_window_row(a, f);
    if (!unused && a->why.size)
        dpf_findings_add_row(f, NAME_COLUMNS, "why", "%s", a->why.data);
    const char *at = dpf_text_get(&a->assumes), *line;
    for (size_t size; (line = next_line(&at, &size));)
        dpf_findings_add_row(f, NAME_COLUMNS, "assuming", "%.*s", (int)size, line);
}

static void add_number(struct dpf_text *out, const char *key, double value)
{
    dpf_text_add_key(out, key);
    dpf_text_add_real(out, value);
}

static void add_string(struct dpf_text *out, const char *key, const char *value)
{
    dpf_text_add_key(out, key);
    dpf_text_add_json(out, value, strlen(value));
}

static void add_guarantee(const struct dpf_guarantee *g, enum dpf_method method,
                          enum dpf_relation relation, struct dpf_text *out)
{
    add_number(out, "epsilon", g->epsilon);
    add_number(out, "delta", g->delta);
    add_string(out, "relation", dpf_relation_words[relation]);
    add_string(out, "method", isfinite(g->epsilon) ? dpf_methods[method].name : "none");
}

static void add_proven(const struct dpf_account *a, struct dpf_text *out)
{
    add_guarantee(&a->proven, a->method, a->relation, out);
    if (a->has_windows)
        add_string(out, "unit", "person");
}

static void add_per_window(const struct dpf_account *a, struct dpf_text *out)
{
    dpf_text_add_key(out, "per_window");
    dpf_text_add(out, "{");
    add_guarantee(&a->per_window, a->window_method, a->relation, out);
    add_string(out, "unit", "window");
    add_string(out, "why", dpf_text_get(&a->window_why));
    dpf_text_add(out, "}");
}

static void add_events(const struct dpf_values *events, struct dpf_text *out)
{
    msgpack_unpacked one;
    size_t at = 0;
    msgpack_unpacked_init(&one);
    dpf_text_add(out, "[");
    for (uint32_t i = 0; i < events->count; i++) {
        if (msgpack_unpack_next(&one, (const char *)events->bytes.data,
                                events->bytes.size, &at) != MSGPACK_UNPACK_SUCCESS)
            break;
        dpf_text_add(out, i ? "," : "");
        dpf_object_to_json(&one.data, out);
    }
    dpf_text_add(out, "]");
    msgpack_unpacked_destroy(&one);
}

static void add_claimed(const struct dpf_account *a, struct dpf_text *out)
{
    dpf_text_add_key(out, "claimed");
    if (!a->has_claim) {
        dpf_text_add(out, "null");
        return;
    }
    dpf_text_add(out, "{");
    add_number(out, "epsilon", a->claimed.epsilon);
    add_number(out, "delta", a->claimed.delta);
    add_string(out, "source", dpf_text_get(&a->source));
    dpf_text_add(out, "}");
}

static void add_assumptions(const struct dpf_account *a, struct dpf_text *out)
{
    const char *at = dpf_text_get(&a->assumes), *line, *comma = "";
    dpf_text_add_key(out, "assumes");
    dpf_text_add(out, "[");
    for (size_t size; (line = next_line(&at, &size)); comma = ",") {
        dpf_text_add(out, comma);
        dpf_text_add_json(out, line, size);
    }
    dpf_text_add(out, "]");
}

static void add_members(const struct dpf_account *a, const struct dpf_values *events,
                        struct dpf_text *out)
{
    add_proven(a, out);
    add_claimed(a, out);
    dpf_text_add_key(out, "proven");
    dpf_text_add(out, "{");
    add_proven(a, out);
    add_string(out, "why", dpf_text_get(&a->why));
    add_assumptions(a, out);
    dpf_text_add(out, "}");
    if (a->has_windows)
        add_per_window(a, out);
    if (events) {
        dpf_text_add_key(out, "events");
        add_events(events, out);
    }
}

void dpf_account_report(const struct dpf_account *a, const struct dpf_values *events,
                        struct dpf_findings *f)
{
    add_rows(a, f);
    add_members(a, events, &f->members);
}

void dpf_account_table(const struct dpf_account *a, struct dpf_text *out)
{
    struct dpf_findings f = {0};
    add_rows(a, &f);
    dpf_findings_table(&f, out);
    dpf_findings_release(&f);
}

void dpf_account_json(const struct dpf_account *a, const struct dpf_values *events,
                      struct dpf_text *out)
{
    struct dpf_findings f = {0};
    add_members(a, events, &f.members);
    dpf_findings_json(&f, out);
    dpf_findings_release(&f);
}
