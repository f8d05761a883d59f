/* nearest and dwithin between features of all kinds, with everything that a
 * join by distance can ask for, against the plain way; threads and batches
 * change nothing; features with very many vertices; memory that runs out.
 * Kind: property, large, memory.  OGRJOIN_TEST_LONG=1 runs fifty times as
 * long; OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../memory_trial.h"
#include "../plain_pairs.h"
#include "../random_sides.h"
#include "../run_tests.h"

#include "../../../algs/relation/oj_engine.h"

#include <time.h>

static uint64_t seed;

/* --- sides ----------------------------------------------------------------
 */

static void side_make(struct random_side *side, const struct scene *scene,
                      int n, unsigned kinds)
{
    memset(side, 0, sizeof *side);
    add_join_features(&side->buf, scene, n, kinds, 0);
    side->view = oj_flat_buf_view(&side->buf);
    n = (int)side->view.n_features;
    side->max_distance = column(n, sizeof(double));
    side->on_class = column(n, sizeof(int32_t));
    side->exclude_class = column(n, sizeof(int32_t));
    side->fid = pick_fids(n);
    side->view.fid = side->fid;
    for (int i = 0; i < n; i++)
    {
        side->max_distance[i] = one_in(8) ? -1.0 : scene->scale * pick(20);
        if (one_in(8))
            side->max_distance[i] = pick(2) ? NAN : INFINITY;
        side->on_class[i] = pick(5) - 1;
        side->exclude_class[i] = pick(5) - 1;
    }
}

/* A join of some kind, and the columns that it asks for. */
static struct oj_relation pick_relation(const struct scene *scene,
                                        struct random_side *a,
                                        struct random_side *b)
{
    struct oj_relation r = oj_relation_default();
    int has_fids = a->view.fid != NULL && b->view.fid != NULL;
    int own = pick(6);
    r.op = pick(2) ? OJ_OP_NEAREST : OJ_OP_DWITHIN;
    r.max_distance = scene->scale * pick(scene->extent);
    if (r.op == OJ_OP_NEAREST && pick(2))
        r.max_distance = INFINITY;
    if (one_in(3))
        r.min_distance = fmin(r.max_distance, scene->scale * pick(6));
    if (r.op == OJ_OP_NEAREST)
    {
        r.k = one_in(3) ? 1 + pick(7) : 1;
        r.ties = one_in(4) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    }
    r.distance_to = one_in(3) ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
    r.exclude_self = has_fids && one_in(4);
    r.unordered_pairs = has_fids && one_in(4) ? (pick(2) ? 1 : -1) : 0;
    r.exclude_same_geometry = one_in(6);
    a->view.max_distance = b->view.max_distance = NULL;
    if (r.op == OJ_OP_DWITHIN && own == 0)
        a->view.max_distance = a->max_distance;
    if (r.op == OJ_OP_DWITHIN && own == 1)
        b->view.max_distance = b->max_distance;
    pick_classes(a, b, 4);
    return r;
}

/* --- running ---------------------------------------------------------------
 */

/* By one family; tie ranks as oj_join_open() makes them. */
static oj_status ask_family(const struct oj_engine *family,
                            const struct oj_relation *relation,
                            const struct oj_flat *input,
                            const struct oj_flat *join, int n_threads,
                            struct oj_matches *out)
{
    struct oj_options options = {.n_threads = n_threads};
    struct oj_stats stats;
    struct oj_index *index;
    int32_t *rank = column(join->n_features, sizeof *rank);
    oj_status status;
    for (int64_t b = 0; b < join->n_features; b++)
        rank[b] = plain_rank(join, b);
    memset(&stats, 0, sizeof stats);
    must(oj_index_make(family,
                       &(struct oj_index_args){join, rank, *relation, options},
                       &index, &stats, &error));
    status = family->join(index, input, out, &stats, &error);
    oj_index_free(family, index);
    oj_free(rank);
    return status;
}

static void ask_backend(const struct oj_relation *relation,
                        const struct oj_flat *input, const struct oj_flat *join,
                        struct oj_matches *out)
{
    struct oj_options options = {.n_threads = 2};
    struct oj_join *opened;
    must(oj_join_open(join, relation, "cpu", &options, &opened, &error));
    must(oj_join_batch(opened, input, out, &error));
    oj_join_close(opened);
}

static const unsigned kinds_of_round[] = {OJ_PART_POINT, OJ_PART_LINE,
                                          OJ_PART_POLYGON, 7, 7};

/* Eight joins of two random sides. */
static void check_round(const struct scene *scene)
{
    struct random_side a, b;
    double *to_interior, *to_boundary;
    MATCHES m = {0};
    side_make(&a, scene, 1 + pick(25), kinds_of_round[pick(5)]);
    side_make(&b, scene, 1 + pick(25), kinds_of_round[pick(5)]);
    to_interior = plain_matrix(&a.view, &b.view, OJ_TO_INTERIOR);
    to_boundary = plain_matrix(&a.view, &b.view, OJ_TO_BOUNDARY);
    for (int i = 0; i < 8; i++)
    {
        struct oj_relation r = pick_relation(scene, &a, &b);
        const double *matrix =
            r.distance_to == OJ_TO_INTERIOR ? to_interior : to_boundary;
        must(ask_family(&oj_cpu_distance, &r, &a.view, &b.view, 1 + pick(3),
                        &m));
        check_answer("family", seed, &r, &a.view, &b.view, matrix, &m);
        ask_backend(&r, &a.view, &b.view, &m);
        check_answer("backend", seed, &r, &a.view, &b.view, matrix, &m);
    }
    oj_free(to_interior);
    oj_free(to_boundary);
    side_free(&a);
    side_free(&b);
}

TEST(plain_way)
{
    int64_t n_rounds = rounds(80);
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        struct scene scene;
        random_state = seed;
        scene = pick_scene();
        check_round(&scene);
    }
}

/* Squares of distances are numbers with few digits, and distances are right to
 * eight of them, or ten: boxes must not tell more than segments. */
TEST(squares_underflow)
{
    int64_t n_rounds = rounds(20);
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        struct scene scene = {0.0, 0.0, 0.0, 12, 1, 0.0};
        random_state = seed;
        scene.scale = ldexp(0.5 + unit() / 2, -522 - pick(3));
        check_round(&scene);
    }
}

/* --- large features --------------------------------------------------------
 */

#define PI 3.141592653589793

/* A ring of n edges around x, y; wavy when wave > 0. */
static void add_round(struct oj_flat_buf *buf, double x, double y,
                      double radius, double wave, int64_t n)
{
    double *xs, *ys;
    begin(buf);
    add_part(buf, OJ_PART_POLYGON);
    must(oj_flat_buf_ring(buf, &error));
    must(oj_flat_buf_vertices(buf, n + 1, &xs, &ys, &error));
    for (int64_t i = 0; i <= n; i++)
    {
        double angle = 2.0 * PI * (double)(i % n) / (double)n;
        double r = radius + wave * sin(angle * 1000.0);
        xs[i] = x + r * cos(angle);
        ys[i] = y + r * sin(angle);
    }
    end(buf);
}

/* Pairs of polygons of 100,000 vertices: apart, crossing, nested, equal. */
TEST(very_large)
{
    LAYER a = {0}, b = {0};
    struct oj_relation r = oj_relation_default();
    MATCHES m = {0};
    struct oj_flat va, vb;
    struct timespec start, now;
    add_round(&a, 0, 0, 10, 0.25, 100000);
    add_round(&b, 30, 0, 10, 0.25, 100000); /* 9.5 apart, or a little more */
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

/* Very many features in one place: each finds the first of the others without
 * looking at all. */
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

/* --- memory ----------------------------------------------------------------
 */

TEST_LOOP(memory, 0, 2)
{
    struct scene scene = {0.0, 0.0, 1.0, 30, 1, 0.0};
    struct oj_relation r = oj_relation_default();
    struct random_side a, b;
    random_state = 12;
    side_make(&a, &scene, 60, 7);
    side_make(&b, &scene, 90, 7);
    a.view.fid = b.view.fid = NULL;
    if (_i == 0)
    {
        r.op = OJ_OP_DWITHIN;
        b.view.max_distance = b.max_distance;
    }
    r.k = 4;
    r.ties = OJ_TIES_ALL;
    try_without_memory(&(struct memory_join){.backend = "cpu",
                                             .join = &b.view,
                                             .input = &a.view,
                                             .relation = r,
                                             .n_each = 100},
                       10);
    side_free(&a);
    side_free(&b);
}

int main(void)
{
    tests_open("distances");
    return tests_run();
}
