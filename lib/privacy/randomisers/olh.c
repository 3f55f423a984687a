/* Optimal local hashing (Wang et al. 2017): a class is hashed into g buckets by a
 * function drawn for this record alone, the bucket is told by randomised response, and
 * the message is the set of classes that the function sends to the told bucket, one bit
 * for each.
 *
 * The function is H: each of the M classes gets a bucket of its own, uniform in g and
 * independent of all else. g = round(e^e + 1), at least 2, which minimises the variance
 * of a count.
 *
 * Claim. For any two classes every message has probabilities within a factor of
 * e^epsilon, epsilon as facts.epsilon states it: epsilon-local DP. Proof: H does not
 * depend on the class. Given H, the told bucket Y is g-ary randomised response on
 * H(class), which is epsilon-local DP (privacy/response.h; its keep probability p is
 * rounded down, its draws are exact). So the pair (H, Y) is, and the message, bit u =
 * [H(u) = Y], is a function of the pair. Buckets are integers drawn without bias
 * (dpf_random_below); no floating-point number depends on the class.
 *
 * Claim (rates). Bit u of the message is 1 with probability p for the true class and 1/g
 * for each other one, independently: a unary encoding with these rates. Proof: for u
 * other than the true class v, H(u) is uniform and independent of H(v), of Y and of the
 * other buckets, so [H(u) = Y] is 1 with probability 1/g whatever these are; bit v is 1
 * if the truth was told. (With these rates the claim on one-hot inputs of
 * privacy/response.h gives the same epsilon: ln(p g) + ln((1 - 1/g) / (1 - p)) = ln(p (g
 * - 1) / (1 - p)).) facts.probabilities has p as it is, and 1/g rounded to a double. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "privacy/randomiser.h"
#include "privacy/response.h"

#include "base/banned.h"

struct hashing {
    uint64_t classes;
    struct dpf_response bucket; /* its choices are the g buckets */
};

static uint64_t count_buckets(double epsilon)
{
    double g = round(exp(fmin(epsilon, 36)) + 1); /* response refuses what is beyond */
    return g > 2 ? (uint64_t)g : 2;
}

static enum dpf_status open_olh(const struct dpf_randomiser_setup *setup, void **state,
                                struct dpf_randomiser_facts *facts, struct dpf_error *e)
{
    struct hashing *m = *state = dpf_calloc(1, sizeof *m);
    if (!m)
        return dpf_fail_memory(e);
    uint64_t buckets = count_buckets(setup->epsilon);
    enum dpf_status status = dpf_response_init(&m->bucket, setup->epsilon, buckets, e);
    m->classes = setup->values;
    *facts = (struct dpf_randomiser_facts){
        .epsilon = m->bucket.epsilon,
        .probabilities = {m->bucket.keep, 1 / (double)buckets},
        .probability_count = 2};
    return status;
}

static void draw_olh(void *state, struct dpf_random *r,
                     const struct dpf_randomiser_record *record,
                     struct dpf_randomiser_message *message)
{
    const struct hashing *m = state;
    uint8_t *bits = message->data;
    uint64_t truth = dpf_random_below(r, m->bucket.choices);
    uint64_t told = dpf_response_draw(&m->bucket, r, truth);
    memset(bits, 0, (m->classes + 7) / 8);
    for (uint64_t u = 0; u < m->classes; u++) {
        uint64_t hash =
            u == record->value ? truth : dpf_random_below(r, m->bucket.choices);
        bits[u / 8] |= (uint8_t)((hash == told) << u % 8);
    }
}

const struct dpf_randomiser dpf_randomiser_olh = {
    .summary =
        "a class: its hash, by randomised response; writes all classes with that hash",
    .reads = DPF_MESSAGE_CLASS,
    .writes = DPF_MESSAGE_BITS,
    .source = "optimal local hashing, Wang et al. 2017",
    .theorem = "randomised response on the bucket of a random function",
    .open = open_olh,
    .draw = draw_olh};
