/* Joins by distance of features with 100,000 vertices, and of very many
 * features in one place.
 * Kind: large. */
#include "../references.h"

#include "../join_trial.h"
#include "../run_tests.h"

#include <time.h>

static void ask_backend(const struct oj_relation *relation,
                        const struct oj_flat *input, const struct oj_flat *join,
                        struct oj_matches *out)
{
    trial_truth(&(struct join_trial){.join = *join,
                                     .input = *input,
                                     .relation = *relation},
                out);
}

/* --- large features --------------------------------------------------------
 */

#define PI 3.141592653589793

/* Adds a ring of n edges around (x, y); wavy if wave > 0. */
static void add_round(struct oj_flat_buf *buf, double x, double y,
                      double radius, double wave, int64_t n)
{
    double *xs, *ys;
    begin(buf);
    add_part(buf, OJ_PART_POLYGON);
    must(oj_flat_buf_begin_ring(buf, &error));
    must(oj_flat_buf_add_vertices(buf, n + 1, &xs, &ys, &error));
    for (int64_t i = 0; i <= n; i++)
    {
        double angle = 2.0 * PI * (double)(i % n) / (double)n;
        double r = radius + wave * sin(angle * 1000.0);
        xs[i] = x + r * cos(angle);
        ys[i] = y + r * sin(angle);
    }
    end(buf);
}

/* Pairs of polygons with 100,000 vertices: disjoint, crossing, nested, equal.
 */
TEST(very_large)
{
    LAYER a = {0}, b = {0};
    struct oj_relation r = oj_relation_default();
    MATCHES m = {0};
    struct oj_flat va, vb;
    struct timespec start, now;
    add_round(&a, 0, 0, 10, 0.25, 100000);
    add_round(&b, 30, 0, 10, 0.25, 100000); /* about 9.5 apart */
    add_round(&b, 15, 0, 10, 0.25, 100000);
    add_round(&b, 0, 0, 5, 0.25, 100000);
    add_round(&b, 0, 0, 10, 0.25, 100000);
    va = oj_flat_buf_view(&a);
    vb = oj_flat_buf_view(&b);
    r.op = OJ_OP_DWITHIN;
    r.max_distance = 1000;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    ask_backend(&r, &va, &vb, &m);
    ck_assert_int_eq(m.n_pairs, 4);
    expect(fabs(m.measure[0] - 9.5) < 0.02, "apart: %.17g", m.measure[0]);
    expect(m.measure[1] == 0.0 && m.measure[2] == 0.0 && m.measure[3] == 0.0,
           "crossing, nested, equal: %g %g %g", m.measure[1], m.measure[2],
           m.measure[3]);
    r.distance_to = OJ_TO_BOUNDARY;
    ask_backend(&r, &va, &vb, &m);
    expect(fabs(m.measure[2] - 4.5) < 0.02, "rings: %.17g", m.measure[2]);
    r.op = OJ_OP_NEAREST;
    r.min_distance = 1.0;
    ask_backend(&r, &va, &vb, &m);
    ck_assert_int_eq(m.join_row[0], 2);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    expect(now.tv_sec - start.tv_sec < 20, "%d s",
           (int)(now.tv_sec - start.tv_sec));
}

/* --- batches ---------------------------------------------------------------
 */

/* Very many features in one place. Each point finds the first other feature
 * without tests of all. */
TEST_LOOP(one_place, 0, 2)
{
    LAYER points = {0};
    struct oj_relation r = oj_relation_default();
    MATCHES m = {0};
    struct oj_flat view;
    struct timespec start, now;
    for (int i = 0; i < 200000; i++)
        add_point(&points, 3.0, 4.0);
    for (int64_t i = 0; _i == 1 && i < points.n_features; i++)
        points.fid[i] = (i * 7919) % points.n_features;
    view = oj_flat_buf_view(&points);
    r.exclude_self = 1;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    ask_backend(&r, &view, &view, &m);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    for (int64_t row = 0; row < m.n_rows; row++)
        expect(m.measure[row] == 0.0 &&
                   view.fid[m.join_row[row]] == (view.fid[row] == 0),
               "row %d: FID %d", (int)row, (int)view.fid[m.join_row[row]]);
    expect(now.tv_sec - start.tv_sec < 20, "%d s",
           (int)(now.tv_sec - start.tv_sec));
}

int main(void)
{
    tests_open("distances");
    return tests_run();
}
