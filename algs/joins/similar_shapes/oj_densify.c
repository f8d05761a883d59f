#include "oj_densify.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../sphere/cpu_sphere_side.h"

#include <math.h>
#include <string.h>

#define MOST_PIECES 0x1p30

#define DEGREE 0.017453292519943295

/* A segment, and its arc on the sphere. */
struct dense_segment
{
    double x[2], y[2];
    struct oj_vec3 from, to;
    double angle; /* angle of the arc in radians; 0 in the plane, or if no
                     shorter arc is defined */
};

static struct dense_segment segment_at(const struct oj_flat *flat, int64_t v,
                                       int on_sphere)
{
    struct dense_segment s = {{flat->x[v], flat->x[v + 1]},
                              {flat->y[v], flat->y[v + 1]},
                              {0.0, 0.0, 0.0},
                              {0.0, 0.0, 0.0},
                              0.0};
    if (!on_sphere || !oj_sphere_contains_coordinates(s.x[0], s.y[0]) ||
        !oj_sphere_contains_coordinates(s.x[1], s.y[1]))
        return s;
    s.from = oj_sphere_vector(s.x[0], s.y[0]);
    s.to = oj_sphere_vector(s.x[1], s.y[1]);
    s.angle = oj_sphere_metres_of_chord2(oj_sphere_chord2(s.from, s.to)) /
              OJ_SPHERE_RADIUS;
    /* Opposite points have no shorter arc. */
    s.angle = s.angle < 3.14159 ? s.angle : 0.0;
    return s;
}

static oj_status count_pieces(const struct dense_segment *s, double length,
                              int on_sphere, int64_t *out, struct oj_error *err)
{
    /* hypot() is avoided: its last bit depends on the C library's version */
    double dx = s->x[1] - s->x[0], dy = s->y[1] - s->y[0];
    double all =
        on_sphere ? s->angle * OJ_SPHERE_RADIUS : sqrt(dx * dx + dy * dy);
    double n = ceil(all / length);
    if (!(n <= MOST_PIECES))
        return oj_fail(err, OJ_ERR_ARG,
                       "a segment of length %g would be cut into too many "
                       "pieces of length %g: use a larger length for densify",
                       all, length);
    *out = n > 1.0 ? (int64_t)n : 1;
    return OJ_OK;
}

/* Sets *x and *y to the point at the fraction `share` of the segment. */
static void interpolate_on_segment(const struct dense_segment *s, double share,
                                   double *x, double *y)
{
    double of_from, of_to, at[3];
    if (s->angle == 0.0)
    {
        *x = s->x[0] + share * (s->x[1] - s->x[0]);
        *y = s->y[0] + share * (s->y[1] - s->y[0]);
        return;
    }
    of_from = sin((1.0 - share) * s->angle);
    of_to = sin(share * s->angle);
    at[0] = of_from * s->from.x + of_to * s->to.x;
    at[1] = of_from * s->from.y + of_to * s->to.y;
    at[2] = of_from * s->from.z + of_to * s->to.z;
    *x = atan2(at[1], at[0]) / DEGREE;
    *y = atan2(at[2], sqrt(at[0] * at[0] + at[1] * at[1])) / DEGREE;
}

static oj_status densify_ring(const struct oj_flat *flat, int64_t ring,
                              double length, int on_sphere,
                              struct oj_dense *dense, int64_t *n,
                              struct oj_error *err)
{
    int64_t first = flat->vertex_offset[ring];
    int64_t end = flat->vertex_offset[ring + 1];
    for (int64_t v = first; v < end; v++)
    {
        struct dense_segment s = {.angle = 0.0};
        int64_t n_pieces = 1;
        if (v + 1 < end)
        {
            s = segment_at(flat, v, on_sphere);
            OJ_TRY(count_pieces(&s, length, on_sphere, &n_pieces, err));
        }
        OJ_ROOM(dense->x, *n, *n + n_pieces, dense->cap_x, err);
        OJ_ROOM(dense->y, *n, *n + n_pieces, dense->cap_y, err);
        dense->x[*n] = flat->x[v];
        dense->y[*n] = flat->y[v];
        for (int64_t i = 1; i < n_pieces; i++)
            interpolate_on_segment(&s, (double)i / (double)n_pieces,
                                   &dense->x[*n + i], &dense->y[*n + i]);
        *n += n_pieces;
    }
    return OJ_OK;
}

oj_status oj_densify(const struct oj_flat *flat, double length, int on_sphere,
                     struct oj_dense *dense, struct oj_flat *out,
                     struct oj_error *err)
{
    int64_t n = 0;
    if (oj_flat_is_points(flat))
    {
        *out = *flat;
        return OJ_OK;
    }
    OJ_ROOM(dense->vertex_offset, 0, flat->n_rings + 1, dense->cap_offset, err);
    for (int64_t ring = 0; ring < flat->n_rings; ring++)
    {
        dense->vertex_offset[ring] = n;
        OJ_TRY(densify_ring(flat, ring, length, on_sphere, dense, &n, err));
    }
    dense->vertex_offset[flat->n_rings] = n;
    *out = *flat;
    out->n_vertices = n;
    out->vertex_offset = dense->vertex_offset;
    out->x = dense->x;
    out->y = dense->y;
    return OJ_OK;
}

void oj_densify_free(struct oj_dense *dense)
{
    oj_free(dense->vertex_offset);
    oj_free(dense->x);
    oj_free(dense->y);
    memset(dense, 0, sizeof *dense);
}
