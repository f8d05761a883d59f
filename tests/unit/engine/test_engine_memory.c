/* Every allocation of opening, joining and closing fails in its turn: always
 * "out of memory", nothing kept, and the next call works.
 * Kind: memory. */
#include "../references.h"

#include "../memory_trial.h"
#include "../run_tests.h"

static struct oj_flat_buf join_side, points, multipoints;

/* Polygons with small and large rings, holes, lines, points, copies: every
 * stage of the engine has something to do. */
static void build_layers(void)
{
    struct scene scene = {0.0, 0.0, 1.0, 60, 1, 0.0};
    struct oj_flat view;
    random_state = 11;
    add_join_features(&join_side, &scene, 120,
                      OJ_PART_POINT | OJ_PART_LINE | OJ_PART_POLYGON, 0);
    for (int i = 0; i < 60; i++) /* repetitions, to be dropped */
    {
        double at[2] = {7.0, 7.0};
        begin(&join_side);
        add_some_part(&join_side, &(struct scene){0, 0, 1, 1, 1, 0}, at,
                      OJ_PART_LINE);
        add_part(&join_side, OJ_PART_POINT);
        add_ring(&join_side, 1, at);
        end(&join_side);
    }
    for (int i = 0; i < 3; i++) /* rings with grids */
    {
        double middle[2] = {20.0 * i, 30.0};
        begin(&join_side);
        add_part(&join_side, OJ_PART_POLYGON);
        add_large(&join_side, &scene, middle, 15.0);
        end(&join_side);
    }
    /* descending FIDs: tie ranks have to be made */
    for (int64_t i = 0; i < join_side.n_features; i++)
        join_side.fid[i] = 5000 - i;
    view = oj_flat_buf_view(&join_side);
    add_input_points(&points, &scene, &view, 60, 0);
    add_input_points(&multipoints, &scene, &view, 40, 1);
    ck_assert(!points.long_form && multipoints.long_form);
}

static void free_layers(void)
{
    oj_flat_buf_free(&join_side);
    oj_flat_buf_free(&points);
    oj_flat_buf_free(&multipoints);
}

static void fail_in_turn(const char *backend, const struct oj_flat_buf *input,
                         const struct oj_relation *relation, int n_threads)
{
    const struct oj_flat side = oj_flat_buf_view(&join_side);
    const struct oj_flat rows = oj_flat_buf_view(input);
    const struct memory_join t = {
        .backend = backend,
        .join = &side,
        .input = &rows,
        .relation = *relation,
        .options = {.n_threads = n_threads, .quadrant_size = 16},
        .n_each = 40}; /* growing arrays: not every one of them */
    try_without_memory(&t, 5);
}

static const char *const backends[] = {
    "cpu",         "quadrant",     "geos",
    "geos_sorted", "spatialindex", "spatialindex_collective"};
#define N_BACKENDS ((int)(sizeof backends / sizeof *backends))

/* One to one, lists, and to the boundary. */
TEST_LOOP(joins, 0, 3 * N_BACKENDS)
{
    struct oj_relation relation = oj_relation_default();
    const int what = _i / N_BACKENDS;
    const char *backend = backends[_i % N_BACKENDS];
    if (what == 0)
        relation.max_distance = 9.0;
    if (what == 1)
    {
        relation.k = 7;
        relation.ties = OJ_TIES_ALL;
    }
    if (what == 2)
        relation.distance_to = OJ_TO_BOUNDARY;
    build_layers();
    fail_in_turn(backend, what < 2 ? &points : &multipoints, &relation, 1);
    if (what < 2)
        fail_in_turn(backend, what == 0 ? &points : &multipoints, &relation, 2);
    free_layers();
}

int main(void)
{
    tests_open("engine, memory");
    return tests_run();
}
