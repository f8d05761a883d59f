/** The exact word on one pair of features, in rational arithmetic: slow, plain
 *  to read, and independent of what the joins compute with.  -validate asks it
 *  about every pair on which a backend and its reference differ, and tests hold
 *  the joins against it.
 *
 *  Coordinates are scaled to whole numbers of any size, so that every sign,
 *  every crossing point and every comparison is exact, for all finite doubles.
 */
#ifndef EXACT_REFERENCE_H
#define EXACT_REFERENCE_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/relation/oj_matrix.h"

/** The DE-9IM matrix of feature row of input and feature of join_side, as
 *  oj_matrix.h defines it.  Features without parts have an empty interior.
 *  Errors: OJ_ERR_NOMEM.  O((n + m)^2) in the vertices in the worst case; boxes
 *  leave out most of it. */
OJ_MUST_USE oj_status oj_exact_matrix(const struct oj_flat *input, int64_t row,
                                      const struct oj_flat *join_side,
                                      int64_t feature, struct oj_matrix *out,
                                      struct oj_error *err);

/** Whether the join of relation, a predicate or bbox, holds; not for features
 *  without parts, which join nothing.  Of relation only op and mask are read.
 *  Errors: OJ_ERR_NOMEM; OJ_ERR_ARG for any other join. */
OJ_MUST_USE oj_status oj_exact_holds(const struct oj_relation *relation,
                                     const struct oj_flat *input, int64_t row,
                                     const struct oj_flat *join_side,
                                     int64_t feature, int *holds,
                                     struct oj_error *err);

/** Compares the exact planar distance of two features with parts to a number:
 *  *order is -1, 0 or 1 when the distance is less than, equal to or greater
 *  than limit (>= 0, finite).  The distance is 0 where the features have a
 *  common point by oj_matrix.h; with OJ_TO_BOUNDARY polygons are their rings.
 *  Errors: OJ_ERR_NOMEM; OJ_ERR_ARG for a feature without parts. */
OJ_MUST_USE oj_status oj_exact_compare_distance(
    const struct oj_flat *input, int64_t row, const struct oj_flat *join_side,
    int64_t feature, enum oj_distance_to distance_to, double limit, int *order,
    struct oj_error *err);

/** *is_nearer: 1 when |a - distance| <= |b - distance|, exactly; a and b are
 *  finite and >= 0. */
OJ_MUST_USE oj_status oj_exact_is_nearer(
    const struct oj_flat *input, int64_t row, const struct oj_flat *join_side,
    int64_t feature, enum oj_distance_to distance_to, double a, double b,
    int *is_nearer, struct oj_error *err);

#endif
