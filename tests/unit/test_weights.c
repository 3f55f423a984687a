/* Weights by name: out and back for every layer, in the names and shapes of PyTorch's;
 * model frames, and frames that lie. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "nn/geometry.h"
#include "nn/weights.h"
#include "stream_fixture.h"

#include "base/banned.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- models whose parameters are all different ---- */

struct sample {
    struct dpf_model model;
    float *parameters;
};

static void parse(struct dpf_model *m, const char *text)
{
    CU_ASSERT_FATAL(dpf_model_parse(m, text, strlen(text), "net", NULL) == DPF_OK);
}

/* Parameter number j of all is j + 1; gaps are 0. */
static struct sample begin(const char *text)
{
    struct sample s;
    float next = 1;
    parse(&s.model, text);
    s.parameters = dpf_calloc(s.model.span + 1, sizeof *s.parameters);
    CU_ASSERT_FATAL(s.parameters != NULL);
    for (size_t i = 0; i < s.model.count; i++)
        for (int k = 0; k < s.model.nodes[i].parameter_count; k++)
            for (int64_t j = 0; j < dpf_nn_elements(&s.model.nodes[i].parameters[k]); j++)
                s.parameters[s.model.nodes[i].offset[k] + (size_t)j] = next++;
    return s;
}

static void end(struct sample *s)
{
    free(s->parameters);
    dpf_model_release(&s->model);
}

static struct dpf_safetensors export_of(const struct sample *s)
{
    struct dpf_safetensors out = {0};
    CU_ASSERT_FATAL(dpf_weights_export(&s->model, s->parameters, &out, NULL) == DPF_OK);
    return out;
}

/* Import into memory full of rubbish: the same vector, gaps and all? */
static bool comes_back(const struct sample *s, const struct dpf_safetensors *weights)
{
    size_t bytes = s->model.span * sizeof(float);
    float *back = malloc(bytes + 1);
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(back != NULL);
    memset(back, 0x55, bytes);
    bool same = dpf_weights_import(&s->model, weights, "file", back, &e) == DPF_OK &&
                memcmp(back, s->parameters, bytes) == 0;
    free(back);
    return same;
}

struct due {
    const char *name, *shape;
};

static void check_layers(const char *text, const struct due *due, size_t count)
{
    struct sample s = begin(text);
    struct dpf_safetensors weights = export_of(&s);
    CU_ASSERT(weights.count == count);
    for (size_t i = 0; i < count && i < weights.count; i++) {
        const struct dpf_named_tensor *t = &weights.tensors[i];
        char shape[96];
        dpf_shape_format(&t->shape, shape, sizeof shape);
        bool good = strcmp(t->name, due[i].name) == 0 && strcmp(shape, due[i].shape) == 0;
        if (!good)
            printf("    %s %s, not %s %s\n", t->name, shape, due[i].name, due[i].shape);
        CU_ASSERT(good && t->count == dpf_shape_elements(&t->shape));
    }
    CU_ASSERT(comes_back(&s, &weights));
    dpf_safetensors_release(&weights);
    end(&s);
}

/* ---- layers ---- */

static void test_pictures(void)
{
    static const struct due due[] = {{"c.weight", "4x2x3x5"}, {"c.bias", "4"},
                                     {"n.weight", "4"},       {"n.bias", "4"},
                                     {"t.weight", "4x6x2x2"}, {"t.bias", "6"},
                                     {"k.weight", "3x6x1x1"}, {"d.weight", "7x300"},
                                     {"d.bias", "7"},         {"y.weight", "5x7"}};
    check_layers("input x 2x5x7\n"
                 "c = conv x out=4 kernel=3x5 pad=1x1\n"
                 "n = group-norm c groups=2\n"
                 "r = relu n\n"
                 "t = conv-transpose r out=6 kernel=2 stride=2\n"
                 "k = conv t out=3 kernel=1 bias=0\n"
                 "f = flatten k\n"
                 "d = dense f out=7\n"
                 "y = dense d out=5 bias=0\n"
                 "output y\n",
                 due, COUNT(due));
}

static void test_volumes(void)
{
    static const struct due due[] = {{"c.weight", "4x2x3x1x2"}, {"c.bias", "4"},
                                     {"t.weight", "4x3x2x2x2"}, {"t.bias", "3"},
                                     {"g.weight", "3"},         {"g.bias", "3"}};
    check_layers("input x 2x4x5x6\n"
                 "c = conv x out=4 kernel=3x1x2\n"
                 "t = conv-transpose c out=3 kernel=2 stride=2\n"
                 "g = group-norm t groups=3\n"
                 "output g\n",
                 due, COUNT(due));
}

static const char energy[] = "input x 31\n"
                             "v = slice x from=0 count=24\n"
                             "w = reshape v shape=2x3x4\n"
                             "u = slice x from=24 count=7\n"
                             "c = conv w u out=5 kernel=2x3 visible=1\n"
                             "f = flatten c\n"
                             "d = dense f u out=3 visible=1\n"
                             "y = dense d out=2 visible=1\n"
                             "output y\n";

static void test_energy_models(void)
{
    static const struct due due[] = {{"c.weight", "5x2x2x3"},
                                     {"c.bias", "5"},
                                     {"c.visible", "2"},
                                     {"c.condition", "5x7"},
                                     {"c.visible_condition", "2x7"},
                                     {"d.weight", "3x20"},
                                     {"d.bias", "3"},
                                     {"d.visible", "20"},
                                     {"d.condition", "3x7"},
                                     {"d.visible_condition", "20x7"},
                                     {"y.weight", "2x3"},
                                     {"y.bias", "2"},
                                     {"y.visible", "3"}};
    check_layers(energy, due, COUNT(due));
}

static void test_depth_of_one(void)
{
    /* a volume whose kernel has no depth keeps the dimension */
    static const struct due due[] = {{"c.weight", "4x2x1x3x3"}};
    check_layers("input x 2x4x5x6\nc = conv x out=4 kernel=1x3x3 bias=0\noutput c\n", due,
                 COUNT(due));
}

static void test_nothing(void)
{
    struct sample s = begin("input x 3\ny = softmax x\noutput y\n");
    struct dpf_safetensors weights = export_of(&s);
    CU_ASSERT(weights.count == 0 && comes_back(&s, &weights));
    dpf_safetensors_release(&weights);
    end(&s);
}

/* Over packed bits, a layer's matrix stands [in, out] inside: PyTorch's is [out, in]. */
static void check_bits(const char *text, uint64_t in, uint64_t out)
{
    struct sample s = begin(text);
    struct dpf_safetensors weights = export_of(&s);
    const struct dpf_named_tensor *w = dpf_safetensors_find(&weights, "y.weight");
    const struct dpf_named_tensor *b = dpf_safetensors_find(&weights, "y.bias");
    int wrong = 0;
    CU_ASSERT_FATAL(w && b && weights.count == 2);
    CU_ASSERT(w->shape.rank == 2 && w->shape.dim[0] == out && w->shape.dim[1] == in);
    for (uint64_t o = 0; o < out; o++) {
        for (uint64_t i = 0; i < in; i++)
            wrong += w->values[o * in + i] != (float)(i * out + o + 1);
        wrong += b->values[o] != (float)(in * out + o + 1);
    }
    CU_ASSERT(wrong == 0);
    CU_ASSERT(comes_back(&s, &weights));
    dpf_safetensors_release(&weights);
    end(&s);
}

static void test_bits(void)
{
    check_bits("input x 19 bits\ny = dense x out=4\noutput y\n", 19, 4);
    check_bits("input x 3 bits\ny = dense x out=5\noutput y\n", 3, 5);
    check_bits("input x 6 bits\ny = dense x out=1\noutput y\n", 6, 1);
}

static void test_square_bits(void)
{
    check_bits("input x 16 bits\ny = dense x out=16\noutput y\n", 16, 16);
}

/* Layers behind the first are not turned, and numbers are as they stand. */
static void test_not_turned(void)
{
    static const struct due due[] = {
        {"a.weight", "4x10"}, {"a.bias", "4"}, {"y.weight", "3x4"}, {"y.bias", "3"}};
    static const char text[] = "input x 10 bits\na = dense x out=4\ny = dense a out=3\n"
                               "output y\n";
    check_layers(text, due, COUNT(due));
    struct sample s = begin(text);
    struct dpf_safetensors weights = export_of(&s);
    const struct dpf_named_tensor *y = dpf_safetensors_find(&weights, "y.weight");
    for (int i = 0; y && i < 12; i++)
        CU_ASSERT(y->values[i] == (float)(44 + i + 1));
    dpf_safetensors_release(&weights);
    end(&s);
}

/* ---- lists that do not fit ---- */

static const char small[] = "input x 1x4x4\n"
                            "c = conv x out=2 kernel=3\n"
                            "f = flatten c\n"
                            "y = dense f out=3\n"
                            "output y\n";

/* Import of a changed list: DPF_BAD_STREAM with this in the message. */
static bool import_refused(const struct sample *s, const struct dpf_safetensors *list,
                           const char *message)
{
    struct dpf_error e = {0};
    float *to = dpf_calloc(s->model.span + 1, sizeof *to);
    CU_ASSERT_FATAL(to != NULL);
    enum dpf_status status = dpf_weights_import(&s->model, list, "some.file", to, &e);
    bool good = refused(status, DPF_BAD_STREAM, &e, message) &&
                strstr(e.message, "'some.file'") != NULL;
    free(to);
    return good;
}

static void test_missing(void)
{
    struct sample s = begin(small);
    for (size_t i = 0; i < 4; i++) {
        struct dpf_safetensors weights = export_of(&s);
        char message[DPF_TENSOR_NAME + 32];
        CU_ASSERT_FATAL(weights.count == 4);
        snprintf(message, sizeof message, "has no tensor '%s'", weights.tensors[i].name);
        struct dpf_named_tensor gone = weights.tensors[i];
        weights.tensors[i] = weights.tensors[3];
        weights.count--;
        CU_ASSERT(import_refused(&s, &weights, message));
        free(gone.values);
        dpf_safetensors_release(&weights);
    }
    end(&s);
}

static void test_additional(void)
{
    static const char *const names[] = {"z.weight", "c.weights",   "c",       "f.weight",
                                        "x.bias",   "c.bias.bias", "C.weight"};
    const struct dpf_shape one = {.rank = 1, .dim = {1}};
    const float zero = 0;
    struct sample s = begin(small);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct dpf_safetensors weights = export_of(&s);
        char message[64];
        snprintf(message, sizeof message, "the network has no parameter '%s'", names[i]);
        CU_ASSERT(dpf_safetensors_add(&weights, names[i], &one, &zero, NULL) == DPF_OK);
        CU_ASSERT(import_refused(&s, &weights, message));
        dpf_safetensors_release(&weights);
    }
    end(&s);
}

static void test_wrong_shape(void)
{
    struct sample s = begin(small);
    struct dpf_safetensors weights = export_of(&s);
    struct dpf_named_tensor *c = dpf_safetensors_find(&weights, "c.weight");
    struct dpf_named_tensor *y = dpf_safetensors_find(&weights, "y.weight");
    struct dpf_named_tensor *b = dpf_safetensors_find(&weights, "y.bias");
    CU_ASSERT_FATAL(c && y && b);
    const struct dpf_shape own = c->shape, rows = y->shape;
    c->shape = (struct dpf_shape){.rank = 5, .dim = {2, 1, 1, 3, 3}};
    CU_ASSERT(import_refused(&s, &weights,
                             "tensor 'c.weight' is 2x1x1x3x3, the network needs "
                             "2x1x3x3"));
    c->shape = own;
    y->shape = (struct dpf_shape){.rank = 2, .dim = {8, 3}}; /* as many, turned round */
    CU_ASSERT(
        import_refused(&s, &weights, "tensor 'y.weight' is 8x3, the network needs 3x8"));
    y->shape = rows;
    b->shape = (struct dpf_shape){.rank = 2, .dim = {3, 1}};
    CU_ASSERT(
        import_refused(&s, &weights, "tensor 'y.bias' is 3x1, the network needs 3"));
    b->shape = (struct dpf_shape){.rank = 1, .dim = {3}};
    CU_ASSERT(comes_back(&s, &weights));
    dpf_safetensors_release(&weights);
    end(&s);
}

/* A list takes no name twice (frames that try: below). */
static void test_doubled(void)
{
    struct sample s = begin(small);
    struct dpf_safetensors weights = export_of(&s);
    struct dpf_error e = {0};
    const struct dpf_shape two = {.rank = 1, .dim = {2}};
    const float values[2] = {9, 9};
    CU_ASSERT(refused(dpf_safetensors_add(&weights, "c.bias", &two, values, &e),
                      DPF_USAGE, &e, "'c.bias'"));
    CU_ASSERT(weights.count == 4 && comes_back(&s, &weights));
    CU_ASSERT(dpf_weights_export(&s.model, s.parameters, &weights, &e) == DPF_USAGE);
    CU_ASSERT(strstr(e.message, "'c.weight'") != NULL); /* the list was not empty */
    dpf_safetensors_release(&weights);
    end(&s);
}

/* ---- frames ---- */

/* A frame read back, from memory that is aligned or not. */
struct reading {
    unsigned char *memory;
    struct dpf_decoder decoder;
};

static const msgpack_object *read_frame(struct reading *r, const struct maker *m,
                                        size_t shift)
{
    struct dpf_error e = {0};
    *r = (struct reading){.memory = dpf_alloc_aligned(m->out.size + shift)};
    CU_ASSERT_FATAL(r->memory != NULL);
    memcpy(r->memory + shift, m->out.data, m->out.size);
    struct dpf_frame frame = {.data = r->memory + shift, .size = m->out.size};
    CU_ASSERT_FATAL(dpf_decoder_read(&r->decoder, &frame, &e) == DPF_OK);
    return &r->decoder.root;
}

static void end_reading(struct reading *r)
{
    dpf_decoder_release(&r->decoder);
    free(r->memory);
}

static void check_frame(const char *text, size_t shift)
{
    struct sample s = begin(text);
    struct dpf_safetensors weights = export_of(&s);
    struct maker m = {0};
    struct reading r;
    struct dpf_model model;
    struct dpf_error e = {0};
    float *parameters;
    uint64_t more;
    dpf_weights_encode(&m.enc, &s.model, &weights, 1);
    dpf_encode_key(&m.enc, "more");
    dpf_encode_uint(&m.enc, 42);
    maker_frame(&m);
    dpf_safetensors_release(&weights); /* after it was sent, nothing is borrowed */
    const msgpack_object *frame = read_frame(&r, &m, shift);
    CU_ASSERT(dpf_object_is_string(dpf_object_get(frame, "type"), "model"));
    CU_ASSERT(dpf_object_is_string(dpf_object_get(frame, "text"), text));
    CU_ASSERT(dpf_object_uint(dpf_object_get(frame, "more"), &more) && more == 42);
    CU_ASSERT_FATAL(dpf_weights_decode(frame, &model, &parameters, &e) == DPF_OK);
    end_reading(&r); /* nor from the frame */
    CU_ASSERT(strcmp(model.text, text) == 0 && model.count == s.model.count);
    CU_ASSERT(model.span == s.model.span && model.output == s.model.output);
    CU_ASSERT(memcmp(parameters, s.parameters, s.model.span * sizeof(float)) == 0);
    free(parameters);
    dpf_model_release(&model);
    maker_release(&m);
    end(&s);
}

static void test_frames(void)
{
    static const char bits[] = "input x 19 bits\na = dense x out=4\n# a comment\n"
                               "y = dense a out=2\noutput y\n",
                      nothing[] = "input x 3\ny = relu x\noutput y\n";
    for (size_t shift = 0; shift < 4; shift++) {
        check_frame(small, shift);
        check_frame(bits, shift);
        check_frame(energy, shift);
        check_frame(nothing, shift);
    }
}

/* A tensor of a frame that is made by hand; its data is all zero. */
struct part {
    const char *name;
    enum dpf_dtype dtype;
    struct dpf_shape shape;
};

static void put_text(struct maker *m, const char *text)
{
    dpf_encoder_begin(&m->enc, "model", 2);
    dpf_encode_key(&m->enc, "text");
    dpf_encode_string(&m->enc, text);
}

static void put_parts(struct maker *m, const struct part *parts, size_t count)
{
    static const unsigned char zeros[4096];
    dpf_encode_key(&m->enc, "parameters");
    msgpack_pack_map(&m->enc.packer, count);
    for (size_t i = 0; i < count; i++) {
        struct dpf_tensor view;
        CU_ASSERT_FATAL(dpf_tensor_view(&view, parts[i].dtype, &parts[i].shape,
                                        (void *)zeros, NULL) == DPF_OK);
        CU_ASSERT_FATAL(view.bytes <= sizeof zeros);
        dpf_encode_key(&m->enc, parts[i].name);
        dpf_encode_tensor(&m->enc, &view);
    }
    maker_frame(m);
}

/* Decoding ends with DPF_BAD_STREAM and gives nothing. */
static bool frame_refused(const msgpack_object *frame, const char *message)
{
    struct dpf_model model;
    struct dpf_error e = {0};
    float unused, *parameters = &unused;
    enum dpf_status status = dpf_weights_decode(frame, &model, &parameters, &e);
    bool good = refused(status, DPF_BAD_STREAM, &e, message);
    if (status == DPF_OK) {
        free(parameters);
        dpf_model_release(&model);
    }
    return good && parameters == NULL;
}

static bool parts_refused(const char *text, const struct part *parts, size_t count,
                          const char *message)
{
    struct maker m = {0};
    struct reading r;
    put_text(&m, text);
    put_parts(&m, parts, count);
    bool good = frame_refused(read_frame(&r, &m, 0), message);
    end_reading(&r);
    maker_release(&m);
    return good;
}

static const char line[] = "input x 4\ny = dense x out=3\noutput y\n";

#define TENSOR(name, dtype, rank, ...)                                                   \
    {                                                                                    \
        name, dtype,                                                                     \
        {                                                                                \
            rank,                                                                        \
            {                                                                            \
                __VA_ARGS__                                                              \
            }                                                                            \
        }                                                                                \
    }

static void test_other_parts(void)
{
    const struct part w = TENSOR("y.weight", DPF_F32, 2, 3, 4);
    const struct part b = TENSOR("y.bias", DPF_F32, 1, 3);
    const struct part wide = TENSOR("y.weight", DPF_F64, 2, 3, 4);
    const struct part whole = TENSOR("y.weight", DPF_I32, 2, 3, 4);
    const struct part bytes = TENSOR("y.bias", DPF_U8, 1, 3);
    const struct part bits = TENSOR("y.weight", DPF_BITS, 2, 3, 4);
    const struct part turned = TENSOR("y.weight", DPF_F32, 2, 4, 3);
    const struct part flat = TENSOR("y.weight", DPF_F32, 1, 12);
    const struct part three = TENSOR("z.bias", DPF_F32, 1, 3);
    const struct part none = TENSOR("z.bias", DPF_F32, 1, 0);
    CU_ASSERT(parts_refused(line, (struct part[]){wide, b}, 2,
                            "parameter 'y.weight' is f64, not f32"));
    CU_ASSERT(parts_refused(line, (struct part[]){whole, b}, 2,
                            "parameter 'y.weight' is i32, not f32"));
    CU_ASSERT(parts_refused(line, (struct part[]){w, bytes}, 2,
                            "parameter 'y.bias' is u8, not f32"));
    CU_ASSERT(parts_refused(line, (struct part[]){b, bits}, 2,
                            "parameter 'y.weight' is bits, not f32"));
    CU_ASSERT(
        parts_refused(line, (struct part[]){w, b, b}, 3, "'y.bias' is there twice"));
    CU_ASSERT(
        parts_refused(line, (struct part[]){b, w, w}, 3, "'y.weight' is there twice"));
    CU_ASSERT(parts_refused(line, (struct part[]){turned, b}, 2,
                            "tensor 'y.weight' is 4x3, the network needs 3x4"));
    CU_ASSERT(parts_refused(line, (struct part[]){flat, b}, 2, "'y.weight' is 12,"));
    CU_ASSERT(parts_refused(line, (struct part[]){w, three}, 2, "'z.bias'"));
    CU_ASSERT(parts_refused(line, (struct part[]){w, b, none}, 3, "'z.bias'"));
    CU_ASSERT(parts_refused(line, &w, 1, "needs 15 parameters, the frame has 12"));
    CU_ASSERT(parts_refused(line, NULL, 0, "needs 15 parameters, the frame has 0"));
}

/* What is wrong with a name is the stream's fault, not the command line's. */
static void test_bad_names(void)
{
    static const char *const names[] = {"", "y\n.weight", "\xff\xfe", "__metadata__"};
    const struct part b = TENSOR("y.bias", DPF_F32, 1, 3);
    char longest[200];
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct part w = TENSOR(names[i], DPF_F32, 2, 3, 4);
        CU_ASSERT(parts_refused(line, (struct part[]){b, w}, 2, "name"));
    }
    const struct part w = TENSOR(longest, DPF_F32, 2, 3, 4);
    CU_ASSERT(parts_refused(line, (struct part[]){b, w}, 2, "has no name"));
}

/* A name is all of its bytes, not those before a NUL. */
static void test_name_with_nul(void)
{
    struct maker m = {0};
    struct reading r;
    struct dpf_tensor view;
    const struct dpf_shape shape = {.rank = 2, .dim = {3, 4}};
    float zeros[12] = {0};
    put_text(&m, "input x 4\ny = dense x out=3 bias=0\noutput y\n");
    dpf_encode_key(&m.enc, "parameters");
    msgpack_pack_map(&m.enc.packer, 1);
    msgpack_pack_str_with_body(&m.enc.packer, "y.weight\0junk", 13);
    CU_ASSERT_FATAL(dpf_tensor_view(&view, DPF_F32, &shape, zeros, NULL) == DPF_OK);
    dpf_encode_tensor(&m.enc, &view);
    maker_frame(&m);
    CU_ASSERT(frame_refused(read_frame(&r, &m, 0), "name"));
    end_reading(&r);
    maker_release(&m);
}

static void test_not_a_model(void)
{
    struct maker m = {0};
    struct reading r;
    static const char message[] = "the model frame has no text or parameters";
    dpf_encoder_begin(&m.enc, "model", 0);
    maker_frame(&m);
    CU_ASSERT(frame_refused(read_frame(&r, &m, 0), message));
    end_reading(&r);
    maker_release(&m);
    put_text(&m, line); /* parameters that are no map */
    dpf_encode_key(&m.enc, "parameters");
    dpf_encode_string(&m.enc, "none");
    maker_frame(&m);
    CU_ASSERT(frame_refused(read_frame(&r, &m, 0), message));
    end_reading(&r);
    maker_release(&m);
    dpf_encoder_begin(&m.enc, "model", 2); /* a text that is none */
    dpf_encode_key(&m.enc, "text");
    dpf_encode_uint(&m.enc, 7);
    put_parts(&m, NULL, 0);
    CU_ASSERT(frame_refused(read_frame(&r, &m, 0), message));
    end_reading(&r);
    maker_release(&m);
    put_text(&m, line); /* a parameter that is no tensor */
    dpf_encode_key(&m.enc, "parameters");
    msgpack_pack_map(&m.enc.packer, 1);
    dpf_encode_key(&m.enc, "y.weight");
    dpf_encode_string(&m.enc, "3x4");
    maker_frame(&m);
    CU_ASSERT(frame_refused(read_frame(&r, &m, 0), "parameter 'y.weight': "));
    end_reading(&r);
    maker_release(&m);
    put_text(&m, line); /* a name that is no text */
    dpf_encode_key(&m.enc, "parameters");
    msgpack_pack_map(&m.enc.packer, 1);
    dpf_encode_uint(&m.enc, 5);
    dpf_encode_uint(&m.enc, 5);
    maker_frame(&m);
    CU_ASSERT(frame_refused(read_frame(&r, &m, 0), "has no name"));
    end_reading(&r);
    maker_release(&m);
}

static void test_bad_text(void)
{
    CU_ASSERT(parts_refused("", NULL, 0, "model: the text names no output"));
    CU_ASSERT(parts_refused("input x 4\ny = dens x out=3\noutput y\n", NULL, 0,
                            "model:2: unknown operation 'dens'"));
    CU_ASSERT(parts_refused("input x 4\ny = dense z out=3\noutput y\n", NULL, 0,
                            "model:2: no node above this line is called 'z'"));
    CU_ASSERT(
        parts_refused("input x 4\ny = dense x out=3\noutput z\n", NULL, 0, "model:3:"));
    CU_ASSERT(parts_refused("input x 1x2x2\ny = dense x out=3\noutput y\n", NULL, 0,
                            "it needs a vector"));
}

/* ---- frames that want memory ---- */

/* Kilobytes of address space that this process had at most. */
static long peak_kib(void)
{
    char text[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(text, sizeof text, f))
        if (sscanf(text, "VmPeak: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

struct hostile {
    const char *text, *message;
    const struct part *parts;
    size_t count;
};

static int decode_hostile(void *context)
{
    const struct hostile *h = context;
    long before = peak_kib();
    bool good = parts_refused(h->text, h->parts, h->count, h->message);
    long grown = peak_kib() - before;
    if (grown > 64 << 10)
        printf("    %ld MiB were taken\n", grown >> 10);
    fflush(stdout);
    return !good ? 1 : grown > 64 << 10 ? 2 : 0;
}

/* In a child, where the peak starts anew. */
static bool cheap(struct hostile h)
{
    return in_child(decode_hostile, &h, 5000) == 0;
}

static void test_gigabytes(void)
{
    const struct part few[] = {TENSOR("y.weight", DPF_F32, 2, 3, 4),
                               TENSOR("y.bias", DPF_F32, 1, 3)};
    struct dpf_text deep = {0};
    CU_ASSERT(
        cheap((struct hostile){"input x 30000\ny = dense x out=30000\noutput y\n",
                               "needs 900030000 parameters, the frame has 15", few, 2}));
    CU_ASSERT(cheap(
        (struct hostile){"input x 1000x9x9\ny = conv x out=1000 kernel=9\noutput y\n",
                         "the frame has 15", few, 2}));
    CU_ASSERT(cheap(
        (struct hostile){"input x 1073741824\ny = dense x out=1073741824\noutput y\n",
                         "larger than 2^32-1 bytes", few, 2}));
    dpf_text_add(&deep, "input x 30000\nn0 = dense x out=30000\n");
    for (int i = 1; i < 1000; i++)
        dpf_text_addf(&deep, "n%d = dense n%d out=30000\n", i, i - 1);
    dpf_text_add(&deep, "output n999\n");
    CU_ASSERT(cheap(
        (struct hostile){dpf_text_get(&deep), "needs 900030000000 parameters", few, 2}));
    dpf_text_release(&deep);
}

/* An input that no memory can hold, and whose size is 0 when it is counted in 64 bits. */
static void test_overflowing_input(void)
{
    const struct part none[] = {TENSOR("y.weight", DPF_F32, 2, 1, 0)};
    const struct part conv[] = {TENSOR("y.weight", DPF_F32, 4, 1, 16, 1, 1)};
    CU_ASSERT(cheap((struct hostile){
        "input x 16x1073741824x1073741824\nf = flatten x\ny = dense f out=1 bias=0\n"
        "output y\n",
        "larger than 2^32-1 bytes", none, 1}));
    CU_ASSERT(cheap(
        (struct hostile){"input x 16x1073741824x1073741824\n"
                         "y = conv x out=1 kernel=1 stride=1048576 bias=0\noutput y\n",
                         "larger than 2^32-1 bytes", conv, 1}));
}

/* Many tensors without values: refused in the time it takes to read them. */
static void test_many_tensors(void)
{
    enum { MANY = 16000 };
    struct maker m = {0};
    struct reading r;
    struct dpf_tensor view;
    const struct dpf_shape none = {.rank = 1, .dim = {0}};
    float zero = 0;
    struct timespec began, ended;
    CU_ASSERT_FATAL(dpf_tensor_view(&view, DPF_F32, &none, &zero, NULL) == DPF_OK);
    put_text(&m, line);
    dpf_encode_key(&m.enc, "parameters");
    msgpack_pack_map(&m.enc.packer, MANY);
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        dpf_encode_key(&m.enc, name);
        dpf_encode_tensor(&m.enc, &view);
    }
    maker_frame(&m);
    const msgpack_object *frame = read_frame(&r, &m, 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    CU_ASSERT(frame_refused(frame, ""));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    double seconds = (double)(ended.tv_sec - began.tv_sec) +
                     1e-9 * (double)(ended.tv_nsec - began.tv_nsec);
    if (seconds > 0.5)
        printf("    %d empty tensors took %.1f s\n", MANY, seconds);
    CU_ASSERT(seconds <= 0.5);
    end_reading(&r);
    maker_release(&m);
}

const char dpf_suite[] = "weights";
const struct dpf_test dpf_tests[] = {
    {"dense, convolutions, group norms: PyTorch's names and shapes", test_pictures},
    {"volumes: PyTorch's names and shapes", test_volumes},
    {"a volume's kernel without depth keeps the dimension", test_depth_of_one},
    {"energy models: visible biases, weights of conditions", test_energy_models},
    {"a network without parameters", test_nothing},
    {"dense over packed bits is turned round", test_bits},
    {"dense over as many packed bits as outputs is turned round", test_square_bits},
    {"other layers are not turned", test_not_turned},
    {"a missing tensor is named", test_missing},
    {"an additional tensor is named", test_additional},
    {"a wrongly shaped tensor is named with both shapes", test_wrong_shape},
    {"a doubled tensor is named", test_doubled},
    {"model frames, out and back, aligned or not", test_frames},
    {"parameters of other dtypes, shapes and names are refused", test_other_parts},
    {"names that no tensor may have are the stream's fault", test_bad_names},
    {"a name with a NUL in it is not the name before it", test_name_with_nul},
    {"frames that are no model are refused", test_not_a_model},
    {"a text with an error is the stream's fault", test_bad_text},
    {"a text that needs gigabytes takes none", test_gigabytes},
    {"an input whose size overflows is refused", test_overflowing_input},
    {"many empty tensors are refused quickly", test_many_tensors},
    {0},
};
