/** What a row of the output holds: which rows there are, which one of a row's
 *  pairs stays, which fields there are, and what a row's geometry is. */
#ifndef OJ_ROW_PLAN_H
#define OJ_ROW_PLAN_H

#include "../../algs/api/rows/oj_row_words.h"
#include "../../algs/pairs/values/oj_pair_stage.h"
#include "../../flatten/write/oj_layer_write.h"
#include "../job/oj_job.h"
#include "../output/oj_schema.h"
#include "oj_aggregation.h"

/** Zeroed memory is a valid closed one. An open one stays where it is. */
struct oj_rows
{
    struct oj_job *job;
    enum oj_how how; /**< of input rows: right and full joins take them as inner
                          and left ones do */
    struct oj_schema_request fields; /**< type: of oj_rows_type() */
    enum oj_write_geometry geometry;
    struct oj_computed_columns computed; /**< without -agg */

    struct oj_aggregation *aggregation; /**< NULL without -agg */
    int streams_join; /**< 1: of -agg, the join layer is the one to stream */

    struct oj_pair_request request;
    struct oj_row_pick pick;
    int score_column; /**< of the join table, -pick max:F and min:F; or -1 */
    struct oj_pair_stage *stage; /**< NULL: nothing is asked of the pairs */
    int64_t *score;              /**< of the join features at hand */
    int64_t cap_score;
    struct oj_flat join_as_read, join_joined;
    struct oj_flat_slice slice; /**< of the batch as it was read */
    struct oj_pair_values values[OJ_PIPELINE_SLOTS]; /**< of the answers, where
                                                          there is a stage */
};

/** The job is open and not prepared; it outlives the rows. Has the fields read
 *  that are needed. OJ_ERR_ARG, OJ_ERR_UNSUPPORTED: what makes no sense. */
OJ_MUST_USE oj_status oj_rows_plan(struct oj_job *job, struct oj_rows *rows,
                                   struct oj_error *err);

/** Sets fields.type, that of the geometries before promotion, in a format of
 *  this driver (NULL: in none); OJ_ERR_UNSUPPORTED when it cannot hold them. */
OJ_MUST_USE oj_status oj_rows_type(struct oj_rows *rows, GDALDriverH driver,
                                   struct oj_error *err);

/** The job is prepared; from now on its answers pass here. */
OJ_MUST_USE oj_status oj_rows_open(struct oj_rows *rows, struct oj_error *err);

/** Finds out what is asked about the pairs of an answer; on the join thread.
 *  batch  of the part, as it was read */
OJ_MUST_USE oj_status oj_rows_after_join(struct oj_rows *rows,
                                         const struct oj_pipeline_part *part,
                                         const struct oj_flat_buf *batch,
                                         const struct oj_matches *matches,
                                         struct oj_error *err);

/** How the rows are made, as a layer of this schema. The job is prepared. */
void oj_rows_fill_write_options(const struct oj_rows *rows,
                                const struct oj_schema *schema,
                                struct oj_write_options *options);

/** After the last row: a line on pairs that could not be overlaid. */
void oj_rows_warn(const struct oj_rows *rows);

/** Accepts a closed one. Before oj_job_close(). */
void oj_rows_close(struct oj_rows *rows);

#endif
