/** The rows of a join as features, one after another, on the thread that asks
 *  for them; the join runs ahead on threads of its own (oj_lazy.h).
 *
 *   open -> shape -> next, next, ... [stop -> filter -> next, ...]
 *
 *  Nothing is read before the first row is asked for.  While it runs, the
 *  datasets of its pass belong to its threads; after oj_row_stream_stop() they
 *  are the caller's.  Rows are of one state of the join side, which is read as
 *  a whole before the first one; oj_row_stream_refresh(), between two runs,
 *  sees to it that the next one is of the state that the files are in then.
 */
#ifndef OJ_ROW_STREAM_H
#define OJ_ROW_STREAM_H

#include "../../flatten/write/oj_row_cursor.h"
#include "../rows/oj_pass.h"
#include "oj_lazy.h"
#include "oj_told.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    const struct oj_command *command;
    const struct oj_row_stream *like;
    const struct oj_row_shape *shape;
    int skips; /**< see oj_row_stream_shape() */
    struct oj_pass pass;
    char **fields[2]; /**< owned: of input and join when they were first opened,
                           "NAME TYPE SUBTYPE" */
    int is_open;      /**< told can be used */
    struct oj_told told;

    /* Filters on the input layer beside those of the command. */
    int has_box, has_where;
    OGREnvelope box;
    char *where; /**< owned */

    int cancel;           /**< raised to end what is under way */
    int is_broken;        /**< something failed: the pass is opened anew */
    struct oj_lazy *lazy; /**< NULL: not running */
    char **settings;      /**< of the thread that started it */
    int has_ended;        /**< no more rows until it is stopped */
    struct oj_row_cursor *cursor; /**< there while rows are read */
    struct oj_table *types; /**< owned: the join side's columns, no rows */
    OGRFeatureH spare;      /**< made, and not needed */
    int64_t position;       /**< rows that next() or skip() have passed */
};

/** Opens the pass: schemas only. command outlives the stream, which is to be
 *  closed also after a failure.
 *  like  another stream of the same command, whose join side can be used where
 *        it is made first; or NULL. It outlives this one's use. */
OJ_MUST_USE oj_status oj_row_stream_open(const struct oj_command *command,
                                         const struct oj_row_stream *like,
                                         struct oj_row_stream *stream,
                                         struct oj_error *err);

/** The same later. */
void oj_row_stream_set_like(struct oj_row_stream *stream,
                            const struct oj_row_stream *like);

/** Opens the pass anew where a file of one of the sides has changed since it
 *  was opened (*is_new: 1), or something failed. Does nothing while it runs.
 *  OJ_ERR_DATA: the fields are others than those of the shape. */
OJ_MUST_USE oj_status oj_row_stream_refresh(struct oj_row_stream *stream,
                                            int *is_new, struct oj_error *err);

/** shape outlives the stream. Before the first row.
 *  skips  1: input fields that are ignored in shape->asked when rows are begun
 *         are not read, and asked does not change until the stream is stopped
 */
void oj_row_stream_shape(struct oj_row_stream *stream,
                         const struct oj_row_shape *shape, int skips);

/** Filters of the input layer from the next start on, in place of those before:
 *  NULL: none. Stops the stream. OJ_ERR_NOMEM: then there are none. */
OJ_MUST_USE oj_status oj_row_stream_filter(struct oj_row_stream *stream,
                                           const OGREnvelope *box,
                                           const char *where,
                                           struct oj_error *err);

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

/** All rows under the filters, without making them. The stream must not run. */
OJ_MUST_USE oj_status oj_row_stream_count(struct oj_row_stream *stream,
                                          int64_t *n, struct oj_error *err);

/** Rows of the input layer under the filters, by its own count. *n -1: not
 *  known, without force where it would be a pass over the data. The stream must
 *  not run. */
OJ_MUST_USE oj_status oj_row_stream_count_input(struct oj_row_stream *stream,
                                                int force, int64_t *n,
                                                struct oj_error *err);

/** The same of its extent. */
OJ_MUST_USE oj_status oj_row_stream_extent(struct oj_row_stream *stream,
                                           int force, OGREnvelope *extent,
                                           int *there, struct oj_error *err);

/** Accepts a closed one. */
void oj_row_stream_close(struct oj_row_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
