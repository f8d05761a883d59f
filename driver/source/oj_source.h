/** One of the two inputs: an open dataset, its layer, filters and fields. */
#ifndef OJ_SOURCE_H
#define OJ_SOURCE_H

#include "../command/oj_parsed_command.h"
#include "oj_report_stream.h"

#include <gdal.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>

/** An input of the join. Zeroed memory is valid and closed. */
struct oj_source
{
    const char *role; /**< "input" or "join", for messages */
    /** the command's options for this side */
    const struct oj_source_options *side;
    GDALDatasetH dataset;
    OGRLayerH layer;
    /** the layer that `layer` is a view of; NULL if `layer` is no view */
    OGRLayerH viewed;
    /** the stream that fills the layer; NULL if the layer is no stream */
    struct oj_report_stream *stream;
    int is_result_set; /**< the layer is the result of a SELECT */
    /** 1 if the driver's Arrow stream has wrong values and must not be used */
    int has_wrong_stream;
    const double *spat; /**< the box of -spat, or NULL */
    int has_where;      /**< an attribute filter is set on layer */
    char name[256];     /**< name of the layer */
    /** declared by the layer; wkbNone if it has no geometry */
    OGRwkbGeometryType type;
    /** CRS of the layer, owned; NULL if there is none; see oj_crs.h */
    OGRSpatialReferenceH srs;
    int *fields, n_fields; /**< indices of the fields that are read; owned */
    /** [i] 1: the join itself uses fields[i]; owned */
    unsigned char *needed;
    /** [i] 1: fields[i] is skipped now, see oj_source_skip_field(); owned */
    unsigned char *skipped;
    /** number of further fields, from fields[n_fields] on, that are read for
     *  the join but not written; see oj_source_need_field() */
    int n_hidden;

    /** 1 if all readings return one state of the database, see
     *  oj_source_begin_snapshot() */
    int is_held;

    /** Transformation into the CRS of the join, owned, or NULL. Set by
     *  oj_crs_choose(). */
    OGRCoordinateTransformationH transformation;
};

/** Opens one side of the command read-only (0: input, 1: join) and checks that
 *  it has a geometry if the join needs one. Only fields that are used are read.
 *  The boxes of -window become a layer in memory with the FIDs 1 to n, in which
 *  boxes without area are lines or points. command must outlive the source. */
OJ_MUST_USE oj_status oj_source_open(const struct oj_command *command, int side,
                                     struct oj_source *source,
                                     struct oj_error *err);

/** Adds the field `name` to those that are read, even if it is not written.
 *  Sets *column to its index in source->fields, in struct oj_table and in
 *  batches, and *defn to its definition, owned by the layer. OJ_ERR_ARG if
 *  there is no such field; the message names the option and lists the
 *  fields. */
OJ_MUST_USE oj_status oj_source_need_field(struct oj_source *source,
                                           const char *name, const char *option,
                                           int *column, OGRFieldDefnH *defn,
                                           struct oj_error *err);

/** Returns the definition of fields[i], owned by the layer. */
OGRFieldDefnH oj_source_field(const struct oj_source *source, int i);

/** Returns a list of "NAME TYPE SUBTYPE" for the first n fields; free it with
 *  CSLDestroy(). */
char **oj_source_describe_fields(const struct oj_source *source, int n);

/** Stops (is_skipped 1) or resumes reading the values of fields[column]. Fields
 *  that the join itself uses are always read. A reader that is already open is
 *  not affected. */
void oj_source_skip_field(struct oj_source *source, int column, int is_skipped);

/** Returns 1 if -where or -spat filters the rows. */
int oj_source_is_filtered(const struct oj_source *source);

/** Sets filters on the layer in addition to those of the command; the filters
 *  of the previous call are dropped. Precondition: no reader is open.
 *   box    reads the rows whose geometry intersects the box, and possibly more;
 *          NULL: reads all rows
 *   where  a condition in the driver's SQL, or NULL; always NULL for a
 *   SELECT */
OJ_MUST_USE oj_status oj_source_set_filter(struct oj_source *source,
                                           const OGREnvelope *box,
                                           const char *where,
                                           struct oj_error *err);

/** Sets a filter for the row with this FID, in addition to the command's
 *  filters. */
OJ_MUST_USE oj_status oj_source_filter_fid(struct oj_source *source,
                                           int64_t fid, struct oj_error *err);

/** Returns the number of rows that pass the filters, at most limit (-1: no
 *  limit); -1 if counting would scan the layer. */
int64_t oj_source_count(const struct oj_source *source, int64_t limit);

/** Must be called after the last row: OJ_ERR_DATA if a FlatGeobuf file has
 *  fewer rows (n_rows) than its header states, because GDAL's driver reads a
 *  truncated file without an error. */
OJ_MUST_USE oj_status oj_source_check_count(const struct oj_source *source,
                                            int64_t limit, int64_t n_rows,
                                            struct oj_error *err);

/** Returns the lanes that may read the layer, as bits (oj_lane_table.h). */
unsigned oj_source_lanes(const struct oj_source *source);

/** Returns a filter that every row of a GeoPackage table passes, for struct
 *  oj_read_options; NULL for other layers, or if an attribute filter is set. */
const char *oj_source_all_rows_filter(const struct oj_source *source);

/** Returns 0 if the layer's type excludes points, else 1. */
int oj_source_can_hold_points(const struct oj_source *source);

/** Returns 1 if path is the dataset of the source or one of its files. */
int oj_source_has_file(const struct oj_source *source, const char *path);

/** Returns 1 for a stream, whose rows can be read only once. */
int oj_source_reads_once(const struct oj_source *source);

/** Holds the source: until oj_source_end_snapshot() all readings see one state
 * of it. This works for SQLite databases; for other sources nothing happens,
 * and is_held stays 0. A second call has no effect. OJ_ERR_IO if another
 * program keeps the database locked. */
OJ_MUST_USE oj_status oj_source_begin_snapshot(struct oj_source *source,
                                               struct oj_error *err);

/** Ends oj_source_begin_snapshot(). Before this call no other program can write
 * to a database that has a rollback journal. */
void oj_source_end_snapshot(struct oj_source *source);

/** Returns OJ_ERR_DATA with the message "the ROLE layer 'NAME' " and how, e.g.
 *  "was changed ...". */
oj_status oj_source_fail_changed(const struct oj_source *source,
                                 const char *how, struct oj_error *err);

/** Closes the dataset, but keeps the names for messages. */
void oj_source_close_dataset(struct oj_source *source);

/** Frees what source owns; a closed one is accepted. */
void oj_source_close(struct oj_source *source);

#endif
