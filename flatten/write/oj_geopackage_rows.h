/** Rows of a layer of pairs -> a table of a GeoPackage, without features.
 *
 *  Part of a layer's writer, which writes as features what is left to it.
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

/** Writes rows of the answer that the cursor has begun, until there are no more
 *  (*is_left is 0) or GDAL has to write the next one. *place is that of the
 *  latest row, also after a failure. */
OJ_MUST_USE oj_status oj_geopackage_rows_write(struct oj_geopackage_rows *rows,
                                               struct oj_row_place *place,
                                               int *is_left,
                                               struct oj_error *err);

/** After GDAL wrote that row, as feature fid. */
OJ_MUST_USE oj_status oj_geopackage_rows_took(struct oj_geopackage_rows *rows,
                                              int64_t fid,
                                              struct oj_error *err);

/** In place of open() and write(): changes the columns of the cursor in rows
 *  that are there. */
OJ_MUST_USE oj_status oj_geopackage_rows_open_update(
    GDALDatasetH dataset, OGRLayerH layer, struct oj_row_cursor *cursor,
    struct oj_geopackage_rows **out, struct oj_error *err);

/** Changes row fid; *is_left is 1 where GDAL has to. See
 *  oj_row_cursor_set_columns(). */
OJ_MUST_USE oj_status oj_geopackage_rows_update(
    struct oj_geopackage_rows *rows, int64_t fid,
    const struct oj_row_place *place, const struct oj_matches *entries,
    const struct oj_pair_values *values, int *is_left, struct oj_error *err);

/** Rows so far but those that GDAL wrote, and those of them whose geometry is
 *  NULL or empty. Accepts NULL. */
int64_t oj_geopackage_rows_count(const struct oj_geopackage_rows *rows,
                                 int64_t *n_empty);

/** After the last row: completes the layer. */
OJ_MUST_USE oj_status oj_geopackage_rows_finish(struct oj_geopackage_rows *rows,
                                                struct oj_error *err);

/** Accepts NULL. */
void oj_geopackage_rows_close(struct oj_geopackage_rows *rows);

#endif
