/** Batches and their matches -> rows of an OGR layer that exists already.
 *
 *  One writer per layer and thread. Transactions, files and layer creation are
 *  the caller's (driver/).  Includes GDAL's C API.
 */
#ifndef OJ_LAYER_WRITE_H
#define OJ_LAYER_WRITE_H

#include "oj_layer_read.h"
#include "oj_matches.h"

#ifdef __cplusplus
extern "C" {
#endif

enum oj_how
{
    OJ_HOW_LEFT = 0, /**< every input row; NULLs where nothing matched */
    OJ_HOW_INNER,    /**< one row per pair */
    OJ_HOW_SEMI,     /**< input rows that match, once, no join columns */
    OJ_HOW_ANTI      /**< input rows that do not match, no join columns */
};

enum oj_column_origin
{
    OJ_COLUMN_INPUT,    /**< source: place in the reader's options.fields */
    OJ_COLUMN_JOIN,     /**< source: column of the table */
    OJ_COLUMN_JOIN_FID, /**< FID of the join feature */
    OJ_COLUMN_MEASURE,  /**< distance */
    OJ_COLUMN_RANK      /**< 1, 2, 3 within an input row */
};

/** One column of the output: where its values come from. */
struct oj_column
{
    enum oj_column_origin origin;
    int source; /**< see origin */
    int target; /**< field index in the output layer */
};

struct oj_write_options
{
    enum oj_how how;
    const struct oj_column *columns; /**< [n_columns]; copied */
    int n_columns;
    int keep_fids;                     /**< 1: output FIDs are the input's */
    int promote_to_multi;              /**< 1: single shapes become multi */
    const struct oj_flat *join_side;   /**< for FIDs; outlives the writer */
    const struct oj_table *join_table; /**< outlives the writer */
    const int *cancel; /**< nonzero stops within a batch; may be NULL */
};

struct oj_layer_writer;

/** layer outlives the writer. */
OJ_MUST_USE oj_status
oj_layer_writer_open(OGRLayerH layer, const struct oj_write_options *options,
                     struct oj_layer_writer **out, struct oj_error *err);

/** Writes the output rows of a batch, in input order, pairs of a row in rank
 *  order. Geometry is written as it was read (Z and M kept).
 *  OJ_ERR_IO with OGR's own text when a row is refused. */
OJ_MUST_USE oj_status oj_layer_writer_write(struct oj_layer_writer *writer,
                                            const struct oj_batch *batch,
                                            const struct oj_matches *matches,
                                            struct oj_error *err);

/** Rows written so far. */
int64_t oj_layer_writer_rows(const struct oj_layer_writer *writer);

/** Rows written whose geometry is NULL or empty (some drivers drop them). 0 for
 *  a layer that has no geometry. */
int64_t
oj_layer_writer_rows_without_geometry(const struct oj_layer_writer *writer);

/** Warnings that the driver raised while writing; *first is the first of them
 *  (the writer's memory), or "". */
int64_t oj_layer_writer_warnings(const struct oj_layer_writer *writer,
                                 const char **first);

/** Sets the columns of one row on feature (an in-place update): join_row < 0
 *  sets JOIN, JOIN_FID and MEASURE columns to NULL. INPUT columns are left. */
OJ_MUST_USE oj_status oj_layer_writer_set_join_columns(
    const struct oj_layer_writer *writer, OGRFeatureH feature, int32_t join_row,
    double measure, int64_t rank, struct oj_error *err);

/** Accepts NULL. */
void oj_layer_writer_close(struct oj_layer_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
