/** Makes the record batches of a join of rows: their columns, and the values
 *  for places (rows of the output).
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

/** The columns of the output. Owner; zeroed memory is a valid empty one.
 * Borrows the sides. */
struct rows_output
{
    const struct rows_side *input, *join;
    const struct rows_chunks *join_chunks;
    enum oj_how how;
    int geometry; /**< enum oj_write_geometry, or API_GEOMETRY_NONE */
    struct rows_aggregates *aggregates; /**< NULL: none */

    struct oj_row_columns columns;
    int64_t *input_column; /**< [fields] column in the schema of the input;
                                -1: the computed geometry */
    int64_t *join_column;  /**< [fields] column in the schema of the join
                                side */
    struct ArrowSchema schema;
    int64_t geometry_at; /**< column of the geometry in the output; -1: none */
    int is_in_wkb;       /**< 1: geometries of both sides, stored in two ways,
                              come into one column as WKB */
    int64_t most_bytes;  /**< maximum bytes of a row of the join side */
};

/** What the columns of pairs depend on: these settings, and the relation and
 * the pick of request. Borrows both. */
struct oj_row_column_words
rows_output_column_words(const struct ogrjoin_settings *settings,
                         const struct oj_pair_request *request);

/** Chooses the columns. Sets request->want [OJ_N_PAIR_VALUES] and whatever else
 * the columns need; its relation must be complete. aggregates may be NULL;
 * *out takes ownership. */
OJ_MUST_USE oj_status rows_output_open(const struct rows_side *input,
                                       const struct rows_side *join,
                                       const struct rows_chunks *join_chunks,
                                       const struct ogrjoin_settings *settings,
                                       struct rows_aggregates *aggregates,
                                       struct oj_pair_request *request,
                                       struct rows_output *out,
                                       struct oj_error *err);

void rows_output_close(struct rows_output *output);

/** The answer that places refer to. */
struct rows_answer
{
    const struct rows_chunks *input; /**< input rows; unused for join rows
                                          alone */
    int is_join_rows;                /**< 1: join rows that match nothing */
    const struct oj_matches *entries;
    const struct oj_pair_values *values; /**< values of the pairs, or NULL */
    const struct oj_flat *input_side; /**< rows of places, as they are joined */
    const struct oj_flat *join_side;
    int64_t first_row;  /**< input row that is row 0 of the aggregates */
    int64_t most_bytes; /**< maximum bytes of an input row */
};

/** Makes a batch of the first *n places, or of as many as fit; sets *n. */
OJ_MUST_USE oj_status rows_output_make(const struct rows_output *output,
                                       const struct rows_answer *answer,
                                       const struct oj_row_place *places,
                                       int64_t *n, struct ArrowArray *out,
                                       struct oj_error *err);

/** Maximum bytes of a row of these chunks, over the columns of the output. */
int64_t rows_output_most_bytes(const struct rows_output *output,
                               const struct rows_side *side,
                               const struct rows_chunks *chunks);

#endif
