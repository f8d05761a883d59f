/* Engine for joins by distances of shapes. The features of the join side are
 * entries of one tree, keyed by the sides of their boxes, which is searched for
 * every input feature in the order of a lower bound; cpu_shape_blocks.h
 * measures the pairs.
 *
 * Lower bound: the leftmost vertex of a feature is at least as far from another
 * feature as their left sides differ, and likewise for the other three sides.
 * So the bound is the maximum difference of the sides. A directed distance uses
 * only sides by which the first feature protrudes. For the Frechet distance,
 * the first and last vertices add four dimensions, on the sphere six. On the
 * sphere, boxes are those of unit vectors in space, and squared chords are
 * compared.
 *
 *  entry      0   1   2  ...   features in Morton order of their centres
 *  feature  [ 7   3   9  ...   ordinals
 *  box      [                  2 n_dims numbers each: sides and ends, widened
 *                              against rounding; all levels (cpu_box_levels.h)
 *
 * Source: incremental search (Hjaltason and Samet 1999); the bound is ours. */
#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/cpu_box_levels.h"
#include "../../foundations/kernels/oj_square_limit.h"
#include "../../pairs/selection/oj_class_runs.h"
#include "../../pairs/selection/oj_parallel_row_search.h"
#include "../sphere/cpu_sphere_side.h"
#include "cpu_shape_blocks.h"

#define MOST_DIMS 12

/* State of a thread. */
struct shape_worker
{
    struct oj_row_worker shared;
    struct oj_shape_scratch scratch;
    double around[2 * MOST_DIMS]; /* sides and ends of the row, as a box of the
                                     tree */
    int64_t n_open, cap_open;
    struct oj_box_child *open; /* [n_open] heap by lower bound (d2), the
                                  smallest first */
};

struct shape_index
{
    struct oj_row_index shared;
    int n_dims;
    int is_directed[2]; /* 1: only the distance from the input feature (0) or
                           from the join feature (1) is measured */
    struct oj_shape_blocks side; /* the join side */
    struct oj_box_levels levels;
    int32_t *feature; /* [entries] */
    double *box;
    struct oj_class_runs classes; /* runs of entries */
    double most; /* maximum over the join features' own maximum distances */

    /* The current batch. */
    struct oj_shape_blocks input;
};

/* --- index ---------------------------------------------------------------- */

static int supports_similar_shapes_join(const struct oj_relation *relation,
                                        const struct oj_flat *join_side,
                                        const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return oj_relation_compares_shapes(relation);
}

static int is_frechet(const struct oj_row_index *index)
{
    return index->args.relation.distance == OJ_DISTANCE_FRECHET;
}

static int is_on_sphere(const struct oj_row_index *index)
{
    return index->args.relation.metric == OJ_METRIC_SPHERE;
}

static int centre_of_feature(const void *blocks, int64_t feature, double *x,
                             double *y)
{
    const struct oj_shape_blocks *side = blocks;
    struct oj_box box = oj_box_of_feature(side->flat, feature);
    *x = 0.5 * box.x0 + 0.5 * box.x1;
    *y = 0.5 * box.y0 + 0.5 * box.y1;
    return side->block_offset[feature] < side->block_offset[feature + 1] &&
           oj_feature_may_pair(side->flat, feature);
}

/* Returns the box of a whole feature. */
static const double *root_box_of_feature(const struct oj_shape_blocks *side,
                                         int64_t feature)
{
    return side->node + (side->node_offset[feature + 1] - 1) * 2 * side->n_dims;
}

/* Writes the sides of a feature's box, and for the Frechet distance its first
 * and last vertex, as a box of the tree with n_dims dimensions. On the sphere
 * arcs bulge beyond their vertices: a side is the interval from the side of the
 * vertices, from which distances are measured, to that of the arcs, to which
 * they are measured. */
static void write_bounds_for_tree(const struct oj_shape_blocks *side,
                                  int64_t feature, int n_dims, double *out)
{
    int n = side->n_dims;
    double *high = out + n_dims, size = 0.0, slack;
    int64_t first, end;
    oj_flat_vertex_range(side->flat, feature, &first, &end);
    for (int d = 0; d < n; d++)
    {
        const double *at = side->at[d];
        double most[2] = {INFINITY, -INFINITY};
        for (int64_t v = first; v < end; v++)
        {
            most[0] = at[v] < most[0] ? at[v] : most[0];
            most[1] = oj_larger(most[1], at[v]);
        }
        size = oj_larger(size, oj_larger(fabs(most[0]), fabs(most[1])));
        out[d] = most[0];
        out[n + d] = most[1];
        if (n_dims > 2 * n)
        {
            out[2 * n + d] = at[first];
            out[3 * n + d] = at[end - 1];
        }
    }
    slack = oj_box_rounding_error(size);
    for (int d = 0; d < n_dims; d++)
    {
        high[d] = out[d] + slack;
        out[d] -= slack;
    }
    for (int d = 0; d < n && n == 3; d++)
    {
        out[d] = root_box_of_feature(side, feature)[d];
        high[n + d] = root_box_of_feature(side, feature)[n + d];
    }
}

/* Returns the feature's own maximum distance, on the sphere as a squared chord,
 * or a negative number if the layer has none. */
static double max_distance_of_feature(const struct shape_index *self,
                                      const struct oj_flat *flat,
                                      int64_t feature)
{
    if (flat->max_distance == NULL)
        return -1.0;
    return is_on_sphere(&self->shared)
               ? oj_sphere_chord2_of_metres(flat->max_distance[feature])
               : flat->max_distance[feature];
}

static oj_status fill_leaf_entries_of_tree(struct shape_index *self,
                                           const struct oj_order *order,
                                           struct oj_error *err)
{
    int64_t n = order->n_points;
    oj_box_levels_make(&self->levels, n, 0);
    OJ_NEW(self->feature, n, err);
    OJ_NEW(self->box, oj_box_levels_count(&self->levels) * 2 * self->n_dims,
           err);
    self->most = -1.0;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t f = order->point[i].index;
        self->feature[i] = (int32_t)f;
        write_bounds_for_tree(&self->side, f, self->n_dims,
                              self->box + i * 2 * self->n_dims);
        self->most = oj_larger(
            self->most, max_distance_of_feature(self, self->side.flat, f));
    }
    oj_box_levels_fill(&self->levels, self->n_dims, self->box);
    return oj_class_runs_make(&self->classes, self->side.flat, n, NULL,
                              self->feature, err);
}

static oj_status build_shape_side(const struct oj_row_index *index,
                                  const struct oj_flat *flat,
                                  struct oj_shape_blocks *side,
                                  struct oj_error *err)
{
    return oj_shape_blocks_build(side, flat,
                                 index->args.relation.distance !=
                                         OJ_DISTANCE_HAUSDORFF_POINTS &&
                                     !is_frechet(index),
                                 is_on_sphere(index), index->n_threads, err);
}

static oj_status build_tree(struct shape_index *self, struct oj_stats *stats,
                            struct oj_error *err)
{
    struct oj_row_index *shared = &self->shared;
    enum oj_distance_kind kind = shared->args.relation.distance;
    struct oj_order order = {0};
    oj_status status;
    self->n_dims =
        (is_on_sphere(shared) ? 6 : 4) * (is_frechet(shared) ? 2 : 1);
    self->is_directed[0] = kind == OJ_DISTANCE_DIRECTED_HAUSDORFF;
    self->is_directed[1] = kind == OJ_DISTANCE_DIRECTED_FROM_JOIN;
    OJ_TRY(build_shape_side(shared, shared->args.join_side, &self->side, err));
    status = oj_row_order(self->side.flat, &self->side, centre_of_feature,
                          shared->n_threads, &order, err);
    if (status == OJ_OK)
        status =
            oj_class_runs_sort(&self->classes, self->side.flat, &order, err);
    if (status == OJ_OK)
        status = fill_leaf_entries_of_tree(self, &order, err);
    oj_order_free(&order);
    OJ_TRY(status);
    stats->index_bytes +=
        self->levels.first[1] * (int64_t)sizeof *self->feature +
        oj_box_levels_count(&self->levels) * 2 * self->n_dims *
            (int64_t)sizeof *self->box;
    stats->index_bytes += oj_shape_blocks_bytes(&self->side) +
                          oj_class_runs_bytes(&self->classes);
    return OJ_OK;
}

static void free_shape_index(struct oj_index *wrapped)
{
    struct shape_index *self = (void *)wrapped;
    oj_shape_blocks_free(&self->side);
    oj_class_runs_free(&self->classes);
    oj_free(self->feature);
    oj_free(self->box);
}

/* --- one row -------------------------------------------------------------- */

static double lower_bound_from_box_sides(int n_dims, const double *a,
                                         const double *b)
{
    double most = 0.0;
    for (int d = 0; d < n_dims; d++)
    {
        double below = a[d] - b[n_dims + d], above = b[d] - a[n_dims + d];
        most = oj_larger(most, oj_larger(below, above));
    }
    /* Squares of smaller numbers may underflow, and the measured distance is
     * then 0. */
    return most > 1e-150 ? most : 0.0;
}

/* Returns a lower bound of the distance, on the sphere as a squared chord. */
static double lower_bound_of_distance(const struct shape_index *self,
                                      const double *around, const double *box)
{
    double bound = lower_bound_from_box_sides(self->n_dims, around, box);
    return is_on_sphere(&self->shared) ? bound * bound : bound;
}

static oj_status push_node(const struct shape_index *self,
                           struct shape_worker *search, int level, int64_t node,
                           double most, struct oj_error *err)
{
    struct oj_box_child child = {
        lower_bound_of_distance(self, search->around,
                                self->box + (self->levels.first[level] + node) *
                                                2 * self->n_dims),
        node, level};
    int64_t at = search->n_open;
    if (child.d2 > most)
        return OJ_OK;
    OJ_ROOM(search->open, at, at + 1, search->cap_open, err);
    search->n_open++;
    for (; at > 0 && child.d2 < search->open[(at - 1) / 2].d2;
         at = (at - 1) / 2)
        search->open[at] = search->open[(at - 1) / 2];
    search->open[at] = child;
    return OJ_OK;
}

static struct oj_box_child pop_node(struct shape_worker *search)
{
    struct oj_box_child *open = search->open, first = open[0];
    int64_t n = --search->n_open, at = 0, child;
    struct oj_box_child moved = open[n];
    while ((child = 2 * at + 1) < n)
    {
        child += child + 1 < n && open[child + 1].d2 < open[child].d2;
        if (!(open[child].d2 < moved.d2))
            break;
        open[at] = open[child];
        at = child;
    }
    open[at] = moved;
    return first;
}

/* Sets *out to the squared distance of a pair; if it exceeds limit2, to any
 * number above limit2. The Hausdorff distance of the vertices is computed
 * first, as a lower bound of the Frechet distance. */
static oj_status squared_hausdorff_or_frechet(struct shape_index *self,
                                              struct shape_worker *search,
                                              int64_t row, int64_t feature,
                                              double limit2, double *out,
                                              struct oj_error *err)
{
    struct oj_shape_scratch *scratch = &search->scratch;
    double d2 = 0.0;
    if (!self->is_directed[1])
        d2 = oj_shape_directed_hausdorff2(&self->input, row, &self->side,
                                          feature, d2, limit2, scratch);
    if (!self->is_directed[0] && d2 <= limit2)
        d2 = oj_shape_directed_hausdorff2(&self->side, feature, &self->input,
                                          row, d2, limit2, scratch);
    *out = d2;
    if (!is_frechet(&self->shared) || d2 > limit2)
        return OJ_OK;
    return oj_shape_frechet2(&self->input, row, &self->side, feature, d2,
                             limit2, scratch, out, err);
}

/* Sorts the ranking once it has k candidates and more than k / 16 unsorted
 * ones, which may lower its bound. A lower bound saves more than the sorting
 * costs. */
static void sort_ranking_to_lower_kth_bound(struct oj_ranking *ranking)
{
    if (ranking->n >= ranking->k &&
        ranking->n - ranking->n_cut > ranking->k / 16)
        oj_ranking_finish(ranking);
}

static oj_status measure_feature_and_add_to_ranking(struct shape_index *self,
                                                    struct shape_worker *search,
                                                    int64_t row,
                                                    int32_t feature,
                                                    struct oj_error *err)
{
    const struct oj_row_index *index = &self->shared;
    const struct oj_relation *relation = &index->args.relation;
    const struct oj_flat *join_side = index->args.join_side;
    struct oj_row_worker *worker = &search->shared;
    double limit =
        oj_pair_max_distance(relation, index->input, row, join_side, feature);
    double d2, distance;
    int on_sphere = is_on_sphere(index);
    if (on_sphere &&
        (index->input->max_distance != NULL || join_side->max_distance != NULL))
        limit = oj_sphere_chord2_of_metres(limit);
    if (oj_relation_is_nearest(relation) && worker->ranking.bound < limit)
        limit = worker->ranking.bound;
    OJ_TRY(oj_row_poll_cancel(index, worker, err));
    if (!(limit >= 0.0) ||
        !oj_pair_filter_accepts(&index->filter, row, feature))
        return OJ_OK;
    OJ_TRY(squared_hausdorff_or_frechet(
        self, search, row, feature,
        on_sphere || !(limit < INFINITY) ? limit : oj_square_limit_most(limit),
        &d2, err));
    distance = on_sphere ? d2 : sqrt(d2);
    /* An infinite distance means that the computation was abandoned at the
     * limit. */
    if (!(distance <= limit && distance < INFINITY) ||
        distance < relation->min_distance)
        return OJ_OK;
    OJ_TRY(oj_row_add_pair(index, worker, row, feature, distance, err));
    if (oj_relation_is_nearest(relation))
        sort_ranking_to_lower_kth_bound(&worker->ranking);
    return OJ_OK;
}

/* For a directed distance from the row, the sides by which the join feature
 * protrudes beyond the row do not count; for the reverse, those by which the
 * row protrudes. Extends the box `around` to infinity at these sides. */
static void set_box_infinite_if_directed(const struct shape_index *self,
                                         double *around)
{
    int n = self->side.n_dims;
    for (int d = 0; d < 2 * n; d++)
    {
        if (self->is_directed[d / n])
            around[d] = -INFINITY;
        if (self->is_directed[1 - d / n])
            around[self->n_dims + d] = INFINITY;
    }
}

static double search_radius_of_row(const struct shape_index *self,
                                   const struct oj_row_worker *worker,
                                   int64_t row)
{
    const struct oj_row_index *index = &self->shared;
    const struct oj_relation *relation = &index->args.relation;
    double reach = relation->max_distance;
    if (index->input->max_distance != NULL)
        reach = max_distance_of_feature(self, index->input, row);
    else if (index->args.join_side->max_distance != NULL)
        reach = self->most;
    return oj_relation_is_nearest(relation) && worker->ranking.bound < reach
               ? worker->ranking.bound
               : reach;
}

static oj_status search_row(struct oj_row_index *shared,
                            struct oj_row_worker *worker, int64_t row,
                            struct oj_error *err)
{
    struct shape_index *self = (void *)shared;
    struct shape_worker *search = (void *)worker;
    const struct oj_box_levels *levels = &self->levels;
    struct oj_class_run run =
        oj_class_runs_find(&self->classes, shared->input, row);
    struct oj_box_child top = {0.0, 0, levels->n_levels - 1};
    if (self->classes.first != NULL && run.first <= run.last)
        top = oj_box_levels_common_ancestor(run.first, run.last);
    search->scratch.cancel = shared->args.options.cancel;
    search->scratch.n_refined = 0;
    write_bounds_for_tree(&self->input, row, self->n_dims, search->around);
    set_box_infinite_if_directed(self, search->around);
    search->n_open = 0;
    if (levels->n_levels > 0 && run.first <= run.last)
        OJ_TRY(push_node(self, search, top.level, top.node, INFINITY, err));
    while (search->n_open > 0)
    {
        struct oj_box_child at = pop_node(search);
        double reach = search_radius_of_row(self, worker, row);
        int64_t first = at.node * OJ_BOX_FANOUT, n;
        if (at.d2 > reach)
            break;
        if (!oj_class_run_meets_node(&run, at.node, 3 * at.level))
            continue;
        if (at.level == 0)
        {
            OJ_TRY(measure_feature_and_add_to_ranking(
                self, search, row, self->feature[at.node], err));
            continue;
        }
        n = levels->first[at.level] - levels->first[at.level - 1];
        for (int64_t c = first; c < first + OJ_BOX_FANOUT && c < n; c++)
            OJ_TRY(push_node(self, search, at.level - 1, c, reach, err));
    }
    worker->n_candidates += search->scratch.n_refined;
    return OJ_OK;
}

/* --- a batch -------------------------------------------------------------- */

static oj_status start_batch(struct oj_row_index *shared, struct oj_error *err)
{
    struct shape_index *self = (void *)shared;
    OJ_TRY(build_shape_side(shared, shared->input, &self->input, err));
    return oj_row_sort_input(shared, &self->input, centre_of_feature, err);
}

static void end_batch(struct oj_row_index *shared)
{
    oj_shape_blocks_free(&((struct shape_index *)(void *)shared)->input);
}

static void free_worker(struct oj_row_worker *worker)
{
    struct shape_worker *search = (void *)worker;
    oj_shape_scratch_free(&search->scratch);
    oj_free(search->open);
}

static const struct oj_row_method shapes = {.worker_size =
                                                sizeof(struct shape_worker),
                                            .start = start_batch,
                                            .row_of = oj_row_at_position,
                                            .search = search_row,
                                            .end = end_batch,
                                            .free_worker = free_worker};

static const struct oj_row_method shapes_on_sphere = {
    .worker_size = sizeof(struct shape_worker),
    .start = start_batch,
    .row_of = oj_row_at_position,
    .search = search_row,
    .end = end_batch,
    .free_worker = free_worker,
    .measure_of = oj_sphere_metres_of_chord2};

static oj_status build_shape_index(struct oj_index *wrapped,
                                   const struct oj_index_args *args,
                                   struct oj_stats *stats, struct oj_error *err)
{
    int on_sphere = args->relation.metric == OJ_METRIC_SPHERE;
    struct shape_index *self = oj_row_index_begin(
        wrapped, on_sphere ? &shapes_on_sphere : &shapes, args);
    if (on_sphere)
        oj_sphere_relation_to_chords(&self->shared.args.relation);
    return build_tree(self, stats, err);
}

const struct oj_engine oj_cpu_similar_shapes = {
    .name = "distances of shapes",
    .supports = supports_similar_shapes_join,
    .index_size = sizeof(struct shape_index),
    .build = build_shape_index,
    .join = oj_row_join,
    .free_side = free_shape_index,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options};
