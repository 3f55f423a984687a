#include "data/csv.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "data/csv_number.h"
#include "data/csv_text.h"
#include "data/formats.h"

#include "base/banned.h"

enum { DEFAULT_LINE = 1 << 20, DEFAULT_FIELDS = 1 << 16 };

/* What becomes of a field of a row. */
struct place {
    const struct dpf_column *column; /* NULL: left out */
    size_t feature;                  /* its first feature */
    float least, most;               /* the floats nearest to the bounds, within them */
    int tensor;                      /* person, day: the field, and of a link which end */
    size_t end;
};

struct csv {
    struct dpf_source source;
    struct dpf_csv_text text;
    const struct dpf_columns *columns;
    struct dpf_columns own; /* made from the header line where no description is */
    bool described;
    struct place *by_column; /* one a column of the description */
    struct place *places;    /* one a field of a row */
    size_t field_count;      /* 0: told by the first row */
    uint64_t clipped;
    bool ended;
};

static enum dpf_status bad_cell(struct csv *s, const struct dpf_column *c,
                                struct dpf_error *e, const char *what)
{
    return dpf_fail(e, DPF_BAD_STREAM, "'%s' line %lu: column '%s' %s",
                    dpf_bytes_name(s->text.bytes), s->text.line, c->name, what);
}

/* ---- cells ---- */

static bool is_missing(const struct dpf_columns *c, const struct dpf_csv_cell *cell)
{
    if (cell->size == 0)
        return true;
    for (size_t i = 0; i < c->missing_count; i++)
        if (strlen(c->missing[i]) == cell->size &&
            memcmp(c->missing[i], cell->text, cell->size) == 0)
            return true;
    return false;
}

static enum dpf_status is_absent(struct csv *s, const struct dpf_column *c,
                                 struct dpf_error *e)
{
    return bad_cell(s, c, e, "is missing and has no default");
}

static enum dpf_status read_number(struct csv *s, const struct dpf_column *c,
                                   const struct dpf_csv_cell *cell, double *value,
                                   struct dpf_error *e)
{
    if (is_missing(s->columns, cell)) {
        *value = c->default_number;
        return c->has_default ? DPF_OK : is_absent(s, c, e);
    }
    if (!dpf_csv_number(cell, value))
        return bad_cell(s, c, e, "is not a number");
    if (c->kind == DPF_COLUMN_INT && *value != floor(*value))
        return bad_cell(s, c, e, "is not a whole number");
    if (*value >= c->lo && *value <= c->hi)
        return DPF_OK;
    if (!s->described)
        return bad_cell(s, c, e, "is too large for a 32-bit number");
    s->clipped++;
    *value = *value < c->lo ? c->lo : c->hi;
    return DPF_OK;
}

static enum dpf_status read_value(struct csv *s, const struct dpf_column *c,
                                  const struct dpf_csv_cell *cell, size_t *value,
                                  struct dpf_error *e)
{
    if (dpf_column_find(c, cell->text, cell->size, value))
        return DPF_OK;
    if (!is_missing(s->columns, cell))
        return bad_cell(s, c, e, "has a value that is not declared");
    *value = c->default_value;
    return c->has_default ? DPF_OK : is_absent(s, c, e);
}

/* Rounding to a float must not step over a declared bound. */
static float to_float(const struct place *p, double value)
{
    float f = (float)value;
    return f < p->least ? p->least : f > p->most ? p->most : f;
}

static enum dpf_status put_number(struct csv *s, const struct place *p,
                                  const struct dpf_csv_cell *cell, struct dpf_batch *b,
                                  uint64_t row, struct dpf_error *e)
{
    double value;
    enum dpf_status status = read_number(s, p->column, cell, &value, e);
    if (status != DPF_OK)
        return status;
    size_t at = (size_t)row * s->columns->features + p->feature;
    if (p->column->kind == DPF_COLUMN_TARGET)
        ((float *)b->tensor[1].data)[row] = to_float(p, value);
    else if (b->tensor[0].dtype == DPF_U8)
        ((uint8_t *)b->tensor[0].data)[at] = (uint8_t)value;
    else
        ((float *)b->tensor[0].data)[at] = to_float(p, value);
    return DPF_OK;
}

static enum dpf_status put_value(struct csv *s, const struct place *p,
                                 const struct dpf_csv_cell *cell, struct dpf_batch *b,
                                 uint64_t row, struct dpf_error *e)
{
    size_t value;
    enum dpf_status status = read_value(s, p->column, cell, &value, e);
    if (status != DPF_OK)
        return status;
    if (p->column->kind == DPF_COLUMN_LABEL) {
        if (b->tensor[1].dtype == DPF_U8)
            ((uint8_t *)b->tensor[1].data)[row] = (uint8_t)value;
        else
            ((int32_t *)b->tensor[1].data)[row] = (int32_t)value;
        return DPF_OK;
    }
    /* A category or code makes x a tensor of floats. */
    float *x = (float *)b->tensor[0].data + row * s->columns->features + p->feature;
    if (p->column->kind == DPF_COLUMN_CODE) {
        *x = (float)value;
    } else {
        memset(x, 0, p->column->value_count * sizeof *x);
        x[value] = 1;
    }
    return DPF_OK;
}

/* A person, or a day: one number of a field of its own. */
static enum dpf_status put_key(struct csv *s, const struct place *p,
                               const struct dpf_csv_cell *cell, struct dpf_batch *b,
                               uint64_t row, struct dpf_error *e)
{
    const struct dpf_column *c = p->column;
    const struct dpf_tensor *t = &b->tensor[p->tensor];
    int64_t *number = (int64_t *)t->data + row * (s->columns->persons == 2 ? 2 : 1);
    if (is_missing(s->columns, cell))
        return bad_cell(s, c, e, "is missing");
    if (c->kind == DPF_COLUMN_PERSON) {
        number[p->end] = dpf_person_number(cell->text, cell->size);
        return DPF_OK;
    }
    const char *fault = dpf_day_parse(c->day, cell->text, cell->size, number);
    if (fault) {
        char what[96];
        snprintf(what, sizeof what, "%s (%s)", fault, dpf_day_formats[c->day]);
        return bad_cell(s, c, e, what);
    }
    *number -= c->day_from;
    return DPF_OK;
}

static bool is_key(const struct dpf_column *c)
{
    return c->kind == DPF_COLUMN_PERSON || c->kind == DPF_COLUMN_DAY;
}

static enum dpf_status put_row(struct csv *s, struct dpf_batch *b, uint64_t row,
                               struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    for (size_t i = 0; i < s->field_count && status == DPF_OK; i++) {
        const struct place *p = &s->places[i];
        if (!p->column || p->column->kind == DPF_COLUMN_DROP)
            continue;
        if (is_key(p->column))
            status = put_key(s, p, &s->text.cells[i], b, row, e);
        else if (p->column->value_count)
            status = put_value(s, p, &s->text.cells[i], b, row, e);
        else
            status = put_number(s, p, &s->text.cells[i], b, row, e);
    }
    return status;
}

/* ---- the source ---- */

/* Without a header line, fields beyond the description may follow if it allows them; the
 * first row then says how many. */
static enum dpf_status place_by_position(struct csv *s, struct dpf_error *e)
{
    size_t declared = s->columns->count;
    s->field_count = declared;
    if (s->columns->drop_others && s->text.cell_count > declared)
        s->field_count = s->text.cell_count;
    s->places = dpf_calloc(s->field_count, sizeof *s->places);
    if (!s->places)
        return dpf_fail_memory(e);
    memcpy(s->places, s->by_column, declared * sizeof *s->places);
    return DPF_OK;
}

static enum dpf_status check_width(struct csv *s, struct dpf_error *e)
{
    enum dpf_status status = s->places ? DPF_OK : place_by_position(s, e);
    if (status == DPF_OK && s->text.cell_count != s->field_count)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "'%s' line %lu has %zu fields, %zu are expected",
                        dpf_bytes_name(s->text.bytes), s->text.line, s->text.cell_count,
                        s->field_count);
    return status;
}

static void finish(struct csv *s)
{
    s->ended = true;
    if (s->clipped == 1)
        dpf_notice("1 value was outside its declared bounds and was clipped");
    else if (s->clipped)
        dpf_notice("%llu values were outside their declared bounds and were clipped",
                   (unsigned long long)s->clipped);
}

static enum dpf_status csv_fill(struct dpf_source *source, struct dpf_batch *b,
                                uint64_t want, uint64_t *filled, struct dpf_error *e)
{
    struct csv *s = (struct csv *)source;
    *filled = 0;
    while (*filled < want && !s->ended) {
        enum dpf_status status = dpf_csv_text_next(&s->text, e);
        if (status == DPF_OK && s->text.cell_count == 0) {
            finish(s);
            break;
        }
        if (status == DPF_OK)
            status = check_width(s, e);
        if (status == DPF_OK)
            status = put_row(s, b, *filled, e);
        if (status != DPF_OK)
            return status;
        ++*filled;
    }
    return DPF_OK;
}

static void csv_destroy(struct dpf_source *source)
{
    struct csv *s = (struct csv *)source;
    dpf_csv_text_release(&s->text);
    dpf_columns_release(&s->own);
    free(s->by_column);
    free(s->places);
    free(s);
}

/* ---- opening: the header line ---- */

static enum dpf_status check_names(struct csv *s, struct dpf_error *e)
{
    for (size_t i = 0; i < s->text.cell_count; i++) {
        const struct dpf_csv_cell *cell = &s->text.cells[i];
        for (size_t k = 0; k < cell->size; k++)
            if ((unsigned char)cell->text[k] < 0x20 || cell->text[k] == 0x7f)
                return dpf_csv_text_fail(&s->text,
                                         "a column's name has a control character", e);
    }
    return DPF_OK;
}

/* A description for a table that has none: every column a number without bounds. */
static enum dpf_status describe(struct csv *s, struct dpf_error *e)
{
    double number;
    s->own = (struct dpf_columns){.separator = ','};
    s->own.columns = dpf_calloc(s->text.cell_count, sizeof *s->own.columns);
    if (!s->own.columns)
        return dpf_fail_memory(e);
    for (size_t i = 0; i < s->text.cell_count; i++) {
        const struct dpf_csv_cell *cell = &s->text.cells[i];
        /* A table without a header line would lose its first record here. */
        if (dpf_parse_real_n(cell->text, cell->size, &number))
            return dpf_csv_text_fail(
                &s->text, "the first line has numbers, not names of columns", e);
        struct dpf_column *c = &s->own.columns[i];
        *c = (struct dpf_column){
            .kind = DPF_COLUMN_REAL, .lo = -(double)FLT_MAX, .hi = (double)FLT_MAX};
        c->name = dpf_strndup(cell->text, cell->size);
        if (!c->name)
            return dpf_fail_memory(e);
        s->own.count++;
    }
    s->own.features = s->own.count;
    s->columns = &s->own;
    return DPF_OK;
}

static float float_from_above(double v)
{
    float f = (float)v;
    return (double)f < v ? nextafterf(f, INFINITY) : f;
}

static float float_from_below(double v)
{
    float f = (float)v;
    return (double)f > v ? nextafterf(f, -INFINITY) : f;
}

static bool has_kind(const struct dpf_columns *c, enum dpf_column_kind kind)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->columns[i].kind == kind)
            return true;
    return false;
}

/* The field of persons; that of days is behind it. */
static int key_field(const struct dpf_columns *c)
{
    bool outcome = has_kind(c, DPF_COLUMN_TARGET) || has_kind(c, DPF_COLUMN_LABEL);
    return (c->features > 0) + outcome;
}

static enum dpf_status place_columns(struct csv *s, struct dpf_error *e)
{
    size_t feature = 0, ends = 0;
    int key = key_field(s->columns), behind = s->columns->persons > 0;
    s->by_column = dpf_calloc(s->columns->count, sizeof *s->by_column);
    if (!s->by_column)
        return dpf_fail_memory(e);
    for (size_t i = 0; i < s->columns->count; i++) {
        const struct dpf_column *c = &s->columns->columns[i];
        bool day = c->kind == DPF_COLUMN_DAY, person = c->kind == DPF_COLUMN_PERSON;
        s->by_column[i] = (struct place){.column = c,
                                         .tensor = day ? key + behind : key,
                                         .end = person ? ends++ : 0,
                                         .feature = feature,
                                         .least = float_from_above(c->lo),
                                         .most = float_from_below(c->hi)};
        feature += dpf_column_features(c);
    }
    return DPF_OK;
}

static int compare_places(const void *a, const void *b)
{
    const struct place *const *p = a, *const *q = b;
    return strcmp((*p)->column->name, (*q)->column->name);
}

static int compare_cell(const void *key, const void *element)
{
    const struct dpf_csv_cell *cell = key;
    const struct place *const *p = element;
    const char *name = (*p)->column->name;
    int order = strncmp(cell->text, name, cell->size);
    return order ? order : name[cell->size] ? -1 : 0;
}

/* Find each field of the header line among the columns. The text of a field is shown only
 * if the line has a declared name at all: otherwise it may be a record. */
static enum dpf_status match_fields(struct csv *s, const struct place **sorted,
                                    bool *seen, struct dpf_error *e)
{
    const struct dpf_csv_cell *unknown = NULL;
    size_t found = 0;
    const char *file = dpf_bytes_name(s->text.bytes);
    for (size_t i = 0; i < s->text.cell_count; i++) {
        const struct place **hit = bsearch(&s->text.cells[i], sorted, s->columns->count,
                                           sizeof *sorted, compare_cell);
        if (!hit) {
            unknown = unknown ? unknown : &s->text.cells[i];
            continue;
        }
        size_t column = (size_t)(*hit - s->by_column);
        if (seen[column])
            return dpf_fail(e, DPF_BAD_STREAM, "'%s' has the column '%s' twice", file,
                            (*hit)->column->name);
        seen[column] = true;
        s->places[i] = **hit;
        found++;
    }
    if (found == 0)
        return dpf_csv_text_fail(
            &s->text, "this is not the header line of the columns described", e);
    if (unknown && !s->columns->drop_others)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "'%s' has the column '%.*s', which '%s' does "
                        "not mention",
                        file, (int)(unknown->size < 80 ? unknown->size : 80),
                        unknown->text, s->columns->name);
    for (size_t i = 0; i < s->columns->count; i++)
        if (!seen[i] && s->columns->columns[i].kind != DPF_COLUMN_DROP)
            return dpf_fail(e, DPF_BAD_STREAM, "'%s' has no column '%s'", file,
                            s->columns->columns[i].name);
    return DPF_OK;
}

static enum dpf_status place_by_name(struct csv *s, struct dpf_error *e)
{
    size_t count = s->columns->count;
    const struct place **sorted = dpf_calloc(count, sizeof *sorted);
    bool *seen = dpf_calloc(count, sizeof *seen);
    enum dpf_status status = DPF_OK;
    s->field_count = s->text.cell_count;
    s->places = dpf_calloc(s->field_count, sizeof *s->places);
    if (sorted && seen && s->places) {
        for (size_t i = 0; i < count; i++)
            sorted[i] = &s->by_column[i];
        qsort(sorted, count, sizeof *sorted, compare_places);
        status = match_fields(s, sorted, seen, e);
    } else {
        status = dpf_fail_memory(e);
    }
    free(sorted);
    free(seen);
    return status;
}

static enum dpf_status read_header(struct csv *s, struct dpf_error *e)
{
    enum dpf_header_line kind = s->columns ? s->columns->header : DPF_HEADER_NAMES;
    enum dpf_status status = DPF_OK;
    if (kind == DPF_HEADER_SKIP)
        status = dpf_csv_text_skip(&s->text, e);
    if (status != DPF_OK || kind != DPF_HEADER_NAMES)
        return status == DPF_OK ? place_columns(s, e) : status;
    status = dpf_csv_text_next(&s->text, e);
    if (status == DPF_OK && s->text.cell_count == 0)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has no header line",
                        dpf_bytes_name(s->text.bytes));
    if (status == DPF_OK)
        status = check_names(s, e);
    if (status == DPF_OK && !s->described)
        status = describe(s, e);
    if (status == DPF_OK)
        status = place_columns(s, e);
    return status == DPF_OK ? place_by_name(s, e) : status;
}

/* ---- opening: the fields ---- */

static bool all_bytes(const struct csv *s)
{
    for (size_t i = 0; i < s->columns->count; i++) {
        const struct dpf_column *c = &s->columns->columns[i];
        if (dpf_column_features(c) &&
            (c->kind != DPF_COLUMN_INT || c->lo < 0 || c->hi > 255))
            return false;
    }
    return true;
}

/* Feature k of column c: its name, and its bounds. */
static bool name_feature(struct dpf_field *x, const struct dpf_column *c, size_t k)
{
    bool one_hot = c->kind == DPF_COLUMN_CATEGORY, code = c->kind == DPF_COLUMN_CODE;
    size_t i = x->feature_count;
    x->features[i] =
        one_hot ? dpf_format("%s=%s", c->name, c->values[k]) : dpf_strdup(c->name);
    if (!x->features[i])
        return false;
    x->feature_count++;
    if (x->bounds.count) {
        x->bounds.lo[i] = one_hot || code ? 0 : c->lo;
        x->bounds.hi[i] = one_hot ? 1 : code ? (double)(c->value_count - 1) : c->hi;
    }
    return true;
}

static enum dpf_status add_features(struct csv *s, struct dpf_error *e)
{
    if (s->columns->features == 0) /* links */
        return DPF_OK;
    struct dpf_shape shape = {.rank = 1, .dim = {s->columns->features}};
    if (s->columns->has_shape)
        shape = s->columns->shape;
    struct dpf_field *x = dpf_header_add_field(&s->source.header, "x",
                                               all_bytes(s) ? DPF_U8 : DPF_F32, &shape);
    x->features = dpf_calloc(s->columns->features, sizeof *x->features);
    if (s->described) {
        x->bounds.lo = dpf_calloc(s->columns->features, sizeof(double));
        x->bounds.hi = dpf_calloc(s->columns->features, sizeof(double));
        x->bounds.count = s->columns->features;
    }
    bool good = x->features && (!s->described || (x->bounds.lo && x->bounds.hi));
    for (size_t i = 0; good && i < s->columns->count; i++) {
        const struct dpf_column *c = &s->columns->columns[i];
        for (size_t k = 0; good && k < dpf_column_features(c); k++)
            good = name_feature(x, c, k);
    }
    return good ? DPF_OK : dpf_fail_memory(e);
}

static enum dpf_status add_outcome(struct csv *s, struct dpf_error *e)
{
    const struct dpf_shape scalar = {0};
    struct dpf_header *h = &s->source.header;
    for (size_t i = 0; i < s->columns->count; i++) {
        const struct dpf_column *c = &s->columns->columns[i];
        if (c->kind == DPF_COLUMN_TARGET) {
            struct dpf_field *y = dpf_header_add_field(h, "y", DPF_F32, &scalar);
            return dpf_field_set_bounds(y, c->lo, c->hi, e);
        }
        if (c->kind == DPF_COLUMN_LABEL) {
            enum dpf_dtype dtype = c->value_count <= 256 ? DPF_U8 : DPF_I32;
            dpf_header_add_field(h, "y", dtype, &scalar)->classes = c->value_count;
        }
    }
    return DPF_OK;
}

/* Behind x and y. */
static enum dpf_status add_keys(struct csv *s, struct dpf_error *e)
{
    const struct dpf_shape scalar = {0}, pair = {1, {2}};
    struct dpf_header *h = &s->source.header;
    bool links = s->columns->persons == 2;
    if (s->columns->persons && !dpf_header_add_field(h, links ? "link" : "person",
                                                     DPF_I64, links ? &pair : &scalar))
        return dpf_fail_memory(e);
    return !has_kind(s->columns, DPF_COLUMN_DAY) ||
                   dpf_header_add_field(h, "time", DPF_I64, &scalar)
               ? DPF_OK
               : dpf_fail_memory(e);
}

static enum dpf_status csv_start(struct csv *s, struct dpf_bytes *take_bytes,
                                 const struct dpf_csv_limits *limits, struct dpf_error *e)
{
    size_t line = limits && limits->line_bytes ? limits->line_bytes : DEFAULT_LINE;
    size_t fields = limits && limits->fields ? limits->fields : DEFAULT_FIELDS;
    char separator = s->columns ? s->columns->separator : ',';
    enum dpf_status status =
        dpf_csv_text_init(&s->text, take_bytes, separator, line, fields, e);
    if (status == DPF_OK)
        status = read_header(s, e);
    if (status == DPF_OK)
        status = add_features(s, e);
    if (status == DPF_OK)
        status = add_outcome(s, e);
    return status == DPF_OK ? add_keys(s, e) : status;
}

enum dpf_status dpf_csv_new(struct dpf_bytes *take_bytes,
                            const struct dpf_columns *columns,
                            const struct dpf_csv_limits *limits, struct dpf_source **take,
                            struct dpf_error *e)
{
    static const struct dpf_source_ops ops = {.fill = csv_fill, .destroy = csv_destroy};
    struct csv *s = dpf_calloc(1, sizeof *s);
    if (!s) {
        dpf_bytes_destroy(&take_bytes);
        return dpf_fail_memory(e);
    }
    s->source.ops = &ops;
    s->columns = columns;
    s->described = columns != NULL;
    *take = &s->source;
    enum dpf_status status = csv_start(s, take_bytes, limits, e);
    if (status != DPF_OK)
        dpf_source_destroy(take);
    return status;
}

enum dpf_status dpf_csv_open(const char *path, const struct dpf_columns *columns,
                             const struct dpf_csv_limits *limits,
                             struct dpf_source **take, struct dpf_error *e)
{
    struct dpf_bytes *b;
    enum dpf_status status = dpf_bytes_open(path, &b, e);
    return status == DPF_OK ? dpf_csv_new(b, columns, limits, take, e) : status;
}

static enum dpf_status open_request(const struct dpf_load_request *q,
                                    struct dpf_source **take, struct dpf_error *e)
{
    return dpf_csv_open(q->names[0], q->columns, NULL, take, e);
}

const struct dpf_format dpf_format_csv = {
    .title = "CSV",
    .endings = DPF_ENDINGS(".csv", ".data"),
    .gives = "x, y as --columns FILE declares",
    .takes = DPF_TAKES("columns"),
    .open = open_request,
};
