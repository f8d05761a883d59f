/** Files of FlatGeobuf, written without a feature of OGR's. GDAL makes the
 *  layer, whose definition the file has, and the header; rows, order and index
 *  are made here, as GDAL's driver makes them.
 *
 *   u32 size | u32 root | table Feature | table Geometry, its vectors and parts
 *   | properties
 *
 *  Vectors of doubles begin at multiples of 8 bytes, counted from the size, as
 *  other readers expect.
 *
 *  Source: specification of FlatGeobuf, version 3.
 */
#ifndef OJ_FLATGEOBUF_WRITE_H
#define OJ_FLATGEOBUF_WRITE_H

#include "oj_flatgeobuf_sort.h"

#include <ogr_api.h>
#include <ogr_srs_api.h>

#include <string.h>

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
 *  itself; file is read now.  With an index, rows are in memory, or in
 *  temporary files, until this one is finished. *out is NULL, without error,
 * when the file is better left to GDAL. */
OJ_MUST_USE oj_status oj_flatgeobuf_write_open(
    const struct oj_flatgeobuf_file *file, OGRLayerH layer,
    struct oj_flatgeobuf_writer **out, struct oj_error *err);

/** Bytes that grow. Zeroed memory is a valid empty one. */
struct oj_fgb_bytes
{
    uint8_t *at; /**< owned */
    int64_t n, cap;
};

/** Where one thread makes rows, one behind another: begin a row with its
 *  geometry, unless it is then left out add its values, and end it. */
struct oj_fgb_encoder
{
    const struct oj_flatgeobuf_writer *writer;
    struct oj_fgb_bytes bytes; /**< features, all of multiples of 8 bytes */
    struct oj_fgb_node *node;  /**< [n_rows] owned, and the one that is made */
    int64_t n_rows, cap_nodes;
    int uses_ogr;  /**< 1: OGR may be asked; 0: a row that needs it is left out
                        and */
    int needs_ogr; /**< is 1 */

    /* The row that is made. */
    int is_empty;              /**< 1: its geometry has no vertex */
    int is_finite;             /**< 0: its box is not */
    int is_left_out;           /**< 1: it was not begun, and is not ended */
    int64_t start, properties; /**< in bytes: itself, and the count of these */

    /** What all features that are a point begin with, up to the count of
     *  properties; the last 16 bytes are the point. n_head 0: not known yet. */
    int n_head;
    uint8_t head[96];
};

/** Makes an encoder, zeroed memory or one that was used for it before, an empty
 *  one of the writer's. */
void oj_flatgeobuf_begin(const struct oj_flatgeobuf_writer *writer,
                         struct oj_fgb_encoder *encoder, int uses_ogr);
void oj_fgb_encoder_free(struct oj_fgb_encoder *encoder);

/** Room for n more bytes. */
OJ_MUST_USE oj_status oj_fgb_room(struct oj_fgb_bytes *to, int64_t n,
                                  struct oj_error *err);

/** Begins a row with its geometry: ISO WKB of n bytes, little-endian, or NULL
 *  for none. Empty members are left out; a row without vertex is left out, kept
 *  or refused (OJ_ERR_UNSUPPORTED) as this version of GDAL does it. */
OJ_MUST_USE oj_status oj_fgb_begin_row(struct oj_fgb_encoder *encoder,
                                       const uint8_t *wkb, int64_t n,
                                       struct oj_error *err);

/** Adds the value of a column: n <= 8 bytes, little-endian, as they are. */
OJ_MUST_USE static inline oj_status
oj_fgb_add_number(struct oj_fgb_encoder *encoder, int column, const void *value,
                  int n, struct oj_error *err)
{
    struct oj_fgb_bytes *to = &encoder->bytes;
    if (to->cap - to->n < 10)
        OJ_TRY(oj_fgb_room(to, 10, err));
    to->at[to->n] = (uint8_t)column;
    to->at[to->n + 1] = (uint8_t)(column >> 8);
    if (n == 8)
        memcpy(to->at + to->n + 2, value, 8);
    else if (n == 4)
        memcpy(to->at + to->n + 2, value, 4);
    else
        memcpy(to->at + to->n + 2, value, (size_t)n);
    to->n += 2 + n;
    return OJ_OK;
}

/** Adds a text or a binary. */
OJ_MUST_USE oj_status oj_fgb_add_bytes(struct oj_fgb_encoder *encoder,
                                       int column, const void *bytes, int64_t n,
                                       struct oj_error *err);

OJ_MUST_USE oj_status oj_fgb_end_row(struct oj_fgb_encoder *encoder,
                                     struct oj_error *err);

/** Writes the rows of an encoder. One thread at a time. */
OJ_MUST_USE oj_status oj_flatgeobuf_write_rows(
    struct oj_flatgeobuf_writer *writer, const struct oj_fgb_encoder *encoder,
    struct oj_error *err);

/** Completes the file. *has_rows is 0 when there were none: then GDAL's own
 *  file is the one to take. O(rows). */
OJ_MUST_USE oj_status oj_flatgeobuf_write_finish(
    struct oj_flatgeobuf_writer *writer, int *has_rows, struct oj_error *err);

/** Accepts NULL. */
void oj_flatgeobuf_write_close(struct oj_flatgeobuf_writer *writer);

#endif
