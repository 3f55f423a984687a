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
                      const struct dpf_guarantee *s)
{
    dpf_pack_string(p, key);
    msgpack_pack_map(p, 3);
    number(p, "epsilon", s->epsilon);
    number(p, "delta", s->delta);
    pair(p, source_key, s->source ? s->source : "");
}

void dpf_ledger_add_mechanism(struct dpf_values *events, const char *stage,
                              const struct dpf_mechanism_event *m)
{
    const struct dpf_spending *s = &m->spending;
    msgpack_packer p = dpf_values_packer(events);
    bool response = s->kind == DPF_SPEND_RESPONSE;
    msgpack_pack_map(&p, 10 + response + (m->norm ? 2 : 0) + (m->assumes != NULL));
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
    statement(&p, "claimed", "source", &m->claimed);
    statement(&p, "proven", "theorem", &m->proven);
    events->count++;
}
