/* Bits that are each changed by themselves: of a string (rr, moue, uer), or of a class
 * written one-hot (ue, oue).
 *
 * Claim. facts.epsilon is what the bits cost by the claims of privacy/response.h: the sum
 * over all bits of a string; the two bits that differ between one-hot inputs. It is
 * computed from the rates that bits are drawn with, rounded up, and drawing is exact, so
 * it holds whatever the method's paper claims and however exp() was rounded. An epsilon
 * below 1e-9, less than an event can state, is stated as 1e-9. A rate of 0 or 1, which
 * has no finite cost, is refused. Bits behind the end of the string are cleared. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "privacy/randomiser.h"
#include "privacy/response.h"

#include "base/banned.h"

struct bits {
    uint64_t values;
    struct dpf_bit_randomiser randomiser;
    uint64_t words[]; /* room for one record */
};

/* Rates that cost at most what was asked for, where the method's claim holds: rounding
 * could leave them a hair above. What is far above is the method's own cost. */
static enum dpf_status find_rates(enum dpf_bit_method method, bool one_hot,
                                  const struct dpf_randomiser_setup *setup,
                                  struct dpf_bit_rates rates[2], double *proven,
                                  struct dpf_error *e)
{
    double wanted = setup->epsilon;
    for (int tries = 0; tries < 12; tries++) {
        enum dpf_status status =
            dpf_bits_rates(method, wanted, setup->values, setup->alpha, rates, e);
        if (status != DPF_OK)
            return status;
        *proven =
            one_hot ? dpf_one_hot_epsilon(&rates[0])
                    : dpf_bits_epsilon(rates, (setup->values + 1) / 2, setup->values / 2);
        if (*proven <= setup->epsilon || *proven > setup->epsilon * 1.01)
            break;
        wanted *= setup->epsilon / *proven * (1 - 1e-12);
    }
    *proven = *proven < 1e-9 ? 1e-9 : *proven;
    if (!isfinite(*proven))
        return dpf_fail(e, DPF_USAGE,
                        "an epsilon of '%g' is too large for '%s': some bits would not "
                        "be changed at all",
                        setup->epsilon, setup->name);
    return DPF_OK;
}

static enum dpf_status open_bits(enum dpf_bit_method method, bool one_hot,
                                 const struct dpf_randomiser_setup *setup, void **state,
                                 struct dpf_randomiser_facts *facts, struct dpf_error *e)
{
    struct dpf_bit_rates rates[2];
    enum dpf_status status =
        find_rates(method, one_hot, setup, rates, &facts->epsilon, e);
    if (status != DPF_OK)
        return status;
    size_t words = (setup->values + 63) / 64 + 1;
    struct bits *b = dpf_calloc(1, sizeof *b + words * sizeof *b->words);
    if (!b)
        return dpf_fail_memory(e);
    b->values = setup->values;
    dpf_bit_randomiser_init(&b->randomiser, rates);
    const double all[4] = {rates[0].one, rates[0].zero, rates[1].one, rates[1].zero};
    memcpy(facts->probabilities, all, sizeof all);
    facts->probability_count = one_hot ? 2 : 4;
    *state = b;
    return DPF_OK;
}

/* What stands in the room for a record, randomised. */
static void release_words(struct bits *b, struct dpf_random *r, uint8_t *out)
{
    size_t bytes = (b->values + 7) / 8, words = (b->values + 63) / 64;
    dpf_bits_randomise(&b->randomiser, r, b->words, words);
    memcpy(out, b->words, bytes);
    if (b->values % 8) /* what lies behind the end says nothing */
        out[bytes - 1] &= (uint8_t)((1 << b->values % 8) - 1);
}

static void draw_string(void *state, struct dpf_random *r,
                        const struct dpf_randomiser_record *record,
                        struct dpf_randomiser_message *message)
{
    struct bits *b = state;
    b->words[(b->values - 1) / 64] = 0;
    memcpy(b->words, record->data, (b->values + 7) / 8);
    release_words(b, r, message->data);
}

static void draw_one_hot(void *state, struct dpf_random *r,
                         const struct dpf_randomiser_record *record,
                         struct dpf_randomiser_message *message)
{
    struct bits *b = state;
    memset(b->words, 0, (b->values + 63) / 64 * sizeof *b->words);
    b->words[record->value / 64] = (uint64_t)1 << record->value % 64;
    release_words(b, r, message->data);
}

#define OPEN(name, method, one_hot)                                                      \
    static enum dpf_status open_##name(const struct dpf_randomiser_setup *setup,         \
                                       void **state, struct dpf_randomiser_facts *facts, \
                                       struct dpf_error *e)                              \
    {                                                                                    \
        return open_bits(method, one_hot, setup, state, facts, e);                       \
    }
OPEN(rr, DPF_BITS_RR, false)
OPEN(ue, DPF_BITS_UE, true)
OPEN(oue, DPF_BITS_OUE, true)
OPEN(moue, DPF_BITS_MOUE, false)
OPEN(uer, DPF_BITS_UER, false)

static const char *const alpha[] = {"alpha", NULL};

const struct dpf_randomiser dpf_randomiser_rr = {
    .summary = "bits: each bit is kept or flipped, all with the same probability",
    .reads = DPF_MESSAGE_BITS,
    .writes = DPF_MESSAGE_BITS,
    .source = "RAPPOR, as LATENT's Eq. 6",
    .theorem = "sum over the bits of a string",
    .open = open_rr,
    .draw = draw_string};

const struct dpf_randomiser dpf_randomiser_ue = {
    .summary = "a class: each bit of its one-hot code is kept or flipped, likewise",

    .reads = DPF_MESSAGE_CLASS,
    .writes = DPF_MESSAGE_BITS,
    .source = "unary encoding, Erlingsson et al. 2014",
    .theorem = "the two bits that one-hot inputs differ in",
    .open = open_ue,
    .draw = draw_one_hot};

const struct dpf_randomiser dpf_randomiser_oue = {
    .summary = "a class: the same, with the probabilities that give the least variance",

    .reads = DPF_MESSAGE_CLASS,
    .writes = DPF_MESSAGE_BITS,
    .source = "optimised unary encoding, Wang et al. 2017",
    .theorem = "the two bits that one-hot inputs differ in",
    .open = open_oue,
    .draw = draw_one_hot};

const struct dpf_randomiser dpf_randomiser_moue = {
    .summary = "bits: ones and zeros have different probabilities, which --alpha sets",
    .reads = DPF_MESSAGE_BITS,
    .writes = DPF_MESSAGE_BITS,
    .needs = alpha,
    .source = "LATENT, Theorem 3",
    .theorem = "sum over the bits of a string",
    .open = open_moue,
    .draw = draw_string};

const struct dpf_randomiser dpf_randomiser_uer = {
    .summary = "bits: the same, with different probabilities at even and odd positions",

    .reads = DPF_MESSAGE_BITS,
    .writes = DPF_MESSAGE_BITS,
    .needs = alpha,
    .source = "LATENT, Theorem 4",
    .theorem = "sum over the bits of a string",
    .why =
        "every bit is released by itself, so the costs of all bits add up; the proof of "
        "Theorem 4 lets the factors of even and odd bits cancel, which no output makes "
        "both do, and merging strings into one does not avoid composition",
    .open = open_uer,
    .draw = draw_string};
