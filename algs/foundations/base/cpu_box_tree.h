/** Packed trees of boxes in double precision, of any number of dimensions.
 *
 *  level 0          box 0  box 1  ..  box 7 | box 8 ..   of the entries
 *  level 1          box 0                   | box 1      eight boxes each
 *  ...
 *  level n_levels-1 one box
 *
 *  A box of d dimensions is d lower bounds and then d upper ones, as struct
 *  oj_box has them.  The caller owns the array of boxes.  Entries must be
 *  sorted so that neighbours are close together (Morton order or similar).
 *  Source: packed R-trees (Kamel and Faloutsos 1993).
 */
#ifndef CPU_BOX_TREE_H
#define CPU_BOX_TREE_H

#include <stdint.h>
#include <string.h>

#define OJ_BOX_FANOUT 8
#define OJ_BOX_LEVELS 12 /* 8^11 entries */

/* Stack size: each level on the way down pushes at most eight children and pops
 * one of them. */
#define OJ_BOX_STACK (OJ_BOX_LEVELS * OJ_BOX_FANOUT)

struct oj_box_levels
{
    int n_levels; /**< 0: no entries */
    /** index of the first box of each level, then the end of the last level */
    int64_t first[OJ_BOX_LEVELS + 1];
};

/** A box on the search stack, with its squared distance to the query box. */
struct oj_box_child
{
    double d2;
    int64_t node; /**< index in its level */
    int level;
};

/** Sets the level starts of a tree over n entries; first: index of entry 0's
 * box in the box array. */
static inline void oj_box_levels_make(struct oj_box_levels *levels, int64_t n,
                                      int64_t first)
{
    memset(levels, 0, sizeof *levels);
    levels->first[0] = first;
    while (n > 0)
    {
        first += n;
        levels->first[++levels->n_levels] = first;
        n = n == 1 ? 0 : (n + OJ_BOX_FANOUT - 1) / OJ_BOX_FANOUT;
    }
}

/** Number of boxes of all levels together. */
static inline int64_t oj_box_levels_count(const struct oj_box_levels *levels)
{
    return levels->first[levels->n_levels] - levels->first[0];
}

/** Makes the boxes of the levels above 0. */
static inline void oj_box_levels_fill(const struct oj_box_levels *levels,
                                      int n_dims, double *box)
{
    for (int level = 1; level < levels->n_levels; level++)
    {
        const double *from = box + levels->first[level - 1] * 2 * n_dims;
        double *to = box + levels->first[level] * 2 * n_dims;
        int64_t n = levels->first[level] - levels->first[level - 1];
        for (int64_t i = 0; i < n; i++, from += 2 * n_dims)
        {
            double *around = to + i / OJ_BOX_FANOUT * 2 * n_dims;
            if (i % OJ_BOX_FANOUT == 0)
                memcpy(around, from, (size_t)n_dims * 2 * sizeof *from);
            for (int d = 0; d < n_dims; d++)
            {
                double low = from[d], high = from[n_dims + d];
                around[d] = low < around[d] ? low : around[d];
                around[n_dims + d] =
                    high > around[n_dims + d] ? high : around[n_dims + d];
            }
        }
    }
}

/** Squared distance between two boxes. */
static inline double oj_box_gap2(int n_dims, const double *a, const double *b)
{
    double sum = 0.0;
    for (int d = 0; d < n_dims; d++)
    {
        double gap = a[d] - b[n_dims + d], other = b[d] - a[n_dims + d];
        gap = gap > other ? gap : other;
        gap = gap > 0.0 ? gap : 0.0;
        sum += gap * gap;
    }
    return sum;
}

/** Pushes those children of `at` (level 1 or above) whose squared distance to
 * `to` is at most most2, farthest first, so that the nearest is popped first.
 * Equal distances: with first_last the first child is popped first, otherwise
 * the last one.  Returns the new stack depth. */
static inline int oj_box_levels_push(const struct oj_box_levels *levels,
                                     int n_dims, const double *box,
                                     struct oj_box_child at, const double *to,
                                     double most2, int first_last,
                                     struct oj_box_child *stack, int depth)
{
    int level = at.level - 1, bottom = depth;
    int64_t first = at.node * OJ_BOX_FANOUT;
    int64_t n = levels->first[at.level] - levels->first[level] - first;
    box += (levels->first[level] + first) * 2 * n_dims;
    n = n < OJ_BOX_FANOUT ? n : OJ_BOX_FANOUT;
    for (int64_t i = 0; i < n; i++)
    {
        int64_t c = first_last ? n - 1 - i : i;
        struct oj_box_child child = {
            oj_box_gap2(n_dims, to, box + c * 2 * n_dims), first + c, level};
        int place = depth;
        if (child.d2 > most2)
            continue;
        for (; place > bottom && stack[place - 1].d2 < child.d2; place--)
            stack[place] = stack[place - 1];
        stack[place] = child;
        depth++;
    }
    return depth;
}

#endif
