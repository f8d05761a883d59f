#include "bench_data.h"

#include "nycgen.h"

#include <string.h>

/* What --far adds: so many points and join features, copied this far off. */
#define N_FAR 1000
#define FAR_FEET 3280840.0 /* 1,000 km */

struct box
{
    double x0, y0, x1, y1;
};

static struct box box_of(const struct oj_flat *flat)
{
    struct box box = {0, 0, 0, 0};
    for (int64_t i = 0; i < flat->n_vertices; i++)
    {
        const double x = flat->x[i], y = flat->y[i];
        if (i == 0)
            box = (struct box){x, y, x, y};
        box.x0 = x < box.x0 ? x : box.x0;
        box.y0 = y < box.y0 ? y : box.y0;
        box.x1 = x > box.x1 ? x : box.x1;
        box.y1 = y > box.y1 ? y : box.y1;
    }
    return box;
}

/* A star-shaped ring over the whole box: once around the box's own border in
 * equal steps, each vertex drawn in by up to 5 % of its way to the middle. */
static oj_status add_star(struct oj_flat_buf *buf, int64_t n,
                          struct oj_error *err)
{
    const struct oj_flat flat = oj_flat_buf_view(buf);
    const struct box box = box_of(&flat);
    const double cx = (box.x0 + box.x1) / 2, cy = (box.y0 + box.y1) / 2;
    const double w = (box.x1 - box.x0) / 2, h = (box.y1 - box.y0) / 2;
    const int64_t fid =
        flat.n_features == 0 ? 0 : flat.fid[flat.n_features - 1] + 1;
    double *x, *y;
    OJ_TRY(oj_flat_buf_begin(buf, fid, err));
    OJ_TRY(oj_flat_buf_part(buf, OJ_PART_POLYGON, err));
    OJ_TRY(oj_flat_buf_ring(buf, err));
    OJ_TRY(oj_flat_buf_vertices(buf, n, &x, &y, err));
    for (int64_t i = 0; i < n; i++)
    {
        const double around = 4.0 * (double)i / (double)n; /* sides done */
        const int side = (int)around;
        const double along = 2 * (around - side) - 1; /* -1 .. 1 */
        const double u = side == 0   ? along
                         : side == 1 ? 1
                         : side == 2 ? -along
                                     : -1;
        const double v = side == 0   ? -1
                         : side == 1 ? along
                         : side == 2 ? 1
                                     : -along;
        const double out =
            1 - 0.05 * (double)(nyc_hash(7, 1, (uint64_t)i) >> 32) / 4294967296;
        x[i] = cx + u * w * out;
        y[i] = cy + v * h * out;
    }
    return oj_flat_buf_end(buf, err);
}

/* Feature i once more, moved. */
static oj_status add_moved(struct oj_flat_buf *buf, int64_t i, int64_t fid,
                           double shift, struct oj_error *err)
{
    const struct oj_flat flat = oj_flat_buf_view(buf);
    if (oj_flat_is_points(&flat))
        return oj_flat_buf_add_point(buf, fid, flat.x[i] + shift,
                                     flat.y[i] + shift, err);
    OJ_TRY(oj_flat_buf_begin(buf, fid, err));
    for (int64_t p = buf->part_offset[i]; p < buf->part_offset[i + 1]; p++)
    {
        OJ_TRY(
            oj_flat_buf_part(buf, (enum oj_part_kind)buf->part_kind[p], err));
        for (int64_t r = buf->ring_offset[p]; r < buf->ring_offset[p + 1]; r++)
        {
            const int64_t first = buf->vertex_offset[r];
            const int64_t n = buf->vertex_offset[r + 1] - first;
            double *x, *y;
            OJ_TRY(oj_flat_buf_ring(buf, err));
            OJ_TRY(oj_flat_buf_vertices(buf, n, &x, &y, err));
            for (int64_t k = 0; k < n; k++)
            {
                x[k] = buf->x[first + k] + shift;
                y[k] = buf->y[first + k] + shift;
            }
        }
    }
    return oj_flat_buf_end(buf, err);
}

static oj_status add_far(struct bench_points *points, struct oj_flat_buf *buf,
                         int64_t n_points, struct oj_error *err)
{
    const int64_t n = buf->n_features < N_FAR ? buf->n_features : N_FAR;
    const int64_t fid = n == 0 ? 0 : buf->fid[buf->n_features - 1] + 1;
    for (int64_t i = 0; i < n_points; i++)
    {
        points->x[points->n] = points->x[i] + FAR_FEET;
        points->y[points->n] = points->y[i] + FAR_FEET;
        points->n++;
    }
    for (int64_t i = 0; i < n; i++)
        OJ_TRY(add_moved(buf, i, fid + i, FAR_FEET, err));
    return OJ_OK;
}

oj_status bench_data_load(const struct bench_data_options *options,
                          struct bench_points *points,
                          struct oj_flat_buf *join_side, struct oj_error *err)
{
    const int64_t n_extra = options->identical + (options->far ? N_FAR : 0);
    int64_t n_far, middle;
    if (strcmp(options->data, "nycgen") == 0)
        OJ_TRY(bench_city_load(options, n_extra, points, join_side, err));
    else
        OJ_TRY(bench_raw_load(options, n_extra, points, join_side, err));
    n_far = points->n < N_FAR ? points->n : N_FAR;
    middle = points->n / 2;
    if (options->add_polygon > 0)
        OJ_TRY(add_star(join_side, options->add_polygon, err));
    for (int64_t i = 0; i < options->identical && points->n > 0; i++)
    {
        points->x[points->n] = points->x[middle];
        points->y[points->n] = points->y[middle];
        points->n++;
    }
    if (options->far)
        OJ_TRY(add_far(points, join_side, n_far, err));
    return OJ_OK;
}

void bench_points_free(struct bench_points *points)
{
    oj_free(points->x);
    oj_free(points->y);
    memset(points, 0, sizeof *points);
}
