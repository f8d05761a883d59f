/* Distances between features of any kinds: the join side's features under one
 * tree, walked for every input feature, nearest first; pairs are measured by
 * cpu_pair_distance.h. */
#include "../../flatten/base/oj_array.h"
#include "../kernels/oj_segment.h"
#include "../nearest/cpu_patch.h"
#include "../relation/oj_engine.h"
#include "cpu_distance_rows.h"
#include "cpu_feature_tree.h"
#include "cpu_pair_distance.h"

#include <string.h>

struct distance_index
{
    struct oj_distance_index shared;
    struct oj_features features; /* of the join side */
    struct oj_feature_tree tree;
    struct oj_pair_scratch *scratch; /* [n_threads] */
};

/* A batch on its way. */
struct distance_join_batch
{
    struct oj_distance_batch shared;
    struct oj_features features; /* of the input */
};

static struct distance_index *index_of(const struct oj_distance_batch *batch)
{
    return (struct distance_index *)(void *)batch->index;
}

/* --- index ---------------------------------------------------------------- */

static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return (relation->op == OJ_OP_NEAREST || relation->op == OJ_OP_DWITHIN) &&
           relation->metric == OJ_METRIC_PLANAR;
}

static void free_index(struct oj_distance_index *shared)
{
    struct distance_index *self = (struct distance_index *)(void *)shared;
    oj_free(self->scratch);
    oj_feature_tree_free(&self->tree);
    oj_features_free(&self->features);
}

static oj_status build_index(struct oj_distance_index *shared,
                             struct oj_stats *stats, struct oj_error *err)
{
    struct distance_index *self = (struct distance_index *)(void *)shared;
    int n_threads = shared->options.n_threads;
    self->scratch = oj_calloc(n_threads, sizeof *self->scratch);
    if (self->scratch == NULL)
        return oj_fail_nomem(err, n_threads, sizeof *self->scratch);
    for (int t = 0; t < n_threads; t++)
        self->scratch[t].cancel = shared->options.cancel;
    OJ_TRY(oj_features_build(&self->features, shared->join_side,
                             shared->relation.distance_to == OJ_TO_INTERIOR,
                             n_threads, err));
    OJ_TRY(oj_feature_tree_build(&self->tree, &self->features, shared->tie_rank,
                                 n_threads, err));
    stats->index_bytes +=
        oj_features_bytes(&self->features) + oj_feature_tree_bytes(&self->tree);
    return OJ_OK;
}

/* --- one row -------------------------------------------------------------- */

/* An input row on its way. */
struct distance_row_search
{
    struct distance_join_batch *b;
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
    double limit = oj_pair_max_distance(&index->relation, s->b->shared.input,
                                        s->row, index->join_side, feature);
    if (index->relation.op != OJ_OP_NEAREST)
        return limit;
    return limit < s->worker->ranking.bound ? limit : s->worker->ranking.bound;
}

static double distance_to(const struct distance_row_search *s, int64_t entry,
                          int64_t feature, double limit)
{
    const struct distance_index *self = s->self;
    struct oj_pair_scratch *scratch = &self->scratch[s->worker->thread];
    if (self->tree.x != NULL && oj_flat_is_points(s->b->shared.input))
    {
        scratch->n_refined++;
        return oj_point_distance(s->x, s->y, self->tree.x[entry],
                                 self->tree.y[entry]);
    }
    return oj_pair_distance(&s->b->features, s->row, &self->features, feature,
                            self->shared.relation.distance_to == OJ_TO_INTERIOR,
                            limit, scratch);
}

static oj_status try_entry(struct distance_row_search *s, int64_t entry,
                           struct oj_error *err)
{
    const struct distance_index *self = s->self;
    const struct oj_relation *relation = &self->shared.relation;
    const struct oj_pair_filter *filter = &s->b->shared.filter;
    const struct oj_ranking *ranking = &s->worker->ranking;
    int32_t feature = self->tree.feature[entry];
    double limit = limit_of(s, feature), distance;
    OJ_TRY(oj_distance_try(&s->b->shared, s->worker, err));
    if (!(limit >= 0.0))
        return OJ_OK;
    if (self->tree.x == NULL && !oj_pair_may_count(filter, s->row, feature))
        return OJ_OK;
    distance = distance_to(s, entry, feature, limit);
    /* an infinite one has overflowed */
    if (!(distance <= limit && distance < INFINITY) ||
        distance < relation->min_distance)
        return OJ_OK;
    if (self->tree.x != NULL && !oj_pair_may_count(filter, s->row, feature))
        return OJ_OK;
    OJ_TRY(oj_distance_put(&s->b->shared, s->worker, s->row, feature, distance,
                           err));
    if (relation->op != OJ_OP_NEAREST)
        return OJ_OK;
    s->reach2 = oj_tree_reach2(&self->tree.tree, ranking->bound);
    if (ranking->bound == 0.0 && relation->k == 1 &&
        relation->ties == OJ_TIES_FIRST && ranking->n > 0)
        s->last_rank = ranking->list[0].rank;
    return OJ_OK;
}

/* Pushes the children of the visited node that are within reach, the farthest
 * first, so that the nearest comes off first, and the first of those that are
 * as near; a child of level -1 is an entry. */
OJ_INLINE int push_children(const struct oj_feature_tree *tree,
                            const float q[4], float reach2,
                            struct oj_tree_child visited,
                            struct oj_tree_child *stack, int depth)
{
    int64_t at = tree->tree.level_first[visited.level] + visited.child;
    float d2[OJ_FANOUT];
    int first = depth;
    oj_boxes_distance2(&tree->tree.node[at], q, d2);
    for (int c = OJ_FANOUT - 1; c >= 0; c--)
    {
        stack[depth].child = visited.child * OJ_FANOUT + c;
        stack[depth].level = visited.level - 1;
        stack[depth].d2 = d2[c];
        depth +=
            (d2[c] <= reach2) &
            (tree->reach2 == NULL || d2[c] <= tree->reach2[at * OJ_FANOUT + c]);
    }
    for (int i = first + 1; i < depth; i++)
    {
        struct oj_tree_child moved = stack[i];
        int place = i;
        for (; place > first && stack[place - 1].d2 < moved.d2; place--)
            stack[place] = stack[place - 1];
        stack[place] = moved;
    }
    return depth;
}

/* The lowest tie rank below a visit; not for the root. */
OJ_INLINE int32_t first_rank(const struct oj_feature_tree *tree,
                             const struct oj_tree_child *v)
{
    int64_t parents = tree->tree.level_first[v->level + 1];
    return tree->first_rank[parents * OJ_FANOUT + v->child];
}

OJ_INLINE oj_status walk(struct distance_row_search *s,
                         const struct oj_box *box, struct oj_error *err)
{
    const struct oj_feature_tree *tree = &s->self->tree;
    struct oj_tree_child stack[OJ_STACK + 2 * OJ_FANOUT];
    struct oj_place place;
    float q[4];
    int depth = 0;
    if (tree->tree.n_levels == 0)
        return OJ_OK;
    oj_place_set(&place, box);
    oj_place_relative_to(&place, &tree->tree, q);
    stack[depth++] = (struct oj_tree_child){0, tree->tree.n_levels - 1, 0.0f};
    while (depth > 0)
    {
        struct oj_tree_child v = stack[--depth];
        if (v.d2 > s->reach2)
            continue;
        if (s->last_rank < INT32_MAX && first_rank(tree, &v) > s->last_rank)
            continue;
        if (v.level < 0)
            OJ_TRY(try_entry(s, v.child, err));
        else
            depth = push_children(tree, q, s->reach2, v, stack, depth);
    }
    return OJ_OK;
}

static double reach_of_row(const struct oj_distance_batch *batch, int64_t row)
{
    const struct oj_distance_index *index = batch->index;
    if (batch->input->max_distance != NULL)
        return batch->input->max_distance[row];
    /* where join features have their own, the tree knows them */
    if (index->join_side->max_distance != NULL)
        return INFINITY;
    return index->relation.max_distance;
}

OJ_CLONES static oj_status search_row(struct oj_distance_batch *shared,
                                      struct oj_distance_worker *worker,
                                      int64_t row, struct oj_error *err)
{
    struct distance_join_batch *b =
        (struct distance_join_batch *)(void *)shared;
    struct distance_index *self = index_of(shared);
    struct oj_box box = oj_features_box(&b->features, row);
    struct distance_row_search s = {b,      self,   worker, row,
                                    box.x0, box.y0, 0.0f,   INT32_MAX};
    s.reach2 = oj_tree_reach2(&self->tree.tree, reach_of_row(shared, row));
    return walk(&s, &box, err);
}

/* --- a batch -------------------------------------------------------------- */

static oj_status start_batch(struct oj_distance_batch *shared,
                             struct oj_error *err)
{
    struct distance_join_batch *b =
        (struct distance_join_batch *)(void *)shared;
    struct distance_index *self = index_of(shared);
    int n_threads = self->shared.options.n_threads;
    for (int t = 0; t < n_threads; t++)
        oj_pair_scratch_start(&self->scratch[t]);
    OJ_TRY(oj_features_build(
        &b->features, shared->input,
        self->shared.relation.distance_to == OJ_TO_INTERIOR, n_threads, err));
    return oj_features_order(&b->features, n_threads, &self->shared.order, err);
}

static const struct oj_distance_space plane = {sizeof(struct distance_index),
                                               build_index, free_index,
                                               start_batch, search_row};

static oj_status make_index(const struct oj_index_args *args,
                            struct oj_index **out, struct oj_stats *stats,
                            struct oj_error *err)
{
    return oj_distance_index_make(&plane, args, out, stats, err);
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct distance_index *self = (struct distance_index *)(void *)wrapped;
    struct distance_join_batch b;
    oj_status status;
    memset(&b, 0, sizeof b);
    b.shared.index = &self->shared;
    b.shared.input = input;
    status = oj_distance_rows(&b.shared, stats, err);
    oj_features_free(&b.features);
    for (int t = 0; t < self->shared.options.n_threads; t++)
    {
        stats->n_candidates += self->scratch[t].n_refined;
        self->scratch[t].n_refined = 0;
    }
    if (status != OJ_OK)
        return status;
    return oj_distance_matches(&self->shared, input->n_features, out, err);
}

const struct oj_engine oj_cpu_distance = {"distances between features", takes,
                                          make_index, join,
                                          oj_distance_index_free};
