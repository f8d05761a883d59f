/** Paper: Lieberman, Sankaranarayanan, Samet 2008, "A Fast Similarity Join
 *  Algorithm Using Graphics Processing Units", sections IV and V (LSS).
 *
 *  Method: the join side is sorted in several Z-orders with different shifts
 *  (section IV; these Z-lists do not depend on the maximum difference). For
 *  each row, the corners of its search box delimit a range in every list; the
 *  shortest range is read (section V, algorithms 1 and 2).
 *
 *  Differences: fewer lists than the paper's d + 1, which was faster on the
 *  layers that we measured; and it also finds the k nearest, which the paper
 *  does not: the distances to the row's neighbours in the lists give an upper
 *  bound for the k-th distance. One thread.
 *
 *  The backend "zlists". On a GPU: cuda/papers/cuda_lss.cu. */
#include "../../flatten/base/oj_alloc.h"
#include "../foundations/kernels/oj_vector_frame.h"
#include "../foundations/kernels/oj_z_order_compare.h"
#include "../pairs/selection/oj_parallel_row_search.h"

#include <stdlib.h>

enum
{
    MOST_LISTS = 8
};

/* Coordinates of the features of one side. */
struct z_side
{
    struct oj_vectors vectors;
    double *own; /* coordinates that were copied from points, owned; NULL:
                    vectors borrows them */
};

/* An element of a list that is being sorted. */
struct z_item
{
    const uint32_t *place;
    int32_t n_dimensions, feature;
    uint32_t shift;
};

struct zlists_index
{
    struct oj_row_index shared;
    struct z_side side;
    int64_t n; /* number of features with coordinates */
    int n_lists;
    double *low, scale;
    uint32_t *place; /* [features][dimensions] grid place of each coordinate */
    int32_t *list;   /* [n_lists][n] features in the order of each list */

    /* The following members are for the current batch. */
    struct z_side input;
    struct oj_relation rest; /* the relation without the condition on vectors;
                                used by the pair filter */
};

struct zlists_worker
{
    struct oj_row_worker shared;
    uint32_t *corner[2]; /* [dimensions] lower and upper corner of a row's
                            search box */
};

static oj_status set_vectors_or_copy_points(struct z_side *side,
                                            const struct oj_flat *flat,
                                            const struct oj_relation *relation,
                                            struct oj_error *err)
{
    side->vectors = flat->vectors;
    if (oj_relation_is_similar(relation) || flat->n_features == 0)
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

static void free_lss_index(struct oj_index *wrapped)
{
    struct zlists_index *self = (void *)wrapped;
    oj_free(self->side.own);
    oj_free(self->low);
    oj_free(self->place);
    oj_free(self->list);
}

/* --- the sorted lists ----------------------------------------------------- */

static int compare_by_zorder(const void *left, const void *right)
{
    const struct z_item *a = left, *b = right;
    int order = oj_z_compare(a->place, b->place, a->n_dimensions, a->shift);
    return order != 0 ? order : a->feature < b->feature ? -1 : 1;
}

/* Finds the minimum of each dimension, and a common scale for all. */
static void find_least_coordinates_and_scale(struct zlists_index *self,
                                             int64_t n_features)
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
    if (!(self->scale < INFINITY)) /* all points are equal or nearly equal */
        self->scale = 0.0;
}

static oj_status make_zorder_lists(struct zlists_index *self,
                                   struct z_item *item, int64_t n_features,
                                   struct oj_error *err)
{
    const struct oj_vectors *v = &self->side.vectors;
    int64_t n_dimensions = v->n_dimensions;
    for (int64_t i = 0; i < n_features; i++)
    {
        uint32_t *place = self->place + i * n_dimensions;
        if (!oj_vector_is_there(v, i))
            continue;
        for (int64_t d = 0; d < n_dimensions; d++)
            place[d] = oj_z_grid_index(oj_vector_at(v, i)[d], self->low[d],
                                       self->scale);
        item[self->n++] =
            (struct z_item){place, (int32_t)n_dimensions, (int32_t)i, 0};
    }
    for (int l = 0; l < self->n_lists; l++)
    {
        OJ_TRY(oj_check_cancel(self->shared.args.options.cancel, err));
        for (int64_t i = 0; i < self->n; i++)
            item[i].shift = oj_z_shift(l, self->n_lists);
        qsort(item, (size_t)self->n, sizeof *item, compare_by_zorder);
        for (int64_t i = 0; i < self->n; i++)
            self->list[l * self->n + i] = item[i].feature;
    }
    return OJ_OK;
}

static oj_status build_join_side_lists(struct zlists_index *self,
                                       struct oj_error *err)
{
    const struct oj_index_args *args = &self->shared.args;
    const struct oj_flat *flat = args->join_side;
    struct z_item *item;
    int64_t d;
    oj_status status;
    OJ_TRY(set_vectors_or_copy_points(&self->side, flat, &args->relation, err));
    if (self->side.vectors.value == NULL)
        return oj_fail(
            err, OJ_ERR_ARG,
            "the join side has no vectors: name its columns in vector");
    d = self->side.vectors.n_dimensions;
    self->n_lists = (int)(d + 1 < MOST_LISTS ? d + 1 : MOST_LISTS);
    OJ_NEW(self->low, d, err);
    OJ_NEW(self->place, flat->n_features * d, err);
    OJ_NEW(self->list, self->n_lists * flat->n_features, err);
    OJ_NEW(item, flat->n_features, err);
    find_least_coordinates_and_scale(self, flat->n_features);
    status = make_zorder_lists(self, item, flat->n_features, err);
    oj_free(item);
    return status;
}

/* --- a row ---------------------------------------------------------------- */

static double max_difference_of_join(const struct oj_relation *relation)
{
    return oj_relation_is_similar(relation) ? relation->vector.max_difference
                                            : relation->max_distance;
}

static oj_status
measure_feature_and_add_to_ranking(struct zlists_index *self,
                                   struct zlists_worker *worker, int64_t row,
                                   int32_t feature, struct oj_error *err)
{
    const struct oj_relation *relation = &self->shared.args.relation;
    double difference;
    if (!oj_pair_filter_accepts(&self->shared.filter, row, feature))
        return OJ_OK;
    worker->shared.n_candidates++;
    difference = oj_vector_difference(
        oj_relation_is_similar(relation) ? relation->vector.norm : OJ_NORM_L2,
        oj_vector_at(&self->input.vectors, row),
        oj_vector_at(&self->side.vectors, feature),
        self->side.vectors.n_dimensions);
    return difference <= max_difference_of_join(relation)
               ? oj_row_add_pair(&self->shared, &worker->shared, row, feature,
                                 difference, err)
               : OJ_OK;
}

/* Returns the number of features of list l that precede the corner. is_end 1:
 * also counts the features equal to the corner. */
static int64_t find_corner_in_list(const struct zlists_index *self, int l,
                                   const uint32_t *corner, int is_end)
{
    const int32_t *list = self->list + l * self->n;
    int64_t n_dimensions = self->side.vectors.n_dimensions;
    int64_t low = 0, high = self->n;
    while (low < high)
    {
        int64_t middle = (low + high) / 2;
        if (oj_z_compare(self->place + list[middle] * n_dimensions, corner,
                         n_dimensions, oj_z_shift(l, self->n_lists)) < is_end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Sets the corners of the search box, which contains all features whose
 * difference from the row is at most `most`. */
static void set_search_box_corners(const struct zlists_index *self,
                                   struct zlists_worker *worker, int64_t row,
                                   double most)
{
    const double *x = oj_vector_at(&self->input.vectors, row);
    int64_t n = self->side.vectors.n_dimensions;
    double reach = oj_vector_max_true_difference(OJ_NORM_L2, n, 1.0, most);
    for (int64_t d = 0; d < n; d++)
    {
        worker->corner[0][d] = oj_z_grid_index(
            nextafter(x[d] - reach, -INFINITY), self->low[d], self->scale);
        worker->corner[1][d] = oj_z_grid_index(
            nextafter(x[d] + reach, INFINITY), self->low[d], self->scale);
    }
}

/* Sets *most to an upper bound of the row's k-th distance: computed from the
 * distances to the k features before and the k features after the row in each
 * list. */
static oj_status bound_kth_distance_by_neighbours(struct zlists_index *self,
                                                  struct zlists_worker *worker,
                                                  int64_t row, double *most,
                                                  struct oj_error *err)
{
    struct oj_ranking *ranking = &worker->shared.ranking;
    int64_t k = self->shared.args.relation.k;
    set_search_box_corners(self, worker, row, 0.0);
    for (int l = 0; l < self->n_lists; l++)
    {
        int64_t at = find_corner_in_list(self, l, worker->corner[0], 0);
        int64_t first = at > k ? at - k : 0;
        int64_t end = self->n - at > k ? at + k : self->n;
        for (int64_t i = first; i < end; i++)
            OJ_TRY(measure_feature_and_add_to_ranking(
                self, worker, row, self->list[l * self->n + i], err));
    }
    oj_ranking_finish(ranking);
    if (oj_ranking_kth_distance(ranking) < *most)
        *most = oj_ranking_kth_distance(ranking);
    oj_ranking_start(ranking);
    return OJ_OK;
}

static oj_status search_row_in_zlists(struct oj_row_index *shared,
                                      struct oj_row_worker *of_row, int64_t row,
                                      struct oj_error *err)
{
    struct zlists_index *self = (void *)shared;
    struct zlists_worker *worker = (void *)of_row;
    const struct oj_relation *relation = &shared->args.relation;
    double most = max_difference_of_join(relation);
    int64_t first = 0, end = INT64_MAX, length = INT64_MAX;
    if (!oj_feature_may_pair(shared->input, row) ||
        !oj_vector_is_there(&self->input.vectors, row))
        return OJ_OK;
    for (int i = 0; i < 2; i++)
    {
        if (worker->corner[i] == NULL)
            OJ_NEW(worker->corner[i], self->side.vectors.n_dimensions, err);
    }
    if (!oj_relation_is_dwithin(relation) && relation->k < OJ_EVERY_PAIR)
        OJ_TRY(bound_kth_distance_by_neighbours(self, worker, row, &most, err));
    set_search_box_corners(self, worker, row, most);
    for (int l = 0; l < self->n_lists; l++)
    {
        int64_t from = find_corner_in_list(self, l, worker->corner[0], 0);
        int64_t to = find_corner_in_list(self, l, worker->corner[1], 1);
        if (to - from >= length)
            continue;
        length = to - from;
        first = l * self->n + from;
        end = l * self->n + to;
    }
    for (int64_t i = first; i < end; i++)
        OJ_TRY(measure_feature_and_add_to_ranking(self, worker, row,
                                                  self->list[i], err));
    return OJ_OK;
}

/* --- a batch -------------------------------------------------------------- */

static oj_status start_batch(struct oj_row_index *shared, struct oj_error *err)
{
    struct zlists_index *self = (void *)shared;
    self->rest = shared->args.relation;
    /* the filter must not test the difference of vectors, which ranks pairs */
    self->rest.vector.is_asked = 0;
    OJ_TRY(oj_pair_filter_make(&self->rest, shared->input,
                               shared->args.join_side, &shared->filter, err));
    shared->n_rows = self->n > 0 ? shared->n_rows : 0;
    return set_vectors_or_copy_points(&self->input, shared->input,
                                      &shared->args.relation, err);
}

static void end_batch(struct oj_row_index *shared)
{
    struct zlists_index *self = (void *)shared;
    oj_free(self->input.own);
    self->input.own = NULL;
}

static void free_worker(struct oj_row_worker *worker)
{
    oj_free(((struct zlists_worker *)(void *)worker)->corner[0]);
    oj_free(((struct zlists_worker *)(void *)worker)->corner[1]);
}

static const struct oj_row_method zlists = {.worker_size =
                                                sizeof(struct zlists_worker),
                                            .on_one_thread = 1,
                                            .start = start_batch,
                                            .search = search_row_in_zlists,
                                            .end = end_batch,
                                            .free_worker = free_worker};

static oj_status build_zlists(struct oj_index *wrapped,
                              const struct oj_index_args *args,
                              struct oj_stats *stats, struct oj_error *err)
{
    struct zlists_index *self = oj_row_index_begin(wrapped, &zlists, args);
    if (args->relation.vector.is_asked &&
        args->relation.vector.norm == OJ_NORM_COSINE)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the backend \"%s\" supports only the norms l2, l1 and "
                       "linf: use the backend cpu for cosine",
                       args->engine->name);
    if (args->join_side->n_features > 0)
        OJ_TRY(build_join_side_lists(self, err));
    stats->index_bytes +=
        4 * self->n_lists * self->n +
        4 * args->join_side->n_features * self->side.vectors.n_dimensions;
    return OJ_OK;
}

/* Returns 1 if this method supports the join: vectors, or single points by
 * distance in the plane. */
int oj_zlists_supports_join(const struct oj_relation *relation,
                            const struct oj_flat *join_side,
                            const struct oj_flat *input)
{
    if (oj_relation_is_similar(relation))
        return relation->n_similar == 0;
    return oj_relation_is_by_distance(relation) &&
           relation->metric == OJ_METRIC_PLANAR &&
           relation->distance == OJ_DISTANCE_LEAST &&
           relation->min_distance == 0.0 &&
           !oj_relation_compares_attributes(relation) &&
           join_side->max_distance == NULL && oj_flat_is_points(join_side) &&
           (input == NULL ||
            (input->max_distance == NULL && oj_flat_is_points(input)));
}

const struct oj_engine oj_zlists_engine = {.name = "shifted Z-lists",
                                           .supports = oj_zlists_supports_join,
                                           .index_size =
                                               sizeof(struct zlists_index),
                                           .build = build_zlists,
                                           .join = oj_row_join,
                                           .free_side = free_lss_index,
                                           .free_batches = oj_row_batches_free,
                                           .set_options = oj_row_set_options};
