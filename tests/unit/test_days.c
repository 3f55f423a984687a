/* Days and people in tables: the calendar, the declared format and no other, and columns
 * files that make keys of them. */
#include "data/day.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "data/csv.h"
#include "harness.h"

#include "base/banned.h"

static bool is_day(enum dpf_day_format f, const char *text, int64_t want)
{
    int64_t day = -1;
    const char *fault = dpf_day_parse(f, text, strlen(text), &day);
    return !fault && day == want;
}

static bool is_fault(enum dpf_day_format f, const char *text, const char *pattern)
{
    int64_t day;
    const char *fault = dpf_day_parse(f, text, strlen(text), &day);
    return fault && strstr(fault, pattern) != NULL;
}

static void the_calendar(void)
{
    CU_ASSERT(is_day(DPF_DAY_ISO, "1970-01-01", 0));
    CU_ASSERT(is_day(DPF_DAY_ISO, "1969-12-31", -1));
    CU_ASSERT(is_day(DPF_DAY_ISO, "2000-02-29", 11016));
    CU_ASSERT(is_day(DPF_DAY_ISO, "0001-01-01", -719162));
    CU_ASSERT(is_day(DPF_DAY_DMY, "29/02/2016", 16860));
    CU_ASSERT(is_day(DPF_DAY_MDY, "2/29/2016", 16860));
    static const char *const missing[] = {"31/02/2016", "29/02/2015", "29/02/1900",
                                          "31/04/2016", "0/1/2016",   "1/0/2016",
                                          "1/13/2016",  "32/1/2016",  "1/1/0000"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        CU_ASSERT(is_fault(DPF_DAY_DMY, missing[i], "calendar does not have"));
}

/* Every day of five centuries against the C library's. */
static void days_follow_each_other(void)
{
    int bad = 0;
    for (int64_t day = -100000; day < 100000; day++) {
        time_t seconds = (time_t)(day * 86400);
        struct tm tm;
        char text[32];
        gmtime_r(&seconds, &tm);
        snprintf(text, sizeof text, "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1,
                 tm.tm_mday);
        bad += !is_day(DPF_DAY_ISO, text, day);
        snprintf(text, sizeof text, "%d/%d/%04d", tm.tm_mon + 1, tm.tm_mday,
                 tm.tm_year + 1900);
        bad += !is_day(DPF_DAY_MDY, text, day);
    }
    CU_ASSERT_EQUAL(bad, 0);
}

static void other_formats_are_refused(void)
{
    static const char *const texts[] = {
        "",           "2016",         "2016-4-1",   "16-04-01",    "2016-04-01 ",
        "2016/04/01", "01/04/2016",   "2016-04-1x", "2016-04-011", "+016-04-01",
        "2016-04",    "2016-04-01T0", "20160401",   "-2016-04-01", "2016-04-0\xd9\xa1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CU_ASSERT(is_fault(DPF_DAY_ISO, texts[i], "declared format"));
    static const char *const slashes[] = {"2016-04-01",     "1/4/16",  "001/4/2016",
                                          "1/4/2016 12:00", "1//2016", "1/4/",
                                          "/4/2016",        "1.4.2016"};
    for (size_t i = 0; i < sizeof slashes / sizeof *slashes; i++)
        CU_ASSERT(is_fault(DPF_DAY_DMY, slashes[i], "declared format"));
    CU_ASSERT(is_fault(DPF_DAY_DMY, "4/13/2016", "calendar")); /* the other order */
    CU_ASSERT(is_day(DPF_DAY_NUMBER, "-12", -12) && is_day(DPF_DAY_NUMBER, "0", 0));
    static const char *const numbers[] = {
        "",          "1.5", "1e3", "x", "9999999999999999999999999", "1000000000001",
        "2016-04-01"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        CU_ASSERT(is_fault(DPF_DAY_NUMBER, numbers[i], "declared format"));
    int64_t day; /* not ended by NUL */
    CU_ASSERT(dpf_day_parse(DPF_DAY_ISO, "2016-04-01x", 10, &day) == NULL);
    CU_ASSERT(dpf_day_parse(DPF_DAY_NUMBER,
                            "1\0"
                            "2",
                            3, &day) != NULL);
}

static void people_have_one_number_each(void)
{
    static const char *const texts[] = {"anna",
                                        "Anna",
                                        "07",
                                        "-7",
                                        "7.0",
                                        "4611686018427387904",
                                        "99999999999999999999",
                                        " ",
                                        "",
                                        "anna1"};
    enum { COUNT = sizeof texts / sizeof *texts };
    CU_ASSERT(dpf_person_number("7", 1) == 7 && dpf_person_number("0", 1) == 0);
    CU_ASSERT(dpf_person_number("4611686018427387903", 19) == (INT64_C(1) << 62) - 1);
    for (size_t i = 0; i < COUNT; i++) {
        int64_t a = dpf_person_number(texts[i], strlen(texts[i]));
        CU_ASSERT(a >= INT64_C(1) << 62);
        for (size_t k = 0; k < COUNT; k++)
            CU_ASSERT((a == dpf_person_number(texts[k], strlen(texts[k]))) == (i == k));
    }
}

/* ------------------------------------------------------------------------------ tables
 */

static enum dpf_status read_table(const char *columns, const char *table,
                                  struct dpf_batch *b, struct dpf_header *h,
                                  struct dpf_error *e)
{
    struct dpf_columns c;
    struct dpf_bytes *bytes;
    struct dpf_source *s = NULL;
    CU_ASSERT_FATAL(dpf_columns_parse(columns, strlen(columns), "t", &c, e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_bytes_open_memory(table, strlen(table), "t.csv", &bytes, e) ==
                    DPF_OK);
    enum dpf_status status = dpf_csv_new(bytes, &c, NULL, &s, e);
    if (status == DPF_OK)
        status = dpf_header_copy(h, &s->header, e);
    if (status == DPF_OK)
        status = dpf_source_next(s, b, 10, e);
    if (s)
        dpf_source_destroy(&s);
    dpf_columns_release(&c);
    return status;
}

static void tables_have_keys(void)
{
    static const char columns[] = "day day DD/MM/YYYY from 2016-04-12\nup label no yes\n"
                                  "steps int 0 9\nwho person\n";
    static const char table[] =
        "who,steps,day,up\nbob,3,12/04/2016,no\n42,4,1/5/2016,yes\nbob,5,11/4/2016,yes\n";
    struct dpf_header h;
    struct dpf_batch b;
    struct dpf_error e;
    CU_ASSERT_FATAL(read_table(columns, table, &b, &h, &e) == DPF_OK && b.rows == 3);
    CU_ASSERT_FATAL(h.field_count == 4);
    CU_ASSERT(strcmp(h.fields[2].name, "person") == 0 &&
              strcmp(h.fields[3].name, "time") == 0);
    const int64_t *person = b.tensor[2].data, *time = b.tensor[3].data;
    CU_ASSERT(person[0] == person[2] && person[0] == dpf_person_number("bob", 3));
    CU_ASSERT(person[1] == 42);
    CU_ASSERT(time[0] == 0 && time[1] == 19 && time[2] == -1);
    CU_ASSERT(((uint8_t *)b.tensor[0].data)[2] == 5 &&
              ((uint8_t *)b.tensor[1].data)[1] == 1);
    dpf_batch_release(&b);
    dpf_header_release(&h);
}

static void tables_have_links(void)
{
    struct dpf_header h;
    struct dpf_batch b;
    struct dpf_error e;
    CU_ASSERT_FATAL(read_table("b person\na person\nsince drop\n",
                               "a,b,since\nbob,7,2015\n7,eve,2016\n", &b, &h,
                               &e) == DPF_OK);
    CU_ASSERT_FATAL(h.field_count == 1 && strcmp(h.fields[0].name, "link") == 0);
    const int64_t *link = b.tensor[0].data;
    CU_ASSERT(b.rows == 2 && link[0] == 7 && link[1] == dpf_person_number("bob", 3));
    CU_ASSERT(link[3] == 7);
    dpf_batch_release(&b);
    dpf_header_release(&h);
}

static void bad_keys_are_named(void)
{
    static const struct {
        const char *table, *message;
    } cases[] = {
        {"u,d,x\n1,4/13/2016,1\n1,2016-04-14,1\n",
         "'t.csv' line 3: column 'd' is not a day in the declared format (MM/DD/YYYY)"},
        {"u,d,x\n1,13/4/2016,1\n",
         "line 2: column 'd' is a day that the calendar does not have (MM/DD/YYYY)"},
        {"u,d,x\n1,,1\n", "line 2: column 'd' is missing"},
        {"u,d,x\n,4/1/2016,1\n", "line 2: column 'u' is missing"},
        {"u,x\n1,1\n", "has no column 'd'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dpf_header h = {0};
        struct dpf_batch b;
        struct dpf_error e;
        CU_ASSERT(read_table("u person\nd day MM/DD/YYYY\nx real 0 1\n", cases[i].table,
                             &b, &h, &e) == DPF_BAD_STREAM);
        CU_ASSERT(strstr(e.message, cases[i].message) != NULL);
        CU_ASSERT(strchr(e.message, '\n') == NULL &&
                  strstr(e.message, "2016-04-14") == NULL);
        dpf_header_release(&h);
    }
}

const char dpf_suite[] = "days";
const struct dpf_test dpf_tests[] = {
    {"the calendar", the_calendar},
    {"days follow each other", days_follow_each_other},
    {"other formats are refused", other_formats_are_refused},
    {"people have one number each", people_have_one_number_each},
    {"tables have keys", tables_have_keys},
    {"tables have links", tables_have_links},
    {"bad keys are named", bad_keys_are_named},
    {NULL, NULL},
};
