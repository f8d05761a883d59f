/** Where two features are nearest to each other. */
#ifndef OJ_NEAREST_POINTS_H
#define OJ_NEAREST_POINTS_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/base/oj_feature_box.h"
#include "../../foundations/relation/oj_relation.h"

/** A point of each feature. */
struct oj_nearest_points
{
    double distance; /**< INFINITY: one of them has no parts */
    double ax, ay;   /**< of the first feature */
    double bx, by;   /**< of the second */
};

/** The segments of a part. Owner; zeroed memory is a valid empty one. */
struct oj_part_segments
{
    struct oj_plain_segment *segment;
    struct oj_box *box; /**< of runs of segments */
    int64_t cap_segments, cap_boxes;
};

/** Memory that is used again; zeroed memory is valid. One per thread. */
struct oj_nearest_work
{
    struct oj_part_segments a, b;
};

void oj_nearest_work_free(struct oj_nearest_work *work);

/** The least distance between two features, as the distance joins measure it,
 *  and the points at which it is met.  Of several such places the first counts,
 *  in the order of the parts of a, the parts of b, and then their segments.
 *  Where a vertex of one lies in a polygon of the other, it is both points
 *  (to the interior); where segments meet, both are the point they share, as
 *  far as it can be computed.
 *  Cost: O(segments of a + of b) and the pairs of runs that are near. */
OJ_MUST_USE oj_status oj_nearest_points_find(
    const struct oj_flat *flat_a, int64_t a, const struct oj_flat *flat_b,
    int64_t b, enum oj_distance_to distance_to, struct oj_nearest_work *work,
    struct oj_nearest_points *out, struct oj_error *err);

/** Direction from point a to point b, degrees clockwise from north (+y),
 *  [0, 360); NaN when they are one point. */
double oj_bearing(double ax, double ay, double bx, double by);

#endif
