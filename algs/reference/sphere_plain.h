/** Distances on the sphere the plain way, for the reference: vectors in long
 *  double, every edge looked at, a point's being inside told by the angle
 *  through which the ring turns around it.
 *
 *  It shares no arithmetic with the fast way (kernels/oj_sphere.h), but what a
 *  feature on the sphere is, it takes from there: longitudes modulo 360, edges
 *  the shorter great-circle arcs, latitudes beyond 90 nowhere, the inside of a
 *  ring the side away from the point opposite to the mean of its vertices.
 *  Source: ours.
 */
#ifndef SPHERE_PLAIN_H
#define SPHERE_PLAIN_H

#include "../../flatten/arrays/oj_flat.h"

#define OJ_PLAIN_RADIUS 6371008.7714L

struct oj_wide3
{
    long double x, y, z;
};

/** What holds a feature, in space: no point of it is farther from centre. */
struct oj_ball
{
    struct oj_wide3 centre;
    long double radius; /**< < 0: the feature joins nothing */
};

/** A side of a join. Owner; zeroed memory is a valid empty one. */
struct oj_plain_side
{
    const struct oj_flat *flat; /**< outlives this */
    struct oj_wide3 *at;        /**< [n_vertices] on the unit sphere */
    struct oj_ball *ball;       /**< [n_features] */
};

OJ_MUST_USE oj_status oj_plain_side_make(struct oj_plain_side *side,
                                         const struct oj_flat *flat,
                                         struct oj_error *err);

void oj_plain_side_free(struct oj_plain_side *side);

/** Straight through space. */
long double oj_plain_chord(struct oj_wide3 p, struct oj_wide3 q);

/** Metres from p to the nearest point of feature; 0 in a polygon part when
 *  to_interior. */
double oj_plain_metres(const struct oj_plain_side *side, int64_t feature,
                       int to_interior, struct oj_wide3 p);

#endif
