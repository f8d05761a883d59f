/* Kinds: unit, degenerate, memory, end-to-end (through real OGR drivers). The
 * layer reader and the layer writer. */
#include "../layer_copy.h"
#include "../run_tests.h"

#include "../../../flatten/base/oj_array.h"
#include "../../../flatten/read/oj_attributes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *temporary(const char *extension)
{
    static char path[200];
    CPLsnprintf(path, sizeof path, "/vsimem/test_layer_in.%s", extension);
    return path;
}

/* ---- the way of rows ---------------------------------------------------- */

TEST_LOOP(endtoend_every_type_and_null_and_unset, 99, 101)
{
    GDALDatasetH in = make_layer("Memory", "", N_FIELDS, wkbPoint, NULL);
    GDALDatasetH out = make_layer("Memory", "", N_FIELDS, wkbPoint, NULL);
    struct oj_read_options options;
    struct oj_error err;
    add_points(first_layer(in), 300, 1);
    options = reading(first_layer(in), 1, _i);
    ck_assert_int_eq(
        copy_layer(first_layer(in), first_layer(out), &options, NULL, &err),
        OJ_OK);
    same_layers(first_layer(in), first_layer(out), 1, 0);
    GDALClose(in);
    GDALClose(out);
}

struct format
{
    const char *driver, *extension;
    int has_stream;
    const char *const *options;
};

static const char *const no_index[] = {"SPATIAL_INDEX=NO", NULL};
static const struct format formats[] = {
    {"GPKG", "gpkg", 1, no_index},      {"FlatGeobuf", "fgb", 1, no_index},
    {"GeoJSON", "json", 0, NULL},       {"SQLite", "sqlite", 0, NULL},
    {"ESRI Shapefile", "shp", 0, NULL}, {"CSV", "csv", 0, NULL}};

enum
{
    N_FORMATS = (int)(sizeof formats / sizeof formats[0]),
    N_STREAMS = 2,
    N_FILTERED = 4 /* those that tell a column's type without being told */
};

TEST_LOOP(endtoend_stream_and_loop_are_the_same, 0, 4 * N_STREAMS)
{
    static const int64_t batches[] = {1, 7, 1000, 70000};
    const struct format *format = &formats[_i % N_STREAMS];
    const char *path = temporary(format->extension);
    GDALDatasetH in = make_layer(format->driver, path, N_SIMPLE_FIELDS,
                                 wkbPoint, format->options);
    GDALDatasetH out[2];
    struct oj_error err;
    add_points(first_layer(in), 2500, format->driver[0] == 'G');
    in = reopen(in, path);
    for (int arrow = 0; arrow < 2; arrow++)
    {
        struct oj_read_options options =
            reading(first_layer(in), arrow, batches[_i / N_STREAMS]);
        struct oj_read_counts counts;
        out[arrow] = make_layer("Memory", "", N_SIMPLE_FIELDS, wkbPoint, NULL);
        ck_assert_int_eq(copy_layer(first_layer(in), first_layer(out[arrow]),
                                    &options, &counts, &err),
                         OJ_OK);
        ck_assert_int_eq(counts.lane != NULL, arrow);
        ck_assert_int_eq(counts.n_rows, 2500);
        ck_assert_int_eq(counts.shapes.n_null,
                         format->driver[0] == 'G' ? 250 : 0);
    }
    same_layers(first_layer(out[0]), first_layer(out[1]), 1, 1);
    same_layers(first_layer(in), first_layer(out[1]), 1, 1);
    GDALClose(out[0]);
    GDALClose(out[1]);
    GDALClose(in);
    VSIUnlink(path);
}

TEST_LOOP(endtoend_every_type_through_formats, 0, N_FORMATS)
{
    const struct format *format = &formats[_i];
    const char *path = temporary(format->extension);
    GDALDatasetH in = make_layer("Memory", "", N_FIELDS, wkbPoint, NULL);
    GDALDatasetH file =
        make_layer(format->driver, path, 0, wkbPoint, format->options);
    GDALDatasetH back = make_layer("Memory", "", 0, wkbPoint, NULL);
    struct oj_read_options options;
    struct oj_error err;
    OGRFeatureDefnH defn;
    for (int i = 0; i < N_FIELDS; i++) /* types that it has not become text */
    {
        OGRFieldDefnH field =
            OGR_Fld_Create(test_fields[i].name, test_fields[i].type);
        const char *types =
            GDALGetMetadataItem(GDALGetDriverByName(format->driver),
                                GDAL_DMD_CREATIONFIELDDATATYPES, NULL);
        OGR_Fld_SetSubType(field, test_fields[i].subtype);
        if (strstr(types, OGR_GetFieldTypeName(test_fields[i].type)) == NULL)
            OGR_Fld_SetType(field, OFTString);
        ck_assert_int_eq(OGR_L_CreateField(first_layer(file), field, 1),
                         OGRERR_NONE);
        OGR_Fld_Destroy(field);
    }
    add_points(first_layer(in), 60, 0);
    options = reading(first_layer(in), 1, 13);
    ck_assert_msg(copy_layer(first_layer(in), first_layer(file), &options, NULL,
                             &err) == OJ_OK,
                  "%s", err.message);
    file = reopen(file, path);
    defn = OGR_L_GetLayerDefn(first_layer(file));
    for (int i = 0; i < OGR_FD_GetFieldCount(defn); i++)
        OGR_L_CreateField(first_layer(back), OGR_FD_GetFieldDefn(defn, i), 1);
    options = reading(first_layer(file), 1, 13);
    ck_assert_int_eq(
        copy_layer(first_layer(file), first_layer(back), &options, NULL, &err),
        OJ_OK);
    same_layers(first_layer(file), first_layer(back), 1, 1);
    ck_assert_int_eq(OGR_L_GetFeatureCount(first_layer(file), 1), 60);
    GDALClose(in);
    GDALClose(file);
    GDALClose(back);
    GDALDeleteDataset(NULL, path);
}

/* ---- shapes ------------------------------------------------------------- */

TEST(endtoend_every_shape)
{
    GDALDatasetH in =
        make_layer("GPKG", temporary("gpkg"), 1, wkbUnknown, no_index);
    OGRLayerH layer;
    struct oj_flat_buf flat[2];
    struct oj_error err;
    memset(flat, 0, sizeof flat);
    add_shapes(first_layer(in), N_SHAPES);
    in = reopen(in, temporary("gpkg"));
    layer = first_layer(in);
    for (int arrow = 0; arrow < 2; arrow++)
    {
        GDALDatasetH out = make_layer("Memory", "", 1, wkbUnknown, NULL);
        struct oj_read_options options = reading(layer, arrow, 5);
        struct oj_read_counts counts;
        struct oj_table *table;
        struct oj_flat view;
        ck_assert_msg(copy_layer(layer, first_layer(out), &options, &counts,
                                 &err) == OJ_OK,
                      "%s", err.message);
        same_layers(layer, first_layer(out), 1, 1);
        ck_assert_int_eq(counts.shapes.n_null, 1);
        ck_assert_int_eq(counts.shapes.n_empty, 4);
        ck_assert_int_eq(counts.shapes.n_linearized, N_SHAPES - FIRST_CURVE);
        GDALClose(out);

        ck_assert_int_eq(oj_layer_read_all(layer, &options, &flat[arrow],
                                           &table, &counts, NULL, NULL, &err),
                         OJ_OK);
        oj_table_free(table);
        view = oj_flat_buf_view(&flat[arrow]);
        ck_assert_int_eq(oj_flat_check(&view, &err), OJ_OK);
        ck_assert_int_eq(view.n_features, N_SHAPES + 1);
        for (int64_t i = 0; i < N_SHAPES; i++)
        {
            int is_empty = strstr(test_shapes[i], "EMPTY") != NULL;
            ck_assert((view.part_offset[i] == view.part_offset[i + 1]) ==
                      is_empty);
        }
        /* TIN: two patches; collection with a point and a TIN of one patch */
        ck_assert_int_eq(view.part_offset[22] - view.part_offset[21], 2);
        ck_assert_int_eq(view.part_offset[24] - view.part_offset[23], 2);
    }
    ck_assert_int_eq(flat[0].n_vertices, flat[1].n_vertices);
    ck_assert_mem_eq(flat[0].x, flat[1].x,
                     (size_t)flat[0].n_vertices * sizeof(double));
    ck_assert_mem_eq(flat[0].y, flat[1].y,
                     (size_t)flat[0].n_vertices * sizeof(double));
    oj_flat_buf_free(&flat[0]);
    oj_flat_buf_free(&flat[1]);
    GDALClose(in);
    VSIUnlink(temporary("gpkg"));
}

TEST(endtoend_promote_to_multi)
{
    GDALDatasetH in = make_layer("Memory", "", 1, wkbUnknown, NULL);
    GDALDatasetH out = make_layer("Memory", "", 1, wkbUnknown, NULL);
    struct oj_column columns[1];
    struct oj_write_options options = writing(first_layer(in), columns);
    struct oj_read_options read_options;
    struct oj_layer_reader *reader;
    struct oj_layer_writer *writer;
    struct oj_batch batch = {0};
    MATCHES matches = {0};
    OGRFeatureH feature;
    add_shapes(first_layer(in), N_SHAPES);
    add_points(first_layer(in), 3, 0);
    read_options = reading(first_layer(in), 0, 1000);
    options.promote_to_multi = 1;
    options.keep_fids = 0;
    ck_assert_int_eq(
        oj_layer_reader_open(first_layer(in), &read_options, &reader, NULL),
        OJ_OK);
    ck_assert_int_eq(
        oj_layer_writer_open(first_layer(out), &options, &writer, NULL), OJ_OK);
    ck_assert_int_eq(oj_layer_reader_next(reader, &batch, NULL), OJ_OK);
    no_matches(&matches, batch.n_rows);
    ck_assert_int_eq(
        oj_layer_writer_write(writer, &batch, 0, &matches, NULL, NULL), OJ_OK);
    ck_assert_int_eq(
        oj_row_cursor_rows_without_geometry(oj_layer_writer_cursor(writer)), 5);
    OGR_L_ResetReading(first_layer(out));
    while ((feature = OGR_L_GetNextFeature(first_layer(out))) != NULL)
    {
        OGRGeometryH g = OGR_F_GetGeometryRef(feature);
        OGRwkbGeometryType type =
            g != NULL ? wkbFlatten(OGR_G_GetGeometryType(g)) : wkbNone;
        ck_assert(type != wkbPoint && type != wkbLineString &&
                  type != wkbPolygon);
        OGR_F_Destroy(feature);
    }
    oj_batch_free(&batch);
    oj_layer_writer_close(writer);
    oj_layer_reader_close(reader);
    GDALClose(in);
    GDALClose(out);
}

/* ---- which rows and columns --------------------------------------------- */

TEST_LOOP(unit_limit_and_filters, 0, 2 * N_FILTERED)
{
    const struct format *format = &formats[_i / 2];
    const char *path = temporary(format->extension);
    GDALDatasetH in = make_layer(format->driver, path, N_SIMPLE_FIELDS,
                                 wkbPoint, format->options);
    struct oj_read_options options;
    struct oj_layer_reader *reader;
    struct oj_batch batch = {0};
    OGRLayerH layer;
    int wanted = FIELD_TEXT;
    int64_t n = 0;
    add_points(first_layer(in), 100, 0);
    in = reopen(in, path);
    layer = first_layer(in);
    for (int step = 0; step < 4; step++)
    {
        static const int64_t expected[] = {100, 42, 0, 0};
        options = reading(layer, _i % 2, 10);
        options.fields = &wanted;
        options.n_fields = 1;
        options.limit = step == 1 ? 42 : step == 2 ? 0 : -1;
        options.ignore_unwanted = step != 3;
        if (step == 3) /* on a field that is not wanted */
            OGR_L_SetAttributeFilter(layer, "i32 >= 1999910000");
        n = 0;
        ck_assert_int_eq(oj_layer_reader_open(layer, &options, &reader, NULL),
                         OJ_OK);
        do
        {
            ck_assert_int_eq(oj_layer_reader_next(reader, &batch, NULL), OJ_OK);
            n += batch.n_rows;
        } while (batch.n_rows > 0);
        ck_assert_int_eq(n, oj_layer_reader_counts(reader)->n_rows);
        if (step < 3)
            ck_assert_int_eq(n, expected[step]);
        else
            ck_assert_int_eq(n, OGR_L_GetFeatureCount(layer, 1));
        oj_batch_free(&batch);
        oj_layer_reader_close(reader);
        ck_assert_int_eq(OGR_Fld_IsIgnored(
                             OGR_FD_GetFieldDefn(OGR_L_GetLayerDefn(layer), 0)),
                         0);
    }
    ck_assert_int_gt(n, 50);
    ck_assert_int_lt(n, 100);
    GDALClose(in);
    VSIUnlink(path);
}

/* A box that only the boxes of two lines touch: not their rows. */
TEST(unit_spatial_filter_is_exact)
{
    const char *path = temporary("gpkg");
    GDALDatasetH in = make_layer("GPKG", path, 1, wkbLineString, NULL);
    struct oj_read_options options;
    LAYER flat = {0};
    struct oj_table *table;
    struct oj_read_counts counts;
    add_row(first_layer(in), 0, "LINESTRING (0 0,10 10)");
    add_row(first_layer(in), 1, "LINESTRING (8 1,9 2)");
    in = reopen(in, path);
    OGR_L_SetSpatialFilterRect(first_layer(in), 7, 0, 9, 2);
    options = reading(first_layer(in), 1, 10);
    ck_assert_int_eq(oj_layer_read_all(first_layer(in), &options, &flat, &table,
                                       &counts, NULL, NULL, NULL),
                     OJ_OK);
    ck_assert_int_eq(flat.n_features, 1);
    ck_assert_int_eq(flat.fid[0], 2);
    oj_table_free(table);
    GDALClose(in);
    VSIUnlink(path);
}

struct pairs
{
    GDALDatasetH in, join, out;
    struct oj_flat_buf flat;
    struct oj_table *table;
};

/* Input: 4 points with FID 1 to 4. Join side: 3 points. Output: field "text" of
 * both, then join FID, measure and rank. */
static void open_pairs(struct pairs *p)
{
    struct oj_read_options options;
    struct oj_read_counts counts;
    OGRFieldDefnH field;
    static const char *const names[] = {"text", "other", "fid_", "far", "rank"};
    static const OGRFieldType types[] = {OFTString, OFTString, OFTInteger64,
                                         OFTReal, OFTInteger};
    memset(p, 0, sizeof *p);
    p->in = make_layer("Memory", "", N_FIELDS, wkbPoint, NULL);
    p->join = make_layer("Memory", "", N_FIELDS, wkbPoint, NULL);
    p->out = make_layer("Memory", "", 0, wkbPoint, NULL);
    add_points(first_layer(p->in), 4, 0);
    add_points(first_layer(p->join), 3, 0);
    for (int i = 0; i < 5; i++)
    {
        field = OGR_Fld_Create(names[i], types[i]);
        OGR_L_CreateField(first_layer(p->out), field, 1);
        OGR_Fld_Destroy(field);
    }
    options = reading(first_layer(p->join), 0, 100);
    ck_assert_int_eq(oj_layer_read_all(first_layer(p->join), &options, &p->flat,
                                       &p->table, &counts, NULL, NULL, NULL),
                     OJ_OK);
}

static void close_pairs(struct pairs *p)
{
    oj_table_free(p->table);
    oj_flat_buf_free(&p->flat);
    GDALClose(p->in);
    GDALClose(p->join);
    GDALClose(p->out);
}

/* "FID text other join_fid measure rank;" per row, - for NULL. */
static void describe(OGRLayerH layer, char *text, size_t size)
{
    OGRFeatureH feature;
    text[0] = '\0';
    OGR_L_ResetReading(layer);
    while ((feature = OGR_L_GetNextFeature(layer)) != NULL)
    {
        CPLsnprintf(text + strlen(text), size - strlen(text), "%g",
                    OGR_G_GetX(OGR_F_GetGeometryRef(feature), 0));
        for (int i = 2; i < 5; i++)
            CPLsnprintf(text + strlen(text), size - strlen(text), " %s",
                        OGR_F_IsFieldSetAndNotNull(feature, i)
                            ? OGR_F_GetFieldAsString(feature, i)
                            : "-");
        CPLsnprintf(text + strlen(text), size - strlen(text), ";");
        OGR_F_Destroy(feature);
    }
}

TEST_LOOP(unit_how_and_lists, 0, 4)
{
    static const char *const expected[] = {
        "0 2 0.5 1;0 1 0.75 2;1 - - -;2 3 0 1;3 - - -;",
        "0 2 0.5 1;0 1 0.75 2;2 3 0 1;", "0 - - -;2 - - -;",
        "1 - - -;3 - - -;"};
    const struct oj_column columns[] = {
        {OJ_COLUMN_INPUT, FIELD_TEXT, 0, OFTInteger, OFSTNone},
        {OJ_COLUMN_JOIN, FIELD_TEXT, 1, OFTInteger, OFSTNone},
        {OJ_COLUMN_JOIN_FID, 0, 2, OFTInteger, OFSTNone},
        {OJ_COLUMN_MEASURE, 0, 3, OFTInteger, OFSTNone},
        {OJ_COLUMN_RANK, 0, 4, OFTInteger, OFSTNone}};
    struct oj_write_options options;
    struct oj_read_options read_options;
    struct oj_layer_reader *reader;
    struct oj_layer_writer *writer;
    struct oj_batch batch = {0};
    MATCHES matches = {0};
    struct oj_flat side;
    struct pairs p;
    char text[500];
    open_pairs(&p);
    side = oj_flat_buf_view(&p.flat);
    memset(&options, 0, sizeof options);
    options.how = (enum oj_how)_i;
    options.columns = columns;
    options.n_columns =
        options.how == OJ_HOW_SEMI || options.how == OJ_HOW_ANTI ? 1 : 5;
    options.join_side = &side;
    options.join_table = p.table;
    read_options = reading(first_layer(p.in), 0, 100);
    ck_assert_int_eq(
        oj_layer_reader_open(first_layer(p.in), &read_options, &reader, NULL),
        OJ_OK);
    ck_assert_int_eq(
        oj_layer_writer_open(first_layer(p.out), &options, &writer, NULL),
        OJ_OK);
    ck_assert_int_eq(oj_layer_reader_next(reader, &batch, NULL), OJ_OK);
    ck_assert_int_eq(oj_matches_reserve(&matches, 4, 3, 1, NULL), OJ_OK);
    memcpy(matches.offset, (int64_t[]){0, 2, 2, 3, 3}, 5 * sizeof(int64_t));
    memcpy(matches.join_row, (int32_t[]){1, 0, 2}, 3 * sizeof(int32_t));
    memcpy(matches.measure, (double[]){0.5, 0.75, 0}, 3 * sizeof(double));
    ck_assert_int_eq(
        oj_layer_writer_write(writer, &batch, 0, &matches, NULL, NULL), OJ_OK);
    describe(first_layer(p.out), text, sizeof text);
    ck_assert_str_eq(text, expected[_i]);
    if (_i == 0) /* values of both sides in the first row: join row 1 */
    {
        const struct oj_row_place pair = {.join_row = 0, .rank = 3};
        const struct oj_row_place no_pair = {.join_row = -1, .entry = -1};
        double measure = 9.5;
        const struct oj_matches entries = {.measure = &measure};
        OGRFeatureH out, in, join;
        OGR_L_ResetReading(first_layer(p.out));
        out = OGR_L_GetNextFeature(first_layer(p.out));
        in = OGR_L_GetFeature(first_layer(p.in), 1);
        join = OGR_L_GetFeature(first_layer(p.join), 2);
        ck_assert_str_eq(OGR_F_GetFieldAsString(out, 0),
                         OGR_F_GetFieldAsString(in, FIELD_TEXT));
        ck_assert_str_eq(OGR_F_GetFieldAsString(out, 1),
                         OGR_F_GetFieldAsString(join, FIELD_TEXT));
        ck_assert_int_eq(
            oj_row_cursor_set_columns(oj_layer_writer_cursor(writer), out,
                                      &pair, &entries, NULL, NULL),
            OJ_OK);
        ck_assert_int_eq(OGR_F_GetFieldAsInteger64(out, 2), 1);
        ck_assert_double_eq(OGR_F_GetFieldAsDouble(out, 3), 9.5);
        ck_assert_int_eq(OGR_F_GetFieldAsInteger64(out, 4), 3);
        ck_assert_int_eq(
            oj_row_cursor_set_columns(oj_layer_writer_cursor(writer), out,
                                      &no_pair, &entries, NULL, NULL),
            OJ_OK);
        ck_assert(OGR_F_IsFieldNull(out, 1) && OGR_F_IsFieldNull(out, 2) &&
                  OGR_F_IsFieldNull(out, 3));
        ck_assert_str_eq(OGR_F_GetFieldAsString(out, 0),
                         OGR_F_GetFieldAsString(in, FIELD_TEXT));
        OGR_F_Destroy(out);
        OGR_F_Destroy(in);
        OGR_F_Destroy(join);
    }
    oj_batch_free(&batch);
    oj_layer_writer_close(writer);
    oj_layer_reader_close(reader);
    close_pairs(&p);
}

/* ---- main --------------------------------------------------------------- */

int main(void)
{
    tests_open("layer");
    GDALAllRegister();
    return tests_run();
}
