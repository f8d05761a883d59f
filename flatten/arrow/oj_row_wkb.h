/** Geometries of rows -> a column of ISO WKB, little-endian, the same bytes
 * that OGR writes for the geometry of the row's feature. */
#ifndef OJ_ROW_WKB_H
#define OJ_ROW_WKB_H

#include "../write/oj_row_cursor.h"
#include "oj_row_column.h"

/** Adds the geometries of n rows of the current answer of cursor to a column of
 *  format z, until one does not fit, and says in *n_added how many were
 *  added. */
OJ_MUST_USE oj_status oj_row_wkb_add(const struct oj_row_cursor *cursor,
                                     const struct oj_row_place *places,
                                     int64_t n, struct oj_row_column *to,
                                     int64_t *n_added, struct oj_error *err);

#endif
