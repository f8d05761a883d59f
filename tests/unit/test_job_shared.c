/* Kind: unit. Jobs that share join sides: which of them do, that changed files
 * are read again, and that a borrowed join side answers as one's own does, also
 * to several threads. */
#include "run_tests.h"

#include "../../driver/oj_cancel.h"
#include "../../driver/oj_job.h"
#include "../../driver/oj_select_words.h"
#include "../../flatten/oj_array.h"
#include "../../flatten/oj_matches.h"
#include "../../flatten/oj_table.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum
{
    N_INPUT = 300,
    N_JOIN = 120,
    N_THREADS = 8
};

static char folder[64];

/* ---- files -------------------------------------------------------------- */

/* Good for a few calls more. */
static const char *path_of(const char *name)
{
    static _Thread_local char paths[8][128];
    static _Thread_local int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* Long enough for the times of files to tell a change. */
static void settle(void)
{
    const struct timespec t = {0, 80000000};
    nanosleep(&t, NULL);
}

static void add_field(OGRLayerH layer, const char *name, OGRFieldType type)
{
    OGRFieldDefnH field = OGR_Fld_Create(name, type);
    ck_assert_int_eq(OGR_L_CreateField(layer, field, 1), OGRERR_NONE);
    OGR_Fld_Destroy(field);
}

static OGRGeometryH make_point(double x, double y)
{
    OGRGeometryH point = OGR_G_CreateGeometry(wkbPoint);
    OGR_G_SetPoint_2D(point, 0, x + 0.25, y + 0.5);
    return point;
}

/* A box; a crossed one is not valid. */
static OGRGeometryH make_box(double x, double y, int crossed)
{
    OGRGeometryH ring = OGR_G_CreateGeometry(wkbLinearRing);
    OGRGeometryH polygon = OGR_G_CreateGeometry(wkbPolygon);
    OGR_G_AddPoint_2D(ring, x, y);
    OGR_G_AddPoint_2D(ring, x + 6, crossed ? y + 5 : y);
    OGR_G_AddPoint_2D(ring, x + 6, crossed ? y : y + 5);
    OGR_G_AddPoint_2D(ring, x, y + 5);
    OGR_G_AddPoint_2D(ring, x, y);
    OGR_G_AddGeometryDirectly(polygon, ring);
    return polygon;
}

static void add_row(OGRLayerH layer, int i, int seed, int boxes)
{
    OGRFeatureH feature = OGR_F_Create(OGR_L_GetLayerDefn(layer));
    double x = (i * 37 + seed) % 101 * 0.5, y = (i * 53) % 97 * 0.5;
    char text[20];
    snprintf(text, sizeof text, "%d", i % 7);
    OGR_F_SetFieldInteger(feature, 0, i % 7);
    OGR_F_SetFieldString(feature, 1, text);
    OGR_F_SetFieldDouble(feature, 2, i % 5 * 0.5);
    OGR_F_SetGeometryDirectly(feature, boxes ? make_box(x, y, i % 10 == 3)
                                             : make_point(x, y));
    ck_assert_int_eq(OGR_L_CreateFeature(layer, feature), OGRERR_NONE);
    OGR_F_Destroy(feature);
}

/* A layer "things" of the fields n, t (the same as text) and r; code: of its
 * CRS, or 0. */
static void make_file(const char *driver, const char *name, int boxes, int n,
                      int seed, int code)
{
    GDALDatasetH dataset;
    OGRSpatialReferenceH srs = code > 0 ? OSRNewSpatialReference(NULL) : NULL;
    OGRLayerH layer;
    VSIUnlink(path_of(name));
    dataset = GDALCreate(GDALGetDriverByName(driver), path_of(name), 0, 0, 0,
                         GDT_Unknown, NULL);
    ck_assert_msg(dataset != NULL, "%s: %s", name, CPLGetLastErrorMsg());
    if (srs != NULL)
    {
        ck_assert_int_eq(OSRImportFromEPSG(srs, code), OGRERR_NONE);
        OSRSetAxisMappingStrategy(srs, OAMS_TRADITIONAL_GIS_ORDER);
    }
    layer = GDALDatasetCreateLayer(dataset, "things", srs,
                                   boxes ? wkbPolygon : wkbPoint, NULL);
    ck_assert_ptr_nonnull(layer);
    add_field(layer, "n", OFTInteger);
    add_field(layer, "t", OFTString);
    add_field(layer, "r", OFTReal);
    ck_assert_int_eq(OGR_L_StartTransaction(layer), OGRERR_NONE);
    for (int i = 0; i < n; i++)
        add_row(layer, i, seed, boxes);
    ck_assert_int_eq(OGR_L_CommitTransaction(layer), OGRERR_NONE);
    GDALClose(dataset);
    if (srs != NULL)
        OSRRelease(srs);
}

static void make_folder(void)
{
    strcpy(folder, "/tmp/oj_job_shared_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    make_file("GPKG", "points.gpkg", 0, N_INPUT, 3, 32632);
    make_file("GPKG", "zones.gpkg", 1, N_JOIN, 11, 32632);
    make_file("GPKG", "zones33.gpkg", 1, N_JOIN, 11, 32633);
    make_file("GPKG", "points33.gpkg", 0, N_INPUT, 3, 32633);
    make_file("FlatGeobuf", "zones.fgb", 1, N_JOIN, 11, 32632);
    make_file("GeoJSON", "zones.geojson", 1, N_JOIN, 11, 0);
    make_file("ESRI Shapefile", "zones.shp", 1, N_JOIN, 11, 32632);
    settle();
}

static void remove_folder(void)
{
    oj_join_cache_clear();
    VSIRmdirRecursive(folder);
}

/* ---- jobs --------------------------------------------------------------- */

struct pair
{
    int64_t row, fid; /* of the input, of the join feature */
    double measure;
};

/* A job with all that it needs, and its answer. */
struct trial
{
    struct oj_command command;
    struct oj_job job;
    struct oj_error error;
    struct pair *pairs;
    int64_t n_pairs, cap_pairs;
};

/* line: options; input and join: files in the folder. */
static void parse(struct trial *t, const char *line, const char *input,
                  const char *join)
{
    char **words = CSLTokenizeString2(line, " ", 0);
    oj_status status;
    memset(t, 0, sizeof *t);
    words = CSLAddString(words, "-q");
    words = CSLAddString(words, path_of("unused.csv"));
    words = CSLAddString(words, path_of(input));
    words = CSLAddString(words, path_of(join));
    status = oj_command_parse(CSLCount(words), (const char *const *)words,
                              &t->command, &t->error);
    ck_assert_msg(status == OJ_OK, "%s: %s", line, t->error.message);
    CSLDestroy(words);
}

static void open_job(struct trial *t, const char *line, const char *input,
                     const char *join)
{
    oj_status status;
    parse(t, line, input, join);
    status = oj_job_open_shared(&t->command, &t->job, &t->error);
    ck_assert_msg(status == OJ_OK, "%s: %s", line, t->error.message);
}

static void close_job(struct trial *t)
{
    oj_job_close(&t->job);
    oj_command_free(&t->command);
    oj_free(t->pairs);
    memset(t, 0, sizeof *t);
}

static oj_status add_answer(void *user, const struct oj_pipeline_part *part,
                            const struct oj_matches *matches,
                            struct oj_error *err)
{
    struct trial *t = user;
    const struct oj_answer_side side =
        oj_job_answer_side(&t->job, part->answer);
    int64_t first = t->job.batches[part->slot].first_row + part->first_row;
    OJ_TRY(oj_reserve(&t->pairs, t->n_pairs, t->n_pairs + matches->n_entries,
                      &t->cap_pairs, sizeof *t->pairs, err));
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int64_t end = oj_matches_end(matches, row);
        for (int64_t p = oj_matches_first(matches, row); p < end; p++)
        {
            struct pair *pair = &t->pairs[t->n_pairs];
            if (matches->join_row[p] < 0)
                continue;
            memset(pair, 0, sizeof *pair);
            pair->row = first + row;
            pair->fid = side.flat.fid[matches->join_row[p]];
            if (matches->measure[p] >= 0.0) /* predicates have NaN */
                pair->measure = matches->measure[p];
            t->n_pairs++;
        }
    }
    return OJ_OK;
}

static oj_status stream(struct trial *t)
{
    const struct oj_pipeline_sink sink = {add_answer, t};
    t->n_pairs = 0;
    return oj_job_stream(&t->job, 0, &sink, &t->error);
}

static void must(struct trial *t, oj_status status)
{
    ck_assert_msg(status == OJ_OK, "%s", t->error.message);
}

static int same_answer(const struct trial *a, const struct trial *b)
{
    return a->n_pairs == b->n_pairs &&
           memcmp(a->pairs, b->pairs, (size_t)a->n_pairs * sizeof *a->pairs) ==
               0;
}

/* What the command would do. */
static void join_alone(struct trial *t, const char *line, const char *input,
                       const char *join)
{
    parse(t, line, input, join);
    must(t, oj_job_open(&t->command, &t->job, &t->error));
    must(t, oj_job_prepare(&t->job, &t->error));
    must(t, stream(t));
}

static int64_t n_built(void)
{
    return oj_join_cache_counts().n_built;
}

static int64_t n_found(void)
{
    return oj_join_cache_counts().n_found;
}

/* Opens, prepares and streams; 1 when the join side was there. */
static int join_shared(struct trial *t, const char *line, const char *input,
                       const char *join)
{
    int64_t built = n_built(), found = n_found();
    open_job(t, line, input, join);
    must(t, oj_job_prepare_shared(&t->job, &t->error));
    ck_assert_int_eq(n_built() - built + n_found() - found, 1);
    must(t, stream(t));
    return n_found() > found;
}

/* The same for once. */
static int is_found(const char *line, const char *input, const char *join)
{
    struct trial t;
    int found = join_shared(&t, line, input, join);
    close_job(&t);
    return found;
}

/* ---- who shares --------------------------------------------------------- */

/* Each of another join side. */
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

/* Each shares the join side of its neighbour. */
static const char *const pairs[][2] = {
    {"-op nearest", "-op nearest -where n<3"},
    {"-op nearest", "-op nearest -limit 7"},
    {"-op nearest", "-op nearest -select n -prefix j_"},
    {"-op intersects", "-op intersects -how inner"},
    {"-op nearest", "-op NEAREST -k 1"},
};

START_TEST(equal_lines_share)
{
    int n = (int)(sizeof lines / sizeof *lines);
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    make_folder();
    for (int i = 0; i < n; i++)
    {
        struct trial alone, first, second;
        int may_be_there = strstr(lines[i], "-crs ignore") != NULL;
        join_alone(&alone, lines[i], "points.gpkg", "zones.gpkg");
        ck_assert_msg(join_shared(&first, lines[i], "points.gpkg",
                                  "zones.gpkg") == may_be_there,
                      "%s", lines[i]);
        ck_assert_msg(
            join_shared(&second, lines[i], "points.gpkg", "zones.gpkg") == 1,
            "%s", lines[i]);
        ck_assert_ptr_eq(first.job.join_side, second.job.join_side);
        ck_assert_msg(same_answer(&alone, &first), "%s", lines[i]);
        ck_assert_msg(same_answer(&alone, &second), "%s", lines[i]);
        ck_assert_msg(alone.n_pairs > 0, "%s", lines[i]);
        /* What is said of the join side is said of both. */
        ck_assert_mem_eq(&first.job.join_side->counts.shapes,
                         &alone.job.join_side->counts.shapes,
                         sizeof alone.job.join_side->counts.shapes);
        for (int k = 0; k < 2; k++)
        {
            struct trial *t = k == 0 ? &first : &second;
            struct oj_side_findings a = oj_sides_findings(&alone.job.sides, 1);
            struct oj_side_findings b = oj_sides_findings(&t->job.sides, 1);
            ck_assert_str_eq(a.reason, b.reason);
            memset(a.reason, 0, sizeof a.reason);
            memset(b.reason, 0, sizeof b.reason);
            ck_assert_mem_eq(&a, &b, sizeof a);
        }
        close_job(&first);
        must(&second, stream(&second)); /* again, the first is gone */
        ck_assert(same_answer(&alone, &second));
        close_job(&second);
        close_job(&alone);
    }
    for (int i = 0; i < (int)(sizeof pairs / sizeof *pairs); i++)
    {
        ck_assert(is_found(pairs[i][0], "points.gpkg", "zones.gpkg"));
        ck_assert_msg(is_found(pairs[i][1], "points.gpkg", "zones.gpkg"), "%s",
                      pairs[i][1]);
    }
    remove_folder();
}
END_TEST

START_TEST(formats_share)
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
END_TEST

/* The join side is in the input's CRS. */
START_TEST(crs_counts)
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
END_TEST

/* side: what the join side asks for. */
static void must_not_keep(void (*change)(struct oj_side *side))
{
    struct trial t;
    parse(&t, "-op nearest", "points.gpkg", "zones.gpkg");
    change(&t.command.join);
    must(&t, oj_job_open_shared(&t.command, &t.job, &t.error));
    ck_assert_ptr_null(t.job.join_files.paths);
    must(&t, oj_job_prepare_shared(&t.job, &t.error));
    must(&t, stream(&t));
    ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
    close_job(&t);
}

static void ask_by_chance(struct oj_side *side)
{
    side->where = "random() > 0 OR n < 9";
}

static void select_by_chance(struct oj_side *side)
{
    side->sql = "SELECT * FROM things ORDER BY random()";
}

static void select_elsewhere(struct oj_side *side)
{
    side->sql = "SELECT things.* FROM things";
    side->dialect = "OGRSQL";
}

static void select_as_ever(struct oj_side *side)
{
    side->sql = "SELECT a.fid, a.geom, a.n FROM things a WHERE a.n < 5";
}

START_TEST(what_varies_is_not_kept)
{
    struct trial t;
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
        must(&t, oj_job_open_shared(&t.command, &t.job, &t.error));
        must(&t, oj_job_prepare_shared(&t.job, &t.error));
        ck_assert_int_eq(n_found() - found, i);
        close_job(&t);
    }
    remove_folder();
}
END_TEST

START_TEST(words_of_selects)
{
    ck_assert(!oj_select_may_vary("SELECT a, b FROM c WHERE known > 3"));
    ck_assert(!oj_select_may_vary("date > '2020-01-01' AND \"time\" = 3"));
    ck_assert(oj_select_may_vary("t > datetime('NOW')"));
    ck_assert(oj_select_may_vary("t > CURRENT_TIMESTAMP"));
    ck_assert(oj_select_may_vary("abs(Random ()) % 2"));
    ck_assert(oj_select_may_vary("\"random\"() > 0"));
    ck_assert(oj_select_may_vary("random/**/() > 0"));
    ck_assert(oj_select_may_vary("ogr_layer_Extent('x')"));
    ck_assert(!oj_select_may_reach_out("SELECT a.b FROM a", NULL, "GPKG"));
    ck_assert(!oj_select_may_reach_out("SELECT a.b FROM a", "", "SQLite"));
    ck_assert(oj_select_may_reach_out("SELECT a.b FROM a", "OGRSQL", "GPKG"));
    ck_assert(oj_select_may_reach_out("SELECT * FROM 'o.shp'.o", NULL, "CSV"));
    ck_assert(oj_select_may_reach_out("SELECT * FROM a.b", NULL, "FlatGeobuf"));
    ck_assert(!oj_select_may_reach_out(
        "SELECT * FROM a WHERE x < 1.5 OR y > .5", NULL, "CSV"));
    ck_assert(oj_select_may_reach_out("SELECT * FROM a1.1b", NULL, "CSV"));
}
END_TEST

/* ---- files that change -------------------------------------------------- */

static void touch(const char *name)
{
    ck_assert_int_eq(utimensat(AT_FDCWD, path_of(name), NULL, 0), 0);
    settle();
}

START_TEST(changed_file)
{
    const char *line = "-op intersects";
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    make_folder();
    for (int i = 0; i < 2; i++)
    {
        const char *name = i == 0 ? "zones.gpkg" : "zones.shp";
        struct trial before, after, alone;
        int64_t n_entries;
        is_found(line, "points.gpkg", name);
        n_entries = oj_join_cache_counts().n_entries;
        touch(name);
        ck_assert(!is_found(line, "points.gpkg", name));
        ck_assert(join_shared(&before, line, "points.gpkg", name));
        ck_assert_int_eq(oj_join_cache_counts().n_entries, n_entries);
        /* Other content, by the same name; the first keeps what it has. */
        make_file(i == 0 ? "GPKG" : "ESRI Shapefile", name, 1, N_JOIN, 50,
                  32632);
        settle();
        ck_assert(!join_shared(&after, line, "points.gpkg", name));
        join_alone(&alone, line, "points.gpkg", name);
        ck_assert(same_answer(&alone, &after));
        ck_assert(!same_answer(&before, &after));
        must(&before, stream(&before));
        ck_assert(!same_answer(&before, &after));
        ck_assert(is_found(line, "points.gpkg", name));
        close_job(&before);
        close_job(&after);
        close_job(&alone);
    }
    /* A file beside it counts, too. */
    ck_assert_int_eq(VSIRename(path_of("zones.prj"), path_of("zones.no")), 0);
    ck_assert(!is_found(line, "points.gpkg", "zones.shp"));
    remove_folder();
}
END_TEST

START_TEST(changed_while_open)
{
    const char *line = "-op intersects";
    struct trial t, other;
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    make_folder();
    open_job(&t, line, "points.gpkg", "zones.gpkg");
    ck_assert_ptr_nonnull(t.job.join_files.paths);
    touch("zones.gpkg");
    must(&t, oj_job_prepare_shared(&t.job, &t.error));
    ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
    must(&t, stream(&t));
    /* Nobody finds it, but it can be shared. */
    open_job(&other, line, "points.gpkg", "zones.gpkg");
    must(&other, oj_job_prepare_like(&other.job, &t.job, &other.error));
    must(&other, stream(&other));
    ck_assert(same_answer(&t, &other));
    close_job(&t);
    must(&other, stream(&other));
    close_job(&other);
    remove_folder();
}
END_TEST

/* Times that are too young cannot tell the next change. */
START_TEST(files_too_young)
{
    struct trial t;
    struct oj_join_files files = {0};
    struct stat at;
    int64_t changed;
    make_folder();
    open_job(&t, "-op intersects", "points.gpkg", "zones.gpkg");
    ck_assert_int_eq(stat(path_of("zones.gpkg"), &at), 0);
    changed = (int64_t)at.st_ctim.tv_sec * 1000000000 + at.st_ctim.tv_nsec;
    must(&t,
         oj_join_files_look(&t.job.join, changed + 1000000, &files, &t.error));
    ck_assert_ptr_null(files.paths);
    ck_assert(!oj_join_files_same(&files));
    must(&t, oj_join_files_look(&t.job.join, changed + 3000000000, &files,
                                &t.error));
    ck_assert_ptr_nonnull(files.paths);
    ck_assert(oj_join_files_same(&files));
    /* A journal with something in it is part of the database. */
    {
        VSILFILE *f = VSIFOpenL(path_of("zones.gpkg-wal"), "wb");
        ck_assert_ptr_nonnull(f);
        ck_assert(oj_join_files_same(&files)); /* empty: none */
        VSIFWriteL("x", 1, 1, f);
        VSIFCloseL(f);
        ck_assert(!oj_join_files_same(&files));
    }
    oj_join_files_free(&files);
    close_job(&t);
    remove_folder();
}
END_TEST

START_TEST(no_cache)
{
    const char *line = "-op intersects -on n=n";
    struct trial t, other, alone;
    make_folder();
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", "0");
    ck_assert(!join_shared(&t, line, "points.gpkg", "zones.gpkg"));
    ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
    open_job(&other, line, "points.gpkg", "zones.gpkg");
    must(&other, oj_job_prepare_like(&other.job, &t.job, &other.error));
    ck_assert_ptr_eq(other.job.join_side, t.job.join_side);
    must(&other, stream(&other));
    join_alone(&alone, line, "points.gpkg", "zones.gpkg");
    ck_assert(same_answer(&alone, &other));
    close_job(&t);
    close_job(&other);
    close_job(&alone);
    /* Under -memory each has its own. */
    open_job(&t, "-op intersects -memory 1G", "points.gpkg", "zones.gpkg");
    must(&t, oj_job_prepare_shared(&t.job, &t.error));
    ck_assert_ptr_eq(t.job.join_side, &t.job.own_join_side);
    open_job(&other, "-op intersects -memory 1G", "points.gpkg", "zones.gpkg");
    must(&other, oj_job_prepare_like(&other.job, &t.job, &other.error));
    ck_assert_ptr_eq(other.job.join_side, &other.job.own_join_side);
    must(&other, stream(&other));
    close_job(&t);
    close_job(&other);
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    remove_folder();
}
END_TEST

START_TEST(boxes)
{
    struct trial t;
    char **words = CSLTokenizeString2("-op window -window 0 0 20 20 -window 5 "
                                      "5 30 30 -q",
                                      " ", 0);
    make_folder();
    memset(&t, 0, sizeof t);
    words = CSLAddString(words, path_of("unused.csv"));
    words = CSLAddString(words, path_of("points.gpkg"));
    must(&t, oj_command_parse(CSLCount(words), (const char *const *)words,
                              &t.command, &t.error));
    CSLDestroy(words);
    must(&t, oj_job_open_shared(&t.command, &t.job, &t.error));
    must(&t, oj_job_prepare_shared(&t.job, &t.error));
    ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
    must(&t, stream(&t));
    ck_assert_int_gt(t.n_pairs, 0);
    close_job(&t);
    remove_folder();
}
END_TEST

/* ---- failures and threads ----------------------------------------------- */

START_TEST(cancelled)
{
    static int flag;
    struct trial t;
    make_folder();
    oj_cancel_use(&flag);
    open_job(&t, "-op intersects -on n=n -invalid skip", "points.gpkg",
             "zones.gpkg");
    __atomic_store_n(&flag, 1, __ATOMIC_RELAXED);
    oj_job_stop(&t.job);
    ck_assert_int_eq(oj_job_prepare_shared(&t.job, &t.error), OJ_ERR_CANCELLED);
    ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
    /* The same job may try again, and counts nothing twice. */
    __atomic_store_n(&flag, 0, __ATOMIC_RELAXED);
    must(&t, oj_job_prepare_shared(&t.job, &t.error));
    must(&t, stream(&t));
    ck_assert_int_eq(oj_sides_findings(&t.job.sides, 1).n_tested, N_JOIN);
    close_job(&t);
    oj_cancel_use(NULL);
    remove_folder();
}
END_TEST

START_TEST(failed)
{
    struct trial t;
    make_folder();
    for (int i = 0; i < 2; i++)
    {
        open_job(&t, "-op intersects -invalid fail", "points.gpkg",
                 "zones.gpkg");
        ck_assert_int_eq(oj_job_prepare_shared(&t.job, &t.error), OJ_ERR_DATA);
        ck_assert(strstr(t.error.message, "not valid") != NULL);
        ck_assert_ptr_eq(t.job.join_side, &t.job.own_join_side);
        ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
        close_job(&t);
    }
    remove_folder();
}
END_TEST

START_TEST(without_memory)
{
    const char *line = "-op nearest -on n=n -threads 1 -centroid_of join";
    oj_status status = OJ_ERR_NOMEM;
    struct trial t, alone;
    make_folder();
    join_alone(&alone, line, "points.gpkg", "zones.gpkg");
    for (int64_t n = 1; status != OJ_OK; n++)
    {
        open_job(&t, line, "points.gpkg", "zones.gpkg");
        oj_alloc_fail_at(n);
        status = oj_job_prepare_shared(&t.job, &t.error);
        oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        if (status != OJ_OK)
        {
            ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
            close_job(&t);
        }
        ck_assert_int_lt(n, 10000);
    }
    must(&t, stream(&t));
    ck_assert(same_answer(&alone, &t));
    close_job(&t);
    close_job(&alone);
    remove_folder();
}
END_TEST

struct worker
{
    pthread_t thread;
    const char *line;
    const struct trial *alone;
    int n_wrong;
};

static void *work(void *user)
{
    struct worker *w = user;
    for (int round = 0; round < 10; round++)
    {
        struct trial t;
        parse(&t, w->line, "points.gpkg", "zones.gpkg");
        if (oj_job_open_shared(&t.command, &t.job, &t.error) != OJ_OK ||
            oj_job_prepare_shared(&t.job, &t.error) != OJ_OK ||
            stream(&t) != OJ_OK || !same_answer(w->alone, &t))
            w->n_wrong++;
        close_job(&t);
    }
    return NULL;
}

START_TEST(threads)
{
    static const char *const few[] = {"-op nearest -k 2",
                                      "-op intersects -on t=n",
                                      "-op nearest -exclude field=t"};
    struct worker workers[N_THREADS];
    struct trial alone[3];
    int64_t built;
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    make_folder();
    built = n_built();
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < 3; i++)
        join_alone(&alone[i], few[i], "points.gpkg", "zones.gpkg");
    for (int i = 0; i < N_THREADS; i++)
    {
        workers[i].line = few[i % 3];
        workers[i].alone = &alone[i % 3];
        ck_assert_int_eq(
            pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++)
    {
        pthread_join(workers[i].thread, NULL);
        ck_assert_int_eq(workers[i].n_wrong, 0);
    }
    ck_assert_int_eq(n_built() - built, 3);
    for (int i = 0; i < 3; i++)
        close_job(&alone[i]);
    remove_folder();
}
END_TEST

int main(void)
{
    TCase *tcase = tests_open("job_shared");
    GDALAllRegister();
    tcase_add_test(tcase, words_of_selects);
    tcase_add_test(tcase, equal_lines_share);
    tcase_add_test(tcase, formats_share);
    tcase_add_test(tcase, crs_counts);
    tcase_add_test(tcase, what_varies_is_not_kept);
    tcase_add_test(tcase, changed_file);
    tcase_add_test(tcase, changed_while_open);
    tcase_add_test(tcase, files_too_young);
    tcase_add_test(tcase, no_cache);
    tcase_add_test(tcase, boxes);
    tcase_add_test(tcase, cancelled);
    tcase_add_test(tcase, failed);
    tcase_add_test(tcase, without_memory);
    tcase_add_test(tcase, threads);
    return tests_run();
}
