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

void oj_unmatched_close(struct oj_unmatched *unmatched)
{
    oj_free(unmatched->matched);
    memset(unmatched, 0, sizeof *unmatched);
}

/* ---- the second pass ---------------------------------------------------- */

struct pass
{
    const struct oj_unmatched *unmatched;
    const struct oj_job *job;
    struct oj_layer_reader *reader;
    struct oj_batch batch;
    uint8_t *is_matched; /* of the batch */
    int64_t cap_is_matched;
    struct oj_matches matches; /* the same, as an answer */
};

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
static oj_status check_batch(const struct pass *pass, struct oj_error *err)
{
    const struct oj_flat_buf *before = &pass->job->join_side->buf;
    int64_t first = pass->batch.first_row, n = pass->batch.n_rows;
    if (first + n > pass->unmatched->n_features)
        return fail_changed(pass->job, err);
    if (before->fid != NULL && first + n <= before->n_features &&
        memcmp(before->fid + first, pass->batch.flat.fid,
               (size_t)n * sizeof *before->fid) != 0)
        return fail_changed(pass->job, err);
    return OJ_OK;
}

static oj_status fill_batch(struct pass *pass, struct oj_error *err)
{
    int64_t n = pass->batch.n_rows;
    OJ_TRY(oj_reserve(&pass->is_matched, 0, n, &pass->cap_is_matched,
                      sizeof *pass->is_matched, err));
    OJ_TRY(oj_matches_reserve(&pass->matches, n, n, 0, err));
    for (int64_t i = 0; i < n; i++)
    {
        int64_t feature = pass->batch.first_row + i;
        pass->is_matched[i] =
            pass->unmatched->matched[feature / 64] >> feature % 64 & 1;
        pass->matches.join_row[i] = pass->is_matched[i] ? 0 : -1;
        pass->matches.measure[i] = (double)NAN;
    }
    return OJ_OK;
}

static oj_status read_all(struct pass *pass,
                          const struct oj_unmatched_sink *sink,
                          struct oj_error *err)
{
    struct oj_read_options reading =
        oj_job_read_options(pass->job, &pass->job->join);
    reading.keep_attributes = 1;
    reading.skipped = NULL; /* not by the join, but these rows are written */
    OJ_TRY(check_files(pass->job, err));
    OJ_TRY(oj_layer_reader_open(pass->job->join.layer, &reading, &pass->reader,
                                err));
    for (;;)
    {
        OJ_TRY(oj_layer_reader_next(pass->reader, &pass->batch, err));
        if (pass->batch.n_rows == 0)
            break;
        OJ_TRY(check_batch(pass, err));
        OJ_TRY(fill_batch(pass, err));
        OJ_TRY(sink->take(sink->user, &pass->batch, pass->is_matched,
                          &pass->matches, err));
    }
    if (oj_layer_reader_counts(pass->reader)->n_rows !=
        pass->unmatched->n_features)
        return fail_changed(pass->job, err);
    return check_files(pass->job, err);
}

oj_status oj_unmatched_read(const struct oj_unmatched *unmatched,
                            const struct oj_job *job,
                            const struct oj_unmatched_sink *sink,
                            struct oj_error *err)
{
    struct pass pass = {0};
    oj_status status;
    pass.unmatched = unmatched;
    pass.job = job;
    status = read_all(&pass, sink, err);
    oj_batch_free(&pass.batch);
    oj_layer_reader_close(pass.reader);
    oj_matches_free(&pass.matches);
    oj_free(pass.is_matched);
    return status;
}
