/** The kept points, in pages under a directory.
 *
 *                  node                   a cell of the plane, cut at sx, and
 *         0 |  2                          either half at its sy: four children
 *        ---+ sy1      child  [ node  page  none  node ]
 *    sy0 ---+---
 *         .. sx ..
 *
 *  page   cell, box, counts -> block      the points of a child that is a leaf
 *  block  x[256] y[256] id[256]           holes have NaN as x, and in id the
 *                                         next hole
 *
 *  A cell contains its lower sides and not its upper ones; cells on the rim
 *  extend to infinity, so that every point has a cell.  New points are put into
 *  the page of their cell.  A point that moves may leave the cell by an eighth
 *  of its width and stay in the page, so that moves to and fro across a border
 *  cost nothing.  Searches use the boxes of pages, which cover their points.  A
 *  child without points is LIVE_NO_CHILD.  A page whose points cannot be
 *  separated (many in one place) has a chain of further pages.
 *
 *  Readers use a state: the directory and its pages.  A batch changes the state
 *  in place if it has no reader.  Otherwise it changes a copy, in which every
 *  changed page gets a new block; the old blocks are used again when the last
 *  reader of the old state has ended. */
#ifndef LIVE_TREE_H
#define LIVE_TREE_H

#include "../../flatten/base/oj_status.h"
#include "../foundations/base/oj_feature_box.h"

#include <stdint.h>

#define LIVE_PAGE_POINTS 256
#define LIVE_NO_HOLE LIVE_PAGE_POINTS
#define LIVE_NONE UINT32_MAX /**< no page, node or parent */

struct live_block
{
    double x[LIVE_PAGE_POINTS], y[LIVE_PAGE_POINTS];
    int64_t id[LIVE_PAGE_POINTS];
};

/** A point that is to be put into a page. */
struct live_point
{
    double x, y;
    int64_t id;
    int64_t entry; /**< entry of its id (live_ids.h); -1: not looked up */
};

/** A page. The first cache line has the members that decide whether a moving
 *  point stays in the page, the second those that change with the points: each
 *  step of a batch reads one line per page. */
struct live_page
{
    _Alignas(64) struct oj_box cell; /**< x0 <= x < x1, y0 <= y < y1 */
    double slack;    /**< distance by which a moving point may leave the cell */
    uint32_t parent; /**< 4 * node + child, or LIVE_NONE: the root */
    uint16_t depth;  /**< number of nodes above the page */

    _Alignas(64) struct live_block *block;
    struct oj_box box; /**< contains the page's points; may be larger */
    uint32_t next;     /**< page in the chain or free list, or LIVE_NONE */
    int32_t birth;     /**< number of the state for which its block was made */
    uint16_t n;        /**< slots in use, including holes */
    uint16_t n_points;
    uint16_t first_hole; /**< first hole, or LIVE_NO_HOLE */
};

/** The value of an absent child. A value >= 0 is a node, and a value below
 *  LIVE_NO_CHILD is a page. */
#define LIVE_NO_CHILD (-1)

static inline int32_t live_child_of_page(uint32_t page)
{
    return -2 - (int32_t)page;
}

static inline uint32_t live_page_of_child(int32_t child)
{
    return (uint32_t)(-2 - child);
}

struct live_node
{
    double sx, sy[2];
    int32_t child[4];
    uint32_t parent; /**< 4 * node + child, or in the free list the next free
                          node */
    int32_t depth;
    struct oj_box cell;
    struct oj_box cover; /**< around the cell and all pages below */
};

/** Returns the child whose cell contains a place. */
static inline int live_node_child(const struct live_node *node, double x,
                                  double y)
{
    int right = x >= node->sx;
    return 2 * right + (y >= node->sy[right]);
}

/** Returns the cell of a child, a part of the cell of the node. A point that
 *  moves within this cell stays inside the cover of the node. */
struct oj_box live_node_child_cell(const struct live_node *node, int child);

/** Returns 1 if a point of the page that moves to (x, y) may stay in the
 *  page. */
static inline int live_page_may_keep_point(const struct live_page *page,
                                           double x, double y)
{
    const struct oj_box *cell = &page->cell;
    return (x >= cell->x0 - page->slack) & (x < cell->x1 + page->slack) &
           (y >= cell->y0 - page->slack) & (y < cell->y1 + page->slack);
}

/** A state, which readers search. Owner of page and node, not of blocks. */
struct live_state
{
    int64_t n_readers; /**< guarded by oj_live.lock */
    int32_t number;
    int32_t root;    /**< a child, see LIVE_NO_CHILD */
    int64_t edition; /**< number of the batch that changed the state last */
    struct live_state *older;
    int64_t n_points;
    int64_t n_pages, cap_pages; /**< including free pages */
    int64_t n_nodes, cap_nodes;
    int64_t n_leaves; /**< pages in use */
    struct live_page *page;
    struct live_node *node;
    uint32_t free_page, free_node; /**< first of the free list, or LIVE_NONE */
};

/** Number of places located together: their cache misses on the way down the
 *  tree overlap. */
#define LIVE_LOCATED_AT_ONCE 8

struct live_located
{
    double x, y;
    int32_t child;   /**< a page or LIVE_NO_CHILD */
    uint32_t parent; /**< 4 * node + child where the descent ended */
};

/** Finds the leaves that contain n <= LIVE_LOCATED_AT_ONCE places. */
void live_state_locate_points(const struct live_state *state, int n,
                              struct live_located *located);

/** Makes an empty state. */
OJ_MUST_USE oj_status live_state_new(struct live_state **out,
                                     struct oj_error *err);

/** Copies a state, with room for `more` pages and nodes. */
OJ_MUST_USE oj_status live_state_copy(const struct live_state *from,
                                      int64_t more, struct live_state **out,
                                      struct oj_error *err);

/** Makes room for `more` pages, or nodes, in addition to the free ones. */
OJ_MUST_USE oj_status live_state_reserve_pages(struct live_state *state,
                                               int64_t more,
                                               struct oj_error *err);
OJ_MUST_USE oj_status live_state_reserve_nodes(struct live_state *state,
                                               int64_t more,
                                               struct oj_error *err);

/** Makes a page without points and sets its block. The state must have room.
 *  Returns the number of the page. */
uint32_t live_state_new_page(struct live_state *state, struct live_block *block,
                             const struct oj_box *cell, uint32_t parent,
                             int depth);
void live_state_free_page(struct live_state *state, uint32_t page);
int32_t live_state_new_node(struct live_state *state);
void live_state_free_node(struct live_state *state, int32_t node);

/** Makes child the child of parent, or the root if parent is LIVE_NONE. */
void live_state_set_child(struct live_state *state, uint32_t parent,
                          int32_t child);

void live_state_free(struct live_state *state);

/** Puts a point into a page, which must have room; returns the slot. */
int live_page_add_point(struct live_page *page, double x, double y, int64_t id);

/** Extends a box to include `by`. Several threads may extend a box at once; the
 *  result does not depend on their order. */
void live_box_extend(struct oj_box *box, const struct oj_box *by);

/** Returns 1 if the box, which other threads may extend, contains a point. */
static inline int live_box_contains(const struct oj_box *box, double x,
                                    double y)
{
    struct oj_box now;
    __atomic_load(&box->x0, &now.x0, __ATOMIC_RELAXED);
    __atomic_load(&box->y0, &now.y0, __ATOMIC_RELAXED);
    __atomic_load(&box->x1, &now.x1, __ATOMIC_RELAXED);
    __atomic_load(&box->y1, &now.y1, __ATOMIC_RELAXED);
    return oj_box_contains_point(&now, x, y);
}

/** Extends the cover of node parent / 4, and of the nodes above it, to include
 *  box. box is that of a page with points outside of its cell, or the cell of a
 *  new node. Several threads may call this at once. */
void live_state_extend_covers(struct live_state *state, uint32_t parent,
                              const struct oj_box *box);

/** Removes the point of a slot, which becomes a hole. */
void live_page_remove_point(struct live_page *page, int slot);

/* --- blocks ----------------------------------------------------------------
 */

struct live_retired
{
    struct live_block *block;
    int32_t last; /**< number of the last state that uses the block */
};

/** All blocks of an index. Owner; zeroed memory is a valid empty one. */
struct live_blocks
{
    struct live_block **slab; /**< [n_slabs] arrays of blocks */
    int64_t n_slabs, cap_slabs, n_blocks;
    struct live_block **unused; /**< [n_unused], room for all blocks */
    int64_t n_unused, cap_unused;
    struct live_retired *retired; /**< [n_retired], room for all blocks */
    int64_t n_retired, cap_retired;
};

/** Allocates blocks until at least n are unused. */
OJ_MUST_USE oj_status live_blocks_reserve(struct live_blocks *blocks, int64_t n,
                                          struct oj_error *err);

/** Returns an unused block. Precondition: there is one. */
static inline struct live_block *live_blocks_take(struct live_blocks *blocks)
{
    return blocks->unused[--blocks->n_unused];
}

static inline void live_blocks_give_back(struct live_blocks *blocks,
                                         struct live_block *block)
{
    blocks->unused[blocks->n_unused++] = block;
}

/** Retires a block, which states up to number `last` may still use. */
static inline void live_blocks_retire(struct live_blocks *blocks,
                                      struct live_block *block, int32_t last)
{
    blocks->retired[blocks->n_retired++] = (struct live_retired){block, last};
}

/** Makes retired blocks unused if no state from number `oldest` on uses
 *  them. */
void live_blocks_collect(struct live_blocks *blocks, int32_t oldest);

void live_blocks_free(struct live_blocks *blocks);

#endif
