/* Compares polygons with shared borders with the exact reference: coverages,
 * two coverages of one grid, neighbours of which one has vertices missing or
 * slightly displaced, holes, several parts, repeated vertices, and invalid
 * rings.
 * Kind: property, degenerate. */
#include "../../../algs/geometry/relate/relate.h"
#include "../../../algs/geometry/relate/relate_shared_borders.h"
#include "../references.h"
#include "../run_tests.h"
#include "random_coverage.h"

#include "../../../algs/foundations/relation/oj_index.h"
#include "../exact_truth.h"
#include "../join_trial.h"

#include <stdio.h>
#include <string.h>

static int64_t n_pairs, n_decided, n_contact, n_held;

/* Returns 1 if the shape is topologically valid and its border is simple. The
 * matrix from borders needs both. */
static int is_valid_and_simple(const struct oj_shape *shape)
{
    struct oj_border border;
    struct oj_figure figure;
    struct oj_node_scratch node;
    int is_simple, is_valid;
    memset(&border, 0, sizeof border);
    memset(&figure, 0, sizeof figure);
    memset(&node, 0, sizeof node);
    must(oj_border_is_simple(shape, &border, &is_simple, &error));
    must(oj_shape_is_valid(shape, &figure, &node, &is_valid, &error));
    /* a single simple ring is valid */
    ck_assert(is_valid || !is_simple || shape->n_rings > 1);
    oj_border_free(&border);
    oj_relate_figure_free(&figure);
    oj_relate_node_scratch_free(&node);
    return is_simple && is_valid;
}

static void check_matrix(const struct oj_flat *a, int64_t i,
                         const struct oj_flat *b, int64_t j,
                         struct oj_border_pair *scratch)
{
    struct oj_shape s = oj_shape_of(a, i), t = oj_shape_of(b, j);
    struct oj_matrix truth, ours;
    if (!is_valid_and_simple(&s) || !is_valid_and_simple(&t))
        return;
    n_pairs++;
    must(oj_borders_find_contacts(&s, &t, scratch, &error));
    if (!oj_borders_relate(scratch, &ours))
        return;
    truth = exact_matrix(a, i, b, j);
    expect(strcmp(truth.at, ours.at) == 0,
           "seed %llu: features %d and %d: exactly %s, ours %s",
           (unsigned long long)seed, (int)i, (int)j, truth.at, ours.at);
    n_decided++;
    n_contact += scratch->n_contacts > 0;
}

static void check_matrices(const struct oj_flat *a, const struct oj_flat *b)
{
    struct oj_border_pair scratch;
    memset(&scratch, 0, sizeof scratch);
    for (int64_t i = 0; i < a->n_features; i++)
    {
        for (int64_t j = 0; j < b->n_features; j++)
            check_matrix(a, i, b, j, &scratch);
    }
    oj_border_pair_free(&scratch);
}

static int is_pair(const struct oj_matches *m, int64_t row, int64_t feature)
{
    for (int64_t i = oj_matches_first(m, row); i < oj_matches_end(m, row); i++)
    {
        if (m->join_row[i] == feature)
            return 1;
    }
    return 0;
}

static const char *const masks[] = {"F***1****", "FF*F0****", "2********",
                                    "T*F**F***", "****1****", "FF2FF1212",
                                    "*1*1*****", "2FF1FF212"};

static void check_join(enum oj_op op, const struct oj_flat *a,
                       const struct oj_flat *b)
{
    struct oj_relation relation = oj_relation_default();
    struct oj_options options = {.n_threads = 1};
    struct oj_index *index = NULL;
    struct oj_stats stats = {0};
    MATCHES m = {0};
    relation.op = op;
    memcpy(relation.mask, masks[pick(8)], 10);
    must(oj_index_make(&oj_cpu_predicate,
                       &(struct oj_index_args){.join_side = b,
                                               .relation = relation,
                                               .options = options},
                       &index, &stats, &error));
    must(oj_cpu_predicate.join(index, a, &m, &stats, &error));
    oj_index_free(&oj_cpu_predicate, index);
    for (int64_t i = 0; i < a->n_features; i++)
    {
        for (int64_t j = 0; j < b->n_features; j++)
        {
            int truth = exact_holds(&relation, a, i, b, j);
            expect(truth == is_pair(&m, i, j),
                   "seed %llu: %s %s: row %d, feature %d: exactly %d",
                   (unsigned long long)seed, oj_op_get(op)->name, relation.mask,
                   (int)i, (int)j, truth);
            n_held += truth;
        }
    }
}

static void check_layers(const struct oj_flat *a, const struct oj_flat *b)
{
    static const enum oj_op ops[] = {
        OJ_OP_TOUCHES, OJ_OP_OVERLAPS, OJ_OP_CROSSES,  OJ_OP_EQUALS,
        OJ_OP_RELATE,  OJ_OP_WITHIN,   OJ_OP_CONTAINS, OJ_OP_COVERS};
    check_matrices(a, b);
    check_join(OJ_OP_TOUCHES, a, b);
    check_join(OJ_OP_RELATE, a, b);
    check_join(ops[pick(8)], a, b);
}

/* Relates a coverage with itself, and two coverages of one grid with each
 * other. */
static void check_coverages(const struct coverage_faults *faults,
                            int is_straight)
{
    struct coverage_grid grid;
    LAYER a = {0}, b = {0};
    struct oj_flat flat_a, flat_b;
    make_coverage_grid(&grid, is_straight);
    add_coverage(&a, &grid, faults);
    add_coverage(&b, &grid, faults);
    flat_a = oj_flat_buf_view(&a);
    flat_b = oj_flat_buf_view(&b);
    check_layers(&flat_a, &flat_a);
    check_layers(&flat_a, &flat_b);
}

static void start_loop(int loop)
{
    n_pairs = n_decided = n_contact = n_held = 0;
    seed = random_state = first_seed() + (uint64_t)loop;
}

static void print_counts(void)
{
    printf("%lld pairs, %lld of them decided by borders, %lld with contacts\n",
           (long long)n_pairs, (long long)n_decided, (long long)n_contact);
}

/* Borders that intersect only in common vertices are always decided. */
TEST_LOOP(coverages, 0, 4)
{
    const struct coverage_faults none = {0, 0, 0, 0, 0};
    start_loop(_i);
    for (int64_t round = 0; round < rounds(12); round++)
        check_coverages(&none, one_in(4));
    ck_assert_int_gt(n_contact, n_pairs / 4);
    ck_assert_int_eq(n_decided, n_pairs);
    ck_assert_int_gt(n_held, 0);
    print_counts();
}

/* Adds a rectangle with integer coordinates as a ring. Its first vertex and its
 * direction are random. dense 1: all integer points of its sides are vertices.
 */
static void add_box_ring(struct oj_flat_buf *buf, int x0, int y0, int x1,
                         int y1, int dense)
{
    const struct coverage_faults none = {0, 0, 0, 0, 0};
    struct coverage_ring ring = {.n = 0};
    for (int x = x0; x < x1; x += dense ? 1 : x1 - x0)
        put_ring_point(&ring, x, y0);
    for (int y = y0; y < y1; y += dense ? 1 : y1 - y0)
        put_ring_point(&ring, x1, y);
    for (int x = x1; x > x0; x -= dense ? 1 : x1 - x0)
        put_ring_point(&ring, x, y1);
    for (int y = y1; y > y0; y -= dense ? 1 : y1 - y0)
        put_ring_point(&ring, x0, y);
    finish_ring(&none, &ring);
    add_ring(buf, ring.n, ring.xy);
}

static void add_box_feature(struct oj_flat_buf *buf, int x0, int y0, int x1,
                            int y1, int dense)
{
    begin(buf);
    add_part(buf, OJ_PART_POLYGON);
    add_box_ring(buf, x0, y0, x1, y1, dense);
    end(buf);
}

/* Adds a polygon with a hole, and shapes beside it that fill the hole entirely,
 * partly, or more than entirely. dense 1: all integer points of the sides are
 * vertices. */
static void add_boxes_around_a_hole(struct oj_flat_buf *buf, int dense)
{
    for (int n_holes = 1; n_holes <= 2; n_holes++)
    {
        begin(buf);
        add_part(buf, OJ_PART_POLYGON);
        add_box_ring(buf, 0, 0, 12, 9, dense);
        add_box_ring(buf, 3, 3, 6, 6, dense);
        if (n_holes == 2)
            add_box_ring(buf, 8, 3, 10, 6, dense);
        end(buf);
    }
    begin(buf); /* both fillings as two parts, and one with an island */
    add_part(buf, OJ_PART_POLYGON);
    add_box_ring(buf, 3, 3, 6, 6, dense);
    add_part(buf, OJ_PART_POLYGON);
    add_box_ring(buf, 8, 3, 10, 6, dense);
    end(buf);
    begin(buf);
    add_part(buf, OJ_PART_POLYGON);
    add_box_ring(buf, 0, 0, 12, 9, dense);
    add_box_ring(buf, 2, 2, 11, 7, dense);
    add_part(buf, OJ_PART_POLYGON);
    add_box_ring(buf, 3, 3, 6, 6, dense);
    end(buf);
    add_box_feature(buf, 0, 0, 12, 9, dense);
    add_box_feature(buf, 3, 3, 6, 6, dense);
    add_box_feature(buf, 8, 3, 10, 6, dense);
    add_box_feature(buf, 3, 3, 5, 6, dense);
    add_box_feature(buf, 5, 3, 6, 6, dense);
    add_box_feature(buf, 2, 2, 7, 7, dense);
    add_box_feature(buf, 2, 2, 11, 7, dense);
    add_box_feature(buf, 3, 0, 6, 3, dense);
    add_box_feature(buf, 12, 0, 14, 9, dense);
}

/* Whether a hole is filled is decided by the sides of shared edges. */
TEST_LOOP(filled_holes, 0, 4)
{
    start_loop(_i);
    for (int round = 0; round < 2; round++)
    {
        LAYER a = {0}, b = {0};
        struct oj_flat flat_a, flat_b;
        add_boxes_around_a_hole(&a, 1);
        add_boxes_around_a_hole(&b, _i % 2);
        flat_a = oj_flat_buf_view(&a);
        flat_b = oj_flat_buf_view(&b);
        check_layers(&flat_a, &flat_a);
        check_layers(&flat_a, &flat_b);
    }
    ck_assert_int_gt(n_contact, n_pairs / 4);
    print_counts();
}

TEST_LOOP(broken_coverages, 0, 8)
{
    start_loop(_i);
    for (int64_t round = 0; round < rounds(12); round++)
    {
        const struct coverage_faults faults = {
            one_in(2) ? 2 + pick(8) : 0, one_in(2) ? 2 + pick(20) : 0,
            one_in(4) ? 2 + pick(30) : 0, one_in(2) ? 2 + pick(4) : 0,
            one_in(4) ? 10 + pick(30) : 0};
        check_coverages(&faults, one_in(4));
    }
    ck_assert_int_gt(n_decided, 0);
    print_counts();
}

int main(void)
{
    tests_open("shared_borders");
    return tests_run();
}
