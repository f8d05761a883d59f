/** Tables of GeoPackage as a lane: rows from the pages of the file, put into
 *  columns on several threads, without a statement of SQLite's or a feature of
 *  OGR's.
 *
 *  GDAL opens the layer and says what it is. Rows come in the order of their
 *  FIDs, as GDAL's do. What GDAL would complain of, or SQLite or OGR would
 *  convert (curves, empty points, other byte orders), is left to it, from that
 *  row on. A file with a log that is not empty is left to it altogether, and
 *  so are views and computed columns. Pages that SQLite calls malformed are an
 *  error, and GDAL's from the first row on where no row was given before.
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

/** Not for layers that are no plain table or written to, or have fields of a
 *  type that is not known. */
extern const struct oj_lane oj_geopackage_lane;

#endif
