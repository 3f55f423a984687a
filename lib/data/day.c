#include "data/day.h"

#include <string.h>

#include <sodium.h>

#include "base/number.h"

#include "base/banned.h"

const char *const dpf_day_formats[] = {[DPF_DAY_ISO] = "YYYY-MM-DD",
                                       [DPF_DAY_DMY] = "DD/MM/YYYY",
                                       [DPF_DAY_MDY] = "MM/DD/YYYY",
                                       [DPF_DAY_NUMBER] = "number",
                                       NULL};

static const char not_in_format[] = "is not a day in the declared format";
static const char not_in_calendar[] = "is a day that the calendar does not have";

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_of(int month, int year)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Days from 1970-01-01. */
static int64_t number_of(int year, int month, int day)
{
    int past = year - 1;
    int64_t days = 365 * (int64_t)past + past / 4 - past / 100 + past / 400 - 719162;
    for (int m = 1; m < month; m++)
        days += days_of(m, year);
    return days + day - 1;
}

/* A run of digits, `least` to `most` of them. */
static bool take_digits(const char **text, const char *end, int least, int most, int *out)
{
    int count = 0;
    *out = 0;
    for (; *text < end && **text >= '0' && **text <= '9' && count < most; count++)
        *out = *out * 10 + (*(*text)++ - '0');
    return count >= least;
}

static bool take_mark(const char **text, const char *end, char mark)
{
    return *text < end && *(*text)++ == mark;
}

static const char *parse_number(const char *text, size_t size, int64_t *day)
{
    char copy[32];
    static const int64_t most = 1000000000000;
    if (size >= sizeof copy || memchr(text, '\0', size))
        return not_in_format;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return dpf_parse_int(copy, day) && *day >= -most && *day <= most ? NULL
                                                                     : not_in_format;
}

const char *dpf_day_parse(enum dpf_day_format format, const char *text, size_t size,
                          int64_t *day)
{
    const char *end = text + size;
    int parts[3], year, month, date;
    if (format == DPF_DAY_NUMBER)
        return parse_number(text, size, day);
    bool iso = format == DPF_DAY_ISO;
    char mark = iso ? '-' : '/';
    bool good = take_digits(&text, end, iso ? 4 : 1, iso ? 4 : 2, &parts[0]) &&
                take_mark(&text, end, mark) &&
                take_digits(&text, end, iso ? 2 : 1, 2, &parts[1]) &&
                take_mark(&text, end, mark) &&
                take_digits(&text, end, iso ? 2 : 4, iso ? 2 : 4, &parts[2]);
    if (!good || text != end)
        return not_in_format;
    year = iso ? parts[0] : parts[2];
    month = format == DPF_DAY_MDY ? parts[0] : parts[1];
    date = iso ? parts[2] : format == DPF_DAY_MDY ? parts[1] : parts[0];
    if (year < 1 || month < 1 || month > 12 || date < 1 || date > days_of(month, year))
        return not_in_calendar;
    *day = number_of(year, month, date);
    return NULL;
}

static bool is_plain_number(const char *text, size_t size, int64_t *number)
{
    static const int64_t most = (INT64_C(1) << 62) - 1;
    *number = 0;
    if (size == 0 || size > 19 || (size > 1 && *text == '0'))
        return false;
    for (size_t i = 0; i < size; i++) {
        int digit = text[i] - '0';
        if (digit < 0 || digit > 9 || *number > (most - digit) / 10)
            return false;
        *number = *number * 10 + digit;
    }
    return true;
}

int64_t dpf_person_number(const char *text, size_t size)
{
    unsigned char digest[crypto_generichash_BYTES];
    int64_t number;
    if (is_plain_number(text, size, &number))
        return number;
    crypto_generichash(digest, sizeof digest, (const unsigned char *)text, size, NULL, 0);
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | digest[i];
    return (int64_t)((bits >> 2) | UINT64_C(1) << 62);
}
