/** The common part of engines that find the pairs of a batch row by row, on all
 *  threads.
 *
 *   build -> start -> search(row), search(row), .. -> end -> start -> ..
 *            |______ a batch, rows on any thread _____|
 *
 *  A method (struct oj_row_method) finds the pairs of one row.  Its index
 *  begins with struct oj_row_index, its state per thread with struct
 *  oj_row_worker.  The pairs of a row are ranked if the join asks for the best
 *  ones, otherwise stored in the order found.  The ranking uses the value that
 *  the method compares: a distance, squared chord, difference, or negated
 *  similarity.
 */
#ifndef OJ_PARALLEL_ROW_SEARCH_H
#define OJ_PARALLEL_ROW_SEARCH_H

#include "../../foundations/base/cpu_morton_order.h"
#include "../../foundations/relation/oj_index.h"
#include "oj_answer_ranking.h"
#include "oj_pair_filter.h"

/** State of a thread; its memory is reused from batch to batch. */
struct oj_row_worker
{
    struct oj_answers *answers;
    struct oj_ranking ranking; /**< ranks the pairs of the current row */
    int64_t n_tried;           /**< counts candidates in this batch only to poll
                                    the cancel flag at every
                                    OJ_CANDIDATES_PER_LOOK-th
                                    (oj_row_poll_cancel()) */
    int64_t n_candidates;      /**< candidates of this batch, for struct
                                    oj_stats */
    double filter_s;           /**< filter seconds in this batch, if timings
                                    are on */
    char apart[64]; /**< padding: counters of two threads never share a cache
                         line */
};

struct oj_row_index
{
    const struct oj_row_method *method;
    struct oj_index_args args; /**< arguments of the build; its distance limits
                                    are converted to values that `search`
                                    compares */
    int n_threads;

    /* Memory that is reused from batch to batch. */
    void *worker;               /**< [n_threads] of method->worker_size bytes */
    struct oj_answers *answers; /**< [n_threads] */

    /* The current batch. */
    const struct oj_flat *input;
    struct oj_pair_budget budget;
    struct oj_pair_filter filter;
    struct oj_order order; /**< rows in the order in which they are searched,
                                set by start() */
    int64_t n_rows;        /**< rows (or groups) to search; start() may
                                change it */
    struct oj_matches *one_per_row; /**< the batch's result, into which search()
                                         writes the pairs if they are ranked and
                                         a row has at most one; NULL: pairs go
                                         to answers */
};

struct oj_row_method
{
    size_t worker_size; /**< bytes of the method's worker, which begins with
                             struct oj_row_worker */
    int on_one_thread;  /**< 1: the search runs on one thread (reference
                             methods) */
    /** Prepares the batch; NULL: nothing to prepare. */
    oj_status (*start)(struct oj_row_index *index, struct oj_error *err);
    /** Number of the i-th row to search; NULL: row i. */
    int64_t (*row_of)(const struct oj_row_index *index, int64_t i);
    /** Finds the pairs of a row and adds them by oj_row_add_pair(). */
    oj_status (*search)(struct oj_row_index *index,
                        struct oj_row_worker *worker, int64_t row,
                        struct oj_error *err);
    /** For methods that answer rows in groups, in place of row_of and search:
     * adds the pairs of all rows of group i. start() must then have set
     * index->n_rows to the number of groups. */
    oj_status (*answer)(struct oj_row_index *index,
                        struct oj_row_worker *worker, int64_t i,
                        struct oj_error *err);
    /** Frees what start() has allocated, even if start() failed half-way; NULL:
     * nothing to free. */
    void (*end)(struct oj_row_index *index);
    /** Frees the method's own members of a worker; NULL: none. */
    void (*free_worker)(struct oj_row_worker *worker);
    /** Converts a value that search() compared to the measure of the pair;
     * NULL: both are equal. */
    double (*measure_of)(double compared);
};

/** Initialises the struct oj_row_index at the begin of an engine's index, and
 * returns it. Called by the engine's build function. */
void *oj_row_index_begin(struct oj_index *index,
                         const struct oj_row_method *method,
                         const struct oj_index_args *args);

/** Implement the members join, free_batches and set_options of struct oj_engine
 * for engines that use a struct oj_row_method. */
OJ_MUST_USE oj_status oj_row_join(struct oj_index *index,
                                  const struct oj_flat *input,
                                  struct oj_matches *out,
                                  struct oj_stats *stats, struct oj_error *err);
void oj_row_batches_free(struct oj_index *index);
void oj_row_set_options(struct oj_index *index,
                        const struct oj_options *options);

/** First half of oj_row_join(): prepares workers and pair filter for a batch.
 */
OJ_MUST_USE oj_status oj_row_batch_open(struct oj_row_index *index,
                                        const struct oj_flat *input,
                                        struct oj_error *err);

/** Second half of oj_row_join(): searches all rows and makes *out. */
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

/** Sets the location by which a feature is sorted; side is the argument of
 * oj_row_order(). Returns 0 if the feature cannot be in a pair, for example
 * because it is empty; it is left out then. */
typedef int (*oj_row_locate)(const void *side, int64_t feature, double *x,
                             double *y);

/** Sorts the features of flat in Morton order of their locations; leaves out
 * those for which place() returns 0.  place NULL: flat has points, and all of
 * them are sorted. */
OJ_MUST_USE oj_status oj_row_order(const struct oj_flat *flat, const void *side,
                                   oj_row_locate place, int n_threads,
                                   struct oj_order *order,
                                   struct oj_error *err);

/** Sorts the rows of the batch in Morton order. oj_row_at_position() then
 * returns the row at position i of this order. Called by start(). */
OJ_MUST_USE oj_status oj_row_sort_input(struct oj_row_index *index,
                                        const void *side, oj_row_locate place,
                                        struct oj_error *err);
int64_t oj_row_at_position(const struct oj_row_index *index, int64_t i);

/** Number of candidates between two polls of the cancel flag. */
#define OJ_CANDIDATES_PER_LOOK 512

/** Counts a candidate. Polls the cancel flag once in OJ_CANDIDATES_PER_LOOK
 * candidates; fails with OJ_ERR_CANCELLED if it is set. */
static inline oj_status oj_row_poll_cancel(const struct oj_row_index *index,
                                           struct oj_row_worker *worker,
                                           struct oj_error *err)
{
    if (++worker->n_tried % OJ_CANDIDATES_PER_LOOK != 0)
        return OJ_OK;
    return oj_check_cancel(index->args.options.cancel, err);
}

/** Adds a pair that meets all conditions and distance limits; a ranking may
 * still drop it. */
static inline oj_status oj_row_add_pair(const struct oj_row_index *index,
                                        struct oj_row_worker *worker,
                                        int64_t row, int32_t feature,
                                        double compared, struct oj_error *err)
{
    if (oj_relation_sorts_by_measure(&index->args.relation))
        return oj_ranking_add(&worker->ranking, feature, compared, err);
    OJ_TRY(oj_answers_reserve(worker->answers, 1, err));
    oj_answers_append_pair(worker->answers, (int32_t)row, feature, compared);
    return OJ_OK;
}

/** Returns the value by which the pairs of a row are ranked. */
typedef double (*oj_row_compare)(const struct oj_row_index *index, int64_t row,
                                 int64_t feature);

/** Searches a row for a reference method: adds each feature of the join side
 * that the filter accepts. value_of NULL: the pairs have no value (NaN). */
OJ_MUST_USE oj_status oj_row_search_all_pairs(struct oj_row_index *index,
                                              struct oj_row_worker *worker,
                                              int64_t row,
                                              oj_row_compare value_of,
                                              struct oj_error *err);

#endif
