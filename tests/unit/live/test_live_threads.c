/* A batch that several threads apply makes the pages that one thread makes,
 * even beside readers of earlier states.
 * Kinds: property, memory, threads. */
#include "../../../flatten/base/oj_alloc.h"
#include "../run_tests.h"

#include "../random_numbers.h"
#include "live_structure.h"
#include "live_trial.h"

static struct plain_points points;
static struct random_batch batch;

/* --- equal states ----------------------------------------------------------
 */

static void expect_equal_pages(const struct live_page *a,
                               const struct live_page *b)
{
    const struct live_block *in_a = a->block, *in_b = b->block;
    expect((in_a == NULL) == (in_b == NULL) && a->next == b->next,
           "seed %llu: a page in use, or a chain", (unsigned long long)seed);
    if (in_a == NULL)
        return;
    expect(memcmp(&a->cell, &b->cell, sizeof a->cell) == 0 &&
               memcmp(&a->box, &b->box, sizeof a->box) == 0 &&
               a->parent == b->parent && a->depth == b->depth && a->n == b->n &&
               a->n_points == b->n_points && a->first_hole == b->first_hole,
           "seed %llu: different pages", (unsigned long long)seed);
    for (int slot = 0; slot < a->n; slot++)
        expect(in_a->id[slot] == in_b->id[slot] &&
                   bits_of(in_a->x[slot]) == bits_of(in_b->x[slot]) &&
                   bits_of(in_a->y[slot]) == bits_of(in_b->y[slot]),
               "seed %llu: different slots", (unsigned long long)seed);
}

static void expect_equal_nodes(const struct live_node *a,
                               const struct live_node *b)
{
    expect(memcmp(a->child, b->child, sizeof a->child) == 0 &&
               memcmp(&a->cover, &b->cover, sizeof a->cover) == 0 &&
               a->sx == b->sx && a->sy[0] == b->sy[0] && a->sy[1] == b->sy[1] &&
               a->parent == b->parent && a->depth == b->depth,
           "seed %llu: different nodes", (unsigned long long)seed);
}

static void expect_equal_states(struct oj_live *first, struct oj_live *second)
{
    const struct live_state *a = oj_live_acquire_state(first);
    const struct live_state *b = oj_live_acquire_state(second);
    expect(a->root == b->root && a->n_pages == b->n_pages &&
               a->n_nodes == b->n_nodes && a->n_leaves == b->n_leaves &&
               a->n_points == b->n_points && a->free_page == b->free_page &&
               a->free_node == b->free_node,
           "seed %llu: different states", (unsigned long long)seed);
    for (int64_t i = 0; i < a->n_pages; i++)
        expect_equal_pages(&a->page[i], &b->page[i]);
    for (int64_t i = 0; i < a->n_nodes; i++)
        expect_equal_nodes(&a->node[i], &b->node[i]);
    oj_live_release_state(first, a);
    oj_live_release_state(second, b);
}

static void expect_equal_counts(struct oj_live *first, struct oj_live *second)
{
    struct oj_live_counts a = oj_live_count(first), b = oj_live_count(second);
    a.n_bytes = b.n_bytes;
    expect(memcmp(&a, &b, sizeof a) == 0, "seed %llu: different counts",
           (unsigned long long)seed);
}

/* --- readers ---------------------------------------------------------------
 */

/* A state that a reader holds while batches are applied, and the sum of its
 * points. */
struct held
{
    struct oj_live *live;
    const struct live_state *state;
    double sum;
};

static double sum_of_state(const struct live_state *state)
{
    double sum = 0.0;
    for (int64_t p = 0; p < state->n_pages; p++)
    {
        const struct live_page *page = &state->page[p];
        for (int slot = 0; page->block != NULL && slot < page->n; slot++)
        {
            double x = page->block->x[slot], y = page->block->y[slot];
            if (x == x)
                sum += (x + 3.0 * y) * (double)(page->block->id[slot] % 1009);
        }
    }
    return sum;
}

static void hold(struct held *h, struct oj_live *live)
{
    h->live = live;
    h->state = oj_live_acquire_state(live);
    h->sum = sum_of_state(h->state);
}

static void release(struct held *h)
{
    if (h->live == NULL)
        return;
    expect(sum_of_state(h->state) == h->sum, "seed %llu: a held state changed",
           (unsigned long long)seed);
    oj_live_release_state(h->live, h->state);
    h->live = NULL;
}

/* --- batches ---------------------------------------------------------------
 */

static const int thread_counts[] = {1, 2, 4, 3};

#define N_LIVES ((int)(sizeof thread_counts / sizeof *thread_counts))

static void apply_to(struct oj_live *live, const struct random_batch *b)
{
    struct oj_error err;
    expect(oj_live_apply(live, b->n, b->id, b->x, b->y, &err) == OJ_OK,
           "seed %llu: %s", (unsigned long long)seed, err.message);
}

/* Makes a batch of so many changes that all threads take part. */
static void make_large_batch(struct random_batch *b,
                             const struct plain_points *p, enum batch_kind kind)
{
    int n = p->n_keys / 2 + pick(p->n_keys / 2);
    b->n = 0;
    for (int i = 0; i < n; i++)
        put_random_change(b, p, kind, pick(p->n_keys));
}

TEST_LOOP(states_do_not_depend_on_threads, OJ_LIVE_AUTO, OJ_LIVE_KDTREE + 1)
{
    EACH_ROUND(3)
    {
        struct oj_live *live[N_LIVES];
        struct held held[N_LIVES] = {{0}};
        memset(&points, 0, sizeof points);
        points.n_keys = MOST_KEYS;
        for (int i = 0; i < N_LIVES; i++)
            ck_assert(oj_live_new((enum oj_live_tree)_i, thread_counts[i],
                                  &live[i], NULL) == OJ_OK);
        for (int k = 0; k < 14; k++)
        {
            enum batch_kind kind =
                k == 0 ? BATCH_ANYWHERE : (enum batch_kind)pick(N_BATCH_KINDS);
            int holds = pick(3);
            if (one_in(4))
                make_random_batch(&batch, &points, kind);
            else
                make_large_batch(&batch, &points, kind);
            for (int i = 0; i < N_LIVES; i++)
            {
                if (holds > 0)
                    release(&held[i]);
                if (holds > 1)
                    hold(&held[i], live[i]);
                apply_to(live[i], &batch);
            }
            plain_apply(&points, &batch);
            expect(check_structure(live[0]).n_points == points.n,
                   "seed %llu: %d points", (unsigned long long)seed, points.n);
            for (int i = 1; i < N_LIVES; i++)
            {
                (void)check_structure(live[i]);
                expect_equal_states(live[0], live[i]);
                expect_equal_counts(live[0], live[i]);
            }
        }
        for (int i = 0; i < N_LIVES; i++)
        {
            release(&held[i]);
            oj_live_free(live[i]);
        }
    }
}

/* Two million changes, and so many points that the tree is built in parallel
 * below a tree of a sample (the skeleton of live_build.c). */
TEST_LOOP(many_points, OJ_LIVE_AUTO, OJ_LIVE_KDTREE + 1)
{
    enum
    {
        N = 600000
    };
    static int64_t id[N];
    static double x[N], y[N];
    static const double share[] = {1.0, 0.3, 0.1, 0.9};
    struct oj_live *live[2];
    random_state = 41;
    for (int i = 0; i < 2; i++)
        ck_assert(oj_live_new((enum oj_live_tree)_i, 1 + 3 * i, &live[i],
                              NULL) == OJ_OK);
    for (int k = 0; k < 4; k++)
    {
        int64_t n = (int64_t)(N * share[k]), first = pick((int)(N - n) + 1);
        for (int64_t i = 0; i < n; i++)
        {
            id[i] = (first + i) * 7;
            x[i] = between(-1000, 1000);
            y[i] = one_in(3) ? 17.0 : between(-1000, 1000);
        }
        for (int i = 0; i < 2; i++)
        {
            ck_assert(oj_live_apply(live[i], n, id, x, y, NULL) == OJ_OK);
            (void)check_structure(live[i]);
        }
        expect_equal_states(live[0], live[1]);
        expect_equal_counts(live[0], live[1]);
    }
    for (int i = 0; i < 2; i++)
        oj_live_free(live[i]);
}

/* --- failing allocations ----------------------------------------------------
 */

static void expect_points(struct oj_live *live, const struct plain_points *p)
{
    expect(check_structure(live).n_points == p->n, "seed %llu: not %d points",
           (unsigned long long)seed, p->n);
    for (int key = 0; key < p->n_keys; key++)
    {
        int64_t at = live_ids_find(&live->ids, id_of_key(key));
        const struct live_entry *e;
        const struct live_block *block;
        expect((at >= 0) == p->is_there[key], "key %d", key);
        if (at < 0)
            continue;
        e = &live->ids.entry[at];
        block = live->state->page[e->page].block;
        expect(block->x[e->slot] == p->x[key] && block->y[e->slot] == p->y[key],
               "key %d is elsewhere", key);
    }
}

/* An allocation fails. Either the batch fails, and has no effect, or it
 * succeeds, because the memory was not necessary. All points are then where the
 * plain list has them. */
TEST_LOOP(nth_allocation_fails, 0, N_BATCH_KINDS)
{
    struct oj_live *live = NULL;
    struct held held = {0};
    int64_t n_failed = 0;
    int has_failed = 1; /* an allocation, not always the batch */
    random_state = 51 + (uint64_t)_i;
    memset(&points, 0, sizeof points);
    points.n_keys = MOST_KEYS;
    ck_assert(oj_live_new(OJ_LIVE_AUTO, 4, &live, NULL) == OJ_OK);
    make_large_batch(&batch, &points, BATCH_ANYWHERE);
    apply_to(live, &batch);
    plain_apply(&points, &batch);
    for (int64_t n = 1; has_failed; n += 1 + n / 16)
    {
        oj_status status;
        if (n % 3 == 0)
            hold(&held, live);
        make_large_batch(&batch, &points, (enum batch_kind)_i);
        (void)oj_alloc_fail_at(n);
        status = oj_live_apply(live, batch.n, batch.id, batch.x, batch.y, NULL);
        has_failed = oj_alloc_fail_at(0) >= n;
        n_failed += status != OJ_OK;
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        if (status == OJ_OK)
            plain_apply(&points, &batch);
        expect_points(live, &points);
        release(&held);
        if (points.n == 0)
        {
            make_large_batch(&batch, &points, BATCH_ANYWHERE);
            apply_to(live, &batch);
            plain_apply(&points, &batch);
        }
    }
    ck_assert_int_gt(n_failed, 1);
    oj_live_free(live);
}

int main(void)
{
    tests_open("live_threads");
    return tests_run();
}
