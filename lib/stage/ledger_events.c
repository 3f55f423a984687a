/* Events that stages without a mechanism leave in the ledger. */
#include "stage/stage.h"

#include "base/banned.h"

static void pair(msgpack_packer *p, const char *key, const char *value)
{
    dpf_pack_string(p, key);
    dpf_pack_string(p, value);
}

void dpf_stage_add_unprotected_event(struct dpf_stage *s, const char *why)
{
    msgpack_packer p = dpf_values_packer(&s->out.events);
    msgpack_pack_map(&p, 4);
    pair(&p, "event", "none");
    pair(&p, "stage", s->info->name);
    pair(&p, "why", why);
    dpf_pack_string(&p, "proven");
    msgpack_pack_map(&p, 2);
    dpf_pack_string(&p, "epsilon");
    msgpack_pack_nil(&p);
    pair(&p, "why", "no mechanism: no finite bound");
    s->out.events.count++;
}

void dpf_stage_add_seed_event(struct dpf_stage *s)
{
    msgpack_packer p = dpf_values_packer(&s->out.events);
    msgpack_pack_map(&p, 3);
    pair(&p, "event", "insecure-seed");
    pair(&p, "stage", s->info->name);
    pair(&p, "why", "whoever knows the seed can repeat every draw: no guarantee");
    s->out.events.count++;
}

void dpf_stage_add_selection_event(struct dpf_stage *s, const char *by,
                                   const char *stable_under)
{
    msgpack_packer p = dpf_values_packer(&s->out.events);
    msgpack_pack_map(&p, 4);
    pair(&p, "event", "selection");
    pair(&p, "stage", s->info->name);
    pair(&p, "by", by);
    pair(&p, "stable_under", stable_under);
    s->out.events.count++;
}

void dpf_stage_add_partition_event(struct dpf_stage *s, uint64_t parts, uint64_t part,
                                   const char *by, const char *disjoint_under)
{
    msgpack_packer p = dpf_values_packer(&s->out.events);
    msgpack_pack_map(&p, 6);
    pair(&p, "event", "partition");
    pair(&p, "stage", s->info->name);
    dpf_pack_string(&p, "parts");
    msgpack_pack_uint64(&p, parts);
    dpf_pack_string(&p, "part");
    msgpack_pack_uint64(&p, part);
    pair(&p, "by", by);
    pair(&p, "disjoint_under", disjoint_under);
    s->out.events.count++;
}

void dpf_stage_add_mixing_event(struct dpf_stage *s, const char *by)
{
    msgpack_packer p = dpf_values_packer(&s->out.events);
    msgpack_pack_map(&p, 3);
    pair(&p, "event", "mixing");
    pair(&p, "stage", s->info->name);
    pair(&p, "by", by);
    s->out.events.count++;
}

void dpf_stage_add_augmentation_event(struct dpf_stage *s, uint64_t copies,
                                      const char *by, const char *stable_under)
{
    msgpack_packer p = dpf_values_packer(&s->out.events);
    msgpack_pack_map(&p, 5);
    pair(&p, "event", "augmentation");
    pair(&p, "stage", s->info->name);
    dpf_pack_string(&p, "copies");
    msgpack_pack_uint64(&p, copies);
    pair(&p, "by", by);
    pair(&p, "stable_under", stable_under);
    s->out.events.count++;
}
