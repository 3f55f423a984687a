/* The thread pool: a piece of work on several threads at once. */
#ifndef DPF_BASE_PARALLEL_H
#define DPF_BASE_PARALLEL_H

#include <pthread.h>
#include <stdint.h>

#include "base/status.h"

/* Processors that this process may use; at least 1. */
int dpf_processors(void);

/* Threads that wait for work: starting them for every batch would cost as much as a small
 * batch takes. */
struct dpf_thread_pool {
    int threads; /* the caller's own is one of them */
    pthread_t *ids;
    int started;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    void (*task)(void *context, int number);
    void *context;
    uint64_t round; /* pieces of work given out */
    int busy;
    bool stop;
};

/* DPF_SYSTEM if threads cannot be had; release after success only. */
enum dpf_status dpf_thread_pool_init(struct dpf_thread_pool *c, int threads,
                                     struct dpf_error *e);
void dpf_thread_pool_release(struct dpf_thread_pool *c);
/* Call `task` with each number below c->threads, at the same time; return when all are
 * done. */
void dpf_thread_pool_run(struct dpf_thread_pool *c,
                         void (*task)(void *context, int number), void *context);

#endif
