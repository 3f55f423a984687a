/* Data sets made from a seed, for a machine that has no data set and for tests that need
 * the same one everywhere: handwritten-looking digits and
 * glyphs, pictures of leaves, a census-like regression table and volumes like
 * brain-tumour MRI. They describe nobody (datasets/SYNTHETIC.md says what is behind
 * them).
 *
 * Record i is a function of the seed and i alone: not of the count, the size of a batch
 * or the order of reading. `first` is the index of the first record, so a training set of
 * records 0..59999 and a test set from 60000 on never share one.
 *
 * The people of synth-wellness are the exception: each depends on the others' past, so
 * their number is fixed.
 *
 * All but the census use only + - * / and sqrt on doubles, which IEEE 754 rounds exactly,
 * so their bytes are the same on every machine. The census draws logarithms, and rounds
 * its values to whole numbers, which hides the last bit of a machine's libm. */
#ifndef DPF_DATA_SYNTH_H
#define DPF_DATA_SYNTH_H

#include <stdint.h>

#include "base/status.h"
#include "data/source.h"

enum {
    DPF_SYNTH_DIGIT_SIDE = 28,
    DPF_SYNTH_CENSUS_FEATURES = 12,
    DPF_SYNTH_MIN_SIDE = 16, /* of a volume */
    DPF_SYNTH_MAX_SIDE = 128,
    DPF_SYNTH_MAX_CHANNELS = 4,
    DPF_SYNTH_WELLNESS_PEOPLE = 254,
    DPF_SYNTH_WELLNESS_TIMES = 300,
    DPF_SYNTH_WELLNESS_WEEKS = 38,
    DPF_SYNTH_WELLNESS_LINKS = 1383,
    DPF_SYNTH_WELLNESS_FRIENDS = 16, /* of one person, at most */
    DPF_SYNTH_WELLNESS_ATTRIBUTES = 30,
};

/* Each opens a source of `count` records and gives it to the caller, who ends it with
 * dpf_source_destroy(). The header knows the number of records and calls them public.
 * DPF_USAGE if first + count exceeds 64 bits; DPF_SYSTEM when out of memory. */

/* x: u8 [28,28] in [0,255], white on black; y: u8, 10 classes. */
enum dpf_status dpf_synth_digits_open(uint64_t seed, uint64_t first, uint64_t count,
                                      struct dpf_source **take, struct dpf_error *e);
/* The same pictures of 200 classes: four in ten are digits, written more wildly, the
 * others one of 190 glyphs of random strokes. A network that tells them apart has learned
 * to see strokes, not only digits. */
enum dpf_status dpf_synth_glyphs_open(uint64_t seed, uint64_t first, uint64_t count,
                                      struct dpf_source **take, struct dpf_error *e);
/* x: u8 [3,32,32] in [0,255], pictures of overlapping leaves; y: u8, 8 classes: large or
 * small leaves, round or angular, plain or striped. Edges, occlusion and shading as in
 * photographs, of nothing in particular. */
enum dpf_status dpf_synth_leaves_open(uint64_t seed, uint64_t first, uint64_t count,
                                      struct dpf_source **take, struct dpf_error *e);
/* x: f32 [12], named features with a pair of bounds each; y: f32 scalar, the income, in
 * [0,400000]. */
enum dpf_status dpf_synth_census_open(uint64_t seed, uint64_t first, uint64_t count,
                                      struct dpf_source **take, struct dpf_error *e);
/* x: f32 [channels,side,side,side] in [0,1], the channels being FLAIR, T1, T1 with
 * contrast agent, T2; mask: u8 [side,side,side], 4 classes: 0 background, 1 edema,
 * 2 non-enhancing, 3 enhancing core. With fewer channels, the ones that remain and the
 * mask are unchanged. DPF_USAGE unless channels is 1..4 and side 16..128. */
enum dpf_status dpf_synth_tumour_open(uint64_t seed, uint64_t first, uint64_t count,
                                      uint64_t channels, uint64_t side,
                                      struct dpf_source **take, struct dpf_error *e);

/* People of a health social network, daily or by weeks, or the links between friends.
 * DAILY: person, time: i64; x: f32 [30] with names and bounds; y: u8, 2 classes: 1 if the
 * distance is larger than at the time before. The rule: from time 5 on, y at t + 1 is 1
 * with probability ACCURACY if
 *     LEVEL (1/2 - d_t) + TREND (d_t - d_{t-3}) + HABIT (h - 1/2) + WRITTEN (e - k)
 *         + FRIENDSHIP (i_t - 1/2)
 * is above 0, else 1 - ACCURACY: d is the distance, h, e and k the means of
 * exercising_days, inbox_encouragement and inbox_heckling over times t-3..t, all scaled
 * into [0,1] by their bounds, and i_t the influence of all friends (data/influence.h,
 * N = 4). So whoever knows the rule is right with probability ACCURACY, and nobody can be
 * right more often. WEEKLY: the means of weeks of 7 or 8 times, y of the mean distance.
 * LINKS: link: i64 [2], the lower number first. */
enum dpf_synth_wellness_part {
    DPF_SYNTH_WELLNESS_DAILY,
    DPF_SYNTH_WELLNESS_WEEKLY,
    DPF_SYNTH_WELLNESS_FRIEND_LINKS,
};
#define DPF_SYNTH_WELLNESS_ACCURACY   .95
#define DPF_SYNTH_WELLNESS_LEVEL      7.
#define DPF_SYNTH_WELLNESS_TREND      .5
#define DPF_SYNTH_WELLNESS_HABIT      .5
#define DPF_SYNTH_WELLNESS_WRITTEN    .5
#define DPF_SYNTH_WELLNESS_FRIENDSHIP 10.
enum dpf_status dpf_synth_wellness_open(uint64_t seed, enum dpf_synth_wellness_part part,
                                        struct dpf_source **take, struct dpf_error *e);

#endif
