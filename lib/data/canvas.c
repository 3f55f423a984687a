#include "data/canvas.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

#include "base/banned.h"

/* Seven rows from the top; the highest of five bits is on the left. */
static const struct letter {
    char name;
    unsigned char rows[DPF_LETTER_HEIGHT];
} letters[] = {
    {'0', {14, 17, 19, 21, 25, 17, 14}}, {'1', {4, 12, 4, 4, 4, 4, 14}},
    {'2', {14, 17, 1, 6, 8, 16, 31}},    {'3', {14, 17, 1, 6, 1, 17, 14}},
    {'4', {2, 6, 10, 18, 31, 2, 2}},     {'5', {31, 16, 30, 1, 1, 17, 14}},
    {'6', {6, 8, 16, 30, 17, 17, 14}},   {'7', {31, 1, 2, 4, 8, 8, 8}},
    {'8', {14, 17, 17, 14, 17, 17, 14}}, {'9', {14, 17, 17, 15, 1, 2, 12}},
    {'a', {0, 0, 14, 1, 15, 17, 15}},    {'b', {16, 16, 30, 17, 17, 17, 30}},
    {'c', {0, 0, 15, 16, 16, 16, 15}},   {'d', {1, 1, 15, 17, 17, 17, 15}},
    {'e', {0, 0, 14, 17, 31, 16, 14}},   {'f', {6, 8, 30, 8, 8, 8, 8}},
    {'g', {0, 0, 15, 17, 15, 1, 14}},    {'h', {16, 16, 30, 17, 17, 17, 17}},
    {'i', {4, 0, 12, 4, 4, 4, 14}},      {'j', {2, 0, 6, 2, 2, 18, 12}},
    {'k', {16, 16, 18, 20, 24, 20, 18}}, {'l', {12, 4, 4, 4, 4, 4, 14}},
    {'m', {0, 0, 26, 21, 21, 21, 21}},   {'n', {0, 0, 30, 17, 17, 17, 17}},
    {'o', {0, 0, 14, 17, 17, 17, 14}},   {'p', {0, 0, 30, 17, 30, 16, 16}},
    {'q', {0, 0, 15, 17, 15, 1, 1}},     {'r', {0, 0, 22, 25, 16, 16, 16}},
    {'s', {0, 0, 15, 16, 14, 1, 30}},    {'t', {8, 8, 30, 8, 8, 8, 6}},
    {'u', {0, 0, 17, 17, 17, 17, 15}},   {'v', {0, 0, 17, 17, 17, 10, 4}},
    {'w', {0, 0, 21, 21, 21, 21, 10}},   {'x', {0, 0, 17, 10, 4, 10, 17}},
    {'y', {0, 0, 17, 17, 15, 1, 14}},    {'z', {0, 0, 31, 2, 4, 8, 31}},
    {'-', {0, 0, 0, 14, 0, 0, 0}},       {'_', {0, 0, 0, 0, 0, 0, 31}},
    {'.', {0, 0, 0, 0, 0, 12, 12}},      {',', {0, 0, 0, 0, 12, 4, 8}},
    {':', {0, 12, 12, 0, 12, 12, 0}},    {'/', {1, 1, 2, 4, 8, 16, 16}},
    {'(', {2, 4, 8, 8, 8, 4, 2}},        {')', {8, 4, 2, 2, 2, 4, 8}},
    {'+', {0, 4, 4, 31, 4, 4, 0}},
};

enum dpf_status dpf_canvas_init(struct dpf_canvas *c, size_t width, size_t height,
                                struct dpf_colour ground, struct dpf_error *e)
{
    size_t stride = 0;
    *c = (struct dpf_canvas){.width = width, .height = height};
    c->pixels = dpf_mul_size(width, 3, &stride) ? dpf_calloc(height, stride) : NULL;
    if (!c->pixels)
        return dpf_fail_memory(e);
    dpf_canvas_fill(c, 0, 0, width, height, ground);
    return DPF_OK;
}

void dpf_canvas_release(struct dpf_canvas *c)
{
    free(c->pixels);
    *c = (struct dpf_canvas){0};
}

void dpf_canvas_put(struct dpf_canvas *c, size_t x, size_t y, struct dpf_colour colour)
{
    if (x >= c->width || y >= c->height)
        return;
    unsigned char *p = c->pixels + 3 * (y * c->width + x);
    p[0] = colour.r;
    p[1] = colour.g;
    p[2] = colour.b;
}

void dpf_canvas_fill(struct dpf_canvas *c, size_t x, size_t y, size_t width,
                     size_t height, struct dpf_colour colour)
{
    for (size_t i = 0; i < height; i++)
        for (size_t j = 0; j < width; j++)
            dpf_canvas_put(c, x + j, y + i, colour);
}

static const struct letter *find_letter(char name)
{
    char small = name >= 'A' && name <= 'Z' ? (char)(name - 'A' + 'a') : name;
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].name == small)
            return &letters[i];
    return NULL;
}

size_t dpf_canvas_write(struct dpf_canvas *c, size_t x, size_t y, size_t zoom,
                        struct dpf_colour colour, const char *text)
{
    for (; *text; text++, x += DPF_LETTER_WIDTH * zoom) {
        const struct letter *l = find_letter(*text);
        for (size_t i = 0; l && i < DPF_LETTER_HEIGHT; i++)
            for (size_t j = 0; j < DPF_LETTER_WIDTH - 1; j++)
                if (l->rows[i] >> (DPF_LETTER_WIDTH - 2 - j) & 1)
                    dpf_canvas_fill(c, x + j * zoom, y + i * zoom, zoom, zoom, colour);
    }
    return x;
}

enum dpf_status dpf_canvas_save(const struct dpf_canvas *c, const char *path,
                                struct dpf_error *e)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)c->width,
                       .height = (png_uint_32)c->height,
                       .format = PNG_FORMAT_RGB};
    struct dpf_outfile file;
    enum dpf_status status = dpf_outfile_open(&file, path, e);
    if (status != DPF_OK)
        return status;
    FILE *out = fdopen(dup(file.fd), "wb");
    bool good = out && png_image_write_to_stdio(&image, out, 0, c->pixels, 0, NULL);
    if (out && fclose(out) != 0)
        good = false;
    status = good ? dpf_outfile_commit(&file, e)
                  : dpf_fail(e, DPF_SYSTEM, "cannot write '%s'", path);
    dpf_outfile_abort(&file);
    return status;
}
