/* The answer of a join of points with polygons, held against a table of truths.
 */
#ifndef POINT_MATCHES_H
#define POINT_MATCHES_H

#include "../../../algs/relate/oj_overlapping_parts.h"
#include "../random_numbers.h"
#include "../references.h"

static uint64_t seed;
static int64_t n_pairs_seen, n_shared_seen;

struct points_trial
{
    const struct oj_flat *join, *input;
    const struct oj_relation *relation;
    const int32_t *tie_rank;
    const uint8_t *truth;
};

static struct oj_flat part_of(const struct oj_flat *flat, int64_t first,
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
    return view;
}

/* Known cells take layers no feature of which overlaps with itself. */
static int may_share_lists(const struct oj_flat *join)
{
    uint8_t *overlaps = NULL;
    must(oj_overlapping_parts(join, 1, 1, NULL, &overlaps, &error));
    oj_free(overlaps);
    return overlaps == NULL;
}

static int rank_of(const struct points_trial *t, int32_t feature)
{
    return t->tie_rank != NULL ? t->tie_rank[feature] : feature;
}

/* How many pairs a row has in its shared list; none of them is its own too. */
static int64_t check_shared(const struct points_trial *t, int64_t row,
                            int64_t i, const struct oj_matches *out)
{
    const struct oj_shared_lists *shared = out->shared;
    int64_t first, end;
    if (shared == NULL)
        return 0;
    ck_assert(out->list[i] >= 0 && out->list[i] < shared->n);
    first = shared->offset[out->list[i]];
    end = shared->offset[out->list[i] + 1];
    for (int64_t p = first; p < end; p++)
    {
        int32_t f = shared->feature[p];
        expect(t->truth[row * t->join->n_features + f],
               "seed %llu: row %d (%a %a) is no pair of feature %d, whose list "
               "it has",
               (unsigned long long)seed, (int)row, t->input->x[row],
               t->input->y[row], f);
        expect(p == first || shared->feature[p - 1] < f, "a list's order");
        for (int64_t own = out->offset[i]; own < out->offset[i + 1]; own++)
            expect(out->join_row[own] != f, "seed %llu: a pair twice",
                   (unsigned long long)seed);
    }
    return end - first;
}

static void check_matches(const struct points_trial *t, int64_t first,
                          int64_t n, const struct oj_matches *out)
{
    int64_t n_features = t->join->n_features, n_matched = 0;
    int64_t n_all_shared = 0;
    ck_assert_int_eq(out->n_rows, n);
    ck_assert_int_eq(out->offset[0], 0);
    ck_assert_int_eq(out->offset[n], out->n_entries);
    for (int64_t i = 0; i < n; i++)
    {
        const uint8_t *truth = t->truth + (first + i) * n_features;
        int64_t n_true = 0, n_shared = check_shared(t, first + i, i, out);
        n_all_shared += n_shared;
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
        expect(out->offset[i + 1] - out->offset[i] + n_shared == n_true,
               "seed %llu: row %d (%a %a) has %d pairs, not %d",
               (unsigned long long)seed, (int)(first + i),
               t->input->x[first + i], t->input->y[first + i],
               (int)(out->offset[i + 1] - out->offset[i] + n_shared),
               (int)n_true);
        n_matched += n_true > 0;
    }
    ck_assert_int_eq(out->n_matched, n_matched);
    ck_assert_int_eq(out->n_pairs, out->n_entries + n_all_shared);
    n_pairs_seen += out->n_pairs;
    n_shared_seen += n_all_shared;
}

#endif
