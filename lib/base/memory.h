/* Memory whose sizes were checked: every product is tested for overflow before anything
 * is allocated, because shapes and counts come from strangers. */
#ifndef DPF_BASE_MEMORY_H
#define DPF_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { DPF_ALIGNMENT = 64 };

/* `count * size` bytes, zeroed. NULL on overflow or exhaustion. Free with free(). */
void *dpf_calloc(size_t count, size_t size);

/* Bytes aligned to DPF_ALIGNMENT, not zeroed, for tensors. Free with free(). */
void *dpf_alloc_aligned(size_t bytes);

/* Grow an array to hold `count` elements of `size` bytes. On failure the old array stays.
 */
bool dpf_grow(void *array_pointer, size_t *capacity, size_t count, size_t size);

/* a * b into *product; false on overflow. */
bool dpf_mul_size(size_t a, size_t b, size_t *product);

/* Growable bytes. Zero-initialise; failures are sticky and reported by dpf_buffer_ok(),
 * so that a run of appends needs one check. */
struct dpf_buffer {
    unsigned char *data;
    size_t size;
    size_t capacity;
    bool failed;
};

void dpf_buffer_append(struct dpf_buffer *b, const void *data, size_t size);
/* Make room for `extra` bytes; returns where they go (size is unchanged) or NULL. */
unsigned char *dpf_buffer_reserve(struct dpf_buffer *b, size_t extra);
static inline bool dpf_buffer_ok(const struct dpf_buffer *b)
{
    return !b->failed;
}
void dpf_buffer_reset(struct dpf_buffer *b);
void dpf_buffer_release(struct dpf_buffer *b);

#endif
