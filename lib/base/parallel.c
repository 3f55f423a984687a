#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "base/banned.h"

int dpf_processors(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < 1 ? 1 : count;
}

struct piece {
    void (*work)(void *context, int number);
    void *context;
    int number;
};

static void *run_piece(void *argument)
{
    const struct piece *p = argument;
    p->work(p->context, p->number);
    return NULL;
}

void dpf_parallel(int threads, void (*work)(void *context, int number), void *context)
{
    struct piece pieces[DPF_PARALLEL_MOST];
    pthread_t ids[DPF_PARALLEL_MOST];
    bool started[DPF_PARALLEL_MOST] = {false};
    for (int i = 1; i < threads; i++) {
        pieces[i] = (struct piece){work, context, i};
        started[i] = pthread_create(&ids[i], NULL, run_piece, &pieces[i]) == 0;
    }
    work(context, 0);
    for (int i = 1; i < threads; i++)
        if (started[i])
            pthread_join(ids[i], NULL);
        else
            work(context, i);
}
