/** The lane FlatGeobuf, reading: finds features one after another by their
 *  sizes, and converts them to columns without OGR features.
 *
 *    magic | u32, header | packed R-tree | u32, feature | u32, feature | ...
 *
 *  GDAL opens the layer and describes it; the lane reads the file itself
 *  through VSI. The bytes are untrusted. From the first row that is invalid or
 *  unusual (curves, features without a vertex, a truncated file), the rows are
 *  left to GDAL, which reports the problem.
 *
 *  Source: specification of FlatGeobuf, version 3.
 */
#ifndef OJ_FLATGEOBUF_READ_H
#define OJ_FLATGEOBUF_READ_H

#include "../arrays/oj_chunk.h"

/** The lane. It refuses files that do not match the layer or are of an unknown
 *  version. Each wanted field must occur once in the file. */
extern const struct oj_lane oj_flatgeobuf_lane;

#endif
