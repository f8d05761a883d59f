#include "oj_layer_geometry.h"
#include "../arrays/oj_wkb.h"
#include "../base/oj_alloc.h"

#include <limits.h>
#include <string.h>

void oj_layer_geometry_free(struct oj_layer_geometry *work)
{
    oj_free(work->wkb);
    memset(work, 0, sizeof *work);
}

oj_status oj_layer_geometry_wkb(struct oj_layer_geometry *work,
                                OGRGeometryH geometry, size_t *n,
                                struct oj_error *err)
{
    int size = OGR_G_WkbSize(geometry);
    if (size <= 0)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "its geometry takes more than 2 GiB as WKB");
    OJ_ROOM(work->wkb, 0, size, work->cap_wkb, err);
    if (OGR_G_ExportToIsoWkb(geometry, wkbNDR, work->wkb) != OGRERR_NONE)
        return oj_fail(err, OJ_ERR_DATA,
                       "OGR cannot write its geometry as WKB");
    *n = (size_t)size;
    return OJ_OK;
}

/* Adds the vertices of a line as a ring. */
static oj_status add_ring(struct oj_flat_buf *flat, OGRGeometryH line,
                          struct oj_error *err)
{
    const int n = OGR_G_GetPointCount(line);
    double *x, *y, *m;
    OJ_TRY(oj_flat_buf_begin_ring(flat, err));
    OJ_TRY(oj_flat_buf_add_vertices(flat, n, &x, &y, err));
    OGR_G_GetPoints(line, x, sizeof *x, y, sizeof *y, NULL, 0);
    m = oj_flat_buf_last_m(flat, n);
    for (int i = 0; m != NULL && OGR_G_IsMeasured(line) && i < n; i++)
        m[i] = oj_flat_clean_m_value(OGR_G_GetM(line, i));
    return OJ_OK;
}

/* Converts a curve polygon ring by ring, because OGR's conversion of the whole
 * fails if a ring is open. */
static oj_status add_curve_polygon(struct oj_flat_buf *flat,
                                   OGRGeometryH curves, struct oj_error *err)
{
    int n = OGR_G_GetGeometryCount(curves);
    oj_status status = oj_flat_buf_begin_part(flat, OJ_PART_POLYGON, err);
    for (int i = 0; i < n && status == OJ_OK; i++)
    {
        OGRGeometryH line =
            OGR_G_GetLinearGeometry(OGR_G_GetGeometryRef(curves, i), 0.0, NULL);
        status = line != NULL
                     ? add_ring(flat, line, err)
                     : oj_fail(err, OJ_ERR_DATA,
                               "OGR cannot convert a ring of curves to lines");
        OGR_G_DestroyGeometry(line);
    }
    return status;
}

/* Converts a copy of geometry to lines and polygons without curves, and adds
 * the parts of the copy. */
static oj_status add_parts_without_curves(struct oj_layer_geometry *work,
                                          struct oj_flat_buf *flat,
                                          OGRGeometryH geometry,
                                          struct oj_error *err)
{
    OGRwkbGeometryType type = wkbFlatten(OGR_G_GetGeometryType(geometry));
    OGRGeometryH linear;
    size_t n = 0;
    oj_status status;
    if (type == wkbCurvePolygon)
        return add_curve_polygon(flat, geometry, err);
    if (type == wkbTriangle)
        linear = OGR_G_ForceToPolygon(OGR_G_Clone(geometry));
    else
        linear = OGR_G_GetLinearGeometry(geometry, 0.0, NULL);
    if (linear == NULL)
        return oj_fail(err, OJ_ERR_DATA,
                       "OGR cannot convert a geometry of type %s to lines",
                       OGR_G_GetGeometryName(geometry));
    status = oj_layer_geometry_wkb(work, linear, &n, err);
    OGR_G_DestroyGeometry(linear);
    return status == OJ_OK ? oj_wkb_add_parts(flat, work->wkb, n, err) : status;
}

/* Adds the members of collections and surfaces one by one: OGR converts curves
 * inside a collection, but not surfaces. depth: number of collections around
 * the geometry. */
static oj_status append_members_recursively(struct oj_layer_geometry *work,
                                            struct oj_flat_buf *flat,
                                            OGRGeometryH geometry, int depth,
                                            struct oj_error *err)
{
    OGRwkbGeometryType type = wkbFlatten(OGR_G_GetGeometryType(geometry));
    int n;
    if (type != wkbGeometryCollection && type != wkbTIN &&
        type != wkbPolyhedralSurface && type != wkbMultiSurface)
        return add_parts_without_curves(work, flat, geometry, err);
    if (depth >= OJ_WKB_MAX_DEPTH)
        return oj_fail(err, OJ_ERR_DATA,
                       "collections are nested more than %d deep: make one "
                       "collection of them",
                       OJ_WKB_MAX_DEPTH);
    n = OGR_G_GetGeometryCount(geometry);
    for (int i = 0; i < n; i++)
        OJ_TRY(append_members_recursively(
            work, flat, OGR_G_GetGeometryRef(geometry, i), depth + 1, err));
    return OJ_OK;
}

static oj_status add_linearized(struct oj_layer_geometry *work,
                                struct oj_flat_buf *flat, int64_t fid,
                                OGRGeometryH geometry, struct oj_error *err)
{
    oj_status status;
    OJ_TRY(oj_flat_buf_begin_feature(flat, fid, err));
    status = append_members_recursively(work, flat, geometry, 0, err);
    if (status == OJ_OK)
        status = oj_flat_buf_end_feature(flat, err);
    if (status == OJ_OK)
        flat->counts.n_linearized++;
    else
        oj_flat_buf_drop_feature(flat);
    return status;
}

oj_status oj_layer_geometry_add(struct oj_layer_geometry *work,
                                struct oj_flat_buf *flat, int64_t fid,
                                OGRGeometryH geometry, struct oj_error *err)
{
    size_t n = 0;
    oj_status status;
    if (geometry == NULL)
        return oj_flat_buf_add_null(flat, fid, err);
    if (wkbFlatten(OGR_G_GetGeometryType(geometry)) == wkbPoint &&
        !OGR_G_IsEmpty(geometry))
        return oj_flat_buf_add_point(flat, fid, OGR_G_GetX(geometry, 0),
                                     OGR_G_GetY(geometry, 0), err);
    OJ_TRY(oj_layer_geometry_wkb(work, geometry, &n, err));
    status = oj_wkb_add(flat, fid, work->wkb, n, err);
    if (status == OJ_ERR_UNSUPPORTED)
        status = add_linearized(work, flat, fid, geometry, err);
    return status;
}

oj_status oj_layer_geometry_add_wkb(struct oj_layer_geometry *work,
                                    struct oj_flat_buf *flat, int64_t fid,
                                    const uint8_t *wkb, size_t n,
                                    struct oj_error *err)
{
    OGRGeometryH geometry = NULL;
    oj_status status = oj_wkb_add(flat, fid, wkb, n, err);
    if (status != OJ_ERR_UNSUPPORTED)
        return status;
    if (n > INT_MAX ||
        OGR_G_CreateFromWkb(wkb, NULL, &geometry, (int)n) != OGRERR_NONE)
        return oj_fail(err, OJ_ERR_DATA, "broken WKB of a curve or surface");
    status = add_linearized(work, flat, fid, geometry, err);
    OGR_G_DestroyGeometry(geometry);
    return status;
}
