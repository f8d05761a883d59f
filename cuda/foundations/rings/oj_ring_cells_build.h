/** How a tree of cells over polygon rings is built (oj_ring_cells.h): level
 * by level from the root, every level from the one above.
 *
 *  node        its fragments, by unit
 *  fragment    at most 15 edges of one unit in one node, and a bit
 *
 *  The bits of a unit's fragments in a node, added up without carry, say
 * whether the node's reference point is in the unit.  An edge between reference
 * points flips the bit of its own fragment alone, so fragments go from a node
 * to its children each by itself; only where a fragment has no edges in a child
 * any more and its bit is set there, the bit moves to the first fragment that
 * the unit has in the node.
 *
 *     node      0                             unit 5 has 17 edges in it
 *     fragment [ 5: 15 edges, in | 5: 2, out | 8: 4, out ]
 *     its node 16 c + child of the next level, for each child that a fragment
 *     has edges in, or whose reference point it has the bit of
 */
#ifndef OJ_RING_CELLS_BUILD_H
#define OJ_RING_CELLS_BUILD_H

#include "oj_ring_cells.h"

#include <stddef.h>

/** Most edges of a fragment: counts of four bits hold them. */
#define OJ_RING_FRAGMENT 15

/** Cells of more records than this have them asked always. */
#define OJ_RING_CODED_RECORDS 256

struct __attribute__((aligned(16))) oj_ring_fragment
{
    uint32_t unit;  /**< 2 * unit + bit */
    uint32_t first; /**< edge of the level's list */
    uint32_t n;     /**< edges, at most OJ_RING_FRAGMENT */
    uint32_t node;
};

/** A fragment against the children of its node. */
struct oj_ring_masks
{
    uint64_t counts; /**< edges that touch child c: bits 4 c .. 4 c + 3 */
    uint32_t touched, toggled;
};

OJ_FN void oj_ring_masks_add(struct oj_ring_masks *m,
                             struct oj_ring_split split)
{
    m->counts += oj_ring_nibbles(split.touched);
    m->touched |= split.touched;
    m->toggled ^= split.toggled;
}

/** What the codes of a leaf are made of, for one record: sixteenths that its
 *  edges touch in the low half, and above those whose middle is in its unit as
 *  far as it knows. */
OJ_FN uint32_t oj_ring_said_of(uint32_t unit, struct oj_ring_split sixteenths)
{
    uint32_t inside = sixteenths.toggled ^ (unit & 1u ? 0xffffu : 0u);
    return inside << 16 | sixteenths.touched;
}

/** The fragment's bits in the children. */
OJ_FN uint32_t oj_ring_masks_inside(const struct oj_ring_masks *m,
                                    uint32_t unit)
{
    return (m->toggled ^ (unit & 1u ? 0xffffu : 0u)) & 0xffffu;
}

/** Edges of a node of a level that is not split, where `most` is wanted in the
 *  end. Cells above those of `fine`, whose sixteenths the bits of
 *  oj_ring_tree.occupied are for, leave many points to be asked: they are split
 *  wherever there is more than one border between two polygons. */
OJ_FN uint32_t oj_ring_node_most(uint32_t most, int level, int fine)
{
    return level < fine && most > 2 ? 2 : most;
}

/** 1 when a node of n edges is to be split. replication: how many edges and
 *  fragments of nodes of this level one of the root's has become on its way to
 *  this node, on average.  Where many borders run through one place, or many
 *  polygons lie over each other, splitting helps little and costs much: there
 *  an end is made, early when all of the tree is large already.  The root is
 *  always split: the bits of its fragments are those of a point outside. */
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

/** Puts together what the records of a cell, in their order, say about its
 *  sixteenths. */
struct oj_ring_coder
{
    uint64_t code;
    uint32_t decided; /* sixteenths whose code is not 0 */
    uint32_t touched; /* by any edge */
    uint32_t n;       /* records so far */
    int first_counts; /* of several units; 0: those all decide */
    /* the unit under way */
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

/* The sixteenths inside are in the unit: where they were in another, both
 * decide, or the first one does. */
OJ_FN void oj_ring_coder_end_unit(struct oj_ring_coder *c)
{
    uint32_t inside = c->unit_inside & ~c->unit_touched;
    uint32_t record = c->unit_first;
    if (record >= OJ_RING_CODE_ASK)
        record = OJ_RING_CODE_ASK;
    c->code |= oj_ring_nibbles(inside & ~c->decided) * record;
    if (!c->first_counts)
        c->code |= oj_ring_nibbles(inside & c->decided) * OJ_RING_CODE_ASK;
    c->decided |= inside;
}

/** The next record, of which that is said. */
OJ_FN void oj_ring_coder_add(struct oj_ring_coder *c, uint32_t unit,
                             uint32_t said)
{
    uint32_t touched = said & 0xffffu, inside = said >> 16;
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
    return c->code | oj_ring_nibbles(c->touched) * OJ_RING_CODE_ASK;
}

/* --- building: what is occupied --------------------------------------------
 */

/** oj_ring_tree.occupied of cell ix, iy of its level, from the rest of the
 *  tree. */
OJ_FN uint32_t oj_ring_occupied(const struct oj_ring_tree *t, uint32_t ix,
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
