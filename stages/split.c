/* split: keep a part of the records. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "data/partition.h"
#include "stage/stage.h"

#include "base/banned.h"

static struct splitting {
    /* what the user asked for, then what it takes */
    double fraction;
    bool rest;
    int64_t parts, part, seed;
    const char *classes, *field, *by;
    struct dpf_partition partition;
    bool *keep; /* of each record of a batch */
    size_t keep_capacity;
} state = {.fraction = -1, .part = -1, .field = "y", .by = "index"};

static const char *const rules[] = {"index", "order", "content", "person", NULL};

static const struct dpf_option options[] = {
    DPF_OPT_REAL("fraction", &state.fraction, "F", 0, 1,
                 "keep a random share F of the records"),
    DPF_OPT_FLAG("rest", &state.rest, "with --fraction: keep the others instead"),
    DPF_OPT_INT("parts", &state.parts, "K", 1, DPF_PARTITION_MAX_PARTS,
                "cut into K disjoint parts of equal size"),
    DPF_OPT_INT("part", &state.part, "I", 0, DPF_PARTITION_MAX_PARTS,
                "with --parts: keep part I, counted from 0"),
    DPF_OPT_STRING("class", &state.classes, "C,...",
                   "keep the records with one of these labels"),
    DPF_OPT_STRING("field", &state.field, "NAME", "the field with the labels (y)"),
    DPF_OPT_CHOICE("by", &state.by, rules, "RULE",
                   "what assigns a record to a part: index (its position, at random), "
                   "order (its position, in order), content, or person (the field "
                   "'person' alone) (index)"),
    DPF_OPT_INT("seed", &state.seed, "N", 0, 9e15, "seed of the split (0)"),
    DPF_OPT_END,
};

static enum dpf_status parse_classes(struct splitting *v, struct dpf_error *e)
{
    char *copy = dpf_strdup(v->classes), *rest = copy;
    if (!copy)
        return dpf_fail_memory(e);
    enum dpf_status status = DPF_OK;
    for (char *word; status == DPF_OK && (word = strsep(&rest, ","));)
        if (v->partition.class_count ==
                sizeof v->partition.classes / sizeof *v->partition.classes ||
            !dpf_parse_uint(word, &v->partition.classes[v->partition.class_count++]))
            status = dpf_fail(e, DPF_USAGE, "option '--class' needs labels, not '%s'",
                              v->classes);
    free(copy);
    return status;
}

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct splitting *v = s->state;
    bool fraction = v->fraction >= 0, parts = v->parts > 0;
    if (fraction + parts + (v->classes != NULL) != 1)
        return dpf_fail(e, DPF_USAGE, "give one of --fraction, --parts and --class");
    if (parts && v->part < 0)
        return dpf_fail(e, DPF_USAGE, "option '--parts' needs '--part'");
    if (v->rest && !fraction)
        return dpf_fail(e, DPF_USAGE, "option '--rest' goes with '--fraction'");
    if (v->part >= 0 && !parts)
        return dpf_fail(e, DPF_USAGE, "option '--part' goes with '--parts'");
    if (dpf_option_given(&s->parsed, "field") && !v->classes)
        return dpf_fail(e, DPF_USAGE, "option '--field' goes with '--class'");
    if (v->classes &&
        (dpf_option_given(&s->parsed, "by") || dpf_option_given(&s->parsed, "seed")))
        return dpf_fail(e, DPF_USAGE, "'--by' and '--seed' do not apply to '--class'");
    if (strcmp(v->by, "order") == 0 && dpf_option_given(&s->parsed, "seed"))
        return dpf_fail(e, DPF_USAGE, "'--seed' does not apply to '--by order'");
    v->partition = (struct dpf_partition){.rule = fraction ? DPF_PART_FRACTION
                                                  : parts  ? DPF_PART_OF
                                                           : DPF_PART_CLASS,
                                          .by_content = strcmp(v->by, "content") == 0 ||
                                                        strcmp(v->by, "person") == 0,
                                          .by_person = strcmp(v->by, "person") == 0,
                                          .by_order = strcmp(v->by, "order") == 0,
                                          .seed = (uint64_t)v->seed,
                                          .fraction = v->fraction,
                                          .rest = v->rest,
                                          .parts = (uint64_t)v->parts,
                                          .part = (uint64_t)v->part,
                                          .class_field = v->field};
    return v->classes ? parse_classes(v, e) : DPF_OK;
}

static enum dpf_status check_labels(const struct splitting *v, struct dpf_stage *s,
                                    struct dpf_error *e)
{
    const struct dpf_field *f = dpf_header_field(&s->in, v->field);
    if (!f || !f->classes || f->shape.rank != 0)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no label field '%s'",
                        v->field);
    for (uint64_t i = 0; i < v->partition.class_count; i++)
        if (v->partition.classes[i] >= f->classes)
            return dpf_fail(e, DPF_USAGE,
                            "label %llu is outside the %llu classes of '%s'",
                            (unsigned long long)v->partition.classes[i],
                            (unsigned long long)f->classes, v->field);
    return DPF_OK;
}

/* A share and the rest of it are two parts. */
static void add_event(const struct splitting *v, struct dpf_stage *s)
{
    struct dpf_partition_keeps keeps = dpf_partition_keeps(&v->partition);
    struct dpf_stability stability = {keeps.add_remove, keeps.replace_one};
    bool count_private = s->in.is_private && keeps.own;
    if (v->classes) {
        char *rule = dpf_format("%s is %s", v->field, v->classes);
        const struct dpf_selection_event event = {.by = "label",
                                                  .rule = rule ? rule : "",
                                                  .stability = stability,
                                                  .count_private = count_private};
        dpf_ledger_add_selection(&s->out.events, s->info->name, &event);
        free(rule);
        return;
    }
    bool share = v->parts == 0;
    const struct dpf_partition_event event = {
        .parts = share ? 2 : v->partition.parts,
        .part = share ? v->rest : v->partition.part,
        .by = v->by,
        .seed = v->partition.seed,
        .share = share ? fmax(v->fraction, DBL_MIN) : 0,
        .stability = stability,
        .disjoint_under = keeps.own ? DPF_ADD_REMOVE : DPF_REPLACE_ONE,
        .count_private = count_private};
    dpf_ledger_add_partition(&s->out.events, s->info->name, &event, &s->in);
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct splitting *v = s->state;
    v->partition.total_known = s->in.has_records;
    v->partition.total = s->in.records;
    enum dpf_status status = v->classes ? check_labels(v, s, e) : DPF_OK;
    if (v->partition.by_person && !dpf_header_field(&s->in, "person"))
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field 'person'");
    if (status == DPF_OK)
        status = dpf_partition_start(&v->partition, e);
    if (status != DPF_OK)
        return status;
    s->out.has_records = dpf_partition_size(&v->partition, &s->out.records);
    add_event(v, s);
    return DPF_OK;
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct splitting *v = s->state;
    if (!dpf_grow(&v->keep, &v->keep_capacity, b->rows, sizeof *v->keep))
        return dpf_fail_memory(e);
    enum dpf_status status = dpf_partition_choose(&v->partition, &s->in, b, v->keep, e);
    if (status == DPF_OK)
        dpf_batch_select(b, v->keep);
    return status;
}

static void on_release(struct dpf_stage *s)
{
    struct splitting *v = s->state;
    dpf_partition_release(&v->partition);
    free(v->keep);
}

static const struct dpf_stage_info info = {
    .name = "split",
    .summary = "keep a part of the records: a share, one of K parts, some classes",
    .reads = "any fields",
    .writes = "the same fields, fewer records",
    .privacy = "none spent; an event states in how many records neighbours differ "
               "afterwards, and whether the number of records is private",
    .example =
        "dpflow load digits:all | dpflow split --parts 4 --part 0 | dpflow inspect",
    .detail = "The same seed gives the same split: --fraction 0.8 and --fraction 0.8 "
              "--rest are\n"
              "each other's complement, and the K parts are disjoint and complete.\n"
              "If one record is added or removed: with --by index all others may change "
              "their part,\n"
              "with --by order each part changes in at most two records, with --by "
              "content no other\n"
              "record changes its part. After a choice by content or label the number of "
              "records is\n"
              "private. With --by person all rows of a person are in one part: 'window' "
              "may follow.",
    .kind = DPF_FILTER,
    .is_exact = true,
    .options = options,
    .state = &state,
    .on_options = on_options,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
