/** Aggregates of the join rows that each input row is paired with, as columns
 *  of Arrow. */
#ifndef ROWS_AGGREGATES_H
#define ROWS_AGGREGATES_H

#include "../../../flatten/arrays/oj_pair_values.h"
#include "../rows/oj_aggregate_words.h"
#include "rows_side.h"

struct rows_aggregates;

/** Reads the words of the setting agg and the columns of the join side that
 *  they name. */
OJ_MUST_USE oj_status rows_aggregates_open(const char *words,
                                           const struct rows_side *join,
                                           const struct rows_chunks *chunks,
                                           struct rows_aggregates **out,
                                           struct oj_error *err);

/** Accepts NULL. */
void rows_aggregates_close(struct rows_aggregates *aggregates);

const struct oj_aggregate_words *
rows_aggregates_words(const struct rows_aggregates *aggregates);

/** The schema of the results of word i, under this name. */
OJ_MUST_USE oj_status rows_aggregates_schema(
    const struct rows_aggregates *aggregates, int i, const char *name,
    struct ArrowSchema *out, struct oj_error *err);

/** Adds up the pairs of matches, whose rows are 0 to n_rows - 1 from now on,
 *  and makes *out rows of an answer: one for each row, with a pair or without.
 *  values  their overlaps, where weighted_sum is asked for */
OJ_MUST_USE oj_status rows_aggregates_add(struct rows_aggregates *aggregates,
                                          const struct oj_matches *matches,
                                          const struct oj_flat *join_side,
                                          const struct oj_pair_values *values,
                                          struct oj_matches *out,
                                          struct oj_error *err);

/** The results of rows [n], which ascend: out[i] becomes the column of word i.
 *  After an error some of them are set. */
OJ_MUST_USE oj_status rows_aggregates_results(
    struct rows_aggregates *aggregates, const int64_t *rows, int64_t n,
    struct ArrowArray *const *out, struct oj_error *err);

#endif
