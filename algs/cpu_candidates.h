/** Groups of neighbouring points and the segments that can be nearest to one of
 *  them.
 *
 *  A group walks the tree of segments once.  The least distance D from the
 *  group's centre found so far bounds what any of its points can have as
 *  nearest: D + h from the point, D + 2 h from the centre (h: half the diagonal
 *  of the group).  So the walk ends up with the few segments that can matter,
 *  whatever max_distance is.  For k > 1, D is the k-th least distance to
 *  different features.
 *
 *  Everything here is inlined into the two files that decide, cpu_nearest.c and
 *  cpu_nearest_lists.c, and compiled there for several instruction sets.
 *  Source: ours; the bound is that of nearest neighbour search in R-trees
 *  (Roussopoulos et al. 1995), taken for a box of points at once after the
 *  collective query of Zhang, You, Gruenwald 2012.
 */
#ifndef CPU_CANDIDATES_H
#define CPU_CANDIDATES_H

#include "../flatten/oj_array.h"
#include "cpu_nearest.h"
#include "cpu_vector.h"

#define OJ_GROUP 32 /* points a group has at most */

/* A group that still has more candidates than this is taken in halves. */
#define OJ_MANY_CANDIDATES 256

struct oj_group
{
    int n;
    const struct oj_ordered_point *point;
    /* beyond n, up to a multiple of OJ_LANES: repetitions */
    _Alignas(64) double x[OJ_GROUP];
    _Alignas(64) double y[OJ_GROUP];
    struct oj_box box;
    double cx, cy;
    double h;   /* half diagonal, rounded up */
    float q[4]; /* box relative to the tree last asked */
};

OJ_INLINE void oj_group_relative_to(struct oj_group *g,
                                    const struct oj_tree *tree)
{
    g->q[0] = oj_tree_down(g->box.x0, tree->origin_x, tree->scale);
    g->q[1] = oj_tree_down(g->box.y0, tree->origin_y, tree->scale);
    g->q[2] = oj_tree_up(g->box.x1, tree->origin_x, tree->scale);
    g->q[3] = oj_tree_up(g->box.y1, tree->origin_y, tree->scale);
}

/* Takes points from the front of the n >= 1 that are left, at most most, while
 * width + height stays within limit. */
OJ_INLINE void oj_group_take(struct oj_group *g, int64_t n, int most,
                             const struct oj_ordered_point *point, double limit)
{
    struct oj_box box = {point[0].x, point[0].y, point[0].x, point[0].y};
    double dx, dy;
    most = n < most ? (int)n : most;
    g->n = 0;
    g->point = point;
    while (g->n < most)
    {
        struct oj_box grown = box;
        double x = point[g->n].x, y = point[g->n].y;
        oj_box_add_point(&grown, x, y);
        if (g->n > 0 && (grown.x1 - grown.x0) + (grown.y1 - grown.y0) > limit)
            break;
        box = grown;
        g->x[g->n] = x;
        g->y[g->n++] = y;
    }
    for (int i = g->n; i % OJ_LANES != 0; i++)
    {
        g->x[i] = g->x[0];
        g->y[i] = g->y[0];
    }
    g->box = box;
    g->cx = 0.5 * box.x0 + 0.5 * box.x1;
    g->cy = 0.5 * box.y0 + 0.5 * box.y1;
    dx = fmax(box.x1 - g->cx, g->cx - box.x0);
    dy = fmax(box.y1 - g->cy, g->cy - box.y0);
    g->h = sqrt(dx * dx + dy * dy) * (1.0 + 1e-12);
}

/* --- walking a tree ------------------------------------------------------- */

struct oj_visit
{
    int32_t child; /* node of the level, or entry */
    int32_t level; /* -1: an entry */
    float d2;
};

/* Eight children pushed a level, seven of them left behind on the way down. */
#define OJ_STACK (OJ_TREE_LEVELS * OJ_FANOUT)

/* Squared distances from box q to the children of a node.  May be too large by
 * a relative 3e-7, which oj_tree_reach2() allows for.  An absent child is at
 * infinity. */
OJ_INLINE oj_float8 oj_node_distance2(const struct oj_tree_node *node,
                                      const float q[4])
{
    oj_float8 left = *(const oj_float8 *)node->x0 - q[2];
    oj_float8 right = q[0] - *(const oj_float8 *)node->x1;
    oj_float8 below = *(const oj_float8 *)node->y0 - q[3];
    oj_float8 above = q[1] - *(const oj_float8 *)node->y1;
    oj_float8 dx = OJ_SELECT_F8(left > right, left, right);
    oj_float8 dy = OJ_SELECT_F8(below > above, below, above);
    dx = OJ_POSITIVE_F8(dx);
    dy = OJ_POSITIVE_F8(dy);
    return dx * dx + dy * dy;
}

/* Pushes the children of a node that are within reach of box q, the farthest
 * first, so that the nearest comes off first. */
OJ_INLINE int oj_push_children(const struct oj_tree *tree, const float q[4],
                               float reach2, int32_t node_index, int level,
                               struct oj_visit *stack, int depth)
{
    const struct oj_tree_node *node =
        &tree->node[tree->level_first[level] + node_index];
    oj_float8 d2 = oj_node_distance2(node, q);
    oj_int8 near = d2 <= reach2;
    int first = depth;
    for (int c = 0; c < OJ_FANOUT; c++)
    {
        stack[depth].child = node_index * OJ_FANOUT + c;
        stack[depth].level = level - 1;
        stack[depth].d2 = d2[c];
        depth -= near[c];
    }
    for (int i = first + 1; i < depth; i++)
    {
        struct oj_visit moved = stack[i];
        int at = i;
        for (; at > first && stack[at - 1].d2 < moved.d2; at--)
            stack[at] = stack[at - 1];
        stack[at] = moved;
    }
    return depth;
}

/* --- the bound ------------------------------------------------------------ */

struct oj_bound
{
    double least; /* k-th least distance from the centre found so far */
    double cap;   /* no pair is farther: max_distance, or 0 */
    double h;     /* of the group */
    float reach2; /* from the group's box, as the tree compares it */
    double keep2; /* squared distance from the centre worth keeping */
    double slack; /* of the tree */
};

OJ_INLINE void oj_bound_set(struct oj_bound *bound, const struct oj_tree *tree,
                            double least)
{
    double reach = (least + bound->h) * (1.0 + 1e-12);
    double keep;
    bound->least = least;
    reach = reach < bound->cap ? reach : bound->cap;
    keep = (reach + bound->h) * (1.0 + 1e-12) + bound->slack;
    bound->reach2 = oj_tree_reach2(tree, reach);
    bound->keep2 = keep * keep * (1.0 + 1e-12);
}

/* Squared distances from (x, y) to the segments of a bundle, up to rounding. */
OJ_INLINE oj_double8 oj_bundle_distance2(const struct oj_bundle *b, double x,
                                         double y)
{
    oj_double8 ax = *(const oj_double8 *)b->ax;
    oj_double8 ay = *(const oj_double8 *)b->ay;
    oj_double8 dx = *(const oj_double8 *)b->bx - ax;
    oj_double8 dy = *(const oj_double8 *)b->by - ay;
    oj_double8 ux = x - ax, uy = y - ay;
    oj_double8 len2 = dx * dx + dy * dy;
    oj_double8 t = (ux * dx + uy * dy) / len2;
    t = OJ_POSITIVE_D8(t); /* also for 0 / 0: a point */
    t = OJ_SELECT_D8(t < 1.0, t, (oj_double8){} + 1.0);
    /* so short that its square underflows: as good as its start */
    t = (oj_double8)((oj_long8)t & (len2 > 1e-290));
    ux -= t * dx;
    uy -= t * dy;
    return ux * ux + uy * uy;
}

OJ_INLINE double oj_least8(const double *v)
{
    double a = v[0] < v[1] ? v[0] : v[1], b = v[2] < v[3] ? v[2] : v[3];
    double c = v[4] < v[5] ? v[4] : v[5], d = v[6] < v[7] ? v[6] : v[7];
    a = a < b ? a : b;
    c = c < d ? c : d;
    return a < c ? a : c;
}

/* k > 1: puts a segment of feature at d2 from the centre among the k best. */
OJ_INLINE void oj_best_put(struct oj_nearest_scratch *s, int64_t k,
                           int32_t feature, double d2)
{
    int64_t last = 0;
    while (last < s->n_best && s->best_feature[last] != feature)
        last++;
    if (last < s->n_best && s->best_d2[last] <= d2)
        return;
    if (last == s->n_best)
    {
        if (s->n_best < k)
            s->n_best++;
        else
            last = k - 1;
    }
    for (; last > 0 && s->best_d2[last - 1] > d2; last--)
    {
        s->best_d2[last] = s->best_d2[last - 1];
        s->best_feature[last] = s->best_feature[last - 1];
    }
    s->best_d2[last] = d2;
    s->best_feature[last] = feature;
}

/* The square of D after a bundle: the least of its distances, or for k > 1 the
 * k-th least of all features so far. */
OJ_INLINE double oj_tightened(const struct oj_segments *segments,
                              struct oj_nearest_scratch *s, int64_t k,
                              int64_t bundle, const double *d2, double least2)
{
    if (k == 1)
        return least2;
    for (int i = 0; i < OJ_BUNDLE; i++)
    {
        if (s->n_best < k || d2[i] < s->best_d2[k - 1])
            oj_best_put(s, k, segments->feature[bundle * OJ_BUNDLE + i], d2[i]);
    }
    return s->n_best < k ? INFINITY : s->best_d2[k - 1];
}

/* --- candidates ----------------------------------------------------------- */

/* Drops the candidates that the bound has overtaken. */
OJ_INLINE void oj_candidates_compact(struct oj_nearest_scratch *s, double keep2)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->n_candidates; i++)
    {
        s->candidate[n] = s->candidate[i];
        s->candidate_d2[n] = s->candidate_d2[i];
        n += s->candidate_d2[i] <= keep2;
    }
    s->n_candidates = n;
}

/* Room for one more bundle. */
static inline oj_status oj_candidates_reserve(struct oj_nearest_scratch *s,
                                              struct oj_error *err)
{
    int64_t n = s->n_candidates + OJ_BUNDLE;
    OJ_TRY(oj_reserve(&s->candidate_d2, s->n_candidates, n, &s->cap_d2,
                      sizeof *s->candidate_d2, err));
    return oj_reserve(&s->candidate, s->n_candidates, n, &s->cap_candidates,
                      sizeof *s->candidate, err);
}

/* Measures a bundle from the centre, tightens the bound, keeps candidates. */
OJ_INLINE oj_status oj_visit_bundle(const struct oj_segments *segments,
                                    struct oj_nearest_scratch *s,
                                    const struct oj_group *g, int64_t k,
                                    int64_t bundle, struct oj_bound *bound,
                                    struct oj_error *err)
{
    oj_double8 lanes =
        oj_bundle_distance2(&segments->bundle[bundle], g->cx, g->cy);
    _Alignas(64) double d2[OJ_BUNDLE];
    double least2;
    *(oj_double8 *)d2 = lanes;
    least2 = oj_least8(d2);
    if (least2 > bound->keep2)
        return OJ_OK;
    least2 = oj_tightened(segments, s, k, bundle, d2, least2);
    if (least2 < bound->least * bound->least)
        oj_bound_set(bound, &segments->tree, sqrt(least2));
    if (s->n_candidates + OJ_BUNDLE > s->cap_candidates)
    {
        oj_candidates_compact(s, bound->keep2);
        OJ_TRY(oj_candidates_reserve(s, err));
    }
    for (int i = 0; i < OJ_BUNDLE; i++)
    {
        s->candidate[s->n_candidates] = bundle * OJ_BUNDLE + i;
        s->candidate_d2[s->n_candidates] = d2[i];
        s->n_candidates += d2[i] <= bound->keep2;
    }
    return OJ_OK;
}

/* Leaves in s->candidate the segments that can be among the k nearest of a
 * point of the group, within cap; or sets s->too_many. */
OJ_INLINE oj_status oj_collect_candidates(const struct oj_segments *segments,
                                          struct oj_nearest_scratch *s,
                                          struct oj_group *g, int64_t k,
                                          double cap, struct oj_error *err)
{
    const struct oj_tree *tree = &segments->tree;
    struct oj_visit stack[OJ_STACK + OJ_FANOUT];
    struct oj_bound bound = {INFINITY, cap, g->h, 0.0f, 0.0, tree->slack};
    int64_t check_at = OJ_MANY_CANDIDATES + k;
    int depth;
    s->n_candidates = 0;
    s->n_best = 0;
    s->too_many = 0;
    if (tree->n_levels == 0)
        return OJ_OK;
    OJ_TRY(oj_candidates_reserve(s, err));
    oj_group_relative_to(g, tree);
    oj_bound_set(&bound, tree, INFINITY);
    depth = oj_push_children(tree, g->q, bound.reach2, 0, tree->n_levels - 1,
                             stack, 0);
    while (depth > 0)
    {
        struct oj_visit v = stack[--depth];
        if (v.d2 > bound.reach2)
            continue;
        if (v.level >= 0)
        {
            depth = oj_push_children(tree, g->q, bound.reach2, v.child, v.level,
                                     stack, depth);
            continue;
        }
        OJ_TRY(oj_visit_bundle(segments, s, g, k, v.child, &bound, err));
        if (s->n_candidates > check_at)
        {
            oj_candidates_compact(s, bound.keep2);
            s->too_many =
                g->h > 0.0 && s->n_candidates > OJ_MANY_CANDIDATES + k;
            if (s->too_many)
                return OJ_OK;
            check_at = 2 * s->n_candidates + OJ_MANY_CANDIDATES + k;
        }
    }
    oj_candidates_compact(s, bound.keep2);
    return OJ_OK;
}

/* --- measuring ------------------------------------------------------------ */

/* Squared distances of all points of the group to the candidates, up to
 * rounding, in s->matrix: one row of OJ_GROUP a candidate, of which the first
 * g->n are of use; least2: the least of each point.  Returns how far off the
 * distances may be, theirs and those in GEOS's order of operations together:
 * either errs by less than 16 unit roundoffs of the distance between the point
 * and the segment's start. */
OJ_INLINE double oj_fill_matrix(const struct oj_segments *segments,
                                const struct oj_nearest_scratch *s,
                                const struct oj_group *g,
                                double least2[OJ_GROUP])
{
    const double unit_roundoff = 1.1102230246251565e-16;
    double extent = 0.0;
    for (int i = 0; i < g->n; i += OJ_LANES)
        *(oj_double8 *)(least2 + i) = (oj_double8){} + INFINITY;
    for (int64_t j = 0; j < s->n_candidates; j++)
    {
        int64_t slot = s->candidate[j];
        const struct oj_bundle *b = &segments->bundle[slot / OJ_BUNDLE];
        int at = (int)(slot % OJ_BUNDLE);
        double ax = b->ax[at], ay = b->ay[at];
        double dx = b->bx[at] - ax, dy = b->by[at] - ay;
        double len2 = dx * dx + dy * dy;
        double inverse = len2 > 1e-290 ? 1.0 / len2 : 0.0;
        double size = fabs(ax - g->cx) + fabs(ay - g->cy) + fabs(dx) + fabs(dy);
        double *row = s->matrix + j * OJ_GROUP;
        extent = size > extent ? size : extent;
        for (int i = 0; i < g->n; i += OJ_LANES)
        {
            oj_double8 ux = *(const oj_double8 *)(g->x + i) - ax;
            oj_double8 uy = *(const oj_double8 *)(g->y + i) - ay;
            oj_double8 t = (ux * dx + uy * dy) * inverse;
            oj_double8 d2, least = *(const oj_double8 *)(least2 + i);
            t = OJ_POSITIVE_D8(t);
            t = OJ_SELECT_D8(t < 1.0, t, (oj_double8){} + 1.0);
            ux -= t * dx;
            uy -= t * dy;
            d2 = ux * ux + uy * uy;
            *(oj_double8 *)(row + i) = d2;
            *(oj_double8 *)(least2 + i) = OJ_SELECT_D8(d2 < least, d2, least);
        }
    }
    return 64.0 * unit_roundoff * (extent + g->h);
}

/* The distance that decides. */
OJ_INLINE double oj_exact_distance(const struct oj_segments *segments,
                                   int64_t slot, double x, double y)
{
    const struct oj_bundle *b = &segments->bundle[slot / OJ_BUNDLE];
    int at = (int)(slot % OJ_BUNDLE);
    return oj_segment_distance(x, y, b->ax[at], b->ay[at], b->bx[at],
                               b->by[at]);
}

static inline oj_status oj_matrix_reserve(struct oj_nearest_scratch *s,
                                          struct oj_error *err)
{
    return oj_reserve(&s->matrix, 0, s->n_candidates * OJ_GROUP, &s->cap_matrix,
                      sizeof *s->matrix, err);
}

/* Groups grow where they have few candidates and shrink where they have many;
 * this moves work between walking and measuring, never an answer. */
OJ_INLINE void oj_adapt_groups(struct oj_nearest_scratch *s,
                               const struct oj_segments *segments)
{
    double base = segments->bundle_size;
    if (s->n_candidates > 40)
        s->group_limit *= 0.7;
    else if (s->n_candidates < 16)
        s->group_limit *= 1.1;
    if (!(s->group_limit > base / 64.0))
        s->group_limit = base / 64.0;
    if (s->group_limit > base * 4.0)
        s->group_limit = base * 4.0;
}

/* --- the polygons around the points --------------------------------------- */

/* Leaves in s->ring the polygon rings whose boxes touch that of the group. */
OJ_INLINE oj_status oj_collect_rings(const struct oj_rings *rings,
                                     struct oj_nearest_scratch *s,
                                     struct oj_group *g, struct oj_error *err)
{
    const struct oj_tree *tree = &rings->tree;
    struct oj_visit stack[OJ_STACK + OJ_FANOUT];
    float reach2;
    int depth;
    s->n_rings = 0;
    if (tree->n_levels == 0)
        return OJ_OK;
    reach2 = oj_tree_reach2(tree, 0.0);
    oj_group_relative_to(g, tree);
    depth =
        oj_push_children(tree, g->q, reach2, 0, tree->n_levels - 1, stack, 0);
    while (depth > 0)
    {
        struct oj_visit v = stack[--depth];
        if (v.level >= 0)
        {
            depth = oj_push_children(tree, g->q, reach2, v.child, v.level,
                                     stack, depth);
            continue;
        }
        if (s->n_rings == s->cap_rings)
            OJ_TRY(oj_reserve(&s->ring, s->n_rings, s->n_rings + 1,
                              &s->cap_rings, sizeof *s->ring, err));
        s->ring[s->n_rings++] = (int32_t)v.child;
    }
    return OJ_OK;
}

/* 1 when the point is strictly inside a hole of a part. */
static inline int oj_in_hole(const struct oj_rings *rings,
                             const struct oj_nearest_scratch *s, int32_t part,
                             double x, double y)
{
    for (int64_t i = 0; i < s->n_rings; i++)
    {
        const struct oj_ring *ring = &rings->ring[s->ring[i]];
        if (ring->is_hole && ring->part == part &&
            oj_rings_locate(rings, ring, x, y) == OJ_INSIDE)
            return 1;
    }
    return 0;
}

/* 1 when the polygon part of a shell contains the point. */
static inline int oj_shell_contains(const struct oj_rings *rings,
                                    const struct oj_nearest_scratch *s,
                                    const struct oj_ring *shell, double x,
                                    double y)
{
    enum oj_location location = oj_rings_locate(rings, shell, x, y);
    return location == OJ_ON_BOUNDARY ||
           (location == OJ_INSIDE && !oj_in_hole(rings, s, shell->part, x, y));
}

#endif
