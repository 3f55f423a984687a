/* Contact sheets: the first records of an image field as one PNG, a row for each class
 * where there are labels, so that a person sees at a glance what a stream holds. */
#ifndef DPF_DATA_PICTURE_H
#define DPF_DATA_PICTURE_H

#include "base/status.h"
#include "tensor/tensor.h"

struct dpf_sheet;
/* `record` is [H,W], [1,H,W], [3,H,W] (colour) or [C,D,H,W] (the middle slice of each
 * channel, side by side); anything else is DPF_USAGE. `rows` classes, or 0 for a plain
 * grid. Values are mapped from [lo, hi] to black..white. */
enum dpf_status dpf_sheet_new(struct dpf_sheet **take_sheet,
                              const struct dpf_shape *record, uint64_t rows,
                              struct dpf_error *e);
/* Draw values as heat: from green over yellow to red, colours as three pictures. */
void dpf_sheet_use_heat(struct dpf_sheet *s);
/* Offer record `row` of a tensor; `label` is its class, or UINT64_MAX if there
 * are none. Ignored when full. */
void dpf_sheet_add(struct dpf_sheet *s, const struct dpf_tensor *x, uint64_t row,
                   uint64_t label);
bool dpf_sheet_full(const struct dpf_sheet *s);
enum dpf_status dpf_sheet_write(struct dpf_sheet *s, const char *path,
                                struct dpf_error *e);
void dpf_sheet_destroy(struct dpf_sheet **s);
/* Whether a record shape can be drawn at all. */
bool dpf_sheet_can_draw(const struct dpf_shape *record);

#endif
