#include "oj_parallel_row_search.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_clock.h"
#include "../../../flatten/base/oj_parallel.h"

#include <math.h>

/* Maximum rows per task of a thread. */
#define ROWS_AT_ONCE 256

#define FEATURES_AT_ONCE 4096

/* --- index ---------------------------------------------------------------- */

void *oj_row_index_begin(struct oj_index *wrapped,
                         const struct oj_row_method *method,
                         const struct oj_index_args *args)
{
    struct oj_row_index *index = (void *)wrapped;
    index->method = method;
    index->args = *args;
    index->n_threads = method->on_one_thread ? 1 : args->options.n_threads;
    return index;
}

void oj_row_set_options(struct oj_index *wrapped,
                        const struct oj_options *options)
{
    struct oj_row_index *index = (void *)wrapped;
    oj_options_copy_per_batch(&index->args.options, options);
}

void oj_row_batches_free(struct oj_index *wrapped)
{
    struct oj_row_index *index = (void *)wrapped;
    for (int t = 0; index->worker != NULL && t < index->n_threads; t++)
    {
        struct oj_row_worker *worker = oj_row_worker(index, t);
        oj_ranking_free(&worker->ranking);
        if (index->method->free_worker != NULL)
            index->method->free_worker(worker);
    }
    for (int t = 0; index->answers != NULL && t < index->n_threads; t++)
        oj_answers_free(&index->answers[t]);
    oj_free(index->worker);
    oj_free(index->answers);
    oj_order_free(&index->order);
}

/* --- the order of features ------------------------------------------------ */

struct feature_places
{
    const void *side;
    oj_row_locate place;
    double *x, *y; /* [features] */
};

static void set_feature_positions(int64_t first, int64_t end, void *user)
{
    struct feature_places *p = user;
    for (int64_t f = first; f < end; f++)
    {
        if (!p->place(p->side, f, &p->x[f], &p->y[f]))
            p->x[f] = p->y[f] = NAN;
    }
}

oj_status oj_row_order(const struct oj_flat *flat, const void *side,
                       oj_row_locate place, int n_threads,
                       struct oj_order *order, struct oj_error *err)
{
    struct feature_places places = {side, place, NULL, NULL};
    const double *x = flat->x, *y = flat->y;
    int64_t n = flat->n_features;
    oj_status status;
    if (place != NULL)
    {
        OJ_NEW(places.x, 2 * n, err);
        places.y = places.x + n;
        oj_parallel_slices(n_threads, n, FEATURES_AT_ONCE,
                           set_feature_positions, &places);
        x = places.x;
        y = places.y;
    }
    status = oj_order_build(order, n_threads, n, x, y, err);
    oj_free(places.x);
    if (status == OJ_OK)
        status = oj_order_sort(order, n_threads, NULL, NULL, err);
    return status;
}

oj_status oj_row_sort_input(struct oj_row_index *index, const void *side,
                            oj_row_locate place, struct oj_error *err)
{
    OJ_TRY(oj_row_order(index->input, side, place, index->n_threads,
                        &index->order, err));
    index->n_rows = index->order.n_points;
    return OJ_OK;
}

int64_t oj_row_at_position(const struct oj_row_index *index, int64_t i)
{
    return index->order.point[i].index;
}

/* --- a batch -------------------------------------------------------------- */

static oj_status make_workers(struct oj_row_index *index, struct oj_error *err)
{
    size_t size = index->method->worker_size;
    if (index->answers == NULL)
        OJ_NEW_ZEROED(index->answers, index->n_threads, err);
    if (index->worker != NULL)
        return OJ_OK;
    index->worker = oj_calloc(index->n_threads, size);
    if (index->worker == NULL)
        return oj_fail_nomem(err, index->n_threads, size);
    for (int t = 0; t < index->n_threads; t++)
    {
        struct oj_row_worker *worker = oj_row_worker(index, t);
        worker->answers = &index->answers[t];
        worker->ranking =
            oj_ranking_make(&index->args.relation, index->args.tie_rank);
    }
    return OJ_OK;
}

oj_status oj_row_batch_open(struct oj_row_index *index,
                            const struct oj_flat *input, struct oj_error *err)
{
    const struct oj_index_args *args = &index->args;
    OJ_TRY(oj_pair_filter_make(&args->relation, input, args->join_side,
                               &index->filter, err));
    OJ_TRY(make_workers(index, err));
    index->input = input;
    index->n_rows = input->n_features;
    oj_pair_budget_start(&index->budget, args->options.max_batch_pairs,
                         input->n_features, index->n_threads);
    for (int t = 0; t < index->n_threads; t++)
    {
        struct oj_row_worker *worker = oj_row_worker(index, t);
        oj_answers_start(worker->answers, &index->budget);
        worker->n_tried = worker->n_candidates = 0;
        worker->filter_s = 0.0;
    }
    return OJ_OK;
}

/* Stores the only pair of a row. */
static void put_pair_of_row(struct oj_matches *out, int64_t row,
                            const struct oj_ranking *ranking)
{
    if (ranking->n == 0)
        return;
    out->join_row[row] = ranking->list[0].feature;
    out->measure[row] = ranking->list[0].distance;
}

static oj_status search_row(int64_t i, int thread, void *user,
                            struct oj_error *err)
{
    struct oj_row_index *index = user;
    const struct oj_row_method *method = index->method;
    struct oj_row_worker *worker = oj_row_worker(index, thread);
    int64_t row = method->row_of != NULL ? method->row_of(index, i) : i;
    OJ_TRY(oj_check_cancel(index->args.options.cancel, err));
    if (method->answer != NULL)
        return method->answer(index, worker, i, err);
    if (!oj_relation_sorts_by_measure(&index->args.relation))
        return method->search(index, worker, row, err);
    oj_ranking_start(&worker->ranking);
    OJ_TRY(method->search(index, worker, row, err));
    oj_ranking_finish(&worker->ranking);
    if (index->one_per_row != NULL)
    {
        put_pair_of_row(index->one_per_row, row, &worker->ranking);
        return OJ_OK;
    }
    return oj_answers_add_ranking(worker->answers, row, &worker->ranking, err);
}

/* Searches all rows of the batch in parallel. Each worker keeps its answers
 * until oj_row_batch_join(). */
static oj_status search_rows(struct oj_row_index *index, struct oj_stats *stats,
                             struct oj_error *err)
{
    double start = oj_clock_seconds(), started;
    int64_t at_once;
    oj_status status;
    if (index->method->start != NULL)
        OJ_TRY(index->method->start(index, err));
    started = oj_clock_seconds();
    /* If rows are few, each may take long: smaller tasks spread them better. */
    at_once = index->n_rows / (16 * (int64_t)index->n_threads) + 1;
    status = oj_parallel_try(index->n_threads, index->n_rows,
                             at_once < ROWS_AT_ONCE ? at_once : ROWS_AT_ONCE,
                             search_row, index, err);
    /* A method that is cancelled may stop early without an error. */
    if (status == OJ_OK)
        status = oj_check_cancel(index->args.options.cancel, err);
    stats->sort_s += started - start;
    stats->refine_s += oj_clock_seconds() - started;
    for (int t = 0; t < index->n_threads; t++)
    {
        const struct oj_row_worker *worker = oj_row_worker(index, t);
        stats->n_candidates += worker->n_candidates;
        /* Thread time divided by the number of threads gives wall-clock time.
         */
        stats->filter_s += worker->filter_s / index->n_threads;
        stats->refine_s -= worker->filter_s / index->n_threads;
    }
    return status;
}

/* If each row has at most one pair and pairs are ranked, prepares `out` and
 * sets index->one_per_row to it, so that the search writes the pairs there. */
static oj_status prepare_one_pair_per_row(struct oj_row_index *index,
                                          struct oj_matches *out,
                                          struct oj_error *err)
{
    int64_t n = index->input->n_features;
    index->one_per_row = NULL;
    if (index->method->answer != NULL ||
        oj_relation_allows_many_pairs(&index->args.relation))
        return OJ_OK;
    OJ_TRY(oj_matches_reserve(out, n, n, 0, err));
    for (int64_t row = 0; row < n; row++)
    {
        out->join_row[row] = -1;
        out->measure[row] = NAN;
    }
    index->one_per_row = out;
    return OJ_OK;
}

static oj_status finish_matches_of_batch(struct oj_row_index *index,
                                         struct oj_matches *out,
                                         struct oj_error *err)
{
    if (index->one_per_row == NULL)
        return oj_answers_to_matches(
            index->answers, index->n_threads, index->input->n_features,
            &index->args.relation, index->args.tie_rank, out, err);
    for (int64_t row = 0; row < out->n_rows; row++)
        out->n_matched += out->join_row[row] >= 0;
    out->n_pairs = out->n_matched;
    return oj_answers_gather_undecided(index->answers, index->n_threads, out,
                                       err);
}

oj_status oj_row_batch_join(struct oj_row_index *index, struct oj_matches *out,
                            struct oj_stats *stats, struct oj_error *err)
{
    const struct oj_row_method *method = index->method;
    oj_status status = prepare_one_pair_per_row(index, out, err);
    if (status == OJ_OK)
        status = search_rows(index, stats, err);
    if (method->end != NULL)
        method->end(index);
    OJ_TRY(status);
    OJ_TRY(finish_matches_of_batch(index, out, err));
    for (int64_t i = 0; method->measure_of != NULL && i < out->n_entries; i++)
        out->measure[i] = method->measure_of(out->measure[i]);
    return OJ_OK;
}

oj_status oj_row_join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct oj_row_index *index = (void *)wrapped;
    OJ_TRY(oj_row_batch_open(index, input, err));
    return oj_row_batch_join(index, out, stats, err);
}

oj_status oj_row_search_all_pairs(struct oj_row_index *index,
                                  struct oj_row_worker *worker, int64_t row,
                                  oj_row_compare value_of, struct oj_error *err)
{
    const struct oj_flat *join_side = index->args.join_side;
    if (!oj_feature_may_pair(index->input, row))
        return OJ_OK;
    for (int64_t f = 0; f < join_side->n_features; f++)
    {
        OJ_TRY(oj_row_poll_cancel(index, worker, err));
        worker->n_candidates++;
        if (oj_feature_may_pair(join_side, f) &&
            oj_pair_filter_accepts(&index->filter, row, f))
            OJ_TRY(oj_row_add_pair(
                index, worker, row, (int32_t)f,
                value_of != NULL ? value_of(index, row, f) : NAN, err));
    }
    return OJ_OK;
}
