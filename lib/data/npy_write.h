/* Writing .npy files as a stream goes by: the record count is put into the header at the
 * end, when it is known. */
#ifndef DPF_DATA_NPY_WRITE_H
#define DPF_DATA_NPY_WRITE_H

#include "base/file.h"
#include "wire/header.h"

struct dpf_npy_writer {
    struct dpf_outfile file;
    const struct dpf_field *field;
    uint64_t records;
};

/* `field` is borrowed. Packed bits are written as bytes. */
enum dpf_status dpf_npy_writer_open(struct dpf_npy_writer *w, const char *path,
                                    const struct dpf_field *field, struct dpf_error *e);
enum dpf_status dpf_npy_writer_add(struct dpf_npy_writer *w, const struct dpf_tensor *t,
                                   struct dpf_error *e);
enum dpf_status dpf_npy_writer_finish(struct dpf_npy_writer *w, struct dpf_error *e);
void dpf_npy_writer_abort(struct dpf_npy_writer *w);

#endif
