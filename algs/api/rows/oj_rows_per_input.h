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
    int picks;       /**< 1: pick has a rule */
    int one_to_one;  /**< 1: at most one pair per feature of either side */
    int aggregates;  /**< 1: pairs are aggregated */
    int takes_first; /**< 1: pick takes the first pair, or all aggregates are
                          numbers of pairs */
};

/** At most one row per input row; otherwise the reason why there can be
 * several. */
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

/** Returns 1 if rows have a rank, because an input row can have several pairs,
 * ordered by measure. */
int oj_rows_per_input_have_rank(const struct oj_relation *relation,
                                const struct oj_row_choice *choice);

/** Returns 1 if the first pair of each input row and the number of its pairs
 * are enough to make the rows, and the join can return these alone (first_only
 * of struct oj_relation). */
int oj_rows_per_input_need_first_only(const struct oj_relation *relation,
                                      const struct oj_row_choice *choice);

#endif
