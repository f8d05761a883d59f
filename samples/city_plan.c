#include "city.h"

#include <stdio.h>
#include <string.h>

/* Streams of random numbers. */
enum
{
    STREAM_BEND_U = 1,
    STREAM_BEND_V,
    STREAM_WEST,
    STREAM_EAST,
    STREAM_USE /* first of CITY_N_USES streams, one per use */
};

#define SHORE_FT 110.0     /* minimum distance of blocks from the water */
#define BEND_FT 520.0      /* amplitude of the streets' bends */
#define BEND_PERIOD 7000.0 /* length of a bend */
#define COS_TURN 0.8746197 /* avenues point 29 degrees east of north */
#define SIN_TURN 0.4848096
#define MIDDLE_X 990000.0 /* EPSG:2263 */
#define MIDDLE_Y 197000.0

static const char *const use_names[CITY_N_USES] = {"One and two family homes",
                                                   "Apartment houses",
                                                   "Homes above shops",
                                                   "Offices and shops",
                                                   "Industry",
                                                   "Transport",
                                                   "Public buildings",
                                                   "Parks and open space"};

struct city city_plan(uint64_t seed, int n_avenues, int n_streets)
{
    struct city city;
    memset(&city, 0, sizeof city);
    city.seed = seed;
    city.n_avenues = n_avenues < 6 ? 6 : n_avenues;
    city.n_streets = n_streets < 12 ? 12 : n_streets;
    city.width = (city.n_avenues - 1) * CITY_AVENUE_FT;
    city.height = (city.n_streets - 1) * CITY_STREET_FT;
    city.core_u = 0.47 * city.width;
    city.core_v = 0.42 * city.height;
    city.park_a0 = (city.n_avenues * 52) / 100;
    city.park_a1 = city.park_a0 + (city.n_avenues + 7) / 8;
    city.park_s0 = (city.n_streets * 55) / 100;
    city.park_s1 = (city.n_streets * 80) / 100;
    /* The diagonal goes from the upper left to the lower right: (0.6, -0.8). */
    city.diagonal_u = 0.40 * city.width;
    city.diagonal_v = 0.50 * city.height;
    city.diagonal_nu = 0.8;
    city.diagonal_nv = 0.6;
    return city;
}

const char *city_use_name(enum city_use use)
{
    return use_names[use];
}

uint64_t city_hash(const struct city *city, int stream, uint64_t i)
{
    uint64_t h = city->seed * 0x9E3779B97F4A7C15u + (uint64_t)stream;
    for (int round = 0; round < 2; round++)
    {
        h ^= h >> 32;
        h *= 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
        h *= 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
        h += i;
    }
    h ^= h >> 29;
    h *= 0xBF58476D1CE4E5B9u;
    return h ^ (h >> 32);
}

double city_random(const struct city *city, int stream, uint64_t i)
{
    return (double)(city_hash(city, stream, i) >> 11) / 9007199254740992.0;
}

/* Returns the largest whole number <= x, for small |x|. */
static int64_t floor_of(double x)
{
    const int64_t n = (int64_t)x;
    return (double)n > x ? n - 1 : n;
}

static double lattice(const struct city *city, int stream, int64_t i, int64_t j)
{
    return city_random(city, stream,
                       ((uint64_t)(j + 100000) << 32) + (uint64_t)(i + 100000));
}

double city_noise(const struct city *city, int stream, double u, double v,
                  double period)
{
    const double x = u / period, y = v / period;
    const int64_t i = floor_of(x), j = floor_of(y);
    double s = x - (double)i, t = y - (double)j, low, high;
    s = s * s * (3 - 2 * s);
    t = t * t * (3 - 2 * t);
    low = lattice(city, stream, i, j) * (1 - s) +
          lattice(city, stream, i + 1, j) * s;
    high = lattice(city, stream, i, j + 1) * (1 - s) +
           lattice(city, stream, i + 1, j + 1) * s;
    return low * (1 - t) + high * t;
}

static double round_1024(double x)
{
    return (double)floor_of(x * 1024 + 0.5) / 1024;
}

void city_to_map(const struct city *city, double u, double v, double *x,
                 double *y)
{
    const double bu =
        BEND_FT * (city_noise(city, STREAM_BEND_U, u, v, BEND_PERIOD) - 0.5);
    const double bv =
        BEND_FT * (city_noise(city, STREAM_BEND_V, u, v, BEND_PERIOD) - 0.5);
    const double du = u + bu - city->width / 2;
    const double dv = v + bv - city->height / 2;
    *x = round_1024(MIDDLE_X + du * COS_TURN + dv * SIN_TURN);
    *y = round_1024(MIDDLE_Y - du * SIN_TURN + dv * COS_TURN);
}

/* The western shore follows the first avenue; the eastern shore is wavy. Both
 * converge at the southern tip. */
double city_west_shore(const struct city *city, double v)
{
    const double south = v < 3600 ? (3600 - v) / 3600 : 0;
    return -150 - 260 * city_noise(city, STREAM_WEST, 0, v, 2300) +
           0.30 * city->width * south * south;
}

double city_east_shore(const struct city *city, double v)
{
    const double south = v < 5600 ? (5600 - v) / 5600 : 0;
    return city->width + 240 -
           2700 * city_noise(city, STREAM_EAST, 0, v, 4300) -
           0.34 * city->width * south * south;
}

double city_inland(const struct city *city, double u, double v)
{
    const double west = u - city_west_shore(city, v);
    const double east = city_east_shore(city, v) - u;
    const double south = v + 150;
    const double side = west < east ? west : east;
    return side < south ? side : south;
}

int city_block_on_land(const struct city *city, int a, int s)
{
    if (a < 0 || s < 0 || a + 1 >= city->n_avenues || s + 1 >= city->n_streets)
        return 0;
    for (int i = 0; i < 4; i++)
        if (city_inland(city, (a + i % 2) * CITY_AVENUE_FT,
                        (s + i / 2) * CITY_STREET_FT) < SHORE_FT)
            return 0;
    return 1;
}

void city_shape_vertex(const struct city *city, struct city_shape *shape,
                       double u, double v)
{
    const int i = shape->n_vertices++;
    city_to_map(city, u, v, &shape->x[i], &shape->y[i]);
}

void city_shape_end_ring(struct city_shape *shape)
{
    shape->ring_end[shape->n_rings++] = shape->n_vertices;
}

void city_shape_end_part(struct city_shape *shape)
{
    shape->part_end[shape->n_parts++] = shape->n_rings;
}

void city_land(const struct city *city, struct city_shape *out)
{
    const int n = CITY_MAX_VERTICES / 2 - 1;
    const double step = (city->height + 300) / (n - 1);
    out->n_parts = out->n_rings = out->n_vertices = 0;
    for (int i = 0; i < n; i++)
        city_shape_vertex(city, out, city_east_shore(city, step * i - 150),
                          step * i - 150);
    for (int i = n - 1; i >= 0; i--)
        city_shape_vertex(city, out, city_west_shore(city, step * i - 150),
                          step * i - 150);
    city_shape_end_ring(out);
    city_shape_end_part(out);
}

#define ZONE_COLUMNS 3
#define ZONE_STREETS 6

static int n_bands(const struct city *city)
{
    return city->n_streets / ZONE_STREETS;
}

int city_n_zones(const struct city *city)
{
    return ZONE_COLUMNS * n_bands(city);
}

/* Returns the v at which a band of zones begins: at a street, or beyond the
 * shore for the outermost bands. */
static double band_edge(const struct city *city, int band)
{
    return band <= 0               ? -150
           : band >= n_bands(city) ? city->height + 150
                                   : band * ZONE_STREETS * CITY_STREET_FT;
}

/* Returns the u of the border between two columns of zones at v. All columns
 * have an equal share of the island's width. */
static double column_edge(const struct city *city, int column, double v)
{
    const double west = city_west_shore(city, v);
    const double east = city_east_shore(city, v);
    return west + (east - west) * column / ZONE_COLUMNS;
}

void city_zone(const struct city *city, int zone, char name[32],
               struct city_shape *out)
{
    static const char *const columns[ZONE_COLUMNS] = {"West", "Middle", "East"};
    const int band = zone / ZONE_COLUMNS, column = zone % ZONE_COLUMNS;
    const double v0 = band_edge(city, band), v1 = band_edge(city, band + 1);
    const int n = 16; /* pieces per side */
    snprintf(name, 32, "%s %d", columns[column], band + 1);
    out->n_parts = out->n_rings = out->n_vertices = 0;
    for (int i = 0; i <= n; i++)
    {
        const double v = v0 + (v1 - v0) * i / n;
        city_shape_vertex(city, out, column_edge(city, column + 1, v), v);
    }
    for (int i = n; i >= 0; i--)
    {
        const double v = v0 + (v1 - v0) * i / n;
        city_shape_vertex(city, out, column_edge(city, column, v), v);
    }
    city_shape_end_ring(out);
    city_shape_end_part(out);
}

double city_core(const struct city *city, double u, double v)
{
    const double du = (u - city->core_u) / 2700;
    const double dv = (v - city->core_v) / 2900;
    const double d = du * du + dv * dv;
    return 1 / (1 + d * d);
}

double city_diagonal(const struct city *city, double u, double v)
{
    return (u - city->diagonal_u) * city->diagonal_nu +
           (v - city->diagonal_v) * city->diagonal_nv;
}

int city_in_park(const struct city *city, double u, double v)
{
    return u > city->park_a0 * CITY_AVENUE_FT &&
           u < city->park_a1 * CITY_AVENUE_FT &&
           v > city->park_s0 * CITY_STREET_FT &&
           v < city->park_s1 * CITY_STREET_FT;
}

/* Returns the relative frequency of a use at (u, v), from 0 to 4. Each use has
 * its own noise, so that it is common in some neighbourhoods. */
static double neighbourhood(const struct city *city, enum city_use use,
                            double u, double v)
{
    const double n = city_noise(city, STREAM_USE + (int)use, u, v, 2600);
    return n * n * n * 4;
}

enum city_use city_use_at(const struct city *city, double u, double v,
                          int on_avenue, double random)
{
    const double core = city_core(city, u, v);
    const double inland = city_inland(city, u, v);
    const double shore = inland < 2200 ? (2200 - inland) / 2200 : 0;
    double weight[CITY_N_USES], total = 0;
    weight[CITY_HOMES] = (on_avenue ? 0.15 : 1.6) * (1 - core) * (1 - core) *
                         neighbourhood(city, CITY_HOMES, u, v);
    weight[CITY_APARTMENTS] =
        (on_avenue ? 0.5 : 1.5) * neighbourhood(city, CITY_APARTMENTS, u, v);
    weight[CITY_MIXED] = (on_avenue ? 1.9 : 0.12) * (1.1 - core);
    weight[CITY_OFFICES] = 4.5 * core * core + 0.04;
    weight[CITY_INDUSTRY] =
        2.6 * shore * shore * neighbourhood(city, CITY_INDUSTRY, u, v);
    weight[CITY_TRANSPORT] = 0.03 + 0.2 * shore * shore;
    weight[CITY_PUBLIC] = 0.07;
    weight[CITY_PARK] = 0.008;
    for (int i = 0; i < CITY_N_USES; i++)
        total += weight[i];
    random *= total;
    for (int i = 0; i < CITY_N_USES - 1; i++)
    {
        if (random < weight[i])
            return (enum city_use)i;
        random -= weight[i];
    }
    return CITY_PARK;
}
