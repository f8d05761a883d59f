/** Comparison of vectors in Z-order (Morton order), in lists whose coordinates
 *  are shifted against one another.
 *
 *  place   of a coordinate: whole steps above the least one, below 2^30
 *  list j  places + j 2^30 / (number of lists)
 *
 *  Two vectors are ordered by the dimension in which their places differ in the
 *  highest bit.  All vectors of a box are between its lower and its upper
 *  corner in this order. Source: Lieberman, Sankaranarayanan, Samet 2008,
 *  section 4; Chan 2006 (bits).
 */
#ifndef OJ_Z_ORDER_COMPARE_H
#define OJ_Z_ORDER_COMPARE_H

#include "oj_kernel.h"

#define OJ_Z_PLACES 1073741824u

/** Place of x on the grid, clamped to its ends: monotone in x. */
OJ_FN uint32_t oj_z_place(double x, double low, double scale)
{
    double at = (x - low) * scale;
    if (!(at > 0.0))
        return 0;
    return at < (double)(OJ_Z_PLACES - 1) ? (uint32_t)at : OJ_Z_PLACES - 1;
}

OJ_FN uint32_t oj_z_shift(int list, int n_lists)
{
    return (uint32_t)((uint64_t)OJ_Z_PLACES * (uint64_t)list /
                      (uint64_t)n_lists);
}

/** Compares vectors a and b of n places: below 0, 0 or above 0 if a comes
 * before, equals or comes after b. */
OJ_FN int oj_z_compare(const uint32_t *a, const uint32_t *b, int64_t n,
                       uint32_t shift)
{
    uint32_t most = 0;
    int order = 0;
    for (int64_t i = 0; i < n; i++)
    {
        uint32_t x = a[i] + shift, y = b[i] + shift, differ = x ^ y;
        if (most < differ && most < (most ^ differ)) /* differs in a higher bit
                                                        than all dimensions
                                                        before */
        {
            most = differ;
            order = x < y ? -1 : 1;
        }
    }
    return order;
}

#endif
