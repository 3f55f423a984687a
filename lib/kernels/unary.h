/* Functions of one value: a row for each, with what it is and its slope, in the words of
 * its definition. The reference is made of these rows, and a faster backend takes them as
 * they are for what it has no better code for: so a function is added here alone.
 *
 * ROW(name, value, slope): expressions of doubles; value of x, slope of x and y = f(x).
 * NaN goes through. */
#ifndef DPF_KERNELS_UNARY_H
#define DPF_KERNELS_UNARY_H

#define DPF_UNARY_LIST(ROW)                                                              \
    ROW(RELU, (x < 0) ? 0 : x, (y > 0) ? 1 : 0)                                          \
    ROW(LEAKY_RELU, (x < 0) ? 0.01 * x : x, (y > 0) ? 1 : 0.01)                          \
    ROW(SIGMOID, 1 / (1 + exp(-x)), y * (1 - y))                                         \
    ROW(TANH, tanh(x), 1 - y * y)                                                        \
    ROW(CAP, (x < 0) ? 0 : (x > 1) ? 1 : x, (y > 0 && y < 1) ? 1 : 0) /* cut to [0,1] */

#define DPF_UNARY_NAME(name, value, slope) DPF_##name,
enum dpf_unary { DPF_UNARY_LIST(DPF_UNARY_NAME) };
#undef DPF_UNARY_NAME
#define DPF_UNARY_ONE(name, value, slope) +1
enum { DPF_UNARY_COUNT = 0 DPF_UNARY_LIST(DPF_UNARY_ONE) };
#undef DPF_UNARY_ONE

#endif
