/** A plain computation of pairs by distance: every input feature with every
 * join feature, all pairs of segments, exact crossings, all vertices in all
 * polygons. Answers are compared with it. Include once, after
 * random_layers.h. */
#ifndef PLAIN_PAIRS_H
#define PLAIN_PAIRS_H

#include "exact_sign.h"
#include "random_layers.h"

#include "../../algs/foundations/kernels/oj_segment.h"
#include "../../algs/pairs/selection/oj_pair_filter.h"

/* Positions of the parts, rings and vertices of a side, which has the short or
 * the long form. */
static inline int64_t part_begin(const struct oj_flat *flat, int64_t feature)
{
    if (!oj_flat_is_points(flat))
        return flat->part_offset[feature];
    return feature;
}

static inline int64_t part_end(const struct oj_flat *flat, int64_t feature)
{
    if (!oj_flat_is_points(flat))
        return flat->part_offset[feature + 1];
    return feature + (flat->x[feature] == flat->x[feature]);
}

static inline int64_t ring_begin(const struct oj_flat *flat, int64_t part)
{
    return oj_flat_is_points(flat) ? part : flat->ring_offset[part];
}

static inline int64_t vertex_begin(const struct oj_flat *flat, int64_t ring)
{
    return oj_flat_is_points(flat) ? ring : flat->vertex_offset[ring];
}

/* --- the plain distance --------------------------------------------------- */

static inline int plain_between(double u, double a, double b)
{
    return (a <= u && u <= b) || (b <= u && u <= a);
}

/* 1 if c is on the segment a -> b. */
static inline int plain_on(const double *a, const double *b, const double *c)
{
    return plain_between(c[0], a[0], b[0]) && plain_between(c[1], a[1], b[1]) &&
           exact_orientation(a[0], a[1], b[0], b[1], c[0], c[1]) == 0;
}

static inline int plain_meet(const double *a, const double *b, const double *c,
                             const double *d)
{
    int abc, abd, cda, cdb;
    /* most segments are far apart */
    if (fmax(a[0], b[0]) < fmin(c[0], d[0]) ||
        fmax(c[0], d[0]) < fmin(a[0], b[0]) ||
        fmax(a[1], b[1]) < fmin(c[1], d[1]) ||
        fmax(c[1], d[1]) < fmin(a[1], b[1]))
        return 0;
    abc = exact_orientation(a[0], a[1], b[0], b[1], c[0], c[1]);
    abd = exact_orientation(a[0], a[1], b[0], b[1], d[0], d[1]);
    cda = exact_orientation(c[0], c[1], d[0], d[1], a[0], a[1]);
    cdb = exact_orientation(c[0], c[1], d[0], d[1], b[0], b[1]);
    return (abc * abd < 0 && cda * cdb < 0) || plain_on(a, b, c) ||
           plain_on(a, b, d) || plain_on(c, d, a) || plain_on(c, d, b);
}

static inline double plain_least(double a, double b)
{
    return b < a ? b : a; /* NaN is never the minimum */
}

static inline double plain_segments(const double *a, const double *b,
                                    const double *c, const double *d)
{
    double least = INFINITY;
    if (a[0] == b[0] && a[1] == b[1])
        return plain_least(
            least, oj_segment_distance(a[0], a[1], c[0], c[1], d[0], d[1]));
    if (c[0] == d[0] && c[1] == d[1])
        return plain_least(
            least, oj_segment_distance(d[0], d[1], a[0], a[1], b[0], b[1]));
    if (plain_meet(a, b, c, d))
        return 0.0;
    least = plain_least(
        least, oj_segment_distance(a[0], a[1], c[0], c[1], d[0], d[1]));
    least = plain_least(
        least, oj_segment_distance(b[0], b[1], c[0], c[1], d[0], d[1]));
    least = plain_least(
        least, oj_segment_distance(c[0], c[1], a[0], a[1], b[0], b[1]));
    return plain_least(least,
                       oj_segment_distance(d[0], d[1], a[0], a[1], b[0], b[1]));
}

static inline double plain_rings(const struct oj_flat *f, int64_t r,
                                 const struct oj_flat *g, int64_t q)
{
    int64_t i = vertex_begin(f, r), last_i = vertex_begin(f, r + 1) - 1;
    int64_t first_j = vertex_begin(g, q), last_j = vertex_begin(g, q + 1) - 1;
    double least = INFINITY;
    do
    {
        int64_t i2 = i < last_i ? i + 1 : i, j = first_j;
        double a[2] = {f->x[i], f->y[i]}, b[2] = {f->x[i2], f->y[i2]};
        do
        {
            int64_t j2 = j < last_j ? j + 1 : j;
            double c[2] = {g->x[j], g->y[j]}, d[2] = {g->x[j2], g->y[j2]};
            least = plain_least(least, plain_segments(a, b, c, d));
        } while (++j < last_j);
    } while (++i < last_i);
    return least;
}

/* Locates a point in a ring by counting crossings. Returns 1 if it is inside, 2
 * on the ring, 0 outside. */
static inline int plain_locate(const struct oj_flat *flat, int64_t ring,
                               const double *p)
{
    int odd = 0;
    for (int64_t v = flat->vertex_offset[ring];
         v + 1 < flat->vertex_offset[ring + 1]; v++)
    {
        double a[2] = {flat->x[v], flat->y[v]};
        double b[2] = {flat->x[v + 1], flat->y[v + 1]};
        int side;
        if (plain_on(a, b, p))
            return 2;
        if ((a[1] > p[1]) == (b[1] > p[1]))
            continue;
        side = exact_orientation(a[0], a[1], b[0], b[1], p[0], p[1]);
        odd ^= (side > 0) == (b[1] > a[1]);
    }
    return odd;
}

/* Returns 1 if a point is on a ring of the polygon part, or inside an odd
 * number of its rings. */
static inline int plain_holds(const struct oj_flat *flat, int64_t part,
                              const double *p)
{
    int odd = 0;
    for (int64_t r = flat->ring_offset[part]; r < flat->ring_offset[part + 1];
         r++)
    {
        int where = plain_locate(flat, r, p);
        if (where == 2)
            return 1;
        odd ^= where;
    }
    return odd;
}

/* Returns 1 if a vertex of part q of g is in the polygon part p of f. */
static inline int plain_contains(const struct oj_flat *f, int64_t p,
                                 const struct oj_flat *g, int64_t q)
{
    if (oj_flat_is_points(f) || f->part_kind[p] != OJ_PART_POLYGON)
        return 0;
    for (int64_t v = vertex_begin(g, ring_begin(g, q));
         v < vertex_begin(g, ring_begin(g, q + 1)); v++)
    {
        double at[2] = {g->x[v], g->y[v]};
        if (plain_holds(f, p, at))
            return 1;
    }
    return 0;
}

static inline double plain_distance(const struct oj_flat *f, int64_t a,
                                    const struct oj_flat *g, int64_t b,
                                    enum oj_distance_to to)
{
    double least = INFINITY;
    for (int64_t p = part_begin(f, a); p < part_end(f, a); p++)
    {
        for (int64_t q = part_begin(g, b); q < part_end(g, b); q++)
        {
            if (to == OJ_TO_INTERIOR &&
                (plain_contains(f, p, g, q) || plain_contains(g, q, f, p)))
                return 0.0;
            for (int64_t r = ring_begin(f, p); r < ring_begin(f, p + 1); r++)
            {
                for (int64_t s = ring_begin(g, q); s < ring_begin(g, q + 1);
                     s++)
                    least = plain_least(least, plain_rings(f, r, g, s));
            }
        }
    }
    return least;
}

/* --- the plain join ------------------------------------------------------- */

struct plain_pair
{
    double distance;
    int32_t rank, feature;
};

static inline int plain_by_distance(const void *left, const void *right)
{
    const struct plain_pair *a = left, *b = right;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    return a->rank - b->rank;
}

static inline int plain_by_rank(const void *left, const void *right)
{
    const struct plain_pair *a = left, *b = right;
    return a->rank - b->rank;
}

/* Returns the position of a join feature in tie order: by FID, or by ordinal if
 * FIDs are missing or repeated. */
static inline int32_t plain_rank(const struct oj_flat *flat, int64_t feature)
{
    int32_t rank = 0;
    int repeats = flat->fid == NULL;
    for (int64_t i = 0; i < flat->n_features && !repeats; i++)
    {
        rank += flat->fid[i] < flat->fid[feature];
        for (int64_t j = 0; j < i && !repeats; j++)
            repeats = flat->fid[i] == flat->fid[j];
    }
    return repeats ? (int32_t)feature : rank;
}

static inline int plain_similar(const struct oj_text_condition *condition,
                                const struct oj_token_sets *s, int64_t a,
                                const struct oj_token_sets *t, int64_t b)
{
    int64_t o = 0;
    for (int64_t i = s->offset[a]; i < s->offset[a + 1]; i++)
    {
        for (int64_t j = t->offset[b]; j < t->offset[b + 1]; j++)
            o += s->token[i] == t->token[j];
    }
    return o > 0 && oj_text_is_similar(condition, o, s->size[a], t->size[b]);
}

/* Returns 1 if one vector is an exact multiple of the other. */
static inline int plain_parallel(const double *a, const double *b, int64_t n)
{
    int64_t j = 0;
    while (a[j] == 0.0)
        j++;
    for (int64_t i = 0; i < n; i++)
    {
        if (exact_orientation(0.0, 0.0, a[i], a[j], b[i], b[j]) != 0)
            return 0;
    }
    return 1;
}

static inline double plain_difference(enum oj_vector_norm norm, const double *a,
                                      const double *b, int64_t n)
{
    double sum = 0.0, most = 0.0, squares = 0.0, dot = 0.0, aa = 0.0, bb = 0.0;
    for (int64_t i = 0; i < n; i++)
    {
        double d = fabs(a[i] - b[i]);
        sum += d;
        squares += d * d;
        most = fmax(most, d);
        dot += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    if (norm == OJ_NORM_COSINE)
    {
        double d = 1.0 - dot / (sqrt(aa) * sqrt(bb));
        return d < 0.0 || (d < 1e-10 && plain_parallel(a, b, n)) ? 0.0 : d;
    }
    return norm == OJ_NORM_L2 ? sqrt(squares) : norm == OJ_NORM_L1 ? sum : most;
}

static inline int plain_near(const struct oj_relation *relation,
                             const struct oj_flat *f, int64_t a,
                             const struct oj_flat *g, int64_t b)
{
    int64_t n = f->vectors.n_dimensions;
    const double *x = f->vectors.value + a * n, *y = g->vectors.value + b * n;
    return !isnan(x[0]) && !isnan(y[0]) &&
           plain_difference(relation->vector.norm, x, y, n) <=
               relation->vector.max_difference;
}

/* Returns 1 if an Allen relation of two spans holds by its definition. For
 * spans without duration, "meets" requires that both the begins and the ends
 * are in order. */
static inline int plain_span_relation_holds(int relation, int64_t a0,
                                            int64_t a1, int64_t b0, int64_t b1)
{
    switch (relation)
    {
        case OJ_SPAN_BEFORE:
            return a1 < b0;
        case OJ_SPAN_AFTER:
            return b1 < a0;
        case OJ_SPAN_MEETS:
            return a1 == b0 && a0 < b0 && a1 < b1;
        case OJ_SPAN_MET_BY:
            return b1 == a0 && b0 < a0 && b1 < a1;
        case OJ_SPAN_OVERLAPS:
            return a0 < b0 && b0 < a1 && a1 < b1;
        case OJ_SPAN_OVERLAPPED_BY:
            return b0 < a0 && a0 < b1 && b1 < a1;
        case OJ_SPAN_STARTS:
            return a0 == b0 && a1 < b1;
        case OJ_SPAN_STARTED_BY:
            return a0 == b0 && b1 < a1;
        case OJ_SPAN_DURING:
            return b0 < a0 && a1 < b1;
        case OJ_SPAN_CONTAINS:
            return a0 < b0 && b1 < a1;
        case OJ_SPAN_FINISHES:
            return a1 == b1 && b0 < a0;
        case OJ_SPAN_FINISHED_BY:
            return a1 == b1 && a0 < b0;
        default:
            return a0 == b0 && a1 == b1;
    }
}

static inline int plain_spans_hold(const struct oj_span_condition *condition,
                                   const struct oj_spans *s, int64_t a,
                                   const struct oj_spans *t, int64_t b)
{
    int holds = 0, n = 0;
    if (s->from[a] == INT64_MAX || s->until[a] == INT64_MIN ||
        t->from[b] == INT64_MAX || t->until[b] == INT64_MIN)
        return 0;
    for (int i = 0; i < OJ_N_SPAN_RELATIONS; i++)
    {
        int is = plain_span_relation_holds(i, s->from[a], s->until[a],
                                           t->from[b], t->until[b]);
        n += is;
        holds |= is && (condition->relations >> i & 1u) != 0;
    }
    expect(n == 1, "%d relations at once", n);
    return holds;
}

static inline int plain_is_allowed(const struct oj_relation *relation,
                                   const struct oj_flat *f, int64_t a,
                                   const struct oj_flat *g, int64_t b)
{
    if (relation->exclude_self && f->fid[a] == g->fid[b])
        return 0;
    if (relation->unordered_pairs > 0 && f->fid[a] >= g->fid[b])
        return 0;
    if (relation->unordered_pairs < 0 && f->fid[a] <= g->fid[b])
        return 0;
    if (f->on_class != NULL &&
        (f->on_class[a] < 0 || f->on_class[a] != g->on_class[b]))
        return 0;
    if (f->exclude_class != NULL && f->exclude_class[a] >= 0 &&
        f->exclude_class[a] == g->exclude_class[b])
        return 0;
    for (int i = 0; i < relation->n_similar; i++)
    {
        if (!plain_similar(&relation->similar[i], &f->texts[i], a, &g->texts[i],
                           b))
            return 0;
    }
    if (relation->vector.is_asked && !plain_near(relation, f, a, g, b))
        return 0;
    for (int i = 0; i < relation->n_spans; i++)
    {
        if (!plain_spans_hold(&relation->spans[i], &f->spans[i], a,
                              &g->spans[i], b))
            return 0;
    }
    return !relation->exclude_same_geometry ||
           !oj_flat_same_geometry(f, a, g, b);
}

static inline double plain_limit(const struct oj_relation *relation,
                                 const struct oj_flat *f, int64_t a,
                                 const struct oj_flat *g, int64_t b)
{
    double limit = relation->max_distance;
    if (f->max_distance != NULL)
        limit = f->max_distance[a];
    else if (g->max_distance != NULL)
        limit = g->max_distance[b];
    return limit >= 0.0 ? limit : -1.0;
}

/* Computes the pairs of row a, in order. Returns their number. */
static inline int64_t plain_row(const struct oj_relation *relation,
                                const struct oj_flat *f, int64_t a,
                                const struct oj_flat *g, const int32_t *rank,
                                const double *distance, struct plain_pair *out)
{
    int64_t n = 0, kept;
    for (int64_t b = 0; b < g->n_features; b++)
    {
        double d = distance[b];
        if (!plain_is_allowed(relation, f, a, g, b) || !(d < INFINITY) ||
            d < relation->min_distance ||
            !(d <= plain_limit(relation, f, a, g, b)))
            continue;
        out[n].distance = d;
        out[n].rank = rank[b];
        out[n++].feature = (int32_t)b;
    }
    if (relation->op != OJ_OP_NEAREST)
    {
        qsort(out, (size_t)n, sizeof *out, plain_by_rank);
        return n;
    }
    qsort(out, (size_t)n, sizeof *out, plain_by_distance);
    kept = n < relation->k ? n : relation->k;
    while (relation->ties == OJ_TIES_ALL && kept > 0 && kept < n &&
           out[kept].distance == out[kept - 1].distance)
        kept++;
    return kept;
}

/* Sets a random join by distance in a scene. For nearest, the relation asks for
 * at most k features. */
static inline void plain_pick_join(struct oj_relation *r, const struct scene *s,
                                   int k)
{
    r->op = pick(2) ? OJ_OP_NEAREST : OJ_OP_DWITHIN;
    r->max_distance = s->scale * pick(s->extent);
    if (r->op == OJ_OP_NEAREST && pick(2))
        r->max_distance = INFINITY;
    if (one_in(3))
        r->min_distance = fmin(r->max_distance, s->scale * pick(6));
    if (r->op == OJ_OP_NEAREST)
    {
        r->k = one_in(3) ? 1 + pick(k) : 1;
        r->ties = one_in(4) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    }
}

static inline unsigned plain_kinds(void)
{
    static const unsigned kinds[] = {OJ_PART_POINT, OJ_PART_LINE,
                                     OJ_PART_POLYGON, 7, 7};
    return kinds[pick(5)];
}

/* Returns the distances of all features of f and g: [f features][g features].
 * The caller frees them. */
static inline double *plain_matrix(const struct oj_flat *f,
                                   const struct oj_flat *g,
                                   enum oj_distance_to to)
{
    double *matrix = oj_malloc(f->n_features * g->n_features, sizeof *matrix);
    ck_assert_ptr_nonnull(matrix);
    for (int64_t a = 0; a < f->n_features; a++)
    {
        for (int64_t b = 0; b < g->n_features; b++)
            matrix[a * g->n_features + b] = plain_distance(f, a, g, b, to);
    }
    return matrix;
}

static inline void check_answer(const char *what,
                                const struct oj_relation *relation,
                                const struct oj_flat *f,
                                const struct oj_flat *g, const double *matrix,
                                const struct oj_matches *m)
{
    struct plain_pair *pairs = oj_malloc(g->n_features + 1, sizeof *pairs);
    int32_t *rank = oj_malloc(g->n_features + 1, sizeof *rank);
    int64_t n_pairs = 0, n_matched = 0;
    ck_assert(pairs != NULL && rank != NULL);
    ck_assert_int_eq(m->n_rows, f->n_features);
    for (int64_t b = 0; b < g->n_features; b++)
        rank[b] = plain_rank(g, b);
    for (int64_t a = 0; a < f->n_features; a++)
    {
        int64_t n = plain_row(relation, f, a, g, rank,
                              matrix + a * g->n_features, pairs);
        int64_t first = oj_matches_first(m, a);
        int64_t n_got = oj_matches_end(m, a) - first;
        expect(n == n_got, "%s, seed %llu: row %d has %d pairs, not %d", what,
               (unsigned long long)seed, (int)a, (int)n_got, (int)n);
        for (int64_t i = 0; i < n; i++)
        {
            expect(pairs[i].feature == m->join_row[first + i],
                   "%s, seed %llu: row %d, pair %d: feature %d (%.17g), not "
                   "%d (%.17g)",
                   what, (unsigned long long)seed, (int)a, (int)i,
                   (int)m->join_row[first + i], m->measure[first + i],
                   (int)pairs[i].feature, pairs[i].distance);
            expect(pairs[i].distance == m->measure[first + i],
                   "%s, seed %llu: row %d, feature %d: %.17g, not %.17g", what,
                   (unsigned long long)seed, (int)a, (int)pairs[i].feature,
                   m->measure[first + i], pairs[i].distance);
        }
        n_pairs += n;
        n_matched += n > 0;
    }
    ck_assert_int_eq(m->n_pairs, n_pairs);
    ck_assert_int_eq(m->n_matched, n_matched);
    oj_free(pairs);
    oj_free(rank);
}

#endif
