/** Features prepared for tests of pairs (shapes), a search for features by
 *  their boxes, and the test whether two shapes intersect.
 *
 *  A shape describes a feature: its range of vertices, its box and, if it has
 *  many edges, an edge grid (edge_grid.h).  A shape with parts of different
 *  kinds has members: a shape for each part.
 *
 *  A side is all shapes of a layer in spatial order, with a tree over their
 *  boxes. For a layer of single points it has, instead of shapes, the points in
 *  spatial order, with a tree over runs of points.
 */
#ifndef CPU_PREPARED_SHAPES_H
#define CPU_PREPARED_SHAPES_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/base/cpu_morton_order.h"
#include "../../foundations/base/cpu_packed_tree.h"
#include "../../foundations/base/oj_feature_box.h"
#include "../../foundations/kernels/oj_pair_verdict.h"
#include "../../foundations/kernels/oj_segment_intersection.h"
#include "../rings/edge_grid.h"

#include <stdatomic.h>

/** A feature, prepared for tests. The layer is borrowed. */
struct oj_shape
{
    struct oj_box box; /**< exact bounding box of the vertices, unlike the
                            widened boxes of oj_boxes; empty without parts */
    const struct oj_flat *flat;
    /** Edge grid of the shape, or NULL if none is made. If the shape belongs to
     * a side, the side owns the grid. */
    _Atomic(struct oj_edge_grid *) cells;
    const struct oj_shape *member; /**< [n_parts] one shape per part if parts
                                        are of different kinds; otherwise
                                        NULL */
    int64_t first_vertex, n_vertices;
    int64_t first_part; /**< unused for layers of single points */
    int32_t n_parts, n_rings;
    int32_t feature;
    uint8_t kinds; /**< enum oj_part_kind or'ed */
    /** 1: boxes of polygon parts intersect, or there are too many parts to
     * compare, so that the even-odd rule over all rings may not give the union
     * of the parts. */
    uint8_t may_overlap;
    _Atomic(uint8_t) n_asks; /**< number of tests for which an edge grid would
                                  have been useful, at most 255 */
};

/** Returns 1 if the parts of shape are of different kinds. */
static inline int oj_shape_is_mixed(const struct oj_shape *shape)
{
    return (shape->kinds & (shape->kinds - 1)) != 0;
}

/** Returns 1 for several polygons or a polygon with holes. The even-odd rule
 * over all their rings gives the interior only if the shape is topologically
 * valid. */
static inline int oj_shape_has_many_rings(const struct oj_shape *shape)
{
    return shape->kinds == OJ_PART_POLYGON && shape->n_rings > 1;
}

/** Returns the first vertex of part p of a shape, 0 <= p < n_parts. */
static inline int64_t oj_shape_part_start(const struct oj_shape *shape,
                                          int64_t p)
{
    const struct oj_flat *flat = shape->flat;
    return p == 0
               ? shape->first_vertex
               : flat->vertex_offset[flat->ring_offset[shape->first_part + p]];
}

/** Returns the first vertex of ring r of a shape, 0 <= r < n_rings; sets *n to
 * its number of vertices. */
static inline int64_t oj_shape_ring_vertices(const struct oj_shape *shape,
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

/** Points per tree leaf, for layers of single points. */
#define OJ_RUN_POINTS 32

/** All shapes of a layer. Owner; zeroed memory is a valid empty value. */
struct oj_shape_side
{
    const struct oj_flat *flat; /**< must outlive the side */
    int64_t n;                  /**< number of features with parts */
    struct oj_tree tree;

    struct oj_shape *shape;  /**< [n] in the order of the tree; NULL: a layer of
                                  single points */
    struct oj_shape *member; /**< members of all shapes with parts of different
                                  kinds */

    /** For a layer of single points: [n] in the order of the tree;
     * point[i].index is the feature. */
    struct oj_order points;
};

/** Result of a search, whose memory is reused for the next search. Owns `at`.
 */
struct oj_found
{
    int64_t n, capacity;
    int32_t *at; /**< [n] indexes of shapes (or points) of the side, ascending
                  */
};

/** Maximum number of nodes that wait in a search of the tree. */
#define OJ_SHAPE_NODES_WAITING (OJ_TREE_LEVELS * OJ_FANOUT)

/** A search for features by their boxes that lists its answer part by part. */
struct oj_shape_search
{
    enum oj_box_test test;
    struct oj_box box;
    /** The query in tree coordinates. A child passes if the lower corner of its
     * box is <= low and the upper corner is >= high, in x and in y. low and
     * high are rounded so that no child is lost. */
    struct oj_shape_box_query
    {
        float low_x, low_y, high_x, high_y;
    } query;
    int n_waiting;
    struct oj_shape_node
    {
        int32_t node; /* index of the node in its level */
        int32_t level;
    } waiting[OJ_SHAPE_NODES_WAITING];
};

/** Prepares all features of flat, with n_threads threads. O(vertices). */
OJ_MUST_USE oj_status oj_shape_side_build(struct oj_shape_side *side,
                                          const struct oj_flat *flat,
                                          int n_threads, struct oj_error *err);

/** Sets *found to the features whose exact boxes pass the test against *box. */
OJ_MUST_USE oj_status oj_shape_side_find(const struct oj_shape_side *side,
                                         enum oj_box_test test,
                                         const struct oj_box *box,
                                         struct oj_found *found,
                                         struct oj_error *err);

/** Starts a search for the features that oj_shape_side_find() would find;
 * oj_shape_search_next() lists them part by part. */
void oj_shape_search_start(const struct oj_shape_side *side,
                           enum oj_box_test test, const struct oj_box *box,
                           struct oj_shape_search *search);

/** Sets *found to the next features of a search: about `least` of them, or
 * fewer if these are the last; none at the end. min_rank: NULL, or for each
 * node of the tree the least tie rank of its features; then features in nodes
 * above most_rank are left out. */
OJ_MUST_USE oj_status oj_shape_search_next(
    const struct oj_shape_side *side, struct oj_shape_search *search,
    int64_t least, const int32_t *min_rank, int64_t most_rank,
    struct oj_found *found, struct oj_error *err);

/** Sets *min_rank to the least tie rank of the features of each node of the
 * tree; tie_rank NULL: the ordinal is the rank. The caller frees *min_rank. */
OJ_MUST_USE oj_status oj_shape_side_min_ranks(const struct oj_shape_side *side,
                                              const int32_t *tie_rank,
                                              int32_t **min_rank,
                                              struct oj_error *err);

/** Minimum number of vertices of a shape with an edge grid (member `cells`).
 * OJ_CELLS_FEW_VERTICES applies to shapes that are tested very often. */
#define OJ_CELLS_VERTICES 24
#define OJ_CELLS_FEW_VERTICES 12

/** Returns 1 if an edge grid is possible for the shape and the shape has at
 * least `least` vertices. */
static inline int oj_shape_can_have_edge_grid(const struct oj_shape *shape,
                                              int64_t least)
{
    return shape->n_vertices >= least &&
           shape->n_vertices <= OJ_EDGE_GRID_VERTICES &&
           !oj_shape_is_mixed(shape) && oj_box_is_safe_for_grid(&shape->box);
}

/** Makes the edge grid of a shape. Precondition: oj_shape_can_have_edge_grid().
 * Frees the earlier contents of *cells, which may be zeroed memory. */
OJ_MUST_USE oj_status oj_shape_make_edge_grid(const struct oj_shape *shape,
                                              struct oj_edge_grid *cells,
                                              struct oj_error *err);

/** Number of tests of a shape before an edge grid is made for it. */
#define OJ_ASKS_BEFORE_CELLS 3

/** Counts a test of the shape at index `at` of the side, which has no edge grid
 * yet and is compared with a shape of n_vertices. Makes the grid if the shape
 * has at least OJ_CELLS_VERTICES vertices and has been tested n_asks times (at
 * most 255) before, or at once if both shapes have 32 vertices or more.
 * Thread-safe. */
OJ_MUST_USE oj_status oj_shape_side_make_grid_if_useful(
    struct oj_shape_side *side, int64_t at, int64_t n_vertices, uint8_t n_asks,
    struct oj_error *err);

/** Returns the feature at position `at` of a side. */
static inline int32_t oj_shape_side_feature(const struct oj_shape_side *side,
                                            int64_t at)
{
    return side->shape != NULL ? side->shape[at].feature
                               : (int32_t)side->points.point[at].index;
}

int64_t oj_shape_side_bytes(const struct oj_shape_side *side);

void oj_shape_side_free(struct oj_shape_side *side);

/** Makes the shape of a feature, without members and without edge grid. */
struct oj_shape oj_shape_of(const struct oj_flat *flat, int64_t feature);

/** Makes the shape of the point at position `at`, for a side of single points.
 */
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

/** Makes the members of a shape: fills member [n_parts] with a shape for each
 * part. */
void oj_shape_set_members(struct oj_shape *shape, struct oj_shape *member);

/* --- intersection of two shapes -------------------------------------------
 *
 *  Exact tests of the vertices and edges that lie in the boxes of both shapes.
 *  Where a shape has an edge grid (edge_grid.h), only edges in the cells
 *  concerned are tested, by exact orientation
 *  (kernels/oj_segment_intersection.h). Source: ours.
 */

/** Locates p in a shape whose parts are of one kind. OJ_ON_BOUNDARY if p is on
 * a line or equals a point. Polygons use the even-odd rule over all rings,
 * which is only right if may_overlap is 0 or the shape is topologically valid.
 */
enum oj_location oj_shape_locate(const struct oj_shape *shape, double px,
                                 double py);

/** Returns the strongest contact between edges of a and of b: crossing,
 * touching or none. Stops the search at a contact of at least `enough`. Each
 * shape must have parts of one kind. */
enum oj_contact oj_shapes_contact(const struct oj_shape *a,
                                  const struct oj_shape *b,
                                  enum oj_contact enough);

/** Returns the edge grid of the shape, or NULL. */
static inline const struct oj_edge_grid *
oj_shape_edge_grid(const struct oj_shape *shape)
{
    const struct oj_edge_grid *cells =
        atomic_load_explicit(&shape->cells, memory_order_acquire);
    return cells != NULL && cells->n_words > 0 ? cells : NULL;
}

/** Returns the location of a box in a polygon, by the polygon's edge grid:
 * OJ_INSIDE or OJ_OUTSIDE if no edges are in the grid cells that the box
 * intersects. Otherwise, or if cells is NULL, returns OJ_ON_BOUNDARY.
 * Precondition: the box intersects the polygon's box. */
static inline enum oj_location
oj_shape_grid_locate_box(const struct oj_edge_grid *cells,
                         const struct oj_shape *polygon,
                         const struct oj_box *box)
{
    int known = cells == NULL ? -1
                              : oj_edge_grid_box_location(
                                    cells, box->x0, box->y0, box->x1, box->y1);
    return known == OJ_OUTSIDE ||
                   (known == OJ_INSIDE && oj_box_covers(&polygon->box, box))
               ? (enum oj_location)known
               : OJ_ON_BOUNDARY;
}

/** Returns 1 if a and b have a common point; their parts may be of any kinds. A
 * result of 0 is only right if the shapes in the set *rests_on (0: none, 1: a,
 * 2: b, 3: both) are topologically valid. These are polygons of several
 * rings. */
int oj_shapes_intersect(const struct oj_shape *a, const struct oj_shape *b,
                        unsigned *rests_on);

#endif
