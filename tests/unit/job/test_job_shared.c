/* Which jobs share a join side. A job that borrows a side gets the answers of a
 * side of its own; dataset_stream checks this for many joins.
 * Kind: unit. */
#include "shared_jobs.h"

#include "../../../driver/base/oj_sql_volatility.h"

/* ---- jobs that share a side ---------------------------------------------- */

/* Command lines whose join sides all differ. */
static const char *const lines[] = {
    "-op nearest",
    "-op nearest -k 3",
    "-op nearest -ties all",
    "-op nearest -max_distance 2",
    "-op nearest -distance_to boundary",
    "-op nearest -max_distance 9 -min_distance 1",
    "-op nearest -threads 1",
    "-op nearest -backend geos",
    "-op dwithin -max_distance 2",
    "-op dwithin -join_max_distance_field r",
    "-op intersects",
    "-op within",
    "-op relate -relate T********",
    "-op relate -relate T*F******",
    "-op intersects -on n=n",
    "-op intersects -on t=n",
    "-op intersects -on n=n,t=t",
    "-op intersects -exclude field=n",
    "-op intersects -exclude same_geometry",
    "-op intersects -invalid skip",
    "-op intersects -invalid fix",
    "-op nearest -centroid_of join",
    "-op nearest -point_on_surface_of join",
    "-op intersects -join_where n<4",
    "-op intersects -join_select n",
    "-op intersects -join_select t,n",
    "-op nearest -crs ignore -join_srs EPSG:32631",
    "-op nearest -join_srs EPSG:32631",
    "-op intersects -joo LIST_ALL_TABLES=NO",
};

/* Pairs of command lines. Both lines of a pair share a join side. */
static const char *const pairs[][2] = {
    {"-op nearest", "-op nearest -where n<3"},
    {"-op nearest", "-op nearest -limit 7"},
    {"-op nearest", "-op nearest -select n -prefix j_"},
    {"-op intersects", "-op intersects -how inner"},
};

TEST(equal_lines_share)
{
    int n = (int)(sizeof lines / sizeof *lines);
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    make_folder();
    for (int i = 0; i < n; i++)
    {
        int may_be_there = strstr(lines[i], "-crs ignore") != NULL;
        ck_assert_msg(is_found(lines[i], "points.gpkg", "zones.gpkg") ==
                          may_be_there,
                      "%s", lines[i]);
        ck_assert_msg(is_found(lines[i], "points.gpkg", "zones.gpkg"), "%s",
                      lines[i]);
    }
    for (int i = 0; i < (int)(sizeof pairs / sizeof *pairs); i++)
    {
        ck_assert(is_found(pairs[i][0], "points.gpkg", "zones.gpkg"));
        ck_assert_msg(is_found(pairs[i][1], "points.gpkg", "zones.gpkg"), "%s",
                      pairs[i][1]);
    }
    remove_folder();
}

/* Notices about a join side are repeated for each job that borrows it. The side
 * remains when the job that made it has ended. */
TEST(borrowed_sides_are_whole)
{
    static const char *const made[] = {
        "-op intersects -invalid skip", "-op intersects -invalid fix -on t=n",
        "-op nearest -point_on_surface_of join -exclude field=n",
        "-op nearest -k 2 -ties all"};
    make_folder();
    for (int i = 0; i < 4; i++)
    {
        struct job_trial alone, first, second;
        struct oj_side_findings a, b;
        join_alone(&alone, made[i], "points.gpkg", "zones.gpkg");
        ck_assert(!join_shared(&first, made[i], "points.gpkg", "zones.gpkg"));
        ck_assert(join_shared(&second, made[i], "points.gpkg", "zones.gpkg"));
        ck_assert(same_answer(&alone, &first));
        close_job(&first);
        must(&second, stream(&second));
        ck_assert(same_answer(&alone, &second));
        ck_assert_mem_eq(&second.pass.job.join_side->counts.shapes,
                         &alone.pass.job.join_side->counts.shapes,
                         sizeof alone.pass.job.join_side->counts.shapes);
        a = alone.pass.job.sides.reshape[1].found;
        b = second.pass.job.sides.reshape[1].found;
        ck_assert_str_eq(a.reason, b.reason);
        memset(a.reason, 0, sizeof a.reason);
        memset(b.reason, 0, sizeof b.reason);
        ck_assert_mem_eq(&a, &b, sizeof a);
        close_job(&second);
        close_job(&alone);
    }
    remove_folder();
}

TEST(formats_share)
{
    static const char *const files[] = {"zones.gpkg", "zones.fgb",
                                        "zones.geojson", "zones.shp"};
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    make_folder();
    for (int i = 0; i < 4; i++)
    {
        const char *line = "-op intersects -crs ignore";
        ck_assert_msg(!is_found(line, "points.gpkg", files[i]), "%s", files[i]);
        ck_assert_msg(is_found(line, "points.gpkg", files[i]), "%s", files[i]);
    }
    remove_folder();
}

/* A join side is reprojected to the CRS of the input. So jobs with inputs of
 * different CRS do not share it. */
TEST(crs_counts)
{
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    make_folder();
    ck_assert(!is_found("-op nearest", "points.gpkg", "zones33.gpkg"));
    ck_assert(is_found("-op nearest", "points.gpkg", "zones33.gpkg"));
    ck_assert(!is_found("-op nearest", "points33.gpkg", "zones33.gpkg"));
    ck_assert(
        is_found("-op nearest -crs ignore", "points.gpkg", "zones33.gpkg"));
    ck_assert(is_found("-op nearest -t_srs EPSG:32632", "points33.gpkg",
                       "zones33.gpkg"));
    remove_folder();
}

/* Asserts that the cache does not keep a join side with the option that
 * change() sets. */
static void must_not_keep(void (*change)(struct oj_source_options *side))
{
    struct job_trial t;
    parse(&t, "-op nearest", "points.gpkg", "zones.gpkg");
    change(&t.command.join);
    must(&t, oj_pass_open_shared(&t.command, NULL, &t.pass, &t.error));
    prepare(&t, NULL);
    must(&t, stream(&t));
    ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
    close_job(&t);
}

static void ask_by_chance(struct oj_source_options *side)
{
    side->where = "random() > 0 OR n < 9";
}

static void select_by_chance(struct oj_source_options *side)
{
    side->sql = "SELECT * FROM things ORDER BY random()";
}

static void select_elsewhere(struct oj_source_options *side)
{
    side->sql = "SELECT things.* FROM things";
    side->dialect = "OGRSQL";
}

static void select_as_ever(struct oj_source_options *side)
{
    side->sql = "SELECT a.fid, a.geom, a.n FROM things a WHERE a.n < 5";
}

TEST(what_varies_is_not_kept)
{
    struct job_trial t;
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    make_folder();
    must_not_keep(ask_by_chance);
    must_not_keep(select_by_chance);
    must_not_keep(select_elsewhere);
    for (int i = 0; i < 2; i++)
    {
        int64_t found = n_found();
        parse(&t, "-op nearest", "points.gpkg", "zones.gpkg");
        select_as_ever(&t.command.join);
        must(&t, oj_pass_open_shared(&t.command, NULL, &t.pass, &t.error));
        prepare(&t, NULL);
        ck_assert_int_eq(n_found() - found, i);
        close_job(&t);
    }
    remove_folder();
}

TEST(words_of_selects)
{
    ck_assert(!oj_sql_select_may_vary("SELECT a, b FROM c WHERE known > 3"));
    ck_assert(!oj_sql_select_may_vary("date > '2020-01-01' AND \"time\" = 3"));
    ck_assert(oj_sql_select_may_vary("t > datetime('NOW')"));
    ck_assert(oj_sql_select_may_vary("t > CURRENT_TIMESTAMP"));
    ck_assert(oj_sql_select_may_vary("abs(Random ()) % 2"));
    ck_assert(oj_sql_select_may_vary("\"random\"() > 0"));
    ck_assert(oj_sql_select_may_vary("random/**/() > 0"));
    ck_assert(oj_sql_select_may_vary("ogr_layer_Extent('x')"));
    ck_assert(
        !oj_sql_select_may_read_other_files("SELECT a.b FROM a", NULL, "GPKG"));
    ck_assert(
        !oj_sql_select_may_read_other_files("SELECT a.b FROM a", "", "SQLite"));
    ck_assert(oj_sql_select_may_read_other_files("SELECT a.b FROM a", "OGRSQL",
                                                 "GPKG"));
    ck_assert(oj_sql_select_may_read_other_files("SELECT * FROM 'o.shp'.o",
                                                 NULL, "CSV"));
    ck_assert(oj_sql_select_may_read_other_files("SELECT * FROM a.b", NULL,
                                                 "FlatGeobuf"));
    ck_assert(!oj_sql_select_may_read_other_files(
        "SELECT * FROM a WHERE x < 1.5 OR y > .5", NULL, "CSV"));
    ck_assert(
        oj_sql_select_may_read_other_files("SELECT * FROM a1.1b", NULL, "CSV"));
}

int main(void)
{
    tests_open("job_shared");
    GDALAllRegister();
    return tests_run();
}
