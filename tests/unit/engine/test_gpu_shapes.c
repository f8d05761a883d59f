/* Joins of lines and polygons with one another under the backends cuda and
 * auto, with a fake module: which of them go to a GPU, what is said of it, and
 * who answers when the device does not. Each test is a process of its own,
 * since a module is loaded once. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../algs/engine/oj_join.h"

#include "../../../algs/relation/oj_gpu.h"
#include "../references.h"
#include "../run_tests.h"

#define MANY 1000000000
#define SHAPES (OJ_PART_LINE | OJ_PART_POLYGON)
#define ON_GPU "boxes and edges on the GPU, what they leave open on the CPU"

static struct oj_flat_buf zones, lines, points;

static void add_polygon(struct oj_flat_buf *buf, int n, const double *xy)
{
    begin(buf);
    add_part(buf, OJ_PART_POLYGON);
    add_ring(buf, n, xy);
    end(buf);
}

static void make_layers(void)
{
    for (int i = 0; i < 60; i++)
    {
        double x = (i * 7) % 40, y = (i * 11) % 17, a = 1 + i % 5;
        const double ring[] = {x,     y,     x + a, y, x + a,
                               y + 2, x + 1, y + a, x, y};
        add_polygon(&zones, 5, ring);
    }
    for (int i = 0; i < 90; i++)
        add_line(&lines, (i * 13) % 41, (i * 5) % 19, (i * 3) % 37,
                 (i * 7) % 23);
    for (int i = 0; i < 50; i++)
        add_point(&points, (i * 13) % 41, (i * 5) % 19);
}

static void free_layers(void)
{
    oj_flat_buf_free(&zones);
    oj_flat_buf_free(&lines);
    oj_flat_buf_free(&points);
}

static void set(const char *how)
{
    setenv("OGRJOIN_CUDA_MODULE", OJ_TEST_FAKE_MODULE, 1);
    setenv("FAKE_GPU", how, 1);
}

static struct oj_join *open_join(const char *backend, enum oj_op op,
                                 unsigned kinds, int64_t n_expected)
{
    static struct oj_flat view;
    struct oj_relation relation = oj_relation_default();
    struct oj_options options = {
        .n_threads = 2, .input_kinds = kinds, .n_expected = n_expected};
    struct oj_join *join = NULL;
    view = oj_flat_buf_view(&zones);
    relation.op = op;
    must(oj_join_open(&view, &relation, backend, &options, &join, &error));
    return join;
}

static void same_as_cpu(struct oj_join *join, enum oj_op op,
                        const struct oj_flat_buf *layer)
{
    const struct oj_flat input = oj_flat_buf_view(layer);
    struct oj_join *cpu = open_join("cpu", op, 0, 0);
    MATCHES a = {0}, b = {0};
    must(oj_join_batch(join, &input, &a, &error));
    must(oj_join_batch(cpu, &input, &b, &error));
    ck_assert_int_eq(a.n_pairs, b.n_pairs);
    ck_assert_int_gt(a.n_pairs, 0);
    for (int64_t i = 0; i <= a.n_rows; i++)
        ck_assert_int_eq(a.offset[i], b.offset[i]);
    for (int64_t i = 0; i < a.n_pairs; i++)
        ck_assert_int_eq(a.join_row[i], b.join_row[i]);
    oj_join_close(cpu);
}

static void is_on(const struct oj_join *join, const char *backend,
                  const char *why)
{
    ck_assert_str_eq(oj_join_backend(join)->name, backend);
    ck_assert_msg(strstr(oj_join_reason(join), why) != NULL,
                  "\"%s\" has no \"%s\"", oj_join_reason(join), why);
}

/* The device decides nearly all of these. */
TEST(taken)
{
    static const enum oj_op ops[] = {OJ_OP_INTERSECTS, OJ_OP_DISJOINT,
                                     OJ_OP_BBOX};
    const struct oj_flat input = oj_flat_buf_view(&lines);
    set("");
    for (int i = 0; i < 3; i++)
    {
        struct oj_join *join = open_join("auto", ops[i], SHAPES, MANY);
        is_on(join, "cuda", " vertices: ");
        is_on(join, "cuda", " s on a GPU");
        ck_assert_str_eq(oj_join_method(join, &input),
                         ops[i] == OJ_OP_BBOX ? "boxes on the GPU" : ON_GPU);
        same_as_cpu(join, ops[i], &lines);
        same_as_cpu(join, ops[i], &zones);
        oj_join_close(join);
    }
}

/* The CPU decides what a device finds: nothing is gained. */
TEST(left)
{
    static const enum oj_op ops[] = {OJ_OP_TOUCHES, OJ_OP_WITHIN,
                                     OJ_OP_OVERLAPS, OJ_OP_CROSSES};
    set("");
    for (int i = 0; i < 4; i++)
    {
        struct oj_join *join = open_join("auto", ops[i], SHAPES, MANY);
        char why[80];
        snprintf(why, sizeof why, "-op %s is decided on the CPU",
                 oj_op_get(ops[i])->name);
        is_on(join, "cpu", why);
        oj_join_close(join);
    }
}

TEST(small)
{
    struct oj_join *join;
    set("");
    join = open_join("auto", OJ_OP_INTERSECTS, SHAPES, 90);
    is_on(join, "cpu", "90 rows, ");
    same_as_cpu(join, OJ_OP_INTERSECTS, &lines);
    is_on(join, "cpu", "90 rows, 480 vertices: ");
    oj_join_close(join);
    join = open_join("auto", OJ_OP_INTERSECTS, SHAPES, 0);
    same_as_cpu(join, OJ_OP_INTERSECTS, &lines);
    is_on(join, "cpu", "90 rows, 480 vertices: ");
    oj_join_close(join);
}

/* How many vertices rows have is known with the first of them. */
TEST(known_by_batch)
{
    LAYER large = {0};
    struct oj_join *join;
    double *xy = oj_malloc(2 * 20001, sizeof *xy);
    ck_assert_ptr_nonnull(xy);
    for (int i = 0; i < 20000; i++)
    {
        xy[2 * i] = 20 + 15 * cos(i * (6.283185307179586 / 20000));
        xy[2 * i + 1] = 9 + 8 * sin(i * (6.283185307179586 / 20000));
    }
    xy[40000] = xy[0];
    xy[40001] = xy[1];
    add_polygon(&large, 20001, xy);
    oj_free(xy);
    set("");
    join = open_join("auto", OJ_OP_INTERSECTS, SHAPES, 2000);
    is_on(join, "cpu", "2000 rows, ");
    same_as_cpu(join, OJ_OP_INTERSECTS, &large);
    is_on(join, "cuda", "2000 rows, 4000");
    oj_join_close(join);
}

/* Kinds are not known, or both come. */
TEST(any_kinds)
{
    struct oj_join *join;
    set("");
    join = open_join("auto", OJ_OP_INTERSECTS, 0, MANY);
    same_as_cpu(join, OJ_OP_INTERSECTS, &lines);
    is_on(join, "cuda", " s on a GPU");
    same_as_cpu(join, OJ_OP_INTERSECTS, &points);
    same_as_cpu(join, OJ_OP_INTERSECTS, &zones);
    is_on(join, "cuda", " s on a GPU");
    oj_join_close(join);
}

/* A process that has used a device does not start it again. */
TEST(started)
{
    static const char estimate[] = "1000000 rows, ";
    struct oj_join *join;
    double before, after;
    const char *at;
    set("");
    join = open_join("auto", OJ_OP_INTERSECTS, SHAPES, 1000000);
    is_on(join, "cpu", estimate);
    at = strstr(oj_join_reason(join), "threads, ");
    ck_assert_ptr_nonnull(at);
    before = atof(at + strlen("threads, "));
    oj_join_close(join);
    join = open_join("cuda", OJ_OP_INTERSECTS, SHAPES, 0);
    same_as_cpu(join, OJ_OP_INTERSECTS, &lines);
    oj_join_close(join);
    join = open_join("auto", OJ_OP_INTERSECTS, SHAPES, 1000000);
    is_on(join, "cuda", estimate);
    at = strstr(oj_join_reason(join), "threads, ");
    ck_assert_ptr_nonnull(at);
    after = atof(at + strlen("threads, "));
    ck_assert(after < 0.5 * before);
    oj_join_close(join);
}

/* A device that cannot be used, or no more. */
TEST(failing)
{
    static const char *const hows[] = {"none", "refuse", "full", "lost"};
    static const char *const whys[] = {"no fake device either", "too large",
                                       "fake device is full",
                                       "fake device is lost"};
    for (int i = 0; i < 4; i++)
    {
        struct oj_join *join;
        set(hows[i]);
        join = open_join("auto", OJ_OP_INTERSECTS, SHAPES, MANY);
        same_as_cpu(join, OJ_OP_INTERSECTS, &lines);
        is_on(join, "cpu", "no GPU: ");
        is_on(join, "cpu", whys[i]);
        same_as_cpu(join, OJ_OP_INTERSECTS, &zones);
        oj_join_close(join);
    }
}

/* Memory may be enough for the next batch. */
TEST(crowded)
{
    struct oj_join *join;
    set("crowded");
    join = open_join("auto", OJ_OP_INTERSECTS, SHAPES, MANY);
    same_as_cpu(join, OJ_OP_INTERSECTS, &lines);
    is_on(join, "cuda", "fake device is crowded");
    same_as_cpu(join, OJ_OP_INTERSECTS, &lines);
    oj_join_close(join);
}

int main(void)
{
    unsetenv("CK_FORK"); /* a test may kill its process */
    tcase_add_checked_fixture(tests_open("gpu_shapes"), make_layers,
                              free_layers);
    return tests_run();
}
