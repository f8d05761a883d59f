/* Joins of points with features whose polygon parts overlap or share edges: the
 * union of their parts, by every backend that answers such joins; areas and
 * intersections of them.
 * Kind: unit, property, memory.  OGRJOIN_TEST_LONG=1 runs fifty times as long;
 * OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../../../algs/pair_values/oj_pair_stage.h"
#include "../../../algs/relation/oj_gpu.h"
#include "../join_trial.h"
#include "../memory_trial.h"
#include "../overlapping_layers.h"
#include "../plain_pairs.h"
#include "../run_tests.h"
#include "../within/point_matches.h"

/* --- joins ---------------------------------------------------------------- */

static void check_join(const struct points_trial *t, const char *backend)
{
    /* now and then others than points are expected */
    struct oj_options options = {.n_threads = 1 + pick(3),
                                 .n_input = pick(2) ? 1000000 : 0,
                                 .input_kinds =
                                     one_in(3) ? OJ_PART_POLYGON : 0};
    MATCHES out = {0};
    struct oj_join *join;
    int64_t n_batches = 1 + pick(3), n_rows = t->input->n_features;
    must(oj_join_open(t->join, t->relation, backend, &options, &join, &error));
    for (int64_t b = 0; b < n_batches; b++)
    {
        int64_t first = n_rows * b / n_batches;
        int64_t n = n_rows * (b + 1) / n_batches - first;
        struct oj_flat view = part_of(t->input, first, n);
        must(oj_join_batch(join, &view, &out, &error));
        check_matches(t, first, n, &out);
    }
    if (strcmp(backend, "cuda") == 0) /* it was the device that answered */
        ck_assert_str_eq(oj_join_reason(join), "");
    oj_join_close(join);
}

static int has_device(void)
{
    const struct oj_gpu_module *module;
    struct oj_gpu_device device;
    struct oj_error why;
    int n = 0;
    memset(&device, 0, sizeof device);
    return oj_gpu_load(&module, &why) == OJ_OK &&
           module->count(&n, &why) == OJ_OK && n > 0 &&
           module->describe(0, &device, &why) == OJ_OK &&
           device.why_not[0] == '\0';
}

/* at: where each row is in each feature. */
static void check_backends(struct points_trial *t, struct oj_relation *relation,
                           const enum oj_location *at)
{
    static const enum oj_op ops[] = {OJ_OP_INTERSECTS, OJ_OP_WITHIN,
                                     OJ_OP_COVEREDBY, OJ_OP_TOUCHES};
    static const char *const backends[] = {
        "cpu", "auto", "cuda", "geos", "geos_sorted", "spatialindex"};
    int64_t n = t->join->n_features, n_rows = t->input->n_features;
    uint8_t *truth = oj_calloc(n * n_rows, 1);
    t->relation = relation;
    t->truth = truth;
    for (int i = 0; i < 4; i++)
    {
        relation->op = ops[i];
        for (int64_t p = 0; p < n * (n_rows - 1); p++)
            truth[p] = holds(ops[i], at[p]) &&
                       plain_counts(relation, t->input, p / n, t->join, p % n);
        for (int b = 0; b < (only_valid ? 6 : 3); b++)
        {
            if (b == 2 && !has_device())
                continue;
            relation->any_order = pick(2);
            relation->share_lists = relation->any_order && pick(2);
            check_join(t, backends[b]);
        }
    }
    oj_free(truth);
}

TEST(joins)
{
    EACH_ROUND(12)
    {
        struct join_trial t = {.relation = oj_relation_default()};
        struct points_trial points = {.join = &t.join, .input = &t.input};
        enum oj_location *at;
        int32_t *rank;
        int64_t n;
        int descends;
        only_valid = (int)(seed % 2);
        make_layers(&t.join_buf, &t.input_buf);
        trial_view(&t);
        descends = pick(2);
        n = t.join.n_features;
        rank = oj_malloc(n, sizeof *rank);
        for (int64_t f = 0; f < n; f++)
        {
            rank[f] = (int32_t)(descends ? n - 1 - f : f);
            t.join_buf.fid[f] = 10 + 3 * rank[f];
        }
        points.tie_rank = rank;
        if (one_in(3))
        {
            t.join.on_class = t.columns.on_class[0] = pick_column(n);
            t.input.on_class = t.columns.on_class[1] =
                pick_column(t.input.n_features);
        }
        at = oj_calloc(n * t.input.n_features, sizeof *at);
        for (int64_t p = 0; p < n * (t.input.n_features - 1); p++)
            at[p] = locate_by_parts(&t.join, p % n, t.input.x[p / n],
                                    t.input.y[p / n]);
        check_backends(&points, &t.relation, at);
        oj_free(at);
        oj_free(rank);
        trial_free(&t);
    }
    ck_assert_int_gt(n_pairs_seen, 100 * rounds(12));
}

/* --- areas of unions and intersections ------------------------------------ */

struct areas
{
    double overlap, length, percent, join;
    int32_t picked;
};

/* The only input feature with the join features, all of which it meets. */
static struct areas measure_pair(const char *input_text, const char *first,
                                 const char *second, enum oj_pick_rule rule)
{
    LAYER input_buf = {0}, join_buf = {0};
    struct oj_pair_request request = {0};
    struct oj_pair_values values = {0};
    struct oj_pair_stage *stage;
    MATCHES m = {0};
    struct areas areas;
    add_text(&input_buf, input_text);
    add_text(&join_buf, first);
    add_text(&join_buf, second);
    const struct oj_flat a = oj_flat_buf_view(&input_buf);
    const struct oj_flat b = oj_flat_buf_view(&join_buf);
    const struct oj_pair_side input = {&a, &a, NULL, NULL};
    const struct oj_pair_side side = {&b, &b, NULL, NULL};
    request.pick = rule;
    memset(request.want, 1, sizeof request.want);
    request.relation = oj_relation_default();
    request.relation.op = OJ_OP_INTERSECTS;
    request.n_threads = 1;
    must(oj_matches_reserve(&m, 1, 2, 1, &error));
    m.offset[0] = 0;
    m.offset[1] = m.n_pairs = 2;
    m.n_matched = 1;
    m.join_row[0] = 0;
    m.join_row[1] = 1;
    m.measure[0] = m.measure[1] = (double)NAN;
    must(oj_pair_stage_open(&request, &stage, &error));
    must(oj_pair_stage_set_join_side(stage, &side, &error));
    must(oj_pair_stage_run(stage, &input, &m, &values, &error));
    areas.overlap = values.value[OJ_PAIR_OVERLAP_AREA][0];
    areas.length = values.value[OJ_PAIR_OVERLAP_LENGTH][0];
    areas.percent = values.value[OJ_PAIR_OVERLAP_PERCENT][0];
    areas.join = values.value[OJ_PAIR_JOIN_AREA][0];
    areas.picked = values.is_picked ? values.picked.join_row[0] : -1;
    oj_pair_stage_close(stage);
    oj_pair_values_free(&values);
    return areas;
}

TEST(areas_of_unions)
{
    static const char two[] = "0 0 5 0 5 5 0 5 0 0|3 2 8 2 8 7 3 7 3 2";
    static const char mixed[] =
        "0 0 5 0 5 5 0 5 0 0|3 2 8 2 8 7 3 7 3 2|L1 1 1 9|P20 20";
    static const char inside[] = "3 2 5 2 5 5 3 5 3 2";
    static const char box45[] = "0 0 9 0 9 5 0 5 0 0";
    struct areas a = measure_pair(inside, two, box45, OJ_PICK_ALL);
    ck_assert(a.overlap == 6.0 && a.percent == 100.0 && a.join == 44.0);
    a = measure_pair(two, inside, box45, OJ_PICK_ALL);
    ck_assert(a.overlap == 6.0 && a.join == 6.0);
    ck_assert(a.percent == 100.0 * 6.0 / 44.0);
    a = measure_pair(two, two, box45, OJ_PICK_ALL);
    ck_assert(a.overlap == 44.0 && a.percent == 100.0);
    /* twice one polygon */
    a = measure_pair(inside, "0 0 9 0 9 5 0 5 0 0|0 0 9 0 9 5 0 5 0 0", two,
                     OJ_PICK_ALL);
    ck_assert(a.overlap == 6.0 && a.join == 45.0);
    /* with lines and points */
    a = measure_pair(inside, mixed, box45, OJ_PICK_ALL);
    ck_assert(a.overlap == 6.0 && a.length == 0.0 && a.join == 44.0);
    a = measure_pair("0 0 2 0 2 9 0 9 0 0|L1 2 4 2", mixed, box45, OJ_PICK_ALL);
    ck_assert(a.overlap == 10.0 && a.length == 6.0 && a.join == 44.0);
    /* 44 is less than 45, and more than 43 */
    ck_assert_int_eq(
        measure_pair(inside, box45, two, OJ_PICK_SMALLEST_AREA).picked, 1);
    ck_assert_int_eq(
        measure_pair(inside, "0 0 9 0 9 4 0 4 0 0", two, OJ_PICK_LARGEST_AREA)
            .picked,
        1);
    ck_assert_int_eq(measure_pair("2 0 9 0 9 9 2 9 2 0",
                                  "0 0 8 0 8 5.8 0 5.8 0 0", two,
                                  OJ_PICK_LARGEST_OVERLAP)
                         .picked,
                     0);
}

/* --- memory and bounds ---------------------------------------------------- */

TEST(memory)
{
    LAYER join_buf = {0}, input_buf = {0};
    struct oj_flat join, input;
    struct memory_join t = {.backend = "cpu",
                            .join = &join,
                            .input = &input,
                            .relation = oj_relation_default(),
                            .options = {.n_threads = 1}};
    MATCHES out = {0};
    random_state = 3;
    for (int i = 0; i < 10; i++)
        add_random(&join_buf);
    add_grid(&input_buf);
    join = oj_flat_buf_view(&join_buf);
    input = oj_flat_buf_view(&input_buf);
    t.relation.op = OJ_OP_WITHIN;
    try_without_memory(&t, 30);
    t.options.max_batch_pairs = 1;
    {
        struct oj_join *opened;
        must(oj_join_open(&join, &t.relation, "cpu", &t.options, &opened,
                          &error));
        ck_assert_int_eq(oj_join_batch(opened, &input, &out, &error),
                         OJ_ERR_TOO_MANY_PAIRS);
        oj_join_close(opened);
    }
}

int main(void)
{
    tests_open("overlapping points");
    if (has_device())
        setenv("CK_FORK", "no", 1); /* a device does not survive a fork */
    return tests_run();
}
