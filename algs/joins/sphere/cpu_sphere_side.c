#include "cpu_sphere_side.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"

#include <string.h>

#define FEATURES_AT_ONCE 1024

/* Maximum edges of a ring without a tree. */
#define FEW_EDGES 32

/* added to the squared chord of a cap, and to its chord for the box around it:
 * greater than the rounding error of both */
#define SLACK 1e-14

/* A cap whose squared chord reaches this (slightly less than a quarter circle)
 * is treated as a hemisphere. */
#define WIDE_CAP 1.99

/* A ring on an ellipsoid whose cap has a greater radius than this, in
 * semi-major axes a, is treated as a hemisphere. The limit must be less than
 * the chord from the centre of the cap to the reference point perpendicular to
 * it, by more than the width of a lens, so that this point is outside of the
 * ring; and less than pi r / 2, so that the cap is convex (cpu_sphere_side.h).
 * At a flattening of .02 these are 1.385 a and 1.508 a. */
#define WIDE_CAP_ON_ELLIPSOID 1.3

/* maximum rounding error in the test of a box against a plane */
#define PLANE_SLACK 1e-14

/* if the squared chord from a point to the antipode of another is smaller, the
 * great circle through both is not reliable */
#define NO_DIRECTION 1e-12

struct sphere_side_build
{
    struct oj_sphere_side *side;
    const struct oj_flat *given; /* the layer before its edges were cut */
    const struct oj_ellipsoid *ellipsoid;
    int with_edges;
};

/* --- trees ---------------------------------------------------------------- */

oj_status oj_sphere_tree3_reserve(struct oj_tree3 *tree, int64_t n,
                                  struct oj_error *err)
{
    oj_box_levels_make(&tree->levels, n, 0);
    OJ_NEW(tree->node, oj_box_levels_count(&tree->levels), err);
    return OJ_OK;
}

/* --- vectors and boxes ---------------------------------------------------- */

/* Computes sine and cosine of an angle in degrees. They are exact for multiples
 * of 90, so that 180 and -180 are one meridian and a pole is one point. */
static void sine_and_cosine(double degrees, double *sine, double *cosine)
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
    sine_and_cosine(latitude, &v.z, &around);
    sine_and_cosine(longitude, &sine, &cosine);
    v.x = around * cosine;
    v.y = around * sine;
    return v;
}

double oj_sphere_chord2_of_metres(double metres)
{
    double angle = metres / OJ_SPHERE_RADIUS, chord;
    if (!(metres >= 0.0))
        return -1.0;
    if (angle >= 3.141592653589793)
        return 5.0; /* greater than any squared chord (at most 4) */
    chord = 2.0 * sin(0.5 * angle);
    return chord * chord;
}

void oj_sphere_relation_to_chords(struct oj_relation *relation)
{
    relation->max_distance = oj_sphere_chord2_of_metres(relation->max_distance);
    relation->min_distance = oj_sphere_chord2_of_metres(relation->min_distance);
}

double oj_sphere_metres_of_chord2(double chord2)
{
    double half = 0.5 * sqrt(chord2);
    return OJ_SPHERE_RADIUS * 2.0 * asin(half < 1.0 ? half : 1.0);
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

/* Returns the 3D box of the arc a -> b; on an ellipsoid, of all points within 3
 * times oj_ellipsoid_edge_bulge() of the chord a b. */
static struct oj_box3 box_of_arc(const struct oj_ellipsoid *ellipsoid,
                                 struct oj_vec3 a, struct oj_vec3 b)
{
    struct oj_box3 box = oj_sphere_box3_of(a), other = oj_sphere_box3_of(b);
    double chord2 = oj_sphere_chord2(a, b);
    oj_sphere_box3_add(&box, &other);
    oj_sphere_box3_grow(&box, ellipsoid != NULL ? 3.0 * oj_ellipsoid_edge_bulge(
                                                            ellipsoid, chord2)
                                                : oj_sphere_arc_bulge(chord2));
    return box;
}

static struct oj_box3 box_of_edges(const struct sphere_side_build *b,
                                   int64_t first, int64_t last)
{
    const struct oj_vec3 *at = b->side->at;
    struct oj_box3 box = box_of_arc(b->ellipsoid, at[first], at[first]);
    for (int64_t v = first; v < last; v++)
    {
        struct oj_box3 arc = box_of_arc(b->ellipsoid, at[v], at[v + 1]);
        oj_sphere_box3_add(&box, &arc);
    }
    return box;
}

/* --- rings ---------------------------------------------------------------- */

static struct oj_vec3 scale_vec3(struct oj_vec3 v, double by)
{
    v.x *= by;
    v.y *= by;
    v.z *= by;
    return v;
}

/* Returns a unit vector that is perpendicular to v. */
static struct oj_vec3 unit_vector_perpendicular_to(struct oj_vec3 v)
{
    struct oj_vec3 axis = {0.0, 0.0, 0.0}, w;
    if (fabs(v.x) <= fabs(v.y) && fabs(v.x) <= fabs(v.z))
        axis.x = 1.0;
    else if (fabs(v.y) <= fabs(v.z))
        axis.y = 1.0;
    else
        axis.z = 1.0;
    w = oj_sphere_vec3_cross(v, axis);
    return scale_vec3(w, 1.0 / sqrt(oj_sphere_vec3_dot(w, w)));
}

/* Returns the direction of the mean of the vertices of a ring, whose last
 * vertex repeats the first; the north pole if the mean has no direction.
 * Vertices that were added to cut long edges do not count. */
static struct oj_vec3 mean_direction(const struct sphere_side_build *b,
                                     int64_t ring)
{
    const struct oj_flat *given = b->given;
    int64_t first = given->vertex_offset[ring];
    int64_t last = given->vertex_offset[ring + 1] - 1;
    struct oj_vec3 sum = {0.0, 0.0, 0.0};
    double length;
    for (int64_t v = first; v < last; v++)
    {
        struct oj_vec3 at =
            b->side->cut == NULL
                ? b->side->at[v]
                : oj_sphere_side_vector(b->ellipsoid, given->x[v], given->y[v]);
        sum.x += at.x;
        sum.y += at.y;
        sum.z += at.z;
    }
    length = sqrt(oj_sphere_vec3_dot(sum, sum));
    if (!(length > 1e-9 * (double)(last - first)))
        return (struct oj_vec3){0.0, 0.0, 1.0};
    return scale_vec3(sum, 1.0 / length);
}

/* Returns the cap around the mean of the vertices first .. last - 1 of a ring.
 * A cap smaller than a hemisphere is convex, so it contains all edges, and
 * points perpendicular to its centre are outside of the ring. */
static struct oj_cap cap_around_ring(const struct sphere_side_build *b,
                                     int64_t ring, int64_t first, int64_t last)
{
    struct oj_cap cap = {mean_direction(b, ring), 0.0, {0.0, 0.0, 0.0}};
    int is_wide;
    if (b->ellipsoid != NULL)
    {
        double minor = 1.0 - b->ellipsoid->flattening;
        struct oj_vec3 of_sphere = cap.centre;
        of_sphere.z /= minor;
        cap.centre = scale_vec3(
            cap.centre, 1.0 / sqrt(oj_sphere_vec3_dot(of_sphere, of_sphere)));
    }
    for (int64_t v = first; v < last; v++)
    {
        double chord2 = oj_sphere_chord2(cap.centre, b->side->at[v]);
        cap.chord2 = chord2 > cap.chord2 ? chord2 : cap.chord2;
    }
    if (b->ellipsoid != NULL)
    {
        double d = oj_ellipsoid_most_distance(b->ellipsoid, cap.chord2);
        cap.chord2 = d * d;
        is_wide = d > WIDE_CAP_ON_ELLIPSOID;
    }
    else
        is_wide = !(cap.chord2 < WIDE_CAP);
    if (!is_wide)
    {
        cap.reference = unit_vector_perpendicular_to(cap.centre);
        cap.chord2 += SLACK;
    }
    else
    {
        cap.reference = scale_vec3(cap.centre, -1.0);
        cap.chord2 = INFINITY;
    }
    return cap;
}

static oj_status build_ring_tree(const struct sphere_side_build *b,
                                 int64_t ring, struct oj_tree3 *tree,
                                 struct oj_error *err)
{
    const struct oj_sphere_side *side = b->side;
    int64_t first = side->flat->vertex_offset[ring];
    int64_t last = side->flat->vertex_offset[ring + 1] - 1;
    int64_t n = (last - first + OJ_BOX_FANOUT - 1) / OJ_BOX_FANOUT;
    OJ_TRY(oj_sphere_tree3_reserve(tree, n, err));
    for (int64_t i = 0; i < n; i++)
    {
        int64_t v = first + i * OJ_BOX_FANOUT;
        int64_t end = v + OJ_BOX_FANOUT;
        tree->node[i] = box_of_edges(b, v, end < last ? end : last);
    }
    oj_sphere_tree3_fill(tree);
    return OJ_OK;
}

/* Computes box, cap and tree of a ring, as far as the side needs them. Extends
 * the box of the feature by the box and the cap of the ring. */
static oj_status build_ring(struct sphere_side_build *b, int64_t ring,
                            int is_polygon, struct oj_box3 *box,
                            struct oj_error *err)
{
    struct oj_sphere_side *side = b->side;
    int64_t first = side->flat->vertex_offset[ring];
    int64_t last = side->flat->vertex_offset[ring + 1] - 1;
    struct oj_box3 around = box_of_edges(b, first, last);
    oj_sphere_box3_add(box, &around);
    if (!b->with_edges)
        return OJ_OK;
    side->ring_box[ring] = around;
    if (side->cap != NULL && is_polygon)
    {
        const struct oj_cap *cap = &side->cap[ring];
        side->cap[ring] = cap_around_ring(b, ring, first, last);
        around = oj_sphere_box3_of(cap->centre);
        oj_sphere_box3_grow(
            &around, cap->chord2 < 4.0 ? sqrt(cap->chord2) + SLACK : 3.0);
        oj_sphere_box3_add(box, &around);
    }
    if (side->tree_of[ring] < 0)
        return OJ_OK;
    return build_ring_tree(b, ring, &side->tree[side->tree_of[ring]], err);
}

static oj_status build_feature(int64_t feature, int thread, void *user,
                               struct oj_error *err)
{
    struct sphere_side_build *b = user;
    struct oj_sphere_side *side = b->side;
    const struct oj_flat *flat = side->flat;
    struct oj_box3 box = oj_sphere_box3_empty();
    int64_t first = first_vertex(flat, first_ring(flat, feature));
    int64_t end = first_vertex(flat, first_ring(flat, feature + 1));
    (void)thread;
    side->box[feature] = oj_sphere_box3_empty();
    for (int64_t v = first; v < end; v++)
    {
        if (!oj_sphere_contains_coordinates(flat->x[v], flat->y[v]))
            return OJ_OK;
        side->at[v] =
            oj_sphere_side_vector(b->ellipsoid, flat->x[v], flat->y[v]);
    }
    if (oj_flat_is_points(flat))
        box = box_of_arc(b->ellipsoid, side->at[feature], side->at[feature]);
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
    OJ_NEW_ZEROED(side->tree, side->n_trees, err);
    return OJ_OK;
}

static oj_status build_side(struct sphere_side_build *b, int with_interiors,
                            int n_threads, struct oj_error *err)
{
    struct oj_sphere_side *side = b->side;
    const struct oj_flat *flat = side->flat;
    OJ_NEW(side->at, flat->n_vertices, err);
    OJ_NEW(side->box, flat->n_features, err);
    if (b->with_edges && !oj_flat_is_points(flat))
        OJ_TRY(reserve_rings(side, with_interiors, err));
    return oj_parallel_try(n_threads, flat->n_features, FEATURES_AT_ONCE,
                           build_feature, b, err);
}

oj_status oj_sphere_side_build(struct oj_sphere_side *side,
                               const struct oj_flat *flat,
                               const struct oj_ellipsoid *ellipsoid,
                               const struct oj_geodesic *geodesic,
                               int with_edges, int with_interiors,
                               int n_threads, struct oj_error *err)
{
    struct sphere_side_build b = {side, flat, ellipsoid, with_edges};
    oj_status status = OJ_OK;
    memset(side, 0, sizeof *side);
    side->flat = flat;
    if (with_edges && ellipsoid != NULL && !oj_flat_is_points(flat) &&
        (flat->part_kinds & ~(unsigned)OJ_PART_POINT) != 0)
        status = oj_cut_edges_make(geodesic, ellipsoid, flat, n_threads,
                                   &side->cut, err);
    if (side->cut != NULL)
        side->flat = &side->cut->flat;
    if (status == OJ_OK)
        status = build_side(&b, with_interiors, n_threads, err);
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
    oj_cut_edges_free(side->cut);
    memset(side, 0, sizeof *side);
}

int64_t oj_sphere_side_bytes(const struct oj_sphere_side *side)
{
    const struct oj_flat *flat = side->flat;
    int64_t bytes = flat->n_vertices * (int64_t)sizeof *side->at +
                    flat->n_features * (int64_t)sizeof *side->box;
    if (side->cut != NULL)
        bytes += flat->n_vertices * 16 + flat->n_rings * 8;
    if (side->ring_box != NULL)
        bytes += flat->n_rings * (int64_t)(sizeof *side->ring_box + 4);
    if (side->cap != NULL)
        bytes += flat->n_rings * (int64_t)sizeof *side->cap;
    for (int64_t t = 0; t < side->n_trees; t++)
        bytes += oj_box_levels_count(&side->tree[t].levels) *
                 (int64_t)sizeof *side->tree->node;
    return bytes;
}

/* --- nearest edge --------------------------------------------------------- */

static void replace_if_nearer_edge(double chord2, int64_t vertex,
                                   struct oj_sphere_place *best)
{
    if (chord2 > best->chord2 ||
        (chord2 == best->chord2 && vertex >= best->vertex))
        return;
    best->chord2 = chord2;
    best->vertex = vertex;
}

struct nearest_edge_search
{
    const struct oj_sphere_side *side;
    struct oj_vec3 p;
    struct oj_sphere_place *best;
};

static void find_nearest_edge(void *user, int64_t first, int64_t end,
                              double *limit2)
{
    const struct nearest_edge_search *s = user;
    const struct oj_vec3 *at = s->side->at;
    (void)limit2; /* it is best->chord2, which is reduced below */
    for (int64_t v = first; v < end; v++)
        replace_if_nearer_edge(oj_sphere_arc_chord2(s->p, at[v], at[v + 1]), v,
                               s->best);
}

static void visit_edges_of_tree(const struct oj_sphere_side *side, int64_t ring,
                                struct oj_vec3 p, double *limit2,
                                oj_sphere_edges_visit *visit, void *user)
{
    const struct oj_tree3 *tree = &side->tree[side->tree_of[ring]];
    int64_t first = side->flat->vertex_offset[ring];
    int64_t last = side->flat->vertex_offset[ring + 1] - 1;
    struct oj_box3 box = oj_sphere_box3_of(p);
    struct oj_box_child stack[OJ_BOX_STACK];
    int depth = 0;
    stack[depth++] = (struct oj_box_child){0.0, 0, tree->levels.n_levels - 1};
    while (depth > 0)
    {
        struct oj_box_child at = stack[--depth];
        int64_t v = first + at.node * OJ_BOX_FANOUT;
        int64_t end = v + OJ_BOX_FANOUT;
        if (at.d2 > *limit2)
            continue;
        if (at.level > 0)
            depth = oj_sphere_tree3_push(tree, at, &box, *limit2, stack, depth);
        else
            visit(user, v, end < last ? end : last, limit2);
    }
}

void oj_sphere_visit_edges(const struct oj_sphere_side *side, int64_t ring,
                           struct oj_vec3 p, double *limit2,
                           oj_sphere_edges_visit *visit, void *user)
{
    struct oj_box3 box = oj_sphere_box3_of(p);
    if (oj_sphere_box3_distance2(&box, &side->ring_box[ring]) > *limit2)
        return;
    if (side->tree_of[ring] < 0)
        visit(user, side->flat->vertex_offset[ring],
              side->flat->vertex_offset[ring + 1] - 1, limit2);
    else
        visit_edges_of_tree(side, ring, p, limit2, visit, user);
}

static void find_nearest_in_ring(const struct oj_sphere_side *side,
                                 int64_t ring, struct oj_vec3 p,
                                 struct oj_sphere_place *best)
{
    int64_t first = side->flat->vertex_offset[ring];
    int64_t last = side->flat->vertex_offset[ring + 1] - 1;
    struct nearest_edge_search search = {side, p, best};
    if (first == last) /* a point, or a line of a single vertex */
        replace_if_nearer_edge(oj_sphere_chord2(p, side->at[first]), first,
                               best);
    else
        oj_sphere_visit_edges(side, ring, p, &best->chord2, find_nearest_edge,
                              &search);
}

/* --- point in ring -------------------------------------------------------- */

static int parity_of_edges_crossed(const struct oj_sphere_side *side,
                                   int64_t first, int64_t last,
                                   struct oj_vec3 p, struct oj_vec3 r,
                                   struct oj_vec3 m)
{
    int odd = 0;
    for (int64_t v = first; v < last; v++)
        odd ^= oj_sphere_arcs_cross(p, r, m, side->at[v], side->at[v + 1]);
    return odd;
}

/* Returns 1 if the box may have points on both sides of the plane through the
 * origin with normal m. */
static int may_plane_cut_box(const struct oj_box3 *box, struct oj_vec3 m)
{
    const double of[3] = {m.x, m.y, m.z};
    double middle = 0.0, half = PLANE_SLACK;
    for (int i = 0; i < 3; i++)
    {
        middle += of[i] * (0.5 * box->low[i] + 0.5 * box->high[i]);
        half += fabs(of[i]) * (0.5 * box->high[i] - 0.5 * box->low[i]);
    }
    return fabs(middle) <= half;
}

static int parity_of_tree_edges_crossed(const struct oj_sphere_side *side,
                                        const struct oj_tree3 *tree,
                                        int64_t first, int64_t last,
                                        struct oj_vec3 p, struct oj_vec3 r,
                                        struct oj_vec3 m)
{
    struct oj_box_child stack[OJ_BOX_STACK];
    int depth = 0, odd = 0;
    stack[depth++] = (struct oj_box_child){0.0, 0, tree->levels.n_levels - 1};
    while (depth > 0)
    {
        struct oj_box_child at = stack[--depth];
        int64_t v = first + at.node * OJ_BOX_FANOUT;
        int64_t end = v + OJ_BOX_FANOUT, n;
        if (!may_plane_cut_box(
                &tree->node[tree->levels.first[at.level] + at.node], m))
            continue;
        if (at.level == 0)
        {
            odd ^= parity_of_edges_crossed(side, v, end < last ? end : last, p,
                                           r, m);
            continue;
        }
        n = tree->levels.first[at.level] - tree->levels.first[at.level - 1];
        for (int64_t i = at.node * OJ_BOX_FANOUT;
             i < (at.node + 1) * OJ_BOX_FANOUT && i < n; i++)
            stack[depth++] = (struct oj_box_child){0.0, i, at.level - 1};
    }
    return odd;
}

/* Returns 1 if the arc from p to r crosses the ring an odd number of times. */
static int does_arc_cross_ring_oddly(const struct oj_sphere_side *side,
                                     int64_t ring, struct oj_vec3 p,
                                     struct oj_vec3 r)
{
    int64_t first = side->flat->vertex_offset[ring];
    int64_t last = side->flat->vertex_offset[ring + 1] - 1;
    struct oj_vec3 m = oj_sphere_vec3_cross(p, r);
    if (side->tree_of[ring] < 0)
        return parity_of_edges_crossed(side, first, last, p, r, m);
    return parity_of_tree_edges_crossed(side, &side->tree[side->tree_of[ring]],
                                        first, last, p, r, m);
}

/* Returns a point a few degrees away from p, in any direction. */
static struct oj_vec3 point_a_few_degrees_away(struct oj_vec3 p)
{
    struct oj_vec3 w = {p.x, p.y, p.z};
    double length;
    if (fabs(p.x) < 0.5)
        w.x += 0.1;
    else
        w.y += 0.1;
    length = sqrt(oj_sphere_vec3_dot(w, w));
    w.x /= length;
    w.y /= length;
    w.z /= length;
    return w;
}

/* Finds the way from p to the reference point of a cap. Returns 0 if it is the
 * arc between both. If they are nearly antipodal, this arc is not reliable:
 * sets *by to a third point, over which the way leads, and returns 1. */
static int find_detour_point(const struct oj_cap *cap, struct oj_vec3 p,
                             struct oj_vec3 *by)
{
    if (cap->chord2 < 4.0 || oj_sphere_chord2(p, cap->centre) > NO_DIRECTION)
        return 0;
    *by = point_a_few_degrees_away(p);
    return 1;
}

int oj_sphere_ring_contains(const struct oj_sphere_side *side, int64_t ring,
                            struct oj_vec3 p, int *is_beyond)
{
    const struct oj_cap *cap = &side->cap[ring];
    struct oj_vec3 by;
    *is_beyond = oj_sphere_chord2(p, cap->centre) > cap->chord2;
    if (*is_beyond)
        return 0;
    if (!find_detour_point(cap, p, &by))
        return does_arc_cross_ring_oddly(side, ring, p, cap->reference);
    return does_arc_cross_ring_oddly(side, ring, p, by) ^
           does_arc_cross_ring_oddly(side, ring, by, cap->reference);
}

static int do_arcs_cross(struct oj_vec3 p, struct oj_vec3 r, struct oj_vec3 a,
                         struct oj_vec3 b)
{
    return oj_sphere_arcs_cross(p, r, oj_sphere_vec3_cross(p, r), a, b);
}

int oj_sphere_path_crosses_arc(const struct oj_sphere_side *side, int64_t ring,
                               struct oj_vec3 p, struct oj_vec3 a,
                               struct oj_vec3 b)
{
    const struct oj_cap *cap = &side->cap[ring];
    struct oj_vec3 by;
    if (!find_detour_point(cap, p, &by))
        return do_arcs_cross(p, cap->reference, a, b);
    return do_arcs_cross(p, by, a, b) ^ do_arcs_cross(by, cap->reference, a, b);
}

static int does_part_hold_point(const struct oj_sphere_side *side, int64_t part,
                                struct oj_vec3 p)
{
    const struct oj_flat *flat = side->flat;
    int odd = 0, is_beyond;
    for (int64_t ring = flat->ring_offset[part];
         ring < flat->ring_offset[part + 1]; ring++)
        odd ^= oj_sphere_ring_contains(side, ring, p, &is_beyond);
    return odd;
}

struct oj_sphere_place oj_sphere_nearest_edge(const struct oj_sphere_side *side,
                                              int64_t feature, struct oj_vec3 p,
                                              double limit2)
{
    const struct oj_flat *flat = side->flat;
    struct oj_sphere_place best = {limit2, INT64_MAX};
    if (oj_flat_is_points(flat))
        return (struct oj_sphere_place){oj_sphere_chord2(p, side->at[feature]),
                                        feature};
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        if (side->cap != NULL && flat->part_kind[part] == OJ_PART_POLYGON &&
            does_part_hold_point(side, part, p))
            return (struct oj_sphere_place){0.0, -1};
        for (int64_t r = flat->ring_offset[part];
             r < flat->ring_offset[part + 1]; r++)
            find_nearest_in_ring(side, r, p, &best);
    }
    if (best.vertex == INT64_MAX)
        best.chord2 = INFINITY;
    return best;
}
