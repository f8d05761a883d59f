/** One pair of each input row, by a score: the greatest wins, and of equal ones
 *  the join feature that is first in tie order.
 *
 *  Scores are integers, so that they compare exactly and 64-bit fields lose
 *  nothing; numbers become integers of the same order.
 */
#ifndef OJ_PICK_H
#define OJ_PICK_H

#include "../../../flatten/arrays/oj_matches.h"

/** Less than every other score: NULL and NaN. */
#define OJ_NO_SCORE INT64_MIN

/** The order of numbers as integers; 0 and -0 are equal. */
int64_t oj_pick_score_of_double(double number);

/** An integer itself; INT64_MIN, which is taken, counts as the next one. */
static inline int64_t oj_pick_score_of_integer(int64_t number)
{
    return number == INT64_MIN ? INT64_MIN + 1 : number;
}

/** The score whose order is the other way round. */
static inline int64_t oj_pick_score_reversed(int64_t score)
{
    if (score == OJ_NO_SCORE)
        return OJ_NO_SCORE;
    return oj_pick_score_of_integer(-1 - score);
}

/** Where scores come from. All may be NULL: no pair is better than another. */
struct oj_pick_scores
{
    const int64_t *of_entry;   /**< [matches->n_entries], or NULL */
    const int64_t *of_feature; /**< [join features], or NULL */
    int in_tie_order;          /**< 1: entries of a row are in tie order */
    const int32_t *tie_rank; /**< else: [join features], or NULL: the ordinal */
};

/** Picks, from matches in either form, one pair of each row that has any; *out
 *  gets the one-to-one form. *out is not matches. */
OJ_MUST_USE oj_status oj_pick(const struct oj_matches *matches,
                              const struct oj_pick_scores *scores,
                              struct oj_matches *out, struct oj_error *err);

#endif
