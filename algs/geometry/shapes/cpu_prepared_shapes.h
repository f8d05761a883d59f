/** The features of a side, each prepared for questions about pairs, the
 * features of the join side near a box, and whether two of them meet.
 *
 *  shape    a feature: where its vertices are, its box, and, when it has many
 *           edges, cells that know which edges touch them (edge_grid.h).  One
 *           of parts of different kinds has members, shapes of one part each;
 *           all others are of one kind, all parts together
 *  side     the shapes of a layer in an order that keeps neighbours together,
 *           and a tree over their boxes; a layer of single points has no shapes
 *           but its coordinates in that order, and a tree over runs of them
 */
#ifndef CPU_PREPARED_SHAPES_H
#define CPU_PREPARED_SHAPES_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/base/cpu_spatial_order.h"
#include "../../foundations/base/cpu_tree.h"
#include "../../foundations/base/oj_feature_box.h"
#include "../../foundations/kernels/oj_pair_verdict.h"
#include "../../foundations/kernels/oj_segment_intersection.h"
#include "../rings/edge_grid.h"

#include <stdatomic.h>

/** A view of a feature. */
struct oj_shape
{
    struct oj_box box; /**< exact; empty: no parts */
    const struct oj_flat *flat;
    /** NULL: none, or not yet; of a side: owned by it */
    _Atomic(struct oj_edge_grid *) cells;
    const struct oj_shape *member; /**< [n_parts] of mixed kinds, or NULL */
    int64_t first_vertex, n_vertices;
    int64_t first_part; /**< nothing in the short form */
    int32_t n_parts, n_rings;
    int32_t feature;
    uint8_t kinds; /**< enum oj_part_kind or'ed */
    /** Polygon parts whose boxes meet: what several of them hold may not be
     * what even-odd over all their rings says. */
    uint8_t may_overlap;
    _Atomic(uint8_t) n_asks; /**< how often cells were missed */
};

/** 1 when the parts of shape are of different kinds. */
static inline int oj_shape_is_mixed(const struct oj_shape *shape)
{
    return (shape->kinds & (shape->kinds - 1)) != 0;
}

/** 1 for polygons with holes and for several polygons: that even-odd over all
 *  rings is their inside takes that they are nice. */
static inline int oj_shape_is_many_rings(const struct oj_shape *shape)
{
    return shape->kinds == OJ_PART_POLYGON && shape->n_rings > 1;
}

/** First vertex of part p (0 <= p < n_parts) of shape. */
static inline int64_t oj_shape_part_start(const struct oj_shape *shape,
                                          int64_t p)
{
    const struct oj_flat *flat = shape->flat;
    return p == 0
               ? shape->first_vertex
               : flat->vertex_offset[flat->ring_offset[shape->first_part + p]];
}

/** First vertex of ring r (0 <= r < n_rings) of shape, and how many. */
static inline int64_t oj_shape_ring_start(const struct oj_shape *shape,
                                          int64_t r, int64_t *n)
{
    const int64_t *offset;
    if (shape->n_rings == 1)
    {
        *n = shape->n_vertices;
        return shape->first_vertex;
    }
    offset = shape->flat->vertex_offset +
             shape->flat->ring_offset[shape->first_part] + r;
    *n = offset[1] - offset[0];
    return offset[0];
}

/** Points a leaf of a side of single points has. */
#define OJ_RUN_POINTS 32

/** Owner; zeroed memory is a valid empty one. */
struct oj_shape_side
{
    const struct oj_flat *flat; /**< outlives this */
    int64_t n;                  /**< features that have parts */
    struct oj_tree tree;

    struct oj_shape *shape;  /**< [n] in tree order; NULL: single points */
    struct oj_shape *member; /**< those of mixed shapes */

    /** Single points: [n] in tree order, point[i].index is the feature. */
    struct oj_order points;
};

/** What was found; owner of at, reused from box to box. */
struct oj_found
{
    int64_t n, capacity;
    int32_t *at; /**< [n] places in the side, ascending */
};

/** Prepares the features of flat. O(vertices), on n_threads. */
OJ_MUST_USE oj_status oj_shape_side_build(struct oj_shape_side *side,
                                          const struct oj_flat *flat,
                                          int n_threads, struct oj_error *err);

/** Finds the features whose exact box passes test against *box. */
OJ_MUST_USE oj_status oj_shape_side_find(const struct oj_shape_side *side,
                                         enum oj_box_test test,
                                         const struct oj_box *box,
                                         struct oj_found *found,
                                         struct oj_error *err);

/** Shapes with fewer vertices are as fast without cells, unless they are asked
 *  very often; and with fewer than few always. */
#define OJ_CELLS_VERTICES 24
#define OJ_CELLS_FEW_VERTICES 12

/** 1 when shape may have cells if it has least vertices. */
static inline int oj_shape_takes_cells(const struct oj_shape *shape,
                                       int64_t least)
{
    return shape->n_vertices >= least &&
           shape->n_vertices <= OJ_EDGE_GRID_VERTICES &&
           !oj_shape_is_mixed(shape) && oj_box_is_safe(&shape->box);
}

/** Makes cells of shape, which takes them; cells may hold earlier ones. */
OJ_MUST_USE oj_status oj_shape_make_cells(const struct oj_shape *shape,
                                          struct oj_edge_grid *cells,
                                          struct oj_error *err);

/** How often a shape is asked before it gets cells. */
#define OJ_ASKS_BEFORE_CELLS 3

/** Gives the shape in place at, which has none, cells when that pays: when it
 * has many vertices and was asked n_asks times (at most 255), or is about to be
 * compared with another shape of many vertices (n_vertices) that has none
 * itself. Any thread may ask for any shape at any time. */
OJ_MUST_USE oj_status oj_shape_side_want_cells(struct oj_shape_side *side,
                                               int64_t at, int64_t n_vertices,
                                               uint8_t n_asks,
                                               struct oj_error *err);

/** The feature in place at. */
static inline int32_t oj_shape_side_feature(const struct oj_shape_side *side,
                                            int64_t at)
{
    return side->shape != NULL ? side->shape[at].feature
                               : (int32_t)side->points.point[at].index;
}

int64_t oj_shape_side_bytes(const struct oj_shape_side *side);

void oj_shape_side_free(struct oj_shape_side *side);

/** The shape of a feature, without members and cells. */
struct oj_shape oj_shape_of(const struct oj_flat *flat, int64_t feature);

/** The single point in place at of a side of single points. */
static inline struct oj_shape
oj_shape_side_point(const struct oj_shape_side *side, int64_t at)
{
    const struct oj_ordered_point *p = &side->points.point[at];
    struct oj_shape shape = {.box = {p->x, p->y, p->x, p->y},
                             .flat = side->flat,
                             .first_vertex = p->index,
                             .n_vertices = 1,
                             .n_parts = 1,
                             .n_rings = 1,
                             .feature = (int32_t)p->index,
                             .kinds = OJ_PART_POINT};
    return shape;
}

/** Fills the members of *shape, one a part, into member. */
void oj_shape_set_members(struct oj_shape *shape, struct oj_shape *member);

/* --- whether two shapes meet ------------------------------------------------

 * Exact tests of vertices and edges, only where the boxes of both are: cells
 * before edges (edge_grid.h), edges by exact orientation
 (kernels/oj_segment_intersection.h).
 * Source: ours. */

/** Where p is: in a polygon by even-odd over all rings, which is right for what
 *  may_overlap only if that is nice; OJ_ON_BOUNDARY on a line or a point. For
 *  shapes of one kind. */
enum oj_location oj_shape_locate(const struct oj_shape *shape, double px,
                                 double py);

/** The closest contact of an edge of a with an edge of b: crossing before
 *  touching before none.  Looks no further once it has found one that is at
 *  least enough.  For shapes of one kind each. */
enum oj_contact oj_shapes_contact(const struct oj_shape *a,
                                  const struct oj_shape *b,
                                  enum oj_contact enough);

/** The cells of shape, or NULL. */
static inline const struct oj_edge_grid *
oj_shape_cells(const struct oj_shape *shape)
{
    const struct oj_edge_grid *cells =
        atomic_load_explicit(&shape->cells, memory_order_acquire);
    return cells != NULL && cells->n_words > 0 ? cells : NULL;
}

/** Where a box, which meets that of polygon, lies in it: OJ_INSIDE or
 * OJ_OUTSIDE when all of it does, seen from the polygon's cells alone; else
 *  OJ_ON_BOUNDARY.  cells: NULL: none. */
static inline enum oj_location
oj_cells_locate_box(const struct oj_edge_grid *cells,
                    const struct oj_shape *polygon, const struct oj_box *box)
{
    int known = cells == NULL ? -1
                              : oj_edge_grid_known_box(cells, box->x0, box->y0,
                                                       box->x1, box->y1);
    return known == OJ_OUTSIDE ||
                   (known == OJ_INSIDE && oj_box_covers(&polygon->box, box))
               ? (enum oj_location)known
               : OJ_ON_BOUNDARY;
}

/** 1 when a and b have a point in common: of any kinds, collections by their
 *  members. *rests_on: 1 and 2, or'ed, where 0 holds only if a or b is nice
 *  (oj_shape_is_nice()): polygons of several rings. */
int oj_shapes_meet(const struct oj_shape *a, const struct oj_shape *b,
                   unsigned *rests_on);

#endif
