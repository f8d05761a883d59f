/** Makes the record batches of a join of rows. A place describes a row of the
 *  output: an input row, a join row, or a pair of both.
 *
 *   sides, settings --open--> output columns, their schema, which values of
 *   pairs they need
 *   pairs of a batch --make--> a record batch
 */
#ifndef ROWS_OUTPUT_H
#define ROWS_OUTPUT_H

#include "../../../flatten/arrays/oj_row_places.h"
#include "../rows/oj_row_columns.h"
#include "rows_aggregates.h"
#include "rows_side.h"

/** The columns of the output. Owner, but the sides are borrowed; zeroed memory
 * is a valid empty value. */
struct rows_output
{
    const struct rows_side *input, *join;
    const struct rows_chunks *join_chunks;
    enum oj_how how;
    int geometry; /**< enum oj_write_geometry, or API_GEOMETRY_NONE */
    int is_multi; /**< 1: computed geometries are multi-geometries */
    struct rows_aggregates *aggregates; /**< NULL: no aggregates */

    struct oj_row_columns columns;
    int64_t *input_column; /**< [fields] column of each field in the input's
                                schema; -1: computed geometry */
    int64_t *join_column;  /**< [fields] column of each field in the join side's
                                schema */
    struct ArrowSchema schema;
    int64_t geometry_at; /**< output column of the geometry; -1: none */
    int is_in_wkb;       /**< 1: geometries of the two sides have different
                              types and are converted to WKB for one output
                              column */
    int64_t most_bytes;  /**< maximum bytes of any row of the join side */
};

/** Returns the options that decide which columns of pairs there are, taken from
 * settings and request (relation, pick). Both are borrowed. */
struct oj_row_column_words
rows_output_column_words(const struct ogrjoin_settings *settings,
                         const struct oj_pair_request *request);

/** Chooses the columns and makes their schema. Requests the values of pairs
 * that the columns need (request->want and others). request->relation must be
 * complete. aggregates may be NULL; *out owns it afterwards. */
OJ_MUST_USE oj_status rows_output_open(const struct rows_side *input,
                                       const struct rows_side *join,
                                       const struct rows_chunks *join_chunks,
                                       const struct ogrjoin_settings *settings,
                                       struct rows_aggregates *aggregates,
                                       struct oj_pair_request *request,
                                       struct rows_output *out,
                                       struct oj_error *err);

void rows_output_close(struct rows_output *output);

/** Sources of the output rows (places): pairs, and arrays of both sides. */
struct rows_answer
{
    const struct rows_chunks *input; /**< input rows; not used for join rows
                                          without pairs */
    int is_join_rows;                /**< 1: places are join rows without
                                          pairs */
    const struct oj_matches *entries;
    const struct oj_pair_values *values; /**< values of the pairs; NULL: none */
    const struct oj_flat *input_side;    /**< the input layer that contains the
                                              rows of places */
    const struct oj_flat *join_side;
    int64_t first_row;  /**< number of the input row to which row 0 of the
                             aggregates' results belongs */
    int64_t most_bytes; /**< maximum bytes of any input row */
};

/** Makes a record batch of the next *n rows of output, or of fewer if these are
 * too large; sets *n to their number. */
OJ_MUST_USE oj_status rows_output_make_batch(const struct rows_output *output,
                                             const struct rows_answer *answer,
                                             const struct oj_row_place *places,
                                             int64_t *n, struct ArrowArray *out,
                                             struct oj_error *err);

/** Returns the maximum number of bytes that a row of these chunks takes in the
 * output. */
int64_t rows_output_max_row_bytes(const struct rows_output *output,
                                  const struct rows_side *side,
                                  const struct rows_chunks *chunks);

#endif
