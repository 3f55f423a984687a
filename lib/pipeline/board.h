/* What the user sees of a run: one live line for each stage on a terminal, plain lines
 * when a stage ends elsewhere. */
#ifndef DPF_PIPELINE_BOARD_H
#define DPF_PIPELINE_BOARD_H

#include <stdio.h>

#include "pipeline/plan.h"

enum dpf_row_state { DPF_ROW_RUNNING, DPF_ROW_DONE, DPF_ROW_FAILED };

struct dpf_board {
    const struct dpf_plan *plan;
    FILE *out;
    bool live, quiet;
    double start, last_drawn;
    int lines_drawn;
    enum dpf_row_state *states;
    double *ended;
};

enum dpf_status dpf_board_open(struct dpf_board *b, const struct dpf_plan *plan,
                               bool quiet, struct dpf_error *e);
void dpf_board_end_row(struct dpf_board *b, size_t process, enum dpf_row_state state);
/* Redraw if it is time to, or if `now`. */
void dpf_board_draw(struct dpf_board *b, bool now);
void dpf_board_release(struct dpf_board *b);

#endif
