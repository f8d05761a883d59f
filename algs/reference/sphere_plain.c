#include "sphere_plain.h"

#include "../../flatten/base/oj_array.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846264338327950288L

/* Shorter vectors than this have no direction. */
#define NOTHING 1e-17L

/* Vertices farther than this from their mean, in squared chords (2 is a
 * hemisphere), leave it open on which side of the ring what is near it lies. */
#define WIDE 1.99L

/* Wider than the sphere. */
#define EVERYWHERE 3.0L

/* --- vectors -------------------------------------------------------------- */

static struct oj_wide3 minus(struct oj_wide3 a, struct oj_wide3 b)
{
    return (struct oj_wide3){a.x - b.x, a.y - b.y, a.z - b.z};
}

static long double dot(struct oj_wide3 a, struct oj_wide3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static struct oj_wide3 cross(struct oj_wide3 a, struct oj_wide3 b)
{
    return (struct oj_wide3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z,
                             a.x * b.y - a.y * b.x};
}

static long double length(struct oj_wide3 a)
{
    return sqrtl(dot(a, a));
}

static struct oj_wide3 scaled(struct oj_wide3 a, long double by)
{
    return (struct oj_wide3){a.x * by, a.y * by, a.z * by};
}

long double oj_plain_chord(struct oj_wide3 p, struct oj_wide3 q)
{
    return length(minus(p, q));
}

static struct oj_wide3 vector_of(double longitude, double latitude)
{
    long double l = remainderl((long double)longitude, 360) * (PI / 180);
    long double b = (long double)latitude * (PI / 180);
    return (struct oj_wide3){cosl(b) * cosl(l), cosl(b) * sinl(l), sinl(b)};
}

/* Between unit vectors; good at any angle. */
static long double angle(struct oj_wide3 a, struct oj_wide3 b)
{
    return atan2l(length(cross(a, b)), dot(a, b));
}

/* The nearest point to p of the arc a -> b. */
static struct oj_wide3 nearest_of_arc(struct oj_wide3 p, struct oj_wide3 a,
                                      struct oj_wide3 b)
{
    struct oj_wide3 end = dot(p, a) > dot(p, b) ? a : b;
    struct oj_wide3 n = cross(a, minus(b, a)), foot;
    long double n_length = length(n), foot_length;
    /* near p, dot says little */
    if (oj_plain_chord(p, a) != oj_plain_chord(p, b))
        end = oj_plain_chord(p, a) < oj_plain_chord(p, b) ? a : b;
    if (!(n_length > NOTHING))
        return end;
    n = scaled(n, 1 / n_length);
    foot = minus(p, scaled(n, dot(n, p)));
    foot_length = length(foot);
    if (!(foot_length > NOTHING) || dot(cross(a, foot), n) < 0 ||
        dot(cross(foot, b), n) < 0)
        return end;
    return scaled(foot, 1 / foot_length);
}

/* --- rings ---------------------------------------------------------------- */

/* The mean direction of vertices [first, end); north where there is none. */
static struct oj_wide3 middle_of(const struct oj_wide3 *at, int64_t first,
                                 int64_t end)
{
    struct oj_wide3 sum = {0, 0, 0};
    for (int64_t v = first; v < end; v++)
    {
        sum.x += at[v].x;
        sum.y += at[v].y;
        sum.z += at[v].z;
    }
    if (!(length(sum) > 1e-9L * (long double)(end - first)))
        return (struct oj_wide3){0, 0, 1};
    return scaled(sum, 1 / length(sum));
}

/* The angle through which ring turns around the axis of p, in full turns. */
static long turns_around(const struct oj_wide3 *at, int64_t first, int64_t last,
                         struct oj_wide3 p)
{
    long double sum = 0;
    for (int64_t v = first; v < last; v++)
    {
        struct oj_wide3 a = at[v], b = at[v + 1];
        sum += atan2l(dot(p, cross(a, b)), dot(a, b) - dot(p, a) * dot(p, b));
    }
    return lroundl(sum / (2 * PI));
}

/* 1 when the arcs p -> q and a -> b cross. */
static int arcs_cross(struct oj_wide3 p, struct oj_wide3 q, struct oj_wide3 a,
                      struct oj_wide3 b)
{
    struct oj_wide3 m = cross(p, q), n = cross(a, minus(b, a)), at;
    if ((dot(m, a) >= 0) == (dot(m, b) >= 0))
        return 0;
    at = cross(m, n);
    if (dot(at, a) + dot(at, b) < 0)
        at = scaled(at, -1);
    return dot(cross(p, at), m) > 0 && dot(cross(at, q), m) > 0;
}

static int crossings(const struct oj_wide3 *at, int64_t first, int64_t last,
                     struct oj_wide3 p, struct oj_wide3 q)
{
    int n = 0;
    for (int64_t v = first; v < last; v++)
        n += arcs_cross(p, q, at[v], at[v + 1]);
    return n;
}

/* A point some degrees from p. */
static struct oj_wide3 beside(struct oj_wide3 p)
{
    struct oj_wide3 axis = {fabsl(p.x) < 0.5L, 0, 0}, w;
    axis.y = axis.x == 0;
    w = cross(p, axis);
    w = scaled(w, 0.1L / length(w));
    w = (struct oj_wide3){p.x + w.x, p.y + w.y, p.z + w.z};
    return scaled(w, 1 / length(w));
}

static int ring_holds(const struct oj_plain_side *side, int64_t ring,
                      struct oj_wide3 p)
{
    int64_t first = side->flat->vertex_offset[ring];
    int64_t last = side->flat->vertex_offset[ring + 1] - 1;
    struct oj_wide3 middle = middle_of(side->at, first, last), opposite, by;
    long double farthest = 0;
    for (int64_t v = first; v < last; v++)
        farthest = fmaxl(farthest, oj_plain_chord(side->at[v], middle));
    /* in a hemisphere: it turns around p, or around the point opposite to p */
    if (farthest * farthest < WIDE)
        return oj_plain_chord(p, middle) <= farthest &&
               turns_around(side->at, first, last, p) % 2 != 0;
    opposite = scaled(middle, -1);
    if (oj_plain_chord(p, middle) > 1e-6L)
        return crossings(side->at, first, last, p, opposite) % 2 != 0;
    /* every way there is as short: first a step aside */
    by = beside(middle);
    return (crossings(side->at, first, last, p, by) +
            crossings(side->at, first, last, by, opposite)) %
               2 !=
           0;
}

static int part_holds(const struct oj_plain_side *side, int64_t part,
                      struct oj_wide3 p)
{
    int odd = 0;
    if (side->flat->part_kind[part] != OJ_PART_POLYGON)
        return 0;
    for (int64_t ring = side->flat->ring_offset[part];
         ring < side->flat->ring_offset[part + 1]; ring++)
        odd ^= ring_holds(side, ring, p);
    return odd;
}

/* --- features ------------------------------------------------------------- */

double oj_plain_metres(const struct oj_plain_side *side, int64_t feature,
                       int to_interior, struct oj_wide3 p)
{
    const struct oj_flat *flat = side->flat;
    struct oj_wide3 best = scaled(p, -1);
    if (oj_flat_is_points(flat))
        return (double)(angle(p, side->at[feature]) * OJ_PLAIN_RADIUS);
    for (int64_t part = flat->part_offset[feature];
         part < flat->part_offset[feature + 1]; part++)
    {
        if (to_interior && part_holds(side, part, p))
            return 0.0;
        for (int64_t r = flat->ring_offset[part];
             r < flat->ring_offset[part + 1]; r++)
        {
            int64_t v = flat->vertex_offset[r];
            int64_t last = flat->vertex_offset[r + 1] - 1;
            do
            {
                int64_t w = v < last ? v + 1 : v;
                struct oj_wide3 here =
                    nearest_of_arc(p, side->at[v], side->at[w]);
                if (oj_plain_chord(p, here) < oj_plain_chord(p, best))
                    best = here;
            } while (++v < last);
        }
    }
    return (double)(angle(p, best) * OJ_PLAIN_RADIUS);
}

/* Around all vertices; wider by the longest edge, which no edge leaves them
 * by.  A polygon whose vertices are within a hemisphere does not leave it, and
 * others may be anywhere. */
static struct oj_ball ball_of(const struct oj_plain_side *side, int64_t feature)
{
    const struct oj_flat *flat = side->flat;
    struct oj_ball ball = {{0, 0, 0}, -1};
    long double longest = 0;
    int64_t first, end;
    oj_flat_vertices(flat, feature, &first, &end);
    for (int64_t v = first; v < end; v++)
    {
        if (!(fabs(flat->y[v]) <= 90.0))
            return ball;
    }
    if (first == end)
        return ball;
    ball.centre = middle_of(side->at, first, end);
    for (int64_t v = first; v < end; v++)
        ball.radius =
            fmaxl(ball.radius, oj_plain_chord(side->at[v], ball.centre));
    if (oj_flat_is_points(flat))
        return ball;
    if ((flat->part_kinds & OJ_PART_POLYGON) != 0 &&
        ball.radius * ball.radius >= WIDE)
        ball.radius = EVERYWHERE;
    for (int64_t r = flat->ring_offset[flat->part_offset[feature]];
         r < flat->ring_offset[flat->part_offset[feature + 1]]; r++)
    {
        for (int64_t v = flat->vertex_offset[r];
             v + 1 < flat->vertex_offset[r + 1]; v++)
            longest =
                fmaxl(longest, oj_plain_chord(side->at[v], side->at[v + 1]));
    }
    ball.radius += longest;
    return ball;
}

oj_status oj_plain_side_make(struct oj_plain_side *side,
                             const struct oj_flat *flat, struct oj_error *err)
{
    memset(side, 0, sizeof *side);
    side->flat = flat;
    side->at = oj_malloc(flat->n_vertices, sizeof *side->at);
    side->ball = oj_malloc(flat->n_features, sizeof *side->ball);
    if (side->at == NULL || side->ball == NULL)
    {
        oj_plain_side_free(side);
        return oj_fail_nomem(err, flat->n_vertices, sizeof *side->at);
    }
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        int64_t first, end;
        oj_flat_vertices(flat, i, &first, &end);
        for (int64_t v = first; v < end; v++)
            side->at[v] = vector_of(flat->x[v], flat->y[v]);
        side->ball[i] = ball_of(side, i);
    }
    return OJ_OK;
}

void oj_plain_side_free(struct oj_plain_side *side)
{
    oj_free(side->at);
    oj_free(side->ball);
    memset(side, 0, sizeof *side);
}
