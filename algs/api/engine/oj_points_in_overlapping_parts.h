/** Points in the features that engines leave out which take all rings of a
 *  feature together (oj_self_overlap.h).
 *
 *  These features are a layer of their own, which the CPU joins with the points
 *  that are in its box, part by part.  The pairs are then put among those of
 *  the engine, in their order. Source: ours.
 */
#ifndef OJ_POINTS_IN_OVERLAPPING_PARTS_H
#define OJ_POINTS_IN_OVERLAPPING_PARTS_H

#include "../../foundations/relation/oj_index.h"

struct oj_overlapping_points;

/** Prepares the features that args->join_side->overlaps marks. The relation is
 *  one of those of oj_is_points_in_polygons.h. O(vertices). */
OJ_MUST_USE oj_status oj_overlapping_points_make(
    const struct oj_index_args *args, struct oj_overlapping_points **out,
    struct oj_stats *stats, struct oj_error *err);

/** Finds the pairs of a batch of points of the short form with these features,
 *  and puts them into out, the engine's lists for this batch, which are not
 *  scattered: in tie order, unless the relation takes any.  O(points), and
 *  little for those outside of the box of all; O(pairs) where there are any. */
OJ_MUST_USE oj_status oj_overlapping_points_add(
    struct oj_overlapping_points *self, const struct oj_flat *input,
    struct oj_matches *out, struct oj_stats *stats, struct oj_error *err);

/** Accepts NULL. */
void oj_overlapping_points_free(struct oj_overlapping_points *self);

#endif
