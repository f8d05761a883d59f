/** One side of a join on the sphere: unit vectors of all vertices, and trees
 *  of 3D boxes over the edges.  Or one side of a join on an ellipsoid: vectors
 *  of its points (oj_ellipsoid.h), and such trees.
 *
 *  Coordinates: x is longitude, y latitude, in degrees. Longitudes are taken
 *  modulo 360. A feature with a latitude beyond 90 has no pairs. Edges are the
 *  shorter great-circle arcs.
 *
 *  The inside of a ring, whatever its orientation, is the side that does not
 *  contain the antipode of the mean of its vertices: for rings within a
 *  hemisphere, the smaller side. A polygon contains a point that is inside an
 *  odd number of its rings, as in the plane.
 *
 *  On an ellipsoid edges are geodesics, long ones cut into pieces
 *  (ellipsoid_cut_edges.h). Their boxes contain all points within 3 h of their
 *  chords (h, r: oj_ellipsoid.h). Whether a point is in a ring is first decided
 *  by plane sections in place of the edges. This is right except for points in
 *  a lens, which is the region between an edge and its plane section; a search
 *  of the boxes around the point finds the edges whose lens may contain it. The
 *  cap of a ring is the disc of all points within the greatest distance d of
 *  its vertices from a centre. If d is less than pi r / 2, the disc is convex
 *  (Cheeger and Ebin, Comparison theorems, 5.14; the Gaussian curvature is at
 *  most 1 / r^2, so the injectivity radius is at least pi r), which makes it
 *  contain the edges, and the inside of the ring, too. For a ring with a
 *  greater d, only plane sections decide on which side the antipode of the mean
 *  is: it must not lie in a lens, which is at most 3 m wide. */
#ifndef CPU_SPHERE_SIDE_H
#define CPU_SPHERE_SIDE_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/base/cpu_box_levels.h"
#include "../../foundations/kernels/oj_ellipsoid.h"
#include "../../foundations/relation/oj_relation.h"
#include "ellipsoid_cut_edges.h"

struct oj_box3
{
    double low[3], high[3]; /**< the box is empty if low > high */
};

/** A packed tree of 3D boxes; level 0 has the boxes of the entries. Owns node.
 */
struct oj_tree3
{
    struct oj_box_levels levels;
    struct oj_box3 *node;
};

/** A spherical cap that contains a polygon ring, and a point outside of the
 * ring. */
struct oj_cap
{
    struct oj_vec3 centre;    /**< centre of the cap */
    double chord2;            /**< radius as a squared chord: points farther
                                   from the centre are outside of the ring;
                                   INFINITY: the cap is a hemisphere or more */
    struct oj_vec3 reference; /**< a point outside of the ring */
};

/** A prepared side. Owner; zeroed memory is a valid empty one. */
struct oj_sphere_side
{
    const struct oj_flat *flat; /**< the layer, which must outlive the side, or
                                     cut->flat */
    struct oj_cut_edges *cut;   /**< owner of flat if edges were cut, or NULL */
    struct oj_vec3 *at;         /**< [n_vertices] unit vectors, or vectors of
                                     the ellipsoid */
    struct oj_box3 *box;        /**< [n_features] boxes that contain the
                                     interiors of polygons, too; empty for
                                     features without pairs */
    /* Set if the side is built with edges and is no layer of single points. */
    struct oj_box3 *ring_box; /**< [n_rings] boxes of the edges */
    struct oj_cap *cap;       /**< [n_rings] caps of polygon rings; NULL if
                                   interiors are not needed */
    int32_t *tree_of;         /**< [n_rings] index in `tree`, or -1 for a ring
                                   of few edges, which has no tree */
    int64_t n_trees;
    struct oj_tree3 *tree; /**< a tree over the edges of a ring: its entry i has
                                the eight edges from the ring's vertex 8 i on */
};

/** Prepares a side: on the unit sphere if ellipsoid is NULL. geodesic belongs
 * to the ellipsoid and serves to cut edges; it may be NULL if all features are
 * points. With with_edges 0 only vertices are prepared, as input points need.
 * With with_interiors 0 polygons are only their rings. */
OJ_MUST_USE oj_status oj_sphere_side_build(struct oj_sphere_side *side,
                                           const struct oj_flat *flat,
                                           const struct oj_ellipsoid *ellipsoid,
                                           const struct oj_geodesic *geodesic,
                                           int with_edges, int with_interiors,
                                           int n_threads, struct oj_error *err);

void oj_sphere_side_free(struct oj_sphere_side *side);

int64_t oj_sphere_side_bytes(const struct oj_sphere_side *side);

/** The nearest point of a feature to a given point, as an edge or vertex. */
struct oj_sphere_place
{
    double chord2;  /**< squared chord to this point; INFINITY if no point of
                         the feature is within the limit */
    int64_t vertex; /**< start vertex of the nearest edge, or the nearest point
                         part; at equal distances the first one. -1 if the given
                         point is inside of the feature */
};

/** Returns the edge of a feature that is nearest to p; the distance is 0 if p
 * is inside of a polygon. Edges beyond limit2, a squared chord, are not found;
 * the point of a layer of single points always is. */
struct oj_sphere_place oj_sphere_nearest_edge(const struct oj_sphere_side *side,
                                              int64_t feature, struct oj_vec3 p,
                                              double limit2);

/** Processes edges first .. end - 1 (named by their first vertices) of a ring;
 * may reduce *limit2. */
typedef void oj_sphere_edges_visit(void *user, int64_t first, int64_t end,
                                   double *limit2);

/** Visits the edges of a ring of at least two vertices: all whose boxes are
 * within *limit2, a squared chord, of p, and maybe others. */
void oj_sphere_visit_edges(const struct oj_sphere_side *side, int64_t ring,
                           struct oj_vec3 p, double *limit2,
                           oj_sphere_edges_visit *visit, void *user);

/** Returns 1 if p is inside of the ring, on an ellipsoid of the ring made of
 * plane sections. Sets *is_beyond to 1 if p is not even in the cap of the ring,
 * otherwise to 0. */
int oj_sphere_ring_contains(const struct oj_sphere_side *side, int64_t ring,
                            struct oj_vec3 p, int *is_beyond);

/** Returns 1 if the way from p to the outside of the ring, whose crossings
 * oj_sphere_ring_contains() counts, crosses the arc a -> b an odd number of
 * times.
 */
int oj_sphere_path_crosses_arc(const struct oj_sphere_side *side, int64_t ring,
                               struct oj_vec3 p, struct oj_vec3 a,
                               struct oj_vec3 b);

static inline double
oj_sphere_chord2_to_feature(const struct oj_sphere_side *side, int64_t feature,
                            struct oj_vec3 p, double limit2)
{
    return oj_sphere_nearest_edge(side, feature, p, limit2).chord2;
}

/** Returns 1 if the coordinates are on the sphere: the longitude is finite, and
 * the latitude within 90 degrees. */
static inline int oj_sphere_contains_coordinates(double longitude,
                                                 double latitude)
{
    return longitude - longitude == 0.0 && fabs(latitude) <= 90.0;
}

/** Returns an upper bound of the distance by which an arc, whose squared chord
 * is given, leaves the 3D box of its two ends: less than a quarter of its
 * squared chord, plus rounding. */
static inline double oj_sphere_arc_bulge(double chord2)
{
    return 0.25 * chord2 + 1e-14;
}

/** Returns the squared chord of a distance in metres, or a number below 0 if
 * the distance is negative or NaN. oj_sphere_metres_of_chord2() is the inverse.
 */
double oj_sphere_chord2_of_metres(double metres);

/** Replaces the distances in relation by squared chords. */
void oj_sphere_relation_to_chords(struct oj_relation *relation);

/** Converts a squared chord to metres. */
double oj_sphere_metres_of_chord2(double chord2);

/** Returns the unit vector of a point in degrees. Longitudes 180 and -180 give
 * exactly equal vectors, and so do all longitudes at a pole. */
struct oj_vec3 oj_sphere_vector(double longitude, double latitude);

/** Returns the vector that struct oj_sphere_side stores for a point in degrees:
 * the unit vector if ellipsoid is NULL. */
static inline struct oj_vec3
oj_sphere_side_vector(const struct oj_ellipsoid *ellipsoid, double longitude,
                      double latitude)
{
    struct oj_vec3 up = oj_sphere_vector(longitude, latitude);
    return ellipsoid != NULL ? oj_ellipsoid_point(ellipsoid, up) : up;
}

/** Returns x, a longitude in -180 .. 180 of a point of an edge. If the edge has
 * longitudes beyond 180, adds the multiple of 360 that brings x close to x0. */
static inline double oj_sphere_longitude_at_edge(double x, double x0, double x1)
{
    if (fabs(x0) <= 180.0 && fabs(x1) <= 180.0)
        return x;
    return x + 360.0 * round((x0 - x) / 360.0);
}

/** Allocates a tree over n boxes. The caller then writes the boxes, in spatial
 * order, to level 0 of node and calls oj_sphere_tree3_fill(). After an error
 * node is NULL. */
OJ_MUST_USE oj_status oj_sphere_tree3_reserve(struct oj_tree3 *tree, int64_t n,
                                              struct oj_error *err);

static inline void oj_sphere_tree3_fill(struct oj_tree3 *tree)
{
    oj_box_levels_fill(&tree->levels, 3, (double *)tree->node);
}

/** Pushes the children of the node `at` whose squared distance from the box is
 * at most `least`, the nearest last. The stack has room for OJ_BOX_STACK
 * elements and holds `depth` of them. Returns the new number. */
static inline int oj_sphere_tree3_push(const struct oj_tree3 *tree,
                                       struct oj_box_child at,
                                       const struct oj_box3 *box, double least,
                                       struct oj_box_child *stack, int depth)
{
    return oj_box_levels_push(&tree->levels, 3, (const double *)tree->node, at,
                              (const double *)box, least, 0, stack, depth);
}

static inline int oj_sphere_box3_is_empty(const struct oj_box3 *box)
{
    return !(box->low[0] <= box->high[0]);
}

/** Returns the squared distance between two boxes: a lower bound of the squared
 * chord between points in them. */
static inline double oj_sphere_box3_distance2(const struct oj_box3 *a,
                                              const struct oj_box3 *b)
{
    return oj_box_squared_distance(3, (const double *)a, (const double *)b);
}

static inline struct oj_box3 oj_sphere_box3_of(struct oj_vec3 p)
{
    struct oj_box3 box = {{p.x, p.y, p.z}, {p.x, p.y, p.z}};
    return box;
}

static inline void oj_sphere_box3_add(struct oj_box3 *box,
                                      const struct oj_box3 *other)
{
    for (int i = 0; i < 3; i++)
    {
        if (other->low[i] < box->low[i])
            box->low[i] = other->low[i];
        if (other->high[i] > box->high[i])
            box->high[i] = other->high[i];
    }
}

static inline struct oj_box3 oj_sphere_box3_empty(void)
{
    struct oj_box3 box = {{INFINITY, INFINITY, INFINITY},
                          {-INFINITY, -INFINITY, -INFINITY}};
    return box;
}

/** Enlarges the box by `by` on all sides. */
static inline void oj_sphere_box3_grow(struct oj_box3 *box, double by)
{
    for (int i = 0; i < 3; i++)
    {
        box->low[i] -= by;
        box->high[i] += by;
    }
}

#endif
