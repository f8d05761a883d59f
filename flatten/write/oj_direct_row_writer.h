/** Writers of rows into a file or table without GDAL's features: the writing
 *  part of a lane.
 *
 *  Used by a layer's writer, which writes the rows that they leave as
 *  features.
 */
#ifndef OJ_DIRECT_ROW_WRITER_H
#define OJ_DIRECT_ROW_WRITER_H

#include "../read/oj_lane_table.h"
#include "oj_row_cursor.h"

/** Counts of the rows of an answer that a lane has written. */
struct oj_rows_written
{
    int64_t n_rows, n_empty; /**< n_empty: rows whose geometry has no vertex */
    int has_failed;          /**< 1: a row failed, rather than the file */
    int64_t failed_fid;      /**< FID of the input feature of that row */
};

struct oj_row_lane
{
    enum oj_lane_id id;

    /** Opens for rows of the cursor, which must outlive it, in a layer that
     *  GDAL created; with is_update, for changes of the cursor's columns in
     *  existing rows. *rows is NULL, without error, if GDAL has to write
     *  all. */
    oj_status (*open)(OGRLayerH layer, int is_update,
                      struct oj_row_cursor *cursor, void **rows,
                      struct oj_error *err);

    /** Writes the remaining rows of the cursor's answer. Stops before a row
     *  that GDAL has to write: *is_left is then 1 and *left that row; otherwise
     *  *is_left is 0 and *left unchanged.  *written is always set. */
    oj_status (*write)(void *rows, struct oj_rows_written *written,
                       struct oj_row_place *left, int *is_left,
                       struct oj_error *err);

    /** Changes row fid to the cursor's current pair; *is_left is 1 if GDAL has
     *  to do it.  NULL: updates are not supported. */
    oj_status (*update)(void *rows, int64_t fid,
                        const struct oj_row_place *place, int *is_left,
                        struct oj_error *err);

    /** Called after GDAL wrote a row that was left, as this feature. */
    oj_status (*took)(void *rows, OGRFeatureH feature, struct oj_error *err);

    /** Completes the layer after the last row. *has_file is 1 if the rows are
     *  in options.file, not in the layer. O(rows). */
    oj_status (*finish)(void *rows, int *has_file, struct oj_error *err);

    /** Frees it. Accepts NULL. */
    void (*close)(void *rows);
};

/** Writers of the lanes: they use options.file and options.dataset. */
extern const struct oj_row_lane oj_flatgeobuf_rows;

/** NULL in a build without SQLite. */
extern const struct oj_row_lane *const oj_geopackage_rows;

#endif
