/* Examples in memory: how much room they have, and that they outlast its growth. */
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "nn/dataset.h"

#include "base/banned.h"

const char dpf_suite[] = "dataset";

/* Examples of `width` values, each with a label for each value if `labelled`. */
struct bench {
    struct dpf_model model;
    struct dpf_header header;
    struct dpf_dataset data;
    struct dpf_dataset_need need;
    uint64_t width;
};

static void begin(struct bench *b, uint64_t width, bool labelled)
{
    char text[80];
    const struct dpf_shape volume = {.rank = 4, .dim = {1, width, 1, 1}};
    const struct dpf_shape mask = {.rank = 3, .dim = {width, 1, 1}};
    *b = (struct bench){.width = width};
    int length = snprintf(text, sizeof text, "input x 1x%llux1x1\ny = tanh x\noutput y\n",
                          (unsigned long long)width);
    CU_ASSERT_FATAL(dpf_model_parse(&b->model, text, (size_t)length, "net", NULL) ==
                    DPF_OK);
    CU_ASSERT_FATAL(dpf_header_add_field(&b->header, "x", DPF_F32, &volume) != NULL);
    if (labelled)
        CU_ASSERT_FATAL(dpf_header_add_field(&b->header, "y", DPF_U8, &mask) != NULL);
    b->need = (struct dpf_dataset_need){.model = &b->model,
                                        .x = "x",
                                        .y = labelled ? "y" : NULL,
                                        .loss = dpf_loss_find("voxel-dice")};
    CU_ASSERT_FATAL(dpf_dataset_init(&b->data, &b->header, &b->need, NULL) == DPF_OK);
}

static void end(struct bench *b)
{
    dpf_dataset_release(&b->data);
    dpf_header_release(&b->header);
    dpf_model_release(&b->model);
}

/* Example number i is the number i, at its first and at its last place. */
static void add(struct bench *b, uint64_t rows)
{
    struct dpf_batch batch;
    CU_ASSERT_FATAL(dpf_batch_init(&batch, &b->header, rows, NULL) == DPF_OK);
    float *x = batch.tensor[0].data;
    if (b->need.y)
        memset(batch.tensor[1].data, 0, rows * b->width); /* class 0 everywhere */
    for (uint64_t i = 0; i < rows; i++)
        x[i * b->width] = x[(i + 1) * b->width - 1] = (float)(b->data.rows + i);
    CU_ASSERT_FATAL(dpf_dataset_add(&b->data, &b->header, &batch, &b->need, NULL) ==
                    DPF_OK);
    dpf_batch_release(&batch);
}

static bool all_there(const struct bench *b)
{
    for (uint64_t i = 0; i < b->data.rows; i++) {
        const float *x = (const float *)(const void *)b->data.x + i * b->width;
        if (x[0] != (float)i || x[b->width - 1] != (float)i)
            return false;
    }
    return true;
}

static void test_small(void)
{
    struct bench b;
    begin(&b, 4, false);
    add(&b, 1);
    CU_ASSERT_EQUAL(b.data.capacity, 1024);
    for (int i = 0; i < 2000; i++)
        add(&b, 1);
    CU_ASSERT_EQUAL(b.data.rows, 2001);
    CU_ASSERT(b.data.capacity >= 2001 && b.data.capacity < 2001 * 3 / 2 + 1);
    CU_ASSERT(all_there(&b));
    end(&b);
}

/* Room for a thousand of these would be 40 GiB. */
static void test_large(void)
{
    struct bench b;
    begin(&b, 10 << 20, false);
    add(&b, 1);
    CU_ASSERT_EQUAL(b.data.capacity, 2);
    add(&b, 1);
    CU_ASSERT_EQUAL(b.data.capacity, 2);
    add(&b, 1);
    CU_ASSERT_EQUAL(b.data.capacity, 3);
    add(&b, 1);
    CU_ASSERT_EQUAL(b.data.capacity, 4);
    CU_ASSERT(all_there(&b));
    end(&b);
}

/* A volume of the size of the paper: 16 fit at first; with its mask, fewer. */
static void test_volumes(void)
{
    struct bench b;
    begin(&b, 1 << 20, false);
    add(&b, 1);
    CU_ASSERT_EQUAL(b.data.capacity, 16);
    end(&b);
    begin(&b, 1 << 20, true);
    add(&b, 1);
    CU_ASSERT_EQUAL(b.data.capacity, 8);
    end(&b);
}

const struct dpf_test dpf_tests[] = {
    {"small examples have room by the thousand, and it grows", test_small},
    {"large ones have room for two, and one more at a time", test_large},
    {"targets count", test_volumes},
    {NULL, NULL},
};
