#include "plain_shape_distances.h"

#include "../../../flatten/base/oj_alloc.h"

#include <math.h>

static double squared_distance_to_vertex(double px, double py, double x,
                                         double y)
{
    return (px - x) * (px - x) + (py - y) * (py - y);
}

/* Returns the squared distance in GEOS's order of operations, with its
 * branches. */
static double squared_distance_to_segment(double px, double py, double ax,
                                          double ay, double bx, double by)
{
    double dx = bx - ax, dy = by - ay, length2 = dx * dx + dy * dy;
    double to_a = squared_distance_to_vertex(px, py, ax, ay),
           to_b = squared_distance_to_vertex(px, py, bx, by);
    double along = NAN;
    if (px == ax && py == ay)
        along = 0.0;
    else if (px == bx && py == by)
        along = 1.0;
    else if (length2 > 0.0)
        along = ((px - ax) * dx + (py - ay) * dy) / length2;
    if (along > 0.0 && along < 1.0)
        return squared_distance_to_vertex(px, py, ax + along * dx,
                                          ay + along * dy);
    return sqrt(to_a) < sqrt(to_b) ? to_a : to_b;
}

/* Returns the minimum squared distance to the segments of a line or ring, or
 * with of_segments 0 to its vertices. Like GEOS, exchanges the ends of every
 * second segment, which may change the last bit. */
static double squared_distance_to_chain(double px, double py, const double *x,
                                        const double *y, int64_t n,
                                        int of_segments)
{
    double least = squared_distance_to_vertex(px, py, x[0], y[0]);
    if (of_segments && n > 1)
        least = INFINITY;
    for (int64_t i = 1; i < n; i++)
    {
        int64_t from = i % 2 == 1 ? i - 1 : i, to = i % 2 == 1 ? i : i - 1;
        double d2 = of_segments
                        ? squared_distance_to_segment(px, py, x[from], y[from],
                                                      x[to], y[to])
                        : squared_distance_to_vertex(px, py, x[i], y[i]);
        least = d2 < least ? d2 : least;
    }
    return least;
}

static double squared_distance_to_feature(double px, double py,
                                          const struct oj_flat *flat,
                                          int64_t feature, int of_segments)
{
    double least = INFINITY;
    if (oj_flat_is_points(flat))
        return squared_distance_to_vertex(px, py, flat->x[feature],
                                          flat->y[feature]);
    for (int64_t ring = flat->ring_offset[flat->part_offset[feature]];
         ring < flat->ring_offset[flat->part_offset[feature + 1]]; ring++)
    {
        int64_t v = flat->vertex_offset[ring];
        int64_t n = flat->vertex_offset[ring + 1] - v;
        double d2 = squared_distance_to_chain(px, py, flat->x + v, flat->y + v,
                                              n, of_segments);
        least = d2 < least ? d2 : least;
    }
    return least;
}

double oj_plain_shapes_directed_hausdorff(const struct oj_flat *a,
                                          int64_t feature_a,
                                          const struct oj_flat *b,
                                          int64_t feature_b, int of_segments)
{
    int64_t first, end;
    double most = 0.0;
    oj_flat_vertex_range(a, feature_a, &first, &end);
    for (int64_t v = first; v < end; v++)
    {
        double d2 = squared_distance_to_feature(a->x[v], a->y[v], b, feature_b,
                                                of_segments);
        most = d2 > most ? d2 : most;
    }
    return sqrt(most);
}

oj_status oj_plain_shapes_frechet(const struct oj_flat *a, int64_t feature_a,
                                  const struct oj_plain_sphere *sphere_a,
                                  const struct oj_flat *b, int64_t feature_b,
                                  const struct oj_plain_sphere *sphere_b,
                                  double *out, struct oj_error *err)
{
    int64_t first, end, first_b, end_b, n;
    double *above, *row;
    oj_flat_vertex_range(a, feature_a, &first, &end);
    oj_flat_vertex_range(b, feature_b, &first_b, &end_b);
    n = end_b - first_b;
    OJ_NEW(above, 2 * n, err);
    row = above + n;
    for (int64_t v = first; v < end; v++)
    {
        for (int64_t j = 0; j < n; j++)
        {
            int64_t w = first_b + j;
            double d =
                sphere_a != NULL
                    ? oj_plain_sphere_vertex_distance(sphere_a, v, sphere_b, w)
                    : sqrt(squared_distance_to_vertex(a->x[v], a->y[v], b->x[w],
                                                      b->y[w]));
            double least = v == first && j == 0 ? 0.0 : INFINITY;
            if (v > first)
                least = above[j];
            if (j > 0)
                least = fmin(least, row[j - 1]);
            if (v > first && j > 0)
                least = fmin(least, above[j - 1]);
            row[j] = fmax(least, d);
        }
        for (int64_t j = 0; j < n; j++)
            above[j] = row[j];
    }
    *out = above[n - 1];
    oj_free(above);
    return OJ_OK;
}
