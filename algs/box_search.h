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

#include "geos_pairs.h"
#include "geos_parts.h"
#include "oj_backend.h"
#include "oj_boxes.h"

/** Features found by a query. Owner; zeroed memory is a valid empty one. */
struct oj_found
{
    int64_t n, capacity;
    int32_t *feature;
};

/** Adds feature to found. */
OJ_MUST_USE oj_status oj_found_add(struct oj_found *found, int64_t feature,
                                   struct oj_error *err);

/** A tree of the join side's boxes. */
struct oj_box_tree
{
    void *tree;
    /** Empties found and fills it with the features whose box intersects
     *  window. */
    oj_status (*query)(void *tree, const struct oj_box *window,
                       struct oj_found *found, struct oj_error *err);
};

/** In what order the points of a batch are taken. */
enum oj_visit
{
    OJ_VISIT_AS_GIVEN,
    OJ_VISIT_SORTED,    /**< in Morton order, with prepared geometries */
    OJ_VISIT_COLLECTIVE /**< in quadrants, one query for each */
};

/** A join side ready to be searched. Borrows join_side and tie_rank; of the
 *  others a backend sets tree and boxes, which outlive the search. */
struct oj_box_search
{
    struct oj_box_tree tree;
    const struct oj_boxes *boxes;
    const struct oj_flat *join_side;
    struct oj_geos_parts *parts; /**< NULL where the join needs none */
    struct oj_geos_pairs *pairs;
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;
    enum oj_visit visit;
    int is_wide;  /**< begin with a small window and grow it */
    double reach; /**< the window to begin with, when wide */
};

/** Takes what to ask and how. OJ_ERR_UNSUPPORTED for what GEOS cannot do. */
OJ_MUST_USE oj_status oj_box_search_open(struct oj_box_search *search,
                                         const struct oj_backend *backend,
                                         const struct oj_flat *join_side,
                                         const int32_t *tie_rank,
                                         const struct oj_relation *relation,
                                         const struct oj_options *options,
                                         struct oj_error *err);

/** Makes parts, pairs, is_wide and reach, once tree and boxes are set. */
OJ_MUST_USE oj_status oj_box_search_prepare(struct oj_box_search *search,
                                            struct oj_error *err);

/** Frees what the two above made. */
void oj_box_search_close(struct oj_box_search *search);

/** Joins a batch: the join of a backend. */
OJ_MUST_USE oj_status oj_box_search_join(struct oj_box_search *search,
                                         const struct oj_flat *input,
                                         struct oj_matches *out,
                                         struct oj_stats *stats,
                                         struct oj_error *err);

#endif
