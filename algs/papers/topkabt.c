/** Paper: Leal, Gruenwald, Zhang, You 2015, "Towards an Efficient Top-K
 *  Trajectory Similarity Query Processing Algorithm for Big Trajectory Data on
 *  GPGPUs", section IV (Top-KaBT).
 *
 *  Method: the boxes of the row and of a join feature give a lower bound m and
 *  an upper bound M of their distance. The features are sorted by m.  Features
 *  after the k-th cut point cannot be among the k nearest (theorem 7). For the
 *  other features, the distance is computed from all pairs of vertices.
 *
 *  With m_1 <= m_2 <= m_3 <= .., feature i is a cut point if M_i < m_(i+1): all
 *  later features are then farther than feature i.
 *
 *  Difference: the paper's definition 2 reads M_i <= m_(i+1), which loses a
 *  feature at exactly the k-th distance; here such ties are kept. One thread.
 *
 *  The backend "cut_points". On a GPU: cuda/papers/cuda_topkabt.cu. */
#include "../../flatten/base/oj_alloc.h"
#include "../foundations/base/oj_feature_box.h"
#include "../pairs/selection/oj_parallel_row_search.h"
#include "../references/validation/plain_shape_distances.h"

#include <stdlib.h>

struct cut_points_index
{
    struct oj_row_index shared;
    struct oj_boxes boxes; /* boxes of the join side */
};

/* A join feature with bounds of its distance to the row. */
struct bounded_feature
{
    double least, most;
    int32_t feature;
};

struct cut_points_worker
{
    struct oj_row_worker shared;
    struct bounded_feature *bounded; /* [join features] scratch: features that
                                        pass the filter, with their bounds */
};

static void free_topkabt_index(struct oj_index *wrapped)
{
    struct cut_points_index *self = (void *)wrapped;
    oj_boxes_free(&self->boxes);
}

static int compare_least_distances(const void *a, const void *b)
{
    const struct bounded_feature *p = a, *q = b;
    return (p->least > q->least) - (p->least < q->least);
}

/* Lists the features that pass the filter, with bounds of their distance to the
 * row. Returns their number. */
static int64_t
list_features_with_box_bounds(const struct cut_points_index *self, int64_t row,
                              struct bounded_feature *bounded)
{
    const struct oj_boxes *boxes = &self->boxes;
    struct oj_box around = oj_box_of_feature(self->shared.input, row);
    int64_t n = 0;
    around = oj_box_widened(&around, 0.0);
    for (int64_t f = 0; f < boxes->n; f++)
    {
        if (oj_box_is_empty(&boxes->box[f]) ||
            !oj_pair_filter_accepts(&self->shared.filter, row, f))
            continue;
        bounded[n++] = (struct bounded_feature){
            oj_box_distance(&around, &boxes->box[f]),
            oj_box_max_distance(&around, &boxes->box[f]), (int32_t)f};
    }
    return n;
}

/* Returns the number of features up to and including the k-th cut point (a
 * feature whose upper bound is less than the lower bound of the next), or n if
 * there are fewer than k. bounded is in ascending order of the lower bound. */
static int64_t count_up_to_kth_cut_point(const struct bounded_feature *bounded,
                                         int64_t n, int64_t k)
{
    for (int64_t i = 0; i + 1 < n; i++)
    {
        k -= bounded[i].most < bounded[i + 1].least;
        if (k == 0)
            return i + 1;
    }
    return n;
}

static oj_status rank_up_to_cut_point(struct oj_row_index *shared,
                                      struct oj_row_worker *worker, int64_t row,
                                      struct oj_error *err)
{
    const struct cut_points_index *self = (void *)shared;
    const struct oj_flat *side = shared->args.join_side, *input = shared->input;
    struct cut_points_worker *own = (void *)worker;
    int64_t first, end, n;
    oj_flat_vertex_range(input, row, &first, &end);
    if (first == end)
        return OJ_OK;
    if (own->bounded == NULL)
        OJ_NEW(own->bounded, side->n_features, err);
    n = list_features_with_box_bounds(self, row, own->bounded);
    qsort(own->bounded, (size_t)n, sizeof *own->bounded,
          compare_least_distances);
    n = count_up_to_kth_cut_point(own->bounded, n, shared->args.relation.k);
    for (int64_t i = 0; i < n; i++)
    {
        int32_t f = own->bounded[i].feature;
        double there =
            oj_plain_shapes_directed_hausdorff(input, row, side, f, 0);
        double back =
            oj_plain_shapes_directed_hausdorff(side, f, input, row, 0);
        OJ_TRY(oj_check_cancel(shared->args.options.cancel, err));
        OJ_TRY(
            oj_ranking_add(&worker->ranking, f, oj_larger(there, back), err));
    }
    worker->n_candidates += n;
    return OJ_OK;
}

static void free_worker(struct oj_row_worker *worker)
{
    oj_free(((struct cut_points_worker *)(void *)worker)->bounded);
}

static const struct oj_row_method cutting = {
    .worker_size = sizeof(struct cut_points_worker),
    .on_one_thread = 1,
    .search = rank_up_to_cut_point,
    .free_worker = free_worker};

static oj_status build_boxes(struct oj_index *wrapped,
                             const struct oj_index_args *args,
                             struct oj_stats *stats, struct oj_error *err)
{
    struct cut_points_index *self = oj_row_index_begin(wrapped, &cutting, args);
    const struct oj_relation *relation = &args->relation;
    (void)stats;
    if (!oj_relation_is_nearest(relation) ||
        relation->distance != OJ_DISTANCE_HAUSDORFF_POINTS ||
        relation->metric != OJ_METRIC_PLANAR || relation->min_distance > 0.0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the backend \"%s\" supports only op nearest with "
                       "distance hausdorff_points and metric planar, without "
                       "min_distance: use the backend cpu",
                       args->engine->name);
    return oj_boxes_make(args->join_side, &self->boxes, err);
}

const struct oj_engine oj_cut_points_engine = {
    .name = "cut points of boxes, all vertices of what stays",
    .index_size = sizeof(struct cut_points_index),
    .build = build_boxes,
    .join = oj_row_join,
    .free_side = free_topkabt_index,
    .free_batches = oj_row_batches_free,
    .set_options = oj_row_set_options};
