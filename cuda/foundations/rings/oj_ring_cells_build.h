/** Rules by which a tree of cells over polygon rings (oj_ring_cells_search.h)
 * is built, level by level from the root.
 *
 *  node        a cell of a level and its fragments, sorted by unit
 *  fragment    at most 15 edges of one unit in one node, and a bit
 *
 *  The exclusive or of the bits of a unit's fragments in a node is the state of
 *  the unit at the node's reference point (1: inside). An edge that crosses the
 *  path between two reference points flips the bit of its own fragment only, so
 *  each fragment is split independently. If a fragment has no edges in a child,
 *  but its bit there is 1, the bit is added to the unit's first fragment in the
 *  node.
 *
 *     node      0                             unit 5 has 17 edges in it
 *     fragment [ 5: 15 edges, in | 5: 2, out | 8: 4, out ]
 *
 *  A fragment goes to node 16 c + child of the next level, for each child in
 *  which it has edges or the bit 1.
 */
#ifndef OJ_RING_CELLS_BUILD_H
#define OJ_RING_CELLS_BUILD_H

#include "oj_ring_cells_search.h"

#include <stddef.h>

/** Maximum number of edges of a fragment: counters have four bits. */
#define OJ_RING_FRAGMENT 15

/** A cell with more records gets no codes: its records are always tested. */
#define OJ_RING_CODED_RECORDS 256

struct __attribute__((aligned(16))) oj_ring_fragment
{
    uint32_t unit_and_bit; /**< 2 * unit + bit */
    uint32_t first;        /**< first entry in the level's list of edges */
    uint32_t n;            /**< number of edges, at most OJ_RING_FRAGMENT */
    uint32_t node;
};

/** A fragment compared with the children of its node. */
struct oj_ring_masks
{
    /** Bits 4 c .. 4 c + 3: number of edges that touch child c. */
    uint64_t counts;
    uint32_t touched, toggled;
};

OJ_FN void oj_ring_masks_add(struct oj_ring_masks *m,
                             struct oj_ring_split split)
{
    m->counts += oj_ring_mask_to_nibbles(split.touched);
    m->touched |= split.touched;
    m->toggled ^= split.toggled;
}

/** Returns the contribution of one record to a leaf's codes. The low half is
 *  the mask of the sixteenths that its edges touch, the high half that of the
 *  sixteenths whose middle is inside the unit according to this record's edges
 *  and bit alone. */
OJ_FN uint32_t oj_ring_code_contribution(uint32_t unit_and_bit,
                                         struct oj_ring_split sixteenths)
{
    uint32_t inside = sixteenths.toggled ^ (unit_and_bit & 1u ? 0xffffu : 0u);
    return inside << 16 | sixteenths.touched;
}

/** Returns the fragment's bits in the children, as a mask. */
OJ_FN uint32_t oj_ring_masks_inside(const struct oj_ring_masks *m,
                                    uint32_t unit_and_bit)
{
    return (m->toggled ^ (unit_and_bit & 1u ? 0xffffu : 0u)) & 0xffffu;
}

/** Returns the number of edges above which a node is split. It is `most`, but
 *  no more than 2 for cells larger than those of level `fine` (for which
 *  `occupied` has bits): many points lie in a large cell, so that splitting
 *  pays even for few edges. */
OJ_FN uint32_t oj_ring_node_max_edges(uint32_t most, int level, int fine)
{
    return level < fine && most > 2 ? 2 : most;
}

/** Returns 1 if a node with n edges must be split: if it has more than `most`,
 *  and is above the deepest of `levels` levels. replication is the average
 *  number of edges and fragments of this level that stem from one edge or
 *  fragment of the root, on the path to this node. Where many boundaries meet
 *  in one point, or many polygons overlap, splitting helps little and costs
 *  much, so nodes with a high replication are not split; the limit is lower if
 *  the tree is large. The root is always split, because the bits of its
 *  fragments hold for a point outside of all polygons. */
OJ_FN int oj_ring_node_splits(uint32_t n, uint32_t most, int level, int levels,
                              float replication, int is_large)
{
    if (level == 0)
        return n > 0;
    if (level >= levels || replication > (is_large ? 4.0f : 32.0f))
        return 0;
    return (float)n >
           (float)most * (replication > 4.0f ? 0.25f * replication : 1.0f);
}

/* --- building: the codes of a leaf ---------------------------------------- */

/** Combines the contributions of a cell's records, in their order, into its
 *  code. */
struct oj_ring_coder
{
    uint64_t code;
    uint32_t decided; /* sixteenths with a code other than 0 */
    uint32_t touched; /* sixteenths touched by an edge */
    uint32_t n;       /* records so far */
    /* 1: if a point is in several units, only the first one is needed; 0: all
     * of them are needed. */
    int first_counts;
    /* the current unit */
    uint32_t unit, unit_first, unit_touched, unit_inside;
};

OJ_FN struct oj_ring_coder oj_ring_coder_make(int32_t units)
{
    struct oj_ring_coder c;
    c.first_counts = units == OJ_RING_PARTS;
    c.code = 0;
    c.decided = c.touched = c.n = 0;
    c.unit = UINT32_MAX;
    c.unit_first = c.unit_touched = c.unit_inside = 0;
    return c;
}

/* Ends the current unit: sets the code of the sixteenths that are inside it. A
 * sixteenth that is also inside an earlier unit keeps its code if first_counts
 * is 1; otherwise its code becomes OJ_RING_CODE_ASK. */
OJ_FN void oj_ring_coder_end_unit(struct oj_ring_coder *c)
{
    uint32_t inside = c->unit_inside & ~c->unit_touched;
    uint32_t record = c->unit_first;
    if (record >= OJ_RING_CODE_ASK)
        record = OJ_RING_CODE_ASK;
    c->code |= oj_ring_mask_to_nibbles(inside & ~c->decided) * record;
    if (!c->first_counts)
        c->code |=
            oj_ring_mask_to_nibbles(inside & c->decided) * OJ_RING_CODE_ASK;
    c->decided |= inside;
}

/** Adds the next record of the cell. contribution is that of
 *  oj_ring_code_contribution(): the sixteenths that the record's edges touch in
 *  the low half, those whose middle is inside by this record alone in the high
 *  half. */
OJ_FN void oj_ring_coder_add(struct oj_ring_coder *c, uint32_t unit,
                             uint32_t contribution)
{
    uint32_t touched = contribution & 0xffffu, inside = contribution >> 16;
    c->n++;
    if (unit != c->unit)
    {
        oj_ring_coder_end_unit(c);
        c->unit = unit;
        c->unit_first = c->n;
        c->unit_touched = c->unit_inside = 0;
    }
    c->unit_touched |= touched;
    c->unit_inside ^= inside;
    c->touched |= touched;
}

OJ_FN uint64_t oj_ring_coder_end(struct oj_ring_coder *c)
{
    oj_ring_coder_end_unit(c);
    return c->code | oj_ring_mask_to_nibbles(c->touched) * OJ_RING_CODE_ASK;
}

/* --- building: occupied bits ---------------------------------------------- */

/** Returns the bits `occupied` of cell ix, iy of its level, computed from the
 *  other arrays of the tree. */
OJ_FN uint32_t oj_ring_occupied_bits(const struct oj_ring_tree *t, uint32_t ix,
                                     uint32_t iy)
{
    int fine = t->directory_level + 1, i;
    uint32_t x = ix << (32 - 2 * fine), y = iy << (32 - 2 * fine), bits = 0;
    uint32_t slot = oj_ring_tree_slot(t, x, y), value;
    struct oj_ring_leaf leaf;
    if (slot >> OJ_RING_SLOT_BITS == OJ_RING_INNER)
        slot = t->slot[(uint64_t)(slot & OJ_RING_SLOT_MAX) *
                           OJ_RING_CELL_CHILDREN +
                       (iy & 3u) * 4 + (ix & 3u)];
    value = slot & OJ_RING_SLOT_MAX;
    switch (slot >> OJ_RING_SLOT_BITS)
    {
        case OJ_RING_EMPTY:
            return 0;
        case OJ_RING_COVERED:
            return 0xffffu;
        case OJ_RING_INNER:
            for (i = 0; i < OJ_RING_CELL_CHILDREN; i++)
                bits |=
                    (uint32_t)(t->slot[(uint64_t)value * OJ_RING_CELL_CHILDREN +
                                       (uint64_t)i] != 0)
                    << i;
            return bits;
        default:
            leaf = t->leaf[value];
            break;
    }
    if ((int)(leaf.n & 15u) < fine)
        return oj_ring_leaf_code(&leaf, x, y) != 0 ? 0xffffu : 0;
    for (i = 0; i < OJ_RING_CELL_CHILDREN; i++)
        bits |= (uint32_t)((leaf.code >> (4 * i) & 15u) != 0) << i;
    return bits;
}

#endif
