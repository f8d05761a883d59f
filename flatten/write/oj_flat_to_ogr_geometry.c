#include "oj_flat_to_ogr_geometry.h"
#include "../arrays/oj_wkb.h"
#include "../base/oj_alloc.h"
#include "../read/oj_attribute_table.h"

#include <limits.h>

/* Converts a point, line string or polygon to its multi type; other types are
 * returned unchanged. Takes ownership of geometry. */
static OGRGeometryH shape_to_multi(OGRGeometryH geometry)
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

oj_status oj_flat_to_ogr_shape(const struct oj_flat *flat, int64_t feature,
                               int multi, OGRGeometryH *out,
                               struct oj_error *err)
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
        return oj_fail(err, OJ_ERR_NOMEM,
                       "out of memory for a geometry: free memory, or use a "
                       "smaller -batch");
    *out = geometry;
    return OJ_OK;
}

/* ---- geometries of rows -------------------------------------------------- */

/* Returns a copy of the geometry of a row as it was read, with Z and M; NULL:
 * the row has no geometry, or the copy failed; then *is_made is set to 0. */
static OGRGeometryH copy_geometry_as_read(const struct oj_attributes *rows,
                                          int64_t row, int *is_made)
{
    OGRGeometryH geometry = NULL;
    const uint8_t *wkb;
    size_t n = 0;
    if (rows->slice.chunk == NULL)
    {
        OGRGeometryH read = oj_attributes_geometry(rows, row);
        geometry = read != NULL ? OGR_G_Clone(read) : NULL;
        *is_made = read == NULL || geometry != NULL;
        return geometry;
    }
    wkb = oj_slice_wkb(&rows->slice, row, &n);
    *is_made = wkb == NULL ||
               (n <= INT_MAX && OGR_G_CreateFromWkb(wkb, NULL, &geometry,
                                                    (int)n) == OGRERR_NONE);
    return geometry;
}

oj_status oj_row_geometry_make(const struct oj_batch *batch, int64_t row,
                               const struct oj_row_geometry *shape,
                               OGRGeometryH *out, struct oj_error *err)
{
    int is_made = 1;
    *out = NULL;
    if (shape->is_as_read)
        *out = copy_geometry_as_read(batch->attributes, row, &is_made);
    else if (shape->flat != NULL)
        OJ_TRY(oj_flat_to_ogr_shape(shape->flat, shape->feature, shape->multi,
                                    out, err));
    if (*out != NULL && shape->multi)
        *out = shape_to_multi(*out);
    if (is_made)
        return OJ_OK;
    if (batch->attributes->slice.chunk == NULL)
        return oj_fail(err, OJ_ERR_NOMEM,
                       "out of memory for a geometry: free memory, or use "
                       "smaller batches");
    return oj_fail(
        err, OJ_ERR_IO,
        "OGR cannot read the geometry of feature %lld back from WKB, so it is "
        "not written: correct it, or leave it out by -where",
        (long long)batch->flat.fid[row]);
}
