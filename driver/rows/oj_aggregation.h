/** -agg in one run: the aggregates, bound to fields of the join layer, filled
 *  with pairs and read by the writer.
 *
 *    answers of the join ----------------.
 *      (batch by batch)                   \
 *                                          > oj_aggregates -> columns of rows
 *    or the whole join layer, streamed ---/
 *
 *  Syntax and meaning of -agg: algs/api/rows/oj_aggregate_words.h.
 */
#ifndef OJ_AGGREGATION_H
#define OJ_AGGREGATION_H

#include "../../flatten/arrays/oj_pair_values.h"
#include "../job/oj_job.h"
#include "../output/oj_schema.h"

struct oj_aggregation;

/** Parses -agg of the job's command and adds its fields to those that are read
 *  from the join layer. To be called after oj_job_open(); the job must outlive
 *  *out. OJ_ERR_ARG for an invalid -agg; the text lists the fields or functions
 *  that exist.
 *   words   names of the columns of pairs
 *   fields  receives the output columns, owned by the aggregation
 *   want    [OJ_N_PAIR_VALUES] receives 1 for each pair value that
 *           oj_aggregation_add() needs */
OJ_MUST_USE oj_status
oj_aggregation_open(struct oj_job *job, const struct oj_row_column_words *words,
                    struct oj_schema_request *fields, unsigned char *want,
                    struct oj_aggregation **out, struct oj_error *err);

/** Returns 1 if -agg has only counts, sums and means: the join may then sum
 *  values instead of returning pairs. */
int oj_aggregation_needs_only_sums(const struct oj_aggregation *aggregation);

/** Returns 1 if all results of -agg are numbers of pairs. */
int oj_aggregation_counts_pairs(const struct oj_aggregation *aggregation);

/** Drops all pairs and prepares for n_rows input rows. */
OJ_MUST_USE oj_status oj_aggregation_reset(struct oj_aggregation *aggregation,
                                           int64_t n_rows,
                                           struct oj_error *err);

/** Adds the pairs of an answer; row 0 of input and matches is input row
 *  `first`. If first is 0, drops all pairs added before. values may be NULL if
 *  no overlap is needed. */
OJ_MUST_USE oj_status oj_aggregation_add(struct oj_aggregation *aggregation,
                                         int64_t first,
                                         const struct oj_flat *input,
                                         const struct oj_matches *matches,
                                         const struct oj_answer_side *side,
                                         const struct oj_pair_values *values,
                                         struct oj_error *err);

/** Computes the results. To be called after the last pair, and again before
 *  each new reading of the values from the first row on. */
OJ_MUST_USE oj_status oj_aggregation_finish(struct oj_aggregation *aggregation,
                                            struct oj_error *err);

/** Sets the input row that oj_aggregation_value() takes as row 0. */
void oj_aggregation_set_first_row(struct oj_aggregation *aggregation,
                                  int64_t first);

/** Adds the pairs of an answer and computes the results of its rows, which are
 *  written next.
 *    rows  receives one entry per row, which is a pair if the row has any;
 *          n_pairs counts all pairs. Owned by the aggregation, valid until the
 *          next answer */
OJ_MUST_USE oj_status oj_aggregation_aggregate_one_answer(
    struct oj_aggregation *aggregation, const struct oj_flat *input,
    const struct oj_matches *matches, const struct oj_answer_side *side,
    const struct oj_pair_values *values, const struct oj_matches **rows,
    struct oj_error *err);

/** Stores the value of a result column in *value. It is a callback for struct
 *  oj_write_options.aggregate; user is the aggregation. Rows must be requested
 *  in ascending order. */
oj_status oj_aggregation_value(void *user, int source, int64_t row,
                               struct oj_value *value, struct oj_error *err);

/** Frees the aggregation; accepts NULL. To be called before oj_job_close(). */
void oj_aggregation_close(struct oj_aggregation *aggregation);

/* ---- streaming the join layer past the indexed input layer --------------- */

/** Returns 1 if the join layer should be streamed: streaming is possible, and
 *  the join layer is the larger side as far as the sizes are known. The
 *  configuration option OGRJOIN_AGG_STREAM (join or input) replaces the
 *  comparison of sizes. */
int oj_aggregation_streams_join(const struct oj_aggregation *aggregation);

/** Joins a part of a batch of the join layer with the index of the input, like
 *  oj_join_batch(). Pairs that the join itself adds to sums are counted in
 *  *out, but not listed. To be called after oj_aggregation_reset(), always on
 *  one thread, which must not be the thread that adds pairs. */
OJ_MUST_USE oj_status oj_aggregation_join_or_sum(
    struct oj_aggregation *aggregation, struct oj_join *join,
    const struct oj_pipeline_part *part, const struct oj_batch *batch,
    struct oj_matches *out, struct oj_error *err);

/** Adds the pairs of an answer of oj_aggregation_join_or_sum(). */
OJ_MUST_USE oj_status oj_aggregation_add_streamed(
    struct oj_aggregation *aggregation, const struct oj_pipeline_part *part,
    const struct oj_batch *batch, const struct oj_matches *matches,
    struct oj_error *err);

/** Makes the answer for input rows [first, first + n), in the form of
 *  oj_aggregation_aggregate_one_answer(). Before values are read, the caller
 *  must call oj_aggregation_set_first_row(first); before the rows are read from
 *  the start again, oj_aggregation_finish().
 */
OJ_MUST_USE oj_status oj_aggregation_make_rows(
    const struct oj_aggregation *aggregation, int64_t first, int64_t n,
    struct oj_matches *out, struct oj_error *err);

#endif
