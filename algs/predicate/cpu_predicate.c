#include "cpu_predicate.h"
#include "../../flatten/base/oj_array.h"
#include "../../flatten/base/oj_clock.h"
#include "../base/cpu_threads.h"
#include "../relation/cpu_family.h"

#include <string.h>

#define ROWS_PER_TASK 64

/* A batch on its way. */
struct predicate_batch
{
    struct oj_predicate_rows rows;
    struct oj_order order;
    double *x, *y; /* [rows] first vertices, where rows are not points */
};

/* --- a batch -------------------------------------------------------------- */

static oj_status take_row(int64_t i, int thread, void *user,
                          struct oj_error *err)
{
    struct predicate_batch *b = user;
    struct oj_predicate_index *index = b->rows.index;
    OJ_TRY(oj_check_cancel(index->options.cancel, err));
    return oj_predicate_row(&b->rows, &index->worker[thread],
                            b->order.point[i].index, err);
}

#define ROWS_TO_PLACE 4096

/* A feature's first vertex is near enough to order by, and all that is read of
 * it. */
static void set_places(int64_t task, int thread, void *user)
{
    struct predicate_batch *b = user;
    const struct oj_flat *flat = b->rows.input;
    int64_t end = (task + 1) * ROWS_TO_PLACE;
    (void)thread;
    for (int64_t f = task * ROWS_TO_PLACE; f < end && f < flat->n_features; f++)
    {
        int64_t part = flat->part_offset[f], v;
        b->x[f] = b->y[f] = NAN;
        if (part == flat->part_offset[f + 1])
            continue;
        v = flat->vertex_offset[flat->ring_offset[part]];
        b->x[f] = flat->x[v];
        b->y[f] = flat->y[v];
    }
}

static oj_status sort_rows(struct predicate_batch *b, int n_threads,
                           struct oj_error *err)
{
    int64_t n = b->rows.input->n_features;
    const double *x = b->rows.input->x, *y = b->rows.input->y;
    if (!oj_flat_is_points(b->rows.input))
    {
        b->x = oj_malloc(n, sizeof *b->x);
        b->y = oj_malloc(n, sizeof *b->y);
        if (b->x == NULL || b->y == NULL)
            return oj_fail_nomem(err, n, 2 * sizeof *b->x);
        oj_parallel_for(n_threads, (n + ROWS_TO_PLACE - 1) / ROWS_TO_PLACE,
                        set_places, b);
        x = b->x;
        y = b->y;
    }
    OJ_TRY(oj_order_build(&b->order, n_threads, n, x, y, err));
    return oj_order_sort(&b->order, n_threads, NULL, NULL, err);
}

static oj_status prepare_workers(const struct predicate_batch *b, int n_threads,
                                 struct oj_error *err)
{
    struct oj_predicate_index *index = b->rows.index;
    for (int t = 0; t < n_threads; t++)
    {
        struct oj_predicate_worker *w = &index->worker[t];
        oj_answers_start(&w->answers, index->options.max_batch_pairs,
                         b->rows.input->n_features, n_threads);
        w->n_asked = w->n_rows = 0;
        oj_relate_forget(&w->relate);
        if (index->relation.op == OJ_OP_DISJOINT && w->is_met == NULL)
        {
            int64_t n = index->join_side->n_features;
            w->is_met = oj_calloc(n, 1);
            if (w->is_met == NULL)
                return oj_fail_nomem(err, n, 1);
        }
    }
    return OJ_OK;
}

static oj_status gather(const struct oj_predicate_index *index, int n_threads,
                        int64_t n_rows, struct oj_matches *out,
                        struct oj_error *err)
{
    struct oj_answers *answers = oj_malloc(n_threads, sizeof *answers);
    oj_status status;
    if (answers == NULL)
        return oj_fail_nomem(err, n_threads, sizeof *answers);
    for (int t = 0; t < n_threads; t++)
        answers[t] = index->worker[t].answers;
    status = oj_answers_to_matches(answers, n_threads, n_rows, &index->relation,
                                   index->tie_rank, out, err);
    oj_free(answers);
    return status;
}

static oj_status take_all(struct predicate_batch *b, int n_threads,
                          struct oj_matches *out, struct oj_error *err)
{
    OJ_TRY(oj_parallel_try(n_threads, b->order.n_points, ROWS_PER_TASK,
                           take_row, b, err));
    return gather(b->rows.index, n_threads, b->rows.input->n_features, out,
                  err);
}

/* Candidates from somebody else, if there is somebody who has them. */
static oj_status screen(const struct predicate_batch *b, int *is_screened,
                        struct oj_stats *stats, struct oj_error *err)
{
    struct oj_predicate_index *index = b->rows.index;
    const struct oj_screen *screen = index->options.screen;
    struct oj_screen_rule rule;
    struct oj_error why = {OJ_OK, ""};
    oj_status status;
    *is_screened = 0;
    if (screen == NULL || !oj_screen_rule_of(&index->relation, &rule) ||
        oj_flat_is_points(index->join_side) ||
        oj_flat_is_points(b->rows.input) ||
        !screen->takes(screen->self, b->rows.input))
        return OJ_OK;
    status = screen->find(screen->self, b->rows.input,
                          index->options.max_batch_pairs, &index->screened,
                          stats, &why);
    if (status == OJ_ERR_TOO_MANY_PAIRS || status == OJ_ERR_CANCELLED)
        return oj_fail(err, status, "%s", why.message);
    *is_screened = status == OJ_OK;
    return OJ_OK;
}

static oj_status run_batch(struct predicate_batch *b, struct oj_matches *out,
                           struct oj_stats *stats, struct oj_error *err)
{
    struct oj_predicate_index *index = b->rows.index;
    int n_threads = index->options.n_threads;
    double start, sorted;
    int is_screened;
    OJ_TRY(oj_pair_filter_make(&index->relation, b->rows.input,
                               index->join_side, &b->rows.filter, err));
    OJ_TRY(prepare_workers(b, n_threads, err));
    OJ_TRY(screen(b, &is_screened, stats, err));
    start = oj_clock_seconds();
    if (!is_screened)
    {
        OJ_TRY(oj_predicate_want_side(index, err));
        OJ_TRY(sort_rows(b, n_threads, err));
    }
    sorted = oj_clock_seconds();
    if (is_screened)
        OJ_TRY(oj_screened_to_matches(&b->rows, out, err));
    else
        OJ_TRY(take_all(b, n_threads, out, err));
    for (int t = 0; t < n_threads; t++)
        stats->n_candidates += index->worker[t].n_asked;
    stats->sort_s += sorted - start;
    stats->refine_s += oj_clock_seconds() - sorted;
    return OJ_OK;
}

static oj_status join(struct oj_index *wrapped, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct oj_predicate_index *index = (void *)wrapped;
    struct predicate_batch b;
    oj_status status;
    memset(&b, 0, sizeof b);
    b.rows.index = index;
    b.rows.input = input;
    status = run_batch(&b, out, stats, err);
    oj_free(b.x);
    oj_free(b.y);
    oj_order_free(&b.order);
    return status;
}

/* --- the join side -------------------------------------------------------- */

static void free_index(struct oj_index *wrapped)
{
    struct oj_predicate_index *index = (void *)wrapped;
    if (index == NULL)
        return;
    if (index->worker != NULL)
    {
        for (int t = 0; t < index->options.n_threads; t++)
        {
            struct oj_predicate_worker *w = &index->worker[t];
            oj_relate_scratch_free(&w->relate);
            oj_figure_free(&w->figure);
            oj_free(w->found.at);
            oj_answers_free(&w->answers);
            oj_free(w->member);
            oj_edge_grid_free(&w->cells);
            oj_free(w->is_met);
        }
    }
    oj_free(index->worker);
    oj_free((void *)index->niceness);
    oj_free(index->place_of);
    oj_screen_pairs_free(&index->screened);
    oj_side_free(&index->side);
    oj_free(index);
}

oj_status oj_predicate_want_side(struct oj_predicate_index *index,
                                 struct oj_error *err)
{
    if (!index->has_side)
        OJ_TRY(oj_side_build(&index->side, index->join_side,
                             index->options.n_threads, err));
    index->has_side = 1;
    return OJ_OK;
}

/* With a screen the side may never be needed. */
static oj_status fill_index(struct oj_predicate_index *index,
                            struct oj_error *err)
{
    int64_t n = index->join_side->n_features;
    int n_threads = index->options.n_threads;
    index->worker = oj_calloc(n_threads, sizeof *index->worker);
    if (index->worker == NULL)
        return oj_fail_nomem(err, n_threads, sizeof *index->worker);
    index->niceness = oj_calloc(n, sizeof *index->niceness);
    if (index->niceness == NULL)
        return oj_fail_nomem(err, n, sizeof *index->niceness);
    return index->options.screen == NULL ? oj_predicate_want_side(index, err)
                                         : OJ_OK;
}

static oj_status
make_index(const struct oj_flat *join_side, const int32_t *tie_rank,
           const struct oj_relation *relation, const struct oj_options *options,
           struct oj_index **out, struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct oj_predicate_index *index = oj_calloc(1, sizeof *index);
    oj_status status;
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->join_side = join_side;
    index->tie_rank = tie_rank;
    index->relation = *relation;
    index->options = *options;
    index->rule = oj_verdict_box_rule(relation);
    status = fill_index(index, err);
    if (status != OJ_OK)
    {
        free_index((void *)index);
        return status;
    }
    stats->index_bytes += oj_side_bytes(&index->side);
    stats->index_s += oj_clock_seconds() - start;
    *out = (void *)index;
    return OJ_OK;
}

static int takes(const struct oj_relation *relation,
                 const struct oj_flat *join_side, const struct oj_flat *input)
{
    (void)join_side;
    (void)input;
    return relation->op != OJ_OP_NEAREST && relation->op != OJ_OP_DWITHIN;
}

const struct oj_cpu_family oj_cpu_predicate = {"predicates", takes, make_index,
                                               join, free_index};
