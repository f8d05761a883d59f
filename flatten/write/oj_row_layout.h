/** What the rows of a layer of pairs hold: which rows there are, where the
 * values of their columns come from, what their geometry is.
 */
#ifndef OJ_ROW_LAYOUT_H
#define OJ_ROW_LAYOUT_H

#include "../arrays/oj_pair_values.h"
#include "../arrays/oj_row_places.h"
#include "../base/oj_output_row_modes.h"
#include "../read/oj_layer_read.h"
#include "../read/oj_value.h"

#include <gdal.h>

/** One column of the output: where its values come from. */
struct oj_column
{
    enum oj_column_origin origin;
    int source; /**< of a side: place in the reader's options.fields, column of
                     the table; of an aggregate what options.aggregate takes */
    int target; /**< field index in the output layer */

    /** OJ_COLUMN_AGGREGATE: of the values. */
    OGRFieldType type;
    OGRFieldSubType subtype;
};

/** A file of FlatGeobuf to write, and what its layer was made with that GDAL
 *  does not tell. */
struct oj_flatgeobuf_file
{
    const char *path;         /**< of the local file system */
    char **layer_options;     /**< creation options */
    OGRSpatialReferenceH crs; /**< or NULL */
    int n_threads;
};

struct oj_write_options
{
    enum oj_how how;                 /**< of the first four */
    const struct oj_column *columns; /**< [n_columns]; copied */
    int n_columns;
    int keep_fids;        /**< 1: output FIDs are the input's */
    int promote_to_multi; /**< 1: single shapes become multi */
    enum oj_write_geometry geometry;
    OGRSpatialReferenceH crs; /**< of geometries of features, which outlives
                                   them; NULL: none is set */
    int multi_shapes; /**< 1: shapes made from arrays are multi, always */
    const struct oj_flat *join_side;   /**< for FIDs; outlives the writer */
    const struct oj_table *join_table; /**< outlives the writer */
    const int *cancel; /**< nonzero stops within a batch; may be NULL */

    /** NULL, or a file that may be written in place of the layer's rows; read
     *  while the writer is opened. oj_layer_writer_finish() says whether it
     *  was. */
    const struct oj_flatgeobuf_file *file;

    /** NULL, or the dataset of the layer, where rows may be written past OGR's
     *  features, inside of the transaction that it is in. */
    GDALDatasetH dataset;

    /** Value of an OJ_COLUMN_AGGREGATE column for a row of the matches that are
     *  being written; valid until the next call. May be NULL where there is no
     *  such column. */
    oj_status (*aggregate)(void *user, int source, int64_t row,
                           struct oj_value *value, struct oj_error *err);
    void *aggregate_user;
};

/** What the geometry of a row is made from. */
struct oj_row_geometry
{
    int is_as_read; /**< 1: what the reader gave for the row of the batch */
    const struct oj_flat *flat; /**< else feature of it; NULL: no geometry */
    int64_t feature;
    int multi; /**< 1: single shapes become multi */

    struct oj_flat own; /**< where flat may point */
    double x[2], y[2];  /**< and own */
};

#endif
