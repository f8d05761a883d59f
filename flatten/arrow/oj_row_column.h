/** A column of an Arrow array that is being filled with values of rows, a block
 *  of rows at a time.
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
#include "../write/oj_row_cursor.h"

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

/** Adds the values that column number source of the cursor has in n rows of its
 *  current answer, until one does not fit into to, and says in *n_added how
 *  many were added.
 *  source   < 0: no column; all are NULL
 *  scratch  of the cursor's definition and for this use alone */
OJ_MUST_USE oj_status oj_row_gather_field(const struct oj_row_cursor *cursor,
                                          int source, OGRFeatureH scratch,
                                          const struct oj_row_place *places,
                                          int64_t n, struct oj_row_column *to,
                                          int64_t *n_added,
                                          struct oj_error *err);

/** The same for their FIDs, which always fit. */
OJ_MUST_USE oj_status oj_row_gather_fids(const struct oj_row_place *places,
                                         int64_t n, struct oj_row_column *to,
                                         struct oj_error *err);

/** Adds their geometries to a column of format z, until one does not fit, and
 *  says in *n_added how many were added: ISO WKB, little-endian, the same bytes
 *  that OGR writes for the geometry of the row's feature. */
OJ_MUST_USE oj_status oj_row_gather_wkb(const struct oj_row_cursor *cursor,
                                        const struct oj_row_place *places,
                                        int64_t n, struct oj_row_column *to,
                                        int64_t *n_added, struct oj_error *err);

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

#endif
