#include "geos_rounding.h"
#include "geos_pairs.h"
#include "kernels/oj_segment.h"
#include "oj_boxes.h"

#include <geos_c.h>

/* Vertices times edges that are looked at for one pair: a few seconds. */
#define MOST_SIGNS (INT64_C(1) << 26)

/* GEOS walks rings backwards in places, and its sign may be wrong for one
 * direction of an edge only, so both are asked for. */
static int misjudges_edge(GEOSContextHandle_t geos, double ax, double ay,
                          double bx, double by, double x, double y)
{
    int sign = oj_orientation(ax, ay, bx, by, x, y);
    return GEOSOrientationIndex_r(geos, ax, ay, bx, by, x, y) != sign ||
           GEOSOrientationIndex_r(geos, bx, by, ax, ay, x, y) != -sign;
}

/* A side of the pair: which part kinds of it count, and its vertices. */
struct side
{
    const struct oj_flat *flat;
    int64_t first_vertex, end_vertex;
    int64_t first_part, end_part; /* long form */
};

static struct side side_of(const struct oj_flat *flat, int64_t feature)
{
    struct side side = {flat, feature, feature + 1, 0, 0};
    if (oj_flat_is_points(flat))
        return side;
    side.first_part = flat->part_offset[feature];
    side.end_part = flat->part_offset[feature + 1];
    side.first_vertex = flat->vertex_offset[flat->ring_offset[side.first_part]];
    side.end_vertex = flat->vertex_offset[flat->ring_offset[side.end_part]];
    return side;
}

static int has_points_only(const struct side *side)
{
    for (int64_t part = side->first_part; part < side->end_part; part++)
    {
        if (side->flat->part_kind[part] != OJ_PART_POINT)
            return 0;
    }
    return 1;
}

static int misjudges_ring(GEOSContextHandle_t geos, const struct oj_flat *flat,
                          int64_t ring, double x, double y, int rays_only)
{
    for (int64_t v = flat->vertex_offset[ring];
         v + 1 < flat->vertex_offset[ring + 1]; v++)
    {
        double ax = flat->x[v], ay = flat->y[v];
        double bx = flat->x[v + 1], by = flat->y[v + 1];
        if (rays_only && (ay > y) == (by > y))
            continue; /* no ray of either crosses it */
        if (misjudges_edge(geos, ax, ay, bx, by, x, y))
            return 1;
    }
    return 0;
}

/* Points ask polygons by a ray; of lines and polygons any vertex and any edge
 * may decide. */
static int misjudges_vertices(GEOSContextHandle_t geos, const struct side *a,
                              const struct side *b)
{
    int rays_only = has_points_only(a);
    for (int64_t part = b->first_part; part < b->end_part; part++)
    {
        const struct oj_flat *flat = b->flat;
        if (flat->part_kind[part] == OJ_PART_POINT ||
            (rays_only && flat->part_kind[part] != OJ_PART_POLYGON))
            continue;
        for (int64_t ring = flat->ring_offset[part];
             ring < flat->ring_offset[part + 1]; ring++)
        {
            for (int64_t v = a->first_vertex; v < a->end_vertex; v++)
            {
                if (misjudges_ring(geos, flat, ring, a->flat->x[v],
                                   a->flat->y[v], rays_only))
                    return 1;
            }
        }
    }
    return 0;
}

int oj_geos_misjudges(const struct oj_flat *input, int64_t row,
                      const struct oj_flat *join_side, int64_t feature)
{
    struct side a = side_of(input, row), b = side_of(join_side, feature);
    GEOSContextHandle_t geos;
    int found;
    if (a.end_vertex - a.first_vertex >
        MOST_SIGNS / (b.end_vertex - b.first_vertex + 1))
        return 0;
    geos = GEOS_init_r();
    if (geos == NULL)
        return 0;
    found =
        misjudges_vertices(geos, &a, &b) || misjudges_vertices(geos, &b, &a);
    GEOS_finish_r(geos);
    return found;
}

/* Whether a vertex lies beside an edge by less than rounding: within 4 ulps of
 * the largest coordinate, and not on it. */
static int lies_beside(double ax, double ay, double bx, double by, double x,
                       double y, double size)
{
    double near = 4.0 * DBL_EPSILON * size;
    double dx = bx - ax, dy = by - ay, length = sqrt(dx * dx + dy * dy);
    if (x < fmin(ax, bx) - near || x > fmax(ax, bx) + near ||
        y < fmin(ay, by) - near || y > fmax(ay, by) + near)
        return 0;
    return fabs((x - ax) * dy - (y - ay) * dx) <= near * length &&
           oj_orientation(ax, ay, bx, by, x, y) != 0;
}

static int has_vertex_beside(const struct side *a, const struct side *b,
                             double size)
{
    const double *x = b->flat->x, *y = b->flat->y;
    for (int64_t part = b->first_part; part < b->end_part; part++)
    {
        for (int64_t ring = b->flat->ring_offset[part];
             ring < b->flat->ring_offset[part + 1]; ring++)
        {
            int64_t end = b->flat->vertex_offset[ring + 1];
            for (int64_t v = b->flat->vertex_offset[ring]; v + 1 < end; v++)
            {
                for (int64_t i = a->first_vertex; i < a->end_vertex; i++)
                {
                    if (lies_beside(x[v], y[v], x[v + 1], y[v + 1],
                                    a->flat->x[i], a->flat->y[i], size))
                        return 1;
                }
            }
        }
    }
    return 0;
}

static int may_merge(const struct oj_flat *input, int64_t row,
                     const struct oj_flat *join_side, int64_t feature)
{
    struct side a = side_of(input, row), b = side_of(join_side, feature);
    struct oj_box box_a = oj_box_of_feature(input, row);
    struct oj_box box_b = oj_box_of_feature(join_side, feature);
    double size = fmax(oj_box_size(&box_a), oj_box_size(&box_b));
    if (a.end_vertex - a.first_vertex >
        MOST_SIGNS / (b.end_vertex - b.first_vertex + 1))
        return 0;
    return has_vertex_beside(&a, &b, size) || has_vertex_beside(&b, &a, size);
}

static enum oj_geos_verdict ask(const struct oj_relation *relation, int prepare,
                                const struct oj_flat *input, int64_t row,
                                const struct oj_flat *join_side,
                                int64_t feature)
{
    struct oj_geos_pairs *pairs;
    struct oj_error err;
    enum oj_geos_verdict verdict;
    if (oj_geos_pairs_open(relation, join_side, prepare, &pairs, &err) != OJ_OK)
        return OJ_GEOS_OUT_OF_MEMORY;
    oj_geos_pairs_set_input(pairs, input);
    verdict = oj_geos_pairs_hold(pairs, row, feature);
    oj_geos_pairs_close(pairs);
    return verdict;
}

int oj_geos_rounds_nodes(const struct oj_relation *relation,
                         const struct oj_flat *input, int64_t row,
                         const struct oj_flat *join_side, int64_t feature)
{
    enum oj_geos_verdict plain, prepared;
    if ((oj_op_get(relation->op)->takes & OJ_TAKES_DISTANCE) ||
        relation->op == OJ_OP_BBOX)
        return 0;
    if (may_merge(input, row, join_side, feature))
        return 1;
    plain = ask(relation, 0, input, row, join_side, feature);
    prepared = ask(relation, 1, input, row, join_side, feature);
    return (plain == OJ_GEOS_NO && prepared == OJ_GEOS_YES) ||
           (plain == OJ_GEOS_YES && prepared == OJ_GEOS_NO);
}
