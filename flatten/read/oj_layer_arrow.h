/** The lane Arrow: reads a layer through its Arrow stream. It does not exist
 *  before GDAL 3.6. */
#ifndef OJ_LAYER_ARROW_H
#define OJ_LAYER_ARROW_H

#include "../arrays/oj_chunk.h"

#include <gdal_version.h>

#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 6, 0)
#define OJ_HAVE_ARROW 1
#else
#define OJ_HAVE_ARROW 0
#endif

/** The lane. Only fields that are not ignored when it is opened are read. It
 *  refuses layers without a stream, or with a field that the stream does not
 *  deliver without loss. */
extern const struct oj_lane oj_arrow_lane;

#endif
