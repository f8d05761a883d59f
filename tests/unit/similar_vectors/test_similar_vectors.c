/* Similar vectors. The engine is compared with the plain reference, and bit for
 * bit with brute force.
 * Kind: property, degenerate. */
#include "../run_tests.h"
#include "vector_trial.h"

/* Returns the cosine difference of a vector from itself, which rounding may
 * make different from 0. */
static double plain_rounded_cosine(const double *a, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * a[i];
    return 1.0 - sum / (sqrt(sum) * sqrt(sum));
}

/* Asserts the difference of each pair in the answer, and that all other pairs
 * are beyond the limit. Returns the number of pairs exactly at the limit. */
static int64_t check_all_pairs(const struct join_trial *t,
                               const struct oj_matches *m)
{
    const struct oj_relation *r = &t->relation;
    int64_t n = 0, n_exact = 0, d = t->join.vectors.n_dimensions;
    for (int64_t row = 0; row < t->input.n_features; row++)
    {
        for (int64_t f = 0; f < t->join.n_features; f++)
            n += plain_is_allowed(r, &t->input, row, &t->join, f);
        for (int64_t p = oj_matches_first(m, row); p < oj_matches_end(m, row);
             p++)
        {
            expect(bits_of(m->measure[p]) ==
                       bits_of(plain_difference(
                           r->vector.norm, t->columns.vector[1] + row * d,
                           t->columns.vector[0] + m->join_row[p] * d, d)),
                   "row %d: difference", (int)row);
            n_exact += m->measure[p] == r->vector.max_difference;
        }
    }
    ck_assert_int_eq(n, m->n_pairs);
    return n_exact;
}

TEST_LOOP(property_against_all_pairs, 0, N_KINDS)
{
    int64_t n_pairs = 0, n_exact = 0;
    for (int i = 0; i < 120; i++)
    {
        struct join_trial t;
        MATCHES plain = {0}, fast = {0}, rows = {0};
        int64_t n_dimensions = one_in(3) ? 1 + pick(70) : 1 + pick(4);
        random_state = (uint64_t)i * 31 + (uint64_t)_i * 1009 + 1;
        make_trial(&t, _i, pick(400), pick(120), n_dimensions);
        if (one_in(2))
            t.relation.vector.max_difference = pick_limit(&t);
        t.relation.k = one_in(2) ? OJ_EVERY_PAIR : 1 + pick(6);
        t.relation.ties = one_in(2) ? OJ_TIES_ALL : OJ_TIES_FIRST;
        pick_columns(&t.columns, &t.join, &t.input, &t.relation, 1.0, 6);
        t.columns.vector[0] = (double *)t.join.vectors.value;
        t.columns.vector[1] = (double *)t.input.vectors.value;
        t.relation.exclude_same_geometry = 0;
        trial_answer(&t, "lists", 1, &plain);
        trial_answer(&t, "cpu", 1 + pick(3), &fast);
        same_matches("near vectors", &fast, &plain);
        if (t.relation.vector.norm != OJ_NORM_COSINE)
        {
            trial_answer(&t, "zlists", 1, &fast);
            same_matches("near vectors", &fast, &plain);
        }
        if (t.relation.k == OJ_EVERY_PAIR)
            n_exact += check_all_pairs(&t, &plain);
        n_pairs += plain.n_pairs;
        if (plain.offset != NULL && t.input.n_features > 9)
        {
            struct join_trial part = t;
            struct oj_flat_slice slice = {0};
            must(oj_flat_slice_make(&t.input, 7, t.input.n_features - 7, &slice,
                                    &error));
            part.input = slice.flat;
            trial_answer(&part, "auto", 1, &rows);
            for (int64_t r = 7; r < t.input.n_features; r++)
                expect(rows.offset[r - 6] - rows.offset[r - 7] ==
                           plain.offset[r + 1] - plain.offset[r],
                       "trial %d: row %d of a slice", i, (int)r);
            oj_flat_slice_free(&slice);
        }
        trial_free(&t);
    }
    printf("kind %d: %lld pairs, %lld of them just at the limit\n", _i,
           (long long)n_pairs, (long long)n_exact);
    ck_assert_int_gt(n_pairs, 5000);
    ck_assert_int_gt(n_exact, 20);
}

/* Clusters in 1,024 dimensions. Both sides have more rows than a block
 * holds. */
TEST(large_dimensions)
{
    for (int norm = 0; norm < 4; norm++)
    {
        struct join_trial t;
        MATCHES plain = {0}, fast = {0};
        random_state = (uint64_t)norm + 5;
        make_trial(&t, CLUSTERS, 700, 60, OJ_MOST_DIMENSIONS);
        t.relation.vector.norm = (enum oj_vector_norm)norm;
        t.relation.k = 5;
        trial_answer(&t, "lists", 1, &plain);
        trial_answer(&t, "cpu", 2, &fast);
        same_matches("near vectors", &fast, &plain);
        ck_assert_int_gt(plain.n_pairs, 200);
        t.relation.k = OJ_EVERY_PAIR;
        t.relation.vector.max_difference = plain.measure[0];
        trial_answer(&t, "lists", 1, &plain);
        trial_answer(&t, "cpu", 1, &fast);
        same_matches("near vectors", &fast, &plain);
        ck_assert_int_gt(check_all_pairs(&t, &fast), 0);
        trial_free(&t);
    }
}

/* Cosine differences are 0 for equal vectors and for exact multiples. They are
 * never negative. */
TEST(vectors_of_one_direction)
{
    static const double factors[] = {1.0, 3.0, 7.0, 0x1p-40, 0x1p300, 0.75};
    int64_t n_rounded = 0, n_apart = 0;
    random_state = 1;
    for (int i = 0; i < 20000; i++)
    {
        double a[40], b[40], c[40], found, scale = ldexp(1.0, pick(300) - 150);
        int64_t n = 1 + pick(40);
        double factor = factors[pick(6)];
        for (int64_t d = 0; d < n; d++)
        {
            a[d] = (double)(pick(2000001) - 1000000) * scale;
            a[d] = d == 0 && a[d] == 0.0 ? scale : a[d];
            b[d] = a[d] * factor; /* factor of 21 bits: products are exact */
            c[d] = nudge(b[d], 1);
        }
        found = oj_vector_difference(OJ_NORM_COSINE, a, b, n);
        expect(bits_of(found) == bits_of(0.0), "round %d: %a", i, found);
        expect(plain_parallel(a, b, n), "round %d: not parallel", i);
        found = oj_vector_difference(OJ_NORM_COSINE, a, c, n);
        expect(found >= 0.0, "round %d: %a", i, found);
        n_apart += found > 0.0;
        for (int64_t d = 0; d < n; d++)
            c[d] = -b[d];
        found = oj_vector_difference(OJ_NORM_COSINE, a, c, n);
        expect(fabs(found - 2.0) < 1e-12, "round %d: %a", i, found);
        for (int64_t d = 0; d < n; d++)
            a[d] = between(-1.0, 1.0) * scale;
        found = oj_vector_difference(OJ_NORM_COSINE, a, a, n);
        expect(bits_of(found) == bits_of(0.0), "round %d: %a", i, found);
        n_rounded += plain_rounded_cosine(a, n) != 0.0;
    }
    ck_assert_int_gt(n_rounded, 1000);
    ck_assert_int_gt(n_apart, 1000);
}

/* A maximum difference of 0 keeps the pairs of equal vectors. */
TEST(equal_vectors_within_0)
{
    static const double numbers[] = {1, 1, 1, 1, 0, -1, 0.1, 0.2, 0.3, 2, 2, 2};
    struct join_trial t;
    MATCHES out = {0};
    make_trial(&t, LATTICE, 4, 4, 3);
    memcpy(t.columns.vector[0], numbers, sizeof numbers);
    memcpy(t.columns.vector[1], numbers, sizeof numbers);
    t.relation.vector.norm = OJ_NORM_COSINE;
    t.relation.vector.max_difference = 0.0;
    t.relation.k = OJ_EVERY_PAIR;
    for (int i = 0; i < 2; i++)
    {
        trial_answer(&t, i == 0 ? "cpu" : "lists", 1, &out);
        ck_assert_int_eq(out.n_pairs, 6);
        for (int p = 0; p < 6; p++)
            ck_assert(out.measure[p] == 0.0);
    }
    trial_free(&t);
}

/* The join side has 100,000 equal vectors, so the three (k) pairs of each row
 * are the first three features. If the engine compared all pairs, it would take
 * minutes. */
TEST(many_equal_vectors)
{
    enum
    {
        MANY = 100000
    };
    struct join_trial t;
    MATCHES out = {0};
    make_trial(&t, LATTICE, MANY, MANY, 2);
    for (int64_t i = 0; i < 2 * MANY; i++)
    {
        t.columns.vector[0][i] = 0.1;
        t.columns.vector[1][i] = i % 4 == 0 ? 0.1 : 0.3;
    }
    t.relation.vector.norm = OJ_NORM_L2;
    t.relation.vector.max_difference = INFINITY;
    t.relation.k = 3;
    trial_answer(&t, "cpu", 2, &out);
    ck_assert_int_eq(out.n_pairs, 3 * MANY);
    for (int64_t i = 0; i < out.n_pairs; i++)
        ck_assert_int_eq(out.join_row[i], i % 3);
    trial_free(&t);
}

/* The method of the paper with Z-order lists, for points of the plane. */
TEST(points_by_z_lists)
{
    int64_t n_pairs = 0;
    for (int i = 0; i < 60; i++)
    {
        struct join_trial t;
        MATCHES ours = {0}, theirs = {0};
        random_state = (uint64_t)i + 3;
        trial_make(&t, pick(200), OJ_PART_POINT, 0, pick(200));
        t.relation.op = one_in(2) ? OJ_OP_NEAREST : OJ_OP_DWITHIN;
        t.relation.max_distance = one_in(3) ? (double)INFINITY : pick(40);
        if (t.relation.op == OJ_OP_DWITHIN)
            t.relation.max_distance = pick(40);
        else
            t.relation.k = 1 + pick(5);
        if (one_in(2) && t.relation.op == OJ_OP_NEAREST)
            t.relation.ties = OJ_TIES_ALL;
        if (oj_flat_is_points(&t.join) && oj_flat_is_points(&t.input))
        {
            trial_answer(&t, "cpu", 1, &ours);
            trial_answer(&t, "zlists", 1, &theirs);
            same_matches("near vectors", &theirs, &ours);
            n_pairs += ours.n_pairs;
        }
        trial_free(&t);
    }
    ck_assert_int_gt(n_pairs, 1000);
}

TEST(degenerate_sides)
{
    struct join_trial t;
    MATCHES out = {0};
    make_trial(&t, LATTICE, 3, 0, 2);
    t.relation.vector.norm = OJ_NORM_L2;
    trial_answer(&t, "cpu", 1, &out); /* no input */
    ck_assert_int_eq(out.n_rows, 0);
    t.input = t.join;
    for (int i = 0; i < 6; i++)
        t.columns.vector[0][i] = (double)NAN;
    trial_answer(&t, "cpu", 1, &out);
    ck_assert(out.n_rows == 3 && out.n_pairs == 0);
    t.join = (struct oj_flat){0};
    trial_answer(&t, "cpu", 1, &out);
    ck_assert(out.n_rows == 3 && out.n_pairs == 0);
    trial_answer(&t, "lists", 1, &out);
    ck_assert(out.n_rows == 3 && out.n_pairs == 0);
    t.join = t.input;
    t.input.vectors.n_dimensions = 1;
    ck_assert_int_eq(trial_open_and_join(&t, "cpu", NULL, NULL, &out),
                     OJ_ERR_ARG);
    t.input.vectors.value = NULL;
    ck_assert_int_eq(trial_open_and_join(&t, "cpu", NULL, NULL, &out),
                     OJ_ERR_ARG);
    ck_assert_int_eq(trial_open_and_join(&t, "lists", NULL, NULL, &out),
                     OJ_ERR_ARG);
    t.join.vectors.value = NULL;
    ck_assert_int_eq(trial_open_and_join(&t, "cpu", NULL, NULL, &out),
                     OJ_ERR_ARG);
    t.relation.vector.max_difference = -1.0;
    ck_assert_int_eq(trial_open_and_join(&t, "cpu", NULL, NULL, &out),
                     OJ_ERR_ARG);
    trial_free(&t);
}

int main(void)
{
    tests_open("similar vectors");
    return tests_run();
}
