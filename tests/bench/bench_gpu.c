#include "bench_gpu.h"
#include "../../flatten/base/oj_compare.h"

#include "../gpu/gpu_resident.h"
#include "bench_sums.h"
#include "nycgen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Arrays on the device, for a measurement. */
struct resident
{
    const struct oj_gpu_module *module;
    const struct gpu_resident *on_device;
    struct oj_gpu_index *index;
    int64_t n, n_join;
    void *x, *y, *fid, *row, *measure, *count;
    void *words, *value[BENCH_VALUE_COLUMNS], *is_null[BENCH_VALUE_COLUMNS];
    int sums;        /* 1: also sums values */
    double *seconds; /* [n_repeats] */
    int64_t n_repeats;
};

static void print_phase(struct resident *r, const char *phase)
{
    double first = r->seconds[0];
    qsort(r->seconds, (size_t)r->n_repeats, sizeof *r->seconds,
          oj_compare_doubles);
    printf("RESIDENT phase=%s first_ms=%.3f least_ms=%.3f middle_ms=%.3f\n",
           phase, 1e3 * first, 1e3 * r->seconds[0],
           1e3 * r->seconds[r->n_repeats / 2]);
    fflush(stdout);
}

static oj_status allocate(struct resident *r, int64_t n, size_t size,
                          void **out, struct oj_error *err)
{
    return r->on_device->allocate(r->index, n * (int64_t)size, out, err);
}

static oj_status load(struct resident *r, const struct oj_flat *input,
                      struct oj_error *err)
{
    const int64_t bytes = r->n * (int64_t)sizeof(double);
    OJ_TRY(allocate(r, r->n, sizeof(double), &r->x, err));
    OJ_TRY(allocate(r, r->n, sizeof(double), &r->y, err));
    OJ_TRY(allocate(r, r->n, sizeof(double), &r->measure, err));
    OJ_TRY(allocate(r, r->n, sizeof(int32_t), &r->row, err));
    if (input->fid != NULL)
    {
        OJ_TRY(allocate(r, r->n, sizeof(int64_t), &r->fid, err));
        OJ_TRY(r->on_device->copy(r->index, r->fid, input->fid,
                                  r->n * (int64_t)sizeof(int64_t), err));
    }
    OJ_TRY(r->on_device->copy(r->index, r->x, input->x, bytes, err));
    return r->on_device->copy(r->index, r->y, input->y, bytes, err);
}

static struct oj_gpu_points points_of(const struct resident *r)
{
    return (struct oj_gpu_points){r->n, r->x, r->y, r->fid, 1};
}

/* Measures the seconds of the whole preparation, and of its first part, the
 * sorting. */
static oj_status run_index(struct resident *r, struct oj_error *err)
{
    double order_s = 0.0;
    for (int64_t i = 0; i < r->n_repeats; i++)
    {
        double seconds[2];
        OJ_TRY(r->on_device->rebuild(r->index, seconds, err));
        r->seconds[i] = seconds[0] + seconds[1];
        order_s = i == 0 || seconds[0] < order_s ? seconds[0] : order_s;
    }
    print_phase(r, "index");
    printf("RESIDENT phase=index_order least_ms=%.3f\n", 1e3 * order_s);
    return OJ_OK;
}

/* Joins with one answer per point. */
static oj_status run_one(struct resident *r, struct oj_matches *matches,
                         struct oj_error *err)
{
    const struct oj_gpu_points points = points_of(r);
    for (int64_t i = 0; i < r->n_repeats; i++)
        OJ_TRY(r->on_device->join(r->index, &points, r->row, r->measure,
                                  &r->seconds[i], err));
    print_phase(r, "query");
    for (int64_t i = 0; i < r->n_repeats; i++)
        OJ_TRY(r->on_device->join(r->index, &points, r->row, NULL,
                                  &r->seconds[i], err));
    print_phase(r, "query_without_distance");
    OJ_TRY(oj_matches_reserve(matches, r->n, r->n, 0, err));
    OJ_TRY(r->on_device->copy(r->index, matches->join_row, r->row,
                              r->n * (int64_t)sizeof *matches->join_row, err));
    return r->on_device->copy(r->index, matches->measure, r->measure,
                              r->n * (int64_t)sizeof *matches->measure, err);
}

static oj_status run_lists(struct resident *r, struct oj_error *err)
{
    const struct oj_gpu_points points = points_of(r);
    int64_t n_pairs = 0;
    for (int64_t i = 0; i < r->n_repeats; i++)
        OJ_TRY(r->on_device->pairs(r->index, &points, &n_pairs, &r->seconds[i],
                                   err));
    print_phase(r, "query");
    printf("PAIRS pairs=%" PRId64 "\n", n_pairs);
    return OJ_OK;
}

/* Counts the pairs of each join feature. The counts are set to 0 before each
 * repeat, because a run adds to them. */
static oj_status run_counts(struct resident *r, struct oj_error *err)
{
    const struct oj_gpu_points points = points_of(r);
    const struct oj_sum_request only = {.n_words = 1};
    const int64_t bytes = r->n_join * (int64_t)sizeof(int64_t);
    int64_t *count = oj_calloc(r->n_join, sizeof *count);
    oj_status status;
    int64_t sum = 0;
    uint64_t checksum = 0;
    if (count == NULL)
        return oj_fail_nomem(err, r->n_join, sizeof *count);
    status = allocate(r, r->n_join, sizeof *count, &r->count, err);
    for (int64_t i = 0; status == OJ_OK && i < r->n_repeats; i++)
    {
        memset(count, 0, (size_t)bytes);
        status = r->on_device->copy(r->index, r->count, count, bytes, err);
        if (status == OJ_OK)
            status = r->on_device->sum(r->index, &points, &only, r->count,
                                       &r->seconds[i], err);
    }
    if (status == OJ_OK)
        status = r->on_device->copy(r->index, count, r->count, bytes, err);
    if (status == OJ_OK)
        print_phase(r, "count");
    for (int64_t i = 0; i < r->n_join; i++)
    {
        sum += count[i];
        checksum +=
            (uint64_t)count[i] * nyc_mix((uint64_t)i + 0x9E3779B97F4A7C15u);
    }
    if (status == OJ_OK)
        printf("COUNTS pairs=%" PRId64 " checksum=%016" PRIx64 "\n", sum,
               checksum);
    oj_free(count);
    return status;
}

/* Copies columns of values to the device, and allocates the words of their
 * sums. */
static oj_status load_values(struct resident *r, struct oj_sum_request *request,
                             struct oj_error *err)
{
    for (int c = 0; c < request->n_columns; c++)
    {
        struct oj_sum_column *column = &request->column[c];
        OJ_TRY(allocate(r, r->n, 8, &r->value[c], err));
        OJ_TRY(r->on_device->copy(r->index, r->value[c], column->value,
                                  8 * r->n, err));
        column->value = r->value[c];
        if (column->is_null == NULL)
            continue;
        OJ_TRY(allocate(r, r->n, 1, &r->is_null[c], err));
        OJ_TRY(r->on_device->copy(r->index, r->is_null[c], column->is_null,
                                  r->n, err));
        column->is_null = r->is_null[c];
    }
    return OJ_OK;
}

static oj_status sum_values(struct resident *r,
                            const struct bench_values *values,
                            struct oj_aggregates *sums, struct oj_error *err)
{
    const struct oj_gpu_points points = points_of(r);
    struct oj_sum_request request;
    int64_t bytes, *words;
    OJ_TRY(oj_aggregates_plan_sums(sums, values->column, r->n, 0, &request,
                                   &words, err));
    OJ_TRY(load_values(r, &request, err));
    OJ_TRY(allocate(r, r->n_join * request.n_words, sizeof(int64_t), &r->words,
                    err));
    bytes = r->n_join * request.n_words * (int64_t)sizeof(int64_t);
    for (int64_t i = 0; i < r->n_repeats; i++)
    {
        OJ_TRY(r->on_device->copy(r->index, r->words, words, bytes, err));
        OJ_TRY(r->on_device->sum(r->index, &points, &request, r->words,
                                 &r->seconds[i], err));
    }
    print_phase(r, "sums");
    OJ_TRY(r->on_device->copy(r->index, words, r->words, bytes, err));
    return oj_aggregates_add_sums(sums, &request, err);
}

static oj_status run_sums(struct resident *r, struct oj_error *err)
{
    struct bench_values values = {0};
    struct oj_aggregates *aggregates = NULL;
    oj_status status = bench_values_make(r->n, &values, err);
    if (status == OJ_OK)
        status = bench_sums_open(r->n_join, &aggregates, err);
    if (status == OJ_OK)
        status = sum_values(r, &values, aggregates, err);
    if (status == OJ_OK)
        status = bench_sums_print(aggregates, r->n_join, err);
    oj_aggregates_close(aggregates);
    bench_values_free(&values);
    return status;
}

static void free_resident(struct resident *r)
{
    void *const memory[] = {r->x,          r->y,         r->fid,
                            r->row,        r->measure,   r->count,
                            r->words,      r->value[0],  r->value[1],
                            r->is_null[0], r->is_null[1]};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
    {
        if (memory[i] != NULL)
            r->on_device->release(r->index, memory[i]);
    }
    if (r->index != NULL)
        r->module->free_index(r->index);
    oj_free(r->seconds);
}

static oj_status run(struct resident *r, const struct oj_flat *input,
                     const struct oj_flat *join_side,
                     const struct oj_relation *relation,
                     const struct oj_options *options,
                     struct oj_matches *matches, struct oj_error *err)
{
    struct oj_stats stats = {0};
    oj_status status;
    OJ_TRY(oj_gpu_load(&r->module, err));
    OJ_TRY(gpu_resident_find(&r->on_device, err));
    OJ_TRY(r->module->index(join_side, NULL, relation, options, &r->index,
                            &stats, err));
    printf("INDEX mb=%.1f method=%s\n", (double)stats.index_bytes / 1048576,
           r->module->method(r->index, relation, join_side, NULL));
    OJ_TRY(load(r, input, err));
    OJ_TRY(run_index(r, err));
    if (!oj_relation_allows_many_pairs(relation))
        OJ_TRY(run_one(r, matches, err));
    else
        OJ_TRY(run_lists(r, err));
    status = run_counts(r, err);
    if (status == OJ_ERR_UNSUPPORTED)
        return OJ_OK;
    return status == OJ_OK && r->sums ? run_sums(r, err) : status;
}

oj_status bench_resident(const struct oj_flat *input,
                         const struct oj_flat *join_side,
                         const struct oj_relation *relation,
                         const struct oj_options *options, int64_t n_repeats,
                         int sums, struct bench_answer *answer,
                         struct oj_error *err)
{
    struct oj_matches matches = {0};
    struct resident r = {.n = input->n_features,
                         .n_join = join_side->n_features,
                         .n_repeats = n_repeats,
                         .sums = sums};
    oj_status status = OJ_OK;
    if (!oj_flat_is_points(input))
        return oj_fail(err, OJ_ERR_ARG, "--resident is for points as input");
    r.seconds = oj_calloc(n_repeats, sizeof *r.seconds);
    if (r.seconds == NULL)
        return oj_fail_nomem(err, n_repeats, sizeof *r.seconds);
    status = run(&r, input, join_side, relation, options, &matches, err);
    free_resident(&r);
    if (status == OJ_OK && matches.n_rows > 0)
        bench_answer_add(answer, &matches, 0, input, join_side);
    oj_matches_free(&matches);
    return status;
}

oj_status bench_pin_array(const void *array, int64_t n, size_t size,
                          struct oj_error *err)
{
    const struct gpu_resident *on_device;
    OJ_TRY(gpu_resident_find(&on_device, err));
    if (array == NULL || n == 0)
        return OJ_OK;
    return on_device->pin(array, n * (int64_t)size, err);
}

oj_status bench_pin(const struct oj_flat *input,
                    const struct oj_flat *join_side,
                    const struct oj_matches *matches, struct oj_error *err)
{
    const struct oj_flat *const sides[] = {input, join_side};
    for (int i = 0; i < 2; i++)
    {
        const struct oj_flat *flat = sides[i];
        OJ_TRY(
            bench_pin_array(flat->x, flat->n_vertices, sizeof *flat->x, err));
        OJ_TRY(
            bench_pin_array(flat->y, flat->n_vertices, sizeof *flat->y, err));
        if (oj_flat_is_points(flat))
            continue;
        OJ_TRY(bench_pin_array(flat->vertex_offset, flat->n_rings + 1,
                               sizeof *flat->vertex_offset, err));
        OJ_TRY(bench_pin_array(flat->ring_offset, flat->n_parts + 1,
                               sizeof *flat->ring_offset, err));
        OJ_TRY(bench_pin_array(flat->part_offset, flat->n_features + 1,
                               sizeof *flat->part_offset, err));
    }
    OJ_TRY(bench_pin_array(matches->join_row, matches->n_entries,
                           sizeof *matches->join_row, err));
    return bench_pin_array(matches->measure, matches->n_entries,
                           sizeof *matches->measure, err);
}

uint64_t bench_gpu_list(const char *text)
{
    uint64_t gpus = 0;
    if (strcmp(text, "all") == 0)
        return OJ_ALL_GPUS;
    while (*text != '\0')
    {
        char *end;
        const long i = strtol(text, &end, 10);
        if (end == text || i < 0 || i >= OJ_GPU_MAX_DEVICES)
        {
            fprintf(stderr, "oj_bench: --gpu takes all, or numbers as 0,2\n");
            exit(1);
        }
        gpus |= (uint64_t)1 << i;
        text = *end == ',' ? end + 1 : end;
    }
    return gpus;
}
