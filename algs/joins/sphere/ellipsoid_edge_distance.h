/** The distance of a point from an edge on an ellipsoid: the length of the
 *  shortest line to the nearest point of the edge, itself a shortest line.
 *
 *  Let D(t) be the distance to the point of the edge at the length t from its
 *  start.  Its derivative is the cosine of the angle between the edge and the
 *  shortest line to that point; PROJ gives the directions of both.  With the
 *  radii r and R of oj_ellipsoid.h the Gaussian curvature is between 1 / R^2
 *  and 1 / r^2.  By the comparison theorems for the second variation of length
 *  (do Carmo, Riemannian geometry, chapter 10), with the angle theta:
 *
 *   D'' <= cot(D / R) / R sin^2 theta   always, also where the shortest line is
 *                                       not unique: then of one of the lines,
 *                                       which bound D from above
 *   D'' >= cot(D / r) / r sin^2 theta   if D < pi r
 *
 *  Near: D <= pi r / 2 at both ends, hence everywhere, since discs of this
 *  radius are convex (cpu_sphere_side.h). D is convex. So is E = D^2 / 2:
 *
 *   E'' = D'^2 + D D'' >= cos^2 theta + x cot x sin^2 theta >= x cot x =: q
 *
 *  with x = D / r, as q <= 1.  Between t and the nearest point D is at most
 *  D(t), and x cot x decreases; so with the q of D(t) alone
 *
 *   D(nearest)^2 >= D(t)^2 (1 - cos^2 theta / q)
 *
 *  (a parabola's least value).  From t on, steps as on a sphere are taken to
 *  the foot of the perpendicular, within bounds that the signs of D' give; they
 *  end where this, or the length that remains, leaves less than
 *  OJ_EDGE_NEAR_ERROR.  A step multiplies the error by some .007 on the Earth,
 *  and by far less for short distances: one to three steps are made.
 *
 *  Far: all other edges. A piece of the length l with the distances D0 <= D1
 *  at its ends has D >= (D0 + D1 - l) / 2 =: m everywhere, so D'' <= k =
 *  max(0, cot(m / R) / R), and D is nowhere less than the parabola through
 *  both ends with this second derivative.  The parabola is least at an end if
 *  D1 - D0 >= k l^2 / 2, otherwise D0 - k u^2 / 2 with u = l / 2 - (D1 - D0) /
 *  (k l). Pieces whose bound is less than the best distance by
 *  OJ_EDGE_FAR_ERROR are halved. Beyond pi R / 2, k is 0: the nearest point is
 *  an end.
 *
 *  So the result exceeds the distance by less than a millimetre on the Earth:
 *  .0007 mm near, .7 mm beyond 9950 km, and the rounding of coordinates (some
 *  nanometres). It is a function of the point and the edge alone, whatever the
 *  direction of the edge; at a vertex it is the very distance of this vertex.
 *
 *  Source: ours.
 */
#ifndef ELLIPSOID_EDGE_DISTANCE_H
#define ELLIPSOID_EDGE_DISTANCE_H

#include "../../foundations/base/oj_geodesic.h"

/** Greatest errors of distances, in units of the semi-major axis. */
#define OJ_EDGE_NEAR_ERROR 1e-13
#define OJ_EDGE_FAR_ERROR 1e-10

/** A point in degrees and its vector. */
struct oj_ellipsoid_vertex
{
    double x, y;
    struct oj_vec3 at;
};

/** The nearest point of an edge. */
struct oj_edge_foot
{
    double metres;
    double x, y; /**< the point: a vertex as it is, any other point with a
                      longitude in -180 .. 180 */
    int is_vertex;
    int is_right; /**< 1 if p is on the right of the edge at this point; of no
                       meaning for a vertex or if metres is 0 */
};

/** Returns the point of the edge a -> b, no longer than
 *  OJ_ELLIPSOID_LONGEST_EDGE, that is nearest to p. Costs one geodesic for a
 *  vertex, else about four. */
struct oj_edge_foot oj_edge_foot_find(const struct oj_ellipsoid *ellipsoid,
                                      const struct oj_geodesic *geodesic,
                                      const struct oj_ellipsoid_vertex *p,
                                      const struct oj_ellipsoid_vertex *a,
                                      const struct oj_ellipsoid_vertex *b);

#endif
