/** Rows on their way into a chunk, for lanes that make their columns
 *  themselves: a value per row and column, or none, in the order of the rows.
 *
 *  column  format  values              bytes
 *  FID     l       int64_t [max_rows]
 *  geom.   Z       offsets [+ 1]       WKB after WKB
 *  fields  as oj_column.h says, 0: none
 */
#ifndef OJ_CHUNK_ROWS_H
#define OJ_CHUNK_ROWS_H

#include "oj_chunk.h"

#include <string.h>

/** While rows come. */
struct oj_chunk_column
{
    char format;
    size_t size; /* of one of values */
    uint8_t *bits;
    void *values;
    char *bytes;
    int64_t n_bytes, cap_bytes;
    int64_t max_rows; /* 0: of a part */
    int n_null;
};

struct oj_chunk_rows
{
    int n_columns;
    int64_t max_rows;
    struct oj_chunk_column column[]; /**< [OJ_CHUNK_FIELDS and the fields] */
};

/** Room for max_rows rows.
 *  format      [n_fields] of the fields
 *  field_size  bytes of a value of format F */
OJ_MUST_USE oj_status oj_chunk_rows_new(const char *format, int n_fields,
                                        int64_t max_rows, size_t field_size,
                                        struct oj_chunk_rows **out,
                                        struct oj_error *err);

/** Accepts NULL. */
void oj_chunk_rows_free(struct oj_chunk_rows *rows);

/** Makes *part one of some rows of whole, which begin where a byte of bits
 * does: bits and values are those of whole, bytes are its own. *part is NULL or
 * an earlier one, of the same columns, whose memory is used again. */
OJ_MUST_USE oj_status oj_chunk_part_begin(const struct oj_chunk_rows *whole,
                                          struct oj_chunk_rows **part,
                                          struct oj_error *err);

/** Adds the bytes of a part, with n_rows rows from row on, to whole: parts are
 *  added in the order of their rows. */
OJ_MUST_USE oj_status oj_chunk_part_add(struct oj_chunk_rows *whole,
                                        const struct oj_chunk_rows *part,
                                        int64_t row, int64_t n_rows,
                                        struct oj_error *err);

/** Accepts NULL. */
void oj_chunk_part_free(struct oj_chunk_rows *part);

/** The first n_rows rows as a chunk, which rows goes over to. */
OJ_MUST_USE oj_status oj_chunk_rows_finish(struct oj_chunk_rows *rows,
                                           int64_t n_rows,
                                           struct oj_chunk **out,
                                           struct oj_error *err);

/** The row has a value, which the caller puts into values. */
static inline void oj_chunk_mark(struct oj_chunk_column *column, int64_t row)
{
    column->bits[row >> 3] |= (uint8_t)(1u << (row & 7));
}

/** The row has no value. */
void oj_chunk_add_null(struct oj_chunk_column *column, int64_t row);

/** Room for n bytes behind those of the rows before, of format U or Z; when it
 *  grows, for all rows to come if they are like these. */
OJ_MUST_USE oj_status oj_chunk_room(struct oj_chunk_column *column, int64_t row,
                                    int64_t n, struct oj_error *err);

/** The row's value is the next n bytes, which were put there. */
static inline void oj_chunk_end_bytes(struct oj_chunk_column *column,
                                      int64_t row, int64_t n)
{
    column->n_bytes += n;
    ((int64_t *)column->values)[row + 1] = column->n_bytes;
    oj_chunk_mark(column, row);
}

/** The row's value, of format U or Z. */
OJ_MUST_USE oj_status oj_chunk_add_bytes(struct oj_chunk_column *column,
                                         int64_t row, const void *bytes,
                                         int64_t n, struct oj_error *err);

#endif
