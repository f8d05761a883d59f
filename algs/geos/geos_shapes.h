/** Flat arrays as GEOS geometries.  Nothing is mended; of lines and rings that
 *  have less vertices than GEOS takes the last one is repeated.  What GEOS
 *  refuses all the same (a ring that is not closed) is NULL, with its text at
 *  the handle's message handler.  The caller owns what comes back.
 */
#ifndef GEOS_SHAPES_H
#define GEOS_SHAPES_H

#include "../../flatten/arrays/oj_flat.h"

#include <geos_c.h>

/** A whole feature that has parts: its only part, a multi geometry where the
 *  parts are of one kind, or a GeometryCollection.
 *  rings_as_lines  1: polygons are taken for their rings, as lines */
GEOSGeometry *oj_geos_feature(GEOSContextHandle_t geos,
                              const struct oj_flat *flat, int64_t feature,
                              int rings_as_lines);

/** The parts of a feature, in the long form, of these kinds, enum oj_part_kind
 *  or'ed, of which there is one at least: always a multi geometry, where they
 *  are of one kind, or a GeometryCollection. */
GEOSGeometry *oj_geos_kinds(GEOSContextHandle_t geos,
                            const struct oj_flat *flat, int64_t feature,
                            unsigned kinds);

/** n polygon parts of a feature, by their places in it, as a MultiPolygon. */
GEOSGeometry *oj_geos_polygons(GEOSContextHandle_t geos,
                               const struct oj_flat *flat, int64_t feature,
                               const int64_t *part, int64_t n);

/** The rings first <= ring < end, of polygons in the long form, each as a
 *  polygon of its own: of these GEOS's prepared geometry tells even-odd over
 *  all rings, also where a hole lies outside of its shell's envelope. */
GEOSGeometry *oj_geos_rings(GEOSContextHandle_t geos,
                            const struct oj_flat *flat, int64_t first,
                            int64_t end);

#endif
