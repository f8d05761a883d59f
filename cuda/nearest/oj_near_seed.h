/** Where cells of the nearest segment may begin instead of at the root.
 *
 *  Where reaches are short against nodes, nothing is left out of a list but
 * what is out of reach.  So segments can be put into the nodes of a lower level
 * at once, each into all that its box, widened by the reach, has a part in.
 * These cells are numbered by their way down the tree, four bits for two
 * levels, so that the children of a node follow each other. Source: ours.
 */
#ifndef OJ_NEAR_SEED_H
#define OJ_NEAR_SEED_H

#include "oj_near_split.h"

/** Segments to a cell at least, and how much wider than the reach a cell is. */
#define OJ_NEAR_SEED_SEGMENTS 3
#define OJ_NEAR_SEED_REACHES 2.5

/** The level to begin with, even; below 4 it is not worth it. */
OJ_FN int oj_near_seed_level(const struct oj_near_square *square, int64_t n)
{
    int level = 0;
    while (level + 6 <= square->max_level && level < 12 &&
           ldexp(square->side, -level - 2) >=
               OJ_NEAR_SEED_REACHES * square->reach &&
           ((int64_t)OJ_NEAR_SEED_SEGMENTS << (2 * (level + 2))) <= n)
        level += 2;
    return level;
}

/** By how much a segment's box is widened: the reach, and what rounding may
 *  do to a place. */
OJ_FN double oj_near_seed_widen(const struct oj_near_square *square, int level)
{
    return square->reach * 1.000001 + ldexp(square->side, -level - 12);
}

/** The cells of a row, or of a column, from first to last. */
struct oj_near_cells_of
{
    uint32_t first, last;
};

/** Those of a box from low to high, from the corner of the square. */
OJ_FN struct oj_near_cells_of oj_near_seed_range(int level, double per_cell,
                                                 double widen, double low,
                                                 double high)
{
    struct oj_near_cells_of cells;
    double last = (double)((1u << level) - 1u);
    low = (low - widen) * per_cell;
    high = (high + widen) * per_cell;
    cells.first = (uint32_t)fmin(fmax(low, 0.0), last);
    cells.last = (uint32_t)fmin(fmax(high, 0.0), last);
    return cells;
}

OJ_FN uint32_t oj_near_seed_cell(int level, uint32_t ix, uint32_t iy)
{
    uint32_t cell = 0;
    int shift;
    for (shift = level - 2; shift >= 0; shift -= 2)
        cell = (cell << 4) | (((iy >> shift) & 3u) << 2) | ((ix >> shift) & 3u);
    return cell;
}

/** Headers of the levels above one: those of its cells follow. */
OJ_FN uint32_t oj_near_seed_above(int level)
{
    return ((1u << (2 * level)) - 1u) / 15u;
}

/** The node of a cell of a level, with n segments from 0 on. */
OJ_FN struct oj_near_node oj_near_seed_node(int level, uint32_t cell,
                                            uint32_t n)
{
    struct oj_near_node node;
    int digit;
    node.first = 0;
    node.n = n;
    node.ix = node.iy = 0;
    for (digit = 0; digit < level / 2; digit++)
    {
        uint32_t way = cell >> (4 * digit);
        node.ix |= (way & 3u) << (2 * digit);
        node.iy |= ((way >> 2) & 3u) << (2 * digit);
    }
    node.header = oj_near_seed_above(level) + cell;
    node.level = (uint8_t)level;
    node.stale = 0;
    return node;
}

/** Header i of those above a level. */
OJ_FN struct oj_near_header oj_near_seed_header(uint32_t i)
{
    struct oj_near_header h;
    int level = 0;
    while (i >= oj_near_seed_above(level + 2))
        level += 2;
    h.first =
        oj_near_seed_above(level + 2) + 16u * (i - oj_near_seed_above(level));
    h.info = oj_near_inner_info(level + 2, 2);
    return h;
}

#endif
