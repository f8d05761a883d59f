/** Position of a point along and beside the lines and rings of a feature, as
 *  linear reference systems and map matchers need it.
 *
 *            p
 *            |  offset > 0, left          along   from the start to the place
 *   a -------+--------- b                 segment a b, the nearest one to p
 *     along                               bearing its direction, from north
 *
 *  The lines and rings of a feature form one path, in the order of its parts
 *  and of the rings of each part. The measure and the number of the segment,
 *  which counts from 1, continue from one line or ring to the next. Parts that
 *  are points do not belong to the path. Of a polygon only the rings count,
 *  also for a point inside.
 *
 *  place     the point of the path nearest to p; an end of the line if p is
 *            beyond that end. Of equally near segments the first counts; a
 *            segment of length 0 counts only if no other one of its line or
 *            ring is there.
 *  offset    distance from p to the place, > 0 on the left, < 0 on the right
 *  side      1 left, -1 right, 0 on the line
 *
 *  Inside a segment, the side is the sign of the orientation, which is exact
 *  in the plane. At a vertex between two segments it is the side of both if
 *  they agree. Otherwise p lies outside the turn: on the right of a left turn,
 *  on the left of a right turn; where the line turns back on itself, the side
 *  of the first of the two segments counts. Closed lines and rings have such a
 *  vertex at their start, too. Beyond an end of an open line, the side is that
 *  of the last segment, extended; a point exactly on the extension counts as
 *  left. Source: ours; the rule at a vertex is that of the pseudo-normal
 *  (Baerentzen and Aanaes 2005) in exact signs.
 *
 *  With M values, the measure of a place is M at its vertex, or between two
 *  vertices M interpolated by the length from the first; NaN if one of these
 *  has no M. Of consecutive equal vertices, the one counts that belongs to the
 *  segment on which the place was found. The percentage is always that of the
 *  length.
 *
 *  On the sphere, measures and offsets are in metres along great circles; the
 *  bearing is that at the start of the segment. */
#ifndef OJ_ALONG_LINE_H
#define OJ_ALONG_LINE_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/kernels/oj_box.h"
#include "../../foundations/kernels/oj_heading.h"
#include "../../joins/sphere/cpu_sphere_side.h"

/** Position of a point along a feature. Lengths are in units of the
 *  coordinates, on the sphere in metres. NaN: no value. */
struct oj_along
{
    double along;
    double m;       /**< M value of the place; NaN also without OJ_ALONG_M */
    double percent; /**< `along` in percent of the length of the path; NaN if
                         the length is 0 */
    double offset;
    double side; /**< 1: left, -1: right, 0: on the line; NaN if all points of
                      the path are equal */
    double segment;
    double bearing; /**< NaN if the segment has no length */
};

/** Range of a feature that is a single line of few segments; it is scanned
 * without the boxes. */
struct oj_short_line
{
    int64_t first;      /**< first vertex of the line */
    int32_t n_segments; /**< 0: the feature is not such a line */
    float length2;      /**< square of its length */
};

/** Number of levels of boxes. A box of the last level holds 4096 segments. */
#define OJ_ALONG_LEVELS 3

/** The features of a layer, prepared for oj_along_measure_point(). Owner;
 * zeroed memory is a valid empty one. */
struct oj_along_side
{
    const struct oj_flat *flat; /**< must outlive this object */
    double *measure;            /**< [n_vertices] length of the feature's path
                                     up to the vertex */
    struct oj_short_line *line; /**< [n_features] */
    /** In the plane: [level][n_vertices / n + 1] with n = 16^(level + 1). Box i
     * contains the segments that start at vertices n i to n i + n - 1; where a
     * ring ends among them, the connection to the next ring only enlarges the
     * box. */
    struct oj_box *box[OJ_ALONG_LEVELS];
    int is_on_sphere;
    struct oj_sphere_side sphere;
};

/** Prepares the features of flat, for distances on the sphere or in the plane.
 * O(vertices), on n_threads. */
OJ_MUST_USE oj_status oj_along_side_build(struct oj_along_side *side,
                                          const struct oj_flat *flat,
                                          int is_on_sphere, int n_threads,
                                          struct oj_error *err);

void oj_along_side_free(struct oj_along_side *side);

/** Selects the values of struct oj_along to compute. */
enum oj_along_want
{
    OJ_ALONG_MEASURE = 1, /**< along and segment, which are always computed */
    OJ_ALONG_PERCENT = 2,
    OJ_ALONG_SIDE = 4, /**< side and offset */
    OJ_ALONG_BEARING = 8,
    OJ_ALONG_M = 16
};

/** Finds the place of (x, y) on a feature; all members are NaN if the feature
 * has no line or ring, or x is NaN.
 *  most     an upper bound of the distance from the path, or INFINITY. A small
 *           one saves time in the plane; one that all distances exceed is
 *           ignored
 *  heading  only segments whose direction is in this range are considered
 *           (plane only); NULL: all segments
 *  want     enum oj_along_want or'ed; members not wanted are NaN
 * Cost: O(vertices of the feature), but up to 4096 are skipped at a time where
 * they are far away; on the sphere O(log vertices). */
struct oj_along oj_along_measure_point(const struct oj_along_side *side,
                                       int64_t feature, double x, double y,
                                       double most,
                                       const struct oj_heading_range *heading,
                                       unsigned want);

/** Maximum number of pairs in a block. */
#define OJ_ALONG_BLOCK 64

/** Arrays for the members of struct oj_along, by pair; NULL: the member is not
 * stored. */
struct oj_along_arrays
{
    double *along, *m, *percent, *offset, *side, *segment, *bearing;
};

/** Stores the members of a place as values i of the arrays. */
void oj_along_store(const struct oj_along_arrays *out, int64_t i,
                    const struct oj_along *place);

/** oj_along_measure_point() for n <= OJ_ALONG_BLOCK pairs in the plane, without
 * a heading: values i of out belong to the place of (x[i], y[i]) on feature[i];
 * feature[i] < 0: the pair has none. most: [n], or NULL: INFINITY.
 *
 * Pair by pair, a processor waits longer for branches, which differ from pair
 * to pair, than it computes. So the segments of a short line are compared four
 * at a time, by squared distances that cost one division; if the second least
 * one is larger than the least by more than rounding errors, the first segment
 * is the nearest, and only its place is computed. Pairs whose place may be a
 * vertex, or with other lines, are left to oj_along_measure_point(). The places
 * of the points of citygen M along streets take 30 ns each, 44 by exact
 * distances of all segments. */
void oj_along_measure_block(const struct oj_along_side *side, int64_t n,
                            const int32_t *feature, const double *x,
                            const double *y, const double *most,
                            const struct oj_along_arrays *out);

/** Returns the planar distance from (x, y) to the nearest segment of a feature
 * whose direction fits the heading, and sets *to_x and *to_y to the nearest
 * point on it. Returns INFINITY if no segment fits. */
double oj_along_nearest_point(const struct oj_along_side *side, int64_t feature,
                              double x, double y,
                              const struct oj_heading_range *heading,
                              double *to_x, double *to_y);

#endif
