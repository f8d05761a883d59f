#include "cpu_near_grid.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_parallel.h"
#include "../../foundations/base/cpu_lane_loops.h"
#include "../../foundations/base/cpu_morton_order.h"

#include <string.h>

/* Number of points that are sampled to find out whether the points are too
 * unevenly distributed. */
#define N_SAMPLES 2048

#define MOST_BUCKETS 2048
#define NO_CELL UINT32_MAX

/* Maximum number of cells: CELLS_PER_POINT times the points, plus CELLS_MORE
 * for small layers. */
#define CELLS_PER_POINT 6
#define CELLS_MORE 1024

/* A grid with cells wider than the reach is uneven if the three runs of a point
 * (cpu_near_grid.h) hold more points than this, on average over the sample. */
#define MANY_IN_RUNS 1024

/* A point while points are sorted into cells. */
struct near_point
{
    double x, y;
    int32_t id;
    uint32_t cell;
};

struct near_grid_build
{
    struct oj_near_grid *grid;
    const struct oj_flat *flat;
    const int32_t *tie_rank;
    double reach;
    int64_t n_slices, n_buckets;
    int bucket_bits;          /* the bucket of a cell is its number >>
                                 bucket_bits */
    uint32_t *cell;           /* [n_features] cell number of each point, or
                                 NO_CELL */
    int64_t *start;           /* [n_slices][n_buckets] first the number of a
                                 slice's points in a bucket, then where the next
                                 of them is written in `point` */
    int64_t *bucket_offset;   /* [n_buckets + 1] */
    struct near_point *point; /* [grid->n] the points, bucket by bucket */
};

static int64_t slice_begin(const struct near_grid_build *b, int64_t slice)
{
    return oj_order_slice_begin(b->flat->n_features, b->n_slices, slice);
}

/* --- the frame ------------------------------------------------------------ */

/* Returns the number of cells of this width that cover the box, including the
 * empty row or column on each side. */
static double count_cells_of_box(const struct oj_box *f, double side)
{
    return (floor((f->x1 - f->x0) / side) + 3.0) *
           (floor((f->y1 - f->y0) / side) + 3.0);
}

/* Sets the frame and the width of the cells. If cells as wide as the reach can
 * cover all points and are not too many, returns 0. Otherwise the frame covers
 * only the bulk of the points (oj_order_frame_of_sample()), cells that are
 * still too many are made wider, and the result is 1. */
static int choose_grid_extent_and_cell_size(struct near_grid_build *b)
{
    struct oj_near_grid *grid = b->grid;
    struct oj_box f = oj_box_empty();
    double most = (double)CELLS_PER_POINT * (double)b->flat->n_features;
    /* Slightly more than the reach, so that rounding cannot make cells
     * narrower; at least 1e-150, because squares of smaller distances may
     * underflow to 0. */
    double side = b->reach * (1.0 + 1e-6);
    int is_wider = 0;
    most = fmin(most + CELLS_MORE, 4e9); /* cell numbers have 32 bits */
    side = side > 1e-150 ? side : 1e-150;
    /* Comparisons with NaN leave the box unchanged. */
    for (int64_t i = 0; i < b->flat->n_features; i++)
        oj_box_add_point(&f, b->flat->x[i], b->flat->y[i]);
    /* An extent that overflows gives one cell. (Without points the extent is
     * negative and infinite, so the cells are too many, and
     * oj_order_frame_of_sample() sets the frame.) */
    if (!(f.x1 - f.x0 < INFINITY && f.y1 - f.y0 < INFINITY))
        f = (struct oj_box){0.0, 0.0, 0.0, 0.0};
    if (!(count_cells_of_box(&f, side) <= most))
    {
        is_wider = 1;
        f = oj_order_frame_of_sample(b->flat->n_features, b->flat->x,
                                     b->flat->y);
        if (!(count_cells_of_box(&f, side) <= most))
        {
            double width = f.x1 - f.x0, height = f.y1 - f.y0;
            side = fmax(side, sqrt(width / most) * sqrt(height));
            side = fmax(side, 4.0 * (fmax(width, height) / most));
            while (!(count_cells_of_box(&f, side) <= most) &&
                   side < DBL_MAX / 4)
                side *= 1.25;
        }
    }
    grid->x0 = f.x0;
    grid->y0 = f.y0;
    grid->inverse = 1.0 / side;
    grid->n_columns = 3 + (int64_t)floor((f.x1 - f.x0) / side);
    grid->n_rows = 3 + (int64_t)floor((f.y1 - f.y0) / side);
    return is_wider;
}

/* --- sorting -------------------------------------------------------------- */

static void number_cells_and_count_buckets(int64_t slice, int thread,
                                           void *user)
{
    struct near_grid_build *b = user;
    const struct oj_near_grid *grid = b->grid;
    const double *x = b->flat->x, *y = b->flat->y;
    int64_t *count = b->start + slice * b->n_buckets;
    int64_t end = slice_begin(b, slice + 1);
    (void)thread;
    for (int64_t i = slice_begin(b, slice); i < end; i++)
    {
        uint32_t cell = NO_CELL;
        if (x[i] == x[i] && y[i] == y[i])
        {
            cell = (uint32_t)oj_near_cell_number(grid, x[i], y[i]);
            count[cell >> b->bucket_bits]++;
        }
        b->cell[i] = cell;
    }
}

static void scatter_points_to_buckets(int64_t slice, int thread, void *user)
{
    struct near_grid_build *b = user;
    int64_t *start = b->start + slice * b->n_buckets;
    int64_t end = slice_begin(b, slice + 1);
    (void)thread;
    for (int64_t i = slice_begin(b, slice); i < end; i++)
    {
        uint32_t cell = b->cell[i];
        int64_t place;
        if (cell == NO_CELL)
            continue;
        place = start[cell >> b->bucket_bits]++;
        b->point[place] = (struct near_point){
            b->flat->x[i], b->flat->y[i],
            b->tie_rank != NULL ? b->tie_rank[i] : (int32_t)i, cell};
    }
}

/* Sorts a bucket's points by cell (stable). cell_start[c + 1] first holds the
 * number of points of cell c, then the position of its next point to be placed,
 * and at last the end of cell c, where cell c + 1 begins. */
static void sort_bucket_points_by_cell(int64_t bucket, int thread, void *user)
{
    struct near_grid_build *b = user;
    struct oj_near_grid *grid = b->grid;
    int64_t n_cells = grid->n_columns * grid->n_rows;
    int64_t first = bucket << b->bucket_bits;
    int64_t end = (bucket + 1) << b->bucket_bits;
    int64_t at = b->bucket_offset[bucket], n = b->bucket_offset[bucket + 1];
    uint32_t *next = grid->cell_start + 1, total = (uint32_t)at;
    (void)thread;
    end = end < n_cells ? end : n_cells;
    memset(next + first, 0, (size_t)(end - first) * sizeof *next);
    for (int64_t i = at; i < n; i++)
        next[b->point[i].cell]++;
    for (int64_t c = first; c < end; c++)
    {
        uint32_t count = next[c];
        next[c] = total;
        total += count;
    }
    for (int64_t i = at; i < n; i++)
    {
        const struct near_point *point = &b->point[i];
        uint32_t place = next[point->cell]++;
        grid->x[place] = point->x;
        grid->y[place] = point->y;
        grid->id[place] = point->id;
    }
}

static oj_status sort_points(struct near_grid_build *b, int n_threads,
                             struct oj_error *err)
{
    struct oj_near_grid *grid = b->grid;
    int64_t n_cells = grid->n_columns * grid->n_rows, n = b->flat->n_features;
    while ((n_cells >> b->bucket_bits) >= MOST_BUCKETS)
        b->bucket_bits++;
    b->n_buckets = (n_cells >> b->bucket_bits) + 1;
    OJ_NEW_ZEROED(b->start, b->n_slices * b->n_buckets, err);
    OJ_NEW(b->bucket_offset, b->n_buckets + 1, err);
    OJ_NEW(b->cell, n, err);
    oj_parallel_for(n_threads, b->n_slices, number_cells_and_count_buckets, b);
    oj_order_counts_to_positions(b->n_slices, b->n_buckets, b->start,
                                 b->bucket_offset);
    grid->n = b->bucket_offset[b->n_buckets];
    OJ_NEW(b->point, grid->n, err);
    oj_parallel_for(n_threads, b->n_slices, scatter_points_to_buckets, b);
    oj_free(b->cell);
    b->cell = NULL;
    OJ_NEW(grid->x, grid->n + OJ_NEAR_LANES, err);
    OJ_NEW(grid->y, grid->n + OJ_NEAR_LANES, err);
    OJ_NEW(grid->id, grid->n + OJ_NEAR_LANES, err);
    OJ_NEW(grid->cell_start, n_cells + 1, err);
    grid->cell_start[0] = 0;
    for (int64_t i = grid->n; i < grid->n + OJ_NEAR_LANES; i++)
    {
        grid->x[i] = grid->y[i] = 0.0;
        grid->id[i] = 0;
    }
    oj_parallel_for(n_threads, b->n_buckets, sort_bucket_points_by_cell, b);
    return OJ_OK;
}

/* Returns 1 if the three runs of cells around a point hold more than
 * MANY_IN_RUNS points on average; a sample of the points is tested. */
static int has_crowded_cells(const struct oj_near_grid *grid)
{
    int64_t step = grid->n / N_SAMPLES + 1, n_seen = 0, n_in_runs = 0;
    for (int64_t i = 0; i < grid->n; i += step, n_seen++)
    {
        const uint32_t *cell = oj_near_cell(grid, grid->x[i], grid->y[i]);
        for (int64_t row = -1; row <= 1; row++)
            n_in_runs += oj_near_run_end(grid, cell, row) -
                         oj_near_run_begin(grid, cell, row);
    }
    return n_in_runs > MANY_IN_RUNS * n_seen;
}

oj_status oj_near_grid_build(struct oj_near_grid *grid,
                             const struct oj_flat *flat,
                             const int32_t *tie_rank, double reach,
                             int n_threads, struct oj_error *err)
{
    struct near_grid_build b;
    oj_status status;
    int is_wider;
    memset(grid, 0, sizeof *grid);
    memset(&b, 0, sizeof b);
    b.grid = grid;
    b.flat = flat;
    b.tie_rank = tie_rank;
    b.reach = reach;
    b.n_slices = flat->n_features < 65536 ? 1 : n_threads;
    b.bucket_bits = 6;
    is_wider = choose_grid_extent_and_cell_size(&b);
    status = sort_points(&b, n_threads, err);
    oj_free(b.start);
    oj_free(b.bucket_offset);
    oj_free(b.cell);
    oj_free(b.point);
    if (status != OJ_OK)
        oj_near_grid_free(grid);
    else
        grid->is_uneven = is_wider && has_crowded_cells(grid);
    return status;
}

int64_t oj_near_grid_bytes(const struct oj_near_grid *grid)
{
    return grid->n *
               (int64_t)(sizeof *grid->x + sizeof *grid->y + sizeof *grid->id) +
           grid->n_columns * grid->n_rows * (int64_t)sizeof *grid->cell_start;
}

void oj_near_grid_free(struct oj_near_grid *grid)
{
    oj_free(grid->x);
    oj_free(grid->y);
    oj_free(grid->id);
    oj_free(grid->cell_start);
    memset(grid, 0, sizeof *grid);
}

/* --- neighbourhoods ------------------------------------------------------- */

/* Copies n points of the grid to the position `at` of the hood. Always copies
 * eight at a time, so up to OJ_NEAR_LANES - 1 elements beyond the n are read
 * and written. */
static void copy_cell_points_to_hood(struct oj_near_hood *hood, int64_t at,
                                     const struct oj_near_grid *grid,
                                     int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i += OJ_NEAR_LANES)
    {
        memcpy(hood->x + at + i, grid->x + first + i,
               OJ_NEAR_LANES * sizeof *hood->x);
        memcpy(hood->y + at + i, grid->y + first + i,
               OJ_NEAR_LANES * sizeof *hood->y);
        memcpy(hood->id + at + i, grid->id + first + i,
               OJ_NEAR_LANES * sizeof *hood->id);
    }
}

oj_status oj_near_hood_copy_cells_around(struct oj_near_hood *hood,
                                         const struct oj_near_grid *grid,
                                         double x, double y,
                                         struct oj_error *err)
{
    const uint32_t *cell = oj_near_cell(grid, x, y);
    int64_t n = 0, capacity = 2 * OJ_NEAR_LANES, at = 0;
    if (cell == hood->cell)
        return OJ_OK;
    hood->cell = NULL;
    for (int64_t row = -1; row <= 1; row++)
        n += oj_near_run_end(grid, cell, row) -
             oj_near_run_begin(grid, cell, row);
    capacity += n;
    OJ_ROOM(hood->x, 0, capacity, hood->cap_x, err);
    OJ_ROOM(hood->y, 0, capacity, hood->cap_y, err);
    OJ_ROOM(hood->id, 0, capacity, hood->cap_id, err);
    for (int64_t row = -1; row <= 1; row++)
    {
        int64_t first = oj_near_run_begin(grid, cell, row);
        int64_t n_run = oj_near_run_end(grid, cell, row) - first;
        copy_cell_points_to_hood(hood, at, grid, first, n_run);
        at += n_run;
    }
    for (int i = 0; i < OJ_NEAR_LANES; i++)
    {
        hood->x[at + i] = hood->y[at + i] = NAN;
        hood->id[at + i] = 0;
    }
    hood->n = n;
    hood->cell = cell;
    return OJ_OK;
}

oj_status oj_near_hood_add_points(struct oj_near_hood *hood,
                                  const struct oj_near_grid *grid,
                                  int64_t first, int64_t n,
                                  struct oj_error *err)
{
    int64_t at = hood->n, capacity = at + n + 2 * OJ_NEAR_LANES;
    if (capacity > hood->cap_x || capacity > hood->cap_y ||
        capacity > hood->cap_id)
    {
        OJ_ROOM(hood->x, at, capacity, hood->cap_x, err);
        OJ_ROOM(hood->y, at, capacity, hood->cap_y, err);
        OJ_ROOM(hood->id, at, capacity, hood->cap_id, err);
    }
    copy_cell_points_to_hood(hood, at, grid, first, n);
    hood->n = at + n;
    return OJ_OK;
}

void oj_near_hood_pad_with_nan(struct oj_near_hood *hood)
{
    for (int64_t i = hood->n; hood->n > 0 && i < hood->n + OJ_NEAR_LANES; i++)
    {
        hood->x[i] = hood->y[i] = NAN;
        hood->id[i] = 0;
    }
}

void oj_near_hood_free(struct oj_near_hood *hood)
{
    oj_free(hood->x);
    oj_free(hood->y);
    oj_free(hood->id);
    memset(hood, 0, sizeof *hood);
}

/* --- implementation for all processors ------------------------------------ */

OJ_CLONES static int64_t count_partners(const struct oj_near_hood *hood,
                                        const struct oj_near_query *query)
{
    const struct oj_near_query q = *query;
    int64_t n = 0;
    for (int64_t i = 0; i < hood->n; i++)
    {
        double d2;
        n += oj_near_is_partner(&q, hood->x[i], hood->y[i], hood->id[i], &d2);
    }
    return n;
}

OJ_CLONES static int64_t collect_partners(const struct oj_near_hood *hood,
                                          const struct oj_near_query *query,
                                          int32_t *restrict out_id,
                                          double *restrict out_d2)
{
    const struct oj_near_query q = *query;
    int64_t n = 0;
    for (int64_t i = 0; i < hood->n; i++)
    {
        double d2;
        int counts =
            oj_near_is_partner(&q, hood->x[i], hood->y[i], hood->id[i], &d2);
        out_id[n] = hood->id[i];
        out_d2[n] = d2;
        n += counts;
    }
    return n;
}

OJ_CLONES void oj_near_square_roots(int64_t n, const double *d2,
                                    double *distance)
{
    for (int64_t i = 0; i < n; i++)
        distance[i] = sqrt(d2[i]);
}

const struct oj_near_kernel oj_near_plain = {count_partners, collect_partners};

const struct oj_near_kernel *oj_near_kernel(void)
{
    const struct oj_near_kernel *wide = oj_near_avx512();
    return wide != NULL ? wide : &oj_near_plain;
}
