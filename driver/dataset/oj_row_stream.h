/** The rows of a join as features, one after another, on the thread that asks
 *  for them; the join runs ahead on threads of its own (oj_pass.h).
 *
 *   open -> shape -> next, next, ... [stop -> filter -> next, ...]
 *
 *  Nothing is read before the first row is asked for.  While rows are under way
 *  the datasets of the pass belong to its threads; after oj_row_stream_stop()
 *  they are the caller's.  Rows are of one state of the join side, which is
 * read as a whole before the first one; oj_row_stream_refresh(), between two
 * runs, sees to it that the next one is of the state that the files are in
 * then.
 */
#ifndef OJ_ROW_STREAM_H
#define OJ_ROW_STREAM_H

#include "../../flatten/write/oj_row_cursor.h"
#include "../rows/oj_pass.h"

/** What the rows look like; shared by all streams of a layer. */
struct oj_row_shape
{
    const struct oj_column *columns; /**< [n_columns] */
    int n_columns;
    OGRFeatureDefnH defn;     /**< of the features that are made */
    OGRFeatureDefnH asked;    /**< the same fields; those ignored are not set */
    OGRSpatialReferenceH crs; /**< of the features' geometries, or NULL */
    int keep_fids; /**< 1: FIDs are the input's, spread where an input row can
                        give several (oj_row_cursor_spread()); 0: 0, 1, ... */
};

/** Zeroed memory is a valid closed one. An open one stays where it is. */
struct oj_row_stream
{
    struct oj_pass pass; /**< opened by oj_pass_open_shared() */
    const struct oj_row_shape *shape;
    int skips;                    /**< see oj_row_stream_shape() */
    int has_ended;                /**< no more rows until it is stopped */
    struct oj_row_cursor *cursor; /**< there while rows are read */
    struct oj_table *types; /**< owned: the join side's columns, no rows */
    OGRFeatureH spare;      /**< made, and not needed */
    int64_t position;       /**< rows that next() or skip() have passed */
};

/** Opens the pass anew where a file of one of the sides has changed since it
 *  was opened, or something failed: *is_new 1. Does nothing while it runs.
 *  OJ_ERR_DATA: the fields are others than those of the shape. */
OJ_MUST_USE oj_status oj_row_stream_refresh(struct oj_row_stream *stream,
                                            int *is_new, struct oj_error *err);

/** shape outlives the stream. Before the first row.
 *  skips  1: input fields that are ignored in shape->asked when rows are begun
 *         are not read, and asked does not change until the stream is stopped
 */
void oj_row_stream_shape(struct oj_row_stream *stream,
                         const struct oj_row_shape *shape, int skips);

/** The next row; NULL at the end. The caller destroys it. */
OJ_MUST_USE oj_status oj_row_stream_next(struct oj_row_stream *stream,
                                         OGRFeatureH *feature,
                                         struct oj_error *err);

/** Passes over n rows, or as many as there are: *n_passed. */
OJ_MUST_USE oj_status oj_row_stream_skip(struct oj_row_stream *stream,
                                         int64_t n, int64_t *n_passed,
                                         struct oj_error *err);

/** Makes stream->cursor, which then stays until the stream is stopped, without
 *  an answer, for who reads answers by it themselves. Does nothing where it is
 *  there. */
OJ_MUST_USE oj_status oj_row_stream_begin(struct oj_row_stream *stream,
                                          struct oj_error *err);

/** Lets the cursor's answer go and begins it with the next one; *there 0: the
 *  end. */
OJ_MUST_USE oj_status oj_row_stream_advance(struct oj_row_stream *stream,
                                            int *there, struct oj_error *err);

/** Ends what is under way; the next row is the first one again. */
void oj_row_stream_stop(struct oj_row_stream *stream);

/** The row with this FID, where shape->keep_fids; *feature NULL: there is none.
 *  The stream must not run. */
OJ_MUST_USE oj_status oj_row_stream_get(struct oj_row_stream *stream,
                                        int64_t fid, OGRFeatureH *feature,
                                        struct oj_error *err);

/** Accepts a closed one. */
void oj_row_stream_close(struct oj_row_stream *stream);

#endif
