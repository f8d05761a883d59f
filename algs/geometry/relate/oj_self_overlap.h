/** Features whose rings, taken all together by even-odd, do not say what the
 *  feature is (oj_matrix.h): the areas of two polygon parts overlap or share a
 *  piece of an edge, or a polygon encloses nothing and so is a line.  Engines
 *  that take all rings of a feature together have to leave these out.
 *
 *  Parts that touch in single points only are none of these: their areas are
 *  apart, and what surrounds such a point is never covered all round.  Whether
 * a point is anywhere on a feature is said by the rings of a flat polygon, too.
 *  Source: ours.
 */
#ifndef OJ_SELF_OVERLAP_H
#define OJ_SELF_OVERLAP_H

#include "../../../flatten/arrays/oj_flat.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sets *out to [n_features], 1 for every such feature, 0 for the others, or to
 *  NULL where there is none; free with oj_free().  Now and then a feature is
 *  marked without need (parts that are not valid), never one left out.
 *  flat_too: 0 leaves out polygons that enclose nothing and have no other part
 *  O(features), with flat_too O(vertices), and oj_shape_is_nice() of those
 * whose parts' boxes meet.  cancel: as struct oj_options has it, may be NULL.
 */
OJ_MUST_USE oj_status oj_overlapping_parts(const struct oj_flat *flat,
                                           int flat_too, int n_threads,
                                           const int *cancel, uint8_t **out,
                                           struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
