#include "nn/fitted.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/words.h"

#include "base/banned.h"

enum { SPACE = 3, MOST_POOLINGS = 4 };

struct dpf_fitting {
    uint64_t number;
    struct dpf_shape input;
    bool bits;
    uint64_t outputs; /* classes, or values */
    double deviation; /* of noise in a bottleneck */
};

/* ---------------------------------------------------------------------------- vectors */

static void write_dense(struct dpf_text *t, const struct dpf_fitting *f)
{
    dpf_text_addf(t, "input x %llu%s\n",
                  (unsigned long long)dpf_shape_elements(&f->input),
                  f->bits ? " bits" : "");
    if (f->number)
        dpf_text_addf(t, "d1 = dense x out=%llu\nr1 = relu d1\n",
                      (unsigned long long)f->number);
    dpf_text_addf(t, "y = dense %s out=%llu\noutput y\n", f->number ? "r1" : "x",
                  (unsigned long long)f->outputs);
}

/* ------------------------------------------------------------------------------ space */

/* How sizes shrink from pooling to pooling. */
struct levels {
    int poolings, dimensions;
    uint64_t size[MOST_POOLINGS + 1][SPACE];
};

/* Halve every dimension that has two positions, up to four times, as long as 8 positions
 * are left: a normalisation over fewer knows nothing. */
static struct levels shrink(const struct dpf_shape *input)
{
    struct levels l = {.dimensions = input->rank - 1};
    for (int d = 0; d < l.dimensions; d++)
        l.size[0][d] = input->dim[1 + d];
    while (l.poolings < MOST_POOLINGS) {
        uint64_t left = 1;
        for (int d = 0; d < l.dimensions; d++) {
            uint64_t now = l.size[l.poolings][d];
            left *= l.size[l.poolings + 1][d] = now < 2 ? now : now / 2;
        }
        if (left < 8)
            break;
        l.poolings++;
    }
    return l;
}

/* " kernel=AxBxC stride=AxBxC" of the way between level i and the next smaller one. On
 * the way up an odd size takes a kernel of 3. */
static void add_window(struct dpf_text *t, const struct levels *l, int i, bool up)
{
    for (int stride = 0; stride < 2; stride++) {
        dpf_text_add(t, stride ? " stride=" : " kernel=");
        for (int d = 0; d < l->dimensions; d++) {
            uint64_t size = l->size[i][d], step = size < 2 ? 1 : 2;
            if (!stride && up && step == 2)
                step += size % 2;
            dpf_text_addf(t, "%s%llu", d ? "x" : "", (unsigned long long)step);
        }
    }
    dpf_text_add(t, "\n");
}

static void add_dimensions(struct dpf_text *t, uint64_t channels, const struct levels *l,
                           int i)
{
    dpf_text_addf(t, "%llu", (unsigned long long)channels);
    for (int d = 0; d < l->dimensions; d++)
        dpf_text_addf(t, "x%llu", (unsigned long long)l->size[i][d]);
    dpf_text_add(t, "\n");
}

/* The node that is read next. */
struct place {
    struct dpf_text *text;
    char name[32];
};

/* A convolution with ReLU, or, `normed`, with instance normalisation (a group a channel)
 * and leaky ReLU. */
static void add_conv(struct place *p, const char *name, uint64_t width, bool normed)
{
    unsigned long long out = width;
    dpf_text_addf(p->text, "c%s = conv %s out=%llu kernel=3 pad=1%s\n", name, p->name,
                  out, normed ? " bias=0" : "");
    if (normed)
        dpf_text_addf(p->text, "g%s = group-norm c%s groups=%llu\n", name, name, out);
    dpf_text_addf(p->text, "r%s = %s %s%s\n", name, normed ? "leaky-relu" : "relu",
                  normed ? "g" : "c", name);
    snprintf(p->name, sizeof p->name, "r%s", name);
}

static void add_pool(struct place *p, const struct levels *l, int i)
{
    dpf_text_addf(p->text, "p%d = max-pool %s", i + 1, p->name);
    add_window(p->text, l, i, false);
    snprintf(p->name, sizeof p->name, "p%d", i + 1);
}

static void add_up(struct place *p, const struct levels *l, int i, uint64_t width)
{
    dpf_text_addf(p->text, "u%d = conv-transpose %s out=%llu", i + 1, p->name,
                  (unsigned long long)width);
    add_window(p->text, l, i, true);
    snprintf(p->name, sizeof p->name, "u%d", i + 1);
}

static void add_scores(struct place *p, const struct dpf_fitting *f)
{
    dpf_text_addf(p->text, "y = conv %s out=%llu kernel=1\noutput y\n", p->name,
                  (unsigned long long)f->outputs);
}

/* Two convolutions at each size, widths doubled by every pooling. */
static void write_unet(struct dpf_text *t, const struct dpf_fitting *f)
{
    struct levels l = shrink(&f->input);
    struct place at = {t, "x"};
    char name[16];
    dpf_text_add(t, "input x ");
    add_dimensions(t, f->input.dim[0], &l, 0);
    for (int i = 0; i <= l.poolings; i++)
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "e%d%c", i + 1, 'a' + k);
            add_conv(&at, name, f->number << i, true);
            if (k == 1 && i < l.poolings)
                add_pool(&at, &l, i);
        }
    for (int i = l.poolings - 1; i >= 0; i--) {
        add_up(&at, &l, i, f->number << i);
        dpf_text_addf(t, "k%d = concat u%d re%db\n", i + 1, i + 1, i + 1);
        snprintf(at.name, sizeof at.name, "k%d", i + 1);
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "d%d%c", i + 1, 'a' + k);
            add_conv(&at, name, f->number << i, true);
        }
    }
    add_scores(&at, f);
}

/* Autoencoded PATE, as printed: convolutions, ReLU and pooling down to a dense
 * bottleneck, whose values lie in the unit ball (`code`), noise on them while training,
 * and back by transposed convolutions. Widths 8 to 64 are ours; the paper gives none. */
static void write_autoencoder(struct dpf_text *t, const struct dpf_fitting *f)
{
    enum { WIDTH = 8 };
    struct levels l = shrink(&f->input);
    struct place at = {t, "x"};
    char name[16];
    int bottom = l.poolings ? l.poolings - 1 : 0;
    uint64_t values = WIDTH << bottom;
    for (int d = 0; d < l.dimensions; d++)
        values *= l.size[l.poolings][d];
    dpf_text_add(t, "input x ");
    add_dimensions(t, f->input.dim[0], &l, 0);
    for (int i = 0; i < l.poolings; i++) {
        snprintf(name, sizeof name, "e%d", i + 1);
        add_conv(&at, name, (uint64_t)WIDTH << i, false);
        add_pool(&at, &l, i);
    }
    dpf_text_addf(t, "f = flatten %s\nb = dense f out=%llu\ncode = ball b\n", at.name,
                  (unsigned long long)f->number + 1);
    dpf_text_addf(t, "n = noise code sigma=");
    dpf_text_add_real(t, f->deviation);
    dpf_text_addf(t, "\nh = dense n out=%llu\nhr = relu h\nv = reshape hr shape=",
                  (unsigned long long)values);
    add_dimensions(t, (uint64_t)WIDTH << bottom, &l, l.poolings);
    snprintf(at.name, sizeof at.name, "v");
    for (int i = l.poolings - 1; i >= 0; i--) {
        snprintf(name, sizeof name, "d%d", i + 1);
        add_conv(&at, name, (uint64_t)WIDTH << i, false);
        add_up(&at, &l, i, (uint64_t)WIDTH << (i ? i - 1 : 0));
    }
    add_scores(&at, f);
}

/* ------------------------------------------------------------------------- the table */

const struct dpf_fitted dpf_fitted[] = {
    {"linear", NULL, 0, 0, "a dense layer", false, write_dense},
    {"fc", "H", 1, 65536, "one hidden layer of H units", false, write_dense},
    {"unet", "W", 1, 256, "a U-Net of width W at full size", true, write_unet},
    {"autoencoder", "L[:S]", 1, 65536,
     "an autoencoder with L values in the unit ball, which get noise of deviation S in "
     "training",
     true, write_autoencoder},
    {NULL, NULL, 0, 0, NULL, false, NULL},
};

/* The row that `arch` means, or NULL; *rest: what stands behind its colon, or NULL. */
static const struct dpf_fitted *find(const char *arch, const char **rest)
{
    char name[32];
    size_t length = strcspn(arch, ":");
    if (length >= sizeof name)
        return NULL;
    snprintf(name, sizeof name, "%.*s", (int)length, arch);
    *rest = arch[length] ? arch + length + 1 : NULL;
    const struct dpf_fitted *row = DPF_FIND(dpf_fitted, name);
    return row && !row->number == !*rest ? row : NULL;
}

bool dpf_arch_is_fitted(const char *arch)
{
    const char *rest;
    return find(arch, &rest) != NULL;
}

/* "L" or, for a row whose number has a second one, "L:S". */
static bool parse_number(const struct dpf_fitted *row, const char *text,
                         struct dpf_fitting *f)
{
    char copy[64];
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return false;
    char *second = strchr(row->number, ':') ? strchr(copy, ':') : NULL;
    if (second)
        *second++ = '\0';
    return dpf_parse_uint(copy, &f->number) && f->number >= row->least &&
           f->number <= row->most &&
           (!second || (dpf_parse_real(second, &f->deviation) && f->deviation >= 0 &&
                        f->deviation <= 1e6));
}

/* Labels may be read as one channel for each class (nn/dataset.h). */
static struct dpf_shape input_of(const struct dpf_field *x, bool spatial)
{
    struct dpf_shape shape = x->shape;
    if (spatial && x->classes && shape.rank < 4) {
        shape = (struct dpf_shape){.rank = x->shape.rank + 1, .dim = {x->classes}};
        memcpy(shape.dim + 1, x->shape.dim, (size_t)x->shape.rank * sizeof *shape.dim);
    }
    return shape;
}

enum dpf_status dpf_model_fit(struct dpf_model *m, const char *arch,
                              const struct dpf_field *x, const struct dpf_field *y,
                              struct dpf_error *e)
{
    const char *rest;
    const struct dpf_fitted *row = find(arch, &rest);
    struct dpf_fitting f = {.input = input_of(x, row->spatial),
                            .bits = x->dtype == DPF_BITS,
                            .outputs = y->classes     ? y->classes
                                       : row->spatial ? y->shape.dim[0]
                                                      : dpf_shape_elements(&y->shape)};
    char shape[96];
    dpf_shape_format(&x->shape, shape, sizeof shape);
    if (rest && !parse_number(row, rest, &f))
        return dpf_fail(e, DPF_USAGE, "'%s' is not %s:%s with a number from %llu to %llu",
                        arch, row->name, row->number, (unsigned long long)row->least,
                        (unsigned long long)row->most);
    if (row->spatial && (f.bits || (f.input.rank != 3 && f.input.rank != 4)))
        return dpf_fail(e, DPF_USAGE,
                        "'%s' reads pictures CxHxW or volumes CxDxHxW, not field '%s' of "
                        "shape %s",
                        arch, x->name, shape);
    struct dpf_text text = {0};
    row->write(&text, &f);
    enum dpf_status status = text.failed
                                 ? dpf_fail_memory(e)
                                 : dpf_model_parse(m, text.data, text.size, arch, e);
    dpf_text_release(&text);
    return status;
}
