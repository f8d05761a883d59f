/* The paper's method for near vectors and points of the plane, on one thread:
 * the join side in several shifted Z-orders; a row reads the shortest of the
 * stretches of them that are between the corners of the box around it.  The k
 * nearest are within the k-th of those near its places.
 *
 * The lists do not depend on the difference.  Fewer than the paper's d + 1 are
 * often better, as it says.
 *
 * Source: Lieberman, Sankaranarayanan, Samet 2008 (LSS). */
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../kernels/oj_vector_frame.h"
#include "../kernels/oj_z_order.h"
#include "../pairs/oj_pair_filter.h"
#include "../pairs/oj_ranking.h"
#include "../relation/oj_engine.h"

#include <stdlib.h>

enum
{
    MOST_LISTS = 8
};

/* Coordinates of a side. Owner of own. */
struct z_side
{
    struct oj_vectors vectors;
    double *own; /* of points; else NULL */
};

/* A feature in a list, for sorting. */
struct z_item
{
    const uint32_t *place;
    int32_t n_dimensions, feature;
    uint32_t shift;
};

struct zlists_index
{
    struct oj_index_args args;
    struct z_side side;
    int64_t n; /* features that have coordinates */
    int n_lists;
    double *low, scale;
    uint32_t *place; /* [features][dimensions] */
    int32_t *list;   /* [n_lists][n] features */
};

struct zlists_batch
{
    const struct zlists_index *self;
    struct z_side side;
    struct oj_pair_filter filter;
    struct oj_ranking ranking;
    struct oj_answers answers;
    uint32_t *corner[2]; /* [dimensions] of a row */
    int64_t n_candidates;
};

static int is_by_vectors(const struct oj_relation *relation)
{
    return relation->op == OJ_OP_SIMILAR;
}

static oj_status view_side_as_vectors(struct z_side *side,
                                      const struct oj_flat *flat,
                                      const struct oj_relation *relation,
                                      struct oj_error *err)
{
    side->vectors = flat->vectors;
    if (is_by_vectors(relation) || flat->n_features == 0)
        return OJ_OK;
    OJ_NEW(side->own, 2 * flat->n_features, err);
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        side->own[2 * i] = flat->x[i];
        side->own[2 * i + 1] = flat->y[i];
    }
    side->vectors = (struct oj_vectors){2, side->own};
    return OJ_OK;
}

static void free_side(struct oj_index *wrapped)
{
    struct zlists_index *self = (void *)wrapped;
    oj_free(self->side.own);
    oj_free(self->low);
    oj_free(self->place);
    oj_free(self->list);
}

/* --- the lists ------------------------------------------------------------ */

static int by_place(const void *left, const void *right)
{
    const struct z_item *a = left, *b = right;
    int order = oj_z_compare(a->place, b->place, a->n_dimensions, a->shift);
    return order != 0 ? order : a->feature < b->feature ? -1 : 1;
}

/* The least coordinates and one scale for all. */
static void find_frame(struct zlists_index *self, int64_t n_features)
{
    const struct oj_vectors *v = &self->side.vectors;
    double longest = 0.0;
    for (int64_t d = 0; d < v->n_dimensions; d++)
    {
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < n_features; i++)
        {
            double x = oj_vector_at(v, i)[d];
            if (!oj_vector_is_there(v, i))
                continue;
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        self->low[d] = low;
        longest = high - low > longest ? high - low : longest;
    }
    self->scale = (double)(OJ_Z_PLACES - 1) / longest;
    if (!(self->scale < INFINITY)) /* they are one point, or nearly */
        self->scale = 0.0;
}

static oj_status make_lists(struct zlists_index *self, struct z_item *item,
                            int64_t n_features, struct oj_error *err)
{
    const struct oj_vectors *v = &self->side.vectors;
    int64_t n_dimensions = v->n_dimensions;
    for (int64_t i = 0; i < n_features; i++)
    {
        uint32_t *place = self->place + i * n_dimensions;
        if (!oj_vector_is_there(v, i))
            continue;
        for (int64_t d = 0; d < n_dimensions; d++)
            place[d] =
                oj_z_place(oj_vector_at(v, i)[d], self->low[d], self->scale);
        item[self->n++] =
            (struct z_item){place, (int32_t)n_dimensions, (int32_t)i, 0};
    }
    for (int l = 0; l < self->n_lists; l++)
    {
        OJ_TRY(oj_check_cancel(self->args.options.cancel, err));
        for (int64_t i = 0; i < self->n; i++)
            item[i].shift = oj_z_shift(l, self->n_lists);
        qsort(item, (size_t)self->n, sizeof *item, by_place);
        for (int64_t i = 0; i < self->n; i++)
            self->list[l * self->n + i] = item[i].feature;
    }
    return OJ_OK;
}

static oj_status build_join_side_lists(struct zlists_index *self,
                                       struct oj_error *err)
{
    const struct oj_flat *flat = self->args.join_side;
    struct z_item *item;
    int64_t d;
    oj_status status;
    OJ_TRY(view_side_as_vectors(&self->side, flat, &self->args.relation, err));
    if (self->side.vectors.value == NULL)
        return oj_fail(err, OJ_ERR_ARG, "the join side has no vectors");
    d = self->side.vectors.n_dimensions;
    self->n_lists = (int)(d + 1 < MOST_LISTS ? d + 1 : MOST_LISTS);
    OJ_NEW(self->low, d, err);
    OJ_NEW(self->place, flat->n_features * d, err);
    OJ_NEW(self->list, self->n_lists * flat->n_features, err);
    OJ_NEW(item, flat->n_features, err);
    find_frame(self, flat->n_features);
    status = make_lists(self, item, flat->n_features, err);
    oj_free(item);
    return status;
}

static oj_status build(struct oj_index *wrapped,
                       const struct oj_index_args *args, struct oj_stats *stats,
                       struct oj_error *err)
{
    struct zlists_index *self = (void *)wrapped;
    double start = oj_clock_seconds();
    self->args = *args;
    if (args->relation.vector.is_asked &&
        args->relation.vector.norm == OJ_NORM_COSINE)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the papers' Z-lists know l2, l1 and linf");
    if (args->join_side->n_features > 0)
        OJ_TRY(build_join_side_lists(self, err));
    stats->index_s += oj_clock_seconds() - start;
    stats->index_bytes +=
        4 * self->n_lists * self->n +
        4 * args->join_side->n_features * self->side.vectors.n_dimensions;
    return OJ_OK;
}

/* --- a row ---------------------------------------------------------------- */

static oj_status try_feature(struct zlists_batch *b, int64_t row,
                             int32_t feature, struct oj_error *err)
{
    const struct zlists_index *self = b->self;
    const struct oj_relation *relation = &self->args.relation;
    if (!oj_pair_may_count(&b->filter, row, feature))
        return OJ_OK;
    b->n_candidates++;
    return oj_ranking_add(
        &b->ranking, feature,
        oj_vector_difference(is_by_vectors(relation) ? relation->vector.norm
                                                     : OJ_NORM_L2,
                             oj_vector_at(&b->side.vectors, row),
                             oj_vector_at(&self->side.vectors, feature),
                             self->side.vectors.n_dimensions),
        err);
}

/* Features of list l that come before a corner, or with is_end before or with
 * it. */
static int64_t find_corner_in_list(const struct zlists_batch *b, int l,
                                   int which, int is_end)
{
    const struct zlists_index *self = b->self;
    const int32_t *list = self->list + l * self->n;
    int64_t n_dimensions = self->side.vectors.n_dimensions;
    int64_t low = 0, high = self->n;
    while (low < high)
    {
        int64_t middle = (low + high) / 2;
        if (oj_z_compare(self->place + list[middle] * n_dimensions,
                         b->corner[which], n_dimensions,
                         oj_z_shift(l, self->n_lists)) < is_end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The corners of the box of what may be within a difference of a row. */
static void set_search_box_corners(struct zlists_batch *b, int64_t row,
                                   double most)
{
    const struct zlists_index *self = b->self;
    const double *x = oj_vector_at(&b->side.vectors, row);
    int64_t n = self->side.vectors.n_dimensions;
    double reach = oj_vector_reach(OJ_NORM_L2, n, 1.0, most);
    for (int64_t d = 0; d < n; d++)
    {
        b->corner[0][d] = oj_z_place(nextafter(x[d] - reach, -INFINITY),
                                     self->low[d], self->scale);
        b->corner[1][d] = oj_z_place(nextafter(x[d] + reach, INFINITY),
                                     self->low[d], self->scale);
    }
}

/* Those near the place of a row in each list, k on either side: a bound of the
 * k-th distance. */
static oj_status bound_by_near_places(struct zlists_batch *b, int64_t row,
                                      double *most, struct oj_error *err)
{
    const struct zlists_index *self = b->self;
    int64_t k = self->args.relation.k;
    oj_ranking_start(&b->ranking);
    set_search_box_corners(b, row, 0.0);
    for (int l = 0; l < self->n_lists; l++)
    {
        int64_t at = find_corner_in_list(b, l, 0, 0);
        int64_t first = at > k ? at - k : 0;
        int64_t end = self->n - at > k ? at + k : self->n;
        for (int64_t i = first; i < end; i++)
            OJ_TRY(try_feature(b, row, self->list[l * self->n + i], err));
    }
    oj_ranking_finish(&b->ranking);
    if (oj_ranking_kth_distance(&b->ranking) < *most)
        *most = oj_ranking_kth_distance(&b->ranking);
    return OJ_OK;
}

static oj_status join_row(struct zlists_batch *b, int64_t row,
                          struct oj_error *err)
{
    const struct zlists_index *self = b->self;
    const struct oj_relation *relation = &self->args.relation;
    double most = is_by_vectors(relation) ? relation->vector.max_difference
                                          : relation->max_distance;
    int64_t first = 0, end = INT64_MAX, length = INT64_MAX;
    if (relation->op != OJ_OP_DWITHIN && relation->k < OJ_EVERY_PAIR)
        OJ_TRY(bound_by_near_places(b, row, &most, err));
    set_search_box_corners(b, row, most);
    for (int l = 0; l < self->n_lists; l++)
    {
        int64_t from = find_corner_in_list(b, l, 0, 0),
                to = find_corner_in_list(b, l, 1, 1);
        if (to - from >= length)
            continue;
        length = to - from;
        first = l * self->n + from;
        end = l * self->n + to;
    }
    oj_ranking_start(&b->ranking);
    for (int64_t i = first; i < end; i++)
        OJ_TRY(try_feature(b, row, self->list[i], err));
    oj_ranking_finish(&b->ranking);
    return oj_answers_add(&b->answers, row, &b->ranking, err);
}

/* --- a batch -------------------------------------------------------------- */

static oj_status join_rows(struct zlists_batch *b, const struct oj_flat *input,
                           struct oj_matches *out, struct oj_error *err)
{
    const struct zlists_index *self = b->self;
    const struct oj_index_args *args = &self->args;
    struct oj_relation rest = args->relation;
    struct oj_pair_filter filter;
    OJ_TRY(oj_pair_filter_make(&args->relation, input, args->join_side, &filter,
                               err));
    rest.vector.is_asked = 0; /* ranks, and is looked at alone */
    OJ_TRY(oj_pair_filter_make(&rest, input, args->join_side, &b->filter, err));
    b->ranking = oj_ranking_make(&args->relation, args->tie_rank);
    if (args->relation.op == OJ_OP_DWITHIN)
        b->ranking.k = INT64_MAX;
    if (is_by_vectors(&args->relation))
        b->ranking.max_distance = b->ranking.bound =
            args->relation.vector.max_difference;
    oj_answers_start(&b->answers, args->options.max_batch_pairs,
                     input->n_features, 1);
    OJ_TRY(view_side_as_vectors(&b->side, input, &args->relation, err));
    for (int i = 0; i < 2; i++)
        OJ_NEW(b->corner[i], self->side.vectors.n_dimensions, err);
    for (int64_t row = 0; self->n > 0 && row < input->n_features; row++)
    {
        OJ_TRY(oj_check_cancel(args->options.cancel, err));
        if (oj_feature_may_pair(input, row) &&
            oj_vector_is_there(&b->side.vectors, row))
            OJ_TRY(join_row(b, row, err));
    }
    return oj_answers_to_matches(&b->answers, 1, input->n_features,
                                 &args->relation, args->tie_rank, out, err);
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct zlists_batch b = {.self = (void *)wrapped};
    double start = oj_clock_seconds();
    oj_status status = join_rows(&b, input, out, err);
    oj_ranking_free(&b.ranking);
    oj_answers_free(&b.answers);
    oj_free(b.side.own);
    oj_free(b.corner[0]);
    oj_free(b.corner[1]);
    stats->n_candidates += b.n_candidates;
    stats->refine_s += oj_clock_seconds() - start;
    return status;
}

/* Points are one to a feature. */
static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    if (is_by_vectors(relation))
        return relation->n_similar == 0;
    return (relation->op == OJ_OP_NEAREST || relation->op == OJ_OP_DWITHIN) &&
           relation->metric == OJ_METRIC_PLANAR &&
           relation->distance == OJ_DISTANCE_LEAST &&
           relation->min_distance == 0.0 &&
           !oj_relation_compares_attributes(relation) &&
           join_side->max_distance == NULL && oj_flat_is_points(join_side) &&
           (input == NULL ||
            (input->max_distance == NULL && oj_flat_is_points(input)));
}

const struct oj_engine oj_zlists_engine = {"shifted Z-lists",
                                           takes,
                                           sizeof(struct zlists_index),
                                           build,
                                           join,
                                           free_side,
                                           NULL,
                                           NULL};
