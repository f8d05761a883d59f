/** A city of the size of New York, made by integer arithmetic alone, so that
 *  every compiler, machine and device makes the same bytes.
 *
 *  Coordinates are int32 in units of 1/1024 foot; x * (1.0 / 1024) is exact in
 *  double. Blocks of 900 x 264 ft on five ellipses of land ("boroughs") in a
 *  domain of 130,000 x 150,000 ft; corners are moved a little; each block holds
 *  two rows of lots. 90 % of the points lie around street corners (about
 *  normal, 30 ft), the rest anywhere. Point i is a function of i alone.
 *
 *  Version 1 of the data; seed 1 gives the checksums in nycgen_check.c.
 */
#ifndef NYCGEN_H
#define NYCGEN_H

#include <stdint.h>

#ifdef __CUDACC__
#define NYC_INLINE static __host__ __device__ __forceinline__
#else
#define NYC_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define NYC_ONE 1024 /* units of a foot */

struct nyc_city
{
    uint64_t seed;
    int32_t width, height;      /**< domain, ft */
    int32_t block_x, block_y;   /**< distance of corners, in feet */
    int32_t n_x, n_y;           /**< blocks along each axis */
    int32_t jitter_x, jitter_y; /**< maximum displacement of a corner to either
                                     side, in feet */
    int32_t half_avenue, half_street; /**< ft */
    int32_t sigma;    /**< standard deviation of points at a corner, in feet */
    uint32_t uniform; /**< share of uniform points, times 2^32 */
    /** With 0, all corners are equally frequent. The greater it is, the more
     * points are in the lower rows. */
    int32_t skew;
};

/** Rings or lines. The vertices of geometry g begin at offset[g] and end before
 * offset[g + 1]. */
struct nyc_shapes
{
    int32_t n;
    int64_t n_vertices;
    uint32_t *offset; /**< [n + 1] */
    int32_t *xy;      /**< [2 * n_vertices] */
};

struct nyc_city nyc_city(uint64_t seed);

/** Makes the list of blocks on land, row by row. Returns their number, or -1 if
 * memory is missing. The caller frees *out with free(). */
int32_t nyc_land_blocks(const struct nyc_city *city, int32_t **out);

/** Makes n_lots closed rings, counter-clockwise. Returns 0, or -1 if memory is
 * missing. */
int nyc_make_lots(const struct nyc_city *city, const int32_t *blocks,
                  int32_t n_blocks, int64_t n_lots, struct nyc_shapes *out);

/** Makes two lines of three vertices per block. Returns 0, or -1 if memory is
 * missing. */
int nyc_make_streets(const struct nyc_city *city, const int32_t *blocks,
                     int32_t n_blocks, struct nyc_shapes *out);

void nyc_free_shapes(struct nyc_shapes *shapes);

/** Returns z mixed by the finaliser of splitmix64. */
NYC_INLINE uint64_t nyc_mix(uint64_t z)
{
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

NYC_INLINE uint64_t nyc_hash(uint64_t seed, uint64_t stream, uint64_t i)
{
    return nyc_mix(nyc_mix(seed * 0xD1342543DE82EF95u + stream) ^
                   (i * 0x2545F4914F6CDD1Du));
}

/** Returns floor(u * n / 2^32), a number below n. */
NYC_INLINE uint32_t nyc_below(uint32_t u, uint32_t n)
{
    return (uint32_t)(((uint64_t)u * n) >> 32);
}

/** Computes corner (i, j) with 0 <= i <= n_x and 0 <= j <= n_y. */
NYC_INLINE void nyc_corner(const struct nyc_city *city, int32_t i, int32_t j,
                           int32_t *x, int32_t *y)
{
    const uint64_t h =
        nyc_hash(city->seed, 1, ((uint64_t)(uint32_t)j << 32) | (uint32_t)i);
    const int32_t jx = city->jitter_x * NYC_ONE, jy = city->jitter_y * NYC_ONE;
    *x = i * city->block_x * NYC_ONE - jx +
         (int32_t)nyc_below((uint32_t)h, 2u * (uint32_t)jx);
    *y = j * city->block_y * NYC_ONE - jy +
         (int32_t)nyc_below((uint32_t)(h >> 32), 2u * (uint32_t)jy);
}

/** Returns an approximately normal number, the sum of 12 uniform numbers. sigma
 * is its standard deviation, in feet. */
NYC_INLINE int32_t nyc_gauss(uint64_t seed, uint64_t stream, uint64_t i,
                             int32_t sigma)
{
    int64_t sum = 0, v;
    for (uint64_t k = 0; k < 3; k++)
    {
        const uint64_t h = nyc_hash(seed, stream + k, i);
        sum += (int64_t)(h & 0xFFFF) + (int64_t)((h >> 16) & 0xFFFF) +
               (int64_t)((h >> 32) & 0xFFFF) + (int64_t)(h >> 48);
    }
    v = sigma * (sum - 393210); /* 12 * 65535 / 2 */
    return (int32_t)(v / 64);
}

NYC_INLINE int32_t nyc_clamp(int64_t v, int64_t top)
{
    return (int32_t)(v < 0 ? 0 : v > top ? top : v);
}

/** Point i, any i. */
NYC_INLINE void nyc_point(const struct nyc_city *city, const int32_t *blocks,
                          int32_t n_blocks, uint64_t i, int32_t *x, int32_t *y)
{
    const uint64_t h = nyc_hash(city->seed, 10, i);
    const int64_t w = (int64_t)city->width * NYC_ONE;
    const int64_t t = (int64_t)city->height * NYC_ONE;
    if ((uint32_t)h < city->uniform || n_blocks <= 0)
    {
        const uint64_t g = nyc_hash(city->seed, 11, i);
        *x = (int32_t)(((g & 0xFFFFFFFFu) * (uint64_t)w) >> 32);
        *y = (int32_t)(((g >> 32) * (uint64_t)t) >> 32);
    }
    else
    {
        const uint32_t u = (uint32_t)(h >> 32);
        uint32_t place = u;
        int32_t b, cx, cy;
        for (int32_t k = 0; k < city->skew; k++)
            place = nyc_below(place, u);
        b = blocks[nyc_below(place, (uint32_t)n_blocks)];
        nyc_corner(city, b % city->n_x, b / city->n_x, &cx, &cy);
        *x = nyc_clamp((int64_t)cx + nyc_gauss(city->seed, 20, i, city->sigma),
                       w - 1);
        *y = nyc_clamp((int64_t)cy + nyc_gauss(city->seed, 30, i, city->sigma),
                       t - 1);
    }
}

/** Returns the term of a vertex in a sum that does not depend on the order. */
NYC_INLINE uint64_t nyc_sum_vertex(uint64_t i, int32_t x, int32_t y)
{
    return nyc_mix(nyc_mix(i) ^ (((uint64_t)(uint32_t)x << 32) | (uint32_t)y));
}

#ifdef __cplusplus
}
#endif
#endif
