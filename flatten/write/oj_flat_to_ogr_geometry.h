/** Converts arrays to OGR geometries, and makes the geometries of output rows.
 *  Geometries that a join makes are two-dimensional, since the arrays are. */
#ifndef OJ_FLAT_TO_OGR_GEOMETRY_H
#define OJ_FLAT_TO_OGR_GEOMETRY_H

#include "oj_row_layout.h"

#include <ogr_api.h>

/** Makes the geometry of a feature, owned by the caller; *out is NULL for a
 *  feature without parts. One part becomes a point, line string or polygon,
 *  with multi != 0 the multi type; several parts of one kind become the multi
 *  type, other ones a collection. */
OJ_MUST_USE oj_status oj_flat_to_ogr_shape(const struct oj_flat *flat,
                                           int64_t feature, int multi,
                                           OGRGeometryH *out,
                                           struct oj_error *err);

/** Makes the geometry of an output row, owned by the caller, as `shape`
 * describes it: the one read with row `row` of batch, or a feature of
 * shape->flat. *out is NULL if the output row has no geometry. */
OJ_MUST_USE oj_status oj_row_geometry_make(const struct oj_batch *batch,
                                           int64_t row,
                                           const struct oj_row_geometry *shape,
                                           OGRGeometryH *out,
                                           struct oj_error *err);

#endif
