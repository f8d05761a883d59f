/** Random ellipsoids, and random joins on them. */
#ifndef ELLIPSOID_RELATIONS_H
#define ELLIPSOID_RELATIONS_H

#include "../random_numbers.h"

#include "../../../algs/foundations/relation/oj_relation.h"

#include <math.h>

static const struct oj_ellipsoid wgs84 = {6378137.0, 1 / 298.257223563};

/* Returns the Earth, a sphere, a prolate ellipsoid, or the ellipsoid with the
 * greatest flattening. */
static inline struct oj_ellipsoid pick_ellipsoid(void)
{
    static const double flattening[] = {1 / 298.257223563, 0.0, -0.01,
                                        OJ_ELLIPSOID_MOST_FLATTENING};
    struct oj_ellipsoid e = wgs84;
    if (one_in(3))
        e = (struct oj_ellipsoid){1000.0 + 1e7 * unit(), flattening[pick(4)]};
    return e;
}

static inline struct oj_relation relation_on(struct oj_ellipsoid ellipsoid)
{
    struct oj_relation r = oj_relation_default();
    r.metric = OJ_METRIC_ELLIPSOID;
    r.ellipsoid = ellipsoid;
    return r;
}

/* Returns a random join by distance. matrix has the distances of all n pairs of
 * features, in metres. */
static inline struct oj_relation pick_relation(struct oj_ellipsoid e,
                                               const double *matrix, int64_t n)
{
    struct oj_relation r = relation_on(e);
    double most = matrix[pick((int)n)]; /* often the exact distance of a pair */
    most = most < INFINITY ? most : 1e5;
    r.op = pick(2) ? OJ_OP_NEAREST : OJ_OP_DWITHIN;
    r.max_distance = r.op == OJ_OP_NEAREST && pick(2) ? (double)INFINITY : most;
    if (one_in(4))
        r.max_distance *= 2 * unit();
    if (one_in(4))
        r.min_distance = fmin(r.max_distance, matrix[pick((int)n)]);
    r.min_distance = r.min_distance < INFINITY ? r.min_distance : 0;
    if (r.op == OJ_OP_NEAREST)
    {
        r.k = one_in(6) ? 40 : 1 + pick(4);
        r.ties = one_in(3) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    }
    r.exclude_self = one_in(4);
    r.unordered_pairs = one_in(5);
    return r;
}

#endif
