#include "city.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
    STREAM_BUSY = 200,
    STREAM_KIND,
    STREAM_WHICH,
    STREAM_ALONG,
    STREAM_ACROSS,
    STREAM_NOISE_U,
    STREAM_NOISE_V,
    STREAM_HOUR,
    STREAM_FARE,
    STREAM_USE_THERE
};

#define LOST 0.004     /* share of pickups with a random position */
#define AT_CORNER 0.3  /* share of pickups at a corner */
#define GPS_FT 11.0    /* deviation of positions in open streets */
#define CANYON_FT 20.0 /* added between high buildings */

/* A piece of street from corner to corner, in plan coordinates. */
struct piece
{
    double u0, v0, u1, v1, half, busy;
    char name[32];
};

static const char *ordinal(int n)
{
    if (n % 100 >= 11 && n % 100 <= 13)
        return "th";
    return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

/* Returns 1 if the piece is a street: it lies beside existing blocks and does
 * not cross the park; the diagonal also stays away from the shore. kind, i and
 * j are those of each_piece(). */
static int is_street(const struct city *city, const struct piece *p, int kind,
                     int i, int j)
{
    const double u = (p->u0 + p->u1) / 2, v = (p->v0 + p->v1) / 2;
    if (city_in_park(city, u, v))
        return 0;
    if (kind == 0)
        return city_block_on_land(city, i - 1, j) ||
               city_block_on_land(city, i, j);
    if (kind == 1)
        return city_block_on_land(city, j, i - 1) ||
               city_block_on_land(city, j, i);
    return city_inland(city, p->u0, p->v0) > 200 &&
           city_inland(city, p->u1, p->v1) > 200;
}

static double busy_at(const struct city *city, double u, double v)
{
    const double core = city_core(city, u, v);
    const double noise = city_noise(city, STREAM_BUSY, u, v, 2100);
    return 0.12 + 2.4 * core + 1.5 * noise * noise * noise;
}

/* Calls take() for each piece. */
static int each_piece(const struct city *city,
                      int (*take)(const struct piece *piece, void *user),
                      void *user)
{
    int status = 0;
    struct piece p;
    for (int kind = 0; kind < 3; kind++) /* avenues, streets, the diagonal */
    {
        const int n_i = kind == 1 ? city->n_streets : city->n_avenues;
        const int n_j = kind == 1 ? city->n_avenues : city->n_streets;
        const int n_lines = kind == 2 ? 1 : n_i;
        for (int i = 0; i < n_lines; i++)
            for (int j = 0; j + 1 < n_j && status == 0; j++)
            {
                memset(&p, 0, sizeof p);
                if (kind == 0)
                {
                    p.u0 = p.u1 = i * CITY_AVENUE_FT;
                    p.v0 = j * CITY_STREET_FT;
                    p.v1 = p.v0 + CITY_STREET_FT;
                    p.half = CITY_AVENUE_HALF;
                    snprintf(p.name, sizeof p.name, "%d%s Avenue", i + 1,
                             ordinal(i + 1));
                }
                else if (kind == 1)
                {
                    p.v0 = p.v1 = i * CITY_STREET_FT;
                    p.u0 = j * CITY_AVENUE_FT;
                    p.u1 = p.u0 + CITY_AVENUE_FT;
                    p.half = CITY_STREET_HALF;
                    snprintf(p.name, sizeof p.name, "%d%s Street", i + 1,
                             ordinal(i + 1));
                }
                else
                {
                    const double slope = city->diagonal_nv / city->diagonal_nu;
                    p.v0 = j * CITY_STREET_FT;
                    p.v1 = p.v0 + CITY_STREET_FT;
                    p.u0 = city->diagonal_u - (p.v0 - city->diagonal_v) * slope;
                    p.u1 = city->diagonal_u - (p.v1 - city->diagonal_v) * slope;
                    p.half = CITY_DIAGONAL_HALF;
                    snprintf(p.name, sizeof p.name, "Ferry Road");
                }
                p.busy = (kind == 1 ? 1.0 : 1.35) *
                         busy_at(city, (p.u0 + p.u1) / 2, (p.v0 + p.v1) / 2);
                if (is_street(city, &p, kind, i, j))
                    status = take(&p, user);
            }
    }
    return status;
}

struct street_taker
{
    const struct city *city;
    int (*take)(const struct city_street *street, void *user);
    void *user;
    int64_t n;
};

static int take_street(const struct piece *p, void *user)
{
    struct street_taker *taker = user;
    struct city_street street;
    memset(&street, 0, sizeof street);
    street.id = ++taker->n;
    street.busy = p->busy;
    memcpy(street.name, p->name, sizeof street.name);
    for (int i = 0; i <= 4; i++)
        city_shape_vertex(taker->city, &street.shape,
                          p->u0 + (p->u1 - p->u0) * i / 4,
                          p->v0 + (p->v1 - p->v0) * i / 4);
    city_shape_end_ring(&street.shape);
    city_shape_end_part(&street.shape);
    return taker->take(&street, taker->user);
}

int city_streets(const struct city *city,
                 int (*take)(const struct city_street *street, void *user),
                 void *user)
{
    struct street_taker taker = {city, take, user, 0};
    return each_piece(city, take_street, &taker);
}

struct city_traffic
{
    struct city city;
    int64_t n, capacity;
    struct piece *pieces;
    /* [n] cumulative sum of busy * length, up to and including each piece */
    double *below;
};

static int take_piece(const struct piece *p, void *user)
{
    struct city_traffic *traffic = user;
    const double length = (p->u1 - p->u0) + (p->v1 - p->v0);
    const double weight = p->busy * (length < 0 ? -length : length);
    if (traffic->n == traffic->capacity)
    {
        const int64_t n = 2 * traffic->capacity + 1024;
        struct piece *pieces =
            realloc(traffic->pieces, (size_t)n * sizeof *pieces);
        double *below;
        if (pieces == NULL)
            return 1;
        traffic->pieces = pieces;
        below = realloc(traffic->below, (size_t)n * sizeof *below);
        if (below == NULL)
            return 1;
        traffic->below = below;
        traffic->capacity = n;
    }
    traffic->pieces[traffic->n] = *p;
    traffic->below[traffic->n] =
        weight + (traffic->n > 0 ? traffic->below[traffic->n - 1] : 0);
    traffic->n++;
    return 0;
}

struct city_traffic *city_traffic_new(const struct city *city)
{
    struct city_traffic *traffic = calloc(1, sizeof *traffic);
    if (traffic == NULL)
        return NULL;
    traffic->city = *city;
    if (each_piece(city, take_piece, traffic) != 0 || traffic->n == 0)
    {
        city_traffic_free(traffic);
        return NULL;
    }
    return traffic;
}

void city_traffic_free(struct city_traffic *traffic)
{
    if (traffic == NULL)
        return;
    free(traffic->pieces);
    free(traffic->below);
    free(traffic);
}

static const struct piece *choose_piece(const struct city_traffic *traffic,
                                        double random)
{
    const double place = random * traffic->below[traffic->n - 1];
    int64_t low = 0, high = traffic->n - 1;
    while (low < high)
    {
        const int64_t middle = low + (high - low) / 2;
        if (traffic->below[middle] > place)
            high = middle;
        else
            low = middle + 1;
    }
    return &traffic->pieces[low];
}

double city_normal(const struct city *city, int stream, uint64_t i)
{
    const uint64_t h = city_hash(city, stream, i);
    const double sum = (double)(h & 0xFFFF) + (double)((h >> 16) & 0xFFFF) +
                       (double)((h >> 32) & 0xFFFF) + (double)(h >> 48);
    return (sum / 65536 - 2) * 1.7320508;
}

/* Returns the hour of a pickup. It is drawn with weights for each hour: those
 * of offices, of homes or of nightlife, depending on the use. */
static int choose_hour(enum city_use use, double random)
{
    static const unsigned char leave[3][24] = {
        {2,  1,  1,  1,  1,  2,  4,  7,  9,  9, 8, 9,
         12, 11, 10, 11, 14, 20, 24, 20, 14, 9, 6, 4},
        {7, 5, 3, 2, 2,  5,  12, 21, 24, 17, 11, 9,
         9, 9, 9, 9, 10, 11, 13, 15, 14, 12, 10, 9},
        {17, 14, 10, 7,  4,  2,  3,  5,  7,  7,  7,  9,
         11, 11, 10, 10, 11, 13, 15, 17, 19, 21, 22, 20}};
    const int row = use == CITY_HOMES || use == CITY_APARTMENTS ? 1
                    : use == CITY_MIXED || use == CITY_PARK     ? 2
                                                                : 0;
    double total = 0;
    for (int h = 0; h < 24; h++)
        total += leave[row][h];
    random *= total;
    for (int h = 0; h < 23; h++)
    {
        if (random < leave[row][h])
            return h;
        random -= leave[row][h];
    }
    return 23;
}

struct city_pickup city_pickup(const struct city_traffic *traffic, uint64_t i)
{
    const struct city *city = &traffic->city;
    const double fare = city_random(city, STREAM_FARE, i);
    struct city_pickup out;
    double u, v;
    if (city_random(city, STREAM_KIND, i) < LOST)
    {
        u = city->width * (1.2 * city_random(city, STREAM_ALONG, i) - 0.1);
        v = city->height * (1.1 * city_random(city, STREAM_ACROSS, i) - 0.05);
    }
    else
    {
        const struct piece *p =
            choose_piece(traffic, city_random(city, STREAM_WHICH, i));
        const double length =
            (p->u1 - p->u0 < 0 ? p->u0 - p->u1 : p->u1 - p->u0) +
            (p->v1 - p->v0);
        const double r = city_random(city, STREAM_ALONG, i);
        const double kerb = city_random(city, STREAM_ACROSS, i) * 2 - 1;
        double t = (r - AT_CORNER) / (1 - AT_CORNER), noise, across;
        if (r < AT_CORNER) /* within 90 ft of an end, denser towards it */
        {
            const double s = r / AT_CORNER * 2 - 1;
            t = s < 0 ? s * s * 90 / length : 1 - s * s * 90 / length;
        }
        across = p->half * 0.62 * (kerb < 0 ? -1 : 1) * (1 - 0.3 * kerb * kerb);
        u = p->u0 + (p->u1 - p->u0) * t;
        v = p->v0 + (p->v1 - p->v0) * t;
        noise = GPS_FT + CANYON_FT * city_core(city, u, v);
        if (p->u0 == p->u1)
            u += across;
        else
            v += across;
        u += noise * city_normal(city, STREAM_NOISE_U, i);
        v += noise * city_normal(city, STREAM_NOISE_V, i);
    }
    city_to_map(city, u, v, &out.x, &out.y);
    out.hour = choose_hour(
        city_use_at(city, u, v, 0, city_random(city, STREAM_USE_THERE, i)),
        city_random(city, STREAM_HOUR, i));
    /* at least 3 dollars, with a long tail, in whole cents */
    out.fare = (double)(int64_t)(300 + 650 / (0.11 + fare) - 500) / 100;
    return out;
}
