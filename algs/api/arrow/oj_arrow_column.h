/** Builds an Arrow column of a type, row by row: numbers, bits, texts, binaries
 *  and lists.  Both doors to Arrow use it: JOIN: and the library.
 *
 *   storage   values                            others
 *   bits      one bit per row
 *   fixed     1, 2, 4 or 8 bytes per row
 *   bytes     offsets of 4 or 8 bytes, rows + 1  bytes
 *   lists     likewise                           item, the column of the values
 *
 *    0 1 2 3 4 5 6 7 | 8 9 ...      rows
 *   [1 1 0 1 1 1 1 1]               valid: made with the first NULL; rows
 *                                   beyond it have a value
 *
 *  A value is written at the position of its row, so that rows that are given
 *  up are overwritten by later ones. Rows come in order, without gaps. NULL is
 *  stored as zero, or as no bytes.
 */
#ifndef OJ_ARROW_COLUMN_H
#define OJ_ARROW_COLUMN_H

#include "arrow_values.h"
#include "oj_arrow_array.h"
#include "oj_arrow_type.h"

/** A column that is being filled. Owner; zeroed memory can be freed. */
struct oj_arrow_column
{
    struct oj_arrow_type type;
    int is_nullable; /**< 0: NULL is stored as zero and not marked */
    int64_t limit; /**< maximum number of bytes, or of list values; at most what
                        the offsets can hold */
    struct oj_arrow_column *item; /**< lists: column of the values; owned */

    void *values; /**< numbers may be written here, after
                       oj_arrow_column_make_room() */
    char *bytes;
    uint8_t *valid;
    int64_t n_room; /**< rows that values have room for */
    int64_t cap_values, cap_bytes, cap_valid;

    /** rows and bytes to allocate at first; the caller may set them. They
     * become those of the last array, for the next one */
    int64_t n_expected, n_expected_bytes;
};

/** Initialises an empty column for values of a schema's type. n_expected: its
 * rows, if they are known, else 0.
 * OJ_ERR_UNSUPPORTED: dictionaries, and types whose storage is not listed above
 * or whose values have more than 8 bytes. */
OJ_MUST_USE oj_status oj_arrow_column_open(const struct ArrowSchema *schema,
                                           int64_t n_expected,
                                           struct oj_arrow_column *out,
                                           struct oj_error *err);

/** Likewise, for a nullable column of a format that has no children. */
OJ_MUST_USE oj_status oj_arrow_column_open_format(const char *format,
                                                  int64_t n_expected,
                                                  struct oj_arrow_column *out,
                                                  struct oj_error *err);

void oj_arrow_column_free(struct oj_arrow_column *column);

/** Makes room for rows first .. first + n - 1; those before first are kept. */
OJ_MUST_USE oj_status oj_arrow_column_make_room(struct oj_arrow_column *column,
                                                int64_t first, int64_t n,
                                                struct oj_error *err);

/** Stores NULL as the value of a row. */
OJ_MUST_USE oj_status oj_arrow_column_put_null(struct oj_arrow_column *column,
                                               int64_t row,
                                               struct oj_error *err);

/** Marks a row as one that has a value. For numbers that the caller writes. */
static inline void oj_arrow_column_mark(struct oj_arrow_column *column,
                                        int64_t row)
{
    if (row < 8 * column->cap_valid)
        arrow_put_bit(column->valid, row, 1);
}

/** Makes room for a row and marks it as one that has a value. */
OJ_MUST_USE static inline oj_status
oj_arrow_column_begin_value(struct oj_arrow_column *column, int64_t row,
                            struct oj_error *err)
{
    if (row >= column->n_room)
        OJ_TRY(oj_arrow_column_make_room(column, row, 1, err));
    oj_arrow_column_mark(column, row);
    return OJ_OK;
}

/** Stores an integer, or a bit, as the value of a row; only the bits that the
 * type holds. */
OJ_MUST_USE oj_status
oj_arrow_column_put_integer(struct oj_arrow_column *column, int64_t row,
                            int64_t value, struct oj_error *err);

/** Stores a number in a column of float (4 bytes) or double (8). */
OJ_MUST_USE oj_status oj_arrow_column_put_real(struct oj_arrow_column *column,
                                               int64_t row, double value,
                                               struct oj_error *err);

/** Makes room for n bytes as the value of a row, which the caller writes to
 * *to. *to NULL: the limit would be exceeded, and nothing was stored. */
OJ_MUST_USE oj_status oj_arrow_column_put_bytes(struct oj_arrow_column *column,
                                                int64_t row, int64_t n,
                                                char **to,
                                                struct oj_error *err);

/** Begins a list of n values as the value of a row: the caller stores them in
 * column->item, as its rows *first to *first + n - 1. *first -1: the limit
 * would be exceeded, and nothing was stored. */
OJ_MUST_USE oj_status oj_arrow_column_put_list(struct oj_arrow_column *column,
                                               int64_t row, int64_t n,
                                               int64_t *first,
                                               struct oj_error *err);

/** Moves the first n_rows rows into an array; the column is then empty and can
 * be filled again. On failure, too, out is to be released. */
OJ_MUST_USE oj_status oj_arrow_column_finish(struct oj_arrow_column *column,
                                             int64_t n_rows,
                                             struct ArrowArray *out,
                                             struct oj_error *err);

#endif
