/** Points of an ellipsoid of revolution as vectors, and bounds of geodesic
 *  distances, and of the distance of geodesic edges from their chords.
 *
 *  Unit of length: the semi-major axis a.  b: the semi-minor axis.
 *
 *   c       chord: length of the straight line between two points
 *   s       distance: length of the shortest line on the ellipsoid
 *   r, R    least and greatest radius of curvature of the ellipsoid: b^2 / a
 *           (which is a (1 - e^2)) and a^2 / b if it is oblate, exchanged if it
 *           is prolate
 *
 *   c <= s                     always
 *   s <= 2 r asin(c / 2 r)     if c < 2 r - pi (R - r)
 *   s <= pi R                  always; used for the other, nearly antipodal
 *                              pairs
 *
 *  Proof.  c <= s, since a straight line is the shortest of all.  The Gaussian
 *  curvature is nowhere less than 1 / R^2, so s <= pi R (Bonnet, Myers).  A
 *  geodesic has the curvature of the surface in its direction, which is nowhere
 *  more than 1 / r.  Of two arcs of one length the less curved has the longer
 *  chord, if the other is a convex arc in a plane (Schur), here an arc of a
 *  circle with radius r: c >= 2 r sin(s / 2 r) for s <= 2 pi r.  For s <= pi r
 *  the sine can be inverted, which gives the second bound.  Its condition on c
 *  excludes s > pi r: the first part of such a geodesic, of length pi r, has a
 *  chord of at least 2 r.  The rest, of length at most pi R - pi r, shortens
 *  the chord by at most its own length, so c >= 2 r - pi (R - r).
 *
 *  Edges of lines and polygons are shortest lines, here of a length of at most
 *  OJ_ELLIPSOID_LONGEST_EDGE (1/32; longer ones are cut).  S is the length of
 *  an edge, C its chord, and
 *
 *   h = S^2 / 8 r <= .126 C^2 / r
 *
 *  bounds the distance of its points from the chord, a straight line.  Proof.
 *  Let g(t) be the point of the edge at the length t, minus the point of the
 *  chord at t / S of its length.  g is 0 at both ends, and its second
 *  derivative is that of the edge, whose curvature is at most 1 / r; so for
 *  every unit vector u, u.g(t) <= t (S - t) / 2 r <= S^2 / 8 r.  And S <= 2 r
 *  asin(C / 2 r) <= C / sqrt(1 - C^2 / 4 r^2), since asin x <= tan asin x.
 *
 *  The section of the ellipsoid by the plane through the ends and the centre is
 *  an ellipse with axes between a and b, so its curvature is at most 1 / r, and
 *  all of this holds for its arc between the ends, too.  The arc and the edge
 *  enclose a lens.  A point of the lens is nowhere farther than 3 h from the
 *  chord: the plane through it that is perpendicular to the chord cuts the lens
 *  in an arc of an ellipse with ends on the lens's two sides; these are within
 *  h of the chord, hence within 2 h of one another; the arc, less than half of
 *  the ellipse, is at most pi / 2 times as long as its own chord, pi h, so none
 *  of its points is farther than h + pi h / 2 from the edge's chord.
 *
 *  Source: ours; Schur's and Myers' theorems: do Carmo, Differential geometry
 *  of curves and surfaces, sections 5.4 and 5.7.
 */
#ifndef OJ_ELLIPSOID_H
#define OJ_ELLIPSOID_H

#include "oj_sphere.h"

/** An ellipsoid of revolution. Zeroed: no ellipsoid. */
struct oj_ellipsoid
{
    double semi_major; /**< metres; 0: no ellipsoid */
    double flattening; /**< (a - b) / a; 0: a sphere */
};

/** Geodesics are exact to nanometres up to this flattening (PROJ's series). */
#define OJ_ELLIPSOID_MOST_FLATTENING 0.02

/** Margin of the bounds, in units of a (for the Earth 6 micrometres): greater
 *  than the rounding of vectors and chords and the errors of geodesics. */
#define OJ_ELLIPSOID_SLACK 1e-12

/** The bound s <= 2 r asin(c / 2 r) is used only for chords that are shorter
 * than its limit by at least this (in units of r). For longer chords asin()
 * would magnify rounding errors beyond OJ_ELLIPSOID_SLACK, so s <= pi R is
 * used. */
#define OJ_ELLIPSOID_OPPOSITE 1e-5

/** Greatest length of an edge in units of a (on the Earth 199 km); longer edges
 * are cut (ellipsoid_cut_edges.h). */
#define OJ_ELLIPSOID_LONGEST_EDGE 0.03125

/** Returns 1 if geodesics can be computed on this ellipsoid. */
OJ_FN int oj_ellipsoid_is_usable(const struct oj_ellipsoid *e)
{
    return e->semi_major > 0.0 && e->semi_major < 1e150 &&
           fabs(e->flattening) <= OJ_ELLIPSOID_MOST_FLATTENING;
}

/** Returns the point of the ellipsoid, in units of a, whose outward normal is
 * the unit vector `up`. For a longitude and latitude in degrees,
 * oj_sphere_vector() makes this normal. */
OJ_FN struct oj_vec3 oj_ellipsoid_point(const struct oj_ellipsoid *e,
                                        struct oj_vec3 up)
{
    double e2 = e->flattening * (2.0 - e->flattening);
    double n = 1.0 / sqrt(1.0 - e2 * up.z * up.z);
    struct oj_vec3 v;
    v.x = n * up.x;
    v.y = n * up.y;
    v.z = n * (1.0 - e2) * up.z;
    return v;
}

/** Returns a lower bound of the geodesic distance between two points, from
 * their squared chord. Unit: a. */
OJ_FN double oj_ellipsoid_least_distance(double chord2)
{
    double least = sqrt(chord2) - OJ_ELLIPSOID_SLACK;
    return least > 0.0 ? least : 0.0;
}

/** Returns the least radius of curvature: r above. */
OJ_FN double oj_ellipsoid_least_radius(const struct oj_ellipsoid *e)
{
    double b = 1.0 - e->flattening;
    return b < 1.0 ? b * b : 1.0 / b;
}

/** Returns the greatest radius of curvature: R above. */
OJ_FN double oj_ellipsoid_most_radius(const struct oj_ellipsoid *e)
{
    double b = 1.0 - e->flattening;
    return b < 1.0 ? 1.0 / b : b * b;
}

/** Returns an upper bound of the geodesic distance between two points, from
 * their squared chord. Unit: a. */
OJ_FN double oj_ellipsoid_most_distance(const struct oj_ellipsoid *e,
                                        double chord2)
{
    const double pi = 3.14159265358979323846;
    double chord = sqrt(chord2);
    double least_radius = oj_ellipsoid_least_radius(e);
    double most_radius = oj_ellipsoid_most_radius(e);
    double most = pi * most_radius;
    if (chord < (2.0 - OJ_ELLIPSOID_OPPOSITE) * least_radius -
                    pi * (most_radius - least_radius))
        most = 2.0 * least_radius * asin(chord / (2.0 * least_radius));
    return most * (1.0 + OJ_ELLIPSOID_SLACK) + OJ_ELLIPSOID_SLACK;
}

/** Returns a factor whose product with the squared chord of an edge is at least
 * h of the proof above. */
OJ_FN double oj_ellipsoid_bulge_factor(const struct oj_ellipsoid *e)
{
    return 0.126 / oj_ellipsoid_least_radius(e);
}

/** Returns an upper bound of h of the proof above, for an edge with this
 *  squared chord. */
OJ_FN double oj_ellipsoid_edge_bulge(const struct oj_ellipsoid *e,
                                     double chord2)
{
    return oj_ellipsoid_bulge_factor(e) * chord2 + OJ_ELLIPSOID_SLACK;
}

/** Returns an upper bound of the squared chord between two points whose
 * geodesic distance is at most `distance`, in units of a. Returns -1 for a
 * negative or NaN distance. */
OJ_FN double oj_ellipsoid_most_chord2(double distance)
{
    double chord = distance + OJ_ELLIPSOID_SLACK;
    return distance >= 0.0 ? chord * chord : -1.0;
}

#endif
