/* Rules for every backend. A batch with more than max_batch_pairs pairs is
 * refused, and one with exactly as many is not, for any number of threads. A
 * batch of one row is never refused. A cancel flag ends a batch, even without
 * candidates or within one pair.
 * Kind: unit, degenerate. */
#include "../references.h"

#include "../run_tests.h"

#include <pthread.h>
#include <time.h>

#define N_JOIN 600
#define N_INPUT 3000

static const enum oj_op ops[] = {OJ_OP_NEAREST, OJ_OP_DWITHIN,
                                 OJ_OP_INTERSECTS};

struct bounded_join
{
    const struct oj_backend *backend;
    struct oj_flat join, input;
    struct oj_relation relation;
    struct oj_options options;
};

/* Makes n squares of side `size` at x. Each is 0.01 above the one before. */
static struct oj_flat make_squares(struct oj_flat_buf *buf, int n, double x,
                                   double size)
{
    for (int i = 0; i < n; i++)
    {
        double y = 0.01 * i;
        add_square(buf, x, y, x + size, y + size);
    }
    return oj_flat_buf_view(buf);
}

static struct oj_flat make_points(struct oj_flat_buf *buf, int n)
{
    for (int i = 0; i < n; i++)
        add_point(buf, 0.5, 0.5 + 1e-4 * i);
    return oj_flat_buf_view(buf);
}

/* Opens a join and joins the first n_rows rows. Returns a status. */
static oj_status join_first_rows(const struct bounded_join *q, int64_t n_rows,
                                 struct oj_matches *out)
{
    struct oj_flat_slice batch = {0};
    struct oj_join *join;
    oj_status status = oj_join_open(&q->join, &q->relation, q->backend->name,
                                    &q->options, &join, &error);
    if (status != OJ_OK)
        return status;
    must(oj_flat_slice_make(&q->input, 0, n_rows, &batch, &error));
    status = oj_join_batch(join, &batch.flat, out, &error);
    oj_flat_slice_free(&batch);
    oj_join_close(join);
    return status;
}

static struct bounded_join make_bounded_join(const struct oj_backend *backend,
                                             enum oj_op op,
                                             const struct oj_flat *join,
                                             const struct oj_flat *input)
{
    struct bounded_join q = {
        .backend = backend, .join = *join, .input = *input};
    q.relation = oj_relation_default();
    q.relation.op = op;
    if (op == OJ_OP_DWITHIN)
        q.relation.max_distance = 1.0;
    if (backend == oj_backend_find("sphere"))
        q.relation.metric = OJ_METRIC_SPHERE;
    return q;
}

/* Calls test for each backend that needs no device and supports op. Returns the
 * number of backends. */
static int for_all_backends(enum oj_op op, const struct oj_flat *join,
                            const struct oj_flat *input,
                            void (*test)(struct bounded_join *))
{
    const struct oj_backend *backend;
    int n_asked = 0;
    for (int i = 0; (backend = oj_backend_at(i)) != NULL; i++)
    {
        struct bounded_join q = make_bounded_join(backend, op, join, input);
        MATCHES out = {0};
        oj_status status;
        if (strncmp(backend->name, "cuda", 4) == 0)
            continue;
        status = join_first_rows(&q, 1, &out);
        if (status == OJ_ERR_UNSUPPORTED)
            continue;
        must(status);
        test(&q);
        n_asked++;
    }
    return n_asked;
}

static void check_pair_limit(struct bounded_join *q)
{
    static const int threads[] = {1, 2, 7};
    MATCHES out = {0};
    q->relation.k = 5;
    q->relation.max_distance = q->backend == oj_backend_find("sphere")
                                   ? 1e6
                                   : q->relation.max_distance;
    for (int i = 0; i < 3; i++)
    {
        oj_status status;
        q->options.n_threads = threads[i];
        q->options.max_batch_pairs = 60;
        status = join_first_rows(q, 40, &out);
        ck_assert_msg(status == OJ_ERR_TOO_MANY_PAIRS,
                      "%s, -op %s, %d threads: %s", q->backend->name,
                      oj_op_get(q->relation.op)->name, threads[i],
                      oj_status_name(status));
        q->options.max_batch_pairs = 3;
        must(join_first_rows(q, 1, &out));
        ck_assert_int_gt(out.n_pairs, 3);
    }
}

TEST_LOOP(bounds, 0, 3)
{
    LAYER join_buf = {0}, point_buf = {0}, square_buf = {0};
    struct oj_flat join = make_squares(&join_buf, 60, 0.0, 1.0);
    struct oj_flat points = make_points(&point_buf, 40);
    struct oj_flat squares = make_squares(&square_buf, 40, 0.5, 1.0);
    if (ops[_i] != OJ_OP_INTERSECTS)
        ck_assert_int_ge(
            for_all_backends(ops[_i], &points, &points, check_pair_limit), 4);
    ck_assert_int_ge(
        for_all_backends(ops[_i], &join, &points, check_pair_limit), 4);
    ck_assert_int_ge(
        for_all_backends(ops[_i], &join, &squares, check_pair_limit), 4);
}

static int n_copies;

/* A copy of a join has the limit with which it was acquired. If it is acquired
 * again without a limit, it has none. */
static void check_limit_of_copies(struct bounded_join *q)
{
    struct oj_join *join, *taken;
    struct oj_flat_slice row = {0};
    MATCHES out = {0};
    q->relation.k = 5;
    if (q->backend == oj_backend_find("sphere"))
        q->relation.max_distance = 1e6;
    q->options.n_threads = 2;
    must(oj_flat_slice_make(&q->input, 0, 1, &row, &error));
    must(oj_join_open(&q->join, &q->relation, q->backend->name, &q->options,
                      &join, &error));
    for (int round = 0; round < 3; round++)
    {
        const int64_t bound = round == 1 ? 60 : 0;
        oj_status status;
        must(oj_join_acquire_bounded(join, NULL, bound, &taken, &error));
        status = oj_join_batch(taken, &q->input, &out, &error);
        if (taken == join)
            must(status);
        else
            ck_assert_msg(status == (bound > 0 ? OJ_ERR_TOO_MANY_PAIRS : OJ_OK),
                          "%s, -op %s, round %d: %s", q->backend->name,
                          oj_op_get(q->relation.op)->name, round,
                          oj_status_name(status));
        must(oj_join_batch(taken, &row.flat, &out, &error));
        n_copies += taken != join;
        oj_join_release(taken);
    }
    oj_flat_slice_free(&row);
    oj_join_close(join);
}

TEST_LOOP(bounds_of_copies, 0, 3)
{
    LAYER join_buf = {0}, point_buf = {0}, square_buf = {0};
    struct oj_flat join = make_squares(&join_buf, 60, 0.0, 1.0);
    struct oj_flat points = make_points(&point_buf, 40);
    struct oj_flat squares = make_squares(&square_buf, 40, 0.5, 1.0);
    n_copies = 0;
    if (ops[_i] != OJ_OP_INTERSECTS)
        for_all_backends(ops[_i], &points, &points, check_limit_of_copies);
    for_all_backends(ops[_i], &join, &points, check_limit_of_copies);
    for_all_backends(ops[_i], &join, &squares, check_limit_of_copies);
    ck_assert_int_ge(n_copies, ops[_i] == OJ_OP_INTERSECTS ? 6 : 9);
}

/* The limit is for the pairs of all threads together. Here few rows, joined by
 * few of the threads, have nearly all pairs. */
static void check_limit_of_all_threads(struct bounded_join *q)
{
    static const int threads[] = {1, 2, 7, 16, 128};
    MATCHES out = {0};
    int64_t n_pairs;
    q->relation.k = 50;
    q->relation.max_distance = q->backend == oj_backend_find("sphere")
                                   ? 1e6
                                   : q->relation.max_distance;
    must(join_first_rows(q, 3, &out));
    n_pairs = out.n_pairs;
    for (int i = 0; i < 5; i++)
    {
        oj_status status;
        q->options.n_threads = threads[i];
        q->options.max_batch_pairs = n_pairs;
        status = join_first_rows(q, 3, &out);
        ck_assert_msg(status == OJ_OK, "%s, -op %s, %d threads, %d pairs: %s",
                      q->backend->name, oj_op_get(q->relation.op)->name,
                      threads[i], (int)n_pairs, oj_status_name(status));
        ck_assert_int_eq(out.n_pairs, n_pairs);
        q->options.max_batch_pairs = n_pairs - 1;
        status = join_first_rows(q, 3, &out);
        ck_assert_msg(status == OJ_ERR_TOO_MANY_PAIRS,
                      "%s, -op %s, %d threads, %d of %d pairs: %s",
                      q->backend->name, oj_op_get(q->relation.op)->name,
                      threads[i], (int)n_pairs - 1, (int)n_pairs,
                      oj_status_name(status));
    }
}

TEST_LOOP(bound_of_all_threads, 0, 3)
{
    LAYER join_buf = {0}, point_buf = {0}, square_buf = {0};
    struct oj_flat join = make_squares(&join_buf, 60, 0.0, 1.0);
    struct oj_flat points = make_points(&point_buf, 40);
    struct oj_flat squares = make_squares(&square_buf, 40, 0.5, 1.0);
    if (ops[_i] != OJ_OP_INTERSECTS)
        ck_assert_int_ge(for_all_backends(ops[_i], &points, &points,
                                          check_limit_of_all_threads),
                         4);
    ck_assert_int_ge(
        for_all_backends(ops[_i], &join, &points, check_limit_of_all_threads),
        4);
    ck_assert_int_ge(
        for_all_backends(ops[_i], &join, &squares, check_limit_of_all_threads),
        4);
}

static void check_cancel_flag(struct bounded_join *q)
{
    static const int raised = 1;
    MATCHES out = {0};
    oj_status status;
    q->relation.max_distance = 1.0;
    q->options.n_threads = 2;
    q->options.cancel = &raised;
    status = join_first_rows(q, q->input.n_features, &out);
    ck_assert_msg(status == OJ_ERR_CANCELLED, "%s, -op %s: %s",
                  q->backend->name, oj_op_get(q->relation.op)->name,
                  oj_status_name(status));
}

/* The layers are far apart. */
TEST_LOOP(cancelled, 0, 3)
{
    LAYER join_buf = {0}, point_buf = {0}, square_buf = {0};
    struct oj_flat join = make_squares(&join_buf, N_JOIN, 100.0, 0.1);
    struct oj_flat points = make_points(&point_buf, N_INPUT);
    struct oj_flat squares = make_squares(&square_buf, N_INPUT, 0.5, 0.1);
    ck_assert_int_ge(
        for_all_backends(ops[_i], &points, &points, check_cancel_flag), 4);
    ck_assert_int_ge(
        for_all_backends(ops[_i], &join, &points, check_cancel_flag), 4);
    ck_assert_int_ge(
        for_all_backends(ops[_i], &join, &squares, check_cancel_flag), 4);
}

/* --- in the middle of a pair ----------------------------------------------
 */

#define N_VERTICES 20000

static void add_circle(struct oj_flat_buf *buf, double radius)
{
    begin(buf);
    add_part(buf, OJ_PART_LINE);
    add_round_ring(buf, N_VERTICES, 0, 0, radius, radius);
    end(buf);
}

static int flag;

static void sleep_s(double s)
{
    struct timespec t = {0, (long)(s * 1e9)};
    nanosleep(&t, NULL);
}

static void *set_flag_later(void *seconds)
{
    sleep_s(*(double *)seconds);
    __atomic_store_n(&flag, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Whenever the flag is set, the answer is complete or missing. Circles inside
 * one another are the pair that takes longest. */
TEST(cancelled_in_a_pair)
{
    LAYER join_buf = {0}, input_buf = {0};
    struct oj_flat join, input;
    MATCHES out = {0};
    struct bounded_join q;
    double truth, whole_s;
    struct timespec start, now;
    int n_cancelled = 0;
    add_circle(&join_buf, 100.0);
    add_circle(&input_buf, 101.0);
    join = oj_flat_buf_view(&join_buf);
    input = oj_flat_buf_view(&input_buf);
    q = make_bounded_join(oj_backend_find("cpu"), OJ_OP_NEAREST, &join, &input);
    clock_gettime(CLOCK_MONOTONIC, &start);
    must(join_first_rows(&q, 1, &out));
    clock_gettime(CLOCK_MONOTONIC, &now);
    whole_s = (double)(now.tv_sec - start.tv_sec) +
              1e-9 * (double)(now.tv_nsec - start.tv_nsec);
    truth = out.measure[0];
    q.options.cancel = &flag;
    for (int i = 0; i < 20; i++)
    {
        double late_s = fmin(0.9, whole_s * i / 20.0);
        pthread_t thread;
        oj_status status;
        flag = 0;
        ck_assert_int_eq(pthread_create(&thread, NULL, set_flag_later, &late_s),
                         0);
        status = join_first_rows(&q, 1, &out);
        pthread_join(thread, NULL);
        if (status == OJ_ERR_CANCELLED)
        {
            n_cancelled++;
            continue;
        }
        must(status);
        ck_assert_int_eq(out.join_row[0], 0);
        ck_assert_double_eq(out.measure[0], truth);
    }
    ck_assert_int_gt(n_cancelled, 0);
}

int main(void)
{
    tests_open("bounds");
    return tests_run();
}
