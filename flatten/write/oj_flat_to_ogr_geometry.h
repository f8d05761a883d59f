/** Converts arrays to OGR geometries, and makes the geometries of output rows.
 *  Geometries made by a join are two-dimensional, as the arrays are. */
#ifndef OJ_FLAT_TO_OGR_GEOMETRY_H
#define OJ_FLAT_TO_OGR_GEOMETRY_H

#include "oj_row_layout.h"

#include <ogr_api.h>

/** Makes the geometry of a feature, owned by the caller; *out is NULL for a
 *  feature without parts. One part becomes a point, line string or polygon, or
 *  with multi its multi type; several of one kind its multi type; several kinds
 *  a collection. */
OJ_MUST_USE oj_status oj_flat_to_ogr_shape(const struct oj_flat *flat,
                                           int64_t feature, int multi,
                                           OGRGeometryH *out,
                                           struct oj_error *err);

/** Makes the geometry of an output row for a row of batch, owned by the caller;
 *  *out is NULL if it has none. */
OJ_MUST_USE oj_status oj_row_geometry_make(const struct oj_batch *batch,
                                           int64_t row,
                                           const struct oj_row_geometry *shape,
                                           OGRGeometryH *out,
                                           struct oj_error *err);

#endif
