/** The search that the reference backends share: candidates from a tree of
 *  boxes, GEOS's word on them, the answer from their ranking.
 *
 *  Here: the nearest join features of points, point by point, which is what the
 *  papers measured.  Everything else goes row by row (box_rows.h).
 *
 *  Within a distance: one query of the tree with the point's box grown by that
 *  distance.  Without one, or with one so wide that most of the layer would be
 *  a candidate: a smaller window first, and again with a larger one until the
 *  k-th distance lies within the window or the window holds every feature.  The
 *  points are then always taken in Morton order: what the last point found
 *  says how large a window the next one needs.  That decides time, never the
 *  answer.
 *
 *  Collective: the points of a quadrant share one query, with the quadrant's
 *  box grown, and each takes the candidates in its own window.
 *  Source: Zhang, You, Gruenwald 2012, sections 3.1 and 4.2 ("collective
 *  query"); the growing windows are ours.
 */
#ifndef BOX_SEARCH_H
#define BOX_SEARCH_H

#include "../base/oj_boxes.h"
#include "../geos/geos_pairs.h"
#include "../geos/geos_parts.h"
#include "../pairs/oj_pairs.h"
#include "../relation/oj_backend.h"

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

/** In what order the points of a batch are taken. */
enum oj_visit_order
{
    OJ_VISIT_AS_GIVEN,
    OJ_VISIT_SORTED,    /**< in Morton order, with prepared geometries */
    OJ_VISIT_COLLECTIVE /**< in quadrants, one query for each */
};

/** A join side ready to be searched (box_index.h). Borrows join_side,
 *  tie_rank and boxes. */
struct oj_box_search
{
    const struct oj_box_library *library;
    void *tree; /**< NULL: no feature has a box */
    const struct oj_boxes *boxes;
    const struct oj_flat *join_side;
    struct oj_geos_parts *parts; /**< NULL where the join needs none */
    struct oj_geos_pairs *pairs;
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;
    enum oj_visit_order visit;
    int is_wide;  /**< begin with a small window and grow it */
    double reach; /**< the window to begin with, when wide */
};

/** Fills found with the features whose box intersects window; adds the time
 *  to filter_s when the options ask for it. */
OJ_MUST_USE oj_status oj_box_search_query(const struct oj_box_search *search,
                                          const struct oj_box *window,
                                          struct oj_box_found *found,
                                          double *filter_s,
                                          struct oj_error *err);

/** OJ_ERR_CANCELLED once the cancel flag is up. */
OJ_MUST_USE oj_status oj_box_search_look(const struct oj_box_search *search,
                                         struct oj_error *err);

/** 1 when the points of a batch are searched one by one, here; 0: features as a
 *  whole, in box_rows.h.  The nearest of a multipoint are among the nearest of
 *  its points. */
int oj_box_search_takes(const struct oj_box_search *search,
                        const struct oj_flat *input,
                        const struct oj_pair_filter *filter);

/** Joins a batch that oj_box_search_takes(). */
OJ_MUST_USE oj_status oj_box_search_join(struct oj_box_search *search,
                                         const struct oj_flat *input,
                                         struct oj_matches *out,
                                         struct oj_stats *stats,
                                         struct oj_error *err);

#endif
