#include "edge_raster.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/cpu_lane_loops.h"

#include <string.h>

/* Number of edges that are processed together. */
#define BLOCK 256

/* A cell, encoded as row << 16 | column. */
typedef uint32_t cell_code;

/* The chain that is rasterised. */
struct drawing
{
    struct oj_edge_raster *r;
    const double *x, *y;
};

static inline int32_t row_of_cell(cell_code p)
{
    return (int32_t)(p >> 16);
}

static inline int32_t column_of_cell(cell_code p)
{
    return (int32_t)(p & 0xffff);
}

static OJ_CLONES void locate_vertex_cells(const struct oj_edge_frame *borrowed,
                                          const double *x, const double *y,
                                          int64_t n, cell_code *codes)
{
    const struct oj_edge_frame f = *borrowed;
    for (int64_t i = 0; i < n; i++)
    {
        int32_t column = oj_frame_index(x[i], f.x0, f.inverse, f.last_x);
        int32_t row = oj_frame_index(y[i], f.y0, f.inverse, f.last_y);
        codes[i] = (cell_code)column | (cell_code)row << 16;
    }
}

static inline int64_t cell_index(const struct oj_edge_raster *r, int32_t row,
                                 int32_t column)
{
    return row * r->n_words * 64 + column;
}

/* --- runs of edges -------------------------------------------------------- */

/* Appends a run of edges to a cell. Precondition: reserve_runs() has made room
 * for it. */
static inline void append_edge_run_of_cell(struct oj_edge_raster *r,
                                           int64_t cell, int64_t first,
                                           int64_t n)
{
    struct oj_cell_run *made = &r->run[r->n_runs++];
    made->cell = (uint32_t)cell;
    made->run.first = (uint32_t)first;
    made->run.n = (uint32_t)n;
    r->word[cell / 64].edges |= (uint64_t)1 << cell % 64;
}

static oj_status reserve_runs(struct oj_edge_raster *r, int64_t n,
                              struct oj_error *err)
{
    return oj_reserve(&r->run, r->n_runs, r->n_runs + n + BLOCK + 1,
                      &r->cap_runs, sizeof *r->run, err);
}

/* Adds edge e to all cells that it may intersect, except the cells of its two
 * ends, whose runs already contain the edge. */
static oj_status add_long_edge_to_cells(const struct drawing *d, int64_t e,
                                        cell_code pa, cell_code pb,
                                        struct oj_error *err)
{
    struct oj_edge_raster *r = d->r;
    const struct oj_edge_rows rows =
        oj_edge_rows_of(r->frame, d->x[e], d->y[e], d->x[e + 1], d->y[e + 1]);
    for (int32_t row = rows.window.row0; row <= rows.window.row1; row++)
    {
        int32_t first, last;
        oj_edge_columns(r->frame, &rows, row, &first, &last);
        OJ_TRY(reserve_runs(r, last - first + 1, err));
        for (int32_t column = first; column <= last; column++)
        {
            cell_code at = (cell_code)row << 16 | (cell_code)column;
            if (at != pa && at != pb)
                append_edge_run_of_cell(r, cell_index(r, row, column), e, 1);
        }
    }
    return OJ_OK;
}

/* --- state of reference points: inside or outside ------------------------- */

/* Sets *out to the number of reference points of a row that are to the left of
 * edge e, which crosses their height at about x = crossing. If a reference
 * point lies on the edge, its cell gets a run without edges, which marks the
 * point as unusable. */
static oj_status count_reference_points_left_of_edge(const struct drawing *d,
                                                     int64_t e, int32_t row,
                                                     double crossing,
                                                     int64_t *out,
                                                     struct oj_error *err)
{
    struct oj_edge_raster *r = d->r;
    const struct oj_edge_frame *f = r->frame;
    double ax = d->x[e], ay = d->y[e], bx = d->x[e + 1], by = d->y[e + 1];
    double y = r->below[row];
    int32_t column = oj_frame_column(f, crossing);
    while (column > 0 &&
           oj_ring_edge_crosses_ray(oj_edge_raster_reference_x(f, column - 1),
                                    y, ax, ay, bx, by) != 1)
        column--;
    while (column <= (int32_t)f->last_x)
    {
        int edge = oj_ring_edge_crosses_ray(
            oj_edge_raster_reference_x(f, column), y, ax, ay, bx, by);
        if (edge == OJ_ON_BOUNDARY)
        {
            OJ_TRY(reserve_runs(r, 1, err));
            append_edge_run_of_cell(r, cell_index(r, row, column), 0, 0);
        }
        if (edge != 1)
            break;
        column++;
    }
    *out = column;
    return OJ_OK;
}

/* Flips the state (inside or outside) of all reference points to the right of
 *  edge e, in each row between the rows of its ends: a ray from such a point
 *  towards -x crosses the edge. Only the first of these points is marked;
 *  oj_edge_raster_finish() computes the states by prefix sums of the marks.
 *
 *  The computed crossing has an error of about 8 ulp of the coordinates, at
 *  most 0.002 cells (a cell is at least 1e-12 of the largest coordinate). If a
 *  reference point is closer than SURE cells, exact signs decide.
 */
#define SURE 0.01

static oj_status flip_inside_state_of_rows(const struct drawing *d, int64_t e,
                                           int32_t row, int32_t last,
                                           struct oj_error *err)
{
    struct oj_edge_raster *r = d->r;
    const struct oj_edge_frame *f = r->frame;
    double ax = d->x[e], ay = d->y[e], bx = d->x[e + 1], by = d->y[e + 1];
    double slope = (bx - ax) / (by - ay), most = f->last_x + 1.0 - SURE;
    if (row > last)
    {
        int32_t swap = row;
        row = last;
        last = swap;
    }
    while (row++ < last)
    {
        double crossing = ax + (r->below[row] - ay) * slope;
        /* Position of the crossing in units of cells: reference points are at
         * 0, 1, 2 ... */
        double at = (crossing - f->x0) * f->inverse - OJ_REFERENCE_X;
        int64_t column = at > SURE && at < most ? (int64_t)at + 1 : 0;
        double past = at - (double)(column - 1);
        if (column == 0 || past < SURE || past > 1.0 - SURE)
            OJ_TRY(count_reference_points_left_of_edge(d, e, row, crossing,
                                                       &column, err));
        if (column < 64 * r->n_words)
        {
            int64_t cell = cell_index(r, row, (int32_t)column);
            r->word[cell / 64].inside ^= (uint64_t)1 << cell % 64;
        }
    }
    return OJ_OK;
}

/* Returns 1 if the two cells share a side, so that an edge between them
 * intersects no other cell. */
static inline int do_cells_share_a_side(cell_code a, cell_code b)
{
    int columns = column_of_cell(a) - column_of_cell(b),
        rows = row_of_cell(a) - row_of_cell(b);
    return columns * columns + rows * rows == 1;
}

/* A list of edges of a block, as indexes within the block. */
struct listed
{
    int32_t n;
    uint16_t edge[BLOCK + 1];
};

/* Appends `edge` if is_one is 1. Avoids a branch, which would be
 * unpredictable. */
static inline void append_edge_if(struct listed *list, int32_t edge, int is_one)
{
    list->edge[list->n] = (uint16_t)edge;
    list->n += is_one;
}

/* Rasterises a chain: splits it into runs of edges that intersect one cell. */
static oj_status draw_edges(const struct drawing *d, int64_t first,
                            int64_t n_vertices, struct oj_error *err)
{
    struct oj_edge_raster *r = d->r;
    int64_t end = first + n_vertices - 1, run = first;
    cell_code codes[BLOCK + 1], last = 0;
    for (int64_t e = first; e < end; e += BLOCK)
    {
        int32_t n = (int32_t)(end - e < BLOCK ? end - e : BLOCK);
        struct listed leaving, far, across;
        leaving.n = far.n = across.n = 0;
        OJ_TRY(reserve_runs(r, 0, err));
        locate_vertex_cells(r->frame, d->x + e, d->y + e, n + 1, codes);
        for (int32_t i = 0; i < n; i++)
            append_edge_if(&leaving, i, codes[i] != codes[i + 1]);
        for (int32_t k = 0; k < leaving.n; k++)
        {
            int32_t i = leaving.edge[k];
            cell_code at = codes[i], to = codes[i + 1];
            append_edge_run_of_cell(
                r, cell_index(r, row_of_cell(at), column_of_cell(at)), run,
                e + i + 1 - run);
            run = e + i;
            append_edge_if(&far, i, !do_cells_share_a_side(at, to));
            append_edge_if(&across, i, row_of_cell(at) != row_of_cell(to));
        }
        for (int32_t k = 0; k < far.n; k++)
        {
            int32_t i = far.edge[k];
            OJ_TRY(
                add_long_edge_to_cells(d, e + i, codes[i], codes[i + 1], err));
        }
        for (int32_t k = 0; r->has_inside && k < across.n; k++)
        {
            int32_t i = across.edge[k];
            OJ_TRY(flip_inside_state_of_rows(d, e + i, row_of_cell(codes[i]),
                                             row_of_cell(codes[i + 1]), err));
        }
        last = codes[n];
    }
    OJ_TRY(reserve_runs(r, 0, err));
    append_edge_run_of_cell(
        r, cell_index(r, row_of_cell(last), column_of_cell(last)), run,
        end - run);
    return OJ_OK;
}

oj_status oj_edge_raster_draw(struct oj_edge_raster *r, const double *x,
                              const double *y, int64_t first, int64_t n,
                              struct oj_error *err)
{
    const struct drawing d = {r, x, y};
    if (n > 1)
        return draw_edges(&d, first, n, err);
    OJ_TRY(reserve_runs(r, 0, err));
    append_edge_run_of_cell(r,
                            cell_index(r, oj_frame_row(r->frame, y[first]),
                                       oj_frame_column(r->frame, x[first])),
                            first | OJ_LONE_VERTEX, 1);
    return OJ_OK;
}

/* Computes the state of each reference point from the flips (prefix sums), and
 * the rank of each word. Returns the number of cells with edges. */
OJ_CLONES int64_t oj_edge_raster_finish(struct oj_edge_raster *r,
                                        int64_t n_rows)
{
    struct oj_edge_word *word = r->word;
    uint64_t n = 0;
    for (int64_t row = 0; row < n_rows; row++)
    {
        uint64_t before = 0;
        for (int64_t i = 0; i < r->n_words; i++, word++)
        {
            uint64_t flips = word->inside;
            for (int shift = 1; shift < 64; shift *= 2)
                flips ^= flips << shift;
            flips ^= before;
            before = 0 - (flips >> 63);
            word->inside = flips;
            word->rank = n;
            n += (uint64_t)__builtin_popcountll(word->edges);
        }
    }
    return (int64_t)n;
}

/* --- positions of reference points ---------------------------------------- */

/* Maps doubles to integers that sort like them. double_of_ordered_integer() is
 * the inverse. */
static int64_t ordered_integer_of_double(double v)
{
    int64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits >= 0 ? bits : INT64_MIN - bits;
}

static double double_of_ordered_integer(int64_t ordinal)
{
    int64_t bits = ordinal >= 0 ? ordinal : INT64_MIN - ordinal;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Returns the double that is `step` representable numbers above v. Faster than
 * nextafter(). */
static double double_steps_above(double v, int64_t step)
{
    return double_of_ordered_integer(ordered_integer_of_double(v) + step);
}

/* Returns the greatest double whose row is below the given row. Found by
 * bisection, because the computed border may be off by a few doubles (near 0 by
 * very many). */
static double greatest_double_below_row(const struct oj_edge_frame *f,
                                        int32_t row)
{
    double at = f->y0 + (double)row * f->cell;
    double off = 2.3e-16 * (fabs(f->y0) + fabs(at));
    int64_t low, high;
    if (row == 0)
        return double_steps_above(f->y0, -1);
    for (;; off *= 1024.0)
    {
        low = ordered_integer_of_double(at - off);
        high = ordered_integer_of_double(at + off);
        if (oj_frame_row(f, at - off) < row && oj_frame_row(f, at + off) >= row)
            break;
    }
    /* compared as unsigned, because the difference may exceed int64_t */
    while ((uint64_t)high - (uint64_t)low > 1)
    {
        int64_t middle = low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
        if (oj_frame_row(f, double_of_ordered_integer(middle)) < row)
            low = middle;
        else
            high = middle;
    }
    return double_of_ordered_integer(low);
}

/* Returns 1 if every column contains its reference point. */
static OJ_CLONES int
does_each_column_hold_its_reference(const struct oj_edge_frame *borrowed)
{
    const struct oj_edge_frame f = *borrowed;
    int32_t n_wrong = 0;
    for (int32_t column = 0; column <= (int32_t)f.last_x; column++)
        n_wrong += oj_frame_column(
                       &f, oj_edge_raster_reference_x(&f, column)) != column;
    return n_wrong == 0;
}

int oj_edge_raster_find_reference_heights(const struct oj_edge_frame *f,
                                          double *below)
{
    for (int32_t row = 0; row <= (int32_t)f->last_y; row++)
    {
        double y = greatest_double_below_row(f, row);
        if (row > 0 && (oj_frame_row(f, y) >= row ||
                        oj_frame_row(f, double_steps_above(y, 1)) < row))
            return 0;
        below[row] = y;
    }
    return does_each_column_hold_its_reference(f);
}
