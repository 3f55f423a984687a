/* Any bytes as a CIFAR-10 batch; the reader also unpacks gzip and xz. */
#include "data/cifar.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BATCHES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dpf_bytes *bytes;
    struct dpf_source *s;
    struct dpf_batch b;
    uint64_t got = 1;
    if (dpf_bytes_open_memory(data, size, "fuzz", &bytes, NULL) != DPF_OK ||
        dpf_cifar_new(bytes, &s, NULL) != DPF_OK)
        return 0;
    for (int i = 0; i < MAX_BATCHES && got; i++) {
        if (dpf_source_next(s, &b, 7, NULL) != DPF_OK)
            break;
        got = b.rows;
        dpf_batch_release(&b);
    }
    dpf_source_destroy(&s);
    return 0;
}
