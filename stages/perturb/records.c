/* Each record with noise of its own: local privacy. */
#include "additive.h"
#include "base/log.h"
#include "privacy/grid.h"

#include "base/banned.h"

/* Nothing but the noisy field leaves, unless the user wants it to: then what leaves is
 * still private. */
static void declare(const struct dpf_perturb *p, struct dpf_stage *s)
{
    struct dpf_field *f = &s->out.fields[p->x];
    struct dpf_shape shape = f->shape;
    dpf_field_redefine(f, DPF_F32, &shape);
    if (!p->only && s->out.field_count > 1) {
        dpf_notice("other fields stay as they are, and private: '--only' drops them");
        return;
    }
    dpf_header_keep_field(&s->out, p->x);
    if (s->out.is_private)
        dpf_standing_protect(&s->out);
}

static enum dpf_status open_records(struct dpf_perturb *p, struct dpf_stage *s,
                                    struct dpf_error *e)
{
    struct dpf_mechanism_event event;
    enum dpf_status status = dpf_additive_open(p->own, p, &s->in.fields[p->x], DPF_LOCAL,
                                               p->epsilon, &event, e);
    if (status != DPF_OK)
        return status;
    declare(p, s);
    event.method = p->mechanism;
    if (s->in.is_private)
        dpf_perturb_add_event(p, s, &event);
    else
        dpf_ledger_add_randomised(&s->out.events, s->info->name, p->mechanism);
    return DPF_OK;
}

static void drop_others(struct dpf_batch *b, int x)
{
    struct dpf_tensor kept = b->tensor[x];
    for (int i = 0; i < b->count; i++)
        if (i != x)
            dpf_tensor_release(&b->tensor[i]);
    b->tensor[0] = kept;
    b->count = 1;
}

static enum dpf_status take_records(struct dpf_perturb *p, struct dpf_batch *b,
                                    struct dpf_error *e)
{
    struct dpf_additive *a = p->own;
    struct dpf_tensor *x = &b->tensor[p->x];
    enum dpf_status status = dpf_tensor_make_f32(x, e);
    float *value = x->data;
    uint64_t rows = status == DPF_OK ? dpf_tensor_rows(x) : 0;
    for (uint64_t row = 0; row < rows; row++, value += a->bounds.values) {
        a->clipped += dpf_record_clip(&a->bounds, value, a->row);
        for (size_t i = 0; i < a->bounds.values; i++)
            a->sums[i] = dpf_grid_round(a->row[i], a->step);
        a->is->add(a, &p->random, a->sums);
        for (size_t i = 0; i < a->bounds.values; i++)
            value[i] = (float)((double)a->sums[i] * a->step);
    }
    if (p->only && b->count > 1)
        drop_others(b, p->x);
    return status;
}

static const char *const needs[] = {"mechanism", NULL};
static const char *const may[] = {"delta", "clip-l1", "clip-l2", "only", NULL};

const struct dpf_release dpf_release_records = {.needs = needs,
                                                .may = may,
                                                .own_bytes = sizeof(struct dpf_additive),
                                                .open = open_records,
                                                .take = take_records,
                                                .clipped = dpf_additive_clipped,
                                                .release = dpf_additive_close};
