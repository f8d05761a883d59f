#include "oj_sorted_fids.h"

#include "../../../flatten/base/oj_alloc.h"

#include <string.h>

oj_status oj_sorted_fids_make(const struct oj_relation *relation,
                              const struct oj_flat *join_side,
                              const int32_t *tie_rank,
                              struct oj_sorted_fids *out, struct oj_error *err)
{
    const int64_t *fid = join_side->fid;
    int64_t n = join_side->n_features;
    memset(out, 0, sizeof *out);
    if (fid == NULL ||
        (!relation->exclude_self && relation->unordered_pairs == 0))
        return OJ_OK;
    if (tie_rank != NULL)
    {
        OJ_NEW(out->copy, n, err);
        for (int64_t feature = 0; feature < n; feature++)
            out->copy[tie_rank[feature]] = fid[feature];
        fid = out->copy;
    }
    for (int64_t i = 1; i < n; i++)
    {
        if (fid[i] <= fid[i - 1])
            return OJ_OK;
    }
    out->fid = fid;
    out->n = n;
    return OJ_OK;
}

void oj_sorted_fids_free(struct oj_sorted_fids *fids)
{
    oj_free(fids->copy);
    memset(fids, 0, sizeof *fids);
}

int64_t oj_sorted_fids_count_below(const struct oj_sorted_fids *fids,
                                   int64_t fid, int64_t guess)
{
    int64_t low = 0, high = fids->n;
    if (guess <= fids->n && (guess == 0 || fids->fid[guess - 1] < fid) &&
        (guess == fids->n || fids->fid[guess] >= fid))
        return guess;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (fids->fid[middle] < fid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
