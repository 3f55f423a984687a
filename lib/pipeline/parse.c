#include "pipeline/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "pipeline/stages.h"

#include "base/banned.h"

/* One logical line: backslash-newline is passed over as white space, a comment ends it.
 */
struct cursor {
    const char *at, *end;
    int line;
    struct dpf_pipeline *p;
    const char *run_dir;
    const char *index; /* value of $i, or NULL */
    size_t commands;   /* made so far, over all statements */
    size_t references; /* likewise */
    struct dpf_error *e;
};

static enum dpf_status wrong(struct cursor *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum dpf_status wrong(struct cursor *c, const char *format, ...)
{
    char what[300];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return dpf_fail(c->e, DPF_USAGE, "%s:%d: %s", c->p->file, c->line, what);
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(char c)
{
    return is_name_start(c) || (c >= '0' && c <= '9');
}

/* ------------------------------------------------------------------------ lexing */

/* Bytes of a backslash and a line's end at the cursor, or 0. */
static size_t continues(const struct cursor *c)
{
    size_t left = (size_t)(c->end - c->at);
    if (left >= 2 && memcmp(c->at, "\\\n", 2) == 0)
        return 2;
    return left >= 3 && memcmp(c->at, "\\\r\n", 3) == 0 ? 3 : 0;
}

/* Skip blanks, continued lines and a comment. */
static void skip_blank(struct cursor *c)
{
    while (c->at < c->end) {
        if (*c->at == ' ' || *c->at == '\t' || *c->at == '\r') {
            c->at++;
        } else if (continues(c)) {
            c->at += continues(c);
            c->line++;
        } else if (*c->at == '#') {
            while (c->at < c->end && *c->at != '\n')
                c->at++;
        } else {
            return;
        }
    }
}

static bool at_line_end(struct cursor *c)
{
    skip_blank(c);
    return c->at == c->end || *c->at == '\n';
}

/* A name (letters, digits, _ and, inside, -) as heap text, or NULL. */
static char *take_name(struct cursor *c, bool dashes)
{
    const char *start = c->at;
    if (c->at == c->end || !is_name_start(*c->at))
        return NULL;
    while (c->at < c->end && (is_name(*c->at) || (dashes && *c->at == '-')))
        c->at++;
    return dpf_strndup(start, (size_t)(c->at - start));
}

static const char *param_value(const struct cursor *c, const char *name, size_t size)
{
    if (size == 1 && *name == 'i' && c->index)
        return c->index;
    if (size == 3 && memcmp(name, "run", 3) == 0)
        return c->run_dir;
    for (size_t i = 0; i < c->p->param_count; i++)
        if (strlen(c->p->params[i].name) == size &&
            memcmp(c->p->params[i].name, name, size) == 0)
            return c->p->params[i].value;
    return NULL;
}

/* $name or ${name} at the cursor. */
static enum dpf_status take_parameter(struct cursor *c, struct dpf_text *out)
{
    bool braces = c->end - c->at > 1 && c->at[1] == '{';
    const char *start = c->at + (braces ? 2 : 1), *end = start;
    while (end < c->end && is_name(*end))
        end++;
    if (end == start || (braces && (end == c->end || *end != '}')))
        return wrong(c, "'$' is not followed by a parameter's name");
    const char *value = param_value(c, start, (size_t)(end - start));
    if (!value)
        return wrong(c, "unknown parameter '%.*s'", (int)(end - start), start);
    dpf_text_add(out, value);
    if (out->size > DPF_PIPELINE_MAX_VALUE)
        return wrong(c, "a value is longer than %d characters", DPF_PIPELINE_MAX_VALUE);
    c->at = end + braces;
    return DPF_OK;
}

static bool ends_word(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '|';
}

/* A word with its quotes taken off and its parameters put in. */
static enum dpf_status take_word(struct cursor *c, struct dpf_text *out)
{
    char quote = 0;
    while (c->at < c->end) {
        char ch = *c->at;
        enum dpf_status status = DPF_OK;
        if (ch == '\n' && quote)
            return wrong(c, "a quote is not closed");
        if (!quote && ends_word(ch))
            break;
        if (quote ? ch == quote : ch == '"' || ch == '\'') {
            quote = quote ? 0 : ch;
            c->at++;
        } else if (ch == '$' && quote != '\'') {
            status = take_parameter(c, out);
        } else if (ch == '\\' && quote != '\'') {
            if (continues(c))
                break;
            if (c->end - c->at < 2 || c->at[1] == '\r')
                return wrong(c, "a backslash continues nothing");
            dpf_text_addn(out, c->at + 1, 1);
            c->at += 2;
        } else {
            dpf_text_addn(out, c->at++, 1);
        }
        if (status != DPF_OK)
            return status;
    }
    if (quote)
        return wrong(c, "a quote is not closed");
    if (out->failed)
        return dpf_fail_memory(c->e);
    if (out->size > DPF_PIPELINE_MAX_VALUE || memchr(dpf_text_get(out), '\0', out->size))
        return wrong(c, "a word is too long, or holds a NUL");
    return DPF_OK;
}

/* -------------------------------------------------------------------- references */

static enum dpf_status add_stream(struct cursor *c, struct dpf_word *w, size_t stream)
{
    if (++c->references > DPF_PIPELINE_MAX_REFERENCES)
        return wrong(c, "more than %d streams are read", DPF_PIPELINE_MAX_REFERENCES);
    size_t *grown = realloc(w->streams, (w->stream_count + 1) * sizeof *grown);
    if (!grown)
        return dpf_fail_memory(c->e);
    w->streams = grown;
    w->streams[w->stream_count++] = stream;
    return DPF_OK;
}

/* The text between [ and ], parameters put in; NULL in *out if there is no bracket. */
static enum dpf_status take_index(struct cursor *c, char **out)
{
    struct dpf_text t = {0};
    *out = NULL;
    if (c->at == c->end || *c->at != '[')
        return DPF_OK;
    c->at++;
    while (c->at < c->end && *c->at != ']' && *c->at != '\n') {
        enum dpf_status status = DPF_OK;
        if (*c->at == '$')
            status = take_parameter(c, &t);
        else
            dpf_text_addn(&t, c->at++, 1);
        if (status != DPF_OK) {
            dpf_text_release(&t);
            return status;
        }
    }
    if (c->at == c->end || *c->at != ']' || memchr(dpf_text_get(&t), '\0', t.size)) {
        dpf_text_release(&t);
        return wrong(c, "'[' is not closed");
    }
    c->at++;
    *out = dpf_strdup(dpf_text_get(&t));
    dpf_text_release(&t);
    return *out ? DPF_OK : dpf_fail_memory(c->e);
}

/* @NAME, @NAME[3], @NAME[$i], @NAME[*] at the cursor. */
static enum dpf_status take_reference(struct cursor *c, struct dpf_word *w)
{
    char *index = NULL, *label = NULL;
    c->at++;
    char *name = take_name(c, true);
    enum dpf_status status =
        name ? take_index(c, &index) : wrong(c, "'@' is not followed by a stream's name");
    bool all = index && strcmp(index, "*") == 0;
    if (status == DPF_OK)
        label = index && !all ? dpf_format("%s[%s]", name, index) : dpf_strdup(name);
    for (size_t i = 0; status == DPF_OK && i < c->p->count; i++) {
        const struct dpf_statement *s = &c->p->statements[i];
        if (all ? strcmp(s->name, name) == 0 && strcmp(s->label, name) != 0
                : label && strcmp(s->label, label) == 0)
            status = add_stream(c, w, i);
    }
    if (status == DPF_OK && !w->stream_count)
        status = wrong(c, "no stream '%s%s%s' was made above this line", name ? name : "",
                       index && !all ? "["
                       : all         ? "[*"
                                     : "",
                       index && !all ? label + strlen(name) + 1
                       : all         ? "]"
                                     : "");
    if (status == DPF_OK && c->at < c->end && !ends_word(*c->at))
        status = wrong(c, "'@%s' has something attached to it", name);
    free(name);
    free(index);
    free(label);
    return status;
}

/* -------------------------------------------------------------------- statements */

static void word_release(struct dpf_word *w)
{
    free(w->text);
    free(w->streams);
}

static void statement_release(struct dpf_statement *s)
{
    for (size_t i = 0; i < s->count; i++) {
        for (size_t j = 0; j < s->commands[i].count; j++)
            word_release(&s->commands[i].words[j]);
        free(s->commands[i].words);
    }
    word_release(&s->input);
    free(s->commands);
    free(s->name);
    free(s->label);
}

void dpf_pipeline_release(struct dpf_pipeline *p)
{
    for (size_t i = 0; i < p->count; i++)
        statement_release(&p->statements[i]);
    for (size_t i = 0; i < p->param_count; i++) {
        free(p->params[i].name);
        free(p->params[i].value);
        free(p->params[i].list);
    }
    free(p->statements);
    free(p->params);
    free(p->file);
    *p = (struct dpf_pipeline){0};
}

static enum dpf_status add_word(struct cursor *c, struct dpf_command *command,
                                struct dpf_word *take_word)
{
    if (!dpf_grow(&command->words, &command->capacity, command->count + 1,
                  sizeof *command->words)) {
        word_release(take_word);
        return dpf_fail_memory(c->e);
    }
    command->words[command->count++] = *take_word;
    return DPF_OK;
}

static enum dpf_status take_command_words(struct cursor *c, struct dpf_command *command)
{
    while (!at_line_end(c) && *c->at != '|') {
        struct dpf_word w = {0};
        enum dpf_status status;
        if (*c->at == '@') {
            status = take_reference(c, &w);
        } else {
            struct dpf_text t = {0};
            status = take_word(c, &t);
            if (status == DPF_OK && !(w.text = dpf_strdup(dpf_text_get(&t))))
                status = dpf_fail_memory(c->e);
            dpf_text_release(&t);
        }
        if (status != DPF_OK) {
            word_release(&w);
            return status;
        }
        status = add_word(c, command, &w);
        if (status != DPF_OK)
            return status;
    }
    return DPF_OK;
}

static enum dpf_status check_stage(struct cursor *c, const struct dpf_command *command)
{
    if (!command->count)
        return wrong(c, "a stage is missing");
    const char *name = command->words[0].text;
    if (!name)
        return wrong(c, "a stream stands where a stage is due");
    for (size_t i = 1; i < command->count; i++)
        if (command->words[i].text && strcmp(command->words[i].text, "--") == 0)
            return wrong(c, "'--' cannot be used in a pipeline");
    if (strcmp(name, "run") == 0 || strcmp(name, "keygen") == 0)
        return wrong(c, "'%s' cannot be part of a pipeline", name);
    if (dpf_stage_find(name))
        return DPF_OK;
    const char *near = dpf_stage_nearest(name);
    return near ? wrong(c, "unknown stage '%s' (did you mean '%s'?)", name, near)
                : wrong(c, "unknown stage '%s'", name);
}

/* Everything behind the '=': [@stream |] stage words | stage words ... */
static enum dpf_status take_commands(struct cursor *c, struct dpf_statement *s)
{
    enum dpf_status status = DPF_OK;
    skip_blank(c);
    if (c->at < c->end && *c->at == '@') {
        status = take_reference(c, &s->input);
        if (status == DPF_OK && (at_line_end(c) || *c->at++ != '|'))
            status = wrong(c, "a stream is read by a stage: '@%s | stage ...'",
                           c->p->statements[s->input.streams[0]].label);
    }
    while (status == DPF_OK) {
        if (++c->commands > DPF_PIPELINE_MAX_COMMANDS)
            return wrong(c, "more than %d stages", DPF_PIPELINE_MAX_COMMANDS);
        if (!dpf_grow(&s->commands, &s->capacity, s->count + 1, sizeof *s->commands))
            return dpf_fail_memory(c->e);
        skip_blank(c);
        struct dpf_command *command = &s->commands[s->count++];
        *command = (struct dpf_command){.line = c->line};
        status = take_command_words(c, command);
        if (status == DPF_OK)
            status = check_stage(c, command);
        if (status != DPF_OK || at_line_end(c))
            break;
        c->at++; /* the bar */
    }
    return status;
}

static enum dpf_status add_statement(struct cursor *c, const char *name,
                                     const char *index)
{
    struct dpf_pipeline *p = c->p;
    struct dpf_statement s = {.line = c->line, .name = dpf_strdup(name)};
    s.label = index ? dpf_format("%s[%s]", name, index) : dpf_strdup(name);
    enum dpf_status status =
        s.name && s.label ? take_commands(c, &s) : dpf_fail_memory(c->e);
    if (status == DPF_OK &&
        !dpf_grow(&p->statements, &p->capacity, p->count + 1, sizeof *p->statements))
        status = dpf_fail_memory(c->e);
    if (status != DPF_OK) {
        statement_release(&s);
        return status;
    }
    p->statements[p->count++] = s;
    return DPF_OK;
}

/* NAME[K] = ...: the right side is read K times, with $i from 0 to K-1. */
static enum dpf_status add_copies(struct cursor *c, const char *name, const char *count)
{
    uint64_t copies;
    if (!dpf_parse_uint(count, &copies) || copies < 1 || copies > DPF_PIPELINE_MAX_COPIES)
        return wrong(c, "'%s[%s]' needs a number of copies from 1 to %d", name, count,
                     DPF_PIPELINE_MAX_COPIES);
    struct cursor start = *c;
    enum dpf_status status = DPF_OK;
    for (uint64_t i = 0; status == DPF_OK && i < copies; i++) {
        char index[24];
        snprintf(index, sizeof index, "%llu", (unsigned long long)i);
        size_t commands = c->commands, references = c->references;
        *c = start;
        c->commands = commands;
        c->references = references;
        c->index = index;
        status = add_statement(c, name, index);
    }
    c->index = NULL;
    return status;
}

static enum dpf_status take_statement(struct cursor *c, const char *name)
{
    char *count = NULL;
    for (size_t i = 0; i < c->p->count; i++)
        if (strcmp(c->p->statements[i].name, name) == 0)
            return wrong(c, "stream '%s' was made in line %d already", name,
                         c->p->statements[i].line);
    enum dpf_status status = take_index(c, &count);
    skip_blank(c);
    if (status == DPF_OK && (c->at == c->end || *c->at != '='))
        status = wrong(c, "'%s' is not followed by '='", name);
    if (status == DPF_OK) {
        c->at++;
        status = count ? add_copies(c, name, count) : add_statement(c, name, NULL);
    }
    free(count);
    return status;
}

/* -------------------------------------------------------------- params and output */

static struct dpf_param new_param(char *take_name, const char *value, bool quoted,
                                  bool unquote, int line)
{
    bool list = !quoted && strchr(value, ',');
    return (struct dpf_param){.name = take_name,
                              .value = list ? dpf_strndup(value, strcspn(value, ","))
                                       : unquote
                                           ? dpf_strndup(value + 1, strlen(value) - 2)
                                           : dpf_strdup(value),
                              .list = list ? dpf_strdup(value) : NULL,
                              .line = line};
}

static enum dpf_status take_param(struct cursor *c, const struct dpf_setting *settings,
                                  size_t setting_count)
{
    struct dpf_pipeline *p = c->p;
    struct dpf_text value = {0};
    bool quoted = false, unquote = false;
    skip_blank(c);
    char *name = take_name(c, false);
    if (!name)
        return wrong(c, "'param' is not followed by a name");
    enum dpf_status status = DPF_OK;
    if (strcmp(name, "i") == 0 || strcmp(name, "run") == 0)
        status = wrong(c, "'%s' is reserved", name);
    for (size_t i = 0; status == DPF_OK && i < p->param_count; i++)
        if (strcmp(p->params[i].name, name) == 0)
            status = wrong(c, "parameter '%s' was declared in line %d already", name,
                           p->params[i].line);
    skip_blank(c);
    if (status == DPF_OK && (c->at == c->end || *c->at != '='))
        status = wrong(c, "'param %s' is not followed by '='", name);
    if (status == DPF_OK) {
        c->at++;
        if (!at_line_end(c)) {
            quoted = *c->at == '"' || *c->at == '\'';
            status = take_word(c, &value);
        }
        if (status == DPF_OK && !at_line_end(c))
            status = wrong(c, "the value of '%s' has blanks: put it in quotes", name);
    }
    const char *chosen = dpf_text_get(&value);
    for (size_t i = 0; i < setting_count; i++)
        if (strcmp(settings[i].name, name) == 0) {
            chosen = settings[i].value;
            quoted = *chosen == '"' && strlen(chosen) > 1 && dpf_ends_with(chosen, "\"");
            unquote = quoted;
        }
    if (status == DPF_OK &&
        !dpf_grow(&p->params, &p->param_capacity, p->param_count + 1, sizeof *p->params))
        status = dpf_fail_memory(c->e);
    if (status == DPF_OK) {
        p->params[p->param_count++] = new_param(name, chosen, quoted, unquote, c->line);
        name = NULL;
    }
    free(name);
    dpf_text_release(&value);
    return status;
}

static enum dpf_status take_output(struct cursor *c)
{
    if (at_line_end(c))
        return wrong(c, "'output' names no stream");
    while (!at_line_end(c)) {
        char *name = take_name(c, true);
        bool found = false;
        for (size_t i = 0; name && i < c->p->count; i++)
            if (strcmp(c->p->statements[i].name, name) == 0)
                found = c->p->statements[i].is_output = true;
        enum dpf_status status =
            found ? DPF_OK
                  : wrong(c, "'output' names no stream of this file: '%s'",
                          name ? name : "?");
        free(name);
        if (status != DPF_OK)
            return status;
    }
    return DPF_OK;
}

static enum dpf_status take_line(struct cursor *c, const struct dpf_setting *settings,
                                 size_t setting_count)
{
    char *name = take_name(c, true);
    enum dpf_status status;
    if (!name)
        status = wrong(c, "a line starts with a name, 'param' or 'output'");
    else if (strcmp(name, "param") == 0)
        status = take_param(c, settings, setting_count);
    else if (strcmp(name, "output") == 0)
        status = take_output(c);
    else
        status = take_statement(c, name);
    if (status == DPF_OK && !at_line_end(c))
        status = wrong(c, "'%.12s' is too much here", c->at);
    free(name);
    return status;
}

static enum dpf_status
check_settings(struct cursor *c, const struct dpf_setting *settings, size_t setting_count)
{
    for (size_t i = 0; i < setting_count; i++) {
        bool found = false;
        for (size_t j = 0; j < c->p->param_count; j++)
            found = found || strcmp(c->p->params[j].name, settings[i].name) == 0;
        if (!found)
            return dpf_fail(c->e, DPF_USAGE, "'%s' has no parameter '%s'", c->p->file,
                            settings[i].name);
    }
    if (!c->p->count)
        return dpf_fail(c->e, DPF_USAGE, "'%s' makes no stream", c->p->file);
    return DPF_OK;
}

enum dpf_status dpf_pipeline_parse(struct dpf_pipeline *p, const char *text, size_t size,
                                   const char *file, const char *run_dir,
                                   const struct dpf_setting *settings,
                                   size_t setting_count, struct dpf_error *e)
{
    struct cursor c = {
        .at = text, .end = text + size, .line = 1, .p = p, .run_dir = run_dir, .e = e};
    *p = (struct dpf_pipeline){.file = dpf_strdup(file)};
    enum dpf_status status = p->file ? DPF_OK : dpf_fail_memory(e);
    while (status == DPF_OK && c.at < c.end) {
        if (!at_line_end(&c))
            status = take_line(&c, settings, setting_count);
        if (status == DPF_OK && c.at < c.end) {
            c.at++; /* the newline */
            c.line++;
        }
    }
    if (status == DPF_OK)
        status = check_settings(&c, settings, setting_count);
    if (status != DPF_OK)
        dpf_pipeline_release(p);
    return status;
}
