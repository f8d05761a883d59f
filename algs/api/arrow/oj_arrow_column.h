/** Columns that are computed, as Arrow arrays.
 *
 *   numbers  values of 4 or 8 bytes, and which rows have one
 *   bytes    texts or WKB, appended row by row
 */
#ifndef OJ_ARROW_COLUMN_H
#define OJ_ARROW_COLUMN_H

#include "oj_arrow_array.h"

/** Makes room for n values of size bytes, all of which are there: *values is
 *  filled by the caller, who says which rows have none. */
OJ_MUST_USE oj_status oj_arrow_column_numbers(int64_t n, size_t size,
                                              struct ArrowArray *out,
                                              void **values,
                                              struct oj_error *err);

/** Row i of an array of numbers has no value. */
OJ_MUST_USE oj_status oj_arrow_column_set_null(struct ArrowArray *array,
                                               int64_t i, struct oj_error *err);

/** Texts or bytes that are appended. Owner; zeroed memory is a valid empty one
 *  with offsets of 32 bits. */
struct oj_arrow_bytes_column
{
    int is_large; /**< offsets of 64 bits */
    int64_t n, n_bytes, n_null;
    void *offset;
    char *bytes;
    uint8_t *valid;
    int64_t cap_offset, cap_bytes, cap_valid;
};

/** Adds a row of n bytes, to be written to *to; n below 0: one without value.
 *  OJ_ERR_LIMIT: 32-bit offsets do not hold it. */
OJ_MUST_USE oj_status
oj_arrow_bytes_column_add(struct oj_arrow_bytes_column *column, int64_t n,
                          char **to, struct oj_error *err);

/** Hands the rows over; the column is empty afterwards. */
OJ_MUST_USE oj_status
oj_arrow_bytes_column_finish(struct oj_arrow_bytes_column *column,
                             struct ArrowArray *out, struct oj_error *err);

void oj_arrow_bytes_column_free(struct oj_arrow_bytes_column *column);

#endif
