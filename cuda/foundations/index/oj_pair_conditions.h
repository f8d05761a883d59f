/** Conditions on pairs of a point and a join feature, by FIDs, classes and
 *  coordinates: those of oj_pair_filter.h, evaluated on columns. Join features
 *  are numbered by tie rank. */
#ifndef OJ_PAIR_CONDITIONS_H
#define OJ_PAIR_CONDITIONS_H

#include "../../../algs/foundations/kernels/oj_kernel.h"

/** The conditions and the columns that they read; owns nothing. A column that
 *  no condition reads may be NULL. */
struct oj_pair_rule
{
    int excludes_self; /**< 1: excludes pairs of equal FIDs */
    /** > 0 allows only pairs whose row has a smaller FID than the feature, < 0
     *  only pairs whose row has a larger one; 0 allows all pairs. */
    int unordered;
    int excludes_same; /**< 1: excludes pairs of equal points */
    const int64_t *row_fid, *fid;
    const int32_t *row_on_class, *on_class; /**< both set or both NULL */
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

/** Returns 1 if the conditions allow the pair of `row` and the join feature
 *  with rank `rank`. is_same is 1 if the two are equal points. */
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
