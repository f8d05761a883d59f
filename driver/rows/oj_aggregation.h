/** -agg in one run: the aggregates that the command asks for, bound to the
 *  fields of the join layer, fed with pairs and read by the writer.
 *
 *   answers of the join ----------------.
 *     (one after the other)              \
 *                                         > oj_aggregates -> columns of rows
 *   or the whole join layer, streamed ---/
 *     (oj_aggregate_stream.h)
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

/** 1 when answers of oj_aggregation_add() may have shared lists. */
int oj_aggregation_shares(const struct oj_aggregation *aggregation);

/** Instead of answers: n_rows rows at once, and their pairs, join feature by
 *  join feature, from a batch of the join layer: the answer of the exchanged
 *  join for its features first, first + 1, ..., or for order[first],
 *  order[first + 1], ... */
OJ_MUST_USE oj_status oj_aggregation_start(struct oj_aggregation *aggregation,
                                           int64_t n_rows,
                                           struct oj_error *err);
OJ_MUST_USE oj_status oj_aggregation_add(struct oj_aggregation *aggregation,
                                         const struct oj_batch *batch,
                                         int64_t first, const int32_t *order,
                                         const struct oj_matches *matches,
                                         struct oj_error *err);

/** 1 when nothing but counts, sums and means is asked for: then the join may
 *  sum the values of features instead of giving pairs. */
int oj_aggregation_takes_sums(const struct oj_aggregation *aggregation);

/** The batch that oj_aggregation_add() would take, of which flat has the
 *  geometries, summed by the join without pairs; *n_pairs: how many they are.
 *  On another thread than oj_aggregation_add(). OJ_ERR_UNSUPPORTED: the join
 *  has to give pairs. */
OJ_MUST_USE oj_status oj_aggregation_sum(
    struct oj_aggregation *aggregation, struct oj_join *join,
    const struct oj_flat *flat, const struct oj_batch *batch, int64_t first,
    const int32_t *order, int64_t *n_pairs, struct oj_error *err);

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

#endif
