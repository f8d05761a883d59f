/* The lane of GeoPackage, which reads tables without GDAL's features.
 * Kinds: unit, property (compared with GDAL's reading of the table), memory. */
#include "../layer_copy.h"
#include "../random_numbers.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/geopackage/oj_gdal_sqlite.h"
#include "../../../flatten/read/oj_attribute_table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum
{
    N_GPKG_FIELDS = 11, /* number of test fields that are not lists */
    N_WAYS = 3 /* GDAL; the lane on one thread; the lane on four threads */
};

/* Returns the path of the test's file, which contains the process id, since
 * every test runs in its own process. */
static const char *file_name(void)
{
    static char name[100];
    CPLsnprintf(name, sizeof name, "test_geopackage_read_%d.gpkg",
                (int)getpid());
    return name;
}

static void remove_file(void)
{
    char other[120];
    VSIUnlink(file_name());
    CPLsnprintf(other, sizeof other, "%s-wal", file_name());
    VSIUnlink(other);
    CPLsnprintf(other, sizeof other, "%s-shm", file_name());
    VSIUnlink(other);
}

static void run_sql(GDALDatasetH dataset, const char *sql)
{
    OGRLayerH result;
    CPLErrorReset();
    result = GDALDatasetExecuteSQL(dataset, sql, NULL, NULL);
    ck_assert_msg(CPLGetLastErrorType() != CE_Failure, "%s: %s", sql,
                  CPLGetLastErrorMsg());
    GDALDatasetReleaseResultSet(dataset, result);
}

static GDALDatasetH open_file(int flags)
{
    GDALDatasetH dataset = GDALOpenEx(
        file_name(), GDAL_OF_VECTOR | (unsigned)flags, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(dataset);
    return dataset;
}

/* ---- rows as text, line by line -------------------------------------------
 */

struct row_text
{
    char *bytes;
    int64_t n, cap;
};

static void append_format(struct row_text *to, const char *format, ...)
    CPL_PRINT_FUNC_FORMAT(2, 3);
static void append_format(struct row_text *to, const char *format, ...)
{
    va_list list;
    ck_assert_int_eq(
        oj_reserve(&to->bytes, to->n, to->n + 400, &to->cap, 1, NULL), OJ_OK);
    va_start(list, format);
    to->n += vsnprintf(to->bytes + to->n, 400, format, list);
    va_end(list);
}

static void add_bytes(struct row_text *to, const void *bytes, int64_t n)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *from = bytes;
    ck_assert_int_eq(
        oj_reserve(&to->bytes, to->n, to->n + 2 * n, &to->cap, 1, NULL), OJ_OK);
    for (int64_t i = 0; i < n; i++)
    {
        to->bytes[to->n++] = digits[from[i] >> 4];
        to->bytes[to->n++] = digits[from[i] & 15];
    }
}

static void add_value(struct row_text *to, const struct oj_value *value,
                      OGRFieldType type)
{
    const OGRField *raw = &value->raw;
    int64_t n;
    if (!oj_value_is_there(value))
        append_format(to, " -");
    else if (type == OFTInteger)
        append_format(to, " %d", raw->Integer);
    else if (type == OFTInteger64)
        append_format(to, " %lld", (long long)raw->Integer64);
    else if (type == OFTReal)
        append_format(to, " %a", raw->Real);
    else if (type == OFTString || type == OFTBinary)
    {
        const void *bytes = oj_value_bytes(value, type, &n);
        append_format(to, " '");
        add_bytes(to, bytes, n);
    }
    else
        append_format(to, " %d-%d-%d %d:%d:%a %d", raw->Date.Year,
                      raw->Date.Month, raw->Date.Day, raw->Date.Hour,
                      raw->Date.Minute, (double)raw->Date.Second,
                      raw->Date.TZFlag);
}

static void add_geometry(struct row_text *to, const struct oj_attributes *rows,
                         int64_t row)
{
    size_t n = 0;
    const uint8_t *wkb = NULL;
    OGRGeometryH geometry = NULL;
    if (rows->slice.chunk != NULL)
        wkb = oj_slice_wkb(&rows->slice, row, &n);
    else
        geometry = oj_attributes_geometry(rows, row);
    if (geometry != NULL)
    {
        uint8_t *bytes = CPLMalloc((size_t)OGR_G_WkbSize(geometry));
        OGR_G_ExportToIsoWkb(geometry, wkbNDR, bytes);
        add_bytes(to, bytes, OGR_G_WkbSize(geometry));
        CPLFree(bytes);
    }
    add_bytes(to, wkb, (int64_t)n);
}

static void add_batch(struct row_text *to, const struct oj_batch *batch,
                      OGRFeatureDefnH defn)
{
    struct oj_value value;
    for (int64_t i = 0; i < batch->n_rows; i++)
    {
        append_format(to, "\n%lld ", (long long)batch->flat.fid[i]);
        add_geometry(to, batch->attributes, i);
        for (int f = 0; f < OGR_FD_GetFieldCount(defn); f++)
        {
            oj_attributes_value(batch->attributes, f, i, &value);
            add_value(to, &value,
                      OGR_Fld_GetType(OGR_FD_GetFieldDefn(defn, f)));
        }
    }
}

static oj_status read_layer(GDALDatasetH file, OGRLayerH layer, int way,
                            int64_t batch_rows, struct row_text *out,
                            struct oj_read_counts *counts, struct oj_error *err)
{
    struct oj_read_options options = reading(layer, way > 0, batch_rows);
    struct oj_layer_reader *reader;
    struct oj_batch batch = {0};
    oj_status status;
    options.geopackage = way > 0 ? file : NULL;
    options.n_threads = way == 2 ? 4 : 1;
    memset(out, 0, sizeof *out);
    ck_assert_int_eq(oj_layer_reader_open(layer, &options, &reader, err),
                     OJ_OK);
    do
    {
        status = oj_layer_reader_next(reader, &batch, err);
        if (status == OJ_OK)
            add_batch(out, &batch, OGR_L_GetLayerDefn(layer));
    } while (status == OJ_OK && batch.n_rows > 0);
    *counts = *oj_layer_reader_counts(reader);
    oj_batch_free(&batch);
    oj_layer_reader_close(reader);
    return status;
}

/* Compares two texts. If they differ, fails with the first line that does. */
static void same_text(const struct row_text *a, const struct row_text *b)
{
    int64_t i = 0, line = 0;
    for (; i < a->n && i < b->n && a->bytes[i] == b->bytes[i]; i++)
        line = a->bytes[i] == '\n' ? i + 1 : line;
    ck_assert_msg(a->n == b->n && i == a->n, "%.200s\nand %.200s",
                  line < a->n ? a->bytes + line : "(nothing)",
                  line < b->n ? b->bytes + line : "(nothing)");
}

/* Asserts that GDAL and the lane, on one thread and on four, read equal rows.
 * expect_lane is 1 if the lane must read the layer. */
static void compare_lane_with_gdal(GDALDatasetH file, OGRLayerH layer,
                                   int64_t batch_rows, int expect_lane)
{
    struct row_text out[N_WAYS];
    struct oj_read_counts counts[N_WAYS];
    struct oj_error err;
    for (int way = 0; way < N_WAYS; way++)
    {
        ck_assert_msg(read_layer(file, layer, way, batch_rows, &out[way],
                                 &counts[way], &err) == OJ_OK,
                      "%s", err.message);
        same_text(&out[0], &out[way]);
        ck_assert_int_eq(counts[way].lane != NULL &&
                             strcmp(counts[way].lane, "GeoPackage") == 0,
                         way > 0 && expect_lane);
    }
    for (int way = 0; way < N_WAYS; way++)
        oj_free(out[way].bytes);
}

/* Makes a file of n rows whose FIDs are 20,000 apart. Every tenth row has no
 * geometry. */
static GDALDatasetH make_file(const char *wkt, OGRwkbGeometryType type, int n)
{
    GDALDatasetH dataset;
    remove_file();
    dataset = make_layer("GPKG", file_name(), N_GPKG_FIELDS, type, NULL);
    for (int i = 0; i < n; i++)
        add_row(first_layer(dataset), i, i % 10 == 7 ? NULL : wkt);
    run_sql(dataset, "UPDATE things SET fid = -fid");
    run_sql(dataset, "UPDATE things SET fid = -20000 * fid - 77777");
    return reopen(dataset, file_name());
}

TEST(unit_gdal_runs_our_sqlite)
{
    GDALDatasetH file = make_file("POINT (1 2)", wkbPoint, 1);
    ck_assert_ptr_nonnull(oj_sqlite_of_dataset(file));
    GDALClose(file);
    file = make_layer("Memory", "", 1, wkbPoint, NULL);
    ck_assert_ptr_null(oj_sqlite_of_dataset(file));
    GDALClose(file);
    remove_file();
}

/* Every shape, in a layer of its own type and in one of any type. Some rows
 * have no geometry. */
TEST_LOOP(property_every_shape_and_field, 0, 2 * N_SHAPES)
{
    const char *wkt = test_shapes[_i / 2];
    char *text = CPLStrdup(wkt), *at = text;
    OGRGeometryH geometry;
    OGRwkbGeometryType type = wkbUnknown;
    GDALDatasetH file;
    ck_assert_int_eq(OGR_G_CreateFromWkt(&at, NULL, &geometry), OGRERR_NONE);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    if (_i % 2)
        type = OGR_G_GetGeometryType(geometry);
    file = make_file(wkt, type, 60 + _i);
    for (int64_t batch = 1; batch <= 1000; batch *= 10)
        compare_lane_with_gdal(file, first_layer(file), batch,
                               strcmp(wkt, "POINT EMPTY") != 0 &&
                                   _i / 2 <= FIRST_CURVE);
    GDALClose(file);
    CPLPopErrorHandler();
    remove_file();
    OGR_G_DestroyGeometry(geometry);
    CPLFree(text);
}

/* Points are read without OGR geometries. One has coordinates that joins do not
 * accept. In the last layer there is a line; from it on GDAL reads the rows. */
TEST_LOOP(property_points_alone, 0, 6)
{
    static const char *const odd[] = {
        "X'47500001000000000101000000000000000000F07F000000000000F03F'",
        "X'475000010000000001010000000000000000002470000000000000F03F'",
        ("X'475000010000000001020000000100000000000000"
         "000000000000000000000000'")};
    GDALDatasetH file = make_file("POINT (1 2)", wkbPoint, 3000);
    struct oj_read_options options;
    char sql[200];
    GDALClose(file);
    file = open_file(GDAL_OF_UPDATE);
    CPLsnprintf(sql, sizeof sql,
                "UPDATE things SET geom = %s WHERE fid = (SELECT fid FROM "
                "things LIMIT 1 OFFSET 1234)",
                odd[_i / 2]);
    run_sql(file, sql);
    file = reopen(file, file_name());
    options = reading(first_layer(file), 1, 700);
    options.geopackage = file;
    options.n_threads = 1 + _i % 2 * 3;
    compare_arrays(first_layer(file), &options, _i < 4 ? "GeoPackage" : NULL);
    GDALClose(file);
    remove_file();
}

/* ---- tables of all kinds ------------------------------------------------- */

/* Makes a GeoPackage with this table and an empty table "things". sql are
 * statements, ending with NULL. */
static GDALDatasetH make_table(const char *table, const char *const *sql)
{
    char *text, *name = CPLEscapeString(table, -1, CPLES_SQL);
    GDALDatasetH dataset;
    remove_file();
    dataset = make_layer("GPKG", file_name(), 0, wkbPoint, NULL);
    for (int i = 0; sql[i] != NULL; i++)
        run_sql(dataset, sql[i]);
    text = CPLMalloc(500);
    CPLsnprintf(text, 500,
                "INSERT INTO gpkg_contents(table_name, data_type, identifier, "
                "srs_id) VALUES ('%s', 'features', '%s', 0)",
                name, name);
    run_sql(dataset, text);
    CPLsnprintf(text, 500,
                "INSERT INTO gpkg_geometry_columns VALUES ('%s', 'geom', "
                "'GEOMETRY', 0, 2, 2)",
                name);
    run_sql(dataset, text);
    CPLFree(text);
    CPLFree(name);
    return reopen(dataset, file_name());
}

#define FOUR_KINDS "a INTEGER, b DOUBLE, c TEXT, d MEDIUMINT"
/* Returns a statement that inserts n rows into t. fid is an expression for the
 * FID of row i. */
static const char *sql_of_rows(int n, const char *fid)
{
    static char sql[1000];
    CPLsnprintf(
        sql, sizeof sql,
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r "
        "WHERE i < %d) INSERT INTO t(fid, geom, a, b, c, d) SELECT %s, "
        "CASE WHEN i %% 5 > 0 THEN X'47500001000000000101000000000000"
        "000000F03F000000000000F03F' END, i * 99999999999, i / 7.0, "
        "'row ' || i, -i FROM r",
        n, fid);
    return sql;
}

static void compare_table(const char *table, const char *const *sql,
                          int expect_lane)
{
    GDALDatasetH file = make_table(table, sql);
    OGRLayerH layer = GDALDatasetGetLayerByName(file, table);
    ck_assert_ptr_nonnull(layer);
    for (int64_t batch = 7; batch <= 700; batch *= 100)
        compare_lane_with_gdal(file, layer, batch, expect_lane);
    GDALClose(file);
    remove_file();
}

static const struct
{
    const char *fid;
    int n;
    int64_t batch;
} numberings[] = {
    {"i", 70000, 700},
    {"i", 70000, 100000},
    {"i + (i > 3000) * 70000", 6000, 7},
    {"-i - (i > 3000) * 70000", 6000, 7},
    {"i * i * i * i", 2000, 7},
    {"CASE WHEN i < 2000 THEN i ELSE i * 1000003 END", 4000, 7},
    {"CASE WHEN i < 200 THEN i * 1000003 ELSE 4000000000 + i END", 9000, 7},
    {"CASE i WHEN 1 THEN -9223372036854775807 - 1 WHEN 2 THEN "
     "9223372036854775807 ELSE i END",
     50, 7},
    {"i * 100000", 1, 7},
    {"i * 100000", 0, 7}};

/* FIDs with gaps, negative FIDs, the minimum FID and the maximum FID. */
TEST_LOOP(property_numbers_of_rows, 0,
          (int)(sizeof numberings / sizeof *numberings))
{
    const char *sql[] = {
        "CREATE TABLE t(fid INTEGER PRIMARY KEY, geom BLOB, " FOUR_KINDS ")",
        sql_of_rows(numberings[_i].n, numberings[_i].fid), NULL};
    GDALDatasetH file;
    if (numberings[_i].n == 0)
        sql[1] = NULL;
    file = make_table("t", sql);
    compare_lane_with_gdal(file, GDALDatasetGetLayerByName(file, "t"),
                           numberings[_i].batch, 1);
    GDALClose(file);
    remove_file();
}

/* Asserts that the lane does not read the table. Rows are not compared: GDAL's
 * own ways differ if FIDs are not numbers. */
static void is_not_by_lane(const char *table, const char *const *sql)
{
    GDALDatasetH file = make_table(table, sql);
    struct row_text out;
    struct oj_read_counts counts;
    struct oj_error err;
    (void)read_layer(file, GDALDatasetGetLayerByName(file, table), 2, 10, &out,
                     &counts, &err);
    ck_assert(counts.lane == NULL || strcmp(counts.lane, "GeoPackage") != 0);
    oj_free(out.bytes);
    GDALClose(file);
    remove_file();
}

TEST(unit_what_is_no_plain_table)
{
    const char *view[] = {
        "CREATE TABLE t(fid INTEGER PRIMARY KEY, geom BLOB, " FOUR_KINDS ")",
        sql_of_rows(50, "i * 9999"),
        "CREATE VIEW v AS SELECT fid, geom, a FROM t WHERE a > 5", NULL};
    const char *text_key[] = {
        "CREATE TABLE t(fid TEXT PRIMARY KEY, geom BLOB, " FOUR_KINDS ")",
        sql_of_rows(50, "i"), NULL};
    const char *no_rowid[] = {"CREATE TABLE t(fid INTEGER PRIMARY KEY, geom "
                              "BLOB, " FOUR_KINDS ") WITHOUT ROWID",
                              sql_of_rows(50, "i"), NULL};
    const char *descending[] = {"CREATE TABLE t(fid INTEGER PRIMARY KEY DESC, "
                                "geom BLOB, " FOUR_KINDS ")",
                                sql_of_rows(50, "i"), NULL};
    CPLPushErrorHandler(CPLQuietErrorHandler);
    compare_table("v", view, 0);
    is_not_by_lane("t", text_key);
    is_not_by_lane("t", no_rowid);
    is_not_by_lane("t", descending);
    CPLPopErrorHandler();
}

/* Columns that were added after the first rows, long rows on overflow pages,
 * other page sizes, trees of several levels, and deleted rows. */
TEST_LOOP(property_pages, 0, 5)
{
    static const char *const sizes[] = {"512", "1024", "4096", "65536", "4096"};
    char page[60];
    const char *const sql[] = {
        page,
        "VACUUM",
        "CREATE TABLE t(fid INTEGER PRIMARY KEY, geom BLOB, " FOUR_KINDS ")",
        sql_of_rows(3000, "i * 3"),
        "UPDATE t SET c = substr(hex(zeroblob(3000)), 1, fid % 6000) || fid "
        "WHERE fid % 7 = 0",
        "UPDATE t SET c = hex(zeroblob(200000)) WHERE fid = 3000",
        "DELETE FROM t WHERE fid % 11 = 0 OR fid BETWEEN 4000 AND 5000",
        "ALTER TABLE t ADD COLUMN e TEXT",
        _i == 4 ? "ALTER TABLE t ADD COLUMN f INTEGER DEFAULT 7" : NULL,
        NULL};
    GByte head[18];
    GDALDatasetH file;
    VSILFILE *bytes;
    CPLsnprintf(page, sizeof page, "PRAGMA page_size = %s", sizes[_i]);
    file = make_table("t", sql);
    bytes = VSIFOpenL(file_name(), "rb");
    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq((int)VSIFReadL(head, 1, sizeof head, bytes), 18);
    VSIFCloseL(bytes);
    ck_assert_int_eq((head[16] << 8 | head[17]) % 65535,
                     atoi(sizes[_i]) % 65535);
    for (int64_t batch = 7; batch <= 700; batch *= 100)
        compare_lane_with_gdal(file, GDALDatasetGetLayerByName(file, "t"),
                               batch, _i < 4);
    GDALClose(file);
    remove_file();
}

TEST(unit_odd_names)
{
    static const char *const sql[] = {
        "CREATE TABLE \"a \"\"b\"\" 'c' \xC3\xBC;\"(\"m y\" INTEGER PRIMARY "
        "KEY, geom BLOB, \"select\" INTEGER, \"x\"\"y\" TEXT, \"?1\" DOUBLE, "
        "\"\xC3\xA9 \" TEXT)",
        "INSERT INTO \"a \"\"b\"\" 'c' \xC3\xBC;\" VALUES (1, NULL, 2, 'x', "
        "2.5, '\xC3\xA9'), (1000000, NULL, NULL, NULL, NULL, '')",
        NULL};
    compare_table("a \"b\" 'c' \xC3\xBC;", sql, 1);
}

/* The minimum and the maximum FID. In round 0 the row with the minimum has 1.5
 * in the integer column d, which the lane does not read; it is the first row,
 * so GDAL reads all. */
TEST_LOOP(unit_least_and_greatest_fid, 0, 2)
{
    const char *const sql[] = {
        "CREATE TABLE t(fid INTEGER PRIMARY KEY, geom BLOB, " FOUR_KINDS ")",
        sql_of_rows(100,
                    "CASE i WHEN 1 THEN -9223372036854775807 - 1 WHEN 2 THEN "
                    "9223372036854775807 ELSE i END"),
        _i == 0 ? "UPDATE t SET d = 1.5 WHERE fid = (SELECT min(fid) FROM t)"
                : NULL,
        NULL};
    CPLPushErrorHandler(CPLQuietErrorHandler);
    compare_table("t", sql, _i);
    CPLPopErrorHandler();
}

/* ---- values of other types than the column's ------------------------------
 */

static const struct
{
    const char *type, *value;
    int expect_lane;
} odd_values[] = {
    {"BOOLEAN", "1", 1},
    {"BOOLEAN", "7", 0},
    {"BOOLEAN", "'x'", 0},
    {"TINYINT", "300", 1},
    {"SMALLINT", "-40000", 0},
    {"SMALLINT", "'12x'", 0},
    {"MEDIUMINT", "3000000000", 1},
    {"MEDIUMINT", "1.75", 0},
    {"INTEGER", "1e300", 0},
    {"INTEGER", "'abc'", 0},
    {"INTEGER", "X'3132'", 0},
    {"INTEGER", "-1.5", 0},
    {"FLOAT", "0.1", 1},
    {"FLOAT", "1e300", 1},
    {"FLOAT", "'x'", 0},
    {"DOUBLE", "9007199254740993", 1},
    {"DOUBLE", "-9e999", 1},
    {"DOUBLE", "X'31'", 0},
    {"DOUBLE", "'1e3x'", 0},
    {"TEXT", "1.5", 1},
    {"TEXT", "X'61'", 0},
    {"TEXT", "'a' || char(0) || 'b'", 1},
    {"TEXT", "CAST(X'C328' AS TEXT)", 1},
    {"TEXT(3)", "'longer than three'", 1},
    {"BLOB", "'text'", 0},
    {"BLOB", "5", 0},
    {"BLOB", "X''", 1},
    {"BLOB(2)", "zeroblob(100000)", 1},
    {"DATE", "'2020-02-30'", 1},
    {"DATE", "'2020-1-2'", 0},
    {"DATE", "'2020/01/02'", 0},
    {"DATE", "'0000-00-00'", 0},
    {"DATE", "'2020-13-01'", 0},
    {"DATE", "'junk'", 0},
    {"DATE", "''", 0},
    {"DATE", "20200102", 0},
    {"DATE", "'2020-01-02T00:00:00Z'", 0},
    {"DATETIME", "'2020-02-30T23:59:59.999Z'", 1},
    {"DATETIME", "'0001-01-01T00:00:00.000Z'", 1},
    {"DATETIME", "'9999-12-31T00:00:58.123Z'", 1},
    {"DATETIME", "'2020-02-03T04:05:06Z'", 0},
    {"DATETIME", "'2020-02-03T04:05:06.7Z'", 0},
    {"DATETIME", "'2020-02-03T04:05:60.000Z'", 0},
    {"DATETIME", "'2020-02-03T04:05:06+01:00'", 0},
    {"DATETIME", "'2020-02-03 04:05:06.789Z'", 0},
    {"DATETIME", "'2020-02-03T24:61:61.000Z'", 0},
    {"DATETIME", "'2020-02-03'", 0},
    {"DATETIME", "12345678", 0},
};

/* One row in a hundred has the value. */
TEST_LOOP(property_odd_values, 0, (int)(sizeof odd_values / sizeof *odd_values))
{
    char table[200], value[200];
    const char *sql[] = {table,
                         "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i "
                         "+ 1 FROM r WHERE i < 100) INSERT INTO t(fid, c) "
                         "SELECT i * 7777, NULL FROM r",
                         value, NULL};
    CPLsnprintf(table, sizeof table,
                "CREATE TABLE t(fid INTEGER PRIMARY KEY, geom BLOB, c %s)",
                odd_values[_i].type);
    CPLsnprintf(value, sizeof value,
                "UPDATE t SET c = %s WHERE fid = 60 * 7777",
                odd_values[_i].value);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    compare_table("t", sql, odd_values[_i].expect_lane);
    CPLPopErrorHandler();
}

static const struct
{
    const char *blob;
    int is_read, expect_lane;
} odd_blobs[] = {
    /* the WKB is big-endian, although the header is not */
    {"X'4750000000000000003FF0000000000000'", 0, 0},
    {"X'475000010000000000000000013FF00000000000003FF0000000000000'", 1, 0},
    {"X'47500000000000000101000000000000000000F03F000000000000F03F'", 1, 1},
    /* an unknown version, an extended type, a reserved bit */
    {"X'47500101000000000101000000000000000000F03F000000000000F03F'", 0, 0},
    {"X'47500021000000000101000000000000000000F03F000000000000F03F'", 1, 0},
    {"X'47500041000000000101000000000000000000F03F000000000000F03F'", 1, 0},
    /* bytes after the point; an ordinate that is NaN */
    {"X'47500001000000000101000000000000000000F03F000000000000F03F0000'", 1, 0},
    {"X'47500001000000000101000000000000000000F87F000000000000F03F'", 1, 0},
    /* truncated, not a blob, a missing envelope */
    {"X'4750000100000000010100000000000000'", 0, 0},
    {"X''", 0, 0},
    {"'text'", 0, 0},
    {"5", 0, 0},
    {"X'4750000300000000'", 0, 0},
    {"X'4750000F000000000101000000000000000000F03F000000000000F03F'", 0, 0}};

TEST_LOOP(property_odd_geometries, 0,
          (int)(sizeof odd_blobs / sizeof *odd_blobs))
{
    char value[200];
    const char *sql[] = {
        "CREATE TABLE t(fid INTEGER PRIMARY KEY, geom BLOB, " FOUR_KINDS ")",
        sql_of_rows(100, "i * 7777"), value, NULL};
    struct oj_error err[N_WAYS];
    CPLsnprintf(value, sizeof value,
                "UPDATE t SET geom = %s WHERE fid = 60 * 7777",
                odd_blobs[_i].blob);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    if (odd_blobs[_i].is_read)
        compare_table("t", sql, odd_blobs[_i].expect_lane);
    else
    {
        GDALDatasetH file = make_table("t", sql);
        for (int way = 0; way < N_WAYS; way++)
        {
            struct oj_read_counts counts;
            struct row_text out;
            ck_assert_int_ne(read_layer(file,
                                        GDALDatasetGetLayerByName(file, "t"),
                                        way, 10, &out, &counts, &err[way]),
                             OJ_OK);
            ck_assert_str_eq(err[way].message, err[0].message);
            oj_free(out.bytes);
        }
        GDALClose(file);
        remove_file();
    }
    CPLPopErrorHandler();
}

/* ---- under a box ---------------------------------------------------------
 */

/* Reading with a box leaves no spatial filter on the layer: its feature count
 * is that of the file. */
TEST(unit_no_filter_stays_behind_a_read)
{
    GDALDatasetH file = make_file("POINT (1 2)", wkbPoint, 20);
    struct oj_read_options options;
    struct oj_layer_reader *reader;
    struct oj_batch batch = {0};
    OGRLayerH layer;
    GDALClose(file);
    file = open_file(GDAL_OF_UPDATE);
    run_sql(file, "UPDATE gpkg_ogr_contents SET feature_count = 99");
    GDALClose(file);
    file = open_file(0);
    layer = first_layer(file);
    OGR_L_SetSpatialFilterRect(layer, 0, 0, 10, 10);
    options = reading(layer, 0, 100);
    options.all_rows_filter = "1 = 1";
    ck_assert_int_eq(oj_layer_reader_open(layer, &options, &reader, NULL),
                     OJ_OK);
    ck_assert_int_eq(oj_layer_reader_next(reader, &batch, NULL), OJ_OK);
    ck_assert_int_eq(batch.n_rows, 18);
    oj_batch_free(&batch);
    oj_layer_reader_close(reader);
    OGR_L_SetSpatialFilter(layer, NULL);
    ck_assert_int_eq(OGR_L_GetFeatureCount(layer, 1), 99);
    GDALClose(file);
    remove_file();
}

/* ---- other connections --------------------------------------------------- */

TEST(unit_not_where_the_dataset_writes)
{
    GDALDatasetH file;
    GDALClose(make_file("POINT (1 2)", wkbPoint, 50));
    file = open_file(GDAL_OF_UPDATE);
    compare_lane_with_gdal(file, first_layer(file), 10, 0);
    GDALClose(file);
    remove_file();
}

/* All rows are of one state of the file, including those left to GDAL. Another
 * connection deletes most of them in the meantime, which WAL mode allows. If
 * the WAL is not empty, it has pages that the file lacks, and the lane does not
 * read the table. */
TEST_LOOP(unit_one_state_of_the_file, 0, 6)
{
    const int n_threads = _i % 2 ? 4 : 1, is_left = _i / 2 == 1,
              has_log = _i / 2 == 2;
    static const char *const sql[] = {
        "CREATE TABLE t(fid INTEGER PRIMARY KEY, geom BLOB, c DATE)",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE "
        "i < 20000) INSERT INTO t(fid) SELECT i * 77 FROM r",
        NULL};
    GDALDatasetH file = make_table("t", sql),
                 writer = open_file(GDAL_OF_UPDATE);
    OGRLayerH layer;
    struct oj_read_options options;
    struct oj_layer_reader *reader;
    struct oj_batch batch = {0};
    struct oj_error err;
    const char *lane;
    int64_t n = 0;
    GDALClose(file);
    run_sql(writer, "PRAGMA journal_mode = WAL");
    if (is_left)
        run_sql(writer, "UPDATE t SET c = '2020/01/02' WHERE fid = 10000 * 77");
    run_sql(writer, "PRAGMA wal_checkpoint(TRUNCATE)");
    if (has_log)
        run_sql(writer, "UPDATE t SET c = '2020-01-02' WHERE fid = 10000 * 77");
    file = open_file(GDAL_OF_READONLY);
    layer = GDALDatasetGetLayerByName(file, "t");
    options = reading(layer, 1, 100);
    options.geopackage = file;
    options.n_threads = n_threads;
    ck_assert_int_eq(oj_layer_reader_open(layer, &options, &reader, &err),
                     OJ_OK);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    for (;;)
    {
        ck_assert_int_eq(oj_layer_reader_next(reader, &batch, &err), OJ_OK);
        if (batch.n_rows == 0)
            break;
        for (int64_t i = 0; i < batch.n_rows; i++)
            ck_assert_int_eq(batch.flat.fid[i], 77 * (n + i + 1));
        if (n == 0)
            run_sql(writer, "DELETE FROM t WHERE fid % 2 = 1 OR fid > 7777");
        n += batch.n_rows;
    }
    CPLPopErrorHandler();
    ck_assert_int_eq(n, 20000);
    lane = oj_layer_reader_counts(reader)->lane;
    ck_assert(lane == NULL || !is_left);
    ck_assert_int_eq(lane != NULL && strcmp(lane, "GeoPackage") == 0,
                     !is_left && !has_log);
    oj_batch_free(&batch);
    oj_layer_reader_close(reader);
    GDALClose(file);
    GDALClose(writer);
    remove_file();
}

/* ---- bytes that are not trusted ------------------------------------------ */

/* Reads the current bytes in all ways. None may read a file that SQLite calls
 * malformed. Adds 1 to *n_read if GDAL reads the file, and to *n_more if only
 * GDAL does. */
static void compare_bytes(int *n_read, int *n_more)
{
    GDALDatasetH file =
        GDALOpenEx(file_name(), GDAL_OF_VECTOR, NULL, NULL, NULL);
    OGRLayerH layer =
        file != NULL ? GDALDatasetGetLayerByName(file, "things") : NULL;
    struct row_text out[N_WAYS];
    struct oj_read_counts counts;
    struct oj_error err;
    oj_status status[N_WAYS];
    if (layer == NULL ||
        OGR_FD_GetFieldCount(OGR_L_GetLayerDefn(layer)) > N_GPKG_FIELDS)
    {
        GDALClose(file);
        return;
    }
    for (int way = 0; way < N_WAYS; way++)
        status[way] = read_layer(file, layer, way, 7, &out[way], &counts, &err);
    for (int way = 1; way < N_WAYS; way++)
    {
        ck_assert_msg(status[0] == OJ_OK || status[way] != OJ_OK,
                      "%d rows of a file that GDAL refuses: %s",
                      (int)counts.n_rows, err.message);
        if (status[way] == OJ_OK)
            same_text(&out[0], &out[way]);
        *n_more += status[0] == OJ_OK && status[way] != OJ_OK;
    }
    *n_read += status[0] == OJ_OK;
    for (int way = 0; way < N_WAYS; way++)
        oj_free(out[way].bytes);
    GDALClose(file);
}

static void write_bytes(const GByte *bytes, size_t n)
{
    VSILFILE *file = VSIFOpenL(file_name(), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq((int64_t)VSIFWriteL(bytes, 1, n, file), (int64_t)n);
    VSIFCloseL(file);
}

/* Returns the root page of a table, and the page size in bytes. */
static int64_t root_page(const char *table, int *page_bytes)
{
    GDALDatasetH file = open_file(GDAL_OF_READONLY);
    const char *sql =
        CPLSPrintf("SELECT rootpage, page_size FROM sqlite_master, "
                   "pragma_page_size WHERE name = '%s'",
                   table);
    OGRLayerH result = GDALDatasetExecuteSQL(file, sql, NULL, NULL);
    OGRFeatureH row = OGR_L_GetNextFeature(result);
    int64_t root = OGR_F_GetFieldAsInteger64(row, 0);
    *page_bytes = OGR_F_GetFieldAsInteger(row, 1);
    OGR_F_Destroy(row);
    GDALDatasetReleaseResultSet(file, result);
    GDALClose(file);
    return root;
}

/* Damages one page of a table's B-tree: the root (_i 0), its last leaf (_i 1)
 * or its first leaf (_i 2). Each of the first 20 bytes of the page and of its
 * first cell takes values that truncate, repeat or point outside. */
TEST_LOOP(property_broken_tree, 0, 3)
{
    static const GByte values[] = {0, 1, 2, 5, 10, 13, 0x7F, 0x80, 0xFF};
    vsi_l_offset n;
    GByte *whole, *page;
    int n_read = 0, n_more = 0, page_bytes;
    int64_t at;
    GDALClose(make_file("MULTIPOINT (5 6,7 8)", wkbUnknown, 150));
    at = root_page("things", &page_bytes);
    ck_assert(VSIIngestFile(NULL, file_name(), &whole, &n, -1));
    page = whole + (at - 1) * page_bytes;
    ck_assert_int_eq(page[0], 5);
    /* a leaf: the last child of the root, or the child in the root's first
     * cell */
    if (_i > 0)
    {
        const GByte *child =
            _i == 1 ? page + 8 : page + (page[12] << 8) + page[13];
        page = whole + ((child[2] << 8 | child[3]) - 1) * page_bytes;
        ck_assert_int_eq(page[0], 13);
    }
    CPLPushErrorHandler(CPLQuietErrorHandler);
    for (int i = 0; i < 40; i++)
    {
        int cell = page[12] << 8 | page[13];
        GByte *byte = i < 20 ? page + i : page + cell + i - 20, own = *byte;
        for (size_t k = 0; k <= sizeof values; k++)
        {
            *byte = k < sizeof values ? values[k] : (GByte)(own + 1);
            write_bytes(whole, (size_t)n);
            compare_bytes(&n_read, &n_more);
        }
        *byte = own;
    }
    CPLPopErrorHandler();
    printf("%d of 400 files were read, %d not by the lane\n", n_read, n_more);
    ck_assert_int_gt(n_read, 0);
    CPLFree(whole);
    remove_file();
}

/* SQLite cannot store NaN, but a file may contain it. NaN is read as NULL. */
TEST(unit_nan_cells_are_null)
{
    static const char *const sql[] = {
        "CREATE TABLE t(fid INTEGER PRIMARY KEY, geom BLOB, r DOUBLE)",
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE "
        "i < 300) INSERT INTO t(fid, r) SELECT i, 1234.5678 + i % 3 FROM r",
        NULL};
    static const GByte number[8] = {0x40, 0x93, 0x4A, 0x45,
                                    0x6D, 0x5C, 0xFA, 0xAD},
                       nan[2][2] = {{0x7F, 0xF8}, {0xFF, 0xF0}};
    vsi_l_offset n;
    GByte *bytes;
    int n_changed = 0;
    struct row_text text;
    struct oj_read_counts counts;
    struct oj_error err;
    GDALDatasetH file = make_table("t", sql);
    GDALClose(file);
    ck_assert(VSIIngestFile(NULL, file_name(), &bytes, &n, -1));
    for (vsi_l_offset i = 0; i + 8 <= n; i++)
        if (memcmp(bytes + i, number, 8) == 0)
            memcpy(bytes + i, nan[n_changed++ % 2], 2);
    write_bytes(bytes, (size_t)n);
    CPLFree(bytes);
    ck_assert_int_eq(n_changed, 100);
    file = open_file(GDAL_OF_READONLY);
    compare_lane_with_gdal(file, GDALDatasetGetLayerByName(file, "t"), 70, 1);
    ck_assert_int_eq(read_layer(file, GDALDatasetGetLayerByName(file, "t"), 1,
                                70, &text, &counts, &err),
                     OJ_OK);
    text.bytes[text.n - 1] = '\0';
    ck_assert_ptr_null(strstr(text.bytes, "nan"));
    oj_free(text.bytes);
    GDALClose(file);
    remove_file();
}

/* Returns a random byte of the file. Mostly it is in a page of the table: in
 * the page's header, in a cell pointer, or in a cell. The pages of other tables
 * come first, so only the second half of the file is searched for such a
 * page. */
static GByte *pick_byte(GByte *bytes, size_t n, size_t page_bytes)
{
    GByte *page = bytes;
    int head, at;
    for (int i = 0; i < 20 && page[0] != 5 && page[0] != 13; i++)
        page = bytes +
               (n / 2 + (size_t)pick((int)(n / 2))) / page_bytes * page_bytes;
    if (one_in(6) || page == bytes)
        return bytes + pick((int)n);
    head = page[0] == 5 ? 12 : 8;
    at = head + 2 * pick(page[4] + 1);
    switch (pick(4))
    {
        case 0:
            return page + pick(head);
        case 1:
            return page + at;
        default:
            at = page[at] << 8 | page[at + 1];
            at += one_in(2) ? pick(20) : pick(300);
            return page + (size_t)at % page_bytes;
    }
}

/* For every shape, 12 files with one to four changed bytes, or truncated.
 * OGRJOIN_TEST_ROUNDS=400 makes more. */
TEST_LOOP(property_broken_bytes, 0, N_SHAPES)
{
    static const GByte values[] = {0, 1, 5, 7, 13, 0x7F, 0x80, 0xFF};
    vsi_l_offset n;
    GByte *whole, *copy;
    int n_read = 0, n_more = 0;
    int64_t n_files = rounds(12);
    random_state = first_seed() + (uint64_t)_i;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    GDALClose(make_file(test_shapes[_i], wkbUnknown, 150));
    ck_assert(VSIIngestFile(NULL, file_name(), &whole, &n, -1));
    copy = malloc((size_t)n);
    ck_assert_ptr_nonnull(copy);
    for (int64_t i = 0; i < n_files; i++)
    {
        memcpy(copy, whole, (size_t)n);
        for (int k = one_in(2) ? 1 : 4; k > 0; k--)
        {
            GByte *byte = pick_byte(copy, (size_t)n,
                                    (size_t)(whole[16] << 8 | whole[17]));
            *byte =
                one_in(2) ? values[pick(8)] : (GByte)(*byte ^ 1u << pick(8));
        }
        write_bytes(copy, one_in(20) ? (size_t)pick((int)n) + 1 : (size_t)n);
        compare_bytes(&n_read, &n_more);
    }
    CPLPopErrorHandler();
    printf(
        "%d of %lld files, %lld bytes in all, were read, %d not by the lane\n",
        n_read, (long long)n_files, (long long)(n_files * (int64_t)n), n_more);
    ck_assert_int_ge(n_read, n_files / 10);
    free(copy);
    CPLFree(whole);
    remove_file();
}

/* ---- memory -------------------------------------------------------------- */

TEST(memory_every_allocation_of_two_threads_can_fail)
{
    GDALDatasetH file = make_file("MULTIPOINT (5 6,7 8)", wkbMultiPoint, 50);
    struct oj_read_options options = reading(first_layer(file), 1, 20);
    oj_status status = OJ_ERR_NOMEM;
    options.geopackage = file;
    options.n_threads = 2;
    for (int64_t n = 1; status != OJ_OK; n++)
    {
        struct oj_layer_reader *reader = NULL;
        struct oj_batch batch = {0};
        struct oj_error err;
        int64_t n_rows = 0;
        oj_alloc_fail_at(n);
        status =
            oj_layer_reader_open(first_layer(file), &options, &reader, &err);
        while (status == OJ_OK)
        {
            status = oj_layer_reader_next(reader, &batch, &err);
            n_rows += batch.n_rows;
            if (batch.n_rows == 0)
                break;
        }
        oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK ? n_rows == 50 : status == OJ_ERR_NOMEM);
        oj_batch_free(&batch);
        oj_layer_reader_close(reader);
    }
    GDALClose(file);
    remove_file();
}

int main(void)
{
    tests_open("geopackage");
    GDALAllRegister();
    return tests_run();
}
