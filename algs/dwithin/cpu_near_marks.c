#include "cpu_near_marks.h"

#include "../../flatten/base/oj_array.h"

#include <string.h>

oj_status oj_near_fids_make(const struct oj_relation *relation,
                            const struct oj_flat *join_side,
                            const int32_t *feature_of, struct oj_near_fids *out,
                            struct oj_error *err)
{
    const int64_t *fid = join_side->fid;
    int64_t n = join_side->n_features;
    memset(out, 0, sizeof *out);
    if (fid == NULL ||
        (!relation->exclude_self && relation->unordered_pairs == 0))
        return OJ_OK;
    if (feature_of != NULL)
    {
        OJ_NEW(out->copy, n, err);
        for (int64_t id = 0; id < n; id++)
            out->copy[id] = fid[feature_of[id]];
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

/* How many of the FIDs are below fid; guess: where the answer often is. */
static int64_t n_below(const struct oj_near_fids *fids, int64_t fid,
                       int64_t guess)
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

static int same_fids(const int64_t *a, const int64_t *b, int64_t n)
{
    return a == b || memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

oj_status oj_near_marks_make(const struct oj_pair_filter *filter,
                             const struct oj_near_fids *fids, int is_join_side,
                             struct oj_near_marks *out, int *asks_filter,
                             struct oj_error *err)
{
    const struct oj_relation *relation = filter->relation;
    const struct oj_flat *input = filter->input;
    int64_t n = input->n_features, at = -1;
    int asks_fids = relation->exclude_self || relation->unordered_pairs != 0;
    memset(out, 0, sizeof *out);
    *asks_filter = filter->is_needed;
    if (!asks_fids || fids->n == 0)
        return OJ_OK;
    *asks_filter = relation->exclude_same_geometry || input->on_class != NULL ||
                   input->exclude_class != NULL;
    out->kind = relation->unordered_pairs > 0   ? OJ_NEAR_FROM
                : relation->unordered_pairs < 0 ? OJ_NEAR_TO
                                                : OJ_NEAR_EXCEPT;
    if (is_join_side && same_fids(input->fid, filter->join_side->fid, n))
        return OJ_OK;
    OJ_NEW(out->mark, n, err);
    for (int64_t row = 0; row < n; row++)
    {
        int is_there;
        at = n_below(fids, input->fid[row], at + 1);
        is_there = at < fids->n && fids->fid[at] == input->fid[row];
        if (out->kind == OJ_NEAR_FROM)
            out->mark[row] = (int32_t)(at + is_there);
        else if (out->kind == OJ_NEAR_TO)
            out->mark[row] = (int32_t)at;
        else
            out->mark[row] = is_there ? (int32_t)at : -1;
    }
    return OJ_OK;
}

void oj_near_marks_free(struct oj_near_marks *marks)
{
    oj_free(marks->mark);
    memset(marks, 0, sizeof *marks);
}

void oj_near_fids_free(struct oj_near_fids *fids)
{
    oj_free(fids->copy);
    memset(fids, 0, sizeof *fids);
}
