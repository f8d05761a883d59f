/** Conditions on FIDs as intervals of ids, for pairs of points.
 *
 *  Ids of the join side are in the order of its FIDs where these are all
 *  different.  Then "FID of the input < FID of the partner" is "the partner's
 *  id is at least so much", found once for each row; the same for > and for
 *  "not the same FID".
 */
#ifndef CPU_NEAR_MARKS_H
#define CPU_NEAR_MARKS_H

#include "../pairs/oj_pairs.h"
#include "cpu_near_rows.h"

/** The join side's FIDs by id; owner of copy; zeroed memory is valid. */
struct oj_near_fids
{
    int64_t n;          /**< 0: not needed, or FIDs repeat */
    const int64_t *fid; /**< [n] ascending */
    int64_t *copy;
};

enum oj_near_mark
{
    OJ_NEAR_NO_MARK = 0,
    OJ_NEAR_FROM, /**< ids from the mark on */
    OJ_NEAR_TO,   /**< ids below the mark */
    OJ_NEAR_EXCEPT
};

/** What each row of a batch says; owner of mark; zeroed memory is valid. */
struct oj_near_marks
{
    enum oj_near_mark kind;
    int32_t *mark; /**< [rows], or NULL: the input is the join side, and a row's
                        own id says it */
};

/** feature_of: [features] ordinal by id, or NULL: the same. */
OJ_MUST_USE oj_status oj_near_fids_make(const struct oj_relation *relation,
                                        const struct oj_flat *join_side,
                                        const int32_t *feature_of,
                                        struct oj_near_fids *out,
                                        struct oj_error *err);

/** is_join_side  1 when the two sides have the same points, row by row
 *  *asks_filter  1 when more has to be asked of each pair than its id */
OJ_MUST_USE oj_status oj_near_marks_make(const struct oj_pair_filter *filter,
                                         const struct oj_near_fids *fids,
                                         int is_join_side,
                                         struct oj_near_marks *out,
                                         int *asks_filter,
                                         struct oj_error *err);

/** id: of the row in the join side, where the input is the join side. */
static inline void oj_near_marks_apply(const struct oj_near_marks *marks,
                                       int64_t row, int32_t id,
                                       struct oj_near_query *query)
{
    int32_t mark;
    if (marks->kind == OJ_NEAR_NO_MARK)
        return;
    mark = marks->mark != NULL           ? marks->mark[row]
           : marks->kind == OJ_NEAR_FROM ? id + 1
                                         : id;
    if (marks->kind == OJ_NEAR_FROM)
        query->from = mark;
    else if (marks->kind == OJ_NEAR_TO)
        query->end = mark;
    else
        query->except = mark;
}

void oj_near_marks_free(struct oj_near_marks *marks);
void oj_near_fids_free(struct oj_near_fids *fids);

#endif
