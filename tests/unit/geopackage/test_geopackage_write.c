/* The lane of GeoPackage, which writes rows without OGR features.
 * Kinds: unit, property (compared with GDAL's writing of the rows), large. */
#include "../layer_copy.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "test_geopackage_out"

enum
{
    N_GPKG_FIELDS = 11, /* number of test fields; GDAL writes a time as text */
    GDAL_WRITES = 0,
    LANE_WRITES = 1
};

static const char *const paths[] = {FOLDER "/gdal.gpkg", FOLDER "/lane.gpkg"};
static const char *const usual[] = {"SPATIAL_INDEX=YES", NULL};
static const char *const without_index[] = {"SPATIAL_INDEX=NO", NULL};
static const char *const odd_names[] = {"FID=f\"i'd", "GEOMETRY_NAME=g\"e'o",
                                        NULL};

static void remove_files(void)
{
    VSIRmdirRecursive(FOLDER);
    ck_assert_int_eq(mkdir(FOLDER, 0755), 0);
}

/* ---- a whole file as text ------------------------------------------------ */

struct dumped
{
    char *at;
    size_t n, cap;
};

static void add(struct dumped *text, const char *bytes, size_t n)
{
    if (text->n + n + 1 > text->cap)
    {
        text->cap = 2 * (text->n + n + 1);
        text->at = CPLRealloc(text->at, text->cap);
    }
    memcpy(text->at + text->n, bytes, n);
    text->n += n;
    text->at[text->n] = '\0';
}

/* Writes all rows of a query, each value with its type and its bytes in
 * hexadecimal digits. */
static void add_rows(struct dumped *text, sqlite3 *db, const char *query)
{
    sqlite3_stmt *statement = NULL;
    int code;
    ck_assert_msg(sqlite3_prepare_v2(db, query, -1, &statement, NULL) ==
                      SQLITE_OK,
                  "%s: %s", query, sqlite3_errmsg(db));
    add(text, query, strlen(query));
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
    {
        add(text, "\n", 1);
        for (int i = 0; i < sqlite3_column_count(statement); i++)
        {
            int kind = sqlite3_column_type(statement, i);
            char head[32], *hex;
            const void *bytes =
                kind == SQLITE_BLOB
                    ? sqlite3_column_blob(statement, i)
                    : (const void *)sqlite3_column_text(statement, i);
            int n = sqlite3_column_bytes(statement, i);
            snprintf(head, sizeof head, "|%d:", kind);
            add(text, head, strlen(head));
            if (kind == SQLITE_BLOB)
            {
                hex = CPLBinaryToHex(n, bytes);
                add(text, hex, strlen(hex));
                CPLFree(hex);
            }
            else if (n > 0)
                add(text, bytes, (size_t)n);
        }
    }
    ck_assert_msg(code == SQLITE_DONE, "%s: %s", query, sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    add(text, "\n", 1);
}

/* Returns the whole contents of the file as text, except times and the
 * structure of the spatial index. */
static char *dump_file(const char *path, const char *layer)
{
    static const char *const queries[] = {
        "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2",
        ("SELECT table_name, data_type, identifier, description, min_x, min_y, "
         "max_x, max_y, srs_id FROM gpkg_contents ORDER BY 1"),
        "SELECT * FROM gpkg_ogr_contents ORDER BY 1",
        "SELECT * FROM gpkg_geometry_columns ORDER BY 1",
        "SELECT * FROM sqlite_sequence ORDER BY 1",
        "SELECT * FROM gpkg_spatial_ref_sys ORDER BY 1",
        "PRAGMA integrity_check",
        "PRAGMA foreign_key_check"};
    struct dumped text = {0};
    sqlite3 *db;
    sqlite3_stmt *indexes;
    char *query;
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL),
                     SQLITE_OK);
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
        add_rows(&text, db, queries[i]);
    query = sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY 1", layer);
    add_rows(&text, db, query);
    sqlite3_free(query);
    ck_assert_int_eq(
        sqlite3_prepare_v2(db,
                           "SELECT name FROM sqlite_master WHERE sql LIKE "
                           "'CREATE VIRTUAL TABLE%rtree%'",
                           -1, &indexes, NULL),
        SQLITE_OK);
    while (sqlite3_step(indexes) == SQLITE_ROW)
    {
        const char *name = (const char *)sqlite3_column_text(indexes, 0);
        query = sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY 1", name);
        add_rows(&text, db, query);
        sqlite3_free(query);
        query = sqlite3_mprintf("SELECT rtreecheck(%Q)", name);
        add_rows(&text, db, query);
        sqlite3_free(query);
        add_rows(&text, db, "SELECT * FROM gpkg_extensions ORDER BY 1, 2, 3");
    }
    sqlite3_finalize(indexes);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert_ptr_nonnull(strstr(text.at, "3:ok\n"));
    return text.at;
}

static void same_files(const char *layer)
{
    char *a = dump_file(paths[GDAL_WRITES], layer);
    char *b = dump_file(paths[LANE_WRITES], layer);
    size_t i = 0;
    while (a[i] != '\0' && a[i] == b[i])
        i++;
    ck_assert_msg(a[i] == b[i], "GDAL: %.200s\nlane: %.200s",
                  a + (i > 80 ? i - 80 : 0), b + (i > 80 ? i - 80 : 0));
    CPLFree(a);
    CPLFree(b);
}

/* ---- writing ------------------------------------------------------------- */

/* Makes an empty layer with the fields of the layer like, and begins a
 * transaction. */
static GDALDatasetH make_output(const char *path, OGRLayerH like,
                                OGRwkbGeometryType type,
                                const char *const *options)
{
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(like);
    GDALDatasetH dataset = GDALCreate(GDALGetDriverByName("GPKG"), path, 0, 0,
                                      0, GDT_Unknown, NULL);
    OGRLayerH layer;
    ck_assert_ptr_nonnull(dataset);
    ck_assert_int_eq(GDALDatasetStartTransaction(dataset, 0), OGRERR_NONE);
    layer = GDALDatasetCreateLayer(dataset, OGR_L_GetName(like), NULL, type,
                                   (char **)options);
    for (int i = 0; i < OGR_FD_GetFieldCount(defn); i++)
        ck_assert_int_eq(
            OGR_L_CreateField(layer, OGR_FD_GetFieldDefn(defn, i), 1),
            OGRERR_NONE);
    return dataset;
}

/* Copies all rows to the layer and completes it. Returns a status. */
static oj_status copy_rows(OGRLayerH from, GDALDatasetH to, int by_lane,
                           struct oj_error *err)
{
    struct oj_column columns[N_FIELDS + 8];
    struct oj_write_options options = writing(from, columns);
    struct oj_read_options read_options = reading(from, 1, 50);
    struct oj_layer_reader *reader = NULL;
    struct oj_layer_writer *writer = NULL;
    struct oj_batch batch = {0};
    MATCHES matches = {0};
    int has_file;
    oj_status status;
    options.dataset = by_lane ? to : NULL;
    status = oj_layer_reader_open(from, &read_options, &reader, err);
    if (status == OJ_OK)
        status = oj_layer_writer_open(first_layer(to), &options, &writer, err);
    while (status == OJ_OK)
    {
        status = oj_layer_reader_next(reader, &batch, err);
        if (status != OJ_OK || batch.n_rows == 0)
            break;
        status =
            oj_matches_reserve(&matches, batch.n_rows, batch.n_rows, 0, err);
        if (status != OJ_OK)
            break;
        no_matches(&matches, batch.n_rows);
        status = oj_layer_writer_write(writer, &batch, 0, &matches, NULL, err);
    }
    if (status == OJ_OK)
        status = oj_layer_writer_finish(writer, &has_file, err);
    if (status == OJ_OK)
        ck_assert_int_eq(oj_layer_writer_counts(writer)->n_rows,
                         OGR_L_GetFeatureCount(first_layer(to), 1));
    oj_batch_free(&batch);
    oj_layer_writer_close(writer);
    oj_layer_reader_close(reader);
    return status;
}

static oj_status write_file(OGRLayerH from, OGRwkbGeometryType type,
                            const char *const *options, int by_lane,
                            struct oj_error *err)
{
    GDALDatasetH to = make_output(paths[by_lane], from, type, options);
    oj_status status;
    CPLErrorReset();
    status = copy_rows(from, to, by_lane, err);
    if (status == OJ_OK && GDALDatasetCommitTransaction(to) != OGRERR_NONE)
        status = oj_fail(err, OJ_ERR_IO, "%s", CPLGetLastErrorMsg());
    if (status != OJ_OK)
        GDALDatasetRollbackTransaction(to);
    CPLErrorReset();
    GDALClose(to);
    if (status == OJ_OK && CPLGetLastErrorType() == CE_Failure)
        status = oj_fail(err, OJ_ERR_IO, "%s", CPLGetLastErrorMsg());
    return status;
}

/* Writes by GDAL and by the lane. Status and files must be equal. If the extent
 * is not finite, the messages differ: GDAL's is that of SQLite. */
static void compare_writers(OGRLayerH from, OGRwkbGeometryType type,
                            const char *const *options)
{
    struct oj_error errors[2];
    oj_status status[2];
    remove_files();
    CPLPushErrorHandler(CPLQuietErrorHandler);
    for (int lane = 0; lane < 2; lane++)
        status[lane] = write_file(from, type, options, lane, &errors[lane]);
    CPLPopErrorHandler();
    ck_assert_msg(status[0] == status[1], "%s",
                  errors[status[0] == OJ_OK].message);
    if (status[0] == OJ_OK)
        same_files(OGR_L_GetName(from));
    else if (strstr(errors[1].message, "is not finite") == NULL)
        ck_assert_str_eq(errors[0].message, errors[1].message);
    VSIRmdirRecursive(FOLDER);
}

/* Makes a layer in memory of n rows with the geometry wkt. A few rows have no
 * geometry, or one of another type. */
static GDALDatasetH make_input(const char *wkt, OGRwkbGeometryType type, int n)
{
    GDALDatasetH in = make_layer("Memory", "", N_GPKG_FIELDS, type, NULL);
    for (int i = 0; i < n; i++)
        add_row(first_layer(in), i,
                i % 9 == 4    ? NULL
                : i % 31 == 7 ? test_shapes[i / 31 % N_SHAPES]
                              : wkt);
    return in;
}

static OGRwkbGeometryType type_of(const char *wkt)
{
    char *text = CPLStrdup(wkt), *at = text;
    OGRGeometryH geometry;
    OGRwkbGeometryType type;
    ck_assert_int_eq(OGR_G_CreateFromWkt(&at, NULL, &geometry), OGRERR_NONE);
    type = OGR_G_GetGeometryType(geometry);
    OGR_G_DestroyGeometry(geometry);
    CPLFree(text);
    return type;
}

/* Every shape, in a layer of its own type and in one of any type, with and
 * without a spatial index. */
TEST_LOOP(property_every_shape_and_field, 0, 4 * N_SHAPES)
{
    const char *wkt = test_shapes[_i / 4];
    OGRwkbGeometryType type = _i % 4 < 2 ? wkbUnknown : type_of(wkt);
    GDALDatasetH in = make_input(wkt, wkbUnknown, 900);
    compare_writers(first_layer(in), type, _i % 2 ? usual : without_index);
    GDALClose(in);
}

/* Geometries in which 777 is replaced by NaN and 888 by infinity. */
static const char *const odd_shapes[] = {
    "POINT (777 1)",
    "POINT (888 1)",
    "POINT Z (1 2 777)",
    "POINT Z (0 0 888)",
    "LINESTRING (0 0,777 1)",
    "LINESTRING (0 0,1 888)",
    "LINESTRING M EMPTY",
    "POLYGON Z EMPTY",
    "LINESTRING ZM (1 2 3 4,5 6 7 8)",
    "POLYGON M ((0 0 1,1 1 2,1 0 5,0 0 1))",
    "MULTIPOINT ZM (1 2 3 4)",
    "GEOMETRYCOLLECTION (POINT EMPTY,POINT (1 2))",
    "MULTILINESTRING (EMPTY,(3 4,5 6))",
    "MULTIPOLYGON (EMPTY,((3 4,5 6,7 4,3 4)))",
    "GEOMETRYCOLLECTION (LINESTRING EMPTY,POINT (1 3))",
    "GEOMETRYCOLLECTION Z (POLYGON Z EMPTY)",
    "GEOMETRYCOLLECTION (GEOMETRYCOLLECTION (POINT M (1 2 3)))",
    "POINT (-0.1 0.1)",
    "POINT (1e300 -1e300)",
    "LINESTRING (1e-320 -1e-320,16777217 -16777217)"};

enum
{
    N_ODD = (int)(sizeof odd_shapes / sizeof odd_shapes[0])
};

static double odd_coordinate(double value)
{
    return value == 777.0   ? (double)NAN
           : value == 888.0 ? (double)INFINITY
                            : value;
}

static void make_odd(OGRLayerH layer)
{
    OGRFeatureH feature;
    OGR_L_ResetReading(layer);
    while ((feature = OGR_L_GetNextFeature(layer)) != NULL)
    {
        OGRGeometryH geometry = OGR_F_GetGeometryRef(feature);
        for (int i = 0; i < OGR_G_GetPointCount(geometry); i++)
        {
            double x, y, z;
            OGR_G_GetPoint(geometry, i, &x, &y, &z);
            if (OGR_G_Is3D(geometry) && !isfinite(odd_coordinate(z)))
                OGR_G_SetPoint(geometry, i, x, y, odd_coordinate(z));
            else if (!isfinite(odd_coordinate(x)) ||
                     !isfinite(odd_coordinate(y)))
                OGR_G_SetPoint_2D(geometry, i, odd_coordinate(x),
                                  odd_coordinate(y));
        }
        ck_assert_int_eq(OGR_L_SetFeature(layer, feature), OGRERR_NONE);
        OGR_F_Destroy(feature);
    }
}

TEST_LOOP(property_odd_shapes, 0, 2 * N_ODD)
{
    GDALDatasetH in = make_layer("Memory", "", 3, wkbUnknown, NULL);
    for (int i = 0; i < 40; i++)
        add_row(first_layer(in), i,
                i % 3 > 0 ? "POINT (1 2)" : odd_shapes[_i / 2]);
    make_odd(first_layer(in));
    compare_writers(first_layer(in), wkbUnknown,
                    _i % 2 ? usual : without_index);
    GDALClose(in);
}

/* Layers without rows, and with one row. */
TEST_LOOP(unit_few_rows, 0, 4)
{
    GDALDatasetH in = make_input("POINT (3 4)", wkbPoint, _i / 2);
    compare_writers(first_layer(in), wkbPoint, _i % 2 ? usual : without_index);
    GDALClose(in);
}

/* ---- names and values ---------------------------------------------------- */

static const char *const texts[] = {
    "",
    "plain",
    "\xC3\xA9t\xC3\xA9",
    "\xF0\x9F\x98\x80 and more",
    "bad \xE9 bytes",
    "'; DROP TABLE x; --",
    "longer than ten letters",
    ("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"
     "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9")};

static void add_field(OGRLayerH layer, const char *name, OGRFieldType type,
                      OGRFieldSubType subtype, int width, int is_unique)
{
    OGRFieldDefnH field = OGR_Fld_Create(name, type);
    OGR_Fld_SetSubType(field, subtype);
    OGR_Fld_SetWidth(field, width);
    OGR_Fld_SetUnique(field, is_unique);
    ck_assert_int_eq(OGR_L_CreateField(layer, field, 1), OGRERR_NONE);
    OGR_Fld_Destroy(field);
}

static GDALDatasetH make_named(const char *name)
{
    GDALDatasetH in = GDALCreate(GDALGetDriverByName("Memory"), "", 0, 0, 0,
                                 GDT_Unknown, NULL);
    ck_assert_ptr_nonnull(
        GDALDatasetCreateLayer(in, name, NULL, wkbPoint, NULL));
    return in;
}

static void add_point(OGRLayerH layer, OGRFeatureH feature, int i)
{
    OGRGeometryH point = OGR_G_CreateGeometry(wkbPoint);
    OGR_G_SetPoint_2D(point, 0, i * 37 % 400, i * 91 % 170 - 80);
    OGR_F_SetGeometryDirectly(feature, point);
    ck_assert_int_eq(OGR_L_CreateFeature(layer, feature), OGRERR_NONE);
    OGR_F_Destroy(feature);
}

TEST_LOOP(property_names_texts_and_times, 0, 2)
{
    GDALDatasetH in = make_named(_i ? "t\"a'b \xC3\xA9=x" : "things");
    OGRLayerH layer = first_layer(in);
    add_field(layer, "x\"y'z", OFTString, OFSTNone, 0, 0);
    add_field(layer, "ten", OFTString, OFSTNone, 10, 0);
    add_field(layer, "json", OFTString, OFSTJSON, 0, 0);
    add_field(layer, "select", OFTDateTime, OFSTNone, 0, 0);
    add_field(layer, "day", OFTDate, OFSTNone, 0, 0);
    add_field(layer, "real", OFTReal, OFSTNone, 0, 0);
    for (int i = 0; i < 400; i++)
    {
        static const int zones[] = {0, 1, 100, 100, 104, 90, 101, 127};
        static const double reals[] = {0.1, NAN, -0.0, 1e308, INFINITY, 3};
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
        OGR_F_SetFieldString(feature, 0, texts[i % 8]);
        OGR_F_SetFieldString(feature, 1, texts[i / 8 % 8]);
        OGR_F_SetFieldString(feature, 2, "{\"a\":[1,2]}");
        OGR_F_SetFieldDateTimeEx(
            feature, 3, 1 + i * 24, 1 + i % 12, 1 + i % 28, i % 24, i % 60,
            (float)(i % 60) + 0.001f * (float)i, zones[i % 8]);
        OGR_F_SetFieldDateTime(feature, 4, i * 20, 1 + i % 12, 28, 0, 0, 0, 0);
        OGR_F_SetFieldDouble(feature, 5, reals[i % 6]);
        add_point(layer, feature, i);
    }
    compare_writers(layer, wkbPoint, _i ? odd_names : usual);
    GDALClose(in);
}

/* If the table refuses a row, GDAL and the lane both return an error. */
TEST_LOOP(unit_refused_rows, 0, 2)
{
    GDALDatasetH in = make_named("things");
    OGRLayerH layer = first_layer(in);
    add_field(layer, "key", OFTInteger, OFSTNone, 0, 1);
    for (int i = 0; i < 200; i++)
    {
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
        OGR_F_SetFieldInteger(feature, 0, _i == 1 && i == 150 ? 20 : i);
        add_point(layer, feature, i);
    }
    compare_writers(layer, wkbPoint, usual);
    GDALClose(in);
}

/* ---- the index ----------------------------------------------------------- */

static GDALDatasetH make_scattered(int n)
{
    GDALDatasetH in = make_named("things");
    OGRLayerH layer = first_layer(in);
    unsigned state = 99;
    add_field(layer, "a", OFTInteger, OFSTNone, 0, 0);
    for (int i = 0; i < n; i++)
    {
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
        OGRGeometryH point = OGR_G_CreateGeometry(wkbPoint);
        state = state * 1664525u + 1013904223u;
        OGR_G_SetPoint_2D(point, 0, (double)(state >> 8) / 1000.0,
                          (double)((state * 7u) >> 8) / 777.0);
        OGR_F_SetGeometryDirectly(feature, point);
        OGR_F_SetFieldInteger(feature, 0, i);
        /* ascending, descending, and random */
        OGR_F_SetFID(feature, n % 3 == 0   ? i
                              : n % 3 == 1 ? n - i
                                           : (long long)i * 7919 % n);
        ck_assert_int_eq(OGR_L_CreateFeature(layer, feature), OGRERR_NONE);
        OGR_F_Destroy(feature);
    }
    return in;
}

static int64_t query_integer(sqlite3 *db, const char *query)
{
    sqlite3_stmt *statement;
    int64_t value;
    ck_assert_int_eq(sqlite3_prepare_v2(db, query, -1, &statement, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* Checks that searches by the index find what a scan of all entries finds. */
static void check_searches(const char *path)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(
        query_integer(db, "SELECT rtreecheck('rtree_things_geom') = 'ok'"), 1);
    ck_assert_int_eq(
        query_integer(
            db, "SELECT count(*) FROM things t LEFT JOIN rtree_things_geom r "
                "ON r.id = t.fid WHERE r.id IS NULL"),
        0);
    for (int i = 0; i < 100; i++)
    {
        double x = i % 10 * 1700.0, y = i / 10 * 2100.0, w = 1 << i % 15;
        char *by_index = sqlite3_mprintf(
            "SELECT total(id) + count(*) FROM rtree_things_geom WHERE maxx >= "
            "%f AND minx <= %f AND maxy >= %f AND miny <= %f",
            x, x + w, y, y + w);
        char *by_all = sqlite3_mprintf(
            "SELECT total(id) + count(*) FROM rtree_things_geom WHERE +maxx >= "
            "%f AND +minx <= %f AND +maxy >= %f AND +miny <= %f",
            x, x + w, y, y + w);
        ck_assert_int_eq(query_integer(db, by_index),
                         query_integer(db, by_all));
        sqlite3_free(by_index);
        sqlite3_free(by_all);
    }
    sqlite3_close(db);
}

static void execute_sql(GDALDatasetH dataset, const char *statement)
{
    OGRLayerH result;
    CPLErrorReset();
    result = GDALDatasetExecuteSQL(dataset, statement, NULL, NULL);
    ck_assert_msg(CPLGetLastErrorType() != CE_Failure, "%s",
                  CPLGetLastErrorMsg());
    GDALDatasetReleaseResultSet(dataset, result);
}

/* Returns the number of nodes of an index of n entries in which all nodes are
 * full. */
static int64_t count_nodes(int64_t n)
{
    int64_t n_nodes = 0;
    do
        n_nodes += n = (n + 50) / 51;
    while (n > 1);
    return n_nodes;
}

/* Asserts that the lane has written the file: the index has the least possible
 * number of nodes. */
static void check_packed(const char *path, int64_t n)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(
        query_integer(db, "SELECT count(*) FROM rtree_things_geom_node"),
        count_nodes(n));
    sqlite3_close(db);
}

/* GDAL changes a file that the lane has written. It adds, deletes and moves
 * rows. */
TEST_LOOP(large_gdal_goes_on_with_the_file, 0, 7)
{
    static const int sizes[] = {50, 51, 52, 2601, 2602, 20000, 20002};
    GDALDatasetH in = make_scattered(sizes[_i]), file;
    struct oj_error err;
    int n = sizes[_i];
    remove_files();
    ck_assert_int_eq(
        write_file(first_layer(in), wkbPoint, usual, LANE_WRITES, &err), OJ_OK);
    check_searches(paths[LANE_WRITES]);
    check_packed(paths[LANE_WRITES], n);
    file = GDALOpenEx(paths[LANE_WRITES], GDAL_OF_VECTOR | GDAL_OF_UPDATE, NULL,
                      NULL, NULL);
    ck_assert_int_eq(OGR_L_GetFeatureCount(first_layer(file), 1), n);
    for (int i = 0; i < 500; i++)
    {
        OGRFeatureH feature =
            OGR_F_Create(OGR_L_GetLayerDefn(first_layer(file)));
        add_point(first_layer(file), feature, i);
    }
    execute_sql(file, "DELETE FROM things WHERE a % 3 = 1");
    execute_sql(file,
                "UPDATE things SET geom = (SELECT geom FROM things LIMIT 1) "
                "WHERE a % 5 = 2");
    execute_sql(file, "UPDATE things SET fid = -fid - 10 WHERE a % 7 = 3");
    ck_assert_int_eq(OGR_L_GetFeatureCount(first_layer(file), 1),
                     n + 500 - (n + 1) / 3);
    file = reopen(file, paths[LANE_WRITES]);
    ck_assert_int_eq(OGR_L_GetFeatureCount(first_layer(file), 1),
                     n + 500 - (n + 1) / 3);
    GDALClose(file);
    check_searches(paths[LANE_WRITES]);
    compare_writers(first_layer(in), wkbPoint, usual);
    GDALClose(in);
}

/* ---- failures ------------------------------------------------------------ */

TEST_LOOP(unit_a_full_file, 0, 2)
{
    GDALDatasetH in = make_scattered(20000);
    struct oj_error err;
    for (int pages = 40; pages < 1000; pages += 150)
    {
        GDALDatasetH to;
        char pragma[64];
        remove_files();
        to = make_output(paths[_i], first_layer(in), wkbPoint, usual);
        snprintf(pragma, sizeof pragma, "PRAGMA max_page_count = %d", pages);
        CPLPushErrorHandler(CPLQuietErrorHandler);
        GDALDatasetReleaseResultSet(
            to, GDALDatasetExecuteSQL(to, pragma, NULL, NULL));
        CPLErrorReset();
        if (copy_rows(first_layer(in), to, _i, &err) != OJ_OK)
            ck_assert_ptr_nonnull(strstr(err.message, "full"));
        else
            ck_assert(!_i || pages > 300);
        GDALDatasetRollbackTransaction(to);
        GDALClose(to);
        CPLPopErrorHandler();
    }
    GDALClose(in);
    VSIRmdirRecursive(FOLDER);
}

int main(void)
{
    tests_open("geopackage_write");
    /* a crash need not be survived here */
    CPLSetConfigOption("OGR_SQLITE_SYNCHRONOUS", "OFF");
    GDALAllRegister();
    return tests_run();
}
