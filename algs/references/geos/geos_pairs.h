/** What GEOS says of pairs of features: the predicates and the distance, for
 * the references, and what two features have in common, as arrays again.
 *
 *  One object per thread; objects share nothing.  Geometries are made from the
 *  flat arrays when they are first asked for, whole features as GEOS would
 *  read them (several polygons: a MultiPolygon; parts of different kinds: a
 *  GeometryCollection), and kept: of the input the latest used, a bounded
 *  number, and all of the join side: a reference's speed is compared.
 *
 *  Knows GEOS; this header does not.
 */
#ifndef GEOS_PAIRS_H
#define GEOS_PAIRS_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/relation/oj_relation.h"

struct oj_geos_pairs;

/** What GEOS answers when it is asked about two features. */
enum oj_geos_verdict
{
    OJ_GEOS_NO = 0,
    OJ_GEOS_YES = 1,    /**< also: there is an answer, which lies elsewhere */
    OJ_GEOS_CANNOT_SAY, /**< it raised: an invalid geometry, or a collection
                             that its relate does not take */
    OJ_GEOS_OUT_OF_MEMORY
};

/** join_side outlives *out.
 *  relation  copied; NULL: only intersections and areas will be asked for, and
 *            of the join side, too, only the latest used are kept
 *  prepare  0: plain predicates throughout, except points against polygons,
 *           which are asked of prepared rings (even-odd over all of them,
 *           struct oj_flat); 1: prepared geometries for intersects, disjoint,
 *           within, contains, covers and coveredby: for speed that is compared
 */
OJ_MUST_USE oj_status oj_geos_pairs_open(const struct oj_relation *relation,
                                         const struct oj_flat *join_side,
                                         int prepare,
                                         struct oj_geos_pairs **out,
                                         struct oj_error *err);

/** The batch that rows are of from now on; outlives its use. */
void oj_geos_pairs_set_input(struct oj_geos_pairs *pairs,
                             const struct oj_flat *input);

/** Whether the predicate of the relation (any but nearest, dwithin and bbox)
 *  holds. Features without parts never do. */
enum oj_geos_verdict oj_geos_pairs_hold(struct oj_geos_pairs *pairs,
                                        int64_t row, int64_t feature);

/** Distance between row and feature, the least over all pairs of components,
 *  each by plain GEOSDistance; OJ_GEOS_YES when *distance is set. */
enum oj_geos_verdict oj_geos_pairs_distance(struct oj_geos_pairs *pairs,
                                            int64_t row, int64_t feature,
                                            double *distance);

/** GEOS's distance of the two shapes, of the relation's kind: hausdorff; of
 *  multipoints of the vertices, hausdorff_points; or frechet, which takes some
 *  64 bytes a cell and a call of itself for each step through the table. */
enum oj_geos_verdict oj_geos_pairs_shape_distance(struct oj_geos_pairs *pairs,
                                                  int64_t row, int64_t feature,
                                                  double *distance);

/** Adds the intersection of row and feature to shapes as one more feature;
 *  without parts when they have nothing in common.  OJ_GEOS_YES when it is
 *  added; OJ_GEOS_CANNOT_SAY when GEOS raised (an invalid polygon, a
 *  collection): then nothing is added. */
enum oj_geos_verdict oj_geos_pairs_add_common(struct oj_geos_pairs *pairs,
                                              int64_t row, int64_t feature,
                                              struct oj_flat_buf *shapes);

/** The area of a row of the input, or (of_input 0) of a join feature, as the
 *  union of its parts, square CRS units: oj_flat_area(), of GEOS's union where
 *  polygon parts are not apart.  Where GEOS can make none, of the parts added
 *  up. */
OJ_MUST_USE oj_status oj_geos_pairs_area(struct oj_geos_pairs *pairs,
                                         int of_input, int64_t feature,
                                         double *area, struct oj_error *err);

/** GEOS's text for the last CANNOT_SAY; "" when there was none. */
const char *oj_geos_pairs_message(const struct oj_geos_pairs *pairs);

/** Accepts NULL. */
void oj_geos_pairs_close(struct oj_geos_pairs *pairs);

#endif
