/** Features prepared for tests of pairs (shapes), search of the features whose
 *  boxes pass a test, and the test whether two shapes intersect.
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

/** A prepared feature; borrows the layer. */
struct oj_shape
{
    struct oj_box box; /**< exact; empty if there are no parts */
    const struct oj_flat *flat;
    /** Cells, or NULL: none (yet). Those of a side's shapes are owned by the
     * side. */
    _Atomic(struct oj_edge_grid *) cells;
    const struct oj_shape *member; /**< [n_parts] one shape per part if kinds
                                        are mixed, else NULL */
    int64_t first_vertex, n_vertices;
    int64_t first_part; /**< unused for the short form (points) */
    int32_t n_parts, n_rings;
    int32_t feature;
    uint8_t kinds; /**< enum oj_part_kind or'ed */
    /** 1: boxes of polygon parts intersect, so that even-odd over all rings may
     * differ from the union of the parts. */
    uint8_t may_overlap;
    _Atomic(uint8_t) n_asks; /**< number of times that cells were wanted */
};

/** 1 if the parts of shape are of different kinds. */
static inline int oj_shape_is_mixed(const struct oj_shape *shape)
{
    return (shape->kinds & (shape->kinds - 1)) != 0;
}

/** 1 for polygons with holes and for several polygons: their interior is
 * even-odd over all rings only if they are nice. */
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

/** First vertex of ring r (0 <= r < n_rings) of shape; *n: its number of
 * vertices. */
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

/** Points per leaf, for a side of single points. */
#define OJ_RUN_POINTS 32

/** Owner; zeroed memory is a valid empty one. */
struct oj_shape_side
{
    const struct oj_flat *flat; /**< outlives this */
    int64_t n;                  /**< number of features that have parts */
    struct oj_tree tree;

    struct oj_shape *shape;  /**< [n] in tree order; NULL: single points */
    struct oj_shape *member; /**< members of mixed shapes */

    /** Single points: [n] in tree order; point[i].index is the feature. */
    struct oj_order points;
};

/** Result of a search; owner of at, reused for all boxes. */
struct oj_found
{
    int64_t n, capacity;
    int32_t *at; /**< [n] positions in the side, ascending */
};

/** Prepares the features of flat. O(vertices), on n_threads. */
OJ_MUST_USE oj_status oj_shape_side_build(struct oj_shape_side *side,
                                          const struct oj_flat *flat,
                                          int n_threads, struct oj_error *err);

/** Finds the features whose exact boxes pass the test against *box. */
OJ_MUST_USE oj_status oj_shape_side_find(const struct oj_shape_side *side,
                                         enum oj_box_test test,
                                         const struct oj_box *box,
                                         struct oj_found *found,
                                         struct oj_error *err);

/** Below OJ_CELLS_VERTICES vertices, cells pay only for shapes that are tested
 * very often; below OJ_CELLS_FEW_VERTICES never. */
#define OJ_CELLS_VERTICES 24
#define OJ_CELLS_FEW_VERTICES 12

/** 1 if shape may have cells, and has at least `least` vertices. */
static inline int oj_shape_takes_cells(const struct oj_shape *shape,
                                       int64_t least)
{
    return shape->n_vertices >= least &&
           shape->n_vertices <= OJ_EDGE_GRID_VERTICES &&
           !oj_shape_is_mixed(shape) && oj_box_is_safe(&shape->box);
}

/** Makes cells of a shape that may have them; replaces earlier contents of
 * cells. */
OJ_MUST_USE oj_status oj_shape_make_cells(const struct oj_shape *shape,
                                          struct oj_edge_grid *cells,
                                          struct oj_error *err);

/** Number of tests of a shape after which it gets cells. */
#define OJ_ASKS_BEFORE_CELLS 3

/** Makes cells for shape number `at`, which has none, if they pay: the shape
 * has many vertices and was tested n_asks times (at most 255), or is about to
 * be compared with a shape without cells of many vertices (n_vertices).
 * Thread-safe. */
OJ_MUST_USE oj_status oj_shape_side_want_cells(struct oj_shape_side *side,
                                               int64_t at, int64_t n_vertices,
                                               uint8_t n_asks,
                                               struct oj_error *err);

/** The feature at position `at` of the side. */
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

/** The single point at position `at` of a side of single points. */
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

/** Fills the members of *shape, one per part, into member. */
void oj_shape_set_members(struct oj_shape *shape, struct oj_shape *member);

/* --- whether two shapes meet ------------------------------------------------

 * Exact tests of vertices and edges, only where the boxes of both are: cells
 * before edges (edge_grid.h), edges by exact orientation
 (kernels/oj_segment_intersection.h).
 * Source: ours. */

/** Location of p; a point on a line or on a point is OJ_ON_BOUNDARY. Polygons
 * by even-odd over all rings, which is right for shapes with may_overlap only
 * if they are nice.  For shapes of one kind. */
enum oj_location oj_shape_locate(const struct oj_shape *shape, double px,
                                 double py);

/** The strongest contact of an edge of a with an edge of b: crossing, touching
 * or none.  Stops at a contact of at least `enough`.  For shapes of one kind
 * each. */
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

/** Location of a box, which intersects the box of polygon: OJ_INSIDE or
 * OJ_OUTSIDE if cells without edges show it for the whole box; otherwise
 * OJ_ON_BOUNDARY, also if cells is NULL. */
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

/** 1 if a and b have a point in common; any kinds, also mixed ones. *rests_on:
 * for a result of 0, bit 1 (bit 2) is set if it is only right if a (b) is nice
 * (oj_shape_is_nice()), as for polygons of several rings. */
int oj_shapes_meet(const struct oj_shape *a, const struct oj_shape *b,
                   unsigned *rests_on);

#endif
