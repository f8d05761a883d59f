/** One level of the tree of cells over rings while it is built.  A level is
 * made of the one above it in these steps:
 *
 *      nodes -> what each becomes -> sums: places of leaves and children
 *      leaves: records, short edges, codes, slots
 *      nodes that are split: a list of their fragments -> masks against the
 *      children -> counts -> sums -> nodes, fragments, edges below
 */
#ifndef CUDA_POLYGON_CELLS_BUILD_CUH
#define CUDA_POLYGON_CELLS_BUILD_CUH

#include "../device/cuda_stream_work.cuh"
#include "cuda_ring_cells.h"
#include "oj_ring_windows.h"

#define BLOCK 256

/** Nodes come in groups of 16, the children of one node; the root alone. Owns
 *  nothing. */
struct oj_cuda_ring_level
{
    int depth;
    int64_t n_nodes, n_fragments, n_edges;
    uint2 *parent;                     /**< [groups] ix, iy; root: one */
    float *replication;                /**< [groups] */
    uint32_t *node_first;              /**< [n_nodes + 1] fragment */
    struct oj_ring_fragment *fragment; /**< [n_fragments] by node */
    uint32_t *edge;                    /**< [n_edges] segment */
    /** Not NULL: nodes are windows of cells of this depth, of one unit each,
     *  and what comes before `fragment` is not there. */
    uint2 *window; /**< [n_nodes] the lowest cell */
};

/** What is found out about fragments that go to children: all of a level, or
 *  those of a list. */
struct oj_cuda_ring_marks
{
    uint32_t *head;              /**< [n] the unit's first in the node */
    uint32_t *lost;              /**< [n] of heads: bits that others have
                                      without edges */
    struct oj_ring_masks *masks; /**< [n] */
    uint16_t *touched;           /**< [edges of the level] children */
    uint32_t *doubt;             /**< [n + 1] their number, and those that need
                                      exact signs */
};

/** The bits of fragment k of a unit (2 * unit + bit) in the children. */
OJ_FN uint32_t oj_cuda_ring_inside(const struct oj_cuda_ring_marks &marks,
                                   uint32_t k, uint32_t unit)
{
    uint32_t inside = oj_ring_masks_inside(&marks.masks[k], unit);
    return marks.head[k] == k ? inside ^ marks.lost[k] : inside;
}

/** The children that it is in. */
OJ_FN uint32_t oj_cuda_ring_there(const struct oj_cuda_ring_marks &marks,
                                  uint32_t k, uint32_t unit)
{
    uint32_t there = marks.masks[k].touched;
    return marks.head[k] == k ? there | oj_cuda_ring_inside(marks, k, unit)
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

/** The tree that is being made, with all its levels. */
struct oj_cuda_ring_making
{
    struct oj_cuda_work *keep; /**< has the arrays of cells */
    const struct oj_cuda_layer *layer;
    struct oj_cuda_ring_cells *cells; /**< arrays that levels add to */
    struct oj_ring_tree tree;         /**< frame, units, part_feature */
    int fine;                         /**< oj_ring_node_most() */
    int64_t large;                    /**< edges and records that are many */
};

/** Makes room for more elements behind the first `used`, which stay, and for
 *  some to come after them where there is memory. */
template <typename T>
OJ_MUST_USE oj_status oj_cuda_ring_extend(struct oj_cuda_work *keep,
                                          struct oj_cuda_array<T> *array,
                                          int64_t used, int64_t more)
{
    oj_cuda_array<T> wide;
    int64_t n = used + more;
    if (n <= array->n)
        return OJ_OK;
    if (keep->make(n + n / 8, &wide) != OJ_OK)
        OJ_TRY(keep->make(n, &wide));
    if (used > 0)
        OJ_TRY(keep->check(
            cudaMemcpyAsync(wide.data, array->data, (size_t)used * sizeof(T),
                            cudaMemcpyDeviceToDevice, keep->stream)));
    keep->drop(array->data);
    *array = wide;
    return OJ_OK;
}

/** Makes the arrays of a level of so many groups of nodes, fragments and
 *  edges: high and low half of `sizes`. */
static inline oj_status oj_cuda_ring_level_make(struct oj_cuda_work *work,
                                                int64_t n_groups,
                                                unsigned long long sizes,
                                                struct oj_cuda_ring_level *out)
{
    out->n_nodes = 16 * n_groups;
    out->n_fragments = (int64_t)(sizes >> 32);
    out->n_edges = (int64_t)(sizes & 0xffffffffu);
    OJ_TRY(work->make(n_groups, &out->parent));
    OJ_TRY(work->make(n_groups, &out->replication));
    OJ_TRY(work->make(out->n_nodes + 1, &out->node_first));
    OJ_TRY(work->make(out->n_fragments, &out->fragment));
    return work->make(out->n_edges, &out->edge);
}

/** Marks all fragments of a level of windows, in stream order; the marks are
 *  work's. cuda_polygon_cells_build.cu */
OJ_MUST_USE oj_status oj_cuda_ring_mark(const struct oj_cuda_ring_making *m,
                                        struct oj_cuda_work *work,
                                        const struct oj_cuda_ring_level *level,
                                        struct oj_cuda_ring_marks *out);

/** The level that a tree begins with: the root, or, where all polygons are
 *  small, a level far below it (oj_ring_windows.h).
 * cuda_cell_tree_start_level.cu
 *
 *  Makes *first, work's, of depth 0 or 1 .. m->fine, from the rings of
 *  m->layer.  Below the root, *above gets the slots of all cells of the level
 *  above it: those of *first, which come next, or OJ_RING_EMPTY. */
OJ_MUST_USE oj_status oj_cuda_ring_start(struct oj_cuda_ring_making *m,
                                         struct oj_cuda_work *work,
                                         struct oj_cuda_ring_part *above,
                                         struct oj_cuda_ring_level *first);

#endif
