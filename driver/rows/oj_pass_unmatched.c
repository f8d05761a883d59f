#include "oj_pass_unmatched.h"

#include "../../flatten/arrays/oj_matches.h"
#include "../../flatten/base/oj_alloc.h"

#include <math.h>
#include <string.h>

oj_status oj_pass_unmatched_open(const struct oj_job *job,
                                 struct oj_pass_unmatched *u,
                                 struct oj_error *err)
{
    int64_t n = job->join_side->counts.n_rows;
    oj_pass_unmatched_close(u);
    OJ_NEW_ZEROED(u->matched, n / 64 + 1, err);
    u->n_features = n;
    return OJ_OK;
}

void oj_pass_unmatched_mark(struct oj_pass_unmatched *u,
                            const struct oj_matches *matches,
                            const struct oj_answer_side *side)
{
    if (u->matched == NULL)
        return;
    for (int64_t i = 0; i < matches->n_entries; i++)
    {
        int64_t feature = matches->join_row[i];
        if (feature < 0)
            continue;
        if (side->ordinal != NULL)
            feature = side->ordinal[feature];
        u->matched[feature / 64] |= UINT64_C(1) << feature % 64;
    }
}

int64_t oj_pass_unmatched_count(const struct oj_pass_unmatched *u)
{
    int64_t n_words = u->n_features / 64 + 1, n_matched = 0;
    if (u->matched == NULL)
        return 0;
    for (int64_t i = 0; i < n_words; i++)
        n_matched += __builtin_popcountll(u->matched[i]);
    return u->n_features - n_matched;
}

static oj_status fail_join_rows_changed(const struct oj_job *job,
                                        struct oj_error *err)
{
    return oj_source_fail_changed(
        &job->join,
        "has other rows, or another order, than when it was first read; for "
        "rows that match nothing it is read twice, so it must not change "
        "meanwhile",
        err);
}

oj_status oj_pass_unmatched_batch(struct oj_pass_unmatched *u,
                                  const struct oj_job *job,
                                  const struct oj_batch *batch,
                                  struct oj_error *err)
{
    const struct oj_flat_buf *before = &job->join_side->buf;
    int64_t first = batch->first_row, n = batch->n_rows;
    if (first + n > u->n_features ||
        (before->fid != NULL && first + n <= before->n_features &&
         memcmp(before->fid + first, batch->flat.fid,
                (size_t)n * sizeof *before->fid) != 0))
        return fail_join_rows_changed(job, err);
    OJ_ROOM(u->is_matched, 0, n, u->cap_is_matched, err);
    OJ_TRY(oj_matches_reserve(&u->matches, n, n, 0, err));
    for (int64_t i = 0; i < n; i++)
    {
        int64_t feature = first + i;
        u->is_matched[i] = u->matched[feature / 64] >> feature % 64 & 1;
        u->matches.join_row[i] = u->is_matched[i] ? 0 : -1;
        u->matches.measure[i] = (double)NAN;
    }
    return OJ_OK;
}

oj_status oj_pass_unmatched_check_row_count(const struct oj_pass_unmatched *u,
                                            const struct oj_job *job,
                                            int64_t n_rows,
                                            struct oj_error *err)
{
    return n_rows == u->n_features ? OJ_OK : fail_join_rows_changed(job, err);
}

void oj_pass_unmatched_close(struct oj_pass_unmatched *u)
{
    const struct oj_pass_unmatched closed = {0};
    oj_matches_free(&u->matches);
    oj_free(u->is_matched);
    oj_free(u->matched);
    *u = closed;
}
