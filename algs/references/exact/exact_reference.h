/** Decides one pair of features exactly, by rational arithmetic: slow, easy to
 *  read, and independent of the arithmetic of the joins.
 *
 *  -validate uses it for every pair on which a backend and its reference
 *  differ; tests compare joins with it. Coordinates are scaled to integers of
 *  any size, so every sign, crossing and comparison is exact, for all finite
 *  doubles.
 */
#ifndef EXACT_REFERENCE_H
#define EXACT_REFERENCE_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/relation/oj_matrix.h"

/** Computes the DE-9IM matrix (oj_matrix.h) of feature `row` of input and
 * `feature` of join_side. A feature without parts has an empty interior.
 * Errors: OJ_ERR_NOMEM. O((n + m)^2) in the vertices in the worst case; boxes
 * exclude most pairs of segments. */
OJ_MUST_USE oj_status oj_exact_matrix(const struct oj_flat *input, int64_t row,
                                      const struct oj_flat *join_side,
                                      int64_t feature, struct oj_matrix *out,
                                      struct oj_error *err);

/** Sets *holds to 1 if the features are a pair of the join, which must be a
 * predicate or bbox. Features without parts never are a pair. Reads only op
 * and mask of relation. Errors: OJ_ERR_NOMEM; OJ_ERR_INTERNAL for other joins.
 */
OJ_MUST_USE oj_status oj_exact_decide_pair(const struct oj_relation *relation,
                                           const struct oj_flat *input,
                                           int64_t row,
                                           const struct oj_flat *join_side,
                                           int64_t feature, int *holds,
                                           struct oj_error *err);

/** Compares the exact planar distance of two features with limit (finite, >=
 * 0): *order is -1, 0 or 1 if it is less, equal or greater. The distance is 0
 * if the features have a common point (oj_matrix.h); with OJ_TO_BOUNDARY
 * polygons are only their rings. Errors: OJ_ERR_NOMEM; OJ_ERR_INTERNAL for a
 * feature without parts. */
OJ_MUST_USE oj_status oj_exact_compare_distance(
    const struct oj_flat *input, int64_t row, const struct oj_flat *join_side,
    int64_t feature, enum oj_distance_to distance_to, double limit, int *order,
    struct oj_error *err);

/** Sets *is_nearer to 1 if the exact distance d is at least as close to a as to
 * b: |a - d| <= |b - d|. a and b are finite and >= 0. */
OJ_MUST_USE oj_status oj_exact_first_distance_is_closer(
    const struct oj_flat *input, int64_t row, const struct oj_flat *join_side,
    int64_t feature, enum oj_distance_to distance_to, double a, double b,
    int *is_nearer, struct oj_error *err);

#endif
