/** The features of a layer on a device, ready to be compared pair by pair
 *  (oj_meet.h): pairs whose boxes pass, and which of them meet. */
#ifndef CUDA_INTERSECTS_H
#define CUDA_INTERSECTS_H

#include "../../foundations/tree/cuda_tree.h"
#include "oj_meet.h"

/** Owns nothing; all arrays are those of the work that it is made with. */
struct oj_cuda_meet_side
{
    const struct oj_cuda_layer *layer;
    struct oj_meet_feature *feature; /**< by rank */

    /* Only for meeting. Images are relative to one origin for all sides. */
    struct oj_meet_image *image; /**< [segments] */
    struct oj_meet_image *chain; /**< of 32 segments */
    struct oj_tree_rings rings;
};

/** Looks at the features of layer, which outlives the side. *out is zeroed. */
OJ_MUST_USE oj_status oj_cuda_intersects_side_make(
    struct oj_cuda_work *work, const struct oj_cuda_layer *layer,
    struct oj_cuda_meet_side *out);

/** What meeting needs. */
OJ_MUST_USE oj_status
oj_cuda_intersects_side_add_edges(struct oj_cuda_work *work, double x0,
                                  double y0, struct oj_cuda_meet_side *side);

/** Pairs of a row and a join feature, by rows. */
struct oj_cuda_box_pairs
{
    int64_t n;
    int32_t *row;     /**< [n], of the input side */
    int32_t *feature; /**< [n] rank */
};

/** The pairs of n rows whose boxes pass test, work's; tree is that of the join
 *  features' boxes. OJ_ERR_NOMEM also for more than most of them, or of places
 *  in the tree that must be looked at. Waits for the stream. */
OJ_MUST_USE oj_status oj_cuda_box_pairs_find(
    struct oj_cuda_work *work, const struct oj_cuda_tree *tree,
    const struct oj_meet_feature *features, const struct oj_meet_feature *rows,
    int64_t n, enum oj_box_test test, int64_t most,
    struct oj_cuda_box_pairs *out);

/** Fills said [n], enum oj_said, of the pairs: whether they meet. x0, y0: the
 *  origin of both sides' images. Waits for the stream. */
OJ_MUST_USE oj_status
oj_cuda_intersects(struct oj_cuda_work *work, double x0, double y0,
                   const struct oj_cuda_meet_side *rows,
                   const struct oj_cuda_meet_side *features,
                   const struct oj_cuda_box_pairs *pairs, uint8_t *said);

#endif
