/** Consecutive rows of a layer as columns, cut into slices that share memory.
 *
 *  chunk   0                     1
 *  rows    0 1 2 3 4 5 6 7 8 9   10 11 12
 *  slices  [first 0 ][first 4]   [first 0]     (chunk, first, n_rows)
 *
 *  A chunk is what a lane, one of the ways to read a layer, hands out at once.
 *  It is freed with its last slice, on whichever thread that happens.
 */
#ifndef OJ_CHUNK_H
#define OJ_CHUNK_H

#include "../base/oj_status.h"
#include "oj_column.h"

#include <stddef.h>

/** Numbers of columns; the wanted fields, in their order, follow. */
enum
{
    OJ_CHUNK_FID,      /**< format l */
    OJ_CHUNK_GEOMETRY, /**< WKB, or of format P */
    OJ_CHUNK_FIELDS
};

struct oj_chunk
{
    int n_users; /**< changed by atomic operations alone */
    int64_t n_rows;
    void *owner; /**< of what the columns point at */
    void (*free_owner)(void *owner);
    struct oj_column_view column[]; /**< OJ_CHUNK_FIELDS and the fields */
};

/** Rows first to first + n_rows - 1 of a chunk; holds one share of it. Zeroed
 *  memory is a valid empty one. */
struct oj_slice
{
    struct oj_chunk *chunk; /**< NULL: nothing */
    int64_t first, n_rows;
};

/** What is to be read of a layer, without a spatial filter. The handles are
 *  GDAL's and outlive the lane, which uses them on its thread. */
struct oj_lane_request
{
    void *dataset;    /**< GDALDatasetH of a GeoPackage, or NULL */
    void *layer;      /**< OGRLayerH */
    const char *file; /**< of a FlatGeobuf, or NULL; read now */

    const int *fields;   /**< [n_fields] wanted ones */
    const char *formats; /**< [n_fields] of values of their types; 0: nobody
                              looks at them */
    int n_fields;
    int are_points;     /**< 1: only coordinates are wanted, and nearly all rows
                             are plain points: may come by format P */
    int64_t batch_rows; /**< most rows of a chunk */
    int n_threads;      /**< that make rows, the calling one included */
};

/** A way to read the rows of a layer. */
struct oj_lane
{
    const char *name;

    /** Starts at the first row. *stream is set, or NULL, in any case, and the
     *  caller's to close. OJ_ERR_UNSUPPORTED: the layer has to be read in
     *  another way. */
    oj_status (*open)(const struct oj_lane_request *request, void **stream,
                      struct oj_error *err);
    int nulls_are_sure; /**< 1: a row without geometry has none; 0: it may have
                             one that the lane could not read */

    /** The next rows; *chunk is NULL at the end. The lane's own text, or NULL,
     *  is in *text when this fails with OJ_ERR_IO. OJ_ERR_UNSUPPORTED: from
     *  here on the layer has to be read in another way. */
    oj_status (*next)(void *stream, struct oj_chunk **chunk, const char **text,
                      struct oj_error *err);
    void (*close)(void *stream); /**< accepts NULL; chunks may outlive it */
    int keeps_state; /**< 1: until it is closed all ways of reading the layer
                          see the state that the lane has seen */
};

/** What a lane, or the way to it, says of what it does not know. */
static inline oj_status oj_leave_to_gdal(struct oj_error *err)
{
    return oj_fail(err, OJ_ERR_UNSUPPORTED, "left to GDAL");
}

/** A chunk without rows, with one share, and n_fields columns that have no
 *  values beside FID and geometry. Takes owner when it succeeds. */
OJ_MUST_USE oj_status oj_chunk_new(int n_fields, void *owner,
                                   void (*free_owner)(void *),
                                   struct oj_chunk **out, struct oj_error *err);

/** The first up to max_rows rows of rest, which loses them. */
struct oj_slice oj_slice_cut(struct oj_slice *rest, int64_t max_rows);

/** Gives the slice's share back; zeroed afterwards. Any thread. */
void oj_slice_free(struct oj_slice *slice);

/** WKB of row 0 <= row < n_rows, not of format P; NULL where there is no
 *  geometry. */
static inline const uint8_t *oj_slice_wkb(const struct oj_slice *slice,
                                          int64_t row, size_t *n_bytes)
{
    const struct oj_column_view *wkb = &slice->chunk->column[OJ_CHUNK_GEOMETRY];
    int64_t n;
    const char *bytes;
    if (!oj_column_has(wkb, slice->first + row))
        return NULL;
    bytes = oj_column_bytes(wkb, slice->first + row, &n);
    *n_bytes = (size_t)n;
    return (const uint8_t *)bytes;
}

#endif
