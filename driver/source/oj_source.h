/** One of the two inputs: an open dataset, its layer, filters and fields. */
#ifndef OJ_SOURCE_H
#define OJ_SOURCE_H

#include "../command/oj_parsed_command.h"
#include "oj_report_stream.h"

#include <gdal.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>

/** A zeroed one is valid and closed. */
struct oj_source
{
    const char *role; /**< "input" or "join", for messages */
    /** the command's options for this side */
    const struct oj_source_options *side;
    GDALDatasetH dataset;
    OGRLayerH layer;
    /** the layer that `layer` is a view of (oj_geometry_column.h); NULL: none
     */
    OGRLayerH viewed;
    struct oj_report_stream *stream; /**< fills the layer; NULL: none */
    int is_result_set;               /**< the layer is the result of a SELECT */
    /** the driver's Arrow stream has wrong values; not to be used */
    int has_wrong_stream;
    const double *spat;      /**< the box of -spat, or NULL */
    int has_where;           /**< an attribute filter is set on layer */
    char name[256];          /**< name of the layer */
    OGRwkbGeometryType type; /**< declared by the layer; wkbNone: no geometry */
    OGRSpatialReferenceH srs; /**< owned; NULL: none; see oj_crs.h */
    int *fields, n_fields;    /**< owned; indices of the fields that are read */
    /** owned; [i] is 1 when the join itself uses fields[i] */
    unsigned char *needed;
    /** owned; [i] is 1 while fields[i] is skipped; see oj_source_skip() */
    unsigned char *skipped;
    /** number of fields[n_fields ...] that are read for the join, but not
     *  written; see oj_source_need_field() */
    int n_hidden;

    int is_held; /**< see oj_source_hold() */

    /** Owned; transforms into the CRS of the join; NULL: none. Set by
     *  oj_crs_choose(). */
    OGRCoordinateTransformationH transformation;
};

/** Opens one side of the command read-only (0: input, 1: join) and checks that
 *  it has a geometry if the join needs one. The boxes of -window become a layer
 *  in memory with the FIDs 1 to n; boxes without area become lines or points.
 *  Unused fields are not read.  command must outlive the source. */
OJ_MUST_USE oj_status oj_source_open(const struct oj_command *command, int side,
                                     struct oj_source *source,
                                     struct oj_error *err);

/** Adds a field to those read, whether it is written or not. *column: its index
 *  in source->fields, in oj_table and in batches; *defn: its definition, owned
 *  by the layer.  OJ_ERR_ARG, naming option and listing the fields, if there is
 *  none of this name. */
OJ_MUST_USE oj_status oj_source_need_field(struct oj_source *source,
                                           const char *name, const char *option,
                                           int *column, OGRFieldDefnH *defn,
                                           struct oj_error *err);

/** Definition of fields[i], owned by the layer. */
OGRFieldDefnH oj_source_field(const struct oj_source *source, int i);

/** "NAME TYPE SUBTYPE" of the first n fields; free with CSLDestroy(). */
char **oj_source_describe_fields(const struct oj_source *source, int n);

/** Stops (is_skipped 1) or resumes reading the values of fields[column]; the
 *  fields that the join itself uses are always read.  A reader that is already
 *  open is not affected. */
void oj_source_skip(struct oj_source *source, int column, int is_skipped);

/** 1 when -where or -spat filters the rows. */
int oj_source_is_filtered(const struct oj_source *source);

/** Sets filters on the layer in addition to the command's. They replace those
 *  of the last call. Precondition: no reader is open.  All rows that pass all
 *  filters are read; a box may let more rows through.
 *  box    geometries that intersect it, or NULL
 *  where  a condition in the driver's SQL, or NULL; not on a SELECT */
OJ_MUST_USE oj_status oj_source_filter(struct oj_source *source,
                                       const OGREnvelope *box,
                                       const char *where, struct oj_error *err);

/** Sets a filter for the row with this FID, in addition to the command's
 *  filters. */
OJ_MUST_USE oj_status oj_source_filter_fid(struct oj_source *source,
                                           int64_t fid, struct oj_error *err);

/** Number of rows under the filters, at most limit (-1: no limit), or -1 if
 *  counting would scan the layer. */
int64_t oj_source_count(const struct oj_source *source, int64_t limit);

/** Call after the last row: OJ_ERR_DATA when a FlatGeobuf file has fewer rows
 *  (n_rows) than its header states; GDAL's driver reads a truncated file
 *  without an error. */
OJ_MUST_USE oj_status oj_source_check_count(const struct oj_source *source,
                                            int64_t limit, int64_t n_rows,
                                            struct oj_error *err);

/** Lanes that may read it, as bits, for the reader (oj_lane_table.h). */
unsigned oj_source_lanes(const struct oj_source *source);

/** all_rows_filter of a reader (oj_layer_read.h): for a GeoPackage table
 *  without an attribute filter, else NULL. */
const char *oj_source_all_rows_filter(const struct oj_source *source);

/** 0 when the layer's type excludes points, else 1. */
int oj_source_can_hold_points(const struct oj_source *source);

/** 1 when path is the dataset of the source or one of its files. */
int oj_source_is_behind(const struct oj_source *source, const char *path);

/** 1 for a stream, whose rows can be read only once. */
int oj_source_reads_once(const struct oj_source *source);

/** Fixes the state of the source: until oj_source_release() all readings see
 *  one state.  Works for SQLite databases; for others nothing happens, and
 *  is_held stays 0. A second call has no effect.  OJ_ERR_IO if another program
 *  keeps the database locked. */
OJ_MUST_USE oj_status oj_source_hold(struct oj_source *source,
                                     struct oj_error *err);

/** Ends oj_source_hold(). Until then no other program can write to a database
 *  with a rollback journal. */
void oj_source_release(struct oj_source *source);

/** Returns OJ_ERR_DATA with "the ROLE layer 'NAME' " and how, e.g. "was changed
 *  ...". */
oj_status oj_source_fail_changed(const struct oj_source *source,
                                 const char *how, struct oj_error *err);

/** Closes the dataset, but keeps the names for messages. */
void oj_source_close_dataset(struct oj_source *source);

/** Frees what it owns. Accepts a closed one. */
void oj_source_close(struct oj_source *source);

#endif
