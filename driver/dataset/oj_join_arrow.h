/** The rows of a join as a native Arrow C stream (GDAL >= 3.6): columns are
 *  filled from the arrays of answers, and no feature is made.
 *
 *   answers -> cursor -> places, a block at a time -> columns -> ArrowArray
 *
 *  The schema is that of GDAL's generic stream of the same layer, which stays
 *  open for it; values are those of the features. Where they differ, values
 *  follow the features: days before 1970 and seconds that round up to a minute,
 *  which the generic stream of GDAL 3.6 has a day or a minute off.
 */
#ifndef OJ_JOIN_ARROW_H
#define OJ_JOIN_ARROW_H

#include "../../flatten/write/oj_row_cursor.h"

struct ArrowArrayStream;

/** An open stream, as its layer sees it. */
struct oj_join_arrow;

/** Where the rows come from. */
struct oj_arrow_rows
{
    /** Numbered already, if its rows have numbers. Outlives the stream, or
     *  oj_join_arrow_detach() is called before the cursor ends. */
    struct oj_row_cursor *cursor;

    /** Lets go what the cursor reads and begins it with the next answer, which
     *  may have no rows. *there is 0 when there is none. */
    oj_status (*advance)(void *user, int *there, struct oj_error *err);

    /** The stream was released, and was not detached. May be NULL. */
    void (*closed)(void *user);
    void *user;
};

/** A stream of rows of the cursor's definition, under the fields that are
 *  ignored in it now. The stream takes a reference to defn.
 *  options  as of OGR_L_GetArrowStream(): INCLUDE_FID, MAX_FEATURES_IN_BATCH,
 *           GEOMETRY_METADATA_ENCODING
 *  stream   in: GDAL's generic one, of a layer with this definition and under
 *           these options; out: ours, whose release function gives everything
 *           back, that one too
 *  Returns the stream, which is valid until closed() is called or the stream is
 *  detached; NULL: the definition or the options ask for what only GDAL's
 *  generic stream has, or memory ran out; *stream is as it was.
 *
 *  get_next() answers EIO, ENOMEM or ECANCELED after an error, which is told by
 *  CPLError() and get_last_error(), and the end of the stream from then on.  A
 *  batch has fewer rows than asked for when the next row would take its texts
 *  or geometries past 2 GiB (configuration option OGR_ARROW_MEM_LIMIT: bytes);
 *  a row that is too large alone is an error. */
struct oj_join_arrow *oj_join_arrow_open(OGRFeatureDefnH defn,
                                         const struct oj_arrow_rows *rows,
                                         char **options,
                                         struct ArrowArrayStream *stream);

/** Cuts a stream off from its rows because the layer ends first: GDAL allows a
 *  stream to be released after its layer, and clients release in any order.
 *  From then on get_schema() and get_next() answer EINVAL with an error that
 *  get_last_error() gives, and release() frees what belongs to the stream.
 *  Arrays that were handed out are the client's and stay valid. */
void oj_join_arrow_detach(struct oj_join_arrow *stream);

#endif
