/** The nearest points of two features. */
#ifndef OJ_NEAREST_POINTS_H
#define OJ_NEAREST_POINTS_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/base/oj_feature_box.h"
#include "../../foundations/relation/oj_relation.h"

/** The nearest points of two features and their distance. */
struct oj_nearest_points
{
    double distance; /**< INFINITY if a feature has no parts */
    double ax, ay;   /**< point of the first feature */
    double bx, by;   /**< point of the second feature */
};

/** The segments of a part, with bounding boxes. Owner; zeroed memory is a valid
 * empty one. */
struct oj_part_segments
{
    struct oj_plain_segment *segment;
    struct oj_box *box; /**< bounding boxes of runs of segments */
    int64_t cap_segments, cap_boxes;
};

/** Buffers that are reused from pair to pair; zeroed memory is valid. One
 * object per thread. */
struct oj_nearest_work
{
    struct oj_part_segments a, b;
};

void oj_nearest_work_free(struct oj_nearest_work *work);

/** Finds the minimum distance between two features, as the distance joins
 * compute it, and two points at that distance. Of several such pairs of points
 * the first one counts, in the order of parts of a, parts of b, then segments.
 * If a vertex of one feature lies in a polygon of the other, the vertex is both
 * points (with OJ_TO_INTERIOR). If segments intersect, both points are their
 * intersection, rounded. Cost: O(segments of a + segments of b), plus all pairs
 * of segments whose runs of 16 have boxes nearer than the best distance.
 */
OJ_MUST_USE oj_status oj_nearest_points_find(
    const struct oj_flat *flat_a, int64_t a, const struct oj_flat *flat_b,
    int64_t b, enum oj_distance_to distance_to, struct oj_nearest_work *work,
    struct oj_nearest_points *out, struct oj_error *err);

/** Sets *to_x and *to_y to the point of the segment from a to b that is nearest
 * to (x, y). */
void oj_nearest_point_of_segment(double x, double y, double ax, double ay,
                                 double bx, double by, double *to_x,
                                 double *to_y);

/** Returns the direction from point a to point b, in degrees clockwise from
 * north (+y), in [0, 360); NaN if the points are equal. */
double oj_planar_bearing(double ax, double ay, double bx, double by);

#endif
