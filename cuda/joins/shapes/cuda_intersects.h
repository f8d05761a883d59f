/** Prepares a layer in device memory for tests of pairs (oj_meet.h), finds the
 *  pairs whose boxes pass a test (enum oj_box_test), and their verdicts. */
#ifndef CUDA_INTERSECTS_H
#define CUDA_INTERSECTS_H

#include "../../foundations/tree/cuda_tree.h"
#include "oj_meet.h"

/** The prepared layer. Owns nothing: the arrays belong to the oj_cuda_work
 *  that was passed to the functions below. */
struct oj_cuda_meet_side
{
    const struct oj_cuda_layer *layer;
    struct oj_meet_feature *feature; /**< [n_features] by rank */

    /* Used only by oj_cuda_intersects(). Images of all sides are relative to
     * one origin. */
    struct oj_meet_image *image; /**< [n_segments] */
    struct oj_meet_image *chain; /**< one per 32 segments */
    struct oj_tree_rings rings;
};

/** Prepares the features of layer, which must outlive the side. *out must be
 *  zeroed. */
OJ_MUST_USE oj_status oj_cuda_intersects_side_make(
    struct oj_cuda_work *work, const struct oj_cuda_layer *layer,
    struct oj_cuda_meet_side *out);

/** Adds the images of segments and chains, relative to x0, y0. */
OJ_MUST_USE oj_status
oj_cuda_intersects_side_add_edges(struct oj_cuda_work *work, double x0,
                                  double y0, struct oj_cuda_meet_side *side);

/** Pairs of a row and a join feature, sorted by row. */
struct oj_cuda_box_pairs
{
    int64_t n;
    int32_t *row;     /**< [n] row of the input side */
    int32_t *feature; /**< [n] rank */
};

/** Finds the pairs of n rows whose boxes pass the test; *work owns the arrays.
 *  tree holds the boxes of the join features. Fails with OJ_ERR_NOMEM if memory
 *  is missing or there are more than `most` pairs or nodes to visit. Waits for
 *  the stream. */
OJ_MUST_USE oj_status oj_cuda_box_pairs_find(
    struct oj_cuda_work *work, const struct oj_cuda_tree *tree,
    const struct oj_meet_feature *features, const struct oj_meet_feature *rows,
    int64_t n, enum oj_box_test test, int64_t most,
    struct oj_cuda_box_pairs *out);

/** Writes the verdict (enum oj_pair_verdict) of each pair to verdict [n]. (x0,
 *  y0) is the origin of the images of both sides. Waits for the stream. */
OJ_MUST_USE oj_status
oj_cuda_intersects(struct oj_cuda_work *work, double x0, double y0,
                   const struct oj_cuda_meet_side *rows,
                   const struct oj_cuda_meet_side *features,
                   const struct oj_cuda_box_pairs *pairs, uint8_t *verdict);

#endif
