#include "cpu_distance_join.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_threads.h"

#include <math.h>

/* Rows that a thread takes at once, at most. */
#define ROWS_AT_ONCE 2048

/* --- index ---------------------------------------------------------------- */

void oj_distance_batches_free(struct oj_index *wrapped)
{
    struct oj_distance_index *index = (void *)wrapped;
    for (int t = 0; index->worker != NULL && t < index->options.n_threads; t++)
        oj_ranking_free(&index->worker[t].ranking);
    for (int t = 0; index->answers != NULL && t < index->options.n_threads; t++)
        oj_answers_free(&index->answers[t]);
    oj_free(index->worker);
    oj_free(index->answers);
    oj_order_free(&index->order);
}

oj_status oj_distance_build(const struct oj_distance_space *space,
                            const struct oj_index_args *args,
                            struct oj_index *wrapped, struct oj_stats *stats,
                            struct oj_error *err)
{
    struct oj_distance_index *index = (void *)wrapped;
    double start = oj_clock_seconds();
    index->space = space;
    index->relation = args->relation;
    index->options = args->options;
    index->join_side = args->join_side;
    index->tie_rank = args->tie_rank;
    OJ_TRY(space->build(index, stats, err));
    stats->index_s += oj_clock_seconds() - start;
    return OJ_OK;
}

oj_status
oj_distance_order(const struct oj_flat *flat, const void *side,
                  int (*middle_of)(const void *, int64_t, double *, double *),
                  int n_threads, struct oj_order *order, struct oj_error *err)
{
    int64_t n = flat->n_features;
    double *x, *y;
    oj_status status;
    OJ_NEW(x, 2 * n, err);
    y = x + n;
    for (int64_t f = 0; f < n; f++)
    {
        if (!oj_feature_may_pair(flat, f) || !middle_of(side, f, &x[f], &y[f]))
            x[f] = y[f] = NAN;
    }
    status = oj_order_build(order, n_threads, n, x, y, err);
    oj_free(x);
    if (status == OJ_OK)
        status = oj_order_sort(order, n_threads, NULL, NULL, err);
    return status;
}

/* --- a batch -------------------------------------------------------------- */

static oj_status join_row(int64_t i, int thread, void *user,
                          struct oj_error *err)
{
    struct oj_distance_index *index = user;
    struct oj_distance_worker *worker = &index->worker[thread];
    int64_t row = index->order.point[i].index;
    OJ_TRY(oj_check_cancel(index->options.cancel, err));
    if (index->relation.op != OJ_OP_NEAREST)
        return index->space->search(index, worker, row, err);
    oj_ranking_start(&worker->ranking);
    OJ_TRY(index->space->search(index, worker, row, err));
    oj_ranking_finish(&worker->ranking);
    return oj_answers_add(worker->answers, row, &worker->ranking, err);
}

static oj_status make_workers(struct oj_distance_index *index,
                              struct oj_error *err)
{
    int n_threads = index->options.n_threads;
    if (index->answers == NULL)
        OJ_NEW_ZEROED(index->answers, n_threads, err);
    if (index->worker != NULL)
        return OJ_OK;
    OJ_NEW_ZEROED(index->worker, n_threads, err);
    for (int t = 0; t < n_threads; t++)
    {
        index->worker[t].thread = t;
        index->worker[t].answers = &index->answers[t];
        index->worker[t].ranking =
            oj_ranking_make(&index->relation, index->tie_rank);
    }
    return OJ_OK;
}

/* The answers stay with the workers. */
static oj_status join_rows(struct oj_distance_index *index,
                           struct oj_stats *stats, struct oj_error *err)
{
    int n_threads = index->options.n_threads;
    double start = oj_clock_seconds(), sorted;
    int64_t n, at_once;
    oj_status status;
    OJ_TRY(oj_pair_filter_make(&index->relation, index->input, index->join_side,
                               &index->filter, err));
    OJ_TRY(index->space->start(index, err));
    sorted = oj_clock_seconds();
    n = index->order.n_points;
    /* few rows may be large ones: few at once, then */
    at_once = n / (16 * (int64_t)n_threads) + 1;
    if (at_once > ROWS_AT_ONCE)
        at_once = ROWS_AT_ONCE;
    for (int t = 0; t < n_threads; t++)
    {
        oj_answers_start(&index->answers[t], index->options.max_batch_pairs,
                         index->input->n_features, n_threads);
        index->worker[t].n_tried = 0;
    }
    status = oj_parallel_try(n_threads, n, at_once, join_row, index, err);
    /* a space may have given up its last distances */
    if (status == OJ_OK)
        status = oj_check_cancel(index->options.cancel, err);
    stats->sort_s += sorted - start;
    stats->refine_s += oj_clock_seconds() - sorted;
    return status;
}

oj_status oj_distance_join(struct oj_index *wrapped,
                           const struct oj_flat *input, struct oj_matches *out,
                           struct oj_stats *stats, struct oj_error *err)
{
    struct oj_distance_index *index = (void *)wrapped;
    oj_status status;
    OJ_TRY(make_workers(index, err));
    index->input = input;
    status = join_rows(index, stats, err);
    index->space->end(index, stats);
    OJ_TRY(status);
    OJ_TRY(oj_answers_to_matches(index->answers, index->options.n_threads,
                                 input->n_features, &index->relation,
                                 index->tie_rank, out, err));
    for (int64_t i = 0; index->space->measure_of != NULL && i < out->n_entries;
         i++)
        out->measure[i] = index->space->measure_of(out->measure[i]);
    return OJ_OK;
}
