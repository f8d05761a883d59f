/** Points in the features that engines leave out which take all rings of a
 *  feature together (oj_overlapping_parts.h).
 *
 *  These features are a layer of their own, which the CPU joins with the points
 *  that are in its box, part by part.  The pairs are then put among those of
 *  the engine, in their order. Source: ours.
 */
#ifndef OJ_OVERLAPPING_POINTS_H
#define OJ_OVERLAPPING_POINTS_H

#include "../relation/oj_backend.h"

struct oj_overlapping_points;

/** Prepares the features that join_side->overlaps marks. relation: one of those
 *  of oj_point_rule.h.  All but stats outlive *out.  O(vertices of these
 *  features). */
OJ_MUST_USE oj_status oj_overlapping_points_make(
    const struct oj_flat *join_side, const int32_t *tie_rank,
    const struct oj_relation *relation, const struct oj_options *options,
    struct oj_overlapping_points **out, struct oj_stats *stats,
    struct oj_error *err);

/** Finds the pairs of a batch of points of the short form with these features,
 *  and puts them into out, the engine's lists for this batch: in tie order,
 *  unless the relation takes any.  Scattered lists become plain ones.
 *  O(points), and little for those outside of the box of all; O(pairs) where
 *  there are any. */
OJ_MUST_USE oj_status oj_overlapping_points_add(
    struct oj_overlapping_points *self, const struct oj_flat *input,
    struct oj_matches *out, struct oj_stats *stats, struct oj_error *err);

/** Accepts NULL. */
void oj_overlapping_points_free(struct oj_overlapping_points *self);

#endif
