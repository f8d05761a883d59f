/* Distances on the sphere from a point to a feature: the edges of its rings
 * nearest first, and whether a polygon part holds the point. */
#include "cpu_sphere_side.h"

/* What the side of a box of a plane may be off. */
#define PLANE_SLACK 1e-14

/* Nearer than this squared chord to the opposite point, a great circle has no
 * sure direction. */
#define NO_DIRECTION 1e-12

/* --- nearest edge --------------------------------------------------------- */

static void try_place(double chord2, int64_t vertex,
                      struct oj_sphere_place *best)
{
    if (chord2 > best->chord2 ||
        (chord2 == best->chord2 && vertex >= best->vertex))
        return;
    best->chord2 = chord2;
    best->vertex = vertex;
}

static void try_edges(const struct oj_sphere_side *side, int64_t first,
                      int64_t last, struct oj_vec3 p,
                      struct oj_sphere_place *best)
{
    for (int64_t v = first; v < last; v++)
        try_place(oj_arc_chord2(p, side->at[v], side->at[v + 1]), v, best);
}

int oj_tree3_push(const struct oj_tree3 *tree, struct oj_tree3_visit at,
                  const struct oj_box3 *box, double least,
                  struct oj_tree3_visit *stack, int depth)
{
    int level = at.level - 1, bottom = depth;
    int64_t first = tree->first_node[level];
    int64_t n = tree->first_node[level + 1] - first;
    for (int64_t i = at.node * OJ_TREE3_FANOUT;
         i < (at.node + 1) * OJ_TREE3_FANOUT && i < n; i++)
    {
        struct oj_tree3_visit child = {
            oj_box3_distance2(box, &tree->node[first + i]), i, level};
        int place = depth;
        if (child.d2 > least)
            continue;
        for (; place > bottom && stack[place - 1].d2 < child.d2; place--)
            stack[place] = stack[place - 1];
        stack[place] = child;
        depth++;
    }
    return depth;
}

static void try_tree(const struct oj_sphere_side *side,
                     const struct oj_tree3 *tree, int64_t first, int64_t last,
                     struct oj_vec3 p, struct oj_sphere_place *best)
{
    struct oj_box3 box = oj_box3_of(p);
    struct oj_tree3_visit stack[OJ_TREE3_STACK];
    int depth = 0;
    stack[depth++] = (struct oj_tree3_visit){0.0, 0, tree->n_levels - 1};
    while (depth > 0)
    {
        struct oj_tree3_visit at = stack[--depth];
        int64_t v = first + at.node * OJ_TREE3_FANOUT;
        int64_t end = v + OJ_TREE3_FANOUT;
        if (at.d2 > best->chord2)
            continue;
        if (at.level > 0)
            depth = oj_tree3_push(tree, at, &box, best->chord2, stack, depth);
        else
            try_edges(side, v, end < last ? end : last, p, best);
    }
}

static void try_ring(const struct oj_sphere_side *side, int64_t ring,
                     struct oj_vec3 p, struct oj_sphere_place *best)
{
    int64_t first = side->flat->vertex_offset[ring];
    int64_t last = side->flat->vertex_offset[ring + 1] - 1;
    struct oj_box3 box = oj_box3_of(p);
    if (first == last) /* a point, or a line of one vertex */
        try_place(oj_chord2(p, side->at[first]), first, best);
    else if (oj_box3_distance2(&box, &side->ring_box[ring]) > best->chord2)
        return;
    else if (side->tree_of[ring] < 0)
        try_edges(side, first, last, p, best);
    else
        try_tree(side, &side->tree[side->tree_of[ring]], first, last, p, best);
}

/* --- inside --------------------------------------------------------------- */

static int edges_crossed(const struct oj_sphere_side *side, int64_t first,
                         int64_t last, struct oj_vec3 p, struct oj_vec3 r,
                         struct oj_vec3 m)
{
    int odd = 0;
    for (int64_t v = first; v < last; v++)
        odd ^= oj_arcs_cross(p, r, m, side->at[v], side->at[v + 1]);
    return odd;
}

/* 1 when the box may have vertices on both sides of the plane m. */
static int is_cut(const struct oj_box3 *box, struct oj_vec3 m)
{
    const double of[3] = {m.x, m.y, m.z};
    double middle = 0.0, half = PLANE_SLACK;
    for (int i = 0; i < 3; i++)
    {
        middle += of[i] * (0.5 * box->low[i] + 0.5 * box->high[i]);
        half += fabs(of[i]) * (0.5 * box->high[i] - 0.5 * box->low[i]);
    }
    return fabs(middle) <= half;
}

static int tree_crossed(const struct oj_sphere_side *side,
                        const struct oj_tree3 *tree, int64_t first,
                        int64_t last, struct oj_vec3 p, struct oj_vec3 r,
                        struct oj_vec3 m)
{
    struct oj_tree3_visit stack[OJ_TREE3_STACK];
    int depth = 0, odd = 0;
    stack[depth++] = (struct oj_tree3_visit){0.0, 0, tree->n_levels - 1};
    while (depth > 0)
    {
        struct oj_tree3_visit at = stack[--depth];
        int64_t v = first + at.node * OJ_TREE3_FANOUT;
        int64_t end = v + OJ_TREE3_FANOUT, n;
        if (!is_cut(&tree->node[tree->first_node[at.level] + at.node], m))
            continue;
        if (at.level == 0)
        {
            odd ^= edges_crossed(side, v, end < last ? end : last, p, r, m);
            continue;
        }
        n = tree->first_node[at.level] - tree->first_node[at.level - 1];
        for (int64_t i = at.node * OJ_TREE3_FANOUT;
             i < (at.node + 1) * OJ_TREE3_FANOUT && i < n; i++)
            stack[depth++] = (struct oj_tree3_visit){0.0, i, at.level - 1};
    }
    return odd;
}

/* 1 when the way from p to r crosses the ring an odd number of times. */
static int is_across(const struct oj_sphere_side *side, int64_t ring,
                     struct oj_vec3 p, struct oj_vec3 r)
{
    int64_t first = side->flat->vertex_offset[ring];
    int64_t last = side->flat->vertex_offset[ring + 1] - 1;
    struct oj_vec3 m = oj_vec3_cross(p, r);
    if (side->tree_of[ring] < 0)
        return edges_crossed(side, first, last, p, r, m);
    return tree_crossed(side, &side->tree[side->tree_of[ring]], first, last, p,
                        r, m);
}

/* A point some degrees from p. */
static struct oj_vec3 beside(struct oj_vec3 p)
{
    struct oj_vec3 w = {p.x, p.y, p.z};
    double length;
    if (fabs(p.x) < 0.5)
        w.x += 0.1;
    else
        w.y += 0.1;
    length = sqrt(oj_vec3_dot(w, w));
    w.x /= length;
    w.y /= length;
    w.z /= length;
    return w;
}

/* 1 when p is inside the ring: the way to a point outside crosses it an odd
 * number of times. */
static int ring_holds(const struct oj_sphere_side *side, int64_t ring,
                      struct oj_vec3 p)
{
    const struct oj_cap *cap = &side->cap[ring];
    struct oj_vec3 by;
    if (oj_chord2(p, cap->centre) > cap->chord2)
        return 0;
    if (cap->chord2 < 4.0 || oj_chord2(p, cap->centre) > NO_DIRECTION)
        return is_across(side, ring, p, cap->reference);
    /* opposite to the point outside: every way there is as short */
    by = beside(p);
    return is_across(side, ring, p, by) ^
           is_across(side, ring, by, cap->reference);
}

static int part_holds(const struct oj_sphere_side *side, int64_t part,
                      struct oj_vec3 p)
{
    const struct oj_flat *flat = side->flat;
    int odd = 0;
    for (int64_t ring = flat->ring_offset[part];
         ring < flat->ring_offset[part + 1]; ring++)
        odd ^= ring_holds(side, ring, p);
    return odd;
}

struct oj_sphere_place oj_sphere_nearest(const struct oj_sphere_side *side,
                                         int64_t feature, struct oj_vec3 p,
                                         double limit2)
{
    const struct oj_flat *flat = side->flat;
    struct oj_sphere_place best = {limit2, INT64_MAX};
    if (oj_flat_is_points(flat))
        return (struct oj_sphere_place){oj_chord2(p, side->at[feature]),
                                        feature};
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        if (side->cap != NULL && flat->part_kind[part] == OJ_PART_POLYGON &&
            part_holds(side, part, p))
            return (struct oj_sphere_place){0.0, -1};
        for (int64_t r = flat->ring_offset[part];
             r < flat->ring_offset[part + 1]; r++)
            try_ring(side, r, p, &best);
    }
    if (best.vertex == INT64_MAX)
        best.chord2 = INFINITY;
    return best;
}
