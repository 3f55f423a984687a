/* infer: compute a node of a model for each record. */
#include <stdlib.h>
#include <string.h>

#include "exchange/model_reader.h"
#include "labels.h"
#include "nn/initialise.h"
#include "nn/model_cut.h"

#include "base/banned.h"

static struct inference {
    /* what the user asked for, then what it takes */
    const char *model, *arch, *weights, *init, *x, *as, *node, *from, *backend;
    int64_t threads, seed;
    bool labels;
    const struct dpf_kernels *kernels; /* of the backend */
    struct dpf_model_reader reader;
    int target; /* index of the field that holds the values */
} state = {.init = "he-normal", .x = "x", .backend = "cpu"};

static const struct dpf_option options[] = {
    DPF_OPT_ENDPOINT("model", &state.model, "STREAM|NAME",
                     "the model, as train writes it; an architecture's name means "
                     "--arch NAME",
                     0),
    DPF_OPT_STRING(
        "arch", &state.arch, "NAME|FILE",
        "a network instead of a model, with --weights or with public random weights"),
    DPF_OPT_FILE("weights", &state.weights, "FILE",
                 "the weights of --arch (safetensors)"),
    DPF_OPT_CHOICE("init", &state.init, dpf_initialisers, "NAME",
                   "how random weights are drawn (he-normal)"),
    DPF_OPT_INT("seed", &state.seed, "N", 0, 9e15,
                "seed of random weights; the same seed gives the same weights (0)"),
    DPF_OPT_STRING("node", &state.node, "NAME",
                   "the node to compute (the network's output)"),
    DPF_OPT_STRING("from", &state.from, "NAME",
                   "start at this node: the field holds its values (a decoder behind its "
                   "code)"),
    DPF_OPT_FLAG("labels", &state.labels,
                 "write the class of the highest score, at each position, instead of "
                 "scores"),
    DPF_OPT_FLAG("window", &state.reader.windowed,
                 "records may be larger than the network's input: compute it on "
                 "overlapping windows and average their values"),
    DPF_OPT_STRING("field", &state.x, "NAME", "the field that the network reads (x)"),
    DPF_OPT_STRING("as", &state.as, "NAME",
                   "the field to write the values to (the one that was read)"),
    DPF_OPT_INT_IMMATERIAL("threads", &state.threads, "N", 1, 1024,
                           "number of threads (one for each processor)"),
    DPF_OPT_STRING("backend", &state.backend, "NAME",
                   "where to compute: cpu, ref (plain C), or a plug-in (cpu)"),
    DPF_OPT_END,
};

/* --model cnm-mnist means --arch cnm-mnist, in the provenance, too. */
static void use_model_as_arch(struct inference *v, struct dpf_stage *s)
{
    const struct dpf_option *arch = options;
    while (strcmp(arch->name, "arch") != 0)
        arch++;
    for (size_t i = 0; i < s->parsed.given_count; i++)
        if (strcmp(s->parsed.given[i].option->name, "model") == 0)
            s->parsed.given[i].option = arch;
    v->arch = v->model;
    v->model = NULL;
}

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct inference *v = s->state;
    if (!v->arch && v->model && dpf_architecture(v->model))
        use_model_as_arch(v, s);
    if (!v->arch == !v->model)
        return dpf_fail(e, DPF_USAGE, "give one of --arch and --model");
    if (!v->arch && (v->weights || dpf_option_given(&s->parsed, "init") ||
                     dpf_option_given(&s->parsed, "seed")))
        return dpf_fail(e, DPF_USAGE,
                        "'--weights', '--init' and '--seed' go with "
                        "'--arch'");
    if (v->weights &&
        (dpf_option_given(&s->parsed, "init") || dpf_option_given(&s->parsed, "seed")))
        return dpf_fail(e, DPF_USAGE,
                        "'--init' and '--seed' draw weights, '--weights' "
                        "gives them");
    enum dpf_status status = dpf_backend_find(v->backend, &v->kernels, e);
    return status == DPF_OK && v->arch
               ? dpf_model_from_option(&v->reader.source.model, v->arch, e)
               : status;
}

static enum dpf_status on_fingerprint(struct dpf_stage *s, struct dpf_fingerprint *f,
                                      struct dpf_error *e)
{
    const struct inference *v = s->state;
    const char *text = v->reader.source.model.text;
    (void)e;
    if (text) /* --arch may be a file */
        dpf_fingerprint_add_string(f, text);
    return DPF_OK;
}

/* The field of the values: a new one, or in the place of what was read. */
static enum dpf_status declare(struct inference *v, struct dpf_stage *s,
                               struct dpf_error *e)
{
    const struct dpf_shape *values = dpf_model_reader_shape(&v->reader);
    const char *name = v->as ? v->as : v->x;
    struct dpf_field *f = dpf_header_field(&s->out, name);
    struct dpf_shape shape = v->labels ? dpf_labels_shape(values) : *values;
    enum dpf_dtype dtype = v->labels ? DPF_U8 : DPF_F32;
    if (f && strcmp(name, v->x) != 0)
        return dpf_fail(e, DPF_USAGE, "the stream has a field '%s' already", name);
    if (v->labels && (values->dim[0] < 2 || values->dim[0] > 256))
        return dpf_fail(e, DPF_USAGE, "'--labels' needs 2 to 256 classes, not %llu",
                        (unsigned long long)values->dim[0]);
    if (!f)
        f = dpf_header_add_field(&s->out, name, dtype, &shape);
    if (!f)
        return dpf_fail(e, DPF_USAGE, "'%s' cannot be added as a field", name);
    dpf_field_redefine(f, dtype, &shape);
    f->classes = v->labels ? values->dim[0] : 0;
    v->target = (int)(f - s->out.fields);
    return DPF_OK;
}

static enum dpf_status start_at(struct dpf_model_stream *m, const char *from,
                                struct dpf_error *e)
{
    struct dpf_model rest;
    float *parameters;
    enum dpf_status status =
        dpf_model_cut(&m->model, m->parameters, from, &rest, &parameters, e);
    if (status != DPF_OK)
        return status;
    dpf_model_release(&m->model);
    free(m->parameters);
    m->model = rest;
    m->parameters = parameters;
    return DPF_OK;
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct inference *v = s->state;
    struct dpf_model_stream *source = &v->reader.source;
    enum dpf_status status =
        v->model ? dpf_model_stream_read(source, v->model, NULL, NULL, e)
                 : dpf_model_stream_first_weights(source, s, v->weights, v->init,
                                                  (uint64_t)v->seed, e);
    if (status == DPF_OK && v->from)
        status = start_at(source, v->from, e);
    if (status == DPF_OK)
        status = dpf_model_reader_find(&v->reader, v->node, source->model.output, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_node *found = &source->model.nodes[v->reader.node];
    if (found->bits)
        return dpf_fail(e, DPF_USAGE, "node '%s' is the packed input itself",
                        found->name);
    status = dpf_model_reader_open(
        &v->reader, s, (struct dpf_dataset_need){.x = v->x},
        (struct dpf_engine_setup){.kernels = v->kernels, .threads = (int)v->threads}, e);
    if (status == DPF_OK)
        status = declare(v, s, e);
    if (status == DPF_OK && v->model)
        dpf_stage_adopt_model(s, &source->header);
    return status;
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct inference *v = s->state;
    const struct dpf_shape *shape = dpf_model_reader_shape(&v->reader);
    struct dpf_tensor values;
    struct dpf_lot lot;
    enum dpf_status status =
        dpf_model_reader_take(&v->reader, s, b, shape, &lot, &values, e);
    if (status != DPF_OK)
        return status;
    status = dpf_model_reader_compute(&v->reader, &lot, values.data, e);
    if (status == DPF_OK && v->labels)
        status = dpf_scores_to_labels(shape, b->rows, &values, e);
    if (v->target < b->count)
        dpf_tensor_release(&b->tensor[v->target]);
    else
        b->count++;
    b->tensor[v->target] = values;
    return status;
}

static void on_release(struct dpf_stage *s)
{
    struct inference *v = s->state;
    dpf_model_reader_release(&v->reader);
}

static const struct dpf_stage_info info = {
    .name = "infer",
    .summary = "compute a node of a model for each record",
    .reads = "x: numbers or packed bits",
    .writes = "the same fields, the node's values in x (or in --as)",
    .privacy = "none spent; what the model cost is added to the ledger",
    .example = "dpflow load digits:test | dpflow normalize --unit 0:16 | dpflow infer "
               "--arch tiny --node p1 --seed 1 | dpflow inspect",
    .detail = "With --window, windows of the size of the network's input stand half a "
              "window apart,\n"
              "the last one at the border; a record smaller than a window is padded with "
              "zeros. Where\n"
              "they overlap, the weight of a value falls towards the border of its "
              "window.",
    .add_tables = dpf_architecture_table,
    .kind = DPF_FILTER,
    .options = options,
    .state = &state,
    .on_options = on_options,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_release = on_release,
    .on_fingerprint = on_fingerprint,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
