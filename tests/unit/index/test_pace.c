/* The number of rows that are sent to a device at once. Simulated joins have
 * known times: pieces must be so short that cancelling does not wait long, and
 * few.
 * Kind: property. */
#include "../../../cuda/foundations/index/cuda_pace.h"
#include "../run_tests.h"

#include <math.h>

/* Number of rows that the device works on at the same time. */
#define ABREAST 50000

/* Times of a simulated join, in seconds. One row alone takes alone_s. On a
 * device that is fully used, each row adds row_s. */
struct simulated_join
{
    double alone_s, row_s;
};

struct simulated_run
{
    int64_t n_pieces;
    double all_s, longest_s; /* maximum time of a piece but the first */
};

static struct simulated_run simulate_pieces(struct simulated_join job,
                                            int64_t n_rows)
{
    struct oj_cuda_pace pace = {0, 0.0};
    struct simulated_run r = {0, 0.0, 0.0};
    for (int64_t first = 0; first < n_rows;)
    {
        int64_t n = oj_cuda_pace_next_rows(&pace, n_rows - first);
        double waves = ceil((double)n / ABREAST);
        double s = 0.0002 + job.alone_s * waves + job.row_s * (double)n;
        ck_assert_int_ge(n, 1);
        ck_assert_int_le(n, n_rows - first);
        oj_cuda_pace_record(&pace, n, s);
        first += n;
        r.n_pieces++;
        r.all_s += s;
        if (r.n_pieces > 1)
            r.longest_s = fmax(r.longest_s, s);
    }
    return r;
}

TEST(short_jobs_are_two_pieces)
{
    struct simulated_join job = {0.0, 1e-7};
    ck_assert_int_eq(simulate_pieces(job, 500000).n_pieces, 2);
    ck_assert_int_eq(simulate_pieces(job, 1000).n_pieces, 1);
}

/* A row takes from 1 us to 10 ms of the whole device. */
TEST(pieces_of_slow_rows_are_short)
{
    for (double row_s = 1e-6; row_s < 0.011; row_s *= 1.5)
    {
        struct simulated_join job = {0.0, row_s};
        int64_t n_rows = (int64_t)(20.0 / row_s);
        struct simulated_run r = simulate_pieces(job, n_rows);
        ck_assert_double_lt(r.longest_s, 1.0);
        ck_assert_int_le(r.n_pieces, 400);
    }
}

/* The time of a row is mostly latency, and the device runs ABREAST rows at a
 * time. Pieces take less than 1 s. They are still so large that the whole job
 * takes at most about twice the least possible time. */
TEST(pieces_of_long_walks_are_large)
{
    for (double alone_s = 0.001; alone_s < 0.25; alone_s *= 1.5)
    {
        struct simulated_join job = {alone_s, 1e-8};
        struct simulated_run r = simulate_pieces(job, 1000000);
        double floor_s = alone_s * 1000000 / ABREAST;
        ck_assert_double_lt(r.longest_s, 1.0);
        ck_assert_double_lt(r.all_s, 2.0 * floor_s + 12.0 * alone_s + 0.1);
    }
}

/* A few very slow rows make the next pieces small, but not all later ones. */
TEST(pace_recovers)
{
    struct oj_cuda_pace pace = {0, 0.0};
    oj_cuda_pace_record(&pace, 256, 0.9);
    for (int i = 0; i < 3; i++)
        oj_cuda_pace_record(&pace, oj_cuda_pace_next_rows(&pace, 1 << 20),
                            0.0001);
    ck_assert_int_eq(oj_cuda_pace_next_rows(&pace, 1 << 20), 1 << 20);
}

int main(void)
{
    tests_open("pace");
    return tests_run();
}
