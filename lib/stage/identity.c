#include "stage/identity.h"

#include <stdio.h>

#include "base/file.h"
#include "base/version.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ fingerprint */

/* The same program with the same options and input content gives the same result; so
 * these, and nothing else, name a stream for reuse. */
enum dpf_status dpf_stage_print_fingerprint(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_fingerprint f;
    char hex[DPF_FINGERPRINT_HEX + 1];
    dpf_fingerprint_init(&f);
    dpf_fingerprint_add_string(&f, DPF_VERSION);
    dpf_fingerprint_add_string(&f, s->info->name);
    enum dpf_status status = dpf_fingerprint_add_file(&f, "/proc/self/exe", e);
    if (s->info->has_effects)
        printf("side-effects\n");
    for (size_t i = 0; status == DPF_OK && i < s->parsed.given_count; i++) {
        const struct dpf_given *g = &s->parsed.given[i];
        if (g->option->kind == DPF_KIND_OUTFILE) {
            printf("side-effects\n"); /* cannot be reused: its files may be gone */
        } else if (!(g->option->flags & DPF_OPTION_IMMATERIAL)) {
            dpf_fingerprint_add_string(&f, g->option->name);
            if (g->option->kind == DPF_KIND_FILE)
                status = dpf_fingerprint_add_file(&f, g->value, e);
            else
                dpf_fingerprint_add_string(&f, g->value);
        }
    }
    for (size_t i = 0; i < s->argument_count; i++)
        dpf_fingerprint_add_string(&f, s->arguments[i]);
    if (status == DPF_OK && s->info->on_fingerprint)
        status = s->info->on_fingerprint(s, &f, e);
    if (status != DPF_OK)
        return status;
    dpf_fingerprint_hex(&f, hex);
    static const char *const kinds[] = {
        [DPF_SOURCE] = "source", [DPF_FILTER] = "stream", [DPF_SINK] = "text"};
    printf("%s %s\n", kinds[s->info->kind], hex);
    return DPF_OK;
}

/* ------------------------------------------------------------------- provenance */

static enum dpf_status pack_option(msgpack_packer *p, const struct dpf_given *g,
                                   struct dpf_error *e)
{
    dpf_pack_string(p, g->option->name);
    if (g->option->kind == DPF_KIND_FLAG) {
        msgpack_pack_true(p);
        return DPF_OK;
    }
    if (g->option->kind == DPF_KIND_ENDPOINT || g->option->kind == DPF_KIND_ENDPOINTS) {
        dpf_pack_string(p, "stream"); /* endpoints differ from run to run */
        return DPF_OK;
    }
    if (g->option->kind != DPF_KIND_FILE) {
        dpf_pack_string(p, g->value);
        return DPF_OK;
    }
    /* A path says nothing on another machine; the content does. */
    char hex[DPF_FINGERPRINT_HEX + 1] = "";
    char text[sizeof hex + 16];
    enum dpf_status status = dpf_fingerprint_file(g->value, hex, e);
    snprintf(text, sizeof text, "blake2b:%s", hex);
    dpf_pack_string(p, text);
    return status;
}

/* Whether a given option stands in the provenance: streams only say that they are there,
 * and say it once. */
static bool is_told(const struct dpf_parsed *parsed, size_t number)
{
    const struct dpf_option *o = parsed->given[number].option;
    bool told = !(o->flags & DPF_OPTION_IMMATERIAL);
    for (size_t i = 0; told && o->kind == DPF_KIND_ENDPOINTS && i < number; i++)
        told = parsed->given[i].option != o;
    return told;
}

enum dpf_status dpf_stage_add_provenance(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_values *v = &s->out.provenance;
    msgpack_packer p = dpf_values_packer(v);
    size_t material = 0;
    enum dpf_status status = DPF_OK;
    for (size_t i = 0; i < s->parsed.given_count; i++)
        material += is_told(&s->parsed, i);
    msgpack_pack_map(&p, 3 + (s->argument_count > 0) + s->info->is_exact);
    dpf_pack_string(&p, "stage");
    dpf_pack_string(&p, s->info->name);
    dpf_pack_string(&p, "version");
    dpf_pack_string(&p, DPF_VERSION);
    dpf_pack_string(&p, "options");
    msgpack_pack_map(&p, material);
    for (size_t i = 0; status == DPF_OK && i < s->parsed.given_count; i++)
        if (is_told(&s->parsed, i))
            status = pack_option(&p, &s->parsed.given[i], e);
    if (s->argument_count) {
        dpf_pack_string(&p, "arguments");
        msgpack_pack_array(&p, s->hides_arguments ? 1 : s->argument_count);
        if (s->hides_arguments)
            dpf_pack_string(&p, "files");
        for (size_t i = 0; !s->hides_arguments && i < s->argument_count; i++)
            dpf_pack_string(&p, dpf_endpoint_has_scheme(s->arguments[i])
                                    ? "endpoint"
                                    : dpf_path_base(s->arguments[i]));
    }
    if (s->info->is_exact) {
        dpf_pack_string(&p, "exact");
        msgpack_pack_true(&p);
    }
    v->count++;
    return status;
}
