#include "sphere_pair_closest_points.h"

#include <math.h>

#define DEGREES (180.0 / 3.14159265358979323846)

/* Sets *x, *y to the point nearest to p on the edge of `feature` that starts at
 * `vertex`, or to the point part that this vertex is. */
static void nearest_point_in_degrees(const struct oj_sphere_side *b,
                                     int64_t feature, int64_t vertex,
                                     struct oj_vec3 p, double *x, double *y)
{
    const struct oj_flat *flat = b->flat;
    struct oj_vec3 foot;
    int64_t v = vertex, ring;
    int end = 1;
    if (!oj_flat_is_points(flat))
    {
        ring = flat->ring_offset[flat->part_offset[feature]];
        while (flat->vertex_offset[ring + 1] <= v)
            ring++;
        if (v + 1 < flat->vertex_offset[ring + 1]) /* not a point part */
            end = oj_sphere_arc_nearest(p, b->at[v], b->at[v + 1], &foot);
    }
    v += end == 2;
    *x = flat->x[v];
    *y = flat->y[v];
    if (end > 0)
        return;
    *x = oj_sphere_longitude_at_edge(atan2(foot.y, foot.x) * DEGREES,
                                     flat->x[v], flat->x[v + 1]);
    /* not hypot(), whose last bit depends on the version of the C library */
    *y = atan2(foot.z, sqrt(foot.x * foot.x + foot.y * foot.y)) * DEGREES;
}

struct oj_nearest_points
oj_sphere_find_closest_points(const struct oj_flat *flat, int64_t a,
                              const struct oj_sphere_side *b, int64_t feature)
{
    struct oj_nearest_points out = {INFINITY, NAN, NAN, NAN, NAN};
    struct oj_sphere_place best = {INFINITY, -1};
    int64_t first, end, at = -1;
    oj_flat_vertex_range(flat, a, &first, &end); /* all parts of feature a are
                                                points */
    for (int64_t v = first; v < end; v++)
    {
        struct oj_sphere_place here = oj_sphere_nearest_edge(
            b, feature, oj_sphere_vector(flat->x[v], flat->y[v]), best.chord2);
        if (!(here.chord2 < best.chord2))
            continue;
        best = here;
        at = v;
    }
    if (at < 0)
        return out;
    out.distance = best.chord2;
    out.ax = out.bx = flat->x[at];
    out.ay = out.by = flat->y[at];
    if (best.vertex >= 0)
        nearest_point_in_degrees(b, feature, best.vertex,
                                 oj_sphere_vector(out.ax, out.ay), &out.bx,
                                 &out.by);
    return out;
}

double oj_sphere_bearing(double ax, double ay, double bx, double by)
{
    struct oj_vec3 p, up, d, east, north;
    double degrees;
    if (isnan(ax) || isnan(bx))
        return (double)NAN;
    p = oj_sphere_vector(ax, ay);
    up = oj_sphere_vector(ax, 0.0); /* point of the equator with a's
                                       longitude */
    d = oj_sphere_vec3_sub(oj_sphere_vector(bx, by), p);
    if (!(oj_sphere_vec3_dot(d, d) > 0.0))
        return (double)NAN;
    east = (struct oj_vec3){-up.y, up.x, 0.0};
    north = (struct oj_vec3){-p.z * up.x, -p.z * up.y, up.x * p.x + up.y * p.y};
    degrees = atan2(oj_sphere_vec3_dot(east, d), oj_sphere_vec3_dot(north, d)) *
              DEGREES;
    if (degrees < 0.0)
        degrees += 360.0;
    return degrees < 360.0 ? degrees : 0.0;
}
