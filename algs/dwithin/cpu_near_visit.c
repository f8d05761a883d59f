#include "cpu_near_visit.h"

#include "../../flatten/base/oj_array.h"
#include "../base/cpu_threads.h"

#define POINTS_PER_TASK 4096

/* Points that a thread looks at between two looks at the cancel flag. */
#define LOOK_AFTER (1 << 22)

/* How many points ahead the places of their answers are fetched. */
#define AHEAD 24

/* Squares that wait for their roots: within the nearest cache. */
#define SQUARES_AT_ONCE 2048

/* --- one point ------------------------------------------------------------ */

static oj_status reserve_partners(struct oj_near_worker *worker,
                                  struct oj_error *err)
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

static int32_t feature_of(const struct oj_near_index *self, int32_t id)
{
    return self->feature_of != NULL ? self->feature_of[id] : id;
}

/* The partners of a point in id and d2: those that count, once the filter has
 * been asked. Returns how many. */
static int64_t partners(const struct oj_near_batch *b,
                        const struct oj_near_worker *worker,
                        const struct oj_near_query *q, int64_t row, int32_t *id,
                        double *d2)
{
    const struct oj_near_index *self = b->self;
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

static oj_status count_pairs(const struct oj_near_batch *b,
                             struct oj_near_worker *worker,
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
    if (b->visit == OJ_NEAR_COUNT)
        b->out->offset[row + 1] = n;
    worker->n_pairs += n;
    return OJ_OK;
}

static oj_status fill_pairs(const struct oj_near_batch *b,
                            struct oj_near_worker *worker,
                            const struct oj_near_query *q, int64_t row,
                            struct oj_error *err)
{
    const struct oj_near_index *self = b->self;
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

void oj_near_take_roots(const struct oj_near_batch *b,
                        struct oj_near_worker *worker)
{
    double *measure = b->out->measure + worker->squares_from;
    b->self->kernel->roots(worker->block_at - worker->squares_from, measure,
                           measure);
    worker->squares_from = worker->block_at;
}

/* Room for n entries of worker's own; 0 when there is none left. */
static int take_block(struct oj_near_batch *b, struct oj_near_worker *worker,
                      int64_t n)
{
    long long taken = worker->block_end;
    int64_t size = n > OJ_NEAR_BLOCK ? n : OJ_NEAR_BLOCK;
    if (worker->block_at + n <= worker->block_end)
        return 1;
    /* the last block of all can be made longer, and leaves no gap */
    if (!atomic_compare_exchange_strong(&b->n_taken, &taken,
                                        worker->block_end + size))
    {
        if (worker->block_end > 0)
            oj_near_take_roots(b, worker);
        worker->block_at = worker->block_end = worker->squares_from =
            (int64_t)atomic_fetch_add(&b->n_taken, size);
    }
    worker->block_end += size;
    if (worker->block_end <= b->n_entries)
        return 1;
    worker->block_at = worker->block_end = worker->squares_from = -1;
    atomic_store(&b->is_full, 1);
    return 0;
}

static void scatter_pairs(struct oj_near_batch *b,
                          struct oj_near_worker *worker,
                          const struct oj_near_query *q, int64_t row)
{
    const struct oj_near_index *self = b->self;
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
    oj_list_places_put(&b->self->places, (int)(worker - self->worker), row, at,
                       n);
    worker->block_at = at + n;
    if (worker->block_at - worker->squares_from >= SQUARES_AT_ONCE)
        oj_near_take_roots(b, worker);
    worker->n_pairs += n;
    worker->n_matched += n > 0;
}

/* Now and then: too many pairs, or cancelled. */
static oj_status look(const struct oj_near_batch *b,
                      struct oj_near_worker *worker, struct oj_error *err)
{
    const struct oj_options *options = &b->self->options;
    worker->n_seen += worker->hood.n;
    worker->n_unlooked += worker->hood.n + OJ_NEAR_LANES;
    if (worker->n_unlooked < LOOK_AFTER)
        return OJ_OK;
    worker->n_unlooked = 0;
    OJ_TRY(oj_check_cancel(options->cancel, err));
    if (options->max_batch_pairs > 0 && b->input->n_features > 1 &&
        worker->n_pairs > options->max_batch_pairs && b->visit != OJ_NEAR_FILL)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the batch has more pairs than fit");
    return OJ_OK;
}

static oj_status visit_point(struct oj_near_batch *b,
                             struct oj_near_worker *worker, double x, double y,
                             int64_t row, int32_t id, struct oj_error *err)
{
    struct oj_near_query q = b->query;
    q.x = x;
    q.y = y;
    oj_near_marks_apply(&b->marks, row, id, &q);
    OJ_TRY(oj_near_hood_move(&worker->hood, &b->self->grid, x, y, err));
    OJ_TRY(look(b, worker, err));
    if (b->visit == OJ_NEAR_FILL)
        return fill_pairs(b, worker, &q, row, err);
    if (b->visit != OJ_NEAR_SCATTER)
        return count_pairs(b, worker, &q, row, err);
    scatter_pairs(b, worker, &q, row);
    return OJ_OK;
}

/* --- visits --------------------------------------------------------------- */

static int64_t row_at(const struct oj_near_batch *b, int64_t i)
{
    if (b->is_join_side)
        return feature_of(b->self, b->self->grid.id[i]);
    return b->self->order.point[i].index;
}

/* Answers lie far apart: has the places of the rows to come fetched. */
static void fetch(const struct oj_near_batch *b, int64_t i)
{
    const struct oj_matches *out = b->out;
    int64_t later = row_at(b, i + AHEAD);
    if (b->visit == OJ_NEAR_COUNT || b->visit == OJ_NEAR_FILL)
        __builtin_prefetch(&out->offset[later + 1], 1);
    if (b->visit == OJ_NEAR_FILL)
    {
        int64_t at = out->offset[row_at(b, i + AHEAD / 2)];
        __builtin_prefetch(out->join_row + at, 1);
        __builtin_prefetch(out->measure + at, 1);
        __builtin_prefetch(out->measure + at + 8, 1);
    }
    if (b->marks.mark != NULL)
        __builtin_prefetch(&b->marks.mark[later]);
}

static oj_status visit_points(int64_t task, int thread, void *user,
                              struct oj_error *err)
{
    struct oj_near_batch *b = user;
    const struct oj_near_index *self = b->self;
    int64_t first = task * POINTS_PER_TASK *
                    (b->visit == OJ_NEAR_ESTIMATE ? OJ_NEAR_ONE_OF : 1);
    int64_t n = oj_near_n_visits(b), end = first + POINTS_PER_TASK;
    if (atomic_load(&b->is_full))
        return OJ_OK;
    end = end < n ? end : n;
    for (int64_t i = first; i < end; i++)
    {
        double x, y;
        if (i + AHEAD < n)
            fetch(b, i);
        x = b->is_join_side ? self->grid.x[i] : self->order.point[i].x;
        y = b->is_join_side ? self->grid.y[i] : self->order.point[i].y;
        OJ_TRY(visit_point(b, &self->worker[thread], x, y, row_at(b, i),
                           b->is_join_side ? self->grid.id[i] : 0, err));
    }
    return OJ_OK;
}

oj_status oj_near_visit(struct oj_near_batch *b, enum oj_near_visit what,
                        struct oj_error *err)
{
    struct oj_near_index *self = b->self;
    int64_t step = POINTS_PER_TASK *
                   (what == OJ_NEAR_ESTIMATE ? (int64_t)OJ_NEAR_ONE_OF : 1);
    b->visit = what;
    for (int t = 0; t < self->options.n_threads; t++)
    {
        struct oj_near_worker *worker = &self->worker[t];
        worker->n_pairs = worker->n_matched = 0;
        worker->block_at = worker->block_end = worker->squares_from = -1;
        worker->n_unlooked = LOOK_AFTER;
    }
    return oj_parallel_try(self->options.n_threads,
                           (oj_near_n_visits(b) + step - 1) / step, 1,
                           visit_points, b, err);
}
