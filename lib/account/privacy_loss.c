#include "account/privacy_loss.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

#include "base/banned.h"

/* ------------------------------------------------------------------------- buckets */

/* The loss without sampling that sampling turns into `loss`: ln(1 - q + q e^v) = loss. */
static double unsampled(double loss, double rate)
{
    if (rate == 1)
        return loss;
    if (loss > 30) /* e^loss - (1 - q) = e^loss (1 - (1-q) e^-loss) */
        return loss + log1p(-(1 - rate) * exp(-loss)) - log(rate);
    double excess = (expm1(loss) + rate) / rate; /* of e^v */
    return excess > 0 ? log(excess) : -INFINITY;
}

static double sampled(double v, double rate)
{
    return v > 30 ? v + log(rate + (1 - rate) * exp(-v)) : log1p(rate * expm1(v));
}

static bool add_mass(struct dpf_privacy_loss *l, size_t *capacity, int64_t index,
                     double p, double q)
{
    if (l->count && l->points[l->count - 1].index == index) {
        l->points[l->count - 1].p += p;
        l->points[l->count - 1].q += q;
        return true;
    }
    if (!dpf_grow(&l->points, capacity, l->count + 1, sizeof *l->points))
        return false;
    l->points[l->count++] = (struct dpf_privacy_loss_point){index, p, q};
    return true;
}

/* What lies in (from, to] steps goes to the two ends, keeping both masses. */
static bool add_bucket(struct dpf_privacy_loss *l, size_t *capacity,
                       const struct dpf_spending *s, int64_t from, int64_t to)
{
    /* an end is the same number for both of its buckets, or what stands there is lost */
    double lo = (double)from * l->step, hi = (double)to * l->step, p, q;
    double width = (double)(to - from) * l->step;
    s->kind->masses(s, unsampled(lo, s->rate), unsampled(hi, s->rate), &p, &q);
    p = s->rate * p + (1 - s->rate) * q;
    /* up e^-hi + down e^-lo = q and up + down = p; a little too much goes up */
    double up = (p - exp(lo) * q) / -expm1(-width) + 1e-15 * p;
    up = up < 0 ? 0 : up > p ? p : up;
    return add_mass(l, capacity, from, p - up, (p - up) * exp(-lo)) &&
           add_mass(l, capacity, to, up, up * exp(-hi));
}

/* How wide the bucket from `index` up (or down) may be, in steps. */
static int64_t width_at(int64_t index, double centre, double step)
{
    double distance = fabs((double)index - centre / step) / 100;
    return distance < 1 ? 1 : (int64_t)distance;
}

/* Where to stop: beyond, both P and Q have less than the tail. */
static void ends(const struct dpf_spending *s, double tail, double *lo, double *hi)
{
    double largest = s->kind->largest_loss(s, tail);
    *hi = sampled(largest, s->rate);
    *lo = -largest;
    *lo = s->rate == 1 ? *lo : fmax(sampled(*lo, s->rate), log1p(-s->rate));
}

enum dpf_status dpf_privacy_loss_init(struct dpf_privacy_loss *l,
                                      const struct dpf_spending *s, double step,
                                      double centre, double tail, struct dpf_error *e)
{
    double lo, hi;
    size_t capacity = 0;
    *l = (struct dpf_privacy_loss){.step = step};
    if (!s->kind->masses)
        return dpf_fail(e, DPF_USAGE,
                        "no privacy loss distribution is known for the mechanism '%s'",
                        s->kind->name);
    ends(s, tail, &lo, &hi);
    if (hi > DPF_LOSS_LIMIT || lo < -DPF_LOSS_LIMIT)
        return dpf_fail(e, DPF_USAGE, "losses above %d are too large for this method",
                        DPF_LOSS_LIMIT);
    int64_t first = (int64_t)floor(lo / step) - 2, last = (int64_t)ceil(hi / step) + 2;
    int64_t middle = (int64_t)floor(centre / step);
    middle = middle < first ? first : middle > last ? last : middle;
    /* From the middle down, so that widths grow outwards; then the list is turned. */
    int64_t *cuts = NULL;
    size_t cut_count = 0, cut_capacity = 0;
    bool good = true;
    for (int64_t at = middle; good; at -= width_at(at, centre, step)) {
        good = dpf_grow(&cuts, &cut_capacity, cut_count + 1, sizeof *cuts);
        if (good)
            cuts[cut_count++] = at < first ? first : at;
        if (at <= first)
            break;
    }
    for (size_t i = cut_count; good && i-- > 1;)
        good = add_bucket(l, &capacity, s, cuts[i], cuts[i - 1]);
    for (int64_t at = middle; good && at < last;) {
        int64_t to = at + width_at(at, centre, step);
        to = to > last ? last : to;
        good = add_bucket(l, &capacity, s, at, to);
        at = to;
    }
    free(cuts);
    if (!good) {
        dpf_privacy_loss_release(l);
        return dpf_fail_memory(e);
    }
    /* only an unbounded loss has something beyond the grid; should anything else be
     * missing, it counts as lost, not as gone */
    double p = 0, q = 0, rounding = 1e-12;
    for (size_t i = 0; i < l->count; i++) {
        p += l->points[i].p;
        q += l->points[i].q;
    }
    l->p_infinite = l->q_infinite = s->kind->is_unbounded ? tail : 0;
    l->p_infinite += p < 1 - rounding ? 1 - p : 0;
    l->q_infinite += q < 1 - rounding ? 1 - q : 0;
    return DPF_OK;
}

void dpf_privacy_loss_release(struct dpf_privacy_loss *l)
{
    free(l->points);
    *l = (struct dpf_privacy_loss){0};
}

void dpf_privacy_loss_reverse(struct dpf_privacy_loss *l)
{
    for (size_t i = 0, j = l->count; i < j; i++) {
        struct dpf_privacy_loss_point a = l->points[i], b = l->points[--j];
        l->points[i] = (struct dpf_privacy_loss_point){-b.index, b.q, b.p};
        l->points[j] = (struct dpf_privacy_loss_point){-a.index, a.q, a.p};
    }
    double mass = l->p_infinite;
    l->p_infinite = l->q_infinite;
    l->q_infinite = mass;
}

double dpf_privacy_loss_log_moment(const struct dpf_privacy_loss *l, double tilt,
                                   double *mean, double *variance)
{
    double largest = -INFINITY, sum = 0, first = 0, second = 0;
    for (size_t i = 0; i < l->count; i++)
        if (l->points[i].p > 0)
            largest = fmax(largest, log(l->points[i].p) +
                                        tilt * (double)l->points[i].index * l->step);
    for (size_t i = 0; i < l->count; i++) {
        if (!(l->points[i].p > 0))
            continue;
        double loss = (double)l->points[i].index * l->step;
        double w = exp(log(l->points[i].p) + tilt * loss - largest);
        sum += w;
        first += w * loss;
        second += w * loss * loss;
    }
    first /= sum;
    if (mean)
        *mean = first;
    if (variance)
        *variance = fmax(second / sum - first * first, 0);
    return largest + log(sum);
}
