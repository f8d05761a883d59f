/** Which polygon parts hold a point: a tree over their boxes, and chains of
 * edges that are stepped over in one go.
 *
 *  Edges of all rings stand one behind the other.  Chain i of level l is edges
 *  32^l i .. 32^l (i + 1) - 1, and its box is known; one that lies in a single
 *  ring is a connected line.  A ray from p towards +x cannot meet it if p is
 *  above, below or right of its box; if p is left of the box, the parity of
 *  its crossings follows from its two ends.  Else its 32 chains of the level
 *  below are asked.
 */
#ifndef OJ_TREE_RINGS_H
#define OJ_TREE_RINGS_H

#include "../../../algs/foundations/kernels/oj_ring.h"
#include "../device/oj_segment_record.h"
#include "oj_tree.h"

#define OJ_TREE_CHAIN_BITS 5
#define OJ_TREE_CHAIN_LEVELS 3

/** Borrows everything. polygons.n == 0: there are none, or they do not
 *  matter. */
struct oj_tree_rings
{
    struct oj_device_tree polygons;
    const int32_t *polygon_part;           /**< [polygons.n] */
    const struct oj_cuda_segment *segment; /**< in the order of rings */
    const int64_t *ring_offset;            /**< of parts */
    const int64_t *segment_offset;         /**< of rings */
    const int32_t *part_feature;           /**< rank */
    const uint8_t *part_kind;
    uint8_t polygon_kind; /**< of parts that are polygons */
    const struct oj_box *chain[OJ_TREE_CHAIN_LEVELS]; /**< levels 1 .. */
};

/** The greatest level, up to limit, of a chain that begins with edge at and
 *  ends before end; 0: a single edge. */
OJ_FN int oj_tree_chain_level(int64_t at, int64_t end, int limit)
{
    int level = 0;
    while (level < limit)
    {
        int64_t n = (int64_t)1 << (OJ_TREE_CHAIN_BITS * (level + 1));
        if ((at & (n - 1)) != 0 || end - at < n)
            break;
        level++;
    }
    return level;
}

/** Box of chain i of a level >= 1. */
OJ_FN struct oj_box oj_tree_chain_box(const struct oj_tree_rings *rings,
                                      int level, int64_t i)
{
    struct oj_box box = oj_box_empty(), one;
    int64_t j = i << OJ_TREE_CHAIN_BITS;
    int c;
    for (c = 0; c < 1 << OJ_TREE_CHAIN_BITS; c++, j++)
    {
        one = level == 1 ? oj_cuda_segment_box(&rings->segment[j])
                         : rings->chain[level - 2][j];
        oj_box_add_box(&box, &one);
    }
    return box;
}

/** Box of all rings of a part; nothing for parts that are not polygons. */
OJ_FN struct oj_box oj_tree_polygon_box(const struct oj_tree_rings *rings,
                                        int64_t part)
{
    struct oj_box box = oj_box_empty(), one;
    int64_t at = rings->segment_offset[rings->ring_offset[part]];
    int64_t end = rings->segment_offset[rings->ring_offset[part + 1]];
    if (rings->part_kind[part] != rings->polygon_kind)
        return box;
    while (at < end)
    {
        int level = oj_tree_chain_level(at, end, OJ_TREE_CHAIN_LEVELS);
        int shift = OJ_TREE_CHAIN_BITS * level;
        one = level == 0 ? oj_cuda_segment_box(&rings->segment[at])
                         : rings->chain[level - 1][at >> shift];
        oj_box_add_box(&box, &one);
        at += (int64_t)1 << shift;
    }
    return box;
}

/** Where p is of rings first .. end - 1 together, exactly, by even-odd: on one
 *  of them, or inside an odd number.  They are gone along at once; a chain of
 *  edges of several rings is stepped over only where the ray cannot meet it. */
OJ_FN enum oj_location oj_tree_rings_locate(const struct oj_tree_rings *rings,
                                            int64_t ring, int64_t end_ring,
                                            double px, double py)
{
    int64_t at = rings->segment_offset[ring], end_of_ring = at;
    int64_t end = rings->segment_offset[end_ring];
    int level = oj_tree_chain_level(at, end, OJ_TREE_CHAIN_LEVELS);
    int odd = 0;
    while (at < end)
    {
        int shift = OJ_TREE_CHAIN_BITS * level;
        if (level == 0)
        {
            const struct oj_cuda_segment *s = &rings->segment[at];
            int edge = oj_ring_edge(px, py, s->ax, s->ay, s->bx, s->by);
            if (edge == OJ_ON_BOUNDARY)
                return OJ_ON_BOUNDARY;
            odd ^= edge;
        }
        else
        {
            struct oj_box box = rings->chain[level - 1][at >> shift];
            int64_t after = at + ((int64_t)1 << shift);
            if (!(py < box.y0 || py > box.y1 || px > box.x1))
            {
                while (end_of_ring <= at)
                    end_of_ring = rings->segment_offset[++ring];
                if (px >= box.x0 || after > end_of_ring)
                {
                    level--;
                    continue;
                }
                odd ^= (rings->segment[at].ay > py) !=
                       (rings->segment[after - 1].by > py);
            }
        }
        at += (int64_t)1 << shift;
        level = oj_tree_chain_level(at, end, OJ_TREE_CHAIN_LEVELS);
    }
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

OJ_FN enum oj_location oj_tree_ring_locate(const struct oj_tree_rings *rings,
                                           int64_t ring, double px, double py)
{
    return oj_tree_rings_locate(rings, ring, ring + 1, px, py);
}

/** 1 when p is at distance 0 of the polygon. */
OJ_FN int oj_tree_part_holds(const struct oj_tree_rings *rings, int64_t part,
                             double px, double py)
{
    return rings->part_kind[part] == rings->polygon_kind &&
           oj_tree_rings_locate(rings, rings->ring_offset[part],
                                rings->ring_offset[part + 1], px,
                                py) != OJ_OUTSIDE;
}

#endif
