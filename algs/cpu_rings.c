#include "cpu_rings.h"

#include "../flatten/oj_array.h"
#include "cpu_order.h"
#include "cpu_ring_grid.h"
#include "cpu_threads.h"

#include <string.h>

/* From how many vertices on a ring gets a grid: below, walking the ring costs
 * less than looking up a cell. */
#define GRID_VERTICES 64

struct build
{
    struct oj_rings *rings;
    struct oj_ring *unordered;
    int64_t n_holed;
    int64_t *holed; /* [n_hole_boxes] shells, into unordered */
    double *x, *y;  /* middles of the boxes */
    struct oj_box *box;
    struct oj_order order;
    int32_t *large; /* [n_grids] rings in tree order */
};

enum oj_location oj_rings_locate(const struct oj_rings *rings,
                                 const struct oj_ring *ring, double px,
                                 double py)
{
    if (px < ring->box.x0 || px > ring->box.x1 || py < ring->box.y0 ||
        py > ring->box.y1)
        return OJ_OUTSIDE;
    if (ring->grid >= 0)
        return oj_ring_grid_locate(&rings->grid[ring->grid], px, py);
    return oj_ring_locate(px, py, rings->flat->x + ring->first_vertex,
                          rings->flat->y + ring->first_vertex,
                          ring->n_vertices);
}

static int32_t holes_of(struct build *b, int64_t at, int64_t ring, int64_t part)
{
    const int64_t *ring_offset = b->rings->flat->ring_offset;
    if (ring > ring_offset[part])
        return OJ_IS_HOLE;
    if (ring + 1 == ring_offset[part + 1])
        return OJ_NO_HOLES;
    b->holed[b->n_holed] = at;
    return (int32_t)b->n_holed++;
}

/* Lists the rings in read order; boxes and grid come later. */
static void list_rings(struct build *b)
{
    const struct oj_flat *flat = b->rings->flat;
    int64_t n = 0;
    int32_t part_number = 0;
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        for (int64_t p = flat->part_offset[f]; p < flat->part_offset[f + 1];
             p++)
        {
            if (flat->part_kind[p] != OJ_PART_POLYGON)
                continue;
            for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
                 r++)
            {
                struct oj_ring *ring = &b->unordered[n];
                ring->first_vertex = flat->vertex_offset[r];
                ring->n_vertices =
                    flat->vertex_offset[r + 1] - flat->vertex_offset[r];
                ring->feature = (int32_t)f;
                ring->part = part_number;
                ring->holes = holes_of(b, n, r, p);
                ring->grid = -1;
                n++;
            }
            part_number++;
        }
    }
}

#define RINGS_PER_TASK 4096

static void measure_rings(int64_t task, int thread, void *user)
{
    struct build *b = user;
    const struct oj_flat *flat = b->rings->flat;
    int64_t end = (task + 1) * RINGS_PER_TASK;
    (void)thread;
    for (int64_t i = task * RINGS_PER_TASK; i < end && i < b->rings->n_rings;
         i++)
    {
        struct oj_ring *ring = &b->unordered[i];
        const double *x = flat->x + ring->first_vertex;
        const double *y = flat->y + ring->first_vertex;
        struct oj_box box = {x[0], y[0], x[0], y[0]};
        for (int64_t v = 1; v < ring->n_vertices; v++)
        {
            box.x0 = x[v] < box.x0 ? x[v] : box.x0;
            box.y0 = y[v] < box.y0 ? y[v] : box.y0;
            box.x1 = x[v] > box.x1 ? x[v] : box.x1;
            box.y1 = y[v] > box.y1 ? y[v] : box.y1;
        }
        ring->box = box;
        b->x[i] = 0.5 * (box.x0 + box.x1);
        b->y[i] = 0.5 * (box.y0 + box.y1);
    }
}

/* A shell is followed by its holes. */
static void measure_holes(struct build *b)
{
    for (int64_t i = 0; i < b->n_holed; i++)
    {
        struct oj_box box = oj_box_empty();
        for (int64_t r = b->holed[i] + 1; r < b->rings->n_rings; r++)
        {
            if (b->unordered[r].holes != OJ_IS_HOLE)
                break;
            oj_box_add_box(&box, &b->unordered[r].box);
        }
        b->rings->hole_box[i] = box;
    }
}

static oj_status place_bucket(int64_t bucket, int thread, void *user,
                              struct oj_error *err)
{
    struct build *b = user;
    (void)thread;
    (void)err;
    for (int64_t i = b->order.bucket_offset[bucket];
         i < b->order.bucket_offset[bucket + 1]; i++)
    {
        const struct oj_ring *ring = &b->unordered[b->order.point[i].index];
        b->rings->ring[i] = *ring;
        b->box[i] = ring->box;
        if (ring->holes >= 0)
            oj_box_add_box(&b->box[i], &b->rings->hole_box[ring->holes]);
    }
    return OJ_OK;
}

static oj_status build_grid(int64_t i, int thread, void *user,
                            struct oj_error *err)
{
    struct build *b = user;
    struct oj_rings *rings = b->rings;
    struct oj_ring *ring = &rings->ring[b->large[i]];
    (void)thread;
    ring->grid = (int32_t)i;
    return oj_ring_grid_build(
        &rings->grid[i], rings->flat->x + ring->first_vertex,
        rings->flat->y + ring->first_vertex, ring->n_vertices, err);
}

static oj_status build_grids(struct build *b, int n_threads,
                             struct oj_error *err)
{
    struct oj_rings *rings = b->rings;
    int64_t n = 0;
    for (int64_t i = 0; i < rings->n_rings; i++)
        n += rings->ring[i].n_vertices >= GRID_VERTICES;
    b->large = oj_malloc(n, sizeof *b->large);
    rings->grid = oj_calloc(n, sizeof *rings->grid);
    if (b->large == NULL || rings->grid == NULL)
        return oj_fail_nomem(err, n, sizeof *rings->grid);
    for (int64_t i = 0; i < rings->n_rings; i++)
    {
        if (rings->ring[i].n_vertices >= GRID_VERTICES)
            b->large[rings->n_grids++] = (int32_t)i;
    }
    return oj_parallel_try(n_threads, n, 1, build_grid, b, err);
}

static oj_status order_rings(struct build *b, int n_threads,
                             struct oj_error *err)
{
    struct oj_rings *rings = b->rings;
    int64_t n = rings->n_rings;
    b->unordered = oj_malloc(n, sizeof *b->unordered);
    rings->ring = oj_malloc(n, sizeof *rings->ring);
    b->x = oj_malloc(n, sizeof *b->x);
    b->y = oj_malloc(n, sizeof *b->y);
    b->box = oj_malloc(n, sizeof *b->box);
    b->holed = oj_malloc(rings->n_hole_boxes, sizeof *b->holed);
    rings->hole_box = oj_malloc(rings->n_hole_boxes, sizeof *rings->hole_box);
    if (b->unordered == NULL || rings->ring == NULL || b->x == NULL ||
        b->y == NULL || b->box == NULL || b->holed == NULL ||
        rings->hole_box == NULL)
        return oj_fail_nomem(err, n, 2 * sizeof *rings->ring);
    list_rings(b);
    oj_parallel_for(n_threads, (n + RINGS_PER_TASK - 1) / RINGS_PER_TASK,
                    measure_rings, b);
    measure_holes(b);
    OJ_TRY(oj_order_build(&b->order, n_threads, n, b->x, b->y, err));
    OJ_TRY(oj_order_sort(&b->order, n_threads, place_bucket, b, err));
    return oj_tree_build(&rings->tree, n_threads, n, b->box, err);
}

oj_status oj_rings_build(struct oj_rings *rings, const struct oj_flat *flat,
                         int n_threads, struct oj_error *err)
{
    struct build b;
    oj_status status;
    memset(rings, 0, sizeof *rings);
    rings->flat = flat;
    if (oj_flat_is_points(flat) || !(flat->part_kinds & OJ_PART_POLYGON))
        return OJ_OK;
    for (int64_t p = 0; p < flat->n_parts; p++)
    {
        int64_t n = flat->ring_offset[p + 1] - flat->ring_offset[p];
        if (flat->part_kind[p] != OJ_PART_POLYGON)
            continue;
        rings->n_rings += n;
        rings->n_hole_boxes += n > 1;
    }
    if (rings->n_rings > INT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the join layer has %lld polygon rings; at most %d are "
                       "possible",
                       (long long)rings->n_rings, INT32_MAX);
    memset(&b, 0, sizeof b);
    b.rings = rings;
    status = order_rings(&b, n_threads, err);
    if (status == OJ_OK)
        status = build_grids(&b, n_threads, err);
    oj_free(b.unordered);
    oj_free(b.x);
    oj_free(b.y);
    oj_free(b.box);
    oj_free(b.holed);
    oj_free(b.large);
    oj_order_free(&b.order);
    if (status != OJ_OK)
        oj_rings_free(rings);
    return status;
}

int64_t oj_rings_bytes(const struct oj_rings *rings)
{
    int64_t bytes = rings->n_rings * (int64_t)sizeof *rings->ring +
                    rings->n_hole_boxes * (int64_t)sizeof *rings->hole_box +
                    oj_tree_bytes(&rings->tree);
    for (int64_t i = 0; i < rings->n_grids; i++)
        bytes += oj_ring_grid_bytes(&rings->grid[i]);
    return bytes;
}

void oj_rings_free(struct oj_rings *rings)
{
    for (int64_t i = 0; i < rings->n_grids; i++)
        oj_ring_grid_free(&rings->grid[i]);
    oj_free(rings->grid);
    oj_free(rings->ring);
    oj_free(rings->hole_box);
    oj_tree_free(&rings->tree);
    memset(rings, 0, sizeof *rings);
}
