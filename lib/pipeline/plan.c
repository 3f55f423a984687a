#include "pipeline/plan.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "pipeline/capture.h"
#include "pipeline/stages.h"
#include "random/seeded.h"

#include "base/banned.h"

char *dpf_plan_process_name(const struct dpf_plan *plan,
                            const struct dpf_plan_process *process)
{
    return dpf_format("%s:%d: '%s': %s", plan->pipeline->file, process->line,
                      plan->pipeline->statements[process->statement].label,
                      process->stage);
}

/* ------------------------------------------------------------------ fingerprints */

struct arguments {
    char **items;
    size_t count, capacity;
};

static bool add_argument(struct arguments *a, char *take_text)
{
    if (!take_text ||
        !dpf_grow(&a->items, &a->capacity, a->count + 2, sizeof *a->items)) {
        free(take_text);
        return false;
    }
    a->items[a->count++] = take_text;
    a->items[a->count] = NULL;
    return true;
}

static void arguments_release(struct arguments *a)
{
    for (size_t i = 0; i < a->count; i++)
        free(a->items[i]);
    free(a->items);
    *a = (struct arguments){0};
}

/* What a stage answered to --fingerprint: lines "side-effects", then "KIND HEX". */
static enum dpf_status read_answer(const char *answer, struct dpf_plan_stream *s,
                                   bool first, bool last, struct dpf_fingerprint *f,
                                   const char *where, struct dpf_error *e)
{
    while (dpf_starts_with(answer, "side-effects\n")) {
        s->side_effects = true;
        answer += strlen("side-effects\n");
    }
    bool text = dpf_starts_with(answer, "text "),
         source = dpf_starts_with(answer, "source ");
    if (!text && !source && !dpf_starts_with(answer, "stream "))
        return dpf_fail(e, DPF_UNAVAILABLE, "%s: does not say what its result depends on",
                        where);
    if (source && !first)
        return dpf_fail(e, DPF_USAGE,
                        "%s: reads no stream, so it can only be the first "
                        "stage of a line",
                        where);
    if (!source && first)
        return dpf_fail(e, DPF_USAGE, "%s: needs a stream to read: '@NAME | ...'", where);
    if (text && !last)
        return dpf_fail(e, DPF_USAGE, "%s: writes text, so it can only be the last stage",
                        where);
    s->text = text;
    dpf_fingerprint_add_string(f, answer);
    return DPF_OK;
}

static enum dpf_status fingerprint_command(struct dpf_plan *plan, size_t statement,
                                           size_t index, struct dpf_fingerprint *f,
                                           struct dpf_error *e)
{
    const struct dpf_statement *s = &plan->pipeline->statements[statement];
    const struct dpf_command *command = &s->commands[index];
    struct arguments argv = {0};
    struct dpf_text out = {0}, err = {0};
    char *where = dpf_format("%s:%d: '%s': %s", plan->pipeline->file, command->line,
                             s->label, command->words[0].text);
    bool good = where && add_argument(&argv, dpf_stage_path(command->words[0].text));
    for (size_t i = 1; good && i < command->count; i++) {
        const struct dpf_word *w = &command->words[i];
        if (w->text)
            good = add_argument(&argv, dpf_strdup(w->text));
        for (size_t k = 0; good && k < w->stream_count; k++) {
            if (k && dpf_starts_with(argv.items[argv.count - 2], "--"))
                good = add_argument(&argv, dpf_strdup(argv.items[argv.count - 2]));
            good =
                good &&
                add_argument(&argv, dpf_format("@%s", plan->streams[w->streams[k]].key));
        }
    }
    good = good && add_argument(&argv, dpf_strdup("--fingerprint"));
    int exit_status = 0;
    enum dpf_status status =
        good ? dpf_capture(argv.items, &out, &err, &exit_status, e) : dpf_fail_memory(e);
    if (status == DPF_OK && exit_status != 0) {
        const char *said = dpf_text_get(&err);
        size_t size = strcspn(said, "\n");
        const char *colon = strstr(said, ": "); /* its own name stands in `where` */
        if (colon && (size_t)(colon - said) < size) {
            size -= (size_t)(colon + 2 - said);
            said = colon + 2;
        }
        status = dpf_fail(e,
                          exit_status <= DPF_UNAVAILABLE ? (enum dpf_status)exit_status
                                                         : DPF_UNAVAILABLE,
                          "%s: %.*s", where, (int)size, said);
    }
    if (status == DPF_OK)
        status = read_answer(dpf_text_get(&out), &plan->streams[statement],
                             index == 0 && !s->input.stream_count, index + 1 == s->count,
                             f, where, e);
    free(where);
    arguments_release(&argv);
    dpf_text_release(&out);
    dpf_text_release(&err);
    return status;
}

/* A stream can be read if it is one. */
static enum dpf_status check_inputs(const struct dpf_plan *plan,
                                    const struct dpf_statement *s,
                                    const struct dpf_word *w, int line,
                                    struct dpf_error *e)
{
    for (size_t i = 0; i < w->stream_count; i++)
        if (plan->streams[w->streams[i]].text)
            return dpf_fail(e, DPF_USAGE, "%s:%d: '%s' reads '%s', which is text",
                            plan->pipeline->file, line, s->label,
                            plan->pipeline->statements[w->streams[i]].label);
    return DPF_OK;
}

static enum dpf_status fingerprint_statement(struct dpf_plan *plan, size_t index,
                                             struct dpf_error *e)
{
    const struct dpf_statement *s = &plan->pipeline->statements[index];
    struct dpf_fingerprint f;
    enum dpf_status status = check_inputs(plan, s, &s->input, s->line, e);
    dpf_fingerprint_init(&f);
    for (size_t i = 0; i < s->input.stream_count; i++)
        dpf_fingerprint_add_string(&f, plan->streams[s->input.streams[i]].key);
    for (size_t i = 0; status == DPF_OK && i < s->count; i++) {
        for (size_t k = 0; status == DPF_OK && k < s->commands[i].count; k++)
            status =
                check_inputs(plan, s, &s->commands[i].words[k], s->commands[i].line, e);
        if (status == DPF_OK)
            status = fingerprint_command(plan, index, i, &f, e);
    }
    /* Files of its own make two otherwise equal statements different, and so does noise:
     * copies of a statement that spends privacy are independent draws. */
    bool distinct = plan->streams[index].side_effects;
    for (size_t i = 0; i < s->count; i++)
        distinct =
            distinct || dpf_stage_find(s->commands[i].words[0].text)->spends_privacy;
    if (distinct)
        dpf_fingerprint_add_string(&f, s->label);
    if (plan->streams[index].side_effects) {
        /* it runs again, and what comes of it may differ: so may all that reads it */
        uint64_t *once = &plan->streams[index].once;
        *once = *once ? *once : dpf_random_seed();
        dpf_fingerprint_add(&f, once, sizeof *once);
    }
    dpf_fingerprint_hex(&f, plan->streams[index].key);
    return status;
}

/* ------------------------------------------------------------------------- files */

static const char *ending(const struct dpf_statement *s, const struct dpf_plan_stream *ps)
{
    const struct dpf_command *last = &s->commands[s->count - 1];
    for (size_t i = 1; ps->text && i < last->count; i++)
        if (last->words[i].text && strcmp(last->words[i].text, "--json") == 0)
            return "json";
    return ps->text ? "txt" : "mp";
}

/* "teacher[3]" is stored as teacher.3.mp: brackets are a nuisance in a shell. */
static char *file_name(const struct dpf_statement *s, const char *end)
{
    const char *bracket = strchr(s->label, '[');
    if (!bracket)
        return dpf_format("%s.%s", s->label, end);
    return dpf_format("%s.%.*s.%s", s->name, (int)strcspn(bracket + 1, "]"), bracket + 1,
                      end);
}

static enum dpf_status place_streams(struct dpf_plan *plan, bool fresh,
                                     struct dpf_error *e)
{
    for (size_t i = 0; i < plan->pipeline->count; i++) {
        const struct dpf_statement *s = &plan->pipeline->statements[i];
        struct dpf_plan_stream *ps = &plan->streams[i];
        const char *end = ending(s, ps);
        char *name = file_name(s, end);
        ps->stored = dpf_format("%s/%s.%s", plan->store, ps->key, end);
        ps->path = name ? dpf_path_join(plan->run_dir, name) : NULL;
        free(name);
        if (!ps->stored || !ps->path)
            return dpf_fail_memory(e);
        ps->reused = !fresh && !ps->side_effects && dpf_is_file(ps->stored);
        for (size_t k = 0; k < i && !ps->reused; k++)
            if (strcmp(plan->streams[k].key, ps->key) == 0)
                ps->reused = ps->twin = plan->streams[k].has_twin = true;
    }
    return DPF_OK;
}

/* Direct streams: exactly one reader among the statements that will run, by its standard
 * input. */
static enum dpf_status choose_direct(struct dpf_plan *plan, struct dpf_error *e)
{
    size_t count = plan->pipeline->count;
    size_t *readers = dpf_calloc(count, sizeof *readers);
    size_t *by_input = dpf_calloc(count, sizeof *by_input);
    if (!readers || !by_input) {
        free(readers);
        free(by_input);
        return dpf_fail_memory(e);
    }
    for (size_t i = 0; i < count; i++) {
        const struct dpf_statement *s = &plan->pipeline->statements[i];
        if (plan->streams[i].reused)
            continue;
        for (size_t k = 0; k < s->input.stream_count; k++) {
            readers[s->input.streams[k]]++;
            by_input[s->input.streams[k]]++;
        }
        for (size_t c = 0; c < s->count; c++)
            for (size_t w = 0; w < s->commands[c].count; w++)
                for (size_t k = 0; k < s->commands[c].words[w].stream_count; k++)
                    readers[s->commands[c].words[w].streams[k]]++;
    }
    for (size_t i = 0; i < count; i++) {
        struct dpf_plan_stream *ps = &plan->streams[i];
        ps->direct = !ps->reused && !ps->has_twin && readers[i] == 1 && by_input[i] == 1;
        if (ps->direct)
            ps->edge = plan->edge_count++;
    }
    free(readers);
    free(by_input);
    return DPF_OK;
}

/* --------------------------------------------------------------------- processes */

/* Both ends of an edge; pipes are made when the writer is planned, and kept here until
 * the reader takes its end. */
struct edges {
    int (*pipes)[2];
    size_t capacity;
};

static bool add_text(struct dpf_plan_process *p, char *take_text)
{
    struct arguments a = {p->argv, p->argc, p->argv_capacity};
    bool good = add_argument(&a, take_text);
    p->argv = a.items;
    p->argc = a.count;
    p->argv_capacity = a.capacity;
    return good;
}

static bool add_pair(struct dpf_plan_process *p, const char *option, char *take_value)
{
    if (!add_text(p, dpf_strdup(option))) {
        free(take_value);
        return false;
    }
    return add_text(p, take_value);
}

static enum dpf_status open_edge(struct dpf_plan *plan, struct edges *edges,
                                 unsigned edge, struct dpf_error *e)
{
    size_t old = edges->capacity;
    if (!dpf_grow(&edges->pipes, &edges->capacity, edge + 1, sizeof *edges->pipes))
        return dpf_fail_memory(e);
    for (size_t i = old; i < edges->capacity; i++)
        edges->pipes[i][0] = edges->pipes[i][1] = -1;
    if (plan->plumbing == DPF_PLUMB_PIPE && edges->pipes[edge][0] < 0 &&
        pipe2(edges->pipes[edge], O_CLOEXEC) != 0)
        return dpf_fail_errno(e, "cannot make a pipe");
    return DPF_OK;
}

/* The name of an edge that is no pipe. */
static char *edge_endpoint(const struct dpf_plan *plan, unsigned edge)
{
    return plan->plumbing == DPF_PLUMB_ZMQ
               ? dpf_format("ipc://%s/%u", plan->sockets ? plan->sockets : "DIR", edge)
               : dpf_format("mpi:%u", edge);
}

static enum dpf_status write_edge(struct dpf_plan *plan, struct edges *edges,
                                  unsigned edge, struct dpf_plan_process *p,
                                  struct dpf_error *e)
{
    enum dpf_status status = open_edge(plan, edges, edge, e);
    if (status != DPF_OK)
        return status;
    bool good;
    if (plan->plumbing == DPF_PLUMB_PIPE) {
        p->stdout_fd = edges->pipes[edge][1];
        good = add_pair(p, "-o", dpf_strdup("-"));
    } else {
        good = add_pair(p, "-o", edge_endpoint(plan, edge));
    }
    return good ? DPF_OK : dpf_fail_memory(e);
}

static enum dpf_status read_edge(struct dpf_plan *plan, struct edges *edges,
                                 unsigned edge, bool only, struct dpf_plan_process *p,
                                 struct dpf_error *e)
{
    enum dpf_status status = open_edge(plan, edges, edge, e);
    if (status != DPF_OK)
        return status;
    bool good;
    if (plan->plumbing == DPF_PLUMB_PIPE) {
        int fd = edges->pipes[edge][0];
        if (only) {
            p->stdin_fd = fd;
            good = add_pair(p, "-i", dpf_strdup("-"));
        } else {
            int *grown = realloc(p->more_fds, (p->more_count + 1) * sizeof *grown);
            if (!grown)
                return dpf_fail_memory(e);
            p->more_fds = grown;
            p->more_fds[p->more_count++] = fd;
            good = add_pair(p, "-i", dpf_format("fd:%d", fd));
        }
    } else {
        good = add_pair(p, "-i", edge_endpoint(plan, edge));
    }
    return good ? DPF_OK : dpf_fail_memory(e);
}

/* Where a stream that does not flow directly is read. */
static char *file_endpoint(const struct dpf_plan_stream *ps)
{
    return ps->reused && !ps->twin ? dpf_strdup(ps->stored)
                                   : dpf_format("follow:%s", ps->stored);
}

static enum dpf_status add_inputs(struct dpf_plan *plan, struct edges *edges,
                                  const struct dpf_statement *s,
                                  struct dpf_plan_process *p, struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    for (size_t i = 0; status == DPF_OK && i < s->input.stream_count; i++) {
        const struct dpf_plan_stream *from = &plan->streams[s->input.streams[i]];
        if (from->direct)
            status = read_edge(plan, edges, from->edge, s->input.stream_count == 1, p, e);
        else if (!add_pair(p, "-i", file_endpoint(from)))
            status = dpf_fail_memory(e);
    }
    return status;
}

static bool add_words(struct dpf_plan *plan, const struct dpf_command *command,
                      struct dpf_plan_process *p)
{
    bool good = add_text(p, dpf_stage_path(command->words[0].text));
    for (size_t i = 1; good && i < command->count; i++) {
        const struct dpf_word *w = &command->words[i];
        if (w->text)
            good = add_text(p, dpf_strdup(w->text));
        for (size_t k = 0; good && k < w->stream_count; k++) {
            /* --model @all[*]: the option is given once for each */
            if (k && dpf_starts_with(p->argv[p->argc - 2], "--"))
                good = add_text(p, dpf_strdup(p->argv[p->argc - 2]));
            good = good && add_text(p, file_endpoint(&plan->streams[w->streams[k]]));
        }
    }
    return good;
}

static enum dpf_status plan_command(struct dpf_plan *plan, struct edges *edges,
                                    size_t statement, size_t index, unsigned *chain_edge,
                                    struct dpf_error *e)
{
    const struct dpf_statement *s = &plan->pipeline->statements[statement];
    const struct dpf_plan_stream *ps = &plan->streams[statement];
    if (!dpf_grow(&plan->processes, &plan->process_capacity, plan->process_count + 1,
                  sizeof *plan->processes))
        return dpf_fail_memory(e);
    size_t number = plan->process_count++;
    struct dpf_plan_process *p = &plan->processes[number];
    *p = (struct dpf_plan_process){.statement = statement,
                                   .command = index,
                                   .stage = s->commands[index].words[0].text,
                                   .line = s->commands[index].line,
                                   .stdin_fd = -1,
                                   .stdout_fd = -1};
    p->status_path = dpf_format("%s/%zu.status", plan->work, number);
    p->log_path = dpf_format("%s/%zu.%s.log", plan->work, number, p->stage);
    if (!p->status_path || !p->log_path || !add_words(plan, &s->commands[index], p))
        return dpf_fail_memory(e);
    enum dpf_status status = index ? read_edge(plan, edges, *chain_edge, true, p, e)
                                   : add_inputs(plan, edges, s, p, e);
    if (status != DPF_OK)
        return status;
    if (index + 1 < s->count) {
        *chain_edge = plan->edge_count++;
        return write_edge(plan, edges, *chain_edge, p, e);
    }
    if (!add_pair(p, "-o", dpf_strdup(ps->stored)))
        return dpf_fail_memory(e);
    return ps->direct ? write_edge(plan, edges, ps->edge, p, e) : DPF_OK;
}

static enum dpf_status plan_processes(struct dpf_plan *plan, struct dpf_error *e)
{
    struct edges edges = {0};
    enum dpf_status status = DPF_OK;
    for (size_t i = 0; status == DPF_OK && i < plan->pipeline->count; i++) {
        unsigned chain_edge = 0;
        for (size_t c = 0; status == DPF_OK && !plan->streams[i].reused &&
                           c < plan->pipeline->statements[i].count;
             c++)
            status = plan_command(plan, &edges, i, c, &chain_edge, e);
    }
    free(edges.pipes); /* the processes hold the descriptors now */
    return status;
}

/* -------------------------------------------------------------------------- plan */

static enum dpf_status make_folders(struct dpf_plan *plan, struct dpf_error *e)
{
    enum dpf_status status = dpf_make_dirs(plan->run_dir, e);
    if (status == DPF_OK)
        status = dpf_make_dirs(plan->store, e);
    if (status == DPF_OK) {
        dpf_remove_tree(plan->work);
        status = dpf_make_dirs(plan->work, e);
    }
    if (status != DPF_OK || plan->plumbing != DPF_PLUMB_ZMQ)
        return status;
    /* Socket paths are limited to about 100 bytes, commas end them in an endpoint, and
     * the folder keeps others out. */
    const char *tmp = getenv("TMPDIR");
    if (!tmp || !*tmp || strlen(tmp) > 60 || strchr(tmp, ','))
        tmp = "/tmp";
    plan->sockets = dpf_format("%s/dpflow-XXXXXX", tmp);
    if (!plan->sockets || !mkdtemp(plan->sockets))
        return dpf_fail_errno(e, "cannot create a folder for sockets");
    return DPF_OK;
}

static char *absolute(const char *path)
{
    if (*path == '/')
        return dpf_strdup(path);
    char *here = getcwd(NULL, 0), *whole = here ? dpf_path_join(here, path) : NULL;
    free(here);
    return whole;
}

enum dpf_status dpf_plan_make(struct dpf_plan *plan, const struct dpf_pipeline *pipeline,
                              enum dpf_plumbing plumbing, const char *run_dir,
                              const char *store, enum dpf_plan_mode mode,
                              struct dpf_error *e)
{
    *plan = (struct dpf_plan){.pipeline = pipeline, .plumbing = plumbing};
    plan->run_dir = absolute(run_dir);
    plan->store = absolute(store);
    plan->work = plan->run_dir ? dpf_path_join(plan->run_dir, ".work") : NULL;
    plan->streams = dpf_calloc(pipeline->count, sizeof *plan->streams);
    if (!plan->run_dir || !plan->store || !plan->work || !plan->streams)
        return dpf_fail_memory(e);
    enum dpf_status status = DPF_OK;
    dpf_raise_descriptor_limit(); /* every edge of a pipe run takes two until its
                                   * processes have started */
    for (size_t i = 0; status == DPF_OK && i < pipeline->count; i++)
        status = fingerprint_statement(plan, i, e);
    if (status == DPF_OK && mode == DPF_PLAN_REAL)
        status = make_folders(plan, e);
    if (status == DPF_OK)
        status = place_streams(plan, mode == DPF_PLAN_DRY_FRESH, e);
    if (status == DPF_OK)
        status = choose_direct(plan, e);
    if (status == DPF_OK)
        status = plan_processes(plan, e);
    return status;
}

enum dpf_status dpf_plan_verify(struct dpf_plan *plan, struct dpf_error *e)
{
    for (size_t i = 0; i < plan->pipeline->count; i++) {
        struct dpf_plan_stream *s = &plan->streams[i];
        char planned[sizeof s->key];
        if (s->reused)
            continue;
        memcpy(planned, s->key, sizeof planned);
        enum dpf_status status = fingerprint_statement(plan, i, e);
        bool same = strcmp(planned, s->key) == 0;
        memcpy(s->key, planned, sizeof planned);
        if (status == DPF_OK && !same)
            status = dpf_fail(e, DPF_SYSTEM,
                              "%s:%d: a file that '%s' depends on changed during the run",
                              plan->pipeline->file, plan->pipeline->statements[i].line,
                              plan->pipeline->statements[i].label);
        if (status != DPF_OK) {
            dpf_plan_discard(plan);
            return status;
        }
    }
    return DPF_OK;
}

void dpf_plan_discard(const struct dpf_plan *plan)
{
    for (size_t i = 0; i < plan->pipeline->count; i++)
        if (!plan->streams[i].reused)
            unlink(plan->streams[i].stored);
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void dpf_plan_release(struct dpf_plan *plan)
{
    for (size_t i = 0; i < plan->process_count; i++) {
        struct dpf_plan_process *p = &plan->processes[i];
        close_fd(p->stdin_fd);
        close_fd(p->stdout_fd);
        for (size_t k = 0; k < p->more_count; k++)
            close_fd(p->more_fds[k]);
        for (size_t k = 0; k < p->argc; k++)
            free(p->argv[k]);
        free(p->argv);
        free(p->more_fds);
        free(p->status_path);
        free(p->log_path);
    }
    for (size_t i = 0; plan->streams && i < plan->pipeline->count; i++) {
        free(plan->streams[i].stored);
        free(plan->streams[i].path);
    }
    if (plan->sockets)
        dpf_remove_tree(plan->sockets);
    free(plan->processes);
    free(plan->streams);
    free(plan->sockets);
    free(plan->work);
    free(plan->store);
    free(plan->run_dir);
    *plan = (struct dpf_plan){0};
}
