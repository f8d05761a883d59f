#include "ellipsoid_pair_distance.h"

#include "ellipsoid_edge_distance.h"

int oj_flat_has_points_only(const struct oj_flat *flat)
{
    return (flat->part_kinds & ~(unsigned)OJ_PART_POINT) == 0;
}

/* --- roles ---------------------------------------------------------------- */

/* A feature of points, and one of any type. */
struct point_and_shape
{
    const struct oj_sphere_side *points, *shapes;
    int64_t of_points, of_shapes;
    int is_turned; /* 1: the points are the join feature */
};

static int has_edges(const struct oj_sphere_side *side, int64_t feature)
{
    return (oj_flat_kinds(side->flat, feature) & ~(unsigned)OJ_PART_POINT) != 0;
}

static struct point_and_shape
find_point_and_shape(const struct oj_ellipsoid_sides *sides, int64_t a,
                     int64_t b)
{
    struct point_and_shape roles = {sides->input, sides->join, a, b, 0};
    if (has_edges(sides->input, a))
        roles = (struct point_and_shape){sides->join, sides->input, b, a, 1};
    return roles;
}

/* --- walk over a feature -------------------------------------------------- */

/* Callbacks of a search for the parts of a feature; user: the state of the
 * search. */
struct part_visits
{
    int (*does_part_hold_point)(void *user, int64_t part); /* 1: p is inside of
                                                        the polygon part */
    void (*visit_point)(void *user, int64_t vertex);
    oj_sphere_edges_visit *visit_edges;
};

/* Visits the point parts of a feature that has edges, and those of its edges
 * that are within limit2, a squared chord, of p. Returns 1, and stops, if p is
 * inside of a polygon part. */
static int visit_parts_within_reach(const struct oj_sphere_side *side,
                                    int64_t feature, struct oj_vec3 p,
                                    double limit2,
                                    const struct part_visits *visits,
                                    void *user)
{
    const struct oj_flat *flat = side->flat;
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        if (side->cap != NULL && flat->part_kind[part] == OJ_PART_POLYGON &&
            visits->does_part_hold_point(user, part))
            return 1;
        for (int64_t r = flat->ring_offset[part];
             r < flat->ring_offset[part + 1]; r++)
        {
            int64_t first = flat->vertex_offset[r];
            if (first + 1 == flat->vertex_offset[r + 1])
                visits->visit_point(user, first);
            else
                oj_sphere_visit_edges(side, r, p, &limit2, visits->visit_edges,
                                      user);
        }
    }
    return 0;
}

/* --- bounds by chords ----------------------------------------------------- */

/* Returns the squared distance of p from the chord a b, a straight segment
 * whose squared length is chord2. */
static double squared_distance_from_chord(struct oj_vec3 p, struct oj_vec3 a,
                                          struct oj_vec3 b, double chord2)
{
    struct oj_vec3 to_p = oj_sphere_vec3_sub(p, a);
    struct oj_vec3 chord = oj_sphere_vec3_sub(b, a);
    double along = oj_sphere_vec3_dot(to_p, chord);
    if (!(along > 0.0))
        return oj_sphere_vec3_dot(to_p, to_p);
    if (along >= chord2)
        return oj_sphere_chord2(p, b);
    along /= chord2;
    to_p.x -= along * chord.x;
    to_p.y -= along * chord.y;
    to_p.z -= along * chord.z;
    return oj_sphere_vec3_dot(to_p, to_p);
}

/* Bounds of the chord to the nearest point of a feature. */
struct chord_bounds_search
{
    const struct oj_sphere_side *side;
    double bulge; /* h of a chord of length 1 (oj_ellipsoid.h) */
    struct oj_vec3 p;
    double least, most;
    int is_in_lens; /* 1: p may be between an edge and its plane section */
};

static void bound_chord_to_edges(void *user, int64_t first, int64_t end,
                                 double *limit2)
{
    struct chord_bounds_search *s = user;
    const struct oj_vec3 *at = s->side->at;
    for (int64_t v = first; v < end; v++)
    {
        double chord2 = oj_sphere_chord2(at[v], at[v + 1]);
        double h = s->bulge * chord2 + OJ_ELLIPSOID_SLACK;
        double d2 = squared_distance_from_chord(s->p, at[v], at[v + 1], chord2);
        double d;
        if (d2 > (s->most + h) * (s->most + h) && d2 > 9.0 * h * h)
            continue;
        d = sqrt(d2);
        if (d <= 3.0 * h)
        {
            s->is_in_lens = 1;
            s->least = 0.0;
        }
        else if (d - h < s->least)
            s->least = d - h;
        if (d + h < s->most)
            s->most = d + h;
        if (s->most * s->most < *limit2)
            *limit2 = s->most * s->most;
    }
}

static void bound_chord_to_vertex(void *user, int64_t vertex)
{
    struct chord_bounds_search *s = user;
    double d = sqrt(oj_sphere_chord2(s->p, s->side->at[vertex]));
    s->least = d < s->least ? d : s->least;
    s->most = d < s->most ? d : s->most;
}

/* Returns 1 if p is surely inside of the polygon part; 0 if it is outside or
 * may be in a lens. */
static int does_part_surely_hold_point(void *user, int64_t part)
{
    const struct chord_bounds_search *s = user;
    const struct oj_flat *flat = s->side->flat;
    int odd = 0, is_beyond;
    for (int64_t r = flat->ring_offset[part]; r < flat->ring_offset[part + 1];
         r++)
        odd ^= oj_sphere_ring_contains(s->side, r, s->p, &is_beyond);
    for (int64_t r = flat->ring_offset[part];
         odd && r < flat->ring_offset[part + 1]; r++)
    {
        struct chord_bounds_search lenses = {s->side,  s->bulge, s->p,
                                             INFINITY, INFINITY, 0};
        double none = 0.0;
        oj_sphere_visit_edges(s->side, r, s->p, &none, bound_chord_to_edges,
                              &lenses);
        odd = !lenses.is_in_lens;
    }
    return odd;
}

/* Sets s->least and s->most to bounds of the chord from s->p to a feature with
 * edges. */
static void bound_chord_to_feature(struct chord_bounds_search *s,
                                   int64_t feature, double limit2)
{
    static const struct part_visits visits = {does_part_surely_hold_point,
                                              bound_chord_to_vertex,
                                              bound_chord_to_edges};
    if (visit_parts_within_reach(s->side, feature, s->p, limit2, &visits, s))
        s->least = s->most = 0.0;
}

struct oj_chord2_range
oj_ellipsoid_chord_range(const struct oj_ellipsoid_sides *sides, int64_t a,
                         int64_t b, double limit2)
{
    const struct point_and_shape roles = find_point_and_shape(sides, a, b);
    struct chord_bounds_search s = {
        .side = roles.shapes,
        .bulge = oj_ellipsoid_bulge_factor(sides->ellipsoid),
        .least = INFINITY,
        .most = INFINITY};
    int64_t v, end;
    oj_flat_vertex_range(roles.points->flat, roles.of_points, &v, &end);
    for (; v < end && s.most > 0.0; v++)
    {
        s.p = roles.points->at[v];
        if (oj_flat_is_points(roles.shapes->flat))
            bound_chord_to_vertex(&s, roles.of_shapes);
        else
            bound_chord_to_feature(&s, roles.of_shapes, limit2);
    }
    return (struct oj_chord2_range){s.least * s.least, s.most * s.most};
}

/* --- distances ------------------------------------------------------------ */

/* The nearest place of a feature to p. */
struct nearest_place_search
{
    const struct oj_ellipsoid_sides *sides;
    const struct oj_sphere_side *side; /* the side of the feature */
    double bulge;
    struct oj_ellipsoid_vertex p;
    double metres, x, y;
    int64_t vertex; /* first vertex of the nearest edge, or the nearest point
                       part; -1 if p is inside */
};

static struct oj_ellipsoid_vertex
vertex_of_side(const struct oj_sphere_side *side, int64_t v)
{
    struct oj_ellipsoid_vertex vertex = {side->flat->x[v], side->flat->y[v],
                                         side->at[v]};
    return vertex;
}

static void measure_nearest_of_edges(void *user, int64_t first, int64_t end,
                                     double *limit2)
{
    struct nearest_place_search *s = user;
    const struct oj_vec3 *at = s->side->at;
    for (int64_t v = first; v < end; v++)
    {
        double chord2 = oj_sphere_chord2(at[v], at[v + 1]);
        double most = sqrt(*limit2) + s->bulge * chord2 + OJ_ELLIPSOID_SLACK;
        struct oj_ellipsoid_vertex a, b;
        struct oj_edge_foot foot;
        if (squared_distance_from_chord(s->p.at, at[v], at[v + 1], chord2) >
            most * most)
            continue;
        a = vertex_of_side(s->side, v);
        b = vertex_of_side(s->side, v + 1);
        foot = oj_edge_foot_find(s->sides->ellipsoid, s->sides->geodesic, &s->p,
                                 &a, &b);
        if (foot.metres > s->metres ||
            (foot.metres == s->metres && v >= s->vertex))
            continue;
        s->metres = foot.metres;
        s->vertex = v;
        s->x = foot.is_vertex ? foot.x
                              : oj_sphere_longitude_at_edge(foot.x, a.x, b.x);
        s->y = foot.y;
        chord2 = oj_ellipsoid_most_chord2(foot.metres /
                                          s->sides->ellipsoid->semi_major);
        *limit2 = chord2 < *limit2 ? chord2 : *limit2;
    }
}

static void measure_vertex(void *user, int64_t v)
{
    struct nearest_place_search *s = user;
    const struct oj_flat *flat = s->side->flat;
    double metres = oj_geodesic_metres(s->sides->geodesic, s->p.x, s->p.y,
                                       flat->x[v], flat->y[v]);
    if (metres > s->metres || (metres == s->metres && v >= s->vertex))
        return;
    s->metres = metres;
    s->vertex = v;
    s->x = flat->x[v];
    s->y = flat->y[v];
}

/* State of a visit of the edges of a ring whose lenses may contain p. */
struct lens_search
{
    struct nearest_place_search *place;
    int64_t ring;
    int is_odd; /* 1: the replacement of edges by arcs changes the number of
                   edges that the way out of the ring crosses by an odd
                   number */
};

/* Replaces the plane section of each edge whose lens may contain p by two arcs,
 * from its ends to a point that is on the other side of the edge than p. Since
 * p is not between these arcs and the edge, p is in the ring of geodesic edges
 * if it is in the ring with the arcs. Flips is_odd for each replacement that
 * changes the number of crossings by an odd number. */
static void count_crossings_of_lenses(void *user, int64_t first, int64_t end,
                                      double *limit2)
{
    struct lens_search *l = user;
    struct nearest_place_search *s = l->place;
    const struct oj_vec3 *at = s->side->at;
    (void)limit2;
    for (int64_t v = first; v < end; v++)
    {
        double chord2 = oj_sphere_chord2(at[v], at[v + 1]);
        double h = s->bulge * chord2 + OJ_ELLIPSOID_SLACK;
        struct oj_ellipsoid_vertex a = vertex_of_side(s->side, v);
        struct oj_ellipsoid_vertex b = vertex_of_side(s->side, v + 1);
        struct oj_edge_foot foot;
        struct oj_vec3 left, q;
        double by;
        if (squared_distance_from_chord(s->p.at, a.at, b.at, chord2) >
            9.0 * h * h)
            continue;
        left = oj_sphere_vec3_cross(a.at, oj_sphere_vec3_sub(b.at, a.at));
        by = oj_sphere_vec3_dot(left, left);
        if (!(by > 0.0))
            continue; /* both ends are one point */
        foot = oj_edge_foot_find(s->sides->ellipsoid, s->sides->geodesic, &s->p,
                                 &a, &b);
        by = (foot.is_right ? 0.5 : -0.5) * sqrt(chord2 / by);
        q.x = 0.5 * (a.at.x + b.at.x) + by * left.x;
        q.y = 0.5 * (a.at.y + b.at.y) + by * left.y;
        q.z = 0.5 * (a.at.z + b.at.z) + by * left.z;
        l->is_odd ^=
            oj_sphere_path_crosses_arc(s->side, l->ring, s->p.at, a.at, b.at) ^
            oj_sphere_path_crosses_arc(s->side, l->ring, s->p.at, a.at, q) ^
            oj_sphere_path_crosses_arc(s->side, l->ring, s->p.at, q, b.at);
    }
}

static int does_part_hold_point(void *user, int64_t part)
{
    struct nearest_place_search *s = user;
    const struct oj_flat *flat = s->side->flat;
    int odd = 0;
    for (int64_t r = flat->ring_offset[part]; r < flat->ring_offset[part + 1];
         r++)
    {
        int is_beyond;
        double none = 0.0;
        struct lens_search lenses = {s, r, 0};
        odd ^= oj_sphere_ring_contains(s->side, r, s->p.at, &is_beyond);
        if (is_beyond)
            continue;
        oj_sphere_visit_edges(s->side, r, s->p.at, &none,
                              count_crossings_of_lenses, &lenses);
        odd ^= lenses.is_odd;
    }
    return odd;
}

/* Sets s to the place of the feature, which has edges, that is nearest to s->p,
 * if it is within limit2, a squared chord. */
static void find_nearest_point_of_feature(struct nearest_place_search *s,
                                          int64_t feature, double limit2)
{
    static const struct part_visits visits = {
        does_part_hold_point, measure_vertex, measure_nearest_of_edges};
    if (!visit_parts_within_reach(s->side, feature, s->p.at, limit2, &visits,
                                  s))
        return;
    s->metres = 0.0;
    s->vertex = -1;
    s->x = s->p.x;
    s->y = s->p.y;
}

/* Returns the nearest points of two features that consist of points. */
static struct oj_nearest_points
find_nearest_of_point_features(const struct oj_ellipsoid_sides *sides,
                               int64_t a, int64_t b)
{
    const struct oj_flat *from = sides->input->flat, *to = sides->join->flat;
    struct oj_nearest_points best = {INFINITY, NAN, NAN, NAN, NAN};
    double unit = sides->ellipsoid->semi_major;
    int64_t v, end, first_b, end_b;
    oj_flat_vertex_range(from, a, &v, &end);
    oj_flat_vertex_range(to, b, &first_b, &end_b);
    for (; v < end; v++)
    {
        for (int64_t w = first_b; w < end_b; w++)
        {
            double metres;
            if (best.distance < INFINITY &&
                oj_ellipsoid_least_distance(
                    oj_sphere_chord2(sides->input->at[v], sides->join->at[w])) *
                        unit >
                    best.distance)
                continue;
            metres = oj_geodesic_metres(sides->geodesic, from->x[v], from->y[v],
                                        to->x[w], to->y[w]);
            if (metres < best.distance)
                best = (struct oj_nearest_points){
                    metres, from->x[v], from->y[v], to->x[w], to->y[w]};
        }
    }
    return best;
}

struct oj_nearest_points
oj_ellipsoid_find_nearest_points(const struct oj_ellipsoid_sides *sides,
                                 int64_t a, int64_t b, double most2)
{
    const struct point_and_shape roles = find_point_and_shape(sides, a, b);
    const struct oj_ellipsoid *ellipsoid = sides->ellipsoid;
    struct nearest_place_search s = {.sides = sides,
                                     .side = roles.shapes,
                                     .bulge =
                                         oj_ellipsoid_bulge_factor(ellipsoid)};
    struct oj_nearest_points best = {INFINITY, NAN, NAN, NAN, NAN};
    double limit2 = oj_ellipsoid_most_chord2(
        oj_ellipsoid_most_distance(ellipsoid, most2) + OJ_EDGE_FAR_ERROR);
    int64_t v, end;
    if (!has_edges(roles.shapes, roles.of_shapes))
        return find_nearest_of_point_features(sides, a, b);
    oj_flat_vertex_range(roles.points->flat, roles.of_points, &v, &end);
    for (; v < end; v++)
    {
        s.p = vertex_of_side(roles.points, v);
        s.metres = INFINITY;
        s.vertex = INT64_MAX;
        find_nearest_point_of_feature(&s, roles.of_shapes, limit2);
        if (!(s.metres < best.distance))
            continue;
        best = (struct oj_nearest_points){s.metres, s.p.x, s.p.y, s.x, s.y};
        if (roles.is_turned)
            best = (struct oj_nearest_points){s.metres, s.x, s.y, s.p.x, s.p.y};
        most2 = oj_ellipsoid_most_chord2(s.metres / ellipsoid->semi_major);
        limit2 = most2 < limit2 ? most2 : limit2;
    }
    return best;
}
