/** A layer's Arrow stream, cut into slices whose memory is shared.
 *
 *  chunk   0                     1
 *  rows    0 1 2 3 4 5 6 7 8 9   10 11 12
 *  slices  [first 0 ][first 4]   [first 0]     (chunk, first, n_rows)
 *
 *  A chunk is what the driver hands out at once; it is freed with its last
 *  slice, on whichever thread that happens. GDAL before 3.6 has no streams:
 *  oj_arrow_open() then says that the layer is not usable.
 */
#ifndef OJ_LAYER_ARROW_H
#define OJ_LAYER_ARROW_H

#include "../base/oj_status.h"
#include "oj_value.h"

#include <gdal_version.h>

#include <stddef.h>
#include <stdint.h>

#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 6, 0)
#define OJ_HAVE_ARROW 1
#else
#define OJ_HAVE_ARROW 0
#endif

struct oj_arrow_chunk;

/** Numbers of columns; fields, in the order given to open, follow. */
enum
{
    OJ_ARROW_FID,      /**< format l */
    OJ_ARROW_GEOMETRY, /**< WKB */
    OJ_ARROW_FIELDS
};

/** Rows first to first + n_rows - 1 of a chunk; holds one share of it. */
struct oj_arrow_slice
{
    struct oj_arrow_chunk *chunk; /**< NULL: nothing */
    int64_t first, n_rows;
    const struct oj_column_view *column; /**< the chunk's, not the slice's:
                                              row 0 is row first of them */
};

struct oj_arrow_stream;

/** Starts the layer's stream at its first row under the fields that are
 *  ignored now. *out is NULL, without error, when the stream is missing or does
 *  not carry one of the fields without loss. */
OJ_MUST_USE oj_status oj_arrow_open(OGRLayerH layer,
                                    const struct oj_fields *fields,
                                    int64_t batch_rows,
                                    struct oj_arrow_stream **out,
                                    struct oj_error *err);

/** The next up to max_rows rows; slice->n_rows == 0 at the end. The stream's
 *  own text is in *text when this fails with OJ_ERR_IO; it may be NULL.
 *  OJ_ERR_UNSUPPORTED: the driver's stream is wrong from here on; the layer has
 *  to be read in another way. */
OJ_MUST_USE oj_status oj_arrow_next(struct oj_arrow_stream *stream,
                                    int64_t max_rows,
                                    struct oj_arrow_slice *slice,
                                    const char **text, struct oj_error *err);

/** Accepts NULL. Chunks may outlive the stream. */
void oj_arrow_close(struct oj_arrow_stream *stream);

/** Gives the slice's share back; zeroed afterwards. Any thread. */
void oj_arrow_slice_free(struct oj_arrow_slice *slice);

/** WKB of row 0 <= row < n_rows; NULL where there is no geometry. */
static inline const uint8_t *oj_arrow_wkb(const struct oj_arrow_slice *slice,
                                          int64_t row, size_t *n_bytes)
{
    const struct oj_column_view *wkb = &slice->column[OJ_ARROW_GEOMETRY];
    int64_t n;
    const char *bytes;
    if (!oj_column_has(wkb, slice->first + row))
        return NULL;
    bytes = oj_column_bytes(wkb, slice->first + row, &n);
    *n_bytes = (size_t)n;
    return (const uint8_t *)bytes;
}

#endif
