/* Many points in few large polygons, so that spots have answers: the same
 * pairs as ring by ring.
 * Kind: property, degenerate.  OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../random_rings.h"
#include "../run_tests.h"

#include "plain_rings.h"

#include <stdio.h>

#define N_POINTS 24000

static double px[N_POINTS], py[N_POINTS];
static int64_t n_candidates, n_boxes; /* of all rounds */

/* Up to four features of up to three rings, most of them large, which may lie
 * over one another in any way. */
static void add_features(struct oj_flat_buf *buf, double scale, double origin)
{
    static struct test_ring ring;
    int n_features = 1 + pick(4);
    for (int f = 0; f < n_features; f++)
    {
        begin(buf);
        for (int r = one_in(3) ? 1 + pick(3) : 1; r > 0; r--)
        {
            double *x, *y;
            int64_t n = one_in(5) ? 3 + pick(30) : 32 + pick(800);
            ring_make(&ring, (enum ring_kind)pick(RING_N_KINDS), n);
            ring_move(&ring, pick(2) ? scale : 0.3 * scale,
                      origin + 300.0 * scale * pick(3),
                      origin + 300.0 * scale * pick(3));
            add_part(buf, OJ_PART_POLYGON);
            must(oj_flat_buf_ring(buf, &error));
            must(oj_flat_buf_vertices(buf, ring.n, &x, &y, &error));
            memcpy(x, ring.x, (size_t)ring.n * sizeof *x);
            memcpy(y, ring.y, (size_t)ring.n * sizeof *y);
        }
        end(buf);
    }
}

/* Anywhere in the box, beside vertices and on edges; on lines that cut the box
 * into powers of two, where borders of spots are. */
static void place_points(const struct oj_flat *join)
{
    double x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;
    for (int64_t v = 0; v < join->n_vertices; v++)
    {
        x0 = fmin(x0, join->x[v]);
        y0 = fmin(y0, join->y[v]);
        x1 = fmax(x1, join->x[v]);
        y1 = fmax(y1, join->y[v]);
    }
    for (int i = 0; i < N_POINTS; i++)
    {
        int64_t v = pick((int)join->n_vertices - 1);
        double t = unit();
        px[i] = between(x0, x1);
        py[i] = between(y0, y1);
        switch (pick(8))
        {
            case 0:
                px[i] = nudge(join->x[v], 2);
                py[i] = nudge(join->y[v], 2);
                break;
            case 1:
                px[i] = join->x[v] + t * (join->x[v + 1] - join->x[v]);
                py[i] = join->y[v] + t * (join->y[v + 1] - join->y[v]);
                break;
            case 2:
                px[i] = nudge(x0 + (x1 - x0) * pick(257) / 256.0, 2);
                py[i] = nudge(y0 + (y1 - y0) * pick(257) / 256.0, 2);
                break;
            case 3:
                px[i] = one_in(50) ? NAN : px[i];
                py[i] = one_in(50) ? y1 + 1.0 : py[i];
                break;
            default:
                break;
        }
    }
}

static void check_batch(const struct oj_flat *join, const struct oj_flat *input,
                        enum oj_op op, const struct oj_matches *out,
                        uint64_t seed)
{
    for (int64_t i = 0; i < input->n_features; i++)
    {
        int64_t p = out->offset[i];
        for (int64_t f = 0; f < join->n_features; f++)
        {
            int is_pair = input->x[i] == input->x[i] &&
                          holds(op, locate(join, f, input->x[i], input->y[i]));
            int is_given = p < out->offset[i + 1] && out->join_row[p] == f;
            p += is_given;
            expect(is_pair == is_given,
                   "seed %llu, op %d: row %d (%a %a), feature %d: %d, not %d",
                   (unsigned long long)seed, (int)op, (int)i, input->x[i],
                   input->y[i], (int)f, is_given, is_pair);
        }
        expect(p == out->offset[i + 1], "seed %llu: row %d has more pairs",
               (unsigned long long)seed, (int)i);
    }
}

static void check_op(const struct oj_flat *join, enum oj_op op, uint64_t seed)
{
    struct oj_relation relation = oj_relation_default();
    struct oj_options options = {.n_threads = 1 + 2 * pick(2)};
    MATCHES out = {0};
    struct oj_join *index;
    int64_t step = pick(2) ? N_POINTS : 1 + pick(5000);
    relation.op = op;
    must(oj_join_open(join, &relation, "cpu", &options, &index, &error));
    for (int64_t first = 0; first < N_POINTS; first += step)
    {
        struct oj_flat input;
        memset(&input, 0, sizeof input);
        input.n_features = N_POINTS - first < step ? N_POINTS - first : step;
        input.n_vertices = input.n_features;
        input.x = px + first;
        input.y = py + first;
        input.part_kinds = OJ_PART_POINT;
        must(oj_join_batch(index, &input, &out, &error));
        check_batch(join, &input, op, &out, seed);
    }
    n_candidates += oj_join_stats(index)->n_candidates;
    n_boxes += N_POINTS * join->n_rings;
    oj_join_close(index);
}

TEST(same_as_ring_by_ring)
{
    static const enum oj_op ops[] = {OJ_OP_INTERSECTS, OJ_OP_WITHIN,
                                     OJ_OP_COVEREDBY, OJ_OP_TOUCHES};
    uint64_t first = first_seed();
    int64_t n = rounds(30);
    for (int64_t i = 0; i < n; i++)
    {
        uint64_t seed = random_state = first + (uint64_t)i;
        LAYER join = {0};
        struct oj_flat view;
        add_features(&join, pick(3) ? 1.0 : 1e-5, pick(3) ? 0.0 : 1e6);
        view = oj_flat_buf_view(&join);
        place_points(&view);
        check_op(&view, ops[i % 4], seed);
    }
    printf("%lld candidates of %lld points and rings\n",
           (long long)n_candidates, (long long)n_boxes);
    ck_assert(n < 20 || 3 * n_candidates < n_boxes);
}

int main(void)
{
    tests_open("known spots");
    return tests_run();
}
