/* make_city: writes the sample city as OGR layers, one file each, in any format
 * that GDAL can create.
 *
 *   make_city [-f FORMAT] [-seed S] [-avenues A] [-streets S] [-pickups N]
 *             [-places N] FOLDER
 *
 *   pickups  points         pickup_id, fare (dollars), hour (0 .. 23)
 *   lots     multipolygons  lot_id, use_code (1 .. 8), land_use
 *   streets  lines          street_id, name
 *   land     polygons       name
 *   zones    polygons       zone_id, name
 *   stations points         station_id, reach (metres)
 *   places_a points         place_id, name
 *   places_b points         place_id (equal ids: one place), name
 *
 * Coordinates are EPSG:2263 (US feet); those of the stations are longitudes and
 * latitudes (EPSG:4326). Equal options give equal layers.
 */
#include "city.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <gdal.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct request
{
    const char *format, *folder;
    uint64_t seed;
    int n_avenues, n_streets;
    int64_t n_pickups, n_places;
};

/* A layer being written. */
struct output
{
    GDALDatasetH dataset;
    OGRLayerH layer;
    int64_t n_rows;
};

static void add_field(OGRLayerH layer, const char *name, OGRFieldType type,
                      int width, int precision)
{
    OGRFieldDefnH field = OGR_Fld_Create(name, type);
    OGR_Fld_SetWidth(field, width);
    OGR_Fld_SetPrecision(field, precision);
    OGR_L_CreateField(layer, field, TRUE);
    OGR_Fld_Destroy(field);
}

/* Sets extension to the first one that the driver lists, or to "out". */
static void set_extension(GDALDriverH driver, char *extension, size_t size)
{
    const char *one = GDALGetMetadataItem(driver, GDAL_DMD_EXTENSION, NULL);
    const char *all = GDALGetMetadataItem(driver, GDAL_DMD_EXTENSIONS, NULL);
    const char *text = one != NULL ? one : all != NULL ? all : "out";
    snprintf(extension, size, "%.*s", (int)strcspn(text, " "), text);
}

static int open_output(const struct request *request, const char *name,
                       OGRwkbGeometryType type, int epsg, struct output *out)
{
    GDALDriverH driver = GDALGetDriverByName(request->format);
    char extension[16];
    /* A spatial index would change the order of the rows. */
    const char *const in_order[] = {"SPATIAL_INDEX=NO", NULL};
    const int is_fgb = EQUAL(request->format, "FlatGeobuf");
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    out->n_rows = 0;
    out->dataset = NULL;
    if (driver == NULL)
        fprintf(stderr, "make_city: GDAL has no format \"%s\" here\n",
                request->format);
    else
    {
        char path[4096];
        set_extension(driver, extension, sizeof extension);
        snprintf(path, sizeof path, "%s/%s.%s", request->folder, name,
                 extension);
        if (access(path, F_OK) == 0) /* the file is from an earlier run */
            GDALDeleteDataset(driver, path);
        out->dataset = GDALCreate(driver, path, 0, 0, 0, GDT_Unknown, NULL);
    }
    OSRImportFromEPSG(srs, epsg);
    OSRSetAxisMappingStrategy(srs, OAMS_TRADITIONAL_GIS_ORDER);
    out->layer = out->dataset == NULL
                     ? NULL
                     : GDALDatasetCreateLayer(
                           out->dataset, name, srs, type,
                           is_fgb ? (char **)(uintptr_t)in_order : NULL);
    OSRRelease(srs);
    if (out->layer == NULL)
        return 1;
    if (GDALDatasetTestCapability(out->dataset, ODsCTransactions))
        GDALDatasetStartTransaction(out->dataset, FALSE);
    return 0;
}

static int close_output(struct output *out, const char *name)
{
    int failed = 0;
    if (out->dataset == NULL)
        return 1;
    if (GDALDatasetTestCapability(out->dataset, ODsCTransactions))
        failed = GDALDatasetCommitTransaction(out->dataset) != OGRERR_NONE;
    CPLErrorReset();
    GDALClose(out->dataset);
    failed |= CPLGetLastErrorType() >= CE_Failure;
    if (!failed)
        printf("%-8s %10lld rows\n", name, (long long)out->n_rows);
    return failed;
}

/* Adds feature with geometry, and destroys both. Returns 1 after a failure. */
static int add_row(struct output *out, OGRFeatureH feature,
                   OGRGeometryH geometry)
{
    int failed;
    OGR_F_SetGeometryDirectly(feature, geometry);
    failed = OGR_L_CreateFeature(out->layer, feature) != OGRERR_NONE;
    OGR_F_Destroy(feature);
    out->n_rows++;
    return failed;
}

static OGRGeometryH polygon_part(const struct city_shape *shape, int part)
{
    OGRGeometryH polygon = OGR_G_CreateGeometry(wkbPolygon);
    for (int r = part > 0 ? shape->part_end[part - 1] : 0;
         r < shape->part_end[part]; r++)
    {
        OGRGeometryH ring = OGR_G_CreateGeometry(wkbLinearRing);
        const int first = r > 0 ? shape->ring_end[r - 1] : 0;
        const int n = shape->ring_end[r] - first;
        OGR_G_SetPointCount(ring, n + 1);
        for (int i = 0; i <= n; i++)
            OGR_G_SetPoint_2D(ring, i, shape->x[first + i % n],
                              shape->y[first + i % n]);
        OGR_G_AddGeometryDirectly(polygon, ring);
    }
    return polygon;
}

static int write_lot(const struct city_lot *lot, void *user)
{
    struct output *out = user;
    OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(out->layer));
    OGRGeometryH parts = OGR_G_CreateGeometry(wkbMultiPolygon);
    for (int p = 0; p < lot->shape.n_parts; p++)
        OGR_G_AddGeometryDirectly(parts, polygon_part(&lot->shape, p));
    OGR_F_SetFieldInteger64(feature, 0, lot->id);
    OGR_F_SetFieldInteger(feature, 1, (int)lot->use + 1);
    OGR_F_SetFieldString(feature, 2, city_use_name(lot->use));
    return add_row(out, feature, parts);
}

static int write_street(const struct city_street *street, void *user)
{
    struct output *out = user;
    OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(out->layer));
    OGRGeometryH line = OGR_G_CreateGeometry(wkbLineString);
    for (int i = 0; i < street->shape.n_vertices; i++)
        OGR_G_AddPoint_2D(line, street->shape.x[i], street->shape.y[i]);
    OGR_F_SetFieldInteger64(feature, 0, street->id);
    OGR_F_SetFieldString(feature, 1, street->name);
    return add_row(out, feature, line);
}

static int write_pickups(const struct request *request, const struct city *city,
                         struct output *out)
{
    struct city_traffic *traffic = city_traffic_new(city);
    int failed = traffic == NULL;
    for (int64_t i = 0; i < request->n_pickups && !failed; i++)
    {
        const struct city_pickup pickup = city_pickup(traffic, (uint64_t)i);
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(out->layer));
        OGRGeometryH point = OGR_G_CreateGeometry(wkbPoint);
        OGR_G_SetPoint_2D(point, 0, pickup.x, pickup.y);
        OGR_F_SetFieldInteger64(feature, 0, i + 1);
        OGR_F_SetFieldDouble(feature, 1, pickup.fare);
        OGR_F_SetFieldInteger(feature, 2, pickup.hour);
        failed = add_row(out, feature, point);
    }
    city_traffic_free(traffic);
    return failed;
}

/* Writes one of the two layers of places; side 1 is written in another order.
 */
static int write_places(const struct request *request, const struct city *city,
                        int side, struct output *out)
{
    const uint64_t n = (uint64_t)request->n_places;
    const uint64_t step = side == 0 ? 1 : n % 7919 != 0 ? 7919 : 7907;
    struct city_traffic *traffic = city_traffic_new(city);
    int failed = traffic == NULL;
    for (uint64_t i = 0; i < n && !failed; i++)
    {
        const struct city_place place =
            city_place(traffic, city, side, i * step % n, n);
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(out->layer));
        OGRGeometryH point = OGR_G_CreateGeometry(wkbPoint);
        OGR_G_SetPoint_2D(point, 0, place.x, place.y);
        OGR_F_SetFieldInteger64(feature, 0, place.id);
        OGR_F_SetFieldString(feature, 1, place.name);
        failed = add_row(out, feature, point);
    }
    city_traffic_free(traffic);
    return failed;
}

static int write_land(const struct city *city, struct output *out)
{
    struct city_shape *shape = calloc(1, sizeof *shape);
    OGRFeatureH feature;
    int failed;
    if (shape == NULL)
        return 1;
    city_land(city, shape);
    feature = OGR_F_Create(OGR_L_GetLayerDefn(out->layer));
    OGR_F_SetFieldString(feature, 0, "Island");
    failed = add_row(out, feature, polygon_part(shape, 0));
    free(shape);
    return failed;
}

static int write_zones(const struct city *city, struct output *out)
{
    struct city_shape *shape = calloc(1, sizeof *shape);
    int failed = shape == NULL;
    for (int i = 0; i < city_n_zones(city) && !failed; i++)
    {
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(out->layer));
        char name[32];
        city_zone(city, i, name, shape);
        OGR_F_SetFieldInteger64(feature, 0, i + 1);
        OGR_F_SetFieldString(feature, 1, name);
        failed = add_row(out, feature, polygon_part(shape, 0));
    }
    free(shape);
    return failed;
}

/* Writes underground stations at corners on land, each with its own reach;
 * coordinates are rounded to millionths of a degree. */
static int write_stations(const struct city *city, struct output *out)
{
    OGRSpatialReferenceH feet = OSRNewSpatialReference(NULL);
    OGRSpatialReferenceH degrees = OSRNewSpatialReference(NULL);
    OGRCoordinateTransformationH project;
    int64_t id = 0;
    int failed;
    OSRImportFromEPSG(feet, 2263);
    OSRImportFromEPSG(degrees, 4326);
    OSRSetAxisMappingStrategy(degrees, OAMS_TRADITIONAL_GIS_ORDER);
    project = OCTNewCoordinateTransformation(feet, degrees);
    failed = project == NULL;
    for (int s = 2; s < city->n_streets && !failed; s += 4)
        for (int a = 1; a < city->n_avenues && !failed; a++)
        {
            const double u = a * CITY_AVENUE_FT, v = s * CITY_STREET_FT;
            OGRFeatureH feature;
            OGRGeometryH point;
            double x, y;
            if (city_inland(city, u, v) < 100)
                continue;
            city_to_map(city, u, v, &x, &y);
            failed = !OCTTransform(project, 1, &x, &y, NULL);
            feature = OGR_F_Create(OGR_L_GetLayerDefn(out->layer));
            point = OGR_G_CreateGeometry(wkbPoint);
            OGR_G_SetPoint_2D(point, 0, floor(x * 1e6 + 0.5) / 1e6,
                              floor(y * 1e6 + 0.5) / 1e6);
            OGR_F_SetFieldInteger64(feature, 0, ++id);
            OGR_F_SetFieldDouble(feature, 1, 100 + 50 * (double)(id % 4));
            failed |= add_row(out, feature, point);
        }
    OCTDestroyCoordinateTransformation(project);
    OSRRelease(feet);
    OSRRelease(degrees);
    return failed;
}

static int write_all(const struct request *request)
{
    const struct city city =
        city_plan(request->seed, request->n_avenues, request->n_streets);
    struct output out;
    int failed = open_output(request, "land", wkbPolygon, 2263, &out);
    if (!failed)
    {
        add_field(out.layer, "name", OFTString, 20, 0);
        failed = write_land(&city, &out);
        failed |= close_output(&out, "land");
    }
    failed =
        failed || open_output(request, "streets", wkbLineString, 2263, &out);
    if (!failed)
    {
        add_field(out.layer, "street_id", OFTInteger64, 0, 0);
        add_field(out.layer, "name", OFTString, 32, 0);
        failed = city_streets(&city, write_street, &out);
        failed |= close_output(&out, "streets");
    }
    failed =
        failed || open_output(request, "lots", wkbMultiPolygon, 2263, &out);
    if (!failed)
    {
        add_field(out.layer, "lot_id", OFTInteger64, 0, 0);
        add_field(out.layer, "use_code", OFTInteger, 0, 0);
        add_field(out.layer, "land_use", OFTString, 32, 0);
        failed = city_lots(&city, write_lot, &out);
        failed |= close_output(&out, "lots");
    }
    failed = failed || open_output(request, "pickups", wkbPoint, 2263, &out);
    if (!failed)
    {
        add_field(out.layer, "pickup_id", OFTInteger64, 0, 0);
        add_field(out.layer, "fare", OFTReal, 8, 2);
        add_field(out.layer, "hour", OFTInteger, 0, 0);
        failed = write_pickups(request, &city, &out);
        failed |= close_output(&out, "pickups");
    }
    failed = failed || open_output(request, "zones", wkbPolygon, 2263, &out);
    if (!failed)
    {
        add_field(out.layer, "zone_id", OFTInteger64, 0, 0);
        add_field(out.layer, "name", OFTString, 32, 0);
        failed = write_zones(&city, &out);
        failed |= close_output(&out, "zones");
    }
    failed = failed || open_output(request, "stations", wkbPoint, 4326, &out);
    if (!failed)
    {
        add_field(out.layer, "station_id", OFTInteger64, 0, 0);
        add_field(out.layer, "reach", OFTReal, 0, 0);
        failed = write_stations(&city, &out);
        failed |= close_output(&out, "stations");
    }
    for (int side = 0; side < 2 && !failed; side++)
    {
        const char *name = side == 0 ? "places_a" : "places_b";
        failed = open_output(request, name, wkbPoint, 2263, &out);
        if (failed)
            break;
        add_field(out.layer, "place_id", OFTInteger64, 0, 0);
        add_field(out.layer, "name", OFTString, CITY_NAME_SIZE, 0);
        failed = write_places(request, &city, side, &out);
        failed |= close_output(&out, name);
    }
    return failed;
}

/* Makes the folder and its parents, unless they exist. A failure shows when the
 * first file is created. */
static void make_folder(const char *path)
{
    char part[4096];
    const size_t n = strlen(path);
    for (size_t i = 1; i <= n && i < sizeof part; i++)
        if (path[i] == '/' || path[i] == '\0')
        {
            memcpy(part, path, i);
            part[i] = '\0';
            mkdir(part, 0755);
        }
}

int main(int argc, char **argv)
{
    struct request request = {.format = "FlatGeobuf",
                              .seed = 1,
                              .n_avenues = 15,
                              .n_streets = 84,
                              .n_pickups = 500000,
                              .n_places = 4000};
    for (int i = 1; i < argc; i++)
    {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (argv[i][0] != '-')
        {
            request.folder = argv[i];
            continue;
        }
        if (value == NULL)
            break;
        if (EQUAL(argv[i], "-f"))
            request.format = value;
        else if (EQUAL(argv[i], "-seed"))
            request.seed = strtoull(value, NULL, 10);
        else if (EQUAL(argv[i], "-avenues"))
            request.n_avenues = atoi(value);
        else if (EQUAL(argv[i], "-streets"))
            request.n_streets = atoi(value);
        else if (EQUAL(argv[i], "-pickups"))
            request.n_pickups = strtoll(value, NULL, 10);
        else if (EQUAL(argv[i], "-places"))
            request.n_places = strtoll(value, NULL, 10);
        else
        {
            fprintf(stderr, "make_city: unknown option %s\n", argv[i]);
            return 1;
        }
        i++;
    }
    if (request.folder == NULL)
    {
        fprintf(stderr, "usage: make_city [-f FORMAT] [-seed S] [-avenues A] "
                        "[-streets S] [-pickups N] [-places N] FOLDER\n");
        return 1;
    }
    GDALAllRegister();
    make_folder(request.folder);
    if (write_all(&request) != 0)
    {
        fprintf(stderr, "make_city: not written: %s\n", CPLGetLastErrorMsg());
        return 1;
    }
    return 0;
}
