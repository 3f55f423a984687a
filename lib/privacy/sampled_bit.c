#include "privacy/sampled_bit.h"

#include "base/banned.h"

enum dpf_status dpf_sampled_bit_init(struct dpf_sampled_bit *m, double epsilon,
                                     uint64_t bits, struct dpf_error *e)
{
    m->bits = bits;
    if (bits < 1)
        return dpf_fail(e, DPF_USAGE, "a string of bits needs at least one bit");
    return dpf_response_init(&m->response, epsilon, 2, e);
}

void dpf_sampled_bit_draw(const struct dpf_sampled_bit *m, struct dpf_random *r,
                          const uint8_t *bits, uint64_t *place, bool *answer)
{
    *place = dpf_random_below(r, m->bits);
    uint64_t truth = bits[*place / 8] >> *place % 8 & 1;
    *answer = dpf_response_draw(&m->response, r, truth) != 0;
}

double dpf_sampled_bit_estimate(const struct dpf_sampled_bit *m, bool answer)
{
    double one = (double)m->bits / (2 * m->response.keep - 1);
    return answer ? one : -one;
}
