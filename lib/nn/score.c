#include "nn/score.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

#include "base/banned.h"

/* The standard normal distribution has 95 % within this. */
static const double NORMAL_95 = 1.959963984540054;

enum dpf_status dpf_score_init(struct dpf_score *s, uint64_t classes, bool voxels,
                               struct dpf_error *e)
{
    *s = (struct dpf_score){.classes = classes, .voxels = voxels};
    if (classes < 1 || classes > DPF_SCORE_MAX_CLASSES)
        return dpf_fail(e, DPF_USAGE, "cannot score '%llu' classes: 1 to %d are possible",
                        (unsigned long long)classes, DPF_SCORE_MAX_CLASSES);
    bool matrix = classes <= DPF_SCORE_MATRIX_CLASSES;
    s->per_class = dpf_calloc(classes, sizeof *s->per_class);
    if (matrix) /* the cap keeps the square far from overflow */
        s->confusion = dpf_calloc(classes * classes, sizeof *s->confusion);
    if (!s->per_class || (matrix && !s->confusion)) {
        dpf_score_release(s);
        return dpf_fail_memory(e);
    }
    return DPF_OK;
}

void dpf_score_release(struct dpf_score *s)
{
    free(s->per_class);
    free(s->confusion);
    *s = (struct dpf_score){0};
}

/* False if there is a NaN. */
static bool find_best(const float *z, uint64_t classes, uint64_t *best)
{
    uint64_t at = 0;
    bool valid = true;
    for (uint64_t l = 0; l < classes; l++) {
        valid &= !isnan(z[l]);
        if (z[l] > z[at])
            at = l;
    }
    *best = at;
    return valid;
}

/* Is the label among the k best, if of equal scores the lower class comes first? */
static bool among_best(const float *z, uint64_t classes, uint64_t label, uint64_t k)
{
    uint64_t before = 0;
    for (uint64_t l = 0; l < classes; l++)
        before += z[l] > z[label] || (z[l] == z[label] && l < label);
    return before < k;
}

/* z - top, where scores that share an infinite top share the probability. */
static double below(float z, float top)
{
    return z == top ? 0 : (double)z - (double)top;
}

static void add_probabilities(struct dpf_score *s, const float *z, uint64_t label,
                              uint64_t best)
{
    double sum = 0, brier = 0;
    for (uint64_t l = 0; l < s->classes; l++)
        sum += exp(below(z[l], z[best]));
    for (uint64_t l = 0; l < s->classes; l++) {
        double off = exp(below(z[l], z[best])) / sum - (l == label);
        brier += off * off;
    }
    s->brier_sum += brier;
    s->nll_sum += log(sum) - below(z[label], z[best]);
    double confidence = 1 / sum;
    int bin = (int)ceil(confidence * DPF_SCORE_BINS) - 1;
    bin = bin < 0 ? 0 : bin >= DPF_SCORE_BINS ? DPF_SCORE_BINS - 1 : bin;
    s->bins[bin].count++;
    s->bins[bin].hits += best == label;
    s->bins[bin].confidence_sum += confidence;
    s->confidence_sum += confidence;
}

static void add_position(struct dpf_score *s, const float *z, uint64_t label)
{
    uint64_t best;
    s->per_class[label].here_support++;
    if (!find_best(z, s->classes, &best)) {
        s->not_a_number++;
        return;
    }
    s->per_class[best].here_predicted++;
    s->per_class[label].here_hits += best == label;
    s->hits += best == label;
    if (s->classes > DPF_SCORE_TOP)
        s->top_hits += among_best(z, s->classes, label, DPF_SCORE_TOP);
    if (s->confusion)
        s->confusion[label * s->classes + best]++;
    add_probabilities(s, z, label, best);
}

/* NaN for a class that is nowhere. */
static double dice(uint64_t both, uint64_t predicted, uint64_t support)
{
    uint64_t all = predicted + support;
    return all ? 2 * (double)both / (double)all : NAN;
}

/* Move the example in hand to those before it. */
static void close_example(struct dpf_score_class *c)
{
    c->support += c->here_support;
    c->predicted += c->here_predicted;
    c->hits += c->here_hits;
    if (c->here_support || c->here_predicted) {
        c->dice_examples++;
        c->dice_sum += dice(c->here_hits, c->here_predicted, c->here_support);
    }
    c->here_support = c->here_predicted = c->here_hits = 0;
}

void dpf_score_add(struct dpf_score *s, const float *scores, int64_t voxels_per_example,
                   const int32_t *labels, double loss)
{
    uint64_t labelled = 0;
    for (int64_t v = 0; v < voxels_per_example; v++) {
        if (labels[v] < 0 || (uint64_t)labels[v] >= s->classes) {
            s->unlabelled++;
            continue;
        }
        add_position(s, scores + (uint64_t)v * s->classes, (uint64_t)labels[v]);
        labelled++;
    }
    if (!labelled)
        return;
    for (uint64_t l = 0; l < s->classes; l++)
        close_example(&s->per_class[l]);
    s->examples++;
    s->positions += labelled;
    s->squares += (double)labelled * (double)labelled;
    s->loss_sum += loss;
}

static double ratio(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

static double mean(double sum, uint64_t count)
{
    return count ? sum / (double)count : NAN;
}

/* Wilson's score interval for the share p of n trials; it lies within [0, 1] and includes
 * p but for rounding. */
static void wilson(double p, double n, double *low, double *high)
{
    double z2 = NORMAL_95 * NORMAL_95, scale = 1 + z2 / n;
    double centre = (p + z2 / (2 * n)) / scale;
    double half = NORMAL_95 * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / scale;
    *low = fmin(fmax(centre - half, 0), p);
    *high = fmax(fmin(centre + half, 1), p);
}

static void finish_accuracy(struct dpf_score *s)
{
    s->accuracy = mean((double)s->hits, s->positions);
    s->accuracy_low = s->accuracy_high = NAN;
    if (s->positions)
        wilson(s->accuracy, (double)s->positions * (double)s->positions / s->squares,
               &s->accuracy_low, &s->accuracy_high);
    s->top = s->classes > DPF_SCORE_TOP ? mean((double)s->top_hits, s->positions) : NAN;
    s->loss = mean(s->loss_sum, s->examples);
}

static void finish_calibration(struct dpf_score *s)
{
    uint64_t rated = s->positions - s->not_a_number;
    s->nll = mean(s->nll_sum, rated);
    s->brier = mean(s->brier_sum, rated);
    s->confidence = mean(s->confidence_sum, rated);
    s->ece = s->mce = rated ? 0 : NAN;
    for (int i = 0; i < DPF_SCORE_BINS; i++) {
        const struct dpf_score_bin *b = &s->bins[i];
        if (!b->count)
            continue;
        double gap = fabs((double)b->hits - b->confidence_sum);
        s->ece += gap / (double)rated;
        s->mce = fmax(s->mce, gap / (double)b->count);
    }
}

static void finish_classes(struct dpf_score *s)
{
    double sum = 0, pooled_sum = 0, front = 0;
    uint64_t defined = 0, fronts = 0;
    for (uint64_t l = 0; l < s->classes; l++) {
        struct dpf_score_class *c = &s->per_class[l];
        c->precision = ratio(c->hits, c->predicted);
        c->recall = ratio(c->hits, c->support);
        c->f1 = ratio(2 * c->hits, c->predicted + c->support);
        c->dice = mean(c->dice_sum, c->dice_examples);
        c->dice_pooled = dice(c->hits, c->predicted, c->support);
        if (!c->dice_examples)
            continue;
        defined++;
        sum += c->dice;
        pooled_sum += c->dice_pooled;
        front += l ? c->dice : 0;
        fronts += l > 0;
    }
    s->dice_mean = mean(sum, defined);
    s->dice_pooled_mean = mean(pooled_sum, defined);
    s->dice_foreground = mean(front, fronts);
}

void dpf_score_finish(struct dpf_score *s)
{
    finish_accuracy(s);
    finish_calibration(s);
    finish_classes(s);
}
