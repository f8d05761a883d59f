/** Engines that find the pairs of a batch row by row, on all threads: what they
 *  share.
 *
 *   build -> start -> search(row), search(row), .. -> end -> start -> ..
 *            |______ a batch, rows on any thread _____|
 *
 *  A method says how the pairs of one row are found.  Its index and what a
 *  thread has of its own begin with the structs here.  The pairs of a row are
 *  ranked where the join asks for the best ones, else put as they come; both by
 *  what the method compares: distances, squares of chords, differences, or
 *  similarities, negated.
 */
#ifndef OJ_PARALLEL_ROW_SEARCH_H
#define OJ_PARALLEL_ROW_SEARCH_H

#include "../../foundations/base/cpu_spatial_order.h"
#include "../../foundations/relation/oj_index.h"
#include "oj_pair_filter.h"
#include "oj_ranking.h"

/** What a thread has of its own, from batch to batch. */
struct oj_row_worker
{
    struct oj_answers *answers;
    struct oj_ranking ranking; /**< of the row on its way */
    int64_t n_tried;           /**< of oj_row_poll_cancel(), in the batch */
    int64_t n_candidates;      /**< of struct oj_stats, in the batch */
    double filter_s;           /**< the same; where timings are asked */
    char apart[64]; /**< keeps the counts of two threads in two cache lines */
};

struct oj_row_index
{
    const struct oj_row_method *method;
    struct oj_index_args args; /**< limits as the method compares them */
    int n_threads;

    /* of batches; the memory is used again */
    void *worker;               /**< [n_threads] of the method's size */
    struct oj_answers *answers; /**< [n_threads] */

    /* of the batch at hand */
    const struct oj_flat *input;
    struct oj_pair_budget budget;
    struct oj_pair_filter filter;
    struct oj_order order; /**< for start, if it wants one */
    int64_t n_rows;        /**< that are searched for: all, unless start says
                                otherwise */
};

struct oj_row_method
{
    size_t worker_size; /**< begins with struct oj_row_worker */
    int on_one_thread;  /**< 1: a plain reference */
    /** Prepares the batch; NULL: nothing to prepare. */
    oj_status (*start)(struct oj_row_index *index, struct oj_error *err);
    /** The row that is taken i-th; NULL: row i. */
    int64_t (*row_of)(const struct oj_row_index *index, int64_t i);
    /** Puts the pairs of a row. */
    oj_status (*search)(struct oj_row_index *index,
                        struct oj_row_worker *worker, int64_t row,
                        struct oj_error *err);
    /** In place of row_of and search, where rows are answered in groups: adds
     *  the answers of group i of n_rows. */
    oj_status (*answer)(struct oj_row_index *index,
                        struct oj_row_worker *worker, int64_t i,
                        struct oj_error *err);
    /** Frees what start made, all or part of it; NULL: nothing. */
    void (*end)(struct oj_row_index *index);
    /** Frees what the worker has beside the struct above; NULL: nothing. */
    void (*free_worker)(struct oj_row_worker *worker);
    /** The measure of an answer from what is compared; NULL: it is that. */
    double (*measure_of)(double compared);
};

/** For the build function of an engine: sets up the start of its index, and
 *  returns the index. */
void *oj_row_index_begin(struct oj_index *index,
                         const struct oj_row_method *method,
                         const struct oj_index_args *args);

/** The join, free_batches and set_cancel functions of an engine. */
OJ_MUST_USE oj_status oj_row_join(struct oj_index *index,
                                  const struct oj_flat *input,
                                  struct oj_matches *out,
                                  struct oj_stats *stats, struct oj_error *err);
void oj_row_batches_free(struct oj_index *index);
void oj_row_set_cancel(struct oj_index *index, const int *cancel);

/** The first half of oj_row_join(): workers and filter for a batch. */
OJ_MUST_USE oj_status oj_row_batch_open(struct oj_row_index *index,
                                        const struct oj_flat *input,
                                        struct oj_error *err);

/** And the second half: its pairs. */
OJ_MUST_USE oj_status oj_row_batch_join(struct oj_row_index *index,
                                        struct oj_matches *out,
                                        struct oj_stats *stats,
                                        struct oj_error *err);

static inline struct oj_row_worker *
oj_row_worker(const struct oj_row_index *index, int thread)
{
    return (void *)((char *)index->worker +
                    (size_t)thread * index->method->worker_size);
}

/** Where a feature is: 0 when it joins nothing. */
typedef int (*oj_row_place)(const void *side, int64_t feature, double *x,
                            double *y);

/** Puts the features of flat in Morton order, all buckets sorted; without those
 *  that join nothing.  place NULL: flat's points, all of them. */
OJ_MUST_USE oj_status oj_row_order(const struct oj_flat *flat, const void *side,
                                   oj_row_place place, int n_threads,
                                   struct oj_order *order,
                                   struct oj_error *err);

/** Puts the rows of the batch in Morton order and sets row_of; for start. */
OJ_MUST_USE oj_status oj_row_order_input(struct oj_row_index *index,
                                         const void *side, oj_row_place place,
                                         struct oj_error *err);
int64_t oj_row_in_order(const struct oj_row_index *index, int64_t i);

/** Candidates between two looks at the cancel flag. */
#define OJ_CANDIDATES_PER_LOOK 512

/** Counts a candidate; now and then: OJ_ERR_CANCELLED. */
static inline oj_status oj_row_poll_cancel(const struct oj_row_index *index,
                                           struct oj_row_worker *worker,
                                           struct oj_error *err)
{
    if (++worker->n_tried % OJ_CANDIDATES_PER_LOOK != 0)
        return OJ_OK;
    return oj_check_cancel(index->args.options.cancel, err);
}

/** Takes a pair that is within all limits but that of the ranking. */
static inline oj_status oj_row_put_pair(const struct oj_row_index *index,
                                        struct oj_row_worker *worker,
                                        int64_t row, int32_t feature,
                                        double compared, struct oj_error *err)
{
    if (oj_relation_sorts_by_measure(&index->args.relation))
        return oj_ranking_add(&worker->ranking, feature, compared, err);
    OJ_TRY(oj_answers_reserve(worker->answers, 1, err));
    oj_answers_put(worker->answers, (int32_t)row, feature, compared);
    return OJ_OK;
}

#endif
