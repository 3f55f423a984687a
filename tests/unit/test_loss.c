/* Losses: gradients by finite differences, known values, far scores. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "kernels/loss.h"
#include "random/seeded.h"

enum { CLASSES = 3, VOXELS = 5, MOST = CLASSES * VOXELS };

static void test_gradients(void)
{
    static const int32_t labels[VOXELS] = {2, 0, 1, 1, 0};
    struct dpf_seeded r;
    dpf_seeded_init(&r, "test loss", 1, 0);
    for (const struct dpf_loss *loss = dpf_losses; loss->name; loss++) {
        bool vector =
            loss->targets == DPF_TARGET_LABEL || loss->targets == DPF_TARGET_COEFFICIENTS;
        int64_t voxels = vector ? 1 : VOXELS, count = CLASSES * voxels;
        float z[MOST], values[MOST], gradient[MOST], ignored[MOST];
        struct dpf_loss_target target = {labels, values};
        for (int i = 0; i < MOST; i++)
            z[i] = (float)dpf_seeded_normal(&r);
        for (int i = 0; i < MOST; i++)
            values[i] = (float)dpf_seeded_normal(&r);
        loss->example(CLASSES, voxels, z, &target, gradient);
        double worst = 0;
        for (int64_t i = 0; i < count; i++) {
            float old = z[i], above = old + 1e-3f, below = old - 1e-3f;
            z[i] = above;
            double high = loss->example(CLASSES, voxels, z, &target, ignored);
            z[i] = below;
            double low = loss->example(CLASSES, voxels, z, &target, ignored);
            z[i] = old;
            double slope = (high - low) / ((double)above - (double)below);
            worst = fmax(worst, fabs(slope - (double)gradient[i]));
        }
        if (worst > 1e-6)
            printf("    loss %s: off by %g\n", loss->name, worst);
        CU_ASSERT(worst <= 1e-6);
    }
}

static void test_values(void)
{
    const float even[4] = {1, 1, 1, 1}, far[2] = {1000, -1000};
    const int32_t first = 0, second = 1;
    float g[8];
    struct dpf_loss_target t = {.labels = &first};
    CU_ASSERT_DOUBLE_EQUAL((dpf_loss_find("cross-entropy"))->example(4, 1, even, &t, g),
                           log(4), 1e-12);
    CU_ASSERT_DOUBLE_EQUAL((double)g[0], -0.75, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL((dpf_loss_find("cross-entropy"))->example(2, 1, far, &t, g), 0,
                           1e-12);
    t.labels = &second;
    CU_ASSERT_DOUBLE_EQUAL((dpf_loss_find("cross-entropy"))->example(2, 1, far, &t, g),
                           2000, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL((dpf_loss_find("logistic"))->example(2, 1, far, &t, g), 2000,
                           1e-9);
    CU_ASSERT(isfinite(g[0]) && isfinite(g[1]));
    /* a perfect segmentation has Dice 1 */
    const float sure[4] = {50, -50, -50, 50}; /* voxel 0 is class 0, voxel 1 class 1 */
    const int32_t truth[2] = {0, 1};
    t.labels = truth;
    CU_ASSERT_DOUBLE_EQUAL((dpf_loss_find("dice"))->example(2, 2, sure, &t, g), 0, 1e-12);
}

/* Soft targets that are sure are labels; voxel-dice is its two parts, class 0 left out of
 * the second. */
static void test_parts(void)
{
    static const int32_t labels[VOXELS] = {2, 0, 1, 1, 0};
    float z[MOST], sure[MOST] = {0}, g[MOST], h[MOST];
    for (int i = 0; i < MOST; i++)
        z[i] = (float)(i * 7 % 11) / 4;
    for (int v = 0; v < VOXELS; v++)
        sure[v * CLASSES + labels[v]] = 1;
    struct dpf_loss_target t = {labels, sure};
    double hard = dpf_loss_find("voxel")->example(CLASSES, VOXELS, z, &t, g);
    double soft = dpf_loss_find("soft")->example(CLASSES, VOXELS, z, &t, h);
    CU_ASSERT_DOUBLE_EQUAL(hard, soft, 1e-12);
    for (int i = 0; i < MOST; i++)
        CU_ASSERT_DOUBLE_EQUAL((double)g[i], (double)h[i], 1e-7);
    double due = hard + 1;
    for (int l = 1; l < CLASSES; l++) {
        double both = 0, all = 0;
        for (int v = 0; v < VOXELS; v++) {
            double total = 0;
            for (int k = 0; k < CLASSES; k++)
                total += exp((double)z[v * CLASSES + k]);
            double p = exp((double)z[v * CLASSES + l]) / total;
            both += labels[v] == l ? p : 0;
            all += p + (labels[v] == l);
        }
        due -= (2 * both + 1) / (all + 1) / (CLASSES - 1);
    }
    double mixed = dpf_loss_find("voxel-dice")->example(CLASSES, VOXELS, z, &t, g);
    CU_ASSERT_DOUBLE_EQUAL(mixed, due, 1e-12);
    /* a class of n voxels has root n in the mean of the classes' cross-entropies */
    double balanced = due - hard;
    for (int v = 0; v < VOXELS; v++) {
        static const int count[CLASSES] = {2, 2, 1};
        balanced += dpf_loss_find("cross-entropy")
                        ->example(CLASSES, 1, z + v * CLASSES,
                                  &(struct dpf_loss_target){labels + v, NULL}, h) /
                    sqrt(count[labels[v]]) / (2 * sqrt(2) + 1);
    }
    mixed = dpf_loss_find("balanced-dice")->example(CLASSES, VOXELS, z, &t, g);
    CU_ASSERT_DOUBLE_EQUAL(mixed, balanced, 1e-12);
}

/* Without noise the Taylor form is log 2 + (1/2 - y) z + z^2/8, and near 0 it is the
 * logistic loss. */
static void test_taylor(void)
{
    const int32_t label = 1;
    float g[3], h[3];
    for (int step = -4; step <= 4; step++) {
        const float z[3] = {0.02f * (float)step, -0.05f, 0.03f};
        const float c[6] = {0.5f, 0.125f, -0.5f, 0.125f, 0.5f, 0.125f};
        struct dpf_loss_target labelled = {.labels = &label}, expanded = {.values = c};
        double a = (dpf_loss_find("logistic"))->example(3, 1, z, &labelled, g);
        double b = (dpf_loss_find("taylor2"))->example(3, 1, z, &expanded, h);
        CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-6);
        for (int i = 0; i < 3; i++)
            CU_ASSERT_DOUBLE_EQUAL((double)g[i], (double)h[i], 1e-4);
    }
}

const char dpf_suite[] = "loss";
const struct dpf_test dpf_tests[] = {
    {"gradients by finite differences", test_gradients},
    {"known values, and scores far from 0", test_values},
    {"soft targets, and cross-entropy with Dice, from their parts", test_parts},
    {"the Taylor form is the logistic loss near 0", test_taylor},
    {0},
};
