/** A tree of cells over polygon rings built on the host, one thing after the
 *  other, with the functions that a device builds it with.  Include once, after
 *  references.h. */
#ifndef PLAIN_RING_TREE_H
#define PLAIN_RING_TREE_H

#include "../../../cuda/rings/oj_ring_start.h"
#include "../../../flatten/base/oj_array.h"
#include "../references.h"

#include <stdlib.h>

/* An array that grows. */
#define TREE_PUSH(array, value)                                                \
    do                                                                         \
    {                                                                          \
        must(oj_reserve(&(array).data, (array).n, (array).n + 1, &(array).cap, \
                        sizeof *(array).data, &error));                        \
        (array).data[(array).n++] = (value);                                   \
    } while (0)

#define TREE_ARRAY(type)                                                       \
    struct                                                                     \
    {                                                                          \
        type *data;                                                            \
        int64_t n, cap;                                                        \
    }

struct tree_node
{
    uint32_t ix, iy;
    int64_t slot, first, end; /* fragments */
    float replication;
};

struct tree_level
{
    TREE_ARRAY(struct tree_node) node;
    TREE_ARRAY(struct oj_ring_fragment) fragment;
    TREE_ARRAY(uint32_t) entry; /* segments */
};

struct plain_tree
{
    struct oj_ring_tree tree;
    int start; /* the level built first */
    TREE_ARRAY(struct oj_ring_segment) segment;
    TREE_ARRAY(uint32_t) segment_unit;
    TREE_ARRAY(uint32_t) slot;
    TREE_ARRAY(uint32_t) directory;
    TREE_ARRAY(uint16_t) occupied;
    TREE_ARRAY(struct oj_ring_leaf) leaf;
    TREE_ARRAY(struct oj_ring_record) record;
    TREE_ARRAY(struct oj_ring_edge16) edge;
    TREE_ARRAY(uint32_t) edge_segment;
    TREE_ARRAY(int32_t) part_feature;
    /* of the node at work */
    TREE_ARRAY(struct oj_ring_masks) masks;
    TREE_ARRAY(uint32_t) touched; /* of each edge */
};

/* --- what goes into the root ---------------------------------------------- */

static inline void tree_add_ring(struct plain_tree *t,
                                 const struct oj_flat *flat, int64_t ring,
                                 uint32_t unit)
{
    for (int64_t v = flat->vertex_offset[ring];
         v + 1 < flat->vertex_offset[ring + 1]; v++)
    {
        struct oj_ring_segment s = {flat->x[v], flat->y[v], flat->x[v + 1],
                                    flat->y[v + 1]};
        TREE_PUSH(t->segment, s);
        TREE_PUSH(t->segment_unit, unit);
    }
}

static inline void tree_add_rings(struct plain_tree *t,
                                  const struct oj_flat *flat)
{
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        for (int64_t p = flat->part_offset[f]; p < flat->part_offset[f + 1];
             p++)
        {
            TREE_PUSH(t->part_feature, (int32_t)f);
            if (flat->part_kind[p] != OJ_PART_POLYGON)
                continue;
            for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
                 r++)
                tree_add_ring(
                    t, flat, r,
                    (uint32_t)(t->tree.units == OJ_RING_FEATURES ? f : p));
        }
    }
}

static inline struct oj_ring_frame tree_frame(const struct plain_tree *t)
{
    double x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;
    for (int64_t i = 0; i < t->segment.n; i++)
    {
        const struct oj_ring_segment *s = &t->segment.data[i];
        x0 = fmin(x0, fmin(s->ax, s->bx));
        y0 = fmin(y0, fmin(s->ay, s->by));
        x1 = fmax(x1, fmax(s->ax, s->bx));
        y1 = fmax(y1, fmax(s->ay, s->by));
    }
    return t->segment.n > 0 ? oj_ring_frame_around(x0, y0, x1, y1)
                            : oj_ring_frame_around(0.0, 0.0, 0.0, 0.0);
}

static inline void tree_make_root(struct plain_tree *t,
                                  struct tree_level *level)
{
    struct tree_node root = {0, 0, 0, 0, 0, 1.0f};
    for (int64_t i = 0; i < t->segment.n; i++)
    {
        uint32_t unit = t->segment_unit.data[i];
        struct oj_ring_fragment *last =
            level->fragment.n > 0 ? &level->fragment.data[level->fragment.n - 1]
                                  : NULL;
        TREE_PUSH(level->entry, (uint32_t)i);
        if (last != NULL && last->unit == 2 * unit &&
            last->n < OJ_RING_FRAGMENT)
            last->n++;
        else
        {
            struct oj_ring_fragment f = {2 * unit, (uint32_t)i, 1, 0};
            TREE_PUSH(level->fragment, f);
        }
    }
    root.end = level->fragment.n;
    TREE_PUSH(level->node, root);
    for (int i = 0; i < OJ_RING_CELL_CHILDREN; i++)
        TREE_PUSH(t->slot, 0); /* so that children come in whole groups */
}

/* --- a node --------------------------------------------------------------- */

static inline void tree_mark(struct plain_tree *t,
                             const struct tree_level *level,
                             const struct tree_node *node,
                             struct oj_ring_splitter s)
{
    t->masks.n = t->touched.n = 0;
    for (int64_t k = node->first; k < node->end; k++)
    {
        const struct oj_ring_fragment *f = &level->fragment.data[k];
        struct oj_ring_masks m = {0, 0, 0};
        for (uint32_t e = 0; e < f->n; e++)
        {
            const struct oj_ring_segment *g =
                &t->segment.data[level->entry.data[f->first + e]];
            struct oj_ring_split split =
                oj_ring_split_edge(&s, g->ax, g->ay, g->bx, g->by, NULL);
            TREE_PUSH(t->touched, split.touched);
            oj_ring_masks_add(&m, split);
        }
        TREE_PUSH(t->masks, m);
    }
}

/* Bits of fragments that have no edges in a child go to the first fragment of
 * the unit: it gets them all, in every child. */
static inline uint32_t tree_inside(const struct plain_tree *t,
                                   const struct tree_level *level,
                                   const struct tree_node *node, int64_t k,
                                   uint32_t *touched)
{
    const struct oj_ring_fragment *f = &level->fragment.data[k];
    const struct oj_ring_masks *m = &t->masks.data[k - node->first];
    uint32_t inside = oj_ring_masks_inside(m, f->unit);
    *touched = m->touched;
    if (k > node->first && f[-1].unit >> 1 == f->unit >> 1)
        return inside & m->touched;
    for (int64_t i = k + 1;
         i < node->end && level->fragment.data[i].unit >> 1 == f->unit >> 1;
         i++)
        inside ^= oj_ring_masks_inside(&t->masks.data[i - node->first],
                                       level->fragment.data[i].unit) &
                  ~t->masks.data[i - node->first].touched;
    return inside;
}

/* What child c gets. */
static inline void tree_put_child(struct plain_tree *t,
                                  const struct tree_level *level,
                                  const struct tree_node *node, uint32_t c,
                                  uint32_t child, struct tree_level *next)
{
    int64_t e = 0;
    for (int64_t k = node->first; k < node->end; k++)
    {
        const struct oj_ring_fragment *f = &level->fragment.data[k];
        uint32_t touched;
        uint32_t inside = tree_inside(t, level, node, k, &touched);
        struct oj_ring_fragment made = {(f->unit & ~1u) | (inside >> c & 1u),
                                        (uint32_t)next->entry.n, 0, child};
        for (uint32_t i = 0; i < f->n; i++, e++)
        {
            if ((t->touched.data[e] >> c & 1u) == 0u)
                continue;
            TREE_PUSH(next->entry, level->entry.data[f->first + i]);
            made.n++;
        }
        if (made.n > 0 || (made.unit & 1u))
            TREE_PUSH(next->fragment, made);
    }
}

static inline void tree_split(struct plain_tree *t,
                              const struct tree_level *level,
                              const struct tree_node *node,
                              struct tree_level *next)
{
    int64_t base = t->slot.n, n = t->touched.n + t->masks.n;
    int64_t n_before = next->entry.n + next->fragment.n;
    int64_t first_child = next->node.n;
    t->slot.data[node->slot] =
        oj_ring_slot_make(OJ_RING_INNER, (uint32_t)(base / 16));
    /* slots come in groups of 16, those of the first level aside */
    for (uint32_t c = 0; c < OJ_RING_CELL_CHILDREN; c++)
    {
        struct tree_node child = {4 * node->ix + c % 4,
                                  4 * node->iy + c / 4,
                                  base + c,
                                  next->fragment.n,
                                  0,
                                  0.0f};
        tree_put_child(t, level, node, c, (uint32_t)next->node.n, next);
        child.end = next->fragment.n;
        TREE_PUSH(next->node, child);
        TREE_PUSH(t->slot, 0);
    }
    for (int64_t i = first_child; i < next->node.n; i++)
        next->node.data[i].replication =
            node->replication *
            (float)(next->entry.n + next->fragment.n - n_before) / (float)n;
}

static inline void tree_finish(struct plain_tree *t,
                               const struct tree_level *level, int depth,
                               const struct tree_node *node)
{
    int64_t n = node->end - node->first;
    double side = t->tree.frame.side[depth], rx, ry;
    double steps = t->tree.frame.steps[depth];
    float margin = oj_ring_edge_margin(&t->tree.frame, steps);
    struct oj_ring_coder coder = oj_ring_coder_make(t->tree.units);
    struct oj_ring_leaf leaf = {0, (uint32_t)t->record.n,
                                16 * (uint32_t)n + (uint32_t)depth};
    oj_ring_cell_reference(&t->tree.frame, node->ix, node->iy, side, &rx, &ry);
    for (int64_t k = node->first; k < node->end; k++)
    {
        const struct oj_ring_fragment *f = &level->fragment.data[k];
        struct oj_ring_split all = {0, 0};
        for (uint32_t i = 0; i < f->n; i++)
        {
            const struct oj_ring_segment *g =
                &t->segment.data[level->entry.data[f->first + i]];
            struct oj_ring_split split = oj_ring_edge_sixteenths(
                oj_ring_edge_of(g->ax, g->ay, g->bx, g->by, rx, ry, steps),
                margin);
            all.touched |= split.touched;
            all.toggled ^= split.toggled;
        }
        oj_ring_coder_add(&coder, f->unit >> 1, oj_ring_said_of(f->unit, all));
    }
    leaf.code =
        n > OJ_RING_CODED_RECORDS ? UINT64_MAX : oj_ring_coder_end(&coder);
    if (t->touched.n == 0 && leaf.code == 0)
        return;
    if (t->touched.n == 0 && leaf.code % 16 != OJ_RING_CODE_ASK)
    {
        uint32_t unit =
            level->fragment.data[node->first + (int64_t)(leaf.code % 16) - 1]
                .unit >>
            1;
        t->slot.data[node->slot] = oj_ring_slot_make(
            OJ_RING_COVERED, (uint32_t)oj_ring_record_rank(&t->tree, unit));
        return;
    }
    t->slot.data[node->slot] =
        oj_ring_slot_make(OJ_RING_LEAF, (uint32_t)t->leaf.n);
    TREE_PUSH(t->leaf, leaf);
    for (int64_t k = node->first; k < node->end; k++)
    {
        const struct oj_ring_fragment *f = &level->fragment.data[k];
        struct oj_ring_record r = {f->unit, (uint32_t)t->edge.n};
        TREE_PUSH(t->record, r);
        for (uint32_t i = 0; i < f->n; i++)
        {
            uint32_t id = level->entry.data[f->first + i];
            const struct oj_ring_segment *g = &t->segment.data[id];
            TREE_PUSH(t->edge, oj_ring_edge_of(g->ax, g->ay, g->bx, g->by, rx,
                                               ry, steps));
            TREE_PUSH(t->edge_segment, id);
        }
    }
}

/* --- where to start ------------------------------------------------------- */

static inline int64_t tree_end_of_unit(const struct plain_tree *t, int64_t i)
{
    uint32_t unit = t->segment_unit.data[i];
    while (i < t->segment.n && t->segment_unit.data[i] == unit)
        i++;
    return i;
}

static inline struct oj_ring_windows
tree_windows(const struct plain_tree *t, int64_t first, int64_t end, int depth)
{
    struct oj_ring_chain chain = oj_ring_chain_make();
    for (int64_t i = first; i < end; i++)
    {
        const struct oj_ring_segment *s = &t->segment.data[i];
        oj_ring_chain_add(&chain, s->ax, s->ay, s->bx, s->by);
    }
    return oj_ring_windows_of(&t->tree.frame, &chain, depth);
}

/* The level that all units can start at; 0: the root. */
static inline int tree_choose_start(const struct plain_tree *t, int fine)
{
    int levels = t->tree.frame.levels, depth;
    depth = oj_ring_start_level(t->segment.n, fine < levels ? fine : levels);
    for (; depth > 0; depth--)
    {
        int64_t i = 0, end;
        for (; i < t->segment.n; i = end)
        {
            end = tree_end_of_unit(t, i);
            if (tree_windows(t, i, end, depth).nx == 0)
                break;
        }
        if (i == t->segment.n)
            return depth;
    }
    return 0;
}

/* One unit through its windows into cells: fragments whose node is a cell. */
static inline void tree_put_unit(struct plain_tree *t, int64_t first,
                                 int64_t end, struct tree_level *cells)
{
    int depth = t->start;
    struct oj_ring_windows w = tree_windows(t, first, end, depth);
    struct tree_level level;
    struct tree_node node = {0, 0, 0, 0, 0, 1.0f};
    memset(&level, 0, sizeof level);
    for (int64_t i = first; i < end; i += OJ_RING_FRAGMENT)
    {
        struct oj_ring_fragment f = {
            2 * t->segment_unit.data[first], (uint32_t)level.entry.n,
            (uint32_t)(end - i < OJ_RING_FRAGMENT ? end - i : OJ_RING_FRAGMENT),
            0};
        for (uint32_t k = 0; k < f.n; k++)
            TREE_PUSH(level.entry, (uint32_t)(i + k));
        TREE_PUSH(level.fragment, f);
    }
    node.end = level.fragment.n;
    for (uint32_t k = 0; k < w.nx * w.ny; k++)
    {
        uint32_t ix = w.ix + 4 * (k % w.nx), iy = w.iy + 4 * (k / w.nx);
        tree_mark(t, &level, &node,
                  oj_ring_splitter_of_window(&t->tree.frame, ix, iy,
                                             t->tree.frame.side[depth]));
        for (uint32_t c = 0; c < OJ_RING_CELL_CHILDREN; c++)
            tree_put_child(
                t, &level, &node, c,
                (uint32_t)oj_ring_directory_at(ix + c % 4, iy + c / 4, depth),
                cells);
    }
    oj_free(level.entry.data);
    oj_free(level.fragment.data);
}

static inline int tree_by_cell(const void *left, const void *right)
{
    const struct oj_ring_fragment *a = left, *b = right;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (a->unit >> 1 != b->unit >> 1)
        return a->unit < b->unit ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

/* The children of a cell of the level above the first: fragments from k on. */
static inline int64_t tree_add_group(struct plain_tree *t, uint32_t parent,
                                     int64_t k, struct tree_level *level)
{
    int shift = 2 * t->start - 2;
    uint32_t ix = parent & ((1u << shift) - 1u), iy = parent >> shift;
    t->slot.data[oj_ring_directory_at(ix, iy, t->start - 1)] =
        oj_ring_slot_make(OJ_RING_INNER, (uint32_t)(t->slot.n / 16));
    for (uint32_t c = 0; c < OJ_RING_CELL_CHILDREN; c++)
    {
        struct tree_node node = {
            4 * ix + c % 4, 4 * iy + c / 4, t->slot.n, k, k, 1.0f};
        for (; k < level->fragment.n &&
               level->fragment.data[k].node == 16 * parent + c;
             k++)
            level->fragment.data[k].node = (uint32_t)level->node.n;
        node.end = k;
        TREE_PUSH(level->node, node);
        TREE_PUSH(t->slot, 0);
    }
    return k;
}

static inline void tree_make_first(struct plain_tree *t,
                                   struct tree_level *level)
{
    int64_t n_above = (int64_t)1 << (4 * t->start - 4);
    for (int64_t i = 0; i < n_above || i % 16 != 0; i++)
        TREE_PUSH(t->slot, 0);
    for (int64_t i = 0, end; i < t->segment.n; i = end)
    {
        end = tree_end_of_unit(t, i);
        tree_put_unit(t, i, end, level);
    }
    qsort(level->fragment.data, (size_t)level->fragment.n,
          sizeof *level->fragment.data, tree_by_cell);
    for (int64_t k = 0; k < level->fragment.n;)
        k = tree_add_group(t, level->fragment.data[k].node / 16, k, level);
}

/* --- the whole ------------------------------------------------------------ */

static inline void tree_free_level(struct tree_level *level)
{
    oj_free(level->node.data);
    oj_free(level->fragment.data);
    oj_free(level->entry.data);
    memset(level, 0, sizeof *level);
}

static inline void tree_make_directory(struct plain_tree *t, int depth)
{
    uint32_t n = 1u << (2 * depth);
    t->directory.n = 0;
    for (uint64_t i = 0; i < (uint64_t)n * n; i++)
        TREE_PUSH(t->directory, 0);
    for (uint32_t y = 0; y < n; y++)
    {
        for (uint32_t x = 0; x < n; x++)
        {
            int top = t->start > 0 ? t->start - 1 : 0,
                above = 2 * (depth - top);
            uint32_t slot =
                t->slot.data[oj_ring_directory_at(x >> above, y >> above, top)];
            for (int d = top + 1;
                 d <= depth && slot >> OJ_RING_SLOT_BITS == OJ_RING_INNER; d++)
            {
                int shift = 2 * (depth - d);
                slot = t->slot.data[(slot & OJ_RING_SLOT_MAX) * 16ull +
                                    (y >> shift & 3u) * 4 + (x >> shift & 3u)];
            }
            t->directory.data[oj_ring_directory_at(x, y, depth)] = slot;
        }
    }
    t->tree.directory_level = depth;
    t->tree.directory = t->directory.data;
}

static inline void tree_make_occupied(struct plain_tree *t)
{
    int depth = t->tree.directory_level + 1;
    uint32_t n = 1u << (2 * depth);
    t->occupied.n = 0;
    for (uint64_t i = 0; i < (uint64_t)n * n; i++)
        TREE_PUSH(t->occupied, 0);
    for (uint32_t y = 0; y < n; y++)
    {
        for (uint32_t x = 0; x < n; x++)
            t->occupied.data[oj_ring_directory_at(x, y, depth)] =
                (uint16_t)oj_ring_occupied(&t->tree, x, y);
    }
    t->tree.occupied = t->occupied.data;
}

/* Lends the tree its arrays. */
static inline void tree_lend(struct plain_tree *t)
{
    t->tree.slot = t->slot.data;
    t->tree.leaf = t->leaf.data;
    t->tree.record = t->record.data;
    t->tree.edge = t->edge.data;
    t->tree.edge_segment = t->edge_segment.data;
    t->tree.segment = t->segment.data;
    t->tree.part_feature = t->part_feature.data;
}

static inline void plain_tree_build(struct plain_tree *t,
                                    const struct oj_flat *flat,
                                    enum oj_ring_units units, uint32_t most,
                                    int directory_level)
{
    struct tree_level level, next;
    struct oj_ring_record last = {0, 0};
    int64_t n_most;
    memset(t, 0, sizeof *t);
    memset(&level, 0, sizeof level);
    memset(&next, 0, sizeof next);
    t->tree.units = (int32_t)units;
    tree_add_rings(t, flat);
    n_most = 8 * t->segment.n + 10000;
    t->tree.frame = tree_frame(t);
    tree_lend(t);
    t->start = tree_choose_start(t, directory_level + 1);
    if (t->start > 0)
        tree_make_first(t, &level);
    else
        tree_make_root(t, &level);
    for (int depth = t->start; level.node.n > 0; depth++)
    {
        int is_large = t->edge.n + t->record.n + level.entry.n > n_most;
        for (int64_t i = 0; i < level.node.n; i++)
        {
            const struct tree_node *node = &level.node.data[i];
            tree_mark(t, &level, node,
                      oj_ring_splitter_of(&t->tree.frame, node->ix, node->iy,
                                          t->tree.frame.side[depth],
                                          depth == 0));
            if (oj_ring_node_splits(
                    (uint32_t)t->touched.n,
                    oj_ring_node_most(most, depth, directory_level + 1), depth,
                    t->tree.frame.levels, node->replication, is_large))
                tree_split(t, &level, node, &next);
            else
                tree_finish(t, &level, depth, node);
        }
        tree_free_level(&level);
        level = next;
        memset(&next, 0, sizeof next);
    }
    last.first = (uint32_t)t->edge.n;
    TREE_PUSH(t->record, last);
    tree_lend(t);
    tree_make_directory(t, directory_level);
    tree_make_occupied(t);
}

static inline void plain_tree_free(struct plain_tree *t)
{
    oj_free(t->segment.data);
    oj_free(t->segment_unit.data);
    oj_free(t->slot.data);
    oj_free(t->directory.data);
    oj_free(t->occupied.data);
    oj_free(t->leaf.data);
    oj_free(t->record.data);
    oj_free(t->edge.data);
    oj_free(t->edge_segment.data);
    oj_free(t->part_feature.data);
    oj_free(t->masks.data);
    oj_free(t->touched.data);
    memset(t, 0, sizeof *t);
}

#endif
