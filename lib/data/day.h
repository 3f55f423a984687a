/* Days and people as tables write them, as numbers.
 *
 * A day is read in the one format that somebody declared for its column: 04/05/2016 is
 * two different days on the two sides of an ocean, so nothing is guessed from the text.
 */
#ifndef DPF_DATA_DAY_H
#define DPF_DATA_DAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dpf_day_format {
    DPF_DAY_ISO, /* YYYY-MM-DD */
    DPF_DAY_DMY, /* DD/MM/YYYY, or D/M/YYYY */
    DPF_DAY_MDY, /* MM/DD/YYYY, or M/D/YYYY */
    DPF_DAY_NUMBER,
};
/* As a columns file writes them, ended by NULL: "YYYY-MM-DD". */
extern const char *const dpf_day_formats[];

/* The day as the number of days since 1970-01-01 (Gregorian calendar, years 1 to 9999),
 * or the number itself, within +-10^12. NULL if all is well, else what the text is
 * instead: "not a day in this format", or a date that the calendar lacks. */
const char *dpf_day_parse(enum dpf_day_format format, const char *text, size_t size,
                          int64_t *day);

/* A person's number. A whole number from 0 to 2^62 - 1 without leading zeros stands for
 * itself; all else is text, and its number is 2^62 and more, from BLAKE2b: the same text
 * has the same number in every table, so that links and rows agree without a list of
 * names. It hides nothing (names can be tried), and has no use but to join rows. */
int64_t dpf_person_number(const char *text, size_t size);

#endif
