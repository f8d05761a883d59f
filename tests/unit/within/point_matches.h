/** Points in polygons by a plain loop over all parts. Answers are compared with
 * it. Include once. */
#ifndef POINT_MATCHES_H
#define POINT_MATCHES_H

#include "../../../algs/foundations/kernels/oj_ring.h"
#include "../../../algs/geometry/relate/oj_self_overlap.h"
#include "../../../algs/geometry/relate/relate.h"
#include "../plain_pairs.h"

/* Locates a point that is on rings by the edges around it (rule of nodes).
 * test_relate compares this rule with the exact reference. */
static inline enum oj_location
locate_by_node(const struct oj_flat *flat, int64_t feature, double x, double y)
{
    struct oj_shape shape = oj_shape_of(flat, feature);
    struct oj_relate_scratch scratch;
    enum oj_matrix_place place;
    memset(&scratch, 0, sizeof scratch);
    must(oj_relate_locate_point(&shape, x, y, &scratch, &place, &error));
    oj_relate_scratch_free(&scratch);
    return place == OJ_PLACE_INTERIOR ? OJ_INSIDE : OJ_ON_BOUNDARY;
}

/* Locates a point by the even-odd rule over the rings of each part. A point
 * that is only on rings is located by the edges around it. */
static inline enum oj_location locate(const struct oj_flat *flat,
                                      int64_t feature, double x, double y)
{
    int n_on = 0;
    for (int64_t p = flat->part_offset[feature];
         p < flat->part_offset[feature + 1]; p++)
    {
        int odd = 0, is_on = 0;
        for (int64_t r = flat->ring_offset[p]; r < flat->ring_offset[p + 1];
             r++)
        {
            int64_t v = flat->vertex_offset[r];
            enum oj_location at = oj_ring_locate(
                x, y, flat->x + v, flat->y + v, flat->vertex_offset[r + 1] - v);
            is_on |= at == OJ_ON_BOUNDARY;
            odd ^= at == OJ_INSIDE;
        }
        if (odd && !is_on)
            return OJ_INSIDE;
        n_on += is_on;
    }
    return n_on > 0 ? locate_by_node(flat, feature, x, y) : OJ_OUTSIDE;
}

static inline int holds(enum oj_op op, enum oj_location at)
{
    if (op == OJ_OP_WITHIN)
        return at == OJ_INSIDE;
    if (op == OJ_OP_TOUCHES)
        return at == OJ_ON_BOUNDARY;
    return at != OJ_OUTSIDE;
}

/* Returns an array with one byte for each row and feature: 1 if they are a
 * pair. */
static inline uint8_t *make_truth(const struct oj_flat *join,
                                  const struct oj_flat *input,
                                  const struct oj_relation *relation)
{
    int64_t n = join->n_features;
    uint8_t *truth = oj_calloc(input->n_features * n, 1);
    for (int64_t i = 0; i < input->n_features; i++)
    {
        double x = input->x[i], y = input->y[i];
        for (int64_t f = 0; isfinite(x) && isfinite(y) && f < n; f++)
            truth[i * n + f] = plain_is_allowed(relation, input, i, join, f) &&
                               holds(relation->op, locate(join, f, x, y));
    }
    return truth;
}

static int64_t n_pairs_seen;

struct points_trial
{
    const struct oj_flat *join, *input;
    const struct oj_relation *relation;
    const int32_t *tie_rank;
    const uint8_t *truth;
};

static inline struct oj_flat part_of(const struct oj_flat *flat, int64_t first,
                                     int64_t n)
{
    struct oj_flat view = *flat;
    view.x += first;
    view.y += first;
    view.n_features = view.n_vertices = n;
    view.fid += first;
    if (view.on_class != NULL)
        view.on_class += first;
    if (view.exclude_class != NULL)
        view.exclude_class += first;
    for (int i = 0; i < flat->n_spans; i++)
    {
        view.spans[i].from += first;
        view.spans[i].until += first;
    }
    return view;
}

static inline int rank_of(const struct points_trial *t, int32_t feature)
{
    return t->tie_rank != NULL ? t->tie_rank[feature] : feature;
}

static inline void check_matches(const struct points_trial *t, int64_t first,
                                 int64_t n, const struct oj_matches *out)
{
    int64_t n_features = t->join->n_features, n_matched = 0;
    ck_assert_int_eq(out->n_rows, n);
    ck_assert_int_eq(out->offset[0], 0);
    ck_assert_int_eq(out->offset[n], out->n_entries);
    for (int64_t i = 0; i < n; i++)
    {
        const uint8_t *truth = t->truth + (first + i) * n_features;
        int64_t n_true = 0;
        for (int64_t f = 0; f < n_features; f++)
            n_true += truth[f];
        for (int64_t p = out->offset[i]; p < out->offset[i + 1]; p++)
        {
            int32_t f = out->join_row[p];
            expect(f >= 0 && f < n_features && truth[f],
                   "seed %llu: row %d (%a %a) is no pair of feature %d",
                   (unsigned long long)seed, (int)(first + i),
                   t->input->x[first + i], t->input->y[first + i], f);
            expect(p == out->offset[i] || t->relation->any_order ||
                       rank_of(t, out->join_row[p - 1]) < rank_of(t, f),
                   "seed %llu: row %d is not in order",
                   (unsigned long long)seed, (int)(first + i));
            expect(out->measure[p] != out->measure[p], "a measure");
        }
        expect(out->offset[i + 1] - out->offset[i] == n_true,
               "seed %llu: row %d (%a %a) has %d pairs, not %d",
               (unsigned long long)seed, (int)(first + i),
               t->input->x[first + i], t->input->y[first + i],
               (int)(out->offset[i + 1] - out->offset[i]), (int)n_true);
        n_matched += n_true > 0;
    }
    ck_assert_int_eq(out->n_matched, n_matched);
    ck_assert_int_eq(out->n_pairs, out->n_entries);
    n_pairs_seen += out->n_pairs;
}

#endif
