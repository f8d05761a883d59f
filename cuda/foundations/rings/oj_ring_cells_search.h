/** A tree of cells over polygon rings, which finds the polygons of a point.
 *
 *  occupied    a bit for each cell of a fine level: 0 if no polygon intersects
 *              the cell. Most points need no more than this one bit
 *  directory   a slot for each cell of the level two above
 *  slot        kind of a cell: empty | inside exactly one polygon | a leaf |
 *              inner: its children have 16 slots
 *  leaf        records first .. first + n - 1, and a code for each of the 16
 *              parts (sixteenths) of the cell
 *  record      a unit, its state at the cell's reference point (inside or
 *              not), and its edges that touch the cell; by tie rank of units
 *
 *     slot -> leaf { code, first, n }
 *                          |
 *     record  [ unit 7 in | unit 7 out | unit 9 in ]   unit 9 covers the cell
 *     edge    [ 0 1 2 3     4 5          ]             oj_ring_packed_edge.h
 *
 *  A unit is a feature or a part; a point is inside it if it is inside an odd
 *  number of its rings. A unit may have several records in a leaf: its state is
 *  the exclusive or of theirs. oj_ring_cell_split.h explains how states and
 *  edges locate a point. */
#ifndef OJ_RING_CELLS_SEARCH_H
#define OJ_RING_CELLS_SEARCH_H

#include "../device/oj_segment_record.h"
#include "oj_ring_packed_edge.h"

enum oj_ring_units
{
    OJ_RING_FEATURES = 0, /**< for predicates */
    /** For distances: finds the first part in tie order that has the point
     *  inside or on its boundary. */
    OJ_RING_PARTS,
    OJ_RING_ALL_PARTS /**< for distances: finds all parts that have the point
                           inside or on their boundary */
};

/* Kind of a cell: the two top bits of its slot. The other 30 bits are the rank
 * of the feature that covers the cell (COVERED), the number of the leaf (LEAF),
 * or the index of its first child's slot, divided by 16 (INNER). */
enum oj_ring_slot
{
    OJ_RING_EMPTY = 0,
    OJ_RING_COVERED = 1,
    OJ_RING_LEAF = 2,
    OJ_RING_INNER = 3
};

#define OJ_RING_SLOT_BITS 30
#define OJ_RING_SLOT_MAX ((1u << OJ_RING_SLOT_BITS) - 1u)

/** Code of a sixteenth for whose points the records must be tested. Code 0
 *  means that no polygon contains any point of the sixteenth, code n of 1 .. 14
 *  that the sixteenth lies inside the unit of record n, counted from 1. */
#define OJ_RING_CODE_ASK 15u

struct oj_ring_leaf
{
    uint64_t code;  /* four bits per sixteenth; those of the first sixteenth are
                       the lowest */
    uint32_t first; /* first record */
    uint32_t n;     /* 16 * number of records + level */
};

struct oj_ring_record
{
    /* 2 * unit + 1 if the reference point is inside, else 2 * unit. */
    uint32_t unit_and_bit;
    /* First edge of the record; its edges end where those of the next record
     * begin. */
    uint32_t first;
};

/** The tree as it is searched. Borrows all arrays. */
struct oj_ring_tree
{
    struct oj_ring_frame frame;
    int32_t units;           /**< enum oj_ring_units */
    int32_t directory_level; /**< >= 0 */
    /** [16^directory_level] the slots, grouped by parent, 16 children each. */
    const uint32_t *directory;
    /** [16^(directory_level + 1)] a bit per sixteenth, grouped like directory.
     *  The bit is 0 if no polygon contains a point of the sixteenth. */
    const uint16_t *occupied;
    const uint32_t *slot;
    const struct oj_ring_leaf *leaf;
    /** [n_records + 1]; the last element ends the edges. */
    const struct oj_ring_record *record;
    const struct oj_ring_edge16 *edge;
    const uint32_t *edge_segment; /**< [n_edges] segment of each edge */
    const struct oj_cuda_segment *segment;
    const int32_t *part_feature; /**< rank of the feature of each part; unused
                                      for OJ_RING_FEATURES */
};

/** The records that must be tested for a point. */
struct oj_ring_place
{
    uint32_t at, end; /**< records [at, end) */
    double rx, ry;    /**< reference point of the cell */
    /** The point, relative to rx, ry, in steps of the cell. */
    float px, py;
};

#define OJ_RING_NONE (-1)
#define OJ_RING_ASK (-2)
#define OJ_RING_UNSURE (-3)

OJ_FN uint32_t oj_ring_slot_make(enum oj_ring_slot tag, uint32_t value)
{
    return (uint32_t)tag << OJ_RING_SLOT_BITS | value;
}

/** Returns the index of cell ix, iy in the order of the directory, at a level
 *  with 16^level cells. */
OJ_FN uint64_t oj_ring_directory_index(uint32_t ix, uint32_t iy, int level)
{
    if (level == 0)
        return 0;
    return ((uint64_t)(iy >> 2) << (2 * level - 2) | (uint64_t)(ix >> 2)) * 16 +
           (iy & 3u) * 4 + (ix & 3u);
}

/** Returns the rank of the feature to which a unit belongs. */
OJ_FN int32_t oj_ring_unit_rank(const struct oj_ring_tree *t, uint32_t unit)
{
    if (t->units == OJ_RING_FEATURES)
        return (int32_t)unit;
    return t->part_feature[unit];
}

/** Sets *x and *y to p in steps from the corner of the frame. Returns 0 if p
 *  is not finite or outside of the frame. */
OJ_FN int oj_ring_tree_point_to_steps(const struct oj_ring_tree *t, double px,
                                      double py, uint32_t *x, uint32_t *y)
{
    double u = (px - t->frame.x0) * t->frame.scale;
    double v = (py - t->frame.y0) * t->frame.scale;
    *x = *y = 0;
    if (!(fabs(u - 2147483648.0) < 2147483648.0 &&
          fabs(v - 2147483648.0) < 2147483648.0))
        return 0;
    *x = (uint32_t)u;
    *y = (uint32_t)v;
    return 1;
}

/** Returns 0 if the cells show that the point with the coordinates x, y in
 *  steps is in no polygon. */
OJ_FN uint32_t oj_ring_tree_is_occupied(const struct oj_ring_tree *t,
                                        uint32_t x, uint32_t y)
{
    int level = t->directory_level + 1, shift = 32 - 2 * level;
    uint32_t bits =
        t->occupied[oj_ring_directory_index(x >> shift, y >> shift, level)];
    shift -= 2;
    return bits >> ((y >> shift & 3u) * 4 + (x >> shift & 3u)) & 1u;
}

/** Returns the directory's slot for the point with the coordinates x, y in
 *  steps. */
OJ_FN uint32_t oj_ring_tree_slot(const struct oj_ring_tree *t, uint32_t x,
                                 uint32_t y)
{
    int shift = 32 - 2 * t->directory_level;
    if (t->directory_level == 0)
        return t->directory[0];
    return t->directory[oj_ring_directory_index(x >> shift, y >> shift,
                                                t->directory_level)];
}

/** Follows inner slots; returns the slot of the deepest cell, which is not
 *  inner. */
OJ_FN uint32_t oj_ring_tree_descend(const struct oj_ring_tree *t, uint32_t slot,
                                    uint32_t x, uint32_t y)
{
    int shift = 32 - 2 * t->directory_level;
    while (slot >> OJ_RING_SLOT_BITS == OJ_RING_INNER)
    {
        shift -= 2;
        slot = t->slot[(uint64_t)(slot & OJ_RING_SLOT_MAX) *
                           OJ_RING_CELL_CHILDREN +
                       (y >> shift & 3u) * 4 + (x >> shift & 3u)];
    }
    return slot;
}

/** Returns the leaf's code for the sixteenth that contains x, y. */
OJ_FN uint32_t oj_ring_leaf_code(const struct oj_ring_leaf *leaf, uint32_t x,
                                 uint32_t y)
{
    int shift = 30 - 2 * (int)(leaf->n & 15u);
    uint32_t sixteenth = (y >> shift & 3u) * 4 + (x >> shift & 3u);
    return (uint32_t)(leaf->code >> (4 * sixteenth)) & 15u;
}

/** Decides a point by the slot of its deepest cell. Returns a result of
 *  oj_ring_tree_find(); if this is OJ_RING_ASK, the records of *leaf must be
 *  tested. */
OJ_FN int32_t oj_ring_tree_decide_by_slot(const struct oj_ring_tree *t,
                                          uint32_t slot, uint32_t x, uint32_t y,
                                          struct oj_ring_leaf *leaf)
{
    uint32_t code;
    if (slot == 0)
        return OJ_RING_NONE;
    if (slot >> OJ_RING_SLOT_BITS == OJ_RING_COVERED)
        return (int32_t)(slot & OJ_RING_SLOT_MAX);
    *leaf = t->leaf[slot & OJ_RING_SLOT_MAX];
    code = oj_ring_leaf_code(leaf, x, y);
    if (code == 0)
        return OJ_RING_NONE;
    if (code != OJ_RING_CODE_ASK)
        return oj_ring_unit_rank(
            t, t->record[leaf->first + code - 1].unit_and_bit >> 1);
    return OJ_RING_ASK;
}

/** Sets *place to the records of a leaf that must be tested for p, whose steps
 *  are x, y. */
OJ_FN void oj_ring_tree_list_records(const struct oj_ring_tree *t, double px,
                                     double py, uint32_t x, uint32_t y,
                                     struct oj_ring_leaf leaf,
                                     struct oj_ring_place *place)
{
    int level = (int)(leaf.n & 15u), shift = 32 - 2 * level;
    double side = t->frame.side[level];
    oj_ring_cell_reference(&t->frame, level == 0 ? 0 : x >> shift,
                           level == 0 ? 0 : y >> shift, side, &place->rx,
                           &place->ry);
    place->px = (float)((px - place->rx) * t->frame.steps[level]);
    place->py = (float)((py - place->ry) * t->frame.steps[level]);
    place->at = leaf.first;
    place->end = leaf.first + (leaf.n >> 4);
}

/** Decides p, whose steps are x, y, by the cells below the directory. Returns a
 *  result of oj_ring_tree_find(). */
OJ_FN int32_t oj_ring_tree_decide_by_cells(const struct oj_ring_tree *t,
                                           double px, double py, uint32_t x,
                                           uint32_t y,
                                           struct oj_ring_place *place)
{
    uint32_t slot = oj_ring_tree_slot(t, x, y);
    struct oj_ring_leaf leaf;
    int32_t found;
    leaf.code = 0;
    leaf.first = leaf.n = 0;
    slot = oj_ring_tree_descend(t, slot, x, y);
    found = oj_ring_tree_decide_by_slot(t, slot, x, y, &leaf);
    if (found == OJ_RING_ASK)
        oj_ring_tree_list_records(t, px, py, x, y, leaf, place);
    return found;
}

/** Begins the search for p. Returns the rank of the feature that contains p:
 *  the only one or, in a tree of OJ_RING_PARTS, the first in tie order. Returns
 *  OJ_RING_NONE if p is in no polygon or not finite, and OJ_RING_ASK if the
 *  records of *place must be tested. */
OJ_FN int32_t oj_ring_tree_find(const struct oj_ring_tree *t, double px,
                                double py, struct oj_ring_place *place)
{
    uint32_t x, y;
    place->at = place->end = 0;
    place->rx = place->ry = 0.0;
    place->px = place->py = 0.0f;
    if (!oj_ring_tree_point_to_steps(t, px, py, &x, &y) ||
        !oj_ring_tree_is_occupied(t, x, y))
        return OJ_RING_NONE;
    return oj_ring_tree_decide_by_cells(t, px, py, x, y, place);
}

/** Returns the location of p in one unit, by the original edges of its records
 *  first .. end - 1. */
OJ_FN enum oj_location
oj_ring_tree_locate_exactly(const struct oj_ring_tree *t,
                            const struct oj_ring_place *place, double px,
                            double py, uint32_t first, uint32_t end)
{
    uint32_t odd = 0, e, last = t->record[end].first;
    for (e = first; e < end; e++)
        odd ^= t->record[e].unit_and_bit & 1u;
    for (e = t->record[first].first; e < last; e++)
    {
        const struct oj_cuda_segment *s = &t->segment[t->edge_segment[e]];
        int edge = oj_ring_edge_crosses_path(px, py, place->rx, place->ry,
                                             s->ax, s->ay, s->bx, s->by);
        if (edge == OJ_ON_BOUNDARY)
            return OJ_ON_BOUNDARY;
        odd ^= (uint32_t)edge;
    }
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

/** Locates the point of *place (px, py) in the unit whose records begin at
 *  place->at, by the short edges alone (oj_ring_packed_edge.h). Returns
 *  OJ_INSIDE or OJ_OUTSIDE, and moves place->at behind these records; or
 *  returns OJ_RING_UNSURE if exact signs are needed, and leaves place->at. Sets
 *  *unit to the unit and *end to the end of its records in any case.
 *  Precondition: place->at < place->end. */
OJ_FN int oj_ring_tree_locate_by_short_edges(const struct oj_ring_tree *t,
                                             struct oj_ring_place *place,
                                             uint32_t *unit, uint32_t *end)
{
    uint32_t at = place->at, odd = 0, unsure = 0;
    struct oj_ring_record r = t->record[at], next;
    *unit = r.unit_and_bit >> 1;
    for (;;)
    {
        uint32_t e = r.first;
        odd ^= r.unit_and_bit & 1u;
        next = t->record[++at];
        for (; e < next.first && !unsure; e++)
        {
            uint32_t edge = (uint32_t)oj_ring_edge_crosses_from_origin(
                t->edge[e], place->px, place->py);
            odd ^= edge;
            unsure = edge & OJ_RING_EDGE_UNSURE;
        }
        if (at == place->end || next.unit_and_bit >> 1 != *unit)
            break;
        r = next;
    }
    *end = at;
    if (unsure)
        return OJ_RING_UNSURE;
    place->at = at;
    return odd & 1u ? OJ_INSIDE : OJ_OUTSIDE;
}

/** Returns the location of p in the next unit of the place, and moves the place
 *  to the unit after it; *unit becomes the located unit. Uses the short edges
 *  or, if these cannot decide, the original edges. */
OJ_FN enum oj_location
oj_ring_tree_locate_in_next_unit(const struct oj_ring_tree *t,
                                 struct oj_ring_place *place, double px,
                                 double py, uint32_t *unit)
{
    uint32_t first = place->at, end;
    int location = oj_ring_tree_locate_by_short_edges(t, place, unit, &end);
    if (location != OJ_RING_UNSURE)
        return (enum oj_location)location;
    place->at = end;
    return oj_ring_tree_locate_exactly(t, place, px, py, first, end);
}

/** For trees of parts: returns the rank of the first feature in tie order that
 *  contains p or has it on its boundary, or OJ_RING_NONE. */
OJ_FN int32_t oj_ring_tree_first_containing(const struct oj_ring_tree *t,
                                            double px, double py)
{
    struct oj_ring_place place;
    int32_t found = oj_ring_tree_find(t, px, py, &place);
    uint32_t unit;
    if (found != OJ_RING_ASK)
        return found;
    while (place.at < place.end)
    {
        if (oj_ring_tree_locate_in_next_unit(t, &place, px, py, &unit) !=
            OJ_OUTSIDE)
            return t->part_feature[unit];
    }
    return OJ_RING_NONE;
}

#endif
