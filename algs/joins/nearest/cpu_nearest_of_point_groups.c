#ifdef __SANITIZE_ADDRESS__
#define OJ_FEW_COPIES /* otherwise this file takes a minute to compile */
#endif

#include "cpu_nearest_search.h"

#include "../../../flatten/base/oj_clock.h"
#include "cpu_group_features.h"

#include <string.h>

#define NO_FEATURE (-1)

/* --- groups ---------------------------------------------------------------
 *
 * Finds, for a group of neighbouring points, the segments that can be nearest
 * to one of them: the second half of a search that cpu_point_patches.h begins.
 * A segment is a candidate if its lower bound of the distance from the group's
 * box is within the bound of the search.
 *
 * Parameters of several functions: `chooses` is 0 if every row considers all
 * segments, so that inner loops test no conditions; a compile-time constant in
 * answers of one feature. `has_high` is 1 if candidates also have upper bounds
 * of their distances. */

/* Up to this many candidates are not filtered again by the bounds of single
 * features. */
#define OJ_FEW_CANDIDATES 16

/* A group with more candidates than this is halved; for k > 1 the limit is four
 * times as high, plus 16 per expected feature. */
#define OJ_MANY_CANDIDATES 256

/* Adapts the size limit of patches or groups: it grows if they find few
 * candidates (n < few) and shrinks if they find many. This moves work between
 * the levels and never changes an answer. */
OJ_INLINE void oj_size_limit_adapt(double *limit, int64_t n, int64_t few,
                                   int64_t many, double base)
{
    if (n > many)
        *limit *= 0.7;
    else if (n < few)
        *limit *= 1.1;
    if (!(*limit > base / 64.0))
        *limit = base / 64.0;
    if (*limit > base * 16.0)
        *limit = base * 16.0;
}

/* --- candidates ----------------------------------------------------------- */

/* Moves candidate `from` to index n of the kept ones. has_high: 1 if candidates
 * also have an upper bound of their distance (candidate_high); it is a constant
 * in each caller, so that its branch is compiled away. */
OJ_INLINE void oj_candidate_move(struct oj_nearest_scratch *s, int64_t n,
                                 int64_t from, int has_high)
{
    s->candidate[n] = s->candidate[from];
    s->candidate_low[n] = s->candidate_low[from];
    if (has_high)
        s->candidate_high[n] = s->candidate_high[from];
}

/* Drops the candidates whose lower bound of the distance exceeds keep, the
 * bound of the search. */
OJ_INLINE void oj_candidates_compact(struct oj_nearest_scratch *s, float keep,
                                     int has_high)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->n_candidates; i++)
    {
        oj_candidate_move(s, n, i, has_high);
        n += s->candidate_low[n] <= keep;
    }
    s->n_candidates = n;
}

/* Drops the candidates beyond the bounds of their own features. */
static inline void oj_candidates_compact_by_feature(
    const struct oj_segments *segments, struct oj_nearest_scratch *s,
    const struct oj_points_box *place, const struct oj_bound *bound)
{
    struct oj_feature_keep_limit of = {-1, 0.0f};
    int64_t n = 0;
    oj_feature_bounds_begin(s);
    for (int64_t i = 0; i < s->n_candidates; i++)
    {
        int64_t slot = s->candidate[i];
        float low = s->candidate_low[i];
        oj_candidate_move(s, n, i, 1);
        n += oj_feature_bounds_may_need_segment(
            s, place, bound, segments->feature[slot], low, &of);
    }
    s->n_candidates = n;
}

/* Makes room for the segments of one more bundle. */
static inline oj_status oj_candidates_reserve(struct oj_nearest_scratch *s,
                                              struct oj_error *err)
{
    int64_t n = s->n_candidates + OJ_BUNDLE;
    OJ_ROOM(s->candidate_low, s->n_candidates, n, s->cap_low, err);
    OJ_ROOM(s->candidate_high, s->n_candidates, n, s->cap_high, err);
    return oj_reserve(&s->candidate, s->n_candidates, n, &s->cap_candidates,
                      sizeof *s->candidate, err);
}

/* Measures a bundle, tightens the bound if `searches` is set, and appends the
 * segments within the bound to the candidates. */
OJ_INLINE oj_status oj_visit_bundle(
    const struct oj_segments *segments, struct oj_nearest_scratch *s,
    const struct oj_points_box *place, int64_t k, int chooses, int has_high,
    int searches, int32_t bundle, struct oj_bound *bound, struct oj_error *err)
{
    double d2[OJ_BUNDLE];
    float low[OJ_BUNDLE], high[OJ_BUNDLE];
    if (k > 1 && bound->has_corners)
        oj_bundle_measure(&segments->bundle[bundle], place, bound->corner_keep,
                          d2, low);
    else
        oj_bundle_measure(&segments->bundle[bundle], place, NULL, d2, low);
    if (chooses && !s->choice.is_all)
        oj_choice_mask_segments(segments, &s->choice, bundle, bound->keep, d2,
                                low);
    if (has_high)
        oj_bundle_upper_bounds(place, d2, high);
    oj_bound_tighten(segments, s, place, k, chooses, searches, bundle, d2,
                     bound);
    if (s->n_candidates + OJ_BUNDLE > s->cap_candidates)
    {
        oj_candidates_compact(s, bound->keep, has_high);
        OJ_TRY(oj_candidates_reserve(s, err));
    }
    for (int i = 0; i < OJ_BUNDLE; i++)
    {
        s->candidate[s->n_candidates] = (int64_t)bundle * OJ_BUNDLE + i;
        s->candidate_low[s->n_candidates] = low[i];
        if (has_high)
            s->candidate_high[s->n_candidates] = high[i];
        s->n_candidates += low[i] <= bound->keep;
    }
    return OJ_OK;
}

/* Sets d2 of the front's boxes to their squared distances from q, the box of
 * the group, or to infinity if the bounds of all corners exclude them
 * (oj_boxes_exclude_by_corners()). Returns the index of the nearest box in the
 * front. */
OJ_INLINE int64_t oj_front_measure_boxes(struct oj_front *front,
                                         const float q[4], float reach2,
                                         const struct oj_corner_boxes *corners)
{
    float least[OJ_LANES];
    int32_t at[OJ_LANES];
    int nearest = 0;
    OJ_EIGHT
    {
        least[c] = INFINITY;
        at[c] = 0;
    }
    for (int32_t i = 0; i * OJ_FANOUT < front->n; i++)
    {
        struct oj_front_block *block = &front->block[i];
        oj_tree_node_distances2(&block->box, q, block->d2);
        oj_boxes_exclude_by_corners(&block->box, corners, reach2, block->d2);
        OJ_EIGHT
        {
            float d2 = block->d2[c];
            at[c] = d2 < least[c] ? i : at[c];
            least[c] = d2 < least[c] ? d2 : least[c];
        }
    }
    for (int c = 1; c < OJ_LANES; c++)
        nearest = least[c] < least[nearest] ? c : nearest;
    return (int64_t)at[nearest] * OJ_FANOUT + nearest;
}

/* Lists in s->near the indices of the front's boxes within reach2. */
OJ_INLINE void oj_front_list_near_boxes(struct oj_nearest_scratch *s,
                                        float reach2)
{
    const struct oj_front *front = &s->near_bundles;
    int32_t n = 0;
    for (int32_t i = 0; i * OJ_FANOUT < front->n; i++)
    {
        const float *d2 = front->block[i].d2;
        int any = 0;
        OJ_EIGHT any |= d2[c] <= reach2;
        if (!any)
            continue;
        for (int32_t c = 0; c < OJ_FANOUT; c++)
        {
            s->near[n] = i * OJ_FANOUT + c;
            n += d2[c] <= reach2;
        }
    }
    s->n_near = n;
}

/* Visits the box with index `nearest` in the front before all others: it gives
 * a bound that excludes most of them. */
OJ_INLINE oj_status oj_front_visit_nearest_box(
    const struct oj_segments *segments, struct oj_nearest_scratch *s,
    const struct oj_points_box *place, int64_t k, int chooses, int has_high,
    int64_t nearest, struct oj_bound *bound, struct oj_error *err)
{
    struct oj_front_block *block = &s->near_bundles.block[nearest / OJ_FANOUT];
    int lane = (int)(nearest % OJ_FANOUT);
    if (block->d2[lane] > bound->reach2)
        return OJ_OK;
    OJ_TRY(oj_visit_bundle(segments, s, place, k, chooses, has_high, 1,
                           block->entry[lane], bound, err));
    block->d2[lane] = INFINITY;
    return OJ_OK;
}

/* Stores in s->candidate the segments that can be among the k nearest of a
 * point of the group, within cap. If they are too many, sets s->too_many to 1
 * instead. expected is the estimated number of features per point; within is an
 * upper bound of the distance from each point to its k-th nearest feature. */
OJ_INLINE oj_status oj_collect_candidates(const struct oj_segments *segments,
                                          struct oj_nearest_scratch *s,
                                          const struct oj_points_box *place,
                                          int64_t k, int chooses, int has_high,
                                          int64_t expected, double cap,
                                          double within, struct oj_error *err)
{
    const struct oj_tree *tree = &segments->tree;
    struct oj_front *front = &s->near_bundles;
    struct oj_bound bound = oj_bound_make(tree, cap);
    struct oj_corner_boxes corners;
    int64_t many = OJ_MANY_CANDIDATES + 1, check_at;
    int64_t nearest;
    int searches;
    float q[4], keep;
    if (k > 1) /* a feature may have several segments */
        many = 4 * (OJ_MANY_CANDIDATES + 4 * expected);
    check_at = many;
    s->n_candidates = 0;
    s->too_many = 0;
    searches = oj_bound_begin(tree, s, place, k, &bound);
    if (within < bound.within)
        oj_bound_set(&bound, tree, within);
    keep = bound.keep;
    if (front->n == 0)
        return OJ_OK;
    OJ_TRY(oj_candidates_reserve(s, err));
    OJ_ROOM(s->near, 0, front->n + OJ_FANOUT, s->cap_near, err);
    oj_tree_convert_box(tree, &place->box, q);
    corners = oj_corner_boxes_make(tree, k, &bound, q);
    nearest = oj_front_measure_boxes(front, q, bound.reach2, &corners);
    if (searches)
        OJ_TRY(oj_front_visit_nearest_box(segments, s, place, k, chooses,
                                          has_high, nearest, &bound, err));
    oj_front_list_near_boxes(s, bound.reach2);
    for (int32_t i = 0; i < s->n_near; i++)
    {
        const struct oj_front_block *block =
            &front->block[(uint32_t)s->near[i] / OJ_FANOUT];
        uint32_t lane = (uint32_t)s->near[i] % OJ_FANOUT;
        if (block->d2[lane] > bound.reach2)
            continue;
        OJ_TRY(oj_visit_bundle(segments, s, place, k, chooses, has_high,
                               searches, block->entry[lane], &bound, err));
        if (s->n_candidates > check_at)
        {
            oj_candidates_compact(s, bound.keep, has_high);
            if (k > 1 && s->n_candidates > many)
                oj_candidates_compact_by_feature(segments, s, place, &bound);
            s->too_many = place->h > 0.0 && s->n_candidates > many;
            if (s->too_many)
                return OJ_OK;
            check_at = 2 * s->n_candidates + many;
        }
    }
    if (bound.keep < keep)
        oj_candidates_compact(s, bound.keep, has_high);
    if (k > 1 && searches && s->n_best < k &&
        s->n_candidates > OJ_FEW_CANDIDATES)
        oj_candidates_compact_by_feature(segments, s, place, &bound);
    return OJ_OK;
}

/* --- answers -------------------------------------------------------------- */

/* Kind of answer of each point; a compile-time constant in the functions below.
 */
enum nearest_answer
{
    ONE_NEAREST,    /* the nearest feature; of equally near ones the first in
                       tie order */
    ONE_ALLOWED,    /* like ONE_NEAREST, among the features whose class the
                       point does not exclude */
    NEAREST_TIES,   /* all features at the minimum distance */
    NEAREST_LISTED, /* lists of k features or of all within reach, maybe
                       filtered */
    FEW_WITHIN,     /* all features within reach, for points that have few */
    FEW_NEAREST     /* k features, for small k without ties */
};

/* --- the nearest of each point of a group --------------------------------- */

/* The best feature of each point so far: the nearest, of equally near ones the
 * first in tie order. */
struct group_best
{
    double distance[OJ_GROUP];
    int32_t feature[OJ_GROUP];
    uint32_t tied; /* bit i: other features may be equally near to point i */
};

/* Returns 1 if feature a precedes b in tie order, or if b is NO_FEATURE. */
OJ_INLINE int precedes_in_tie_order(const struct oj_cpu_index *index, int32_t a,
                                    int32_t b)
{
    if (b == NO_FEATURE)
        return 1;
    if (index->tie_rank == NULL)
        return a < b;
    return index->tie_rank[a] < index->tie_rank[b];
}

/* Sets the best feature of each point that lies in polygons to the first of
 * these in tie order, at distance 0; other points get none. Returns the number
 * of points in polygons. */
OJ_INLINE int set_containing_as_nearest(const struct oj_cpu_index *index,
                                        const struct oj_nearest_scratch *s,
                                        const struct oj_group *g, int chooses,
                                        int excludes, struct group_best *best)
{
    int n_inside = 0;
    best->tied = 0;
    for (int i = 0; i < g->n; i++)
    {
        int64_t n;
        const int32_t *feature =
            oj_group_features_containing_point(s, g, i, &n);
        best->feature[i] = NO_FEATURE;
        int64_t n_taken = 0;
        for (int64_t k = 0; k < n; k++)
        {
            if (chooses &&
                (!oj_choice_considers_feature(&s->choice, feature[k]) ||
                 (excludes &&
                  oj_excluded_class(&s->choice, feature[k]) == g->excluded[i])))
                continue;
            n_taken++;
            if (precedes_in_tie_order(index, feature[k], best->feature[i]))
                best->feature[i] = feature[k];
        }
        best->distance[i] = n_taken > 0 ? 0.0 : INFINITY;
        best->tied |= (uint32_t)(n_taken > 1) << i;
        n_inside += n_taken > 0;
    }
    return n_inside;
}

/* Measures the pairs exactly, updates the best features of their points, and
 * empties *p. */
OJ_INLINE void measure_pairs_and_update_best(const struct oj_cpu_index *index,
                                             const struct oj_nearest_scratch *s,
                                             const struct oj_group *g,
                                             int marks_ties,
                                             struct oj_group_pairs *p,
                                             struct group_best *best)
{
    double distance[OJ_PAIRS_AT_ONCE + OJ_GROUP];
    int n = p->n;
    oj_group_pairs_distance(&index->segments, s, g, p, distance);
    for (int i = 0; i < n; i++)
    {
        int at = p->point[i];
        int32_t feature =
            index->segments.feature[s->candidate[p->candidate[i]]];
        double d = distance[i];
        int wins = (d < best->distance[at]) |
                   ((d == best->distance[at]) & (d < INFINITY) &
                    precedes_in_tie_order(index, feature, best->feature[at]));
        if (marks_ties)
        {
            uint32_t other =
                (d == best->distance[at]) & (feature != best->feature[at]);
            uint32_t nearer = d < best->distance[at];
            best->tied &= ~(nearer << at);
            best->tied |= other << at;
        }
        best->distance[at] = wins ? d : best->distance[at];
        best->feature[at] = wins ? feature : best->feature[at];
    }
    p->n = 0;
}

/* Adds the pairs of candidate j with the points of the group that are within
 * limit2 of it. */
OJ_INLINE void add_pairs_within_limit(const struct oj_nearest_scratch *s,
                                      const struct oj_group *g,
                                      const float *limit2, int32_t j,
                                      struct oj_group_pairs *p)
{
    uint32_t close = oj_group_matrix_points_within(
        s->matrix + (int64_t)j * OJ_GROUP, limit2, g->n);
    for (; close != 0; close &= close - 1)
    {
        p->point[p->n] = __builtin_ctz(close);
        p->candidate[p->n++] = j;
    }
}

/* Finds the nearest feature of each point of the group among the candidates.
 * On entry *best has the features that contain points. */
OJ_INLINE void find_nearest_of_group(const struct oj_cpu_index *index,
                                     struct oj_nearest_scratch *s,
                                     const struct oj_group *g,
                                     enum nearest_answer answer,
                                     struct group_best *best)
{
    float least2[OJ_GROUP], limit2[OJ_GROUP];
    struct oj_scale scale =
        oj_group_matrix_fill(&index->segments, s, g, least2);
    struct oj_group_pairs pairs;
    int marks_ties = answer == NEAREST_TIES;
    if (answer == ONE_ALLOWED)
        oj_group_matrix_mask_excluded(&index->segments, s, g, least2);
    pairs.n = 0;
    for (int i = 0; i < g->n; i++)
    {
        int inside = best->feature[i] != NO_FEATURE;
        float reach = (inside ? 0.0f : sqrtf(least2[i])) + 2.0f * scale.off;
        limit2[i] = reach * reach * (1.0f + 1e-6f);
    }
    for (int i = g->n; i % OJ_WIDE != 0; i++)
        limit2[i] = -1.0f;
    /* measures all pairs whose order rounding may have changed */
    for (int32_t j = 0; j < s->n_candidates; j++)
    {
        add_pairs_within_limit(s, g, limit2, j, &pairs);
        if (pairs.n > OJ_PAIRS_AT_ONCE)
            measure_pairs_and_update_best(index, s, g, marks_ties, &pairs,
                                          best);
    }
    measure_pairs_and_update_best(index, s, g, marks_ties, &pairs, best);
}

/* State of a call of oj_nearest_search_points(). */
struct nearest_search
{
    const struct oj_cpu_index *index;
    struct oj_nearest_scratch *s;
    const struct oj_nearest_output *to;
    int64_t k; /* number of features to find for each point, or OJ_EVERY_PAIR
                  for all within reach */
    int lists_all_within; /* 1: for the points of the present patch all features
                             within reach are found, and cut at k once they are
                             sorted (may_list_all_within()) */
    int is_filtered;
    int excludes_one_class; /* 1: the filter only excludes one class of features
                               from each row */
    int has_reaches; /* 1: rows may have maximum distances of their own, or may
                        be unable to have pairs (oj_feature_may_pair()) */
};

/* Returns the number of features that lists hold before they are sorted. */
static int64_t count_features_to_list(const struct nearest_search *search)
{
    return search->lists_all_within ? OJ_EVERY_PAIR : search->k;
}

static int32_t input_row_of_point(const struct oj_nearest_output *to,
                                  const struct oj_ordered_point *point)
{
    return to->row == NULL ? (int32_t)point->index : to->row[point->index];
}

/* Returns the feature with this FID, or OJ_NO_CLASS if there is none. FIDs must
 * ascend. */
static int32_t find_feature_of_fid(const struct oj_flat *flat, int64_t fid)
{
    int64_t low = 0, high = flat->n_features;
    uint64_t at = (uint64_t)fid - (uint64_t)flat->fid[0];
    if (at < (uint64_t)high && flat->fid[at] == fid)
        return (int32_t)at;
    while (low < high)
    {
        int64_t middle = low + (high - low) / 2;
        if (flat->fid[middle] < fid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < flat->n_features && flat->fid[low] == fid ? (int32_t)low
                                                           : OJ_NO_CLASS;
}

/* Returns the class that a row excludes, or OJ_NO_CLASS. If the row excludes
 * its own FID, each feature is a class. */
static int32_t excluded_class_of_row(const struct oj_cpu_index *index,
                                     const struct oj_pair_filter *filter,
                                     int32_t row)
{
    const struct oj_flat *input = filter->input;
    if (index->relation.exclude_self)
        return find_feature_of_fid(filter->join_side, input->fid[row]);
    return input->exclude_class[row] >= 0 ? input->exclude_class[row]
                                          : OJ_NO_CLASS;
}

/* Returns the maximum distance of the point's pairs, or a number below 0 if it
 * can have no pairs. */
static double reach_of_point(const struct nearest_search *search,
                             const struct oj_ordered_point *point)
{
    const struct oj_flat *input;
    int32_t row;
    if (!search->has_reaches)
        return search->index->relation.max_distance;
    input = search->to->filter->input;
    row = input_row_of_point(search->to, point);
    if (!oj_feature_may_pair(input, row))
        return -1.0;
    return input->max_distance != NULL ? input->max_distance[row]
                                       : search->index->relation.max_distance;
}

/* Returns the maximum reach of n points, at least 0. */
OJ_INLINE double greatest_reach(const struct nearest_search *search, int64_t n,
                                const struct oj_ordered_point *point)
{
    double most = 0.0;
    if (!search->has_reaches)
        return search->index->relation.max_distance;
    for (int64_t i = 0; i < n; i++)
    {
        double reach = reach_of_point(search, &point[i]);
        most = reach > most ? reach : most;
    }
    return most;
}

/* The pairs of a point, in the order of its answer. A view. */
struct point_pairs
{
    int64_t n;
    const int32_t *feature;
    const double *distance;
};

/* Returns the number of pairs at which the sorted list of a point is cut. If
 * pairs are filtered, all that were found remain, and the filter cuts them. */
static int64_t count_features_to_keep(const struct nearest_search *search)
{
    return search->is_filtered ? count_features_to_list(search) : search->k;
}

/* Sorts the n > OJ_FEW_PAIRS pairs of a point by a ranking, and keeps the first
 * of them in place. *out is a view of these. */
static oj_status rank_many_pairs_of_point(struct nearest_search *search,
                                          int64_t first, int64_t n,
                                          struct point_pairs *out,
                                          struct oj_error *err)
{
    struct oj_group_features *f = &search->s->features;
    struct oj_ranking *ranking = &search->s->ranking;
    ranking->k = count_features_to_keep(search);
    ranking->max_distance = INFINITY;
    oj_ranking_start(ranking);
    for (int64_t i = first; i < first + n; i++)
        OJ_TRY(
            oj_ranking_add(ranking, f->pair_of[i], f->pair_distance[i], err));
    oj_ranking_finish(ranking);
    for (int64_t i = 0; i < ranking->n; i++)
    {
        f->pair_of[first + i] = ranking->list[i].feature;
        f->pair_distance[first + i] = ranking->list[i].distance;
    }
    *out = (struct point_pairs){ranking->n, f->pair_of + first,
                                f->pair_distance + first};
    return OJ_OK;
}

/* Sorts the pairs of point i of the group and cuts them at k, or after the
 * pairs that tie with the k-th. feature and distance have room for OJ_FEW_PAIRS
 * pairs; *out is a view of them or of the scratch. */
OJ_INLINE oj_status sort_pairs_of_point(struct nearest_search *search, int i,
                                        int32_t *feature, double *distance,
                                        struct point_pairs *out,
                                        struct oj_error *err)
{
    struct oj_group_features *f = &search->s->features;
    int64_t first = f->offset[i], n = f->end[i] - first;
    int64_t k = count_features_to_keep(search);
    const int32_t *of = f->pair_of + first;
    if (search->k == OJ_EVERY_PAIR || n < 2)
    {
        *out = (struct point_pairs){n, of, f->pair_distance + first};
        return OJ_OK;
    }
    if (n > OJ_FEW_PAIRS)
        return rank_many_pairs_of_point(search, first, n, out, err);
    if (n <= OJ_VERY_FEW_PAIRS)
        oj_group_pairs_sort_by_insertion((int)n, of, f->pair_distance + first,
                                         feature, distance);
    else
        oj_group_pairs_sort_few((int)n, of, f->pair_distance + first, feature,
                                distance);
    if (n > k)
    {
        int64_t kept = k;
        while (search->index->relation.ties == OJ_TIES_ALL && kept < n &&
               distance[kept] == distance[k - 1])
            kept++;
        n = kept;
    }
    *out = (struct point_pairs){n, feature, distance};
    return OJ_OK;
}

/* Prefetches the lists of the group's rows, which are scattered in memory.
 * Without this, the writes take a third of the time of SpatialBench's Q12. */
OJ_INLINE void prefetch_lists(const struct nearest_search *search,
                              const struct oj_group *g)
{
    const struct oj_nearest_output *to = search->to;
    int64_t last = to->list_size - 1;
    for (int i = 0; to->lists != NULL && i < g->n; i++)
    {
        int64_t at = input_row_of_point(to, &g->point[i]) * to->list_size;
        __builtin_prefetch(&to->lists->join_row[at], 1);
        __builtin_prefetch(&to->lists->measure[at], 1);
        __builtin_prefetch(&to->lists->measure[at + last], 1);
    }
}

/* Stores the pairs of a row in its list; unused entries get join_row -1. */
static void store_pairs_in_list(const struct oj_nearest_output *to, int32_t row,
                                const struct point_pairs *pairs)
{
    int64_t n = to->list_size, at = row * n;
    for (int64_t i = 0; i < pairs->n; i++)
    {
        to->lists->join_row[at + i] = pairs->feature[i];
        to->lists->measure[at + i] = pairs->distance[i];
    }
    for (int64_t i = pairs->n; i < n; i++)
        to->lists->join_row[at + i] = NO_FEATURE;
}

static oj_status store_pairs(const struct oj_nearest_output *to, int32_t row,
                             const struct point_pairs *pairs,
                             struct oj_error *err)
{
    struct oj_answers *answers = to->answers;
    int64_t at = answers->n_entries;
    if (to->lists != NULL)
    {
        store_pairs_in_list(to, row, pairs);
        return OJ_OK;
    }
    if (pairs->n == 0) /* answers may have no arrays yet */
        return OJ_OK;
    OJ_TRY(oj_answers_reserve(answers, pairs->n, err));
    for (int64_t i = 0; i < pairs->n; i++)
        answers->row[at + i] = row;
    memcpy(answers->feature + at, pairs->feature,
           (size_t)pairs->n * sizeof *pairs->feature);
    memcpy(answers->distance + at, pairs->distance,
           (size_t)pairs->n * sizeof *pairs->distance);
    answers->n_entries = at + pairs->n;
    return OJ_OK;
}

/* Stores the only pair of a row, or none (n is 0). */
static void store_one_pair(const struct oj_nearest_output *to, int32_t row,
                           int64_t n, const struct point_pairs *pairs)
{
    to->ones->feature[row] = n > 0 ? pairs->feature[0] : NO_FEATURE;
    to->ones->distance[row] = n > 0 ? pairs->distance[0] : (double)NAN;
}

/* Keeps the pairs of a row that pass the filter, up to the k-th and those that
 * tie with it. Kept pairs move to the front and stay in order. */
static struct point_pairs filter_pairs(const struct nearest_search *search,
                                       int32_t row, int32_t *feature,
                                       double *distance, int64_t n)
{
    const struct oj_relation *relation = &search->index->relation;
    const int32_t *class_of = search->index->exclude_class;
    int32_t excluded = OJ_NO_CLASS;
    int64_t kept = 0;
    if (search->excludes_one_class)
        excluded =
            excluded_class_of_row(search->index, search->to->filter, row);
    for (int64_t i = 0; i < n; i++)
    {
        if (kept >= relation->k && (relation->ties != OJ_TIES_ALL ||
                                    distance[i] != distance[relation->k - 1]))
            break;
        if (search->excludes_one_class
                ? (class_of != NULL ? class_of[feature[i]] : feature[i]) ==
                      excluded
                : distance[i] < relation->min_distance ||
                      !oj_pair_filter_accepts(search->to->filter, row,
                                              feature[i]))
            continue;
        feature[kept] = feature[i];
        distance[kept++] = distance[i];
    }
    return (struct point_pairs){kept, feature, distance};
}

static oj_status add_point_to_retry(struct oj_nearest_scratch *s,
                                    const struct oj_ordered_point *point,
                                    struct oj_error *err)
{
    OJ_ROOM(s->open, s->n_open, s->n_open + 1, s->cap_open, err);
    s->open[s->n_open++] = *point;
    return OJ_OK;
}

/* Stores the pairs of a point that pass the filter. If fewer than k pass and
 * there are more features to find, adds the point to the open ones instead. */
static oj_status store_filtered_pairs(struct nearest_search *search,
                                      const struct oj_ordered_point *point,
                                      const struct point_pairs *found,
                                      struct oj_error *err)
{
    const struct oj_nearest_output *to = search->to;
    int32_t row = input_row_of_point(to, point);
    struct point_pairs pairs =
        filter_pairs(search, row, (int32_t *)(uintptr_t)found->feature,
                     (double *)(uintptr_t)found->distance, found->n);
    if (pairs.n < search->index->relation.k &&
        found->n >= count_features_to_list(search) &&
        search->k < search->s->choice.n_features)
        return add_point_to_retry(search->s, point, err);
    if (to->ones == NULL)
        return store_pairs(to, row, &pairs, err);
    store_one_pair(to, row, pairs.n, &pairs);
    return OJ_OK;
}

/* Measures the features near the group and lists those that can be in the
 * answer of each point. */
OJ_INLINE oj_status list_pairs_of_group(struct nearest_search *search,
                                        const struct oj_group *g,
                                        struct oj_error *err)
{
    const struct oj_cpu_index *index = search->index;
    struct oj_nearest_scratch *s = search->s;
    float least2[OJ_GROUP], limit2[OJ_GROUP];
    double reach[OJ_GROUP];
    struct oj_scale scale;
    int64_t k = count_features_to_list(search);
    OJ_TRY(oj_group_features_list(&index->segments, index->tie_rank, s, g, k,
                                  err));
    OJ_TRY(oj_group_matrix_reserve(s, err));
    scale = oj_group_matrix_fill(&index->segments, s, g, least2);
    oj_group_features_compute_least2(s, g);
    oj_group_features_kth_least2(s, g, k, limit2);
    for (int i = 0; i < g->n; i++)
        reach[i] = reach_of_point(search, &g->point[i]);
    oj_group_limits_widen(&scale, g->n, reach, limit2);
    oj_group_features_mark_near(s, g, limit2);
    return oj_group_features_measure(&index->segments, s, g, &scale, reach,
                                     limit2, err);
}

/* Returns a candidate segment with its distance, for the carry; if the carry's
 * point is inside of the feature (candidate below 0), the point itself. */
OJ_INLINE struct oj_carried_segment carried_segment_of_candidate(
    const struct oj_segments *segments, const struct oj_nearest_scratch *s,
    const struct oj_nearest_carry *carry, int32_t candidate, double distance)
{
    const struct oj_bundle *b;
    int64_t slot;
    int at;
    if (candidate < 0)
        return (struct oj_carried_segment){carry->x, carry->y, carry->x,
                                           carry->y, distance};
    slot = s->candidate[candidate];
    b = oj_slot_bundle(segments, slot);
    at = oj_slot_position_in_bundle(slot);
    return (struct oj_carried_segment){b->ax[at], b->ay[at], b->bx[at],
                                       b->by[at], distance};
}

/* Stores the features of the group's last point in the carry, before its pairs
 * are sorted. */
OJ_INLINE oj_status
store_last_point_in_carry(const struct nearest_search *search,
                          const struct oj_group *g, struct oj_error *err)
{
    struct oj_nearest_scratch *s = search->s;
    const struct oj_group_features *f = &s->features;
    struct oj_nearest_carry *carry = &s->carry;
    int64_t first = f->offset[g->n - 1], n = f->end[g->n - 1] - first;
    carry->x = g->x[g->n - 1];
    carry->y = g->y[g->n - 1];
    OJ_ROOM(carry->segment, 0, n, carry->cap, err);
    for (int64_t i = 0; i < n; i++)
        carry->segment[i] = carried_segment_of_candidate(
            &search->index->segments, s, carry, f->last_candidate[i],
            f->pair_distance[first + i]);
    carry->n = n;
    return OJ_OK;
}

/* Reduces the carry to the k nearest features. */
OJ_INLINE void reduce_carry_to_k_nearest(struct oj_nearest_carry *carry,
                                         int64_t k,
                                         const struct point_pairs *pairs)
{
    int64_t kept = 0;
    carry->distance = pairs->n >= k ? pairs->distance[k - 1] : INFINITY;
    for (int64_t i = 0; i < carry->n && kept < k; i++)
    {
        carry->segment[kept] = carry->segment[i];
        kept += carry->segment[kept].distance <= carry->distance;
    }
    carry->n = kept;
}

/* Sorts and stores the pairs of those points of the group whose bits are set in
 * `marked`. */
OJ_INLINE oj_status store_listed_pairs(struct nearest_search *search,
                                       const struct oj_group *g,
                                       uint32_t marked, struct oj_error *err)
{
    int carries = search->k > 1 &&
                  count_features_to_list(search) != OJ_EVERY_PAIR &&
                  search->s->choice.filter == NULL;
    for (int i = 0; i < g->n; i++)
    {
        int32_t feature[OJ_FEW_PAIRS];
        double distance[OJ_FEW_PAIRS];
        struct point_pairs pairs;
        if ((marked >> i & 1u) == 0)
            continue;
        if (carries && i == g->n - 1)
            OJ_TRY(store_last_point_in_carry(search, g, err));
        OJ_TRY(sort_pairs_of_point(search, i, feature, distance, &pairs, err));
        if (carries && i == g->n - 1)
            reduce_carry_to_k_nearest(&search->s->carry, search->k, &pairs);
        if (search->is_filtered)
            OJ_TRY(store_filtered_pairs(search, &g->point[i], &pairs, err));
        else
            OJ_TRY(store_pairs(search->to,
                               input_row_of_point(search->to, &g->point[i]),
                               &pairs, err));
    }
    return OJ_OK;
}

/* --- few features within reach ---------------------------------------------
 *
 * If points have few features within their reach, each pair of a point and a
 * near segment is measured, and the features of each point are collected in tie
 * order. This takes 0.6 to 0.7 of the time of a list of the features near the
 * group (dwithin 5 and 30 ft of lots). Groups in which a point has more
 * features become open, to be answered with such a list. */

/* Maximum number of features within the reach of a point for this method. */
#define OJ_FEW_WITHIN 8

/* From this average number of pairs per point on, lists are used. The average
 * is taken over runs of points: OJ_POINTS_OF_FEW at first, then twice as many
 * each time. */
#define OJ_MANY_WITHIN 3
#define OJ_POINTS_OF_FEW 128

struct group_within
{
    int n[OJ_GROUP];
    int32_t feature[OJ_GROUP][OJ_FEW_WITHIN]; /* in tie order */
    double distance[OJ_GROUP][OJ_FEW_WITHIN];
};

/* Adds a feature to point i, or lowers its distance if it is there already.
 * Returns 0 if there is no room. */
OJ_INLINE int add_feature_within(const struct oj_cpu_index *index,
                                 struct group_within *w, int i, int32_t feature,
                                 double distance)
{
    int32_t *of = w->feature[i];
    double *to = w->distance[i];
    int n = w->n[i], at = n;
    while (at > 0 && !precedes_in_tie_order(index, of[at - 1], feature))
        at--;
    if (at < n && of[at] == feature)
    {
        to[at] = distance < to[at] ? distance : to[at];
        return 1;
    }
    if (n == OJ_FEW_WITHIN)
        return 0;
    for (int j = n; j > at; j--)
    {
        of[j] = of[j - 1];
        to[j] = to[j - 1];
    }
    of[at] = feature;
    to[at] = distance;
    w->n[i] = n + 1;
    return 1;
}

/* Measures the pairs, adds those within reach to *w, and empties *p. Returns 0
 * if *w had no room for a feature of a point. */
OJ_INLINE int measure_pairs_within(const struct nearest_search *search,
                                   const struct oj_group *g,
                                   const double *reach,
                                   struct oj_group_pairs *p,
                                   struct group_within *w)
{
    const struct oj_segments *segments = &search->index->segments;
    const struct oj_nearest_scratch *s = search->s;
    double distance[OJ_PAIRS_AT_ONCE + OJ_GROUP];
    int n = p->n, fits = 1;
    oj_group_pairs_distance(segments, s, g, p, distance);
    for (int i = 0; i < n; i++)
    {
        int at = p->point[i];
        int32_t feature = segments->feature[s->candidate[p->candidate[i]]];
        if (distance[i] <= reach[at] && distance[i] < INFINITY)
            fits &=
                add_feature_within(search->index, w, at, feature, distance[i]);
    }
    p->n = 0;
    return fits;
}

/* Finds the features within the reach of each point of the group among the
 * candidates. Returns 0 if a point has more than OJ_FEW_WITHIN. */
OJ_INLINE int find_few_within(const struct nearest_search *search,
                              const struct oj_group *g, int chooses,
                              const double *reach, struct group_within *w)
{
    const struct oj_cpu_index *index = search->index;
    const struct oj_nearest_scratch *s = search->s;
    float least2[OJ_GROUP], limit2[OJ_GROUP];
    struct oj_group_pairs pairs;
    struct oj_scale scale;
    int fits = 1;
    for (int i = 0; i < g->n; i++)
    {
        int64_t n;
        const int32_t *feature =
            oj_group_features_containing_point(s, g, i, &n);
        w->n[i] = 0;
        for (int64_t k = 0; k < n && reach[i] >= 0.0; k++)
        {
            if (!chooses || oj_choice_considers_feature(&s->choice, feature[k]))
                fits &= add_feature_within(index, w, i, feature[k], 0.0);
        }
    }
    if (s->n_candidates == 0)
        return fits;
    scale = oj_group_matrix_fill(&index->segments, s, g, least2);
    for (int i = 0; i < OJ_GROUP; i++)
        limit2[i] = INFINITY;
    oj_group_limits_widen(&scale, g->n, reach, limit2);
    pairs.n = 0;
    for (int32_t j = 0; j < s->n_candidates && fits; j++)
    {
        add_pairs_within_limit(s, g, limit2, j, &pairs);
        if (pairs.n > OJ_PAIRS_AT_ONCE)
            fits = measure_pairs_within(search, g, reach, &pairs, w);
    }
    return fits & measure_pairs_within(search, g, reach, &pairs, w);
}

/* Stores the features within the reach of each point. */
OJ_INLINE oj_status store_few_within(struct nearest_search *search,
                                     const struct oj_group *g,
                                     struct group_within *w,
                                     struct oj_error *err)
{
    int64_t n_all = 0;
    for (int i = 0; i < g->n; i++)
    {
        struct point_pairs pairs = {w->n[i], w->feature[i], w->distance[i]};
        if (pairs.n == 0)
            continue;
        n_all += pairs.n;
        if (search->is_filtered)
            OJ_TRY(store_filtered_pairs(search, &g->point[i], &pairs, err));
        else
            OJ_TRY(store_pairs(search->to,
                               input_row_of_point(search->to, &g->point[i]),
                               &pairs, err));
    }
    search->s->n_within += n_all;
    return OJ_OK;
}

/* --- few nearest features --------------------------------------------------
 *
 * For small k, the smallest squared distances of each point from different
 * features are kept while the matrix is read. The pairs within the k-th of them
 * are measured and sorted point by point, without a list of the features near
 * the group. */

/* Maximum k for this method; for 5, lists are equally fast. */
#define OJ_MOST_FEW 3

struct group_nearest
{
    int n[OJ_GROUP];
    int32_t feature[OJ_GROUP][OJ_MOST_FEW]; /* in the order of the answer */
    int32_t candidate[OJ_GROUP][OJ_MOST_FEW];
    double distance[OJ_GROUP][OJ_MOST_FEW];
};

/* Adds a feature to the k nearest of point i, or lowers its distance if it is
 * there already. candidate is the index of its segment, or -1 if the point is
 * inside of the feature. */
OJ_INLINE void add_feature_nearest(const struct oj_cpu_index *index,
                                   struct group_nearest *w, int i, int k,
                                   int32_t feature, double distance,
                                   int32_t candidate)
{
    int32_t *of = w->feature[i], *by = w->candidate[i];
    double *to = w->distance[i];
    int n = w->n[i], at = 0;
    if (n == k && (to[n - 1] < distance ||
                   (to[n - 1] == distance &&
                    !precedes_in_tie_order(index, feature, of[n - 1]))))
        return;
    while (at < n && of[at] != feature)
        at++;
    if (at < n && to[at] <= distance)
        return;
    if (at == n && n < k)
        w->n[i] = n + 1;
    else if (at == n)
        at--;
    for (; at > 0 && (to[at - 1] > distance ||
                      (to[at - 1] == distance &&
                       precedes_in_tie_order(index, feature, of[at - 1])));
         at--)
    {
        of[at] = of[at - 1];
        to[at] = to[at - 1];
        by[at] = by[at - 1];
    }
    of[at] = feature;
    to[at] = distance;
    by[at] = candidate;
}

/* The k smallest squared distances of sixteen points from different features,
 * ascending. */
struct least_of_features
{
    float d2[OJ_MOST_FEW][OJ_WIDE];
    int32_t feature[OJ_MOST_FEW][OJ_WIDE];
};

/* Merges the squared distances of sixteen points from a segment of feature into
 * *least. */
OJ_INLINE void add_to_least_of_features(struct least_of_features *least, int k,
                                        int32_t feature,
                                        const float *restrict d2)
{
    float moving[OJ_WIDE];
    int32_t of[OJ_WIDE];
    int any = 0;
    OJ_SIXTEEN any |= d2[c] < least->d2[k - 1][c];
    if (!any)
        return;
    OJ_SIXTEEN moving[c] = d2[c];
    OJ_SIXTEEN of[c] = feature;
    for (int t = 0; t < k; t++)
    {
        float *at = least->d2[t];
        int32_t *of_at = least->feature[t];
        OJ_SIXTEEN
        {
            float here = at[c], there = moving[c];
            int32_t of_here = of_at[c], of_there = of[c];
            int ends = of_here == feature;
            /* If this is the feature's old entry, the entry that moves down
             * replaces it: it is at most as far. */
            int nearer = (there < here) | (ends & (of_there != feature));
            at[c] = nearer ? there : here;
            of_at[c] = nearer ? of_there : of_here;
            /* The feature's old entry ends the shift. */
            moving[c] = ends ? INFINITY : nearer ? here : there;
            of[c] = nearer ? of_here : of_there;
        }
    }
}

/* Sets limit2 to the k-th smallest squared distance of each point from
 * different features; INFINITY if there are fewer. *w has the features that
 * contain points. */
OJ_INLINE void find_kth_by_features(const struct oj_segments *segments,
                                    const struct oj_nearest_scratch *s,
                                    const struct oj_group *g, int k,
                                    const struct group_nearest *w,
                                    float limit2[OJ_GROUP])
{
    for (int first = 0; first < g->n; first += OJ_WIDE)
    {
        struct least_of_features least;
        for (int t = 0; t < k; t++)
        {
            OJ_SIXTEEN
            {
                int inside = t < w->n[first + c];
                least.d2[t][c] = inside ? 0.0f : INFINITY;
                least.feature[t][c] =
                    inside ? w->feature[first + c][t] : NO_FEATURE;
            }
        }
        for (int64_t j = 0; j < s->n_candidates; j++)
            add_to_least_of_features(&least, k,
                                     segments->feature[s->candidate[j]],
                                     s->matrix + j * OJ_GROUP + first);
        OJ_SIXTEEN limit2[first + c] = least.d2[k - 1][c];
    }
}

/* Measures the pairs, adds those within reach to *w, and empties *p. */
OJ_INLINE void measure_pairs_nearest(const struct nearest_search *search,
                                     const struct oj_group *g,
                                     const double *reach,
                                     struct oj_group_pairs *p,
                                     struct group_nearest *w)
{
    const struct oj_segments *segments = &search->index->segments;
    const struct oj_nearest_scratch *s = search->s;
    double distance[OJ_PAIRS_AT_ONCE + OJ_GROUP];
    int k = (int)search->k;
    oj_group_pairs_distance(segments, s, g, p, distance);
    for (int i = 0; i < p->n; i++)
    {
        int at = p->point[i];
        int32_t feature = segments->feature[s->candidate[p->candidate[i]]];
        if (distance[i] <= reach[at] && distance[i] < INFINITY)
            add_feature_nearest(search->index, w, at, k, feature, distance[i],
                                p->candidate[i]);
    }
    p->n = 0;
}

/* Finds the k nearest features of each point of the group among the candidates,
 * for small k. */
OJ_INLINE void find_few_nearest(const struct nearest_search *search,
                                const struct oj_group *g, int chooses,
                                const double *reach, struct group_nearest *w)
{
    const struct oj_cpu_index *index = search->index;
    const struct oj_nearest_scratch *s = search->s;
    float least2[OJ_GROUP], limit2[OJ_GROUP];
    int k = (int)search->k;
    struct oj_group_pairs pairs;
    struct oj_scale scale;
    for (int i = 0; i < OJ_GROUP; i++)
        w->n[i] = 0;
    for (int i = 0; i < g->n && s->cells->n_sets > 0; i++)
    {
        int64_t n;
        const int32_t *feature =
            oj_group_features_containing_point(s, g, i, &n);
        for (int64_t j = 0; j < n && reach[i] >= 0.0; j++)
        {
            if (!chooses || oj_choice_considers_feature(&s->choice, feature[j]))
                add_feature_nearest(index, w, i, k, feature[j], 0.0, -1);
        }
    }
    if (s->n_candidates == 0)
        return;
    scale = oj_group_matrix_fill(&index->segments, s, g, least2);
    find_kth_by_features(&index->segments, s, g, k, w, limit2);
    oj_group_limits_widen(&scale, g->n, reach, limit2);
    pairs.n = 0;
    for (int32_t j = 0; j < s->n_candidates; j++)
    {
        add_pairs_within_limit(s, g, limit2, j, &pairs);
        if (pairs.n > OJ_PAIRS_AT_ONCE)
            measure_pairs_nearest(search, g, reach, &pairs, w);
    }
    measure_pairs_nearest(search, g, reach, &pairs, w);
}

/* Stores the k nearest features of the last point in the carry. */
OJ_INLINE oj_status store_few_nearest_in_carry(
    const struct nearest_search *search, const struct oj_group *g,
    const struct group_nearest *w, struct oj_error *err)
{
    struct oj_nearest_scratch *s = search->s;
    struct oj_nearest_carry *carry = &s->carry;
    int last = g->n - 1, n = w->n[last];
    carry->x = g->x[last];
    carry->y = g->y[last];
    OJ_ROOM(carry->segment, 0, n, carry->cap, err);
    for (int i = 0; i < n; i++)
        carry->segment[i] = carried_segment_of_candidate(
            &search->index->segments, s, carry, w->candidate[last][i],
            w->distance[last][i]);
    carry->n = n;
    carry->distance = n >= search->k ? w->distance[last][n - 1] : INFINITY;
    return OJ_OK;
}

/* Answers the points of a group with their k nearest features, for small k. */
OJ_INLINE oj_status answer_few_nearest_of_group(struct nearest_search *search,
                                                const struct oj_group *g,
                                                int chooses,
                                                struct oj_error *err)
{
    struct oj_nearest_scratch *s = search->s;
    struct group_nearest w;
    double reach[OJ_GROUP];
    OJ_TRY(oj_group_matrix_reserve(s, err));
    for (int i = 0; i < g->n; i++)
        reach[i] = reach_of_point(search, &g->point[i]);
    find_few_nearest(search, g, chooses, reach, &w);
    if (s->choice.filter == NULL)
        OJ_TRY(store_few_nearest_in_carry(search, g, &w, err));
    for (int i = 0; i < g->n; i++)
    {
        struct point_pairs pairs = {w.n[i], w.feature[i], w.distance[i]};
        if (search->is_filtered)
            OJ_TRY(store_filtered_pairs(search, &g->point[i], &pairs, err));
        else
            OJ_TRY(store_pairs(search->to,
                               input_row_of_point(search->to, &g->point[i]),
                               &pairs, err));
    }
    return OJ_OK;
}

/* Stores the nearest feature of each point. With marks_ties, points with
 * several equally near features are answered by lists. */
OJ_INLINE oj_status store_nearest(struct nearest_search *search,
                                  const struct oj_group *g,
                                  const struct group_best *best, int marks_ties,
                                  struct oj_error *err)
{
    const struct oj_nearest_output *to = search->to;
    double max_distance = search->index->relation.max_distance;
    uint32_t tied = 0;
    for (int i = 0; i < g->n; i++)
    {
        int32_t row = input_row_of_point(to, &g->point[i]);
        int matched = (best->feature[i] != NO_FEATURE) &
                      (best->distance[i] <= max_distance);
        if (marks_ties && matched && (best->tied >> i & 1u) != 0)
        {
            if (to->ones != NULL)
                to->ones->feature[row] = OJ_ONE_OF_MANY;
            tied |= 1u << i;
        }
        else if (to->ones != NULL)
        {
            to->ones->feature[row] = matched ? best->feature[i] : NO_FEATURE;
            to->ones->distance[row] = matched ? best->distance[i] : NAN;
        }
        else if (matched)
        {
            OJ_TRY(oj_answers_reserve(to->answers, 1, err));
            oj_answers_append_pair(to->answers, row, best->feature[i],
                                   best->distance[i]);
        }
    }
    if (!marks_ties || tied == 0)
        return OJ_OK;
    OJ_TRY(list_pairs_of_group(search, g, err));
    return store_listed_pairs(search, g, tied, err);
}

/* Returns the estimated number of features in the answer of a point. */
OJ_INLINE int64_t estimate_features_of_answer(
    const struct nearest_search *search, enum nearest_answer answer)
{
    if (answer != NEAREST_LISTED && answer != FEW_NEAREST)
        return 1;
    return count_features_to_list(search) == OJ_EVERY_PAIR ? search->s->expected
                                                           : search->k;
}

/* Returns the number of features to find for each point. */
OJ_INLINE int64_t count_features_to_find(const struct nearest_search *search,
                                         enum nearest_answer answer)
{
    if (answer == FEW_WITHIN)
        return OJ_EVERY_PAIR;
    return answer == NEAREST_LISTED || answer == FEW_NEAREST
               ? count_features_to_list(search)
               : 1;
}

/* Answers the points of a group with all features within their reach, or makes
 * them open points if one has too many. */
OJ_INLINE oj_status answer_few_within(struct nearest_search *search,
                                      const struct oj_group *g, int chooses,
                                      struct oj_error *err)
{
    struct oj_nearest_scratch *s = search->s;
    struct group_within within;
    double reach[OJ_GROUP];
    OJ_TRY(oj_group_matrix_reserve(s, err));
    for (int i = 0; i < g->n; i++)
        reach[i] = reach_of_point(search, &g->point[i]);
    if (find_few_within(search, g, chooses, reach, &within))
        return store_few_within(search, g, &within, err);
    for (int i = 0; i < g->n; i++)
        OJ_TRY(add_point_to_retry(s, &g->point[i], err));
    return OJ_OK;
}

/* Sets the class that each point of the group excludes. */
OJ_INLINE void set_excluded_classes(const struct nearest_search *search,
                                    struct oj_group *g)
{
    const struct oj_nearest_output *to = search->to;
    for (int i = 0; i < OJ_GROUP; i++)
        g->excluded[i] = OJ_NO_CLASS;
    for (int i = 0; i < g->n; i++)
        g->excluded[i] = excluded_class_of_row(
            search->index, to->filter, input_row_of_point(to, &g->point[i]));
}

/* If all n points exclude one class, its features are left out of the search:
 * if nearly all features belonged to it, there would be very many candidates.
 */
OJ_INLINE void leave_out_common_class(const struct nearest_search *search,
                                      int64_t n,
                                      const struct oj_ordered_point *point)
{
    const struct oj_nearest_output *to = search->to;
    int32_t common = OJ_NO_CLASS;
    for (int64_t i = 0; i < n; i++)
    {
        int32_t of = excluded_class_of_row(search->index, to->filter,
                                           input_row_of_point(to, &point[i]));
        if (i > 0 && of != common)
        {
            common = OJ_NO_CLASS;
            break;
        }
        common = of;
    }
    search->s->choice.left_out = common;
    search->s->choice.is_all = common == OJ_NO_CLASS &&
                               search->s->choice.class_of == NULL &&
                               search->s->choice.skip_class == OJ_NO_CLASS;
}

/* Answers the points of a group, or sets s->too_many. */
OJ_INLINE oj_status answer_group(struct nearest_search *search,
                                 struct oj_group *g, enum nearest_answer answer,
                                 int chooses, struct oj_error *err)
{
    const struct oj_cpu_index *index = search->index;
    struct oj_nearest_scratch *s = search->s;
    struct group_best best;
    int64_t k = count_features_to_find(search, answer);
    double cap = greatest_reach(search, g->n, g->point), within = INFINITY;
    double start = s->timings ? oj_clock_seconds() : 0.0, middle = 0.0;
    if (answer == ONE_ALLOWED)
    {
        set_excluded_classes(search, g);
        leave_out_common_class(search, g->n, g->point);
    }
    /* if all points are inside of polygons, only features at distance 0 matter
     */
    if (answer <= NEAREST_TIES &&
        set_containing_as_nearest(index, s, g, chooses, answer == ONE_ALLOWED,
                                  &best) == g->n)
        cap = 0.0;
    if (answer == NEAREST_LISTED)
        OJ_TRY(oj_group_bound_by_last_group(s, g, k, &within, err));
    OJ_TRY(oj_collect_candidates(
        &index->segments, s, &g->place, k, chooses,
        answer == NEAREST_TIES || answer == NEAREST_LISTED,
        estimate_features_of_answer(search, answer), cap, within, err));
    if (s->too_many)
        return OJ_OK;
    if (s->timings)
        middle = oj_clock_seconds();
    if (answer == NEAREST_LISTED || answer == FEW_NEAREST)
        prefetch_lists(search, g);
    if (answer <= NEAREST_TIES)
    {
        OJ_TRY(oj_group_matrix_reserve(s, err));
        find_nearest_of_group(index, s, g, answer, &best);
        OJ_TRY(store_nearest(search, g, &best, answer == NEAREST_TIES, err));
    }
    else if (answer == FEW_WITHIN)
        OJ_TRY(answer_few_within(search, g, chooses, err));
    else if (answer == FEW_NEAREST)
        OJ_TRY(answer_few_nearest_of_group(search, g, chooses, err));
    else
    {
        OJ_TRY(list_pairs_of_group(search, g, err));
        if (search->k > 1 && k != OJ_EVERY_PAIR && s->choice.filter == NULL)
            OJ_TRY(oj_group_features_store_carry(&index->segments, s, g, err));
        OJ_TRY(store_listed_pairs(search, g, UINT32_MAX, err));
        s->expected = s->features.offset[g->n] / g->n;
        s->n_within += s->features.offset[g->n];
    }
    s->n_refined += s->n_candidates * g->n;
    if (s->timings)
    {
        s->filter_s += middle - start;
        s->refine_s += oj_clock_seconds() - middle;
    }
    return OJ_OK;
}

/* Adapts the size of groups to their number of candidates; for listed answers,
 * to their number of features relative to the features that points need. */
OJ_INLINE void adapt_group_limit(struct nearest_search *search,
                                 enum nearest_answer answer)
{
    struct oj_nearest_scratch *s = search->s;
    double base = s->limit_base;
    int64_t wanted = estimate_features_of_answer(search, answer);
    if (answer == NEAREST_LISTED)
        oj_size_limit_adapt(&s->group_limit, s->features.n, 12 + 3 * wanted / 2,
                            24 + 3 * wanted, base);
    else if (answer == FEW_NEAREST)
        oj_size_limit_adapt(&s->group_limit, s->n_candidates, 20 + 4 * wanted,
                            40 + 8 * wanted, base);
    else
        oj_size_limit_adapt(&s->group_limit, s->n_candidates, 20, 40, base);
}

/* Answers the points of a patch, group by group. */
OJ_INLINE oj_status answer_patch(struct nearest_search *search, int n,
                                 const struct oj_ordered_point *point,
                                 enum nearest_answer answer, int chooses,
                                 struct oj_error *err)
{
    struct oj_nearest_scratch *s = search->s;
    struct oj_group g;
    int most = OJ_GROUP;
    for (int at = 0; at < n;)
    {
        OJ_TRY(oj_check_cancel(s->cancel, err));
        oj_group_form(&g, n - at, most, point + at, s->group_limit);
        g.first = at;
        OJ_TRY(answer_group(search, &g, answer, chooses, err));
        if (s->too_many)
        {
            most = (g.n + 1) / 2;
            continue;
        }
        most = OJ_GROUP;
        at += g.n;
        adapt_group_limit(search, answer);
    }
    return OJ_OK;
}

/* Prefetches the output entries of the points, and the classes or FIDs that
 * their rows exclude: they are scattered over large arrays. Without this, their
 * reading takes a sixth of the processor time of -exclude (citygen M, k = 5,
 * four classes). */
OJ_INLINE void prefetch_rows(const struct nearest_search *search, int n,
                             const struct oj_ordered_point *point)
{
    const struct oj_nearest_output *to = search->to;
    for (int i = 0; to->ones != NULL && i < n; i++)
    {
        __builtin_prefetch(&to->ones->feature[point[i].index], 0, 2);
        __builtin_prefetch(&to->ones->distance[point[i].index], 0, 2);
    }
    for (int i = 0; search->excludes_one_class && i < n; i++)
    {
        const struct oj_flat *input = to->filter->input;
        int32_t row = input_row_of_point(to, &point[i]);
        if (input->exclude_class != NULL)
            __builtin_prefetch(&input->exclude_class[row]);
        else
            __builtin_prefetch(&input->fid[row]);
    }
}

/* A patch with more boxes than this within reach is searched for the k nearest,
 * not for all features within reach. */
#define OJ_MANY_BOXES_WITHIN 512

/* Returns 1 if the next patch may find all features within reach, without a
 * bound of the k nearest for each point. This pays if the points of the last
 * patch had fewer than k features within reach, on average: it saved a fifth of
 * the processor time of a join in which they had 6 (citygen M, k = 8 or 20
 * within 100 ft). */
OJ_INLINE int may_list_all_within(const struct nearest_search *search,
                                  enum nearest_answer answer, double cap)
{
    const struct oj_nearest_scratch *s = search->s;
    return answer == NEAREST_LISTED && search->k != OJ_EVERY_PAIR &&
           cap < INFINITY && s->choice.filter == NULL && s->has_few_within;
}

OJ_INLINE oj_status answer_points(struct nearest_search *search, int64_t n,
                                  const struct oj_ordered_point *point,
                                  enum nearest_answer answer, int chooses,
                                  struct oj_error *err)
{
    const struct oj_cpu_index *index = search->index;
    struct oj_nearest_scratch *s = search->s;
    struct oj_points_box patch;
    double base = s->limit_base;
    int most_at_once = chooses && s->choice.filter != NULL ? 1 : OJ_PATCH;
    int most = most_at_once;
    s->carry.distance = INFINITY;
    s->carry.n_near = 0;
    for (int64_t at = 0; at < n;)
    {
        int taken = oj_points_box_set_to_leading_points(
            &patch, n - at, most, point + at, s->patch_limit);
        double cap = greatest_reach(search, taken, point + at);
        int64_t n_within = s->n_within, expected, few, many;
        search->lists_all_within = may_list_all_within(search, answer, cap);
        expected = estimate_features_of_answer(search, answer);
        few = answer <= NEAREST_TIES ? 24 : 64 + 3 * expected;
        many = answer <= NEAREST_TIES ? 96 : 256 + 8 * expected;
        if (chooses)
            s->choice.row = input_row_of_point(search->to, point + at);
        if (answer == ONE_ALLOWED)
            leave_out_common_class(search, taken, point + at);
        OJ_TRY(oj_patch_find_bundles(&index->segments, s, &patch,
                                     count_features_to_find(search, answer),
                                     chooses, expected, cap, err));
        if (search->lists_all_within &&
            (s->too_many || s->near_bundles.n > OJ_MANY_BOXES_WITHIN))
        {
            s->has_few_within = 0;
            continue;
        }
        if (s->too_many)
        {
            most = (taken + 1) / 2;
            continue;
        }
        OJ_TRY(oj_patch_find_containing_features(s, taken, point + at, err));
        prefetch_rows(search, taken, point + at);
        OJ_TRY(answer_patch(search, taken, point + at, answer, chooses, err));
        if (answer == NEAREST_LISTED && search->k != OJ_EVERY_PAIR)
            s->has_few_within =
                8 * (s->n_within - n_within) < 7 * search->k * taken;
        most = most_at_once;
        at += taken;
        oj_size_limit_adapt(&s->patch_limit, s->near_bundles.n, few, many,
                            4.0 * base);
    }
    return OJ_OK;
}

OJ_CLONES static oj_status
answer_one_nearest(struct nearest_search *search, int64_t n,
                   const struct oj_ordered_point *point, struct oj_error *err)
{
    return answer_points(search, n, point, ONE_NEAREST, 0, err);
}

OJ_CLONES static oj_status
answer_one_nearest_of_class(struct nearest_search *search, int64_t n,
                            const struct oj_ordered_point *point,
                            struct oj_error *err)
{
    return answer_points(search, n, point, ONE_NEAREST, 1, err);
}

OJ_CLONES static oj_status
answer_one_nearest_not_excluded(struct nearest_search *search, int64_t n,
                                const struct oj_ordered_point *point,
                                struct oj_error *err)
{
    return answer_points(search, n, point, ONE_ALLOWED, 1, err);
}

OJ_CLONES static oj_status
answer_nearest_ties(struct nearest_search *search, int64_t n,
                    const struct oj_ordered_point *point, struct oj_error *err)
{
    return answer_points(search, n, point, NEAREST_TIES,
                         !search->s->choice.is_all, err);
}

OJ_CLONES static oj_status
answer_nearest_with_lists(struct nearest_search *search, int64_t n,
                          const struct oj_ordered_point *point,
                          struct oj_error *err)
{
    return answer_points(search, n, point, NEAREST_LISTED,
                         !search->s->choice.is_all, err);
}

OJ_CLONES static oj_status
answer_few_nearest(struct nearest_search *search, int64_t n,
                   const struct oj_ordered_point *point, struct oj_error *err)
{
    return answer_points(search, n, point, FEW_NEAREST,
                         !search->s->choice.is_all, err);
}

OJ_CLONES static oj_status
answer_few_within_reach(struct nearest_search *search, int64_t n,
                        const struct oj_ordered_point *point,
                        struct oj_error *err)
{
    return answer_points(search, n, point, FEW_WITHIN,
                         !search->s->choice.is_all, err);
}

static oj_status answer_k_nearest(struct nearest_search *search, int64_t n,
                                  const struct oj_ordered_point *point,
                                  struct oj_error *err)
{
    struct oj_nearest_scratch *s = search->s;
    if (search->k != OJ_EVERY_PAIR)
    {
        OJ_ROOM(s->best_feature, 0, search->k, s->cap_best, err);
        OJ_ROOM(s->best_d2, 0, search->k, s->cap_best_d2, err);
    }
    return search->k <= OJ_MOST_FEW &&
                   search->index->relation.ties != OJ_TIES_ALL
               ? answer_few_nearest(search, n, point, err)
               : answer_nearest_with_lists(search, n, point, err);
}

/* --- filtered pairs -------------------------------------------------------
 *
 * The k nearest features that pass the filter are among the nearest of all
 * features. The number of these to find first is adapted to the data, so that
 * most points get enough. Points with too few (open points) are searched again
 * for twice as many. Those that are still open are searched one by one, and the
 * filter is applied during the search. */

/* Returns the minimum number of features to find first. */
static int64_t min_features_to_find(const struct nearest_search *search)
{
    int64_t k = search->index->relation.k, n = search->s->choice.n_features;
    int64_t least = k + (search->to->filter->is_needed ? 1 + k / 8 : 0);
    return least < n ? least : n > 0 ? n : 1;
}

/* Returns the maximum number of features to find first. If pairs that pass are
 * rarer, the filter is applied to each feature during the search. */
static int64_t max_features_to_find(const struct nearest_search *search)
{
    int64_t most = 4 * search->index->relation.k + 16;
    int64_t n = search->s->choice.n_features;
    return most < n ? most : n > 0 ? n : 1;
}

static void adapt_features_to_find(struct nearest_search *search, int64_t n,
                                   int64_t least)
{
    struct oj_nearest_scratch *s = search->s;
    int64_t most = max_features_to_find(search);
    if (8 * s->n_open > n)
        s->n_asked += s->n_asked / 2 + 1;
    else if (32 * s->n_open < n)
        s->n_asked -= (s->n_asked - least + 7) / 8;
    if (s->n_asked > most)
        s->n_asked = most;
    if (s->n_asked < least)
        s->n_asked = least;
}

/* Answers the open points again, with the present search->k and choice of
 * segments. */
static oj_status retry_open_points(struct nearest_search *search,
                                   struct oj_error *err)
{
    struct oj_nearest_scratch *s = search->s;
    struct oj_ordered_point *point = s->open;
    int64_t n = s->n_open;
    oj_status status;
    s->open = NULL;
    s->n_open = s->cap_open = 0;
    status = answer_k_nearest(search, n, point, err);
    oj_free(point);
    return status;
}

/* Answers points with all features within reach: without lists until a run of
 * points has many, then with lists for the rest of the points. If these have
 * few, the next call begins without lists again. */
static oj_status answer_all_within(struct nearest_search *search, int64_t n,
                                   const struct oj_ordered_point *point,
                                   struct oj_error *err)
{
    struct oj_nearest_scratch *s = search->s;
    int64_t at = 0, run = OJ_POINTS_OF_FEW;
    while (at < n && !s->has_many_within)
    {
        int64_t end = at + run < n ? at + run : n;
        s->n_within = s->n_open = 0;
        OJ_TRY(answer_few_within_reach(search, end - at, point + at, err));
        if (s->n_open > 0)
            OJ_TRY(retry_open_points(search, err));
        s->has_many_within = s->n_within >= OJ_MANY_WITHIN * (end - at);
        at = end;
        run *= 2;
    }
    if (at == n)
        return OJ_OK;
    s->n_within = 0;
    OJ_TRY(answer_nearest_with_lists(search, n - at, point + at, err));
    s->has_many_within = s->n_within >= OJ_MANY_WITHIN * (n - at);
    return OJ_OK;
}

static oj_status retry_open_points_one_by_one(struct nearest_search *search,
                                              struct oj_error *err)
{
    struct oj_nearest_scratch *s = search->s;
    double patch_limit = s->patch_limit, group_limit = s->group_limit;
    int64_t k = search->index->relation.k, n = s->choice.n_features;
    s->choice.filter = search->to->filter;
    s->choice.is_all = 0;
    search->k = k < n ? k : n;
    OJ_TRY(retry_open_points(search, err));
    s->patch_limit = patch_limit;
    s->group_limit = group_limit;
    return OJ_OK;
}

static oj_status
answer_nearest_with_filter(struct nearest_search *search, int64_t n,
                           const struct oj_ordered_point *point,
                           struct oj_error *err)
{
    struct oj_nearest_scratch *s = search->s;
    int64_t least;
    s->n_open = 0;
    least = min_features_to_find(search);
    if (s->n_asked < least)
        s->n_asked = least;
    search->k = s->n_asked < s->choice.n_features ? s->n_asked : least;
    OJ_TRY(answer_k_nearest(search, n, point, err));
    adapt_features_to_find(search, n, least);
    if (s->n_open > 0)
    {
        int64_t most = max_features_to_find(search);
        search->k = 2 * search->k < most ? 2 * search->k : most;
        OJ_TRY(retry_open_points(search, err));
    }
    return s->n_open > 0 ? retry_open_points_one_by_one(search, err) : OJ_OK;
}

/* --- points --------------------------------------------------------------- */

static int has_reaches_of_rows(const struct oj_pair_filter *filter)
{
    return filter != NULL &&
           (filter->input->max_distance != NULL || filter->input->n_texts > 0 ||
            filter->input->n_spans > 0 || filter->input->vectors.value != NULL);
}

/* Sets the segments to consider: all, or those of an -on class, without those
 * of a large excluded class. */
static void choose_segments(const struct oj_cpu_index *index,
                            const struct oj_nearest_among *among,
                            struct oj_nearest_scratch *s)
{
    const struct oj_segments *segments = &index->segments;
    const struct oj_segments_class *of = among->of;
    double base = of != NULL ? of->bundle_size : segments->bundle_size;
    struct oj_segment_choice choice = {.end = segments->n_bundles * OJ_BUNDLE,
                                       .n_features = index->n_features,
                                       .is_all = among->without == NULL};
    if (of != NULL)
        choice = (struct oj_segment_choice){.first = of->first,
                                            .end = of->end,
                                            .n_features = of->n_features,
                                            .class_of = index->on_class,
                                            .on_class = of->on_class};
    choice.left_out = choice.skip_class = OJ_NO_CLASS;
    if (among->without != NULL)
    {
        choice.skip_first = among->without->first;
        choice.skip_end = among->without->end;
        choice.skip_class = among->without->exclude_class;
        choice.excluded = index->exclude_class;
        choice.n_features -= among->without->n_features;
    }
    s->choice = choice;
    /* Limits stay in proportion to the size of bundles, which differs between
     * classes. */
    if (s->limit_base > 0.0 && base > 0.0)
    {
        s->patch_limit *= base / s->limit_base;
        s->group_limit *= base / s->limit_base;
    }
    else
    {
        s->patch_limit = 4.0 * base;
        s->group_limit = base;
    }
    s->limit_base = base;
}

oj_status oj_nearest_search_points(const struct oj_cpu_index *index,
                                   struct oj_nearest_scratch *s, int64_t n,
                                   const struct oj_ordered_point *point,
                                   const struct oj_nearest_among *among,
                                   const struct oj_nearest_output *to,
                                   struct oj_error *err)
{
    const struct oj_relation *relation = &index->relation;
    struct nearest_search search = {.index = index,
                                    .s = s,
                                    .to = to,
                                    .k = relation->k,
                                    .is_filtered = to->filter != NULL,
                                    .has_reaches =
                                        has_reaches_of_rows(to->filter)};
    search.excludes_one_class =
        search.is_filtered && oj_filter_excludes_one_class(index, to->filter);
    choose_segments(index, among, s);
    if (search.k != OJ_EVERY_PAIR && search.k > s->choice.n_features)
        search.k = s->choice.n_features > 0 ? s->choice.n_features : 1;
    if (relation->k == 1 && relation->ties != OJ_TIES_ALL &&
        !search.is_filtered)
        return s->choice.is_all
                   ? answer_one_nearest(&search, n, point, err)
                   : answer_one_nearest_of_class(&search, n, point, err);
    if (search.excludes_one_class && relation->k == 1 &&
        relation->ties != OJ_TIES_ALL)
    {
        s->choice.excludes = 1;
        s->choice.excluded = index->exclude_class;
        return answer_one_nearest_not_excluded(&search, n, point, err);
    }
    if (s->own == NULL)
    {
        OJ_NEW_ZEROED(s->own, 1, err);
        s->ranking = oj_ranking_make(relation, index->tie_rank);
    }
    if (search.k == OJ_EVERY_PAIR)
        return answer_all_within(&search, n, point, err);
    if (search.is_filtered)
        return answer_nearest_with_filter(&search, n, point, err);
    return relation->k == 1 ? answer_nearest_ties(&search, n, point, err)
                            : answer_k_nearest(&search, n, point, err);
}

void oj_nearest_scratch_free(struct oj_nearest_scratch *s)
{
    struct oj_group_features *f = &s->features;
    void *const arrays[] = {s->near_bundles.block,
                            s->near,
                            s->candidate,
                            s->candidate_low,
                            s->matrix,
                            s->best_feature,
                            s->candidate_high,
                            s->sorted,
                            f->found,
                            f->found_of,
                            f->slot,
                            s->best_d2,
                            s->own,
                            s->open,
                            s->of_class,
                            s->class_key,
                            f->key,
                            f->first,
                            f->feature,
                            f->nearest_first,
                            f->least2,
                            f->inside,
                            f->close,
                            f->column,
                            f->pair_of,
                            f->pair_distance,
                            f->last_candidate,
                            s->carry.segment,
                            s->carry.near};
    oj_containing_free(&s->containing);
    oj_ranking_free(&s->ranking);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        oj_free(arrays[i]);
    memset(s, 0, sizeof *s);
}
