/* The results: what was gathered, read row by row. */
#include "oj_aggregate_state.h"

#include "../../flatten/base/oj_array.h"

#include <limits.h>
#include <math.h>
#include <string.h>

__extension__ typedef __int128 s128;

/* ---- held values -------------------------------------------------------- */

static oj_status append(char **text, int64_t *n_text, int64_t *capacity,
                        const char *bytes, int64_t n, struct oj_error *err)
{
    OJ_TRY(oj_reserve(text, *n_text, *n_text + n + 1, capacity, 1, err));
    if (n > 0)
        memcpy(*text + *n_text, bytes, (size_t)n);
    *n_text += n;
    return OJ_OK;
}

/* The value under the cursor if it is of store->row, else NULL. */
static const struct oj_held_value *peek(const struct oj_store *store)
{
    const struct oj_held_value *value = oj_held_peek(store->held);
    return value != NULL && value->row == store->row ? value : NULL;
}

static oj_status read_numbers(struct oj_store *store, int64_t n_values,
                              struct oj_error *err)
{
    const struct oj_held_value *value;
    int64_t i = 0, n_equal = 0, n_most = 0;
    uint64_t last = 0;
    for (; (value = peek(store)) != NULL; i++)
    {
        uint64_t number = value->number;
        if (i == 0 || number != last)
        {
            store->n_unique++;
            n_equal = 0;
        }
        last = number;
        if (++n_equal > n_most)
        {
            n_most = n_equal;
            store->mode = number;
        }
        if (i == (n_values - 1) / 2)
            store->middle[0] = number;
        if (i == n_values / 2)
            store->middle[1] = number;
        OJ_TRY(oj_held_skip(store->held, err));
    }
    return OJ_OK;
}

/* other: the value whose equals are being counted; text: the mode so far. */
static oj_status read_bytes(struct oj_store *store, struct oj_error *err)
{
    const struct oj_held_value *value;
    int64_t n_equal = 0, n_most = 0;
    for (; (value = peek(store)) != NULL;)
    {
        if (n_equal == 0 || value->n_bytes != store->n_other ||
            memcmp(value->bytes, store->other, (size_t)value->n_bytes) != 0)
        {
            store->n_unique++;
            n_equal = 0;
            store->n_other = 0;
            OJ_TRY(append(&store->other, &store->n_other, &store->cap_other,
                          value->bytes, value->n_bytes, err));
        }
        if (++n_equal > n_most)
        {
            if (n_most == 0 || store->n_text != store->n_other ||
                memcmp(store->text, store->other, (size_t)store->n_text) != 0)
            {
                store->n_text = 0;
                OJ_TRY(append(&store->text, &store->n_text, &store->cap_text,
                              store->other, store->n_other, err));
            }
            n_most = n_equal;
        }
        OJ_TRY(oj_held_skip(store->held, err));
    }
    return OJ_OK;
}

static oj_status read_joined(struct oj_store *store, struct oj_error *err)
{
    const struct oj_held_value *value;
    int64_t n_separator = (int64_t)strlen(store->separator);
    store->n_text = 0;
    for (int64_t i = 0; (value = peek(store)) != NULL; i++)
    {
        if (i > 0)
            OJ_TRY(append(&store->text, &store->n_text, &store->cap_text,
                          store->separator, n_separator, err));
        if (store->n_text + value->n_bytes + n_separator >= INT_MAX)
            return oj_fail(err, OJ_ERR_LIMIT,
                           "the concatenated values of one row are longer "
                           "than 2 GB");
        OJ_TRY(append(&store->text, &store->n_text, &store->cap_text,
                      value->bytes, value->n_bytes, err));
        OJ_TRY(oj_held_skip(store->held, err));
    }
    return OJ_OK;
}

oj_status oj_store_go_to(struct oj_store *store, int64_t row, int64_t n_values,
                         struct oj_error *err)
{
    const struct oj_held_value *value;
    if (store->row == row)
        return OJ_OK;
    while ((value = oj_held_peek(store->held)) != NULL && value->row < row)
        OJ_TRY(oj_held_skip(store->held, err));
    store->row = row;
    store->n_unique = 0;
    if (store->order == OJ_HELD_BY_NUMBER)
        return read_numbers(store, n_values, err);
    if (store->order == OJ_HELD_BY_BYTES)
        return read_bytes(store, err);
    return read_joined(store, err);
}

/* ---- results ------------------------------------------------------------ */

static s128 long_value(const struct oj_long_sum *sum)
{
    return (s128)sum->high * ((s128)1 << 64) + (s128)sum->low;
}

static oj_status sum_of(const struct oj_aggregates *a, const uint64_t *state,
                        int c, int64_t row, struct oj_aggregate_value *value,
                        struct oj_error *err)
{
    const struct oj_column_state *column = &a->columns[c];
    s128 sum;
    if (a->plan.types[c] != OJ_AGG_INTEGER)
    {
        value->real = oj_exact_sum_value((const void *)(state + column->sum));
        return OJ_OK;
    }
    sum = long_value((const void *)(state + column->long_sum));
    if (sum > INT64_MAX || sum < INT64_MIN)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "the sum of integers of row %lld, counted from 1, does "
                       "not fit into 64 bits; make the field a real number, or "
                       "ask for the mean",
                       (long long)row + 1);
    value->integer = (int64_t)sum;
    return OJ_OK;
}

static double mean_of(const struct oj_aggregates *a, const uint64_t *state,
                      int c, int64_t n)
{
    const struct oj_column_state *column = &a->columns[c];
    if (a->plan.types[c] == OJ_AGG_INTEGER)
        return (double)long_value((const void *)(state + column->long_sum)) /
               (double)n;
    return oj_exact_sum_value((const void *)(state + column->sum)) / (double)n;
}

static double median_of(enum oj_aggregate_type type, const uint64_t *middle)
{
    struct oj_aggregate_value u = {0}, v = {0};
    double sum;
    oj_number_value(type, middle[0], &u);
    oj_number_value(type, middle[1], &v);
    if (type == OJ_AGG_INTEGER)
        return (double)((s128)u.integer + (s128)v.integer) / 2.0;
    if (middle[0] == middle[1])
        return u.real;
    sum = u.real + v.real;
    return isinf(sum) ? u.real / 2.0 + v.real / 2.0 : sum / 2.0;
}

static void take_text(const struct oj_store *store,
                      struct oj_aggregate_value *value)
{
    value->bytes = store->n_text > 0 ? store->text : "";
    value->n_bytes = store->n_text;
}

static oj_status sorted_of(struct oj_aggregates *a,
                           const struct oj_aggregate *what, int64_t row,
                           int64_t n, struct oj_aggregate_value *value,
                           struct oj_error *err)
{
    struct oj_store *store = &a->stores[a->columns[what->column].sorted];
    enum oj_aggregate_type type = a->plan.types[what->column];
    OJ_TRY(oj_store_go_to(store, row, n, err));
    if (what->kind == OJ_AGG_UNIQUE)
        value->integer = store->n_unique;
    else if (what->kind == OJ_AGG_MEDIAN)
        value->real = median_of(type, store->middle);
    else if (type == OJ_AGG_BYTES)
        take_text(store, value);
    else
        oj_number_value(type, store->mode, value);
    return OJ_OK;
}

static void chosen_of(const struct oj_chosen *chosen,
                      enum oj_aggregate_kind kind, enum oj_aggregate_type type,
                      struct oj_aggregate_value *value)
{
    if (type == OJ_AGG_BYTES)
    {
        value->bytes = chosen->n_bytes > 0 ? chosen->bytes : "";
        value->n_bytes = chosen->n_bytes;
    }
    else if (kind == OJ_AGG_MIN || kind == OJ_AGG_MAX)
        oj_number_value(type, chosen->number, value);
    else if (type == OJ_AGG_INTEGER)
        value->integer = (int64_t)chosen->number;
    else
        memcpy(&value->real, &chosen->number, sizeof value->real);
}

/* Where there are n > 0 values. */
static oj_status result_of(struct oj_aggregates *a, const uint64_t *state,
                           int64_t row, int i, int64_t n,
                           struct oj_aggregate_value *value,
                           struct oj_error *err)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    const struct oj_column_state *column = &a->columns[what->column];
    switch (what->kind)
    {
        case OJ_AGG_SUM:
            return sum_of(a, state, what->column, row, value, err);
        case OJ_AGG_MEAN:
            value->real = mean_of(a, state, what->column, n);
            return OJ_OK;
        case OJ_AGG_STDDEV:
            value->is_null = n < 2;
            value->real = oj_exact_sum_deviation(
                (const void *)(state + column->sum),
                (const void *)(state + column->squares), n);
            return OJ_OK;
        case OJ_AGG_WEIGHTED_SUM:
            value->real =
                oj_exact_sum_value((const void *)(state + a->state[i]));
            return OJ_OK;
        case OJ_AGG_CONCAT:
            OJ_TRY(oj_store_go_to(&a->stores[a->state[i]], row, n, err));
            take_text(&a->stores[a->state[i]], value);
            return OJ_OK;
        case OJ_AGG_MEDIAN:
        case OJ_AGG_MODE:
        case OJ_AGG_UNIQUE:
            return sorted_of(a, what, row, n, value, err);
        default:
            chosen_of((const void *)(state + a->state[i]), what->kind,
                      a->plan.types[what->column], value);
            return OJ_OK;
    }
}

oj_status oj_aggregates_result(struct oj_aggregates *a, int64_t row, int i,
                               struct oj_aggregate_value *value,
                               struct oj_error *err)
{
    const struct oj_aggregate *what = &a->plan.aggregates[i];
    const uint64_t *state = oj_row_state(a, row);
    struct oj_aggregate_value result = {0};
    int64_t n = (int64_t)state[0];
    if (what->kind != OJ_AGG_COUNT)
        n = (int64_t)state[a->columns[what->column].n];
    if (what->kind == OJ_AGG_COUNT || what->kind == OJ_AGG_COUNT_VALUES)
        result.integer = n;
    else if (n == 0)
        result.is_null = what->kind != OJ_AGG_UNIQUE;
    else
        OJ_TRY(result_of(a, state, row, i, n, &result, err));
    *value = result;
    return OJ_OK;
}
