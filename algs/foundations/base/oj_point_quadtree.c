#include "oj_point_quadtree.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../kernels/oj_point_quadrants.h"
#include "oj_radix_sort.h"

#include <string.h>

static oj_status allocate_points(struct oj_points *points, int64_t n,
                                 struct oj_error *err)
{
    memset(points, 0, sizeof *points);
    points->x = oj_malloc(n, sizeof *points->x);
    points->y = oj_malloc(n, sizeof *points->y);
    points->row = oj_malloc(n, sizeof *points->row);
    if (points->x != NULL && points->y != NULL && points->row != NULL)
        return OJ_OK;
    oj_points_free(points);
    return oj_fail_nomem(err, n, 2 * sizeof(double) + sizeof(int32_t));
}

static void append_point(struct oj_points *points, const struct oj_flat *input,
                         int64_t vertex, int64_t row)
{
    points->x[points->n] = input->x[vertex];
    points->y[points->n] = input->y[vertex];
    points->row[points->n++] = (int32_t)row;
}

oj_status oj_points_make(const struct oj_flat *input, struct oj_points *out,
                         struct oj_error *err)
{
    struct oj_points points;
    if (input->n_features > INT32_MAX)
        return oj_fail(
            err, OJ_ERR_LIMIT,
            "a batch holds at most %d input features: use smaller batches",
            INT32_MAX);
    if (input->part_kinds & ~(unsigned)OJ_PART_POINT)
        return oj_fail(err, OJ_ERR_ARG,
                       "this backend supports only points and multipoints as "
                       "input: use the backend cpu");
    OJ_TRY(allocate_points(&points, input->n_vertices, err));
    for (int64_t row = 0; row < input->n_features; row++)
    {
        if (oj_flat_is_points(input))
        {
            if (!isnan(input->x[row]))
                append_point(&points, input, row, row);
            continue;
        }
        /* In a flat layer a point is a part with one ring of one vertex. */
        for (int64_t part = input->part_offset[row];
             part < input->part_offset[row + 1]; part++)
            append_point(&points, input,
                         input->vertex_offset[input->ring_offset[part]], row);
    }
    *out = points;
    return OJ_OK;
}

void oj_points_free(struct oj_points *points)
{
    oj_free(points->x);
    oj_free(points->y);
    oj_free(points->row);
    oj_free(points->code);
    memset(points, 0, sizeof *points);
}

static uint64_t morton_code(double x, double y, const struct oj_box *frame)
{
    return oj_morton64(oj_morton_column32(x, frame->x0, frame->x1),
                       oj_morton_column32(y, frame->y0, frame->y1));
}

static oj_status permute_points(struct oj_points *points,
                                const struct oj_keyed *order,
                                struct oj_error *err)
{
    struct oj_points sorted;
    OJ_TRY(allocate_points(&sorted, points->n, err));
    sorted.n = points->n;
    sorted.code = oj_malloc(points->n, sizeof *sorted.code);
    if (sorted.code == NULL)
    {
        oj_points_free(&sorted);
        return oj_fail_nomem(err, points->n, sizeof *sorted.code);
    }
    for (int64_t i = 0; i < points->n; i++)
    {
        sorted.x[i] = points->x[order[i].value];
        sorted.y[i] = points->y[order[i].value];
        sorted.row[i] = points->row[order[i].value];
        sorted.code[i] = order[i].key;
    }
    oj_points_free(points);
    *points = sorted;
    return OJ_OK;
}

oj_status oj_points_sort(struct oj_points *points, struct oj_error *err)
{
    struct oj_box frame = oj_box_of_points(points->x, points->y, points->n);
    struct oj_keyed *key;
    oj_status status;
    if (points->n == 0)
        return OJ_OK;
    OJ_NEW(key, 2 * points->n, err);
    for (int64_t i = 0; i < points->n; i++)
    {
        key[i].key = morton_code(points->x[i], points->y[i], &frame);
        key[i].value = i;
    }
    status = permute_points(
        points, oj_radix_sort(key, key + points->n, points->n), err);
    oj_free(key);
    return status;
}

/* Arguments of split_square() that do not change in the recursion: the sorted
 * points, the maximum number of points in a quadrant, and the output. */
struct splitting
{
    const struct oj_points *points;
    int64_t size;
    struct oj_quadrants *out;
};

static oj_status append_quadrant(const struct splitting *splitting,
                                 int64_t first, int64_t end,
                                 struct oj_error *err)
{
    const struct oj_points *points = splitting->points;
    struct oj_quadrants *out = splitting->out;
    struct oj_quadrant *quadrant;
    OJ_ROOM(out->quadrant, out->n, out->n + 1, out->capacity, err);
    quadrant = &out->quadrant[out->n++];
    quadrant->first = first;
    quadrant->end = end;
    quadrant->box =
        oj_box_of_points(points->x + first, points->y + first, end - first);
    return OJ_OK;
}

/* Splits a square into its four quadrants, recursively, until each holds at
 * most splitting->size points. The points are first .. end - 1; their Morton
 * codes differ in the lowest low_bits bits only. */
static oj_status split_square(const struct splitting *splitting, int64_t first,
                              int64_t end, int low_bits, struct oj_error *err)
{
    while (first < end)
    {
        int64_t next = end;
        if (low_bits > 0)
            next = oj_quadrant_square_end(splitting->points->code, first, end,
                                          low_bits - 2);
        else if (end - first > splitting->size)
            next = first + splitting->size;
        if (low_bits == 0 || next - first <= splitting->size)
            OJ_TRY(append_quadrant(splitting, first, next, err));
        else
            OJ_TRY(split_square(splitting, first, next, low_bits - 2, err));
        first = next;
    }
    return OJ_OK;
}

oj_status oj_quadtree_make(const struct oj_points *points, int64_t size,
                           struct oj_quadrants *out, struct oj_error *err)
{
    struct oj_quadrants quadrants;
    struct splitting splitting = {points, size, &quadrants};
    oj_status status = OJ_OK;
    memset(&quadrants, 0, sizeof quadrants);
    if (points->n > 0 && points->n <= size)
        status = append_quadrant(&splitting, 0, points->n, err);
    else
        status =
            split_square(&splitting, 0, points->n, OJ_QUADRANT_CODE_BITS, err);
    if (status != OJ_OK)
    {
        oj_quadtree_free(&quadrants);
        return status;
    }
    *out = quadrants;
    return OJ_OK;
}

void oj_quadtree_free(struct oj_quadrants *quadrants)
{
    oj_free(quadrants->quadrant);
    memset(quadrants, 0, sizeof *quadrants);
}
