/** Rows -> columns of an Arrow array, a block of rows and a column at a time.
 */
#ifndef OJ_ROW_GATHER_H
#define OJ_ROW_GATHER_H

#include "../write/oj_row_cursor.h"
#include "oj_row_column.h"

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

#endif
