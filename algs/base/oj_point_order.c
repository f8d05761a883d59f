#include "oj_point_order.h"

#include "../../flatten/base/oj_array.h"
#include "../kernels/oj_morton.h"
#include "oj_boxes.h"
#include "oj_radix.h"

#include <limits.h>
#include <string.h>

/* Bits of a code: a finer grid gains nothing, and each byte costs a pass. */
#define CODE_BITS 24

/* Around the points that have coordinates; one point when none has. */
static struct oj_box measure(const struct oj_flat *flat)
{
    struct oj_box box = oj_box_empty();
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        double x = flat->x[i], y = flat->y[i];
        if (x - x == 0.0 && y - y == 0.0)
            oj_box_add_point(&box, x, y);
    }
    if (oj_box_is_empty(&box))
        oj_box_add_point(&box, 0.0, 0.0);
    return box;
}

static double scale_of(double from, double to)
{
    double scale = 65535.0 / (to - from);
    return scale - scale == 0.0 ? scale : 0.0; /* no extent */
}

static oj_status sort_rows(struct oj_point_order *o, const struct oj_flat *flat,
                           struct oj_error *err)
{
    struct oj_box box = measure(flat);
    double scale_x = scale_of(box.x0, box.x1);
    double scale_y = scale_of(box.y0, box.y1);
    int64_t n = flat->n_features;
    struct oj_keyed *key;
    OJ_ROOM(o->key, 0, 2 * n, o->cap_key, err);
    OJ_ROOM(o->row, 0, n, o->cap_row, err);
    key = o->key;
    for (int64_t i = 0; i < n; i++)
    {
        key[i].key = oj_morton(oj_morton_column(flat->x[i], box.x0, scale_x),
                               oj_morton_column(flat->y[i], box.y0, scale_y)) >>
                     (32 - CODE_BITS);
        key[i].value = i;
    }
    key = oj_radix_sort(key, key + n, n);
    for (int64_t i = 0; i < n; i++)
        o->row[i] = (int32_t)key[i].value;
    return OJ_OK;
}

/* Makes column of out, if it is there, a copy in the order of the rows. */
#define TAKE(column)                                                           \
    do                                                                         \
    {                                                                          \
        if (out.column == NULL)                                                \
            break;                                                             \
        OJ_ROOM(o->column, 0, n, o->cap_##column, err);                        \
        for (int64_t i = 0; i < n; i++)                                        \
            o->column[i] = out.column[o->row[i]];                              \
        out.column = o->column;                                                \
    } while (0)

oj_status oj_point_order_apply(struct oj_point_order *o, struct oj_flat *flat,
                               struct oj_error *err)
{
    struct oj_flat out = *flat;
    int64_t n = flat->n_features;
    o->n = 0;
    if (!oj_flat_is_points(flat) || n < 2 || n > INT_MAX)
        return OJ_OK;
    OJ_TRY(sort_rows(o, flat, err));
    TAKE(x);
    TAKE(y);
    TAKE(max_distance);
    TAKE(on_class);
    TAKE(exclude_class);
    TAKE(fid);
    *flat = out;
    o->n = n;
    return OJ_OK;
}

void oj_point_order_free(struct oj_point_order *o)
{
    oj_free(o->row);
    oj_free(o->key);
    oj_free(o->x);
    oj_free(o->y);
    oj_free(o->max_distance);
    oj_free(o->fid);
    oj_free(o->on_class);
    oj_free(o->exclude_class);
    memset(o, 0, sizeof *o);
}
