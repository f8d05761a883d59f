#include "cpu_sphere_side.h"

#include "../../flatten/base/oj_array.h"
#include "../base/cpu_threads.h"

#include <string.h>

#define FEATURES_AT_ONCE 1024

/* Rings with more edges than this have a tree. */
#define FEW_EDGES 32

/* What every box is widened by: more than chords may be off. */
#define SLACK 1e-14

/* From this squared chord on, a hair less than a quarter of the sphere, a cap
 * is taken for a hemisphere. */
#define WIDE_CAP 1.99

struct sphere_side_build
{
    struct oj_sphere_side *side;
    int with_edges;
};

/* --- trees ---------------------------------------------------------------- */

oj_status oj_tree3_build(struct oj_tree3 *tree, int64_t n,
                         const struct oj_box3 *box, struct oj_error *err)
{
    int64_t n_nodes = 0, n_level = n;
    memset(tree, 0, sizeof *tree);
    if (n == 0)
        return OJ_OK;
    for (;; n_level = (n_level + OJ_TREE3_FANOUT - 1) / OJ_TREE3_FANOUT)
    {
        tree->first_node[tree->n_levels++] = n_nodes;
        n_nodes += n_level;
        if (n_level == 1)
            break;
    }
    tree->first_node[tree->n_levels] = n_nodes;
    tree->node = oj_malloc(n_nodes, sizeof *tree->node);
    if (tree->node == NULL)
    {
        tree->n_levels = 0;
        return oj_fail_nomem(err, n_nodes, sizeof *tree->node);
    }
    memcpy(tree->node, box, (size_t)n * sizeof *box);
    for (int level = 1; level < tree->n_levels; level++)
    {
        const struct oj_box3 *below = tree->node + tree->first_node[level - 1];
        int64_t n_below = tree->first_node[level] - tree->first_node[level - 1];
        struct oj_box3 *node = tree->node + tree->first_node[level];
        for (int64_t i = 0; i < n_below; i++)
        {
            if (i % OJ_TREE3_FANOUT == 0)
                node[i / OJ_TREE3_FANOUT] = below[i];
            else
                oj_box3_add(&node[i / OJ_TREE3_FANOUT], &below[i]);
        }
    }
    return OJ_OK;
}

/* --- vectors and boxes ---------------------------------------------------- */

/* Sine and cosine of degrees; quarter turns are exact, so that 180 and -180
 * are one meridian and a pole is one point. */
static void turn(double degrees, double *sine, double *cosine)
{
    int quarters;
    double rest = remquo(degrees, 90.0, &quarters) * 0.017453292519943295;
    double s = sin(rest), c = cos(rest);
    const double turned[4] = {s, c, -s, -c};
    *sine = turned[quarters & 3];
    *cosine = turned[(quarters + 1) & 3];
}

struct oj_vec3 oj_sphere_vector(double longitude, double latitude)
{
    struct oj_vec3 v;
    double sine, cosine, around;
    turn(latitude, &v.z, &around);
    turn(longitude, &sine, &cosine);
    v.x = around * cosine;
    v.y = around * sine;
    return v;
}

static int is_on_sphere(double longitude, double latitude)
{
    return longitude - longitude == 0.0 && fabs(latitude) <= 90.0;
}

static int64_t first_ring(const struct oj_flat *flat, int64_t feature)
{
    if (oj_flat_is_points(flat))
        return feature;
    return flat->ring_offset[flat->part_offset[feature]];
}

static int64_t first_vertex(const struct oj_flat *flat, int64_t ring)
{
    return oj_flat_is_points(flat) ? ring : flat->vertex_offset[ring];
}

/* Around the arc a -> b, which leaves the box of its ends by less than a
 * quarter of its squared chord. */
static struct oj_box3 box_of_arc(struct oj_vec3 a, struct oj_vec3 b)
{
    struct oj_box3 box = oj_box3_of(a), other = oj_box3_of(b);
    oj_box3_add(&box, &other);
    oj_box3_grow(&box, 0.25 * oj_chord2(a, b) + SLACK);
    return box;
}

static struct oj_box3 box_of_edges(const struct oj_sphere_side *side,
                                   int64_t first, int64_t last)
{
    struct oj_box3 box = box_of_arc(side->at[first], side->at[first]);
    for (int64_t v = first; v < last; v++)
    {
        struct oj_box3 arc = box_of_arc(side->at[v], side->at[v + 1]);
        oj_box3_add(&box, &arc);
    }
    return box;
}

/* --- rings ---------------------------------------------------------------- */

static struct oj_vec3 scaled(struct oj_vec3 v, double by)
{
    v.x *= by;
    v.y *= by;
    v.z *= by;
    return v;
}

/* A unit vector at a right angle to v. */
static struct oj_vec3 aside(struct oj_vec3 v)
{
    struct oj_vec3 axis = {0.0, 0.0, 0.0}, w;
    if (fabs(v.x) <= fabs(v.y) && fabs(v.x) <= fabs(v.z))
        axis.x = 1.0;
    else if (fabs(v.y) <= fabs(v.z))
        axis.y = 1.0;
    else
        axis.z = 1.0;
    w = oj_vec3_cross(v, axis);
    return scaled(w, 1.0 / sqrt(oj_vec3_dot(w, w)));
}

/* The cap around the mean of the vertices (the last repeats the first).  Caps
 * below a hemisphere are convex, so all edges are in it, and what is at a right
 * angle to its centre is outside. */
static struct oj_cap cap_of(const struct oj_sphere_side *side, int64_t first,
                            int64_t last)
{
    struct oj_cap cap = {{0.0, 0.0, 0.0}, 0.0, {0.0, 0.0, 0.0}};
    double length;
    for (int64_t v = first; v < last; v++)
    {
        cap.centre.x += side->at[v].x;
        cap.centre.y += side->at[v].y;
        cap.centre.z += side->at[v].z;
    }
    length = sqrt(oj_vec3_dot(cap.centre, cap.centre));
    if (!(length > 1e-9 * (double)(last - first)))
    {
        /* all around the middle of the sphere: the north counts as inside */
        cap.centre = (struct oj_vec3){0.0, 0.0, 1.0};
        length = 1.0;
    }
    cap.centre = scaled(cap.centre, 1.0 / length);
    for (int64_t v = first; v < last; v++)
    {
        double chord2 = oj_chord2(cap.centre, side->at[v]);
        cap.chord2 = chord2 > cap.chord2 ? chord2 : cap.chord2;
    }
    if (cap.chord2 < WIDE_CAP)
    {
        cap.reference = aside(cap.centre);
        cap.chord2 += SLACK;
    }
    else
    {
        cap.reference = scaled(cap.centre, -1.0);
        cap.chord2 = INFINITY;
    }
    return cap;
}

static oj_status build_ring_tree(const struct oj_sphere_side *side,
                                 int64_t ring, struct oj_tree3 *tree,
                                 struct oj_error *err)
{
    int64_t first = side->flat->vertex_offset[ring];
    int64_t last = side->flat->vertex_offset[ring + 1] - 1;
    int64_t n = (last - first + OJ_TREE3_FANOUT - 1) / OJ_TREE3_FANOUT;
    struct oj_box3 *box;
    oj_status status;
    OJ_NEW(box, n, err);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t v = first + i * OJ_TREE3_FANOUT;
        int64_t end = v + OJ_TREE3_FANOUT;
        box[i] = box_of_edges(side, v, end < last ? end : last);
    }
    status = oj_tree3_build(tree, n, box, err);
    oj_free(box);
    return status;
}

/* Box, cap and tree of a ring; adds what it covers to the feature's box. */
static oj_status build_ring(struct sphere_side_build *b, int64_t ring,
                            int is_polygon, struct oj_box3 *box,
                            struct oj_error *err)
{
    struct oj_sphere_side *side = b->side;
    int64_t first = side->flat->vertex_offset[ring];
    int64_t last = side->flat->vertex_offset[ring + 1] - 1;
    struct oj_box3 around = box_of_edges(side, first, last);
    oj_box3_add(box, &around);
    if (!b->with_edges)
        return OJ_OK;
    side->ring_box[ring] = around;
    if (side->cap != NULL && is_polygon)
    {
        const struct oj_cap *cap = &side->cap[ring];
        side->cap[ring] = cap_of(side, first, last);
        around = oj_box3_of(cap->centre);
        oj_box3_grow(&around,
                     cap->chord2 < 4.0 ? sqrt(cap->chord2) + SLACK : 3.0);
        oj_box3_add(box, &around);
    }
    if (side->tree_of[ring] < 0)
        return OJ_OK;
    return build_ring_tree(side, ring, &side->tree[side->tree_of[ring]], err);
}

static oj_status build_feature(int64_t feature, int thread, void *user,
                               struct oj_error *err)
{
    struct sphere_side_build *b = user;
    struct oj_sphere_side *side = b->side;
    const struct oj_flat *flat = side->flat;
    struct oj_box3 box = oj_box3_empty();
    int64_t first = first_vertex(flat, first_ring(flat, feature));
    int64_t end = first_vertex(flat, first_ring(flat, feature + 1));
    (void)thread;
    side->box[feature] = oj_box3_empty();
    for (int64_t v = first; v < end; v++)
    {
        if (!is_on_sphere(flat->x[v], flat->y[v]))
            return OJ_OK;
        side->at[v] = oj_sphere_vector(flat->x[v], flat->y[v]);
    }
    if (oj_flat_is_points(flat))
        box = box_of_arc(side->at[feature], side->at[feature]);
    else
    {
        for (int64_t p = flat->part_offset[feature];
             p < flat->part_offset[feature + 1]; p++)
        {
            for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
                 r++)
                OJ_TRY(build_ring(b, r, flat->part_kind[p] == OJ_PART_POLYGON,
                                  &box, err));
        }
    }
    side->box[feature] = box;
    return OJ_OK;
}

static oj_status reserve_rings(struct oj_sphere_side *side, int with_interiors,
                               struct oj_error *err)
{
    const struct oj_flat *flat = side->flat;
    OJ_NEW(side->ring_box, flat->n_rings, err);
    OJ_NEW(side->tree_of, flat->n_rings, err);
    if (with_interiors && (flat->part_kinds & OJ_PART_POLYGON))
        OJ_NEW(side->cap, flat->n_rings, err);
    for (int64_t r = 0; r < flat->n_rings; r++)
    {
        int64_t n = flat->vertex_offset[r + 1] - flat->vertex_offset[r];
        side->tree_of[r] = n > FEW_EDGES + 1 ? (int32_t)side->n_trees++ : -1;
    }
    side->tree = oj_calloc(side->n_trees, sizeof *side->tree);
    if (side->tree == NULL)
        return oj_fail_nomem(err, side->n_trees, sizeof *side->tree);
    return OJ_OK;
}

oj_status oj_sphere_side_build(struct oj_sphere_side *side,
                               const struct oj_flat *flat, int with_edges,
                               int with_interiors, int n_threads,
                               struct oj_error *err)
{
    struct sphere_side_build b = {side, with_edges};
    int64_t n = flat->n_features;
    oj_status status = OJ_OK;
    memset(side, 0, sizeof *side);
    side->flat = flat;
    side->at = oj_malloc(flat->n_vertices, sizeof *side->at);
    side->box = oj_malloc(n, sizeof *side->box);
    if (side->at == NULL || side->box == NULL)
        status = oj_fail_nomem(err, flat->n_vertices, sizeof *side->at);
    else if (with_edges && !oj_flat_is_points(flat))
        status = reserve_rings(side, with_interiors, err);
    if (status == OJ_OK)
        status = oj_parallel_try(n_threads, n, FEATURES_AT_ONCE, build_feature,
                                 &b, err);
    if (status != OJ_OK)
        oj_sphere_side_free(side);
    return status;
}

void oj_sphere_side_free(struct oj_sphere_side *side)
{
    for (int64_t t = 0; side->tree != NULL && t < side->n_trees; t++)
        oj_free(side->tree[t].node);
    oj_free(side->tree);
    oj_free(side->tree_of);
    oj_free(side->cap);
    oj_free(side->ring_box);
    oj_free(side->box);
    oj_free(side->at);
    memset(side, 0, sizeof *side);
}

int64_t oj_sphere_side_bytes(const struct oj_sphere_side *side)
{
    const struct oj_flat *flat = side->flat;
    int64_t bytes = flat->n_vertices * (int64_t)sizeof *side->at +
                    flat->n_features * (int64_t)sizeof *side->box;
    if (side->ring_box != NULL)
        bytes += flat->n_rings * (int64_t)(sizeof *side->ring_box + 4);
    if (side->cap != NULL)
        bytes += flat->n_rings * (int64_t)sizeof *side->cap;
    for (int64_t t = 0; t < side->n_trees; t++)
        bytes += side->tree[t].first_node[side->tree[t].n_levels] *
                 (int64_t)sizeof *side->tree->node;
    return bytes;
}
