/* The stages there are (stages/stages.list), and where their programs lie. */
#ifndef DPF_PIPELINE_STAGES_H
#define DPF_PIPELINE_STAGES_H

#include <stdbool.h>

struct dpf_stage_entry {
    const char *name;
    bool spends_privacy;
    const char *summary;
};

/* Ended by an entry without a name. */
extern const struct dpf_stage_entry dpf_stage_entries[];
const struct dpf_stage_entry *dpf_stage_find(const char *name);
/* The nearest known name to a misspelled one, or NULL. */
const char *dpf_stage_nearest(const char *name);
/* The path of a stage's program, heap: beside this one, or in ../libexec/dpflow. */
char *dpf_stage_path(const char *name);

#endif
