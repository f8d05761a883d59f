#include "bench_data.h"
#include "nycgen.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FEET_PER_UNIT (1.0 / NYC_ONE)
#define MAX_THREADS 256

/* Loads streets or lots from the generated arrays, without the city. */
static oj_status load_shapes(const struct nyc_shapes *shapes, int64_t n,
                             enum oj_part_kind kind,
                             struct oj_flat_buf *join_side,
                             struct oj_error *err)
{
    for (int64_t i = 0; i < n; i++)
    {
        const int64_t first = shapes->offset[i];
        const int64_t n_vertices = shapes->offset[i + 1] - first;
        const int32_t *xy = shapes->xy + 2 * first;
        double *x, *y;
        OJ_TRY(oj_flat_buf_begin_feature(join_side, i, err));
        OJ_TRY(oj_flat_buf_begin_part(join_side, kind, err));
        OJ_TRY(oj_flat_buf_begin_ring(join_side, err));
        OJ_TRY(oj_flat_buf_add_vertices(join_side, n_vertices, &x, &y, err));
        for (int64_t k = 0; k < n_vertices; k++)
        {
            x[k] = xy[2 * k] * FEET_PER_UNIT;
            y[k] = xy[2 * k + 1] * FEET_PER_UNIT;
        }
        OJ_TRY(oj_flat_buf_end_feature(join_side, err));
    }
    return OJ_OK;
}

/* The city and its blocks on land. */
struct land
{
    struct nyc_city city;
    int32_t *blocks;
    int32_t n_blocks;
};

static oj_status load_join_side(const struct bench_data_options *options,
                                const struct land *land,
                                struct oj_flat_buf *join_side,
                                struct oj_error *err)
{
    struct nyc_shapes shapes;
    const int is_lots = strcmp(options->layer, "lots") == 0;
    int64_t n = options->m;
    oj_status status;
    int failed;
    if (is_lots)
    {
        if (n == 0)
            n = 735488;
        failed = nyc_make_lots(&land->city, land->blocks, land->n_blocks, n,
                               &shapes);
    }
    else if (strcmp(options->layer, "streets") == 0)
        failed = nyc_make_streets(&land->city, land->blocks, land->n_blocks,
                                  &shapes);
    else
        return oj_fail(err, OJ_ERR_ARG,
                       "nycgen has the layers lots and streets, not \"%s\"",
                       options->layer);
    if (failed)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory for the lots");
    if (n == 0 || n > shapes.n)
        n = shapes.n;
    status = load_shapes(&shapes, n, is_lots ? OJ_PART_POLYGON : OJ_PART_LINE,
                         join_side, err);
    nyc_free_shapes(&shapes);
    return status;
}

struct point_range
{
    const struct land *land;
    double *x, *y;
    int64_t first, end;
};

static void *make_points(void *argument)
{
    const struct point_range *range = argument;
    const struct land *land = range->land;
    for (int64_t i = range->first; i < range->end; i++)
    {
        int32_t x, y;
        nyc_point(&land->city, land->blocks, land->n_blocks, (uint64_t)i, &x,
                  &y);
        range->x[i] = x * FEET_PER_UNIT;
        range->y[i] = y * FEET_PER_UNIT;
    }
    return NULL;
}

/* Each thread makes consecutive points. If a thread cannot be started, the
 * calling thread makes its points. */
static void load_points(const struct bench_data_options *options,
                        const struct land *land, struct bench_points *points)
{
    struct point_range ranges[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    int started[MAX_THREADS];
    long n_threads = options->n_threads > 0 ? options->n_threads
                                            : sysconf(_SC_NPROCESSORS_ONLN);
    if (n_threads < 1)
        n_threads = 1;
    if (n_threads > MAX_THREADS)
        n_threads = MAX_THREADS;
    for (long t = 0; t < n_threads; t++)
    {
        ranges[t] = (struct point_range){
            land, points->x, points->y, points->n / n_threads * t,
            t + 1 == n_threads ? points->n : points->n / n_threads * (t + 1)};
        started[t] =
            pthread_create(&threads[t], NULL, make_points, &ranges[t]) == 0;
    }
    for (long t = 0; t < n_threads; t++)
        if (started[t])
            pthread_join(threads[t], NULL);
        else
            make_points(&ranges[t]);
}

oj_status bench_city_load(const struct bench_data_options *options,
                          int64_t n_extra, struct bench_layers *layers,
                          struct oj_error *err)
{
    const int64_t n = options->n > 0 ? options->n : 170000000;
    struct bench_points *points = &layers->points;
    struct land land = {nyc_city(options->seed), NULL, 0};
    oj_status status;
    land.city.skew = options->skew;
    if (strcmp(options->input, "points") != 0)
        return oj_fail(err, OJ_ERR_ARG, "the input of nycgen is points");
    OJ_NEW(points->x, n + n_extra, err);
    OJ_NEW(points->y, n + n_extra, err);
    points->n = n;
    land.n_blocks = nyc_land_blocks(&land.city, &land.blocks);
    if (land.n_blocks < 0)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory for the blocks");
    load_points(options, &land, points);
    status = load_join_side(options, &land, &layers->join_side, err);
    free(land.blocks);
    return status;
}
