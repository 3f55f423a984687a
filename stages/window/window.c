/* window: windows of a table of people and times, for models of behaviour. */
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "window.h"

#include "base/banned.h"

static struct dpf_windowing state = {.person = "person",
                                     .time = "time",
                                     .field = "x",
                                     .label = "y",
                                     .predict = "next",
                                     .missing = "previous",
                                     .length = 4,
                                     .every = 1,
                                     .friends = -1};

static const char *const predictions[] = {"next", "same", NULL};
static const char *const fillings[] = {[DPF_MISSING_PREVIOUS] = "previous",
                                       [DPF_MISSING_ZERO] = "zero",
                                       [DPF_MISSING_DROP] = "drop",
                                       NULL};

static const struct dpf_option options[] = {
    {.name = "times",
     .kind = DPF_KIND_STRING,
     .target = &state.times,
     .arg = "LO:HI",
     .help = "the public range of times at which windows end",
     .flags = DPF_OPTION_REQUIRED},
    DPF_OPT_INT("length", &state.length, "N", 1, DPF_HISTORY_MAX_LENGTH,
                "points of a window (4)"),
    DPF_OPT_INT("every", &state.every, "K", 1, 1e9,
                "windows end at LO, LO + K, LO + 2K, ... (1)"),
    DPF_OPT_CHOICE("predict", &state.predict, predictions, "WHAT",
                   "the label of the time after the window's end (next), or of its end "
                   "(same)"),
    DPF_OPT_CHOICE("missing", &state.missing, fillings, "HOW",
                   "times without a row are as the one before (previous), or zero; or "
                   "drop their windows"),
    DPF_OPT_ENDPOINT("links", &state.links, "STREAM",
                     "public links between people: field 'link', the numbers of two", 0),
    DPF_OPT_INT("friends", &state.friends, "F", 1, 1e6,
                "with --links: how many links one person takes part in, at most"),
    DPF_OPT_STRING("rise", &state.rise, "FEATURE",
                   "make the label: this feature is larger than at the time before"),
    DPF_OPT_STRING("field", &state.field, "NAME", "the field with the attributes (x)"),
    DPF_OPT_STRING("label", &state.label, "NAME", "the field with the labels (y)"),
    DPF_OPT_STRING("person", &state.person, "NAME",
                   "the field with the person's number (person)"),
    DPF_OPT_STRING("time", &state.time, "NAME", "the field with the time (time)"),
    DPF_OPT_END,
};

/* "LO:HI", small enough that sums of times are far from 2^63. */
static bool parse_times(const char *text, int64_t *lo, int64_t *hi)
{
    static const int64_t most = 1000000000000;
    char first[32];
    size_t size = strcspn(text, ":");
    if (size >= sizeof first || !text[size])
        return false;
    snprintf(first, sizeof first, "%.*s", (int)size, text);
    return dpf_parse_int(first, lo) && dpf_parse_int(text + size + 1, hi) &&
           *lo >= -most && *hi <= most && *lo <= *hi;
}

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_windowing *v = s->state;
    int64_t lo, hi;
    if (!parse_times(v->times, &lo, &hi))
        return dpf_fail(e, DPF_USAGE, "'--times %s' is not two whole numbers LO <= HI",
                        v->times);
    if (!v->links != (v->friends < 0))
        return dpf_fail(e, DPF_USAGE, "'--links' and '--friends' go together");
    if (v->rise && dpf_option_given(&s->parsed, "label"))
        return dpf_fail(e, DPF_USAGE, "give one of --rise and --label");
    v->rule = (struct dpf_history_rule){
        .length = (size_t)v->length,
        .first = lo,
        .last = hi,
        .every = v->every,
        .next = strcmp(v->predict, "next") == 0,
        .missing = (enum dpf_history_missing)DPF_INDEX(fillings, v->missing),
        .friends = v->links ? (uint64_t)v->friends : 0,
        .rise = -1};
    return dpf_history_ends(&v->rule) <= DPF_HISTORY_MAX_ENDS
               ? DPF_OK
               : dpf_fail(e, DPF_USAGE, "'--times' has more than %d window ends",
                          (int)DPF_HISTORY_MAX_ENDS);
}

static void add_event(const struct dpf_windowing *v, struct dpf_stage *s)
{
    struct dpf_history_keeps keeps = dpf_history_keeps(&v->rule);
    bool whole =
        dpf_ledger_rows_are_whole(&s->in.events, strcmp(v->person, "person") == 0);
    bool drops = v->rule.missing == DPF_MISSING_DROP;
    struct dpf_windows_event event = {.first = v->rule.first,
                                      .last = v->rule.last,
                                      .ends = dpf_history_ends(&v->rule),
                                      .friends = v->rule.friends,
                                      .count_private = s->in.is_private && drops};
    if (whole && keeps.add_remove <= DPF_MAX_STABILITY)
        event.stability = (struct dpf_stability){keeps.add_remove, keeps.replace_one};
    if (!whole && s->in.is_private)
        dpf_notice("rows were chosen before: nothing can be stated for a person");
    dpf_ledger_add_windows(&s->out.events, s->info->name, &event);
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_windowing *v = s->state;
    enum dpf_status status = dpf_window_check_fields(v, s, e);
    if (status == DPF_OK)
        status = dpf_window_declare_fields(v, s, e);
    if (status == DPF_OK)
        status = dpf_history_new(&v->rule, &v->history, e);
    if (status == DPF_OK && v->links)
        status = dpf_window_read_links(v, e);
    if (status == DPF_OK)
        add_event(v, s);
    return status;
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct dpf_windowing *v = s->state;
    const struct dpf_tensor *person = dpf_batch_field(b, &s->in, v->person, e);
    const struct dpf_tensor *time = dpf_batch_field(b, &s->in, v->time, e);
    const struct dpf_tensor *x = dpf_batch_field(b, &s->in, v->field, e);
    const struct dpf_tensor *y = v->rise ? NULL : dpf_batch_field(b, &s->in, v->label, e);
    if (!person || !time || !x || (!v->rise && !y))
        return DPF_BAD_STREAM;
    enum dpf_status status = dpf_history_add(v->history, person, time, x, y, e);
    dpf_batch_truncate(b, 0); /* the frame has nothing left to send */
    return status;
}

static enum dpf_status emit_windows(struct dpf_stage *s, uint64_t *made,
                                    struct dpf_error *e)
{
    struct dpf_windowing *v = s->state;
    uint64_t most = dpf_batch_rows(&s->out);
    size_t values = dpf_history_values(&v->rule);
    struct dpf_batch b;
    enum dpf_status status = dpf_batch_init(&b, &s->out, most, e);
    if (status != DPF_OK)
        return status;
    *made = 0;
    while (*made < most &&
           dpf_history_window(v->history, (float *)b.tensor[0].data + *made * values,
                              (uint8_t *)b.tensor[1].data + *made))
        ++*made;
    dpf_batch_truncate(&b, *made);
    status = dpf_stage_emit(s, &b, e);
    dpf_batch_release(&b);
    return status;
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_windowing *v = s->state;
    uint64_t made = 1;
    enum dpf_status status = dpf_history_close(v->history, e);
    while (status == DPF_OK && made)
        status = emit_windows(s, &made, e);
    struct dpf_history_counts c = dpf_history_count(v->history);
    /* When somebody wrote nothing down is a matter of hers. */
    if (status == DPF_OK && c.missing && !s->in.is_private && !s->in.is_protected)
        dpf_notice("%llu people: of %llu points of their windows %llu had no row; %llu "
                   "windows were dropped",
                   (unsigned long long)c.people, (unsigned long long)c.points,
                   (unsigned long long)c.missing, (unsigned long long)c.dropped);
    return status;
}

static void on_release(struct dpf_stage *s)
{
    struct dpf_windowing *v = s->state;
    dpf_history_destroy(&v->history);
}

static const struct dpf_stage_info info = {
    .name = "window",
    .summary = "make windows of people's rows over time, with their friends' influence",
    .reads = "person, time: whole numbers; x: d attributes; y: 2 classes; in any order",
    .writes = "x: f32 [d N + d + 1]; y: u8, 2 classes",
    .privacy = "none spent; an event states how many windows one person changes, her own "
               "and her friends': 'account' is about persons then",
    .example = "dpflow load synth-wellness:weekly | dpflow window --times 4:36 | dpflow "
               "inspect",
    .detail =
        "A window that ends at t has the d attributes at the N times up to t (d x N, by\n"
        "attribute, oldest first), the d attributes at t, and the influence of friends. "
        "Its\n"
        "label is that of t + 1. With --predict same it has the N times before t, and "
        "the label\n"
        "is that of t.\n"
        "The influence on u is the mean over friends v of psi(v, u), which stands in "
        "place of\n"
        "TaCPP: of the last N times s at which v had label 1 at s - 1, the share at "
        "which u had\n"
        "label 1 at s; 1 is added to the count, 2 to their number. Without friends it is "
        "1/2.\n"
        "A link is used while both its ends have fewer than F, in the stream's order.\n"
        "A missing time is no increase. The table is kept in memory, up to 4 GiB.\n"
        "\n"
        "Train and test are ranges of times (--times). If rows were chosen before "
        "('split',\n"
        "'load --limit'), nothing can be stated for a person.",
    .kind = DPF_FILTER,
    .is_exact = true,
    .options = options,
    .state = &state,
    .on_options = on_options,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_close = on_close,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
