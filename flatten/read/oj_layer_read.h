/** Reads an OGR layer as batches of flat geometry and attributes.
 *
 *  One reader per layer and thread. It reads through the first lane that can
 *  read the layer with all wanted fields (oj_lane_table.h), otherwise through
 *  GDAL's features; both use one WKB parser, and only wanted fields are
 *  requested.
 *  Uses GDAL's C API: only driver/ and the layer reader and writer may include
 *  this header.
 */
#ifndef OJ_LAYER_READ_H
#define OJ_LAYER_READ_H

#include "../arrays/oj_flat.h"
#include "oj_attribute_table.h"
#include "oj_lane_table.h"

#include <gdal.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>

/** Consecutive rows of a layer. */
struct oj_batch
{
    int64_t first_row;                /**< index of row 0 in the layer */
    int64_t n_rows;                   /**< equals flat.n_features */
    struct oj_flat_buf flat;          /**< geometry and FIDs */
    struct oj_attributes *attributes; /**< fields, and the geometry as read */
};

/** Frees what a batch owns; the batch is then empty and valid. Any thread may
 *  call it. */
void oj_batch_free(struct oj_batch *batch);

struct oj_read_options
{
    int64_t batch_rows; /**< rows per batch, > 0 */
    int64_t limit;      /**< maximum number of rows; < 0: no limit */
    /** [n_fields] indices of the wanted fields in the layer's definition */
    const int *fields;
    int n_fields; /**< number of wanted fields; may be 0 */
    /** [n_fields] nonzero: the field keeps its index, but its values are not
     *  used and need not be read; NULL: the values of all fields are used */
    const unsigned char *skipped;
    int keep_attributes; /**< 1: batches have attributes */
    /** used with keep_attributes; 1: the geometry in the attributes is not
     *  used, so that only `flat` is transformed */
    int fields_only;
    int keeps_m; /**< 1: `flat` has the M values of vertices */
    /** lanes that may be used, one bit per enum oj_lane_id; the first one that
     *  can read the layer is used; 0: only GDAL's features */
    unsigned lanes;

    /** For OJ_LANE_FLATGEOBUF: the file whose whole content is the layer. NULL
     *  unless no attribute filter is set and a spatial filter, if set, is a
     *  rectangle. */
    const char *file;

    /** For OJ_LANE_GEOPACKAGE: the dataset in which the layer is a table. NULL
     *  if an attribute filter is set. */
    GDALDatasetH geopackage;

    /** NULL, or an attribute filter that all rows pass. While GDAL's GeoPackage
     *  driver reads, the reader sets this filter on the layer; no other filter
     *  may be set until the reader is closed.  It makes GDAL use a single
     *  statement in FID order, which is as fast.  Without any filter, if a
     *  table's largest FID equals its row count, GDAL reads its Arrow stream by
     *  ranges of FIDs on threads with their own connections: these see other
     *  states of the file, and if the count is wrong, rows are read twice (seen
     *  in GDAL 3.6). With only a spatial filter GDAL returns rows in the order
     *  of the spatial index. */
    const char *all_rows_filter;

    /** 1: the driver ignores fields that are not wanted, which saves time. Must
     *  be 0 if an attribute filter is set: most drivers (FlatGeobuf, Shapefile,
     *  CSV) evaluate the filter on the row as read, and drop every row if the
     *  fields in it are ignored. */
    int ignore_unwanted;

    /** NULL, or the transformation into the CRS of the join, applied to `flat`
     *  and to the geometries in the attributes. A feature with a vertex that
     *  cannot be transformed matches nothing. Curves are linearised before, in
     *  the CRS of the layer; those in the attributes stay curves, of which the
     *  control points are transformed. */
    OGRCoordinateTransformationH transformation;

    /** 1: the layer is in degrees; features with a part nearly 360 degrees wide
     *  are then counted */
    int has_degrees;

    /** NULL, or a function that is called at the end of the layer, when the
     *  caller has all rows read so far. It replaces the rows by the next ones,
     *  waiting for them if necessary, and sets *n_rows to 0 if there are no
     *  more. No lane is used with it. */
    oj_status (*refill)(void *user, int64_t *n_rows, struct oj_error *err);
    void *refill_user;

    /** threads that decode rows, including the calling one; 0 means 1 */
    int n_threads;
    const int *cancel; /**< nonzero stops reading within a batch; may be NULL */
};

struct oj_read_counts
{
    int64_t n_rows;
    int64_t n_not_transformed; /**< features that could not be transformed */
    struct oj_flat_counts
        shapes;    /**< counts of flattening, summed over batches */
    int64_t n_cut; /**< features cut where the CRS of the join ends */
    /** features that should have been cut there, but cannot be */
    int64_t n_torn;
    /** features with a part 350 to 360 degrees wide */
    int64_t n_wide;
    int64_t n_bad_texts;     /**< texts that are not valid UTF-8 */
    double seconds;          /**< wall time spent reading */
    const char *lane;        /**< name of the lane that read the rows; NULL:
                                  GDAL's features */
    int64_t n_warnings;      /**< warnings of the driver while reading */
    char first_warning[256]; /**< the first warning, or "" */
    int64_t n_vertices;      /**< oj_layer_read_all(): vertices read so far */
    /** oj_layer_read_all(): bytes of the attributes so far */
    int64_t n_table_bytes;
};

struct oj_layer_reader;

/** Opens a reader at the layer's first row, under the filters set on the layer.
 *  Sets ignored fields on the layer.  The layer and options->transformation
 *  must outlive the reader; the rest of options is copied. No lane is used if
 *  geometries in the attributes must be transformed, nor for a limit together
 *  with a spatial filter. */
OJ_MUST_USE oj_status
oj_layer_reader_open(OGRLayerH layer, const struct oj_read_options *options,
                     struct oj_layer_reader **out, struct oj_error *err);

/** Fills batch (zeroed before the first call; its memory is reused) with the
 *  next rows; batch->n_rows == 0 at the end; a batch may have fewer than
 *  batch_rows rows. Fails with OJ_ERR_DATA or OJ_ERR_IO, and the FID or row
 *  number in the message, if OGR cannot read a row or its WKB is invalid; the
 *  reader must then be closed. */
OJ_MUST_USE oj_status oj_layer_reader_next(struct oj_layer_reader *reader,
                                           struct oj_batch *batch,
                                           struct oj_error *err);

/** Fills batch with the feature of this FID by random access, regardless of
 *  filters; batch->n_rows == 0 if it does not exist. The reader must have been
 *  opened with lanes == 0 and must not be used with oj_layer_reader_next(). */
OJ_MUST_USE oj_status oj_layer_reader_read_fid(struct oj_layer_reader *reader,
                                               int64_t fid,
                                               struct oj_batch *batch,
                                               struct oj_error *err);

const struct oj_read_counts *
oj_layer_reader_counts(const struct oj_layer_reader *reader);

/** Closes the reader and restores the layer's ignored fields; accepts NULL. All
 *  batches must be freed before. */
void oj_layer_reader_close(struct oj_layer_reader *reader);

/* ------------------------------------------------------------------------ */

/** Reads the whole layer: geometries into flat, the wanted fields into *table
 *  (column c holds options->fields[c]). keep_attributes is ignored.
 *  progress(rows read, user) may be NULL; if it returns nonzero, the reading
 *  stops with OJ_ERR_CANCELLED. *counts is set even then. */
OJ_MUST_USE oj_status oj_layer_read_all(OGRLayerH layer,
                                        const struct oj_read_options *options,
                                        struct oj_flat_buf *flat,
                                        struct oj_table **table,
                                        struct oj_read_counts *counts,
                                        int (*progress)(int64_t, void *),
                                        void *user, struct oj_error *err);

#endif
