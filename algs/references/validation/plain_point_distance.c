#include "plain_point_distance.h"
#include "../../foundations/kernels/oj_ring.h"
#include "../../foundations/kernels/oj_segment.h"

static int does_polygon_contain_point(const struct oj_flat *flat, int64_t part,
                                      double x, double y)
{
    return oj_rings_locate_by_even_odd(
               x, y, flat->x, flat->y, flat->vertex_offset,
               flat->ring_offset[part],
               flat->ring_offset[part + 1]) != OJ_OUTSIDE;
}

/* Returns the distance from (x, y) to a ring or line; a line of one vertex is a
 * point. Distances that are NaN are ignored. */
static double ring_distance(const struct oj_flat *flat, int64_t ring, double x,
                            double y)
{
    int64_t first = flat->vertex_offset[ring];
    int64_t last = flat->vertex_offset[ring + 1] - 1;
    double least = INFINITY;
    if (first == last)
        return oj_point_distance(x, y, flat->x[first], flat->y[first]);
    for (int64_t v = first; v < last; v++)
    {
        double d = oj_segment_distance(x, y, flat->x[v], flat->y[v],
                                       flat->x[v + 1], flat->y[v + 1]);
        least = d < least ? d : least;
    }
    return least;
}

static double part_distance(const struct oj_flat *flat, int64_t part,
                            enum oj_distance_to distance_to, double x, double y)
{
    double least = INFINITY;
    if (flat->part_kind[part] == OJ_PART_POLYGON &&
        distance_to == OJ_TO_INTERIOR &&
        does_polygon_contain_point(flat, part, x, y))
        return 0.0;
    for (int64_t ring = flat->ring_offset[part];
         ring < flat->ring_offset[part + 1]; ring++)
    {
        double d = ring_distance(flat, ring, x, y);
        least = d < least ? d : least;
    }
    return least;
}

/* Returns 1 if the direction of segment a -> b fits the heading. */
static int
does_segment_fit_heading(double ax, double ay, double bx, double by,
                         const struct oj_heading_condition *condition,
                         double heading)
{
    double dx = bx - ax, dy = by - ay, apart;
    if (!(fabs(heading) <= 360.0))
        return 1;
    if (dx == 0.0 && dy == 0.0)
        return 0;
    apart = fabs(remainder(
        atan2(dx, dy) * (180.0 / 3.14159265358979323846) - heading, 360.0));
    if (condition->both_ways)
        apart = fmin(apart, 180.0 - apart);
    if (fabs(apart - condition->tolerance) > 1e-9)
        return apart < condition->tolerance;
    {
        const struct oj_heading_range range =
            oj_heading_range_of(condition, heading);
        return oj_heading_fits(&range, dx, dy);
    }
}

double oj_flat_distance_by_heading(const struct oj_flat *flat, int64_t feature,
                                   double x, double y,
                                   const struct oj_heading_condition *condition,
                                   double heading)
{
    double least = INFINITY;
    if (oj_flat_is_points(flat))
        return fabs(heading) <= 360.0
                   ? INFINITY
                   : oj_flat_distance(flat, feature, OJ_TO_BOUNDARY, x, y);
    for (int64_t ring = flat->ring_offset[flat->part_offset[feature]];
         ring < flat->ring_offset[flat->part_offset[feature + 1]]; ring++)
    {
        int64_t v = flat->vertex_offset[ring];
        int64_t last = flat->vertex_offset[ring + 1] - 1;
        if (v == last && !(fabs(heading) <= 360.0))
            least =
                fmin(least, oj_point_distance(x, y, flat->x[v], flat->y[v]));
        for (; v < last; v++)
        {
            if (does_segment_fit_heading(flat->x[v], flat->y[v], flat->x[v + 1],
                                         flat->y[v + 1], condition, heading))
                least = fmin(
                    least, oj_segment_distance(x, y, flat->x[v], flat->y[v],
                                               flat->x[v + 1], flat->y[v + 1]));
        }
    }
    return least;
}

double oj_flat_distance(const struct oj_flat *flat, int64_t feature,
                        enum oj_distance_to distance_to, double x, double y)
{
    double least = INFINITY;
    if (oj_flat_is_points(flat))
    {
        double d = oj_point_distance(x, y, flat->x[feature], flat->y[feature]);
        return d < INFINITY ? d : INFINITY;
    }
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        double d = part_distance(flat, part, distance_to, x, y);
        least = d < least ? d : least;
    }
    return least;
}
