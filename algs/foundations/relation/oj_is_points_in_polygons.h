/** Joins of points with polygons that are decided by the location of each
 * point: inside, on a ring, or outside. */
#ifndef OJ_IS_POINTS_IN_POLYGONS_H
#define OJ_IS_POINTS_IN_POLYGONS_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../kernels/oj_ring.h"
#include "oj_relation.h"

/** Returns the set of locations (bits 1 << enum oj_location) at which a point
 * and a polygon are a pair of this join, or 0 if the location does not decide
 * the join. */
static inline unsigned oj_point_locations_of_op(enum oj_op op)
{
    switch (op)
    {
        case OJ_OP_INTERSECTS:
        case OJ_OP_COVEREDBY:
            return 1u << OJ_INSIDE | 1u << OJ_ON_BOUNDARY;
        case OJ_OP_WITHIN:
            return 1u << OJ_INSIDE;
        case OJ_OP_TOUCHES:
            return 1u << OJ_ON_BOUNDARY;
        default:
            return 0;
    }
}

/** Returns 1 if the join is of points with polygons and locations decide it. If
 * input is NULL, the kinds of its features are not known yet, and points are
 * assumed. */
static inline int oj_is_points_in_polygons(const struct oj_relation *relation,
                                           const struct oj_flat *join_side,
                                           const struct oj_flat *input)
{
    return oj_point_locations_of_op(relation->op) != 0 &&
           !oj_flat_is_points(join_side) &&
           (join_side->part_kinds & ~(unsigned)OJ_PART_POLYGON) == 0 &&
           (input == NULL || oj_flat_is_points(input));
}

#endif
