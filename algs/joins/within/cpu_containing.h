/** Finds the features whose polygons contain given points, for engines that
 * need more than these pairs (the search is in cpu_points_in_polygons.c). */
#ifndef CPU_CONTAINING_H
#define CPU_CONTAINING_H

#include "cpu_ring_box_index.h"

/** The result for a set of points, of one thread. Owns worker and offset;
 * zeroed memory is a valid empty one; reusable. */
struct oj_containing
{
    int64_t *offset;        /**< [points + 1] prefix sums */
    const int32_t *feature; /**< features of point i from offset[i] on, each
                                 once, in any order */
    int64_t cap_offset;
    struct point_worker *worker;
};

/** Finds the features that contain each of n points, or have them on their
 * boundary.  cells must have rings; grids may be built on the way. Usually
 * O(points). The contents of out are valid until the next call. */
OJ_MUST_USE oj_status oj_containing_find(struct oj_ring_cells *cells, int64_t n,
                                         const double *x, const double *y,
                                         const int *cancel,
                                         struct oj_containing *out,
                                         struct oj_error *err);

void oj_containing_free(struct oj_containing *containing);

#endif
