/* Pipeline files (pipelines/FORMAT.md): text in, expanded statements out. Parameters are
 * substituted and copies made while parsing, so what comes out is plain: named streams,
 * each a row of commands whose words are text or references to earlier streams. */
#ifndef DPF_PIPELINE_PARSE_H
#define DPF_PIPELINE_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* A parameter's value from the command line. Commas make a list, unless the value is in
 * double quotes, which are taken off. */
struct dpf_setting {
    const char *name, *value;
};

struct dpf_param {
    char *name;
    char *value; /* what $name stands for; of a list, its first value */
    char *list;  /* "0.25,0.5,1" if it is one: a sweep; else NULL */
    int line;
};

struct dpf_word {
    char *text;      /* expanded; NULL for a reference */
    size_t *streams; /* a reference: the streams it names */
    size_t stream_count;
};

struct dpf_command {
    int line;
    struct dpf_word *words; /* words[0] is the stage */
    size_t count, capacity;
};

struct dpf_statement {
    char *name;  /* "bits" */
    char *label; /* "bits", or "teacher[3]" */
    int line;
    struct dpf_word input; /* what the first command reads; no streams: a source */
    struct dpf_command *commands;
    size_t count, capacity;
    bool is_output;
};

struct dpf_pipeline {
    char *file; /* for messages */
    struct dpf_param *params;
    size_t param_count, param_capacity;
    struct dpf_statement *statements;
    size_t count, capacity;
};

enum {
    DPF_PIPELINE_MAX_COPIES = 4096,
    DPF_PIPELINE_MAX_COMMANDS = 65536,
    DPF_PIPELINE_MAX_REFERENCES = 1 << 20,
    DPF_PIPELINE_MAX_VALUE = 65536,
};

/* Parse `text`. Every mistake is DPF_USAGE "FILE:LINE: what". A setting that no `param`
 * declares is one too. Streams can only be read after they were made, so there are no
 * cycles. Release after success only. `run_dir` is what $run stands for. */
enum dpf_status dpf_pipeline_parse(struct dpf_pipeline *p, const char *text, size_t size,
                                   const char *file, const char *run_dir,
                                   const struct dpf_setting *settings,
                                   size_t setting_count, struct dpf_error *e);
void dpf_pipeline_release(struct dpf_pipeline *p);

#endif
