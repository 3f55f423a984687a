/* The table, this thread's scratch memory, and what could not be done. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/cpu/cpu.h"

#include "base/banned.h"

enum { SLOTS = DPF_CPU_SUMS + 1 };

static _Thread_local struct {
    void *memory[SLOTS];
    size_t bytes[SLOTS];
    const char *failed;
} own;

void *dpf_cpu_scratch(enum dpf_cpu_scratch slot, size_t bytes)
{
    if (own.bytes[slot] < bytes) {
        free(own.memory[slot]);
        own.memory[slot] = dpf_alloc_aligned(bytes);
        own.bytes[slot] = own.memory[slot] ? bytes : 0;
        if (!own.memory[slot])
            dpf_cpu_fail("out of memory");
    }
    return own.memory[slot];
}

void dpf_cpu_fail(const char *what)
{
    if (!own.failed)
        own.failed = what;
}

static void *cpu_alloc(size_t bytes)
{
    return dpf_alloc_aligned(bytes);
}

static void cpu_release(void *memory)
{
    free(memory);
}

static void cpu_put(void *to, const void *host, size_t bytes)
{
    memcpy(to, host, bytes);
}

static void cpu_get(void *host, const void *from, size_t bytes)
{
    memcpy(host, from, bytes);
}

static enum dpf_status cpu_finish(struct dpf_error *e)
{
    const char *failed = own.failed;
    own.failed = NULL;
    return failed ? dpf_fail(e, DPF_SYSTEM, "backend 'cpu': %s", failed) : DPF_OK;
}

static void cpu_end_thread(void)
{
    dpf_cpu_end_convolutions();
    for (int i = 0; i < SLOTS; i++) {
        free(own.memory[i]);
        own.memory[i] = NULL;
        own.bytes[i] = 0;
    }
}

static struct dpf_kernels table = {
    .name = "cpu",
    .host_memory = true,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .put = cpu_put,
    .get = cpu_get,
    .finish = cpu_finish,
    .end_thread = cpu_end_thread,
};

static void fill_table(void)
{
    dpf_cpu_add_products(&table);
    dpf_cpu_add_convolutions(&table);
    dpf_cpu_add_rows(&table);
    dpf_cpu_add_layers_base(&table);
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        dpf_cpu_add_layers_avx2(&table);
#endif
}

const struct dpf_kernels *dpf_kernels_cpu(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_table);
    return &table;
}

const char *const dpf_backend_words[] = {"cpu", "ref", NULL};

const struct dpf_kernels *dpf_backend_of(const char *name)
{
    return strcmp(name, "ref") == 0 ? &dpf_kernels_ref : dpf_kernels_cpu();
}
