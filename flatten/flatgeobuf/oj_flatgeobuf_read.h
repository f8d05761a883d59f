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

/** Not for a file that is not what the layer is, or a version that is not
 *  known; wants each field once. */
extern const struct oj_lane oj_flatgeobuf_lane;

#endif
