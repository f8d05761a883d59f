/* Many pairs at once, and rows put together. */
#include "oj_aggregate_state.h"
#include "oj_pair_sums.h"

#include "../../flatten/base/oj_array.h"

#include <string.h>

/* How many pairs ahead the state of a row is asked of the memory. */
#define AHEAD 16

int oj_aggregates_take_blocks(const struct oj_aggregates *a)
{
    for (int i = 0; i < a->plan.n_aggregates; i++)
    {
        switch (a->plan.aggregates[i].kind)
        {
            case OJ_AGG_COUNT:
            case OJ_AGG_COUNT_VALUES:
            case OJ_AGG_SUM:
            case OJ_AGG_MEAN:
            case OJ_AGG_STDDEV:
                break;
            default:
                return 0;
        }
    }
    for (int c = 0; c < a->plan.n_columns; c++)
    {
        if (a->plan.types[c] == OJ_AGG_BYTES)
            return 0;
    }
    return 1;
}

/* --- pairs ---------------------------------------------------------------- */

static inline oj_status add_real(struct oj_aggregates *a, uint64_t *state,
                                 double x, struct oj_error *err)
{
    struct oj_exact_sum *sum = (void *)state;
    if (oj_exact_sum_try(sum, x))
        return OJ_OK;
    OJ_TRY(oj_exact_sum_add(sum, x, err));
    a->owns_memory |= sum->is_wide;
    return OJ_OK;
}

static inline oj_status add_value(struct oj_aggregates *a, uint64_t *state,
                                  int c,
                                  const struct oj_aggregate_column *column,
                                  int32_t at, struct oj_error *err)
{
    const struct oj_column_state *place = &a->columns[c];
    struct oj_aggregate_value value = {0};
    if (column->is_null != NULL && column->is_null[at])
        return OJ_OK;
    if (place->n >= 0)
        state[place->n]++;
    if (place->squares < 0 && a->plan.types[c] == OJ_AGG_REAL)
        return place->sum < 0
                   ? OJ_OK
                   : add_real(a, state + place->sum, column->real[at], err);
    if (a->plan.types[c] == OJ_AGG_REAL)
        value.real = column->real[at];
    else
        value.integer = column->integer[at];
    return oj_row_add_sums(a, state, c, &value, err);
}

static inline void fetch(const struct oj_aggregates *a, int64_t row)
{
    const uint64_t *state = oj_row_state(a, row);
    __builtin_prefetch(state, 1);
    __builtin_prefetch(state + a->words - 1, 1);
}

oj_status oj_aggregates_add_block(struct oj_aggregates *a, int64_t n,
                                  const int64_t *row, const int32_t *at,
                                  const struct oj_aggregate_column *columns,
                                  struct oj_error *err)
{
    int n_columns = a->plan.n_columns;
    for (int64_t p = 0; p < AHEAD && p < n; p++)
        fetch(a, row[p]);
    for (int64_t p = 0; p < n; p++)
    {
        uint64_t *state = oj_row_state(a, row[p]);
        if (p + AHEAD < n)
            fetch(a, row[p + AHEAD]);
        state[0]++;
        for (int c = 0; c < n_columns; c++)
            OJ_TRY(add_value(a, state, c, &columns[c], at[p], err));
    }
    return OJ_OK;
}

int oj_aggregates_take_counts(const struct oj_aggregates *a)
{
    for (int i = 0; i < a->plan.n_aggregates; i++)
    {
        if (a->plan.aggregates[i].kind != OJ_AGG_COUNT)
            return 0;
    }
    return 1;
}

void oj_aggregates_add_counts(struct oj_aggregates *a, int64_t n,
                              const int64_t *count)
{
    for (int64_t row = 0; row < n; row++)
        oj_row_state(a, row)[0] += (uint64_t)count[row];
}

static oj_status merge_sum(struct oj_aggregates *a,
                           const struct oj_exact_sum *more, uint64_t *to,
                           int at, struct oj_error *err)
{
    struct oj_exact_sum *sum;
    if (at < 0)
        return OJ_OK;
    sum = (void *)(to + at);
    OJ_TRY(oj_exact_sum_merge(sum, more, err));
    a->owns_memory |= sum->is_wide;
    return OJ_OK;
}

static void merge_long(const struct oj_long_sum *more, uint64_t *to, int at)
{
    struct oj_long_sum *sum;
    if (at < 0)
        return;
    sum = (void *)(to + at);
    sum->low += more->low;
    sum->high += more->high + (sum->low < more->low);
}

/* The part of a state that is at words from its start. */
static const void *part_of(const uint64_t *state, int at)
{
    return at >= 0 ? state + at : NULL;
}

/* --- sums of pairs that were not made ------------------------------------- */

int oj_aggregates_take_sums(const struct oj_aggregates *a)
{
    for (int i = 0; i < a->plan.n_aggregates; i++)
    {
        if (a->plan.aggregates[i].kind == OJ_AGG_STDDEV)
            return 0;
    }
    return a->plan.n_columns <= OJ_SUM_MOST_COLUMNS &&
           oj_aggregates_take_blocks(a);
}

oj_status oj_aggregates_sums(const struct oj_aggregates *a, int64_t n,
                             struct oj_pair_sums **out, struct oj_error *err)
{
    int wants_sum[OJ_SUM_MOST_COLUMNS];
    for (int c = 0; c < a->plan.n_columns && c < OJ_SUM_MOST_COLUMNS; c++)
        wants_sum[c] = a->columns[c].sum >= 0 || a->columns[c].long_sum >= 0;
    return oj_pair_sums_open(n, a->plan.n_columns, a->plan.types, wants_sum,
                             out, err);
}

oj_status oj_aggregates_add_sums(struct oj_aggregates *a,
                                 const struct oj_pair_sums *sums,
                                 struct oj_error *err)
{
    for (int64_t row = 0; row < sums->n_features; row++)
    {
        uint64_t *state = oj_row_state(a, row);
        state[0] += (uint64_t)sums->n_pairs[row];
        for (int c = 0; c < sums->n_columns; c++)
        {
            const struct oj_summed_column *from = &sums->column[c];
            const struct oj_column_state *to = &a->columns[c];
            if (to->n >= 0)
                state[to->n] += (uint64_t)from->n[row];
            if (from->integer != NULL)
                merge_long(&from->integer[row], state, to->long_sum);
            if (from->real != NULL)
                OJ_TRY(merge_sum(a, &from->real[row], state, to->sum, err));
        }
    }
    return OJ_OK;
}

/* --- rows ----------------------------------------------------------------- */

int oj_aggregates_can_merge(const struct oj_aggregates *a)
{
    return a->n_stores == 0;
}

oj_status oj_aggregates_merge(struct oj_aggregates *a, int64_t from_row,
                              int64_t to_row, struct oj_error *err)
{
    const uint64_t *from = oj_row_state(a, from_row);
    uint64_t *to = oj_row_state(a, to_row);
    for (int i = 0; i < a->plan.n_aggregates; i++)
    {
        const struct oj_aggregate *what = &a->plan.aggregates[i];
        if (what->kind == OJ_AGG_WEIGHTED_SUM)
            OJ_TRY(
                merge_sum(a, part_of(from, a->state[i]), to, a->state[i], err));
        else if (oj_aggregate_chooses(what->kind) &&
                 from[a->columns[what->column].n] > 0)
            OJ_TRY(oj_row_choose(a, to, i, part_of(from, a->state[i]), err));
    }
    for (int c = 0; c < a->plan.n_columns; c++)
    {
        const struct oj_column_state *column = &a->columns[c];
        if (column->n >= 0)
            to[column->n] += from[column->n];
        merge_long(part_of(from, column->long_sum), to, column->long_sum);
        OJ_TRY(merge_sum(a, part_of(from, column->sum), to, column->sum, err));
        OJ_TRY(merge_sum(a, part_of(from, column->squares), to, column->squares,
                         err));
    }
    to[0] += from[0];
    return OJ_OK;
}
