/** Converts OGR geometries to a flat layer: points directly, other types
 *  through WKB; OGR converts curves and surfaces to lines and polygons first.
 */
#ifndef OJ_LAYER_GEOMETRY_H
#define OJ_LAYER_GEOMETRY_H

#include "../arrays/oj_flat.h"

#include <ogr_api.h>

/** Buffers that are reused for every geometry. Zeroed memory is valid. */
struct oj_layer_geometry
{
    uint8_t *wkb;
    int64_t cap_wkb;
};

void oj_layer_geometry_free(struct oj_layer_geometry *geometry);

/** Writes the ISO WKB of geometry, little-endian, to work->wkb: *n bytes. */
OJ_MUST_USE oj_status oj_layer_geometry_wkb(struct oj_layer_geometry *work,
                                            OGRGeometryH geometry, size_t *n,
                                            struct oj_error *err);

/** Adds one feature. geometry may be NULL. Curves become line strings with
 *  OGR's step (4 degrees unless OGR_ARC_STEPSIZE is set), surfaces become their
 *  patches; such features are counted as linearised. */
OJ_MUST_USE oj_status oj_layer_geometry_add(struct oj_layer_geometry *work,
                                            struct oj_flat_buf *flat,
                                            int64_t fid, OGRGeometryH geometry,
                                            struct oj_error *err);

/** Like oj_layer_geometry_add(), for a geometry that a driver returned as n
 *  bytes of WKB. */
OJ_MUST_USE oj_status oj_layer_geometry_add_wkb(struct oj_layer_geometry *work,
                                                struct oj_flat_buf *flat,
                                                int64_t fid, const uint8_t *wkb,
                                                size_t n, struct oj_error *err);

#endif
