/* Kind: unit, memory. Points in the order of the plane: every point once, its
 * columns with it, neighbours close. */
#include "../../../algs/base/oj_point_order.h"

#include "../../../flatten/base/oj_array.h"

#include <math.h>
#include <string.h>

#include "../random_numbers.h"
#include "../run_tests.h"

enum
{
    N = 5000
};

static double x[N], y[N], reach[N];
static int64_t fid[N];
static int32_t class[N];

static struct oj_flat make_points(int kind)
{
    struct oj_flat flat = {0};
    random_state = 7;
    for (int i = 0; i < N; i++)
    {
        x[i] = kind == 1 ? 5.0 : between(-1e6, 1e6);
        y[i] = kind == 1 ? 5.0 : between(1e6, 3e6);
        if (kind == 2 && one_in(3))
            x[i] = y[i] = (double)NAN;
        if (kind == 3)
            x[i] = any_size(-1000, 1000);
        reach[i] = x[i] + 1;
        fid[i] = 1000000 - i;
        class[i] = i;
    }
    flat.n_features = flat.n_vertices = N;
    flat.x = x;
    flat.y = y;
    flat.fid = fid;
    flat.max_distance = reach;
    flat.on_class = flat.exclude_class = class;
    return flat;
}

static int same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

TEST(unit_every_point_once)
{
    struct oj_point_order order = {0};
    for (int kind = 0; kind < 4; kind++)
    {
        static char is_there[N];
        struct oj_flat flat = make_points(kind);
        ck_assert_int_eq(oj_point_order_apply(&order, &flat, NULL), OJ_OK);
        ck_assert_int_eq(order.n, N);
        memset(is_there, 0, sizeof is_there);
        for (int i = 0; i < N; i++)
        {
            int32_t row = order.row[i];
            expect(row >= 0 && row < N && !is_there[row], "row %d", (int)row);
            is_there[row] = 1;
            expect(same_bits(flat.x[i], x[row]) &&
                       same_bits(flat.y[i], y[row]) &&
                       same_bits(flat.max_distance[i], reach[row]) &&
                       flat.fid[i] == fid[row] && flat.on_class[i] == row &&
                       flat.exclude_class[i] == row,
                   "columns of row %d", (int)row);
        }
    }
    oj_point_order_free(&order);
}

TEST(unit_neighbours_are_close)
{
    struct oj_point_order order = {0};
    struct oj_flat flat = make_points(0);
    double before = 0, after = 0;
    ck_assert_int_eq(oj_point_order_apply(&order, &flat, NULL), OJ_OK);
    for (int i = 1; i < N; i++)
    {
        before += hypot(x[i] - x[i - 1], y[i] - y[i - 1]);
        after += hypot(flat.x[i] - flat.x[i - 1], flat.y[i] - flat.y[i - 1]);
    }
    ck_assert(after * 20 < before);
    oj_point_order_free(&order);
}

TEST(degenerate_layers)
{
    struct oj_point_order order = {0};
    struct oj_flat flat = {0};
    const int64_t offset[2] = {0, 0};
    ck_assert_int_eq(oj_point_order_apply(&order, &flat, NULL), OJ_OK);
    ck_assert_int_eq(order.n, 0);
    flat = make_points(0);
    flat.part_offset = offset; /* the long form */
    ck_assert_int_eq(oj_point_order_apply(&order, &flat, NULL), OJ_OK);
    ck_assert(order.n == 0 && flat.x == x);
    flat = make_points(0);
    flat.fid = NULL;
    flat.max_distance = NULL;
    flat.on_class = flat.exclude_class = NULL;
    ck_assert_int_eq(oj_point_order_apply(&order, &flat, NULL), OJ_OK);
    ck_assert(order.n == N && flat.fid == NULL && flat.max_distance == NULL &&
              flat.on_class == NULL);
    oj_point_order_free(&order);
}

TEST(memory_every_allocation_fails)
{
    for (int64_t i = 1; i <= 8; i++)
    {
        struct oj_point_order order = {0};
        struct oj_flat flat = make_points(0);
        struct oj_error error;
        oj_status status;
        oj_alloc_fail_at(i);
        status = oj_point_order_apply(&order, &flat, &error);
        oj_alloc_fail_at(0);
        ck_assert_int_eq(status, OJ_ERR_NOMEM);
        ck_assert(flat.x == x && flat.fid == fid && order.n == 0);
        oj_point_order_free(&order);
    }
}

int main(void)
{
    tests_open("point order");
    return tests_run();
}
