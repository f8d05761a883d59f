/** A tree of cells over polygon rings: which polygons a point is in.
 *
 *  occupied    a bit for each cell of a fine level: whether it may have to do
 *              with a polygon at all.  Most points stop here, at few bytes
 *  directory   a slot for each cell of a level two above that
 *  slot        what a cell is:  empty | in the interior of one polygon, all of
 *              it | a leaf | 16 slots of its children
 *  leaf        records first .. first + n - 1, and a code for each of 16 parts
 *              of the cell
 *  record      a unit, whether the cell's reference point is in it, and the
 *              unit's edges that touch the cell; by unit, and units in tie
 * order
 *
 *     slot -> leaf { code, first, n }
 *                          |
 *     record  [ unit 7 in | unit 7 out | unit 9 in ]   unit 9 covers the cell
 *     edge    [ 0 1 2 3     4 5          ]             (see
 * oj_ring_packed_edge.h)
 *
 *  A unit is a feature or a part of one, to which all its rings belong by
 *  even-odd. A unit may have several records in a leaf; their states belong
 *  together by even-odd.  oj_ring_cell.h says how states and edges answer.
 */
#ifndef OJ_RING_CELLS_H
#define OJ_RING_CELLS_H

#include "../device/oj_segment_record.h"
#include "oj_ring_packed_edge.h"

enum oj_ring_units
{
    OJ_RING_FEATURES = 0, /**< predicates */
    OJ_RING_PARTS,        /**< distances; the first part in tie order that has a
                               point inside or on it is asked for */
    OJ_RING_ALL_PARTS     /**< the same, and what is in several parts is asked
                               of all of them */
};

/* The two top bits of a slot; the others are a rank, a leaf, or a sixteenth of
 * the first child's slot. */
enum oj_ring_slot
{
    OJ_RING_EMPTY = 0,
    OJ_RING_COVERED = 1,
    OJ_RING_LEAF = 2,
    OJ_RING_INNER = 3
};

#define OJ_RING_SLOT_BITS 30
#define OJ_RING_SLOT_MAX ((1u << OJ_RING_SLOT_BITS) - 1u)

/** Code of a sixteenth of a leaf that only its records answer for; 0: in no
 *  polygon; else the record, counted from 1, whose unit alone decides. */
#define OJ_RING_CODE_ASK 15u

struct oj_ring_leaf
{
    uint64_t code;  /* four bits for each sixteenth, from the lowest */
    uint32_t first; /* record */
    uint32_t n;     /* 16 * records + level */
};

struct oj_ring_record
{
    uint32_t unit;  /* 2 * unit + 1 where the reference point is inside */
    uint32_t first; /* edge; up to that of the next record */
};

/** Borrows everything. */
struct oj_ring_tree
{
    struct oj_ring_frame frame;
    int32_t units;             /**< enum oj_ring_units */
    int32_t directory_level;   /**< >= 0 */
    const uint32_t *directory; /**< [16^level] by parent, 16 children each */
    const uint16_t *occupied;  /**< [16^(level + 1)] alike: bits of sixteenths
                                    in which a point may be in a polygon */
    const uint32_t *slot;
    const struct oj_ring_leaf *leaf;
    const struct oj_ring_record *record; /**< and one that ends the last */
    const struct oj_ring_edge16 *edge;
    const uint32_t *edge_segment; /**< [edges] */
    const struct oj_cuda_segment *segment;
    const int32_t *part_feature; /**< not of features: rank */
};

/** Where the records that have to be asked about a point are. */
struct oj_ring_place
{
    uint32_t at, end; /**< records */
    double rx, ry;    /**< reference point of the cell */
    float px, py;     /**< steps of the cell from there */
};

#define OJ_RING_NONE (-1)
#define OJ_RING_ASK (-2)
#define OJ_RING_UNSURE (-3)

OJ_FN uint32_t oj_ring_slot_make(enum oj_ring_slot tag, uint32_t value)
{
    return (uint32_t)tag << OJ_RING_SLOT_BITS | value;
}

/** A cell of the directory among 16^level. */
OJ_FN uint64_t oj_ring_directory_at(uint32_t ix, uint32_t iy, int level)
{
    if (level == 0)
        return 0;
    return ((uint64_t)(iy >> 2) << (2 * level - 2) | (uint64_t)(ix >> 2)) * 16 +
           (iy & 3u) * 4 + (ix & 3u);
}

/** The rank that a record stands for. */
OJ_FN int32_t oj_ring_record_rank(const struct oj_ring_tree *t, uint32_t unit)
{
    if (t->units == OJ_RING_FEATURES)
        return (int32_t)unit;
    return t->part_feature[unit];
}

/** The steps of p from the corner of the frame; 0 where p is outside of it or
 *  no point. */
OJ_FN int oj_ring_tree_steps(const struct oj_ring_tree *t, double px, double py,
                             uint32_t *x, uint32_t *y)
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

/** 0: such steps are in no polygon. */
OJ_FN uint32_t oj_ring_tree_is_occupied(const struct oj_ring_tree *t,
                                        uint32_t x, uint32_t y)
{
    int level = t->directory_level + 1, shift = 32 - 2 * level;
    uint32_t bits =
        t->occupied[oj_ring_directory_at(x >> shift, y >> shift, level)];
    shift -= 2;
    return bits >> ((y >> shift & 3u) * 4 + (x >> shift & 3u)) & 1u;
}

/** The directory's slot for such steps. */
OJ_FN uint32_t oj_ring_tree_slot(const struct oj_ring_tree *t, uint32_t x,
                                 uint32_t y)
{
    int shift = 32 - 2 * t->directory_level;
    if (t->directory_level == 0)
        return t->directory[0];
    return t->directory[oj_ring_directory_at(x >> shift, y >> shift,
                                             t->directory_level)];
}

/** What is below a slot of the directory: no inner one. */
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

/** The leaf's code of the sixteenth that steps x, y are in. */
OJ_FN uint32_t oj_ring_leaf_code(const struct oj_ring_leaf *leaf, uint32_t x,
                                 uint32_t y)
{
    int shift = 30 - 2 * (int)(leaf->n & 15u);
    uint32_t sixteenth = (y >> shift & 3u) * 4 + (x >> shift & 3u);
    return (uint32_t)(leaf->code >> (4 * sixteenth)) & 15u;
}

/** What a slot that is no inner one says of a point: see oj_ring_tree_find();
 *  OJ_RING_ASK: ask the records of *leaf. */
OJ_FN int32_t oj_ring_tree_judge(const struct oj_ring_tree *t, uint32_t slot,
                                 uint32_t x, uint32_t y,
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
        return oj_ring_record_rank(t,
                                   t->record[leaf->first + code - 1].unit >> 1);
    return OJ_RING_ASK;
}

/** The place where the records of a leaf are asked about p, whose steps are x,
 *  y. */
OJ_FN void oj_ring_tree_enter(const struct oj_ring_tree *t, double px,
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

/** What is below the directory at p, whose steps are x, y: see
 *  oj_ring_tree_find(). */
OJ_FN int32_t oj_ring_tree_look(const struct oj_ring_tree *t, double px,
                                double py, uint32_t x, uint32_t y,
                                struct oj_ring_place *place)
{
    uint32_t slot = oj_ring_tree_slot(t, x, y);
    struct oj_ring_leaf leaf;
    int32_t found;
    leaf.code = 0;
    leaf.first = leaf.n = 0;
    slot = oj_ring_tree_descend(t, slot, x, y);
    found = oj_ring_tree_judge(t, slot, x, y, &leaf);
    if (found == OJ_RING_ASK)
        oj_ring_tree_enter(t, px, py, x, y, leaf, place);
    return found;
}

/** Where p is to be looked for. A rank: p is inside that feature, which is the
 *  only one (OJ_RING_PARTS: the first) that it is in. OJ_RING_NONE: p is in no
 *  polygon, or no point. OJ_RING_ASK: ask the records of *place. */
OJ_FN int32_t oj_ring_tree_find(const struct oj_ring_tree *t, double px,
                                double py, struct oj_ring_place *place)
{
    uint32_t x, y;
    place->at = place->end = 0;
    place->rx = place->ry = 0.0;
    place->px = place->py = 0.0f;
    if (!oj_ring_tree_steps(t, px, py, &x, &y) ||
        !oj_ring_tree_is_occupied(t, x, y))
        return OJ_RING_NONE;
    return oj_ring_tree_look(t, px, py, x, y, place);
}

/** Where p is, from the original edges of records first .. end - 1, which are
 *  all of one unit. */
OJ_FN enum oj_location
oj_ring_tree_locate_exactly(const struct oj_ring_tree *t,
                            const struct oj_ring_place *place, double px,
                            double py, uint32_t first, uint32_t end)
{
    uint32_t odd = 0, e, last = t->record[end].first;
    for (e = first; e < end; e++)
        odd ^= t->record[e].unit & 1u;
    for (e = t->record[first].first; e < last; e++)
    {
        const struct oj_cuda_segment *s = &t->segment[t->edge_segment[e]];
        int edge = oj_ring_way_edge(px, py, place->rx, place->ry, s->ax, s->ay,
                                    s->bx, s->by);
        if (edge == OJ_ON_BOUNDARY)
            return OJ_ON_BOUNDARY;
        odd ^= (uint32_t)edge;
    }
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

/** Where p is in the next unit of the place, which must have one left, by enum
 *  oj_location; goes on to the one after that. OJ_RING_UNSURE: the short edges
 *  cannot tell, and the place stays as it was. *end: of the unit's records. */
OJ_FN int oj_ring_tree_next_surely(const struct oj_ring_tree *t,
                                   struct oj_ring_place *place, uint32_t *unit,
                                   uint32_t *end)
{
    uint32_t at = place->at, odd = 0, unsure = 0;
    struct oj_ring_record r = t->record[at], next;
    *unit = r.unit >> 1;
    for (;;)
    {
        uint32_t e = r.first;
        odd ^= r.unit & 1u;
        next = t->record[++at];
        for (; e < next.first && !unsure; e++)
        {
            uint32_t edge =
                (uint32_t)oj_ring_edge_test(t->edge[e], place->px, place->py);
            odd ^= edge;
            unsure = edge & OJ_RING_EDGE_UNSURE;
        }
        if (at == place->end || next.unit >> 1 != *unit)
            break;
        r = next;
    }
    *end = at;
    if (unsure)
        return OJ_RING_UNSURE;
    place->at = at;
    return odd & 1u ? OJ_INSIDE : OJ_OUTSIDE;
}

/** Where p is in the next unit; by the original edges where the rounded ones
 * are unsure. */
OJ_FN enum oj_location oj_ring_tree_next(const struct oj_ring_tree *t,
                                         struct oj_ring_place *place, double px,
                                         double py, uint32_t *unit)
{
    uint32_t first = place->at, end;
    int location = oj_ring_tree_next_surely(t, place, unit, &end);
    if (location != OJ_RING_UNSURE)
        return (enum oj_location)location;
    place->at = end;
    return oj_ring_tree_locate_exactly(t, place, px, py, first, end);
}

/** Parts: the first feature in tie order that is at distance 0 of p,
 * its boundary included, or OJ_RING_NONE. */
OJ_FN int32_t oj_ring_tree_first_around(const struct oj_ring_tree *t, double px,
                                        double py)
{
    struct oj_ring_place place;
    int32_t found = oj_ring_tree_find(t, px, py, &place);
    uint32_t unit;
    if (found != OJ_RING_ASK)
        return found;
    while (place.at < place.end)
    {
        if (oj_ring_tree_next(t, &place, px, py, &unit) != OJ_OUTSIDE)
            return t->part_feature[unit];
    }
    return OJ_RING_NONE;
}

#endif
