#include "bench_sums.h"

#include "bench_gpu.h"
#include "nycgen.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Number of pairs that are added in one call. */
#define BLOCK_PAIRS 4096

static const struct oj_aggregate aggregates_asked[] = {
    {OJ_AGG_COUNT, 0, NULL, 0, 0.0},
    {OJ_AGG_SUM, 0, NULL, 0, 0.0},
    {OJ_AGG_MEAN, 0, NULL, 0, 0.0},
    {OJ_AGG_SUM, 1, NULL, 0, 0.0}};
static const enum oj_aggregate_type types[BENCH_VALUE_COLUMNS] = {
    OJ_AGG_REAL, OJ_AGG_INTEGER};

enum
{
    N_ASKED = 4
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- values --------------------------------------------------------------- */

oj_status bench_values_make(int64_t n, struct bench_values *values,
                            struct oj_error *err)
{
    OJ_NEW(values->real, n, err);
    OJ_NEW(values->is_null, n, err);
    OJ_NEW(values->integer, n, err);
    for (int64_t i = 0; i < n; i++)
    {
        const uint64_t h = nyc_hash(1, 77, (uint64_t)i);
        values->real[i] = (double)(h % 20000) / 100.0;
        values->is_null[i] = (h >> 32) % 20 == 0;
        values->integer[i] = (int64_t)((h >> 40) % 1000) - 100;
    }
    values->column[0].real = values->real;
    values->column[0].is_null = values->is_null;
    values->column[1].integer = values->integer;
    return OJ_OK;
}

void bench_values_free(struct bench_values *values)
{
    oj_free(values->real);
    oj_free(values->is_null);
    oj_free(values->integer);
    memset(values, 0, sizeof *values);
}

static oj_status pin_values(const struct bench_values *values, int64_t n,
                            struct oj_error *err)
{
    OJ_TRY(bench_pin_array(values->real, n, sizeof *values->real, err));
    OJ_TRY(bench_pin_array(values->is_null, n, sizeof *values->is_null, err));
    return bench_pin_array(values->integer, n, sizeof *values->integer, err);
}

oj_status bench_sums_open(int64_t n_rows, struct oj_aggregates **out,
                          struct oj_error *err)
{
    const struct oj_aggregate_plan plan = {
        aggregates_asked, N_ASKED, types, BENCH_VALUE_COLUMNS, 0, NULL, NULL};
    OJ_TRY(oj_aggregates_open(&plan, out, err));
    return oj_aggregates_reset(*out, n_rows, err);
}

oj_status bench_sums_print(struct oj_aggregates *aggregates, int64_t n_rows,
                           struct oj_error *err)
{
    uint64_t checksum = 0;
    int64_t n_pairs = 0;
    OJ_TRY(oj_aggregates_rewind(aggregates, err));
    for (int64_t row = 0; row < n_rows; row++)
    {
        n_pairs += oj_aggregates_pair_count(aggregates, row);
        for (int i = 0; i < N_ASKED; i++)
        {
            struct oj_aggregate_value value = {0};
            uint64_t bits;
            OJ_TRY(oj_aggregates_result(aggregates, row, i, &value, err));
            memcpy(&bits, &value.real, sizeof bits);
            bits ^= (uint64_t)value.integer;
            if (!value.is_null)
                checksum +=
                    nyc_mix(nyc_mix((uint64_t)(row * N_ASKED + i)) ^ bits);
        }
    }
    printf("ANSWER pairs=%" PRId64 " checksum=%016" PRIx64 "\n", n_pairs,
           checksum);
    return OJ_OK;
}

/* --- one run -------------------------------------------------------------- */

struct summing
{
    const struct bench_sums_options *how;
    const struct oj_flat *join_side;
    const struct bench_values *values;
    struct oj_join *join;
    struct oj_aggregates *aggregates;
    struct oj_aggregates *sums;
    struct oj_matches matches;
    double index_s, join_s, add_s;
    int64_t n_unmade;
};

/* Makes the columns of values for the rows from `first` on. */
static void columns_from(const struct bench_values *values, int64_t first,
                         struct oj_aggregate_column *column)
{
    column[0] = values->column[0];
    column[1] = values->column[1];
    column[0].real += first;
    column[0].is_null += first;
    column[1].integer += first;
}

static oj_status add_pairs(struct summing *s,
                           const struct oj_aggregate_column *column,
                           struct oj_error *err)
{
    static int64_t row[BLOCK_PAIRS];
    static int32_t at[BLOCK_PAIRS];
    struct oj_aggregate_pairs pairs = {.row = row, .at = at, .columns = column};
    const struct oj_matches *m = &s->matches;
    for (int64_t i = 0; i < m->n_rows; i++)
    {
        const int64_t end = oj_matches_end(m, i);
        int64_t p = oj_matches_first(m, i);
        for (;;)
        {
            if (pairs.n == BLOCK_PAIRS)
            {
                OJ_TRY(oj_aggregates_add(s->aggregates, &pairs, err));
                pairs.n = 0;
            }
            if (p >= end)
                break;
            row[pairs.n] = m->join_row[p++];
            at[pairs.n++] = (int32_t)i;
        }
    }
    return oj_aggregates_add(s->aggregates, &pairs, err);
}

static oj_status sum_batch(struct summing *s, const struct oj_flat *rows,
                           int64_t first, struct oj_error *err)
{
    struct oj_aggregate_column column[BENCH_VALUE_COLUMNS];
    const double start = now_s();
    oj_status status = OJ_ERR_UNSUPPORTED;
    int64_t n_pairs = 0;
    double joined;
    columns_from(s->values, first, column);
    if (!s->how->only_pairs)
        status =
            oj_join_sum_pairs(s->join, rows, column, s->sums, &n_pairs, err);
    if (status != OJ_ERR_UNSUPPORTED)
    {
        s->join_s += now_s() - start;
        return status;
    }
    OJ_TRY(oj_join_batch(s->join, rows, &s->matches, err));
    joined = now_s();
    s->join_s += joined - start;
    OJ_TRY(add_pairs(s, column, err));
    s->add_s += now_s() - joined;
    return OJ_OK;
}

static oj_status measure_run(struct summing *s, const struct oj_flat *input,
                             struct oj_error *err)
{
    const struct bench_sums_options *how = s->how;
    const int64_t n = s->join_side->n_features;
    struct oj_relation relation = *how->relation;
    struct oj_flat_slice rows = {0};
    double start = now_s();
    oj_status status;
    relation.any_order = 1;
    OJ_TRY(oj_join_open(s->join_side, &relation, how->backend, how->options,
                        &s->join, err));
    s->index_s = now_s() - start;
    OJ_TRY(bench_sums_open(n, &s->aggregates, err));
    OJ_TRY(bench_sums_open(n, &s->sums, err));
    for (int64_t first = 0; first < input->n_features; first += how->batch)
    {
        const int64_t left = input->n_features - first;
        status = oj_flat_slice_make(
            input, first, left < how->batch ? left : how->batch, &rows, err);
        if (status == OJ_OK)
            status = sum_batch(s, &rows.flat, first, err);
        if (status != OJ_OK)
        {
            oj_flat_slice_free(&rows);
            return status;
        }
    }
    oj_flat_slice_free(&rows);
    start = now_s();
    OJ_TRY(oj_aggregates_merge(s->aggregates, s->sums, err));
    s->add_s += now_s() - start;
    s->n_unmade = oj_join_stats(s->join)->n_pairs_not_stored;
    return OJ_OK;
}

static void free_run(struct summing *s)
{
    oj_aggregates_close(s->sums);
    oj_aggregates_close(s->aggregates);
    oj_matches_free(&s->matches);
    oj_join_close(s->join);
    memset(s, 0, sizeof *s);
}

static oj_status run_all(const struct bench_sums_options *options,
                         const struct oj_flat *input,
                         const struct oj_flat *join_side,
                         const struct bench_values *values,
                         struct oj_error *err)
{
    double least[4] = {0};
    for (int64_t i = 0; i < options->n_repeats; i++)
    {
        struct summing s = {
            .how = options, .join_side = join_side, .values = values};
        oj_status status = measure_run(&s, input, err);
        const double total = s.index_s + s.join_s + s.add_s;
        if (i == 0 || total < least[3])
        {
            least[0] = s.index_s;
            least[1] = s.join_s;
            least[2] = s.add_s;
            least[3] = total;
        }
        if (status == OJ_OK && i + 1 == options->n_repeats)
        {
            printf("SUMS backend=%s way=%s n=%" PRId64
                   " index_ms=%.3f join_ms=%.3f add_ms=%.3f total_ms=%.3f\n",
                   oj_join_backend(s.join)->name,
                   s.n_unmade > 0 ? "without_pairs" : "pairs",
                   input->n_features, 1e3 * least[0], 1e3 * least[1],
                   1e3 * least[2], 1e3 * least[3]);
            status = bench_sums_print(s.aggregates, join_side->n_features, err);
        }
        free_run(&s);
        OJ_TRY(status);
    }
    return OJ_OK;
}

oj_status bench_sums(const struct bench_sums_options *options,
                     const struct oj_flat *input,
                     const struct oj_flat *join_side, struct oj_error *err)
{
    struct bench_values values = {0};
    oj_status status = bench_values_make(input->n_features, &values, err);
    if (status == OJ_OK && options->pinned)
        status = pin_values(&values, input->n_features, err);
    if (status == OJ_OK && options->pinned)
        status =
            bench_pin_array(input->x, input->n_features, sizeof *input->x, err);
    if (status == OJ_OK && options->pinned)
        status =
            bench_pin_array(input->y, input->n_features, sizeof *input->y, err);
    if (status == OJ_OK)
        status = run_all(options, input, join_side, &values, err);
    if (!options->pinned) /* pinned values remain until the program ends */
        bench_values_free(&values);
    return status;
}
