/** Tables of GeoPackage as a lane: rows from the pages of the file, put into
 *  columns on several threads, without a statement of SQLite's or a feature of
 *  OGR's.
 *
 *  GDAL opens the layer and says what it is. Rows come in the order of their
 *  FIDs, as GDAL's do. What GDAL would complain of, or SQLite would convert, is
 *  left to it, from that row on. A file with a log that is not empty is left to
 *  it altogether, and so are views and computed columns.
 *
 *  All rows are of one state of the file, the one that GDAL's connection sees
 *  until the lane is closed.
 *
 *  Source: OGC 12-128r18, section 2.1.3 (blobs: "GP" | version | flags | int32,
 *  srs | envelope | WKB).
 */
#ifndef OJ_GEOPACKAGE_READ_H
#define OJ_GEOPACKAGE_READ_H

#include "../arrays/oj_chunk.h"

#include <gdal.h>
#include <ogr_api.h>

struct oj_geopackage_reader;

extern const struct oj_lane oj_geopackage_lane;

/** Starts at the first row. *out is NULL, without error, when the layer is
 *  none of GeoPackage, no plain table or written to, or its fields have a type
 *  that is not known.
 *  layer       of dataset, without filters; both outlive the reader and are
 *              used on its thread
 *  fields      [n_fields] wanted fields of the layer
 *  skipped     [n_fields] nonzero: nobody looks at the values; or NULL
 *  batch_rows  most rows of a chunk
 *  n_threads   that make rows, the calling one included */
OJ_MUST_USE oj_status oj_geopackage_read_open(
    GDALDatasetH dataset, OGRLayerH layer, const int *fields,
    const unsigned char *skipped, int n_fields, int64_t batch_rows,
    int n_threads, struct oj_geopackage_reader **out, struct oj_error *err);

#endif
