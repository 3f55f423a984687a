/* Any bytes as an idx file, and cut in half as images and their labels. */
#include "data/idx.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BATCHES = 64 };

static void read_all(struct dpf_source *take_source)
{
    struct dpf_batch b;
    uint64_t rows = dpf_batch_rows(&take_source->header), got = rows;
    for (int i = 0; i < MAX_BATCHES && got; i++) {
        if (dpf_source_next(take_source, &b, rows, NULL) != DPF_OK)
            break;
        got = b.rows;
        dpf_batch_release(&b);
    }
    dpf_source_destroy(&take_source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dpf_bytes *images = NULL, *labels = NULL;
    struct dpf_source *s;
    size_t half = size / 2;
    if (dpf_bytes_open_memory(data, size, "whole", &images, NULL) == DPF_OK &&
        dpf_idx_new(images, NULL, 0, &s, NULL) == DPF_OK)
        read_all(s);
    images = NULL;
    if (dpf_bytes_open_memory(data, half, "images", &images, NULL) != DPF_OK ||
        dpf_bytes_open_memory(data + half, size - half, "labels", &labels, NULL) !=
            DPF_OK)
        dpf_bytes_destroy(&images);
    else if (dpf_idx_new(images, labels, 10, &s, NULL) == DPF_OK)
        read_all(s);
    return 0;
}
