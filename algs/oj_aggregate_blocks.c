/* Many pairs at once, and rows put together. */
#include "oj_aggregate_state.h"

#include "../flatten/oj_array.h"

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

/* --- rows ----------------------------------------------------------------- */

int oj_aggregates_can_merge(const struct oj_aggregates *a)
{
    return a->n_stores == 0;
}

static oj_status merge_sum(struct oj_aggregates *a, const uint64_t *from,
                           uint64_t *to, int at, struct oj_error *err)
{
    struct oj_exact_sum *sum;
    if (at < 0)
        return OJ_OK;
    sum = (void *)(to + at);
    OJ_TRY(oj_exact_sum_merge(sum, (const void *)(from + at), err));
    a->owns_memory |= sum->is_wide;
    return OJ_OK;
}

static void merge_long(const uint64_t *from, uint64_t *to, int at)
{
    const struct oj_long_sum *more;
    struct oj_long_sum *sum;
    if (at < 0)
        return;
    more = (const void *)(from + at);
    sum = (void *)(to + at);
    sum->low += more->low;
    sum->high += more->high + (sum->low < more->low);
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
            OJ_TRY(merge_sum(a, from, to, a->state[i], err));
        else if (oj_aggregate_chooses(what->kind) &&
                 from[a->columns[what->column].n] > 0)
            OJ_TRY(oj_row_choose(a, to, i, (const void *)(from + a->state[i]),
                                 err));
    }
    for (int c = 0; c < a->plan.n_columns; c++)
    {
        const struct oj_column_state *column = &a->columns[c];
        if (column->n >= 0)
            to[column->n] += from[column->n];
        merge_long(from, to, column->long_sum);
        OJ_TRY(merge_sum(a, from, to, column->sum, err));
        OJ_TRY(merge_sum(a, from, to, column->squares, err));
    }
    to[0] += from[0];
    return OJ_OK;
}
