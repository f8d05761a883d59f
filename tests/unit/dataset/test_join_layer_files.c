/* A join as a layer that stays open while the files of its sides change: what
 * is read from the start is of their present state, what has begun stays as it
 * was.
 * Kind: comparison with a layer that is opened anew; degenerate. */
#include "../run_tests.h"
#include "join_layers.h"

#include <time.h>
#include <unistd.h>

/* Long enough for the times of files to tell a change. */
static void settle(void)
{
    const struct timespec t = {0, 80000000};
    nanosleep(&t, NULL);
}

static void make_settled_layers(void)
{
    make_layers();
    settle();
}

static const char *in_folder(const char *name)
{
    static char path[2][600];
    static int next;
    next = !next;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

/* Points at x, or squares around it, as a CSV file. */
static void write_csv(const char *name, const char *field, const double *x,
                      int n, int squares)
{
    VSILFILE *file = VSIFOpenL(in_folder(name), "wb");
    ck_assert_ptr_nonnull(file);
    VSIFPrintfL(file, "%s,WKT\n", field);
    for (int i = 0; i < n; i++)
    {
        if (squares)
            VSIFPrintfL(file, "%d,\"POLYGON ((%g 0,%g 0,%g 1,%g 1,%g 0))\"\n",
                        i, x[i], x[i] + 1, x[i] + 1, x[i], x[i]);
        else
            VSIFPrintfL(file, "%d,POINT (%g 0.5)\n", i, x[i] + 0.5);
    }
    VSIFCloseL(file);
}

/* The geometry of the first feature of a file moves by so much, in place. */
static void move_first(const char *name, double by)
{
    GDALDatasetH dataset = GDALOpenEx(
        in_folder(name), GDAL_OF_VECTOR | GDAL_OF_UPDATE, NULL, NULL, NULL);
    OGRLayerH layer;
    OGRFeatureH f;
    OGRGeometryH geometry;
    ck_assert_ptr_nonnull(dataset);
    layer = GDALDatasetGetLayer(dataset, 0);
    f = OGR_L_GetNextFeature(layer);
    geometry = OGR_F_GetGeometryRef(f);
    if (OGR_G_GetGeometryType(geometry) == wkbPoint)
        OGR_G_SetPoint_2D(geometry, 0, OGR_G_GetX(geometry, 0) + by,
                          OGR_G_GetY(geometry, 0));
    else
    {
        OGRGeometryH ring = OGR_G_GetGeometryRef(geometry, 0);
        for (int i = 0; i < OGR_G_GetPointCount(ring); i++)
            OGR_G_SetPoint_2D(ring, i, OGR_G_GetX(ring, i) + by,
                              OGR_G_GetY(ring, i));
    }
    ck_assert_int_eq(OGR_L_SetFeature(layer, f), OGRERR_NONE);
    OGR_F_Destroy(f);
    GDALClose(dataset);
}

/* All rows, read from the start, after what way says. */
static struct row_texts read_all(GDALDatasetH layer, int way, GIntBig fid)
{
    const OGREnvelope all = {-1e6, 1e6, -1e6, 1e6};
    struct row_texts rows = {0};
    OGRFeatureH f;
    OGR_L_ResetReading(rows_of(layer));
    if (way == 1)
        filter_box(layer, &all);
    else if (way == 2)
        OGR_L_SetAttributeFilter(rows_of(layer), "1 = 1");
    else if (way == 3)
        ck_assert_int_eq(OGR_L_SetNextByIndex(rows_of(layer), 0), OGRERR_NONE);
    else if (way == 4)
    {
        f = OGR_L_GetFeature(rows_of(layer), fid);
        ck_assert_ptr_nonnull(f);
        add_row(&rows, f, 1);
        OGR_F_Destroy(f);
    }
    while ((f = OGR_L_GetNextFeature(rows_of(layer))) != NULL)
    {
        add_row(&rows, f, 1);
        OGR_F_Destroy(f);
    }
    sort_rows(&rows);
    if (way == 1)
        filter_box(layer, NULL);
    if (way == 2)
        OGR_L_SetAttributeFilter(rows_of(layer), NULL);
    expect_no_error();
    return rows;
}

/* A layer that was open before reads what one has that is opened now. */
static void expect_present_state(GDALDatasetH layer, const char *words, int way)
{
    GDALDatasetH now = open_well(words);
    struct row_texts expected, got;
    OGRFeatureH f = OGR_L_GetNextFeature(rows_of(now));
    GIntBig fid = OGR_F_GetFID(f);
    GIntBig n = OGR_L_GetFeatureCount(rows_of(now), 1);
    OGR_F_Destroy(f);
    if (way == 0)
        ck_assert_int_eq(OGR_L_GetFeatureCount(rows_of(layer), 1), n);
    got = read_all(layer, way, fid);
    expected = read_all(now, way, fid);
    expect_same(&got, &expected, words);
    ck_assert_int_eq(OGR_L_GetFeatureCount(rows_of(layer), 1), n);
    expect_no_error();
    free_rows(&got);
    free_rows(&expected);
    GDALClose(now);
}

enum
{
    N_WAYS = 6
};

TEST_LOOP(test_edits, 0, 5 * N_WAYS)
{
    static const char with_condition[] =
        "-op within -join_where 'random() IS NOT NULL' @/points.gpkg "
        "@/zones.gpkg";
    static const char *const joins[] = {
        "-op within @/points.gpkg @/zones.gpkg",
        "-op nearest -max_distance 30 @/points.gpkg @/zones.gpkg",
        "-op contains -agg 'count as n' @/zones.gpkg @/points.gpkg",
        "-op within -memory 2M @/points.gpkg @/zones.gpkg", with_condition};
    const char *words = joins[_i / N_WAYS];
    GDALDatasetH layer = open_well(words);
    struct row_texts first = next_rows(layer, -1);
    for (int i = 0; i < 2; i++)
    {
        move_first(i % 2 == 0 ? "zones.gpkg" : "points.gpkg", 3.0 + i);
        settle();
        expect_present_state(layer, words, _i % N_WAYS);
    }
    free_rows(&first);
    GDALClose(layer);
}

/* Files that are written anew, of drivers that keep what they have read. */
TEST_LOOP(test_rewritten_files, 0, 2 * N_WAYS)
{
    const char *words = _i < N_WAYS ? "-op within -how inner @/p.csv @/q.csv"
                                    : "-op within -how full @/p.csv @/q.csv";
    const double x[] = {0, 10, 20, 30, 40}, y[] = {30, 40, 0, 10, 50};
    GDALDatasetH layer;
    struct row_texts rows;
    write_csv("p.csv", "a", x, 4, 0);
    write_csv("q.csv", "b", x, 2, 1);
    settle();
    layer = open_well(words);
    rows = next_rows(layer, -1);
    ck_assert_int_eq(rows.n, _i < N_WAYS ? 2 : 4);
    free_rows(&rows);
    write_csv("q.csv", "b", x, 3, 1);
    settle();
    expect_present_state(layer, words, _i % N_WAYS);
    write_csv("p.csv", "a", y, 5, 0);
    settle();
    expect_present_state(layer, words, _i % N_WAYS);
    GDALClose(layer);
}

#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 6, 0)
#include <ogr_recordbatch.h>

static int64_t count_arrow_rows(GDALDatasetH layer)
{
    struct ArrowArrayStream stream;
    struct ArrowArray array;
    int64_t n = 0;
    ck_assert(OGR_L_GetArrowStream(rows_of(layer), &stream, NULL));
    for (;;)
    {
        ck_assert_int_eq(stream.get_next(&stream, &array), 0);
        if (array.release == NULL)
            break;
        n += array.length;
        array.release(&array);
    }
    stream.release(&stream);
    return n;
}

TEST(test_arrow)
{
    const double x[] = {0, 10, 20};
    GDALDatasetH layer;
    write_csv("p.csv", "a", x, 3, 0);
    write_csv("q.csv", "b", x, 1, 1);
    settle();
    layer = open_well("-op within -how inner @/p.csv @/q.csv");
    ck_assert_int_eq(count_arrow_rows(layer), 1);
    write_csv("q.csv", "b", x, 3, 1);
    settle();
    ck_assert_int_eq(count_arrow_rows(layer), 3);
    GDALClose(layer);
    expect_no_error();
}
#endif

/* Two changes within a tick of the clock are two changes. */
TEST(test_young_files)
{
    const char *words = "-op within -how inner @/p.csv @/q.csv";
    const double x[] = {0, 10}, y[] = {10, 20};
    GDALDatasetH layer;
    struct row_texts rows;
    write_csv("p.csv", "a", x, 2, 0);
    write_csv("q.csv", "b", x, 2, 1);
    layer = open_well(words);
    rows = next_rows(layer, -1);
    ck_assert_int_eq(rows.n, 2);
    free_rows(&rows);
    write_csv("q.csv", "b", y, 2, 1);
    OGR_L_ResetReading(rows_of(layer));
    rows = next_rows(layer, -1);
    ck_assert_int_eq(rows.n, 1);
    free_rows(&rows);
    GDALClose(layer);
    expect_no_error();
}

/* What was begun goes on as it was; the next reading is of the new state. */
TEST(test_change_while_reading)
{
    const char *words = "-op within -batch 16 @/points.gpkg @/zones.gpkg";
    GDALDatasetH layer = open_well(words);
    struct row_texts before = next_rows(layer, -1), half, rest = {0};
    OGRFeatureH f;
    GIntBig fid;
    OGR_L_ResetReading(rows_of(layer));
    half = next_rows(layer, 99);
    f = OGR_L_GetNextFeature(rows_of(layer));
    add_row(&half, f, has_fids(layer));
    fid = OGR_F_GetFID(f);
    OGR_F_Destroy(f);
    GDALDatasetH zones =
        GDALOpenEx(in_folder("zones.gpkg"), GDAL_OF_VECTOR | GDAL_OF_UPDATE,
                   NULL, NULL, NULL);
    OGRLayerH l = GDALDatasetGetLayer(zones, 0);
    while (OGR_L_GetFeatureCount(l, 1) > 1)
    {
        OGR_L_ResetReading(l);
        f = OGR_L_GetNextFeature(l);
        ck_assert_int_eq(OGR_L_DeleteFeature(l, OGR_F_GetFID(f)), OGRERR_NONE);
        OGR_F_Destroy(f);
    }
    GDALClose(zones);
    settle();
    f = OGR_L_GetFeature(rows_of(layer), fid); /* of what is read */
    ck_assert_ptr_nonnull(f);
    add_row(&rest, f, has_fids(layer));
    ck_assert_str_eq(rest.text[0], before.text[99]);
    free_rows(&rest);
    OGR_F_Destroy(f);
    rest = next_rows(layer, -1);
    ck_assert_int_eq(half.n + rest.n, before.n);
    for (int i = 0; i < rest.n; i++)
        ck_assert_str_eq(rest.text[i], before.text[half.n + i]);
    expect_present_state(layer, words, 0);
    free_rows(&before);
    free_rows(&half);
    free_rows(&rest);
    GDALClose(layer);
}

/* Rows of the join side that match nothing are read again in the end. */
TEST(test_change_before_the_unmatched)
{
    const char *words =
        "-op within -how right -batch 16 @/points.gpkg @/zones.gpkg";
    GDALDatasetH layer = open_well(words);
    struct row_texts rows = next_rows(layer, 1);
    move_first("zones.gpkg", 1000.0);
    settle();
    free_rows(&rows);
    rows = next_rows(layer, -1);
    expect_one_error("changed while it was read");
    free_rows(&rows);
    expect_present_state(layer, words, 5);
    GDALClose(layer);
}

/* A file that is gone, or has other fields, is an error, again and again, until
 * it is mended. */
TEST_LOOP(test_spoiled_files, 0, 4)
{
    const char *words = "-op within -how inner @/p.csv @/q.csv";
    const char *name = _i % 2 == 0 ? "p.csv" : "q.csv";
    const double x[] = {0, 10, 20};
    const OGREnvelope box = {0, 1, 0, 1};
    OGREnvelope extent;
    GDALDatasetH layer;
    struct row_texts rows;
    write_csv("p.csv", "a", x, 3, 0);
    write_csv("q.csv", "b", x, 3, 1);
    settle();
    layer = open_well(words);
    rows = next_rows(layer, -1);
    free_rows(&rows);
    if (_i < 2)
        VSIUnlink(in_folder(name));
    else
        write_csv(name, "other", x, 3, _i % 2);
    for (int i = 0; i < 2; i++)
    {
        const char *says = _i < 2 ? name : "other fields";
        OGR_L_ResetReading(rows_of(layer));
        ck_assert_ptr_null(OGR_L_GetNextFeature(rows_of(layer)));
        expect_one_error(says);
        ck_assert_ptr_null(OGR_L_GetNextFeature(rows_of(layer)));
        expect_no_error();
        ck_assert_int_eq(OGR_L_GetFeatureCount(rows_of(layer), 1), -1);
        expect_one_error(says);
        ck_assert_ptr_null(OGR_L_GetFeature(rows_of(layer), 0));
        expect_one_error(says);
        filter_box(layer, &box);
        ck_assert_ptr_null(OGR_L_GetNextFeature(rows_of(layer)));
        expect_one_error(says);
        OGR_L_SetAttributeFilter(rows_of(layer), "a = 1");
        OGR_L_SetAttributeFilter(rows_of(layer), NULL);
        filter_box(layer, NULL);
        OGR_L_GetExtent(rows_of(layer), &extent, 1);
        forget_said();
        OGR_L_TestCapability(rows_of(layer), OLCRandomRead);
        OGR_L_TestCapability(rows_of(layer), OLCFastFeatureCount);
        OGR_L_TestCapability(rows_of(layer), OLCFastGetExtent);
        OGR_L_TestCapability(rows_of(layer), OLCFastSpatialFilter);
    }
    write_csv(name, _i % 2 == 0 ? "a" : "b", x, 2, _i % 2);
    settle();
    OGR_L_ResetReading(rows_of(layer));
    rows = next_rows(layer, -1);
    ck_assert_int_eq(rows.n, 2);
    expect_no_error();
    free_rows(&rows);
    GDALClose(layer);
}

/* A further field at the end leaves the others where they are. */
TEST(test_further_field)
{
    const char *words = "-op within -how inner @/points.gpkg @/zones.gpkg";
    GDALDatasetH layer = open_well(words);
    struct row_texts before = next_rows(layer, -1), after;
    GDALDatasetH zones =
        GDALOpenEx(in_folder("zones.gpkg"), GDAL_OF_VECTOR | GDAL_OF_UPDATE,
                   NULL, NULL, NULL);
    add_field(GDALDatasetGetLayer(zones, 0), "more", OFTReal);
    GDALClose(zones);
    settle();
    OGR_L_ResetReading(rows_of(layer));
    after = next_rows(layer, -1);
    expect_no_error();
    expect_same(&after, &before, words);
    free_rows(&before);
    free_rows(&after);
    GDALClose(layer);
}

static GDALDatasetH open_spec(const char *text)
{
    VSILFILE *file = VSIFOpenL(in_folder("s.ogrjoin"), "wb");
    VSIFWriteL(text, 1, strlen(text), file);
    VSIFCloseL(file);
    return GDALOpenEx(in_folder("s.ogrjoin"), GDAL_OF_VECTOR, NULL, NULL, NULL);
}

TEST(test_specifications)
{
    static const char *const good[][2] = {
        {"{\"type\":\"ogrjoin\",\"command_line\":\"-op nearest -nln 'a b' "
         "points.gpkg zones.gpkg\"}",
         "a b"},
        {"\xEF\xBB\xBF { \"command_line\" : \"-op nearest -nln "
         "'\\u00fc\\\"\\/' points.gpkg zones.gpkg\" , \"type\" : \"ogrjoin\" "
         "}\n",
         "\xC3\xBC\"/"},
        {"{\"type\":\"ogrjoin\",\"command_line\":\"-op nearest -nln "
         "'\\ud83d\\ude00\\u20ac' points.gpkg zones.gpkg\"}",
         "\xF0\x9F\x98\x80\xE2\x82\xAC"},
        {"{\"x\":[1,-2.5e3,{\"y\":[]},{},\"z\",true,null],\"type\":\"ogrjoin\","
         "\"relative_paths_relative_to_this_file\":true,"
         "\"command_line\":\"-op nearest points.gpkg zones.gpkg\"}",
         "points"},
    };
    static const char *const bad[][2] = {
        {"", "JSON"},
        {" ", "JSON"},
        {"[]", "JSON"},
        {"{", "JSON"},
        {"{}", "\"type\""},
        {"{\"type\":\"x\",\"command_line\":\"\"}", "\"type\""},
        {"{\"type\":1}", "\"type\""},
        {"{\"type\":\"ogrjoin\"}", "command_line"},
        {"{\"type\":\"ogrjoin\",\"command_line\":3}", "command_line"},
        {"{\"type\":\"ogrjoin\",\"command_line\":\"a", "JSON"},
        {"{\"type\":\"ogrjoin\",\"command_line\":\"\\x\"}", "JSON"},
        {"{\"type\":\"ogrjoin\",\"command_line\":\"\\u12\"}", "JSON"},
        {"{\"type\":\"ogrjoin\",\"command_line\":\"\\u0000\"}", "JSON"},
        {"{\"type\":\"ogrjoin\",\"command_line\":\"a\"", "JSON"},
        {"{\"type\":\"ogrjoin\",\"command_line\":\"a\",\"relative_paths_"
         "relative_to_this_file\":1}",
         "true or false"},
        {"{\"type\":\"ogrjoin\",\"command_line\":\"-op nowhere a b\"}",
         "no such join"},
        {"{\"a\":[1 2]}", "JSON"},
        {"{\"a\":{\"b\"}}", "JSON"},
    };
    char deep[400] = "{\"a\":";
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    {
        GDALDatasetH join = open_spec(good[i][0]);
        expect_no_error();
        ck_assert_str_eq(OGR_L_GetName(rows_of(join)), good[i][1]);
        GDALClose(join);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    {
        ck_assert_ptr_null(open_spec(bad[i][0]));
        ck_assert_ptr_nonnull(strstr(said.error, "s.ogrjoin: "));
        expect_one_error(bad[i][1]);
    }
    for (int i = 0; i < 300; i++)
        strcat(deep, "[");
    ck_assert_ptr_null(open_spec(deep));
    expect_one_error("JSON");
}

int main(void)
{
    tcase_add_checked_fixture(tests_open("join_layer_files"),
                              make_settled_layers, remove_layers);
    return tests_run();
}
