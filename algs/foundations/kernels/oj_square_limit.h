/** Limits for squared distances. sqrt is monotone and correctly rounded, so
 * sqrt(s) <= d holds exactly if s is at most the greatest double with a root <=
 * d. So comparing squares with this limit decides exactly like comparing
 * distances (oj_point_distance()) with d. */
#ifndef OJ_SQUARE_LIMIT_H
#define OJ_SQUARE_LIMIT_H

#include "oj_kernel.h"

#include <float.h>

/** Returns the greatest double whose square root is <= d. d must be finite and
 *  >= 0. */
OJ_FN double oj_square_limit_most(double d)
{
    double e = d * d < DBL_MAX ? d * d : DBL_MAX;
    while (sqrt(e) > d)
        e = nextafter(e, 0.0);
    while (e < DBL_MAX && sqrt(nextafter(e, (double)INFINITY)) <= d)
        e = nextafter(e, (double)INFINITY);
    return e;
}

/** Returns the least double whose square root is >= d. */
OJ_FN double oj_square_limit_least(double d)
{
    double e = d * d;
    while (sqrt(e) < d && e < INFINITY)
        e = nextafter(e, (double)INFINITY);
    while (e > 0.0 && sqrt(nextafter(e, 0.0)) >= d)
        e = nextafter(e, 0.0);
    return e;
}

#endif
