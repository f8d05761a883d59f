/** Packed trees of boxes with any number of dimensions, in double precision.
 *
 *  level 0          box 0  box 1  ..  box 7 | box 8 ..   of the entries
 *  level 1          box 0                   | box 1      eight boxes each
 *  ...
 *  level n_levels-1 one box
 *
 *  A box of d dimensions is d lower bounds followed by d upper bounds, like
 *  struct oj_box.  The caller owns the array of boxes.  Entries must be sorted
 *  so that neighbours are close together (Morton order or similar). Source:
 *  packed R-trees (Kamel and Faloutsos 1993).
 */
#ifndef CPU_BOX_LEVELS_H
#define CPU_BOX_LEVELS_H

#include <stdint.h>
#include <string.h>

#define OJ_BOX_FANOUT 8
#define OJ_BOX_LEVELS 12 /* for up to 8^11 entries */

/* Size of the search stack: on the way down, each level pushes at most eight
 * children and pops one. */
#define OJ_BOX_STACK (OJ_BOX_LEVELS * OJ_BOX_FANOUT)

/** Where the levels of a tree start in the array of boxes. */
struct oj_box_levels
{
    int n_levels; /**< 0: the tree has no entries */
    /** index of the first box of each level, then the end of the last level */
    int64_t first[OJ_BOX_LEVELS + 1];
};

/** A box on the search stack, with its squared distance from the query box. */
struct oj_box_child
{
    double d2;
    int64_t node; /**< index of the box in its level */
    int level;
};

/** Computes the starts of the levels of a tree over n entries. The box of entry
 * 0 is at index `first` of the array of boxes. */
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

/** Returns the number of boxes in all levels. */
static inline int64_t oj_box_levels_count(const struct oj_box_levels *levels)
{
    return levels->first[levels->n_levels] - levels->first[0];
}

/** Computes the boxes of all levels above 0. */
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

/** Returns the smallest box of the tree that is above all entries first to
 * last. A search for only these entries can start there. */
static inline struct oj_box_child oj_box_levels_common_ancestor(int64_t first,
                                                                int64_t last)
{
    struct oj_box_child over = {0.0, first, 0};
    for (; over.node != last; over.level++)
    {
        over.node /= OJ_BOX_FANOUT;
        last /= OJ_BOX_FANOUT;
    }
    return over;
}

/** Returns the squared distance between two boxes. */
static inline double oj_box_squared_distance(int n_dims, const double *a,
                                             const double *b)
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

/** Pushes the children of `at` (a box above level 0) whose squared distance
 * from `to` is at most most2. The farthest is pushed first, so the nearest is
 * popped first. Children at equal distance are popped in order if first_last is
 * 1, otherwise in reverse. Returns the new depth of the stack. */
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
            oj_box_squared_distance(n_dims, to, box + c * 2 * n_dims),
            first + c, level};
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
