/** Picks one pair of each input row: the one with the greatest score, and of
 *  equal scores the one whose join feature is first in tie order.
 *
 *  Scores are integers, so that 64-bit fields compare exactly; doubles are
 *  mapped to integers in their order.
 */
#ifndef OJ_PICK_H
#define OJ_PICK_H

#include "../../../flatten/arrays/oj_matches.h"

/** Score of NULL and NaN, smaller than all others. */
#define OJ_NO_SCORE INT64_MIN

/** Returns an integer for a double, so that the order of numbers is kept; 0 and
 * -0 are equal. */
int64_t oj_pick_score_of_double(double number);

/** Returns the score of an integer field. INT64_MIN is reserved for OJ_NO_SCORE
 * and becomes INT64_MIN + 1. */
static inline int64_t oj_pick_score_of_integer(int64_t number)
{
    return number == INT64_MIN ? INT64_MIN + 1 : number;
}

/** Returns the score for the reverse order; OJ_NO_SCORE stays the smallest. */
static inline int64_t oj_pick_score_reversed(int64_t score)
{
    if (score == OJ_NO_SCORE)
        return OJ_NO_SCORE;
    return oj_pick_score_of_integer(-1 - score);
}

/** The scores of entries or of join features. If both members are NULL, no pair
 * is better than another. */
struct oj_pick_scores
{
    const int64_t *of_entry;   /**< [matches->n_entries], or NULL */
    const int64_t *of_feature; /**< [join features], or NULL */
    int in_tie_order;          /**< 1: the entries of a row are in tie order */
    const int32_t *tie_rank;   /**< used if in_tie_order is 0: [join features];
                                    NULL: the ordinal is the rank */
};

/** Picks one pair of each row that has pairs. matches may have any form; *out,
 * which must be another object, is in one-to-one form. */
OJ_MUST_USE oj_status oj_pick(const struct oj_matches *matches,
                              const struct oj_pick_scores *scores,
                              struct oj_matches *out, struct oj_error *err);

#endif
