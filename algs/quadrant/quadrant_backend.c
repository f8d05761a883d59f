/** The paper's method on flat arrays: points in quadrants of at most K, boxes
 *  of the join side expanded by the distance, both met in the cells of a grid,
 *  then every point of a quadrant against every segment of its features.
 *  Source: Zhang, You, Gruenwald 2012, sections 3.1 to 3.4.
 *
 *  Where the distance is not bounded, or so wide that most of the layer would
 *  be a candidate, passes with a growing distance take the place of the one
 *  pass: points whose answer does not lie within a pass's distance go on to the
 *  next, which is twice as far.  That is ours. */
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../pairs/oj_pairs.h"
#include "quadrant_pass.h"

#include <string.h>

/* Passes of growing distance; the last has no distance at all. 2^46 times the
 * first is enough for coordinates of any sense. */
#define N_LEVELS 48

struct quadrant_index
{
    const struct oj_flat *flat;
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;
    struct oj_boxes boxes;
    int is_growing;
    struct oj_quadrant_grid *grid[N_LEVELS]; /* made when first needed */
};

/* A batch on its way. */
struct quadrant_batch
{
    struct quadrant_index *index;
    struct oj_points points; /* that are not settled */
    struct oj_quadrants quadrants;
    uint8_t *is_open; /* [points.n] */
    struct oj_quadrant_worker *worker;
    struct oj_answers *answers; /* [n_threads] of the workers, side by side */
    struct oj_stats *stats;
};

static double reach_of_level(const struct quadrant_index *index, int level)
{
    double max_distance = index->relation.max_distance, reach;
    if (!index->is_growing)
        return max_distance;
    if (level == N_LEVELS - 1)
        return INFINITY;
    reach = index->boxes.spacing * sqrt((double)index->relation.k);
    for (int i = 0; i < level; i++)
        reach *= 2.0;
    return fmin(reach, max_distance);
}

static int64_t grid_bytes(const struct oj_quadrant_grid *grid)
{
    return grid->n_cells * (int64_t)(sizeof(uint64_t) + sizeof(int64_t)) +
           grid->n_entries * (int64_t)sizeof(int32_t);
}

static oj_status need_grid(struct quadrant_index *index, int level,
                           struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    if (index->grid[level] != NULL)
        return OJ_OK;
    OJ_TRY(oj_quadrant_grid_make(&index->boxes, reach_of_level(index, level),
                                 &index->grid[level], err));
    stats->index_s += oj_clock_seconds() - start;
    stats->index_bytes += grid_bytes(index->grid[level]);
    return OJ_OK;
}

static void free_index(struct oj_index *wrapped)
{
    struct quadrant_index *index = (void *)wrapped;
    if (index == NULL)
        return;
    for (int level = 0; level < N_LEVELS; level++)
        oj_quadrant_grid_free(index->grid[level]);
    oj_boxes_free(&index->boxes);
    oj_free(index);
}

/* The papers' method is for the nearest features of points. */
static oj_status check_relation(const struct oj_relation *relation,
                                struct oj_error *err)
{
    if (relation->op == OJ_OP_NEAREST && relation->metric == OJ_METRIC_PLANAR &&
        relation->min_distance == 0.0)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "the backend \"quadrant\" knows only -op nearest, in the "
                   "plane and without a least distance");
}

static oj_status check_input(const struct quadrant_index *index,
                             const struct oj_flat *input, struct oj_error *err)
{
    struct oj_pair_filter filter;
    OJ_TRY(oj_pair_filter_make(&index->relation, input, index->flat, &filter,
                               err));
    if (!filter.is_needed && input->max_distance == NULL &&
        index->flat->max_distance == NULL &&
        (oj_flat_is_points(input) ||
         (input->part_kinds & ~(unsigned)OJ_PART_POINT) == 0))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "the backend \"quadrant\" takes points as input, and no "
                   "conditions on pairs");
}

static oj_status
make_index(const struct oj_backend *self, const struct oj_flat *join_side,
           const int32_t *tie_rank, const struct oj_relation *relation,
           const struct oj_options *options, struct oj_index **out,
           struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct quadrant_index *index;
    oj_status status;
    (void)self;
    OJ_TRY(check_relation(relation, err));
    index = oj_calloc(1, sizeof *index);
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->flat = join_side;
    index->tie_rank = tie_rank;
    index->relation = *relation;
    index->options = *options;
    status = oj_boxes_make(join_side, &index->boxes, err);
    stats->index_s += oj_clock_seconds() - start;
    if (status == OJ_OK)
    {
        index->is_growing = oj_boxes_window_is_wide(
            &index->boxes, relation->max_distance, relation->k);
        stats->index_bytes += index->boxes.n * (int64_t)sizeof(struct oj_box);
        status = need_grid(index, 0, stats, err);
    }
    if (status != OJ_OK)
    {
        free_index((void *)index);
        return status;
    }
    *out = (void *)index;
    return OJ_OK;
}

/* Leaves the open points only, in their order. */
static void keep_open(struct quadrant_batch *batch)
{
    struct oj_points *points = &batch->points;
    int64_t n = 0;
    for (int64_t p = 0; p < points->n; p++)
    {
        if (!batch->is_open[p])
            continue;
        points->x[n] = points->x[p];
        points->y[n] = points->y[p];
        points->row[n] = points->row[p];
        points->code[n++] = points->code[p];
    }
    points->n = n;
}

static oj_status run_level(struct quadrant_batch *batch, int level,
                           struct oj_error *err)
{
    struct quadrant_index *index = batch->index;
    struct oj_quadrant_pass pass;
    /* points far from one another share too few features to be grouped */
    double spread =
        index->is_growing ? 4.0 * reach_of_level(index, level) : INFINITY;
    double start = oj_clock_seconds();
    oj_status status;
    OJ_TRY(oj_quadrants_make(&batch->points, index->options.quadrant_size,
                             spread, &batch->quadrants, err));
    batch->stats->sort_s += oj_clock_seconds() - start;
    OJ_TRY(need_grid(index, level, batch->stats, err));
    memset(&pass, 0, sizeof pass);
    pass.flat = index->flat;
    pass.boxes = &index->boxes;
    pass.grid = index->grid[level];
    pass.relation = &index->relation;
    pass.cancel = index->options.cancel;
    pass.n_threads = index->options.n_threads;
    pass.worker = batch->worker;
    pass.points = &batch->points;
    pass.quadrants = &batch->quadrants;
    pass.is_growing = index->is_growing;
    pass.is_open = batch->is_open;
    status = oj_quadrant_pass_run(&pass, err);
    batch->stats->filter_s += pass.filter_s;
    batch->stats->refine_s += pass.refine_s;
    oj_quadrants_free(&batch->quadrants);
    keep_open(batch);
    return status;
}

static oj_status start_batch(struct quadrant_batch *batch,
                             const struct oj_flat *input, struct oj_error *err)
{
    const struct quadrant_index *index = batch->index;
    struct oj_relation bounds = index->relation;
    double start = oj_clock_seconds();
    OJ_TRY(oj_points_make(input, &batch->points, err));
    OJ_TRY(oj_points_sort(&batch->points, err));
    OJ_NEW(batch->is_open, batch->points.n, err);
    batch->worker = oj_calloc(index->options.n_threads, sizeof *batch->worker);
    batch->answers =
        oj_calloc(index->options.n_threads, sizeof *batch->answers);
    if (batch->worker == NULL || batch->answers == NULL)
        return oj_fail_nomem(err, index->options.n_threads,
                             sizeof *batch->worker);
    bounds.ties = OJ_TIES_FIRST;
    bounds.max_distance = INFINITY;
    for (int thread = 0; thread < index->options.n_threads; thread++)
    {
        struct oj_quadrant_worker *worker = &batch->worker[thread];
        worker->ranking = oj_ranking_make(&index->relation, index->tie_rank);
        worker->nearest = oj_ranking_make(&bounds, NULL);
        oj_answers_start(&worker->answers, index->options.max_batch_pairs,
                         input->n_features, index->options.n_threads);
    }
    batch->stats->sort_s += oj_clock_seconds() - start;
    return OJ_OK;
}

static oj_status finish_batch(struct quadrant_batch *batch, int64_t n_rows,
                              struct oj_matches *out, struct oj_error *err)
{
    const struct quadrant_index *index = batch->index;
    double start = oj_clock_seconds();
    for (int thread = 0; thread < index->options.n_threads; thread++)
    {
        batch->answers[thread] = batch->worker[thread].answers;
        batch->stats->n_candidates += batch->worker[thread].n_candidates;
    }
    OJ_TRY(oj_answers_to_matches(batch->answers, index->options.n_threads,
                                 n_rows, &index->relation, index->tie_rank, out,
                                 err));
    batch->stats->refine_s += oj_clock_seconds() - start;
    return OJ_OK;
}

static void free_batch(struct quadrant_batch *batch)
{
    for (int thread = 0;
         batch->worker != NULL && thread < batch->index->options.n_threads;
         thread++)
    {
        oj_ranking_free(&batch->worker[thread].ranking);
        oj_ranking_free(&batch->worker[thread].nearest);
        oj_answers_free(&batch->worker[thread].answers);
    }
    oj_free(batch->worker);
    oj_free(batch->answers);
    oj_free(batch->is_open);
    oj_points_free(&batch->points);
    oj_quadrants_free(&batch->quadrants);
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct quadrant_index *index = (void *)wrapped;
    struct quadrant_batch batch;
    oj_status status;
    OJ_TRY(check_input(index, input, err));
    memset(&batch, 0, sizeof batch);
    batch.index = index;
    batch.stats = stats;
    status = start_batch(&batch, input, err);
    for (int level = 0;
         level < N_LEVELS && batch.points.n > 0 && status == OJ_OK; level++)
        status = run_level(&batch, level, err);
    if (status == OJ_OK)
        status = finish_batch(&batch, input->n_features, out, err);
    free_batch(&batch);
    return status;
}

const struct oj_backend oj_quadrant_backend = {
    .abi = OJ_BACKEND_ABI,
    .name = "quadrant",
    .description = "the papers' method: quadrants of points, a grid of boxes, "
                   "all segments",
    .is_reference = 1,
    .index = make_index,
    .join = join,
    .free_index = free_index,
};
