/** Jobs on files in a folder of their own, opened to share their join sides.
 *  Include once. */
#ifndef SHARED_JOBS_H
#define SHARED_JOBS_H

#include "../run_tests.h"

#include "../../../driver/command/oj_command.h"
#include "../../../driver/rows/oj_pass.h"
#include "../../../flatten/arrays/oj_matches.h"
#include "../../../flatten/base/oj_array.h"

#include <cpl_conv.h>
#include <cpl_string.h>
#include <cpl_vsi.h>
#include <gdal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum
{
    N_INPUT = 300,
    N_JOIN = 120
};

static char folder[64];

/* ---- files -------------------------------------------------------------- */

/* Good for a few calls more. */
static inline const char *path_of(const char *name)
{
    static _Thread_local char paths[8][128];
    static _Thread_local int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* Long enough for the times of files to tell a change. */
static inline void settle(void)
{
    const struct timespec t = {0, 80000000};
    nanosleep(&t, NULL);
}

static inline void add_field(OGRLayerH layer, const char *name,
                             OGRFieldType type)
{
    OGRFieldDefnH field = OGR_Fld_Create(name, type);
    ck_assert_int_eq(OGR_L_CreateField(layer, field, 1), OGRERR_NONE);
    OGR_Fld_Destroy(field);
}

static inline OGRGeometryH make_point(double x, double y)
{
    OGRGeometryH point = OGR_G_CreateGeometry(wkbPoint);
    OGR_G_SetPoint_2D(point, 0, x + 0.25, y + 0.5);
    return point;
}

/* A box; a crossed one is not valid. */
static inline OGRGeometryH make_box(double x, double y, int crossed)
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

static inline void add_row(OGRLayerH layer, int i, int seed, int boxes)
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
static inline void make_file(const char *driver, const char *name, int boxes,
                             int n, int seed, int code)
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

static inline void make_folder(void)
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

static inline void remove_folder(void)
{
    oj_join_cache_clear();
    VSIRmdirRecursive(folder);
}

/* ---- jobs --------------------------------------------------------------- */

struct job_pair
{
    int64_t row, fid; /* of the input, of the join feature */
    double measure;
};

/* A job with all that it needs, and its answer. */
struct job_trial
{
    struct oj_command command;
    struct oj_pass pass;
    struct oj_error error;
    struct job_pair *pairs;
    int64_t n_pairs, cap_pairs;
};

/* line: options; input and join: files in the folder. */
static inline void parse(struct job_trial *t, const char *line,
                         const char *input, const char *join)
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

static inline void open_job(struct job_trial *t, const char *line,
                            const char *input, const char *join)
{
    oj_status status;
    parse(t, line, input, join);
    status = oj_job_open(&t->command, 1, &t->pass.job, &t->error);
    ck_assert_msg(status == OJ_OK, "%s: %s", line, t->error.message);
}

static inline void close_job(struct job_trial *t)
{
    oj_pass_close(&t->pass);
    oj_command_free(&t->command);
    oj_free(t->pairs);
    memset(t, 0, sizeof *t);
}

static inline oj_status add_answer(struct job_trial *t,
                                   const struct oj_answer *answer,
                                   struct oj_error *err)
{
    const struct oj_matches *matches = answer->pairs;
    int64_t first = answer->batch->first_row + answer->first_row;
    OJ_TRY(oj_reserve(&t->pairs, t->n_pairs, t->n_pairs + matches->n_entries,
                      &t->cap_pairs, sizeof *t->pairs, err));
    for (int64_t row = 0; row < matches->n_rows; row++)
    {
        int64_t end = oj_matches_end(matches, row);
        for (int64_t p = oj_matches_first(matches, row); p < end; p++)
        {
            struct job_pair *pair = &t->pairs[t->n_pairs];
            if (matches->join_row[p] < 0)
                continue;
            memset(pair, 0, sizeof *pair);
            pair->row = first + row;
            pair->fid = answer->side.flat.fid[matches->join_row[p]];
            if (matches->measure[p] >= 0.0) /* predicates have NaN */
                pair->measure = matches->measure[p];
            t->n_pairs++;
        }
    }
    return OJ_OK;
}

static inline oj_status stream(struct job_trial *t)
{
    const struct oj_answer *answer = NULL;
    oj_status status;
    t->n_pairs = 0;
    t->pass.pairs_only = 1;
    do
    {
        status = oj_pass_next(&t->pass, &answer, &t->error);
        if (status == OJ_OK && answer != NULL)
            status = add_answer(t, answer, &t->error);
    } while (status == OJ_OK && answer != NULL);
    return oj_pass_stop(&t->pass, status, &t->error);
}

static inline void must(struct job_trial *t, oj_status status)
{
    ck_assert_msg(status == OJ_OK, "%s", t->error.message);
}

static inline int same_answer(const struct job_trial *a,
                              const struct job_trial *b)
{
    return a->n_pairs == b->n_pairs &&
           memcmp(a->pairs, b->pairs, (size_t)a->n_pairs * sizeof *a->pairs) ==
               0;
}

/* What the command would do. */
static inline void join_alone(struct job_trial *t, const char *line,
                              const char *input, const char *join)
{
    parse(t, line, input, join);
    must(t, oj_job_open(&t->command, 0, &t->pass.job, &t->error));
    must(t, oj_job_prepare(&t->pass.job, NULL, &t->error));
    must(t, stream(t));
}

static inline int64_t n_built(void)
{
    return oj_join_cache_counts().n_built;
}

static inline int64_t n_found(void)
{
    return oj_join_cache_counts().n_found;
}

/* Opens, prepares and streams; 1 when the join side was there. */
static inline int join_shared(struct job_trial *t, const char *line,
                              const char *input, const char *join)
{
    int64_t built = n_built(), found = n_found();
    open_job(t, line, input, join);
    must(t, oj_job_prepare(&t->pass.job, NULL, &t->error));
    ck_assert_int_eq(n_built() - built + n_found() - found, 1);
    must(t, stream(t));
    return n_found() > found;
}

/* The same for once. */
static inline int is_found(const char *line, const char *input,
                           const char *join)
{
    struct job_trial t;
    int found = join_shared(&t, line, input, join);
    close_job(&t);
    return found;
}

#endif
