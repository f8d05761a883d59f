/* Cells of segments compute the distance of a point from a segment. It equals
 * that of the kernels bit for bit, for numbers of any size. Cells also leave
 * the right cases to other code.
 * Kind: unit, property. OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../random_numbers.h"
#include "../run_tests.h"

#include "../../../cuda/joins/nearest/cuda_segment_cells_bounds.cuh"

static double pick_number(void)
{
    double v = between(-2.0, 2.0);
    switch (pick(6))
    {
        case 0:
            return pick(5) - 2.0;
        case 1:
            return v * 1e6;
        case 2:
            return nudge(1.0, 3);
        case 3:
            return ldexp(v, pick(280) - 140);
        case 4: /* numbers whose quotients underflow */
            return pick(2) ? ldexp(v, -1060) : 0.0;
        default:
            return v;
    }
}

TEST(one_distance)
{
    int64_t n = 200000 * rounds(1), n_lost = 0, n_first = 0;
    random_state = first_seed();
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_cuda_segment e = {pick_number(), pick_number(), pick_number(),
                                    pick_number()};
        double px = pick_number(), py = pick_number(), expected;
        if (one_in(4)) /* on the segment, or near it */
        {
            double t = pick(5) * 0.25;
            px = nudge(e.ax + t * (e.bx - e.ax), 2);
            py = nudge(e.ay + t * (e.by - e.ay), 2);
        }
        if (oj_near_has_no_length(e))
        {
            n_lost++;
            continue;
        }
        expected = oj_segment_distance(px, py, e.ax, e.ay, e.bx, e.by);
        n_first += expected == oj_point_distance(px, py, e.ax, e.ay);
        ck_assert_msg(bits_of(oj_near_distance(e, px, py)) == bits_of(expected),
                      "%a %a from %a %a .. %a %a", px, py, e.ax, e.ay, e.bx,
                      e.by);
    }
    ck_assert(n_lost < n / 2 && n_first > 0 && n_first < n);
}

/* Cases that cells leave to other code. */
TEST(refused)
{
    struct oj_near_square square;
    ck_assert(!oj_near_square_make(0, 0, 1e31, 1, 1e31, 1.0, 5, &square));
    ck_assert(!oj_near_square_make(0, 0, 1e-30, 0, 1e-30, 0.0, 5, &square));
    ck_assert(oj_near_square_make(3, 3, 3, 3, 3, 0.0, 1, &square));
    ck_assert(oj_near_square_make(0, 0, 0, 0, 0, 0.0, 1, &square));
    ck_assert(oj_near_square_make(0, 0, 9, 9, 9, INFINITY, 1, &square));
    ck_assert(square.has_outside);
    ck_assert(oj_near_has_no_length({0.0, 0.0, 1e-160, 0.0}));
    ck_assert(!oj_near_has_no_length({1.0, 0.0, 1.0, 0.0}));
}

int main(void)
{
    tests_open("near_cells");
    return tests_run();
}
