/* Candidate pairs with what the CUDA module would say of them, found on the
 * host by the functions it is made of, and the cpu backend that decides the
 * rest, against the cpu backend alone: the same pairs.
 * Kind: property, degenerate.  OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../random_layers.h"

#include "../../../algs/relation/cpu_family.h"
#include "../plain_meet.h"
#include "../run_tests.h"

#include <stdio.h>

static uint64_t seed;
static int64_t n_said[OJ_SAID_NOTHING + 1];

static void compare(const struct oj_matches *ours,
                    const struct oj_matches *truth, const char *op)
{
    expect(ours->n_rows == truth->n_rows && ours->n_pairs == truth->n_pairs &&
               ours->n_matched == truth->n_matched,
           "seed %llu, %s: %d pairs, not %d", (unsigned long long)seed, op,
           (int)ours->n_pairs, (int)truth->n_pairs);
    for (int64_t row = 0; row < ours->n_rows; row++)
        expect(ours->offset[row + 1] == truth->offset[row + 1],
               "seed %llu, %s: row %d has other pairs",
               (unsigned long long)seed, op, (int)row);
    for (int64_t i = 0; i < ours->n_pairs; i++)
        expect(ours->join_row[i] == truth->join_row[i] &&
                   ours->measure[i] != ours->measure[i],
               "seed %llu, %s: pair %d is with %d, not %d",
               (unsigned long long)seed, op, (int)i, (int)ours->join_row[i],
               (int)truth->join_row[i]);
}

static void run_with(const struct oj_relation *relation,
                     const struct oj_flat *join, const struct oj_flat *input,
                     const int32_t *tie_rank, const struct oj_screen *screen,
                     struct oj_matches *out)
{
    struct oj_options options = {.n_threads = 1 + pick(3), .screen = screen};
    struct oj_stats stats = {0};
    struct oj_index *index;
    must(oj_cpu_predicate.index(join, tie_rank, relation, &options, &index,
                                &stats, &error));
    for (int n = one_in(4) ? 2 : 1; n > 0; n--)
        must(oj_cpu_predicate.join(index, input, out, &stats, &error));
    oj_cpu_predicate.free_index(index);
}

static void check(const struct oj_relation *relation,
                  const struct oj_flat *join, const struct oj_flat *input,
                  const int32_t *tie_rank)
{
    struct oj_matches truth = {0}, ours = {0};
    struct oj_screen_rule rule;
    struct plain_screen screen;
    if (!oj_screen_rule_of(relation, &rule))
        return;
    plain_screen_make(&screen, join, &rule);
    run_with(relation, join, input, tie_rank, NULL, &truth);
    run_with(relation, join, input, tie_rank, &screen.screen, &ours);
    compare(&ours, &truth, oj_op_get(relation->op)->name);
    for (int i = 0; i <= OJ_SAID_NOTHING; i++)
        n_said[i] += screen.n_said[i];
    plain_screen_free(&screen);
    oj_matches_free(&truth);
    oj_matches_free(&ours);
}

static int32_t *reversed(int64_t n)
{
    int32_t *rank = oj_malloc(n, sizeof *rank);
    ck_assert_ptr_nonnull(rank);
    for (int64_t i = 0; i < n; i++)
        rank[i] = (int32_t)(n - 1 - i);
    return rank;
}

static unsigned some_kinds(void)
{
    static const unsigned kinds[] = {
        OJ_PART_POLYGON, OJ_PART_POLYGON, OJ_PART_LINE,
        OJ_PART_LINE | OJ_PART_POLYGON,
        OJ_PART_POINT | OJ_PART_LINE | OJ_PART_POLYGON};
    return kinds[pick(5)];
}

static void check_layers(const struct oj_flat *join,
                         const struct oj_flat *input)
{
    int32_t *rank = one_in(2) ? reversed(join->n_features) : NULL;
    for (int op = OJ_OP_INTERSECTS; op < OJ_N_OPS; op++)
    {
        struct oj_relation relation = oj_relation_default();
        if (op != OJ_OP_INTERSECTS && op != OJ_OP_DISJOINT &&
            op != OJ_OP_BBOX && !one_in(4))
            continue;
        relation.op = (enum oj_op)op;
        memcpy(relation.mask, one_in(2) ? "T********" : "FT*******", 10);
        relation.exclude_self = one_in(4) && join->fid && input->fid;
        relation.any_order = 0;
        check(&relation, join, input, rank);
    }
    oj_free(rank);
}

TEST(random_layers)
{
    int64_t n_rounds = rounds(8);
    for (seed = first_seed(); n_rounds > 0; seed++, n_rounds--)
    {
        struct oj_flat_buf join_buf = {0}, input_buf = {0};
        struct oj_flat join, input;
        struct scene scene;
        random_state = seed;
        scene = pick_scene();
        add_join_features(&join_buf, &scene, 1 + pick(40), some_kinds(), 1);
        add_join_features(&input_buf, &scene, 1 + pick(40), some_kinds(), 1);
        join = oj_flat_buf_view(&join_buf);
        input = oj_flat_buf_view(&input_buf);
        if (!oj_flat_is_points(&join) && !oj_flat_is_points(&input))
            check_layers(&join, &input);
        oj_flat_buf_free(&join_buf);
        oj_flat_buf_free(&input_buf);
    }
    for (int i = 0; i <= OJ_SAID_NOTHING; i++)
    {
        printf("said %d: %lld\n", i, (long long)n_said[i]);
        ck_assert_int_gt(n_said[i], 0);
    }
}

/* Numbers at the ends of what is exact, and beyond; and those that are none. */
TEST(odd_numbers)
{
    static const double sizes[] = {1e-300, 1e-120, 1e-99, 1.0,
                                   1e99,   1e120,  1e149, 1.25e149};
    random_state = 3;
    for (int i = 0; i < 8; i++)
    {
        struct oj_flat_buf a = {0};
        struct oj_flat view;
        for (int j = 0; j < 40; j++)
        {
            double x = sizes[i] * pick(6), y = sizes[i] * pick(6);
            if (one_in(2))
                add_square(&a, x, y, x + sizes[i] * (1 + pick(3)),
                           y + sizes[i] * (1 + pick(3)));
            else
                add_line(&a, x, y, sizes[i] * pick(8), sizes[i] * pick(8));
        }
        view = oj_flat_buf_view(&a);
        seed = (uint64_t)i;
        check_layers(&view, &view);
        oj_flat_buf_free(&a);
    }
}

int main(void)
{
    tests_open("screen");
    return tests_run();
}
