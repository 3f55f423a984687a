/* Ledgers: what events come to, one by one, together, in branches, and malformed. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/ledger.h"
#include "account/pld.h"
#include "harness.h"
#include "ledger/merge.h"
#include "told.h"
#include "wire/stream.h"

#include "base/banned.h"

/* ---------------------------------------------------------------------- events as text
 */

/* A value as JSON with ' for ", and nan and inf for numbers, becomes MessagePack. */

static const char *blank(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

static const char *skip(const char *p)
{
    int depth = 0;
    bool quoted = false;
    for (; *p; p++) {
        if (*p == '\'')
            quoted = !quoted;
        if (quoted)
            continue;
        if (*p == '{' || *p == '[')
            depth++;
        if ((*p == '}' || *p == ']') && --depth < 0)
            return p;
        if ((*p == ',' || *p == ':') && depth == 0)
            return p;
    }
    return p;
}

static const char *pack(msgpack_packer *to, const char *p);

static const char *pack_group(msgpack_packer *to, const char *p)
{
    char open = *p;
    size_t count = 0;
    p = blank(p + 1);
    for (const char *q = p; *q && *q != '}' && *q != ']';) {
        q = skip(q);
        count++;
        q = *q == ',' || *q == ':' ? blank(q + 1) : q;
    }
    if (open == '{')
        msgpack_pack_map(to, count / 2);
    else
        msgpack_pack_array(to, count);
    for (size_t i = 0; i < count; i++) {
        p = blank(pack(to, p));
        p = i + 1 < count ? blank(p + 1) : p;
    }
    return p + 1;
}

static const char *pack(msgpack_packer *to, const char *p)
{
    p = blank(p);
    if (*p == '{' || *p == '[')
        return pack_group(to, p);
    if (*p == '\'') {
        const char *end = strchr(p + 1, '\'');
        size_t size = (size_t)(end - p - 1);
        msgpack_pack_str(to, size);
        msgpack_pack_str_body(to, p + 1, size);
        return end + 1;
    }
    const char *end = skip(p);
    size_t size = (size_t)(end - p);
    if (strncmp(p, "null", 4) == 0)
        msgpack_pack_nil(to);
    else if (strncmp(p, "true", 4) == 0)
        msgpack_pack_true(to);
    else if (memchr(p, '.', size) || memchr(p, 'e', size) || memchr(p, 'n', size))
        msgpack_pack_double(to, strtod(p, NULL)); /* takes nan and inf */
    else if (*p == '-')
        msgpack_pack_int64(to, strtoll(p, NULL, 10));
    else
        msgpack_pack_uint64(to, strtoull(p, NULL, 10));
    return end;
}

static void add(struct dpf_values *v, const char *text)
{
    msgpack_packer p = dpf_values_packer(v);
    pack(&p, text);
    v->count++;
}

/* ----------------------------------------------------------------------------- accounts
 */

static struct dpf_spending gaussian(double sigma, double rate, uint64_t count)
{
    return (struct dpf_spending){&dpf_spending_gaussian, sigma, 0, rate, count};
}

static struct dpf_spending pure(double epsilon)
{
    return (struct dpf_spending){&dpf_spending_pure, epsilon, 2, 1, 1};
}

static double compose(const struct dpf_spending *list, size_t count, double delta)
{
    double epsilon = NAN;
    CU_ASSERT(dpf_compose_epsilon(DPF_METHOD_BEST, list, count, delta, &epsilon, NULL,
                                  NULL) == DPF_OK);
    return epsilon;
}

static double compose_one(struct dpf_spending s, double delta)
{
    return compose(&s, 1, delta);
}

static void mechanism(struct dpf_header *h, struct dpf_spending s,
                      enum dpf_relation relation)
{
    struct dpf_mechanism_event event = {
        .spending = s,
        .sampling = s.rate < 1 ? "poisson" : "none",
        .norm = "l2",
        .sensitivity = 1,
        .relation = relation,
        .claimed = {0.25, 1e-7, "a paper"},
        .proven = {0.5, s.kind == &dpf_spending_gaussian ? 1e-6 : 0, "a theorem"}};
    dpf_ledger_add_mechanism(&h->events, "test", &event);
    h->is_private = false;
    h->is_protected = true;
}

static const struct dpf_account_request usual = {.method = DPF_METHOD_BEST,
                                                 .delta = 1e-5};

static double epsilon_as(const struct dpf_header *h,
                         const struct dpf_account_request *request)
{
    struct dpf_account a;
    struct dpf_error e = {0};
    enum dpf_status status = dpf_account_ledger(&a, h, request, &e);
    CU_ASSERT(status == DPF_OK);
    if (status != DPF_OK) {
        printf("    %s\n", e.message);
        return NAN;
    }
    double epsilon = a.proven.epsilon;
    dpf_account_release(&a);
    return epsilon;
}

static double epsilon_of(const struct dpf_header *h)
{
    return epsilon_as(h, &usual);
}

/* Whether the ledger is refused, with this in the message. */
static bool refused(const struct dpf_header *h, const struct dpf_account_request *request,
                    const char *text)
{
    struct dpf_account a = {0};
    struct dpf_error e = {0};
    enum dpf_status status = dpf_account_ledger(&a, h, request, &e);
    bool good = status == DPF_PRIVACY && strstr(e.message, text);
    if (!good)
        printf("    status %d, '%s', epsilon %g\n", status, e.message, a.proven.epsilon);
    /* nothing is left behind, and nobody has to want the text */
    good = good && !a.why.data && !a.source.data;
    if (status == DPF_OK)
        dpf_account_release(&a);
    good = dpf_account_ledger(&a, h, request, NULL) == status && good;
    if (status == DPF_OK)
        dpf_account_release(&a);
    return good;
}

/* A protected stream with these events. */
static struct dpf_header stream(const char *const *events)
{
    struct dpf_header h = {.is_protected = true};
    for (size_t i = 0; events[i]; i++)
        add(&h.events, events[i]);
    return h;
}

static double epsilon_of_events(const char *const *events)
{
    struct dpf_header h = stream(events);
    double epsilon = epsilon_of(&h);
    dpf_header_release(&h);
    return epsilon;
}

#define EVENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

#define GAUSSIAN_WITH(sigma, sampling, rate, relation)                                   \
    "{'event': 'mechanism', 'stage': 't', 'mechanism': 'gaussian', "                     \
    "'noise_multiplier': " sigma ", 'sampling': '" sampling "', 'rate': " rate           \
    ", 'count': 1, 'relation': '" relation "'}"
#define GAUSSIAN(sigma, relation) GAUSSIAN_WITH(sigma, "none", "1.0", relation)
#define PURE(epsilon, relation)                                                          \
    "{'event': 'mechanism', 'stage': 't', 'mechanism': 'pure', 'epsilon': " epsilon      \
    ", 'sampling': 'none', 'rate': 1.0, 'count': 1, 'relation': '" relation "'}"
#define AUGMENTATION(copies)                                                             \
    "{'event': 'augmentation', 'stage': 'augment', 'copies': " copies                    \
    ", 'by': 'index', 'stable_under': 'replace-one'}"
#define PARTITION_OF(cut, part, parts)                                                   \
    "{'event': 'partition', 'stage': 'split', 'parts': " parts ", 'part': " part         \
    ", 'by': 'index', 'seed': 0, 'cut': '" cut "', 'stability': {'replace-one': 1}, "    \
    "'disjoint_under': 'replace-one'}"
#define PARTITION(part, parts) PARTITION_OF("blake2b:1", part, parts)
#define SELECTION(relation)                                                              \
    "{'event': 'selection', 'stage': 'split', 'by': 'index', 'stable_under': '" relation \
    "'}"

static void standing_without_mechanisms(void)
{
    struct dpf_header h = {.is_private = true};
    struct dpf_account a;
    struct dpf_text t = {0};
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    CU_ASSERT(isinf(a.proven.epsilon) && a.why.size > 0);
    dpf_account_table(&a, &t);
    CU_ASSERT(strstr(dpf_text_get(&t), "unbounded") != NULL);
    dpf_account_release(&a);
    dpf_text_release(&t);
    h.is_private = false;
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    CU_ASSERT_DOUBLE_EQUAL(a.proven.epsilon, 0, 0);
    dpf_account_table(&a, &t);
    CU_ASSERT(strstr(dpf_text_get(&t), "epsilon 0") != NULL);
    dpf_account_release(&a);
    dpf_text_release(&t);
    /* private records that were only divided are as private as before */
    h.is_private = true;
    add(&h.events, SELECTION("replace-one"));
    CU_ASSERT(isinf(epsilon_of(&h)));
    dpf_header_release(&h);
}

/* FORMAT.md: "everything in the stream came out of the mechanisms in `events`". If there
 * are none, it did not. */
static void protected_without_mechanisms(void)
{
    struct dpf_header h = {.is_protected = true};
    struct dpf_account a;
    enum dpf_status status = dpf_account_ledger(&a, &h, &usual, NULL);
    CU_ASSERT(status == DPF_PRIVACY || (status == DPF_OK && isinf(a.proven.epsilon)));
    if (status == DPF_OK)
        dpf_account_release(&a);
}

static void one_event(void)
{
    static const double sigmas[] = {0.8, 1, 5}, rates[] = {1, 0.1, 0.004};
    for (size_t i = 0; i < COUNT(sigmas); i++)
        for (size_t j = 0; j < COUNT(rates); j++) {
            struct dpf_header h = {0};
            struct dpf_account a;
            struct dpf_account_request stated = {.method = DPF_METHOD_BEST, .delta = NAN};
            struct dpf_spending s = gaussian(sigmas[i], rates[j], 70);
            mechanism(&h, s, DPF_ADD_REMOVE);
            SAME("asked for", epsilon_of(&h), compose_one(s, 1e-5));
            CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &stated, NULL) == DPF_OK);
            SAME("stated", a.proven.epsilon, compose_one(s, 1e-6));
            CU_ASSERT_DOUBLE_EQUAL(a.proven.delta, 1e-6, 0);
            CU_ASSERT(a.mechanisms == 1 && a.relation == DPF_ADD_REMOVE);
            CU_ASSERT(a.has_claim);
            CU_ASSERT_DOUBLE_EQUAL(a.claimed.epsilon, 0.25, 0);
            CU_ASSERT_STRING_EQUAL(a.claimed.source, "a paper");
            dpf_account_release(&a);
            static const enum dpf_method methods[] = {
                DPF_METHOD_RDP, DPF_METHOD_MOMENTS, DPF_METHOD_BASIC, DPF_METHOD_STRONG};
            for (size_t m = 0; m < COUNT(methods); m++) {
                double due;
                struct dpf_account_request other = {.method = methods[m], .delta = 1e-5};
                CU_ASSERT(dpf_compose_epsilon(methods[m], &s, 1, 1e-5, &due, NULL,
                                              NULL) == DPF_OK);
                SAME(dpf_methods[methods[m]].name, epsilon_as(&h, &other), due);
            }
            dpf_header_release(&h);
        }
}

static void events_compose(void)
{
    struct dpf_header h = {0};
    const struct dpf_spending list[] = {gaussian(2, 0.1, 50),
                                        gaussian(1.5, 1, 1),
                                        {&dpf_spending_laplace, 3, 0, 1, 2},
                                        {&dpf_spending_response, 0.31, 4, 1, 1},
                                        pure(0.13)};
    double sum = 0, pld;
    struct dpf_account a;
    for (size_t i = 0; i < COUNT(list); i++) {
        mechanism(&h, list[i], DPF_ADD_REMOVE);
        sum += compose_one(list[i], 1e-5 / COUNT(list));
    }
    CU_ASSERT(dpf_pld_epsilon(list, COUNT(list), 1e-5, &pld, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    SAME("together", a.proven.epsilon, pld);
    CU_ASSERT(a.method == DPF_METHOD_PLD && a.mechanisms == COUNT(list));
    BELOW("not a sum", a.proven.epsilon, 0.9 * sum);
    /* claims add up, for want of anything better */
    SAME("claimed", a.claimed.epsilon, 0.25 * COUNT(list));
    SAME("claimed", a.claimed.delta, 1e-7 * COUNT(list));
    dpf_account_release(&a);
    /* stated deltas add up too */
    struct dpf_account_request stated = {.method = DPF_METHOD_BEST, .delta = NAN};
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &stated, NULL) == DPF_OK);
    SAME("stated", a.proven.delta, 2e-6);
    dpf_account_release(&a);
    /* the same as a list */
    CU_ASSERT_FATAL(
        dpf_account_list(&a, list, COUNT(list), DPF_ADD_REMOVE, &usual, NULL) == DPF_OK);
    SAME("a list", a.proven.epsilon, pld);
    CU_ASSERT(!a.has_claim);
    dpf_account_release(&a);
    dpf_header_release(&h);
}

static void unprotected_events(void)
{
    static const char *const bad[] = {
        "{'event': 'none', 'stage': 't', 'why': 'weights as they were'}",
        "{'event': 'insecure-seed', 'stage': 't', 'why': 'weights as they were'}",
        "{'event': 'none', 'stage': 't'}", "{'event': 'none', 'why': 7}"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct dpf_header h = stream(EVENTS(GAUSSIAN("2.0", "add-remove"), bad[i]));
        struct dpf_account a;
        struct dpf_text t = {0};
        CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
        CU_ASSERT(isinf(a.proven.epsilon));
        CU_ASSERT(a.why.size > 0);
        if (i < 2) {
            CU_ASSERT(strstr(dpf_text_get(&a.why), "weights as they were") != NULL);
            dpf_account_table(&a, &t);
            CU_ASSERT(strstr(dpf_text_get(&t), "weights as they were") != NULL);
        }
        dpf_text_release(&t);
        dpf_account_release(&a);
        dpf_header_release(&h);
    }
}

/* ---------------------------------------------------------------------------- malformed
 */

#define MECHANISM(rest) "{'event': 'mechanism', 'stage': 't', " rest "}"

static void malformed_events(void)
{
    static const char *const bad[] = {
        "{'event': 'teleport', 'stage': 't'}",
        "{'stage': 't'}",
        "{'event': 7}",
        "{}",
        "7",
        "null",
        "'mechanism'",
        "[]",
        "['event', 'mechanism']",
        "{'event': ['mechanism']}",
        MECHANISM("'relation': 'add-remove'"),
        MECHANISM("'mechanism': 'psychic', 'epsilon': 1.0, 'rate': 1.0, 'count': 1, "
                  "'relation': 'local'"),
        MECHANISM("'mechanism': 7, 'epsilon': 1.0, 'rate': 1.0, 'count': 1, "
                  "'relation': 'local'"),
        GAUSSIAN("nan", "add-remove"),
        GAUSSIAN("inf", "add-remove"),
        GAUSSIAN("0.0", "add-remove"),
        GAUSSIAN("-1.0", "add-remove"),
        GAUSSIAN("-1", "add-remove"),
        GAUSSIAN("1e-300", "add-remove"),
        GAUSSIAN("'1'", "add-remove"),
        GAUSSIAN("null", "add-remove"),
        GAUSSIAN("true", "add-remove"),
        GAUSSIAN("[1.0]", "add-remove"),
        GAUSSIAN("1.0", "cousins"),
        GAUSSIAN_WITH("1.0", "poisson", "2.0", "add-remove"),
        GAUSSIAN_WITH("1.0", "poisson", "2", "add-remove"),
        GAUSSIAN_WITH("1.0", "poisson", "0.0", "add-remove"),
        GAUSSIAN_WITH("1.0", "poisson", "-0.1", "add-remove"),
        GAUSSIAN_WITH("1.0", "poisson", "nan", "add-remove"),
        GAUSSIAN_WITH("1.0", "poisson", "'0.1'", "add-remove"),
        /* sampling is understood under add-remove only */
        GAUSSIAN_WITH("1.0", "poisson", "0.5", "replace-one"),
        GAUSSIAN_WITH("1.0", "poisson", "0.5", "local"),
        PURE("0.0", "local"),
        PURE("nan", "local"),
        PURE("inf", "local"),
        PURE("-2", "local"),
        MECHANISM("'mechanism': 'gaussian', 'rate': 1.0, 'count': 1, "
                  "'relation': 'add-remove'"),
        MECHANISM("'mechanism': 'gaussian', 'noise_multiplier': 1.0, 'count': 1, "
                  "'relation': 'add-remove'"),
        MECHANISM("'mechanism': 'gaussian', 'noise_multiplier': 1.0, 'rate': 1.0, "
                  "'relation': 'add-remove'"),
        MECHANISM("'mechanism': 'gaussian', 'noise_multiplier': 1.0, 'rate': 1.0, "
                  "'count': 1"),
        MECHANISM("'mechanism': 'gaussian', 'epsilon': 1.0, 'rate': 1.0, 'count': 1, "
                  "'relation': 'add-remove'"),
        MECHANISM("'mechanism': 'laplace', 'scale': 1.0, 'rate': 1.0, 'count': 0, "
                  "'relation': 'local'"),
        MECHANISM("'mechanism': 'laplace', 'scale': 1.0, 'rate': 1.0, 'count': -1, "
                  "'relation': 'local'"),
        MECHANISM("'mechanism': 'laplace', 'scale': 1.0, 'rate': 1.0, 'count': 1.5, "
                  "'relation': 'local'"),
        MECHANISM("'mechanism': 'laplace', 'scale': 1.0, 'rate': 1.0, "
                  "'count': 18446744073709551615, 'relation': 'local'"),
        MECHANISM("'mechanism': 'response', 'epsilon': 1.0, 'choices': 1, 'rate': 1.0, "
                  "'count': 1, 'relation': 'local'"),
        MECHANISM("'mechanism': 'response', 'epsilon': 1.0, 'choices': 2.5, 'rate': 1.0, "
                  "'count': 1, 'relation': 'local'"),
        "{'event': 'augmentation', 'stable_under': 'replace-one'}",
        AUGMENTATION("0"),
        AUGMENTATION("-3"),
        AUGMENTATION("2.5"),
        AUGMENTATION("18446744073709551615"),
        "{'event': 'model', 'data': 'private'}",
        "{'event': 'model', 'data': 'private', 'events': 7}",
        "{'event': 'model', 'data': 'private', 'events': [{'event': 'teleport'}]}",
        "{'event': 'merge'}",
        "{'event': 'merge', 'branches': 7}",
        "{'event': 'merge', 'branches': [7]}",
        "{'event': 'merge', 'branches': [[7], [8]]}",
        "{'event': 'merge', 'branches': [[{'event': 'teleport'}]]}",
        "{'event': 'merge', 'branches': [[" PARTITION("0", "2") ", {}], [" PARTITION(
            "1", "2") "]]}",
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        for (int place = 0; place < 2; place++) {
            const char *good = GAUSSIAN("2.0", "add-remove");
            struct dpf_header h = stream(place ? EVENTS(good, bad[i])
                                               : EVENTS(bad[i], good, SELECTION("x")));
            if (!refused(&h, &usual, "")) {
                printf("    %s\n", bad[i]);
                CU_FAIL("taken");
            }
            dpf_header_release(&h);
        }
}

/* Amplification belongs to Poisson sampling. A rate on anything else is a mistake, and
 * not to the record's cost. */
static void rates_of_other_sampling(void)
{
    static const char *const words[] = {"shuffle", "none", "sequence"};
    for (size_t i = 0; i < COUNT(words); i++) {
        struct dpf_account a;
        char text[400];
        snprintf(text, sizeof text,
                 "{'event': 'mechanism', 'stage': 't', 'mechanism': 'gaussian', "
                 "'noise_multiplier': 1.0, 'sampling': '%s', 'rate': 0.01, 'count': 1, "
                 "'relation': 'add-remove'}",
                 words[i]);
        struct dpf_header h = stream(EVENTS(text));
        enum dpf_status status = dpf_account_ledger(&a, &h, &usual, NULL);
        CU_ASSERT(status == DPF_PRIVACY ||
                  told(a.proven.epsilon >= compose_one(gaussian(1, 1, 1), 1e-5), words[i],
                       a.proven.epsilon, compose_one(gaussian(1, 1, 1), 1e-5)));
        if (status == DPF_OK)
            dpf_account_release(&a);
        dpf_header_release(&h);
    }
}

/* Statements are somebody's word; they may be nonsense without harm. */
static void malformed_statements(void)
{
    static const char *const statements[] = {
        "'claimed': 7, 'proven': 'x'",
        "'claimed': {'epsilon': 'x', 'delta': [], 'source': 9}, 'proven': {'delta': 'x'}",
        "'claimed': {'epsilon': nan}, 'proven': {'delta': nan}",
        "'claimed': {'epsilon': null}, 'proven': {'delta': null}",
        "'proven': {'delta': -1.0}",
        "'assumes': 7, 'claimed': []"};
    for (size_t i = 0; i < COUNT(statements); i++) {
        char text[500];
        snprintf(text, sizeof text,
                 "{'event': 'mechanism', 'mechanism': 'gaussian', 'noise_multiplier': "
                 "2.0, 'rate': 1.0, 'count': 1, 'relation': 'add-remove', %s}",
                 statements[i]);
        struct dpf_header h = stream(EVENTS(text));
        struct dpf_account a;
        CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
        SAME("epsilon", a.proven.epsilon, compose_one(gaussian(2, 1, 1), 1e-5));
        CU_ASSERT(!a.has_claim);
        dpf_account_release(&a);
        dpf_header_release(&h);
    }
}

/* Texts of a ledger stand in their own line, and nothing in them moves the cursor. */
static void texts_cannot_forge_lines(void)
{
    static const char *const attacks[] = {"x\nproven     epsilon 0.0001",
                                          "x\rproven     epsilon 0.0001",
                                          "\x1b[1A\x1b[2K",
                                          "\xc2\x85proven",
                                          "\xe2\x80\xa8proven",
                                          "\xe2\x80\xae 0 nolispe"};
    static const char *const places[] = {
        "'assumes': '%s'", "'claimed': {'epsilon': 1.0, 'delta': 0.0, 'source': '%s'}",
        "'proven': {'delta': 0.0, 'why': '%s'}"};
    for (size_t i = 0; i < COUNT(attacks) * COUNT(places); i++) {
        char rest[200], text[600];
        struct dpf_account a;
        struct dpf_text t = {0}, json = {0};
        const char *place = places[i % COUNT(places)];
        const char *hole = strstr(place, "%s");
        snprintf(rest, sizeof rest, "%.*s%s%s", (int)(hole - place), place,
                 attacks[i / COUNT(places)], hole + 2);
        snprintf(text, sizeof text,
                 "{'event': 'mechanism', 'mechanism': 'pure', 'epsilon': 7.0, 'rate': "
                 "1.0, 'count': 1, 'relation': 'local', %s}",
                 rest);
        struct dpf_header h = stream(EVENTS(text));
        CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
        dpf_account_table(&a, &t);
        dpf_account_json(&a, &h.events, &json);
        int proven = 0;
        for (char *line = t.data, *end; (end = strchr(line, '\n')); line = end + 1) {
            CU_ASSERT(dpf_text_is_visible(line, (size_t)(end - line)));
            proven += strncmp(line, "proven", 6) == 0;
        }
        CU_ASSERT_EQUAL(proven, 1);
        CU_ASSERT(dpf_text_is_visible(json.data, json.size));
        dpf_account_release(&a);
        dpf_text_release(&t);
        dpf_text_release(&json);
        dpf_header_release(&h);
    }
}

/* A stated delta that is no probability cannot be the delta of the whole. */
static void impossible_stated_deltas(void)
{
    static const char *const deltas[] = {"1.0", "1.5", "inf", "7"};
    for (size_t i = 0; i < COUNT(deltas); i++) {
        char text[500];
        snprintf(text, sizeof text,
                 "{'event': 'mechanism', 'mechanism': 'gaussian', 'noise_multiplier': "
                 "2.0, 'rate': 1.0, 'count': 1, 'relation': 'add-remove', 'proven': "
                 "{'delta': %s}}",
                 deltas[i]);
        struct dpf_header h = stream(EVENTS(text));
        struct dpf_account_request stated = {.method = DPF_METHOD_BEST, .delta = NAN};
        CU_ASSERT(refused(&h, &stated, ""));
        dpf_header_release(&h);
    }
}

static void broken_encodings(void)
{
    struct dpf_header h = stream(EVENTS(GAUSSIAN("2.0", "add-remove")));
    h.events.count = 2; /* more than there is */
    CU_ASSERT(refused(&h, &usual, "malformed"));
    h.events.count = 1;
    for (size_t size = 0; size < h.events.bytes.size; size += 7) {
        size_t whole = h.events.bytes.size;
        h.events.bytes.size = size;
        CU_ASSERT(refused(&h, &usual, "malformed"));
        h.events.bytes.size = whole;
    }
    /* every byte in turn: anything may come of it but a crash */
    for (size_t i = 0; i < h.events.bytes.size; i++)
        for (int bit = 0; bit < 8; bit++) {
            struct dpf_account a;
            h.events.bytes.data[i] ^= (unsigned char)(1 << bit);
            if (dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK)
                dpf_account_release(&a);
            h.events.bytes.data[i] ^= (unsigned char)(1 << bit);
        }
    dpf_header_release(&h);
}

static void deep_nesting(void)
{
    static const char *const kinds[][2] = {
        {"{'event': 'model', 'data': 'protected', 'events': [", "]}"},
        {"{'event': 'merge', 'branches': [[", "]]}"}};
    for (int depth = 1; depth <= 31; depth++)
        for (size_t kind = 0; kind < COUNT(kinds); kind++) {
            struct dpf_text t = {0};
            for (int i = 0; i < depth; i++)
                dpf_text_add(&t, kinds[kind][0]);
            dpf_text_add(&t, GAUSSIAN("2.0", "add-remove"));
            for (int i = 0; i < depth; i++)
                dpf_text_add(&t, kinds[kind][1]);
            struct dpf_header h = stream(EVENTS(dpf_text_get(&t)));
            struct dpf_account a;
            enum dpf_status status = dpf_account_ledger(&a, &h, &usual, NULL);
            CU_ASSERT(depth > 5 || status == DPF_OK);
            CU_ASSERT(depth < 30 || status == DPF_PRIVACY);
            CU_ASSERT(status == DPF_OK || status == DPF_PRIVACY);
            if (status == DPF_OK) {
                SAME("nested", a.proven.epsilon, compose_one(gaussian(2, 1, 1), 1e-5));
                dpf_account_release(&a);
            }
            dpf_header_release(&h);
            dpf_text_release(&t);
        }
}

/* ---------------------------------------------------------------------------- relations
 */

static void relations_do_not_mix(void)
{
    const struct dpf_account_request convert = {.method = DPF_METHOD_BEST,
                                                .delta = 1e-5,
                                                .convert = true,
                                                .relation = DPF_REPLACE_ONE};
    struct dpf_account_request back = convert, local = convert;
    back.relation = DPF_ADD_REMOVE;
    local.relation = DPF_LOCAL;
    struct dpf_header h = {0}, one = {0};
    mechanism(&h, gaussian(3, 1, 1), DPF_ADD_REMOVE);
    mechanism(&one, gaussian(3, 1, 1), DPF_ADD_REMOVE);
    mechanism(&h, gaussian(4, 1, 2), DPF_REPLACE_ONE);
    CU_ASSERT(refused(&h, &usual, "--relation replace-one"));
    CU_ASSERT(refused(&h, &back, "replace-one"));
    CU_ASSERT(refused(&h, &local, "replace-one"));
    /* a replaced record is one removed and one added: twice as far */
    const struct dpf_spending both[] = {gaussian(1.5, 1, 1), gaussian(4, 1, 2)};
    SAME("converted", epsilon_as(&h, &convert), compose(both, 2, 1e-5));
    SAME("alone", epsilon_as(&one, &convert), compose(both, 1, 1e-5));
    SAME("as it was", epsilon_as(&one, &back), compose_one(gaussian(3, 1, 1), 1e-5));
    struct dpf_account a;
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &convert, NULL) == DPF_OK);
    CU_ASSERT(a.relation == DPF_REPLACE_ONE);
    dpf_account_release(&a);
    dpf_header_release(&h);
    dpf_header_release(&one);
    /* what holds for any two values holds for a replaced record */
    mechanism(&h, gaussian(4, 1, 2), DPF_REPLACE_ONE);
    mechanism(&h, pure(0.37), DPF_LOCAL);
    const struct dpf_spending fine[] = {gaussian(4, 1, 2), pure(0.37)};
    SAME("local", epsilon_of(&h), compose(fine, 2, 1e-5));
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    CU_ASSERT(a.relation == DPF_REPLACE_ONE);
    dpf_account_release(&a);
    CU_ASSERT(refused(&h, &back, "replace-one"));
    dpf_header_release(&h);
    mechanism(&h, pure(0.37), DPF_LOCAL);
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    CU_ASSERT(a.relation == DPF_LOCAL);
    dpf_account_release(&a);
    mechanism(&h, gaussian(4, 1, 2), DPF_ADD_REMOVE);
    CU_ASSERT(refused(&h, &usual, "--relation replace-one"));
    dpf_header_release(&h);
}

static const struct dpf_account_request replace_one = {.method = DPF_METHOD_BEST,
                                                       .delta = 1e-5,
                                                       .convert = true,
                                                       .relation = DPF_REPLACE_ONE};

/* Group privacy: (e, d) for one record is (ke, d (e^ke - 1) / (e^e - 1)) for k. Of a
 * sampled Gaussian, 20 times, with copies of each record, under replace-one. */
static void check_group(double sigma, double rate, int copies)
{
    struct dpf_spending s = gaussian(sigma, rate, 20);
    struct dpf_header h = {0};
    char text[200];
    snprintf(text, sizeof text,
             "{'event': 'augmentation', 'copies': %d, 'stable_under': 'add-remove'}",
             copies);
    add(&h.events, text);
    mechanism(&h, s, DPF_ADD_REMOVE);
    double e = epsilon_as(&h, &replace_one), k = 2 * copies;
    dpf_header_release(&h);
    if (isinf(e))
        return; /* nothing is promised */
    double share = log(1e-5) + log(expm1(e / k)) - e - log1p(-exp(-e)); /* ln d */
    ABOVE("ln of the delta of one", share, -660.);
    if (share > -660)
        ABOVE("for one of them", e / k * (1 + 1e-9), compose_one(s, exp(share)));
    ABOVE("more than one", e, k * compose_one(s, 1e-5) * (1 - 1e-9));
    if (sigma > 5)
        BELOW("not wasteful", e, 3 * k * compose_one(s, 1e-5));
}

static void group_privacy_of_sampled(void)
{
    static const double sigmas[] = {0.9, 2, 8}, rates[] = {0.2, 0.01};
    for (size_t i = 0; i < COUNT(sigmas); i++)
        for (size_t j = 0; j < COUNT(rates); j++)
            for (int copies = 1; copies <= 3; copies++)
                if (sigmas[i] > 1 || copies < 3)
                    check_group(sigmas[i], rates[j], copies);
    /* beside something with a form of its own */
    struct dpf_header h = {0};
    struct dpf_spending s = gaussian(2, 0.05, 20);
    mechanism(&h, s, DPF_ADD_REMOVE);
    mechanism(&h, gaussian(3, 1, 1), DPF_REPLACE_ONE);
    double e = epsilon_as(&h, &replace_one);
    ABOVE("both", e, compose_one(gaussian(3, 1, 1), 1e-5) + compose_one(s, 1e-5));
    BELOW("both", e, 10);
    dpf_header_release(&h);
}

/* Here e^ke has more digits than a double. */
static void group_privacy_beyond_all_bounds(void)
{
    check_group(0.9, 0.3, 3);
    check_group(0.5, 0.5, 2);
    check_group(1, 0.5, 20);
}

static void sampling_under_other_relations(void)
{
    static const enum dpf_relation relations[] = {DPF_REPLACE_ONE, DPF_LOCAL};
    for (size_t i = 0; i < COUNT(relations); i++) {
        struct dpf_header h = {0};
        mechanism(&h, gaussian(2, 0.5, 1), relations[i]);
        CU_ASSERT(refused(&h, &usual, "Poisson"));
        CU_ASSERT(refused(&h, &replace_one, "Poisson"));
        dpf_header_release(&h);
    }
}

static void augmentation_multiplies(void)
{
    SAME("pure",
         epsilon_of_events(EVENTS(AUGMENTATION("5"), PURE("0.21", "replace-one"))), 1.05);
    SAME("gaussian",
         epsilon_of_events(EVENTS(AUGMENTATION("5"), GAUSSIAN("8.0", "replace-one"))),
         compose_one(gaussian(1.6, 1, 1), 1e-5));
    SAME("twice",
         epsilon_of_events(EVENTS(AUGMENTATION("5"), AUGMENTATION("3"),
                                  GAUSSIAN("45.0", "replace-one"))),
         compose_one(gaussian(3, 1, 1), 1e-5));
    /* only what comes after it */
    const struct dpf_spending two[] = {gaussian(8, 1, 1), gaussian(1.6, 1, 1)};
    SAME("before",
         epsilon_of_events(EVENTS(GAUSSIAN("8.0", "replace-one"), AUGMENTATION("5"),
                                  GAUSSIAN("8.0", "replace-one"))),
         compose(two, 2, 1e-5));
    /* a pass over each record once */
    SAME("one copy",
         epsilon_of_events(EVENTS(AUGMENTATION("1"), GAUSSIAN("8.0", "replace-one"))),
         compose_one(gaussian(8, 1, 1), 1e-5));
    /* by position: nothing under the other relation */
    CU_ASSERT(isinf(
        epsilon_of_events(EVENTS(AUGMENTATION("5"), GAUSSIAN("8.0", "add-remove")))));
}

static const char *json_get(const char *p, const char *key);
static bool json_starts(const char *json, const char *key, const char *text);

#define STABLE(map) "{'event': 'selection', 'by': 'order', 'stability': {" map "}}"
#define DIVIDED(rule, part, map, relation)                                               \
    "{'event': 'partition', 'parts': 2, 'part': " part ", 'by': '" rule "', 'seed': 0, " \
    "'cut': 'blake2b:" rule "', 'stability': {" map "}, 'disjoint_under': '" relation    \
    "'}"
#define IN_ORDER(part)                                                                   \
    DIVIDED("order", part, "'add-remove': 2, 'replace-one': 1", "replace-one")
#define BY_CONTENT(part) DIVIDED("content", part, "'add-remove': 1", "add-remove")
#define BOTH(one, other) "{'event': 'merge', 'branches': [[" one "], [" other "]]}"

/* By basic composition, at delta 0. */
static double exactly(const char *const *events)
{
    const struct dpf_account_request basic = {.method = DPF_METHOD_BASIC, .delta = 0};
    struct dpf_header h = stream(events);
    double epsilon = epsilon_as(&h, &basic);
    dpf_header_release(&h);
    return epsilon;
}

/* A number instead of a refusal: what one record becomes counts as a group. */
static void stability_is_a_group(void)
{
#define FIRST "'add-remove': 2, 'replace-one': 1"
    SAME("first N, one in and one out",
         epsilon_of_events(EVENTS(STABLE(FIRST), GAUSSIAN("8.0", "add-remove"))),
         compose_one(gaussian(4, 1, 1), 1e-5));
    SAME("first N, replaced",
         epsilon_of_events(EVENTS(STABLE(FIRST), GAUSSIAN("8.0", "replace-one"))),
         compose_one(gaussian(8, 1, 1), 1e-5));
    SAME("pure", exactly(EVENTS(STABLE(FIRST), PURE("0.3", "add-remove"))), 0.6);
    SAME("local", exactly(EVENTS(STABLE(FIRST), PURE("0.3", "local"))), 0.3);
    SAME("twice",
         exactly(EVENTS(STABLE(FIRST), STABLE(FIRST), PURE("0.1", "add-remove"))), 0.4);
    CU_ASSERT(isinf(epsilon_of_events(
        EVENTS(STABLE("'replace-one': 1"), GAUSSIAN("8.0", "add-remove")))));
    CU_ASSERT(
        isinf(epsilon_of_events(EVENTS(STABLE(""), GAUSSIAN("8.0", "replace-one")))));
    CU_ASSERT(isinf(epsilon_of_events(EVENTS(STABLE("'add-remove': 1"), STABLE(FIRST),
                                             GAUSSIAN("8.0", "replace-one")))));
    SAME("a file twice",
         exactly(
             EVENTS("{'event': 'augmentation', 'copies': 2, 'by': 'file', 'stability': "
                    "{'add-remove': 2, 'replace-one': 2}}",
                    STABLE(FIRST), PURE("0.1", "add-remove"))),
         0.4);
    /* it is said why */
    struct dpf_header h = stream(EVENTS(STABLE(FIRST), PURE("0.3", "add-remove")));
    struct dpf_account a;
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    CU_ASSERT(strstr(dpf_text_get(&a.why), "one record changes up to 2") != NULL);
    dpf_account_release(&a);
    dpf_header_release(&h);
    static const char *const bad[] = {
        STABLE("'add-remove': 0"),
        STABLE("'add-remove': -1"),
        STABLE("'replace-one': 'x'"),
        STABLE("'replace-one': 1.5"),
        STABLE("'add-remove': 1000001"),
        "{'event': 'selection', 'stability': 7}",
        "{'event': 'augmentation', 'copies': 3, 'stability': {'add-remove': 2}}"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        h = stream(EVENTS(bad[i], PURE("0.3", "add-remove")));
        CU_ASSERT(refused(&h, &usual, "malformed"));
        dpf_header_release(&h);
    }
#undef FIRST
}

/* Contiguous parts: a record less moves the borders of all of them. */
static void parts_in_order(void)
{
    SAME("replaced: one part",
         exactly(EVENTS(BOTH(IN_ORDER("0") ", " PURE("0.3", "replace-one"),
                             IN_ORDER("1") ", " PURE("0.2", "local")))),
         0.3);
    SAME("removed: every part, as groups of 2",
         exactly(EVENTS(BOTH(IN_ORDER("0") ", " PURE("0.3", "add-remove"),
                             IN_ORDER("1") ", " PURE("0.2", "add-remove")))),
         1.0);
    SAME("by content",
         exactly(EVENTS(BOTH(BY_CONTENT("0") ", " PURE("0.3", "add-remove"),
                             BY_CONTENT("1") ", " PURE("0.2", "add-remove")))),
         0.3);
    /* replaced: out of the one part, into the other */
    const struct dpf_account_request replaced = {
        .method = DPF_METHOD_BASIC, .convert = true, .relation = DPF_REPLACE_ONE};
    struct dpf_header h =
        stream(EVENTS(BOTH(BY_CONTENT("0") ", " PURE("0.3", "add-remove"),
                           BY_CONTENT("1") ", " PURE("0.2", "add-remove"))));
    ABOVE("by content, replaced", epsilon_as(&h, &replaced), 0.5);
    dpf_header_release(&h);
    /* the first N, then by content: one goes, another comes, in two parts perhaps */
    const char *first = STABLE("'add-remove': 2, 'replace-one': 1") ", ";
    struct dpf_text t = {0};
    dpf_text_addf(&t, "{'event': 'merge', 'branches': [[%s%s, %s], [%s%s, %s]]}", first,
                  BY_CONTENT("0"), PURE("0.3", "add-remove"), first, BY_CONTENT("1"),
                  PURE("0.2", "add-remove"));
    SAME("of the first", exactly(EVENTS(dpf_text_get(&t))), 1.0);
    dpf_text_release(&t);
    /* put together again, noise on all */
    SAME("together, replaced",
         exactly(EVENTS(BOTH(IN_ORDER("0"), IN_ORDER("1")), PURE("0.3", "replace-one"))),
         0.3);
    SAME("together, removed",
         exactly(EVENTS(BOTH(IN_ORDER("0"), IN_ORDER("1")), PURE("0.3", "add-remove"))),
         1.2);
}

/* What everyone has to believe, and what it takes to believe less, a line each. */
static void assumptions_are_told(void)
{
    static const char *const always[] = {"each person has one record",
                                         "nothing else is released from these records",
                                         "declared bounds, '--public' and the ledgers"};
    struct dpf_header h =
        stream(EVENTS(GAUSSIAN("2.0", "add-remove"), GAUSSIAN("3.0", "add-remove")));
    struct dpf_account a;
    struct dpf_text t = {0}, json = {0};
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    dpf_account_table(&a, &t);
    dpf_account_json(&a, NULL, &json);
    for (size_t i = 0; i < COUNT(always); i++) {
        const char *at = strstr(dpf_text_get(&t), always[i]);
        CU_ASSERT(at && !strstr(at + 1, always[i])); /* once */
        CU_ASSERT(at && strncmp(at - 11, "assuming   ", 11) == 0);
        CU_ASSERT(at && strstr(at, "(to remove this: ") < strchr(at, '\n'));
    }
    CU_ASSERT(!strstr(t.data, "number of records"));
    CU_ASSERT(json_starts(json_get(dpf_text_get(&json), "proven"), "assumes", "[\"each"));
    dpf_account_release(&a);
    dpf_header_release(&h);
    dpf_text_reset(&t);
    /* where the number of records is public, and why */
    const struct dpf_mechanism_event m = {.spending = gaussian(2, 0.1, 5),
                                          .sampling = "poisson",
                                          .relation = DPF_ADD_REMOVE,
                                          .tells_count = true,
                                          .assumes = "the sky is blue"};
    h = (struct dpf_header){.is_protected = true};
    dpf_ledger_add_mechanism(&h.events, "train", &m);
    dpf_ledger_add_mechanism(&h.events, "train", &m);
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    dpf_account_table(&a, &t);
    const char *at =
        strstr(t.data, "assuming   the number of records is public: the samp");
    CU_ASSERT(at && !strstr(at + 20, "number of records"));
    at = strstr(t.data, "assuming   the sky is blue\n");
    CU_ASSERT(at && !strstr(at + 20, "sky"));
    dpf_account_release(&a);
    dpf_text_reset(&t);
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &replace_one, NULL) == DPF_OK);
    dpf_account_table(&a, &t);
    CU_ASSERT(strstr(t.data, "assuming   the number of records is public, as it is under "
                             "replace-one") != NULL);
    dpf_account_release(&a);
    dpf_header_release(&h);
    dpf_text_reset(&t);
    /* nothing promised, nothing assumed; nothing private: only that it is true */
    h = stream(EVENTS("{'event': 'none', 'why': 'x'}"));
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    dpf_account_table(&a, &t);
    CU_ASSERT(!strstr(t.data, "assuming"));
    dpf_account_release(&a);
    dpf_header_release(&h);
    dpf_text_reset(&t);
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    dpf_account_table(&a, &t);
    CU_ASSERT(strstr(t.data, "'--public'") && !strstr(t.data, "person"));
    dpf_account_release(&a);
    dpf_text_release(&t);
    dpf_text_release(&json);
}

/* So many copies that nothing is left of the noise: no epsilon can be stated, but nobody
 * used a program wrongly. And no number of copies is too large to count. */
static void very_many_copies(void)
{
    static const char *const sigmas[] = {"8.0", "1e9"};
    for (size_t i = 0; i < COUNT(sigmas); i++)
        for (int times = 1; times <= 3; times++) {
            struct dpf_header h = {.is_protected = true};
            char text[300];
            for (int k = 0; k < times; k++)
                add(&h.events, AUGMENTATION("1000000"));
            snprintf(
                text, sizeof text,
                "{'event': 'mechanism', 'mechanism': 'gaussian', 'noise_multiplier': "
                "%s, 'rate': 1.0, 'count': 1, 'relation': 'replace-one'}",
                sigmas[i]);
            add(&h.events, text);
            struct dpf_account a;
            enum dpf_status status = dpf_account_ledger(&a, &h, &usual, NULL);
            CU_ASSERT(status == DPF_PRIVACY || status == DPF_OK);
            double left = strtod(sigmas[i], NULL) / pow(1e6, times);
            if (status == DPF_OK) {
                if (left > 1e-4)
                    SAME("some", a.proven.epsilon,
                         compose_one(gaussian(left, 1, 1), 1e-5));
                else
                    ABOVE("none", a.proven.epsilon,
                          compose_one(gaussian(1e-4, 1, 1), 1e-5));
                dpf_account_release(&a);
            }
            dpf_header_release(&h);
        }
}

/* Owners count once, unless one used a model of another's records: those paid for both.
 */
static void owners_and_models(void)
{
#define LOCAL(e) PURE(e, "local")
#define OWNERS(a, b)                                                                     \
    "{'event': 'merge', 'distinct_owners': true, 'branches': [[" a "], [" b "]]}"
    SAME("owners", epsilon_of_events(EVENTS(OWNERS(LOCAL("5.0"), LOCAL("1.0")))), 5);
    SAME("public model",
         epsilon_of_events(EVENTS(OWNERS(
             LOCAL("5.0"),
             "{'event': 'model', 'data': 'public', 'events': []}, " LOCAL("1.0")))),
         5);
    double e = epsilon_of_events(EVENTS(
        OWNERS(LOCAL("5.0"), "{'event': 'model', 'data': 'protected', 'events': [" LOCAL(
                                 "2.0") "]}, " LOCAL("1.0"))));
    CU_ASSERT(e >= 7);
#undef LOCAL
#undef OWNERS
}

static void selections_that_do_not_fit(void)
{
    static const char *const relations[] = {"add-remove", "replace-one"};
    for (int kind = 0; kind < 3; kind++)
        for (int stable = 0; stable < 3; stable++)
            for (int used = 0; used < 3; used++) {
                char event[300];
                static const char *const forms[] = {
                    "'selection', 'by': 'index', 'stable_under'",
                    "'partition', 'parts': 2, 'part': 1, 'disjoint_under'",
                    "'augmentation', 'copies': 1, 'stable_under'"};
                snprintf(event, sizeof event, "{'event': %s: '%s'}", forms[kind],
                         stable < 2 ? relations[stable] : "friendship");
                double e = epsilon_of_events(
                    used == 0   ? EVENTS(event, GAUSSIAN("2.0", "add-remove"))
                    : used == 1 ? EVENTS(event, GAUSSIAN("2.0", "replace-one"))
                                : EVENTS(event, GAUSSIAN("2.0", "local")));
                /* locally, too, that a record is there must not depend on it */
                bool fits = stable == (used == 2 ? 1 : used);
                CU_ASSERT(told(isinf(e) == !fits, event, e, fits ? 2 : INFINITY));
                /* afterwards it does not matter */
                e = epsilon_of_events(used
                                          ? EVENTS(GAUSSIAN("2.0", "replace-one"), event)
                                          : EVENTS(GAUSSIAN("2.0", "add-remove"), event));
                SAME("after", e, compose_one(gaussian(2, 1, 1), 1e-5));
            }
    /* without a word about it, nothing is stable */
    CU_ASSERT(isinf(epsilon_of_events(
        EVENTS("{'event': 'selection'}", GAUSSIAN("2.0", "add-remove")))));
    CU_ASSERT(isinf(epsilon_of_events(
        EVENTS("{'event': 'selection'}", GAUSSIAN("2.0", "replace-one")))));
    /* two selections that do not go together */
    CU_ASSERT(
        isinf(epsilon_of_events(EVENTS(SELECTION("add-remove"), SELECTION("replace-one"),
                                       GAUSSIAN("2.0", "replace-one")))));
}

/* ------------------------------------------------------------------------------- models
 */

static void models_nest(void)
{
    const char *made = "{'event': 'model', 'stage': 'infer', 'data': 'protected', "
                       "'events': [" GAUSSIAN("3.0", "add-remove") "]}";
    const struct dpf_spending two[] = {gaussian(3, 1, 1), gaussian(2, 1, 1)};
    SAME("both", epsilon_of_events(EVENTS(made, GAUSSIAN("2.0", "add-remove"))),
         compose(two, 2, 1e-5));
    SAME("order", epsilon_of_events(EVENTS(GAUSSIAN("2.0", "add-remove"), made)),
         compose(two, 2, 1e-5));
    /* what was done to the records here was not done to the model's */
    SAME("fresh",
         epsilon_of_events(EVENTS(SELECTION("replace-one"), AUGMENTATION("9"), made)),
         compose_one(gaussian(3, 1, 1), 1e-5));
    /* and the other way round */
    SAME("apart",
         epsilon_of_events(
             EVENTS("{'event': 'model', 'data': 'protected', 'events': [" AUGMENTATION(
                        "4") ", " GAUSSIAN("12.0", "replace-one") "]}",
                    GAUSSIAN("2.0", "replace-one"))),
         compose(two, 2, 1e-5));
    CU_ASSERT(isinf(epsilon_of_events(
        EVENTS("{'event': 'model', 'data': 'private', 'events': []}"))));
    CU_ASSERT(isinf(epsilon_of_events(
        EVENTS("{'event': 'model', 'data': 'private', 'events': [{'event': 'none', "
               "'why': 'no noise'}]}"))));
    /* "private" is private, whatever was spent */
    CU_ASSERT(isinf(epsilon_of_events(
        EVENTS("{'event': 'model', 'data': 'private', 'events': [" GAUSSIAN(
            "3.0", "add-remove") "]}"))));
    struct dpf_header h = {0};
    add(&h.events, "{'event': 'model', 'data': 'public', 'events': []}");
    CU_ASSERT_DOUBLE_EQUAL(epsilon_of(&h), 0, 0);
    dpf_header_release(&h);
}

/* A model of private records is private unless a mechanism made it: a selection is none,
 * and "anything else, or nothing, means private". */
static void models_without_a_mechanism(void)
{
    static const char *const models[] = {
        "{'event': 'model', 'data': 'private', 'events': [" SELECTION("add-remove") "]}",
        "{'event': 'model', 'data': 'private', 'events': [" PARTITION("0", "2") "]}",
        "{'event': 'model', 'events': []}",
        "{'event': 'model', 'data': 'secret', 'events': []}",
        "{'event': 'model', 'data': 7, 'events': []}"};
    for (size_t i = 0; i < COUNT(models); i++) {
        struct dpf_header h = stream(EVENTS(models[i], GAUSSIAN("2.0", "add-remove")));
        struct dpf_account a;
        enum dpf_status status = dpf_account_ledger(&a, &h, &usual, NULL);
        CU_ASSERT(status == DPF_PRIVACY ||
                  told(isinf(a.proven.epsilon), models[i], a.proven.epsilon, INFINITY));
        if (status == DPF_OK)
            dpf_account_release(&a);
        dpf_header_release(&h);
    }
}

/* --------------------------------------------------------------------------------
 * merging
 */

/* A stream that load, split and train made: part `part` of `parts` of what has this
 * digest; NULL: nobody knows. */
static struct dpf_header part_of(const char *digest, const char *rule, int part,
                                 int parts, const char *mechanism_event)
{
    struct dpf_header h = {.is_protected = true};
    const struct dpf_source_event source = {.name = "a.csv", .digest = digest};
    const struct dpf_partition_event cut = {
        .parts = (uint64_t)parts,
        .part = (uint64_t)part,
        .by = strchr(rule, 'c') ? "content" : "index",
        .seed = strtoull(rule, NULL, 10),
        .stability = {.add_remove = 0, .replace_one = 1},
        .disjoint_under = DPF_REPLACE_ONE};
    dpf_ledger_add_source(&h.events, "load", &source);
    add(&h.provenance,
        "{'stage': 'load', 'version': '1', 'options': {}, 'arguments': ['a']}");
    dpf_ledger_add_partition(&h.events, "split", &cut, &h);
    if (mechanism_event)
        add(&h.events, mechanism_event);
    return h;
}

static void merge(struct dpf_header *into, struct dpf_header other)
{
    CU_ASSERT(dpf_header_merge(into, &other, dpf_ledger_merge, NULL) == DPF_OK);
    dpf_header_release(&other);
}

#define THREE GAUSSIAN("3.0", "replace-one")
#define FIVE  GAUSSIAN("5.0", "replace-one")

/* Encode and decode: what is written must mean the same. */
static double epsilon_of_written(const struct dpf_header *h)
{
    struct dpf_encoder enc = {0};
    struct iovec *parts;
    int count;
    size_t total;
    struct dpf_buffer bytes = {0};
    struct dpf_decoder d = {0};
    struct dpf_header again;
    CU_ASSERT_FATAL(dpf_header_encode(&enc, h, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_encoder_end(&enc, &parts, &count, &total, NULL) == DPF_OK);
    for (int i = 0; i < count; i++)
        dpf_buffer_append(&bytes, parts[i].iov_base, parts[i].iov_len);
    struct dpf_frame frame = {.data = bytes.data, .size = bytes.size};
    CU_ASSERT_FATAL(dpf_decoder_read(&d, &frame, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_header_decode(&d.root, &again, NULL) == DPF_OK);
    double epsilon = epsilon_of(&again);
    dpf_header_release(&again);
    dpf_decoder_release(&d);
    dpf_encoder_release(&enc);
    dpf_buffer_release(&bytes);
    return epsilon;
}

static void disjoint_parts_count_once(void)
{
    double three = compose_one(gaussian(3, 1, 1), 1e-5);
    struct dpf_header h = part_of("a", "", 0, 3, FIVE);
    merge(&h, part_of("a", "", 1, 3, THREE));
    CU_ASSERT_EQUAL(h.events.count, 1);
    SAME("two", epsilon_of(&h), three);
    merge(&h, part_of("a", "", 2, 3, FIVE));
    SAME("three", epsilon_of(&h), three);
    SAME("written", epsilon_of_written(&h), three);
    /* whatever is done to all of them adds to the dearest */
    struct dpf_account a;
    add(&h.events, GAUSSIAN("2.0", "replace-one"));
    const struct dpf_spending both[] = {gaussian(3, 1, 1), gaussian(2, 1, 1)};
    SAME("and one for all", epsilon_of(&h), compose(both, 2, 1e-5));
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    CU_ASSERT(strstr(dpf_text_get(&a.why), "parallel") != NULL);
    dpf_account_release(&a);
    dpf_header_release(&h);
    /* more than one mechanism in a part */
    h = part_of("a", "", 1, 2, THREE);
    add(&h.events, THREE);
    merge(&h, part_of("a", "", 0, 2, GAUSSIAN("2.5", "replace-one")));
    const struct dpf_spending twice = gaussian(3, 1, 2);
    SAME("twice", epsilon_of(&h), compose(&twice, 1, 1e-5));
    dpf_header_release(&h);
    /* claims too are those of the dearest */
    const char *const claim =
        "{'event': 'mechanism', 'mechanism': 'pure', 'epsilon': 0.3, "
        "'rate': 1.0, 'count': 1, 'relation': 'replace-one', "
        "'claimed': {'epsilon': 0.7, 'delta': 0.0, 'source': 's'}}";
    h = part_of("a", "", 0, 2, claim);
    merge(&h, part_of("a", "", 1, 2, claim));
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    CU_ASSERT(a.has_claim);
    SAME("claimed", a.claimed.epsilon, 0.7);
    dpf_account_release(&a);
    dpf_header_release(&h);
}

/* The same part twice, other data, another number of parts, a partition after the first
 * mechanism: the costs add up. */
static void other_parts_add_up(void)
{
    const struct dpf_spending both[] = {gaussian(5, 1, 1), gaussian(3, 1, 1)};
    double sum = compose(both, 2, 1e-5);
    struct dpf_header h = part_of("a", "", 1, 3, FIVE);
    merge(&h, part_of("a", "", 1, 3, THREE));
    SAME("the same part", epsilon_of(&h), sum);
    dpf_header_release(&h);
    h = part_of("a", "", 0, 3, FIVE);
    merge(&h, part_of("b", "", 1, 3, THREE));
    SAME("other data", epsilon_of(&h), sum);
    dpf_header_release(&h);
    h = part_of("a", "", 0, 2, FIVE);
    merge(&h, part_of("a", "", 1, 3, THREE));
    SAME("other parts", epsilon_of(&h), sum);
    dpf_header_release(&h);
    /* a part that does not exist */
    h = part_of("a", "", 0, 2, FIVE);
    struct dpf_header other = part_of("a", "", 2, 2, THREE);
    merge(&h, other);
    SAME("part 2 of 2", epsilon_of(&h), sum);
    dpf_header_release(&h);
    /* nobody knows what it is of: not even that both are of the same */
    h = part_of(NULL, "", 0, 2, FIVE);
    merge(&h, part_of(NULL, "", 1, 2, THREE));
    SAME("unknown", epsilon_of(&h), sum);
    dpf_header_release(&h);
    h = part_of("a", "", 0, 2, FIVE);
    merge(&h, part_of(NULL, "", 1, 2, THREE));
    SAME("one unknown", epsilon_of(&h), sum);
    dpf_header_release(&h);
    /* by content: other options before it are other contents */
    h = part_of("a", "c", 0, 2, FIVE);
    merge(&h, part_of("a", "c", 1, 2, THREE));
    SAME("by content", epsilon_of(&h), compose(both + 1, 1, 1e-5));
    dpf_header_release(&h);
    /* no partition */
    h = stream(EVENTS(FIVE));
    add(&h.provenance, "{'stage': 'load'}");
    other = stream(EVENTS(THREE));
    add(&other.provenance, "{'stage': 'load'}");
    merge(&h, other);
    SAME("no partition", epsilon_of(&h), sum);
    dpf_header_release(&h);
    /* hand-made: spent before the partition */
    const char *late =
        "{'event': 'merge', 'branches': [[" FIVE
        ", " PARTITION("0", "2") "]"
                                 ", [" THREE ", " PARTITION("1", "2") "]]}";
    SAME("late", epsilon_of_events(EVENTS(late)), sum);
    /* one protected, one private: private */
    h = part_of("a", "", 0, 2, FIVE);
    other = part_of("a", "", 1, 2, NULL);
    other.is_protected = false;
    other.is_private = true;
    merge(&h, other);
    CU_ASSERT(h.is_private && !h.is_protected);
    CU_ASSERT(isinf(epsilon_of(&h)));
    dpf_header_release(&h);
}

/* More parts than there are paths: whatever happens, it is no less than the dearest. */
static void many_parts(void)
{
    static const int counts[] = {3, 64, 65, 100};
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct dpf_header h = part_of("a", "", 0, counts[i], THREE);
        for (int part = 1; part < counts[i]; part++)
            merge(&h, part_of("a", "", part, counts[i], part == 2 ? THREE : FIVE));
        double e = epsilon_of(&h), three = compose_one(gaussian(3, 1, 1), 1e-5);
        ABOVE("many", e, three * (1 - 1e-9));
        if (counts[i] <= 64)
            SAME("many", e, three);
        dpf_header_release(&h);
    }
}

/* Splits by other rules are other partitions: part 0 of one and part 1 of another have
 * records in common. */
static void splits_of_other_seeds_overlap(void)
{
    static const char *const rules[][2] = {{"1", "2"}, {"", "2"}, {"", "c"}};
    const struct dpf_spending both[] = {gaussian(5, 1, 1), gaussian(3, 1, 1)};
    for (size_t i = 0; i < COUNT(rules); i++) {
        struct dpf_header h = part_of("a", rules[i][0], 0, 2, FIVE);
        merge(&h, part_of("a", rules[i][1], 1, 2, THREE));
        SAME(rules[i][1], epsilon_of(&h), compose(both, 2, 1e-5));
        dpf_header_release(&h);
    }
}

/* Part 0, something else that has part 1 in it, part 1: the last two share records. */
static void merges_in_turn(void)
{
    const struct dpf_spending both[] = {gaussian(3, 1, 1), gaussian(3, 1, 1)};
    struct dpf_header h = part_of("a", "", 0, 2, FIVE);
    merge(&h, part_of("b", "", 1, 2, THREE));
    merge(&h, part_of("a", "", 1, 2, THREE));
    ABOVE("in turn", epsilon_of(&h), compose(both, 2, 1e-5) * (1 - 1e-9));
    dpf_header_release(&h);
    h = part_of("a", "", 0, 2, FIVE);
    merge(&h, part_of("a", "", 1, 2, THREE));
    merge(&h, part_of("b", "", 1, 2, THREE));
    ABOVE("in order", epsilon_of(&h), compose(both, 2, 1e-5) * (1 - 1e-9));
    dpf_header_release(&h);
    /* other data between different parts */
    h = part_of("a", "", 0, 3, FIVE);
    merge(&h, part_of("b", "", 1, 3, THREE));
    merge(&h, part_of("a", "", 2, 3, THREE));
    ABOVE("between", epsilon_of(&h), compose(both, 2, 1e-5) * (1 - 1e-9));
    dpf_header_release(&h);
}

/* One stream more, again and again: what comes of it can still be written and read. */
static void long_chains(void)
{
    struct dpf_header h = stream(EVENTS(PURE("0.5", "add-remove")));
    for (int i = 1; i < 60; i++) {
        struct dpf_header copy, other = stream(EVENTS(PURE("0.5", "add-remove")));
        CU_ASSERT_FATAL(dpf_header_copy(&copy, &h, NULL) == DPF_OK); /* a new reader */
        dpf_header_release(&h);
        h = copy;
        merge(&h, other);
    }
    const struct dpf_account_request basic = {.method = DPF_METHOD_BASIC, .delta = 0};
    SAME("sixty", epsilon_as(&h, &basic), 30);
    CU_ASSERT(epsilon_of_written(&h) > 0);
    dpf_header_release(&h);
    /* parts that count once still do, beside something else */
    h = part_of("a", "", 0, 2, PURE("0.3", "replace-one"));
    merge(&h, part_of("a", "", 1, 2, PURE("0.2", "replace-one")));
    struct dpf_header both;
    CU_ASSERT_FATAL(dpf_header_copy(&both, &h, NULL) == DPF_OK);
    merge(&both, stream(EVENTS(PURE("0.1", "replace-one"))));
    SAME("parts and more", epsilon_as(&both, &basic), 0.4);
    dpf_header_release(&both);
    dpf_header_release(&h);
}

#define MERGE(one, other)  "{'event': 'merge', 'branches': [[" one "], [" other "]]}"
#define OTHER(part, parts) PARTITION_OF("blake2b:2", part, parts)
#define COPIES_OF(part)    PARTITION(part, "2") ", " AUGMENTATION("5")
#define SOME_OF(part)      PARTITION(part, "2") ", " SELECTION("add-remove")
#define WITH_MODEL                                                                       \
    PARTITION("0", "2")                                                                  \
    ", {'event': 'model', 'data': 'protected', 'events': [" THREE "]}, " FIVE

/* What was done to the parts was done to what they are merged into: copies stay copies,
 * and a selection by position stays unstable. */
static void mechanisms_after_a_merge(void)
{
    for (int other = 0; other < 2; other++) {
        const char *copies =
            other ? MERGE(COPIES_OF("0"), OTHER("1", "2") ", " AUGMENTATION("5"))
                  : MERGE(COPIES_OF("0"), COPIES_OF("1"));
        const char *selected = other ? MERGE(SOME_OF("0"), OTHER("1", "2"))
                                     : MERGE(SOME_OF("0"), PARTITION("1", "2"));
        /* a record of other streams may be in both */
        SAME("copies", epsilon_of_events(EVENTS(copies, GAUSSIAN("10.0", "replace-one"))),
             compose_one(gaussian(other ? 1 : 2, 1, 1), 1e-5));
        double e = epsilon_of_events(EVENTS(selected, GAUSSIAN("10.0", "replace-one")));
        CU_ASSERT(told(isinf(e), "selected", e, INFINITY));
    }
}

/* The same part twice: every record is there twice. */
static void mechanisms_after_overlapping_parts(void)
{
    const char *twice = MERGE(PARTITION("0", "2"), PARTITION("0", "2"));
    ABOVE("twice", epsilon_of_events(EVENTS(twice, GAUSSIAN("4.0", "replace-one"))),
          compose_one(gaussian(2, 1, 1), 1e-5) * (1 - 1e-9));
    /* private records of two streams, in no relation that is known */
    struct dpf_header h = {.is_private = true}, other = {.is_private = true};
    add(&h.provenance, "{'stage': 'load', 'arguments': ['a']}");
    add(&other.provenance, "{'stage': 'load', 'arguments': ['b']}");
    CU_ASSERT(dpf_header_merge(&h, &other, dpf_ledger_merge, NULL) == DPF_OK);
    dpf_header_release(&other);
    mechanism(&h, gaussian(4, 1, 1), DPF_REPLACE_ONE);
    SAME("two streams", epsilon_of(&h), compose_one(gaussian(2, 1, 1), 1e-5));
    dpf_header_release(&h);
    /* of two that came out of mechanisms, only the costs count */
    h = stream(EVENTS(THREE));
    other = stream(EVENTS(THREE));
    add(&h.provenance, "{'stage': 'load', 'arguments': ['a']}");
    add(&other.provenance, "{'stage': 'load', 'arguments': ['b']}");
    CU_ASSERT(dpf_header_merge(&h, &other, dpf_ledger_merge, NULL) == DPF_OK);
    dpf_header_release(&other);
    SAME("two releases", epsilon_of(&h), compose_one(gaussian(3, 1, 2), 1e-5));
    dpf_header_release(&h);
}

/* A branch that used a model is not apart from the others: the model may be of theirs. */
static void models_in_branches(void)
{
    const char *merged = MERGE(WITH_MODEL, PARTITION("1", "2") ", " THREE);
    const struct dpf_spending all[] = {gaussian(3, 1, 2), gaussian(5, 1, 1)};
    ABOVE("all", epsilon_of_events(EVENTS(merged)),
          compose_one(gaussian(3, 1, 2), 1e-5) * (1 - 1e-9));
    BELOW("all", epsilon_of_events(EVENTS(merged)), compose(all, 2, 1e-5) * (1 + 1e-9));
}

/* ------------------------------------------------------------------------------ reports
 */

static const char *epsilon_text(double epsilon)
{
    static char text[40];
    struct dpf_text t = {0};
    dpf_text_add_epsilon(&t, epsilon);
    snprintf(text, sizeof text, "%s", dpf_text_get(&t));
    dpf_text_release(&t);
    return text;
}

static void epsilons_are_rounded_up(void)
{
    CU_ASSERT_STRING_EQUAL(epsilon_text(0.94692), "0.9470");
    CU_ASSERT_STRING_EQUAL(epsilon_text(0.9469), "0.9469");
    CU_ASSERT_STRING_EQUAL(epsilon_text(1), "1.0000");
    CU_ASSERT_STRING_EQUAL(epsilon_text(1 + 1e-13),
                           "1.0000"); /* accountants add so much */
    CU_ASSERT_STRING_EQUAL(epsilon_text(1.00000001), "1.0001");
    CU_ASSERT_STRING_EQUAL(epsilon_text(0), "0.0000");
    CU_ASSERT_STRING_EQUAL(epsilon_text(1e-9), "0.0001");
    CU_ASSERT_STRING_EQUAL(epsilon_text(262984), "262984.0000");
    CU_ASSERT_STRING_EQUAL(epsilon_text(INFINITY), "unbounded");
    CU_ASSERT_STRING_EQUAL(epsilon_text(NAN), "unbounded");
    for (int i = 0; i < 2000; i++) {
        double e = 0.00037 * i * i, shown = strtod(epsilon_text(e), NULL);
        ABOVE("shown", shown, e * (1 - 1e-11));
        BELOW("shown", shown, e + 1.001e-4);
    }
    struct dpf_header h = {0};
    struct dpf_account a;
    struct dpf_text t = {0};
    mechanism(&h, gaussian(4, 0.01, 10000), DPF_ADD_REMOVE);
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    dpf_account_table(&a, &t);
    const char *proven = strstr(dpf_text_get(&t), "proven");
    CU_ASSERT_FATAL(proven != NULL);
    const char *number = strstr(proven, "epsilon ");
    CU_ASSERT_FATAL(number != NULL);
    ABOVE("table", strtod(number + 8, NULL), a.proven.epsilon * (1 - 1e-11));
    CU_ASSERT(strstr(proven, "delta 1e-05") && strstr(proven, "pld") &&
              strstr(proven, "add-remove"));
    CU_ASSERT(strstr(dpf_text_get(&t), "claimed    epsilon 0.2500") != NULL);
    dpf_text_release(&t);
    dpf_account_release(&a);
    dpf_header_release(&h);
}

/* Where the value of a key of the outer object starts, in JSON without blanks. */
static const char *json_get(const char *p, const char *key)
{
    size_t size = strlen(key);
    int depth = 0;
    for (; *p; p++) {
        if (*p == '"') {
            const char *end = p + 1;
            while (*end && *end != '"')
                end += *end == '\\' ? 2 : 1;
            if (depth == 1 && end[1] == ':' && (size_t)(end - p) == size + 1 &&
                memcmp(p + 1, key, size) == 0)
                return end + 2;
            p = end;
        } else if (*p == '{' || *p == '[') {
            depth++;
        } else if (*p == '}' || *p == ']') {
            depth--;
        }
    }
    return NULL;
}

static bool json_starts(const char *json, const char *key, const char *text)
{
    const char *at = json_get(json, key);
    bool good = at && strncmp(at, text, strlen(text)) == 0;
    if (!good)
        printf("    %s: %.60s, due %s\n", key, at ? at : "nothing", text);
    return good;
}

static void accounts_as_json(void)
{
    static const char *const keys[] = {"epsilon", "delta",  "method", "relation",
                                       "claimed", "proven", "events"};
    struct dpf_header h = {0};
    struct dpf_account a;
    struct dpf_text t = {0};
    mechanism(&h, gaussian(4, 0.01, 10000), DPF_ADD_REMOVE);
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    dpf_account_json(&a, &h.events, &t);
    const char *json = dpf_text_get(&t);
    CU_ASSERT(dpf_json_is_object(json, t.size));
    for (size_t i = 0; i < COUNT(keys); i++)
        CU_ASSERT(json_get(json, keys[i]) != NULL);
    CU_ASSERT_DOUBLE_EQUAL(strtod(json_get(json, "epsilon"), NULL), a.proven.epsilon, 0);
    CU_ASSERT_DOUBLE_EQUAL(strtod(json_get(json, "delta"), NULL), 1e-5, 0);
    CU_ASSERT(json_starts(json, "method", "\"pld\""));
    CU_ASSERT(json_starts(json, "relation", "\"add-remove\""));
    CU_ASSERT(json_starts(json_get(json, "claimed"), "epsilon", "0.25"));
    CU_ASSERT(json_starts(json_get(json, "claimed"), "source", "\"a paper\""));
    CU_ASSERT_DOUBLE_EQUAL(strtod(json_get(json_get(json, "proven"), "epsilon"), NULL),
                           a.proven.epsilon, 0);
    CU_ASSERT(json_starts(json, "events", "[{\"event\":\"mechanism\""));
    dpf_text_reset(&t);
    dpf_account_json(&a, NULL, &t);
    CU_ASSERT(dpf_json_is_object(dpf_text_get(&t), t.size));
    CU_ASSERT(json_get(dpf_text_get(&t), "events") == NULL);
    dpf_account_release(&a);
    /* infinity is no number of JSON's, nor are strangers' words JSON */
    add(&h.events, "{'event': 'none', 'why': 'a \" b \\ c \n d \xff e \xc3 f \x01', "
                   "'x': nan, '\t\"': inf}");
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    dpf_text_reset(&t);
    dpf_account_json(&a, &h.events, &t);
    json = dpf_text_get(&t);
    CU_ASSERT(dpf_json_is_object(json, t.size));
    CU_ASSERT(json_starts(json, "epsilon", "null"));
    CU_ASSERT(json_starts(json, "method", "\"none\""));
    CU_ASSERT(json_starts(json_get(json, "proven"), "epsilon", "null"));
    dpf_account_release(&a);
    dpf_header_release(&h);
    /* no claim */
    h = stream(EVENTS(GAUSSIAN("2.0", "add-remove")));
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    dpf_text_reset(&t);
    dpf_account_json(&a, &h.events, &t);
    CU_ASSERT(dpf_json_is_object(dpf_text_get(&t), t.size));
    CU_ASSERT(json_starts(dpf_text_get(&t), "claimed", "null"));
    dpf_account_release(&a);
    dpf_header_release(&h);
    dpf_text_release(&t);
}

/* --------------------------------------------------------------------------- people */

#define WINDOWS_OF(unit, ends, friends, map)                                             \
    "{'event': 'windows', 'stage': 'window', 'unit': '" unit "', 'ends': " ends          \
    ", 'friends': " friends ", 'stability': {" map "}}"
#define PEOPLE WINDOWS_OF("person", "5", "2", "'add-remove': 25, 'replace-one': 15")

/* Both statements, at delta 0; the ledger has windows. */
static void check_units(const char *what, const char *const *events, double person,
                        double window)
{
    const struct dpf_account_request basic = {.method = DPF_METHOD_BASIC, .delta = 0};
    struct dpf_header h = stream(events);
    struct dpf_account a;
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &basic, NULL) == DPF_OK);
    CU_ASSERT(a.has_windows);
    if (isfinite(person))
        SAME(what, a.proven.epsilon, person);
    else
        CU_ASSERT(isinf(a.proven.epsilon) && a.why.size);
    if (isfinite(window))
        SAME(what, a.per_window.epsilon, window);
    else
        CU_ASSERT(isinf(a.per_window.epsilon) && a.window_why.size);
    dpf_account_release(&a);
    dpf_header_release(&h);
}

static void a_person_is_a_group_of_windows(void)
{
    check_units("removed", EVENTS(PEOPLE, PURE("0.1", "add-remove")), 2.5, .1);
    check_units("replaced", EVENTS(PEOPLE, PURE("0.1", "replace-one")), 1.5, .1);
    check_units("twice",
                EVENTS(PEOPLE, PURE("0.1", "replace-one"), PURE("0.2", "replace-one")),
                4.5, .3);
    check_units("a choice of windows is one of records",
                EVENTS(PEOPLE, STABLE("'add-remove': 2, 'replace-one': 1"),
                       PURE("0.1", "add-remove")),
                5, .2);
    check_units("two sets of windows of one table",
                EVENTS(BOTH(PEOPLE ", " PURE("0.1", "replace-one"),
                            PEOPLE ", " PURE("0.2", "replace-one"))),
                4.5, .3);
    /* Gaussian noise has a form of its own for groups */
    struct dpf_header h = stream(EVENTS(PEOPLE, GAUSSIAN("60.0", "replace-one")));
    struct dpf_account a;
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &usual, NULL) == DPF_OK);
    SAME("gaussian, person", a.proven.epsilon, compose_one(gaussian(4, 1, 1), 1e-5));
    SAME("gaussian, window", a.per_window.epsilon, compose_one(gaussian(60, 1, 1), 1e-5));
    dpf_account_release(&a);
    dpf_header_release(&h);
}

/* What was done to rows before has to be about whole persons. */
static void rows_that_were_chosen_are_no_persons(void)
{
    static const char *const before[] = {STABLE("'add-remove': 1, 'replace-one': 1"),
                                         BY_CONTENT("0"),
                                         IN_ORDER("0"),
                                         AUGMENTATION("2"),
                                         PEOPLE,
                                         "{'event': 'mixing'}"};
    for (size_t i = 0; i < COUNT(before); i++) {
        check_units(before[i], EVENTS(before[i], PEOPLE, PURE("0.1", "add-remove")),
                    INFINITY, .1);
        check_units(before[i], EVENTS(before[i], PEOPLE, PURE("0.1", "replace-one")),
                    INFINITY, .1);
    }
    check_units("parts by person, replaced",
                EVENTS(DIVIDED("person", "0", "'add-remove': 1", "add-remove"), PEOPLE,
                       PURE("0.1", "replace-one")),
                1.5, .1);
    check_units("parts by person, removed",
                EVENTS(DIVIDED("person", "0", "'add-remove': 1", "add-remove"), PEOPLE,
                       PURE("0.1", "add-remove")),
                2.5, .1);
    check_units("noise on rows",
                EVENTS(PURE("0.1", "local"), PEOPLE, PURE("0.1", "local")), INFINITY,
                INFINITY);
    /* parts of rows: a person has some in each */
    const struct dpf_account_request basic = {.method = DPF_METHOD_BASIC, .delta = 0};
    struct dpf_header h =
        stream(EVENTS(BOTH(IN_ORDER("0") ", " PEOPLE ", " PURE("0.1", "replace-one"),
                           IN_ORDER("1") ", " PEOPLE ", " PURE("0.1", "replace-one"))));
    CU_ASSERT(isinf(epsilon_as(&h, &basic)));
    dpf_header_release(&h);
    /* nor are teachers who learnt from them: one person may change what all say */
    struct dpf_text t = {0};
    dpf_text_addf(&t, "{'event': 'teachers', 'branches': [[%s, %s], [%s, %s]]}", PEOPLE,
                  IN_ORDER("0"), PEOPLE, IN_ORDER("1"));
    SAME("teachers", exactly(EVENTS(dpf_text_get(&t), PURE("0.1", "replace-one"))), .2);
    dpf_text_reset(&t);
    dpf_text_addf(&t, "{'event': 'teachers', 'branches': [[%s, %s], [%s, %s]]}",
                  IN_ORDER("0"), PEOPLE, IN_ORDER("1"), PEOPLE);
    SAME("teachers of rows",
         exactly(EVENTS(dpf_text_get(&t), PURE("0.1", "replace-one"))), .2);
    dpf_text_release(&t);
    check_units("without a number",
                EVENTS(WINDOWS_OF("person", "5", "2", "'add-remove': 25"),
                       PURE("0.1", "replace-one")),
                INFINITY, .1);
    /* parts of windows are not apart either */
    check_units("parts of windows",
                EVENTS(BOTH(PEOPLE ", " IN_ORDER("0") ", " PURE("0.1", "replace-one"),
                            PEOPLE ", " IN_ORDER("1") ", " PURE("0.1", "replace-one"))),
                3, .2);
}

/* A person has many rows, so noise for one of them is no noise for her. */
static void rows_beside_windows_have_no_bound(void)
{
#define NOISE PURE("0.1", "replace-one")
    check_units("rows of the same people", EVENTS(BOTH(NOISE, PEOPLE ", " NOISE)),
                INFINITY, .2);
    check_units("a model of rows",
                EVENTS("{'event': 'model', 'data': 'protected', 'events': [" NOISE "]}",
                       PEOPLE, NOISE),
                INFINITY, .2);
    check_units("a model of windows",
                EVENTS("{'event': 'model', 'data': 'protected', 'events': [" PEOPLE
                       ", " NOISE "]}",
                       NOISE),
                INFINITY, .2);
    check_units("rows and windows in one release", EVENTS(BOTH("", PEOPLE), NOISE),
                INFINITY, .2);
    check_units("models of windows, used on windows",
                EVENTS("{'event': 'model', 'data': 'protected', 'events': [" PEOPLE
                       ", " NOISE "]}",
                       PEOPLE, NOISE),
                3, .2);
    /* two teachers learned from windows: she may have changed both */
    check_units(
        "teachers",
        EVENTS("{'event': 'teachers', 'branches': [[" PEOPLE "], [" PEOPLE "]]}", NOISE),
        .2, .2);
    check_units("teachers, and rows",
                EVENTS(BOTH("{'event': 'teachers', 'branches': [[" PEOPLE "], [" PEOPLE
                            "]]}, " NOISE,
                            NOISE)),
                INFINITY, .3);
#undef NOISE
}

/* Windows that no mechanism saw make no person of a record. */
static void windows_beside_records_do_not_count(void)
{
    struct dpf_header h =
        stream(EVENTS(PEOPLE, "{'event': 'model', 'data': 'protected', 'events': [" PURE(
                                  "0.1", "replace-one") "]}"));
    const struct dpf_account_request basic = {.method = DPF_METHOD_BASIC, .delta = 0};
    struct dpf_account a;
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &basic, NULL) == DPF_OK);
    CU_ASSERT(!a.has_windows && a.proven.epsilon > .09);
    CU_ASSERT(strstr(dpf_text_get(&a.assumes), "each person has one record") != NULL);
    CU_ASSERT(strstr(dpf_text_get(&a.assumes), "her number") == NULL);
    dpf_account_release(&a);
    dpf_header_release(&h);
}

/* Windows of one table that two owners sent are not of different people. */
static void owners_of_one_table_add_up(void)
{
#define OF(digest, more)                                                                 \
    "{'event': 'source', 'name': 'x', 'digest': 'blake2b-keyed:" digest "'}, " PEOPLE    \
    ", " more PURE("0.1", "replace-one")
#define OWNERS(one, other)                                                               \
    "{'event': 'merge', 'distinct_owners': true, 'branches': [[" one "], [" other "]]}"
    check_units("two owners", EVENTS(OWNERS(OF("a", ""), OF("b", ""))), 1.5, .1);
    check_units("one table", EVENTS(OWNERS(OF("a", ""), OF("a", ""))), 3, .2);
    check_units("parts of its windows",
                EVENTS(OWNERS(OF("a", IN_ORDER("0") ", "), OF("a", IN_ORDER("1") ", "))),
                3, .2);
    check_units(
        "parts of its rows",
        EVENTS(OWNERS(IN_ORDER("0") ", " OF("a", ""), IN_ORDER("1") ", " OF("a", ""))),
        INFINITY, .2);
#undef OF
#undef OWNERS
}

/* What `perturb --unit person` makes noise for. */
static void a_group_is_of_windows_alone(void)
{
    const struct {
        const char *const *events;
        uint64_t add_remove, replace_one;
    } ledgers[] = {
        {EVENTS("{'event': 'source'}", PEOPLE), 25, 15},
        {EVENTS("{'event': 'source'}"), 0, 0},
        {EVENTS("{'event': 'source'}", STABLE("'add-remove': 2, 'replace-one': 1")), 0,
         0},
        {EVENTS(PEOPLE, STABLE("'add-remove': 2, 'replace-one': 1")), 50, 15},
        {EVENTS(PEOPLE, STABLE("'replace-one': 1")), 0, 15},
        {EVENTS(PEOPLE, AUGMENTATION("100001")), 0, 0},
        {EVENTS(STABLE("'add-remove': 1, 'replace-one': 1"), PEOPLE), 0, 0},
        {EVENTS(PURE("0.1", "local"), PEOPLE), 0, 0},
        {EVENTS(PEOPLE, PEOPLE), 0, 0},
        {EVENTS(PEOPLE, "{'event': 'household'}"), 0, 0},
        {EVENTS(BOTH("", ""), PEOPLE), 0, 0},
        {EVENTS(BOTH(PEOPLE, PEOPLE)), 0, 0},
        {EVENTS("{'event': 'model', 'data': 'public', 'events': [" PEOPLE "]}"), 0, 0}};
    for (size_t i = 0; i < COUNT(ledgers); i++) {
        struct dpf_header h = stream(ledgers[i].events);
        CU_ASSERT_EQUAL(dpf_ledger_group(&h.events, DPF_ADD_REMOVE),
                        ledgers[i].add_remove);
        CU_ASSERT_EQUAL(dpf_ledger_group(&h.events, DPF_REPLACE_ONE),
                        ledgers[i].replace_one);
        CU_ASSERT_EQUAL(dpf_ledger_group(&h.events, DPF_LOCAL), ledgers[i].replace_one);
        if (ledgers[i].replace_one) { /* and `account` counts as many */
            const struct dpf_account_request basic = {.method = DPF_METHOD_BASIC};
            add(&h.events, PURE("0.1", "replace-one"));
            SAME("group", epsilon_as(&h, &basic), .1 * (double)ledgers[i].replace_one);
        }
        dpf_header_release(&h);
    }
}

static void windows_that_are_not_understood_are_refused(void)
{
    static const char *const bad[] = {
        WINDOWS_OF("household", "5", "2", "'add-remove': 25"),
        WINDOWS_OF("person", "0", "2", ""),
        WINDOWS_OF("person", "5", "-1", ""),
        WINDOWS_OF("person", "1000001", "0", ""),
        WINDOWS_OF("person", "5", "1000001", ""),
        WINDOWS_OF("person", "5", "2", "'add-remove': 24"),
        WINDOWS_OF("person", "5", "2", "'replace-one': 14"),
        WINDOWS_OF("person", "5", "2", "'replace-one': 'x'"),
        "{'event': 'windows', 'ends': 5, 'friends': 2, 'stability': {}}",
        "{'event': 'windows', 'unit': 'person', 'ends': 5, 'friends': 2}",
        "{'event': 'windows', 'unit': 'person', 'ends': 5, 'stability': {}}"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct dpf_header h = stream(EVENTS(bad[i], PURE("0.1", "replace-one")));
        CU_ASSERT(refused(&h, &usual, "malformed"));
        CU_ASSERT(!dpf_ledger_rows_are_whole(&h.events, true));
        dpf_header_release(&h);
    }
    struct dpf_header whole = stream(EVENTS(BOTH("{'event': 'source'}", "")));
    CU_ASSERT(dpf_ledger_rows_are_whole(&whole.events, true));
    dpf_header_release(&whole);
    whole = stream(EVENTS(DIVIDED("person", "0", "'add-remove': 1", "add-remove")));
    CU_ASSERT(dpf_ledger_rows_are_whole(&whole.events, true));
    CU_ASSERT(!dpf_ledger_rows_are_whole(&whole.events, false));
    dpf_header_release(&whole);
    whole = stream(EVENTS(BOTH("{'event': 'source'}", IN_ORDER("0"))));
    CU_ASSERT(!dpf_ledger_rows_are_whole(&whole.events, true));
    dpf_header_release(&whole);
}

/* The reader of events here reads what the library writes in the same way. */
static void events_as_text(void)
{
    struct dpf_header h = {0};
    struct dpf_header same = stream(EVENTS(
        "{'event': 'mechanism', 'stage': 'test', 'mechanism': 'gaussian', "
        "'noise_multiplier': 2.5, 'sampling': 'poisson', 'rate': 0.5, 'count': 7, "
        "'norm': 'l2', 'sensitivity': 1.0, 'relation': 'add-remove', 'claimed': "
        "{'epsilon': 0.25, 'delta': 1e-7, 'source': 'a paper'}, 'proven': {'epsilon': "
        "0.5, 'delta': 1e-6, 'theorem': 'a theorem'}}"));
    mechanism(&h, gaussian(2.5, 0.5, 7), DPF_ADD_REMOVE);
    CU_ASSERT_EQUAL_FATAL(h.events.bytes.size, same.events.bytes.size);
    CU_ASSERT(memcmp(h.events.bytes.data, same.events.bytes.data, h.events.bytes.size) ==
              0);
    dpf_header_release(&h);
    dpf_header_release(&same);
}

const char dpf_suite[] = "ledger";
const struct dpf_test dpf_tests[] = {
    {"events as text", events_as_text},
    {"public and private streams without mechanisms", standing_without_mechanisms},
    {"a protected stream without mechanisms", protected_without_mechanisms},
    {"one event costs what its mechanism costs", one_event},
    {"events compose", events_compose},
    {"events without protection", unprotected_events},
    {"malformed events are refused", malformed_events},
    {"a sampling rate without Poisson sampling", rates_of_other_sampling},
    {"malformed statements do no harm", malformed_statements},
    {"texts of a ledger cannot forge a line", texts_cannot_forge_lines},
    {"impossible stated deltas are refused", impossible_stated_deltas},
    {"broken encodings are refused", broken_encodings},
    {"deep nesting ends", deep_nesting},
    {"relations do not mix", relations_do_not_mix},
    {"groups of records, sampled", group_privacy_of_sampled},
    {"groups of records, beyond all bounds", group_privacy_beyond_all_bounds},
    {"sampling under other relations is refused", sampling_under_other_relations},
    {"augmentation multiplies", augmentation_multiplies},
    {"stability is a group", stability_is_a_group},
    {"parts in order", parts_in_order},
    {"every assumption is told, once", assumptions_are_told},
    {"so many copies that no noise is left", very_many_copies},
    {"owners count once, unless one used another's model", owners_and_models},
    {"selections that do not fit the relation", selections_that_do_not_fit},
    {"models nest", models_nest},
    {"private models without a mechanism", models_without_a_mechanism},
    {"disjoint parts count once", disjoint_parts_count_once},
    {"other parts add up", other_parts_add_up},
    {"many parts", many_parts},
    {"splits by other rules overlap", splits_of_other_seeds_overlap},
    {"merges in turn", merges_in_turn},
    {"long chains of merges", long_chains},
    {"mechanisms after a merge", mechanisms_after_a_merge},
    {"mechanisms after a merge of overlapping parts", mechanisms_after_overlapping_parts},
    {"models in branches", models_in_branches},
    {"epsilons are rounded up", epsilons_are_rounded_up},
    {"accounts as JSON", accounts_as_json},
    {"a person is a group of windows", a_person_is_a_group_of_windows},
    {"rows that were chosen are no persons", rows_that_were_chosen_are_no_persons},
    {"rows beside windows have no bound", rows_beside_windows_have_no_bound},
    {"windows beside records do not count", windows_beside_records_do_not_count},
    {"owners of one table add up", owners_of_one_table_add_up},
    {"a group is of windows alone", a_group_is_of_windows_alone},
    {"windows that are not understood are refused",
     windows_that_are_not_understood_are_refused},
    {NULL, NULL},
};
