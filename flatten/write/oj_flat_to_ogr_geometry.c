#include "oj_flat_to_ogr_geometry.h"
#include "../arrays/oj_wkb.h"
#include "../base/oj_array.h"
#include "../read/oj_table.h"

#include <limits.h>
#include <math.h>

OGRGeometryH oj_layer_shape_to_multi(OGRGeometryH geometry)
{
    switch (wkbFlatten(OGR_G_GetGeometryType(geometry)))
    {
        case wkbPoint:
            return OGR_G_ForceToMultiPoint(geometry);
        case wkbLineString:
            return OGR_G_ForceToMultiLineString(geometry);
        case wkbPolygon:
            return OGR_G_ForceToMultiPolygon(geometry);
        default:
            return geometry;
    }
}

oj_status oj_layer_shape(const struct oj_flat *flat, int64_t feature, int multi,
                         OGRGeometryH *out, struct oj_error *err)
{
    int64_t n = oj_wkb_size(flat, feature, multi);
    OGRGeometryH geometry = NULL;
    uint8_t *wkb;
    int is_made;
    if (n == 0)
    {
        *out = NULL;
        return OJ_OK;
    }
    OJ_NEW(wkb, n, err);
    oj_wkb_write(flat, feature, multi, wkb);
    is_made = n <= INT_MAX &&
              OGR_G_CreateFromWkb(wkb, NULL, &geometry, (int)n) == OGRERR_NONE;
    oj_free(wkb);
    if (!is_made)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a geometry");
    *out = geometry;
    return OJ_OK;
}

/* ---- of rows ------------------------------------------------------------ */

/* A row on its way to the feature. */
struct row_target
{
    OGRFeatureH feature;
    int multi;
    int64_t fid;
    struct oj_error *err;
};

static oj_status fail_unwritable_geometry(const struct row_target *to)
{
    return oj_fail(to->err, OJ_ERR_IO,
                   "the geometry of feature %lld cannot be written",
                   (long long)to->fid);
}

/* A 2-D point: the one of the row before is used again where the driver left
 * it in place. */
static oj_status set_point(const struct row_target *to, double x, double y)
{
    OGRwkbGeometryType type = to->multi ? wkbMultiPoint : wkbPoint;
    OGRGeometryH geometry = OGR_F_GetGeometryRef(to->feature);
    OGRGeometryH point;
    if (geometry == NULL || OGR_G_GetGeometryType(geometry) != type ||
        (type == wkbMultiPoint && OGR_G_GetGeometryCount(geometry) != 1))
    {
        geometry = OGR_G_CreateGeometry(type);
        if (geometry != NULL && type == wkbMultiPoint)
            OGR_G_AddGeometryDirectly(geometry, OGR_G_CreateGeometry(wkbPoint));
        if (geometry == NULL ||
            OGR_F_SetGeometryDirectly(to->feature, geometry) != OGRERR_NONE)
            return fail_unwritable_geometry(to);
    }
    point =
        type == wkbMultiPoint ? OGR_G_GetGeometryRef(geometry, 0) : geometry;
    if (OGR_G_GetGeometryType(point) != wkbPoint) /* a driver touched it */
        OGR_G_SetCoordinateDimension(point, 2);
    OGR_G_SetPoint_2D(point, 0, x, y);
    return OJ_OK;
}

/* Takes geometry. */
static oj_status set_geometry(const struct row_target *to,
                              OGRGeometryH geometry)
{
    if (geometry != NULL && to->multi)
        geometry = oj_layer_shape_to_multi(geometry);
    if (OGR_F_SetGeometryDirectly(to->feature, geometry) != OGRERR_NONE)
        return fail_unwritable_geometry(to);
    return OJ_OK;
}

static oj_status set_wkb(const struct row_target *to, const uint8_t *wkb,
                         size_t n)
{
    const uint8_t *at = wkb != NULL ? oj_wkb_plain_point(wkb, n) : NULL;
    OGRGeometryH geometry = NULL;
    if (at != NULL)
    {
        double x = oj_wkb_double(at), y = oj_wkb_double(at + 8);
        if (!isnan(x) || !isnan(y)) /* NaN NaN: POINT EMPTY */
            return set_point(to, x, y);
    }
    if (wkb != NULL &&
        (n > INT_MAX ||
         OGR_G_CreateFromWkb(wkb, NULL, &geometry, (int)n) != OGRERR_NONE))
        return fail_unwritable_geometry(to);
    return set_geometry(to, geometry);
}

/* As the reader gave it, Z and M kept. */
static oj_status set_geometry_as_read(const struct row_target *to,
                                      const struct oj_attributes *attributes,
                                      int64_t row)
{
    OGRGeometryH geometry;
    size_t n = 0;
    if (attributes->slice.chunk != NULL)
    {
        const uint8_t *wkb = oj_slice_wkb(&attributes->slice, row, &n);
        return set_wkb(to, wkb, n);
    }
    geometry = oj_attributes_geometry(attributes, row);
    if (geometry != NULL && OGR_G_GetGeometryType(geometry) == wkbPoint &&
        !OGR_G_IsEmpty(geometry))
        return set_point(to, OGR_G_GetX(geometry, 0), OGR_G_GetY(geometry, 0));
    return set_geometry(to, geometry != NULL ? OGR_G_Clone(geometry) : NULL);
}

oj_status oj_row_geometry_set(OGRFeatureH feature, const struct oj_batch *batch,
                              int64_t row, const struct oj_row_geometry *shape,
                              struct oj_error *err)
{
    const struct row_target to = {feature, shape->multi, batch->flat.fid[row],
                                  err};
    const struct oj_flat *flat = shape->flat;
    OGRGeometryH geometry = NULL;
    if (shape->is_as_read)
        return set_geometry_as_read(&to, batch->attributes, row);
    if (flat != NULL && oj_flat_is_points(flat) &&
        !isnan(flat->x[shape->feature]))
        return set_point(&to, flat->x[shape->feature], flat->y[shape->feature]);
    if (flat != NULL)
        OJ_TRY(
            oj_layer_shape(flat, shape->feature, shape->multi, &geometry, err));
    return set_geometry(&to, geometry);
}
