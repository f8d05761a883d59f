/** The search that the reference backends share: candidates from a library's
 *  tree of boxes, GEOS's word on them, the answer from their ranking; every
 *  join, features of any kinds, each as a whole, one thread.
 *
 *  All joins but nearest: one query of the tree with the row's box, grown by
 *  the greatest distance where the join has one; GEOS decides every candidate
 *  that the pair filter lets pass (geos_pairs.h).  disjoint, and patterns that
 *  hold for features apart: every feature is a candidate; GEOS is not asked
 *  whether features are disjoint whose envelopes are.  bbox: the exact
 *  envelopes decide.
 *
 *  nearest within a distance: the same.  Without one, or with one so wide that
 *  most of the layer would be a candidate: a smaller window first, and again
 *  with a larger one until the k-th distance lies within the window or the
 *  window holds every feature.  Points are then always taken in Morton order:
 *  what the last one found says how large a window the next one needs.  That
 *  decides time, never the answer.
 *
 *  Collective: the rows of a quadrant share one query, with the quadrant's box
 *  grown, and each takes the candidates in its own window.
 *
 *  A pair that GEOS cannot decide is listed as undecided; of the nearest join
 *  the row, where that pair could be in its answer.
 *
 *  Source: Zhang, You, Gruenwald 2012, sections 3.1 and 4.2 ("collective
 *  query"); the growing windows are ours.
 */
#ifndef BOX_BACKEND_H
#define BOX_BACKEND_H

#include "../base/oj_boxes.h"

/** Features found by a query. Owner; zeroed memory is a valid empty one. */
struct oj_box_found
{
    int64_t n, capacity;
    int32_t *feature;
};

/** Adds feature to found. */
OJ_MUST_USE oj_status oj_box_found_add(struct oj_box_found *found,
                                       int64_t feature, struct oj_error *err);

/** A library's tree of boxes. */
struct oj_box_library
{
    /** The tree of those boxes that are not empty, of which there is one at
     *  least; boxes outlive it. */
    oj_status (*build)(const struct oj_boxes *boxes, void **tree,
                       struct oj_error *err);
    /** Adds to found the features whose box intersects window. */
    oj_status (*query)(void *tree, const struct oj_box *window,
                       struct oj_box_found *found, struct oj_error *err);
    void (*free)(void *tree); /**< accepts NULL */
};

extern const struct oj_box_library oj_geos_tree;
extern const struct oj_box_library oj_spatialindex_tree;

#endif
