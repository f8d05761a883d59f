/** The polygons around points: the first in tie order that each point is in or
 *  on the boundary of, by the tree of cells over rings. */
#ifndef CUDA_AROUND_H
#define CUDA_AROUND_H

#include "../index/cuda_family.h"
#include "../rings/cuda_ring_cells.h"

#include "oj_near_cell.h"

/** rank [n]: of the first feature around each point, OJ_RING_NONE where there
 *  is none. cells: of OJ_RING_PARTS; of OJ_RING_ALL_PARTS: with OJ_NEAR_TIED
 *  where there may be others. */
OJ_MUST_USE oj_status oj_cuda_find_around(
    struct oj_cuda_device *device, const struct oj_cuda_ring_cells *cells,
    cudaStream_t stream, const struct oj_cuda_points *points, int32_t *rank,
    struct oj_error *err);

/** Bytes that this takes on the way, for n points. */
int64_t oj_cuda_around_bytes(int64_t n);

#endif
