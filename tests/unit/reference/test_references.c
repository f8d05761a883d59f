/* The reference backends: answers known by hand.
 * Kinds: unit, degenerate. */
#include "../references.h"
#include "../run_tests.h"

#include <stdlib.h>

/* An expected pair; distance < 0 ends the list. */
struct reference_pair
{
    int64_t row;
    int32_t feature;
    double distance;
};
static const struct reference_pair last = {0, 0, -1.0};

/* Every reference gives exactly these pairs, sorted by row, then rank. */
static void check_all(const struct oj_flat_buf *join,
                      const struct oj_flat_buf *input,
                      const struct oj_relation *relation,
                      const int32_t *tie_rank,
                      const struct reference_pair *expected)
{
    struct oj_flat join_view = oj_flat_buf_view(join);
    struct oj_flat input_view = oj_flat_buf_view(input);
    const struct oj_backend *backend;
    for (int b = 0; (backend = reference_at(b)) != NULL; b++)
    {
        struct oj_matches out;
        const struct reference_pair *e = expected;
        int64_t n_matched = 0, n_pairs = 0;
        memset(&out, 0, sizeof out);
        run(backend, &join_view, &input_view, relation, tie_rank, &out);
        ck_assert((out.offset != NULL) == oj_relation_gives_lists(relation));
        for (int64_t row = 0; row < out.n_rows; row++)
        {
            int64_t first = oj_matches_first(&out, row);
            int64_t stop = oj_matches_end(&out, row);
            n_matched += stop > first;
            for (int64_t i = first; i < stop; i++, e++, n_pairs++)
            {
                ck_assert_msg(e->distance >= 0 && e->row == row &&
                                  e->feature == out.join_row[i] &&
                                  e->distance == out.measure[i],
                              "%s: row %d has feature %d at %.17g",
                              backend->name, (int)row, out.join_row[i],
                              out.measure[i]);
            }
            if (out.offset == NULL && stop == first)
                ck_assert(isnan(out.measure[row]));
        }
        ck_assert_msg(e->distance < 0, "%s: pair of row %d is missing",
                      backend->name, (int)e->row);
        ck_assert_int_eq(out.n_matched, n_matched);
        ck_assert_int_eq(out.n_pairs, n_pairs);
        ck_assert_int_eq(out.n_undecided, 0);
        oj_matches_free(&out);
    }
}

static struct oj_relation within(double distance)
{
    struct oj_relation relation = oj_relation_default();
    relation.max_distance = distance;
    return relation;
}

/* --- answers known by hand -------------------------------------------------
 */

TEST(all_rows_are_there)
{
    static const char *const names[] = {"geos", "GEOS_sorted", "spatialindex",
                                        "spatialindex_collective", "quadrant"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    {
        const struct oj_backend *backend = oj_backend_find(names[i]);
        ck_assert_ptr_nonnull(backend);
        ck_assert(backend->is_reference);
    }
}

TEST(polygon_with_hole)
{
    double shell[] = {0, 0, 10, 0, 10, 10, 0, 10, 0, 0};
    double hole[] = {4, 4, 4, 8, 8, 8, 8, 4, 4, 4};
    LAYER join = {0}, input = {0};
    struct oj_relation relation = within(3.0);
    begin(&join);
    add_part(&join, OJ_PART_POLYGON);
    add_ring(&join, 5, shell);
    add_ring(&join, 5, hole);
    end(&join);
    add_point(&input, 1, 2);   /* inside */
    add_point(&input, 0, 5);   /* on the shell */
    add_point(&input, 5, 6);   /* in the hole */
    add_point(&input, 4, 5);   /* on the hole */
    add_point(&input, 13, 10); /* as far as allowed */
    add_point(&input, 13.000001, 10);
    add_point(&input, -3, -4);
    add_point(&input, NAN, NAN);
    check_all(&join, &input, &relation, NULL,
              (struct reference_pair[]){
                  {0, 0, 0}, {1, 0, 0}, {2, 0, 1}, {3, 0, 0}, {4, 0, 3}, last});
    relation.distance_to = OJ_TO_BOUNDARY;
    check_all(&join, &input, &relation, NULL,
              (struct reference_pair[]){
                  {0, 0, 1}, {1, 0, 0}, {2, 0, 1}, {3, 0, 0}, {4, 0, 3}, last});
    relation.max_distance = INFINITY;
    relation.distance_to = OJ_TO_INTERIOR;
    check_all(&join, &input, &relation, NULL,
              (struct reference_pair[]){{0, 0, 0},
                                        {1, 0, 0},
                                        {2, 0, 1},
                                        {3, 0, 0},
                                        {4, 0, 3},
                                        {5, 0, 13.000001 - 10},
                                        {6, 0, 5},
                                        last});
}

TEST(ties_follow_rank)
{
    LAYER join = {0}, input = {0};
    struct oj_relation relation = within(10.0);
    const int32_t rank[] = {2, 1, 0, 3};
    add_square(&join, 0, 0, 5, 5); /* four squares that meet in 5, 5 */
    add_square(&join, 5, 0, 10, 5);
    add_square(&join, 0, 5, 5, 10);
    add_square(&join, 5, 5, 10, 10);
    add_point(&input, 5, 5);
    add_point(&input, 5, 1); /* on a shared border */
    check_all(&join, &input, &relation, NULL,
              (struct reference_pair[]){{0, 0, 0}, {1, 0, 0}, last});
    check_all(&join, &input, &relation, rank,
              (struct reference_pair[]){{0, 2, 0}, {1, 1, 0}, last});
    relation.k = 3;
    check_all(&join, &input, &relation, rank,
              (struct reference_pair[]){{0, 2, 0},
                                        {0, 1, 0},
                                        {0, 0, 0},
                                        {1, 1, 0},
                                        {1, 0, 0},
                                        {1, 2, 4},
                                        last});
    relation.ties = OJ_TIES_ALL;
    check_all(&join, &input, &relation, rank,
              (struct reference_pair[]){{0, 2, 0},
                                        {0, 1, 0},
                                        {0, 0, 0},
                                        {0, 3, 0},
                                        {1, 1, 0},
                                        {1, 0, 0},
                                        {1, 2, 4},
                                        {1, 3, 4},
                                        last});
    relation.k = 1;
    relation.max_distance = INFINITY;
    check_all(&join, &input, &relation, NULL,
              (struct reference_pair[]){{0, 0, 0},
                                        {0, 1, 0},
                                        {0, 2, 0},
                                        {0, 3, 0},
                                        {1, 0, 0},
                                        {1, 1, 0},
                                        last});
}

TEST(k_larger_than_layer)
{
    LAYER join = {0}, input = {0};
    struct oj_relation relation = oj_relation_default();
    relation.k = 5;
    add_line(&join, 0, 0, 10, 0);
    must(oj_flat_buf_add_null(&join, 1, &error));
    add_line(&join, 0, 4, 0, 4); /* two vertices in one place */
    add_point(&input, 0, 1);
    check_all(&join, &input, &relation, NULL,
              (struct reference_pair[]){{0, 0, 1}, {0, 2, 3}, last});
    relation.max_distance = 1;
    check_all(&join, &input, &relation, NULL,
              (struct reference_pair[]){{0, 0, 1}, last});
    relation.max_distance = 0;
    check_all(&join, &input, &relation, NULL, &last);
}

TEST(multipoints_and_collections)
{
    double p0[] = {100, 0}, p1[] = {0, 3}, p2[] = {50, 50};
    double line[] = {0, 0, 10, 0};
    LAYER join = {0}, input = {0};
    struct oj_relation relation = oj_relation_default();
    begin(&join); /* a collection of a point far off and a line */
    add_part(&join, OJ_PART_POINT);
    add_ring(&join, 1, p2);
    add_part(&join, OJ_PART_LINE);
    add_ring(&join, 2, line);
    end(&join);
    add_point(&join, 104, 3);
    begin(&input);
    add_part(&input, OJ_PART_POINT);
    add_ring(&input, 1, p0);
    add_part(&input, OJ_PART_POINT);
    add_ring(&input, 1, p1);
    end(&input);
    must(oj_flat_buf_add_null(&input, 1, &error));
    add_point(&input, 50, 49);
    check_all(&join, &input, &relation, NULL,
              (struct reference_pair[]){{0, 0, 3}, {2, 0, 1}, last});
    relation.k = 2;
    check_all(&join, &input, &relation, NULL,
              (struct reference_pair[]){{0, 0, 3},
                                        {0, 1, 5},
                                        {2, 0, 1},
                                        {2, 1, sqrt(54.0 * 54.0 + 46.0 * 46.0)},
                                        last});
}

TEST(empty_layers)
{
    struct oj_flat_buf empty = {0}, nulls = {0}, points = {0};
    struct oj_relation relation = oj_relation_default();
    must(oj_flat_buf_add_null(&nulls, 0, &error));
    add_point(&points, 1, 2);
    for (int lists = 0; lists < 2; lists++)
    {
        relation.k = lists + 1;
        for (int wide = 0; wide < 2; wide++)
        {
            relation.max_distance = wide ? INFINITY : 1.0;
            check_all(&empty, &points, &relation, NULL, &last);
            check_all(&nulls, &points, &relation, NULL, &last);
            check_all(&points, &empty, &relation, NULL, &last);
            check_all(&points, &nulls, &relation, NULL, &last);
        }
    }
    oj_flat_buf_free(&nulls);
    oj_flat_buf_free(&points);
}

/* Thousands of features in one place, others and some points very far away:
 * the search must find its way and end. */
TEST(identical_and_far)
{
    LAYER join = {0}, input = {0};
    struct oj_relation relation = oj_relation_default();
    for (int i = 0; i < 6000; i++)
        add_point(&join, 7, 7);
    add_point(&join, 1e6, 7);
    add_point(&join, -1e12, 7);
    add_point(&input, 7, 7);
    add_point(&input, 8e5, 7);
    add_point(&input, -1e12, 8);
    add_point(&input, 7, 1e300); /* no geometry, since it is too far */
    for (int i = 0; i < 500; i++)
        add_point(&input, 8, 7);
    for (int wide = 0; wide < 2; wide++)
    {
        struct reference_pair expected[504] = {
            {0, 0, 0}, {1, 6000, 2e5}, {2, 6001, 1}};
        relation.max_distance = wide ? 1e13 : INFINITY;
        for (int i = 0; i < 500; i++)
        {
            expected[3 + i].row = 4 + i;
            expected[3 + i].distance = 1;
        }
        expected[503] = last;
        check_all(&join, &input, &relation, NULL, expected);
    }
}

/* GEOS has no ring of two vertices and no line of one: they are given to it
 * with their last vertex repeated, and all backends decide as the others do. */
TEST(too_few_vertices_for_geos)
{
    double ring[] = {0, 0, 0, 0};
    LAYER join = {0}, input = {0};
    struct oj_flat join_view, input_view;
    const struct oj_backend *backend;
    begin(&join);
    add_part(&join, OJ_PART_POLYGON);
    add_ring(&join, 2, ring);
    end(&join);
    begin(&join);
    add_part(&join, OJ_PART_LINE);
    add_ring(&join, 1, ring);
    end(&join);
    add_square(&join, 100, 100, 101, 101);
    add_point(&input, 100, 100);
    add_point(&input, 0, 1);
    add_point(&input, 1, 1);
    add_point(&input, 0, 0);
    join_view = oj_flat_buf_view(&join);
    input_view = oj_flat_buf_view(&input);
    for (int boundary = 0; boundary < 2; boundary++)
    {
        struct oj_relation relation = within(2.0);
        relation.distance_to = boundary ? OJ_TO_BOUNDARY : OJ_TO_INTERIOR;
        for (int b = 0; (backend = reference_at(b)) != NULL; b++)
        {
            struct oj_matches out;
            memset(&out, 0, sizeof out);
            run(backend, &join_view, &input_view, &relation, NULL, &out);
            ck_assert_int_eq(out.n_undecided, 0);
            ck_assert_int_eq(out.join_row[0], 2);
            for (int row = 1; row < 4; row++)
                ck_assert_int_eq(out.join_row[row], 0);
            ck_assert(out.measure[1] == 1.0 && out.measure[3] == 0.0);
            ck_assert(out.measure[2] == sqrt(2.0));
            oj_matches_free(&out);
        }
    }
}

TEST(cancel_stops)
{
    LAYER points = {0};
    struct oj_flat view;
    struct oj_relation relation = oj_relation_default();
    int cancel = 1;
    struct oj_options options = {
        .n_threads = 1, .quadrant_size = 256, .timings = 0, .cancel = &cancel};
    const struct oj_backend *backend;
    add_point(&points, 1, 2);
    view = oj_flat_buf_view(&points);
    for (int b = 0; (backend = reference_at(b)) != NULL; b++)
    {
        struct oj_stats stats;
        struct oj_matches out;
        struct oj_index *index;
        memset(&stats, 0, sizeof stats);
        memset(&out, 0, sizeof out);
        must(backend->engines[0]->index(
            &(struct oj_index_args){&view, NULL, relation, options}, &index,
            &stats, &error));
        ck_assert_int_eq(
            backend->engines[0]->join(index, &view, &out, &stats, &error),
            OJ_ERR_CANCELLED);
        backend->engines[0]->free_index(index);
        oj_matches_free(&out);
    }
}

/* The papers' method knows points; the others take anything. */
TEST(lines_as_input)
{
    LAYER lines = {0};
    struct oj_flat view;
    struct oj_relation relation = oj_relation_default();
    struct oj_options options = {
        .n_threads = 1, .quadrant_size = 256, .timings = 0, .cancel = NULL};
    const struct oj_backend *backend;
    add_line(&lines, 0, 0, 1, 1);
    view = oj_flat_buf_view(&lines);
    for (int b = 0; (backend = reference_at(b)) != NULL; b++)
    {
        struct oj_stats stats;
        struct oj_matches out;
        struct oj_index *index;
        memset(&stats, 0, sizeof stats);
        memset(&out, 0, sizeof out);
        must(backend->engines[0]->index(
            &(struct oj_index_args){&view, NULL, relation, options}, &index,
            &stats, &error));
        if (backend == oj_backend_find("quadrant"))
            ck_assert_int_eq(
                backend->engines[0]->join(index, &view, &out, &stats, &error),
                OJ_ERR_UNSUPPORTED);
        else
        {
            must(backend->engines[0]->join(index, &view, &out, &stats, &error));
            ck_assert_int_eq(out.n_pairs, 1);
            ck_assert(out.measure[0] == 0.0);
        }
        backend->engines[0]->free_index(index);
        oj_matches_free(&out);
    }
}

int main(void)
{
    tests_open("references");
    return tests_run();
}
