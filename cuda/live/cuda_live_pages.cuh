/** The pages of a kept index in the memory of one device.
 *
 *   ids     table -> entry -> slot of its point
 *   places  0         1         2          in Morton order of their points
 *           page 0    page 2    page 1     256 slots each, filled or holes
 *   tree    boxes of 32 places, of 32 of these, ..
 *
 *  A page holds the points whose Morton codes lie between the first code of its
 *  place and that of the next one: the leaves of a linear quadtree. Equal codes
 *  may fill any number of pages, so that points in one place need no chain of
 *  pages, and no depth limits the tree. Codes and boxes decide which pages are
 *  read; answers depend on the coordinates alone.
 *
 *  Source: G-PICS (Lewis and Tu 2022), whose space-driven trees have such
 *  leaves; the linear order of pages, and a tree of boxes in place of the nodes
 *  of a quadtree, are ours.
 */
#ifndef CUDA_LIVE_PAGES_CUH
#define CUDA_LIVE_PAGES_CUH

#include "../../algs/foundations/kernels/oj_box.h"
#include "../../algs/foundations/kernels/oj_morton.h"
#include "../foundations/device/cuda_stream_work.cuh"

enum
{
    OJ_LIVE_SLOTS = 256, /**< slots of a page */
    OJ_LIVE_WORDS = 8,   /**< 32-bit words with a bit per slot of a page */
    OJ_LIVE_FILL = 192,  /**< points of a page that is built anew */
    OJ_LIVE_FANOUT = 32, /**< boxes of a node of the tree: a lane for each */
    OJ_LIVE_MOST_LEVELS = 7
};

/** Stands for a missing entry, and is the slot of an entry without a point. */
#define OJ_LIVE_NOWHERE UINT32_MAX
/** Slot of an entry that is not in the table. If several changes of a batch add
 *  entries for one new id, all but one of these entries get it. */
#define OJ_LIVE_UNUSED (UINT32_MAX - 1u)

/** Greatest absolute coordinate of a point that joins take, as in every join
 *  side (OJ_FLAT_MOST). */
#define OJ_LIVE_MOST_COORDINATE 1e150

/** A hole has NaN as x. */
struct oj_cuda_live_page
{
    double x[OJ_LIVE_SLOTS], y[OJ_LIVE_SLOTS];
    uint32_t entry[OJ_LIVE_SLOTS];
};

/** The pages as kernels see them; passed by value. Borrows all arrays. */
struct oj_cuda_live_pages
{
    int64_t n;           /**< number of pages, which is that of places */
    struct oj_box frame; /**< box of the points when the pages were built */

    struct oj_cuda_live_page *page;
    int32_t *n_points;    /**< [page] */
    uint32_t *hole;       /**< [OJ_LIVE_WORDS * page + word] a bit for each slot
                               without a point */
    struct oj_box *box;   /**< [page] around its points, or larger */
    uint32_t *place_of;   /**< [page] */
    uint32_t *page_at;    /**< [place] */
    uint64_t *first_code; /**< [place]; 0 for place 0 */

    int n_levels;
    int64_t level_first[OJ_LIVE_MOST_LEVELS], level_n[OJ_LIVE_MOST_LEVELS];
    struct oj_box *node; /**< level 0: the boxes of the pages by place */
};

/** The ids of a kept index; passed by value. Borrows all arrays. */
struct oj_cuda_live_ids
{
    int64_t n;       /**< entries; those of removed points are without a slot */
    int64_t *id;     /**< [entry] */
    uint32_t *slot;  /**< [entry] page * OJ_LIVE_SLOTS + slot, or
                          OJ_LIVE_NOWHERE, or OJ_LIVE_UNUSED */
    uint32_t *last;  /**< [entry] 1 + the last change of the id in the batch at
                          work; 0 between batches */
    uint32_t *table; /**< [mask + 1] 1 + entry, or 0: open addressing */
    uint32_t mask;
};

/** The points of a kept index that are on one device. */
struct oj_cuda_live_part
{
    struct oj_cuda_device device;
    struct oj_cuda_live_pages pages;
    struct oj_cuda_live_ids ids;
    struct oj_cuda_memory page_memory, id_memory; /**< owners of the arrays */
    int64_t cap_pages, cap_entries;
    int64_t n_points;
    int64_t n_outside; /**< points put out of the frame since it was chosen */
};

/* --- warps ---------------------------------------------------------------- */

#define OJ_LIVE_WARP_BLOCK 128
#define OJ_LIVE_LANES 32
#define OJ_LIVE_ALL_LANES 0xffffffffu

static __device__ __forceinline__ int64_t oj_cuda_live_warp(void)
{
    return ((int64_t)blockIdx.x * OJ_LIVE_WARP_BLOCK + threadIdx.x) /
           OJ_LIVE_LANES;
}

static __device__ __forceinline__ int oj_cuda_live_lane(void)
{
    return (int)(threadIdx.x % OJ_LIVE_LANES);
}

/** Returns the number of lanes in mask that have smaller numbers than this
 *  lane. */
static __device__ __forceinline__ int oj_cuda_live_lanes_before(unsigned mask)
{
    return __popc(mask & ((1u << oj_cuda_live_lane()) - 1u));
}

OJ_FN int oj_live_is_joinable(double x, double y)
{
    return fabs(x) <= OJ_LIVE_MOST_COORDINATE &&
           fabs(y) <= OJ_LIVE_MOST_COORDINATE;
}

/* --- codes and places ----------------------------------------------------- */

/** Returns word i of the holes of a page of which only the first n slots have
 *  points. */
OJ_FN uint32_t oj_live_holes_beyond(int64_t n, int i)
{
    int64_t filled = n - 32 * i;
    return filled >= 32 ? 0u : UINT32_MAX << (filled > 0 ? filled : 0);
}

/** Returns 1 if an entry with this slot has a point. */
OJ_FN int oj_live_has_point(uint32_t slot)
{
    return slot < OJ_LIVE_UNUSED;
}

OJ_FN uint64_t oj_live_morton_code(const struct oj_box &frame, double x,
                                   double y)
{
    return oj_morton64(oj_morton_column32(x, frame.x0, frame.x1),
                       oj_morton_column32(y, frame.y0, frame.y1));
}

/** Returns the place to which a code belongs: the last place whose first code
 *  is not greater. */
static __device__ __forceinline__ uint32_t oj_cuda_live_place_of_code(
    const struct oj_cuda_live_pages &pages, uint64_t code)
{
    int64_t first = 0, end = pages.n;
    while (end - first > 1)
    {
        int64_t middle = first + (end - first) / 2;
        if (pages.first_code[middle] <= code)
            first = middle;
        else
            end = middle;
    }
    return (uint32_t)first;
}

OJ_FN uint64_t oj_live_hash_id(int64_t id)
{
    uint64_t v = (uint64_t)id;
    v = (v ^ v >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    v = (v ^ v >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return v ^ v >> 32;
}

/** Returns the entry of an id, or OJ_LIVE_NOWHERE if the table has none. */
static __device__ __forceinline__ uint32_t
oj_cuda_live_find_entry(const struct oj_cuda_live_ids &ids, int64_t id)
{
    uint32_t at = (uint32_t)oj_live_hash_id(id) & ids.mask, found;
    if (ids.table == NULL)
        return OJ_LIVE_NOWHERE;
    for (; (found = ids.table[at]) != 0; at = (at + 1) & ids.mask)
    {
        if (ids.id[found - 1] == id)
            return found - 1;
    }
    return OJ_LIVE_NOWHERE;
}

/** Sets the levels of the tree for pages.n pages; returns the number of boxes
 *  of all levels. */
static inline int64_t
oj_cuda_live_set_tree_levels(struct oj_cuda_live_pages *pages)
{
    int64_t first = 0, n = pages->n;
    pages->n_levels = 0;
    while (n > 0)
    {
        pages->level_first[pages->n_levels] = first;
        pages->level_n[pages->n_levels++] = n;
        first += n;
        if (n <= OJ_LIVE_FANOUT)
            break;
        n = (n + OJ_LIVE_FANOUT - 1) / OJ_LIVE_FANOUT;
    }
    return first;
}

#endif
