/** Which pairs of a point and a join feature may count at all, by FIDs, classes
 *  and coordinates: the conditions of oj_pair_filter.h where the two sides are
 *  columns.  Join features go by their rank in tie order.
 */
#ifndef OJ_PAIR_CONDITIONS_H
#define OJ_PAIR_CONDITIONS_H

#include "../../../algs/foundations/kernels/oj_kernel.h"

/** Borrows the columns; a column that no condition reads may be NULL. */
struct oj_pair_rule
{
    int excludes_self; /**< 1: no pairs of equal FIDs */
    int unordered;     /**< > 0: only FID of the row < FID of the feature; < 0:
                            only > */
    int excludes_same; /**< 1: no pairs of equal points */
    const int64_t *row_fid, *fid;
    const int32_t *row_on_class, *on_class; /**< both or none */
    const int32_t *row_exclude_class, *exclude_class;
};

OJ_FN struct oj_pair_rule oj_pair_rule_none(void)
{
    struct oj_pair_rule rule;
    rule.excludes_self = rule.unordered = rule.excludes_same = 0;
    rule.row_fid = rule.fid = 0;
    rule.row_on_class = rule.on_class = 0;
    rule.row_exclude_class = rule.exclude_class = 0;
    return rule;
}

/** 1 when row and the feature of that rank may be a pair; is_same: 1 when they
 *  are the same point. */
OJ_FN int oj_pair_rule_passes(const struct oj_pair_rule *rule, int64_t row,
                              int32_t rank, int is_same)
{
    if (rule->excludes_same && is_same)
        return 0;
    if (rule->row_fid != 0 && (rule->excludes_self || rule->unordered != 0))
    {
        int64_t a = rule->row_fid[row], b = rule->fid[rank];
        if ((rule->excludes_self && a == b) ||
            (rule->unordered > 0 && !(a < b)) ||
            (rule->unordered < 0 && !(a > b)))
            return 0;
    }
    if (rule->row_on_class != 0 &&
        (rule->row_on_class[row] < 0 ||
         rule->row_on_class[row] != rule->on_class[rank]))
        return 0;
    return rule->row_exclude_class == 0 || rule->row_exclude_class[row] < 0 ||
           rule->row_exclude_class[row] != rule->exclude_class[rank];
}

#endif
