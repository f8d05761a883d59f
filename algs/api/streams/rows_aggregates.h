/** Aggregates over the pairs of each input row, as Arrow columns. */
#ifndef ROWS_AGGREGATES_H
#define ROWS_AGGREGATES_H

#include "../../../flatten/arrays/oj_pair_values.h"
#include "../rows/oj_row_columns.h"
#include "rows_side.h"

struct rows_aggregates;

/** Parses the setting agg and reads the columns of the join side that it names.
 *  names  of columns of pairs
 *  want   [OJ_N_PAIR_VALUES] receives the values of pairs that are needed
 *  hidden receives the name of the first column of pairs that a column of the
 *         join side hides, or NULL */
OJ_MUST_USE oj_status rows_aggregates_open(
    const char *words, const struct oj_row_column_words *names,
    const struct rows_side *join, const struct rows_chunks *chunks,
    unsigned char *want, const char **hidden, struct rows_aggregates **out,
    struct oj_error *err);

/** Accepts NULL. */
void rows_aggregates_close(struct rows_aggregates *aggregates);

const struct oj_aggregate_words *
rows_aggregates_words(const struct rows_aggregates *aggregates);

/** The schema of the results of word i, with this name. */
OJ_MUST_USE oj_status rows_aggregates_schema(
    const struct rows_aggregates *aggregates, int i, const char *name,
    struct ArrowSchema *out, struct oj_error *err);

/** Starts over and adds the pairs of matches. Makes *out the rows of the
 * answer: one for each row, with a pair or without.
 * values  values of the pairs, if any are wanted */
OJ_MUST_USE oj_status rows_aggregates_add(struct rows_aggregates *aggregates,
                                          const struct oj_matches *matches,
                                          const struct oj_flat *join_side,
                                          const struct oj_pair_values *values,
                                          struct oj_matches *out,
                                          struct oj_error *err);

/** Makes the results for rows [n], ascending: out[i] is the column of word i.
 * After an error some of them may be set. */
OJ_MUST_USE oj_status rows_aggregates_results(
    struct rows_aggregates *aggregates, const int64_t *rows, int64_t n,
    struct ArrowArray *const *out, struct oj_error *err);

#endif
