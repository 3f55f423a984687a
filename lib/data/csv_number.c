#include "data/csv_number.h"

#include <float.h>
#include <stdint.h>

#include "base/number.h"

#include "base/banned.h"

/* Up to 15 digits and a power of ten up to 10^15 are exact doubles, so their quotient is
 * the correctly rounded value (Clinger 1990). Everything else takes the long way. */
bool dpf_csv_number(const struct dpf_csv_cell *cell, double *value)
{
    static const double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const char *p = cell->text, *end = p + cell->size;
    bool negative = p < end && *p == '-';
    uint64_t digits = 0;
    p += p < end && (*p == '-' || *p == '+');
    const char *start = p;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        digits = digits * 10 + (uint64_t)(*p - '0');
    size_t count = (size_t)(p - start), fraction = 0;
    if (p < end && *p == '.') {
        start = ++p;
        for (; p < end && *p >= '0' && *p <= '9'; p++)
            digits = digits * 10 + (uint64_t)(*p - '0');
        fraction = (size_t)(p - start);
        count += fraction;
    }
    if (p != end || count == 0 || count > 15 || FLT_EVAL_METHOD != 0)
        return dpf_parse_real_n(cell->text, cell->size, value);
    double parsed = (double)digits / power[fraction];
    *value = negative ? -parsed : parsed;
    return true;
}
