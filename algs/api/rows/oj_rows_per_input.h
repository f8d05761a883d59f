/** Determines whether an input row can give more than one row of output.
 * Columns, changes in place and preserved FIDs depend on it. */
#ifndef OJ_ROWS_PER_INPUT_H
#define OJ_ROWS_PER_INPUT_H

#include "../../../flatten/base/oj_output_row_modes.h"
#include "../../foundations/relation/oj_relation.h"

/** Options that reduce the number of rows of an input row. */
struct oj_row_choice
{
    enum oj_how how;
    int picks;        /**< 1: pick has a rule */
    int one_to_one;   /**< 1: at most one pair per feature of either side */
    int aggregates;   /**< 1: pairs are aggregated */
    int takes_first;  /**< 1: pick takes the first pair, or all aggregates are
                           numbers of pairs */
    int counts_pairs; /**< 1: a column has the number of pairs of the row */
};

/** OJ_ROWS_ONE: an input row gives at most one row. The other values are
 * reasons why it can give several. */
enum oj_rows_per_input
{
    OJ_ROWS_ONE,
    OJ_ROWS_SEVERAL,         /**< the join can find any number of features */
    OJ_ROWS_SEVERAL_BY_K,    /**< k is above 1 */
    OJ_ROWS_SEVERAL_BY_TIES, /**< k is 1, but ties give further pairs */
};

enum oj_rows_per_input
oj_rows_per_input_find(const struct oj_relation *relation,
                       const struct oj_row_choice *choice);

/** Returns 1 if rows have a rank: an input row can have several pairs, ordered
 * by measure, and the op does not by default list every pair (k OJ_EVERY_PAIR).
 */
int oj_rows_per_input_have_rank(const struct oj_relation *relation,
                                const struct oj_row_choice *choice);

/** Returns which pairs of an input row are enough to make its rows (member
 * enough_pairs of struct oj_relation). */
enum oj_enough_pairs
oj_rows_per_input_enough_pairs(const struct oj_relation *relation,
                               const struct oj_row_choice *choice);

#endif
