/** Predicates, distances and intersections of pairs of features by GEOS, for
 *  the reference backends and for values of pairs (overlaps). One object per
 *  thread; objects share nothing.
 *
 *  Geometries are made from the arrays on first use, as GEOS would read the
 *  feature: several polygons become a MultiPolygon, parts of different kinds a
 *  GeometryCollection. They are cached: a limited number for the input, all of
 *  the join side, so that benchmarks measure GEOS and not the conversion.
 *
 *  Code that includes this header does not need GEOS's headers.
 */
#ifndef GEOS_PAIRS_H
#define GEOS_PAIRS_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/relation/oj_relation.h"

struct oj_geos_pairs;

/** Result of a GEOS predicate or computation for two features. */
enum oj_geos_outcome
{
    OJ_GEOS_NO = 0,
    OJ_GEOS_YES = 1,    /**< or success, with a result in an output argument */
    OJ_GEOS_CANNOT_SAY, /**< GEOS failed: an invalid geometry, or a collection
                             that its relate() does not support */
    OJ_GEOS_OUT_OF_MEMORY
};

/** Makes an object for pairs with features of join_side, which must outlive it.
 * relation  copied; may be NULL if only intersections and areas are computed,
 *           and then limits the cache of the join side, too
 * prepare   0: plain predicates, except for points with polygons, which use
 *           prepared rings (even-odd over all of them, struct oj_flat); 1:
 *           prepared geometries for intersects, disjoint, within, contains,
 *           covers and coveredby, which is GEOS's fastest way, for benchmarks
 */
OJ_MUST_USE oj_status oj_geos_pairs_open(const struct oj_relation *relation,
                                         const struct oj_flat *join_side,
                                         int prepare,
                                         struct oj_geos_pairs **out,
                                         struct oj_error *err);

/** Sets the batch that later rows refer to. It must stay valid while it is
 * used. */
void oj_geos_pairs_set_input(struct oj_geos_pairs *pairs,
                             const struct oj_flat *input);

/** Removes a join feature from the cache. Called when its point has moved. */
void oj_geos_pairs_evict_feature(struct oj_geos_pairs *pairs, int64_t feature);

/** Decides the relation's predicate (not nearest, dwithin or bbox) for a pair.
 * Features without parts are never a pair. */
enum oj_geos_outcome oj_geos_pairs_decide(struct oj_geos_pairs *pairs,
                                          int64_t row, int64_t feature);

/** Computes the distance between row and feature: the minimum over all pairs of
 * components, each by GEOSDistance. *distance is set if the result is
 * OJ_GEOS_YES. */
enum oj_geos_outcome oj_geos_pairs_distance(struct oj_geos_pairs *pairs,
                                            int64_t row, int64_t feature,
                                            double *distance);

/** Computes the relation's distance of shapes by GEOS: hausdorff,
 * hausdorff_points (of the vertices as multipoints) or frechet. The last needs
 * about 64 bytes per cell of the table and recurses once per step through it.
 */
enum oj_geos_outcome oj_geos_pairs_shape_distance(struct oj_geos_pairs *pairs,
                                                  int64_t row, int64_t feature,
                                                  double *distance);

/** Appends the intersection of row and feature to shapes, as a feature, without
 * parts if it is empty, and returns OJ_GEOS_YES. Returns OJ_GEOS_CANNOT_SAY
 * and appends nothing if GEOS failed (an invalid polygon, a collection). */
enum oj_geos_outcome oj_geos_pairs_add_intersection(struct oj_geos_pairs *pairs,
                                                    int64_t row,
                                                    int64_t feature,
                                                    struct oj_flat_buf *shapes);

/** Computes the area of an input row (of_input 1) or of a join feature
 * (of_input 0), in square CRS units. Overlapping polygon parts count once: the
 * area is that of GEOS's union. If GEOS cannot make the union, the areas of the
 * parts are added. */
OJ_MUST_USE oj_status oj_geos_pairs_area(struct oj_geos_pairs *pairs,
                                         int of_input, int64_t feature,
                                         double *area, struct oj_error *err);

/** Measures the part of row that n features cover together, each location once:
 * *area of the polygons and, if wants_length, *length of the lines outside of
 * these polygons. For one feature, unless both have polygons, these are
 * measures of the intersection that oj_geos_pairs_add_intersection() makes.
 * Else polygons are intersected and then united, with GEOS's rounding, and
 * borders that they share are left out; lines of the row are intersected with
 * the union of the polygons around it. Points cover nothing. The pieces of one
 * row are all in memory. The outputs are set if the result is OJ_GEOS_YES. */
enum oj_geos_outcome oj_geos_pairs_measure_cover(struct oj_geos_pairs *pairs,
                                                 int64_t row,
                                                 const int32_t *features,
                                                 int64_t n, int wants_length,
                                                 double *area, double *length);

/** Returns GEOS's text for the last OJ_GEOS_CANNOT_SAY; "" if there was
 * none. */
const char *oj_geos_pairs_message(const struct oj_geos_pairs *pairs);

/** Accepts NULL. */
void oj_geos_pairs_close(struct oj_geos_pairs *pairs);

#endif
