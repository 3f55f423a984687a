/* The frame around every program: a stage describes itself in a struct dpf_stage_info and
 * provides callbacks; dpf_stage_main() does the rest (options, help, endpoints, headers,
 * provenance, progress, errors, exit status), the same for all. */
#ifndef DPF_STAGE_STAGE_H
#define DPF_STAGE_STAGE_H

#include <stdio.h>

#include "base/digest.h"
#include "ledger/event.h"
#include "options/options.h"
#include "transport/transport.h"
#include "wire/stream.h"

struct dpf_stage;

enum dpf_stage_kind {
    DPF_FILTER,  /* stream in, stream out: on_batch changes each batch in place */
    DPF_SOURCE,  /* stream out: on_produce fills batches until one is empty */
    DPF_SINK,    /* stream in, text out (stage->text) */
    DPF_PROGRAM, /* neither: on_run */
};

struct dpf_stage_info {
    const char *name;
    const char *summary; /* as in stages.list */
    const char *reads, *writes, *privacy;
    const char *example; /* a shell line that a test runs */
    const char *detail;  /* further paragraphs of help, or NULL */
    /* Lists for help and manual that are made of tables, shown as they are; or NULL. */
    void (*add_tables)(struct dpf_text *out);
    const char *arguments; /* "DATASET", or NULL */
    /* What completion offers for them, a line each; or NULL. */
    void (*add_words)(struct dpf_text *out);
    size_t min_arguments, max_arguments;
    enum dpf_stage_kind kind;
    bool has_effects; /* does or depends on more than its options and input say (a network
                       * peer): a runner never takes an earlier result for it */
    bool is_exact; /* makes the same bytes of records on every machine, by every build */
    bool any_fields; /* of several inputs, only the ledgers have to go together */
    const struct dpf_option *options;
    void *state; /* what the callbacks find in stage->state */

    /* Each may be NULL. on_options checks the combination of options before anything is
     * opened. on_open sees stage->in and may change stage->out, the header to be sent.
     * on_close may still emit. on_release frees what the others made, always. */
    enum dpf_status (*on_options)(struct dpf_stage *s, struct dpf_error *e);
    enum dpf_status (*on_open)(struct dpf_stage *s, struct dpf_error *e);
    enum dpf_status (*on_batch)(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e);
    enum dpf_status (*on_produce)(struct dpf_stage *s, struct dpf_batch *b,
                                  struct dpf_error *e);
    enum dpf_status (*on_other)(struct dpf_stage *s, const msgpack_object *frame,
                                struct dpf_error *e);
    enum dpf_status (*on_close)(struct dpf_stage *s, struct dpf_error *e);
    enum dpf_status (*on_run)(struct dpf_stage *s, struct dpf_error *e);
    void (*on_finished)(struct dpf_stage *s); /* all outputs are complete */
    void (*on_release)(struct dpf_stage *s);
    /* Add what the result depends on besides options and streams (data files). */
    enum dpf_status (*on_fingerprint)(struct dpf_stage *s, struct dpf_fingerprint *f,
                                      struct dpf_error *e);
};

struct dpf_stage {
    const struct dpf_stage_info *info;
    void *state; /* the stage's own, as its description gave it */
    struct dpf_parsed parsed;
    const char *const *arguments;
    size_t argument_count;
    struct dpf_header in, out;
    bool no_input;        /* sinks: on_options set it: nothing is read */
    bool drops_others;    /* on_open set it: frames of other kinds are not passed on */
    bool out_deferred;    /* on_open set it: dpf_stage_begin() sends the header later */
    bool drafts;          /* what is written may never leave: its size is not shown */
    bool hides_arguments; /* on_open set it: they name people, or tell how many there are
                           */
    struct dpf_buffer deferred; /* frames to be passed on behind the deferred header */
    FILE *text;                 /* sinks and programs */
    uint64_t records_in, frames_in, bytes_in;
    unsigned streams_in;               /* how many streams were read to their ends */
    char digest_in[DPF_CHECKSUM_TEXT]; /* of the last of them */
    struct dpf_stream_writer writer;
    struct dpf_progress *progress;
};

/* Everything; returns the exit status. */
int dpf_stage_main(const struct dpf_stage_info *info, int argc, char **argv);

/* Send the deferred header. */
enum dpf_status dpf_stage_begin(struct dpf_stage *s, struct dpf_error *e);
/* Write a batch from on_close (or instead of the one in hand). Empty ones are dropped. */
enum dpf_status dpf_stage_emit(struct dpf_stage *s, const struct dpf_batch *b,
                               struct dpf_error *e);
/* What an endpoint option of a stage is opened with: keys and patience from the common
 * options. */
struct dpf_endpoint_options dpf_stage_endpoint_options(void);
/* Help, man page and completion of a stage, from its description. */
void dpf_stage_help(const struct dpf_stage_info *info, const struct dpf_option *common,
                    struct dpf_text *out);
void dpf_stage_man(const struct dpf_stage_info *info, const struct dpf_option *common,
                   struct dpf_text *out);

#endif
