#include "oj_feature_area_length.h"

#include "../../foundations/kernels/oj_segment.h"

/* Returns the area of a ring. Uses coordinates relative to the first vertex, so
 * that large offsets do not cost precision. */
static double ring_area(const struct oj_flat *flat, int64_t ring)
{
    int64_t first = flat->vertex_offset[ring];
    int64_t end = flat->vertex_offset[ring + 1];
    double x0 = flat->x[first], y0 = flat->y[first], sum = 0.0;
    for (int64_t v = first + 1; v + 1 < end; v++)
        sum += (flat->x[v] - x0) * (flat->y[v + 1] - y0) -
               (flat->x[v + 1] - x0) * (flat->y[v] - y0);
    return fabs(sum) / 2.0;
}

double oj_flat_area(const struct oj_flat *flat, int64_t feature)
{
    double sum = 0.0;
    if (oj_flat_is_points(flat))
        return 0.0;
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        int64_t shell = flat->ring_offset[part];
        double area;
        if (flat->part_kind[part] != OJ_PART_POLYGON)
            continue;
        area = ring_area(flat, shell);
        for (int64_t hole = shell + 1; hole < flat->ring_offset[part + 1];
             hole++)
            area -= ring_area(flat, hole);
        sum += area;
    }
    return sum;
}

double oj_flat_length(const struct oj_flat *flat, int64_t feature)
{
    double sum = 0.0;
    if (oj_flat_is_points(flat))
        return 0.0;
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        int64_t ring = flat->ring_offset[part];
        if (flat->part_kind[part] != OJ_PART_LINE)
            continue;
        for (int64_t v = flat->vertex_offset[ring];
             v + 1 < flat->vertex_offset[ring + 1]; v++)
            sum += oj_point_distance(flat->x[v], flat->y[v], flat->x[v + 1],
                                     flat->y[v + 1]);
    }
    return sum;
}

int oj_flat_part_has_length(const struct oj_flat *flat, int64_t part)
{
    const int64_t first = flat->vertex_offset[flat->ring_offset[part]];
    const int64_t end = flat->vertex_offset[flat->ring_offset[part + 1]];
    int64_t v = first;
    while (v < end && flat->x[v] == flat->x[first] &&
           flat->y[v] == flat->y[first])
        v++;
    return v < end;
}

int oj_flat_dimension(const struct oj_flat *flat, int64_t feature)
{
    if (oj_flat_area(flat, feature) > 0.0)
        return 2;
    for (int64_t part = oj_flat_is_points(flat) ? 0
                                                : flat->part_offset[feature];
         !oj_flat_is_points(flat) && part < flat->part_offset[feature + 1];
         part++)
    {
        if (oj_flat_part_has_length(flat, part))
            return 1;
    }
    return 0;
}
