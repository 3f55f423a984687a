#include "data/columns.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"

#include "base/banned.h"

enum {
    MAX_FILE = 16 << 20,
    MAX_COLUMNS = 1 << 16,
    MAX_VALUES = 1 << 16,
    MAX_FEATURES = 1 << 20,
    MAX_MISSING = 64,
};

/* One line, cut into words that live in `text`. */
struct word {
    char *text;
    bool quoted;
};

struct parser {
    struct dpf_columns *columns;
    unsigned long line;
    struct word *words;
    size_t count, capacity;
    struct dpf_error *e;
};

static enum dpf_status wrong(struct parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum dpf_status wrong(struct parser *p, const char *format, ...)
{
    char text[320];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return dpf_fail(p->e, DPF_USAGE, "'%s' line %lu: %s", p->columns->name, p->line,
                    text);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_word(const struct word *w, const char *text)
{
    return !w->quoted && strcmp(w->text, text) == 0;
}

static enum dpf_status add_word(struct parser *p, char *text, bool quoted)
{
    if (!dpf_grow(&p->words, &p->capacity, p->count + 1, sizeof *p->words))
        return dpf_fail_memory(p->e);
    p->words[p->count++] = (struct word){text, quoted};
    return DPF_OK;
}

/* Undo the quotes of a word in place. *from is behind the opening quote, then behind the
 * closing one; false if there is none. */
static bool unquote(char **from)
{
    char *in = *from, *out = *from;
    for (; *in; in++) {
        if (*in == '"' && in[1] == '"')
            in++;
        else if (*in == '"')
            break;
        *out++ = *in;
    }
    if (*in != '"')
        return false;
    *from = in + 1;
    *out = '\0';
    return true;
}

static enum dpf_status split(struct parser *p, char *line)
{
    enum dpf_status status = DPF_OK;
    p->count = 0;
    while (status == DPF_OK) {
        while (is_blank(*line))
            line++;
        if (*line == '\0' || *line == '#')
            break;
        char *start = line;
        bool quoted = *line == '"';
        if (quoted) {
            line = ++start;
            if (!unquote(&line))
                return wrong(p, "a quote is not closed");
            if (*line && !is_blank(*line))
                return wrong(p, "text follows a closing quote");
        } else {
            while (*line && !is_blank(*line))
                line++;
        }
        bool more = *line != '\0';
        /* A closing quote already ended its word; an empty one may start right here. */
        if (more)
            *line++ = '\0';
        status = add_word(p, start, quoted);
    }
    return status;
}

/* FNV-1a: short keys, no adversary (the description is public). */
static uint32_t hash(const char *text, size_t size)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h ^ h >> 15;
}

/* The slot where `text` is (its number plus one) or where it would go (0). */
static uint32_t *find_slot(const struct dpf_column *c, const char *text, size_t size)
{
    size_t i = hash(text, size) & (c->slot_count - 1);
    for (;; i = (i + 1) & (c->slot_count - 1)) {
        uint32_t slot = c->slots[i];
        if (slot == 0 || (strncmp(c->values[slot - 1], text, size) == 0 &&
                          c->values[slot - 1][size] == '\0'))
            return &c->slots[i];
    }
}

bool dpf_column_find(const struct dpf_column *c, const char *text, size_t size,
                     size_t *value)
{
    if (c->slot_count == 0)
        return false;
    uint32_t slot = *find_slot(c, text, size);
    *value = (size_t)slot - 1;
    return slot != 0;
}

size_t dpf_column_features(const struct dpf_column *c)
{
    switch (c->kind) {
    case DPF_COLUMN_REAL:
    case DPF_COLUMN_INT:
    case DPF_COLUMN_CODE:
        return 1;
    case DPF_COLUMN_CATEGORY:
        return c->value_count;
    case DPF_COLUMN_TARGET:
    case DPF_COLUMN_LABEL:
    case DPF_COLUMN_DROP:
    case DPF_COLUMN_PERSON:
    case DPF_COLUMN_DAY:
        break;
    }
    return 0;
}

static enum dpf_status add_value(struct parser *p, struct dpf_column *c, const char *text)
{
    if (c->value_count == MAX_VALUES)
        return wrong(p, "column '%s' has more than %d values", c->name, MAX_VALUES);
    if (!dpf_grow(&c->values, &c->value_capacity, c->value_count + 1, sizeof *c->values))
        return dpf_fail_memory(p->e);
    char *copy = dpf_strdup(text);
    if (!copy)
        return dpf_fail_memory(p->e);
    c->values[c->value_count++] = copy;
    return DPF_OK;
}

/* "A..B" with whole A <= B. */
static bool parse_span(const char *text, int64_t *first, int64_t *last)
{
    const char *dots = strstr(text, "..");
    if (!dots)
        return false;
    char *left = dpf_strndup(text, (size_t)(dots - text));
    bool good = left && dpf_parse_int(left, first) && dpf_parse_int(dots + 2, last) &&
                *first <= *last;
    free(left);
    return good;
}

static enum dpf_status add_values(struct parser *p, struct dpf_column *c,
                                  const struct word *w)
{
    int64_t first, last;
    if (w->quoted || !parse_span(w->text, &first, &last))
        return add_value(p, c, w->text);
    if ((uint64_t)last - (uint64_t)first >= MAX_VALUES)
        return wrong(p, "column '%s' has more than %d values", c->name, MAX_VALUES);
    enum dpf_status status = DPF_OK;
    for (int64_t i = first; status == DPF_OK && i <= last && i < INT64_MAX; i++) {
        char *text = dpf_format("%lld", (long long)i);
        status = text ? add_value(p, c, text) : dpf_fail_memory(p->e);
        free(text);
    }
    return status;
}

static enum dpf_status index_values(struct parser *p, struct dpf_column *c)
{
    size_t slots = 4;
    while (slots < c->value_count * 2)
        slots *= 2;
    c->slots = dpf_calloc(slots, sizeof *c->slots);
    if (!c->slots)
        return dpf_fail_memory(p->e);
    c->slot_count = slots;
    for (size_t i = 0; i < c->value_count; i++) {
        uint32_t *slot = find_slot(c, c->values[i], strlen(c->values[i]));
        if (*slot)
            return wrong(p, "column '%s' has the value '%s' twice", c->name,
                         c->values[i]);
        *slot = (uint32_t)i + 1;
    }
    return DPF_OK;
}

/* Words from the third on: values, and "default V" at the end if the kind allows it. */
static enum dpf_status parse_values(struct parser *p, struct dpf_column *c)
{
    bool may_default = c->kind == DPF_COLUMN_CATEGORY || c->kind == DPF_COLUMN_CODE;
    enum dpf_status status = DPF_OK;
    size_t i = 2;
    for (; i < p->count && status == DPF_OK && !is_word(&p->words[i], "default"); i++)
        status = add_values(p, c, &p->words[i]);
    if (status != DPF_OK)
        return status;
    if (c->value_count == 0)
        return wrong(p, "column '%s' has no values", c->name);
    status = index_values(p, c);
    if (status != DPF_OK || i == p->count)
        return status;
    if (!may_default)
        return wrong(p, "column '%s' cannot have a default", c->name);
    if (i + 2 != p->count)
        return wrong(p, "one value is due after 'default'");
    const char *text = p->words[i + 1].text;
    if (!dpf_column_find(c, text, strlen(text), &c->default_value))
        return wrong(p, "the default '%s' is not among the values", text);
    c->has_default = true;
    return DPF_OK;
}

/* Values become 32-bit floats, so some float has to lie between the bounds. */
static bool bounds_hold_float(double lo, double hi)
{
    if (lo < -(double)FLT_MAX || hi > (double)FLT_MAX)
        return false;
    float least = (float)lo;
    if ((double)least < lo)
        least = nextafterf(least, INFINITY);
    return (double)least <= hi;
}

static bool is_whole(double v)
{
    return v == floor(v);
}

static enum dpf_status parse_bounds(struct parser *p, struct dpf_column *c)
{
    const struct word *w = p->words;
    bool whole = c->kind == DPF_COLUMN_INT;
    if (p->count < 4 || !dpf_parse_real(w[2].text, &c->lo) ||
        !dpf_parse_real(w[3].text, &c->hi))
        return wrong(p, "column '%s' needs two bounds", c->name);
    if (!(c->lo < c->hi) || !bounds_hold_float(c->lo, c->hi))
        return wrong(p, "column '%s' has impossible bounds", c->name);
    if (whole && (!is_whole(c->lo) || !is_whole(c->hi)))
        return wrong(p, "column '%s' needs whole bounds", c->name);
    if (p->count == 4)
        return DPF_OK;
    if (c->kind == DPF_COLUMN_TARGET)
        return wrong(p, "column '%s' cannot have a default", c->name);
    if (p->count != 6 || !is_word(&w[4], "default") ||
        !dpf_parse_real(w[5].text, &c->default_number))
        return wrong(p, "'default' and a number, or nothing, is due after the bounds");
    if (c->default_number < c->lo || c->default_number > c->hi ||
        (whole && !is_whole(c->default_number)))
        return wrong(p, "the default of column '%s' is not one of its values", c->name);
    c->has_default = true;
    return DPF_OK;
}

static bool parse_kind(const struct word *w, enum dpf_column_kind *kind)
{
    static const char *const names[] = {
        [DPF_COLUMN_REAL] = "real",         [DPF_COLUMN_INT] = "int",
        [DPF_COLUMN_CATEGORY] = "category", [DPF_COLUMN_CODE] = "code",
        [DPF_COLUMN_TARGET] = "target",     [DPF_COLUMN_LABEL] = "label",
        [DPF_COLUMN_DROP] = "drop",         [DPF_COLUMN_PERSON] = "person",
        [DPF_COLUMN_DAY] = "day",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_word(w, names[i])) {
            *kind = (enum dpf_column_kind)i;
            return true;
        }
    return false;
}

/* "day FORMAT", and for dates "from DATE", the day that is time 0. */
static enum dpf_status parse_day(struct parser *p, struct dpf_column *c)
{
    const struct word *w = p->words;
    bool known = false;
    for (int i = 0; p->count > 2 && !known && dpf_day_formats[i]; i++)
        if ((known = is_word(&w[2], dpf_day_formats[i])))
            c->day = (enum dpf_day_format)i;
    if (!known)
        return wrong(p,
                     "YYYY-MM-DD, DD/MM/YYYY, MM/DD/YYYY or number is due after 'day'");
    if (p->count == 3)
        return DPF_OK;
    if (p->count != 5 || !is_word(&w[3], "from") || c->day == DPF_DAY_NUMBER)
        return wrong(p,
                     "'from' and a date, or nothing, is due after the format of dates");
    const char *fault =
        dpf_day_parse(DPF_DAY_ISO, w[4].text, strlen(w[4].text), &c->day_from);
    return fault ? wrong(p, "'%s' is not a date as YYYY-MM-DD", w[4].text) : DPF_OK;
}

static enum dpf_status parse_column(struct parser *p)
{
    struct dpf_columns *all = p->columns;
    const struct word *w = p->words;
    enum dpf_column_kind kind;
    if (p->count < 2 || !parse_kind(&w[1], &kind))
        return wrong(p, "real, int, category, code, target, label, person, day or drop "
                        "is due after the name of a column");
    if (all->count == MAX_COLUMNS)
        return wrong(p, "more than %d columns", MAX_COLUMNS);
    if (!dpf_grow(&all->columns, &all->capacity, all->count + 1, sizeof *all->columns))
        return dpf_fail_memory(p->e);
    struct dpf_column *c = &all->columns[all->count];
    *c = (struct dpf_column){.kind = kind, .name = dpf_strdup(w[0].text)};
    if (!c->name)
        return dpf_fail_memory(p->e);
    all->count++;
    switch (kind) {
    case DPF_COLUMN_REAL:
    case DPF_COLUMN_INT:
    case DPF_COLUMN_TARGET:
        return parse_bounds(p, c);
    case DPF_COLUMN_DROP:
    case DPF_COLUMN_PERSON:
        return p->count == 2 ? DPF_OK
                             : wrong(p, "nothing is due after '%s'", p->words[1].text);
    case DPF_COLUMN_DAY:
        return parse_day(p, c);
    case DPF_COLUMN_CATEGORY:
    case DPF_COLUMN_CODE:
    case DPF_COLUMN_LABEL:
        break;
    }
    return parse_values(p, c);
}

static enum dpf_status parse_header(struct parser *p)
{
    if (p->count == 2 && is_word(&p->words[1], "none"))
        p->columns->header = DPF_HEADER_NONE;
    else if (p->count == 2 && is_word(&p->words[1], "skip"))
        p->columns->header = DPF_HEADER_SKIP;
    else
        return wrong(p, "'none' or 'skip' is due after 'header'");
    return DPF_OK;
}

static enum dpf_status parse_separator(struct parser *p)
{
    static const struct {
        const char *word;
        char separator;
    } known[] = {{",", ','}, {";", ';'}, {"tab", '\t'}, {"space", ' '}};
    for (size_t i = 0; p->count == 2 && i < sizeof known / sizeof *known; i++)
        if (strcmp(p->words[1].text, known[i].word) == 0) {
            p->columns->separator = known[i].separator;
            return DPF_OK;
        }
    return wrong(p, "',', ';', 'tab' or 'space' is due after 'separator'");
}

static enum dpf_status parse_missing(struct parser *p)
{
    struct dpf_columns *c = p->columns;
    if (p->count != 2)
        return wrong(p, "one token is due after 'missing'");
    if (c->missing_count == MAX_MISSING)
        return wrong(p, "more than %d missing-value tokens", MAX_MISSING);
    if (!dpf_grow(&c->missing, &c->missing_capacity, c->missing_count + 1,
                  sizeof *c->missing))
        return dpf_fail_memory(p->e);
    char *copy = dpf_strdup(p->words[1].text);
    if (!copy)
        return dpf_fail_memory(p->e);
    c->missing[c->missing_count++] = copy;
    return DPF_OK;
}

static enum dpf_status parse_shape(struct parser *p)
{
    struct dpf_shape shape = {0};
    if (p->count < 2 || p->count > DPF_MAX_RANK)
        return wrong(p, "1 to %d sizes are expected after 'shape'", DPF_MAX_RANK - 1);
    for (size_t i = 1; i < p->count; i++) {
        uint64_t d;
        if (!dpf_parse_uint(p->words[i].text, &d) || d == 0 || d > MAX_FEATURES)
            return wrong(p, "'%s' is not a size", p->words[i].text);
        shape.dim[shape.rank++] = d;
    }
    p->columns->shape = shape;
    p->columns->has_shape = true;
    return DPF_OK;
}

static enum dpf_status parse_other(struct parser *p)
{
    if (p->count != 2 || !is_word(&p->words[1], "drop"))
        return wrong(p, "'drop' is due after 'other'");
    p->columns->drop_others = true;
    return DPF_OK;
}

static enum dpf_status parse_line(struct parser *p, char *line)
{
    static const struct {
        const char *word;
        enum dpf_status (*parse)(struct parser *p);
    } lines[] = {{"header", parse_header},
                 {"separator", parse_separator},
                 {"missing", parse_missing},
                 {"shape", parse_shape},
                 {"other", parse_other}};
    enum dpf_status status = split(p, line);
    if (status != DPF_OK || p->count == 0)
        return status;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (is_word(&p->words[0], lines[i].word))
            return lines[i].parse(p);
    return parse_column(p);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum dpf_status check_names(const struct dpf_columns *c, struct dpf_error *e)
{
    const char **names = dpf_calloc(c->count, sizeof *names);
    if (!names)
        return dpf_fail_memory(e);
    enum dpf_status status = DPF_OK;
    for (size_t i = 0; i < c->count; i++)
        names[i] = c->columns[i].name;
    qsort(names, c->count, sizeof *names, compare_names);
    for (size_t i = 1; i < c->count && status == DPF_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = dpf_fail(e, DPF_USAGE, "'%s' has the column '%s' twice", c->name,
                              names[i]);
    free(names);
    return status;
}

/* What no single line can get wrong. */
static enum dpf_status check_whole(struct dpf_columns *c, struct dpf_error *e)
{
    size_t outcomes = 0, days = 0;
    uint64_t shape = 1;
    for (size_t i = 0; i < c->count; i++) {
        enum dpf_column_kind kind = c->columns[i].kind;
        c->features += dpf_column_features(&c->columns[i]);
        outcomes += kind == DPF_COLUMN_TARGET || kind == DPF_COLUMN_LABEL;
        days += kind == DPF_COLUMN_DAY;
        c->persons += kind == DPF_COLUMN_PERSON;
        if (c->features > MAX_FEATURES)
            return dpf_fail(e, DPF_USAGE, "'%s' declares more than %d features", c->name,
                            MAX_FEATURES);
    }
    if (c->persons > 2 || (c->persons == 2 && (c->features || outcomes || days)))
        return dpf_fail(e, DPF_USAGE,
                        "'%s' declares several persons: two and nothing else make links",
                        c->name);
    if (days > 1)
        return dpf_fail(e, DPF_USAGE, "'%s' declares more than one day", c->name);
    if (c->features == 0 && c->persons < 2)
        return dpf_fail(e, DPF_USAGE, "'%s' declares no feature", c->name);
    if (outcomes > 1)
        return dpf_fail(e, DPF_USAGE, "'%s' declares more than one target or label",
                        c->name);
    for (int i = 0; c->has_shape && i < c->shape.rank; i++)
        if (__builtin_mul_overflow(shape, c->shape.dim[i], &shape))
            shape = UINT64_MAX / MAX_FEATURES;
    if (c->has_shape && shape != c->features) {
        char text[96];
        dpf_shape_format(&c->shape, text, sizeof text);
        return dpf_fail(e, DPF_USAGE,
                        "'%s' has shape %s, but its columns make %zu features", c->name,
                        text, c->features);
    }
    return check_names(c, e);
}

static enum dpf_status parse_lines(struct dpf_columns *c, char *text, struct dpf_error *e)
{
    struct parser p = {.columns = c, .e = e};
    enum dpf_status status = DPF_OK;
    while (text && status == DPF_OK) {
        char *end = strchr(text, '\n');
        if (end)
            *end++ = '\0';
        p.line++;
        status = parse_line(&p, text);
        text = end;
    }
    free(p.words);
    return status == DPF_OK ? check_whole(c, e) : status;
}

enum dpf_status dpf_columns_parse(const char *text, size_t size, const char *name,
                                  struct dpf_columns *c, struct dpf_error *e)
{
    *c = (struct dpf_columns){.separator = ','};
    if (size > MAX_FILE || memchr(text, '\0', size))
        return dpf_fail(e, DPF_USAGE, "'%s' is not a text that describes columns", name);
    size_t bom = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    char *copy = dpf_strndup(text + bom, size - bom);
    c->name = dpf_strdup(name);
    enum dpf_status status =
        copy && c->name ? parse_lines(c, copy, e) : dpf_fail_memory(e);
    free(copy);
    if (status != DPF_OK)
        dpf_columns_release(c);
    return status;
}

enum dpf_status dpf_columns_read(const char *path, struct dpf_columns *c,
                                 struct dpf_error *e)
{
    char *text;
    size_t size;
    *c = (struct dpf_columns){0};
    enum dpf_status status = dpf_read_file(path, MAX_FILE, &text, &size, e);
    if (status != DPF_OK)
        return status;
    status = dpf_columns_parse(text, size, path, c, e);
    free(text);
    return status;
}

static void free_strings(char **strings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(strings[i]);
    free(strings);
}

void dpf_columns_release(struct dpf_columns *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free_strings(c->columns[i].values, c->columns[i].value_count);
        free(c->columns[i].slots);
        free(c->columns[i].name);
    }
    free(c->columns);
    free_strings(c->missing, c->missing_count);
    free(c->name);
    *c = (struct dpf_columns){0};
}
