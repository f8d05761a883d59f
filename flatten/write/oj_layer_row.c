#include "oj_layer_row.h"
#include "../arrays/oj_wkb.h"
#include "oj_layer_shape.h"

#include <limits.h>
#include <math.h>

static oj_status fail_geometry(int64_t fid, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_IO,
                   "the geometry of feature %lld cannot be written",
                   (long long)fid);
}

/* A 2-D point: the one of the row before is used again where the driver left
 * it in place. */
oj_status oj_row_geometry_set_point(struct oj_row_geometry *g, double x,
                                    double y, int64_t fid, struct oj_error *err)
{
    OGRwkbGeometryType type = g->promote_to_multi ? wkbMultiPoint : wkbPoint;
    OGRGeometryH geometry = OGR_F_GetGeometryRef(g->feature);
    OGRGeometryH point;
    if (geometry == NULL || OGR_G_GetGeometryType(geometry) != type ||
        (type == wkbMultiPoint && OGR_G_GetGeometryCount(geometry) != 1))
    {
        geometry = OGR_G_CreateGeometry(type);
        if (geometry != NULL && type == wkbMultiPoint)
            OGR_G_AddGeometryDirectly(geometry, OGR_G_CreateGeometry(wkbPoint));
        if (geometry == NULL ||
            OGR_F_SetGeometryDirectly(g->feature, geometry) != OGRERR_NONE)
            return fail_geometry(fid, err);
    }
    point =
        type == wkbMultiPoint ? OGR_G_GetGeometryRef(geometry, 0) : geometry;
    if (OGR_G_GetGeometryType(point) != wkbPoint) /* a driver touched it */
        OGR_G_SetCoordinateDimension(point, 2);
    OGR_G_SetPoint_2D(point, 0, x, y);
    g->n_without += isnan(x) || isnan(y); /* to OGR it is empty */
    return OJ_OK;
}

/* Takes geometry. */
static oj_status set_geometry(struct oj_row_geometry *g, OGRGeometryH geometry,
                              int64_t fid, struct oj_error *err)
{
    if (geometry != NULL && g->promote_to_multi)
        geometry = oj_layer_shape_to_multi(geometry);
    if (geometry == NULL || OGR_G_IsEmpty(geometry))
        g->n_without++;
    if (OGR_F_SetGeometryDirectly(g->feature, geometry) != OGRERR_NONE)
        return fail_geometry(fid, err);
    return OJ_OK;
}

static oj_status geometry_from_wkb(struct oj_row_geometry *g,
                                   const struct oj_batch *batch, int64_t row,
                                   int64_t fid, struct oj_error *err)
{
    size_t n = 0;
    const uint8_t *wkb = oj_arrow_wkb(&batch->attributes->slice, row, &n);
    const uint8_t *at = wkb != NULL ? oj_wkb_plain_point(wkb, n) : NULL;
    OGRGeometryH geometry = NULL;
    if (at != NULL)
    {
        double x = oj_wkb_double(at), y = oj_wkb_double(at + 8);
        if (!isnan(x) || !isnan(y)) /* NaN NaN: POINT EMPTY */
            return oj_row_geometry_set_point(g, x, y, fid, err);
    }
    if (wkb != NULL &&
        (n > INT_MAX ||
         OGR_G_CreateFromWkb(wkb, NULL, &geometry, (int)n) != OGRERR_NONE))
        return fail_geometry(fid, err);
    return set_geometry(g, geometry, fid, err);
}

static oj_status geometry_from_feature(struct oj_row_geometry *g,
                                       const struct oj_batch *batch,
                                       int64_t row, int64_t fid,
                                       struct oj_error *err)
{
    const struct oj_attributes *attributes = batch->attributes;
    int field = attributes->fields->geometry_field;
    OGRGeometryH geometry = NULL;
    if (field >= 0)
        geometry = OGR_F_GetGeomFieldRef(attributes->feature[row], field);
    if (geometry != NULL && OGR_G_GetGeometryType(geometry) == wkbPoint &&
        !OGR_G_IsEmpty(geometry))
        return oj_row_geometry_set_point(g, OGR_G_GetX(geometry, 0),
                                         OGR_G_GetY(geometry, 0), fid, err);
    return set_geometry(g, geometry != NULL ? OGR_G_Clone(geometry) : NULL, fid,
                        err);
}

oj_status oj_row_geometry_set_batch(struct oj_row_geometry *g,
                                    const struct oj_batch *batch, int64_t row,
                                    struct oj_error *err)
{
    int64_t fid = batch->flat.fid[row];
    if (batch->attributes->slice.chunk != NULL)
        return geometry_from_wkb(g, batch, row, fid, err);
    return geometry_from_feature(g, batch, row, fid, err);
}

oj_status oj_row_geometry_set_flat(struct oj_row_geometry *g,
                                   const struct oj_flat *flat, int64_t feature,
                                   int64_t fid, struct oj_error *err)
{
    OGRGeometryH geometry;
    OJ_TRY(oj_layer_shape(flat, feature, g->multi_shapes, &geometry, err));
    return set_geometry(g, geometry, fid, err);
}

oj_status oj_row_geometry_set_line(struct oj_row_geometry *g, double x0,
                                   double y0, double x1, double y1, int64_t fid,
                                   struct oj_error *err)
{
    OGRGeometryH line = OGR_G_CreateGeometry(wkbLineString);
    if (line == NULL)
        return fail_geometry(fid, err);
    OGR_G_AddPoint_2D(line, x0, y0);
    OGR_G_AddPoint_2D(line, x1, y1);
    return set_geometry(g, line, fid, err);
}

oj_status oj_row_geometry_set_null(struct oj_row_geometry *g,
                                   struct oj_error *err)
{
    return set_geometry(g, NULL, OGRNullFID, err);
}
