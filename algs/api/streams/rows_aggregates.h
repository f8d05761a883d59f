/** Aggregates over the pairs of each input row, as Arrow columns. */
#ifndef ROWS_AGGREGATES_H
#define ROWS_AGGREGATES_H

#include "../../../flatten/arrays/oj_pair_values.h"
#include "../rows/oj_row_columns.h"
#include "rows_side.h"

struct rows_aggregates;

/** Parses the setting agg and reads the columns of the join side that it names.
 *  names  options that name columns of pairs
 *  want   [OJ_N_PAIR_VALUES] output: 1 for each value of pairs that is needed
 *  hidden output: the first name in words that is the name of a column of the
 *         join side and of a column of pairs; it means the column of the join
 *         side. NULL: none */
OJ_MUST_USE oj_status rows_aggregates_open(
    const char *words, const struct oj_row_column_words *names,
    const struct rows_side *join, const struct rows_chunks *chunks,
    unsigned char *want, const char **hidden, struct rows_aggregates **out,
    struct oj_error *err);

/** aggregates may be NULL. */
void rows_aggregates_close(struct rows_aggregates *aggregates);

const struct oj_aggregate_words *
rows_aggregates_words(const struct rows_aggregates *aggregates);

/** Makes the schema of the results of aggregate i, with this name. */
OJ_MUST_USE oj_status rows_aggregates_schema(
    const struct rows_aggregates *aggregates, int i, const char *name,
    struct ArrowSchema *out, struct oj_error *err);

/** Forgets the pairs of earlier calls, then aggregates those of matches, an
 * answer for all rows of input. *out
 * becomes the list of result rows: one per input row, with join_row 0, or -1
 * if the row has no pair.
 * enough_pairs: that of the relation; if it is not OJ_ENOUGH_ALL, all
 * aggregates are numbers of pairs. values: computed values of the pairs; NULL:
 * none are needed. */
OJ_MUST_USE oj_status rows_aggregates_add(
    struct rows_aggregates *aggregates, const struct oj_flat *input,
    const struct oj_matches *matches, int enough_pairs,
    const struct oj_flat *join_side, const struct oj_pair_values *values,
    struct oj_matches *out, struct oj_error *err);

/** Makes the results for the given rows [n], which must be ascending. out[i]
 * receives the column of aggregate i. After an error some columns may be set.
 */
OJ_MUST_USE oj_status rows_aggregates_results(
    struct rows_aggregates *aggregates, const int64_t *rows, int64_t n,
    struct ArrowArray *const *out, struct oj_error *err);

#endif
