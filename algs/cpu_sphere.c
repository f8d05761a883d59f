/* nearest and dwithin on the sphere, for points as input: the join side's
 * features under a tree of boxes in space, walked for every input feature,
 * nearest first.  Squared chords decide; metres are made at the very end. */
#include "../flatten/oj_array.h"
#include "cpu_family.h"
#include "cpu_order.h"
#include "cpu_sphere_side.h"
#include "cpu_threads.h"
#include "oj_clock.h"
#include "oj_pairs.h"
#include "oj_ranking.h"

#include <stdatomic.h>
#include <string.h>

/* Candidates between two looks at the cancel flag. */
#define CANDIDATES_PER_LOOK 512

#define ROWS_PER_TASK 1024

/* Eight children pushed a level, seven left behind on the way down. */
#define STACK (OJ_TREE3_LEVELS * OJ_TREE3_FANOUT)

/* What a thread has of its own. */
struct worker
{
    struct oj_answers answers;
    struct oj_ranking ranking;
    int64_t n_candidates;
};

struct sphere_index
{
    struct oj_relation relation; /* distances as squared chords */
    struct oj_options options;
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_sphere_side side; /* of the join side */
    struct oj_tree3 tree;
    int32_t *feature;      /* [entries of tree] */
    double *limit2;        /* [features] their own distances, or NULL */
    struct worker *worker; /* [n_threads] */
    struct oj_order order; /* of the batch; its memory is used again */
};

/* A batch on its way. */
struct batch
{
    struct sphere_index *self;
    const struct oj_flat *input;
    struct oj_sphere_side side; /* of the input */
    struct oj_pair_filter filter;
    atomic_int status;
    struct oj_error error; /* written by the thread that sets status */
};

static struct sphere_index *unwrap(struct oj_index *index)
{
    return (struct sphere_index *)(void *)index;
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

static void free_index(struct oj_index *wrapped)
{
    struct sphere_index *self = unwrap(wrapped);
    if (self == NULL)
        return;
    for (int t = 0; self->worker != NULL && t < self->options.n_threads; t++)
    {
        oj_answers_free(&self->worker[t].answers);
        oj_ranking_free(&self->worker[t].ranking);
    }
    oj_free(self->worker);
    oj_free(self->feature);
    oj_free(self->limit2);
    oj_free(self->tree.node);
    oj_order_free(&self->order);
    oj_sphere_side_free(&self->side);
    oj_free(self);
}

/* The features that join something, in Morton order of longitude and latitude
 * of their first vertex. */
static oj_status order_features(const struct oj_sphere_side *side,
                                int n_threads, struct oj_order *order,
                                struct oj_error *err)
{
    const struct oj_flat *flat = side->flat;
    int64_t n = flat->n_features;
    struct oj_ordered_point *scratch = NULL;
    double *x, *y;
    oj_status status;
    OJ_NEW(x, n, err);
    y = oj_malloc(n, sizeof *y);
    if (y == NULL)
    {
        oj_free(x);
        return oj_fail_nomem(err, n, sizeof *y);
    }
    for (int64_t f = 0; f < n; f++)
    {
        int64_t v = f;
        x[f] = y[f] = NAN;
        if (oj_box3_is_empty(&side->box[f]) ||
            (flat->on_class != NULL && flat->on_class[f] < 0) ||
            (flat->max_distance != NULL && !(flat->max_distance[f] >= 0.0)))
            continue;
        if (!oj_flat_is_points(flat))
            v = flat->vertex_offset[flat->ring_offset[flat->part_offset[f]]];
        x[f] = remainder(flat->x[v], 360.0);
        y[f] = flat->y[v];
    }
    status = oj_order_build(order, n_threads, n, x, y, err);
    oj_free(x);
    oj_free(y);
    if (status != OJ_OK)
        return status;
    OJ_NEW(scratch, order->largest_bucket, err);
    for (int64_t b = 0; b < order->n_buckets; b++)
        oj_order_sort_bucket(order, b, scratch);
    oj_free(scratch);
    return OJ_OK;
}

static oj_status build_tree(struct sphere_index *self, struct oj_error *err)
{
    struct oj_order order;
    struct oj_box3 *box = NULL;
    oj_status status;
    memset(&order, 0, sizeof order);
    status = order_features(&self->side, self->options.n_threads, &order, err);
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

static oj_status build_index(struct sphere_index *self, struct oj_error *err)
{
    const struct oj_flat *flat = self->join_side;
    int n_threads = self->options.n_threads;
    self->worker = oj_calloc(n_threads, sizeof *self->worker);
    if (self->worker == NULL)
        return oj_fail_nomem(err, n_threads, sizeof *self->worker);
    for (int t = 0; t < n_threads; t++)
        self->worker[t].ranking =
            oj_ranking_make(&self->relation, self->tie_rank);
    OJ_TRY(oj_sphere_side_build(&self->side, flat, 1,
                                self->relation.distance_to == OJ_TO_INTERIOR,
                                n_threads, err));
    if (flat->max_distance != NULL)
    {
        OJ_NEW(self->limit2, flat->n_features, err);
        for (int64_t f = 0; f < flat->n_features; f++)
            self->limit2[f] = chord2_of(flat->max_distance[f]);
    }
    return build_tree(self, err);
}

static oj_status
make_index(const struct oj_flat *join_side, const int32_t *tie_rank,
           const struct oj_relation *relation, const struct oj_options *options,
           struct oj_index **out, struct oj_stats *stats, struct oj_error *err)
{
    struct sphere_index *self = oj_calloc(1, sizeof *self);
    double start = oj_clock_seconds();
    oj_status status;
    if (self == NULL)
        return oj_fail_nomem(err, 1, sizeof *self);
    self->relation = *relation;
    self->relation.max_distance = chord2_of(relation->max_distance);
    self->relation.min_distance = chord2_of(relation->min_distance);
    self->options = *options;
    self->join_side = join_side;
    self->tie_rank = tie_rank;
    status = build_index(self, err);
    if (status != OJ_OK)
    {
        free_index((struct oj_index *)(void *)self);
        return status;
    }
    stats->index_s += oj_clock_seconds() - start;
    stats->index_bytes += oj_sphere_side_bytes(&self->side);
    *out = (struct oj_index *)(void *)self;
    return OJ_OK;
}

/* --- one row -------------------------------------------------------------- */

/* An input row on its way. */
struct row_search
{
    struct batch *b;
    struct worker *worker;
    int64_t row, first_vertex, end_vertex;
    double limit2; /* of the row: farther ones do not matter */
};

static double limit2_of(const struct row_search *s, int32_t feature)
{
    const struct sphere_index *self = s->b->self;
    double limit2 = s->limit2;
    if (self->limit2 != NULL && s->b->input->max_distance == NULL &&
        self->limit2[feature] < limit2)
        limit2 = self->limit2[feature];
    return limit2;
}

static oj_status try_feature(struct row_search *s, int32_t feature,
                             struct oj_error *err)
{
    struct sphere_index *self = s->b->self;
    struct worker *worker = s->worker;
    double limit2 = limit2_of(s, feature), least = INFINITY;
    const int *cancel = self->options.cancel;
    if (++worker->n_candidates % CANDIDATES_PER_LOOK == 0 && cancel != NULL &&
        __atomic_load_n(cancel, __ATOMIC_RELAXED))
        return oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
    if (!oj_pair_may_count(&s->b->filter, s->row, feature))
        return OJ_OK;
    for (int64_t v = s->first_vertex; v < s->end_vertex; v++)
    {
        double chord2 = oj_sphere_chord2(&self->side, feature, s->b->side.at[v],
                                         limit2 < least ? limit2 : least);
        least = chord2 < least ? chord2 : least;
    }
    if (!(least <= limit2) || least < self->relation.min_distance)
        return OJ_OK;
    if (self->relation.op == OJ_OP_NEAREST)
    {
        OJ_TRY(oj_ranking_add(&worker->ranking, feature, least, err));
        if (worker->ranking.bound < s->limit2)
            s->limit2 = worker->ranking.bound;
        return OJ_OK;
    }
    OJ_TRY(oj_answers_reserve(&worker->answers, 1, err));
    oj_answers_put(&worker->answers, (int32_t)s->row, feature, least);
    return OJ_OK;
}

struct visit
{
    double d2;
    int64_t node;
    int level;
};

static oj_status walk(struct row_search *s, struct oj_error *err)
{
    const struct sphere_index *self = s->b->self;
    const struct oj_tree3 *tree = &self->tree;
    const struct oj_box3 *box = &s->b->side.box[s->row];
    struct visit stack[STACK];
    int depth = 0;
    if (tree->n_levels == 0)
        return OJ_OK;
    stack[depth++] = (struct visit){0.0, 0, tree->n_levels - 1};
    while (depth > 0)
    {
        struct visit at = stack[--depth];
        int bottom = depth, level = at.level - 1;
        int64_t first, n;
        if (at.d2 > s->limit2)
            continue;
        if (at.level == 0)
        {
            OJ_TRY(try_feature(s, self->feature[at.node], err));
            continue;
        }
        first = tree->first_node[level];
        n = tree->first_node[level + 1] - first;
        for (int64_t i = at.node * OJ_TREE3_FANOUT;
             i < (at.node + 1) * OJ_TREE3_FANOUT && i < n; i++)
        {
            struct visit child = {
                oj_box3_distance2(box, &tree->node[first + i]), i, level};
            int place = depth;
            if (child.d2 > s->limit2)
                continue;
            for (; place > bottom && stack[place - 1].d2 < child.d2; place--)
                stack[place] = stack[place - 1];
            stack[place] = child;
            depth++;
        }
    }
    return OJ_OK;
}

static oj_status join_row(struct batch *b, struct worker *worker, int64_t row,
                          struct oj_error *err)
{
    const struct oj_flat *flat = b->input;
    struct row_search s = {b, worker, row, row, row + 1, 0.0};
    s.limit2 = b->self->relation.max_distance;
    if (flat->max_distance != NULL)
        s.limit2 = chord2_of(flat->max_distance[row]);
    else if (b->self->limit2 != NULL)
        s.limit2 = 5.0;
    if (!oj_flat_is_points(flat))
    {
        /* every part is a point */
        s.first_vertex = flat->part_offset[row];
        s.end_vertex = flat->part_offset[row + 1];
        s.first_vertex = flat->vertex_offset[flat->ring_offset[s.first_vertex]];
        s.end_vertex = flat->vertex_offset[flat->ring_offset[s.end_vertex]];
    }
    if (b->self->relation.op != OJ_OP_NEAREST)
        return walk(&s, err);
    oj_ranking_start(&worker->ranking);
    OJ_TRY(walk(&s, err));
    oj_ranking_finish(&worker->ranking);
    return oj_answers_add(&worker->answers, row, &worker->ranking, err);
}

/* --- a batch -------------------------------------------------------------- */

static void join_rows(int64_t task, int thread, void *user)
{
    struct batch *b = user;
    struct sphere_index *self = b->self;
    int64_t end = (task + 1) * ROWS_PER_TASK;
    struct oj_error error;
    oj_status status = OJ_OK;
    int expected = OJ_OK;
    if (atomic_load(&b->status) != OJ_OK)
        return;
    if (end > self->order.n_points)
        end = self->order.n_points;
    for (int64_t i = task * ROWS_PER_TASK; i < end && status == OJ_OK; i++)
        status = join_row(b, &self->worker[thread], self->order.point[i].index,
                          &error);
    if (status != OJ_OK &&
        atomic_compare_exchange_strong(&b->status, &expected, (int)status))
        b->error = error;
}

static oj_status join_batch(struct batch *b, struct oj_stats *stats,
                            struct oj_error *err)
{
    struct sphere_index *self = b->self;
    int n_threads = self->options.n_threads;
    int64_t budget = self->options.max_batch_pairs;
    double start = oj_clock_seconds(), sorted;
    OJ_TRY(oj_pair_filter_make(&self->relation, b->input, self->join_side,
                               &b->filter, err));
    OJ_TRY(oj_sphere_side_build(&b->side, b->input, 0, 0, n_threads, err));
    OJ_TRY(order_features(&b->side, n_threads, &self->order, err));
    sorted = oj_clock_seconds();
    for (int t = 0; t < n_threads; t++)
    {
        struct worker *worker = &self->worker[t];
        oj_answers_clear(&worker->answers);
        worker->n_candidates = CANDIDATES_PER_LOOK - 1;
        worker->answers.max_entries = 0;
        if (budget > 0 && b->input->n_features > 1)
            worker->answers.max_entries =
                budget > n_threads ? budget / n_threads : 1;
    }
    oj_parallel_for(n_threads,
                    (self->order.n_points + ROWS_PER_TASK - 1) / ROWS_PER_TASK,
                    join_rows, b);
    stats->sort_s += sorted - start;
    stats->refine_s += oj_clock_seconds() - sorted;
    for (int t = 0; t < n_threads; t++)
        stats->n_candidates +=
            self->worker[t].n_candidates - (CANDIDATES_PER_LOOK - 1);
    if (atomic_load(&b->status) != OJ_OK && err != NULL)
        *err = b->error;
    return (oj_status)atomic_load(&b->status);
}

static oj_status gather(struct sphere_index *self, int64_t n_rows,
                        struct oj_matches *out, struct oj_error *err)
{
    struct oj_answers *answers;
    oj_status status;
    OJ_NEW(answers, self->options.n_threads, err);
    for (int t = 0; t < self->options.n_threads; t++)
        answers[t] = self->worker[t].answers;
    status = oj_answers_to_matches(answers, self->options.n_threads, n_rows,
                                   &self->relation, self->tie_rank, out, err);
    oj_free(answers);
    for (int64_t i = 0; status == OJ_OK && i < out->n_entries; i++)
        out->measure[i] = metres_of(out->measure[i]);
    return status;
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct batch b;
    oj_status status;
    memset(&b, 0, sizeof b);
    b.self = unwrap(wrapped);
    b.input = input;
    atomic_init(&b.status, OJ_OK);
    status = join_batch(&b, stats, err);
    oj_sphere_side_free(&b.side);
    if (status != OJ_OK)
        return status;
    return gather(b.self, input->n_features, out, err);
}

const struct oj_cpu_family oj_cpu_sphere = {"distances on the sphere", takes,
                                            make_index, join, free_index};
