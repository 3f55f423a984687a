/* The cut of a lot into parts, and the integers that they are added to: each step of the
 * claim in privacy/lot_sum.h by brute force. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "kernels/host.h"
#include "privacy/grid.h"
#include "privacy/lot_sum.h"
#include "random/seeded.h"

enum { MOST = 3000 };

static struct dpf_seeded source;

/* Keys of several kinds: uniform, in clusters, few different ones, all the same. */
static void draw_keys(uint64_t *keys, int64_t count, int kind)
{
    for (int64_t i = 0; i < count; i++) {
        uint64_t key = dpf_seeded_u64(&source);
        keys[i] = kind == 0   ? key
                  : kind == 1 ? (key & 1 ? key >> 40 : ~(key >> 50))
                  : kind == 2 ? (key % 7) << 61
                              : 42;
    }
}

/* A part as the sorted keys of its records, so that it can be found in another lot. */
static bool same_part(const struct dpf_lot_parts *a, const struct dpf_lot_part *x,
                      const struct dpf_lot_parts *b, const struct dpf_lot_part *y)
{
    bool same = x->count == y->count && x->single == y->single;
    for (int64_t i = 0; same && i < x->count; i++)
        same = a->sorted[x->from + i].key == b->sorted[y->from + i].key;
    return same;
}

/* Records of the parts of a that are no parts of b. */
static int64_t records_apart(const struct dpf_lot_parts *a, const struct dpf_lot_parts *b)
{
    int64_t sum = 0;
    for (size_t i = 0; i < a->count; i++) {
        bool found = false;
        for (size_t j = 0; !found && j < b->count; j++)
            found = same_part(a, &a->list[i], b, &b->list[j]);
        sum += found ? 0 : a->list[i].count;
    }
    return sum;
}

/* Every record is in one part; parts have at most M records or are `single`. */
static void check_parts(const struct dpf_lot_parts *p, int64_t count)
{
    static bool seen[MOST];
    int64_t sum = 0, twice = 0, large = 0, disordered = 0;
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < p->count; i++) {
        const struct dpf_lot_part *x = &p->list[i];
        large += x->count > DPF_LOT_PART_MOST && !x->single;
        disordered += i > 0 && x->count > p->list[i - 1].count;
        sum += x->count;
        for (int64_t j = 0; j < x->count; j++) {
            uint32_t place = p->sorted[x->from + j].place;
            twice += seen[place];
            seen[place] = true;
        }
    }
    CU_ASSERT(sum == count && twice == 0 && large == 0 && disordered == 0);
}

/* One record more or less changes parts that have at most M and M + 1 records together,
 * or one `single` part. */
static void test_one_record(void)
{
    static uint64_t keys[MOST], less[MOST];
    static const int64_t counts[] = {1, 2, 111, 112, 113, 114, 225, 500, 1000, 2999};
    struct dpf_lot_parts a = {0}, b = {0};
    int64_t worst = 0;
    dpf_seeded_init(&source, "test lot sum", 1, 0);
    for (int trial = 0; trial < 2000; trial++) {
        int64_t count = counts[dpf_seeded_below(&source, 10)];
        uint64_t planned = dpf_seeded_below(&source, 3)
                               ? 1 + dpf_seeded_below(&source, 40)
                               : dpf_lot_parts_planned(count);
        int kind = (int)dpf_seeded_below(&source, 4);
        draw_keys(keys, count, kind);
        int64_t out = (int64_t)dpf_seeded_below(&source, (uint64_t)count);
        memcpy(less, keys, (size_t)out * sizeof *keys);
        memcpy(less + out, keys + out + 1, (size_t)(count - 1 - out) * sizeof *keys);
        CU_ASSERT_FATAL(dpf_lot_parts_cut(&a, less, count - 1, planned, NULL) == DPF_OK);
        CU_ASSERT_FATAL(dpf_lot_parts_cut(&b, keys, count, planned, NULL) == DPF_OK);
        check_parts(&a, count - 1);
        check_parts(&b, count);
        int64_t before = records_apart(&a, &b), after = records_apart(&b, &a);
        if (kind < 2) { /* no leaf is `single` then, but for a chance of 2^-64 */
            CU_ASSERT(before <= DPF_LOT_PART_MOST && after == before + 1);
            worst = before > worst ? before : worst;
        } else { /* parts with equal keys look alike: at most those of one leaf differ */
            CU_ASSERT(after <= before + 1 || before == 0);
        }
    }
    CU_ASSERT(worst == DPF_LOT_PART_MOST); /* the case that cuts a leaf was among them */
    dpf_lot_parts_release(&a);
    dpf_lot_parts_release(&b);
}

/* The order in which records come does not matter. */
static void test_order(void)
{
    static uint64_t keys[MOST], other[MOST];
    struct dpf_lot_parts a = {0}, b = {0};
    dpf_seeded_init(&source, "test order", 1, 0);
    draw_keys(keys, MOST, 0);
    for (int i = 0; i < MOST; i++)
        other[i] = keys[MOST - 1 - i];
    CU_ASSERT_FATAL(dpf_lot_parts_cut(&a, keys, MOST, 7, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_lot_parts_cut(&b, other, MOST, 7, NULL) == DPF_OK);
    CU_ASSERT(records_apart(&a, &b) == 0 && a.count == b.count && a.count >= 27);
    CU_ASSERT(dpf_lot_parts_cut(&a, keys, 0, 7, NULL) == DPF_OK && a.count == 0);
    dpf_lot_parts_release(&a);
    dpf_lot_parts_release(&b);
}

/* A sum on the grid is the nearest integer, and the part is cleared. */
static void test_integers(void)
{
    enum { COUNT = 1003 };
    float part[COUNT], copy[COUNT];
    int64_t sums[COUNT], before[COUNT];
    dpf_seeded_init(&source, "test integers", 1, 0);
    for (int clip = -41; clip <= 41; clip += 2) {
        double step = dpf_lot_sum_step(ldexp(1.5, clip));
        int wrong = 0;
        CU_ASSERT(step == ldexp(1, clip - 36));
        for (int i = 0; i < COUNT; i++) {
            part[i] = copy[i] = ldexpf((float)dpf_seeded_normal(&source),
                                       clip + 5 - (int)dpf_seeded_below(&source, 50));
            sums[i] = before[i] = (int64_t)dpf_seeded_u64(&source) >> 3;
        }
        part[7] = copy[7] = NAN; /* cannot be, and must not harm */
        dpf_host_grid_add(NULL, step, COUNT, part, sums);
        for (int i = 0; i < COUNT; i++) {
            int64_t want = i == 7 ? 0 : llrint((double)copy[i] / step);
            wrong += part[i] != 0 || sums[i] - before[i] != want;
        }
        CU_ASSERT(wrong == 0);
    }
    float huge[2] = {INFINITY, -INFINITY};
    int64_t bounded[2] = {0};
    dpf_host_grid_add(NULL, 0x1p-36, 2, huge, bounded);
    CU_ASSERT(bounded[0] == (int64_t)1 << 50 && bounded[1] == -((int64_t)1 << 50));
}

/* Coarser by at most half a step. */
static void test_coarsen(void)
{
    dpf_seeded_init(&source, "test coarsen", 1, 0);
    int wrong = 0;
    for (int i = 0; i < 100000; i++) {
        int shift = (int)dpf_seeded_below(&source, 40);
        int64_t value = (int64_t)dpf_seeded_u64(&source) >> (2 + shift % 20);
        long double exact = ldexpl((long double)value, -shift);
        wrong += fabsl((long double)dpf_grid_coarsen(value, shift) - exact) > 0.5L;
    }
    CU_ASSERT(wrong == 0);
    CU_ASSERT(dpf_grid_coarsen(5, 0) == 5 && dpf_grid_coarsen(-3, 1) == -1);
    CU_ASSERT(dpf_grid_coarsen((int64_t)1 << 60, 63) == 0);
}

/* The worst order of additions that there is, with the worst numbers that a search found:
 * what the margin allows for both sides is not exceeded by one of them. */
static void test_margin(void)
{
    double largest = 0;
    for (int try = 0; try < 20000; try++) {
        float value = 1 - (float)try * 0x1p-15f / 3, sum = 0;
        for (int i = 0; i < DPF_LOT_PART_MOST; i++)
            sum += value;
        double error = fabs((double)sum - (double)value * DPF_LOT_PART_MOST);
        largest = fmax(largest, error / (double)value);
    }
    CU_ASSERT(largest > 1e-5 && 2 * largest < dpf_lot_sum_margin(1));
    CU_ASSERT(dpf_lot_sum_margin(1) < 1e-3 && dpf_lot_sum_margin(1000000000) < 1e-3);
}

const char dpf_suite[] = "lot sum";
const struct dpf_test dpf_tests[] = {
    {"one record touches one part", test_one_record},
    {"the order of records does not matter", test_order},
    {"sums on the grid", test_integers},
    {"from one grid to a coarser one", test_coarsen},
    {"the margin holds for equal numbers, one after the other", test_margin},
    {0},
};
