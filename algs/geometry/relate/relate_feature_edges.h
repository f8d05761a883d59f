/** A feature taken apart for the question how it relates to another one: its
 *  edges, the points and line ends that matter, and which edges are at the
 *  height of a point; and what two figures look like around one point.
 *
 *      bands over y     band 0: edges 2 5 7 | band 1: 2 3 | band 2: 3 4 9 ...
 *
 *  An edge is in every band that its y range touches, so all edges that contain
 *  a point, and all that a ray from it towards +x can cross, are in the point's
 *  band.
 *
 *  A group is what even-odd counts together: a polygon part; or all parts of a
 *  feature of which it is known that no two edges cross or run along each other
 *  (is_nice), since that comes to the same there.
 */
#ifndef RELATE_FEATURE_EDGES_H
#define RELATE_FEATURE_EDGES_H

#include "../../foundations/relation/oj_matrix.h"
#include "../shapes/cpu_prepared_shapes.h"

enum oj_edge_kind
{
    OJ_EDGE_RING, /**< of a polygon */
    OJ_EDGE_LINE, /**< of a line */
    OJ_EDGE_FLAT  /**< of a polygon whose rings enclose nothing: a line */
};

/** Its ends differ. */
struct oj_edge
{
    double ax, ay, bx, by;
    int32_t group; /**< rings, flat ones: ordinal of the group */
    uint8_t kind;  /**< enum oj_edge_kind */
};

/** 1: the point is left of the line of e, seen from a, -1: right, 0: on it.
 *  Exact, also where products underflow. */
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

/** A ring of one point. */
struct oj_dot
{
    struct oj_spot at;
    int32_t group;
};

/** Edges of one feature in which bands. */
struct oj_bands
{
    int32_t n; /**< 1: all edges are in it, and nothing is listed */
    double y0, per_unit;
    int64_t *first; /**< [n + 1] into edge */
    int32_t *edge;
    int64_t cap_first, cap_edge;
};

/** Owner; zeroed memory is a valid empty one, its memory is used again. */
struct oj_figure
{
    const struct oj_flat *flat; /**< what it was made of, or NULL */
    int64_t feature;
    const struct oj_shape *shape; /**< of the last oj_relate_figure_make() */
    int is_nice;
    int is_simple; /**< 1: nice, and all of one kind */
    struct oj_box box;
    int64_t n_edges, cap_edges;
    struct oj_edge *edge;
    struct oj_spots spots; /**< points, sorted and distinct */
    struct oj_spots ends;  /**< where an odd number of line ends meet, sorted */
    int64_t n_dots, cap_dots;
    struct oj_dot *dot; /**< of groups that enclose something */
    struct oj_bands bands;
    int32_t n_groups;
    int has_flat; /**< some edges are OJ_EDGE_FLAT */
    int64_t cap_encloses;
    uint8_t *encloses; /**< [n_groups] not nice: 0: its edges are flat */
    /* of the point that is looked at */
    int64_t cap_on, cap_mark;
    uint8_t *is_on; /**< [n_groups] the group holds it */
    int32_t *mark;  /**< [n_groups] scratch */
};

/** A direction in which an edge leaves the node. */
struct oj_ray
{
    const struct oj_edge *edge;
    int8_t sign;     /**< 1: from a to b */
    int8_t quadrant; /**< 0: up, 1: -x, 2: down, 3: +x */
    uint8_t figure;  /**< 0 or 1 */
};

/** One thread's own; zeroed memory is valid. */
struct oj_node_scratch
{
    int64_t n_rays, cap_rays;
    struct oj_ray *ray;
};

/** Takes shape apart; what figure holds already is kept.  is_nice: the shape is
 *  of points, of lines of some length, or a polygon of which oj_shape_is_nice()
 *  is known.  O(vertices). */
OJ_MUST_USE oj_status oj_relate_figure_make(struct oj_figure *figure,
                                            const struct oj_shape *shape,
                                            int is_nice,
                                            struct oj_node_scratch *scratch,
                                            struct oj_error *err);

/** *is_nice: 1 when shape is of points, of lines of some length, or of polygons
 *  no two edges of which cross or run along each other, whose holes lie in
 * their shells and in no other hole, and none of whose parts lies in another:
 * then all edges have the interior on one side, and even-odd over all rings is
 * the union of the parts.  Parts and rings may touch in points.  figure:
 * scratch. O(vertices) as a rule. */
OJ_MUST_USE oj_status oj_shape_is_nice(const struct oj_shape *shape,
                                       struct oj_figure *figure,
                                       struct oj_node_scratch *scratch,
                                       int *is_nice, struct oj_error *err);

/** Where a point is in a figure that is_simple: on the boundary also on a line
 *  or a point. */
enum oj_location oj_relate_figure_locate(const struct oj_figure *figure,
                                         double px, double py);

/** What figure was made of is no longer there. */
static inline void oj_relate_figure_forget(struct oj_figure *figure)
{
    figure->flat = NULL;
}

/** 1 when each polygon of a figure that was made as one that is not nice
 *  encloses something. */
static inline int oj_relate_figure_is_solid(const struct oj_figure *figure)
{
    return !figure->has_flat && figure->spots.n == 0;
}

void oj_relate_figure_free(struct oj_figure *figure);

/** 1 when the point is among sorted spots. */
int oj_relate_spots_have(const struct oj_spots *spots, double x, double y);

/** The band of a height; never decreases with it. */
static inline int32_t oj_relate_band_of(const struct oj_bands *bands, double y)
{
    double band = (y - bands->y0) * bands->per_unit;
    if (!(band > 0.0))
        return 0;
    return band >= (double)bands->n ? bands->n - 1 : (int32_t)band;
}

/** Edges of a band: number k of them is oj_relate_band_edge(). */
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

/** A point: given by its coordinates, or as the one in which two edges cross,
 *  of which x and y are off by less than error. */
struct oj_node
{
    double x, y, error;
    const struct oj_edge *cross[2]; /**< NULL: x and y are exact */
};

/** The node in which two edges cross that have one point in common, which is
 *  an end of neither. */
struct oj_node oj_relate_node_of_crossing(const struct oj_edge *e,
                                          const struct oj_edge *f);

/** Adds to matrix what lies around the node. *is_vertex: 1 when a crossing is
 *  an end of some edge; nothing is added then, as it is a node of its own. */
OJ_MUST_USE oj_status oj_relate_node_relate(
    struct oj_figure *a, struct oj_figure *b, const struct oj_node *node,
    struct oj_node_scratch *scratch, struct oj_matrix *matrix, int *is_vertex,
    struct oj_error *err);

void oj_relate_node_scratch_free(struct oj_node_scratch *scratch);

#endif
