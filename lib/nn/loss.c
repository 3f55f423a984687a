#include "nn/loss.h"

#include <math.h>
#include <string.h>

#include "base/banned.h"

const char *const dpf_loss_words[] = {"cross-entropy", "logistic", "taylor2", "squared",
                                      "voxel",         "dice",     NULL};

/* Scores of one position: log of the sum of exponentials, safely. */
static double log_sum_exp(int64_t classes, const float *z)
{
    double top = (double)z[0], sum = 0;
    for (int64_t l = 1; l < classes; l++)
        top = fmax(top, (double)z[l]);
    for (int64_t l = 0; l < classes; l++)
        sum += exp((double)z[l] - top);
    return top + log(sum);
}

/* Mean over positions of -log softmax(z)[label]; one position is the plain form. */
static double cross_entropy(int64_t classes, int64_t voxels, const float *z,
                            const int32_t *labels, float *gradient)
{
    double sum = 0, share = 1 / (double)voxels;
    for (int64_t v = 0; v < voxels; v++, z += classes, gradient += classes) {
        double total = log_sum_exp(classes, z);
        sum += (total - (double)z[labels[v]]) * share;
        for (int64_t l = 0; l < classes; l++) {
            double p = exp((double)z[l] - total);
            gradient[l] = (float)((p - (l == labels[v])) * share);
        }
    }
    return sum;
}

/* log(1 + e^z) - y z, summed over classes. */
static double logistic(int64_t classes, const float *z, int32_t label, float *gradient)
{
    double sum = 0;
    for (int64_t l = 0; l < classes; l++) {
        double v = (double)z[l], y = l == label;
        sum += fmax(v, 0) + log1p(exp(-fabs(v))) - y * v;
        gradient[l] = (float)(1 / (1 + exp(-v)) - y);
    }
    return sum;
}

static double taylor(int64_t classes, const float *z, const float *coefficients,
                     float *gradient)
{
    double sum = 0;
    for (int64_t l = 0; l < classes; l++) {
        double v = (double)z[l];
        double c1 = (double)coefficients[2 * l], c2 = (double)coefficients[2 * l + 1];
        sum += 0.6931471805599453 + c1 * v + c2 * v * v;
        gradient[l] = (float)(c1 + 2 * c2 * v);
    }
    return sum;
}

static double squared(int64_t count, const float *z, const float *values, float *gradient)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = (double)z[i] - (double)values[i];
        sum += d * d / 2;
        gradient[i] = (float)d;
    }
    return sum;
}

/* With p the softmax at each voxel, a class has Dice (2 sum p y + 1) / (sum p + sum y +
 * 1): the 1 makes an absent class count as found. `gradient` holds p until the slopes are
 * known; then the gradient with respect to p goes through the softmax of each voxel. */
static double dice(int64_t classes, int64_t voxels, const float *z, const int32_t *labels,
                   float *gradient)
{
    double loss = 1, both[DPF_LOSS_MAX_DICE] = {0}, all[DPF_LOSS_MAX_DICE] = {0};
    double hit[DPF_LOSS_MAX_DICE], miss[DPF_LOSS_MAX_DICE];
    for (int64_t v = 0; v < voxels; v++) {
        double total = log_sum_exp(classes, z + v * classes);
        for (int64_t l = 0; l < classes; l++) {
            double p = exp((double)z[v * classes + l] - total), y = labels[v] == l;
            gradient[v * classes + l] = (float)p;
            both[l] += p * y;
            all[l] += p + y;
        }
    }
    for (int64_t l = 0; l < classes; l++) {
        double top = 2 * both[l] + 1, bottom = all[l] + 1, share = 1 / (double)classes;
        loss -= top / bottom * share;
        hit[l] = (top - 2 * bottom) / (bottom * bottom) * share;
        miss[l] = top / (bottom * bottom) * share;
    }
    for (int64_t v = 0; v < voxels; v++) {
        float *p = gradient + v * classes;
        double mean = 0;
        for (int64_t l = 0; l < classes; l++)
            mean += (double)p[l] * (labels[v] == l ? hit[l] : miss[l]);
        for (int64_t l = 0; l < classes; l++)
            p[l] = (float)((double)p[l] * ((labels[v] == l ? hit[l] : miss[l]) - mean));
    }
    return loss;
}

double dpf_loss_example(enum dpf_loss loss, int64_t classes, int64_t voxels,
                        const float *output, const struct dpf_loss_target *target,
                        float *gradient)
{
    switch (loss) {
    case DPF_LOSS_CROSS_ENTROPY:
        return cross_entropy(classes, 1, output, target->labels, gradient);
    case DPF_LOSS_LOGISTIC:
        return logistic(classes, output, target->labels[0], gradient);
    case DPF_LOSS_TAYLOR:
        return taylor(classes, output, target->values, gradient);
    case DPF_LOSS_SQUARED:
        return squared(classes, output, target->values, gradient);
    case DPF_LOSS_VOXEL:
        return cross_entropy(classes, voxels, output, target->labels, gradient);
    case DPF_LOSS_DICE:
        return dice(classes, voxels, output, target->labels, gradient);
    }
    return NAN;
}
