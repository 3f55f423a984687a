/* Tables as comma-separated text (RFC 4180), read as a stream under a public description
 * of their columns.
 *
 * Cells are private: messages name lines and columns, never content. Values outside the
 * declared bounds are clipped into them, because a bound that one record can break
 * protects nobody; how many were clipped is told at the end, which ones is not. */
#ifndef DPF_DATA_CSV_H
#define DPF_DATA_CSV_H

#include <stddef.h>

#include "base/status.h"
#include "data/bytes.h"
#include "data/columns.h"
#include "data/source.h"

/* What a table may grow to; 0 stands for the default. */
struct dpf_csv_limits {
    size_t line_bytes; /* 1 MiB */
    size_t fields;     /* a row: 65536 */
};

/* Field "x" (f32, or u8 when all features are whole numbers within 0..255) with feature
 * names and bounds, in the order of the description, and "y" if it has a target or a
 * label; then "person" and "time", i64, if it has such columns, or "link" alone, i64 [2].
 * With `columns` NULL the first line names the columns, all are numbers, and no bounds
 * are declared. `columns` is borrowed and must outlive the source; `limits` may be NULL.
 * Spaces around a cell that is not quoted do not count; empty lines are skipped. A table
 * that is not what the description says is DPF_BAD_STREAM. The record count is not known.
 * *take is destroyed by dpf_source_destroy(). */
enum dpf_status dpf_csv_open(const char *path, const struct dpf_columns *columns,
                             const struct dpf_csv_limits *limits,
                             struct dpf_source **take, struct dpf_error *e);
/* The same over opened bytes, which are consumed even on failure. */
enum dpf_status dpf_csv_new(struct dpf_bytes *take_bytes,
                            const struct dpf_columns *columns,
                            const struct dpf_csv_limits *limits, struct dpf_source **take,
                            struct dpf_error *e);

#endif
