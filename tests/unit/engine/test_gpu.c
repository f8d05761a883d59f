/* The backends cuda and auto with a module that is missing, broken or fake:
 * their messages, the backend that answers, and which joins between lines and
 * polygons use a GPU. Each test is a process of its own, because a process
 * loads a module once. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr() */
#endif

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../assertions.h"
#include "../references.h"

#include "../../../algs/foundations/aggregate/oj_aggregate.h"
#include "../../../algs/foundations/base/oj_exact_sum.h"
#include "../../../algs/foundations/relation/oj_gpu.h"
#include "../join_trial.h"
#include "../pair_counts.h"
#include "../run_tests.h"

#define MANY_ROWS 1000000000
#define SHAPES (OJ_PART_LINE | OJ_PART_POLYGON)
#define ON_GPU "boxes and edges on the GPU, what they leave open on the CPU"

static struct oj_flat_buf join_side, points, lines; /* layers for nearest */
static struct oj_flat_buf zones, streets, places;   /* layers for predicates */

static void make_layers(void)
{
    for (int i = 0; i < 40; i++)
        add_point(&join_side, (i * 7) % 40, (i * 11) % 17);
    for (int i = 0; i < 500; i++)
        add_point(&points, (i * 13) % 41 + 0.25, (i * 5) % 19);
    for (int i = 0; i < 10; i++)
        add_line(&lines, i, 0, i + 1, 3);
    for (int i = 0; i < 60; i++)
    {
        double x = (i * 7) % 40, y = (i * 11) % 17, a = 1 + i % 5;
        const double ring[] = {x,     y,     x + a, y, x + a,
                               y + 2, x + 1, y + a, x, y};
        add_simple(&zones, OJ_PART_POLYGON, 5, ring);
    }
    for (int i = 0; i < 90; i++)
        add_line(&streets, (i * 13) % 41, (i * 5) % 19, (i * 3) % 37,
                 (i * 7) % 23);
    for (int i = 0; i < 50; i++)
        add_point(&places, (i * 13) % 41, (i * 5) % 19);
}

static void free_layers(void)
{
    oj_flat_buf_free(&join_side);
    oj_flat_buf_free(&points);
    oj_flat_buf_free(&lines);
    oj_flat_buf_free(&zones);
    oj_flat_buf_free(&streets);
    oj_flat_buf_free(&places);
}

/* the join that was opened last */
static struct join_trial asked;

static struct oj_join *open_expecting(const struct oj_flat_buf *side,
                                      enum oj_op op, const char *backend,
                                      const struct oj_options *options,
                                      oj_status expected)
{
    struct oj_join *join = NULL;
    oj_status status;
    asked.join = oj_flat_buf_view(side);
    asked.relation = oj_relation_default();
    asked.relation.op = op;
    if (op == OJ_OP_NEAREST)
        asked.relation.max_distance = 3.0;
    status = oj_join_open(&asked.join, &asked.relation, backend, options, &join,
                          &error);
    ck_assert_msg(status == expected, "%s: %s", oj_status_name(status),
                  error.message);
    return join;
}

static struct oj_join *open_join(const char *backend, int64_t n_expected,
                                 uint64_t gpus, oj_status expected)
{
    const struct oj_options options = {
        .n_threads = 1, .n_expected = n_expected, .gpus = gpus};
    return open_expecting(&join_side, OJ_OP_NEAREST, backend, &options,
                          expected);
}

static struct oj_join *open_shapes(const char *backend, enum oj_op op,
                                   unsigned kinds, int64_t n_expected)
{
    const struct oj_options options = {
        .n_threads = 2, .input_kinds = kinds, .n_expected = n_expected};
    return open_expecting(&zones, op, backend, &options, OJ_OK);
}

static void assert_error_has(const char *text)
{
    ck_assert_msg(strstr(error.message, text) != NULL, "\"%s\" has no \"%s\"",
                  error.message, text);
}

/* Asserts that join has the answers of the backend cpu for a layer. join must
 * be the one that was opened last. */
static void same_as_cpu(struct oj_join *join, const struct oj_flat_buf *layer)
{
    MATCHES a = {0}, b = {0};
    asked.input = oj_flat_buf_view(layer);
    must(oj_join_batch(join, &asked.input, &a, &error));
    trial_answer(&asked, "cpu", 1, &b);
    ck_assert_int_gt(a.n_matched, 0);
    same_matches("with the module", &a, &b);
}

static char last_reason[512];

static void assert_reason_has(const struct oj_join *join, const char *text)
{
    snprintf(last_reason, sizeof last_reason, "%s",
             oj_join_reason_for_backend(join));
    ck_assert_msg(strstr(last_reason, text) != NULL, "\"%s\" has no \"%s\"",
                  last_reason, text);
}

static void assert_backend(const struct oj_join *join, const char *backend,
                           const char *why)
{
    ck_assert_str_eq(oj_join_backend(join)->name, backend);
    assert_reason_has(join, why);
}

static void set_fake_module(const char *module, const char *how)
{
    setenv("OGRJOIN_CUDA_MODULE", module, 1);
    setenv("FAKE_GPU", how, 1);
}

/* Asserts that cuda is refused with this message, and that auto uses the CPU
 * and gives the message as its reason. */
static void assert_cuda_refused(const char *text)
{
    struct oj_join *join;
    open_join("cuda", 0, 0, OJ_ERR_NO_DEVICE);
    assert_error_has(text);
    join = open_join("auto", MANY_ROWS, 0, OJ_OK);
    assert_backend(join, "cpu", text);
    same_as_cpu(join, &points);
    oj_join_close(join);
}

/* Path of a folder of this user, and of a copy of the module in it. */
static char place[40], copy[60];

static void make_place(void)
{
    snprintf(place, sizeof place, "/tmp/oj_module_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(place));
    snprintf(copy, sizeof copy, "%s/module.so", place);
}

static void remove_place(void)
{
    unlink(copy);
    ck_assert_int_eq(rmdir(place), 0);
}

/* Copies the first n bytes of the module, or all if n is -1. */
static void copy_module(long n)
{
    char command[4096];
    if (n < 0)
        snprintf(command, sizeof command, "cp '%s' '%s'", OJ_TEST_FAKE_MODULE,
                 copy);
    else
        snprintf(command, sizeof command, "head -c %ld '%s' >'%s'", n,
                 OJ_TEST_FAKE_MODULE, copy);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(chmod(copy, 0644), 0);
}

/* A truncated module gives one line of error, whatever its length. */
TEST_LOOP(truncated, 0, 33)
{
    struct stat info;
    ck_assert_int_eq(stat(OJ_TEST_FAKE_MODULE, &info), 0);
    make_place();
    copy_module(_i < 8 ? 16 * _i : info.st_size * (_i - 7) / 25 - (_i == 32));
    set_fake_module(copy, "");
    assert_cuda_refused("is truncated or no module; build or install it again");
    remove_place();
}

/* A module that another user may have written is not loaded, because it would
 * run in this process. The private group of a user counts as this user.
 * Therefore only for root is it certain that a group is refused. */
TEST_LOOP(writable_by_others, 0, 9)
{
    static const struct
    {
        mode_t folder, file;
        int is_taken;
    } cases[] = {{0755, 0644, 1},  {0700, 0700, 1}, {0777, 0644, 0},
                 {01777, 0644, 0}, {0757, 0644, 0}, {0755, 0646, 0},
                 {0755, 0666, 0},  {0775, 0644, 0}, {0755, 0664, 0}};
    if (_i >= 7 && geteuid() != 0)
    {
        printf("skipped: 1 (root alone has no private group)\n");
        return;
    }
    make_place();
    copy_module(-1);
    ck_assert_int_eq(chmod(copy, cases[_i].file), 0);
    ck_assert_int_eq(chmod(place, cases[_i].folder), 0);
    set_fake_module(copy, "");
    if (cases[_i].is_taken)
        oj_join_close(open_join("cuda", 0, 1, OJ_OK));
    else
        assert_cuda_refused("other users may write to");
    remove_place();
}

/* The file, or its folder, belongs to another user. */
TEST_LOOP(of_another_user, 0, 2)
{
    if (geteuid() != 0)
    {
        printf("skipped: 1 (root alone gives files to others)\n");
        return;
    }
    make_place();
    copy_module(-1);
    ck_assert_int_eq(chown(_i == 0 ? copy : place, 65534, 65534), 0);
    set_fake_module(copy, "");
    assert_cuda_refused("belongs to another user, who could change it");
    remove_place();
}

/* If the module is a link, the folder of its target is checked, too. */
TEST_LOOP(links, 0, 2)
{
    char target[4096];
    make_place();
    ck_assert_ptr_nonnull(realpath(OJ_TEST_FAKE_MODULE, target));
    ck_assert_int_eq(symlink(target, copy), 0);
    ck_assert_int_eq(chmod(place, _i == 0 ? 0755 : 01777), 0);
    set_fake_module(copy, "");
    if (_i == 0)
        oj_join_close(open_join("cuda", 0, 1, OJ_OK));
    else
        assert_cuda_refused("other users may write to");
    remove_place();
}

/* A missing file, and a file whose opening would block (a FIFO). */
TEST_LOOP(no_file, 0, 2)
{
    make_place();
    if (_i == 0)
        ck_assert_int_eq(mkfifo(copy, 0600), 0);
    else
        ck_assert_int_eq(symlink("/dev/zero", copy), 0);
    set_fake_module(copy, "");
    alarm(60); /* ends a test that hangs */
    assert_cuda_refused(_i == 0 ? "is truncated or no module"
                                : "cannot be loaded");
    remove_place();
}

TEST_LOOP(no_module_or_device, 0, 5)
{
    static const char *const cases[][3] = {
        {"/nowhere/module.so", "", "no CUDA module /nowhere/module.so"},
        {OJ_TEST_CASES "/nearest.txt", "", "cannot be loaded"},
        /* a library that is no module (libc) */
        {NULL, "", "is no CUDA module of ogrjoin"},
        {OJ_TEST_FAKE_MODULE, "abi", "another version"},
        {OJ_TEST_FAKE_MODULE, "none", "no fake device either"}};
    Dl_info info;
    ck_assert_int_ne(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info), 0);
    set_fake_module(cases[_i][0] != NULL ? cases[_i][0] : info.dli_fname,
                    cases[_i][1]);
    assert_cuda_refused(cases[_i][2]);
}

TEST(answers)
{
    struct oj_join *join;
    struct oj_flat view;
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    join = open_join("cuda", 0, 1, OJ_OK);
    view = oj_flat_buf_view(&points);
    ck_assert_str_eq(oj_join_backend(join)->name, "cuda");
    ck_assert_str_eq(oj_join_method(join, NULL), "fake loops");
    ck_assert_str_eq(oj_join_method(join, &view), "fake loops");
    same_as_cpu(join, &points);
    /* if the module refuses the input, the CPU joins */
    view = oj_flat_buf_view(&lines);
    ck_assert_str_ne(oj_join_method(join, &view), "fake loops");
    same_as_cpu(join, &lines);
    same_as_cpu(join, &points);
    oj_join_close(join);
}

TEST(no_such_device)
{
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    open_join("cuda", 0, 1 | 1 << 5, OJ_ERR_NO_DEVICE);
    assert_error_has("no GPU 5");
}

TEST(all_devices)
{
    struct oj_join *join;
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    join = open_join("cuda", 0, OJ_ALL_GPUS, OJ_OK);
    same_as_cpu(join, &points);
    oj_join_close(join);
}

/* Asserts that the CPU answers, and that the reason is reported. at_once 1: the
 * CPU is chosen before the first batch. */
static void assert_cpu_joins(const char *why, int at_once)
{
    struct oj_join *join = open_join("cuda", 0, 0, OJ_OK);
    if (at_once)
        ck_assert_str_ne(oj_join_method(join, NULL), "fake loops");
    same_as_cpu(join, &points);
    ck_assert_str_ne(oj_join_method(join, NULL), "fake loops");
    ck_assert_str_eq(oj_join_backend(join)->name, "cuda");
    assert_reason_has(join, why);
    assert_reason_has(join, "ran on the CPU, since ");
    same_as_cpu(join, &lines);
    oj_join_close(join);
    join = open_join("auto", MANY_ROWS, 0, OJ_OK);
    same_as_cpu(join, &points);
    ck_assert_str_eq(oj_join_backend(join)->name, "cpu");
    assert_reason_has(join, why);
    assert_reason_has(join, "no GPU: ");
    same_as_cpu(join, &lines);
    oj_join_close(join);
}

TEST_LOOP(left_to_the_cpu, 0, 4)
{
    static const struct
    {
        const char *how, *why;
        int at_once;
    } cases[] = {{"refuse", "too large", 1},
                 {"full", "fake device is full; -memory SIZE", 1},
                 {"crowded",
                  "fake device is crowded; a smaller -gpu_batch needs less", 0},
                 {"held", "others hold it; end one of them", 1}};
    set_fake_module(OJ_TEST_FAKE_MODULE, cases[_i].how);
    assert_cpu_joins(cases[_i].why, cases[_i].at_once);
    /* -memory is not suggested: if others use the memory, smaller tiles do not
     * help */
    ck_assert(_i != 3 || strstr(last_reason, "-memory") == NULL);
}

/* The module uses a slower method. A GPU answers, and the reason for the method
 * is available. */
TEST(second_method)
{
    struct oj_join *join;
    set_fake_module(OJ_TEST_FAKE_MODULE, "second");
    join = open_join("cuda", 0, 0, OJ_OK);
    same_as_cpu(join, &points);
    ck_assert_str_eq(oj_join_method(join, NULL), "slower fake loops");
    assert_reason_has(join,
                      "took a slower method on the GPU, since the better fake "
                      "method is full");
    oj_join_close(join);
    join = open_join("auto", MANY_ROWS, 0, OJ_OK);
    same_as_cpu(join, &points);
    ck_assert_str_eq(oj_join_backend(join)->name, "cuda");
    oj_join_close(join);
}

/* --- counting ------------------------------------------------------------- */

static struct oj_join *open_equals(const char *backend)
{
    const struct oj_options options = {.n_threads = 1, .n_expected = MANY_ROWS};
    return open_expecting(&join_side, OJ_OP_EQUALS, backend, &options, OJ_OK);
}

/* Asserts that count holds n times the number of pairs of each join feature. */
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
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    for (int i = 0; i < 2; i++)
    {
        struct oj_join *join = open_equals(backends[i]);
        int64_t count[40] = {0}, n_pairs = -1;
        for (int k = 0; k < 3; k++)
            must(count_pairs_by_feature(join, &input, 40, count, &n_pairs,
                                        &error));
        ck_assert_int_ge(n_pairs, 40);
        check_counts(join, &input, count, 3);
        oj_join_close(join);
    }
}

/* If pairs cannot be counted, the counts stay unchanged, and oj_join_batch()
 * gives the answer. */
TEST(no_counts)
{
    static const char *const hows[] = {"crowded", "full", "lost"};
    const struct oj_flat input = oj_flat_buf_view(&join_side);
    struct oj_join *join;
    int64_t count[40] = {0}, n_pairs = 0;
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    join = open_join("cuda", 0, 0, OJ_OK); /* nearest */
    ck_assert_int_eq(
        count_pairs_by_feature(join, &input, 40, count, &n_pairs, &error),
        OJ_ERR_UNSUPPORTED);
    oj_join_close(join);
    join = open_equals("cpu");
    ck_assert_int_eq(
        count_pairs_by_feature(join, &input, 40, count, &n_pairs, &error),
        OJ_ERR_UNSUPPORTED);
    check_counts(join, &input, count, 0);
    oj_join_close(join);
    for (int i = 0; i < 3; i++)
    {
        set_fake_module(OJ_TEST_FAKE_MODULE, hows[i]);
        join = open_equals("auto");
        ck_assert_int_eq(
            count_pairs_by_feature(join, &input, 40, count, &n_pairs, &error),
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

/* Rows at the places of the join side, with a column of reals, some NULL, and a
 * column of integers. */
static struct oj_flat_buf rows;
static double reals[MANY];
static int64_t integers[MANY];
static uint8_t nulls[MANY];

static struct oj_aggregates *open_sums(void)
{
    static const enum oj_aggregate_type types[] = {OJ_AGG_REAL, OJ_AGG_INTEGER};
    static const struct oj_aggregate what[] = {
        {OJ_AGG_COUNT_VALUES, 0, NULL, 0, 0.0},
        {OJ_AGG_SUM, 0, NULL, 0, 0.0},
        {OJ_AGG_COUNT_VALUES, 1, NULL, 0, 0.0}};
    static const struct oj_aggregate_plan plan = {what, 3,    types, 2,
                                                  0,    NULL, NULL};
    struct oj_aggregates *sums = NULL;
    must(oj_aggregates_open(&plan, &sums, &error));
    must(oj_aggregates_reset(sums, 40, &error));
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

/* Asserts that sums holds n times the sums over the pairs of each join feature.
 */
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
        ck_assert_int_eq(oj_aggregates_pair_count(sums, f), n * n_pairs[f]);
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
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    for (int i = 0; i < 2; i++)
    {
        struct oj_join *join = open_equals(backends[i]);
        struct oj_aggregates *sums = open_sums();
        const struct oj_flat input = oj_flat_buf_view(&rows);
        int64_t n_pairs = -1;
        ck_assert(oj_join_should_sum_pairs(join, &input));
        for (int k = 0; k < 3; k++)
            must(oj_join_sum_pairs(join, &input, columns, sums, &n_pairs,
                                   &error));
        ck_assert_int_ge(n_pairs, 40);
        ck_assert_int_eq(oj_join_stats(join)->n_pairs_not_stored, 3 * n_pairs);
        check_sums(join, &input, sums, 3);
        oj_aggregates_close(sums);
        oj_join_close(join);
        oj_flat_buf_free(&rows);
    }
}

/* If pairs cannot be summed, the sums stay unchanged, and oj_join_batch() gives
 * the answer. */
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
        set_fake_module(OJ_TEST_FAKE_MODULE, hows[i]);
        for (int b = 0; b < 3; b++)
        {
            int fails = b == 1 && i == 3; /* cuda with a lost device */
            struct oj_join *join = open_equals(backends[b]);
            int64_t n_pairs = 0;
            ck_assert_int_eq(oj_join_sum_pairs(join, &input, columns, sums,
                                               &n_pairs, &error),
                             fails ? OJ_ERR_NO_DEVICE : OJ_ERR_UNSUPPORTED);
            ck_assert_int_eq(oj_join_should_sum_pairs(join, &input), fails);
            ck_assert_int_eq(oj_join_stats(join)->n_pairs_not_stored, 0);
            if (!fails)
                check_sums(join, &input, sums, 0);
            oj_join_close(join);
        }
    }
    oj_aggregates_close(sums);
    oj_flat_buf_free(&rows);
}

/* The module fails while it joins. cuda returns the error, and auto continues
 * on the CPU. */
TEST_LOOP(failing_joins, 0, 2)
{
    const char *how = _i == 0 ? "lost" : "broken";
    const struct oj_flat view = oj_flat_buf_view(&points);
    struct oj_join *join;
    MATCHES out = {0};
    set_fake_module(OJ_TEST_FAKE_MODULE, how);
    join = open_join("cuda", 0, 0, OJ_OK);
    ck_assert_int_eq(oj_join_batch(join, &view, &out, &error),
                     _i == 0 ? OJ_ERR_NO_DEVICE : OJ_ERR_INTERNAL);
    oj_join_close(join);
    join = open_join("auto", MANY_ROWS, 0, OJ_OK);
    ck_assert_str_eq(oj_join_backend(join)->name, "cuda");
    same_as_cpu(join, &points);
    assert_backend(join, "cpu", how);
    oj_join_close(join);
}

/* After a cancelled join, neither backend continues. */
TEST(stopped_device)
{
    static const char *const backends[] = {"cuda", "auto"};
    const struct oj_flat view = oj_flat_buf_view(&points);
    set_fake_module(OJ_TEST_FAKE_MODULE, "stopped");
    for (int i = 0; i < 2; i++)
    {
        struct oj_join *join = open_join(backends[i], MANY_ROWS, 0, OJ_OK);
        MATCHES out = {0};
        ck_assert_int_eq(oj_join_batch(join, &view, &out, &error),
                         OJ_ERR_CANCELLED);
        oj_join_close(join);
    }
}

TEST(small_jobs)
{
    struct oj_join *join;
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    join = open_join(NULL, 1000, 0, OJ_OK);
    ck_assert_str_eq(oj_join_backend(join)->name, "cpu");
    same_as_cpu(join, &points);
    ck_assert_str_ne(oj_join_reason_for_backend(join), "");
    oj_join_close(join);
    join = open_join(NULL, 0, 0, OJ_OK);
    same_as_cpu(join, &points);
    ck_assert_str_eq(oj_join_backend(join)->name, "cpu");
    oj_join_close(join);
    join = open_join("AUTO", MANY_ROWS, 0, OJ_OK);
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
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    must(oj_gpu_load(&module, &error));
    must(module->count(&n, &error));
    ck_assert_int_eq(n, 2);
    must(module->describe(1, &device, &error));
    ck_assert_str_eq(device.why_not, "it is in use");
}

/* --- shapes --------------------------------------------------------------- */

/* A join uses the GPU if the device decides nearly all pairs. */
TEST(shapes_taken)
{
    static const enum oj_op ops[] = {OJ_OP_INTERSECTS, OJ_OP_DISJOINT,
                                     OJ_OP_BBOX};
    const struct oj_flat input = oj_flat_buf_view(&streets);
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    for (int i = 0; i < 3; i++)
    {
        struct oj_join *join = open_shapes("auto", ops[i], SHAPES, MANY_ROWS);
        assert_backend(join, "cuda", " vertices: ");
        assert_backend(join, "cuda", " s on a GPU");
        ck_assert_str_eq(oj_join_method(join, &input),
                         ops[i] == OJ_OP_BBOX ? "boxes on the GPU" : ON_GPU);
        same_as_cpu(join, &streets);
        same_as_cpu(join, &zones);
        oj_join_close(join);
    }
}

/* Backend auto leaves a join of lines and polygons to the CPU if the GPU would
 * find only candidates, and not decide them. */
TEST(shapes_left)
{
    static const enum oj_op ops[] = {OJ_OP_TOUCHES, OJ_OP_WITHIN,
                                     OJ_OP_OVERLAPS, OJ_OP_CROSSES};
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    for (int i = 0; i < 4; i++)
    {
        struct oj_join *join = open_shapes("auto", ops[i], SHAPES, MANY_ROWS);
        char why[80];
        snprintf(why, sizeof why, "-op %s is decided on the CPU",
                 oj_op_get(ops[i])->name);
        assert_backend(join, "cpu", why);
        oj_join_close(join);
    }
}

TEST(few_shapes)
{
    struct oj_join *join;
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    join = open_shapes("auto", OJ_OP_INTERSECTS, SHAPES, 90);
    assert_backend(join, "cpu", "90 rows, ");
    same_as_cpu(join, &streets);
    assert_backend(join, "cpu", "90 rows, 480 vertices: ");
    oj_join_close(join);
    join = open_shapes("auto", OJ_OP_INTERSECTS, SHAPES, 0);
    same_as_cpu(join, &streets);
    assert_backend(join, "cpu", "90 rows, 480 vertices: ");
    oj_join_close(join);
}

/* The number of vertices per row is unknown before the first batch. */
TEST(known_by_batch)
{
    LAYER large = {0};
    struct oj_join *join;
    add_disc(&large, 20000, 20, 9, 8, 8);
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    join = open_shapes("auto", OJ_OP_INTERSECTS, SHAPES, 2000);
    assert_backend(join, "cpu", "2000 rows, ");
    same_as_cpu(join, &large);
    assert_backend(join, "cuda", "2000 rows, 4000");
    oj_join_close(join);
}

/* The kinds of the input are unknown, or are both lines and polygons. */
TEST(any_kinds)
{
    struct oj_join *join;
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    join = open_shapes("auto", OJ_OP_INTERSECTS, 0, MANY_ROWS);
    same_as_cpu(join, &streets);
    assert_backend(join, "cuda", " s on a GPU");
    same_as_cpu(join, &places);
    same_as_cpu(join, &zones);
    assert_backend(join, "cuda", " s on a GPU");
    oj_join_close(join);
}

/* A process that has used a device need not start CUDA again. */
TEST(started_device)
{
    static const char estimate[] = "1000000 rows, ";
    struct oj_join *join;
    double before, after;
    const char *at;
    set_fake_module(OJ_TEST_FAKE_MODULE, "");
    join = open_shapes("auto", OJ_OP_INTERSECTS, SHAPES, 1000000);
    assert_backend(join, "cpu", estimate);
    at = strstr(oj_join_reason_for_backend(join), "threads, ");
    ck_assert_ptr_nonnull(at);
    before = atof(at + strlen("threads, "));
    oj_join_close(join);
    join = open_shapes("cuda", OJ_OP_INTERSECTS, SHAPES, 0);
    same_as_cpu(join, &streets);
    oj_join_close(join);
    join = open_shapes("auto", OJ_OP_INTERSECTS, SHAPES, 1000000);
    assert_backend(join, "cuda", estimate);
    at = strstr(oj_join_reason_for_backend(join), "threads, ");
    ck_assert_ptr_nonnull(at);
    after = atof(at + strlen("threads, "));
    ck_assert(after < 0.5 * before);
    oj_join_close(join);
}

/* The device fails at once, or later. */
TEST(shapes_of_a_failing_device)
{
    static const char *const hows[] = {"none", "refuse", "full", "lost"};
    static const char *const whys[] = {"no fake device either", "too large",
                                       "fake device is full",
                                       "fake device is lost"};
    for (int i = 0; i < 4; i++)
    {
        struct oj_join *join;
        set_fake_module(OJ_TEST_FAKE_MODULE, hows[i]);
        join = open_shapes("auto", OJ_OP_INTERSECTS, SHAPES, MANY_ROWS);
        same_as_cpu(join, &streets);
        assert_backend(join, "cpu", "no GPU: ");
        assert_backend(join, "cpu", whys[i]);
        same_as_cpu(join, &zones);
        oj_join_close(join);
    }
}

/* The device lacks memory for one batch, but may have enough for the next. */
TEST(shapes_of_a_crowded_device)
{
    struct oj_join *join;
    set_fake_module(OJ_TEST_FAKE_MODULE, "crowded");
    join = open_shapes("auto", OJ_OP_INTERSECTS, SHAPES, MANY_ROWS);
    same_as_cpu(join, &streets);
    assert_backend(join, "cuda", "fake device is crowded");
    same_as_cpu(join, &streets);
    oj_join_close(join);
}

int main(void)
{
    unsetenv("CK_FORK"); /* Check must fork: a test may kill its process */
    tcase_add_checked_fixture(tests_open("gpu"), make_layers, free_layers);
    return tests_run();
}
