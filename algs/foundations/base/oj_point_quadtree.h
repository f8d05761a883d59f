/** The points of a batch of the input side, and their grouping in quadrants.
 *
 *  Input features are points or multipoints.  Here every point is an entry of
 *  its own with the number of its row: a method handles one point at a time,
 *  and oj_answers_to_matches() merges the answers by row.  Features without
 *  geometry have no point.
 *
 *  A quadrant is a run of points in Morton order: all that lie in one
 *  Morton-aligned square, split until it holds at most K points - the leaves
 *  of a PR quadtree without the tree.  Points that cannot be told apart by
 *  their codes are split in runs of K.
 *
 *  Source: Zhang, You, Gruenwald 2012, section 3.2.
 */
#ifndef OJ_POINT_QUADTREE_H
#define OJ_POINT_QUADTREE_H

#include "oj_feature_box.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Owner; zeroed memory is a valid empty one. */
struct oj_points
{
    int64_t n;
    double *x, *y;  /**< [n] */
    int32_t *row;   /**< [n] number of the input row */
    uint64_t *code; /**< [n] Morton codes, ascending; NULL until sorted */
};

/** The points first <= p < end. */
struct oj_quadrant
{
    int64_t first, end;
    struct oj_box box; /**< box of its points, not widened */
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_quadrants
{
    int64_t n, capacity;
    struct oj_quadrant *quadrant;
};

/** The points of input, in its order. OJ_ERR_ARG if input has parts other than
 * points; OJ_ERR_LIMIT beyond 2^31 - 1 rows. */
OJ_MUST_USE oj_status oj_points_make(const struct oj_flat *input,
                                     struct oj_points *out,
                                     struct oj_error *err);

/** Sorts points by Morton code (32 bits per axis over their own box), stably.
 * O(n). */
OJ_MUST_USE oj_status oj_points_sort(struct oj_points *points,
                                     struct oj_error *err);

/** Groups sorted points in quadrants of at most size points, size >= 1. */
OJ_MUST_USE oj_status oj_quadtree_make(const struct oj_points *points,
                                       int64_t size, struct oj_quadrants *out,
                                       struct oj_error *err);

void oj_points_free(struct oj_points *points);
void oj_quadtree_free(struct oj_quadrants *quadrants);

#ifdef __cplusplus
}
#endif
#endif
