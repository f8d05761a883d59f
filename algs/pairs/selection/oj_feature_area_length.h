/** Planar area and length of the features of a flat layer, summed in the order
 * of vertices, so that the result is reproducible bit for bit. */
#ifndef OJ_FEATURE_AREA_LENGTH_H
#define OJ_FEATURE_AREA_LENGTH_H

#include "../../../flatten/arrays/oj_flat.h"

/** Returns the area of all polygon parts, shells less holes, in square CRS
 * units; 0 without polygons. Source: the shoelace formula, relative to the
 * first vertex of each ring. */
double oj_flat_area(const struct oj_flat *flat, int64_t feature);

/** Returns the length of all line parts, in CRS units; rings of polygons are
 * not counted. */
double oj_flat_length(const struct oj_flat *flat, int64_t feature);

/** Returns 1 if a part has two different vertices. The layer must be in the
 * long form. */
int oj_flat_part_has_length(const struct oj_flat *flat, int64_t part);

/** Returns the dimension of the point set of a feature: 2 if it has an area,
 * else 1 if a line or ring has a length, else 0. */
int oj_flat_dimension(const struct oj_flat *flat, int64_t feature);

#endif
