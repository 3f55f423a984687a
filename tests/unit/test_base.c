/* lib/base: numbers, text, memory, files, digests and progress, at their edges. */
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/findings.h"
#include "base/log.h"
#include "base/number.h"
#include "base/progress.h"
#include "base/text.h"
#include "stream_fixture.h"

#include "base/banned.h"

/* ---- numbers ---- */

static void test_integers(void)
{
    int64_t i = 77;
    uint64_t u = 77;
    CU_ASSERT(dpf_parse_int("-9223372036854775808", &i) && i == INT64_MIN);
    CU_ASSERT(dpf_parse_int("9223372036854775807", &i) && i == INT64_MAX);
    CU_ASSERT(dpf_parse_int("+007", &i) && i == 7);
    CU_ASSERT(dpf_parse_uint("18446744073709551615", &u) && u == UINT64_MAX);
    CU_ASSERT(dpf_parse_uint("0", &u) && u == 0);
    static const char *const bad[] = {"",
                                      " ",
                                      " 1",
                                      "1 ",
                                      "1x",
                                      "x1",
                                      "0x10",
                                      "1e3",
                                      "1.0",
                                      "--1",
                                      "+-1",
                                      "-",
                                      "inf",
                                      "nan",
                                      "1,000",
                                      "9223372036854775808",
                                      "-9223372036854775809"};
    i = 77;
    for (size_t n = 0; n < sizeof bad / sizeof *bad; n++)
        CU_ASSERT(!dpf_parse_int(bad[n], &i) && i == 77);
    static const char *const bad_unsigned[] = {
        "", "-1", "+1", " 1", "1 ", "0x1", "1e3", "18446744073709551616", "-0"};
    u = 77;
    for (size_t n = 0; n < sizeof bad_unsigned / sizeof *bad_unsigned; n++)
        CU_ASSERT(!dpf_parse_uint(bad_unsigned[n], &u) && u == 77);
}

static void test_reals(void)
{
    double v = 77;
    CU_ASSERT(dpf_parse_real("-1.5e-3", &v) && v == -1.5e-3);
    CU_ASSERT(dpf_parse_real(".5", &v) && v == 0.5);
    CU_ASSERT(dpf_parse_real("1.7976931348623157e308", &v) && v == DBL_MAX);
    CU_ASSERT(dpf_parse_real("-0", &v) && v == 0 && signbit(v));
    CU_ASSERT(dpf_parse_real_n("12.5junk", 4, &v) && v == 12.5);
    static const char *const bad[] = {
        "",      " ",     "1 ",    " 1",     "inf", "-inf",  "nan",
        "NAN",   "0x1p3", "0x10",  "1e",     "e5",  ".",     "-",
        "1.2.3", "1-2",   "1e400", "-1e400", "1,5", "1e5e5", "infinity"};
    v = 77;
    for (size_t n = 0; n < sizeof bad / sizeof *bad; n++)
        CU_ASSERT(!dpf_parse_real(bad[n], &v) && v == 77);
    CU_ASSERT(!dpf_parse_real_n("1", 0, &v) && !dpf_parse_real_n("1\0002", 3, &v));
    CU_ASSERT(v == 77);
}

/* "in range, no silent zero": a number that is not zero does not become zero. */
static void test_real_underflow(void)
{
    double v = 77;
    CU_ASSERT(!dpf_parse_real("1e-400", &v) && v == 77);
    CU_ASSERT(dpf_parse_real("0e-400", &v) && v == 0);
    CU_ASSERT(dpf_parse_real("5e-324", &v) && v > 0);
}

static void test_ranges(void)
{
    double lo = 77, hi = 78;
    CU_ASSERT(dpf_parse_range("-1:2.5", &lo, &hi) && lo == -1 && hi == 2.5);
    static const char *const bad[] = {"1",     "1:",  ":1",    "1:1",   "2:1",
                                      "1:2:3", "a:b", "nan:1", "0:inf", " 0:1"};
    for (size_t n = 0; n < sizeof bad / sizeof *bad; n++)
        CU_ASSERT(!dpf_parse_range(bad[n], &lo, &hi) && lo == -1 && hi == 2.5);
}

/* ---- text ---- */

static bool json_is(const char *bytes, size_t size, const char *due)
{
    struct dpf_text t = {0};
    dpf_text_add_json(&t, bytes, size);
    bool same = !t.failed && strcmp(dpf_text_get(&t), due) == 0;
    if (!same)
        printf("    %s, not %s\n", dpf_text_get(&t), due);
    dpf_text_release(&t);
    return same;
}

/* What a line of a terminal must not be told by a stranger, and what it may. */
static void test_visible(void)
{
    static const struct {
        const char *from, *to;
    } cases[] = {{"plain, \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
                  "plain, \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
                 {"a\nb\rc\td\x1b[2Kz\x7f", "a\\nb\\x0dc\\x09d\\x1b[2Kz\\x7f"},
                 {"\xc2\x85\xc2\x9b\xc2\xa0", "\\u{85}\\u{9b}\xc2\xa0"}, /* NEL, CSI */
                 {"\xe2\x80\xa8\xe2\x80\xa9", "\\u{2028}\\u{2029}"},
                 {"\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c",
                  "\\u{202e}\\u{2066}\\u{200f}\\u{61c}"},
                 {"\xef\xbb\xbf\xf3\xa0\x81\x81", "\\u{feff}\\u{e0041}"},
                 {"\xff\xc0\xaf\\n", "\\xff\\xc0\\xaf\\\\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dpf_text t = {0}, json = {0};
        dpf_text_add_visible(&t, cases[i].from, strlen(cases[i].from));
        CU_ASSERT_STRING_EQUAL(dpf_text_get(&t), cases[i].to);
        CU_ASSERT(dpf_text_is_visible(cases[i].from, strlen(cases[i].from)) == (i == 0));
        /* whatever was let through may be let through again */
        CU_ASSERT(dpf_text_is_visible(t.data, t.size));
        dpf_text_add_json(&json, cases[i].from, strlen(cases[i].from));
        CU_ASSERT(dpf_text_is_visible(json.data, json.size));
        dpf_text_release(&t);
        dpf_text_release(&json);
    }
    CU_ASSERT(json_is("\xf3\xa0\x81\x81\xc2\x85", 6, "\"\\udb40\\udc41\\u0085\""));
}

static void test_json(void)
{
    CU_ASSERT(json_is("", 0, "\"\""));
    CU_ASSERT(json_is("a\"b\\c\n\t\0d", 9, "\"a\\\"b\\\\c\\n\\u0009\\u0000d\""));
    CU_ASSERT(json_is("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
                      "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""));
    CU_ASSERT(json_is("\xff", 1, "\"\\ufffd\""));
    CU_ASSERT(json_is("\xc0\xaf", 2, "\"\\ufffd\\ufffd\"")); /* overlong '/' */
    CU_ASSERT(json_is("\xe0\x80\xaf", 3, "\"\\ufffd\\ufffd\\ufffd\""));
    CU_ASSERT(json_is("\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"")); /* surrogate */
    CU_ASSERT(json_is("\xf4\x90\x80\x80", 4, "\"\\ufffd\\ufffd\\ufffd\\ufffd\""));
    CU_ASSERT(json_is("\xe2\x82", 2, "\"\\ufffd\\ufffd\"")); /* cut off */
    CU_ASSERT(json_is("\xc3(x", 3, "\"\\ufffd(x\""));
}

static bool real_is(double value, const char *due)
{
    struct dpf_text t = {0};
    dpf_text_add_real(&t, value);
    bool same = strcmp(dpf_text_get(&t), due) == 0;
    dpf_text_release(&t);
    return same;
}

static void test_text(void)
{
    CU_ASSERT(real_is(0.1, "0.1") && real_is(1, "1") && real_is(-2.5, "-2.5"));
    CU_ASSERT(real_is(1e300, "1e+300") && real_is(1.0 / 3, "0.3333333333333333"));
    CU_ASSERT(real_is(NAN, "null") && real_is(-INFINITY, "null"));
    struct dpf_text t = {0};
    CU_ASSERT_STRING_EQUAL(dpf_text_get(&t), "");
    for (int i = 0; i < 1000; i++)
        dpf_text_addf(&t, "%d,", i % 10);
    CU_ASSERT(t.size == 2000 && !t.failed && strlen(t.data) == 2000);
    dpf_text_addn(&t, "x", SIZE_MAX - 100);
    CU_ASSERT(t.failed && t.size == 2000);
    dpf_text_add(&t, "y");
    CU_ASSERT(t.failed && t.size == 2000); /* sticky */
    dpf_text_reset(&t);
    dpf_text_add(&t, "z");
    CU_ASSERT_STRING_EQUAL(dpf_text_get(&t), "z");
    dpf_text_release(&t);
    CU_ASSERT(dpf_starts_with("abc", "ab") && !dpf_starts_with("a", "ab"));
    CU_ASSERT(dpf_ends_with("abc", "bc") && !dpf_ends_with("c", "bc"));
    CU_ASSERT(dpf_ends_with("", "") && dpf_starts_with("", ""));
}

static void test_format(void)
{
    char out[40];
    static const struct {
        unsigned long long value;
        const char *text;
    } counts[] = {{0, "0"},
                  {999, "999"},
                  {1000, "1,000"},
                  {100000, "100,000"},
                  {1234567, "1,234,567"},
                  {UINT64_MAX, "18,446,744,073,709,551,615"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        dpf_format_count(out, sizeof out, counts[i].value);
        CU_ASSERT_STRING_EQUAL(out, counts[i].text);
    }
    char small[5] = "....";
    dpf_format_count(small, sizeof small, 1234567);
    CU_ASSERT(memchr(small, '\0', sizeof small) != NULL);
    static const struct {
        double value;
        const char *text;
    } sizes[] = {{0, "0 B"},        {1023, "1023 B"},     {1536, "1.5 KiB"},
                 {10240, "10 KiB"}, {1048576, "1.0 MiB"}, {1e9, "954 MiB"},
                 {5e15, "4547 TiB"}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        dpf_format_bytes(out, sizeof out, sizes[i].value);
        CU_ASSERT_STRING_EQUAL(out, sizes[i].text);
    }
}

/* ---- memory ---- */

/* AddressSanitizer would end the program where malloc would return NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void test_memory(void)
{
    size_t product = 7, capacity = 0;
    CU_ASSERT(dpf_mul_size(1 << 20, 1 << 20, &product) && product == 1ull << 40);
    CU_ASSERT(!dpf_mul_size(SIZE_MAX, 2, &product));
    volatile size_t huge = SIZE_MAX / 2;
    CU_ASSERT(dpf_calloc(huge, 3) == NULL);
    CU_ASSERT(dpf_alloc_aligned(SIZE_MAX) == NULL);
    for (size_t size = 0; size < 200; size += 33) {
        void *p = dpf_alloc_aligned(size);
        CU_ASSERT(p != NULL && (uintptr_t)p % DPF_ALIGNMENT == 0);
        free(p);
    }
    int *array = NULL;
    CU_ASSERT_FATAL(dpf_grow(&array, &capacity, 5, sizeof *array));
    CU_ASSERT_FATAL(capacity >= 5);
    array[4] = 42;
    size_t before = capacity;
    CU_ASSERT(!dpf_grow(&array, &capacity, SIZE_MAX / 2, sizeof *array));
    CU_ASSERT(!dpf_grow(&array, &capacity, SIZE_MAX, 1));
    CU_ASSERT(capacity == before && array[4] == 42);
    CU_ASSERT_FATAL(dpf_grow(&array, &capacity, 5000, sizeof *array));
    CU_ASSERT(array[4] == 42);
    free(array);
}

static void test_buffer(void)
{
    struct dpf_buffer b = {0};
    dpf_buffer_append(&b, NULL, 0);
    dpf_buffer_append(&b, "abc", 3);
    CU_ASSERT(dpf_buffer_ok(&b) && b.size == 3 && memcmp(b.data, "abc", 3) == 0);
    CU_ASSERT(dpf_buffer_reserve(&b, SIZE_MAX) == NULL);
    CU_ASSERT(!dpf_buffer_ok(&b) && b.size == 3);
    dpf_buffer_append(&b, "d", 1);
    CU_ASSERT(!dpf_buffer_ok(&b) && b.size == 3); /* sticky */
    dpf_buffer_reset(&b);
    dpf_buffer_append(&b, "e", 1);
    CU_ASSERT(dpf_buffer_ok(&b) && b.size == 1 && b.data[0] == 'e');
    dpf_buffer_release(&b);
    CU_ASSERT(b.data == NULL && b.capacity == 0);
}

/* ---- status ---- */

static void test_errors(void)
{
    struct dpf_error e = {0};
    CU_ASSERT(dpf_fail(&e, DPF_USAGE, "bad '%s'", "a\nb\033[31m") == DPF_USAGE);
    CU_ASSERT_STRING_EQUAL(e.message, "bad 'a?b?[31m'");
    CU_ASSERT(!e.consequence && e.status == DPF_USAGE);
    CU_ASSERT(dpf_error_prefix(&e, DPF_USAGE, "in '%s'", "f") == DPF_USAGE);
    CU_ASSERT_STRING_EQUAL(e.message, "in 'f': bad 'a?b?[31m'");
    errno = ENOENT;
    CU_ASSERT(dpf_fail_errno(&e, "cannot open 'x'") == DPF_SYSTEM);
    CU_ASSERT_STRING_EQUAL(e.message, "cannot open 'x': No such file or directory");
    CU_ASSERT(dpf_fail_after_peer(&e, DPF_BAD_STREAM, "x") == DPF_BAD_STREAM);
    CU_ASSERT(e.consequence);
    CU_ASSERT(dpf_error_prefix(&e, DPF_BAD_STREAM, "y") == DPF_BAD_STREAM &&
              e.consequence);
    char wide[1000];
    memset(wide, 'w', sizeof wide);
    wide[999] = '\0';
    dpf_fail(&e, DPF_USAGE, "%s", wide);
    dpf_error_prefix(&e, DPF_USAGE, "%s", wide);
    CU_ASSERT(strlen(e.message) == sizeof e.message - 1);
    CU_ASSERT(dpf_fail(NULL, DPF_PRIVACY, "x") == DPF_PRIVACY);
    for (int s = DPF_OK; s <= DPF_UNAVAILABLE; s++)
        CU_ASSERT(strcmp(dpf_status_name((enum dpf_status)s), "unknown status") != 0);
}

static char noticed[128];

static void keep_notice(void *context, const char *line)
{
    *(int *)context += 1;
    snprintf(noticed, sizeof noticed, "%s", line);
}

static void test_notices(void)
{
    int count = 0;
    dpf_notice("nobody listens");
    dpf_log_set_sink(keep_notice, &count);
    dpf_notice("%d values were clipped", 12);
    dpf_log_set_sink(NULL, NULL);
    dpf_notice("nobody listens");
    CU_ASSERT(count == 1);
    CU_ASSERT_STRING_EQUAL(noticed, "12 values were clipped");
}

/* ---- files ---- */

static bool holds(const char *path, const char *text)
{
    char *data;
    size_t size;
    if (dpf_read_file(path, 1000, &data, &size, NULL) != DPF_OK)
        return false;
    bool same = size == strlen(text) && memcmp(data, text, size + 1) == 0;
    free(data);
    return same;
}

static void test_outfile(void)
{
    struct dpf_outfile f = {0};
    struct dpf_error e = {0};
    folder_begin();
    const char *path = in_folder("out"), *part = in_folder("out.part");
    dpf_outfile_abort(&f); /* a zeroed one is nothing: descriptor 0 stays open */
    CU_ASSERT(fcntl(0, F_GETFD) >= 0);
    CU_ASSERT_FATAL(dpf_outfile_open(&f, path, &e) == DPF_OK);
    CU_ASSERT(dpf_write_all(f.fd, "new", 3) && there(part) && !there(path));
    dpf_outfile_abort(&f);
    CU_ASSERT(!there(part) && !there(path));
    CU_ASSERT(dpf_write_file(path, "old", 3, &e) == DPF_OK && holds(path, "old"));
    CU_ASSERT_FATAL(dpf_outfile_open(&f, path, &e) == DPF_OK);
    CU_ASSERT(dpf_write_all(f.fd, "newer", 5) && holds(path, "old"));
    CU_ASSERT(dpf_outfile_commit(&f, &e) == DPF_OK);
    CU_ASSERT(holds(path, "newer") && !there(part));
    dpf_outfile_abort(&f); /* safe after a commit: the file stays */
    CU_ASSERT(holds(path, "newer"));
    const char *dir = in_folder("dir");
    CU_ASSERT_FATAL(mkdir(dir, 0777) == 0);
    CU_ASSERT(refused(dpf_write_file(dir, "x", 1, &e), DPF_SYSTEM, &e, "dir'"));
    CU_ASSERT(!there(in_folder("dir.part")) && dpf_is_dir(dir));
    CU_ASSERT(refused(dpf_write_file(in_folder("no/file"), "x", 1, &e), DPF_SYSTEM, &e,
                      "no/file.part'"));
    folder_end();
}

static void test_full_disk(void)
{
    struct dpf_error e = {0};
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (full < 0) {
        dpf_test_skip("no /dev/full");
        return;
    }
    CU_ASSERT(!dpf_write_all(full, "x", 1) && errno == ENOSPC);
    struct iovec parts[] = {{"", 0}, {"ab", 2}, {"", 0}, {"c", 1}};
    CU_ASSERT(!dpf_writev_all(full, parts, 4) && errno == ENOSPC);
    close(full);
    folder_begin();
    int fd = open(in_folder("v"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    struct iovec good[] = {{"", 0}, {"ab", 2}, {"", 0}, {"c", 1}, {"", 0}};
    CU_ASSERT(dpf_writev_all(fd, good, 5));
    close(fd);
    CU_ASSERT(holds(in_folder("v"), "abc"));
    CU_ASSERT(dpf_read_file(in_folder("absent"), 10, NULL, NULL, &e) == DPF_SYSTEM);
    folder_end();
}

static void test_read_limit(void)
{
    struct dpf_error e = {0};
    char *data = NULL;
    size_t size = 0, large = (1 << 16) + 5;
    folder_begin();
    const char *path = in_folder("file");
    char *content = malloc(large);
    CU_ASSERT_FATAL(content != NULL);
    memset(content, 'q', large);
    CU_ASSERT_FATAL(dpf_write_file(path, content, large, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_read_file(path, large, &data, &size, &e) == DPF_OK);
    CU_ASSERT(size == large && memcmp(data, content, large) == 0 && data[large] == '\0');
    free(data);
    CU_ASSERT(refused(dpf_read_file(path, large - 1, &data, &size, &e), DPF_BAD_STREAM,
                      &e, "file' is larger than 65540 bytes"));
    CU_ASSERT(refused(dpf_read_file("/dev/zero", 1 << 20, &data, &size, &e),
                      DPF_BAD_STREAM, &e, "'/dev/zero' is larger"));
    free(content);
    CU_ASSERT_FATAL(dpf_write_file(path, "", 0, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_read_file(path, 0, &data, &size, &e) == DPF_OK);
    CU_ASSERT(size == 0 && data[0] == '\0');
    free(data);
    CU_ASSERT(dpf_read_file(fixture_folder, 10, &data, &size, &e) == DPF_SYSTEM);
    folder_end();
}

static void test_folders(void)
{
    struct dpf_error e = {0};
    folder_begin();
    CU_ASSERT(dpf_make_dirs(in_folder("a/b//c/"), &e) == DPF_OK);
    CU_ASSERT(dpf_is_dir(in_folder("a/b/c")) && !dpf_is_file(in_folder("a/b/c")));
    CU_ASSERT(dpf_make_dirs(in_folder("a/b"), &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_write_file(in_folder("a/file"), "x", 1, &e) == DPF_OK);
    CU_ASSERT(refused(dpf_make_dirs(in_folder("a/file"), &e), DPF_SYSTEM, &e, "a/file'"));
    CU_ASSERT(
        refused(dpf_make_dirs(in_folder("a/file/d"), &e), DPF_SYSTEM, &e, "a/file"));
    CU_ASSERT(dpf_make_dirs("/", &e) == DPF_OK);
    dpf_remove_tree(in_folder("a"));
    CU_ASSERT(!there(in_folder("a")));
    char *joined = dpf_path_join("a/", "b"), *other = dpf_path_join("a", "b");
    CU_ASSERT_STRING_EQUAL(joined, "a/b");
    CU_ASSERT_STRING_EQUAL(other, "a/b");
    CU_ASSERT_STRING_EQUAL(dpf_path_base("/x/y.mp"), "y.mp");
    CU_ASSERT_STRING_EQUAL(dpf_path_base("y.mp"), "y.mp");
    free(joined);
    free(other);
    folder_end();
}

static int make_no_dirs(void *context)
{
    (void)context;
    return dpf_make_dirs("", NULL) == DPF_USAGE ? 0 : 1;
}

/* An empty name is refused without a look behind its end (seen by sanitizers). */
static void test_folder_without_name(void)
{
    CU_ASSERT(in_child(make_no_dirs, NULL, 5000) == 0);
}

/* ---- digests ---- */

static void test_checksum(void)
{
    char text[DPF_CHECKSUM_TEXT], again[DPF_CHECKSUM_TEXT];
    struct dpf_checksum *c = dpf_checksum_new();
    CU_ASSERT_FATAL(c != NULL);
    dpf_checksum_text(c, text);
    CU_ASSERT_STRING_EQUAL(text, "xxh128:99aa06d3014798d86001c324468d497f");
    dpf_checksum_update(c, "abc", 3);
    dpf_checksum_text(c, text);
    XXH128_hash_t due = XXH3_128bits("abc", 3);
    snprintf(again, sizeof again, "xxh128:%016llx%016llx", (unsigned long long)due.high64,
             (unsigned long long)due.low64);
    CU_ASSERT_STRING_EQUAL(text, again);
    CU_ASSERT_STRING_EQUAL(text, "xxh128:06b05ab6733a618578af5f94892f3950");
    dpf_checksum_text(c, again); /* may be asked twice */
    CU_ASSERT_STRING_EQUAL(text, again);
    dpf_checksum_reset(c);
    for (int i = 0; i < 3; i++)
        dpf_checksum_update(c, "abc" + i, 1);
    dpf_checksum_update(c, NULL, 0);
    dpf_checksum_text(c, again);
    CU_ASSERT_STRING_EQUAL(text, again);
    dpf_checksum_destroy(&c);
    CU_ASSERT(c == NULL);
    dpf_checksum_destroy(&c);
}

static void fingerprint_of(const char *a, const char *b, char *out)
{
    struct dpf_fingerprint f;
    dpf_fingerprint_init(&f);
    dpf_fingerprint_add_string(&f, a);
    dpf_fingerprint_add_string(&f, b);
    dpf_fingerprint_hex(&f, out);
}

static void test_fingerprint(void)
{
    char one[DPF_FINGERPRINT_HEX + 1], two[DPF_FINGERPRINT_HEX + 1];
    struct dpf_fingerprint f;
    struct dpf_error e = {0};
    fingerprint_of("ab", "c", one);
    fingerprint_of("a", "bc", two);
    CU_ASSERT(strlen(one) == 64 && strcmp(one, two) != 0);
    fingerprint_of("ab", "c", two);
    CU_ASSERT_STRING_EQUAL(one, two);
    fingerprint_of("abc", "", two);
    CU_ASSERT(strcmp(one, two) != 0);
    dpf_fingerprint_init(&f); /* BLAKE2b-256 of nothing, as published */
    dpf_fingerprint_hex(&f, one);
    CU_ASSERT_STRING_EQUAL(
        one, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
    folder_begin();
    CU_ASSERT_FATAL(dpf_write_file(in_folder("1"), "ab", 2, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_write_file(in_folder("2"), "c", 1, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_write_file(in_folder("3"), "a", 1, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_write_file(in_folder("4"), "bc", 2, &e) == DPF_OK);
    dpf_fingerprint_init(&f);
    CU_ASSERT(dpf_fingerprint_add_file(&f, in_folder("1"), &e) == DPF_OK);
    CU_ASSERT(dpf_fingerprint_add_file(&f, in_folder("2"), &e) == DPF_OK);
    dpf_fingerprint_hex(&f, one);
    dpf_fingerprint_init(&f);
    CU_ASSERT(dpf_fingerprint_add_file(&f, in_folder("3"), &e) == DPF_OK);
    CU_ASSERT(dpf_fingerprint_add_file(&f, in_folder("4"), &e) == DPF_OK);
    dpf_fingerprint_hex(&f, two);
    CU_ASSERT(strcmp(one, two) != 0);
    CU_ASSERT(refused(dpf_fingerprint_add_file(&f, in_folder("5"), &e), DPF_SYSTEM, &e,
                      "cannot read '"));
    folder_end();
}

/* ---- progress ---- */

static void test_progress(void)
{
    struct dpf_counters now = {12, 100, UINT64_MAX}, seen = {0};
    struct dpf_error out = {.status = DPF_PRIVACY, .consequence = true}, read = {0};
    snprintf(out.message, sizeof out.message, "no 'x' here");
    folder_begin();
    const char *path = in_folder("status");
    unsetenv("DPFLOW_STATUS");
    CU_ASSERT(dpf_progress_new() == NULL);
    CU_ASSERT(!dpf_progress_read(path, &seen) && !dpf_progress_outcome(path, &read));
    setenv("DPFLOW_STATUS", path, 1);
    struct dpf_progress *p = dpf_progress_new();
    unsetenv("DPFLOW_STATUS");
    CU_ASSERT_FATAL(p != NULL);
    dpf_progress_update(p, &now);
    CU_ASSERT(dpf_progress_read(path, &seen) && seen.records == 12 && seen.total == 100);
    CU_ASSERT(!dpf_progress_outcome(path, &read));
    now.records = 100;
    dpf_progress_finish(&p, &now, &out);
    CU_ASSERT(p == NULL && dpf_progress_read(path, &seen));
    CU_ASSERT(seen.records == 100 && seen.bytes == UINT64_MAX);
    CU_ASSERT(dpf_progress_outcome(path, &read) && read.status == DPF_PRIVACY);
    CU_ASSERT(read.consequence);
    CU_ASSERT_STRING_EQUAL(read.message, "no 'x' here");
    dpf_progress_update(NULL, &now);
    folder_end();
}

static void test_json_objects(void)
{
    static const char *const good[] = {
        "{}", " { \"a\" : [1, -2.5e+3, true, null, \"\\u00e9\\n\"] } ",
        "{\"a\":{\"b\":[[],{}]},\"c\":0}"};
    static const char *const bad[] = {"",
                                      "[]",
                                      "{",
                                      "{}}",
                                      "{\"a\":1}{\"b\":2}",
                                      "{a:1}",
                                      "{\"a\":01}",
                                      "{\"a\":1,}",
                                      "{\"a\" 1}",
                                      "{\"a\":\"\\x\"}",
                                      "{\"a\":nan}",
                                      "{\"a\":1.}",
                                      "{\"a\":\"\n\"}",
                                      "{\"a\":[1,]}",
                                      "{\"a\":\"\\u12g4\"}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CU_ASSERT(dpf_json_is_object(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(!dpf_json_is_object(bad[i], strlen(bad[i])));
    char deep[200];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    CU_ASSERT(!dpf_json_is_object(deep, sizeof deep));
    for (size_t cut = 0; cut < strlen(good[1]) - 1; cut++)
        CU_ASSERT(!dpf_json_is_object(good[1], cut));
}

/* Two parts add to the same findings, in either order of rows and details. */
static void test_findings(void)
{
    struct dpf_findings f = {0};
    struct dpf_text table = {0}, json = {0};
    dpf_findings_json(&f, &json);
    CU_ASSERT_STRING_EQUAL(dpf_text_get(&json), "{}");
    dpf_text_reset(&json);
    dpf_findings_add_row(&f, 8, "loss", "%.2f", 0.5);
    dpf_text_add(&f.details, "\nclasses\n");
    dpf_text_add_key(&f.members, "loss");
    dpf_text_add_real(&f.members, 0.5);
    dpf_findings_add_row(&f, 8, "long name", "%s", "100 %");
    dpf_text_add_key(&f.members, "of");
    dpf_text_add(&f.members, "{");
    dpf_text_add_key(&f.members, "a");
    dpf_text_add(&f.members, "1}");
    dpf_findings_table(&f, &table);
    dpf_findings_json(&f, &json);
    CU_ASSERT_STRING_EQUAL(dpf_text_get(&table),
                           "loss     0.50\nlong name 100 %\n\nclasses\n");
    CU_ASSERT_STRING_EQUAL(dpf_text_get(&json), "{\"loss\":0.5,\"of\":{\"a\":1}}");
    f.details.failed = true;
    dpf_findings_table(&f, &table);
    CU_ASSERT(table.failed && !json.failed);
    dpf_findings_release(&f);
    dpf_text_release(&table);
    dpf_text_release(&json);
}

const char dpf_suite[] = "base";

const struct dpf_test dpf_tests[] = {
    {"integers are parsed strictly", test_integers},
    {"reals are parsed strictly", test_reals},
    {"reals do not become zero", test_real_underflow},
    {"ranges", test_ranges},
    {"JSON strings, also from invalid UTF-8", test_json},
    {"text of strangers cannot steer a terminal", test_visible},
    {"growing text", test_text},
    {"counts and sizes for people", test_format},
    {"allocations that would overflow", test_memory},
    {"buffers fail once and for all", test_buffer},
    {"errors are one line", test_errors},
    {"notices go to the sink", test_notices},
    {"output files are whole or absent", test_outfile},
    {"a full disk is an error", test_full_disk},
    {"files are read up to a limit", test_read_limit},
    {"folders", test_folders},
    {"a folder without a name", test_folder_without_name},
    {"checksum: known answers", test_checksum},
    {"fingerprint: pieces are kept apart", test_fingerprint},
    {"progress and outcome", test_progress},
    {"JSON objects are told from what is none", test_json_objects},
    {"findings are put together at the end", test_findings},
    {0},
};
