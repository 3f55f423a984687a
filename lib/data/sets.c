#include "data/sets.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/words.h"

#include "base/banned.h"

#define SET(symbol, name) extern const struct dpf_data_set dpf_set_##symbol;
#include "data_sets.inc"
#undef SET

#define SET(symbol, name) {name, &dpf_set_##symbol},
const struct dpf_set_entry dpf_sets[] = {
#include "data_sets.inc"
    {NULL, NULL},
};

static const struct dpf_part parts[] = {{"train", true, false, 0, 0},
                                        {"test", false, true, DPF_SET_TEST_FIRST, 0},
                                        {"all", true, true, 0, 0},
                                        {NULL, false, false, 0, 0}};

static enum dpf_status unknown(const char *asked, const char *bare, struct dpf_error *e)
{
    const char *near = DPF_NEAREST(dpf_sets, bare);
    if (near)
        return dpf_fail(e, DPF_USAGE,
                        "there is no file or data set '%s' (did you mean '%s'?)", asked,
                        near);
    return dpf_fail(e, DPF_USAGE, "there is no file or data set '%s'", asked);
}

static enum dpf_status find_view(const struct dpf_set_entry *s, const char *word,
                                 const struct dpf_set_entry **set, struct dpf_part *part,
                                 struct dpf_error *e)
{
    struct dpf_text all = {0};
    *set = s;
    for (const char *const *v = s->set->views; *v; v++) {
        dpf_text_addf(&all, "%s'%s:%s'", all.size ? " or " : "", s->name, *v);
        if (strcmp(*v, word) == 0) {
            *part = (struct dpf_part){.name = *v, .count = s->set->train};
            dpf_text_release(&all);
            return DPF_OK;
        }
    }
    dpf_fail(e, DPF_USAGE, "say which part of '%s': %s", s->name, dpf_text_get(&all));
    dpf_text_release(&all);
    return DPF_USAGE;
}

enum dpf_status dpf_set_find(const struct dpf_load_request *q,
                             const struct dpf_set_entry **set, struct dpf_part *part,
                             struct dpf_error *e)
{
    const char *asked = q->names[0], *colon = strchr(asked, ':');
    char bare[64];
    int size = (int)strcspn(asked, ":");
    snprintf(bare, sizeof bare, "%.*s", size, asked);
    const struct dpf_set_entry *s = DPF_FIND(dpf_sets, bare);
    if (!s)
        return unknown(asked, bare, e);
    if (s->set->views)
        return find_view(s, colon ? colon + 1 : "", set, part, e);
    const struct dpf_part *p = colon ? DPF_FIND(parts, colon + 1) : NULL;
    if (!p || (p->train && p->test && !s->set->has_all))
        return dpf_fail(e, DPF_USAGE, "say which part of '%s': '%s:train' or '%s:test'",
                        s->name, s->name, s->name);
    *set = s;
    *part = *p;
    if (s->set->is_generated)
        part->count = q->count ? q->count : p->train ? s->set->train : s->set->test;
    return DPF_OK;
}
