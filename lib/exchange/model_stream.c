#include "exchange/model_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "ledger/merge.h"
#include "nn/initialise.h"

#include "base/banned.h"

static enum dpf_status take_frame(struct dpf_model_stream *m, const char *endpoint,
                                  const msgpack_object *frame, struct dpf_error *e)
{
    if (!dpf_object_is_string(dpf_object_get(frame, "type"), "model"))
        return DPF_OK;
    if (m->parameters)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' holds more than one model", endpoint);
    enum dpf_status status = dpf_weights_decode(frame, &m->model, &m->parameters, e);
    return status == DPF_OK ? DPF_OK : dpf_error_prefix(e, status, "'%s'", endpoint);
}

enum dpf_status dpf_model_stream_read(struct dpf_model_stream *m, const char *endpoint,
                                      enum dpf_status (*on_frame)(void *context,
                                                                  const msgpack_object *f,
                                                                  struct dpf_error *e),
                                      void *context, struct dpf_error *e)
{
    struct dpf_endpoint_options options = dpf_stage_endpoint_options();
    struct dpf_stream_reader reader = {0};
    struct dpf_channel *channel;
    enum dpf_item item = DPF_ITEM_BATCH;
    *m = (struct dpf_model_stream){0};
    enum dpf_status status = dpf_channel_open(endpoint, DPF_READ, &options, &channel, e);
    if (status != DPF_OK)
        return status;
    status = dpf_stream_reader_open(&reader, channel, dpf_ledger_merge, e);
    if (status != DPF_OK)
        return status;
    status = dpf_header_copy(&m->header, &reader.header, e);
    while (status == DPF_OK && item != DPF_ITEM_END) {
        bool had = m->parameters != NULL;
        status = dpf_stream_reader_next(&reader, &item, e);
        if (status == DPF_OK && item == DPF_ITEM_OTHER)
            status = take_frame(m, endpoint, reader.object, e);
        if (status == DPF_OK && on_frame && !had && m->parameters)
            status = on_frame(context, reader.object, e);
    }
    if (status == DPF_OK && !m->parameters)
        status = dpf_fail(e, DPF_BAD_STREAM, "'%s' holds no model", endpoint);
    dpf_stream_reader_release(&reader);
    if (status != DPF_OK)
        dpf_model_stream_release(m);
    return status;
}

void dpf_model_stream_release(struct dpf_model_stream *m)
{
    dpf_header_release(&m->header);
    dpf_model_release(&m->model);
    free(m->parameters);
    *m = (struct dpf_model_stream){0};
}

void dpf_architecture_table(struct dpf_text *out)
{
    enum { WIDTH = 88 };
    size_t column = WIDTH;
    dpf_text_add(out, "architectures");
    for (const char *const *name = dpf_architecture_names; *name; name++) {
        bool wraps = column + 1 + strlen(*name) > WIDTH;
        dpf_text_addf(out, wraps ? "\n  %s" : " %s", *name);
        column = (wraps ? 1 : column) + 1 + strlen(*name);
    }
    dpf_text_add(out, "\narchitectures that take their sizes from the records\n");
    for (const struct dpf_fitted *f = dpf_fitted; f->name; f++) {
        char name[48];
        snprintf(name, sizeof name, "%s%s%s", f->name, f->number ? ":" : "",
                 f->number ? f->number : "");
        dpf_text_addf(out, "  %-18s  %s\n", name, f->help);
    }
}

enum dpf_status dpf_model_from_option(struct dpf_model *m, const char *arch,
                                      struct dpf_error *e)
{
    enum { LIMIT = 1 << 20 };
    const char *text = dpf_architecture(arch);
    char *file = NULL;
    size_t size = text ? strlen(text) : 0;
    if (!text && !dpf_is_file(arch)) {
        const char *near = DPF_NEAREST(dpf_architecture_names, arch);
        return dpf_fail(e, DPF_USAGE,
                        near ? "'%s' is neither an architecture nor a file (did you mean "
                               "'%s'?)"
                             : "'%s' is neither an architecture nor a file",
                        arch, near);
    }
    enum dpf_status status = DPF_OK;
    if (!text)
        status = dpf_read_file(arch, LIMIT, &file, &size, e);
    if (status == DPF_OK)
        status = dpf_model_parse(m, text ? text : file, size, arch, e);
    free(file);
    return status;
}

enum dpf_status dpf_model_stream_encode(struct dpf_encoder *enc,
                                        const struct dpf_model *m,
                                        const float *parameters, unsigned more,
                                        struct dpf_safetensors *weights,
                                        struct dpf_error *e)
{
    *weights = (struct dpf_safetensors){0};
    enum dpf_status status = dpf_weights_export(m, parameters, weights, e);
    if (status == DPF_OK)
        dpf_weights_encode(enc, m, weights, more);
    return status;
}

/* How the model was made, each entry marked: it is not how the records were. */
static void adopt_provenance(struct dpf_values *to, const struct dpf_values *from)
{
    msgpack_unpacked one;
    size_t at = 0;
    msgpack_unpacked_init(&one);
    for (uint32_t i = 0; i < from->count; i++) {
        if (msgpack_unpack_next(&one, (const char *)from->bytes.data, from->bytes.size,
                                &at) != MSGPACK_UNPACK_SUCCESS ||
            one.data.type != MSGPACK_OBJECT_MAP)
            break;
        bool marked = dpf_object_get(&one.data, "model") != NULL;
        const msgpack_object_map *map = &one.data.via.map;
        msgpack_packer p = dpf_values_packer(to);
        msgpack_pack_map(&p, map->size + !marked);
        for (uint32_t k = 0; k < map->size; k++) {
            msgpack_pack_object(&p, map->ptr[k].key);
            msgpack_pack_object(&p, map->ptr[k].val);
        }
        if (!marked) {
            dpf_pack_string(&p, "model");
            msgpack_pack_true(&p);
        }
        to->count++;
    }
    msgpack_unpacked_destroy(&one);
}

void dpf_stage_adopt_provenance(struct dpf_stage *s, const struct dpf_values *model)
{
    adopt_provenance(&s->out.provenance, model);
}

void dpf_stage_adopt_model(struct dpf_stage *s, const struct dpf_header *model)
{
    adopt_provenance(&s->out.provenance, &model->provenance);
    dpf_standing_join(&s->out, model);
    if (model->is_private || model->events.count > 0)
        dpf_ledger_add_model(&s->out.events, s->info->name, model);
}

static const char public_data[] = "\"dpflow.data\":\"public\"";

void dpf_stage_adopt_weights(struct dpf_stage *s, const struct dpf_safetensors *file)
{
    if (file->metadata && strstr(file->metadata, public_data))
        return;
    s->out.is_private = true;
    dpf_ledger_add_none(
        &s->out.events, s->info->name,
        file->metadata && strstr(file->metadata, "\"dpflow.data\"")
            ? "the first weights are from a file, made of private records"
            : "the first weights are from a file that does not say what they are of");
}

enum dpf_status dpf_model_stream_first_weights(struct dpf_model_stream *m,
                                               struct dpf_stage *s, const char *file,
                                               const char *init, uint64_t seed,
                                               struct dpf_error *e)
{
    struct dpf_safetensors weights = {0};
    m->parameters = dpf_calloc(m->model.span + 1, sizeof *m->parameters);
    if (!m->parameters)
        return dpf_fail_memory(e);
    if (!file) {
        dpf_initialise(&m->model, init, seed, m->parameters);
        return DPF_OK;
    }
    enum dpf_status status = dpf_safetensors_read(&weights, file, e);
    if (status == DPF_OK)
        status = dpf_weights_import(&m->model, &weights, file, m->parameters, e);
    if (status == DPF_OK)
        dpf_stage_adopt_weights(s, &weights);
    dpf_safetensors_release(&weights);
    return status;
}

enum dpf_status dpf_stage_describe_weights(const struct dpf_stage *s,
                                           struct dpf_safetensors *file,
                                           struct dpf_error *e)
{
    struct dpf_text t = {0};
    bool is_public = !s->out.is_private && !s->out.is_protected;
    dpf_text_addf(&t, "{%s}", is_public ? public_data : "\"dpflow.data\":\"private\"");
    file->metadata = t.failed ? NULL : dpf_strdup(t.data);
    dpf_text_release(&t);
    return file->metadata ? DPF_OK : dpf_fail_memory(e);
}

enum dpf_status dpf_model_stream_write(struct dpf_stage *s,
                                       const struct dpf_model_stream *m,
                                       const char *export_file, struct dpf_error *e)
{
    struct dpf_safetensors weights = {0};
    enum dpf_status status = dpf_stage_begin(s, e);
    if (status == DPF_OK)
        status = dpf_model_stream_encode(&s->writer.encoder, &m->model, m->parameters, 0,
                                         &weights, e);
    if (status == DPF_OK)
        status = dpf_stream_write_encoded(&s->writer, e);
    if (status == DPF_OK && export_file)
        status = dpf_stage_describe_weights(s, &weights, e);
    if (status == DPF_OK && export_file)
        status = dpf_safetensors_write(&weights, export_file, e);
    dpf_safetensors_release(&weights);
    return status;
}
