#include "options/options.h"

#include <stdio.h>
#include <string.h>

#include "base/digest.h"

#include "base/banned.h"

enum { HELP_COLUMN = 26, HELP_WIDTH = 88 };

/* Wrap `text` at HELP_WIDTH with a hanging indent; the cursor stands at `column`. */
static void wrap(struct dpf_text *out, const char *text, size_t column)
{
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + word > HELP_WIDTH) {
            dpf_text_addf(out, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (column > HELP_COLUMN) {
            dpf_text_add(out, " ");
            column++;
        }
        dpf_text_addn(out, text, word);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    dpf_text_add(out, "\n");
}

static void add_choices(const struct dpf_option *o, const char *separator,
                        struct dpf_text *out)
{
    const char *name;
    for (size_t i = 0;
         o->choices && (name = dpf_row_name(o->choices, o->choice_bytes, i)); i++)
        dpf_text_addf(out, "%s%s", i ? separator : "", name);
}

void dpf_options_help(const struct dpf_option *table, struct dpf_text *out)
{
    for (const struct dpf_option *o = table; o->kind != DPF_KIND_END; o++) {
        if (o->flags & DPF_OPTION_HIDDEN)
            continue;
        struct dpf_text left = {0};
        if (o->letter)
            dpf_text_addf(&left, "  -%c, --%s", o->letter, o->name);
        else
            dpf_text_addf(&left, "      --%s", o->name);
        if (o->arg)
            dpf_text_addf(&left, " %s", o->arg);
        dpf_text_add(out, dpf_text_get(&left));
        if (left.size + 2 > HELP_COLUMN)
            dpf_text_addf(out, "\n%*s", HELP_COLUMN, "");
        else
            dpf_text_addf(out, "%*s", (int)(HELP_COLUMN - left.size), "");
        dpf_text_release(&left);
        struct dpf_text right = {0};
        dpf_text_add(&right, o->help);
        if (o->choices) {
            dpf_text_add(&right, " (");
            add_choices(o, "|", &right);
            dpf_text_add(&right, ")");
        }
        if (o->flags & DPF_OPTION_REQUIRED)
            dpf_text_add(&right, " (required)");
        wrap(out, dpf_text_get(&right), HELP_COLUMN);
        dpf_text_release(&right);
    }
}

void dpf_roff_escape(const char *text, struct dpf_text *out)
{
    bool line_start = true;
    for (; *text; text++) {
        if (*text == '\\')
            dpf_text_add(out, "\\e");
        else if (*text == '-')
            dpf_text_add(out, "\\-");
        else if ((*text == '.' || *text == '\'') && line_start)
            dpf_text_addf(out, "\\&%c", *text);
        else
            dpf_text_addn(out, text, 1);
        line_start = *text == '\n';
    }
}

void dpf_options_man(const struct dpf_option *table, struct dpf_text *out)
{
    for (const struct dpf_option *o = table; o->kind != DPF_KIND_END; o++) {
        if (o->flags & DPF_OPTION_HIDDEN)
            continue;
        dpf_text_add(out, ".TP\n");
        if (o->letter)
            dpf_text_addf(out, "\\fB\\-%c\\fR, ", o->letter);
        dpf_text_add(out, "\\fB\\-\\-");
        dpf_roff_escape(o->name, out);
        dpf_text_add(out, "\\fR");
        if (o->arg) {
            dpf_text_add(out, " \\fI");
            dpf_roff_escape(o->arg, out);
            dpf_text_add(out, "\\fR");
        }
        dpf_text_add(out, "\n");
        dpf_roff_escape(o->help, out);
        if (o->choices) {
            dpf_text_add(out, " (");
            add_choices(o, ", ", out);
            dpf_text_add(out, ")");
        }
        dpf_text_add(out, "\n");
    }
}

void dpf_options_completion(const struct dpf_option *table, struct dpf_text *out)
{
    static const char *const kinds[] = {
        [DPF_KIND_FLAG] = "flag",      [DPF_KIND_INT] = "value",
        [DPF_KIND_REAL] = "value",     [DPF_KIND_RANGE] = "value",
        [DPF_KIND_STRING] = "value",   [DPF_KIND_CHOICE] = "choice",
        [DPF_KIND_FILE] = "file",      [DPF_KIND_OUTFILE] = "file",
        [DPF_KIND_ENDPOINT] = "file",  [DPF_KIND_LIST] = "file",
        [DPF_KIND_ENDPOINTS] = "file",
    };
    for (const struct dpf_option *o = table; o->kind != DPF_KIND_END; o++) {
        if (o->flags & DPF_OPTION_HIDDEN)
            continue;
        dpf_text_addf(out, "--%s\t%s\t", o->name, kinds[o->kind]);
        add_choices(o, " ", out);
        dpf_text_add(out, "\n");
    }
}

/* Quoted, so that no value can look like another option's line. */
static void add_word(const char *word, struct dpf_text *out)
{
    if (word)
        dpf_text_add_json(out, word, strlen(word));
    else
        dpf_text_add(out, "none");
}

static enum dpf_status add_content(const char *path, struct dpf_text *out,
                                   struct dpf_error *e)
{
    char hex[DPF_FINGERPRINT_HEX + 1];
    enum dpf_status status = path ? dpf_fingerprint_file(path, hex, e) : DPF_OK;
    if (status == DPF_OK)
        dpf_text_add(out, path ? hex : "none");
    return status;
}

static enum dpf_status add_value(const struct dpf_option *o, struct dpf_text *out,
                                 struct dpf_error *e)
{
    const char *word = NULL;
    if (o->kind == DPF_KIND_STRING || o->kind == DPF_KIND_CHOICE ||
        o->kind == DPF_KIND_FILE || o->kind == DPF_KIND_OUTFILE ||
        o->kind == DPF_KIND_ENDPOINT)
        word = *(const char *const *)o->target;
    switch (o->kind) {
    case DPF_KIND_FLAG:
        dpf_text_add(out, *(const bool *)o->target ? "yes" : "no");
        return DPF_OK;
    case DPF_KIND_INT:
        dpf_text_addf(out, "%lld", (long long)*(const int64_t *)o->target);
        return DPF_OK;
    case DPF_KIND_REAL:
        dpf_text_addf(out, "%.17g", *(const double *)o->target);
        return DPF_OK;
    case DPF_KIND_RANGE: {
        const struct dpf_range *r = o->target;
        if (r->given)
            dpf_text_addf(out, "%.17g:%.17g", r->lo, r->hi);
        else
            dpf_text_add(out, "none");
        return DPF_OK;
    }
    case DPF_KIND_STRING:
    case DPF_KIND_CHOICE:
    case DPF_KIND_OUTFILE:
        add_word(word, out);
        return DPF_OK;
    case DPF_KIND_FILE:
        return add_content(word, out, e);
    case DPF_KIND_ENDPOINT:
        dpf_text_add(out, word ? "stream" : "none");
        return DPF_OK;
    case DPF_KIND_ENDPOINTS:
        dpf_text_addf(out, "%zu streams", ((const struct dpf_list *)o->target)->count);
        return DPF_OK;
    case DPF_KIND_LIST: {
        const struct dpf_list *list = o->target;
        dpf_text_addf(out, "%zu", list->count);
        for (size_t i = 0; i < list->count; i++) {
            dpf_text_add(out, " ");
            add_word(list->items[i], out);
        }
        return DPF_OK;
    }
    case DPF_KIND_END:
        break;
    }
    return dpf_fail(e, DPF_USAGE, "option '--%s' has no value", o->name);
}

enum dpf_status dpf_options_identity(const struct dpf_option *table, struct dpf_text *out,
                                     struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    for (const struct dpf_option *o = table; status == DPF_OK && o->kind != DPF_KIND_END;
         o++) {
        if (o->may_change)
            continue;
        dpf_text_addf(out, "--%s ", o->name);
        status = add_value(o, out, e);
        dpf_text_add(out, "\n");
    }
    return status;
}
