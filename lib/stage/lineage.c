#include "stage/lineage.h"

#include <string.h>

#include "wire/decode.h"
#include "wire/stream.h"

#include "base/banned.h"

/* One source of a stream: what was loaded, and how it was cut afterwards. */
enum { MOST = 64 };
struct source {
    char name[120]; /* arguments of `load` */
    char cut[200];  /* options of `split` that say how, as JSON */
    char kept[80];  /* those that say which side: part and rest */
};
struct sources {
    struct source list[MOST];
    size_t count;
    bool overflow;
};

static void add_word(struct dpf_text *t, const char *word, size_t size)
{
    for (const char *at = t->size ? t->data : NULL; at; at = strchr(at, ',')) {
        at += strspn(at, ", ");
        if (strncmp(at, word, size) == 0 && (at[size] == '\0' || at[size] == ','))
            return;
    }
    dpf_text_add(t, t->size ? ", " : "");
    dpf_text_addn(t, word, size);
}

static void copy_text(char *to, size_t room, const struct dpf_text *from)
{
    size_t size = from->size < room - 1 ? from->size : room - 1;
    if (size)
        memcpy(to, from->data, size);
    to[size] = '\0';
}

static void take_load(struct sources *all, const msgpack_object *entry)
{
    const msgpack_object *arguments = dpf_object_get(entry, "arguments");
    struct dpf_text name = {0};
    for (uint32_t i = 0; arguments && arguments->type == MSGPACK_OBJECT_ARRAY &&
                         i < arguments->via.array.size;
         i++) {
        const char *text;
        size_t size;
        if (dpf_object_text(&arguments->via.array.ptr[i], &text, &size)) {
            dpf_text_add(&name, i ? " " : "");
            dpf_text_addn(&name, text, size);
        }
    }
    all->overflow = all->overflow || all->count == MOST;
    if (!all->overflow) {
        struct source *s = &all->list[all->count++];
        *s = (struct source){{0}, {0}, {0}};
        copy_text(s->name, sizeof s->name, &name);
    }
    dpf_text_release(&name);
}

/* A split belongs to the source before it. The first one counts: further ones only keep
 * less of what it kept. */
static void take_split(struct sources *all, const msgpack_object *entry)
{
    const msgpack_object *options = dpf_object_get(entry, "options");
    struct dpf_text how = {0}, which = {0};
    if (all->count == 0 || !options || options->type != MSGPACK_OBJECT_MAP ||
        *all->list[all->count - 1].cut)
        return;
    for (uint32_t i = 0; i < options->via.map.size; i++) {
        const msgpack_object *key = &options->via.map.ptr[i].key;
        bool side =
            dpf_object_is_string(key, "part") || dpf_object_is_string(key, "rest");
        struct dpf_text *to = side ? &which : &how;
        dpf_object_to_json(key, to);
        dpf_object_to_json(&options->via.map.ptr[i].val, to);
    }
    copy_text(all->list[all->count - 1].cut, sizeof all->list[0].cut, &how);
    copy_text(all->list[all->count - 1].kept, sizeof all->list[0].kept, &which);
    dpf_text_release(&how);
    dpf_text_release(&which);
}

static void take_method(struct dpf_text *methods, const msgpack_object *entry,
                        const char *key)
{
    const msgpack_object *options = dpf_object_get(entry, "options");
    const msgpack_object *method = options ? dpf_object_get(options, key) : NULL;
    const char *text;
    size_t size;
    if (method && dpf_object_text(method, &text, &size))
        add_word(methods, text, size);
}

/* Noise by --mechanism, or the Laplace noise of features. */
static void take_perturbation(struct dpf_text *methods, const msgpack_object *entry)
{
    const msgpack_object *options = dpf_object_get(entry, "options");
    const msgpack_object *release = options ? dpf_object_get(options, "release") : NULL;
    const msgpack_object *variant = options ? dpf_object_get(options, "variant") : NULL;
    bool features = release && dpf_object_is_string(release, "features");
    bool plain = variant && dpf_object_is_string(variant, "plain");
    if (features && !plain)
        add_word(methods, "laplace", strlen("laplace"));
    else
        take_method(methods, entry, "mechanism");
}

/* With `methods`: of the records alone. Without: of all that went into a model. */
static void read_provenance(const struct dpf_values *provenance, struct sources *all,
                            struct dpf_text *methods)
{
    msgpack_unpacked one;
    size_t at = 0;
    msgpack_unpacked_init(&one);
    for (uint32_t i = 0; i < provenance->count; i++) {
        if (msgpack_unpack_next(&one, (const char *)provenance->bytes.data,
                                provenance->bytes.size, &at) != MSGPACK_UNPACK_SUCCESS ||
            one.data.type != MSGPACK_OBJECT_MAP)
            break;
        const msgpack_object *stage = dpf_object_get(&one.data, "stage");
        if (!stage || (methods && dpf_object_get(&one.data, "model")))
            continue;
        if (dpf_object_is_string(stage, "load"))
            take_load(all, &one.data);
        else if (dpf_object_is_string(stage, "split"))
            take_split(all, &one.data);
        else if (methods && dpf_object_is_string(stage, "randomize"))
            take_method(methods, &one.data, "method");
        else if (methods && dpf_object_is_string(stage, "perturb"))
            take_perturbation(methods, &one.data);
    }
    msgpack_unpacked_destroy(&one);
}

/* Whether SET:PART and SET:PART name something in common; the part `all` is both. */
static bool names_meet(const char *a, const char *b)
{
    const char *part_a = strchr(a, ':'), *part_b = strchr(b, ':');
    size_t set_a = part_a ? (size_t)(part_a - a) : strlen(a);
    size_t set_b = part_b ? (size_t)(part_b - b) : strlen(b);
    if (set_a != set_b || memcmp(a, b, set_a) != 0)
        return false;
    return !part_a || !part_b || strcmp(part_a, part_b) == 0 ||
           strcmp(part_a, ":all") == 0 || strcmp(part_b, ":all") == 0;
}

/* Whether a record of one may be a record of the other. */
static bool may_share(const struct source *a, const struct source *b)
{
    if (!names_meet(a->name, b->name))
        return false;
    bool two_sides = strcmp(a->name, b->name) == 0 && *a->cut &&
                     strcmp(a->cut, b->cut) == 0 && strcmp(a->kept, b->kept) != 0;
    return !two_sides;
}

void dpf_lineage_read(struct dpf_lineage *l, const struct dpf_header *model,
                      const struct dpf_header *records)
{
    struct sources learned = {.count = 0}, scored = {.count = 0};
    *l = (struct dpf_lineage){.membership = DPF_HELD_OUT};
    read_provenance(&model->provenance, &learned, NULL);
    read_provenance(&records->provenance, &scored, &l->randomised);
    for (size_t i = 0; i < learned.count; i++)
        add_word(&l->trained_on, learned.list[i].name, strlen(learned.list[i].name));
    for (size_t i = 0; i < scored.count; i++) {
        add_word(&l->records, scored.list[i].name, strlen(scored.list[i].name));
        for (size_t k = 0; k < learned.count; k++)
            if (may_share(&scored.list[i], &learned.list[k]))
                l->membership = DPF_SEEN;
    }
    if (learned.count == 0 || scored.count == 0 || learned.overflow || scored.overflow)
        l->membership = l->membership == DPF_SEEN ? DPF_SEEN : DPF_UNKNOWN;
}

void dpf_lineage_release(struct dpf_lineage *l)
{
    dpf_text_release(&l->records);
    dpf_text_release(&l->trained_on);
    dpf_text_release(&l->randomised);
}

static void add_json(struct dpf_text *json, const char *key, const struct dpf_text *value)
{
    dpf_text_addf(json, ",\"%s\":", key);
    if (value->size)
        dpf_text_add_json(json, value->data, value->size);
    else
        dpf_text_add(json, "null");
}

void dpf_lineage_report(const struct dpf_lineage *l, struct dpf_text *table,
                        struct dpf_text *json)
{
    static const char *const words[] = {"held out", "trained on", "unknown"};
    static const char *const values[] = {"true", "false", "null"};
    struct dpf_text whole = {0};
    const char *text = dpf_text_get(table), *gap = strstr(text, "\n\n");
    size_t summary = gap ? (size_t)(gap - text) + 1 : table->size;
    dpf_text_addn(&whole, text, summary);
    dpf_text_addf(&whole, "records            %s, %s\n",
                  l->records.size ? l->records.data : "of an unnamed source",
                  words[l->membership]);
    dpf_text_addf(&whole, "inputs             %s%s\n",
                  l->randomised.size ? "randomised by " : "not randomised",
                  l->randomised.size ? l->randomised.data : "");
    dpf_text_addn(&whole, text + summary, table->size - summary);
    dpf_text_release(table);
    *table = whole;
    if (json->size == 0 || json->data[json->size - 1] != '}')
        return;
    json->data[--json->size] = '\0';
    add_json(json, "records", &l->records);
    add_json(json, "trained_on", &l->trained_on);
    dpf_text_addf(json, ",\"held_out\":%s", values[l->membership]);
    add_json(json, "inputs_randomised", &l->randomised);
    dpf_text_add(json, "}");
}
