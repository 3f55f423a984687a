/* Slices of volumes with masks laid over, as one PNG: what a person looks at to see
 * whether a segmentation is right.
 *
 * A row shows a record: slices across its first axis, through the middle third. They
 * are drawn with the second axis upwards, so that those of NIfTI files (data/volume.h)
 * have the front of the patient on top. Pictures with masks are drawn too, as they are,
 * several in a row. Brightness is of one channel, between the 1st and 99th percentile of
 * what is shown of the record. The first mask is a translucent fill, the second an
 * outline; class 0 is not drawn, and each other class has one of seven colours that
 * colour-blind people can tell apart (Okabe and Ito), darker ones from class 8 on. */
#ifndef DPF_DATA_SLICES_H
#define DPF_DATA_SLICES_H

#include "wire/header.h"

enum { DPF_SLICES_MASKS = 2 };

/* What is drawn. A field of labels that is drawn by itself is its own first mask. */
struct dpf_slices_plan {
    const struct dpf_field *field;
    const struct dpf_field *masks[DPF_SLICES_MASKS]; /* NULL: none */
    uint64_t channel;
};

struct dpf_slices;

/* Whether the field holds volumes: [C,D,H,W], or [D,H,W] with labels or with D not 1 or 3
 * (which is a picture). With a mask: whether the mask is of its positions. */
bool dpf_slices_can_draw(const struct dpf_field *f, const struct dpf_field *mask);
/* Fields are borrowed while it is made. A mask without classes or of another size, and a
 * channel that is not there, are DPF_USAGE. */
enum dpf_status dpf_slices_new(struct dpf_slices **take_slices,
                               const struct dpf_slices_plan *plan, struct dpf_error *e);
void dpf_slices_destroy(struct dpf_slices **s);
/* Offer record `row` of the field's tensor, and of its masks' in the order of the plan.
 * Ignored when full. */
void dpf_slices_add(struct dpf_slices *s, const struct dpf_tensor *x,
                    const struct dpf_tensor *const *masks, uint64_t row);
bool dpf_slices_full(const struct dpf_slices *s);
enum dpf_status dpf_slices_save(const struct dpf_slices *s, const char *path,
                                struct dpf_error *e);

#endif
