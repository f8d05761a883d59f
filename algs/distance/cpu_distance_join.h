/** Joins by distance, row by row on all threads: what the plane and the sphere
 *  share.
 *
 *  A space, of which there are two, knows how far features are apart and how to
 *  find the near ones; its index begins with the struct here and holds what it
 *  needs of the batch at hand, too.  "Distance" is what it compares: metres, or
 *  the square of a chord.
 */
#ifndef CPU_DISTANCE_JOIN_H
#define CPU_DISTANCE_JOIN_H

#include "../base/cpu_order.h"
#include "../pairs/oj_pair_filter.h"
#include "../pairs/oj_ranking.h"
#include "../relation/oj_engine.h"

/** What a thread has of its own. */
struct oj_distance_worker
{
    struct oj_answers *answers;
    struct oj_ranking ranking; /**< of the row on its way */
    int thread;
    int64_t n_tried; /**< candidates of the batch */
    char apart[64];  /**< keeps the counts of two threads in two cache lines */
};

struct oj_distance_index
{
    const struct oj_distance_space *space;
    struct oj_relation relation;
    struct oj_options options;
    const struct oj_flat *join_side;
    const int32_t *tie_rank;

    /* of batches; the memory is used again */
    struct oj_distance_worker *worker; /**< [n_threads] */
    struct oj_answers *answers;        /**< [n_threads] */

    /* of the batch at hand */
    const struct oj_flat *input;
    struct oj_pair_filter filter;
    struct oj_order order; /**< its memory is used again */
};

struct oj_distance_space
{
    /** Prepares the join side. */
    oj_status (*build)(struct oj_distance_index *index, struct oj_stats *stats,
                       struct oj_error *err);
    /** Prepares the input side: puts the rows that may join something into
     *  index->order, all buckets sorted. */
    oj_status (*start)(struct oj_distance_index *index, struct oj_error *err);
    /** Puts the pairs of row. */
    oj_status (*search)(struct oj_distance_index *index,
                        struct oj_distance_worker *worker, int64_t row,
                        struct oj_error *err);
    /** Frees what start made, all or part of it, and counts candidates. */
    void (*end)(struct oj_distance_index *index, struct oj_stats *stats);
    /** The distance of an answer from what is compared; NULL: it is that. */
    double (*measure_of)(double compared);
};

/** The build function of an engine (oj_engine.h), whose index begins with ours.
 *  The distances of the relation are as the space compares them. */
OJ_MUST_USE oj_status oj_distance_build(const struct oj_distance_space *space,
                                        const struct oj_index_args *args,
                                        struct oj_index *index,
                                        struct oj_stats *stats,
                                        struct oj_error *err);

/** The join and free_batches functions of an engine. */
OJ_MUST_USE oj_status oj_distance_join(struct oj_index *index,
                                       const struct oj_flat *input,
                                       struct oj_matches *out,
                                       struct oj_stats *stats,
                                       struct oj_error *err);
void oj_distance_batches_free(struct oj_index *index);

/** Puts the features of flat in Morton order, all buckets sorted; without those
 *  that join nothing, of which middle_of(side, f, x, y) is one that gives 0.
 */
OJ_MUST_USE oj_status oj_distance_order(
    const struct oj_flat *flat, const void *side,
    int (*middle_of)(const void *side, int64_t feature, double *x, double *y),
    int n_threads, struct oj_order *order, struct oj_error *err);

/** Candidates between two looks at the cancel flag. */
#define OJ_CANDIDATES_PER_LOOK 512

/** Counts a candidate; now and then: OJ_ERR_CANCELLED. */
static inline oj_status oj_distance_try(const struct oj_distance_index *index,
                                        struct oj_distance_worker *worker,
                                        struct oj_error *err)
{
    if (++worker->n_tried % OJ_CANDIDATES_PER_LOOK != 0)
        return OJ_OK;
    return oj_check_cancel(index->options.cancel, err);
}

/** Takes a pair whose distance is within all limits. */
static inline oj_status oj_distance_put(const struct oj_distance_index *index,
                                        struct oj_distance_worker *worker,
                                        int64_t row, int32_t feature,
                                        double distance, struct oj_error *err)
{
    if (index->relation.op == OJ_OP_NEAREST)
        return oj_ranking_add(&worker->ranking, feature, distance, err);
    OJ_TRY(oj_answers_reserve(worker->answers, 1, err));
    oj_answers_put(worker->answers, (int32_t)row, feature, distance);
    return OJ_OK;
}

#endif
