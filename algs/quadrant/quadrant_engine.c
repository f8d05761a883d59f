/** The paper's method on flat arrays: points in quadrants of at most K, boxes
 *  of the join side expanded by the distance, both met in the cells of a grid,
 *  then every point of a quadrant against every segment of its features.
 *  Source: Zhang, You, Gruenwald 2012, sections 3.1 to 3.4.
 *
 *  quadrants --count, fill--> (quadrant, feature) pairs --refine--> answers
 *
 *  The pairs are counted first and then written, for as many quadrants at a
 *  time as fit a fixed number of pairs; a single quadrant may need more.
 *
 *  Where the distance is not bounded, or so wide that most of the layer would
 *  be a candidate, passes with a growing distance take the place of the one
 *  pass: points whose answer does not lie within a pass's distance go on to the
 *  next, which is twice as far.  That is ours. */
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_compare.h"
#include "../base/cpu_threads.h"
#include "../base/oj_boxes.h"
#include "../base/oj_point_quadrants.h"
#include "../base/oj_radix.h"
#include "../kernels/oj_quadrant.h"
#include "../pairs/oj_pairs.h"
#include "../pairs/oj_ranking.h"
#include "../relation/oj_engine.h"
#include "flat_distance.h"

#include <stdlib.h>
#include <string.h>

/* Passes of growing distance; the last has no distance at all. 2^46 times the
 * first is enough for coordinates of any sense. */
#define N_LEVELS 48

/* Pairs held at a time: 32 MB. */
#define SLICE_PAIRS ((int64_t)1 << 23)

/* --- the grid of the filter -----------------------------------------------

 * Boxes of the join side, expanded by a distance, as cells of a uniform grid.
 * Section 3.3 of the paper: boxes of the join side are expanded, not those of
 * the quadrants, and quadrants look up the cells by binary search.
 *
 *  cell          [ 3    7    8   ... ]  row * 2^32 + column, ascending
 *  cell_offset   [ 0    2    3    6 ... ]
 *  feature       [ 4 9  4    2 5 9 ... ]  whose expanded box touches the cell
 *
 *  Cells that no box touches are not stored, so that features far off cost
 *  nothing.
 */
struct quadrant_grid
{
    const struct oj_boxes *boxes; /* borrowed */
    double reach;                 /* by which the boxes were expanded */
    int has_cells;                /* 0: every feature is in the one cell */
    struct oj_quadrant_frame frame;
    int64_t n_cells, n_entries;
    uint64_t *cell;       /* [n_cells] */
    int64_t *cell_offset; /* [n_cells + 1] */
    int32_t *feature;     /* [n_entries] */
};

#define N_SAMPLES 1023

static struct oj_quadrant_cells cells_of(const struct quadrant_grid *grid,
                                         const struct oj_box *box)
{
    const struct oj_quadrant_box same = {box->x0, box->y0, box->x1, box->y1};
    return oj_quadrant_cells_of(&grid->frame, &same);
}

/* Of feature i, expanded; 0: it has no box. */
static int cells_of_feature(const struct quadrant_grid *grid, int64_t i,
                            struct oj_quadrant_cells *cells)
{
    const struct oj_box *box = &grid->boxes->box[i];
    struct oj_box around;
    if (oj_box_is_empty(box))
        return 0;
    around = oj_box_around(box, grid->reach);
    *cells = cells_of(grid, &around);
    return 1;
}

/* Twice the longer side of a typical expanded box: such a box touches a few
 * cells. */
static double typical_size(const struct oj_boxes *boxes, double reach)
{
    double sides[N_SAMPLES];
    int64_t n = 0, step = boxes->n / N_SAMPLES + 1;
    for (int64_t i = 0; i < boxes->n && n < N_SAMPLES; i += step)
    {
        const struct oj_box *box = &boxes->box[i];
        if (!oj_box_is_empty(box))
            sides[n++] = fmax(box->x1 - box->x0, box->y1 - box->y0);
    }
    if (n == 0)
        return 2.0 * reach;
    qsort(sides, (size_t)n, sizeof *sides, oj_compare_doubles);
    return 2.0 * (sides[n / 2] + 2.0 * reach);
}

/* Chooses the cells' size so that there are at most a few entries a feature:
 * doubling it ends at the latest when one cell holds all. Returns the number
 * of entries, 0 when no such grid can be laid over these coordinates. */
static int64_t choose_size(struct quadrant_grid *grid)
{
    const struct oj_boxes *boxes = grid->boxes;
    struct oj_box all = oj_box_around(&boxes->all, grid->reach);
    double extent = fmax(all.x1 - all.x0, all.y1 - all.y0);
    double limit = 6.0 * (double)boxes->n_boxes + 1024.0;
    double size = fmax(typical_size(boxes, grid->reach),
                       extent / (double)OJ_QUADRANT_LAST_COLUMN);
    if (!(extent < INFINITY) || !(size > 0.0))
        return 0;
    grid->frame.x0 = all.x0;
    grid->frame.y0 = all.y0;
    for (; size < INFINITY; size *= 2.0)
    {
        struct oj_quadrant_cells cells;
        double n = 0.0;
        grid->frame.size = size;
        for (int64_t i = 0; i < boxes->n && n <= limit; i++)
        {
            if (cells_of_feature(grid, i, &cells))
                n += oj_quadrant_n_cells(&cells);
        }
        if (n <= limit)
            return (int64_t)n;
    }
    return 0;
}

static void list_entries(const struct quadrant_grid *grid,
                         struct oj_keyed *entry)
{
    struct oj_quadrant_cells cells;
    for (int64_t i = 0; i < grid->boxes->n; i++)
    {
        if (!cells_of_feature(grid, i, &cells))
            continue;
        for (uint32_t row = cells.row0; row <= cells.row1; row++)
        {
            for (uint32_t col = cells.column0; col <= cells.column1; col++)
            {
                entry->key = oj_quadrant_cell(row, col);
                entry->value = i;
                entry++;
            }
        }
    }
}

static oj_status store_cells(struct quadrant_grid *grid,
                             const struct oj_keyed *entry, struct oj_error *err)
{
    int64_t n = 0;
    for (int64_t i = 0; i < grid->n_entries; i++)
        n += i == 0 || entry[i].key != entry[i - 1].key;
    OJ_NEW(grid->cell, n, err);
    OJ_NEW(grid->cell_offset, n + 1, err);
    OJ_NEW(grid->feature, grid->n_entries, err);
    n = 0;
    for (int64_t i = 0; i < grid->n_entries; i++)
    {
        grid->feature[i] = (int32_t)entry[i].value;
        if (i == 0 || entry[i].key != entry[i - 1].key)
        {
            grid->cell[n] = entry[i].key;
            grid->cell_offset[n++] = i;
        }
    }
    grid->cell_offset[n] = grid->n_entries;
    grid->n_cells = n;
    return OJ_OK;
}

static oj_status build_grid(struct quadrant_grid *grid, struct oj_error *err)
{
    struct oj_keyed *entry;
    oj_status status;
    if (grid->boxes->n_boxes == 0 || !(grid->reach < INFINITY))
        return OJ_OK;
    grid->n_entries = choose_size(grid);
    if (grid->n_entries == 0)
        return OJ_OK;
    OJ_NEW(entry, 2 * grid->n_entries, err);
    list_entries(grid, entry);
    status = store_cells(
        grid, oj_radix_sort(entry, entry + grid->n_entries, grid->n_entries),
        err);
    grid->has_cells = status == OJ_OK;
    oj_free(entry);
    return status;
}

static void free_grid(struct quadrant_grid *grid)
{
    oj_free(grid->cell);
    oj_free(grid->cell_offset);
    oj_free(grid->feature);
    memset(grid, 0, sizeof *grid);
}

/* With reach INFINITY every feature is a candidate of every quadrant. boxes
 * outlives the grid. */
static oj_status make_grid(const struct oj_boxes *boxes, double reach,
                           struct quadrant_grid *grid, struct oj_error *err)
{
    oj_status status;
    grid->boxes = boxes;
    grid->reach = reach;
    status = build_grid(grid, err);
    if (status != OJ_OK)
        free_grid(grid);
    return status;
}

/* Counts the entries in the cells of window; writes them unless feature is
 * NULL. */
static int64_t visit(const struct quadrant_grid *grid,
                     const struct oj_box *window, int32_t *feature)
{
    struct oj_quadrant_cells cells = cells_of(grid, window);
    uint32_t row = cells.row0;
    int64_t n = 0;
    while (row <= cells.row1)
    {
        int64_t first, end, n_run;
        row = oj_quadrant_run(grid->cell, grid->n_cells, row, &cells, &first,
                              &end);
        n_run = grid->cell_offset[end] - grid->cell_offset[first];
        if (feature != NULL && n_run > 0)
            memcpy(feature + n, grid->feature + grid->cell_offset[first],
                   (size_t)n_run * sizeof *feature);
        n += n_run;
    }
    return n;
}

/* Entries in the cells that window touches: repeats counted. */
static int64_t count_in_window(const struct quadrant_grid *grid,
                               const struct oj_box *window)
{
    return grid->has_cells ? visit(grid, window, NULL) : grid->boxes->n_boxes;
}

/* Writes the features whose expanded box intersects window to feature, which
 * has room for count_in_window() of them, ascending, each once (sort and
 * unique). Returns their number. */
static int64_t gather_in_window(const struct quadrant_grid *grid,
                                const struct oj_box *window, int32_t *feature)
{
    const struct oj_boxes *boxes = grid->boxes;
    int64_t n = 0, n_all;
    if (!grid->has_cells)
    {
        for (int64_t i = 0; i < boxes->n; i++)
        {
            if (!oj_box_is_empty(&boxes->box[i]))
                feature[n++] = (int32_t)i;
        }
        return n;
    }
    n_all = visit(grid, window, feature);
    if (n_all > 1)
        qsort(feature, (size_t)n_all, sizeof *feature, oj_compare_int32);
    for (int64_t i = 0; i < n_all; i++)
    {
        struct oj_box box;
        int32_t f = feature[i];
        if (n > 0 && feature[n - 1] == f)
            continue;
        box = oj_box_around(&boxes->box[f], grid->reach);
        if (oj_box_intersects(&box, window))
            feature[n++] = f;
    }
    return n;
}

/* --- the engine ------------------------------------------------------------
 */

struct quadrant_index
{
    struct oj_index_args args;
    struct oj_boxes boxes;
    /* 0: every point of a quadrant meets every segment of its features, as in
     * the paper, but for features whose box is out of the point's own reach.
     * 1, where the distance is not bounded: features that cannot be near enough
     * are passed over by their boxes, and points whose k-th distance lies
     * beyond the grid's reach stay open. */
    int is_growing;
    struct quadrant_grid grid[N_LEVELS]; /* made when first needed */
};

/* What one thread has of its own. */
struct quadrant_worker
{
    struct oj_ranking ranking;
    struct oj_ranking nearest; /* upper bounds of distances, to prune */
    int64_t n_candidates;
};

/* A batch on its way. */
struct quadrant_batch
{
    struct quadrant_index *index;
    struct oj_points points; /* that are not settled, sorted */
    struct oj_quadrants quadrants;
    uint8_t *is_open;               /* [points.n] 1: not settled by the pass */
    struct quadrant_worker *worker; /* [n_threads] */
    struct oj_answers *answers;     /* [n_threads] of settled points */
    struct oj_stats *stats;

    /* Of a pass: the quadrants first <= q < end, and their pairs. */
    const struct quadrant_grid *grid;
    int64_t first, end;
    int64_t *offset;  /* [quadrants] where a quadrant's features start */
    int64_t *n_found; /* [quadrants] counted entries, then features found */
    int32_t *feature;
    int64_t cap_offset, cap_found, cap_feature;
};

/* --- the join side -------------------------------------------------------- */

static double reach_of_level(const struct quadrant_index *index, int level)
{
    const struct oj_relation *relation = &index->args.relation;
    double reach;
    if (!index->is_growing)
        return relation->max_distance;
    if (level == N_LEVELS - 1)
        return INFINITY;
    reach = index->boxes.spacing * sqrt((double)relation->k);
    for (int i = 0; i < level; i++)
        reach *= 2.0;
    return fmin(reach, relation->max_distance);
}

static oj_status need_grid(struct quadrant_index *index, int level,
                           struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct quadrant_grid *grid = &index->grid[level];
    if (grid->boxes != NULL)
        return OJ_OK;
    OJ_TRY(make_grid(&index->boxes, reach_of_level(index, level), grid, err));
    stats->index_s += oj_clock_seconds() - start;
    stats->index_bytes +=
        grid->n_cells * (int64_t)(sizeof(uint64_t) + sizeof(int64_t)) +
        grid->n_entries * (int64_t)sizeof(int32_t);
    return OJ_OK;
}

static void free_side(struct oj_index *wrapped)
{
    struct quadrant_index *index = (void *)wrapped;
    for (int level = 0; level < N_LEVELS; level++)
        free_grid(&index->grid[level]);
    oj_boxes_free(&index->boxes);
}

static oj_status build(struct quadrant_index *index, struct oj_stats *stats,
                       struct oj_error *err)
{
    const struct oj_relation *relation = &index->args.relation;
    double start = oj_clock_seconds();
    OJ_TRY(oj_boxes_make(index->args.join_side, &index->boxes, err));
    stats->index_s += oj_clock_seconds() - start;
    index->is_growing = oj_boxes_window_is_wide(
        &index->boxes, relation->max_distance, relation->k);
    stats->index_bytes += index->boxes.n * (int64_t)sizeof(struct oj_box);
    return need_grid(index, 0, stats, err);
}

/* The papers' method is for the nearest features of points. */
static oj_status build_index(struct oj_index *wrapped,
                             const struct oj_index_args *args,
                             struct oj_stats *stats, struct oj_error *err)
{
    const struct oj_relation *relation = &args->relation;
    struct quadrant_index *index = (void *)wrapped;
    if (relation->op != OJ_OP_NEAREST || relation->metric != OJ_METRIC_PLANAR ||
        relation->min_distance != 0.0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the backend \"quadrant\" knows only -op nearest, in "
                       "the plane and without a least distance");
    index->args = *args;
    return build(index, stats, err);
}

/* --- filter --------------------------------------------------------------- */

/* The quadrant's box with its points' share of rounding added. */
static struct oj_box window_of(const struct quadrant_batch *batch, int64_t q)
{
    return oj_box_around(&batch->quadrants.quadrant[q].box, 0.0);
}

static void count_task(int64_t q, int thread, void *user)
{
    struct quadrant_batch *batch = user;
    struct oj_box window = window_of(batch, q);
    (void)thread;
    batch->n_found[q] = count_in_window(batch->grid, &window);
}

static void fill_task(int64_t task, int thread, void *user)
{
    struct quadrant_batch *batch = user;
    int64_t q = batch->first + task;
    struct oj_box window = window_of(batch, q);
    (void)thread;
    batch->n_found[q] = gather_in_window(batch->grid, &window,
                                         batch->feature + batch->offset[q]);
}

/* --- refine --------------------------------------------------------------- */

/* Keeps of n features those that may be among the k nearest of some point in
 * window: the k-th least of the largest distances bounds every point's k-th. */
static oj_status prune(struct quadrant_worker *worker,
                       const struct oj_boxes *boxes,
                       const struct oj_box *window, int32_t *feature,
                       int64_t *n, struct oj_error *err)
{
    struct oj_ranking *nearest = &worker->nearest;
    int64_t n_kept = 0;
    oj_ranking_start(nearest);
    for (int64_t i = 0; i < *n; i++)
        OJ_TRY(oj_ranking_add(nearest, feature[i],
                              oj_box_farthest(window, &boxes->box[feature[i]]),
                              err));
    oj_ranking_finish(nearest);
    if (nearest->n < nearest->k)
        return OJ_OK;
    for (int64_t i = 0; i < *n; i++)
    {
        if (oj_box_distance(window, &boxes->box[feature[i]]) <=
            nearest->list[nearest->k - 1].distance)
            feature[n_kept++] = feature[i];
    }
    *n = n_kept;
    return OJ_OK;
}

/* Ranks n features for point p, passing over those whose box is out of reach
 * of this point of the quadrant. */
static oj_status rank_point(const struct quadrant_batch *batch,
                            struct quadrant_worker *worker, int64_t p,
                            const int32_t *feature, int64_t n,
                            struct oj_error *err)
{
    const struct quadrant_index *index = batch->index;
    double x = batch->points.x[p], y = batch->points.y[p];
    struct oj_box at = {x, y, x, y}, around = oj_box_around(&at, 0.0);
    struct oj_box window = oj_box_around(&at, batch->grid->reach);
    struct oj_ranking *ranking = &worker->ranking;
    oj_ranking_start(ranking);
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_box *box = &index->boxes.box[feature[i]];
        double distance;
        if (!oj_box_intersects(&window, box) ||
            (index->is_growing &&
             oj_box_distance(&around, box) > ranking->bound))
            continue;
        worker->n_candidates++;
        distance = oj_flat_distance(index->args.join_side, feature[i],
                                    index->args.relation.distance_to, x, y);
        OJ_TRY(oj_ranking_add(ranking, feature[i], distance, err));
    }
    oj_ranking_finish(ranking);
    return OJ_OK;
}

/* Without cells every feature was a candidate. */
static int is_settled(const struct quadrant_grid *grid,
                      const struct oj_ranking *ranking)
{
    return !grid->has_cells || grid->reach >= ranking->max_distance ||
           oj_ranking_kth_distance(ranking) <= grid->reach;
}

static oj_status refine_task(int64_t task, int thread, void *user,
                             struct oj_error *err)
{
    struct quadrant_batch *batch = user;
    const struct quadrant_index *index = batch->index;
    struct quadrant_worker *worker = &batch->worker[thread];
    int64_t q = batch->first + task, n = batch->n_found[q];
    const struct oj_quadrant *quadrant = &batch->quadrants.quadrant[q];
    int32_t *feature = batch->feature + batch->offset[q];
    if (index->is_growing)
    {
        struct oj_box window = window_of(batch, q);
        OJ_TRY(prune(worker, &index->boxes, &window, feature, &n, err));
    }
    for (int64_t p = quadrant->first; p < quadrant->end; p++)
    {
        OJ_TRY(oj_check_cancel(index->args.options.cancel, err));
        OJ_TRY(rank_point(batch, worker, p, feature, n, err));
        batch->is_open[p] = !is_settled(batch->grid, &worker->ranking);
        if (!batch->is_open[p])
            OJ_TRY(oj_answers_add(&batch->answers[thread], batch->points.row[p],
                                  &worker->ranking, err));
    }
    return OJ_OK;
}

/* --- passes --------------------------------------------------------------- */

/* Takes quadrants from batch->first on until their pairs would be too many,
 * and places their pairs. */
static oj_status take_quadrants(struct quadrant_batch *batch,
                                struct oj_error *err)
{
    int64_t q = batch->first, n = 0;
    while (q < batch->quadrants.n &&
           (q == batch->first || batch->n_found[q] <= SLICE_PAIRS - n))
    {
        batch->offset[q] = n;
        n += batch->n_found[q++];
    }
    batch->end = q;
    /* never none, so that feature is an array even for no pairs */
    return oj_reserve(&batch->feature, 0, n + 1, &batch->cap_feature,
                      sizeof *batch->feature, err);
}

static oj_status run_slices(struct quadrant_batch *batch, struct oj_error *err)
{
    int n_threads = batch->index->args.options.n_threads;
    int64_t n = batch->quadrants.n;
    double start = oj_clock_seconds(), filled;
    OJ_ROOM(batch->offset, 0, n, batch->cap_offset, err);
    OJ_ROOM(batch->n_found, 0, n, batch->cap_found, err);
    oj_parallel_for(n_threads, n, count_task, batch);
    batch->stats->filter_s += oj_clock_seconds() - start;
    for (batch->first = 0; batch->first < n; batch->first = batch->end)
    {
        oj_status status;
        start = oj_clock_seconds();
        OJ_TRY(take_quadrants(batch, err));
        oj_parallel_for(n_threads, batch->end - batch->first, fill_task, batch);
        filled = oj_clock_seconds();
        status = oj_parallel_try(n_threads, batch->end - batch->first, 1,
                                 refine_task, batch, err);
        batch->stats->filter_s += filled - start;
        batch->stats->refine_s += oj_clock_seconds() - filled;
        OJ_TRY(status);
    }
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
    /* points far from one another share too few features to be grouped */
    double spread =
        index->is_growing ? 4.0 * reach_of_level(index, level) : INFINITY;
    double start = oj_clock_seconds();
    oj_status status;
    OJ_TRY(oj_quadrants_make(&batch->points, index->args.options.quadrant_size,
                             spread, &batch->quadrants, err));
    batch->stats->sort_s += oj_clock_seconds() - start;
    OJ_TRY(need_grid(index, level, batch->stats, err));
    batch->grid = &index->grid[level];
    status = run_slices(batch, err);
    oj_quadrants_free(&batch->quadrants);
    keep_open(batch);
    return status;
}

/* --- a batch -------------------------------------------------------------- */

static oj_status check_input(const struct quadrant_index *index,
                             const struct oj_flat *input, struct oj_error *err)
{
    const struct oj_flat *flat = index->args.join_side;
    struct oj_pair_filter filter;
    OJ_TRY(
        oj_pair_filter_make(&index->args.relation, input, flat, &filter, err));
    if (!filter.is_needed && input->max_distance == NULL &&
        flat->max_distance == NULL &&
        (oj_flat_is_points(input) ||
         (input->part_kinds & ~(unsigned)OJ_PART_POINT) == 0))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "the backend \"quadrant\" takes points as input, and no "
                   "conditions on pairs");
}

static oj_status start_batch(struct quadrant_batch *batch,
                             const struct oj_flat *input, struct oj_error *err)
{
    const struct oj_index_args *args = &batch->index->args;
    int n_threads = args->options.n_threads;
    struct oj_relation bounds = args->relation;
    double start = oj_clock_seconds();
    OJ_TRY(oj_points_make(input, &batch->points, err));
    OJ_TRY(oj_points_sort(&batch->points, err));
    OJ_NEW(batch->is_open, batch->points.n, err);
    OJ_NEW_ZEROED(batch->worker, n_threads, err);
    OJ_NEW_ZEROED(batch->answers, n_threads, err);
    bounds.ties = OJ_TIES_FIRST;
    bounds.max_distance = INFINITY;
    for (int thread = 0; thread < n_threads; thread++)
    {
        struct quadrant_worker *worker = &batch->worker[thread];
        worker->ranking = oj_ranking_make(&args->relation, args->tie_rank);
        worker->nearest = oj_ranking_make(&bounds, NULL);
        oj_answers_start(&batch->answers[thread], args->options.max_batch_pairs,
                         input->n_features, n_threads);
    }
    batch->stats->sort_s += oj_clock_seconds() - start;
    return OJ_OK;
}

static oj_status finish_batch(struct quadrant_batch *batch, int64_t n_rows,
                              struct oj_matches *out, struct oj_error *err)
{
    const struct oj_index_args *args = &batch->index->args;
    double start = oj_clock_seconds();
    OJ_TRY(oj_answers_to_matches(batch->answers, args->options.n_threads,
                                 n_rows, &args->relation, args->tie_rank, out,
                                 err));
    batch->stats->refine_s += oj_clock_seconds() - start;
    return OJ_OK;
}

static void end_batch(struct quadrant_batch *batch)
{
    int n_threads = batch->index->args.options.n_threads;
    for (int thread = 0; thread < n_threads; thread++)
    {
        if (batch->worker != NULL)
        {
            batch->stats->n_candidates += batch->worker[thread].n_candidates;
            oj_ranking_free(&batch->worker[thread].ranking);
            oj_ranking_free(&batch->worker[thread].nearest);
        }
        if (batch->answers != NULL)
            oj_answers_free(&batch->answers[thread]);
    }
    oj_free(batch->worker);
    oj_free(batch->answers);
    oj_free(batch->is_open);
    oj_free(batch->offset);
    oj_free(batch->n_found);
    oj_free(batch->feature);
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
    end_batch(&batch);
    return status;
}

const struct oj_engine oj_quadrant_engine = {
    "quadrant", NULL, sizeof(struct quadrant_index), build_index, join,
    free_side,  NULL};
