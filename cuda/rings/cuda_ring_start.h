/** The level that a tree of cells over rings begins with: the root, or, where
 *  all polygons are small, a level far below it (oj_ring_start.h). */
#ifndef CUDA_RING_START_H
#define CUDA_RING_START_H

#include "cuda_ring_levels.h"

/** Makes *first, of depth 0 or 1 .. m->fine, from the rings of m->layer.  Below
 *  the root, *above gets the slots of all cells of the level above it: those of
 *  *first, which come next, or OJ_RING_EMPTY. */
OJ_MUST_USE oj_status oj_cuda_ring_start(struct oj_cuda_ring_making *m,
                                         struct oj_cuda_ring_part *above,
                                         struct oj_cuda_ring_level *first);

#endif
