/* Energy models with conditions (pCDBN, Eqs. 23 to 26), dense and convolutional: against
 * sums over all states of small machines, taken from E(v, h | u) alone. */
#include <math.h>

#include "energy_rig.h"

#include "base/banned.h"

enum { CONDITIONS = 2, ROWS = 4096, KINDS = 4, MOST_UNITS = 6, MOST = 1 << MOST_UNITS };
enum { MOST_PARAMETERS = 64 };

/* --------------------------------------------------------------- machines by their
 * energy
 */

/* A dense machine is a convolution of one position: a channel for each value. Records are
 * v, channels first, then u. */
struct form {
    const char *text;
    int channels, height, width, groups, kh, kw;
};

static const struct form dense = {
    "input x 5\nv = slice x from=0 count=3\nu = slice x from=3 count=2\n"
    "a = dense v u out=2 visible=1\nh = sigmoid a\noutput h\n",
    3,
    1,
    1,
    2,
    1,
    1};
static const struct form conv = {
    "input x 8\nv = slice x from=0 count=6\nw = reshape v shape=2x1x3\n"
    "u = slice x from=6 count=2\na = conv w u out=2 kernel=1x2 visible=1\n"
    "h = sigmoid a\noutput h\n",
    2,
    1,
    3,
    2,
    1,
    2};
static const struct form tall = {
    "input x 8\nv = slice x from=2 count=6\nw = reshape v shape=1x3x2\n"
    "u = slice x from=0 count=2\na = conv w u out=3 kernel=2x2 visible=1\n"
    "h = sigmoid a\noutput h\n",
    1,
    3,
    2,
    3,
    2,
    2};

static int visible_units(const struct form *f)
{
    return f->channels * f->height * f->width;
}

static int hidden_positions(const struct form *f)
{
    return (f->height - f->kh + 1) * (f->width - f->kw + 1);
}

static int hidden_units(const struct form *f)
{
    return f->groups * hidden_positions(f);
}

/* How many numbers parameter k has: W, b, c, B, A. */
static int size_of(const struct form *f, int k)
{
    const int sizes[] = {f->groups * f->channels * f->kh * f->kw, f->groups, f->channels,
                         f->groups * CONDITIONS, f->channels * CONDITIONS};
    return sizes[k];
}

/* One behind the other, each times `scale`; how many. */
static int take(const struct rig *g, const struct form *f, const float *from,
                double scale, double *to)
{
    int count = 0;
    for (int k = 0; k < DPF_NODE_PARAMETERS; k++)
        for (int i = 0; i < size_of(f, k); i++)
            to[count++] = scale * (double)parameter(g, from, k)[i];
    return count;
}

struct state {
    double v[MOST_UNITS], u[CONDITIONS];
};

/* - E(v, h | u) for hidden units of state h. */
static double minus_energy(const struct form *f, const double *p, const struct state *s,
                           int h)
{
    const double *w = p, *b = w + size_of(f, 0), *c = b + size_of(f, 1),
                 *big_b = c + size_of(f, 2), *big_a = big_b + size_of(f, 3);
    int out_width = f->width - f->kw + 1, positions = hidden_positions(f);
    int pixels = f->height * f->width, taps = f->kh * f->kw;
    double sum = 0;
    for (int j = 0; j < hidden_units(f); j++) {
        int k = j / positions, y = j % positions / out_width, x = j % out_width;
        if (!(h >> j & 1))
            continue;
        sum += b[k];
        for (int e = 0; e < CONDITIONS; e++)
            sum += big_b[k * CONDITIONS + e] * s->u[e];
        for (int i = 0; i < f->channels * taps; i++)
            sum += w[k * f->channels * taps + i] *
                   s->v[i / taps * pixels + (y + i % taps / f->kw) * f->width + x +
                        i % f->kw];
    }
    for (int i = 0; i < visible_units(f); i++) {
        sum += c[i / pixels] * s->v[i];
        for (int e = 0; e < CONDITIONS; e++)
            sum += big_a[i / pixels * CONDITIONS + e] * s->u[e] * s->v[i];
    }
    return sum;
}

/* F(v | u), from the sum over all hidden states. */
static double free_energy(const struct form *f, const double *p, const struct state *s)
{
    double sum = 0;
    for (int h = 0; h < 1 << hidden_units(f); h++)
        sum += exp(minus_energy(f, p, s, h));
    return -log(sum);
}

static void set_visible(const struct form *f, int bits, struct state *s)
{
    for (int i = 0; i < visible_units(f); i++)
        s->v[i] = bits >> i & 1;
}

/* P(v | u) for all v. */
static void distribution(const struct form *f, const double *p, const struct state *u,
                         double *to)
{
    struct state s = *u;
    double all = 0;
    for (int v = 0; v < 1 << visible_units(f); v++) {
        set_visible(f, v, &s);
        all += to[v] = exp(-free_energy(f, p, &s));
    }
    for (int v = 0; v < 1 << visible_units(f); v++)
        to[v] /= all;
}

/* `to` grows by `chance` times the probability of each v after one step of Gibbs sampling
 * from s: h by its share of e^-E given v, then v by its share given h. */
static void add_step(const struct form *f, const double *p, const struct state *s,
                     double chance, double *to)
{
    struct state other = *s;
    double all = exp(-free_energy(f, p, s)), share[MOST];
    for (int h = 0; h < 1 << hidden_units(f); h++) {
        double of_h = exp(minus_energy(f, p, s, h)) / all, sum = 0;
        for (int v = 0; v < 1 << visible_units(f); v++) {
            set_visible(f, v, &other);
            sum += share[v] = exp(minus_energy(f, p, &other, h));
        }
        for (int v = 0; v < 1 << visible_units(f); v++)
            to[v] += chance * of_h * share[v] / sum;
    }
}

/* The probability of each v after `steps` steps from s. */
static void steps_from(const struct form *f, const double *p, const struct state *s,
                       int steps, double *to)
{
    double now[MOST];
    struct state from = *s;
    memset(to, 0, MOST * sizeof *to);
    add_step(f, p, s, 1, to);
    for (int k = 1; k < steps; k++) {
        memcpy(now, to, sizeof now);
        memset(to, 0, MOST * sizeof *to);
        for (int v = 0; v < 1 << visible_units(f); v++) {
            set_visible(f, v, &from);
            add_step(f, p, &from, now[v], to);
        }
    }
}

/* ------------------------------------------------------------------------------- records
 */

/* Different visible units and conditions, probabilities among them. */
static struct state kind(const struct form *f, int i)
{
    static const double u[KINDS][CONDITIONS] = {{1, 0}, {0, 0}, {-0.5, 1}, {0.75, -1}};
    struct state s;
    set_visible(f, i * 5 + 2, &s);
    if (i == 2)
        s.v[1] = 0.25;
    memcpy(s.u, u[i], sizeof s.u);
    return s;
}

static void put_state(struct rig *g, const struct form *f, int64_t row,
                      const struct state *s)
{
    bool behind = f == &tall; /* v stands behind u */
    int units = visible_units(f);
    for (int i = 0; i < units; i++)
        record(g, row)[(behind ? CONDITIONS : 0) + i] = (float)s->v[i];
    for (int e = 0; e < CONDITIONS; e++)
        record(g, row)[(behind ? 0 : units) + e] = (float)s->u[e];
}

static void begin_kinds(struct rig *g, const struct form *f, const char *backend,
                        int64_t rows)
{
    begin(g, f->text, backend, rows);
    for (int64_t r = 0; r < rows; r++) {
        struct state s = kind(f, (int)(r % KINDS));
        put_state(g, f, r, &s);
    }
}

/* ----------------------------------------------------------------------------- gradients
 */

/* What is to be minimised: the mean over the kinds of F(v | u), less the mean of F over
 * v- of the distribution `minus` at fixed weights; without it, over the model's own: the
 * negative likelihood. */
static double objective(const struct form *f, const double *p, double (*minus)[MOST])
{
    double mean = 0;
    for (int i = 0; i < KINDS; i++) {
        struct state s = kind(f, i);
        double all = 0;
        mean += free_energy(f, p, &s) / KINDS;
        for (int v = 0; v < 1 << visible_units(f); v++) {
            set_visible(f, v, &s);
            double energy = free_energy(f, p, &s);
            if (minus)
                mean -= minus[i][v] * energy / KINDS;
            else
                all += exp(-energy);
        }
        mean += minus ? 0 : log(all) / KINDS;
    }
    return mean;
}

/* Mean gradients of `lots` lots against differences of the objective. Draws of one
 * example are at most `range` wide: 5.5 deviations of their mean, at most. */
static void check_gradients(const struct form *f, const char *backend, int steps,
                            int lots, bool likelihood)
{
    static double minus[KINDS][MOST];
    struct rig g;
    double p[MOST_PARAMETERS], got[MOST_PARAMETERS] = {0}, one[MOST_PARAMETERS];
    double d = 1e-5, range = f->height * f->width, moved = 0;
    begin_kinds(&g, f, backend, ROWS);
    g.energy.steps = steps;
    int count = take(&g, f, g.parameters, 1, p);
    for (int i = 0; i < KINDS && !likelihood; i++) {
        struct state s = kind(f, i);
        steps_from(f, p, &s, steps, minus[i]);
    }
    for (int lot = 0; lot < lots; lot++) {
        gradients(&g, (uint64_t)lot);
        take(&g, f, g.sums, 1.0 / ROWS / lots, one);
        for (int i = 0; i < count; i++)
            got[i] += one[i];
    }
    for (int i = 0; i < count; i++) {
        double was = p[i];
        p[i] = was + d;
        double up = objective(f, p, likelihood ? NULL : minus);
        p[i] = was - d;
        double due = (up - objective(f, p, likelihood ? NULL : minus)) / (2 * d);
        p[i] = was;
        moved = fmax(moved, fabs(due));
        CU_ASSERT(fabs(got[i] - due) < 5.5 * range / sqrt((double)ROWS * lots));
    }
    CU_ASSERT(moved > 20 * range / sqrt((double)ROWS * lots)); /* it can fail */
    end(&g);
}

static void test_expected_gradient(void)
{
    static const char *const backends[] = {"ref", "cpu"};
    for (int backend = 0; backend < 2; backend++)
        for (int steps = 1; steps <= 3; steps += 2) {
            check_gradients(&dense, backends[backend], steps, 10, false);
            check_gradients(&conv, backends[backend], steps, 10, false);
            check_gradients(&tall, backends[backend], steps, 10, false);
        }
}

static void test_many_steps_are_likelihood(void)
{
    check_gradients(&dense, "cpu", 40, 6, true);
    check_gradients(&conv, "cpu", 40, 6, true);
    check_gradients(&tall, "ref", 40, 6, true);
}

/* ---------------------------------------------------------------------------- the values
 */

/* P(h = 1 | v, u) as the network computes it, channels first, and by the energy. */
static void check_hidden(const struct form *f, const char *backend)
{
    struct rig g;
    double p[MOST_PARAMETERS];
    float values[KINDS * MOST_UNITS];
    int units = hidden_units(f);
    begin_kinds(&g, f, backend, KINDS);
    take(&g, f, g.parameters, 1, p);
    struct dpf_lot lot = {.data = &g.data, .rows = g.rows, .count = KINDS};
    struct dpf_lot_values want = {.node = g.model.output, .values = values};
    CU_ASSERT_FATAL(dpf_engine_values(&g.engine, &lot, &want, NULL) == DPF_OK);
    for (int i = 0; i < KINDS; i++) {
        struct state s = kind(f, i);
        double all = exp(-free_energy(f, p, &s));
        for (int j = 0; j < units; j++) {
            double due = 0;
            for (int h = 0; h < 1 << units; h++)
                due += (h >> j & 1) * exp(minus_energy(f, p, &s, h)) / all;
            CU_ASSERT(fabs((double)values[i * units + j] - due) < 1e-5);
        }
    }
    end(&g);
}

static void test_hidden(void)
{
    static const char *const backends[] = {"ref", "cpu"};
    for (int backend = 0; backend < 2; backend++) {
        check_hidden(&dense, backends[backend]);
        check_hidden(&conv, backends[backend]);
        check_hidden(&tall, backends[backend]);
    }
}

/* A ReLU that a convolution computes at once has to come behind the conditions. */
static void test_relu(void)
{
    static const char with[] = "input x 8\nv = slice x from=0 count=6\n"
                               "w = reshape v shape=2x1x3\nu = slice x from=6 count=2\n"
                               "a = conv w u out=2 kernel=1x2 visible=1\nh = relu a\n"
                               "output h\n";
    struct form linear = conv, cut = conv;
    float values[2][KINDS * MOST_UNITS];
    char plain[sizeof with];
    snprintf(plain, sizeof plain, "%.*soutput a\n", (int)(strstr(with, "h =") - with),
             with);
    linear.text = plain;
    cut.text = with;
    const struct form *const forms[] = {&linear, &cut};
    int units = hidden_units(&conv), below = 0;
    for (int k = 0; k < 2; k++) {
        struct rig g;
        begin_kinds(&g, forms[k], "cpu", KINDS);
        struct dpf_lot lot = {.data = &g.data, .rows = g.rows, .count = KINDS};
        struct dpf_lot_values want = {.node = g.model.output, .values = values[k]};
        CU_ASSERT_FATAL(dpf_engine_values(&g.engine, &lot, &want, NULL) == DPF_OK);
        end(&g);
    }
    for (int i = 0; i < KINDS * units; i++) {
        below += values[0][i] < 0;
        CU_ASSERT(values[1][i] == (values[0][i] > 0 ? values[0][i] : 0));
    }
    CU_ASSERT(below > 0);
}

/* ------------------------------------------------------------------------------ learning
 */

/* Chains that keep their record reach P(v | u) for its conditions. */
static void test_chains_reach_the_model(void)
{
    struct rig g;
    double p[MOST_PARAMETERS], due[MOST];
    int64_t seen[KINDS][MOST] = {{0}};
    const struct form *f = &conv;
    begin_kinds(&g, f, "cpu", ROWS);
    take(&g, f, g.parameters, 1, p);
    CU_ASSERT_FATAL(dpf_energy_chains(&g.energy, &g.model, ROWS, NULL) == DPF_OK);
    for (uint64_t step = 0; step < 60; step++)
        gradients(&g, step);
    /* inside, channels are last */
    for (int64_t r = 0; r < ROWS; r++) {
        int v = 0;
        for (int i = 0; i < 6; i++)
            v |= (g.energy.chains[r * 6 + i % 3 * 2 + i / 3] > 0.5F) << i;
        seen[r % KINDS][v]++;
    }
    for (int i = 0; i < KINDS; i++) {
        struct state s = kind(f, i);
        double n = (double)ROWS / KINDS;
        distribution(f, p, &s, due);
        for (int v = 0; v < 1 << visible_units(f); v++)
            CU_ASSERT(fabs((double)seen[i][v] - due[v] * n) <
                      5.5 * sqrt(due[v] * (1 - due[v]) * n) + 3);
    }
    end(&g);
}

/* Visible units that are what the conditions say: P(v | u) is learned, which no machine
 * without conditions can (its best is log 4 for four kinds as frequent). */
static void test_learning(void)
{
    struct rig g;
    struct dpf_optimiser o = dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 0.5);
    double p[MOST_PARAMETERS], all[MOST], mean = 0;
    begin(&g, dense.text, "cpu", 400);
    for (int64_t r = 0; r < 400; r++) {
        struct state s = {.u = {(double)(r & 1), (double)(r >> 1 & 1)}};
        s.v[0] = s.v[2] = s.u[0];
        s.v[1] = 1 - s.u[1];
        put_state(&g, &dense, r, &s);
    }
    CU_ASSERT_FATAL(dpf_optimiser_init(&o, g.engine.kernels, g.engine.workers[0].context,
                                       g.model.span, NULL) == DPF_OK);
    for (uint64_t step = 0; step < 600; step++) {
        struct dpf_lot_result result;
        struct dpf_lot lot = {.data = &g.data,
                              .rows = g.rows,
                              .count = 400,
                              .energy = &g.energy,
                              .step = step};
        CU_ASSERT_FATAL(dpf_engine_gradients(&g.engine, &lot, &result, NULL) == DPF_OK);
        CU_ASSERT_FATAL(dpf_engine_update(&g.engine, &o, 400, NULL, NULL) == DPF_OK);
    }
    dpf_engine_get(&g.engine, g.parameters);
    take(&g, &dense, g.parameters, 1, p);
    for (int i = 0; i < 4; i++) {
        struct state s = {.u = {(double)(i & 1), (double)(i >> 1)}};
        distribution(&dense, p, &s, all);
        mean -= log(all[(i & 1) * 5 + (1 - (i >> 1)) * 2]) / 4;
    }
    CU_ASSERT(mean < 0.3);
    dpf_optimiser_release(&o);
    end(&g);
}

const char dpf_suite[] = "conditional";
const struct dpf_test dpf_tests[] = {
    {"contrastive divergence has the expectation of all states", test_expected_gradient},
    {"after many steps it is the gradient of the likelihood",
     test_many_steps_are_likelihood},
    {"hidden units have the probabilities of the energy", test_hidden},
    {"a ReLU comes behind the conditions", test_relu},
    {"persistent chains reach the distribution given their conditions",
     test_chains_reach_the_model},
    {"learning finds what depends on the conditions", test_learning},
    {NULL, NULL},
};
