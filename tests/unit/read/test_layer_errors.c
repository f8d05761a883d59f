/* The layer reader and writer with broken files, rows that cannot be written,
 * places outside of a CRS, too little memory, and batches that another thread
 * frees.
 * Kinds: degenerate, memory. */
#include "../layers.h"
#include "../run_tests.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/read/oj_attribute_table.h"
#include "../../../flatten/write/oj_layer_write.h"

#include <ogr_srs_api.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const no_index[] = {"SPATIAL_INDEX=NO", NULL};
static const int three_fields[] = {0, 1, 5};

static struct oj_read_options reading(int use_lanes, int64_t batch_rows)
{
    struct oj_read_options options;
    memset(&options, 0, sizeof options);
    options.batch_rows = batch_rows;
    options.limit = -1;
    options.fields = three_fields;
    options.n_fields = 3;
    options.keep_attributes = 1;
    options.lanes = use_lanes ? OJ_LANES_ALL : 0;
    options.ignore_unwanted = 1;
    return options;
}

/* Reads until the end or an error. Stores the number of rows read in *n_rows.
 * Returns a status. */
static oj_status read_layer(OGRLayerH layer,
                            const struct oj_read_options *options,
                            int64_t *n_rows, struct oj_error *err)
{
    struct oj_layer_reader *reader;
    struct oj_batch batch = {0};
    oj_status status;
    *n_rows = 0;
    OJ_TRY(oj_layer_reader_open(layer, options, &reader, err));
    do
    {
        status = oj_layer_reader_next(reader, &batch, err);
        ck_assert(status == OJ_OK || batch.n_rows == 0);
        *n_rows += batch.n_rows;
    } while (status == OJ_OK && batch.n_rows > 0);
    oj_batch_free(&batch);
    oj_layer_reader_close(reader);
    return status;
}

static GDALDatasetH make_points(const char *driver, const char *path, int n)
{
    /* this driver has no binary fields */
    int n_fields = N_SIMPLE_FIELDS - (driver[0] == 'E');
    GDALDatasetH dataset =
        make_layer(driver, path, n_fields, wkbPoint,
                   strlen(driver) > 10 || driver[0] == 'M' ? NULL : no_index);
    GDALDatasetStartTransaction(dataset, 0);
    add_points(first_layer(dataset), n, 0);
    GDALDatasetCommitTransaction(dataset);
    return dataset;
}

/* ---- broken files ------------------------------------------------------- */

/* Invalid blobs of geometries in a GeoPackage: "GP", version, flags, SRS, then
 * WKB. */
TEST_LOOP(degenerate_broken_geometry_names_its_feature, 0, 16)
{
    static const char *const blobs[] = {
        "X'4750000100000000'",                           /* nothing */
        "X'47500001000000000101000000000000000000'",     /* cut */
        "X'475000010000000001630000000000000000'",       /* type 99 */
        "X'475000010000000001020000000000001000000000'", /* too many */
        "X'58580001000000000101000000'", /* "XX" instead of "GP" */
        "X''",
        "'POINT (1 2)'",
        "17"};
    const char *path = "/vsimem/broken.gpkg";
    GDALDatasetH in = make_points("GPKG", path, 50);
    struct oj_read_options options = reading(_i % 2, 20);
    struct oj_error err = {OJ_OK, ""};
    int64_t n;
    char sql[200];
    CPLsnprintf(sql, sizeof sql, "UPDATE things SET geom = %s WHERE fid = 33",
                blobs[_i / 2]);
    GDALDatasetReleaseResultSet(in, GDALDatasetExecuteSQL(in, sql, NULL, NULL));
    in = reopen(in, path);
    ck_assert_int_eq(read_layer(first_layer(in), &options, &n, &err),
                     OJ_ERR_DATA);
    ck_assert_msg(strstr(err.message, "feature 33") != NULL, "%s", err.message);
    /* the broken row is in the second batch, so the rows of this batch may be
     * missing */
    ck_assert_int_ge(n, 20);
    GDALClose(in);
    VSIUnlink(path);
}

/* Damages a file. kind 0 truncates it. Kind 1 puts zeros into its middle, and
 * kind 2 noise, but not the asterisk that marks a deleted row in a DBF file. */
static void damage_file(const char *path, int kind)
{
    VSILFILE *file = VSIFOpenL(path, "r+b");
    unsigned char bytes[8192];
    vsi_l_offset size;
    ck_assert_ptr_nonnull(file);
    VSIFSeekL(file, 0, SEEK_END);
    size = VSIFTellL(file);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] =
            kind == 1 ? 0 : (unsigned char)(i * 2654435761u >> 13 | 0x80);
    if (kind == 0)
    {
        VSIFTruncateL(file, size * 2 / 3);
    }
    else
    {
        VSIFSeekL(file, size / 2 / 4096 * 4096, SEEK_SET);
        VSIFWriteL(bytes, 1, sizeof bytes, file);
    }
    VSIFCloseL(file);
}

TEST_LOOP(degenerate_broken_files_are_never_short_layers, 0, 24)
{
    static const struct
    {
        const char *driver, *path, *damaged;
    } files[] = {
        {"GPKG", "/vsimem/d.gpkg", "/vsimem/d.gpkg"},
        {"FlatGeobuf", "/vsimem/d.fgb", "/vsimem/d.fgb"},
        {"ESRI Shapefile", "/vsimem/d.shp", "/vsimem/d.shp"},
        {"ESRI Shapefile", "/vsimem/d.shp", "/vsimem/d.dbf"},
    };
    const int f = _i / 6, kind = _i / 2 % 3;
    GDALDatasetH in = make_points(files[f].driver, files[f].path, 20000);
    struct oj_read_options options = reading(_i % 2, 3000);
    struct oj_error err = {OJ_OK, ""};
    int64_t n = 0;
    GDALClose(in);
    damage_file(files[f].damaged, kind);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    in = GDALOpenEx(files[f].path, GDAL_OF_VECTOR, NULL, NULL, NULL);
    if (in != NULL && GDALDatasetGetLayerCount(in) > 0)
    {
        oj_status status = read_layer(first_layer(in), &options, &n, &err);
        /* zeros and noise may be valid rows in formats without structure; but
         * no row may be missing without an error */
        ck_assert_msg(status == OJ_ERR_IO || status == OJ_ERR_DATA ||
                          (status == OJ_OK && n == 20000),
                      "%s: %lld rows", files[f].damaged, (long long)n);
        if (kind == 0)
            ck_assert_int_ne(status, OJ_OK);
    }
    CPLPopErrorHandler();
    if (in != NULL)
        GDALClose(in);
    GDALDeleteDataset(NULL, files[f].path);
}

TEST_LOOP(degenerate_layers_without_rows_geometry_or_fields, 0, 2)
{
    static const char *const drivers[] = {"GPKG", "FlatGeobuf", "Memory"};
    static const char *const paths[] = {"/vsimem/none.gpkg", "/vsimem/none.fgb",
                                        ""};
    for (int d = 0; d < 3; d++)
    {
        GDALDatasetH in =
            make_layer(drivers[d], paths[d], 0, _i ? wkbNone : wkbPoint, NULL);
        struct oj_read_options options = reading(1, 10);
        int64_t n;
        options.fields = NULL;
        options.n_fields = 0;
        if (d != 2)
            in = reopen(in, paths[d]);
        ck_assert_int_eq(read_layer(first_layer(in), &options, &n, NULL),
                         OJ_OK);
        ck_assert_int_eq(n, 0);
        GDALClose(in);
        VSIUnlink(paths[d]);
    }
}

/* ---- filters ------------------------------------------------------------ */

/* Only the bounding box of the first line touches the filter, so its row is not
 * read. The second line lies in the filter. */
TEST_LOOP(unit_spatial_filter_is_exact, 0, 2)
{
    const char *path = "/vsimem/lines.gpkg";
    GDALDatasetH in =
        make_layer("GPKG", path, N_SIMPLE_FIELDS, wkbLineString, NULL);
    struct oj_read_options options = reading(_i, 10);
    int64_t n;
    add_row(first_layer(in), 0, "LINESTRING (0 0,10 10)");
    add_row(first_layer(in), 1, "LINESTRING (8 1,9 2)");
    in = reopen(in, path);
    OGR_L_SetSpatialFilterRect(first_layer(in), 7, 0, 9, 2);
    ck_assert_int_eq(read_layer(first_layer(in), &options, &n, NULL), OJ_OK);
    ck_assert_int_eq(n, 1);
    GDALClose(in);
    VSIUnlink(path);
}

/* ---- rows that cannot be written ---------------------------------------- */

TEST_LOOP(degenerate_refused_rows_say_why, 0, 2)
{
    const char *path = "/vsimem/refused.gpkg";
    GDALDatasetH in = make_layer("Memory", "", 1, wkbPoint, NULL);
    GDALDatasetH out = make_layer("GPKG", path, 1, wkbPoint, no_index);
    const struct oj_column column = {OJ_COLUMN_INPUT, 0, 0, OFTInteger,
                                     OFSTNone};
    const int field = 0;
    struct oj_write_options options = {0};
    struct oj_read_options read_options = reading(0, 10);
    struct oj_layer_reader *reader;
    struct oj_layer_writer *writer;
    struct oj_batch batch = {0};
    struct oj_matches matches = {0};
    struct oj_error err = {OJ_OK, ""};
    int32_t none[3] = {-1, -1, -1};
    add_points(first_layer(in), 3, 0);
    add_points(first_layer(out), 3, 0);
    if (_i == 0) /* a layer that is open for reading only */
        out = reopen(out, path);
    options.columns = &column;
    options.n_columns = 1;
    options.keep_fids = 1;
    read_options.fields = &field;
    read_options.n_fields = 1;
    ck_assert_int_eq(
        oj_layer_reader_open(first_layer(in), &read_options, &reader, NULL),
        OJ_OK);
    ck_assert_int_eq(
        oj_layer_writer_open(first_layer(out), &options, &writer, NULL), OJ_OK);
    ck_assert_int_eq(oj_layer_reader_next(reader, &batch, NULL), OJ_OK);
    matches.n_rows = matches.n_entries = 3;
    matches.join_row = none;
    ck_assert_int_eq(
        oj_layer_writer_write(writer, &batch, 0, &matches, NULL, &err),
        OJ_ERR_IO);
    ck_assert_msg(strstr(err.message, "input feature 1") != NULL, "%s",
                  err.message);
    if (_i == 1) /* the FID is in use */
        ck_assert_msg(strstr(err.message, "UNIQUE") != NULL, "%s", err.message);
    matches.n_rows = 4; /* more rows than the batch has */
    ck_assert_int_eq(
        oj_layer_writer_write(writer, &batch, 0, &matches, NULL, &err),
        OJ_ERR_INTERNAL);
    oj_batch_free(&batch);
    oj_layer_writer_close(writer);
    oj_layer_reader_close(reader);
    GDALClose(in);
    GDALClose(out);
    VSIUnlink(path);
}

/* ---- reprojection ------------------------------------------------------- */

static OGRSpatialReferenceH crs_of_epsg(int code)
{
    OGRSpatialReferenceH srs = OSRNewSpatialReference(NULL);
    ck_assert_int_eq(OSRImportFromEPSG(srs, code), OGRERR_NONE);
    OSRSetAxisMappingStrategy(srs, OAMS_TRADITIONAL_GIS_ORDER);
    return srs;
}

/* Row 2 is outside of the Earth, row 3 has no geometry, and row 4 an empty
 * one. */
TEST_LOOP(degenerate_reprojection, 0, 4)
{
    static const char *const shapes[] = {"POINT (10 50)",
                                         "POINT (11 51)",
                                         "POINT (10 1e30)",
                                         NULL,
                                         "POINT EMPTY",
                                         "POINT (12 52)",
                                         "LINESTRING (9 49,10 50)",
                                         "LINESTRING (9 49,10 1e30)",
                                         "POINT (10 50)"};
    const int n = _i % 2 ? 9 : 6; /* long form, short form */
    const int carried = _i / 2;
    GDALDatasetH in =
        make_layer("Memory", "", N_SIMPLE_FIELDS, wkbUnknown, NULL);
    OGRSpatialReferenceH from = crs_of_epsg(4326), to = crs_of_epsg(3035);
    OGRCoordinateTransformationH way = OCTNewCoordinateTransformation(from, to);
    struct oj_read_options options = reading(1, 100);
    struct oj_read_counts counts;
    struct oj_batch batch = {0};
    struct oj_flat flat;
    double x = 10, y = 50;
    for (int i = 0; i < n; i++)
        add_row(first_layer(in), i, shapes[i]);
    options.transformation = way;
    if (carried)
    {
        struct oj_layer_reader *reader;
        ck_assert_int_eq(
            oj_layer_reader_open(first_layer(in), &options, &reader, NULL),
            OJ_OK);
        ck_assert_int_eq(oj_layer_reader_next(reader, &batch, NULL), OJ_OK);
        counts = *oj_layer_reader_counts(reader);
        ck_assert_ptr_null(OGR_F_GetGeometryRef(batch.attributes->feature[2]));
        ck_assert_double_gt(
            OGR_G_GetX(OGR_F_GetGeometryRef(batch.attributes->feature[0]), 0),
            1e6);
        oj_attributes_free(batch.attributes);
        batch.attributes = NULL;
        oj_layer_reader_close(reader);
    }
    else
    {
        struct oj_table *table;
        ck_assert_int_eq(oj_layer_read_all(first_layer(in), &options,
                                           &batch.flat, &table, &counts, NULL,
                                           NULL, NULL),
                         OJ_OK);
        oj_table_free(table);
    }
    flat = oj_flat_buf_view(&batch.flat);
    ck_assert_int_eq(oj_flat_check(&flat, NULL), OJ_OK);
    ck_assert_int_eq(flat.n_features, n);
    ck_assert_int_eq(counts.n_not_transformed, n == 9 ? 2 : 1);
    ck_assert_int_eq(counts.shapes.n_null, 1);
    ck_assert_int_eq(counts.shapes.n_empty, 1);
    ck_assert_int_eq(counts.shapes.n_not_finite, 0);
    ck_assert(OCTTransform(way, 1, &x, &y, NULL));
    ck_assert_double_eq(flat.x[0], x);
    ck_assert_double_eq(flat.y[0], y);
    if (n == 9)
    {
        ck_assert_int_eq(flat.part_offset[3], 2);
        ck_assert_int_eq(flat.part_offset[8], flat.part_offset[7]);
        ck_assert_double_eq(flat.x[flat.n_vertices - 1], x);
    }
    else
    {
        ck_assert(oj_flat_is_points(&flat));
        for (int i = 2; i < 5; i++)
            ck_assert_double_nan(flat.x[i]);
        ck_assert(!isnan(flat.x[5]));
    }
    oj_batch_free(&batch);
    OCTDestroyCoordinateTransformation(way);
    OSRDestroySpatialReference(from);
    OSRDestroySpatialReference(to);
    GDALClose(in);
}

/* ---- threads, memory, cancel -------------------------------------------- */

static void *free_batches(void *batches)
{
    for (int i = 0; i < 8; i++)
        oj_batch_free((struct oj_batch *)batches + i);
    return NULL;
}

/* Two slices of one chunk are freed on two threads at once. */
TEST_LOOP(unit_batches_end_on_other_threads, 0, 4)
{
    static const char *const drivers[] = {"GPKG", "FlatGeobuf"};
    const char *path = _i / 2 ? "/vsimem/threads.fgb" : "/vsimem/threads.gpkg";
    GDALDatasetH in = make_points(drivers[_i / 2], path, 10000);
    struct oj_read_options options = reading(_i % 2, 100);
    struct oj_layer_reader *reader;
    struct oj_batch batches[5][8];
    pthread_t threads[5];
    memset(batches, 0, sizeof batches);
    in = reopen(in, path);
    options.batch_rows = 70;
    ck_assert_int_eq(
        oj_layer_reader_open(first_layer(in), &options, &reader, NULL), OJ_OK);
    for (int t = 0; t < 5; t++)
    {
        for (int i = 0; i < 8; i++)
        {
            ck_assert_int_eq(oj_layer_reader_next(reader, &batches[t][i], NULL),
                             OJ_OK);
            ck_assert_int_eq(batches[t][i].n_rows, 70);
        }
        pthread_create(&threads[t], NULL, free_batches, batches[t]);
    }
    for (int t = 0; t < 5; t++)
        pthread_join(threads[t], NULL);
    oj_layer_reader_close(reader);
    GDALClose(in);
    VSIUnlink(path);
}

static oj_status read_layer_twice(OGRLayerH layer,
                                  const struct oj_read_options *o,
                                  struct oj_error *err)
{
    LAYER flat = {0};
    struct oj_table *table = NULL;
    struct oj_read_counts counts;
    int64_t n;
    oj_status status =
        oj_layer_read_all(layer, o, &flat, &table, &counts, NULL, NULL, err);
    if (status == OJ_OK)
        ck_assert_int_eq(oj_table_rows(table), flat.n_features);
    oj_table_free(table);
    OJ_TRY(status);
    return read_layer(layer, o, &n, err);
}

TEST_LOOP(memory_every_allocation_may_fail, 0, 3)
{
    const char *path = "/vsimem/memory.gpkg";
    GDALDatasetH in =
        _i == 2
            ? make_layer("Memory", "", N_FIELDS, wkbUnknown, NULL)
            : make_layer("GPKG", path, N_SIMPLE_FIELDS, wkbUnknown, no_index);
    static int every_field[N_FIELDS];
    struct oj_read_options options = reading(_i, 10);
    add_shapes(first_layer(in), FIRST_CURVE);
    if (_i != 2)
        in = reopen(in, path);
    for (int i = 0; i < N_FIELDS; i++)
        every_field[i] = i;
    options.fields = every_field;
    options.n_fields = _i == 2 ? N_FIELDS : N_SIMPLE_FIELDS;
    for (int64_t n = 1;; n++)
    {
        struct oj_error err = {OJ_OK, ""};
        oj_status status;
        oj_alloc_fail_at(n);
        status = read_layer_twice(first_layer(in), &options, &err);
        oj_alloc_fail_at(0);
        if (status == OJ_OK)
        {
            ck_assert_int_gt(n, 30);
            break;
        }
        ck_assert_int_eq(status, OJ_ERR_NOMEM);
        ck_assert_int_eq(err.status, OJ_ERR_NOMEM);
        ck_assert_ptr_nonnull(strstr(err.message, "memory"));
    }
    GDALClose(in);
    VSIUnlink(path);
}

static int stop_at_once(int64_t n_rows, void *user)
{
    *(int64_t *)user = n_rows;
    return 1;
}

TEST(unit_progress_and_flag_stop_reading)
{
    GDALDatasetH in = make_points("Memory", "", 3000);
    struct oj_read_options options = reading(0, 1000);
    struct oj_flat_buf flat = {0};
    struct oj_table *table;
    struct oj_read_counts counts;
    const int flag = 1;
    int64_t n = 0;
    ck_assert_int_eq(oj_layer_read_all(first_layer(in), &options, &flat, &table,
                                       &counts, stop_at_once, &n, NULL),
                     OJ_ERR_CANCELLED);
    ck_assert_int_eq(n, 3000);
    options.cancel = &flag;
    ck_assert_int_eq(read_layer(first_layer(in), &options, &n, NULL),
                     OJ_ERR_CANCELLED);
    GDALClose(in);
}

int main(void)
{
    tests_open("layer errors");
    GDALAllRegister();
    return tests_run();
}
