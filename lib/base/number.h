/* Numbers parsed strictly: the whole string, in range, no locale, no silent zero. */
#ifndef DPF_BASE_NUMBER_H
#define DPF_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each returns false and leaves *value alone unless all of `text` is the number. Reals
 * may be decimal or exponent form and must be finite; no hexadecimal, inf or nan. */
bool dpf_parse_int(const char *text, int64_t *value);
bool dpf_parse_uint(const char *text, uint64_t *value);
bool dpf_parse_real(const char *text, double *value);
/* The same over a piece of text that is not NUL-terminated. */
bool dpf_parse_real_n(const char *text, size_t size, double *value);
/* "LO:HI" with LO < HI. */
bool dpf_parse_range(const char *text, double *lo, double *hi);

#endif
