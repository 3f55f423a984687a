#include "data/npy_write.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#include "base/banned.h"

enum { NPY_HEADER = 256 }; /* a multiple of 64 with room for any count */

static enum dpf_status write_header(struct dpf_npy_writer *w, struct dpf_error *e)
{
    static const char *const descr[DPF_DTYPE_COUNT] = {"|u1", "<i4", "<i8",
                                                       "<f4", "<f8", "|u1"};
    struct dpf_text t = {0};
    char block[NPY_HEADER];
    dpf_text_addf(&t, "{'descr': '%s', 'fortran_order': False, 'shape': (%llu,",
                  descr[w->field->dtype], (unsigned long long)w->records);
    for (int i = 0; i < w->field->shape.rank; i++) {
        uint64_t d = w->field->shape.dim[i];
        if (w->field->dtype == DPF_BITS && i == w->field->shape.rank - 1)
            d = (d + 7) / 8;
        dpf_text_addf(&t, " %llu,", (unsigned long long)d);
    }
    dpf_text_add(&t, "), }");
    bool fits = !t.failed && t.size + 11 <= NPY_HEADER;
    if (fits) {
        memset(block, ' ', sizeof block);
        memcpy(block, "\x93NUMPY\x01\x00", 8);
        block[8] = (char)((NPY_HEADER - 10) & 255);
        block[9] = (char)((NPY_HEADER - 10) >> 8);
        memcpy(block + 10, t.data, t.size);
        block[NPY_HEADER - 1] = '\n';
    }
    dpf_text_release(&t);
    if (!fits || pwrite(w->file.fd, block, sizeof block, 0) != (ssize_t)sizeof block)
        return dpf_fail_errno(e, "cannot write '%s'", w->file.path);
    return DPF_OK;
}

enum dpf_status dpf_npy_writer_open(struct dpf_npy_writer *w, const char *path,
                                    const struct dpf_field *field, struct dpf_error *e)
{
    *w = (struct dpf_npy_writer){.field = field};
    enum dpf_status status = dpf_outfile_open(&w->file, path, e);
    if (status == DPF_OK)
        status = write_header(w, e);
    if (status == DPF_OK && lseek(w->file.fd, NPY_HEADER, SEEK_SET) != NPY_HEADER)
        status = dpf_fail_errno(e, "cannot write '%s'", path);
    return status;
}

enum dpf_status dpf_npy_writer_add(struct dpf_npy_writer *w, const struct dpf_tensor *t,
                                   struct dpf_error *e)
{
    if (!dpf_write_all(w->file.fd, t->data, t->bytes))
        return dpf_fail_errno(e, "cannot write '%s'", w->file.path);
    w->records += dpf_tensor_rows(t);
    return DPF_OK;
}

enum dpf_status dpf_npy_writer_finish(struct dpf_npy_writer *w, struct dpf_error *e)
{
    enum dpf_status status = write_header(w, e);
    return status == DPF_OK ? dpf_outfile_commit(&w->file, e) : status;
}

void dpf_npy_writer_abort(struct dpf_npy_writer *w)
{
    dpf_outfile_abort(&w->file);
}
