#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../base/cpu_threads.h"
#include "../relation/oj_engine.h"
#include "../relation/oj_point_rule.h"
#include "cpu_point_block.h"

#include <stdatomic.h>
#include <string.h>

#define ROWS_PER_TASK 8192

/* Room is made for a pair a row beforehand, for so many rows. */
#define MOST_FORESEEN (1 << 20)

struct points_in_polygons_index
{
    struct oj_relation relation;
    struct oj_options options;
    const int32_t *tie_rank;
    const struct oj_flat *flat;
    struct oj_ring_cells cells;
    struct oj_known_cells known;
    unsigned accepted;              /* bits 1 << enum oj_location */
    _Atomic uint8_t *solidity;      /* [features], see cpu_point_block.h */
    struct oj_point_worker *worker; /* [n_threads] */
    struct task *task;              /* of the batch; its memory is used again */
    int64_t cap_tasks;
};

/* Where the pairs of a task are. */
struct task
{
    int64_t first, n; /* in feature of the worker */
    int64_t assumed;  /* pairs before it, as its offsets have it */
    int64_t before;   /* pairs before it, in truth */
    int64_t n_shared; /* pairs in shared lists */
    int32_t worker;
    int32_t n_matched;
};

/* A batch on its way. */
struct points_in_polygons_batch
{
    struct points_in_polygons_index *self;
    struct oj_point_query query;
    const struct oj_flat *input;
    struct oj_pair_filter filter;
    struct oj_matches *out;
    atomic_llong n_pairs;
};

static struct points_in_polygons_index *unwrap(struct oj_index *index)
{
    return (struct points_in_polygons_index *)(void *)index;
}

/* --- the join side -------------------------------------------------------- */

static void free_index(struct oj_index *wrapped)
{
    struct points_in_polygons_index *self = unwrap(wrapped);
    if (self == NULL)
        return;
    for (int t = 0; self->worker != NULL && t < self->options.n_threads; t++)
        oj_point_worker_free(&self->worker[t]);
    oj_free(self->worker);
    oj_free((void *)self->solidity);
    oj_free(self->task);
    oj_known_cells_free(&self->known);
    oj_ring_cells_free(&self->cells);
    oj_free(self);
}

/* 1 when inside and on the boundary come to the same. */
static int accepts_alike(unsigned accepted)
{
    return (accepted >> OJ_INSIDE & 1) == (accepted >> OJ_ON_BOUNDARY & 1);
}

static oj_status make_index(const struct oj_index_args *args,
                            struct oj_index **out, struct oj_stats *stats,
                            struct oj_error *err)
{
    const struct oj_flat *join_side = args->join_side;
    const struct oj_options *options = &args->options;
    struct points_in_polygons_index *self = oj_calloc(1, sizeof *self);
    double start = oj_clock_seconds();
    oj_status status;
    if (self == NULL)
        return oj_fail_nomem(err, 1, sizeof *self);
    self->relation = args->relation;
    self->options = args->options;
    self->tie_rank = args->tie_rank;
    self->flat = join_side;
    self->accepted = oj_point_locations(args->relation.op);
    self->worker = oj_calloc(options->n_threads, sizeof *self->worker);
    if (self->worker == NULL)
        status = oj_fail_nomem(err, options->n_threads, sizeof *self->worker);
    else
        status = oj_ring_cells_build(&self->cells, join_side,
                                     options->n_threads, err);
    if (status == OJ_OK && !accepts_alike(self->accepted))
    {
        self->solidity = oj_calloc(join_side->n_features, 1);
        if (self->solidity == NULL)
            status = oj_fail_nomem(err, join_side->n_features, 1);
    }
    if (status == OJ_OK && args->relation.share_lists &&
        args->relation.any_order)
        status =
            oj_known_cells_build(&self->known, &self->cells, options->n_input,
                                 (int)(self->accepted >> OJ_INSIDE & 1),
                                 options->n_threads, options->cancel, err);
    if (status != OJ_OK)
    {
        free_index((struct oj_index *)(void *)self);
        return status;
    }
    stats->index_s += oj_clock_seconds() - start;
    stats->index_bytes +=
        oj_ring_cells_bytes(&self->cells) + oj_known_cells_bytes(&self->known);
    *out = (struct oj_index *)(void *)self;
    return OJ_OK;
}

/* --- rows ----------------------------------------------------------------- */

/* What shared lists add to a block's rows. */
static void count_shared(const struct points_in_polygons_batch *b,
                         const struct oj_point_worker *w, int64_t row,
                         int64_t n, struct task *task)
{
    const struct oj_shared_lists *shared = b->out->shared;
    const int32_t *list = b->out->list + row;
    int64_t n_shared = 0, n_more = 0;
    for (int64_t i = 0; i < n; i++)
    {
        const int64_t *offset = shared->offset + list[i];
        n_shared += offset[1] - offset[0];
        n_more += w->n_pairs_of[i] == 0 && offset[1] > offset[0];
    }
    task->n_shared += n_shared;
    task->n_matched += (int32_t)n_more;
}

/* Offsets of a block's rows, and their order. */
static oj_status finish_rows(const struct points_in_polygons_index *self,
                             struct oj_point_worker *w, int64_t n,
                             int64_t before, int64_t first_pair,
                             int64_t *offset, struct task *task,
                             struct oj_error *err)
{
    int32_t *feature = w->feature != NULL ? w->feature + first_pair : NULL;
    int64_t total = 0, n_matched = 0;
    int is_sorting = !self->relation.any_order;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t n_pairs = w->n_pairs_of[i];
        if (n_pairs > 1 && is_sorting)
            OJ_TRY(oj_row_order_sort(&w->order, n_pairs, self->tie_rank,
                                     feature + total, NULL, err));
        total += n_pairs;
        n_matched += n_pairs > 0;
        offset[i] = before + total;
    }
    task->n_matched += (int32_t)n_matched;
    return OJ_OK;
}

static oj_status check_bound(struct points_in_polygons_batch *b, int64_t n_more,
                             struct oj_error *err)
{
    int64_t most = b->self->options.max_batch_pairs;
    if (most <= 0 || b->input->n_features < 2 ||
        atomic_fetch_add(&b->n_pairs, n_more) + n_more <= most)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                   "the batch has more pairs than fit");
}

static oj_status join_rows(struct points_in_polygons_batch *b,
                           struct task *task, struct oj_point_worker *w,
                           int64_t row, int64_t end, struct oj_error *err)
{
    double start = b->self->options.timings ? oj_clock_seconds() : 0.0;
    for (; row < end; row += OJ_POINT_BLOCK)
    {
        int64_t n = end - row < OJ_POINT_BLOCK ? end - row : OJ_POINT_BLOCK;
        int64_t first = w->n_pairs;
        OJ_TRY(oj_point_block_join(&b->query, w, row, n, err));
        OJ_TRY(finish_rows(b->self, w, n, task->assumed + first - task->first,
                           first, b->out->offset + row + 1, task, err));
        if (b->query.known != NULL)
            count_shared(b, w, row, n, task);
        OJ_TRY(check_bound(b, w->n_pairs - first, err));
    }
    task->n = w->n_pairs - task->first;
    if (b->self->options.timings)
        w->filter_s += oj_clock_seconds() - start; /* less refine_s, later */
    return OJ_OK;
}

static oj_status join_task(int64_t i, int thread, void *user,
                           struct oj_error *err)
{
    struct points_in_polygons_batch *b = user;
    struct oj_point_worker *w = &b->self->worker[thread];
    struct task *task = &b->self->task[i];
    int64_t n_rows = b->input->n_features, row = i * ROWS_PER_TASK;
    int64_t end = row + ROWS_PER_TASK < n_rows ? row + ROWS_PER_TASK : n_rows;
    memset(task, 0, sizeof *task);
    task->first = w->n_pairs;
    task->worker = thread;
    /* one thread takes the tasks in their order */
    task->assumed = b->self->options.n_threads == 1 ? task->first : 0;
    return join_rows(b, task, w, row, end, err);
}

/* Brings a task's pairs to their place. */
static void place_task(int64_t i, int thread, void *user)
{
    struct points_in_polygons_batch *b = user;
    const struct task *task = &b->self->task[i];
    const struct oj_point_worker *w = &b->self->worker[task->worker];
    struct oj_matches *out = b->out;
    int64_t n_rows = b->input->n_features, row = i * ROWS_PER_TASK;
    int64_t end = row + ROWS_PER_TASK < n_rows ? row + ROWS_PER_TASK : n_rows;
    int64_t more = task->before - task->assumed;
    (void)thread;
    for (; more != 0 && row < end; row++)
        out->offset[row + 1] += more;
    if (task->n == 0)
        return;
    memcpy(out->join_row + task->before, w->feature + task->first,
           (size_t)task->n * sizeof *out->join_row);
    for (int64_t p = 0; p < task->n; p++)
        out->measure[task->before + p] = NAN;
}

static void sum_stats(struct points_in_polygons_index *self, double seconds,
                      struct oj_stats *stats)
{
    int n_threads = self->options.n_threads;
    for (int t = 0; t < n_threads; t++)
    {
        struct oj_point_worker *w = &self->worker[t];
        stats->n_candidates += w->n_refined;
        /* shares of the threads' time, as wall seconds */
        stats->filter_s += (w->filter_s - w->refine_s) / n_threads;
        stats->refine_s += w->refine_s / n_threads;
        w->n_refined = 0;
        w->filter_s = w->refine_s = 0.0;
    }
    if (!self->options.timings)
        stats->refine_s += seconds;
}

static oj_status share_lists(struct points_in_polygons_batch *b, int64_t n_rows,
                             struct oj_error *err)
{
    struct oj_matches *out = b->out;
    OJ_TRY(oj_reserve(&out->list, 0, n_rows, &out->cap_list, sizeof *out->list,
                      err));
    out->shared = &b->self->known.lists;
    b->query.list = out->list;
    return OJ_OK;
}

static oj_status join_batch(struct points_in_polygons_batch *b,
                            struct oj_stats *stats, struct oj_error *err)
{
    struct points_in_polygons_index *self = b->self;
    struct oj_matches *out = b->out;
    int n_threads = self->options.n_threads;
    int64_t n_rows = b->input->n_features;
    int64_t n_tasks = (n_rows + ROWS_PER_TASK - 1) / ROWS_PER_TASK;
    int64_t n_pairs = 0, n_shared = 0, n_matched = 0;
    double start = oj_clock_seconds();
    oj_status status;
    OJ_TRY(oj_matches_reserve(out, n_rows, 0, 1, err));
    if (b->query.known != NULL)
        OJ_TRY(share_lists(b, n_rows, err));
    OJ_TRY(oj_reserve(&self->task, 0, n_tasks, &self->cap_tasks,
                      sizeof *self->task, err));
    out->offset[0] = 0;
    for (int t = 0; t < n_threads; t++)
    {
        struct oj_point_worker *w = &self->worker[t];
        int64_t n = n_rows < MOST_FORESEEN ? n_rows : MOST_FORESEEN;
        w->n_pairs = 0;
        OJ_TRY(oj_reserve(&w->feature, 0, n / n_threads + OJ_POINT_BLOCK,
                          &w->cap_pairs, sizeof *w->feature, err));
    }
    status = oj_parallel_try(n_threads, n_tasks, 1, join_task, b, err);
    sum_stats(self, oj_clock_seconds() - start, stats);
    stats->index_bytes += atomic_exchange(&self->cells.new_bytes, 0);
    if (status != OJ_OK)
        return status;
    for (int64_t i = 0; i < n_tasks; i++)
    {
        self->task[i].before = n_pairs;
        n_pairs += self->task[i].n;
        n_shared += self->task[i].n_shared;
        n_matched += self->task[i].n_matched;
    }
    /* the offsets keep their memory: there is room for them */
    OJ_TRY(oj_matches_reserve(out, n_rows, n_pairs, 1, err));
    if (b->query.known != NULL)
        out->shared = &self->known.lists;
    oj_parallel_for(n_threads, n_tasks, place_task, b);
    out->n_pairs = n_pairs + n_shared;
    out->n_matched = n_matched;
    return OJ_OK;
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct points_in_polygons_index *self = unwrap(wrapped);
    struct points_in_polygons_batch b;
    memset(&b, 0, sizeof b);
    b.self = self;
    b.input = input;
    b.out = out;
    for (int t = 0; t < self->options.n_threads; t++)
        oj_relate_forget(&self->worker[t].relate);
    OJ_TRY(oj_pair_filter_make(&self->relation, input, self->flat, &b.filter,
                               err));
    if (self->cells.n_sets == 0)
    {
        OJ_TRY(oj_matches_reserve(out, input->n_features, 0, 1, err));
        memset(out->offset, 0,
               (size_t)(input->n_features + 1) * sizeof *out->offset);
        return OJ_OK;
    }
    OJ_TRY(oj_ring_cells_expect(&self->cells, input->n_features, err));
    b.query.cells = &self->cells;
    if (self->known.nx > 0 && !b.filter.is_needed)
        b.query.known = &self->known;
    b.query.set = &self->cells.set[self->cells.n_sets - 1];
    b.query.input = input;
    b.query.filter = &b.filter;
    b.query.accepted = self->accepted;
    b.query.solidity = self->solidity;
    b.query.cancel = self->options.cancel;
    b.query.timings = self->options.timings;
    atomic_init(&b.n_pairs, 0);
    return join_batch(&b, stats, err);
}

const struct oj_engine oj_cpu_points_in_polygons = {
    "points in cells of polygons", oj_is_points_in_polygons, make_index, join,
    free_index};
