/** The DE-9IM matrix of two features, and the joins that hold for it.
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
 *  The sets of points of a feature, a union of its parts, decided exactly:
 *
 *  - A part that is a polygon is the area that its rings enclose by even-odd,
 *    and its rings.  A line whose vertices are all equal is that point.  A
 *    polygon whose rings enclose nothing is the lines that its rings are made
 *    of, each piece once, or a point.
 *  - A point strictly inside a polygon part is in the interior.  A point on
 *    rings only is on the boundary, unless rings of two parts or more pass
 *    there and the parts cover all of its surroundings: then it is in the
 *    interior, like the edge that two parts share.
 *  - Of the points of no polygon those of lines are next: on the boundary where
 *    an odd number of ends of the feature's lines (two of each line that is not
 *    closed) meet, in the interior else.
 *  - The points of part kind point are interior where nothing else is.
 *
 *  Source: OGC Simple Features; the union of the parts of collections is that
 *  of GEOS since 3.13.
 */
#ifndef OJ_MATRIX_H
#define OJ_MATRIX_H

#include "oj_relation.h"

/** A matrix as text: nine letters and a 0. */
struct oj_matrix
{
    char at[10];
};

/** The matrix of two features without a common point; intersections are added
 * to it. */
static inline struct oj_matrix oj_matrix_empty(void)
{
    struct oj_matrix matrix = {"FFFFFFFF2"};
    return matrix;
}

/** Location of a point relative to a feature: a row or column of the matrix. */
enum oj_matrix_place
{
    OJ_PLACE_INTERIOR = 0,
    OJ_PLACE_BOUNDARY = 1,
    OJ_PLACE_EXTERIOR = 2
};

/** Adds an intersection of the given dimension (0 points, 1 lines, 2 areas)
 * that lies at these locations of the two features. */
static inline void oj_matrix_add(struct oj_matrix *matrix,
                                 enum oj_matrix_place of_input,
                                 enum oj_matrix_place of_join, int dimension)
{
    char *at = &matrix->at[3 * (int)of_input + (int)of_join];
    char digit = (char)('0' + dimension);
    if (*at == 'F' || *at < digit)
        *at = digit;
}

/** 1 if the matrix fits pattern: nine of T F * 0 1 2, in any case. */
int oj_matrix_fits(const struct oj_matrix *matrix, const char *pattern);

/** 1 if a join by predicate holds for two features with this matrix.  Aborts
 * for joins by distance, envelopes or attributes, which no matrix decides: a 0
 * would look like a join without pairs, to the reference as well.  The
 * compiler warns about an op without a case. */
int oj_matrix_holds(const struct oj_matrix *matrix,
                    const struct oj_relation *relation);

#endif
