/* The file readers: values come out as they were written, and files that are cut short,
 * damaged or lying are refused with a message that names the file and no cell. */
#include <lzma.h>
#include <math.h>
#include <nifti/nifti1.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/cifar.h"
#include "data/csv.h"
#include "data/idx.h"
#include "data/nifti.h"
#include "data/npy.h"
#include "harness.h"

#include "base/banned.h"

/* ---- helpers ---- */

static char folder[256];

static void folder_begin(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/dpf-readers-XXXXXX", base ? base : "/tmp");
    CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
}

static void folder_end(void)
{
    dpf_remove_tree(folder);
}

/* The path of a file in the folder; up to four live at a time. */
static const char *in_folder(const char *name)
{
    static char paths[4][320];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static const char *put(const char *name, const void *data, size_t size)
{
    const char *path = in_folder(name);
    CU_ASSERT_FATAL(dpf_write_file(path, data, size, NULL) == DPF_OK);
    return path;
}

static const char *put_text(const char *name, const char *text)
{
    return put(name, text, strlen(text));
}

static struct dpf_buffer gzip(const void *data, size_t size, int window)
{
    struct dpf_buffer out = {0};
    z_stream z = {.next_in = (unsigned char *)data, .avail_in = (uInt)size};
    CU_ASSERT_FATAL(deflateInit2(&z, 9, Z_DEFLATED, window, 8, 0) == Z_OK);
    size_t room = deflateBound(&z, size) + 64;
    z.next_out = dpf_buffer_reserve(&out, room);
    CU_ASSERT_FATAL(z.next_out != NULL);
    z.avail_out = (uInt)room;
    CU_ASSERT_FATAL(deflate(&z, Z_FINISH) == Z_STREAM_END);
    out.size = room - z.avail_out;
    deflateEnd(&z);
    return out;
}

static const char *put_gzip(const char *name, const void *data, size_t size)
{
    struct dpf_buffer packed = gzip(data, size, 15 + 16);
    const char *path = put(name, packed.data, packed.size);
    dpf_buffer_release(&packed);
    return path;
}

static const char *put_xz(const char *name, const void *data, size_t size)
{
    size_t room = lzma_stream_buffer_bound(size), used = 0;
    unsigned char *out = malloc(room);
    CU_ASSERT_FATAL(out != NULL);
    CU_ASSERT_FATAL(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, data, size, out,
                                            &used, room) == LZMA_OK);
    const char *path = put(name, out, used);
    free(out);
    return path;
}

static bool refused(enum dpf_status got, enum dpf_status due, const struct dpf_error *e,
                    const char *text)
{
    bool good = got == due && strstr(e->message, text) != NULL;
    if (!good)
        printf("\n    %d '%s', not %d '%s'\n", got, e->message, due, text);
    return good;
}

/* Read to the end in batches of three; the status of the first failure. */
static enum dpf_status drain(struct dpf_source *take_source, uint64_t *records,
                             struct dpf_error *e)
{
    enum dpf_status status;
    struct dpf_batch b;
    bool more = true;
    *records = 0;
    do {
        status = dpf_source_next(take_source, &b, 3, e);
        if (status != DPF_OK)
            break;
        *records += b.rows;
        more = b.rows > 0;
        dpf_batch_release(&b);
    } while (more);
    dpf_source_destroy(&take_source);
    return status;
}

/* ---- bytes ---- */

static enum dpf_status read_all(const char *path, size_t piece, struct dpf_buffer *out,
                                struct dpf_error *e)
{
    struct dpf_bytes *b;
    size_t got = 0;
    enum dpf_status status = dpf_bytes_open(path, &b, e);
    if (status != DPF_OK)
        return status;
    do {
        unsigned char *to = dpf_buffer_reserve(out, piece);
        CU_ASSERT_FATAL(to != NULL);
        status = dpf_bytes_read(b, to, piece, &got, e);
        out->size += status == DPF_OK ? got : 0;
    } while (status == DPF_OK && got == piece);
    dpf_bytes_destroy(&b);
    return status;
}

static void check_content(const char *path, const void *data, size_t size)
{
    static const size_t pieces[] = {1000, 65536, 1 << 20};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct dpf_buffer out = {0};
        struct dpf_error e = {0};
        CU_ASSERT(read_all(path, pieces[i], &out, &e) == DPF_OK);
        CU_ASSERT(out.size == size && memcmp(out.data, data, size) == 0);
        dpf_buffer_release(&out);
    }
}

static void test_bytes_content(void)
{
    enum { SIZE = 700001 };
    unsigned char *data = malloc(SIZE);
    CU_ASSERT_FATAL(data != NULL);
    folder_begin();
    for (size_t i = 0; i < SIZE; i++)
        data[i] = i < SIZE / 2 ? 7 : (unsigned char)(i * i >> 7);
    check_content(put("plain", data, SIZE), data, SIZE);
    check_content(put_gzip("gzip", data, SIZE), data, SIZE);
    check_content(put_xz("xz", data, SIZE), data, SIZE);
    struct dpf_buffer two = gzip(data, 1234, 15 + 16);
    struct dpf_buffer rest = gzip(data + 1234, SIZE - 1234, 15 + 16);
    dpf_buffer_append(&two, rest.data, rest.size);
    check_content(put("members", two.data, two.size), data, SIZE);
    check_content(put("empty", "", 0), "", 0);
    check_content(put_gzip("nothing", "", 0), "", 0);
    dpf_buffer_release(&two);
    dpf_buffer_release(&rest);
    folder_end();
    free(data);
}

/* Output may still be on its way when the last byte of input is in: a run of zeros is
 * the extreme case. */
static void test_bytes_small_pieces(void)
{
    enum { SIZE = 300000 };
    unsigned char *data = dpf_calloc(SIZE, 1), piece[7];
    struct dpf_bytes *b;
    struct dpf_error e = {0};
    size_t got, total = 0;
    CU_ASSERT_FATAL(data != NULL);
    folder_begin();
    CU_ASSERT_FATAL(dpf_bytes_open(put_gzip("zeros", data, SIZE), &b, &e) == DPF_OK);
    do {
        bool end;
        CU_ASSERT_FATAL(dpf_bytes_at_end(b, &end, &e) == DPF_OK);
        CU_ASSERT(end == (total == SIZE));
        CU_ASSERT_FATAL(dpf_bytes_read(b, piece, sizeof piece, &got, &e) == DPF_OK);
        total += got;
    } while (got == sizeof piece);
    CU_ASSERT(total == SIZE);
    dpf_bytes_destroy(&b);
    folder_end();
    free(data);
}

static void test_bytes_cut(void)
{
    const char text[] = "one, two, three, one, two, three, four";
    struct dpf_buffer packed = gzip(text, sizeof text, 15 + 16);
    folder_begin();
    for (size_t cut = 2; cut < packed.size; cut++) {
        struct dpf_buffer out = {0};
        struct dpf_error e = {0};
        enum dpf_status status = read_all(put("cut", packed.data, cut), 8, &out, &e);
        CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, "cut' ends early"));
        dpf_buffer_release(&out);
    }
    dpf_buffer_release(&packed);
    folder_end();
}

static void test_bytes_cut_xz(void)
{
    const char text[] = "one, two, three, one, two, three, four";
    char *packed;
    size_t size;
    folder_begin();
    const char *path = put_xz("whole", text, sizeof text);
    CU_ASSERT_FATAL(dpf_read_file(path, 4096, &packed, &size, NULL) == DPF_OK);
    for (size_t cut = 6; cut < size; cut++) {
        struct dpf_buffer out = {0};
        struct dpf_error e = {0};
        enum dpf_status status = read_all(put("cut", packed, cut), 8, &out, &e);
        CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, "cut' ends early"));
        dpf_buffer_release(&out);
    }
    free(packed);
    folder_end();
}

static void test_bytes_damaged(void)
{
    const char text[] = "one, two, three, one, two, three, four";
    struct dpf_buffer packed = gzip(text, sizeof text, 15 + 16), out = {0};
    struct dpf_error e = {0};
    folder_begin();
    packed.data[packed.size - 6] ^= 1; /* of the CRC */
    enum dpf_status status =
        read_all(put("crc", packed.data, packed.size), 100, &out, &e);
    CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, "crc' is damaged"));
    packed.data[packed.size - 6] ^= 1;
    dpf_buffer_append(&packed, "garbage", 7);
    status = read_all(put("tail", packed.data, packed.size), 100, &out, &e);
    CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, "tail' is damaged"));
    status = read_all(in_folder("absent"), 100, &out, &e);
    CU_ASSERT(refused(status, DPF_SYSTEM, &e, "absent': No such file"));
    status = read_all(folder, 100, &out, &e);
    CU_ASSERT(refused(status, DPF_SYSTEM, &e, "Is a directory"));
    dpf_buffer_release(&packed);
    dpf_buffer_release(&out);
    folder_end();
}

/* ---- idx ---- */

static const unsigned char idx_images[] = {0, 0, 8, 3, 0, 0, 0, 4, 0,  0,  0, 1,
                                           0, 0, 0, 2, 1, 2, 3, 4, 50, 60, 0, 255};
static const unsigned char idx_labels[] = {0, 0, 8, 1, 0, 0, 0, 4, 9, 0, 3, 1};

static void test_idx_values(void)
{
    struct dpf_source *s;
    struct dpf_batch b;
    struct dpf_error e = {0};
    folder_begin();
    const char *images = put_gzip("images", idx_images, sizeof idx_images);
    const char *labels = put("labels", idx_labels, sizeof idx_labels);
    CU_ASSERT_FATAL(dpf_idx_open(images, labels, 10, &s, &e) == DPF_OK);
    CU_ASSERT(s->header.has_records && s->header.records == 4);
    CU_ASSERT(s->header.fields[0].shape.rank == 2 &&
              s->header.fields[0].shape.dim[1] == 2);
    CU_ASSERT(s->header.fields[0].bounds.count == 1 &&
              s->header.fields[0].bounds.hi[0] == 255);
    CU_ASSERT(s->header.fields[1].classes == 10 && s->header.fields[1].shape.rank == 0);
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 3, &e) == DPF_OK);
    CU_ASSERT(b.rows == 3 && memcmp(b.tensor[0].data, idx_images + 16, 6) == 0);
    CU_ASSERT(memcmp(b.tensor[1].data, idx_labels + 8, 3) == 0);
    dpf_batch_release(&b);
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 3, &e) == DPF_OK);
    CU_ASSERT(b.rows == 1 && dpf_tensor_get(&b.tensor[0], 1) == 255);
    dpf_batch_release(&b);
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 3, &e) == DPF_OK);
    CU_ASSERT(b.rows == 0);
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    folder_end();
}

static void test_idx_big_endian(void)
{
    unsigned char file[] = {0,    0,    0x0d, 1, 0,    0,    0, 2,
                            0x3f, 0xc0, 0,    0, 0xc0, 0x20, 0, 0}; /* 1.5, -2.5 */
    struct dpf_source *s;
    struct dpf_batch b;
    struct dpf_error e = {0};
    uint64_t records;
    folder_begin();
    CU_ASSERT_FATAL(dpf_idx_open(put("f", file, sizeof file), NULL, 0, &s, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 8, &e) == DPF_OK);
    CU_ASSERT(b.rows == 2 && b.tensor[0].dtype == DPF_F32);
    CU_ASSERT(dpf_tensor_get(&b.tensor[0], 0) == 1.5);
    CU_ASSERT(dpf_tensor_get(&b.tensor[0], 1) == -2.5);
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    file[12] = 0x7f; /* NaN */
    file[13] = 0xc0;
    CU_ASSERT_FATAL(dpf_idx_open(put("f", file, sizeof file), NULL, 0, &s, &e) == DPF_OK);
    CU_ASSERT(refused(drain(s, &records, &e), DPF_BAD_STREAM, &e, "not finite"));
    folder_end();
}

/* One changed byte, or a changed size, and what is said about it. */
struct spoiled {
    size_t at;
    unsigned char value;
    int extra; /* bytes more or fewer than the file */
    const char *text;
};

static enum dpf_status read_idx(const char *images, const char *labels,
                                struct dpf_error *e)
{
    struct dpf_source *s;
    uint64_t records;
    enum dpf_status status = dpf_idx_open(images, labels, 10, &s, e);
    return status == DPF_OK ? drain(s, &records, e) : status;
}

static void check_spoiled(const unsigned char *good, size_t size, bool labels,
                          const struct spoiled *cases)
{
    for (; cases->text; cases++) {
        unsigned char file[64] = {0};
        struct dpf_error e = {0};
        memcpy(file, good, size);
        file[cases->at] = cases->value;
        const char *bad = put("bad", file, (size_t)((int)size + cases->extra));
        enum dpf_status status =
            labels ? read_idx(put("good", idx_images, sizeof idx_images), bad, &e)
                   : read_idx(bad, put("good", idx_labels, sizeof idx_labels), &e);
        CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, cases->text));
    }
}

static void test_idx_refused(void)
{
    static const struct spoiled images[] = {
        {0, 1, 0, "bad' is not an idx file"},
        {2, 9, 0, "idx type 0x09"},
        {3, 0, 0, "0 dimensions"},
        {3, 9, 0, "9 dimensions"},
        {7, 3, 0, "has 3 records where"},
        {7, 5, 0, "has 5 records where"},
        {4, 255, 0, "bad' ends early"},
        {8, 255, 0, "bad' has records larger"},
        {11, 0, 0, "records of size 0"},
        {16, 1, 1, "bad' has bytes after its data"},
        {16, 1, -1, "bad' ends early"},
        {16, 1, -9, "bad' ends early, in its header"},
        {0, 0, 0, NULL},
    };
    static const struct spoiled labels[] = {
        {8, 10, 0, "bad' has a label outside its 10 classes"},
        {2, 0x0c, 12, "one u8 label a record"},
        {8, 1, 1, "has bytes after its data"},
        {0, 0, 0, NULL},
    };
    folder_begin();
    check_spoiled(idx_images, sizeof idx_images, false, images);
    check_spoiled(idx_labels, sizeof idx_labels, true, labels);
    folder_end();
}

/* A few bytes of gzip must not make anyone reserve gigabytes. */
static void test_idx_lies(void)
{
    unsigned char file[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0x40, 0, 0, 0, 0x40, 0, 1};
    struct dpf_source *s;
    struct dpf_error e = {0};
    folder_begin();
    const char *path = put_gzip("lies", file, sizeof file);
    enum dpf_status status = dpf_idx_open(path, NULL, 0, &s, &e);
    CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, "lies' ends early"));
    folder_end();
}

/* ---- cifar ---- */

enum { CIFAR_RECORD = 3073 };

static void cifar_make(unsigned char *file, size_t records, unsigned char first)
{
    for (size_t i = 0; i < records; i++) {
        memset(file + i * CIFAR_RECORD, (int)(first + i) * 3, CIFAR_RECORD);
        file[i * CIFAR_RECORD] = (unsigned char)(first + i);
    }
}

static void test_cifar_values(void)
{
    unsigned char *file = malloc(5 * CIFAR_RECORD);
    const char *paths[2];
    struct dpf_source *s;
    struct dpf_batch b;
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(file != NULL);
    folder_begin();
    cifar_make(file, 5, 0);
    paths[0] = put("a", file, 5 * CIFAR_RECORD);
    cifar_make(file, 2, 5);
    paths[1] = put("b", file, 2 * CIFAR_RECORD);
    CU_ASSERT_FATAL(dpf_cifar_open(paths, 2, &s, &e) == DPF_OK);
    CU_ASSERT(s->header.has_records && s->header.records == 7);
    dpf_source_destroy(&s);
    paths[1] = put_xz("b", file, 2 * CIFAR_RECORD);
    CU_ASSERT_FATAL(dpf_cifar_open(paths, 2, &s, &e) == DPF_OK);
    CU_ASSERT(!s->header.has_records && s->header.records == 0);
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 100, &e) == DPF_OK);
    CU_ASSERT_FATAL(b.rows == 7);
    for (uint64_t i = 0; i < 7; i++) {
        CU_ASSERT(dpf_tensor_get(&b.tensor[1], i) == (double)i);
        CU_ASSERT(dpf_tensor_get(&b.tensor[0], i * 3072 + 3071) == (double)i * 3);
    }
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    folder_end();
    free(file);
}

static void test_cifar_refused(void)
{
    unsigned char *file = malloc(2 * CIFAR_RECORD);
    const char *path;
    struct dpf_source *s;
    struct dpf_error e = {0};
    uint64_t records;
    CU_ASSERT_FATAL(file != NULL);
    folder_begin();
    cifar_make(file, 2, 1);
    path = put("cut", file, 2 * CIFAR_RECORD - 1);
    CU_ASSERT(refused(dpf_cifar_open(&path, 1, &s, &e), DPF_BAD_STREAM, &e,
                      "cut' does not hold whole CIFAR-10 records"));
    path = put("none", file, 0);
    CU_ASSERT(refused(dpf_cifar_open(&path, 1, &s, &e), DPF_BAD_STREAM, &e, "whole"));
    path = put_gzip("cut.gz", file, 2 * CIFAR_RECORD - 1);
    CU_ASSERT_FATAL(dpf_cifar_open(&path, 1, &s, &e) == DPF_OK);
    CU_ASSERT(refused(drain(s, &records, &e), DPF_BAD_STREAM, &e, "cut.gz' does not"));
    file[CIFAR_RECORD] = 10;
    path = put("label", file, 2 * CIFAR_RECORD);
    CU_ASSERT_FATAL(dpf_cifar_open(&path, 1, &s, &e) == DPF_OK);
    CU_ASSERT(refused(drain(s, &records, &e), DPF_BAD_STREAM, &e,
                      "label' has a label outside its 10 classes"));
    path = in_folder("absent");
    CU_ASSERT(refused(dpf_cifar_open(&path, 1, &s, &e), DPF_SYSTEM, &e, "absent"));
    folder_end();
    free(file);
}

/* ---- columns ---- */

static void test_columns_parse(void)
{
    const char text[] =
        "# a table\n"
        "separator ;\nmissing ?\nmissing \"n a\"\n\n"
        "age int 17 90 default 38 # years\n"
        "\"the \"\"sex\"\"\" category F \"not said\" default \"not said\"\n"
        "rank code 3..5\n"
        "\"shape\" real -1.5 2e3\n"
        "class label 0..9\n"
        "shape 5 1\nother drop\n";
    struct dpf_columns c;
    struct dpf_error e = {0};
    size_t value;
    CU_ASSERT_FATAL(dpf_columns_parse(text, strlen(text), "t", &c, &e) == DPF_OK);
    CU_ASSERT(c.count == 5 && c.features == 5 && c.separator == ';');
    CU_ASSERT(c.missing_count == 2 && strcmp(c.missing[1], "n a") == 0);
    CU_ASSERT(c.drop_others && c.header == DPF_HEADER_NAMES && c.shape.rank == 2);
    CU_ASSERT(c.columns[0].has_default && c.columns[0].default_number == 38);
    CU_ASSERT(strcmp(c.columns[1].name, "the \"sex\"") == 0);
    CU_ASSERT(c.columns[1].has_default && c.columns[1].default_value == 1);
    CU_ASSERT(dpf_column_find(&c.columns[2], "5x", 1, &value) && value == 2);
    CU_ASSERT(!dpf_column_find(&c.columns[2], "5x", 2, &value));
    CU_ASSERT(!dpf_column_find(&c.columns[2], "", 0, &value));
    CU_ASSERT(c.columns[3].lo == -1.5 && c.columns[3].hi == 2000);
    CU_ASSERT(c.columns[4].value_count == 10);
    dpf_columns_release(&c);
}

static void test_columns_refused(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a real 0 1\nb\n", "'t' line 2: real, int,"},
        {"a real 0\n", "'t' line 1: column 'a' needs two bounds"},
        {"a real 0 x\n", "needs two bounds"},
        {"a real 1 1\n", "impossible bounds"},
        {"a real 0 1e300\n", "impossible bounds"},
        {"a real 0.1 0.10000000000000002\n", "impossible bounds"},
        {"a int 0 1.5\n", "whole bounds"},
        {"a real 0 1 default 2\n", "default"},
        {"a int 0 9 default 1.5\n", "default"},
        {"a real 0 1 else\n", "'default' and a number"},
        {"a category\n", "column 'a' has no values"},
        {"a category x x\n", "twice"},
        {"a category x y default z\n", "'z' is not among"},
        {"a category 0..99999\n", "more than 65536 values"},
        {"a real 0 1\ny label x default x\n", "cannot have a default"},
        {"a real 0 1\ny target 0 1 default 0\n", "cannot have a default"},
        {"a real 0 1\ny target 0 1\nz label p q\n", "more than one target"},
        {"y label p q\n", "declares no feature"},
        {"a real 0 1\na drop\n", "column 'a' twice"},
        {"a real 0 1\nshape 2\n", "shape 2, but its columns make 1"},
        {"a real 0 1\nd day\n", "YYYY-MM-DD, DD/MM/YYYY, MM/DD/YYYY or number is due"},
        {"a real 0 1\nd day MM-DD-YYYY\n", "or number is due"},
        {"a real 0 1\nd day number from 2016-01-01\n", "or nothing, is due"},
        {"a real 0 1\nd day YYYY-MM-DD from\n", "or nothing, is due"},
        {"a real 0 1\nd day YYYY-MM-DD from 1/1/2016\n", "not a date as YYYY-MM-DD"},
        {"a real 0 1\nd day number\ne day number\n", "more than one day"},
        {"a real 0 1\nu person 7\n", "nothing is due after 'person'"},
        {"a real 0 1\nu person\nv person\n", "two and nothing else make links"},
        {"u person\nv person\nw person\n", "two and nothing else"},
        {"u person\nv person\nd day number\n", "two and nothing else"},
        {"u person\nd day number\n", "declares no feature"},
        {"a real 0 1\nshape 4294967296 4294967296\n", "is not a size"},
        {"header some\n", "'none' or 'skip'"},
        {"separator x\n", "separator"},
        {"\"a real 0 1\n", "'t' line 1: a quote is not closed"},
        {"\"a\"b real 0 1\n", "closing quote"},
        {"", "declares no feature"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dpf_columns c;
        struct dpf_error e = {0};
        enum dpf_status status =
            dpf_columns_parse(cases[i].text, strlen(cases[i].text), "t", &c, &e);
        CU_ASSERT(refused(status, DPF_USAGE, &e, cases[i].message));
    }
}

/* ---- csv ---- */

static struct dpf_columns describe(const char *text)
{
    struct dpf_columns c;
    struct dpf_error e = {0};
    enum dpf_status status = dpf_columns_parse(text, strlen(text), "t", &c, &e);
    CU_ASSERT_FATAL(status == DPF_OK);
    return c;
}

static char noticed[256];

static void notice(void *context, const char *line)
{
    (void)context;
    snprintf(noticed, sizeof noticed, "%s", line);
}

static void check_row(const struct dpf_batch *b, uint64_t row, const double *values,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        CU_ASSERT_DOUBLE_EQUAL(dpf_tensor_get(&b->tensor[0], row * count + i), values[i],
                               1e-6);
}

static void test_csv_values(void)
{
    struct dpf_columns c = describe(
        "missing ?\nage int 17 90 default 38\nsex category F M\n"
        "rank code low mid high\nid drop\nincome real -10 10\nkind label no yes\n");
    const char table[] = "\xef\xbb\xbfkind,id,\"income\",sex,age,rank\r\n"
                         "no,7,1.25,F,20,low\r\n"
                         "yes,\"a,\"\"b\"\"\r\nc\",-1e1, M ,?,\"high\"\r\n"
                         "\r\n"
                         "yes,,99,\"M\",,mid"; /* no line end */
    static const double rows[3][5] = {
        {20, 1, 0, 0, 1.25}, {38, 0, 1, 2, -10}, {38, 0, 1, 1, 10}};
    struct dpf_source *s;
    struct dpf_batch b;
    struct dpf_error e = {0};
    folder_begin();
    noticed[0] = '\0';
    dpf_log_set_sink(notice, NULL);
    const char *path = put_gzip("t.csv", table, strlen(table));
    CU_ASSERT_FATAL(dpf_csv_open(path, &c, NULL, &s, &e) == DPF_OK);
    const struct dpf_field *x = &s->header.fields[0], *y = &s->header.fields[1];
    CU_ASSERT(!s->header.has_records && x->dtype == DPF_F32 && x->shape.dim[0] == 5);
    CU_ASSERT_FATAL(x->feature_count == 5 && x->bounds.count == 5);
    CU_ASSERT_STRING_EQUAL(x->features[2], "sex=M");
    CU_ASSERT_STRING_EQUAL(x->features[3], "rank");
    CU_ASSERT(x->bounds.lo[0] == 17 && x->bounds.hi[1] == 1 && x->bounds.hi[3] == 2);
    CU_ASSERT(y->classes == 2 && y->dtype == DPF_U8 && y->shape.rank == 0);
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 10, &e) == DPF_OK);
    CU_ASSERT_FATAL(b.rows == 3);
    for (uint64_t i = 0; i < 3; i++)
        check_row(&b, i, rows[i], 5);
    CU_ASSERT(dpf_tensor_get(&b.tensor[1], 0) == 0);
    CU_ASSERT(dpf_tensor_get(&b.tensor[1], 2) == 1);
    CU_ASSERT_STRING_EQUAL(noticed,
                           "1 value was outside its declared bounds and was clipped");
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    dpf_log_set_sink(NULL, NULL);
    dpf_columns_release(&c);
    folder_end();
}

/* Whole numbers within a byte become bytes; bounds hold for floats, too. */
static void test_csv_types(void)
{
    struct dpf_columns bytes =
        describe("header none\nseparator space\na int 0 16\nb int 0 255\nshape 2 1\n");
    struct dpf_columns tight = describe("a real 0.1 0.7\ny target -0.3 0.3\n");
    struct dpf_source *s;
    struct dpf_batch b;
    struct dpf_error e = {0};
    folder_begin();
    dpf_log_set_sink(notice, NULL);
    const char *path = put_text("b", "1  2\n 16 255 \n17.0 -4\n");
    CU_ASSERT_FATAL(dpf_csv_open(path, &bytes, NULL, &s, &e) == DPF_OK);
    CU_ASSERT(s->header.fields[0].dtype == DPF_U8 && s->header.fields[0].shape.rank == 2);
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 10, &e) == DPF_OK);
    CU_ASSERT_FATAL(b.rows == 3);
    CU_ASSERT(memcmp(b.tensor[0].data, "\1\2\20\377\20\0", 6) == 0);
    CU_ASSERT_STRING_EQUAL(
        noticed, "2 values were outside their declared bounds and were clipped");
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    path = put_text("f", "y,a\n0.3,0.1\n-.3,+.7\n");
    CU_ASSERT_FATAL(dpf_csv_open(path, &tight, NULL, &s, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 10, &e) == DPF_OK);
    CU_ASSERT_FATAL(b.rows == 2);
    CU_ASSERT(dpf_tensor_get(&b.tensor[0], 0) >= 0.1);
    CU_ASSERT(dpf_tensor_get(&b.tensor[0], 1) <= 0.7);
    CU_ASSERT(dpf_tensor_get(&b.tensor[1], 0) <= 0.3);
    CU_ASSERT(dpf_tensor_get(&b.tensor[1], 1) >= -0.3);
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    dpf_log_set_sink(NULL, NULL);
    dpf_columns_release(&bytes);
    dpf_columns_release(&tight);
    folder_end();
}

/* The short way of reading numbers agrees with the C library's, bit for bit. */
static void test_csv_numbers(void)
{
    static const char *const numbers[] = {
        "0",
        "-0",
        "1",
        "0.1",
        ".5",
        "5.",
        "-17.25",
        "1e3",
        "+2.5",
        "0.30",
        "3e-2",
        "1E+2",
        "123456789",
        "9007199254740993",
        "0.000000000000001",
        "2026.1939999999997",
        "0.1234567890123456789",
    };
    struct dpf_columns c = describe("header none\na real -1e9 1e17\n");
    struct dpf_source *s;
    struct dpf_batch b;
    struct dpf_error e = {0};
    enum { COUNT = sizeof numbers / sizeof *numbers };
    struct dpf_text table = {0};
    folder_begin();
    for (size_t i = 0; i < COUNT; i++)
        dpf_text_addf(&table, "%s\n", numbers[i]);
    const char *path = put_text("n", dpf_text_get(&table));
    CU_ASSERT_FATAL(dpf_csv_open(path, &c, NULL, &s, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_source_next(s, &b, COUNT + 1, &e) == DPF_OK);
    CU_ASSERT_FATAL(b.rows == COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        float due = (float)strtod(numbers[i], NULL);
        CU_ASSERT(memcmp((float *)b.tensor[0].data + i, &due, sizeof due) == 0);
    }
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    dpf_columns_release(&c);
    dpf_text_release(&table);
    folder_end();
}

static enum dpf_status read_csv(const char *path, const struct dpf_columns *c,
                                const struct dpf_csv_limits *limits, struct dpf_error *e)
{
    struct dpf_source *s;
    uint64_t records;
    enum dpf_status status = dpf_csv_open(path, c, limits, &s, e);
    return status == DPF_OK ? drain(s, &records, e) : status;
}

static void test_csv_refused(void)
{
    static const struct {
        const char *table, *message;
    } cases[] = {
        {"age,sex,y\n1,F,p\n2,F\n", "t.csv' line 3 has 2 fields, 3 are expected"},
        {"age,sex,y\n1,F,p,\n", "line 2 has 4 fields"},
        {"age,sex,y\nsecret,F,p\n", "t.csv' line 2: column 'age' is not a number"},
        {"age,sex,y\n\"x\n\n\",F,p\n", "line 2: column 'age' is not a number"},
        {"age,sex,y\n1,\"M\nsecret\",p\n\n2,M,p\n", "line 2: column 'sex' has a value"},
        {"age,sex,y\n1,\"M\",p\n\n\nsecret,M,p\n", "line 5: column 'age'"},
        {"age,sex,y\nnan,F,p\n", "is not a number"},
        {"age,sex,y\ninf,F,p\n", "is not a number"},
        {"age,sex,y\n0x10,F,p\n", "is not a number"},
        {"age,sex,y\n1.5,F,p\n", "is not a whole number"},
        {"age,sex,y\n,F,p\n", "line 2: column 'age' is missing and has no default"},
        {"age,sex,y\n?,F,p\n", "column 'age' is missing"},
        {"age,sex,y\n1,secret,p\n", "column 'sex' has a value that is not declared"},
        {"age,sex,y\n1,F,secret\n", "column 'y' has a value that is not declared"},
        {"age,sex,y\n1,F,?\n", "column 'y' is missing"},
        {"age,sex,y\n1,\"F,p\n", "line 2: a quote is not closed"},
        {"age,sex,y\n1,F\"M\",p\n", "line 2: a quote stands where none is due"},
        {"age,sex,y\n1,\"F\"M,p\n", "line 2: a quote stands where none is due"},
        {"age,sex\n1,F\n", "t.csv' has no column 'y'"},
        {"age,sex,y,more\n", "t.csv' has the column 'more', which 't' does not mention"},
        {"age,sex,age,y\n", "has the column 'age' twice"},
        {"secret,1,2\n", "line 1: this is not the header line"},
        {"", "t.csv' has no header line"},
    };
    struct dpf_columns c =
        describe("missing ?\nage int 0 99\nsex category F M\ny label p q\n");
    folder_begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dpf_error e = {0};
        enum dpf_status status =
            read_csv(put_text("t.csv", cases[i].table), &c, NULL, &e);
        CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, cases[i].message));
        CU_ASSERT(strstr(e.message, "secret") == NULL);
    }
    dpf_columns_release(&c);
    folder_end();
}

static void test_csv_limits(void)
{
    static const struct dpf_csv_limits tight = {.line_bytes = 20, .fields = 3};
    enum { LONG = (1 << 20) + 1 };
    struct dpf_error e = {0};
    char *line = malloc(LONG + 2);
    CU_ASSERT_FATAL(line != NULL);
    folder_begin();
    const char *path = put_text("fits", "a,b\n12345678,123456789.0\n");
    CU_ASSERT(read_csv(path, NULL, &tight, &e) == DPF_OK);
    path = put_text("long", "a,b\n12345678,123456789.012\n");
    CU_ASSERT(refused(read_csv(path, NULL, &tight, &e), DPF_BAD_STREAM, &e,
                      "long' line 2 is longer than 20 bytes"));
    path = put_text("wide", "a,b,c,d\n");
    CU_ASSERT(refused(read_csv(path, NULL, &tight, &e), DPF_BAD_STREAM, &e,
                      "wide' line 1: too many fields"));
    path = put("nul", "a,b\n1,\0002\n", 9);
    CU_ASSERT(refused(read_csv(path, NULL, NULL, &e), DPF_BAD_STREAM, &e,
                      "nul' line 2: a NUL byte"));
    memset(line, '1', LONG + 2);
    memcpy(line, "a\n", 2);
    path = put("huge", line, LONG + 1); /* a line of 1 MiB is not too long */
    CU_ASSERT(
        refused(read_csv(path, NULL, NULL, &e), DPF_BAD_STREAM, &e, "not a number"));
    memset(line, '1', LONG + 2);
    line[0] = '"';
    path = put("quote", line, LONG + 2);
    CU_ASSERT(refused(read_csv(path, NULL, NULL, &e), DPF_BAD_STREAM, &e,
                      "quote' line 1 is longer than 1048576 bytes"));
    folder_end();
    free(line);
}

static void test_csv_without_columns(void)
{
    struct dpf_source *s;
    struct dpf_batch b;
    struct dpf_error e = {0};
    folder_begin();
    const char *path = put_text("t", "height,\"the weight\"\n1.5,-2\n3,4\n");
    CU_ASSERT_FATAL(dpf_csv_open(path, NULL, NULL, &s, &e) == DPF_OK);
    CU_ASSERT_FATAL(s->header.field_count == 1 && s->header.fields[0].feature_count == 2);
    CU_ASSERT(s->header.fields[0].bounds.count == 0);
    CU_ASSERT_STRING_EQUAL(s->header.fields[0].features[1], "the weight");
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 10, &e) == DPF_OK);
    CU_ASSERT(b.rows == 2 && dpf_tensor_get(&b.tensor[0], 1) == -2);
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    path = put_text("t", "1,2\n3,4\n");
    CU_ASSERT(refused(read_csv(path, NULL, NULL, &e), DPF_BAD_STREAM, &e,
                      "has numbers, not names"));
    path = put_text("t", "a,b\n3,1e39\n");
    CU_ASSERT(refused(read_csv(path, NULL, NULL, &e), DPF_BAD_STREAM, &e, "too large"));
    folder_end();
}

/* ---- npy ---- */

/* A version 1 file: the dictionary, then `size` bytes of elements. */
static struct dpf_buffer npy_make(const char *dict, const void *data, size_t size)
{
    struct dpf_buffer b = {0};
    size_t length = strlen(dict) + 1;
    unsigned char start[10] = "\x93NUMPY\1";
    start[8] = (unsigned char)length;
    start[9] = (unsigned char)(length >> 8);
    dpf_buffer_append(&b, start, sizeof start);
    dpf_buffer_append(&b, dict, length - 1);
    dpf_buffer_append(&b, "\n", 1);
    dpf_buffer_append(&b, data, size);
    CU_ASSERT_FATAL(dpf_buffer_ok(&b));
    return b;
}

static enum dpf_status read_npy(const char *dict, const void *data, size_t size,
                                uint64_t *records, struct dpf_error *e)
{
    struct dpf_buffer file = npy_make(dict, data, size);
    struct dpf_source *s;
    const char *path = put("t.npy", file.data, file.size);
    enum dpf_status status = dpf_npy_open(path, 0, &s, e);
    dpf_buffer_release(&file);
    return status == DPF_OK ? drain(s, records, e) : status;
}

static void test_npy_values(void)
{
    static const float values[6] = {1, -2, 3.5f, 4, 5, 6};
    struct dpf_buffer file = npy_make(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }", values, 24);
    struct dpf_source *s;
    struct dpf_batch b;
    struct dpf_error e = {0};
    folder_begin();
    const char *path = put("t.npy", file.data, file.size);
    CU_ASSERT_FATAL(dpf_npy_open(path, 10, &s, &e) == DPF_OK);
    CU_ASSERT(s->header.has_records && s->header.records == 3);
    CU_ASSERT_STRING_EQUAL(s->header.fields[0].name, "x");
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 10, &e) == DPF_OK);
    CU_ASSERT(b.rows == 3 && memcmp(b.tensor[0].data, values, sizeof values) == 0);
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    dpf_buffer_release(&file);
    folder_end();
}

static void test_npy_dictionaries(void)
{
    static const struct {
        const char *dict, *message; /* NULL: good */
    } cases[] = {
        {"{\"shape\":(2,),\"descr\":\"|u1\",\"fortran_order\":False}", NULL},
        {"{'descr':'|b1','fortran_order':False,'shape':(2,1,1)}   ", NULL},
        {"{'descr':'|u1','fortran_order':False,'shape':(3,)}", "t.npy' ends early"},
        {"{'descr':'|u1','fortran_order':False,'shape':(1,)}",
         "has bytes after its data"},
        {"{'descr':'|u1','fortran_order':True,'shape':(2,)}", "Fortran order"},
        {"{'descr':'>f4','fortran_order':False,'shape':(2,)}", "big-endian"},
        {"{'descr':'|O','fortran_order':False,'shape':(2,)}", "Python objects"},
        {"{'descr':'<f2','fortran_order':False,'shape':(1,)}", "dtype '<f2'"},
        {"{'descr':[('a','<f4')],'fortran_order':False,'shape':(2,)}", "structured"},
        {"{'descr':'|u1','fortran_order':False,'shape':()}", "without records"},
        {"{'descr':'|u1','fortran_order':False,'shape':(2)}", "malformed"},
        {"{'descr':'|u1','fortran_order':False,'shape':(-2,)}", "malformed"},
        {"{'descr':'|u1','fortran_order':False,'shape':(2,0)}", "size 0"},
        {"{'descr':'|u1','fortran_order':False,'shape':(2,1,1,1,1,1,1,1,1)}",
         "dimensions"},
        {"{'descr':'|u1','fortran_order':False,'shape':(2,99999999999)}", "larger than"},
        {"{'descr':'|u1','fortran_order':False,'shape':(99999999999999999999,)}",
         "malformed"},
        {"{'descr':'<f8','fortran_order':False,'shape':(9223372036854775807,)}",
         "ends early"},
        {"{'descr':'|u1','fortran_order':False}", "malformed"},
        {"{'descr':'|u1','descr':'|u1','fortran_order':False,'shape':(2,)}", "malformed"},
        {"{'descr':'|u1','fortran_order':False,'shape':(2,),'x':1}", "malformed"},
        {"{'descr':'|u1' 'fortran_order':False,'shape':(2,)}", "malformed"},
        {"{'descr':'|u1','fortran_order':False,'shape':(2,)}x", "malformed"},
        {"{'descr':'|u1','fortran_order':False,'shape':(2,)", "malformed"},
        {"", "malformed"},
    };
    folder_begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dpf_error e = {0};
        uint64_t records = 0;
        enum dpf_status status = read_npy(cases[i].dict, "\1\0", 2, &records, &e);
        if (cases[i].message)
            CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, cases[i].message))
        else
            CU_ASSERT(status == DPF_OK && records == 2);
    }
    folder_end();
}

static void test_npy_refused(void)
{
    static const double nan_value[1] = {NAN};
    static const char plain[] = "{'descr':'<f8','fortran_order':False,'shape':(1,)}";
    struct dpf_error e = {0};
    struct dpf_source *s;
    uint64_t records;
    folder_begin();
    CU_ASSERT(refused(read_npy(plain, nan_value, 8, &records, &e), DPF_BAD_STREAM, &e,
                      "t.npy' has a value that is not finite"));
    CU_ASSERT(refused(read_npy("{'descr':'|b1','fortran_order':False,'shape':(1,)}", "\2",
                               1, &records, &e),
                      DPF_BAD_STREAM, &e, "truth value"));
    CU_ASSERT(refused(dpf_npy_open(put_text("m", "\x93NUMPX\1"), 0, &s, &e),
                      DPF_BAD_STREAM, &e, "ends early, in its header"));
    CU_ASSERT(refused(dpf_npy_open(put("v", "\x93NUMPY\4\0aaaa", 12), 0, &s, &e),
                      DPF_BAD_STREAM, &e, "npy version 4.0"));
    CU_ASSERT(
        refused(dpf_npy_open(put("h", "\x93NUMPY\2\0\377\377\377\377", 12), 0, &s, &e),
                DPF_BAD_STREAM, &e, "larger than 64 KiB"));
    CU_ASSERT(dpf_npy_open(in_folder("absent"), 0, &s, &e) == DPF_SYSTEM);
    folder_end();
}

/* ---- npz ---- */

struct zip {
    struct dpf_buffer file, directory;
    unsigned count;
};

static void little(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

/* A member whose sizes stand in a zip64 field, as numpy writes large ones. */
static void zip_add(struct zip *z, const char *name, const struct dpf_buffer *content,
                    bool deflated)
{
    unsigned char local[30] = "PK\3\4", entry[46] = "PK\1\2", extra[20] = {1, 0, 16};
    struct dpf_buffer packed = {0};
    if (deflated)
        packed = gzip(content->data, content->size, -15);
    else
        dpf_buffer_append(&packed, content->data, content->size);
    little(local + 26, strlen(name), 2);
    little(entry + 10, deflated ? 8 : 0, 2);
    little(entry + 16, crc32(0, content->data, (uInt)content->size), 4);
    little(entry + 20, 0xffffffff, 4);
    little(entry + 24, 0xffffffff, 4);
    little(entry + 28, strlen(name), 2);
    little(entry + 30, sizeof extra, 2);
    little(entry + 42, z->file.size, 4);
    little(extra + 4, content->size, 8);
    little(extra + 12, packed.size, 8);
    dpf_buffer_append(&z->file, local, sizeof local);
    dpf_buffer_append(&z->file, name, strlen(name));
    dpf_buffer_append(&z->file, packed.data, packed.size);
    dpf_buffer_append(&z->directory, entry, sizeof entry);
    dpf_buffer_append(&z->directory, name, strlen(name));
    dpf_buffer_append(&z->directory, extra, sizeof extra);
    z->count++;
    dpf_buffer_release(&packed);
}

static const char *zip_finish(struct zip *z)
{
    unsigned char end[22] = "PK\5\6";
    little(end + 8, z->count, 2);
    little(end + 10, z->count, 2);
    little(end + 12, z->directory.size, 4);
    little(end + 16, z->file.size, 4);
    dpf_buffer_append(&z->file, z->directory.data, z->directory.size);
    dpf_buffer_append(&z->file, end, sizeof end);
    CU_ASSERT_FATAL(dpf_buffer_ok(&z->file) && dpf_buffer_ok(&z->directory));
    return put("t.npz", z->file.data, z->file.size);
}

static void zip_release(struct zip *z)
{
    dpf_buffer_release(&z->file);
    dpf_buffer_release(&z->directory);
    *z = (struct zip){0};
}

static const char npz_x[] = "{'descr':'|u1','fortran_order':False,'shape':(3,2)}";
static const char npz_y[] = "{'descr':'<i4','fortran_order':False,'shape':(3,)}";
static const int32_t npz_labels[3] = {2, 0, 1};

static const char *npz_make(struct zip *z, const char *y_dict, const char *y_name)
{
    struct dpf_buffer x = npy_make(npz_x, "abcdef", 6);
    struct dpf_buffer y = npy_make(y_dict, npz_labels, sizeof npz_labels);
    zip_add(z, "x.npy", &x, true);
    zip_add(z, y_name, &y, false);
    dpf_buffer_release(&x);
    dpf_buffer_release(&y);
    return zip_finish(z);
}

static void test_npz_values(void)
{
    struct zip z = {0};
    struct dpf_source *s;
    struct dpf_batch b;
    struct dpf_error e = {0};
    folder_begin();
    const char *path = npz_make(&z, npz_y, "y.npy");
    CU_ASSERT_FATAL(dpf_npy_open(path, 0, &s, &e) == DPF_OK);
    CU_ASSERT(s->header.fields[1].classes == 0);
    dpf_source_destroy(&s);
    CU_ASSERT_FATAL(dpf_npy_open(path, 3, &s, &e) == DPF_OK);
    CU_ASSERT_FATAL(s->header.field_count == 2 && s->header.records == 3);
    CU_ASSERT_STRING_EQUAL(s->header.fields[1].name, "y");
    CU_ASSERT(s->header.fields[0].bounds.count == 1 && s->header.fields[1].classes == 3);
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 10, &e) == DPF_OK);
    CU_ASSERT(b.rows == 3 && memcmp(b.tensor[0].data, "abcdef", 6) == 0);
    CU_ASSERT(memcmp(b.tensor[1].data, npz_labels, sizeof npz_labels) == 0);
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    zip_release(&z);
    folder_end();
}

static enum dpf_status read_npz(const char *path, uint64_t classes, struct dpf_error *e)
{
    struct dpf_source *s;
    uint64_t records;
    enum dpf_status status = dpf_npy_open(path, classes, &s, e);
    return status == DPF_OK ? drain(s, &records, e) : status;
}

static void test_npz_refused(void)
{
    struct zip z = {0};
    struct dpf_error e = {0};
    folder_begin();
    const char *path = npz_make(&z, npz_y, "y.npy");
    CU_ASSERT(refused(read_npz(path, 2, &e), DPF_BAD_STREAM, &e,
                      "t.npz:y' has a label outside its 2 classes"));
    unsigned char *label = z.file.data + z.file.size - z.directory.size - 22 - 1;
    *label ^= 1; /* the last byte of the last label: only the CRC knows */
    path = put("t.npz", z.file.data, z.file.size);
    CU_ASSERT(refused(read_npz(path, 0, &e), DPF_BAD_STREAM, &e, "t.npz:y' is damaged"));
    *label ^= 1;
    for (size_t cut = 4; cut < z.file.size; cut++) {
        path = put("cut", z.file.data, cut);
        CU_ASSERT(refused(read_npz(path, 0, &e), DPF_BAD_STREAM, &e, "damaged zip"));
    }
    zip_release(&z);
    path = npz_make(&z, "{'descr':'<i4','fortran_order':False,'shape':(1,3)}", "y.npy");
    CU_ASSERT(refused(read_npz(path, 0, &e), DPF_BAD_STREAM, &e,
                      "t.npz:y' has 1 records, 3 are expected"));
    zip_release(&z);
    path = npz_make(&z, npz_y, "x.npy");
    CU_ASSERT(
        refused(read_npz(path, 0, &e), DPF_BAD_STREAM, &e, "t.npz:x' is there twice"));
    zip_release(&z);
    path = npz_make(&z, npz_y, "y.txt");
    CU_ASSERT(refused(read_npz(path, 0, &e), DPF_BAD_STREAM, &e, "not NAME.npy"));
    zip_release(&z);
    folder_end();
}

/* Every byte of the directory changed in turn: refused or read, never worse. */
static void test_npz_spoiled(void)
{
    struct zip z = {0};
    folder_begin();
    npz_make(&z, npz_y, "y.npy");
    size_t start = z.file.size - z.directory.size - 22;
    for (size_t i = start; i < z.file.size; i++) {
        struct dpf_error e = {0};
        z.file.data[i] ^= 0xff;
        enum dpf_status status = read_npz(put("t.npz", z.file.data, z.file.size), 3, &e);
        CU_ASSERT(status == DPF_OK || status == DPF_BAD_STREAM);
        z.file.data[i] ^= 0xff;
    }
    zip_release(&z);
    folder_end();
}

/* ---- nifti ---- */

enum { NIFTI_OFFSET = 352 };

static struct nifti_1_header nifti_head(short datatype, short bits)
{
    struct nifti_1_header h = {.sizeof_hdr = 348,
                               .dim = {3, 2, 3, 1, 1, 1, 1, 1},
                               .datatype = datatype,
                               .bitpix = bits,
                               .vox_offset = NIFTI_OFFSET,
                               .magic = "n+1"};
    return h;
}

static const char *put_nifti(const char *name, const struct nifti_1_header *h,
                             const void *data, size_t size, bool packed)
{
    struct dpf_buffer b = {0};
    dpf_buffer_append(&b, h, sizeof *h);
    dpf_buffer_append(&b, "\0\0\0\0", 4);
    dpf_buffer_append(&b, data, size);
    CU_ASSERT_FATAL(dpf_buffer_ok(&b));
    const char *path =
        packed ? put_gzip(name, b.data, b.size) : put(name, b.data, b.size);
    dpf_buffer_release(&b);
    return path;
}

static void test_nifti_values(void)
{
    static const int16_t voxels[12] = {0, 1, 2, 3, 4, 5, -6, 7, 8, 9, 10, 11};
    static const uint8_t labels[6] = {0, 1, 2, 0, 1, 2};
    struct nifti_1_header h = nifti_head(DT_INT16, 16), m = nifti_head(DT_UINT8, 8);
    const char *images[2], *masks[2];
    struct dpf_source *s;
    struct dpf_batch b;
    struct dpf_error e = {0};
    folder_begin();
    h.dim[0] = 4;
    h.dim[4] = 2;
    h.scl_slope = 2;
    h.scl_inter = 1;
    images[0] = put_nifti("a.nii.gz", &h, voxels, sizeof voxels, true);
    masks[0] = masks[1] = put_nifti("m.nii", &m, labels, sizeof labels, false);
    h.scl_slope = 0;
    images[1] = put_nifti("b.nii", &h, voxels, sizeof voxels, false);
    CU_ASSERT_FATAL(dpf_nifti_open(images, 2, masks, 3, &s, &e) == DPF_OK);
    const struct dpf_field *x = &s->header.fields[0], *mask = &s->header.fields[1];
    CU_ASSERT(s->header.records == 2 && x->shape.rank == 4 && x->shape.dim[0] == 2);
    CU_ASSERT(x->shape.dim[1] == 1 && x->shape.dim[2] == 3 && x->shape.dim[3] == 2);
    CU_ASSERT(mask->shape.rank == 3 && mask->classes == 3 && mask->dtype == DPF_U8);
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 5, &e) == DPF_OK);
    CU_ASSERT_FATAL(b.rows == 2);
    for (uint64_t i = 0; i < 12; i++) {
        CU_ASSERT(dpf_tensor_get(&b.tensor[0], i) == voxels[i] * 2 + 1);
        CU_ASSERT(dpf_tensor_get(&b.tensor[0], 12 + i) == voxels[i]);
        CU_ASSERT(dpf_tensor_get(&b.tensor[1], i) == labels[i % 6]);
    }
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    folder_end();
}

/* The types of voxels, in the byte order of either kind of machine. */
static void test_nifti_types(void)
{
    static const unsigned char big[348] = {
        [2] = 1,     [3] = 0x5c,  [41] = 3,   [43] = 2,     [45] = 1,
        [47] = 1,    [71] = 16,   [73] = 32,  [108] = 0x43, [109] = 0xb0,
        [344] = 'n', [345] = '+', [346] = '1'};
    static const unsigned char voxels[8] = {0x3f, 0xc0, 0, 0, 0xc0, 0x20, 0, 0};
    struct nifti_1_header h;
    const char *path;
    struct dpf_source *s;
    struct dpf_batch b;
    struct dpf_error e = {0};
    folder_begin();
    memcpy(&h, big, sizeof h);
    path = put_nifti("big.nii", &h, voxels, sizeof voxels, false);
    CU_ASSERT_FATAL(dpf_nifti_open(&path, 1, NULL, 0, &s, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 5, &e) == DPF_OK);
    CU_ASSERT(b.rows == 1 && dpf_tensor_get(&b.tensor[0], 0) == 1.5);
    CU_ASSERT(dpf_tensor_get(&b.tensor[0], 1) == -2.5);
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    folder_end();
}

static enum dpf_status read_nifti(const struct nifti_1_header *h, const void *data,
                                  size_t size, struct dpf_error *e)
{
    struct dpf_source *s;
    uint64_t records;
    const char *path = put_nifti("bad.nii", h, data, size, false);
    enum dpf_status status = dpf_nifti_open(&path, 1, NULL, 0, &s, e);
    return status == DPF_OK ? drain(s, &records, e) : status;
}

static void check_bad_nifti(const struct nifti_1_header *h, const char *text)
{
    static const uint8_t voxels[6] = {0};
    struct dpf_error e = {0};
    CU_ASSERT(
        refused(read_nifti(h, voxels, sizeof voxels, &e), DPF_BAD_STREAM, &e, text));
}

static void test_nifti_headers(void)
{
    const struct nifti_1_header good = nifti_head(DT_UINT8, 8);
    struct nifti_1_header h = good;
    folder_begin();
    h.sizeof_hdr = 540;
    check_bad_nifti(&h, "bad.nii' is not a NIfTI-1 file");
    h = good;
    h.magic[1] = 'i';
    check_bad_nifti(&h, "half of a .hdr and .img pair");
    h.magic[1] = 'x';
    check_bad_nifti(&h, "is not a NIfTI-1 file");
    h = good;
    h.dim[0] = 2;
    check_bad_nifti(&h, "3 or 4 dimensions");
    h.dim[0] = 300;
    check_bad_nifti(&h, "3 or 4 dimensions");
    h = good;
    h.dim[2] = -1;
    check_bad_nifti(&h, "3 or 4 dimensions");
    h.dim[2] = 4097;
    check_bad_nifti(&h, "3 or 4 dimensions");
    h.dim[1] = h.dim[2] = h.dim[3] = 4096;
    check_bad_nifti(&h, "larger than 1 GiB");
    h.dim[3] = 1;
    check_bad_nifti(&h, "ends early");
    h = nifti_head(DT_COMPLEX64, 64);
    check_bad_nifti(&h, "voxels");
    h = nifti_head(DT_UINT8, 16);
    check_bad_nifti(&h, "voxels");
    h = good;
    h.vox_offset = 100;
    check_bad_nifti(&h, "impossible place");
    h.vox_offset = NAN;
    check_bad_nifti(&h, "impossible place");
    h.vox_offset = 1e30f;
    check_bad_nifti(&h, "impossible place");
    h.vox_offset = 353;
    check_bad_nifti(&h, "ends early");
    h = good;
    h.dim[2] = 2;
    check_bad_nifti(&h, "has bytes after its data");
    folder_end();
}

static void test_nifti_refused(void)
{
    static const float values[6] = {0, 1, 2, 3, NAN, 5};
    static const double large[6] = {1e300};
    static const float fraction[6] = {0, 1, .5f, 0, 0, 0};
    struct nifti_1_header f = nifti_head(DT_FLOAT32, 32), d = nifti_head(DT_FLOAT64, 64);
    struct dpf_error e = {0};
    struct dpf_source *s;
    const char *images[2], *mask;
    uint64_t records;
    folder_begin();
    CU_ASSERT(refused(read_nifti(&f, values, sizeof values, &e), DPF_BAD_STREAM, &e,
                      "not finite"));
    CU_ASSERT(refused(read_nifti(&d, large, sizeof large, &e), DPF_BAD_STREAM, &e,
                      "not finite"));
    images[0] = put_nifti("one.nii", &f, fraction, sizeof fraction, true);
    mask = put_nifti("mask.nii", &f, fraction, sizeof fraction, false);
    CU_ASSERT_FATAL(dpf_nifti_open(images, 1, &mask, 2, &s, &e) == DPF_OK);
    CU_ASSERT(refused(drain(s, &records, &e), DPF_BAD_STREAM, &e,
                      "mask.nii' has a label outside its 2 classes"));
    f.dim[1] = 3;
    f.dim[2] = 2;
    images[1] = put_nifti("two.nii", &f, fraction, sizeof fraction, true);
    CU_ASSERT_FATAL(dpf_nifti_open(images, 2, NULL, 0, &s, &e) == DPF_OK);
    CU_ASSERT(refused(drain(s, &records, &e), DPF_BAD_STREAM, &e,
                      "two.nii' has dimensions 1x1x2x3, 1x1x3x2 are expected"));
    CU_ASSERT(dpf_nifti_open(images, 0, NULL, 0, &s, &e) == DPF_USAGE);
    CU_ASSERT(dpf_nifti_open(images, 1, &mask, 257, &s, &e) == DPF_USAGE);
    folder_end();
}

const char dpf_suite[] = "readers";

const struct dpf_test dpf_tests[] = {
    {"bytes are the same plain, gzip and xz", test_bytes_content},
    {"bytes in small pieces", test_bytes_small_pieces},
    {"gzip cut anywhere ends early", test_bytes_cut},
    {"xz cut anywhere ends early", test_bytes_cut_xz},
    {"damaged and missing files", test_bytes_damaged},
    {"idx values", test_idx_values},
    {"idx big-endian floats", test_idx_big_endian},
    {"idx refused", test_idx_refused},
    {"idx that lies about its size", test_idx_lies},
    {"cifar values", test_cifar_values},
    {"cifar refused", test_cifar_refused},
    {"columns parsed", test_columns_parse},
    {"columns refused", test_columns_refused},
    {"csv values", test_csv_values},
    {"csv types", test_csv_types},
    {"csv numbers", test_csv_numbers},
    {"csv refused", test_csv_refused},
    {"csv limits", test_csv_limits},
    {"csv without columns", test_csv_without_columns},
    {"npy values", test_npy_values},
    {"npy dictionaries", test_npy_dictionaries},
    {"npy refused", test_npy_refused},
    {"npz values", test_npz_values},
    {"npz refused", test_npz_refused},
    {"npz with a spoiled directory", test_npz_spoiled},
    {"nifti values", test_nifti_values},
    {"nifti big-endian floats", test_nifti_types},
    {"nifti headers refused", test_nifti_headers},
    {"nifti refused", test_nifti_refused},
    {0},
};
