/** Computes the DE-9IM matrix of two polygons from their edges near the window
 *  (the intersection of their boxes). A fast path for polygons that share
 *  vertices and edges, as neighbours in a coverage do.
 *
 *      a: . . p1 p2 p3 . . .      p1 p2 and p2 p3 are edges of both (shared),
 *      b: . . p3 p2 p1 . . .      p1, p2 and p3 are nodes
 *
 *  Equal vertices and edges are found by their coordinates; signs are computed
 *  only for pairs of unshared edges whose boxes intersect.  Nodes cut a border
 *  into chains.  A chain is inside or outside of the other polygon as a whole;
 *  most chains leave the window, so they are outside.
 *
 *  Precondition: the polygons are topologically valid (oj_shape_is_valid()),
 *  and their edges touch only in the vertex between successive edges
 *  (oj_border_is_simple()). If a vertex of one border is inside an edge of the
 *  other and there is no crossing, the pair is left to oj_shapes_relate().
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

/** Boxes of OJ_BORDER_BOXES edges. On the second level: the boxes around
 * OJ_BORDER_BOXES structs of the first level. */
struct oj_border_boxes
{
    double x0[OJ_BORDER_BOXES], y0[OJ_BORDER_BOXES];
    double x1[OJ_BORDER_BOXES], y1[OJ_BORDER_BOXES];
};

/** The edges of a polygon whose boxes intersect a window, in the order of the
 * rings. */
struct oj_border
{
    const struct oj_shape *shape;
    const double *x, *y; /**< coordinates, starting at the shape's first vertex
                          */
    int64_t n, capacity, cap_state;
    int32_t *edge;  /**< [n] first vertex of each edge, as an offset from the
                         shape's first */
    uint8_t *state; /**< [n] state bits of each edge (enum edge_state) */
    /** Two levels of boxes. boxes [(n + 7) / 8]: eight edges each; groups [(n +
     * 63) / 64]: eight elements of `boxes` each. */
    struct oj_border_boxes *boxes, *groups;
    int64_t n_groups, cap_boxes, cap_groups; /**< n_groups 0: no second level,
                                                  because there are too few
                                                  edges */
    int64_t cap_near;
    int32_t *near;     /**< [n] scratch: indexes of edges near another edge */
    int64_t left_ring; /**< ring for which is_left was computed; -1: none */
    int is_left;       /**< 1: the interior is on the left of ring left_ring */
};

/** A pair of edges, one of each border, whose boxes intersect. */
struct oj_border_contact
{
    int32_t edge[2]; /**< [border] index of the edge in border[0] and in
                          border[1] */
    uint8_t kind;    /**< enum contact_kind (relate_shared_borders.c) */
};

/** Two polygons and the contacts of their borders. One struct per thread;
 * zeroed memory is valid. */
struct oj_border_pair
{
    struct oj_border border[2];
    struct oj_box window;
    int is_complete; /**< 0: the list lacks contacts, because there were too
                          many */
    int64_t n_contacts, cap_contacts;
    struct oj_border_contact *contact;
};

/** Returns 1 if this file can process the shape: a polygon that is not too
 *  large. */
static inline int oj_border_supports_shape(const struct oj_shape *shape)
{
    return shape->kinds == OJ_PART_POLYGON && shape->n_vertices < INT32_MAX &&
           oj_box_is_safe_for_grid(&shape->box);
}

/** Sets *is to 1 if each ring is closed and has no repeated vertices, and no
 * two edges have a common point except the vertex between successive edges;
 * otherwise to 0. (A single such ring is topologically valid.) Also sets 0 if
 * there are too many edges to compare. Usually O(n). */
OJ_MUST_USE oj_status oj_border_is_simple(const struct oj_shape *shape,
                                          struct oj_border *scratch, int *is,
                                          struct oj_error *err);

/** Lists in scratch the edges of both polygons near the common window, and the
 * pairs of edges whose boxes intersect (`contact`). For polygons of any kind,
 * valid or not. If is_complete is 1 and n_contacts is 0, the borders are
 * disjoint. O(n + m + contacts). */
OJ_MUST_USE oj_status oj_borders_find_contacts(const struct oj_shape *a,
                                               const struct oj_shape *b,
                                               struct oj_border_pair *scratch,
                                               struct oj_error *err);

/** Computes *matrix from the result of oj_borders_find_contacts().
 * Preconditions: both polygons are topologically valid, and
 * oj_border_is_simple() holds. Returns 0 if the contacts do not decide the
 * matrix, which is then undefined. */
int oj_borders_relate(struct oj_border_pair *found, struct oj_matrix *matrix);

void oj_border_free(struct oj_border *border);

void oj_border_pair_free(struct oj_border_pair *scratch);

#endif
