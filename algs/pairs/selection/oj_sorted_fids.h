/** The distinct FIDs of the join side in ascending order, which is the order of
 *  tie ranks. The condition "FID of the input < FID of the partner" is then a
 *  lower limit of the partner's tie rank, found once per row. */
#ifndef OJ_SORTED_FIDS_H
#define OJ_SORTED_FIDS_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/relation/oj_relation.h"

/** Owner of copy, which fid points to if the layer is not sorted by FID; zeroed
 * memory is valid. */
struct oj_sorted_fids
{
    int64_t n;          /**< 0: not needed, or FIDs repeat */
    const int64_t *fid; /**< [n] ascending, by tie rank */
    int64_t *copy;
};

/** Sets *out to the FIDs; *out stays empty if the relation compares no FIDs, or
 * if FIDs repeat. tie_rank: [features]; NULL: the ordinal is the rank. */
OJ_MUST_USE oj_status oj_sorted_fids_make(const struct oj_relation *relation,
                                          const struct oj_flat *join_side,
                                          const int32_t *tie_rank,
                                          struct oj_sorted_fids *out,
                                          struct oj_error *err);

void oj_sorted_fids_free(struct oj_sorted_fids *fids);

/** Returns the number of FIDs below fid. guess: a likely result, tested before
 * the binary search. */
int64_t oj_sorted_fids_count_below(const struct oj_sorted_fids *fids,
                                   int64_t fid, int64_t guess);

#endif
