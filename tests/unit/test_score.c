/* Scores: every number against a case computed by hand, the conventions at the edges, and
 * both reports. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "nn/score.h"

#include "base/banned.h"

#define NEAR(a, b) CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-9)
#define CLOSE(a, b)                                                                      \
    CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-6) /* scores were rounded to float                   \
                                        */
#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct dpf_score scoring(uint64_t classes, bool voxels)
{
    struct dpf_score s;
    CU_ASSERT_FATAL(dpf_score_init(&s, classes, voxels, NULL) == DPF_OK);
    return s;
}

/* Scores that mean these probabilities. */
static void add_shares(struct dpf_score *s, const double *p, int32_t label, double loss)
{
    float z[8];
    for (uint64_t l = 0; l < s->classes; l++)
        z[l] = (float)log(p[l]);
    dpf_score_add(s, z, 1, &label, loss);
}

/* Scores under which these classes are predicted; 'n' stands for a NaN. */
static void add_picture(struct dpf_score *s, const char *predicted, const char *truth)
{
    float z[64] = {0};
    int32_t labels[16];
    size_t n = strlen(truth);
    CU_ASSERT_FATAL(n <= COUNT(labels) && n * s->classes <= COUNT(z));
    for (size_t v = 0; v < n; v++) {
        labels[v] = truth[v] - '0';
        if (predicted[v] == 'n')
            z[v * s->classes + s->classes - 1] = NAN;
        else
            z[v * s->classes + (size_t)(predicted[v] - '0')] = 3;
    }
    dpf_score_add(s, z, (int64_t)n, labels, 1);
}

/* Examples of their own. */
static void add_each(struct dpf_score *s, const char *predicted, const char *truth)
{
    for (size_t i = 0; truth[i]; i++) {
        char p[2] = {predicted[i], 0}, t[2] = {truth[i], 0};
        add_picture(s, p, t);
    }
}

/* ---- a reader of JSON, strict enough to find what is malformed ---- */

static const char *blank(const char *p)
{
    while (*p == ' ' || *p == '\n')
        p++;
    return p;
}

static const char *json_end(const char *p);

static const char *string_end(const char *p)
{
    if (!p || *p++ != '"')
        return NULL;
    for (; *p != '"'; p++)
        if ((unsigned char)*p < 0x20 || (*p == '\\' && !*++p))
            return NULL;
    return p + 1;
}

static const char *number_end(const char *p)
{
    p += *p == '-';
    if (!isdigit((unsigned char)*p) || (*p == '0' && isdigit((unsigned char)p[1])))
        return NULL;
    char *end;
    strtod(p, &end);
    return end[-1] == '.' ? NULL : end;
}

/* An object or array. */
static const char *group_end(const char *p)
{
    char close = *p == '{' ? '}' : ']';
    p = blank(p + 1);
    if (*p == close)
        return p + 1;
    for (;;) {
        if (close == '}') {
            p = string_end(p);
            if (!p || *(p = blank(p)) != ':')
                return NULL;
            p = blank(p + 1);
        }
        p = json_end(p);
        if (!p)
            return NULL;
        p = blank(p);
        if (*p == close)
            return p + 1;
        if (*p != ',')
            return NULL;
        p = blank(p + 1);
    }
}

/* Behind the value at p, or NULL. */
static const char *json_end(const char *p)
{
    if (*p == '{' || *p == '[')
        return group_end(p);
    if (*p == '"')
        return string_end(p);
    if (strncmp(p, "null", 4) == 0)
        return p + 4;
    return number_end(p);
}

/* The value of a key of the object at p (of valid JSON), or NULL. */
static const char *json_get(const char *p, const char *key)
{
    size_t n = strlen(key);
    for (p++; p && *p == '"';) {
        const char *end = string_end(p), *value = blank(blank(end) + 1);
        if ((size_t)(end - p) == n + 2 && memcmp(p + 1, key, n) == 0)
            return value;
        p = blank(json_end(value));
        p = *p == ',' ? blank(p + 1) : NULL;
    }
    return NULL;
}

/* Element i of the array at p (of valid JSON), or NULL. */
static const char *json_at(const char *p, int i)
{
    for (p = blank(p + 1); i > 0 && *p != ']'; i--) {
        p = blank(json_end(p));
        p = *p == ',' ? blank(p + 1) : p;
    }
    return *p == ']' ? NULL : p;
}

static bool json_is(const char *object, const char *key, double value)
{
    const char *p = object ? json_get(object, key) : NULL;
    return p && number_end(p) && fabs(strtod(p, NULL) - value) <= 1e-9;
}

static bool json_is_null(const char *object, const char *key)
{
    const char *p = json_get(object, key);
    return p && strncmp(p, "null", 4) == 0;
}

static const char *json_of(const struct dpf_score *s, struct dpf_text *out)
{
    dpf_score_json(s, out);
    CU_ASSERT_FATAL(!out->failed && out->size > 0);
    const char *end = json_end(out->data);
    CU_ASSERT_FATAL(*out->data == '{' && end && *end == '\0');
    return out->data;
}

/* ---- numbers ---- */

static void test_classes(void)
{
    static const uint64_t confusion[9] = {3, 1, 0, 0, 2, 0, 2, 1, 1};
    static const struct {
        uint64_t support, predicted, hits;
        double precision, recall, f1;
    } due[3] = {{4, 5, 3, 0.6, 0.75, 2 / 3.0},
                {2, 4, 2, 0.5, 1, 2 / 3.0},
                {4, 1, 1, 1, 0.25, 0.4}};
    struct dpf_score s = scoring(3, false);
    add_each(&s, "0001110012", "0000112222");
    dpf_score_finish(&s);
    CU_ASSERT(s.examples == 10 && s.positions == 10 && s.hits == 6);
    CU_ASSERT(memcmp(s.confusion, confusion, sizeof confusion) == 0);
    for (int l = 0; l < 3; l++) {
        const struct dpf_score_class *c = &s.per_class[l];
        CU_ASSERT(c->support == due[l].support && c->predicted == due[l].predicted);
        CU_ASSERT(c->hits == due[l].hits);
        NEAR(c->precision, due[l].precision);
        NEAR(c->recall, due[l].recall);
        NEAR(c->f1, due[l].f1);
    }
    NEAR(s.accuracy, 0.6);
    NEAR(s.accuracy_low, 0.3126737697);
    NEAR(s.accuracy_high, 0.8318196703);
    NEAR(s.loss, 1);
    CU_ASSERT(isnan(s.top));
    dpf_score_release(&s);
    CU_ASSERT(!s.per_class && !s.confusion);
}

static void test_interval_at_the_ends(void)
{
    struct dpf_score s = scoring(2, false);
    add_each(&s, "1111111111", "0000000000");
    dpf_score_finish(&s);
    CU_ASSERT(s.accuracy == 0 && s.accuracy_low == 0);
    NEAR(s.accuracy_high, 0.2775327999);
    dpf_score_release(&s);
    s = scoring(2, false);
    add_each(&s, "1111111111", "1111111111");
    dpf_score_finish(&s);
    CU_ASSERT(s.accuracy == 1 && s.accuracy_high == 1);
    NEAR(s.accuracy_low, 0.7224672001);
    dpf_score_release(&s);
    /* no rounding lifts the lower end above the share itself, or the upper below it */
    s = scoring(2, false);
    struct dpf_score right = scoring(2, false);
    for (int n = 1; n <= 20; n++) {
        add_each(&s, "1", "0");
        add_each(&right, "1", "1");
        dpf_score_finish(&s);
        dpf_score_finish(&right);
        CU_ASSERT(s.accuracy_low == 0 && right.accuracy_high == 1);
    }
    dpf_score_release(&right);
    dpf_score_release(&s);
}

static void test_calibration(void)
{
    static const double p[5][2] = {
        {0.9, 0.1}, {0.7, 0.3}, {0.38, 0.62}, {0.18, 0.82}, {0.35, 0.65}};
    static const int32_t labels[5] = {0, 1, 1, 1, 0};
    static const uint64_t bins[DPF_SCORE_BINS] = {[9] = 2, [10] = 1, [12] = 1, [13] = 1};
    static const uint64_t hits[DPF_SCORE_BINS] = {[9] = 1, [12] = 1, [13] = 1};
    struct dpf_score s = scoring(2, false);
    for (int i = 0; i < 5; i++)
        add_shares(&s, p[i], labels[i], i + 1);
    dpf_score_finish(&s);
    for (int i = 0; i < DPF_SCORE_BINS; i++)
        CU_ASSERT(s.bins[i].count == bins[i] && s.bins[i].hits == hits[i]);
    NEAR(s.loss, 3);
    NEAR(s.accuracy, 0.6);
    CLOSE(s.ece, 0.25); /* (0.1 + 0.7 + |1 - 1.27| + 0.18) / 5 */
    CLOSE(s.mce, 0.7);
    CLOSE(s.confidence, 0.738);
    CLOSE(s.brier, 0.43972); /* (0.02 + 0.98 + 0.2888 + 0.0648 + 0.845) / 5 */
    CLOSE(s.nll, 0.6071284367);
    dpf_score_release(&s);
    /* half of those with confidence 3/4 are right: the gap is that of the bin's mean */
    s = scoring(2, false);
    for (int32_t i = 0; i < 4; i++)
        add_shares(&s, (const double[]){0.75, 0.25}, i % 2, 0);
    dpf_score_finish(&s);
    CLOSE(s.ece, 0.25);
    CLOSE(s.mce, 0.25);
    dpf_score_release(&s);
    s = scoring(3, false);
    add_shares(&s, (const double[]){0.5, 0.3, 0.2}, 1, 0);
    dpf_score_finish(&s);
    CLOSE(s.brier, 0.25 + 0.49 + 0.04);
    CLOSE(s.nll, 1.2039728043);
    CLOSE(s.confidence, 0.5);
    dpf_score_release(&s);
}

/* A confidence on an edge belongs to the lower bin. */
static void test_bin_edges(void)
{
    static const struct {
        uint64_t classes;
        int bin;
    } cases[] = {{1, 14}, {3, 4}, {5, 2}, {15, 0}, {60, 0}};
    static const float even[60];
    const int32_t label = 0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dpf_score s = scoring(cases[i].classes, false);
        dpf_score_add(&s, even, 1, &label, 0);
        CU_ASSERT(s.bins[cases[i].bin].count == 1);
        dpf_score_release(&s);
    }
}

static void test_ties_and_top(void)
{
    static const float falling[7] = {7, 6, 5, 4, 3, 2, 1}, even[7];
    static const float two[7] = {0, 1, 5, 5, 1, 1, 0};
    static const struct {
        const float *z;
        int32_t label;
        uint64_t hit, top;
    } cases[] = {{falling, 0, 1, 1}, {falling, 4, 0, 1}, {falling, 5, 0, 0},
                 {even, 0, 1, 1},    {even, 1, 0, 1},    {even, 4, 0, 1},
                 {even, 5, 0, 0},    {two, 2, 1, 1},     {two, 3, 0, 1},
                 {two, 5, 0, 1},     {two, 0, 0, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dpf_score s = scoring(7, false);
        dpf_score_add(&s, cases[i].z, 1, &cases[i].label, 0);
        dpf_score_finish(&s);
        CU_ASSERT(s.hits == cases[i].hit && s.top_hits == cases[i].top);
        CU_ASSERT(s.top == (double)cases[i].top);
        dpf_score_release(&s);
    }
    /* with five classes there is nothing to tell, with six there is */
    for (uint64_t classes = 5; classes <= 6; classes++) {
        struct dpf_score s = scoring(classes, false);
        struct dpf_text t = {0};
        dpf_score_add(&s, falling, 1, &(int32_t){4}, 0);
        dpf_score_finish(&s);
        const char *json = json_of(&s, &t);
        CU_ASSERT(json_is(json, "top5", 1) == (classes > 5));
        CU_ASSERT((json_get(json, "top5") != NULL) == (classes > 5));
        dpf_text_release(&t);
        dpf_score_release(&s);
    }
}

static void test_not_a_number(void)
{
    static const float bad[2] = {NAN, 1}, worse[2] = {1, NAN}, good[2] = {0, 0};
    const int32_t first = 0, second = 1;
    struct dpf_score s = scoring(2, false);
    dpf_score_add(&s, bad, 1, &second, NAN);
    dpf_score_add(&s, worse, 1, &first, 1);
    dpf_score_add(&s, good, 1, &first, 1);
    dpf_score_finish(&s);
    CU_ASSERT(s.examples == 3 && s.not_a_number == 2 && s.hits == 1);
    NEAR(s.accuracy, 1 / 3.0);
    CU_ASSERT(s.confusion[0] == 1 && s.confusion[1] + s.confusion[2] == 0);
    CU_ASSERT(s.confusion[3] == 0);
    CU_ASSERT(s.per_class[0].support == 2 && s.per_class[1].support == 1);
    NEAR(s.per_class[0].recall, 0.5);
    NEAR(s.per_class[0].precision, 1);
    NEAR(s.per_class[1].recall, 0);
    /* of the one that has probabilities */
    NEAR(s.nll, log(2));
    NEAR(s.brier, 0.5);
    NEAR(s.confidence, 0.5);
    NEAR(s.ece, 0.5);
    CU_ASSERT(isnan(s.loss));
    struct dpf_text t = {0};
    const char *json = json_of(&s, &t);
    CU_ASSERT(json_is(json, "not_a_number", 2) && json_is_null(json, "loss"));
    dpf_text_release(&t);
    dpf_score_release(&s);
    /* seven classes: neither among the best five */
    s = scoring(7, false);
    dpf_score_add(&s, (const float[7]){1, 0, 0, 0, 0, 0, NAN}, 1, &first, 0);
    dpf_score_finish(&s);
    CU_ASSERT(s.top == 0 && s.accuracy == 0 && isnan(s.ece) && isnan(s.nll));
    dpf_score_release(&s);
}

static void test_far_scores(void)
{
    static const struct {
        float z[2];
        int32_t label;
        double confidence, nll, brier;
    } cases[] = {
        {{1000, -1000}, 0, 1, 0, 0},
        {{1000, -1000}, 1, 1, 2000, 2},
        {{INFINITY, 0}, 0, 1, 0, 0},
        {{INFINITY, 0}, 1, 1, INFINITY, 2},
        {{INFINITY, INFINITY}, 1, 0.5, 0.69314718056, 0.5},
        {{-INFINITY, -INFINITY}, 0, 0.5, 0.69314718056, 0.5},
        {{-INFINITY, 0}, 1, 1, 0, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct dpf_score s = scoring(2, false);
        struct dpf_text t = {0};
        dpf_score_add(&s, cases[i].z, 1, &cases[i].label, 0);
        dpf_score_finish(&s);
        CU_ASSERT(s.not_a_number == 0);
        NEAR(s.confidence, cases[i].confidence);
        NEAR(s.brier, cases[i].brier);
        if (isinf(cases[i].nll)) {
            CU_ASSERT(s.nll == cases[i].nll && json_is_null(json_of(&s, &t), "nll"));
        } else {
            NEAR(s.nll, cases[i].nll);
            CU_ASSERT(json_is(json_of(&s, &t), "nll", cases[i].nll));
        }
        dpf_text_release(&t);
        dpf_score_release(&s);
    }
}

static void test_bad_labels(void)
{
    static const float z[6] = {1, 0, 1, 0, 0, 1};
    static const int32_t mixed[3] = {0, -1, 2}, none[2] = {INT32_MIN, INT32_MAX};
    struct dpf_score s = scoring(2, true);
    dpf_score_add(&s, z, 3, mixed, 2);
    dpf_score_add(&s, z, 2, none, 100);
    dpf_score_add(&s, z, 0, NULL, 100);
    dpf_score_finish(&s);
    CU_ASSERT(s.unlabelled == 4 && s.examples == 1 && s.positions == 1 && s.hits == 1);
    NEAR(s.loss, 2);
    CU_ASSERT(s.confusion[0] == 1 && s.per_class[0].dice == 1);
    CU_ASSERT(s.per_class[1].predicted == 0 && isnan(s.per_class[1].dice));
    struct dpf_text t = {0};
    CU_ASSERT(json_is(json_of(&s, &t), "unlabelled", 4));
    dpf_text_reset(&t);
    dpf_score_table(&s, NULL, &t);
    CU_ASSERT(strstr(dpf_text_get(&t), "bad labels         4 left out\n") != NULL);
    dpf_text_release(&t);
    dpf_score_release(&s);
}

static void test_dice(void)
{
    static const double dice[3] = {(2 / 3.0 + 6 / 7.0) / 2, 0.8, 0};
    static const double pooled[3] = {0.8, 0.8, 0};
    static const uint64_t seen[4] = {2, 1, 1, 0};
    struct dpf_score s = scoring(4, true);
    add_picture(&s, "0111", "0011");
    add_picture(&s, "0002", "0000");
    dpf_score_finish(&s);
    for (int l = 0; l < 4; l++) {
        CU_ASSERT(s.per_class[l].dice_examples == seen[l]);
        if (l == 3)
            break;
        NEAR(s.per_class[l].dice, dice[l]);
        NEAR(s.per_class[l].dice_pooled, pooled[l]);
    }
    CU_ASSERT(isnan(s.per_class[3].dice) && isnan(s.per_class[3].dice_pooled));
    CU_ASSERT(s.per_class[3].f1 == 0);
    NEAR(s.dice_mean, (dice[0] + dice[1]) / 3);
    NEAR(s.dice_pooled_mean, 1.6 / 3);
    NEAR(s.dice_foreground, 0.4);
    CU_ASSERT(s.examples == 2 && s.positions == 8);
    NEAR(s.accuracy, 0.75);
    /* two trials, however many voxels */
    NEAR(s.accuracy_low, 0.1978674558);
    NEAR(s.accuracy_high, 0.9733226580);
    dpf_score_release(&s);
    /* a voxel without a prediction is missing from P */
    s = scoring(2, true);
    add_picture(&s, "1n", "11");
    dpf_score_finish(&s);
    NEAR(s.per_class[1].dice, 2 / 3.0);
    NEAR(s.per_class[1].dice_pooled, 2 / 3.0);
    CU_ASSERT(s.not_a_number == 1 && isnan(s.per_class[0].dice));
    NEAR(s.dice_mean, 2 / 3.0);
    dpf_score_release(&s);
    /* unequal examples: 4^2 / (1 + 9) trials */
    s = scoring(2, true);
    add_picture(&s, "1", "1");
    add_picture(&s, "111", "000");
    dpf_score_finish(&s);
    NEAR(s.accuracy, 0.25);
    NEAR(s.accuracy_low, 0.0221185017);
    NEAR(s.accuracy_high, 0.8308621003);
    dpf_score_release(&s);
}

static void test_one_class(void)
{
    struct dpf_score s = scoring(1, false);
    add_each(&s, "000", "000");
    dpf_score_finish(&s);
    CU_ASSERT(s.accuracy == 1 && s.nll == 0 && s.brier == 0 && s.confidence == 1);
    CU_ASSERT(s.ece == 0 && s.mce == 0 && s.per_class[0].f1 == 1 && s.confusion[0] == 3);
    dpf_score_release(&s);
}

static void test_no_examples(void)
{
    static const char *const keys[] = {
        "accuracy", "accuracy_low", "accuracy_high", "loss", "nll",
        "brier",    "ece",          "mce",           "top5", "confidence"};
    struct dpf_score s = scoring(6, false);
    struct dpf_text t = {0};
    dpf_score_finish(&s);
    const char *json = json_of(&s, &t);
    CU_ASSERT(json_is(json, "examples", 0));
    for (size_t i = 0; i < COUNT(keys); i++)
        CU_ASSERT(json_is_null(json, keys[i]));
    CU_ASSERT(json_is(json_at(json_get(json, "per_class"), 5), "f1", 0));
    dpf_text_reset(&t);
    dpf_score_table(&s, NULL, &t);
    CU_ASSERT(strstr(dpf_text_get(&t), "examples           0\n"
                                       "accuracy           -\n"
                                       "top-5 accuracy     -\n"
                                       "loss               -\n"
                                       "ECE                -\n") != NULL);
    /* and more after finishing */
    add_picture(&s, "5", "5");
    dpf_score_finish(&s);
    CU_ASSERT(s.accuracy == 1 && s.top == 1 && s.loss == 1);
    add_picture(&s, "5", "3");
    dpf_score_finish(&s);
    CU_ASSERT(s.accuracy == 0.5 && s.top == 1);
    dpf_text_release(&t);
    dpf_score_release(&s);
}

static void test_how_many_classes(void)
{
    static float z[DPF_SCORE_MATRIX_CLASSES + 1];
    struct dpf_error e = {0};
    struct dpf_score s;
    CU_ASSERT(dpf_score_init(&s, 0, false, &e) == DPF_USAGE && strstr(e.message, "'0'"));
    CU_ASSERT(dpf_score_init(&s, UINT64_MAX, true, &e) == DPF_USAGE);
    CU_ASSERT(dpf_score_init(&s, DPF_SCORE_MAX_CLASSES + 1, true, &e) == DPF_USAGE);
    s = scoring(DPF_SCORE_MATRIX_CLASSES, false);
    CU_ASSERT(s.confusion != NULL);
    dpf_score_release(&s);
    s = scoring(DPF_SCORE_MATRIX_CLASSES + 1, false);
    CU_ASSERT(s.confusion == NULL);
    z[4096] = 1;
    dpf_score_add(&s, z, 1, &(int32_t){4096}, 0);
    dpf_score_add(&s, z, 1, &(int32_t){7}, 0);
    dpf_score_finish(&s);
    struct dpf_text t = {0};
    const char *json = json_of(&s, &t);
    CU_ASSERT(json_is(json, "accuracy", 0.5) && json_is_null(json, "confusion"));
    const char *last = json_at(json_get(json, "per_class"), 4096);
    CU_ASSERT(json_is(last, "precision", 0.5) && json_is(last, "recall", 1));
    CU_ASSERT(json_at(json_get(json, "per_class"), 4097) == NULL);
    dpf_text_reset(&t);
    dpf_score_table(&s, NULL, &t);
    CU_ASSERT(strstr(dpf_text_get(&t), "confusion") == NULL);
    dpf_text_release(&t);
    dpf_score_release(&s);
}

/* ---- reports ---- */

static void test_json(void)
{
    static const double confusion[3][3] = {{3, 1, 0}, {0, 2, 0}, {2, 1, 1}};
    struct dpf_score s = scoring(3, false);
    struct dpf_text t = {0};
    add_each(&s, "0001110012", "0000112222");
    dpf_score_finish(&s);
    const char *json = json_of(&s, &t);
    CU_ASSERT(json_is(json, "examples", 10) && json_is(json, "accuracy", 0.6));
    CU_ASSERT(json_is(json, "accuracy_low", 0.3126737697));
    CU_ASSERT(json_is(json, "accuracy_high", 0.8318196703));
    CU_ASSERT(json_is(json, "loss", 1) && json_is(json, "nll", s.nll) && s.nll > 0);
    CU_ASSERT(json_is(json, "brier", s.brier) && json_is(json, "ece", s.ece));
    CU_ASSERT(json_is(json, "mce", s.mce) && json_is(json, "confidence", s.confidence));
    CU_ASSERT(!json_get(json, "dice_mean") && !json_get(json, "positions"));
    const char *rows = json_get(json, "confusion"), *list = json_get(json, "per_class");
    CU_ASSERT_FATAL(rows && list);
    for (int l = 0; l < 3; l++) {
        const char *row = json_at(rows, l), *one = json_at(list, l);
        CU_ASSERT_FATAL(row && one);
        for (int p = 0; p < 3; p++)
            CU_ASSERT(json_at(row, p) && strtod(json_at(row, p), 0) == confusion[l][p]);
        CU_ASSERT(json_at(row, 3) == NULL && json_get(one, "dice") == NULL);
        CU_ASSERT(json_is(one, "class", l));
        CU_ASSERT(json_is(one, "support", (double)s.per_class[l].support));
    }
    CU_ASSERT(json_is(json_at(list, 0), "precision", 0.6));
    CU_ASSERT(json_is(json_at(list, 2), "recall", 0.25));
    CU_ASSERT(json_is(json_at(list, 2), "f1", 0.4));
    CU_ASSERT(json_at(rows, 3) == NULL && json_at(list, 3) == NULL);
    dpf_text_release(&t);
    dpf_score_release(&s);
}

static void test_json_voxels(void)
{
    struct dpf_score s = scoring(4, true);
    struct dpf_text t = {0};
    add_picture(&s, "0111", "0011");
    add_picture(&s, "0002", "0000");
    dpf_score_finish(&s);
    const char *json = json_of(&s, &t), *list = json_get(json, "per_class");
    CU_ASSERT(json_is(json, "examples", 2) && json_is(json, "positions", 8));
    CU_ASSERT(json_is(json, "dice_mean", (32 / 42.0 + 0.8) / 3));
    CU_ASSERT(json_is(json, "dice_pooled_mean", 1.6 / 3));
    CU_ASSERT(json_is(json_at(list, 0), "dice", 32 / 42.0));
    CU_ASSERT(json_is(json_at(list, 0), "dice_pooled", 0.8));
    CU_ASSERT(json_is(json_at(list, 2), "dice", 0));
    CU_ASSERT(json_is_null(json_at(list, 3), "dice"));
    CU_ASSERT(json_is_null(json_at(list, 3), "dice_pooled"));
    CU_ASSERT(json_is(json_at(list, 3), "f1", 0));
    dpf_text_release(&t);
    dpf_score_release(&s);
}

static bool table_is(const struct dpf_score *s, const char *const *names, const char *due)
{
    struct dpf_text t = {0};
    dpf_score_table(s, names, &t);
    bool same = !t.failed && strcmp(dpf_text_get(&t), due) == 0;
    if (!same)
        printf("%s", dpf_text_get(&t));
    dpf_text_release(&t);
    return same;
}

static void test_table(void)
{
    static const char *const names[3] = {"caf\xc3\xa9", NULL,
                                         "a\x1b[1mname that goes on and on"};
    static const double p[2][3] = {{0.8, 0.1, 0.1}, {0.6, 0.2, 0.2}};
    struct dpf_score s = scoring(3, false);
    for (int i = 0; i < 10; i++)
        add_shares(&s, p[0], 0, 0.25);
    for (int i = 0; i < 2; i++)
        add_shares(&s, p[1], 2, 1.75);
    dpf_score_finish(&s);
    /* calibration: 10 of 0.8 right, 2 of 0.6 wrong; (10 * 0.2 + 2 * 0.6) / 12 */
    CU_ASSERT(table_is(
        &s, names,
        "examples           12\n"
        "accuracy           0.8333  (95 % interval 0.5520 to 0.9530)\n"
        "loss               0.5000\n"
        "ECE                0.2667\n"
        "MCE                0.6000\n"
        "mean confidence    0.7667\n"
        "NLL                0.4542\n"
        "Brier score        0.2233\n"
        "\n"
        "class                          support  precision     recall         F1\n"
        "0 caf\xc3\xa9                              10     0.8333     1.0000     0.9091\n"
        "1                                    0     0.0000     0.0000     0.0000\n"
        "2 a?[1mname that goes on             2     0.0000     0.0000     0.0000\n"
        "\n"
        "confusion: a row for each true class, a column for each predicted one\n"
        "                           0   1   2\n"
        "0 caf\xc3\xa9                    10   0   0\n"
        "1                          0   0   0\n"
        "2 a?[1mname that goes on   2   0   0\n"));
    dpf_score_release(&s);
}

static void test_table_voxels(void)
{
    struct dpf_score s = scoring(3, true);
    struct dpf_text t = {0};
    add_picture(&s, "011n", "0011");
    dpf_score_finish(&s);
    dpf_score_table(&s, NULL, &t);
    const char *text = dpf_text_get(&t);
    CU_ASSERT(strstr(text, "examples           1\n"
                           "voxels             4\n"
                           "accuracy           0.5000  (95 % interval ") == text);
    CU_ASSERT(strstr(text, "mean Dice          0.5833\n"
                           "mean pooled Dice   0.5833\n"
                           "foreground Dice    0.5000\n"
                           "NaN                1 without a prediction, counted as "
                           "wrong\n\n") != NULL);
    CU_ASSERT(
        strstr(text,
               "class       support  precision     recall         F1       Dice     "
               "pooled\n"
               "0                 2     1.0000     0.5000     0.6667     0.6667     "
               "0.6667\n"
               "1                 2     0.5000     0.5000     0.5000     0.5000     "
               "0.5000\n"
               "2                 0     0.0000     0.0000     0.0000          -          "
               "-\n\n") != NULL);
    CU_ASSERT(strstr(text, "       0  1  2\n"
                           "0      1  1  0\n"
                           "1      0  1  0\n"
                           "2      0  0  0\n") != NULL);
    dpf_text_release(&t);
    dpf_score_release(&s);
    /* the matrix of 20 classes is shown, that of 21 is not */
    for (uint64_t classes = 20; classes <= 21; classes++) {
        s = scoring(classes, false);
        t = (struct dpf_text){0};
        dpf_score_finish(&s);
        dpf_score_table(&s, NULL, &t);
        CU_ASSERT((strstr(dpf_text_get(&t), "confusion") != NULL) == (classes == 20));
        dpf_text_release(&t);
        dpf_score_release(&s);
    }
}

const char dpf_suite[] = "score";
const struct dpf_test dpf_tests[] = {
    {"confusion, precision, recall, F1, interval", test_classes},
    {"the interval at 0 and 1", test_interval_at_the_ends},
    {"calibration, Brier score, log-likelihood", test_calibration},
    {"a confidence on the edge of a bin", test_bin_edges},
    {"equal scores, and the best five", test_ties_and_top},
    {"NaN counts as wrong and is counted", test_not_a_number},
    {"far and infinite scores", test_far_scores},
    {"labels out of range are left out and counted", test_bad_labels},
    {"Dice by example and pooled", test_dice},
    {"one class", test_one_class},
    {"no examples, and more after finishing", test_no_examples},
    {"how many classes", test_how_many_classes},
    {"JSON of a classification", test_json},
    {"JSON of a segmentation", test_json_voxels},
    {"the table of a classification", test_table},
    {"the table of a segmentation", test_table_voxels},
    {0},
};
