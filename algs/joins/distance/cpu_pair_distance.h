/** The features of one side, ready for distances between two of them: boxes,
 *  a tree of their own for those with many segments, cells with a known state
 *  for large polygon rings; and the planar distance between two features.
 *
 *  feature with many segments
 *    item   s0 .. s7 | s8 .. s15 | ...    segments, neighbours together
 *    level 0   box   |    box    | ...    eight segments each
 *    level 1   box of eight boxes  ...
 *    ...       one box
 *
 *  Segments stay in read order, in which neighbours along a line are
 *  neighbours, unless the feature has several rings: then they go in Morton
 *  order.  Features with few segments are read from the flat arrays.
 */
#ifndef CPU_PAIR_DISTANCE_H
#define CPU_PAIR_DISTANCE_H

#include "../../foundations/base/cpu_box_tree.h"
#include "../../foundations/base/oj_feature_box.h"
#include "../../geometry/rings/edge_grid.h"

/* Features with more segments than this have a tree of their own; as many fit
 * a struct oj_segment_list. */
#define OJ_FEW_SEGMENTS 32
#define OJ_OWN_FANOUT OJ_BOX_FANOUT

/** Set in an item that is a point: it ends where it starts. */
#define OJ_ITEM_POINT 0x80000000u

struct oj_own_tree
{
    int64_t first_item, n_items;
    struct oj_box_levels levels;
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_features
{
    const struct oj_flat *flat; /**< outlives this */
    struct oj_box *box;         /**< [n_features], NULL in the short form */
    struct oj_box *ring_box;    /**< [n_rings], layers with polygons */
    int32_t *own;               /**< [n_features] into tree, or -1; NULL in the
                                     short form */
    int64_t n_trees;
    struct oj_own_tree *tree;
    uint32_t *item;             /**< start vertices of segments */
    struct oj_box *node;        /**< boxes of all levels of all trees */
    struct oj_ring_grids grids; /**< where ring_box is there */
};

/** A few segments, from anywhere; points have equal ends. */
struct oj_segment_list
{
    int n;
    struct oj_box box;
    double ax[OJ_FEW_SEGMENTS], ay[OJ_FEW_SEGMENTS];
    double bx[OJ_FEW_SEGMENTS], by[OJ_FEW_SEGMENTS];
};

/** Prepares the features of flat with n_threads. with_interiors: 0 when no
 *  polygon will be asked what it contains.
 *  Errors: OJ_ERR_LIMIT from 2^31 vertices on; OJ_ERR_NOMEM. */
OJ_MUST_USE oj_status oj_distance_features_build(struct oj_features *features,
                                                 const struct oj_flat *flat,
                                                 int with_interiors,
                                                 int n_threads,
                                                 struct oj_error *err);

int64_t oj_distance_features_bytes(const struct oj_features *features);

void oj_distance_features_free(struct oj_features *features);

/** The exact box of a feature; empty when it has no parts. */
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
    const int *cancel; /**< nonzero: distances are given up; may be NULL */
    int64_t n_refined; /**< pairs of segments that were measured */
    /* the segments of the last first feature, while it is asked again */
    int64_t listed; /**< its ordinal + 1 */
    struct oj_segment_list first, second;
};

/** The distance between two features with parts, where it is at most limit;
 *  anything greater than limit, INFINITY too, where it is not.
 *  to_interior: polygons are areas; 0: their rings.
 *
 *  0 when a vertex of one lies in a polygon part of the other (part by part, as
 *  GEOS's distance has it) or when two segments meet, which is decided exactly;
 *  else the least distance of all pairs of segments in GEOS's order of
 *  operations.  Two trees are walked together and whatever is farther apart
 *  than the least distance so far is left out.
 *  Source: simultaneous traversal of two R-trees (Hjaltason and Samet 1998).
 */
double oj_pair_distance(const struct oj_features *a, int64_t feature_a,
                        const struct oj_features *b, int64_t feature_b,
                        int to_interior, double limit,
                        struct oj_pair_scratch *scratch);

#endif
