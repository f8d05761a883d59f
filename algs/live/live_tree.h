/** The kept points in pages under a directory.
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
 *  A cell has its lower sides and lacks its upper ones; those on the rim have
 *  none, so that every point has a cell.  New points go where their cell is;
 *  one that moves may leave the cell by an eighth of its width and stay in the
 *  page, so that steps to and fro across a border cost nothing.  Searches go by
 *  boxes, which are around the points.  A child without points is none.  A
 *  page beyond which points cannot be cut apart (many in one place) has a chain
 *  of further ones.
 *
 *  A state is what readers see: the directory and its pages.  A batch changes
 *  the state in place while no reader has it, else a copy of it, in which every
 *  page that changes gets a block of its own; the blocks of the old state are
 *  used again when its last reader has gone.
 */
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

/** A point on its way into pages. */
struct live_point
{
    double x, y;
    int64_t id;
    int64_t entry; /**< of its id (live_ids.h), or -1: not looked up */
};

struct live_page
{
    struct live_block *block;
    struct oj_box cell; /**< x0 <= x < x1, y0 <= y < y1 */
    struct oj_box box;  /**< around its points, or larger */
    double slack;       /**< by so much a point that moves may leave the cell */
    uint32_t parent;    /**< 4 * node + child, or LIVE_NONE: the root */
    uint32_t next;      /**< of the chain, or of free pages, or LIVE_NONE */
    int32_t birth;      /**< number of the state that its block was made for */
    uint16_t n;         /**< slots that have been used, holes with them */
    uint16_t n_points;
    uint16_t first_hole; /**< or LIVE_NO_HOLE */
    uint16_t depth;      /**< nodes above it */
};

/** A child: a node from 0 on, none, or a page. */
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
    uint32_t parent; /**< 4 * node + child; of free nodes the next one */
    int32_t depth;
    struct oj_box cell;
    struct oj_box cover; /**< the cell, and the boxes of all pages below it */
};

/** The child in whose cell a place is. */
static inline int live_node_child(const struct live_node *node, double x,
                                  double y)
{
    int right = x >= node->sx;
    return 2 * right + (y >= node->sy[right]);
}

/** The cell of a child, which is part of that of the node: the covers of nodes
 *  hold for points that move within the cells below them. */
struct oj_box live_node_child_cell(const struct live_node *node, int child);

/** 1: a point of the page that moves there may stay in it. */
static inline int live_page_keeps(const struct live_page *page, double x,
                                  double y)
{
    const struct oj_box *cell = &page->cell;
    return (x >= cell->x0 - page->slack) & (x < cell->x1 + page->slack) &
           (y >= cell->y0 - page->slack) & (y < cell->y1 + page->slack);
}

/** What readers see. Owner of page and node, not of blocks. */
struct live_state
{
    int64_t n_readers; /**< under the lock of the index */
    int32_t number;
    int32_t root;    /**< a child */
    int64_t edition; /**< which batch made it what it is */
    struct live_state *older;
    int64_t n_points;
    int64_t n_pages, cap_pages; /**< with free ones */
    int64_t n_nodes, cap_nodes;
    int64_t n_leaves; /**< pages in use */
    struct live_page *page;
    struct live_node *node;
    uint32_t free_page, free_node; /**< the first of them, or LIVE_NONE */
};

/** Places that are looked for at once: the way down is one of cache misses. */
#define LIVE_LOCATED_AT_ONCE 8

struct live_located
{
    double x, y;
    int32_t child;   /**< a page or LIVE_NO_CHILD */
    uint32_t parent; /**< that such a page has */
};

/** Finds where n <= LIVE_LOCATED_AT_ONCE places belong. */
void live_state_locate(const struct live_state *state, int n,
                       struct live_located *located);

/** An empty state. */
OJ_MUST_USE oj_status live_state_new(struct live_state **out,
                                     struct oj_error *err);

/** A copy, with room for more pages and nodes. */
OJ_MUST_USE oj_status live_state_copy(const struct live_state *from,
                                      int64_t more, struct live_state **out,
                                      struct oj_error *err);

/** Room for more pages, and nodes, than those that are free now. */
OJ_MUST_USE oj_status live_state_reserve_pages(struct live_state *state,
                                               int64_t more,
                                               struct oj_error *err);
OJ_MUST_USE oj_status live_state_reserve_nodes(struct live_state *state,
                                               int64_t more,
                                               struct oj_error *err);

/** A page without points, for which there is room; its block is set. */
uint32_t live_state_new_page(struct live_state *state, struct live_block *block,
                             const struct oj_box *cell, uint32_t parent,
                             int depth);
void live_state_free_page(struct live_state *state, uint32_t page);
int32_t live_state_new_node(struct live_state *state);
void live_state_free_node(struct live_state *state, int32_t node);

/** Makes child that of parent, or the root. */
void live_state_set_child(struct live_state *state, uint32_t parent,
                          int32_t child);

void live_state_free(struct live_state *state);

/** Puts a point into a page that has room; returns its slot. */
int live_page_add(struct live_page *page, double x, double y, int64_t id);

/** Makes the covers of the nodes from a parent upwards have a box: that of a
 * page whose points have left its cell, or a cell that was cut beside it. */
void live_state_cover(struct live_state *state, uint32_t parent,
                      const struct oj_box *box);

/** Makes a slot a hole. */
void live_page_remove(struct live_page *page, int slot);

/* --- blocks ----------------------------------------------------------------
 */

struct live_retired
{
    struct live_block *block;
    int32_t last; /**< number of the last state that has it */
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

/** Makes at least n blocks unused. */
OJ_MUST_USE oj_status live_blocks_reserve(struct live_blocks *blocks, int64_t n,
                                          struct oj_error *err);

/** One of the unused. */
static inline struct live_block *live_blocks_take(struct live_blocks *blocks)
{
    return blocks->unused[--blocks->n_unused];
}

static inline void live_blocks_give_back(struct live_blocks *blocks,
                                         struct live_block *block)
{
    blocks->unused[blocks->n_unused++] = block;
}

/** A block that states up to last may still have. */
static inline void live_blocks_retire(struct live_blocks *blocks,
                                      struct live_block *block, int32_t last)
{
    blocks->retired[blocks->n_retired++] = (struct live_retired){block, last};
}

/** Makes those retired blocks unused that only states before oldest had. */
void live_blocks_collect(struct live_blocks *blocks, int32_t oldest);

void live_blocks_free(struct live_blocks *blocks);

#endif
