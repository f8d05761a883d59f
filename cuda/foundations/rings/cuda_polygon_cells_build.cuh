/** One level of the tree of cells over rings while it is built. The steps from
 *  a level to the next one:
 *
 *     nodes           -> kind of each node -> prefix sums: places of leaves and
 *                        children
 *     leaves          -> records, short edges, codes, slots
 *     nodes to split  -> list of their fragments -> masks of children -> counts
 *                        -> prefix sums -> nodes, fragments, edges of the next
 *                        level
 */
#ifndef CUDA_POLYGON_CELLS_BUILD_CUH
#define CUDA_POLYGON_CELLS_BUILD_CUH

#include "../device/cuda_stream_work.cuh"
#include "cuda_ring_cells.h"
#include "oj_ring_windows.h"

#define BLOCK 256

/** The nodes of a level. They come in groups of 16, the children of one node;
 *  the root is alone.  Owns nothing. */
struct oj_cuda_ring_level
{
    int depth;
    int64_t n_nodes, n_fragments, n_edges;
    /** [n_nodes / 16] ix, iy of the parent; one entry for the root. */
    uint2 *parent;
    /** [n_nodes / 16] the argument replication of oj_ring_node_splits(). */
    float *replication;
    uint32_t *node_first;              /**< [n_nodes + 1] first fragment */
    struct oj_ring_fragment *fragment; /**< [n_fragments] fragments, sorted by
                                            node */
    uint32_t *edge;                    /**< [n_edges] segment of each edge */
    /** If not NULL, the nodes are windows of cells of this depth, each with the
     *  fragments of one unit, and parent, replication and node_first are not
     *  set. */
    uint2 *window; /**< [n_nodes] cell of the window with the smallest ix, iy */
};

/** For each of n fragments, the children of its node that need it. The
 *  fragments are all those of a level, or those of a list. */
struct oj_cuda_ring_marks
{
    /** [n] for each fragment: number of the first fragment of its unit in its
     *  node. */
    uint32_t *head;
    /** [n] for the first fragment of a unit in a node: mask of the children in
     *  which its bit is flipped, because another fragment of the unit has the
     *  bit 1 there but no edges. */
    uint32_t *lost;
    struct oj_ring_masks *masks; /**< [n] */
    uint16_t *touched;           /**< [n_edges of the level] mask of children */
    /** [n + 1] number of fragments that need exact signs, followed by these
     *  fragments. */
    uint32_t *doubt;
};

/** Returns the mask of children in which the bit of fragment k, whose
 *  unit_and_bit is given, is 1. */
OJ_FN uint32_t oj_cuda_ring_mask_of_inside_children(
    const struct oj_cuda_ring_marks &marks, uint32_t k, uint32_t unit_and_bit)
{
    uint32_t inside = oj_ring_masks_inside(&marks.masks[k], unit_and_bit);
    return marks.head[k] == k ? inside ^ marks.lost[k] : inside;
}

/** Returns the mask of the children that receive fragment k. */
OJ_FN uint32_t oj_cuda_ring_mask_of_receiving_children(
    const struct oj_cuda_ring_marks &marks, uint32_t k, uint32_t unit_and_bit)
{
    uint32_t receivers = marks.masks[k].touched;
    return marks.head[k] == k
               ? receivers | oj_cuda_ring_mask_of_inside_children(marks, k,
                                                                  unit_and_bit)
               : receivers;
}

/** Sums over nodes: the number of split nodes and of their fragments, and the
 *  numbers of leaves, of their records and of their edges. */
struct oj_cuda_ring_sums
{
    uint32_t split, split_fragments, leaves, records, edges;
};

/** The numbers of slots, leaves, records and edges that one level adds to the
 *  tree. The members first_* are the sums of these numbers over all levels
 *  above it. */
struct oj_cuda_ring_part
{
    struct oj_cuda_ring_sums sums;
    uint32_t n_slots; /**< one per node, rounded up to 16 */
    uint32_t first_slot, first_leaf, first_record, first_edge;
};

/** A tree under construction, with all its levels. */
struct oj_cuda_ring_making
{
    struct oj_cuda_work *keep; /**< owns the arrays of cells */
    const struct oj_cuda_layer *layer;
    struct oj_cuda_ring_cells *cells; /**< arrays that levels append to */
    struct oj_ring_tree tree;         /**< only frame, units, part_feature are
                                           set */
    int fine;                         /**< see oj_ring_node_max_edges() */
    /** A tree with more edges and records than this is large. */
    int64_t large;
};

/** Makes room for `more` elements behind the first `used`, which are kept.
 *  Allocates more than needed, for later calls, if memory permits. */
template <typename T>
OJ_MUST_USE oj_status oj_cuda_ring_grow_array(struct oj_cuda_work *keep,
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

/** Allocates the arrays of a level with n_groups groups of 16 nodes. sizes
 *  holds the number of fragments in the high half and that of edges in the low
 *  half. */
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

/** Marks all fragments of a level of windows, in stream order; *work owns the
 *  marks. In cuda_polygon_cells_build.cu. */
OJ_MUST_USE oj_status oj_cuda_ring_mark_children(
    const struct oj_cuda_ring_making *m, struct oj_cuda_work *work,
    const struct oj_cuda_ring_level *level, struct oj_cuda_ring_marks *out);

/** Makes the level with which a tree begins, *first: the root, or, if all
 *  polygons are small, a level 1 .. m->fine below it (oj_ring_windows.h). Reads
 *  the rings of m->layer; *work owns the arrays. If the level is below the
 *  root, *above gets the slots of all cells of the level above: the number of a
 *  group of 16 nodes of *first, or OJ_RING_EMPTY. In
 *  cuda_cell_tree_start_level.cu. */
OJ_MUST_USE oj_status oj_cuda_ring_make_start_level(
    struct oj_cuda_ring_making *m, struct oj_cuda_work *work,
    struct oj_cuda_ring_part *above, struct oj_cuda_ring_level *first);

#endif
