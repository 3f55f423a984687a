#include "nn/loss.h"

#include <math.h>
#include <string.h>

#include "base/banned.h"

/* Scores of one position, `stride` apart: log of the sum of exponentials, safely. */
static double log_sum_exp(int64_t classes, int64_t stride, const float *z)
{
    double top = (double)z[0], sum = 0;
    for (int64_t l = 1; l < classes; l++)
        top = fmax(top, (double)z[l * stride]);
    for (int64_t l = 0; l < classes; l++)
        sum += exp((double)z[l * stride] - top);
    return top + log(sum);
}

/* Mean over positions of -log softmax(z)[label]; one position is the plain form. */
static double cross_entropy(int64_t classes, int64_t voxels, const float *z,
                            const int32_t *labels, float *gradient)
{
    double sum = 0, share = 1 / (double)voxels;
    for (int64_t v = 0; v < voxels; v++) {
        double total = log_sum_exp(classes, voxels, z + v);
        sum += (total - (double)z[labels[v] * voxels + v]) * share;
        for (int64_t l = 0; l < classes; l++) {
            double p = exp((double)z[l * voxels + v] - total);
            gradient[l * voxels + v] = (float)((p - (l == labels[v])) * share);
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
 * 1): the 1 makes an absent class count as found. The gradient goes through p: first with
 * respect to p, into `gradient`, then through the softmax of each voxel. */
static double dice(int64_t classes, int64_t voxels, const float *z, const int32_t *labels,
                   float *gradient)
{
    double loss = 1;
    for (int64_t l = 0; l < classes; l++) {
        double both = 0, all = 0;
        for (int64_t v = 0; v < voxels; v++) {
            double total = log_sum_exp(classes, voxels, z + v);
            double p = exp((double)z[l * voxels + v] - total), y = labels[v] == l;
            both += p * y;
            all += p + y;
        }
        double top = 2 * both + 1, bottom = all + 1;
        loss -= top / bottom / (double)classes;
        for (int64_t v = 0; v < voxels; v++) {
            double y = labels[v] == l;
            gradient[l * voxels + v] =
                (float)(-(2 * y * bottom - top) / (bottom * bottom) / (double)classes);
        }
    }
    for (int64_t v = 0; v < voxels; v++) {
        double total = log_sum_exp(classes, voxels, z + v), mean = 0;
        for (int64_t l = 0; l < classes; l++)
            mean +=
                exp((double)z[l * voxels + v] - total) * (double)gradient[l * voxels + v];
        for (int64_t l = 0; l < classes; l++) {
            double p = exp((double)z[l * voxels + v] - total);
            gradient[l * voxels + v] =
                (float)(p * ((double)gradient[l * voxels + v] - mean));
        }
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
