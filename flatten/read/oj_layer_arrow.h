/** A layer's Arrow stream as a lane. GDAL before 3.6 has no streams, and then
 *  there is no such lane.
 */
#ifndef OJ_LAYER_ARROW_H
#define OJ_LAYER_ARROW_H

#include "../arrays/oj_chunk.h"

#include <gdal_version.h>

#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 6, 0)
#define OJ_HAVE_ARROW 1
#else
#define OJ_HAVE_ARROW 0
#endif

/** Under the fields that are ignored when it is opened. Not where the stream is
 *  missing or does not carry one of the fields without loss. */
extern const struct oj_lane oj_arrow_lane;

#endif
