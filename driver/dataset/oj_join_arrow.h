/** The rows of a join as a native Arrow C stream (GDAL >= 3.6): columns are
 *  filled from the arrays of answers, without features.
 *
 *    answers -> cursor -> block of rows -> columns -> ArrowArray
 *
 *  The schema is that which GDAL's generic stream of the layer has when this
 * one is opened; the values are those that the features have. (In GDAL 3.6 the
 *  generic stream differs: days before 1970 are off by one, and seconds that
 *  round up to a minute are off by a minute.)
 */
#ifndef OJ_JOIN_ARROW_H
#define OJ_JOIN_ARROW_H

#include "../../flatten/write/oj_row_cursor.h"

struct ArrowArrayStream;

/** An open stream; opaque. */
struct oj_join_arrow;

/** Where the rows of a stream come from. */
struct oj_arrow_rows
{
    /** Cursor of the rows, which already have their FIDs. Must outlive the
     *  stream, unless oj_join_arrow_detach() is called first. */
    struct oj_row_cursor *cursor;

    /** Releases the current answer and begins the next one, which may have no
     *  rows. *there becomes 0 if there are no more answers. */
    oj_status (*advance)(void *user, int *there, struct oj_error *err);

    /** Called when the stream is released without having been detached. May be
     *  NULL. */
    void (*closed)(void *user);
    void *user;
};

/** Opens a stream of the cursor's rows, without the fields that are now ignored
 *  in defn. The stream holds a reference to defn.
 *   options  as for OGR_L_GetArrowStream(): INCLUDE_FID, MAX_FEATURES_IN_BATCH,
 *            GEOMETRY_METADATA_ENCODING
 *   stream   on entry GDAL's generic stream of a layer with this definition and
 *            these options; on return the native stream, which owns the generic
 *            one
 *  Returns the stream, which is valid until closed() is called or
 *  oj_join_arrow_detach(). Returns NULL and leaves *stream unchanged if the
 *  definition or the options need GDAL's generic stream, or memory ran out.
 *
 *  After an error get_next() returns EIO, ENOMEM or ECANCELED, reports the
 *  error by CPLError() and get_last_error(), and then ends the stream. A batch
 *  has fewer rows than requested if the next row's texts or geometries would
 *  exceed 2 GiB, or the bytes in the configuration option OGR_ARROW_MEM_LIMIT;
 *  a single row above the limit is an error.
 */
struct oj_join_arrow *oj_join_arrow_open(OGRFeatureDefnH defn,
                                         const struct oj_arrow_rows *rows,
                                         char **options,
                                         struct ArrowArrayStream *stream);

/** Detaches a stream whose layer ends first; GDAL allows streams to be released
 *  after their layer. Afterwards get_schema() and get_next() return EINVAL with
 *  an error text. release() frees the memory of the stream. Arrays that were
 *  returned belong to the client and stay valid. */
void oj_join_arrow_detach(struct oj_join_arrow *stream);

#endif
