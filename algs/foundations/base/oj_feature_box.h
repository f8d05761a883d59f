/** The boxes of a layer's features, as a filter may use them.
 *
 *  Every box is a little larger than its feature, so that a box filter never
 *  loses a candidate to rounding: a distance computed as d by GEOS's order of
 *  operations may be smaller than the true one by some ulp of the largest
 *  coordinate that took part (the cross product cancels), and both sides widen
 *  their box by more than their share of that.  "Windows" below are boxes of
 *  input points, widened in the same way by oj_box_around().
 *
 *  Source: ours.
 */
#ifndef OJ_FEATURE_BOX_H
#define OJ_FEATURE_BOX_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../kernels/oj_box.h"

#include <float.h>
#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Owner. Zeroed memory is a valid empty one. */
struct oj_boxes
{
    int64_t n;          /**< features */
    int64_t n_boxes;    /**< features that have a box */
    struct oj_box *box; /**< [n] widened; empty for features without parts */
    struct oj_box all;  /**< around every box; empty when n_boxes == 0 */
    double spacing;     /**< typical distance from a feature's middle to the
                             next one's, > 0: where an unbounded search starts */
};

static inline int oj_box_has(const struct oj_box *box, double x, double y)
{
    return (box->x0 <= x) & (x <= box->x1) & (box->y0 <= y) & (y <= box->y1);
}

static inline struct oj_box oj_box_of_segment(double ax, double ay, double bx,
                                              double by)
{
    /* comparisons that differ make no branch: 1.2 times as fast */
    struct oj_box box = {ax < bx ? ax : bx, ay < by ? ay : by,
                         ax > bx ? ax : bx, ay > by ? ay : by};
    return box;
}

/** Around n points; those with a NaN coordinate add nothing by it. */
static inline struct oj_box oj_box_of(const double *x, const double *y,
                                      int64_t n)
{
    struct oj_box box = oj_box_empty();
    for (int64_t i = 0; i < n; i++)
        oj_box_add_point(&box, x[i], y[i]);
    return box;
}

/** Between these sizes the differences, products and reciprocals that cells of
 *  any kind are made with stay finite and normal.  Beyond them nothing has
 *  cells, and edges are walked over one by one. */
#define OJ_LEAST_SAFE_SIZE 1e-130
#define OJ_GREATEST_SAFE_SIZE 1e130

static inline int oj_box_is_safe(const struct oj_box *box)
{
    return oj_larger(box->x1 - box->x0, box->y1 - box->y0) >
               OJ_LEAST_SAFE_SIZE &&
           oj_box_size(box) < OJ_GREATEST_SAFE_SIZE;
}

/** At most the distance between any point of a and any point of b, also as
 *  kernels compute it, in whose squares small numbers underflow: 0 then. */
static inline double oj_box_distance(const struct oj_box *a,
                                     const struct oj_box *b)
{
    double dx = oj_larger(oj_larger(a->x0 - b->x1, b->x0 - a->x1), 0.0);
    double dy = oj_larger(oj_larger(a->y0 - b->y1, b->y0 - a->y1), 0.0);
    double square = dx * dx + dy * dy;
    if (!(square > DBL_MIN / DBL_EPSILON))
        return 0.0;
    if (!(square < INFINITY)) /* it says nothing */
        return oj_larger(dx, dy);
    return sqrt(square) * (1.0 - 8.0 * DBL_EPSILON);
}

/** At least the distance between any point of a and any point of b. */
static inline double oj_box_farthest(const struct oj_box *a,
                                     const struct oj_box *b)
{
    double dx = oj_larger(a->x1 - b->x0, b->x1 - a->x0);
    double dy = oj_larger(a->y1 - b->y0, b->y1 - a->y0);
    double square = dx * dx + dy * dy;
    if (!(square > DBL_MIN / DBL_EPSILON) || !(square < INFINITY))
        return (dx + dy) * (1.0 + 8.0 * DBL_EPSILON);
    return sqrt(square) * (1.0 + 8.0 * DBL_EPSILON);
}

/** The exact box of a feature; empty when it has no parts. */
struct oj_box oj_box_of_feature(const struct oj_flat *flat, int64_t feature);

/** The boxes of flat's features. O(vertices). */
OJ_MUST_USE oj_status oj_boxes_make(const struct oj_flat *flat,
                                    struct oj_boxes *out, struct oj_error *err);

/** 1 when a window of this reach holds so many features at their typical
 *  distance (more than 4,096 + 16 k) that a search does better to begin with a
 *  smaller one and grow it. Windows of the usual sizes are not wide. */
int oj_boxes_window_is_wide(const struct oj_boxes *boxes, double reach,
                            int64_t k);

void oj_boxes_free(struct oj_boxes *boxes);

#ifdef __cplusplus
}
#endif
#endif
