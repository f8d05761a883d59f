/** What our own kernels say of a pair of shapes.
 *
 *  Where boundaries meet in a way that takes the matrix to judge, they say so
 *  (relate.h).
 */
#ifndef CPU_VERDICT_H
#define CPU_VERDICT_H

#include "../relation/oj_relation.h"
#include "../shapes/cpu_shapes.h"
#include "cpu_contain.h"

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
