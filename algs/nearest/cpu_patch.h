/** Patches: runs of points in Morton order that lie close together, and what of
 *  the join side is near them.
 *
 *  patch   up to OJ_PATCH points; walks the trees once and keeps, in its
 *          fronts, the few boxes that any of its points can need
 *  group   up to OJ_GROUP points of a patch; looks at the fronts only
 *          (cpu_candidates.h)
 *
 *  The bound of both is that of cpu_near_bound.h.
 *
 *  Everything here is inlined into cpu_nearest_groups.c, and compiled there for
 * several instruction sets. Source: ours.
 */
#ifndef CPU_PATCH_H
#define CPU_PATCH_H

#include "../../flatten/base/oj_array.h"
#include "cpu_near_bound.h"

#define OJ_PATCH 512 /* points a patch has at most */

/* A patch that has more boxes near it than this is taken in halves. */
#define OJ_MANY_BOXES 1024

/* k > 1: from so many boxes on, and 4 k, features' own bounds are looked at. */
#define OJ_SOME_BOXES 256

/* So few boxes, or candidates of a group, are not looked through once more. */
#define OJ_FEW_BOXES 16

/* --- fronts --------------------------------------------------------------- */

/* Room for one more node's children. */
static inline oj_status oj_front_reserve(struct oj_front *front,
                                         struct oj_error *err)
{
    int64_t n_used = (front->n + OJ_FANOUT - 1) / OJ_FANOUT;
    return oj_reserve(&front->block, n_used, n_used + 2, &front->cap_blocks,
                      sizeof *front->block, err);
}

OJ_INLINE void oj_front_put(struct oj_front *front, int64_t at,
                            const struct oj_tree_node *node, int child,
                            int32_t entry, float d2)
{
    struct oj_front_block *block = &front->block[at / OJ_FANOUT];
    int lane = (int)(at % OJ_FANOUT);
    block->box.x0[lane] = node->x0[child];
    block->box.y0[lane] = node->y0[child];
    block->box.x1[lane] = node->x1[child];
    block->box.y1[lane] = node->y1[child];
    block->entry[lane] = entry;
    block->d2[lane] = d2;
}

/* Keeps the boxes within reach2 of the patch. */
OJ_INLINE void oj_front_compact(struct oj_front *front, float reach2)
{
    int64_t n = 0;
    for (int64_t i = 0; i < front->n; i++)
    {
        const struct oj_front_block *block = &front->block[i / OJ_FANOUT];
        int lane = (int)(i % OJ_FANOUT);
        float d2 = block->d2[lane];
        oj_front_put(front, n, &block->box, lane, block->entry[lane], d2);
        n += d2 <= reach2;
    }
    front->n = n;
}

/* Keeps the bundles that the patch needs by the features' own bounds. */
static inline void oj_front_compact_own(const struct oj_segments *segments,
                                        struct oj_nearest_scratch *s,
                                        const struct oj_place *patch,
                                        const struct oj_bound *bound)
{
    struct oj_front *front = &s->near_bundles;
    double d2[OJ_BUNDLE];
    float low[OJ_BUNDLE];
    int64_t n = 0;
    oj_own_begin(s);
    for (int64_t i = 0; i < front->n; i++)
    {
        const struct oj_front_block *block = &front->block[i / OJ_FANOUT];
        int lane = (int)(i % OJ_FANOUT);
        int32_t bundle = block->entry[lane];
        oj_bundle_measure(&segments->bundle[bundle], patch, d2, low);
        oj_front_put(front, n, &block->box, lane, bundle, block->d2[lane]);
        n += oj_own_keeps_bundle(segments, s, patch, bound, bundle, low);
    }
    front->n = n;
}

/* Fills the last block up with boxes that are near nothing. */
OJ_INLINE void oj_front_finish(struct oj_front *front)
{
    static const struct oj_tree_node nowhere = {
        {INFINITY}, {INFINITY}, {-INFINITY}, {-INFINITY}};
    for (int64_t i = front->n; i % OJ_FANOUT != 0; i++)
        oj_front_put(front, i, &nowhere, 0, -1, INFINITY);
}

/* Leaves in s->near_rings the polygon rings whose boxes touch the patch. */
OJ_INLINE oj_status oj_patch_rings(const struct oj_rings *rings,
                                   struct oj_nearest_scratch *s,
                                   const struct oj_place *patch,
                                   struct oj_error *err)
{
    const struct oj_tree *tree = &rings->tree;
    struct oj_front *front = &s->near_rings;
    struct oj_tree_descent descent;
    float reach2 = oj_tree_reach2(tree, 0.0);
    front->n = 0;
    oj_tree_descent_begin(&descent, tree, &patch->box);
    while (descent.depth > 0)
    {
        struct oj_tree_child v = descent.stack[--descent.depth];
        const struct oj_tree_node *node =
            &tree->node[tree->level_first[v.level] + v.child];
        float d2[OJ_FANOUT];
        if (v.level > 0)
        {
            oj_tree_descent_push(&descent, node, v, reach2, NULL, 0);
            continue;
        }
        OJ_TRY(oj_front_reserve(front, err));
        oj_boxes_distance2(node, descent.q, d2);
        for (int c = 0; c < OJ_FANOUT; c++)
        {
            oj_front_put(front, front->n, node, c, v.child * OJ_FANOUT + c,
                         d2[c]);
            front->n += d2[c] <= reach2;
        }
    }
    oj_front_finish(front);
    return OJ_OK;
}

/* Has the rings near the patch come into the cache: first what is known of
 * them, then, as that tells where they are, their first vertices. */
OJ_INLINE void oj_patch_fetch_rings(const struct oj_rings *rings,
                                    const struct oj_nearest_scratch *s)
{
    const struct oj_front *front = &s->near_rings;
    for (int64_t i = 0; i < front->n; i++)
        __builtin_prefetch(
            &rings->ring[front->block[i / OJ_FANOUT].entry[i % OJ_FANOUT]]);
    for (int64_t i = 0; i < front->n; i++)
    {
        const struct oj_ring *ring =
            &rings->ring[front->block[i / OJ_FANOUT].entry[i % OJ_FANOUT]];
        __builtin_prefetch(rings->flat->x + ring->first_vertex);
        __builtin_prefetch(rings->flat->y + ring->first_vertex);
    }
}

/* Leaves in s->near_bundles the bundles that a point of the patch can need for
 * its k nearest within cap, or sets s->too_many. */
OJ_INLINE oj_status oj_patch_bundles(const struct oj_segments *segments,
                                     struct oj_nearest_scratch *s,
                                     const struct oj_place *patch, int64_t k,
                                     double cap, struct oj_error *err)
{
    const struct oj_tree *tree = &segments->tree;
    struct oj_front *front = &s->near_bundles;
    struct oj_tree_descent descent;
    struct oj_bound bound = oj_bound_make(tree, cap);
    int64_t step = k == 1 ? OJ_MANY_BOXES + 1 : OJ_SOME_BOXES + 4 * k;
    int64_t check_at = step;
    double from_centre2[OJ_BUNDLE];
    float low[OJ_BUNDLE];
    front->n = 0;
    s->n_best = 0;
    s->too_many = 0;
    if (k > 1)
        s->own->is_used = 0;
    oj_tree_descent_begin(&descent, tree, &patch->box);
    while (descent.depth > 0)
    {
        struct oj_tree_child v = descent.stack[--descent.depth];
        int64_t node_at = tree->level_first[v.level] + v.child;
        const struct oj_tree_node *node = &tree->node[node_at];
        float d2[OJ_FANOUT];
        if (v.d2 > bound.reach2)
            continue;
        if (k > 1 && s->own->is_used &&
            oj_own_leaves_out(segments, s, patch, &bound, node_at, v.d2))
            continue;
        if (v.level > 0)
        {
            oj_tree_descent_push(&descent, node, v, bound.reach2, NULL, 0);
            continue;
        }
        OJ_TRY(oj_front_reserve(front, err));
        oj_boxes_distance2(node, descent.q, d2);
        /* what is measured next comes from memory: all of it at once */
        for (int c = 0; c < OJ_FANOUT; c++)
        {
            const char *from =
                (const char *)&segments->bundle[v.child * OJ_FANOUT + c];
            for (size_t at = 0;
                 d2[c] <= bound.reach2 && at < sizeof(struct oj_bundle);
                 at += 64)
                __builtin_prefetch(from + at);
        }
        for (int c = 0; c < OJ_FANOUT; c++)
        {
            int32_t bundle = v.child * OJ_FANOUT + c;
            if (!(d2[c] <= bound.reach2))
                continue;
            oj_bundle_measure(&segments->bundle[bundle], patch, from_centre2,
                              low);
            oj_bound_tighten(segments, s, patch, k, bundle, from_centre2,
                             &bound);
            oj_front_put(front, front->n, node, c, bundle, d2[c]);
            front->n +=
                k == 1 || !s->own->is_used ||
                oj_own_keeps_bundle(segments, s, patch, &bound, bundle, low);
        }
        if (front->n > check_at)
        {
            oj_front_compact(front, bound.reach2);
            if (k > 1)
                oj_front_compact_own(segments, s, patch, &bound);
            s->too_many = patch->h > 0.0 && front->n > OJ_MANY_BOXES + k;
            if (s->too_many)
                return OJ_OK;
            check_at = 2 * front->n + step;
        }
    }
    oj_front_compact(front, bound.reach2);
    /* fewer than k in reach: nothing else has bounded them */
    if (k > 1 && s->n_best < k && front->n > OJ_FEW_BOXES)
        oj_front_compact_own(segments, s, patch, &bound);
    oj_front_finish(front);
    return OJ_OK;
}

#endif
