/* Jobs that share join sides. Tests files that change, sides that the cache
 * does not keep, and reading that fails or is cancelled.
 * Kind: unit. */
#include "shared_jobs.h"

#include "../../../driver/base/oj_cancel.h"

#include <fcntl.h>
#include <sys/stat.h>

/* ---- files that change -------------------------------------------------- */

static void change_file(const char *name)
{
    ck_assert_int_eq(utimensat(AT_FDCWD, path_of(name), NULL, 0), 0);
    wait_until_changes_show();
}

TEST(changed_file)
{
    const char *line = "-op intersects";
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    make_folder();
    for (int i = 0; i < 2; i++)
    {
        const char *name = i == 0 ? "zones.gpkg" : "zones.shp";
        struct job_trial before, after;
        int64_t n_entries;
        is_found(line, "points.gpkg", name);
        n_entries = oj_join_cache_counts().n_entries;
        change_file(name);
        ck_assert(!is_found(line, "points.gpkg", name));
        ck_assert(join_shared(&before, line, "points.gpkg", name));
        ck_assert_int_eq(oj_join_cache_counts().n_entries, n_entries);
        /* another file with this name; the first job keeps its own join side */
        make_file(i == 0 ? "GPKG" : "ESRI Shapefile", name, 1, N_JOIN, 50,
                  32632);
        wait_until_changes_show();
        ck_assert(!join_shared(&after, line, "points.gpkg", name));
        ck_assert(!same_answer(&before, &after));
        must(&before, stream(&before));
        ck_assert(!same_answer(&before, &after));
        ck_assert(is_found(line, "points.gpkg", name));
        close_job(&before);
        close_job(&after);
    }
    /* a change of a file that accompanies the layer counts as a change of the
     * layer */
    ck_assert_int_eq(VSIRename(path_of("zones.prj"), path_of("zones.no")), 0);
    ck_assert(!is_found(line, "points.gpkg", "zones.shp"));
    remove_folder();
}

TEST(changed_while_open)
{
    const char *line = "-op intersects";
    struct job_trial t, other;
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    make_folder();
    open_job(&t, line, "points.gpkg", "zones.gpkg");
    ck_assert_ptr_nonnull(t.pass.job.join_files.paths);
    change_file("zones.gpkg");
    prepare(&t, NULL);
    ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
    must(&t, stream(&t));
    /* the side has no key in the cache, but a job can be given it explicitly */
    open_job(&other, line, "points.gpkg", "zones.gpkg");
    prepare(&other, &t);
    must(&other, stream(&other));
    ck_assert(same_answer(&t, &other));
    close_job(&t);
    must(&other, stream(&other));
    close_job(&other);
    remove_folder();
}

/* A file that was modified just now may change again without a new modification
 * time. */
TEST(files_too_young)
{
    struct job_trial t;
    struct oj_join_files files;
    struct stat at;
    int64_t changed;
    make_folder();
    open_job(&t, "-op intersects", "points.gpkg", "zones.gpkg");
    ck_assert_int_eq(stat(path_of("zones.gpkg"), &at), 0);
    changed = (int64_t)at.st_ctim.tv_sec * 1000000000 + at.st_ctim.tv_nsec;
    oj_join_files_record(&t.pass.job.join, changed + 1000000, &files);
    ck_assert(!files.is_settled && !oj_join_files_are_unchanged(&files));
    ck_assert(oj_join_files_may_have_changed(&files));
    oj_join_files_free(&files);
    oj_join_files_record(&t.pass.job.join, changed + 3000000000, &files);
    ck_assert_ptr_nonnull(files.paths);
    ck_assert(oj_join_files_are_unchanged(&files));
    ck_assert(!oj_join_files_may_have_changed(&files));
    /* a WAL that is not empty is part of the database */
    {
        VSILFILE *f = VSIFOpenL(path_of("zones.gpkg-wal"), "wb");
        ck_assert_ptr_nonnull(f);
        /* no files: never changed */
        ck_assert(oj_join_files_are_unchanged(&files));
        VSIFWriteL("x", 1, 1, f);
        VSIFCloseL(f);
        ck_assert(!oj_join_files_are_unchanged(&files));
        ck_assert(oj_join_files_may_have_changed(&files));
    }
    oj_join_files_free(&files);
    close_job(&t);
    remove_folder();
}

static void write_text(const char *name, const char *text)
{
    VSILFILE *f = VSIFOpenL(path_of(name), "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(VSIFWriteL(text, 1, strlen(text), f), strlen(text));
    VSIFCloseL(f);
}

/* Writes a file "zones.vrt" with one layer, of that source. */
static void write_vrt(const char *source, const char *layer)
{
    char text[1000];
    snprintf(text, sizeof text,
             "<OGRVRTDataSource><OGRVRTLayer name=\"things\">"
             "<SrcDataSource relativeToVRT=\"1\">%s</SrcDataSource>%s"
             "<LayerSRS>EPSG:32632</LayerSRS></OGRVRTLayer></OGRVRTDataSource>",
             source, layer);
    write_text("zones.vrt", text);
    wait_until_changes_show();
}

static const char from_xy[] =
    "<SrcLayer>zones</SrcLayer><GeometryType>wkbPoint</GeometryType>"
    "<GeometryField encoding=\"PointFromColumns\" x=\"x\" y=\"y\"/>";
static const char by_chance[] =
    "<SrcSQL>SELECT * FROM things ORDER BY random()</SrcSQL>";
static const char ever_the_same[] = "<SrcSQL>SELECT * FROM things</SrcSQL>";

/* Runs two jobs on zones.vrt. Returns 1 if the second used the join side of the
 * first. */
static int is_found_again(void)
{
    is_found("-op nearest", "points.gpkg", "zones.vrt");
    return is_found("-op nearest", "points.gpkg", "zones.vrt");
}

TEST(vrt)
{
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    make_folder();
    write_text("zones.csv", "x,y,n\n1,2,3\n4,5,6\n");
    write_vrt("zones.csv", from_xy);
    ck_assert(is_found_again());
    change_file("zones.csv");
    ck_assert(!is_found("-op nearest", "points.gpkg", "zones.vrt"));
    ck_assert(is_found_again());
    write_text("zones.csvt", "Real,Real,Integer\n");
    wait_until_changes_show();
    ck_assert(!is_found("-op nearest", "points.gpkg", "zones.vrt"));
    write_vrt("zones.gpkg", ever_the_same);
    ck_assert(is_found_again());
    change_file("zones.gpkg");
    ck_assert(!is_found("-op nearest", "points.gpkg", "zones.vrt"));
    /* a VRT with a random SQL function, and a VRT whose source is a VRT */
    oj_join_cache_clear();
    write_vrt("zones.gpkg", by_chance);
    ck_assert(!is_found_again());
    VSIRename(path_of("zones.vrt"), path_of("first.vrt"));
    write_vrt("first.vrt", "<SrcLayer>things</SrcLayer>");
    ck_assert(!is_found_again());
    ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
    remove_folder();
}

TEST(no_cache)
{
    const char *line = "-op intersects -on n=n";
    struct job_trial t, other, alone;
    make_folder();
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", "0");
    ck_assert(!join_shared(&t, line, "points.gpkg", "zones.gpkg"));
    ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
    open_job(&other, line, "points.gpkg", "zones.gpkg");
    prepare(&other, &t);
    ck_assert_ptr_eq(other.pass.job.join_side, t.pass.job.join_side);
    must(&other, stream(&other));
    join_alone(&alone, line, "points.gpkg", "zones.gpkg");
    ck_assert(same_answer(&alone, &other));
    close_job(&t);
    close_job(&other);
    close_job(&alone);
    /* with -memory, each job reads a join side of its own */
    open_job(&t, "-op intersects -memory 1G", "points.gpkg", "zones.gpkg");
    prepare(&t, NULL);
    ck_assert_ptr_eq(t.pass.job.join_side, &t.pass.job.own_join_side);
    open_job(&other, "-op intersects -memory 1G", "points.gpkg", "zones.gpkg");
    prepare(&other, &t);
    ck_assert_ptr_eq(other.pass.job.join_side, &other.pass.job.own_join_side);
    must(&other, stream(&other));
    close_job(&t);
    close_job(&other);
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", NULL);
    remove_folder();
}

TEST(boxes)
{
    struct job_trial t;
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
    must(&t, oj_pass_open_shared(&t.command, NULL, &t.pass, &t.error));
    prepare(&t, NULL);
    ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
    must(&t, stream(&t));
    ck_assert_int_gt(t.n_pairs, 0);
    close_job(&t);
    remove_folder();
}

/* ---- failures ----------------------------------------------------------- */

TEST(cancelled)
{
    static int flag;
    struct job_trial t;
    make_folder();
    oj_cancel_use_flag(&flag);
    open_job(&t, "-op intersects -on n=n -invalid skip", "points.gpkg",
             "zones.gpkg");
    __atomic_store_n(&flag, 1, __ATOMIC_RELAXED);
    oj_job_stop_engine(&t.pass.job);
    ck_assert_int_eq(oj_job_prepare(&t.pass.job, NULL, &t.error),
                     OJ_ERR_CANCELLED);
    ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
    /* the job can be run again, and counts nothing twice */
    __atomic_store_n(&flag, 0, __ATOMIC_RELAXED);
    prepare(&t, NULL);
    must(&t, stream(&t));
    ck_assert_int_eq(t.pass.job.sides.reshape[1].found.n_tested, N_JOIN);
    close_job(&t);
    oj_cancel_use_flag(NULL);
    remove_folder();
}

TEST(failed)
{
    struct job_trial t;
    make_folder();
    for (int i = 0; i < 2; i++)
    {
        open_job(&t, "-op intersects -invalid fail", "points.gpkg",
                 "zones.gpkg");
        ck_assert_int_eq(oj_job_prepare(&t.pass.job, NULL, &t.error),
                         OJ_ERR_DATA);
        ck_assert(strstr(t.error.message, "not valid") != NULL);
        ck_assert_ptr_eq(t.pass.job.join_side, &t.pass.job.own_join_side);
        ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
        close_job(&t);
    }
    remove_folder();
}

int main(void)
{
    tests_open("job_files");
    GDALAllRegister();
    return tests_run();
}
