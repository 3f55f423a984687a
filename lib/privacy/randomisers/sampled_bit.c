/* One bit of many, told as the estimate of all: the claim is that of
 * privacy/sampled_bit.h. The estimate is computed from the place and the answer alone. */
#include <string.h>

#include "base/memory.h"
#include "privacy/randomiser.h"
#include "privacy/sampled_bit.h"

#include "base/banned.h"

static enum dpf_status open_sampled_bit(const struct dpf_randomiser_setup *setup,
                                        void **state, struct dpf_randomiser_facts *facts,
                                        struct dpf_error *e)
{
    struct dpf_sampled_bit *m = *state = dpf_calloc(1, sizeof *m);
    if (!m)
        return dpf_fail_memory(e);
    enum dpf_status status = dpf_sampled_bit_init(m, setup->epsilon, setup->values, e);
    *facts = (struct dpf_randomiser_facts){.epsilon = m->response.epsilon,
                                           .probabilities = {m->response.keep},
                                           .probability_count = 1};
    return status;
}

static void draw_sampled_bit(void *state, struct dpf_random *r,
                             const struct dpf_randomiser_record *record,
                             struct dpf_randomiser_message *message)
{
    const struct dpf_sampled_bit *m = state;
    float *out = message->data;
    uint64_t place;
    bool answer;
    dpf_sampled_bit_draw(m, r, record->data, &place, &answer);
    memset(out, 0, m->bits * sizeof *out);
    out[place] = (float)dpf_sampled_bit_estimate(m, answer);
}

const struct dpf_randomiser dpf_randomiser_sampled_bit = {
    .summary = "bits: one bit of many is sent; writes an estimate of all",

    .reads = DPF_MESSAGE_BITS,
    .writes = DPF_MESSAGE_NUMBERS,
    .source = "one sampled bit by randomised response",
    .theorem = "randomised response at a place that does not depend on the record",
    .open = open_sampled_bit,
    .draw = draw_sampled_bit};
