/** -agg in one run: the aggregates that the command asks for, bound to the
 *  fields of the join layer, fed with pairs and read by the writer.
 *
 *   answers of the join ----------------.
 *     (one after the other)              \
 *                                         > oj_aggregates -> columns of rows
 *   or the whole join layer, streamed ---/
 *
 *  The words of -agg:
 *
 *   count, sum(fare) as total, max("odd, name"), concat(name, '; ')
 *
 *  Functions are read without case, and spaces do not matter.  Fields and names
 *  may be quoted; inside, a quote is doubled to stand for itself.
 */
#ifndef OJ_AGGREGATION_H
#define OJ_AGGREGATION_H

#include "../../flatten/arrays/oj_pair_values.h"
#include "../job/oj_job.h"
#include "../output/oj_schema.h"

struct oj_aggregation;

/** Reads -agg of the job's command, finds the fields in the join layer and has
 *  these read; after oj_job_open(). The job outlives *out. OJ_ERR_ARG for what
 *  makes no sense, with the fields or the functions that there are. */
OJ_MUST_USE oj_status oj_aggregation_open(struct oj_job *job,
                                          struct oj_aggregation **out,
                                          struct oj_error *err);

/** The columns of the output; owned by the aggregation. */
const struct oj_own_column *
oj_aggregation_columns(const struct oj_aggregation *aggregation, int *n);

/** 1 when oj_aggregation_add() needs OJ_PAIR_OVERLAP_AREA, _LENGTH and
 *  OJ_PAIR_JOIN_AREA. */
int oj_aggregation_needs_overlap(const struct oj_aggregation *aggregation);

/** 1 when nothing but counts, sums and means is asked for: then the join may
 *  sum the values of features instead of giving pairs. */
int oj_aggregation_takes_sums(const struct oj_aggregation *aggregation);

/** Adds the pairs of an answer; row 0 of matches is row first of all. first 0:
 *  begins anew. values may be NULL where no overlap is needed. */
OJ_MUST_USE oj_status oj_aggregation_add(struct oj_aggregation *aggregation,
                                         int64_t first,
                                         const struct oj_matches *matches,
                                         const struct oj_answer_side *side,
                                         const struct oj_pair_values *values,
                                         struct oj_error *err);

/** After the last pair, and before values are asked for once more from the
 *  first row on. */
OJ_MUST_USE oj_status oj_aggregation_finish(struct oj_aggregation *aggregation,
                                            struct oj_error *err);

/** Row 0 of oj_aggregation_value() is this one. */
void oj_aggregation_set_first_row(struct oj_aggregation *aggregation,
                                  int64_t first);

/** The answer of a join whose rows are about to be written, added and finished.
 *  rows  one entry for each row, a pair where the row has any, n_pairs counting
 *        them all; owned by the aggregation, valid until the next answer */
OJ_MUST_USE oj_status oj_aggregation_answer(struct oj_aggregation *aggregation,
                                            const struct oj_matches *matches,
                                            const struct oj_answer_side *side,
                                            const struct oj_pair_values *values,
                                            const struct oj_matches **rows,
                                            struct oj_error *err);

/** For struct oj_write_options.aggregate; user is the aggregation, rows come
 *  in ascending order. */
oj_status oj_aggregation_value(void *user, int source, int64_t row,
                               struct oj_value *value, struct oj_error *err);

/** Accepts NULL. Before oj_job_close(). */
void oj_aggregation_close(struct oj_aggregation *aggregation);

/* ---- the other way round -------------------------------------------------
 *
 *  The input layer is indexed, and the join layer streams through the exchanged
 *  join, however large it is:
 *
 *   input layer, geometry ----> index
 *   join layer --read--> exchanged join --pairs--> oj_aggregation
 *   input layer, again --read--> rows and their aggregates --write-->
 *
 *  Pairs and results are the same as when the join layer is indexed. */

/** 1 when the join layer should stream: it is the larger side, as far as that
 *  is known, and may.  The configuration option OGRJOIN_AGG_STREAM (join or
 *  input) decides where both may. */
int oj_aggregation_streams_join(const struct oj_aggregation *aggregation);

/** Instead of oj_job_prepare(): reads the input layer, indexes it, and streams
 *  the join layer past it. job->engine is the exchanged join afterwards. */
OJ_MUST_USE oj_status oj_aggregation_stream(struct oj_aggregation *aggregation,
                                            struct oj_error *err);

/** 1 after that, until it is undone. Accepts NULL. */
int oj_aggregation_is_streamed(const struct oj_aggregation *aggregation);

/** Instead of joining batches of the input layer, which is read again; its rows
 *  must be those that were indexed.  *out is as oj_aggregation_answer() gives
 *  it.  Who takes it calls oj_aggregation_set_first_row() with the part's place
 *  in the layer before values are asked for.  May be done any number of times,
 *  each beginning with oj_aggregation_finish(). */
OJ_MUST_USE oj_status
oj_aggregation_streamed_part(const struct oj_aggregation *aggregation,
                             const struct oj_pipeline_part *part,
                             struct oj_matches *out, struct oj_error *err);

/** oj_job_end_input(), where the rows were as many as before. */
OJ_MUST_USE oj_status
oj_aggregation_end_input(const struct oj_aggregation *aggregation,
                         oj_status status, struct oj_error *err);

/** Undoes it: the job can be prepared. Accepts NULL, and one that was not
 *  streamed. */
void oj_aggregation_end_stream(struct oj_aggregation *aggregation);

#endif
