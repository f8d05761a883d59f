/* Rows of the writer beyond one batch of pairs: parts of a batch, rows of the
 * join layer, geometries that a join made, values from elsewhere.
 * Kind: truth cases. */
#include "../../../flatten/base/oj_array.h"
#include "../../../flatten/write/oj_layer_shape.h"
#include "../../../flatten/write/oj_layer_write.h"

#include "../layers.h"
#include "../run_tests.h"

#include <stdio.h>
#include <stdlib.h>

static struct oj_error error;

static void ok(oj_status status)
{
    if (status != OJ_OK)
        ck_abort_msg("%s: %s", oj_status_name(status), error.message);
}

static OGRLayerH add_layer(GDALDatasetH dataset, const char *name,
                           const char *field)
{
    OGRLayerH layer =
        GDALDatasetCreateLayer(dataset, name, NULL, wkbUnknown, NULL);
    OGRFieldDefnH defn = OGR_Fld_Create(field, OFTString);
    ck_assert_int_eq(OGR_L_CreateField(layer, defn, 1), OGRERR_NONE);
    OGR_Fld_Destroy(defn);
    return layer;
}

static void add_named(OGRLayerH layer, const char *value, const char *wkt)
{
    OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
    OGRGeometryH geometry = NULL;
    char *text = (char *)wkt;
    OGR_F_SetFieldString(feature, 0, value);
    if (wkt != NULL)
        ck_assert_int_eq(OGR_G_CreateFromWkt(&text, NULL, &geometry),
                         OGRERR_NONE);
    OGR_F_SetGeometryDirectly(feature, geometry);
    ck_assert_int_eq(OGR_L_CreateFeature(layer, feature), OGRERR_NONE);
    OGR_F_Destroy(feature);
}

/* "a|b|3|POINT (1 2);" for each row */
static void describe(OGRLayerH layer, char *text, size_t size)
{
    OGRFeatureH feature;
    text[0] = '\0';
    OGR_L_ResetReading(layer);
    while ((feature = OGR_L_GetNextFeature(layer)) != NULL)
    {
        OGRGeometryH geometry = OGR_F_GetGeometryRef(feature);
        char *wkt = NULL;
        size_t used;
        for (int i = 0; i < OGR_F_GetFieldCount(feature); i++)
        {
            used = strlen(text);
            snprintf(text + used, size - used, "%s|",
                     OGR_F_IsFieldSetAndNotNull(feature, i)
                         ? OGR_F_GetFieldAsString(feature, i)
                         : "-");
        }
        if (geometry != NULL)
            OGR_G_ExportToIsoWkt(geometry, &wkt);
        used = strlen(text);
        snprintf(text + used, size - used, "%s;", wkt != NULL ? wkt : "-");
        CPLFree(wkt);
        OGR_F_Destroy(feature);
    }
}

/* What layer holds, as describe() says it. */
static void expect_rows(OGRLayerH layer, const char *expected)
{
    char text[1000];
    describe(layer, text, sizeof text);
    ck_assert_str_eq(text, expected);
}

/* Two small layers, read, and an empty one to write to. */
struct fixture
{
    GDALDatasetH dataset;
    OGRLayerH in, join, out;
    struct oj_layer_reader *reader, *join_reader;
    struct oj_batch batch, join_batch;
    struct oj_flat_buf flat;
    struct oj_table *table;
    struct oj_flat side;
    struct oj_column columns[4];
    struct oj_write_options options;
    struct oj_layer_writer *writer;
};

static const int first_field = 0;

static struct oj_read_options reading(void)
{
    struct oj_read_options options = {0};
    options.batch_rows = 100;
    options.limit = -1;
    options.fields = &first_field;
    options.n_fields = 1;
    options.keep_attributes = 1;
    return options;
}

static void open_fixture(struct fixture *f)
{
    const struct oj_read_options options = reading();
    struct oj_read_counts counts;
    memset(f, 0, sizeof *f);
    f->dataset = GDALCreate(GDALGetDriverByName("Memory"), "", 0, 0, 0,
                            GDT_Unknown, NULL);
    f->in = add_layer(f->dataset, "in", "a");
    f->join = add_layer(f->dataset, "join", "b");
    f->out = add_layer(f->dataset, "out", "a");
    for (int i = 0; i < 3; i++)
    {
        static const char *const names[] = {"b", "fid", "x"};
        static const OGRFieldType types[] = {OFTString, OFTInteger64, OFTReal};
        OGRFieldDefnH defn = OGR_Fld_Create(names[i], types[i]);
        ck_assert_int_eq(OGR_L_CreateField(f->out, defn, 1), OGRERR_NONE);
        OGR_Fld_Destroy(defn);
    }
    add_named(f->in, "p", "POINT Z (1 2 3)");
    add_named(f->in, "q", "POINT (4 5)");
    add_named(f->in, "r", NULL);
    add_named(f->in, "s", "POINT (6 7)");
    add_named(f->join, "A", "POLYGON Z ((0 0 1,9 0 1,9 9 1,0 0 1))");
    add_named(f->join, "B", NULL);
    add_named(f->join, "C", "MULTIPOINT (3 3,4 4)");
    ok(oj_layer_read_all(f->join, &options, &f->flat, &f->table, &counts, NULL,
                         NULL, &error));
    f->side = oj_flat_buf_view(&f->flat);
    ok(oj_layer_reader_open(f->in, &options, &f->reader, &error));
    ok(oj_layer_reader_next(f->reader, &f->batch, &error));
    ok(oj_layer_reader_open(f->join, &options, &f->join_reader, &error));
    ok(oj_layer_reader_next(f->join_reader, &f->join_batch, &error));
    for (int i = 0; i < 4; i++)
        f->columns[i].target = i;
    f->columns[0].origin = OJ_COLUMN_INPUT;
    f->columns[1].origin = OJ_COLUMN_JOIN;
    f->columns[2].origin = OJ_COLUMN_JOIN_FID;
    f->columns[3].origin = OJ_COLUMN_PAIR_VALUE;
    f->columns[3].source = OJ_PAIR_BEARING;
    f->options.columns = f->columns;
    f->options.n_columns = 4;
    f->options.join_side = &f->side;
    f->options.join_table = f->table;
}

static void open_writer(struct fixture *f)
{
    ok(oj_layer_writer_open(f->out, &f->options, &f->writer, &error));
}

static void close_fixture(struct fixture *f)
{
    oj_layer_writer_close(f->writer);
    oj_batch_free(&f->batch);
    oj_batch_free(&f->join_batch);
    oj_layer_reader_close(f->reader);
    oj_layer_reader_close(f->join_reader);
    oj_table_free(f->table);
    oj_flat_buf_free(&f->flat);
    GDALClose(f->dataset);
}

/* Rows 0 and 3 have pairs; each row's entry has the value 10 * row. */
static void fill_pairs(struct oj_matches *m, struct oj_pair_values *values)
{
    const int32_t join_row[] = {2, -1, -1, 0};
    ok(oj_matches_reserve(m, 4, 4, 0, &error));
    memcpy(m->join_row, join_row, sizeof join_row);
    for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
        ok(oj_pair_values_reserve(values, (enum oj_pair_value)i, 4, &error));
    for (int row = 0; row < 4; row++)
    {
        m->measure[row] = 0.0;
        for (int i = 0; i < OJ_N_PAIR_VALUES; i++)
            values->value[i][row] = 10.0 * row + i;
    }
    values->value[OJ_PAIR_BEARING][3] = (double)NAN;
    values->n_entries = 4;
}

TEST(parts_of_a_batch)
{
    struct fixture f;
    MATCHES m = {0};
    open_fixture(&f);
    open_writer(&f);
    /* rows 1 and 2: a list of two pairs, and nothing */
    ok(oj_matches_reserve(&m, 2, 2, 1, &error));
    memcpy(m.offset, (int64_t[]){0, 2, 2}, 3 * sizeof(int64_t));
    memcpy(m.join_row, (int32_t[]){0, 2}, 2 * sizeof(int32_t));
    m.measure[0] = m.measure[1] = 0.0;
    ok(oj_layer_writer_write(f.writer, &f.batch, 1, &m, NULL, &error));
    expect_rows(f.out, "q|A|0|-|POINT (4 5);q|C|2|-|POINT (4 5);r|-|-|-|-;");
    ck_assert_int_eq(
        oj_layer_writer_write(f.writer, &f.batch, 3, &m, NULL, &error),
        OJ_ERR_INTERNAL);
    ck_assert_int_eq(
        oj_layer_writer_write(f.writer, &f.batch, -1, &m, NULL, &error),
        OJ_ERR_INTERNAL);
    close_fixture(&f);
}

TEST_LOOP(rows_of_the_join_layer, 0, 3)
{
    static const char *const expected[] = {
        "-|A|0|-|POLYGON Z ((0 0 1,9 0 1,9 9 1,0 0 1));-|B|1|-|-;",
        "-|A|0|-|POLYGON ((0 0,9 0,9 9,0 0));-|B|1|-|-;",
        "-|A|0|-|-;-|B|1|-|-;"};
    static const enum oj_write_geometry geometries[] = {
        OJ_WRITE_INPUT, OJ_WRITE_JOIN, OJ_WRITE_CONNECTION};
    const uint8_t is_matched[] = {0, 0, 1};
    struct fixture f;
    open_fixture(&f);
    f.options.geometry = geometries[_i];
    open_writer(&f);
    ok(oj_layer_writer_write_join_rows(f.writer, &f.join_batch, is_matched,
                                       &error));
    expect_rows(f.out, expected[_i]);
    ck_assert_int_eq(oj_layer_writer_rows(f.writer), 2);
    ck_assert_int_eq(
        oj_row_cursor_rows_without_geometry(oj_layer_writer_cursor(f.writer)),
        _i < 2 ? 1 : 2);
    close_fixture(&f);
}

TEST_LOOP(geometries_of_pairs, 0, 5)
{
    static const char *const expected[] = {
        "POINT Z (1 2 3)|POINT (6 7)",
        "MULTIPOINT ((3 3),(4 4))|POLYGON ((0 0,9 0,9 9,0 0))",
        "POINT (5 6)|POINT (35 36)",
        "LINESTRING (3 4,5 6)|LINESTRING (33 34,35 36)",
        "LINESTRING (1 1,2 2)|MULTIPOINT ((7 7),(8 8))"};
    struct fixture f;
    MATCHES m = {0};
    struct oj_pair_values values = {0};
    char rows[1000], first[200], second[200];
    const char *end;
    open_fixture(&f);
    f.options.geometry = (enum oj_write_geometry)_i;
    open_writer(&f);
    fill_pairs(&m, &values);
    for (int entry = 0; entry < 4; entry++) /* the shapes */
    {
        double *x, *y;
        ok(oj_flat_buf_begin(&values.shapes, entry, &error));
        for (int i = 0; i < (entry == 3 ? 2 : entry == 0); i++)
        {
            int n = entry == 3 ? 1 : 2;
            ok(oj_flat_buf_part(&values.shapes,
                                entry == 3 ? OJ_PART_POINT : OJ_PART_LINE,
                                &error));
            ok(oj_flat_buf_ring(&values.shapes, &error));
            ok(oj_flat_buf_vertices(&values.shapes, n, &x, &y, &error));
            for (int v = 0; v < n; v++)
                x[v] = y[v] = entry == 3 ? 7 + i : 1 + v;
        }
        ok(oj_flat_buf_end(&values.shapes, &error));
    }
    ok(oj_layer_writer_write(f.writer, &f.batch, 0, &m, &values, &error));
    end = strchr(expected[_i], '|');
    snprintf(first, sizeof first, "%.*s", (int)(end - expected[_i]),
             expected[_i]);
    snprintf(second, sizeof second, "%s", end + 1);
    snprintf(rows, sizeof rows, "p|C|2|7|%s;q|-|-|-|%s;r|-|-|-|-;s|A|0|-|%s;",
             first, _i == 0 ? "POINT (4 5)" : "-", second);
    expect_rows(f.out, rows);
    oj_pair_values_free(&values);
    close_fixture(&f);
}

/* Only one pair of a row is written, and all of them are counted. */
TEST(picked_pairs_and_counts)
{
    struct fixture f;
    MATCHES m = {0};
    struct oj_pair_values values = {0};
    open_fixture(&f);
    f.columns[2].origin = OJ_COLUMN_COUNT;
    open_writer(&f);
    fill_pairs(&values.picked, &values);
    values.is_picked = 1;
    ok(oj_matches_reserve(&m, 4, 5, 1, &error));
    memcpy(m.offset, (int64_t[]){0, 3, 3, 3, 5}, 5 * sizeof(int64_t));
    memset(m.join_row, 0, 5 * sizeof(int32_t));
    ok(oj_layer_writer_write(f.writer, &f.batch, 0, &m, &values, &error));
    expect_rows(f.out, "p|C|3|7|POINT Z (1 2 3);q|-|0|-|POINT (4 5);"
                       "r|-|0|-|-;s|A|2|-|POINT (6 7);");
    oj_pair_values_free(&values);
    close_fixture(&f);
}

static oj_status value_of(void *user, int source, int64_t row,
                          struct oj_value *value, struct oj_error *err)
{
    (void)err;
    oj_value_set_zero(value);
    value->raw.Integer64 = *(int *)user * source + row;
    return OJ_OK;
}

TEST(values_from_elsewhere)
{
    struct fixture f;
    MATCHES m = {0};
    struct oj_pair_values values = {0};
    int user = 100;
    open_fixture(&f);
    f.columns[2].origin = OJ_COLUMN_AGGREGATE;
    f.columns[2].source = 5;
    f.columns[2].type = OFTInteger64;
    f.options.aggregate = value_of;
    f.options.aggregate_user = &user;
    open_writer(&f);
    fill_pairs(&m, &values);
    ok(oj_layer_writer_write(f.writer, &f.batch, 0, &m, &values, &error));
    expect_rows(f.out, "p|C|500|7|POINT Z (1 2 3);q|-|501|-|POINT (4 5);"
                       "r|-|502|-|-;s|A|503|-|POINT (6 7);");
    oj_pair_values_free(&values);
    close_fixture(&f);
}

TEST(shapes_of_every_kind)
{
    LAYER buf = {0};
    struct oj_flat flat;
    static const char *const expected[] = {
        "POLYGON ((0 0,1 0,1 1,0 0))", "MULTIPOLYGON (((0 0,1 0,1 1,0 0)))",
        "GEOMETRYCOLLECTION (POLYGON ((0 0,1 0,1 1,0 0)),POINT (0 0))", NULL};
    for (int i = 0; i < 4; i++)
    {
        static const double px[] = {0, 1, 1, 0}, py[] = {0, 0, 1, 0};
        double *x, *y;
        OGRGeometryH geometry;
        char *wkt = NULL;
        oj_flat_buf_clear(&buf);
        ok(oj_flat_buf_begin(&buf, 0, &error));
        for (int part = 0; part < (i == 3 ? 0 : i == 2 ? 2 : 1); part++)
        {
            int n = part == 0 ? 4 : 1;
            ok(oj_flat_buf_part(
                &buf, part == 0 ? OJ_PART_POLYGON : OJ_PART_POINT, &error));
            ok(oj_flat_buf_ring(&buf, &error));
            ok(oj_flat_buf_vertices(&buf, n, &x, &y, &error));
            memcpy(x, px, (size_t)n * sizeof *x);
            memcpy(y, py, (size_t)n * sizeof *y);
        }
        ok(oj_flat_buf_end(&buf, &error));
        flat = oj_flat_buf_view(&buf);
        ok(oj_layer_shape(&flat, 0, i == 1, &geometry, &error));
        if (geometry == NULL)
        {
            ck_assert_ptr_null(expected[i]);
            continue;
        }
        OGR_G_ExportToIsoWkt(geometry, &wkt);
        ck_assert_str_eq(wkt, expected[i]);
        CPLFree(wkt);
        OGR_G_DestroyGeometry(geometry);
    }
}

int main(void)
{
    tests_open("layer rows");
    GDALAllRegister();
    return tests_run();
}
