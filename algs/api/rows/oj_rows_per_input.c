#include "oj_rows_per_input.h"

enum oj_rows_per_input
oj_rows_per_input_find(const struct oj_relation *relation,
                       const struct oj_row_choice *choice)
{
    if (choice->how == OJ_HOW_SEMI || choice->how == OJ_HOW_ANTI ||
        choice->picks || choice->one_to_one || choice->aggregates)
        return OJ_ROWS_ONE;
    if (!oj_relation_sorts_by_measure(relation))
        return OJ_ROWS_SEVERAL;
    if (relation->k > 1)
        return OJ_ROWS_SEVERAL_BY_K;
    return relation->ties == OJ_TIES_ALL ? OJ_ROWS_SEVERAL_BY_TIES
                                         : OJ_ROWS_ONE;
}

int oj_rows_per_input_have_rank(const struct oj_relation *relation,
                                const struct oj_row_choice *choice)
{
    const enum oj_rows_per_input rows =
        oj_rows_per_input_find(relation, choice);
    const int is_every_pair =
        oj_op_get(relation->op)->k != 1 && relation->k >= OJ_EVERY_PAIR;
    return !is_every_pair &&
           (rows == OJ_ROWS_SEVERAL_BY_K || rows == OJ_ROWS_SEVERAL_BY_TIES);
}

enum oj_enough_pairs
oj_rows_per_input_enough_pairs(const struct oj_relation *relation,
                               const struct oj_row_choice *choice)
{
    const int is_choice =
        choice->how == OJ_HOW_SEMI || choice->how == OJ_HOW_ANTI;
    if (choice->one_to_one || oj_how_has_join_rows(choice->how) ||
        (!is_choice && !choice->takes_first))
        return OJ_ENOUGH_ALL;
    if (oj_relation_is_of_equal_attributes(relation))
        return OJ_ENOUGH_FIRST;
    if (is_choice)
        return OJ_ENOUGH_ANY;
    return choice->aggregates || choice->counts_pairs ||
                   oj_relation_sorts_by_measure(relation)
               ? OJ_ENOUGH_ALL
               : OJ_ENOUGH_FIRST;
}
