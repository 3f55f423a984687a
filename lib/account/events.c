/* Writing mechanisms into a ledger. */
#include <math.h>
#include <string.h>

#include "account/ledger.h"

#include "base/banned.h"

const char *const dpf_relation_words[] = {"add-remove", "replace-one", "local", NULL};
const char *const dpf_mechanism_words[] = {"gaussian", "laplace", "response", "pure",
                                           NULL};
const char *const dpf_mechanism_parameters[] = {"noise_multiplier", "scale", "epsilon",
                                                "epsilon"};

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
    if (m->units) {
        dpf_pack_string(p, "units");
        msgpack_pack_uint64(p, m->units);
    }
    if (m->probability_count) {
        dpf_pack_string(p, "probabilities");
        msgpack_pack_array(p, m->probability_count);
        for (size_t i = 0; i < m->probability_count; i++)
            msgpack_pack_double(p, m->probabilities[i]);
    }
    if (m->shows_place) {
        dpf_pack_string(p, "shows_place");
        msgpack_pack_true(p);
    }
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
    msgpack_packer p = dpf_values_packer(events);
    bool response = s->kind == DPF_SPEND_RESPONSE;
    msgpack_pack_map(&p, 10 + response + (m->norm ? 2 : 0) + (m->assumes != NULL) +
                             (m->method != NULL) + (m->units > 0) +
                             (m->probability_count > 0) + (m->moments != NULL) +
                             m->shows_place + (m->clear != NULL));
    pair(&p, "event", "mechanism");
    pair(&p, "stage", stage);
    pair(&p, "mechanism", dpf_mechanism_words[s->kind]);
    number(&p, dpf_mechanism_parameters[s->kind], s->parameter);
    if (response) {
        dpf_pack_string(&p, "choices");
        msgpack_pack_uint64(&p, s->choices);
    }
    pair(&p, "sampling", m->sampling);
    number(&p, "rate", s->rate);
    dpf_pack_string(&p, "count");
    msgpack_pack_uint64(&p, s->count);
    if (m->norm) {
        pair(&p, "norm", m->norm);
        number(&p, "sensitivity", m->sensitivity);
    }
    pair(&p, "relation", dpf_relation_words[m->relation]);
    if (m->assumes)
        pair(&p, "assumes", m->assumes);
    ingredients(&p, m);
    statement(&p, "claimed", "source", &m->claimed, NULL);
    statement(&p, "proven", "theorem", &m->proven, m->why);
    events->count++;
}
