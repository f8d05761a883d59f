/** Geometries that cross the meridian where a projection ends.
 *
 *  PROJ takes longitudes modulo 360 degrees from the central meridian of a
 *  projection, so that a polygon from 157 to 193 degrees becomes one that goes
 *  around the map the other way.  Cut at that meridian first, its two parts
 *  become parts at either end of the map.
 *
 *    157 ---- 180 ---- 193   ->   157 ---- 180  and  -180 ---- -167
 */
#ifndef OJ_ANTIMERIDIAN_H
#define OJ_ANTIMERIDIAN_H

#include <ogr_api.h>
#include <ogr_srs_api.h>

/** Zeroed memory: nothing has to be cut. */
struct oj_antimeridian
{
    int is_torn; /**< 1: the transformation tears what crosses the line x = at
                  */
    double at;   /**< in the coordinates of the source */
    double turn; /**< 360 degrees in these */

    /** 1: degrees come out of a projection in which the meridian of 180 degrees
     *  is no straight line: what is torn can be seen afterwards only. */
    int is_curved;
};

/** Asks the transformation: of degrees into a plane whether the plane ends
 *  opposite to the central meridian, and of a plane into degrees where 180
 *  degrees are in it. May be NULL. */
struct oj_antimeridian
oj_antimeridian_find(OGRCoordinateTransformationH transformation);

/** 1 when the meridian, or one that is whole turns from it, lies between the
 * two longitudes. */
int oj_antimeridian_lies_between(const struct oj_antimeridian *antimeridian,
                                 double least, double greatest);

/** A copy of a line, a polygon or a collection, cut at the line, its parts
 *  within one turn; curves become lines. NULL: it cannot be cut.
 */
OGRGeometryH oj_antimeridian_cut(const struct oj_antimeridian *antimeridian,
                                 OGRGeometryH geometry);

#endif
