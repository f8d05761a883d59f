/** The FIDs of the join side in ascending order, where they are distinct: in
 * the order of tie ranks.  Then "FID of the input < FID of the partner" is "the
 *  partner's tie rank is at least so much", found once for each row. */
#ifndef OJ_SORTED_FIDS_H
#define OJ_SORTED_FIDS_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/relation/oj_relation.h"

/** Owner of copy; zeroed memory is valid. */
struct oj_sorted_fids
{
    int64_t n;          /**< 0: not needed, or FIDs repeat */
    const int64_t *fid; /**< [n] ascending, by tie rank */
    int64_t *copy;
};

/** Empty where the relation asks for no FIDs, or where they repeat. tie_rank:
 * [features] or NULL: the ordinal. */
OJ_MUST_USE oj_status oj_sorted_fids_make(const struct oj_relation *relation,
                                          const struct oj_flat *join_side,
                                          const int32_t *tie_rank,
                                          struct oj_sorted_fids *out,
                                          struct oj_error *err);

void oj_sorted_fids_free(struct oj_sorted_fids *fids);

/** The number of FIDs below fid; guess: where the answer often is. */
int64_t oj_sorted_fids_count_below(const struct oj_sorted_fids *fids,
                                   int64_t fid, int64_t guess);

#endif
