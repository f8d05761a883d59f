/** One of the two inputs: an open dataset, the layer in it, the filters on it
 *  and the fields that are wanted. */
#ifndef OJ_SOURCE_H
#define OJ_SOURCE_H

#include "../command/oj_parsed_command.h"
#include "oj_report_stream.h"

#include <gdal.h>
#include <ogr_api.h>
#include <ogr_srs_api.h>

/** Zeroed memory is a valid closed one. */
struct oj_source
{
    const char *role; /**< "input" or "join", for messages */
    const struct oj_source_options *side; /**< what was asked; the command's */
    GDALDatasetH dataset;
    OGRLayerH layer;
    struct oj_report_stream *stream; /**< that fills layer; NULL: none */
    int is_result_set;               /**< layer comes from a SELECT */
    int has_wrong_stream;    /**< the driver's stream of columns is wrong */
    const double *spat;      /**< the command's filter box, or NULL */
    int has_where;           /**< an attribute filter is set on layer */
    char name[256];          /**< of the layer */
    OGRwkbGeometryType type; /**< declared by the layer; wkbNone: it has none */
    OGRSpatialReferenceH srs; /**< owned; NULL: none. See oj_crs.h */
    int *fields, n_fields;    /**< owned; places of the wanted fields */
    unsigned char *needed;    /**< owned; by place in fields: the join itself
                                   looks at the values */
    unsigned char *skipped;   /**< owned; the same: nobody does, at present */
    int n_hidden; /**< fields[n_fields .. n_fields + n_hidden): read for the
                       join, but not written; see oj_source_need_field() */

    int is_held; /**< see oj_source_hold() */

    /** Owned; into the CRS of the join, or NULL. Set by oj_crs_choose(). */
    OGRCoordinateTransformationH transformation;
};

/** Opens what command asks for of a side, 0: the input, 1: the join side,
 *  read-only, and checks that it has a geometry, where the join looks at one.
 * The boxes of -window are a layer in memory with the FIDs 1 to n; those
 * without area are lines or points. Fields that nobody will look at are left
 * out.  command outlives the source.
 */
OJ_MUST_USE oj_status oj_source_open(const struct oj_command *command, int side,
                                     struct oj_source *source,
                                     struct oj_error *err);

/** Has the field of that name read, whether it is written or not; *column: its
 *  place in fields, which is its column in an oj_table and its number in a
 *  batch; *defn: its definition, the layer's.  OJ_ERR_ARG, naming option and
 *  listing the fields, when there is none. */
OJ_MUST_USE oj_status oj_source_need_field(struct oj_source *source,
                                           const char *name, const char *option,
                                           int *column, OGRFieldDefnH *defn,
                                           struct oj_error *err);

/** The definition of fields[i], the layer's. */
OGRFieldDefnH oj_source_field(const struct oj_source *source, int i);

/** "NAME TYPE SUBTYPE" of the first n of fields; freed with CSLDestroy(). */
char **oj_source_describe_fields(const struct oj_source *source, int n);

/** Has the values of fields[column] not be read from now on (is_skipped 1), or
 *  read again, unless the join itself looks at them.  Of no account to a reader
 *  that is open. */
void oj_source_skip(struct oj_source *source, int column, int is_skipped);

/** 1 when the command filters the rows by -where or -spat. */
int oj_source_is_filtered(const struct oj_source *source);

/** Sets filters on the layer, beside those of the command and in place of what
 *  was set here before; nothing reads it.  No row is passed over that both
 *  would let through; a box may let through more.
 *  box    geometries that meet it, or NULL
 *  where  a condition in the driver's own SQL, or NULL; not on a SELECT */
OJ_MUST_USE oj_status oj_source_filter(struct oj_source *source,
                                       const OGREnvelope *box,
                                       const char *where, struct oj_error *err);

/** Sets a filter for the one row with this FID, if the command lets it through.
 */
OJ_MUST_USE oj_status oj_source_filter_fid(struct oj_source *source,
                                           int64_t fid, struct oj_error *err);

/** Rows under the filters, or -1 where counting would be a pass over the
 *  data. limit: -1 or the most rows that will be read. */
int64_t oj_source_count(const struct oj_source *source, int64_t limit);

/** After the last row: OJ_ERR_DATA when the file's header promises more rows
 *  than n_rows and its driver, which reads such a file as if it ended there,
 *  has said nothing. */
OJ_MUST_USE oj_status oj_source_check_count(const struct oj_source *source,
                                            int64_t limit, int64_t n_rows,
                                            struct oj_error *err);

/** The lanes that may read it, for the reader (oj_lane_table.h). */
unsigned oj_source_lanes(const struct oj_source *source);

/** For the reader's options (oj_layer_read.h): of a table of GeoPackage without
 *  an attribute filter, or NULL. */
const char *oj_source_all_rows_filter(const struct oj_source *source);

/** 0 when the layer says that it holds no points; 1 also where it says nothing
 *  or holds them among others. */
int oj_source_can_hold_points(const struct oj_source *source);

/** 1 when path is the dataset of the source or one of the files behind it. */
int oj_source_is_behind(const struct oj_source *source, const char *path);

/** 1 for a stream, of which rows come once. */
int oj_source_reads_once(const struct oj_source *source);

/** Before a reading: all that is read from here on, by whatever way and however
 *  often, is of one state of the source, until oj_source_release().  Only with
 *  SQLite's databases; any other source stays as it is, and is_held 0.  Nothing
 *  happens while it is held.  OJ_ERR_IO where another program keeps it locked.
 */
OJ_MUST_USE oj_status oj_source_hold(struct oj_source *source,
                                     struct oj_error *err);

/** Others may change it again: under a rollback journal they could not. */
void oj_source_release(struct oj_source *source);

/** OJ_ERR_DATA: the layer of the source "how", as "was changed ...". */
oj_status oj_source_fail_changed(const struct oj_source *source,
                                 const char *how, struct oj_error *err);

/** Closes the dataset and keeps the rest, for messages. */
void oj_source_close_dataset(struct oj_source *source);

/** Accepts a closed one. */
void oj_source_close(struct oj_source *source);

#endif
