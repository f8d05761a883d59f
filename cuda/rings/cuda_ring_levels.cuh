/** One level of the tree of cells over rings while it is built.  A level is
 * made of the one above it in these steps:
 *
 *      nodes -> what each becomes -> sums: places of leaves and children
 *      leaves: records, short edges, codes, slots
 *      nodes that are split: a list of their fragments -> masks against the
 *      children -> counts -> sums -> nodes, fragments, edges below
 */
#ifndef CUDA_RING_LEVELS_CUH
#define CUDA_RING_LEVELS_CUH

#include "../device/cuda_cub.cuh"
#include "cuda_ring_cells.h"
#include "oj_ring_start.h"

#define BLOCK 256

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
        touched;                          /**< [edges of the level] children */
    struct oj_cuda_array<uint32_t> doubt; /**< [n + 1] their number, and those
                                               that need exact signs */
};

/** The bits of fragment k of a unit (2 * unit + bit) in the children. */
OJ_FN uint32_t oj_cuda_ring_inside(const struct oj_cuda_ring_marks &marks,
                                   uint32_t k, uint32_t unit)
{
    uint32_t inside = oj_ring_masks_inside(&marks.masks.data[k], unit);
    return marks.head.data[k] == k ? inside ^ marks.lost.data[k] : inside;
}

/** The children that it is in. */
OJ_FN uint32_t oj_cuda_ring_there(const struct oj_cuda_ring_marks &marks,
                                  uint32_t k, uint32_t unit)
{
    uint32_t there = marks.masks.data[k].touched;
    return marks.head.data[k] == k ? there | oj_cuda_ring_inside(marks, k, unit)
                                   : there;
}

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
struct oj_cuda_ring_making : oj_cuda_job
{
    const struct oj_cuda_layer *layer;
    struct oj_cuda_ring_cells *cells; /**< arrays that levels add to */
    struct oj_ring_tree tree;         /**< frame, units, part_feature */
    uint32_t most;                    /**< edges of a node that is not split */
    int fine;                         /**< oj_ring_node_most() */
    int64_t large;                    /**< edges and records that are many */
};

/** Makes room for more elements behind the first `used`, which stay, and for
 *  some to come after them where there is memory. */
template <typename T>
OJ_MUST_USE oj_status oj_cuda_ring_extend(struct oj_cuda_ring_making *m,
                                          struct oj_cuda_array<T> *array,
                                          int64_t used, int64_t more)
{
    oj_cuda_array<T> wide = {NULL, 0};
    int64_t n = used + more;
    cudaError_t error = cudaSuccess;
    if (n <= array->n)
        return OJ_OK;
    if (m->make(n + n / 8, &wide) != OJ_OK)
        OJ_TRY(m->make(n, &wide));
    if (used > 0)
        error =
            cudaMemcpyAsync(wide.data, array->data, (size_t)used * sizeof(T),
                            cudaMemcpyDeviceToDevice, m->stream);
    m->drop(array);
    *array = wide;
    OJ_CUDA_TRY(error, "making room for cells of rings", m->err);
    return OJ_OK;
}

/** What of(0) .. of(n - 1), whose type is that of *all, add up to before each:
 *  *out [n + 1]; and all of them. Waits for the stream. */
template <typename Of>
OJ_MUST_USE oj_status
oj_cuda_ring_places(struct oj_cuda_ring_making *m, Of of, int64_t n,
                    struct oj_cuda_array<unsigned long long> *out,
                    unsigned long long *all, const char *doing)
{
    OJ_TRY(m->make(n + 1, out));
    OJ_TRY(m->with_scratch(
        [&](void *memory, size_t &bytes)
        {
            oj_cuda_computed<unsigned long long, Of> values = {of, 0};
            return cub::DeviceScan::ExclusiveSum(memory, bytes, values,
                                                 out->data, n + 1, m->stream);
        },
        doing));
    return m->read(out->data + n, all, doing);
}

/** Makes the arrays of a level of so many groups of nodes, fragments and
 *  edges. */
static inline oj_status oj_cuda_ring_level_make(struct oj_cuda_ring_making *m,
                                                int64_t n_groups,
                                                unsigned long long n_fragments,
                                                unsigned long long n_edges,
                                                struct oj_cuda_ring_level *out)
{
    out->n_nodes = 16 * n_groups;
    out->n_fragments = (int64_t)n_fragments;
    out->n_edges = (int64_t)n_edges;
    OJ_TRY(m->make(n_groups, &out->parent, &out->replication));
    OJ_TRY(m->make(out->n_nodes + 1, &out->node_first));
    OJ_TRY(m->make(out->n_fragments, &out->fragment));
    return m->make(out->n_edges, &out->edge);
}

/* --- cuda_ring_levels.cu ---------------------------------------------------
 */

/** Splits level and finishes what is not split of it: *part, which has its
 *  bases, and *next (n_nodes 0: nothing was split).  may_split 0: everything is
 *  finished. Waits for the stream. What was made of *next before an error is to
 *  be dropped. */
OJ_MUST_USE oj_status oj_cuda_ring_level_down(
    struct oj_cuda_ring_making *m, const struct oj_cuda_ring_level *level,
    int is_large, int may_split, struct oj_cuda_ring_part *part,
    struct oj_cuda_ring_level *next);

/** Marks all fragments of a level of windows, in stream order; *out is empty,
 *  and after an error it can be dropped. */
OJ_MUST_USE oj_status oj_cuda_ring_mark(struct oj_cuda_ring_making *m,
                                        const struct oj_cuda_ring_level *level,
                                        struct oj_cuda_ring_marks *out);
void oj_cuda_ring_marks_drop(struct oj_cuda_ring_making *m,
                             struct oj_cuda_ring_marks *marks);

void oj_cuda_ring_level_drop(struct oj_cuda_ring_making *m,
                             struct oj_cuda_ring_level *level);

/* --- cuda_ring_start.cu ----------------------------------------------------
 */

/** The level that a tree begins with: the root, or, where all polygons are
 *  small, a level far below it (oj_ring_start.h).
 *
 *  Makes *first, of depth 0 or 1 .. m->fine, from the rings of m->layer.  Below
 *  the root, *above gets the slots of all cells of the level above it: those of
 *  *first, which come next, or OJ_RING_EMPTY. */
OJ_MUST_USE oj_status oj_cuda_ring_start(struct oj_cuda_ring_making *m,
                                         struct oj_cuda_ring_part *above,
                                         struct oj_cuda_ring_level *first);

#endif
