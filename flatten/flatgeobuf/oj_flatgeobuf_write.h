/** Files of FlatGeobuf, written without a feature of OGR's. GDAL makes the
 *  layer, whose definition the file has, and the header; rows, order and index
 *  are made here, as GDAL's driver makes them: sorted by the Hilbert codes of
 *  their centres, downwards, equal ones as they came; nodes of 16.
 *
 *  Source: specification of FlatGeobuf, version 3; Hilbert 1891.
 */
#ifndef OJ_FLATGEOBUF_WRITE_H
#define OJ_FLATGEOBUF_WRITE_H

#include "oj_flatgeobuf_encode.h"

#include <ogr_api.h>
#include <ogr_srs_api.h>

struct oj_flatgeobuf_writer;

/** A file to write, and what the layer was made with that GDAL does not tell.
 */
struct oj_flatgeobuf_file
{
    const char *path;         /**< of the local file system */
    char **layer_options;     /**< creation options */
    OGRSpatialReferenceH crs; /**< or NULL */
};

/** Begins a file for the rows of a layer that GDAL made and that gets no rows
 *  itself; file is read now.  With an index, rows are in a second file, the
 *  path and ".unsorted", until the first is finished. *out is NULL, without
 *  error, when the file is better left to GDAL. */
OJ_MUST_USE oj_status oj_flatgeobuf_write_open(
    const struct oj_flatgeobuf_file *file, OGRLayerH layer,
    struct oj_flatgeobuf_writer **out, struct oj_error *err);

/** The feature whose properties are added to before each row. */
struct oj_fgb_feature *
oj_flatgeobuf_feature(struct oj_flatgeobuf_writer *writer);

/** Ends the row: its geometry is ISO WKB, little-endian, or NULL. *is_empty is
 *  1 where it has no vertex; such a row is left out, kept or refused
 *  (OJ_ERR_UNSUPPORTED) as this version of GDAL does it. box is that of the
 *  geometry. */
OJ_MUST_USE oj_status
oj_flatgeobuf_write_row(struct oj_flatgeobuf_writer *writer, const uint8_t *wkb,
                        int64_t n, int *is_empty, struct oj_error *err);

/** Completes the file. *has_rows is 0 when there were none: then GDAL's own
 *  file is the one to take. O(rows). */
OJ_MUST_USE oj_status oj_flatgeobuf_write_finish(
    struct oj_flatgeobuf_writer *writer, int *has_rows, struct oj_error *err);

/** Accepts NULL. The file stays, the second one does not. */
void oj_flatgeobuf_write_close(struct oj_flatgeobuf_writer *writer);

#endif
