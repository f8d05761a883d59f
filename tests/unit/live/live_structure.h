/** Checks the invariants of a kept index. Every point is in the boxes above it,
 * the table of ids has the place of every id, and no page is empty. Include
 * once. */
#ifndef LIVE_STRUCTURE_H
#define LIVE_STRUCTURE_H

#include "../../../algs/live/oj_live.h"
#include "../assertions.h"
#include "../random_numbers.h"

struct structure
{
    struct oj_live *live;
    const struct live_state *state;
    int64_t n_points, n_pages;
    int deepest;
};

static inline void check_slots(struct structure *s, uint32_t number,
                               const struct oj_box *cover)
{
    const struct live_page *page = &s->state->page[number];
    int n = 0;
    expect(page->n <= LIVE_PAGE_POINTS, "a page of %d slots", page->n);
    for (int slot = 0; slot < page->n; slot++)
    {
        double x = page->block->x[slot], y = page->block->y[slot];
        int64_t at;
        if (x != x)
            continue;
        n++;
        at = live_ids_find(&s->live->ids, page->block->id[slot]);
        expect(oj_box_contains_point(cover, x, y) &&
                   oj_box_contains_point(&page->box, x, y),
               "seed %llu: a point out of its box", (unsigned long long)seed);
        expect(at >= 0 && s->live->ids.entry[at].page == number &&
                   s->live->ids.entry[at].slot == slot,
               "seed %llu: an id elsewhere", (unsigned long long)seed);
    }
    expect(n == page->n_points && n > 0, "seed %llu: %d points of %d",
           (unsigned long long)seed, n, page->n_points);
    s->n_points += n;
    s->n_pages++;
}

/* Checks a child node. cover is a box that must contain all points below the
 * parent.
 */
static inline void check_child(struct structure *s, int32_t child,
                               struct oj_box cell, struct oj_box cover,
                               uint32_t parent, int depth)
{
    s->deepest = depth > s->deepest ? depth : s->deepest;
    if (child == LIVE_NO_CHILD)
        return;
    if (child < 0)
    {
        uint32_t page = live_page_of_child(child);
        for (; page != LIVE_NONE; page = s->state->page[page].next)
        {
            const struct live_page *of = &s->state->page[page];
            expect(of->parent == parent && of->depth == depth &&
                       memcmp(&of->cell, &cell, sizeof cell) == 0,
                   "seed %llu: a page elsewhere", (unsigned long long)seed);
            check_slots(s, page, &cover);
        }
        return;
    }
    expect(s->state->node[child].parent == parent &&
               s->state->node[child].depth == depth &&
               memcmp(&s->state->node[child].cell, &cell, sizeof cell) == 0 &&
               oj_box_covers(&cover, &s->state->node[child].cover),
           "seed %llu: a node elsewhere", (unsigned long long)seed);
    for (int c = 0, n = 0; c < 4; c++)
    {
        const struct live_node *node = &s->state->node[child];
        n += node->child[c] != LIVE_NO_CHILD;
        expect(c < 3 || n > 0, "seed %llu: a node without children",
               (unsigned long long)seed);
        check_child(s, node->child[c], live_node_child_cell(node, c),
                    node->cover, 4 * (uint32_t)child + (uint32_t)c, depth + 1);
    }
}

static inline struct structure check_structure(struct oj_live *live)
{
    struct oj_box all = {-INFINITY, -INFINITY, INFINITY, INFINITY};
    struct structure s = {.live = live, .state = oj_live_acquire_state(live)};
    check_child(&s, s.state->root, all, all, LIVE_NONE, 0);
    expect(s.n_points == s.state->n_points && s.n_points == live->ids.n,
           "seed %llu: %lld points of %lld, %lld ids", (unsigned long long)seed,
           (long long)s.n_points, (long long)s.state->n_points,
           (long long)live->ids.n);
    expect(s.n_pages == s.state->n_leaves, "seed %llu: %lld pages of %lld",
           (unsigned long long)seed, (long long)s.n_pages,
           (long long)s.state->n_leaves);
    oj_live_release_state(live, s.state);
    return s;
}

#endif
