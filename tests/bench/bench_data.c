#include "bench_data.h"

#include "nycgen.h"

#include <string.h>

/* Number of points and of join features that --far copies to a place far
 * away. */
#define N_FAR 1000
#define VERTICES_OF_ZONE 200
#define FAR_FEET 3280840.0 /* 1,000 km */

struct bench_box
{
    double x0, y0, x1, y1;
};

static struct bench_box box_of(const struct oj_flat *flat)
{
    struct bench_box box = {0, 0, 0, 0};
    for (int64_t i = 0; i < flat->n_vertices; i++)
    {
        const double x = flat->x[i], y = flat->y[i];
        if (i == 0)
            box = (struct bench_box){x, y, x, y};
        box.x0 = x < box.x0 ? x : box.x0;
        box.y0 = y < box.y0 ? y : box.y0;
        box.x1 = x > box.x1 ? x : box.x1;
        box.y1 = y > box.y1 ? y : box.y1;
    }
    return box;
}

/* Adds a star-shaped ring over the whole box. Its vertices are at equal steps
 * along the border, each moved by up to 5 % towards the centre. */
static oj_status add_star(struct oj_flat_buf *buf, struct bench_box box,
                          int64_t n, struct oj_error *err)
{
    const struct oj_flat flat = oj_flat_buf_view(buf);
    const double cx = (box.x0 + box.x1) / 2, cy = (box.y0 + box.y1) / 2;
    const double w = (box.x1 - box.x0) / 2, h = (box.y1 - box.y0) / 2;
    const int64_t fid =
        flat.n_features == 0 ? 0 : flat.fid[flat.n_features - 1] + 1;
    double *x, *y;
    OJ_TRY(oj_flat_buf_begin_feature(buf, fid, err));
    OJ_TRY(oj_flat_buf_begin_part(buf, OJ_PART_POLYGON, err));
    OJ_TRY(oj_flat_buf_begin_ring(buf, err));
    OJ_TRY(oj_flat_buf_add_vertices(buf, n, &x, &y, err));
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
    return oj_flat_buf_end_feature(buf, err);
}

oj_status bench_copy_feature(struct oj_flat_buf *buf,
                             const struct oj_flat *flat, int64_t i, int64_t fid,
                             double shift, struct oj_error *err)
{
    if (oj_flat_is_points(flat))
        return oj_flat_buf_add_point(buf, fid, flat->x[i] + shift,
                                     flat->y[i] + shift, err);
    OJ_TRY(oj_flat_buf_begin_feature(buf, fid, err));
    for (int64_t p = flat->part_offset[i]; p < flat->part_offset[i + 1]; p++)
    {
        OJ_TRY(oj_flat_buf_begin_part(
            buf, (enum oj_part_kind)flat->part_kind[p], err));
        for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
             r++)
        {
            const int64_t first = flat->vertex_offset[r];
            const int64_t n = flat->vertex_offset[r + 1] - first;
            double *x, *y;
            OJ_TRY(oj_flat_buf_begin_ring(buf, err));
            OJ_TRY(oj_flat_buf_add_vertices(buf, n, &x, &y, err));
            for (int64_t k = 0; k < n; k++)
            {
                x[k] = flat->x[first + k] + shift;
                y[k] = flat->y[first + k] + shift;
            }
        }
    }
    return oj_flat_buf_end_feature(buf, err);
}

/* Adds stars in rows and columns, twice as wide and high as their distance. */
static oj_status add_zones(struct oj_flat_buf *buf, struct bench_box box,
                           int64_t n, struct oj_error *err)
{
    int64_t n_x = 1;
    while (n_x * n_x < n)
        n_x++;
    for (int64_t i = 0; i < n; i++)
    {
        const double w = (box.x1 - box.x0) / (double)n_x;
        const double h = (box.y1 - box.y0) / (double)n_x;
        const double cx = box.x0 + w * ((double)(i % n_x) + 0.5);
        const double cy = box.y0 + h * ((double)(i / n_x) + 0.5);
        const struct bench_box around = {cx - w, cy - h, cx + w, cy + h};
        OJ_TRY(add_star(buf, around, VERTICES_OF_ZONE, err));
    }
    return OJ_OK;
}

/* Adds a moved copy of point i. */
static void add_point(struct bench_points *points, int64_t i, double shift)
{
    points->x[points->n] = points->x[i] + shift;
    points->y[points->n] = points->y[i] + shift;
    if (points->id != NULL)
        points->id[points->n] = points->id[points->n - 1] + 1;
    points->n++;
}

/* Adds moved copies of the first join features. Each is copied out of buf
 * first, because buf is reallocated while it grows. */
static oj_status add_far_features(struct oj_flat_buf *buf, struct oj_error *err)
{
    const int64_t n = buf->n_features < N_FAR ? buf->n_features : N_FAR;
    const int64_t fid = n == 0 ? 0 : buf->fid[buf->n_features - 1] + 1;
    struct oj_flat_buf moved = {0};
    struct oj_flat view = oj_flat_buf_view(buf);
    oj_status status = OJ_OK;
    for (int64_t i = 0; status == OJ_OK && i < n; i++)
        status = bench_copy_feature(&moved, &view, i, fid + i, FAR_FEET, err);
    view = oj_flat_buf_view(&moved);
    for (int64_t i = 0; status == OJ_OK && i < n; i++)
        status = bench_copy_feature(buf, &view, i, fid + i, 0.0, err);
    oj_flat_buf_free(&moved);
    return status;
}

oj_status bench_data_load(const struct bench_data_options *options,
                          struct bench_layers *layers, struct oj_error *err)
{
    const int64_t n_extra = options->identical + (options->far ? N_FAR : 0);
    struct bench_points *points = &layers->points;
    struct oj_flat view;
    struct bench_box box;
    int64_t n_far;
    if (strcmp(options->data, "nycgen") == 0)
        OJ_TRY(bench_city_load(options, n_extra, layers, err));
    else
        OJ_TRY(bench_raw_load(options, n_extra, layers, err));
    if (n_extra > 0 && points->n == 0)
        return oj_fail(err, OJ_ERR_ARG,
                       "--identical and --far are for points as input");
    n_far = points->n < N_FAR ? points->n : N_FAR;
    view = oj_flat_buf_view(&layers->join_side);
    box = box_of(&view);
    OJ_TRY(add_zones(&layers->join_side, box, options->zones, err));
    if (options->add_polygon > 0)
        OJ_TRY(add_star(&layers->join_side, box, options->add_polygon, err));
    for (int64_t i = 0, middle = points->n / 2; i < options->identical; i++)
        add_point(points, middle, 0.0);
    if (!options->far)
        return OJ_OK;
    for (int64_t i = 0; i < n_far; i++)
        add_point(points, i, FAR_FEET);
    return add_far_features(&layers->join_side, err);
}

struct oj_flat bench_input(const struct bench_layers *layers)
{
    const struct bench_points *points = &layers->points;
    if (points->x == NULL)
        return oj_flat_buf_view(&layers->shapes);
    return oj_flat_of_points(points->n, points->id, points->x, points->y);
}

void bench_layers_free(struct bench_layers *layers)
{
    oj_free(layers->points.x);
    oj_free(layers->points.y);
    oj_free(layers->points.id);
    oj_flat_buf_free(&layers->shapes);
    oj_flat_buf_free(&layers->join_side);
    memset(layers, 0, sizeof *layers);
}
