/* NumPy's .npy and .npz files, without Python: a .npy file is a short dictionary and the
 * elements, a .npz file is a zip of them. Axis 0 counts the records. Everything is
 * streamed, and the dictionary is parsed, not evaluated. */
#ifndef DPF_DATA_NPY_H
#define DPF_DATA_NPY_H

#include <stdint.h>

#include "base/status.h"
#include "data/bytes.h"
#include "data/source.h"

/* A .npy file gives field "x"; each member NAME.npy of a .npz file gives field NAME, and
 * all must have the same number of records. Elements are u1, b1 (both u8, with their
 * bounds declared), i4, i8, f4 or f8, little-endian, in C order. With classes > 0 an
 * integer field "y" is checked and declared as labels. Anything else, a failed CRC or a
 * value that is not finite is DPF_BAD_STREAM. Which of the two a file is, its content
 * says. *take is destroyed by dpf_source_destroy(). */
enum dpf_status dpf_npy_open(const char *path, uint64_t classes, struct dpf_source **take,
                             struct dpf_error *e);
/* One .npy over opened bytes, which are consumed even on failure. */
enum dpf_status dpf_npy_new(struct dpf_bytes *take_bytes, struct dpf_source **take,
                            struct dpf_error *e);

#endif
