/** -agg the other way round: the input layer is indexed, and the join layer
 *  streams through the exchanged join, however large it is.
 *
 *   input layer, geometry ----> index
 *   join layer --read--> exchanged join --pairs--> oj_aggregation
 *   input layer, again --read--> rows and their aggregates --write-->
 *
 *  Pairs and results are the same as when the join layer is indexed.
 */
#ifndef OJ_AGGREGATE_STREAM_H
#define OJ_AGGREGATE_STREAM_H

#include "oj_aggregation.h"

struct oj_aggregate_stream;

/** 1 when the join layer should stream: it is the larger side, as far as that
 *  is known, and may.  The configuration option OGRJOIN_AGG_STREAM (join or
 *  input) decides where both may. */
int oj_aggregate_streams_join(const struct oj_job *job,
                              const struct oj_aggregation *aggregation);

/** Instead of oj_job_prepare(): reads the input layer, indexes it, and streams
 *  the join layer into aggregation.  Both outlive *out. job->engine is the
 *  exchanged join afterwards. */
OJ_MUST_USE oj_status oj_aggregate_stream_open(
    struct oj_job *job, struct oj_aggregation *aggregation,
    struct oj_aggregate_stream **out, struct oj_error *err);

/* Instead of joining batches of the input layer, which is read again: the
 * answers of parts are as oj_aggregation_rows() gives them.  Who takes them
 * calls oj_aggregation_set_first_row() with a part's place in the layer before
 * values are asked for.  May be done any number of times, each beginning with
 * oj_aggregation_finish(). */

/** The rows must be those that were indexed. */
OJ_MUST_USE oj_status
oj_aggregate_stream_join(const struct oj_aggregate_stream *stream,
                         const struct oj_pipeline_part *part,
                         struct oj_matches *out, struct oj_error *err);

/** oj_job_end_input(), where the rows were as many as before. */
OJ_MUST_USE oj_status oj_aggregate_stream_end(
    struct oj_aggregate_stream *stream, oj_status status, struct oj_error *err);

/** Accepts NULL. Before oj_job_close(). */
void oj_aggregate_stream_close(struct oj_aggregate_stream *stream);

#endif
