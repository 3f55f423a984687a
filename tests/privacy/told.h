/* Numbers in assertions: CUnit shows the condition, these show what came and what was
 * due. */
#ifndef DPF_TESTS_TOLD_H
#define DPF_TESTS_TOLD_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "harness.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static inline bool told(bool good, const char *what, double got, double due)
{
    if (!good)
        printf("    %s: %.12g, due %.12g\n", what, got, due);
    return good;
}

#define TOLD(condition, what, value, right)                                              \
    do {                                                                                 \
        double got_ = value, due_ = right;                                               \
        CU_ASSERT(told(condition, what, got_, due_));                                    \
    } while (0)
#define BELOW(what, value, bound) TOLD(got_ <= due_, what, value, bound)
#define ABOVE(what, value, bound) TOLD(got_ >= due_, what, value, bound)
#define NEAR(what, value, right, relative)                                               \
    TOLD(fabs(got_ - due_) <= (relative)*fabs(due_), what, value, right)
#define SAME(what, value, right) NEAR(what, value, right, 1e-9)

#endif
