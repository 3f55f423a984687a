#include "exchange/answer_stream.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "ledger/source.h"

#include "base/banned.h"

int64_t dpf_query_digest(const void *record, size_t bytes)
{
    unsigned char digest[16];
    int64_t number;
    crypto_generichash(digest, sizeof digest, record, bytes, NULL, 0);
    memcpy(&number, digest, sizeof number);
    return number;
}

enum dpf_status dpf_answers_declare(struct dpf_header *h, uint64_t teachers,
                                    uint64_t classes, uint64_t values,
                                    struct dpf_error *e)
{
    const struct dpf_shape pair = {.rank = 1, .dim = {2}}, one = {.rank = 0};
    const struct dpf_shape vector = {.rank = 1, .dim = {values}};
    bool known = h->has_records && h->records <= UINT64_MAX / teachers;
    uint64_t records = h->records;
    dpf_header_drop_fields(h);
    h->has_records = known;
    h->records = known ? records * teachers : 0;
    struct dpf_field *f = NULL;
    if (dpf_header_add_field(h, "query", DPF_I64, &pair) &&
        dpf_header_add_field(h, "teacher", DPF_I64, &one))
        f = classes
                ? dpf_header_add_field(h, "vote", classes <= 256 ? DPF_U8 : DPF_I32, &one)
                : dpf_header_add_field(h, "code", DPF_F32, &vector);
    if (!f)
        return dpf_fail_memory(e);
    f->classes = classes;
    return DPF_OK;
}

/* ------------------------------------------------------------------------- reading */

static int field_number(const struct dpf_header *h, const char *name)
{
    for (int i = 0; i < h->field_count; i++)
        if (strcmp(h->fields[i].name, name) == 0)
            return i;
    return -1;
}

static enum dpf_status read_fields(struct dpf_answers *a, const struct dpf_header *h,
                                   struct dpf_error *e)
{
    int vote = field_number(h, "vote"), code = field_number(h, "code");
    int query = field_number(h, "query"), teacher = field_number(h, "teacher");
    if (query < 0 || teacher < 0 || (vote < 0) == (code < 0))
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the stream has no answers of teachers: it needs the fields "
                        "'query', 'teacher' and 'vote' or 'code'");
    const struct dpf_field *q = &h->fields[query], *t = &h->fields[teacher];
    const struct dpf_field *v = &h->fields[vote < 0 ? code : vote];
    a->votes = vote >= 0;
    a->at[DPF_ANSWER_QUERY] = query;
    a->at[DPF_ANSWER_TEACHER] = teacher;
    a->at[DPF_ANSWER_VALUE] = a->votes ? vote : code;
    a->values = a->votes ? v->classes : v->shape.dim[0];
    bool good =
        q->dtype == DPF_I64 && q->shape.rank == 1 && q->shape.dim[0] == 2 &&
        t->dtype == DPF_I64 && t->shape.rank == 0 && a->values > 0 &&
        v->shape.rank == (a->votes ? 0 : 1) &&
        (a->votes ? v->dtype == DPF_U8 || v->dtype == DPF_I32 : v->dtype == DPF_F32);
    return good ? DPF_OK
                : dpf_fail(e, DPF_BAD_STREAM,
                           "the fields of the teachers' answers are malformed");
}

static enum dpf_status add_teacher(struct dpf_answers *a, const msgpack_object *name,
                                   const msgpack_object *id, struct dpf_error *e)
{
    if (!dpf_grow(&a->teachers, &a->capacity, a->count + 1, sizeof *a->teachers))
        return dpf_fail_memory(e);
    struct dpf_text shown = {0};
    dpf_text_add_visible(&shown, name->via.str.ptr,
                         name->via.str.size < 80 ? name->via.str.size : 80);
    a->teachers[a->count] =
        (struct dpf_answer_teacher){dpf_strdup(dpf_text_get(&shown)), id->via.u64};
    dpf_text_release(&shown);
    return a->teachers[a->count++].name ? DPF_OK : dpf_fail_memory(e);
}

/* Teachers of one release answer the same queries, so these have one ledger. */
static enum dpf_status take_asked(struct dpf_answers *a, struct dpf_values *take_asked,
                                  const msgpack_object *names, struct dpf_error *e)
{
    if (!a->asked_known) {
        a->asked = *take_asked;
        a->asked_known = true;
        return dpf_buffer_ok(&a->asked.bytes) ? DPF_OK : dpf_fail_memory(e);
    }
    bool same = dpf_ledger_same(&a->asked, take_asked);
    dpf_values_release(take_asked);
    if (same)
        return DPF_OK;
    const msgpack_object *name = names->via.array.size ? names->via.array.ptr : NULL;
    return dpf_fail(e, DPF_BAD_STREAM,
                    "teacher '%.*s' was asked queries with another ledger than those "
                    "before: give all teachers the same stream",
                    name ? (int)(name->via.str.size < 80 ? name->via.str.size : 80) : 0,
                    name ? name->via.str.ptr : "");
}

/* The events of one stream: those of the queries, and then of the teachers. */
static enum dpf_status read_stream_events(struct dpf_answers *a,
                                          const msgpack_object *array,
                                          struct dpf_error *e)
{
    uint32_t size = array->via.array.size;
    struct dpf_event v;
    struct dpf_values asked = {0};
    if (size == 0 ||
        dpf_event_read(&array->via.array.ptr[size - 1], &v, NULL) != DPF_OK ||
        v.kind != DPF_EVENT_TEACHERS || !v.names)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the ledger does not end with teachers: only what "
                        "'teacher-infer' wrote can be aggregated");
    for (uint32_t i = 0; i + 1 < size; i++)
        dpf_values_append_object(&asked, &array->via.array.ptr[i]);
    enum dpf_status status = take_asked(a, &asked, v.names, e);
    for (uint32_t i = 0; status == DPF_OK && i < v.branches->via.array.size; i++) {
        dpf_values_append_object(&a->branches, &v.branches->via.array.ptr[i]);
        status = add_teacher(a, &v.names->via.array.ptr[i], &v.ids->via.array.ptr[i], e);
    }
    return status;
}

static enum dpf_status read_events(struct dpf_answers *a, const msgpack_object *array,
                                   int depth, struct dpf_error *e)
{
    struct dpf_event v;
    bool merged = array->via.array.size == 1 &&
                  dpf_event_read(&array->via.array.ptr[0], &v, NULL) == DPF_OK &&
                  v.kind == DPF_EVENT_MERGE;
    if (!merged)
        return read_stream_events(a, array, e);
    enum dpf_status status =
        depth > DPF_MAX_EVENT_DEPTH
            ? dpf_fail(e, DPF_BAD_STREAM, "the ledger is nested too deep")
            : DPF_OK;
    for (uint32_t i = 0; status == DPF_OK && i < v.branches->via.array.size; i++)
        status = read_events(a, &v.branches->via.array.ptr[i], depth + 1, e);
    return status;
}

bool dpf_answers_is(const struct dpf_header *h)
{
    return field_number(h, "teacher") >= 0 && field_number(h, "query") >= 0;
}

enum dpf_status dpf_answers_read(struct dpf_answers *a, const struct dpf_header *h,
                                 struct dpf_error *e)
{
    struct dpf_event_list list;
    *a = (struct dpf_answers){0};
    enum dpf_status status = read_fields(a, h, e);
    if (status == DPF_OK)
        status = dpf_event_list_init(&list, &h->events, e);
    if (status != DPF_OK)
        return status;
    status = read_events(a, &list.array, 0, e);
    dpf_event_list_release(&list);
    if (status != DPF_OK)
        dpf_answers_release(a);
    return status;
}

enum dpf_status dpf_answers_read_alone(struct dpf_answers *a, const struct dpf_header *h,
                                       struct dpf_error *e)
{
    struct dpf_error why = {.status = DPF_OK};
    if (!dpf_answers_is(h))
        return dpf_fail(e, DPF_PRIVACY,
                        "with '--answers' a stream holds answers of 'teacher-infer' and "
                        "nothing else: there are no fields 'query' and 'teacher'");
    enum dpf_status status = dpf_answers_read(a, h, &why);
    if (status == DPF_BAD_STREAM)
        return dpf_fail(e, DPF_PRIVACY,
                        "with '--answers' a stream holds answers of 'teacher-infer' and "
                        "nothing else: %s",
                        why.message);
    if (status != DPF_OK)
        return dpf_fail(e, status, "%s", why.message);
    for (int i = 0; status == DPF_OK && i < h->field_count; i++)
        if (i != a->at[DPF_ANSWER_QUERY] && i != a->at[DPF_ANSWER_TEACHER] &&
            i != a->at[DPF_ANSWER_VALUE])
            status =
                dpf_fail(e, DPF_PRIVACY,
                         "with '--answers' a stream holds answers of 'teacher-infer' "
                         "and nothing else: there is a field '%s'",
                         h->fields[i].name);
    if (status != DPF_OK)
        dpf_answers_release(a);
    return status;
}

void dpf_answers_release(struct dpf_answers *a)
{
    for (size_t i = 0; i < a->count; i++)
        free(a->teachers[i].name);
    free(a->teachers);
    dpf_values_release(&a->branches);
    dpf_values_release(&a->asked);
    *a = (struct dpf_answers){0};
}

size_t dpf_answers_find(const struct dpf_answers *a, uint64_t id)
{
    size_t i = 0;
    while (i < a->count && a->teachers[i].id != id)
        i++;
    return i;
}
