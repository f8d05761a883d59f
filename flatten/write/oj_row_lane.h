/** The writing part of a lane: writes rows into a file or table without making
 * GDAL features. oj_layer_write.c uses it, and writes as features those rows
 * that the lane leaves to GDAL.
 */
#ifndef OJ_ROW_LANE_H
#define OJ_ROW_LANE_H

#include "../read/oj_lane_table.h"
#include "oj_row_cursor.h"

/** What a lane has written of an answer. */
struct oj_rows_written
{
    int64_t n_rows, n_empty; /**< n_empty: number of rows whose geometry has no
                                  vertex */
    int has_failed;     /**< 1: a row was refused; 0: there was no error, or an
                             error that is not of a single row */
    int64_t failed_fid; /**< FID of the input feature of the refused row */
};

struct oj_row_lane
{
    enum oj_lane_id id;

    /** Opens the lane for rows of the cursor, which must outlive it, in a layer
     *  that GDAL created. is_update: columns of existing rows will be changed.
     *  *rows is NULL, without error, if GDAL has to write all rows. */
    oj_status (*open)(OGRLayerH layer, int is_update,
                      struct oj_row_cursor *cursor, void **rows,
                      struct oj_error *err);

    /** Writes the remaining rows of the cursor's answer. It stops at a row that
     *  GDAL has to write: *is_left is then 1 and *left that row; otherwise
     *  *is_left is 0 and *left unchanged.  *written is always set. */
    oj_status (*write)(void *rows, struct oj_rows_written *written,
                       struct oj_row_place *left, int *is_left,
                       struct oj_error *err);

    /** Changes the row with this FID to the values of the cursor's current
     *  pair; *is_left is 1 if GDAL has to change it.  NULL: the lane cannot
     *  change rows. */
    oj_status (*update)(void *rows, int64_t fid,
                        const struct oj_row_place *place, int *is_left,
                        struct oj_error *err);

    /** Called after GDAL has written a row that was left to it: feature holds
     *  that row. */
    oj_status (*took)(void *rows, OGRFeatureH feature, struct oj_error *err);

    /** Completes the output after the last row. *has_file is 1 if the rows are
     *  in options.file and not in the layer. O(rows). */
    oj_status (*finish)(void *rows, int *has_file, struct oj_error *err);

    /** Frees the writer; accepts NULL. */
    void (*close)(void *rows);
};

/** The writing part of the lane FlatGeobuf, which writes the file options.file.
 */
extern const struct oj_row_lane oj_flatgeobuf_rows;

/** The writing part of the lane GeoPackage, which writes into options.dataset;
 *  NULL in a build without SQLite. */
extern const struct oj_row_lane *const oj_geopackage_rows;

#endif
