#include "pipeline/board.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/text.h"

#include "base/banned.h"

enum dpf_status dpf_board_open(struct dpf_board *b, const struct dpf_plan *plan,
                               bool quiet, struct dpf_error *e)
{
    *b = (struct dpf_board){
        .plan = plan, .out = stderr, .quiet = quiet, .start = dpf_clock_seconds()};
    b->states = dpf_calloc(plan->process_count, sizeof *b->states);
    b->ended = dpf_calloc(plan->process_count, sizeof *b->ended);
    if (!b->states || !b->ended) {
        dpf_board_release(b);
        return dpf_fail_memory(e);
    }
    struct winsize size;
    /* A screen that is too small for all lines would scroll: plain lines then. */
    b->live = !quiet && isatty(STDERR_FILENO) &&
              ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 &&
              plan->process_count + 1 < size.ws_row;
    return DPF_OK;
}

static void print_row(struct dpf_board *b, size_t i)
{
    const struct dpf_plan_process *p = &b->plan->processes[i];
    struct dpf_counters now = {0};
    char records[40], bytes[32], eta[40] = "";
    bool running = b->states[i] == DPF_ROW_RUNNING;
    double seconds = (running ? dpf_clock_seconds() : b->ended[i]) - b->start;
    dpf_progress_read(p->status_path, &now);
    dpf_format_count(records, sizeof records, now.records);
    dpf_format_bytes(bytes, sizeof bytes, (double)now.bytes);
    double rate = seconds > 0 ? (double)now.records / seconds : 0;
    if (running && now.total > now.records && rate > 0)
        snprintf(eta, sizeof eta, "%3.0f %%, %.0f s left",
                 100 * (double)now.records / (double)now.total,
                 (double)(now.total - now.records) / rate);
    const char *state = running ? eta : b->states[i] == DPF_ROW_DONE ? "done" : "failed";
    fprintf(b->out, "  %-14s %-12s %12s records %10.3g/s %10s %6.1f s  %s",
            b->plan->pipeline->statements[p->statement].label, p->stage, records, rate,
            bytes, seconds, state);
}

void dpf_board_draw(struct dpf_board *b, bool now)
{
    double t = dpf_clock_seconds();
    if (!b->live || (!now && t - b->last_drawn < 0.1))
        return;
    b->last_drawn = t;
    if (b->lines_drawn)
        fprintf(b->out, "\033[%dA", b->lines_drawn);
    for (size_t i = 0; i < b->plan->process_count; i++) {
        fprintf(b->out, "\r\033[K");
        print_row(b, i);
        fputc('\n', b->out);
    }
    b->lines_drawn = (int)b->plan->process_count;
    fflush(b->out);
}

void dpf_board_end_row(struct dpf_board *b, size_t i, enum dpf_row_state state)
{
    b->states[i] = state;
    b->ended[i] = dpf_clock_seconds();
    if (b->quiet || b->live)
        return;
    print_row(b, i);
    fputc('\n', b->out);
}

void dpf_board_release(struct dpf_board *b)
{
    free(b->states);
    free(b->ended);
    b->states = NULL;
    b->ended = NULL;
}
