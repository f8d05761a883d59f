/** The tree of cells over polygon rings (oj_ring_tree.h) as it lies on a
 * device, and a level of it while it is built (cuda_ring_levels.h).
 */
#ifndef CUDA_RING_TREE_H
#define CUDA_RING_TREE_H

#include "../device/oj_cuda.h"
#include "oj_ring_start.h"

/** Owner; zeroed memory is a valid empty one. */
struct oj_cuda_ring_cells
{
    /** By value to kernels, which ask oj_ring_tree_first_around(&tree, x, y)
     *  (parts) or oj_ring_tree_find() and oj_ring_tree_next(). A tree
     *  without polygons answers too: nothing. */
    struct oj_ring_tree tree;

    int64_t n_slots, n_leaves, n_records, n_edges;
    int n_levels;
    struct oj_cuda_array<uint32_t> directory;
    struct oj_cuda_array<uint16_t> occupied;
    struct oj_cuda_array<uint32_t> slot;
    struct oj_cuda_array<struct oj_ring_leaf> leaf;
    struct oj_cuda_array<struct oj_ring_record> record;
    struct oj_cuda_array<struct oj_ring_edge16> edge;
    struct oj_cuda_array<uint32_t> edge_segment;
};

/** Nodes come in groups of 16, the children of one node; the root alone. */
struct oj_cuda_ring_level
{
    int depth;
    int64_t n_nodes, n_fragments, n_edges;
    struct oj_cuda_array<uint2> parent;      /**< [groups] ix, iy; root: one */
    struct oj_cuda_array<float> replication; /**< [groups] */
    struct oj_cuda_array<uint32_t> node_first; /**< [n_nodes + 1] fragment */
    struct oj_cuda_array<struct oj_ring_fragment> fragment; /**< by node */
    struct oj_cuda_array<uint32_t> edge; /**< [n_edges] segment */
    /** Not empty: nodes are windows of cells of this depth, of one unit each,
     *  and what comes before `fragment` is not there. */
    struct oj_cuda_array<uint2> window; /**< [n_nodes] the lowest cell */
};

/** What is found out about fragments that go to children: all of a level, or
 *  those of a list. */
struct oj_cuda_ring_marks
{
    struct oj_cuda_array<uint32_t>
        head; /**< [n] the unit's first in the node */
    struct oj_cuda_array<uint32_t> lost; /**< [n] of heads: bits that others
                                              have without edges */
    struct oj_cuda_array<struct oj_ring_masks> masks; /**< [n] */
    struct oj_cuda_array<uint16_t>
        touched; /**< [edges of the level] children */
};

/** What nodes add up to. */
struct oj_cuda_ring_sums
{
    uint32_t split, split_fragments, leaves, records, edges;
};

/** What a level adds to the tree. Bases: what all levels above added. */
struct oj_cuda_ring_part
{
    struct oj_cuda_ring_sums sums;
    uint32_t n_slots; /**< one for each node, and the rest of 16 */
    uint32_t first_slot, first_leaf, first_record, first_edge;
};

/** The same for all levels. */
struct oj_cuda_ring_making
{
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    struct oj_cuda_ring_cells *cells; /**< arrays that levels add to */
    struct oj_ring_tree tree;         /**< frame, units, part_feature */
    uint32_t most;                    /**< edges of a node that is not split */
    int fine;                         /**< oj_ring_node_most() */
    int64_t large;                    /**< edges and records that are many */
    struct oj_error *err;
};

/** Makes room for more elements behind the first `used`, which stay, and for
 *  some to come after them where there is memory. */
template <typename T>
OJ_MUST_USE oj_status oj_cuda_ring_extend(struct oj_cuda_ring_making *m,
                                          struct oj_cuda_array<T> *array,
                                          int64_t used, int64_t more)
{
    cudaStream_t stream = m->device->stream;
    oj_cuda_array<T> wide = {NULL, 0};
    int64_t n = used + more;
    cudaError_t error = cudaSuccess;
    if (n <= array->n)
        return OJ_OK;
    if (oj_cuda_make(m->device, stream, n + n / 8, &wide, m->err) != OJ_OK)
        OJ_TRY(oj_cuda_make(m->device, stream, n, &wide, m->err));
    if (used > 0)
        error =
            cudaMemcpyAsync(wide.data, array->data, (size_t)used * sizeof(T),
                            cudaMemcpyDeviceToDevice, stream);
    oj_cuda_drop(m->device, stream, array);
    *array = wide;
    OJ_CUDA_TRY(error, "making room for cells of rings", m->err);
    return OJ_OK;
}

#endif
