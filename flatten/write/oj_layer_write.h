/** Batches and their matches -> rows of an OGR layer that exists already.
 *
 *  One writer per layer and thread. Transactions, files and layer creation are
 *  the caller's (driver/).  Includes GDAL's C API.
 */
#ifndef OJ_LAYER_WRITE_H
#define OJ_LAYER_WRITE_H

#include "oj_row_cursor.h"

struct oj_layer_writer;

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

/** Rows so far whose geometry is NULL or empty. */
int64_t
oj_layer_writer_rows_without_geometry(const struct oj_layer_writer *writer);

/** The lane that rows go by; NULL: as features, all so far. */
const char *oj_layer_writer_lane(const struct oj_layer_writer *writer);

/** Rows written so far. */
int64_t oj_layer_writer_rows(const struct oj_layer_writer *writer);

/** Warnings that the driver raised while writing; *first is the first of them
 *  (the writer's memory), or "". */
int64_t oj_layer_writer_warnings(const struct oj_layer_writer *writer,
                                 const char **first);

/** The side ("input" or "join") and FID of the first row given to the driver
 *  whose geometry has a coordinate that is not finite; NULL: there was none. */
const char *oj_layer_writer_infinite(const struct oj_layer_writer *writer,
                                     int64_t *fid);

/** Accepts NULL. */
void oj_layer_writer_close(struct oj_layer_writer *writer);

#endif
