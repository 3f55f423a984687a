#include "codes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "base/banned.h"

bool dpf_asking_gives_codes(const struct dpf_asking *v)
{
    return v->encoder_stream || v->scores_as_code;
}

uint64_t dpf_code_values(const struct dpf_asking *v)
{
    return v->encoder_stream   ? v->encoder.values
           : v->scores_as_code ? v->classes * v->places
                               : 0;
}

/* The node that is asked for; else the one called `code`, else the output. */
static enum dpf_status find_node(struct dpf_encoder_net *n, const char *name,
                                 struct dpf_error *e)
{
    const struct dpf_model *m = &n->source.model;
    const struct dpf_node *found = dpf_model_find(m, name ? name : "code");
    if (!found && name)
        return dpf_fail(e, DPF_USAGE, "the encoder has no node '%s'", name);
    n->node = found ? (size_t)(found - m->nodes) : m->output;
    n->values = dpf_shape_elements(&m->nodes[n->node].shape);
    return DPF_OK;
}

enum dpf_status dpf_encoder_open(struct dpf_asking *v, struct dpf_stage *s,
                                 struct dpf_error *e)
{
    struct dpf_encoder_net *n = &v->encoder;
    enum dpf_status status =
        dpf_model_stream_read(&n->source, v->encoder_stream, NULL, NULL, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_model *m = &n->source.model;
    uint64_t reads = dpf_shape_elements(&m->nodes[0].shape);
    if (n->source.header.is_private || n->source.header.is_protected)
        return dpf_fail(e, DPF_PRIVACY,
                        "the encoder is not public: train it on public records");
    if (m->nodes[0].bits || reads != v->classes * v->places)
        return dpf_fail(
            e, DPF_USAGE, "the encoder reads %llu values, and teachers give %llu scores",
            (unsigned long long)reads, (unsigned long long)(v->classes * v->places));
    dpf_stage_adopt_provenance(s, &n->source.header.provenance); /* who made codes */
    status = find_node(n, v->node, e);
    const struct dpf_engine_setup setup = {.model = m,
                                           .kernels = v->kernels,
                                           .threads = (int)v->threads,
                                           .every_value = true};
    if (status == DPF_OK)
        status = dpf_engine_init(&n->engine, &setup, e);
    if (status == DPF_OK)
        dpf_engine_put(&n->engine, n->source.parameters);
    return status;
}

void dpf_encoder_close(struct dpf_asking *v)
{
    if (v->encoder.engine.model)
        dpf_engine_release(&v->encoder.engine);
    dpf_model_stream_release(&v->encoder.source);
    free(v->encoder.rows);
}

/* Scores of each position to probabilities, [classes, places] in place. */
static void to_probabilities(float *scores, uint64_t classes, uint64_t places)
{
    for (uint64_t i = 0; i < places; i++) {
        float top = scores[i], sum = 0;
        for (uint64_t l = 1; l < classes; l++)
            top = fmaxf(top, scores[l * places + i]);
        for (uint64_t l = 0; l < classes; l++)
            sum += scores[l * places + i] = expf(scores[l * places + i] - top);
        for (uint64_t l = 0; l < classes; l++)
            scores[l * places + i] /= sum;
    }
}

static enum dpf_status encode(struct dpf_asking *v, uint64_t rows, float *codes,
                              struct dpf_error *e)
{
    struct dpf_encoder_net *n = &v->encoder;
    uint64_t record = v->classes * v->places;
    if (!dpf_grow(&n->rows, &n->capacity, rows, sizeof *n->rows))
        return dpf_fail_memory(e);
    for (uint64_t i = 0; i < rows; i++)
        n->rows[i] = (uint32_t)i;
    const struct dpf_dataset data = {.dtype = DPF_F32,
                                     .record = record,
                                     .record_bytes = record * sizeof(float),
                                     .rows = rows,
                                     .x = (unsigned char *)v->scores};
    const struct dpf_lot lot = {.data = &data, .rows = n->rows, .count = (int64_t)rows};
    const struct dpf_lot_values want = {.node = n->node, .values = codes};
    return dpf_engine_values(&n->engine, &lot, &want, e);
}

/* As `aggregate` cuts it again, in integers: this is what leaves a teacher's machine. */
static void cut(float *code, uint64_t values, double norm)
{
    double square = 0;
    for (uint64_t i = 0; i < values; i++)
        square += (double)code[i] * (double)code[i];
    double factor = square > norm * norm ? norm / sqrt(square) : 1;
    for (uint64_t i = 0; factor < 1 && i < values; i++)
        code[i] = (float)((double)code[i] * factor);
}

enum dpf_status dpf_code_make(struct dpf_asking *v, uint64_t rows, float *codes,
                              struct dpf_error *e)
{
    uint64_t record = v->classes * v->places, values = dpf_code_values(v);
    enum dpf_status status = DPF_OK;
    for (uint64_t i = 0; i < rows; i++)
        to_probabilities(v->scores + i * record, v->classes, v->places);
    if (v->encoder_stream)
        status = encode(v, rows, codes, e);
    else
        memcpy(codes, v->scores, rows * record * sizeof *codes);
    for (uint64_t i = 0; status == DPF_OK && v->norm > 0 && i < rows; i++)
        cut(codes + i * values, values, v->norm);
    return status;
}
