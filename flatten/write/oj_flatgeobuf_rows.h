/** Rows of a layer of pairs -> a file of FlatGeobuf, without features. */
#ifndef OJ_FLATGEOBUF_ROWS_H
#define OJ_FLATGEOBUF_ROWS_H

#include "oj_row_cursor.h"

struct oj_flatgeobuf_rows;

/** In place of the rows of the layer, which GDAL made. *out is NULL, without
 * error, where GDAL has to write the rows itself. cursor, of the layer's rows,
 * outlives it. */
OJ_MUST_USE oj_status
oj_flatgeobuf_rows_open(const struct oj_flatgeobuf_file *file, OGRLayerH layer,
                        struct oj_row_cursor *cursor,
                        struct oj_flatgeobuf_rows **out, struct oj_error *err);

/** The next row of the answer that the cursor has begun; *there is 0 when it
 * has no more. *fid is of the feature that the row is about, and *is_empty and
 *  *is_finite speak of its geometry. */
OJ_MUST_USE oj_status oj_flatgeobuf_rows_next(struct oj_flatgeobuf_rows *rows,
                                              int *there, int64_t *fid,
                                              int *is_empty, int *is_finite,
                                              struct oj_error *err);

/** Completes the file; see oj_flatgeobuf_write_finish(). */
OJ_MUST_USE oj_status oj_flatgeobuf_rows_finish(struct oj_flatgeobuf_rows *rows,
                                                int *has_rows,
                                                struct oj_error *err);

/** Accepts NULL. */
void oj_flatgeobuf_rows_close(struct oj_flatgeobuf_rows *rows);

#endif
