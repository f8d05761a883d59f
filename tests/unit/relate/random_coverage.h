/** Random coverages: the cells of a small grid form regions, whose polygons
 * share all vertices and edges between them, as neighbours do. Two coverages of
 * one grid share some borders and cross elsewhere. Include once, after
 * references.h and random_numbers.h. */
#ifndef RANDOM_COVERAGE_H
#define RANDOM_COVERAGE_H

#include "../random_numbers.h"
#include "../references.h"

#define COVERAGE_MOST 6                    /* cells along a side */
#define COVERAGE_NODES (COVERAGE_MOST + 1) /* grid points along a side */
#define COVERAGE_REGIONS (COVERAGE_MOST * COVERAGE_MOST)
#define COVERAGE_RING 512

/* The points of a grid, and further points between two neighbours. */
struct coverage_grid
{
    int size;
    double x[COVERAGE_NODES][COVERAGE_NODES], y[COVERAGE_NODES][COVERAGE_NODES];
    /* point on the edge to the right (0) or up (1) from a grid point */
    double between_x[COVERAGE_NODES][COVERAGE_NODES][2];
    double between_y[COVERAGE_NODES][COVERAGE_NODES][2];
    int has_between[COVERAGE_NODES][COVERAGE_NODES][2];
};

/* Faults of the polygons of a coverage. Each occurs in one of this number of
 * cases; 0: never. */
struct coverage_faults
{
    /* neighbours lack vertices, which gives T-junctions and slivers */
    int drops_between;
    int moves_vertex; /* vertices are moved by one ulp, or by a little more */
    int repeats_vertex;
    int joins_regions; /* parts may touch, share edges, or be disjoint */
    int spikes;        /* invalid */
};

static inline void make_coverage_grid(struct coverage_grid *g, int is_straight)
{
    g->size = 2 + pick(COVERAGE_MOST - 1);
    for (int i = 0; i < COVERAGE_NODES; i++)
    {
        for (int j = 0; j < COVERAGE_NODES; j++)
        {
            g->x[i][j] = i + (is_straight ? 0.0 : 0.125 * (pick(5) - 2));
            g->y[i][j] = j + (is_straight ? 0.0 : 0.3 * unit());
        }
    }
    for (int i = 0; i < g->size + 1; i++)
    {
        for (int j = 0; j < g->size + 1; j++)
        {
            for (int up = 0; up < 2; up++)
            {
                int k = i + !up < COVERAGE_NODES ? i + !up : i;
                int l = j + up < COVERAGE_NODES ? j + up : j;
                g->has_between[i][j][up] = one_in(2);
                g->between_x[i][j][up] = 0.5 * g->x[i][j] + 0.5 * g->x[k][l];
                g->between_y[i][j][up] = 0.5 * g->y[i][j] + 0.5 * g->y[k][l];
                if (one_in(2) && !is_straight)
                    g->between_x[i][j][up] += 0.1 * (unit() - 0.5);
            }
        }
    }
}

/* Assigns cells to regions. Each region grows from one cell. Returns
 * n_regions. */
static inline int color_regions(const struct coverage_grid *g,
                                int region[COVERAGE_MOST][COVERAGE_MOST],
                                int n_regions)
{
    static const int step[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    int n = g->size, n_free = n * n;
    for (int i = 0; i < n; i++)
    {
        for (int j = 0; j < n; j++)
            region[i][j] = -1;
    }
    for (int r = 0; r < n_regions && n_free > 0; r++)
    {
        int i = pick(n), j = pick(n);
        while (region[i][j] >= 0)
        {
            i = pick(n);
            j = pick(n);
        }
        region[i][j] = r;
        n_free--;
    }
    while (n_free > 0)
    {
        int i = pick(n), j = pick(n), s = pick(4);
        int k = i + step[s][0], l = j + step[s][1];
        if (region[i][j] >= 0 || k < 0 || l < 0 || k >= n || l >= n ||
            region[k][l] < 0)
            continue;
        region[i][j] = region[k][l];
        n_free--;
    }
    return n_regions;
}

/* The sides of cells around a region, counterclockwise. leaves[i][j][d]: a side
 * leaves grid point (i, j) in direction d, 0 right, 1 up, 2 left, 3 down. */
struct coverage_sides
{
    uint8_t leaves[COVERAGE_NODES][COVERAGE_NODES][4];
};

static inline int cell_region(const struct coverage_grid *g,
                              int region[COVERAGE_MOST][COVERAGE_MOST], int i,
                              int j)
{
    return i < 0 || j < 0 || i >= g->size || j >= g->size ? -1 : region[i][j];
}

static inline void find_sides(const struct coverage_grid *g,
                              int region[COVERAGE_MOST][COVERAGE_MOST], int r,
                              struct coverage_sides *sides)
{
    memset(sides, 0, sizeof *sides);
    for (int i = 0; i < g->size; i++)
    {
        for (int j = 0; j < g->size; j++)
        {
            if (region[i][j] != r)
                continue;
            sides->leaves[i][j][0] = cell_region(g, region, i, j - 1) != r;
            sides->leaves[i + 1][j][1] = cell_region(g, region, i + 1, j) != r;
            sides->leaves[i + 1][j + 1][2] =
                cell_region(g, region, i, j + 1) != r;
            sides->leaves[i][j + 1][3] = cell_region(g, region, i - 1, j) != r;
        }
    }
}

struct coverage_ring
{
    int n;
    double xy[2 * COVERAGE_RING];
    double area;
};

static inline void put_ring_point(struct coverage_ring *ring, double x,
                                  double y)
{
    ck_assert_int_lt(ring->n, COVERAGE_RING - 4);
    ring->xy[2 * ring->n] = x;
    ring->xy[2 * ring->n + 1] = y;
    ring->n++;
}

/* Adds the point between grid point (i, j) and the next grid point in a
 * direction. */
static inline void put_between(const struct coverage_grid *g,
                               const struct coverage_faults *faults,
                               struct coverage_ring *ring, int i, int j,
                               int direction)
{
    int u = direction == 2 ? i - 1 : i, v = direction == 3 ? j - 1 : j;
    if (!g->has_between[u][v][direction % 2] ||
        (faults->drops_between > 0 && one_in(faults->drops_between)))
        return;
    put_ring_point(ring, g->between_x[u][v][direction % 2],
                   g->between_y[u][v][direction % 2]);
}

/* Follows sides from (i, j) and removes them. Where two sides continue, turns
 * left or right. */
static inline void walk_ring(const struct coverage_grid *g,
                             const struct coverage_faults *faults,
                             struct coverage_sides *sides, int i, int j,
                             struct coverage_ring *ring)
{
    static const int step[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    int start_i = i, start_j = j, direction = 0, turn = pick(2) ? 1 : 3;
    ring->n = 0;
    while (!sides->leaves[i][j][direction])
        direction++;
    do
    {
        sides->leaves[i][j][direction] = 0;
        put_ring_point(ring, g->x[i][j], g->y[i][j]);
        put_between(g, faults, ring, i, j, direction);
        i += step[direction][0];
        j += step[direction][1];
        if (sides->leaves[i][j][(direction + turn) % 4])
            direction = (direction + turn) % 4;
        else if (!sides->leaves[i][j][direction])
            direction = (direction + 4 - turn) % 4;
    } while (i != start_i || j != start_j || sides->leaves[i][j][direction]);
}

/* Changes the first vertex or the direction of the ring, makes the ring invalid
 * if the faults ask for it, and closes it. */
static inline void finish_ring(const struct coverage_faults *faults,
                               struct coverage_ring *ring)
{
    struct coverage_ring other = {.n = 0};
    int first = pick(ring->n), back = one_in(2);
    ring->area = 0.0;
    for (int k = 0; k < ring->n; k++)
    {
        const double *p = &ring->xy[2 * k];
        const double *q = &ring->xy[2 * ((k + 1) % ring->n)];
        ring->area += p[0] * q[1] - p[1] * q[0];
    }
    other.area = ring->area;
    if (faults->spikes > 0 && one_in(2)) /* crosses itself, mostly */
    {
        int k = 2 * pick(ring->n - 1);
        for (int c = k; c < k + 2; c++)
        {
            double swap = ring->xy[c];
            ring->xy[c] = ring->xy[c + 2];
            ring->xy[c + 2] = swap;
        }
    }
    for (int k = 0; k < ring->n; k++)
    {
        int at = (first + (back ? ring->n - k : k)) % ring->n;
        double x = ring->xy[2 * at], y = ring->xy[2 * at + 1];
        if (faults->moves_vertex > 0 && one_in(faults->moves_vertex))
        {
            x = pick(2) ? nudge(x, 1) : x + 0.01 * (unit() - 0.5);
            y = pick(2) ? y : nudge(y, 1);
        }
        put_ring_point(&other, x, y);
        if (faults->repeats_vertex > 0 && one_in(faults->repeats_vertex))
            put_ring_point(&other, x, y);
        if (faults->spikes > 0 && one_in(faults->spikes))
        {
            put_ring_point(&other, x + 2.0 * (unit() - 0.5), y + 0.5);
            put_ring_point(&other, x, y);
        }
    }
    put_ring_point(&other, other.xy[0], other.xy[1]);
    *ring = other;
}

/* Adds the rings of a region. The largest ring, the shell, comes first. */
static inline void add_region(struct oj_flat_buf *buf,
                              const struct coverage_grid *g,
                              const struct coverage_faults *faults,
                              int region[COVERAGE_MOST][COVERAGE_MOST], int r)
{
    static struct coverage_ring ring[COVERAGE_REGIONS];
    struct coverage_sides sides;
    int n = 0, shell = 0;
    find_sides(g, region, r, &sides);
    for (int i = 0; i <= g->size; i++)
    {
        for (int j = 0; j <= g->size; j++)
        {
            const uint8_t *leaves = sides.leaves[i][j];
            while (leaves[0] | leaves[1] | leaves[2] | leaves[3])
            {
                walk_ring(g, faults, &sides, i, j, &ring[n]);
                finish_ring(faults, &ring[n]);
                shell = ring[n].area > ring[shell].area ? n : shell;
                n++;
            }
        }
    }
    add_part(buf, OJ_PART_POLYGON);
    add_ring(buf, ring[shell].n, ring[shell].xy);
    for (int k = 0; k < n; k++)
    {
        if (k != shell)
            add_ring(buf, ring[k].n, ring[k].xy);
    }
}

/* Adds one feature for each region. Some have several parts. */
static inline void add_coverage(struct oj_flat_buf *buf,
                                const struct coverage_grid *g,
                                const struct coverage_faults *faults)
{
    int region[COVERAGE_MOST][COVERAGE_MOST];
    int most = g->size * g->size;
    int n = color_regions(g, region, 1 + pick(most < 9 ? most : 9));
    for (int r = 0; r < n; r++)
    {
        begin(buf);
        add_region(buf, g, faults, region, r);
        while (r + 1 < n && faults->joins_regions > 0 &&
               one_in(faults->joins_regions))
            add_region(buf, g, faults, region, ++r);
        end(buf);
    }
}

#endif
