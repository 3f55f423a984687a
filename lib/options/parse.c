#include "options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"

#include "base/banned.h"

static const struct dpf_option *find(const struct dpf_option *const *tables,
                                     const char *name, size_t size, char letter)
{
    for (; *tables; tables++)
        for (const struct dpf_option *o = *tables; o->kind != DPF_KIND_END; o++)
            if (letter ? o->letter == letter
                       : strlen(o->name) == size && memcmp(o->name, name, size) == 0)
                return o;
    return NULL;
}

static enum dpf_status unknown(const struct dpf_option *const *tables, const char *word,
                               struct dpf_error *e)
{
    const char *names[256] = {NULL};
    size_t count = 0;
    for (; *tables; tables++)
        for (const struct dpf_option *o = *tables; o->kind != DPF_KIND_END; o++)
            if (!(o->flags & DPF_OPTION_HIDDEN) && count + 1 < 256)
                names[count++] = o->name;
    char bare[64];
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word, "="), word);
    const char *near = DPF_NEAREST(names, bare + strspn(bare, "-"));
    if (near)
        return dpf_fail(e, DPF_USAGE, "unknown option '%s' (did you mean '--%s'?)", bare,
                        near);
    return dpf_fail(e, DPF_USAGE, "unknown option '%s'", bare);
}

static enum dpf_status store_choice(const struct dpf_option *o, const char *value,
                                    struct dpf_error *e)
{
    const void *row = dpf_row_find(o->choices, o->choice_bytes, value);
    const char *name;
    if (row) {
        *(const char **)o->target = *(const char *const *)row;
        return DPF_OK;
    }
    struct dpf_text all = {0};
    for (size_t i = 0; (name = dpf_row_name(o->choices, o->choice_bytes, i)); i++)
        dpf_text_addf(&all, "%s%s", i ? ", " : "", name);
    dpf_fail(e, DPF_USAGE, "option '--%s' is one of %s, not '%s'", o->name,
             dpf_text_get(&all), value);
    dpf_text_release(&all);
    return DPF_USAGE;
}

static enum dpf_status store_number(const struct dpf_option *o, const char *value,
                                    struct dpf_error *e)
{
    double real = 0;
    bool good;
    if (o->kind == DPF_KIND_INT) {
        int64_t *target = o->target, parsed = 0;
        good = dpf_parse_int(value, &parsed);
        real = (double)parsed;
        if (good && (!(o->lo < o->hi) || (real >= o->lo && real <= o->hi)))
            *target = parsed;
    } else {
        good = dpf_parse_real(value, &real);
        if (good && (!(o->lo < o->hi) || (real >= o->lo && real <= o->hi)))
            *(double *)o->target = real;
    }
    if (!good)
        return dpf_fail(e, DPF_USAGE, "option '--%s' needs %s, not '%s'", o->name,
                        o->kind == DPF_KIND_INT ? "a whole number" : "a finite number",
                        value);
    if (o->lo < o->hi && (real < o->lo || real > o->hi))
        return dpf_fail(e, DPF_USAGE, "option '--%s' must be from %g to %g, not '%s'",
                        o->name, o->lo, o->hi, value);
    return DPF_OK;
}

static enum dpf_status store_list(const struct dpf_option *o, const char *value,
                                  struct dpf_error *e)
{
    struct dpf_list *list = o->target;
    if (list->count >= DPF_LIST_MAX)
        return dpf_fail(e, DPF_USAGE, "option '--%s' is given more than %d times",
                        o->name, DPF_LIST_MAX);
    const char **items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items)
        return dpf_fail_memory(e);
    list->items = items;
    list->items[list->count++] = value;
    return DPF_OK;
}

static enum dpf_status store(const struct dpf_option *o, const char *value,
                             struct dpf_error *e)
{
    switch (o->kind) {
    case DPF_KIND_FLAG:
        *(bool *)o->target = true;
        return DPF_OK;
    case DPF_KIND_INT:
    case DPF_KIND_REAL:
        return store_number(o, value, e);
    case DPF_KIND_RANGE: {
        struct dpf_range *range = o->target;
        if (!dpf_parse_range(value, &range->lo, &range->hi))
            return dpf_fail(e, DPF_USAGE,
                            "option '--%s' needs LO:HI with LO below HI, not '%s'",
                            o->name, value);
        range->given = true;
        return DPF_OK;
    }
    case DPF_KIND_CHOICE:
        return store_choice(o, value, e);
    case DPF_KIND_LIST:
    case DPF_KIND_ENDPOINTS:
        return store_list(o, value, e);
    case DPF_KIND_STRING:
    case DPF_KIND_FILE:
    case DPF_KIND_OUTFILE:
    case DPF_KIND_ENDPOINT:
        *(const char **)o->target = value;
        return DPF_OK;
    case DPF_KIND_END:
        break;
    }
    return dpf_fail(e, DPF_USAGE, "option '--%s' cannot be set", o->name);
}

static enum dpf_status add_argument(struct dpf_parsed *parsed, const char *word,
                                    struct dpf_error *e)
{
    if (!dpf_grow(&parsed->args, &parsed->arg_capacity, parsed->arg_count + 1,
                  sizeof *parsed->args))
        return dpf_fail_memory(e);
    parsed->args[parsed->arg_count++] = word;
    return DPF_OK;
}

static enum dpf_status add_option(const struct dpf_option *o, const char *value,
                                  struct dpf_parsed *parsed, struct dpf_error *e)
{
    /* A pipeline's optional file: an empty parameter is no file. */
    if (o->kind == DPF_KIND_FILE && value[0] == '\0')
        return DPF_OK;
    enum dpf_status status = store(o, value, e);
    if (status != DPF_OK)
        return status;
    if (!dpf_grow(&parsed->given, &parsed->given_capacity, parsed->given_count + 1,
                  sizeof *parsed->given))
        return dpf_fail_memory(e);
    parsed->given[parsed->given_count++] = (struct dpf_given){o, value};
    return DPF_OK;
}

enum dpf_status dpf_options_parse(const struct dpf_option *const *tables, int argc,
                                  char **argv, struct dpf_parsed *parsed,
                                  struct dpf_error *e)
{
    bool only_args = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = NULL;
        enum dpf_status status;
        if (only_args || word[0] != '-' || word[1] == '\0') {
            status = add_argument(parsed, word, e);
            if (status != DPF_OK)
                return status;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            only_args = true;
            continue;
        }
        const struct dpf_option *o;
        if (word[1] == '-') {
            size_t size = strcspn(word + 2, "=");
            o = find(tables, word + 2, size, 0);
            if (word[2 + size] == '=')
                value = word + 2 + size + 1;
        } else {
            o = find(tables, NULL, 0, word[1]);
            if (word[2])
                value = word + 2;
        }
        if (!o)
            return unknown(tables, word, e);
        if (o->kind == DPF_KIND_FLAG) {
            if (value)
                return dpf_fail(e, DPF_USAGE, "option '--%s' takes no value", o->name);
            value = "";
        } else if (!value) {
            if (i + 1 >= argc)
                return dpf_fail(e, DPF_USAGE, "option '--%s' needs a value (%s)", o->name,
                                o->arg ? o->arg : "VALUE");
            value = argv[++i];
        }
        status = add_option(o, value, parsed, e);
        if (status != DPF_OK)
            return status;
    }
    return DPF_OK;
}

void dpf_parsed_release(struct dpf_parsed *parsed)
{
    for (size_t i = 0; i < parsed->given_count; i++)
        if (parsed->given[i].option->kind == DPF_KIND_LIST ||
            parsed->given[i].option->kind == DPF_KIND_ENDPOINTS) {
            struct dpf_list *list = parsed->given[i].option->target;
            free(list->items);
            *list = (struct dpf_list){0};
        }
    free(parsed->given);
    free(parsed->args);
    *parsed = (struct dpf_parsed){0};
}

bool dpf_option_given(const struct dpf_parsed *parsed, const char *name)
{
    for (size_t i = 0; i < parsed->given_count; i++)
        if (strcmp(parsed->given[i].option->name, name) == 0)
            return true;
    return false;
}
