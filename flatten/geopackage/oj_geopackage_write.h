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
 *   open -> write_rows() until there are no more, and take_row() after each
 *   row that it left to GDAL -> finish
 */
#ifndef OJ_GEOPACKAGE_WRITE_H
#define OJ_GEOPACKAGE_WRITE_H

#include "../base/oj_status.h"
#include "oj_geopackage_blob.h"

#include <gdal.h>
#include <ogr_api.h>

#include <sqlite3.h>

struct oj_geopackage_writer;

/** A row, but for its values. */
struct oj_gpkg_row
{
    int64_t fid; /**< or OGRNullFID */
    struct oj_gpkg_shape shape;
    const uint8_t *wkb; /**< ISO, little-endian; NULL: no geometry */
    int64_t n_wkb;
};

/** Where rows come from. */
struct oj_gpkg_feed
{
    void *user;

    /** The next row; *there is 0 after the last one of the answer and before
     *  one that GDAL has to write, behind which they go on. */
    oj_status (*next)(void *user, struct oj_gpkg_row *row, int *there,
                      struct oj_error *err);

    /** Gives the value of field i, of those that the writer was opened with, in
     *  the latest row to SQLite.  What it points at lasts until next(). */
    void (*value)(void *user, int i, sqlite3_context *to);
};

/** Begins to write to a layer that GDAL made, in a transaction that it began,
 *  or, with is_update, to change values of rows that are there: the triggers
 *  that keep the index up to date are then the caller's to set aside.
 *  fields [n] are those with values, by their numbers in the layer. *out is
 *  NULL, without error, when the layer is better left to GDAL. Nothing but the
 *  writer and features of OGR may change the layer until it is closed. */
OJ_MUST_USE oj_status oj_geopackage_write_open(
    GDALDatasetH dataset, OGRLayerH layer, int is_update, const int *fields,
    int n, const struct oj_gpkg_feed *feed, const int *cancel,
    struct oj_geopackage_writer **out, struct oj_error *err);

/** Sets the fields of row fid to the feed's values; next() is not called.
 *  *is_refused is 1 where there is no such row, or the table refuses it. */
OJ_MUST_USE oj_status
oj_geopackage_update_row(struct oj_geopackage_writer *writer, int64_t fid,
                         int *is_refused, struct oj_error *err);

/** Writes rows until the feed has no more.  *is_refused is 1 when the table
 *  refuses the latest one: GDAL then knows what to say. */
OJ_MUST_USE oj_status oj_geopackage_write_rows(
    struct oj_geopackage_writer *writer, int *is_refused, struct oj_error *err);

/** After GDAL wrote row as feature fid, or changed it (the row's kind is then
 *  -1). Whether what stands there is its
 *  geometry (is_equal[0]) and the feed's values (is_equal[1]). */
OJ_MUST_USE oj_status oj_geopackage_take_row(
    struct oj_geopackage_writer *writer, const struct oj_gpkg_row *row,
    int64_t fid, int is_equal[2], struct oj_error *err);

/** Rows that write_rows() wrote, and those of them without vertices. */
int64_t oj_geopackage_rows_written(const struct oj_geopackage_writer *writer,
                                   int64_t *n_empty);

/** Completes the layer: index, extent, count. Not the transaction. */
OJ_MUST_USE oj_status oj_geopackage_write_finish(
    struct oj_geopackage_writer *writer, struct oj_error *err);

/** Accepts NULL. */
void oj_geopackage_write_close(struct oj_geopackage_writer *writer);

#endif
