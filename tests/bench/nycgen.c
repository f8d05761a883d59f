#include "nycgen.h"

#include <stdlib.h>
#include <string.h>

/* Streams of random numbers, one for each decision. */
enum
{
    STREAM_SINGLE = 40,
    STREAM_WEIGHT = 41,
    STREAM_STEPS = 42,
    STREAM_INWARD = 43,
    STREAM_COLUMN = 44, /* 45 for the second row */
    STREAM_NOTCH = 46,
    STREAM_BEND = 50 /* 51 for the left side */
};

#define MAX_BLOCK_RING                                                         \
    64            /* vertices of the ring of a block that is one lot           \
                   */
#define UNIT 4096 /* a block's own coordinates s, t: 0 .. UNIT */

struct nyc_city nyc_city(uint64_t seed)
{
    const struct nyc_city city = {.seed = seed,
                                  .width = 130000,
                                  .height = 150000,
                                  .block_x = 900,
                                  .block_y = 264,
                                  .n_x = 130000 / 900,
                                  .n_y = 150000 / 264,
                                  .jitter_x = 60,
                                  .jitter_y = 20,
                                  .half_avenue = 40,
                                  .half_street = 30,
                                  .sigma = 30,
                                  .uniform = 429496730u};
    return city;
}

/* Returns 1 if (u, v) is in the ellipse. u, v, the centre cu, cv and the half
 * axes are in thousandths of the domain. c and s are the cosine and sine of its
 * direction, in thousandths. */
static int in_ellipse(int64_t u, int64_t v, int64_t cu, int64_t cv, int64_t a,
                      int64_t b, int64_t c, int64_t s)
{
    const int64_t du = u - cu, dv = v - cv;
    const int64_t p = du * c + dv * s, q = dv * c - du * s;
    return p * p * b * b + q * q * a * a <= a * a * b * b * 1000000;
}

static int is_land(const struct nyc_city *city, int32_t i, int32_t j)
{
    const int64_t u =
        (2 * (int64_t)i + 1) * city->block_x * 1000 / (2 * city->width);
    const int64_t v =
        (2 * (int64_t)j + 1) * city->block_y * 1000 / (2 * city->height);
    return in_ellipse(u, v, 155, 175, 130, 150, 1000, 0) ||
           in_ellipse(u, v, 480, 230, 160, 155, 1000, 0) ||
           in_ellipse(u, v, 770, 510, 212, 244, 1000, 0) ||
           in_ellipse(u, v, 430, 620, 37, 175, 880, -475) ||
           in_ellipse(u, v, 610, 875, 125, 92, 1000, 0);
}

int32_t nyc_land_blocks(const struct nyc_city *city, int32_t **out)
{
    int32_t n = 0;
    int32_t *blocks =
        malloc(((size_t)city->n_x * (size_t)city->n_y + 1) * sizeof *blocks);
    *out = blocks;
    if (blocks == NULL)
        return -1;
    for (int32_t j = 0; j < city->n_y; j++)
        for (int32_t i = 0; i < city->n_x; i++)
            if (is_land(city, i, j))
                blocks[n++] = j * city->n_x + i;
    return n;
}

void nyc_free_shapes(struct nyc_shapes *shapes)
{
    free(shapes->offset);
    free(shapes->xy);
    memset(shapes, 0, sizeof *shapes);
}

/* The interior of a block. Its corners are at (s, t) = 00, 10, 11, 01. */
struct city_block
{
    int64_t x[4], y[4];
};

static struct city_block block_of(const struct nyc_city *city, int32_t id)
{
    const int32_t i = id % city->n_x, j = id / city->n_x;
    const int32_t dx = city->half_avenue * NYC_ONE;
    const int32_t dy = city->half_street * NYC_ONE;
    struct city_block block;
    for (int k = 0; k < 4; k++)
    {
        const int right = k == 1 || k == 2, top = k >= 2;
        int32_t x, y;
        nyc_corner(city, i + right, j + top, &x, &y);
        block.x[k] = right ? x - dx : x + dx;
        block.y[k] = top ? y - dy : y + dy;
    }
    return block;
}

static int64_t between(int64_t a, int64_t b, int64_t t)
{
    return a + (b - a) * t / UNIT;
}

/* Rings under construction. */
struct rings
{
    struct nyc_shapes *out;
    int64_t capacity; /* vertices */
    const struct city_block *block;
};

static void add(struct rings *rings, int64_t s, int64_t t)
{
    const struct city_block *q = rings->block;
    int32_t *xy = rings->out->xy + 2 * rings->out->n_vertices++;
    xy[0] = (int32_t)between(between(q->x[0], q->x[1], s),
                             between(q->x[3], q->x[2], s), t);
    xy[1] = (int32_t)between(between(q->y[0], q->y[1], s),
                             between(q->y[3], q->y[2], s), t);
}

static int make_room(struct rings *rings)
{
    int32_t *xy;
    if (rings->out->n_vertices + MAX_BLOCK_RING <= rings->capacity)
        return 0;
    rings->capacity += rings->capacity / 2;
    xy = realloc(rings->out->xy, 2 * (size_t)rings->capacity * sizeof *xy);
    if (xy == NULL)
        return -1;
    rings->out->xy = xy;
    return 0;
}

/* Repeats the first vertex and ends the ring. */
static void close_ring(struct rings *rings)
{
    struct nyc_shapes *out = rings->out;
    const int64_t first = out->offset[out->n];
    memcpy(out->xy + 2 * out->n_vertices, out->xy + 2 * first,
           2 * sizeof *out->xy);
    out->n_vertices++;
    out->offset[++out->n] = (uint32_t)out->n_vertices;
}

/* Adds a lot from (s0, t0) to (s1, t1). h selects its form: a rectangle, one
 * with a vertex indented at the front, or one with one or two notches at the
 * rear. The rear is the side of t1 if rear_is_high is 1, otherwise the side of
 * t0. */
static void add_lot(struct rings *rings, int64_t s0, int64_t t0, int64_t s1,
                    int64_t t1, int rear_is_high, uint64_t h)
{
    const uint32_t form = nyc_below((uint32_t)h, 100);
    const int two = form >= 90, one = form >= 45, bent = form >= 40 && !one;
    int64_t ds =
        (s1 - s0) * (15 + (int64_t)((h >> 32) & 0xFF) * 25 / 255) / 100;
    int64_t dt =
        (t1 - t0) * (15 + (int64_t)((h >> 40) & 0xFF) * 25 / 255) / 100;
    if (ds < 1)
        ds = 1;
    if (dt < 1)
        dt = 1;
    if (rear_is_high)
    {
        add(rings, s0, t0);
        if (bent)
            add(rings, (s0 + s1) / 2, t0 + dt / 8);
        add(rings, s1, t0);
        if (one)
        {
            add(rings, s1, t1 - dt);
            add(rings, s1 - ds, t1 - dt);
            add(rings, s1 - ds, t1);
        }
        else
            add(rings, s1, t1);
        if (two)
        {
            add(rings, s0 + ds, t1);
            add(rings, s0 + ds, t1 - dt);
            add(rings, s0, t1 - dt);
        }
        else
            add(rings, s0, t1);
    }
    else
    {
        if (one)
        {
            add(rings, s0, t0 + dt);
            add(rings, s0 + ds, t0 + dt);
            add(rings, s0 + ds, t0);
        }
        else
            add(rings, s0, t0);
        if (two)
        {
            add(rings, s1 - ds, t0);
            add(rings, s1 - ds, t0 + dt);
            add(rings, s1, t0 + dt);
        }
        else
            add(rings, s1, t0);
        add(rings, s1, t1);
        if (bent)
            add(rings, (s0 + s1) / 2, t1 - dt / 8);
        add(rings, s0, t1);
    }
    close_ring(rings);
}

/* Adds a block that is one lot. Its sides are divided, and each vertex but the
 * corners is moved inwards by up to 6 %. */
static void add_block(struct rings *rings, const struct nyc_city *city,
                      int32_t id)
{
    const uint64_t h = nyc_hash(city->seed, STREAM_STEPS, (uint64_t)id);
    const int n_steps = 3 + (int)nyc_below((uint32_t)h, 13);
    for (int side = 0; side < 4; side++)
        for (int k = 0; k < n_steps; k++)
        {
            const uint64_t g =
                nyc_hash(city->seed, STREAM_INWARD,
                         (uint64_t)id * 256 + (uint64_t)(side * 16 + k));
            const int64_t in = k == 0 ? 0 : nyc_below((uint32_t)g, 246);
            const int64_t along = UNIT * (int64_t)k / n_steps;
            if (side == 0)
                add(rings, along, in);
            else if (side == 1)
                add(rings, UNIT - in, along);
            else if (side == 2)
                add(rings, UNIT - along, UNIT - in);
            else
                add(rings, in, UNIT - along);
        }
    close_ring(rings);
}

static int64_t column_width(const struct nyc_city *city, int32_t id, int row,
                            int64_t column)
{
    return 3 + nyc_below(
                   (uint32_t)nyc_hash(city->seed, STREAM_COLUMN + (uint64_t)row,
                                      (uint64_t)id * 4096 + (uint64_t)column),
                   6);
}

/* Adds n lots in two rows. Their columns have different widths. Returns 0, or
 * -1 if memory runs out. */
static int add_rows(struct rings *rings, const struct nyc_city *city,
                    int32_t id, int64_t n)
{
    for (int row = 0; row < 2; row++)
    {
        const int64_t n_columns = row == 0 ? (n + 1) / 2 : n / 2;
        const int64_t t0 = n == 1 ? 0 : row * (UNIT / 2);
        const int64_t t1 = n == 1 ? UNIT : t0 + UNIT / 2;
        int64_t total = 0, done = 0;
        for (int64_t c = 0; c < n_columns; c++)
            total += column_width(city, id, row, c);
        for (int64_t c = 0; c < n_columns; c++)
        {
            const int64_t s0 = UNIT * done / total;
            const uint64_t h =
                nyc_hash(city->seed, STREAM_NOTCH, (uint64_t)rings->out->n);
            if (make_room(rings) != 0)
                return -1;
            done += column_width(city, id, row, c);
            add_lot(rings, s0, t0, UNIT * done / total, t1, row == 0, h);
        }
    }
    return 0;
}

static int is_single(const struct nyc_city *city, int32_t id)
{
    return nyc_below(
               (uint32_t)nyc_hash(city->seed, STREAM_SINGLE, (uint64_t)id),
               100) < 3;
}

/* Returns the weight of a block. Lots are distributed in proportion to it. */
static int64_t block_weight(const struct nyc_city *city, int32_t id)
{
    return 8 +
           nyc_below(
               (uint32_t)nyc_hash(city->seed, STREAM_WEIGHT, (uint64_t)id), 9);
}

int nyc_make_lots(const struct nyc_city *city, const int32_t *blocks,
                  int32_t n_blocks, int64_t n_lots, struct nyc_shapes *out)
{
    struct rings rings = {out, n_lots * 8 + 1024, NULL};
    int64_t n_single = 0, weights = 0, done = 0, n_rest;
    int singles;
    memset(out, 0, sizeof *out);
    for (int32_t b = 0; b < n_blocks; b++)
        n_single += is_single(city, blocks[b]);
    /* With at most 4 * n_single lots, no block is a single lot. */
    singles = n_lots > 4 * n_single;
    n_rest = singles ? n_lots - n_single : n_lots;
    for (int32_t b = 0; b < n_blocks; b++)
        if (!(singles && is_single(city, blocks[b])))
            weights += block_weight(city, blocks[b]);
    out->offset = malloc(((size_t)n_lots + 1) * sizeof *out->offset);
    out->xy = malloc(2 * (size_t)rings.capacity * sizeof *out->xy);
    if (out->offset == NULL || out->xy == NULL)
    {
        nyc_free_shapes(out);
        return -1;
    }
    out->offset[0] = 0;
    for (int32_t b = 0; b < n_blocks; b++)
    {
        const struct city_block block = block_of(city, blocks[b]);
        int failed = make_room(&rings);
        rings.block = &block;
        if (!failed && singles && is_single(city, blocks[b]))
            add_block(&rings, city, blocks[b]);
        else if (!failed)
        {
            const int64_t next = done + block_weight(city, blocks[b]);
            failed =
                add_rows(&rings, city, blocks[b],
                         n_rest * next / weights - n_rest * done / weights);
            done = next;
        }
        if (failed)
        {
            nyc_free_shapes(out);
            return -1;
        }
    }
    return 0;
}

int nyc_make_streets(const struct nyc_city *city, const int32_t *blocks,
                     int32_t n_blocks, struct nyc_shapes *out)
{
    memset(out, 0, sizeof *out);
    out->offset = malloc((2 * (size_t)n_blocks + 1) * sizeof *out->offset);
    out->xy = malloc((12 * (size_t)n_blocks + 1) * sizeof *out->xy);
    if (out->offset == NULL || out->xy == NULL)
    {
        nyc_free_shapes(out);
        return -1;
    }
    out->offset[0] = 0;
    for (int32_t b = 0; b < n_blocks; b++)
    {
        const int32_t i = blocks[b] % city->n_x, j = blocks[b] / city->n_x;
        for (int left = 0; left < 2; left++)
        {
            const uint64_t h = nyc_hash(
                city->seed, STREAM_BEND + (uint64_t)left, (uint64_t)blocks[b]);
            int32_t *v = out->xy + 2 * out->n_vertices;
            nyc_corner(city, i, j, &v[0], &v[1]);
            nyc_corner(city, i + !left, j + left, &v[4], &v[5]);
            v[2] = (int32_t)(((int64_t)v[0] + v[4]) / 2) +
                   (int32_t)nyc_below((uint32_t)h, 16 * NYC_ONE) - 8 * NYC_ONE;
            v[3] = (int32_t)(((int64_t)v[1] + v[5]) / 2) +
                   (int32_t)nyc_below((uint32_t)(h >> 32), 16 * NYC_ONE) -
                   8 * NYC_ONE;
            out->n_vertices += 3;
            out->offset[++out->n] = (uint32_t)out->n_vertices;
        }
    }
    return 0;
}
