#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "base/banned.h"

const char *const dpf_randomize_words[] = {
    "rr", "ue", "oue", "moue", "uer", "response", "sampled-bit", "privunit", NULL};
const char *const dpf_labels_words[] = {"clear", "response", "joint", "drop", NULL};

/* What a method reads, what is said of it, and by whom. */
enum kind { BITS, CLASSES, NUMBERS };
static const struct {
    enum kind kind;
    bool has_alpha;
    const char *source, *theorem, *why;
} methods[] = {
    [DPF_RANDOMIZE_RR] = {BITS, false, "RAPPOR, as LATENT's Eq. 6",
                          "sum over the bits of a string", NULL},
    [DPF_RANDOMIZE_UE] = {CLASSES, false, "unary encoding, Erlingsson et al. 2014",
                          "the two bits that one-hot inputs differ in", NULL},
    [DPF_RANDOMIZE_OUE] = {CLASSES, false, "optimised unary encoding, Wang et al. 2017",
                           "the two bits that one-hot inputs differ in", NULL},
    [DPF_RANDOMIZE_MOUE] = {BITS, true, "LATENT, Theorem 3",
                            "sum over the bits of a string", NULL},
    [DPF_RANDOMIZE_UER] =
        {BITS, true, "LATENT, Theorem 4", "sum over the bits of a string",
         "every bit is released by itself, so the costs of all bits add up; the proof of "
         "Theorem 4 lets the factors of even and odd bits cancel, which no output makes "
         "both do, and merging strings into one does not avoid composition"},
    [DPF_RANDOMIZE_RESPONSE] = {CLASSES, false, "Warner 1965, Kairouz et al. 2016",
                                "M-ary randomised response", NULL},
    [DPF_RANDOMIZE_SAMPLED_BIT] = {BITS, false, "one sampled bit by randomised response",
                                   "randomised response at a place that does not depend "
                                   "on the record",
                                   NULL},
    [DPF_RANDOMIZE_PRIVUNIT] = {NUMBERS, false, "PrivUnit, Bhowmick et al. 2018",
                                "two levels of probability on a finite set, by rank",
                                NULL},
};

static int word_index(const char *word, const char *const *words)
{
    int i = 0;
    while (words[i] && strcmp(words[i], word) != 0)
        i++;
    return i;
}

/* ------------------------------------------------------------------------- options */

enum dpf_status dpf_randomize_job_check(struct dpf_randomize_job *j,
                                        const struct dpf_stage *s, struct dpf_error *e)
{
    j->method =
        (enum dpf_randomize_method)word_index(j->method_word, dpf_randomize_words);
    j->labels = j->labels_word
                    ? (enum dpf_labels)word_index(j->labels_word, dpf_labels_words)
                    : DPF_LABELS_NONE;
    bool privunit = j->method == DPF_RANDOMIZE_PRIVUNIT;
    if (methods[j->method].has_alpha != (j->alpha > 0))
        return dpf_fail(e, DPF_USAGE,
                        j->alpha > 0
                            ? "'--alpha' goes with '--method moue' and 'uer', not "
                              "with '%s'"
                            : "'--method %s' needs '--alpha'",
                        j->method_word);
    if ((j->labels == DPF_LABELS_RESPONSE) != (j->label_epsilon > 0))
        return dpf_fail(e, DPF_USAGE,
                        j->label_epsilon > 0
                            ? "'--label-epsilon' goes with '--labels response'"
                            : "'--labels response' needs '--label-epsilon'");
    if (j->labels == DPF_LABELS_JOINT && !privunit)
        return dpf_fail(e, DPF_USAGE, "'--labels joint' goes with '--method privunit'");
    if (!privunit && (dpf_option_given(&s->parsed, "codebook") ||
                      dpf_option_given(&s->parsed, "public-seed") ||
                      dpf_option_given(&s->parsed, "owner")))
        return dpf_fail(e, DPF_USAGE,
                        "'--codebook', '--public-seed' and '--owner' go with '--method "
                        "privunit'");
    return DPF_OK;
}

/* -------------------------------------------------------------------- the mechanism */

/* The rates of a bitwise method. Those whose claim holds keep it in double precision,
 * too: rounding could leave them a hair above. */
static enum dpf_status open_bits(struct dpf_randomize_job *j, struct dpf_error *e)
{
    static const enum dpf_bit_method which[] = {DPF_BITS_RR, DPF_BITS_UE, DPF_BITS_OUE,
                                                DPF_BITS_MOUE, DPF_BITS_UER};
    struct dpf_bit_rates rates[2];
    bool one_hot = methods[j->method].kind == CLASSES;
    double wanted = j->epsilon;
    for (int tries = 0; tries < 12; tries++) {
        enum dpf_status status =
            dpf_bits_rates(which[j->method], wanted, j->values, j->alpha, rates, e);
        if (status != DPF_OK)
            return status;
        j->proven = one_hot ? dpf_one_hot_epsilon(&rates[0])
                            : dpf_bits_epsilon(rates, (j->values + 1) / 2, j->values / 2);
        if (j->proven <= j->epsilon || j->proven > j->epsilon * 1.01)
            break;
        wanted *= j->epsilon / j->proven * (1 - 1e-12);
    }
    if (j->proven < 1e-9) /* less than an event can state */
        j->proven = 1e-9;
    if (!isfinite(j->proven))
        return dpf_fail(e, DPF_USAGE,
                        "an epsilon of '%g' is too large for '%s': some bits would not "
                        "be changed at all",
                        j->epsilon, j->method_word);
    dpf_bit_randomiser_init(&j->bits, rates);
    const double all[4] = {rates[0].one, rates[0].zero, rates[1].one, rates[1].zero};
    memcpy(j->probabilities, all, sizeof all);
    j->probability_count = one_hot ? 2 : 4;
    j->words = dpf_calloc((j->values + 63) / 64 + 1, sizeof *j->words);
    return j->words ? DPF_OK : dpf_fail_memory(e);
}

static enum dpf_status open_sphere(struct dpf_randomize_job *j,
                                   const struct dpf_header *h, struct dpf_error *e)
{
    struct dpf_sphere_plan plan = {
        .values = j->values,
        .labels = j->labels == DPF_LABELS_JOINT ? h->fields[j->y].classes : 0,
        .directions = (size_t)j->codebook,
        .seed = (uint64_t)j->public_seed,
        .owner = (uint64_t)j->owner,
        .epsilon = j->epsilon};
    enum dpf_status status = dpf_sphere_init(&j->sphere, &plan, e);
    if (status != DPF_OK)
        return status;
    j->proven = j->sphere.epsilon;
    j->probabilities[0] = j->sphere.inside;
    j->moments[0] = j->sphere.cosine;
    j->moments[1] = j->sphere.square;
    j->probability_count = 1;
    return DPF_OK;
}

static enum dpf_status open_method(struct dpf_randomize_job *j,
                                   const struct dpf_header *h, struct dpf_error *e)
{
    enum dpf_status status;
    switch (j->method) {
    case DPF_RANDOMIZE_RESPONSE:
        status = dpf_response_init(&j->response, j->epsilon, j->values, e);
        j->proven = j->response.epsilon;
        j->probabilities[0] = j->response.keep;
        j->probability_count = 1;
        return status;
    case DPF_RANDOMIZE_SAMPLED_BIT:
        status = dpf_sampled_bit_init(&j->sampled, j->epsilon, j->values, e);
        j->proven = j->sampled.response.epsilon;
        j->probabilities[0] = j->sampled.response.keep;
        j->probability_count = 1;
        return status;
    case DPF_RANDOMIZE_PRIVUNIT:
        return open_sphere(j, h, e);
    default:
        return open_bits(j, e);
    }
}

/* --------------------------------------------------------------------------- fields */

/* Another class must fit where the true one stood. */
static bool classes_overflow(const struct dpf_field *f)
{
    return f->dtype == DPF_U8 && f->classes > 256;
}

static enum dpf_status find_fields(struct dpf_randomize_job *j, struct dpf_header *h,
                                   struct dpf_error *e)
{
    const struct dpf_field *x = dpf_header_field(h, j->field);
    const struct dpf_field *y = dpf_header_field(h, j->label);
    static const char *const wanted[] = {"packed bits (encode-binary makes them)",
                                         "one class a record", "numbers"};
    if (!x)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", j->field);
    if (y == x)
        y = NULL; /* the label itself is what is randomised */
    uint64_t elements = dpf_shape_elements(&x->shape);
    bool classes = x->classes >= 2 && elements == 1;
    enum kind kind = methods[j->method].kind;
    bool fits = kind == BITS      ? x->dtype == DPF_BITS && x->shape.rank == 1
                : kind == CLASSES ? classes
                                  : x->dtype != DPF_BITS && !x->classes;
    if (!fits || elements == 0)
        return dpf_fail(e, DPF_BAD_STREAM, "method '%s' randomises %s, not field '%s'",
                        j->method_word, wanted[kind], x->name);
    j->x = (int)(x - h->fields);
    j->y = y ? (int)(y - h->fields) : -1;
    j->values = kind == CLASSES ? x->classes : elements;
    if (y && j->labels == DPF_LABELS_NONE)
        return dpf_fail(e, DPF_USAGE,
                        "say what becomes of the labels in field '%s': '--labels clear', "
                        "'response' or 'drop'%s",
                        y->name, kind == NUMBERS ? " (or 'joint')" : "");
    if (!y && j->labels != DPF_LABELS_NONE && j->labels != DPF_LABELS_DROP)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no labels '%s'", j->label);
    if (y && j->labels != DPF_LABELS_DROP &&
        (y->classes < 2 || dpf_shape_elements(&y->shape) != 1 || y->dtype == DPF_BITS))
        return dpf_fail(e, DPF_USAGE, "field '%s' holds no label of declared classes",
                        y->name);
    if (classes_overflow(x) || (y && classes_overflow(y)))
        return dpf_fail(e, DPF_USAGE, "field '%s' has more classes than its type holds",
                        classes_overflow(x) ? x->name : y->name);
    return DPF_OK;
}

/* What leaves: the randomised field and, if wanted, the label. */
static enum dpf_status declare(const struct dpf_randomize_job *j, struct dpf_stage *s,
                               struct dpf_error *e)
{
    struct dpf_header *h = &s->out;
    const struct dpf_field *y = j->y >= 0 ? &s->in.fields[j->y] : NULL;
    struct dpf_shape shape = s->in.fields[j->x].shape;
    enum dpf_dtype dtype = s->in.fields[j->x].dtype;
    dpf_header_keep_field(h, j->x);
    struct dpf_field *f = &h->fields[0];
    if (j->method == DPF_RANDOMIZE_UE || j->method == DPF_RANDOMIZE_OUE) {
        dtype = DPF_BITS;
        shape = (struct dpf_shape){1, {j->values}};
    } else if (j->method == DPF_RANDOMIZE_SAMPLED_BIT ||
               j->method == DPF_RANDOMIZE_PRIVUNIT) {
        dtype = DPF_F32;
        shape = (struct dpf_shape){1, {j->values}};
    }
    uint64_t classes = j->method == DPF_RANDOMIZE_RESPONSE ? j->values : 0;
    dpf_field_redefine(f, dtype, &shape);
    f->classes = classes;
    if (!y || j->labels == DPF_LABELS_DROP)
        return DPF_OK;
    const struct dpf_shape code = {1, {y->classes}};
    bool joint = j->labels == DPF_LABELS_JOINT;
    struct dpf_field *label = dpf_header_add_field(h, y->name, joint ? DPF_F32 : y->dtype,
                                                   joint ? &code : &y->shape);
    if (!label)
        return dpf_fail_memory(e);
    label->classes = joint ? 0 : y->classes;
    return DPF_OK;
}

/* --------------------------------------------------------------------------- events */

static void add_events(struct dpf_randomize_job *j, struct dpf_stage *s)
{
    static const char in_the_clear[] =
        "the labels are not private: they left as they were";
    bool differs = j->proven > j->epsilon * (1 + 1e-9);
    struct dpf_mechanism_event m = {
        .spending = {.kind = DPF_SPEND_PURE,
                     .parameter = j->proven,
                     .choices = 2,
                     .rate = 1,
                     .count = 1},
        .sampling = "none",
        .relation = DPF_LOCAL,
        .assumes = j->labels == DPF_LABELS_CLEAR ? in_the_clear : NULL,
        .why = differs ? methods[j->method].why : NULL,
        .claimed = {j->epsilon, 0, methods[j->method].source},
        .proven = {j->proven, 0, methods[j->method].theorem},
        .method = j->method_word,
        .units = j->values,
        .probabilities = j->probabilities,
        .probability_count = j->probability_count,
        .moments = j->method == DPF_RANDOMIZE_PRIVUNIT ? j->moments : NULL,
        .shows_place = j->method == DPF_RANDOMIZE_PRIVUNIT,
        .clear = j->labels == DPF_LABELS_CLEAR ? j->label : NULL};
    if (j->method == DPF_RANDOMIZE_RESPONSE) {
        m.spending.kind = DPF_SPEND_RESPONSE;
        m.spending.choices = j->values;
    }
    if (j->seed >= 0)
        dpf_ledger_add_seed(&s->out.events, s->info->name);
    dpf_ledger_add_mechanism(&s->out.events, s->info->name, &m);
    if (j->labels != DPF_LABELS_RESPONSE)
        return;
    uint64_t classes = s->in.fields[j->y].classes;
    struct dpf_mechanism_event label = {
        .spending = {.kind = DPF_SPEND_RESPONSE,
                     .parameter = j->label_response.epsilon,
                     .choices = classes,
                     .rate = 1,
                     .count = 1},
        .sampling = "none",
        .relation = DPF_LOCAL,
        .claimed = {j->label_epsilon, 0, methods[DPF_RANDOMIZE_RESPONSE].source},
        .proven = {j->label_response.epsilon, 0, methods[DPF_RANDOMIZE_RESPONSE].theorem},
        .method = "response",
        .units = classes,
        .probabilities = &j->label_response.keep,
        .probability_count = 1};
    dpf_ledger_add_mechanism(&s->out.events, s->info->name, &label);
}

enum dpf_status dpf_randomize_job_open(struct dpf_randomize_job *j, struct dpf_stage *s,
                                       struct dpf_error *e)
{
    enum dpf_status status = find_fields(j, &s->in, e);
    if (status == DPF_OK && j->seed >= 0)
        dpf_random_init_insecure(&j->random, "randomize", (uint64_t)j->seed, 0);
    else if (status == DPF_OK)
        status = dpf_random_init(&j->random, e);
    if (status == DPF_OK)
        status = open_method(j, &s->in, e);
    if (status == DPF_OK && j->labels == DPF_LABELS_RESPONSE)
        status = dpf_response_init(&j->label_response, j->label_epsilon,
                                   s->in.fields[j->y].classes, e);
    if (status == DPF_OK)
        status = declare(j, s, e);
    if (status != DPF_OK)
        return status;
    s->drops_others = true; /* nothing leaves that the mechanism has not seen */
    if (s->in.is_private) {
        add_events(j, s);
        dpf_standing_protect(&s->out);
    } else {
        dpf_ledger_add_randomised(&s->out.events, s->info->name, j->method_word);
    }
    return j->remember ? dpf_release_memory_open(&j->memory, j->remember, s, e) : DPF_OK;
}

/* -------------------------------------------------------------------------- records */

/* What stands in j->words, randomised. */
static void release_words(struct dpf_randomize_job *j, uint8_t *out)
{
    size_t bytes = (j->values + 7) / 8, words = (j->values + 63) / 64;
    dpf_bits_randomise(&j->bits, &j->random, j->words, words);
    memcpy(out, j->words, bytes);
    if (j->values % 8) /* what lies behind the end says nothing */
        out[bytes - 1] &= (uint8_t)((1 << j->values % 8) - 1);
}

static void randomise_bits(struct dpf_randomize_job *j, const uint8_t *in, uint8_t *out)
{
    j->words[(j->values - 1) / 64] = 0;
    memcpy(j->words, in, (j->values + 7) / 8);
    release_words(j, out);
}

static void randomise_one_hot(struct dpf_randomize_job *j, uint64_t value, uint8_t *out)
{
    size_t words = (j->values + 63) / 64;
    memset(j->words, 0, words * sizeof *j->words);
    j->words[value / 64] = (uint64_t)1 << value % 64;
    release_words(j, out);
}

static void sample_bit(struct dpf_randomize_job *j, const uint8_t *in, float *out)
{
    uint64_t place;
    bool answer;
    dpf_sampled_bit_draw(&j->sampled, &j->random, in, &place, &answer);
    memset(out, 0, j->values * sizeof *out);
    out[place] = (float)dpf_sampled_bit_estimate(&j->sampled, answer);
}

static uint64_t get_class(const struct dpf_tensor *t, uint64_t row)
{
    return (uint64_t)dpf_tensor_get(t, row); /* the reader checked its range */
}

static void randomise_record(struct dpf_randomize_job *j, const struct dpf_batch *b,
                             uint64_t row, struct dpf_batch *out)
{
    const struct dpf_tensor *x = &b->tensor[j->x];
    const struct dpf_tensor *y = j->y >= 0 ? &b->tensor[j->y] : NULL;
    const void *in = (const char *)x->data + row * dpf_tensor_row_bytes(x);
    struct dpf_tensor *to = &out->tensor[0];
    void *room = (char *)to->data + row * dpf_tensor_row_bytes(to);
    switch (j->method) {
    case DPF_RANDOMIZE_UE:
    case DPF_RANDOMIZE_OUE:
        randomise_one_hot(j, get_class(x, row), room);
        break;
    case DPF_RANDOMIZE_RESPONSE:
        dpf_tensor_put_class(
            to, row, dpf_response_draw(&j->response, &j->random, get_class(x, row)));
        break;
    case DPF_RANDOMIZE_SAMPLED_BIT:
        sample_bit(j, in, room);
        break;
    case DPF_RANDOMIZE_PRIVUNIT: {
        bool joint = j->labels == DPF_LABELS_JOINT;
        float *code =
            joint ? (float *)out->tensor[1].data + row * j->sphere.plan.labels : NULL;
        dpf_sphere_draw(&j->sphere, &j->random, j->records + row, in,
                        joint ? get_class(y, row) : 0, room, code);
        break;
    }
    default:
        randomise_bits(j, in, room);
        break;
    }
    if (out->count < 2 || j->labels == DPF_LABELS_JOINT)
        return;
    if (j->labels == DPF_LABELS_RESPONSE)
        dpf_tensor_put_class(
            &out->tensor[1], row,
            dpf_response_draw(&j->label_response, &j->random, get_class(y, row)));
    else /* in the clear */
        memcpy((char *)out->tensor[1].data + row * dpf_tensor_row_bytes(y),
               (const char *)y->data + row * dpf_tensor_row_bytes(y),
               dpf_tensor_row_bytes(y));
}

enum dpf_status dpf_randomize_job_take(struct dpf_randomize_job *j, struct dpf_stage *s,
                                       struct dpf_batch *b, struct dpf_error *e)
{
    struct dpf_batch out = {0};
    enum dpf_status status = DPF_OK;
    if (j->method == DPF_RANDOMIZE_PRIVUNIT)
        status = dpf_tensor_make_f32(&b->tensor[j->x], e);
    if (status == DPF_OK)
        status = dpf_batch_init(&out, &s->out, b->rows, e);
    for (uint64_t row = 0; status == DPF_OK && row < b->rows; row++) {
        bool known = false;
        if (j->remember)
            status = dpf_release_memory_recall(&j->memory, b, row, &out, &known, e);
        if (status == DPF_OK && !known)
            randomise_record(j, b, row, &out);
        if (status == DPF_OK && !known && j->remember)
            status = dpf_release_memory_add(&j->memory, b, row, &out, e);
    }
    /* What is not safely remembered must not leave. */
    if (status == DPF_OK && j->remember)
        status = dpf_release_memory_sync(&j->memory, e);
    if (status != DPF_OK) {
        dpf_batch_release(&out);
        return status;
    }
    j->records += b->rows;
    dpf_batch_release(b);
    *b = out;
    return DPF_OK;
}

void dpf_randomize_job_release(struct dpf_randomize_job *j)
{
    dpf_release_memory_release(&j->memory);
    dpf_sphere_release(&j->sphere);
    dpf_random_release(&j->random);
    free(j->words);
    j->words = NULL;
}
