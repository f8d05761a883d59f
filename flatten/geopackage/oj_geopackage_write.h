/** Rows of a layer of a GeoPackage, written past GDAL's features. GDAL makes
 *  the layer and its tables; rows go in by one statement on GDAL's connection,
 *  inside its transaction, and the spatial index is made at the end.
 *
 *  What GDAL does only because of a row's content (warnings, extensions, Z and
 *  M of the layer) is left to it: it writes the first row of each kind of
 *  geometry, the first value of each column, and all rows that are not known
 *  here.  Such a row is read back, and when it is not what would have been
 *  written here GDAL writes all further ones like it.
 *
 *   open -> bind values, then insert() or, through OGR, take() -> finish
 */
#ifndef OJ_GEOPACKAGE_WRITE_H
#define OJ_GEOPACKAGE_WRITE_H

#include "../base/oj_status.h"
#include "oj_geopackage_blob.h"

#include <gdal.h>
#include <ogr_api.h>

#include <sqlite3.h>

struct oj_geopackage_writer;

/** Begins to write to a layer that GDAL made, in a transaction that it began.
 *  fields [n] are those with values, in the order of their numbers in
 *  statements.  *out is NULL, without error, when the layer is better left to
 *  GDAL. Nothing but the writer and features of OGR may change the layer
 *  until it is closed. */
OJ_MUST_USE oj_status oj_geopackage_write_open(
    GDALDatasetH dataset, OGRLayerH layer, const int *fields, int n,
    const int *cancel, struct oj_geopackage_writer **out, struct oj_error *err);

/** Where the value of fields[i] is bound, as parameter i + OJ_GPKG_FIRST, for
 *  the next row: of the statement that inserts it, or of the one that compares
 *  it with what GDAL wrote. */
sqlite3_stmt *oj_geopackage_insert(struct oj_geopackage_writer *writer);
sqlite3_stmt *oj_geopackage_compare(struct oj_geopackage_writer *writer);

enum
{
    OJ_GPKG_FIRST = 3
};

/** Writes the row with what is bound. fid may be OGRNullFID.
 *  *is_written is 0 when the table refuses it: GDAL then knows what to say. */
OJ_MUST_USE oj_status
oj_geopackage_write_row(struct oj_geopackage_writer *writer, int64_t fid,
                        const struct oj_gpkg_shape *shape, const uint8_t *wkb,
                        int64_t n_wkb, int *is_written, struct oj_error *err);

/** After GDAL wrote the row fid. Whether what stands there is the geometry
 *  (is_equal[0]) and what is bound to the statement that compares
 *  (is_equal[1]). */
OJ_MUST_USE oj_status
oj_geopackage_take_row(struct oj_geopackage_writer *writer, int64_t fid,
                       const struct oj_gpkg_shape *shape, const uint8_t *wkb,
                       int64_t n_wkb, int is_equal[2], struct oj_error *err);

/** Completes the layer: index, extent, count. Not the transaction. */
OJ_MUST_USE oj_status oj_geopackage_write_finish(
    struct oj_geopackage_writer *writer, struct oj_error *err);

/** Accepts NULL. */
void oj_geopackage_write_close(struct oj_geopackage_writer *writer);

#endif
