#include "../flatten/oj_array.h"
#include "cpu_family.h"
#include "cpu_simple.h"
#include "cpu_threads.h"
#include "cpu_verdict.h"
#include "geos_pairs.h"
#include "oj_clock.h"
#include "oj_pairs.h"
#include "oj_ranking.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define ROWS_PER_TASK 64

/* Pairs asked between two looks at the cancel flag: GEOS may take long over
 * each, our kernels do not. */
#define PAIRS_PER_LOOK 256

/* What GEOS could not decide; the first is the one of least row, then least
 * feature, whichever thread met it. */
struct undecided
{
    int64_t n;
    int64_t row, feature;
    char text[128];
};

/* One thread's own. */
struct worker
{
    struct oj_geos_pairs *geos; /* NULL: not needed yet */
    const struct oj_flat *geos_input;
    struct oj_found found;
    struct oj_answers answers;
    struct oj_shape *member;
    int64_t cap_members;
    struct oj_cells cells; /* of the row at hand */
    int row_validity;      /* of it */
    struct oj_cells_scratch scratch;
    uint8_t *is_met; /* [features] disjoint: marks of the row at hand */
    int64_t n_asked;
    struct undecided undecided;
    int64_t n_to_look;
};

struct oj_index
{
    const int32_t *tie_rank;
    struct oj_relation relation;
    struct oj_options options;
    struct oj_box_rule rule;
    struct oj_side side;
    struct worker *worker;     /* [options.n_threads] */
    _Atomic uint8_t *validity; /* [features] by place in the side */
};

/* A batch on its way. */
struct batch
{
    struct oj_index *index;
    const struct oj_flat *input;
    struct oj_pair_filter filter;
    struct oj_order order;
    double *x, *y; /* [rows] middles, where the input has none itself */
    struct oj_ordered_point **scratch; /* [n_threads] */
    atomic_int status;
    struct oj_error *err;
};

/* The first error counts; the other threads run out of work. */
static void fail(struct batch *b, oj_status status, const struct oj_error *err)
{
    int expected = OJ_OK;
    if (atomic_compare_exchange_strong(&b->status, &expected, (int)status) &&
        b->err != NULL)
        *b->err = *err;
}

static int is_cancelled(const struct oj_options *options)
{
    return options->cancel != NULL && *options->cancel != 0;
}

static oj_status look_up(const struct oj_options *options, struct worker *w,
                         struct oj_error *err)
{
    if (--w->n_to_look > 0)
        return OJ_OK;
    w->n_to_look = PAIRS_PER_LOOK;
    return is_cancelled(options)
               ? oj_fail(err, OJ_ERR_CANCELLED, "the join was interrupted")
               : OJ_OK;
}

/* --- one pair ------------------------------------------------------------- */

static oj_status open_geos(const struct batch *b, struct worker *w,
                           struct oj_error *err)
{
    const struct oj_index *index = b->index;
    if (w->geos == NULL)
        OJ_TRY(oj_geos_pairs_open(&index->relation, index->side.flat, 1,
                                  &w->geos, err));
    if (w->geos_input != b->input)
        oj_geos_pairs_set_input(w->geos, b->input);
    w->geos_input = b->input;
    return OJ_OK;
}

static void note_undecided(struct worker *w, int64_t row, int64_t feature)
{
    struct undecided *u = &w->undecided;
    u->n++;
    if (u->n > 1 && (row > u->row || (row == u->row && feature >= u->feature)))
        return;
    u->row = row;
    u->feature = feature;
    snprintf(u->text, sizeof u->text, "%s", oj_geos_pairs_message(w->geos));
}

static oj_status ask_geos(const struct batch *b, struct worker *w, int64_t row,
                          int64_t feature, int *holds, struct oj_error *err)
{
    enum oj_geos_verdict verdict;
    OJ_TRY(open_geos(b, w, err));
    w->n_to_look = 0;
    verdict = oj_geos_pairs_hold(w->geos, row, feature);
    if (verdict == OJ_GEOS_OUT_OF_MEMORY)
        return oj_fail(err, OJ_ERR_NOMEM, "out of memory in GEOS");
    if (verdict == OJ_GEOS_CANNOT_SAY)
        note_undecided(w, row, feature);
    *holds = verdict == OJ_GEOS_YES;
    return OJ_OK;
}

/* States of validity; what is not seen at once is asked of GEOS. */
enum
{
    NOT_KNOWN,
    INVALID,
    VALID
};

static oj_status feature_is_valid(const struct batch *b, struct worker *w,
                                  int64_t at, int *yes, struct oj_error *err)
{
    const struct oj_side *side = &b->index->side;
    _Atomic uint8_t *known = &b->index->validity[at];
    uint8_t state = atomic_load_explicit(known, memory_order_relaxed);
    if (side->shape == NULL)
        state = VALID;
    if (state == NOT_KNOWN)
    {
        state = VALID;
        if (!oj_shape_is_surely_valid(&side->shape[at]))
        {
            enum oj_geos_verdict verdict;
            OJ_TRY(open_geos(b, w, err));
            verdict = oj_geos_pairs_feature_is_valid(w->geos,
                                                     oj_side_feature(side, at));
            if (verdict == OJ_GEOS_OUT_OF_MEMORY)
                return oj_fail(err, OJ_ERR_NOMEM, "out of memory in GEOS");
            state = verdict == OJ_GEOS_YES ? VALID : INVALID;
        }
        atomic_store_explicit(known, state, memory_order_relaxed);
    }
    *yes = state == VALID;
    return OJ_OK;
}

static oj_status row_is_valid(const struct batch *b, struct worker *w,
                              int64_t row, const struct oj_shape *shape,
                              int *yes, struct oj_error *err)
{
    if (w->row_validity == NOT_KNOWN)
    {
        w->row_validity = VALID;
        if (!oj_shape_is_surely_valid(shape))
        {
            enum oj_geos_verdict verdict;
            OJ_TRY(open_geos(b, w, err));
            verdict = oj_geos_pairs_row_is_valid(w->geos, row);
            if (verdict == OJ_GEOS_OUT_OF_MEMORY)
                return oj_fail(err, OJ_ERR_NOMEM, "out of memory in GEOS");
            w->row_validity = verdict == OJ_GEOS_YES ? VALID : INVALID;
        }
    }
    *yes = w->row_validity == VALID;
    return OJ_OK;
}

static oj_status ask(const struct batch *b, struct worker *w, int64_t row,
                     const struct oj_shape *shape, int64_t at, int *holds,
                     struct oj_error *err)
{
    struct oj_side *side = &b->index->side;
    enum oj_verdict verdict;
    unsigned needs = 0;
    int is_sure = 1;
    if (side->shape != NULL)
    {
        OJ_TRY(oj_side_want_cells(side, at,
                                  shape->cells == NULL ? shape->n_vertices : 0,
                                  &w->scratch, err));
        verdict =
            oj_verdict_of(&b->index->relation, shape, &side->shape[at], &needs);
    }
    else
    {
        struct oj_shape point = oj_side_point(side, at);
        verdict = oj_verdict_of(&b->index->relation, shape, &point, &needs);
    }
    if (verdict != OJ_VERDICT_UNSURE && (needs & OJ_NEEDS_VALID_B))
        OJ_TRY(feature_is_valid(b, w, at, &is_sure, err));
    if (verdict != OJ_VERDICT_UNSURE && is_sure && (needs & OJ_NEEDS_VALID_A))
        OJ_TRY(row_is_valid(b, w, row, shape, &is_sure, err));
    if (verdict == OJ_VERDICT_UNSURE || !is_sure)
        return ask_geos(b, w, row, oj_side_feature(side, at), holds, err);
    *holds = verdict == OJ_VERDICT_YES;
    return OJ_OK;
}

/* --- one row -------------------------------------------------------------- */

/* The pairs of the row among what was found. */
static oj_status take_found(const struct batch *b, struct worker *w,
                            int64_t row, const struct oj_shape *shape,
                            struct oj_error *err)
{
    const struct oj_side *side = &b->index->side;
    for (int64_t i = 0; i < w->found.n; i++)
    {
        int32_t at = w->found.at[i];
        int32_t feature = oj_side_feature(side, at);
        int holds = 1;
        if (!oj_pair_may_count(&b->filter, row, feature))
            continue;
        OJ_TRY(look_up(&b->index->options, w, err));
        if (!b->index->rule.is_enough)
            OJ_TRY(ask(b, w, row, shape, at, &holds, err));
        w->n_asked++;
        if (!holds)
            continue;
        if (w->answers.n_entries == w->answers.cap_distance ||
            w->answers.max_entries > 0)
            OJ_TRY(oj_answers_reserve(&w->answers, 1, err));
        oj_answers_put(&w->answers, (int32_t)row, feature, NAN);
    }
    return OJ_OK;
}

/* Disjoint: all features but those that the row does not hold with; only those
 * found can be among these. */
static oj_status take_others(const struct batch *b, struct worker *w,
                             int64_t row, const struct oj_shape *shape,
                             struct oj_error *err)
{
    const struct oj_side *side = &b->index->side;
    oj_status status = OJ_OK;
    for (int64_t i = 0; i < w->found.n && status == OJ_OK; i++)
    {
        int32_t at = w->found.at[i];
        int32_t feature = oj_side_feature(side, at);
        int holds = 0;
        if (!oj_pair_may_count(&b->filter, row, feature))
            continue;
        status = look_up(&b->index->options, w, err);
        if (status == OJ_OK)
            status = ask(b, w, row, shape, at, &holds, err);
        w->n_asked++;
        w->is_met[feature] = !holds;
    }
    for (int64_t at = 0; at < side->n && status == OJ_OK; at++)
    {
        int32_t feature = oj_side_feature(side, at);
        if (w->is_met[feature] || !oj_pair_may_count(&b->filter, row, feature))
            continue;
        if (w->answers.n_entries == w->answers.cap_distance ||
            w->answers.max_entries > 0)
            status = oj_answers_reserve(&w->answers, 1, err);
        if (status == OJ_OK)
            oj_answers_put(&w->answers, (int32_t)row, feature, NAN);
        if (at % 65536 == 65535 && is_cancelled(&b->index->options))
            status = oj_fail(err, OJ_ERR_CANCELLED, "the join was interrupted");
    }
    for (int64_t i = 0; i < w->found.n; i++)
        w->is_met[oj_side_feature(side, w->found.at[i])] = 0;
    return status;
}

static oj_status find_all(const struct oj_side *side, struct oj_found *found,
                          struct oj_error *err)
{
    OJ_TRY(oj_reserve(&found->at, 0, side->n, &found->capacity,
                      sizeof *found->at, err));
    for (int64_t i = 0; i < side->n; i++)
        found->at[i] = (int32_t)i;
    found->n = side->n;
    return OJ_OK;
}

/* Rows that meet fewer features than this are not worth cells. */
#define FOUND_FOR_CELLS 8

/* Members, where its parts are of different kinds, and cells. */
static oj_status prepare_row(struct worker *w, struct oj_shape *shape,
                             struct oj_error *err)
{
    w->row_validity = NOT_KNOWN;
    if (oj_shape_is_mixed(shape))
    {
        OJ_TRY(oj_reserve(&w->member, 0, shape->n_parts, &w->cap_members,
                          sizeof *w->member, err));
        oj_shape_set_members(shape, w->member);
        return OJ_OK;
    }
    if (shape->n_vertices < OJ_CELLS_VERTICES ||
        shape->n_vertices > OJ_CELLS_MOST_VERTICES ||
        w->found.n < FOUND_FOR_CELLS)
        return OJ_OK;
    OJ_TRY(oj_cells_build(&w->cells, shape, &w->scratch, err));
    shape->cells = &w->cells;
    return OJ_OK;
}

static oj_status take_row(const struct batch *b, struct worker *w, int64_t row,
                          struct oj_error *err)
{
    struct oj_index *index = b->index;
    struct oj_shape shape = oj_shape_of(b->input, row);
    if (index->rule.takes_all)
        OJ_TRY(find_all(&index->side, &w->found, err));
    else
        OJ_TRY(oj_side_find(&index->side, index->rule.test, &shape.box,
                            &w->found, err));
    if (w->found.n > 0)
        OJ_TRY(prepare_row(w, &shape, err));
    if (index->relation.op == OJ_OP_DISJOINT)
        return take_others(b, w, row, &shape, err);
    return take_found(b, w, row, &shape, err);
}

/* --- a batch -------------------------------------------------------------- */

static void take_rows(int64_t task, int thread, void *user)
{
    struct batch *b = user;
    struct worker *w = &b->index->worker[thread];
    int64_t end = (task + 1) * ROWS_PER_TASK;
    for (int64_t i = task * ROWS_PER_TASK; i < end && i < b->order.n_points;
         i++)
    {
        struct oj_error err;
        oj_status status = OJ_OK;
        if (atomic_load_explicit(&b->status, memory_order_relaxed) != OJ_OK)
            return;
        if (is_cancelled(&b->index->options))
            status =
                oj_fail(&err, OJ_ERR_CANCELLED, "the join was interrupted");
        if (status == OJ_OK)
            status = take_row(b, w, b->order.point[i].index, &err);
        if (status != OJ_OK)
            fail(b, status, &err);
    }
}

static void sort_bucket(int64_t bucket, int thread, void *user)
{
    struct batch *b = user;
    oj_order_sort_bucket(&b->order, bucket, b->scratch[thread]);
}

#define MIDDLES_PER_TASK 4096

static void set_middles(int64_t task, int thread, void *user)
{
    struct batch *b = user;
    const struct oj_flat *flat = b->input;
    int64_t end = (task + 1) * MIDDLES_PER_TASK;
    (void)thread;
    for (int64_t f = task * MIDDLES_PER_TASK; f < end && f < flat->n_features;
         f++)
    {
        struct oj_shape shape = oj_shape_of(flat, f);
        b->x[f] = b->y[f] = NAN;
        if (oj_box_is_empty(&shape.box))
            continue;
        b->x[f] = 0.5 * shape.box.x0 + 0.5 * shape.box.x1;
        b->y[f] = 0.5 * shape.box.y0 + 0.5 * shape.box.y1;
    }
}

static oj_status sort_rows(struct batch *b, int n_threads, struct oj_error *err)
{
    int64_t n = b->input->n_features;
    const double *x = b->input->x, *y = b->input->y;
    oj_status status = OJ_OK;
    if (!oj_flat_is_points(b->input))
    {
        b->x = oj_malloc(n, sizeof *b->x);
        b->y = oj_malloc(n, sizeof *b->y);
        if (b->x == NULL || b->y == NULL)
            return oj_fail_nomem(err, n, 2 * sizeof *b->x);
        oj_parallel_for(n_threads,
                        (n + MIDDLES_PER_TASK - 1) / MIDDLES_PER_TASK,
                        set_middles, b);
        x = b->x;
        y = b->y;
    }
    OJ_TRY(oj_order_build(&b->order, n_threads, n, x, y, err));
    b->scratch = oj_calloc(n_threads, sizeof *b->scratch);
    if (b->scratch == NULL)
        return oj_fail_nomem(err, n_threads, sizeof *b->scratch);
    for (int t = 0; t < n_threads && status == OJ_OK; t++)
    {
        b->scratch[t] = oj_malloc(b->order.largest_bucket, sizeof **b->scratch);
        if (b->scratch[t] == NULL)
            status = oj_fail_nomem(err, b->order.largest_bucket,
                                   sizeof **b->scratch);
    }
    if (status == OJ_OK)
        oj_parallel_for(n_threads, b->order.n_buckets, sort_bucket, b);
    return status;
}

static oj_status prepare_workers(const struct batch *b, int n_threads,
                                 struct oj_error *err)
{
    struct oj_index *index = b->index;
    int64_t budget = index->options.max_batch_pairs;
    for (int t = 0; t < n_threads; t++)
    {
        struct worker *w = &index->worker[t];
        oj_answers_clear(&w->answers);
        memset(&w->undecided, 0, sizeof w->undecided);
        w->n_asked = 0;
        w->geos_input = NULL;
        w->answers.max_entries = 0;
        if (budget > 0 && b->input->n_features > 1)
            w->answers.max_entries = budget / n_threads + 1;
        if (index->relation.op == OJ_OP_DISJOINT && w->is_met == NULL)
        {
            int64_t n = index->side.flat->n_features;
            w->is_met = oj_calloc(n, 1);
            if (w->is_met == NULL)
                return oj_fail_nomem(err, n, 1);
        }
    }
    return OJ_OK;
}

static void add_undecided(const struct oj_index *index, int n_threads,
                          struct oj_stats *stats)
{
    const struct undecided *first = NULL;
    int64_t before = stats->n_undecided_pairs;
    for (int t = 0; t < n_threads; t++)
    {
        const struct undecided *u = &index->worker[t].undecided;
        if (u->n == 0)
            continue;
        stats->n_undecided_pairs += u->n;
        if (first == NULL || u->row < first->row ||
            (u->row == first->row && u->feature < first->feature))
            first = u;
    }
    if (before == 0 && first != NULL)
        memcpy(stats->undecided_text, first->text, sizeof first->text);
}

static oj_status gather(const struct oj_index *index, int n_threads,
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

static oj_status run_batch(struct batch *b, struct oj_matches *out,
                           struct oj_stats *stats, struct oj_error *err)
{
    struct oj_index *index = b->index;
    int n_threads = index->options.n_threads;
    double start = oj_clock_seconds(), sorted;
    OJ_TRY(oj_pair_filter_make(&index->relation, b->input, index->side.flat,
                               &b->filter, err));
    OJ_TRY(prepare_workers(b, n_threads, err));
    OJ_TRY(sort_rows(b, n_threads, err));
    sorted = oj_clock_seconds();
    b->err = err;
    oj_parallel_for(n_threads,
                    (b->order.n_points + ROWS_PER_TASK - 1) / ROWS_PER_TASK,
                    take_rows, b);
    if (atomic_load(&b->status) != OJ_OK)
        return (oj_status)atomic_load(&b->status);
    OJ_TRY(gather(index, n_threads, b->input->n_features, out, err));
    add_undecided(index, n_threads, stats);
    for (int t = 0; t < n_threads; t++)
        stats->n_candidates += index->worker[t].n_asked;
    stats->sort_s += sorted - start;
    stats->refine_s += oj_clock_seconds() - sorted;
    return OJ_OK;
}

static oj_status join(struct oj_index *index, const struct oj_flat *input,
                      struct oj_matches *out, struct oj_stats *stats,
                      struct oj_error *err)
{
    struct batch b;
    oj_status status;
    memset(&b, 0, sizeof b);
    b.index = index;
    b.input = input;
    atomic_init(&b.status, OJ_OK);
    status = run_batch(&b, out, stats, err);
    if (b.scratch != NULL)
    {
        for (int t = 0; t < index->options.n_threads; t++)
            oj_free(b.scratch[t]);
    }
    oj_free(b.scratch);
    oj_free(b.x);
    oj_free(b.y);
    oj_order_free(&b.order);
    return status;
}

/* --- the join side -------------------------------------------------------- */

static void free_index(struct oj_index *index)
{
    if (index == NULL)
        return;
    if (index->worker != NULL)
    {
        for (int t = 0; t < index->options.n_threads; t++)
        {
            struct worker *w = &index->worker[t];
            oj_geos_pairs_close(w->geos);
            oj_free(w->found.at);
            oj_answers_free(&w->answers);
            oj_free(w->member);
            oj_cells_free(&w->cells);
            oj_cells_scratch_free(&w->scratch);
            oj_free(w->is_met);
        }
    }
    oj_free(index->worker);
    oj_free((void *)index->validity);
    oj_side_free(&index->side);
    oj_free(index);
}

static oj_status fill_index(struct oj_index *index,
                            const struct oj_flat *join_side,
                            struct oj_error *err)
{
    int64_t n = join_side->n_features;
    int n_threads = index->options.n_threads;
    index->worker = oj_calloc(n_threads, sizeof *index->worker);
    if (index->worker == NULL)
        return oj_fail_nomem(err, n_threads, sizeof *index->worker);
    index->validity = oj_calloc(n, sizeof *index->validity);
    if (index->validity == NULL)
        return oj_fail_nomem(err, n, sizeof *index->validity);
    return oj_side_build(&index->side, join_side, n_threads, err);
}

static oj_status
make_index(const struct oj_flat *join_side, const int32_t *tie_rank,
           const struct oj_relation *relation, const struct oj_options *options,
           struct oj_index **out, struct oj_stats *stats, struct oj_error *err)
{
    double start = oj_clock_seconds();
    struct oj_index *index = oj_calloc(1, sizeof *index);
    oj_status status;
    if (index == NULL)
        return oj_fail_nomem(err, 1, sizeof *index);
    index->tie_rank = tie_rank;
    index->relation = *relation;
    index->options = *options;
    index->rule = oj_verdict_box_rule(relation);
    status = fill_index(index, join_side, err);
    if (status != OJ_OK)
    {
        free_index(index);
        return status;
    }
    stats->index_bytes += oj_side_bytes(&index->side);
    stats->index_s += oj_clock_seconds() - start;
    *out = index;
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
