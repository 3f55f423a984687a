/* A picture in colour that is filled pixel by pixel and written as a PNG, with letters
 * for legends. */
#ifndef DPF_DATA_CANVAS_H
#define DPF_DATA_CANVAS_H

#include <stddef.h>

#include "base/status.h"

enum { DPF_LETTER_WIDTH = 6, DPF_LETTER_HEIGHT = 7 }; /* with the gap to the next one */

struct dpf_colour {
    unsigned char r, g, b;
};

struct dpf_canvas {
    size_t width, height;
    unsigned char *pixels; /* [height, width, 3] */
};

/* All of it in one colour; release with dpf_canvas_release(). */
enum dpf_status dpf_canvas_init(struct dpf_canvas *c, size_t width, size_t height,
                                struct dpf_colour ground, struct dpf_error *e);
void dpf_canvas_release(struct dpf_canvas *c);
/* One pixel, and a rectangle; what lies outside is left out. */
void dpf_canvas_put(struct dpf_canvas *c, size_t x, size_t y, struct dpf_colour colour);
void dpf_canvas_fill(struct dpf_canvas *c, size_t x, size_t y, size_t width,
                     size_t height, struct dpf_colour colour);
/* Letters, digits and "-_.,:/()+" from (x, y), the upper left corner, on; others are
 * blank, and capitals small. Each pixel of a letter is a square of `zoom`. Returns where
 * the text ends. */
size_t dpf_canvas_write(struct dpf_canvas *c, size_t x, size_t y, size_t zoom,
                        struct dpf_colour colour, const char *text);
/* The file is whole or absent (base/file.h). */
enum dpf_status dpf_canvas_save(const struct dpf_canvas *c, const char *path,
                                struct dpf_error *e);

#endif
