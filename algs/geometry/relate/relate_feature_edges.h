/** A "figure": a feature decomposed for the DE-9IM matrix into edges, points
 *  and line ends, with an index of edges by height; and the analysis of two
 *  figures around a point (node).
 *
 *      bands over y     band 0: edges 2 5 7 | band 1: 2 3 | band 2: 3 4 9 ...
 *
 *  An edge is in every band that its y range touches, so all edges that contain
 *  a point, and all that a ray from it towards +x can cross, are in the point's
 *  band.
 *
 *  A group is a set of rings to which even-odd is applied together: a polygon
 *  part; or all parts of a nice feature, where this gives an equal result.
 */
#ifndef RELATE_FEATURE_EDGES_H
#define RELATE_FEATURE_EDGES_H

#include "../../foundations/relation/oj_matrix.h"
#include "../shapes/cpu_prepared_shapes.h"

enum oj_edge_kind
{
    OJ_EDGE_RING, /**< edge of a polygon */
    OJ_EDGE_LINE, /**< edge of a line */
    OJ_EDGE_FLAT  /**< edge of a polygon without area, which counts as a line */
};

/** An edge with two different ends. */
struct oj_edge
{
    double ax, ay, bx, by;
    int32_t group; /**< OJ_EDGE_RING and OJ_EDGE_FLAT: ordinal of the group */
    uint8_t kind;  /**< enum oj_edge_kind */
};

/** 1, -1 or 0: the point is left of the line from a to b, right of it, or on
 * it. Exact, also if products underflow. */
int oj_edge_side(const struct oj_edge *e, double x, double y);

struct oj_spot
{
    double x, y;
};

struct oj_spots
{
    int64_t n, capacity;
    struct oj_spot *spot; /**< [n] */
};

/** A ring whose vertices are all one point. */
struct oj_dot
{
    struct oj_spot at;
    int32_t group;
};

/** Index of a feature's edges by bands of height. */
struct oj_bands
{
    int32_t n; /**< 1: the only band has all edges, and the lists are empty */
    double y0, per_unit;
    int64_t *first; /**< [n + 1] start of each band in edge */
    int32_t *edge;
    int64_t cap_first, cap_edge;
};

/** Owner; zeroed memory is a valid empty one; its memory is reused. */
struct oj_figure
{
    const struct oj_flat *flat; /**< layer of the feature, or NULL */
    int64_t feature;
    const struct oj_shape *shape; /**< argument of the last
                                       oj_relate_figure_make() */
    int is_nice;
    int is_simple; /**< 1: nice, and all parts are of one kind */
    struct oj_box box;
    int64_t n_edges, cap_edges;
    struct oj_edge *edge;
    struct oj_spots spots; /**< points, sorted and distinct */
    struct oj_spots ends;  /**< points in which an odd number of line ends
                                meet, sorted */
    int64_t n_dots, cap_dots;
    struct oj_dot *dot; /**< one-point rings in groups that have area */
    struct oj_bands bands;
    int32_t n_groups;
    int has_flat; /**< 1: some edges are OJ_EDGE_FLAT */
    int64_t cap_encloses;
    uint8_t *encloses; /**< [n_groups] if not nice: 0: the group has no area,
                            its edges are flat */
    /* For the current node. */
    int64_t cap_on, cap_mark;
    uint8_t *is_on; /**< [n_groups] 1: the group contains it */
    int32_t *mark;  /**< [n_groups] scratch */
};

/** A direction in which an edge leaves the node. */
struct oj_ray
{
    const struct oj_edge *edge;
    int8_t sign;     /**< 1: direction from a to b, -1: from b to a */
    int8_t quadrant; /**< 0: up, 1: left, 2: down, 3: right */
    uint8_t figure;  /**< figure of the edge, 0 or 1 */
};

/** One per thread; zeroed memory is valid. */
struct oj_node_scratch
{
    int64_t n_rays, cap_rays;
    struct oj_ray *ray;
};

/** Decomposes shape, unless figure holds it already.  is_nice: the shape has
 * points, lines of some length, or polygons that oj_shape_is_nice() accepts.
 * O(vertices). */
OJ_MUST_USE oj_status oj_relate_figure_make(struct oj_figure *figure,
                                            const struct oj_shape *shape,
                                            int is_nice,
                                            struct oj_node_scratch *scratch,
                                            struct oj_error *err);

/** is_nice: 1 if shape has points, lines of some length, or polygons with these
 * properties: no two edges cross or overlap, holes are in their shells and in
 * no other hole, and no part is in another part. Then every edge has the
 * interior on one side, and even-odd over all rings is the union of the parts.
 * Parts and rings may touch in points.  figure: scratch. Usually O(vertices).
 */
OJ_MUST_USE oj_status oj_shape_is_nice(const struct oj_shape *shape,
                                       struct oj_figure *figure,
                                       struct oj_node_scratch *scratch,
                                       int *is_nice, struct oj_error *err);

/** Location of a point in a figure that is_simple; a point on a line or on a
 * point is on the boundary. */
enum oj_location oj_relate_figure_locate(const struct oj_figure *figure,
                                         double px, double py);

/** Drops the reference to a layer that is about to be freed. */
static inline void oj_relate_figure_forget(struct oj_figure *figure)
{
    figure->flat = NULL;
}

/** 1 if each polygon of a figure, made with is_nice 0, has area. */
static inline int oj_relate_figure_is_solid(const struct oj_figure *figure)
{
    return !figure->has_flat && figure->spots.n == 0;
}

void oj_relate_figure_free(struct oj_figure *figure);

/** 1 if the point is among the sorted spots. */
int oj_relate_spots_have(const struct oj_spots *spots, double x, double y);

/** The band of height y; monotone in y. */
static inline int32_t oj_relate_band_of(const struct oj_bands *bands, double y)
{
    double band = (y - bands->y0) * bands->per_unit;
    if (!(band > 0.0))
        return 0;
    return band >= (double)bands->n ? bands->n - 1 : (int32_t)band;
}

/** Number of edges in a band; oj_relate_band_edge() gives edge k of it. */
static inline int64_t oj_relate_band_size(const struct oj_figure *f,
                                          int32_t band)
{
    return f->bands.n == 1 ? f->n_edges
                           : f->bands.first[band + 1] - f->bands.first[band];
}

static inline int64_t oj_relate_band_edge(const struct oj_figure *f,
                                          int32_t band, int64_t k)
{
    return f->bands.n == 1 ? k : f->bands.edge[f->bands.first[band] + k];
}

/* --- nodes ----------------------------------------------------------------

 * The rays that leave the point are sorted by angle. The sector that follows
 * the direction of +x counterclockwise is where a ray cast from the point, a
 * little above it, would begin: a group holds it where that ray crosses an odd
 * number of the group's edges that do not contain the point.  From there each
 * edge of a ring that is passed changes what its group holds.
 *
 * Every piece of an edge begins and ends in such a point, and every area that
 * edges enclose is a sector of one: so the nodes of two figures together give
 * the matrix.  All signs are exact.
 *
 * A crossing of two edges has no doubles for coordinates. Doubles that are off
 * by a known bound decide most questions, and whole numbers of any size the
 * rest.
 * Source: ours; nodes and sorted edges around them as in every overlay. */

/** A point: given by exact coordinates, or as the crossing of two edges, with x
 * and y approximate to within error. */
struct oj_node
{
    double x, y, error;
    const struct oj_edge *cross[2]; /**< NULL: x and y are exact */
};

/** The node in which two edges cross. They must have one common point, which is
 * an end of neither. */
struct oj_node oj_relate_node_of_crossing(const struct oj_edge *e,
                                          const struct oj_edge *f);

/** Adds the surroundings of the node to matrix. *is_vertex: 1 if a crossing
 * coincides with an end of some edge; then nothing is added, because that end
 * is a node itself. */
OJ_MUST_USE oj_status oj_relate_node_relate(
    struct oj_figure *a, struct oj_figure *b, const struct oj_node *node,
    struct oj_node_scratch *scratch, struct oj_matrix *matrix, int *is_vertex,
    struct oj_error *err);

void oj_relate_node_scratch_free(struct oj_node_scratch *scratch);

#endif
