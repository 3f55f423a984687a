#include "nn/mask_coder.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#include "base/banned.h"

enum dpf_status dpf_mask_coder_init(struct dpf_mask_coder *c, uint64_t classes,
                                    uint64_t places, struct dpf_error *e)
{
    *c = (struct dpf_mask_coder){.classes = classes, .places = places};
    return classes >= 2 && classes <= 256 && places >= 1 && places <= 1ull << 28
               ? DPF_OK
               : dpf_fail(e, DPF_USAGE,
                          "masks have 2 to 256 classes and 1 to 2^28 positions");
}

void dpf_mask_coder_release(struct dpf_mask_coder *c)
{
    free(c->labels);
    free(c->variances);
    free(c->codes);
    *c = (struct dpf_mask_coder){.classes = 0};
}

enum dpf_status dpf_mask_coder_add(struct dpf_mask_coder *c,
                                   const struct dpf_tensor *masks, struct dpf_error *e)
{
    uint64_t rows = dpf_tensor_rows(masks), all = rows * c->places;
    if (c->records + rows > DPF_MASK_CODER_MAX_RECORDS)
        return dpf_fail(e, DPF_USAGE, "components of masks are found from at most %d",
                        (int)DPF_MASK_CODER_MAX_RECORDS);
    if (!dpf_grow(&c->labels, &c->capacity, (c->records + rows) * c->places, 1))
        return dpf_fail_memory(e);
    unsigned char *to = c->labels + c->records * c->places;
    for (uint64_t i = 0; i < all; i++) {
        double label = dpf_tensor_get(masks, i);
        if (!(label >= 0 && label < (double)c->classes))
            return dpf_fail(e, DPF_BAD_STREAM,
                            "a mask has a label outside its %llu classes",
                            (unsigned long long)c->classes);
        to[i] = (unsigned char)label;
    }
    c->records += rows;
    return DPF_OK;
}

/* Positions at which two masks agree: the inner product of their vectors. */
static double agreement(const unsigned char *a, const unsigned char *b, uint64_t places)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < places; i++)
        count += a[i] == b[i];
    return (double)count;
}

/* Inner products of masks less their mean, divided by their number, [n, n]. */
static void fill_gram(const struct dpf_mask_coder *c, double *gram, double *row_mean)
{
    size_t n = c->records;
    double all = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            gram[i * n + j] = gram[j * n + i] = agreement(
                c->labels + i * c->places, c->labels + j * c->places, c->places);
    for (size_t i = 0; i < n; i++) {
        row_mean[i] = 0;
        for (size_t j = 0; j < n; j++)
            row_mean[i] += gram[i * n + j] / (double)n;
        all += row_mean[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            gram[i * n + j] =
                (gram[i * n + j] - row_mean[i] - row_mean[j] + all) / (double)n;
}

enum dpf_status dpf_mask_coder_solve(struct dpf_mask_coder *c, struct dpf_error *e)
{
    size_t n = c->records;
    if (n < 2)
        return dpf_fail(e, DPF_BAD_STREAM, "components need two masks or more");
    double *gram = dpf_calloc(n * n, sizeof *gram), *room = dpf_calloc(n, sizeof *room);
    c->variances = dpf_calloc(n, sizeof *c->variances);
    c->codes = dpf_calloc(n * n, sizeof *c->codes);
    enum dpf_status status =
        gram && room && c->variances && c->codes ? DPF_OK : dpf_fail_memory(e);
    if (status == DPF_OK)
        fill_gram(c, gram, room);
    /* row-major: column i of the result is eigenvector i, the largest last */
    if (status == DPF_OK && LAPACKE_dsyevd(LAPACK_ROW_MAJOR, 'V', 'U', (lapack_int)n,
                                           gram, (lapack_int)n, room) != 0)
        status = dpf_fail(e, DPF_SYSTEM, "LAPACK cannot find the eigenvalues");
    for (size_t k = 0; status == DPF_OK && k < n; k++) {
        double variance = room[n - 1 - k], least = room[n - 1] * 1e-12;
        c->variances[k] = variance > least ? variance : 0;
        for (size_t i = 0; i < n; i++)
            c->codes[i * n + k] =
                gram[i * n + n - 1 - k] * sqrt((double)n * c->variances[k]);
    }
    if (status == DPF_OK && !(c->variances[0] > 0))
        status = dpf_fail(e, DPF_BAD_STREAM, "all masks are the same");
    free(gram);
    free(room);
    return status;
}

size_t dpf_mask_coder_rank(const struct dpf_mask_coder *c)
{
    size_t k = 0;
    while (k < c->records && c->variances[k] > 0)
        k++;
    return k;
}

double dpf_mask_coder_radius(const struct dpf_mask_coder *c, size_t k)
{
    double most = 0;
    for (size_t i = 0; i < c->records; i++) {
        double square = 0;
        for (size_t j = 0; j < k; j++)
            square += c->codes[i * c->records + j] * c->codes[i * c->records + j];
        most = fmax(most, sqrt(square));
    }
    return most;
}

static double radius_of(const struct dpf_mask_coder *c, size_t k,
                        const struct dpf_mask_noise *noise)
{
    return noise->radius > 0 ? noise->radius : dpf_mask_coder_radius(c, k);
}

/* What the decoder multiplies a value of variance `variance` by. */
static double weight_of(double variance, double deviation, bool shrink)
{
    return shrink ? variance / (variance + deviation * deviation) : 1;
}

double dpf_mask_coder_distance(const struct dpf_mask_coder *c, size_t k,
                               const struct dpf_mask_noise *noise)
{
    double left = 0, deviation = noise->deviation * radius_of(c, k, noise);
    for (size_t j = 0; j < c->records; j++)
        left += j < k ? deviation * deviation *
                            weight_of(c->variances[j], deviation, noise->shrink)
                      : c->variances[j];
    return left;
}

size_t dpf_mask_coder_choose(const struct dpf_mask_coder *c, size_t most,
                             const struct dpf_mask_noise *noise)
{
    size_t best = 1, rank = dpf_mask_coder_rank(c);
    double least = dpf_mask_coder_distance(c, 1, noise);
    for (size_t k = 2; k <= most && k <= rank; k++) {
        double distance = dpf_mask_coder_distance(c, k, noise);
        if (distance < least) {
            best = k;
            least = distance;
        }
    }
    return best;
}

/* ------------------------------------------------------------------------ the network */

static char *network_text(const struct dpf_mask_coder *c, const struct dpf_shape *shape,
                          size_t k)
{
    struct dpf_text sizes = {0};
    dpf_text_addf(&sizes, "%llu", (unsigned long long)c->classes);
    for (int d = 0; d < shape->rank; d++)
        dpf_text_addf(&sizes, "x%llu", (unsigned long long)shape->dim[d]);
    const char *s = dpf_text_get(&sizes);
    char *text = sizes.failed
                     ? NULL
                     : dpf_format("input x %s\nf = flatten x\ncode = dense f out=%zu\n"
                                  "h = dense code out=%llu\ny = reshape h shape=%s\n"
                                  "output y\n",
                                  s, k, (unsigned long long)(c->classes * c->places), s);
    dpf_text_release(&sizes);
    return text;
}

/* Direction j, [classes, places]: a combination of the masks, whose weights add up to 0,
 * so that their mean drops out. */
static void fill_direction(const struct dpf_mask_coder *c, size_t j, double *direction)
{
    size_t n = c->records;
    memset(direction, 0, c->classes * c->places * sizeof *direction);
    for (size_t i = 0; i < n; i++) {
        double weight = c->codes[i * n + j] / ((double)n * c->variances[j]);
        for (uint64_t p = 0; p < c->places; p++)
            direction[c->labels[i * c->places + p] * c->places + p] += weight;
    }
}

static void fill_mean(const struct dpf_mask_coder *c, float *mean)
{
    double n = (double)c->records;
    memset(mean, 0, c->classes * c->places * sizeof *mean);
    for (size_t i = 0; i < c->records; i++)
        for (uint64_t p = 0; p < c->places; p++)
            mean[c->labels[i * c->places + p] * c->places + p] += 1;
    for (uint64_t v = 0; v < c->classes * c->places; v++)
        mean[v] = (float)((double)mean[v] / n);
}

enum dpf_status dpf_mask_coder_write(const struct dpf_mask_coder *c,
                                     const struct dpf_shape *shape, size_t k,
                                     const struct dpf_mask_noise *noise,
                                     struct dpf_model *m, float **take_parameters,
                                     struct dpf_error *e)
{
    double radius = radius_of(c, k, noise), deviation = noise->deviation * radius;
    uint64_t values = c->classes * c->places;
    char *text = network_text(c, shape, k);
    enum dpf_status status =
        text ? dpf_model_parse(m, text, strlen(text), "coder", e) : dpf_fail_memory(e);
    free(text);
    if (status != DPF_OK)
        return status;
    const struct dpf_node *in = dpf_model_find(m, "code"), *out = dpf_model_find(m, "h");
    double *direction = dpf_calloc(values, sizeof *direction);
    float *all = dpf_calloc(m->span + 1, sizeof *all);
    if (!direction || !all) {
        free(direction);
        free(all);
        return dpf_fail_memory(e);
    }
    float *mean = all + out->offset[1];
    fill_mean(c, mean);
    for (size_t j = 0; j < k; j++) {
        double shift = 0;
        double back = radius * weight_of(c->variances[j], deviation, noise->shrink);
        fill_direction(c, j, direction);
        for (uint64_t v = 0; v < values; v++) {
            all[in->offset[0] + j * values + v] = (float)(direction[v] / radius);
            all[out->offset[0] + v * k + j] = (float)(direction[v] * back);
            shift += direction[v] / radius * (double)mean[v];
        }
        all[in->offset[1] + j] = (float)-shift;
    }
    free(direction);
    *take_parameters = all;
    return DPF_OK;
}
