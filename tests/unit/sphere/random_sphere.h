/** Random layers on the sphere: around poles, across the antimeridian, tiny
 * ones, and ones as large as the Earth. Include once, after sphere_truth.h. */
#ifndef RANDOM_SPHERE_H
#define RANDOM_SPHERE_H

#include "sphere_truth.h"

/* Region of a round: a place and the extent around it, in degrees. */
struct region
{
    double x, y, reach;
};

static inline struct region pick_region(void)
{
    static const struct region regions[] = {
        {0, 0, 180},       {10, 50, 3},     {180, 10, 2},     {-180, -60, 0.01},
        {0, 90, 3},        {30, -90, 1},    {179.999, 80, 5}, {0, 0, 1e-4},
        {-73.9, 40.7, .1}, {90, 89.99, .02}};
    return regions[pick(10)];
}

static inline void place(const struct region *region, double *x, double *y)
{
    *x = region->x + region->reach * (2 * unit() - 1);
    *y = region->y + region->reach / 2 * (2 * unit() - 1);
    if (fabs(region->y) > 85) /* around a pole: any longitude */
        *x = 360 * unit() - 180;
    if (*y > 90)
        *y = 180 - *y;
    if (*y < -90)
        *y = -180 - *y;
    if (one_in(5)) /* an equal place with another longitude */
        *x += pick(2) ? 360 : -360;
    if (one_in(60))
        *y = pick(2) ? 90 : -90;
    if (one_in(200))
        *y = 91;
}

/* Adds a ring of n vertices that does not cross itself. The vertices are at
 * nearly equal distances around a place, computed on the sphere. */
static inline void add_round(struct oj_flat_buf *buf, double x, double y,
                             double degrees, int n)
{
    double xy[2 * 202];
    double around = x * (double)PI / 180, up = y * (double)PI / 180;
    for (int i = 0; i < n; i++)
    {
        double turn = 2 * (double)PI * i / n;
        double r = degrees * (0.8 + 0.2 * unit()) * (double)PI / 180;
        double latitude = asin(sin(up) * cos(r) + cos(up) * sin(r) * cos(turn));
        double longitude = around + atan2(sin(turn) * sin(r) * cos(up),
                                          cos(r) - sin(up) * sin(latitude));
        xy[2 * i] = remainder(longitude * 180 / (double)PI, 360);
        xy[2 * i + 1] = latitude * 180 / (double)PI;
    }
    xy[2 * n] = xy[0];
    xy[2 * n + 1] = xy[1];
    add_ring(buf, n + 1, xy);
}

static inline void add_sphere_part(struct oj_flat_buf *buf,
                                   const struct region *region, unsigned kind)
{
    double xy[2 * 60], degrees = fmin(region->reach * unit(), 70);
    int n = kind == OJ_PART_POINT ? 1 : 2 + pick(one_in(4) ? 50 : 8);
    add_part(buf, (enum oj_part_kind)kind);
    for (int i = 0; i < n; i++)
        place(region, &xy[2 * i], &xy[2 * i + 1]);
    if (kind != OJ_PART_POLYGON)
    {
        add_ring(buf, n, xy);
        return;
    }
    n = 3 + pick(one_in(4) ? 190 : 8);
    xy[1] = fmax(-90, fmin(90, xy[1]));
    add_round(buf, xy[0], xy[1], degrees, n);
    if (one_in(3))
        add_round(buf, xy[0], xy[1], degrees / 3, 3 + pick(8));
}

static inline void add_features(struct oj_flat_buf *buf,
                                const struct region *region, int n,
                                unsigned kinds, int with_multi)
{
    int is_short = kinds == OJ_PART_POINT && pick(2);
    for (int i = 0; i < n; i++)
    {
        double x, y;
        if (one_in(40))
        {
            must(oj_flat_buf_add_null(buf, i, &error));
            continue;
        }
        if (is_short)
        {
            place(region, &x, &y);
            add_point(buf, x, y);
            continue;
        }
        begin(buf);
        for (int p = with_multi && one_in(4) ? 1 + pick(3) : 1; p > 0; p--)
            add_sphere_part(buf, region, pick_kind(kinds));
        end(buf);
    }
}

#endif
