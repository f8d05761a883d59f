/** Features whose polygon parts overlap or share edges.
 *
 *  A feature is the union of its parts (oj_matrix.h).  Where the areas of no
 *  two polygon parts overlap and no two have a piece of an edge in common,
 *  even-odd over all rings of the feature says so, too, and the engines take
 *  its rings together.  The other features have to be known beforehand: they
 *  are taken part by part.
 *
 *  Parts that touch in single points only are none of these: their areas are
 *  apart, and what surrounds such a point is never covered all round.
 *  Source: ours.
 */
#ifndef OJ_OVERLAPPING_PARTS_H
#define OJ_OVERLAPPING_PARTS_H

#include "../flatten/oj_flat.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sets *out to [n_features], 1 for every such feature, 0 for the others, or to
 *  NULL where there is none; free with oj_free().  Now and then a feature is
 *  marked without need (parts that are not valid), never one left out.
 *
 *  Features of one polygon part cost nothing, those whose parts' boxes are
 *  apart O(vertices) for the boxes; of the others the edges of parts whose
 *  boxes meet go into a packed tree.  cancel: as struct oj_options has it, may
 *  be NULL. */
OJ_MUST_USE oj_status oj_overlapping_parts(const struct oj_flat *flat,
                                           int n_threads, const int *cancel,
                                           uint8_t **out, struct oj_error *err);

#ifdef __cplusplus
}
#endif
#endif
