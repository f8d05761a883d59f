/** The DE-9IM matrix of two features, and the joins that it satisfies.
 *
 *              interior  boundary  exterior      of the join feature
 *   interior      [0]       [1]       [2]
 *   boundary      [3]       [4]       [5]
 *   exterior      [6]       [7]       [8]
 *   of the input feature
 *
 *  Each entry is the dimension of the intersection of the two point sets: 'F'
 *  empty, '0' points, '1' lines, '2' areas.
 *
 *  A feature is the union of its parts.  Its interior and boundary, decided
 *  exactly:
 *
 *  - A polygon is its rings and the area that they enclose by the even-odd
 *    rule.  A line whose vertices are all equal is a point.  A polygon whose
 *    rings enclose no area is the union of its edges, as lines, or a point.
 *  - A point strictly inside a polygon is in the interior.  A point that is
 *    only on rings is on the boundary, except where rings of several parts meet
 *    and the parts cover its whole neighbourhood: then it is in the interior,
 *    as on an edge that two parts share.
 *  - A point that is in no polygon but on a line is on the boundary if an odd
 *    number of line ends meet there (closed lines have no ends), otherwise in
 *    the interior.
 *  - A point part that is on no line and in no polygon is in the interior.
 *
 *  Source: OGC Simple Features; the union of the parts of collections is that
 *  of GEOS since 3.13.
 */
#ifndef OJ_MATRIX_H
#define OJ_MATRIX_H

#include "oj_relation.h"

/** A matrix as text: nine characters and a terminating 0. */
struct oj_matrix
{
    char at[10];
};

/** Returns the matrix of two disjoint features, to which intersections are
 *  added. */
static inline struct oj_matrix oj_matrix_empty(void)
{
    struct oj_matrix matrix = {"FFFFFFFF2"};
    return matrix;
}

/** Where a point is relative to a feature. Also the row or column of the
 * matrix. */
enum oj_matrix_place
{
    OJ_PLACE_INTERIOR = 0,
    OJ_PLACE_BOUNDARY = 1,
    OJ_PLACE_EXTERIOR = 2
};

/** Adds an intersection of the given dimension (0 points, 1 lines, 2 areas) at
 * these locations of the two features. */
static inline void oj_matrix_add(struct oj_matrix *matrix,
                                 enum oj_matrix_place of_input,
                                 enum oj_matrix_place of_join, int dimension)
{
    char *at = &matrix->at[3 * (int)of_input + (int)of_join];
    char digit = (char)('0' + dimension);
    if (*at == 'F' || *at < digit)
        *at = digit;
}

/** Returns 1 if the matrix matches pattern: nine of T F * 0 1 2, in any
 *  case. */
int oj_matrix_matches_pattern(const struct oj_matrix *matrix,
                              const char *pattern);

/** Returns 1 if two features with this matrix are a pair of the join by
 * predicate. Aborts for other joins, which a matrix does not decide, because
 * with a result of 0 -validate would confirm an empty answer. */
int oj_matrix_satisfies_relation(const struct oj_matrix *matrix,
                                 const struct oj_relation *relation);

#endif
