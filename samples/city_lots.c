#include "city.h"

#include <string.h>

enum
{
    STREAM_LOT = 100,
    STREAM_BLOCK,
    STREAM_PIER,
    STREAM_LAKE,
    STREAM_FRONT
};

#define END_DEPTH 95.0 /* lots at the ends of a block face the avenue */
#define MIN_AREA                                                               \
    220.0 /* smaller pieces cut off by the diagonal become street */
#define MAX_CORNERS 40

/* A ring in plan coordinates, not closed. */
struct plan_ring
{
    int n;
    double u[MAX_CORNERS], v[MAX_CORNERS];
};

/* State while the lots of a block are made. */
struct builder
{
    const struct city *city;
    int (*take)(const struct city_lot *lot, void *user);
    void *user;
    int status;        /* result of take() */
    uint64_t block;    /* number of the block: a + s * n_avenues */
    int n_in_block;    /* number of lots made in the block so far */
    uint64_t n_random; /* random numbers used for the block */
    int big;           /* 1: the block has large lots */
    struct city_lot lot;
};

static double next_random(struct builder *b)
{
    return city_random(b->city, STREAM_LOT, (b->block << 16) + b->n_random++);
}

static void begin_lot(struct builder *b)
{
    b->lot.shape.n_parts = b->lot.shape.n_rings = b->lot.shape.n_vertices = 0;
}

static void end_lot(struct builder *b, enum city_use use)
{
    b->lot.id = (int64_t)(b->block * 1000) + ++b->n_in_block;
    b->lot.use = use;
    if (b->status == 0)
        b->status = b->take(&b->lot, b->user);
}

static void add_ring(struct builder *b, const struct plan_ring *ring)
{
    for (int i = 0; i < ring->n; i++)
        city_shape_vertex(b->city, &b->lot.shape, ring->u[i], ring->v[i]);
    city_shape_end_ring(&b->lot.shape);
}

static void add_corner(struct plan_ring *ring, double u, double v)
{
    ring->u[ring->n] = u;
    ring->v[ring->n] = v;
    ring->n++;
}

static double area_of(const struct plan_ring *ring)
{
    double twice = 0;
    for (int i = 0; i < ring->n; i++)
    {
        const int j = i + 1 < ring->n ? i + 1 : 0;
        twice += ring->u[i] * ring->v[j] - ring->u[j] * ring->v[i];
    }
    return twice / 2;
}

/* Clips a convex ring to the part at least CITY_DIAGONAL_HALF from the centre
 * line of the diagonal, on the side given by sign. */
static struct plan_ring clip_beside_diagonal(const struct city *city,
                                             const struct plan_ring *ring,
                                             double sign)
{
    struct plan_ring out = {0, {0}, {0}};
    for (int i = 0; i < ring->n; i++)
    {
        const int j = i + 1 < ring->n ? i + 1 : 0;
        const double di = sign * city_diagonal(city, ring->u[i], ring->v[i]) -
                          CITY_DIAGONAL_HALF;
        const double dj = sign * city_diagonal(city, ring->u[j], ring->v[j]) -
                          CITY_DIAGONAL_HALF;
        if (di >= 0)
            add_corner(&out, ring->u[i], ring->v[i]);
        if ((di >= 0) != (dj >= 0))
        {
            const double t = di / (di - dj);
            add_corner(&out, ring->u[i] + t * (ring->u[j] - ring->u[i]),
                       ring->v[i] + t * (ring->v[j] - ring->v[i]));
        }
    }
    return out;
}

/* Returns 1 if the lot intersects the diagonal avenue. */
static int meets_diagonal(const struct city *city, const struct plan_ring *ring)
{
    int n_plus = 0, n_minus = 0;
    for (int i = 0; i < ring->n; i++)
    {
        const double d = city_diagonal(city, ring->u[i], ring->v[i]);
        n_plus += d >= CITY_DIAGONAL_HALF;
        n_minus += d <= -CITY_DIAGONAL_HALF;
    }
    return n_plus != ring->n && n_minus != ring->n;
}

/* Adds a rectangular lot. front is the side at the street: 0 for none, 1 for
 * the side of low v, 2 for that of high v. This side may have a bay, and a
 * large lot a courtyard. */
static void add_lot(struct builder *b, double u0, double v0, double u1,
                    double v1, int front, int on_avenue)
{
    const double cu = (u0 + u1) / 2, cv = (v0 + v1) / 2;
    const double w = u1 - u0, h = v1 - v0;
    const enum city_use use =
        city_use_at(b->city, cu, cv, on_avenue, next_random(b));
    const double form = next_random(b), size = next_random(b);
    struct plan_ring shell = {0, {0}, {0}};
    add_corner(&shell, u0, v0);
    if (front == 1 && form < 0.2 && w > 12)
    {
        add_corner(&shell, u0 + 0.3 * w, v0);
        add_corner(&shell, u0 + 0.35 * w, v0 + 4);
        add_corner(&shell, u0 + 0.65 * w, v0 + 4);
        add_corner(&shell, u0 + 0.7 * w, v0);
    }
    add_corner(&shell, u1, v0);
    add_corner(&shell, u1, v1);
    if (front == 2 && form < 0.2 && w > 12)
    {
        add_corner(&shell, u0 + 0.7 * w, v1);
        add_corner(&shell, u0 + 0.65 * w, v1 - 4);
        add_corner(&shell, u0 + 0.35 * w, v1 - 4);
        add_corner(&shell, u0 + 0.3 * w, v1);
    }
    add_corner(&shell, u0, v1);
    if (meets_diagonal(b->city, &shell))
    {
        for (int side = 0; side < 2; side++)
        {
            const struct plan_ring piece =
                clip_beside_diagonal(b->city, &shell, side ? -1.0 : 1.0);
            if (piece.n < 3 || area_of(&piece) < MIN_AREA)
                continue;
            begin_lot(b);
            add_ring(b, &piece);
            city_shape_end_part(&b->lot.shape);
            end_lot(b, use);
        }
        return;
    }
    begin_lot(b);
    add_ring(b, &shell);
    if (w > 60 && h > 60 && form > 0.5)
    {
        const double m = 0.28 + 0.1 * size; /* wings around a courtyard */
        struct plan_ring yard = {0, {0}, {0}};
        add_corner(&yard, u0 + m * w, v0 + m * h);
        add_corner(&yard, u0 + m * w, v1 - m * h);
        add_corner(&yard, u1 - m * w, v1 - m * h);
        add_corner(&yard, u1 - m * w, v0 + m * h);
        add_ring(b, &yard);
    }
    city_shape_end_part(&b->lot.shape);
    /* Some lots have a second part, a short distance beside the first. */
    if (front != 0 && form > 0.2 && form < 0.212 && w > 20)
    {
        const double s = front == 1 ? v1 - 30 : v0;
        struct plan_ring shed = {0, {0}, {0}};
        add_corner(&shed, u0 - 0.8 * w, s + 4);
        add_corner(&shed, u0 - 0.3 * w, s + 4);
        add_corner(&shed, u0 - 0.3 * w, s + 26);
        add_corner(&shed, u0 - 0.8 * w, s + 26);
        add_ring(b, &shed);
        city_shape_end_part(&b->lot.shape);
    }
    end_lot(b, use);
}

/* Adds lots side by side along a street, from u0 to u1. */
static void add_row(struct builder *b, double u0, double u1, double v0,
                    double v1, int front)
{
    while (u1 - u0 > 0.5)
    {
        const double r = next_random(b);
        double w = b->big ? 60 + 150 * r : 18 + 22 * r * r + 10 * r;
        if (next_random(b) < 0.006)
            w = 1; /* a gore: a strip that surveyors left between two lots */
        if (u1 - u0 < 1.6 * w || u1 - u0 - w < 12)
            w = u1 - u0;
        add_lot(b, u0, v0, u0 + w, v1, front, 0);
        u0 += w;
    }
}

/* Adds lots along an avenue, from v0 to v1. */
static void add_column(struct builder *b, double u0, double u1, double v0,
                       double v1)
{
    while (v1 - v0 > 0.5)
    {
        double h =
            b->big ? 90 + 120 * next_random(b) : 20 + 20 * next_random(b);
        if (v1 - v0 < 1.6 * h)
            h = v1 - v0;
        add_lot(b, u0, v0, u1, v0 + h, 0, 1);
        v0 += h;
    }
}

static void add_block(struct builder *b, int a, int s)
{
    const double u0 = a * CITY_AVENUE_FT + CITY_AVENUE_HALF;
    const double u1 = (a + 1) * CITY_AVENUE_FT - CITY_AVENUE_HALF;
    const double v0 = s * CITY_STREET_FT + CITY_STREET_HALF;
    const double v1 = (s + 1) * CITY_STREET_FT - CITY_STREET_HALF;
    const double middle = v0 + (v1 - v0) * (0.47 + 0.06 * next_random(b));
    const double core = city_core(b->city, (u0 + u1) / 2, (v0 + v1) / 2);
    const double kind = next_random(b);
    b->big = next_random(b) < 0.05 + 0.75 * core * core;
    if (kind < 0.02) /* a square with trees */
    {
        struct plan_ring square = {0, {0}, {0}};
        add_corner(&square, u0, v0);
        add_corner(&square, u1, v0);
        add_corner(&square, u1, v1);
        add_corner(&square, u0, v1);
        if (!meets_diagonal(b->city, &square))
        {
            begin_lot(b);
            add_ring(b, &square);
            city_shape_end_part(&b->lot.shape);
            end_lot(b, CITY_PARK);
            return;
        }
    }
    add_column(b, u0, u0 + END_DEPTH, v0, v1);
    add_row(b, u0 + END_DEPTH, u1 - END_DEPTH, v0, middle, 1);
    add_row(b, u0 + END_DEPTH, u1 - END_DEPTH, middle, v1, 2);
    add_column(b, u1 - END_DEPTH, u1, v0, v1);
}

/* Adds land between the last street of a row and the water: from u0 to u1 at
 * its lower side, from u2 to u3 at its upper side. */
static void add_waterfront(struct builder *b, int s, double u0, double u1,
                           double u2, double u3)
{
    const double v0 = s * CITY_STREET_FT, v1 = v0 + CITY_STREET_FT;
    const double industry = city_noise(b->city, STREAM_FRONT, u0, v0, 3100);
    struct plan_ring ring = {0, {0}, {0}};
    if (u1 - u0 < 40 || u3 - u2 < 40)
        return;
    add_corner(&ring, u0, v0);
    add_corner(&ring, u1, v0);
    add_corner(&ring, u3, v1);
    add_corner(&ring, u2, v1);
    begin_lot(b);
    add_ring(b, &ring);
    city_shape_end_part(&b->lot.shape);
    end_lot(b, industry > 0.56 ? CITY_INDUSTRY : CITY_PARK);
}

/* Adds the land at both ends of a row of blocks, which goes from avenue first_a
 * to last_a. */
static void add_waterfronts(struct builder *b, int s, int first_a, int last_a)
{
    const struct city *city = b->city;
    const double v0 = s * CITY_STREET_FT, v1 = v0 + CITY_STREET_FT;
    const double west = first_a * CITY_AVENUE_FT - CITY_AVENUE_HALF;
    const double east = (last_a + 1) * CITY_AVENUE_FT + CITY_AVENUE_HALF;
    add_waterfront(b, s, city_west_shore(city, v0) + 25, west,
                   city_west_shore(city, v1) + 25, west);
    add_waterfront(b, s, east, city_east_shore(city, v0) - 25, east,
                   city_east_shore(city, v1) - 25);
}

/* Adds the park: one lot with two lakes as holes. */
static void add_park(struct builder *b)
{
    const struct city *city = b->city;
    const double u0 = city->park_a0 * CITY_AVENUE_FT + CITY_AVENUE_HALF;
    const double u1 = city->park_a1 * CITY_AVENUE_FT - CITY_AVENUE_HALF;
    const double v0 = city->park_s0 * CITY_STREET_FT + CITY_STREET_HALF;
    const double v1 = city->park_s1 * CITY_STREET_FT - CITY_STREET_HALF;
    /* A circle of 24 directions without trigonometry, as rounded constants of
     * length 1: the octagon's corners and points between them. */
    static const double direction[24][2] = {
        {1, 0},       {.966, .259},   {.866, .5},   {.707, .707},
        {.5, .866},   {.259, .966},   {0, 1},       {-.259, .966},
        {-.5, .866},  {-.707, .707},  {-.866, .5},  {-.966, .259},
        {-1, 0},      {-.966, -.259}, {-.866, -.5}, {-.707, -.707},
        {-.5, -.866}, {-.259, -.966}, {0, -1},      {.259, -.966},
        {.5, -.866},  {.707, -.707},  {.866, -.5},  {.966, -.259}};
    begin_lot(b);
    for (int side = 0; side < 4; side++)
        for (int k = 0; k < 12;
             k++) /* 12 vertices per side, since streets bend */
        {
            const double t = k / 12.0;
            const double u = side == 0   ? u0 + t * (u1 - u0)
                             : side == 1 ? u1
                             : side == 2 ? u1 - t * (u1 - u0)
                                         : u0;
            const double v = side == 0   ? v0
                             : side == 1 ? v0 + t * (v1 - v0)
                             : side == 2 ? v1
                                         : v1 - t * (v1 - v0);
            city_shape_vertex(city, &b->lot.shape, u, v);
        }
    city_shape_end_ring(&b->lot.shape);
    for (int lake = 0; lake < 2; lake++)
    {
        const double cu = u0 + (u1 - u0) * (lake ? 0.42 : 0.55);
        const double cv = v0 + (v1 - v0) * (lake ? 0.27 : 0.71);
        const double r = (u1 - u0) * (lake ? 0.16 : 0.27);
        for (int k = 0; k < 24; k++)
        {
            const double *d = direction[23 - k];
            const double wave =
                0.7 + 0.5 * city_random(city, STREAM_LAKE,
                                        (uint64_t)(k / 2 + 40 * lake));
            city_shape_vertex(city, &b->lot.shape, cu + d[0] * r * wave,
                              cv + d[1] * r * wave * 0.8);
        }
        city_shape_end_ring(&b->lot.shape);
    }
    city_shape_end_part(&b->lot.shape);
    end_lot(b, CITY_PARK);
}

/* Adds a pier at the western shore for 45 % of the streets. It extends 250 to
 * 580 feet into the water. */
static void add_pier(struct builder *b, int s)
{
    const double v = s * CITY_STREET_FT;
    const double half =
        18 + 25 * city_random(b->city, STREAM_PIER, (uint64_t)s + 1000);
    const double length =
        250 + 330 * city_random(b->city, STREAM_PIER, (uint64_t)s + 2000);
    const double shore = city_west_shore(b->city, v);
    struct plan_ring pier = {0, {0}, {0}};
    if (city_random(b->city, STREAM_PIER, (uint64_t)s) > 0.45)
        return;
    add_corner(&pier, shore - length, v - half);
    add_corner(&pier, shore + 15, v - half);
    add_corner(&pier, shore + 15, v + half);
    add_corner(&pier, shore - length, v + half);
    begin_lot(b);
    add_ring(b, &pier);
    city_shape_end_part(&b->lot.shape);
    end_lot(b, CITY_TRANSPORT);
}

int city_lots(const struct city *city,
              int (*take)(const struct city_lot *lot, void *user), void *user)
{
    struct builder b;
    memset(&b, 0, sizeof b);
    b.city = city;
    b.take = take;
    b.user = user;
    for (int s = 0; s + 1 < city->n_streets; s++)
    {
        int first_a = -1, last_a = -1;
        for (int a = 0; a + 1 < city->n_avenues; a++)
        {
            const int in_park = a >= city->park_a0 && a < city->park_a1 &&
                                s >= city->park_s0 && s < city->park_s1;
            b.block = 1 + (uint64_t)a + (uint64_t)s * (uint64_t)city->n_avenues;
            b.n_in_block = 0;
            b.n_random = 0;
            if (in_park && a == city->park_a0 && s == city->park_s0)
                add_park(&b);
            else if (!in_park && city_block_on_land(city, a, s))
            {
                add_block(&b, a, s);
                first_a = first_a < 0 ? a : first_a;
                last_a = a;
            }
        }
        b.block = (uint64_t)(s + 1) * (uint64_t)city->n_avenues;
        b.n_in_block = 900; /* waterfront lots are numbered from 901 on */
        if (first_a >= 0)
            add_waterfronts(&b, s, first_a, last_a);
        if (first_a >= 0 && s > 2)
            add_pier(&b, s);
    }
    return b.status;
}
