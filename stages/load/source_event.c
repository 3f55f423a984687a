#include "source_event.h"

#include <sodium.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "ledger/source.h"

#include "base/banned.h"

_Static_assert((int)DPF_PIECE_BYTES == (int)DPF_CONTENT_BYTES,
               "pieces of a source are digests of contents");

/* A source that is public, or published under a name, has a digest that all can compute;
 * of any other one only its owner can. */
static enum dpf_status digest(const struct dpf_stage *s, const struct dpf_contents *c,
                              char out[DPF_SOURCE_TEXT], bool *known, struct dpf_error *e)
{
    unsigned char key[DPF_OWNER_KEY_BYTES];
    bool keyed = s->out.is_private && !*c->set;
    enum dpf_status status = DPF_OK;
    *known = !c->unknown && c->count > 0;
    if (*known && keyed) {
        status = dpf_owner_key_get(key, known, e);
        if (status == DPF_OK && !*known)
            dpf_notice(
                "no place for an owner's key: these records will not be recognised "
                "again ($DPFLOW_OWNER_KEY names a file for it)");
    }
    if (status == DPF_OK && *known)
        dpf_source_digest(c->roles, c->digests, c->count, keyed ? key : NULL, out);
    sodium_memzero(key, sizeof key);
    return status;
}

enum dpf_status dpf_source_describe(struct dpf_stage *s, const struct dpf_contents *c,
                                    struct dpf_error *e)
{
    char text[DPF_SOURCE_TEXT];
    bool known, named = *c->set != '\0';
    struct dpf_text name = {0};
    enum dpf_status status = digest(s, c, text, &known, e);
    for (size_t i = 0; s->hides_arguments ? i < 1 : i < s->argument_count; i++)
        dpf_text_addf(&name, "%s%s", i ? " " : "",
                      s->hides_arguments ? "files" : dpf_path_base(s->arguments[i]));
    const struct dpf_source_event event = {.name = dpf_text_get(&name),
                                           .digest = known ? text : NULL,
                                           .set = named ? c->set : NULL,
                                           .part = named ? c->part : NULL};
    if (status == DPF_OK)
        dpf_ledger_add_source(&s->out.events, s->info->name, &event);
    uint64_t copies = dpf_contents_copies(c);
    if (status == DPF_OK && copies > 1)
        dpf_ledger_add_augmentation(&s->out.events, s->info->name, copies, "file",
                                    (struct dpf_stability){copies, copies});
    if (status == DPF_OK && name.failed)
        status = dpf_fail_memory(e);
    dpf_text_release(&name);
    return status;
}
