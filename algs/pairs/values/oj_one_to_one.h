/** Selects pairs so that each feature of either side is in at most one pair:
 *  greedily, best pair first (OJ_ONE_TO_ONE_GREEDY), or the maximum number of
 *  pairs and, among such selections, one of minimum sum (OJ_ONE_TO_ONE_BEST).
 *
 *  All pairs of the join have one order: by similarity if texts are compared
 *  (greatest first), by difference if vectors are compared, by measure
 *  (smallest first; pairs without one are equal), by input row, by tie rank.
 *  The greedy rule goes through the pairs in this order and accepts a pair if
 *  both its features are free.
 *
 *  The greedy selection is found without sorting all pairs, as a stable
 *  matching (Gale and Shapley 1962): each row proposes to its best join
 *  feature; the feature keeps the better of two rows, and the rejected row
 *  proposes to its next one. Since rows and features rank pairs by one order,
 *  the matching is that of the greedy rule. A pair worse than the present one
 *  of its join feature is never stored.
 *
 *  The best pairs are found group by group (oj_least_matching.h); a group
 *  consists of all pairs that are connected by common features. All pairs of
 *  the join are stored before the search. A group of more than
 *  OJ_ONE_TO_ONE_MOST_GROUP_PAIRS pairs keeps its greedy ones. The sums are, in
 *  this order, of similarities, differences, measures. Of selections with equal
 *  sums, the chosen one gives the first row in which they differ the pair that
 *  comes first in the order.
 *
 *   answer --add--> lists of rows: label | pair pair pair | label | pair ...
 *                     in memory, then in a temporary file
 *   finish: the present pairs of all join features, in the order of rows
 *
 *  Memory: 40 bytes per join feature, 24 per accepted pair, and most_held. If
 *  labels do not ascend, 16 more per accepted pair, and 16 while sorting. Time:
 *  O(pairs), and sorting within rows whose pairs are not sorted by measure. The
 *  best pairs need 28 bytes more per join feature, most_held again, and the
 *  memory of one group; the pairs are read once, and once more for each half of
 *  most_held that they fill. */
#ifndef OJ_ONE_TO_ONE_H
#define OJ_ONE_TO_ONE_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/arrays/oj_matches.h"
#include "../../foundations/relation/oj_relation.h"

struct oj_one_to_one;

/** Rule that selects the pairs. */
enum oj_one_to_one_rule
{
    OJ_ONE_TO_ONE_NONE = 0, /**< all pairs are kept, without a selection
                                 object */
    OJ_ONE_TO_ONE_GREEDY,
    OJ_ONE_TO_ONE_BEST
};

/** Maximum number of pairs of a group for which the best pairs are searched. */
#define OJ_ONE_TO_ONE_MOST_GROUP_PAIRS INT64_C(1000000)

/** An accepted pair. */
struct oj_one_pair
{
    int64_t label; /**< label of the input row */
    int64_t join;  /**< ordinal of the join feature */
    double measure;
};

/** Creates an empty selection.
 *  n_join     number of join features
 *  most_held  maximum bytes of lists in memory; more go to a temporary file
 *  near       see oj_temporary_file_open(); outlives *out */
OJ_MUST_USE oj_status oj_one_to_one_open(int64_t n_join,
                                         enum oj_one_to_one_rule rule,
                                         int64_t most_held, const char *near,
                                         struct oj_one_to_one **out,
                                         struct oj_error *err);

/** Values that rank a pair before its measure: similarity of texts and
 * difference of vectors. NULL: not compared, or equal to the measure. Owner;
 * zeroed memory is a valid empty one.  One object may be reused for all answers
 * of a relation (its memory is kept). */
struct oj_pair_ranks
{
    double *similarity, *difference; /**< [entries of the matches] */
    int64_t cap_similarity, cap_difference;
};

OJ_MUST_USE oj_status oj_pair_ranks_make(
    const struct oj_relation *relation, const struct oj_flat *input,
    const struct oj_flat *join_side, const struct oj_matches *matches,
    int n_threads, struct oj_pair_ranks *ranks, struct oj_error *err);

void oj_pair_ranks_free(struct oj_pair_ranks *ranks);

/** Adds the pairs of the next rows; matches may have any form but scattered
 * lists.
 *  ordinal  ordinal[join_row] is the feature's ordinal in the join layer; NULL:
 *           join_row is this ordinal
 *  label    [rows] by which oj_one_to_one_find_pair() finds a row; NULL:
 *           numbers of rows, counted over all answers */
OJ_MUST_USE oj_status oj_one_to_one_add_matches(
    struct oj_one_to_one *choice, const struct oj_matches *matches,
    const struct oj_pair_ranks *ranks, const int64_t *ordinal,
    const int64_t *label, struct oj_error *err);

/** Ends the input and selects the pairs. Fails with OJ_ERR_DATA if two rows
 * with pairs have equal labels. cancel  nonzero stops the search; may be NULL
 */
OJ_MUST_USE oj_status oj_one_to_one_choose_pairs(struct oj_one_to_one *choice,
                                                 const int *cancel,
                                                 struct oj_error *err);

/** Sets *n_groups to the number of groups that were too large for the best
 * pairs, and *n_pairs to the number of their pairs. Valid after
 * oj_one_to_one_choose_pairs(). */
void oj_one_to_one_large_groups(const struct oj_one_to_one *choice,
                                int64_t *n_groups, int64_t *n_pairs);

/** Returns the accepted pairs, ascending by label, and sets *n to their number.
 * Valid after oj_one_to_one_choose_pairs(). */
const struct oj_one_pair *
oj_one_to_one_pairs(const struct oj_one_to_one *choice, int64_t *n);

/** Returns the pair of the row with this label, or NULL. *hint must be 0 before
 * the first call; it speeds up calls with ascending labels. */
const struct oj_one_pair *
oj_one_to_one_find_pair(const struct oj_one_to_one *choice, int64_t label,
                        int64_t *hint);

/** Accepts NULL. */
void oj_one_to_one_close(struct oj_one_to_one *choice);

#endif
