/** Builds the cells for the nearest segment (cuda_segment_cells_search.cuh) on
 *  a device, in rounds, each over all nodes that have a list, from the root
 *  down.
 *
 *  In a round each node computes an upper bound of the distance to the nearest
 *  segment for each child, then which segments its children need; it becomes a
 *  leaf or gets children. A short list (59 or fewer) is processed by eight
 *  threads, a longer one by a block, and one above 1,024 by many blocks, in
 *  several kernels. Room for lists, nodes and leaves is reserved by atomic
 *  additions, so their order differs between runs; answers do not depend on it.
 *  A node without room for its children becomes a leaf.
 */
#ifndef CUDA_SEGMENT_CELLS_BUILD_CUH
#define CUDA_SEGMENT_CELLS_BUILD_CUH

#include "../../foundations/device/cuda_stream_work.cuh"

#include "cuda_segment_cells_bounds.cuh"

/** The finished cells. Owns nothing. */
struct oj_cuda_cells
{
    struct oj_near_square square;
    int directory_level;
    const struct oj_near_header *tree, *directory;
    const uint64_t *pool;
};

/** Builds the cells of layer for distances up to reach; *work owns the arrays.
 *  marks_ties must be 1 for queries with ties (oj_near_nearest_of_point()).
 *  Fails with OJ_ERR_UNSUPPORTED if a squared length underflows, or numbers are
 *  too large or too small. For a layer without segments no tree is made. */
OJ_MUST_USE oj_status oj_cuda_cells_build(struct oj_cuda_work *work,
                                          const struct oj_cuda_layer *layer,
                                          double reach, int marks_ties,
                                          struct oj_cuda_cells *out);

/** Returns the arrays that kernels read, all in device memory. */
struct oj_near_view oj_cuda_cells_view(const struct oj_cuda_cells *cells,
                                       const struct oj_cuda_layer *layer);

#endif
