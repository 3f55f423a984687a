/* Energy models: contrastive divergence against sums over all states of small machines,
 * and convolutions against the sums of pCDBN's Eq. 4. */
#include <math.h>
#include <string.h>

#include "energy_rig.h"

#include "base/banned.h"

enum { VISIBLE = 3, HIDDEN = 2, STATES = 1 << VISIBLE, ROWS = 4096 };

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* ------------------------------------------------- a dense machine, by enumeration */

static const char dense[] =
    "input x 3\na = dense x out=2 visible=1\nh = sigmoid a\noutput h\n";

/* Parameters and gradients: W [hidden][visible], b, c. */
struct numbers {
    double w[HIDDEN][VISIBLE], b[HIDDEN], c[VISIBLE];
};

static struct numbers numbers_of(const struct rig *g, const float *from, double scale)
{
    struct numbers n;
    for (int j = 0; j < HIDDEN; j++) {
        n.b[j] = scale * (double)parameter(g, from, 1)[j];
        for (int i = 0; i < VISIBLE; i++)
            n.w[j][i] = scale * (double)parameter(g, from, 0)[j * VISIBLE + i];
    }
    for (int i = 0; i < VISIBLE; i++)
        n.c[i] = scale * (double)parameter(g, from, 2)[i];
    return n;
}

static void hide(const struct numbers *p, const double *v, double *h)
{
    for (int j = 0; j < HIDDEN; j++) {
        double sum = p->b[j];
        for (int i = 0; i < VISIBLE; i++)
            sum += p->w[j][i] * v[i];
        h[j] = sigmoid(sum);
    }
}

static void state(int s, double *v)
{
    for (int i = 0; i < VISIBLE; i++)
        v[i] = s >> i & 1;
}

/* The probability of each visible state one step of Gibbs sampling after v. */
static void step_from(const struct numbers *p, const double *v, double *to)
{
    double h[HIDDEN];
    hide(p, v, h);
    memset(to, 0, STATES * sizeof *to);
    for (int k = 0; k < 1 << HIDDEN; k++) {
        double chance = 1;
        for (int j = 0; j < HIDDEN; j++)
            chance *= k >> j & 1 ? h[j] : 1 - h[j];
        for (int s = 0; s < STATES; s++) {
            double of = chance;
            for (int i = 0; i < VISIBLE; i++) {
                double sum = p->c[i];
                for (int j = 0; j < HIDDEN; j++)
                    sum += (k >> j & 1) * p->w[j][i];
                of *= s >> i & 1 ? sigmoid(sum) : 1 - sigmoid(sum);
            }
            to[s] += of;
        }
    }
}

/* After `steps` steps. */
static void steps_from(const struct numbers *p, const double *v, int steps, double *to)
{
    double now[STATES], next[STATES], from[VISIBLE], one[STATES];
    step_from(p, v, now);
    for (int k = 1; k < steps; k++) {
        memset(next, 0, sizeof next);
        for (int s = 0; s < STATES; s++) {
            state(s, from);
            step_from(p, from, one);
            for (int t = 0; t < STATES; t++)
                next[t] += now[s] * one[t];
        }
        memcpy(now, next, sizeof now);
    }
    memcpy(to, now, sizeof now);
}

/* -v h' times the sign, and the same of b and c. */
static void add_energy(const struct numbers *p, const double *v, double weight,
                       struct numbers *to)
{
    double h[HIDDEN];
    hide(p, v, h);
    for (int j = 0; j < HIDDEN; j++) {
        to->b[j] += weight * h[j];
        for (int i = 0; i < VISIBLE; i++)
            to->w[j][i] += weight * h[j] * v[i];
    }
    for (int i = 0; i < VISIBLE; i++)
        to->c[i] += weight * v[i];
}

/* The mean of n draws in [-1,1] against what it should be: 5.5 deviations of a mean of
 * such draws, 1 in 10^6 for each of some hundred comparisons. */
static bool near(const struct numbers *a, const struct numbers *b, double n)
{
    const double *x = &a->w[0][0], *y = &b->w[0][0];
    double most = 0;
    for (size_t i = 0; i < sizeof *a / sizeof *x; i++)
        most = fmax(most, fabs(x[i] - y[i]));
    return most < 5.5 / sqrt(n);
}

static void fill(struct rig *g, const double *v)
{
    for (int64_t r = 0; r < (int64_t)g->data.rows; r++)
        for (int i = 0; i < VISIBLE; i++)
            record(g, r)[i] = (float)v[i];
}

/* The mean gradient of `lots` lots. */
static struct numbers mean_gradient(struct rig *g, int lots)
{
    struct numbers mean = {.b = {0}};
    double *to = &mean.w[0][0];
    for (int lot = 0; lot < lots; lot++) {
        gradients(g, (uint64_t)lot);
        struct numbers one = numbers_of(g, g->sums, 1.0 / (double)g->data.rows / lots);
        const double *from = &one.w[0][0];
        for (size_t i = 0; i < sizeof mean / sizeof *to; i++)
            to[i] += from[i];
    }
    return mean;
}

static void test_expected_gradient(void)
{
    static const double inputs[][VISIBLE] = {{1, 0, 1}, {0, 0, 0}, {0.25, 1, 0.5}};
    static const char *const backends[] = {"ref", "cpu"};
    for (int backend = 0; backend < 2; backend++)
        for (size_t k = 0; k < 3; k++)
            for (int steps = 1; steps <= 3; steps += 2) {
                enum { LOTS = 20 };
                struct rig g;
                double after[STATES], v[VISIBLE];
                begin(&g, dense, backends[backend], ROWS);
                g.energy.steps = steps;
                struct numbers p = numbers_of(&g, g.parameters, 1), due = {.b = {0}};
                add_energy(&p, inputs[k], -1, &due);
                steps_from(&p, inputs[k], steps, after);
                for (int s = 0; s < STATES; s++) {
                    state(s, v);
                    add_energy(&p, v, after[s], &due);
                }
                fill(&g, inputs[k]);
                struct numbers got = mean_gradient(&g, LOTS);
                CU_ASSERT(near(&got, &due, (double)LOTS * ROWS));
                CU_ASSERT(!near(&p, &due, (double)LOTS * ROWS)); /* it can fail */
                end(&g);
            }
}

/* log of the sum over hidden states of e^-E: minus the free energy. */
static double free_energy(const struct numbers *p, const double *v)
{
    double sum = 0;
    for (int k = 0; k < 1 << HIDDEN; k++) {
        double energy = 0;
        for (int j = 0; j < HIDDEN; j++) {
            energy -= (k >> j & 1) * p->b[j];
            for (int i = 0; i < VISIBLE; i++)
                energy -= (k >> j & 1) * p->w[j][i] * v[i];
        }
        for (int i = 0; i < VISIBLE; i++)
            energy -= p->c[i] * v[i];
        sum += exp(-energy);
    }
    return -log(sum);
}

/* The mean of -log P(v) over the rows. */
static double likelihood(const struct rig *g, const struct numbers *p)
{
    double v[VISIBLE], all = 0, mean = 0;
    for (int s = 0; s < STATES; s++) {
        state(s, v);
        all += exp(-free_energy(p, v));
    }
    for (uint64_t r = 0; r < g->data.rows; r++) {
        const float *x = (const float *)(const void *)g->data.x + r * VISIBLE;
        for (int i = 0; i < VISIBLE; i++)
            v[i] = (double)x[i];
        mean += (free_energy(p, v) + log(all)) / (double)g->data.rows;
    }
    return mean;
}

/* States 1, 1, 6, and 7, again and again. */
static void fill_states(struct rig *g)
{
    static const int states[] = {1, 1, 6, 7};
    double v[VISIBLE];
    for (int64_t r = 0; r < (int64_t)g->data.rows; r++) {
        state(states[r % 4], v);
        for (int i = 0; i < VISIBLE; i++)
            record(g, r)[i] = (float)v[i];
    }
}

static void test_many_steps_are_likelihood(void)
{
    enum { LOTS = 10, STEPS = 60 };
    struct rig g;
    begin(&g, dense, "cpu", ROWS);
    fill_states(&g);
    g.energy.steps = STEPS;
    struct numbers p = numbers_of(&g, g.parameters, 1), due;
    double *at = &p.w[0][0], *to = &due.w[0][0], d = 1e-5;
    for (size_t i = 0; i < sizeof p / sizeof *at; i++) {
        double was = at[i];
        at[i] = was + d;
        double up = likelihood(&g, &p);
        at[i] = was - d;
        to[i] = (up - likelihood(&g, &p)) / (2 * d);
        at[i] = was;
    }
    struct numbers got = mean_gradient(&g, LOTS);
    CU_ASSERT(near(&got, &due, (double)LOTS * ROWS));
    end(&g);
}

static void test_chains_reach_the_model(void)
{
    struct rig g;
    double all = 0, due[STATES], v[VISIBLE];
    int64_t seen[STATES] = {0};
    begin(&g, dense, "cpu", ROWS);
    struct numbers p = numbers_of(&g, g.parameters, 1);
    CU_ASSERT_FATAL(dpf_energy_chains(&g.energy, &g.model, ROWS, NULL) == DPF_OK);
    for (uint64_t step = 0; step < 60; step++)
        gradients(&g, step);
    for (int64_t r = 0; r < ROWS; r++) {
        const float *chain = g.energy.chains + r * VISIBLE;
        seen[(chain[0] > 0.5F) + 2 * (chain[1] > 0.5F) + 4 * (chain[2] > 0.5F)]++;
    }
    for (int s = 0; s < STATES; s++) {
        state(s, v);
        all += due[s] = exp(-free_energy(&p, v));
    }
    for (int s = 0; s < STATES; s++) {
        double q = due[s] / all, deviation = sqrt(q * (1 - q) * ROWS);
        CU_ASSERT(fabs((double)seen[s] - q * ROWS) < 5.5 * deviation);
    }
    g.rows[0] = 0;
    struct dpf_lot lot = {
        .data = &g.data, .rows = g.rows, .count = ROWS, .energy = &g.energy};
    struct dpf_lot_result result;
    g.energy.chain_count = ROWS - 1; /* an example without a chain */
    CU_ASSERT(dpf_engine_gradients(&g.engine, &lot, &result, NULL) == DPF_USAGE);
    end(&g);
}

static void test_learning_raises_likelihood(void)
{
    struct rig g;
    struct dpf_optimiser o = dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 0.5);
    begin(&g, dense, "cpu", 400);
    fill_states(&g);
    CU_ASSERT_FATAL(dpf_optimiser_init(&o, g.engine.kernels, g.engine.workers[0].context,
                                       g.model.span, NULL) == DPF_OK);
    struct numbers p = numbers_of(&g, g.parameters, 1);
    double first = likelihood(&g, &p);
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
    p = numbers_of(&g, g.parameters, 1);
    double last = likelihood(&g, &p); /* the entropy of the rows is 1.0397 */
    CU_ASSERT(first > 1.5);
    CU_ASSERT(last < 1.25);
    dpf_optimiser_release(&o);
    end(&g);
}

/* ---------------------------------------------------------- convolutions, by Eq. 4 */

static const char conv[] =
    "input x 2x5x4\nc = conv x out=3 kernel=2x3 visible=1\nh = sigmoid c\n"
    "p = max-pool h kernel=2\nf = flatten p\ny = dense f out=2\noutput y\n";
enum { CHANNELS = 2, HIGH = 5, WIDE = 4, GROUPS = 3, KH = 2, KW = 3 };

/* With a visible bias of -100 every chain ends at zeros, so that only the record's own
 * part is left: minus h v, summed over positions, and, of b, minus h plus sigmoid(b). */
static void check_conv(const char *backend)
{
    enum { N = 7, OH = HIGH - KH + 1, OW = WIDE - KW + 1, IN = CHANNELS * HIGH * WIDE };
    struct rig g;
    struct dpf_seeded r;
    begin(&g, conv, backend, N);
    float *c = g.parameters + g.model.nodes[g.energy.node].offset[2];
    c[0] = c[1] = -100;
    dpf_engine_put(&g.engine, g.parameters);
    dpf_seeded_init(&r, "test energy pictures", 1, 0);
    for (int64_t i = 0; i < N * IN; i++)
        record(&g, 0)[i] = (float)((double)dpf_seeded_below(&r, 1000) / 999);
    gradients(&g, 0);
    const float *w = parameter(&g, g.parameters, 0), *b = parameter(&g, g.parameters, 1);
    double dw[GROUPS * CHANNELS * KH * KW] = {0}, db[GROUPS] = {0}, dc[CHANNELS] = {0};
    for (int64_t n = 0; n < N; n++) {
        const float *v = record(&g, n);
        for (int k = 0; k < GROUPS; k++)
            for (int y = 0; y < OH; y++)
                for (int x = 0; x < OW; x++) {
                    double sum = (double)b[k];
                    for (int i = 0; i < CHANNELS * KH * KW; i++) {
                        int ch = i / (KH * KW), dy = i / KW % KH, dx = i % KW;
                        sum += (double)w[k * CHANNELS * KH * KW + i] *
                               (double)v[ch * HIGH * WIDE + (y + dy) * WIDE + x + dx];
                    }
                    double h = sigmoid(sum);
                    db[k] += sigmoid((double)b[k]) - h;
                    for (int i = 0; i < CHANNELS * KH * KW; i++) {
                        int ch = i / (KH * KW), dy = i / KW % KH, dx = i % KW;
                        dw[k * CHANNELS * KH * KW + i] -=
                            h * (double)v[ch * HIGH * WIDE + (y + dy) * WIDE + x + dx];
                    }
                }
        for (int i = 0; i < IN; i++)
            dc[i / (HIGH * WIDE)] -= (double)v[i];
    }
    for (size_t i = 0; i < sizeof dw / sizeof *dw; i++)
        CU_ASSERT(fabs((double)parameter(&g, g.sums, 0)[i] - dw[i]) < 2e-4);
    for (int i = 0; i < GROUPS; i++)
        CU_ASSERT(fabs((double)parameter(&g, g.sums, 1)[i] - db[i]) < 2e-4);
    for (int i = 0; i < CHANNELS; i++)
        CU_ASSERT(fabs((double)parameter(&g, g.sums, 2)[i] - dc[i]) < 2e-4);
    end(&g);
}

static void test_conv(void)
{
    check_conv("ref");
    check_conv("cpu");
}

/* --------------------------------------------------------------------------- refusals */

static void test_nodes(void)
{
    static const char two[] = "input x 4\na = dense x out=3 visible=1\nh = sigmoid a\n"
                              "b = dense h out=2 visible=1\noutput b\n";
    static const char *const wrong[] = {
        "input x 4 bits\na = dense x out=3 visible=1\noutput a\n",
        "input x 4\na = dense x out=3 bias=0 visible=1\noutput a\n",
        "input x 4\na = dense x out=3 visible=0\noutput a\n",
        "input x 4\na = sigmoid x visible=1\noutput a\n"};
    struct dpf_model m;
    size_t node = 0;
    CU_ASSERT_FATAL(dpf_model_parse(&m, two, strlen(two), "net", NULL) == DPF_OK);
    CU_ASSERT(dpf_energy_find(&m, NULL, &node, NULL) == DPF_USAGE);
    CU_ASSERT(dpf_energy_find(&m, "h", &node, NULL) == DPF_USAGE);
    CU_ASSERT(dpf_energy_find(&m, "b", &node, NULL) == DPF_OK);
    CU_ASSERT(node == 3);
    dpf_model_release(&m);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CU_ASSERT(dpf_model_parse(&m, wrong[i], strlen(wrong[i]), "net", NULL) ==
                  DPF_USAGE);
}

const char dpf_suite[] = "energy";
const struct dpf_test dpf_tests[] = {
    {"contrastive divergence has the expectation of all states", test_expected_gradient},
    {"after many steps it is the gradient of the likelihood",
     test_many_steps_are_likelihood},
    {"persistent chains reach the model's distribution", test_chains_reach_the_model},
    {"learning raises the likelihood", test_learning_raises_likelihood},
    {"convolutions add up Eq. 4", test_conv},
    {"which node is learned, and what cannot have a visible bias", test_nodes},
    {NULL, NULL},
};
