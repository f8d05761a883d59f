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

/** What became of the rows of an answer. */
struct oj_flatgeobuf_told
{
    int64_t n_rows, n_empty; /**< empty: their geometry has no vertex */
    int has_infinite;     /**< 1: a row has a coordinate that is not finite */
    int64_t infinite_fid; /**< of the feature that the first such is about */
    int has_failed;       /**< 1: a row failed, not the file */
    int64_t failed_fid;   /**< the same */
};

/** All rows of the answer that the cursor has begun, made on all threads.
 *  *told is filled in every case. */
OJ_MUST_USE oj_status oj_flatgeobuf_rows_write(struct oj_flatgeobuf_rows *rows,
                                               struct oj_flatgeobuf_told *told,
                                               struct oj_error *err);

/** Completes the file; see oj_flatgeobuf_write_finish(). */
OJ_MUST_USE oj_status oj_flatgeobuf_rows_finish(struct oj_flatgeobuf_rows *rows,
                                                int *has_rows,
                                                struct oj_error *err);

/** Accepts NULL. */
void oj_flatgeobuf_rows_close(struct oj_flatgeobuf_rows *rows);

#endif
