/** One-to-one pairs: each feature of either side in one pair at most, the best
 *  pairs first.
 *
 *  The pairs of a join stand in one order: by similarity where one counts
 *  (the greatest first), then by difference where one counts, then by measure
 * (the least first, all pairs without one alike), then by input row, then in
 * tie order.  From the first to the last, a pair is taken when both its
 * features are free.
 *
 *  The answer is found without that order.  Both features of a pair rank it by
 *  the one order, so the pairs taken are those at which row after row arrives
 *  that asks for its best join feature, is turned away or turned out where that
 *  has a better pair, and asks for its next one (Gale and Shapley 1962); a pair
 *  worse than what its join feature has already is never kept.
 *
 *   answer --add--> lists of rows: label | pair pair pair | label | pair ...
 *                     in memory, then in a temporary file
 *   finish: the pairs that join features have, in the order of rows
 *
 *  Memory: 40 bytes per join feature, 24 per pair taken, and what may be held.
 *  Where labels do not ascend, 16 more per pair taken, and 16 while sorting.
 *  Time: O(pairs), beside the order within a row where its pairs are not in the
 *  order of measures.
 */
#ifndef OJ_ONE_TO_ONE_H
#define OJ_ONE_TO_ONE_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../../flatten/arrays/oj_matches.h"
#include "../../foundations/relation/oj_relation.h"

struct oj_one_to_one;

/** A pair that was taken. */
struct oj_one_pair
{
    int64_t label; /**< of the input row */
    int64_t join;  /**< ordinal of the join feature */
    double measure;
};

/** n_join: join features.
 *  most_held  bytes of lists in memory; what is more goes to a temporary file
 *  near       see oj_temporary_file_open(); outlives *out */
OJ_MUST_USE oj_status oj_one_to_one_open(int64_t n_join, int64_t most_held,
                                         const char *near,
                                         struct oj_one_to_one **out,
                                         struct oj_error *err);

/** What ranks the pairs of an answer before their measures: how similar texts
 *  and how different vectors are, where that is not the measure.  NULL: it does
 *  not.  Owner; zeroed memory is a valid empty one, and one object may be used
 *  for the answers of one relation (its memory is kept). */
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

/** Adds the pairs of the next rows; matches in any form, without shared lists.
 *  ordinal  [join features of the answer] their places in the join layer, or
 *           NULL: join_row itself
 *  label    [rows] by which a row is found afterwards, or NULL: its number,
 *           counted over all answers */
OJ_MUST_USE oj_status oj_one_to_one_add(struct oj_one_to_one *choice,
                                        const struct oj_matches *matches,
                                        const struct oj_pair_ranks *ranks,
                                        const int64_t *ordinal,
                                        const int64_t *label,
                                        struct oj_error *err);

/** After the last row. OJ_ERR_DATA: two rows of one label have a pair. */
OJ_MUST_USE oj_status oj_one_to_one_finish(struct oj_one_to_one *choice,
                                           struct oj_error *err);

/** Pairs that were taken, by label ascending; after oj_one_to_one_finish(). */
const struct oj_one_pair *
oj_one_to_one_pairs(const struct oj_one_to_one *choice, int64_t *n);

/** The pair of the row with this label, or NULL.
 *  hint  where to look first, at the start 0; becomes where the next one up is
 *  likely to be */
const struct oj_one_pair *oj_one_to_one_find(const struct oj_one_to_one *choice,
                                             int64_t label, int64_t *hint);

/** Accepts NULL. */
void oj_one_to_one_close(struct oj_one_to_one *choice);

#endif
