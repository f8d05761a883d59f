#include "oj_overlapping_points.h"

#include "../../flatten/base/oj_array.h"
#include "../base/oj_boxes.h"
#include "../pairs/oj_pairs.h"
#include "../relation/cpu_family.h"

#include <string.h>

struct point_pair
{
    int64_t row;
    int32_t feature;
};

struct oj_overlapping_points
{
    const struct oj_flat *join_side;
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;
    int64_t max_batch_pairs;
    struct oj_flat_buf copies; /* of the features */
    struct oj_flat flat;       /* of copies */
    struct oj_box box;         /* of all of them */
    int32_t *feature;          /* [flat.n_features] of join_side, ascending */
    struct oj_relation asked;  /* without exclusions */
    struct oj_index *index;
    struct oj_matches found; /* of the points in box with flat */

    /* Of a batch. */
    double *x, *y; /* [n_points] in box */
    int64_t *row;
    int64_t n_points, cap_x, cap_y, cap_row;
    struct point_pair *pair; /* [n_pairs] by row, in tie order */
    int64_t n_pairs, cap_pairs;
    struct oj_matches merged;
};

/* --- the features --------------------------------------------------------- */

static oj_status copy_feature(struct oj_overlapping_points *self,
                              int64_t feature, struct oj_error *err)
{
    const struct oj_flat *flat = self->join_side;
    int64_t v, end;
    oj_flat_vertices(flat, feature, &v, &end);
    for (; v < end; v++)
        oj_box_add_point(&self->box, flat->x[v], flat->y[v]);
    self->feature[self->copies.n_features] = (int32_t)feature;
    OJ_TRY(oj_flat_buf_begin(&self->copies, self->copies.n_features, err));
    for (int64_t p = flat->part_offset[feature];
         p < flat->part_offset[feature + 1]; p++)
        OJ_TRY(oj_flat_buf_copy_part(&self->copies, flat, p, err));
    return oj_flat_buf_end(&self->copies, err);
}

static oj_status copy_features(struct oj_overlapping_points *self,
                               struct oj_error *err)
{
    const struct oj_flat *flat = self->join_side;
    int64_t n = 0;
    for (int64_t f = 0; f < flat->n_features; f++)
        n += flat->overlaps[f];
    OJ_NEW(self->feature, n, err);
    self->box = oj_box_empty();
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        if (flat->overlaps[f])
            OJ_TRY(copy_feature(self, f, err));
    }
    self->flat = oj_flat_buf_view(&self->copies);
    return OJ_OK;
}

oj_status oj_overlapping_points_make(const struct oj_flat *join_side,
                                     const int32_t *tie_rank,
                                     const struct oj_relation *relation,
                                     const struct oj_options *options,
                                     struct oj_overlapping_points **out,
                                     struct oj_stats *stats,
                                     struct oj_error *err)
{
    struct oj_overlapping_points *self = oj_calloc(1, sizeof *self);
    oj_status status;
    if (self == NULL)
        return oj_fail_nomem(err, 1, sizeof *self);
    self->join_side = join_side;
    self->tie_rank = tie_rank;
    self->relation = *relation;
    self->options = *options;
    self->max_batch_pairs = options->max_batch_pairs;
    self->options.max_batch_pairs = 0; /* before exclusions */
    self->asked = oj_relation_default();
    self->asked.op = relation->op;
    status = copy_features(self, err);
    if (status == OJ_OK)
        status = oj_cpu_points_in_polygons.index(&self->flat, NULL,
                                                 &self->asked, &self->options,
                                                 &self->index, stats, err);
    if (status != OJ_OK)
    {
        oj_overlapping_points_free(self);
        return status;
    }
    *out = self;
    return OJ_OK;
}

void oj_overlapping_points_free(struct oj_overlapping_points *self)
{
    if (self == NULL)
        return;
    oj_cpu_points_in_polygons.free_index(self->index);
    oj_matches_free(&self->found);
    oj_matches_free(&self->merged);
    oj_flat_buf_free(&self->copies);
    oj_free(self->feature);
    oj_free(self->x);
    oj_free(self->y);
    oj_free(self->row);
    oj_free(self->pair);
    oj_free(self);
}

/* --- points --------------------------------------------------------------- */

static oj_status take_points(struct oj_overlapping_points *self,
                             const struct oj_flat *input, struct oj_error *err)
{
    const struct oj_box box = self->box;
    int64_t n = 0;
    for (int64_t i = 0; i < input->n_features; i++)
        n += (input->x[i] >= box.x0) & (input->x[i] <= box.x1) &
             (input->y[i] >= box.y0) & (input->y[i] <= box.y1);
    self->n_points = 0;
    OJ_TRY(oj_reserve(&self->x, 0, n, &self->cap_x, sizeof *self->x, err));
    OJ_TRY(oj_reserve(&self->y, 0, n, &self->cap_y, sizeof *self->y, err));
    OJ_TRY(
        oj_reserve(&self->row, 0, n, &self->cap_row, sizeof *self->row, err));
    for (int64_t i = 0; n > 0 && i < input->n_features; i++)
    {
        double x = input->x[i], y = input->y[i];
        if (!(x >= box.x0 && x <= box.x1 && y >= box.y0 && y <= box.y1))
            continue;
        self->x[self->n_points] = x;
        self->y[self->n_points] = y;
        self->row[self->n_points++] = i;
    }
    return OJ_OK;
}

static oj_status join_points(struct oj_overlapping_points *self,
                             struct oj_stats *stats, struct oj_error *err)
{
    struct oj_flat points;
    memset(&points, 0, sizeof points);
    points.n_features = points.n_parts = points.n_rings = points.n_vertices =
        self->n_points;
    points.part_kinds = OJ_PART_POINT;
    points.x = self->x;
    points.y = self->y;
    return oj_cpu_points_in_polygons.join(self->index, &points, &self->found,
                                          stats, err);
}

static int64_t rank_of(const struct oj_overlapping_points *self,
                       int32_t feature)
{
    return self->tie_rank != NULL ? self->tie_rank[feature] : feature;
}

/* Adds a pair of a row whose pairs begin at first, in tie order. */
static oj_status add_pair(struct oj_overlapping_points *self, int64_t first,
                          int64_t row, int32_t feature, struct oj_error *err)
{
    int64_t i = self->n_pairs;
    OJ_TRY(oj_reserve(&self->pair, i, i + 1, &self->cap_pairs,
                      sizeof *self->pair, err));
    for (; i > first &&
           rank_of(self, self->pair[i - 1].feature) > rank_of(self, feature);
         i--)
        self->pair[i] = self->pair[i - 1];
    self->pair[i].row = row;
    self->pair[i].feature = feature;
    self->n_pairs++;
    return OJ_OK;
}

/* The features of point i. */
static oj_status take_features(struct oj_overlapping_points *self,
                               const struct oj_pair_filter *filter, int64_t i,
                               struct oj_error *err)
{
    int64_t first = self->n_pairs;
    for (int64_t p = self->found.offset[i]; p < self->found.offset[i + 1]; p++)
    {
        int32_t feature = self->feature[self->found.join_row[p]];
        if (oj_pair_may_count(filter, self->row[i], feature))
            OJ_TRY(add_pair(self, first, self->row[i], feature, err));
    }
    return OJ_OK;
}

/* Fills pair. */
static oj_status find_pairs(struct oj_overlapping_points *self,
                            const struct oj_flat *input, struct oj_stats *stats,
                            struct oj_error *err)
{
    struct oj_pair_filter filter;
    self->n_pairs = 0;
    OJ_TRY(oj_pair_filter_make(&self->relation, input, self->join_side, &filter,
                               err));
    OJ_TRY(take_points(self, input, err));
    if (self->n_points == 0)
        return OJ_OK;
    OJ_TRY(join_points(self, stats, err));
    for (int64_t i = 0; i < self->n_points; i++)
        OJ_TRY(take_features(self, &filter, i, err));
    return OJ_OK;
}

/* --- one answer ----------------------------------------------------------- */

/* Own entries of the engine's lists, entries between lists apart. */
static int64_t count_own(const struct oj_matches *m)
{
    int64_t n = 0;
    for (int64_t row = 0; row < m->n_rows; row++)
        n += oj_matches_end(m, row) - oj_matches_first(m, row);
    return n;
}

static int has_shared(const struct oj_matches *m, int64_t row)
{
    return m->shared != NULL && m->shared->offset[m->list[row] + 1] >
                                    m->shared->offset[m->list[row]];
}

/* Merges the n pairs of a row from `pair` on with its own; to: the next
 * entry. */
static void merge_row(struct oj_overlapping_points *self,
                      const struct oj_matches *from, int64_t row,
                      const struct point_pair *pair, int64_t n, int64_t *to)
{
    int64_t p = oj_matches_first(from, row), end = oj_matches_end(from, row);
    struct oj_matches *merged = &self->merged;
    int64_t k = 0;
    while (p < end || k < n)
    {
        int is_own = k == n || (p < end && rank_of(self, from->join_row[p]) <
                                               rank_of(self, pair[k].feature));
        merged->join_row[*to] = is_own ? from->join_row[p] : pair[k].feature;
        merged->measure[*to] = NAN;
        p += is_own;
        k += !is_own;
        ++*to;
    }
}

/* Takes the lists that were merged for those of the engine, whose memory is
 * used for the next batch. */
static void exchange(struct oj_matches *out, struct oj_matches *merged)
{
    struct oj_matches old = *out;
    out->offset = merged->offset;
    out->join_row = merged->join_row;
    out->measure = merged->measure;
    out->cap_offset = merged->cap_offset;
    out->cap_join_row = merged->cap_join_row;
    out->cap_measure = merged->cap_measure;
    out->n_entries = merged->n_entries;
    out->scattered = 0;
    memset(merged, 0, sizeof *merged);
    merged->offset = old.offset;
    merged->join_row = old.join_row;
    merged->measure = old.measure;
    merged->cap_offset = old.cap_offset;
    merged->cap_join_row = old.cap_join_row;
    merged->cap_measure = old.cap_measure;
}

oj_status oj_overlapping_points_add(struct oj_overlapping_points *self,
                                    const struct oj_flat *input,
                                    struct oj_matches *out,
                                    struct oj_stats *stats,
                                    struct oj_error *err)
{
    int64_t most = self->max_batch_pairs, at = 0, n_new = 0, to = 0;
    OJ_TRY(find_pairs(self, input, stats, err));
    if (self->n_pairs == 0)
        return OJ_OK;
    if (most > 0 && out->n_rows > 1 && out->n_pairs + self->n_pairs > most)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the batch has more pairs than fit");
    OJ_TRY(oj_matches_reserve(&self->merged, out->n_rows,
                              count_own(out) + self->n_pairs, 1, err));
    self->merged.offset[0] = 0;
    for (int64_t row = 0; row < out->n_rows; row++)
    {
        const struct point_pair *pair = self->pair + at;
        int64_t n = 0;
        for (; at < self->n_pairs && self->pair[at].row == row; at++)
            n++;
        n_new += n > 0 && !has_shared(out, row) &&
                 oj_matches_first(out, row) == oj_matches_end(out, row);
        merge_row(self, out, row, pair, n, &to);
        self->merged.offset[row + 1] = to;
    }
    exchange(out, &self->merged);
    out->n_pairs += self->n_pairs;
    out->n_matched += n_new;
    return OJ_OK;
}
