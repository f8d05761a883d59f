/** An index that finds the vectors within a given difference of another vector:
 *  the join side in blocks of 16, in single precision, under a tree of boxes.
 *
 *   box      of 8 dimensions           [    all     ]
 *                                   [        ] [       ]
 *   block    16 vectors             [0] [1] [2] [3] [4]
 *   value    of a block: [dimension][16], dimensions by falling scatter
 *
 *  Boxes and blocks yield sums in single precision, which are compared with a
 *  limit (oj_vector_frame.h).
 *
 *  Source: ours; blocks behind boxes of the dimensions with the greatest spread
 *  as in Gowanlock and Karsin 2019 (grids of such dimensions).
 */
#ifndef VECTOR_BLOCKS_H
#define VECTOR_BLOCKS_H

#include "../../../flatten/arrays/oj_vectors.h"
#include "../../../flatten/base/oj_status.h"
#include "../../foundations/base/cpu_lane_loops.h"
#include "../../foundations/kernels/oj_vector_frame.h"

enum
{
    OJ_BOX_DIMENSIONS = OJ_LANES
};

struct oj_vector_box
{
    float low[OJ_BOX_DIMENSIONS], high[OJ_BOX_DIMENSIONS];
};

/** Index of the vectors of a side in blocks. Owner; zeroed memory is a valid
 * empty one. */
struct oj_vector_blocks
{
    enum oj_vector_norm norm;
    int64_t n_dimensions;
    int64_t n_padded;   /**< dimensions of value: a multiple of OJ_LANES;
                             those beyond n_dimensions are 0 */
    int32_t *dimension; /**< [n_dimensions] sorted by falling scatter (struct
                             oj_vector_spread) */
    double *centre;     /**< [n_dimensions] centre of the vectors, in the order
                             of dimension */
    double scale;

    int64_t n_rows; /**< number of vectors in blocks */
    int64_t n_blocks;
    float *value; /**< [n_blocks][n_padded][OJ_WIDE] */
    int32_t *row; /**< [n_blocks * OJ_WIDE] row of each vector; -1 in an empty
                       slot */

    /** [2 n_blocks - 1] boxes in preorder: the box of a node, then the boxes of
     * the first half of its blocks, then those of the second half. */
    struct oj_vector_box *box;
};

/** Makes the blocks of those of n_rows vectors that are not NULL, with
 * n_threads; the result does not depend on n_threads. O(dimensions * n_rows +
 * n_rows log n_rows). */
OJ_MUST_USE oj_status oj_vector_blocks_make(
    const struct oj_vectors *vectors, int64_t n_rows, enum oj_vector_norm norm,
    int n_threads, struct oj_vector_blocks *out, struct oj_error *err);

int64_t oj_vector_blocks_bytes(const struct oj_vector_blocks *blocks);

void oj_vector_blocks_free(struct oj_vector_blocks *blocks);

/** Writes the coordinates of a vector to out [n_padded], in the order of
 * `dimension`. */
void oj_vector_blocks_write_coordinates(const struct oj_vector_blocks *blocks,
                                        const double *vector, float *out);

/** Returns the limit for sums in single precision that no pair with a
 * difference of at most `most` exceeds. */
static inline float
oj_vector_blocks_sum_limit(const struct oj_vector_blocks *blocks, double most)
{
    return oj_vector_max_single_precision_sum(
        blocks->norm, blocks->n_dimensions, blocks->scale, most);
}

/** A node of the tree: blocks first to end - 1, and the index of its box. */
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

/** Returns the sum of eight differences of coordinates as the norm forms it:
 * the sum of their squares, or of their absolute values, or the greatest
 * absolute value. */
OJ_INLINE float oj_vector_sum_eight_differences(enum oj_vector_norm norm,
                                                const float d[OJ_LANES])
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

/** Returns a lower bound of the sum of differences between a vector and any
 * vector in a box, over the dimensions of the box. */
OJ_INLINE float oj_vector_box_lower_bound(enum oj_vector_norm norm,
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
    return oj_vector_sum_eight_differences(norm, d);
}

/* Adds eight dimensions of a block to the sums. */
OJ_INLINE void oj_vector_add_eight_dimensions(enum oj_vector_norm norm,
                                              const float *value,
                                              const float *at,
                                              float sum[OJ_WIDE])
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

/** Computes the sum of differences for each vector of a block and returns 1. As
 * soon as all sums exceed the limit, returns 0; the sums are then not
 * complete. */
OJ_INLINE int oj_vector_block_sums(enum oj_vector_norm norm, const float *value,
                                   int64_t n_padded, const float *at,
                                   float limit, float sum[OJ_WIDE])
{
    OJ_SIXTEEN sum[c] = 0.0f;
    for (int64_t p = 0; p < n_padded; p += OJ_LANES)
    {
        int any = 0;
        oj_vector_add_eight_dimensions(norm, value + p * OJ_WIDE, at + p, sum);
        OJ_SIXTEEN any |= sum[c] <= limit;
        if (!any)
            return 0;
    }
    return 1;
}

#endif
