#include "live_tree.h"

#include "../../flatten/base/oj_alloc.h"

#include <math.h>
#include <string.h>

#define BLOCKS_OF_SLAB 64

/* Maximum number of pages or nodes: children are int32_t, and parents are 4 *
 * node + child. */
#define MOST_PAGES (INT32_MAX / 4)

struct oj_box live_node_child_cell(const struct live_node *node, int child)
{
    struct oj_box cell = node->cell;
    int right = child >> 1;
    double sx = node->sx, sy = node->sy[right];
    /* A cut may lie outside of the cell: at -INFINITY, if all points are on one
     * side, or among points outside of the cell, which a page keeps up to its
     * slack away. One child then keeps the whole cell, and the box of the other
     * is empty (x1 < x0 or y1 < y0). */
    if (right)
        cell.x0 = oj_larger(cell.x0, sx);
    else
        cell.x1 = sx < cell.x1 ? sx : cell.x1;
    if (child & 1)
        cell.y0 = oj_larger(cell.y0, sy);
    else
        cell.y1 = sy < cell.y1 ? sy : cell.y1;
    return cell;
}

/* --- states ----------------------------------------------------------------
 */

oj_status live_state_new(struct live_state **out, struct oj_error *err)
{
    struct live_state *state;
    OJ_NEW_ZEROED(state, 1, err);
    state->root = LIVE_NO_CHILD;
    state->free_page = state->free_node = LIVE_NONE;
    *out = state;
    return OJ_OK;
}

oj_status live_state_copy(const struct live_state *from, int64_t more,
                          struct live_state **out, struct oj_error *err)
{
    struct live_state *state = oj_malloc(1, sizeof *state);
    if (state == NULL)
        return oj_fail_nomem(err, 1, sizeof *state);
    /* n_readers and older are not copied: other threads change them under the
     * lock of the index, which is not held here. */
    *state = (struct live_state){.number = from->number,
                                 .root = from->root,
                                 .edition = from->edition,
                                 .n_points = from->n_points,
                                 .n_pages = from->n_pages,
                                 .n_nodes = from->n_nodes,
                                 .n_leaves = from->n_leaves,
                                 .free_page = from->free_page,
                                 .free_node = from->free_node};
    state->cap_pages = from->n_pages + more;
    state->cap_nodes = from->n_nodes + more;
    state->page = oj_malloc(state->cap_pages, sizeof *state->page);
    state->node = oj_malloc(state->cap_nodes, sizeof *state->node);
    if (state->page == NULL || state->node == NULL)
    {
        live_state_free(state);
        return oj_fail_nomem(err, from->n_pages + more, sizeof *state->page);
    }
    if (from->n_pages > 0)
        memcpy(state->page, from->page,
               (size_t)from->n_pages * sizeof *state->page);
    if (from->n_nodes > 0)
        memcpy(state->node, from->node,
               (size_t)from->n_nodes * sizeof *state->node);
    *out = state;
    return OJ_OK;
}

oj_status live_state_reserve_pages(struct live_state *state, int64_t more,
                                   struct oj_error *err)
{
    if (state->n_pages + more > MOST_PAGES)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a kept index has at most %d pages of %d points: keep "
                       "several indexes",
                       MOST_PAGES, LIVE_PAGE_POINTS);
    OJ_ROOM(state->page, state->n_pages, state->n_pages + more,
            state->cap_pages, err);
    return OJ_OK;
}

oj_status live_state_reserve_nodes(struct live_state *state, int64_t more,
                                   struct oj_error *err)
{
    OJ_ROOM(state->node, state->n_nodes, state->n_nodes + more,
            state->cap_nodes, err);
    return OJ_OK;
}

void live_state_locate_points(const struct live_state *state, int n,
                              struct live_located *located)
{
    int n_open = state->root >= 0 ? n : 0;
    for (int i = 0; i < n; i++)
    {
        located[i].child = state->root;
        located[i].parent = LIVE_NONE;
    }
    while (n_open > 0)
    {
        n_open = 0;
        for (int i = 0; i < n; i++)
        {
            const struct live_node *node;
            int c;
            if (located[i].child < 0)
                continue;
            node = &state->node[located[i].child];
            c = live_node_child(node, located[i].x, located[i].y);
            located[i].parent = 4 * (uint32_t)located[i].child + (uint32_t)c;
            located[i].child = node->child[c];
            if (located[i].child >= 0)
            {
                __builtin_prefetch(&state->node[located[i].child]);
                n_open++;
            }
        }
    }
}

/* Returns an eighth of the shorter side of a cell; 0 if both sides are
 * infinite. */
static double slack_of_cell(const struct oj_box *cell)
{
    double width = cell->x1 - cell->x0, height = cell->y1 - cell->y0;
    double least = width < height ? width : height;
    return least < INFINITY ? 0.125 * least : 0.0;
}

static double load_side_atomically(const double *side)
{
    double v;
    __atomic_load(side, &v, __ATOMIC_RELAXED);
    return v;
}

static void lower_side_atomically(double *side, double v)
{
    double old = load_side_atomically(side);
    while (v < old &&
           !__atomic_compare_exchange(side, &old, &v, 1, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED))
    {
    }
}

static void raise_side_atomically(double *side, double v)
{
    double old = load_side_atomically(side);
    while (v > old &&
           !__atomic_compare_exchange(side, &old, &v, 1, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED))
    {
    }
}

void live_box_extend(struct oj_box *box, const struct oj_box *by)
{
    lower_side_atomically(&box->x0, by->x0);
    lower_side_atomically(&box->y0, by->y0);
    raise_side_atomically(&box->x1, by->x1);
    raise_side_atomically(&box->y1, by->y1);
}

void live_state_extend_covers(struct live_state *state, uint32_t parent,
                              const struct oj_box *box)
{
    for (; parent != LIVE_NONE; parent = state->node[parent / 4].parent)
    {
        struct oj_box *cover = &state->node[parent / 4].cover;
        if (live_box_contains(cover, box->x0, box->y0) &&
            live_box_contains(cover, box->x1, box->y1))
            return;
        live_box_extend(cover, box);
    }
}

uint32_t live_state_new_page(struct live_state *state, struct live_block *block,
                             const struct oj_box *cell, uint32_t parent,
                             int depth)
{
    uint32_t at = state->free_page;
    if (at != LIVE_NONE)
        state->free_page = state->page[at].next;
    else
        at = (uint32_t)state->n_pages++;
    state->page[at] = (struct live_page){.block = block,
                                         .cell = *cell,
                                         .box = oj_box_empty(),
                                         .slack = slack_of_cell(cell),
                                         .parent = parent,
                                         .next = LIVE_NONE,
                                         .birth = state->number,
                                         .first_hole = LIVE_NO_HOLE,
                                         .depth = (uint16_t)depth};
    state->n_leaves++;
    return at;
}

void live_state_free_page(struct live_state *state, uint32_t page)
{
    memset(&state->page[page], 0, sizeof state->page[page]);
    state->page[page].next = state->free_page;
    state->free_page = page;
    state->n_leaves--;
}

int32_t live_state_new_node(struct live_state *state)
{
    uint32_t at = state->free_node;
    if (at == LIVE_NONE)
        return (int32_t)state->n_nodes++;
    state->free_node = state->node[at].parent;
    return (int32_t)at;
}

void live_state_free_node(struct live_state *state, int32_t node)
{
    state->node[node].parent = state->free_node;
    state->free_node = (uint32_t)node;
}

void live_state_set_child(struct live_state *state, uint32_t parent,
                          int32_t child)
{
    if (parent == LIVE_NONE)
        state->root = child;
    else
        state->node[parent / 4].child[parent % 4] = child;
}

void live_state_free(struct live_state *state)
{
    if (state == NULL)
        return;
    oj_free(state->page);
    oj_free(state->node);
    oj_free(state);
}

/* --- pages -----------------------------------------------------------------
 */

int live_page_add_point(struct live_page *page, double x, double y, int64_t id)
{
    struct live_block *block = page->block;
    int slot = page->first_hole;
    if (slot == LIVE_NO_HOLE)
        slot = page->n++;
    else
        page->first_hole = (uint16_t)block->id[slot];
    block->x[slot] = x;
    block->y[slot] = y;
    block->id[slot] = id;
    page->n_points++;
    oj_box_add_point(&page->box, x, y);
    return slot;
}

void live_page_remove_point(struct live_page *page, int slot)
{
    page->block->x[slot] = NAN;
    page->block->id[slot] = page->first_hole;
    page->first_hole = (uint16_t)slot;
    page->n_points--;
}

/* --- blocks ----------------------------------------------------------------
 */

static oj_status allocate_slab_of_blocks(struct live_blocks *blocks, int64_t n,
                                         struct oj_error *err)
{
    struct live_block *slab;
    int64_t all = blocks->n_blocks + n;
    OJ_ROOM(blocks->slab, blocks->n_slabs, blocks->n_slabs + 1,
            blocks->cap_slabs, err);
    OJ_ROOM(blocks->unused, blocks->n_unused, all, blocks->cap_unused, err);
    OJ_ROOM(blocks->retired, blocks->n_retired, all, blocks->cap_retired, err);
    OJ_NEW(slab, n, err);
    blocks->slab[blocks->n_slabs++] = slab;
    blocks->n_blocks = all;
    for (int64_t i = n; i-- > 0;) /* descending, so that live_blocks_take()
                                     takes the first block first */
        live_blocks_give_back(blocks, &slab[i]);
    return OJ_OK;
}

oj_status live_blocks_reserve(struct live_blocks *blocks, int64_t n,
                              struct oj_error *err)
{
    int64_t more = n - blocks->n_unused;
    if (more <= 0)
        return OJ_OK;
    return allocate_slab_of_blocks(
        blocks, more > BLOCKS_OF_SLAB ? more : BLOCKS_OF_SLAB, err);
}

void live_blocks_collect(struct live_blocks *blocks, int32_t oldest)
{
    int64_t n = 0;
    for (int64_t i = 0; i < blocks->n_retired; i++)
    {
        if (blocks->retired[i].last < oldest)
            live_blocks_give_back(blocks, blocks->retired[i].block);
        else
            blocks->retired[n++] = blocks->retired[i];
    }
    blocks->n_retired = n;
}

void live_blocks_free(struct live_blocks *blocks)
{
    for (int64_t i = 0; i < blocks->n_slabs; i++)
        oj_free(blocks->slab[i]);
    oj_free(blocks->slab);
    oj_free(blocks->unused);
    oj_free(blocks->retired);
    memset(blocks, 0, sizeof *blocks);
}
