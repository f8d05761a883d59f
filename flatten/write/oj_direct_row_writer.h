/** Ways of rows of a layer of pairs to a file or a table, without features.
 *
 *  Part of a layer's writer, which writes as features what is left to it.
 */
#ifndef OJ_DIRECT_ROW_WRITER_H
#define OJ_DIRECT_ROW_WRITER_H

#include "../read/oj_lane_table.h"
#include "oj_row_cursor.h"

/** What became of the rows of an answer. */
struct oj_rows_written
{
    int64_t n_rows, n_empty; /**< empty: their geometry has no vertex */
    int has_failed;          /**< 1: a row failed, not the file */
    int64_t failed_fid;      /**< of the feature that it is about */
};

struct oj_row_lane
{
    enum oj_lane_id id;

    /** Rows of the cursor, which outlives it, to a layer that GDAL made; or, of
     *  an in-place update, changes of its columns in rows that are there.
     *  *rows is NULL, without error, where GDAL has to write. */
    oj_status (*open)(OGRLayerH layer, int is_update,
                      struct oj_row_cursor *cursor, void **rows,
                      struct oj_error *err);

    /** Writes rows of the answer that the cursor has begun, until there are no
     *  more (left->fid is not touched and *is_left is 0) or GDAL has to write
     *  the next one, *left.  *written is filled in every case. */
    oj_status (*write)(void *rows, struct oj_rows_written *written,
                       struct oj_row_place *left, int *is_left,
                       struct oj_error *err);

    /** Changes row fid to the pair that the cursor has begun; *is_left is 1
     *  where GDAL has to.  NULL: it has no updates. */
    oj_status (*update)(void *rows, int64_t fid,
                        const struct oj_row_place *place, int *is_left,
                        struct oj_error *err);

    /** After GDAL wrote what was left as feature. */
    oj_status (*took)(void *rows, OGRFeatureH feature, struct oj_error *err);

    /** After the last row: completes the layer. *has_file is 1 when the rows
     *  are in options.file, and not in the layer. O(rows). */
    oj_status (*finish)(void *rows, int *has_file, struct oj_error *err);

    /** Accepts NULL. */
    void (*close)(void *rows);
};

/** Of the options of the cursor, read file, or write to dataset. */
extern const struct oj_row_lane oj_flatgeobuf_rows;

/** NULL in a build without SQLite. */
extern const struct oj_row_lane *const oj_geopackage_rows;

#endif
