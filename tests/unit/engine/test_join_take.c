/* Several threads use one join. They use copies, whose batches have their own
 * cancel flags, or take turns in the order of their calls.
 * Kind: unit. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* declares syscall() */
#endif

#include "../references.h"

#include "../run_tests.h"
#include "../sleeping_thread.h"

#include <pthread.h>

#define N_POINTS 2000

static struct oj_flat make_points(struct oj_flat_buf *buf)
{
    for (int i = 0; i < N_POINTS; i++)
        add_point(buf, (double)(i % 50) + 0.25, (double)(i / 50) + 0.25);
    return oj_flat_buf_view(buf);
}

TEST(copies_poll_their_own_flags)
{
    static const int raised = 1;
    static const enum oj_op ops[] = {OJ_OP_NEAREST, OJ_OP_DWITHIN,
                                     OJ_OP_INTERSECTS, OJ_OP_WITHIN};
    LAYER point_buf = {0}, square_buf = {0};
    struct oj_flat points = make_points(&point_buf), squares;
    MATCHES out = {0};
    add_square(&square_buf, 0, 0, 20, 20);
    add_square(&square_buf, 10, 10, 30, 30);
    squares = oj_flat_buf_view(&square_buf);
    for (int i = 0; i < 8; i++)
    {
        const struct oj_flat *side = i % 2 == 0 ? &points : &squares;
        struct oj_relation relation = oj_relation_default();
        const struct oj_options options = {.n_threads = 2};
        struct oj_join *join, *first, *second, *again;
        int64_t n_pairs;
        relation.op = ops[i / 2];
        if (relation.op == OJ_OP_DWITHIN)
            relation.max_distance = 1.0;
        must(oj_join_open(side, &relation, "cpu", &options, &join, &error));
        must(oj_join_acquire(join, &raised, &first, &error));
        must(oj_join_acquire(join, NULL, &second, &error));
        ck_assert_ptr_ne(first, join);
        ck_assert_ptr_ne(second, join);
        ck_assert_ptr_ne(first, second);
        for (int round = 0; round < 2; round++)
        {
            ck_assert_int_eq(oj_join_batch(first, &points, &out, &error),
                             OJ_ERR_CANCELLED);
            must(oj_join_batch(second, &points, &out, &error));
        }
        n_pairs = out.n_pairs;
        oj_join_release(first);
        /* a copy that is acquired again does not keep its former cancel flag */
        must(oj_join_acquire(join, NULL, &again, &error));
        ck_assert_ptr_eq(again, first);
        must(oj_join_batch(again, &points, &out, &error));
        ck_assert_int_eq(out.n_pairs, n_pairs);
        oj_join_release(again);
        oj_join_release(second);
        oj_join_free_unused_copies(join, 1);
        must(oj_join_acquire(join, NULL, &again, &error));
        ck_assert_ptr_eq(again, second);
        oj_join_release(again);
        oj_join_close(join);
    }
}

struct taker
{
    pthread_t thread;
    struct oj_join *join;
    int cancel, number;
    pid_t thread_number;
    oj_status status;
};

static int n_turns;
static int turn[8];

static void *take_and_give_back(void *user)
{
    struct taker *taker = user;
    struct oj_join *taken;
    store_thread_number(&taker->thread_number);
    taker->status = oj_join_acquire(taker->join, &taker->cancel, &taken, NULL);
    if (taker->status != OJ_OK)
        return NULL;
    if (taken == taker->join) /* alone */
        turn[n_turns++] = taker->number;
    oj_join_release(taken);
    return NULL;
}

/* Reference backends have no copies, so threads take turns. */
TEST(turns_in_the_order_of_calls)
{
    LAYER point_buf = {0};
    const struct oj_options options = {.n_threads = 1};
    const struct oj_relation relation = oj_relation_default();
    struct oj_flat points = make_points(&point_buf);
    struct oj_join *join, *taken;
    struct taker takers[4] = {{0}};
    MATCHES out = {0};
    must(oj_join_open(&points, &relation, "geos", &options, &join, &error));
    must(oj_join_acquire(join, NULL, &taken, &error));
    must(oj_join_batch(taken, &points, &out, &error));
    ck_assert_int_eq(out.n_pairs, N_POINTS);
    oj_join_release(taken);
    must(oj_join_acquire(join, NULL, &taken, &error));
    ck_assert_ptr_eq(taken, join);
    n_turns = 0;
    for (int i = 0; i < 4; i++)
    {
        takers[i] = (struct taker){.join = join, .number = i};
        ck_assert_int_eq(pthread_create(&takers[i].thread, NULL,
                                        take_and_give_back, &takers[i]),
                         0);
        wait_until_thread_sleeps(&takers[i].thread_number);
    }
    __atomic_store_n(&takers[1].cancel, 1, __ATOMIC_RELAXED);
    pthread_join(takers[1].thread, NULL);
    ck_assert_int_eq(takers[1].status, OJ_ERR_CANCELLED);
    ck_assert_int_eq(n_turns, 0);
    oj_join_release(taken);
    for (int i = 0; i < 4; i++)
    {
        if (i != 1)
            pthread_join(takers[i].thread, NULL);
    }
    ck_assert_int_eq(n_turns, 3);
    ck_assert_int_eq(turn[0], 0);
    ck_assert_int_eq(turn[1], 2);
    ck_assert_int_eq(turn[2], 3);
    ck_assert_int_eq(oj_join_is_on_cpu(join), 0);
    oj_join_close(join);
}

int main(void)
{
    tests_open("join_take");
    return tests_run();
}
