/** Rows of a layer of pairs -> a table of a GeoPackage, without features.
 *
 *  Part of a layer's writer, which writes as features what is left to it.
 */
#ifndef OJ_GEOPACKAGE_ROWS_H
#define OJ_GEOPACKAGE_ROWS_H

#include "oj_row_cursor.h"

struct oj_geopackage_rows;

/** What can be done with them; a build without SQLite has none of it. */
struct oj_geopackage_way
{
    /** Rows of the cursor, which outlives it, to a layer of dataset that GDAL
     *  made; or, of an in-place update, changes of its columns in rows that are
     *  there. *out is NULL, without error, where GDAL has to write. */
    oj_status (*open)(GDALDatasetH dataset, OGRLayerH layer, int is_update,
                      const int *cancel, struct oj_row_cursor *cursor,
                      struct oj_geopackage_rows **out, struct oj_error *err);

    /** Writes rows of the answer that the cursor has begun, until there are no
     *  more (*is_left is 0) or GDAL has to write the next one. *place is that
     *  of the latest row, also after a failure. */
    oj_status (*write)(struct oj_geopackage_rows *rows,
                       struct oj_row_place *place, int *is_left,
                       struct oj_error *err);

    /** Changes row fid; *is_left is 1 where GDAL has to. See
     *  oj_row_cursor_set_columns(). */
    oj_status (*update)(struct oj_geopackage_rows *rows, int64_t fid,
                        const struct oj_row_place *place,
                        const struct oj_matches *entries,
                        const struct oj_pair_values *values, int *is_left,
                        struct oj_error *err);

    /** After GDAL wrote that row as feature. */
    oj_status (*took)(struct oj_geopackage_rows *rows, OGRFeatureH feature,
                      struct oj_error *err);

    /** Rows so far but those that GDAL wrote, and those of them whose geometry
     *  is NULL or empty. */
    int64_t (*count)(const struct oj_geopackage_rows *rows, int64_t *n_empty);

    /** After the last row: completes the layer. */
    oj_status (*finish)(struct oj_geopackage_rows *rows, struct oj_error *err);

    /** Accepts NULL. */
    void (*close)(struct oj_geopackage_rows *rows);
};

/** NULL in a build without SQLite. */
extern const struct oj_geopackage_way *const oj_geopackage_way;

#endif
