/** The tree of cells over polygon rings on a device (oj_ring_cells_search.h).
 */
#ifndef CUDA_RING_CELLS_H
#define CUDA_RING_CELLS_H

#include "../device/oj_cuda.h"
#include "oj_ring_cells_search.h"

/** The tree of cells and its arrays in device memory. Owns nothing. */
struct oj_cuda_ring_cells
{
    /** Passed by value to kernels, which call oj_ring_tree_first_containing()
     *  (for trees of parts), or oj_ring_tree_find() and
     *  oj_ring_tree_locate_in_next_unit(). If the tree has no polygons, these
     *  functions find nothing. */
    struct oj_ring_tree tree;

    struct oj_cuda_array<uint32_t> slot;
    struct oj_cuda_array<struct oj_ring_leaf> leaf;
    struct oj_cuda_array<struct oj_ring_record> record;
    struct oj_cuda_array<struct oj_ring_edge16> edge;
    struct oj_cuda_array<uint32_t> edge_segment;
};

struct oj_cuda_work;

/** Builds the tree of all polygons of layer, which must outlive it; *work owns
 *  the arrays. *out must be zeroed. Fails with OJ_ERR_UNSUPPORTED, so that the
 *  CPU has to join, for coordinates too large for exact signs, and for more
 *  than 2^29 - 1 rings, 2^30 - 1 features or 2^31 - 16 segments. */
OJ_MUST_USE oj_status oj_cuda_ring_cells_build(
    struct oj_cuda_work *work, const struct oj_cuda_layer *layer,
    enum oj_ring_units units, struct oj_cuda_ring_cells *out);

#endif
