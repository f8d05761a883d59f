#include "plain_sphere.h"

#include "../../../flatten/base/oj_alloc.h"

#include <math.h>
#include <string.h>

#define PLAIN_RADIUS 6371008.7714L

#define PI 3.14159265358979323846264338327950288L

/* Vectors shorter than this have no reliable direction. */
#define NOTHING 1e-17L

/* Limit of the squared chord between the mean of a ring's vertices and the
 * farthest vertex (2 is a hemisphere). From this value on, points near the mean
 * may be on either side of the ring. */
#define WIDE 1.99L

/* Margin greater than the rounding error of any chord. */
#define SLACK 1e-9

/* radius of a ball that contains the whole sphere */
#define EVERYWHERE 3.0L

/* --- vectors -------------------------------------------------------------- */

static struct wide3 subtract_wide3(struct wide3 a, struct wide3 b)
{
    return (struct wide3){a.x - b.x, a.y - b.y, a.z - b.z};
}

static long double dot_wide3(struct wide3 a, struct wide3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static struct wide3 cross_wide3(struct wide3 a, struct wide3 b)
{
    return (struct wide3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z,
                          a.x * b.y - a.y * b.x};
}

static long double length_of_wide3(struct wide3 a)
{
    return sqrtl(dot_wide3(a, a));
}

static struct wide3 scale_wide3(struct wide3 a, long double by)
{
    return (struct wide3){a.x * by, a.y * by, a.z * by};
}

/* Returns the distance of two points along a straight line through space. */
static long double plain_chord(struct wide3 p, struct wide3 q)
{
    return length_of_wide3(subtract_wide3(p, q));
}

/* Returns the vector of a point of an ellipsoid with this flattening, in units
 * of its semi-major axis. */
static struct wide3 vector_of_coordinates(double longitude, double latitude,
                                          double flattening)
{
    long double l = remainderl((long double)longitude, 360) * (PI / 180);
    long double b = (long double)latitude * (PI / 180);
    long double f = flattening, minor2 = (1 - f) * (1 - f), n = 1;
    if (flattening != 0.0)
        n = 1 / sqrtl(cosl(b) * cosl(b) + minor2 * sinl(b) * sinl(b));
    return (struct wide3){n * cosl(b) * cosl(l), n * cosl(b) * sinl(l),
                          n * minor2 * sinl(b)};
}

/* Returns the angle between unit vectors. It is precise at any angle. */
static long double angle_between(struct wide3 a, struct wide3 b)
{
    return atan2l(length_of_wide3(cross_wide3(a, b)), dot_wide3(a, b));
}

/* Returns the point of the arc a -> b nearest to p. */
static struct wide3 nearest_of_arc(struct wide3 p, struct wide3 a,
                                   struct wide3 b)
{
    struct wide3 end = dot_wide3(p, a) > dot_wide3(p, b) ? a : b;
    struct wide3 n = cross_wide3(a, subtract_wide3(b, a)), foot;
    long double n_length = length_of_wide3(n), foot_length;
    /* chords decide which end is nearer, since dot products are imprecise near
     * p */
    if (plain_chord(p, a) != plain_chord(p, b))
        end = plain_chord(p, a) < plain_chord(p, b) ? a : b;
    if (!(n_length > NOTHING))
        return end;
    n = scale_wide3(n, 1 / n_length);
    foot = subtract_wide3(p, scale_wide3(n, dot_wide3(n, p)));
    foot_length = length_of_wide3(foot);
    if (!(foot_length > NOTHING) || dot_wide3(cross_wide3(a, foot), n) < 0 ||
        dot_wide3(cross_wide3(foot, b), n) < 0)
        return end;
    return scale_wide3(foot, 1 / foot_length);
}

/* --- rings ---------------------------------------------------------------- */

/* Returns the mean direction of the vertices first .. end - 1; north if it is
 * not defined. */
static struct wide3 mean_direction(const struct wide3 *at, int64_t first,
                                   int64_t end)
{
    struct wide3 sum = {0, 0, 0};
    for (int64_t v = first; v < end; v++)
    {
        sum.x += at[v].x;
        sum.y += at[v].y;
        sum.z += at[v].z;
    }
    if (!(length_of_wide3(sum) > 1e-9L * (long double)(end - first)))
        return (struct wide3){0, 0, 1};
    return scale_wide3(sum, 1 / length_of_wide3(sum));
}

/* Returns the angle of an arc a -> b around the axis through p. */
static long double angle_of_arc_around_point(struct wide3 p, struct wide3 a,
                                             struct wide3 b)
{
    return atan2l(dot_wide3(p, cross_wide3(a, b)),
                  dot_wide3(a, b) - dot_wide3(p, a) * dot_wide3(p, b));
}

/* Returns the winding number of the ring around the axis through p. */
static long winding_number_around_point(const struct wide3 *at, int64_t first,
                                        int64_t last, struct wide3 p)
{
    long double sum = 0;
    for (int64_t v = first; v < last; v++)
        sum += angle_of_arc_around_point(p, at[v], at[v + 1]);
    return lroundl(sum / (2 * PI));
}

/* Returns 1 if the arcs p -> q and a -> b cross. */
static int arcs_cross(struct wide3 p, struct wide3 q, struct wide3 a,
                      struct wide3 b)
{
    struct wide3 m = cross_wide3(p, q),
                 n = cross_wide3(a, subtract_wide3(b, a)), at;
    if ((dot_wide3(m, a) >= 0) == (dot_wide3(m, b) >= 0))
        return 0;
    at = cross_wide3(m, n);
    if (dot_wide3(at, a) + dot_wide3(at, b) < 0)
        at = scale_wide3(at, -1);
    return dot_wide3(cross_wide3(p, at), m) > 0 &&
           dot_wide3(cross_wide3(at, q), m) > 0;
}

static int count_crossings(const struct wide3 *at, int64_t first, int64_t last,
                           struct wide3 p, struct wide3 q)
{
    int n = 0;
    for (int64_t v = first; v < last; v++)
        n += arcs_cross(p, q, at[v], at[v + 1]);
    return n;
}

/* Returns a point a few degrees away from p, in any direction. */
static struct wide3 point_at_small_angle(struct wide3 p)
{
    struct wide3 axis = {fabsl(p.x) < 0.5L, 0, 0}, w;
    axis.y = axis.x == 0;
    w = cross_wide3(p, axis);
    w = scale_wide3(w, 0.1L / length_of_wide3(w));
    w = (struct wide3){p.x + w.x, p.y + w.y, p.z + w.z};
    return scale_wide3(w, 1 / length_of_wide3(w));
}

static int ring_contains_point(const struct oj_plain_sphere *side, int64_t ring,
                               struct wide3 p)
{
    int64_t first = side->flat->vertex_offset[ring];
    int64_t last = side->flat->vertex_offset[ring + 1] - 1;
    struct wide3 middle = mean_direction(side->at, first, last), opposite, by;
    long double farthest = 0;
    for (int64_t v = first; v < last; v++)
        farthest = fmaxl(farthest, plain_chord(side->at[v], middle));
    /* within a hemisphere, the winding number is equal for p and its antipode;
     * the distance to the mean distinguishes them */
    if (farthest * farthest < WIDE)
        return plain_chord(p, middle) <= farthest &&
               winding_number_around_point(side->at, first, last, p) % 2 != 0;
    opposite = scale_wide3(middle, -1);
    if (plain_chord(p, middle) > 1e-6L)
        return count_crossings(side->at, first, last, p, opposite) % 2 != 0;
    /* the points are antipodal, so the arc is undefined: use two arcs by way of
     * a third point */
    by = point_at_small_angle(middle);
    return (count_crossings(side->at, first, last, p, by) +
            count_crossings(side->at, first, last, by, opposite)) %
               2 !=
           0;
}

static int part_contains_point(const struct oj_plain_sphere *side, int64_t part,
                               struct wide3 p)
{
    int odd = 0;
    if (side->flat->part_kind[part] != OJ_PART_POLYGON)
        return 0;
    for (int64_t ring = side->flat->ring_offset[part];
         ring < side->flat->ring_offset[part + 1]; ring++)
        odd ^= ring_contains_point(side, ring, p);
    return odd;
}

/* --- edges on an ellipsoid -------------------------------------------------
 */

/* Length, in semi-major axes, of the pieces into which a geodesic ring is
 * divided to locate points; each piece counts as the section of the ellipsoid
 * by a plane. */
#define RING_PIECE 0.0005

/* Length, in semi-major axes, of the pieces of an edge on which a
 * golden-section search finds the nearest point. */
#define PIECE (1.0 / 64)

/* Beyond FAR (9885 km on the Earth) a piece may have several nearest points, so
 * its points every FAR_PIECE are measured instead. Beyond CONCAVE, which is
 * more than a quarter of the circle with the greatest radius of curvature,
 * distances along a piece are concave, so its ends are nearest. */
#define FAR 1.55
#define CONCAVE 1.61
#define FAR_PIECE (1.0 / 6400)

#define GOLDEN 0.6180339887498949

static void geodesic_of_edge(const struct oj_plain_sphere *side, int64_t v,
                             struct oj_geodesic_line *line)
{
    const struct oj_flat *f = side->flat;
    oj_geodesic_line_make(side->geodesic, f->x[v], f->y[v], f->x[v + 1],
                          f->y[v + 1], line);
}

static struct wide3 unit_vector(struct wide3 v)
{
    return scale_wide3(v, 1 / length_of_wide3(v));
}

/* State of a loop over the pieces of a ring, which counts crossings and the
 * angle around p. */
struct ring_walk
{
    struct wide3 p, q, r; /* p is the axis of the turn; crossings with the arcs
                             p -> q -> r are counted */
    long double turn;     /* angle around p */
    int n_crossed;
};

static void add_piece_to_ring_walk(struct ring_walk *walk, struct wide3 a,
                                   struct wide3 b)
{
    walk->turn += angle_of_arc_around_point(walk->p, a, b);
    walk->n_crossed +=
        arcs_cross(walk->p, walk->q, a, b) + arcs_cross(walk->q, walk->r, a, b);
}

static void walk_ring_of_geodesics(const struct oj_plain_sphere *side,
                                   int64_t first, int64_t last,
                                   struct ring_walk *walk)
{
    double unit = side->ellipsoid.semi_major;
    struct wide3 a = unit_vector(side->at[first]);
    for (int64_t v = first; v < last; v++)
    {
        struct oj_geodesic_line line;
        double n;
        geodesic_of_edge(side, v, &line);
        n = ceil(line.metres / (RING_PIECE * unit));
        for (double i = 1.0; i < n; i++)
        {
            struct oj_geodesic_point at =
                oj_geodesic_line_at(&line, line.metres * (i / n));
            struct wide3 b = unit_vector(vector_of_coordinates(
                at.longitude, at.latitude, side->ellipsoid.flattening));
            add_piece_to_ring_walk(walk, a, b);
            a = b;
        }
        add_piece_to_ring_walk(walk, a, unit_vector(side->at[v + 1]));
        a = unit_vector(side->at[v + 1]);
    }
}

static int ring_of_geodesics_contains_point(const struct oj_plain_sphere *side,
                                            int64_t ring, struct wide3 at)
{
    int64_t first = side->flat->vertex_offset[ring];
    int64_t last = side->flat->vertex_offset[ring + 1] - 1;
    struct wide3 middle = mean_direction(side->at, first, last);
    struct ring_walk walk = {.p = unit_vector(at)};
    long double farthest = 0;
    int is_wide;
    for (int64_t v = first; v < last; v++)
        farthest =
            fmaxl(farthest, plain_chord(unit_vector(side->at[v]), middle));
    is_wide = farthest * farthest >= WIDE;
    /* Edges leave the circle around the vertices by much less than a tenth of
     * its radius. */
    if (!is_wide && plain_chord(walk.p, middle) > 1.1L * farthest)
        return 0;
    walk.q = walk.r = scale_wide3(middle, -1);
    if (plain_chord(walk.p, middle) < 1e-6L)
        walk.q = point_at_small_angle(middle);
    walk_ring_of_geodesics(side, first, last, &walk);
    return is_wide ? walk.n_crossed % 2 != 0
                   : lroundl(walk.turn / (2 * PI)) % 2 != 0;
}

static int part_of_geodesics_contains_point(const struct oj_plain_sphere *side,
                                            int64_t part, struct wide3 p)
{
    int odd = 0;
    if (side->flat->part_kind[part] != OJ_PART_POLYGON)
        return 0;
    for (int64_t ring = side->flat->ring_offset[part];
         ring < side->flat->ring_offset[part + 1]; ring++)
        odd ^= ring_of_geodesics_contains_point(side, ring, p);
    return odd;
}

/* A point and the edge from which its distance is measured. */
struct edge_measure
{
    const struct oj_geodesic *geodesic;
    double x, y, unit;
    struct oj_geodesic_line line;
};

static double metres_to_point_of_edge(const struct edge_measure *e, double t)
{
    struct oj_geodesic_point at = oj_geodesic_line_at(&e->line, t);
    return oj_geodesic_metres(e->geodesic, e->x, e->y, at.longitude,
                              at.latitude);
}

/* Returns the least distance between low and high, by golden sections. */
static double minimize_distance_by_golden_section(const struct edge_measure *e,
                                                  double low, double high)
{
    double s = high - GOLDEN * (high - low), t = low + GOLDEN * (high - low);
    double of_s = metres_to_point_of_edge(e, s),
           of_t = metres_to_point_of_edge(e, t), least;
    least = fmin(of_s, of_t);
    while (high - low > 1e-14 * e->unit)
    {
        if (of_s <= of_t)
        {
            high = t;
            t = s;
            of_t = of_s;
            s = high - GOLDEN * (high - low);
            of_s = metres_to_point_of_edge(e, s);
        }
        else
        {
            low = s;
            s = t;
            of_s = of_t;
            t = low + GOLDEN * (high - low);
            of_t = metres_to_point_of_edge(e, t);
        }
        least = fmin(least, fmin(of_s, of_t));
    }
    return least;
}

/* Returns the least distance on a piece between low and high, or best if that
 * is less. */
static double least_distance_on_piece(const struct edge_measure *e, double low,
                                      double high, double best)
{
    double of_low = metres_to_point_of_edge(e, low),
           of_high = metres_to_point_of_edge(e, high);
    double length = high - low;
    best = fmin(best, fmin(of_low, of_high));
    if (0.5 * (of_low + of_high - length) > best)
        return best; /* by the triangle inequality no point of the piece is
                        nearer */
    if (fmax(of_low, of_high) < FAR * e->unit)
        return fmin(best, minimize_distance_by_golden_section(e, low, high));
    if (fmin(of_low, of_high) - length > CONCAVE * e->unit)
        return best;
    for (double t = low; t < high; t += FAR_PIECE * e->unit)
        best = fmin(best, metres_to_point_of_edge(e, t));
    return best;
}

/* Returns the least distance from (x, y) to the edge of side that starts at
 * vertex v, or best if that is less. */
static double least_distance_on_edge(const struct oj_plain_sphere *side,
                                     int64_t v, double x, double y, double best)
{
    struct edge_measure e = {.geodesic = side->geodesic,
                             .x = x,
                             .y = y,
                             .unit = side->ellipsoid.semi_major};
    double n;
    geodesic_of_edge(side, v, &e.line);
    n = fmax(ceil(e.line.metres / (PIECE * e.unit)), 1.0);
    for (double i = 0.0; i < n; i++)
        best = least_distance_on_piece(&e, e.line.metres * (i / n),
                                       e.line.metres * ((i + 1.0) / n), best);
    return best;
}

/* Returns the distance in metres from vertex p of points to a feature with
 * edges; with to_interior, 0 inside of a polygon. */
static double metres_to_geodesics(const struct oj_plain_sphere *points,
                                  int64_t p, const struct oj_plain_sphere *side,
                                  int64_t feature, int to_interior)
{
    const struct oj_flat *flat = side->flat;
    double x = points->flat->x[p], y = points->flat->y[p], best = INFINITY;
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        if (to_interior &&
            part_of_geodesics_contains_point(side, part, points->at[p]))
            return 0.0;
        for (int64_t r = flat->ring_offset[part];
             r < flat->ring_offset[part + 1]; r++)
        {
            int64_t v = flat->vertex_offset[r];
            int64_t last = flat->vertex_offset[r + 1] - 1;
            best = fmin(best, oj_geodesic_metres(side->geodesic, x, y,
                                                 flat->x[v], flat->y[v]));
            for (; v < last; v++)
            {
                best = fmin(best,
                            oj_geodesic_metres(side->geodesic, x, y,
                                               flat->x[v + 1], flat->y[v + 1]));
                best = least_distance_on_edge(side, v, x, y, best);
            }
        }
    }
    return best;
}

/* --- features ------------------------------------------------------------- */

/* Returns the distance in metres from p to the nearest point of a feature; with
 * to_interior, 0 inside of a polygon. */
static double metres_to_feature(const struct oj_plain_sphere *side,
                                int64_t feature, int to_interior,
                                struct wide3 p)
{
    const struct oj_flat *flat = side->flat;
    struct wide3 best = scale_wide3(p, -1);
    if (oj_flat_is_points(flat))
        return (double)(angle_between(p, side->at[feature]) * PLAIN_RADIUS);
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        if (to_interior && part_contains_point(side, part, p))
            return 0.0;
        for (int64_t r = flat->ring_offset[part];
             r < flat->ring_offset[part + 1]; r++)
        {
            int64_t v = flat->vertex_offset[r];
            int64_t last = flat->vertex_offset[r + 1] - 1;
            do
            {
                int64_t w = v < last ? v + 1 : v;
                struct wide3 here = nearest_of_arc(p, side->at[v], side->at[w]);
                if (plain_chord(p, here) < plain_chord(p, best))
                    best = here;
            } while (++v < last);
        }
    }
    return (double)(angle_between(p, best) * PLAIN_RADIUS);
}

/* Sets *centre to the centre of a ball in space that contains a feature, and
 * returns its radius, or a negative number if the feature has no pairs. The
 * ball contains all vertices and is widened by the longest edge, because an
 * edge leaves its ends by less. A polygon that is not within a hemisphere gets
 * a ball of the whole sphere. */
static long double ball_around_feature(const struct oj_plain_sphere *side,
                                       int64_t feature, struct wide3 *centre)
{
    const struct oj_flat *flat = side->flat;
    long double radius = 0, longest = 0;
    int64_t first, end;
    oj_flat_vertex_range(flat, feature, &first, &end);
    *centre = end - first == 1 ? side->at[first]
                               : mean_direction(side->at, first, end);
    if (side->geodesic != NULL && end - first > 1)
    {
        struct wide3 of_sphere = *centre;
        of_sphere.z /= 1 - (long double)side->ellipsoid.flattening;
        *centre = scale_wide3(*centre, 1 / length_of_wide3(of_sphere));
    }
    for (int64_t v = first; v < end; v++)
    {
        if (!(fabs(flat->y[v]) <= 90.0))
            return -1;
        radius = fmaxl(radius, plain_chord(side->at[v], *centre));
    }
    if (first == end || oj_flat_is_points(flat))
        return first == end ? -1 : radius;
    if ((flat->part_kinds & OJ_PART_POLYGON) != 0 && radius * radius >= WIDE)
        radius = EVERYWHERE;
    for (int64_t r = flat->ring_offset[flat->part_offset[feature]];
         r < flat->ring_offset[flat->part_offset[feature + 1]]; r++)
    {
        for (int64_t v = flat->vertex_offset[r];
             v + 1 < flat->vertex_offset[r + 1]; v++)
            longest = fmaxl(longest, plain_chord(side->at[v], side->at[v + 1]));
    }
    return radius + longest;
}

void oj_plain_sphere_free(struct oj_plain_sphere *side)
{
    oj_free(side->at);
    oj_geodesic_close(side->geodesic);
    memset(side, 0, sizeof *side);
}

oj_status oj_plain_sphere_make(struct oj_plain_sphere *side,
                               const struct oj_flat *flat,
                               const struct oj_ellipsoid *ellipsoid,
                               struct oj_error *err)
{
    side->flat = flat;
    if (ellipsoid != NULL)
    {
        side->ellipsoid = *ellipsoid;
        OJ_TRY(oj_geodesic_open(ellipsoid, &side->geodesic, err));
    }
    OJ_NEW(side->at, flat->n_vertices, err);
    for (int64_t v = 0; v < flat->n_vertices; v++)
        side->at[v] = vector_of_coordinates(flat->x[v], flat->y[v],
                                            side->ellipsoid.flattening);
    return OJ_OK;
}

struct oj_box oj_plain_sphere_box(const struct oj_plain_sphere *side,
                                  int64_t feature)
{
    struct wide3 centre;
    double radius = (double)ball_around_feature(side, feature, &centre) + SLACK;
    struct oj_box box = {(double)centre.x - radius, (double)centre.z - radius,
                         (double)centre.x + radius, (double)centre.z + radius};
    return radius > 0.0 ? box : oj_box_empty();
}

double oj_plain_sphere_chord(const struct oj_plain_sphere *side, double metres)
{
    if (side->geodesic != NULL) /* no geodesic is shorter than its chord */
        return metres / side->ellipsoid.semi_major + SLACK;
    long double half = (long double)metres / PLAIN_RADIUS / 2;
    return (double)(half < PI / 2 ? 2 * sinl(half) : 2) + SLACK;
}

static int has_edges(const struct oj_flat *flat, int64_t feature)
{
    return (oj_flat_kinds(flat, feature) & ~(unsigned)OJ_PART_POINT) != 0;
}

/* Returns the metres along geodesics between the nearest points of two
 * features, of which one consists of points. With to_interior 1 the distance is
 * 0 inside of a polygon. */
static double metres_by_geodesics(const struct oj_plain_sphere *points,
                                  int64_t row,
                                  const struct oj_plain_sphere *side,
                                  int64_t feature, int to_interior)
{
    const struct oj_flat *a = points->flat, *b = side->flat;
    double least = INFINITY;
    int64_t first, end, first_b, end_b;
    if (has_edges(a, row))
        return metres_by_geodesics(side, feature, points, row, to_interior);
    oj_flat_vertex_range(a, row, &first, &end);
    oj_flat_vertex_range(b, feature, &first_b, &end_b);
    for (int64_t v = first; v < end && has_edges(b, feature); v++)
        least = fmin(
            least, metres_to_geodesics(points, v, side, feature, to_interior));
    if (has_edges(b, feature))
        return least;
    for (int64_t v = first; v < end; v++)
    {
        for (int64_t w = first_b; w < end_b; w++)
            least = fmin(least, oj_geodesic_metres(side->geodesic, a->x[v],
                                                   a->y[v], b->x[w], b->y[w]));
    }
    return least;
}

double oj_plain_sphere_metres(const struct oj_plain_sphere *points, int64_t row,
                              const struct oj_plain_sphere *side,
                              int64_t feature, int to_interior)
{
    double least = INFINITY;
    int64_t first, end;
    if (side->geodesic != NULL)
        return metres_by_geodesics(points, row, side, feature, to_interior);
    oj_flat_vertex_range(points->flat, row, &first, &end);
    for (int64_t v = first; v < end; v++)
        least = fmin(least, metres_to_feature(side, feature, to_interior,
                                              points->at[v]));
    return least;
}

double oj_plain_sphere_vertex_distance(const struct oj_plain_sphere *a,
                                       int64_t v,
                                       const struct oj_plain_sphere *b,
                                       int64_t w)
{
    return (double)(angle_between(a->at[v], b->at[w]) * PLAIN_RADIUS);
}

double oj_plain_sphere_directed_hausdorff(const struct oj_plain_sphere *a,
                                          int64_t feature_a,
                                          const struct oj_plain_sphere *b,
                                          int64_t feature_b, int of_segments)
{
    int64_t first, end, first_b, end_b;
    double most = 0.0;
    oj_flat_vertex_range(a->flat, feature_a, &first, &end);
    oj_flat_vertex_range(b->flat, feature_b, &first_b, &end_b);
    for (int64_t v = first; v < end; v++)
    {
        double least = INFINITY;
        if (of_segments)
            least = metres_to_feature(b, feature_b, 0, a->at[v]);
        for (int64_t w = first_b; w < end_b && !of_segments; w++)
            least = fmin(least, oj_plain_sphere_vertex_distance(a, v, b, w));
        most = fmax(most, least);
    }
    return most;
}
