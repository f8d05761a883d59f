/** Compares a tile of rows with a tile of features in single precision: 128
 *  sums per lane, in its registers.
 *
 *   a warp: 32 rows x 128 features; slab by slab, of some dimensions:
 *   differences   slab [dimension][128] floats    a row per lane, all features
 *   products      slab [128][dimension] halves    in the layout of tensor cores
 *
 *  Products: a row consists of uint4's of eight halves, four per run of 32
 *  dimensions. Lane 4 g + t loads number t of rows g and g + 8, and of feature
 *  g of eight. The order of the 16 dimensions of an instruction does not
 *  matter, as long as rows and features agree. In every second row, the two
 *  runs of a slab are swapped, so that eight lanes read different banks.
 */
#ifndef CUDA_VECTOR_TILE_CUH
#define CUDA_VECTOR_TILE_CUH

#include "cuda_vector_side.cuh"

enum oj_vector_way
{
    OJ_VECTOR_PRODUCTS,
    OJ_VECTOR_SQUARES, /**< sum of squared differences */
    OJ_VECTOR_SIZES,
    OJ_VECTOR_GREATEST
};

enum
{
    OJ_VECTOR_SLAB = 1024, /**< number of uint4's in a slab */
    OJ_VECTOR_RUNS = 2,    /**< runs of 32 dimensions in a slab of halves */
    OJ_VECTOR_FLOATS = 32  /**< dimensions of a slab of floats */
};

/** Returns the number of slabs for all n_padded dimensions. */
template <int WAY>
static __device__ __forceinline__ int oj_vector_count_slabs(int n_padded)
{
    int step =
        WAY == OJ_VECTOR_PRODUCTS ? 32 * OJ_VECTOR_RUNS : OJ_VECTOR_FLOATS;
    return (n_padded + step - 1) / step;
}

/** Returns the width of slab s: in runs of 32 dimensions for products,
 *  otherwise in dimensions. */
template <int WAY>
static __device__ __forceinline__ int oj_vector_slab_width(int n_padded, int s)
{
    int most =
        WAY == OJ_VECTOR_PRODUCTS ? (int)OJ_VECTOR_RUNS : OJ_VECTOR_FLOATS;
    int left =
        (WAY == OJ_VECTOR_PRODUCTS ? n_padded / 32 : n_padded) - s * most;
    return left < most ? left : most;
}

/** Loads slab s of a tile. All threads of the block must call it. */
template <int WAY>
static __device__ __forceinline__ void
oj_vector_load_slab(const struct oj_cuda_vector_side &side, int n_padded,
                    int64_t tile, int s, uint4 *slab)
{
    int width = oj_vector_slab_width<WAY>(n_padded, s);
    if constexpr (WAY != OJ_VECTOR_PRODUCTS)
    {
        const uint4 *from =
            (const uint4 *)side.value +
            (tile * n_padded + s * OJ_VECTOR_FLOATS) * (OJ_VECTOR_TILE / 4);
        for (int i = threadIdx.x; i < width * (OJ_VECTOR_TILE / 4);
             i += OJ_VECTOR_TILE)
            slab[i] = from[i];
    }
    else
    {
        const uint4 *from = (const uint4 *)side.half +
                            tile * OJ_VECTOR_TILE * (n_padded / 8) +
                            s * 4 * OJ_VECTOR_RUNS;
        for (int i = threadIdx.x; i < OJ_VECTOR_TILE * 4 * width;
             i += OJ_VECTOR_TILE)
        {
            int row = i / (4 * width), at = i % (4 * width);
            slab[row * 8 + (at ^ (row & 1) << 2)] =
                from[row * (n_padded / 8) + at];
        }
    }
}

/** Adds the product of a 16 x 16 and a 16 x 8 matrix of halves to c. */
static __device__ __forceinline__ void
oj_vector_mma_16x8x16(float c[4], unsigned a0, unsigned a1, unsigned a2,
                      unsigned a3, unsigned b0, unsigned b1)
{
#ifdef OJ_CUDA_HOST
    oj_host_multiply(c, a0, a1, a2, a3, b0, b1);
#elif defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    c[0] = (float)INFINITY; /* never reached, because products are not used on
                               such devices */
#endif
}

/** Returns the row of the tile to which sum i of a lane belongs. */
template <int WAY>
static __device__ __forceinline__ int oj_vector_row_of_sum(int i)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (WAY != OJ_VECTOR_PRODUCTS)
        return threadIdx.x;
    return 32 * warp + i / 64 * 16 + i % 4 / 2 * 8 + lane / 4;
}
template <int WAY>
static __device__ __forceinline__ int oj_vector_column_of_sum(int i)
{
    if (WAY != OJ_VECTOR_PRODUCTS)
        return i;
    return i / 4 % 16 * 8 + threadIdx.x % 4 * 2 + i % 2;
}

/* Adds the differences of a slab of `width` dimensions to the sums, one row per
 * lane. */
template <int WAY>
static __device__ __forceinline__ void
oj_vector_add_differences(const float *rows, const float4 *features, int width,
                          float sum[OJ_VECTOR_TILE])
{
    for (int d = 0; d < width; d++)
    {
        float at = rows[d * OJ_VECTOR_TILE + threadIdx.x];
        const float4 *from = features + d * OJ_VECTOR_TILE / 4;
#pragma unroll
        for (int i = 0; i < OJ_VECTOR_TILE; i++)
        {
            float4 four = from[i / 4];
            float apart = at - (i % 4 == 0   ? four.x
                                : i % 4 == 1 ? four.y
                                : i % 4 == 2 ? four.z
                                             : four.w);
            float size = apart > 0.0f ? apart : -apart;
            if (WAY == OJ_VECTOR_SQUARES)
                sum[i] += apart * apart;
            else if (WAY == OJ_VECTOR_SIZES)
                sum[i] += size;
            else
                sum[i] = size > sum[i] ? size : sum[i];
        }
    }
}

static __device__ __forceinline__ void
oj_vector_add_products(const uint4 *rows, const uint4 *features, int width,
                       float sum[OJ_VECTOR_TILE])
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, odd = lane / 4 & 1;
    for (int run = 0; run < width; run++)
    {
        int at = (run ^ odd) * 4 + lane % 4;
        uint4 a[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[i] = rows[(32 * warp + 8 * i + lane / 4) * 8 + at];
#pragma unroll
        for (int n = 0; n < 16; n++)
        {
            uint4 b = features[(8 * n + lane / 4) * 8 + at];
#pragma unroll
            for (int m = 0; m < 2; m++)
            {
                float *to = sum + (m * 16 + n) * 4;
                uint4 low = a[2 * m], high = a[2 * m + 1];
                oj_vector_mma_16x8x16(to, low.x, high.x, low.y, high.y, b.x,
                                      b.y);
                oj_vector_mma_16x8x16(to, low.z, high.z, low.w, high.w, b.z,
                                      b.w);
            }
        }
    }
}

/** Adds a slab to the sums, by differences or products. width is that of
 *  oj_vector_slab_width(). */
template <int WAY>
static __device__ __forceinline__ void
oj_vector_add_slab(const uint4 *rows, const uint4 *features, int width,
                   float sum[OJ_VECTOR_TILE])
{
    if constexpr (WAY == OJ_VECTOR_PRODUCTS)
        oj_vector_add_products(rows, features, width, sum);
    else
        oj_vector_add_differences<WAY>((const float *)rows,
                                       (const float4 *)features, width, sum);
}

#endif
