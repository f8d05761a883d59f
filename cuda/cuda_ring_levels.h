/** One level of the tree of cells over rings while it is built: kernels and
 *  their data.  A level is made of the one above it in these steps:
 *
 *      nodes -> what each becomes -> sums: places of leaves and children
 *      leaves: records, short edges, codes, slots
 *      nodes that are split: masks of fragments against the children -> counts
 * -> sums -> nodes, fragments, edges below
 */
#ifndef CUDA_RING_LEVELS_H
#define CUDA_RING_LEVELS_H

#include "../algs/kernels/oj_ring_start.h"
#include "oj_cuda.h"

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

/** What is found out about the fragments of a level. */
struct oj_cuda_ring_marks
{
    struct oj_cuda_array<uint32_t> head; /**< [n_fragments] the unit's first in
                                              the node */
    struct oj_cuda_array<uint32_t> lost; /**< [n_fragments] of heads: bits that
                                              others have without edges */
    struct oj_cuda_array<struct oj_ring_masks> masks; /**< [n_fragments] */
    struct oj_cuda_array<uint16_t> touched;           /**< [n_edges] children */
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
    uint32_t first_slot, first_leaf, first_record, first_edge;
    struct oj_cuda_array<uint32_t> slot; /**< [n_nodes] */
    struct oj_cuda_array<struct oj_ring_leaf> leaf;
    struct oj_cuda_array<struct oj_ring_record> record;
    struct oj_cuda_array<struct oj_ring_edge16> edge;
    struct oj_cuda_array<uint32_t> edge_segment;
};

/** The same for all levels. */
struct oj_cuda_ring_making
{
    struct oj_cuda_device *device;
    const struct oj_cuda_layer *layer;
    struct oj_ring_tree tree; /**< frame, units, ring_part, part_feature */
    uint32_t most;            /**< edges of a node that is not split */
    int fine;                 /**< oj_ring_node_most() */
    int64_t large;            /**< edges and records that are many */
    struct oj_error *err;
};

/** Splits level and finishes what is not split of it: *part, which has its
 *  bases, and *next (n_nodes 0: nothing was split).  may_split 0: everything is
 *  finished. Waits for the stream. What was made before an error is in *part
 *  and *next, to be dropped. */
OJ_MUST_USE oj_status oj_cuda_ring_level_down(
    struct oj_cuda_ring_making *m, const struct oj_cuda_ring_level *level,
    int is_large, int may_split, struct oj_cuda_ring_part *part,
    struct oj_cuda_ring_level *next);

/** Marks the fragments of a level, in stream order. */
OJ_MUST_USE oj_status oj_cuda_ring_mark(struct oj_cuda_ring_making *m,
                                        const struct oj_cuda_ring_level *level,
                                        struct oj_cuda_ring_marks *out);
void oj_cuda_ring_marks_drop(struct oj_cuda_device *device,
                             struct oj_cuda_ring_marks *marks);

void oj_cuda_ring_level_drop(struct oj_cuda_device *device,
                             struct oj_cuda_ring_level *level);
void oj_cuda_ring_part_drop(struct oj_cuda_device *device,
                            struct oj_cuda_ring_part *part);

#endif
