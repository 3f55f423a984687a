#include "base/parallel.h"

#include <sched.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/signals.h"

#include "base/banned.h"

int dpf_processors(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < 1 ? 1 : count;
}

/* Number 0 is the caller's; threads are numbered as they start. */
static void *serve(void *argument)
{
    struct dpf_thread_pool *c = argument;
    uint64_t seen = 0;
    pthread_mutex_lock(&c->lock);
    int number = ++c->started;
    while (true) {
        while (!c->stop && c->round == seen)
            pthread_cond_wait(&c->work, &c->lock);
        if (c->stop)
            break;
        seen = c->round;
        pthread_mutex_unlock(&c->lock);
        c->task(c->context, number);
        pthread_mutex_lock(&c->lock);
        if (--c->busy == 0)
            pthread_cond_signal(&c->done);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

enum dpf_status dpf_thread_pool_init(struct dpf_thread_pool *c, int threads,
                                     struct dpf_error *e)
{
    *c = (struct dpf_thread_pool){.threads = 1};
    c->ids = dpf_calloc((size_t)threads, sizeof *c->ids);
    if (!c->ids)
        return dpf_fail_memory(e);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->work, NULL);
    pthread_cond_init(&c->done, NULL);
    for (; c->threads < threads; c->threads++)
        if (dpf_thread_start(&c->ids[c->threads], serve, c) != 0) {
            dpf_thread_pool_release(c);
            return dpf_fail(e, DPF_SYSTEM, "cannot start %d threads", threads);
        }
    return DPF_OK;
}

void dpf_thread_pool_release(struct dpf_thread_pool *c)
{
    if (!c->ids)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->lock);
    for (int i = 1; i < c->threads; i++)
        pthread_join(c->ids[i], NULL);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->done);
    pthread_mutex_destroy(&c->lock);
    free(c->ids);
    *c = (struct dpf_thread_pool){0};
}

void dpf_thread_pool_run(struct dpf_thread_pool *c,
                         void (*task)(void *context, int number), void *context)
{
    pthread_mutex_lock(&c->lock);
    c->task = task;
    c->context = context;
    c->busy = c->threads - 1;
    c->round++;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->lock);
    task(context, 0);
    pthread_mutex_lock(&c->lock);
    while (c->busy > 0)
        pthread_cond_wait(&c->done, &c->lock);
    pthread_mutex_unlock(&c->lock);
}
