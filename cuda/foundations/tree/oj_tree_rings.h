/** Finds the polygon parts that contain a point: a tree over their boxes, and
 *  chains of edges, most of which are skipped as a whole.
 *
 *  The edges of all rings are numbered consecutively. Chain i of level l
 *  consists of edges 32^l i .. 32^l (i + 1) - 1; its box is stored. If all its
 *  edges belong to one ring, it is a connected line. A ray from p towards +x
 *  cannot cross a chain whose box is below, above or left of p; if the box is
 *  right of p, the two ends of the chain give the parity of the crossings.
 *  Otherwise its 32 chains of the level below are tested. */
#ifndef OJ_TREE_RINGS_H
#define OJ_TREE_RINGS_H

#include "../../../algs/foundations/kernels/oj_ring.h"
#include "../device/oj_segment_record.h"
#include "oj_tree.h"

#define OJ_TREE_CHAIN_BITS 5
#define OJ_TREE_CHAIN_LEVELS 3

/** The rings. Borrows all arrays. If polygons.n is 0, there are no polygons, or
 *  distances are to boundaries. */
struct oj_tree_rings
{
    struct oj_device_tree polygons;
    /** [polygons.n] part of each entry. */
    const int32_t *polygon_part;
    const struct oj_cuda_segment *segment; /**< in ring order */
    const int64_t *ring_offset;            /**< [n_parts + 1] */
    const int64_t *segment_offset;         /**< [n_rings + 1] */
    const int32_t *part_feature;           /**< [n_parts] rank */
    const uint8_t *part_kind;
    uint8_t polygon_kind; /**< equals part_kind of polygons */
    /** Boxes of the chains: element l - 1 holds those of level l = 1, 2, ... */
    const struct oj_box *chain[OJ_TREE_CHAIN_LEVELS];
};

/** Returns the level of the longest chain that begins with edge `at` and does
 *  not extend beyond edge `end`; at most limit. Level 0 is a single edge. */
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

/** Returns the box of chain i of a level >= 1, from the boxes of the level
 *  below it. */
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

/** Returns the box of all rings of a part; empty if the part is no polygon. */
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

/** Returns the exact location of p in rings ring .. end_ring - 1 together: on
 *  a ring, or inside an odd number of them, or outside. All rings are scanned
 *  as one sequence of edges; a chain with edges of several rings is skipped
 *  only if the ray cannot cross it. */
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
            int edge =
                oj_ring_edge_crosses_ray(px, py, s->ax, s->ay, s->bx, s->by);
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

/** Returns 1 if p is inside the polygon or on its boundary. */
OJ_FN int oj_tree_polygon_contains(const struct oj_tree_rings *rings,
                                   int64_t part, double px, double py)
{
    return rings->part_kind[part] == rings->polygon_kind &&
           oj_tree_rings_locate(rings, rings->ring_offset[part],
                                rings->ring_offset[part + 1], px,
                                py) != OJ_OUTSIDE;
}

#endif
