#include "geos_rounding.h"
#include "kernels/oj_segment.h"

#include <geos_c.h>

/* GEOS walks rings backwards in places, and its sign may be wrong for one
 * direction of an edge only, so both are asked for. */
static int misjudges_edge(GEOSContextHandle_t geos, double ax, double ay,
                          double bx, double by, double x, double y)
{
    int sign = oj_orientation(ax, ay, bx, by, x, y);
    return GEOSOrientationIndex_r(geos, ax, ay, bx, by, x, y) != sign ||
           GEOSOrientationIndex_r(geos, bx, by, ax, ay, x, y) != -sign;
}

static int misjudges_ring(GEOSContextHandle_t geos, const struct oj_flat *flat,
                          int64_t ring, double x, double y)
{
    for (int64_t v = flat->vertex_offset[ring];
         v + 1 < flat->vertex_offset[ring + 1]; v++)
    {
        double ax = flat->x[v], ay = flat->y[v];
        double bx = flat->x[v + 1], by = flat->y[v + 1];
        if ((ay > y) == (by > y))
            continue; /* no ray of either crosses it */
        if (misjudges_edge(geos, ax, ay, bx, by, x, y))
            return 1;
    }
    return 0;
}

static int misjudges_point(GEOSContextHandle_t geos, const struct oj_flat *flat,
                           int64_t feature, double x, double y)
{
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        if (flat->part_kind[part] != OJ_PART_POLYGON)
            continue;
        for (int64_t ring = flat->ring_offset[part];
             ring < flat->ring_offset[part + 1]; ring++)
        {
            if (misjudges_ring(geos, flat, ring, x, y))
                return 1;
        }
    }
    return 0;
}

int oj_geos_misjudges(const struct oj_flat *input, int64_t row,
                      const struct oj_flat *join_side, int64_t feature)
{
    GEOSContextHandle_t geos;
    int64_t first = row, end = row + 1;
    int found = 0;
    if (oj_flat_is_points(join_side))
        return 0;
    geos = GEOS_init_r();
    if (geos == NULL)
        return 0;
    if (!oj_flat_is_points(input))
    {
        first = input->part_offset[row];
        end = input->part_offset[row + 1];
    }
    for (int64_t i = first; i < end && !found; i++)
    {
        int64_t v = i; /* points have one ring of one vertex */
        if (!oj_flat_is_points(input))
            v = input->vertex_offset[input->ring_offset[i]];
        found =
            misjudges_point(geos, join_side, feature, input->x[v], input->y[v]);
    }
    GEOS_finish_r(geos);
    return found;
}
