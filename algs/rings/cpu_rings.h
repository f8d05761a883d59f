/** Which polygons a point is in: a tree over the boxes of all polygon rings,
 *  and cells with a known state for large rings.
 *
 *  A polygon part contains a point that is on one of its rings or inside an odd
 *  number of them, whichever of them is the shell.  In a valid polygon that is
 *  inside the shell and in no hole.  The entry of a shell in the tree has the
 *  box of all rings of its part, so that who finds a hole finds its shell too.
 */
#ifndef CPU_RINGS_H
#define CPU_RINGS_H

#include "../../flatten/arrays/oj_flat.h"
#include "../base/cpu_tree.h"
#include "edge_grid.h"

/** oj_ring.holes of a hole, and of a shell without holes. */
#define OJ_IS_HOLE (-1)
#define OJ_NO_HOLES (-2)

/** One ring of a polygon part. */
struct oj_ring
{
    struct oj_box box; /**< its own */
    int64_t first_vertex, n_vertices;
    int32_t feature;
    int32_t part;  /**< ordinal among polygon parts */
    int32_t grid;  /**< into oj_rings.grids, or -1: small, no grid */
    int32_t holes; /**< of a shell with holes: into oj_rings.hole_box */
};

struct oj_rings
{
    const struct oj_flat *flat; /**< outlives this */
    int64_t n_rings;
    struct oj_ring *ring; /**< [n_rings] in tree order */
    struct oj_tree tree;  /**< entry i is ring i */
    int64_t n_hole_boxes;
    struct oj_box *hole_box; /**< around all holes of a part that has some */
    struct oj_ring_grids grids;
};

/** Indexes the polygon rings of flat with n_threads; none is fine.
 *  tie_rank, k_distinct  as of oj_segments_build(): of very many polygon parts
 *                        that are equal in every vertex only those of the
 *                        k_distinct features first in tie order are kept */
OJ_MUST_USE oj_status oj_rings_build(struct oj_rings *rings,
                                     const struct oj_flat *flat,
                                     const int32_t *tie_rank,
                                     int64_t k_distinct, int n_threads,
                                     struct oj_error *err);

/** Where p is in ring r. */
enum oj_location oj_rings_locate(const struct oj_rings *rings,
                                 const struct oj_ring *ring, double px,
                                 double py);

int64_t oj_rings_bytes(const struct oj_rings *rings);

void oj_rings_free(struct oj_rings *rings);

#endif
