/** The points of a batch of input features, grouped in quadrants.
 *
 *  Input features are points or multipoints. Every point becomes an entry with
 *  the number of its row, so that engines handle single points;
 *  oj_answers_to_matches() merges the results by row. Features without geometry
 *  have no entry.
 *
 *  A quadrant is a run of points in Morton order: all points of one
 *  Morton-aligned square with at most K points. The quadrants are the leaves of
 *  a PR quadtree, which itself is not stored. Points with equal codes are split
 *  into runs of K.
 *
 *  Source: Zhang, You, Gruenwald 2012, section 3.2.
 */
#ifndef OJ_POINT_QUADTREE_H
#define OJ_POINT_QUADTREE_H

#include "oj_feature_box.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The points of a batch. Owner; zeroed memory is a valid empty value. */
struct oj_points
{
    int64_t n;
    double *x, *y;  /**< [n] */
    int32_t *row;   /**< [n] number of the input row */
    uint64_t *code; /**< [n] Morton codes, ascending; NULL until sorted */
};

/** A quadrant: the sorted points first .. end - 1. */
struct oj_quadrant
{
    int64_t first, end;
    struct oj_box box; /**< bounding box of its points; a search widens a
                            copy by its reach (oj_box_widened()) */
};

/** All quadrants of a batch. Owner; zeroed memory is a valid empty value. */
struct oj_quadrants
{
    int64_t n, capacity;
    struct oj_quadrant *quadrant;
};

/** Lists the points of all input features, in the order of the rows. OJ_ERR_ARG
 * if input has lines or polygons; OJ_ERR_LIMIT beyond 2^31 - 1 rows. */
OJ_MUST_USE oj_status oj_points_make(const struct oj_flat *input,
                                     struct oj_points *out,
                                     struct oj_error *err);

/** Sorts points stably by Morton code, with 32 bits per axis over their
 * bounding box. O(n). */
OJ_MUST_USE oj_status oj_points_sort(struct oj_points *points,
                                     struct oj_error *err);

/** Groups sorted points into quadrants of at most `size` points, size >= 1. */
OJ_MUST_USE oj_status oj_quadtree_make(const struct oj_points *points,
                                       int64_t size, struct oj_quadrants *out,
                                       struct oj_error *err);

void oj_points_free(struct oj_points *points);
void oj_quadtree_free(struct oj_quadrants *quadrants);

#ifdef __cplusplus
}
#endif
#endif
