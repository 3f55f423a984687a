#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

bool dpf_parse_int(const char *text, int64_t *value)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (*digits < '0' || *digits > '9')
        return false;
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (*end || errno)
        return false;
    *value = parsed;
    return true;
}

bool dpf_parse_uint(const char *text, uint64_t *value)
{
    if (*text < '0' || *text > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long parsed = strtoull(text, &end, 10);
    if (*end || errno)
        return false;
    *value = parsed;
    return true;
}

/* Programs never call setlocale, so strtod reads the C locale's decimal point. */
bool dpf_parse_real(const char *text, double *value)
{
    if (*text == '\0' || strspn(text, "+-.0123456789eE") != strlen(text))
        return false;
    char *end;
    errno = 0;
    double parsed = strtod(text, &end);
    if (end == text || *end || !isfinite(parsed) || (errno == ERANGE && parsed == 0))
        return false;
    *value = parsed;
    return true;
}

bool dpf_parse_real_n(const char *text, size_t size, double *value)
{
    char copy[64];
    if (size == 0 || size >= sizeof copy || memchr(text, '\0', size))
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return dpf_parse_real(copy, value);
}

bool dpf_parse_range(const char *text, double *lo, double *hi)
{
    const char *colon = strchr(text, ':');
    double a, b;
    if (!colon || !dpf_parse_real_n(text, (size_t)(colon - text), &a) ||
        !dpf_parse_real(colon + 1, &b) || !(a < b))
        return false;
    *lo = a;
    *hi = b;
    return true;
}
