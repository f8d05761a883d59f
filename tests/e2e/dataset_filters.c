#include "layer_rows.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* value of a row as it stands in SQL, or NULL; to be freed. */
static char *literal(OGRFeatureH row, int field)
{
    OGRFieldType type = OGR_Fld_GetType(OGR_F_GetFieldDefnRef(row, field));
    char *escaped, *text;
    double number;
    if (!OGR_F_IsFieldSetAndNotNull(row, field))
        return NULL;
    if (type == OFTInteger || type == OFTInteger64)
        return CPLStrdup(OGR_F_GetFieldAsString(row, field));
    number = OGR_F_GetFieldAsDouble(row, field);
    if (type == OFTReal && isfinite(number))
        return CPLStrdup(CPLSPrintf("%.17g", number));
    if (type != OFTString)
        return NULL;
    escaped =
        CPLEscapeString(OGR_F_GetFieldAsString(row, field), -1, CPLES_SQL);
    text = CPLStrdup(CPLSPrintf("'%s'", escaped));
    CPLFree(escaped);
    return text;
}

static int is_same_value(OGRFeatureH a, OGRFeatureH b, int field)
{
    char *text;
    int is_same;
    if (!OGR_F_IsFieldSetAndNotNull(b, field))
        return 0;
    if (OGR_Fld_GetType(OGR_F_GetFieldDefnRef(a, field)) == OFTReal)
        return OGR_F_GetFieldAsDouble(a, field) ==
               OGR_F_GetFieldAsDouble(b, field);
    text = CPLStrdup(OGR_F_GetFieldAsString(a, field));
    is_same = strcmp(text, OGR_F_GetFieldAsString(b, field)) == 0;
    CPLFree(text);
    return is_same;
}

static void check_field_filter(OGRLayerH layer, const struct layer_rows *all,
                               int field, char *keep)
{
    const char *name = OGR_Fld_GetNameRef(
        OGR_FD_GetFieldDefn(OGR_L_GetLayerDefn(layer), field));
    for (int k = 0; k < 3; k++)
    {
        OGRFeatureH row = all->at[any_number() % (uint32_t)all->n];
        char *value = literal(row, field), *filter;
        if (value == NULL)
            continue;
        filter = CPLStrdup(CPLSPrintf("\"%s\" = %s", name, value));
        for (int i = 0; i < all->n; i++)
            keep[i] = (char)is_same_value(row, all->at[i], field);
        expect(OGR_L_SetAttributeFilter(layer, filter) == OGRERR_NONE,
               "%s is refused", filter);
        expect_kept(layer, all, keep, filter);
        CPLFree(filter);
        CPLFree(value);
    }
    for (int is_null = 0; is_null < 2; is_null++)
    {
        char *filter = CPLStrdup(
            CPLSPrintf("\"%s\" IS %sNULL", name, is_null ? "" : "NOT "));
        for (int i = 0; i < all->n; i++)
            keep[i] = OGR_F_IsFieldSetAndNotNull(all->at[i], field) != is_null;
        OGR_L_SetAttributeFilter(layer, filter);
        expect_kept(layer, all, keep, filter);
        CPLFree(filter);
    }
    OGR_L_SetAttributeFilter(layer, NULL);
}

static void check_attribute_filters(OGRLayerH layer,
                                    const struct layer_rows *all)
{
    char *keep = CPLMalloc((size_t)all->n + 1);
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    check_begin("attribute filter");
    for (int field = 0; field < OGR_FD_GetFieldCount(defn) && all->n > 0;
         field++)
        check_field_filter(layer, all, field, keep);
    for (int i = 0; i < 3 && all->n > 0; i++)
    {
        GIntBig fid = OGR_F_GetFID(all->at[any_number() % (uint32_t)all->n]);
        char *filter = CPLStrdup(CPLSPrintf("FID = " CPL_FRMT_GIB, fid));
        for (int k = 0; k < all->n; k++)
            keep[k] = OGR_F_GetFID(all->at[k]) == fid;
        OGR_L_SetAttributeFilter(layer, filter);
        expect_kept(layer, all, keep, filter);
        CPLFree(filter);
    }
    memset(keep, 0, (size_t)all->n + 1);
    OGR_L_SetAttributeFilter(layer, "0 = 1");
    expect_kept(layer, all, keep, "0 = 1");
    memset(keep, 1, (size_t)all->n + 1);
    OGR_L_SetAttributeFilter(layer, "1 = 1");
    expect_kept(layer, all, keep, "1 = 1");
    OGR_L_SetAttributeFilter(layer, "");
    expect_kept(layer, all, keep, "an empty filter");
    /* What is no condition is refused, and the filter before it is gone or
     * stays: rows are not invented. */
    expect_errors();
    expect(OGR_L_SetAttributeFilter(layer, "no_such_field = 1") != OGRERR_NONE,
           "of a field that is not there");
    expect(OGR_L_SetAttributeFilter(layer, "= = (") != OGRERR_NONE,
           "that is none");
    expect_none();
    OGR_L_SetAttributeFilter(layer, NULL);
    expect_kept(layer, all, keep, "no filter after a bad one");
    CPLFree(keep);
}

/* What GDAL calls a hit of a spatial filter: what lies in a box is one, and
 * else a prepared geometry is asked (GEOS gives lines without length another
 * answer without it). */
static int is_hit(OGRGeometryH filter, OGRPreparedGeometryH prepared,
                  int is_box, OGRFeatureH row)
{
    OGRGeometryH shape = OGR_F_GetGeometryRef(row);
    OGREnvelope at, box;
    if (shape == NULL || OGR_G_IsEmpty(shape))
        return 0;
    OGR_G_GetEnvelope(shape, &at);
    OGR_G_GetEnvelope(filter, &box);
    if (is_box && at.MinX >= box.MinX && at.MinY >= box.MinY &&
        at.MaxX <= box.MaxX && at.MaxY <= box.MaxY)
        return 1;
    return OGRPreparedGeometryIntersects(prepared, shape);
}

static OGRGeometryH box_around(const OGREnvelope *at, double wider)
{
    OGRGeometryH ring = OGR_G_CreateGeometry(wkbLinearRing);
    OGRGeometryH box = OGR_G_CreateGeometry(wkbPolygon);
    double x[] = {at->MinX - wider, at->MaxX + wider},
           y[] = {at->MinY - wider, at->MaxY + wider};
    for (int i = 0; i < 5; i++)
        OGR_G_AddPoint_2D(ring, x[i == 1 || i == 2], y[i == 2 || i == 3]);
    OGR_G_AddGeometryDirectly(box, ring);
    return box;
}

/* A triangle over a corner of the box: no rectangle. */
static OGRGeometryH half_of(OGRGeometryH box)
{
    OGRGeometryH ring = OGR_G_CreateGeometry(wkbLinearRing);
    OGRGeometryH half = OGR_G_CreateGeometry(wkbPolygon);
    for (int i = 0; i < 4; i++)
        OGR_G_AddPoint_2D(ring, OGR_G_GetX(OGR_G_GetGeometryRef(box, 0), i % 3),
                          OGR_G_GetY(OGR_G_GetGeometryRef(box, 0), i % 3));
    OGR_G_AddGeometryDirectly(half, ring);
    return half;
}

static void check_spatial_filter(OGRLayerH layer, const struct layer_rows *all,
                                 OGRGeometryH filter, int is_box, char *keep)
{
    OGRPreparedGeometryH prepared = OGRCreatePreparedGeometry(filter);
    for (int i = 0; i < all->n; i++)
        keep[i] = (char)is_hit(filter, prepared, is_box, all->at[i]);
    OGRDestroyPreparedGeometry(prepared);
    OGR_L_SetSpatialFilter(layer, filter);
    expect_kept(layer, all, keep, "a spatial filter");
    if (all->n == 0)
        return;
    /* With an attribute filter as well. */
    {
        GIntBig fid = OGR_F_GetFID(all->at[any_number() % (uint32_t)all->n]);
        char *text = CPLStrdup(CPLSPrintf("FID >= " CPL_FRMT_GIB, fid));
        for (int i = 0; i < all->n; i++)
            keep[i] = (char)(keep[i] && OGR_F_GetFID(all->at[i]) >= fid);
        OGR_L_SetAttributeFilter(layer, text);
        expect_kept(layer, all, keep, "both filters");
        OGR_L_SetAttributeFilter(layer, NULL);
        CPLFree(text);
    }
}

static void check_spatial_filters(OGRLayerH layer, const struct layer_rows *all)
{
    char *keep = CPLMalloc((size_t)all->n + 1);
    OGREnvelope extent = {0, 0, 0, 0}, far = {9e7, 9.1e7, 9e7, 9.1e7};
    OGRGeometryH box;
    check_begin("spatial filter");
    if (OGR_L_GetGeomType(layer) == wkbNone)
    {
        CPLFree(keep);
        return;
    }
    expect_errors();
    OGR_L_GetExtent(layer, &extent, 1);
    expect_none();
    for (int i = 0; i < 12 && all->n > 0; i++)
    {
        OGRGeometryH shape =
            OGR_F_GetGeometryRef(all->at[any_number() % (uint32_t)all->n]);
        OGREnvelope at = extent;
        double wider = 0.0;
        OGRGeometryH half;
        if (shape != NULL && !OGR_G_IsEmpty(shape))
            OGR_G_GetEnvelope(shape, &at);
        if (i % 3 > 0) /* a box exactly that of a row has area only now */
            wider = (extent.MaxX - extent.MinX) * (i % 3 == 1 ? 0.01 : 0.2) + 1;
        if (at.MaxX > at.MinX || wider > 0.0)
        {
            box = box_around(&at, wider);
            half = half_of(box);
            check_spatial_filter(layer, all, box, 1, keep);
            check_spatial_filter(layer, all, half, 0, keep);
            OGR_G_DestroyGeometry(half);
            OGR_G_DestroyGeometry(box);
        }
    }
    if (extent.MaxX > extent.MinX)
    {
        box = box_around(&extent, 1);
        check_spatial_filter(layer, all, box, 1, keep);
        OGR_G_DestroyGeometry(box);
    }
    box = box_around(&far, 0);
    check_spatial_filter(layer, all, box, 1, keep);
    OGR_G_DestroyGeometry(box);
    /* The same corner by corner, and none. */
    OGR_L_SetSpatialFilterRect(layer, far.MinX, far.MinY, far.MaxX, far.MaxY);
    memset(keep, 0, (size_t)all->n + 1);
    expect_kept(layer, all, keep, "a box far away");
    OGR_L_SetSpatialFilter(layer, NULL);
    memset(keep, 1, (size_t)all->n + 1);
    expect_kept(layer, all, keep, "no spatial filter");
    expect_errors();
    OGR_L_SetSpatialFilterEx(layer, 7, NULL);
    expect_none();
    expect_kept(layer, all, keep, "a filter of no geometry field");
    CPLFree(keep);
}

/* Rows without the field (or geometry) are the others' equals in all else. */
static void check_without(OGRLayerH layer, const struct layer_rows *all,
                          int field, const char *name)
{
    const char *names[] = {name, NULL};
    struct layer_rows got;
    expect(OGR_L_SetIgnoredFields(layer, names) == OGRERR_NONE,
           "%s cannot be ignored", name);
    got = read_rows(layer);
    expect(got.n == all->n, "without %s %d rows in place of %d", name, got.n,
           all->n);
    expect(OGR_L_GetFeatureCount(layer, 1) == all->n,
           "without %s another count", name);
    for (int i = 0; i < got.n && i < all->n; i++)
    {
        if (field >= 0)
            expect(!OGR_F_IsFieldSetAndNotNull(got.at[i], field),
                   "%s is there in row %d", name, i);
        else
            expect(OGR_F_GetGeometryRef(got.at[i]) == NULL,
                   "the geometry is there in row %d", i);
        if (hash_row(got.at[i], field) != hash_row(all->at[i], field))
        {
            expect(0, "without %s row %d differs in other fields", name, i);
            break;
        }
    }
    free_rows(&got);
}

static void check_ignored_fields(OGRLayerH layer, const struct layer_rows *all)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    int n_fields = OGR_FD_GetFieldCount(defn);
    char **names = NULL;
    struct layer_rows got;
    check_begin("ignored fields");
    if (!OGR_L_TestCapability(layer, OLCIgnoreFields))
        return;
    for (int i = 0; i < n_fields; i++)
    {
        const char *name = OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(defn, i));
        check_without(layer, all, i, name);
        names = CSLAddString(names, name);
    }
    if (OGR_FD_GetGeomFieldCount(defn) > 0)
        check_without(layer, all, NO_GEOMETRY, "OGR_GEOMETRY");
    /* Everything; then nothing. */
    names = CSLAddString(names, "OGR_GEOMETRY");
    names = CSLAddString(names, "OGR_STYLE");
    OGR_L_SetIgnoredFields(layer, (const char **)names);
    got = read_rows(layer);
    expect(got.n == all->n, "without anything %d rows in place of %d", got.n,
           all->n);
    for (int i = 0; i < got.n && i < all->n; i++)
        expect(OGR_F_GetFID(got.at[i]) == OGR_F_GetFID(all->at[i]),
               "without anything row %d has another FID", i);
    free_rows(&got);
    expect_errors();
    names = CSLAddString(names, "no such field");
    expect(OGR_L_SetIgnoredFields(layer, (const char **)names) != OGRERR_NONE,
           "takes a field that is not there");
    expect_none();
    OGR_L_SetIgnoredFields(layer, NULL);
    got = read_rows(layer);
    expect_same_rows(&got, all, "nothing ignored any more");
    free_rows(&got);
    CSLDestroy(names);
}

static void check_sql(GDALDatasetH dataset, OGRLayerH layer,
                      const struct layer_rows *all)
{
    static const char *const dialects[] = {"OGRSQL", "SQLITE"};
    const char *name = OGR_L_GetName(layer);
    check_begin("SQL");
    for (int i = 0; i < 2; i++)
        for (int is_none = 0; is_none < 2; is_none++)
        {
            char *sql = CPLStrdup(CPLSPrintf("SELECT * FROM \"%s\"%s", name,
                                             is_none ? " WHERE 0 = 1" : ""));
            OGRLayerH result =
                GDALDatasetExecuteSQL(dataset, sql, NULL, dialects[i]);
            struct layer_rows got = {NULL, NULL, 0, 0};
            expect(result != NULL, "%s: %s", dialects[i], sql);
            if (result != NULL)
                got = read_rows(result);
            expect(got.n == (is_none ? 0 : all->n),
                   "%s: %s: %d rows in place of %d", dialects[i], sql, got.n,
                   all->n);
            /* The other dialect numbers its rows itself. */
            if (i == 0 && !is_none)
                expect_same_rows(&got, all, sql);
            free_rows(&got);
            GDALDatasetReleaseResultSet(dataset, result);
            CPLFree(sql);
        }
}

void check_filters(GDALDatasetH dataset, OGRLayerH layer,
                   const struct layer_rows *all)
{
    check_attribute_filters(layer, all);
    check_spatial_filters(layer, all);
    check_ignored_fields(layer, all);
    check_sql(dataset, layer, all);
}
