/** Batches and their matches -> rows of an OGR layer that exists already.
 *
 *  One writer per layer and thread. Transactions, files and layer creation are
 *  the caller's (driver/).  Includes GDAL's C API.
 */
#ifndef OJ_LAYER_WRITE_H
#define OJ_LAYER_WRITE_H

#include "oj_layer_read.h"
#include "oj_pair_values.h"
#include "oj_value.h"

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
    OJ_COLUMN_INPUT,      /**< source: place in the reader's options.fields */
    OJ_COLUMN_JOIN,       /**< source: column of the table */
    OJ_COLUMN_JOIN_FID,   /**< FID of the join feature */
    OJ_COLUMN_MEASURE,    /**< distance */
    OJ_COLUMN_RANK,       /**< 1, 2, 3 within an input row */
    OJ_COLUMN_COUNT,      /**< pairs of the input row, before any is picked */
    OJ_COLUMN_PAIR_VALUE, /**< source: enum oj_pair_value */
    OJ_COLUMN_AGGREGATE   /**< source: what options.aggregate takes */
};

/** One column of the output: where its values come from. */
struct oj_column
{
    enum oj_column_origin origin;
    int source; /**< see origin */
    int target; /**< field index in the output layer */

    /** OJ_COLUMN_AGGREGATE: of the values. */
    OGRFieldType type;
    OGRFieldSubType subtype;
};

/** What the geometry of a row is. All but the input's are two-dimensional; a
 *  row without pair has none of them. */
enum oj_write_geometry
{
    OJ_WRITE_INPUT = 0,     /**< the input feature's, as read */
    OJ_WRITE_JOIN,          /**< the join feature's, from join_side */
    OJ_WRITE_NEAREST_POINT, /**< the point of OJ_PAIR_NEAREST_X and _Y */
    OJ_WRITE_CONNECTION,    /**< the line from OJ_PAIR_FROM_X, _Y to it */
    OJ_WRITE_SHAPE          /**< struct oj_pair_values.shapes */
};

struct oj_write_options
{
    enum oj_how how;
    const struct oj_column *columns; /**< [n_columns]; copied */
    int n_columns;
    int keep_fids;        /**< 1: output FIDs are the input's */
    int promote_to_multi; /**< 1: single shapes become multi */
    enum oj_write_geometry geometry;
    int multi_shapes; /**< 1: shapes made from arrays are multi, always */
    const struct oj_flat *join_side;   /**< for FIDs; outlives the writer */
    const struct oj_table *join_table; /**< outlives the writer */
    const int *cancel; /**< nonzero stops within a batch; may be NULL */

    /** Value of an OJ_COLUMN_AGGREGATE column for a row of the matches that are
     *  being written; valid until the next call. May be NULL where there is no
     *  such column. */
    oj_status (*aggregate)(void *user, int source, int64_t row,
                           struct oj_value *value, struct oj_error *err);
    void *aggregate_user;
};

/** What the columns of a row hold that do not come from the input. */
struct oj_write_pair
{
    int64_t row;      /**< of the matches: what aggregate is asked for */
    int64_t n_pairs;  /**< OJ_COLUMN_COUNT */
    int32_t join_row; /**< -1: no pair; the other values are then NULL */
    double measure;
    int64_t rank;
    double value[OJ_N_PAIR_VALUES]; /**< NaN: NULL */
};

struct oj_layer_writer;

/** layer outlives the writer. */
OJ_MUST_USE oj_status
oj_layer_writer_open(OGRLayerH layer, const struct oj_write_options *options,
                     struct oj_layer_writer **out, struct oj_error *err);

/** The join side that matches speak of from now on; its columns are those of
 *  options.join_table. table outlives its use; *join_side is copied, and what
 *  it points at outlives its use. */
void oj_layer_writer_set_join_side(struct oj_layer_writer *writer,
                                   const struct oj_flat *join_side,
                                   const struct oj_table *table);

/** Writes the output rows of the rows of a batch from first_row on that matches
 *  answers, in input order, pairs of a row in the order of the matches.  The
 *  geometry of the input is written as it was read (Z and M kept).
 *  values: what lies beside matches, or NULL
 *  OJ_ERR_IO with OGR's own text when a row is refused. */
OJ_MUST_USE oj_status oj_layer_writer_write(struct oj_layer_writer *writer,
                                            const struct oj_batch *batch,
                                            int64_t first_row,
                                            const struct oj_matches *matches,
                                            const struct oj_pair_values *values,
                                            struct oj_error *err);

/** Writes rows of the join layer that match nothing, as rows of a layer of
 *  pairs: columns of the input are NULL, FIDs are left to the driver.
 *  batch      of the join layer, with attributes; its fields are the columns of
 *             the join table
 *  is_matched [batch->n_rows] nonzero: passed over
 *  Their geometry is written as it was read where rows have the input's, and
 *  from the arrays where rows have the join feature's; else there is none. */
OJ_MUST_USE oj_status oj_layer_writer_write_join_rows(
    struct oj_layer_writer *writer, const struct oj_batch *batch,
    const uint8_t *is_matched, struct oj_error *err);

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

/** The side ("input" or "join") and FID of the first row given to the driver
 *  whose geometry has a coordinate that is not finite; NULL: there was none. */
const char *oj_layer_writer_infinite(const struct oj_layer_writer *writer,
                                     int64_t *fid);

/** Sets the columns of one row on feature (an in-place update); those of the
 *  input are left. */
OJ_MUST_USE oj_status oj_layer_writer_set_columns(
    const struct oj_layer_writer *writer, OGRFeatureH feature,
    const struct oj_write_pair *pair, struct oj_error *err);

/** Accepts NULL. */
void oj_layer_writer_close(struct oj_layer_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
