/* The backends cuda and auto with a module that is missing, broken, or fake:
 * what they say, and who answers. Each test is a process of its own, since a
 * module is loaded once. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr() */
#endif

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../algs/engine/oj_join.h"

#include "../../../algs/aggregate/oj_aggregate.h"
#include "../../../algs/base/oj_exact_sum.h"
#include "../../../algs/relation/oj_gpu.h"
#include "../references.h"
#include "../run_tests.h"

static struct oj_flat_buf join_side, points, lines;

static void make_layers(void)
{
    for (int i = 0; i < 40; i++)
        add_point(&join_side, (i * 7) % 40, (i * 11) % 17);
    for (int i = 0; i < 500; i++)
        add_point(&points, (i * 13) % 41 + 0.25, (i * 5) % 19);
    for (int i = 0; i < 10; i++)
        add_line(&lines, i, 0, i + 1, 3);
}

static void free_layers(void)
{
    oj_flat_buf_free(&join_side);
    oj_flat_buf_free(&points);
    oj_flat_buf_free(&lines);
}

static struct oj_join *open_join(const char *backend, int64_t n_expected,
                                 uint64_t gpus, oj_status expected)
{
    static struct oj_flat view;
    struct oj_relation relation = oj_relation_default();
    struct oj_options options = {
        .n_threads = 1, .n_expected = n_expected, .gpus = gpus};
    struct oj_join *join = NULL;
    oj_status status;
    view = oj_flat_buf_view(&join_side);
    relation.max_distance = 3.0;
    status = oj_join_open(&view, &relation, backend, &options, &join, &error);
    ck_assert_msg(status == expected, "%s: %s", oj_status_name(status),
                  error.message);
    return join;
}

static void says(const char *text)
{
    ck_assert_msg(strstr(error.message, text) != NULL, "\"%s\" has no \"%s\"",
                  error.message, text);
}

/* The answers of join for a layer are those of the backend cpu. */
static void same_as_cpu(struct oj_join *join, const struct oj_flat_buf *layer)
{
    const struct oj_flat input = oj_flat_buf_view(layer);
    struct oj_join *cpu = open_join("cpu", 0, 0, OJ_OK);
    MATCHES a = {0}, b = {0};
    must(oj_join_batch(join, &input, &a, &error));
    must(oj_join_batch(cpu, &input, &b, &error));
    ck_assert_int_eq(a.n_rows, b.n_rows);
    ck_assert_int_eq(a.n_matched, b.n_matched);
    ck_assert_int_gt(a.n_matched, 0);
    for (int64_t i = 0; i < a.n_rows; i++)
    {
        ck_assert_int_eq(a.join_row[i], b.join_row[i]);
        ck_assert(
            memcmp(&a.measure[i], &b.measure[i], sizeof(double)) == 0 ||
            (a.measure[i] != a.measure[i] && b.measure[i] != b.measure[i]));
    }
    oj_join_close(cpu);
}

static void set(const char *module, const char *how)
{
    setenv("OGRJOIN_CUDA_MODULE", module, 1);
    setenv("FAKE_GPU", how, 1);
}

/* cuda says why it cannot, and auto does without, saying the same. */
static void refuses(const char *text)
{
    struct oj_join *join;
    open_join("cuda", 0, 0, OJ_ERR_NO_DEVICE);
    says(text);
    join = open_join("auto", 1000000000, 0, OJ_OK);
    ck_assert_str_eq(oj_join_backend(join)->name, "cpu");
    ck_assert_msg(strstr(oj_join_reason(join), text) != NULL, "\"%s\"",
                  oj_join_reason(join));
    same_as_cpu(join, &points);
    oj_join_close(join);
}

TEST(missing)
{
    set("/nowhere/module.so", "");
    refuses("no CUDA module /nowhere/module.so");
}

TEST(not_a_library)
{
    set(__FILE__, "");
    refuses("cannot be loaded");
}

/* A module of which a part is missing: one line, wherever it ends. */
TEST_LOOP(truncated, 0, 33)
{
    char path[] = "/tmp/oj_module_XXXXXX", command[4096];
    struct stat info;
    close(mkstemp(path));
    ck_assert_int_eq(stat(OJ_TEST_FAKE_MODULE, &info), 0);
    snprintf(command, sizeof command, "head -c %ld '%s' >'%s'",
             _i < 8 ? 16 * _i : info.st_size * (_i - 7) / 25 - (_i == 32),
             OJ_TEST_FAKE_MODULE, path);
    ck_assert_int_eq(system(command), 0);
    set(path, "");
    refuses("is truncated or no module; build or install it again");
    unlink(path);
}

TEST(other_library)
{
    Dl_info info;
    ck_assert_int_ne(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info), 0);
    set(info.dli_fname, "");
    refuses("is no CUDA module of ogrjoin");
}

TEST(other_version)
{
    set(OJ_TEST_FAKE_MODULE, "abi");
    refuses("another version");
}

TEST(no_device)
{
    set(OJ_TEST_FAKE_MODULE, "none");
    refuses("no fake device either");
}

TEST(answers)
{
    struct oj_join *join;
    struct oj_flat view;
    set(OJ_TEST_FAKE_MODULE, "");
    join = open_join("cuda", 0, 1, OJ_OK);
    view = oj_flat_buf_view(&points);
    ck_assert_str_eq(oj_join_backend(join)->name, "cuda");
    ck_assert_str_eq(oj_join_method(join, NULL), "fake loops");
    ck_assert_str_eq(oj_join_method(join, &view), "fake loops");
    same_as_cpu(join, &points);
    /* what the module does not take goes to the CPU */
    view = oj_flat_buf_view(&lines);
    ck_assert_str_ne(oj_join_method(join, &view), "fake loops");
    same_as_cpu(join, &lines);
    same_as_cpu(join, &points);
    oj_join_close(join);
}

TEST(no_such_device)
{
    set(OJ_TEST_FAKE_MODULE, "");
    open_join("cuda", 0, 1 | 1 << 5, OJ_ERR_NO_DEVICE);
    says("no GPU 5");
}

TEST(all_devices)
{
    struct oj_join *join;
    set(OJ_TEST_FAKE_MODULE, "");
    join = open_join("cuda", 0, OJ_ALL_GPUS, OJ_OK);
    same_as_cpu(join, &points);
    oj_join_close(join);
}

static char last_reason[512];

static void reason_has(const struct oj_join *join, const char *text)
{
    snprintf(last_reason, sizeof last_reason, "%s", oj_join_reason(join));
    ck_assert_msg(strstr(oj_join_reason(join), text) != NULL, "\"%s\"",
                  oj_join_reason(join));
}

/* The CPU answers, and why is said; at_once: before the first batch. */
static void left_to_cpu(const char *why, int at_once)
{
    struct oj_join *join = open_join("cuda", 0, 0, OJ_OK);
    if (at_once)
        ck_assert_str_ne(oj_join_method(join, NULL), "fake loops");
    same_as_cpu(join, &points);
    ck_assert_str_ne(oj_join_method(join, NULL), "fake loops");
    ck_assert_str_eq(oj_join_backend(join)->name, "cuda");
    reason_has(join, why);
    reason_has(join, "ran on the CPU, since ");
    same_as_cpu(join, &lines);
    oj_join_close(join);
    join = open_join("auto", 1000000000, 0, OJ_OK);
    same_as_cpu(join, &points);
    ck_assert_str_eq(oj_join_backend(join)->name, "cpu");
    reason_has(join, why);
    reason_has(join, "no GPU: ");
    same_as_cpu(join, &lines);
    oj_join_close(join);
}

TEST(refused_join_side)
{
    set(OJ_TEST_FAKE_MODULE, "refuse");
    left_to_cpu("too large", 1);
}

TEST(full_device)
{
    set(OJ_TEST_FAKE_MODULE, "full");
    left_to_cpu("fake device is full; -memory SIZE", 1);
}

TEST(crowded_device)
{
    set(OJ_TEST_FAKE_MODULE, "crowded");
    left_to_cpu("fake device is crowded; a smaller -gpu_batch needs less", 0);
}

/* One advice is enough: tiles need no less when others have the memory. */
TEST(held_device)
{
    set(OJ_TEST_FAKE_MODULE, "held");
    left_to_cpu("others hold it; end one of them", 1);
    ck_assert_ptr_null(strstr(last_reason, "-memory"));
}

/* The module has another method: the answers are a GPU's, and why it is that
 * one can be asked. */
TEST(second_method)
{
    struct oj_join *join;
    set(OJ_TEST_FAKE_MODULE, "second");
    join = open_join("cuda", 0, 0, OJ_OK);
    same_as_cpu(join, &points);
    ck_assert_str_eq(oj_join_method(join, NULL), "slower fake loops");
    reason_has(join, "took a slower method on the GPU, since the better fake "
                     "method is full");
    oj_join_close(join);
    join = open_join("auto", 1000000000, 0, OJ_OK);
    same_as_cpu(join, &points);
    ck_assert_str_eq(oj_join_backend(join)->name, "cuda");
    oj_join_close(join);
}

/* --- counting ------------------------------------------------------------- */

static struct oj_join *open_equals(const char *backend)
{
    static struct oj_flat view;
    struct oj_relation relation = oj_relation_default();
    struct oj_options options = {.n_threads = 1, .n_expected = 1000000000};
    struct oj_join *join = NULL;
    relation.op = OJ_OP_EQUALS;
    view = oj_flat_buf_view(&join_side);
    must(oj_join_open(&view, &relation, backend, &options, &join, &error));
    return join;
}

/* count holds n times the pairs of each join feature. */
static void check_counts(struct oj_join *join, const struct oj_flat *input,
                         const int64_t *count, int64_t n)
{
    MATCHES m = {0};
    int64_t expected[40] = {0};
    must(oj_join_batch(join, input, &m, &error));
    ck_assert_int_gt(m.n_pairs, 0);
    for (int64_t i = 0; i < m.n_entries; i++)
        expected[m.join_row[i]]++;
    for (int f = 0; f < 40; f++)
        ck_assert_int_eq(count[f], n * expected[f]);
}

TEST(counts)
{
    static const char *const backends[] = {"cuda", "auto"};
    const struct oj_flat input = oj_flat_buf_view(&join_side);
    set(OJ_TEST_FAKE_MODULE, "");
    for (int i = 0; i < 2; i++)
    {
        struct oj_join *join = open_equals(backends[i]);
        int64_t count[40] = {0}, n_pairs = -1;
        for (int k = 0; k < 3; k++)
            must(oj_join_count_pairs(join, &input, count, &n_pairs, &error));
        ck_assert_int_ge(n_pairs, 40);
        check_counts(join, &input, count, 3);
        oj_join_close(join);
    }
}

/* What cannot be counted leaves the counts alone, and join() has an answer. */
TEST(no_counts)
{
    static const char *const hows[] = {"crowded", "full", "lost"};
    const struct oj_flat input = oj_flat_buf_view(&join_side);
    struct oj_join *join;
    int64_t count[40] = {0}, n_pairs = 0;
    set(OJ_TEST_FAKE_MODULE, "");
    join = open_join("cuda", 0, 0, OJ_OK); /* nearest */
    ck_assert_int_eq(oj_join_count_pairs(join, &input, count, &n_pairs, &error),
                     OJ_ERR_UNSUPPORTED);
    oj_join_close(join);
    join = open_equals("cpu");
    ck_assert_int_eq(oj_join_count_pairs(join, &input, count, &n_pairs, &error),
                     OJ_ERR_UNSUPPORTED);
    check_counts(join, &input, count, 0);
    oj_join_close(join);
    for (int i = 0; i < 3; i++)
    {
        set(OJ_TEST_FAKE_MODULE, hows[i]);
        join = open_equals("auto");
        ck_assert_int_eq(
            oj_join_count_pairs(join, &input, count, &n_pairs, &error),
            OJ_ERR_UNSUPPORTED);
        check_counts(join, &input, count, 0);
        ck_assert_str_eq(oj_join_backend(join)->name, "cpu");
        oj_join_close(join);
    }
}

/* --- summing -------------------------------------------------------------- */

enum
{
    MANY = 400
};

/* Rows at the places of the join side, with a column of reals with NULLs and
 * one of integers. */
static struct oj_flat_buf rows;
static double reals[MANY];
static int64_t integers[MANY];
static uint8_t nulls[MANY];

static struct oj_aggregates *open_sums(void)
{
    static const enum oj_aggregate_type types[] = {OJ_AGG_REAL, OJ_AGG_INTEGER};
    static const struct oj_aggregate asked[] = {{OJ_AGG_COUNT_VALUES, 0, NULL},
                                                {OJ_AGG_SUM, 0, NULL},
                                                {OJ_AGG_COUNT_VALUES, 1, NULL}};
    static const struct oj_aggregate_plan plan = {asked, 3, types, 2, 0, NULL};
    struct oj_aggregates *sums = NULL;
    must(oj_aggregates_open(&plan, &sums, &error));
    must(oj_aggregates_start(sums, 40, &error));
    oj_flat_buf_free(&rows);
    for (int i = 0; i < MANY; i++)
    {
        add_point(&rows, ((i % 43) * 7) % 40, ((i % 43) * 11) % 17);
        reals[i] = i % 3 == 0 ? 1e17 : 0.1 * i;
        integers[i] = i - 20;
        nulls[i] = i % 5 == 2;
    }
    return sums;
}

/* sums holds n times what the pairs of each join feature have. */
static void check_sums(struct oj_join *join, const struct oj_flat *input,
                       struct oj_aggregates *sums, int n)
{
    MATCHES m = {0};
    struct oj_exact_sum expected[40] = {{{{0}}, 0, 0, 0, 0}};
    int64_t n_pairs[40] = {0}, n_values[40] = {0};
    must(oj_join_batch(join, input, &m, &error));
    ck_assert_int_gt(m.n_pairs, 0);
    for (int64_t row = 0; row < m.n_rows; row++)
    {
        for (int64_t i = m.offset[row]; i < m.offset[row + 1]; i++)
        {
            int32_t f = m.join_row[i];
            n_pairs[f]++;
            n_values[f] += !nulls[row];
            for (int k = 0; !nulls[row] && k < n; k++)
                must(oj_exact_sum_add(&expected[f], reals[row], &error));
        }
    }
    for (int f = 0; f < 40; f++)
    {
        struct oj_aggregate_value count, sum, other;
        double b = oj_exact_sum_value(&expected[f]);
        must(oj_aggregates_result(sums, f, 0, &count, &error));
        must(oj_aggregates_result(sums, f, 1, &sum, &error));
        must(oj_aggregates_result(sums, f, 2, &other, &error));
        ck_assert_int_eq(oj_aggregates_pairs(sums, f), n * n_pairs[f]);
        ck_assert_int_eq(count.integer, n * n_values[f]);
        ck_assert_int_eq(other.integer, n * n_pairs[f]);
        ck_assert_int_eq(sum.is_null, n * n_values[f] == 0);
        ck_assert(memcmp(&sum.real, &b, sizeof b) == 0);
        oj_exact_sum_clear(&expected[f]);
    }
}

TEST(sums_of_pairs)
{
    static const char *const backends[] = {"cuda", "auto"};
    const struct oj_aggregate_column columns[] = {
        {.real = reals, .is_null = nulls}, {.integer = integers}};
    set(OJ_TEST_FAKE_MODULE, "");
    for (int i = 0; i < 2; i++)
    {
        struct oj_join *join = open_equals(backends[i]);
        struct oj_aggregates *sums = open_sums();
        const struct oj_flat input = oj_flat_buf_view(&rows);
        int64_t n_pairs = -1;
        ck_assert(oj_join_sums(join, &input));
        for (int k = 0; k < 3; k++)
            must(oj_join_sum_pairs(join, &input, columns, sums, &n_pairs,
                                   &error));
        ck_assert_int_ge(n_pairs, 40);
        ck_assert_int_eq(oj_join_stats(join)->n_pairs_unmade, 3 * n_pairs);
        check_sums(join, &input, sums, 3);
        oj_aggregates_close(sums);
        oj_join_close(join);
        oj_flat_buf_free(&rows);
    }
}

/* What cannot be summed leaves the sums alone, and join() has an answer. */
TEST(no_sums)
{
    static const char *const hows[] = {"plain", "crowded", "full", "lost"};
    static const char *const backends[] = {"cpu", "cuda", "auto"};
    const struct oj_aggregate_column columns[] = {
        {.real = reals, .is_null = nulls}, {.integer = integers}};
    struct oj_aggregates *sums = open_sums();
    const struct oj_flat input = oj_flat_buf_view(&rows);
    for (int i = 0; i < 4; i++)
    {
        set(OJ_TEST_FAKE_MODULE, hows[i]);
        for (int b = 0; b < 3; b++)
        {
            int fails = b == 1 && i == 3; /* cuda, lost */
            struct oj_join *join = open_equals(backends[b]);
            int64_t n_pairs = 0;
            ck_assert_int_eq(oj_join_sum_pairs(join, &input, columns, sums,
                                               &n_pairs, &error),
                             fails ? OJ_ERR_NO_DEVICE : OJ_ERR_UNSUPPORTED);
            ck_assert_int_eq(oj_join_sums(join, &input), fails);
            ck_assert_int_eq(oj_join_stats(join)->n_pairs_unmade, 0);
            if (!fails)
                check_sums(join, &input, sums, 0);
            oj_join_close(join);
        }
    }
    oj_aggregates_close(sums);
    oj_flat_buf_free(&rows);
}

/* How the module's joins end: cuda says so, and auto goes on without it. */
static void join_fails(const char *how, oj_status expected)
{
    struct oj_join *join;
    MATCHES out = {0};
    const struct oj_flat view = oj_flat_buf_view(&points);
    set(OJ_TEST_FAKE_MODULE, how);
    join = open_join("cuda", 0, 0, OJ_OK);
    ck_assert_int_eq(oj_join_batch(join, &view, &out, &error), expected);
    oj_join_close(join);
    join = open_join("auto", 1000000000, 0, OJ_OK);
    ck_assert_str_eq(oj_join_backend(join)->name, "cuda");
    same_as_cpu(join, &points);
    ck_assert_str_eq(oj_join_backend(join)->name, "cpu");
    reason_has(join, how);
    oj_join_close(join);
}

TEST(lost_device)
{
    join_fails("lost", OJ_ERR_NO_DEVICE);
}

TEST(broken_device)
{
    join_fails("broken", OJ_ERR_INTERNAL);
}

/* Nobody goes on with a join that is cancelled. */
TEST(stopped_device)
{
    static const char *const backends[] = {"cuda", "auto"};
    const struct oj_flat view = oj_flat_buf_view(&points);
    set(OJ_TEST_FAKE_MODULE, "stopped");
    for (int i = 0; i < 2; i++)
    {
        struct oj_join *join = open_join(backends[i], 1000000000, 0, OJ_OK);
        MATCHES out = {0};
        ck_assert_int_eq(oj_join_batch(join, &view, &out, &error),
                         OJ_ERR_CANCELLED);
        oj_join_close(join);
    }
}

TEST(small_jobs)
{
    struct oj_join *join;
    set(OJ_TEST_FAKE_MODULE, "");
    join = open_join(NULL, 1000, 0, OJ_OK);
    ck_assert_str_eq(oj_join_backend(join)->name, "cpu");
    same_as_cpu(join, &points);
    ck_assert_str_ne(oj_join_reason(join), "");
    oj_join_close(join);
    join = open_join(NULL, 0, 0, OJ_OK);
    same_as_cpu(join, &points);
    ck_assert_str_eq(oj_join_backend(join)->name, "cpu");
    oj_join_close(join);
    join = open_join("AUTO", 1000000000, 0, OJ_OK);
    ck_assert_str_eq(oj_join_backend(join)->name, "cuda");
    same_as_cpu(join, &points);
    same_as_cpu(join, &lines);
    oj_join_close(join);
}

TEST(devices)
{
    const struct oj_gpu_module *module;
    struct oj_gpu_device device;
    int n = 0;
    set(OJ_TEST_FAKE_MODULE, "");
    must(oj_gpu_load(&module, &error));
    must(module->count(&n, &error));
    ck_assert_int_eq(n, 2);
    must(module->describe(1, &device, &error));
    ck_assert_str_eq(device.why_not, "it is in use");
}

int main(void)
{
    unsetenv("CK_FORK"); /* a test may kill its process */
    tcase_add_checked_fixture(tests_open("gpu"), make_layers, free_layers);
    return tests_run();
}
