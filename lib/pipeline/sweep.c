#include "pipeline/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "pipeline/results.h"

#include "base/banned.h"

enum { MAX_PIPELINE_BYTES = 1 << 20, MAX_AXES = 16 };

/* A parameter with several values. */
struct axis {
    char *name;
    char **values;
    size_t count, capacity;
};

struct axes {
    struct axis items[MAX_AXES];
    size_t count, points;
};

static void axes_release(struct axes *a)
{
    for (size_t i = 0; i < a->count; i++) {
        for (size_t k = 0; k < a->items[i].count; k++)
            free(a->items[i].values[k]);
        free(a->items[i].values);
        free(a->items[i].name);
    }
}

static enum dpf_status add_axis(struct axes *a, const struct dpf_param *p,
                                struct dpf_error *e)
{
    if (a->count == MAX_AXES)
        return dpf_fail(e, DPF_USAGE, "more than %d parameters have lists", MAX_AXES);
    struct axis *axis = &a->items[a->count++];
    char *copy = dpf_strdup(p->list), *rest = copy;
    *axis = (struct axis){.name = dpf_strdup(p->name)};
    for (char *value; copy && (value = strsep(&rest, ","));) {
        if (!dpf_grow(&axis->values, &axis->capacity, axis->count + 1,
                      sizeof *axis->values))
            break;
        axis->values[axis->count++] = dpf_strdup(value);
    }
    free(copy);
    if (!axis->name || !axis->count)
        return dpf_fail_memory(e);
    a->points *= axis->count;
    if (a->points > DPF_SWEEP_MAX_POINTS)
        return dpf_fail(e, DPF_USAGE, "the sweep has more than %d points",
                        DPF_SWEEP_MAX_POINTS);
    return DPF_OK;
}

static void show(const struct dpf_sweep *sweep, const struct dpf_plan *plan,
                 const char *dir)
{
    for (size_t i = 0; i < plan->pipeline->count; i++) {
        const struct dpf_plan_stream *s = &plan->streams[i];
        fprintf(sweep->out, "  %-14s %s/%s%s\n", plan->pipeline->statements[i].label, dir,
                dpf_path_base(s->path), s->reused ? "  (reused)" : "");
    }
}

/* Words that a shell would not take apart stay as they are. */
static void show_plan(const struct dpf_sweep *sweep, const struct dpf_plan *plan)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=.,:/@%";
    for (size_t i = 0; i < plan->process_count; i++) {
        struct dpf_text line = {0};
        for (size_t k = 0; k < plan->processes[i].argc; k++) {
            const char *word = plan->processes[i].argv[k];
            dpf_text_add(&line, k ? " " : "");
            if (*word && word[strspn(word, plain)] == '\0')
                dpf_text_add(&line, word);
            else
                dpf_text_add_quoted(&line, word);
        }
        fprintf(sweep->out, "%s\n", dpf_text_get(&line));
        dpf_text_release(&line);
    }
}

static enum dpf_status run_point(const struct dpf_sweep *sweep, const char *text,
                                 size_t size, const struct dpf_setting *settings,
                                 size_t count, const char *dir, const char *store,
                                 struct dpf_error *e)
{
    struct dpf_pipeline pipeline;
    struct dpf_plan plan = {0};
    enum dpf_status status = dpf_pipeline_parse(
        &pipeline, text, size, dpf_path_base(sweep->file), dir, settings, count, e);
    if (status != DPF_OK)
        return status;
    status = dpf_plan_make(
        &plan, &pipeline, sweep->plumbing, dir, store,
        sweep->dry_run ? sweep->fresh ? DPF_PLAN_DRY_FRESH : DPF_PLAN_DRY : DPF_PLAN_REAL,
        e);
    if (status == DPF_OK && sweep->dry_run)
        show_plan(sweep, &plan);
    else if (status == DPF_OK) {
        status = dpf_plan_run(&plan, &sweep->run, e);
        if (status == DPF_OK)
            status = dpf_plan_write_summary(&plan, e);
        if (status == DPF_OK)
            status = dpf_plan_write_metrics(&plan, e);
        if (status == DPF_OK)
            status = dpf_plan_write_account(&plan, e);
        if (status == DPF_OK && !sweep->run.quiet)
            show(sweep, &plan, dir);
    }
    dpf_plan_release(&plan);
    dpf_pipeline_release(&pipeline);
    return status;
}

/* A value may be a path, the name of a folder may not: as in a URL. */
static void add_file_name(struct dpf_text *name, const char *value)
{
    for (; *value; value++)
        if (*value == '/' || *value == '%')
            dpf_text_addf(name, "%%%02X", (unsigned)*value);
        else
            dpf_text_addn(name, value, 1);
}

/* Point number `point`: one value for each axis, the last axis changing fastest. */
static enum dpf_status run_numbered(const struct dpf_sweep *sweep, const char *text,
                                    size_t size, const struct axes *axes, size_t point,
                                    const char *dir, const char *store,
                                    struct dpf_error *e)
{
    size_t total = sweep->setting_count + axes->count;
    struct dpf_setting *settings = dpf_calloc(total, sizeof *settings);
    struct dpf_text name = {0};
    size_t count = 0;
    enum dpf_status status = settings ? DPF_OK : dpf_fail_memory(e);
    /* An axis stands behind its own list, and the last setting of a name counts. */
    for (; status == DPF_OK && count < sweep->setting_count; count++)
        settings[count] = sweep->settings[count];
    for (size_t i = 0, left = axes->points; status == DPF_OK && i < axes->count; i++) {
        const struct axis *axis = &axes->items[i];
        left /= axis->count;
        const char *value = axis->values[point / left % axis->count];
        settings[count++] = (struct dpf_setting){axis->name, value};
        dpf_text_addf(&name, "%s%s=", i ? "," : "", axis->name);
        add_file_name(&name, value);
    }
    char *point_dir =
        axes->count ? dpf_path_join(dir, dpf_text_get(&name)) : dpf_strdup(dir);
    if (status == DPF_OK && axes->count && !sweep->run.quiet)
        fprintf(sweep->out, "%s (%zu of %zu)\n", dpf_text_get(&name), point + 1,
                axes->points);
    if (status == DPF_OK)
        status = point_dir
                     ? run_point(sweep, text, size, settings, count, point_dir, store, e)
                     : dpf_fail_memory(e);
    if (status != DPF_OK && axes->count)
        dpf_error_prefix(e, status, "%s", dpf_text_get(&name));
    free(settings);
    free(point_dir);
    dpf_text_release(&name);
    return status;
}

static char *default_dir(const char *file)
{
    const char *base = dpf_path_base(file);
    size_t size = strlen(base);
    if (dpf_ends_with(base, ".pipe"))
        size -= strlen(".pipe");
    return dpf_format("runs/%.*s", (int)size, base);
}

/* Two runners in one directory would write the same files. */
static enum dpf_status lock_dir(const char *dir, int *lock, struct dpf_error *e)
{
    enum dpf_status status = dpf_make_dirs(dir, e);
    char *path = status == DPF_OK ? dpf_path_join(dir, ".lock") : NULL;
    if (status != DPF_OK)
        return status;
    *lock = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (*lock < 0)
        status = dpf_fail_errno(e, "cannot create '%s'", path ? path : dir);
    else if (flock(*lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        status = dpf_fail(e, DPF_SYSTEM, "another run is using '%s'", dir);
    free(path);
    return status;
}

enum dpf_status dpf_sweep_run(const struct dpf_sweep *sweep, struct dpf_error *e)
{
    char *text = NULL,
         *dir = sweep->dir ? dpf_strdup(sweep->dir) : default_dir(sweep->file);
    char *store = dir ? dpf_path_join(dir, ".store") : NULL;
    size_t size = 0;
    int lock = -1;
    struct axes axes = {.points = 1};
    struct dpf_pipeline pipeline;
    enum dpf_status status =
        store ? dpf_read_file(sweep->file, MAX_PIPELINE_BYTES, &text, &size, e)
              : dpf_fail_memory(e);
    /* Parsed once with the first value of each list, to learn which parameters have one.
     */
    if (status == DPF_OK)
        status = dpf_pipeline_parse(&pipeline, text, size, dpf_path_base(sweep->file),
                                    dir, sweep->settings, sweep->setting_count, e);
    if (status == DPF_OK) {
        for (size_t i = 0; status == DPF_OK && i < pipeline.param_count; i++)
            if (pipeline.params[i].list)
                status = add_axis(&axes, &pipeline.params[i], e);
        dpf_pipeline_release(&pipeline);
    }
    if (status == DPF_OK && !sweep->dry_run)
        status = lock_dir(dir, &lock, e);
    /* Emptied once: the points of a sweep still share what they have in common. */
    if (status == DPF_OK && sweep->fresh && !sweep->dry_run)
        dpf_store_prune(store, true);
    for (size_t i = 0; status == DPF_OK && i < axes.points; i++)
        status = run_numbered(sweep, text, size, &axes, i, dir, store, e);
    if (status == DPF_OK && !sweep->dry_run)
        dpf_store_prune(store, false);
    if (lock >= 0)
        close(lock);
    axes_release(&axes);
    free(text);
    free(store);
    free(dir);
    return status;
}
