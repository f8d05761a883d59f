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
    struct oj_join_layer *layer = open_well(words);
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

    ck_assert_ptr_null(oj_join_layer_next(layer));
    oj_join_layer_reset(layer);
    got = next_rows(layer, 5);
    free_rows(&got);
    oj_join_layer_reset(layer);
    got = next_rows(layer, -1);
    if (has_box)
        sort_rows(&got);
    expect_same(&got, &expected, "again");
    ck_assert_int_eq(oj_join_layer_count(layer, 0), expected.n);
    expect_no_error();
    free_rows(&got);
    free_rows(&expected);
    oj_join_layer_close(layer);
}

/* ---- counts -----------------------------------------------------------------
 */

TEST_LOOP(test_count, 0, N_JOINS)
{
    struct oj_join_layer *layer = open_well(joins[_i]);
    struct row_texts rows = next_rows(layer, 7);
    GIntBig n = oj_join_layer_count(layer, 1);
    struct row_texts rest = next_rows(layer, -1);
    expect_no_error();
    ck_assert_int_eq(n, rows.n + rest.n);
    free_rows(&rows);
    free_rows(&rest);
    oj_join_layer_close(layer);
}

/* ---- single rows
 * ------------------------------------------------------------- */

/* The rows by FID, in the midst of reading them, are the same. */
TEST_LOOP(test_get, 0, N_JOINS)
{
    struct oj_join_layer *layer = open_well(joins[_i]);
    OGRFeatureH f, g;
    int n = 0;
    while ((f = oj_join_layer_next(layer)) != NULL)
    {
        if (n++ % 37 == 0)
        {
            char *a = row_text(f, 1), *b;
            g = oj_join_layer_get(layer, OGR_F_GetFID(f));
            expect_no_error();
            ck_assert_ptr_nonnull(g);
            b = row_text(g, 1);
            ck_assert_str_eq(a, b);
            CPLFree(a);
            CPLFree(b);
            OGR_F_Destroy(g);
        }
        OGR_F_Destroy(f);
    }
    ck_assert_ptr_null(oj_join_layer_get(layer, 123456));
    ck_assert_ptr_null(oj_join_layer_get(layer, -1));
    expect_no_error();
    oj_join_layer_close(layer);
}

TEST_LOOP(test_skip_to, 0, N_JOINS)
{
    struct oj_join_layer *layer = open_well(joins[_i]);
    struct row_texts all = next_rows(layer, -1), one;
    const int places[] = {0, 5, 3, 64, 40, all.n - 1, 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    {
        int place = places[i];
        ck_assert_int_eq(oj_join_layer_skip_to(layer, place), place < all.n);
        one = next_rows(layer, 1);
        ck_assert_int_eq(one.n, place < all.n);
        if (one.n > 0)
            ck_assert_str_eq(one.text[0], all.text[place]);
        free_rows(&one);
    }
    ck_assert_int_eq(oj_join_layer_skip_to(layer, all.n), 0);
    ck_assert_ptr_null(oj_join_layer_next(layer));
    ck_assert_int_eq(oj_join_layer_skip_to(layer, -1), 0);
    ck_assert_ptr_null(oj_join_layer_next(layer));
    expect_no_error();
    free_rows(&all);
    oj_join_layer_close(layer);
}

/* ---- filters
 * ------------------------------------------------------------------ */

static int is_in(OGRFeatureH f, const OGREnvelope *box)
{
    OGRGeometryH geometry = OGR_F_GetGeometryRef(f);
    OGREnvelope e;
    if (geometry == NULL || OGR_G_IsEmpty(geometry))
        return 0;
    OGR_G_GetEnvelope(geometry, &e);
    return e.MaxX >= box->MinX && e.MinX <= box->MaxX && e.MaxY >= box->MinY &&
           e.MinY <= box->MaxY;
}

/* Rows in the box, and how many came in all. */
static struct row_texts rows_in(struct oj_join_layer *layer,
                                const OGREnvelope *box, int *n_came)
{
    struct row_texts rows = {0};
    OGRFeatureH f;
    *n_came = 0;
    while ((f = oj_join_layer_next(layer)) != NULL)
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
    struct oj_join_layer *layer = open_well(joins[_i]);
    int n_all, n_came;
    struct row_texts expected = rows_in(layer, &box, &n_all), got;
    oj_join_layer_filter_box(layer, &box);
    got = rows_in(layer, &box, &n_came);
    expect_same(&got, &expected, joins[_i]);
    ck_assert_int_le(n_came, n_all);
    /* The first ones are pushed down for certain. */
    if (_i < 3)
        ck_assert_int_eq(n_came, got.n);
    free_rows(&got);
    oj_join_layer_filter_box(layer, NULL);
    got = rows_in(layer, &box, &n_came);
    ck_assert_int_eq(n_came, n_all);
    expect_same(&got, &expected, joins[_i]);
    expect_no_error();
    free_rows(&got);
    free_rows(&expected);
    oj_join_layer_close(layer);
}

static int count_rows(struct oj_join_layer *layer)
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
        const char *words, *where, *field;
        int is_pushed, n;
    } cases[] = {
        {"-op nearest @/points.gpkg @/zones.gpkg", "number < 100", "number", 1,
         100},
        /* FlatGeobuf has no features without geometry. */
        {"-op nearest @/points.fgb @/zones.gpkg", "number < 100", "number", 1,
         98},
        /* SQLite takes 'park' for another word. */
        {"-op nearest @/points.gpkg @/zones.gpkg", "kind = 'park'", "kind", 0,
         N_POINTS},
        {"-op nearest @/points.fgb @/zones.gpkg", "kind = 'park'", "kind", 1,
         229},
        {"-op nearest @/points.gpkg @/zones.gpkg", "join_distance > 1",
         "join_distance", 0, N_POINTS},
        {"-op nearest -k 2 @/points.gpkg @/zones.gpkg", "number < 100",
         "number", 1, 198},
        {"-op nearest -limit 50 @/points.gpkg @/zones.gpkg", "number < 100",
         "number", 0, 50},
        {"-op nearest -where 'number >= 50' @/points.gpkg @/zones.gpkg",
         "number < 100", "number", 1, 50}};
    struct oj_join_layer *layer = open_well(cases[_i].words);
    char field[32], *used[] = {field, NULL};
    int n_all = count_rows(layer);
    snprintf(field, sizeof field, "%s", cases[_i].field);
    ck_assert_int_eq(oj_join_layer_filter_where(layer, cases[_i].where, used),
                     cases[_i].is_pushed);
    ck_assert_int_eq(count_rows(layer), cases[_i].n);
    if (cases[_i].is_pushed)
        ck_assert_int_eq(oj_join_layer_count(layer, 1), cases[_i].n);
    else
        ck_assert_int_eq(oj_join_layer_count(layer, 1), -1);
    ck_assert_int_eq(oj_join_layer_filter_where(layer, NULL, NULL), 0);
    ck_assert_int_eq(count_rows(layer), n_all);
    expect_no_error();
    oj_join_layer_close(layer);
}

TEST(test_ignored)
{
    struct oj_join_layer *layer =
        open_well("-op nearest @/points.gpkg @/zones.gpkg");
    OGRFeatureDefnH defn = oj_join_layer_about(layer)->defn;
    const OGREnvelope all = {-1e9, 1e9, -1e9, 1e9};
    int name = OGR_FD_GetFieldIndex(defn, "name");
    char used[] = "name", *fields[] = {used, NULL};
    OGRFeatureH f;
    OGR_Fld_SetIgnored(OGR_FD_GetFieldDefn(defn, 0), 1);
    OGR_Fld_SetIgnored(OGR_FD_GetFieldDefn(defn, name), 1);
    OGR_FD_SetGeometryIgnored(defn, 1);
    f = oj_join_layer_next(layer);
    ck_assert(!OGR_F_IsFieldSet(f, 0) && !OGR_F_IsFieldSet(f, name));
    ck_assert(OGR_F_IsFieldSet(f, 1) && OGR_F_GetGeometryRef(f) == NULL);
    OGR_F_Destroy(f);
    /* What filters look at is there. */
    oj_join_layer_filter_box(layer, &all);
    f = oj_join_layer_next(layer);
    ck_assert(!OGR_F_IsFieldSet(f, 0) && OGR_F_GetGeometryRef(f) != NULL);
    OGR_F_Destroy(f);
    oj_join_layer_filter_box(layer, NULL);
    oj_join_layer_filter_where(layer, "name <> ''", fields);
    f = oj_join_layer_next(layer);
    ck_assert(!OGR_F_IsFieldSet(f, 0) && OGR_F_IsFieldSet(f, name));
    OGR_F_Destroy(f);
    expect_no_error();
    oj_join_layer_close(layer);
}

/* ---- what it says of itself
 * ----------------------------------------------------- */

TEST(test_description)
{
    struct oj_join_layer *layer =
        open_well("-op nearest @/points.gpkg @/zones.gpkg");
    OGRSpatialReferenceH srs;
    OGREnvelope extent;
    OGRFeatureH f;
    ck_assert_str_eq(oj_join_layer_about(layer)->name, "points");
    ck_assert_str_eq(oj_join_layer_about(layer)->fid_column, "fid");
    srs = OGR_GFld_GetSpatialRef(
        OGR_FD_GetGeomFieldDefn(oj_join_layer_about(layer)->defn, 0));
    ck_assert_ptr_nonnull(srs);
    f = oj_join_layer_next(layer);
    ck_assert_ptr_eq(OGR_G_GetSpatialReference(OGR_F_GetGeometryRef(f)), srs);
    OGR_F_Destroy(f);
    ck_assert_str_eq(
        CSLFetchNameValue(oj_join_layer_about(layer)->metadata, "JOIN_LAYER"),
        "zones");
    ck_assert_int_eq(CSLCount(oj_join_layer_about(layer)->files), 2);
    ck_assert_int_eq(oj_join_layer_extent(layer, &extent, 0), 1);
    ck_assert(extent.MinX == 0.0 && extent.MaxX > 70.0);
    ck_assert_int_eq(oj_join_layer_count(layer, 0), N_POINTS);
    ck_assert(oj_join_layer_has(layer, OLCRandomRead));
    ck_assert(oj_join_layer_has(layer, OLCFastFeatureCount));
    ck_assert(!oj_join_layer_has(layer, OLCSequentialWrite));
    oj_join_layer_close(layer);

    layer = open_well("-op nearest -nln all -how inner @/points.gpkg "
                      "@/zones.gpkg");
    ck_assert_str_eq(oj_join_layer_about(layer)->name, "all");
    ck_assert(!oj_join_layer_has(layer, OLCFastFeatureCount));
    ck_assert_int_eq(oj_join_layer_extent(layer, &extent, 1), 0);
    ck_assert_int_eq(oj_join_layer_count(layer, 0), -1);
    oj_join_layer_close(layer);
    expect_no_error();
}

/* ---- errors
 * ------------------------------------------------------------------- */

TEST_LOOP(test_failed_open, 0, 9)
{
    static const struct
    {
        const char *words, *error;
    } cases[] = {
        {"-op nearest @/nothing.gpkg @/zones.gpkg", "nothing.gpkg"},
        {"-op nearest -input_layer x @/points.gpkg @/zones.gpkg",
         "no layer 'x'"},
        {"-op nearest -where 'x y z' @/points.gpkg @/zones.gpkg", "x y z"},
        {"-op nearest -select nothing @/points.gpkg @/zones.gpkg",
         "no field 'nothing'"},
        {"-op nearest -pick max:nothing @/points.gpkg @/zones.gpkg",
         "no field 'nothing'"},
        {"-op nearest -in_place @/points.gpkg @/zones.gpkg", "in_place"},
        {"-op nearest -validate @/points.gpkg @/zones.gpkg", "validate"},
        {"-op nearest -unmatched_layer u @/points.gpkg @/zones.gpkg",
         "unmatched_layer"},
        {"-op nearest @/points.gpkg", "join_ds"}};
    if (_i == 2) /* SQLite says so only when rows are read */
        return;
    ck_assert_ptr_null(open_join(cases[_i].words));
    expect_one_error(cases[_i].error);
}

static void expect_end(struct oj_join_layer *layer)
{
    OGRFeatureH f;
    while ((f = oj_join_layer_next(layer)) != NULL)
        OGR_F_Destroy(f);
}

TEST(test_error_in_the_midst)
{
    struct oj_join_layer *layer = open_well(
        "-op within -max_pairs 250 -batch 50 @/points.gpkg @/zones.gpkg");
    struct row_texts rows = next_rows(layer, -1);
    ck_assert_int_gt(rows.n, 50);
    expect_one_error("max_pairs");
    ck_assert_ptr_null(oj_join_layer_next(layer));
    expect_no_error();
    free_rows(&rows);
    /* And once more from the start. */
    oj_join_layer_reset(layer);
    expect_end(layer);
    expect_one_error("max_pairs");
    ck_assert_int_eq(oj_join_layer_count(layer, 1), -1);
    expect_one_error("max_pairs");
    oj_join_layer_close(layer);
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
    struct oj_join_layer *layer;
    cut("zones.fgb", "cut_zones.fgb", 0.7);
    layer = open_well("-op nearest @/points.gpkg @/cut_zones.fgb");
    ck_assert_ptr_null(oj_join_layer_next(layer));
    expect_one_error("zones cannot be read");
    ck_assert_ptr_null(oj_join_layer_get(layer, 2));
    expect_one_error("zones cannot be read");
    oj_join_layer_close(layer);
    expect_no_error();
}

TEST(test_error_in_the_input)
{
    struct oj_join_layer *layer;
    cut("points.fgb", "cut_points.fgb", 0.7);
    layer = open_well("-op nearest -batch 50 @/cut_points.fgb @/zones.gpkg");
    ck_assert_int_gt(count_rows(layer), 200);
    expect_one_error("points cannot be read");
    ck_assert_ptr_null(oj_join_layer_next(layer));
    oj_join_layer_close(layer);
    expect_no_error();
}

/* ---- the end in between
 * ---------------------------------------------------------- */

TEST(test_close_early)
{
    for (int i = 0; i < 40; i++)
    {
        struct oj_join_layer *layer =
            open_well("-op nearest -k 3 -batch 16 @/points.gpkg @/zones.gpkg");
        struct row_texts rows = next_rows(layer, i % 8 * 20);
        if (i % 3 == 0)
            oj_join_layer_reset(layer);
        if (i % 3 == 1)
            OGR_F_Destroy(oj_join_layer_get(layer, i));
        free_rows(&rows);
        oj_join_layer_close(layer);
    }
    expect_no_error();
}

TEST(test_two_at_once)
{
    const char *words = "-op nearest -batch 32 @/points.gpkg @/zones.gpkg";
    struct oj_join_layer *a = open_well(words), *b = open_well(words);
    struct row_texts x = next_rows(a, 100), y = next_rows(b, -1), z;
    z = next_rows(a, -1);
    ck_assert_int_eq(x.n + z.n, y.n);
    ck_assert_str_eq(x.text[50], y.text[50]);
    ck_assert_str_eq(z.text[50], y.text[150]);
    oj_join_layer_close(b);
    oj_join_layer_close(a);
    expect_no_error();
    free_rows(&x);
    free_rows(&y);
    free_rows(&z);
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
        struct oj_join_layer *layer;
        OGRFeatureH f;
        struct row_texts some, again;
        int n;
        CPLSetConfigOption("OGRJOIN_AGG_STREAM", way == 0 ? "join" : "input");
        layer = open_well(words);
        rows[way] = next_rows(layer, -1);
        oj_join_layer_filter_box(layer, &box);
        some = rows_in(layer, &box, &n);
        ck_assert_int_gt(some.n, 0);
        oj_join_layer_filter_box(layer, NULL);
        f = oj_join_layer_get(layer, 80);
        ck_assert_ptr_nonnull(f);
        OGR_F_Destroy(f);
        again = next_rows(layer, -1);
        expect_same(&again, &rows[way], "again");
        ck_assert_int_eq(oj_join_layer_count(layer, 1), N_ZONES);
        expect_no_error();
        free_rows(&some);
        free_rows(&again);
        oj_join_layer_close(layer);
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
    struct oj_join_layer *layer = open_well(words);
    struct row_texts expected = next_rows(layer, 20), got;
    int n_failed = 0;
    oj_join_layer_close(layer);
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
            oj_join_layer_reset(layer);
            oj_join_layer_close(layer);
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
