/* The pictures of a stream: contact sheets of picture fields, slices of volumes. */
#ifndef DPF_STAGE_SHEETS_H
#define DPF_STAGE_SHEETS_H

#include "data/picture.h"
#include "data/slices.h"
#include "options/options.h"
#include "wire/batch.h"

struct dpf_sheets {
    /* what the user asked for, then what it takes */
    const char *folder;
    bool heat;
    struct dpf_list overlay; /* names of masks */
    int64_t channel;
    struct dpf_sheet *sheets[DPF_MAX_FIELDS]; /* one of the two for a field, or none */
    struct dpf_slices *slices[DPF_MAX_FIELDS];
    int masks[DPF_SLICES_MASKS]; /* numbers of their fields; below 0: none */
    int label_field;             /* below 0: none */
};

/* Choose what is drawn of a header's fields. */
enum dpf_status dpf_sheets_open(struct dpf_sheets *v, struct dpf_header *h,
                                struct dpf_error *e);
void dpf_sheets_add(struct dpf_sheets *v, const struct dpf_batch *b);
/* Write DIR/FIELD.png of each field that was drawn. */
enum dpf_status dpf_sheets_save(const struct dpf_sheets *v, const struct dpf_header *h,
                                struct dpf_error *e);
void dpf_sheets_release(struct dpf_sheets *v);

#endif
