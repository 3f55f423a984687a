#include "privacy/lot_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "privacy/grid.h"

#include "base/banned.h"

enum { STEPS_LOG2 = 36 }; /* steps in a clip norm */

/* ----------------------------------------------------------------------------- parts */

/* Parts of 80 are far enough below the most that few have to be cut again. Small lots are
 * cut further, so that several threads find work, but not below 32: adding a part to the
 * integers costs as much as a few records. */
uint64_t dpf_lot_parts_planned(int64_t expected)
{
    enum { USUAL = 80, LEAST = 32, WORKERS = 8 };
    int64_t by_size = (expected + USUAL - 1) / USUAL, by_work = expected / LEAST;
    by_work = by_work < WORKERS ? by_work : WORKERS;
    int64_t planned = by_size > by_work ? by_size : by_work;
    return planned < 1 ? 1 : (uint64_t)planned;
}

/* key times planned / 2^64: the whole part says which child of the root, the fraction
 * (the product modulo 2^64) the position in it. Both grow with the key. planned < 2^32.
 */
static uint64_t child_of(uint64_t key, uint64_t planned)
{
    uint64_t low = (key & 0xffffffff) * planned;
    return ((key >> 32) * planned + (low >> 32)) >> 32;
}

static bool add_part(struct dpf_lot_parts *p, size_t from, size_t count)
{
    if (count == 0)
        return true;
    if (!dpf_grow(&p->list, &p->capacity, p->count + 1, sizeof *p->list))
        return false;
    p->list[p->count++] =
        (struct dpf_lot_part){(int64_t)from, (int64_t)count, count > DPF_LOT_PART_MOST};
    return true;
}

/* Where the first record from `from` on stands whose position is at least `at`. */
static size_t first_at(const struct dpf_lot_parts *p, size_t from, size_t to, uint64_t at)
{
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (p->sorted[middle].position < at)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* A node of the tree: the records in [from, to), whose positions lie in the 2^log2 from
 * `start` on. A leaf, or cut in two. */
static bool cut_node(struct dpf_lot_parts *p, size_t from, size_t to, uint64_t start,
                     int log2)
{
    if (to - from <= DPF_LOT_PART_MOST || log2 == 0)
        return add_part(p, from, to - from);
    uint64_t half = start + ((uint64_t)1 << (log2 - 1));
    size_t middle = first_at(p, from, to, half);
    return cut_node(p, from, middle, start, log2 - 1) &&
           cut_node(p, middle, to, half, log2 - 1);
}

static int by_key(const void *a, const void *b)
{
    const struct dpf_lot_place *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static int by_size(const void *a, const void *b)
{
    const struct dpf_lot_part *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                                : (x->from > y->from) - (x->from < y->from);
}

enum dpf_status dpf_lot_parts_cut(struct dpf_lot_parts *p, const uint64_t *keys,
                                  int64_t count, uint64_t planned, struct dpf_error *e)
{
    size_t all = (size_t)count, from = 0;
    p->count = 0;
    if (!dpf_grow(&p->sorted, &p->sorted_capacity, all + 1, sizeof *p->sorted))
        return dpf_fail_memory(e);
    for (size_t i = 0; i < all; i++)
        p->sorted[i] = (struct dpf_lot_place){.key = keys[i], .place = (uint32_t)i};
    qsort(p->sorted, all, sizeof *p->sorted, by_key);
    while (from < all) {
        uint64_t child = child_of(p->sorted[from].key, planned);
        size_t to = from;
        for (; to < all && child_of(p->sorted[to].key, planned) == child; to++)
            p->sorted[to].position = p->sorted[to].key * planned;
        if (!cut_node(p, from, to, 0, 64))
            return dpf_fail_memory(e);
        from = to;
    }
    if (p->count > 1)
        qsort(p->list, p->count, sizeof *p->list, by_size);
    return DPF_OK;
}

void dpf_lot_parts_release(struct dpf_lot_parts *p)
{
    free(p->list);
    free(p->sorted);
    *p = (struct dpf_lot_parts){0};
}

/* ------------------------------------------------------------------------------ sums */

double dpf_lot_sum_step(double clip_l2)
{
    return ldexp(dpf_grid_floor_power(clip_l2), -STEPS_LOG2);
}

double dpf_lot_sum_margin(size_t values)
{
    const double u = 0x1p-24, most = DPF_LOT_PART_MOST;
    double sums = 2 * (most + 2.5) * (most + 2.5) / sqrt(3) * u / (1 - (most + 2) * u);
    double grid = (most + 2) / 2 * ldexp(1, -STEPS_LOG2) * sqrt((double)values);
    return (sums + grid) * (1 + 0x1p-10) + 0x1p-20;
}
