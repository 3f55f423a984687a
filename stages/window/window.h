/* What the files of `window` share: its options, and the fields. */
#ifndef DPF_STAGE_WINDOW_H
#define DPF_STAGE_WINDOW_H

#include "data/history.h"
#include "stage/stage.h"

struct dpf_windowing {
    /* what the user asked for, then what it takes */
    const char *times, *person, *time, *field, *label, *links, *rise;
    const char *predict, *missing;
    int64_t length, every, friends;
    struct dpf_history_rule rule;
    struct dpf_history *history;
};

/* Whether the input has the fields that the options name; completes v->rule. */
enum dpf_status dpf_window_check_fields(struct dpf_windowing *v, struct dpf_stage *s,
                                        struct dpf_error *e);
/* x and y of the output, with names and bounds. */
enum dpf_status dpf_window_declare_fields(const struct dpf_windowing *v,
                                          struct dpf_stage *s, struct dpf_error *e);
/* Read --links into v->history. Links that are not public are DPF_PRIVACY. */
enum dpf_status dpf_window_read_links(struct dpf_windowing *v, struct dpf_error *e);

#endif
