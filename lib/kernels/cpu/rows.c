/* Products of a dense layer, row by row: what an example gets out of them is one fixed
 * expression of its own row, whatever stands beside it, wherever it stands and however
 * many rows there are (kernels.h promises it, privacy/lot_sum.h needs it). Libraries take
 * other paths for other sizes and for the last rows, which changes last bits; so these
 * are ours. Everything is intrinsics or plain loops, and the Makefile keeps the compiler
 * from reordering sums here. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LONG = 256 }; /* rows from here on are multiplied along, shorter ones across */

struct products {
    void (*panel)(int64_t n, int64_t columns, int64_t k, const float *a, const float *b,
                  int64_t b_step, const float *start, float *c);
    void (*dot)(int64_t n, int64_t outs, int64_t k, const float *a, const float *b,
                const float *start, float *c);
};

/* ---------------------------------------------------------------------- any machine */

static void plain_panel(int64_t n, int64_t columns, int64_t k, const float *a,
                        const float *b, int64_t b_step, const float *start, float *c)
{
    for (int64_t r = 0; r < n; r++, c += columns) {
        for (int64_t j = 0; j < columns; j++)
            c[j] = start ? start[j] : 0;
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j < columns; j++)
                c[j] += a[r * k + i] * b[i * b_step + j];
    }
}

static void plain_dot(int64_t n, int64_t outs, int64_t k, const float *a, const float *b,
                      const float *start, float *c)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t o = 0; o < outs; o++) {
            float sum = start ? start[o] : 0;
            for (int64_t i = 0; i < k; i++)
                sum += a[r * k + i] * b[o * k + i];
            c[r * outs + o] = sum;
        }
}

/* --------------------------------------------------------------------- vector units */

#if defined(__x86_64__)

#define TARGET     __attribute__((target("avx512f,avx512vl,avx512dq,fma")))
#define ROWS(name) name##_avx512
enum { LANES_512 = 16 };
#define LANES                    LANES_512
#define TILE_ROWS                8
#define TILE_WIDE                3
#define DOT_ROWS                 4
#define DOT_OUTS                 4
#define V                        __m512
#define V_MASK                   __mmask16
#define V_SOME(count)            ((__mmask16)((1u << (count)) - 1))
#define V_ZERO()                 _mm512_setzero_ps()
#define V_ALL(x)                 _mm512_set1_ps(x)
#define V_LOAD(p)                _mm512_loadu_ps(p)
#define V_LOAD_SOME(p, mask)     _mm512_maskz_loadu_ps(mask, p)
#define V_STORE(p, v)            _mm512_storeu_ps(p, v)
#define V_STORE_SOME(p, mask, v) _mm512_mask_storeu_ps(p, mask, v)
#define V_FMA(a, b, c)           _mm512_fmadd_ps(a, b, c)
#define V_SUM(v)                 _mm512_reduce_add_ps(v)
#include "kernels/cpu/rows.inc"
#undef ROWS
#undef LANES
#undef TILE_ROWS
#undef TILE_WIDE
#undef DOT_ROWS
#undef DOT_OUTS
#undef V
#undef V_MASK
#undef V_SOME
#undef V_ZERO
#undef V_ALL
#undef V_LOAD
#undef V_LOAD_SOME
#undef V_STORE
#undef V_STORE_SOME
#undef V_FMA
#undef V_SUM
#undef TARGET

#define TARGET __attribute__((target("avx2,fma")))

/* The first `count` of 8 lanes. */
static inline TARGET __m256i first_lanes(int64_t count)
{
    const __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), numbers);
}

static inline TARGET float sum_lanes(__m256 v)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#define ROWS(name)               name##_avx2
#define LANES                    8
#define TILE_ROWS                4
#define TILE_WIDE                3
#define DOT_ROWS                 2
#define DOT_OUTS                 4
#define V                        __m256
#define V_MASK                   __m256i
#define V_SOME(count)            first_lanes(count)
#define V_ZERO()                 _mm256_setzero_ps()
#define V_ALL(x)                 _mm256_set1_ps(x)
#define V_LOAD(p)                _mm256_loadu_ps(p)
#define V_LOAD_SOME(p, mask)     _mm256_maskload_ps(p, mask)
#define V_STORE(p, v)            _mm256_storeu_ps(p, v)
#define V_STORE_SOME(p, mask, v) _mm256_maskstore_ps(p, mask, v)
#define V_FMA(a, b, c)           _mm256_fmadd_ps(a, b, c)
#define V_SUM(v)                 sum_lanes(v)
#include "kernels/cpu/rows.inc"

#endif

#include "base/banned.h"

static const struct products *products(void)
{
    static const struct products plain = {plain_panel, plain_dot};
#if defined(__x86_64__)
    static const struct products avx512 = {panel_avx512, dot_avx512};
    static const struct products avx2 = {panel_avx2, dot_avx2};
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return &avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &avx2;
#endif
    return &plain;
}

/* --------------------------------------------------------------------------- layers */

/* w: [out, in] to [in, out], in tiles. */
static void turn(int64_t in, int64_t out, const float *w, float *turned)
{
    enum { TILE = 16 };
    for (int64_t o = 0; o < out; o += TILE)
        for (int64_t i = 0; i < in; i++)
            for (int64_t q = o; q < out && q < o + TILE; q++)
                turned[i * out + q] = w[q * in + i];
}

static void cpu_dense_forward(CONTEXT, int64_t n, int64_t in, int64_t out, const float *x,
                              const float *w, const float *b, float *y)
{
    const struct products *p = products();
    if (in >= LONG) {
        p->dot(n, out, in, x, w, b, y);
        return;
    }
    float *turned =
        dpf_cpu_scratch(context, DPF_CPU_WEIGHTS, (size_t)(in * out) * sizeof *turned);
    if (!turned)
        return;
    turn(in, out, w, turned);
    p->panel(n, out, in, x, turned, out, b, y);
}

static void cpu_dense_backward_data(CONTEXT, int64_t n, int64_t in, int64_t out,
                                    const float *dy, const float *w, float *dx)
{
    products()->panel(n, in, out, dy, w, in, NULL, dx);
}

void dpf_cpu_add_rows(struct dpf_kernels *table)
{
    table->dense_forward = cpu_dense_forward;
    table->dense_backward_data = cpu_dense_backward_data;
}
