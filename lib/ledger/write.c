/* Writing events. */
#include <math.h>
#include <string.h>

#include "ledger/event.h"
#include "ledger/source.h"

#include "base/banned.h"

const char *const dpf_relation_words[] = {"add-remove", "replace-one", "local", NULL};
static void pair(msgpack_packer *p, const char *key, const char *value)
{
    dpf_pack_string(p, key);
    dpf_pack_string(p, value);
}

static void number(msgpack_packer *p, const char *key, double value)
{
    dpf_pack_string(p, key);
    if (isfinite(value))
        msgpack_pack_double(p, value);
    else
        msgpack_pack_nil(p);
}

static void whole(msgpack_packer *p, const char *key, uint64_t value)
{
    dpf_pack_string(p, key);
    msgpack_pack_uint64(p, value);
}

static void yes(msgpack_packer *p, const char *key)
{
    dpf_pack_string(p, key);
    msgpack_pack_true(p);
}

/* What every event begins with; `more` keys follow. */
static msgpack_packer begin(struct dpf_values *events, enum dpf_event_kind kind,
                            const char *stage, size_t more)
{
    msgpack_packer p = dpf_values_packer(events);
    msgpack_pack_map(&p, 2 + more);
    pair(&p, "event", dpf_event_word(kind));
    pair(&p, "stage", stage);
    events->count++;
    return p;
}

static void stability(msgpack_packer *p, struct dpf_stability s)
{
    dpf_pack_string(p, "stability");
    msgpack_pack_map(p, (s.add_remove > 0) + (s.replace_one > 0));
    if (s.add_remove)
        whole(p, dpf_relation_words[DPF_ADD_REMOVE], s.add_remove);
    if (s.replace_one)
        whole(p, dpf_relation_words[DPF_REPLACE_ONE], s.replace_one);
}

static void statement(msgpack_packer *p, const char *key, const char *source_key,
                      const struct dpf_guarantee *s, const char *why)
{
    dpf_pack_string(p, key);
    msgpack_pack_map(p, why ? 4 : 3);
    number(p, "epsilon", s->epsilon);
    number(p, "delta", s->delta);
    pair(p, source_key, s->source ? s->source : "");
    if (why)
        pair(p, "why", why);
}

/* What the mechanism was made of. */
static void ingredients(msgpack_packer *p, const struct dpf_mechanism_event *m)
{
    if (m->method)
        pair(p, "method", m->method);
    if (m->units)
        whole(p, "units", m->units);
    if (m->probability_count) {
        dpf_pack_string(p, "probabilities");
        msgpack_pack_array(p, m->probability_count);
        for (size_t i = 0; i < m->probability_count; i++)
            msgpack_pack_double(p, m->probabilities[i]);
    }
    if (m->shows_place)
        yes(p, "shows_place");
    if (m->tells_count)
        yes(p, "tells_count");
    if (m->clear)
        pair(p, "clear", m->clear);
    if (m->moments) {
        dpf_pack_string(p, "moments");
        msgpack_pack_array(p, 2);
        msgpack_pack_double(p, m->moments[0]);
        msgpack_pack_double(p, m->moments[1]);
    }
}

void dpf_ledger_add_mechanism(struct dpf_values *events, const char *stage,
                              const struct dpf_mechanism_event *m)
{
    const struct dpf_spending *s = &m->spending;
    msgpack_packer p =
        begin(events, DPF_EVENT_MECHANISM, stage,
              8 + s->kind->has_choices + (m->norm ? 2 : 0) + (m->assumes != NULL) +
                  (m->release != NULL) + (m->method != NULL) + (m->units > 0) +
                  (m->probability_count > 0) + (m->moments != NULL) + m->shows_place +
                  m->tells_count + (m->clear != NULL));
    pair(&p, "mechanism", s->kind->name);
    number(&p, s->kind->key, s->parameter);
    if (s->kind->has_choices)
        whole(&p, "choices", s->choices);
    pair(&p, "sampling", m->sampling);
    number(&p, "rate", s->rate);
    whole(&p, "count", s->count);
    if (m->norm) {
        pair(&p, "norm", m->norm);
        number(&p, "sensitivity", m->sensitivity);
    }
    pair(&p, "relation", dpf_relation_words[m->relation]);
    if (m->assumes)
        pair(&p, "assumes", m->assumes);
    if (m->release)
        pair(&p, "release", m->release);
    ingredients(&p, m);
    statement(&p, "claimed", "source", &m->claimed, NULL);
    statement(&p, "proven", "theorem", &m->proven, m->why);
}

void dpf_ledger_add_none(struct dpf_values *events, const char *stage, const char *why)
{
    msgpack_packer p = begin(events, DPF_EVENT_NONE, stage, 2);
    pair(&p, "why", why);
    dpf_pack_string(&p, "proven");
    msgpack_pack_map(&p, 2);
    dpf_pack_string(&p, "epsilon");
    msgpack_pack_nil(&p);
    pair(&p, "why", "no mechanism: no finite bound");
}

void dpf_ledger_add_seed(struct dpf_values *events, const char *stage)
{
    msgpack_packer p = begin(events, DPF_EVENT_SEED, stage, 1);
    pair(&p, "why", "whoever knows the seed can repeat every draw: no guarantee");
}

void dpf_ledger_add_mixing(struct dpf_values *events, const char *stage, const char *by)
{
    msgpack_packer p = begin(events, DPF_EVENT_MIXING, stage, 1);
    pair(&p, "by", by);
}

void dpf_ledger_add_randomised(struct dpf_values *events, const char *stage,
                               const char *method)
{
    msgpack_packer p = begin(events, DPF_EVENT_RANDOMISED, stage, 1);
    pair(&p, "method", method);
}

void dpf_ledger_add_source(struct dpf_values *events, const char *stage,
                           const struct dpf_source_event *s)
{
    msgpack_packer p = begin(events, DPF_EVENT_SOURCE, stage,
                             1 + (s->digest != NULL) + (s->set ? 2 : 0));
    pair(&p, "name", s->name);
    if (s->digest)
        pair(&p, "digest", s->digest);
    if (s->set) {
        pair(&p, "set", s->set);
        pair(&p, "part", s->part);
    }
}

void dpf_ledger_add_selection(struct dpf_values *events, const char *stage,
                              const struct dpf_selection_event *s)
{
    msgpack_packer p = begin(events, DPF_EVENT_SELECTION, stage, 3 + s->count_private);
    pair(&p, "by", s->by);
    pair(&p, "rule", s->rule);
    stability(&p, s->stability);
    if (s->count_private)
        yes(&p, "count_private");
}

void dpf_ledger_add_partition(struct dpf_values *events, const char *stage,
                              const struct dpf_partition_event *c,
                              const struct dpf_header *of)
{
    char cut[DPF_SOURCE_TEXT];
    bool known = dpf_source_cut(c, of, cut);
    msgpack_packer p = begin(events, DPF_EVENT_PARTITION, stage,
                             6 + known + (c->share > 0) + c->count_private);
    whole(&p, "parts", c->parts);
    whole(&p, "part", c->part);
    pair(&p, "by", c->by);
    whole(&p, "seed", c->seed);
    if (c->share > 0)
        number(&p, "share", c->share);
    if (known)
        pair(&p, "cut", cut);
    stability(&p, c->stability);
    pair(&p, "disjoint_under", dpf_relation_words[c->disjoint_under]);
    if (c->count_private)
        yes(&p, "count_private");
}

void dpf_ledger_add_augmentation(struct dpf_values *events, const char *stage,
                                 uint64_t copies, const char *by, struct dpf_stability s)
{
    msgpack_packer p = begin(events, DPF_EVENT_AUGMENTATION, stage, 3);
    whole(&p, "copies", copies);
    pair(&p, "by", by);
    stability(&p, s);
}

void dpf_ledger_add_windows(struct dpf_values *events, const char *stage,
                            const struct dpf_windows_event *w)
{
    msgpack_packer p = begin(events, DPF_EVENT_WINDOWS, stage, 6 + w->count_private);
    pair(&p, "unit", "person");
    number(&p, "first", (double)w->first);
    number(&p, "last", (double)w->last);
    whole(&p, "ends", w->ends);
    whole(&p, "friends", w->friends);
    stability(&p, w->stability);
    if (w->count_private)
        yes(&p, "count_private");
}

void dpf_ledger_add_model(struct dpf_values *events, const char *stage,
                          const struct dpf_header *model)
{
    msgpack_packer p = begin(events, DPF_EVENT_MODEL, stage, 2);
    pair(&p, "data", dpf_header_standing(model));
    dpf_pack_string(&p, "events");
    msgpack_pack_array(&p, model->events.count);
    dpf_buffer_append(&events->bytes, model->events.bytes.data, model->events.bytes.size);
}

void dpf_ledger_add_teachers(struct dpf_values *events, const char *stage,
                             const struct dpf_teachers_event *t)
{
    uint32_t count = t->branches->count;
    msgpack_packer p = begin(events, DPF_EVENT_TEACHERS, stage,
                             1 + t->distinct_owners + (t->names ? 2 : 0));
    if (t->distinct_owners)
        yes(&p, "distinct_owners");
    if (t->names) {
        dpf_pack_string(&p, "names");
        msgpack_pack_array(&p, count);
        for (uint32_t i = 0; i < count; i++)
            dpf_pack_string(&p, t->names[i]);
        dpf_pack_string(&p, "ids");
        msgpack_pack_array(&p, count);
        for (uint32_t i = 0; i < count; i++)
            msgpack_pack_uint64(&p, t->ids[i]);
    }
    dpf_pack_string(&p, "branches");
    msgpack_pack_array(&p, count);
    dpf_buffer_append(&events->bytes, t->branches->bytes.data, t->branches->bytes.size);
}
