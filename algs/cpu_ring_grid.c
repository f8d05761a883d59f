#include "cpu_ring_grid.h"

#include "../flatten/oj_array.h"

#include <string.h>

/* Where in a cell its reference point lies: an odd place, so that the round
 * coordinates of real data do not hit its row and column. */
#define REFERENCE_X 0.5123456789
#define REFERENCE_Y 0.4917340683

static int64_t cell_index(double v, double origin, double inverse, int64_t n)
{
    double c = (v - origin) * inverse;
    if (!(c > 0.0))
        return 0;
    return c >= (double)n ? n - 1 : (int64_t)c;
}

static double reference_x(const struct oj_ring_grid *g, int64_t column)
{
    return g->x0 + ((double)column + REFERENCE_X) * g->cell;
}

static double reference_y(const struct oj_ring_grid *g, int64_t row)
{
    return g->y0 + ((double)row + REFERENCE_Y) * g->cell;
}

/* Cell size: one edge a cell, but large enough that long edges do not make more
 * than some five entries an edge on average. */
static void choose_cells(struct oj_ring_grid *g)
{
    double x1 = g->x[0], y1 = g->y[0], length = 0.0;
    double width, height, size;
    double n = (double)g->n_vertices;
    g->x0 = x1;
    g->y0 = y1;
    for (int64_t i = 1; i < g->n_vertices; i++)
    {
        g->x0 = fmin(g->x0, g->x[i]);
        g->y0 = fmin(g->y0, g->y[i]);
        x1 = fmax(x1, g->x[i]);
        y1 = fmax(y1, g->y[i]);
        length += fabs(g->x[i] - g->x[i - 1]) + fabs(g->y[i] - g->y[i - 1]);
    }
    width = x1 - g->x0;
    height = y1 - g->y0;
    g->cell = fmax(sqrt(width / n) * sqrt(height), length / (4.0 * n));
    g->cell = fmax(g->cell, fmax(width, height) / n);
    /* far from the origin no finer than coordinates can tell, or the margins of
     * visit_cells() would put every edge in every cell */
    size = fmax(fmax(fabs(g->x0), fabs(x1)), fmax(fabs(g->y0), fabs(y1)));
    g->cell = fmax(g->cell, 1e-13 * size);
    if (!isfinite(g->cell)) /* lengths overflow: a few cells will do */
        g->cell = 0.5 * width + 0.5 * height;
    if (!(g->cell > 0.0))
        g->cell = 1.0;
    g->inverse_cell = 1.0 / g->cell;
    if (!isfinite(g->inverse_cell))
        g->inverse_cell = 0.0;
    g->nx = cell_index(x1, g->x0, g->inverse_cell, INT32_MAX) + 1;
    g->ny = cell_index(y1, g->y0, g->inverse_cell, INT32_MAX) + 1;
}

/* Calls for every cell that edge e may touch.  Rounding is covered by a margin
 * that is large against the error of the few operations here and small against
 * a cell. With fill NULL the cells are counted. */
static void visit_cells(const struct oj_ring_grid *g, int64_t e,
                        int64_t *counter, uint32_t *fill)
{
    double ax = g->x[e], ay = g->y[e], bx = g->x[e + 1], by = g->y[e + 1];
    double swap, size, margin, column_margin, slope;
    int64_t first_row, last_row;
    if (by < ay)
    {
        swap = ax, ax = bx, bx = swap;
        swap = ay, ay = by, by = swap;
    }
    size = fmax(fmax(fabs(ax), fabs(bx)), fmax(fabs(ay), fabs(by)));
    margin = 1e-9 * g->cell + 1e-14 * size;
    slope = by > ay ? (bx - ax) / (by - ay) : 0.0;
    if (!isfinite(slope))
        slope = 0.0; /* as good as horizontal: in one or two rows, whole */
    /* a flat edge enlarges the rounding of the row's limits */
    column_margin = margin + 1e-14 * size * fabs(slope);
    first_row = cell_index(ay - margin, g->y0, g->inverse_cell, g->ny);
    last_row = cell_index(by + margin, g->y0, g->inverse_cell, g->ny);
    for (int64_t row = first_row; row <= last_row; row++)
    {
        double from = ax, to = bx, left, right;
        int64_t first, last;
        /* what of the edge lies in this row of cells, a bit widened */
        if (slope != 0.0)
        {
            double low = g->y0 + (double)row * g->cell - margin;
            double high = g->y0 + (double)(row + 1) * g->cell + margin;
            if (low > ay)
                from = ax + (low - ay) * slope;
            if (high < by)
                to = ax + (high - ay) * slope;
        }
        left = fmin(from, to);
        right = fmax(from, to);
        left = fmax(left - column_margin, fmin(ax, bx) - g->cell);
        right = fmin(right + column_margin, fmax(ax, bx) + g->cell);
        first = cell_index(left, g->x0, g->inverse_cell, g->nx);
        last = cell_index(right, g->x0, g->inverse_cell, g->nx);
        for (int64_t column = first; column <= last; column++)
        {
            int64_t at = counter[row * g->nx + column]++;
            if (fill != NULL)
                fill[at] = (uint32_t)e;
        }
    }
}

/* Marks the reference points that lie on a vertex or on a horizontal edge. */
static void mark_touched(struct oj_ring_grid *g, int64_t row, double from,
                         double to)
{
    int64_t last = cell_index(fmax(from, to), g->x0, g->inverse_cell, g->nx);
    for (int64_t column =
             cell_index(fmin(from, to), g->x0, g->inverse_cell, g->nx);
         column <= last; column++)
        g->state[row * g->nx + column] |= OJ_ON_BOUNDARY;
}

/* Edge e flips the state of every reference point of its rows that lies left of
 * it; the flip is noted at the last such point and summed up afterwards. */
static void flip_rows(struct oj_ring_grid *g, int64_t e)
{
    double ax = g->x[e], ay = g->y[e], bx = g->x[e + 1], by = g->y[e + 1];
    int64_t row = cell_index(fmin(ay, by), g->y0, g->inverse_cell, g->ny);
    int64_t last = cell_index(fmax(ay, by), g->y0, g->inverse_cell, g->ny);
    for (; row <= last; row++)
    {
        double y = reference_y(g, row);
        double crossing;
        int64_t column;
        if (ay == y || by == y)
            mark_touched(g, row, ay == y ? ax : bx, by == y ? bx : ax);
        if ((ay > y) == (by > y))
            continue;
        crossing = ax + (y - ay) * ((bx - ax) / (by - ay));
        column = cell_index(crossing, g->x0, g->inverse_cell, g->nx);
        /* column: how many reference points lie left of the edge */
        while (column > 0 &&
               oj_ring_edge(reference_x(g, column - 1), y, ax, ay, bx, by) != 1)
            column--;
        while (column < g->nx)
        {
            int edge = oj_ring_edge(reference_x(g, column), y, ax, ay, bx, by);
            if (edge == OJ_ON_BOUNDARY)
                g->state[row * g->nx + column] |= OJ_ON_BOUNDARY;
            if (edge != 1)
                break;
            column++;
        }
        if (column > 0)
            g->state[row * g->nx + column - 1] ^= 1;
    }
}

static void settle_states(struct oj_ring_grid *g)
{
    for (int64_t row = 0; row < g->ny; row++)
    {
        uint8_t *state = g->state + row * g->nx;
        uint8_t inside = 0;
        for (int64_t column = g->nx - 1; column >= 0; column--)
        {
            inside ^= state[column] & 1;
            state[column] =
                (state[column] & OJ_ON_BOUNDARY) ? OJ_ON_BOUNDARY : inside;
        }
    }
}

oj_status oj_ring_grid_build(struct oj_ring_grid *g, const double *x,
                             const double *y, int64_t n, struct oj_error *err)
{
    int64_t n_cells, total = 0;
    memset(g, 0, sizeof *g);
    if (n < 2 || n > UINT32_MAX)
        return oj_fail(err, OJ_ERR_LIMIT, "a ring of %lld vertices",
                       (long long)n);
    g->n_vertices = n;
    g->x = x;
    g->y = y;
    choose_cells(g);
    n_cells = g->nx * g->ny;
    g->edge_offset = oj_calloc(n_cells + 1, sizeof *g->edge_offset);
    g->state = oj_calloc(n_cells, sizeof *g->state);
    if (g->edge_offset == NULL || g->state == NULL)
    {
        oj_ring_grid_free(g);
        return oj_fail_nomem(err, n_cells, sizeof *g->edge_offset + 1);
    }
    for (int64_t e = 0; e + 1 < n; e++)
    {
        visit_cells(g, e, g->edge_offset, NULL);
        flip_rows(g, e);
    }
    settle_states(g);
    for (int64_t cell = 0; cell < n_cells; cell++)
    {
        int64_t count = g->edge_offset[cell];
        g->edge_offset[cell] = total;
        total += count;
    }
    g->edge = oj_malloc(total, sizeof *g->edge);
    if (g->edge == NULL)
    {
        oj_ring_grid_free(g);
        return oj_fail_nomem(err, total, sizeof *g->edge);
    }
    for (int64_t e = 0; e + 1 < n; e++)
        visit_cells(g, e, g->edge_offset, g->edge);
    /* filling moved every offset to the start of the next cell */
    memmove(g->edge_offset + 1, g->edge_offset,
            (size_t)n_cells * sizeof *g->edge_offset);
    g->edge_offset[0] = 0;
    return OJ_OK;
}

enum oj_location oj_ring_grid_locate(const struct oj_ring_grid *g, double px,
                                     double py)
{
    int64_t column = cell_index(px, g->x0, g->inverse_cell, g->nx);
    int64_t row = cell_index(py, g->y0, g->inverse_cell, g->ny);
    int64_t cell = row * g->nx + column;
    int64_t end = g->edge_offset[cell + 1];
    double cx = reference_x(g, column), cy = reference_y(g, row);
    int odd = g->state[cell] & 1;
    int unclear = g->state[cell] == OJ_ON_BOUNDARY;
    for (int64_t i = g->edge_offset[cell]; i < end; i++)
    {
        int64_t e = g->edge[i];
        double ax = g->x[e], ay = g->y[e], bx = g->x[e + 1], by = g->y[e + 1];
        int at_p = oj_ring_edge(px, py, ax, ay, bx, by);
        int at_q, up_q, up_c;
        if (at_p == OJ_ON_BOUNDARY)
            return OJ_ON_BOUNDARY;
        at_q = oj_ring_edge(cx, py, ax, ay, bx, by);
        /* the same rule with x and y exchanged: the ray towards +y */
        up_q = oj_ring_edge(py, cx, ay, ax, by, bx);
        up_c = oj_ring_edge(cy, cx, ay, ax, by, bx);
        unclear |= (at_q | up_q | up_c) & OJ_ON_BOUNDARY;
        odd ^= (at_p ^ at_q ^ up_q ^ up_c) & 1;
    }
    if (unclear)
        return oj_ring_locate(px, py, g->x, g->y, g->n_vertices);
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

int64_t oj_ring_grid_bytes(const struct oj_ring_grid *g)
{
    int64_t n_cells = g->nx * g->ny;
    return g->edge_offset == NULL ? 0
                                  : n_cells * 9 + g->edge_offset[n_cells] * 4;
}

void oj_ring_grid_free(struct oj_ring_grid *g)
{
    oj_free(g->edge_offset);
    oj_free(g->edge);
    oj_free(g->state);
    memset(g, 0, sizeof *g);
}
