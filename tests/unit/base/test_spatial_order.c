/* Kinds: unit, degenerate, memory. Points that are listed and made bucket by
 * bucket come as those that are sorted as a whole. */
#include "../../../algs/foundations/base/cpu_spatial_order.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../random_numbers.h"
#include "../run_tests.h"

enum
{
    MOST_POINTS = 100000
};

static const struct
{
    int64_t n;
    int n_places; /* 0: everywhere */
    int nan_in;   /* one in so many is no point */
} cases[] = {
    {0, 0, 0},           {1, 0, 0},      {1, 0, 1},      {500, 3, 7},
    {8192, 0, 9},        {8193, 0, 100}, {70000, 1, 50}, {MOST_POINTS, 0, 20},
    {MOST_POINTS, 40, 0}};

static double x[MOST_POINTS], y[MOST_POINTS];

static void make_points(int i)
{
    for (int64_t p = 0; p < cases[i].n; p++)
    {
        int at =
            cases[i].n_places > 0 ? pick(cases[i].n_places) : pick(1 << 20);
        x[p] = at % 977 * 0.37;
        y[p] = (double)(at / 977) * 0.91;
        if (cases[i].nan_in > 0 && one_in(cases[i].nan_in))
            (one_in(2) ? x : y)[p] = (double)NAN;
    }
}

/* What was visited: by point the place of the point before it. */
struct visits
{
    int64_t *before; /* [points]; -2: not visited */
    int64_t n;
};

static oj_status note_points(const struct oj_ordered_point *point, int64_t n,
                             int thread, void *user, struct oj_error *err)
{
    struct visits *v = user;
    (void)thread;
    for (int64_t i = 0; i < n; i++)
    {
        uint32_t at = point[i].index;
        if (at >= MOST_POINTS || v->before[at] != -2 || point[i].x != x[at] ||
            point[i].y != y[at])
            return oj_fail(err, OJ_ERR_INTERNAL, "point %u", at);
        v->before[at] = i > 0 ? (int64_t)point[i - 1].index : -1;
    }
    __atomic_fetch_add(&v->n, n, __ATOMIC_RELAXED);
    return OJ_OK;
}

static oj_status visit_points(struct oj_order *order, int n_threads, int64_t n,
                              struct visits *v, struct oj_error *err)
{
    for (int64_t p = 0; p < n; p++)
        v->before[p] = -2;
    v->n = 0;
    OJ_TRY(oj_order_list(order, n_threads, n, x, y, err));
    return oj_order_visit(order, n_threads, x, y, note_points, v, err);
}

TEST_LOOP(listed_points_are_the_sorted_ones, 0,
          (int)(sizeof cases / sizeof *cases))
{
    struct oj_order sorted = {0}, listed = {0};
    struct visits v = {malloc(MOST_POINTS * sizeof(int64_t)), 0};
    struct oj_error err = {OJ_OK, ""};
    int64_t n = cases[_i].n;
    ck_assert_ptr_nonnull(v.before);
    random_state = (uint64_t)_i;
    make_points(_i);
    for (int n_threads = 1; n_threads < 4; n_threads += 2)
    {
        ck_assert_int_eq(oj_order_build(&sorted, n_threads, n, x, y, &err),
                         OJ_OK);
        ck_assert_int_eq(oj_order_sort(&sorted, n_threads, NULL, NULL, &err),
                         OJ_OK);
        ck_assert_msg(visit_points(&listed, n_threads, n, &v, &err) == OJ_OK,
                      "%s", err.message);
        ck_assert_int_eq(v.n, sorted.n_points);
        ck_assert_int_eq(listed.n_points, sorted.n_points);
        ck_assert_int_eq(listed.n_buckets, sorted.n_buckets);
        for (int64_t b = 0; b < sorted.n_buckets; b++)
        {
            int64_t before = -1;
            for (int64_t i = sorted.bucket_offset[b];
                 i < sorted.bucket_offset[b + 1]; i++)
            {
                ck_assert_int_eq(v.before[sorted.point[i].index], before);
                before = (int64_t)sorted.point[i].index;
            }
        }
    }
    oj_order_free(&sorted);
    oj_order_free(&listed);
    free(v.before);
}

TEST(no_memory)
{
    struct visits v = {malloc(MOST_POINTS * sizeof(int64_t)), 0};
    oj_status status = OJ_ERR_NOMEM;
    struct oj_error err;
    ck_assert_ptr_nonnull(v.before);
    make_points(7);
    for (int64_t at = 1; status != OJ_OK; at++)
    {
        struct oj_order order = {0};
        (void)oj_alloc_fail_at(at);
        status = visit_points(&order, 2, cases[7].n, &v, &err);
        (void)oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        ck_assert_int_lt(at, 200);
        oj_order_free(&order);
    }
}

int main(void)
{
    tests_open("spatial_order");
    return tests_run();
}
