/** Finds features for which the even-odd rule over all rings together gives a
 *  wrong point set (oj_matrix.h).  Either two polygon parts overlap or share a
 *  piece of an edge, or a polygon encloses no area and counts as a line.
 *  Engines that use this rule must leave such features to other engines.
 *
 *  Parts that touch in single points only are not a problem: their areas are
 *  disjoint and never cover the whole surroundings of such a point. The rings
 *  of a polygon without area still decide whether a point is on it.
 *
 *  Source: ours.
 */
#ifndef OJ_SELF_OVERLAP_H
#define OJ_SELF_OVERLAP_H

#include "../../../flatten/arrays/oj_flat.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sets *out to [n_features] marks, 1 for the features described above, or to
 *  NULL if there are none; free with oj_free(). Features with invalid parts may
 *  be marked although the rule is right for them, but no mark is missing.
 *  with_zero_area 0: does not search for polygons without area. cancel may be
 * NULL.
 *
 *  Cost: O(features), with with_zero_area O(vertices), and a call of
 *  oj_shape_is_valid() for features whose parts' boxes intersect.
 */
OJ_MUST_USE oj_status oj_self_overlap_find(const struct oj_flat *flat,
                                           int with_zero_area, int n_threads,
                                           const int *cancel, uint8_t **out,
                                           struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
