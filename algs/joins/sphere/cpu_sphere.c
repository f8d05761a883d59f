/* The engine for nearest and dwithin on the sphere, with points as input.
 *
 *  The join side's features are entries of a tree of 3D boxes, which is
 *  searched best-first for each input feature. Squared chords are compared;
 *  only results are converted to metres.
 */
#include "../../../flatten/base/oj_alloc.h"
#include "../../pairs/selection/oj_equal_groups.h"
#include "cpu_sphere_side.h"

#include <string.h>

struct sphere_index
{
    struct oj_row_index shared;  /* distances in shared.args.relation are
                                    squared chords */
    struct oj_sphere_side side;  /* the join side */
    struct oj_sphere_side input; /* input rows of the current batch */
    struct oj_tree3 tree;
    struct oj_equal_groups groups; /* the entries of tree */
    double *limit2; /* [features] own maximum distances as squared chords,
                       or NULL */
};

/* --- index ---------------------------------------------------------------- */

static int takes_sphere(const struct oj_relation *relation,
                        const struct oj_flat *join_side,
                        const struct oj_flat *input)
{
    (void)join_side;
    return oj_relation_is_by_distance(relation) &&
           relation->metric == OJ_METRIC_SPHERE &&
           (input == NULL ||
            (input->part_kinds & ~(unsigned)OJ_PART_POINT) == 0);
}

static void free_side(struct oj_index *wrapped)
{
    struct sphere_index *self = (void *)wrapped;
    oj_equal_groups_free(&self->groups);
    oj_free(self->limit2);
    oj_free(self->tree.node);
    oj_sphere_side_free(&self->side);
}

/* Longitude and latitude of a feature's first vertex. */
static int first_vertex_in_degrees(const void *user, int64_t feature, double *x,
                                   double *y)
{
    const struct oj_sphere_side *side = user;
    int64_t v, end;
    if (oj_sphere_box3_is_empty(&side->box[feature]) ||
        !oj_feature_may_pair(side->flat, feature))
        return 0;
    oj_flat_vertices(side->flat, feature, &v, &end);
    *x = remainder(side->flat->x[v], 360.0);
    *y = side->flat->y[v];
    return 1;
}

static oj_status build_tree(struct sphere_index *self, struct oj_order *order,
                            struct oj_error *err)
{
    OJ_TRY(oj_equal_groups_make(&self->groups, &self->shared.args, order, err));
    OJ_TRY(oj_sphere_tree3_reserve(&self->tree, self->groups.n, err));
    for (int64_t i = 0; i < self->groups.n; i++)
        self->tree.node[i] =
            self->side.box[oj_equal_groups_any(&self->groups, i)];
    oj_sphere_tree3_fill(&self->tree);
    return OJ_OK;
}

static oj_status order_and_build_tree(struct sphere_index *self,
                                      struct oj_error *err)
{
    struct oj_order order = {0};
    oj_status status =
        oj_row_order(self->side.flat, &self->side, first_vertex_in_degrees,
                     self->shared.n_threads, &order, err);
    if (status == OJ_OK)
        status = build_tree(self, &order, err);
    oj_order_free(&order);
    return status;
}

/* --- one row -------------------------------------------------------------- */

/* State of the search for one input row. */
struct sphere_row_search
{
    struct sphere_index *self;
    struct oj_row_worker *worker;
    int64_t row, first_vertex, end_vertex;
    double limit2; /* maximum squared chord of the row */
    struct oj_rank_range ranks;
};

static double squared_chord_limit_of_feature(const struct sphere_row_search *s,
                                             int32_t feature)
{
    const double *limit2 = s->self->limit2;
    if (limit2 != NULL && s->self->shared.input->max_distance == NULL &&
        limit2[feature] < s->limit2)
        return limit2[feature];
    return s->limit2;
}

/* The squared chord from the row to a feature, or more than limit2. */
static double measure_feature(const struct sphere_row_search *s,
                              int32_t feature, double limit2)
{
    const struct sphere_index *self = s->self;
    double least = INFINITY;
    for (int64_t v = s->first_vertex; v < s->end_vertex; v++)
    {
        double chord2 =
            oj_sphere_chord2_to_feature(&self->side, feature, self->input.at[v],
                                        limit2 < least ? limit2 : least);
        least = chord2 < least ? chord2 : least;
    }
    return least;
}

static void narrow_search(struct sphere_row_search *s)
{
    const struct oj_ranking *ranking = &s->worker->ranking;
    if (oj_relation_is_nearest(&s->self->shared.args.relation) &&
        ranking->bound < s->limit2)
        s->limit2 = ranking->bound;
}

static oj_status measure_feature_and_add_to_ranking(struct sphere_row_search *s,
                                                    int32_t feature,
                                                    struct oj_error *err)
{
    const struct sphere_index *self = s->self;
    double limit2 = squared_chord_limit_of_feature(s, feature), least;
    s->worker->n_candidates++;
    if (!oj_pair_may_count(&self->shared.filter, s->row, feature))
        return OJ_OK;
    least = measure_feature(s, feature, limit2);
    if (!(least <= limit2) || least < self->shared.args.relation.min_distance)
        return OJ_OK;
    OJ_TRY(
        oj_row_put_pair(&self->shared, s->worker, s->row, feature, least, err));
    narrow_search(s);
    return OJ_OK;
}

/* Measures several equal features by one of them. */
static oj_status measure_equal_features(struct sphere_row_search *s,
                                        int64_t entry, struct oj_error *err)
{
    const struct sphere_index *self = s->self;
    const struct oj_row_index *shared = &self->shared;
    const struct oj_relation *relation = &shared->args.relation;
    struct oj_equal_run run =
        oj_equal_groups_run(&self->groups, shared, s->row, entry, s->ranks);
    int32_t feature = oj_equal_groups_any(&self->groups, entry);
    double limit2 = squared_chord_limit_of_feature(s, feature), least;
    s->worker->n_candidates++;
    if (run.first >= run.end ||
        (relation->exclude_same_geometry &&
         oj_flat_same_geometry(shared->input, s->row, self->side.flat,
                               feature)))
        return OJ_OK;
    least = measure_feature(s, feature, limit2);
    if (!(least <= limit2) || least < relation->min_distance)
        return OJ_OK;
    OJ_TRY(oj_equal_groups_put(&self->groups, shared, s->worker, s->row, run,
                               least, &s->worker->n_candidates, err));
    narrow_search(s);
    return OJ_OK;
}

static oj_status measure_entry_and_add_to_ranking(struct sphere_row_search *s,
                                                  int64_t entry,
                                                  struct oj_error *err)
{
    const struct oj_equal_groups *groups = &s->self->groups;
    OJ_TRY(oj_row_poll_cancel(&s->self->shared, s->worker, err));
    return oj_equal_groups_count(groups, entry) > 1
               ? measure_equal_features(s, entry, err)
               : measure_feature_and_add_to_ranking(
                     s, oj_equal_groups_any(groups, entry), err);
}

static oj_status walk_tree(struct sphere_row_search *s, struct oj_error *err)
{
    const struct sphere_index *self = s->self;
    const struct oj_tree3 *tree = &self->tree;
    const struct oj_box3 *box = &self->input.box[s->row];
    struct oj_box_child stack[OJ_BOX_STACK];
    int depth = tree->levels.n_levels > 0;
    stack[0] = (struct oj_box_child){0.0, 0, tree->levels.n_levels - 1};
    while (depth > 0)
    {
        struct oj_box_child at = stack[--depth];
        if (at.d2 > s->limit2)
            continue;
        if (at.level > 0)
            depth =
                oj_sphere_tree3_push(tree, at, box, s->limit2, stack, depth);
        else
            OJ_TRY(measure_entry_and_add_to_ranking(s, at.node, err));
    }
    return OJ_OK;
}

static oj_status search_row(struct oj_row_index *shared,
                            struct oj_row_worker *worker, int64_t row,
                            struct oj_error *err)
{
    const struct oj_flat *flat = shared->input;
    struct sphere_index *self = (void *)shared;
    struct sphere_row_search s = {
        .self = self,
        .worker = worker,
        .row = row,
        .limit2 = shared->args.relation.max_distance,
        .ranks = oj_equal_groups_ranks_of_row(&self->groups, shared, row)};
    /* all parts are points */
    oj_flat_vertices(flat, row, &s.first_vertex, &s.end_vertex);
    if (flat->max_distance != NULL)
        s.limit2 = oj_sphere_chord2_of(flat->max_distance[row]);
    else if (self->limit2 != NULL)
        s.limit2 = 5.0;
    return walk_tree(&s, err);
}

/* --- a batch -------------------------------------------------------------- */

static oj_status start_batch(struct oj_row_index *shared, struct oj_error *err)
{
    struct sphere_index *self = (void *)shared;
    OJ_TRY(oj_sphere_side_build(&self->input, shared->input, 0, 0,
                                shared->n_threads, err));
    return oj_row_order_input(shared, &self->input, first_vertex_in_degrees,
                              err);
}

static void end_batch(struct oj_row_index *shared)
{
    oj_sphere_side_free(&((struct sphere_index *)(void *)shared)->input);
}

static const struct oj_row_method sphere = {.worker_size =
                                                sizeof(struct oj_row_worker),
                                            .start = start_batch,
                                            .row_of = oj_row_in_order,
                                            .search = search_row,
                                            .end = end_batch,
                                            .measure_of = oj_sphere_metres_of};

static oj_status build_sphere_index(struct oj_index *wrapped,
                                    const struct oj_index_args *args,
                                    struct oj_stats *stats,
                                    struct oj_error *err)
{
    struct sphere_index *self = oj_row_index_begin(wrapped, &sphere, args);
    const struct oj_flat *flat = args->join_side;
    oj_sphere_relation_to_chords(&self->shared.args.relation);
    OJ_TRY(oj_sphere_side_build(&self->side, flat, 1,
                                args->relation.distance_to == OJ_TO_INTERIOR,
                                args->options.n_threads, err));
    if (flat->max_distance != NULL)
    {
        OJ_NEW(self->limit2, flat->n_features, err);
        for (int64_t f = 0; f < flat->n_features; f++)
            self->limit2[f] = oj_sphere_chord2_of(flat->max_distance[f]);
    }
    OJ_TRY(order_and_build_tree(self, err));
    stats->index_bytes += oj_sphere_side_bytes(&self->side) +
                          oj_equal_groups_bytes(&self->groups);
    return OJ_OK;
}

const struct oj_engine oj_cpu_sphere = {.name = "distances on the sphere",
                                        .takes = takes_sphere,
                                        .index_size =
                                            sizeof(struct sphere_index),
                                        .build = build_sphere_index,
                                        .join = oj_row_join,
                                        .free_side = free_side,
                                        .free_batches = oj_row_batches_free,
                                        .set_options = oj_row_set_options};
