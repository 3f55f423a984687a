/* Network texts: shapes, parameters, and what is wrong with its line. */
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "nn/model.h"

static bool parse(const char *text, struct dpf_model *m, struct dpf_error *e)
{
    *e = (struct dpf_error){.status = DPF_OK};
    return dpf_model_parse(m, text, strlen(text), "net", e) == DPF_OK;
}

static void has_shape(const struct dpf_model *m, const char *node, const char *want)
{
    char got[96];
    const struct dpf_node *n = dpf_model_find(m, node);
    CU_ASSERT_PTR_NOT_NULL_FATAL(n);
    dpf_shape_format(&n->shape, got, sizeof got);
    CU_ASSERT_STRING_EQUAL(got, want);
}

/* Known figures of the papers' networks, worked out by hand. */
static void test_architectures(void)
{
    static const struct {
        const char *name, *node, *shape;
        uint64_t parameters;
    } cases[] = {
        {"abadi-mnist", "p2", "32x4x4", 26010},
        /* 5*5*32+32 + 5*5*32*64+64 + 3136*25+25 + 25*10+10 */
        {"adlm-mnist", "p2", "64x7x7", 832 + 51264 + 78425 + 260},
        {"adlm-cifar", "p3", "256x4x4", 3584 + 409728 + 819456 + 122910 + 310},
        {"cnm-mnist", "f", "9216", 320 + 18496},
        {"cnm-cifar", "f", "9216", 896 + 9248 + 18496 + 36928},
        {"latent-fc", "y", "10", 92160ull * 128 + 128 + 1290},
        {"plain-mnist", "f", "9216", 320 + 18496 + 1179776 + 1290},
        {"plain-cifar", "f", "2304", 896 + 9248 + 18496 + 36928 + 1180160 + 5130},
        /* summed up by a script from the widths 16 to 256 */
        {"unet3d", "y", "4x64x64x64", 5649204},
        {"tiny", "f", "128", 80 + 1290},
        {"dpsgd-mnist", "p2", "32x4x4", 26010},
        {"dpsgd-digits", "f", "256", 160 + 2570},
        {"oriented-mnist", "f", "392", 208},
        {"dpsgd-cifar", "f", "1024", 896 + 18496 + 36928 + 65600 + 650},
        {"latent-fc256", "y", "10", 92160ull * 256 + 256 + 2570},
        {"embed-mnist", "f", "1600", 320 + 18496 + 204928 + 1290},
        {"glyphs-mnist", "f", "1600", 320 + 18496 + 1229568 + 153800},
        {"patches-cifar", "f", "4608", 27648 + 131584 + 10616832},
        {"teacher-mnist", "f", "800", 416 + 12832 + 8010},
        /* with visible biases: of 1, 32 and 1600 values */
        {"cdbn-mnist", "f", "1600", 833 + 51264 + 32 + 40025 + 1600 + 260},
        {"filters-mnist", "f", "1568", 832 + 64},
        {"filters-mnist-coarse", "f", "512", 832 + 64},
        {"filters-digits", "f", "256", 160 + 32},
        {"cdbn-digits", "f", "160", 241 + 8680 + 24 + 1610},
        {"pcdbn-figures", "f", "128", 137},
        /* 31 conditions for each hidden and each visible bias */
        {"cdbn-wellness", "f", "20", 490 + 1 + 310 + 31 + 1210 + 10 + 42},
        {"tcdbn-wellness", "f", "20", 490 + 1 + 310 + 31 + 1210 + 42},
        {"pcdbn-wellness", "f2", "20", 490 + 1 + 310 + 31 + 610 + 10},
        {"sctrbm-wellness", "h1", "50", 6050 + 120 + 1550 + 120 * 31 + 102},
        {"dpah-wellness", "h1", "25", 3025 + 120 + 775 + 120 * 31},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dpf_model m;
        struct dpf_error e;
        CU_ASSERT_STRING_EQUAL(dpf_architecture_names[i], cases[i].name);
        const char *text = dpf_architecture(cases[i].name);
        CU_ASSERT_PTR_NOT_NULL_FATAL(text);
        CU_ASSERT_FATAL(parse(text, &m, &e));
        has_shape(&m, cases[i].node, cases[i].shape);
        if (dpf_model_parameter_count(&m) != cases[i].parameters)
            printf("    %s has %llu parameters\n", cases[i].name,
                   (unsigned long long)dpf_model_parameter_count(&m));
        CU_ASSERT_EQUAL(dpf_model_parameter_count(&m), cases[i].parameters);
        CU_ASSERT_STRING_EQUAL(m.text, text);
        dpf_model_release(&m);
    }
    CU_ASSERT(dpf_architecture_names[sizeof cases / sizeof *cases] == NULL &&
              !dpf_architecture("none"));
}

static void test_graph(void)
{
    struct dpf_model m;
    struct dpf_error e;
    CU_ASSERT_FATAL(parse("# volumes, a skip connection\n"
                          "input x 2x8x8x8\n\n"
                          "a = conv x out=4 kernel=3 pad=1  # same size\n"
                          "b = max-pool a kernel=2\n"
                          "c = conv b out=8 kernel=3x1x1 pad=1x0x0 bias=0\n"
                          "g = group-norm c groups=4\n"
                          "u = conv-transpose g out=4 kernel=2 stride=2\n"
                          "s = upsample b factor=2\n"
                          "j = concat u a\n"
                          "k = concat j s\n"
                          "y = softmax k\n"
                          "output y\n",
                          &m, &e));
    has_shape(&m, "a", "4x8x8x8");
    has_shape(&m, "b", "4x4x4x4");
    has_shape(&m, "c", "8x4x4x4");
    has_shape(&m, "u", "4x8x8x8");
    has_shape(&m, "s", "4x8x8x8");
    has_shape(&m, "k", "12x8x8x8");
    CU_ASSERT(dpf_model_find(&m, "c")->parameter_count == 1);
    CU_ASSERT(dpf_model_find(&m, "u")->parameters[0].dim[0] == 8);
    CU_ASSERT(m.output == m.count - 1);
    dpf_model_release(&m);
    CU_ASSERT_FATAL(parse("input x 1x9x7\na = max-pool x kernel=3x2 stride=2\n"
                          "f = flatten a\noutput f\n",
                          &m, &e));
    has_shape(&m, "a", "1x4x3");
    dpf_model_release(&m);
}

static void test_mistakes(void)
{
    static const char *const cases[][2] = {
        {"input x 1x8x8\ny = dense x out=3\noutput y\n",
         "net:2: 'y' (dense) cannot read 'x' of shape 1x8x8: it needs a vector"},
        {"input x 4\nb = relu c\nc = relu b\noutput c\n",
         "net:2: no node above this line is called 'c'"},
        {"input x 4\nb = relu b\noutput b\n", "net:2: no node above this line is called"},
        {"input x 2x4x4\na = max-pool x kernel=2\nj = concat a x\noutput j\n",
         "net:3: 'j' cannot join 'a' of shape 2x2x2 and 'x' of shape 2x4x4"},
        {"input x 1x4x4\nc = conv x out=2 kernel=5\noutput c\n",
         "its kernel is larger than the input"},
        {"input x 6x4x4\nc = group-norm x groups=4\noutput c\n",
         "its groups do not divide the channels"},
        {"input x 1x4x4\nc = conf x out=2 kernel=3\noutput c\n",
         "net:2: unknown operation 'conf' (did you mean 'conv'?)"},
        {"input x 4x8x8\ny = batch-norm x\noutput y\n",
         "net:2: it mixes the examples of a batch, so that none has a gradient of its "
         "own"},
        {"input x 1x4x4\nc = conv x out=2\noutput c\n", "net:2: an attribute is missing"},
        {"input x 4\nc = relu x out=2\noutput c\n",
         "an attribute is missing, or does not"},
        {"input x 4\nc = dense x out=0\noutput c\n", "impossible attribute 'out=0'"},
        {"input x 4\nc = dense x out=2 out=3\noutput c\n", "doubled"},
        {"input x 4\nc = dropout x rate=1\noutput c\n", "impossible attribute 'rate=1'"},
        {"input x 4\nx = relu x\noutput x\n",
         "there is a node of this name already: 'x'"},
        {"input x 4\nc = relu x\n", "net: the text names no output"},
        {"c = relu x\noutput c\n", "net:1: the input has to come before 'c'"},
        {"input x 4\ninput y 4\noutput x\n", "net:2: there is a second input: 'y'"},
        {"input x 4y\noutput x\n", "net:1: this is no shape"},
        {"input x 92160 bits\nr = relu x\noutput r\n",
         "packed bits are for 'dense' only"},
        {"input x 4\noutput x\nr = relu x\n", "nothing can follow the output"},
        {"input x 65536\na = dense x out=65536\noutput a\n", "larger than 2^32-1 bytes"},
        {"input x 9\ns = slice x from=4 count=6\noutput s\n",
         "net:2: 's' (slice) cannot read 'x' of shape 9: it needs a vector with at "
         "least"},
        {"input x 1x3x3\ns = slice x from=0 count=2\noutput s\n",
         "net:2: 's' (slice) cannot read 'x' of shape 1x3x3: it needs a vector"},
        {"input x 9\ns = slice x from=-1 count=2\noutput s\n",
         "impossible attribute 'from=-1'"},
        {"input x 9\ns = slice x from=0 count=0\noutput s\n",
         "impossible attribute 'count=0'"},
        {"input x 9\ns = slice x count=2\noutput s\n", "an attribute is missing"},
        {"input x 9 bits\ns = slice x from=0 count=2\noutput s\n",
         "packed bits are for 'dense' only"},
        {"input x 9\nu = slice x from=0 count=2\nd = dense x u out=2\noutput d\n",
         "net:3: 'd' (dense) cannot read 'u' of shape 2: only with 'visible=1' has it "
         "conditions"},
        {"input x 1x3x3\nc = conv x x out=2 kernel=2 visible=1\noutput c\n",
         "net:2: 'c' (conv) cannot read 'x' of shape 1x3x3: conditions are a vector"},
        {"input x 9 bits\nd = dense x out=2\ne = dense d x out=2 visible=1\noutput e\n",
         "net:3: 'e' (dense) cannot read 'x' of shape 9: conditions are a vector of "
         "numbers"},
        {"input x 9\nd = dense x x x out=2 visible=1\noutput d\n",
         "net:2: too many inputs: 'x'"},
        {"input x 1x3x3\nf = flatten x\nc = conv-transpose x f out=2 kernel=2\noutput "
         "c\n",
         "net:3: too many inputs: 'f'"},
        {"", "net: the text names no output"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dpf_model m;
        struct dpf_error e;
        bool found = !parse(cases[i][0], &m, &e) && e.status == DPF_USAGE &&
                     strstr(e.message, cases[i][1]);
        if (!found)
            printf("    '%s', not '%s'\n", e.message, cases[i][1]);
        CU_ASSERT(found);
    }
}

const char dpf_suite[] = "model";
const struct dpf_test dpf_tests[] = {
    {"architectures of the papers: shapes and parameters", test_architectures},
    {"graphs with skip connections and volumes", test_graph},
    {"mistakes are told with line, nodes and shapes", test_mistakes},
    {0},
};
