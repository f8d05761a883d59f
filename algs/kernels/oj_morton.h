/** Morton codes: the order in which quadrants of the plane are visited.
 *  Source: Zhang, You, Gruenwald 2012, section 3.2.
 */
#ifndef OJ_MORTON_H
#define OJ_MORTON_H

#include "oj_kernel.h"

/** Spreads the lower 16 bits of v to the even bits. */
OJ_FN uint32_t oj_spread_bits(uint32_t v)
{
    v &= 0xFFFFu;
    v = (v | (v << 8)) & 0x00FF00FFu;
    v = (v | (v << 4)) & 0x0F0F0F0Fu;
    v = (v | (v << 2)) & 0x33333333u;
    v = (v | (v << 1)) & 0x55555555u;
    return v;
}

/** Code of column x, row y, both below 2^16; x in the even bits. */
OJ_FN uint32_t oj_morton(uint32_t x, uint32_t y)
{
    return oj_spread_bits(x) | (oj_spread_bits(y) << 1);
}

/** Maps a coordinate to 0 .. 65535: (v - origin) * scale, clamped.  NaN is 0.
 */
OJ_FN uint32_t oj_morton_column(double v, double origin, double scale)
{
    double c = (v - origin) * scale;
    if (!(c > 0.0))
        return 0;
    return c >= 65535.0 ? 65535u : (uint32_t)c;
}

#endif
