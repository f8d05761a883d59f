/* nycgen_layers [-points N] [-lots M] [-seed S] [-days D] PREFIX
 *
 * Writes the city of nycgen.h as two FlatGeobuf layers without an index, so
 * that rows are in the order of points: PREFIX_points.fgb (id; with -days also
 * seen, a random second of the first D days of 2026) and PREFIX_lots.fgb
 * (lot_id, landuse). For joins from OGR layers to OGR layers at
 * the size of the paper. */
#include "nycgen.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <gdal.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double foot = 1.0 / NYC_ONE;

static OGRLayerH create(const char *prefix, const char *name,
                        OGRwkbGeometryType type, GDALDatasetH *dataset)
{
    const char *const options[] = {"SPATIAL_INDEX=NO", NULL};
    GDALDriverH driver = GDALGetDriverByName("FlatGeobuf");
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    OGRLayerH layer = NULL;
    const char *path = CPLSPrintf("%s_%s.fgb", prefix, name);
    *dataset = driver == NULL
                   ? NULL
                   : GDALCreate(driver, path, 0, 0, 0, GDT_Unknown, NULL);
    if (*dataset != NULL && OSRImportFromEPSG(srs, 2263) == OGRERR_NONE)
        layer = GDALDatasetCreateLayer(*dataset, name, srs, type,
                                       (char **)(void *)options);
    OSRDestroySpatialReference(srs);
    return layer;
}

static int add_field(OGRLayerH layer, const char *name, OGRFieldType type)
{
    OGRFieldDefnH field = OGR_Fld_Create(name, type);
    OGRErr error = OGR_L_CreateField(layer, field, 1);
    OGR_Fld_Destroy(field);
    return error == OGRERR_NONE;
}

/* Sets the field seen to a random second, which depends on i only. */
static void set_time(OGRFeatureH feature, int64_t i, int64_t n_days)
{
    uint64_t second =
        nyc_mix((uint64_t)i + (UINT64_C(1) << 40)) % (uint64_t)(n_days * 86400);
    OGR_F_SetFieldDateTimeEx(feature, 1, 2026, 1, (int)(second / 86400) + 1,
                             (int)(second / 3600 % 24), (int)(second / 60 % 60),
                             (float)(second % 60), 100);
}

static int write_points(const char *prefix, const struct nyc_city *city,
                        const int32_t *blocks, int32_t n_blocks, int64_t n,
                        int64_t n_days)
{
    GDALDatasetH dataset;
    OGRLayerH layer = create(prefix, "points", wkbPoint, &dataset);
    OGRFeatureH feature;
    int ok;
    if (layer == NULL || !add_field(layer, "id", OFTInteger64) ||
        (n_days > 0 && !add_field(layer, "seen", OFTDateTime)))
        return 0;
    feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
    OGR_F_SetGeometryDirectly(feature, OGR_G_CreateGeometry(wkbPoint));
    ok = 1;
    for (int64_t i = 0; i < n && ok; i++)
    {
        int32_t x, y;
        nyc_point(city, blocks, n_blocks, (uint64_t)i, &x, &y);
        OGR_G_SetPoint_2D(OGR_F_GetGeometryRef(feature), 0, x * foot, y * foot);
        OGR_F_SetFieldInteger64(feature, 0, i + 1);
        if (n_days > 0)
            set_time(feature, i, n_days);
        OGR_F_SetFID(feature, OGRNullFID);
        ok = OGR_L_CreateFeature(layer, feature) == OGRERR_NONE;
    }
    OGR_F_Destroy(feature);
    GDALClose(dataset);
    return ok && CPLGetLastErrorType() != CE_Failure;
}

static int write_lots(const char *prefix, const struct nyc_shapes *lots)
{
    GDALDatasetH dataset;
    OGRLayerH layer = create(prefix, "lots", wkbPolygon, &dataset);
    int ok = 1;
    if (layer == NULL || !add_field(layer, "lot_id", OFTInteger64) ||
        !add_field(layer, "landuse", OFTString))
        return 0;
    for (int32_t f = 0; f < lots->n && ok; f++)
    {
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
        OGRGeometryH polygon = OGR_G_CreateGeometry(wkbPolygon);
        OGRGeometryH ring = OGR_G_CreateGeometry(wkbLinearRing);
        for (uint32_t v = lots->offset[f]; v < lots->offset[f + 1]; v++)
            OGR_G_AddPoint_2D(ring, lots->xy[2 * v] * foot,
                              lots->xy[2 * v + 1] * foot);
        OGR_G_AddGeometryDirectly(polygon, ring);
        OGR_F_SetGeometryDirectly(feature, polygon);
        OGR_F_SetFieldInteger64(feature, 0, 1000000000 + (GIntBig)f);
        OGR_F_SetFieldString(
            feature, 1,
            CPLSPrintf("%02d", (int)(nyc_mix((uint64_t)f) % 11) + 1));
        ok = OGR_L_CreateFeature(layer, feature) == OGRERR_NONE;
        OGR_F_Destroy(feature);
    }
    GDALClose(dataset);
    return ok && CPLGetLastErrorType() != CE_Failure;
}

int main(int argc, char **argv)
{
    int64_t n_points = 1000000, n_lots = 735488, n_days = 0;
    const char *prefix = NULL;
    struct nyc_city city = nyc_city(1);
    struct nyc_shapes lots;
    int32_t *blocks;
    int32_t n_blocks;
    int ok;
    for (int i = 1; i < argc; i++)
    {
        if (i + 1 < argc && strcmp(argv[i], "-points") == 0)
            n_points = atoll(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "-lots") == 0)
            n_lots = atoll(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "-days") == 0)
            n_days = atoll(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "-seed") == 0)
            city = nyc_city(strtoull(argv[++i], NULL, 10));
        else
            prefix = argv[i];
    }
    if (prefix == NULL || prefix[0] == '-' || n_points < 0 || n_lots < 1 ||
        n_days < 0 || n_days > 31)
    {
        fputs(
            "nycgen_layers [-points N] [-lots M] [-seed S] [-days D] PREFIX\n",
            stderr);
        return 1;
    }
    GDALAllRegister();
    n_blocks = nyc_land_blocks(&city, &blocks);
    if (n_blocks < 0 || nyc_make_lots(&city, blocks, n_blocks, n_lots, &lots))
    {
        fputs("out of memory\n", stderr);
        return 1;
    }
    ok = write_lots(prefix, &lots) &&
         write_points(prefix, &city, blocks, n_blocks, n_points, n_days);
    nyc_free_shapes(&lots);
    free(blocks);
    GDALDestroyDriverManager();
    return ok ? 0 : 1;
}
