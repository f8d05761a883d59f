/** The reference on the sphere, which GEOS does not know: every input feature
 *  against every join feature that is not too far away to matter, one thread.
 *
 *  The plain way: vectors in long double, every edge looked at, a point's being
 *  inside told by the angle through which the ring turns around it.  It shares
 *  no arithmetic with the fast way (kernels/oj_sphere.h), but what a feature on
 *  the sphere is, it takes from there: longitudes modulo 360, edges the shorter
 *  great-circle arcs, latitudes beyond 90 nowhere, the inside of a ring the
 *  side away from the point opposite to the mean of its vertices.
 *
 *  Join features are sorted by the height of their ball's centre above the
 *  equator's plane; a row looks from its own height up and down, and stops
 *  where even the widest ball would be too far.  Source: ours. */
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../pairs/oj_pairs.h"
#include "../pairs/oj_ranking.h"
#include "../relation/oj_engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN_RADIUS 6371008.7714L

struct wide3
{
    long double x, y, z;
};

/* What holds a feature, in space: no point of it is farther from centre. */
struct plain_ball
{
    struct wide3 centre;
    long double radius; /* < 0: the feature joins nothing */
};

/* A side of a join. Owner; zeroed memory is a valid empty one. */
struct plain_sphere_side
{
    const struct oj_flat *flat; /* outlives this */
    struct wide3 *at;           /* [n_vertices] on the unit sphere */
    struct plain_ball *ball;    /* [n_features] */
};

#define PI 3.14159265358979323846264338327950288L

/* Shorter vectors than this have no direction. */
#define NOTHING 1e-17L

/* Vertices farther than this from their mean, in squared chords (2 is a
 * hemisphere), leave it open on which side of the ring what is near it lies. */
#define WIDE 1.99L

/* Wider than the sphere. */
#define EVERYWHERE 3.0L

/* --- vectors -------------------------------------------------------------- */

static struct wide3 minus(struct wide3 a, struct wide3 b)
{
    return (struct wide3){a.x - b.x, a.y - b.y, a.z - b.z};
}

static long double dot(struct wide3 a, struct wide3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static struct wide3 cross(struct wide3 a, struct wide3 b)
{
    return (struct wide3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z,
                          a.x * b.y - a.y * b.x};
}

static long double length(struct wide3 a)
{
    return sqrtl(dot(a, a));
}

static struct wide3 scaled(struct wide3 a, long double by)
{
    return (struct wide3){a.x * by, a.y * by, a.z * by};
}

/* Straight through space. */
static long double plain_chord(struct wide3 p, struct wide3 q)
{
    return length(minus(p, q));
}

static struct wide3 vector_of(double longitude, double latitude)
{
    long double l = remainderl((long double)longitude, 360) * (PI / 180);
    long double b = (long double)latitude * (PI / 180);
    return (struct wide3){cosl(b) * cosl(l), cosl(b) * sinl(l), sinl(b)};
}

/* Between unit vectors; good at any angle. */
static long double angle(struct wide3 a, struct wide3 b)
{
    return atan2l(length(cross(a, b)), dot(a, b));
}

/* The nearest point to p of the arc a -> b. */
static struct wide3 nearest_of_arc(struct wide3 p, struct wide3 a,
                                   struct wide3 b)
{
    struct wide3 end = dot(p, a) > dot(p, b) ? a : b;
    struct wide3 n = cross(a, minus(b, a)), foot;
    long double n_length = length(n), foot_length;
    /* near p, dot says little */
    if (plain_chord(p, a) != plain_chord(p, b))
        end = plain_chord(p, a) < plain_chord(p, b) ? a : b;
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
static struct wide3 middle_of(const struct wide3 *at, int64_t first,
                              int64_t end)
{
    struct wide3 sum = {0, 0, 0};
    for (int64_t v = first; v < end; v++)
    {
        sum.x += at[v].x;
        sum.y += at[v].y;
        sum.z += at[v].z;
    }
    if (!(length(sum) > 1e-9L * (long double)(end - first)))
        return (struct wide3){0, 0, 1};
    return scaled(sum, 1 / length(sum));
}

/* The angle through which ring turns around the axis of p, in full turns. */
static long turns_around(const struct wide3 *at, int64_t first, int64_t last,
                         struct wide3 p)
{
    long double sum = 0;
    for (int64_t v = first; v < last; v++)
    {
        struct wide3 a = at[v], b = at[v + 1];
        sum += atan2l(dot(p, cross(a, b)), dot(a, b) - dot(p, a) * dot(p, b));
    }
    return lroundl(sum / (2 * PI));
}

/* 1 when the arcs p -> q and a -> b cross. */
static int arcs_cross(struct wide3 p, struct wide3 q, struct wide3 a,
                      struct wide3 b)
{
    struct wide3 m = cross(p, q), n = cross(a, minus(b, a)), at;
    if ((dot(m, a) >= 0) == (dot(m, b) >= 0))
        return 0;
    at = cross(m, n);
    if (dot(at, a) + dot(at, b) < 0)
        at = scaled(at, -1);
    return dot(cross(p, at), m) > 0 && dot(cross(at, q), m) > 0;
}

static int crossings(const struct wide3 *at, int64_t first, int64_t last,
                     struct wide3 p, struct wide3 q)
{
    int n = 0;
    for (int64_t v = first; v < last; v++)
        n += arcs_cross(p, q, at[v], at[v + 1]);
    return n;
}

/* A point some degrees from p. */
static struct wide3 beside(struct wide3 p)
{
    struct wide3 axis = {fabsl(p.x) < 0.5L, 0, 0}, w;
    axis.y = axis.x == 0;
    w = cross(p, axis);
    w = scaled(w, 0.1L / length(w));
    w = (struct wide3){p.x + w.x, p.y + w.y, p.z + w.z};
    return scaled(w, 1 / length(w));
}

static int ring_holds(const struct plain_sphere_side *side, int64_t ring,
                      struct wide3 p)
{
    int64_t first = side->flat->vertex_offset[ring];
    int64_t last = side->flat->vertex_offset[ring + 1] - 1;
    struct wide3 middle = middle_of(side->at, first, last), opposite, by;
    long double farthest = 0;
    for (int64_t v = first; v < last; v++)
        farthest = fmaxl(farthest, plain_chord(side->at[v], middle));
    /* in a hemisphere: it turns around p, or around the point opposite to p */
    if (farthest * farthest < WIDE)
        return plain_chord(p, middle) <= farthest &&
               turns_around(side->at, first, last, p) % 2 != 0;
    opposite = scaled(middle, -1);
    if (plain_chord(p, middle) > 1e-6L)
        return crossings(side->at, first, last, p, opposite) % 2 != 0;
    /* every way there is as short: first a step aside */
    by = beside(middle);
    return (crossings(side->at, first, last, p, by) +
            crossings(side->at, first, last, by, opposite)) %
               2 !=
           0;
}

static int part_holds(const struct plain_sphere_side *side, int64_t part,
                      struct wide3 p)
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

/* Metres from p to the nearest point of feature; 0 in a polygon part when
 * to_interior. */
static double plain_metres(const struct plain_sphere_side *side,
                           int64_t feature, int to_interior, struct wide3 p)
{
    const struct oj_flat *flat = side->flat;
    struct wide3 best = scaled(p, -1);
    if (oj_flat_is_points(flat))
        return (double)(angle(p, side->at[feature]) * PLAIN_RADIUS);
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
                struct wide3 here = nearest_of_arc(p, side->at[v], side->at[w]);
                if (plain_chord(p, here) < plain_chord(p, best))
                    best = here;
            } while (++v < last);
        }
    }
    return (double)(angle(p, best) * PLAIN_RADIUS);
}

/* Around all vertices; wider by the longest edge, which no edge leaves them
 * by.  A polygon whose vertices are within a hemisphere does not leave it, and
 * others may be anywhere. */
static struct plain_ball ball_of(const struct plain_sphere_side *side,
                                 int64_t feature)
{
    const struct oj_flat *flat = side->flat;
    struct plain_ball ball = {{0, 0, 0}, -1};
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
        ball.radius = fmaxl(ball.radius, plain_chord(side->at[v], ball.centre));
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
            longest = fmaxl(longest, plain_chord(side->at[v], side->at[v + 1]));
    }
    ball.radius += longest;
    return ball;
}

static void free_side(struct plain_sphere_side *side)
{
    oj_free(side->at);
    oj_free(side->ball);
    memset(side, 0, sizeof *side);
}

static oj_status make_side(struct plain_sphere_side *side,
                           const struct oj_flat *flat, struct oj_error *err)
{
    memset(side, 0, sizeof *side);
    side->flat = flat;
    side->at = oj_malloc(flat->n_vertices, sizeof *side->at);
    side->ball = oj_malloc(flat->n_features, sizeof *side->ball);
    if (side->at == NULL || side->ball == NULL)
    {
        free_side(side);
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

/* More than all that rounding may do to a chord. */
#define SLACK 1e-9L

/* Places of sorted between two looks at the cancel flag. */
#define PLACES_PER_LOOK 256

struct by_height
{
    long double z;
    int32_t feature;
};

struct plain_sphere_index
{
    struct oj_index_args args;
    struct plain_sphere_side side;
    int64_t n_sorted; /* features that join something */
    struct by_height *sorted;
    long double widest; /* ball */
    struct oj_ranking ranking;
    struct oj_answers answers;
    int64_t n_places, n_candidates; /* looked at; of these, measured */
};

/* A row on its way. */
struct plain_sphere_row
{
    struct plain_sphere_index *index;
    const struct plain_sphere_side *side;
    const struct oj_pair_filter *filter;
    int64_t row, first, end; /* its points */
};

/* --- index ---------------------------------------------------------------- */

static int compare_heights(const void *a, const void *b)
{
    const struct by_height *u = a, *v = b;
    if (u->z != v->z)
        return u->z < v->z ? -1 : 1;
    return (u->feature > v->feature) - (u->feature < v->feature);
}

static oj_status build(struct plain_sphere_index *index, struct oj_error *err)
{
    const struct oj_flat *flat = index->args.join_side;
    OJ_TRY(make_side(&index->side, flat, err));
    OJ_NEW(index->sorted, flat->n_features, err);
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        const struct plain_ball *ball = &index->side.ball[i];
        if (ball->radius < 0)
            continue;
        index->sorted[index->n_sorted].z = ball->centre.z;
        index->sorted[index->n_sorted++].feature = (int32_t)i;
        index->widest = fmaxl(index->widest, ball->radius);
    }
    if (index->n_sorted > 0)
        qsort(index->sorted, (size_t)index->n_sorted, sizeof *index->sorted,
              compare_heights);
    return OJ_OK;
}

static void free_index(struct oj_index *wrapped)
{
    struct plain_sphere_index *index = (void *)wrapped;
    if (index == NULL)
        return;
    free_side(&index->side);
    oj_ranking_free(&index->ranking);
    oj_answers_free(&index->answers);
    oj_free(index->sorted);
    oj_free(index);
}

static oj_status make_index(const struct oj_index_args *args,
                            struct oj_index **out, struct oj_stats *stats,
                            struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct plain_sphere_index *index;
    oj_status status;
    if (args->relation.metric != OJ_METRIC_SPHERE)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the backend sphere only measures on the sphere");
    index = oj_calloc(1, sizeof *index);
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->args = *args;
    index->ranking = oj_ranking_make(&args->relation, args->tie_rank);
    status = build(index, err);
    if (status != OJ_OK)
    {
        free_index((void *)index);
        return status;
    }
    stats->index_s += oj_clock_seconds() - start;
    *out = (void *)index;
    return OJ_OK;
}

/* --- a row ---------------------------------------------------------------- */

/* Join features farther than this, straight through space, do not matter. */
static long double reach_of(const struct plain_sphere_row *r)
{
    const struct plain_sphere_index *index = r->index;
    const struct oj_flat *input = r->side->flat;
    double metres = index->args.relation.max_distance;
    long double half;
    if (input->max_distance != NULL)
        metres = input->max_distance[r->row];
    else if (index->args.join_side->max_distance != NULL)
        metres = INFINITY;
    if (index->args.relation.op == OJ_OP_NEAREST &&
        index->ranking.bound < metres)
        metres = index->ranking.bound;
    half = (long double)metres / PLAIN_RADIUS / 2;
    return (half < 1.57L ? 2 * sinl(half) : 2) + SLACK;
}

static oj_status try_feature(struct plain_sphere_row *r, int32_t feature,
                             struct oj_error *err)
{
    struct plain_sphere_index *index = r->index;
    double least = INFINITY;
    index->n_candidates++;
    if (!oj_pair_may_count(r->filter, r->row, feature))
        return OJ_OK;
    for (int64_t v = r->first; v < r->end; v++)
    {
        double d = plain_metres(
            &index->side, feature,
            index->args.relation.distance_to == OJ_TO_INTERIOR, r->side->at[v]);
        least = d < least ? d : least;
    }
    if (!(least <= oj_pair_max_distance(&index->args.relation, r->side->flat,
                                        r->row, index->args.join_side,
                                        feature)) ||
        least < index->args.relation.min_distance)
        return OJ_OK;
    if (index->args.relation.op == OJ_OP_NEAREST)
        return oj_ranking_add(&index->ranking, feature, least, err);
    OJ_TRY(oj_answers_reserve(&index->answers, 1, err));
    oj_answers_put(&index->answers, (int32_t)r->row, feature, least);
    return OJ_OK;
}

/* The first place in sorted that is not below z. */
static int64_t find_height(const struct plain_sphere_index *index,
                           long double z)
{
    int64_t low = 0, high = index->n_sorted;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (index->sorted[middle].z < z)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static oj_status try_place(struct plain_sphere_row *r, int64_t place,
                           struct oj_error *err)
{
    struct plain_sphere_index *index = r->index;
    const struct plain_ball *mine = &r->side->ball[r->row], *other;
    int32_t feature = index->sorted[place].feature;
    if (++index->n_places % PLACES_PER_LOOK == 0)
        OJ_TRY(oj_check_cancel(index->args.options.cancel, err));
    other = &index->side.ball[feature];
    if (plain_chord(mine->centre, other->centre) - mine->radius -
            other->radius >
        reach_of(r))
        return OJ_OK;
    return try_feature(r, feature, err);
}

/* Up and down by turns, the nearer height first, until neither matters. */
static oj_status search_row(struct plain_sphere_row *r, struct oj_error *err)
{
    const struct plain_sphere_index *index = r->index;
    const struct plain_ball *mine = &r->side->ball[r->row];
    long double z = mine->centre.z;
    int64_t up = find_height(index, z), down = up - 1;
    for (;;)
    {
        long double above = INFINITY, below = INFINITY, nearer;
        if (up < index->n_sorted)
            above = index->sorted[up].z - z;
        if (down >= 0)
            below = z - index->sorted[down].z;
        nearer = fminl(above, below);
        if (!(nearer - mine->radius - index->widest <= reach_of(r)))
            return OJ_OK;
        OJ_TRY(try_place(r, above <= below ? up++ : down--, err));
    }
}

static oj_status join_row(struct plain_sphere_index *index,
                          const struct plain_sphere_side *side,
                          const struct oj_pair_filter *filter, int64_t row,
                          struct oj_error *err)
{
    struct plain_sphere_row r = {index, side, filter, row, 0, 0};
    oj_flat_vertices(side->flat, row, &r.first, &r.end);
    if (side->ball[row].radius < 0)
        return OJ_OK;
    if (index->args.relation.op != OJ_OP_NEAREST)
        return search_row(&r, err);
    oj_ranking_start(&index->ranking);
    OJ_TRY(search_row(&r, err));
    oj_ranking_finish(&index->ranking);
    return oj_answers_add(&index->answers, row, &index->ranking, err);
}

/* --- a batch -------------------------------------------------------------- */

static oj_status join_rows(struct plain_sphere_index *index,
                           struct plain_sphere_side *side,
                           const struct oj_flat *input, struct oj_matches *out,
                           struct oj_error *err)
{
    struct oj_pair_filter filter;
    OJ_TRY(oj_pair_filter_make(&index->args.relation, input,
                               index->args.join_side, &filter, err));
    OJ_TRY(make_side(side, input, err));
    oj_answers_start(&index->answers, index->args.options.max_batch_pairs,
                     input->n_features, 1);
    for (int64_t row = 0; row < input->n_features; row++)
        OJ_TRY(join_row(index, side, &filter, row, err));
    return oj_answers_to_matches(&index->answers, 1, input->n_features,
                                 &index->args.relation, index->args.tie_rank,
                                 out, err);
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct plain_sphere_index *index = (void *)wrapped;
    struct plain_sphere_side side;
    double start = oj_clock_seconds();
    oj_status status;
    if ((input->part_kinds & ~(unsigned)OJ_PART_POINT) != 0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "on the sphere distances are measured from points");
    memset(&side, 0, sizeof side);
    index->n_candidates = 0;
    status = join_rows(index, &side, input, out, err);
    free_side(&side);
    stats->n_candidates += index->n_candidates;
    stats->refine_s += oj_clock_seconds() - start;
    return status;
}

const struct oj_engine oj_sphere_engine = {"sphere", NULL, make_index, join,
                                           free_index};
