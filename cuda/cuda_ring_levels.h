/** One level of the tree of cells over rings while it is built: kernels and
 *  their data.  A level is made of the one above it in these steps:
 *
 *      nodes -> what each becomes -> sums: places of leaves and children
 *      leaves: records, short edges, codes, slots
 *      nodes that are split: a list of their fragments -> masks against the
 *      children -> counts -> sums -> nodes, fragments, edges below
 */
#ifndef CUDA_RING_LEVELS_H
#define CUDA_RING_LEVELS_H

#include "../algs/kernels/oj_ring_start.h"
#include "cuda_ring_cells.h"

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
    struct oj_cuda_array<T> wide =
    {
        NULL, 0
    };
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

/** Splits level and finishes what is not split of it: *part, which has its
 *  bases, and *next (n_nodes 0: nothing was split).  may_split 0: everything is
 *  finished. Waits for the stream. What was made of *next before an error is to
 *  be dropped. */
OJ_MUST_USE oj_status oj_cuda_ring_level_down(
    struct oj_cuda_ring_making *m, const struct oj_cuda_ring_level *level,
    int is_large, int may_split, struct oj_cuda_ring_part *part,
    struct oj_cuda_ring_level *next);

/** Marks all fragments of a level of windows, in stream order. */
OJ_MUST_USE oj_status oj_cuda_ring_mark(struct oj_cuda_ring_making *m,
                                        const struct oj_cuda_ring_level *level,
                                        struct oj_cuda_ring_marks *out);
void oj_cuda_ring_marks_drop(struct oj_cuda_device *device,
                             struct oj_cuda_ring_marks *marks);

void oj_cuda_ring_level_drop(struct oj_cuda_device *device,
                             struct oj_cuda_ring_level *level);

#endif
