#include "oj_pair_sums.h"

#include "../../flatten/base/oj_array.h"
#include "../base/cpu_threads.h"
#include "../kernels/oj_limbs.h"
#include "oj_aggregate_state.h"

#include <limits.h>
#include <string.h>

/* Rows that a thread looks at at once. */
#define ROWS_PER_TASK 65536

__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 u128;

/* ---- open and close ----------------------------------------------------- */

static oj_status make_column(int64_t n, struct oj_summed_column *column,
                             struct oj_error *err)
{
    int is_integer = column->type == OJ_AGG_INTEGER;
    column->n = oj_calloc(n, sizeof *column->n);
    if (column->n == NULL)
        return oj_fail_nomem(err, n, sizeof *column->n);
    if (!column->wants_sum)
        return OJ_OK;
    if (is_integer)
        column->integer = oj_calloc(n, sizeof *column->integer);
    else
        column->real = oj_calloc(n, sizeof *column->real);
    if (column->integer == NULL && column->real == NULL)
        return oj_fail_nomem(err, n, sizeof *column->real);
    return OJ_OK;
}

static oj_status make(struct oj_pair_sums *sums,
                      const enum oj_aggregate_type *types, const int *wants_sum,
                      struct oj_error *err)
{
    sums->n_pairs = oj_calloc(sums->n_features, sizeof *sums->n_pairs);
    if (sums->n_pairs == NULL)
        return oj_fail_nomem(err, sums->n_features, sizeof *sums->n_pairs);
    for (int c = 0; c < sums->n_columns; c++)
    {
        sums->column[c].type = types[c];
        sums->column[c].wants_sum = wants_sum[c];
        OJ_TRY(make_column(sums->n_features, &sums->column[c], err));
    }
    return OJ_OK;
}

oj_status oj_pair_sums_open(int64_t n_features, int n_columns,
                            const enum oj_aggregate_type *types,
                            const int *wants_sum, struct oj_pair_sums **out,
                            struct oj_error *err)
{
    struct oj_pair_sums *sums;
    oj_status status;
    if (n_columns > OJ_SUM_MOST_COLUMNS)
        return oj_fail(err, OJ_ERR_ARG, "more than %d columns to sum",
                       OJ_SUM_MOST_COLUMNS);
    sums = oj_calloc(1, sizeof *sums);
    if (sums == NULL)
        return oj_fail_nomem(err, 1, sizeof *sums);
    sums->n_features = n_features;
    sums->n_columns = n_columns;
    status = make(sums, types, wants_sum, err);
    if (status == OJ_OK)
        *out = sums;
    else
        oj_pair_sums_close(sums);
    return status;
}

void oj_pair_sums_close(struct oj_pair_sums *sums)
{
    if (sums == NULL)
        return;
    for (int c = 0; c < sums->n_columns; c++)
    {
        struct oj_summed_column *column = &sums->column[c];
        for (int64_t f = 0; column->real != NULL && f < sums->n_features; f++)
            oj_exact_sum_clear(&column->real[f]);
        oj_free(column->real);
        oj_free(column->integer);
        oj_free(column->n);
    }
    oj_free(sums->n_pairs);
    oj_free(sums->words);
    oj_free(sums);
}

/* ---- a request ---------------------------------------------------------- */

/* What the values of a column are like: all together of a thread. */
struct reach
{
    int low, high; /* 2^low is in no value cut, and all are below 2^high */
    int any_null, any_odd;
    uint64_t integers; /* or'ed: x, or ~x where x < 0 */
};

struct look
{
    const struct oj_aggregate_column *column;
    int is_integer, wants_sum;
    int64_t n;
    struct reach *reach; /* [threads] */
};

static void look_at_real(double value, struct reach *reach)
{
    uint64_t bits, m;
    int e, low, high;
    memcpy(&bits, &value, sizeof bits);
    if ((bits >> 52 & 0x7ff) == 0x7ff)
    {
        reach->any_odd = 1;
        return;
    }
    oj_limbs_split(bits, &m, &e);
    if (m == 0)
        return;
    low = e + __builtin_ctzll(m);
    high = e + 64 - __builtin_clzll(m);
    if (low < reach->low)
        reach->low = low;
    if (high > reach->high)
        reach->high = high;
}

static void look_at_rows(int64_t task, int thread, void *user)
{
    const struct look *look = user;
    const struct oj_aggregate_column *column = look->column;
    struct reach reach = look->reach[thread];
    int64_t first = task * ROWS_PER_TASK;
    int64_t end =
        first + ROWS_PER_TASK < look->n ? first + ROWS_PER_TASK : look->n;
    for (int64_t i = first; i < end; i++)
    {
        if (column->is_null != NULL && column->is_null[i])
            reach.any_null = 1;
        else if (!look->wants_sum)
            continue;
        else if (look->is_integer)
            reach.integers |=
                (uint64_t)(column->integer[i] < 0 ? ~column->integer[i]
                                                  : column->integer[i]);
        else
            look_at_real(column->real[i], &reach);
    }
    look->reach[thread] = reach;
}

enum
{
    MOST_THREADS = 64
};

static struct reach reach_of(const struct look *asked, int n_threads)
{
    struct reach reach[MOST_THREADS];
    struct look look = *asked;
    if (n_threads < 1)
        n_threads = 1;
    if (n_threads > MOST_THREADS)
        n_threads = MOST_THREADS;
    memset(reach, 0, sizeof reach);
    for (int t = 0; t < n_threads; t++)
    {
        reach[t].low = INT_MAX;
        reach[t].high = INT_MIN;
    }
    look.reach = reach;
    if (look.wants_sum || look.column->is_null != NULL)
        oj_parallel_for(n_threads, (look.n + ROWS_PER_TASK - 1) / ROWS_PER_TASK,
                        look_at_rows, &look);
    for (int t = 1; t < n_threads; t++)
    {
        if (reach[t].low < reach[0].low)
            reach[0].low = reach[t].low;
        if (reach[t].high > reach[0].high)
            reach[0].high = reach[t].high;
        reach[0].any_null |= reach[t].any_null;
        reach[0].any_odd |= reach[t].any_odd;
        reach[0].integers |= reach[t].integers;
    }
    return reach[0];
}

static int take_words(struct oj_sum_request *request, int n)
{
    int at = request->n_words;
    request->n_words += n;
    return n > 0 ? at : 0;
}

static void ask_sum(const struct oj_aggregate_column *from,
                    const struct reach *reach, struct oj_sum_request *request,
                    struct oj_sum_column *column)
{
    if (column->is_integer)
    {
        column->n_limbs = reach->integers >> 31 == 0 ? 1 : 2;
        column->value = (const uint64_t *)(const void *)from->integer;
    }
    else
    {
        if (reach->high > reach->low)
        {
            column->base = reach->low;
            column->n_limbs =
                (reach->high - reach->low + OJ_LIMB_BITS - 1) / OJ_LIMB_BITS;
        }
        column->value = (const uint64_t *)(const void *)from->real;
        column->odd_at = take_words(request, reach->any_odd ? 3 : 0);
    }
    column->limb_at = take_words(request, column->n_limbs);
}

void oj_sum_request_make(const struct oj_pair_sums *sums,
                         const struct oj_aggregate_column *columns, int64_t n,
                         int n_threads, struct oj_sum_request *out)
{
    memset(out, 0, sizeof *out);
    out->n_words = 1;
    out->n_columns = sums->n_columns;
    for (int c = 0; c < sums->n_columns; c++)
    {
        const struct oj_summed_column *to = &sums->column[c];
        struct oj_sum_column *column = &out->column[c];
        struct look look = {&columns[c], to->type == OJ_AGG_INTEGER,
                            to->wants_sum, n, NULL};
        struct reach reach = reach_of(&look, n_threads);
        column->is_integer = look.is_integer;
        if (reach.any_null)
        {
            column->is_null = columns[c].is_null;
            column->n_at = take_words(out, 1);
        }
        if (to->wants_sum)
            ask_sum(&columns[c], &reach, out, column);
    }
}

/* ---- the answer --------------------------------------------------------- */

oj_status oj_pair_sums_reserve(struct oj_pair_sums *sums,
                               const struct oj_sum_request *request,
                               struct oj_error *err)
{
    int64_t n = sums->n_features * request->n_words;
    OJ_TRY(oj_reserve(&sums->words, 0, n, &sums->cap_words, sizeof *sums->words,
                      err));
    if (n > 0)
        memset(sums->words, 0, (size_t)n * sizeof *sums->words);
    return OJ_OK;
}

static void add_integers(struct oj_long_sum *sum, const int64_t *limb, int n)
{
    s128 more = limb[0];
    uint64_t low;
    if (n > 1)
        more += (s128)limb[1] * ((s128)1 << OJ_LIMB_BITS);
    low = (uint64_t)more;
    sum->low += low;
    sum->high += (int64_t)((u128)more >> 64) + (sum->low < low);
}

static oj_status add_column(struct oj_summed_column *to, int64_t f,
                            const struct oj_sum_column *column,
                            const int64_t *word, struct oj_error *err)
{
    to->n[f] += word[column->n_at];
    if (to->real != NULL && column->odd_at > 0)
        oj_exact_sum_meet(&to->real[f], word[column->odd_at] > 0,
                          word[column->odd_at + 1] > 0,
                          word[column->odd_at + 2] > 0);
    if (column->n_limbs == 0)
        return OJ_OK;
    if (to->integer != NULL)
    {
        add_integers(&to->integer[f], word + column->limb_at, column->n_limbs);
        return OJ_OK;
    }
    return oj_exact_sum_add_limbs(&to->real[f], word + column->limb_at,
                                  column->n_limbs, column->base, err);
}

oj_status oj_pair_sums_add(struct oj_pair_sums *sums,
                           const struct oj_sum_request *request,
                           struct oj_error *err)
{
    for (int64_t f = 0; f < sums->n_features; f++)
    {
        const int64_t *word = sums->words + f * request->n_words;
        if (word[0] == 0)
            continue;
        sums->n_pairs[f] += word[0];
        for (int c = 0; c < request->n_columns; c++)
            OJ_TRY(add_column(&sums->column[c], f, &request->column[c], word,
                              err));
    }
    return OJ_OK;
}
