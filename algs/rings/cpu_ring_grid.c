#include "cpu_ring_grid.h"

#include "../../flatten/base/oj_array.h"
#include "../base/cpu_vector.h"
#include "../base/oj_boxes.h"

#include <float.h>
#include <string.h>

/* A cell is so many mean edges wide (its edges are two or three times as many
 * then), but there are between LEAST_CELLS and CELLS of them for each vertex,
 * and an edge passes no more than some four of them. */
#define EDGES_ALONG 8.0
#define LEAST_CELLS 1.0
#define CELLS 8.0
#define CELLS_OF_EDGE 4.0

#define MOST_VERTICES ((int64_t)1 << 27)
#define MOST_CELLS 32767.0 /* in a row or a column */

/* In lanes. */
OJ_CLONES struct oj_ring_extent oj_ring_measure(const double *x,
                                                const double *y, int64_t n)
{
    double x0[OJ_LANES], y0[OJ_LANES], x1[OJ_LANES], y1[OJ_LANES];
    double length[OJ_LANES];
    struct oj_ring_extent e;
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
static int choose_cells(struct oj_ring_grid *g, struct oj_ring_extent e)
{
    double n = (double)g->n_vertices;
    double width = e.x1 - e.x0, height = e.y1 - e.y0;
    double wider = width > height ? width : height, side;
    struct oj_box box = {e.x0, e.y0, e.x1, e.y1};
    if (!oj_box_is_safe(&box))
        return 0;
    side = sqrt(width / n) * sqrt(height);
    g->cell = fmin(EDGES_ALONG * e.length / n, side / sqrt(LEAST_CELLS));
    g->cell = fmax(g->cell, side / sqrt(CELLS));
    g->cell = fmax(g->cell, e.length / (CELLS_OF_EDGE * n));
    g->cell = fmax(g->cell, wider / fmin(n, MOST_CELLS - 1.0));
    /* far from the origin no finer than coordinates can tell, or the margins of
     * for_cells_of_long() would put every edge in every cell */
    g->cell = fmax(g->cell, 1e-12 * oj_box_size(&box));
    g->x0 = e.x0;
    g->y0 = e.y0;
    g->inverse_cell = 1.0 / g->cell;
    g->nx = oj_ring_grid_index(e.x1, g->x0, g->inverse_cell, INT32_MAX) + 1;
    g->ny = oj_ring_grid_index(e.y1, g->y0, g->inverse_cell, INT32_MAX) + 1;
    g->n_words = (g->nx + 63) / 64;
    g->last_x = (double)(g->nx - 1);
    g->last_y = (double)(g->ny - 1);
    return 1;
}

/* A run, and the cell it is for. */
struct cell_run
{
    uint32_t cell;
    struct oj_edge_run run;
};

/* Row and column of a vertex: row << 16 | column. */
typedef uint32_t place;

struct ring_grid_build
{
    struct oj_ring_grid *g;
    int64_t n_made, cap_made;
    struct cell_run *made; /* in the order of the ring */
};

/* Edges that are looked at together. */
#define BLOCK 256

static inline int32_t row_of(place p)
{
    return (int32_t)(p >> 16);
}

static inline int32_t column_of(place p)
{
    return (int32_t)(p & 0xffff);
}

static OJ_CLONES void place_vertices(const struct oj_ring_grid *g,
                                     const double *x, const double *y,
                                     int64_t n, place *places)
{
    double x0 = g->x0, y0 = g->y0, inverse = g->inverse_cell;
    double last_x = (double)(g->nx - 1), last_y = (double)(g->ny - 1);
    for (int64_t i = 0; i < n; i++)
    {
        double u = (x[i] - x0) * inverse, v = (y[i] - y0) * inverse;
        u = u > 0.0 ? u : 0.0;
        v = v > 0.0 ? v : 0.0;
        u = u < last_x ? u : last_x;
        v = v < last_y ? v : last_y;
        places[i] = (place)(int32_t)u | (place)(int32_t)v << 16;
    }
}

static inline int64_t cell_at(const struct oj_ring_grid *g, int32_t row,
                              int32_t column)
{
    return (int64_t)row * g->n_words * 64 + column;
}

/* There is room for BLOCK more, and what reserve_runs() has asked for. */
static inline void add_run(struct ring_grid_build *b, int64_t cell,
                           int64_t first, int64_t n)
{
    struct cell_run *made = &b->made[b->n_made++];
    made->cell = (uint32_t)cell;
    made->run.first = (uint32_t)first;
    made->run.n = (uint32_t)n;
    b->g->word[cell / 64].edges |= (uint64_t)1 << cell % 64;
}

static oj_status reserve_runs(struct ring_grid_build *b, int64_t n,
                              struct oj_error *err)
{
    return oj_reserve(&b->made, b->n_made, b->n_made + n + BLOCK + 1,
                      &b->cap_made, sizeof *b->made, err);
}

/* Puts edge e into every cell that it may touch, but for the two of its ends,
 * whose runs hold it already.  What of the edge lies in a row is computed, and
 * the rounding of that is covered by a margin that is large against the error
 * of the few operations here and small against a cell. */
static oj_status add_long(struct ring_grid_build *b, int64_t e, place pa,
                          place pb, struct oj_error *err)
{
    const struct oj_ring_grid *g = b->g;
    double ax = g->x[e], ay = g->y[e], bx = g->x[e + 1], by = g->y[e + 1];
    double swap, size, margin, slope;
    int32_t least, most;
    if (row_of(pb) < row_of(pa))
    {
        place swap_place = pa;
        pa = pb, pb = swap_place;
        swap = ax, ax = bx, bx = swap;
        swap = ay, ay = by, by = swap;
    }
    least = column_of(pa) < column_of(pb) ? column_of(pa) : column_of(pb);
    most = column_of(pa) < column_of(pb) ? column_of(pb) : column_of(pa);
    size = fmax(fmax(fabs(ax), fabs(bx)), fmax(fabs(ay), fabs(by)));
    slope = by > ay ? (bx - ax) / (by - ay) : 0.0;
    /* a flat edge enlarges the rounding of the row's limits */
    margin = 1e-9 * g->cell + 1e-14 * size;
    margin += margin * fabs(slope);
    for (int32_t row = row_of(pa); row <= row_of(pb); row++)
    {
        int32_t first = least, last = most;
        if (row_of(pa) != row_of(pb) && least != most && margin < g->cell)
        {
            double low = g->y0 + (double)row * g->cell;
            double from = row == row_of(pa) ? ax : ax + (low - ay) * slope;
            double to =
                row == row_of(pb) ? bx : ax + (low + g->cell - ay) * slope;
            double left = (from < to ? from : to) - margin;
            double right = (from < to ? to : from) + margin;
            first = oj_ring_grid_index(left, g->x0, g->inverse_cell, g->nx);
            last = oj_ring_grid_index(right, g->x0, g->inverse_cell, g->nx);
            first = first > least ? first : least;
            last = last < most ? last : most;
        }
        OJ_TRY(reserve_runs(b, last - first + 1, err));
        for (int32_t column = first; column <= last; column++)
        {
            place at = (place)row << 16 | (place)column;
            if (at != pa && at != pb)
                add_run(b, cell_at(g, row, column), e, 1);
        }
    }
    return OJ_OK;
}

/* How many reference points of the row lie left of an edge that crosses their
 * height.  Where one lies on the edge, its cell gets a run of no edges, which
 * says so. */
static oj_status count_left(struct ring_grid_build *b, int64_t e, int32_t row,
                            double crossing, int64_t *out, struct oj_error *err)
{
    const struct oj_ring_grid *g = b->g;
    double ax = g->x[e], ay = g->y[e], bx = g->x[e + 1], by = g->y[e + 1];
    double y = g->below[row];
    int32_t column =
        oj_ring_grid_index(crossing, g->x0, g->inverse_cell, g->nx);
    while (column > 0 && oj_ring_edge(oj_ring_grid_reference_x(g, column - 1),
                                      y, ax, ay, bx, by) != 1)
        column--;
    while (column < g->nx)
    {
        int edge = oj_ring_edge(oj_ring_grid_reference_x(g, column), y, ax, ay,
                                bx, by);
        if (edge == OJ_ON_BOUNDARY)
        {
            OJ_TRY(reserve_runs(b, 1, err));
            add_run(b, cell_at(g, row, column), 0, 0);
        }
        if (edge != 1)
            break;
        column++;
    }
    *out = column;
    return OJ_OK;
}

/* Edge e, whose ends are in different rows, flips the state of every reference
 * point between these rows that lies left of it.  As every row is crossed an
 * even number of times, these are as well the points right of it: the flip is
 * noted at the first of them and summed up afterwards.
 *
 * The crossing is computed to some 8 ulp of the coordinates' size, which are
 * 0.002 cells at most (choose_cells); nearer than SURE to a reference point
 * exact signs decide. */
#define SURE 0.01

static oj_status flip_rows(struct ring_grid_build *b, int64_t e, int32_t row,
                           int32_t last, struct oj_error *err)
{
    const struct oj_ring_grid *g = b->g;
    double ax = g->x[e], ay = g->y[e], bx = g->x[e + 1], by = g->y[e + 1];
    double slope = (bx - ax) / (by - ay), most = (double)g->nx - SURE;
    if (row > last)
    {
        int32_t swap = row;
        row = last;
        last = swap;
    }
    while (row++ < last)
    {
        double crossing = ax + (g->below[row] - ay) * slope;
        /* reference points at 0, 1, 2 .. */
        double at = (crossing - g->x0) * g->inverse_cell - OJ_REFERENCE_X;
        int64_t column = at > SURE && at < most ? (int64_t)at + 1 : 0;
        double past = at - (double)(column - 1);
        if (column == 0 || past < SURE || past > 1.0 - SURE)
            OJ_TRY(count_left(b, e, row, crossing, &column, err));
        if (column < g->nx)
            g->word[row * g->n_words + column / 64].inside ^= (uint64_t)1
                                                              << column % 64;
    }
    return OJ_OK;
}

/* 1 when the two cells share a side: an edge between them is in no others. */
static inline int are_neighbours(place a, place b)
{
    int columns = column_of(a) - column_of(b), rows = row_of(a) - row_of(b);
    return columns * columns + rows * rows == 1;
}

/* Edges of a block, as ordinals in it. */
struct listed
{
    int32_t n;
    uint16_t edge[BLOCK + 1];
};

/* Adds without a branch, as nothing can be foretold here. */
static inline void list_if(struct listed *list, int32_t edge, int is_one)
{
    list->edge[list->n] = (uint16_t)edge;
    list->n += is_one;
}

/* Cuts the ring into runs of edges that touch one cell. */
static oj_status make_runs(struct ring_grid_build *b, struct oj_error *err)
{
    const struct oj_ring_grid *g = b->g;
    int64_t n_edges = g->n_vertices - 1, first = 0;
    place places[BLOCK + 1], last = 0;
    for (int64_t e = 0; e < n_edges; e += BLOCK)
    {
        int32_t n = (int32_t)(n_edges - e < BLOCK ? n_edges - e : BLOCK);
        struct listed leaving, far, across;
        leaving.n = far.n = across.n = 0;
        OJ_TRY(reserve_runs(b, 0, err));
        place_vertices(g, g->x + e, g->y + e, n + 1, places);
        for (int32_t i = 0; i < n; i++)
            list_if(&leaving, i, places[i] != places[i + 1]);
        for (int32_t k = 0; k < leaving.n; k++)
        {
            int32_t i = leaving.edge[k];
            place at = places[i], to = places[i + 1];
            add_run(b, cell_at(g, row_of(at), column_of(at)), first,
                    e + i + 1 - first);
            first = e + i;
            list_if(&far, i, !are_neighbours(at, to));
            list_if(&across, i, row_of(at) != row_of(to));
        }
        for (int32_t k = 0; k < far.n; k++)
        {
            int32_t i = far.edge[k];
            OJ_TRY(add_long(b, e + i, places[i], places[i + 1], err));
        }
        for (int32_t k = 0; k < across.n; k++)
        {
            int32_t i = across.edge[k];
            OJ_TRY(flip_rows(b, e + i, row_of(places[i]), row_of(places[i + 1]),
                             err));
        }
        last = places[n];
    }
    OJ_TRY(reserve_runs(b, 0, err));
    add_run(b, cell_at(g, row_of(last), column_of(last)), first,
            n_edges - first);
    return OJ_OK;
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

/* 1 when every column has its reference point. */
static OJ_CLONES int has_columns(const struct oj_ring_grid *borrowed)
{
    const struct oj_ring_grid g = *borrowed;
    int32_t n_wrong = 0;
    for (int32_t column = 0; column < (int32_t)g.nx; column++)
    {
        double x = g.x0 + ((double)column + OJ_REFERENCE_X) * g.cell;
        n_wrong += oj_ring_grid_index(x, g.x0, g.inverse_cell, g.nx) != column;
    }
    return n_wrong == 0;
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
    return has_columns(g);
}

/* From flips to states, and how many cells with edges there are before each
 * word: the number of all of them. */
static OJ_CLONES int64_t settle(struct oj_ring_grid *g)
{
    uint64_t n = 0;
    for (int64_t row = 0; row < g->ny; row++)
    {
        uint64_t before = 0;
        for (int64_t i = row * g->n_words; i < (row + 1) * g->n_words; i++)
        {
            uint64_t flips = g->word[i].inside;
            for (int shift = 1; shift < 64; shift *= 2)
                flips ^= flips << shift;
            flips ^= before;
            before = 0 - (flips >> 63);
            g->word[i].inside = flips;
            g->word[i].rank = n;
            n += (uint64_t)__builtin_popcountll(g->word[i].edges);
        }
    }
    return (int64_t)n;
}

/* From cells to their numbers among those with edges, and how many runs each
 * has. */
static OJ_CLONES void rank_runs(const struct oj_ring_grid *g, int64_t n,
                                struct cell_run *made)
{
    for (int64_t i = 0; i < n; i++)
    {
        made[i].cell = oj_ring_grid_rank(g, made[i].cell);
        g->first_run[made[i].cell]++;
    }
}

/* Puts the runs side by side, cell by cell. */
static oj_status sort_runs(const struct ring_grid_build *b, int64_t n_cells,
                           struct oj_error *err)
{
    struct oj_ring_grid *g = b->g;
    uint32_t end = 0;
    g->n_runs = b->n_made;
    g->n_first = n_cells + 1;
    OJ_NEW(g->run, g->n_runs + (g->n_first + 1) / 2, err);
    g->first_run = (uint32_t *)(void *)(g->run + g->n_runs);
    memset(g->first_run, 0, (size_t)g->n_first * sizeof *g->first_run);
    rank_runs(g, b->n_made, b->made);
    for (int64_t i = 0; i <= n_cells; i++)
        g->first_run[i] = end += g->first_run[i];
    for (int64_t i = b->n_made - 1; i >= 0; i--)
        g->run[--g->first_run[b->made[i].cell]] = b->made[i].run;
    return OJ_OK;
}

static oj_status fill(struct ring_grid_build *b, struct oj_error *err)
{
    struct oj_ring_grid *g = b->g;
    int64_t n_words = g->n_words * g->ny;
    OJ_NEW(g->word, n_words + (g->ny + 2) / 3, err);
    memset(g->word, 0, (size_t)n_words * sizeof *g->word);
    g->below = (double *)(void *)(g->word + n_words);
    if (!place_references(g))
    {
        g->nx = g->ny = g->n_words = 0;
        return OJ_OK;
    }
    OJ_TRY(reserve_runs(b, g->n_vertices / 4, err));
    OJ_TRY(make_runs(b, err));
    if (b->n_made > UINT32_MAX)
    {
        g->nx = g->ny = g->n_words = 0;
        return OJ_OK;
    }
    return sort_runs(b, settle(g), err);
}

oj_status oj_ring_grid_build(struct oj_ring_grid *g, const double *x,
                             const double *y, int64_t n, struct oj_error *err)
{
    struct oj_ring_extent extent = {0.0, 0.0, 0.0, 0.0, 0.0};
    if (n > 0)
        extent = oj_ring_measure(x, y, n);
    return oj_ring_grid_build_in(g, &extent, x, y, n, err);
}

oj_status oj_ring_grid_build_in(struct oj_ring_grid *g,
                                const struct oj_ring_extent *extent,
                                const double *x, const double *y, int64_t n,
                                struct oj_error *err)
{
    struct ring_grid_build b = {g, 0, 0, NULL};
    oj_status status;
    memset(g, 0, sizeof *g);
    if (n < 2 || n > MOST_VERTICES)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a ring of %lld vertices; at most %lld are possible",
                       (long long)n, (long long)MOST_VERTICES);
    g->n_vertices = n;
    g->kernel = oj_ring_kernel();
    g->x = x;
    g->y = y;
    if (!choose_cells(g, *extent))
        return OJ_OK;
    status = fill(&b, err);
    oj_free(b.made);
    if (status != OJ_OK)
        oj_ring_grid_free(g);
    return status;
}

int64_t oj_ring_grid_bytes(const struct oj_ring_grid *g)
{
    int64_t n_words = g->n_words * g->ny;
    return n_words == 0
               ? 0
               : n_words * (int64_t)sizeof *g->word + g->ny * 8 +
                     g->n_first * 4 + g->n_runs * (int64_t)sizeof *g->run;
}

void oj_ring_grid_free(struct oj_ring_grid *g)
{
    oj_free(g->word);
    oj_free(g->run);
    memset(g, 0, sizeof *g);
}
