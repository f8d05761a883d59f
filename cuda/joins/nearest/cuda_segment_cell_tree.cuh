/** The cells of the nearest segment (cuda_nearest_segment_cell.cuh), built on a
 * device.
 *
 *  Rounds of all nodes that have a list, from the root down.  In a round each
 *  node learns how far the nearest segment of each child can be at most, then
 *  which segments its children need, and becomes a leaf or children:
 *    short lists (59 or fewer) by eight threads each,
 *    longer ones by a block each,
 *    the longest (above 1,024) by many blocks, in steps of a kernel each.
 *  Room for lists, nodes and leaves is taken by atomic additions, so their
 *  order is not the same in every run; answers do not depend on it.  A node
 *  that finds no room for its children stays a leaf.
 */
#ifndef CUDA_SEGMENT_CELL_TREE_CUH
#define CUDA_SEGMENT_CELL_TREE_CUH

#include "../../foundations/device/cuda_stream_work.cuh"

#include "cuda_near_cell_split_math.cuh"

/** Owns nothing. */
struct oj_cuda_cells
{
    struct oj_near_square square;
    int directory_level;
    const struct oj_near_header *tree, *directory;
    const uint64_t *pool;
};

/** Builds the cells of layer for distances up to reach; their arrays are
 *  work's.  marks_ties: 1 where oj_near_one() is asked for ties.
 *  OJ_ERR_UNSUPPORTED where cells do not work: segments whose length is lost in
 *  rounding, numbers of extreme size.  A layer without segments gives no tree.
 */
OJ_MUST_USE oj_status oj_cuda_cells_build(struct oj_cuda_work *work,
                                          const struct oj_cuda_layer *layer,
                                          double reach, int marks_ties,
                                          struct oj_cuda_cells *out);

/** What kernels read; memory of the device. */
struct oj_near_view oj_cuda_cells_view(const struct oj_cuda_cells *cells,
                                       const struct oj_cuda_layer *layer);

#endif
