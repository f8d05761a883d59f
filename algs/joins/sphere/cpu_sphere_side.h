/** One side of a join on the sphere: unit vectors of its vertices, and trees of
 *  boxes in space over them.
 *
 *  x is longitude, y latitude, in degrees; longitudes are taken modulo 360, and
 *  a feature with a latitude beyond 90 joins nothing.  Edges are the shorter
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

/** A packed tree; level 0 are the boxes of the entries. Owner of node. */
struct oj_tree3
{
    struct oj_box_levels levels;
    struct oj_box3 *node;
};

/** Where a polygon ring's inside is. */
struct oj_cap
{
    struct oj_vec3 centre;    /**< of a cap around the ring */
    double chord2;            /**< its radius; what is farther is outside;
                                   INFINITY: as large as a hemisphere */
    struct oj_vec3 reference; /**< a point outside */
};

/** Owner; zeroed memory is a valid empty one. */
struct oj_sphere_side
{
    const struct oj_flat *flat; /**< outlives this */
    struct oj_vec3 *at;         /**< [n_vertices] */
    struct oj_box3 *box;        /**< [n_features] inside and all; empty where
                                     nothing is joined */
    /* long form, join side */
    struct oj_box3 *ring_box; /**< [n_rings] around the edges */
    struct oj_cap *cap;       /**< [n_rings] of polygons; NULL: none */
    int32_t *tree_of;         /**< [n_rings] into tree, or -1: few edges */
    int64_t n_trees;
    struct oj_tree3 *tree; /**< entry i: eight edges from vertex 8 i of the
                                ring on */
};

/** with_edges: 0 for input sides of points; with_interiors: 0 when polygons
 *  are their rings only. */
OJ_MUST_USE oj_status oj_sphere_side_build(struct oj_sphere_side *side,
                                           const struct oj_flat *flat,
                                           int with_edges, int with_interiors,
                                           int n_threads, struct oj_error *err);

void oj_sphere_side_free(struct oj_sphere_side *side);

int64_t oj_sphere_side_bytes(const struct oj_sphere_side *side);

/** Where a feature is nearest to a point. */
struct oj_sphere_place
{
    double chord2;  /**< INFINITY: nowhere within the limit */
    int64_t vertex; /**< the edge from it on, or the point that it is; of
                         several the first; -1: p is inside */
};

/** Squared chord from p to feature and where; 0 inside a polygon part.  Only
 *  what is at most limit2 is looked for. */
struct oj_sphere_place oj_sphere_nearest(const struct oj_sphere_side *side,
                                         int64_t feature, struct oj_vec3 p,
                                         double limit2);

static inline double
oj_sphere_chord2_to_feature(const struct oj_sphere_side *side, int64_t feature,
                            struct oj_vec3 p, double limit2)
{
    return oj_sphere_nearest(side, feature, p, limit2).chord2;
}

/** 0 for what is nowhere on the sphere. */
static inline int oj_sphere_has(double longitude, double latitude)
{
    return longitude - longitude == 0.0 && fabs(latitude) <= 90.0;
}

/** By how much the box of an arc of this squared chord is larger than that of
 *  its ends, which the arc leaves by less than a quarter of it, and more than
 *  chords may be off. */
static inline double oj_sphere_bulge(double chord2)
{
    return 0.25 * chord2 + 1e-14;
}

/** The squared chord of so many metres; below 0: no distance; and back. */
double oj_sphere_chord2_of(double metres);

/** Makes the distances of relation such chords. */
void oj_sphere_compare_chords(struct oj_relation *relation);
double oj_sphere_metres_of(double chord2);

/** The point of the unit sphere at so many degrees; 180 and -180 are one
 *  meridian and a pole is one point, to the last bit. */
struct oj_vec3 oj_sphere_vector(double longitude, double latitude);

/** Room for a tree over n boxes, which the caller puts at node, neighbours side
 *  by side; then oj_sphere_tree3_fill().  After an error node is NULL. */
OJ_MUST_USE oj_status oj_sphere_tree3_reserve(struct oj_tree3 *tree, int64_t n,
                                              struct oj_error *err);

static inline void oj_sphere_tree3_fill(struct oj_tree3 *tree)
{
    oj_box_levels_fill(&tree->levels, 3, (double *)tree->node);
}

/** oj_box_levels_push() of a tree on a stack of OJ_BOX_STACK. */
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

/** Squared distance between two boxes: at most the squared chord between any
 *  of their points. */
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

/** All sides moved outward. */
static inline void oj_sphere_box3_grow(struct oj_box3 *box, double by)
{
    for (int i = 0; i < 3; i++)
    {
        box->low[i] -= by;
        box->high[i] += by;
    }
}

#endif
