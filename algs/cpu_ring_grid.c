#include "cpu_ring_grid.h"

#include "../flatten/oj_array.h"
#include "cpu_vector.h"

#include <float.h>
#include <string.h>

/* Where in a cell the column of its reference point lies: an odd place, so that
 * the round coordinates of real data do not hit it. */
#define REFERENCE_X 0.5123456789

/* Vertices for each cell: a cell that the ring passes through has some ten
 * edges then, in one run or two. */
#define VERTICES_PER_CELL 3.0

#define MOST_VERTICES ((int64_t)1 << 27)
#define MOST_CELLS 32767.0 /* in a row or a column */

/* Sizes between which differences, products and reciprocals stay finite and
 * normal. */
#define LEAST_SIZE 1e-130
#define GREATEST_SIZE 1e130

static inline double reference_x(const struct oj_ring_grid *g, int64_t column)
{
    return g->x0 + ((double)column + REFERENCE_X) * g->cell;
}

struct extent
{
    double x0, y0, x1, y1, length;
};

/* Box and length (along both axes) of the ring, in lanes. */
static OJ_CLONES struct extent measure(const double *x, const double *y,
                                       int64_t n)
{
    double x0[OJ_LANES], y0[OJ_LANES], x1[OJ_LANES], y1[OJ_LANES];
    double length[OJ_LANES];
    struct extent e;
    int64_t i = 0;
    OJ_EIGHT
    {
        x0[c] = x1[c] = x[0];
        y0[c] = y1[c] = y[0];
        length[c] = 0.0;
    }
    for (; i + OJ_LANES < n; i += OJ_LANES)
    {
        OJ_EIGHT
        {
            double vx = x[i + c], vy = y[i + c];
            x0[c] = vx < x0[c] ? vx : x0[c];
            y0[c] = vy < y0[c] ? vy : y0[c];
            x1[c] = vx > x1[c] ? vx : x1[c];
            y1[c] = vy > y1[c] ? vy : y1[c];
            length[c] += fabs(x[i + c + 1] - vx) + fabs(y[i + c + 1] - vy);
        }
    }
    for (; i < n; i++)
    {
        x0[0] = x[i] < x0[0] ? x[i] : x0[0];
        y0[0] = y[i] < y0[0] ? y[i] : y0[0];
        x1[0] = x[i] > x1[0] ? x[i] : x1[0];
        y1[0] = y[i] > y1[0] ? y[i] : y1[0];
        if (i > 0)
            length[0] += fabs(x[i] - x[i - 1]) + fabs(y[i] - y[i - 1]);
    }
    e.x0 = x0[0];
    e.y0 = y0[0];
    e.x1 = x1[0];
    e.y1 = y1[0];
    e.length = length[0];
    for (int c = 1; c < OJ_LANES; c++)
    {
        e.x0 = x0[c] < e.x0 ? x0[c] : e.x0;
        e.y0 = y0[c] < e.y0 ? y0[c] : e.y0;
        e.x1 = x1[c] > e.x1 ? x1[c] : e.x1;
        e.y1 = y1[c] > e.y1 ? y1[c] : e.y1;
        e.length += length[c];
    }
    return e;
}

/* Square cells, but large enough that long edges do not make more than a few
 * entries an edge on average. 0: no cells, see nx. */
static int choose_cells(struct oj_ring_grid *g)
{
    struct extent e = measure(g->x, g->y, g->n_vertices);
    double n = (double)g->n_vertices;
    double width = e.x1 - e.x0, height = e.y1 - e.y0;
    double wider = width > height ? width : height;
    double size =
        fmax(fmax(fabs(e.x0), fabs(e.x1)), fmax(fabs(e.y0), fabs(e.y1)));
    if (!(wider > LEAST_SIZE) || !(size < GREATEST_SIZE))
        return 0;
    g->cell = sqrt(width * VERTICES_PER_CELL / n) * sqrt(height);
    g->cell = fmax(g->cell, e.length / (4.0 * n));
    g->cell = fmax(g->cell, wider / fmin(n, MOST_CELLS - 1.0));
    /* far from the origin no finer than coordinates can tell, or the margins of
     * for_cells_of_long() would put every edge in every cell */
    g->cell = fmax(g->cell, 1e-12 * size);
    g->x0 = e.x0;
    g->y0 = e.y0;
    g->inverse_cell = 1.0 / g->cell;
    g->nx = oj_ring_grid_index(e.x1, g->x0, g->inverse_cell, INT32_MAX) + 1;
    g->ny = oj_ring_grid_index(e.y1, g->y0, g->inverse_cell, INT32_MAX) + 1;
    return 1;
}

/* A cell on its way: row and column of a vertex. */
struct place
{
    int16_t column, row;
};

struct build
{
    struct oj_ring_grid *g;
    struct place *place; /* [vertices] */
    uint8_t *state;      /* [cells] flips of row states, then states */
    int filling;         /* 0: first_run counts runs, 1: it says where to put
                            the next */
};

static OJ_CLONES void place_vertices(const struct oj_ring_grid *g,
                                     struct place *place)
{
    double x0 = g->x0, y0 = g->y0, inverse = g->inverse_cell;
    double last_x = (double)(g->nx - 1), last_y = (double)(g->ny - 1);
    const double *x = g->x, *y = g->y;
    for (int64_t i = 0; i < g->n_vertices; i++)
    {
        double u = (x[i] - x0) * inverse, v = (y[i] - y0) * inverse;
        u = u > 0.0 ? u : 0.0;
        v = v > 0.0 ? v : 0.0;
        u = u < last_x ? u : last_x;
        v = v < last_y ? v : last_y;
        place[i].column = (int16_t)(int32_t)u;
        place[i].row = (int16_t)(int32_t)v;
    }
}

static inline void add_run(const struct build *b, int64_t cell, int64_t first,
                           int64_t n)
{
    uint32_t at = b->g->first_run[cell]++;
    if (b->filling)
    {
        b->g->run[at].first = (uint32_t)first;
        b->g->run[at].n = (uint32_t)n;
    }
}

/* Puts edge e into every cell that it may touch, but for the two of its ends,
 * whose runs hold it already.  What of the edge lies in a row is computed, and
 * the rounding of that is covered by a margin that is large against the error
 * of the few operations here and small against a cell. */
static void add_long(const struct build *b, int64_t e)
{
    const struct oj_ring_grid *g = b->g;
    struct place pa = b->place[e], pb = b->place[e + 1], swap_place;
    double ax = g->x[e], ay = g->y[e], bx = g->x[e + 1], by = g->y[e + 1];
    double swap, size, margin, slope;
    int32_t least, most;
    if (pb.row < pa.row)
    {
        swap = ax, ax = bx, bx = swap;
        swap = ay, ay = by, by = swap;
        swap_place = pa, pa = pb, pb = swap_place;
    }
    least = pa.column < pb.column ? pa.column : pb.column;
    most = pa.column < pb.column ? pb.column : pa.column;
    size = fmax(fmax(fabs(ax), fabs(bx)), fmax(fabs(ay), fabs(by)));
    slope = by > ay ? (bx - ax) / (by - ay) : 0.0;
    /* a flat edge enlarges the rounding of the row's limits */
    margin = 1e-9 * g->cell + 1e-14 * size;
    margin += margin * fabs(slope);
    for (int32_t row = pa.row; row <= pb.row; row++)
    {
        int32_t first = least, last = most;
        if (pa.row != pb.row && least != most && margin < g->cell)
        {
            double low = g->y0 + (double)row * g->cell;
            double from = row == pa.row ? ax : ax + (low - ay) * slope;
            double to = row == pb.row ? bx : ax + (low + g->cell - ay) * slope;
            double left = (from < to ? from : to) - margin;
            double right = (from < to ? to : from) + margin;
            first = oj_ring_grid_index(left, g->x0, g->inverse_cell, g->nx);
            last = oj_ring_grid_index(right, g->x0, g->inverse_cell, g->nx);
            first = first > least ? first : least;
            last = last < most ? last : most;
        }
        for (int32_t column = first; column <= last; column++)
        {
            if (!(row == pa.row && column == pa.column) &&
                !(row == pb.row && column == pb.column))
                add_run(b, row * g->nx + column, e, 1);
        }
    }
}

/* Edge e, whose ends are in different rows, flips the state of every reference
 * point between these rows that lies left of it; the flip is noted at the last
 * such point and summed up afterwards. */
static void flip_rows(const struct build *b, int64_t e)
{
    const struct oj_ring_grid *g = b->g;
    double ax = g->x[e], ay = g->y[e], bx = g->x[e + 1], by = g->y[e + 1];
    int32_t row = b->place[e].row, last = b->place[e + 1].row;
    double slope = (bx - ax) / (by - ay);
    if (row > last)
    {
        int32_t swap = row;
        row = last;
        last = swap;
    }
    while (row++ < last)
    {
        uint8_t *state = b->state + row * g->nx;
        double y = g->below[row];
        double crossing = ax + (y - ay) * slope;
        /* column: how many reference points lie left of the edge */
        int64_t column =
            oj_ring_grid_index(crossing, g->x0, g->inverse_cell, g->nx);
        while (column > 0 &&
               oj_ring_edge(reference_x(g, column - 1), y, ax, ay, bx, by) != 1)
            column--;
        while (column < g->nx)
        {
            int edge = oj_ring_edge(reference_x(g, column), y, ax, ay, bx, by);
            if (edge == OJ_ON_BOUNDARY)
                state[column] |= OJ_ON_BOUNDARY;
            if (edge != 1)
                break;
            column++;
        }
        if (column > 0)
            state[column - 1] ^= 1;
    }
}

/* 1 when the two cells share a side: an edge between them is in no others. */
static inline int are_neighbours(struct place a, struct place b)
{
    int columns = a.column - b.column, rows = a.row - b.row;
    return columns * columns + rows * rows == 1;
}

/* Cuts the ring into runs of edges that touch one cell. */
static void add_runs(const struct build *b)
{
    const struct oj_ring_grid *g = b->g;
    const struct place *place = b->place;
    int64_t n_edges = g->n_vertices - 1, first = 0;
    for (int64_t e = 0; e < n_edges; e++)
    {
        struct place at, to;
        if (memcmp(&place[e], &place[e + 1], sizeof *place) == 0)
            continue;
        at = place[e];
        to = place[e + 1];
        add_run(b, at.row * g->nx + at.column, first, e + 1 - first);
        first = e;
        if (!are_neighbours(at, to))
            add_long(b, e);
        if (at.row != to.row && !b->filling)
            flip_rows(b, e);
    }
    add_run(b, place[n_edges].row * g->nx + place[n_edges].column, first,
            n_edges - first);
}

/* Doubles as integers of the same order, and back. */
static int64_t to_ordinal(double v)
{
    int64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits >= 0 ? bits : INT64_MIN - bits;
}

static double from_ordinal(int64_t ordinal)
{
    int64_t bits = ordinal >= 0 ? ordinal : INT64_MIN - ordinal;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* The last double below row. Near 0 there may be very many doubles between the
 * computed limit and the true one, so they are halved, not counted. */
static double last_below(const struct oj_ring_grid *g, int64_t row)
{
    double at = g->y0 + (double)row * g->cell;
    double step = 1e-3 * g->cell;
    int64_t low, high;
    if (row == 0)
        return nextafter(g->y0, -INFINITY);
    low = to_ordinal(at - step);
    high = to_ordinal(at + step);
    if (oj_ring_grid_index(nextafter(at, -INFINITY), g->y0, g->inverse_cell,
                           g->ny) < row)
    {
        /* most often the limit is at, or next to it */
        low = to_ordinal(nextafter(at, -INFINITY));
        if (oj_ring_grid_index(at, g->y0, g->inverse_cell, g->ny) >= row)
            return from_ordinal(low);
    }
    /* low and high may be farther apart than an int64_t can say */
    while ((uint64_t)high - (uint64_t)low > 1)
    {
        int64_t middle = low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
        if (oj_ring_grid_index(from_ordinal(middle), g->y0, g->inverse_cell,
                               g->ny) < row)
            low = middle;
        else
            high = middle;
    }
    return from_ordinal(low);
}

/* The rows' limits; 0 when rounding leaves a row or a column without its
 * reference point. */
static int place_references(const struct oj_ring_grid *g)
{
    for (int64_t row = 0; row < g->ny; row++)
    {
        double y = last_below(g, row);
        if (row > 0 &&
            (oj_ring_grid_index(y, g->y0, g->inverse_cell, g->ny) >= row ||
             oj_ring_grid_index(nextafter(y, INFINITY), g->y0, g->inverse_cell,
                                g->ny) < row))
            return 0;
        g->below[row] = y;
    }
    for (int64_t column = 0; column < g->nx; column++)
    {
        if (oj_ring_grid_index(reference_x(g, column), g->x0, g->inverse_cell,
                               g->nx) != column)
            return 0;
    }
    return 1;
}

/* From flips to states, and from counts to places of the first run. */
static int64_t settle(const struct build *b)
{
    struct oj_ring_grid *g = b->g;
    int64_t total = 0;
    for (int64_t row = 0; row < g->ny; row++)
    {
        uint8_t *state = b->state + row * g->nx;
        uint8_t inside = 0;
        for (int64_t column = g->nx - 1; column >= 0; column--)
        {
            inside ^= state[column] & 1;
            state[column] =
                (state[column] & OJ_ON_BOUNDARY) ? OJ_ON_BOUNDARY : inside;
        }
    }
    for (int64_t cell = 0; cell < g->nx * g->ny; cell++)
    {
        int64_t n = g->first_run[cell];
        g->first_run[cell] = (uint32_t)total;
        total += n;
    }
    return total;
}

static oj_status fill(struct build *b, struct oj_error *err)
{
    struct oj_ring_grid *g = b->g;
    int64_t n_cells = g->nx * g->ny, total;
    g->first_run = oj_calloc(n_cells + 1, sizeof *g->first_run);
    g->below = oj_malloc(g->ny, sizeof *g->below);
    b->place = oj_malloc(g->n_vertices, sizeof *b->place);
    b->state = oj_calloc(n_cells, sizeof *b->state);
    if (g->first_run == NULL || g->below == NULL || b->place == NULL ||
        b->state == NULL)
        return oj_fail_nomem(err, n_cells + g->n_vertices,
                             sizeof *g->first_run);
    if (!place_references(g))
    {
        g->nx = g->ny = 0;
        return OJ_OK;
    }
    place_vertices(g, b->place);
    add_runs(b);
    total = settle(b);
    if (total >= UINT32_MAX / 4)
    {
        g->nx = g->ny = 0;
        return OJ_OK;
    }
    g->run = oj_malloc(total, sizeof *g->run);
    if (g->run == NULL)
        return oj_fail_nomem(err, total, sizeof *g->run);
    b->filling = 1;
    add_runs(b);
    /* filling moved every place to the start of the next cell */
    g->first_run[n_cells] = (uint32_t)(4 * total);
    for (int64_t cell = n_cells - 1; cell > 0; cell--)
        g->first_run[cell] = 4 * g->first_run[cell - 1] + b->state[cell];
    g->first_run[0] = b->state[0];
    return OJ_OK;
}

oj_status oj_ring_grid_build(struct oj_ring_grid *g, const double *x,
                             const double *y, int64_t n, struct oj_error *err)
{
    struct build b = {g, NULL, NULL, 0};
    oj_status status;
    memset(g, 0, sizeof *g);
    if (n < 2 || n > MOST_VERTICES)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a ring of %lld vertices; at most %lld are possible",
                       (long long)n, (long long)MOST_VERTICES);
    g->n_vertices = n;
    g->x = x;
    g->y = y;
    if (!choose_cells(g))
        return OJ_OK;
    status = fill(&b, err);
    oj_free(b.place);
    oj_free(b.state);
    if (status != OJ_OK)
        oj_ring_grid_free(g);
    return status;
}

/* The way p -> q -> c of a test, and the boxes of its two halves. */
struct way
{
    double px, py, cx, cy;
    double left, right, low, high;
};

OJ_INLINE double greater(double a, double b)
{
    return a > b ? a : b;
}

/* Of eight edges, those whose boxes touch one of the way's: bit i is edge i. */
OJ_INLINE unsigned touching(const struct way *w, const double *x,
                            const double *y)
{
    double apart[OJ_LANES]; /* > 0: from both; the sign is never rounded */
    unsigned bits = 0;
    OJ_EIGHT
    {
        double x0 = x[c] < x[c + 1] ? x[c] : x[c + 1];
        double x1 = x[c] < x[c + 1] ? x[c + 1] : x[c];
        double y0 = y[c] < y[c + 1] ? y[c] : y[c + 1];
        double y1 = y[c] < y[c + 1] ? y[c + 1] : y[c];
        double across = greater(greater(y0 - w->py, w->py - y1),
                                greater(x0 - w->right, w->left - x1));
        double along = greater(greater(x0 - w->cx, w->cx - x1),
                               greater(y0 - w->high, w->low - y1));
        apart[c] = across < along ? across : along;
    }
    for (int c = 0; c < OJ_LANES; c++)
        bits |= (unsigned)(apart[c] <= 0.0) << c;
    return bits;
}

/* Flips *odd where the way crosses the edge; *unclear where it cannot be told.
 * 1 when p is on the edge. */
OJ_INLINE int cross(const struct way *w, double ax, double ay, double bx,
                    double by, int *odd, int *unclear)
{
    int at_p = oj_ring_edge(w->px, w->py, ax, ay, bx, by);
    if (at_p == OJ_ON_BOUNDARY)
        return 1;
    if ((ay > w->py) != (by > w->py))
    {
        int at_q = oj_ring_edge(w->cx, w->py, ax, ay, bx, by);
        *unclear |= at_q & OJ_ON_BOUNDARY;
        *odd ^= (at_p ^ at_q) & 1;
    }
    /* the same rule with x and y exchanged: the ray towards +y */
    if ((ax > w->cx) != (bx > w->cx))
    {
        int up_q = oj_ring_edge(w->py, w->cx, ay, ax, by, bx);
        int up_c = oj_ring_edge(w->cy, w->cx, ay, ax, by, bx);
        *unclear |= (up_q | up_c) & OJ_ON_BOUNDARY;
        *odd ^= (up_q ^ up_c) & 1;
    }
    return 0;
}

OJ_CLONES enum oj_location oj_ring_grid_test(const struct oj_ring_grid *g,
                                             int64_t cell, double px, double py)
{
    const double *x = g->x, *y = g->y;
    struct way w = {px, py, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    int64_t last_eight = g->n_vertices - 1 - OJ_LANES;
    uint32_t run, end;
    int odd, unclear;
    if (g->nx == 0 || last_eight < 0)
        return oj_ring_locate(px, py, x, y, g->n_vertices);
    run = g->first_run[cell];
    end = g->first_run[cell + 1] / 4;
    odd = run & 1;
    unclear = (run & 3) == OJ_ON_BOUNDARY;
    w.cx = reference_x(g, cell % g->nx);
    w.cy = g->below[cell / g->nx];
    w.left = px < w.cx ? px : w.cx;
    w.right = px < w.cx ? w.cx : px;
    w.low = py < w.cy ? py : w.cy;
    w.high = py < w.cy ? w.cy : py;
    for (run /= 4; run < end; run++)
    {
        int64_t e = g->run[run].first, end_edge = e + g->run[run].n;
        while (e < end_edge)
        {
            int64_t first = e < last_eight ? e : last_eight;
            unsigned bits = touching(&w, x + first, y + first);
            bits &= 0xffu << (e - first);
            if (end_edge - first < OJ_LANES)
                bits &= (1u << (end_edge - first)) - 1;
            for (; bits != 0; bits &= bits - 1)
            {
                int64_t i = first + __builtin_ctz(bits);
                if (cross(&w, x[i], y[i], x[i + 1], y[i + 1], &odd, &unclear))
                    return OJ_ON_BOUNDARY;
            }
            e = first + OJ_LANES;
        }
    }
    if (unclear)
        return oj_ring_locate(px, py, x, y, g->n_vertices);
    return odd ? OJ_INSIDE : OJ_OUTSIDE;
}

int64_t oj_ring_grid_bytes(const struct oj_ring_grid *g)
{
    int64_t n_cells = g->nx * g->ny;
    return n_cells == 0
               ? 0
               : n_cells * 4 + g->ny * 8 +
                     g->first_run[n_cells] / 4 * (int64_t)sizeof *g->run;
}

void oj_ring_grid_free(struct oj_ring_grid *g)
{
    oj_free(g->first_run);
    oj_free(g->run);
    oj_free(g->below);
    memset(g, 0, sizeof *g);
}
