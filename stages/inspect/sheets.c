#include "sheets.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/text.h"

#include "base/banned.h"

static enum dpf_status find_masks(struct dpf_sheets *v, struct dpf_header *h,
                                  struct dpf_error *e)
{
    if (v->overlay.count > DPF_SLICES_MASKS)
        return dpf_fail(e, DPF_USAGE, "option '--overlay' may be given %d times at most",
                        DPF_SLICES_MASKS);
    if (v->overlay.count && v->heat)
        return dpf_fail(e, DPF_USAGE, "give one of '--overlay' and '--heat'");
    for (size_t i = 0; i < DPF_SLICES_MASKS; i++) {
        v->masks[i] = -1;
        if (i >= v->overlay.count)
            continue;
        const struct dpf_field *f = dpf_header_field(h, v->overlay.items[i]);
        if (!f)
            return dpf_fail(e, DPF_USAGE, "the stream has no field '%s'",
                            v->overlay.items[i]);
        v->masks[i] = (int)(f - h->fields);
    }
    return DPF_OK;
}

/* Whether field `i` lies under the masks. */
static bool under_masks(const struct dpf_sheets *v, const struct dpf_header *h, int i)
{
    return v->masks[0] >= 0 && i != v->masks[0] && i != v->masks[1] &&
           dpf_slices_can_draw(&h->fields[i], &h->fields[v->masks[0]]);
}

static enum dpf_status open_slices(struct dpf_sheets *v, const struct dpf_header *h,
                                   int i, bool under, struct dpf_error *e)
{
    struct dpf_slices_plan plan = {.field = &h->fields[i],
                                   .channel = (uint64_t)v->channel};
    for (int k = 0; under && k < DPF_SLICES_MASKS; k++)
        plan.masks[k] = v->masks[k] >= 0 ? &h->fields[v->masks[k]] : NULL;
    return dpf_slices_new(&v->slices[i], &plan, e);
}

enum dpf_status dpf_sheets_open(struct dpf_sheets *v, struct dpf_header *h,
                                struct dpf_error *e)
{
    enum dpf_status status = find_masks(v, h, e);
    if (status == DPF_OK)
        status = dpf_make_dirs(v->folder, e);
    const struct dpf_field *y = dpf_header_field(h, "y");
    bool rows = y && y->classes && y->classes <= 32 && y->shape.rank == 0;
    v->label_field = rows ? (int)(y - h->fields) : -1;
    int drawn = 0, covered = 0;
    for (int i = 0; status == DPF_OK && i < h->field_count; i++) {
        const struct dpf_field *f = &h->fields[i];
        bool under = under_masks(v, h, i);
        if (under || (!v->heat && dpf_slices_can_draw(f, NULL))) {
            status = open_slices(v, h, i, under, e);
        } else if (dpf_sheet_can_draw(&f->shape)) {
            status = dpf_sheet_new(&v->sheets[i], &f->shape, rows ? y->classes : 0, e);
            if (status == DPF_OK && v->heat)
                dpf_sheet_use_heat(v->sheets[i]);
        }
        drawn += v->sheets[i] || v->slices[i];
        covered += under;
    }
    if (status == DPF_OK && !drawn && h->field_count > 0) /* else a model may come */
        status = dpf_fail(e, DPF_USAGE, "no field of this stream holds pictures");
    if (status == DPF_OK && v->overlay.count && !covered)
        status =
            dpf_fail(e, DPF_USAGE, "no field of this stream has the size of mask '%s'",
                     v->overlay.items[0]);
    return status;
}

static void add_slices(struct dpf_sheets *v, const struct dpf_batch *b, int i)
{
    const struct dpf_tensor *masks[DPF_SLICES_MASKS];
    for (int k = 0; k < DPF_SLICES_MASKS; k++)
        masks[k] = v->masks[k] >= 0 ? &b->tensor[v->masks[k]] : NULL;
    for (uint64_t row = 0; row < b->rows && !dpf_slices_full(v->slices[i]); row++)
        dpf_slices_add(v->slices[i], &b->tensor[i], masks, row);
}

static void add_pictures(struct dpf_sheets *v, const struct dpf_batch *b, int i)
{
    for (uint64_t row = 0; row < b->rows && !dpf_sheet_full(v->sheets[i]); row++) {
        uint64_t label = v->label_field < 0
                             ? UINT64_MAX
                             : (uint64_t)dpf_tensor_get(&b->tensor[v->label_field], row);
        dpf_sheet_add(v->sheets[i], &b->tensor[i], row, label);
    }
}

void dpf_sheets_add(struct dpf_sheets *v, const struct dpf_batch *b)
{
    for (int i = 0; i < b->count; i++) {
        if (v->sheets[i])
            add_pictures(v, b, i);
        if (v->slices[i])
            add_slices(v, b, i);
    }
}

enum dpf_status dpf_sheets_save(const struct dpf_sheets *v, const struct dpf_header *h,
                                struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    for (int i = 0; status == DPF_OK && i < h->field_count; i++) {
        if (!v->sheets[i] && !v->slices[i])
            continue;
        char *path = dpf_format("%s/%s.png", v->folder, h->fields[i].name);
        status = !path          ? dpf_fail_memory(e)
                 : v->slices[i] ? dpf_slices_save(v->slices[i], path, e)
                                : dpf_sheet_write(v->sheets[i], path, e);
        free(path);
    }
    return status;
}

void dpf_sheets_release(struct dpf_sheets *v)
{
    for (int i = 0; i < DPF_MAX_FIELDS; i++) {
        dpf_sheet_destroy(&v->sheets[i]);
        dpf_slices_destroy(&v->slices[i]);
    }
}
