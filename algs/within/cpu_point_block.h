/** A block of points against the rings of a polygon layer: from rows to pairs.
 *
 *  Points go through the stages in blocks: every stage asks the memory for what
 *  the next one reads of all points, so points may lie anywhere, in any order.
 *
 *      points -> cells and spots -> survivors -> entries -> candidates
 *             -> grids, runs, edges -> locations in rings -> pairs
 */
#ifndef CPU_POINT_BLOCK_H
#define CPU_POINT_BLOCK_H

#include "../pairs/oj_pairs.h"
#include "../pairs/oj_row_order.h"
#include "../relate/relate.h"
#include "cpu_known_cells.h"
#include "cpu_ring_cells.h"

/** Most points of a block. */
#define OJ_POINT_BLOCK 256

/** Most entries that are looked at together. */
#define OJ_HELD 4096

/** What is asked; the same for all blocks of a batch. Owns nothing. */
struct oj_point_query
{
    struct oj_ring_cells *cells;   /* grids may be built on the way */
    const struct oj_ring_set *set; /* the whole */

    /* NULL, or: where the features of most pairs are known. */
    const struct oj_known_cells *known;
    int32_t *list;               /* [rows of input] their shared lists */
    const struct oj_flat *input; /* in the short form */
    const struct oj_pair_filter *filter;
    unsigned accepted; /* bits 1 << enum oj_location: these are pairs */

    /* [features] enum oj_solidity, filled when a point is on a ring of the
     * feature; NULL: on the boundary is as good as inside. */
    _Atomic uint8_t *solidity;
    const int *cancel; /* or NULL */
    int timings;
};

/** Whether a polygon of the feature encloses nothing, so that its rings are
 *  lines: their points are in the interior. */
enum oj_solidity
{
    OJ_SOLIDITY_NOT_KNOWN,
    OJ_SOLID,
    OJ_NOT_SOLID
};

#define OJ_POINT_UNKNOWN (-1)

/* A ring that may hold a point of the block. */
struct oj_point_candidate
{
    int32_t point, ring;
    int32_t cell;                    /* of grid */
    int32_t location;                /* in the ring, or -1: not known yet */
    const struct oj_edge_grid *grid; /* of the ring, or NULL */
};

/* A candidate whose edges have to be looked at; rank: of its cell, if any. */
struct oj_point_open
{
    uint32_t rank;
    int32_t candidate;
};

/* Where a point is in one ring of a feature of several. */
struct oj_point_state
{
    int32_t feature, part, location;
};

/* A point that is in a spot with rings. */
struct oj_point_survivor
{
    int32_t point, layer;
    uint32_t cell, probe;
};

/** The memory of one thread. Owner; zeroed memory is a valid empty one. */
struct oj_point_worker
{
    uint32_t cell[OJ_RING_LAYERS][OJ_POINT_BLOCK],
        probe[OJ_RING_LAYERS][OJ_POINT_BLOCK];
    struct oj_point_survivor survivor[OJ_RING_LAYERS * OJ_POINT_BLOCK];
    uint32_t n_pairs_of[OJ_POINT_BLOCK];
    /* where spots have answers */
    uint32_t spot[OJ_POINT_BLOCK];
    uint16_t answer[OJ_POINT_BLOCK];
    int32_t left[OJ_POINT_BLOCK]; /* points of the survivors */
    struct oj_ring_range range[OJ_POINT_BLOCK];
    int32_t held_point[OJ_HELD + 8], held_ring[OJ_HELD + 8];
    int64_t n_candidates, cap_candidates;
    struct oj_point_candidate *candidate;
    int64_t n_open, cap_open;
    struct oj_point_open *open;
    int64_t cap_states;
    struct oj_point_state *state; /* of one point */
    struct oj_relate_scratch relate;
    int64_t n_pairs, cap_pairs;
    int32_t *feature; /* [n_pairs] in the order of the rows of each task */
    struct oj_row_order order;
    int64_t n_refined;
    double filter_s, refine_s;
};

/** Joins rows first_row .. first_row + n - 1, n <= OJ_POINT_BLOCK: appends the
 *  features of their pairs to worker->feature, in the order of the rows, and
 *  sets n_pairs_of of each.  With query->known these are the pairs that the
 *  rows' shared lists, which are set, do not have. */
OJ_MUST_USE oj_status oj_point_block_join(const struct oj_point_query *query,
                                          struct oj_point_worker *worker,
                                          int64_t first_row, int64_t n,
                                          struct oj_error *err);

void oj_point_worker_free(struct oj_point_worker *worker);

#endif
