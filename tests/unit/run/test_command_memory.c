/* Runs whole command lines in this process while an allocation fails, either
 * alone (at every other place), or with all later ones. The run must end with
 * an error that names the lack of memory. It must leave no new file, and an old
 * file unchanged. Another run with memory must give the usual rows, as must a
 * run that manages without the allocation.
 *
 * A place of an allocation is identified by its ten innermost calls. Over all
 * lines each place fails once, and in each line a few more do. With
 * OGRJOIN_TEST_LONG=1 each place fails three times, in both ways, each followed
 * by a run with memory.
 * Kind: memory. */
#include <errno.h>
#include <stdlib.h>

static int is_to_fail_alone(void);

/* This program includes its own copy of oj_alloc.c. In it, each allocation can
 * be made to fail. */
#define aligned_alloc(alignment, bytes)                                        \
    (is_to_fail_alone() ? NULL : aligned_alloc(alignment, bytes))
#define posix_memalign(array, alignment, bytes)                                \
    (is_to_fail_alone() ? ENOMEM : posix_memalign(array, alignment, bytes))
#include "../../../flatten/base/oj_alloc.c"

#include "../random_numbers.h"
#include "../run_tests.h"

#include "../../../driver/base/oj_message.h"
#include "../../../driver/base/oj_shell_words.h"
#include "../../../driver/command/oj_parsed_command.h"
#include "../../../driver/dataset/oj_dataset_name.h"
#include "../../../driver/job/oj_join_side_cache.h"
#include "../../../driver/run/oj_run.h"
#include "../../../flatten/read/oj_layer_arrow.h"

#include <cpl_conv.h>
#include <cpl_error.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>
#include <gdal_utils.h>
#include <ogr_api.h>
#if OJ_HAVE_ARROW
#include <ogr_recordbatch.h>
#endif

#include <execinfo.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

void RegisterOGRJOIN(void); /* function of the driver, which the test links */

/* Command lines. A line that names no file of the folder out gets the output
 * out/a.fgb. A line with JOIN: is opened as a dataset and read, by the Arrow
 * stream if it ends with ARROW. Sources without a file name extension are
 * FlatGeobuf files. */
static const char *const lines[] = {
    /* old files */
    "-overwrite out/old.fgb points boxes",
    "-overwrite -nln things out/old.gpkg points boxes",
    "-append -how semi -nln things out/old.gpkg points.gpkg boxes.gpkg",
    "-update -nln more out/old.gpkg points boxes",
    "-in_place -pick first out/old.gpkg boxes.gpkg",
    "-in_place -op nearest -agg 'count, sum(n)' out/old.gpkg boxes",
    "-in_place -in_place_unsafe -pick first out/old.geojson boxes",
    /* predicates */
    "-op within -name_count c out/a.gpkg points.gpkg boxes.gpkg",
    "-op contains -how inner boxes points",
    "-op covers -overlap area,length,percent boxes lines",
    "-op contains_properly -how full boxes.shp points.shp",
    "-op touches -exclude same_geometry boxes boxes",
    "-op crosses -geometry intersection out/a.gpkg lines boxes",
    "-op overlaps -unordered_pairs boxes boxes",
    "-op equals out/a.csv boxes boxes.geojson",
    "-op disjoint -how inner out/a.gpkg boxes lines",
    "-relate T*F**F*** out/a.geojson boxes boxes",
    "-op bbox -how right -geometry join lines boxes",
    "-window 400000 5800000 400060 5800060 -window 4e5 58e5 4001e2 58e5 lines",
    "-op overlaps -backend geos boxes boxes.geojson",
    "-op intersects -backend geos_sorted points boxes",
    "-op within -backend spatialindex points boxes",
    "-op intersects -backend spatialindex_collective points boxes",
    "-invalid skip -centroid_of input boxes boxes",
    "-invalid fix -point_on_surface_of both -op nearest boxes lines",
    /* distances */
    "-distance_to boundary -nearest_point_fields points boxes",
    "-op nearest -k 3 -ties all points points",
    "-op nearest -max_distance 30 -min_distance 5 points lines",
    "-op nearest -k 2 -geometry connection out/a.gpkg boxes lines",
    "-op nearest -geometry nearest_point lines boxes",
    "-op nearest -distance frechet lines lines.shp",
    "-op nearest -k 2 -distance hausdorff -densify 20 lines boxes",
    "-op dwithin -max_distance 90 -distance directed_hausdorff boxes lines",
    "-op nearest -distance hausdorff_points -backend cut_points lines boxes",
    "-op nearest -distance frechet -backend geos lines lines.shp",
    "-op nearest -k 2 -backend geos points boxes",
    "-op nearest -backend quadrant -quadrant_size 4 points lines",
    "-op nearest -k 2 -backend quadrant points boxes",
    "-op nearest -k 2 -backend zlists points points.shp",
    "-op dwithin -max_distance 90 -join_sql 'SELECT * FROM things ORDER BY n "
    "DESC' points points.gpkg",
    "-op dwithin -max_distance 0.02km -min_distance 1 boxes lines",
    "-max_distance_field reach points boxes",
    "-join_max_distance_field reach lines boxes",
    "-op dwithin -max_distance 20 -backend zlists points points.shp",
    "-op dwithin -max_distance 60 -nearest_point_fields boxes lines",
    "-metric sphere -op nearest -k 2 far_points far_boxes",
    "-metric sphere -op dwithin -max_distance 0.05km -bearing_field "
    "-centroid_of input far_lines far_boxes",
    "-metric sphere -join_max_distance_field reach:m -geometry connection "
    "out/a.geojson far_points far_points",
    "-metric sphere -op nearest -backend sphere far_points far_lines",
    "-metric sphere -op nearest -distance frechet far_lines far_lines",
    /* texts, vectors, equal values */
    "-similar name:0.4 points boxes",
    "-similar kind:0.9 points points.shp",
    "-similar name:0.3 -tokens words -measure cosine -fold none -k 2 points "
    "boxes",
    "-similar name+kind=name:0.4 -tokens 3grams -measure overlap -fold case "
    "-backend lists points boxes",
    "-op dwithin -max_distance 50 -similar name:0.2 -similar kind:0.1 -measure "
    "dice -pick most_similar points boxes",
    "-similar name:0.5 -word_map words.csv points.csv boxes.csv",
    "-vector a+b:2 -max_difference 0.3 points boxes",
    "-vector a+b -norm l1 -k 3 points boxes",
    "-vector a+b -norm cosine -max_difference 0.2 points.geojson boxes",
    "-vector a+b -norm linf -max_difference 0.2 -backend zlists points boxes",
    "-vector a+b -max_difference 0.2 -backend lists points boxes",
    "-op nearest -on kind,n=n -exclude field=name points boxes.gpkg",
    "-vector a+b -max_difference 0.3 -one_to_one points boxes",
    /* rows */
    "-agg 'count, sum(n), mean(price), min(day), max(name), first(n), "
    "last(name)' boxes points",
    "-agg \"median(price), stddev(a), mode(kind), unique(name), concat(name,'; "
    "')\" out/a.gpkg boxes.gpkg points.gpkg",
    "-agg 'weighted_sum(price), count, sum(n)' boxes lines",
    "-agg 'covered_area, covered_percent, covered_length' boxes boxes.shp",
    "-agg covered_length lines boxes",
    "-pick largest_overlap boxes boxes.shp",
    "-pick smallest_area points boxes",
    "-pick max:price points boxes",
    "-op dwithin -max_distance 40 -one_to_one points points.shp",
    "-similar name:0.3 -one_to_one out/a.gpkg points.gpkg points.gpkg",
    "-op dwithin -max_distance 40 -one_to_one best points points.shp",
    "-how full -unmatched_layer x -unmatched_join_layer y out/a.gpkg "
    "points.gpkg boxes.gpkg",
    "-unmatched_join_layer y -prefix p_ -nlt NONE -batch 7 out/a.gpkg points "
    "lines",
    /* sources, coordinates, formats */
    "-where 'n < 5' -join_where \"kind <> 'k1'\" -select name,n -join_select "
    "price -limit 20 points.gpkg boxes.gpkg",
    "-sql 'SELECT geom, n + 1 AS n FROM things' -join_sql 'SELECT n FROM "
    "things WHERE n > 2' -join_dialect OGRSQL -on n out/a.gpkg points.gpkg "
    "boxes.gpkg",
    "-spat 4e5 58e5 4001e2 58001e2 -unsetFid -crs ignore points.shp boxes.csv",
    "points.geojson far_boxes",
    "-op nearest -t_srs EPSG:32633 far_points lines.shp",
    "-s_srs EPSG:25833 -join_srs EPSG:25833 -a_srs EPSG:32633 points.csv "
    "boxes.csv",
    "-nlt PROMOTE_TO_MULTI -lco SPATIAL_INDEX=NO -nln x out/a.gpkg boxes "
    "points",
    /* tiles */
    "-memory 3000 points boxes",
    "-memory 3000 -op nearest -k 2 -batch 8 points lines",
    "-memory 3000 -agg 'count, median(n)' boxes points",
    "-memory 3000 -similar name:0.4 points boxes",
    "-memory 3000 -op nearest -on kind -exclude field=name points boxes",
    "-memory 3000 -join_max_distance_field reach points boxes",
    "-memory 3000 -vector a+b -max_difference 0.3 points boxes",
    "-memory 3000 -op dwithin -max_distance 40 -one_to_one -join_sql 'SELECT * "
    "FROM points' points points.shp",
    /* proofs, and lines that only print */
    "-json_summary out/b.json -validate -validate_report out/b.csv points "
    "boxes",
    "-op nearest -k 2 -validate spatialindex points lines",
    "-op touches -validate boxes boxes",
    "-similar name:0.4 -validate points boxes",
    "-metric sphere -op nearest -validate far_points far_boxes",
    "-agg 'count, sum(n)' -validate boxes points",
    "-explain -op nearest -k 2 points lines",
    "-explain -agg 'count' -memory 3000 boxes points",
    "-benchmark -benchmark_csv out/a.txt points boxes",
    "-benchmark -op nearest points lines",
    "-write_spec out/a.ogrjoin -op nearest -where 'n < 5' points boxes",
    "-op nearest -distance frechet -validate lines lines.shp",
    /* joins as layers */
    "JOIN:-op nearest points.gpkg boxes.gpkg",
    "JOIN:-op within -how full -batch 8 points boxes",
    "JOIN:-agg 'count, median(n)' boxes points",
    "JOIN:-memory 3000 points boxes",
    "JOIN:-op nearest -k 2 points far_boxes ARROW",
    "JOIN:-geometry intersection boxes boxes.shp ARROW",
};

enum
{
    N_LINES = (int)(sizeof lines / sizeof *lines),
    /* number of allocations that always fail, spread over a line */
    N_SPREAD = 3,
    MOST_TRIED = 4000, /* maximum allocations of a line that are tested */
    NOTE = -1          /* no allocation fails; places are only recorded */
};

static int n_times = 1; /* how often a place fails */

/* ---- allocations ---------------------------------------------------------
 */

static struct
{
    pthread_mutex_t mutex;
    /* how many allocations of a place (a stack of up to 10 calls) are in `at`;
     * the index is the upper 20 bits of the stack's hash, which two places
     * rarely share */
    unsigned char n_noted[1 << 20];
    int is_noting;
    /* numbers of the allocations of a line that will fail */
    int64_t at[MOST_TRIED + N_SPREAD];
    int n;
    /* number of the single allocation that fails next; 0: none */
    int64_t alone;
} noted = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ byte[i]) * 0x100000001B3u; /* FNV-1a */
    return hash;
}

/* Returns 1 if this allocation, the last one that was counted, is the one that
 * must fail alone. While places are recorded (is_noting), returns 0 and adds
 * the allocation to `at` if its place has fewer than n_times there. */
static int is_to_fail_alone(void)
{
    void *calls[10];
    uint64_t place;
    int64_t n = atomic_load(&n_allocations);
    if (!noted.is_noting)
        return n == noted.alone;
    pthread_mutex_lock(&noted.mutex);
    place = hash_bytes(1, calls, (size_t)backtrace(calls, 10) * sizeof *calls);
    if (noted.n < MOST_TRIED && noted.n_noted[place >> 44] < n_times)
    {
        noted.n_noted[place >> 44]++;
        noted.at[noted.n++] = n;
    }
    pthread_mutex_unlock(&noted.mutex);
    return 0;
}

/* ---- layers --------------------------------------------------------------
 */

/* Writes shapes. Boxes overlap, touch and repeat; one is invalid. One box and
 * one line have many vertices. */
static void put_shape(VSILFILE *file, const char *shapes, int i)
{
    int is_point = shapes[0] == 'p', is_box = shapes[0] == 'b';
    int n = is_point ? 1 : i == 5 ? 200 : is_box ? 4 : 3 + i % 5;
    double x = is_box ? i % 5 * 50 : i * 7 % 23 * 10 + (i % 3 == 0) * 5;
    double y = is_box ? i / 5 % 4 * 45 : i * 11 % 19 * 10;
    double reach = is_point ? 0 : 8 * (30 + i % 3 * 6);
    for (int j = 0; j <= n - is_point; j++)
    {
        int at = i == 11 && (j == 1 || j == 2) ? 3 - j : j % n;
        double angle = 6.283185307179586 * (at + 0.5) / n;
        VSIFPrintfL(file, "%s%.9g %.9g", j == 0 ? "" : ",",
                    400000 + x + rint(reach * cos(angle)) / 8,
                    5800000 + y + rint(reach * sin(angle)) / 8);
    }
}

static void write_csv(const char *shapes, int n, const char *type)
{
    static const char *const words[] = {"Old",  "Mill", "Road", "Park",
                                        "Lane", "St.",  "North"};
    VSILFILE *file = VSIFOpenL(CPLSPrintf("%s.csv", shapes), "wb");
    int is_double = strstr(type, "((") != NULL;
    VSIFPrintfL(file, "name,n,kind,price,a,b,reach,day,WKT\n");
    for (int i = 0; i < n; i++)
    {
        VSIFPrintfL(file, "%s %s %s,%d,k%d,%s,%.2f,%.2f,%d,2024-02-%02d,\"%s",
                    words[i % 7], words[i / 2 % 7], words[i / 3 % 5], i % 9,
                    i % 4, i % 6 == 5 ? "" : CPLSPrintf("%d.25", i % 8),
                    i % 10 * 0.1, i % 7 * 0.2, i % 5 * 20, 1 + i % 28, type);
        put_shape(file, shapes, i);
        VSIFPrintfL(file, is_double ? "))\"\n" : ")\"\n");
    }
    ck_assert_int_eq(VSIFCloseL(file), 0);
}

static void convert_layer(const char *shapes, const char *to, const char *crs)
{
    const char *open_options[] = {"AUTODETECT_TYPE=YES", NULL};
    char **words = CSLTokenizeString(CPLSPrintf(
        "-nln things -select name,n,kind,price,a,b,reach,day %s", crs));
    GDALVectorTranslateOptions *options =
        GDALVectorTranslateOptionsNew(words, NULL);
    GDALDatasetH made, source;
    source = GDALOpenEx(CPLSPrintf("%s.csv", shapes), GDAL_OF_VECTOR, NULL,
                        open_options, NULL);
    made = GDALVectorTranslate(to, NULL, 1, &source, options, NULL);
    ck_assert_msg(made != NULL, "%s: %s", to, CPLGetLastErrorMsg());
    GDALClose(made);
    GDALClose(source);
    GDALVectorTranslateOptionsFree(options);
    CSLDestroy(words);
}

/* Makes a layer. type is the WKT of a geometry up to its first coordinate. */
static void make_layer(const char *shapes, int n, const char *type)
{
    static const char *const endings[] = {"gpkg", "shp", "geojson", "fgb"};
    write_csv(shapes, n, type);
    for (int i = 0; i < 4; i++)
        convert_layer(shapes, CPLSPrintf("%s.%s", shapes, endings[i]),
                      "-a_srs EPSG:25833");
    convert_layer(shapes, "far.fgb", "-s_srs EPSG:25833 -t_srs EPSG:4326");
    VSIRename(CPLSPrintf("%s.fgb", shapes), shapes);
    VSIRename("far.fgb", CPLSPrintf("far_%s", shapes));
}

/* ---- a run ---------------------------------------------------------------
 */

/* the original stdout, and /dev/null, as file descriptors */
static int screen, nowhere;
static char message[1024]; /* first error message; "": none */
static int n_reported;     /* number of errors that GDAL's handler received */

static void CPL_STDCALL take_message(CPLErr level, CPLErrorNum number,
                                     const char *text)
{
    (void)number;
    n_reported += level == CE_Failure;
    if (level == CE_Failure && message[0] == '\0')
        snprintf(message, sizeof message, "%s", text);
}

struct answer
{
    int64_t n_rows, n_allocations;
    /* hash of the exit code, and of rows and files in any order */
    uint64_t hash;
    int is_done;
};

static void add_row(OGRFeatureH f, struct answer *a)
{
    OGRGeometryH shape = OGR_F_GetGeometryRef(f);
    GIntBig fid = OGR_F_GetFID(f);
    char *wkt = NULL;
    uint64_t hash = hash_bytes(7, &fid, sizeof fid);
    for (int i = 0; i < OGR_F_GetFieldCount(f); i++)
    {
        const char *text = OGR_F_GetFieldAsString(f, i);
        hash = hash_bytes(hash, text, strlen(text) + 1);
    }
    if (shape != NULL && OGR_G_ExportToWkt(shape, &wkt) == OGRERR_NONE)
        hash = hash_bytes(hash, wkt, strlen(wkt));
    CPLFree(wkt);
    a->hash += hash;
    a->n_rows++;
}

/* Adds the number of rows, and the number of NULLs in each column, to the
 * answer. */
static void add_arrow_rows(OGRLayerH layer, struct answer *a)
{
#if OJ_HAVE_ARROW
    struct ArrowArrayStream stream;
    struct ArrowArray array;
    int code;
    if (!OGR_L_GetArrowStream(layer, &stream, NULL))
        return;
    while ((code = stream.get_next(&stream, &array)) == 0 &&
           array.release != NULL)
    {
        a->n_rows += array.length;
        a->hash += (uint64_t)array.length << 32;
        for (int64_t i = 0; i < array.n_children; i++)
            a->hash += (uint64_t)(i * array.children[i]->null_count);
        array.release(&array);
    }
    if (code != 0 && n_reported == 0)
        take_message(CE_Failure, 0, stream.get_last_error(&stream));
    stream.release(&stream);
#else
    (void)layer, (void)a;
#endif
}

static void add_dataset(const char *name, int by_arrow, struct answer *a)
{
    GDALDatasetH dataset = GDALOpenEx(name, GDAL_OF_VECTOR, NULL, NULL, NULL);
    OGRFeatureH f;
    for (int i = 0; dataset != NULL && i < GDALDatasetGetLayerCount(dataset);
         i++)
    {
        OGRLayerH layer = GDALDatasetGetLayer(dataset, i);
        if (by_arrow)
            add_arrow_rows(layer, a);
        while (!by_arrow && (f = OGR_L_GetNextFeature(layer)) != NULL)
        {
            add_row(f, a);
            OGR_F_Destroy(f);
        }
    }
    GDALClose(dataset);
}

/* Adds the contents of the folder out. */
static void read_out(struct answer *a)
{
    char **names = VSIReadDir("out");
    for (int i = 0; i < CSLCount(names); i++)
    {
        if (!EQUAL(names[i], ".") && !EQUAL(names[i], ".."))
            a->hash += hash_bytes(3, names[i], strlen(names[i]));
        if (names[i][0] != '.')
            add_dataset(CPLSPrintf("out/%s", names[i]), 0, a);
    }
    CSLDestroy(names);
}

/* Restores the folder out to its state before the line. */
static void prepare_out(const char *line)
{
    static const char *const old[][2] = {{"out/old.gpkg", "points.gpkg"},
                                         {"out/old.fgb", "points"},
                                         {"out/old.geojson", "points.geojson"}};
    VSIRmdirRecursive("out");
    ck_assert_int_eq(VSIMkdir("out", 0755), 0);
    for (int i = 0; i < 3; i++)
        ck_assert(strstr(line, old[i][0]) == NULL ||
                  CPLCopyFile(old[i][0], old[i][1]) == 0);
}

static void run_command(char **words, int n_words, struct answer *a)
{
    static struct oj_message_list messages;
    struct oj_message_sink sink;
    struct oj_error error = {OJ_OK, ""};
    struct oj_command command = {0};
    int exit_code = 0;
    oj_status status;
    messages.n = messages.n_reported = 0;
    fflush(stdout);
    ck_assert_int_ge(dup2(nowhere, STDOUT_FILENO), 0);
    oj_message_redirect_to_list(&messages, &sink);
    status =
        oj_command_parse(n_words, (const char *const *)words, &command, &error);
    if (status == OJ_OK)
        status = command.write_spec != NULL
                     ? oj_write_spec_run(&command, &error)
                     : oj_run(&command, &exit_code, &error);
    oj_message_end_redirection();
    fflush(stdout);
    ck_assert_int_ge(dup2(screen, STDOUT_FILENO), 0);
    oj_command_free(&command);
    snprintf(message, sizeof message, "%s", error.message);
    a->is_done = status == OJ_OK;
    a->hash = (uint64_t)exit_code;
}

/* Runs a line. If n is positive, allocation n fails, with all later ones unless
 * alone is 1. The answer includes the files that the line leaves. */
static struct answer run_line(const char *line, int64_t n, int alone)
{
    struct answer a = {0};
    struct oj_error error;
    char whole[1024], **words = NULL;
    int n_words = 0, is_read = STARTS_WITH(line, "JOIN:");
    const char *by_arrow = strstr(line, " ARROW");
    /* the cache stays for the repeated run, which may use kept data */
    if (n != 0)
        oj_join_cache_clear();
    prepare_out(line);
    snprintf(whole, sizeof whole, "%s%.*s -threads 1",
             is_read || strstr(line, " out/a") || strstr(line, "out/old") ||
                     strstr(line, "-benchmark")
                 ? ""
                 : "out/a.fgb ",
             (int)(by_arrow != NULL ? by_arrow - line : (long)strlen(line)),
             line);
    ck_assert(oj_words_split(whole, &words, &n_words, &error) == OJ_OK);
    message[0] = '\0';
    n_reported = 0;
    oj_alloc_fail_at(alone || n == NOTE ? 0 : n);
    noted.alone = alone ? n : 0;
    noted.is_noting = n == NOTE;
    if (is_read)
        add_dataset(whole, by_arrow != NULL, &a);
    else
        run_command(words, n_words, &a);
    noted.alone = noted.is_noting = 0;
    a.n_allocations = oj_alloc_fail_at(0);
    oj_free(words);
    if (is_read)
        a.is_done = message[0] == '\0';
    else
        read_out(&a);
    return a;
}

/* ---- the tests ----------------------------------------------------------- */

static struct
{
    const char *line;
    int64_t n;
    int alone, n_failures;
} now;

static void check_outcome(int is_right, const char *wrong)
{
    if (is_right)
        return;
    now.n_failures++;
    fprintf(stderr, "%s\n  allocation %lld%s: %s: %s\n", now.line,
            (long long)now.n, now.alone ? " alone" : "", wrong, message);
}

static int count_open_files(void)
{
    int n = 0;
    for (int i = 0; i < 1024; i++)
        n += fcntl(i, F_GETFD) >= 0;
    return n;
}

/* Makes allocation n fail, with all later ones unless alone is 1. Returns 1 if
 * the line fails. */
static int try_allocation(int64_t n, int alone, uint64_t before, uint64_t truth)
{
    struct answer a = run_line(now.line, n, alone);
    now.n = n;
    now.alone = alone;
    if (a.is_done)
    {
        check_outcome(a.hash == truth, "other rows");
        return 0;
    }
    check_outcome(strstr(message, "memory") != NULL, "another reason");
    check_outcome(!STARTS_WITH(now.line, "JOIN:") || n_reported == 1,
                  "not reported once");
    check_outcome(STARTS_WITH(now.line, "JOIN:") || a.hash == before,
                  "files are left or changed");
    if (n_times > 1 || n % 16 == 0)
    {
        a = run_line(now.line, 0, 0);
        check_outcome(a.is_done && a.hash == truth, "with memory other rows");
    }
    return 1;
}

static void try_line(const char *line)
{
    struct answer before = {0}, truth;
    int n_failed = 0, n_tried = 0, n_files;
    /* with OGRJOIN_TEST_SHORT only every third place; each line begins at
     * another */
    int step = is_switched_on("OGRJOIN_TEST_SHORT") ? 3 : 1;
    static int n_lines;
    now.line = line;
    now.n = 0;
    prepare_out(line);
    read_out(&before);
    noted.n = 0;
    truth = run_line(line, NOTE, 0);
    check_outcome(truth.is_done, "fails with memory");
    n_files = count_open_files();
    for (int i = 1; i <= N_SPREAD; i++)
        noted.at[noted.n++] = 1 + i * truth.n_allocations / (N_SPREAD + 1);
    for (int i = n_lines++ % step; i < noted.n; i += step, n_tried++)
    {
        n_failed += try_allocation(noted.at[i], i % 2, before.hash, truth.hash);
        if (n_times > 1)
            try_allocation(noted.at[i], i % 2 == 0, before.hash, truth.hash);
    }
    check_outcome(count_open_files() == n_files, "files stay open");
    printf("%4lld rows, %5lld allocations, %3d tried, %3d did without: %s\n",
           (long long)truth.n_rows, (long long)truth.n_allocations, n_tried,
           n_tried - n_failed, line);
    fflush(stdout);
}

TEST(every_line)
{
    char folder[32];
    VSILFILE *file;
    /* the folder is in memory, because a disk takes twice as long */
    strcpy(folder, access("/dev/shm", W_OK) == 0 ? "/dev/shm/ogrjoin_XXXXXX"
                                                 : "/tmp/ogrjoin_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    n_times = getenv("OGRJOIN_TEST_LONG") != NULL ? 3 : 1;
    screen = dup(STDOUT_FILENO);
    nowhere = open("/dev/null", O_WRONLY);
    CPLSetConfigOption("OGR_SQLITE_SYNCHRONOUS", "OFF");
    GDALAllRegister();
    RegisterOGRJOIN();
    make_layer("points", 40, "POINT (");
    make_layer("boxes", 22, "POLYGON ((");
    make_layer("lines", 16, "LINESTRING (");
    file = VSIFOpenL("words.csv", "wb");
    VSIFPrintfL(file, "st,street\nold,\n");
    ck_assert_int_eq(VSIFCloseL(file), 0);
    CPLSetErrorHandler(take_message);
    for (int i = 0; i < N_LINES; i++)
    {
        if (OJ_HAVE_ARROW || strstr(lines[i], " ARROW") == NULL)
            try_line(lines[i]);
        else
            printf("skipped, with GDAL before 3.6: %s\n", lines[i]);
    }
    oj_join_cache_clear();
    CPLSetErrorHandler(NULL);
    ck_assert_int_eq(chdir("/"), 0);
    VSIRmdirRecursive(folder);
    ck_assert_int_eq(now.n_failures, 0);
}

int main(void)
{
    tests_open("command memory");
    return tests_run();
}
