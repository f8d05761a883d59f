/* The lane of FlatGeobuf, which reads and writes such files without GDAL's
 * features.
 * Kinds: unit, property (compared with GDAL's reading of the file), memory. */
#include "../layer_copy.h"
#include "../random_numbers.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/flatgeobuf/oj_flatgeobuf_sort.h"
#include "../../../flatten/read/oj_attribute_table.h"

#include <stdlib.h>
#include <unistd.h>

#define FILE_NAME "/vsimem/test_flatgeobuf.fgb"

enum
{
    N_FGB_FIELDS = 11 /* number of test fields that the driver supports */
};

static const char *const index_options[][2] = {{"SPATIAL_INDEX=NO", NULL},
                                               {"SPATIAL_INDEX=YES", NULL}};

/* Makes a file with n rows of a shape. */
static GDALDatasetH make_file(const char *wkt, OGRwkbGeometryType type,
                              int has_index, int n)
{
    GDALDatasetH dataset = make_layer("FlatGeobuf", FILE_NAME, N_FGB_FIELDS,
                                      type, index_options[has_index]);
    OGRLayerH layer = first_layer(dataset);
    for (int i = 0; i < n; i++)
        add_row(layer, i, wkt);
    return reopen(dataset, FILE_NAME);
}

static int n_read_threads = 1;

/* Reads rows by the lane, or by OGR features. Sets *by_lane to 1 if the lane
 * has read all of them. Returns a status. */
static oj_status read_rows(OGRLayerH layer, int use_lane, int64_t batch_rows,
                           GDALDatasetH *out, int *by_lane,
                           struct oj_error *err)
{
    struct oj_read_options options = reading(layer, use_lane, batch_rows);
    struct oj_read_counts counts;
    oj_status status;
    options.file = FILE_NAME;
    options.n_threads = n_read_threads;
    *out = make_layer("Memory", "", N_FGB_FIELDS, wkbUnknown, NULL);
    status = copy_layer(layer, first_layer(*out), &options, &counts, err);
    *by_lane = counts.lane != NULL && strcmp(counts.lane, "FlatGeobuf") == 0;
    return status;
}

/* Asserts that both ways read equal rows. expect_lane is 1 if the lane must
 * read the layer, 0 if it must not. */
static void compare_lane_with_gdal(OGRLayerH layer, int64_t batch_rows,
                                   int expect_lane)
{
    GDALDatasetH out[2];
    int by_lane;
    struct oj_error err;
    for (int lane = 0; lane < 2; lane++)
    {
        ck_assert_int_eq(
            read_rows(layer, lane, batch_rows, &out[lane], &by_lane, &err),
            OJ_OK);
        ck_assert_int_eq(by_lane, lane && expect_lane);
    }
    same_layers(first_layer(out[0]), first_layer(out[1]), 1, 1);
    GDALClose(out[0]);
    GDALClose(out[1]);
}

/* Every shape, in a layer of its own type and in one of any type, with and
 * without an index. Curves, surfaces and empty geometries are left to GDAL. */
TEST_LOOP(property_every_shape_and_field, 0, 4 * N_SHAPES)
{
    const char *wkt = test_shapes[_i / 4];
    char *text = CPLStrdup(wkt), *at = text;
    OGRGeometryH geometry;
    OGRwkbGeometryType type;
    GDALDatasetH file;
    int is_plain;
    ck_assert_int_eq(OGR_G_CreateFromWkt(&at, NULL, &geometry), OGRERR_NONE);
    type = OGR_G_GetGeometryType(geometry);
    is_plain = _i / 4 < FIRST_CURVE;
    CPLPushErrorHandler(CPLQuietErrorHandler);
    if (_i % 4 < 2) /* the layer has Z and M */
        type = OGR_GT_SetModifier(wkbUnknown, OGR_GT_HasZ(type),
                                  OGR_GT_HasM(type));
    if (!OGR_G_IsEmpty(geometry)) /* the driver does not write such rows */
    {
        file = make_file(wkt, type, _i % 2, 60 + _i);
        for (int64_t batch = 1; batch <= 1000; batch *= 10)
            compare_lane_with_gdal(first_layer(file), batch, is_plain);
        GDALClose(file);
    }
    CPLPopErrorHandler();
    VSIUnlink(FILE_NAME);
    OGR_G_DestroyGeometry(geometry);
    CPLFree(text);
}

/* Points are read without OGR geometries. One of them has coordinates that
 * joins do not accept. */
TEST_LOOP(property_points_alone, 0, 4)
{
    GDALDatasetH file = make_layer("FlatGeobuf", FILE_NAME, N_FGB_FIELDS,
                                   wkbPoint, index_options[_i % 2]);
    struct oj_read_options options;
    for (int i = 0; i < 3000; i++)
        add_row(first_layer(file), i,
                i == 1234 ? "POINT (1e200 1)" : "POINT (1 2)");
    file = reopen(file, FILE_NAME);
    options = reading(first_layer(file), 1, 700);
    options.file = FILE_NAME;
    options.n_threads = 1 + _i / 2 * 3;
    compare_arrays(first_layer(file), &options, "FlatGeobuf");
    GDALClose(file);
    VSIUnlink(FILE_NAME);
}

/* The blocks of a file are divided between threads. The last file has a row
 * that is left to GDAL. */
TEST_LOOP(property_large_files_on_threads, 0, 4)
{
    static const char *const wkt[] = {
        "POINT (1 2)", "POLYGON ((0 0,1 0,1 1,0 0))",
        "GEOMETRYCOLLECTION (POINT (1 1),LINESTRING (0 0,1 1))",
        "CIRCULARSTRING (0 0,1 1,2 0)"};
    GDALDatasetH file = make_layer("FlatGeobuf", FILE_NAME, N_FGB_FIELDS,
                                   wkbUnknown, index_options[_i % 2]);
    for (int i = 0; i < 14000; i++)
        add_row(first_layer(file), i, wkt[i == 11111 ? _i : i % 3]);
    file = reopen(file, FILE_NAME);
    n_read_threads = 3;
    compare_lane_with_gdal(first_layer(file), 6007, _i < 3);
    n_read_threads = 1;
    GDALClose(file);
    VSIUnlink(FILE_NAME);
}

TEST(unit_rows_from_a_curve_on_are_left_to_gdal)
{
    static const char *const wkt[] = {
        "POINT (1 2)", "POLYGON ((0 0,1 0,1 1,0 0))",
        "CIRCULARSTRING (0 0,1 1,2 0)", "LINESTRING (0 0,1 1)"};
    GDALDatasetH file = make_layer("FlatGeobuf", FILE_NAME, N_FGB_FIELDS,
                                   wkbUnknown, index_options[0]);
    for (int i = 0; i < 400; i++)
        add_row(first_layer(file), i, wkt[i < 100 ? i % 2 : i % 4]);
    file = reopen(file, FILE_NAME);
    compare_lane_with_gdal(first_layer(file), 64, 0);
    GDALClose(file);
    VSIUnlink(FILE_NAME);
}

/* Only some of the fields are read, in another order. */
TEST(unit_wanted_fields)
{
    static const int wanted[] = {10, 5, 0};
    static const unsigned char skipped[] = {0, 0, 1};
    GDALDatasetH file = make_file("POINT (3 4)", wkbPoint, 1, 500);
    struct oj_read_options options = reading(first_layer(file), 1, 100);
    struct oj_layer_reader *reader;
    struct oj_batch batch = {0};
    struct oj_error err;
    int64_t n = 0;
    options.file = FILE_NAME;
    options.fields = wanted;
    options.skipped = skipped;
    options.n_fields = 3;
    ck_assert_int_eq(
        oj_layer_reader_open(first_layer(file), &options, &reader, &err),
        OJ_OK);
    for (;;)
    {
        ck_assert_int_eq(oj_layer_reader_next(reader, &batch, &err), OJ_OK);
        if (batch.n_rows == 0)
            break;
        for (int64_t i = 0; i < batch.n_rows; i++)
        {
            OGRFeatureH feature =
                OGR_L_GetFeature(first_layer(file), batch.flat.fid[i]);
            struct oj_value value;
            ck_assert_int_eq(batch.flat.fid[i], n + i);
            oj_attributes_value(batch.attributes, 1, i, &value);
            ck_assert_int_eq(oj_value_is_there(&value),
                             OGR_F_IsFieldSetAndNotNull(feature, 5));
            if (oj_value_is_there(&value))
            {
                int64_t n_text;
                const char *text = oj_value_bytes(&value, OFTString, &n_text);
                const char *own = OGR_F_GetFieldAsString(feature, 5);
                ck_assert_int_eq(n_text, (int64_t)strlen(own));
                ck_assert_mem_eq(text, own, (size_t)n_text);
            }
            oj_attributes_value(batch.attributes, 2, i, &value);
            ck_assert(!oj_value_is_there(&value));
            OGR_F_Destroy(feature);
        }
        n += batch.n_rows;
    }
    ck_assert_int_eq(n, 500);
    ck_assert_str_eq(oj_layer_reader_counts(reader)->lane, "FlatGeobuf");
    oj_batch_free(&batch);
    oj_layer_reader_close(reader);
    GDALClose(file);
    VSIUnlink(FILE_NAME);
}

/* ---- bytes that are not trusted ------------------------------------------ */

/* Reads the current bytes by both ways. If GDAL reads them, the rows must be
 * equal, and *n_read is incremented. GDAL may refuse what the lane reads,
 * because its verifier also checks bytes that are not needed. */
static void compare_bytes(int *n_read)
{
    GDALDatasetH file, out[2];
    struct oj_error err[2] = {0};
    oj_status status[2];
    int by_lane;
    file = GDALOpenEx(FILE_NAME, GDAL_OF_VECTOR, NULL, NULL, NULL);
    if (file == NULL || GDALDatasetGetLayerCount(file) == 0 ||
        OGR_FD_GetFieldCount(OGR_L_GetLayerDefn(first_layer(file))) !=
            N_FGB_FIELDS)
    {
        GDALClose(file);
        return;
    }
    for (int lane = 0; lane < 2; lane++)
        status[lane] = read_rows(first_layer(file), lane, 7, &out[lane],
                                 &by_lane, &err[lane]);
    ck_assert_msg((status[0] == OJ_OK) == (status[1] == OJ_OK),
                  "GDAL: %s, lane: %s", status[0] ? err[0].message : "rows",
                  status[1] ? err[1].message : "rows");
    if (status[0] == OJ_OK)
        same_layers(first_layer(out[0]), first_layer(out[1]), 1, 1);
    *n_read += status[0] == OJ_OK;
    GDALClose(out[0]);
    GDALClose(out[1]);
    GDALClose(file);
}

static const char *const broken_shapes[] = {
    "POINT (1 2)",
    "MULTILINESTRING ((0 0,1 1),(5 5,6 6,7 7))",
    "MULTIPOLYGON (((0 0,1 0,1 1,0 0)),((5 5,6 5,6 6,5 5)))",
    "GEOMETRYCOLLECTION (POINT (1 1),LINESTRING (0 0,1 1))",
    "POINT ZM (1 2 3 4)",
    "LINESTRING M (0 0 1,1 1 2,2 0 3)",
    "POLYGON Z ((0 0 1,9 0 1,9 9 1,0 0 1),(1 1 1,2 1 1,2 2 1,1 1 1))",
    "MULTIPOINT ((5 6),(7 8))"};

enum
{
    N_BROKEN = sizeof broken_shapes / sizeof broken_shapes[0]
};

/* The file is cut at every length, and bytes are changed, singly and in fours.
 * The layer has any type, or the type of the shape. OGRJOIN_TEST_SHORT=1 takes
 * every third length and change, others for each type of a shape. */
TEST_LOOP(property_broken_bytes, 0, 2 * N_BROKEN)
{
    const char *wkt = broken_shapes[_i % N_BROKEN];
    char *text = CPLStrdup(wkt), *at = text;
    OGRGeometryH shape;
    OGRwkbGeometryType type;
    vsi_l_offset n;
    GByte *bytes, *whole;
    int n_read = 0, step = is_switched_on("OGRJOIN_TEST_SHORT") ? 3 : 1;
    unsigned state = 12345 + (unsigned)_i;
    ck_assert_int_eq(OGR_G_CreateFromWkt(&at, NULL, &shape), OGRERR_NONE);
    type = OGR_G_GetGeometryType(shape);
    OGR_G_DestroyGeometry(shape);
    CPLFree(text);
    if (_i < N_BROKEN)
        type = OGR_GT_SetModifier(wkbUnknown, OGR_GT_HasZ(type),
                                  OGR_GT_HasM(type));
    GDALClose(make_file(wkt, type, _i % 2, 12));
    bytes = VSIGetMemFileBuffer(FILE_NAME, &n, FALSE);
    whole = malloc((size_t)n);
    ck_assert_ptr_nonnull(whole);
    memcpy(whole, bytes, (size_t)n);
    CPLPushErrorHandler(CPLQuietErrorHandler);
    for (int i = _i % step; i < 1500; i += step)
    {
        GByte *copy = CPLMalloc((size_t)n);
        size_t size = i < 500 ? (size_t)n * (size_t)i / 500 + 1 : (size_t)n;
        memcpy(copy, whole, (size_t)n);
        for (int k = i < 500 ? 3 : 0; k < (i % 2 ? 1 : 4); k++)
        {
            state = state * 1664525u + 1013904223u;
            copy[(state >> 8) % n] ^= (GByte)(1u << (state & 7));
        }
        VSIFCloseL(VSIFileFromMemBuffer(FILE_NAME, copy, size, TRUE));
        compare_bytes(&n_read);
    }
    CPLPopErrorHandler();
    ck_assert_int_gt(n_read, 100 / step);
    free(whole);
    VSIUnlink(FILE_NAME);
}

/* ---- writing ---------------------------------------------------------------
 */

#define OUT_FOLDER "test_flatgeobuf_out"

/* Writes the layer to a file, by GDAL (by_rows 0) or by our lane (by_rows 1),
 * and opens the file. Returns NULL if the driver refuses a row, or if the file
 * cannot be opened. */
static GDALDatasetH write_file(OGRLayerH from, OGRwkbGeometryType type,
                               int has_index, int by_rows, oj_status *status)
{
    const char *path[] = {OUT_FOLDER "/gdal.fgb", OUT_FOLDER "/ours.fgb"};
    const char *const *index = index_options[has_index];
    const struct oj_flatgeobuf_file file = {path[1], (char **)index, NULL,
                                            1 + has_index};
    GDALDatasetH to =
        make_layer("FlatGeobuf", by_rows ? OUT_FOLDER "/empty.fgb" : path[0],
                   N_FGB_FIELDS, type, index);
    struct oj_column columns[N_FIELDS + 8];
    struct oj_write_options options = writing(from, columns);
    struct oj_read_options read_options = reading(from, 1, 50);
    struct oj_layer_reader *reader;
    struct oj_layer_writer *writer;
    struct oj_batch batch = {0};
    struct oj_matches matches = {0};
    int has_file = 0;
    struct oj_error err;
    options.file = by_rows ? &file : NULL;
    ck_assert_int_eq(oj_layer_reader_open(from, &read_options, &reader, &err),
                     OJ_OK);
    ck_assert_int_eq(
        oj_layer_writer_open(first_layer(to), &options, &writer, &err), OJ_OK);
    do
    {
        ck_assert_int_eq(oj_layer_reader_next(reader, &batch, &err), OJ_OK);
        no_matches(&matches, batch.n_rows);
        *status =
            oj_layer_writer_write(writer, &batch, 0, &matches, NULL, &err);
    } while (*status == OJ_OK && batch.n_rows > 0);
    if (*status == OJ_OK)
        ck_assert_int_eq(oj_layer_writer_finish(writer, &has_file, &err),
                         OJ_OK);
    oj_matches_free(&matches);
    oj_batch_free(&batch);
    oj_layer_writer_close(writer);
    oj_layer_reader_close(reader);
    GDALClose(to);
    if (*status != OJ_OK || (by_rows && !has_file))
        return NULL;
    return GDALOpenEx(path[by_rows], GDAL_OF_VECTOR, NULL, NULL, NULL);
}

/* Returns the number of rows that intersect a box. Stores the sum of a field
 * over them in *sum. */
static int count_in_box(OGRLayerH layer, double x0, double y0, double x1,
                        double y1, GIntBig *sum)
{
    OGRFeatureH feature;
    int n = 0;
    OGR_L_SetSpatialFilterRect(layer, x0, y0, x1, y1);
    OGR_L_ResetReading(layer);
    *sum = 0;
    while ((feature = OGR_L_GetNextFeature(layer)) != NULL)
    {
        *sum += OGR_F_GetFieldAsInteger64(feature, 2);
        OGR_F_Destroy(feature);
        n++;
    }
    OGR_L_SetSpatialFilter(layer, NULL);
    return n;
}

/* Asserts that both files have equal contents. The rows are in equal order if
 * there is no index, and equal in every box. */
static void same_files(OGRLayerH gdal, OGRLayerH ours, int has_index)
{
    OGREnvelope a, b;
    ck_assert_int_eq(OGR_L_GetFeatureCount(gdal, 1),
                     OGR_L_GetFeatureCount(ours, 1));
    ck_assert_int_eq(OGR_L_GetGeomType(gdal), OGR_L_GetGeomType(ours));
    if (OGR_L_GetExtent(gdal, &a, 1) == OGRERR_NONE)
    {
        ck_assert_int_eq(OGR_L_GetExtent(ours, &b, 1), OGRERR_NONE);
        ck_assert(a.MinX == b.MinX && a.MaxX == b.MaxX && a.MinY == b.MinY &&
                  a.MaxY == b.MaxY);
    }
    for (int i = 0; i < 60; i++)
    {
        GIntBig sums[2];
        double x = i % 10 * 40 - 5, y = i / 10 * 30 - 5, w = 1 << i % 9;
        ck_assert_int_eq(count_in_box(gdal, x, y, x + w, y + w, &sums[0]),
                         count_in_box(ours, x, y, x + w, y + w, &sums[1]));
        ck_assert_int_eq(sums[0], sums[1]);
    }
    if (!has_index)
        same_layers(gdal, ours, 1, 1);
}

/* Makes a geometry from wkt. A point is moved to a place that depends on i, so
 * that the rows lie at different places. */
static OGRGeometryH make_shifted(const char *wkt, int i)
{
    char *text = CPLStrdup(wkt), *at = text;
    OGRGeometryH geometry;
    ck_assert_int_eq(OGR_G_CreateFromWkt(&at, NULL, &geometry), OGRERR_NONE);
    CPLFree(text);
    if (OGR_GT_Flatten(OGR_G_GetGeometryType(geometry)) == wkbPoint &&
        !OGR_G_IsEmpty(geometry))
    {
        int has_z = OGR_G_Is3D(geometry), has_m = OGR_G_IsMeasured(geometry);
        OGR_G_SetPoint_2D(geometry, 0, i * 37 % 400, i * 91 % 170);
        OGR_G_Set3D(geometry, has_z);
        OGR_G_SetMeasured(geometry, has_m);
    }
    return geometry;
}

/* Every shape, in a layer of its own type and in one of any type. Some rows
 * have no geometry. The files of GDAL and of our lane have equal contents, and
 * both refuse the same layers. */
TEST_LOOP(property_written_as_gdal_does, 0, 4 * N_SHAPES)
{
    const char *wkt = test_shapes[_i / 4];
    OGRGeometryH geometry = make_shifted(wkt, 0);
    OGRwkbGeometryType type = OGR_G_GetGeometryType(geometry);
    int has_index = _i % 2;
    GDALDatasetH in = make_layer("Memory", "", N_FGB_FIELDS, type, NULL),
                 out[2];
    oj_status status[2];
    if (_i % 4 < 2)
        type = OGR_GT_SetModifier(wkbUnknown, OGR_GT_HasZ(type),
                                  OGR_GT_HasM(type));
    for (int i = 0; i < 300; i++)
    {
        OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(first_layer(in)));
        for (int f = 0; f < OGR_F_GetFieldCount(feature); f++)
            set_value(feature, f, i);
        if (has_index || i % 9 != 4)
            OGR_F_SetGeometryDirectly(feature, make_shifted(wkt, i));
        ck_assert_int_eq(OGR_L_CreateFeature(first_layer(in), feature),
                         OGRERR_NONE);
        OGR_F_Destroy(feature);
    }
    CPLPushErrorHandler(CPLQuietErrorHandler);
    VSIRmdirRecursive(OUT_FOLDER); /* files left by a failed test */
    VSIMkdir(OUT_FOLDER, 0755);
    for (int by_rows = 0; by_rows < 2; by_rows++)
        out[by_rows] = write_file(first_layer(in), type, has_index, by_rows,
                                  &status[by_rows]);
    ck_assert_int_eq(status[0], status[1]);
    /* with only empty geometries, GDAL 3.6 writes no file, and GDAL 3.10 one
     * with the extent (0 0, 0 0) */
    if (!OGR_G_IsEmpty(geometry))
        ck_assert_int_eq(status[0] == OJ_OK,
                         out[1] != NULL || _i / 4 >= FIRST_CURVE);
    else if (out[1] != NULL)
        ck_assert_int_eq(OGR_L_GetFeatureCount(first_layer(out[0]), 1),
                         OGR_L_GetFeatureCount(first_layer(out[1]), 1));
    if (out[1] != NULL && !OGR_G_IsEmpty(geometry))
        same_files(first_layer(out[0]), first_layer(out[1]), has_index);
    CPLPopErrorHandler();
    GDALClose(out[0]);
    GDALClose(out[1]);
    GDALClose(in);
    OGR_G_DestroyGeometry(geometry);
    VSIRmdirRecursive(OUT_FOLDER);
}

/* ---- order -----------------------------------------------------------------
 */

/* Adds more rows than a block has, of different sizes. Every third has a
 * header. `crowd` of four rows are in one place. */
static void add_rows(struct oj_flatgeobuf_unsorted *rows, int crowd, int64_t n)
{
    uint8_t *bytes = calloc(1000, 200);
    struct oj_error err;
    ck_assert(bytes != NULL);
    rows->n_head = 32;
    memset(rows->head, 7, sizeof rows->head);
    for (int64_t first = 0; first < n; first += 1000)
    {
        struct oj_flatgeobuf_extent sum = {1000, 0, 0};
        for (int64_t i = 0; i < 1000; i++)
        {
            int64_t row = first + i, k = row * 7919 % 100003;
            double x = row % 4 < crowd ? 5.0 : (double)k;
            double y = row % 4 < crowd ? 5.0 : (double)(k * k % 99991);
            double box[] = {x, y, x, y};
            struct oj_flatgeobuf_row own = {.is_point = row % 3 == 0};
            int64_t n_box = own.is_point ? 16 : 32;
            uint32_t size = (uint32_t)(12 + row % 13 * 8);
            uint8_t *to = bytes + sum.bytes;
            own.n = (uint32_t)(n_box + 4 + size) & INT32_MAX;
            memcpy(to, &own, sizeof own);
            to += sizeof own;
            memcpy(to, box, (size_t)n_box);
            memcpy(to + n_box, &size, sizeof size);
            memcpy(to + n_box + 8, &row, sizeof row);
            sum.bytes += (int64_t)sizeof own + own.n;
            sum.in_file += 4 + (int64_t)size + (own.is_point ? 32 + 16 : 0);
            oj_flatgeobuf_grow_box(rows->box, box);
        }
        ck_assert_int_eq(oj_flatgeobuf_unsorted_add(rows, bytes, &sum, &err),
                         OJ_OK);
    }
    free(bytes);
}

/* Hilbert code as GDAL computes it. */
static uint32_t hilbert_code(uint32_t n, uint32_t x, uint32_t y)
{
    uint32_t code = 0;
    for (uint32_t s = n / 2; s > 0; s /= 2)
    {
        uint32_t right = (x & s) > 0, up = (y & s) > 0;
        code += s * s * ((3 * right) ^ up);
        if (up == 0)
        {
            uint32_t swap = right ? n - 1 - x : x;
            x = right ? n - 1 - y : y;
            y = swap;
        }
    }
    return code;
}

static uint32_t code_of_box(const double *all, const double *box)
{
    uint32_t cell[2];
    for (int i = 0; i < 2; i++)
    {
        double size = all[2 + i] - all[i];
        cell[i] =
            size > 0.0
                ? (uint32_t)(65535.0 * ((box[i] + box[2 + i]) / 2.0 - all[i]) /
                             size)
                : 0;
    }
    return hilbert_code(65536, cell[0], cell[1]);
}

/* Rows are kept in a temporary file, partly in memory and partly in a file, or
 * in memory. */
TEST_LOOP(large_rows_in_the_order_of_the_curve, 0, 15)
{
    static const int64_t most_kept[] = {0, 4 << 20, 32 << 20};
    const int64_t n = 200000;
    FILE *file = tmpfile();
    struct oj_flatgeobuf_unsorted rows = {.box = {1e9, 1e9, -1e9, -1e9},
                                          .most_kept = most_kept[_i / 5]};
    struct oj_flatgeobuf_node node;
    struct oj_error err;
    int64_t size, n_upper = 0, last_row = -1, offset = 0;
    uint32_t last_code = UINT32_MAX;
    char *whole;
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(oj_temporary_file_open(NULL, "rows", &rows.rows, &err),
                     OJ_OK);
    add_rows(&rows, _i % 5, n);
    ck_assert_int_eq(rows.bytes != NULL, _i >= 10);
    ck_assert_int_eq(
        oj_flatgeobuf_sort(&rows, fileno(file), 24, 1 + _i % 2 * 2, &err),
        OJ_OK);
    for (int64_t level = n; level > 1; n_upper += level)
        level = (level + 15) / 16;
    size = 24 + 40 * (n_upper + n) + rows.n.in_file;
    whole = malloc((size_t)size + 1);
    ck_assert_int_eq(pread(fileno(file), whole, (size_t)size + 1, 0), size);
    for (int64_t i = 0; i < n; i++)
    {
        const char *at = whole + 24 + 40 * (n_upper + n) + offset;
        int64_t row, n_head;
        uint32_t code, size_of_row;
        memcpy(&node, whole + 24 + 40 * (n_upper + i), sizeof node);
        ck_assert_int_eq((int64_t)node.offset, offset);
        n_head = at[4] == 7 ? 32 + 16 : 0;
        memcpy(&size_of_row, at, sizeof size_of_row);
        memcpy(&row, at + n_head + 8, sizeof row);
        ck_assert_int_eq(n_head, row % 3 == 0 ? 32 + 16 : 0);
        ck_assert_int_eq(size_of_row, n_head + 12 + row % 13 * 8);
        if (n_head > 0)
            ck_assert_mem_eq(at + n_head - 16, node.box, 16);
        code = code_of_box(rows.box, node.box);
        ck_assert(code < last_code || (code == last_code && row > last_row));
        last_code = code;
        last_row = row;
        offset += 4 + (int64_t)size_of_row;
    }
    memcpy(&node, whole + 24, sizeof node);
    ck_assert_int_eq((int64_t)node.offset, 1);
    ck_assert_mem_eq(node.box, rows.box, sizeof node.box);
    free(whole);
    oj_flatgeobuf_unsorted_free(&rows);
    fclose(file);
}

/* ---- memory ----------------------------------------------------------------
 */

TEST(memory_every_allocation_can_fail)
{
    GDALDatasetH file = make_file("MULTIPOINT (5 6,7 8)", wkbMultiPoint, 0, 50);
    struct oj_read_options options = reading(first_layer(file), 1, 20);
    oj_status status = OJ_ERR_NOMEM;
    options.file = FILE_NAME;
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
    VSIUnlink(FILE_NAME);
}

int main(void)
{
    tests_open("flatgeobuf");
    GDALAllRegister();
    return tests_run();
}
