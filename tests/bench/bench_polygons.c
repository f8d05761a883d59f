/* Points in large polygons, one thread, in memory: the library's cpu backend
 * against a loop over prepared GEOS geometries found by a GEOS STRtree, in one
 * process, in turn; every pair is compared.
 *
 *     bench_polygons FOLDER [REPEATS]
 *
 *  FOLDER holds world.gpkg (ne10m_countries), geonames_cities.vrt and
 *  torture.gpkg.  Cases: the cities in the countries, and a million random
 *  points (fixed seed) in the envelope of the largest polygon of torture.gpkg.
 *  Processor time, least of the repeats; on both sides index and join, and not
 *  the reading of layers nor the making of GEOS's polygons.  Exit codes: 0, 1
 *  error, 3 the pairs differ, 77 no data. */
#include <gdal.h>
#include <ogr_api.h>

#include <geos_c.h>

#include "../../algs/engine/oj_join.h"

#include <oj_wkb.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_RANDOM 1000000

static struct oj_error error;
static GEOSContextHandle_t geos;

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "bench_polygons: %s %s\n", what, error.message);
    exit(1);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- layers --------------------------------------------------------------- */

static void add_feature(struct oj_flat_buf *buf, OGRFeatureH feature)
{
    OGRGeometryH geometry = OGR_F_GetGeometryRef(feature);
    size_t n = (size_t)OGR_G_WkbSize(geometry);
    unsigned char *wkb = malloc(n);
    must(wkb != NULL, "out of memory");
    OGR_G_ExportToIsoWkb(geometry, wkbNDR, wkb);
    must(oj_wkb_add(buf, OGR_F_GetFID(feature), wkb, n, &error) == OJ_OK, "");
    free(wkb);
}

static OGRLayerH open_layer(GDALDatasetH *dataset, const char *folder,
                            const char *file, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (access(path, R_OK) != 0)
    {
        printf("no %s here: left out\n", path);
        exit(77);
    }
    *dataset = GDALOpenEx(path, GDAL_OF_VECTOR, NULL, NULL, NULL);
    must(*dataset != NULL, path);
    return name != NULL ? GDALDatasetGetLayerByName(*dataset, name) : NULL;
}

static void read_layer(struct oj_flat_buf *buf, const char *folder,
                       const char *file, const char *name)
{
    GDALDatasetH dataset;
    OGRLayerH layer = open_layer(&dataset, folder, file, name);
    OGRFeatureH feature;
    must(layer != NULL, name);
    while ((feature = OGR_L_GetNextFeature(layer)) != NULL)
    {
        if (OGR_F_GetGeometryRef(feature) != NULL)
            add_feature(buf, feature);
        OGR_F_Destroy(feature);
    }
    GDALClose(dataset);
}

/* The polygon of most bytes in any layer. */
static void read_largest(struct oj_flat_buf *buf, const char *folder,
                         const char *file)
{
    GDALDatasetH dataset;
    OGRFeatureH feature, largest = NULL;
    int most = 0;
    open_layer(&dataset, folder, file, NULL);
    for (int i = 0; i < GDALDatasetGetLayerCount(dataset); i++)
    {
        OGRLayerH layer = GDALDatasetGetLayer(dataset, i);
        while ((feature = OGR_L_GetNextFeature(layer)) != NULL)
        {
            OGRGeometryH g = OGR_F_GetGeometryRef(feature);
            if (g != NULL && OGR_G_GetDimension(g) == 2 &&
                OGR_G_WkbSize(g) > most)
            {
                OGR_F_Destroy(largest);
                largest = feature;
                most = OGR_G_WkbSize(g);
            }
            else
                OGR_F_Destroy(feature);
        }
    }
    must(largest != NULL, "no polygon");
    add_feature(buf, largest);
    OGR_F_Destroy(largest);
    GDALClose(dataset);
}

/* Random points in the envelope of a layer: xorshift64, so the same anywhere.
 */
static void add_points(struct oj_flat_buf *buf, const struct oj_flat *around)
{
    double x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;
    uint64_t s = 88172645463325252u;
    for (int64_t v = 0; v < around->n_vertices; v++)
    {
        x0 = fmin(x0, around->x[v]);
        y0 = fmin(y0, around->y[v]);
        x1 = fmax(x1, around->x[v]);
        y1 = fmax(y1, around->y[v]);
    }
    for (int64_t i = 0; i < N_RANDOM; i++)
    {
        double u[2];
        for (int k = 0; k < 2; k++)
        {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
            u[k] = (double)(s >> 11) * 0x1p-53;
        }
        must(oj_flat_buf_add_point(buf, i, x0 + u[0] * (x1 - x0),
                                   y0 + u[1] * (y1 - y0), &error) == OJ_OK,
             "");
    }
}

/* --- GEOS ----------------------------------------------------------------- */

static GEOSGeometry *make_ring(const struct oj_flat *flat, int64_t r)
{
    int64_t v = flat->vertex_offset[r];
    return GEOSGeom_createLinearRing_r(
        geos, GEOSCoordSeq_copyFromArrays_r(
                  geos, flat->x + v, flat->y + v, NULL, NULL,
                  (unsigned)(flat->vertex_offset[r + 1] - v)));
}

static GEOSGeometry *make_part(const struct oj_flat *flat, int64_t p)
{
    int64_t first = flat->ring_offset[p], end = flat->ring_offset[p + 1];
    GEOSGeometry **hole = calloc((size_t)(end - first), sizeof(GEOSGeometry *));
    GEOSGeometry *part, *shell = make_ring(flat, first);
    must(hole != NULL, "out of memory");
    for (int64_t r = first + 1; r < end; r++)
        hole[r - first - 1] = make_ring(flat, r);
    part = GEOSGeom_createPolygon_r(geos, shell, hole,
                                    (unsigned)(end - first - 1));
    free(hole);
    return part;
}

static GEOSGeometry *make_feature(const struct oj_flat *flat, int64_t f)
{
    int64_t first = flat->part_offset[f], end = flat->part_offset[f + 1];
    GEOSGeometry **part =
        calloc((size_t)(end - first + 1), sizeof(GEOSGeometry *));
    GEOSGeometry *feature;
    must(part != NULL, "out of memory");
    for (int64_t p = first; p < end; p++)
        part[p - first] = make_part(flat, p);
    feature = GEOSGeom_createCollection_r(geos, GEOS_MULTIPOLYGON, part,
                                          (unsigned)(end - first));
    free(part);
    return feature;
}

/* What is summed over all pairs, in any order. */
struct pairs_checksum
{
    int64_t n_pairs;
    uint64_t sum; /* of a hash of each pair */
};

static void add_pair(struct pairs_checksum *answer, int64_t row,
                     int64_t feature)
{
    uint64_t z = ((uint64_t)row << 32 | (uint64_t)feature) +
                 UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    answer->n_pairs++;
    answer->sum += z ^ z >> 31;
}

struct polygon_search
{
    GEOSGeometry **feature;
    const GEOSPreparedGeometry **prepared; /* at first use */
    int64_t row;
    GEOSGeometry *point;
    struct pairs_checksum answer;
};

static void visit(void *item, void *user)
{
    struct polygon_search *s = user;
    int64_t f = (GEOSGeometry **)item - s->feature;
    if (s->prepared[f] == NULL)
        s->prepared[f] = GEOSPrepare_r(geos, s->feature[f]);
    if (GEOSPreparedIntersects_r(geos, s->prepared[f], s->point) == 1)
        add_pair(&s->answer, s->row, f);
}

static double join_by_geos(const struct oj_flat *join,
                           const struct oj_flat *input,
                           struct pairs_checksum *answer)
{
    int64_t n = join->n_features;
    struct polygon_search s = {NULL, NULL, 0, NULL, {0, 0}};
    GEOSSTRtree *tree;
    double start;
    s.feature = calloc((size_t)n, sizeof *s.feature);
    s.prepared = calloc((size_t)n, sizeof *s.prepared);
    must(s.feature != NULL && s.prepared != NULL, "out of memory");
    for (int64_t f = 0; f < n; f++)
        s.feature[f] = make_feature(join, f);
    start = cpu_seconds();
    tree = GEOSSTRtree_create_r(geos, 10);
    for (int64_t f = 0; f < n; f++)
    {
        if (join->part_offset[f + 1] > join->part_offset[f])
            GEOSSTRtree_insert_r(geos, tree, s.feature[f], &s.feature[f]);
    }
    for (s.row = 0; s.row < input->n_features; s.row++)
    {
        s.point = GEOSGeom_createPointFromXY_r(geos, input->x[s.row],
                                               input->y[s.row]);
        GEOSSTRtree_query_r(geos, tree, s.point, visit, &s);
        GEOSGeom_destroy_r(geos, s.point);
    }
    start = cpu_seconds() - start;
    GEOSSTRtree_destroy_r(geos, tree);
    for (int64_t f = 0; f < n; f++)
    {
        GEOSPreparedGeom_destroy_r(geos, s.prepared[f]);
        GEOSGeom_destroy_r(geos, s.feature[f]);
    }
    free(s.feature);
    free(s.prepared);
    *answer = s.answer;
    return start;
}

/* --- ogrjoin -------------------------------------------------------------- */

/* The memory of matches is used again, as a run of many batches uses it. */
static double join_by_cpu(const struct oj_flat *join,
                          const struct oj_flat *input,
                          struct oj_matches *matches,
                          struct pairs_checksum *answer)
{
    struct oj_relation relation = oj_relation_default();
    struct oj_options options = {.n_threads = 1};
    struct oj_join *opened;
    double start = cpu_seconds();
    relation.op = OJ_OP_INTERSECTS;
    must(oj_join_open(join, &relation, "cpu", &options, &opened, &error) ==
             OJ_OK,
         "");
    must(oj_join_batch(opened, input, matches, &error) == OJ_OK, "");
    start = cpu_seconds() - start;
    memset(answer, 0, sizeof *answer);
    for (int64_t row = 0; row < input->n_features; row++)
    {
        for (int64_t p = matches->offset[row]; p < matches->offset[row + 1];
             p++)
            add_pair(answer, row, matches->join_row[p]);
    }
    oj_join_close(opened);
    return start;
}

static int compare(const char *name, const struct oj_flat *join,
                   const struct oj_flat *input, int n_repeats)
{
    struct oj_matches matches = {0};
    struct pairs_checksum by_cpu, by_geos;
    double cpu = INFINITY, prepared = INFINITY;
    int differs = 0;
    for (int i = 0; i < n_repeats; i++)
    {
        prepared = fmin(prepared, join_by_geos(join, input, &by_geos));
        for (int k = 0; k < 5; k++)
        {
            cpu = fmin(cpu, join_by_cpu(join, input, &matches, &by_cpu));
            differs |=
                by_cpu.n_pairs != by_geos.n_pairs || by_cpu.sum != by_geos.sum;
        }
    }
    printf("%s: %lld features of %lld vertices x %lld points, %lld pairs%s\n"
           "  cpu %.2f ms, prepared GEOS %.1f ms: %.1f times\n",
           name, (long long)join->n_features, (long long)join->n_vertices,
           (long long)input->n_features, (long long)by_cpu.n_pairs,
           differs ? " DIFFERENT" : ", the same", 1e3 * cpu, 1e3 * prepared,
           prepared / cpu);
    oj_matches_free(&matches);
    return differs;
}

int main(int argc, char **argv)
{
    struct oj_flat_buf countries = {0}, cities = {0}, large = {0}, random = {0};
    struct oj_flat join, input;
    int n_repeats = argc > 2 ? atoi(argv[2]) : 3, differs;
    if (argc < 2 || n_repeats < 1)
    {
        fprintf(stderr, "usage: bench_polygons FOLDER [REPEATS]\n");
        return 1;
    }
    GDALAllRegister();
    geos = GEOS_init_r();
    read_layer(&countries, argv[1], "world.gpkg", "ne10m_countries");
    read_layer(&cities, argv[1], "geonames_cities.vrt", "geonames_cities");
    join = oj_flat_buf_view(&countries);
    input = oj_flat_buf_view(&cities);
    differs = compare("cities in countries", &join, &input, n_repeats);
    read_largest(&large, argv[1], "torture.gpkg");
    join = oj_flat_buf_view(&large);
    add_points(&random, &join);
    input = oj_flat_buf_view(&random);
    differs |= compare("points in a large polygon", &join, &input, n_repeats);
    oj_flat_buf_free(&countries);
    oj_flat_buf_free(&cities);
    oj_flat_buf_free(&large);
    oj_flat_buf_free(&random);
    GEOS_finish_r(geos);
    return differs ? 3 : 0;
}
