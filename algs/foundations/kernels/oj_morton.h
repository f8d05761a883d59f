/** Morton codes (Z-order): interleaved bits of a column and a row. Source:
 * Zhang, You, Gruenwald 2012, section 3.2. */
#ifndef OJ_MORTON_H
#define OJ_MORTON_H

#include "oj_kernel.h"

/** Spreads the lower 16 bits of v: bit i moves to bit 2 i. */
OJ_FN uint32_t oj_morton_spread(uint32_t v)
{
    v &= 0xFFFFu;
    v = (v | (v << 8)) & 0x00FF00FFu;
    v = (v | (v << 4)) & 0x0F0F0F0Fu;
    v = (v | (v << 2)) & 0x33333333u;
    v = (v | (v << 1)) & 0x55555555u;
    return v;
}

/** Returns the Morton code of column x and row y, both below 2^16; x is in the
 *  even bits.
 */
OJ_FN uint32_t oj_morton(uint32_t x, uint32_t y)
{
    return oj_morton_spread(x) | (oj_morton_spread(y) << 1);
}

/** Maps a coordinate to a column 0 .. 65535: (v - origin) * scale, clamped. NaN
 * becomes 0. */
OJ_FN uint32_t oj_morton_column(double v, double origin, double scale)
{
    double c = (v - origin) * scale;
    if (!(c > 0.0))
        return 0;
    return c >= 65535.0 ? 65535u : (uint32_t)c;
}

/** Returns the column of v, 0 .. 2^32 - 1, in the range lowest .. highest.
 * Values outside are clamped; NaN becomes 0. */
OJ_FN uint32_t oj_morton_column32(double v, double lowest, double highest)
{
    /* computed from halves, since the difference of two doubles may overflow */
    double extent = highest * 0.5 - lowest * 0.5;
    double share = extent > 0.0 ? (v * 0.5 - lowest * 0.5) / extent : 0.0;
    double c = share * 4294967296.0;
    if (!(c > 0.0))
        return 0;
    return c >= 4294967295.0 ? UINT32_MAX : (uint32_t)c;
}

/** Returns the Morton code of column x and row y, 32 bits each. */
OJ_FN uint64_t oj_morton64(uint32_t x, uint32_t y)
{
    return (uint64_t)oj_morton(x >> 16, y >> 16) << 32 |
           oj_morton(x & 0xFFFFu, y & 0xFFFFu);
}

#endif
