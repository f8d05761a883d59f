/* Distances between features of any kinds: the join side's features under one
 * tree, walked for every input feature, nearest first; pairs are measured by
 * cpu_pair_distance.h. */
#include "../flatten/oj_array.h"
#include "cpu_family.h"
#include "cpu_feature_tree.h"
#include "cpu_pair_distance.h"
#include "cpu_patch.h"
#include "cpu_threads.h"
#include "kernels/oj_segment.h"
#include "oj_clock.h"
#include "oj_pairs.h"
#include "oj_ranking.h"

#include <stdatomic.h>
#include <string.h>

/* Candidates between two looks at the cancel flag. */
#define CANDIDATES_PER_LOOK 512

/* Rows that a thread takes at once, at most. */
#define ROWS_PER_TASK 2048

/* What a thread has of its own. */
struct worker
{
    struct oj_answers answers;
    struct oj_ranking ranking;
    struct oj_pair_scratch scratch;
    int n_candidates; /* since the flag was looked at */
};

struct distance_index
{
    struct oj_relation relation;
    struct oj_options options;
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_features features; /* of the join side */
    struct oj_feature_tree tree;
    struct worker *worker; /* [n_threads] */
    struct oj_order order; /* of the batch; its memory is used again */
};

/* A batch on its way. */
struct batch
{
    struct distance_index *self;
    const struct oj_flat *input;
    struct oj_features features; /* of the input */
    struct oj_pair_filter filter;
    int64_t rows_per_task;
    atomic_int status;
    struct oj_error error; /* written by the thread that sets status */
};

static struct distance_index *unwrap(struct oj_index *index)
{
    return (struct distance_index *)(void *)index;
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

static void free_index(struct oj_index *wrapped)
{
    struct distance_index *self = unwrap(wrapped);
    if (self == NULL)
        return;
    for (int t = 0; self->worker != NULL && t < self->options.n_threads; t++)
    {
        oj_answers_free(&self->worker[t].answers);
        oj_ranking_free(&self->worker[t].ranking);
    }
    oj_free(self->worker);
    oj_order_free(&self->order);
    oj_feature_tree_free(&self->tree);
    oj_features_free(&self->features);
    oj_free(self);
}

static oj_status build_index(struct distance_index *self, struct oj_error *err)
{
    int n_threads = self->options.n_threads;
    self->worker = oj_calloc(n_threads, sizeof *self->worker);
    if (self->worker == NULL)
        return oj_fail_nomem(err, n_threads, sizeof *self->worker);
    for (int t = 0; t < n_threads; t++)
    {
        self->worker[t].ranking =
            oj_ranking_make(&self->relation, self->tie_rank);
        self->worker[t].scratch.cancel = self->options.cancel;
    }
    OJ_TRY(oj_features_build(&self->features, self->join_side,
                             self->relation.distance_to == OJ_TO_INTERIOR,
                             n_threads, err));
    return oj_feature_tree_build(&self->tree, &self->features, self->tie_rank,
                                 n_threads, err);
}

static oj_status
make_index(const struct oj_flat *join_side, const int32_t *tie_rank,
           const struct oj_relation *relation, const struct oj_options *options,
           struct oj_index **out, struct oj_stats *stats, struct oj_error *err)
{
    struct distance_index *self = oj_calloc(1, sizeof *self);
    double start = oj_clock_seconds();
    oj_status status;
    if (self == NULL)
        return oj_fail_nomem(err, 1, sizeof *self);
    self->relation = *relation;
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
    stats->index_bytes +=
        oj_features_bytes(&self->features) + oj_feature_tree_bytes(&self->tree);
    *out = (struct oj_index *)(void *)self;
    return OJ_OK;
}

/* --- one row -------------------------------------------------------------- */

/* An input row on its way. */
struct row_search
{
    struct batch *b;
    struct worker *worker;
    int64_t row;
    double x, y;       /* of a row that is a single point */
    float reach2;      /* children farther away are left out */
    int32_t last_rank; /* the one nearest is at 0 and has this rank: only lower
                          ones matter; else INT32_MAX */
};

/* The greatest distance that matters for a feature, or below 0: none does. */
static double limit_of(const struct row_search *s, int64_t feature)
{
    const struct distance_index *self = s->b->self;
    double limit = oj_pair_max_distance(&self->relation, s->b->input, s->row,
                                        self->join_side, feature);
    if (self->relation.op != OJ_OP_NEAREST)
        return limit;
    return limit < s->worker->ranking.bound ? limit : s->worker->ranking.bound;
}

static double distance_to(const struct row_search *s, int64_t entry,
                          int64_t feature, double limit)
{
    struct distance_index *self = s->b->self;
    if (self->tree.x != NULL && oj_flat_is_points(s->b->input))
    {
        s->worker->scratch.n_refined++;
        return oj_point_distance(s->x, s->y, self->tree.x[entry],
                                 self->tree.y[entry]);
    }
    return oj_pair_distance(&s->b->features, s->row, &self->features, feature,
                            self->relation.distance_to == OJ_TO_INTERIOR, limit,
                            &s->worker->scratch);
}

/* Rows are few that many candidates have: they grow by half. */
static oj_status put_pair(struct row_search *s, int32_t feature,
                          double distance, struct oj_error *err)
{
    struct oj_answers *answers = &s->worker->answers;
    OJ_TRY(oj_answers_reserve(answers, 1, err));
    oj_answers_put(answers, (int32_t)s->row, feature, distance);
    return OJ_OK;
}

static oj_status try_entry(struct row_search *s, int64_t entry,
                           struct oj_error *err)
{
    struct distance_index *self = s->b->self;
    int32_t feature = self->tree.feature[entry];
    double limit = limit_of(s, feature), distance;
    const int *cancel = self->options.cancel;
    if (++s->worker->n_candidates % CANDIDATES_PER_LOOK == 0 &&
        cancel != NULL && __atomic_load_n(cancel, __ATOMIC_RELAXED))
        return oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
    if (!(limit >= 0.0))
        return OJ_OK;
    if (self->tree.x == NULL &&
        !oj_pair_may_count(&s->b->filter, s->row, feature))
        return OJ_OK;
    distance = distance_to(s, entry, feature, limit);
    if (!(distance <= limit) || distance < self->relation.min_distance)
        return OJ_OK;
    if (self->tree.x != NULL &&
        !oj_pair_may_count(&s->b->filter, s->row, feature))
        return OJ_OK;
    if (self->relation.op != OJ_OP_NEAREST)
        return put_pair(s, feature, distance, err);
    OJ_TRY(oj_ranking_add(&s->worker->ranking, feature, distance, err));
    s->reach2 = oj_tree_reach2(&self->tree.tree, s->worker->ranking.bound);
    if (s->worker->ranking.bound == 0.0 && self->relation.k == 1 &&
        self->relation.ties == OJ_TIES_FIRST && s->worker->ranking.n > 0)
        s->last_rank = s->worker->ranking.list[0].rank;
    return OJ_OK;
}

/* Pushes the children of the visited node that are within reach, the farthest
 * first, so that the nearest comes off first, and the first of those that are
 * as near; a child of level -1 is an entry. */
OJ_INLINE int push_children(const struct oj_feature_tree *tree,
                            const float q[4], float reach2,
                            struct oj_visit visited, struct oj_visit *stack,
                            int depth)
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
        struct oj_visit moved = stack[i];
        int place = i;
        for (; place > first && stack[place - 1].d2 < moved.d2; place--)
            stack[place] = stack[place - 1];
        stack[place] = moved;
    }
    return depth;
}

/* The lowest tie rank below a visit; not for the root. */
OJ_INLINE int32_t first_rank(const struct oj_feature_tree *tree,
                             const struct oj_visit *v)
{
    int64_t parents = tree->tree.level_first[v->level + 1];
    return tree->first_rank[parents * OJ_FANOUT + v->child];
}

OJ_INLINE oj_status walk(struct row_search *s, const struct oj_box *box,
                         struct oj_error *err)
{
    const struct oj_feature_tree *tree = &s->b->self->tree;
    struct oj_visit stack[OJ_STACK + 2 * OJ_FANOUT];
    struct oj_place place;
    float q[4];
    int depth = 0;
    if (tree->tree.n_levels == 0)
        return OJ_OK;
    oj_place_set(&place, box);
    oj_place_relative_to(&place, &tree->tree, q);
    stack[depth++] = (struct oj_visit){0, tree->tree.n_levels - 1, 0.0f};
    while (depth > 0)
    {
        struct oj_visit v = stack[--depth];
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

static double reach_of_row(const struct batch *b, int64_t row)
{
    const struct oj_relation *relation = &b->self->relation;
    if (b->input->max_distance != NULL)
        return b->input->max_distance[row];
    /* where join features have their own, the tree knows them */
    if (b->self->join_side->max_distance != NULL)
        return INFINITY;
    return relation->max_distance;
}

OJ_INLINE oj_status join_row(struct batch *b, struct worker *worker,
                             int64_t row, struct oj_error *err)
{
    struct oj_box box = oj_features_box(&b->features, row);
    struct row_search s = {b, worker, row, box.x0, box.y0, 0.0f, INT32_MAX};
    s.reach2 = oj_tree_reach2(&b->self->tree.tree, reach_of_row(b, row));
    if (b->self->relation.op != OJ_OP_NEAREST)
        return walk(&s, &box, err);
    oj_ranking_start(&worker->ranking);
    OJ_TRY(walk(&s, &box, err));
    oj_ranking_finish(&worker->ranking);
    return oj_answers_add(&worker->answers, row, &worker->ranking, err);
}

/* --- a batch -------------------------------------------------------------- */

OJ_CLONES static void join_rows(int64_t task, int thread, void *user)
{
    struct batch *b = user;
    struct distance_index *self = b->self;
    int64_t end = (task + 1) * b->rows_per_task;
    struct oj_error error;
    oj_status status = OJ_OK;
    int expected = OJ_OK;
    if (end > self->order.n_points)
        end = self->order.n_points;
    for (int64_t i = task * b->rows_per_task; i < end && status == OJ_OK; i++)
    {
        if (atomic_load_explicit(&b->status, memory_order_relaxed) != OJ_OK)
            return;
        status = join_row(b, &self->worker[thread], self->order.point[i].index,
                          &error);
        if (status == OJ_OK && self->options.cancel != NULL &&
            __atomic_load_n(self->options.cancel, __ATOMIC_RELAXED))
            status = oj_fail(&error, OJ_ERR_CANCELLED, "interrupted");
    }
    if (status != OJ_OK &&
        atomic_compare_exchange_strong(&b->status, &expected, (int)status))
        b->error = error;
}

static void start_workers(struct batch *b)
{
    struct distance_index *self = b->self;
    int n_threads = self->options.n_threads;
    int64_t budget = self->options.max_batch_pairs;
    for (int t = 0; t < n_threads; t++)
    {
        struct worker *worker = &self->worker[t];
        oj_answers_clear(&worker->answers);
        oj_pair_scratch_start(&worker->scratch);
        worker->answers.max_entries = 0;
        if (budget > 0 && b->input->n_features > 1)
            worker->answers.max_entries =
                budget > n_threads ? budget / n_threads : 1;
    }
}

static oj_status join_batch(struct batch *b, struct oj_stats *stats,
                            struct oj_error *err)
{
    struct distance_index *self = b->self;
    int n_threads = self->options.n_threads;
    double start = oj_clock_seconds(), sorted;
    int64_t n, n_tasks;
    OJ_TRY(oj_features_build(&b->features, b->input,
                             self->relation.distance_to == OJ_TO_INTERIOR,
                             n_threads, err));
    OJ_TRY(oj_features_order(&b->features, n_threads, &self->order, err));
    sorted = oj_clock_seconds();
    n = self->order.n_points;
    /* few rows may be large ones: small tasks, then */
    b->rows_per_task = n / (16 * (int64_t)n_threads) + 1;
    if (b->rows_per_task > ROWS_PER_TASK)
        b->rows_per_task = ROWS_PER_TASK;
    n_tasks = (n + b->rows_per_task - 1) / b->rows_per_task;
    start_workers(b);
    oj_parallel_for(n_threads, n_tasks, join_rows, b);
    stats->sort_s += sorted - start;
    stats->refine_s += oj_clock_seconds() - sorted;
    for (int t = 0; t < n_threads; t++)
    {
        stats->n_candidates += self->worker[t].scratch.n_refined;
        self->worker[t].scratch.n_refined = 0;
    }
    if (atomic_load(&b->status) != OJ_OK && err != NULL)
        *err = b->error;
    return (oj_status)atomic_load(&b->status);
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct distance_index *self = unwrap(wrapped);
    struct batch b;
    struct oj_answers *answers;
    oj_status status;
    memset(&b, 0, sizeof b);
    b.self = self;
    b.input = input;
    atomic_init(&b.status, OJ_OK);
    OJ_TRY(oj_pair_filter_make(&self->relation, input, self->join_side,
                               &b.filter, err));
    status = join_batch(&b, stats, err);
    oj_features_free(&b.features);
    if (status != OJ_OK)
        return status;
    OJ_NEW(answers, self->options.n_threads, err);
    for (int t = 0; t < self->options.n_threads; t++)
        answers[t] = self->worker[t].answers;
    status = oj_answers_to_matches(answers, self->options.n_threads,
                                   input->n_features, &self->relation,
                                   self->tie_rank, out, err);
    oj_free(answers);
    return status;
}

const struct oj_cpu_family oj_cpu_distance = {
    "distances between features", takes, make_index, join, free_index};
