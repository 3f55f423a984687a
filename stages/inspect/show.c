#include "show.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

#include "base/banned.h"

enum { SHOWN_VALUES = 16, TEXT_BARS = 24, JSON_BARS = 16, VALUE_LIMIT = 4096 };

/* Each value in `v` as JSON, handed to `show`. */
static enum dpf_status each_value(const struct dpf_values *v,
                                  void (*show)(FILE *, const msgpack_object *), FILE *out,
                                  struct dpf_error *e)
{
    msgpack_zone *zone = msgpack_zone_new(MSGPACK_ZONE_CHUNK_SIZE);
    if (!zone)
        return dpf_fail_memory(e);
    size_t at = 0;
    for (uint32_t i = 0; i < v->count; i++) {
        msgpack_object o;
        msgpack_unpack_return r =
            msgpack_unpack((const char *)v->bytes.data, v->bytes.size, &at, zone, &o);
        if (r != MSGPACK_UNPACK_SUCCESS && r != MSGPACK_UNPACK_EXTRA_BYTES)
            break;
        show(out, &o);
    }
    msgpack_zone_free(zone);
    return DPF_OK;
}

enum dpf_status dpf_show_header_json(FILE *out, const struct dpf_header *h,
                                     struct dpf_error *e)
{
    struct dpf_encoder enc = {0};
    struct dpf_decoder dec = {0};
    struct iovec *parts;
    int count;
    size_t total;
    enum dpf_status status = dpf_header_encode(&enc, h, e);
    if (status == DPF_OK)
        status = dpf_encoder_end(&enc, &parts, &count, &total, e);
    if (status == DPF_OK) {
        struct dpf_frame frame = {.data = enc.meta.data, .size = total};
        status = dpf_decoder_read(&dec, &frame, e);
    }
    if (status == DPF_OK) {
        struct dpf_text line = {0};
        dpf_object_to_json(&dec.root, &line);
        fprintf(out, "%s\n", dpf_text_get(&line));
        dpf_text_release(&line);
    }
    dpf_decoder_release(&dec);
    dpf_encoder_release(&enc);
    return status;
}

/* Text of the stream. */
static void show_text(FILE *out, const char *text, size_t size)
{
    struct dpf_text shown = {0};
    dpf_text_add_visible(&shown, text, size);
    fputs(dpf_text_get(&shown), out);
    dpf_text_release(&shown);
}

static void show_step(FILE *out, const msgpack_object *o)
{
    const char *name = "?", *version = "";
    size_t name_size = 1, version_size = 0;
    dpf_object_text(dpf_object_get(o, "stage"), &name, &name_size);
    dpf_object_text(dpf_object_get(o, "version"), &version, &version_size);
    fprintf(out, "           ");
    show_text(out, name, name_size);
    fputc(' ', out);
    show_text(out, version, version_size);
    const msgpack_object *more[] = {dpf_object_get(o, "arguments"),
                                    dpf_object_get(o, "options")};
    for (int i = 0; i < 2; i++) {
        if (!more[i] || (more[i]->type == MSGPACK_OBJECT_MAP && !more[i]->via.map.size))
            continue;
        struct dpf_text json = {0};
        dpf_object_to_json(more[i], &json);
        fprintf(out, " %s", dpf_text_get(&json));
        dpf_text_release(&json);
    }
    fputc('\n', out);
}

static void show_event(FILE *out, const msgpack_object *o)
{
    struct dpf_text json = {0};
    dpf_object_to_json(o, &json);
    fprintf(out, "           %s\n", dpf_text_get(&json));
    dpf_text_release(&json);
}

static void show_feature(FILE *out, const struct dpf_field *f, size_t i)
{
    struct dpf_text name = {0};
    dpf_text_add_visible(&name, f->features[i], strlen(f->features[i]));
    fprintf(out, "             %-24s [%g, %g]\n", dpf_text_get(&name), f->bounds.lo[i],
            f->bounds.hi[i]);
    dpf_text_release(&name);
}

static void show_field(FILE *out, const struct dpf_field *f)
{
    char shape[96];
    dpf_shape_format(&f->shape, shape, sizeof shape);
    fprintf(out, "           %-8s %-4s %s", f->name, dpf_dtype_name(f->dtype), shape);
    if (f->classes)
        fprintf(out, ", %llu classes", (unsigned long long)f->classes);
    if (f->bounds.count == 1)
        fprintf(out, ", bounds [%g, %g]", f->bounds.lo[0], f->bounds.hi[0]);
    else if (f->bounds.count)
        fprintf(out, ", bounds of each feature");
    if (f->norm_l2 > 0)
        fprintf(out, ", L2 norm at most %g", f->norm_l2);
    fputc('\n', out);
    for (size_t i = 0; i < f->feature_count && f->bounds.count == f->feature_count; i++)
        show_feature(out, f, i);
}

enum dpf_status dpf_show_header_text(FILE *out, const struct dpf_header *h,
                                     struct dpf_error *e)
{
    char count[40] = "unknown number of";
    if (h->has_records)
        dpf_format_count(count, sizeof count, h->records);
    fprintf(out, "stream     %s records, %s data\nfields\n", count,
            dpf_header_standing(h));
    for (int i = 0; i < h->field_count; i++)
        show_field(out, &h->fields[i]);
    fprintf(out, "made by\n");
    enum dpf_status status = each_value(&h->provenance, show_step, out, e);
    fprintf(out, "ledger     %s\n",
            h->events.count ? "" : "no events: nothing was spent");
    if (status == DPF_OK)
        status = each_value(&h->events, show_event, out, e);
    return status;
}

void dpf_show_record(FILE *out, bool json, const struct dpf_header *h,
                     const struct dpf_batch *b, uint64_t row, uint64_t number)
{
    struct dpf_text t = {0};
    if (json)
        dpf_text_addf(&t, "{\"type\":\"record\",\"number\":%llu",
                      (unsigned long long)number);
    else
        dpf_text_addf(&t, "record %llu\n", (unsigned long long)number);
    for (int i = 0; i < h->field_count; i++) {
        const struct dpf_field *f = &h->fields[i];
        uint64_t n = dpf_shape_elements(&f->shape);
        uint64_t limit = json ? VALUE_LIMIT : SHOWN_VALUES;
        uint64_t shown = n < limit ? n : limit;
        if (json) {
            dpf_text_add(&t, ",");
            dpf_text_add_json(&t, f->name, strlen(f->name));
            dpf_text_add(&t, f->shape.rank ? ":[" : ":");
        } else {
            dpf_text_addf(&t, "           %-8s", f->name);
        }
        for (uint64_t j = 0; j < shown; j++) {
            double v = dpf_tensor_get(&b->tensor[i], row * n + j);
            if (json) {
                dpf_text_add(&t, j ? "," : "");
                dpf_text_add_real(&t, v);
            } else {
                dpf_text_addf(&t, " %.4g", v);
            }
        }
        if (json && f->shape.rank)
            dpf_text_add(&t, "]");
        if (!json)
            dpf_text_add(&t, shown < n ? " ...\n" : "\n");
    }
    fprintf(out, "%s%s", dpf_text_get(&t), json ? "}\n" : "");
    dpf_text_release(&t);
}

/* Lines of text, each behind the margin. */
static void show_lines(FILE *out, const char *text, size_t size)
{
    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        size_t length = end ? (size_t)(end - text) : size;
        fprintf(out, "           ");
        show_text(out, text, length);
        fputc('\n', out);
        length += end != NULL;
        text += length;
        size -= length;
    }
}

/* A model's network, or a metric's table. */
static bool show_known(FILE *out, const msgpack_object *frame)
{
    const msgpack_object *type = dpf_object_get(frame, "type");
    bool model = dpf_object_is_string(type, "model");
    const msgpack_object *text = dpf_object_get(frame, model ? "text" : "table");
    const char *chars;
    size_t size;
    if ((!model && !dpf_object_is_string(type, "metric")) || !text ||
        !dpf_object_text(text, &chars, &size))
        return false;
    fprintf(out, "%s\n", model ? "model" : "metric");
    show_lines(out, chars, size);
    return true;
}

void dpf_show_other(FILE *out, bool json, const msgpack_object *frame)
{
    if (!json && show_known(out, frame))
        return;
    struct dpf_text line = {0};
    dpf_object_to_json(frame, &line);
    fprintf(out, "%s%s\n", json ? "" : "frame      ", dpf_text_get(&line));
    dpf_text_release(&line);
}

static void bars_text(FILE *out, const struct dpf_summary *s)
{
    /* one eighth to a full block: U+2581 to U+2588 */
    static const char *const blocks[] = {
        " ",      "\u2581", "\u2582", "\u2583", "\u2584",
        "\u2585", "\u2586", "\u2587", "\u2588",
    };
    uint64_t bars[TEXT_BARS], top = 1;
    dpf_summary_histogram(s, bars, TEXT_BARS);
    for (int i = 0; i < TEXT_BARS; i++)
        top = bars[i] > top ? bars[i] : top;
    for (int i = 0; i < TEXT_BARS; i++) {
        /* anything that is there shows, however little */
        int level = bars[i] ? 1 + (int)(7.0 * (double)bars[i] / (double)top + 0.5) : 0;
        fputs(blocks[level > 8 ? 8 : level], out);
    }
}

static void statistics_text(FILE *out, const struct dpf_field *f,
                            const struct dpf_summary *s)
{
    fprintf(out, "           %-8s %10.4g %10.4g %10.4g %10.4g  |", f->name, s->lo,
            dpf_summary_mean(s), s->hi, dpf_summary_deviation(s));
    bars_text(out, s);
    fputc('|', out);
    if (s->not_finite)
        fprintf(out, " %llu not finite", (unsigned long long)s->not_finite);
    fputc('\n', out);
}

static void statistics_json(struct dpf_text *t, const struct dpf_field *f,
                            const struct dpf_summary *s)
{
    uint64_t bars[JSON_BARS];
    const double numbers[] = {s->lo, dpf_summary_mean(s), s->hi,
                              dpf_summary_deviation(s)};
    static const char *const names[] = {"min", "mean", "max", "deviation"};
    dpf_text_add_json(t, f->name, strlen(f->name));
    dpf_text_addf(t, ":{\"values\":%llu,\"not_finite\":%llu",
                  (unsigned long long)s->count, (unsigned long long)s->not_finite);
    for (int i = 0; i < 4; i++) {
        dpf_text_addf(t, ",\"%s\":", names[i]);
        dpf_text_add_real(t, s->count ? numbers[i] : NAN);
    }
    dpf_summary_histogram(s, bars, JSON_BARS);
    dpf_text_add(t, ",\"histogram\":[");
    for (int i = 0; i < JSON_BARS; i++)
        dpf_text_addf(t, "%s%llu", i ? "," : "", (unsigned long long)bars[i]);
    dpf_text_add(t, "]}");
}

void dpf_show_statistics(FILE *out, bool json, const struct dpf_header *h,
                         const struct dpf_summary *summaries)
{
    struct dpf_text t = {0};
    if (json)
        dpf_text_add(&t, "{\"type\":\"statistics\",\"fields\":{");
    else
        fprintf(out, "statistics %-8s %10s %10s %10s %10s  histogram\n", "field", "min",
                "mean", "max", "deviation");
    for (int i = 0; i < h->field_count; i++) {
        if (json) {
            dpf_text_add(&t, i ? "," : "");
            statistics_json(&t, &h->fields[i], &summaries[i]);
        } else {
            statistics_text(out, &h->fields[i], &summaries[i]);
        }
    }
    if (json)
        fprintf(out, "%s}}\n", dpf_text_get(&t));
    dpf_text_release(&t);
}
