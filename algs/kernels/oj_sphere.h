/** Distances on a sphere, by chords between unit vectors.
 *
 *  The chord c between two points of the unit sphere grows with the angle
 *  between them, c = 2 sin(angle / 2), so squared chords order and decide
 *  distances by + - * / sqrt alone.  Differences of vectors are taken first,
 *  which keeps short distances exact to some 1e-15 of the radius; near the
 *  opposite point of the sphere, where chords hardly change, a distance is good
 *  to some 1e-8 of it.
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

OJ_FN struct oj_vec3 oj_vec3_sub(struct oj_vec3 a, struct oj_vec3 b)
{
    struct oj_vec3 v;
    v.x = a.x - b.x;
    v.y = a.y - b.y;
    v.z = a.z - b.z;
    return v;
}

OJ_FN double oj_vec3_dot(struct oj_vec3 a, struct oj_vec3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

OJ_FN struct oj_vec3 oj_vec3_cross(struct oj_vec3 a, struct oj_vec3 b)
{
    struct oj_vec3 v;
    v.x = a.y * b.z - a.z * b.y;
    v.y = a.z * b.x - a.x * b.z;
    v.z = a.x * b.y - a.y * b.x;
    return v;
}

/** Squared chord between two points. */
OJ_FN double oj_chord2(struct oj_vec3 p, struct oj_vec3 q)
{
    struct oj_vec3 d = oj_vec3_sub(p, q);
    return oj_vec3_dot(d, d);
}

/** Squared chord from p to the nearest point of the shorter great-circle arc
 *  a -> b.  Of opposite points there is no shorter one: then only a and b. */
OJ_FN double oj_arc_chord2(struct oj_vec3 p, struct oj_vec3 a, struct oj_vec3 b)
{
    struct oj_vec3 from_a = oj_vec3_sub(p, a), from_b = oj_vec3_sub(p, b);
    struct oj_vec3 n = oj_vec3_cross(a, oj_vec3_sub(b, a));
    double n2 = oj_vec3_dot(n, n);
    double to_a = oj_vec3_dot(from_a, from_a);
    double to_b = oj_vec3_dot(from_b, from_b);
    double least = to_a < to_b ? to_a : to_b;
    double across, sine2, chord2;
    /* the foot is on the arc when p is ahead of a and not yet past b; what
     * comes near 1e-16 is no direction */
    if (!(n2 > 1e-31) || !(oj_vec3_dot(oj_vec3_cross(n, a), from_a) > 0.0) ||
        !(oj_vec3_dot(oj_vec3_cross(n, b), from_b) < 0.0))
        return least;
    across = oj_vec3_dot(n, from_a);
    sine2 = across * across / n2;
    sine2 = sine2 < 1.0 ? sine2 : 1.0;
    chord2 = 2.0 * sine2 / (1.0 + sqrt(1.0 - sine2));
    return chord2 < least ? chord2 : least;
}

/** 1 when the arc a -> b crosses the arc p -> r; m is p x r.  A vertex on the
 *  great circle of p and r counts as on its positive side, which makes the
 *  crossings of a closed ring come out right wherever its vertices are. */
OJ_FN int oj_arcs_cross(struct oj_vec3 p, struct oj_vec3 r, struct oj_vec3 m,
                        struct oj_vec3 a, struct oj_vec3 b)
{
    double side_a = oj_vec3_dot(m, a), side_b = oj_vec3_dot(m, b);
    double of_a = fabs(side_b), of_b = fabs(side_a);
    struct oj_vec3 c;
    if ((side_a >= 0.0) == (side_b >= 0.0))
        return 0;
    /* where they meet */
    c.x = of_a * a.x + of_b * b.x;
    c.y = of_a * a.y + of_b * b.y;
    c.z = of_a * a.z + of_b * b.z;
    return oj_vec3_dot(oj_vec3_cross(p, c), m) > 0.0 &&
           oj_vec3_dot(oj_vec3_cross(c, r), m) > 0.0;
}

#endif
