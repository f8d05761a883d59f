/** The engines of the backends "live_quadtree" and "live_kdtree": the kept
 * index of points (algs/live) as a backend of joins, so that it can be compared
 * with the other backends on the user's layers. All points of the join side are
 * inserted into an empty index in one batch. oj_join_move_points() applies the
 * new positions of points in one batch, too.
 *
 *  The id of a point is first_id plus its tie rank, so that sorting by id sorts
 *  in tie order. */
#include "../../../flatten/base/oj_alloc.h"
#include "../../../flatten/base/oj_clock.h"
#include "../../foundations/relation/oj_index.h"
#include "../../live/live_search.h"
#include "../../live/oj_live.h"
#include "oj_join.h"

#include <math.h>

struct live_backend_index
{
    struct oj_index_args args;
    struct oj_live *live;
    int64_t first_id;
    int32_t *feature; /* [features] feature of each tie rank; NULL: tie ranks
                         equal ordinals */
};

static void free_live_index(struct oj_index *wrapped)
{
    struct live_backend_index *self = (void *)wrapped;
    oj_live_free(self->live);
    oj_free(self->feature);
}

static int supports_join_by_live_index(const struct oj_relation *relation,
                                       const struct oj_flat *join_side,
                                       const struct oj_flat *input)
{
    (void)input;
    return oj_relation_is_of_shapes(relation) &&
           relation->metric == OJ_METRIC_PLANAR &&
           !oj_relation_compares_attributes(relation) &&
           relation->n_spans == 0 && join_side->on_class == NULL &&
           join_side->exclude_class == NULL &&
           join_side->max_distance == NULL && oj_flat_is_points(join_side);
}

static int are_fids_consecutive(const struct oj_flat *side)
{
    for (int64_t f = 0; side->fid != NULL && f < side->n_features; f++)
    {
        if (side->fid[f] - side->fid[0] != f)
            return 0;
    }
    return side->fid != NULL && side->n_features > 0;
}

static int64_t id_of_feature(const struct live_backend_index *self, int64_t f)
{
    const int32_t *rank = self->args.tie_rank;
    return self->first_id + (rank != NULL ? rank[f] : f);
}

static int32_t feature_of_id(const struct live_backend_index *self, int64_t id)
{
    int64_t rank = id - self->first_id;
    return self->feature != NULL ? self->feature[rank] : (int32_t)rank;
}

/* Inserts or moves n features in the index: those listed in `feature`, or the
 * first n if it is NULL. */
static oj_status insert_or_move_features(struct live_backend_index *self,
                                         int64_t n, const int32_t *feature,
                                         struct oj_error *err)
{
    const struct oj_flat *side = self->args.join_side;
    double *x = oj_malloc(n, sizeof *x), *y = oj_malloc(n, sizeof *y);
    int64_t *id = oj_malloc(n, sizeof *id);
    oj_status status = OJ_OK;
    if (x == NULL || y == NULL || id == NULL)
        status = oj_fail_nomem(err, n, 3 * sizeof *x);
    for (int64_t i = 0; status == OJ_OK && i < n; i++)
    {
        int64_t f = feature != NULL ? feature[i] : i;
        id[i] = id_of_feature(self, f);
        x[i] = side->x[f];
        y[i] = side->y[f];
    }
    if (status == OJ_OK)
        status = oj_live_apply(self->live, n, id, x, y, err);
    oj_free(id);
    oj_free(x);
    oj_free(y);
    return status;
}

static oj_status build(struct oj_index *wrapped,
                       const struct oj_index_args *args, struct oj_stats *stats,
                       struct oj_error *err)
{
    struct live_backend_index *self = (void *)wrapped;
    const struct oj_flat *side = args->join_side;
    self->args = *args;
    if (are_fids_consecutive(side))
        self->first_id = side->fid[0];
    else if (args->relation.exclude_self || args->relation.unordered_pairs != 0)
        return oj_fail(err, OJ_ERR_UNSUPPORTED,
                       "the backend \"%s\" can join a layer with itself only "
                       "if its FIDs have no gaps: use the backend cpu",
                       args->engine->name);
    if (args->tie_rank != NULL)
    {
        OJ_NEW(self->feature, side->n_features, err);
        for (int64_t f = 0; f < side->n_features; f++)
            self->feature[args->tie_rank[f]] = (int32_t)f;
    }
    OJ_TRY(oj_live_new((enum oj_live_tree)args->engine->variant,
                       args->options.n_threads, &self->live, err));
    OJ_TRY(insert_or_move_features(self, side->n_features, NULL, err));
    stats->index_bytes += oj_live_count(self->live).n_bytes;
    return OJ_OK;
}

/* --- a batch -------------------------------------------------------------- */

static oj_status convert_pairs_to_matches(const struct live_backend_index *self,
                                          const struct live_pairs *pairs,
                                          struct oj_matches *out,
                                          struct oj_error *err)
{
    int lists = oj_relation_allows_many_pairs(&self->args.relation);
    OJ_TRY(oj_matches_reserve(out, pairs->n_rows,
                              lists ? pairs->n : pairs->n_rows, lists, err));
    out->n_pairs = pairs->n;
    for (int64_t row = 0; row < pairs->n_rows; row++)
    {
        int64_t first = pairs->offset[row], end = pairs->offset[row + 1];
        out->n_matched += end > first;
        if (lists)
            out->offset[row] = first;
        else if (first == end)
        {
            out->join_row[row] = -1;
            out->measure[row] = NAN;
        }
        for (int64_t i = first; i < end; i++)
        {
            int64_t to = lists ? i : row;
            out->join_row[to] = feature_of_id(self, pairs->id[i]);
            out->measure[to] = pairs->distance[i];
        }
    }
    if (lists)
        out->offset[pairs->n_rows] = pairs->n;
    return OJ_OK;
}

static oj_status join_by_searching_pages(const struct live_backend_index *self,
                                         const struct live_query *query,
                                         struct oj_matches *out,
                                         struct oj_error *err)
{
    struct live_pairs pairs = {0};
    oj_status status = live_search_pairs(query, &pairs, err);
    if (status == OJ_OK)
        status = convert_pairs_to_matches(self, &pairs, out, err);
    live_pairs_free(&pairs);
    return status;
}

/* Joins the input with the given points of the index, by the backend cpu, which
 * builds an index of its own for them. */
static oj_status
join_with_index_of_points(const struct live_backend_index *self,
                          const struct live_query *query,
                          const struct live_points *points,
                          struct oj_matches *out, struct oj_error *err)
{
    struct oj_flat flat = live_points_view_as_layer(points);
    struct oj_relation relation = *query->relation;
    struct oj_join *join;
    oj_status status;
    relation.any_order = 0;
    OJ_TRY(
        oj_join_open(&flat, &relation, "cpu", &self->args.options, &join, err));
    status = oj_join_batch(join, query->input, out, err);
    for (int64_t i = 0; status == OJ_OK && i < out->n_entries; i++)
    {
        if (out->join_row[i] >= 0)
            out->join_row[i] =
                feature_of_id(self, points->id[out->join_row[i]]);
    }
    oj_join_close(join);
    return status;
}

static oj_status
join_with_index_of_candidates(const struct live_backend_index *self,
                              const struct live_query *query, int are_all,
                              struct oj_matches *out, struct oj_error *err)
{
    struct live_points points = {0};
    oj_status status = OJ_OK;
    if (!are_all)
        status = live_search_candidates(query, query->state->n_points / 2,
                                        &points, &are_all, err);
    if (status == OJ_OK && are_all)
        status = live_search_list_points(query->state, &points, err);
    if (status == OJ_OK)
        status = join_with_index_of_points(self, query, &points, out, err);
    live_points_free(&points);
    return status;
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct live_backend_index *self = (void *)wrapped;
    const struct oj_options *options = &self->args.options;
    double start = oj_clock_seconds();
    struct live_query query = {.state = oj_live_acquire_state(self->live),
                               .relation = &self->args.relation,
                               .input = input,
                               .n_threads = options->n_threads,
                               .max_pairs = oj_most_pairs_of_batch(
                                   options->max_batch_pairs, input->n_features),
                               .cancel = options->cancel};
    enum live_way way =
        live_search_choose_method(query.state, query.relation, input, 1);
    oj_status status = way == LIVE_IN_PAGES
                           ? join_by_searching_pages(self, &query, out, err)
                           : join_with_index_of_candidates(
                                 self, &query, way == LIVE_BY_ALL, out, err);
    oj_live_release_state(self->live, query.state);
    stats->refine_s += oj_clock_seconds() - start;
    return status;
}

static oj_status move_points(struct oj_index *wrapped, int64_t n,
                             const int32_t *feature, struct oj_error *err)
{
    return insert_or_move_features((void *)wrapped, n, feature, err);
}

#define LIVE_ENGINE(method_name, tree)                                         \
    {                                                                          \
        .name = method_name, .supports = supports_join_by_live_index,          \
        .index_size = sizeof(struct live_backend_index), .build = build,       \
        .join = join, .move = move_points, .free_side = free_live_index,       \
        .variant = tree                                                        \
    }

const struct oj_engine oj_live_quadtree_engine =
    LIVE_ENGINE("kept index, quadtree", OJ_LIVE_QUADTREE);
const struct oj_engine oj_live_kdtree_engine =
    LIVE_ENGINE("kept index, k-d tree", OJ_LIVE_KDTREE);
