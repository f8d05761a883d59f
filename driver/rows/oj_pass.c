#include "oj_pass.h"

#include "../base/oj_cancel.h"

#include <string.h>

/* ---- plans -------------------------------------------------------------- */

static oj_status plan_aggregates(struct oj_pass *pass, struct oj_error *err)
{
    struct oj_job *job = &pass->job;
    unsigned char *want = pass->rows.request.want;
    if (job->command->aggregates == NULL)
        return OJ_OK;
    OJ_TRY(
        oj_aggregation_open(job->command, &job->join, &pass->aggregation, err));
    if (oj_aggregation_needs_overlap(pass->aggregation))
        want[OJ_PAIR_OVERLAP_AREA] = want[OJ_PAIR_OVERLAP_LENGTH] =
            want[OJ_PAIR_JOIN_AREA] = 1;
    pass->streams_join = oj_aggregate_streams_join(job, pass->aggregation);
    return OJ_OK;
}

oj_status oj_pass_open(const struct oj_command *command, enum oj_pass_use use,
                       struct oj_pass *pass, struct oj_error *err)
{
    if (use == OJ_PASS_ONCE)
        OJ_TRY(oj_job_open(command, &pass->job, err));
    else
        OJ_TRY(oj_job_open_shared(command, &pass->job, err));
    OJ_TRY(oj_rows_plan(&pass->job, &pass->rows, err));
    return plan_aggregates(pass, err);
}

struct oj_schema_request oj_pass_request(const struct oj_pass *pass,
                                         OGRwkbGeometryType type)
{
    const struct oj_command *command = pass->job.command;
    struct oj_schema_request request = {0};
    request.input = &pass->job.input;
    request.join = &pass->job.join;
    request.with_input = 1;
    request.with_join = command->how != OJ_HOW_SEMI &&
                        command->how != OJ_HOW_ANTI &&
                        pass->aggregation == NULL;
    request.own = pass->rows.own;
    request.n_own = pass->rows.n_own;
    if (pass->aggregation != NULL)
        request.own = oj_aggregation_columns(pass->aggregation, &request.n_own);
    request.one_row_per_input = oj_rows_one_per_input(&pass->rows);
    request.has_other_rows = oj_rows_has_unmatched_join(&pass->rows);
    request.type = type;
    request.prefix = command->prefix;
    return request;
}

enum oj_how oj_pass_how(const struct oj_pass *pass)
{
    enum oj_how how = (enum oj_how)pass->job.command->how;
    return how == OJ_HOW_RIGHT  ? OJ_HOW_INNER
           : how == OJ_HOW_FULL ? OJ_HOW_LEFT
                                : how;
}

/* A row without pair is one, too. */
int64_t oj_pass_most_rows(const struct oj_pass *pass)
{
    const struct oj_relation *relation = &pass->job.relation;
    int64_t n = pass->job.join_side->counts.n_rows;
    if (oj_rows_one_per_input(&pass->rows))
        return 1;
    if (relation->op == OJ_OP_NEAREST && relation->ties == OJ_TIES_FIRST &&
        relation->k < n)
        n = relation->k;
    return n > 1 ? n : 1;
}

void oj_pass_fill_write_options(const struct oj_pass *pass,
                                struct oj_write_options *options)
{
    options->how = oj_pass_how(pass);
    options->join_side = &pass->job.join_side->flat;
    options->join_table = pass->job.join_side->table;
    options->cancel = oj_cancel_flag();
    options->aggregate = oj_aggregation_value;
    options->aggregate_user = pass->aggregation;
    oj_rows_fill_write_options(&pass->rows, options);
}

/* ---- the join side ------------------------------------------------------ */

static oj_status prepare(struct oj_pass *pass, enum oj_pass_use use,
                         struct oj_error *err)
{
    if (use != OJ_PASS_SOME && pass->streams_join)
        return oj_aggregate_stream_open(&pass->job, pass->aggregation,
                                        &pass->stream, err);
    if (use == OJ_PASS_ONCE)
        return oj_job_prepare(&pass->job, err);
    if (pass->like != NULL && pass->like->is_prepared &&
        pass->like->stream == NULL)
        return oj_job_prepare_like(&pass->job, &pass->like->job, err);
    return oj_job_prepare_shared(&pass->job, err);
}

oj_status oj_pass_prepare(struct oj_pass *pass, enum oj_pass_use use,
                          struct oj_error *err)
{
    if (pass->is_prepared && (use != OJ_PASS_SOME || pass->stream == NULL))
        return OJ_OK;
    /* What was added up for all rows is no help for one of them. */
    oj_aggregate_stream_close(pass->stream);
    pass->stream = NULL;
    pass->is_prepared = pass->is_started = 0;
    OJ_TRY(prepare(pass, use, err));
    pass->is_prepared = 1;
    return OJ_OK;
}

oj_status oj_pass_start(struct oj_pass *pass, int marks, struct oj_error *err)
{
    if (!pass->is_started)
        OJ_TRY(oj_rows_open(&pass->rows, err));
    pass->is_started = 1;
    if (!marks && !oj_rows_has_unmatched_join(&pass->rows))
        return OJ_OK;
    oj_unmatched_close(&pass->unmatched);
    return oj_unmatched_open(&pass->job, &pass->unmatched, err);
}

/* ---- answers ------------------------------------------------------------ */

/* Of aggregates, one row per input row. */
static oj_status take_aggregates(struct oj_pass *pass, struct oj_answer *answer,
                                 struct oj_error *err)
{
    if (pass->stream != NULL)
    {
        oj_aggregation_set_first_row(
            pass->aggregation, answer->batch->first_row + answer->first_row);
        return OJ_OK;
    }
    OJ_TRY(oj_aggregation_answer(pass->aggregation, answer->pairs,
                                 &answer->side, answer->values, err));
    answer->matches = oj_aggregation_matches(pass->aggregation);
    return OJ_OK;
}

static oj_status make_answer(struct oj_pass *pass,
                             const struct oj_pipeline_part *part,
                             const struct oj_matches *pairs,
                             struct oj_answer *answer, struct oj_error *err)
{
    const struct oj_answer empty = {0};
    *answer = empty;
    answer->part = part;
    answer->pairs = answer->matches = pairs;
    answer->side = oj_job_answer_side(&pass->job, part->answer);
    answer->batch = &pass->job.batches[part->slot];
    answer->first_row = part->first_row;
    answer->values = oj_rows_values(&pass->rows, part->answer);
    answer->join_side = answer->side.ordinal == NULL ? &pass->rows.join_as_read
                                                     : &answer->side.flat;
    answer->join_table = answer->side.table;
    oj_unmatched_mark(&pass->unmatched, pairs, &answer->side);
    if (pass->aggregation == NULL)
        return OJ_OK;
    OJ_TRY(take_aggregates(pass, answer, err));
    answer->values = NULL;
    return OJ_OK;
}

struct streaming
{
    struct oj_pass *pass;
    const struct oj_answer_sink *sink;
    int64_t n_rows; /* oj_pass_count() */
};

/* Runs on the thread that streams, as the sink does. */
static oj_status take_part(void *user, const struct oj_pipeline_part *part,
                           const struct oj_matches *pairs, struct oj_error *err)
{
    const struct streaming *s = user;
    struct oj_answer answer;
    OJ_TRY(make_answer(s->pass, part, pairs, &answer, err));
    return s->sink->take(s->sink->user, &answer, err);
}

oj_status oj_pass_stream(struct oj_pass *pass,
                         const struct oj_answer_sink *sink,
                         struct oj_error *err)
{
    struct streaming s = {pass, sink, 0};
    const struct oj_pipeline_sink parts = {take_part, &s};
    if (pass->stream != NULL)
        return oj_aggregate_stream_rows(pass->stream, 1, &parts, err);
    return oj_job_stream(&pass->job, 1, &parts, err);
}

static oj_status take_join_rows(void *user, const struct oj_batch *batch,
                                const uint8_t *is_matched,
                                const struct oj_matches *matches,
                                struct oj_error *err)
{
    const struct streaming *s = user;
    const struct oj_job *job = &s->pass->job;
    struct oj_answer answer = {0};
    answer.batch = batch;
    answer.is_matched = is_matched;
    answer.matches = matches;
    answer.join_side = &s->pass->rows.join_as_read;
    answer.join_table = job->join_side->table;
    return s->sink->take(s->sink->user, &answer, err);
}

oj_status oj_pass_stream_join_rows(struct oj_pass *pass,
                                   const struct oj_answer_sink *sink,
                                   struct oj_error *err)
{
    struct streaming s = {pass, sink, 0};
    const struct oj_unmatched_sink rows = {take_join_rows, &s};
    if (pass->unmatched.matched == NULL)
        return OJ_OK;
    return oj_unmatched_read(&pass->unmatched, &pass->job, &rows, err);
}

/* ---- counts ------------------------------------------------------------- */

static int64_t rows_of(enum oj_how how, const struct oj_matches *entries)
{
    int64_t n = 0;
    for (int64_t i = 0; i < entries->n_rows; i++)
    {
        int64_t n_pairs =
            oj_matches_end(entries, i) - oj_matches_first(entries, i);
        if (how == OJ_HOW_SEMI || how == OJ_HOW_ANTI)
            n += (n_pairs > 0) == (how == OJ_HOW_SEMI);
        else
            n += n_pairs > 0 || how == OJ_HOW_INNER ? n_pairs : 1;
    }
    return n;
}

/* A row of aggregates stands for all pairs. */
static oj_status count_part(void *user, const struct oj_pipeline_part *part,
                            const struct oj_matches *pairs,
                            struct oj_error *err)
{
    struct streaming *s = user;
    struct oj_pass *pass = s->pass;
    const struct oj_answer_side side =
        oj_job_answer_side(&pass->job, part->answer);
    const struct oj_matches *entries = oj_pair_values_matches(
        oj_rows_values(&pass->rows, part->answer), pairs);
    enum oj_how how = oj_pass_how(pass);
    (void)err;
    oj_unmatched_mark(&pass->unmatched, pairs, &side);
    if (pass->aggregation != NULL && how == OJ_HOW_INNER)
        s->n_rows += rows_of(OJ_HOW_SEMI, entries);
    else if (pass->aggregation != NULL)
        s->n_rows += entries->n_rows;
    else
        s->n_rows += rows_of(how, entries);
    return OJ_OK;
}

oj_status oj_pass_count(struct oj_pass *pass, int64_t *n, struct oj_error *err)
{
    struct streaming s = {pass, NULL, 0};
    const struct oj_pipeline_sink sink = {count_part, &s};
    oj_status status =
        pass->stream != NULL
            ? oj_aggregate_stream_rows(pass->stream, 0, &sink, err)
            : oj_job_stream(&pass->job, 0, &sink, err);
    oj_job_end_reading(&pass->job);
    if (status == OJ_OK)
        *n = s.n_rows + oj_unmatched_count(&pass->unmatched);
    return status;
}

/* ---- single rows -------------------------------------------------------- */

oj_status oj_pass_one(struct oj_pass *pass, int64_t fid, int is_filtered,
                      struct oj_answer *answer, int *there,
                      struct oj_error *err)
{
    struct oj_pipeline_part part = {0};
    struct oj_flat flat;
    part.flat = &flat;
    OJ_TRY(oj_job_read_one(&pass->job, fid, is_filtered, &flat, there, err));
    if (!*there)
        return OJ_OK;
    OJ_TRY(oj_job_join_part(&pass->job, &part, &pass->one, err));
    OJ_TRY(make_answer(pass, &part, &pass->one, answer, err));
    answer->part = NULL; /* it ends here */
    return OJ_OK;
}

/* ---- the end ------------------------------------------------------------ */

void oj_pass_close(struct oj_pass *pass)
{
    const struct oj_pass closed = {0};
    oj_unmatched_close(&pass->unmatched);
    oj_rows_close(&pass->rows);
    oj_aggregate_stream_close(pass->stream);
    oj_aggregation_close(pass->aggregation);
    oj_matches_free(&pass->one);
    oj_job_close(&pass->job);
    *pass = closed;
}
