/* A class, kept or replaced by another: the claim is M-ary randomised response of
 * privacy/response.h. */
#include "privacy/response.h"
#include "base/memory.h"
#include "privacy/randomiser.h"

#include "base/banned.h"

static enum dpf_status open_response(const struct dpf_randomiser_setup *setup,
                                     void **state, struct dpf_randomiser_facts *facts,
                                     struct dpf_error *e)
{
    struct dpf_response *m = *state = dpf_calloc(1, sizeof *m);
    if (!m)
        return dpf_fail_memory(e);
    enum dpf_status status = dpf_response_init(m, setup->epsilon, setup->values, e);
    *facts = (struct dpf_randomiser_facts){.epsilon = m->epsilon,
                                           .probabilities = {m->keep},
                                           .probability_count = 1,
                                           .is_response = true};
    return status;
}

static void draw_response(void *state, struct dpf_random *r,
                          const struct dpf_randomiser_record *record,
                          struct dpf_randomiser_message *message)
{
    message->value = dpf_response_draw(state, r, record->value);
}

const struct dpf_randomiser dpf_randomiser_response = {
    .summary = "a class: kept, or replaced by another one (randomised response)",

    .reads = DPF_MESSAGE_CLASS,
    .writes = DPF_MESSAGE_CLASS,
    .source = "Warner 1965, Kairouz et al. 2016",
    .theorem = "M-ary randomised response",
    .open = open_response,
    .draw = draw_response};
