/* Any bytes as a safetensors file; and as its header up to the first zero byte with the
 * data behind that, so that no length has to be guessed. What is accepted can be written
 * and is then read back the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nn/safetensors.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LENGTH = 8 };

static void check_same(const struct dpf_safetensors *a, const struct dpf_safetensors *b)
{
    if (a->count != b->count || !a->metadata != !b->metadata ||
        (a->metadata && strcmp(a->metadata, b->metadata) != 0))
        abort();
    for (size_t i = 0; i < a->count; i++) {
        const struct dpf_named_tensor *s = &a->tensors[i], *t = &b->tensors[i];
        if (strcmp(s->name, t->name) != 0 || !dpf_shape_equal(&s->shape, &t->shape) ||
            s->count != t->count || s->count != dpf_shape_elements(&s->shape) ||
            memcmp(s->values, t->values, s->count * sizeof(float)) != 0 ||
            dpf_safetensors_find(a, s->name) != s)
            abort();
    }
}

static void try(const uint8_t *data, size_t size)
{
    char path[64];
    struct dpf_safetensors s, again;
    struct dpf_error e = {0};
    if (dpf_safetensors_parse(&s, data, size, "fuzz", &e) != DPF_OK) {
        if (e.status != DPF_BAD_STREAM || s.count || s.tensors || s.metadata)
            abort();
        return;
    }
    snprintf(path, sizeof path, "/dev/shm/dpf-fuzz-safetensors-%ld", (long)getpid());
    if (dpf_safetensors_write(&s, path, NULL) != DPF_OK ||
        dpf_safetensors_read(&again, path, NULL) != DPF_OK)
        abort();
    check_same(&s, &again);
    dpf_safetensors_release(&again);
    dpf_safetensors_release(&s);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t header = zero ? (size_t)(zero - data) : size;
    size_t rest = zero ? size - header - 1 : 0;
    uint8_t *file = malloc(LENGTH + size);
    if (!file)
        return 0;
    try(data, size);
    for (int i = 0; i < LENGTH; i++)
        file[i] = (uint8_t)((uint64_t)header >> 8 * i);
    if (header)
        memcpy(file + LENGTH, data, header);
    if (rest)
        memcpy(file + LENGTH + header, zero + 1, rest);
    try(file, LENGTH + header + rest);
    free(file);
    return 0;
}
