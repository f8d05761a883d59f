#include "oj_points_in_overlapping_parts.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../foundations/base/oj_feature_box.h"
#include "../../pairs/selection/oj_pair_filter.h"
#include "../../pairs/selection/oj_tie_rank_sort.h"

struct point_pair
{
    int64_t row;
    int32_t feature;
};

struct oj_overlapping_points
{
    struct oj_index_args args; /* arguments of the join's own engine */
    uint8_t *others;           /* [features] 1: the feature has no overlapping
                                  parts */
    struct oj_flat flat;       /* the join side without the features marked in
                                  `others` */
    struct oj_box box;         /* box of the features in flat */
    struct oj_index *index;
    struct oj_matches found; /* pairs of `points` with flat */

    /* The following are for the current batch. */
    struct oj_flat_buf points; /* points of the batch within box */
    struct point_pair *pair;   /* [n_pairs] by row, then in tie order */
    int64_t n_pairs, cap_pairs;
};

/* --- features with overlapping parts -------------------------------------- */

static oj_status
mark_features_without_overlaps(struct oj_overlapping_points *self,
                               struct oj_error *err)
{
    const struct oj_flat *flat = self->args.join_side;
    OJ_NEW(self->others, flat->n_features, err);
    self->box = oj_box_empty();
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        struct oj_box box = oj_box_of_feature(flat, f);
        self->others[f] = !flat->overlaps[f];
        if (flat->overlaps[f])
            oj_box_add_box(&self->box, &box);
    }
    self->flat = *flat;
    self->flat.overlaps = self->others;
    /* no conditions here: find_pairs() tests them for each pair found */
    self->flat.max_distance = NULL;
    self->flat.on_class = self->flat.exclude_class = NULL;
    self->flat.n_texts = 0;
    self->flat.vectors = (struct oj_vectors){0};
    self->flat.n_spans = 0;
    return OJ_OK;
}

/* Builds the index of the features with overlapping parts, without exclusions
 * and limits, which find_pairs() tests for each pair. */
static oj_status build_index_of_overlapping(struct oj_overlapping_points *self,
                                            struct oj_stats *stats,
                                            struct oj_error *err)
{
    struct oj_index_args args = self->args;
    OJ_TRY(mark_features_without_overlaps(self, err));
    args.join_side = &self->flat;
    args.relation = oj_relation_default();
    args.relation.op = self->args.relation.op;
    args.options.max_batch_pairs = 0;
    return oj_index_make(&oj_cpu_points_in_polygons, &args, &self->index, stats,
                         err);
}

oj_status oj_overlapping_points_make(const struct oj_index_args *args,
                                     struct oj_overlapping_points **out,
                                     struct oj_stats *stats,
                                     struct oj_error *err)
{
    struct oj_overlapping_points *self;
    oj_status status;
    OJ_NEW_ZEROED(self, 1, err);
    self->args = *args;
    status = build_index_of_overlapping(self, stats, err);
    if (status == OJ_OK)
        *out = self;
    else
        oj_overlapping_points_free(self);
    return status;
}

void oj_overlapping_points_free(struct oj_overlapping_points *self)
{
    if (self == NULL)
        return;
    oj_index_free(&oj_cpu_points_in_polygons, self->index);
    oj_matches_free(&self->found);
    oj_flat_buf_free(&self->points);
    oj_free(self->others);
    oj_free(self->pair);
    oj_free(self);
}

/* --- pairs of points with these features ---------------------------------- */

static oj_status select_points_in_box(struct oj_overlapping_points *self,
                                      const struct oj_flat *input,
                                      struct oj_error *err)
{
    const struct oj_box box = self->box;
    oj_flat_buf_clear(&self->points);
    for (int64_t i = 0; i < input->n_features; i++)
    {
        double x = input->x[i], y = input->y[i];
        if (x >= box.x0 && x <= box.x1 && y >= box.y0 && y <= box.y1)
            OJ_TRY(oj_flat_buf_add_point(&self->points, i, x, y, err));
    }
    return OJ_OK;
}

/* Finds all pairs of the batch with the features with overlapping parts and
 * stores them in self->pair. */
static oj_status find_pairs(struct oj_overlapping_points *self,
                            const struct oj_flat *input, struct oj_stats *stats,
                            struct oj_error *err)
{
    struct oj_matches *found = &self->found;
    struct oj_pair_filter filter;
    struct oj_flat points;
    self->n_pairs = 0;
    OJ_TRY(oj_pair_filter_make(&self->args.relation, input,
                               self->args.join_side, &filter, err));
    OJ_TRY(select_points_in_box(self, input, err));
    points = oj_flat_buf_view(&self->points);
    if (points.n_features == 0)
        return OJ_OK;
    OJ_TRY(oj_cpu_points_in_polygons.join(self->index, &points, found, stats,
                                          err));
    for (int64_t i = 0; i < points.n_features; i++)
    {
        struct point_pair pair = {.row = points.fid[i]};
        for (int64_t p = found->offset[i]; p < found->offset[i + 1]; p++)
        {
            pair.feature = found->join_row[p];
            if (!oj_pair_filter_accepts(&filter, pair.row, pair.feature))
                continue;
            OJ_ROOM(self->pair, self->n_pairs, self->n_pairs + 1,
                    self->cap_pairs, err);
            self->pair[self->n_pairs++] = pair;
        }
    }
    return OJ_OK;
}

/* --- merging with the engine's pairs -------------------------------------- */

/* Merges the pairs into the engine's result in place. Starts at the end, so
 * that each pair is moved only once. */
static void merge_pairs_into_matches(const struct oj_overlapping_points *self,
                                     struct oj_matches *out)
{
    const struct point_pair *pair = self->pair;
    int64_t left = self->n_pairs, end = out->offset[out->n_rows];
    int64_t to = end + left;
    out->n_entries = to;
    for (int64_t row = out->n_rows - 1; left > 0; row--)
    {
        int64_t first = out->offset[row], before = left;
        int is_new = first == end;
        out->offset[row + 1] = to;
        while (end > first || (left > 0 && pair[left - 1].row == row))
        {
            int is_own =
                left == 0 || pair[left - 1].row != row ||
                (end > first &&
                 oj_tie_rank(self->args.tie_rank, out->join_row[end - 1]) >=
                     oj_tie_rank(self->args.tie_rank, pair[left - 1].feature));
            to--;
            out->join_row[to] =
                is_own ? out->join_row[end - 1] : pair[left - 1].feature;
            out->measure[to] = NAN;
            end -= is_own;
            left -= !is_own;
        }
        out->n_matched += is_new && left < before;
    }
}

oj_status oj_overlapping_points_add_pairs(struct oj_overlapping_points *self,
                                          const struct oj_flat *input,
                                          struct oj_matches *out,
                                          struct oj_stats *stats,
                                          struct oj_error *err)
{
    int64_t n = out->offset[out->n_rows];
    OJ_TRY(find_pairs(self, input, stats, err));
    if (self->n_pairs == 0)
        return OJ_OK;
    OJ_TRY(oj_pair_budget_check(
        oj_most_pairs_of_batch(self->args.options.max_batch_pairs, out->n_rows),
        out->n_pairs + self->n_pairs, err));
    OJ_TRY(oj_matches_grow(out, n, n + self->n_pairs, err));
    merge_pairs_into_matches(self, out);
    out->n_pairs += self->n_pairs;
    return OJ_OK;
}
