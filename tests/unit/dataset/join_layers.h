/** Layers to join, a join as a layer and as a run of the command, and rows as
 *  texts that can be compared.  Include once. */
#ifndef OJ_TEST_JOIN_LAYERS_H
#define OJ_TEST_JOIN_LAYERS_H

#include "../../../driver/base/oj_words.h"
#include "../../../driver/command/oj_command.h"
#include "../../../driver/run/oj_run.h"
#include "../../../flatten/base/oj_array.h"

#include <check.h>

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
    N_POINTS = 700, /* several batches of the sizes that are used */
    N_ZONES = 49
};

void RegisterOGRJOIN(void); /* of the driver, which the tests link */

static char folder[512];

/* ---- what GDAL says ------------------------------------------------------ */

static struct
{
    int n_errors, n_warnings;
    int n_pushed; /* filters that went down to the input layer */
    char error[2048];
} said;

static void CPL_STDCALL take_message(CPLErr level, CPLErrorNum number,
                                     const char *text)
{
    (void)number;
    if (level == CE_Failure)
    {
        said.n_errors++;
        snprintf(said.error, sizeof said.error, "%s", text);
    }
    else if (level == CE_Warning)
    {
        said.n_warnings++;
    }
    else if (level == CE_Debug &&
             strstr(text, "the input layer filters by") != NULL)
    {
        said.n_pushed++;
    }
}

static void forget_said(void)
{
    memset(&said, 0, sizeof said);
}

static void expect_no_error(void)
{
    ck_assert_msg(said.n_errors == 0, "%d errors: %s", said.n_errors,
                  said.error);
}

static void expect_one_error(const char *with)
{
    ck_assert_msg(said.n_errors == 1, "%d errors: %s", said.n_errors,
                  said.error);
    ck_assert_msg(strstr(said.error, with) != NULL, "'%s' is not in: %s", with,
                  said.error);
    ck_assert(strchr(said.error, '\n') == NULL);
    forget_said();
}

/* ---- layers -------------------------------------------------------------- */

static OGRSpatialReferenceH plane(void)
{
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    ck_assert_int_eq(OSRImportFromEPSG(srs, 2263), OGRERR_NONE);
    OSRSetAxisMappingStrategy(srs, OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

static void add_field(OGRLayerH layer, const char *name, OGRFieldType type)
{
    OGRFieldDefnH field = OGR_Fld_Create(name, type);
    ck_assert_int_eq(OGR_L_CreateField(layer, field, 1), OGRERR_NONE);
    OGR_Fld_Destroy(field);
}

/* Points of a grid that is not quite one; some have no geometry, some no
 * values, and FIDs have gaps. */
static void add_points(OGRLayerH layer)
{
    add_field(layer, "number", OFTInteger);
    add_field(layer, "kind", OFTString);
    add_field(layer, "value", OFTReal);
    add_field(layer, "day", OFTDate);
    for (int i = 0; i < N_POINTS; i++)
    {
        OGRFeatureH f = OGR_F_Create(OGR_L_GetLayerDefn(layer));
        OGR_F_SetFID(f, 3 * i + 2);
        OGR_F_SetFieldInteger(f, 0, i);
        OGR_F_SetFieldString(f, 1, i % 3 == 0 ? "Park" : "shop");
        if (i % 7 != 0)
            OGR_F_SetFieldDouble(f, 2, i / 8.0);
        OGR_F_SetFieldDateTime(f, 3, 2000 + i % 30, 1 + i % 12, 1 + i % 28, 0,
                               0, 0, 0);
        if (i % 50 != 49)
        {
            OGRGeometryH point = OGR_G_CreateGeometry(wkbPoint);
            OGR_G_SetPoint_2D(point, 0, i % 28 * 2.6 + i % 5 * 0.01,
                              i / 28 * 2.9 + i % 3 * 0.1);
            OGR_F_SetGeometryDirectly(f, point);
        }
        ck_assert_int_eq(OGR_L_CreateFeature(layer, f), OGRERR_NONE);
        OGR_F_Destroy(f);
    }
}

/* Squares that overlap a little, with room between every other two. */
static void add_zones(OGRLayerH layer)
{
    add_field(layer, "number", OFTInteger);
    add_field(layer, "name", OFTString);
    for (int i = 0; i < N_ZONES; i++)
    {
        OGRFeatureH f = OGR_F_Create(OGR_L_GetLayerDefn(layer));
        double x = i % 7 * 10.0, y = i / 7 * 10.0, size = i % 2 == 0 ? 11 : 7;
        OGRGeometryH ring = OGR_G_CreateGeometry(wkbLinearRing);
        OGRGeometryH polygon = OGR_G_CreateGeometry(wkbPolygon);
        char name[32];
        snprintf(name, sizeof name, "zone %d", i);
        OGR_F_SetFID(f, 100 - i);
        OGR_F_SetFieldInteger(f, 0, 1000 + i);
        if (i % 5 != 0)
            OGR_F_SetFieldString(f, 1, name);
        OGR_G_AddPoint_2D(ring, x, y);
        OGR_G_AddPoint_2D(ring, x + size, y);
        OGR_G_AddPoint_2D(ring, x + size, y + size);
        OGR_G_AddPoint_2D(ring, x, y + size);
        OGR_G_AddPoint_2D(ring, x, y);
        OGR_G_AddGeometryDirectly(polygon, ring);
        OGR_F_SetGeometryDirectly(f, polygon);
        ck_assert_int_eq(OGR_L_CreateFeature(layer, f), OGRERR_NONE);
        OGR_F_Destroy(f);
    }
}

static void make_file(const char *format, const char *name, int with_index)
{
    char path[600], options[] = "SPATIAL_INDEX=NO";
    char *none[] = {NULL}, *without[] = {options, NULL};
    OGRSpatialReferenceH srs = plane();
    GDALDatasetH dataset;
    int is_points = strncmp(name, "points", 6) == 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    dataset = GDALCreate(GDALGetDriverByName(format), path, 0, 0, 0,
                         GDT_Unknown, NULL);
    ck_assert_ptr_nonnull(dataset);
    if (GDALDatasetTestCapability(dataset, ODsCTransactions))
        GDALDatasetStartTransaction(dataset, 0);
    if (is_points)
        add_points(GDALDatasetCreateLayer(dataset, "points", srs, wkbPoint,
                                          with_index ? none : without));
    else
        add_zones(GDALDatasetCreateLayer(dataset, "zones", srs, wkbPolygon,
                                         with_index ? none : without));
    if (GDALDatasetTestCapability(dataset, ODsCTransactions))
        GDALDatasetCommitTransaction(dataset);
    GDALClose(dataset);
    OSRRelease(srs);
}

static void make_layers(void)
{
    GDALAllRegister();
    RegisterOGRJOIN();
    CPLSetErrorHandler(take_message);
    CPLSetConfigOption("CPL_DEBUG", "OGRJOIN");
    snprintf(folder, sizeof folder, "%s/ogrjoin_XXXXXX",
             CPLGetConfigOption("TMPDIR", "/tmp"));
    ck_assert_ptr_nonnull(mkdtemp(folder));
    make_file("GPKG", "points.gpkg", 1);
    make_file("FlatGeobuf", "points.fgb", 0);
    make_file("GeoJSON", "points.geojson", 1);
    make_file("GPKG", "zones.gpkg", 1);
    make_file("FlatGeobuf", "zones.fgb", 1);
    forget_said();
}

static void remove_layers(void)
{
    VSIRmdirRecursive(folder);
}

/* ---- joins ----------------------------------------------------------------
 */

/* Words of a join, in which @ is the folder: "-op within @/a.gpkg @/b.gpkg". */
static char *fill_in(const char *words)
{
    char **pieces = CSLTokenizeStringComplex(words, "@", 0, 1);
    char *text = CPLStrdup(pieces[0]);
    for (int i = 1; pieces[i] != NULL; i++)
    {
        size_t size = strlen(text) + strlen(folder) + strlen(pieces[i]) + 1;
        char *longer = CPLMalloc(size);
        snprintf(longer, size, "%s%s%s", text, folder, pieces[i]);
        CPLFree(text);
        text = longer;
    }
    CSLDestroy(pieces);
    return text;
}

/* > 0: the allocation that fails from the opening on. */
static int64_t failing;

/* NULL: it fails. */
static GDALDatasetH open_join(const char *words)
{
    static const char *const drivers[] = {"JOIN", NULL};
    char *text = fill_in(words);
    GDALDatasetH dataset;
    oj_alloc_fail_at(failing);
    dataset = GDALOpenEx(CPLSPrintf("JOIN:%s", text), GDAL_OF_VECTOR, drivers,
                         NULL, NULL);
    CPLFree(text);
    return dataset;
}

static OGRLayerH rows_of(GDALDatasetH join)
{
    return GDALDatasetGetLayer(join, 0);
}

/* box NULL: no filter. */
static inline void filter_box(GDALDatasetH join, const OGREnvelope *box)
{
    if (box != NULL)
        OGR_L_SetSpatialFilterRect(rows_of(join), box->MinX, box->MinY,
                                   box->MaxX, box->MaxY);
    else
        OGR_L_SetSpatialFilter(rows_of(join), NULL);
}

static GDALDatasetH open_well(const char *words)
{
    GDALDatasetH layer = open_join(words);
    expect_no_error();
    ck_assert_ptr_nonnull(layer);
    return layer;
}

/* ---- rows ------------------------------------------------------------------
 */

/* "FID|value|value|...|WKT"; FIDs only where they are the input's. */
static char *row_text(OGRFeatureH f, int with_fid)
{
    OGRGeometryH geometry = OGR_F_GetGeometryRef(f);
    char *wkt = NULL, **parts = NULL, *text, number[64];
    size_t size = 1;
    snprintf(number, sizeof number, "%lld",
             with_fid ? (long long)OGR_F_GetFID(f) : -1);
    parts = CSLAddString(parts, number);
    for (int i = 0; i < OGR_F_GetFieldCount(f); i++)
        parts = CSLAddString(parts, OGR_F_IsFieldSetAndNotNull(f, i)
                                        ? OGR_F_GetFieldAsString(f, i)
                                        : "-");
    if (geometry != NULL)
        OGR_G_ExportToIsoWkt(geometry, &wkt);
    parts = CSLAddString(parts, wkt != NULL ? wkt : "-");
    CPLFree(wkt);
    for (int i = 0; parts[i] != NULL; i++)
        size += strlen(parts[i]) + 1;
    text = CPLMalloc(size);
    text[0] = '\0';
    for (int i = 0; parts[i] != NULL; i++)
    {
        strcat(text, parts[i]);
        strcat(text, "|");
    }
    CSLDestroy(parts);
    return text;
}

struct row_texts
{
    int n, capacity;
    char **text;
};

static void add_row(struct row_texts *rows, OGRFeatureH f, int with_fid)
{
    if (rows->n == rows->capacity)
    {
        rows->capacity = 2 * rows->capacity + 64;
        rows->text =
            CPLRealloc(rows->text, (size_t)rows->capacity * sizeof *rows->text);
    }
    rows->text[rows->n++] = row_text(f, with_fid);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* An index gives rows in an order of its own. */
static void sort_rows(struct row_texts *rows)
{
    if (rows->n > 0)
        qsort(rows->text, (size_t)rows->n, sizeof *rows->text, compare_texts);
}

static void free_rows(struct row_texts *rows)
{
    for (int i = 0; i < rows->n; i++)
        CPLFree(rows->text[i]);
    CPLFree(rows->text);
    memset(rows, 0, sizeof *rows);
}

static int has_fids(GDALDatasetH layer)
{
    return OGR_L_GetFIDColumn(rows_of(layer))[0] != '\0';
}

/* At most so many rows; most < 0: all. */
static struct row_texts next_rows(GDALDatasetH layer, int most)
{
    struct row_texts rows = {0};
    OGRFeatureH f;
    while ((most < 0 || rows.n < most) &&
           (f = OGR_L_GetNextFeature(rows_of(layer))) != NULL)
    {
        add_row(&rows, f, has_fids(layer));
        OGR_F_Destroy(f);
    }
    return rows;
}

/* What a run of the command writes to a GeoPackage. */
static inline struct row_texts run_rows(const char *words, int with_fids)
{
    struct oj_command command = {0};
    struct oj_error error = {OJ_OK, ""};
    struct row_texts rows = {0};
    size_t size = strlen(words) + 64;
    char *more = CPLMalloc(size), *text, **word = NULL, path[600];
    GDALDatasetH dataset;
    OGRLayerH layer;
    OGRFeatureH f;
    int n = 0, exit_code = 1;
    snprintf(more, size, "-q @/out.gpkg %s", words);
    text = fill_in(more);
    snprintf(path, sizeof path, "%s/out.gpkg", folder);
    VSIUnlink(path);
    ck_assert_int_eq(oj_words_split(text, &word, &n, &error), OJ_OK);
    if (oj_command_parse(n, (const char *const *)word, &command, &error) !=
            OJ_OK ||
        oj_run(&command, &exit_code, &error) != OJ_OK)
        ck_abort_msg("%s: %s", text, error.message);
    oj_command_free(&command);
    oj_free(word);
    CPLFree(text);
    CPLFree(more);
    dataset = GDALOpenEx(path, GDAL_OF_VECTOR, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(dataset);
    layer = GDALDatasetGetLayer(dataset, 0);
    while ((f = OGR_L_GetNextFeature(layer)) != NULL)
    {
        add_row(&rows, f, with_fids);
        OGR_F_Destroy(f);
    }
    GDALClose(dataset);
    VSIUnlink(path);
    return rows;
}

static void expect_same(const struct row_texts *got,
                        const struct row_texts *expected, const char *what)
{
    for (int i = 0; i < got->n && i < expected->n; i++)
        ck_assert_msg(strcmp(got->text[i], expected->text[i]) == 0,
                      "%s: row %d\n%s\n%s", what, i, got->text[i],
                      expected->text[i]);
    ck_assert_msg(got->n == expected->n, "%s: %d rows, not %d", what, got->n,
                  expected->n);
}

#endif
