#include "plain_point_distance.h"
#include "../../foundations/kernels/oj_ring.h"
#include "../../foundations/kernels/oj_segment.h"

static int polygon_holds(const struct oj_flat *flat, int64_t part, double x,
                         double y)
{
    return oj_rings_locate_all(x, y, flat->x, flat->y, flat->vertex_offset,
                               flat->ring_offset[part],
                               flat->ring_offset[part + 1]) != OJ_OUTSIDE;
}

/* Distance to a ring or line; a line of one vertex is a point. A NaN is never
 * the minimum. */
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
        distance_to == OJ_TO_INTERIOR && polygon_holds(flat, part, x, y))
        return 0.0;
    for (int64_t ring = flat->ring_offset[part];
         ring < flat->ring_offset[part + 1]; ring++)
    {
        double d = ring_distance(flat, ring, x, y);
        least = d < least ? d : least;
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
