#include "oj_point_order.h"

#include "../../flatten/base/oj_array.h"
#include "../kernels/oj_morton.h"
#include "oj_radix.h"

#include <limits.h>
#include <string.h>

/* Bits of a code: a finer grid gains nothing, and each byte costs a pass. */
#define CODE_BITS 24

struct points_extent
{
    double x0, y0, x1, y1;
};

/* Of the points that have coordinates. */
static struct points_extent measure(const struct oj_flat *flat)
{
    struct points_extent e = {0.0, 0.0, 0.0, 0.0};
    int is_empty = 1;
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        double x = flat->x[i], y = flat->y[i];
        if (!(x - x == 0.0 && y - y == 0.0))
            continue;
        if (is_empty)
        {
            e.x0 = e.x1 = x;
            e.y0 = e.y1 = y;
            is_empty = 0;
        }
        e.x0 = x < e.x0 ? x : e.x0;
        e.x1 = x > e.x1 ? x : e.x1;
        e.y0 = y < e.y0 ? y : e.y0;
        e.y1 = y > e.y1 ? y : e.y1;
    }
    return e;
}

static double scale_of(double from, double to)
{
    double scale = 65535.0 / (to - from);
    return scale - scale == 0.0 ? scale : 0.0; /* no extent */
}

static oj_status sort_rows(struct oj_point_order *o, const struct oj_flat *flat,
                           struct oj_error *err)
{
    struct points_extent e = measure(flat);
    double scale_x = scale_of(e.x0, e.x1), scale_y = scale_of(e.y0, e.y1);
    int64_t n = flat->n_features;
    struct oj_keyed *key, *sorted;
    OJ_TRY(oj_reserve(&o->key, 0, n, &o->cap_key, sizeof *key, err));
    OJ_TRY(oj_reserve(&o->scratch, 0, n, &o->cap_scratch, sizeof *key, err));
    OJ_TRY(oj_reserve(&o->row, 0, n, &o->cap_row, sizeof *o->row, err));
    key = o->key;
    for (int64_t i = 0; i < n; i++)
    {
        key[i].key = oj_morton(oj_morton_column(flat->x[i], e.x0, scale_x),
                               oj_morton_column(flat->y[i], e.y0, scale_y)) >>
                     (32 - CODE_BITS);
        key[i].value = i;
    }
    sorted = oj_radix_sort(key, o->scratch, n);
    for (int64_t i = 0; i < n; i++)
        o->row[i] = (int32_t)sorted[i].value;
    return OJ_OK;
}

/* *column, if it is there, in the order of the rows. */
static oj_status take_doubles(const struct oj_point_order *o, int64_t n,
                              const double **column, double **own,
                              int64_t *capacity, struct oj_error *err)
{
    const double *from = *column;
    if (from == NULL)
        return OJ_OK;
    OJ_TRY(oj_reserve(own, 0, n, capacity, sizeof **own, err));
    for (int64_t i = 0; i < n; i++)
        (*own)[i] = from[o->row[i]];
    *column = *own;
    return OJ_OK;
}

static oj_status take_classes(const struct oj_point_order *o, int64_t n,
                              const int32_t **column, int32_t **own,
                              int64_t *capacity, struct oj_error *err)
{
    const int32_t *from = *column;
    if (from == NULL)
        return OJ_OK;
    OJ_TRY(oj_reserve(own, 0, n, capacity, sizeof **own, err));
    for (int64_t i = 0; i < n; i++)
        (*own)[i] = from[o->row[i]];
    *column = *own;
    return OJ_OK;
}

static oj_status take_fids(struct oj_point_order *o, struct oj_flat *flat,
                           struct oj_error *err)
{
    int64_t n = flat->n_features;
    if (flat->fid == NULL)
        return OJ_OK;
    OJ_TRY(oj_reserve(&o->fid, 0, n, &o->cap_fid, sizeof *o->fid, err));
    for (int64_t i = 0; i < n; i++)
        o->fid[i] = flat->fid[o->row[i]];
    flat->fid = o->fid;
    return OJ_OK;
}

oj_status oj_point_order_apply(struct oj_point_order *o, struct oj_flat *flat,
                               struct oj_error *err)
{
    struct oj_flat out = *flat;
    int64_t n = flat->n_features;
    o->n = 0;
    if (!oj_flat_is_points(flat) || n < 2 || n > INT_MAX)
        return OJ_OK;
    OJ_TRY(sort_rows(o, flat, err));
    OJ_TRY(take_doubles(o, n, &out.x, &o->x, &o->cap_x, err));
    OJ_TRY(take_doubles(o, n, &out.y, &o->y, &o->cap_y, err));
    OJ_TRY(take_doubles(o, n, &out.max_distance, &o->max_distance,
                        &o->cap_max_distance, err));
    OJ_TRY(
        take_classes(o, n, &out.on_class, &o->on_class, &o->cap_on_class, err));
    OJ_TRY(take_classes(o, n, &out.exclude_class, &o->exclude_class,
                        &o->cap_exclude_class, err));
    OJ_TRY(take_fids(o, &out, err));
    *flat = out;
    o->n = n;
    return OJ_OK;
}

void oj_point_order_free(struct oj_point_order *o)
{
    oj_free(o->row);
    oj_free(o->key);
    oj_free(o->scratch);
    oj_free(o->x);
    oj_free(o->y);
    oj_free(o->max_distance);
    oj_free(o->fid);
    oj_free(o->on_class);
    oj_free(o->exclude_class);
    memset(o, 0, sizeof *o);
}
