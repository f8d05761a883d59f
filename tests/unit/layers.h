/** Layers for tests of code that uses OGR, with every field type and every
 * shape, made by a real driver. Also compares whole layers. */
#ifndef OJ_TEST_LAYERS_H
#define OJ_TEST_LAYERS_H

#include "assertions.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>
#include <ogr_api.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

struct test_field
{
    const char *name;
    OGRFieldType type;
    OGRFieldSubType subtype;
};

/* Indices in test_fields, and numbers of fields. Arrow streams can carry the
 * first N_SIMPLE_FIELDS fields. */
enum
{
    FIELD_I32 = 1,
    FIELD_TEXT = 5,
    N_SIMPLE_FIELDS = 7,
    N_FIELDS = 15
};

static const struct test_field test_fields[N_FIELDS] = {
    {"i16", OFTInteger, OFSTInt16},
    {"i32", OFTInteger, OFSTNone},
    {"i64", OFTInteger64, OFSTNone},
    {"f32", OFTReal, OFSTFloat32},
    {"f64", OFTReal, OFSTNone},
    {"text", OFTString, OFSTNone},
    {"blob", OFTBinary, OFSTNone},
    {"b", OFTInteger, OFSTBoolean},
    {"day", OFTDate, OFSTNone},
    {"hour", OFTTime, OFSTNone},
    {"moment", OFTDateTime, OFSTNone},
    {"ints", OFTIntegerList, OFSTNone},
    {"longs", OFTInteger64List, OFSTNone},
    {"reals", OFTRealList, OFSTNone},
    {"words", OFTStringList, OFSTNone}};

static const char *const test_shapes[] = {
    "POINT (1 2)",
    "POINT Z (1 2 3)",
    "POINT M (1 2 4)",
    "POINT ZM (1 2 3 4)",
    "POINT EMPTY",
    "MULTIPOINT (5 6)",
    "MULTIPOINT Z (5 6 7,8 9 10)",
    "LINESTRING (0 0,1 1,2 0)",
    "LINESTRING EMPTY",
    "MULTILINESTRING ((0 0,1 1))",
    "MULTILINESTRING ((0 0,1 1),(5 5,6 6,7 7))",
    "POLYGON ((0 0,10 0,10 10,0 10,0 0),(1 1,2 1,2 2,1 1))",
    "POLYGON EMPTY",
    "MULTIPOLYGON (((0 0,1 0,1 1,0 0)),((5 5,6 5,6 6,5 5)))",
    "GEOMETRYCOLLECTION (POINT (1 1),LINESTRING (0 0,1 1))",
    "GEOMETRYCOLLECTION EMPTY",
    "CIRCULARSTRING (0 0,1 1,2 0)",
    "COMPOUNDCURVE (CIRCULARSTRING (0 0,1 1,2 0),(2 0,3 0))",
    "CURVEPOLYGON (CIRCULARSTRING (0 0,1 1,2 0,1 -1,0 0))",
    "MULTICURVE ((0 0,1 1),CIRCULARSTRING (0 0,1 1,2 0))",
    "MULTISURFACE (CURVEPOLYGON (CIRCULARSTRING (0 0,1 1,2 0,1 -1,0 0)))",
    "TRIANGLE ((0 0,1 0,0 1,0 0))",
    "TIN Z (((0 0 0,0 0 1,0 1 0,0 0 0)),((0 0 0,0 1 0,1 1 0,0 0 0)))",
    "POLYHEDRALSURFACE Z (((0 0 0,0 1 0,1 1 0,1 0 0,0 0 0)),"
    "((0 0 0,0 1 0,0 1 1,0 0 1,0 0 0)))",
    "GEOMETRYCOLLECTION (POINT (3 3),GEOMETRYCOLLECTION (TIN Z "
    "(((0 0 0,0 0 1,0 1 0,0 0 0)))))",
    "CURVEPOLYGON ((0 0,4 0,4 4,0 4))", /* a ring that is not closed */
    "MULTISURFACE (((0 0,4 0,4 4,0 0)),CURVEPOLYGON ((0 0,4 0,4 4,0 4)))"};

enum
{
    N_SHAPES = (int)(sizeof test_shapes / sizeof test_shapes[0]),
    FIRST_CURVE = 15
};

/* Makes a dataset with one layer "things" that has the first n_fields fields of
 * test_fields. */
static inline GDALDatasetH make_layer(const char *driver, const char *path,
                                      int n_fields, OGRwkbGeometryType type,
                                      const char *const *options)
{
    GDALDatasetH dataset = GDALCreate(GDALGetDriverByName(driver), path, 0, 0,
                                      0, GDT_Unknown, NULL);
    OGRLayerH layer;
    ck_assert_ptr_nonnull(dataset);
    layer =
        GDALDatasetCreateLayer(dataset, "things", NULL, type, (char **)options);
    ck_assert_ptr_nonnull(layer);
    for (int i = 0; i < n_fields; i++)
    {
        OGRFieldDefnH field =
            OGR_Fld_Create(test_fields[i].name, test_fields[i].type);
        OGR_Fld_SetSubType(field, test_fields[i].subtype);
        ck_assert_int_eq(OGR_L_CreateField(layer, field, 1), OGRERR_NONE);
        OGR_Fld_Destroy(field);
    }
    return dataset;
}

static inline void set_list(OGRFeatureH feature, int field, OGRFieldType type,
                            int i)
{
    const int ints[] = {i, -i, 0};
    const GIntBig longs[] = {(GIntBig)i << 33, -1};
    const double reals[] = {i / 7.0, -0.0, 1e300};
    char *words[] = {"a", "", "\xC3\xA9t\xC3\xA9", NULL};
    if (type == OFTIntegerList)
        OGR_F_SetFieldIntegerList(feature, field, i % 4, ints);
    else if (type == OFTInteger64List)
        OGR_F_SetFieldInteger64List(feature, field, i % 3, longs);
    else if (type == OFTRealList)
        OGR_F_SetFieldDoubleList(feature, field, i % 4, reals);
    else
        OGR_F_SetFieldStringList(feature, field, words);
}

/* Sets a value that depends on the row number. Some values are NULL, some
 * unset. */
static inline void set_value(OGRFeatureH feature, int field, int i)
{
    OGRFieldDefnH defn = OGR_F_GetFieldDefnRef(feature, field);
    OGRFieldType type = OGR_Fld_GetType(defn);
    OGRFieldSubType subtype = OGR_Fld_GetSubType(defn);
    char text[100];
    if ((i + field) % 7 == 3)
        OGR_F_SetFieldNull(feature, field);
    else if ((i + field) % 11 == 5)
        OGR_F_UnsetField(feature, field);
    else if (type == OFTInteger)
        OGR_F_SetFieldInteger(feature, field,
                              subtype == OFSTBoolean ? i % 2
                              : subtype == OFSTInt16 ? i % 32000 - 16000
                                                     : 2000000000 - i * 1000);
    else if (type == OFTInteger64)
        OGR_F_SetFieldInteger64(feature, field,
                                9007199254740993LL * (i % 2 ? 1 : -1) + i);
    else if (type == OFTReal)
        OGR_F_SetFieldDouble(feature, field,
                             subtype == OFSTFloat32 ? (double)((float)i / 3.0f)
                                                    : (double)i / 3.0);
    else if (type == OFTString)
    {
        /* never cut within the first letter, which has two bytes */
        CPLsnprintf(text, sizeof text, "%.*s%d", 2 + i % 48,
                    "\xC3\xBC some text with\nlines and more and more of it",
                    i);
        OGR_F_SetFieldString(feature, field, i % 13 == 0 ? "" : text);
    }
    else if (type == OFTBinary)
    {
        CPLsnprintf(text, sizeof text, "%d bytes", i);
        text[0] = '\0';
        OGR_F_SetFieldBinary(feature, field, i % 9, text);
    }
    else if (type == OFTDate)
        OGR_F_SetFieldDateTime(feature, field, 1990 + i % 50, 1 + i % 12,
                               1 + i % 28, 0, 0, 0, 0);
    else if (type == OFTTime)
        OGR_F_SetFieldDateTimeEx(feature, field, 0, 0, 0, i % 24, i % 60,
                                 (float)(i % 60) + 0.25f, 0);
    else if (type == OFTDateTime)
        OGR_F_SetFieldDateTimeEx(feature, field, 2020, 1 + i % 12, 3, i % 24,
                                 30, 1.5f, 100);
    else
        set_list(feature, field, type, i);
}

/* Adds row i with the FID i + 1; wkt may be NULL. */
static inline void add_row(OGRLayerH layer, int i, const char *wkt)
{
    OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
    OGRGeometryH geometry = NULL;
    for (int f = 0; f < OGR_F_GetFieldCount(feature); f++)
        set_value(feature, f, i);
    if (wkt != NULL)
    {
        char *text = CPLStrdup(wkt), *at = text;
        ck_assert_int_eq(OGR_G_CreateFromWkt(&at, NULL, &geometry),
                         OGRERR_NONE);
        CPLFree(text);
    }
    OGR_F_SetGeometryDirectly(feature, geometry);
    OGR_F_SetFID(feature, i + 1);
    ck_assert_msg(OGR_L_CreateFeature(layer, feature) == OGRERR_NONE, "%s",
                  CPLGetLastErrorMsg());
    OGR_F_Destroy(feature);
}

/* Adds n points; if with_null is 1, every tenth has no geometry. */
static inline void add_points(OGRLayerH layer, int n, int with_null)
{
    for (int i = 0; i < n; i++)
    {
        char wkt[100];
        CPLsnprintf(wkt, sizeof wkt, "POINT (%d %.17g)", i, i / 3.0);
        add_row(layer, i, with_null && i % 10 == 7 ? NULL : wkt);
    }
}

static inline void add_shapes(OGRLayerH layer, int n)
{
    for (int i = 0; i < n; i++)
        add_row(layer, i, test_shapes[i]);
    add_row(layer, n, NULL);
}

static inline GDALDatasetH reopen(GDALDatasetH dataset, const char *path)
{
    GDALClose(dataset);
    dataset =
        GDALOpenEx(path, GDAL_OF_VECTOR | GDAL_OF_READONLY, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(dataset);
    return dataset;
}

static inline OGRLayerH first_layer(GDALDatasetH dataset)
{
    return GDALDatasetGetLayer(dataset, 0);
}

/* Asserts that field f has equal values, as OGR stores them, in both features.
 * unset_is_null 1: the driver stores unset values as NULL. */
static inline void same_value(OGRFeatureH a, OGRFeatureH b, int f,
                              int unset_is_null)
{
    OGRFieldType type = OGR_Fld_GetType(OGR_F_GetFieldDefnRef(a, f));
    const char *name = OGR_Fld_GetNameRef(OGR_F_GetFieldDefnRef(a, f));
    const char *text;
    char *copy;
    int n, m;
    if (!unset_is_null)
        ck_assert_int_eq(OGR_F_IsFieldSet(a, f), OGR_F_IsFieldSet(b, f));
    ck_assert_msg(OGR_F_IsFieldSetAndNotNull(a, f) ==
                      OGR_F_IsFieldSetAndNotNull(b, f),
                  "field %s of feature " CPL_FRMT_GIB, name, OGR_F_GetFID(a));
    if (!OGR_F_IsFieldSetAndNotNull(a, f))
        return;
    if (type == OFTReal && !isnan(OGR_F_GetFieldAsDouble(a, f)))
        ck_assert_double_eq(OGR_F_GetFieldAsDouble(a, f),
                            OGR_F_GetFieldAsDouble(b, f));
    if (type == OFTBinary)
    {
        const GByte *x = OGR_F_GetFieldAsBinary(a, f, &n);
        const GByte *y = OGR_F_GetFieldAsBinary(b, f, &m);
        ck_assert_int_eq(n, m);
        ck_assert(n == 0 || memcmp(x, y, (size_t)n) == 0);
    }
    text = OGR_F_GetFieldAsString(a, f);
    copy = CPLStrdup(text);
    text = OGR_F_GetFieldAsString(b, f);
    ck_assert_msg(strcmp(copy, text) == 0, "field %s: %s and %s", name, copy,
                  text);
    CPLFree(copy);
}

static inline void same_geometry(OGRGeometryH a, OGRGeometryH b)
{
    unsigned char *x, *y;
    int n;
    ck_assert_int_eq(a == NULL, b == NULL);
    if (a == NULL)
        return;
    n = OGR_G_WkbSize(a);
    ck_assert_int_eq(OGR_G_GetGeometryType(a), OGR_G_GetGeometryType(b));
    ck_assert_int_eq(n, OGR_G_WkbSize(b));
    x = CPLMalloc((size_t)n);
    y = CPLMalloc((size_t)n);
    OGR_G_ExportToIsoWkb(a, wkbNDR, x);
    OGR_G_ExportToIsoWkb(b, wkbNDR, y);
    ck_assert_mem_eq(x, y, (size_t)n);
    CPLFree(x);
    CPLFree(y);
}

/* Asserts that both layers have equal rows in equal order. with_fids 1: also
 * equal FIDs. unset_is_null 1: an unset value equals NULL. */
static inline void same_layers(OGRLayerH a, OGRLayerH b, int with_fids,
                               int unset_is_null)
{
    OGRFeatureH x, y;
    OGR_L_ResetReading(a);
    OGR_L_ResetReading(b);
    while ((x = OGR_L_GetNextFeature(a)) != NULL)
    {
        y = OGR_L_GetNextFeature(b);
        ck_assert_ptr_nonnull(y);
        if (with_fids)
            ck_assert_int_eq(OGR_F_GetFID(x), OGR_F_GetFID(y));
        for (int f = 0; f < OGR_F_GetFieldCount(x); f++)
            same_value(x, y, f, unset_is_null);
        same_geometry(OGR_F_GetGeometryRef(x), OGR_F_GetGeometryRef(y));
        OGR_F_Destroy(x);
        OGR_F_Destroy(y);
    }
    ck_assert_ptr_null(OGR_L_GetNextFeature(b));
}

#endif
