/* The lane and SQLite read GeoPackage tables with damaged pages. The rows of
 * the lane equal the first rows of SQLite, value by value. If the lane reaches
 * the end, they are all rows; if SQLite calls the file malformed, the lane must
 * not reach the end. With clang: -fsanitize=fuzzer,address,undefined; the input
 * replaces the end of the file. With OJ_FUZZ_MAIN, fuzz_geopackage [ITERATIONS]
 * mutates pages of several sizes, trees of several levels and long rows, from a
 * fixed seed. */
#include "../../flatten/geopackage/oj_gdal_sqlite.h"
#include "../../flatten/geopackage/oj_geopackage_read.h"
#include "../../flatten/read/oj_attribute_table.h"
#include "fuzz_bytes.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WHOLE "/vsimem/fuzz_geopackage_whole.gpkg"
#define SPOILED "/vsimem/fuzz_geopackage.gpkg"

enum
{
    N_FIELDS = 9,
    N_KINDS = 24,
    HEAD_BYTES = 100 /* bytes of the file's header */
};

#define FORMATS "lgUiZFFiU"

/* Numbers of files that the lane has read completely, has left to GDAL at some
 * row, or has called malformed; and the number of files that SQLite has called
 * malformed. */
static int64_t n_whole, n_left, n_malformed, n_refused;

/* ---- files ----------------------------------------------------------------
 */

static void run_sql(GDALDatasetH dataset, const char *sql)
{
    OGRLayerH result;
    CPLErrorReset();
    result = GDALDatasetExecuteSQL(dataset, sql, NULL, NULL);
    require(CPLGetLastErrorType() != CE_Failure, sql);
    GDALDatasetReleaseResultSet(dataset, result);
}

/* Returns SQL that makes the rows of a kind of file. Every n-th row has n_text
 * more bytes of text. The last column is added later, and only every k-th row
 * has it. */
static const char *rows_of_kind(int kind)
{
    static const int n_rows[] = {3, 60, 400}, n_text[] = {20, 900, 30000};
    return CPLSPrintf(
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE "
        "i < %d) INSERT INTO t(fid, geom, a, b, c, d, e, f, g, h) SELECT "
        "i * i * 3 - 900, CASE i %% 4 WHEN 0 THEN NULL WHEN 1 THEN "
        "X'47500001000000000101000000000000000000F03F000000000000F03F' ELSE "
        "X'47500001000000000102000000020000000000000000000000000000000000000000"
        "0000000000F03F000000000000F03F' END, i * i * i * 99, i / 7.0, "
        "CASE WHEN i %% 9 = 0 THEN hex(zeroblob(%d + i)) ELSE 'row ' || i END, "
        "CASE WHEN i %% 5 > 0 THEN -i END, zeroblob(i %% 40), '2024-02-03', "
        "'2024-02-03T04:05:06.789Z', i %% 2 FROM r",
        kind & 32 ? 6000 : n_rows[kind / 3 % 3],
        n_text[kind & 32 ? 0 : kind % 3]);
}

static int count_pages(GDALDatasetH dataset)
{
    OGRLayerH result =
        GDALDatasetExecuteSQL(dataset, "PRAGMA page_count", NULL, NULL);
    OGRFeatureH row = OGR_L_GetNextFeature(result);
    int n = OGR_F_GetFieldAsInteger(row, 0);
    OGR_F_Destroy(row);
    GDALDatasetReleaseResultSet(dataset, result);
    return n;
}

/* Makes a file. kind chooses the rows and the size of pages. Returns the number
 * of pages before those of the table. */
static int make_file(int kind)
{
    int n_before;
    static const char *const page_sizes[] = {"512", "4096", "1024"};
    GDALDatasetH dataset = GDALCreate(GDALGetDriverByName("GPKG"), WHOLE, 0, 0,
                                      0, GDT_Unknown, NULL);
    require(dataset != NULL, "no dataset");
    /* without a layer GDAL makes no features table */
    require(GDALDatasetCreateLayer(dataset, "other", NULL, wkbPoint, NULL) !=
                NULL,
            "no layer");
    run_sql(dataset, CPLSPrintf("PRAGMA page_size = %s",
                                page_sizes[kind & 32 ? 0 : kind / 9 % 3]));
    run_sql(dataset, "VACUUM");
    n_before = count_pages(dataset);
    run_sql(dataset,
            "CREATE TABLE t(fid INTEGER PRIMARY KEY, geom BLOB, a INTEGER, b "
            "DOUBLE, c TEXT, d MEDIUMINT, e BLOB, f DATE, g DATETIME, h "
            "BOOLEAN)");
    run_sql(dataset, rows_of_kind(kind));
    run_sql(dataset, "ALTER TABLE t ADD COLUMN j TEXT");
    run_sql(dataset, "UPDATE t SET j = 'later' || fid WHERE fid % 2 = 0");
    run_sql(dataset, "DELETE FROM t WHERE fid % 13 = 5");
    run_sql(dataset, "INSERT INTO gpkg_contents(table_name, data_type, "
                     "identifier, srs_id) VALUES ('t', 'features', 't', 0)");
    run_sql(dataset, "INSERT INTO gpkg_geometry_columns VALUES ('t', 'geom', "
                     "'GEOMETRY', 0, 2, 2)");
    GDALClose(dataset);
    return n_before;
}

/* ---- rows of SQLite's -----------------------------------------------------
 */

static void compare_text(const struct oj_value *value, sqlite3_stmt *row, int c)
{
    int64_t n;
    const uint8_t *bytes = oj_value_bytes(value, OFTString, &n);
    const char *text = (const char *)sqlite3_column_text(row, c);
    require(sqlite3_column_type(row, c) == SQLITE_TEXT &&
                n == (int64_t)strlen(text) &&
                memcmp(bytes, text, (size_t)n) == 0,
            "another text");
}

static void compare_blob(const struct oj_value *value, sqlite3_stmt *row, int c)
{
    int64_t n;
    const uint8_t *bytes = oj_value_bytes(value, OFTBinary, &n);
    const void *blob = sqlite3_column_blob(row, c);
    require(sqlite3_column_type(row, c) == SQLITE_BLOB &&
                n == sqlite3_column_bytes(row, c) &&
                (n == 0 || memcmp(bytes, blob, (size_t)n) == 0),
            "another blob");
}

static void compare_date(const OGRField *field, sqlite3_stmt *row, int c)
{
    OGRField own;
    memset(&own, 0, sizeof own);
    require(
        sqlite3_column_type(row, c) == SQLITE_TEXT &&
            OGRParseDate((const char *)sqlite3_column_text(row, c), &own, 0) &&
            own.Date.Year == field->Date.Year &&
            own.Date.Month == field->Date.Month &&
            own.Date.Day == field->Date.Day &&
            own.Date.Hour == field->Date.Hour &&
            own.Date.Minute == field->Date.Minute &&
            own.Date.Second >= field->Date.Second &&
            own.Date.Second <= field->Date.Second,
        "another date");
}

static void compare_number(const struct oj_column_view *column, int64_t i,
                           sqlite3_stmt *row, int c)
{
    double own, real = sqlite3_column_double(row, c);
    int64_t whole = sqlite3_column_int64(row, c);
    int type = sqlite3_column_type(row, c);
    if (column->format == 'g')
    {
        memcpy(&own, (const double *)column->values + i, sizeof own);
        require((type == SQLITE_FLOAT || type == SQLITE_INTEGER) &&
                    memcmp(&own, &real, sizeof own) == 0,
                "another real number");
        return;
    }
    require(type == SQLITE_INTEGER, "a number that is none");
    require(column->format == 'l'
                ? ((const int64_t *)column->values)[i] == whole
                : ((const int32_t *)column->values)[i] == (int32_t)whole,
            "another number");
}

static void compare_value(const struct oj_column_view *column, int64_t i,
                          sqlite3_stmt *row, int c)
{
    struct oj_value value;
    if (!oj_column_has_value(column, i))
    {
        require(sqlite3_column_type(row, c) == SQLITE_NULL, "no value");
        return;
    }
    require(column->first == 0, "a column of a chunk that begins later");
    oj_column_value(column, i, &value);
    if (column->format == 'U')
        compare_text(&value, row, c);
    else if (column->format == 'Z')
        compare_blob(&value, row, c);
    else if (column->format == 'F')
        compare_date((const OGRField *)column->values + i, row, c);
    else
        compare_number(column, i, row, c);
}

/* Compares the WKB after the header of a blob. The blob of a point may have
 * more bytes than its WKB. */
static void compare_geometry(const struct oj_slice *slice, int64_t i,
                             sqlite3_stmt *row)
{
    size_t n = 0;
    const uint8_t *wkb = oj_slice_wkb(slice, i, &n);
    const uint8_t *blob = sqlite3_column_blob(row, 1);
    int n_blob = sqlite3_column_bytes(row, 1);
    require((wkb == NULL) == (sqlite3_column_type(row, 1) == SQLITE_NULL),
            "no geometry");
    if (wkb != NULL)
        require(n_blob > 8 && (size_t)n_blob >= n + 8 &&
                    sqlite3_column_type(row, 1) == SQLITE_BLOB &&
                    (memcmp(blob + n_blob - n, wkb, n) == 0 ||
                     memcmp(blob + 8, wkb, n) == 0),
                "another geometry");
}

static void compare_rows(const struct oj_slice *slice, sqlite3_stmt *row)
{
    const struct oj_column_view *column = slice->chunk->column;
    const int64_t *fid = column[OJ_CHUNK_FID].values;
    for (int64_t i = 0; i < slice->n_rows; i++)
    {
        require(sqlite3_step(row) == SQLITE_ROW, "a row that SQLite has not");
        require(fid[i] == sqlite3_column_int64(row, 0), "another FID");
        compare_geometry(slice, i, row);
        for (int c = 0; c < N_FIELDS; c++)
            compare_value(&column[OJ_CHUNK_FIELDS + c], i, row, c + 2);
    }
}

/* ---- one file -------------------------------------------------------------
 */

/* Returns 1 if the layer has all columns. A damaged schema may give it
 * others. */
static int has_all_columns(OGRLayerH layer)
{
    static const char names[] = "abcdefghj";
    OGRFeatureDefnH defn = OGR_L_GetLayerDefn(layer);
    int has = OGR_FD_GetFieldCount(defn) == N_FIELDS &&
              strcmp(OGR_L_GetFIDColumn(layer), "fid") == 0 &&
              strcmp(OGR_L_GetGeometryColumn(layer), "geom") == 0;
    for (int c = 0; has && c < N_FIELDS; c++)
    {
        const char *name = OGR_Fld_GetNameRef(OGR_FD_GetFieldDefn(defn, c));
        has = name[0] == names[c] && name[1] == '\0';
    }
    return has;
}

static oj_status read_by_lane(void *reader, sqlite3_stmt *row)
{
    oj_status status;
    for (;;)
    {
        struct oj_slice slice = {0};
        struct oj_error err;
        const char *text = NULL;
        status = oj_geopackage_lane.next(reader, &slice.chunk, &text, &err);
        require(status != OJ_ERR_IO || text != NULL, "an error without a text");
        if (status != OJ_OK || slice.chunk == NULL)
            return status;
        slice.n_rows = slice.chunk->n_rows;
        require(slice.n_rows > 0 && slice.n_rows <= 50, "an odd chunk");
        compare_rows(&slice, row);
        oj_slice_free(&slice);
    }
}

/* Returns 1 if SQLite calls the file malformed after the rows of the lane. */
static int does_sqlite_refuse(sqlite3_stmt *row)
{
    int code;
    do
    {
        code = sqlite3_step(row);
        for (int c = 0; code == SQLITE_ROW && c < N_FIELDS + 2; c++)
            (void)sqlite3_column_type(row, c);
    } while (code == SQLITE_ROW);
    return code != SQLITE_DONE;
}

static void read_layer(GDALDatasetH dataset, OGRLayerH layer, int n_threads)
{
    static const int fields[N_FIELDS] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    const struct oj_lane_request request = {.dataset = dataset,
                                            .layer = layer,
                                            .fields = fields,
                                            .formats = FORMATS,
                                            .n_fields = N_FIELDS,
                                            .batch_rows = 50,
                                            .n_threads = n_threads};
    sqlite3 *db = oj_sqlite_of_dataset(dataset);
    sqlite3_stmt *row = NULL;
    void *reader = NULL;
    struct oj_error err;
    oj_status status;
    require(db != NULL, "no connection");
    if (sqlite3_prepare_v2(db,
                           "SELECT fid, geom, a, b, c, d, e, f, g, h, j FROM t",
                           -1, &row, NULL) != SQLITE_OK)
        return;
    status = oj_geopackage_lane.open(&request, &reader, &err);
    require(status == OJ_OK || status == OJ_ERR_UNSUPPORTED, "opening failed");
    if (status == OJ_OK)
        status = read_by_lane(reader, row);
    oj_geopackage_lane.close(reader);
    if (does_sqlite_refuse(row))
    {
        require(status != OJ_OK, "rows of a file that SQLite refuses");
        n_refused++;
    }
    else if (status == OJ_OK)
        require(sqlite3_reset(row) == SQLITE_OK, "SQLite has more rows");
    n_whole += status == OJ_OK;
    n_left += status == OJ_ERR_UNSUPPORTED;
    n_malformed += status == OJ_ERR_IO;
    sqlite3_finalize(row);
}

static void read_bytes(const GByte *bytes, size_t n, int n_threads)
{
    GByte *copy = CPLMalloc(n + 1);
    GDALDatasetH dataset;
    OGRLayerH layer = NULL;
    memcpy(copy, bytes, n);
    VSIFCloseL(VSIFileFromMemBuffer(SPOILED, copy, (vsi_l_offset)n, TRUE));
    dataset = GDALOpenEx(SPOILED, GDAL_OF_VECTOR, NULL, NULL, NULL);
    if (dataset != NULL &&
        strcmp(GDALGetDescription(GDALGetDatasetDriver(dataset)), "GPKG") == 0)
        layer = GDALDatasetGetLayerByName(dataset, "t");
    if (layer != NULL && has_all_columns(layer))
        read_layer(dataset, layer, n_threads);
    GDALClose(dataset);
    VSIUnlink(SPOILED);
}

/* The first byte of data chooses the kind of file; the others replace the last
 * bytes of the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    vsi_l_offset n = 0;
    GByte *bytes, *whole;
    size_t n_new;
    if (size == 0)
        return 0;
    if (GDALGetDriverCount() == 0)
    {
        GDALAllRegister();
        CPLPushErrorHandler(CPLQuietErrorHandler);
    }
    (void)make_file(data[0] % N_KINDS);
    whole = VSIGetMemFileBuffer(WHOLE, &n, FALSE);
    bytes = CPLMalloc((size_t)n);
    memcpy(bytes, whole, (size_t)n);
    n_new = size - 1 < n - HEAD_BYTES ? size - 1 : (size_t)n - HEAD_BYTES;
    memcpy(bytes + n - n_new, data + 1, n_new);
    read_bytes(bytes, (size_t)n, 1);
    CPLFree(bytes);
    VSIUnlink(WHOLE);
    return 0;
}

#ifdef OJ_FUZZ_MAIN

struct pages
{
    GByte *bytes;
    size_t n, size; /* bytes of the file; bytes of a page */
    int n_before;   /* number of pages before those of the table */
};

static GByte *page_of(const struct pages *of, int number)
{
    return of->bytes + (size_t)(number - 1) * of->size;
}

/* Returns a page, mostly one of the table that is not an overflow page. */
static GByte *pick_page(const struct pages *of)
{
    int n = (int)(of->n / of->size), before = one_in(20) ? 1 : of->n_before;
    GByte *page = NULL;
    for (int i = 0; i < 8; i++)
    {
        page = page_of(of, before + 1 + pick(n - before));
        if (page[0] == 5 || page[0] == 13)
            break;
    }
    return page;
}

/* Returns the start of a cell that has some bytes after it in its page. */
static GByte *pick_cell(const struct pages *of, GByte *page)
{
    int head = page[0] == 5 ? 12 : 8, n = page[3] << 8 | page[4], at;
    if (n <= 0 || (size_t)(head + 2 * n) > of->size)
        return page;
    at = head + 2 * pick(n);
    at = page[at] << 8 | page[at + 1];
    return (size_t)at + 40 < of->size ? page + at : page;
}

static void spoil_byte(GByte *at)
{
    static const GByte values[] = {0, 1, 2, 5, 7, 10, 13, 0x7F, 0x80, 0xFF};
    switch (pick(4))
    {
        case 0:
            *at = values[pick(10)];
            break;
        case 1:
            *at = (GByte)(*at + 1 - 2 * pick(2));
            break;
        case 2:
            *at = (GByte)pick(256);
            break;
        default:
            *at ^= (GByte)(1u << pick(8));
            break;
    }
}

/* Writes a page number, mostly that of a page that exists. */
static void put_page_number(const struct pages *of, GByte *at)
{
    int n = (int)(of->n / of->size), number = pick(n + 2);
    at[0] = at[1] = 0;
    at[2] = (GByte)(number >> 8);
    at[3] = (GByte)number;
}

static void spoil_page(const struct pages *of)
{
    GByte *page = pick_page(of), *cell = pick_cell(of, page), *other;
    switch (pick(9))
    {
        case 0:
        case 1:
            spoil_byte(page + pick(12));
            break;
        case 2:
            spoil_byte(page + 8 + pick(40));
            break;
        case 3:
        case 4:
        case 5:
            spoil_byte(cell + pick(32));
            break;
        case 6:
            put_page_number(of, pick(2) ? page + 8 : cell);
            break;
        case 7:
            other = pick_cell(of, page);
            memmove(cell, other, (size_t)pick(32));
            break;
        default:
            other = pick_page(of);
            if (one_in(3))
                memmove(page, other, of->size);
            else
                spoil_byte(other + pick((int)of->size));
            break;
    }
}

static void spoil(struct pages *of)
{
    for (int m = 1 + pick(3); m > 0; m--)
        spoil_page(of);
    if (one_in(20))
        of->n -= (size_t)pick((int)(of->n / 4));
    if (one_in(20))
        spoil_byte(of->bytes + pick(HEAD_BYTES));
}

static long n_files_left;
static double n_bytes_seen;

static void read_kind(int kind, long n)
{
    vsi_l_offset size = 0;
    const GByte *whole;
    int n_before = make_file(kind);
    whole = VSIGetMemFileBuffer(WHOLE, &size, FALSE);
    for (; n > 0 && n_files_left > 0; n--, n_files_left--)
    {
        struct pages of = {CPLMalloc((size_t)size), (size_t)size,
                           (size_t)(whole[16] << 8 | whole[17]), n_before};
        memcpy(of.bytes, whole, (size_t)size);
        if (n > 1) /* the last file of each kind is undamaged */
            spoil(&of);
        n_bytes_seen += (double)of.n;
        read_bytes(of.bytes, of.n, kind & 32 ? 3 : 1);
        CPLFree(of.bytes);
    }
    VSIUnlink(WHOLE);
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 1500;
    n_files_left = n;
    GDALAllRegister();
    CPLPushErrorHandler(CPLQuietErrorHandler);
    for (long round = 0; n_files_left > 0; round++)
    {
        int kind = round % 16 == 15 ? 32 : (int)(round % N_KINDS);
        random_state = (uint64_t)round;
        read_kind(kind, kind & 32 ? 6 : 60);
    }
    CPLPopErrorHandler();
    printf("fuzz_geopackage: %ld files, %.0f bytes; %lld read, %lld left to "
           "GDAL, %lld malformed; %lld refused by SQLite\n",
           n, n_bytes_seen, (long long)n_whole, (long long)n_left,
           (long long)n_malformed, (long long)n_refused);
    require(n_whole > n / 8 && n_left > n / 50 && n_malformed > n / 50,
            "no files of some kind");
    return 0;
}

#endif
