/* Points in polygons by cells: the same pairs as a plain loop over all rings of
 * all features, whatever the shapes, batches, threads, conditions and memory.
 * Kind: property, degenerate, memory.  OGRJOIN_TEST_LONG=1 runs fifty times as
 * long; OGRJOIN_TEST_SEED=n begins with the round that failed. */
#include "../references.h"

#include "../../../algs/relation/oj_engine.h"
#include "../memory_trial.h"

#include "../run_tests.h"
#include "plain_rings.h"
#include "point_matches.h"

#include <stdio.h>

static const enum oj_op ops[] = {OJ_OP_INTERSECTS, OJ_OP_WITHIN,
                                 OJ_OP_COVEREDBY, OJ_OP_TOUCHES};

static void check_trial(const struct points_trial *t, int n_threads,
                        int64_t batch)
{
    const struct oj_engine *family = &oj_cpu_points_in_polygons;
    struct oj_options options = {.n_threads = n_threads, .timings = pick(2)};
    struct oj_relation relation = *t->relation;
    struct oj_stats stats;
    struct oj_index *index;
    MATCHES out = {0};
    memset(&stats, 0, sizeof stats);
    relation.share_lists = may_share_lists(t->join) && pick(2);
    options.n_input = pick(3) ? 1000 << pick(18) : 0;
    ck_assert(family->takes(t->relation, t->join, t->input));
    ck_assert(family->takes(t->relation, t->join, NULL));
    must(oj_index_make(
        family,
        &(struct oj_index_args){t->join, t->tie_rank, relation, options},
        &index, &stats, &error));
    for (int64_t first = 0; first < t->input->n_features; first += batch)
    {
        int64_t left = t->input->n_features - first;
        int64_t n = left < batch ? left : batch;
        struct oj_flat view = part_of(t->input, first, n);
        must(family->join(index, &view, &out, &stats, &error));
        check_matches(t, first, n, &out);
    }
    oj_index_free(family, index);
}

static void check_relation(const struct oj_flat *join,
                           const struct oj_flat *input,
                           const struct oj_relation *relation,
                           const int32_t *tie_rank)
{
    uint8_t *truth = make_truth(join, input, relation);
    struct points_trial t = {join, input, relation, tie_rank, truth};
    int64_t n = input->n_features;
    check_trial(&t, 1, n > 0 ? n : 1);
    check_trial(&t, 1 + pick(4), 1 + pick(one_in(3) ? 3 : 1000));
    oj_free(truth);
}

static void check_ops(const struct oj_flat *join, const struct oj_flat *input)
{
    for (int i = 0; i < 4; i++)
    {
        struct oj_relation relation = oj_relation_default();
        relation.op = ops[i];
        relation.any_order = one_in(2);
        check_relation(join, input, &relation, NULL);
    }
}

/* The long form also where nothing was added. */
static struct oj_flat join_view(const struct oj_flat_buf *buf)
{
    static const int64_t none[] = {0};
    struct oj_flat view = oj_flat_buf_view(buf);
    if (view.part_offset == NULL)
    {
        view.n_parts = view.n_rings = view.n_vertices = 0;
        view.part_offset = view.ring_offset = view.vertex_offset = none;
        if (view.n_features > 0)
            view.part_offset = oj_calloc(view.n_features + 1, 8);
    }
    return view;
}

/* --- rounds --------------------------------------------------------------- */

TEST(same_as_ring_by_ring)
{
    uint64_t first = first_seed();
    int64_t n = rounds(120);
    for (int64_t i = 0; i < n; i++)
    {
        LAYER join = {0}, input = {0};
        struct oj_flat a, b;
        struct scene scene;
        seed = random_state = first + (uint64_t)i;
        scene = pick_scene();
        must(oj_flat_buf_begin(&join, 0, &error)); /* the long form */
        end(&join);
        add_join_features(&join, &scene, pick(120), OJ_PART_POLYGON, 1);
        b = join_view(&join);
        add_input_points(&input, &scene, &b, 1 + pick(150), 0);
        a = oj_flat_buf_view(&input);
        check_ops(&b, &a);
    }
    ck_assert_int_gt(n_pairs_seen, n);
    ck_assert_int_gt(n_shared_seen, n / 20);
}

/* A lot of a city whose streets run at some angle. */
static void add_lot(struct oj_flat_buf *buf, const double *middle, double angle,
                    double width, double height)
{
    double xy[10], c = cos(angle), s = sin(angle);
    for (int i = 0; i < 5; i++)
    {
        double u = i == 1 || i == 2 ? width : 0.0,
               v = i % 4 >= 2 ? height : 0.0;
        xy[2 * i] = middle[0] + u * c - v * s;
        xy[2 * i + 1] = middle[1] + u * s + v * c;
    }
    xy[8] = xy[0];
    xy[9] = xy[1];
    begin(buf);
    add_part(buf, OJ_PART_POLYGON);
    add_ring(buf, 5, xy);
    end(buf);
}

/* Towns far apart, turned streets, districts over all, copies on one place:
 * what makes cells crowded, turns axes and needs more than one layer. */
TEST(towns)
{
    uint64_t first = first_seed();
    int64_t n_rounds = rounds(8);
    for (int64_t round = 0; round < n_rounds; round++)
    {
        LAYER join = {0}, input = {0};
        struct oj_flat a, b;
        double angle, apart, town[3][2];
        int n_lots;
        seed = random_state = first + (uint64_t)round;
        angle = pick(3) ? unit() * 6.3 : 0.0;
        apart = pick(2) ? 1e4 : 1e9;
        n_lots = 300 + pick(3000);
        for (int i = 0; i < 3; i++)
        {
            town[i][0] = apart * unit();
            town[i][1] = apart * unit();
        }
        for (int i = 0; i < n_lots; i++)
        {
            double middle[2], *at = town[pick(3)];
            middle[0] = at[0] + 2.0 * pick(40);
            middle[1] = at[1] + pick(40);
            if (one_in(40))
                add_lot(&join, middle, angle, 30.0 * unit(), 50.0 * unit());
            else if (one_in(4))
                add_lot(&join, at, angle, 2.0, 1.0);
            else
                add_lot(&join, middle, angle, 2.0, 1.0);
        }
        add_lot(&join, town[0], angle, 2.0 * apart, apart);
        b = oj_flat_buf_view(&join);
        for (int i = 0; i < 1500; i++)
        {
            double x, y;
            pick_beside(&b, &x, &y);
            if (pick(2))
            {
                x += unit() - 0.5;
                y += unit() - 0.5;
            }
            add_point(&input, x, y);
        }
        a = oj_flat_buf_view(&input);
        check_ops(&b, &a);
    }
}

static int32_t *pick_classes(int64_t n)
{
    int32_t *class = oj_malloc(n, sizeof *class);
    for (int64_t i = 0; i < n; i++)
        class[i] = pick(4) - 1;
    return class;
}

static int32_t *pick_ranks(int64_t n)
{
    int32_t *rank = oj_malloc(n, sizeof *rank);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t j = pick((int)i + 1);
        rank[i] = rank[j];
        rank[j] = (int32_t)i;
    }
    return rank;
}

TEST(conditions)
{
    uint64_t first = first_seed();
    for (int64_t i = rounds(60); i > 0; i--)
    {
        struct scene scene = {0.0, 0.0, 1.0, 12, 1, 0.0};
        LAYER join = {0}, input = {0};
        struct oj_relation relation = oj_relation_default();
        struct oj_flat a, b;
        int32_t *rank, *classes[2];
        seed = random_state = first + (uint64_t)i;
        add_join_features(&join, &scene, 60 + pick(60), OJ_PART_POLYGON, 0);
        b = join_view(&join);
        add_input_points(&input, &scene, &b, 80, 0);
        a = oj_flat_buf_view(&input);
        classes[0] = pick_classes(a.n_features);
        classes[1] = pick_classes(b.n_features);
        rank = pick_ranks(b.n_features);
        relation.op = ops[pick(4)];
        relation.exclude_self = pick(2);
        relation.unordered_pairs = pick(3) - 1;
        if (pick(2))
        {
            a.on_class = classes[0];
            b.on_class = classes[1];
        }
        else if (pick(2))
        {
            a.exclude_class = classes[0];
            b.exclude_class = classes[1];
        }
        check_relation(&b, &a, &relation, pick(2) ? rank : NULL);
        oj_free(classes[0]);
        oj_free(classes[1]);
        oj_free(rank);
    }
}

/* Very large and very small coordinates, as far as signs are exact. */
TEST(sizes)
{
    static const double scales[] = {1e-120, 1e-30, 1e30, 1e120};
    uint64_t first = first_seed();
    for (int64_t i = rounds(40); i > 0; i--)
    {
        struct scene scene = {0.0, 0.0, 1.0, 20, 1, 0.0};
        LAYER join = {0}, input = {0};
        struct oj_flat a, b;
        seed = random_state = first + (uint64_t)i;
        scene.scale = scales[pick(4)];
        add_join_features(&join, &scene, 60, OJ_PART_POLYGON, 0);
        b = join_view(&join);
        add_input_points(&input, &scene, &b, 80, 0);
        a = oj_flat_buf_view(&input);
        check_ops(&b, &a);
    }
}

/* A few lots far away, in x, y or both, which cells are not spread out for. */
TEST(far_rings)
{
    uint64_t first = first_seed();
    int64_t n = rounds(40);
    for (int64_t i = 0; i < n; i++)
    {
        struct scene scene = {0.0, 0.0, 1.0, 40, 1, 0.0};
        LAYER join = {0}, input = {0};
        struct oj_flat a, b;
        seed = random_state = first + (uint64_t)i;
        for (int k = 1 + pick(3); k > 0; k--)
        {
            double far = (pick(2) ? 1.0 : -1.0) * pow(10.0, 2 + pick(8));
            double x = pick(3) ? far : 5.0, y = pick(3) ? far : 5.0;
            for (int lot = one_in(4) ? 20 : 1; lot > 0; lot--)
                add_square(&join, x + lot, y, x + lot + 1.0, y + 1.0);
            add_join_features(&join, &scene, 20 + pick(100), OJ_PART_POLYGON,
                              0);
        }
        b = join_view(&join);
        add_input_points(&input, &scene, &b, 300, 0);
        a = oj_flat_buf_view(&input);
        check_ops(&b, &a);
    }
}

/* --- what is asked of every family ---------------------------------------- */

static struct oj_flat_buf districts, visitors;

static void build_layers(void)
{
    struct scene scene = {0.0, 0.0, 1.0, 40, 1, 0.0};
    struct oj_flat view;
    random_state = 5;
    add_join_features(&districts, &scene, 300, OJ_PART_POLYGON, 0);
    for (int i = 0; i < 200; i++) /* a crowd far away */
        add_square(&districts, 1e6 + i % 20, i / 20, 1e6 + i % 20 + 1,
                   i / 20 + 1);
    view = oj_flat_buf_view(&districts);
    add_input_points(&visitors, &scene, &view, 400, 0);
}

/* Also where the plane is prepared. */
TEST_LOOP(memory, 0, 2)
{
    struct oj_flat a, b;
    struct memory_join t = {.backend = "cpu",
                            .join = &b,
                            .input = &a,
                            .relation = oj_relation_default(),
                            .n_each = 100};
    build_layers();
    a = oj_flat_buf_view(&visitors);
    b = oj_flat_buf_view(&districts);
    t.relation.op = OJ_OP_INTERSECTS;
    t.relation.any_order = t.relation.share_lists = _i;
    t.options.n_input = _i == 1 ? 400000 : 0;
    for (int n_threads = 1; n_threads < 3; n_threads++)
    {
        t.options.n_threads = n_threads;
        try_without_memory(&t, 10 + 10 * _i);
    }
    oj_flat_buf_free(&districts);
    oj_flat_buf_free(&visitors);
}

/* The plane is prepared before a batch comes, and takes its time. */
TEST(cancelled_while_cells_are_made)
{
    struct oj_relation relation = oj_relation_default();
    int cancel = 1;
    struct oj_options options = {
        .n_threads = 2, .n_input = 400000, .cancel = &cancel};
    struct oj_join *join = NULL;
    struct oj_flat view;
    build_layers();
    view = oj_flat_buf_view(&districts);
    relation.op = OJ_OP_INTERSECTS;
    relation.any_order = relation.share_lists = 1;
    ck_assert_int_eq(
        oj_join_open(&view, &relation, "cpu", &options, &join, &error),
        OJ_ERR_CANCELLED);
    ck_assert_ptr_null(join);
    oj_flat_buf_free(&districts);
    oj_flat_buf_free(&visitors);
}

/* No features, no features with parts, no rows, only rows without a place. */
TEST(nothing)
{
    LAYER join = {0}, input = {0};
    struct oj_flat a, b, nowhere;
    const double nan[] = {NAN, NAN, NAN};
    const int64_t fid[] = {0, 1, 2};
    random_state = seed = 0;
    must(oj_flat_buf_begin(&join, 0, &error));
    end(&join);
    must(oj_flat_buf_add_null(&join, 1, &error));
    add_point(&input, 0.0, 0.0);
    a = oj_flat_buf_view(&input);
    b = oj_flat_buf_view(&join);
    check_ops(&b, &a);
    b.n_features = 0;
    check_ops(&b, &a);
    add_square(&join, -1.0, -1.0, 1.0, 1.0);
    b = oj_flat_buf_view(&join);
    check_ops(&b, &a);
    nowhere = a;
    nowhere.x = nowhere.y = nan;
    nowhere.fid = fid;
    nowhere.n_features = nowhere.n_vertices = 3;
    check_ops(&b, &nowhere);
    nowhere.n_features = nowhere.n_vertices = 0;
    check_ops(&b, &nowhere);
}

/* What other families are for. */
TEST(not_taken)
{
    const struct oj_engine *family = &oj_cpu_points_in_polygons;
    LAYER join = {0}, line = {0}, input = {0};
    struct oj_relation relation = oj_relation_default();
    struct oj_flat a, b, c;
    add_square(&join, -1.0, -1.0, 1.0, 1.0);
    add_line(&line, 0.0, 0.0, 1.0, 1.0);
    add_point(&input, 0.0, 0.0);
    a = oj_flat_buf_view(&input);
    b = oj_flat_buf_view(&join);
    c = oj_flat_buf_view(&line);
    ck_assert(!family->takes(&relation, &b, &a)); /* nearest */
    relation.op = OJ_OP_CONTAINS;
    ck_assert(!family->takes(&relation, &b, &a));
    relation.op = OJ_OP_DISJOINT;
    ck_assert(!family->takes(&relation, &b, &a));
    relation.op = OJ_OP_INTERSECTS;
    ck_assert(family->takes(&relation, &b, &a));
    ck_assert(!family->takes(&relation, &c, &a));
    ck_assert(!family->takes(&relation, &b, &c));
    ck_assert(!family->takes(&relation, &a, &a));
}

int main(void)
{
    tests_open("points in polygons");
    return tests_run();
}
