/** Ranks the candidates of one input row, and collects the rows.
 *
 *  Candidates of a row are added in any order; a feature may repeat.  Finishing
 *  keeps each feature once, with its smallest distance, sorts by (distance, tie
 *  rank) and cuts at k (or after the ties of the k-th).  The k best candidates
 *  of all points of a multipoint are among the k best of each point, so points
 *  may be ranked one by one and merged.
 *
 *  Finished rows go into struct oj_answers, one per thread, in any order; then
 *  oj_answers_to_matches() puts them in the order of the input.
 */
#ifndef OJ_ANSWER_RANKING_H
#define OJ_ANSWER_RANKING_H

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
    int32_t rank;    /**< tie rank of the feature; two features never have equal
                          ranks */
    int32_t feature; /**< ordinal in the join layer */
};

/** Collects the candidates of one row. Created by oj_ranking_make(); owns list.
 */
struct oj_ranking
{
    int64_t k;
    int keep_ties;
    double max_distance;
    const int32_t *tie_rank; /**< [features]; NULL: the ordinal is the rank */

    double bound;      /**< candidates farther than this cannot be in the
                            answer */
    int64_t last_rank; /**< a candidate at distance `bound` with this tie rank
                            or a higher one cannot be in the answer either */
    int64_t n;         /**< number of candidates in list */
    int64_t n_cut;     /**< length of the list after it was last cut at k */
    int64_t capacity;
    struct oj_candidate *list;
};

/** Returns an empty ranking. tie_rank must outlive it. Allocates nothing, so it
 * cannot fail. */
struct oj_ranking oj_ranking_make(const struct oj_relation *relation,
                                  const int32_t *tie_rank);

/** Empties the ranking for the next row. */
void oj_ranking_start(struct oj_ranking *ranking);

/** Adds a candidate. Ignores distances that are beyond ranking->bound or not
 * finite. */
OJ_MUST_USE oj_status oj_ranking_add(struct oj_ranking *ranking,
                                     int32_t feature, double distance,
                                     struct oj_error *err);

/** Sorts, drops repeats and cuts: list[0 .. n) is the answer of the row. */
void oj_ranking_finish(struct oj_ranking *ranking);

/** Returns the k-th distance of a finished ranking; INFINITY if there are fewer
 * than k pairs. */
static inline double oj_ranking_kth_distance(const struct oj_ranking *ranking)
{
    return ranking->n >= ranking->k ? ranking->list[ranking->k - 1].distance
                                    : INFINITY;
}

void oj_ranking_free(struct oj_ranking *ranking);

/** The pairs of finished rows. Owner; zeroed memory is a valid empty one. */
struct oj_answers
{
    int64_t n_entries, n_undecided;
    int32_t *row;     /**< [n_entries] input row */
    int32_t *feature; /**< [n_entries] join ordinal */
    double *distance; /**< [n_entries] */
    /** [n_undecided] pairs that the engine could not decide (see struct
     * oj_matches), row and feature in one number; feature -1: the whole row;
     * may repeat */
    int64_t *undecided;
    int64_t cap_row, cap_feature, cap_distance, cap_undecided;

    struct oj_pair_budget *budget; /**< pair budget of the batch; NULL: no
                                        limit */
    int64_t n_counted; /**< entries (including undecided ones) already added to
                            the budget's total */
    char apart[64];    /**< padding, so that two threads' counters never share a
                            cache line */
};

/** Empties answers but keeps the memory. budget: counts the pairs of the batch
 * and must outlive answers; NULL: no limit. */
void oj_answers_start(struct oj_answers *answers,
                      struct oj_pair_budget *budget);

/** Appends the pairs of a finished ranking, as pairs of `row`. */
OJ_MUST_USE oj_status oj_answers_add_ranking(struct oj_answers *answers,
                                             int64_t row,
                                             const struct oj_ranking *ranking,
                                             struct oj_error *err);

/** Makes room for n pairs, which the caller then appends with
 * oj_answers_append_pair(). Fails with OJ_ERR_TOO_MANY_PAIRS if the budget of
 * the batch is exceeded. */
OJ_MUST_USE oj_status oj_answers_reserve(struct oj_answers *answers, int64_t n,
                                         struct oj_error *err);

/** Appends a pair; there must be room. Not for nearest joins. Each pair must be
 * appended only once. distance: NaN if the join has no measure. */
static inline void oj_answers_append_pair(struct oj_answers *answers,
                                          int32_t row, int32_t feature,
                                          double distance)
{
    int64_t i = answers->n_entries++;
    answers->row[i] = row;
    answers->feature[i] = feature;
    answers->distance[i] = distance;
}

/** Records that the engine could not decide the pair. feature -1: the engine
 * could decide none of the row's pairs. */
OJ_MUST_USE oj_status oj_answers_add_undecided(struct oj_answers *answers,
                                               int64_t row, int32_t feature,
                                               struct oj_error *err);

/** Merges n_answers collections into the matches of n_rows input rows, in the
 * form and order that relation asks for. A row may occur several times (points
 * of a multipoint). The result does not depend on which collection holds a
 * row. Fails with OJ_ERR_TOO_MANY_PAIRS if the total exceeds the pair budget
 * of the batch. */
OJ_MUST_USE oj_status oj_answers_to_matches(const struct oj_answers *answers,
                                            int64_t n_answers, int64_t n_rows,
                                            const struct oj_relation *relation,
                                            const int32_t *tie_rank,
                                            struct oj_matches *out,
                                            struct oj_error *err);

/** Sets the undecided pairs of out to the undecided pairs of all collections,
 * sorted and without duplicates. oj_answers_to_matches() does so itself. */
OJ_MUST_USE oj_status
oj_answers_gather_undecided(const struct oj_answers *answers, int64_t n_answers,
                            struct oj_matches *out, struct oj_error *err);

/** Value in oj_single_pairs.feature of a row with several pairs, which are in
 * struct oj_answers. */
#define OJ_ONE_OF_MANY (-2)

/** Answers of rows with at most one pair, indexed by row; smaller than struct
 * oj_answers. Owner; zeroed memory is a valid empty one. */
struct oj_single_pairs
{
    int32_t *feature; /**< [n_rows] join ordinal, -1 (no pair) or
                           OJ_ONE_OF_MANY */
    double *distance; /**< [n_rows] valid where feature is an ordinal */
    int64_t cap_feature, cap_distance;
};

/** Makes room for n_rows rows and sets the feature of each to -1 (no pair). */
OJ_MUST_USE oj_status oj_single_pairs_start(struct oj_single_pairs *ones,
                                            int64_t n_rows,
                                            struct oj_error *err);

void oj_single_pairs_free(struct oj_single_pairs *ones);

/** Makes the matches of a nearest join from ones and, for rows marked
 * OJ_ONE_OF_MANY, from the finished rankings in answers.  max_pairs: struct
 * oj_options.max_batch_pairs. */
OJ_MUST_USE oj_status oj_single_pairs_to_matches(
    const struct oj_single_pairs *ones, const struct oj_answers *answers,
    int64_t n_answers, int64_t n_rows, int64_t max_pairs,
    struct oj_matches *out, struct oj_error *err);

void oj_answers_free(struct oj_answers *answers);

#ifdef __cplusplus
}
#endif
#endif
