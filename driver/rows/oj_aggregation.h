/** -agg in one run: the aggregates that the command asks for, bound to the
 *  fields of the join layer, fed with pairs and read by the writer.
 *
 *   answers of the join ----------------.
 *     (one after the other)              \
 *                                         > oj_aggregates -> columns of rows
 *   or the whole join layer, streamed ---/
 *
 *  What the words of -agg mean: algs/api/rows/oj_aggregate_words.h.
 */
#ifndef OJ_AGGREGATION_H
#define OJ_AGGREGATION_H

#include "../../flatten/arrays/oj_pair_values.h"
#include "../job/oj_job.h"
#include "../output/oj_schema.h"

struct oj_aggregation;

/** Reads -agg of the job's command, finds the fields in the join layer and has
 *  these read; after oj_job_open(). The job outlives *out. Sets the columns of
 *  the output in fields, owned by the aggregation, and in want
 *  [OJ_N_PAIR_VALUES] the values of pairs that oj_aggregation_add() needs.
 *  OJ_ERR_ARG for what makes no sense, with the fields or the functions that
 *  there are. */
OJ_MUST_USE oj_status oj_aggregation_open(struct oj_job *job,
                                          struct oj_schema_request *fields,
                                          unsigned char *want,
                                          struct oj_aggregation **out,
                                          struct oj_error *err);

/** 1 when nothing but counts, sums and means is asked for: then the join may
 *  sum the values of features instead of giving pairs. */
int oj_aggregation_takes_sums(const struct oj_aggregation *aggregation);

/** Forgets all pairs; there will be n_rows input rows. */
OJ_MUST_USE oj_status oj_aggregation_start(struct oj_aggregation *aggregation,
                                           int64_t n_rows,
                                           struct oj_error *err);

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

/* ---- the other way round: the join layer streams past the input layer ---- */

/** 1 when the join layer should stream: it is the larger side, as far as that
 *  is known, and may.  The configuration option OGRJOIN_AGG_STREAM (join or
 *  input) decides where both may. */
int oj_aggregation_streams_join(const struct oj_aggregation *aggregation);

/** As oj_join_batch() of the exchanged join, for a part of a batch of the join
 *  layer with its fields.  Pairs that the join can sum are none of the answer,
 *  but in its number.  After oj_aggregation_start(); on one thread, on which
 *  pairs are not added. */
OJ_MUST_USE oj_status oj_aggregation_join(struct oj_aggregation *aggregation,
                                          struct oj_join *join,
                                          const struct oj_pipeline_part *part,
                                          const struct oj_batch *batch,
                                          struct oj_matches *out,
                                          struct oj_error *err);

/** Adds the pairs of such an answer. */
OJ_MUST_USE oj_status oj_aggregation_add_streamed(
    struct oj_aggregation *aggregation, const struct oj_pipeline_part *part,
    const struct oj_batch *batch, const struct oj_matches *matches,
    struct oj_error *err);

/** Input rows first to first + n - 1, as oj_aggregation_answer() gives them.
 *  Who takes them calls oj_aggregation_set_first_row(first) before values are
 *  asked for.  May be done any number of times, each beginning with
 *  oj_aggregation_finish(). */
OJ_MUST_USE oj_status
oj_aggregation_rows(const struct oj_aggregation *aggregation, int64_t first,
                    int64_t n, struct oj_matches *out, struct oj_error *err);

#endif
