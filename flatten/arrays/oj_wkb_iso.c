#include "oj_wkb_iso.h"
#include "oj_wkb.h"

#include <math.h>

/* What is left of the bytes. */
struct rest
{
    const uint8_t *at;
    size_t n;
};

static int take_u32(struct rest *rest, uint32_t *value)
{
    const uint8_t *at = rest->at;
    if (rest->n < 4)
        return 0;
    *value = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
             (uint32_t)at[3] << 24;
    rest->at += 4;
    rest->n -= 4;
    return 1;
}

/* Points follow one another; none: an empty geometry. */
static int take_points(struct rest *rest, size_t point_bytes)
{
    uint32_t n;
    if (!take_u32(rest, &n) || n == 0 || n > rest->n / point_bytes)
        return 0;
    rest->at += n * point_bytes;
    rest->n -= n * point_bytes;
    return 1;
}

/* An empty point is NaN NaN, of which there are many. */
static int take_point(struct rest *rest, size_t point_bytes)
{
    if (rest->n < point_bytes || isnan(oj_wkb_double(rest->at)) ||
        isnan(oj_wkb_double(rest->at + 8)))
        return 0;
    rest->at += point_bytes;
    rest->n -= point_bytes;
    return 1;
}

static int take_rings(struct rest *rest, size_t point_bytes)
{
    uint32_t n;
    if (!take_u32(rest, &n) || n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
    {
        if (!take_points(rest, point_bytes))
            return 0;
    }
    return 1;
}

/* A geometry of type kind (0: any) and dimension (0, 1000, 2000, 3000; 1: any),
 * as a member must have. */
static int take_geometry(struct rest *rest, uint32_t kind, uint32_t dimension,
                         int depth)
{
    uint32_t type, n;
    size_t point_bytes;
    if (depth > OJ_WKB_MAX_DEPTH || rest->n < 1 || *rest->at++ != 1)
        return 0;
    rest->n--;
    if (!take_u32(rest, &type) || type > 3007 || type % 1000 < 1 ||
        type % 1000 > 7 || (kind != 0 && type % 1000 != kind) ||
        (dimension != 1 && type - type % 1000 != dimension))
        return 0;
    dimension = type - type % 1000;
    kind = type % 1000;
    point_bytes = dimension == 0 ? 16 : dimension == 3000 ? 32 : 24;
    if (kind == 1)
        return take_point(rest, point_bytes);
    if (kind == 2)
        return take_points(rest, point_bytes);
    if (kind == 3)
        return take_rings(rest, point_bytes);
    if (!take_u32(rest, &n) || n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
    {
        if (!take_geometry(rest, kind == 7 ? 0 : kind - 3, dimension,
                           depth + 1))
            return 0;
    }
    return 1;
}

int oj_wkb_is_iso(const uint8_t *wkb, size_t n)
{
    struct rest rest = {wkb, n};
    return take_geometry(&rest, 0, 1, 0) && rest.n == 0;
}
