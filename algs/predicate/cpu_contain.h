/** What can be said for sure of two shapes beyond whether they meet: one inside
 *  the other, touching, crossing, overlapping, equal.
 *
 *  Lines and polygons are judged by three facts: where vertices lie, whether
 *  edges cross, and whether they touch. Where they touch without crossing, it
 *  takes the matrix (relate.h); most pairs never get there.
 */
#ifndef CPU_CONTAIN_H
#define CPU_CONTAIN_H

#include "../shapes/cpu_shapes.h"

enum oj_verdict
{
    OJ_VERDICT_NO = 0,
    OJ_VERDICT_YES,
    OJ_VERDICT_UNSURE
};

/** What a verdict rests on, or'ed: it holds if these shapes are nice
 *  (oj_shape_is_nice()). */
enum oj_needs_nice
{
    OJ_NEEDS_NICE_A = 1,
    OJ_NEEDS_NICE_B = 2
};

enum oj_inside
{
    OJ_INSIDE_COVERED,  /**< no point of a outside b */
    OJ_INSIDE_WITHIN,   /**< and interiors meet */
    OJ_INSIDE_PROPERLY, /**< all of a in the interior of b */
};

/* Shapes of one kind each, whose boxes the caller has compared. */

enum oj_verdict oj_shape_is_inside(const struct oj_shape *a,
                                   const struct oj_shape *b, enum oj_inside how,
                                   unsigned *needs);

/* Shapes that meet. */

enum oj_verdict oj_shapes_touch(const struct oj_shape *a,
                                const struct oj_shape *b, unsigned *needs);
enum oj_verdict oj_shapes_cross(const struct oj_shape *a,
                                const struct oj_shape *b, unsigned *needs);
enum oj_verdict oj_shapes_overlap(const struct oj_shape *a,
                                  const struct oj_shape *b, unsigned *needs);
enum oj_verdict oj_shapes_equal(const struct oj_shape *a,
                                const struct oj_shape *b, unsigned *needs);

#endif
