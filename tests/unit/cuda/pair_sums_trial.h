/** Compares sums of values by a backend with sums over its pairs. Include once,
 * after references.h. */
#ifndef PAIR_SUMS_TRIAL_H
#define PAIR_SUMS_TRIAL_H

#include "../../../algs/foundations/aggregate/oj_aggregate.h"
#include "../../../algs/foundations/aggregate/oj_sum_request.h"

#include "../join_trial.h"

/* Values of every size; some are NULL. */
enum
{
    N_COLUMNS = 3
};

struct value_columns
{
    double *real;
    int64_t *integer;
    uint8_t *is_null;
    struct oj_aggregate_column column[N_COLUMNS];
};

static const enum oj_aggregate_type column_types[N_COLUMNS] = {
    OJ_AGG_REAL, OJ_AGG_INTEGER, OJ_AGG_REAL};

static void make_columns(int64_t n, struct value_columns *columns)
{
    static const double odd[] = {(double)NAN, (double)INFINITY, -0.0};
    const int wide = one_in(4), odds = one_in(4), large = one_in(2);
    columns->real = oj_calloc(n + 1, sizeof *columns->real);
    columns->integer = oj_calloc(n + 1, sizeof *columns->integer);
    columns->is_null = oj_calloc(n + 1, 1);
    ck_assert(columns->real != NULL && columns->integer != NULL &&
              columns->is_null != NULL);
    for (int64_t i = 0; i < n; i++)
    {
        columns->real[i] =
            wide ? any_size(-1074, 1023) : floor(2e4 * unit()) / 100.0;
        if (odds && one_in(100))
            columns->real[i] = odd[pick(3)];
        columns->integer[i] =
            large ? (int64_t)random_bits() : (int64_t)pick(2000) - 1000;
        columns->is_null[i] = (uint8_t)one_in(5);
    }
    memset(columns->column, 0, sizeof columns->column);
    columns->column[0].real = columns->column[2].real = columns->real;
    columns->column[1].integer = columns->integer;
    columns->column[0].is_null = columns->is_null;
}

static void free_columns(struct value_columns *columns)
{
    oj_free(columns->real);
    oj_free(columns->integer);
    oj_free(columns->is_null);
}

/* Adds the pairs of truth n times. */
static void add_pairs(const struct oj_matches *truth,
                      const struct value_columns *columns, int n,
                      struct oj_aggregates *to)
{
    int64_t *feature = oj_calloc(truth->n_pairs + 1, sizeof *feature);
    int32_t *at = oj_calloc(truth->n_pairs + 1, sizeof *at);
    struct oj_aggregate_pairs pairs = {0};
    int64_t n_pairs = 0;
    ck_assert(feature != NULL && at != NULL);
    for (int64_t row = 0; row < truth->n_rows; row++)
    {
        const int64_t end = oj_matches_end(truth, row);
        for (int64_t i = oj_matches_first(truth, row); i < end; i++)
        {
            feature[n_pairs] = truth->join_row[i];
            at[n_pairs++] = (int32_t)row;
        }
    }
    pairs.n = n_pairs;
    pairs.row = feature;
    pairs.at = at;
    pairs.columns = columns->column;
    for (int k = 0; k < n; k++)
        must(oj_aggregates_add(to, &pairs, &error));
    oj_free(feature);
    oj_free(at);
}

static void same_sums(struct oj_aggregates *ours, struct oj_aggregates *truth,
                      int64_t n, int n_aggregates)
{
    must(oj_aggregates_rewind(ours, &error));
    must(oj_aggregates_rewind(truth, &error));
    for (int64_t f = 0; f < n; f++)
    {
        ck_assert_int_eq(oj_aggregates_pair_count(ours, f),
                         oj_aggregates_pair_count(truth, f));
        for (int i = 0; i < n_aggregates; i++)
        {
            struct oj_aggregate_value a = {0}, b = {0};
            oj_status status = oj_aggregates_result(ours, f, i, &a, &error);
            ck_assert_int_eq(oj_aggregates_result(truth, f, i, &b, &error),
                             status);
            ck_assert_msg(
                status != OJ_OK ||
                    (a.is_null == b.is_null && a.integer == b.integer &&
                     (memcmp(&a.real, &b.real, sizeof a.real) == 0 ||
                      (a.real != a.real && b.real != b.real))),
                "seed %llu: aggregate %d of %lld: %a, not %a",
                (unsigned long long)seed, i, (long long)f, a.real, b.real);
        }
    }
}

/* Compares the sums of a backend with those over the pairs `truth` of input.
 * Returns the number of batches for which the backend gave sums. */
static int try_sums(struct oj_join *join, const struct oj_flat *input,
                    int64_t n, const struct oj_matches *truth)
{
    static const struct oj_aggregate aggregates[] = {
        {OJ_AGG_COUNT, 0, NULL, 0, 0.0}, {OJ_AGG_COUNT_VALUES, 0, NULL, 0, 0.0},
        {OJ_AGG_SUM, 0, NULL, 0, 0.0},   {OJ_AGG_SUM, 1, NULL, 0, 0.0},
        {OJ_AGG_MEAN, 1, NULL, 0, 0.0},  {OJ_AGG_MEAN, 2, NULL, 0, 0.0}};
    const struct oj_aggregate_plan plan = {
        aggregates, 6, column_types, N_COLUMNS, 0, NULL, NULL};
    struct oj_aggregates *ours = NULL, *expected = NULL;
    struct value_columns columns;
    int n_turns = 0;
    int64_t n_pairs = 0;
    make_columns(input->n_features, &columns);
    must(oj_aggregates_open(&plan, &ours, &error));
    must(oj_aggregates_open(&plan, &expected, &error));
    must(oj_aggregates_reset(ours, n, &error));
    must(oj_aggregates_reset(expected, n, &error));
    for (; n_turns < 2; n_turns++)
    {
        oj_status status = oj_join_sum_pairs(join, input, columns.column, ours,
                                             &n_pairs, &error);
        if (status == OJ_ERR_UNSUPPORTED)
            break;
        must(status);
        ck_assert_int_eq(n_pairs, truth->n_pairs);
    }
    add_pairs(truth, &columns, n_turns, expected);
    same_sums(ours, expected, n, 6);
    oj_aggregates_close(ours);
    oj_aggregates_close(expected);
    free_columns(&columns);
    return n_turns;
}

#endif
