/* Networks on records larger than their input: a volume (or picture) is covered by
 * windows of the size of the network's input, the network is computed on each, and where
 * windows overlap their values are averaged.
 *
 * - Windows stand half a window apart along each dimension; the last one is moved to the
 *   border. A dimension that is smaller than the window is padded with zeros, as many on
 *   both sides, and what lies there is dropped.
 * - The weight of a value falls towards the border of its window, where a network sees
 *   least: it is the product, over the dimensions, of the distance to the nearer border,
 *   in positions, counted from 1 (a triangle). Weights are divided by their sum, which is
 *   a product too, since windows form a grid.
 * - What is averaged are the node's values themselves; of an output these are scores, not
 *   their softmax. So any node with the positions of the input can be computed, the
 * result still is scores, for every loss and for labels, and where only one window lies
 * the values are the network's own, bit for bit: with windows as large as the volumes
 *   nothing changes. (nnU-Net averages scores, too.)
 *
 * Each record is computed apart; memory is that of one record and of some windows. */
#ifndef DPF_NN_WINDOWS_H
#define DPF_NN_WINDOWS_H

#include "nn/engine.h"

enum { DPF_WINDOW_AXES = 3 };

/* Windows along one dimension. */
struct dpf_window_axis {
    uint64_t size, window; /* positions of the record, and of the network's input */
    uint64_t count, step;
    double
        *shares; /* [count, window]: of each position of a window, sums over windows 1 */
};

struct dpf_windows {
    struct dpf_window_axis axes[DPF_WINDOW_AXES]; /* D, H, W */
    size_t node;
    uint64_t channels[2];    /* of the input, and of the node */
    struct dpf_model whole;  /* has the input and output of whole records; for
                              * nn/dataset.h,  never computed */
    struct dpf_shape values; /* the node's of a whole record, channels first */
    float *record;           /* the record in hand */
    float *cut, *computed;   /* windows, and what the network gives of them */
    uint32_t *rows;
    size_t cut_capacity, computed_capacity, rows_capacity;
};

/* Windows of the network's input over records of field `x`, for the values of `node`. A
 * network of vectors, a node that has not the positions of the input, or a field that is
 * not of as many dimensions are DPF_USAGE. Release after success only. */
enum dpf_status dpf_windows_init(struct dpf_windows *w, const struct dpf_model *m,
                                 size_t node, const struct dpf_field *x,
                                 struct dpf_error *e);
void dpf_windows_release(struct dpf_windows *w);
/* How many a record has. */
uint64_t dpf_windows_count(const struct dpf_windows *w);
/* Where window k starts; below 0 where it is padded. */
int64_t dpf_window_start(const struct dpf_window_axis *a, uint64_t k);
/* The node's values of the lot's records, into `values`: [count, w->values]. The lot's
 * data set was made for w->whole; the engine is of the network. */
enum dpf_status dpf_windows_compute(struct dpf_windows *w, struct dpf_engine *g,
                                    const struct dpf_lot *lot, float *values,
                                    struct dpf_error *e);

#endif
