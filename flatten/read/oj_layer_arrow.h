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
#include "oj_layer_fields.h"
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

/** Rows first to first + n_rows - 1 of a chunk; holds one share of it. */
struct oj_arrow_slice
{
    struct oj_arrow_chunk *chunk; /**< NULL: nothing */
    int64_t first, n_rows;
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

/** FID of row 0 <= row < n_rows; OGRNullFID where there is none. */
int64_t oj_arrow_fid(const struct oj_arrow_slice *slice, int64_t row);

/** WKB of a row; NULL where there is no geometry. */
const uint8_t *oj_arrow_wkb(const struct oj_arrow_slice *slice, int64_t row,
                            size_t *n_bytes);

/** Value of the field with number field in the fields given to open. */
void oj_arrow_value(const struct oj_arrow_slice *slice, int field, int64_t row,
                    struct oj_value *value);

/** A column of a slice as it lies in memory, for loops over many rows. */
struct oj_arrow_view
{
    char format;         /**< Arrow's: s i l f g u U z Z */
    const uint8_t *bits; /**< 0: no value; NULL: all rows have one */
    const void *values;  /**< or offsets, of u and z 32 bits wide, else 64 */
    const char *bytes;   /**< of u U z Z */
    int64_t first;       /**< where row 0 of the slice is, in bits too */
};

/** Of the field with number field in the fields given to open. */
struct oj_arrow_view oj_arrow_view(const struct oj_arrow_slice *slice,
                                   int field);

/** The values of a field in n rows, first, first + 1, ... or, unless order is
 *  NULL, order[first], ...: 1, or 0 where it has no column of doubles.  is_null
 *  [n] is filled only where *any_null. */
int oj_arrow_reals(const struct oj_arrow_slice *slice, int field, int64_t first,
                   int64_t n, const int32_t *order, double *value,
                   uint8_t *is_null, int *any_null);

#endif
