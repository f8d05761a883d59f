/** The tree of cells over polygon rings on a device (oj_ring_cells.h). */
#ifndef CUDA_RING_CELLS_H
#define CUDA_RING_CELLS_H

#include "../device/oj_cuda.h"
#include "oj_ring_cells.h"

/** Owns nothing. */
struct oj_cuda_ring_cells
{
    /** By value to kernels, which ask oj_ring_tree_first_around(&tree, x, y)
     *  (parts) or oj_ring_tree_find() and oj_ring_tree_next(). A tree
     *  without polygons answers too: nothing. */
    struct oj_ring_tree tree;

    struct oj_cuda_array<uint32_t> slot;
    struct oj_cuda_array<struct oj_ring_leaf> leaf;
    struct oj_cuda_array<struct oj_ring_record> record;
    struct oj_cuda_array<struct oj_ring_edge16> edge;
    struct oj_cuda_array<uint32_t> edge_segment;
};

struct oj_cuda_work;

/** Builds the tree of all polygons of layer, which outlives it; its arrays are
 *  work's.  OJ_ERR_UNSUPPORTED: coordinates of sizes at which signs are not
 *  exact, or more rings than 2^30: the CPU has to answer. out is zeroed. */
OJ_MUST_USE oj_status oj_cuda_ring_cells_build(
    struct oj_cuda_work *work, const struct oj_cuda_layer *layer,
    enum oj_ring_units units, struct oj_cuda_ring_cells *out);

#endif
