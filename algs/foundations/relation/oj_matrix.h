/** The DE-9IM matrix of two features, and which joins it fulfils.
 *
 *              interior  boundary  exterior      of the join feature
 *   interior      [0]       [1]       [2]
 *   boundary      [3]       [4]       [5]
 *   exterior      [6]       [7]       [8]
 *   of the input feature
 *
 *  Each place has the greatest dimension of what the two sets of points have in
 *  common: 'F' nothing, '0' points, '1' lines, '2' areas.
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

/** A matrix as text, nine letters and a 0. */
struct oj_matrix
{
    char at[10];
};

/** Nothing in common but the exterior: what points, lines and areas are added
 *  to. */
static inline struct oj_matrix oj_matrix_empty(void)
{
    struct oj_matrix matrix = {"FFFFFFFF2"};
    return matrix;
}

/** Where a point lies with regard to a feature: rows and columns. */
enum oj_matrix_place
{
    OJ_PLACE_INTERIOR = 0,
    OJ_PLACE_BOUNDARY = 1,
    OJ_PLACE_EXTERIOR = 2
};

/** Adds points (dimension 0), lines (1) or areas (2) that lie in these places
 *  of the two features. */
static inline void oj_matrix_add(struct oj_matrix *matrix,
                                 enum oj_matrix_place of_input,
                                 enum oj_matrix_place of_join, int dimension)
{
    char *at = &matrix->at[3 * (int)of_input + (int)of_join];
    char digit = (char)('0' + dimension);
    if (*at == 'F' || *at < digit)
        *at = digit;
}

/** 1 when the pattern of nine of T F * 0 1 2, in any case, fits. */
int oj_matrix_fits(const struct oj_matrix *matrix, const char *pattern);

/** Whether a join by predicate holds for two features of this matrix.
 *  Dimensions are taken from the matrix.  Aborts for joins by distance, by
 *  envelopes and by attributes, which no matrix decides: an answer of 0 would
 * be taken for a join without pairs, by the reference as well.  The compiler
 * warns of an op that has no case. */
int oj_matrix_holds(const struct oj_matrix *matrix,
                    const struct oj_relation *relation);

#endif
