/** The features of one side, ready for distances between two of them: boxes,
 *  a tree of their own for those with many segments, cells with a known state
 *  for large polygon rings.
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
#ifndef CPU_FEATURES_H
#define CPU_FEATURES_H

#include "../base/oj_boxes.h"
#include "../rings/edge_grid.h"

/* Features with more segments than this have a tree of their own; as many fit
 * a struct oj_segment_list. */
#define OJ_FEW_SEGMENTS 32
#define OJ_OWN_FANOUT 8
#define OJ_OWN_LEVELS 11 /* 8^11 segments */

/** Set in an item that is a point: it ends where it starts. */
#define OJ_ITEM_POINT 0x80000000u

struct oj_own_tree
{
    int64_t first_item, n_items;
    int n_levels;
    int64_t first_node[OJ_OWN_LEVELS]; /**< of each level */
};

/** A polygon ring with many vertices. */
struct oj_large_ring
{
    int64_t ring;
    struct oj_edge_grid grid;
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
    uint32_t *item;      /**< start vertices of segments */
    struct oj_box *node; /**< boxes of all levels of all trees */
    int32_t *large;      /**< [n_rings] into large_ring, or -1; NULL: none */
    int64_t n_large_rings;
    struct oj_large_ring *large_ring;
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
OJ_MUST_USE oj_status oj_features_build(struct oj_features *features,
                                        const struct oj_flat *flat,
                                        int with_interiors, int n_threads,
                                        struct oj_error *err);

int64_t oj_features_bytes(const struct oj_features *features);

void oj_features_free(struct oj_features *features);

/** The exact box of a feature; empty when it has no parts. */
static inline struct oj_box oj_features_box(const struct oj_features *features,
                                            int64_t feature)
{
    const struct oj_flat *flat = features->flat;
    struct oj_box box;
    if (features->box != NULL)
        return features->box[feature];
    box.x0 = box.x1 = flat->x[feature];
    box.y0 = box.y1 = flat->y[feature];
    return box;
}

/** The segments of a feature that has no tree of its own. */
void oj_features_list(const struct oj_features *features, int64_t feature,
                      struct oj_segment_list *out);

/** The segments first <= i < end of a tree, at most OJ_FEW_SEGMENTS. */
void oj_features_list_items(const struct oj_features *features, int64_t first,
                            int64_t end, struct oj_segment_list *out);

/** 1 when a polygon part of feature holds the point: it is on a ring of the
 *  part, or inside an odd number of them. */
int oj_features_hold(const struct oj_features *features, int64_t feature,
                     double x, double y);

#endif
