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

#endif
