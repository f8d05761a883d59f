/** Files of FlatGeobuf as a lane: features are found by their sizes, one after
 *  another, and become columns without a feature of OGR's.
 *
 *   magic | u32, header | packed R-tree | u32, feature | u32, feature | ...
 *
 *  GDAL opens the layer and says what it is; the lane reads the same file over
 *  VSI. The bytes are not trusted; what is broken or odd (curves, features
 *  without a vertex, a file that ends too early) is left to GDAL, from that row
 *  on, which says what is wrong with it.
 *
 *  Source: specification of FlatGeobuf, version 3.
 */
#ifndef OJ_FLATGEOBUF_READ_H
#define OJ_FLATGEOBUF_READ_H

#include "../arrays/oj_chunk.h"

#include <ogr_api.h>

struct oj_flatgeobuf_reader;

extern const struct oj_lane oj_flatgeobuf_lane;

/** Starts at the first feature. *out is NULL, without error, when the file is
 *  not what the layer is, or a version that is not known.
 *  fields      [n_fields] wanted fields of the layer, each once
 *  skipped     [n_fields] nonzero: nobody looks at the values; or NULL
 *  batch_rows  rows of a chunk
 *  n_threads   that decode them, the calling one included */
OJ_MUST_USE oj_status oj_flatgeobuf_read_open(
    const char *file, OGRLayerH layer, const int *fields,
    const unsigned char *skipped, int n_fields, int64_t batch_rows,
    int n_threads, struct oj_flatgeobuf_reader **out, struct oj_error *err);

#endif
