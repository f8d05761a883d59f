/** A figure is a feature decomposed for the DE-9IM matrix: edges, points and
 *  line ends, with an index of the edges by height. A node is a vertex, or a
 *  point in which edges cross. This file finds what surrounds a node in two
 *  figures.
 *
 *      bands over y     band 0: edges 2 5 7 | band 1: 2 3 | band 2: 3 4 9 ...
 *
 *  An edge is in every band that its y range intersects.  So all edges that
 *  contain a point, or that a ray from it towards +x crosses, are in the
 *  point's band.
 *
 *  Bands do not help where many edges are at one height. There the figure has
 *  a tree of edges instead (relate_edge_tree.h).
 *
 *  A group is a set of rings to which the even-odd rule is applied together. It
 *  holds the rings of a polygon part, or all rings of a topologically valid
 *  feature, for which the result is equal.
 */
#ifndef RELATE_FEATURE_EDGES_H
#define RELATE_FEATURE_EDGES_H

#include "../../foundations/relation/oj_matrix.h"
#include "../shapes/cpu_prepared_shapes.h"
#include "relate_edge_tree.h"

/** Returns 1 if the point (x, y) is left of the line from end a to end b of the
 * edge, -1 if right of it, 0 if on it. It is exact, even if products
 * underflow. */
int oj_edge_side(const struct oj_edge *e, double x, double y);

/** A point. */
struct oj_relate_point
{
    double x, y;
};

/** A list of points. Owner. */
struct oj_relate_points
{
    int64_t n, capacity;
    struct oj_relate_point *point; /**< [n] points */
};

/** A ring whose vertices are all equal. */
struct oj_dot
{
    struct oj_relate_point at;
    int32_t group;
};

/** Index of a feature's edges by bands of height (ranges of y). */
struct oj_bands
{
    int32_t n; /**< number of bands; 1: a single band with all edges, without
                    lists */
    double y0, per_unit;
    int64_t *first; /**< [n + 1] index in `edge` of each band's first entry */
    int32_t *edge;
    int64_t cap_first, cap_edge;
};

/** A decomposed feature. Owner; zeroed memory is a valid empty value; memory is
 * reused for the next feature. */
struct oj_figure
{
    const struct oj_flat *flat; /**< layer of the decomposed feature; NULL: none
                                     is decomposed */
    int64_t feature;
    const struct oj_shape *shape; /**< argument of the last
                                       oj_relate_figure_make() */
    int is_valid;  /**< 1: the feature is known to be topologically valid */
    int is_simple; /**< 1: is_valid is 1, and all parts are of one kind */
    struct oj_box box;
    int64_t n_edges, cap_edges;
    struct oj_edge *edge;
    struct oj_relate_points points; /**< isolated points, sorted and distinct */
    struct oj_relate_points ends;   /**< points in which an odd number of line
                                         ends meet (the boundary of lines),
                                         sorted */
    int64_t n_dots, cap_dots;
    struct oj_dot *dot; /**< [n_dots] rings of a single point, in groups with an
                             area */
    struct oj_bands bands;
    struct oj_edge_tree tree; /**< in place of the bands if tree.n > 0 */
    int64_t most_in_band;     /**< above this mean number of edges that an edge
                                   finds in its bands, the tree is made; 0: the
                                   default. Tests make trees of small figures */
    struct oj_edges_found near; /**< edges near another edge; scratch */
    int32_t n_groups;
    int has_flat; /**< 1: some edges are OJ_EDGE_FLAT */
    int64_t cap_encloses;
    uint8_t *encloses; /**< [n_groups] 0: the rings enclose no area, so their
                            edges are OJ_EDGE_FLAT. Only set if is_valid is 0 */
    /* The following members are about the current node. */
    int64_t cap_on, cap_mark, cap_used, cap_is_used;
    uint8_t *is_on; /**< [n_groups] 1: the group contains the node or, during
                         the sweep around the node, the current sector */
    int32_t *mark;  /**< [n_groups] scratch */
    int32_t n_used;
    int32_t *used;    /**< [n_used] groups whose is_on or mark may be set */
    uint8_t *is_used; /**< [n_groups] 1: the group is in `used` */
    struct oj_edges_found at_node; /**< scratch */
};

/** A ray: the direction in which an edge leaves a node. */
struct oj_ray
{
    const struct oj_edge *edge;
    int8_t sign; /**< 1: direction from a to b, -1: from b to a */
    /** Range of the direction (dx, dy), in the order of angles: 0: dy > 0; 1:
     * left, dy == 0; 2: dy < 0; 3: right, dy == 0. */
    int8_t quadrant;
    uint8_t figure; /**< figure that the edge belongs to, 0 or 1 */
};

/** The rays of a node. One struct per thread; zeroed memory is valid. */
struct oj_node_scratch
{
    int64_t n_rays, cap_rays;
    struct oj_ray *ray;
};

/** Decomposes shape into figure, unless figure already contains it. is_valid 1:
 * shape is known to be topologically valid (oj_shape_is_valid()). O(vertices).
 */
OJ_MUST_USE oj_status oj_relate_figure_make(struct oj_figure *figure,
                                            const struct oj_shape *shape,
                                            int is_valid,
                                            struct oj_node_scratch *scratch,
                                            struct oj_error *err);

/** Sets *is_valid to 1 if the shape is topologically valid, otherwise to 0.
 * Valid are points, lines with a length, and polygons in which no two edges
 * cross or overlap, holes are inside of their shells and of no other hole, and
 * no part is inside of another. Parts and rings may touch in points. In a valid
 * polygon the interior is on one side of every edge, and the even-odd rule over
 * all rings gives the union of the parts. A shape with parts of different kinds
 * counts as not valid. figure: scratch. Usually O(vertices). */
OJ_MUST_USE oj_status oj_shape_is_valid(const struct oj_shape *shape,
                                        struct oj_figure *figure,
                                        struct oj_node_scratch *scratch,
                                        int *is_valid, struct oj_error *err);

/** Locates a point in a simple figure. *location is OJ_ON_BOUNDARY if the point
 * is on a line or equals a point part. */
OJ_MUST_USE oj_status oj_relate_figure_locate(struct oj_figure *figure,
                                              double px, double py,
                                              struct oj_node_scratch *scratch,
                                              enum oj_location *location,
                                              struct oj_error *err);

/** Forgets the layer that figure refers to. Must be called before the layer is
 * freed. */
static inline void oj_relate_figure_forget_layer(struct oj_figure *figure)
{
    figure->flat = NULL;
}

/** Returns 1 if every polygon of the figure encloses an area. Precondition:
 * figure was made with is_valid 0. */
static inline int
oj_relate_figure_encloses_areas(const struct oj_figure *figure)
{
    return !figure->has_flat && figure->points.n == 0;
}

void oj_relate_figure_free(struct oj_figure *figure);

/** Returns 1 if the list, which must be sorted, contains the point. */
int oj_relate_points_contain(const struct oj_relate_points *points, double x,
                             double y);

/** Returns the band that contains height y. A greater y never has a lower
 *  band. */
static inline int32_t oj_relate_band_of(const struct oj_bands *bands, double y)
{
    double band = (y - bands->y0) * bands->per_unit;
    if (!(band > 0.0))
        return 0;
    return band >= (double)bands->n ? bands->n - 1 : (int32_t)band;
}

/** Returns the number of edges in a band. oj_relate_band_edge() returns the
 * index in f->edge of edge k of a band. */
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
 *
 *  Edges leave a node in rays, which are sorted by angle and separate sectors.
 *  The sweep begins with the sector that is counterclockwise of direction +x. A
 *  group contains this sector if a ray from the node, slightly above +x,
 * crosses an odd number of the group's edges that do not contain the node. When
 * the sweep passes a ring edge, its group enters or leaves the set of groups
 * that contain the sector.
 *
 *  Every piece of an edge begins and ends in a node, and every area that edges
 *  enclose is a sector of a node. So the nodes of two figures give the whole
 *  matrix.
 *
 *  All signs are exact. The crossing of two edges has no exact coordinates in
 *  doubles. Approximate coordinates with an error bound decide most signs, and
 *  exact integers (exact_integer.h) decide the rest.
 *
 *  Source: ours; nodes with sorted edges are usual in overlay algorithms.
 */

/** A node: a vertex with exact coordinates, or the crossing of two edges, with
 * approximate x and y and a bound of their error. */
struct oj_node
{
    double x, y, error;
    const struct oj_edge *cross[2]; /**< the two edges that cross; NULL: x and y
                                         are exact */
};

/** Returns the node in which two edges cross. Precondition: the edges have one
 * common point, which is an end of neither edge. */
struct oj_node oj_relate_node_of_crossing(const struct oj_edge *e,
                                          const struct oj_edge *f);

/** Adds to matrix the node and its surroundings in both figures: sectors and
 * rays. Sets *is_vertex to 1 if the node is an end of an edge. If the node is a
 * crossing of two edges and also an end of a third edge, adds nothing, because
 * the end is visited as a node of its own. */
OJ_MUST_USE oj_status oj_relate_node_add_to_matrix(
    struct oj_figure *a, struct oj_figure *b, const struct oj_node *node,
    struct oj_node_scratch *scratch, struct oj_matrix *matrix, int *is_vertex,
    struct oj_error *err);

void oj_relate_node_scratch_free(struct oj_node_scratch *scratch);

#endif
