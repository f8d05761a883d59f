/** Finds features whose point set (oj_matrix.h) is not what the even-odd rule
 *  gives over all rings together: two polygon parts overlap or share a piece of
 *  an edge, or a polygon encloses no area and counts as a line.  Engines that
 *  use all rings of a feature together must leave these features to other
 *  engines.
 *
 *  Parts that touch in single points only are not a problem: their areas are
 *  disjoint and never cover the whole surroundings of such a point. The rings
 *  of a polygon without area still decide whether a point is on it. Source:
 *  ours.
 */
#ifndef OJ_SELF_OVERLAP_H
#define OJ_SELF_OVERLAP_H

#include "../../../flatten/arrays/oj_flat.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sets *out to [n_features] marks, 1 for such features, or to NULL if there
 *  are none; free with oj_free(). A mark may be unnecessary (for invalid
 *  parts), but none is missing. flat_too 0: skips features that consist of a
 *  single polygon without area. cancel may be NULL.
 *
 *  Cost: O(features), with flat_too O(vertices), and a call of
 *  oj_shape_is_valid() for features whose parts' boxes intersect.
 */
OJ_MUST_USE oj_status oj_self_overlap_find(const struct oj_flat *flat,
                                           int flat_too, int n_threads,
                                           const int *cancel, uint8_t **out,
                                           struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
