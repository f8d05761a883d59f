/** Rings of every difficult kind, for tests. Include once, after
 * random_numbers.h. */
#ifndef RANDOM_RINGS_H
#define RANDOM_RINGS_H

#include "random_numbers.h"

#define RING_CAPACITY 12000

/* A closed ring: vertex n - 1 equals vertex 0. */
struct test_ring
{
    int64_t n;
    double x[RING_CAPACITY], y[RING_CAPACITY];
};

enum ring_kind
{
    RING_STAR,       /* in order of angle, jagged */
    RING_SPIRAL,     /* spiral outwards on one arm, back on another */
    RING_WILD,       /* crosses itself everywhere */
    RING_COMB,       /* long thin teeth */
    RING_STAIRS,     /* axis-parallel steps between integers */
    RING_REPEATED,   /* most vertices several times */
    RING_THERE_BACK, /* a path and back along it: no area */
    RING_COLLINEAR,  /* all vertices on one line */
    RING_LATTICE,    /* random vertices among few integers */
    RING_WALK,       /* many short edges and one long edge */
    RING_FLAT,       /* a million times wider than high */
    RING_SPIKE,      /* one vertex far away */
    RING_ONE_POINT,  /* all vertices are equal */
    /* the boundary of every cell of a lattice, so that edges are shared */
    RING_GRID,
    RING_N_KINDS
};

static inline void ring_add(struct test_ring *ring, double x, double y)
{
    if (ring->n + 1 < RING_CAPACITY)
    {
        ring->x[ring->n] = x;
        ring->y[ring->n++] = y;
    }
}

static inline void ring_add_star(struct test_ring *ring, int64_t n,
                                 double least)
{
    for (int64_t i = 0; i < n; i++)
    {
        double angle = 6.283185307179586 * (double)i / (double)n;
        double r = between(least, 1000.0);
        ring_add(ring, r * cos(angle), r * sin(angle));
    }
}

static inline void ring_add_spiral(struct test_ring *ring, int64_t n)
{
    double turns = between(1.0, 20.0);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = i < n / 2 ? i : n - 1 - i;
        double part = (double)at / (double)n * 2.0;
        double angle = 6.283185307179586 * turns * part;
        double r = 1000.0 * part + (i < n / 2 ? 0.0 : 500.0 / turns);
        ring_add(ring, r * cos(angle), r * sin(angle));
    }
}

static inline void ring_add_comb(struct test_ring *ring, int64_t n)
{
    int upright = pick(2);
    double height = ldexp(1.0, pick(12));
    ring_add(ring, 0.0, 0.0);
    for (int64_t i = 0; i + 1 < n; i++)
    {
        double along = (double)(i / 2);
        double across = (i + 1) / 2 % 2 ? height : 1.0;
        ring_add(ring, upright ? along : across, upright ? across : along);
    }
    ring_add(ring, upright ? (double)(n / 2) : 0.0,
             upright ? 0.0 : (double)(n / 2));
}

static inline void ring_add_stairs(struct test_ring *ring, int64_t n)
{
    double x = 0.0, y = 0.0;
    int reach = 1 + pick(30);
    for (int64_t i = 0; i < n; i++)
    {
        ring_add(ring, x, y);
        if (i % 2)
            x += pick(2 * reach + 1) - reach;
        else
            y += pick(2 * reach + 1) - reach;
    }
    ring_add(ring, x, ring->y[0]);
}

static inline void ring_add_there_back(struct test_ring *ring, int64_t n)
{
    double x[RING_CAPACITY], y[RING_CAPACITY];
    int64_t half = n / 2;
    for (int64_t i = 0; i < half; i++)
    {
        x[i] = between(0.0, 100.0);
        y[i] = pick(100);
        ring_add(ring, x[i], y[i]);
    }
    for (int64_t i = half - 2; i > 0; i--)
        ring_add(ring, x[i], y[i]);
}

static inline void ring_add_collinear(struct test_ring *ring, int64_t n)
{
    static const double slopes[][2] = {{1, 0}, {0, 1}, {1, 1}, {3, -7}};
    const double *slope = slopes[pick(4)];
    for (int64_t i = 0; i < n; i++)
    {
        double t = pick(1000);
        ring_add(ring, t * slope[0], t * slope[1]);
    }
}

static inline void ring_add_walk(struct test_ring *ring, int64_t n)
{
    double x = 0.0, y = 0.0;
    for (int64_t i = 0; i < n; i++)
    {
        ring_add(ring, x, y);
        x += between(-1.0, 1.2);
        y += between(-1.0, 1.1);
    }
}

/* Adds the squares of a lattice, so that most edges occur twice. */
static inline void ring_add_grid(struct test_ring *ring, int64_t n)
{
    int64_t side = (int64_t)sqrt((double)n / 5.0) + 1;
    for (int64_t i = 0; i < side * side; i++)
    {
        double x = (double)(i % side), y = (double)(i / side);
        ring_add(ring, x, y);
        ring_add(ring, x + 1.0, y);
        ring_add(ring, x + 1.0, y + 1.0);
        ring_add(ring, x, y + 1.0);
        ring_add(ring, x, y);
    }
}

static inline void ring_add_kind(struct test_ring *ring, enum ring_kind kind,
                                 int64_t n)
{
    double size = pick(2) ? 16.0 : 1000.0;
    int extent = 3 + pick(12);
    switch (kind)
    {
        case RING_SPIRAL:
            ring_add_spiral(ring, n);
            return;
        case RING_COMB:
            ring_add_comb(ring, n);
            return;
        case RING_STAIRS:
            ring_add_stairs(ring, n);
            return;
        case RING_THERE_BACK:
            ring_add_there_back(ring, n);
            return;
        case RING_COLLINEAR:
            ring_add_collinear(ring, n);
            return;
        case RING_WALK:
            ring_add_walk(ring, n);
            return;
        case RING_GRID:
            ring_add_grid(ring, n);
            return;
        case RING_STAR:
        case RING_SPIKE:
            ring_add_star(ring, n, between(0.0, 1000.0));
            if (kind == RING_SPIKE)
                ring_add(ring, between(-1e9, 1e9), between(-1e9, 1e9));
            return;
        default:
            break;
    }
    for (int64_t i = 0; i < n; i++)
    {
        if (kind == RING_WILD)
            ring_add(ring, between(0.0, size), between(0.0, size));
        else if (kind == RING_LATTICE)
            ring_add(ring, pick(extent), pick(extent));
        else if (kind == RING_FLAT)
            ring_add(ring, between(0.0, 1e6), unit());
        else if (kind == RING_REPEATED && i > 0 && pick(3))
            ring_add(ring, ring->x[ring->n - 1], ring->y[ring->n - 1]);
        else if (kind == RING_REPEATED)
            ring_add(ring, between(0.0, size), between(0.0, size));
        else
            ring_add(ring, size, size);
    }
}

/* Makes a ring of about n vertices, n >= 3. */
static inline void ring_make(struct test_ring *ring, enum ring_kind kind,
                             int64_t n)
{
    ring->n = 0;
    ring_add_kind(ring, kind, n);
    /* GEOS needs four vertices, including the closing one */
    while (ring->n < 3)
        ring_add(ring, ring->x[0], ring->y[0]);
    if (one_in(4)) /* the other direction */
    {
        for (int64_t i = 0, j = ring->n - 1; i < j; i++, j--)
        {
            double x = ring->x[i], y = ring->y[i];
            ring->x[i] = ring->x[j];
            ring->y[i] = ring->y[j];
            ring->x[j] = x;
            ring->y[j] = y;
        }
    }
    ring->x[ring->n] = ring->x[0];
    ring->y[ring->n++] = ring->y[0];
}

/* Replaces each coordinate v by v * scale + offset. */
static inline void ring_move(struct test_ring *ring, double scale,
                             double offset_x, double offset_y)
{
    for (int64_t i = 0; i < ring->n; i++)
    {
        ring->x[i] = ring->x[i] * scale + offset_x;
        ring->y[i] = ring->y[i] * scale + offset_y;
    }
}

#endif
