/** The join side as GEOS geometries, and the distance of an input point to a
 *  join feature as GEOS gives it.
 *
 *  One geometry per component, never a multi geometry, and plain GEOSDistance:
 *  on several components GEOS passes over some by a rounded envelope distance
 *  and is then off in the last bit; its prepared and indexed distances answer
 *  otherwise in corner cases.  The distance of a feature is the least over its
 *  components.  Measured to the boundary, the components of a polygon are its
 *  rings as line strings.
 *
 *  Knows GEOS; this header does not.  One thread at a time.
 */
#ifndef GEOS_PARTS_H
#define GEOS_PARTS_H

#include "../../flatten/arrays/oj_flat.h"
#include "../relation/oj_relation.h"
#include "geos_verdict.h"

struct oj_geos_parts;

/** Makes the geometries; flat need not outlive them. A component that GEOS
 *  refuses (a ring that is not closed) makes its feature undecided. */
OJ_MUST_USE oj_status oj_geos_parts_make(const struct oj_flat *flat,
                                         enum oj_distance_to distance_to,
                                         struct oj_geos_parts **out,
                                         struct oj_error *err);

/** Takes x, y as the point that distances are measured from. */
OJ_MUST_USE oj_status oj_geos_parts_set_point(struct oj_geos_parts *parts,
                                              double x, double y,
                                              struct oj_error *err);

/** Distance from that point to feature, CRS units; OJ_GEOS_YES when *distance
 *  is set. */
OJ_MUST_USE enum oj_geos_verdict
oj_geos_parts_distance(struct oj_geos_parts *parts, int64_t feature,
                       double *distance);

/** Accepts NULL. */
void oj_geos_parts_free(struct oj_geos_parts *parts);

#endif
