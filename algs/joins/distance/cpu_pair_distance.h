/** Planar distance between two features, and the features of one side prepared
 *  for it: boxes, a segment tree for each feature with many segments, and grids
 *  of cells for large polygon rings.
 *
 *  feature with many segments
 *    item   s0 .. s7 | s8 .. s15 | ...    segments, neighbours together
 *    level 0   box   |    box    | ...    eight segments each
 *    level 1   box of eight boxes  ...
 *    ...       one box
 *
 *  Segments stay in read order, in which neighbours along a line are adjacent.
 *  If the feature has several rings, its segments are sorted in Morton order.
 *  Features with few segments are read from the flat arrays. */
#ifndef CPU_PAIR_DISTANCE_H
#define CPU_PAIR_DISTANCE_H

#include "../../foundations/base/cpu_box_levels.h"
#include "../../foundations/base/oj_feature_box.h"
#include "../../geometry/rings/edge_grid.h"

/* Features with more segments than this get a tree; a struct oj_segment_list
 * has room for this many. */
#define OJ_FEW_SEGMENTS 32
#define OJ_FEATURE_TREE_FANOUT OJ_BOX_FANOUT

/** Flag in an item: the segment is a point, with equal ends. */
#define OJ_ITEM_POINT 0x80000000u

struct oj_feature_tree
{
    int64_t first_item, n_items;
    struct oj_box_levels levels;
};

/** The features of one side, prepared for oj_pair_distance(). Owner; zeroed
 * memory is a valid empty one. */
struct oj_features
{
    const struct oj_flat *flat; /**< must outlive this object */
    struct oj_box *box;         /**< [n_features]; NULL if flat has the short
                                     form (single points without offsets) */
    struct oj_box *ring_box;    /**< [n_rings] boxes of the rings; NULL if there
                                     are no polygons or their interiors do not
                                     count */
    int32_t *own;               /**< [n_features] index in tree[] of the
                                     feature's tree, or -1 if it has few
                                     segments; NULL in the short form */
    int64_t n_trees;
    struct oj_feature_tree *tree;
    uint32_t *item;             /**< first vertex of each segment, for all trees
                                     one after the other; may have the flag
                                     OJ_ITEM_POINT */
    struct oj_box *node;        /**< boxes of all levels of all trees */
    struct oj_ring_grids grids; /**< used only if ring_box is present */
};

/** Up to OJ_FEW_SEGMENTS segments; a point is a segment with equal ends. */
struct oj_segment_list
{
    int n;
    struct oj_box box;
    double ax[OJ_FEW_SEGMENTS], ay[OJ_FEW_SEGMENTS];
    double bx[OJ_FEW_SEGMENTS], by[OJ_FEW_SEGMENTS];
};

/** Prepares the features of flat with n_threads. If with_interiors is 0,
 * polygons count as their rings only, and nothing is prepared for points inside
 * of them. Errors: OJ_ERR_LIMIT from 2^31 vertices on; OJ_ERR_NOMEM. */
OJ_MUST_USE oj_status oj_distance_features_build(struct oj_features *features,
                                                 const struct oj_flat *flat,
                                                 int with_interiors,
                                                 int n_threads,
                                                 struct oj_error *err);

int64_t oj_distance_features_bytes(const struct oj_features *features);

void oj_distance_features_free(struct oj_features *features);

/** Returns the exact box of a feature; empty if it has no parts. */
static inline struct oj_box
oj_distance_features_box(const struct oj_features *features, int64_t feature)
{
    const struct oj_flat *flat = features->flat;
    struct oj_box box;
    if (features->box != NULL)
        return features->box[feature];
    box.x0 = box.x1 = flat->x[feature];
    box.y0 = box.y1 = flat->y[feature];
    return box;
}

/** Working memory of one thread; zeroed memory is valid. */
struct oj_pair_scratch
{
    const int *cancel; /**< the computation is stopped if *cancel is nonzero;
                            may be NULL */
    int64_t n_refined; /**< each pair of segments that is measured adds 1 */
    int64_t listed;    /**< ordinal + 1 of the feature a of the last call, whose
                            segments `first` keeps for the next one; 0 if it
                            keeps none */
    struct oj_segment_list first, second;
};

/** Returns the distance between two features with parts if it is at most limit;
 * otherwise any greater number, possibly INFINITY. With to_interior 1 polygons
 * are areas, with 0 they are only their rings. The result means nothing if
 * *scratch->cancel is set meanwhile.
 *
 * For areas the distance is 0 if a vertex of one feature is in a polygon part
 * of the other (part by part, like GEOS's distance). In both cases it is 0 if
 * two segments intersect (decided exactly), and otherwise the minimum over all
 * pairs of segments, in GEOS's order of operations.
 *
 * Two trees are traversed simultaneously; subtrees farther apart than the
 * minimum so far are skipped. Source: simultaneous traversal of two R-trees
 * (Hjaltason and Samet 1998). */
double oj_pair_distance(const struct oj_features *a, int64_t feature_a,
                        const struct oj_features *b, int64_t feature_b,
                        int to_interior, double limit,
                        struct oj_pair_scratch *scratch);

#endif
