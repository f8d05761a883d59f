/** Makes Arrow arrays of computed columns.
 *
 *   numbers  values of 4 or 8 bytes, and which rows have one
 *   bytes    texts or WKB, appended row by row
 */
#ifndef OJ_ARROW_COLUMN_H
#define OJ_ARROW_COLUMN_H

#include "oj_arrow_array.h"

/** Makes an array of n values of size bytes, none of them NULL. The caller
 * fills *values and marks NULLs by oj_arrow_column_set_null(). */
OJ_MUST_USE oj_status oj_arrow_column_numbers(int64_t n, size_t size,
                                              struct ArrowArray *out,
                                              void **values,
                                              struct oj_error *err);

/** Marks row i of an array of numbers as NULL. */
OJ_MUST_USE oj_status oj_arrow_column_set_null(struct ArrowArray *array,
                                               int64_t i, struct oj_error *err);

/** A column of texts or bytes that is filled row by row. Owner; zeroed memory
 * is a valid empty one with 32-bit offsets. */
struct oj_arrow_bytes_column
{
    int is_large; /**< 1: 64-bit offsets */
    int64_t n, n_bytes, n_null;
    void *offset;
    char *bytes;
    uint8_t *valid;
    int64_t cap_offset, cap_bytes, cap_valid;
};

/** Adds a row of n bytes, which the caller writes to *to; n < 0: NULL.
 * OJ_ERR_LIMIT: 32-bit offsets cannot hold it. */
OJ_MUST_USE oj_status
oj_arrow_bytes_column_add(struct oj_arrow_bytes_column *column, int64_t n,
                          char **to, struct oj_error *err);

/** Moves the rows into an array; the column is then empty. */
OJ_MUST_USE oj_status
oj_arrow_bytes_column_finish(struct oj_arrow_bytes_column *column,
                             struct ArrowArray *out, struct oj_error *err);

void oj_arrow_bytes_column_free(struct oj_arrow_bytes_column *column);

#endif
