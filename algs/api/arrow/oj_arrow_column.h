/** Builds an Arrow column row by row: numbers, bits, texts, binaries or lists.
 *  Used by the Arrow streams of JOIN: and of the library.
 *
 *   storage   values                            other memory
 *   bits      one bit per row
 *   fixed     1, 2, 4 or 8 bytes per row
 *   bytes     offsets of 4 or 8 bytes, rows + 1  bytes
 *   lists     offsets, as for bytes              item, the column of the values
 *
 *    0 1 2 3 4 5 6 7 | 8 9 ...      rows
 *   [1 1 0 1 1 1 1 1]               valid: bitmap, made with the first NULL;
 *                                   rows after its end are not NULL
 *
 *  Rows are written in order, without gaps. A row may be written again, if the
 *  caller discards the rows from there on. NULL is stored as zero, or as no
 *  bytes.
 */
#ifndef OJ_ARROW_COLUMN_H
#define OJ_ARROW_COLUMN_H

#include "arrow_values.h"
#include "oj_arrow_array.h"
#include "oj_arrow_type.h"

/** A column that is being built. Owner; zeroed memory can be freed. */
struct oj_arrow_column
{
    struct oj_arrow_type type;
    int is_nullable; /**< 0: the column has no validity bitmap; NULL is stored
                          as zero */
    int64_t limit; /**< maximum number of bytes, or of list values, in all rows
                        together; at most what the offsets can address */
    struct oj_arrow_column *item; /**< for lists: the column of their values;
                                       owned */

    void *values; /**< array of the rows' numbers or offsets. The caller may
                       write numbers here directly after
                       oj_arrow_column_make_room() */
    char *bytes;
    uint8_t *valid;
    int64_t n_room; /**< number of rows that values has room for */
    int64_t cap_values, cap_bytes, cap_valid;

    /** Number of rows and of bytes to allocate first. The caller may set them;
     * oj_arrow_column_finish() sets them to the sizes of the array it has made.
     */
    int64_t n_expected, n_expected_bytes;
};

/** Initialises an empty column for values of a schema's type. n_expected:
 * expected number of rows, or 0. Fails with OJ_ERR_UNSUPPORTED for
 * dictionaries, for storage that is not listed at the top of this file, and
 * for values of more than 8 bytes. */
OJ_MUST_USE oj_status oj_arrow_column_open(const struct ArrowSchema *schema,
                                           int64_t n_expected,
                                           struct oj_arrow_column *out,
                                           struct oj_error *err);

/** Initialises an empty, nullable column of a type that an Arrow format string
 * describes, without children. Otherwise like oj_arrow_column_open(). */
OJ_MUST_USE oj_status oj_arrow_column_open_format(const char *format,
                                                  int64_t n_expected,
                                                  struct oj_arrow_column *out,
                                                  struct oj_error *err);

void oj_arrow_column_free(struct oj_arrow_column *column);

/** Makes room for the rows first .. first + n - 1. Rows before first are kept.
 */
OJ_MUST_USE oj_status oj_arrow_column_make_room(struct oj_arrow_column *column,
                                                int64_t first, int64_t n,
                                                struct oj_error *err);

/** Stores NULL as the value of a row. */
OJ_MUST_USE oj_status oj_arrow_column_put_null(struct oj_arrow_column *column,
                                               int64_t row,
                                               struct oj_error *err);

/** Marks a row as not NULL, after the caller has written its number. */
static inline void oj_arrow_column_mark_valid(struct oj_arrow_column *column,
                                              int64_t row)
{
    if (row < 8 * column->cap_valid)
        arrow_put_bit(column->valid, row, 1);
}

/** Makes room for a row and marks it as not NULL. */
OJ_MUST_USE static inline oj_status
oj_arrow_column_begin_value(struct oj_arrow_column *column, int64_t row,
                            struct oj_error *err)
{
    if (row >= column->n_room)
        OJ_TRY(oj_arrow_column_make_room(column, row, 1, err));
    oj_arrow_column_mark_valid(column, row);
    return OJ_OK;
}

/** Stores an integer or a bit; bits that the type cannot hold are dropped. */
OJ_MUST_USE oj_status
oj_arrow_column_put_integer(struct oj_arrow_column *column, int64_t row,
                            int64_t value, struct oj_error *err);

/** Stores a number in a column of float (4 bytes) or double (8 bytes). */
OJ_MUST_USE oj_status oj_arrow_column_put_real(struct oj_arrow_column *column,
                                               int64_t row, double value,
                                               struct oj_error *err);

/** Makes room for a value of n bytes, which the caller then writes to *to. If
 * column->limit would be exceeded, stores nothing and sets *to to NULL. */
OJ_MUST_USE oj_status oj_arrow_column_put_bytes(struct oj_arrow_column *column,
                                                int64_t row, int64_t n,
                                                char **to,
                                                struct oj_error *err);

/** Starts a list of n values. The caller stores them as rows *first .. *first +
 * n - 1 of column->item. If column->limit would be exceeded, stores nothing and
 * sets *first to -1. */
OJ_MUST_USE oj_status oj_arrow_column_put_list(struct oj_arrow_column *column,
                                               int64_t row, int64_t n,
                                               int64_t *first,
                                               struct oj_error *err);

/** Moves the first n_rows rows into an array, and empties the column for the
 * next array. out must be released, also on failure. */
OJ_MUST_USE oj_status oj_arrow_column_finish(struct oj_arrow_column *column,
                                             int64_t n_rows,
                                             struct ArrowArray *out,
                                             struct oj_error *err);

#endif
