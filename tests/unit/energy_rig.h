/* A network with an energy node, an engine and records for tests: random parameters, and
 * the gradients of a lot. */
#ifndef DPF_TESTS_ENERGY_RIG_H
#define DPF_TESTS_ENERGY_RIG_H

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "nn/engine.h"
#include "random/seeded.h"

struct rig {
    struct dpf_model model;
    struct dpf_engine engine;
    struct dpf_dataset data;
    struct dpf_energy energy;
    float *parameters, *sums;
    uint32_t *rows;
};

static inline void begin(struct rig *g, const char *text, const char *backend,
                         int64_t rows)
{
    struct dpf_seeded r;
    *g = (struct rig){.energy = {.steps = 1}};
    CU_ASSERT_FATAL(dpf_model_parse(&g->model, text, strlen(text), "net", NULL) ==
                    DPF_OK);
    struct dpf_engine_setup setup = {.model = &g->model, .threads = 2, .training = true};
    CU_ASSERT_FATAL(dpf_backend_find(backend, &setup.kernels, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_engine_init(&g->engine, &setup, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_energy_find(&g->model, NULL, &g->energy.node, NULL) == DPF_OK);
    g->data = (struct dpf_dataset){.dtype = DPF_F32,
                                   .record = dpf_shape_elements(&g->model.nodes[0].shape),
                                   .rows = (uint64_t)rows};
    g->data.record_bytes = g->data.record * sizeof(float);
    g->data.x = dpf_calloc((size_t)rows, g->data.record_bytes);
    g->parameters = dpf_calloc(g->model.span, sizeof *g->parameters);
    g->sums = dpf_calloc(g->model.span, sizeof *g->sums);
    g->rows = dpf_calloc((size_t)rows, sizeof *g->rows);
    for (uint32_t i = 0; i < rows; i++)
        g->rows[i] = i;
    dpf_seeded_init(&r, "test energy", 3, 0);
    for (size_t i = 0; i < g->model.span; i++)
        g->parameters[i] = (float)(0.8 * dpf_seeded_normal(&r));
    dpf_engine_put(&g->engine, g->parameters);
}

static inline void end(struct rig *g)
{
    dpf_energy_release(&g->energy);
    dpf_dataset_release(&g->data);
    dpf_engine_release(&g->engine);
    dpf_model_release(&g->model);
    free(g->parameters);
    free(g->sums);
    free(g->rows);
}

static inline float *record(struct rig *g, int64_t row)
{
    return (float *)(void *)g->data.x + (uint64_t)row * g->data.record;
}

/* The gradients of a lot of all rows, added up. */
static inline double gradients(struct rig *g, uint64_t step)
{
    struct dpf_lot_result result;
    struct dpf_lot lot = {.data = &g->data,
                          .rows = g->rows,
                          .count = (int64_t)g->data.rows,
                          .energy = &g->energy,
                          .seed = 11,
                          .step = step};
    CU_ASSERT_FATAL(dpf_engine_gradients(&g->engine, &lot, &result, NULL) == DPF_OK);
    memset(g->sums, 0, g->model.span * sizeof *g->sums);
    for (int w = 0; w < g->engine.threads; w++) {
        for (size_t i = 0; i < g->model.span; i++)
            g->sums[i] += g->engine.workers[w].net.gradients[i];
        dpf_network_zero_gradients(&g->engine.workers[w].net);
    }
    return result.loss;
}

/* Where the energy node's parameter k stands in `from`, a vector of all parameters. */
static inline const float *parameter(const struct rig *g, const float *from, int k)
{
    return from + g->model.nodes[g->energy.node].offset[k];
}

#endif
