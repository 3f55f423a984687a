/* A direction near the record's, alone or together with a label: the claim is that of
 * privacy/sphere.h. */
#include <stdlib.h>

#include "base/memory.h"
#include "privacy/randomiser.h"
#include "privacy/sphere.h"

#include "base/banned.h"

static enum dpf_status open_privunit(const struct dpf_randomiser_setup *setup,
                                     void **state, struct dpf_randomiser_facts *facts,
                                     struct dpf_error *e)
{
    const struct dpf_sphere_plan plan = {.values = setup->values,
                                         .labels = setup->labels,
                                         .directions = setup->codebook,
                                         .seed = setup->seed,
                                         .owner = setup->owner,
                                         .epsilon = setup->epsilon};
    struct dpf_sphere *m = *state = dpf_calloc(1, sizeof *m);
    if (!m)
        return dpf_fail_memory(e);
    enum dpf_status status = dpf_sphere_init(m, &plan, e);
    *facts = (struct dpf_randomiser_facts){.epsilon = m->epsilon,
                                           .probabilities = {m->inside},
                                           .probability_count = 1,
                                           .moments = {m->cosine, m->square},
                                           .has_moments = true};
    return status;
}

static void draw_privunit(void *state, struct dpf_random *r,
                          const struct dpf_randomiser_record *record,
                          struct dpf_randomiser_message *message)
{
    dpf_sphere_draw(state, r, record->place, record->data, record->label, message->data,
                    message->code);
}

static void release_privunit(void *state)
{
    dpf_sphere_release(state);
    free(state);
}

static const char *const codebook[] = {"codebook", "public-seed", "owner", NULL};

const struct dpf_randomiser dpf_randomiser_privunit = {
    .summary = "numbers: a direction near the record's direction; its length is not sent",

    .reads = DPF_MESSAGE_NUMBERS,
    .writes = DPF_MESSAGE_NUMBERS,
    .may = codebook,
    .takes_label = true,
    .shows_place = true,
    .source = "PrivUnit, Bhowmick et al. 2018",
    .theorem = "two levels of probability on a finite set, by rank",
    .open = open_privunit,
    .draw = draw_privunit,
    .release = release_privunit};
