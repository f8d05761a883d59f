/** The geometries of output rows, and arrays -> OGR geometries: the way back,
 *  for geometries that a join made.  These are two-dimensional, as the arrays
 *  are. */
#ifndef OJ_FLAT_TO_OGR_GEOMETRY_H
#define OJ_FLAT_TO_OGR_GEOMETRY_H

#include "oj_row_layout.h"

#include <ogr_api.h>

/** The geometry of a feature, the caller's; *out is NULL for a feature without
 *  parts. One part gives a point, a line string or a polygon, or with multi its
 *  multi type; several of one kind give that, of several kinds a collection. */
OJ_MUST_USE oj_status oj_flat_to_ogr_shape(const struct oj_flat *flat,
                                           int64_t feature, int multi,
                                           OGRGeometryH *out,
                                           struct oj_error *err);

/** The geometry of a row of batch, the caller's; NULL: it has none. */
OJ_MUST_USE oj_status oj_row_geometry_make(const struct oj_batch *batch,
                                           int64_t row,
                                           const struct oj_row_geometry *shape,
                                           OGRGeometryH *out,
                                           struct oj_error *err);

#endif
