/** Distances on a sphere, by chords between unit vectors. The chord between two
 *  points grows with the angle between them: 2 sin(angle / 2). So squared
 *  chords order and decide distances without trigonometric functions.
 *
 *  Accuracy: differences of vectors are taken first, so the error of short
 *  distances is about 1e-15 of the radius. Near antipodal points, where chords
 *  hardly change, the relative error is about 1e-8.
 *
 *  Source: ours.
 */
#ifndef OJ_SPHERE_H
#define OJ_SPHERE_H

#include "oj_kernel.h"

/** Mean radius of the Earth (IUGG), metres. */
#define OJ_SPHERE_RADIUS 6371008.7714

struct oj_vec3
{
    double x, y, z;
};

OJ_FN struct oj_vec3 oj_sphere_vec3_sub(struct oj_vec3 a, struct oj_vec3 b)
{
    struct oj_vec3 v;
    v.x = a.x - b.x;
    v.y = a.y - b.y;
    v.z = a.z - b.z;
    return v;
}

OJ_FN double oj_sphere_vec3_dot(struct oj_vec3 a, struct oj_vec3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

OJ_FN struct oj_vec3 oj_sphere_vec3_cross(struct oj_vec3 a, struct oj_vec3 b)
{
    struct oj_vec3 v;
    v.x = a.y * b.z - a.z * b.y;
    v.y = a.z * b.x - a.x * b.z;
    v.z = a.x * b.y - a.y * b.x;
    return v;
}

/** Returns the squared chord between two points of the unit sphere. */
OJ_FN double oj_sphere_chord2(struct oj_vec3 p, struct oj_vec3 q)
{
    struct oj_vec3 d = oj_sphere_vec3_sub(p, q);
    return oj_sphere_vec3_dot(d, d);
}

/** Returns 1 if the point of the great circle through a and b that is nearest
 * to p lies inside of the shorter arc a -> b. Sets *n to a normal of the
 * circle, not of unit length, and *n2 to its squared length. Returns 0 if a and
 * b are equal or antipodal up to rounding (*n is shorter than 3e-16). */
OJ_FN int oj_sphere_arc_has_foot(struct oj_vec3 p, struct oj_vec3 a,
                                 struct oj_vec3 b, struct oj_vec3 *n,
                                 double *n2)
{
    *n = oj_sphere_vec3_cross(a, oj_sphere_vec3_sub(b, a));
    *n2 = oj_sphere_vec3_dot(*n, *n);
    return *n2 > 1e-31 &&
           oj_sphere_vec3_dot(oj_sphere_vec3_cross(*n, a),
                              oj_sphere_vec3_sub(p, a)) > 0.0 &&
           oj_sphere_vec3_dot(oj_sphere_vec3_cross(*n, b),
                              oj_sphere_vec3_sub(p, b)) < 0.0;
}

/** Returns the squared chord from p to the nearest point of the shorter
 * great-circle arc a -> b. If a and b are equal or antipodal, there is no such
 * arc: returns the squared chord to the nearer of a and b. */
OJ_FN double oj_sphere_arc_chord2(struct oj_vec3 p, struct oj_vec3 a,
                                  struct oj_vec3 b)
{
    double to_a = oj_sphere_chord2(p, a), to_b = oj_sphere_chord2(p, b);
    double least = to_a < to_b ? to_a : to_b;
    double across, sine2, chord2, n2;
    struct oj_vec3 n;
    if (!oj_sphere_arc_has_foot(p, a, b, &n, &n2))
        return least;
    across = oj_sphere_vec3_dot(n, oj_sphere_vec3_sub(p, a));
    sine2 = across * across / n2;
    sine2 = sine2 < 1.0 ? sine2 : 1.0;
    chord2 = 2.0 * sine2 / (1.0 + sqrt(1.0 - sine2));
    return chord2 < least ? chord2 : least;
}

/** Finds the point of the shorter arc a -> b that is nearest to p. Returns 1 if
 * this point is a, 2 if it is b. Otherwise returns 0 and sets *foot to the
 * point, a unit vector. */
OJ_FN int oj_sphere_arc_nearest(struct oj_vec3 p, struct oj_vec3 a,
                                struct oj_vec3 b, struct oj_vec3 *foot)
{
    double to_a = oj_sphere_chord2(p, a), to_b = oj_sphere_chord2(p, b);
    int end = to_a <= to_b ? 1 : 2;
    double by, length, n2;
    struct oj_vec3 n;
    if (!(oj_sphere_arc_chord2(p, a, b) < (end == 1 ? to_a : to_b)) ||
        !oj_sphere_arc_has_foot(p, a, b, &n, &n2))
        return end;
    by = oj_sphere_vec3_dot(n, oj_sphere_vec3_sub(p, a)) / n2;
    foot->x = p.x - by * n.x;
    foot->y = p.y - by * n.y;
    foot->z = p.z - by * n.z;
    length = sqrt(oj_sphere_vec3_dot(*foot, *foot));
    if (!(length > 1e-15)) /* p is a pole of the great circle: all points of the
                              circle are equally near */
        return end;
    foot->x /= length;
    foot->y /= length;
    foot->z /= length;
    return 0;
}

/** Returns 1 if the arc a -> b crosses the arc p -> r. m is the cross product p
 * x r. A vertex on the great circle through p and r counts as on its positive
 * side, so that the crossings of a closed ring are counted correctly. */
OJ_FN int oj_sphere_arcs_cross(struct oj_vec3 p, struct oj_vec3 r,
                               struct oj_vec3 m, struct oj_vec3 a,
                               struct oj_vec3 b)
{
    double side_a = oj_sphere_vec3_dot(m, a), side_b = oj_sphere_vec3_dot(m, b);
    double of_a = fabs(side_b), of_b = fabs(side_a);
    struct oj_vec3 c;
    if ((side_a >= 0.0) == (side_b >= 0.0))
        return 0;
    /* the intersection of the two great circles */
    c.x = of_a * a.x + of_b * b.x;
    c.y = of_a * a.y + of_b * b.y;
    c.z = of_a * a.z + of_b * b.z;
    return oj_sphere_vec3_dot(oj_sphere_vec3_cross(p, c), m) > 0.0 &&
           oj_sphere_vec3_dot(oj_sphere_vec3_cross(c, r), m) > 0.0;
}

#endif
