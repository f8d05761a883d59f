/** Rows of a layer of pairs -> a table of a GeoPackage, without features.
 *
 *  Part of a layer's writer, which writes as features what next() leaves to
 *  it.
 */
#ifndef OJ_GEOPACKAGE_ROWS_H
#define OJ_GEOPACKAGE_ROWS_H

#include "oj_row_cursor.h"

struct oj_geopackage_rows;

/** Rows of the cursor, which outlives it, to a layer of dataset that GDAL made.
 * *out is NULL, without error, where GDAL has to write the rows itself. */
OJ_MUST_USE oj_status oj_geopackage_rows_open(GDALDatasetH dataset,
                                              OGRLayerH layer,
                                              const int *cancel,
                                              struct oj_row_cursor *cursor,
                                              struct oj_geopackage_rows **out,
                                              struct oj_error *err);

/** Writes the row at place. *is_written is 0 where GDAL has to: then its
 *  feature is written, and told of by took(). *is_empty speaks of the geometry
 *  of a row that was written. */
OJ_MUST_USE oj_status oj_geopackage_rows_put(struct oj_geopackage_rows *rows,
                                             const struct oj_row_place *place,
                                             int *is_written, int *is_empty,
                                             struct oj_error *err);

/** After GDAL wrote the row at place, the latest one put, as feature fid. */
OJ_MUST_USE oj_status oj_geopackage_rows_took(struct oj_geopackage_rows *rows,
                                              const struct oj_row_place *place,
                                              int64_t fid,
                                              struct oj_error *err);

/** After the last row: completes the layer. */
OJ_MUST_USE oj_status oj_geopackage_rows_finish(struct oj_geopackage_rows *rows,
                                                struct oj_error *err);

/** Accepts NULL. */
void oj_geopackage_rows_close(struct oj_geopackage_rows *rows);

#endif
