/* Polygons whose holes lie outside of their shells, cross them, equal them,
 * touch them or lie over each other: nearest and dwithin have distance 0 where
 * the features have a point in common by even-odd over all rings of a part,
 * exactly, on every backend; and for points in polygons of one part that is
 * what intersects says.
 * Kind: property.  OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../plain_pairs.h"
#include "../run_tests.h"

#include "../../../algs/pairs/oj_nearest_points.h"

#include <stdio.h>

static uint64_t seed;
static int64_t n_answers, n_of_device, n_zero;

/* --- layers --------------------------------------------------------------- */

#define SIDE 12

static double lattice_step, lattice_origin;

static double at(double steps)
{
    return lattice_origin + lattice_step * steps;
}

/* n sides; a box, the other way round one time in two, or what is left of one
 * without a corner. Long sides are cut so that large rings have cells. */
static void add_box_ring(struct oj_flat_buf *buf, const double *box, int is_cut,
                         int n)
{
    const double corner[][2] = {
        {box[0], box[1]}, {box[2], box[1]}, {box[2], box[3]}, {box[0], box[3]}};
    double xy[2 * 200];
    int n_corners = is_cut ? 3 : 4, step = pick(2) ? 1 : n_corners - 1, v = 0;
    int first = pick(n_corners);
    for (int i = 0; i <= n_corners; i++)
    {
        const double *c = corner[(first + i * step) % n_corners];
        for (int j = n; i > 0 && j > 1; j--, v++)
        {
            xy[2 * v] = xy[2 * v - 2] + (at(c[0]) - xy[2 * v - 2]) / j;
            xy[2 * v + 1] = xy[2 * v - 1] + (at(c[1]) - xy[2 * v - 1]) / j;
        }
        xy[2 * v] = at(c[0]);
        xy[2 * v + 1] = at(c[1]);
        v++;
    }
    add_ring(buf, v, xy);
}

static void pick_box(double *box)
{
    int width = 1 + pick(6), height = 1 + pick(6);
    box[0] = pick(SIDE - width);
    box[1] = pick(SIDE - height);
    box[2] = box[0] + width;
    box[3] = box[1] + height;
}

static void add_polygon(struct oj_flat_buf *buf, int n_parts)
{
    begin(buf);
    for (int part = 0; part < n_parts; part++)
    {
        int n_rings = 1 + pick(4), is_cut = one_in(4);
        double box[4];
        add_part(buf, OJ_PART_POLYGON);
        pick_box(box);
        for (int ring = 0; ring < n_rings; ring++)
        {
            /* a copy of the one before, or a part of it, or anywhere */
            if (ring > 0 && one_in(3))
                box[pick(2)] += 1 - 2 * pick(2);
            else if (ring > 0 && pick(5))
                pick_box(box);
            if (!(box[0] < box[2] && box[1] < box[3]))
                pick_box(box);
            add_box_ring(buf, box, is_cut, one_in(4) ? 32 : 1);
            is_cut = one_in(6);
        }
    }
    end(buf);
}

/* The polygon added from that state of the random numbers, so often that the
 * index keeps but the first of its copies. */
static void add_copies(struct oj_flat_buf *buf, int n_parts, uint64_t state)
{
    for (int i = 0; i < 36; i++)
    {
        random_state = state;
        add_polygon(buf, n_parts);
    }
}

static void add_line_of(struct oj_flat_buf *buf)
{
    double xy[6];
    begin(buf);
    add_part(buf, OJ_PART_LINE);
    for (int i = 0; i < 6; i++)
        xy[i] = at(0.5 * pick(2 * SIDE));
    add_ring(buf, 2 + pick(2), xy);
    end(buf);
}

static void add_layer(struct oj_flat_buf *buf, int n, unsigned kinds,
                      int most_parts)
{
    for (int i = 0; i < n; i++)
    {
        unsigned kind = pick_kind(kinds);
        if (kind == OJ_PART_POINT)
            add_point(buf, at(0.25 * pick(4 * SIDE)),
                      at(0.25 * pick(4 * SIDE)));
        else if (kind == OJ_PART_LINE)
            add_line_of(buf);
        else
        {
            int n_parts = 1 + pick(most_parts);
            uint64_t state = random_state;
            add_polygon(buf, n_parts);
            if (one_in(24))
                add_copies(buf, n_parts, state);
        }
    }
}

/* --- joins ---------------------------------------------------------------- */

static struct oj_relation pick_relation(int i)
{
    struct oj_relation r = oj_relation_default();
    r.op = i < 2 ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
    if (i == 3)
    {
        r.k = 1 + pick(5);
        r.ties = OJ_TIES_ALL;
    }
    r.max_distance = i == 0 || i == 4 ? 0.0
                     : i == 1         ? 1.5 * lattice_step
                                      : INFINITY;
    return r;
}

/* 0: the backend does not take the join. */
static int ask(const char *backend, const struct oj_relation *relation,
               const struct oj_flat *input, const struct oj_flat *join,
               struct oj_matches *out)
{
    struct oj_options options = {.n_threads = 2};
    struct oj_join *opened;
    oj_status status =
        oj_join_open(join, relation, backend, &options, &opened, &error);
    if (status == OJ_ERR_NO_DEVICE || status == OJ_ERR_UNSUPPORTED)
        return 0;
    must(status);
    status = oj_join_batch(opened, input, out, &error);
    oj_join_close(opened);
    if (status == OJ_ERR_UNSUPPORTED)
        return 0;
    must(status);
    return 1;
}

/* Points in polygons of one part: intersects is dwithin 0. */
static void check_intersects(const struct oj_flat *input,
                             const struct oj_flat *join, const double *matrix)
{
    struct oj_relation relation = oj_relation_default();
    MATCHES m = {0};
    relation.op = OJ_OP_INTERSECTS;
    ck_assert(ask("cpu", &relation, input, join, &m));
    for (int64_t a = 0; a < input->n_features; a++)
    {
        int64_t i = oj_matches_first(&m, a);
        for (int64_t b = 0; b < join->n_features; b++)
        {
            int holds = i < oj_matches_end(&m, a) && m.join_row[i] == b;
            i += holds;
            expect(holds == (matrix[a * join->n_features + b] == 0.0),
                   "seed %llu: %d and %d intersect: %d",
                   (unsigned long long)seed, (int)a, (int)b, holds);
        }
    }
}

static void check_nearest_points(const struct oj_flat *a,
                                 const struct oj_flat *b, const double *matrix)
{
    struct oj_nearest_work work = {0};
    struct oj_nearest_points p;
    for (int64_t i = 0; i < a->n_features; i++)
    {
        for (int64_t j = 0; j < b->n_features; j++)
        {
            must(oj_nearest_points_find(a, i, b, j, OJ_TO_INTERIOR, &work, &p,
                                        &error));
            expect((p.distance == 0.0) == (matrix[i * b->n_features + j] == 0),
                   "seed %llu: nearest points of %d and %d are %g apart, not "
                   "%g",
                   (unsigned long long)seed, (int)i, (int)j, p.distance,
                   matrix[i * b->n_features + j]);
        }
    }
    oj_nearest_work_free(&work);
}

static void check_round(unsigned kinds_a, int n_a, unsigned kinds_b, int n_b)
{
    static const char *const backends[] = {"cpu", "quadrant", "cuda"};
    LAYER input = {0}, join = {0};
    struct oj_flat a, b;
    MATCHES m = {0};
    double *matrix;
    int most_parts = pick(3) ? 1 : 3;
    lattice_step = pick(3) ? 1.0 : ldexp(1.0, pick(40) - 20);
    lattice_origin = pick(3) ? 0.0 : lattice_step * 1048576.0;
    add_layer(&input, n_a, kinds_a, most_parts);
    add_layer(&join, n_b, kinds_b, most_parts);
    a = oj_flat_buf_view(&input);
    b = oj_flat_buf_view(&join);
    matrix = plain_matrix(&a, &b, OJ_TO_INTERIOR);
    for (int64_t i = 0; i < a.n_features * b.n_features; i++)
        n_zero += matrix[i] == 0.0;
    for (int i = 0; i < 5; i++)
    {
        struct oj_relation r = pick_relation(i);
        for (int k = 0; k < 3; k++)
        {
            if (k > 0 && !oj_flat_is_points(&a))
                continue;
            if (!ask(backends[k], &r, &a, &b, &m))
                continue;
            check_answer(backends[k], seed, &r, &a, &b, matrix, &m);
            n_answers++;
            n_of_device += k == 2;
        }
    }
    if (kinds_a == OJ_PART_POINT && kinds_b == OJ_PART_POLYGON &&
        most_parts == 1)
        check_intersects(&a, &b, matrix);
    check_nearest_points(&a, &b, matrix);
    oj_free(matrix);
}

TEST(points)
{
    int64_t n_rounds = rounds(150);
    n_answers = n_of_device = n_zero = 0;
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        random_state = seed;
        check_round(OJ_PART_POINT, 1 + pick(150), pick(3) ? OJ_PART_POLYGON : 7,
                    1 + pick(pick(3) ? 4 : 40));
    }
    printf("points: %lld answers, %lld of them of a device, %lld pairs at "
           "distance 0\n",
           (long long)n_answers, (long long)n_of_device, (long long)n_zero);
    ck_assert_int_gt(n_zero, 0);
}

TEST(lines_and_polygons)
{
    int64_t n_rounds = rounds(150);
    n_zero = 0;
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        random_state = seed;
        check_round(pick(2) ? OJ_PART_POLYGON : 7, 1 + pick(12),
                    OJ_PART_POLYGON, 1 + pick(12));
    }
    ck_assert_int_gt(n_zero, 0);
}

int main(void)
{
    setenv("CK_FORK", "no", 1); /* a device does not survive a fork */
    tests_open("even-odd");
    return tests_run();
}
