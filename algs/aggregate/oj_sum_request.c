#include "oj_sum_request.h"

#include "../base/cpu_threads.h"
#include "../kernels/oj_limbs.h"

#include <limits.h>
#include <string.h>

/* Rows that a thread looks at at once. */
#define ROWS_PER_TASK 65536

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

void oj_sum_request_make(int n_columns, const enum oj_aggregate_type *types,
                         const int *wants_sum,
                         const struct oj_aggregate_column *columns, int64_t n,
                         int n_threads, struct oj_sum_request *out)
{
    memset(out, 0, sizeof *out);
    out->n_words = 1;
    out->n_columns = n_columns;
    for (int c = 0; c < n_columns; c++)
    {
        struct oj_sum_column *column = &out->column[c];
        struct look look = {&columns[c], types[c] == OJ_AGG_INTEGER,
                            wants_sum[c], n, NULL};
        struct reach reach = reach_of(&look, n_threads);
        column->is_integer = look.is_integer;
        if (reach.any_null)
        {
            column->is_null = columns[c].is_null;
            column->n_at = take_words(out, 1);
        }
        if (wants_sum[c])
            ask_sum(&columns[c], &reach, out, column);
    }
}
