/** For each point of a group, decides which features near the group are among
 *  its nearest, or within its reach, and at which distances.
 *
 *  feature 0 .. n-1      in tie order
 *    first[0] .. first[n]   ranges of their candidates: the segments of a
 *                           feature are consecutive
 *    least2[f][32]          squared distance from each point, up to rounding
 *    inside[f]              bit i: the feature's polygons contain point i
 *    close[f]               bit i: the feature may be in the answer of point i
 *
 *  pairs offset[i] .. offset[i + 1] - 1   pairs of point i, in tie order,
 *                                         measured exactly
 *
 *  The k-th smallest least2 of a point limits the pairs that are measured
 *  exactly: a few more than k, each feature once. They are in tie order, so a
 *  stable sort by distance puts them in the order of the answer; a join within
 *  a reach needs no sort.
 *
 *  Everything here is inlined into cpu_nearest_of_point_groups.c, and compiled
 *  there for several instruction sets. Source: ours. */
#ifndef CPU_GROUP_FEATURES_H
#define CPU_GROUP_FEATURES_H

#include "../../foundations/base/oj_radix_sort.h"
#include "../../pairs/selection/oj_tie_rank_sort.h"
#include "cpu_group_matrix.h"

/* More keys than this are sorted by radix sort. */
#define OJ_FEW_KEYS 40

/* For k up to this, the k-th smallest distance is found for sixteen points at
 * once, which costs O(k) per feature. */
#define OJ_FEW_NEAREST 32

/* Up to this many pairs of a point are sorted by counting; a multiple of
 * OJ_LANES. */
#define OJ_FEW_PAIRS 64

/* Up to this many pairs of a point are sorted by insertion. */
#define OJ_VERY_FEW_PAIRS 10

OJ_INLINE void oj_group_keys_sort_few(struct oj_keyed *key, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
    {
        struct oj_keyed moved = key[i];
        int64_t at = i;
        for (; at > 0 && key[at - 1].key > moved.key; at--)
            key[at] = key[at - 1];
        key[at] = moved;
    }
}

/* Makes room for up to n features: n is the number of candidates plus the
 * number of pairs of a point and a polygon that contains it. */
static inline oj_status oj_group_features_reserve(struct oj_group_features *f,
                                                  int64_t n,
                                                  struct oj_error *err)
{
    OJ_ROOM(f->found, 0, n, f->cap_found, err);
    OJ_ROOM(f->found_of, 0, n, f->cap_found_of, err);
    OJ_ROOM(f->key, 0, 2 * n, f->cap_key, err);
    OJ_ROOM(f->column, 0, n, f->cap_column, err);
    OJ_ROOM(f->first, 0, n + 1, f->cap_first, err);
    OJ_ROOM(f->feature, 0, n, f->cap_feature, err);
    OJ_ROOM(f->nearest_first, 0, n, f->cap_nearest_first, err);
    OJ_ROOM(f->inside, 0, n, f->cap_inside, err);
    OJ_ROOM(f->close, 0, n, f->cap_close, err);
    OJ_ROOM(f->least2, 0, n * OJ_GROUP, f->cap_least2, err);
    return OJ_OK;
}

/* Empties the hash table and gives it room for n features; at least half of its
 * slots stay empty. */
static inline oj_status oj_group_table_clear(struct oj_group_features *f,
                                             int64_t n, struct oj_error *err)
{
    int bits = 6;
    while ((INT64_C(1) << bits) < 2 * n)
        bits++;
    if ((INT64_C(1) << bits) > f->n_slots || ++f->stamp == 0)
    {
        oj_free(f->slot);
        f->slot = NULL;
        f->n_slots = 0;
        OJ_NEW_ZEROED(f->slot, INT64_C(1) << bits, err);
        f->n_slots = INT64_C(1) << bits;
        f->stamp = 1;
    }
    f->shift = 32 - bits;
    f->n = 0;
    return OJ_OK;
}

/* Returns the index of a feature among those found; adds the feature if it is
 * new. */
OJ_INLINE int32_t oj_group_table_find_or_add(struct oj_group_features *f,
                                             int32_t feature)
{
    uint32_t mask = (1u << (32 - f->shift)) - 1;
    uint32_t at = (uint32_t)feature * 0x9E3779B1u >> f->shift;
    while (f->slot[at].stamp == f->stamp && f->slot[at].feature != feature)
        at = (at + 1) & mask;
    if (f->slot[at].stamp != f->stamp)
    {
        f->found[f->n] =
            (struct oj_found_feature){feature, -1, 0, INFINITY, INFINITY};
        f->slot[at] =
            (struct oj_found_slot){feature, (int32_t)f->n++, f->stamp};
    }
    return f->slot[at].place;
}

/* Returns the k-th smallest of the n numbers v, 1 <= k <= n; reorders them.
 * Source: quickselect (Hoare 1961). */
static inline float oj_group_kth_least(float *v, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high)
    {
        float pivot = v[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j)
        {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i <= j)
            {
                float moved = v[i];
                v[i++] = v[j];
                v[j--] = moved;
            }
        }
        if (k - 1 <= j)
            high = j;
        else if (k - 1 >= i)
            low = i;
        else
            break;
    }
    return v[k - 1];
}

/* Collects the features of the candidates, and those whose polygons contain
 * points of the group, in the order in which they are found. */
OJ_INLINE void oj_group_features_find(const struct oj_segments *segments,
                                      struct oj_nearest_scratch *s,
                                      const struct oj_group *g)
{
    struct oj_group_features *f = &s->features;
    int32_t last = -1, last_place = 0;
    for (int64_t j = 0; j < s->n_candidates; j++)
    {
        float low = s->candidate_low[j], high = s->candidate_high[j];
        int32_t feature = segments->feature[s->candidate[j]];
        struct oj_found_feature *found;
        if (feature != last)
            last_place = oj_group_table_find_or_add(f, feature);
        last = feature;
        f->found_of[j] = last_place;
        found = &f->found[last_place];
        found->low = low < found->low ? low : found->low;
        found->high = high < found->high ? high : found->high;
    }
    for (int i = 0; i < g->n && s->cells->n_sets > 0; i++)
    {
        int64_t n;
        const int32_t *feature =
            oj_group_features_containing_point(s, g, i, &n);
        for (int64_t j = 0; j < n; j++)
        {
            struct oj_found_feature *found;
            if (!oj_choice_considers_feature(&s->choice, feature[j]))
                continue;
            found = &f->found[oj_group_table_find_or_add(f, feature[j])];
            found->inside |= 1u << i;
            found->low = -INFINITY;
        }
    }
}

/* Returns the k-th smallest of the upper bounds `high` of the features found:
 * no point of the group is farther from its k-th nearest feature. Returns
 * INFINITY if at most k features were found. */
OJ_INLINE float oj_group_features_kth_upper_bound(struct oj_group_features *f,
                                                  int64_t k)
{
    if (f->n <= k)
        return INFINITY;
    for (int64_t at = 0; at < f->n; at++)
        f->column[at] = f->found[at].high;
    return oj_group_kth_least(f->column, f->n, k);
}

/* Selects the features that may be among the k nearest of a point of the group,
 * and lists them in tie order. Sets their `place` to the index in this list,
 * and `low` to the distance within which segments of the feature are kept. */
OJ_INLINE void oj_group_features_select(const int32_t *tie_rank, double slack,
                                        struct oj_group_features *f, int64_t k)
{
    float within = oj_group_features_kth_upper_bound(f, k);
    float keep = oj_bound_keep_limit(within, slack);
    struct oj_keyed *key = f->key;
    int64_t n = 0, n_near = 0, n_others;
    for (int64_t at = 0; at < f->n; at++)
    {
        struct oj_found_feature *found = &f->found[at];
        float own = oj_bound_keep_limit(found->high, slack);
        uint64_t rank = (uint64_t)oj_tie_rank(tie_rank, found->feature);
        key[n] = (struct oj_keyed){rank, at};
        n += found->low <= keep;
        found->place = -1;
        found->low = own < keep ? own : keep;
    }
    if (n > OJ_FEW_KEYS)
        key = oj_radix_sort(key, key + n, n);
    else
        oj_group_keys_sort_few(key, n);
    for (int64_t at = 0; at < n; at++)
    {
        struct oj_found_feature *found = &f->found[key[at].value];
        f->feature[at] = found->feature;
        f->inside[at] = found->inside;
        found->place = (int32_t)at;
        n_near += found->high <= within;
    }
    f->n = n;
    n_others = n_near;
    n_near = 0;
    for (int64_t at = 0; at < n; at++)
    {
        int is_near = f->found[key[at].value].high <= within;
        f->nearest_first[is_near ? n_near : n_others] = (int32_t)at;
        n_near += is_near;
        n_others += !is_near;
    }
}

/* Sorts the candidates by feature; drops segments that are the nearest of their
 * feature for no point, or whose feature was not selected. */
OJ_INLINE void oj_group_candidates_sort_by_feature(struct oj_nearest_scratch *s)
{
    struct oj_group_features *f = &s->features;
    int64_t *moved = s->candidate, most = s->cap_candidates, sum = 0;
    for (int64_t at = 0; at <= f->n; at++)
        f->first[at] = 0;
    for (int64_t j = 0; j < s->n_candidates; j++)
    {
        const struct oj_found_feature *found = &f->found[f->found_of[j]];
        int is_kept = found->place >= 0 && s->candidate_low[j] <= found->low;
        f->found_of[j] = is_kept ? found->place : -1;
        if (is_kept)
            f->first[found->place]++;
    }
    for (int64_t at = 0; at < f->n; at++)
    {
        int64_t n = f->first[at];
        f->first[at] = sum;
        sum += n;
    }
    for (int64_t j = 0; j < s->n_candidates; j++)
    {
        if (f->found_of[j] >= 0)
            s->sorted[f->first[f->found_of[j]]++] = s->candidate[j];
    }
    /* Each element is now the start of the next feature: shifts them by one. */
    for (int64_t at = f->n; at > 0; at--)
        f->first[at] = f->first[at - 1];
    f->first[0] = 0;
    s->n_candidates = sum;
    s->candidate = s->sorted;
    s->cap_candidates = s->cap_sorted;
    s->sorted = moved;
    s->cap_sorted = most;
}

/* Lists the features of the candidates, and those that contain points of the
 * group, in tie order, and sorts the candidates in this order. */
OJ_INLINE oj_status oj_group_features_list(const struct oj_segments *segments,
                                           const int32_t *tie_rank,
                                           struct oj_nearest_scratch *s,
                                           const struct oj_group *g, int64_t k,
                                           struct oj_error *err)
{
    struct oj_group_features *f = &s->features;
    int64_t most = s->n_candidates;
    for (int i = 0; i < g->n; i++)
    {
        int64_t n;
        (void)oj_group_features_containing_point(s, g, i, &n);
        most += n;
    }
    OJ_TRY(oj_group_features_reserve(f, most, err));
    OJ_TRY(oj_group_table_clear(f, most, err));
    OJ_ROOM(s->sorted, 0, s->cap_candidates, s->cap_sorted, err);
    oj_group_features_find(segments, s, g);
    oj_group_features_select(tie_rank, segments->tree.slack, f, k);
    oj_group_candidates_sort_by_feature(s);
    return OJ_OK;
}

/* Computes least2 of each feature as the minimum over its segments; 0 for
 * points inside of the feature. */
OJ_INLINE void oj_group_features_compute_least2(struct oj_nearest_scratch *s,
                                                const struct oj_group *g)
{
    struct oj_group_features *f = &s->features;
    for (int64_t at = 0; at < f->n; at++)
    {
        float *least2 = f->least2 + at * OJ_GROUP;
        int64_t j = f->first[at], end = f->first[at + 1];
        for (int i = 0; i < g->n; i += OJ_WIDE)
        {
            float least[OJ_WIDE];
            OJ_SIXTEEN least[c] = INFINITY;
            for (int64_t k = j; k < end; k++)
            {
                const float *row = s->matrix + k * OJ_GROUP + i;
                OJ_SIXTEEN least[c] = row[c] < least[c] ? row[c] : least[c];
            }
            OJ_SIXTEEN least2[i + c] = least[c];
        }
        for (uint32_t bits = f->inside[at]; bits != 0; bits &= bits - 1)
            least2[__builtin_ctz(bits)] = 0.0f;
    }
}

/* Sets kth[i] to the k-th smallest of the n numbers row[..][first + i], for
 * sixteen points. k must be at most OJ_FEW_NEAREST and at most n. order lists
 * the indices of the rows: if rows with small numbers come first, most others
 * change nothing. If order is NULL, rows are read in the order of memory. */
OJ_INLINE void oj_group_kth_of_sixteen(const float *row, const int32_t *order,
                                       int64_t n, int64_t k, int first,
                                       float *kth)
{
    float best[OJ_FEW_NEAREST][OJ_WIDE];
    for (int64_t t = 0; t < k; t++)
        OJ_SIXTEEN best[t][c] = INFINITY;
    for (int64_t at = 0; at < n; at++)
    {
        int64_t which = order != NULL ? order[at] : at;
        const float *of = row + which * OJ_GROUP + first;
        int64_t n_best = at < k ? at + 1 : k;
        float moving[OJ_WIDE];
        int any = 0;
        OJ_SIXTEEN any |= of[c] < best[k - 1][c];
        if (!any)
            continue;
        OJ_SIXTEEN moving[c] = of[c];
        for (int64_t t = 0; t < n_best; t++)
        {
            OJ_SIXTEEN
            {
                float here = best[t][c], there = moving[c];
                best[t][c] = there < here ? there : here;
                moving[c] = there < here ? here : there;
            }
        }
    }
    OJ_SIXTEEN kth[c] = best[k - 1][c];
}

/* Sets limit2 to the k-th smallest least2 of each point; INFINITY if there are
 * fewer than k features. */
OJ_INLINE void oj_group_features_kth_least2(struct oj_nearest_scratch *s,
                                            const struct oj_group *g, int64_t k,
                                            float limit2[OJ_GROUP])
{
    struct oj_group_features *f = &s->features;
    for (int i = 0; i < OJ_GROUP; i++)
        limit2[i] = INFINITY;
    if (f->n < k)
        return;
    if (k <= OJ_FEW_NEAREST)
    {
        for (int i = 0; i < g->n; i += OJ_WIDE)
            oj_group_kth_of_sixteen(f->least2, f->nearest_first, f->n, k, i,
                                    limit2 + i);
        return;
    }
    for (int i = 0; i < g->n; i++)
    {
        for (int64_t at = 0; at < f->n; at++)
            f->column[at] = f->least2[at * OJ_GROUP + i];
        limit2[i] = oj_group_kth_least(f->column, f->n, k);
    }
}

/* Stores in the carry, for each feature near the group that has candidates, the
 * one that is nearest to the group's last point, up to rounding. */
OJ_INLINE oj_status oj_group_features_store_carry(
    const struct oj_segments *segments, struct oj_nearest_scratch *s,
    const struct oj_group *g, struct oj_error *err)
{
    const struct oj_group_features *f = &s->features;
    struct oj_nearest_carry *carry = &s->carry;
    int64_t n = 0;
    OJ_ROOM(carry->near, 0, f->n, carry->cap_near, err);
    for (int64_t at = 0; at < f->n; at++)
    {
        int64_t nearest = f->first[at];
        const struct oj_bundle *b;
        const float *of_last;
        int place;
        if (f->first[at] == f->first[at + 1])
            continue;
        of_last = s->matrix + g->n - 1;
        for (int64_t j = nearest + 1; j < f->first[at + 1]; j++)
            nearest = of_last[j * OJ_GROUP] < of_last[nearest * OJ_GROUP]
                          ? j
                          : nearest;
        b = oj_slot_bundle(segments, s->candidate[nearest]);
        place = oj_slot_position_in_bundle(s->candidate[nearest]);
        carry->near[n++] = (struct oj_near_segment){b->ax[place], b->ay[place],
                                                    b->bx[place], b->by[place]};
    }
    carry->n_near = n;
    return OJ_OK;
}

/* Sets *within to an upper bound of the distance from any point of the group to
 * its k-th nearest feature: the maximum, over the points, of the k-th smallest
 * distance to the features near the last group. Sets it to INFINITY if these
 * are fewer than k, if the last point had fewer than k within its reach, if k >
 * OJ_FEW_NEAREST, or if the coordinates are so large that distances cannot be
 * compared. */
OJ_INLINE oj_status oj_group_bound_by_last_group(struct oj_nearest_scratch *s,
                                                 const struct oj_group *g,
                                                 int64_t k, double *within,
                                                 struct oj_error *err)
{
    const struct oj_nearest_carry *carry = &s->carry;
    struct oj_scaled_points points;
    struct oj_scale scale;
    float least2[OJ_GROUP], kth2[OJ_GROUP], most2 = 0.0f;
    double extent = 0.0;
    *within = INFINITY;
    if (k > OJ_FEW_NEAREST || carry->n_near < k ||
        !(carry->distance < INFINITY))
        return OJ_OK;
    for (int64_t j = 0; j < carry->n_near; j++)
    {
        const struct oj_near_segment *to = &carry->near[j];
        extent = oj_group_extent_with_segment(g, extent, to->ax, to->ay, to->bx,
                                              to->by);
    }
    scale = oj_group_scale_of_extent(extent + g->place.h);
    if (scale.inverse_unit == 0.0)
        return OJ_OK;
    OJ_TRY(oj_reserve(&s->matrix, 0, carry->n_near * OJ_GROUP, &s->cap_matrix,
                      sizeof *s->matrix, err));
    oj_group_scale_points(g, scale.inverse_unit, &points);
    for (int i = 0; i < OJ_GROUP; i++)
        least2[i] = INFINITY;
    for (int64_t j = 0; j < carry->n_near; j++)
    {
        const struct oj_near_segment *to = &carry->near[j];
        oj_group_matrix_fill_row(g, scale.inverse_unit, &points, to->ax, to->ay,
                                 to->bx, to->by, s->matrix + j * OJ_GROUP,
                                 least2);
    }
    for (int i = 0; i < g->n; i += OJ_WIDE)
        oj_group_kth_of_sixteen(s->matrix, NULL, carry->n_near, k, i, kth2 + i);
    for (int i = 0; i < g->n; i++)
        most2 = kth2[i] > most2 ? kth2[i] : most2;
    *within = ((double)sqrtf(most2) + 2.0 * (double)scale.off) * (1.0 + 1e-6) /
              scale.inverse_unit;
    return OJ_OK;
}

/* Cuts the squared limit of each point i at cap[i], then widens it by the
 * rounding error. Limits are in units of the matrix. cap[i] is the maximum
 * distance of the pairs of point i, in CRS units, or below 0 if the point has
 * no pairs. */
OJ_INLINE void oj_group_limits_widen(const struct oj_scale *scale, int n,
                                     const double *cap, float limit2[OJ_GROUP])
{
    for (int i = 0; i < n; i++)
    {
        float reach = sqrtf(limit2[i]);
        float most = (float)(cap[i] * scale->inverse_unit) * (1.0f + 1e-6f);
        reach = most < reach ? most : reach;
        reach += 2.0f * scale->off;
        limit2[i] = reach * reach * (1.0f + 1e-6f);
        if (cap[i] < 0.0)
            limit2[i] = -1.0f;
        else if (scale->inverse_unit == 0.0)
            limit2[i] = INFINITY;
    }
    for (int i = n; i % OJ_WIDE != 0; i++)
        limit2[i] = -1.0f;
}

/* Computes for each point the squared limit within which a segment of this
 * feature may be its nearest segment. */
OJ_INLINE void oj_group_limits_of_feature(const float *restrict least2,
                                          float off, int n,
                                          const float *restrict limit2,
                                          float *restrict of_feature)
{
    for (int i = 0; i < n; i += OJ_WIDE)
    {
        OJ_SIXTEEN
        {
            float reach = sqrtf(least2[i + c]) + 2.0f * off;
            float own2 = reach * reach * (1.0f + 1e-6f);
            own2 = own2 < limit2[i + c] ? own2 : limit2[i + c];
            of_feature[i + c] = own2;
        }
    }
}

/* Sets bit i of close[f] if feature f is within limit2 of point i. */
OJ_INLINE void oj_group_features_mark_near(struct oj_nearest_scratch *s,
                                           const struct oj_group *g,
                                           const float *limit2)
{
    struct oj_group_features *f = &s->features;
    for (int64_t at = 0; at < f->n; at++)
        f->close[at] = oj_group_matrix_points_within(f->least2 + at * OJ_GROUP,
                                                     limit2, g->n);
}

/* Lowers distance[i] to the exact distance of point i from the segment of
 * candidate j, for the blocks of eight points that have a bit in `near`. */
OJ_INLINE void oj_group_candidate_measure(const struct oj_segments *segments,
                                          const struct oj_nearest_scratch *s,
                                          const struct oj_group *g, int64_t j,
                                          uint32_t near,
                                          double distance[OJ_GROUP])
{
    const struct oj_bundle *b = oj_slot_bundle(segments, s->candidate[j]);
    int at = oj_slot_position_in_bundle(s->candidate[j]);
    double ax = b->ax[at], ay = b->ay[at], bx = b->bx[at], by = b->by[at];
    for (int first = 0; near != 0; first += OJ_LANES, near >>= OJ_LANES)
    {
        const double *px = g->x + first, *py = g->y + first;
        double *least = distance + first;
        if ((near & 0xffu) == 0)
            continue;
        OJ_EIGHT
        {
            double d = oj_segment_distance_without_branches(px[c], py[c], ax,
                                                            ay, bx, by);
            least[c] = d < least[c] ? d : least[c];
        }
    }
}

/* Sets distance[i] to the exact distance between feature `at` and point i, for
 * the points in close[at]. For other points it is an upper bound of their
 * distance, which may be INFINITY. Returns the candidate nearest to the last
 * point of the group, or -1 if that point is inside of the feature. */
OJ_INLINE int32_t oj_group_feature_measure(const struct oj_segments *segments,
                                           const struct oj_nearest_scratch *s,
                                           const struct oj_group *g,
                                           const struct oj_scale *scale,
                                           const float *limit2, int64_t at,
                                           double distance[OJ_GROUP])
{
    const struct oj_group_features *f = &s->features;
    uint32_t close = f->close[at] & ~f->inside[at];
    int64_t first = f->first[at], end = f->first[at + 1];
    int32_t nearest = -1;
    float of_feature[OJ_GROUP];
    for (int i = 0; i < OJ_GROUP; i++)
        distance[i] = INFINITY;
    if (close != 0 && end > first + 1)
        oj_group_limits_of_feature(f->least2 + at * OJ_GROUP, scale->off, g->n,
                                   limit2, of_feature);
    for (int64_t j = first; j < end && close != 0; j++)
    {
        double of_last = distance[g->n - 1];
        uint32_t near = close;
        if (end > first + 1)
            near &= oj_group_matrix_points_within(s->matrix + j * OJ_GROUP,
                                                  of_feature, g->n);
        oj_group_candidate_measure(segments, s, g, j, near, distance);
        nearest = distance[g->n - 1] < of_last ? (int32_t)j : nearest;
    }
    for (uint32_t inside = f->inside[at]; inside != 0; inside &= inside - 1)
        distance[__builtin_ctz(inside)] = 0.0;
    return f->inside[at] >> (g->n - 1) & 1u ? -1 : nearest;
}

/* Makes room for the pairs that are marked in `close`, and sets the offsets of
 * the points. */
OJ_INLINE oj_status oj_group_pairs_reserve(struct oj_group_features *f,
                                           const struct oj_group *g,
                                           struct oj_error *err)
{
    uint32_t n_pairs[OJ_GROUP] = {0};
    for (int64_t at = 0; at < f->n; at++)
    {
        uint32_t close = f->close[at];
        for (int i = 0; i < OJ_GROUP; i += OJ_WIDE)
            OJ_SIXTEEN n_pairs[i + c] += close >> ((uint32_t)(i + c)) & 1u;
    }
    f->offset[0] = 0;
    for (int i = 0; i < g->n; i++)
    {
        f->end[i] = f->offset[i];
        f->offset[i + 1] = f->offset[i] + n_pairs[i];
    }
    OJ_ROOM(f->pair_of, 0, f->offset[g->n], f->cap_pair_of, err);
    OJ_ROOM(f->pair_distance, 0, f->offset[g->n], f->cap_pair_distance, err);
    OJ_ROOM(f->last_candidate, 0, f->n, f->cap_last_candidate, err);
    return OJ_OK;
}

/* Measures the pairs of points and features that are marked in `close`
 * exactly: segment by segment, for eight points at once, which takes half the
 * time of measuring single pairs. */
OJ_INLINE oj_status oj_group_features_measure(
    const struct oj_segments *segments, struct oj_nearest_scratch *s,
    const struct oj_group *g, const struct oj_scale *scale, const double *cap,
    const float *limit2, struct oj_error *err)
{
    struct oj_group_features *f = &s->features;
    OJ_TRY(oj_group_pairs_reserve(f, g, err));
    for (int32_t at = 0; at < f->n; at++)
    {
        double distance[OJ_GROUP];
        int64_t last = f->end[g->n - 1] - f->offset[g->n - 1];
        if (f->close[at] == 0)
            continue;
        f->last_candidate[last] = oj_group_feature_measure(
            segments, s, g, scale, limit2, at, distance);
        for (uint32_t bits = f->close[at]; bits != 0; bits &= bits - 1)
        {
            int i = __builtin_ctz(bits);
            double d = distance[i];
            int64_t end = f->end[i];
            if (!(d <= cap[i]) || !(d < INFINITY))
                continue;
            f->pair_of[end] = f->feature[at];
            f->pair_distance[end] = d;
            f->end[i] = end + 1;
        }
    }
    return OJ_OK;
}

/* Sorts n pairs by distance into sorted_of and sorted_distance; stable. For
 * very few pairs. */
OJ_INLINE void oj_group_pairs_sort_by_insertion(int n, const int32_t *of,
                                                const double *distance,
                                                int32_t *sorted_of,
                                                double *sorted_distance)
{
    for (int i = 0; i < n; i++)
    {
        int at = i;
        for (; at > 0 && sorted_distance[at - 1] > distance[i]; at--)
        {
            sorted_of[at] = sorted_of[at - 1];
            sorted_distance[at] = sorted_distance[at - 1];
        }
        sorted_of[at] = of[i];
        sorted_distance[at] = distance[i];
    }
}

/* Sorts n pairs by distance into sorted_of and sorted_distance; stable. For few
 * pairs: the position of a pair is the number of pairs that precede it.
 * Distances are compared as the integers of their bits. The key of a lane is
 * raised by one if its pair follows the pair with which it is compared, so that
 * equal distances keep their order. */
OJ_INLINE void oj_group_pairs_sort_few(int n, const int32_t *of,
                                       const double *distance,
                                       int32_t *sorted_of,
                                       double *sorted_distance)
{
    static const int64_t raise[OJ_LANES][OJ_LANES] = {
        {0, 1, 1, 1, 1, 1, 1, 1}, {0, 0, 1, 1, 1, 1, 1, 1},
        {0, 0, 0, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 1, 1, 1, 1},
        {0, 0, 0, 0, 0, 1, 1, 1}, {0, 0, 0, 0, 0, 0, 1, 1},
        {0, 0, 0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 0, 0, 0}};
    int64_t key[OJ_FEW_PAIRS];
    int32_t place[OJ_FEW_PAIRS];
    for (int i = 0; i < n; i++)
        memcpy(&key[i], &distance[i], sizeof key[i]); /* integers have the order
                                                         of doubles, since no
                                                         distance is negative */
    for (int i = n; i % OJ_LANES != 0; i++)
        key[i] = INT64_C(0x7FF0000000000000); /* infinity */
    for (int i = 0; i < n; i += OJ_LANES)
    {
        int64_t before[OJ_LANES], raised[OJ_LANES];
        OJ_EIGHT before[c] = 0;
        OJ_EIGHT raised[c] = key[i + c] + 1;
        for (int j = 0; j < i; j++)
            OJ_EIGHT before[c] += key[j] < raised[c];
        for (int j = i; j < n && j < i + OJ_LANES; j++)
            OJ_EIGHT before[c] += key[j] < key[i + c] + raise[j - i][c];
        for (int j = i + OJ_LANES; j < n; j++)
            OJ_EIGHT before[c] += key[j] < key[i + c];
        OJ_EIGHT place[i + c] = (int32_t)before[c];
    }
    for (int i = 0; i < n; i++)
    {
        sorted_of[place[i]] = of[i];
        sorted_distance[place[i]] = distance[i];
    }
}

#endif
