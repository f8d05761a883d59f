/** The features of a layer whose polygons contain points, for families that
 *  ask for more than that (cpu_points_in_polygons.c has the search).
 */
#ifndef CPU_CONTAINING_H
#define CPU_CONTAINING_H

#include "cpu_ring_box_index.h"

/** Of one thread. Owner of worker and offset; zeroed memory is a valid empty
 *  one, and is used again. */
struct oj_containing
{
    int64_t *offset;        /**< [points + 1] */
    const int32_t *feature; /**< those of point i from offset[i] on, each once,
                                 in any order */
    int64_t cap_offset;
    struct point_worker *worker;
};

/** Finds the features of cells that contain each of n points, or have them on
 *  their boundary.  cells: has rings; grids may be built on the way.
 *  O(points), with what is in out valid until the next call. */
OJ_MUST_USE oj_status oj_containing_find(struct oj_ring_cells *cells, int64_t n,
                                         const double *x, const double *y,
                                         const int *cancel,
                                         struct oj_containing *out,
                                         struct oj_error *err);

void oj_containing_free(struct oj_containing *containing);

#endif
