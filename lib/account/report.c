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

static void add_line(struct dpf_text *t, const char *name, double epsilon, double delta,
                     const char *remark)
{
    dpf_text_addf(t, "%-9s  epsilon ", name);
    dpf_text_add_epsilon(t, epsilon);
    if (isfinite(epsilon)) {
        char digits[40];
        double shown = delta;
        /* six digits, upwards */
        do {
            snprintf(digits, sizeof digits, "%.6g", shown);
            shown *= 1 + 1e-6;
        } while (strtod(digits, NULL) < delta);
        dpf_text_addf(t, "  delta %s", digits);
    }
    dpf_text_addf(t, "%s%s\n", remark && *remark ? "  " : "", remark ? remark : "");
}

/* The next of the lines in a->assumes; NULL at the end. */
static const char *next_line(const char **at, size_t *size)
{
    const char *line = *at;
    *size = strcspn(line, "\n");
    *at = line + *size + (line[*size] == '\n');
    return *size ? line : NULL;
}

static void add_assumptions(const struct dpf_account *a, struct dpf_text *out)
{
    const char *at = dpf_text_get(&a->assumes), *line;
    for (size_t size; (line = next_line(&at, &size));)
        dpf_text_addf(out, "assuming   %.*s\n", (int)size, line);
}

void dpf_account_table(const struct dpf_account *a, struct dpf_text *out)
{
    if (a->has_claim && a->source.size)
        add_line(out, "claimed", a->claimed.epsilon, a->claimed.delta, a->source.data);
    if (isfinite(a->proven.epsilon) && a->mechanisms == 0) {
        dpf_text_add(out, "proven     epsilon 0  no private data was used\n");
        add_assumptions(a, out);
        return;
    }
    char how[96] = "";
    if (isfinite(a->proven.epsilon))
        snprintf(how, sizeof how, "by %s, %s", dpf_method_words[a->method],
                 dpf_relation_words[a->relation]);
    add_line(out, "proven", a->proven.epsilon, a->proven.delta, how);
    if (a->why.size)
        dpf_text_addf(out, "why        %s\n", a->why.data);
    add_assumptions(a, out);
}

static void add_number(struct dpf_text *out, const char *key, double value)
{
    dpf_text_addf(out, "\"%s\":", key);
    if (isfinite(value))
        dpf_text_add_real(out, value);
    else
        dpf_text_add(out, "null");
}

static void add_string(struct dpf_text *out, const char *key, const char *value)
{
    dpf_text_addf(out, "\"%s\":", key);
    dpf_text_add_json(out, value, strlen(value));
}

static void add_proven(const struct dpf_account *a, struct dpf_text *out)
{
    add_number(out, "epsilon", a->proven.epsilon);
    dpf_text_add(out, ",");
    add_number(out, "delta", a->proven.delta);
    dpf_text_add(out, ",");
    add_string(out, "relation", dpf_relation_words[a->relation]);
    dpf_text_add(out, ",");
    add_string(out, "method",
               isfinite(a->proven.epsilon) ? dpf_method_words[a->method] : "none");
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

void dpf_account_json(const struct dpf_account *a, const struct dpf_values *events,
                      struct dpf_text *out)
{
    dpf_text_add(out, "{");
    add_proven(a, out);
    dpf_text_add(out, ",\"claimed\":");
    if (a->has_claim) {
        dpf_text_add(out, "{");
        add_number(out, "epsilon", a->claimed.epsilon);
        dpf_text_add(out, ",");
        add_number(out, "delta", a->claimed.delta);
        dpf_text_add(out, ",");
        add_string(out, "source", dpf_text_get(&a->source));
        dpf_text_add(out, "}");
    } else {
        dpf_text_add(out, "null");
    }
    dpf_text_add(out, ",\"proven\":{");
    add_proven(a, out);
    dpf_text_add(out, ",");
    add_string(out, "why", dpf_text_get(&a->why));
    dpf_text_add(out, ",");
    dpf_text_add(out, "\"assumes\":[");
    const char *at = dpf_text_get(&a->assumes), *line, *comma = "";
    for (size_t size; (line = next_line(&at, &size)); comma = ",") {
        dpf_text_add(out, comma);
        dpf_text_add_json(out, line, size);
    }
    dpf_text_add(out, "]}");
    if (events) {
        dpf_text_add(out, ",\"events\":");
        add_events(events, out);
    }
    dpf_text_add(out, "}");
}
