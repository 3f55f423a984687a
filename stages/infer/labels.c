#include "labels.h"

#include <string.h>

#include "base/banned.h"

struct dpf_shape dpf_labels_shape(const struct dpf_shape *scores)
{
    struct dpf_shape shape = {.rank = scores->rank - 1};
    memcpy(shape.dim, scores->dim + 1, (size_t)shape.rank * sizeof *shape.dim);
    return shape;
}

enum dpf_status dpf_scores_to_labels(const struct dpf_shape *scores, uint64_t rows,
                                     struct dpf_tensor *values, struct dpf_error *e)
{
    const struct dpf_shape one = dpf_labels_shape(scores);
    uint64_t classes = scores->dim[0], places = dpf_shape_elements(&one);
    struct dpf_shape all;
    struct dpf_tensor labels;
    enum dpf_status status = dpf_shape_prepend(&one, rows, &all)
                                 ? dpf_tensor_init(&labels, DPF_U8, &all, e)
                                 : dpf_fail_memory(e);
    if (status != DPF_OK)
        return status;
    const float *from = values->data;
    uint8_t *out = labels.data;
    for (uint64_t r = 0; r < rows; r++, from += classes * places)
        for (uint64_t i = 0; i < places; i++) {
            uint64_t best = 0;
            for (uint64_t l = 1; l < classes; l++)
                best = from[l * places + i] > from[best * places + i] ? l : best;
            *out++ = (uint8_t)best;
        }
    dpf_tensor_release(values);
    *values = labels;
    return DPF_OK;
}
