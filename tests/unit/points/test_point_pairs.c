/* Pairs of points as the CUDA module finds them, its tree and its cells built
 * on the host: within a distance, equal, in the envelope of a feature, with
 * conditions on FIDs and classes, against the cpu backend, bit for bit.
 * Kind: property, degenerate.  OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../../../flatten/base/oj_compare.h"
#include "../random_layers.h"

#include "../../../cuda/points/oj_point_pairs.h"
#include "../asked_points.h"
#include "../run_tests.h"
#include "plain_close.h"

#include <stdio.h>

static uint64_t seed;
static int64_t n_pairs;

/* --- the join side -------------------------------------------------------- */

struct points_side
{
    struct oj_point_side side;
    struct oj_point_place *place;
    struct oj_tree_box *box;
    int32_t *rank;
    struct oj_device_tree_node *node;
};

/* The exact box of a feature; nothing for one without parts. */
static struct oj_tree_box box_of(const struct oj_flat *flat, int64_t f)
{
    struct oj_tree_box box = oj_tree_no_box();
    int64_t first = f, end = f + 1;
    if (!oj_flat_is_points(flat))
    {
        first = flat->vertex_offset[flat->ring_offset[flat->part_offset[f]]];
        end = flat->vertex_offset[flat->ring_offset[flat->part_offset[f + 1]]];
    }
    for (int64_t v = first; v < end; v++)
    {
        struct oj_tree_box one = {flat->x[v], flat->y[v], flat->x[v],
                                  flat->y[v]};
        if (isfinite(one.x0) && isfinite(one.y0))
            oj_tree_box_add(&box, &one);
    }
    return box;
}

/* The module leaves out points that are not there, and keeps boxes of features
 * without parts, which hold nothing. */
static void side_build(struct points_side *s, const struct oj_flat *flat,
                       const int32_t *tie_rank, enum oj_point_test test,
                       double least)
{
    struct oj_tree_box extent = oj_tree_no_box(), *box;
    int32_t *order, *rank;
    int64_t n = 0;
    memset(s, 0, sizeof *s);
    TREE_NEW(box, flat->n_features);
    TREE_NEW(rank, flat->n_features);
    TREE_NEW(order, flat->n_features);
    for (int64_t f = 0; f < flat->n_features; f++)
    {
        struct oj_tree_box one = box_of(flat, f);
        if (test != OJ_POINT_IN_BOX && !(one.x0 <= one.x1))
            continue;
        oj_tree_box_add(&extent, &one);
        box[n] = one;
        rank[n++] = (int32_t)rank_at(tie_rank, f);
    }
    TREE_NEW(s->rank, n);
    TREE_NEW(s->place, n);
    TREE_NEW(s->box, n);
    s->side.test = test;
    s->side.least = least;
    s->node = tree_build(&s->side.tree, extent.x0 <= extent.x1 ? n : 0, box,
                         &extent, order);
    for (int64_t i = 0; i < s->side.tree.n; i++)
    {
        s->box[i] = box[order[i]];
        s->place[i].x = s->box[i].x0;
        s->place[i].y = s->box[i].y0;
        s->rank[i] = rank[order[i]];
    }
    s->side.rank = s->rank;
    if (test == OJ_POINT_IN_BOX)
        s->side.box = s->box;
    else
        s->side.place = s->place;
    oj_free(box);
    oj_free(rank);
    oj_free(order);
}

static void side_free(struct points_side *s)
{
    oj_free(s->place);
    oj_free(s->box);
    oj_free(s->rank);
    oj_free(s->node);
}

/* --- asking --------------------------------------------------------------- */

/* Finds the ranks of a row's pairs, in order. */
static int64_t find(const struct points_side *s,
                    const struct oj_pair_rule *rule, int64_t row, double x,
                    double y, double reach, int32_t *rank)
{
    struct oj_point_visit visit;
    int64_t n = 0, counted = 0;
    int32_t r;
    if (!oj_point_visit_start(&visit, &s->side, row, x, y, reach))
        return 0;
    while (oj_point_visit_next(&visit, &s->side, rule) >= 0)
        counted++;
    oj_point_visit_start(&visit, &s->side, row, x, y, reach);
    while ((r = oj_point_visit_next(&visit, &s->side, rule)) >= 0)
        rank[n++] = r;
    ck_assert_int_eq(n, counted);
    qsort(rank, (size_t)n, sizeof *rank, oj_compare_int32);
    return n;
}

static enum oj_point_test test_of(const struct oj_relation *r,
                                  const struct oj_flat *join)
{
    if (r->op == OJ_OP_DWITHIN)
        return OJ_POINT_NEAR;
    return oj_flat_is_points(join) ? OJ_POINT_EQUAL : OJ_POINT_IN_BOX;
}

static void compare(const struct oj_relation *r, const struct oj_flat *join,
                    const struct oj_flat *input, int64_t i, const int32_t *rank,
                    int64_t n, const int32_t *tie_rank,
                    const struct oj_matches *truth)
{
    int64_t first = oj_matches_first(truth, i);
    expect(oj_matches_end(truth, i) - first == n,
           "seed %llu, %s: row %d has %d pairs, not %d",
           (unsigned long long)seed, oj_op_get(r->op)->name, (int)i, (int)n,
           (int)(oj_matches_end(truth, i) - first));
    n_pairs += n;
    for (int64_t p = 0; p < n; p++)
    {
        int32_t f = truth->join_row[first + p];
        double measure = truth->measure[first + p];
        expect(rank[p] == rank_at(tie_rank, f),
               "seed %llu, %s: row %d, pair %d", (unsigned long long)seed,
               oj_op_get(r->op)->name, (int)i, (int)p);
        expect(r->op == OJ_OP_DWITHIN
                   ? bits_of(measure) ==
                         bits_of(oj_point_distance(input->x[i], input->y[i],
                                                   join->x[f], join->y[f]))
                   : isnan(measure),
               "seed %llu: row %d, distance of pair %d",
               (unsigned long long)seed, (int)i, (int)p);
    }
}

/* Points with points, by cells: where the distance is that of the join. */
static void try_cells(const struct oj_flat *join, const struct oj_flat *input,
                      const struct oj_relation *r, const int32_t *tie_rank,
                      const struct oj_matches *truth)
{
    struct plain_close s;
    struct plain_rule rule;
    int32_t *rank;
    int is_near = r->op == OJ_OP_DWITHIN;
    if (!oj_flat_is_points(join) || (is_near && input->max_distance != NULL))
        return;
    plain_rule_make(&rule, r, join, input, tie_rank);
    plain_close_build(&s, join, tie_rank, &rule.rule, !is_near, r->min_distance,
                      r->max_distance);
    TREE_NEW(rank, join->n_features);
    for (int64_t i = 0; i < input->n_features; i++)
    {
        int64_t n = plain_close_find(&s, i, input->x[i], input->y[i], rank);
        if (is_near)
            qsort(rank, (size_t)n, sizeof *rank, oj_compare_int32);
        compare(r, join, input, i, rank, n, tie_rank, truth);
    }
    oj_free(rank);
    plain_close_free(&s);
    plain_rule_free(&rule);
}

static void try_layers(const struct oj_flat *join, const struct oj_flat *input,
                       const struct oj_relation *r)
{
    struct asked asked;
    struct points_side s;
    int32_t *rank;
    asked_open(&asked, join, input, r);
    side_build(&s, join, asked.tie_rank, test_of(r, join), r->min_distance);
    TREE_NEW(rank, join->n_features);
    for (int64_t i = 0; i < input->n_features; i++)
    {
        double reach = r->op != OJ_OP_DWITHIN        ? 0.0
                       : input->max_distance != NULL ? input->max_distance[i]
                                                     : r->max_distance;
        int64_t n = find(&s, &asked.rule.rule, i, input->x[i], input->y[i],
                         reach, rank);
        compare(r, join, input, i, rank, n, asked.tie_rank, &asked.truth);
    }
    try_cells(join, input, r, asked.tie_rank, &asked.truth);
    oj_free(rank);
    side_free(&s);
    asked_close(&asked);
}

static struct oj_relation pick_relation(const struct scene *s,
                                        const struct oj_flat *join)
{
    static const enum oj_op ops[] = {
        OJ_OP_DWITHIN, OJ_OP_DWITHIN,   OJ_OP_DWITHIN,
        OJ_OP_DWITHIN, OJ_OP_BBOX,      OJ_OP_EQUALS,
        OJ_OP_WITHIN,  OJ_OP_CONTAINS,  OJ_OP_INTERSECTS,
        OJ_OP_COVERS,  OJ_OP_COVEREDBY, OJ_OP_CONTAINS_PROPERLY};
    struct oj_relation r = oj_relation_default();
    r.op = oj_flat_is_points(join) ? ops[pick(12)] : OJ_OP_BBOX;
    if (r.op != OJ_OP_DWITHIN)
        return r;
    r.max_distance = s->scale * pick(one_in(3) ? s->extent : 6);
    if (one_in(5))
        r.min_distance = r.max_distance / 2;
    return r;
}

static unsigned pick_kinds(void)
{
    return pick(3) ? OJ_PART_POINT : 1 + (unsigned)pick(7);
}

/* What is the CPU's. */
static void limit(struct oj_relation *relation, const struct oj_flat *join)
{
    (void)join;
    relation->exclude_same_geometry = 0;
}

TEST(random_layers)
{
    const struct asked_kind kind = {pick_kinds, pick_relation, limit,
                                    try_layers};
    int64_t n_rounds = rounds(400);
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        random_state = seed;
        try_random(&kind);
    }
    ck_assert_int_gt(n_pairs, 0);
    printf("%lld pairs\n", (long long)n_pairs);
}

/* The sides are one; points coincide, or differ by the last bit, or by so
 * little that their distance is 0. */
TEST(self_joins)
{
    struct oj_flat_buf buf = {0};
    struct oj_flat view;
    struct oj_relation r = oj_relation_default();
    seed = random_state = 5;
    for (int i = 0; i < 600; i++)
    {
        double x = pick(9), y = pick(9);
        if (i % 3 == 0)
            x = nudge(x, 1);
        if (i % 7 == 0)
            x = y = pick(2) ? 1e-200 : -0.0;
        add_point(&buf, x, y);
    }
    view = oj_flat_buf_view(&buf);
    for (int i = 0; i < 12; i++)
    {
        r.op = i % 2 == 0 ? OJ_OP_DWITHIN : OJ_OP_EQUALS;
        r.max_distance = i % 4 == 0 ? 0.0 : 1.0;
        r.exclude_self = i / 4 == 0;
        r.unordered_pairs = i / 4 == 0 ? 0 : i / 4 == 1 ? 1 : -1;
        r.exclude_same_geometry = i % 3 == 0;
        try_layers(&view, &view, &r);
    }
    oj_flat_buf_free(&buf);
}

/* The ends of the numbers that join. */
TEST(extremes)
{
    static const double values[] = {0.0,    -0.0,  5e-324, 1e-160, 1.0,
                                    1e75,   1e76,  1e149,  1e150,  -1e150,
                                    -1e149, -1e76, -1e-160};
    struct oj_flat_buf buf = {0};
    struct oj_flat view;
    struct oj_relation r = oj_relation_default();
    static const double reaches[] = {0.0, 1e-160, 1.0, 1e149, 1e154, 1.7e308};
    seed = random_state = 6;
    for (int i = 0; i < 13; i++)
    {
        for (int j = 0; j < 13; j++)
            add_point(&buf, values[i], values[j]);
    }
    view = oj_flat_buf_view(&buf);
    r.op = OJ_OP_EQUALS;
    try_layers(&view, &view, &r);
    r.op = OJ_OP_BBOX;
    try_layers(&view, &view, &r);
    r.op = OJ_OP_DWITHIN;
    for (int i = 0; i < 6; i++)
    {
        r.max_distance = reaches[i];
        try_layers(&view, &view, &r);
    }
    oj_flat_buf_free(&buf);
}

int main(void)
{
    tests_open("point_pairs");
    return tests_run();
}
