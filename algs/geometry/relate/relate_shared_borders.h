/** The DE-9IM matrix of two polygons from the edges near the window that their
 *  boxes have in common, for borders that meet in vertices of both, as those of
 *  neighbours in a coverage do.
 *
 *      a: . . p1 p2 p3 . . .      p1 p2 and p2 p3 are edges of both (shared),
 *      b: . . p3 p2 p1 . . .      p1, p2 and p3 are nodes
 *
 *  Equal vertices and edges are found by their coordinates, before any sign is
 *  computed; signs are left for edges of which neither is shared and whose
 *  boxes meet.  What the nodes leave of a border are chains, each of which is
 *  inside or outside of the other polygon as a whole.  Most leave the window,
 *  and so are outside.
 *
 *  This holds for polygons that are nice (oj_shape_is_nice()) and whose edges
 *  have no point in common but the vertex between one and the next (apart).
 *  Borders that meet in a vertex of one and inside an edge of the other are
 *  left to oj_shapes_relate(), unless there is a crossing, too.
 *
 *  Benchmark that pays for it: "lots x lots, touches" and the rows beside it in
 *  tests/bench/against.sh, 2.5 to 5 times as fast.
 *  Source: ours.
 */
#ifndef RELATE_SHARED_BORDERS_H
#define RELATE_SHARED_BORDERS_H

#include "../../foundations/relation/oj_matrix.h"
#include "../shapes/cpu_prepared_shapes.h"

#define OJ_BORDER_BOXES 8

/** Boxes of as many edges, or of as many groups of edges. */
struct oj_border_boxes
{
    double x0[OJ_BORDER_BOXES], y0[OJ_BORDER_BOXES];
    double x1[OJ_BORDER_BOXES], y1[OJ_BORDER_BOXES];
};

/** The edges of a polygon whose boxes meet a window, in the order of the rings.
 */
struct oj_border
{
    const struct oj_shape *shape;
    const double *x, *y; /**< of its first vertex */
    int64_t n, capacity, cap_state;
    int32_t *edge;  /**< [n] first vertex of each, counted within the shape */
    uint8_t *state; /**< [n] what is known of it */
    /** [(n + 7) / 8] their boxes, and of each eight of these one box in
     *  groups [(n + 63) / 64]. */
    struct oj_border_boxes *boxes, *groups;
    int64_t n_groups, cap_boxes, cap_groups; /**< 0 groups: of few edges */
    int64_t cap_near;
    int32_t *near;     /**< [n] places of edges near some other edge */
    int64_t left_ring; /**< the ring of which is_left is known, or -1 */
    int is_left;       /**< the interior is left of it */
};

/** How an edge of one border and an edge of the other may meet. */
struct oj_border_contact
{
    int32_t edge[2]; /**< places in the two borders */
    uint8_t kind;
};

/** Two polygons and what was found of them; one thread's own; zeroed memory is
 *  valid. */
struct oj_border_pair
{
    struct oj_border border[2];
    struct oj_box window;
    int is_complete; /**< 0: there are more contacts than are looked for */
    int64_t n_contacts, cap_contacts;
    struct oj_border_contact *contact;
};

/** 1 for polygons that the functions below take. */
static inline int oj_border_takes(const struct oj_shape *shape)
{
    return shape->kinds == OJ_PART_POLYGON && shape->n_vertices < INT32_MAX &&
           oj_box_is_safe(&shape->box);
}

/** *is: 1 when no two edges of the rings of shape have a point in common but
 *  the vertex between one and the next, and each ring is closed and without
 *  repeated vertices.  Of a single ring that makes it nice.  0 also when shape
 *  has more edges than are compared.  O(n) as a rule, with a small factor of
 *  n * n. */
OJ_MUST_USE oj_status oj_border_is_apart(const struct oj_shape *shape,
                                         struct oj_border *scratch, int *is,
                                         struct oj_error *err);

/** Lists the edges of both near the common window, and the pairs of edges whose
 *  boxes meet: scratch->n_contacts.  Polygons of any kind, valid or not; 0
 *  contacts: their borders have no point in common. O(n + m + contacts). */
OJ_MUST_USE oj_status oj_borders_find(const struct oj_shape *a,
                                      const struct oj_shape *b,
                                      struct oj_border_pair *scratch,
                                      struct oj_error *err);

/** Fills *matrix from what oj_borders_find() has found of two polygons that are
 *  nice and apart; 0: that does not decide it, and *matrix means nothing. */
int oj_borders_relate(struct oj_border_pair *found, struct oj_matrix *matrix);

void oj_border_free(struct oj_border *border);

void oj_border_pair_free(struct oj_border_pair *scratch);

#endif
