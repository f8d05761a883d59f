/** Columns of values in memory, as readers pass them to writers. */
#ifndef OJ_COLUMN_H
#define OJ_COLUMN_H

#include <stddef.h>
#include <stdint.h>

/** A column of values in memory. Its format is a letter:
 *
 *   format  values                       bytes
 *   s i l   integers of 2, 4 or 8 bytes
 *   f g     floating-point numbers of 4 or 8 bytes
 *   u z     int32_t offsets [rows + 1]   texts, binaries
 *   U Z     int64_t offsets [rows + 1]   texts, binaries
 *   P       16 bytes each: x, y as in WKB, for plain points
 *   F       OGRField: all other types
 */
struct oj_column_view
{
    char format; /**< 0: no column; no row has a value */
    char gap;    /**< 1: a zero byte follows each value in bytes */
    /** Validity bitmap: a bit that is 0 marks a NULL. bits == NULL: the column
     * has no NULLs. */
    const uint8_t *bits;
    const void *values;
    const char *bytes;
    int64_t first; /**< offset of row 0 in values, offsets and bits */
};

static inline int oj_column_has_value(const struct oj_column_view *column,
                                      int64_t row)
{
    int64_t at = column->first + row;
    return column->format != 0 &&
           (column->bits == NULL ||
            (column->bits[at >> 3] >> (at & 7) & 1) != 0);
}

/** Returns the *n bytes of the text or binary of a row that is not NULL; format
 * u, z, U or Z. */
static inline const char *oj_column_bytes(const struct oj_column_view *column,
                                          int64_t row, int64_t *n)
{
    int64_t at = column->first + row, start, end;
    if (column->format == 'U' || column->format == 'Z')
    {
        start = ((const int64_t *)column->values)[at];
        end = ((const int64_t *)column->values)[at + 1];
    }
    else
    {
        start = ((const int32_t *)column->values)[at];
        end = ((const int32_t *)column->values)[at + 1];
    }
    *n = end - start - column->gap;
    return column->bytes + start;
}

#endif
