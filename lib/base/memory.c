#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

bool dpf_mul_size(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

void *dpf_calloc(size_t count, size_t size)
{
    return calloc(count ? count : 1, size ? size : 1); /* calloc checks the product */
}

void *dpf_alloc_aligned(size_t bytes)
{
    if (bytes > SIZE_MAX - DPF_ALIGNMENT)
        return NULL;
    size_t rounded = (bytes + DPF_ALIGNMENT - 1) / DPF_ALIGNMENT * DPF_ALIGNMENT;
    return aligned_alloc(DPF_ALIGNMENT, rounded ? rounded : DPF_ALIGNMENT);
}

bool dpf_grow(void *array_pointer, size_t *capacity, size_t count, size_t size)
{
    if (count <= *capacity)
        return true;
    size_t wanted = *capacity ? *capacity : 8;
    while (wanted < count)
        if (!dpf_mul_size(wanted, 2, &wanted))
            return false;
    size_t bytes;
    if (!dpf_mul_size(wanted, size, &bytes))
        return false;
    void *old;
    memcpy(&old, array_pointer, sizeof old);
    void *grown = realloc(old, bytes);
    if (!grown)
        return false;
    memcpy(array_pointer, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}

unsigned char *dpf_buffer_reserve(struct dpf_buffer *b, size_t extra)
{
    if (b->failed || extra > SIZE_MAX - b->size ||
        !dpf_grow(&b->data, &b->capacity, b->size + extra, 1)) {
        b->failed = true;
        return NULL;
    }
    return b->data + b->size;
}

void dpf_buffer_append(struct dpf_buffer *b, const void *data, size_t size)
{
    if (size == 0)
        return;
    unsigned char *to = dpf_buffer_reserve(b, size);
    if (!to)
        return;
    memcpy(to, data, size);
    b->size += size;
}

void dpf_buffer_reset(struct dpf_buffer *b)
{
    b->size = 0;
    b->failed = false;
}

void dpf_buffer_release(struct dpf_buffer *b)
{
    free(b->data);
    *b = (struct dpf_buffer){0};
}
