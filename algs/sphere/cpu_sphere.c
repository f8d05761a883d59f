/* nearest and dwithin on the sphere, for points as input: the join side's
 * features under a tree of boxes in space, walked for every input feature,
 * nearest first.  Squared chords decide; metres are made at the very end. */
#include "../../flatten/base/oj_array.h"
#include "../distance/cpu_distance_rows.h"
#include "../relation/oj_engine.h"
#include "cpu_sphere_side.h"

#include <string.h>

struct sphere_index
{
    struct oj_distance_index shared; /* its distances are squared chords */
    struct oj_sphere_side side;      /* of the join side */
    struct oj_tree3 tree;
    int32_t *feature; /* [entries of tree] */
    double *limit2;   /* [features] their own distances, or NULL */
};

/* A batch on its way. */
struct sphere_join_batch
{
    struct oj_distance_batch shared;
    struct oj_sphere_side side; /* of the input */
};

static struct sphere_index *index_of(const struct oj_distance_batch *batch)
{
    return (struct sphere_index *)(void *)batch->index;
}

/* The squared chord of so many metres; below 0: no distance. */
static double chord2_of(double metres)
{
    double angle = metres / OJ_SPHERE_RADIUS, chord;
    if (!(metres >= 0.0))
        return -1.0;
    if (angle >= 3.141592653589793)
        return 5.0; /* more than there is */
    chord = 2.0 * sin(0.5 * angle);
    return chord * chord;
}

static double metres_of(double chord2)
{
    double half = 0.5 * sqrt(chord2);
    return OJ_SPHERE_RADIUS * 2.0 * asin(half < 1.0 ? half : 1.0);
}

/* --- index ---------------------------------------------------------------- */

static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    (void)join_side;
    return (relation->op == OJ_OP_NEAREST || relation->op == OJ_OP_DWITHIN) &&
           relation->metric == OJ_METRIC_SPHERE &&
           (input == NULL ||
            (input->part_kinds & ~(unsigned)OJ_PART_POINT) == 0);
}

static void free_index(struct oj_distance_index *shared)
{
    struct sphere_index *self = (struct sphere_index *)(void *)shared;
    oj_free(self->feature);
    oj_free(self->limit2);
    oj_free(self->tree.node);
    oj_sphere_side_free(&self->side);
}

/* The features that join something, in Morton order of longitude and latitude
 * of their first vertex. */
static oj_status order_features(const struct oj_sphere_side *side,
                                int n_threads, struct oj_order *order,
                                struct oj_error *err)
{
    const struct oj_flat *flat = side->flat;
    int64_t n = flat->n_features;
    double *x, *y;
    oj_status status;
    OJ_NEW(x, 2 * n, err);
    y = x + n;
    for (int64_t f = 0; f < n; f++)
    {
        int64_t v, end;
        x[f] = y[f] = NAN;
        if (oj_box3_is_empty(&side->box[f]) || !oj_feature_may_pair(flat, f))
            continue;
        oj_flat_vertices(flat, f, &v, &end);
        x[f] = remainder(flat->x[v], 360.0);
        y[f] = flat->y[v];
    }
    status = oj_order_build(order, n_threads, n, x, y, err);
    oj_free(x);
    if (status == OJ_OK)
        status = oj_order_sort(order, n_threads, NULL, NULL, err);
    return status;
}

static oj_status build_tree(struct sphere_index *self, struct oj_error *err)
{
    struct oj_order order;
    struct oj_box3 *box = NULL;
    oj_status status;
    memset(&order, 0, sizeof order);
    status = order_features(&self->side, self->shared.options.n_threads, &order,
                            err);
    if (status == OJ_OK)
    {
        self->feature = oj_malloc(order.n_points, sizeof *self->feature);
        box = oj_malloc(order.n_points, sizeof *box);
        if (self->feature == NULL || box == NULL)
            status = oj_fail_nomem(err, order.n_points, sizeof *box);
    }
    for (int64_t i = 0; status == OJ_OK && i < order.n_points; i++)
    {
        self->feature[i] = (int32_t)order.point[i].index;
        box[i] = self->side.box[order.point[i].index];
    }
    if (status == OJ_OK)
        status = oj_tree3_build(&self->tree, order.n_points, box, err);
    oj_free(box);
    oj_order_free(&order);
    return status;
}

static oj_status build_index(struct oj_distance_index *shared,
                             struct oj_stats *stats, struct oj_error *err)
{
    struct sphere_index *self = (struct sphere_index *)(void *)shared;
    const struct oj_flat *flat = shared->join_side;
    OJ_TRY(oj_sphere_side_build(&self->side, flat, 1,
                                shared->relation.distance_to == OJ_TO_INTERIOR,
                                shared->options.n_threads, err));
    if (flat->max_distance != NULL)
    {
        OJ_NEW(self->limit2, flat->n_features, err);
        for (int64_t f = 0; f < flat->n_features; f++)
            self->limit2[f] = chord2_of(flat->max_distance[f]);
    }
    OJ_TRY(build_tree(self, err));
    stats->index_bytes += oj_sphere_side_bytes(&self->side);
    return OJ_OK;
}

/* --- one row -------------------------------------------------------------- */

/* An input row on its way. */
struct sphere_row_search
{
    struct sphere_join_batch *b;
    struct sphere_index *self;
    struct oj_distance_worker *worker;
    int64_t row, first_vertex, end_vertex;
    double limit2; /* of the row: farther ones do not matter */
};

static double limit2_of(const struct sphere_row_search *s, int32_t feature)
{
    const double *limit2 = s->self->limit2;
    if (limit2 != NULL && s->b->shared.input->max_distance == NULL &&
        limit2[feature] < s->limit2)
        return limit2[feature];
    return s->limit2;
}

static oj_status try_feature(struct sphere_row_search *s, int32_t feature,
                             struct oj_error *err)
{
    const struct sphere_index *self = s->self;
    const struct oj_ranking *ranking = &s->worker->ranking;
    double limit2 = limit2_of(s, feature), least = INFINITY;
    OJ_TRY(oj_distance_try(&s->b->shared, s->worker, err));
    if (!oj_pair_may_count(&s->b->shared.filter, s->row, feature))
        return OJ_OK;
    for (int64_t v = s->first_vertex; v < s->end_vertex; v++)
    {
        double chord2 = oj_sphere_chord2(&self->side, feature, s->b->side.at[v],
                                         limit2 < least ? limit2 : least);
        least = chord2 < least ? chord2 : least;
    }
    if (!(least <= limit2) || least < self->shared.relation.min_distance)
        return OJ_OK;
    OJ_TRY(
        oj_distance_put(&s->b->shared, s->worker, s->row, feature, least, err));
    if (self->shared.relation.op == OJ_OP_NEAREST && ranking->bound < s->limit2)
        s->limit2 = ranking->bound;
    return OJ_OK;
}

static oj_status walk(struct sphere_row_search *s, struct oj_error *err)
{
    const struct sphere_index *self = s->self;
    const struct oj_tree3 *tree = &self->tree;
    const struct oj_box3 *box = &s->b->side.box[s->row];
    struct oj_tree3_visit stack[OJ_TREE3_STACK];
    int depth = 0;
    if (tree->n_levels == 0)
        return OJ_OK;
    stack[depth++] = (struct oj_tree3_visit){0.0, 0, tree->n_levels - 1};
    while (depth > 0)
    {
        struct oj_tree3_visit at = stack[--depth];
        if (at.d2 > s->limit2)
            continue;
        if (at.level > 0)
            depth = oj_tree3_push(tree, at, box, s->limit2, stack, depth);
        else
            OJ_TRY(try_feature(s, self->feature[at.node], err));
    }
    return OJ_OK;
}

static oj_status search_row(struct oj_distance_batch *shared,
                            struct oj_distance_worker *worker, int64_t row,
                            struct oj_error *err)
{
    const struct oj_flat *flat = shared->input;
    struct sphere_index *self = index_of(shared);
    struct sphere_row_search s = {
        (struct sphere_join_batch *)(void *)shared, self, worker, row, 0, 0,
        self->shared.relation.max_distance};
    /* every part is a point */
    oj_flat_vertices(flat, row, &s.first_vertex, &s.end_vertex);
    if (flat->max_distance != NULL)
        s.limit2 = chord2_of(flat->max_distance[row]);
    else if (self->limit2 != NULL)
        s.limit2 = 5.0;
    return walk(&s, err);
}

/* --- a batch -------------------------------------------------------------- */

static oj_status start_batch(struct oj_distance_batch *shared,
                             struct oj_error *err)
{
    struct sphere_join_batch *b = (struct sphere_join_batch *)(void *)shared;
    struct oj_distance_index *index = shared->index;
    int n_threads = index->options.n_threads;
    OJ_TRY(oj_sphere_side_build(&b->side, shared->input, 0, 0, n_threads, err));
    return order_features(&b->side, n_threads, &index->order, err);
}

static const struct oj_distance_space sphere = {sizeof(struct sphere_index),
                                                build_index, free_index,
                                                start_batch, search_row};

static oj_status make_index(const struct oj_index_args *args,
                            struct oj_index **out, struct oj_stats *stats,
                            struct oj_error *err)
{
    struct oj_index_args chords = *args;
    chords.relation.max_distance = chord2_of(args->relation.max_distance);
    chords.relation.min_distance = chord2_of(args->relation.min_distance);
    return oj_distance_index_make(&sphere, &chords, out, stats, err);
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct sphere_index *self = (struct sphere_index *)(void *)wrapped;
    struct sphere_join_batch b;
    oj_status status;
    memset(&b, 0, sizeof b);
    b.shared.index = &self->shared;
    b.shared.input = input;
    status = oj_distance_rows(&b.shared, stats, err);
    oj_sphere_side_free(&b.side);
    for (int t = 0; t < self->shared.options.n_threads; t++)
        stats->n_candidates += self->shared.worker[t].n_tried;
    if (status == OJ_OK)
        status =
            oj_distance_matches(&self->shared, input->n_features, out, err);
    for (int64_t i = 0; status == OJ_OK && i < out->n_entries; i++)
        out->measure[i] = metres_of(out->measure[i]);
    return status;
}

const struct oj_engine oj_cpu_sphere = {
    "distances on the sphere", takes, make_index, join, oj_distance_index_free};
