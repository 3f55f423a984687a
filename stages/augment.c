/* augment: pictures shifted, turned, mirrored and enlarged, or cut into patches. */
#include <string.h>

#include "data/augment.h"
#include "stage/stage.h"

#include "base/banned.h"

static struct augmentation {
    /* what the user asked for, then what it takes */
    double shift, rotate;
    bool flip, keep, same_places;
    int64_t copies, patches, seed;
    const char *upscale, *patch, *field, *also;
    struct dpf_augment recipe;
    struct dpf_augmenter augmenter;
    struct dpf_batch out; /* what has gathered */
    uint64_t filled;
} state = {.copies = 1, .patches = 1, .field = "x"};

static const struct dpf_option options[] = {
    DPF_OPT_REAL("shift", &state.shift, "F", 0, 1,
                 "move by up to a fraction F (below 1) of height and width"),
    DPF_OPT_REAL("rotate", &state.rotate, "DEGREES", 0, 180,
                 "turn by up to DEGREES in either direction"),
    DPF_OPT_FLAG("flip", &state.flip, "mirror left to right, with probability 1/2"),
    DPF_OPT_INT("copies", &state.copies, "K", 1, DPF_AUGMENT_MAX_COPIES,
                "write K such copies of each record (1)"),
    DPF_OPT_FLAG("keep", &state.keep, "write each original too, before its copies"),
    DPF_OPT_STRING("upscale", &state.upscale, "HxW",
                   "change the size to H rows and W columns, of originals too"),
    DPF_OPT_STRING("patch", &state.patch, "[Dx]HxW",
                   "cut patches of this size at random places, instead of the above"),
    DPF_OPT_INT("patches", &state.patches, "N", 1, DPF_PATCH_MOST,
                "cut N patches out of each record (1)"),
    DPF_OPT_FLAG("same-places", &state.same_places,
                 "at the same N places in every record"),
    DPF_OPT_STRING("also", &state.also, "NAME",
                   "a field with a mask, cut or transformed in the same way, by nearest "
                   "pixel"),
    DPF_OPT_STRING("field", &state.field, "NAME", "the field with the pictures (x)"),
    DPF_OPT_INT("seed", &state.seed, "N", 0, 9e15, "seed of the copies (0)"),
    DPF_OPT_END,
};

static enum dpf_status check_patches(const struct augmentation *v,
                                     const struct dpf_parsed *given, struct dpf_error *e)
{
    static const char *const others[] = {"shift",   "rotate", "flip",
                                         "upscale", "copies", "keep"};
    for (size_t i = 0; v->patch && i < sizeof others / sizeof *others; i++)
        if (dpf_option_given(given, others[i]))
            return dpf_fail(e, DPF_USAGE,
                            "give one of '--patch' and '--%s': a second 'augment' can do "
                            "the other",
                            others[i]);
    if (!v->patch && (v->same_places || dpf_option_given(given, "patches")))
        return dpf_fail(e, DPF_USAGE,
                        "'--patches' and '--same-places' go with '--patch'");
    return DPF_OK;
}

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct augmentation *v = s->state;
    const struct dpf_parsed *given = &s->parsed;
    bool random = dpf_option_given(given, "shift") || dpf_option_given(given, "rotate") ||
                  v->flip || v->patch;
    enum dpf_status status = check_patches(v, given, e);
    if (status != DPF_OK)
        return status;
    if (!random && !v->upscale)
        return dpf_fail(
            e, DPF_USAGE,
            "say what to do: --shift, --rotate, --flip, --upscale or --patch");
    if (!random &&
        (v->keep || dpf_option_given(given, "copies") || dpf_option_given(given, "seed")))
        return dpf_fail(e, DPF_USAGE,
                        "'--copies', '--keep' and '--seed' go with '--shift', "
                        "'--rotate' or '--flip'");
    if (v->shift >= 1)
        return dpf_fail(e, DPF_USAGE, "option '--shift' needs a fraction below 1");
    if (v->also && strcmp(v->also, v->field) == 0)
        return dpf_fail(e, DPF_USAGE, "field '%s' cannot be its own mask", v->field);
    v->recipe =
        (struct dpf_augment){.picture = v->field,
                             .mask = v->also,
                             .random = random,
                             .shift = v->shift,
                             .degrees = v->rotate,
                             .flip = v->flip,
                             .keep = v->keep,
                             .copies = (uint64_t)(v->patch ? v->patches : v->copies),
                             .same_places = v->same_places,
                             .seed = (uint64_t)v->seed};
    if (v->patch)
        return dpf_patch_parse(&v->recipe.patch, v->patch, e);
    return v->upscale ? dpf_augment_parse_size(v->upscale, &v->recipe.height,
                                               &v->recipe.width, e)
                      : DPF_OK;
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct augmentation *v = s->state;
    enum dpf_status status =
        dpf_augmenter_open(&v->augmenter, &v->recipe, &s->in, &s->out, e);
    /* Which pose or place a record gets depends on its number: a record less, and all
     * behind it change. With the same places for all, a record less is `copies` less. A
     * new size alone maps records one to one, whatever the others are. */
    if (status == DPF_OK && v->recipe.random) {
        uint64_t copies = dpf_augment_group(&v->recipe);
        bool same = v->recipe.same_places;
        dpf_ledger_add_augmentation(
            &s->out.events, s->info->name, copies, same ? "seed" : "index",
            (struct dpf_stability){.add_remove = same ? copies : 0,
                                   .replace_one = copies});
    }
    return status;
}

/* Hand on what has gathered. */
static enum dpf_status flush(struct dpf_stage *s, struct dpf_error *e)
{
    struct augmentation *v = s->state;
    struct dpf_batch part = v->out; /* the same memory */
    if (v->filled == 0)
        return DPF_OK;
    dpf_batch_truncate(&part, v->filled);
    v->filled = 0;
    return dpf_stage_emit(s, &part, e);
}

/* Output is gathered into batches of its own, so that its bytes do not depend on how the
 * input was cut. */
static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct augmentation *v = s->state;
    enum dpf_status status = DPF_OK;
    if (b->rows > 0 && !v->out.count)
        status = dpf_batch_init(&v->out, &s->out, dpf_batch_rows(&s->out), e);
    if (status == DPF_OK)
        status = dpf_augmenter_take(&v->augmenter, b, e);
    while (status == DPF_OK && !dpf_augmenter_fill(&v->augmenter, &v->out, &v->filled))
        status = flush(s, e);
    dpf_batch_truncate(b, 0); /* the frame has nothing left to send */
    return status;
}

/* A frame of another kind keeps its place among the records. */
static enum dpf_status on_other(struct dpf_stage *s, const msgpack_object *frame,
                                struct dpf_error *e)
{
    (void)frame;
    return flush(s, e);
}

static void on_release(struct dpf_stage *s)
{
    struct augmentation *v = s->state;
    dpf_batch_release(&v->out);
}

static const struct dpf_stage_info info = {
    .name = "augment",
    .summary = "shift, turn, mirror and enlarge pictures, in several copies; cut patches",
    .reads = "x: f32 or u8 [n, [channels, [depth,]] height, width]",
    .writes = "the same fields; K records for each record, or K + 1 with --keep, or N "
              "patches",
    .privacy = "none spent; an event states how many records come from one: they count "
               "as a group",
    .example = "dpflow load digits:train | dpflow augment --shift 0.1 --rotate 10 "
               "--copies 2 --keep | dpflow inspect",
    .detail =
        "Values between pixels are interpolated, values outside are those of the "
        "nearest\n"
        "edge: declared bounds still hold. A declared norm is dropped, except with "
        "--flip\n"
        "alone or --patch. Volumes are changed in their last two dimensions, and cut "
        "in three.\n"
        "The change of a record depends only on the seed and on its position in the "
        "stream.\n"
        "Then removing a record changes all behind it, and 'account' has no bound for "
        "noise\n"
        "under add-remove ('train'). --same-places has one: the places depend on the "
        "seed\n"
        "alone, and N patches count as N records.",
    .kind = DPF_FILTER,
    .options = options,
    .state = &state,
    .on_options = on_options,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_other = on_other,
    .on_close = flush,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
