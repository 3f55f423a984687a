/* synth-wellness: the shape of the network, and the planted rule, computed again from the
 * records alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "data/synth.h"
#include "harness.h"

#include "base/banned.h"

enum { PEOPLE = 254, TIMES = 300, ATTRIBUTES = 30, LINKS = 1383, WEEKS = 38 };

static float x[PEOPLE][TIMES][ATTRIBUTES];
static int y[PEOPLE][TIMES];
static bool linked[PEOPLE][PEOPLE];

static struct dpf_source *open_part(uint64_t seed, enum dpf_synth_wellness_part part)
{
    struct dpf_source *s = NULL;
    struct dpf_error e;
    CU_ASSERT_FATAL(dpf_synth_wellness_open(seed, part, &s, &e) == DPF_OK);
    return s;
}

static struct dpf_batch read_all(struct dpf_source *s)
{
    struct dpf_batch b;
    struct dpf_error e;
    CU_ASSERT_FATAL(dpf_source_next(s, &b, s->header.records + 1, &e) == DPF_OK);
    CU_ASSERT_FATAL(b.rows == s->header.records);
    return b;
}

static void read_days(uint64_t seed)
{
    struct dpf_source *s = open_part(seed, DPF_SYNTH_WELLNESS_DAILY);
    struct dpf_batch b = read_all(s);
    CU_ASSERT_FATAL(b.rows == PEOPLE * TIMES);
    for (uint64_t i = 0; i < b.rows; i++) {
        int64_t u = ((int64_t *)b.tensor[0].data)[i],
                t = ((int64_t *)b.tensor[1].data)[i];
        memcpy(x[u][t], (float *)b.tensor[2].data + i * ATTRIBUTES, sizeof x[u][t]);
        y[u][t] = ((uint8_t *)b.tensor[3].data)[i];
    }
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
}

static void read_links(uint64_t seed)
{
    struct dpf_source *s = open_part(seed, DPF_SYNTH_WELLNESS_FRIEND_LINKS);
    struct dpf_batch b = read_all(s);
    memset(linked, 0, sizeof linked);
    CU_ASSERT_FATAL(b.rows == LINKS);
    for (uint64_t i = 0; i < b.rows; i++) {
        const int64_t *link = (int64_t *)b.tensor[0].data + 2 * i;
        CU_ASSERT_FATAL(link[0] >= 0 && link[0] < link[1] && link[1] < PEOPLE);
        CU_ASSERT(!linked[link[0]][link[1]]);
        linked[link[0]][link[1]] = linked[link[1]][link[0]] = true;
    }
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
}

static void the_shape_is_the_papers(void)
{
    read_links(1);
    for (int u = 0; u < PEOPLE; u++) {
        int friends = 0;
        for (int v = 0; v < PEOPLE; v++)
            friends += linked[u][v];
        CU_ASSERT(friends >= 2 && friends <= DPF_SYNTH_WELLNESS_FRIENDS);
        CU_ASSERT(linked[u][(u + 1) % PEOPLE]);
    }
    for (int part = DPF_SYNTH_WELLNESS_DAILY; part <= DPF_SYNTH_WELLNESS_WEEKLY; part++) {
        struct dpf_source *s = open_part(3, (enum dpf_synth_wellness_part)part);
        const struct dpf_field *f = &s->header.fields[2];
        struct dpf_batch b = read_all(s);
        CU_ASSERT(b.rows == (uint64_t)PEOPLE * (part == 0 ? TIMES : WEEKS));
        CU_ASSERT_FATAL(f->bounds.count == ATTRIBUTES && f->feature_count == ATTRIBUTES);
        CU_ASSERT(strcmp(f->features[4], "distance") == 0);
        CU_ASSERT(strcmp(f->features[6], "inbox_encouragement") == 0);
        CU_ASSERT(strcmp(f->features[25], "inbox_physical") == 0);
        uint64_t bad = 0, ones = 0;
        for (uint64_t i = 0; i < b.rows * ATTRIBUTES; i++) {
            double value = dpf_tensor_get(&b.tensor[2], i);
            bad += !(value >= f->bounds.lo[i % ATTRIBUTES] &&
                     value <= f->bounds.hi[i % ATTRIBUTES]);
        }
        for (uint64_t i = 0; i < b.rows; i++)
            ones += ((uint8_t *)b.tensor[3].data)[i];
        CU_ASSERT_EQUAL(bad, 0);
        CU_ASSERT(ones > b.rows * 4 / 10 && ones < b.rows * 6 / 10);
        dpf_batch_release(&b);
        dpf_source_destroy(&s);
    }
}

static void labels_are_increases(void)
{
    struct dpf_source *s = open_part(1, DPF_SYNTH_WELLNESS_WEEKLY);
    struct dpf_batch b = read_all(s);
    int bad = 0;
    read_days(1);
    for (int u = 0; u < PEOPLE; u++)
        for (int t = 0; t < TIMES; t++)
            bad += y[u][t] != (t > 0 && x[u][t][4] > x[u][t - 1][4]);
    CU_ASSERT_EQUAL(bad, 0);
    const float *weeks = b.tensor[2].data;
    for (uint64_t i = 0; i < b.rows; i++) {
        bool up =
            i % WEEKS && weeks[i * ATTRIBUTES + 4] > weeks[(i - 1) * ATTRIBUTES + 4];
        bad += ((uint8_t *)b.tensor[3].data)[i] != up;
    }
    CU_ASSERT_EQUAL(bad, 0);
    /* the third person's second week */
    double sum = 0;
    for (int t = 300 / 38; t < 600 / 38; t++)
        sum += (double)x[2][t][4];
    CU_ASSERT_DOUBLE_EQUAL(weeks[(2 * WEEKS + 1) * ATTRIBUTES + 4], sum / 8, 1e-5);
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
}

static void the_seed_alone_decides(void)
{
    for (int part = 0; part < 3; part++) {
        struct dpf_source *a = open_part(5, (enum dpf_synth_wellness_part)part);
        struct dpf_source *same = open_part(5, (enum dpf_synth_wellness_part)part);
        struct dpf_source *other = open_part(6, (enum dpf_synth_wellness_part)part);
        struct dpf_batch p = read_all(a), q, r = read_all(other);
        struct dpf_error e;
        uint64_t row = 0;
        int last = p.count - 1, values = p.count > 1 ? 2 : 0;
        size_t bytes = dpf_tensor_row_bytes(&p.tensor[values]);
        do { /* in pieces of any size */
            CU_ASSERT_FATAL(dpf_source_next(same, &q, 777, &e) == DPF_OK);
            CU_ASSERT(memcmp((char *)p.tensor[values].data + row * bytes,
                             q.tensor[values].data, q.rows * bytes) == 0);
            row += q.rows;
            dpf_batch_release(&q);
        } while (row < p.rows);
        CU_ASSERT(!dpf_tensor_equal(&p.tensor[last], &r.tensor[last]));
        dpf_batch_release(&p);
        dpf_batch_release(&r);
        dpf_source_destroy(&a);
        dpf_source_destroy(&same);
        dpf_source_destroy(&other);
    }
}

/* Who changes the generator on purpose changes these and datasets/SYNTHETIC.md. */
static void bytes_are_those_recorded(void)
{
    static const char *const expected[] = {"xxh128:4ee44ad3066de75aabac0676db48a2a7",
                                           "xxh128:11d360736f629cbf32b1ba0164c6e959",
                                           "xxh128:314aeb94b024705685c9f77a3555d049"};
    for (int part = 0; part < 3; part++) {
        struct dpf_source *s = open_part(1, (enum dpf_synth_wellness_part)part);
        struct dpf_batch b = read_all(s);
        struct dpf_checksum *c = dpf_checksum_new();
        char text[DPF_CHECKSUM_TEXT];
        CU_ASSERT_FATAL(c != NULL);
        for (int i = 0; i < b.count; i++)
            dpf_checksum_update(c, b.tensor[i].data, b.tensor[i].bytes);
        dpf_checksum_text(c, text);
        CU_ASSERT_STRING_EQUAL(text, expected[part]);
        dpf_checksum_destroy(&c);
        dpf_batch_release(&b);
        dpf_source_destroy(&s);
    }
}

/* -------------------------------------------------------------------------- the rule */

/* As datasets/SYNTHETIC.md writes it. */
static double friends_part(int u, int t)
{
    double sum = 0;
    int friends = 0;
    for (int v = 0; v < PEOPLE; v++) {
        int rises = 0, both = 0;
        for (int back = 0; linked[u][v] && back < 4; back++)
            if (y[v][t - back - 1]) {
                rises++;
                both += y[u][t - back];
            }
        sum += linked[u][v] ? (both + 1.) / (rises + 2.) : 0;
        friends += linked[u][v];
    }
    return 10 * (sum / friends - .5);
}

static double own_part(int u, int t)
{
    double d = (double)x[u][t][4] / 20, before = (double)x[u][t - 3][4] / 20;
    double habit = 0, encouraged = 0, heckled = 0;
    for (int s = t - 3; s <= t; s++) {
        habit += (double)x[u][s][1] / 4;
        encouraged += (double)x[u][s][6] / 8 / 4;
        heckled += (double)x[u][s][20] / 8 / 4;
    }
    return 7 * (.5 - d) + .5 * (d - before) + .5 * (habit - .5) +
           .5 * (encouraged - heckled);
}

/* A majority vote in each of these cells, on the records themselves: about what can be
 * known of a rule without the friends. */
enum { TENTHS = 60 };
static int cell_of(int u, int t, double own)
{
    int history = y[u][t] + 2 * y[u][t - 1] + 4 * y[u][t - 2] + 8 * y[u][t - 3];
    int tenth = (int)fmin(fmax(floor(own * 10) + TENTHS / 2, 0), TENTHS - 1);
    return history * TENTHS + tenth;
}

static void the_rule_is_right_95_times_of_100(void)
{
    static int cells[16 * TENTHS][2];
    for (uint64_t seed = 1; seed <= 2; seed++) {
        int right = 0, all = 0, alone = 0;
        memset(cells, 0, sizeof cells);
        read_days(seed);
        read_links(seed);
        for (int u = 0; u < PEOPLE; u++)
            for (int t = 4; t + 1 < TIMES; t++, all++) {
                double own = own_part(u, t);
                right += (own + friends_part(u, t) > 0) == y[u][t + 1];
                cells[cell_of(u, t, own)][y[u][t + 1]]++;
            }
        for (int i = 0; i < 16 * TENTHS; i++)
            alone += cells[i][0] > cells[i][1] ? cells[i][0] : cells[i][1];
        /* five deviations of a binomial with 74,930 draws are 0.004 */
        CU_ASSERT(all == PEOPLE * (TIMES - 5));
        CU_ASSERT(fabs((double)right / all - .95) < .004);
        CU_ASSERT((double)alone / all < .83);
    }
}

const char dpf_suite[] = "wellness";
const struct dpf_test dpf_tests[] = {
    {"the shape is the paper's", the_shape_is_the_papers},
    {"labels are increases of the distance", labels_are_increases},
    {"the seed alone decides", the_seed_alone_decides},
    {"bytes are those recorded", bytes_are_those_recorded},
    {"the rule is right 95 times of 100, less without friends",
     the_rule_is_right_95_times_of_100},
    {NULL, NULL},
};
