/** Joins points with the features that were left out of an engine because it
 *  uses all rings of a feature together (oj_self_overlap.h).
 *
 *  These features form a layer of their own, which the CPU joins with the
 *  points in its box, part by part. The pairs are then merged with those of the
 *  engine. Source: ours.
 */
#ifndef OJ_POINTS_IN_OVERLAPPING_PARTS_H
#define OJ_POINTS_IN_OVERLAPPING_PARTS_H

#include "../../foundations/relation/oj_index.h"

struct oj_overlapping_points;

/** Prepares the features marked in args->join_side->overlaps. The relation must
 * be of the kind of oj_is_points_in_polygons.h. O(vertices). */
OJ_MUST_USE oj_status oj_overlapping_points_make(
    const struct oj_index_args *args, struct oj_overlapping_points **out,
    struct oj_stats *stats, struct oj_error *err);

/** Finds the pairs of a batch of points (short form) with these features, and
 * merges them into out, the engine's lists for the batch, which must not be
 * scattered; in tie order, unless the relation accepts any order.  O(points),
 * cheap for points outside of the box; O(pairs) if there are any. */
OJ_MUST_USE oj_status oj_overlapping_points_add(
    struct oj_overlapping_points *self, const struct oj_flat *input,
    struct oj_matches *out, struct oj_stats *stats, struct oj_error *err);

/** Accepts NULL. */
void oj_overlapping_points_free(struct oj_overlapping_points *self);

#endif
