/** OGR layer -> batches of flat geometry and attributes.
 *
 *  One reader per layer and thread. Reads through the Arrow stream where the
 *  driver has a fast one (GDAL >= 3.6) and every wanted field is of a type
 *  that Arrow carries without loss, else through the feature loop; both end in
 *  the same WKB parser, and only wanted columns are asked for.
 *  Includes GDAL's C API: only driver/ and the layer reader and writer may
 *  include this.
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
    int64_t first_row;                /**< place of row 0 in the layer */
    int64_t n_rows;                   /**< == flat.n_features */
    struct oj_flat_buf flat;          /**< geometry and FIDs */
    struct oj_attributes *attributes; /**< geometry as read, and fields */
};

/** Frees what a batch holds; it is a valid empty one afterwards. May be called
 *  on another thread than the reader's. */
void oj_batch_free(struct oj_batch *batch);

struct oj_read_options
{
    int64_t batch_rows;           /**< rows per batch, > 0 */
    int64_t limit;                /**< stop after so many rows; < 0: all */
    const int *fields;            /**< [n_fields] wanted fields of the layer */
    int n_fields;                 /**< 0: none */
    const unsigned char *skipped; /**< [n_fields] nonzero: the field keeps its
                              number, and nobody looks at its values, which
                              need not be read; NULL: all are looked at */
    int keep_attributes; /**< 1: batches carry geometry and fields as read */
    int fields_only;     /**< 1, with keep_attributes: of these only the fields,
                              so that geometry may be transformed on the way
                              to flat alone */
    unsigned lanes;      /**< that may read, as bits by enum oj_lane_id; the
                              first that can does; 0: feature loop */

    /** For OJ_LANE_FLATGEOBUF: NULL, or the file that the layer is all of,
     *  without an attribute filter set on it. A spatial filter is a rectangle.
     */
    const char *file;

    /** For OJ_LANE_GEOPACKAGE: NULL, or the dataset that the layer is a table
     *  of, without an attribute filter set on it. */
    GDALDatasetH geopackage;

    /** NULL, or an attribute filter that all rows pass, which the reader sets
     * on a layer without one while it reads by the driver of GeoPackage, until
     * it is closed; no other may be set meanwhile.
     * Without a filter GDAL reads by Arrow a table whose greatest FID equals
     * the file's count of rows by ranges of FIDs, on threads with connections
     * of their own: these see other states of the file, and where the count is
     * wrong rows come twice (seen in GDAL 3.6). Under a spatial filter alone it
     * gives rows in the order of its index, not by FID. With the filter there
     * is a single statement, by FID, as fast. */
    const char *all_rows_filter;

    /** 1: fields that are not wanted are ignored by the driver, which saves
     *  time. Must be 0 when an attribute filter is set on the layer: most
     *  drivers (FlatGeobuf, Shapefile, CSV) evaluate it on the row as read and
     *  drop every row when its fields are ignored. */
    int ignore_unwanted;

    /** NULL, or the transformation into the CRS of the join, applied to flat
     *  and to the geometry that is carried. A vertex that cannot be
     *  transformed makes its feature one that joins nothing. */
    OGRCoordinateTransformationH transformation;

    int has_degrees; /**< 1: the layer has degrees, and parts that are nearly
                          360 of them wide are counted */

    /** NULL, or what is called when the layer has no more rows: it replaces
     *  them by the next ones, and may wait for these; *n_rows 0: there are none
     *  any more. Rows that came before are handed over first. Without lanes. */
    oj_status (*refill)(void *user, int64_t *n_rows, struct oj_error *err);
    void *refill_user;

    int n_threads;     /**< that decode rows, the calling one included; 0: as
                            many as 1 */
    const int *cancel; /**< nonzero stops within a batch; may be NULL */
};

struct oj_read_counts
{
    int64_t n_rows;
    int64_t n_not_transformed;    /**< features that could not be reprojected */
    struct oj_flat_counts shapes; /**< summed over batches */
    int64_t n_cut;           /**< features cut where the CRS of the join ends */
    int64_t n_torn;          /**< that would have to be, and cannot */
    int64_t n_wide;          /**< with a part from 350 to 360 degrees wide */
    int64_t n_bad_texts;     /**< values of texts that are not UTF-8 */
    double seconds;          /**< wall time spent reading */
    const char *lane;        /**< that rows came by; NULL: feature loop */
    int64_t n_warnings;      /**< that the driver raised while reading */
    char first_warning[256]; /**< the first of them, or "" */
    int64_t n_vertices;      /**< oj_layer_read_all(): read so far */
    int64_t n_table_bytes;   /**< oj_layer_read_all(): held by the attributes */
};

struct oj_layer_reader;

/** Starts at the layer's first row, under the filters set on it. Sets ignored
 *  fields on the layer.  The layer outlives the reader; so does options->
 *  transformation; the rest of options is copied. Arrow is used only without
 *  a spatial filter (a stream compares it with boxes, the feature loop with the
 *  features themselves) and when carried geometry is not transformed. */
OJ_MUST_USE oj_status
oj_layer_reader_open(OGRLayerH layer, const struct oj_read_options *options,
                     struct oj_layer_reader **out, struct oj_error *err);

/** Fills batch (zeroed at first; its memory is used again) with the next rows;
 *  batch->n_rows == 0 at the end; a batch may be shorter than batch_rows before
 *  it.  A row that OGR cannot read or whose WKB is broken is OJ_ERR_DATA or
 *  OJ_ERR_IO naming its FID or place; the reader can only be closed then. */
OJ_MUST_USE oj_status oj_layer_reader_next(struct oj_layer_reader *reader,
                                           struct oj_batch *batch,
                                           struct oj_error *err);

/** Fills batch with the one feature of this FID, by the layer's random access
 *  and whatever filters are set; batch->n_rows == 0: there is none. Only with a
 *  reader of lanes == 0, of which nothing else is asked. */
OJ_MUST_USE oj_status oj_layer_reader_get(struct oj_layer_reader *reader,
                                          int64_t fid, struct oj_batch *batch,
                                          struct oj_error *err);

const struct oj_read_counts *
oj_layer_reader_counts(const struct oj_layer_reader *reader);

/** Accepts NULL. Restores the layer's ignored fields. Free all batches first.
 */
void oj_layer_reader_close(struct oj_layer_reader *reader);

/* ------------------------------------------------------------------------ */

/** Reads the whole layer: geometry into flat, the wanted fields into *table
 *  (column c is options->fields[c]); keep_attributes is not looked at.
 *  progress(done rows, user) may be NULL; nonzero stops with OJ_ERR_CANCELLED;
 *  *counts says what has been read by then. */
OJ_MUST_USE oj_status oj_layer_read_all(OGRLayerH layer,
                                        const struct oj_read_options *options,
                                        struct oj_flat_buf *flat,
                                        struct oj_table **table,
                                        struct oj_read_counts *counts,
                                        int (*progress)(int64_t, void *),
                                        void *user, struct oj_error *err);

#endif
