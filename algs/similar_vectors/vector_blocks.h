/** Vectors of the join side in blocks of 16, in single precision, under a tree
 *  of boxes: which of them may be within a difference of another vector.
 *
 *   box      of 8 dimensions           [    all     ]
 *                                   [        ] [       ]
 *   block    16 vectors             [0] [1] [2] [3] [4]
 *   value    of a block: [dimension][16], dimensions by falling spread
 *
 *  A box and a block give sums in single precision that are compared with a
 *  limit; what passes is decided in double precision by oj_vector_difference().
 *
 *  No pair is lost.  n dimensions, u = 2^-24; everything else is real.
 *
 *  1. Of a pair whose rounded difference is v, the difference of the numbers
 *     themselves is at most v (1 + (n + 4) 2^-52) + sqrt(n) 2^-536: sums of n
 *     terms round n + 3 times, squares that underflow lose 2^-1075 each.
 *     Cosines: v is within (2 n + 8) 2^-52 of 1 - cos, as every sum is within
 *     n 2^-53 |a| |b|, underflow included; the vectors are divided by their
 *     lengths, which leaves an error of (n + 4) 2^-53 of each, and then have
 *     the distance sqrt(2 (1 - cos)).  Let L be that bound times scale.
 *  2. value = float((x - centre) scale), where scale is a power of two that
 *     takes the join side into [-1, 1].  Its error is at most u (1 + 2^-20) of
 *     its size, and below 2^-148 where it is subnormal: at most 2^-23 there,
 * and 2^-23 (1 + L) on the input side, as no coordinate of the pair is further
 *     apart than L.  So each difference of coordinates is wrong by at most
 *     e = 2^-23 (2 + L), the l2 distance by sqrt(n) e, l1 by n e, linf by e.
 *  3. The sum in single precision of terms >= 0, in any order, of some or all
 *     dimensions, is at most the true sum times (1 + u)^(n + 2) and 2^-139.
 *     That of a box has no term larger than that of any vector in it, since
 *     rounding is monotone.
 *  4. So limit = (L + sqrt(n) e)^2, L + n e or L + e, times 1 + (n + 64) 2^-23,
 *     plus 2^-130, rounded up: half of the factor pays for 3, the rest for the
 *     rounding of the limit itself.  Where it is beyond float, all pass.
 *  5. Input coordinates beyond float are cut to its greatest number: they are
 *     further than L from the join side, or all pass.
 *
 *  Source: ours; blocks behind boxes of the dimensions with the greatest spread
 *  as in Gowanlock and Karsin 2019 (grids of such dimensions).
 */
#ifndef VECTOR_BLOCKS_H
#define VECTOR_BLOCKS_H

#include "../../flatten/arrays/oj_vectors.h"
#include "../base/cpu_lane_loops.h"
#include "../relation/oj_vector_condition.h"

enum
{
    OJ_BOX_DIMENSIONS = OJ_LANES
};

struct oj_vector_box
{
    float low[OJ_BOX_DIMENSIONS], high[OJ_BOX_DIMENSIONS];
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_vector_blocks
{
    enum oj_vector_norm norm;
    int64_t n_dimensions;
    int64_t n_padded;   /**< dimensions of value: a multiple of OJ_LANES, those
                             behind n_dimensions 0 */
    int32_t *dimension; /**< [n_dimensions] by falling spread */
    double *centre;     /**< [n_dimensions], in that order */
    double scale;

    int64_t n_rows; /**< that have a vector */
    int64_t n_blocks;
    float *value; /**< [n_blocks][n_padded][OJ_WIDE] */
    int32_t *row; /**< [n_blocks * OJ_WIDE]; -1: none */

    /** [2 n_blocks - 1] in preorder: of blocks first to end - 1, then of those
     *  before and from their middle on. */
    struct oj_vector_box *box;
};

/** Blocks of the n_rows vectors that are there. On n_threads; the blocks do not
 *  depend on how many. O(dimensions * n_rows + n_rows log n_rows). */
OJ_MUST_USE oj_status oj_vector_blocks_make(
    const struct oj_vectors *vectors, int64_t n_rows, enum oj_vector_norm norm,
    int n_threads, struct oj_vector_blocks *out, struct oj_error *err);

int64_t oj_vector_blocks_bytes(const struct oj_vector_blocks *blocks);

void oj_vector_blocks_free(struct oj_vector_blocks *blocks);

/** The coordinates of a vector: out [n_padded]. */
void oj_vector_blocks_put(const struct oj_vector_blocks *blocks,
                          const double *vector, float *out);

/** The limit of sums for differences of at most most. */
float oj_vector_limit(const struct oj_vector_blocks *blocks, double most);

/** The nodes of the tree: blocks first to end - 1 under box at. */
struct oj_vector_node
{
    int64_t first, end, at;
};

static inline void oj_vector_children(const struct oj_vector_node *node,
                                      struct oj_vector_node child[2])
{
    int64_t middle = (node->first + node->end) / 2;
    child[0] = (struct oj_vector_node){node->first, middle, node->at + 1};
    child[1] = (struct oj_vector_node){middle, node->end,
                                       node->at + 2 * (middle - node->first)};
}

/** The sum of eight terms under a norm. */
OJ_INLINE float oj_vector_sum(enum oj_vector_norm norm, const float d[OJ_LANES])
{
    float s[OJ_LANES];
    if (norm == OJ_NORM_LINF || norm == OJ_NORM_L1)
    {
        OJ_EIGHT s[c] = d[c] > -d[c] ? d[c] : -d[c];
    }
    else
    {
        OJ_EIGHT s[c] = d[c] * d[c];
    }
    for (int half = OJ_LANES / 2; half > 0; half /= 2)
    {
        for (int c = 0; c < half; c++)
            s[c] = norm != OJ_NORM_LINF ? s[c] + s[c + half]
                   : s[c] > s[c + half] ? s[c]
                                        : s[c + half];
    }
    return s[0];
}

/** What a vector with these coordinates has at least with all of a box. */
OJ_INLINE float oj_vector_box_sum(enum oj_vector_norm norm,
                                  const struct oj_vector_box *box,
                                  const float *at)
{
    float d[OJ_LANES];
    OJ_EIGHT
    {
        float below = box->low[c] - at[c], above = at[c] - box->high[c];
        float most = below > above ? below : above;
        d[c] = most > 0.0f ? most : 0.0f;
    }
    return oj_vector_sum(norm, d);
}

/* Eight dimensions of a block. */
OJ_INLINE void oj_vector_add_eight(enum oj_vector_norm norm, const float *value,
                                   const float *at, float sum[OJ_WIDE])
{
#define OJ_APART(i) (at[i] - value[(i)*OJ_WIDE + c])
#define OJ_SIZE(i) (OJ_APART(i) > 0.0f ? OJ_APART(i) : -OJ_APART(i))
#define OJ_SQUARE(i) (OJ_APART(i) * OJ_APART(i))
#define OJ_MAX(a, b) ((a) > (b) ? (a) : (b))
    if (norm == OJ_NORM_L1)
    {
        OJ_SIXTEEN sum[c] +=
            ((OJ_SIZE(0) + OJ_SIZE(1)) + (OJ_SIZE(2) + OJ_SIZE(3))) +
            ((OJ_SIZE(4) + OJ_SIZE(5)) + (OJ_SIZE(6) + OJ_SIZE(7)));
    }
    else if (norm == OJ_NORM_LINF)
    {
        for (int i = 0; i < OJ_LANES; i++)
        {
            OJ_SIXTEEN sum[c] = OJ_MAX(sum[c], OJ_SIZE(i));
        }
    }
    else
    {
        OJ_SIXTEEN sum[c] +=
            ((OJ_SQUARE(0) + OJ_SQUARE(1)) + (OJ_SQUARE(2) + OJ_SQUARE(3))) +
            ((OJ_SQUARE(4) + OJ_SQUARE(5)) + (OJ_SQUARE(6) + OJ_SQUARE(7)));
    }
#undef OJ_APART
#undef OJ_SIZE
#undef OJ_SQUARE
#undef OJ_MAX
}

/** 1 when a vector of the block may be within the limit; sum: of each. */
OJ_INLINE int oj_vector_block_sums(enum oj_vector_norm norm, const float *value,
                                   int64_t n_padded, const float *at,
                                   float limit, float sum[OJ_WIDE])
{
    OJ_SIXTEEN sum[c] = 0.0f;
    for (int64_t p = 0; p < n_padded; p += OJ_LANES)
    {
        int any = 0;
        oj_vector_add_eight(norm, value + p * OJ_WIDE, at + p, sum);
        OJ_SIXTEEN any |= sum[c] <= limit;
        if (!any)
            return 0;
    }
    return 1;
}

#endif
