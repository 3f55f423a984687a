#include "nn/geometry.h"

#include "base/banned.h"

int64_t dpf_nn_elements(const struct dpf_shape *s)
{
    return (int64_t)dpf_shape_elements(s);
}

void dpf_nn_space(const struct dpf_shape *s, int64_t out[DPF_SPACE])
{
    out[0] = s->rank == 4 ? (int64_t)s->dim[1] : 1;
    out[1] = s->rank >= 3 ? (int64_t)s->dim[s->rank - 2] : 1;
    out[2] = s->rank >= 3 ? (int64_t)s->dim[s->rank - 1] : 1;
}

int64_t dpf_nn_positions(const struct dpf_shape *s)
{
    int64_t size[DPF_SPACE];
    dpf_nn_space(s, size);
    return size[0] * size[1] * size[2];
}
