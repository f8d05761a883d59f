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

#ifdef __cplusplus
extern "C" {
#endif

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

/** Instead of oj_job_stream(): reads the input layer again and hands its rows
 *  to sink, with answers as oj_aggregation_rows() gives them. The sink calls
 *  oj_aggregation_set_first_row() with the row's place in the layer before it
 *  asks for values. May be done again, any number of times, after
 *  oj_job_end_reading(). */
OJ_MUST_USE oj_status oj_aggregate_stream_rows(
    struct oj_aggregate_stream *stream, int keep_attributes,
    const struct oj_pipeline_sink *sink, struct oj_error *err);

/** Accepts NULL. Before oj_job_close(). */
void oj_aggregate_stream_close(struct oj_aggregate_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
