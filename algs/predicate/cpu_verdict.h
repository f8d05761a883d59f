/** What our own kernels say of a pair of shapes.
 *
 *  Lines and polygons are judged by three facts: where vertices lie, whether
 *  edges cross, and whether they touch. Where they touch without crossing, it
 *  takes the matrix (relate.h); most pairs never get there.
 */
#ifndef CPU_VERDICT_H
#define CPU_VERDICT_H

#include "../relation/oj_relation.h"
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

/** Whether the join holds between shapes a (input side) and b, which are a
 *  candidate (oj_screen.h). *needs: enum oj_needs_nice of the answer. */
enum oj_verdict oj_verdict_of(const struct oj_relation *relation,
                              const struct oj_shape *a,
                              const struct oj_shape *b, unsigned *needs);

#endif
