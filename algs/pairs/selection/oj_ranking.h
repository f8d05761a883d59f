/** Ranking of the candidates of one input row, and collecting of the rows.
 *
 *  A row's candidates are added in any order, a feature as often as it comes;
 *  finishing keeps each feature once, at its smallest distance, in the order
 *  (distance, tie rank), and cuts at k (ties kept when asked for).  The k best
 *  candidates of all points of a multipoint are among the k best of each point,
 *  so points may be ranked one by one and merged.
 *
 *  Finished rows go into struct oj_answers, one per thread, in any order; then
 *  oj_answers_to_matches() puts them in the order of the input.
 */
#ifndef OJ_RANKING_H
#define OJ_RANKING_H

#include "../../../flatten/arrays/oj_matches.h"
#include "../../foundations/relation/oj_pair_budget.h"
#include "../../foundations/relation/oj_relation.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

struct oj_candidate
{
    double distance;
    int32_t rank;    /**< place in tie order, different for every feature */
    int32_t feature; /**< ordinal in the join layer */
};

/** Owner of list; made by oj_ranking_make(). */
struct oj_ranking
{
    int64_t k;
    int keep_ties;
    double max_distance;
    const int32_t *tie_rank; /**< [features] or NULL: the ordinal */

    double bound; /**< candidates farther than this cannot be in the answer */
    int64_t last_rank; /**< nor, at the bound, those of this rank or a higher
                            one */
    int64_t n;         /**< candidates in list */
    int64_t n_cut;     /**< of these, what the last cut left */
    int64_t capacity;
    struct oj_candidate *list;
};

/** An empty ranking. tie_rank outlives it. Cannot fail: allocates nothing. */
struct oj_ranking oj_ranking_make(const struct oj_relation *relation,
                                  const int32_t *tie_rank);

/** Forgets the last row. */
void oj_ranking_start(struct oj_ranking *ranking);

/** Adds a candidate. Distances beyond ranking->bound, and those that are not
 *  finite numbers, are left out. */
OJ_MUST_USE oj_status oj_ranking_add(struct oj_ranking *ranking,
                                     int32_t feature, double distance,
                                     struct oj_error *err);

/** Makes list[0 .. n) the row's answer. */
void oj_ranking_finish(struct oj_ranking *ranking);

/** The k-th distance of a finished ranking; INFINITY: it has fewer. */
static inline double oj_ranking_kth_distance(const struct oj_ranking *ranking)
{
    return ranking->n >= ranking->k ? ranking->list[ranking->k - 1].distance
                                    : INFINITY;
}

void oj_ranking_free(struct oj_ranking *ranking);

/** Rows as they were finished. Owner; zeroed memory is a valid empty one. */
struct oj_answers
{
    int64_t n_entries, n_undecided;
    int32_t *row;       /**< [n_entries] input row */
    int32_t *feature;   /**< [n_entries] join ordinal */
    double *distance;   /**< [n_entries] */
    int64_t *undecided; /**< [n_undecided] pairs, packed; repeats allowed */
    int64_t cap_row, cap_feature, cap_distance, cap_undecided;

    struct oj_pair_budget *budget; /**< of the batch, or NULL: no bound */
    int64_t n_counted; /**< entries, undecided ones with them, that are in the
                            total of the budget */
    char apart[64]; /**< keeps the counts of two threads in two cache lines */
};

/** Empties answers, keeps the memory, and counts what comes in the budget of
 *  the batch, which outlives it; NULL: no bound. */
void oj_answers_start(struct oj_answers *answers,
                      struct oj_pair_budget *budget);

/** Appends the finished ranking as (part of) the answer of row. */
OJ_MUST_USE oj_status oj_answers_add(struct oj_answers *answers, int64_t row,
                                     const struct oj_ranking *ranking,
                                     struct oj_error *err);

/** Makes room for n more pairs, all of which oj_answers_put() then appends.
 *  OJ_ERR_TOO_MANY_PAIRS: the budget of the batch does not allow them. */
OJ_MUST_USE oj_status oj_answers_reserve(struct oj_answers *answers, int64_t n,
                                         struct oj_error *err);

/** Appends a pair, for which there is room.  For joins other than nearest;
 *  each pair comes once. distance: NaN where the join has no measure. */
static inline void oj_answers_put(struct oj_answers *answers, int32_t row,
                                  int32_t feature, double distance)
{
    int64_t i = answers->n_entries++;
    answers->row[i] = row;
    answers->feature[i] = feature;
    answers->distance[i] = distance;
}

/** Says that the backend could not decide the pair of row and feature, or with
 *  -1 as feature, all of row. */
OJ_MUST_USE oj_status oj_answers_add_undecided(struct oj_answers *answers,
                                               int64_t row, int32_t feature,
                                               struct oj_error *err);

/** The answers of n_rows input rows, spread over n_answers collections, as
 *  matches in the form and order that relation asks for.  A row may occur
 * several times (points of a multipoint).  The result does not depend on how
 * the rows are spread or ordered.  OJ_ERR_TOO_MANY_PAIRS: all answers together
 * pass the budget of the batch. */
OJ_MUST_USE oj_status oj_answers_to_matches(const struct oj_answers *answers,
                                            int64_t n_answers, int64_t n_rows,
                                            const struct oj_relation *relation,
                                            const int32_t *tie_rank,
                                            struct oj_matches *out,
                                            struct oj_error *err);

/** The feature in oj_ones of a row whose pairs are in answers. */
#define OJ_ONE_OF_MANY (-2)

/** Rows with one pair at most, by row: what oj_answers need not hold. Owner;
 *  zeroed memory is a valid empty one. */
struct oj_ones
{
    int32_t *feature; /**< [n_rows] join ordinal, -1 or OJ_ONE_OF_MANY */
    double *distance; /**< [n_rows] of a join ordinal */
    int64_t cap_feature, cap_distance;
};

/** Makes ones of n_rows, all of them -1. */
OJ_MUST_USE oj_status oj_ones_start(struct oj_ones *ones, int64_t n_rows,
                                    struct oj_error *err);

void oj_ones_free(struct oj_ones *ones);

/** Makes matches of ones and of the answers of the other rows, each of which is
 *  finished there in one go; relation is nearest.  max_pairs: of struct
 *  oj_options.max_batch_pairs. */
OJ_MUST_USE oj_status oj_ones_to_matches(const struct oj_ones *ones,
                                         const struct oj_answers *answers,
                                         int64_t n_answers, int64_t n_rows,
                                         int64_t max_pairs,
                                         struct oj_matches *out,
                                         struct oj_error *err);

void oj_answers_free(struct oj_answers *answers);

#ifdef __cplusplus
}
#endif
#endif
