/** The planar distance between two features.
 *
 *  0 when a vertex of one lies in a polygon part of the other (part by part, as
 *  GEOS's distance has it) or when two segments meet, which is decided exactly;
 *  else the least distance of all pairs of segments in GEOS's order of
 *  operations.  Two trees are walked together and whatever is farther apart
 *  than the least distance so far is left out.
 *  Source: simultaneous traversal of two R-trees (Hjaltason and Samet 1998).
 */
#ifndef CPU_PAIR_DISTANCE_H
#define CPU_PAIR_DISTANCE_H

#include "cpu_features.h"

/** Working memory of one thread; zeroed memory is valid. */
struct oj_pair_scratch
{
    const int *cancel; /**< nonzero: distances are given up; may be NULL */
    int64_t n_refined; /**< pairs of segments that were measured */
    /* the segments of the last first feature, while it is asked again */
    int64_t listed; /**< its ordinal + 1 */
    struct oj_segment_list first, second;
};

/** Forgets the segments of the last first feature: for a new layer. */
static inline void oj_pair_scratch_start(struct oj_pair_scratch *scratch)
{
    scratch->listed = 0;
}

/** The distance between two features with parts, where it is at most limit;
 *  anything greater than limit, INFINITY too, where it is not.
 *  to_interior: polygons are areas; 0: their rings. */
double oj_pair_distance(const struct oj_features *a, int64_t feature_a,
                        const struct oj_features *b, int64_t feature_b,
                        int to_interior, double limit,
                        struct oj_pair_scratch *scratch);

#endif
