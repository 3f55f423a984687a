#include "asking.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "codes.h"
#include "exchange/answer_stream.h"

#include "base/banned.h"

enum dpf_status dpf_asking_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_asking *v = s->state;
    if (v->encoder_stream && v->scores_as_code)
        return dpf_fail(e, DPF_USAGE, "give one of '--encoder' and '--scores'");
    if (v->node && !v->encoder_stream)
        return dpf_fail(e, DPF_USAGE, "option '--node' needs '--encoder'");
    if (v->norm > 0 && !dpf_asking_gives_codes(v))
        return dpf_fail(e, DPF_USAGE, "option '--norm' needs '--encoder' or '--scores'");
    return dpf_backend_find(v->backend, &v->kernels, e);
}

static enum dpf_status make_engine(struct dpf_asking *v, struct dpf_stage *s,
                                   size_t number, struct dpf_error *e)
{
    const struct dpf_model *m = &v->teachers.list[number].model;
    size_t i = 0;
    while (i < v->engine_count && strcmp(v->engines[i].model->text, m->text) != 0)
        i++;
    v->engine_of[number] = i;
    if (i < v->engine_count)
        return DPF_OK;
    const struct dpf_engine_setup setup = {.model = m,
                                           .kernels = v->kernels,
                                           .threads = (int)v->threads,
                                           .every_value = true};
    v->engines[i].model = m;
    enum dpf_status status = dpf_engine_init(&v->engines[i].engine, &setup, e);
    v->engine_count += status == DPF_OK;
    const struct dpf_field *x = v->window ? dpf_header_field(&s->in, v->field) : NULL;
    if (status == DPF_OK && x)
        status = dpf_windows_init(&v->engines[i].windows, m, m->output, x, e);
    if (status != DPF_OK)
        dpf_error_prefix(e, status, "teacher '%s'", v->teachers.list[number].name);
    return status;
}

/* The network that inputs have to fit: a teacher's own, or that of windows over them. */
static const struct dpf_model *read_by(const struct dpf_asking *v, size_t number)
{
    const struct dpf_windows *w = &v->engines[v->engine_of[number]].windows;
    return w->whole.count ? &w->whole : &v->teachers.list[number].model;
}

/* What teachers say must be comparable. */
static enum dpf_status check_teacher(struct dpf_asking *v, struct dpf_stage *s,
                                     size_t number, struct dpf_error *e)
{
    const struct dpf_teacher *t = &v->teachers.list[number];
    const struct dpf_model *m = read_by(v, number);
    const struct dpf_shape *out = &m->nodes[m->output].shape;
    const struct dpf_dataset_need need = {.model = m, .x = v->field};
    struct dpf_batch_lot trial;
    uint64_t places = dpf_shape_elements(out) / out->dim[0];
    if ((out->rank != 1 && !dpf_asking_gives_codes(v)) || out->dim[0] < 2)
        return dpf_fail(e, DPF_USAGE,
                        out->rank != 1 ? "teacher '%s' gives scores of positions: use "
                                         "'--encoder' or '--scores'"
                                       : "teacher '%s' gives no scores of classes",
                        t->name);
    if (number > 0 && places != v->places)
        return dpf_fail(
            e, DPF_USAGE,
            "teacher '%s' gives scores of %llu positions, and teacher '%s' of "
            "%llu",
            t->name, (unsigned long long)places, v->teachers.list[0].name,
            (unsigned long long)v->places);
    v->places = places;
    if (number > 0 && out->dim[0] != v->classes)
        return dpf_fail(e, DPF_USAGE,
                        "teacher '%s' knows %llu classes, and teacher '%s' %llu", t->name,
                        (unsigned long long)out->dim[0], v->teachers.list[0].name,
                        (unsigned long long)v->classes);
    v->classes = out->dim[0];
    enum dpf_status status = dpf_batch_lot_init(&trial, &s->in, &need, e);
    if (status == DPF_OK)
        dpf_batch_lot_release(&trial);
    else
        dpf_error_prefix(e, status, "teacher '%s'", t->name);
    return status;
}

enum dpf_status dpf_asking_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_asking *v = s->state;
    enum dpf_status status = DPF_OK;
    if (s->in.is_private)
        return dpf_fail(e, DPF_PRIVACY,
                        "the inputs are private: teachers answer public inputs, or such "
                        "that came out of a mechanism");
    for (size_t i = 0; status == DPF_OK && i < v->models.count; i++)
        status = dpf_teachers_read(&v->teachers, v->models.items[i], e);
    if (status != DPF_OK)
        return status;
    v->engines = dpf_calloc(v->teachers.count, sizeof *v->engines);
    v->engine_of = dpf_calloc(v->teachers.count, sizeof *v->engine_of);
    if (!v->engines || !v->engine_of)
        return dpf_fail_memory(e);
    for (size_t i = 0; status == DPF_OK && i < v->teachers.count; i++) {
        status = make_engine(v, s, i, e);
        if (status == DPF_OK)
            status = check_teacher(v, s, i, e);
    }
    if (status != DPF_OK)
        return status;
    const struct dpf_dataset_need need = {.model = read_by(v, 0), .x = v->field};
    status = dpf_batch_lot_init(&v->lots, &s->in, &need, e);
    if (status != DPF_OK)
        return status;
    v->at = (int)(dpf_header_field(&s->in, v->field) - s->in.fields);
    bool codes = dpf_asking_gives_codes(v);
    if (v->encoder_stream)
        status = dpf_encoder_open(v, s, e);
    if (status == DPF_OK)
        status = dpf_answers_declare(&s->out, v->teachers.count, codes ? 0 : v->classes,
                                     dpf_code_values(v), e);
    s->drops_others = true;
    return status == DPF_OK ? dpf_teachers_describe(&v->teachers, s, e) : status;
}

static uint64_t best_class(const float *scores, uint64_t classes)
{
    uint64_t best = 0;
    for (uint64_t i = 1; i < classes; i++)
        best = scores[i] > scores[best] ? i : best;
    return best;
}

/* One teacher's answers to the queries of a batch, into `out`. */
static enum dpf_status ask(struct dpf_asking *v, size_t number, const struct dpf_lot *lot,
                           struct dpf_batch *out, struct dpf_error *e)
{
    const struct dpf_teacher *t = &v->teachers.list[number];
    struct dpf_shared_engine *shared = &v->engines[v->engine_of[number]];
    struct dpf_engine *engine = &shared->engine;
    const struct dpf_lot_values want = {.node = t->model.output, .values = v->scores};
    dpf_engine_put(engine, t->parameters);
    enum dpf_status status =
        v->window ? dpf_windows_compute(&shared->windows, engine, lot, v->scores, e)
                  : dpf_engine_values(engine, lot, &want, e);
    if (status != DPF_OK)
        return status;
    int64_t *ids = out->tensor[DPF_ANSWER_TEACHER].data;
    for (uint64_t i = 0; i < out->rows; i++)
        ids[i] = (int64_t)t->id;
    if (dpf_asking_gives_codes(v))
        return dpf_code_make(v, out->rows, out->tensor[DPF_ANSWER_VALUE].data, e);
    for (uint64_t i = 0; i < out->rows; i++)
        dpf_tensor_put_class(&out->tensor[DPF_ANSWER_VALUE], i,
                             best_class(v->scores + i * v->classes, v->classes));
    return DPF_OK;
}

enum dpf_status dpf_asking_batch(struct dpf_stage *s, struct dpf_batch *b,
                                 struct dpf_error *e)
{
    struct dpf_asking *v = s->state;
    struct dpf_batch out = {0};
    struct dpf_lot lot;
    uint64_t rows = b->rows;
    if (rows == 0)
        return DPF_OK;
    enum dpf_status status = dpf_batch_init(&out, &s->out, rows, e);
    if (status == DPF_OK && !dpf_grow(&v->scores, &v->scores_capacity,
                                      rows * v->classes * v->places, sizeof *v->scores))
        status = dpf_fail_memory(e);
    if (status == DPF_OK) {
        int64_t *query = out.tensor[DPF_ANSWER_QUERY].data;
        size_t bytes = dpf_tensor_row_bytes(&b->tensor[v->at]);
        for (uint64_t i = 0; i < rows; i++) {
            query[2 * i] = (int64_t)(v->asked + i);
            query[2 * i + 1] = dpf_query_digest(
                (const unsigned char *)b->tensor[v->at].data + i * bytes, bytes);
        }
        status = dpf_batch_lot_take(&v->lots, &s->in, b, &lot, e);
    }
    for (size_t i = 0; status == DPF_OK && i < v->teachers.count; i++) {
        status = ask(v, i, &lot, &out, e);
        if (status == DPF_OK)
            status = dpf_stage_emit(s, &out, e);
    }
    v->asked += rows;
    dpf_batch_release(&out);
    dpf_batch_truncate(b, 0); /* the queries themselves go nowhere */
    return status;
}

void dpf_asking_release(struct dpf_stage *s)
{
    struct dpf_asking *v = s->state;
    for (size_t i = 0; i < v->engine_count; i++) {
        dpf_windows_release(&v->engines[i].windows);
        dpf_engine_release(&v->engines[i].engine);
    }
    free(v->engines);
    free(v->engine_of);
    free(v->scores);
    dpf_encoder_close(v);
    dpf_batch_lot_release(&v->lots);
    dpf_teachers_release(&v->teachers);
}
