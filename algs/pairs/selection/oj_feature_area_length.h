/** Area and length of the features of a flat layer, planar, in the order of
 *  their vertices, so that they do not depend on anything else. */
#ifndef OJ_FEATURE_AREA_LENGTH_H
#define OJ_FEATURE_AREA_LENGTH_H

#include "../../../flatten/arrays/oj_flat.h"

/** Shells less holes of all polygon parts, square CRS units; 0 without
 *  polygons. Source: the shoelace formula, from the first vertex of each ring.
 */
double oj_flat_area(const struct oj_flat *flat, int64_t feature);

/** Of all line parts, CRS units; rings of polygons do not count. */
double oj_flat_length(const struct oj_flat *flat, int64_t feature);

#endif
