/** Telling GEOS's rounding from a difference.
 *
 *  GEOS decides on which side of an edge a point lies in double-double
 *  arithmetic, whose products are not exact for every pair of doubles.  Our
 *  sign is exact.  Where GEOS gets the sign of an edge wrong, it may put a
 *  point that is exactly on a polygon's border inside a hole or outside the
 *  shell, its distance is then a tiny number instead of 0, and lines cross or
 *  do not; or the other way round.
 *
 *  Its plain predicates also round the nodes where edges meet, and then take a
 *  line that ends a hair beside an edge for one that ends on it.  Its prepared
 *  geometries do not: where the two say different things, GEOS's word is worth
 *  nothing either.  Knows GEOS; this header does not.
 */
#ifndef GEOS_ROUNDING_H
#define GEOS_ROUNDING_H

#include "../flatten/oj_flat.h"
#include "oj_relation.h"

/** 1 when GEOS gives a wrong sign for a vertex of one feature against an edge
 *  of the other (of points against polygons: an edge that a ray from the point
 *  crosses): GEOS's word on the pair is then worth nothing.  Both have parts.
 *  0 also when GEOS cannot be started, and for pairs of more than 2^26 vertices
 *  times edges. O(vertices times edges). */
int oj_geos_misjudges(const struct oj_flat *input, int64_t row,
                      const struct oj_flat *join_side, int64_t feature);

/** 1 when GEOS's plain predicate may have rounded a node into another place:
 *  when a vertex of one feature lies beside an edge of the other by no more
 *  than 4 ulps of the largest coordinate, and not on it; or when the plain and
 *  the prepared predicates contradict each other on valid features.  0 for
 *  distances and bbox. O(vertices times edges), and as above. */
int oj_geos_rounds_nodes(const struct oj_relation *relation,
                         const struct oj_flat *input, int64_t row,
                         const struct oj_flat *join_side, int64_t feature);

#endif
