/** Distances on the sphere the plain way: spherical trigonometry in long
 *  double, every point against every arc.  Include once, after
 *  random_layers.h. */
#ifndef PLAIN_SPHERE_H
#define PLAIN_SPHERE_H

#include "../plain_pairs.h"

#define R 6371008.7714L
#define PI 3.14159265358979323846264338327950288L

struct long_vector
{
    long double x, y, z;
};

static inline struct long_vector to_vector(double longitude, double latitude)
{
    long double l = (long double)longitude * PI / 180;
    long double b = (long double)latitude * PI / 180;
    return (struct long_vector){cosl(b) * cosl(l), cosl(b) * sinl(l), sinl(b)};
}

static inline long double dot(struct long_vector a, struct long_vector b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline struct long_vector cross(struct long_vector a,
                                       struct long_vector b)
{
    return (struct long_vector){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z,
                                a.x * b.y - a.y * b.x};
}

static inline long double angle(struct long_vector a, struct long_vector b)
{
    struct long_vector c = cross(a, b);
    return atan2l(sqrtl(dot(c, c)), dot(a, b));
}

/* To the foot of p on the great circle, when it is between a and b. */
static inline long double arc_angle(struct long_vector p, struct long_vector a,
                                    struct long_vector b)
{
    struct long_vector n = cross(a, b), foot;
    long double length = sqrtl(dot(n, n)), h, to_a = angle(p, a);
    long double least = fminl(to_a, angle(p, b));
    if (length < 1e-17L)
        return least;
    h = dot(n, p) / length;
    foot.x = p.x - h * n.x / length;
    foot.y = p.y - h * n.y / length;
    foot.z = p.z - h * n.z / length;
    if (dot(foot, foot) < 1e-30L)
        return least;
    if (angle(a, foot) + angle(foot, b) > angle(a, b) + 1e-15L)
        return least;
    return fminl(least, angle(p, foot));
}

/* The direction in which q is seen from p, against some north. */
static inline long double bearing(struct long_vector p, struct long_vector q)
{
    struct long_vector north = fabsl(p.z) < 0.9L
                                   ? (struct long_vector){0, 0, 1}
                                   : (struct long_vector){1, 0, 0};
    struct long_vector east = cross(north, p), up = cross(p, east);
    return atan2l(dot(q, east), dot(q, up));
}

/* Rings here are smaller than a hemisphere: p is inside when the ring turns
 * around it, and not around the opposite point. */
static inline int ring_turns(const struct oj_flat *flat, int64_t ring,
                             struct long_vector p)
{
    long double turn = 0;
    struct long_vector middle = {0, 0, 0};
    for (int64_t v = flat->vertex_offset[ring];
         v + 1 < flat->vertex_offset[ring + 1]; v++)
    {
        struct long_vector a = to_vector(flat->x[v], flat->y[v]);
        struct long_vector b = to_vector(flat->x[v + 1], flat->y[v + 1]);
        long double step = bearing(p, b) - bearing(p, a);
        turn += remainderl(step, 2 * PI);
        middle.x += a.x;
        middle.y += a.y;
        middle.z += a.z;
    }
    return (lroundl(turn / (2 * PI)) & 1) && dot(p, middle) > 0;
}

static inline int part_turns(const struct oj_flat *flat, int64_t part,
                             struct long_vector p)
{
    if (!ring_turns(flat, flat->ring_offset[part], p))
        return 0;
    for (int64_t r = flat->ring_offset[part] + 1;
         r < flat->ring_offset[part + 1]; r++)
    {
        if (ring_turns(flat, r, p))
            return 0;
    }
    return 1;
}

static inline int is_off(const struct oj_flat *flat, int64_t feature)
{
    for (int64_t p = part_begin(flat, feature); p < part_end(flat, feature);
         p++)
    {
        for (int64_t v = vertex_begin(flat, ring_begin(flat, p));
             v < vertex_begin(flat, ring_begin(flat, p + 1)); v++)
        {
            if (!(fabs(flat->y[v]) <= 90))
                return 1;
        }
    }
    return 0;
}

static inline long double feature_angle(const struct oj_flat *flat,
                                        int64_t feature, int to_interior,
                                        struct long_vector p)
{
    long double least = INFINITY;
    for (int64_t q = part_begin(flat, feature); q < part_end(flat, feature);
         q++)
    {
        if (to_interior && !oj_flat_is_points(flat) &&
            flat->part_kind[q] == OJ_PART_POLYGON && part_turns(flat, q, p))
            return 0;
        for (int64_t r = ring_begin(flat, q); r < ring_begin(flat, q + 1); r++)
        {
            int64_t v = vertex_begin(flat, r);
            int64_t last = vertex_begin(flat, r + 1) - 1;
            do
            {
                int64_t w = v < last ? v + 1 : v;
                least =
                    fminl(least, arc_angle(p, to_vector(flat->x[v], flat->y[v]),
                                           to_vector(flat->x[w], flat->y[w])));
            } while (++v < last);
        }
    }
    return least;
}

/* Metres between all features: [f features][g features]. */
static inline double *sphere_matrix(const struct oj_flat *f,
                                    const struct oj_flat *g, int to_interior)
{
    double *matrix = oj_malloc(f->n_features * g->n_features, sizeof *matrix);
    ck_assert_ptr_nonnull(matrix);
    for (int64_t a = 0; a < f->n_features; a++)
    {
        for (int64_t b = 0; b < g->n_features; b++)
        {
            long double least = INFINITY;
            for (int64_t p = part_begin(f, a);
                 p < part_end(f, a) && !is_off(f, a) && !is_off(g, b); p++)
            {
                int64_t v = vertex_begin(f, ring_begin(f, p));
                least =
                    fminl(least, feature_angle(g, b, to_interior,
                                               to_vector(f->x[v], f->y[v])));
            }
            matrix[a * g->n_features + b] = (double)(least * R);
        }
    }
    return matrix;
}

/* What a distance may be off; chords say little near the opposite point. */
static inline double tolerance(double metres)
{
    return metres > 19e6 ? 0.5 : 1e-5 + 1e-12 * metres;
}

#endif
