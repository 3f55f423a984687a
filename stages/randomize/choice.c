/* The method that the user chose: which options go with it, and the help about all. */
#include "randomize.h"

#include "base/banned.h"

const struct dpf_labels_row dpf_labels_rows[] = {{"clear", DPF_LABELS_CLEAR},
                                                 {"response", DPF_LABELS_RESPONSE},
                                                 {"joint", DPF_LABELS_JOINT},
                                                 {"drop", DPF_LABELS_DROP},
                                                 {NULL, DPF_LABELS_NONE}};

/* An option that other methods take: name these. */
static enum dpf_status refuse_option(const char *method, const char *option,
                                     struct dpf_error *e)
{
    struct dpf_text others = {0};
    for (const struct dpf_randomiser_row *row = dpf_randomisers; row->name; row++)
        if (dpf_randomiser_takes(row->is, option))
            dpf_text_addf(&others, "%s'%s%s'", others.size ? " and " : "",
                          others.size ? "" : "--method ", row->name);
    dpf_fail(e, DPF_USAGE, "'--%s' goes with %s, not with '%s'", option,
             dpf_text_get(&others), method);
    dpf_text_release(&others);
    return DPF_USAGE;
}

static enum dpf_status check_method(const struct dpf_randomize *j,
                                    const struct dpf_stage *s, struct dpf_error *e)
{
    static const char *const own[] = {"alpha", "codebook", "public-seed", "owner", NULL};
    for (const char *const *name = own; *name; name++) {
        bool given = dpf_option_given(&s->parsed, *name);
        if (given && !dpf_randomiser_takes(j->method, *name))
            return refuse_option(j->method_word, *name, e);
        if (!given && dpf_randomiser_needs(j->method, *name))
            return dpf_fail(e, DPF_USAGE, "'--method %s' needs '--%s'", j->method_word,
                            *name);
    }
    return DPF_OK;
}

enum dpf_status dpf_randomize_choose(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_randomize *j = s->state;
    j->method = dpf_randomisers[DPF_INDEX(dpf_randomisers, j->method_word)].is;
    if (j->labels_word)
        j->labels = dpf_labels_rows[DPF_INDEX(dpf_labels_rows, j->labels_word)].is;
    enum dpf_status status = check_method(j, s, e);
    if (status != DPF_OK)
        return status;
    if ((j->labels == DPF_LABELS_RESPONSE) != (j->label_epsilon > 0))
        return dpf_fail(e, DPF_USAGE,
                        j->label_epsilon > 0
                            ? "'--label-epsilon' goes with '--labels response'"
                            : "'--labels response' needs '--label-epsilon'");
    if (j->labels == DPF_LABELS_JOINT && !j->method->takes_label)
        return dpf_fail(e, DPF_USAGE,
                        "'--labels joint' goes with '--method privunit', not with '%s'",
                        j->method_word);
    return DPF_OK;
}

/* The methods in their own words, then what all have in common. */
const char *dpf_randomize_describe(struct dpf_text *text)
{
    for (const struct dpf_randomiser_row *row = dpf_randomisers; row->name; row++)
        dpf_text_addf(text, "%-12s %s\n", row->name, row->is->summary);
    dpf_text_add(text,
                 "\nWhere bits are randomised one by one, the proven epsilon is the sum "
                 "over all bits.\nWith --labels joint one message describes the record "
                 "and its label, and y becomes a\ncode that 'aggregate' reads. With "
                 "--remember, a record whose message is in FILE is sent\nwith the same "
                 "bits; a record that differs from the remembered one is refused.");
    return dpf_text_get(text);
}
