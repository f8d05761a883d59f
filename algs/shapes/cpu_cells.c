#include "cpu_cells.h"

#include "../../flatten/base/oj_array.h"
#include "../kernels/oj_cross.h"

#include <string.h>

/* Where in a cell its reference point lies: an odd place, so that the round
 * coordinates of real data do not hit its row and column. */
#define REFERENCE_X 0.5123456789
#define REFERENCE_Y 0.4917340683

/* Cells an edge: many for small features, which they decide without an edge,
 * fewer for large ones, where they cost memory. */
#define CELLS_SMALL 20.0
#define CELLS_LARGE 2.0

static double reference_x(const struct oj_cells *c, int32_t column)
{
    return c->x0 + ((double)column + REFERENCE_X) * c->cell;
}

static double reference_y(const struct oj_cells *c, int32_t row)
{
    return c->y0 + ((double)row + REFERENCE_Y) * c->cell;
}

/* The two ends of an edge, by vertex number. */
static void edge_ends(const struct oj_shape *shape, uint32_t edge, int64_t *a,
                      int64_t *b)
{
    *a = shape->first_vertex + (edge >> 1);
    *b = *a + !(edge & 1);
}

/* Cell size: so many cells an edge, but large enough that long edges do not
 * make more than some six entries an edge on average. */
static void choose_cells(struct oj_cells *c, const struct oj_shape *shape)
{
    const double *x = shape->flat->x + shape->first_vertex;
    const double *y = shape->flat->y + shape->first_vertex;
    double width = shape->box.x1 - shape->box.x0;
    double height = shape->box.y1 - shape->box.y0;
    double n = (double)shape->n_vertices, length = 0.0, size;
    double per_edge = CELLS_LARGE + CELLS_SMALL * 64.0 / (n + 64.0);
    c->x0 = shape->box.x0;
    c->y0 = shape->box.y0;
    if (shape->kinds != OJ_PART_POINT)
    {
        for (int64_t i = 1; i < shape->n_vertices; i++)
            length += fabs(x[i] - x[i - 1]) + fabs(y[i] - y[i - 1]);
    }
    c->cell = sqrt(width / n / per_edge) * sqrt(height);
    c->cell = oj_larger(c->cell, length / (12.0 * n));
    c->cell = oj_larger(c->cell, oj_larger(width, height) / (4.0 * n));
    size = oj_box_size(&shape->box);
    /* far from the origin no finer than coordinates can tell, or the margins of
     * note_edge() would put every edge in every cell */
    c->cell = oj_larger(c->cell, 1e-13 * size);
    if (!(c->cell > 0.0))
        c->cell = 1.0;
    c->inverse_cell = 1.0 / c->cell;
    if (!isfinite(c->inverse_cell))
        c->inverse_cell = 0.0;
    c->nx = oj_cell_of(shape->box.x1, c->x0, c->inverse_cell, INT32_MAX) + 1;
    c->ny = oj_cell_of(shape->box.y1, c->y0, c->inverse_cell, INT32_MAX) + 1;
}

static oj_status note(struct oj_cells_scratch *s, int32_t nx, uint32_t edge,
                      int32_t row, int32_t first, int32_t last,
                      struct oj_error *err)
{
    int64_t n = s->n + last - first + 1;
    if (n > s->cap_cell || n > s->cap_edge)
    {
        OJ_TRY(
            oj_reserve(&s->cell, s->n, n, &s->cap_cell, sizeof *s->cell, err));
        OJ_TRY(
            oj_reserve(&s->edge, s->n, n, &s->cap_edge, sizeof *s->edge, err));
    }
    for (int32_t column = first; column <= last; column++)
    {
        s->cell[s->n] = (uint32_t)row * (uint32_t)nx + (uint32_t)column;
        s->edge[s->n++] = edge;
    }
    return OJ_OK;
}

/* Notes every cell that the edge may touch.  In which rows and columns its ends
 * are is exact; rounding of what lies between is covered by a margin that is
 * large against the error of the few operations here and small against a cell.
 */
static oj_status note_edge(const struct oj_cells *c, struct oj_cells_scratch *s,
                           uint32_t edge, double ax, double ay, double bx,
                           double by, struct oj_error *err)
{
    double size, margin, slope, left, right;
    int32_t column0, column1, row0, row1;
    if (by < ay)
    {
        double swap = ax;
        ax = bx;
        bx = swap;
        swap = ay;
        ay = by;
        by = swap;
    }
    left = ax < bx ? ax : bx;
    right = ax < bx ? bx : ax;
    column0 = oj_cell_of(left, c->x0, c->inverse_cell, c->nx);
    column1 = oj_cell_of(right, c->x0, c->inverse_cell, c->nx);
    row0 = oj_cell_of(ay, c->y0, c->inverse_cell, c->ny);
    row1 = oj_cell_of(by, c->y0, c->inverse_cell, c->ny);
    if (row0 == row1 || column0 == column1)
    {
        for (int32_t row = row0; row <= row1; row++)
            OJ_TRY(note(s, c->nx, edge, row, column0, column1, err));
        return OJ_OK;
    }
    size =
        oj_larger(oj_larger(fabs(ax), fabs(bx)), oj_larger(fabs(ay), fabs(by)));
    slope = (bx - ax) / (by - ay);
    /* a flat edge enlarges the rounding of the row's limits */
    margin = 1e-9 * c->cell + 1e-14 * size * (1.0 + fabs(slope));
    for (int32_t row = row0; row <= row1; row++)
    {
        double low = c->y0 + (double)row * c->cell;
        double high = c->y0 + (double)(row + 1) * c->cell;
        double from = low > ay ? ax + (low - ay) * slope : ax;
        double to = high < by ? ax + (high - ay) * slope : bx;
        int32_t first = column0, last = column1;
        double u = (from < to ? from : to) - margin;
        double v = (from < to ? to : from) + margin;
        /* comparisons that NaN and infinities fail: the whole row of the box */
        if (u > left && u <= right)
            first = oj_cell_of(u, c->x0, c->inverse_cell, c->nx);
        if (v < right && v >= left)
            last = oj_cell_of(v, c->x0, c->inverse_cell, c->nx);
        OJ_TRY(note(s, c->nx, edge, row, first, last, err));
    }
    return OJ_OK;
}

/* Marks the reference points of a row next to a vertex or a horizontal edge. */
static void mark_touched(const struct oj_cells *c, uint8_t *state, double from,
                         double to)
{
    int32_t a = oj_cell_of(from, c->x0, c->inverse_cell, c->nx);
    int32_t b = oj_cell_of(to, c->x0, c->inverse_cell, c->nx);
    int32_t last = a < b ? b : a;
    for (int32_t column = a < b ? a : b; column <= last; column++)
        state[column] |= 2;
}

/* The edge flips the state of every reference point of its rows that lies left
 * of it; the flip is noted at the last such point and summed up afterwards.
 * During that, bit 0 of state is a flip, bit 1 a point on an edge. */
static void flip_rows(struct oj_cells *c, double ax, double ay, double bx,
                      double by)
{
    double low = ay < by ? ay : by, high = ay < by ? by : ay;
    int32_t row = oj_cell_of(low, c->y0, c->inverse_cell, c->ny);
    int32_t last = oj_cell_of(high, c->y0, c->inverse_cell, c->ny);
    double size = oj_larger(fabs(ax), fabs(bx));
    double tolerance = 1e-14 * size * c->inverse_cell + 1e-9;
    double slope = (bx - ax) / (by - ay);
    for (; row <= last; row++)
    {
        double y = reference_y(c, row), t, whole;
        uint8_t *state = c->state + (int64_t)row * c->nx;
        int32_t n;
        if (ay == y || by == y)
            mark_touched(c, state, ay == y ? ax : bx, by == y ? bx : ax);
        if ((ay > y) == (by > y))
            continue;
        t = (ax + (y - ay) * slope - c->x0) * c->inverse_cell - REFERENCE_X;
        whole = floor(t);
        if (t - whole < tolerance || whole + 1.0 - t < tolerance || !(t == t))
        {
            n = oj_cell_of(ax + (y - ay) * slope, c->x0, c->inverse_cell,
                           c->nx);
            while (n > 0 &&
                   oj_ring_edge(reference_x(c, n - 1), y, ax, ay, bx, by) != 1)
                n--;
            while (n < c->nx)
            {
                int edge = oj_ring_edge(reference_x(c, n), y, ax, ay, bx, by);
                if (edge == OJ_ON_BOUNDARY)
                    state[n] |= 2;
                if (edge != 1)
                    break;
                n++;
            }
        }
        else if (whole < 0.0)
            continue;
        else
            n = whole + 1.0 < (double)c->nx ? (int32_t)whole + 1 : c->nx;
        if (n > 0)
            state[n - 1] ^= 1;
    }
}

static oj_status note_ring(struct oj_cells *c, const struct oj_shape *shape,
                           struct oj_cells_scratch *s, int64_t first, int64_t n,
                           struct oj_error *err)
{
    const double *x = shape->flat->x, *y = shape->flat->y;
    int64_t offset = first - shape->first_vertex;
    for (int64_t i = 0; i + 1 < n; i++)
    {
        int64_t v = first + i;
        OJ_TRY(note_edge(c, s, (uint32_t)(2 * (offset + i)), x[v], y[v],
                         x[v + 1], y[v + 1], err));
    }
    return OJ_OK;
}

/* A vertex that is an edge by itself: a point, or a line of one vertex. */
static oj_status note_vertex(struct oj_cells *c, const struct oj_shape *shape,
                             struct oj_cells_scratch *s, int64_t v,
                             struct oj_error *err)
{
    double x = shape->flat->x[v], y = shape->flat->y[v];
    return note_edge(c, s, (uint32_t)(2 * (v - shape->first_vertex) + 1), x, y,
                     x, y, err);
}

static oj_status note_edges(struct oj_cells *c, const struct oj_shape *shape,
                            struct oj_cells_scratch *s, struct oj_error *err)
{
    s->n = 0;
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n, first = oj_shape_ring(shape, r, &n);
        if (n == 1)
            OJ_TRY(note_vertex(c, shape, s, first, err));
        else
            OJ_TRY(note_ring(c, shape, s, first, n, err));
    }
    return OJ_OK;
}

/* One block: state, first_entry, entry. */
static oj_status reserve_arrays(struct oj_cells *c, int64_t n_entries,
                                struct oj_error *err)
{
    int64_t n_cells = (int64_t)c->nx * c->ny;
    int64_t n_state = (n_cells + OJ_CELLS_PADDING + 3) / 4;
    int64_t n_words = n_state + n_cells + 1 + n_entries;
    uint32_t *words;
    OJ_TRY(
        oj_reserve(&c->block, 0, n_words, &c->cap_block, sizeof *words, err));
    words = c->block;
    c->state = c->block;
    c->first_entry = words + n_state;
    c->entry = c->first_entry + n_cells + 1;
    return OJ_OK;
}

static void sort_entries(struct oj_cells *c, const struct oj_cells_scratch *s)
{
    int64_t n_cells = (int64_t)c->nx * c->ny;
    uint32_t *first = c->first_entry;
    uint32_t total = 0;
    memset(first, 0, (size_t)(n_cells + 1) * sizeof *first);
    for (int64_t i = 0; i < s->n; i++)
        first[s->cell[i]]++;
    for (int64_t i = 0; i < n_cells; i++)
    {
        total += first[i];
        first[i] = total;
    }
    first[n_cells] = total;
    for (int64_t i = s->n - 1; i >= 0; i--)
        c->entry[--first[s->cell[i]]] = s->edge[i];
}

static void settle_states(struct oj_cells *c)
{
    for (int32_t row = 0; row < c->ny; row++)
    {
        uint8_t *state = c->state + (int64_t)row * c->nx;
        const uint32_t *first = c->first_entry + (int64_t)row * c->nx;
        unsigned inside = 0;
        for (int32_t column = c->nx - 1; column >= 0; column--)
        {
            unsigned unclear = state[column] & 2u;
            inside ^= state[column] & 1u;
            if (first[column] == first[column + 1])
                state[column] = inside ? OJ_CELL_INSIDE : OJ_CELL_OUTSIDE;
            else if (unclear)
                state[column] = OJ_CELL_EDGES_UNCLEAR;
            else
                state[column] = inside ? OJ_CELL_EDGES_INSIDE : OJ_CELL_EDGES;
        }
    }
}

static void flip_states(struct oj_cells *c, const struct oj_shape *shape)
{
    const double *x = shape->flat->x, *y = shape->flat->y;
    memset(c->state, 0, (size_t)c->nx * (size_t)c->ny);
    if (shape->kinds != OJ_PART_POLYGON)
        return;
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n, first = oj_shape_ring(shape, r, &n);
        for (int64_t v = first; v + 1 < first + n; v++)
            flip_rows(c, x[v], y[v], x[v + 1], y[v + 1]);
    }
}

oj_status oj_cells_build(struct oj_cells *c, const struct oj_shape *shape,
                         struct oj_cells_scratch *s, struct oj_error *err)
{
    choose_cells(c, shape);
    OJ_TRY(note_edges(c, shape, s, err));
    OJ_TRY(reserve_arrays(c, s->n, err));
    flip_states(c, shape);
    sort_entries(c, s);
    settle_states(c);
    return OJ_OK;
}

enum oj_location oj_shape_locate_in_rings(const struct oj_shape *shape,
                                          double px, double py)
{
    int odd = 0;
    for (int64_t r = 0; r < shape->n_rings; r++)
    {
        int64_t n, first = oj_shape_ring(shape, r, &n);
        enum oj_location location = oj_ring_locate(
            px, py, shape->flat->x + first, shape->flat->y + first, n);
        if (location == OJ_ON_BOUNDARY)
            return OJ_ON_BOUNDARY;
        odd ^= location == OJ_INSIDE;
    }
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

/* Sign of the orientation of a, b, c where double precision settles it, in
 * *sign (1: left); else *unclear is set (oj_segment.h has the bound). */
static inline int is_left(double ax, double ay, double bx, double by, double cx,
                          double cy, int *unclear)
{
    double left = (ax - cx) * (by - cy);
    double right = (ay - cy) * (bx - cx);
    double det = left - right;
    double size = fabs(left) + fabs(right);
    *unclear = !((fabs(det) > 3.3306690738754716e-16 * size) & (size > 1e-280));
    return det > 0.0;
}

/* p is inside iff the path p, q, c (q below or above c, left or right of p)
 * crosses rings an odd number of times and c is outside, or an even number and
 * c is inside; only edges of the cell can cross it.  This is the usual case,
 * without a branch an edge; -1 where an edge takes exact arithmetic. */
static int parity_in_cell(const struct oj_cells *c,
                          const struct oj_shape *shape, int64_t cell, double cx,
                          double cy, double px, double py)
{
    const double *x = shape->flat->x + shape->first_vertex;
    const double *y = shape->flat->y + shape->first_vertex;
    int odd = c->state[cell] == OJ_CELL_EDGES_INSIDE;
    int unclear = c->state[cell] == OJ_CELL_EDGES_UNCLEAR;
    for (uint32_t i = c->first_entry[cell]; i < c->first_entry[cell + 1]; i++)
    {
        uint32_t at = c->entry[i] >> 1;
        double ax = x[at], ay = y[at], bx = x[at + 1], by = y[at + 1];
        int across = (ay > py) != (by > py), along = (ax > cx) != (bx > cx);
        int unclear_p, unclear_q, unclear_c;
        int p = is_left(ax, ay, bx, by, px, py, &unclear_p);
        int q = is_left(ax, ay, bx, by, cx, py, &unclear_q);
        int r = is_left(ax, ay, bx, by, cx, cy, &unclear_c);
        unclear |= (across & (unclear_p | unclear_q)) |
                   (along & (unclear_q | unclear_c)) | (ay == py) | (by == py) |
                   (ax == cx) | (bx == cx);
        odd ^= (across & (p ^ q)) ^ (along & (q ^ r));
    }
    return unclear ? -1 : odd;
}

/* The same, exact.  Where the path touches an edge without crossing it clearly,
 * all rings are asked. */
static enum oj_location locate_in_cell(const struct oj_cells *c,
                                       const struct oj_shape *shape,
                                       int64_t cell, double cx, double cy,
                                       double px, double py)
{
    const double *x = shape->flat->x, *y = shape->flat->y;
    int odd = c->state[cell] == OJ_CELL_EDGES_INSIDE;
    int unclear = c->state[cell] == OJ_CELL_EDGES_UNCLEAR;
    int parity = parity_in_cell(c, shape, cell, cx, cy, px, py);
    if (parity >= 0)
        return parity ? OJ_INSIDE : OJ_OUTSIDE;
    for (uint32_t i = c->first_entry[cell]; i < c->first_entry[cell + 1]; i++)
    {
        int64_t a, b;
        int at_p, at_q, up_q, up_c;
        edge_ends(shape, c->entry[i], &a, &b);
        at_p = oj_ring_edge(px, py, x[a], y[a], x[b], y[b]);
        if (at_p == OJ_ON_BOUNDARY)
            return OJ_ON_BOUNDARY;
        at_q = oj_ring_edge(cx, py, x[a], y[a], x[b], y[b]);
        /* the same rule with x and y exchanged: the ray towards +y */
        up_q = oj_ring_edge(py, cx, y[a], x[a], y[b], x[b]);
        up_c = oj_ring_edge(cy, cx, y[a], x[a], y[b], x[b]);
        unclear |= (at_q | up_q | up_c) & OJ_ON_BOUNDARY;
        odd ^= (at_p ^ at_q ^ up_q ^ up_c) & 1;
    }
    if (unclear)
        return oj_shape_locate_in_rings(shape, px, py);
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

enum oj_location oj_cells_locate(const struct oj_cells *c,
                                 const struct oj_shape *shape, double px,
                                 double py)
{
    int32_t column = oj_cell_of(px, c->x0, c->inverse_cell, c->nx);
    int32_t row = oj_cell_of(py, c->y0, c->inverse_cell, c->ny);
    int64_t cell = (int64_t)row * c->nx + column;
    const double *x = shape->flat->x, *y = shape->flat->y;
    if (c->state[cell] <= OJ_CELL_INSIDE)
        return c->state[cell] == OJ_CELL_INSIDE ? OJ_INSIDE : OJ_OUTSIDE;
    if (shape->kinds == OJ_PART_POLYGON)
        return locate_in_cell(c, shape, cell, reference_x(c, column),
                              reference_y(c, row), px, py);
    for (uint32_t i = c->first_entry[cell]; i < c->first_entry[cell + 1]; i++)
    {
        int64_t a, b;
        edge_ends(shape, c->entry[i], &a, &b);
        if (oj_on_segment(px, py, x[a], y[a], x[b], y[b]))
            return OJ_ON_BOUNDARY;
    }
    return OJ_OUTSIDE;
}

void oj_cells_free(struct oj_cells *c)
{
    oj_free(c->block);
    memset(c, 0, sizeof *c);
}

void oj_cells_scratch_free(struct oj_cells_scratch *s)
{
    oj_free(s->cell);
    oj_free(s->edge);
    memset(s, 0, sizeof *s);
}
