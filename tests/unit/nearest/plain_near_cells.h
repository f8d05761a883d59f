/** The cells of the nearest segment, built one node after the other on the host
 *  with the functions that the CUDA module builds them with.  Include once,
 *  after references.h. */
#ifndef PLAIN_NEAR_CELLS_H
#define PLAIN_NEAR_CELLS_H

#include "../../../cuda/nearest/oj_near_entry.h"
#include "../../../cuda/nearest/oj_near_seed.h"
#include "../../../flatten/base/oj_array.h"
#include "../references.h"

#include <stdio.h>

struct near_cells
{
    struct oj_near_square square;
    int directory_level;
    uint32_t leaf_size;
    uint32_t wide;  /* nodes with longer lists get 16 children */
    int seed_level; /* 0: begins with the root */
    int64_t n_segments, cap_segments, cap_rank;
    double *segment; /* 4 of each */
    int32_t *rank;
    double magnitude;
    int is_lost;
    int64_t n_headers, cap_headers, n_words, cap_words;
    struct oj_near_header *tree, *directory;
    uint64_t *pool;
    int64_t n_leaves, n_entries, n_splits;
    /* the nodes to do, level by level, and their lists */
    int64_t n_nodes, cap_nodes, n_ids, cap_ids;
    struct oj_near_node *node;
    uint32_t *id;
};

static inline void near_add_segment(struct near_cells *c, double ax, double ay,
                                    double bx, double by, int32_t rank)
{
    double *at;
    int64_t n = c->n_segments;
    must(oj_reserve(&c->segment, 4 * n, 4 * (n + 1), &c->cap_segments,
                    sizeof *c->segment, &error));
    must(oj_reserve(&c->rank, n, n + 1, &c->cap_rank, sizeof *c->rank, &error));
    at = c->segment + 4 * n;
    at[0] = ax;
    at[1] = ay;
    at[2] = bx;
    at[3] = by;
    for (int i = 0; i < 4; i++)
        c->magnitude = fmax(c->magnitude, fabs(at[i]));
    c->is_lost |= oj_near_is_lost(ax, ay, bx, by);
    c->rank[c->n_segments++] = rank;
}

static inline void near_add_layer(struct near_cells *c,
                                  const struct oj_flat *flat,
                                  const int32_t *tie_rank)
{
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        int32_t rank = tie_rank != NULL ? tie_rank[f] : (int32_t)f;
        if (oj_flat_is_points(flat))
        {
            double x = flat->x[f], y = flat->y[f];
            if (isfinite(x) && isfinite(y))
                near_add_segment(c, x, y, x, y, rank);
            continue;
        }
        for (int64_t r = flat->ring_offset[flat->part_offset[f]];
             r < flat->ring_offset[flat->part_offset[f + 1]]; r++)
        {
            int64_t v = flat->vertex_offset[r], last;
            last = flat->vertex_offset[r + 1] - 1;
            if (v == last)
                near_add_segment(c, flat->x[v], flat->y[v], flat->x[v],
                                 flat->y[v], rank);
            for (; v < last; v++)
                near_add_segment(c, flat->x[v], flat->y[v], flat->x[v + 1],
                                 flat->y[v + 1], rank);
        }
    }
}

static inline uint32_t near_more_headers(struct near_cells *c, uint32_t n)
{
    int64_t first = c->n_headers;
    must(oj_reserve(&c->tree, first, first + n, &c->cap_headers,
                    sizeof *c->tree, &error));
    c->n_headers += n;
    return (uint32_t)first;
}

/* What the module does: in single precision where that will do. */
static inline uint64_t near_entry(const struct oj_near_frame *split,
                                  const struct oj_near_frame *frame,
                                  const struct oj_near_scale *scale,
                                  const double *s)
{
    struct oj_near_piece p = oj_near_piece(split, s[0], s[1], s[2], s[3]);
    struct oj_near_units u = oj_near_units(split, frame, scale);
    uint64_t entry;
    return oj_near_short_entry(&p, &u, &entry)
               ? entry
               : oj_near_entry(frame, scale, s[0], s[1], s[2], s[3]);
}

/* The header of a leaf of the segments list [n] whose mask has a bit in common
 * with only.  split: the frame of the node that the list was made for. */
static inline struct oj_near_header
near_make_leaf(struct near_cells *c, const struct oj_near_frame *split,
               const struct oj_near_node *node, float bound,
               const uint32_t *list, const uint32_t *mask, uint32_t only,
               uint32_t kept)
{
    struct oj_near_frame frame =
        oj_near_frame(&c->square, node->ix, node->iy, node->level);
    struct oj_near_scale scale = oj_near_scale(&frame, bound);
    uint32_t words = oj_near_words(kept), at = 0;
    struct oj_near_header h = {0, 0};
    uint64_t *entry;
    must(oj_reserve(&c->pool, c->n_words, c->n_words + words, &c->cap_words,
                    sizeof *c->pool, &error));
    h.first = (uint32_t)c->n_words;
    h.info = oj_near_leaf_info(kept, node->level, scale.exponent);
    c->n_words += words;
    c->n_leaves++;
    c->n_entries += kept;
    if (words == 0)
        return h;
    entry = c->pool + h.first;
    memset(entry, 0, words * sizeof *entry);
    if (kept >= OJ_NEAR_COUNT)
    {
        entry[0] = kept;
        entry += 2;
    }
    for (uint32_t i = 0; i < node->n; i++)
    {
        const double *s = c->segment + 4 * (int64_t)list[i];
        if ((mask[i] & only) == 0)
            continue;
        entry[at] = near_entry(split, &frame, &scale, s);
        entry[((kept + 1) & ~1u) + at] =
            oj_near_pack(list[i], (uint32_t)c->rank[list[i]]);
        at++;
    }
    return h;
}

/* Leaves out of mask what other segments of the list stand for. */
static inline void near_drop(const struct near_cells *c,
                             const struct oj_near_frame *frame,
                             const uint32_t *list, uint32_t n, uint32_t *mask)
{
    struct oj_near_key *key = oj_malloc(n, sizeof *key);
    uint32_t *hash = oj_malloc(n, sizeof *hash);
    uint32_t size = 64, *slot;
    while (size < 2 * n)
        size *= 2;
    slot = oj_calloc(size, sizeof *slot);
    ck_assert(key != NULL && hash != NULL && slot != NULL);
    for (uint32_t i = 0; i < n; i++)
    {
        const double *s = c->segment + 4 * (int64_t)list[i];
        struct oj_near_piece p = oj_near_piece(frame, s[0], s[1], s[2], s[3]);
        key[i] = oj_near_key(oj_near_end(&p), s[0], s[1], s[2], s[3]);
        hash[i] = oj_near_hash(&key[i]);
    }
    for (uint32_t i = 0; i < n; i++)
    {
        uint32_t at = hash[i] & (size - 1);
        for (; slot[at] != 0; at = (at + 1) & (size - 1))
        {
            uint32_t j = slot[at] - 1;
            if (!oj_near_same_key(&key[i], &key[j]))
                continue;
            if (oj_near_drops(c->rank[list[i]], (int32_t)list[i],
                              c->rank[list[j]], (int32_t)list[j]))
            {
                mask[j] = 0;
                slot[at] = i + 1;
            }
            else
                mask[i] = 0;
            break;
        }
        if (slot[at] == 0)
            slot[at] = i + 1;
    }
    oj_free(slot);
    oj_free(key);
    oj_free(hash);
}

static inline void near_add_id(struct near_cells *c, uint32_t id)
{
    must(oj_reserve(&c->id, c->n_ids, c->n_ids + 1, &c->cap_ids, sizeof *c->id,
                    &error));
    c->id[c->n_ids++] = id;
}

static inline void near_add_node(struct near_cells *c,
                                 const struct oj_near_node *node)
{
    must(oj_reserve(&c->node, c->n_nodes, c->n_nodes + 1, &c->cap_nodes,
                    sizeof *c->node, &error));
    c->node[c->n_nodes++] = *node;
}

static inline void near_put_child(struct near_cells *c,
                                  const struct oj_near_node *node, uint32_t fan,
                                  uint32_t i, uint32_t only, float bound,
                                  const uint32_t *mask, uint8_t stale)
{
    struct oj_near_node child = {0, 0, 0, 0, 0, 0, 0};
    uint32_t header = c->tree[node->header].first + i;
    child.first = (uint32_t)c->n_ids;
    child.ix = fan * node->ix + i % fan;
    child.iy = fan * node->iy + i / fan;
    child.level = (uint8_t)(node->level + (fan == 4 ? 2 : 1));
    child.stale = stale;
    child.header = header;
    c->tree[header].first = 0;
    c->tree[header].info = oj_near_leaf_info(0, child.level, 127);
    for (uint32_t j = 0; j < node->n; j++)
        child.n += (mask[j] & only) != 0;
    if (fan == 2 && child.n <= c->leaf_size)
    {
        uint32_t kept = child.n;
        struct oj_near_frame frame =
            oj_near_frame(&c->square, node->ix, node->iy, node->level);
        struct oj_near_header h;
        child.n = node->n;
        h = near_make_leaf(c, &frame, &child, 2.0f * bound, c->id + node->first,
                           mask, only, kept);
        c->tree[header] = h;
        return;
    }
    for (uint32_t j = 0; j < node->n; j++)
    {
        if (mask[j] & only)
            near_add_id(c, c->id[node->first + j]);
    }
    if (child.n > 0)
        near_add_node(c, &child);
}

static inline void near_split(struct near_cells *c, struct oj_near_node node)
{
    struct oj_near_frame frame =
        oj_near_frame(&c->square, node.ix, node.iy, node.level);
    uint32_t fan = node.n > c->wide ? 4 : 2, children = fan * fan;
    float bound[OJ_NEAR_CHILDREN];
    uint32_t *mask = oj_malloc(node.n, sizeof *mask);
    const uint32_t *list = c->id + node.first;
    uint32_t kept = 0, first;
    uint64_t sum = 0;
    uint8_t stale;
    ck_assert_ptr_nonnull(mask);
    for (uint32_t i = 0; i < OJ_NEAR_CHILDREN; i++)
        bound[i] = INFINITY;
    for (uint32_t i = 0; i < node.n; i++)
    {
        const double *s = c->segment + 4 * (int64_t)list[i];
        struct oj_near_piece p = oj_near_piece(&frame, s[0], s[1], s[2], s[3]);
        oj_near_lower_uppers(&p, bound);
    }
    for (uint32_t i = 0; i < OJ_NEAR_CHILDREN; i++)
        bound[i] = oj_near_bound(bound[i], frame.reach);
    for (uint32_t i = 0; i < node.n; i++)
    {
        const double *s = c->segment + 4 * (int64_t)list[i];
        struct oj_near_piece p = oj_near_piece(&frame, s[0], s[1], s[2], s[3]);
        mask[i] = oj_near_mask(&p, bound);
    }
    near_drop(c, &frame, list, node.n, mask);
    for (uint32_t i = 0; i < node.n; i++)
    {
        kept += mask[i] != 0;
        sum += (uint64_t)__builtin_popcount(
            fan == 4 ? mask[i] : oj_near_quarters(mask[i]));
    }
    if (c->n_headers > 16 * c->n_segments + 4096 ||
        oj_near_is_leaf(&c->square, &node, fan, kept, sum, c->leaf_size))
    {
        struct oj_near_header h =
            near_make_leaf(c, &frame, &node, oj_near_greatest(bound, 0xFFFFu),
                           list, mask, 0xFFFFu, kept);
        c->tree[node.header] = h;
        oj_free(mask);
        return;
    }
    c->n_splits++;
    first = near_more_headers(c, children);
    c->tree[node.header].first = first;
    c->tree[node.header].info =
        oj_near_inner_info(node.level + (fan == 4 ? 2 : 1), fan == 4 ? 2 : 1);
    stale = oj_near_stale(&node, fan, sum);
    for (uint32_t i = 0; i < children; i++)
    {
        uint32_t only = fan == 4 ? 1u << i : oj_near_quarter((int)i);
        near_put_child(c, &node, fan, i, only, oj_near_greatest(bound, only),
                       mask, stale);
    }
    oj_free(mask);
}

static inline void near_fill_directory(struct near_cells *c)
{
    int64_t side = (int64_t)1 << c->directory_level;
    c->directory = oj_malloc(side * side, sizeof *c->directory);
    ck_assert_ptr_nonnull(c->directory);
    for (int64_t i = 0; i < side * side; i++)
        c->directory[i] = oj_near_walk(c->tree, (uint32_t)(i & (side - 1)),
                                       (uint32_t)(i >> c->directory_level),
                                       c->directory_level);
}

/* Begins with the cells of seed_level, which may be that of the root. */
static inline void near_begin(struct near_cells *c)
{
    int level = c->seed_level <= c->square.max_level ? c->seed_level : 0;
    double per_cell = ldexp(1.0, level) / c->square.side;
    double widen = oj_near_seed_widen(&c->square, level);
    near_more_headers(c, oj_near_seed_above(level + 2));
    for (uint32_t i = 0; i < oj_near_seed_above(level); i++)
        c->tree[i] = oj_near_seed_header(i);
    for (uint32_t cell = 0; cell < 1u << (2 * level); cell++)
    {
        struct oj_near_node node = oj_near_seed_node(level, cell, 0);
        ck_assert_uint_eq(oj_near_seed_cell(level, node.ix, node.iy), cell);
        node.first = (uint32_t)c->n_ids;
        for (int64_t i = 0; i < c->n_segments; i++)
        {
            const double *s = c->segment + 4 * i;
            struct oj_near_cells_of x = oj_near_seed_range(
                level, per_cell, widen, fmin(s[0], s[2]) - c->square.x0,
                fmax(s[0], s[2]) - c->square.x0);
            struct oj_near_cells_of y = oj_near_seed_range(
                level, per_cell, widen, fmin(s[1], s[3]) - c->square.y0,
                fmax(s[1], s[3]) - c->square.y0);
            if (node.ix >= x.first && node.ix <= x.last && node.iy >= y.first &&
                node.iy <= y.last)
                near_add_id(c, (uint32_t)i);
        }
        node.n = (uint32_t)c->n_ids - node.first;
        c->tree[node.header].first = 0;
        c->tree[node.header].info = oj_near_leaf_info(0, level, 127);
        if (node.n > 0)
            near_add_node(c, &node);
    }
}

/* 0 when cells are not for such a layer. */
static inline int near_build(struct near_cells *c, double reach)
{
    double box[4] = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (int64_t i = 0; i < 2 * c->n_segments; i++)
    {
        box[0] = fmin(box[0], c->segment[2 * i]);
        box[1] = fmin(box[1], c->segment[2 * i + 1]);
        box[2] = fmax(box[2], c->segment[2 * i]);
        box[3] = fmax(box[3], c->segment[2 * i + 1]);
    }
    if (c->n_segments == 0 || c->is_lost ||
        !oj_near_square(box[0], box[1], box[2], box[3], c->magnitude, reach,
                        c->n_segments, &c->square))
        return 0;
    near_begin(c);
    for (int64_t i = 0; i < c->n_nodes; i++)
        near_split(c, c->node[i]);
    near_fill_directory(c);
    return 1;
}

static inline struct oj_near_view near_view(const struct near_cells *c)
{
    struct oj_near_view v;
    v.square = c->square;
    v.directory_level = c->directory_level;
    v.directory = c->directory;
    v.tree = c->tree;
    v.pool = c->pool;
    v.segment = c->segment;
    return v;
}

static inline void near_free(struct near_cells *c)
{
    oj_free(c->segment);
    oj_free(c->rank);
    oj_free(c->tree);
    oj_free(c->directory);
    oj_free(c->pool);
    oj_free(c->node);
    oj_free(c->id);
    memset(c, 0, sizeof *c);
}

#endif
