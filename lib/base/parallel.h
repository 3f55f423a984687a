/* A piece of work on several threads at once, for stages without threads of their own. */
#ifndef DPF_BASE_PARALLEL_H
#define DPF_BASE_PARALLEL_H

/* Processors that this process may use; at least 1. */
int dpf_processors(void);

enum { DPF_PARALLEL_MOST = 64 };
/* Call `work` with each number below `threads` (at most DPF_PARALLEL_MOST), at the same
 * time as far as threads can be had; return when all are done. */
void dpf_parallel(int threads, void (*work)(void *context, int number), void *context);

#endif
