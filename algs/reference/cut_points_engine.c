/* The papers' method for the most similar trajectories, to compare with: of
 * each row the features in the order of the least distance that their boxes
 * allow, up to the k-th cut point; all that stays is measured, every vertex
 * with every vertex.
 *
 *  least m   m1 <= m2 <= m3 <= ..    most M of each
 *  cut point i where M_i < m_(i+1): what follows is farther than i is
 *
 * With M_i <= m_(i+1), as it was published, ties would be lost.
 *
 * Source: Leal, Gruenwald, Zhang, You 2016 (Top-KaBT), on one thread. */
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../base/oj_boxes.h"
#include "../pairs/oj_pair_filter.h"
#include "../pairs/oj_ranking.h"
#include "../relation/oj_engine.h"
#include "plain_shape_distances.h"

#include <stdlib.h>

struct cut_points_index
{
    struct oj_index_args args;
    struct oj_boxes boxes; /* of the join side */
};

/* A feature, by its box. */
struct bounded_feature
{
    double least, most;
    int32_t feature;
};

/* A batch on its way. */
struct cut_points_batch
{
    const struct cut_points_index *index;
    const struct oj_flat *input;
    struct oj_pair_filter filter;
    struct oj_ranking ranking;
    struct oj_answers answers;
    struct bounded_feature *bounded; /* [join features] */
    struct oj_stats *stats;
};

static void free_side(struct oj_index *wrapped)
{
    struct cut_points_index *self = (void *)wrapped;
    oj_boxes_free(&self->boxes);
}

static oj_status build(struct oj_index *wrapped,
                       const struct oj_index_args *args, struct oj_stats *stats,
                       struct oj_error *err)
{
    struct cut_points_index *self = (void *)wrapped;
    const struct oj_relation *relation = &args->relation;
    double start = oj_clock_seconds();
    if (relation->op != OJ_OP_NEAREST ||
        relation->distance != OJ_DISTANCE_HAUSDORFF_POINTS ||
        relation->metric != OJ_METRIC_PLANAR || relation->min_distance > 0.0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the papers' method knows only -op nearest -distance "
                       "hausdorff_points, planar and without -min_distance");
    self->args = *args;
    OJ_TRY(oj_boxes_make(args->join_side, &self->boxes, err));
    stats->index_s += oj_clock_seconds() - start;
    return OJ_OK;
}

static int compare_least(const void *a, const void *b)
{
    const struct bounded_feature *p = a, *q = b;
    return (p->least > q->least) - (p->least < q->least);
}

/* The features that may count, by their boxes; returns how many. */
static int64_t bound_features_by_box(const struct cut_points_batch *b,
                                     int64_t row)
{
    const struct oj_boxes *boxes = &b->index->boxes;
    struct oj_box around = oj_box_of_feature(b->input, row);
    int64_t n = 0;
    around = oj_box_around(&around, 0.0);
    for (int64_t f = 0; f < boxes->n; f++)
    {
        if (oj_box_is_empty(&boxes->box[f]) ||
            !oj_pair_may_count(&b->filter, row, f))
            continue;
        b->bounded[n++] = (struct bounded_feature){
            oj_box_distance(&around, &boxes->box[f]),
            oj_box_farthest(&around, &boxes->box[f]), (int32_t)f};
    }
    return n;
}

/* How many of n stay: all up to the k-th cut point. */
static int64_t cut(const struct bounded_feature *bounded, int64_t n, int64_t k)
{
    for (int64_t i = 0; i + 1 < n; i++)
    {
        k -= bounded[i].most < bounded[i + 1].least;
        if (k == 0)
            return i + 1;
    }
    return n;
}

static oj_status join_row(struct cut_points_batch *b, int64_t row,
                          struct oj_error *err)
{
    const struct oj_flat *side = b->index->args.join_side;
    int64_t n = bound_features_by_box(b, row);
    qsort(b->bounded, (size_t)n, sizeof *b->bounded, compare_least);
    n = cut(b->bounded, n, b->index->args.relation.k);
    oj_ranking_start(&b->ranking);
    for (int64_t i = 0; i < n; i++)
    {
        int32_t f = b->bounded[i].feature;
        double there = oj_plain_shapes_directed(b->input, row, side, f, 0);
        double back = oj_plain_shapes_directed(side, f, b->input, row, 0);
        OJ_TRY(oj_check_cancel(b->index->args.options.cancel, err));
        OJ_TRY(oj_ranking_add(&b->ranking, f, oj_larger(there, back), err));
    }
    b->stats->n_candidates += n;
    oj_ranking_finish(&b->ranking);
    return oj_answers_add(&b->answers, row, &b->ranking, err);
}

static oj_status join_rows(struct cut_points_batch *b, struct oj_matches *out,
                           struct oj_error *err)
{
    const struct oj_index_args *args = &b->index->args;
    int64_t first, end;
    OJ_NEW(b->bounded, args->join_side->n_features, err);
    for (int64_t row = 0; row < b->input->n_features; row++)
    {
        oj_flat_vertices(b->input, row, &first, &end);
        if (first < end)
            OJ_TRY(join_row(b, row, err));
    }
    return oj_answers_to_matches(&b->answers, 1, b->input->n_features,
                                 &args->relation, args->tie_rank, out, err);
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct cut_points_index *self = (void *)wrapped;
    const struct oj_index_args *args = &self->args;
    struct cut_points_batch b = {.index = self, .input = input, .stats = stats};
    double start = oj_clock_seconds();
    oj_status status;
    OJ_TRY(oj_pair_filter_make(&args->relation, input, args->join_side,
                               &b.filter, err));
    b.ranking = oj_ranking_make(&args->relation, args->tie_rank);
    oj_answers_start(&b.answers, args->options.max_batch_pairs,
                     input->n_features, 1);
    status = join_rows(&b, out, err);
    oj_free(b.bounded);
    oj_ranking_free(&b.ranking);
    oj_answers_free(&b.answers);
    stats->refine_s += oj_clock_seconds() - start;
    return status;
}

const struct oj_engine oj_cut_points_engine = {
    "cut points of boxes, all vertices of what stays",
    NULL,
    sizeof(struct cut_points_index),
    build,
    join,
    free_side,
    NULL,
    NULL};
