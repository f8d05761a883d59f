/** Writes batches and their matches as rows of an existing OGR layer.
 *
 *  One writer per layer and thread. The caller (driver/) handles transactions,
 *  files and layer creation.  Uses GDAL's C API.
 */
#ifndef OJ_LAYER_WRITE_H
#define OJ_LAYER_WRITE_H

#include "oj_row_cursor.h"

struct oj_layer_writer;

struct oj_write_counts
{
    int64_t n_rows;
    /** rows without geometry, or with an empty one */
    int64_t n_without_geometry;
    /** lane that wrote the rows; NULL: all were features */
    const char *lane;
    int64_t n_warnings;        /**< warnings of the driver while writing */
    const char *first_warning; /**< or ""; owned by the writer */

    /** Side ("input" or "join") and FID of the first row given to the driver
     *  whose geometry has a coordinate that is not finite; NULL: none. */
    const char *infinite_side;
    int64_t infinite_fid;
};

/** layer must outlive the writer. */
OJ_MUST_USE oj_status
oj_layer_writer_open(OGRLayerH layer, const struct oj_write_options *options,
                     struct oj_layer_writer **out, struct oj_error *err);

/** The writer's cursor, through which its join side is set. */
struct oj_row_cursor *oj_layer_writer_cursor(struct oj_layer_writer *writer);

/** Writes the output rows for matches, whose row 0 is row first_row of batch:
 *  in input order, the pairs of a row in the order of the matches.  The
 *  geometry of the input is written as read, with Z and M.
 *  values: further values of the pairs, or NULL
 *  OJ_ERR_IO with OGR's text when a row is refused. */
OJ_MUST_USE oj_status oj_layer_writer_write(struct oj_layer_writer *writer,
                                            const struct oj_batch *batch,
                                            int64_t first_row,
                                            const struct oj_matches *matches,
                                            const struct oj_pair_values *values,
                                            struct oj_error *err);

/** Writes unmatched rows of the join layer: columns of the input are NULL, FIDs
 *  are chosen by the driver.
 *  batch       of the join layer, with attributes; its fields are the columns
 *              of the join table
 *  is_matched  [batch->n_rows] nonzero: not written
 *  If rows have the input's geometry, it is written as read; if they have the
 *  join feature's, from the arrays; else there is none. */
OJ_MUST_USE oj_status oj_layer_writer_write_join_rows(
    struct oj_layer_writer *writer, const struct oj_batch *batch,
    const uint8_t *is_matched, struct oj_error *err);

/** Call after the last row. *has_file is 1 if the rows are in options.file,
 *  which is complete, and not in the layer. */
OJ_MUST_USE oj_status oj_layer_writer_finish(struct oj_layer_writer *writer,
                                             int *has_file,
                                             struct oj_error *err);

/** Counts of the rows written so far. */
const struct oj_write_counts *
oj_layer_writer_counts(const struct oj_layer_writer *writer);

/** Frees it. Accepts NULL. */
void oj_layer_writer_close(struct oj_layer_writer *writer);

#endif
