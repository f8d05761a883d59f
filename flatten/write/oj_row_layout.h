/** Layout of the output rows of a join: which rows there are, where each column
 *  comes from, and which geometry rows have. */
#ifndef OJ_ROW_LAYOUT_H
#define OJ_ROW_LAYOUT_H

#include "../arrays/oj_pair_values.h"
#include "../arrays/oj_row_places.h"
#include "../base/oj_output_row_modes.h"
#include "../read/oj_layer_read.h"
#include "../read/oj_value.h"

#include <gdal.h>

/** A column of the output and where its values come from. */
struct oj_column
{
    enum oj_column_origin origin;
    /** columns of a side: index in the reader's options.fields, or column of
     *  the table; values of pairs: enum oj_pair_value; aggregates: argument of
     *  options.aggregate */
    int source;
    int target; /**< index of the field in the output layer */

    /** OJ_COLUMN_AGGREGATE: type of the values. */
    OGRFieldType type;
    OGRFieldSubType subtype;
};

/** A FlatGeobuf file to write, and those properties of its layer that GDAL does
 *  not return. */
struct oj_flatgeobuf_file
{
    const char *path;         /**< path in the local file system */
    char **layer_options;     /**< creation options */
    OGRSpatialReferenceH crs; /**< CRS of the layer, or NULL */
    int n_threads;
};

struct oj_write_options
{
    enum oj_how how;                 /**< left, inner, semi or anti */
    const struct oj_column *columns; /**< [n_columns]; copied */
    int n_columns;
    int keep_fids;        /**< 1: FIDs are the input's */
    int promote_to_multi; /**< 1: single geometries become multi-geometries */
    enum oj_write_geometry geometry;
    /** NULL, or the CRS that is assigned to the geometries of features and must
     *  outlive them */
    OGRSpatialReferenceH crs;
    /** 1: geometries made from arrays are always multi-geometries */
    int multi_shapes;
    const struct oj_flat *join_side;   /**< features of the join side, for their
                                            FIDs; must outlive the writer */
    const struct oj_table *join_table; /**< attributes of the join side; must
                                            outlive the writer */
    const int *cancel; /**< nonzero stops the writer within a batch; may be
                           NULL */

    /** NULL, or a file that may be written in place of the layer's rows; used
     *  when the writer is opened. oj_layer_writer_finish() returns whether it
     *  was written. */
    const struct oj_flatgeobuf_file *file;

    /** NULL, or the layer's dataset, if a lane may write rows directly into it
     *  within its transaction. */
    GDALDatasetH dataset;

    /** Returns the value of an OJ_COLUMN_AGGREGATE column for a row of the
     *  current matches; valid until the next call. May be NULL if there is no
     *  such column. */
    oj_status (*aggregate)(void *user, int source, int64_t row,
                           struct oj_value *value, struct oj_error *err);
    void *aggregate_user;
};

/** Where a row's geometry comes from. */
struct oj_row_geometry
{
    int is_as_read; /**< 1: the geometry is that of the batch's row, as read */
    /** unless is_as_read: the geometry is feature `feature` of flat; NULL: the
     *  row has no geometry */
    const struct oj_flat *flat;
    int64_t feature;
    int multi; /**< 1: single geometries become multi-geometries */

    struct oj_flat own; /**< memory for flat to point to */
    double x[2], y[2];  /**< memory for own to point to */
};

#endif
