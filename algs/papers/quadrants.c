/** Paper: Zhang, You, Gruenwald 2012, "High-Performance Spatial Join Processing
 *  on GPGPUs with Applications to Large-Scale Taxi Trip Data".
 *
 *  Method, on flat arrays: points are grouped in quadrants of at most K points
 *  (section 3.2). A uniform grid finds the boxes of the join side that
 *  intersect a quadrant (section 3.3). Then the distance between each point of
 *  a quadrant and each segment of the features found is computed (section 3.4).
 *
 *  Differences: the paper expands the boxes of the join side by the distance;
 *  here the quadrants are expanded, so that one grid serves every distance.
 *  If there is no maximum distance, or one so large that most of the layer
 *  would be candidates, quadrants search within the typical distance of
 *  features. Points that need more are then searched one by one with a growing
 *  radius (ours).
 *
 *  The backend "quadrant". On a GPU: cuda/papers/cuda_quadrants.cu. */
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_compare.h"
#include "../foundations/base/oj_feature_box.h"
#include "../foundations/base/oj_point_quadtree.h"
#include "../foundations/base/oj_radix_sort.h"
#include "../foundations/kernels/oj_point_quadrants.h"
#include "../pairs/selection/oj_parallel_row_search.h"
#include "../references/validation/plain_point_distance.h"

#include <stdlib.h>
#include <string.h>

/* --- the grid of the filter -----------------------------------------------

 * Boxes of the join side as cells of a uniform grid, which quadrants look up by
 * binary search (section 3.3).
 *
 *  cell          [ 3    7    8   ... ]  row * 2^32 + column, ascending
 *  cell_offset   [ 0    2    3    6 ... ]
 *  feature       [ 4 9  4    2 5 9 ... ]  feature whose box intersects the cell
 *
 *  Cells that no box intersects are not stored, so outliers cost no memory.
 */
struct quadrant_grid
{
    const struct oj_boxes *boxes; /* widened boxes of the join side; borrowed */
    int has_cells;                /* 0: the grid is a single cell with all
                                     features */
    struct oj_quadrant_frame frame;
    int64_t n_cells, n_entries;
    uint64_t *cell;       /* [n_cells] cell numbers, ascending: row * 2^32 +
                             column */
    int64_t *cell_offset; /* [n_cells + 1] first entry of each cell */
    int32_t *feature;     /* [n_entries] features, cell by cell */
};

#define N_SAMPLES 1023

/* Returns the initial size of cells: twice the longer side of a typical box
 * that is expanded by reach, so that such a box intersects few cells. */
static double choose_cell_size_by_median_box(const struct oj_boxes *boxes,
                                             double reach)
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

/* Chooses the size of cells: doubles it until there are at most 6 entries per
 * feature and 1,024 more, or a single cell contains everything. Returns the
 * number of entries, or 0 if these coordinates do not allow a grid. */
static int64_t choose_cell_size(struct quadrant_grid *grid, double reach)
{
    const struct oj_boxes *boxes = grid->boxes;
    const struct oj_box *all = &boxes->all;
    double extent = fmax(all->x1 - all->x0, all->y1 - all->y0);
    double limit = 6.0 * (double)boxes->n_boxes + 1024.0;
    double size = fmax(choose_cell_size_by_median_box(boxes, reach),
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

static void list_cell_feature_entries(const struct quadrant_grid *grid,
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

static oj_status store_features_of_cells(struct quadrant_grid *grid,
                                         const struct oj_keyed *entry,
                                         struct oj_error *err)
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

/* Makes the grid for quadrants with this search distance. After an error the
 * grid can be freed. */
static oj_status make_grid_of_join_boxes(struct quadrant_grid *grid,
                                         double reach, struct oj_error *err)
{
    struct oj_keyed *entry;
    oj_status status;
    if (grid->boxes->n_boxes > 0 && reach < INFINITY)
        grid->n_entries = choose_cell_size(grid, reach);
    if (grid->n_entries == 0)
        return OJ_OK;
    OJ_NEW(entry, 2 * grid->n_entries, err);
    list_cell_feature_entries(grid, entry);
    status = store_features_of_cells(
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

/* Returns the number of entries in the cells that the window intersects. A
 * feature may have several entries. */
static int64_t count_entries_in_window(const struct quadrant_grid *grid,
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
        row = oj_quadrant_cells_of_row(grid->cell, grid->n_cells, row, &cells,
                                       &first, &end);
        n += grid->cell_offset[end] - grid->cell_offset[first];
    }
    return n;
}

/* Lists in out the features whose boxes intersect the window (without cells:
 * all features that have a box), each of them once; returns their number. out
 * must have room for count_entries_in_window() features. */
static int64_t list_features_in_window(const struct quadrant_grid *grid,
                                       const struct oj_box *window,
                                       int32_t *out)
{
    const struct oj_box *box = grid->boxes->box;
    struct oj_quadrant_cells cells;
    int64_t n = 0;
    for (int64_t i = 0; !grid->has_cells && i < grid->boxes->n; i++)
    {
        if (!oj_box_is_empty(&box[i]))
            out[n++] = (int32_t)i;
    }
    if (!grid->has_cells)
        return n;
    cells = oj_quadrant_cells_of(&grid->frame, window);
    for (uint32_t row = cells.row0; row <= cells.row1;)
    {
        int64_t first, end;
        row = oj_quadrant_cells_of_row(grid->cell, grid->n_cells, row, &cells,
                                       &first, &end);
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
                if (oj_quadrant_is_first_common_cell(grid->cell[c], &cells,
                                                     &others))
                    out[n++] = feature;
            }
        }
    }
    return n;
}

/* --- the join side -------------------------------------------------------- */

struct quadrant_index
{
    struct oj_row_index shared;
    struct oj_boxes boxes;
    /* 0: as in the paper, each point of a quadrant is compared with each
     * segment of the quadrant's features, except features beyond the point's
     * maximum distance. 1: the search radius grows, and features whose boxes
     * are too far away are skipped. */
    int is_growing;
    double reach; /* search distance of quadrants */
    struct quadrant_grid grid;

    /* The following members are for the current batch. */
    struct oj_points points; /* points of all rows, in Morton order */
    struct oj_quadrants quadrants;
};

static void free_quadrants_index(struct oj_index *wrapped)
{
    struct quadrant_index *index = (void *)wrapped;
    free_grid(&index->grid);
    oj_boxes_free(&index->boxes);
}

static oj_status build_boxes_and_grid(struct quadrant_index *index,
                                      struct oj_stats *stats,
                                      struct oj_error *err)
{
    const struct oj_relation *relation = &index->shared.args.relation;
    struct quadrant_grid *grid = &index->grid;
    OJ_TRY(oj_boxes_make(index->shared.args.join_side, &index->boxes, err));
    index->is_growing = oj_boxes_window_is_wide(
        &index->boxes, relation->max_distance, relation->k);
    index->reach = relation->max_distance;
    if (index->is_growing)
        index->reach = fmin(index->boxes.spacing * sqrt((double)relation->k),
                            relation->max_distance);
    grid->boxes = &index->boxes;
    OJ_TRY(make_grid_of_join_boxes(grid, index->reach, err));
    stats->index_bytes +=
        index->boxes.n * (int64_t)sizeof(struct oj_box) +
        grid->n_cells * (int64_t)(sizeof(uint64_t) + sizeof(int64_t)) +
        grid->n_entries * (int64_t)sizeof(int32_t);
    return OJ_OK;
}

/* --- search for the points of a quadrant ---------------------------------- */

/* State of a thread. */
struct quadrant_worker
{
    struct oj_row_worker shared;
    int64_t n_features, cap_feature, cap_open;
    int32_t *feature; /* [n_features] features within reach of the quadrant */
    int64_t *open;    /* points of the quadrant for which nearer features may
                         exist outside the reach */
};

/* Lists in worker->feature the features whose boxes are within reach of box. */
static oj_status list_features_within_reach(const struct quadrant_index *index,
                                            struct quadrant_worker *worker,
                                            const struct oj_box *box,
                                            double reach, struct oj_error *err)
{
    struct oj_box window = oj_box_widened(box, reach);
    double start = oj_clock_seconds();
    /* + 1, because the array must exist even if there are no features */
    int64_t n = count_entries_in_window(&index->grid, &window) + 1;
    OJ_ROOM(worker->feature, 0, n, worker->cap_feature, err);
    worker->n_features =
        list_features_in_window(&index->grid, &window, worker->feature);
    worker->shared.filter_s += oj_clock_seconds() - start;
    return OJ_OK;
}

/* Computes and ranks the distances of a point to the listed features, except
 * those whose box is beyond reach. Sets *is_settled to 1 if no other feature
 * can be nearer. */
static oj_status rank_listed_within_reach_of_point(
    const struct quadrant_index *index, struct quadrant_worker *worker,
    int64_t point, double reach, int *is_settled, struct oj_error *err)
{
    const struct oj_relation *relation = &index->shared.args.relation;
    double x = index->points.x[point], y = index->points.y[point];
    struct oj_box at = {x, y, x, y}, around = oj_box_widened(&at, 0.0);
    struct oj_box window = oj_box_widened(&at, reach);
    struct oj_ranking *ranking = &worker->shared.ranking;
    OJ_TRY(oj_check_cancel(index->shared.args.options.cancel, err));
    oj_ranking_start(ranking);
    for (int64_t i = 0; i < worker->n_features; i++)
    {
        int32_t feature = worker->feature[i];
        const struct oj_box *box = &index->boxes.box[feature];
        double distance;
        if (!oj_box_intersects(&window, box) ||
            (index->is_growing &&
             oj_box_distance(&around, box) > ranking->bound))
            continue;
        worker->shared.n_candidates++;
        distance = oj_flat_distance(index->shared.args.join_side, feature,
                                    relation->distance_to, x, y);
        OJ_TRY(oj_ranking_add(ranking, feature, distance, err));
    }
    oj_ranking_finish(ranking);
    *is_settled = reach >= relation->max_distance ||
                  oj_ranking_kth_distance(ranking) <= reach;
    return OJ_OK;
}

static oj_status find_nearest_of_quadrant(struct oj_row_index *shared,
                                          struct oj_row_worker *of_row,
                                          int64_t q, struct oj_error *err)
{
    const struct quadrant_index *index = (void *)shared;
    struct quadrant_worker *worker = (void *)of_row;
    const struct oj_quadrant *quadrant = &index->quadrants.quadrant[q];
    const struct oj_points *points = &index->points;
    int64_t n_open = 0;
    int is_settled;
    OJ_TRY(list_features_within_reach(index, worker, &quadrant->box,
                                      index->reach, err));
    for (int64_t p = quadrant->first; p < quadrant->end; p++)
    {
        OJ_TRY(rank_listed_within_reach_of_point(index, worker, p, index->reach,
                                                 &is_settled, err));
        if (is_settled)
            OJ_TRY(oj_answers_add_ranking(of_row->answers, points->row[p],
                                          &of_row->ranking, err));
        else
        {
            OJ_ROOM(worker->open, n_open, n_open + 1, worker->cap_open, err);
            worker->open[n_open++] = p;
        }
    }
    for (int64_t i = 0; i < n_open; i++)
    {
        int64_t p = worker->open[i];
        struct oj_box at = oj_box_of_points(points->x + p, points->y + p, 1);
        double reach = index->reach;
        do
        {
            reach = fmin(2.0 * reach, shared->args.relation.max_distance);
            OJ_TRY(list_features_within_reach(index, worker, &at, reach, err));
            OJ_TRY(rank_listed_within_reach_of_point(index, worker, p, reach,
                                                     &is_settled, err));
        } while (!is_settled && worker->n_features < index->boxes.n_boxes);
        OJ_TRY(oj_answers_add_ranking(of_row->answers, points->row[p],
                                      &of_row->ranking, err));
    }
    return OJ_OK;
}

/* --- a batch -------------------------------------------------------------- */

static oj_status check_input(const struct oj_row_index *shared,
                             struct oj_error *err)
{
    const struct oj_flat *input = shared->input;
    if (!shared->filter.is_needed && input->max_distance == NULL &&
        shared->args.join_side->max_distance == NULL &&
        (oj_flat_is_points(input) ||
         (input->part_kinds & ~(unsigned)OJ_PART_POINT) == 0))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_UNSUPPORTED,
                   "the backend \"quadrant\" supports only points as input, "
                   "and no conditions on pairs: use the backend cpu");
}

static oj_status start_batch(struct oj_row_index *shared, struct oj_error *err)
{
    struct quadrant_index *index = (void *)shared;
    OJ_TRY(check_input(shared, err));
    OJ_TRY(oj_points_make(shared->input, &index->points, err));
    OJ_TRY(oj_points_sort(&index->points, err));
    OJ_TRY(oj_quadtree_make(&index->points, shared->args.options.quadrant_size,
                            &index->quadrants, err));
    shared->n_rows = index->quadrants.n;
    return OJ_OK;
}

static void end_batch(struct oj_row_index *shared)
{
    struct quadrant_index *index = (void *)shared;
    oj_points_free(&index->points);
    oj_quadtree_free(&index->quadrants);
}

static void free_worker(struct oj_row_worker *worker)
{
    oj_free(((struct quadrant_worker *)(void *)worker)->feature);
    oj_free(((struct quadrant_worker *)(void *)worker)->open);
}

static const struct oj_row_method quadrants = {
    .worker_size = sizeof(struct quadrant_worker),
    .start = start_batch,
    .answer = find_nearest_of_quadrant,
    .end = end_batch,
    .free_worker = free_worker};

/* Builds the index; supports only the nearest features of points. */
static oj_status build_index(struct oj_index *wrapped,
                             const struct oj_index_args *args,
                             struct oj_stats *stats, struct oj_error *err)
{
    const struct oj_relation *relation = &args->relation;
    if (!oj_relation_is_nearest(relation) ||
        relation->metric != OJ_METRIC_PLANAR ||
        oj_relation_compares_shapes(relation) || relation->min_distance != 0.0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the backend \"quadrant\" supports only op nearest with "
                       "metric planar and distance least, without "
                       "min_distance: use the backend cpu");
    return build_boxes_and_grid(oj_row_index_begin(wrapped, &quadrants, args),
                                stats, err);
}

const struct oj_engine oj_quadrant_engine = {
    .name = "quadrant",
    .index_size = sizeof(struct quadrant_index),
    .build = build_index,
    .join = oj_row_join,
    .free_side = free_quadrants_index,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options};
