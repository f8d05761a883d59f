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

/** Which boxes a feature must have to form a pair with one of box *box, and
 *  whether one that has is a pair already. */
struct oj_box_rule
{
    enum oj_box_test test;
    int is_enough; /**< OJ_OP_BBOX */
    int takes_all; /**< features whose boxes are apart may be pairs, too */
};

struct oj_box_rule oj_verdict_box_rule(const struct oj_relation *relation);

/** Whether the join holds between shapes a (input side) and b, for which the
 *  box rule holds. *needs: enum oj_needs_nice of the answer. */
enum oj_verdict oj_verdict_of(const struct oj_relation *relation,
                              const struct oj_shape *a,
                              const struct oj_shape *b, unsigned *needs);

#endif
