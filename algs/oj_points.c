#include "oj_points.h"
#include "../flatten/oj_array.h"
#include "kernels/oj_morton.h"
#include "oj_radix.h"

#include <string.h>

#define CODE_BITS 64

static oj_status make_arrays(struct oj_points *points, int64_t n,
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

static void add(struct oj_points *points, const struct oj_flat *input,
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
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a batch holds at most %d input features", INT32_MAX);
    if (input->part_kinds & ~(unsigned)OJ_PART_POINT)
        return oj_fail(err, OJ_ERR_ARG,
                       "the input side must be points or multipoints");
    OJ_TRY(make_arrays(&points, input->n_vertices, err));
    for (int64_t row = 0; row < input->n_features; row++)
    {
        if (oj_flat_is_points(input))
        {
            if (!isnan(input->x[row]))
                add(&points, input, row, row);
            continue;
        }
        /* points have one ring of one vertex each */
        for (int64_t part = input->part_offset[row];
             part < input->part_offset[row + 1]; part++)
            add(&points, input, input->vertex_offset[input->ring_offset[part]],
                row);
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

/* Column of v in 2^32 columns over lowest .. highest. */
static uint32_t column(double v, double lowest, double highest)
{
    double extent = highest * 0.5 - lowest * 0.5; /* halves do not overflow */
    double share = extent > 0.0 ? (v * 0.5 - lowest * 0.5) / extent : 0.0;
    double c = share * 4294967296.0;
    if (!(c > 0.0))
        return 0;
    return c >= 4294967295.0 ? UINT32_MAX : (uint32_t)c;
}

static uint64_t morton_code(double x, double y, const struct oj_box *frame)
{
    uint32_t cx = column(x, frame->x0, frame->x1);
    uint32_t cy = column(y, frame->y0, frame->y1);
    return (uint64_t)oj_morton(cx >> 16, cy >> 16) << 32 |
           oj_morton(cx & 0xFFFFu, cy & 0xFFFFu);
}

static oj_status permute(struct oj_points *points, const struct oj_keyed *order,
                         struct oj_error *err)
{
    struct oj_points sorted;
    OJ_TRY(make_arrays(&sorted, points->n, err));
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
    struct oj_box frame = oj_box_empty();
    struct oj_keyed *places, *spare;
    oj_status status;
    if (points->n == 0)
        return OJ_OK;
    OJ_NEW(places, points->n, err);
    spare = oj_malloc(points->n, sizeof *spare);
    if (spare == NULL)
    {
        oj_free(places);
        return oj_fail_nomem(err, points->n, sizeof *spare);
    }
    for (int64_t i = 0; i < points->n; i++)
        oj_box_add_point(&frame, points->x[i], points->y[i]);
    for (int64_t i = 0; i < points->n; i++)
    {
        places[i].key = morton_code(points->x[i], points->y[i], &frame);
        places[i].value = i;
    }
    status = permute(points, oj_radix_sort(places, spare, points->n), err);
    oj_free(places);
    oj_free(spare);
    return status;
}

static oj_status add_quadrant(struct oj_quadrants *quadrants,
                              const struct oj_points *points, int64_t first,
                              int64_t end, struct oj_error *err)
{
    struct oj_quadrant *quadrant;
    OJ_TRY(oj_reserve(&quadrants->quadrant, quadrants->n, quadrants->n + 1,
                      &quadrants->capacity, sizeof *quadrants->quadrant, err));
    quadrant = &quadrants->quadrant[quadrants->n++];
    quadrant->first = first;
    quadrant->end = end;
    quadrant->box = oj_box_empty();
    for (int64_t i = first; i < end; i++)
        oj_box_add_point(&quadrant->box, points->x[i], points->y[i]);
    return OJ_OK;
}

/* First point in first .. end whose code, without its low bits, is above that
 * of point first. */
static int64_t end_of_square(const struct oj_points *points, int64_t first,
                             int64_t end, int low_bits)
{
    uint64_t square = points->code[first] >> low_bits;
    while (first < end)
    {
        int64_t middle = first + (end - first) / 2;
        if (points->code[middle] >> low_bits > square)
            end = middle;
        else
            first = middle + 1;
    }
    return end;
}

/* Splits the points of one square (codes alike but for low_bits bits). */
static oj_status split(struct oj_quadrants *quadrants,
                       const struct oj_points *points, int64_t first,
                       int64_t end, int low_bits, int64_t size,
                       struct oj_error *err)
{
    if (end - first <= size)
        return add_quadrant(quadrants, points, first, end, err);
    while (first < end)
    {
        int64_t next;
        if (low_bits == 0)
        {
            next = end - first > size ? first + size : end;
            OJ_TRY(add_quadrant(quadrants, points, first, next, err));
        }
        else
        {
            next = end_of_square(points, first, end, low_bits - 2);
            OJ_TRY(
                split(quadrants, points, first, next, low_bits - 2, size, err));
        }
        first = next;
    }
    return OJ_OK;
}

oj_status oj_quadrants_make(const struct oj_points *points, int64_t size,
                            struct oj_quadrants *out, struct oj_error *err)
{
    struct oj_quadrants quadrants;
    oj_status status = OJ_OK;
    memset(&quadrants, 0, sizeof quadrants);
    if (points->n > 0 && points->n <= size)
        status = add_quadrant(&quadrants, points, 0, points->n, err);
    else if (points->n > 0)
    {
        /* a shift by all 64 bits is undefined, so the four largest squares
         * are taken here */
        for (int64_t first = 0; first < points->n && status == OJ_OK;)
        {
            int64_t end =
                end_of_square(points, first, points->n, CODE_BITS - 2);
            status =
                split(&quadrants, points, first, end, CODE_BITS - 2, size, err);
            first = end;
        }
    }
    if (status != OJ_OK)
    {
        oj_quadrants_free(&quadrants);
        return status;
    }
    *out = quadrants;
    return OJ_OK;
}

void oj_quadrants_free(struct oj_quadrants *quadrants)
{
    oj_free(quadrants->quadrant);
    memset(quadrants, 0, sizeof *quadrants);
}
