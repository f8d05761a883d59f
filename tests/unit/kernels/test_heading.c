/* Whether directions fit a heading is compared with angles in long double.
 * Bounds at multiples of 45 degrees must be exact. Unit vectors are compared
 * with the C library.
 * Kind: property, degenerate. */
#include "../random_numbers.h"
#include "../run_tests.h"

#include "../../../algs/foundations/kernels/oj_heading.h"

#define DEGREE 0.017453292519943295769236907684886L

TEST(unit_vectors_of_headings)
{
    double farthest = 0.0;
    for (int i = -540000; i <= 540000; i += 7)
    {
        const double degrees = (double)i / 1000.0;
        const long double angle = (long double)degrees * DEGREE;
        double x, y;
        oj_heading_vector(degrees, &x, &y);
        farthest = fmax(farthest, (double)fabsl(x - sinl(angle)));
        farthest = fmax(farthest, (double)fabsl(y - cosl(angle)));
    }
    ck_assert_msg(farthest < 8e-16, "%g", farthest);
}

TEST(unit_vectors_at_eighths)
{
    static const double at[8][2] = {{0, 1},  {1, 1},   {1, 0},  {1, -1},
                                    {0, -1}, {-1, -1}, {-1, 0}, {-1, 1}};
    for (int i = -12; i <= 12; i++)
    {
        const double *to = at[(i + 16) % 8];
        const double size = to[0] * to[1] == 0.0 ? 1.0 : sqrt(0.5);
        double x, y;
        oj_heading_vector(45.0 * i, &x, &y);
        ck_assert_msg(x == to[0] * size && y == to[1] * size, "%d: %g %g", i, x,
                      y);
    }
}

/* Returns the angle in degrees between the heading and (dx, dy). With
 * both_ways, (dx, dy) may also be reversed, and the lesser angle counts. */
static long double degrees_apart(double heading, double dx, double dy,
                                 int both_ways)
{
    long double d =
        fabsl(remainderl(atan2l(dx, dy) / DEGREE - (long double)heading, 360));
    return both_ways && d > 90 ? 180 - d : d;
}

TEST(property_fits_by_the_angle)
{
    static const double tolerances[] = {0,  1e-9, 10, 29.5, 44,  45,    60,
                                        89, 90,   91, 120,  135, 179.5, 180};
    int64_t n_fit = 0, n_close = 0;
    seed = random_state = first_seed();
    for (int64_t i = 0; i < 400000; i++)
    {
        const struct oj_heading_condition condition = {1, pick(2),
                                                       tolerances[pick(14)]};
        const double heading =
            pick(2) ? 15.0 * (pick(49) - 24) : 720.0 * unit() - 360.0;
        const struct oj_heading_range range =
            oj_heading_range_of(&condition, heading);
        const double dx = pick(3) ? pick(9) - 4 : unit() - 0.5;
        const double dy = pick(3) ? pick(9) - 4 : unit() - 0.5;
        const int fits = oj_heading_fits(&range, dx, dy);
        const long double over =
            degrees_apart(heading, dx, dy, condition.both_ways) -
            condition.tolerance;
        ck_assert(!range.is_all);
        if (dx == 0.0 && dy == 0.0)
        {
            ck_assert(!fits);
            continue;
        }
        n_fit += fits;
        /* bounds at multiples of 45 degrees are exact; others are rounded */
        if (fabsl(over) < 1e-12L)
        {
            n_close++;
            if (fmod(heading, 45.0) == 0.0 &&
                fmod(condition.tolerance, 45) == 0)
                ck_assert_msg(fits, "%.17g %g %g %g", heading,
                              condition.tolerance, dx, dy);
            continue;
        }
        ck_assert_msg(
            fits == (over < 0),
            "heading %.17g tolerance %g both %d: %.17g %.17g, over %Lg",
            heading, condition.tolerance, condition.both_ways, dx, dy, over);
    }
    ck_assert(n_fit > 50000 && n_close > 1000);
}

TEST(rows_without_a_heading)
{
    const struct oj_heading_condition condition = {1, 0, 30};
    static const double none[] = {
        (double)NAN, (double)INFINITY, -(double)INFINITY, 360.5, -361, 511};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    {
        const struct oj_heading_range range =
            oj_heading_range_of(&condition, none[i]);
        ck_assert(range.is_all && oj_heading_fits(&range, 0, 0) &&
                  oj_heading_fits(&range, -1, 2));
    }
}

int main(void)
{
    tests_open("headings");
    return tests_run();
}
