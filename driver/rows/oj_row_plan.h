/** Plan of the output rows: which rows are written, which pairs of an input row
 *  are kept, and which fields and geometry the rows have. */
#ifndef OJ_ROW_PLAN_H
#define OJ_ROW_PLAN_H

#include "../../algs/api/rows/oj_row_words.h"
#include "../../algs/pairs/values/oj_pair_stage.h"
#include "../../flatten/write/oj_layer_write.h"
#include "../job/oj_job.h"
#include "../output/oj_schema.h"
#include "oj_aggregation.h"

/** Plan of the output rows. Zeroed memory is valid and closed. An open plan
 *  must not be moved in memory. */
struct oj_rows
{
    struct oj_job *job;
    /** which input rows are written: inner for right joins, left for full joins
     */
    enum oj_how how;
    /** the fields; oj_rows_set_geometry_type() sets fields.type */
    struct oj_schema_request fields;
    enum oj_write_geometry geometry;
    /** columns with values of pairs; unused with -agg */
    struct oj_computed_columns computed;

    struct oj_aggregation *aggregation; /**< NULL without -agg */
    int streams_join;                   /**< 1 if -agg streams the join layer */

    struct oj_pair_request request;
    struct oj_row_pick pick;
    /** column of field F in the join table, for -pick max:F and min:F; or -1 */
    int score_column;
    /** computes values of pairs; NULL if no values are needed */
    struct oj_pair_stage *stage;
    /** [join_joined.n_features] the scores by which -pick max:F and min:F
     *  choose */
    int64_t *score;
    int64_t cap_score;
    struct oj_flat join_as_read, join_joined;
    struct oj_flat_slice slice; /**< the current part of a batch, as read */
    /** values of the pairs of each answer in flight; used if there is a stage
     */
    struct oj_pair_values values[OJ_PIPELINE_SLOTS];
};

/** Plans the rows and adds the fields that they need to those that are read.
 *  Precondition: the job is open and not prepared; it must outlive the rows.
 *  OJ_ERR_ARG or OJ_ERR_UNSUPPORTED for options that cannot be combined. */
OJ_MUST_USE oj_status oj_rows_plan(struct oj_job *job, struct oj_rows *rows,
                                   struct oj_error *err);

/** Sets fields.type, the geometry type before -nlt makes it a multi type, for
 *  the format of this driver. If driver is NULL, it is for no particular
 *  format. OJ_ERR_UNSUPPORTED if the format cannot hold the geometries. */
OJ_MUST_USE oj_status oj_rows_set_geometry_type(struct oj_rows *rows,
                                                GDALDriverH driver,
                                                struct oj_error *err);

/** Prepares for answers. Precondition: the job is prepared. */
OJ_MUST_USE oj_status oj_rows_open(struct oj_rows *rows, struct oj_error *err);

/** Computes those values of an answer's pairs that the rows need, and applies
 *  -pick. Runs on the join thread. batch is the batch that contains `part`, as
 *  it was read. */
OJ_MUST_USE oj_status oj_rows_compute_pair_values(
    struct oj_rows *rows, const struct oj_pipeline_part *part,
    const struct oj_flat_buf *batch, const struct oj_matches *matches,
    struct oj_error *err);

/** Fills *options so that a writer can make the rows of a layer with this
 *  schema. Precondition: the job is prepared. */
void oj_rows_fill_write_options(const struct oj_rows *rows,
                                const struct oj_schema *schema,
                                struct oj_write_options *options);

/** Warns if overlaps of pairs could not be computed, or if places along lines
 *  have no M value. To be called after the last row. */
void oj_rows_warn_of_missing_values(const struct oj_rows *rows);

/** Frees what rows owns; a closed one is accepted. To be called before
 *  oj_job_close(). */
void oj_rows_close(struct oj_rows *rows);

#endif
