#include "checkpoint.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "account/training.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "exchange/model_stream.h"

#include "base/banned.h"

static void identify(const struct dpf_training_run *run, const float *parameters,
                     struct dpf_checkpoint_identity *id)
{
    const struct dpf_training *t = run->training;
    struct dpf_fingerprint f;
    dpf_fingerprint_init(&f);
    dpf_fingerprint_add_string(&f, t->engine->model->text);
    dpf_fingerprint_hex(&f, id->network);
    dpf_fingerprint_init(&f);
    dpf_dataset_fingerprint(t->data, &f);
    dpf_fingerprint_hex(&f, id->data);
    id->settings = run->settings;
    dpf_fingerprint_init(&f);
    if (run->given_start)
        dpf_fingerprint_add(&f, parameters, t->engine->model->span * sizeof *parameters);
    dpf_fingerprint_hex(&f, id->start);
    id->threads = (uint64_t)t->engine->threads;
    id->microbatch = (uint64_t)t->engine->microbatch;
}

static void encode_identity(struct dpf_encoder *enc,
                            const struct dpf_checkpoint_identity *id)
{
    dpf_encode_key(enc, "identity");
    msgpack_pack_map(&enc->packer, 6);
    dpf_encode_key(enc, "network");
    dpf_encode_string(enc, id->network);
    dpf_encode_key(enc, "data");
    dpf_encode_string(enc, id->data);
    dpf_encode_key(enc, "start");
    dpf_encode_string(enc, id->start);
    dpf_encode_key(enc, "settings");
    dpf_encode_string(enc, id->settings);
    dpf_encode_key(enc, "threads");
    dpf_encode_uint(enc, id->threads);
    dpf_encode_key(enc, "microbatch");
    dpf_encode_uint(enc, id->microbatch);
}

/* The first option that a checkpoint has another value of, as " ('--rate' was 0.1)"; or
 * nothing, if it is no option that differs. */
static void name_difference(const char *own, const msgpack_object *theirs, char *out,
                            size_t size)
{
    out[0] = '\0';
    if (!theirs || theirs->type != MSGPACK_OBJECT_STR)
        return;
    const char *text = theirs->via.str.ptr, *end = text + theirs->via.str.size;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t line = (size_t)((stop ? stop : end) - text), own_line = strcspn(own, "\n");
        const char *space = memchr(text, ' ', line);
        if (line != own_line || memcmp(text, own, line) != 0) {
            if (space && line > 2 && memcmp(text, "--", 2) == 0)
                snprintf(out, size, " ('%.*s' was %.*s)", (int)(space - text), text,
                         (int)(text + line - space - 1), space + 1);
            for (; *out; out++) /* a file may hold anything; a terminal obeys */
                *out = iscntrl((unsigned char)*out) ? '?' : *out;
            return;
        }
        text += line + 1;
        own += own_line + (own[own_line] == '\n');
    }
}

static enum dpf_status check_identity(const struct dpf_checkpoint *c,
                                      const msgpack_object *frame, struct dpf_error *e)
{
    const msgpack_object *id = dpf_object_get(frame, "identity");
    const struct {
        const char *key, *own, *what;
    } parts[] = {{"network", c->id.network, "another architecture"},
                 {"data", c->id.data, "other data"},
                 {"start", c->id.start, "a training that started from other weights"},
                 {"settings", c->id.settings, "a training with other options"}};
    char difference[160] = "";
    if (!id || id->type != MSGPACK_OBJECT_MAP)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' is no checkpoint of a training",
                        c->path);
    name_difference(c->id.settings, dpf_object_get(id, "settings"), difference,
                    sizeof difference);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!dpf_object_is_string(dpf_object_get(id, parts[i].key), parts[i].own))
            return dpf_fail(e, DPF_USAGE,
                            "checkpoint '%s' is of %s%s: give another file, or remove it",
                            c->path, parts[i].what,
                            parts[i].own == c->id.settings ? difference : "");
    /* clipped gradients are added up as integers, the same for any number of threads */
    bool plain = c->training->plan.rule == DPF_CLIP_NONE;
    uint64_t threads = 0, microbatch = 0;
    const msgpack_object *was = dpf_object_get(id, "threads");
    const msgpack_object *piece = dpf_object_get(id, "microbatch");
    if (was && piece && dpf_object_uint(was, &threads) &&
        dpf_object_uint(piece, &microbatch) &&
        ((threads != c->id.threads && plain) || microbatch != c->id.microbatch))
        dpf_notice(
            "'%s' was made with %llu threads and microbatches of %llu: rounding, and "
            "so the last bits, will differ from a run that was not interrupted",
            c->path, (unsigned long long)threads, (unsigned long long)microbatch);
    return DPF_OK;
}

static enum dpf_status restore_state(void *context, const msgpack_object *frame,
                                     struct dpf_error *e)
{
    struct dpf_checkpoint *c = context;
    const msgpack_object *state = dpf_object_get(frame, "training");
    enum dpf_status status = check_identity(c, frame, e);
    if (status != DPF_OK)
        return status;
    if (!state || state->type != MSGPACK_OBJECT_MAP)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has no state of a training", c->path);
    status = dpf_training_decode(c->training, state, e);
    return status == DPF_OK ? DPF_OK : dpf_error_prefix(e, status, "'%s'", c->path);
}

static enum dpf_status load_checkpoint(struct dpf_checkpoint *c, struct dpf_error *e)
{
    struct dpf_model_stream m;
    if (!dpf_is_file(c->path))
        return DPF_OK;
    enum dpf_status status = dpf_model_stream_read(&m, c->path, restore_state, c, e);
    if (status != DPF_OK)
        return status;
    dpf_engine_put(c->training->engine, m.parameters);
    dpf_model_stream_release(&m);
    dpf_notice("going on from '%s': epoch %lld, step %lld", c->path,
               (long long)c->training->epoch + 1, (long long)c->training->step + 1);
    return DPF_OK;
}

/* One training a file: held until the end. */
static enum dpf_status lock_checkpoint(struct dpf_checkpoint *c, struct dpf_error *e)
{
    char *path = dpf_format("%s.lock", c->path);
    if (!path)
        return dpf_fail_memory(e);
    enum dpf_status status = DPF_OK;
    c->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (c->lock < 0)
        status = dpf_fail_errno(e, "cannot write '%s'", path);
    else if (flock(c->lock, LOCK_EX | LOCK_NB) != 0)
        status = dpf_fail(e, DPF_USAGE, "another training is using the checkpoint '%s'",
                          c->path);
    free(path);
    c->held = status == DPF_OK;
    return status;
}

/* Whoever does not hold the lock leaves its file to the one who does. */
static void unlock_checkpoint(struct dpf_checkpoint *c)
{
    char *path = c->held ? dpf_format("%s.lock", c->path) : NULL;
    if (path)
        unlink(path);
    free(path);
    if (c->lock >= 0)
        close(c->lock);
}

static enum dpf_status write_stream(struct dpf_checkpoint *c, struct dpf_stream_writer *w,
                                    struct dpf_error *e)
{
    struct dpf_safetensors weights = {0};
    struct dpf_header header = {0};
    enum dpf_status status = dpf_header_copy(&header, &c->header, e);
    if (status == DPF_OK && c->delta > 0)
        status = dpf_training_describe(c->training, c->delta, c->stage, &header, e);
    /* The weights are protected; the losses and counts beside them are not. */
    if (c->delta > 0) {
        header.is_private = true;
        header.is_protected = false;
    }
    if (status == DPF_OK)
        status = dpf_stream_write_header(w, &header, e);
    if (status == DPF_OK)
        status = dpf_model_stream_encode(&w->encoder, c->training->engine->model,
                                         c->parameters, 2, &weights, e);
    if (status == DPF_OK) {
        encode_identity(&w->encoder, &c->id);
        dpf_training_encode(&w->encoder, c->training);
        status = dpf_stream_write_encoded(w, e);
    }
    dpf_safetensors_release(&weights);
    if (status == DPF_OK)
        status = dpf_stream_writer_finish(w, e);
    dpf_header_release(&header);
    return status;
}

enum dpf_status dpf_checkpoint_save(struct dpf_checkpoint *c, struct dpf_error *e)
{
    struct dpf_stream_writer w;
    struct dpf_channel **channels = dpf_calloc(1, sizeof *channels);
    size_t span = c->training->engine->model->span;
    if (!channels)
        return dpf_fail_memory(e);
    dpf_engine_get(c->training->engine, c->parameters);
    for (size_t i = 0; i < span; i++)
        if (!isfinite(c->parameters[i])) {
            free(channels);
            return dpf_fail(e, DPF_SYSTEM,
                            "a parameter is not a finite number at step %lld of epoch "
                            "%lld: try a lower '--rate'",
                            (long long)c->training->step + 1,
                            (long long)c->training->epoch + 1);
        }
    enum dpf_status status = dpf_channel_open(c->path, DPF_WRITE, NULL, &channels[0], e);
    if (status != DPF_OK) {
        free(channels);
        return status;
    }
    status = dpf_stream_writer_init(&w, channels, 1, e);
    if (status != DPF_OK)
        return status;
    status = write_stream(c, &w, e);
    dpf_stream_writer_release(&w);
    return status;
}

enum dpf_status dpf_checkpoint_open(struct dpf_checkpoint *c,
                                    const struct dpf_training_run *run,
                                    const struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_training *t = run->training;
    *c = (struct dpf_checkpoint){.training = t,
                                 .path = run->checkpoint,
                                 .lock = -1,
                                 .delta = run->delta,
                                 .stage = s->info->name};
    enum dpf_status status = lock_checkpoint(c, e);
    c->parameters = dpf_calloc(t->engine->model->span + 1, sizeof *c->parameters);
    if (status == DPF_OK)
        status =
            c->parameters ? dpf_header_copy(&c->header, &s->out, e) : dpf_fail_memory(e);
    if (status != DPF_OK)
        return status;
    dpf_engine_get(t->engine, c->parameters);
    identify(run, c->parameters, &c->id);
    return load_checkpoint(c, e);
}

void dpf_checkpoint_release(struct dpf_checkpoint *c)
{
    unlock_checkpoint(c);
    dpf_header_release(&c->header);
    free(c->parameters);
}
