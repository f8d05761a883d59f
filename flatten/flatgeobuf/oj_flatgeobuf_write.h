/** Files of FlatGeobuf, written without a feature of OGR's. GDAL makes the
 *  layer, whose definition the file has, and the header; rows, order and index
 *  are made here, as GDAL's driver makes them.
 *
 *  Source: specification of FlatGeobuf, version 3.
 */
#ifndef OJ_FLATGEOBUF_WRITE_H
#define OJ_FLATGEOBUF_WRITE_H

#include "oj_flatgeobuf_sort.h"

#include <ogr_api.h>
#include <ogr_srs_api.h>

struct oj_flatgeobuf_writer;

/** A file to write, and what the layer was made with that GDAL does not tell.
 */
struct oj_flatgeobuf_file
{
    const char *path;         /**< of the local file system */
    char **layer_options;     /**< creation options */
    OGRSpatialReferenceH crs; /**< or NULL */
    int n_threads;            /**< of the index */
};

/** Begins a file for the rows of a layer that GDAL made and that gets no rows
 *  itself; file is read now.  With an index, rows are in a second file, the
 *  path and ".unsorted", until the first is finished. *out is NULL, without
 *  error, when the file is better left to GDAL. */
OJ_MUST_USE oj_status oj_flatgeobuf_write_open(
    const struct oj_flatgeobuf_file *file, OGRLayerH layer,
    struct oj_flatgeobuf_writer **out, struct oj_error *err);

/** Rows that are ready to be written, made by one thread at a time. Zeroed
 *  memory is a valid one; oj_flatgeobuf_run_begin() makes it an empty one of
 * the writer's. */
struct oj_flatgeobuf_run
{
    struct oj_fgb_encoder encoder; /**< its properties are added to before each
                                        row */
    struct oj_fgb_node *node;      /**< [n_rows] owned */
    int64_t n_rows, cap_nodes;
    int uses_ogr;  /**< 1: OGR may be asked; 0: a row that needs it is left out
                        and */
    int needs_ogr; /**< is 1 */
};

void oj_flatgeobuf_run_begin(const struct oj_flatgeobuf_writer *writer,
                             struct oj_flatgeobuf_run *run);
void oj_flatgeobuf_run_free(struct oj_flatgeobuf_run *run);

/** Ends the row: its geometry is ISO WKB of n bytes, little-endian, or NULL.
 *  *is_empty is 1 where it has no vertex; such a row is left out, kept or
 *  refused (OJ_ERR_UNSUPPORTED) as this version of GDAL does it. *is_finite is
 *  0 where its box is not. Any thread. */
OJ_MUST_USE oj_status oj_flatgeobuf_run_add(
    const struct oj_flatgeobuf_writer *writer, struct oj_flatgeobuf_run *run,
    const uint8_t *wkb, int64_t n, int *is_empty, int *is_finite,
    struct oj_error *err);

/** Writes the rows of a run, which is empty afterwards. */
OJ_MUST_USE oj_status
oj_flatgeobuf_write_run(struct oj_flatgeobuf_writer *writer,
                        struct oj_flatgeobuf_run *run, struct oj_error *err);

/** Completes the file. *has_rows is 0 when there were none: then GDAL's own
 *  file is the one to take. O(rows). */
OJ_MUST_USE oj_status oj_flatgeobuf_write_finish(
    struct oj_flatgeobuf_writer *writer, int *has_rows, struct oj_error *err);

/** Accepts NULL. The file stays, the second one does not. */
void oj_flatgeobuf_write_close(struct oj_flatgeobuf_writer *writer);

#endif
