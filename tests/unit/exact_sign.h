/** Reference for orientation signs, by integers of any size. It is slow.
 * Include once, in a test program. */
#ifndef EXACT_SIGN_H
#define EXACT_SIGN_H

#include "../../algs/foundations/base/exact_integer.h"

#include <limits.h>

/* Returns the side of a -> b on which c lies: 1 left, -1 right, 0 on the
 * line. */
static inline int exact_orientation(double ax, double ay, double bx, double by,
                                    double cx, double cy)
{
    const double all[6] = {ax, ay, bx, by, cx, cy};
    struct oj_integer dx, dy, x, y, side;
    int exponent = INT_MAX;
    for (int i = 0; i < 6; i++)
    {
        int own = oj_integer_exponent(all[i]);
        exponent = own < exponent ? own : exponent;
    }
    exponent = exponent == INT_MAX ? 0 : exponent;
    oj_integer_difference(&dx, bx, ax, exponent);
    oj_integer_difference(&dy, by, ay, exponent);
    oj_integer_difference(&x, cx, ax, exponent);
    oj_integer_difference(&y, cy, ay, exponent);
    oj_integer_cross(&side, &dx, &y, &dy, &x);
    return side.sign;
}

#endif
