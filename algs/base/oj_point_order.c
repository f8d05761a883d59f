#include "oj_point_order.h"

#include "../../flatten/base/oj_array.h"

#include <limits.h>
#include <string.h>

/* Points that are NaN come last. */
static oj_status sort_rows(struct oj_point_order *o, const struct oj_flat *flat,
                           struct oj_error *err)
{
    int64_t n = flat->n_features, at;
    OJ_ROOM(o->row, 0, n, o->cap_row, err);
    OJ_TRY(oj_order_build(&o->order, 1, n, flat->x, flat->y, err));
    OJ_TRY(oj_order_sort(&o->order, 1, NULL, NULL, err));
    for (at = 0; at < o->order.n_points; at++)
        o->row[at] = (int32_t)o->order.point[at].index;
    for (int64_t i = 0; i < n && at < n; i++)
    {
        if (flat->x[i] != flat->x[i] || flat->y[i] != flat->y[i])
            o->row[at++] = (int32_t)i;
    }
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
    if (!oj_flat_is_points(flat) || flat->n_texts > 0 ||
        flat->vectors.value != NULL || n < 2 || n > INT_MAX)
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
    oj_order_free(&o->order);
    oj_free(o->x);
    oj_free(o->y);
    oj_free(o->max_distance);
    oj_free(o->fid);
    oj_free(o->on_class);
    oj_free(o->exclude_class);
    memset(o, 0, sizeof *o);
}
