#include "kernels/loss.h"

#include <math.h>
#include <string.h>

#include "base/words.h"

#include "base/banned.h"

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
                            const struct dpf_loss_target *target, float *gradient)
{
    const int32_t *labels = target->labels;
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

/* One logistic cross-entropy for each class: log(1 + e^z) - y z, summed. */
static double logistic(int64_t classes, int64_t voxels, const float *z,
                       const struct dpf_loss_target *target, float *gradient)
{
    double sum = 0;
    (void)voxels; /* one */
    for (int64_t l = 0; l < classes; l++) {
        double v = (double)z[l], y = l == target->labels[0];
        sum += fmax(v, 0) + log1p(exp(-fabs(v))) - y * v;
        gradient[l] = (float)(1 / (1 + exp(-v)) - y);
    }
    return sum;
}

/* The second-order Taylor form of the logistic cross-entropy: log 2 + c1 z + c2 z^2,
 * summed. Without noise c1 = 1/2 - y and c2 = 1/8, its expansion at 0. values[2 l] is c1
 * and values[2 l + 1] is c2 of class l. */
static double taylor(int64_t classes, int64_t voxels, const float *z,
                     const struct dpf_loss_target *target, float *gradient)
{
    const float *coefficients = target->values;
    double sum = 0;
    (void)voxels; /* one */
    for (int64_t l = 0; l < classes; l++) {
        double v = (double)z[l];
        double c1 = (double)coefficients[2 * l], c2 = (double)coefficients[2 * l + 1];
        sum += 0.6931471805599453 + c1 * v + c2 * v * v;
        gradient[l] = (float)(c1 + 2 * c2 * v);
    }
    return sum;
}

/* Half the squared distance. */
static double squared(int64_t classes, int64_t voxels, const float *z,
                      const struct dpf_loss_target *target, float *gradient)
{
    double sum = 0;
    for (int64_t i = 0; i < classes * voxels; i++) {
        double d = (double)z[i] - (double)target->values[i];
        sum += d * d / 2;
        gradient[i] = (float)d;
    }
    return sum;
}

/* The same against probabilities y: the sum of -y log softmax(z), mean over positions. */
static double soft_cross_entropy(int64_t classes, int64_t voxels, const float *z,
                                 const struct dpf_loss_target *target, float *gradient)
{
    const float *y = target->values;
    double sum = 0, share = 1 / (double)voxels;
    for (int64_t v = 0; v < voxels; v++, z += classes, y += classes) {
        double total = log_sum_exp(classes, z), weight = 0;
        for (int64_t l = 0; l < classes; l++) {
            weight += (double)y[l];
            sum += (double)y[l] * (total - (double)z[l]) * share;
        }
        for (int64_t l = 0; l < classes; l++) {
            double p = exp((double)z[l] - total);
            *gradient++ = (float)((p * weight - (double)y[l]) * share);
        }
    }
    return sum;
}

enum { MOST_DICE = 256 }; /* classes */

/* 1 less the mean soft Dice of the classes from `first` on. With p the softmax at each
 * voxel, a class has Dice (2 sum p y + 1) / (sum p + sum y + 1): the 1 makes an absent
 * class count as found. `gradient` holds p until the slopes are known; then the gradient
 * with respect to p goes through the softmax of each voxel. */
static double dice_from(int64_t first, int64_t classes, int64_t voxels, const float *z,
                        const struct dpf_loss_target *target, float *gradient)
{
    const int32_t *labels = target->labels;
    double loss = 1, both[MOST_DICE] = {0}, all[MOST_DICE] = {0};
    double hit[MOST_DICE] = {0}, miss[MOST_DICE] = {0};
    for (int64_t v = 0; v < voxels; v++) {
        double total = log_sum_exp(classes, z + v * classes);
        for (int64_t l = 0; l < classes; l++) {
            double p = exp((double)z[v * classes + l] - total), y = labels[v] == l;
            gradient[v * classes + l] = (float)p;
            both[l] += p * y;
            all[l] += p + y;
        }
    }
    for (int64_t l = first; l < classes; l++) {
        double top = 2 * both[l] + 1, bottom = all[l] + 1;
        double share = 1 / (double)(classes - first);
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

static double dice(int64_t classes, int64_t voxels, const float *z,
                   const struct dpf_loss_target *target, float *gradient)
{
    return dice_from(0, classes, voxels, z, target, gradient);
}

/* Cross-entropy of all voxels plus the soft Dice of the foreground (every class but 0):
 * the one teaches where there is something, the other does not drown in background. With
 * one class there is no foreground. */
static double voxel_dice(int64_t classes, int64_t voxels, const float *z,
                         const struct dpf_loss_target *target, float *gradient)
{
    const int32_t *labels = target->labels;
    double loss = dice_from(classes > 1, classes, voxels, z, target, gradient);
    double share = 1 / (double)voxels;
    for (int64_t v = 0; v < voxels; v++, z += classes, gradient += classes) {
        double total = log_sum_exp(classes, z);
        loss += (total - (double)z[labels[v]]) * share;
        for (int64_t l = 0; l < classes; l++) {
            double p = exp((double)z[l] - total);
            gradient[l] = (float)((double)gradient[l] + (p - (l == labels[v])) * share);
        }
    }
    return loss;
}

/* The same with classes weighted in the cross-entropy by the root of their number of
 * voxels in the record: small ones are not passed over while weights are still random,
 * and not drawn too large later, as with equal weights. */
static double balanced_dice(int64_t classes, int64_t voxels, const float *z,
                            const struct dpf_loss_target *target, float *gradient)
{
    const int32_t *labels = target->labels;
    double loss = dice_from(classes > 1, classes, voxels, z, target, gradient);
    int64_t count[MOST_DICE] = {0};
    double all = 0;
    for (int64_t v = 0; v < voxels; v++)
        count[labels[v]]++;
    for (int64_t l = 0; l < classes; l++)
        all += sqrt((double)count[l]);
    for (int64_t v = 0; v < voxels; v++, z += classes, gradient += classes) {
        double total = log_sum_exp(classes, z);
        double share = 1 / (all * sqrt((double)count[labels[v]]));
        loss += (total - (double)z[labels[v]]) * share;
        for (int64_t l = 0; l < classes; l++) {
            double p = exp((double)z[l] - total);
            gradient[l] = (float)((double)gradient[l] + (p - (l == labels[v])) * share);
        }
    }
    return loss;
}

const struct dpf_loss dpf_losses[] = {
    {"cross-entropy", DPF_TARGET_LABEL, 0, NULL, cross_entropy},
    {"logistic", DPF_TARGET_LABEL, 0, NULL, logistic},
    {"taylor2", DPF_TARGET_COEFFICIENTS, 0, "logistic", taylor},
    {"squared", DPF_TARGET_VALUES, 0, NULL, squared},
    {"voxel", DPF_TARGET_VOXEL_LABELS, 0, NULL, cross_entropy},
    {"soft", DPF_TARGET_VALUES, 0, NULL, soft_cross_entropy},
    {"voxel-dice", DPF_TARGET_VOXEL_LABELS, MOST_DICE, NULL, voxel_dice},
    {"balanced-dice", DPF_TARGET_VOXEL_LABELS, MOST_DICE, NULL, balanced_dice},
    {"dice", DPF_TARGET_VOXEL_LABELS, MOST_DICE, NULL, dice},
    {NULL, DPF_TARGET_LABEL, 0, NULL, NULL},
};

const struct dpf_loss *dpf_loss_find(const char *name)
{
    return DPF_FIND(dpf_losses, name);
}

bool dpf_loss_wants_labels(const struct dpf_loss *loss)
{
    return loss->targets == DPF_TARGET_LABEL || loss->targets == DPF_TARGET_VOXEL_LABELS;
}

const struct dpf_loss *dpf_loss_for_labels(const struct dpf_loss *loss)
{
    return loss->labelled ? dpf_loss_find(loss->labelled) : loss;
}
