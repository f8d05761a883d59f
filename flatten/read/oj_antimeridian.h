/** Cuts geometries that cross the meridian where a projection ends.
 *
 *  PROJ reduces longitudes modulo 360 degrees from the central meridian. So a
 *  polygon from 157 to 193 degrees would be drawn the other way around the map.
 *  It is therefore cut at the meridian where the map ends, and its parts lie at
 *  both ends of the map:
 *
 *     157 ---- 180 ---- 193   ->   157 ---- 180  and  -180 ---- -167
 */
#ifndef OJ_ANTIMERIDIAN_H
#define OJ_ANTIMERIDIAN_H

#include <ogr_api.h>
#include <ogr_srs_api.h>

/** The line at which a transformation tears geometries apart. Zeroed memory: it
 *  tears none. */
struct oj_antimeridian
{
    /** 1: the transformation tears geometries that cross the line x = at, or
     *  the line shifted by multiples of `turn` */
    int is_torn;
    double at;   /**< the x of the line, in coordinates of the source */
    double turn; /**< 360 degrees in these coordinates */

    /** 1: the transformation goes into degrees, and the meridian of 180 degrees
     *  is not a straight line in the source. Torn geometries can then only be
     *  detected after the transformation. */
    int is_curved;
};

/** Returns where a transformation tears geometries apart: from degrees into a
 *  plane, where the plane ends, opposite to the central meridian; from a plane
 *  into degrees, where the meridian of 180 degrees lies. transformation may be
 *  NULL. */
struct oj_antimeridian
oj_antimeridian_find(OGRCoordinateTransformationH transformation);

/** Returns 1 if the line, shifted by any number of turns, lies between the two
 *  x coordinates. */
int oj_antimeridian_lies_between(const struct oj_antimeridian *antimeridian,
                                 double least, double greatest);

/** Returns a copy of a line, polygon or collection that is cut at the lines of
 *  `antimeridian`, with all pieces shifted into one turn; curves become lines.
 *  The caller destroys it. NULL: the geometry cannot be cut. */
OGRGeometryH oj_antimeridian_cut(const struct oj_antimeridian *antimeridian,
                                 OGRGeometryH geometry);

#endif
