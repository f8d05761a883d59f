#include "cpu_predicate.h"

#include "../../flatten/base/oj_array.h"
#include "../base/cpu_threads.h"
#include "../kernels/oj_said.h"
#include "../pairs/oj_row_order.h"

#include <string.h>

#define ROWS_PER_TASK 1024

/* Open rows are few or slow: small tasks. */
#define ROWS_AT_ONCE 16

struct screened_batch
{
    const struct oj_predicate_rows *rows;
    struct oj_screen_pairs *pairs;
    struct oj_matches *out;
    int64_t *count;             /* [tasks] pairs, then their place */
    int64_t *n_matched;         /* [tasks] rows with a pair */
    atomic_int has_open;        /* pairs to decide */
    atomic_int asks_shapes;     /* some of them take the side */
    int64_t n_present;          /* disjoint: join features that have parts */
    struct oj_row_order *order; /* [threads] */
};

/* Joins that boxes alone say little about. */
static int asks_meeting(const struct oj_relation *relation)
{
    switch (relation->op)
    {
        case OJ_OP_INTERSECTS:
        case OJ_OP_DISJOINT:
        case OJ_OP_TOUCHES:
        case OJ_OP_CROSSES:
        case OJ_OP_OVERLAPS:
        case OJ_OP_RELATE:
            return 1;
        default:
            return 0;
    }
}

int oj_screen_rule_of(const struct oj_relation *relation,
                      struct oj_screen_rule *out)
{
    struct oj_box_rule rule = oj_verdict_box_rule(relation);
    if (relation->op == OJ_OP_NEAREST || relation->op == OJ_OP_DWITHIN ||
        rule.takes_all)
        return 0;
    out->test = (int)rule.test;
    out->is_enough = rule.is_enough;
    out->asks_meeting = asks_meeting(relation);
    return 1;
}

void oj_screen_pairs_free(struct oj_screen_pairs *pairs)
{
    oj_free(pairs->offset);
    oj_free(pairs->feature);
    oj_free(pairs->said);
    memset(pairs, 0, sizeof *pairs);
}

static int64_t last_row(const struct screened_batch *b, int64_t task)
{
    int64_t end = (task + 1) * ROWS_PER_TASK;
    return end < b->pairs->n_rows ? end : b->pairs->n_rows;
}

/* --- what is left --------------------------------------------------------- */

/* Pairs that may not count are none; are there others that are open? */
static void look_through(int64_t task, int thread, void *user)
{
    struct screened_batch *b = user;
    const struct oj_predicate_index *index = b->rows->index;
    const struct oj_pair_filter *filter = &b->rows->filter;
    const struct oj_screen_pairs *pairs = b->pairs;
    int open = 0, shapes = 0;
    (void)thread;
    for (int64_t row = task * ROWS_PER_TASK; row < last_row(b, task); row++)
    {
        for (int64_t i = pairs->offset[row]; i < pairs->offset[row + 1]; i++)
        {
            if (!oj_pair_may_count(filter, row, pairs->feature[i]))
                pairs->said[i] = OJ_SAID_APART;
            open |= oj_predicate_is_open(index, pairs->said[i]);
            shapes |= oj_predicate_asks_shapes(index, pairs->said[i]);
        }
    }
    if (shapes)
        atomic_store_explicit(&b->asks_shapes, 1, memory_order_relaxed);
    if (open)
        atomic_store_explicit(&b->has_open, 1, memory_order_relaxed);
}

static oj_status decide_row(int64_t row, int thread, void *user,
                            struct oj_error *err)
{
    struct screened_batch *b = user;
    struct oj_predicate_index *index = b->rows->index;
    const struct oj_screen_pairs *pairs = b->pairs;
    int64_t first = pairs->offset[row], n = pairs->offset[row + 1] - first;
    int open = 0;
    for (int64_t i = first; i < first + n; i++)
        open |= oj_predicate_is_open(index, pairs->said[i]);
    if (!open)
        return OJ_OK;
    OJ_TRY(oj_check_cancel(index->options.cancel, err));
    return oj_predicate_decide(b->rows, &index->worker[thread], row, n,
                               pairs->feature + first, pairs->said + first,
                               err);
}

static oj_status find_places(struct oj_predicate_index *index,
                             struct oj_error *err)
{
    OJ_TRY(oj_predicate_want_side(index, err));
    if (index->place_of != NULL)
        return OJ_OK;
    OJ_NEW(index->place_of, index->join_side->n_features, err);
    for (int64_t at = 0; at < index->side.n; at++)
        index->place_of[oj_side_feature(&index->side, at)] = (int32_t)at;
    return OJ_OK;
}

/* --- the pairs in order --------------------------------------------------- */

static int has_parts(const struct oj_flat *flat, int64_t feature)
{
    return flat->part_offset[feature] < flat->part_offset[feature + 1];
}

static int64_t n_met(const struct oj_screen_pairs *pairs, int64_t row)
{
    int64_t n = 0;
    for (int64_t i = pairs->offset[row]; i < pairs->offset[row + 1]; i++)
        n += pairs->said[i] == OJ_SAID_MEETS;
    return n;
}

/* Puts the features that row is disjoint with to out, or only counts them where
 * out is NULL.  is_met [features] is 0, and stays so. */
static int64_t take_others(const struct screened_batch *b, int64_t row,
                           uint8_t *is_met, int32_t *out)
{
    const struct oj_screen_pairs *pairs = b->pairs;
    const struct oj_flat *join_side = b->rows->index->join_side;
    int64_t n = 0;
    if (!has_parts(b->rows->input, row))
        return 0;
    if (out == NULL && !b->rows->filter.is_needed)
        return b->n_present - n_met(pairs, row);
    for (int64_t i = pairs->offset[row]; i < pairs->offset[row + 1]; i++)
        is_met[pairs->feature[i]] = pairs->said[i] == OJ_SAID_MEETS;
    for (int64_t f = 0; f < join_side->n_features; f++)
    {
        if (is_met[f] || !has_parts(join_side, f) ||
            !oj_pair_may_count(&b->rows->filter, row, f))
            continue;
        if (out != NULL)
            out[n] = (int32_t)f;
        n++;
    }
    for (int64_t i = pairs->offset[row]; i < pairs->offset[row + 1]; i++)
        is_met[pairs->feature[i]] = 0;
    return n;
}

/* The features that row meets. */
static int64_t take_met(const struct screened_batch *b, int64_t row,
                        int32_t *out)
{
    const struct oj_screen_pairs *pairs = b->pairs;
    int64_t n = 0;
    for (int64_t i = pairs->offset[row]; i < pairs->offset[row + 1]; i++)
    {
        if (pairs->said[i] == OJ_SAID_MEETS)
            out[n++] = pairs->feature[i];
    }
    return n;
}

static void count_task(int64_t task, int thread, void *user)
{
    struct screened_batch *b = user;
    const struct oj_predicate_index *index = b->rows->index;
    int64_t n = 0, n_matched = 0;
    for (int64_t row = task * ROWS_PER_TASK; row < last_row(b, task); row++)
    {
        int64_t n_row =
            index->relation.op == OJ_OP_DISJOINT
                ? take_others(b, row, index->worker[thread].is_met, NULL)
                : n_met(b->pairs, row);
        n += n_row;
        n_matched += n_row > 0;
    }
    b->count[task] = n;
    b->n_matched[task] = n_matched;
}

static oj_status fill_task(int64_t task, int thread, void *user,
                           struct oj_error *err)
{
    struct screened_batch *b = user;
    const struct oj_predicate_index *index = b->rows->index;
    struct oj_matches *out = b->out;
    int64_t at = b->count[task];
    OJ_TRY(oj_check_cancel(index->options.cancel, err));
    for (int64_t row = task * ROWS_PER_TASK; row < last_row(b, task); row++)
    {
        int32_t *feature = out->join_row + at;
        int64_t n;
        out->offset[row] = at;
        if (index->relation.op == OJ_OP_DISJOINT)
        {
            OJ_TRY(oj_check_cancel(index->options.cancel, err));
            n = take_others(b, row, index->worker[thread].is_met, feature);
        }
        else
            n = take_met(b, row, feature);
        for (int64_t i = at; i < at + n; i++)
            out->measure[i] = NAN;
        at += n;
        if (!index->relation.any_order)
            OJ_TRY(oj_row_order_sort(&b->order[thread], n, index->tie_rank,
                                     feature, NULL, err));
    }
    return OJ_OK;
}

static oj_status put_in_order(struct screened_batch *b, int64_t n_tasks,
                              struct oj_error *err)
{
    const struct oj_predicate_index *index = b->rows->index;
    int n_threads = index->options.n_threads;
    int64_t n_rows = b->pairs->n_rows, n = 0, n_matched = 0;
    int64_t most = index->options.max_batch_pairs;
    oj_parallel_for(n_threads, n_tasks, count_task, b);
    for (int64_t task = 0; task < n_tasks; task++)
    {
        int64_t count = b->count[task];
        b->count[task] = n;
        n += count;
        n_matched += b->n_matched[task];
    }
    if (most > 0 && n_rows > 1 && n > most)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS,
                       "the batch has more pairs than fit");
    OJ_TRY(oj_matches_reserve(b->out, n_rows, n, 1, err));
    OJ_TRY(oj_parallel_try(n_threads, n_tasks, 1, fill_task, b, err));
    b->out->offset[n_rows] = b->out->n_pairs = n;
    b->out->n_matched = n_matched;
    return OJ_OK;
}

static oj_status run(struct screened_batch *b, struct oj_error *err)
{
    struct oj_predicate_index *index = b->rows->index;
    int n_threads = index->options.n_threads;
    int64_t n_rows = b->pairs->n_rows;
    int64_t n_tasks = (n_rows + ROWS_PER_TASK - 1) / ROWS_PER_TASK;
    OJ_NEW(b->count, n_tasks, err);
    OJ_NEW(b->n_matched, n_tasks, err);
    b->order = oj_calloc(n_threads, sizeof *b->order);
    if (b->order == NULL)
        return oj_fail_nomem(err, n_threads, sizeof *b->order);
    oj_parallel_for(n_threads, n_tasks, look_through, b);
    if (atomic_load(&b->asks_shapes))
        OJ_TRY(find_places(index, err));
    if (atomic_load(&b->has_open))
        OJ_TRY(oj_parallel_try(n_threads, n_rows, ROWS_AT_ONCE, decide_row, b,
                               err));
    for (int64_t f = 0; index->relation.op == OJ_OP_DISJOINT &&
                        f < index->join_side->n_features;
         f++)
        b->n_present += has_parts(index->join_side, f);
    return put_in_order(b, n_tasks, err);
}

oj_status oj_screened_to_matches(const struct oj_predicate_rows *rows,
                                 struct oj_matches *out, struct oj_error *err)
{
    struct screened_batch b;
    oj_status status;
    memset(&b, 0, sizeof b);
    b.rows = rows;
    b.pairs = &rows->index->screened;
    b.out = out;
    atomic_init(&b.has_open, 0);
    atomic_init(&b.asks_shapes, 0);
    status = run(&b, err);
    oj_free(b.count);
    oj_free(b.n_matched);
    for (int t = 0; b.order != NULL && t < rows->index->options.n_threads; t++)
        oj_row_order_free(&b.order[t]);
    oj_free(b.order);
    return status;
}
