/* Volumes of a decathlon task: every orientation, sizes cut and padded, scaling by a
 * volume's own numbers, lists that lie. */
#include <dirent.h>
#include <math.h>
#include <nifti/nifti1.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/formats.h"
#include "data/volume.h"
#include "harness.h"

enum { X = 3, Y = 4, Z = 5, VOXELS = X * Y * Z };
static const int sizes[3] = {X, Y, Z};
static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[4][160];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", folder, name);
    return out;
}

static void put(const char *name, const void *bytes, size_t size, const void *more,
                size_t more_size)
{
    FILE *f = fopen(in_folder(name), "wb");
    CU_ASSERT_FATAL(f != NULL);
    CU_ASSERT(fwrite(bytes, 1, size, f) == size);
    CU_ASSERT(more_size == 0 || fwrite(more, 1, more_size, f) == more_size);
    CU_ASSERT(fclose(f) == 0);
}

static struct nifti_1_header head(const int dims[3], int channels, short datatype,
                                  short bits)
{
    struct nifti_1_header h = {.sizeof_hdr = 348,
                               .dim = {4, 1, 1, 1, 1, 1, 1, 1},
                               .datatype = datatype,
                               .bitpix = bits,
                               .pixdim = {1, 1, 1, 1, 1, 1, 1, 1},
                               .vox_offset = 352};
    for (int d = 0; d < 3; d++)
        h.dim[1 + d] = (short)dims[d];
    h.dim[4] = (short)channels;
    memcpy(h.magic, "n+1", 4);
    return h;
}

static void put_volume(const char *name, const struct nifti_1_header *h, const void *data,
                       size_t size)
{
    char all[352] = {0};
    memcpy(all, h, sizeof *h);
    put(name, all, sizeof all, data, size);
}

static void begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/dpflow-msd-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
    CU_ASSERT_FATAL(mkdir(in_folder("imagesTr"), 0700) == 0 &&
                    mkdir(in_folder("labelsTr"), 0700) == 0);
}

static void remove_all(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char one[512];
        snprintf(one, sizeof one, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.')
            unlink(one);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

static void end(void)
{
    remove_all(in_folder("imagesTr"));
    remove_all(in_folder("labelsTr"));
    remove_all(folder);
}

/* ------------------------------------------------------------------------ orientation */

/* A voxel's value tells where in the patient it is: rightmost, foremost, highest. */
static float value_at(const int p[3])
{
    return (float)(1 + p[0] + 10 * p[1] + 100 * p[2]);
}

/* Store the patient with axis d of the file along axis of[d], backwards if back[d]. */
static void store(const int of[3], const int back[3], const char *name, bool sform)
{
    float data[VOXELS];
    int dims[3], at[3], i = 0;
    for (int d = 0; d < 3; d++)
        dims[d] = sizes[of[d]];
    for (at[2] = 0; at[2] < dims[2]; at[2]++)
        for (at[1] = 0; at[1] < dims[1]; at[1]++)
            for (at[0] = 0; at[0] < dims[0]; at[0]++) {
                int p[3];
                for (int d = 0; d < 3; d++)
                    p[of[d]] = back[d] ? dims[d] - 1 - at[d] : at[d];
                data[i++] = value_at(p);
            }
    struct nifti_1_header h = head(dims, 1, DT_FLOAT32, 32);
    float *rows[3] = {h.srow_x, h.srow_y, h.srow_z};
    h.sform_code = sform;
    for (int d = 0; d < 3; d++)
        rows[of[d]][d] = back[d] ? -1.5F : 1.5F;
    put_volume(name, &h, data, sizeof data);
}

/* Whether the file comes out with x to the right, y to the front and z up. */
static bool is_upright(const char *name)
{
    struct dpf_volume v;
    float out[VOXELS];
    if (dpf_volume_open(&v, in_folder(name), NULL) != DPF_OK)
        return false;
    bool good = v.shape.rank == 4 && v.shape.dim[0] == 1 && v.shape.dim[1] == Z &&
                v.shape.dim[2] == Y && v.shape.dim[3] == X &&
                dpf_volume_read(&v, out, NULL) == DPF_OK;
    for (int i = 0; good && i < VOXELS; i++)
        good = out[i] == value_at((int[]){i % X, i / X % Y, i / X / Y});
    dpf_volume_release(&v);
    return good;
}

static void test_orientations(void)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    begin();
    for (int o = 0; o < 6; o++)
        for (int flips = 0; flips < 8; flips++) {
            const int back[3] = {flips & 1, flips >> 1 & 1, flips >> 2 & 1};
            store(orders[o], back, "v.nii", true);
            CU_ASSERT(is_upright("v.nii"));
        }
    /* without one, a file stays as it is stored */
    store(orders[0], (int[]){0, 0, 0}, "v.nii", false);
    CU_ASSERT(is_upright("v.nii"));
    store(orders[0], (int[]){1, 0, 0}, "v.nii", false);
    CU_ASSERT(!is_upright("v.nii"));
    end();
}

/* A half turn about z is the quaternion (0, 0, 0, 1): x and y go back. */
static void test_quaternions(void)
{
    float data[VOXELS];
    begin();
    for (int i = 0; i < VOXELS; i++)
        data[i] = value_at((int[]){X - 1 - i % X, Y - 1 - i / X % Y, i / X / Y});
    struct nifti_1_header h = head(sizes, 1, DT_FLOAT32, 32);
    h.qform_code = 1;
    h.quatern_d = 1;
    put_volume("q.nii", &h, data, sizeof data);
    CU_ASSERT(is_upright("q.nii"));
    h.sform_code = 1; /* counts more */
    h.srow_x[0] = h.srow_y[1] = h.srow_z[2] = 1;
    put_volume("q.nii", &h, data, sizeof data);
    CU_ASSERT(!is_upright("q.nii"));
    h.srow_x[0] = NAN;
    put_volume("q.nii", &h, data, sizeof data);
    struct dpf_volume v; /* whatever it makes of that, it does so without harm */
    if (dpf_volume_open(&v, in_folder("q.nii"), NULL) == DPF_OK)
        dpf_volume_release(&v);
    end();
}

/* ------------------------------------------------------------------------------ a task
 */

static void put_json(const char *text)
{
    put("dataset.json", text, strlen(text), NULL, 0);
}

static const char good_json[] =
    "{\"modality\": {\"0\": \"MRI\", \"1\": \"CT\"}, \"labels\": {\"0\": \"nothing\", "
    "\"1\": \"a\", \"2\": \"b\"}, \"training\": [{\"image\": \"./imagesTr/a.nii\", "
    "\"label\": \"./labelsTr/a.nii\"}]}";

static enum dpf_status load(struct dpf_source **s, struct dpf_error *e)
{
    static char name[96];
    const char *names[] = {name};
    snprintf(name, sizeof name, "msd:%s", folder);
    struct dpf_load_request q = {.names = names, .name_count = 1, .size = {6, 2, 3}};
    *e = (struct dpf_error){0};
    *s = NULL;
    return dpf_format_open(&q, s, e);
}

/* Two channels and a mask; `labels` along the fastest axis are i % 3. */
static void put_pair(const int dims[3], const int mask_dims[3])
{
    float data[2 * VOXELS];
    uint8_t labels[VOXELS * 2];
    for (int i = 0; i < 2 * VOXELS; i++) {
        data[i] = (float)(i % 7 == 0 ? 0 : i % VOXELS + 1);
        labels[i] = (uint8_t)(i % 3);
    }
    struct nifti_1_header h = head(dims, 2, DT_FLOAT32, 32);
    put_volume("imagesTr/a.nii", &h, data, sizeof data);
    h = head(mask_dims, 1, DT_UINT8, 8);
    h.dim[0] = 3;
    put_volume("labelsTr/a.nii", &h, labels,
               (size_t)(mask_dims[0] * mask_dims[1] * mask_dims[2]));
}

/* x: 3 stays 3; y: 4 is cut to 2 from 1 on; z: 5 becomes 6 with one more behind. */
static void test_sizes(void)
{
    struct dpf_error e;
    struct dpf_source *s;
    struct dpf_batch b = {0};
    begin();
    put_json(good_json);
    put_pair(sizes, sizes);
    CU_ASSERT_FATAL(load(&s, &e) == DPF_OK);
    CU_ASSERT(s->header.records == 1 && s->header.fields[1].classes == 3);
    CU_ASSERT_FATAL(dpf_source_next(s, &b, 4, &e) == DPF_OK && b.rows == 1);
    const float *x = b.tensor[0].data;
    const uint8_t *mask = b.tensor[1].data;
    for (int c = 0; c < 2; c++) {
        double n = 0, sum = 0, square = 0;
        for (int i = c * VOXELS; i < (c + 1) * VOXELS; i++) {
            double v = i % 7 == 0 ? 0 : i % VOXELS + 1;
            n += v != 0;
            sum += v;
            square += v * v;
        }
        double mean = sum / n, deviation = sqrt(square / n - mean * mean);
        for (int i = 0; i < 6 * 2 * 3; i++) {
            int from = (i / 6 * Y + 1 + i / 3 % 2) * X + i % 3 + c * VOXELS;
            double v = i / 6 == 5 || from % 7 == 0 ? 0 : from % VOXELS + 1;
            CU_ASSERT_DOUBLE_EQUAL((double)x[c * 36 + i], (v - mean) / deviation, 1e-5);
            CU_ASSERT(c || mask[i] == (i / 6 == 5 ? 0 : from % 3));
        }
    }
    dpf_batch_release(&b);
    CU_ASSERT(dpf_source_next(s, &b, 4, &e) == DPF_OK && b.rows == 0);
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    end();
}

static bool is_refused(const char *json, const char *text)
{
    struct dpf_error e;
    struct dpf_source *s;
    struct dpf_batch b = {0};
    put_json(json);
    enum dpf_status status = load(&s, &e);
    if (status == DPF_OK)
        status = dpf_source_next(s, &b, 4, &e);
    dpf_batch_release(&b);
    if (s)
        dpf_source_destroy(&s);
    bool good = status == DPF_BAD_STREAM && strstr(e.message, text);
    if (!good)
        printf("    %d: '%s'\n", (int)status, e.message);
    return good;
}

static void test_refusals(void)
{
#define TASK(modality, labels, image)                                                    \
    "{\"modality\": " modality ", \"labels\": " labels ", \"training\": [{\"image\": "   \
    "\"" image "\", \"label\": \"labelsTr/a.nii\"}]}"
#define TWO "{\"0\": \"a\", \"1\": \"b\"}"
    static const struct {
        const char *json, *text;
    } bad[] = {
        {"", "is not JSON"},
        {"[1, 2", "is not JSON"},
        {"[]", "modalities"},
        {"{\"modality\": 3}", "modalities"},
        {TASK("{\"0\": 1, \"2\": 1}", TWO, "imagesTr/a.nii"), "modalities"},
        {TASK(TWO, "{\"0\": \"a\"}", "imagesTr/a.nii"), "labels"},
        {TASK(TWO, TWO, "/etc/passwd"), "below it"},
        {TASK(TWO, TWO, "../a.nii"), "below it"},
        {TASK(TWO, TWO, "imagesTr/../../a.nii"), "below it"},
        {TASK(TWO, TWO, "imagesTr/.."), "below it"},
        {TASK(TWO, TWO, ""), "below it"},
        {TASK(TWO, TWO, "imagesTr/a\\u0000.nii"), "is not JSON"},
        {TASK("{\"0\": 1}", TWO, "imagesTr/a.nii"), "has 2 channels"},
        {TASK(TWO, TWO, "imagesTr/a.nii"), "label outside its 2 classes"},
        {"{\"modality\": " TWO ", \"labels\": " TWO ", \"training\": []}", "no list"},
        {"{\"modality\": " TWO ", \"labels\": " TWO ", \"training\": [{}]}", "below it"},
    };
    begin();
    put_pair(sizes, sizes);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(is_refused(bad[i].json, bad[i].text));
    /* both are named */
    put_pair(sizes, (int[]){4, 3, 5});
    CU_ASSERT(is_refused(good_json, "labelsTr/a.nii' has dimensions 1x5x3x4, but its "
                                    "image '"));
    /* a FIFO would be read for ever; a folder is no volume */
    put_pair(sizes, sizes);
    CU_ASSERT(mkfifo(in_folder("imagesTr/fifo.nii"), 0600) == 0);
    CU_ASSERT(is_refused(TASK(TWO, TWO, "imagesTr/fifo.nii"), "not a file"));
    CU_ASSERT(is_refused(TASK(TWO, TWO, "imagesTr"), "not a file"));
    CU_ASSERT(unlink(in_folder("dataset.json")) == 0 &&
              mkfifo(in_folder("dataset.json"), 0600) == 0);
    struct dpf_error e;
    struct dpf_source *s;
    CU_ASSERT(load(&s, &e) == DPF_BAD_STREAM && strstr(e.message, "is not a file"));
    end();
}

/* What was digested is what is read, though the task's list changes in between. */
static void test_list_once(void)
{
    struct dpf_error e = {0};
    struct dpf_source *s = NULL;
    struct dpf_batch b = {0};
    struct dpf_file_list files = {0};
    char name[96];
    const char *names[] = {name};
    begin();
    put_json(good_json);
    put_pair(sizes, sizes);
    snprintf(name, sizeof name, "msd:%s", folder);
    struct dpf_load_request q = {
        .names = names, .name_count = 1, .size = {6, 2, 3}, .files = &files};
    CU_ASSERT(dpf_format_list(&q, &files, &e) == DPF_OK && files.count == 2);
    put_json("{\"modality\": {\"0\": 1, \"1\": 1}, \"labels\": {\"0\": 1, \"1\": 1, "
             "\"2\": 1}, "
             "\"training\": [{\"image\": \"no.nii\", \"label\": \"no.nii\"}, "
             "{\"image\": \"no.nii\", \"label\": \"no.nii\"}]}");
    CU_ASSERT_FATAL(dpf_format_open(&q, &s, &e) == DPF_OK);
    CU_ASSERT(s->header.records == 1);
    CU_ASSERT(dpf_source_next(s, &b, 4, &e) == DPF_OK && b.rows == 1);
    dpf_batch_release(&b);
    dpf_source_destroy(&s);
    dpf_file_list_release(&files);
    end();
}

const char dpf_suite[] = "msd";
const struct dpf_test dpf_tests[] = {
    {"all 48 orientations come out upright", test_orientations},
    {"orientation by quaternion, unless there is an sform", test_quaternions},
    {"volumes are cut, padded and scaled", test_sizes},
    {"tasks and masks that lie are refused", test_refusals},
    {"the list of a task is read once", test_list_once},
    {0},
};
