/** The tree of cells over polygon rings on a device (oj_ring_tree.h). */
#ifndef CUDA_RING_CELLS_H
#define CUDA_RING_CELLS_H

#include "cuda_ring_tree.h"

/** Builds the tree of all polygons of layer, which outlives it, on
 *  device->stream.  OJ_ERR_UNSUPPORTED: coordinates of sizes at which signs are
 *  not exact, or more rings than 2^30: the CPU has to answer. out is empty;
 *  its arrays are the caller's, also after an error. */
OJ_MUST_USE oj_status oj_cuda_ring_cells_build(
    struct oj_cuda_device *device, const struct oj_cuda_layer *layer,
    enum oj_ring_units units, struct oj_cuda_ring_cells *out,
    struct oj_error *err);

#endif
