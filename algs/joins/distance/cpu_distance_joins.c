/* The engine for distances between features of any kinds. The join side's
 * features are entries of one tree, which is searched best-first for every
 * input feature; cpu_pair_distance.h measures the pairs.
 *
 *  entry          0   1   2  ...   features in Morton order of their middles
 *  feature      [ 7   3   9  ...   ordinals
 *  x, y         [                  layers of single points: where they are
 *
 * Features that cannot have pairs (no parts, a class below 0, an own maximum
 * distance that is negative or NaN) are left out. */
#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/cpu_tree_walk.h"
#include "../../foundations/kernels/oj_segment.h"
#include "../../pairs/selection/oj_parallel_row_search.h"
#include "../../pairs/selection/oj_tie_rank_sort.h"
#include "cpu_pair_distance.h"

#include <string.h>

struct distance_index
{
    struct oj_row_index shared;
    struct oj_features features; /* the join side */
    struct oj_tree tree;
    int32_t *feature; /* [entries of tree] ordinals */
    double *x, *y;    /* [entries of tree], or NULL */

    /* [n_nodes * OJ_FANOUT] the greatest own maximum distance of the features
     * below a child, squared, in tree coordinates; NULL: features have none. */
    float *reach2;

    /* [n_nodes * OJ_FANOUT] the lowest tie rank below a child: of very many
     * features in one place, only the first few in tie order matter. */
    int32_t *first_rank;

    /* the current batch */
    struct oj_features input;
};

/* State of a thread. */
struct distance_worker
{
    struct oj_row_worker shared;
    struct oj_pair_scratch scratch;
};

/* --- index ---------------------------------------------------------------- */

static int takes_planar_distances(const struct oj_relation *relation,
                                  const struct oj_flat *join_side,
                                  const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return oj_relation_is_by_distance(relation) &&
           relation->metric == OJ_METRIC_PLANAR;
}

static void free_side(struct oj_index *wrapped)
{
    struct distance_index *self = (void *)wrapped;
    oj_tree_free(&self->tree);
    oj_free(self->feature);
    oj_free(self->x);
    oj_free(self->y);
    oj_free(self->reach2);
    oj_free(self->first_rank);
    oj_distance_features_free(&self->features);
}

static int middle_of(const void *side, int64_t feature, double *x, double *y)
{
    const struct oj_features *features = side;
    struct oj_box box = oj_distance_features_box(features, feature);
    *x = 0.5 * box.x0 + 0.5 * box.x1;
    *y = 0.5 * box.y0 + 0.5 * box.y1;
    return !oj_box_is_empty(&box) &&
           oj_feature_may_pair(features->flat, feature);
}

/* Moves the first points in tie order to the front, sorted. */
static void keep_first_in_tie_order(const int32_t *tie_rank, int64_t n,
                                    struct oj_ordered_point *point,
                                    int64_t most)
{
    for (int64_t i = 1; i < n; i++)
    {
        struct oj_ordered_point moving = point[i];
        int32_t rank = oj_tie_rank(tie_rank, (int32_t)moving.index);
        int64_t at = i < most ? i : most;
        while (at > 0 &&
               oj_tie_rank(tie_rank, (int32_t)point[at - 1].index) > rank)
        {
            at--;
            if (at + 1 < most)
                point[at + 1] = point[at];
        }
        if (at < most)
            point[at] = moving;
    }
}

static int is_one_place(const struct oj_ordered_point *a,
                        const struct oj_ordered_point *b)
{
    return a->x == b->x && a->y == b->y;
}

/* Of points in one place, only the first in tie order can be in an answer:
 * drops the others. Equal points are usually adjacent in Morton order. Without
 * this, 30,000 of them were visited for each row. */
static void drop_repeated_points(const struct distance_index *self,
                                 struct oj_order *order)
{
    const struct oj_index_args *args = &self->shared.args;
    int64_t most = oj_equal_features_to_keep(&args->relation, args->join_side,
                                             args->tie_rank);
    struct oj_ordered_point *point = order->point;
    int64_t n = order->n_points, n_kept = 0, end;
    if (most == INT64_MAX || !oj_flat_is_points(args->join_side))
        return;
    for (int64_t i = 0; i < n; i = end)
    {
        for (end = i + 1; end < n && is_one_place(&point[i], &point[end]);)
            end++;
        if (end - i > most)
            keep_first_in_tie_order(args->tie_rank, end - i, point + i, most);
        for (int64_t kept = 0; kept < end - i && kept < most; kept++)
            point[n_kept++] = point[i + kept];
    }
    order->n_points = n_kept;
}

static oj_status fill_entries_and_build_tree(struct distance_index *self,
                                             const struct oj_order *order,
                                             struct oj_error *err)
{
    int64_t n = order->n_points;
    struct oj_box *box;
    oj_status status;
    OJ_NEW(self->feature, n, err);
    if (oj_flat_is_points(self->features.flat))
    {
        OJ_NEW(self->x, n, err);
        OJ_NEW(self->y, n, err);
    }
    OJ_NEW(box, n, err);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t f = order->point[i].index;
        self->feature[i] = (int32_t)f;
        box[i] = oj_distance_features_box(&self->features, f);
        if (self->x != NULL)
        {
            self->x[i] = box[i].x0;
            self->y[i] = box[i].y0;
        }
    }
    status = oj_tree_build(&self->tree, self->shared.n_threads, n, box, err);
    oj_free(box);
    return status;
}

/* Computes reach2 and first_rank from the features up to the root. */
static oj_status fill_max_distance_and_min_rank(struct distance_index *self,
                                                struct oj_error *err)
{
    const struct oj_tree *tree = &self->tree;
    const double *max_distance = self->features.flat->max_distance;
    const int32_t *tie_rank = self->shared.args.tie_rank;
    int64_t n = tree->n_nodes * OJ_FANOUT;
    OJ_NEW(self->first_rank, n, err);
    if (max_distance != NULL)
        OJ_NEW(self->reach2, n, err);
    for (int64_t i = 0; i < n; i++)
    {
        int32_t f = i < tree->n_entries ? self->feature[i] : -1;
        self->first_rank[i] = f < 0              ? INT32_MAX
                              : tie_rank == NULL ? f
                                                 : tie_rank[f];
        if (max_distance != NULL)
            self->reach2[i] =
                f < 0 ? 0.0f : oj_tree_reach2(tree, max_distance[f]);
    }
    for (int level = 1; level < tree->n_levels; level++)
    {
        int64_t below = tree->level_first[level - 1] * OJ_FANOUT;
        int64_t first = tree->level_first[level] * OJ_FANOUT;
        for (int64_t i = 0; i < first - below; i++)
        {
            int64_t at = first + i / OJ_FANOUT, from = below + i;
            if (self->first_rank[from] < self->first_rank[at])
                self->first_rank[at] = self->first_rank[from];
            if (max_distance != NULL && self->reach2[from] > self->reach2[at])
                self->reach2[at] = self->reach2[from];
        }
    }
    return OJ_OK;
}

static oj_status build_tree(struct distance_index *self, struct oj_error *err)
{
    struct oj_order order = {0};
    oj_status status =
        oj_row_order(self->features.flat, &self->features, middle_of,
                     self->shared.n_threads, &order, err);
    if (status == OJ_OK)
    {
        drop_repeated_points(self, &order);
        status = fill_entries_and_build_tree(self, &order, err);
    }
    oj_order_free(&order);
    return status == OJ_OK ? fill_max_distance_and_min_rank(self, err) : status;
}

static int64_t tree_bytes(const struct distance_index *self)
{
    int64_t a_child = (int64_t)sizeof *self->first_rank;
    int64_t an_entry = (int64_t)sizeof *self->feature;
    if (self->reach2 != NULL)
        a_child += (int64_t)sizeof *self->reach2;
    if (self->x != NULL)
        an_entry += 2 * (int64_t)sizeof *self->x;
    return oj_tree_bytes(&self->tree) +
           self->tree.n_nodes * OJ_FANOUT * a_child +
           self->tree.n_entries * an_entry;
}

static oj_status build_features(const struct oj_row_index *index,
                                const struct oj_flat *flat,
                                struct oj_features *out, struct oj_error *err)
{
    return oj_distance_features_build(
        out, flat, index->args.relation.distance_to == OJ_TO_INTERIOR,
        index->n_threads, err);
}

/* --- one row -------------------------------------------------------------- */

/* State of the search for an input row. */
struct distance_row_search
{
    struct distance_index *self;
    struct distance_worker *worker;
    int64_t row;
    double x, y;       /* the row, if it is a single point */
    float reach2;      /* children farther away are skipped */
    int32_t last_rank; /* the k nearest are at distance 0, the last with this
                          rank: only lower ranks can be better; else
                          INT32_MAX */
};

/* Maximum distance at which a feature can still be in the answer; below 0:
 * none. */
static double max_distance_for_feature(const struct distance_row_search *s,
                                       int64_t feature)
{
    const struct oj_row_index *index = &s->self->shared;
    double bound = s->worker->shared.ranking.bound;
    double limit = oj_pair_max_distance(&index->args.relation, index->input,
                                        s->row, index->args.join_side, feature);
    if (!oj_relation_is_nearest(&index->args.relation))
        return limit;
    return limit < bound ? limit : bound;
}

static double measure_row_to_feature(const struct distance_row_search *s,
                                     int64_t entry, int64_t feature,
                                     double limit)
{
    const struct distance_index *self = s->self;
    struct oj_pair_scratch *scratch = &s->worker->scratch;
    if (self->x != NULL && oj_flat_is_points(self->shared.input))
    {
        scratch->n_refined++;
        return oj_point_distance(s->x, s->y, self->x[entry], self->y[entry]);
    }
    return oj_pair_distance(&self->input, s->row, &self->features, feature,
                            self->shared.args.relation.distance_to ==
                                OJ_TO_INTERIOR,
                            limit, scratch);
}

static oj_status measure_entry_and_add_to_ranking(struct distance_row_search *s,
                                                  int64_t entry,
                                                  struct oj_error *err)
{
    const struct distance_index *self = s->self;
    const struct oj_relation *relation = &self->shared.args.relation;
    const struct oj_pair_filter *filter = &self->shared.filter;
    struct oj_row_worker *worker = &s->worker->shared;
    const struct oj_ranking *ranking = &worker->ranking;
    int32_t feature = self->feature[entry];
    double limit = max_distance_for_feature(s, feature), distance;
    OJ_TRY(oj_row_poll_cancel(&self->shared, worker, err));
    if (!(limit >= 0.0))
        return OJ_OK;
    if (self->x == NULL && !oj_pair_may_count(filter, s->row, feature))
        return OJ_OK;
    distance = measure_row_to_feature(s, entry, feature, limit);
    /* an infinite distance has overflowed */
    if (!(distance <= limit && distance < INFINITY) ||
        distance < relation->min_distance)
        return OJ_OK;
    if (self->x != NULL && !oj_pair_may_count(filter, s->row, feature))
        return OJ_OK;
    OJ_TRY(
        oj_row_put_pair(&self->shared, worker, s->row, feature, distance, err));
    if (!oj_relation_is_nearest(relation))
        return OJ_OK;
    s->reach2 = oj_tree_reach2(&self->tree, ranking->bound);
    if (ranking->bound == 0.0 && relation->k == 1 &&
        relation->ties == OJ_TIES_FIRST && ranking->n > 0)
        s->last_rank = ranking->list[0].rank;
    return OJ_OK;
}

/* Lowest tie rank below a child; not for the root. */
OJ_INLINE int32_t lowest_rank_below(const struct distance_index *self,
                                    const struct oj_tree_child *v)
{
    int64_t parents = self->tree.level_first[v->level + 1];
    return self->first_rank[parents * OJ_FANOUT + v->child];
}

OJ_INLINE oj_status walk(struct distance_row_search *s,
                         const struct oj_box *box, struct oj_error *err)
{
    const struct distance_index *self = s->self;
    struct oj_tree_descent descent;
    oj_tree_descent_begin(&descent, &self->tree, box);
    while (descent.depth > 0)
    {
        struct oj_tree_child v = descent.stack[--descent.depth];
        int64_t at;
        if (v.d2 > s->reach2)
            continue;
        if (s->last_rank < INT32_MAX &&
            lowest_rank_below(self, &v) > s->last_rank)
            continue;
        if (v.level < 0)
        {
            OJ_TRY(measure_entry_and_add_to_ranking(s, v.child, err));
            continue;
        }
        at = self->tree.level_first[v.level] + v.child;
        oj_tree_descent_push(
            &descent, &self->tree.node[at], v, s->reach2,
            self->reach2 != NULL ? self->reach2 + at * OJ_FANOUT : NULL, 1);
    }
    return OJ_OK;
}

static double max_distance_of_row(const struct oj_row_index *index, int64_t row)
{
    if (index->input->max_distance != NULL)
        return index->input->max_distance[row];
    /* the tree has the maximum distances of join features (reach2) */
    if (index->args.join_side->max_distance != NULL)
        return INFINITY;
    return index->args.relation.max_distance;
}

OJ_CLONES static oj_status search_row(struct oj_row_index *shared,
                                      struct oj_row_worker *of_row, int64_t row,
                                      struct oj_error *err)
{
    struct distance_index *self = (void *)shared;
    struct distance_worker *worker = (void *)of_row;
    struct oj_box box = oj_distance_features_box(&self->input, row);
    struct distance_row_search s = {self,   worker, row,      box.x0,
                                    box.y0, 0.0f,   INT32_MAX};
    oj_status status;
    worker->scratch.cancel = shared->args.options.cancel;
    worker->scratch.listed = worker->scratch.n_refined = 0;
    s.reach2 = oj_tree_reach2(&self->tree, max_distance_of_row(shared, row));
    status = walk(&s, &box, err);
    of_row->n_candidates += worker->scratch.n_refined;
    return status;
}

/* --- a batch -------------------------------------------------------------- */

static oj_status start_batch(struct oj_row_index *shared, struct oj_error *err)
{
    struct distance_index *self = (void *)shared;
    OJ_TRY(build_features(shared, shared->input, &self->input, err));
    return oj_row_order_input(shared, &self->input, middle_of, err);
}

static void end_batch(struct oj_row_index *shared)
{
    oj_distance_features_free(
        &((struct distance_index *)(void *)shared)->input);
}

static const struct oj_row_method plane = {.worker_size =
                                               sizeof(struct distance_worker),
                                           .start = start_batch,
                                           .row_of = oj_row_in_order,
                                           .search = search_row,
                                           .end = end_batch};

static oj_status build_distance_index(struct oj_index *wrapped,
                                      const struct oj_index_args *args,
                                      struct oj_stats *stats,
                                      struct oj_error *err)
{
    struct distance_index *self = oj_row_index_begin(wrapped, &plane, args);
    OJ_TRY(
        build_features(&self->shared, args->join_side, &self->features, err));
    OJ_TRY(build_tree(self, err));
    stats->index_bytes +=
        oj_distance_features_bytes(&self->features) + tree_bytes(self);
    return OJ_OK;
}

static const struct oj_engine_cost points_cost = {
    .vertex_s = 30e-9, .row_s = 900e-9, .place_s = 500e-9};

const struct oj_engine oj_cpu_distance = {.name = "distances between features",
                                          .takes = takes_planar_distances,
                                          .index_size =
                                              sizeof(struct distance_index),
                                          .build = build_distance_index,
                                          .join = oj_row_join,
                                          .free_side = free_side,
                                          .free_batches = oj_row_batches_free,
                                          .set_options = oj_row_set_options,
                                          .points_cost = &points_cost};
