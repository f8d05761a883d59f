/** One side of a join on the sphere, prepared: unit vectors of its vertices,
 *  and trees of boxes in space over the edges.
 *
 *  x is longitude, y latitude, in degrees; longitudes are taken modulo 360, and
 *  a feature with a latitude beyond 90 has no pairs. Edges are the shorter
 *  great-circle arcs.  A ring's inside is the side that does not contain the
 *  point opposite to the mean of its vertices, whichever way it winds: the
 *  smaller side, for anything smaller than a hemisphere.  A polygon part
 *  contains a point as in the plane: inside an odd number of its rings.
 */
#ifndef CPU_SPHERE_SIDE_H
#define CPU_SPHERE_SIDE_H

#include "../../../flatten/arrays/oj_flat.h"
#include "../../foundations/base/cpu_box_tree.h"
#include "../../foundations/kernels/oj_sphere.h"
#include "../../foundations/relation/oj_relation.h"

struct oj_box3
{
    double low[3], high[3]; /**< empty: low > high */
};

/** A packed tree; level 0 has the boxes of the entries. Owns node. */
struct oj_tree3
{
    struct oj_box_levels levels;
    struct oj_box3 *node;
};

/** A cap around a polygon ring, and a point outside of the ring. */
struct oj_cap
{
    struct oj_vec3 centre;    /**< centre of the cap */
    double chord2;            /**< its radius as a squared chord; points
                                   farther away are outside of the ring;
                                   INFINITY: the cap is a hemisphere or more */
    struct oj_vec3 reference; /**< a point outside of the ring */
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_sphere_side
{
    const struct oj_flat *flat; /**< outlives this */
    struct oj_vec3 *at;         /**< [n_vertices] */
    struct oj_box3 *box;        /**< [n_features] with the interiors of
                                     polygons; empty for features without
                                     pairs */
    /* Only for the join side in the long form. */
    struct oj_box3 *ring_box; /**< [n_rings] boxes of the edges */
    struct oj_cap *cap;       /**< [n_rings] of polygons; NULL: not needed */
    int32_t *tree_of;         /**< [n_rings] index in tree; -1: few edges */
    int64_t n_trees;
    struct oj_tree3 *tree; /**< entry i: the eight edges from vertex 8 i of
                                the ring on */
};

/** Prepares a side. with_edges 0: for input sides of points; with_interiors 0:
 * polygons are only their rings. */
OJ_MUST_USE oj_status oj_sphere_side_build(struct oj_sphere_side *side,
                                           const struct oj_flat *flat,
                                           int with_edges, int with_interiors,
                                           int n_threads, struct oj_error *err);

void oj_sphere_side_free(struct oj_sphere_side *side);

int64_t oj_sphere_side_bytes(const struct oj_sphere_side *side);

/** The place of a feature that is nearest to a point. */
struct oj_sphere_place
{
    double chord2;  /**< INFINITY: none within the limit */
    int64_t vertex; /**< start of the nearest edge, or the nearest point
                         itself; of equals the first; -1: p is inside */
};

/** Squared chord from p to feature, and the nearest place; 0 inside a polygon
 * part.  Only distances up to limit2 are searched. */
struct oj_sphere_place oj_sphere_nearest(const struct oj_sphere_side *side,
                                         int64_t feature, struct oj_vec3 p,
                                         double limit2);

static inline double
oj_sphere_chord2_to_feature(const struct oj_sphere_side *side, int64_t feature,
                            struct oj_vec3 p, double limit2)
{
    return oj_sphere_nearest(side, feature, p, limit2).chord2;
}

/** 0 if the coordinates are not on the sphere. */
static inline int oj_sphere_has(double longitude, double latitude)
{
    return longitude - longitude == 0.0 && fabs(latitude) <= 90.0;
}

/** Upper bound of how far an arc with this squared chord leaves the box of its
 * ends (less than a quarter of it), with the rounding error of chords. */
static inline double oj_sphere_bulge(double chord2)
{
    return 0.25 * chord2 + 1e-14;
}

/** Squared chord of a distance in metres; below 0 for a negative or NaN
 * distance. oj_sphere_metres_of() is the inverse. */
double oj_sphere_chord2_of(double metres);

/** Converts the distances of relation to squared chords. */
void oj_sphere_compare_chords(struct oj_relation *relation);
double oj_sphere_metres_of(double chord2);

/** Unit vector of a point in degrees; 180 and -180 are one meridian, and a pole
 * is one point, to the last bit. */
struct oj_vec3 oj_sphere_vector(double longitude, double latitude);

/** Allocates a tree over n boxes. The caller fills the boxes of level 0 at
 * node, neighbours adjacent, then calls oj_sphere_tree3_fill().  After an
 * error node is NULL. */
OJ_MUST_USE oj_status oj_sphere_tree3_reserve(struct oj_tree3 *tree, int64_t n,
                                              struct oj_error *err);

static inline void oj_sphere_tree3_fill(struct oj_tree3 *tree)
{
    oj_box_levels_fill(&tree->levels, 3, (double *)tree->node);
}

/** oj_box_levels_push() for this tree; the stack has OJ_BOX_STACK elements. */
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

/** Squared distance of two boxes: a lower bound of the squared chord between
 * their points. */
static inline double oj_sphere_box3_distance2(const struct oj_box3 *a,
                                              const struct oj_box3 *b)
{
    return oj_box_gap2(3, (const double *)a, (const double *)b);
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

/** Moves all sides outward. */
static inline void oj_sphere_box3_grow(struct oj_box3 *box, double by)
{
    for (int i = 0; i < 3; i++)
    {
        box->low[i] -= by;
        box->high[i] += by;
    }
}

#endif
