/** A column of an Arrow array that is being filled.
 *
 *   format  values                      bytes     item
 *   b       bits
 *   s i f   2 or 4 bytes each
 *   l g     8 bytes each
 *   D       int32: days since 1970
 *   t       int32: milliseconds of the day
 *   T       int64: milliseconds since 1970
 *   w       -                           width each
 *   u z     int32 offsets [length + 1]  values
 *   +       int32 offsets [length + 1]            the values of the lists
 *
 *  Rows without value hold zero, or nothing. Part of the layer writer: includes
 *  GDAL's C API.
 */
#ifndef OJ_ROW_COLUMN_H
#define OJ_ROW_COLUMN_H

#include "../read/oj_layer_arrow.h"
#include "../read/oj_value.h"

#include <stdint.h>

struct ArrowArray;

/** Owner; zeroed memory is a valid freed one. */
struct oj_row_column
{
    char format;
    int is_nullable; /**< 0: rows without value are zeroes that count */
    int is_utc;      /**< T: values of a known time zone become UTC */
    int width;       /**< w */
    struct oj_row_column *item; /**< +: owned */

    /** Most bytes (u, z, w), values of lists (+), and bytes of their texts. */
    int64_t limit;

    int64_t length, n_nulls;
    uint8_t *valid; /**< a bit per row; NULL: no row is NULL */
    void *values;
    char *bytes;
    int64_t n_bytes;
    int64_t cap_valid, cap_values, cap_bytes;
};

/** An empty column of the format that the letters of an Arrow schema name;
 *  *known is 0 for a format that this does not make. item: of "+l", else NULL.
 */
OJ_MUST_USE oj_status oj_row_column_init(struct oj_row_column *column,
                                         const char *format, const char *item,
                                         int is_nullable, int64_t limit,
                                         int *known, struct oj_error *err);

/** 1 when values of fields of the type fit into a column of its format; of
 *  binaries those of any length. */
int oj_row_column_takes(const struct oj_row_column *column, OGRFieldType type);

void oj_row_column_free(struct oj_row_column *column);

/** Room for one more value of u or z, of n bytes: *at is where it goes.  The
 *  column has the row then; *at is NULL when it does not fit. */
OJ_MUST_USE oj_status oj_row_column_add_room(struct oj_row_column *column,
                                             int64_t n, char **at,
                                             struct oj_error *err);

/** Adds one value of any format, of a field of the type that the format was
 *  made for; *fits is 0, and nothing is added, when it would pass the limit. */
OJ_MUST_USE oj_status oj_row_column_add(struct oj_row_column *column,
                                        const struct oj_value *value,
                                        OGRFieldType type, int *fits,
                                        struct oj_error *err);

/** Forgets all rows from length on. */
void oj_row_column_cut(struct oj_row_column *column, int64_t length);

/** Fills array with buffers that are NULL and zeroed children; also where it
 *  fails, array->release is set. */
OJ_MUST_USE oj_status oj_row_column_make_array(int n_buffers, int n_children,
                                               struct ArrowArray *array,
                                               struct oj_error *err);

/** Hands the rows over to array (all of it is filled, offset 0), and begins
 *  anew. Nothing has changed when it fails. */
OJ_MUST_USE oj_status oj_row_column_finish(struct oj_row_column *column,
                                           struct ArrowArray *array,
                                           struct oj_error *err);

/** Frees what oj_row_column_finish() made, children with it: the release
 *  function of such arrays, and of arrays of them. */
void oj_row_column_release(struct ArrowArray *array);

#endif
