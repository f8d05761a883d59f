/** Files to join, in a temporary folder. Include once. */
#ifndef JOIN_FILES_H
#define JOIN_FILES_H

#include "../run_tests.h"

#include "../../../driver/job/oj_join_side_cache.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_vsi.h>
#include <gdal.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum
{
    N_INPUT = 300,
    N_JOIN = 120
};

static char folder[64];

/* Returns the path of a file. The text is valid for seven further calls. */
static inline const char *path_of(const char *name)
{
    static _Thread_local char paths[8][128];
    static _Thread_local int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* Waits until a further change of a file would show in its modification
 * time. */
static inline void wait_until_changes_show(void)
{
    const struct timespec t = {0, 80000000};
    nanosleep(&t, NULL);
}

static inline void add_field(OGRLayerH layer, const char *name,
                             OGRFieldType type)
{
    OGRFieldDefnH field = OGR_Fld_Create(name, type);
    ck_assert_int_eq(OGR_L_CreateField(layer, field, 1), OGRERR_NONE);
    OGR_Fld_Destroy(field);
}

static inline OGRGeometryH make_point(double x, double y)
{
    OGRGeometryH point = OGR_G_CreateGeometry(wkbPoint);
    OGR_G_SetPoint_2D(point, 0, x + 0.25, y + 0.5);
    return point;
}

/* Makes a box. If crossed is 1, its ring crosses itself, which is invalid. */
static inline OGRGeometryH make_box(double x, double y, int crossed)
{
    OGRGeometryH ring = OGR_G_CreateGeometry(wkbLinearRing);
    OGRGeometryH polygon = OGR_G_CreateGeometry(wkbPolygon);
    OGR_G_AddPoint_2D(ring, x, y);
    OGR_G_AddPoint_2D(ring, x + 6, crossed ? y + 5 : y);
    OGR_G_AddPoint_2D(ring, x + 6, crossed ? y : y + 5);
    OGR_G_AddPoint_2D(ring, x, y + 5);
    OGR_G_AddPoint_2D(ring, x, y);
    OGR_G_AddGeometryDirectly(polygon, ring);
    return polygon;
}

static inline void add_row(OGRLayerH layer, int i, int seed, int boxes)
{
    OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
    double x = (i * 37 + seed) % 101 * 0.5, y = (i * 53) % 97 * 0.5;
    char text[20];
    snprintf(text, sizeof text, "%d", i % 7);
    OGR_F_SetFieldInteger(feature, 0, i % 7);
    OGR_F_SetFieldString(feature, 1, text);
    OGR_F_SetFieldDouble(feature, 2, i % 5 * 0.5);
    OGR_F_SetGeometryDirectly(feature, boxes ? make_box(x, y, i % 10 == 3)
                                             : make_point(x, y));
    ck_assert_int_eq(OGR_L_CreateFeature(layer, feature), OGRERR_NONE);
    OGR_F_Destroy(feature);
}

/* Makes a layer "things" of n boxes (boxes 1) or points, with the fields n, t
 * (n as text) and r. code is the EPSG code of its CRS; 0: no CRS. */
static inline void make_file(const char *driver, const char *name, int boxes,
                             int n, int seed, int code)
{
    GDALDatasetH dataset;
    OGRSpatialReferenceH srs = code > 0 ? OSRNewSpatialReference(NULL) : NULL;
    OGRLayerH layer;
    VSIUnlink(path_of(name));
    dataset = GDALCreate(GDALGetDriverByName(driver), path_of(name), 0, 0, 0,
                         GDT_Unknown, NULL);
    ck_assert_msg(dataset != NULL, "%s: %s", name, CPLGetLastErrorMsg());
    if (srs != NULL)
    {
        ck_assert_int_eq(OSRImportFromEPSG(srs, code), OGRERR_NONE);
        OSRSetAxisMappingStrategy(srs, OAMS_TRADITIONAL_GIS_ORDER);
    }
    layer = GDALDatasetCreateLayer(dataset, "things", srs,
                                   boxes ? wkbPolygon : wkbPoint, NULL);
    ck_assert_ptr_nonnull(layer);
    add_field(layer, "n", OFTInteger);
    add_field(layer, "t", OFTString);
    add_field(layer, "r", OFTReal);
    ck_assert_int_eq(OGR_L_StartTransaction(layer), OGRERR_NONE);
    for (int i = 0; i < n; i++)
        add_row(layer, i, seed, boxes);
    ck_assert_int_eq(OGR_L_CommitTransaction(layer), OGRERR_NONE);
    GDALClose(dataset);
    if (srs != NULL)
        OSRRelease(srs);
}

static inline void make_folder(void)
{
    strcpy(folder, "/tmp/oj_job_shared_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    make_file("GPKG", "points.gpkg", 0, N_INPUT, 3, 32632);
    make_file("GPKG", "zones.gpkg", 1, N_JOIN, 11, 32632);
    make_file("GPKG", "zones33.gpkg", 1, N_JOIN, 11, 32633);
    make_file("GPKG", "points33.gpkg", 0, N_INPUT, 3, 32633);
    make_file("FlatGeobuf", "zones.fgb", 1, N_JOIN, 11, 32632);
    make_file("GeoJSON", "zones.geojson", 1, N_JOIN, 11, 0);
    make_file("ESRI Shapefile", "zones.shp", 1, N_JOIN, 11, 32632);
    wait_until_changes_show();
}

static inline void remove_folder(void)
{
    oj_join_cache_clear();
    VSIRmdirRecursive(folder);
}

#endif
