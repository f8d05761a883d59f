#include "oj_unmatched.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_message.h"

#include <math.h>
#include <string.h>

oj_status oj_unmatched_open(const struct oj_job *job,
                            struct oj_unmatched *unmatched,
                            struct oj_error *err)
{
    int64_t n = job->join_side->counts.n_rows;
    unmatched->matched = oj_calloc(n / 64 + 1, sizeof *unmatched->matched);
    if (unmatched->matched == NULL)
        return oj_fail_nomem(err, n / 64 + 1, sizeof *unmatched->matched);
    unmatched->n_features = n;
    return OJ_OK;
}

void oj_unmatched_mark(struct oj_unmatched *unmatched,
                       const struct oj_matches *matches,
                       const struct oj_answer_side *side)
{
    if (unmatched->matched == NULL)
        return;
    for (int64_t i = 0; i < matches->n_entries; i++)
    {
        int64_t feature = matches->join_row[i];
        if (feature < 0)
            continue;
        if (side->ordinal != NULL)
            feature = side->ordinal[feature];
        unmatched->matched[feature / 64] |= UINT64_C(1) << feature % 64;
    }
}

int64_t oj_unmatched_count(const struct oj_unmatched *unmatched)
{
    int64_t n_words = unmatched->n_features / 64 + 1, n_matched = 0;
    if (unmatched->matched == NULL)
        return 0;
    for (int64_t i = 0; i < n_words; i++)
        n_matched += __builtin_popcountll(unmatched->matched[i]);
    return unmatched->n_features - n_matched;
}

void oj_unmatched_end_reading(struct oj_unmatched *unmatched)
{
    oj_batch_free(&unmatched->batch);
    oj_layer_reader_close(unmatched->reader);
    unmatched->reader = NULL;
    oj_matches_free(&unmatched->matches);
    oj_free(unmatched->is_matched);
    unmatched->is_matched = NULL;
    unmatched->cap_is_matched = 0;
}

void oj_unmatched_close(struct oj_unmatched *unmatched)
{
    oj_unmatched_end_reading(unmatched);
    oj_free(unmatched->matched);
    memset(unmatched, 0, sizeof *unmatched);
}

/* ---- the second pass ---------------------------------------------------- */

static oj_status fail_changed(const struct oj_job *job, struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_DATA,
                   "the join layer '%s' has other rows, or another order, when "
                   "it is read again for those that match nothing",
                   job->join.name);
}

/* What is written of them would not be what was joined. */
static oj_status check_files(const struct oj_job *job, struct oj_error *err)
{
    if (!job->join_files.is_settled || !oj_join_files_changed(&job->join_files))
        return OJ_OK;
    return oj_fail(err, OJ_ERR_DATA,
                   "the join layer '%s' was changed while it was read; read it "
                   "again",
                   job->join.name);
}

/* The FIDs that were read first, where they are still there. */
static oj_status check_batch(const struct oj_unmatched *unmatched,
                             const struct oj_job *job, struct oj_error *err)
{
    const struct oj_flat_buf *before = &job->join_side->buf;
    const struct oj_batch *batch = &unmatched->batch;
    int64_t first = batch->first_row, n = batch->n_rows;
    if (first + n > unmatched->n_features)
        return fail_changed(job, err);
    if (before->fid != NULL && first + n <= before->n_features &&
        memcmp(before->fid + first, batch->flat.fid,
               (size_t)n * sizeof *before->fid) != 0)
        return fail_changed(job, err);
    return OJ_OK;
}

static oj_status fill_batch(struct oj_unmatched *unmatched,
                            struct oj_error *err)
{
    int64_t n = unmatched->batch.n_rows;
    OJ_TRY(oj_reserve(&unmatched->is_matched, 0, n, &unmatched->cap_is_matched,
                      sizeof *unmatched->is_matched, err));
    OJ_TRY(oj_matches_reserve(&unmatched->matches, n, n, 0, err));
    for (int64_t i = 0; i < n; i++)
    {
        int64_t feature = unmatched->batch.first_row + i;
        unmatched->is_matched[i] =
            unmatched->matched[feature / 64] >> feature % 64 & 1;
        unmatched->matches.join_row[i] = unmatched->is_matched[i] ? 0 : -1;
        unmatched->matches.measure[i] = (double)NAN;
    }
    return OJ_OK;
}

static oj_status open_reader(struct oj_unmatched *unmatched,
                             const struct oj_job *job, struct oj_error *err)
{
    struct oj_read_options reading = oj_job_read_options(job, &job->join);
    reading.keep_attributes = 1;
    reading.skipped = NULL; /* not by the join, but these rows are written */
    OJ_TRY(check_files(job, err));
    return oj_layer_reader_open(job->join.layer, &reading, &unmatched->reader,
                                err);
}

oj_status oj_unmatched_next(struct oj_unmatched *unmatched,
                            const struct oj_job *job, int *there,
                            struct oj_error *err)
{
    *there = 0;
    if (unmatched->matched == NULL)
        return OJ_OK;
    if (unmatched->reader == NULL)
        OJ_TRY(open_reader(unmatched, job, err));
    OJ_TRY(oj_layer_reader_next(unmatched->reader, &unmatched->batch, err));
    *there = unmatched->batch.n_rows > 0;
    if (*there)
    {
        OJ_TRY(check_batch(unmatched, job, err));
        return fill_batch(unmatched, err);
    }
    if (oj_layer_reader_counts(unmatched->reader)->n_rows !=
        unmatched->n_features)
        return fail_changed(job, err);
    return check_files(job, err);
}
