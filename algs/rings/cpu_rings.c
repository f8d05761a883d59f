#include "cpu_rings.h"

#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_threads.h"
#include "../base/cpu_order.h"

#include <stdlib.h>
#include <string.h>

/* Runs of equal Morton codes longer than this are searched for repetitions. */
#define LONG_RUN 32

struct rings_build
{
    struct oj_rings *rings;
    struct oj_ring *unordered;
    int64_t n_holed;
    int64_t *holed; /* [n_hole_boxes] shells, into unordered */
    double *x, *y;  /* middles of the boxes */
    struct oj_box *box;
    struct oj_order order;
    const int32_t *tie_rank;
    int64_t k_distinct;
    uint8_t *is_dropped; /* [parts]; NULL: none can be */
};

enum oj_location oj_rings_locate(const struct oj_rings *rings,
                                 const struct oj_ring *ring, double px,
                                 double py)
{
    if (!oj_box_has(&ring->box, px, py))
        return OJ_OUTSIDE;
    if (ring->grid >= 0)
        return oj_edge_grid_locate(&rings->grids.grid[ring->grid], px, py);
    return oj_ring_locate(px, py, rings->flat->x + ring->first_vertex,
                          rings->flat->y + ring->first_vertex,
                          ring->n_vertices);
}

static int32_t holes_of(struct rings_build *b, int64_t at, int64_t ring,
                        int64_t part)
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
static void list_rings(struct rings_build *b)
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
                ring->grid = b->rings->grids.of_ring[r];
                n++;
            }
            part_number++;
        }
    }
}

#define RINGS_AT_ONCE 4096

static void measure_rings(int64_t first, int64_t end, void *user)
{
    struct rings_build *b = user;
    const struct oj_flat *flat = b->rings->flat;
    for (int64_t i = first; i < end; i++)
    {
        struct oj_ring *ring = &b->unordered[i];
        struct oj_box box =
            oj_box_of(flat->x + ring->first_vertex,
                      flat->y + ring->first_vertex, ring->n_vertices);
        ring->box = box;
        b->x[i] = 0.5 * (box.x0 + box.x1);
        b->y[i] = 0.5 * (box.y0 + box.y1);
    }
}

/* A shell is followed by its holes. */
static void measure_holes(struct rings_build *b)
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

/* --- polygons that repeat others ------------------------------------------ */

/* A polygon part, for finding those that repeat it. */
struct part_hash
{
    uint64_t hash;
    int32_t rank;
    uint32_t shell; /* in the list of rings; its holes follow */
};

static uint32_t end_of_part(const struct rings_build *b, uint32_t shell)
{
    uint32_t end = shell + 1;
    while (end < b->rings->n_rings && b->unordered[end].holes == OJ_IS_HOLE)
        end++;
    return end;
}

static uint64_t mix(uint64_t hash, double v)
{
    uint64_t bits;
    v += 0.0; /* zeros of either sign are one place */
    memcpy(&bits, &v, sizeof bits);
    hash = (hash ^ bits) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static uint64_t hash_part(const struct rings_build *b, uint32_t shell)
{
    const struct oj_flat *flat = b->rings->flat;
    uint32_t end = end_of_part(b, shell);
    uint64_t hash = end - shell;
    for (uint32_t r = shell; r < end; r++)
    {
        int64_t first = b->unordered[r].first_vertex;
        int64_t n = b->unordered[r].n_vertices;
        for (int64_t v = first; v < first + n; v++)
            hash = mix(mix(hash, flat->x[v]), flat->y[v]);
    }
    return hash;
}

static int are_equal(const struct rings_build *b, uint32_t shell,
                     uint32_t other)
{
    const struct oj_flat *flat = b->rings->flat;
    uint32_t n_rings = end_of_part(b, shell) - shell;
    if (end_of_part(b, other) - other != n_rings)
        return 0;
    for (uint32_t r = 0; r < n_rings; r++)
    {
        const struct oj_ring *one = &b->unordered[shell + r];
        const struct oj_ring *two = &b->unordered[other + r];
        if (one->n_vertices != two->n_vertices)
            return 0;
        for (int64_t v = 0; v < one->n_vertices; v++)
        {
            int64_t i = one->first_vertex + v, j = two->first_vertex + v;
            if (flat->x[i] != flat->x[j] || flat->y[i] != flat->y[j])
                return 0;
        }
    }
    return 1;
}

static int compare_twins(const void *left, const void *right)
{
    const struct part_hash *a = left, *b = right;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->shell > b->shell) - (a->shell < b->shell);
}

/* Marks, of a run of rings, all but the k_distinct lowest ranks of each
 * repeated part: a thousand lots on one place would otherwise be asked about
 * each point there. Those that only hash as the first of their like stay.
 * Without memory all stay. */
static void mark_repetitions(const struct rings_build *b,
                             const struct oj_ordered_point *run, int64_t n_run)
{
    struct part_hash *twin = oj_malloc(n_run, sizeof *twin);
    int64_t n = 0, first = 0, same = 0;
    for (int64_t i = 0; twin != NULL && i < n_run; i++)
    {
        const struct oj_ring *ring = &b->unordered[run[i].index];
        int32_t f = ring->feature;
        if (ring->holes == OJ_IS_HOLE)
            continue;
        twin[n].hash = hash_part(b, run[i].index);
        twin[n].rank = b->tie_rank == NULL ? f : b->tie_rank[f];
        twin[n++].shell = run[i].index;
    }
    if (n > 0)
        qsort(twin, (size_t)n, sizeof *twin, compare_twins);
    for (int64_t i = 1; i < n; i++)
    {
        if (twin[i].hash != twin[first].hash ||
            !are_equal(b, twin[i].shell, twin[first].shell))
        {
            if (twin[i].hash != twin[first].hash)
            {
                first = i;
                same = 0;
            }
            continue;
        }
        same += twin[i].rank != twin[i - 1].rank;
        if (same >= b->k_distinct)
            b->is_dropped[b->unordered[twin[i].shell].part] = 1;
    }
    oj_free(twin);
}

static oj_status mark_in_bucket(int64_t bucket, int thread, void *user,
                                struct oj_error *err)
{
    struct rings_build *b = user;
    const struct oj_order *order = &b->order;
    const struct oj_ordered_point *point = order->point;
    int64_t end = order->bucket_offset[bucket + 1], next;
    (void)thread;
    (void)err;
    for (int64_t i = order->bucket_offset[bucket]; i < end; i = next)
    {
        uint32_t key = point[i].key >> order->sort_from_bit;
        next = i + 1;
        while (next < end && point[next].key >> order->sort_from_bit == key)
            next++;
        if (next - i > LONG_RUN)
            mark_repetitions(b, point + i, next - i);
    }
    return OJ_OK;
}

/* Closes the gaps that dropped parts leave among the boxes of holes, and leaves
 * in holed where each box that stays is now. */
static void drop_hole_boxes(struct rings_build *b)
{
    int64_t n = 0;
    for (int64_t i = 0; i < b->n_holed; i++)
    {
        int32_t part = b->unordered[b->holed[i]].part;
        b->rings->hole_box[n] = b->rings->hole_box[i];
        b->holed[i] = n;
        n += !b->is_dropped[part];
    }
    b->rings->n_hole_boxes = n;
}

/* Closes the gaps that dropped parts leave; their holes go with them. */
static void drop_marked(struct rings_build *b)
{
    struct oj_rings *rings = b->rings;
    int64_t n_parts = b->unordered[rings->n_rings - 1].part + 1, n = 0;
    if (memchr(b->is_dropped, 1, (size_t)n_parts) == NULL)
        return;
    drop_hole_boxes(b);
    for (int64_t i = 0; i < rings->n_rings; i++)
    {
        rings->ring[n] = rings->ring[i];
        if (rings->ring[n].holes >= 0)
            rings->ring[n].holes = (int32_t)b->holed[rings->ring[n].holes];
        b->box[n] = b->box[i];
        n += !b->is_dropped[rings->ring[i].part];
    }
    rings->n_rings = n;
}

/* --- the tree ------------------------------------------------------------- */

static oj_status place_bucket(int64_t bucket, int thread, void *user,
                              struct oj_error *err)
{
    struct rings_build *b = user;
    if (b->is_dropped != NULL)
        OJ_TRY(mark_in_bucket(bucket, thread, user, err));
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

static oj_status order_rings(struct rings_build *b, int n_threads,
                             struct oj_error *err)
{
    struct oj_rings *rings = b->rings;
    int64_t n = rings->n_rings;
    OJ_NEW(b->unordered, n, err);
    OJ_NEW(rings->ring, n, err);
    OJ_NEW(b->x, n, err);
    OJ_NEW(b->y, n, err);
    OJ_NEW(b->box, n, err);
    OJ_NEW(b->holed, rings->n_hole_boxes, err);
    OJ_NEW(rings->hole_box, rings->n_hole_boxes, err);
    list_rings(b);
    if (n > LONG_RUN && b->k_distinct < INT64_MAX)
    {
        OJ_NEW_ZEROED(b->is_dropped, b->unordered[n - 1].part + 1, err);
    }
    oj_parallel_slices(n_threads, n, RINGS_AT_ONCE, measure_rings, b);
    measure_holes(b);
    OJ_TRY(oj_order_build(&b->order, n_threads, n, b->x, b->y, err));
    OJ_TRY(oj_order_sort(&b->order, n_threads, place_bucket, b, err));
    if (b->is_dropped != NULL)
        drop_marked(b);
    return oj_tree_build(&rings->tree, n_threads, rings->n_rings, b->box, err);
}

oj_status oj_rings_build(struct oj_rings *rings, const struct oj_flat *flat,
                         const int32_t *tie_rank, int64_t k_distinct,
                         int n_threads, struct oj_error *err)
{
    struct rings_build b;
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
    b.tie_rank = tie_rank;
    b.k_distinct = k_distinct;
    status = oj_ring_grids_build(&rings->grids, flat, n_threads, err);
    if (status == OJ_OK)
        status = order_rings(&b, n_threads, err);
    oj_free(b.unordered);
    oj_free(b.x);
    oj_free(b.y);
    oj_free(b.box);
    oj_free(b.holed);
    oj_free(b.is_dropped);
    oj_order_free(&b.order);
    if (status != OJ_OK)
        oj_rings_free(rings);
    return status;
}

int64_t oj_rings_bytes(const struct oj_rings *rings)
{
    return rings->n_rings * (int64_t)sizeof *rings->ring +
           rings->n_hole_boxes * (int64_t)sizeof *rings->hole_box +
           oj_tree_bytes(&rings->tree) + oj_ring_grids_bytes(&rings->grids);
}

void oj_rings_free(struct oj_rings *rings)
{
    oj_ring_grids_free(&rings->grids);
    oj_free(rings->ring);
    oj_free(rings->hole_box);
    oj_tree_free(&rings->tree);
    memset(rings, 0, sizeof *rings);
}
