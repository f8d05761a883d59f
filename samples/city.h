/** The sample city: an island with avenues and streets, a diagonal avenue, a
 *  park, piers, tax lots with a land use, and taxi pickups. Equal seed and size
 *  give an equal city on every machine: random numbers are hashes of counters,
 *  coordinates use only + - * / and are rounded to 1/1024 foot.
 *
 *  Plan coordinates (u, v) in feet: avenues run along v, streets along u.
 *  city_to_map() bends and rotates them into New York's state plane
 *  (EPSG:2263).
 *
 *          v                avenue a = 0 .. n_avenues - 1 at u = a * 880
 *          |  | | / | |     street s = 0 .. n_streets - 1 at v = s * 260
 *          |  |-|/--|-|     block (a, s): between avenues a, a + 1 and
 *          |  |/|   | |                   streets s, s + 1
 *          +---------------- u
 */
#ifndef CITY_H
#define CITY_H

#include <stdint.h>

#define CITY_AVENUE_FT 880.0  /* distance of avenues */
#define CITY_STREET_FT 260.0  /* distance of streets */
#define CITY_AVENUE_HALF 50.0 /* half the width between lots */
#define CITY_STREET_HALF 30.0
#define CITY_DIAGONAL_HALF 50.0

enum city_use
{
    CITY_HOMES = 0,
    CITY_APARTMENTS,
    CITY_MIXED,
    CITY_OFFICES,
    CITY_INDUSTRY,
    CITY_TRANSPORT,
    CITY_PUBLIC,
    CITY_PARK,
    CITY_N_USES
};

struct city
{
    uint64_t seed;
    int n_avenues, n_streets;
    double width, height;                   /**< size of the plan in feet */
    double core_u, core_v;                  /**< the busiest point */
    int park_a0, park_a1, park_s0, park_s1; /**< avenues and streets that
                                                 bound the park */
    double diagonal_u, diagonal_v;          /**< a point on the diagonal */
    double diagonal_nu, diagonal_nv;        /**< unit normal of the diagonal */
};

#define CITY_MAX_VERTICES 1024
#define CITY_MAX_RINGS 16
#define CITY_MAX_PARTS 4

/** Polygon parts or one line. The vertices of ring r begin at ring_end[r - 1],
 * at 0 for the first ring, and end before ring_end[r]; part_end does so for the
 * rings of a part, the first of which is its shell. Rings are not closed. */
struct city_shape
{
    int n_parts, n_rings, n_vertices;
    int part_end[CITY_MAX_PARTS], ring_end[CITY_MAX_RINGS];
    double x[CITY_MAX_VERTICES], y[CITY_MAX_VERTICES];
};

struct city_lot
{
    int64_t id;
    enum city_use use;
    struct city_shape shape;
};

struct city_street
{
    int64_t id;
    char name[32];
    double busy; /**< relative number of pickups */
    struct city_shape shape;
};

struct city_pickup
{
    double x, y, fare;
    int hour;
};

/* ---- city_plan.c --------------------------------------------------------- */

/** Plans a city; at least 6 avenues and 12 streets. */
struct city city_plan(uint64_t seed, int n_avenues, int n_streets);

const char *city_use_name(enum city_use use);

/** Returns a hash of the stream and the counter i; city_random() returns it as
 * a number in [0, 1). */
uint64_t city_hash(const struct city *city, int stream, uint64_t i);
double city_random(const struct city *city, int stream, uint64_t i);

/** Returns a number of about the standard normal distribution: the sum of four
 * uniform numbers from one hash. (city_streets.c) */
double city_normal(const struct city *city, int stream, uint64_t i);

/** Returns smooth noise at (u, v), from 0 to 1, that varies over `period`
 * feet. */
double city_noise(const struct city *city, int stream, double u, double v,
                  double period);

void city_to_map(const struct city *city, double u, double v, double *x,
                 double *y);

/** Returns the distance from the nearer shore in feet; below 0 in the water. */
double city_inland(const struct city *city, double u, double v);

/** Return the u of the western and of the eastern shore at v. */
double city_west_shore(const struct city *city, double v);
double city_east_shore(const struct city *city, double v);

/** Returns 1 if all corners of block (a, s) are on land. */
int city_block_on_land(const struct city *city, int a, int s);

/** Returns the closeness of (u, v) to the core: from 0 to 1, which is at the
 * core. */
double city_core(const struct city *city, double u, double v);

/** Returns the signed distance in feet from the centre line of the diagonal
 * avenue. */
double city_diagonal(const struct city *city, double u, double v);

int city_in_park(const struct city *city, double u, double v);

/** Returns the use of a lot at (u, v), chosen by `random` in [0, 1). */
enum city_use city_use_at(const struct city *city, double u, double v,
                          int on_avenue, double random);

/** Sets *out to the polygon of the island. */
void city_land(const struct city *city, struct city_shape *out);

/** Zones cover the island: bands of about six streets, each with a west, middle
 *  and east zone. Neighbours share the vertices of their border; most borders
 *  cut through lots. */
int city_n_zones(const struct city *city);
void city_zone(const struct city *city, int zone, char name[32],
               struct city_shape *out);

/** Appends a vertex in plan coordinates to a shape. */
void city_shape_vertex(const struct city *city, struct city_shape *shape,
                       double u, double v);
void city_shape_end_ring(struct city_shape *shape);
void city_shape_end_part(struct city_shape *shape);

/* ---- city_lots.c --------------------------------------------------------- */

/** Calls take() for each lot, ascending by id. Stops when it returns nonzero,
 *  and returns that value. */
int city_lots(const struct city *city,
              int (*take)(const struct city_lot *lot, void *user), void *user);

/* ---- city_streets.c ------------------------------------------------------ */

/** Like city_lots(), for each piece of street between two corners. */
int city_streets(const struct city *city,
                 int (*take)(const struct city_street *street, void *user),
                 void *user);

/** The distribution of pickups over streets. */
struct city_traffic;

/** Returns NULL when out of memory. */
struct city_traffic *city_traffic_new(const struct city *city);
void city_traffic_free(struct city_traffic *traffic);

/** Makes pickup i, in any order of i. */
struct city_pickup city_pickup(const struct city_traffic *traffic, uint64_t i);

/* ---- city_places.c ------------------------------------------------------- */

#define CITY_NAME_SIZE 64

struct city_place
{
    int64_t id; /**< one place has one id in both layers */
    double x, y;
    char name[CITY_NAME_SIZE];
};

/** Returns row i, of n, of one of two layers (`side` is 0 or 1) of shops and
 *  other places, as two people would map them: 70 % of the rows are one place
 *  in both, about 30 m apart in each coordinate; half of their names are equal,
 *  a quarter has one or two errors, the others have a word more or less or
 *  another order. */
struct city_place city_place(const struct city_traffic *traffic,
                             const struct city *city, int side, uint64_t i,
                             uint64_t n);

#endif
