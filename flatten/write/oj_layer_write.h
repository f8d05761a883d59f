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
    /** name of the lane that wrote the rows; NULL: all were written as features
     */
    const char *lane;
    int64_t n_warnings;        /**< warnings of the driver while writing */
    const char *first_warning; /**< the first warning, or ""; owned by the
                                    writer */

    /** First row given to the driver whose geometry has a coordinate that is
     *  not finite: its side ("input" or "join") and FID. NULL: there was no
     *  such row. */
    const char *infinite_side;
    int64_t infinite_fid;
};

/** Opens a writer; layer must outlive it. */
OJ_MUST_USE oj_status
oj_layer_writer_open(OGRLayerH layer, const struct oj_write_options *options,
                     struct oj_layer_writer **out, struct oj_error *err);

/** Returns the writer's cursor. Callers set the join side through it. */
struct oj_row_cursor *oj_layer_writer_cursor(struct oj_layer_writer *writer);

/** Writes the output rows for matches, whose row 0 is row first_row of batch:
 *  in input order, the pairs of a row in the order of the matches. The input's
 *  geometry is written as it was read, with Z and M. values: further values of
 *  the pairs, or NULL. Fails with OJ_ERR_IO and OGR's message if a row is
 *  refused. */
OJ_MUST_USE oj_status oj_layer_writer_write(struct oj_layer_writer *writer,
                                            const struct oj_batch *batch,
                                            int64_t first_row,
                                            const struct oj_matches *matches,
                                            const struct oj_pair_values *values,
                                            struct oj_error *err);

/** Writes the unmatched rows of a batch of the join layer: columns of the input
 *  are NULL, the driver chooses the FIDs.
 *   batch       rows of the join layer, with attributes; its fields are the
 *               columns of the join table
 *   is_matched  [batch->n_rows] nonzero: the row is not written
 *  With OJ_WRITE_INPUT the geometry of the join row is written as it was read;
 *  with OJ_WRITE_JOIN it is made from the arrays; otherwise the rows have no
 *  geometry. */
OJ_MUST_USE oj_status oj_layer_writer_write_join_rows(
    struct oj_layer_writer *writer, const struct oj_batch *batch,
    const uint8_t *is_matched, struct oj_error *err);

/** Completes the output; must be called after the last row. *has_file is 1 if
 *  the rows are in options.file, which is complete, and not in the layer. */
OJ_MUST_USE oj_status oj_layer_writer_finish(struct oj_layer_writer *writer,
                                             int *has_file,
                                             struct oj_error *err);

/** Returns the counts of the rows written so far. */
const struct oj_write_counts *
oj_layer_writer_counts(const struct oj_layer_writer *writer);

/** Frees the writer; accepts NULL. */
void oj_layer_writer_close(struct oj_layer_writer *writer);

#endif
