/** Reprojection of the vertices of a flat layer, in bulk. */
#ifndef OJ_LAYER_TRANSFORM_H
#define OJ_LAYER_TRANSFORM_H

#include "../arrays/oj_flat.h"

#include <ogr_srs_api.h>

/** Memory that is used again. Zeroed memory is valid. */
struct oj_layer_transform
{
    int *is_good;
    uint8_t *has_none;
};

void oj_layer_transform_free(struct oj_layer_transform *work);

/** Transforms every vertex of the features >= first in place. A feature with a
 *  vertex that has no place in the other CRS gets no parts and is added to
 *  *n_lost. */
OJ_MUST_USE oj_status oj_layer_transform_flat(
    struct oj_layer_transform *work,
    OGRCoordinateTransformationH transformation, struct oj_flat_buf *flat,
    int64_t first, int64_t *n_lost, struct oj_error *err);

#endif
