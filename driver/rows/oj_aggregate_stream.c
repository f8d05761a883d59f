#include "oj_aggregate_stream.h"

#include "../../algs/base/oj_point_order.h"
#include "../../flatten/base/oj_array.h"
#include "../base/oj_cancel.h"
#include "../base/oj_message.h"

#include <cpl_conv.h>

#include <string.h>
#include <strings.h>

/* Of the progress bar, what streaming the join layer takes. */
#define STREAM_SHARE 0.9

struct oj_aggregate_stream
{
    struct oj_job *job;
    struct oj_aggregation *aggregation;

    struct oj_join_side input; /* all of it, but for its engine: the job's */
    struct oj_point_order order[OJ_PIPELINE_SLOTS]; /* of join features */
    double join_s; /* of all that was done with them */
};

/* ---- which way ---------------------------------------------------------- */

static int reads_once(const struct oj_source *source)
{
    return strncmp(source->side->dataset, "/vsistdin", 9) == 0;
}

/* The k of nearest belong to input rows; the overlaps behind weighted sums are
 * computed for input rows; the reference joins input rows. */
static int may_stream_join(const struct oj_job *job,
                           const struct oj_aggregation *aggregation)
{
    return job->relation.op != OJ_OP_NEAREST &&
           job->relation.metric == OJ_METRIC_PLANAR &&
           !oj_aggregation_needs_overlap(aggregation) &&
           job->command->validate == NULL && job->command->n_windows == 0 &&
           job->command->unmatched_join_layer == NULL &&
           !reads_once(&job->input);
}

int oj_aggregate_streams_join(const struct oj_job *job,
                              const struct oj_aggregation *aggregation)
{
    const char *wish = CPLGetConfigOption("OGRJOIN_AGG_STREAM", "");
    int64_t n_input, n_join;
    if (!may_stream_join(job, aggregation))
        return 0;
    if (strcasecmp(wish, "join") == 0)
        return 1;
    if (strcasecmp(wish, "input") == 0)
        return 0;
    n_input = oj_source_count(&job->input, job->command->limit);
    n_join = oj_source_count(&job->join, -1);
    return n_input >= 0 && n_join > n_input;
}

/* ---- the input layer, indexed ------------------------------------------- */

static oj_status index_input(struct oj_aggregate_stream *s,
                             struct oj_error *err)
{
    struct oj_job *job = s->job;
    struct oj_options options = oj_job_options(job->command);
    struct oj_relation exchanged = oj_relation_transpose(&job->relation);
    int64_t n_input = oj_source_count(&job->join, -1);
    exchanged.any_order = 1;
    exchanged.share_lists = oj_aggregation_shares(s->aggregation);
    options.n_input = options.n_expected = n_input > 0 ? n_input : 0;
    return oj_join_open(&s->input.flat, &exchanged, job->command->backend,
                        &options, &job->join_side->engine, err);
}

/* ---- the join layer, streamed ------------------------------------------- */

/* Runs on the reader thread. */
static oj_status read_features(void *user, int slot, struct oj_flat *flat,
                               struct oj_error *err)
{
    struct oj_aggregate_stream *s = user;
    OJ_TRY(oj_job_read_batch(s->job, slot, flat, err));
    if (flat->n_features == 0)
        return OJ_OK;
    return oj_point_order_apply(&s->order[slot], flat, err);
}

/* Of a part, in the order of its points; NULL: as read. */
static const int32_t *order_of(const struct oj_aggregate_stream *s,
                               const struct oj_pipeline_part *part)
{
    const struct oj_point_order *order = &s->order[part->slot];
    return order->n > 0 ? order->row : NULL;
}

/* Runs on the join thread. Pairs that are summed are none of the answer, but in
 * its number. */
static oj_status join_features(void *user, const struct oj_pipeline_part *part,
                               struct oj_matches *out, struct oj_error *err)
{
    struct oj_aggregate_stream *s = user;
    struct oj_join *join = s->job->join_side->engine;
    int64_t n = part->flat->n_features, n_pairs = 0;
    oj_status status = oj_aggregation_sum(
        s->aggregation, join, part->flat, &s->job->batches[part->slot],
        part->first_row, order_of(s, part), &n_pairs, err);
    if (status == OJ_ERR_UNSUPPORTED)
        return oj_join_batch(join, part->flat, out, err);
    OJ_TRY(status);
    OJ_TRY(oj_matches_reserve(out, n, 0, 1, err));
    memset(out->offset, 0, (size_t)(n + 1) * sizeof *out->offset);
    out->n_pairs = n_pairs;
    return OJ_OK;
}

/* Runs on the calling thread. */
static oj_status add_pairs(void *user, const struct oj_pipeline_part *part,
                           const struct oj_matches *matches,
                           struct oj_error *err)
{
    struct oj_aggregate_stream *s = user;
    return oj_aggregation_add(s->aggregation, &s->job->batches[part->slot],
                              part->first_row, order_of(s, part), matches, err);
}

static int show_streaming(int64_t n_rows, void *user)
{
    const struct oj_aggregate_stream *s = user;
    return oj_job_show_progress(s->job, n_rows);
}

static void on_thread(void *user, void (*stages)(struct oj_pipeline *),
                      struct oj_pipeline *pipeline)
{
    const struct oj_aggregate_stream *s = user;
    oj_job_on_thread(s->job, stages, pipeline);
}

static oj_status stream_join(struct oj_aggregate_stream *s,
                             struct oj_error *err)
{
    struct oj_job *job = s->job;
    struct oj_read_options reading = oj_job_read_options(job, &job->join);
    const struct oj_pipeline_work work = {
        read_features,    join_features,          show_streaming, on_thread, s,
        oj_cancel_flag(), job->command->max_pairs};
    const struct oj_pipeline_sink sink = {add_pairs, s};
    oj_status status;
    reading.keep_attributes = 1;
    reading.fields_only = 1;
    job->streams = OJ_STREAMS_JOIN;
    job->n_expected = job->show_progress ? oj_source_count(&job->join, -1) : -1;
    job->progress_share = STREAM_SHARE;
    OJ_TRY(oj_job_open_reader(job, &job->join, &reading, err));
    status = oj_pipeline_run(&work, &sink, &job->counts, err);
    job->join_side->counts = *oj_layer_reader_counts(job->reader);
    if (status != OJ_OK)
        return oj_message_add_reason(status, err);
    return oj_source_check_count(&job->join, -1, job->join_side->counts.n_rows,
                                 err);
}

static void free_orders(struct oj_aggregate_stream *s)
{
    for (int i = 0; i < OJ_PIPELINE_SLOTS; i++)
        oj_point_order_free(&s->order[i]);
}

/* What follows is the input layer, read again. */
static void end_streaming(struct oj_aggregate_stream *s)
{
    struct oj_job *job = s->job;
    oj_job_end_reading(job);
    free_orders(s);
    job->streams = OJ_STREAMS_AS_READ;
    job->n_expected = s->input.flat.n_features;
    job->progress_start = STREAM_SHARE;
    job->progress_share = 1.0 - STREAM_SHARE;
    s->join_s = job->counts.join_s + job->counts.write_s;
}

static oj_status fill(struct oj_aggregate_stream *s, struct oj_error *err)
{
    struct oj_job *job = s->job;
    OJ_TRY(oj_job_read_side(job, 0, &s->input, oj_is_cancelled_at, NULL, err));
    OJ_TRY(index_input(s, err));
    OJ_TRY(oj_aggregation_start(s->aggregation, s->input.flat.n_features, err));
    OJ_TRY(stream_join(s, err));
    job->join_side->read_s = s->input.read_s + job->counts.read_s;
    end_streaming(s);
    return OJ_OK;
}

oj_status oj_aggregate_stream_open(struct oj_job *job,
                                   struct oj_aggregation *aggregation,
                                   struct oj_aggregate_stream **out,
                                   struct oj_error *err)
{
    struct oj_aggregate_stream *s = oj_calloc(1, sizeof *s);
    oj_status status;
    if (s == NULL)
        return oj_fail_nomem(err, 1, sizeof *s);
    s->job = job;
    s->aggregation = aggregation;
    status = fill(s, err);
    if (status == OJ_OK)
        *out = s;
    else
        oj_aggregate_stream_close(s);
    return status;
}

/* ---- the input layer, written ------------------------------------------- */

oj_status oj_aggregate_stream_join(const struct oj_aggregate_stream *s,
                                   const struct oj_pipeline_part *part,
                                   struct oj_matches *out, struct oj_error *err)
{
    int64_t n = part->flat->n_features;
    int64_t first = s->job->batches[part->slot].first_row + part->first_row;
    if (first + n > s->input.flat.n_features ||
        memcmp(part->flat->fid, s->input.flat.fid + first,
               (size_t)n * sizeof *s->input.flat.fid) != 0)
        return oj_fail(err, OJ_ERR_DATA,
                       "the input layer '%s' changed while it was read",
                       s->job->input.name);
    return oj_aggregation_rows(s->aggregation, first, n, out, err);
}

oj_status oj_aggregate_stream_end(struct oj_aggregate_stream *s,
                                  oj_status status, struct oj_error *err)
{
    struct oj_job *job = s->job;
    job->counts.join_s = s->join_s;
    if (status == OJ_OK && job->counts.n_rows != s->input.flat.n_features)
        return oj_fail(err, OJ_ERR_DATA,
                       "the input layer '%s' changed while it was read",
                       job->input.name);
    return oj_job_end_input(job, status, err);
}

void oj_aggregate_stream_close(struct oj_aggregate_stream *s)
{
    if (s == NULL)
        return;
    oj_job_end_reading(s->job);
    free_orders(s);
    oj_join_close(s->job->join_side->engine);
    s->job->join_side->engine = NULL;
    s->job->streams = OJ_STREAMS_INPUT;
    oj_join_side_free(&s->input);
    oj_free(s);
}
