#include "ellipsoid_edge_distance.h"

#define RADIANS (3.14159265358979323846 / 180.0)

/* Number of steps towards the nearest point after which every second step
 * halves the bounds instead. */
#define FREE_STEPS 12

/* Maximum number of steps; enough to halve any edge down to the error. */
#define MOST_STEPS 200

/* Size of the stack with which far edges are halved. */
#define MOST_PIECES 64

/* Maximum rounding error of a scalar product, relative to the product of the
 * lengths of both vectors. */
#define ROUNDING 4e-16

/* The search for the nearest point of one edge. */
struct edge_search
{
    const struct oj_geodesic *geodesic;
    const struct oj_ellipsoid_vertex *p, *end[2];
    struct oj_geodesic_line line; /* from end[0] to end[1] */
    double unit;                  /* semi-major axis, metres */
    double radius, most_radius;   /* r and R, metres */
    struct oj_edge_foot best;
};

/* A probed point of the edge. */
struct edge_probe
{
    double metres, slope; /* D and D' (ellipsoid_edge_distance.h) */
};

static void replace_if_nearer_foot(struct edge_search *s,
                                   struct oj_edge_foot foot)
{
    if (foot.metres < s->best.metres)
        s->best = foot;
}

/* Returns the distance of an end from p, and makes the end the best point if it
 * is nearer. */
static double measure_end_of_edge(struct edge_search *s, int end)
{
    const struct oj_ellipsoid_vertex *v = s->end[end];
    double metres =
        oj_geodesic_metres(s->geodesic, s->p->x, s->p->y, v->x, v->y);
    replace_if_nearer_foot(s, (struct oj_edge_foot){metres, v->x, v->y, 1, 0});
    return metres;
}

/* Returns distance and slope at the point of the edge that is t metres from
 * end[0], and makes this point the best one if it is nearer. */
static struct edge_probe measure_point_on_edge(struct edge_search *s, double t)
{
    const struct oj_ellipsoid_vertex *v = s->end[t > 0.0];
    struct oj_geodesic_point at = {v->x, v->y, s->line.course[t > 0.0]};
    struct edge_probe probe;
    double course[2], turn;
    int is_vertex = !(t > 0.0 && t < s->line.metres);
    if (!is_vertex)
        at = oj_geodesic_line_at(&s->line, t);
    probe.metres = oj_geodesic_azimuths(s->geodesic, s->p->x, s->p->y,
                                        at.longitude, at.latitude, course);
    turn = (course[1] - at.course) * RADIANS;
    probe.slope = cos(turn);
    /* The line from p runs to the left across the edge if p is on its right. */
    replace_if_nearer_foot(s, (struct oj_edge_foot){probe.metres, at.longitude,
                                                    at.latitude, is_vertex,
                                                    sin(turn) < 0.0});
    return probe;
}

/* Returns 1 if the distance of the probe exceeds the least distance by no more
 * than the error (proof: ellipsoid_edge_distance.h). */
static int is_probe_near_enough(const struct edge_search *s,
                                const struct edge_probe *probe)
{
    double error = OJ_EDGE_NEAR_ERROR * s->unit;
    double x = probe->metres / s->radius;
    double least = x < 1.57 ? x / tan(x) : 0.0; /* q */
    double share = probe->slope * probe->slope;
    if (probe->metres <= error)
        return 1;
    share = share < least ? share / least : 1.0;
    return probe->metres * share / (1.0 + sqrt(1.0 - share)) <= error;
}

/* Returns the way in metres along the edge from a probed point to the foot of
 * the perpendicular from p, computed on a sphere; below 0 towards end[0]. */
static double step_to_foot_on_sphere(const struct edge_search *s,
                                     const struct edge_probe *probe)
{
    double radius = sqrt(s->radius * s->most_radius);
    double angle = probe->metres / radius;
    return -radius * atan2(sin(angle) * probe->slope, cos(angle));
}

/* Finds the nearest point of the piece low .. high, on which the distance is
 * convex; begins at t. */
static void find_foot_on_convex_piece(struct edge_search *s, double low,
                                      double high, double t)
{
    const double first = low, last = high;
    for (int i = 0; i < MOST_STEPS; i++)
    {
        struct edge_probe probe = measure_point_on_edge(s, t);
        if (is_probe_near_enough(s, &probe) ||
            (t <= first && probe.slope >= 0.0) ||
            (t >= last && probe.slope <= 0.0))
            return;
        if (probe.slope > 0.0)
            high = t;
        else
            low = t;
        if (high - low <= OJ_EDGE_NEAR_ERROR * s->unit)
            return;
        t += step_to_foot_on_sphere(s, &probe);
        if (i >= FREE_STEPS && i % 2 == 1)
            t = low + 0.5 * (high - low);
        else if (t <= low)
            t = low > first ? low + 0.5 * (high - low) : first;
        else if (t >= high)
            t = high < last ? low + 0.5 * (high - low) : last;
    }
}

/* Returns a lower bound of the distance on a piece of this length whose ends
 * have the distances d0 and d1, at least one of which is beyond pi r / 2. */
static double least_distance_of_far_piece(const struct edge_search *s,
                                          double length, double d0, double d1)
{
    double least = d0 < d1 ? d0 : d1, rise = fabs(d1 - d0);
    double m = 0.5 * (d0 + d1 - length), bend, u;
    if (!(m > 0.0))
        return 0.0;
    bend = 1.0 / (tan(m / s->most_radius) * s->most_radius);
    /* Since m < pi R, tan(m / R) is negative exactly beyond pi R / 2, where the
     * least distance is at an end. */
    if (!(bend > 0.0) || rise >= 0.5 * bend * length * length)
        return least;
    u = 0.5 * length - rise / (bend * length);
    return least - 0.5 * bend * u * u;
}

/* A piece of an edge with the distances of its ends. */
struct edge_piece
{
    double low, high, d0, d1;
};

/* Finds the nearest point of an edge whose ends have the distances d0 and d1
 * and are the best points so far. */
static void find_foot_by_pieces(struct edge_search *s, double d0, double d1)
{
    const double near = 0.5 * 3.14159265358979323846 * s->radius;
    struct edge_piece stack[MOST_PIECES];
    int depth = 1;
    stack[0] = (struct edge_piece){0.0, s->line.metres, d0, d1};
    while (depth > 0)
    {
        struct edge_piece at = stack[--depth];
        double middle = at.low + 0.5 * (at.high - at.low), d;
        if (at.d0 < near && at.d1 < near)
        {
            find_foot_on_convex_piece(s, at.low, at.high, middle);
            continue;
        }
        if (least_distance_of_far_piece(s, at.high - at.low, at.d0, at.d1) >=
                s->best.metres - OJ_EDGE_FAR_ERROR * s->unit ||
            depth + 2 > MOST_PIECES)
            continue;
        d = measure_point_on_edge(s, middle).metres;
        stack[depth++] = (struct edge_piece){middle, at.high, d, at.d1};
        stack[depth++] = (struct edge_piece){at.low, middle, at.d0, d};
    }
}

/* Returns 1 if the angle t at v, between the geodesics to p and to the other
 * end w of the edge, is surely at least 90 degrees. Let r be the least radius
 * of curvature, and l and k the lengths of the two geodesics. A chord, as a
 * vector, differs from l times the geodesic's direction at v by at most l^2 /
 * 2r. So the scalar product of the two chords differs from l k cos t by at most
 * l k (l + k) / 2r, and cos t < 0 if the product is below minus that. l is at
 * most 1.111 times its chord, since chords are at most sqrt(2) r here. */
static int is_angle_at_vertex_wide(const struct edge_search *s,
                                   const struct oj_ellipsoid_vertex *v,
                                   const struct oj_ellipsoid_vertex *w)
{
    struct oj_vec3 to_p = oj_sphere_vec3_sub(s->p->at, v->at);
    struct oj_vec3 to_w = oj_sphere_vec3_sub(w->at, v->at);
    double l = 1.111 * sqrt(oj_sphere_vec3_dot(to_p, to_p));
    double k = 1.111 * sqrt(oj_sphere_vec3_dot(to_w, to_w));
    return oj_sphere_vec3_dot(to_p, to_w) <
           -0.5 * l * k * (l + k) * s->unit / s->radius - ROUNDING * (l + k);
}

/* Returns 1 if the vertex is surely within pi r / 2 of p. */
static int is_vertex_surely_near(const struct edge_search *s,
                                 const struct oj_ellipsoid_vertex *v)
{
    double radius = s->radius / s->unit;
    return oj_sphere_chord2(s->p->at, v->at) < 1.999 * radius * radius;
}

static void make_line_of_edge(struct edge_search *s)
{
    oj_geodesic_line_make(s->geodesic, s->end[0]->x, s->end[0]->y, s->end[1]->x,
                          s->end[1]->y, &s->line);
}

/* Returns the share of the edge up to the point of its chord that is nearest to
 * p. */
static double share_of_foot_on_chord(const struct edge_search *s)
{
    struct oj_vec3 chord = oj_sphere_vec3_sub(s->end[1]->at, s->end[0]->at);
    double share =
        oj_sphere_vec3_dot(oj_sphere_vec3_sub(s->p->at, s->end[0]->at), chord) /
        oj_sphere_vec3_dot(chord, chord);
    return share > 0.0 ? (share < 1.0 ? share : 1.0) : 0.0;
}

static void find_foot_of_edge(struct edge_search *s)
{
    double share;
    if (!is_vertex_surely_near(s, s->end[0]) ||
        !is_vertex_surely_near(s, s->end[1]))
    {
        double d0 = measure_end_of_edge(s, 0), d1 = measure_end_of_edge(s, 1);
        double length = 1.001 * s->unit *
                        sqrt(oj_sphere_chord2(s->end[0]->at, s->end[1]->at));
        if (least_distance_of_far_piece(s, length, d0, d1) >= s->best.metres)
            return; /* no line is needed: the edge is at most `length` long, and
                       a shorter edge has a higher bound */
        make_line_of_edge(s);
        find_foot_by_pieces(s, d0, d1);
        return;
    }
    for (int end = 0; end < 2; end++)
    {
        if (is_angle_at_vertex_wide(s, s->end[end], s->end[!end]))
        {
            measure_end_of_edge(s, end);
            return;
        }
    }
    make_line_of_edge(s);
    if (s->line.metres <= OJ_EDGE_NEAR_ERROR * s->unit)
    {
        measure_end_of_edge(s, 0);
        measure_end_of_edge(s, 1);
        return;
    }
    share = share_of_foot_on_chord(s);
    find_foot_on_convex_piece(s, 0.0, s->line.metres, share * s->line.metres);
}

struct oj_edge_foot oj_edge_foot_find(const struct oj_ellipsoid *ellipsoid,
                                      const struct oj_geodesic *geodesic,
                                      const struct oj_ellipsoid_vertex *p,
                                      const struct oj_ellipsoid_vertex *a,
                                      const struct oj_ellipsoid_vertex *b)
{
    int turn = b->x < a->x || (b->x == a->x && b->y < a->y);
    struct edge_search s;
    s.geodesic = geodesic;
    s.p = p;
    s.end[turn] = a;
    s.end[!turn] = b;
    s.unit = ellipsoid->semi_major;
    s.radius = oj_ellipsoid_least_radius(ellipsoid) * s.unit;
    s.most_radius = oj_ellipsoid_most_radius(ellipsoid) * s.unit;
    s.best = (struct oj_edge_foot){INFINITY, (double)NAN, (double)NAN, 0, 0};
    find_foot_of_edge(&s);
    s.best.is_right ^= turn;
    return s.best;
}
