/* The table, a context's memory, and what could not be done. */
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "kernels/cpu/cpu.h"

#include "base/banned.h"

void *dpf_cpu_scratch(struct dpf_context *context, enum dpf_cpu_scratch slot,
                      size_t bytes)
{
    struct dpf_cpu *own = CPU;
    if (own->bytes[slot] < bytes) {
        free(own->memory[slot]);
        own->memory[slot] = dpf_alloc_aligned(bytes);
        own->bytes[slot] = own->memory[slot] ? bytes : 0;
        if (!own->memory[slot])
            dpf_cpu_fail(context, "out of memory");
    }
    return own->memory[slot];
}

void dpf_cpu_fail(struct dpf_context *context, const char *what)
{
    if (!CPU->failed)
        CPU->failed = what;
}

static enum dpf_status cpu_open(int device, struct dpf_context **take_context,
                                struct dpf_error *e)
{
    if (device != 0)
        return dpf_fail(e, DPF_UNAVAILABLE, "backend 'cpu' has no device %d", device);
    struct dpf_cpu *own = dpf_calloc(1, sizeof *own);
    *take_context = own ? &own->base : NULL;
    return own ? DPF_OK : dpf_fail_memory(e);
}

static void cpu_close(struct dpf_context *context)
{
    if (!context)
        return;
    dpf_cpu_end_convolutions(context);
    for (int i = 0; i < DPF_CPU_SCRATCHES; i++)
        free(CPU->memory[i]);
    free(context);
}

static enum dpf_status cpu_finish(struct dpf_context *context, struct dpf_error *e)
{
    const char *failed = CPU->failed;
    CPU->failed = NULL;
    return failed ? dpf_fail(e, DPF_SYSTEM, "backend 'cpu': %s", failed) : DPF_OK;
}

static struct dpf_kernels table;

/* The reference's, for what there is nothing faster; then all that is. */
static void fill_table(void)
{
    table = dpf_kernels_ref;
    table.name = "cpu";
    table.open = cpu_open;
    table.close = cpu_close;
    table.finish = cpu_finish;
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
