/** Distances on the sphere. Known ones are computed by spherical trigonometry
 * in long double, those of random features by the reference. Include once,
 * after random_layers.h. */
#ifndef SPHERE_TRUTH_H
#define SPHERE_TRUTH_H

#include "../../../algs/references/validation/plain_sphere.h"

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

/* Returns the least angle between p and the points of the arc from a to b. */
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

/* Returns the distances in metres between all features, by the reference
 * (plain_sphere.h): [f features][g features]. to_interior 1: points inside of
 * polygons have distance 0. */
static inline double *sphere_matrix(const struct oj_flat *f,
                                    const struct oj_flat *g, int to_interior)
{
    double *matrix = oj_malloc(f->n_features * g->n_features, sizeof *matrix);
    struct oj_plain_sphere from = {0}, to = {0};
    ck_assert_ptr_nonnull(matrix);
    must(oj_plain_sphere_make(&from, f, NULL, &error));
    must(oj_plain_sphere_make(&to, g, NULL, &error));
    for (int64_t a = 0; a < f->n_features; a++)
    {
        struct oj_box of_a = oj_plain_sphere_box(&from, a);
        for (int64_t b = 0; b < g->n_features; b++)
        {
            struct oj_box of_b = oj_plain_sphere_box(&to, b);
            matrix[a * g->n_features + b] =
                oj_box_is_empty(&of_a) || oj_box_is_empty(&of_b)
                    ? INFINITY
                    : oj_plain_sphere_metres(&from, a, &to, b, to_interior);
        }
    }
    oj_plain_sphere_free(&from);
    oj_plain_sphere_free(&to);
    return matrix;
}

/* Returns the allowed error of a distance, in metres. Near the antipode chords
 * are inaccurate. */
static inline double tolerance(double metres)
{
    return metres > 19e6 ? 0.5 : 1e-5 + 1e-12 * metres;
}

#endif
