/** A packed tree of boxes, and the walk to the boxes near a point.
 *
 *  entry     0 .. n - 1 in Morton order of the centres of their boxes
 *  level 0   node i holds the boxes of entries 8 i .. 8 i + 7
 *  level l   node i holds the boxes of nodes 8 i .. 8 i + 7 of level l - 1
 *  the last level has one node, the root
 *
 *  Boxes are floats, rounded outward, relative to an origin. They only exclude
 *  entries: the walk returns every entry whose distance, as
 *  oj_segment_distance() rounds it, is within the bound, and perhaps others.
 *  Source: ours; the packing is that of Kamel, Faloutsos 1993.
 */
#ifndef OJ_TREE_H
#define OJ_TREE_H

#include "../../../algs/foundations/kernels/oj_box.h"
#include "../../../algs/foundations/kernels/oj_morton.h"

#define OJ_TREE_FANOUT 8
#define OJ_TREE_LEVELS 11 /* 8^11 > 2^31 entries */

/* Maximum depth of the stack: a visit pushes at most 8 nodes, after one node
 * was popped. */
#define OJ_TREE_STACK (7 * OJ_TREE_LEVELS + 8)

/* A stack item holds a level and a node; a level has at most 2^28 nodes. */
#define OJ_TREE_INDEX_BITS 28

struct oj_device_tree_node
{
    float x0[OJ_TREE_FANOUT], y0[OJ_TREE_FANOUT];
    float x1[OJ_TREE_FANOUT], y1[OJ_TREE_FANOUT];
};

/** The tree. Borrows node. n == 0: the tree is empty. */
struct oj_device_tree
{
    int64_t n; /**< number of entries, below 2^31 */
    int32_t n_levels;
    uint32_t level_n[OJ_TREE_LEVELS];     /**< number of nodes by level */
    uint32_t level_first[OJ_TREE_LEVELS]; /**< index in `node` of the first node
                                               of each level */
    double x0, y0;                        /**< origin */
    /** Maximum of |x - x0| + |y - y0| over all entries. */
    double radius;
    double code_x, code_y; /**< corner and scale of the Morton codes */
    double code_scale_x, code_scale_y;
    const struct oj_device_tree_node *node;
};

/** Sets the layout of a tree of n entries in box; returns the number of
 *  nodes. */
OJ_FN uint32_t oj_tree_set_layout(struct oj_device_tree *tree, int64_t n,
                                  const struct oj_box *box)
{
    uint32_t n_nodes = 0;
    int64_t below = n;
    double width = box->x1 - box->x0, height = box->y1 - box->y0;
    tree->n = n;
    tree->n_levels = 0;
    tree->node = 0;
    while (n > 0 && (below > 1 || tree->n_levels == 0))
    {
        below = (below + OJ_TREE_FANOUT - 1) / OJ_TREE_FANOUT;
        tree->level_n[tree->n_levels] = (uint32_t)below;
        tree->level_first[tree->n_levels++] = n_nodes;
        n_nodes += (uint32_t)below;
    }
    tree->x0 = 0.5 * box->x0 + 0.5 * box->x1;
    tree->y0 = 0.5 * box->y0 + 0.5 * box->y1;
    tree->radius = width + height;
    tree->code_x = box->x0;
    tree->code_y = box->y0;
    tree->code_scale_x = width > 0.0 ? 4294967295.0 / width : 0.0;
    tree->code_scale_y = height > 0.0 ? 4294967295.0 / height : 0.0;
    return n_nodes;
}

OJ_FN uint32_t oj_tree_morton_column(double v, double origin, double scale)
{
    double c = (v - origin) * scale;
    if (!(c > 0.0))
        return 0;
    return c >= 4294967295.0 ? 4294967295u : (uint32_t)c;
}

/** Returns the Morton code of the centre of a box. */
OJ_FN uint64_t oj_tree_morton_code(const struct oj_device_tree *tree,
                                   const struct oj_box *box)
{
    uint32_t x = oj_tree_morton_column(0.5 * (box->x0 + box->x1), tree->code_x,
                                       tree->code_scale_x);
    uint32_t y = oj_tree_morton_column(0.5 * (box->y0 + box->y1), tree->code_y,
                                       tree->code_scale_y);
    return (uint64_t)oj_morton(x >> 16, y >> 16) << 32 |
           oj_morton(x & 65535u, y & 65535u);
}

/* Returns v rounded down to a float that is below the exact difference which v
 * approximates with a relative error of 2^-53: one step of a float exceeds that
 * error and the rounding to nearest. */
OJ_FN float oj_tree_float_below(double v)
{
    return nextafterf((float)v, -INFINITY);
}

OJ_FN float oj_tree_float_above(double v)
{
    return nextafterf((float)v, INFINITY);
}

/** Sets child c of a node of level 0 to the box of its entry, or to an empty
 *  box if box is NULL: the tree has no such entry. */
OJ_FN void oj_tree_set_entry(const struct oj_device_tree *tree,
                             struct oj_device_tree_node *node, int c,
                             const struct oj_box *box)
{
    int is_box = box != 0 && box->x0 <= box->x1;
    node->x0[c] = is_box ? oj_tree_float_below(box->x0 - tree->x0) : INFINITY;
    node->y0[c] = is_box ? oj_tree_float_below(box->y0 - tree->y0) : INFINITY;
    node->x1[c] = is_box ? oj_tree_float_above(box->x1 - tree->x0) : -INFINITY;
    node->y1[c] = is_box ? oj_tree_float_above(box->y1 - tree->y0) : -INFINITY;
}

/** Sets child c of a node to the box around all boxes of the node `below`, or
 *  to an empty box if below is NULL: the tree has no such child. */
OJ_FN void oj_tree_set_node(struct oj_device_tree_node *node, int c,
                            const struct oj_device_tree_node *below)
{
    float x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;
    int i;
    for (i = 0; below != 0 && i < OJ_TREE_FANOUT; i++)
    {
        x0 = below->x0[i] < x0 ? below->x0[i] : x0;
        y0 = below->y0[i] < y0 ? below->y0[i] : y0;
        x1 = below->x1[i] > x1 ? below->x1[i] : x1;
        y1 = below->y1[i] > y1 ? below->y1[i] : y1;
    }
    node->x0[c] = x0;
    node->y0[c] = y0;
    node->x1[c] = x1;
    node->y1[c] = y1;
}

/* --- the walk ------------------------------------------------------------- */

/** State of a walk. It returns nearer entries first, but not in strict order.
 */
struct oj_tree_walk
{
    double x, y;      /* the point, relative to the origin */
    double slack;     /* maximum error of a computed distance */
    double reach2;    /* boxes with a larger squared distance are skipped */
    uint32_t leaf;    /* the current node of level 0 */
    uint32_t pending; /* bit c: entry c of this node is still to be returned */
    int32_t depth;
    uint32_t stack[OJ_TREE_STACK];
    float stack_d2[OJ_TREE_STACK]; /* lower bounds of the squared distances */
};

/** Sets the bound: entries farther away are skipped from now on. Let u = 2^-53,
 *  D the exact distance between point p and segment a -> b, and d the result of
 *  oj_segment_distance(). Differences of coordinates have an error of u, the
 *  cross product one of 4 u |p - a| |b - a| (Cauchy), the rest of the formula 6
 *  u; and if the foot of p lies beyond an end, but rounding places it before,
 *  at most 8 u |p - a|. So d >= D - 24 u |p - a|. The distance of a box is
 *  computed from p less the origin, with an error of u |p - origin| in x and in
 *  y, and a few u of its own. Both |p - a| and the distance of a box are at
 *  most |x| + |y| + radius: 64 u of that suffice. Underflow adds at most
 *  OJ_LEAST_DISTANCE. */
OJ_FN void oj_tree_walk_set_bound(struct oj_tree_walk *w, double bound)
{
    double reach = bound + w->slack;
    w->reach2 = reach * reach * (1.0 + 1e-14);
}

/** Starts a walk at a finite point. */
OJ_FN void oj_tree_walk_start(struct oj_tree_walk *w,
                              const struct oj_device_tree *tree, double px,
                              double py, double bound)
{
    w->x = px - tree->x0;
    w->y = py - tree->y0;
    w->slack =
        7.2e-15 * (fabs(w->x) + fabs(w->y) + tree->radius) + OJ_LEAST_DISTANCE;
    w->pending = 0;
    w->leaf = 0;
    w->depth = 0;
    oj_tree_walk_set_bound(w, bound);
    if (tree->n > 0)
    {
        w->stack[0] = (uint32_t)(tree->n_levels - 1) << OJ_TREE_INDEX_BITS;
        w->stack_d2[0] = 0.0f;
        w->depth = 1;
    }
}

/* Returns the distance of v from the interval low .. high; 0 if v is NaN. */
OJ_FN double oj_tree_distance_to_interval(double v, float low, float high)
{
    double apart = (double)low - v;
    if (apart > 0.0)
        return apart;
    apart = v - (double)high;
    return apart > 0.0 ? apart : 0.0;
}

/* Returns a float <= d2. */
OJ_FN float oj_tree_d2_float_below(double d2)
{
    if (!(d2 > 1e-36))
        return 0.0f;
    return d2 > 3e38 ? 3e38f : (float)(d2 * (1.0 - 1e-6));
}

/* Pushes a child below those children of this visit (from `first` on) that are
 * nearer to the point, so that they are popped before it. */
OJ_FN void oj_tree_walk_push(struct oj_tree_walk *w, int32_t first, uint32_t at,
                             float d2)
{
    int32_t i = w->depth++;
    for (; i > first && w->stack_d2[i - 1] < d2; i--)
    {
        w->stack[i] = w->stack[i - 1];
        w->stack_d2[i] = w->stack_d2[i - 1];
    }
    w->stack[i] = at;
    w->stack_d2[i] = d2;
}

OJ_FN void oj_tree_walk_open_node(struct oj_tree_walk *w,
                                  const struct oj_device_tree *tree,
                                  uint32_t at)
{
    int32_t level = (int32_t)(at >> OJ_TREE_INDEX_BITS), first = w->depth;
    uint32_t i = at & ((1u << OJ_TREE_INDEX_BITS) - 1u);
    const struct oj_device_tree_node *node =
        tree->node + tree->level_first[level] + i;
    int64_t below = level > 0 ? (int64_t)tree->level_n[level - 1] : tree->n;
    int64_t left = below - (int64_t)i * OJ_TREE_FANOUT;
    int c, n = left < OJ_TREE_FANOUT ? (int)left : OJ_TREE_FANOUT;
    /* Among equally distant children the first is popped first. So the ranks of
     * features at one location ascend, and the first k of them exclude the
     * others. */
    for (c = n - 1; c >= 0; c--)
    {
        double dx =
            oj_tree_distance_to_interval(w->x, node->x0[c], node->x1[c]);
        double dy =
            oj_tree_distance_to_interval(w->y, node->y0[c], node->y1[c]);
        double d2 = dx * dx + dy * dy;
        if (d2 > w->reach2)
            continue;
        if (level == 0)
            w->pending |= 1u << c;
        else
            oj_tree_walk_push(w, first,
                              (uint32_t)(level - 1) << OJ_TREE_INDEX_BITS |
                                  (i * OJ_TREE_FANOUT + (uint32_t)c),
                              oj_tree_d2_float_below(d2));
    }
    w->leaf = i;
}

/** Pops the next node that may hold entries within the bound into *at; *d2 is
 *  a lower bound of its squared distance. Returns 0 if there is none. The
 *  caller then visits the node by oj_tree_walk_open_node(). */
OJ_FN int oj_tree_walk_pop(struct oj_tree_walk *w, uint32_t *at, float *d2)
{
    while (w->depth > 0)
    {
        w->depth--;
        *at = w->stack[w->depth];
        *d2 = w->stack_d2[w->depth];
        if ((double)*d2 <= w->reach2)
            return 1;
    }
    return 0;
}

/** Returns the next pending entry of the current node; there must be one. */
OJ_FN int64_t oj_tree_walk_take_pending_entry(struct oj_tree_walk *w)
{
    uint32_t c = 0;
    while ((w->pending >> c & 1u) == 0u)
        c++;
    w->pending &= w->pending - 1u;
    return (int64_t)w->leaf * OJ_TREE_FANOUT + c;
}

/** Returns the next entry that may be within the bound, or -1. */
OJ_FN int64_t oj_tree_walk_next(struct oj_tree_walk *w,
                                const struct oj_device_tree *tree)
{
    uint32_t at;
    float d2;
    while (w->pending == 0)
    {
        if (!oj_tree_walk_pop(w, &at, &d2))
            return -1;
        oj_tree_walk_open_node(w, tree, at);
    }
    return oj_tree_walk_take_pending_entry(w);
}

#endif
