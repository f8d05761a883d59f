/* Distances between features of any kinds: the join side's features under one
 * tree, walked for every input feature, nearest first; pairs are measured by
 * cpu_distance_features.h.
 *
 *  entry          0   1   2  ...   features in Morton order of their middles
 *  feature      [ 7   3   9  ...   ordinals
 *  x, y         [                  layers of single points: where they are
 *
 * Features that join nothing (no parts, a class below 0, a distance of their
 * own that is negative or NaN) are left out. */
#include "../../flatten/base/oj_array.h"
#include "../base/cpu_tree_walk.h"
#include "../kernels/oj_segment.h"
#include "../relation/oj_engine.h"
#include "cpu_distance_features.h"
#include "cpu_distance_join.h"

#include <string.h>

struct distance_index
{
    struct oj_distance_index shared;
    struct oj_features features; /* of the join side */
    struct oj_tree tree;
    int32_t *feature; /* [entries of tree] */
    double *x, *y;    /* [entries of tree], or NULL */

    /* [n_nodes * OJ_FANOUT] greatest distance of the features below a child,
     * as the tree compares it; NULL: features have none of their own. */
    float *reach2;

    /* [n_nodes * OJ_FANOUT] lowest place in tie order below a child: among
     * very many features in one place, only the first of them matter. */
    int32_t *first_rank;

    /* of the batch at hand */
    struct oj_features input;
    struct oj_pair_scratch *scratch; /* [n_threads] */
};

static struct distance_index *
distance_index_of(struct oj_distance_index *shared)
{
    return (struct distance_index *)(void *)shared;
}

/* --- index ---------------------------------------------------------------- */

static int takes_planar_distances(const struct oj_relation *relation,
                                  const struct oj_flat *join_side,
                                  const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return (relation->op == OJ_OP_NEAREST || relation->op == OJ_OP_DWITHIN) &&
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
    oj_features_free(&self->features);
}

static int middle_of(const void *features, int64_t feature, double *x,
                     double *y)
{
    struct oj_box box = oj_features_box(features, feature);
    *x = 0.5 * box.x0 + 0.5 * box.x1;
    *y = 0.5 * box.y0 + 0.5 * box.y1;
    return !oj_box_is_empty(&box);
}

static oj_status fill_entries(struct distance_index *self,
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
        box[i] = oj_features_box(&self->features, f);
        if (self->x != NULL)
        {
            self->x[i] = box[i].x0;
            self->y[i] = box[i].y0;
        }
    }
    status =
        oj_tree_build(&self->tree, self->shared.options.n_threads, n, box, err);
    oj_free(box);
    return status;
}

/* The greatest distances and the lowest ranks, from the features up to the
 * root. */
static oj_status fill_child_reach_and_rank(struct distance_index *self,
                                           struct oj_error *err)
{
    const struct oj_tree *tree = &self->tree;
    const double *max_distance = self->features.flat->max_distance;
    const int32_t *tie_rank = self->shared.tie_rank;
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
        oj_distance_order(self->shared.join_side, &self->features, middle_of,
                          self->shared.options.n_threads, &order, err);
    if (status == OJ_OK)
        status = fill_entries(self, &order, err);
    oj_order_free(&order);
    return status == OJ_OK ? fill_child_reach_and_rank(self, err) : status;
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

static oj_status build_index(struct oj_distance_index *shared,
                             struct oj_stats *stats, struct oj_error *err)
{
    struct distance_index *self = distance_index_of(shared);
    OJ_TRY(oj_features_build(&self->features, shared->join_side,
                             shared->relation.distance_to == OJ_TO_INTERIOR,
                             shared->options.n_threads, err));
    OJ_TRY(build_tree(self, err));
    stats->index_bytes += oj_features_bytes(&self->features) + tree_bytes(self);
    return OJ_OK;
}

/* --- one row -------------------------------------------------------------- */

/* An input row on its way. */
struct distance_row_search
{
    struct distance_index *self;
    struct oj_distance_worker *worker;
    int64_t row;
    double x, y;       /* of a row that is a single point */
    float reach2;      /* children farther away are left out */
    int32_t last_rank; /* the one nearest is at 0 and has this rank: only lower
                          ones matter; else INT32_MAX */
};

/* The greatest distance that matters for a feature, or below 0: none does. */
static double limit_of(const struct distance_row_search *s, int64_t feature)
{
    const struct oj_distance_index *index = &s->self->shared;
    double limit = oj_pair_max_distance(&index->relation, index->input, s->row,
                                        index->join_side, feature);
    if (index->relation.op != OJ_OP_NEAREST)
        return limit;
    return limit < s->worker->ranking.bound ? limit : s->worker->ranking.bound;
}

static double distance_to(const struct distance_row_search *s, int64_t entry,
                          int64_t feature, double limit)
{
    const struct distance_index *self = s->self;
    struct oj_pair_scratch *scratch = &self->scratch[s->worker->thread];
    if (self->x != NULL && oj_flat_is_points(self->shared.input))
    {
        scratch->n_refined++;
        return oj_point_distance(s->x, s->y, self->x[entry], self->y[entry]);
    }
    return oj_pair_distance(&self->input, s->row, &self->features, feature,
                            self->shared.relation.distance_to == OJ_TO_INTERIOR,
                            limit, scratch);
}

static oj_status try_entry(struct distance_row_search *s, int64_t entry,
                           struct oj_error *err)
{
    const struct distance_index *self = s->self;
    const struct oj_relation *relation = &self->shared.relation;
    const struct oj_pair_filter *filter = &self->shared.filter;
    const struct oj_ranking *ranking = &s->worker->ranking;
    int32_t feature = self->feature[entry];
    double limit = limit_of(s, feature), distance;
    OJ_TRY(oj_distance_try(&self->shared, s->worker, err));
    if (!(limit >= 0.0))
        return OJ_OK;
    if (self->x == NULL && !oj_pair_may_count(filter, s->row, feature))
        return OJ_OK;
    distance = distance_to(s, entry, feature, limit);
    /* an infinite one has overflowed */
    if (!(distance <= limit && distance < INFINITY) ||
        distance < relation->min_distance)
        return OJ_OK;
    if (self->x != NULL && !oj_pair_may_count(filter, s->row, feature))
        return OJ_OK;
    OJ_TRY(oj_distance_put(&self->shared, s->worker, s->row, feature, distance,
                           err));
    if (relation->op != OJ_OP_NEAREST)
        return OJ_OK;
    s->reach2 = oj_tree_reach2(&self->tree, ranking->bound);
    if (ranking->bound == 0.0 && relation->k == 1 &&
        relation->ties == OJ_TIES_FIRST && ranking->n > 0)
        s->last_rank = ranking->list[0].rank;
    return OJ_OK;
}

/* The lowest tie rank below a visit; not for the root. */
OJ_INLINE int32_t first_rank(const struct distance_index *self,
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
        if (s->last_rank < INT32_MAX && first_rank(self, &v) > s->last_rank)
            continue;
        if (v.level < 0)
        {
            OJ_TRY(try_entry(s, v.child, err));
            continue;
        }
        at = self->tree.level_first[v.level] + v.child;
        oj_tree_descent_push(
            &descent, &self->tree.node[at], v, s->reach2,
            self->reach2 != NULL ? self->reach2 + at * OJ_FANOUT : NULL, 1);
    }
    return OJ_OK;
}

static double reach_of_row(const struct oj_distance_index *index, int64_t row)
{
    if (index->input->max_distance != NULL)
        return index->input->max_distance[row];
    /* where join features have their own, the tree knows them */
    if (index->join_side->max_distance != NULL)
        return INFINITY;
    return index->relation.max_distance;
}

OJ_CLONES static oj_status search_row(struct oj_distance_index *shared,
                                      struct oj_distance_worker *worker,
                                      int64_t row, struct oj_error *err)
{
    struct distance_index *self = distance_index_of(shared);
    struct oj_box box = oj_features_box(&self->input, row);
    struct distance_row_search s = {self,   worker, row,      box.x0,
                                    box.y0, 0.0f,   INT32_MAX};
    s.reach2 = oj_tree_reach2(&self->tree, reach_of_row(shared, row));
    return walk(&s, &box, err);
}

/* --- a batch -------------------------------------------------------------- */

static oj_status start_batch(struct oj_distance_index *shared,
                             struct oj_error *err)
{
    struct distance_index *self = distance_index_of(shared);
    int n_threads = shared->options.n_threads;
    OJ_NEW_ZEROED(self->scratch, n_threads, err);
    for (int t = 0; t < n_threads; t++)
        self->scratch[t].cancel = shared->options.cancel;
    OJ_TRY(oj_features_build(&self->input, shared->input,
                             shared->relation.distance_to == OJ_TO_INTERIOR,
                             n_threads, err));
    return oj_distance_order(shared->input, &self->input, middle_of, n_threads,
                             &shared->order, err);
}

static void end_batch(struct oj_distance_index *shared, struct oj_stats *stats)
{
    struct distance_index *self = distance_index_of(shared);
    oj_features_free(&self->input);
    for (int t = 0; self->scratch != NULL && t < shared->options.n_threads; t++)
        stats->n_candidates += self->scratch[t].n_refined;
    oj_free(self->scratch);
    self->scratch = NULL;
}

static const struct oj_distance_space plane = {.build = build_index,
                                               .start = start_batch,
                                               .search = search_row,
                                               .end = end_batch};

static oj_status build_distance_index(struct oj_index *index,
                                      const struct oj_index_args *args,
                                      struct oj_stats *stats,
                                      struct oj_error *err)
{
    return oj_distance_build(&plane, args, index, stats, err);
}

static const struct oj_engine_cost points_cost = {
    .vertex_s = 30e-9, .row_s = 900e-9, .place_s = 500e-9};

const struct oj_engine oj_cpu_distance = {"distances between features",
                                          takes_planar_distances,
                                          sizeof(struct distance_index),
                                          build_distance_index,
                                          oj_distance_join,
                                          free_side,
                                          oj_distance_batches_free,
                                          &points_cost};
