/* Compares the predicates of the backend cpu with exact arithmetic, pair by
 * pair. Layers are random features of any kinds on a small lattice. Tests every
 * join in both orders, threads, batches, coordinates whose products overflow,
 * and exclusions.
 * Kinds: property, degenerate. */
#include "../references.h"

#include "../../../algs/foundations/relation/oj_index.h"
#include "../join_trial.h"
#include "../run_tests.h"
#include "random_shapes.h"

#include "../exact_truth.h"

static const char *const masks[] = {
    "T********", "FF*FF****", "F********", "*********", "T*F**F***",
    "FF*F*****", "0********", "1*T***T**", "FT*******", "F**T*****",
    "**2******", "FF0******", "FFTFF****", "FF*FF*F**", "****1****",
    "T*T***T**", "******0**", "*****F***", "FF1FF0212", "TFFFTFFFT"};

#define N_MASKS ((int)(sizeof masks / sizeof *masks))

static struct oj_relation some_relation(enum oj_op op)
{
    struct oj_relation relation = oj_relation_default();
    relation.op = op;
    memcpy(relation.mask, masks[pick(N_MASKS)], 10);
    return relation;
}

/* Calls the engine directly, whatever the kinds of features are. Returns a
 * status. */
static oj_status run_family(const struct oj_relation *relation,
                            const struct oj_flat *input,
                            const struct oj_flat *join_side,
                            const struct oj_options *options,
                            struct oj_matches *out)
{
    struct oj_index *index = NULL;
    struct oj_stats stats = {0};
    oj_status status;
    ck_assert(oj_cpu_predicate.supports(relation, join_side, input));
    status = oj_index_make(&oj_cpu_predicate,
                           &(struct oj_index_args){.join_side = join_side,
                                                   .relation = *relation,
                                                   .options = *options},
                           &index, &stats, &error);
    if (status != OJ_OK)
        return status;
    status = oj_cpu_predicate.join(index, input, out, &stats, &error);
    oj_index_free(&oj_cpu_predicate, index);
    return status;
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

static unsigned kinds_of(const struct oj_flat *flat, int64_t feature)
{
    unsigned kinds = 0;
    if (oj_flat_is_points(flat))
        return flat->x[feature] == flat->x[feature] ? OJ_PART_POINT : 0u;
    for (int64_t p = flat->part_offset[feature];
         p < flat->part_offset[feature + 1]; p++)
        kinds |= flat->part_kind[p];
    return kinds;
}

static int64_t n_checked, n_held;

static void check_pairs(const struct oj_relation *relation,
                        const struct oj_flat *input,
                        const struct oj_flat *join_side,
                        const struct oj_matches *m)
{
    for (int64_t row = 0; row < input->n_features; row++)
    {
        for (int64_t f = 0; f < join_side->n_features; f++)
        {
            int truth = exact_holds(relation, input, row, join_side, f);
            int ours = is_pair(m, row, f);
            n_checked++;
            n_held += ours;
            expect(ours == truth,
                   "seed %llu: %s %s: row %d (kinds %u), feature %d (kinds "
                   "%u): ours %d",
                   (unsigned long long)seed, oj_op_get(relation->op)->name,
                   relation->mask, (int)row, kinds_of(input, row), (int)f,
                   kinds_of(join_side, f), ours);
        }
    }
}

/* Asserts that a batch gives equal pairs if its rows are joined one by one, or
 * in two batches. */
static void check_cuts(const struct oj_relation *relation,
                       const struct oj_flat *input,
                       const struct oj_flat *join_side,
                       const struct oj_matches *whole, int64_t cut)
{
    struct oj_options options = {.n_threads = 1};
    struct oj_flat_slice part = {0};
    struct oj_index *index;
    struct oj_stats stats = {0};
    MATCHES out = {0};
    must(oj_index_make(&oj_cpu_predicate,
                       &(struct oj_index_args){.join_side = join_side,
                                               .relation = *relation,
                                               .options = options},
                       &index, &stats, &error));
    for (int64_t first = 0; first < input->n_features;)
    {
        int64_t end = first == 0 ? cut : input->n_features;
        must(oj_flat_slice_make(input, first, end - first, &part, &error));
        must(oj_cpu_predicate.join(index, &part.flat, &out, &stats, &error));
        same_rows("a part", &out, whole, first);
        first = end;
    }
    oj_flat_slice_free(&part);
    oj_index_free(&oj_cpu_predicate, index);
}

static void check_join(const struct oj_relation *relation,
                       const struct oj_flat *input,
                       const struct oj_flat *join_side)
{
    struct oj_options one = {.n_threads = 1}, three = {.n_threads = 3};
    MATCHES m = {0}, other = {0};
    must(run_family(relation, input, join_side, &one, &m));
    check_pairs(relation, input, join_side, &m);
    must(run_family(relation, input, join_side, &three, &other));
    same_matches("three threads", &other, &m);
    if (one_in(3))
        check_cuts(relation, input, join_side, &m,
                   1 + pick((int)input->n_features - 1));
}

static struct shape_lattice some_lattice(void)
{
    static const int sizes[] = {2, 4, 8, 20};
    struct shape_lattice l = {sizes[pick(4)], 0.0, 1.0};
    if (one_in(3))
    {
        l.origin = 123456.7;
        l.step = 1.0 / 3;
    }
    return l;
}

TEST(every_join)
{
    n_checked = n_held = 0;
    EACH_ROUND(4)
    {
        LAYER a = {0}, b = {0}, points = {0};
        struct oj_flat sides[3];
        struct shape_lattice l;
        l = some_lattice();
        add_shapes(&a, &l, 8 + pick(14));
        add_shapes(&b, &l, 8 + pick(14));
        for (int i = 0; i < 20; i++)
            add_point(&points, place(&l, pick(l.size + 1)),
                      place(&l, pick(l.size + 1)) + (one_in(3) ? 0.25 : 0.0));
        ck_assert(!points.long_form);
        sides[0] = oj_flat_buf_view(&a);
        sides[1] = oj_flat_buf_view(&b);
        sides[2] = oj_flat_buf_view(&points);
        for (int op = OJ_OP_INTERSECTS; op < OJ_OP_SIMILAR; op++)
        {
            struct oj_relation relation = some_relation((enum oj_op)op);
            int second = 1 + pick(2);
            check_join(&relation, &sides[0], &sides[1]);
            check_join(&relation, &sides[1], &sides[0]);
            check_join(&relation, &sides[2], &sides[second]);
            check_join(&relation, &sides[0], &sides[2]);
        }
    }
    ck_assert_int_gt(n_held, n_checked / 50);
}

/* A self join with an exclusion lacks the excluded pairs and no others. */
TEST(exclusions)
{
    LAYER a = {0};
    struct oj_flat view;
    struct oj_options options = {.n_threads = 2};
    MATCHES all = {0}, some = {0};
    struct oj_relation relation = oj_relation_default();
    struct shape_lattice l = {8, 0.0, 1.0};
    int32_t class_of[60];
    random_state = 5;
    add_shapes(&a, &l, 60);
    view = oj_flat_buf_view(&a);
    for (int i = 0; i < 60; i++)
        class_of[i] = pick(3) - 1;
    for (int op = OJ_OP_INTERSECTS; op < OJ_OP_SIMILAR; op++)
    {
        relation = some_relation((enum oj_op)op);
        view.on_class = NULL;
        must(run_family(&relation, &view, &view, &options, &all));
        relation.exclude_self = 1;
        relation.unordered_pairs = 1;
        view.on_class = class_of;
        must(run_family(&relation, &view, &view, &options, &some));
        for (int64_t row = 0; row < 60; row++)
        {
            for (int64_t f = 0; f < 60; f++)
                ck_assert_int_eq(is_pair(&some, row, f),
                                 is_pair(&all, row, f) && row < f &&
                                     class_of[row] >= 0 &&
                                     class_of[row] == class_of[f]);
        }
    }
}

/* Products of coordinates overflow or underflow. The result of a row does not
 * depend on the rows before it. */
TEST_LOOP(extreme_sizes, 0, 6)
{
    static const double sizes[] = {1e300, 1e-300, 1e140, 1e-140, 1e120, 1.0};
    static const enum oj_op ops[] = {OJ_OP_INTERSECTS, OJ_OP_TOUCHES,
                                     OJ_OP_COVEREDBY, OJ_OP_CROSSES};
    LAYER a = {0}, b = {0};
    struct oj_options options = {.n_threads = 1};
    struct oj_relation relation = oj_relation_default();
    struct oj_flat_slice slice = {0};
    struct oj_flat input, join_side;
    MATCHES all = {0}, one = {0};
    double size = sizes[_i];
    random_state = 11;
    for (int i = 0; i < 300; i++)
    {
        double x = 0.5 * pick(24), y = 0.5 * pick(24);
        if (i % 3 == 0)
            add_line(&a, size * x, size * y, size * 0.5 * pick(24),
                     size * 0.5 * pick(24));
        else
            add_point(&a, size * x, size * y);
    }
    for (int i = 0; i < 8; i++)
    {
        double x = size * pick(12), y = size * pick(12);
        double radius = size * (1 + pick(5));
        add_disc(&b, 180, x, y, radius, radius);
    }
    input = oj_flat_buf_view(&a);
    join_side = oj_flat_buf_view(&b);
    for (int op = 0; op < 4; op++)
    {
        relation.op = ops[op];
        must(run_family(&relation, &input, &join_side, &options, &all));
        for (int64_t row = 0; row < input.n_features; row++)
        {
            int64_t first = oj_matches_first(&all, row);
            must(oj_flat_slice_make(&input, row, 1, &slice, &error));
            must(
                run_family(&relation, &slice.flat, &join_side, &options, &one));
            expect(one.n_pairs == oj_matches_end(&all, row) - first,
                   "op %d, size %g, row %d: %d pairs alone, %d among others",
                   (int)ops[op], size, (int)row, (int)one.n_pairs,
                   (int)(oj_matches_end(&all, row) - first));
            for (int64_t i = 0; i < one.n_pairs; i++)
                ck_assert_int_eq(one.join_row[i], all.join_row[first + i]);
        }
    }
    oj_flat_slice_free(&slice);
}

int main(void)
{
    tests_open("predicates");
    return tests_run();
}
