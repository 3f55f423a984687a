/* What `randomize` writes into the ledger. */
#include "randomize.h"

#include "base/banned.h"

/* What local mechanisms have in common: each record by itself, once. */
static struct dpf_mechanism_event local_event(const struct dpf_randomiser *m,
                                              const char *name, uint64_t units,
                                              double claimed, double proven,
                                              bool is_response)
{
    return (struct dpf_mechanism_event){
        .spending = {.kind = is_response ? &dpf_spending_response : &dpf_spending_pure,
                     .parameter = proven,
                     .choices = is_response ? units : 2,
                     .rate = 1,
                     .count = 1},
        .sampling = "none",
        .relation = DPF_LOCAL,
        .claimed = {claimed, 0, m->source},
        .proven = {proven, 0, m->theorem},
        .method = name,
        .units = units};
}

static void add_record_event(const struct dpf_randomize *j, struct dpf_stage *s)
{
    bool clear = j->labels == DPF_LABELS_CLEAR;
    struct dpf_mechanism_event m =
        local_event(j->method, j->method_word, j->values, j->epsilon, j->facts.epsilon,
                    j->facts.is_response);
    m.assumes = clear ? "the labels are not private: they left as they were" : NULL;
    m.why = j->facts.epsilon > j->epsilon * (1 + 1e-9) ? j->method->why : NULL;
    m.probabilities = j->facts.probabilities;
    m.probability_count = j->facts.probability_count;
    m.moments = j->facts.has_moments ? j->facts.moments : NULL;
    m.shows_place = j->method->shows_place;
    m.clear = clear ? j->label : NULL;
    dpf_ledger_add_mechanism(&s->out.events, s->info->name, &m);
}

static void add_label_event(const struct dpf_randomize *j, struct dpf_stage *s)
{
    const struct dpf_randomiser_row *row = DPF_FIND(dpf_randomisers, "response");
    struct dpf_mechanism_event m =
        local_event(row->is, row->name, s->in.fields[j->y].classes, j->label_epsilon,
                    j->label_response.epsilon, true);
    m.probabilities = &j->label_response.keep;
    m.probability_count = 1;
    dpf_ledger_add_mechanism(&s->out.events, s->info->name, &m);
}

void dpf_randomize_add_events(const struct dpf_randomize *j, struct dpf_stage *s)
{
    if (j->seed >= 0)
        dpf_ledger_add_seed(&s->out.events, s->info->name);
    add_record_event(j, s);
    if (j->labels == DPF_LABELS_RESPONSE)
        add_label_event(j, s);
}
