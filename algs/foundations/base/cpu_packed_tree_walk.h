/** Depth-first walk down a packed tree (cpu_packed_tree.h) from a query box. Of
 * a node's children, the nearest to the box is visited first. */
#ifndef CPU_PACKED_TREE_WALK_H
#define CPU_PACKED_TREE_WALK_H

#include "cpu_lane_loops.h"
#include "cpu_packed_tree.h"

/** A child of a visited node: a node or an entry. */
struct oj_tree_child
{
    int32_t child; /**< index of a node in its level; level -1: index of an
                        entry */
    int32_t level;
    float d2; /**< squared distance from the query box */
};

/** State of a descent. Size of the stack: seven unvisited siblings per level,
 * one more level for entries, and eight slots for children that are written
 * before they are tested. */
struct oj_tree_descent
{
    float q[4]; /**< the query box in tree coordinates */
    int depth;
    struct oj_tree_child stack[(OJ_TREE_LEVELS + 2) * OJ_FANOUT];
};

/** Converts box to tree coordinates. Far-away boxes are clamped so that squared
 * distances stay finite. Clamping only reduces distances, which is safe for a
 * filter. */
OJ_INLINE void oj_tree_convert_box(const struct oj_tree *tree,
                                   const struct oj_box *box, float q[4])
{
    q[0] = oj_tree_round_down(box->x0, tree->origin_x, tree->scale);
    q[1] = oj_tree_round_down(box->y0, tree->origin_y, tree->scale);
    q[2] = oj_tree_round_up(box->x1, tree->origin_x, tree->scale);
    q[3] = oj_tree_round_up(box->y1, tree->origin_y, tree->scale);
    for (int i = 0; i < 4; i++)
    {
        q[i] = q[i] < 1e18f ? q[i] : 1e18f;
        q[i] = q[i] > -1e18f ? q[i] : -1e18f;
    }
}

/** Starts a descent at the root. The stack is empty if the tree is. */
OJ_INLINE void oj_tree_descent_begin(struct oj_tree_descent *descent,
                                     const struct oj_tree *tree,
                                     const struct oj_box *box)
{
    const struct oj_tree_child root = {0, tree->n_levels - 1, 0.0f};
    oj_tree_convert_box(tree, box, descent->q);
    descent->depth = tree->n_levels > 0;
    descent->stack[0] = root;
}

/** Returns the lowest node whose subtree contains the entries first to last. A
 * descent for only these entries can start there. */
OJ_INLINE struct oj_tree_child oj_tree_common_ancestor(int32_t first,
                                                       int32_t last)
{
    struct oj_tree_child over = {first / OJ_FANOUT, 0, 0.0f};
    for (last /= OJ_FANOUT; over.child != last; last /= OJ_FANOUT)
    {
        over.child /= OJ_FANOUT;
        over.level++;
    }
    return over;
}

/** Returns 1 if the subtree of child (or child itself, if it is an entry)
 * contains any of the entries first to last. */
OJ_INLINE int oj_tree_child_overlaps(struct oj_tree_child child, int32_t first,
                                     int32_t last)
{
    int shift = 3 * (child.level + 1);
    return child.child >= (int64_t)first >> shift &&
           child.child <= (int64_t)last >> shift;
}

/** Computes the squared distances from box q to eight boxes. Their relative
 * error is at most 3e-7, which oj_tree_reach2() allows for. Absent boxes are at
 * infinity. */
OJ_INLINE void oj_tree_node_distances2(const struct oj_tree_node *restrict box,
                                       const float q[4], float *restrict d2)
{
    float q0 = q[0], q1 = q[1], q2 = q[2], q3 = q[3];
    OJ_EIGHT
    {
        float left = box->x0[c] - q2, right = q0 - box->x1[c];
        float below = box->y0[c] - q3, above = q1 - box->y1[c];
        float dx = left > right ? left : right;
        float dy = below > above ? below : above;
        dx = dx > 0.0f ? dx : 0.0f;
        dy = dy > 0.0f ? dy : 0.0f;
        d2[c] = dx * dx + dy * dy;
    }
}

/** Pushes the children of `visited`, whose boxes are in *node. Child c (0 to 7)
 * is pushed if its squared distance is at most reach2 and, unless own_reach2 is
 * NULL, at most own_reach2[c]. The nearest child is pushed last, so that it is
 * popped first. Of children at equal distances, the first is popped first if
 * first_first, a compile-time constant, is 1, otherwise the last.
 */
OJ_INLINE void oj_tree_descent_push(struct oj_tree_descent *descent,
                                    const struct oj_tree_node *node,
                                    struct oj_tree_child visited, float reach2,
                                    const float *own_reach2, int first_first)
{
    struct oj_tree_child *stack = descent->stack;
    int bottom = descent->depth, depth = bottom;
    float d2[OJ_FANOUT];
    oj_tree_node_distances2(node, descent->q, d2);
    for (int i = 0; i < OJ_FANOUT; i++)
    {
        int c = first_first ? OJ_FANOUT - 1 - i : i;
        stack[depth].child = visited.child * OJ_FANOUT + c;
        stack[depth].level = visited.level - 1;
        stack[depth].d2 = d2[c];
        depth +=
            (d2[c] <= reach2) & (own_reach2 == NULL || d2[c] <= own_reach2[c]);
    }
    for (int i = bottom + 1; i < depth; i++)
    {
        struct oj_tree_child moved = stack[i];
        int at = i;
        for (; at > bottom && stack[at - 1].d2 < moved.d2; at--)
            stack[at] = stack[at - 1];
        stack[at] = moved;
    }
    descent->depth = depth;
}

#endif
