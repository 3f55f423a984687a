/* The rows of operations: each is complete, and a row that lacks something is refused
 * with the operation named, before a network can be trained with it. */
#include <string.h>

#include "nn/ops/op.h"
#include "stream_fixture.h"

#include "base/banned.h"

const char dpf_suite[] = "ops";

/* Whether a row is refused, for what a node without or with parameters needs; the message
 * names the operation. */
static bool lacks(const struct dpf_op *op, bool has_parameters, const char *member)
{
    struct dpf_error e = {0};
    char name[64];
    snprintf(name, sizeof name, "'%s'", op->name);
    bool good = dpf_op_check(op, has_parameters, &e) == DPF_USAGE &&
                e.status == DPF_USAGE && strstr(e.message, name) != NULL;
    if (!good)
        printf("    '%s' without '%s' is not refused: '%s'\n", op->name, member,
               e.message);
    return good;
}

/* ---- every row ---- */

static void test_complete(void)
{
    for (const struct dpf_op *const *op = dpf_ops; *op; op++) {
        struct dpf_error e = {0};
        CU_ASSERT(dpf_op_check(*op, (*op)->parameters != NULL, &e) == DPF_OK);
        CU_ASSERT((*op)->inputs >= 1 && (*op)->more >= 0 &&
                  (*op)->inputs + (*op)->more <= DPF_NODE_INPUTS);
        CU_ASSERT(((*op)->needs & (*op)->may) == 0);
        CU_ASSERT(dpf_op_find((*op)->name) == *op); /* no name twice */
        if ((*op)->absorbs) /* what is done at once has to work in place */
            CU_ASSERT((*op)->absorbs->in_place == DPF_IN_PLACE);
    }
}

/* What an operation with weights has beyond the checks: shapes say that there are some
 * parameters, rows say how they are clipped. */
static void test_parameters_are_clipped(void)
{
    static const char text[] = "input x 4x8x8\n"
                               "c = conv x out=4 kernel=3 pad=1\n"
                               "t = conv-transpose c out=4 kernel=2 stride=2\n"
                               "g = group-norm t groups=2\n"
                               "l = lrn g\n"
                               "m = max-pool l kernel=2\n"
                               "a = average-pool m kernel=2\n"
                               "u = upsample a factor=2\n"
                               "k = concat u m\n"
                               "r = relu k\n"
                               "e = leaky-relu r\n"
                               "o = dropout e rate=0.5\n"
                               "f = flatten o\n"
                               "v = reshape f shape=8x8x8\n"
                               "w = flatten v\n"
                               "z = slice w from=3 count=500\n"
                               "q = noise z sigma=0.5\n"
                               "d = dense q out=6\n"
                               "s = sigmoid d\n"
                               "h = tanh s\n"
                               "p = cap h\n"
                               "i = polynomial p degree=3\n"
                               "n = min-max i\n"
                               "b = ball n\n"
                               "y = softmax b\n"
                               "output y\n";
    struct dpf_model m;
    size_t used = 0;
    CU_ASSERT_FATAL(dpf_model_parse(&m, text, strlen(text), "net", NULL) == DPF_OK);
    for (const struct dpf_op *const *op = dpf_ops; *op; op++)
        for (size_t i = 1; i < m.count; i++)
            if (m.nodes[i].op == *op) {
                CU_ASSERT((m.nodes[i].parameter_count > 0) ==
                          ((*op)->parameters != NULL));
                used++;
                break;
            }
    CU_ASSERT(used == m.count - 2); /* each row, flatten twice, none left out */
    for (const struct dpf_op *const *op = dpf_ops; *op; op++)
        used--;
    CU_ASSERT(used == 0);
    dpf_model_release(&m);
}

/* ---- broken copies ---- */

static void test_without_functions(void)
{
    for (const struct dpf_op *const *op = dpf_ops; *op; op++)
        for (int with = 0; with < 2; with++) {
            struct dpf_op copy = **op;
            copy.shape = NULL;
            CU_ASSERT(lacks(&copy, with, "shape"));
            copy = **op;
            copy.forward = NULL;
            CU_ASSERT(lacks(&copy, with, "forward"));
            copy = **op;
            copy.backward = NULL;
            CU_ASSERT(lacks(&copy, with, "backward"));
            copy = **op;
            copy.relevance = NULL;
            CU_ASSERT(lacks(&copy, with, "relevance"));
        }
}

/* Without norms there is nothing to clip by; without room or sums a pass would call what
 * is not there. */
static void test_without_clipping(void)
{
    for (const struct dpf_op *const *op = dpf_ops; *op; op++) {
        struct dpf_op copy = **op;
        copy.parameters = NULL;
        CU_ASSERT(lacks(&copy, true, "parameters"));
        if (!(*op)->parameters)
            continue;
        struct dpf_op_parameters own = *(*op)->parameters;
        copy.parameters = &own;
        CU_ASSERT(dpf_op_check(&copy, true, NULL) == DPF_OK);
        own.gradients = NULL;
        CU_ASSERT(lacks(&copy, true, "gradients"));
        own = *(*op)->parameters;
        own.room = NULL;
        CU_ASSERT(lacks(&copy, true, "room"));
        own = *(*op)->parameters;
        own.example_norms = NULL;
        CU_ASSERT(lacks(&copy, true, "example_norms"));
        own = *(*op)->parameters;
        own.add_clipped = NULL;
        CU_ASSERT(lacks(&copy, true, "add_clipped"));
    }
}

static void test_without_weighted_sums(void)
{
    int linear = 0;
    for (const struct dpf_op *const *op = dpf_ops; *op; op++) {
        if (!(*op)->linear)
            continue;
        struct dpf_op copy = **op;
        struct dpf_op_linear own = *copy.linear;
        bool with = copy.parameters != NULL;
        linear++;
        copy.linear = NULL;
        CU_ASSERT(lacks(&copy, with, "linear"));
        copy.linear = &own;
        CU_ASSERT(dpf_op_check(&copy, with, NULL) == DPF_OK);
        own.sums = NULL;
        CU_ASSERT(lacks(&copy, with, "sums"));
        own = *(*op)->linear;
        own.back = NULL;
        CU_ASSERT(lacks(&copy, with, "back"));
        own = *(*op)->linear;
        own.spread_bias = NULL;
        CU_ASSERT(lacks(&copy, with, "spread_bias"));
    }
    CU_ASSERT(linear > 0);
}

const struct dpf_test dpf_tests[] = {
    {"every row is complete", test_complete},
    {"operations with parameters say how they are clipped", test_parameters_are_clipped},
    {"rows without a function are refused", test_without_functions},
    {"parameters without clipping are refused", test_without_clipping},
    {"relevance without weighted sums is refused", test_without_weighted_sums},
    {NULL, NULL},
};
