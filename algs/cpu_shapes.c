#include "cpu_shapes.h"

#include "../flatten/oj_array.h"
#include "cpu_threads.h"

#include <stdatomic.h>
#include <string.h>

#define FEATURES_PER_TASK 2048

/* Boxes in the tree and boxes asked for are kept within this, so that their
 * differences are finite; both alike, so that nothing is lost. */
#define LARGEST 8e307

struct oj_shape oj_shape_of(const struct oj_flat *flat, int64_t feature)
{
    struct oj_shape shape;
    memset(&shape, 0, sizeof shape);
    shape.box = oj_box_empty();
    shape.flat = flat;
    shape.feature = (int32_t)feature;
    if (oj_flat_is_points(flat))
    {
        double x = flat->x[feature], y = flat->y[feature];
        shape.first_vertex = feature;
        shape.first_ring = -1;
        if (!(x == x))
            return shape;
        shape.n_vertices = shape.n_rings = 1;
        shape.kinds = OJ_PART_POINT;
        oj_box_add_point(&shape.box, x, y);
        return shape;
    }
    {
        int64_t part = flat->part_offset[feature];
        int64_t end_part = flat->part_offset[feature + 1];
        int64_t end_ring = flat->ring_offset[end_part];
        shape.first_ring = flat->ring_offset[part];
        shape.n_rings = (int32_t)(end_ring - shape.first_ring);
        shape.first_vertex = flat->vertex_offset[shape.first_ring];
        shape.n_vertices = flat->vertex_offset[end_ring] - shape.first_vertex;
        for (; part < end_part; part++)
            shape.kinds |= flat->part_kind[part];
    }
    for (int64_t i = 0; i < shape.n_vertices; i++)
        oj_box_add_point(&shape.box, flat->x[shape.first_vertex + i],
                         flat->y[shape.first_vertex + i]);
    return shape;
}

int64_t oj_shape_count_members(const struct oj_flat *flat, int64_t feature)
{
    int64_t part, end;
    if (oj_flat_is_points(flat))
        return 0;
    part = flat->part_offset[feature];
    end = flat->part_offset[feature + 1];
    for (int64_t p = part + 1; p < end; p++)
    {
        if (flat->part_kind[p] != flat->part_kind[part])
            return end - part;
    }
    return 0;
}

void oj_shape_set_members(struct oj_shape *shape, struct oj_shape *member)
{
    const struct oj_flat *flat = shape->flat;
    int64_t first = flat->part_offset[shape->feature];
    int64_t n = flat->part_offset[shape->feature + 1] - first;
    for (int64_t p = 0; p < n; p++)
    {
        struct oj_shape *m = &member[p];
        int64_t end_ring = flat->ring_offset[first + p + 1];
        *m = *shape;
        m->cells = NULL;
        m->first_ring = flat->ring_offset[first + p];
        m->n_rings = (int32_t)(end_ring - m->first_ring);
        m->first_vertex = flat->vertex_offset[m->first_ring];
        m->n_vertices = flat->vertex_offset[end_ring] - m->first_vertex;
        m->kinds = flat->part_kind[first + p];
        m->box = oj_box_empty();
        for (int64_t i = 0; i < m->n_vertices; i++)
            oj_box_add_point(&m->box, flat->x[m->first_vertex + i],
                             flat->y[m->first_vertex + i]);
    }
    shape->member = member;
    shape->n_members = (int32_t)n;
}

/* --- building ------------------------------------------------------------- */

struct build
{
    struct oj_side *side;
    struct oj_order *order;
    struct oj_box *box;      /* [features], then [entries of the tree] */
    struct oj_box *tree_box; /* [entries of the tree] */
    double *x, *y;           /* [features] middles */
    struct oj_ordered_point **scratch; /* [n_threads] */
    atomic_int status;
    struct oj_error *err;
};

static double middle(double a, double b)
{
    return 0.5 * a + 0.5 * b;
}

static void measure(int64_t task, int thread, void *user)
{
    struct build *b = user;
    const struct oj_flat *flat = b->side->flat;
    int64_t end = (task + 1) * FEATURES_PER_TASK;
    (void)thread;
    for (int64_t f = task * FEATURES_PER_TASK; f < end && f < flat->n_features;
         f++)
    {
        struct oj_box box = oj_box_empty();
        int64_t v =
            flat->vertex_offset[flat->ring_offset[flat->part_offset[f]]];
        int64_t last =
            flat->vertex_offset[flat->ring_offset[flat->part_offset[f + 1]]];
        for (; v < last; v++)
            oj_box_add_point(&box, flat->x[v], flat->y[v]);
        b->box[f] = box;
        b->x[f] = oj_box_is_empty(&box) ? NAN : middle(box.x0, box.x1);
        b->y[f] = oj_box_is_empty(&box) ? NAN : middle(box.y0, box.y1);
    }
}

static double clamp(double v)
{
    return v > LARGEST ? LARGEST : v < -LARGEST ? -LARGEST : v;
}

static struct oj_box clamp_box(const struct oj_box *box)
{
    struct oj_box b = {clamp(box->x0), clamp(box->y0), clamp(box->x1),
                       clamp(box->y1)};
    return b;
}

/* Everything of a shape but its box, which is known. */
static struct oj_shape place_shape(const struct build *b, int64_t feature)
{
    const struct oj_flat *flat = b->side->flat;
    struct oj_shape shape;
    int64_t part = flat->part_offset[feature];
    int64_t end_part = flat->part_offset[feature + 1];
    int64_t end_ring = flat->ring_offset[end_part];
    memset(&shape, 0, sizeof shape);
    shape.box = b->box[feature];
    shape.flat = flat;
    shape.feature = (int32_t)feature;
    shape.first_ring = flat->ring_offset[part];
    shape.n_rings = (int32_t)(end_ring - shape.first_ring);
    shape.first_vertex = flat->vertex_offset[shape.first_ring];
    shape.n_vertices = flat->vertex_offset[end_ring] - shape.first_vertex;
    for (; part < end_part; part++)
        shape.kinds |= flat->part_kind[part];
    return shape;
}

static void place_bucket(int64_t bucket, int thread, void *user)
{
    struct build *b = user;
    const struct oj_order *order = b->order;
    int64_t end = order->bucket_offset[bucket + 1];
    oj_order_sort_bucket(b->order, bucket, b->scratch[thread]);
    if (b->side->shape == NULL)
        return;
    for (int64_t i = order->bucket_offset[bucket]; i < end; i++)
    {
        int64_t feature = order->point[i].index;
        b->side->shape[i] = place_shape(b, feature);
        b->tree_box[i] = clamp_box(&b->box[feature]);
    }
}

static void box_runs(int64_t task, int thread, void *user)
{
    struct build *b = user;
    const struct oj_order *order = b->order;
    int64_t end = (task + 1) * FEATURES_PER_TASK;
    int64_t n = (order->n_points + OJ_RUN_POINTS - 1) / OJ_RUN_POINTS;
    (void)thread;
    for (int64_t run = task * FEATURES_PER_TASK; run < end && run < n; run++)
    {
        struct oj_box box = oj_box_empty();
        int64_t i = run * OJ_RUN_POINTS, last = i + OJ_RUN_POINTS;
        for (; i < last && i < order->n_points; i++)
            oj_box_add_point(&box, order->point[i].x, order->point[i].y);
        b->tree_box[run] = clamp_box(&box);
    }
}

static int64_t n_tasks(int64_t n)
{
    return (n + FEATURES_PER_TASK - 1) / FEATURES_PER_TASK;
}

/* The points of b->x, b->y in order, with their shapes where there are any. */
static oj_status order_places(struct build *b, int n_threads, const double *x,
                              const double *y, struct oj_error *err)
{
    oj_status status = OJ_OK;
    OJ_TRY(oj_order_build(b->order, n_threads, b->side->flat->n_features, x, y,
                          err));
    oj_free(b->order->keys);
    b->order->keys = NULL;
    b->order->cap_keys = 0;
    b->side->n = b->order->n_points;
    b->scratch = oj_calloc(n_threads, sizeof *b->scratch);
    if (b->scratch == NULL)
        return oj_fail_nomem(err, n_threads, sizeof *b->scratch);
    for (int t = 0; t < n_threads && status == OJ_OK; t++)
    {
        b->scratch[t] =
            oj_malloc(b->order->largest_bucket, sizeof **b->scratch);
        if (b->scratch[t] == NULL)
            status = oj_fail_nomem(err, b->order->largest_bucket,
                                   sizeof **b->scratch);
    }
    if (status == OJ_OK)
        oj_parallel_for(n_threads, b->order->n_buckets, place_bucket, b);
    for (int t = 0; t < n_threads; t++)
        oj_free(b->scratch[t]);
    oj_free(b->scratch);
    return status;
}

static oj_status build_points(struct build *b, int n_threads,
                              struct oj_error *err)
{
    const struct oj_flat *flat = b->side->flat;
    int64_t n;
    OJ_TRY(order_places(b, n_threads, flat->x, flat->y, err));
    n = (b->side->n + OJ_RUN_POINTS - 1) / OJ_RUN_POINTS;
    OJ_NEW(b->tree_box, n, err);
    oj_parallel_for(n_threads, n_tasks(n), box_runs, b);
    return oj_tree_build(&b->side->tree, n_threads, n, b->tree_box, err);
}

/* Members of mixed shapes: counted, then filled. */
static oj_status build_members(struct oj_side *side, struct oj_error *err)
{
    unsigned kinds = side->flat->part_kinds;
    int64_t n = 0;
    if ((kinds & (kinds - 1)) == 0)
        return OJ_OK;
    for (int64_t i = 0; i < side->n; i++)
        n += oj_shape_count_members(side->flat, side->shape[i].feature);
    OJ_NEW(side->member, n, err);
    n = 0;
    for (int64_t i = 0; i < side->n; i++)
    {
        struct oj_shape *shape = &side->shape[i];
        if (oj_shape_count_members(side->flat, shape->feature) == 0)
            continue;
        oj_shape_set_members(shape, side->member + n);
        n += shape->n_members;
    }
    return OJ_OK;
}

static oj_status build_shapes(struct build *b, int n_threads,
                              struct oj_error *err)
{
    struct oj_side *side = b->side;
    int64_t n = side->flat->n_features;
    OJ_NEW(side->shape, n, err);
    b->box = oj_malloc(n, sizeof *b->box);
    b->tree_box = oj_malloc(n, sizeof *b->tree_box);
    b->x = oj_malloc(n, sizeof *b->x);
    b->y = oj_malloc(n, sizeof *b->y);
    if (b->box == NULL || b->tree_box == NULL || b->x == NULL || b->y == NULL)
        return oj_fail_nomem(err, n, 2 * sizeof *b->box);
    oj_parallel_for(n_threads, n_tasks(n), measure, b);
    OJ_TRY(order_places(b, n_threads, b->x, b->y, err));
    OJ_TRY(build_members(side, err));
    return oj_tree_build(&side->tree, n_threads, side->n, b->tree_box, err);
}

oj_status oj_side_build(struct oj_side *side, const struct oj_flat *flat,
                        int n_threads, int with_cells, struct oj_error *err)
{
    struct build b;
    struct oj_order order;
    oj_status status;
    memset(side, 0, sizeof *side);
    memset(&b, 0, sizeof b);
    memset(&order, 0, sizeof order);
    side->flat = flat;
    b.side = side;
    b.order = oj_flat_is_points(flat) ? &side->points : &order;
    (void)with_cells;
    status = oj_flat_is_points(flat) ? build_points(&b, n_threads, err)
                                     : build_shapes(&b, n_threads, err);
    oj_order_free(&order);
    oj_free(b.box);
    oj_free(b.tree_box);
    oj_free(b.x);
    oj_free(b.y);
    if (status != OJ_OK)
        oj_side_free(side);
    return status;
}

int64_t oj_side_bytes(const struct oj_side *side)
{
    int64_t bytes = oj_tree_bytes(&side->tree);
    if (side->shape != NULL)
        bytes += side->n * (int64_t)sizeof *side->shape;
    return bytes +
           side->points.cap_points * (int64_t)sizeof *side->points.point;
}

void oj_side_free(struct oj_side *side)
{
    oj_tree_free(&side->tree);
    oj_free(side->shape);
    oj_free(side->member);
    oj_order_free(&side->points);
    memset(side, 0, sizeof *side);
}
