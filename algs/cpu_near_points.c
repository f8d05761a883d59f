/* Pairs of points within a distance: the join side in cells, and the input
 * points visited in an order that keeps neighbours together.
 *
 * Lists in the order of the rows take two visits: one counts the pairs of each
 * row, one writes them where the counts say.  Scattered lists take one, in
 * which every thread writes from the front of a block of its own; how many
 * entries there will be is estimated from a few points, and when it was too few
 * the two visits are made after all. */
#include "../flatten/oj_array.h"
#include "cpu_family.h"
#include "cpu_near_marks.h"
#include "cpu_near_rows.h"
#include "cpu_order.h"
#include "cpu_threads.h"
#include "oj_clock.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define POINTS_PER_TASK 4096

/* Points that a thread looks at between two looks at the cancel flag. */
#define LOOK_AFTER (1 << 22)

/* How many points ahead the places of their answers are fetched. */
#define AHEAD 24

/* Batches with fewer points are visited twice in any case. */
#define SCATTER_FROM 65536

/* One task of so many is counted for the estimate. */
#define ESTIMATE_ONE_OF 32

/* Entries that a thread takes at once for scattered lists. */
#define BLOCK_ENTRIES 65536

struct worker
{
    struct oj_near_hood hood;
    int32_t *id, *sort_id; /* partners of a point */
    double *d2, *sort_d2;
    int64_t cap_id, cap_sort_id, cap_d2, cap_sort_d2;
    int64_t block_at, block_end; /* entries of its own that are free */
    int64_t n_pairs, n_matched, n_seen, n_unlooked;
};

/* What a visit of the points is for. */
enum visit
{
    ESTIMATE, /* counts the pairs of some */
    COUNT,    /* counts the pairs of each */
    FILL,     /* writes them where the counts say */
    SCATTER   /* writes them anywhere */
};

struct near_index
{
    struct oj_relation relation;
    struct oj_options options;
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    const struct oj_near_kernel *kernel;
    struct oj_near_grid grid;
    int32_t *feature_of; /* [features] by tie rank, or NULL: the ordinal */
    struct oj_near_fids fids;
    struct worker *worker; /* [n_threads] */
    struct oj_order order; /* of the batch; its memory is used again */
    struct oj_ordered_point **sorting; /* [n_threads] */
    int64_t cap_sorting;
    struct oj_index *general; /* data that cells do not serve: by the family
                                 that measures anything */
};

/* A batch on its way. */
struct batch
{
    struct near_index *self;
    const struct oj_flat *input;
    struct oj_matches *out;
    struct oj_pair_filter filter;
    struct oj_near_marks marks;
    int is_join_side; /* the input is the join side: visited in its order */
    int asks_filter;  /* pairs one by one */
    enum visit visit;
    struct oj_near_query query; /* what all points ask alike */
    atomic_llong n_taken;       /* entries in blocks */
    int64_t n_entries;          /* that there is room for */
    atomic_int is_full;         /* the room was not enough */
    atomic_int status;
    struct oj_error error; /* written by the thread that sets status */
};

static struct near_index *unwrap(struct oj_index *index)
{
    return (struct near_index *)(void *)index;
}

/* --- index ---------------------------------------------------------------- */

static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    return relation->op == OJ_OP_DWITHIN &&
           relation->metric == OJ_METRIC_PLANAR &&
           relation->max_distance < INFINITY &&
           join_side->max_distance == NULL && oj_flat_is_points(join_side) &&
           (input == NULL ||
            (oj_flat_is_points(input) && input->max_distance == NULL));
}

static void free_index(struct oj_index *wrapped)
{
    struct near_index *self = unwrap(wrapped);
    if (self == NULL)
        return;
    if (self->general != NULL)
        oj_cpu_distance.free_index(self->general);
    for (int t = 0; t < self->options.n_threads; t++)
    {
        if (self->worker != NULL)
        {
            oj_free(self->worker[t].id);
            oj_free(self->worker[t].d2);
            oj_free(self->worker[t].sort_id);
            oj_free(self->worker[t].sort_d2);
            oj_near_hood_free(&self->worker[t].hood);
        }
        if (self->sorting != NULL)
            oj_free(self->sorting[t]);
    }
    oj_free(self->worker);
    oj_free(self->sorting);
    oj_free(self->feature_of);
    oj_near_fids_free(&self->fids);
    oj_order_free(&self->order);
    oj_near_grid_free(&self->grid);
    oj_free(self);
}

static oj_status make_features_of(struct near_index *self, struct oj_error *err)
{
    int64_t n = self->join_side->n_features;
    if (self->tie_rank == NULL)
        return OJ_OK;
    OJ_NEW(self->feature_of, n, err);
    for (int64_t f = 0; f < n; f++)
        self->feature_of[self->tie_rank[f]] = (int32_t)f;
    return OJ_OK;
}

static oj_status build_index(struct near_index *self, struct oj_stats *stats,
                             struct oj_error *err)
{
    int n_threads = self->options.n_threads;
    double start = oj_clock_seconds();
    self->worker = oj_calloc(n_threads, sizeof *self->worker);
    self->sorting = oj_calloc(n_threads, sizeof *self->sorting);
    if (self->worker == NULL || self->sorting == NULL)
        return oj_fail_nomem(err, n_threads, sizeof *self->worker);
    OJ_TRY(oj_near_grid_build(&self->grid, self->join_side, self->tie_rank,
                              self->relation.max_distance, n_threads, err));
    if (self->grid.is_uneven)
    {
        oj_near_grid_free(&self->grid);
        return oj_cpu_distance.index(self->join_side, self->tie_rank,
                                     &self->relation, &self->options,
                                     &self->general, stats, err);
    }
    OJ_TRY(make_features_of(self, err));
    OJ_TRY(oj_near_fids_make(&self->relation, self->join_side, self->feature_of,
                             &self->fids, err));
    stats->index_s += oj_clock_seconds() - start;
    stats->index_bytes += oj_near_grid_bytes(&self->grid);
    return OJ_OK;
}

static oj_status
make_index(const struct oj_flat *join_side, const int32_t *tie_rank,
           const struct oj_relation *relation, const struct oj_options *options,
           struct oj_index **out, struct oj_stats *stats, struct oj_error *err)
{
    struct near_index *self = oj_calloc(1, sizeof *self);
    oj_status status;
    if (self == NULL)
        return oj_fail_nomem(err, 1, sizeof *self);
    self->relation = *relation;
    self->options = *options;
    self->join_side = join_side;
    self->tie_rank = tie_rank;
    self->kernel = oj_near_kernel();
    status = build_index(self, stats, err);
    if (status != OJ_OK)
    {
        free_index((struct oj_index *)(void *)self);
        return status;
    }
    *out = (struct oj_index *)(void *)self;
    return OJ_OK;
}

/* --- one point ------------------------------------------------------------ */

static oj_status reserve_partners(struct worker *worker, struct oj_error *err)
{
    /* what is read and written beyond the last partner */
    int64_t n = worker->hood.n + OJ_NEAR_SORTED + OJ_NEAR_LANES;
    if (n <= worker->cap_sort_d2)
        return OJ_OK;
    OJ_TRY(
        oj_reserve(&worker->id, 0, n, &worker->cap_id, sizeof(int32_t), err));
    OJ_TRY(oj_reserve(&worker->d2, 0, n, &worker->cap_d2, sizeof(double), err));
    OJ_TRY(oj_reserve(&worker->sort_id, 0, n, &worker->cap_sort_id,
                      sizeof(int32_t), err));
    return oj_reserve(&worker->sort_d2, 0, n, &worker->cap_sort_d2,
                      sizeof(double), err);
}

static int32_t feature_of(const struct near_index *self, int32_t id)
{
    return self->feature_of != NULL ? self->feature_of[id] : id;
}

/* The partners of a point in id and d2: those that count, once the filter has
 * been asked. Returns how many. */
static int64_t partners(const struct batch *b, const struct worker *worker,
                        const struct oj_near_query *q, int64_t row, int32_t *id,
                        double *d2)
{
    const struct near_index *self = b->self;
    int64_t n = self->kernel->collect(&worker->hood, q, id, d2), kept = 0;
    if (!b->asks_filter)
        return n;
    for (int64_t i = 0; i < n; i++)
    {
        int32_t of = id[i];
        id[kept] = of;
        d2[kept] = d2[i];
        kept += oj_pair_may_count(&b->filter, row, feature_of(self, of));
    }
    return kept;
}

static oj_status count_pairs(const struct batch *b, struct worker *worker,
                             const struct oj_near_query *q, int64_t row,
                             struct oj_error *err)
{
    int64_t n;
    if (b->asks_filter)
    {
        OJ_TRY(reserve_partners(worker, err));
        n = partners(b, worker, q, row, worker->id, worker->d2);
    }
    else
        n = b->self->kernel->count(&worker->hood, q);
    if (b->visit == COUNT)
        b->out->offset[row + 1] = n;
    worker->n_pairs += n;
    return OJ_OK;
}

static oj_status fill_pairs(const struct batch *b, struct worker *worker,
                            const struct oj_near_query *q, int64_t row,
                            struct oj_error *err)
{
    const struct near_index *self = b->self;
    int32_t *join_row = b->out->join_row + b->out->offset[row];
    int64_t n;
    OJ_TRY(reserve_partners(worker, err));
    n = partners(b, worker, q, row, worker->id, worker->d2);
    if (!self->relation.any_order)
        oj_near_sort(n, worker->id, worker->d2, worker->sort_id,
                     worker->sort_d2);
    for (int64_t i = 0; i < n; i++)
        join_row[i] = feature_of(self, worker->id[i]);
    self->kernel->roots(n, worker->d2, b->out->measure + b->out->offset[row]);
    return OJ_OK;
}

/* Room for n entries of worker's own; 0 when there is none left. */
static int take_block(struct batch *b, struct worker *worker, int64_t n)
{
    long long taken = worker->block_end;
    int64_t size = n > BLOCK_ENTRIES ? n : BLOCK_ENTRIES;
    if (worker->block_at + n <= worker->block_end)
        return 1;
    /* the last block of all can be made longer, and leaves no gap */
    if (!atomic_compare_exchange_strong(&b->n_taken, &taken,
                                        worker->block_end + size))
        worker->block_at = worker->block_end =
            (int64_t)atomic_fetch_add(&b->n_taken, size);
    worker->block_end += size;
    if (worker->block_end <= b->n_entries)
        return 1;
    worker->block_at = worker->block_end = -1;
    atomic_store(&b->is_full, 1);
    return 0;
}

static void scatter_pairs(struct batch *b, struct worker *worker,
                          const struct oj_near_query *q, int64_t row)
{
    const struct near_index *self = b->self;
    struct oj_matches *out = b->out;
    int64_t n, at;
    if (!take_block(b, worker, worker->hood.n + OJ_NEAR_LANES))
        return;
    at = worker->block_at;
    n = partners(b, worker, q, row, out->join_row + at, out->measure + at);
    if (self->feature_of != NULL)
    {
        for (int64_t i = at; i < at + n; i++)
            out->join_row[i] = self->feature_of[out->join_row[i]];
    }
    self->kernel->roots(n, out->measure + at, out->measure + at);
    out->offset[2 * row] = at;
    out->offset[2 * row + 1] = worker->block_at = at + n;
    worker->n_pairs += n;
    worker->n_matched += n > 0;
}

/* Now and then: too many pairs, or cancelled. */
static oj_status look(const struct batch *b, struct worker *worker,
                      struct oj_error *err)
{
    const struct oj_options *options = &b->self->options;
    worker->n_seen += worker->hood.n;
    worker->n_unlooked += worker->hood.n + OJ_NEAR_LANES;
    if (worker->n_unlooked < LOOK_AFTER)
        return OJ_OK;
    worker->n_unlooked = 0;
    if (options->cancel != NULL &&
        __atomic_load_n(options->cancel, __ATOMIC_RELAXED))
        return oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
    if (options->max_batch_pairs > 0 && b->input->n_features > 1 &&
        worker->n_pairs > options->max_batch_pairs && b->visit != FILL)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the batch has more pairs than fit");
    return OJ_OK;
}

static oj_status visit_point(struct batch *b, struct worker *worker, double x,
                             double y, int64_t row, int32_t id,
                             struct oj_error *err)
{
    struct oj_near_query q = b->query;
    q.x = x;
    q.y = y;
    oj_near_marks_apply(&b->marks, row, id, &q);
    OJ_TRY(oj_near_hood_move(&worker->hood, &b->self->grid, x, y, err));
    OJ_TRY(look(b, worker, err));
    if (b->visit == FILL)
        return fill_pairs(b, worker, &q, row, err);
    if (b->visit != SCATTER)
        return count_pairs(b, worker, &q, row, err);
    scatter_pairs(b, worker, &q, row);
    return OJ_OK;
}

/* --- visits --------------------------------------------------------------- */

static int64_t n_visits(const struct batch *b)
{
    return b->is_join_side ? b->self->grid.n : b->self->order.n_points;
}

static int64_t row_at(const struct batch *b, int64_t i)
{
    if (b->is_join_side)
        return feature_of(b->self, b->self->grid.id[i]);
    return b->self->order.point[i].index;
}

/* Answers lie far apart: has the places of the rows to come fetched. */
static void fetch(const struct batch *b, int64_t i)
{
    const struct oj_matches *out = b->out;
    int64_t later = row_at(b, i + AHEAD);
    if (b->visit == SCATTER)
        __builtin_prefetch(&out->offset[2 * later], 1);
    else if (b->visit != ESTIMATE)
        __builtin_prefetch(&out->offset[later + 1], 1);
    if (b->visit == FILL)
    {
        int64_t at = out->offset[row_at(b, i + AHEAD / 2)];
        __builtin_prefetch(out->join_row + at, 1);
        __builtin_prefetch(out->measure + at, 1);
        __builtin_prefetch(out->measure + at + 8, 1);
    }
    if (b->marks.mark != NULL)
        __builtin_prefetch(&b->marks.mark[later]);
}

static void visit_points(int64_t task, int thread, void *user)
{
    struct batch *b = user;
    const struct near_index *self = b->self;
    int64_t first =
        task * POINTS_PER_TASK * (b->visit == ESTIMATE ? ESTIMATE_ONE_OF : 1);
    int64_t n = n_visits(b), end = first + POINTS_PER_TASK;
    struct oj_error error;
    oj_status status = OJ_OK;
    int expected = OJ_OK;
    if (atomic_load(&b->status) != OJ_OK || atomic_load(&b->is_full))
        return;
    end = end < n ? end : n;
    for (int64_t i = first; i < end && status == OJ_OK; i++)
    {
        double x, y;
        if (i + AHEAD < n)
            fetch(b, i);
        x = b->is_join_side ? self->grid.x[i] : self->order.point[i].x;
        y = b->is_join_side ? self->grid.y[i] : self->order.point[i].y;
        status = visit_point(b, &self->worker[thread], x, y, row_at(b, i),
                             b->is_join_side ? self->grid.id[i] : 0, &error);
    }
    if (status != OJ_OK &&
        atomic_compare_exchange_strong(&b->status, &expected, (int)status))
        b->error = error;
}

static oj_status visit(struct batch *b, enum visit what, struct oj_error *err)
{
    struct near_index *self = b->self;
    int64_t step =
        POINTS_PER_TASK * (what == ESTIMATE ? (int64_t)ESTIMATE_ONE_OF : 1);
    b->visit = what;
    for (int t = 0; t < self->options.n_threads; t++)
    {
        struct worker *worker = &self->worker[t];
        worker->n_pairs = worker->n_matched = 0;
        worker->block_at = worker->block_end = -1;
        worker->n_unlooked = LOOK_AFTER;
    }
    oj_parallel_for(self->options.n_threads, (n_visits(b) + step - 1) / step,
                    visit_points, b);
    if (atomic_load(&b->status) != OJ_OK && err != NULL)
        *err = b->error;
    return (oj_status)atomic_load(&b->status);
}

static void sort_bucket(int64_t bucket, int thread, void *user)
{
    struct near_index *self = user;
    oj_order_sort_bucket(&self->order, bucket, self->sorting[thread]);
}

static oj_status order_input(const struct batch *b, struct oj_error *err)
{
    struct near_index *self = b->self;
    int n_threads = self->options.n_threads;
    int64_t n;
    OJ_TRY(oj_order_build(&self->order, n_threads, b->input->n_features,
                          b->input->x, b->input->y, err));
    n = self->order.largest_bucket;
    for (int t = 0; n > self->cap_sorting && t < n_threads; t++)
    {
        oj_free(self->sorting[t]);
        self->sorting[t] = oj_malloc(n, sizeof **self->sorting);
        if (self->sorting[t] == NULL)
        {
            self->cap_sorting = 0;
            return oj_fail_nomem(err, n, sizeof **self->sorting);
        }
    }
    self->cap_sorting = n > self->cap_sorting ? n : self->cap_sorting;
    oj_parallel_for(n_threads, self->order.n_buckets, sort_bucket, self);
    return OJ_OK;
}

static oj_status check_budget(const struct batch *b, int64_t n,
                              struct oj_error *err)
{
    int64_t budget = b->self->options.max_batch_pairs;
    if (budget > 0 && n > budget && b->input->n_features > 1)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the batch has more pairs than fit");
    return OJ_OK;
}

/* Counts become offsets, with room for all pairs. */
static oj_status place_rows(const struct batch *b, struct oj_error *err)
{
    struct oj_matches *out = b->out;
    int64_t n_rows = b->input->n_features, n_matched = 0, n = 0;
    out->offset[0] = 0;
    for (int64_t row = 0; row < n_rows; row++)
    {
        n_matched += out->offset[row + 1] > 0;
        n += out->offset[row + 1];
        out->offset[row + 1] = n;
    }
    OJ_TRY(check_budget(b, n, err));
    OJ_TRY(oj_matches_reserve(out, n_rows, n, 1, err));
    out->n_pairs = n;
    out->n_matched = n_matched;
    return OJ_OK;
}

static oj_status visit_twice(struct batch *b, struct oj_error *err)
{
    int64_t n_rows = b->input->n_features;
    OJ_TRY(oj_matches_reserve(b->out, n_rows, 0, 1, err));
    memset(b->out->offset, 0, (size_t)(n_rows + 1) * sizeof *b->out->offset);
    OJ_TRY(visit(b, COUNT, err));
    OJ_TRY(place_rows(b, err));
    return visit(b, FILL, err);
}

/* Lists in the order of the visit; sets b->is_full when they did not fit. */
static oj_status visit_once(struct batch *b, struct oj_error *err)
{
    struct near_index *self = b->self;
    int64_t n_rows = b->input->n_features, n = 0;
    int n_threads = self->options.n_threads;
    OJ_TRY(visit(b, ESTIMATE, err));
    for (int t = 0; t < n_threads; t++)
        n += self->worker[t].n_pairs;
    /* memory that is not used costs nothing but its addresses */
    n = n * ESTIMATE_ONE_OF + n * (ESTIMATE_ONE_OF / 4) +
        2 * BLOCK_ENTRIES * (int64_t)n_threads;
    OJ_TRY(oj_matches_reserve_scattered(b->out, n_rows, n, err));
    b->n_entries = n;
    memset(b->out->offset, 0, (size_t)(2 * n_rows) * sizeof *b->out->offset);
    OJ_TRY(visit(b, SCATTER, err));
    if (atomic_load(&b->is_full))
        return OJ_OK;
    b->out->n_entries = (int64_t)atomic_load(&b->n_taken);
    for (int t = 0; t < n_threads; t++)
    {
        b->out->n_pairs += self->worker[t].n_pairs;
        b->out->n_matched += self->worker[t].n_matched;
    }
    return check_budget(b, b->out->n_pairs, err);
}

static void start_batch(struct batch *b)
{
    struct near_index *self = b->self;
    const struct oj_flat *input = b->input, *join_side = self->join_side;
    for (int t = 0; t < self->options.n_threads; t++)
        self->worker[t].n_seen = 0;
    b->is_join_side = input->x == join_side->x && input->y == join_side->y &&
                      input->n_features == join_side->n_features;
    b->query.most2 = oj_near_most2(self->relation.max_distance);
    b->query.least2 = oj_near_least2(self->relation.min_distance);
    b->query.from = 0;
    b->query.end = INT32_MAX;
    b->query.except = -1;
}

static oj_status join_batch(struct batch *b, struct oj_stats *stats,
                            struct oj_error *err)
{
    struct near_index *self = b->self;
    double start = oj_clock_seconds(), sorted;
    OJ_TRY(oj_pair_filter_make(&self->relation, b->input, self->join_side,
                               &b->filter, err));
    OJ_TRY(oj_near_marks_make(&b->filter, &self->fids, b->is_join_side,
                              &b->marks, &b->asks_filter, err));
    if (!b->is_join_side)
        OJ_TRY(order_input(b, err));
    sorted = oj_clock_seconds();
    stats->sort_s += sorted - start;
    if (self->relation.any_order && n_visits(b) >= SCATTER_FROM)
        OJ_TRY(visit_once(b, err));
    else
        atomic_store(&b->is_full, 1);
    if (atomic_exchange(&b->is_full, 0))
        OJ_TRY(visit_twice(b, err));
    stats->refine_s += oj_clock_seconds() - sorted;
    for (int t = 0; t < self->options.n_threads; t++)
        stats->n_candidates += self->worker[t].n_seen;
    return OJ_OK;
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct near_index *self = unwrap(wrapped);
    struct batch b;
    oj_status status;
    if (self->general != NULL)
        return oj_cpu_distance.join(self->general, input, out, stats, err);
    memset(&b, 0, sizeof b);
    b.self = self;
    b.input = input;
    b.out = out;
    atomic_init(&b.status, OJ_OK);
    atomic_init(&b.n_taken, 0);
    atomic_init(&b.is_full, 0);
    start_batch(&b);
    status = join_batch(&b, stats, err);
    oj_near_marks_free(&b.marks);
    return status;
}

const struct oj_cpu_family oj_cpu_near_points = {"points near points", takes,
                                                 make_index, join, free_index};
