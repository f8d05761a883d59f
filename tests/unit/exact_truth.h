/** The exact reference for two features, one call per question. Tests compare
 * faster code with it. Include once, in a test program. */
#ifndef EXACT_TRUTH_H
#define EXACT_TRUTH_H

#include "../../algs/foundations/kernels/oj_ring.h"
#include "../../algs/references/exact/exact_reference.h"

#include <stdio.h>
#include <stdlib.h>

static inline void exact_must(oj_status status, const struct oj_error *err)
{
    if (status == OJ_OK)
        return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

/* Returns the matrix of feature i of a and feature j of b. */
static inline struct oj_matrix exact_matrix(const struct oj_flat *a, int64_t i,
                                            const struct oj_flat *b, int64_t j)
{
    struct oj_error err;
    struct oj_matrix matrix;
    exact_must(oj_exact_matrix(a, i, b, j, &matrix, &err), &err);
    return matrix;
}

/* Returns the location of (x, y) in feature f. The points of a point or line
 * feature are its interior. */
static inline enum oj_location exact_location(const struct oj_flat *flat,
                                              int64_t f, double x, double y)
{
    const struct oj_flat point = oj_flat_of_points(1, NULL, &x, &y);
    struct oj_matrix matrix = exact_matrix(&point, 0, flat, f);
    return matrix.at[0] != 'F'   ? OJ_INSIDE
           : matrix.at[1] != 'F' ? OJ_ON_BOUNDARY
                                 : OJ_OUTSIDE;
}

/* Returns 1 if the join (by predicate or bbox) holds for the two features. */
static inline int exact_holds(const struct oj_relation *relation,
                              const struct oj_flat *a, int64_t i,
                              const struct oj_flat *b, int64_t j)
{
    struct oj_error err;
    int holds;
    exact_must(oj_exact_decide_pair(relation, a, i, b, j, &holds, &err), &err);
    return holds;
}

/* Returns -1, 0 or 1 if the distance of the two features is less than, equal to
 * or greater than limit. */
static inline int exact_order(const struct oj_flat *a, int64_t i,
                              const struct oj_flat *b, int64_t j,
                              enum oj_distance_to distance_to, double limit)
{
    struct oj_error err;
    int order;
    exact_must(
        oj_exact_compare_distance(a, i, b, j, distance_to, limit, &order, &err),
        &err);
    return order;
}

/* Returns 1 if `one` is at least as near to the distance of the two features as
 * `other` is. */
static inline int exact_is_nearer(const struct oj_flat *a, int64_t i,
                                  const struct oj_flat *b, int64_t j,
                                  enum oj_distance_to distance_to, double one,
                                  double other)
{
    struct oj_error err;
    int is_nearer;
    exact_must(oj_exact_first_distance_is_closer(a, i, b, j, distance_to, one,
                                                 other, &is_nearer, &err),
               &err);
    return is_nearer;
}

/* Returns the matrix of the two features in exchanged order. */
static inline struct oj_matrix transposed_matrix(const struct oj_matrix *matrix)
{
    struct oj_matrix out = *matrix;
    for (int i = 0; i < 9; i++)
        out.at[3 * (i % 3) + i / 3] = matrix->at[i];
    return out;
}

#endif
