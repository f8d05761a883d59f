/* Every allocation of opening, joining and closing fails in its turn: always
 * "out of memory", nothing kept, and the next call works.
 * Kind: memory. Run with a leak checker it also shows that nothing leaks. */
#include "../references.h"

#include "../../../algs/reference/oj_validate.h"
#include "../geos_area.h"
#include "../random_layers.h"
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
    add_input_points(&points, &scene, &view, 150, 0);
    add_input_points(&multipoints, &scene, &view, 100, 1);
    ck_assert(!points.long_form && multipoints.long_form);
}

static void free_layers(void)
{
    oj_flat_buf_free(&join_side);
    oj_flat_buf_free(&points);
    oj_flat_buf_free(&multipoints);
}

/* Opens, joins and closes once. */
static oj_status run_once(const char *backend, const struct oj_flat *input,
                          const struct oj_relation *relation, int n_threads,
                          struct oj_matches *out)
{
    struct oj_options options = {.n_threads = n_threads,
                                 .quadrant_size = 16,
                                 .timings = 0,
                                 .cancel = NULL};
    struct oj_flat join_view = oj_flat_buf_view(&join_side);
    struct oj_join *join = NULL;
    oj_status status;
    error.message[0] = '\0';
    status =
        oj_join_open(&join_view, relation, backend, &options, &join, &error);
    if (status != OJ_OK)
    {
        ck_assert_ptr_null(join);
        return status;
    }
    status = oj_join_batch(join, input, out, &error);
    if (status != OJ_OK)
    {
        /* the same join answers once there is memory again */
        struct oj_error later;
        struct oj_matches again = {0};
        oj_alloc_fail_at(0);
        ck_assert_int_eq(oj_join_batch(join, input, &again, &later), OJ_OK);
        ck_assert_int_eq(again.n_rows, input->n_features);
        oj_matches_free(&again);
    }
    oj_join_close(join);
    return status;
}

static void check_same(const struct oj_matches *a, const struct oj_matches *b)
{
    ck_assert_int_eq(a->n_rows, b->n_rows);
    ck_assert_int_eq(a->n_entries, b->n_entries);
    ck_assert_int_eq(a->n_pairs, b->n_pairs);
    ck_assert_mem_eq(a->join_row, b->join_row,
                     (size_t)a->n_entries * sizeof *a->join_row);
    for (int64_t i = 0; i < a->n_entries; i++)
    {
        expect(a->join_row[i] < 0 ||
                   bits_of(a->measure[i]) == bits_of(b->measure[i]),
               "distance %d", (int)i);
    }
}

/* The n-th allocation fails, n = 1, 2, 3 ... until none does. */
static void fail_in_turn(const char *backend, const struct oj_flat_buf *input,
                         const struct oj_relation *relation, int n_threads)
{
    struct oj_flat view = oj_flat_buf_view(input);
    struct oj_matches truth = {0}, out = {0};
    int64_t n = 0, n_failed = 0, step = 1;
    oj_status status;
    must(run_once(backend, &view, relation, n_threads, &truth));
    oj_alloc_fail_at(0);
    do
    {
        n += step;
        oj_alloc_fail_at(n);
        status = run_once(backend, &view, relation, n_threads, &out);
        oj_alloc_fail_at(0);
        if (status == OJ_OK)
            break;
        n_failed++;
        expect(status == OJ_ERR_NOMEM, "%s: allocation %d: %s: %s", backend,
               (int)n, oj_status_name(status), error.message);
        expect(error.message[0] != '\0', "%s: allocation %d: no message",
               backend, (int)n);
        if (n_failed > 150) /* growing arrays: not every one of them */
            step = 7;
    } while (1);
    ck_assert_int_gt(n_failed, 5);
    check_same(&truth, &out);
    oj_matches_free(&truth);
    oj_matches_free(&out);
}

static const char *const backends[] = {
    "cpu",         "quadrant",     "geos",
    "geos_sorted", "spatialindex", "spatialindex_collective"};
#define N_BACKENDS ((int)(sizeof backends / sizeof *backends))

TEST_LOOP(one_to_one, 0, N_BACKENDS)
{
    struct oj_relation relation = oj_relation_default();
    relation.max_distance = 9.0;
    build_layers();
    fail_in_turn(backends[_i], &points, &relation, 1);
    fail_in_turn(backends[_i], &points, &relation, 2);
    free_layers();
}

TEST_LOOP(lists, 0, N_BACKENDS)
{
    struct oj_relation relation = oj_relation_default();
    relation.k = 7;
    relation.ties = OJ_TIES_ALL;
    build_layers();
    fail_in_turn(backends[_i], &points, &relation, 1);
    fail_in_turn(backends[_i], &multipoints, &relation, 2);
    free_layers();
}

TEST_LOOP(to_the_boundary, 0, N_BACKENDS)
{
    struct oj_relation relation = oj_relation_default();
    relation.distance_to = OJ_TO_BOUNDARY;
    build_layers();
    fail_in_turn(backends[_i], &multipoints, &relation, 1);
    free_layers();
}

/* The validation of one answer by another. */
TEST(comparing)
{
    struct oj_relation relation = oj_relation_default();
    struct oj_matches ours = {0}, theirs = {0};
    struct oj_flat_buf undisputed = {0};
    struct oj_flat join_view, input;
    oj_status status = OJ_ERR_NOMEM;
    relation.k = 50;
    build_layers();
    join_view = oj_flat_buf_view(&join_side);
    input = oj_flat_buf_view(&multipoints);
    ck_assert_int_lt(copy_undisputed(&join_view, &input, &undisputed), 50);
    input = oj_flat_buf_view(&undisputed);
    must(run_once("cpu", &input, &relation, 2, &ours));
    must(run_once("geos", &input, &relation, 1, &theirs));
    for (int64_t n = 1; status != OJ_OK; n++)
    {
        struct oj_validation v;
        memset(&v, 0, sizeof v);
        v.join_side = &join_view;
        v.input = &input;
        v.relation = &relation;
        oj_alloc_fail_at(n);
        status = oj_validation_compare(&v, &ours, &theirs, &error);
        oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        ck_assert_int_eq(v.n_differences, 0);
        oj_validation_free(&v);
    }
    oj_matches_free(&ours);
    oj_matches_free(&theirs);
    oj_flat_buf_free(&undisputed);
    free_layers();
}

int main(void)
{
    tests_open("engine, memory");
    return tests_run();
}
