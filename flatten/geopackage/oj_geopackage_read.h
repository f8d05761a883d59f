/** The lane GeoPackage, reading: rows are decoded from the pages of the file
 *  into columns, on several threads, without SQL statements and OGR features.
 *
 *  GDAL opens the layer and describes it. Rows come in the order of their FIDs,
 *  as in GDAL. From the first row that GDAL would report, or that SQLite or OGR
 *  would convert (curves, empty points, other byte orders), the rows are left
 *  to GDAL. Files with a WAL that is not empty, views and computed columns are
 *  left to GDAL completely. Pages that SQLite calls malformed are an error;
 *  before the first row the layer is left to GDAL instead.
 *
 *  All rows are of one state of the file: the one that GDAL's connection reads
 *  until the lane is closed.
 *
 *  Source: OGC 12-128r18, section 2.1.3 (blobs: "GP" | version | flags | int32,
 *  srs | envelope | WKB).
 */
#ifndef OJ_GEOPACKAGE_READ_H
#define OJ_GEOPACKAGE_READ_H

#include "../arrays/oj_chunk.h"

/** The lane. It refuses layers that are not plain tables or are open for
 *  writing, and fields of unknown types. */
extern const struct oj_lane oj_geopackage_lane;

#endif
