/** Tables of GeoPackage as a lane: rows by SQLite, put into columns without a
 *  feature of OGR's, on several threads.
 *
 *  GDAL opens the layer and says what it is. Rows come in the order of their
 *  FIDs, as GDAL's do. What GDAL would complain of is left to it, from that row
 *  on.
 *
 *    ranges   FIDs 1..n | n+1..2n | 2n+1..3n | ...   as many at once, each by
 *    chunks   1 2       | 3       | 4 5      | ...   a connection of its own,
 * as there are threads
 *
 *  A function of ours in the statement's condition takes the values of a row,
 *  which costs less than a step and a call for each value: it is true only when
 *  a chunk is full, so that SQLite comes back with one row per chunk.
 *
 *  All rows are of one state of the file, the one that GDAL's connection sees
 *  until the lane is closed, with or without another writer at work: own
 *  connections are used only where nothing was committed between their
 *  beginning and that of GDAL's transaction (PRAGMA data_version), and where
 *  they opened the same file; else GDAL's does all the reading, as it does for
 *  small tables and files that are not plain ones.
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
 *  n_threads   that may read beside the caller's; below 2 none does */
OJ_MUST_USE oj_status oj_geopackage_read_open(
    GDALDatasetH dataset, OGRLayerH layer, const int *fields,
    const unsigned char *skipped, int n_fields, int64_t batch_rows,
    int n_threads, struct oj_geopackage_reader **out, struct oj_error *err);

#endif
