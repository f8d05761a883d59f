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

/** 1 when OGR would write these bytes again after it has read them: ISO types,
 *  little-endian throughout, members of one dimension, no curve or surface,
 *  nothing empty, and nothing but the geometry. The bytes are not trusted. */
int oj_wkb_is_iso(const uint8_t *wkb, size_t n);

#endif
