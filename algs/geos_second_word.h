/** What GEOS still says of a pair on which its plain predicate raised.
 *
 *  Plain predicates node the two geometries and raise where the labels of an
 *  invalid polygon contradict each other ("side location conflict").  Prepared
 *  geometries answer most questions from segments that cross and points that
 *  are located, without nodes and labels, and so do not raise.  Their answer is
 *  GEOS's word, too, and where plain GEOS has none it is taken.
 *
 *    intersects, disjoint         prepared intersects
 *    all that need a common point denied where prepared intersects denies it
 *    crosses, overlaps            denied where dimensions alone forbid it
 *    where one properly contains the other (all vertices strictly inside by
 *    even-odd, no segments that meet), contains, covers and contains_properly
 *    hold that way round, and equals, touches, crosses and overlaps do not
 *
 *  That a polygon is properly contained is sure also when the other is invalid;
 *  that it is not, is not: prepared contains and covers are not asked, as they
 *  deny that two polygons that share an edge cover what lies across it.
 *  Everything else stays undecided.
 */
#ifndef GEOS_SECOND_WORD_H
#define GEOS_SECOND_WORD_H

#include "geos_features.h"
#include "geos_pairs.h"

/** NO or YES, or CANNOT_SAY: the prepared predicates do not tell, either.  a
 * and b are of one kind each; of the last NULL or 2 that GEOS gave, its message
 *  handler knows the reason. */
enum oj_geos_verdict oj_geos_second_word(const struct oj_relation *relation,
                                         struct oj_geos_features *input,
                                         struct oj_geos_kept *a,
                                         struct oj_geos_features *join_side,
                                         struct oj_geos_kept *b);

#endif
