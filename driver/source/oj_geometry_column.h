/** A layer whose geometries are those of another column: -input_geometry and
 *  -join_geometry.
 *
 *    layer: FID | geometry | second geometry | WKT as text | name
 *    view of the text:  FID | geometry made of the text | name
 *
 *  A column is a further geometry column of the layer, or a field: a text with
 *  WKT, EWKT or WKB in hexadecimal digits, or bytes with WKB or EWKB.  Reading,
 *  filters and random access go to the layer; nothing is stored.  Spatial
 *  filters are tested feature by feature.
 */
#ifndef OJ_GEOMETRY_COLUMN_H
#define OJ_GEOMETRY_COLUMN_H

#include "../../flatten/base/oj_status.h"

#include <ogr_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Finds the column of this name, ignoring case: a geometry column, or else a
 *  field.
 *
 *  *out    receives a view of the layer, which must be closed before the layer;
 *          NULL if the column is the layer's first geometry already
 *  option  named in errors, without its dash
 *  skips_failures  1: features whose value is no geometry are left out, and
 *          oj_geometry_column_close() warns of them; 0: reading fails there
 *
 *  Features of the view have the layer's FIDs and all its fields except that
 *  column. An empty text is a NULL geometry. OJ_ERR_ARG, listing the columns:
 *  there is no such column, or it cannot hold geometries. */
OJ_MUST_USE oj_status oj_geometry_column_choose(
    OGRLayerH layer, const char *name, const char *option, int skips_failures,
    OGRLayerH *out, struct oj_error *err);

/** Closes a view. Accepts NULL. */
void oj_geometry_column_close(OGRLayerH view);

#ifdef __cplusplus
}
#endif
#endif
