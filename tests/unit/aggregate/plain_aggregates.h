/* Random pairs of rows with features, and a plain way to compute their
 * aggregates: the pairs are sorted, and one aggregate is computed after the
 * other. */
#ifndef PLAIN_AGGREGATES_H
#define PLAIN_AGGREGATES_H

#include "../../../algs/foundations/aggregate/oj_aggregate.h"
#include "../../../algs/foundations/base/oj_exact_sum.h"
#include "../assertions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../random_numbers.h"

enum
{
    ROWS = 9,
    MOST_PAIRS = 4000,
    COLUMNS = 4 /* an integer, a real and a text column, and a real column of
                   pairs */
};

static const enum oj_aggregate_type types[COLUMNS] = {
    OJ_AGG_INTEGER, OJ_AGG_REAL, OJ_AGG_BYTES, OJ_AGG_REAL};
static const uint8_t is_of_pairs[COLUMNS] = {0, 0, 0, 1};

static const struct oj_aggregate all[] = {
    {OJ_AGG_COUNT, 0, NULL, 0, 0.0},
    {OJ_AGG_COUNT_VALUES, 0, NULL, 0, 0.0},
    {OJ_AGG_COUNT_VALUES, 2, NULL, 0, 0.0},
    {OJ_AGG_SUM, 0, NULL, 0, 0.0},
    {OJ_AGG_SUM, 1, NULL, 0, 0.0},
    {OJ_AGG_MEAN, 0, NULL, 0, 0.0},
    {OJ_AGG_MEAN, 1, NULL, 0, 0.0},
    {OJ_AGG_MIN, 0, NULL, 0, 0.0},
    {OJ_AGG_MIN, 1, NULL, 0, 0.0},
    {OJ_AGG_MIN, 2, NULL, 0, 0.0},
    {OJ_AGG_MAX, 0, NULL, 0, 0.0},
    {OJ_AGG_MAX, 1, NULL, 0, 0.0},
    {OJ_AGG_MAX, 2, NULL, 0, 0.0},
    {OJ_AGG_MEDIAN, 0, NULL, 0, 0.0},
    {OJ_AGG_MEDIAN, 1, NULL, 0, 0.0},
    {OJ_AGG_STDDEV, 0, NULL, 0, 0.0},
    {OJ_AGG_STDDEV, 1, NULL, 0, 0.0},
    {OJ_AGG_FIRST, 0, NULL, 0, 0.0},
    {OJ_AGG_FIRST, 1, NULL, 0, 0.0},
    {OJ_AGG_FIRST, 2, NULL, 0, 0.0},
    {OJ_AGG_LAST, 0, NULL, 0, 0.0},
    {OJ_AGG_LAST, 1, NULL, 0, 0.0},
    {OJ_AGG_LAST, 2, NULL, 0, 0.0},
    {OJ_AGG_MODE, 0, NULL, 0, 0.0},
    {OJ_AGG_MODE, 1, NULL, 0, 0.0},
    {OJ_AGG_MODE, 2, NULL, 0, 0.0},
    {OJ_AGG_UNIQUE, 0, NULL, 0, 0.0},
    {OJ_AGG_UNIQUE, 1, NULL, 0, 0.0},
    {OJ_AGG_UNIQUE, 2, NULL, 0, 0.0},
    {OJ_AGG_CONCAT, 2, "; ", 0, 0.0},
    {OJ_AGG_CONCAT, 2, "", 0, 0.0},
    {OJ_AGG_WEIGHTED_SUM, 0, NULL, 0, 0.0},
    {OJ_AGG_WEIGHTED_SUM, 1, NULL, 0, 0.0},
    {OJ_AGG_VARIANCE, 0, NULL, 0, 0.0},
    {OJ_AGG_VARIANCE, 1, NULL, 0, 0.0},
    {OJ_AGG_PERCENTILE, 0, NULL, 0, 0.0},
    {OJ_AGG_PERCENTILE, 0, NULL, 0, 99.9},
    {OJ_AGG_PERCENTILE, 1, NULL, 0, 25.0},
    {OJ_AGG_PERCENTILE, 1, NULL, 0, 62.5},
    {OJ_AGG_PERCENTILE, 3, NULL, 0, 100.0},
    {OJ_AGG_RANGE, 0, NULL, 0, 0.0},
    {OJ_AGG_RANGE, 1, NULL, 0, 0.0},
    {OJ_AGG_MINORITY, 0, NULL, 0, 0.0},
    {OJ_AGG_MINORITY, 1, NULL, 0, 0.0},
    {OJ_AGG_MINORITY, 2, NULL, 0, 0.0},
    {OJ_AGG_WEIGHTED_MEAN, 0, NULL, 1, 0.0},
    {OJ_AGG_WEIGHTED_MEAN, 1, NULL, 3, 0.0},
    {OJ_AGG_WEIGHTED_MEAN, 3, NULL, 0, 0.0},
    {OJ_AGG_MEAN, 3, NULL, 0, 0.0},
    {OJ_AGG_MIN, 3, NULL, 0, 0.0},
    {OJ_AGG_UNIQUE, 3, NULL, 0, 0.0},
};

enum
{
    N_ALL = (int)(sizeof all / sizeof *all)
};

struct aggregated_pair
{
    int64_t row, fid, place;
    double share;
    struct oj_aggregate_value value[COLUMNS];
};

static struct aggregated_pair pairs[MOST_PAIRS];
static int n_pairs;
static int n_opened; /* files */

static int open_file(void *user)
{
    char path[] = "/tmp/test_aggregates-XXXXXX";
    int file = mkstemp(path);
    (void)user;
    if (file >= 0)
        unlink(path);
    n_opened++;
    return file;
}

static int open_nothing(void *user)
{
    (void)user;
    return -1;
}

static const struct oj_value_sort_files files = {open_file, NULL};
static const struct oj_value_sort_files no_files = {open_nothing, NULL};

static void must(oj_status status)
{
    ck_assert_int_eq(status, OJ_OK);
}

static const char *const texts[] = {
    "", "a", "ab", "b", "B", "a longer text", "\xc3\xa4"};

static void make_pairs(void)
{
    n_pairs = 1 + pick(MOST_PAIRS - 1);
    if (one_in(3))
        n_pairs = 1 + pick(20);
    for (int i = 0; i < n_pairs; i++)
    {
        struct aggregated_pair *p = &pairs[i];
        memset(p, 0, sizeof *p);
        p->row = pick(ROWS - 1); /* the last row has no pairs */
        p->fid = pick(50);
        p->place = i;
        p->share = one_in(2) ? 1.0 : unit();
        for (int c = 0; c < COLUMNS; c++)
            p->value[c].is_null =
                seed % 3 != 0 && (one_in(8) || p->row == ROWS - 2);
        p->value[0].integer =
            one_in(2) ? pick(5) - 2 : (int64_t)random_bits() >> 14;
        p->value[1].real = one_in(3) ? any_size(-400, 400) : pick(7) / 10.0;
        if (one_in(20))
            p->value[1].real = -0.0;
        if (seed % 5 == 0 && one_in(40))
            p->value[1].real = one_in(2) ? (double)NAN : (double)INFINITY;
        p->value[3].real = one_in(4) ? pick(4) : unit();
        p->value[2].bytes = texts[pick(7)];
        p->value[2].n_bytes = (int64_t)strlen(p->value[2].bytes);
    }
}

/* Adds the pairs first .. first + n - 1. The columns given to
 * oj_aggregates_add() hold the features of these pairs in reverse order. */
static oj_status add_pairs(struct oj_aggregates *a, int first, int n,
                           struct oj_error *err)
{
    static int64_t row[MOST_PAIRS], fid[MOST_PAIRS], place[MOST_PAIRS];
    static int64_t integer[MOST_PAIRS];
    static double real[MOST_PAIRS], share[MOST_PAIRS], of_pair[MOST_PAIRS];
    static struct oj_aggregate_bytes bytes[MOST_PAIRS];
    static uint8_t is_null[COLUMNS][MOST_PAIRS];
    static int32_t at[MOST_PAIRS];
    struct oj_aggregate_column columns[COLUMNS] = {{.integer = integer},
                                                   {.real = real},
                                                   {.bytes = bytes},
                                                   {.real = of_pair}};
    const struct oj_aggregate_pairs block = {n,   row,   at,   columns,
                                             fid, place, share};
    for (int i = 0; i < n; i++)
    {
        const struct aggregated_pair *p = &pairs[first + i];
        const int k = n - 1 - i;
        row[i] = p->row;
        at[i] = k;
        share[i] = p->share;
        fid[k] = p->fid;
        place[k] = p->place;
        integer[k] = p->value[0].integer;
        real[k] = p->value[1].real;
        bytes[k].bytes = p->value[2].bytes;
        bytes[k].n = p->value[2].n_bytes;
        of_pair[i] = p->value[3].real;
        for (int c = 0; c < COLUMNS; c++)
        {
            is_null[c][c == 3 ? i : k] = (uint8_t)p->value[c].is_null;
            if (p->value[c].is_null)
                columns[c].is_null = is_null[c];
        }
    }
    return oj_aggregates_add(a, &block, err);
}

/* Adds all pairs, in blocks of random length. */
static oj_status add_all_pairs(struct oj_aggregates *a, struct oj_error *err)
{
    for (int first = 0; first < n_pairs;)
    {
        const int n = pick(4) == 0 ? pick(2) : pick(n_pairs - first + 1);
        OJ_TRY(add_pairs(a, first, n, err));
        first += n;
    }
    return OJ_OK;
}

/* ---- the plain way ------------------------------------------------------ */

static struct aggregated_pair *mine[MOST_PAIRS];

static int by_place(const void *a, const void *b)
{
    const struct aggregated_pair *u = *(struct aggregated_pair *const *)a;
    const struct aggregated_pair *v = *(struct aggregated_pair *const *)b;
    if (u->fid != v->fid)
        return u->fid < v->fid ? -1 : 1;
    return u->place < v->place ? -1 : 1;
}

static int compare(int c, const struct oj_aggregate_value *a,
                   const struct oj_aggregate_value *b)
{
    if (c == 0)
        return (a->integer > b->integer) - (a->integer < b->integer);
    if (c == 2)
        return strcmp(a->bytes, b->bytes);
    if (isnan(a->real) || isnan(b->real))
        return isnan(a->real) - isnan(b->real);
    return (a->real > b->real) - (a->real < b->real);
}

static int column;

static int by_value(const void *a, const void *b)
{
    const struct aggregated_pair *u = *(struct aggregated_pair *const *)a;
    const struct aggregated_pair *v = *(struct aggregated_pair *const *)b;
    int by = compare(column, &u->value[column], &v->value[column]);
    return by != 0 ? by : by_place(a, b);
}

static int select_pairs(int64_t row, int c, int is_sorted)
{
    int n = 0;
    column = c;
    for (int i = 0; i < n_pairs; i++)
    {
        if (pairs[i].row == row && !pairs[i].value[c].is_null)
            mine[n++] = &pairs[i];
    }
    qsort(mine, (size_t)n, sizeof *mine, is_sorted ? by_value : by_place);
    return n;
}

static char joined[MOST_PAIRS * 20];

static double as_real(int c, const struct oj_aggregate_value *value)
{
    return c == 0 ? (double)value->integer : value->real;
}

static double add_up(int c, int n, int what)
{
    struct oj_exact_sum sum = {0}, squares = {0};
    double result;
    for (int i = 0; i < n; i++)
    {
        double x = as_real(c, &mine[i]->value[c]);
        if (what == OJ_AGG_WEIGHTED_SUM)
            must(oj_exact_sum_add(&sum, x * mine[i]->share, NULL));
        else if (c == 0)
        {
            must(oj_exact_sum_add_integer(&sum, mine[i]->value[0].integer,
                                          NULL));
            must(oj_exact_sum_add_integer_square(
                &squares, mine[i]->value[0].integer, NULL));
        }
        else
        {
            must(oj_exact_sum_add(&sum, x, NULL));
            must(oj_exact_sum_add_square(&squares, x, NULL));
        }
    }
    result = what == OJ_AGG_STDDEV ? oj_exact_sum_deviation(&sum, &squares, n)
             : what == OJ_AGG_VARIANCE
                 ? oj_exact_sum_variance(&sum, &squares, n)
                 : oj_exact_sum_value(&sum);
    oj_exact_sum_clear(&sum);
    oj_exact_sum_clear(&squares);
    return what == OJ_AGG_MEAN ? result / n : result;
}

/* Returns the most frequent value of column c, or the least frequent if
 * is_minority is 1.
 */
static struct oj_aggregate_value mode_of(int c, int n, int is_minority,
                                         int64_t *n_unique)
{
    struct oj_aggregate_value best = {0};
    int most = is_minority ? MOST_PAIRS + 1 : 0;
    *n_unique = 0;
    for (int first = 0, end; first < n; first = end)
    {
        for (end = first; end < n && compare(c, &mine[end]->value[c],
                                             &mine[first]->value[c]) == 0;)
            end++;
        ++*n_unique;
        if (is_minority ? end - first < most : end - first > most)
        {
            most = end - first;
            best = mine[first]->value[c];
        }
    }
    return best;
}

static double percentile_of(int c, int n, double percent)
{
    const double at = (n - 1) * (percent / 100.0);
    const int low = (int)at;
    const int high = low + 1 < n ? low + 1 : low;
    const double rest = at - low;
    const double u = as_real(c, &mine[low]->value[c]);
    const double v = as_real(c, &mine[high]->value[c]);
    double step = v - u;
    if (c == 0)
        step = (double)(mine[high]->value[0].integer -
                        mine[low]->value[0].integer);
    if (rest == 0.0 ||
        compare(c, &mine[low]->value[c], &mine[high]->value[c]) == 0)
        return u;
    return rest < 0.5 ? u + step * rest : v - step * (1.0 - rest);
}

static struct oj_exact_factor
factor_of_value(int c, const struct oj_aggregate_value *value)
{
    return (struct oj_exact_factor){value->real, value->integer, c == 0};
}

static struct oj_aggregate_value weighted_mean_of(int c, int w, int n)
{
    static const struct oj_aggregate_value one = {.integer = 1};
    struct oj_aggregate_value result = {0};
    struct oj_exact_sum products = {0}, weights = {0};
    for (int i = 0; i < n; i++)
    {
        const struct oj_aggregate_value *weight = &mine[i]->value[w];
        if (weight->is_null)
            continue;
        must(oj_exact_sum_add_product(&products,
                                      factor_of_value(c, &mine[i]->value[c]),
                                      factor_of_value(w, weight), NULL));
        must(oj_exact_sum_add_product(&weights, factor_of_value(0, &one),
                                      factor_of_value(w, weight), NULL));
    }
    result.is_null = oj_exact_sum_value(&weights) == 0.0;
    result.real = oj_exact_sum_ratio(&products, &weights);
    oj_exact_sum_clear(&products);
    oj_exact_sum_clear(&weights);
    return result;
}

static double median_of(int c, int n)
{
    const struct oj_aggregate_value *u = &mine[(n - 1) / 2]->value[c];
    const struct oj_aggregate_value *v = &mine[n / 2]->value[c];
    if (c == 0)
        return ((double)u->integer + (double)v->integer) / 2.0;
    if (compare(c, u, v) == 0)
        return u->real;
    return isinf(u->real + v->real) ? u->real / 2 + v->real / 2
                                    : (u->real + v->real) / 2;
}

static struct oj_aggregate_value
plain_aggregate(const struct oj_aggregate *what, int64_t row)
{
    struct oj_aggregate_value result = {0}, mode;
    int c = what->column, n = 0;
    int64_t n_unique;
    char *at = joined;
    for (int i = 0; i < n_pairs; i++)
        n += pairs[i].row == row;
    result.integer = n;
    if (what->kind == OJ_AGG_COUNT)
        return result;
    n = select_pairs(row, c,
                     what->kind != OJ_AGG_FIRST && what->kind != OJ_AGG_LAST &&
                         what->kind != OJ_AGG_CONCAT);
    result.integer = n;
    if (what->kind == OJ_AGG_COUNT_VALUES)
        return result;
    mode = mode_of(c, n, what->kind == OJ_AGG_MINORITY, &n_unique);
    result.integer = n_unique;
    if (what->kind == OJ_AGG_UNIQUE)
        return result;
    result.is_null =
        n == 0 ||
        ((what->kind == OJ_AGG_STDDEV || what->kind == OJ_AGG_VARIANCE) &&
         n < 2);
    if (result.is_null)
        return result;
    switch (what->kind)
    {
        case OJ_AGG_MIN:
        case OJ_AGG_FIRST:
            return mine[0]->value[c];
        case OJ_AGG_MAX:
        case OJ_AGG_LAST:
            return mine[n - 1]->value[c];
        case OJ_AGG_MODE:
        case OJ_AGG_MINORITY:
            return mode;
        case OJ_AGG_PERCENTILE:
            result.real = percentile_of(c, n, what->percent);
            return result;
        case OJ_AGG_RANGE:
            result.integer =
                mine[n - 1]->value[c].integer - mine[0]->value[c].integer;
            result.real = mine[n - 1]->value[c].real - mine[0]->value[c].real;
            return result;
        case OJ_AGG_WEIGHTED_MEAN:
            return weighted_mean_of(c, what->weight, n);
        case OJ_AGG_MEDIAN:
            result.real = median_of(c, n);
            return result;
        case OJ_AGG_CONCAT:
            for (int i = 0; i < n; i++)
                at += sprintf(at, "%s%s", i > 0 ? what->separator : "",
                              mine[i]->value[c].bytes);
            result.bytes = joined;
            result.n_bytes = at - joined;
            return result;
        default:
            result.real = add_up(c, n, (int)what->kind);
            if (what->kind == OJ_AGG_SUM && c == 0)
            {
                result.integer = 0;
                for (int i = 0; i < n; i++)
                    result.integer += mine[i]->value[0].integer;
            }
            return result;
    }
}

/* ---- both ways ---------------------------------------------------------- */

static int is_same(enum oj_aggregate_type type,
                   const struct oj_aggregate_value *a,
                   const struct oj_aggregate_value *b)
{
    if (a->is_null || b->is_null)
        return a->is_null == b->is_null;
    if (type == OJ_AGG_INTEGER)
        return a->integer == b->integer;
    if (type == OJ_AGG_REAL)
        return a->real == b->real || (isnan(a->real) && isnan(b->real));
    return a->n_bytes == b->n_bytes &&
           memcmp(a->bytes, b->bytes, (size_t)a->n_bytes) == 0;
}

#endif
