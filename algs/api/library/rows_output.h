/** The record batches of a join of rows: which columns they have, and their
 *  values at places.
 *
 *   sides, settings --open--> columns, their schema, what is wanted of pairs
 *   places of an answer --make--> a record batch
 */
#ifndef ROWS_OUTPUT_H
#define ROWS_OUTPUT_H

#include "../../../flatten/arrays/oj_row_places.h"
#include "../rows/oj_row_columns.h"
#include "rows_aggregates.h"
#include "rows_side.h"

/** Owner; zeroed memory is a valid empty one. Borrows the sides. */
struct rows_output
{
    const struct rows_side *input, *join;
    const struct rows_chunks *join_chunks;
    enum oj_how how;
    int geometry; /**< enum oj_write_geometry, or API_GEOMETRY_NONE */
    struct rows_aggregates *aggregates; /**< NULL: none */

    struct oj_row_columns columns;
    int64_t *input_column; /**< [fields] of the schema of the input; -1: the
                                geometry that is made */
    int64_t *join_column;  /**< likewise, of the join side */
    struct ArrowSchema schema;
    int64_t geometry_at; /**< column of the rows, or -1 */
    int64_t most_bytes;  /**< of a row of the join side */
};

/** want [OJ_N_PAIR_VALUES] and what else request needs for the columns is set.
 *  relation is complete. aggregates may be NULL, or belongs to *out. */
OJ_MUST_USE oj_status rows_output_open(
    const struct rows_side *input, const struct rows_side *join,
    const struct rows_chunks *join_chunks,
    const struct ogrjoin_settings *settings, const struct oj_relation *relation,
    struct rows_aggregates *aggregates, struct oj_pair_request *request,
    struct rows_output *out, struct oj_error *err);

void rows_output_close(struct rows_output *output);

/** What places speak of. */
struct rows_answer
{
    const struct rows_chunks *input; /**< rows of places; of join rows unused */
    int is_join_rows;                /**< rows of the join side alone */
    const struct oj_matches *entries;
    const struct oj_pair_values *values; /**< or NULL */
    const struct oj_flat *join_side;
    int64_t first_row;  /**< of the input, that aggregates call 0 */
    int64_t most_bytes; /**< of a row of the input */
};

/** Makes a batch of the first *n places, or of fewer, as many as fit. */
OJ_MUST_USE oj_status rows_output_make(const struct rows_output *output,
                                       const struct rows_answer *answer,
                                       const struct oj_row_place *places,
                                       int64_t *n, struct ArrowArray *out,
                                       struct oj_error *err);

/** The most bytes of a row of these chunks in columns of rows. */
int64_t rows_output_most_bytes(const struct rows_output *output,
                               const struct rows_side *side,
                               const struct rows_chunks *chunks);

#endif
