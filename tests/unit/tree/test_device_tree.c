/* The packed tree of the CUDA module, built on the host: the k nearest features
 * of points, with ties and without a limit too, and all features within a
 * distance, with conditions on FIDs and classes, against the cpu backend, bit
 * for bit.
 * Kind: property, degenerate, large.  OGRJOIN_TEST_LONG=1 runs fifty times as
 * long; OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../random_layers.h"

#include "../asked_points.h"
#include "../run_tests.h"

#include <stdio.h>

static uint64_t seed;
static int64_t n_asked, n_pairs;

/* A point that asks. */
struct asker
{
    const struct plain_side *side;
    const struct oj_relation *relation;
    const struct oj_pair_rule *rule;
    int64_t n_features, row;
    double x, y, most;
};

/* Pairs of the row at work. */
struct tree_row_pairs
{
    int64_t n, cap_distance, cap_rank;
    double *distance;
    int32_t *rank;
};

static void row_reserve(struct tree_row_pairs *row, int64_t n)
{
    must(oj_reserve(&row->distance, 0, n, &row->cap_distance,
                    sizeof *row->distance, &error));
    must(oj_reserve(&row->rank, 0, n, &row->cap_rank, sizeof *row->rank,
                    &error));
}

static void ask_nearest(const struct asker *a, struct tree_row_pairs *row)
{
    const struct oj_relation *r = a->relation;
    struct oj_tree_best best;
    best.k = (int32_t)(r->k < a->n_features ? r->k : a->n_features);
    best.n = 0;
    best.stride = 1;
    best.least = r->min_distance;
    best.most = a->most;
    row_reserve(row, best.k + 1);
    best.distance = row->distance;
    best.rank = row->rank;
    row->n = 0;
    if (best.k > 0)
    {
        oj_tree_nearest(&a->side->side, a->rule, a->row, a->x, a->y, &best);
        row->n = best.n;
    }
}

static void ask_within(const struct asker *a, double reach,
                       struct tree_row_pairs *row)
{
    const struct oj_relation *r = a->relation;
    const struct oj_tree_side *side = &a->side->side;
    struct oj_tree_found found = oj_tree_found_start(0, NULL, NULL);
    int64_t n;
    oj_tree_within(side, a->rule, a->row, a->x, a->y, reach, &found);
    n = found.n;
    row_reserve(row, n + 1);
    row->rank[n / 2] = -7;
    found = oj_tree_found_start(n / 2, row->distance, row->rank);
    oj_tree_within(side, a->rule, a->row, a->x, a->y, reach, &found);
    ck_assert_int_eq(found.n, n);
    ck_assert_int_eq(row->rank[n / 2], -7); /* beyond most: counted only */
    found = oj_tree_found_start(n, row->distance, row->rank);
    oj_tree_within(side, a->rule, a->row, a->x, a->y, reach, &found);
    ck_assert_int_eq(found.n, n);
    row->n = oj_tree_settle(r->op == OJ_OP_NEAREST ? OJ_TREE_BY_DISTANCE
                                                   : OJ_TREE_BY_RANK,
                            r->min_distance, n, row->distance, row->rank);
}

static void ask(const struct asker *a, struct tree_row_pairs *row)
{
    row->n = 0;
    if (!isfinite(a->x) || !isfinite(a->y) || !(a->most >= 0.0))
        return;
    if (a->relation->op == OJ_OP_DWITHIN)
    {
        ask_within(a, a->most, row);
        return;
    }
    ask_nearest(a, row);
    if (a->relation->ties == OJ_TIES_ALL && row->n > 0)
        ask_within(a, row->distance[row->n - 1], row);
}

static void compare(const struct tree_row_pairs *row,
                    const struct oj_matches *truth, int64_t i,
                    const int32_t *tie_rank)
{
    int64_t first = oj_matches_first(truth, i);
    int64_t n = oj_matches_end(truth, i) - first;
    expect(row->n == n, "seed %llu: row %d has %d pairs, not %d",
           (unsigned long long)seed, (int)i, (int)row->n, (int)n);
    n_asked++;
    n_pairs += n;
    for (int64_t p = 0; p < n; p++)
    {
        int32_t expected = truth->join_row[first + p];
        if (tie_rank != NULL)
            expected = tie_rank[expected];
        expect(row->rank[p] == expected &&
                   bits_of(row->distance[p]) ==
                       bits_of(truth->measure[first + p]),
               "seed %llu: row %d, pair %d: rank %d at %a, cpu rank %d at %a",
               (unsigned long long)seed, (int)i, (int)p, (int)row->rank[p],
               row->distance[p], (int)expected, truth->measure[first + p]);
    }
}

/* As the cpu backend has it: distances of rows stand in place of the join's for
 * all within them, and the nearest heed both. */
static double most_of(const struct oj_relation *r, const struct oj_flat *input,
                      int64_t row)
{
    double own = input->max_distance != NULL ? input->max_distance[row]
                                             : r->max_distance;
    return r->op == OJ_OP_NEAREST && own > r->max_distance ? r->max_distance
                                                           : own;
}

static void try_layers(const struct oj_flat *join, const struct oj_flat *input,
                       const struct oj_relation *relation)
{
    struct asked asked;
    struct plain_side s;
    struct tree_row_pairs row = {0};
    asked_open(&asked, join, input, relation);
    plain_side_build(&s, join, asked.tie_rank,
                     relation->distance_to == OJ_TO_INTERIOR);
    for (int64_t i = 0; i < input->n_features; i++)
    {
        const struct asker asker = {
            &s, relation,    &asked.rule.rule, join->n_features,
            i,  input->x[i], input->y[i],      most_of(relation, input, i)};
        ask(&asker, &row);
        compare(&row, &asked.truth, i, asked.tie_rank);
    }
    plain_side_free(&s);
    oj_free(row.distance);
    oj_free(row.rank);
    asked_close(&asked);
}

static double pick_reach(const struct scene *s)
{
    switch (pick(8))
    {
        case 0:
            return 0.0;
        case 1:
        case 2:
            return INFINITY;
        case 3:
            return s->scale * s->extent * 3.0;
        case 4:
            return s->scale * 1e9;
        default:
            return s->scale * pick(12);
    }
}

static struct oj_relation pick_relation(const struct scene *s,
                                        const struct oj_flat *join)
{
    int join_points = oj_flat_is_points(join);
    struct oj_relation r = oj_relation_default();
    r.op = one_in(3) ? OJ_OP_DWITHIN : OJ_OP_NEAREST;
    r.max_distance = pick_reach(s);
    if (r.op == OJ_OP_DWITHIN && !(r.max_distance < INFINITY))
        r.max_distance = s->scale;
    if (r.op == OJ_OP_NEAREST)
    {
        r.distance_to = pick(2) ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
        r.k = one_in(4) ? 1 : 1 + pick(one_in(3) ? 500 : 8);
        r.ties = one_in(3) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    }
    if (one_in(6) && r.max_distance < INFINITY &&
        (join_points || r.op == OJ_OP_DWITHIN))
        r.min_distance = r.max_distance / 2;
    return r;
}

static unsigned pick_kinds(void)
{
    return 1 + (unsigned)pick(7);
}

/* What is the CPU's. */
static void limit(struct oj_relation *relation, const struct oj_flat *join)
{
    if ((join->part_kinds & OJ_PART_POINT) != 0)
        relation->exclude_same_geometry = 0;
}

TEST(random_layers)
{
    const struct asked_kind kind = {pick_kinds, pick_relation, limit,
                                    try_layers};
    int64_t n_rounds = rounds(200);
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        random_state = seed;
        try_random(&kind);
    }
    ck_assert_int_gt(n_asked, 0);
    printf("%lld points asked, %lld pairs\n", (long long)n_asked,
           (long long)n_pairs);
}

/* A star of n corners, some of them as deep as the middle. */
static void add_long_ring(struct oj_flat_buf *buf, int n, double x, double y,
                          double size)
{
    double *px, *py;
    must(oj_flat_buf_ring(buf, &error));
    must(oj_flat_buf_vertices(buf, n + 1, &px, &py, &error));
    for (int i = 0; i < n; i++)
    {
        double angle = 6.283185307179586 * i / n;
        double r = size * (i % 2 == 0 ? 1.0 : between(0.2, 1.0));
        px[i] = x + floor(r * cos(angle) * 64.0) / 64.0;
        py[i] = y + floor(r * sin(angle) * 64.0) / 64.0;
    }
    px[n] = px[0];
    py[n] = py[0];
}

/* Rings of as many edges as all levels of chains need, points on their corners
 * and beside them, far outside too. */
TEST(long_rings)
{
    static const int corners[] = {40, 1000, 3000, 70000};
    struct oj_flat_buf join = {0}, input = {0};
    struct oj_flat join_view, input_view;
    struct oj_relation relation = oj_relation_default();
    seed = random_state = 7;
    for (int f = 0; f < 4; f++)
    {
        begin(&join);
        for (int p = 0; p < 2; p++)
        {
            add_part(&join, OJ_PART_POLYGON);
            add_long_ring(&join, corners[f] + p, 300.0 * p, 100.0 * f, 500.0);
            add_long_ring(&join, 64 + p, 300.0 * p, 100.0 * f, 90.0);
        }
        end(&join);
    }
    join_view = oj_flat_buf_view(&join);
    for (int i = 0; i < 4000; i++)
    {
        int v = pick((int)join_view.n_vertices);
        double far = one_in(50) ? 1e9 : 700.0;
        if (one_in(3))
            add_point(&input, join_view.x[v], join_view.y[v]);
        else
            add_point(&input, between(-far, far),
                      one_in(3) ? join_view.y[v] : between(-far, far));
    }
    input_view = oj_flat_buf_view(&input);
    for (int i = 0; i < 4; i++)
    {
        relation.k = 1 + i;
        relation.ties = i % 2 == 0 ? OJ_TIES_FIRST : OJ_TIES_ALL;
        try_layers(&join_view, &input_view, &relation);
    }
    relation.op = OJ_OP_DWITHIN;
    relation.max_distance = 3.0;
    relation.k = 1;
    relation.ties = OJ_TIES_FIRST;
    try_layers(&join_view, &input_view, &relation);
    oj_flat_buf_free(&join);
    oj_flat_buf_free(&input);
}

/* Three features are asked for, and one of very many segments is in reach: few
 * of them are looked at. */
TEST(fewer_than_asked)
{
    enum
    {
        TEETH = 20000,
        K = 3
    };
    struct oj_flat_buf join = {0};
    struct oj_flat view;
    struct oj_pair_rule rule = {0};
    struct plain_side side;
    double *xy = oj_malloc(2 * TEETH, sizeof *xy);
    begin(&join);
    add_part(&join, OJ_PART_LINE);
    for (int i = 0; i < TEETH; i++)
    {
        xy[2 * i] = (double)i;
        xy[2 * i + 1] = i % 2 ? 10.0 : 0.0;
    }
    add_ring(&join, TEETH, xy);
    end(&join);
    for (int i = 0; i < 5; i++)
        add_point(&join, 1e7, 1e6 * i);
    view = oj_flat_buf_view(&join);
    plain_side_build(&side, &view, NULL, 0);
    for (int i = 0; i < 100; i++)
    {
        double x = 197.25 * i, y = 13.5 + i % 3, distance[K];
        int32_t rank[K];
        struct oj_tree_best best = {K, 0, 1, 0.0, 1e6, distance, rank};
        struct oj_tree_walk w;
        int64_t entry, n_seen = 0;
        oj_tree_nearest(&side.side, &rule, i, x, y, &best);
        ck_assert_int_eq(best.n, 1);
        ck_assert_int_eq(rank[0], 0);
        best.n = 0;
        oj_tree_walk_start(&w, &side.side.segments, x, y, best.most);
        while ((entry = oj_tree_next_segment(&side.side, &w, &best)) >= 0)
        {
            oj_tree_best_add(&best, side.side.rank[entry],
                             oj_tree_entry_distance(&side.side, entry, x, y));
            n_seen++;
        }
        expect(n_seen < 1000, "point %d: %lld segments", i, (long long)n_seen);
    }
    plain_side_free(&side);
    oj_flat_buf_free(&join);
    oj_free(xy);
}

/* Coincident points, more of them than are asked for. */
TEST(coincident)
{
    struct oj_flat_buf join = {0}, input = {0};
    struct oj_flat join_view, input_view;
    struct oj_relation relation = oj_relation_default();
    int64_t *fid;
    seed = random_state = 11;
    for (int i = 0; i < 3000; i++)
        add_point(&join, i % 7 == 0 ? 1.0 : 0.1, i % 5 == 0 ? 2.0 : 0.3);
    for (int i = 0; i < 12; i++)
        add_point(&input, 0.1 * i, 0.3 * i);
    join_view = oj_flat_buf_view(&join);
    input_view = oj_flat_buf_view(&input);
    join_view.fid = fid = pick_fids(join_view.n_features);
    relation.k = 5;
    try_layers(&join_view, &input_view, &relation);
    relation.ties = OJ_TIES_ALL;
    try_layers(&join_view, &input_view, &relation);
    relation.op = OJ_OP_DWITHIN;
    relation.k = 1;
    relation.ties = OJ_TIES_FIRST;
    relation.max_distance = oj_point_distance(0.1, 0.3, 1.0, 2.0);
    try_layers(&join_view, &input_view, &relation);
    oj_free(fid);
    oj_flat_buf_free(&join);
    oj_flat_buf_free(&input);
}

int main(void)
{
    tests_open("device_tree");
    return tests_run();
}
