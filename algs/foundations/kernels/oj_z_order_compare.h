/** Comparison of vectors in Z-order (Morton order).
 *
 *  Coordinates are first mapped to grid places below 2^30. Several lists of all
 *  vectors are sorted this way; list j of m lists adds j 2^30 / m to each
 *  place, because two similar vectors may be far apart in one list and adjacent
 *  in another. Two vectors are ordered by the dimension in which their places
 *  differ in the highest bit. All vectors of a box are between its lower and
 *  its upper corner in this order.
 *
 *  Source: Lieberman, Sankaranarayanan, Samet 2008, section 4; Chan 2006
 *  (comparison by bits).
 */
#ifndef OJ_Z_ORDER_COMPARE_H
#define OJ_Z_ORDER_COMPARE_H

#include "oj_kernel.h"

#define OJ_Z_PLACES 1073741824u /* grid places in a dimension: 2^30 */

/** Maps coordinate x to a grid place, clamped to the grid. Never decreases with
 * x. */
OJ_FN uint32_t oj_z_grid_index(double x, double low, double scale)
{
    double at = (x - low) * scale;
    if (!(at > 0.0))
        return 0;
    return at < (double)(OJ_Z_PLACES - 1) ? (uint32_t)at : OJ_Z_PLACES - 1;
}

/** Returns the number that list `list` of n_lists adds to each grid place. */
OJ_FN uint32_t oj_z_shift(int list, int n_lists)
{
    return (uint32_t)((uint64_t)OJ_Z_PLACES * (uint64_t)list /
                      (uint64_t)n_lists);
}

/** Compares two vectors of n grid places in Z-order, after adding `shift` to
 * each place. The result is < 0, 0 or > 0 if a precedes, equals or follows b.
 */
OJ_FN int oj_z_compare(const uint32_t *a, const uint32_t *b, int64_t n,
                       uint32_t shift)
{
    uint32_t most = 0;
    int order = 0;
    for (int64_t i = 0; i < n; i++)
    {
        uint32_t x = a[i] + shift, y = b[i] + shift, differ = x ^ y;
        /* the highest differing bit so far is in this dimension */
        if (most < differ && most < (most ^ differ))
        {
            most = differ;
            order = x < y ? -1 : 1;
        }
    }
    return order;
}

#endif
