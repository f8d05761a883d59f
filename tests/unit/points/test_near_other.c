/* The nearest of points with conditions on pairs, as the CUDA module finds it,
 * its tree built on the host and a warp's points going through it as one:
 * against the cpu backend, bit for bit.
 * Kind: property, degenerate.  OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../random_layers.h"

#include "../../../cuda/points/oj_near_other.h"
#include "../plain_tree.h"
#include "../random_columns.h"
#include "../run_tests.h"

#include <stdio.h>

enum
{
    LANES = 32
};

static uint64_t seed;
static int64_t n_matched;

/* --- the join side -------------------------------------------------------- */

struct near_side
{
    struct oj_near_others others;
    struct plain_side tree;
    struct oj_point_place *place;
    int32_t *least_rank;
};

static void side_build(struct near_side *s, const struct oj_flat *flat,
                       const int32_t *tie_rank)
{
    const struct oj_device_tree *tree = &s->tree.side.segments;
    memset(s, 0, sizeof *s);
    plain_side_build(&s->tree, flat, tie_rank, 0);
    TREE_NEW(s->place, tree->n);
    for (int64_t i = 0; i < tree->n; i++)
        s->place[i] = (struct oj_point_place){s->tree.sorted_segment[i].ax,
                                              s->tree.sorted_segment[i].ay};
    TREE_NEW(s->least_rank, 2 * tree->n + OJ_TREE_LEVELS);
    s->others.tree = *tree;
    s->others.place = s->place;
    s->others.rank = s->tree.sorted_rank;
    s->others.least_rank = s->least_rank;
    for (int level = 0; level < tree->n_levels; level++)
    {
        for (uint32_t i = 0; i < tree->level_n[level]; i++)
            s->least_rank[tree->level_first[level] + i] =
                oj_near_other_least_rank(&s->others, level, i);
    }
}

static void side_free(struct near_side *s)
{
    plain_side_free(&s->tree);
    oj_free(s->place);
    oj_free(s->least_rank);
}

/* --- asking --------------------------------------------------------------- */

static int anyone_wants(const struct near_side *s,
                        const struct oj_near_other *o, int n, int level,
                        uint32_t i, int c)
{
    const struct oj_device_tree *tree = &s->others.tree;
    const struct oj_device_tree_node *node =
        tree->node + tree->level_first[level] + i;
    uint32_t child =
        tree->level_first[level - 1] + i * OJ_TREE_FANOUT + (uint32_t)c;
    for (int lane = 0; lane < n; lane++)
    {
        if (oj_near_other_wants(&o[lane], node->x0[c], node->y0[c], node->x1[c],
                                node->y1[c], s->least_rank[child]))
            return 1;
    }
    return 0;
}

static void visit_leaf(const struct near_side *s,
                       const struct oj_pair_rule *rule, struct oj_near_other *o,
                       int n, uint32_t i)
{
    int n_entries = oj_near_other_n_entries(&s->others, i);
    for (int c = 0; c < n_entries; c++)
    {
        int64_t entry = (int64_t)i * OJ_TREE_FANOUT + c;
        for (int lane = 0; lane < n; lane++)
            oj_near_other_offer(&o[lane], rule, s->place[entry].x,
                                s->place[entry].y, s->others.rank[entry]);
    }
}

/* n points together; returns how many leaves were visited. */
static int64_t find(const struct near_side *s, const struct oj_pair_rule *rule,
                    struct oj_near_other *o, int n)
{
    const struct oj_device_tree *tree = &s->others.tree;
    uint32_t stack[OJ_TREE_STACK];
    int64_t n_leaves = 0;
    int depth = 0;
    for (int lane = 0; lane < n; lane++)
        oj_near_other_seed(&o[lane], &s->others, rule);
    if (tree->n > 0)
        stack[depth++] = (uint32_t)(tree->n_levels - 1) << OJ_TREE_INDEX_BITS;
    while (depth > 0)
    {
        uint32_t at = stack[--depth];
        uint32_t i = at & ((1u << OJ_TREE_INDEX_BITS) - 1u);
        int level = (int)(at >> OJ_TREE_INDEX_BITS);
        if (level == 0)
        {
            visit_leaf(s, rule, o, n, i);
            n_leaves++;
            continue;
        }
        for (int c = OJ_TREE_FANOUT - 1; c >= 0; c--)
        {
            uint32_t child = i * OJ_TREE_FANOUT + (uint32_t)c;
            if (child >= tree->level_n[level - 1] ||
                !anyone_wants(s, o, n, level, i, c))
                continue;
            ck_assert_int_lt(depth, OJ_TREE_STACK);
            stack[depth++] =
                (uint32_t)(level - 1) << OJ_TREE_INDEX_BITS | child;
        }
    }
    return n_leaves;
}

static double most_of(const struct oj_relation *r, const struct oj_flat *input,
                      int64_t i)
{
    double own;
    if (input->max_distance == NULL)
        return r->max_distance;
    own = input->max_distance[i];
    return own > r->max_distance ? r->max_distance : own;
}

static void compare(const struct oj_near_other *o,
                    const struct oj_matches *truth, const int32_t *tie_rank)
{
    int32_t f = truth->join_row[o->row];
    int32_t rank = f < 0 ? -1 : (int32_t)rank_at(tie_rank, f);
    expect(o->rank == rank, "seed %llu: row %d has rank %d, not %d",
           (unsigned long long)seed, (int)o->row, (int)o->rank, (int)rank);
    if (rank >= 0)
        expect(bits_of(o->distance) == bits_of(truth->measure[o->row]),
               "seed %llu: row %d: %.17g, not %.17g", (unsigned long long)seed,
               (int)o->row, o->distance, truth->measure[o->row]);
    n_matched += rank >= 0;
}

static int64_t try_layers(const struct oj_flat *join,
                          const struct oj_flat *input,
                          const struct oj_relation *r)
{
    struct oj_options options = {.n_threads = 1};
    struct near_side s;
    struct plain_rule rule;
    struct oj_matches truth = {0};
    struct oj_join *opened;
    const int32_t *tie_rank;
    int64_t n_leaves = 0;
    must(oj_join_open(join, r, "cpu", &options, &opened, &error));
    must(oj_join_batch(opened, input, &truth, &error));
    tie_rank = oj_join_tie_rank(opened);
    side_build(&s, join, tie_rank);
    plain_rule_make(&rule, r, join, input, tie_rank);
    for (int64_t first = 0; first < input->n_features; first += LANES)
    {
        struct oj_near_other o[LANES];
        int n = input->n_features - first < LANES
                    ? (int)(input->n_features - first)
                    : LANES;
        for (int lane = 0; lane < n; lane++)
            oj_near_other_start(&o[lane], &s.others, first + lane,
                                input->x[first + lane], input->y[first + lane],
                                r->min_distance,
                                most_of(r, input, first + lane));
        n_leaves += find(&s, &rule.rule, o, n);
        for (int lane = 0; lane < n; lane++)
            compare(&o[lane], &truth, tie_rank);
    }
    plain_rule_free(&rule);
    side_free(&s);
    oj_join_close(opened);
    oj_matches_free(&truth);
    return n_leaves;
}

static struct oj_relation pick_relation(const struct scene *s)
{
    struct oj_relation r = oj_relation_default();
    r.op = OJ_OP_NEAREST;
    r.k = 1;
    r.max_distance = one_in(3) ? (double)INFINITY
                               : s->scale * pick(one_in(3) ? s->extent : 6);
    if (one_in(5))
        r.min_distance = fmin(r.max_distance, s->scale * pick(4));
    return r;
}

TEST(random_layers)
{
    int64_t n_rounds = rounds(400);
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        struct scene scene;
        struct oj_flat_buf join = {0}, input = {0};
        struct oj_flat join_view, input_view;
        struct oj_relation relation;
        struct columns columns;
        int64_t *fid;
        random_state = seed;
        scene = pick_scene();
        add_join_features(&join, &scene, pick(one_in(5) ? 1000 : 60),
                          OJ_PART_POINT, 0);
        join_view = oj_flat_buf_view(&join);
        add_input_points(&input, &scene, &join_view, 300, 0);
        input_view = oj_flat_buf_view(&input);
        join_view.fid = fid = pick_fids(join_view.n_features);
        relation = pick_relation(&scene);
        pick_columns(&columns, &join_view, &input_view, &relation, scene.scale,
                     4);
        if (oj_flat_is_points(&input_view) && oj_flat_is_points(&join_view))
            try_layers(&join_view, &input_view, &relation);
        columns_free(&columns);
        oj_free(fid);
        oj_flat_buf_free(&join);
        oj_flat_buf_free(&input);
    }
    ck_assert_int_gt(n_matched, 0);
    printf("%lld matches\n", (long long)n_matched);
}

/* Many points at few places: their ranks keep all but a few leaves out. */
TEST_LOOP(coinciding, 0, 2)
{
    struct oj_flat_buf buf = {0};
    struct oj_flat view;
    struct oj_relation r = oj_relation_default();
    seed = random_state = 8;
    for (int i = 0; i < 20000; i++)
        add_point(&buf, _i == 0 ? 5.0 : pick(3), 7.0);
    view = oj_flat_buf_view(&buf);
    r.op = OJ_OP_NEAREST;
    r.k = 1;
    r.exclude_self = 1;
    r.max_distance = (double)INFINITY;
    ck_assert_int_lt(try_layers(&view, &view, &r), 20000 / LANES * 20);
    oj_flat_buf_free(&buf);
}

/* The ends of the numbers that join. */
TEST(extremes)
{
    static const double values[] = {0.0,    -0.0,  5e-324, 1e-160, 1.0,
                                    1e75,   1e76,  1e149,  1e150,  -1e150,
                                    -1e149, -1e76, -1e-160};
    static const double reaches[] = {0.0,   1e-200, 3e-162,  1e-160,  1.0,
                                     1e149, 1e154,  1.7e308, INFINITY};
    struct oj_flat_buf buf = {0};
    struct oj_flat view;
    struct oj_relation r = oj_relation_default();
    seed = random_state = 6;
    for (int i = 0; i < 13; i++)
    {
        for (int j = 0; j < 13; j++)
            add_point(&buf, values[i], values[j]);
    }
    view = oj_flat_buf_view(&buf);
    r.op = OJ_OP_NEAREST;
    r.k = 1;
    for (int i = 0; i < 18; i++)
    {
        r.exclude_self = i < 9;
        r.exclude_same_geometry = i >= 9;
        r.max_distance = reaches[i % 9];
        try_layers(&view, &view, &r);
    }
    oj_flat_buf_free(&buf);
}

int main(void)
{
    tests_open("near_other");
    return tests_run();
}
