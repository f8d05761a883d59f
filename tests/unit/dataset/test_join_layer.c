/* A join as a layer: its rows are those that a run writes, in whatever way they
 * are asked for.
 * Kind: comparison with the command; degenerate; memory. */
#include "../run_tests.h"
#include "join_layers.h"

/* ---- rows are those of a run ----------------------------------------------
 */

static const char *const joins[] = {
    "-op nearest @/points.gpkg @/zones.gpkg",
    "-op nearest -max_distance 1 @/points.gpkg @/zones.gpkg",
    "-op nearest -max_distance 1 -batch 64 @/points.fgb @/zones.fgb",
    "-op nearest -max_distance 1 -how inner @/points.gpkg @/zones.gpkg",
    "-op nearest -k 3 -max_distance 8 -batch 50 @/points.gpkg @/zones.gpkg",
    "-op nearest -k 2 -pick max:number @/points.gpkg @/zones.gpkg",
    "-op within -batch 100 @/points.gpkg @/zones.gpkg",
    "-op within -how semi -batch 100 @/points.gpkg @/zones.gpkg",
    "-op within -how anti @/points.fgb @/zones.gpkg",
    "-op within -how right -batch 100 @/points.gpkg @/zones.gpkg",
    "-op within -how full -batch 100 @/points.gpkg @/zones.gpkg",
    "-op within -pick first @/points.geojson @/zones.gpkg",
    "-op contains -agg 'count as n, sum(value), median(value), concat(kind)' "
    "@/zones.gpkg @/points.gpkg",
    "-op contains -how inner -agg 'count as n, max(number)' @/zones.gpkg "
    "@/points.fgb",
    "-op within -select kind,number -join_select name @/points.gpkg "
    "@/zones.gpkg",
    "-op nearest -where 'number > 300 AND number < 420' -batch 16 "
    "@/points.gpkg @/zones.gpkg",
    "-op nearest -spat 10 10 40 40 @/points.gpkg @/zones.gpkg",
    "-op nearest -limit 333 -batch 100 @/points.gpkg @/zones.gpkg",
    "-op nearest -unsetFid @/points.gpkg @/zones.gpkg",
    "-op intersects -geometry intersection @/zones.gpkg @/zones.fgb",
    "-op nearest -geometry connection -nearest_point_fields -bearing_field "
    "@/points.gpkg @/zones.gpkg",
    "-op nearest -geometry join -nlt PROMOTE_TO_MULTI @/points.gpkg "
    "@/zones.gpkg",
    "-op intersects -overlap area,percent -pick largest_overlap @/zones.gpkg "
    "@/zones.fgb",
    "-op window -window 5 5 30 30 -window 20 20 50 50 @/points.gpkg",
    "-op nearest -memory 2M -batch 100 @/points.gpkg @/zones.gpkg",
    "-op within -memory 2M -batch 100 @/points.gpkg @/zones.gpkg",
    "-op nearest -sql 'SELECT geom, number + 1 AS more FROM points' "
    "@/points.gpkg @/zones.gpkg",
    "-op nearest -t_srs EPSG:32618 @/points.gpkg @/zones.gpkg",
    /* More join rows than a word has bits. */
    "-op contains -how right @/zones.gpkg @/points.gpkg",
    "-op contains -how full @/zones.gpkg @/points.gpkg"};

enum
{
    N_JOINS = sizeof joins / sizeof *joins,
    /* Those with the FIDs of the input, by random access. */
    ONE_TO_ONE = 1
};

TEST_LOOP(test_rows, 0, N_JOINS)
{
    const char *words = joins[_i];
    GDALDatasetH layer = open_well(words);
    int has_box = strstr(words, "-spat") != NULL;
    struct row_texts got, expected;
    got = next_rows(layer, -1);
    expected = run_rows(words, has_fids(layer));
    expect_no_error();
    ck_assert_int_gt(got.n, 0);
    if (has_box)
    {
        sort_rows(&got);
        sort_rows(&expected);
    }
    expect_same(&got, &expected, words);
    free_rows(&got);

    ck_assert_ptr_null(OGR_L_GetNextFeature(rows_of(layer)));
    OGR_L_ResetReading(rows_of(layer));
    got = next_rows(layer, 5);
    free_rows(&got);
    OGR_L_ResetReading(rows_of(layer));
    got = next_rows(layer, -1);
    if (has_box)
        sort_rows(&got);
    expect_same(&got, &expected, "again");
    ck_assert_int_eq(OGR_L_GetFeatureCount(rows_of(layer), 0), expected.n);
    expect_no_error();
    free_rows(&got);
    free_rows(&expected);
    GDALClose(layer);
}

/* ---- filters
 * ------------------------------------------------------------------ */

static int is_in(OGRFeatureH f, const OGREnvelope *box)
{
    const double x[] = {box->MinX, box->MaxX, box->MaxX, box->MinX};
    const double y[] = {box->MinY, box->MinY, box->MaxY, box->MaxY};
    OGRGeometryH geometry = OGR_F_GetGeometryRef(f);
    OGRGeometryH ring, polygon;
    int result;
    if (geometry == NULL || OGR_G_IsEmpty(geometry))
        return 0;
    ring = OGR_G_CreateGeometry(wkbLinearRing);
    polygon = OGR_G_CreateGeometry(wkbPolygon);
    for (int i = 0; i < 5; i++)
        OGR_G_AddPoint_2D(ring, x[i % 4], y[i % 4]);
    OGR_G_AddGeometryDirectly(polygon, ring);
    result = OGR_G_Intersects(geometry, polygon);
    OGR_G_DestroyGeometry(polygon);
    return result;
}

/* Rows in the box, and how many came in all. */
static struct row_texts rows_in(GDALDatasetH layer, const OGREnvelope *box,
                                int *n_came)
{
    struct row_texts rows = {0};
    OGRFeatureH f;
    *n_came = 0;
    while ((f = OGR_L_GetNextFeature(rows_of(layer))) != NULL)
    {
        if (is_in(f, box))
            add_row(&rows, f, 1);
        ++*n_came;
        OGR_F_Destroy(f);
    }
    sort_rows(&rows);
    return rows;
}

TEST_LOOP(test_box, 0, N_JOINS)
{
    const OGREnvelope box = {12.0, 23.0, 12.0, 30.0};
    GDALDatasetH layer = open_well(joins[_i]);
    int n_all, n_came;
    struct row_texts expected = rows_in(layer, &box, &n_all), got;
    filter_box(layer, &box);
    /* Of the first ones the filter goes down for certain. */
    if (_i < 3)
        ck_assert_int_eq(said.n_pushed, 1);
    got = rows_in(layer, &box, &n_came);
    expect_same(&got, &expected, joins[_i]);
    ck_assert_int_eq(n_came, got.n);
    free_rows(&got);
    filter_box(layer, NULL);
    got = rows_in(layer, &box, &n_came);
    ck_assert_int_eq(n_came, n_all);
    expect_same(&got, &expected, joins[_i]);
    expect_no_error();
    free_rows(&got);
    free_rows(&expected);
    GDALClose(layer);
}

static int count_rows(GDALDatasetH layer)
{
    struct row_texts rows = next_rows(layer, -1);
    int n = rows.n;
    free_rows(&rows);
    return n;
}

TEST_LOOP(test_where, 0, 8)
{
    static const struct
    {
        const char *words, *where;
        int is_pushed, n;
    } cases[] = {
        {"-op nearest @/points.gpkg @/zones.gpkg", "number < 100", 1, 100},
        /* FlatGeobuf has no features without geometry. */
        {"-op nearest @/points.fgb @/zones.gpkg", "number < 100", 1, 98},
        /* SQLite takes 'park' for another word. */
        {"-op nearest @/points.gpkg @/zones.gpkg", "kind = 'park'", 0, 234},
        {"-op nearest @/points.fgb @/zones.gpkg", "kind = 'park'", 1, 229},
        {"-op nearest @/points.gpkg @/zones.gpkg", "join_distance > 1", 0, 49},
        {"-op nearest -k 2 @/points.gpkg @/zones.gpkg", "number < 100", 1, 198},
        {"-op nearest -limit 50 @/points.gpkg @/zones.gpkg", "number < 100", 0,
         50},
        {"-op nearest -where 'number >= 50' @/points.gpkg @/zones.gpkg",
         "number < 100", 1, 50}};
    GDALDatasetH layer = open_well(cases[_i].words);
    int n_all = count_rows(layer);
    OGR_L_SetAttributeFilter(rows_of(layer), cases[_i].where);
    ck_assert_int_eq(said.n_pushed, cases[_i].is_pushed);
    ck_assert_int_eq(count_rows(layer), cases[_i].n);
    ck_assert_int_eq(OGR_L_GetFeatureCount(rows_of(layer), 1), cases[_i].n);
    OGR_L_SetAttributeFilter(rows_of(layer), NULL);
    ck_assert_int_eq(said.n_pushed, cases[_i].is_pushed);
    ck_assert_int_eq(count_rows(layer), n_all);
    expect_no_error();
    GDALClose(layer);
}

/* ---- errors
 * ------------------------------------------------------------------- */

static void expect_end(GDALDatasetH layer)
{
    OGRFeatureH f;
    while ((f = OGR_L_GetNextFeature(rows_of(layer))) != NULL)
        OGR_F_Destroy(f);
}

TEST(test_error_in_the_midst)
{
    GDALDatasetH layer = open_well(
        "-op within -max_pairs 250 -batch 50 @/points.gpkg @/zones.gpkg");
    struct row_texts rows = next_rows(layer, -1);
    ck_assert_int_gt(rows.n, 50);
    expect_one_error("max_pairs");
    ck_assert_ptr_null(OGR_L_GetNextFeature(rows_of(layer)));
    expect_no_error();
    free_rows(&rows);
    /* And once more from the start. */
    OGR_L_ResetReading(rows_of(layer));
    expect_end(layer);
    expect_one_error("max_pairs");
    ck_assert_int_eq(OGR_L_GetFeatureCount(rows_of(layer), 1), -1);
    expect_one_error("max_pairs");
    GDALClose(layer);
    expect_no_error();
}

/* The first share of a file. */
static void cut(const char *name, const char *to, double share)
{
    char path[600];
    VSILFILE *file;
    vsi_l_offset size;
    GByte *bytes;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert(VSIIngestFile(NULL, path, &bytes, &size, -1));
    snprintf(path, sizeof path, "%s/%s", folder, to);
    file = VSIFOpenL(path, "wb");
    VSIFWriteL(bytes, 1, (size_t)((double)size * share), file);
    VSIFCloseL(file);
    VSIFree(bytes);
}

TEST(test_error_in_the_join_side)
{
    GDALDatasetH layer;
    cut("zones.fgb", "cut_zones.fgb", 0.7);
    layer = open_well("-op nearest @/points.gpkg @/cut_zones.fgb");
    ck_assert_ptr_null(OGR_L_GetNextFeature(rows_of(layer)));
    expect_one_error("zones cannot be read");
    ck_assert_ptr_null(OGR_L_GetFeature(rows_of(layer), 2));
    expect_one_error("zones cannot be read");
    GDALClose(layer);
    expect_no_error();
}

TEST(test_error_in_the_input)
{
    GDALDatasetH layer;
    cut("points.fgb", "cut_points.fgb", 0.7);
    layer = open_well("-op nearest -batch 50 @/cut_points.fgb @/zones.gpkg");
    ck_assert_int_gt(count_rows(layer), 200);
    expect_one_error("points cannot be read");
    ck_assert_ptr_null(OGR_L_GetNextFeature(rows_of(layer)));
    GDALClose(layer);
    expect_no_error();
}

/* ---- the end in between
 * ---------------------------------------------------------- */

TEST(test_close_early)
{
    for (int i = 0; i < 40; i++)
    {
        GDALDatasetH layer =
            open_well("-op nearest -k 3 -batch 16 @/points.gpkg @/zones.gpkg");
        struct row_texts rows = next_rows(layer, i % 8 * 20);
        if (i % 3 == 0)
            OGR_L_ResetReading(rows_of(layer));
        if (i % 3 == 1)
            OGR_F_Destroy(OGR_L_GetFeature(rows_of(layer), i));
        free_rows(&rows);
        GDALClose(layer);
    }
    expect_no_error();
}

/* ---- aggregates either way
 * --------------------------------------------------------- */

TEST(test_aggregates_either_way)
{
    const char *words =
        "-op contains -agg 'count as n, sum(value), median(value), "
        "concat(kind)' -batch 10 @/zones.gpkg @/points.gpkg";
    const OGREnvelope box = {12.0, 23.0, 12.0, 30.0};
    struct row_texts rows[2];
    for (int way = 0; way < 2; way++)
    {
        GDALDatasetH layer;
        OGRFeatureH f;
        struct row_texts some, again;
        int n;
        CPLSetConfigOption("OGRJOIN_AGG_STREAM", way == 0 ? "join" : "input");
        layer = open_well(words);
        rows[way] = next_rows(layer, -1);
        filter_box(layer, &box);
        some = rows_in(layer, &box, &n);
        ck_assert_int_gt(some.n, 0);
        filter_box(layer, NULL);
        f = OGR_L_GetFeature(rows_of(layer), 80);
        ck_assert_ptr_nonnull(f);
        OGR_F_Destroy(f);
        again = next_rows(layer, -1);
        expect_same(&again, &rows[way], "again");
        ck_assert_int_eq(OGR_L_GetFeatureCount(rows_of(layer), 1), N_ZONES);
        expect_no_error();
        free_rows(&some);
        free_rows(&again);
        GDALClose(layer);
    }
    CPLSetConfigOption("OGRJOIN_AGG_STREAM", NULL);
    expect_same(&rows[0], &rows[1], "streamed");
    free_rows(&rows[0]);
    free_rows(&rows[1]);
}

/* ---- memory
 * ----------------------------------------------------------------------- */

/* The n-th allocation fails: an error, or the rows. */
TEST_LOOP(test_memory, 0, 2)
{
    const char *words =
        _i == 0 ? "-op nearest -batch 300 @/points.gpkg @/zones.gpkg"
                : "-op contains -agg 'count as n, median(value)' "
                  "@/zones.gpkg @/points.gpkg";
    GDALDatasetH layer = open_well(words);
    struct row_texts expected = next_rows(layer, 20), got;
    int n_failed = 0;
    GDALClose(layer);
    for (int n = 1; n < 2000; n += n < 200 ? 1 : 17)
    {
        failing = n;
        layer = open_join(words);
        if (layer != NULL)
        {
            got = next_rows(layer, 20);
            oj_alloc_fail_at(0);
            if (said.n_errors == 0)
                expect_same(&got, &expected, words);
            free_rows(&got);
            OGR_L_ResetReading(rows_of(layer));
            GDALClose(layer);
        }
        oj_alloc_fail_at(failing = 0);
        n_failed += said.n_errors > 0;
        ck_assert_int_le(said.n_errors, 1);
        forget_said();
    }
    ck_assert_int_gt(n_failed, 20);
    free_rows(&expected);
}

int main(void)
{
    tcase_add_unchecked_fixture(tests_open("join_layer"), make_layers,
                                remove_layers);
    return tests_run();
}
