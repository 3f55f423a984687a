/* Public bounds of a feature vector, read from a columns file (see columns.h). */
#ifndef DPF_DATA_BOUNDS_H
#define DPF_DATA_BOUNDS_H

#include "base/status.h"
#include "wire/header.h"

/* One pair for each of `features` features; DPF_USAGE if the file describes another
 * number of them. Release with dpf_bounds_release(), also after a failure. */
enum dpf_status dpf_bounds_read(const char *path, uint64_t features, struct dpf_bounds *b,
                                struct dpf_error *e);
/* The bounds that a user means: one pair `unit` if not NULL, else those of the columns
 * file `path` if not NULL, else the ones that the field declares (DPF_BAD_STREAM if it
 * declares none). Release likewise. */
enum dpf_status dpf_bounds_choose(const struct dpf_field *f, const double unit[2],
                                  const char *path, struct dpf_bounds *b,
                                  struct dpf_error *e);
void dpf_bounds_release(struct dpf_bounds *b);

#endif
