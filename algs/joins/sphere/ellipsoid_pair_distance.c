#include "ellipsoid_pair_distance.h"

struct oj_ellipsoid_pair
oj_ellipsoid_nearest_points(const struct oj_ellipsoid *ellipsoid,
                            const struct oj_geodesic *geodesic,
                            const struct oj_flat *flat, int64_t a,
                            const struct oj_sphere_side *side, int64_t b)
{
    const struct oj_flat *other = side->flat;
    struct oj_ellipsoid_pair best = {INFINITY, -1, -1};
    int64_t first, end, first_b, end_b;
    oj_flat_vertices(flat, a, &first, &end);
    oj_flat_vertices(other, b, &first_b, &end_b);
    for (int64_t v = first; v < end; v++)
    {
        const int is_one = end - first == 1 && end_b - first_b == 1;
        struct oj_vec3 p = {0.0, 0.0, 0.0};
        if (!is_one)
            p = oj_sphere_side_vector(ellipsoid, flat->x[v], flat->y[v]);
        for (int64_t w = first_b; w < end_b; w++)
        {
            double metres;
            if (!is_one &&
                oj_ellipsoid_least_distance(oj_sphere_chord2(p, side->at[w])) *
                        ellipsoid->semi_major >
                    best.metres)
                continue;
            metres = oj_geodesic_metres(geodesic, flat->x[v], flat->y[v],
                                        other->x[w], other->y[w]);
            if (metres < best.metres)
                best = (struct oj_ellipsoid_pair){metres, v, w};
        }
    }
    return best;
}
