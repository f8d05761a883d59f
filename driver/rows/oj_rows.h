/** What becomes of the pairs of a join before they are written: which one of a
 *  row stays, which columns of ours there are, and what a row's geometry is. */
#ifndef OJ_ROWS_H
#define OJ_ROWS_H

#include "../../algs/pair_values/oj_pair_stage.h"
#include "../../flatten/write/oj_layer_write.h"
#include "../job/oj_job.h"
#include "../output/oj_schema.h"

enum
{
    OJ_MAX_OWN_COLUMNS = 16
};

/** Zeroed memory is a valid closed one. */
struct oj_rows
{
    struct oj_job *job;
    struct oj_pair_request request;
    int score_column; /**< of the join table, -pick max:F and min:F; or -1 */
    int score_is_least;
    enum oj_write_geometry geometry;
    struct oj_own_column own[OJ_MAX_OWN_COLUMNS];
    int n_own;

    struct oj_pair_stage *stage; /**< NULL: nothing is asked of the pairs */
    int64_t *score;              /**< of the join features at hand */
    int32_t *tie_rank;           /**< the same, where they are in tiles */
    int64_t cap_score, cap_tie_rank;
    struct oj_flat join_as_read, join_joined;
    struct oj_flat_slice slice; /**< of the batch as it was read */
    struct oj_pair_values values[OJ_PIPELINE_SLOTS];
};

/** The job is open and not prepared; it outlives the rows. Has the fields read
 *  that are needed. OJ_ERR_ARG, OJ_ERR_UNSUPPORTED: what makes no sense. */
OJ_MUST_USE oj_status oj_rows_plan(struct oj_job *job, struct oj_rows *rows,
                                   struct oj_error *err);

/** The job is prepared; from now on its answers pass here. */
OJ_MUST_USE oj_status oj_rows_open(struct oj_rows *rows, struct oj_error *err);

/** What is known of the pairs of an answer, or NULL. */
const struct oj_pair_values *oj_rows_values(const struct oj_rows *rows,
                                            int answer);

/** 1 when no input row gives two rows of the output. */
int oj_rows_one_per_input(const struct oj_rows *rows);

/** The type of the geometries of the output, before promotion, in a format of
 *  this driver (NULL: in none); OJ_ERR_UNSUPPORTED when it cannot hold them. */
OJ_MUST_USE oj_status oj_rows_type(struct oj_rows *rows, GDALDriverH driver,
                                   OGRwkbGeometryType *type,
                                   struct oj_error *err);

/** 1 when join rows that match nothing follow. */
int oj_rows_has_unmatched_join(const struct oj_rows *rows);

/** After the last row: a line on pairs that could not be overlaid. */
void oj_rows_warn(const struct oj_rows *rows);

/** Accepts a closed one. */
void oj_rows_close(struct oj_rows *rows);

#endif
