#include "oj_layer_shape.h"

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

static OGRGeometryH make_line(const struct oj_flat *flat, int64_t ring,
                              OGRwkbGeometryType type)
{
    int64_t first = flat->vertex_offset[ring];
    int64_t n = flat->vertex_offset[ring + 1] - first;
    OGRGeometryH line;
    if (n > INT32_MAX)
        return NULL;
    line = OGR_G_CreateGeometry(type);
    if (line != NULL)
        OGR_G_SetPoints(line, (int)n, flat->x + first, sizeof(double),
                        flat->y + first, sizeof(double), NULL, 0);
    return line;
}

static OGRGeometryH make_polygon(const struct oj_flat *flat, int64_t part)
{
    OGRGeometryH polygon = OGR_G_CreateGeometry(wkbPolygon);
    for (int64_t ring = flat->ring_offset[part];
         polygon != NULL && ring < flat->ring_offset[part + 1]; ring++)
    {
        OGRGeometryH line = make_line(flat, ring, wkbLinearRing);
        if (line != NULL &&
            OGR_G_AddGeometryDirectly(polygon, line) == OGRERR_NONE)
            continue;
        OGR_G_DestroyGeometry(polygon);
        return NULL;
    }
    return polygon;
}

static OGRGeometryH make_point(double x, double y)
{
    OGRGeometryH point = OGR_G_CreateGeometry(wkbPoint);
    if (point != NULL)
        OGR_G_SetPoint_2D(point, 0, x, y);
    return point;
}

static OGRGeometryH make_part(const struct oj_flat *flat, int64_t part)
{
    int64_t ring = flat->ring_offset[part];
    int64_t vertex = flat->vertex_offset[ring];
    if (flat->part_kind[part] == OJ_PART_POLYGON)
        return make_polygon(flat, part);
    if (flat->part_kind[part] == OJ_PART_LINE)
        return make_line(flat, ring, wkbLineString);
    return make_point(flat->x[vertex], flat->y[vertex]);
}

/* The type of a geometry that holds these parts. */
static OGRwkbGeometryType collection_of(const struct oj_flat *flat,
                                        int64_t first, int64_t end)
{
    uint8_t kind = flat->part_kind[first];
    for (int64_t part = first + 1; part < end; part++)
    {
        if (flat->part_kind[part] != kind)
            return wkbGeometryCollection;
    }
    return kind == OJ_PART_POLYGON ? wkbMultiPolygon
           : kind == OJ_PART_LINE  ? wkbMultiLineString
                                   : wkbMultiPoint;
}

static OGRGeometryH make_parts(const struct oj_flat *flat, int64_t first,
                               int64_t end)
{
    OGRGeometryH all = OGR_G_CreateGeometry(collection_of(flat, first, end));
    for (int64_t part = first; all != NULL && part < end; part++)
    {
        OGRGeometryH one = make_part(flat, part);
        if (one != NULL && OGR_G_AddGeometryDirectly(all, one) == OGRERR_NONE)
            continue;
        OGR_G_DestroyGeometry(all);
        return NULL;
    }
    return all;
}

oj_status oj_layer_shape(const struct oj_flat *flat, int64_t feature, int multi,
                         OGRGeometryH *out, struct oj_error *err)
{
    OGRGeometryH geometry;
    if (oj_flat_is_points(flat))
    {
        if (!(flat->x[feature] - flat->x[feature] == 0.0))
        {
            *out = NULL;
            return OJ_OK;
        }
        geometry = make_point(flat->x[feature], flat->y[feature]);
    }
    else
    {
        int64_t first = flat->part_offset[feature];
        int64_t end = flat->part_offset[feature + 1];
        if (first == end)
        {
            *out = NULL;
            return OJ_OK;
        }
        geometry = end - first == 1 ? make_part(flat, first)
                                    : make_parts(flat, first, end);
    }
    if (geometry != NULL && multi)
        geometry = oj_layer_shape_to_multi(geometry);
    if (geometry == NULL)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory: a geometry");
    *out = geometry;
    return OJ_OK;
}
