/** The packed tree of the join side built on the host, one thing after the
 *  other, with the functions that the CUDA module builds it with.  Include
 *  once, after references.h. */
#ifndef PLAIN_TREE_H
#define PLAIN_TREE_H

#include "../../cuda/tree/oj_tree_join.h"
#include "../../flatten/base/oj_array.h"
#include "references.h"

#include <stdlib.h>

struct coded
{
    uint64_t code;
    int32_t entry;
};

struct plain_side
{
    struct oj_tree_side side;
    int64_t n_segments, n_parts, n_rings;
    struct oj_tree_segment *segment;
    int32_t *rank;
    int32_t *part_feature;
    uint8_t *part_kind;
    int64_t *ring_offset, *segment_offset;
    struct oj_tree_box *chain[OJ_TREE_CHAIN_LEVELS];
    struct oj_device_tree_node *node, *polygon_node;
    int32_t *polygon_part;
    struct oj_tree_segment *sorted_segment;
    int32_t *sorted_rank;
    int32_t *only_rank;
};

static inline void *tree_array(int64_t n, size_t size)
{
    void *memory = oj_calloc(n > 0 ? n : 1, size);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

#define TREE_NEW(array, n) ((array) = tree_array((n), sizeof *(array)))

static inline int compare_codes(const void *left, const void *right)
{
    const struct coded *a = left, *b = right;
    if (a->code != b->code)
        return a->code < b->code ? -1 : 1;
    return (a->entry > b->entry) - (a->entry < b->entry);
}

/* The tree of n boxes in extent; entry i is box order[i]. */
static inline struct oj_device_tree_node *
tree_build(struct oj_device_tree *tree, int64_t n,
           const struct oj_tree_box *box, const struct oj_tree_box *extent,
           int32_t *order)
{
    struct oj_device_tree_node *node;
    struct coded *coded;
    int64_t n_nodes = oj_tree_layout(tree, n, extent);
    TREE_NEW(node, n_nodes);
    TREE_NEW(coded, n);
    for (int64_t i = 0; i < n; i++)
        coded[i] = (struct coded){oj_tree_code(tree, &box[i]), (int32_t)i};
    qsort(coded, (size_t)n, sizeof *coded, compare_codes);
    for (int64_t i = 0; i < n; i++)
        order[i] = coded[i].entry;
    for (int level = 0; level < tree->n_levels; level++)
    {
        for (int64_t i = 0; i < tree->level_n[level] * OJ_TREE_FANOUT; i++)
        {
            struct oj_device_tree_node *at =
                node + tree->level_first[level] + i / OJ_TREE_FANOUT;
            int c = (int)(i % OJ_TREE_FANOUT);
            if (level == 0)
                oj_tree_set_entry(tree, at, c, i < n ? &box[order[i]] : NULL);
            else
                oj_tree_set_node(at, c,
                                 i < tree->level_n[level - 1]
                                     ? node + tree->level_first[level - 1] + i
                                     : NULL);
        }
    }
    tree->node = node;
    oj_free(coded);
    return node;
}

/* Segments, parts and rings in the order of ranks, as the module has them. */
static inline void side_add_ring(struct plain_side *s,
                                 const struct oj_flat *flat, int64_t ring,
                                 int32_t rank)
{
    int64_t v = flat->vertex_offset[ring], n = flat->vertex_offset[ring + 1];
    int64_t at = s->n_segments;
    for (int64_t i = v; i + 1 < n || i == v; i++, at++)
    {
        int64_t b = n - v > 1 ? i + 1 : i;
        s->segment[at] = (struct oj_tree_segment){flat->x[i], flat->y[i],
                                                  flat->x[b], flat->y[b]};
        s->rank[at] = rank;
    }
    s->n_segments = at;
    s->segment_offset[++s->n_rings] = at;
}

static inline void side_add_feature(struct plain_side *s,
                                    const struct oj_flat *flat, int64_t f,
                                    int32_t rank)
{
    for (int64_t p = flat->part_offset[f]; p < flat->part_offset[f + 1]; p++)
    {
        for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
             r++)
            side_add_ring(s, flat, r, rank);
        s->part_feature[s->n_parts] = rank;
        s->part_kind[s->n_parts] = flat->part_kind[p];
        s->ring_offset[++s->n_parts] = s->n_rings;
    }
}

static inline void side_add_points(struct plain_side *s,
                                   const struct oj_flat *flat,
                                   const int32_t *tie_rank)
{
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        double x = flat->x[f], y = flat->y[f];
        if (!isfinite(x) || !isfinite(y))
            continue;
        s->rank[s->n_segments] = tie_rank != NULL ? tie_rank[f] : (int32_t)f;
        s->segment[s->n_segments++] = (struct oj_tree_segment){x, y, x, y};
    }
}

static inline void side_add_layer(struct plain_side *s,
                                  const struct oj_flat *flat,
                                  const int32_t *tie_rank)
{
    int is_short = oj_flat_is_points(flat);
    int64_t n_parts = is_short ? 0 : flat->n_parts;
    int64_t n_rings = is_short ? 0 : flat->n_rings;
    int64_t n = flat->n_features;
    int32_t *ordinal_of;
    TREE_NEW(ordinal_of, n);
    TREE_NEW(s->segment, is_short ? n : flat->n_vertices);
    TREE_NEW(s->rank, is_short ? n : flat->n_vertices);
    TREE_NEW(s->part_feature, n_parts);
    TREE_NEW(s->part_kind, n_parts);
    TREE_NEW(s->ring_offset, n_parts + 1);
    TREE_NEW(s->segment_offset, n_rings + 1);
    for (int64_t f = 0; f < n; f++)
        ordinal_of[tie_rank != NULL ? tie_rank[f] : (int32_t)f] = (int32_t)f;
    if (is_short)
        side_add_points(s, flat, tie_rank);
    for (int64_t rank = 0; !is_short && rank < n; rank++)
        side_add_feature(s, flat, ordinal_of[rank], (int32_t)rank);
    oj_free(ordinal_of);
}

static inline void side_make_rings(struct plain_side *s,
                                   const struct oj_tree_box *extent)
{
    struct oj_tree_rings *rings = &s->side.rings;
    struct oj_tree_box *box;
    rings->segment = s->segment;
    rings->ring_offset = s->ring_offset;
    rings->segment_offset = s->segment_offset;
    rings->part_feature = s->part_feature;
    rings->part_kind = s->part_kind;
    rings->polygon_kind = OJ_PART_POLYGON;
    for (int level = 1; level <= OJ_TREE_CHAIN_LEVELS; level++)
    {
        int64_t n = s->n_segments >> (OJ_TREE_CHAIN_BITS * level);
        TREE_NEW(s->chain[level - 1], n);
        for (int64_t i = 0; i < n; i++)
            s->chain[level - 1][i] = oj_tree_chain_box(rings, level, i);
        rings->chain[level - 1] = s->chain[level - 1];
    }
    TREE_NEW(box, s->n_parts);
    TREE_NEW(s->polygon_part, s->n_parts);
    for (int64_t i = 0; i < s->n_parts; i++)
        box[i] = oj_tree_polygon_box(rings, i);
    s->polygon_node =
        tree_build(&rings->polygons, s->n_parts, box, extent, s->polygon_part);
    rings->polygon_part = s->polygon_part;
    oj_free(box);
}

static inline void side_make_only_ranks(struct plain_side *s)
{
    const struct oj_device_tree *tree = &s->side.segments;
    const int32_t *below = s->sorted_rank;
    int64_t n_below = tree->n, n_nodes = 0;
    for (int level = 0; level < tree->n_levels; level++)
        n_nodes += tree->level_n[level];
    TREE_NEW(s->only_rank, n_nodes);
    for (int level = 0; level < tree->n_levels; level++)
    {
        int32_t *here = s->only_rank + tree->level_first[level];
        for (int64_t i = 0; i < tree->level_n[level]; i++)
            here[i] = oj_tree_only_rank(below, n_below, i);
        below = here;
        n_below = tree->level_n[level];
    }
    s->side.only_rank = s->only_rank;
}

static inline void plain_side_build(struct plain_side *s,
                                    const struct oj_flat *flat,
                                    const int32_t *tie_rank, int to_interior)
{
    struct oj_tree_box extent = oj_tree_no_box(), *box;
    int32_t *order;
    memset(s, 0, sizeof *s);
    side_add_layer(s, flat, tie_rank);
    TREE_NEW(box, s->n_segments);
    TREE_NEW(order, s->n_segments);
    TREE_NEW(s->sorted_segment, s->n_segments);
    TREE_NEW(s->sorted_rank, s->n_segments);
    for (int64_t i = 0; i < s->n_segments; i++)
    {
        struct oj_tree_box one = oj_tree_segment_box(&s->segment[i]);
        oj_tree_box_add(&extent, &one);
        box[i] = oj_tree_reach_box(&s->segment[i]);
    }
    s->node = tree_build(&s->side.segments, s->n_segments, box, &extent, order);
    for (int64_t i = 0; i < s->n_segments; i++)
    {
        s->sorted_segment[i] = s->segment[order[i]];
        s->sorted_rank[i] = s->rank[order[i]];
    }
    s->side.segment = s->sorted_segment;
    s->side.rank = s->sorted_rank;
    side_make_only_ranks(s);
    if (to_interior)
        side_make_rings(s, &extent);
    oj_free(box);
    oj_free(order);
}

static inline void plain_side_free(struct plain_side *s)
{
    oj_free(s->segment);
    oj_free(s->rank);
    oj_free(s->part_feature);
    oj_free(s->part_kind);
    oj_free(s->ring_offset);
    oj_free(s->segment_offset);
    for (int i = 0; i < OJ_TREE_CHAIN_LEVELS; i++)
        oj_free(s->chain[i]);
    oj_free(s->node);
    oj_free(s->polygon_node);
    oj_free(s->polygon_part);
    oj_free(s->sorted_segment);
    oj_free(s->sorted_rank);
    oj_free(s->only_rank);
}

#endif
