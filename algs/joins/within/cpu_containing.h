/** Finds the polygons that contain given points, for other engines. Implemented
 * in cpu_points_in_polygons.c. */
#ifndef CPU_CONTAINING_H
#define CPU_CONTAINING_H

#include "cpu_ring_box_index.h"

/** Result for a set of points; memory of one thread that the next call reuses.
 * Owner; zeroed memory is a valid empty value. */
struct oj_containing
{
    int64_t *offset;        /**< [points + 1] index in `feature` of each point's
                                 first feature */
    const int32_t *feature; /**< features of all points, each once per point, in
                                 any order within a point */
    int64_t cap_offset;
    struct point_worker *worker;
};

/** Finds the features that contain each of n points in their interior or on
 * their boundary. Precondition: cells has rings. May build grids of rings.
 * Usually O(points). The contents of *out are valid until the next call. */
OJ_MUST_USE oj_status oj_containing_find(struct oj_ring_cells *cells, int64_t n,
                                         const double *x, const double *y,
                                         const int *cancel,
                                         struct oj_containing *out,
                                         struct oj_error *err);

void oj_containing_free(struct oj_containing *containing);

#endif
