/** Validity without an overlay: rings that meet neither themselves nor one
 *  another, each where it belongs, make a valid feature.  Most features are
 *  seen to be valid so; the others, where rings touch, GEOS is asked for.
 */
#ifndef CPU_SIMPLE_H
#define CPU_SIMPLE_H

#include "cpu_shapes.h"

/** 1: shape is a valid geometry. 0: it may be or not. Takes the time of a few
 *  passes over its edges; uses its cells if it has some. */
int oj_shape_is_surely_valid(const struct oj_shape *shape);

#endif
