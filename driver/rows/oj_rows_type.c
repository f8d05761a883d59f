/* The geometry type of the output. */
#include "oj_rows.h"

#include "../base/oj_message.h"

#include <string.h>

/* The dimension that the declared type tells, as the kind of its parts; 0:
 * anything. */
static unsigned kind_of(OGRwkbGeometryType type)
{
    switch (OGR_GT_Flatten(type))
    {
        case wkbPoint:
        case wkbMultiPoint:
            return OJ_PART_POINT;
        case wkbUnknown:
        case wkbNone:
        case wkbGeometryCollection:
            return 0;
        default:
            break;
    }
    if (OGR_GT_IsSubClassOf(OGR_GT_Flatten(type), wkbCurve) ||
        OGR_GT_IsSubClassOf(OGR_GT_Flatten(type), wkbMultiCurve))
        return OJ_PART_LINE;
    return OJ_PART_POLYGON;
}

/* Shapes from arrays: two-dimensional, without curves. */
static OGRwkbGeometryType type_of_arrays(OGRwkbGeometryType type)
{
    OGRwkbGeometryType flat = OGR_GT_Flatten(type);
    switch (flat)
    {
        case wkbTIN:
        case wkbPolyhedralSurface:
            return wkbMultiPolygon;
        case wkbTriangle:
            return wkbPolygon;
        default:
            return OGR_GT_GetLinear(flat);
    }
}

/* A type that takes rows of both. Z and M of either stay. */
static OGRwkbGeometryType type_of_both(OGRwkbGeometryType a,
                                       OGRwkbGeometryType b)
{
    OGRwkbGeometryType flat = OGR_GT_Flatten(a);
    if (flat != OGR_GT_Flatten(b))
        flat = wkbUnknown;
    return OGR_GT_SetModifier(flat, OGR_GT_HasZ(a) || OGR_GT_HasZ(b),
                              OGR_GT_HasM(a) || OGR_GT_HasM(b));
}

static int has_one_type(GDALDriverH driver)
{
    return driver != NULL &&
           strcmp(GDALGetDescription(driver), "ESRI Shapefile") == 0;
}

/* Shapefile tells neither single from multi nor one type from another later:
 * rows of one kind are all it takes. */
static oj_status type_of_both_in_one(unsigned a, unsigned b,
                                     OGRwkbGeometryType of_a,
                                     OGRwkbGeometryType of_b,
                                     OGRwkbGeometryType *type,
                                     struct oj_error *err)
{
    OGRwkbGeometryType flat = a == OJ_PART_POLYGON ? wkbPolygon
                              : a == OJ_PART_LINE  ? wkbLineString
                                                   : OGR_GT_Flatten(of_a);
    if (a != b || a == 0 ||
        (a == OJ_PART_POINT && OGR_GT_Flatten(of_a) != OGR_GT_Flatten(of_b)))
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "a Shapefile has one geometry type, and join rows that "
                       "match nothing bring another one; write GPKG, or leave "
                       "out -how right or full");
    *type = OGR_GT_SetModifier(flat, OGR_GT_HasZ(of_a) || OGR_GT_HasZ(of_b),
                               OGR_GT_HasM(of_a) || OGR_GT_HasM(of_b));
    return OJ_OK;
}

/* In a Shapefile: what two features of these kinds can have in common at most,
 * and nothing of lower dimension. */
static oj_status type_of_common_in_one(struct oj_rows *rows, unsigned a,
                                       unsigned b, OGRwkbGeometryType *type,
                                       struct oj_error *err)
{
    unsigned least = a < b ? a : b;
    if (a == 0 || b == 0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "a Shapefile has one geometry type, and the layers do "
                       "not say theirs: write the intersections as GPKG");
    rows->request.shape_kinds = least;
    *type = least == OJ_PART_POLYGON ? wkbPolygon
            : least == OJ_PART_LINE  ? wkbLineString
                                     : wkbMultiPoint;
    oj_notice("a Shapefile has one geometry type: parts of intersections that "
              "are no %s are left out",
              least == OJ_PART_POLYGON ? "polygons"
              : least == OJ_PART_LINE  ? "lines"
                                       : "points");
    return OJ_OK;
}

/* A point has a point in common with anything; all else is open. */
static OGRwkbGeometryType type_of_common(OGRwkbGeometryType a,
                                         OGRwkbGeometryType b)
{
    return OGR_GT_Flatten(a) == wkbPoint || OGR_GT_Flatten(b) == wkbPoint
               ? wkbPoint
               : wkbUnknown;
}

oj_status oj_rows_type(struct oj_rows *rows, GDALDriverH driver,
                       OGRwkbGeometryType *type, struct oj_error *err)
{
    OGRwkbGeometryType a = rows->job->input.type, b = rows->job->join.type;
    switch (rows->geometry)
    {
        case OJ_WRITE_JOIN:
            *type = type_of_arrays(b);
            break;
        case OJ_WRITE_NEAREST_POINT:
            *type = wkbPoint;
            break;
        case OJ_WRITE_CONNECTION:
            *type = wkbLineString;
            break;
        case OJ_WRITE_SHAPE:
            *type = type_of_common(a, b);
            if (has_one_type(driver) && *type == wkbUnknown)
                return type_of_common_in_one(rows, kind_of(a), kind_of(b), type,
                                             err);
            break;
        case OJ_WRITE_INPUT:
            *type = a;
            if (!oj_rows_has_unmatched_join(rows))
                break;
            *type = type_of_both(a, b);
            if (has_one_type(driver))
                return type_of_both_in_one(kind_of(a), kind_of(b), a, b, type,
                                           err);
            break;
    }
    return OJ_OK;
}
