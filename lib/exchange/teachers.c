#include "exchange/teachers.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "ledger/merge.h"
#include "ledger/source.h"

#include "base/banned.h"

char **dpf_part_names(size_t count)
{
    char **names = dpf_calloc(count + 1, sizeof *names);
    bool good = names != NULL;
    for (size_t i = 0; good && i < count; i++)
        good = (names[i] = dpf_format("part %zu of %zu", i, count)) != NULL;
    if (good)
        return names;
    dpf_names_free(names, count);
    return NULL;
}

/* -------------------------------------------------------------------------- reading */

/* A stream while it is read. */
struct pending {
    struct dpf_teachers *all;
    const char *place;
    size_t first; /* number of its first teacher */
};

static enum dpf_status take_model(struct pending *p, const msgpack_object *frame,
                                  struct dpf_error *e)
{
    struct dpf_teachers *t = p->all;
    if (!dpf_object_is_string(dpf_object_get(frame, "type"), "model"))
        return DPF_OK;
    if (!dpf_grow(&t->list, &t->capacity, t->count + 1, sizeof *t->list))
        return dpf_fail_memory(e);
    struct dpf_teacher *one = &t->list[t->count];
    *one = (struct dpf_teacher){.name = NULL};
    enum dpf_status status = dpf_weights_decode(frame, &one->model, &one->parameters, e);
    if (status != DPF_OK)
        return dpf_error_prefix(e, status, "'%s'", p->place);
    t->count++;
    return DPF_OK;
}

/* The file without folders and without ".mp". */
static char *name_of_place(const char *place)
{
    const char *from = dpf_path_base(place);
    size_t size = strlen(from);
    if (size > 3 && strcmp(from + size - 3, ".mp") == 0)
        size -= 3;
    return dpf_strndup(from, size);
}

static char *name_of_object(const msgpack_object *o)
{
    return dpf_strndup(o->via.str.ptr, o->via.str.size);
}

/* The events of a stream's teachers: one list for all of them is written by who trained
 * them together; else the stream's own events are those of its one teacher. */
static enum dpf_status take_events(struct pending *p, const struct dpf_header *h,
                                   struct dpf_error *e)
{
    struct dpf_teachers *t = p->all;
    size_t count = t->count - p->first;
    struct dpf_event_list list;
    struct dpf_event v = {.branches = NULL};
    enum dpf_status status = dpf_event_list_init(&list, &h->events, e);
    if (status != DPF_OK)
        return dpf_error_prefix(e, status, "'%s'", p->place);
    bool together = list.array.via.array.size == 1 &&
                    dpf_event_read(&list.array.via.array.ptr[0], &v, NULL) == DPF_OK &&
                    v.kind == DPF_EVENT_TEACHERS;
    if (together ? v.branches->via.array.size != count || !v.names : count != 1)
        status = dpf_fail(e, DPF_BAD_STREAM,
                          "'%s' holds %zu models, and its ledger is not of as many "
                          "teachers",
                          p->place, count);
    for (size_t i = 0; status == DPF_OK && i < count; i++) {
        struct dpf_teacher *one = &t->list[p->first + i];
        one->name = together ? name_of_object(&v.names->via.array.ptr[i])
                             : name_of_place(p->place);
        if (together)
            dpf_values_append_object(&t->branches, &v.branches->via.array.ptr[i]);
        else
            dpf_ledger_add_branch(&t->branches, &h->events);
        if (!one->name)
            status = dpf_fail_memory(e);
    }
    dpf_event_list_release(&list);
    return status;
}

/* Told by records and weights: who answers twice must be noticed, and two teachers whose
 * records the ledger cannot tell apart are still two. Keyed by the owner's secret: to
 * others an id of private weights says nothing but whether it is the same. Without a key
 * it is drawn anew. */
static enum dpf_status identify(struct pending *p, const struct dpf_header *h,
                                struct dpf_error *e)
{
    unsigned char key[DPF_OWNER_KEY_BYTES];
    bool known;
    enum dpf_status status = dpf_owner_key_get(key, &known, e);
    if (status == DPF_OK && !known)
        randombytes_buf(key, sizeof key);
    for (size_t i = p->first; status == DPF_OK && i < p->all->count; i++) {
        struct dpf_teacher *one = &p->all->list[i];
        uint64_t place = i - p->first;
        unsigned char digest[16];
        crypto_generichash_state state;
        crypto_generichash_init(&state, key, sizeof key, sizeof digest);
        crypto_generichash_update(&state, (const unsigned char *)&place, sizeof place);
        crypto_generichash_update(&state, h->events.bytes.data, h->events.bytes.size);
        crypto_generichash_update(&state, (const unsigned char *)one->parameters,
                                  one->model.span * sizeof *one->parameters);
        crypto_generichash_final(&state, digest, sizeof digest);
        memcpy(&one->id, digest, sizeof one->id);
        one->id >>= 1; /* it goes through fields of signed numbers */
    }
    sodium_memzero(key, sizeof key);
    return status;
}

static enum dpf_status read_stream(struct dpf_teachers *t, const char *place,
                                   struct dpf_error *e)
{
    struct dpf_endpoint_options options = dpf_stage_endpoint_options();
    struct pending p = {.all = t, .place = place, .first = t->count};
    struct dpf_stream_reader r = {0};
    struct dpf_channel *channel;
    enum dpf_item item = DPF_ITEM_BATCH;
    enum dpf_status status = dpf_channel_open(place, DPF_READ, &options, &channel, e);
    if (status == DPF_OK)
        status = dpf_stream_reader_open(&r, channel, dpf_ledger_merge, e);
    if (status != DPF_OK)
        return status;
    while (status == DPF_OK && item != DPF_ITEM_END) {
        status = dpf_stream_reader_next(&r, &item, e);
        if (status == DPF_OK && item == DPF_ITEM_OTHER)
            status = take_model(&p, r.object, e);
    }
    if (status == DPF_OK && t->count == p.first)
        status = dpf_fail(e, DPF_BAD_STREAM, "'%s' holds no model", place);
    if (status == DPF_OK)
        status = take_events(&p, &r.header, e);
    if (status == DPF_OK)
        status = identify(&p, &r.header, e);
    if (status == DPF_OK) {
        if (p.first == 0)
            dpf_values_append(&t->provenance, &r.header.provenance);
        t->is_public = (p.first == 0 || t->is_public) && !r.header.is_private &&
                       !r.header.is_protected;
    }
    dpf_stream_reader_release(&r);
    return status;
}

enum dpf_status dpf_teachers_read(struct dpf_teachers *t, const char *place,
                                  struct dpf_error *e)
{
    char **names = NULL;
    size_t count = 0;
    if (dpf_endpoint_has_scheme(place) || !dpf_is_dir(place))
        return read_stream(t, place, e);
    enum dpf_status status = dpf_list_folder(place, ".mp", &names, &count, e);
    if (status == DPF_OK && count == 0)
        status = dpf_fail(e, DPF_BAD_STREAM, "'%s' holds no streams (.mp)", place);
    for (size_t i = 0; status == DPF_OK && i < count; i++)
        status = read_stream(t, names[i], e);
    dpf_names_free(names, count);
    return status;
}

void dpf_teachers_release(struct dpf_teachers *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->list[i].name);
        dpf_model_release(&t->list[i].model);
        free(t->list[i].parameters);
    }
    free(t->list);
    dpf_values_release(&t->branches);
    dpf_values_release(&t->provenance);
    *t = (struct dpf_teachers){0};
}

enum dpf_status dpf_teachers_describe(const struct dpf_teachers *t, struct dpf_stage *s,
                                      struct dpf_error *e)
{
    const char **names = dpf_calloc(t->count + 1, sizeof *names);
    uint64_t *ids = dpf_calloc(t->count + 1, sizeof *ids);
    enum dpf_status status = names && ids ? DPF_OK : dpf_fail_memory(e);
    for (size_t i = 0; status == DPF_OK && i < t->count; i++) {
        names[i] = t->list[i].name;
        ids[i] = t->list[i].id;
    }
    const struct dpf_teachers_event event = {
        .branches = &t->branches, .names = names, .ids = ids};
    if (status == DPF_OK) {
        dpf_stage_adopt_provenance(s, &t->provenance);
        dpf_ledger_add_teachers(&s->out.events, s->info->name, &event);
        s->out.is_private = s->out.is_private || !t->is_public;
        s->out.is_protected = s->out.is_protected && !s->out.is_private;
    }
    free(names);
    free(ids);
    return status;
}
