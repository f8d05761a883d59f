/* Pairs of points within a distance: the join side in cells, and the input
 * points visited in an order that keeps neighbours together.
 *
 * Lists in the order of the rows take two visits: one counts the pairs of each
 * row, one writes them where the counts say.  Scattered lists take one, in
 * which every thread writes from the front of a block of its own; how many
 * entries there will be is estimated from a few points, and when it was too few
 * the two visits are made after all. */
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../relation/oj_engine.h"
#include "cpu_near_visit.h"

#include <math.h>
#include <string.h>

/* Batches with fewer points are visited twice in any case. */
#define SCATTER_FROM 65536

static struct oj_near_index *unwrap(struct oj_index *index)
{
    return (struct oj_near_index *)(void *)index;
}

/* --- index ---------------------------------------------------------------- */

static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    return relation->op == OJ_OP_DWITHIN &&
           relation->metric == OJ_METRIC_PLANAR &&
           relation->max_distance < INFINITY &&
           join_side->max_distance == NULL && oj_flat_is_points(join_side) &&
           (input == NULL ||
            (oj_flat_is_points(input) && input->max_distance == NULL));
}

static void free_index(struct oj_index *wrapped)
{
    struct oj_near_index *self = unwrap(wrapped);
    if (self == NULL)
        return;
    if (self->general != NULL)
        oj_cpu_distance.free_index(self->general);
    for (int t = 0; self->worker != NULL && t < self->options.n_threads; t++)
    {
        oj_free(self->worker[t].id);
        oj_free(self->worker[t].d2);
        oj_free(self->worker[t].sort_id);
        oj_free(self->worker[t].sort_d2);
        oj_near_hood_free(&self->worker[t].hood);
    }
    oj_free(self->worker);
    oj_free(self->feature_of);
    oj_near_fids_free(&self->fids);
    oj_order_free(&self->order);
    oj_list_places_free(&self->places);
    oj_near_grid_free(&self->grid);
    oj_free(self);
}

static oj_status make_features_of(struct oj_near_index *self,
                                  struct oj_error *err)
{
    int64_t n = self->join_side->n_features;
    if (self->tie_rank == NULL)
        return OJ_OK;
    OJ_NEW(self->feature_of, n, err);
    for (int64_t f = 0; f < n; f++)
        self->feature_of[self->tie_rank[f]] = (int32_t)f;
    return OJ_OK;
}

static oj_status build_index(struct oj_near_index *self,
                             const struct oj_index_args *args,
                             struct oj_stats *stats, struct oj_error *err)
{
    int n_threads = self->options.n_threads;
    double start = oj_clock_seconds();
    self->worker = oj_calloc(n_threads, sizeof *self->worker);
    if (self->worker == NULL)
        return oj_fail_nomem(err, n_threads, sizeof *self->worker);
    OJ_TRY(oj_near_grid_build(&self->grid, self->join_side, self->tie_rank,
                              self->relation.max_distance, n_threads, err));
    if (self->grid.is_uneven)
    {
        oj_near_grid_free(&self->grid);
        return oj_cpu_distance.index(args, &self->general, stats, err);
    }
    OJ_TRY(make_features_of(self, err));
    OJ_TRY(oj_near_fids_make(&self->relation, self->join_side, self->feature_of,
                             &self->fids, err));
    stats->index_s += oj_clock_seconds() - start;
    stats->index_bytes += oj_near_grid_bytes(&self->grid);
    return OJ_OK;
}

static oj_status make_index(const struct oj_index_args *args,
                            struct oj_index **out, struct oj_stats *stats,
                            struct oj_error *err)
{
    struct oj_near_index *self = oj_calloc(1, sizeof *self);
    oj_status status;
    if (self == NULL)
        return oj_fail_nomem(err, 1, sizeof *self);
    self->relation = args->relation;
    self->options = args->options;
    self->join_side = args->join_side;
    self->tie_rank = args->tie_rank;
    self->kernel = oj_near_kernel();
    status = build_index(self, args, stats, err);
    if (status != OJ_OK)
    {
        free_index((struct oj_index *)(void *)self);
        return status;
    }
    *out = (struct oj_index *)(void *)self;
    return OJ_OK;
}

static oj_status order_input(const struct oj_near_batch *b,
                             struct oj_error *err)
{
    struct oj_order *order = &b->self->order;
    int n_threads = b->self->options.n_threads;
    OJ_TRY(oj_order_build(order, n_threads, b->input->n_features, b->input->x,
                          b->input->y, err));
    return oj_order_sort(order, n_threads, NULL, NULL, err);
}

static oj_status check_budget(const struct oj_near_batch *b, int64_t n,
                              struct oj_error *err)
{
    int64_t budget = b->self->options.max_batch_pairs;
    if (budget > 0 && n > budget && b->input->n_features > 1)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the batch has more pairs than fit");
    return OJ_OK;
}

/* Counts become offsets, with room for all pairs. */
static oj_status place_rows(const struct oj_near_batch *b, struct oj_error *err)
{
    struct oj_matches *out = b->out;
    int64_t n_rows = b->input->n_features, n_matched = 0, n = 0;
    out->offset[0] = 0;
    for (int64_t row = 0; row < n_rows; row++)
    {
        n_matched += out->offset[row + 1] > 0;
        n += out->offset[row + 1];
        out->offset[row + 1] = n;
    }
    OJ_TRY(check_budget(b, n, err));
    OJ_TRY(oj_matches_reserve(out, n_rows, n, 1, err));
    out->n_pairs = n;
    out->n_matched = n_matched;
    return OJ_OK;
}

static oj_status visit_twice(struct oj_near_batch *b, struct oj_error *err)
{
    int64_t n_rows = b->input->n_features;
    OJ_TRY(oj_matches_reserve(b->out, n_rows, 0, 1, err));
    memset(b->out->offset, 0, (size_t)(n_rows + 1) * sizeof *b->out->offset);
    OJ_TRY(oj_near_visit(b, OJ_NEAR_COUNT, err));
    OJ_TRY(place_rows(b, err));
    return oj_near_visit(b, OJ_NEAR_FILL, err);
}

/* Lists in the order of the visit; sets b->is_full when they did not fit. */
static oj_status visit_once(struct oj_near_batch *b, struct oj_error *err)
{
    struct oj_near_index *self = b->self;
    int64_t n_rows = b->input->n_features, n = 0;
    int n_threads = self->options.n_threads;
    OJ_TRY(oj_near_visit(b, OJ_NEAR_ESTIMATE, err));
    for (int t = 0; t < n_threads; t++)
        n += self->worker[t].n_pairs;
    /* memory that is not used costs nothing but its addresses */
    n = n * OJ_NEAR_ONE_OF + n * (OJ_NEAR_ONE_OF / 4) +
        2 * OJ_NEAR_BLOCK * (int64_t)n_threads;
    OJ_TRY(oj_matches_reserve_scattered(b->out, n_rows, n, err));
    b->n_entries = n;
    OJ_TRY(oj_list_places_begin(&self->places, b->out->offset, n_rows,
                                n_threads, err));
    OJ_TRY(oj_near_visit(b, OJ_NEAR_SCATTER, err));
    if (atomic_load(&b->is_full))
        return OJ_OK;
    b->out->n_entries = (int64_t)atomic_load(&b->n_taken);
    for (int t = 0; t < n_threads; t++)
    {
        if (self->worker[t].block_end > 0)
            oj_near_take_roots(b, &self->worker[t]);
        b->out->n_pairs += self->worker[t].n_pairs;
        b->out->n_matched += self->worker[t].n_matched;
    }
    oj_list_places_end(&self->places);
    return check_budget(b, b->out->n_pairs, err);
}

static void start_batch(struct oj_near_batch *b)
{
    struct oj_near_index *self = b->self;
    const struct oj_flat *input = b->input, *join_side = self->join_side;
    for (int t = 0; t < self->options.n_threads; t++)
        self->worker[t].n_seen = 0;
    b->is_join_side = input->x == join_side->x && input->y == join_side->y &&
                      input->n_features == join_side->n_features;
    b->query.most2 = oj_near_most2(self->relation.max_distance);
    b->query.least2 = oj_near_least2(self->relation.min_distance);
    b->query.from = 0;
    b->query.end = INT32_MAX;
    b->query.except = -1;
}

static oj_status join_batch(struct oj_near_batch *b, struct oj_stats *stats,
                            struct oj_error *err)
{
    struct oj_near_index *self = b->self;
    double start = oj_clock_seconds(), sorted;
    OJ_TRY(oj_pair_filter_make(&self->relation, b->input, self->join_side,
                               &b->filter, err));
    OJ_TRY(oj_near_marks_make(&b->filter, &self->fids, b->is_join_side,
                              &b->marks, &b->asks_filter, err));
    if (!b->is_join_side)
        OJ_TRY(order_input(b, err));
    sorted = oj_clock_seconds();
    stats->sort_s += sorted - start;
    if (self->relation.any_order && oj_near_n_visits(b) >= SCATTER_FROM)
        OJ_TRY(visit_once(b, err));
    else
        atomic_store(&b->is_full, 1);
    if (atomic_exchange(&b->is_full, 0))
        OJ_TRY(visit_twice(b, err));
    stats->refine_s += oj_clock_seconds() - sorted;
    for (int t = 0; t < self->options.n_threads; t++)
        stats->n_candidates += self->worker[t].n_seen;
    return OJ_OK;
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct oj_near_index *self = unwrap(wrapped);
    struct oj_near_batch b;
    oj_status status;
    if (self->general != NULL)
        return oj_cpu_distance.join(self->general, input, out, stats, err);
    memset(&b, 0, sizeof b);
    b.self = self;
    b.input = input;
    b.out = out;
    atomic_init(&b.n_taken, 0);
    atomic_init(&b.is_full, 0);
    start_batch(&b);
    status = join_batch(&b, stats, err);
    oj_near_marks_free(&b.marks);
    return status;
}

const struct oj_engine oj_cpu_near_points = {"points near points", takes,
                                             make_index, join, free_index};
