/** One level of the tree of cells over rings while it is built.  A level is
 * made of the one above it in these steps:
 *
 *      nodes -> what each becomes -> sums: places of leaves and children
 *      leaves: records, short edges, codes, slots
 *      nodes that are split: a list of their fragments -> masks against the
 *      children -> counts -> sums -> nodes, fragments, edges below
 */
#ifndef CUDA_RING_LEVELS_H
#define CUDA_RING_LEVELS_H

#include "cuda_ring_tree.h"

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
