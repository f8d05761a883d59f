/** -agg in one run: the aggregates that the command asks for, bound to the
 *  fields of the join layer, fed with pairs and read by the writer.
 *
 *   answers of the join ----------------.
 *     (one after the other)              \
 *                                         > oj_aggregates -> columns of rows
 *   or the whole join layer, streamed ---/
 */
#ifndef OJ_AGGREGATION_H
#define OJ_AGGREGATION_H

#include "../../flatten/arrays/oj_pair_values.h"
#include "../job/oj_job.h"
#include "../output/oj_schema.h"

struct oj_aggregation;

/** Reads command->aggregates, finds their fields in the join layer and has
 *  these read; after oj_job_open().  command outlives *out. OJ_ERR_ARG for what
 *  makes no sense, with the fields or the functions that there are. */
OJ_MUST_USE oj_status oj_aggregation_open(const struct oj_command *command,
                                          struct oj_source *join,
                                          struct oj_aggregation **out,
                                          struct oj_error *err);

/** The columns of the output; owned by the aggregation. */
const struct oj_own_column *
oj_aggregation_columns(const struct oj_aggregation *aggregation, int *n);

/** 1 when oj_aggregation_answer() needs OJ_PAIR_OVERLAP_AREA, _LENGTH
 *  and OJ_PAIR_JOIN_AREA. */
int oj_aggregation_needs_overlap(const struct oj_aggregation *aggregation);

/** Takes an answer of the join whose rows are about to be written. values may
 *  be NULL where no overlap is needed.
 *  rows  as of oj_aggregation_rows(), of all of them; owned by the aggregation,
 *        valid until the next answer */
OJ_MUST_USE oj_status oj_aggregation_answer(struct oj_aggregation *aggregation,
                                            const struct oj_matches *matches,
                                            const struct oj_answer_side *side,
                                            const struct oj_pair_values *values,
                                            const struct oj_matches **rows,
                                            struct oj_error *err);

/** The same for answers whose rows are written after the last of them: row 0 of
 *  matches is row first of all. After oj_aggregation_start() with 0 rows. */
OJ_MUST_USE oj_status oj_aggregation_keep(struct oj_aggregation *aggregation,
                                          int64_t first,
                                          const struct oj_matches *matches,
                                          const struct oj_answer_side *side,
                                          const struct oj_pair_values *values,
                                          struct oj_error *err);

/** Begins n_rows rows at once, instead of answers. */
OJ_MUST_USE oj_status oj_aggregation_start(struct oj_aggregation *aggregation,
                                           int64_t n_rows,
                                           struct oj_error *err);

/** 1 when nothing but counts, sums and means is asked for: then the join may
 *  sum the values of features instead of giving pairs. */
int oj_aggregation_takes_sums(const struct oj_aggregation *aggregation);

/** After the last pair. */
OJ_MUST_USE oj_status oj_aggregation_finish(struct oj_aggregation *aggregation,
                                            struct oj_error *err);

/** Rows first to first + n - 1 as matches in one-to-one form: an entry is a
 *  pair where the row has any. n_pairs counts them all. */
OJ_MUST_USE oj_status
oj_aggregation_rows(const struct oj_aggregation *aggregation, int64_t first,
                    int64_t n, struct oj_matches *out, struct oj_error *err);

/** Row 0 of oj_aggregation_value() is this one. */
void oj_aggregation_set_first_row(struct oj_aggregation *aggregation,
                                  int64_t first);

/** For struct oj_write_options.aggregate; user is the aggregation, rows come
 *  in ascending order. */
oj_status oj_aggregation_value(void *user, int source, int64_t row,
                               struct oj_value *value, struct oj_error *err);

/** Accepts NULL. */
void oj_aggregation_close(struct oj_aggregation *aggregation);

/* ---- the other way round ------------------------------------------------ */

/** The input layer is indexed, and the join layer streams through the exchanged
 *  join, however large it is.
 *
 *   input layer, geometry ----> index
 *   join layer --read--> exchanged join --pairs--> oj_aggregation
 *   input layer, again --read--> rows and their aggregates --write-->
 *
 *  Pairs and results are the same as when the join layer is indexed. */
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
