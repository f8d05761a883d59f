/** Batches and their matches -> rows of an OGR layer that exists already.
 *
 *  One writer per layer and thread. Transactions, files and layer creation are
 *  the caller's (driver/).  Includes GDAL's C API.
 */
#ifndef OJ_LAYER_WRITE_H
#define OJ_LAYER_WRITE_H

#include "oj_row_cursor.h"

struct oj_layer_writer;

struct oj_write_counts
{
    int64_t n_rows;
    int64_t n_without_geometry; /**< of these; or it is empty */
    const char *lane;   /**< that rows go by; NULL: as features, all so far */
    int64_t n_warnings; /**< that the driver raised */
    const char *first_warning; /**< or ""; the writer's memory */

    /** Side ("input" or "join") and FID of the first row given to the driver
     *  whose geometry has a coordinate that is not finite; NULL: none. */
    const char *infinite_side;
    int64_t infinite_fid;
};

/** layer outlives the writer. */
OJ_MUST_USE oj_status
oj_layer_writer_open(OGRLayerH layer, const struct oj_write_options *options,
                     struct oj_layer_writer **out, struct oj_error *err);

/** The rows of the writer: their join side is set there. */
struct oj_row_cursor *oj_layer_writer_cursor(struct oj_layer_writer *writer);

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

/** After the last row: *has_file is 1 when the rows are in options.file, which
 *  is complete, and not in the layer. */
OJ_MUST_USE oj_status oj_layer_writer_finish(struct oj_layer_writer *writer,
                                             int *has_file,
                                             struct oj_error *err);

/** What was written so far. */
const struct oj_write_counts *
oj_layer_writer_counts(const struct oj_layer_writer *writer);

/** Accepts NULL. */
void oj_layer_writer_close(struct oj_layer_writer *writer);

#endif
