#include "privacy/spending.h"

#include <math.h>

#include "base/banned.h"

#define ROW(row) &dpf_spending_##row,
const struct dpf_spending_kind *const dpf_spending_kinds[] = {DPF_SPENDING_KINDS(ROW)
                                                                  NULL};

enum dpf_status dpf_spending_check(const struct dpf_spending *s, struct dpf_error *e)
{
    const struct dpf_spending_kind *kind = s->kind;
    if (!kind)
        return dpf_fail(e, DPF_USAGE, "it is not said what kind of mechanism it is");
    if (!(s->parameter >= kind->least) || !(s->parameter <= 1e9))
        return dpf_fail(e, DPF_USAGE, "the %s is between %g and 1e9, not '%g'",
                        kind->parameter, kind->least, s->parameter);
    if (!(s->rate > 0) || !(s->rate <= 1))
        return dpf_fail(e, DPF_USAGE,
                        "a sampling rate is above 0 and at most 1, not '%g'", s->rate);
    if (s->count < 1 || s->count > (uint64_t)1e12)
        return dpf_fail(e, DPF_USAGE, "a mechanism is used 1 to 1e12 times, not '%llu'",
                        (unsigned long long)s->count);
    return kind->check ? kind->check(s, e) : DPF_OK;
}

double dpf_spending_pure_epsilon(const struct dpf_spending *s)
{
    double top = s->kind->is_unbounded ? INFINITY : s->kind->largest_loss(s, 0);
    if (s->rate == 1)
        return s->kind->is_rounded ? nextafter(top, INFINITY) : top;
    /* a sampled mechanism's loss is largest when the record is removed */
    return top > 700 ? top : log1p(s->rate * expm1(top)) * (1 + 1e-14);
}

double dpf_spending_scale(const struct dpf_spending *s)
{
    double scale = s->kind->loss_scale(s);
    return s->rate * fmin(scale, 1) + (s->rate == 1 ? scale : 0);
}
