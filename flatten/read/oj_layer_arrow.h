/** A layer's Arrow stream as a lane. GDAL before 3.6 has no streams:
 *  oj_arrow_open() then says that the layer is not usable.
 */
#ifndef OJ_LAYER_ARROW_H
#define OJ_LAYER_ARROW_H

#include "../arrays/oj_chunk.h"
#include "oj_value.h"

#include <gdal_version.h>

#if GDAL_VERSION_NUM >= GDAL_COMPUTE_VERSION(3, 6, 0)
#define OJ_HAVE_ARROW 1
#else
#define OJ_HAVE_ARROW 0
#endif

struct oj_arrow_stream;

extern const struct oj_lane oj_arrow_lane;

/** Starts the layer's stream at its first row under the fields that are
 *  ignored now. *out is NULL, without error, when the stream is missing or does
 *  not carry one of the fields without loss. Columns are those of fields. */
OJ_MUST_USE oj_status oj_arrow_open(OGRLayerH layer,
                                    const struct oj_fields *fields,
                                    int64_t batch_rows,
                                    struct oj_arrow_stream **out,
                                    struct oj_error *err);

#endif
