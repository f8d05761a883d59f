/** Predicates, distances and intersections of pairs of features by GEOS: for
 *  the references, and for values of pairs (overlaps).
 *
 *  One object per thread; objects share nothing.  Geometries are made from the
 *  flat arrays on first use, whole features as GEOS would read them (several
 *  polygons: a MultiPolygon; parts of different kinds: a GeometryCollection),
 *  and cached: a bounded number of the input, and all of the join side, because
 *  benchmarks compare the speed of the references.
 *
 *  Code that includes this header does not need the headers of GEOS.
 */
#ifndef GEOS_PAIRS_H
#define GEOS_PAIRS_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/relation/oj_relation.h"

struct oj_geos_pairs;

/** The result of a question to GEOS about two features. */
enum oj_geos_verdict
{
    OJ_GEOS_NO = 0,
    OJ_GEOS_YES = 1,    /**< also: success, with the result in an output
                             argument */
    OJ_GEOS_CANNOT_SAY, /**< GEOS failed: an invalid geometry, or a
                             collection that its relate does not accept */
    OJ_GEOS_OUT_OF_MEMORY
};

/** Opens an object. join_side must outlive *out.
 * relation  copied; NULL: for intersections and areas only, and the cache of
 *           the join side is bounded, too
 * prepare   0: plain predicates, except for points with polygons, which use
 *           prepared rings (even-odd over all of them, struct oj_flat);
 *           1: prepared geometries for intersects, disjoint, within, contains,
 *           covers and coveredby, so that benchmarks are fair to GEOS */
OJ_MUST_USE oj_status oj_geos_pairs_open(const struct oj_relation *relation,
                                         const struct oj_flat *join_side,
                                         int prepare,
                                         struct oj_geos_pairs **out,
                                         struct oj_error *err);

/** Sets the batch that rows refer to from now on; it must outlive its use. */
void oj_geos_pairs_set_input(struct oj_geos_pairs *pairs,
                             const struct oj_flat *input);

/** Decides the predicate of the relation (any but nearest, dwithin and bbox).
 * Features without parts are never a pair. */
enum oj_geos_verdict oj_geos_pairs_hold(struct oj_geos_pairs *pairs,
                                        int64_t row, int64_t feature);

/** Distance between row and feature: the minimum over all pairs of components,
 * each by plain GEOSDistance; OJ_GEOS_YES if *distance is set. */
enum oj_geos_verdict oj_geos_pairs_distance(struct oj_geos_pairs *pairs,
                                            int64_t row, int64_t feature,
                                            double *distance);

/** The distance of shapes of the relation's kind, by GEOS: hausdorff;
 * hausdorff_points (of multipoints of the vertices); or frechet, which needs
 * about 64 bytes per cell and one level of recursion per step through the
 * table. */
enum oj_geos_verdict oj_geos_pairs_shape_distance(struct oj_geos_pairs *pairs,
                                                  int64_t row, int64_t feature,
                                                  double *distance);

/** Appends the intersection of row and feature to shapes as one more feature,
 * without parts if it is empty.  OJ_GEOS_YES: it was appended;
 * OJ_GEOS_CANNOT_SAY: GEOS failed (an invalid polygon, a collection), and
 * nothing was appended. */
enum oj_geos_verdict oj_geos_pairs_add_common(struct oj_geos_pairs *pairs,
                                              int64_t row, int64_t feature,
                                              struct oj_flat_buf *shapes);

/** The area of a row of the input, or of a join feature (of_input 0), in square
 * CRS units, with overlapping polygon parts counted once: oj_flat_area() of
 * GEOS's union if the parts are not apart.  If GEOS cannot make the union, the
 * areas of the parts are added. */
OJ_MUST_USE oj_status oj_geos_pairs_area(struct oj_geos_pairs *pairs,
                                         int of_input, int64_t feature,
                                         double *area, struct oj_error *err);

/** What row has in common with n features together, each place once: *area of
 * the polygons and, if wants_length, *length of the lines that are not in them.
 * One feature: of their intersection, as oj_geos_pairs_add_common() makes it.
 * Several: polygons are intersected and then united, as GEOS rounds; lines of
 * the row are intersected with the union of the polygons around it. Points
 * cover nothing. The pieces of one row are all in memory.  OJ_GEOS_YES if the
 * outputs are set. */
enum oj_geos_verdict oj_geos_pairs_cover(struct oj_geos_pairs *pairs,
                                         int64_t row, const int32_t *features,
                                         int64_t n, int wants_length,
                                         double *area, double *length);

/** GEOS's text for the last OJ_GEOS_CANNOT_SAY; "" if there was none. */
const char *oj_geos_pairs_message(const struct oj_geos_pairs *pairs);

/** Accepts NULL. */
void oj_geos_pairs_close(struct oj_geos_pairs *pairs);

#endif
