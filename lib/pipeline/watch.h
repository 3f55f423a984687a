/* Inside the runner: the children of a run and how they ended. */
#ifndef DPF_PIPELINE_WATCH_H
#define DPF_PIPELINE_WATCH_H

#include <sys/types.h>

#include "pipeline/board.h"
#include "pipeline/plan.h"

struct dpf_child {
    pid_t pid; /* 0: not started or ended */
    int wait_status;
    bool ended;
    bool told_to_stop; /* by us, so its failure is no cause */
    size_t order;      /* of ending */
};

/* Fork and exec one planned process. The parent's ends of its pipes are closed. */
enum dpf_status dpf_child_start(struct dpf_child *child, struct dpf_plan_process *process,
                                struct dpf_error *e);
/* Wait for all. As soon as one fails, or a signal tells us to stop, end the others. */
void dpf_children_watch(struct dpf_child *children, size_t count,
                        struct dpf_board *board);
/* A pause that the end of a child interrupts. */
void dpf_watch_pause(void);

/* The mpirun job: all processes as one MPMD application. */
enum dpf_status dpf_mpi_job_run(struct dpf_plan *plan, const char *mpirun_args,
                                struct dpf_board *board, struct dpf_error *e);

#endif
