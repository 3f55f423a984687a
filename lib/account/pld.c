#include "account/pld.h"

#include <complex.h>
#include <fftw3.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "account/privacy_loss.h"
#include "base/memory.h"

#include "base/banned.h"

/* The window reaches so many deviations of the tilted sum to either side. */
static const double REACH = 9;
enum { MIN_LOG2 = 12, MAX_LOG2 = 18 };

/* What is asked: the epsilon for a delta, or the delta for an epsilon. */
struct question {
    bool for_epsilon;
    double epsilon, delta;
};

struct sum {
    const struct dpf_spending *list;
    size_t count;
    struct dpf_privacy_loss *losses;
    double step, tail;
};

static void sum_release(struct sum *s)
{
    for (size_t i = 0; s->losses && i < s->count; i++)
        dpf_privacy_loss_release(&s->losses[i]);
    free(s->losses);
    s->losses = NULL;
}

static enum dpf_status sum_init(struct sum *s, const struct dpf_spending *list,
                                size_t count, double step, const double *centres,
                                double tail, bool reversed, struct dpf_error *e)
{
    *s = (struct sum){.list = list, .count = count, .step = step, .tail = tail};
    s->losses = dpf_calloc(count + 1, sizeof *s->losses);
    enum dpf_status status = s->losses ? DPF_OK : dpf_fail_memory(e);
    for (size_t i = 0; status == DPF_OK && i < count; i++) {
        double centre = centres ? (reversed ? -centres[i] : centres[i]) : 0;
        status = dpf_privacy_loss_init(&s->losses[i], &list[i], step, centre, tail, e);
        if (status == DPF_OK && reversed)
            dpf_privacy_loss_reverse(&s->losses[i]);
    }
    if (status != DPF_OK)
        sum_release(s);
    return status;
}

/* The log moment of the whole sum. */
static double sum_moment(const struct sum *s, double tilt, double *mean, double *variance)
{
    double total = 0, all_mean = 0, all_variance = 0;
    for (size_t i = 0; i < s->count; i++) {
        double m, v, n = (double)s->list[i].count;
        total += n * dpf_privacy_loss_log_moment(&s->losses[i], tilt, &m, &v);
        all_mean += n * m;
        all_variance += n * v;
    }
    if (mean)
        *mean = all_mean;
    if (variance)
        *variance = all_variance;
    return total;
}

/* Delta that infinite losses take. */
static double sum_infinite(const struct sum *s)
{
    double all = 0;
    for (size_t i = 0; i < s->count; i++)
        all += (double)s->list[i].count * s->losses[i].p_infinite;
    return all;
}

/* ------------------------------------------------------------------------- the tilt */

/* Chernoff: P(loss > epsilon) <= exp(moment - t epsilon). The tilt at which the bound is
 * best puts the mean of the tilted sum at the epsilon in question. `place` rises with t:
 * for an epsilon it is the tilted mean less epsilon, for a delta the exponent at that
 * mean compared with ln delta. */
static double place(const struct sum *s, const struct question *ask, double tilt)
{
    double mean, moment = sum_moment(s, tilt, &mean, NULL);
    return ask->for_epsilon ? tilt * mean - moment + log(ask->delta)
                            : mean - ask->epsilon;
}

static double choose_tilt(const struct sum *s, const struct question *ask)
{
    /* Not so far that neighbouring grid points differ by more than e: what the tilt makes
     * unlikely drowns in the transform's rounding, and losses with an end need the points
     * just below it. */
    double lo = 0, most = 1 / s->step, hi = fmin(1, most);
    if (place(s, ask, 0) >= 0)
        return 0;
    while (hi < most && place(s, ask, hi) < 0) {
        lo = hi;
        hi = fmin(2 * hi, most);
    }
    for (int i = 0; i < 40 && hi - lo > 1e-3 * hi; i++) {
        double middle = (lo + hi) / 2;
        if (place(s, ask, middle) < 0)
            lo = middle;
        else
            hi = middle;
    }
    return hi;
}

/* The epsilon of Chernoff's bound at this tilt. */
static double chernoff_epsilon(const struct sum *s, double tilt, double delta)
{
    double moment = sum_moment(s, tilt, NULL, NULL);
    return tilt > 0 ? fmax((moment - log(delta)) / tilt, 0) : INFINITY;
}

/* A bound on the mass above `edge`. */
static double mass_above(const struct sum *s, double tilt, double edge)
{
    double least = 1, t = tilt > 0 ? tilt : 0.1 / (fabs(edge) + 1e-3);
    for (int i = 0; i < 100 && least > 1e-300; i++, t *= 1.4) {
        double bound = exp(sum_moment(s, t, NULL, NULL) - t * edge);
        if (bound > 2 * least)
            break; /* convex: it only rises from here */
        least = fmin(least, bound);
    }
    return least;
}

/* -------------------------------------------------------------------------- transform */

/* The tilted sum on N points: out[j] is the mass at (start + j) steps. */
struct window {
    int64_t start;
    size_t n;
    double tilt, moment; /* mass = tilted mass * exp(moment - tilt * loss) */
    double *mass;
};

static void place_loss(const struct dpf_privacy_loss *l, double tilt, size_t n,
                       double *to)
{
    double moment = dpf_privacy_loss_log_moment(l, tilt, NULL, NULL);
    memset(to, 0, n * sizeof *to);
    for (size_t i = 0; i < l->count; i++) {
        const struct dpf_privacy_loss_point *x = &l->points[i];
        int64_t at = x->index % (int64_t)n;
        if (x->p > 0)
            to[at < 0 ? at + (int64_t)n : at] +=
                exp(log(x->p) + tilt * (double)x->index * l->step - moment);
    }
}

/* product *= one^power. A sum of many losses is smooth: all but a few of its frequencies
 * are below e^-45 and count as nothing, without a logarithm. */
static void multiply_power(const fftw_complex *one, double power, size_t n,
                           fftw_complex *product)
{
    double negligible = exp(-90 / power);
    for (size_t i = 0; i < n; i++) {
        double re = creal(one[i]), im = cimag(one[i]), square = re * re + im * im;
        if (square < negligible || product[i] == 0) {
            product[i] = 0;
            continue;
        }
        double angle = power * atan2(im, re);
        product[i] *= exp(power / 2 * log(square)) * (cos(angle) + I * sin(angle));
    }
}

/* Plans and memory of the last size. Preparing a transform takes longer than doing it,
 * and whoever searches for noise or steps asks for the same size again. */
struct workspace {
    size_t n;
    double *line;
    fftw_complex *one, *product;
    fftw_plan forward, back;
};

static void workspace_release(struct workspace *w)
{
    if (w->forward)
        fftw_destroy_plan(w->forward);
    if (w->back)
        fftw_destroy_plan(w->back);
    fftw_free(w->line);
    fftw_free(w->one);
    fftw_free(w->product);
    *w = (struct workspace){0};
}

static struct workspace *workspace_of(size_t n, struct dpf_error *e)
{
    static _Thread_local struct workspace kept;
    if (kept.n == n)
        return &kept;
    workspace_release(&kept);
    kept = (struct workspace){.n = n,
                              .line = fftw_alloc_real(n),
                              .one = fftw_alloc_complex(n / 2 + 1),
                              .product = fftw_alloc_complex(n / 2 + 1)};
    if (kept.line && kept.one && kept.product) {
        kept.forward = fftw_plan_dft_r2c_1d((int)n, kept.line, kept.one, FFTW_ESTIMATE);
        kept.back = fftw_plan_dft_c2r_1d((int)n, kept.product, kept.line, FFTW_ESTIMATE);
    }
    if (kept.forward && kept.back)
        return &kept;
    workspace_release(&kept);
    dpf_fail_memory(e);
    return NULL;
}

static enum dpf_status convolve(const struct sum *s, struct window *w,
                                struct dpf_error *e)
{
    size_t n = w->n, half = n / 2 + 1;
    struct workspace *space = workspace_of(n, e);
    if (!space)
        return DPF_SYSTEM;
    for (size_t i = 0; i < half; i++)
        space->product[i] = 1.0 / (double)n;
    for (size_t i = 0; i < s->count; i++) {
        place_loss(&s->losses[i], w->tilt, n, space->line);
        fftw_execute(space->forward);
        multiply_power(space->one, (double)s->list[i].count, half, space->product);
    }
    fftw_execute(space->back);
    int64_t shift = w->start % (int64_t)n;
    shift = shift < 0 ? shift + (int64_t)n : shift;
    for (size_t j = 0; j < n; j++) {
        double mass = space->line[(j + (size_t)shift) % n];
        w->mass[j] = mass > 0 ? mass : 0;
    }
    return DPF_OK;
}

/* -------------------------------------------------------------------------- answer */

/* From the top down: above = mass above, scaled = the same times e^(here - loss). Then
 * delta(here) = above - scaled + more. */
static double answer(const struct sum *s, const struct window *w,
                     const struct question *ask, double more)
{
    double above = 0, scaled = 0, shrink = exp(-s->step);
    for (size_t j = w->n; j-- > 0;) {
        double here = (double)(w->start + (int64_t)j) * s->step;
        double delta = above - scaled + more; /* at `here`, from losses above it */
        double mass = w->mass[j] * exp(fmin(w->moment - w->tilt * here, 700));
        if (ask->for_epsilon && delta > ask->delta) {
            /* between here and the next point: above - e^(x - here) scaled + more */
            if (!(scaled > 0)) /* what lies beyond the window is more than delta */
                return INFINITY;
            double x = log((above + more - ask->delta) / scaled);
            return fmax(here + fmax(x, 0), 0);
        }
        if (!ask->for_epsilon && here <= ask->epsilon)
            return above - scaled * exp(ask->epsilon - here) + more;
        above += mass;
        scaled = (scaled + mass) * shrink;
    }
    /* the window's lower end: an upper bound all the same */
    return ask->for_epsilon ? fmax((double)w->start * s->step, 0) : 1;
}

/* The share of delta that rounding may have taken. Masses, moments and phases are good to
 * some 1e-16 a use, the mean of a use's loss to about 1e-15; a shift of the losses by x
 * changes delta by a factor of about e^(tilt x). */
static double rounding_share(const struct sum *s, double tilt)
{
    double uses = 0;
    for (size_t i = 0; i < s->count; i++)
        uses += (double)s->list[i].count;
    return 1e-9 + 1e-14 * uses * (1 + tilt);
}

/* 4, 5, 6, 7 times a power of two, in turn: what the transform does quickly. */
static size_t next_size(size_t n)
{
    size_t power = 1;
    while (n / power >= 8)
        power *= 2;
    return n + power;
}

/* One direction, on a grid that suits the question. */
static enum dpf_status answer_direction(const struct sum *s, const struct question *ask,
                                        double tilt, double *result, struct dpf_error *e)
{
    double mean, variance, moment = sum_moment(s, tilt, &mean, &variance);
    double deviation = sqrt(variance) + s->step, reach = REACH * deviation;
    if (!ask->for_epsilon) /* the epsilon asked for lies in the window */
        reach = fmax(reach, fabs(mean - ask->epsilon) + deviation);
    double target = ask->for_epsilon ? ask->delta : 1e-300;
    size_t n = (size_t)1 << MIN_LOG2, last = (size_t)1 << MAX_LOG2;
    while (n < 4 * last && (double)n * s->step < 2 * reach)
        n = next_size(n);
    double edge = mean + ((double)n / 2 - 1) * s->step,
           beyond = mass_above(s, tilt, edge);
    for (; beyond > 1e-9 * target && n < last; beyond = mass_above(s, tilt, edge)) {
        n *= 2;
        edge = mean + ((double)n / 2 - 1) * s->step;
    }
    struct window w = {.start = (int64_t)floor(mean / s->step) - (int64_t)(n / 2),
                       .n = n,
                       .tilt = tilt,
                       .moment = moment,
                       .mass = dpf_calloc(n, sizeof *w.mass)};
    if (!w.mass)
        return dpf_fail_memory(e);
    enum dpf_status status = convolve(s, &w, e);
    /* a smaller delta is to suffice, or the delta is larger than it looks */
    struct question safer = *ask;
    double share = rounding_share(s, tilt);
    safer.delta *= fmax(1 - share, 0);
    if (status == DPF_OK)
        *result = answer(s, &w, &safer, beyond + sum_infinite(s)) *
                  (ask->for_epsilon ? 1 + 1e-12 : 1 + share);
    free(w.mass);
    return status;
}

/* ------------------------------------------------------------------------ the grid */

/* The step: so small that dividing buckets adds about 3e-4 of the variance (it adds about
 * step^2 / 6 a use), but not so small that the window needs too many points. */
static enum dpf_status choose_grid(const struct dpf_spending *list, size_t count,
                                   const struct question *ask, double tail, double *step,
                                   double *centres, double *rough, struct dpf_error *e)
{
    struct sum s;
    double finest = INFINITY, uses = 0, variance = 0;
    for (size_t i = 0; i < count; i++) {
        finest = fmin(finest, dpf_spending_scale(&list[i]) / 20);
        uses += (double)list[i].count;
    }
    enum dpf_status status = sum_init(&s, list, count, finest, NULL, tail, false, e);
    if (status != DPF_OK)
        return status;
    double tilt = choose_tilt(&s, ask);
    sum_moment(&s, tilt, NULL, &variance);
    for (size_t i = 0; i < count; i++)
        dpf_privacy_loss_log_moment(&s.losses[i], tilt, &centres[i], NULL);
    if (rough)
        *rough = chernoff_epsilon(&s, tilt, ask->delta);
    double deviation = sqrt(variance);
    double fine = deviation * sqrt(1.8e-3 / uses), few = deviation / 400;
    double coarse = 2 * REACH * deviation / ldexp(1, MAX_LOG2);
    *step = fmax(fmin(fine, few), coarse);
    if (!(*step > 0)) /* all of the tilted mass on one point */
        *step = finest;
    sum_release(&s);
    return DPF_OK;
}

/* The answer with a tilt that leaves the masses at the answer above the transform's
 * rounding: losses with a likely end draw the tilt towards it, away from an epsilon that
 * lies below. */
static enum dpf_status answer_well(const struct sum *s, const struct question *ask,
                                   double *result, struct dpf_error *e)
{
    const double most = 12; /* e^12 1e-16 is small enough */
    double tilt = choose_tilt(s, ask), mean;
    for (;;) {
        enum dpf_status status = answer_direction(s, ask, tilt, result, e);
        sum_moment(s, tilt, &mean, NULL);
        double gap = mean - *result;
        if (status != DPF_OK || !ask->for_epsilon || !(tilt * gap > most))
            return status;
        tilt = most / gap / 2; /* the mean comes nearer, too */
    }
}

static double smallest_tail(const struct dpf_spending *list, size_t count,
                            const struct question *ask)
{
    double uses = 0;
    for (size_t i = 0; i < count; i++)
        uses += (double)list[i].count;
    return fmax((ask->for_epsilon ? ask->delta : 1e-30) * 1e-9 / uses, 1e-290);
}

static enum dpf_status ask_all(const struct dpf_spending *list, size_t count,
                               struct question *ask, double *result, struct dpf_error *e)
{
    double tail = smallest_tail(list, count, ask), step = 0;
    double *centres = dpf_calloc(count + 1, sizeof *centres);
    if (!centres)
        return dpf_fail_memory(e);
    enum dpf_status status = choose_grid(list, count, ask, tail, &step, centres, NULL, e);
    *result = 0;
    bool sampled = false;
    for (size_t i = 0; i < count; i++)
        sampled = sampled || list[i].rate < 1;
    /* without sampling every pair is its own reverse */
    for (int reversed = 0; status == DPF_OK && reversed <= sampled; reversed++) {
        struct sum s;
        double one = 0;
        status = sum_init(&s, list, count, step, centres, tail, reversed, e);
        if (status != DPF_OK)
            break;
        status = answer_well(&s, ask, &one, e);
        *result = fmax(*result, one);
        sum_release(&s);
    }
    free(centres);
    return status;
}

/* Losses with an end add up to at most the sum of their ends, grid or no grid. */
static double sum_of_ends(const struct dpf_spending *list, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)list[i].count * dpf_spending_pure_epsilon(&list[i]);
    return sum * (1 + 1e-15 * (double)(count + 1));
}

enum dpf_status dpf_pld_epsilon(const struct dpf_spending *list, size_t count,
                                double delta, double *epsilon, struct dpf_error *e)
{
    struct question ask = {.for_epsilon = true, .delta = delta};
    enum dpf_status status = ask_all(list, count, &ask, epsilon, e);
    *epsilon = fmin(*epsilon, sum_of_ends(list, count));
    return status;
}

enum dpf_status dpf_pld_delta(const struct dpf_spending *list, size_t count,
                              double epsilon, double *delta, struct dpf_error *e)
{
    struct question ask = {.epsilon = epsilon};
    enum dpf_status status = ask_all(list, count, &ask, delta, e);
    *delta = fmin(*delta, 1);
    return status;
}

enum dpf_status dpf_pld_epsilon_roughly(const struct dpf_spending *list, size_t count,
                                        double delta, double *epsilon,
                                        struct dpf_error *e)
{
    struct question ask = {.for_epsilon = true, .delta = delta};
    double *centres = dpf_calloc(count + 1, sizeof *centres), step;
    if (!centres)
        return dpf_fail_memory(e);
    enum dpf_status status = choose_grid(
        list, count, &ask, smallest_tail(list, count, &ask), &step, centres, epsilon, e);
    free(centres);
    return status;
}
