/** Joins points with the features that an engine leaves out because it uses all
 * rings of a feature together (oj_self_overlap.h). These features form a layer
 * of their own, which the CPU joins part by part with the points in its box.
 * The pairs are then merged with those of the engine. Source: ours. */
#ifndef OJ_POINTS_IN_OVERLAPPING_PARTS_H
#define OJ_POINTS_IN_OVERLAPPING_PARTS_H

#include "../../foundations/relation/oj_index.h"

struct oj_overlapping_points;

/** Prepares the features that are marked in args->join_side->overlaps.
 * Precondition: the join is of points with polygons
 * (oj_is_points_in_polygons()). O(vertices). */
OJ_MUST_USE oj_status oj_overlapping_points_make(
    const struct oj_index_args *args, struct oj_overlapping_points **out,
    struct oj_stats *stats, struct oj_error *err);

/** Finds the pairs of the prepared features with a batch of single points, and
 * merges them into *out, the engine's pairs, which must not be scattered. Pairs
 * stay in tie order, unless the relation allows any order. O(points) if no
 * point has such a pair, and otherwise also O(pairs of the engine), which are
 * moved. */
OJ_MUST_USE oj_status oj_overlapping_points_add_pairs(
    struct oj_overlapping_points *self, const struct oj_flat *input,
    struct oj_matches *out, struct oj_stats *stats, struct oj_error *err);

/** self may be NULL. */
void oj_overlapping_points_free(struct oj_overlapping_points *self);

#endif
