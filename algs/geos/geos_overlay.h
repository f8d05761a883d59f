/** What two features have in common, by GEOS, as arrays again.
 *
 *  One object per thread; objects share nothing.  Knows GEOS; this header does
 *  not. */
#ifndef GEOS_OVERLAY_H
#define GEOS_OVERLAY_H

#include "../../flatten/arrays/oj_flat.h"
#include "geos_verdict.h"

struct oj_geos_overlay;

/** join_side outlives *out. */
OJ_MUST_USE oj_status oj_geos_overlay_open(const struct oj_flat *join_side,
                                           struct oj_geos_overlay **out,
                                           struct oj_error *err);

/** The batch that rows are of from now on; outlives its use. */
void oj_geos_overlay_set_input(struct oj_geos_overlay *overlay,
                               const struct oj_flat *input);

/** Adds the intersection of row and feature to shapes as one more feature;
 *  without parts when they have nothing in common.  OJ_GEOS_YES when it is
 *  added; OJ_GEOS_CANNOT_SAY when GEOS raised (an invalid polygon, a
 *  collection): then nothing is added. */
enum oj_geos_verdict oj_geos_overlay_add(struct oj_geos_overlay *overlay,
                                         int64_t row, int64_t feature,
                                         struct oj_flat_buf *shapes);

/** The area of a row of the input, or (of_input 0) of a join feature, as the
 *  union of its parts, square CRS units: oj_flat_area(), of GEOS's union where
 *  polygon parts are not apart.  Where GEOS can make none, of the parts added
 *  up. */
OJ_MUST_USE oj_status oj_geos_overlay_area(struct oj_geos_overlay *overlay,
                                           int of_input, int64_t feature,
                                           double *area, struct oj_error *err);

/** GEOS's text for the last CANNOT_SAY. */
const char *oj_geos_overlay_message(const struct oj_geos_overlay *overlay);

/** Accepts NULL. */
void oj_geos_overlay_close(struct oj_geos_overlay *overlay);

#endif
