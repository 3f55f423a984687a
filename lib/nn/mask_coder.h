/* Principal components of segmentations, as an encoder and its decoder (PCA-PATE).
 *
 * A mask of P positions and C classes is the vector of C P zeros and ones that a softmax
 * would give if it were sure. With n masks, mean m and directions v_1, v_2, ... of
 * variances l_1 >= l_2 >= ..., the code of y has k values A (y - m) / R, the rows of A
 * being v_1 to v_k, and is decoded to m + R A^T code. There are far fewer masks than
 * positions, so the directions come from the n x n matrix of their inner products, which
 * for masks are numbers of positions with equal labels. */
#ifndef DPF_NN_MASK_CODER_H
#define DPF_NN_MASK_CODER_H

#include <stdbool.h>

#include "nn/model.h"
#include "tensor/tensor.h"

enum { DPF_MASK_CODER_MAX_RECORDS = 4096 };

/* Zero-initialise. */
struct dpf_mask_coder {
    uint64_t classes, places, records;
    unsigned char *labels; /* [records, places] */
    size_t capacity;
    double *variances; /* [records], largest first; after dpf_mask_coder_solve() */
    double *codes;     /* [records, records], of each mask, unscaled */
};

/* Masks of `places` labels among 2 to 256 classes, else DPF_USAGE. */
enum dpf_status dpf_mask_coder_init(struct dpf_mask_coder *c, uint64_t classes,
                                    uint64_t places, struct dpf_error *e);
void dpf_mask_coder_release(struct dpf_mask_coder *c);
/* Add masks. A label outside the classes is DPF_BAD_STREAM. */
enum dpf_status dpf_mask_coder_add(struct dpf_mask_coder *c,
                                   const struct dpf_tensor *masks, struct dpf_error *e);
/* Find the components. Fewer than two different masks are DPF_BAD_STREAM. */
enum dpf_status dpf_mask_coder_solve(struct dpf_mask_coder *c, struct dpf_error *e);
/* How many components have a variance. */
size_t dpf_mask_coder_rank(const struct dpf_mask_coder *c);
/* The largest norm of the masks' codes of k values. */
double dpf_mask_coder_radius(const struct dpf_mask_coder *c, size_t k);

/* Noise that codes will get before they are decoded. */
struct dpf_mask_noise {
    double deviation; /* of each value, as a multiple of the radius; 0: none */
    double radius;    /* R; 0: the largest norm of the masks' codes */
    bool shrink;      /* decode by the mean of y given the noisy code, as if codes were
                       * Gaussian: value j is multiplied by l_j / (l_j + noise^2) */
};
/* L_PCA, the mean squared distance of a mask from what is decoded of its noisy code of k
 * values: what k components leave out and k noise^2; with `shrink` the noise's part of
 * value j is l_j noise^2 / (l_j + noise^2). */
double dpf_mask_coder_distance(const struct dpf_mask_coder *c, size_t k,
                               const struct dpf_mask_noise *noise);
/* The number of components from 1 to `most` with the least distance. With a fixed radius
 * and without `shrink` this is the largest k whose l_k is above noise^2 (Eq. 7 of Fay et
 * al. 2020, whose printed inequality is turned round), or 1. */
size_t dpf_mask_coder_choose(const struct dpf_mask_coder *c, size_t most,
                             const struct dpf_mask_noise *noise);
/* The network: `shape` is that of a mask. Its node `code` has the code; its weights go to
 * *take_parameters. */
enum dpf_status dpf_mask_coder_write(const struct dpf_mask_coder *c,
                                     const struct dpf_shape *shape, size_t k,
                                     const struct dpf_mask_noise *noise,
                                     struct dpf_model *m, float **take_parameters,
                                     struct dpf_error *e);

#endif
