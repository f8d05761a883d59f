/* Every allocation fails in turn, while a join is opened and while it joins.
 * The error is always "out of memory" with a message, and no memory is kept. A
 * join that was opened answers afterwards as if nothing had failed. A leak
 * checker confirms that nothing leaks. One table has all engines of the CPU.
 * Kind: memory. */
#include "../references.h"

#include "../join_trial.h"
#include "../predicate/random_shapes.h"
#include "../run_tests.h"

/* --- sides ---------------------------------------------------------------- */

enum side
{
    ANYTHING, /* features that use every stage of the engines for nearest */
    MIXED,
    SHAPES,   /* shapes that touch and share edges */
    POLYGONS, /* polygons, and many more far away */
    MULTI,    /* points and multipoints on and beside the features of the other
                 side */
    POINTS,   /* like MULTI, without multipoints */
    PLACES    /* points on a lattice */
};

/* Adds small and large rings, holes, lines, points and copies. */
static void add_anything(struct oj_flat_buf *buf, const struct scene *scene)
{
    add_join_features(buf, scene, 120, 7, 0);
    for (int i = 0; i < 60; i++) /* repeated shapes, which indexes drop */
    {
        double at[2] = {7.0, 7.0};
        begin(buf);
        add_some_part(buf, &(struct scene){0, 0, 1, 1, 1, 0}, at, OJ_PART_LINE);
        add_part(buf, OJ_PART_POINT);
        add_ring(buf, 1, at);
        end(buf);
    }
    for (int i = 0; i < 3; i++) /* rings large enough for grids */
    {
        double middle[2] = {20.0 * i, 30.0};
        begin(buf);
        add_part(buf, OJ_PART_POLYGON);
        add_large(buf, scene, middle, 15.0);
        end(buf);
    }
}

static void add_side(enum side side, const struct oj_flat *other,
                     struct oj_flat_buf *buf)
{
    const struct scene scene = {0.0, 0.0, 1.0, 60, 1, 0.0};
    if (side == ANYTHING)
        add_anything(buf, &scene);
    if (side == MIXED)
        add_join_features(buf, &scene, 30, 7, 0);
    if (side == SHAPES)
        add_shapes(buf, &(struct shape_lattice){12, 0.0, 1.0}, 12);
    if (side == POLYGONS)
        add_join_features(buf, &scene, 300, OJ_PART_POLYGON, 0);
    for (int i = 0; side == POLYGONS && i < 200; i++)
        add_square(buf, 1e6 + i % 20, i / 20, 1e6 + i % 20 + 1, i / 20 + 1);
    if (side == MULTI || side == POINTS)
        add_input_points(buf, &scene, other, 40, side == MULTI);
    for (int i = 0; side == PLACES && i < 300; i++)
        add_point(buf, pick(30), pick(30));
    ck_assert_int_eq(buf->long_form, side < POINTS);
    /* descending FIDs, so that tie ranks must be computed */
    for (int64_t i = 0; i < buf->n_features; i++)
        buf->fid[i] = side == ANYTHING || side == PLACES ? 5000 - i : i;
}

/* --- joins ---------------------------------------------------------------- */

enum each
{
    ONE,
    COLUMNS,  /* with conditions on all columns */
    OPS,      /* all joins but similar, one by one */
    DISTANCES /* distances of shapes, one by one */
};

#define TREES "geos", "spatialindex_collective"
#define ALL "cpu", "quadrant", "geos_sorted", "spatialindex", TREES
/* Options of a join by the n nearest, unless another .op is given. */
#define FIRST(n) .k = (n), .max_distance = INFINITY
#define DWITHIN(d) .k = 1, .max_distance = (d), .op = OJ_OP_DWITHIN
#define TIES .ties = OJ_TIES_ALL
#define SPHERE .metric = OJ_METRIC_SPHERE
#define TEXTS                                                                  \
    .op = OJ_OP_SIMILAR, .n_similar = 1, .similar = {{OJ_TEXT_DICE, 1, 3}}
#define HEADING .heading = {1, 1, 30.0}
#define VECTORS .op = OJ_OP_SIMILAR, .vector = {1, OJ_NORM_L2, INFINITY}

static const struct sweep
{
    const char *backends[7];
    enum side join, input;
    enum each each;
    struct oj_relation relation;
} sweeps[] = {
    {{ALL}, ANYTHING, POINTS, ONE, {FIRST(1)}},
    {{ALL}, ANYTHING, MULTI, ONE, {FIRST(1)}},
    {{ALL}, ANYTHING, POINTS, ONE, {FIRST(7), TIES}},
    {{ALL}, ANYTHING, MULTI, ONE, {FIRST(7), TIES}},
    {{ALL}, ANYTHING, MULTI, ONE, {FIRST(1), .distance_to = OJ_TO_BOUNDARY}},
    {{"cpu"}, MIXED, MIXED, ONE, {FIRST(4), TIES}},
    {{"cpu"}, SHAPES, MIXED, COLUMNS, {DWITHIN(4.0)}},
    {{"cpu"}, PLACES, POINTS, ONE, {DWITHIN(5.0), .exclude_self = 1}},
    {{"cpu"}, POINTS, PLACES, ONE, {DWITHIN(5.0)}},
    {{"gpics_quadtree", "gpics_kdtree", "gpics_quadtree_single",
      "gpics_kdtree_single", "live_quadtree", "live_kdtree"},
     PLACES,
     POINTS,
     ONE,
     {FIRST(7), TIES}},
    {{"gpics_quadtree", "gpics_kdtree_single", "live_quadtree"},
     PLACES,
     POINTS,
     ONE,
     {DWITHIN(5.0)}},
    {{"cpu"}, POLYGONS, PLACES, ONE, {.op = OJ_OP_INTERSECTS, .k = 1}},
    {{"cpu", TREES}, SHAPES, SHAPES, OPS, {DWITHIN(0.5), .mask = "FF*FF****"}},
    {{"cpu"}, MIXED, ANYTHING, ONE, {.k = 1, .op = OJ_OP_TOUCHES}},
    {{"cpu"}, MIXED, POINTS, ONE, {FIRST(3), SPHERE}},
    {{"cpu", "geos"}, ANYTHING, MULTI, ONE, {FIRST(2), HEADING}},
    {{"cpu"}, ANYTHING, POINTS, ONE, {DWITHIN(3.0), HEADING}},
    {{"cpu", "geos"}, MIXED, MIXED, DISTANCES, {FIRST(3)}},
    {{"cut_points"},
     MIXED,
     MIXED,
     ONE,
     {FIRST(3), .distance = OJ_DISTANCE_HAUSDORFF_POINTS}},
    {{"cpu"}, MIXED, MIXED, DISTANCES, {FIRST(3), .densify = 5.0}},
    {{"cpu"}, MIXED, MIXED, DISTANCES, {FIRST(3), .densify = 3e5, SPHERE}},
    {{"cpu", "lists"}, POINTS, PLACES, ONE, {FIRST(4), TEXTS}},
    {{"cpu"}, POINTS, PLACES, ONE, {FIRST(OJ_EVERY_PAIR), TEXTS}},
    {{"cpu", "lists", "zlists"}, POINTS, PLACES, ONE, {FIRST(4), VECTORS}},
    {{"cpu"},
     POINTS,
     PLACES,
     COLUMNS,
     {.op = OJ_OP_ATTRIBUTES, .k = 1, .max_distance = INFINITY}},
};

/* Makes allocations fail in turn. After 100 failures only every 17th allocation
 * fails, because arrays grow in steps. */
static void fail_in_turn(const struct join_trial *t, const char *backend,
                         int n_threads)
{
    const struct oj_options options = {.n_threads = n_threads,
                                       .quadrant_size = 16};
    MATCHES truth = {0};
    int64_t n_failed = 0;
    oj_status status = OJ_ERR_NOMEM;
    must(trial_open_and_join(t, backend, &options, NULL, &truth));
    for (int64_t n = 1; status != OJ_OK; n += n_failed < 100 ? 1 : 17)
    {
        MATCHES out = {0};
        struct oj_join *join = NULL;
        error.message[0] = '\0';
        oj_alloc_fail_at(n);
        status = oj_join_open(&t->join, &t->relation, backend, &options, &join,
                              &error);
        ck_assert((status == OJ_OK) == (join != NULL));
        if (status == OJ_OK)
            status = oj_join_batch(join, &t->input, &out, &error);
        oj_alloc_fail_at(0);
        expect(status == OJ_OK ||
                   (status == OJ_ERR_NOMEM && error.message[0] != '\0'),
               "%s, op %d: allocation %d: %s: %s", backend, t->relation.op,
               (int)n, oj_status_name(status), error.message);
        n_failed += status != OJ_OK;
        if (join != NULL && status != OJ_OK)
            must(oj_join_batch(join, &t->input, &out, &error));
        if (join != NULL)
            same_matches(backend, &out, &truth);
        oj_join_close(join);
    }
    /* an engine that has only a hash table makes few allocations */
    ck_assert_int_ge(n_failed,
                     oj_relation_is_of_equal_attributes(&t->relation) ? 5 : 20);
}

static void run_sweep(const struct sweep *s, int i)
{
    struct join_trial t = {.relation = s->relation};
    struct oj_relation *r = &t.relation;
    random_state = 11;
    add_side(s->join, &t.join, &t.join_buf);
    trial_view(&t);
    add_side(s->input, &t.join, &t.input_buf);
    trial_view(&t);
    if (s->each == OPS)
        r->op = (enum oj_op)i;
    if (s->each == DISTANCES)
        r->distance = (enum oj_distance_kind)(OJ_DISTANCE_HAUSDORFF + i);
    if (s->each == COLUMNS)
        pick_columns(&t.columns, &t.join, &t.input, r, 4.0, 1);
    if (s->each == COLUMNS)
        pick_spans(&t.columns, &t.join, &t.input, r);
    if (r->n_similar > 0)
        pick_texts(&t.columns, &t.join, &t.input, r);
    if (r->vector.is_asked)
        pick_vectors(&t.columns, &t.join, &t.input, r);
    if (r->heading.is_asked)
        pick_headings(&t.columns, &t.input);
    r->similar[0] = s->relation.similar[0];
    r->vector = s->relation.vector;
    for (int b = 0; s->backends[b] != NULL; b++)
    {
        fail_in_turn(&t, s->backends[b], 1);
        if (b == 0) /* only cpu and cut_points have several threads */
            fail_in_turn(&t, s->backends[b], 2);
    }
    trial_free(&t);
}

TEST_LOOP(joins, 0, (int)(sizeof sweeps / sizeof *sweeps))
{
    const int n[] = {1, 1, OJ_OP_SIMILAR,
                     OJ_DISTANCE_DIRECTED_FROM_JOIN - OJ_DISTANCE_LEAST};
    for (int i = 0; i < n[sweeps[_i].each]; i++)
        run_sweep(&sweeps[_i], i);
}

int main(void)
{
    tests_open("engine, memory");
    return tests_run();
}
