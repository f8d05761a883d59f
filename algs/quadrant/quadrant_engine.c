/** The paper's method on flat arrays: points in quadrants of at most K, each
 * met with the boxes of the join side in the cells of a grid, then every point
 * of a quadrant against every segment of its features. Source: Zhang, You,
 * Gruenwald 2012, sections 3.1 to 3.4.  The paper expands the boxes of the join
 * side by the distance; here the quadrants are, so that one grid serves every
 * distance.
 *
 *  Where the distance is not bounded, or so wide that most of the layer would
 *  be a candidate, each quadrant looks around itself at a distance that grows
 *  until it must hold the nearest features of all its points; points far from
 *  one another for that are parted.  That is ours. */
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_compare.h"
#include "../../flatten/base/oj_threads.h"
#include "../base/oj_boxes.h"
#include "../base/oj_point_quadtree.h"
#include "../base/oj_radix.h"
#include "../kernels/oj_quadrant.h"
#include "../pairs/oj_pair_filter.h"
#include "../pairs/oj_ranking.h"
#include "../relation/oj_engine.h"
#include "flat_distance.h"

#include <stdlib.h>
#include <string.h>

/* --- the grid of the filter -----------------------------------------------

 * Boxes of the join side as cells of a uniform grid, which quadrants look up by
 * binary search (section 3.3).
 *
 *  cell          [ 3    7    8   ... ]  row * 2^32 + column, ascending
 *  cell_offset   [ 0    2    3    6 ... ]
 *  feature       [ 4 9  4    2 5 9 ... ]  whose box touches the cell
 *
 *  Cells that no box touches are not stored, so that features far off cost
 *  nothing.
 */
struct quadrant_grid
{
    const struct oj_boxes *boxes; /* borrowed */
    int has_cells;                /* 0: every feature is in the one cell */
    struct oj_quadrant_frame frame;
    int64_t n_cells, n_entries;
    uint64_t *cell;       /* [n_cells] */
    int64_t *cell_offset; /* [n_cells + 1] */
    int32_t *feature;     /* [n_entries] */
};

#define N_SAMPLES 1023

/* Twice the longer side of a typical box that is expanded by reach: such a box
 * touches a few cells. */
static double typical_cell_size(const struct oj_boxes *boxes, double reach)
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
static int64_t choose_cell_size(struct quadrant_grid *grid, double reach)
{
    const struct oj_boxes *boxes = grid->boxes;
    const struct oj_box *all = &boxes->all;
    double extent = fmax(all->x1 - all->x0, all->y1 - all->y0);
    double limit = 6.0 * (double)boxes->n_boxes + 1024.0;
    double size = fmax(typical_cell_size(boxes, reach),
                       extent / (double)OJ_QUADRANT_LAST_COLUMN);
    if (!(extent < INFINITY) || !(size > 0.0))
        return 0;
    grid->frame.x0 = all->x0;
    grid->frame.y0 = all->y0;
    for (; size < INFINITY; size *= 2.0)
    {
        double n = 0.0;
        grid->frame.size = size;
        for (int64_t i = 0; i < boxes->n && n <= limit; i++)
        {
            struct oj_quadrant_cells cells;
            if (oj_box_is_empty(&boxes->box[i]))
                continue;
            cells = oj_quadrant_cells_of(&grid->frame, &boxes->box[i]);
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
    for (int64_t i = 0; i < grid->boxes->n; i++)
    {
        const struct oj_box *box = &grid->boxes->box[i];
        struct oj_quadrant_cells cells;
        if (oj_box_is_empty(box))
            continue;
        cells = oj_quadrant_cells_of(&grid->frame, box);
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

/* Cells for quadrants that look as far as reach. After an error grid can be
 * freed. */
static oj_status make_grid(struct quadrant_grid *grid, double reach,
                           struct oj_error *err)
{
    struct oj_keyed *entry;
    oj_status status;
    if (grid->boxes->n_boxes > 0 && reach < INFINITY)
        grid->n_entries = choose_cell_size(grid, reach);
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
}

/* Entries in the cells that window touches: repeats counted. */
static int64_t count_in_window(const struct quadrant_grid *grid,
                               const struct oj_box *window)
{
    struct oj_quadrant_cells cells;
    int64_t n = 0;
    if (!grid->has_cells)
        return grid->boxes->n_boxes;
    cells = oj_quadrant_cells_of(&grid->frame, window);
    for (uint32_t row = cells.row0; row <= cells.row1;)
    {
        int64_t first, end;
        row = oj_quadrant_run(grid->cell, grid->n_cells, row, &cells, &first,
                              &end);
        n += grid->cell_offset[end] - grid->cell_offset[first];
    }
    return n;
}

/* A feature that points of a quadrant are measured against. */
struct quadrant_feature
{
    double low; /* none of the points is nearer to it */
    int32_t feature;
};

/* Writes the features whose box intersects window, each once, to out, which has
 * room for count_in_window() of them. Returns their number. */
static int64_t list_in_window(const struct quadrant_grid *grid,
                              const struct oj_box *window,
                              struct quadrant_feature *out)
{
    const struct oj_box *box = grid->boxes->box;
    struct oj_quadrant_cells cells;
    int64_t n = 0;
    for (int64_t i = 0; !grid->has_cells && i < grid->boxes->n; i++)
    {
        if (!oj_box_is_empty(&box[i]))
            out[n++] = (struct quadrant_feature){0.0, (int32_t)i};
    }
    if (!grid->has_cells)
        return n;
    cells = oj_quadrant_cells_of(&grid->frame, window);
    for (uint32_t row = cells.row0; row <= cells.row1;)
    {
        int64_t first, end;
        row = oj_quadrant_run(grid->cell, grid->n_cells, row, &cells, &first,
                              &end);
        for (int64_t c = first; c < end; c++)
        {
            for (int64_t e = grid->cell_offset[c]; e < grid->cell_offset[c + 1];
                 e++)
            {
                int32_t feature = grid->feature[e];
                const struct oj_box *other = &box[feature];
                struct oj_quadrant_cells others;
                if (!oj_box_intersects(other, window))
                    continue;
                others = oj_quadrant_cells_of(&grid->frame, other);
                if (oj_quadrant_counts_in(grid->cell[c], &cells, &others))
                    out[n++] = (struct quadrant_feature){0.0, feature};
            }
        }
    }
    return n;
}

/* --- the join side -------------------------------------------------------- */

struct quadrant_index
{
    struct oj_index_args args;
    struct oj_boxes boxes;
    /* 0: every point of a quadrant meets every segment of its features, as in
     * the paper, but for features whose box is out of the point's own reach.
     * 1, where the distance is not bounded: features that cannot be near enough
     * are passed over by their boxes. */
    int is_growing;
    double reach; /* of quadrants, at least to begin with */
    struct quadrant_grid grid;
};

static void free_side(struct oj_index *wrapped)
{
    struct quadrant_index *index = (void *)wrapped;
    free_grid(&index->grid);
    oj_boxes_free(&index->boxes);
}

static oj_status build_boxes_and_grid(struct quadrant_index *index,
                                      struct oj_stats *stats,
                                      struct oj_error *err)
{
    const struct oj_relation *relation = &index->args.relation;
    struct quadrant_grid *grid = &index->grid;
    OJ_TRY(oj_boxes_make(index->args.join_side, &index->boxes, err));
    index->is_growing = oj_boxes_window_is_wide(
        &index->boxes, relation->max_distance, relation->k);
    index->reach = relation->max_distance;
    if (index->is_growing)
        index->reach = fmin(index->boxes.spacing * sqrt((double)relation->k),
                            relation->max_distance);
    grid->boxes = &index->boxes;
    OJ_TRY(make_grid(grid, index->reach, err));
    stats->index_bytes +=
        index->boxes.n * (int64_t)sizeof(struct oj_box) +
        grid->n_cells * (int64_t)(sizeof(uint64_t) + sizeof(int64_t)) +
        grid->n_entries * (int64_t)sizeof(int32_t);
    return OJ_OK;
}

/* The papers' method is for the nearest features of points. */
static oj_status build_index(struct oj_index *wrapped,
                             const struct oj_index_args *args,
                             struct oj_stats *stats, struct oj_error *err)
{
    const struct oj_relation *relation = &args->relation;
    struct quadrant_index *index = (void *)wrapped;
    if (relation->op != OJ_OP_NEAREST || relation->metric != OJ_METRIC_PLANAR ||
        oj_relation_compares_shapes(relation) || relation->min_distance != 0.0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the backend \"quadrant\" knows only -op nearest, in "
                       "the plane, by the least distance and without a bound "
                       "from below");
    index->args = *args;
    return build_boxes_and_grid(index, stats, err);
}

/* --- a quadrant ----------------------------------------------------------- */

/* What one thread has of its own. */
struct quadrant_worker
{
    struct oj_ranking ranking;
    struct oj_ranking nearest; /* upper bounds of distances, to prune */
    double reach;              /* within which features are listed */
    int is_wide; /* 1: the points are too far from one another for that */
    int64_t n_features, cap_feature;
    struct quadrant_feature *feature; /* [n_features] of the quadrant */
    int64_t n_candidates;
    double filter_s, refine_s;
};

/* A batch on its way. */
struct quadrant_batch
{
    struct quadrant_index *index;
    struct oj_points points; /* sorted */
    struct oj_quadrants quadrants;
    struct quadrant_worker *worker; /* [n_threads] */
    struct oj_answers *answers;     /* [n_threads] */
};

/* Lists the features within worker->reach of box. */
static oj_status list_features(const struct quadrant_index *index,
                               struct quadrant_worker *worker,
                               const struct oj_box *box, struct oj_error *err)
{
    struct oj_box window = oj_box_around(box, worker->reach);
    /* never none, so that feature is an array even for no features */
    int64_t n = count_in_window(&index->grid, &window) + 1;
    OJ_ROOM(worker->feature, 0, n, worker->cap_feature, err);
    worker->n_features = list_in_window(&index->grid, &window, worker->feature);
    return OJ_OK;
}

/* A distance within which every point of window has k of the features listed;
 * INFINITY: they are fewer. */
static oj_status bound_kth_distance(struct quadrant_worker *worker,
                                    const struct oj_boxes *boxes,
                                    const struct oj_box *window, double *bound,
                                    struct oj_error *err)
{
    struct oj_ranking *nearest = &worker->nearest;
    oj_ranking_start(nearest);
    for (int64_t i = 0; i < worker->n_features; i++)
    {
        int32_t feature = worker->feature[i].feature;
        OJ_TRY(oj_ranking_add(nearest, feature,
                              oj_box_farthest(window, &boxes->box[feature]),
                              err));
    }
    oj_ranking_finish(nearest);
    *bound = oj_ranking_kth_distance(nearest);
    return OJ_OK;
}

static int compare_lows(const void *a, const void *b)
{
    const struct quadrant_feature *x = a, *y = b;
    return oj_compare_doubles(&x->low, &y->low);
}

/* Lists, the nearest first, what may be among the k nearest features of some
 * point in box, looking farther and farther.  Where the points are far from one
 * another and share too few features, nothing is listed: worker->is_wide. */
static oj_status list_near_features(const struct quadrant_index *index,
                                    struct quadrant_worker *worker,
                                    const struct oj_box *box,
                                    struct oj_error *err)
{
    const struct oj_boxes *boxes = &index->boxes;
    double most = index->args.relation.max_distance;
    int64_t enough = index->args.relation.k, n_kept = 0;
    struct oj_box window = oj_box_around(box, 0.0);
    double width = box->x1 - box->x0, height = box->y1 - box->y0;
    double spread = sqrt(width * width + height * height);
    double bound = INFINITY, next;
    enough = enough < boxes->n_boxes ? enough : boxes->n_boxes;
    for (;; worker->reach = fmin(next, most))
    {
        struct oj_box around = oj_box_around(box, worker->reach);
        next = 2.0 * worker->reach;
        if (worker->reach < most &&
            count_in_window(&index->grid, &around) < enough)
            continue;
        worker->is_wide = spread > 4.0 * worker->reach;
        if (worker->is_wide)
            return OJ_OK;
        OJ_TRY(list_features(index, worker, box, err));
        OJ_TRY(bound_kth_distance(worker, boxes, &window, &bound, err));
        if (bound <= worker->reach || worker->n_features == boxes->n_boxes ||
            worker->reach >= most)
            break;
        next = bound < INFINITY ? bound : next;
    }
    for (int64_t i = 0; i < worker->n_features; i++)
    {
        struct quadrant_feature f = worker->feature[i];
        f.low = oj_box_distance(&window, &boxes->box[f.feature]);
        if (f.low <= bound)
            worker->feature[n_kept++] = f;
    }
    worker->n_features = n_kept;
    qsort(worker->feature, (size_t)n_kept, sizeof *worker->feature,
          compare_lows);
    return OJ_OK;
}

/* Ranks the features listed for a point, passing over those whose box is not
 * within reach of it. */
static oj_status rank_in_reach(const struct quadrant_index *index,
                               struct quadrant_worker *worker, double x,
                               double y, double reach, struct oj_error *err)
{
    struct oj_box at = {x, y, x, y}, around = oj_box_around(&at, 0.0);
    struct oj_box window = oj_box_around(&at, reach);
    struct oj_ranking *ranking = &worker->ranking;
    const struct quadrant_feature *f = worker->feature;
    oj_ranking_start(ranking);
    for (int64_t i = 0; i < worker->n_features; i++, f++)
    {
        const struct oj_box *box = &index->boxes.box[f->feature];
        double distance;
        if (f->low > reach || f->low > ranking->bound)
            break;
        if (!oj_box_intersects(&window, box) ||
            (index->is_growing &&
             oj_box_distance(&around, box) > ranking->bound))
            continue;
        worker->n_candidates++;
        distance = oj_flat_distance(index->args.join_side, f->feature,
                                    index->args.relation.distance_to, x, y);
        OJ_TRY(oj_ranking_add(ranking, f->feature, distance, err));
    }
    oj_ranking_finish(ranking);
    return OJ_OK;
}

/* Without a bound, the reach of a point grows until it holds what is asked
 * for. */
static oj_status rank_point(const struct quadrant_index *index,
                            struct quadrant_worker *worker, double x, double y,
                            struct oj_error *err)
{
    double reach = index->reach;
    for (;;)
    {
        OJ_TRY(rank_in_reach(index, worker, x, y, reach, err));
        if (!index->is_growing || !(reach < INFINITY) ||
            oj_ranking_kth_distance(&worker->ranking) <= reach)
            return OJ_OK;
        reach = 2.0 * reach < worker->reach ? 2.0 * reach : INFINITY;
    }
}

/* Points first <= p < end, which are a quadrant or a part of one. */
static oj_status answer_points(const struct quadrant_batch *batch, int thread,
                               int64_t first, int64_t end, struct oj_error *err)
{
    const struct quadrant_index *index = batch->index;
    const struct oj_points *points = &batch->points;
    struct quadrant_worker *worker = &batch->worker[thread];
    struct oj_box box =
        oj_box_of(points->x + first, points->y + first, end - first);
    double start = oj_clock_seconds(), listed;
    worker->reach = index->reach;
    if (index->is_growing)
        OJ_TRY(list_near_features(index, worker, &box, err));
    else
        OJ_TRY(list_features(index, worker, &box, err));
    listed = oj_clock_seconds();
    worker->filter_s += listed - start;
    if (worker->is_wide)
    {
        int64_t middle = first + (end - first) / 2;
        OJ_TRY(answer_points(batch, thread, first, middle, err));
        return answer_points(batch, thread, middle, end, err);
    }
    for (int64_t p = first; p < end; p++)
    {
        OJ_TRY(oj_check_cancel(index->args.options.cancel, err));
        OJ_TRY(rank_point(index, worker, points->x[p], points->y[p], err));
        OJ_TRY(oj_answers_add(&batch->answers[thread], points->row[p],
                              &worker->ranking, err));
    }
    worker->refine_s += oj_clock_seconds() - listed;
    return OJ_OK;
}

static oj_status answer_quadrant(int64_t q, int thread, void *user,
                                 struct oj_error *err)
{
    struct quadrant_batch *batch = user;
    const struct oj_quadrant *quadrant = &batch->quadrants.quadrant[q];
    return answer_points(batch, thread, quadrant->first, quadrant->end, err);
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
                             const struct oj_flat *input,
                             struct oj_stats *stats, struct oj_error *err)
{
    const struct oj_index_args *args = &batch->index->args;
    int n_threads = args->options.n_threads;
    struct oj_relation bounds = args->relation;
    double start = oj_clock_seconds();
    OJ_TRY(oj_points_make(input, &batch->points, err));
    OJ_TRY(oj_points_sort(&batch->points, err));
    OJ_TRY(oj_quadrants_make(&batch->points, args->options.quadrant_size,
                             &batch->quadrants, err));
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
    stats->sort_s += oj_clock_seconds() - start;
    return OJ_OK;
}

static oj_status run_batch(struct quadrant_batch *batch,
                           const struct oj_flat *input, struct oj_matches *out,
                           struct oj_stats *stats, struct oj_error *err)
{
    const struct oj_index_args *args = &batch->index->args;
    int n_threads = args->options.n_threads;
    double start;
    OJ_TRY(start_batch(batch, input, stats, err));
    OJ_TRY(oj_parallel_try(n_threads, batch->quadrants.n, 1, answer_quadrant,
                           batch, err));
    start = oj_clock_seconds();
    OJ_TRY(oj_answers_to_matches(batch->answers, n_threads, input->n_features,
                                 &args->relation, args->tie_rank, out, err));
    stats->refine_s += oj_clock_seconds() - start;
    return OJ_OK;
}

static void end_batch(struct quadrant_batch *batch, struct oj_stats *stats)
{
    int n_threads = batch->index->args.options.n_threads;
    for (int thread = 0; thread < n_threads && batch->worker != NULL; thread++)
    {
        struct quadrant_worker *worker = &batch->worker[thread];
        stats->n_candidates += worker->n_candidates;
        stats->filter_s += worker->filter_s / n_threads;
        stats->refine_s += worker->refine_s / n_threads;
        oj_ranking_free(&worker->ranking);
        oj_ranking_free(&worker->nearest);
        oj_free(worker->feature);
        if (batch->answers != NULL)
            oj_answers_free(&batch->answers[thread]);
    }
    oj_free(batch->worker);
    oj_free(batch->answers);
    oj_points_free(&batch->points);
    oj_quadrants_free(&batch->quadrants);
}

static oj_status join_by_quadrants(struct oj_index *wrapped,
                                   const struct oj_flat *input,
                                   struct oj_matches *out,
                                   struct oj_stats *stats, struct oj_error *err)
{
    struct quadrant_batch batch = {.index = (void *)wrapped};
    oj_status status;
    OJ_TRY(check_input(batch.index, input, err));
    status = run_batch(&batch, input, out, stats, err);
    end_batch(&batch, stats);
    return status;
}

const struct oj_engine oj_quadrant_engine = {.name = "quadrant",
                                             .index_size =
                                                 sizeof(struct quadrant_index),
                                             .build = build_index,
                                             .join = join_by_quadrants,
                                             .free_side = free_side};
