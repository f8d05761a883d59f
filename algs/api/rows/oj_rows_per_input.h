/** How many rows an input row can give: decided here for the columns of a row,
 *  for layers that are changed in place, and for layers that keep FIDs. */
#ifndef OJ_ROWS_PER_INPUT_H
#define OJ_ROWS_PER_INPUT_H

#include "../../../flatten/base/oj_output_row_modes.h"
#include "../../foundations/relation/oj_relation.h"

/** What becomes of the pairs of an input row. */
struct oj_row_choice
{
    enum oj_how how;
    int picks;      /**< 1: a rule of pick other than all */
    int one_to_one; /**< 1: at most one pair of a feature of either side stays
                     */
    int aggregates; /**< 1: the pairs are added up */
};

/** One row at most, or why there can be several. */
enum oj_rows_per_input
{
    OJ_ROWS_ONE,
    OJ_ROWS_SEVERAL,         /**< the join finds any number of features */
    OJ_ROWS_SEVERAL_BY_K,    /**< k is above 1 */
    OJ_ROWS_SEVERAL_BY_TIES, /**< k is 1, and features that tie are all taken */
};

enum oj_rows_per_input
oj_rows_per_input_find(const struct oj_relation *relation,
                       const struct oj_row_choice *choice);

/** 1 when the rows of an input row are numbered, in the order of the measure of
 *  their pairs, and can be more than one. */
int oj_rows_per_input_have_rank(const struct oj_relation *relation,
                                const struct oj_row_choice *choice);

#endif
