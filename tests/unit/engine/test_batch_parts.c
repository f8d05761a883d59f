/* Batches are split into parts. Every row is joined once, in order, and no part
 * has more pairs than allowed. Few pairs are computed in vain, even if the
 * density varies strongly along the rows.
 * Kind: unit, property. */
#include "../run_tests.h"

#include "../../../algs/api/engine/oj_batch_parts.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../random_numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define N_ROWS 100000
#define MAX_PAIRS 400000

/* A fake join. A table gives the number of pairs of each row. */
struct counted_join
{
    int64_t n_rows;
    int64_t *n_pairs; /* [n_rows] */
    int64_t max_pairs;
    int64_t most_per_row; /* maximum pairs of a row; 0: not known */
    int has_sample;
    double *x, *y;

    int64_t n_joined, n_parts, n_useful, n_in_vain, n_sampled, n_calls;
};

static oj_status count_pairs(const struct counted_join *join,
                             const struct oj_flat *rows, struct oj_matches *out,
                             struct oj_error *err)
{
    int64_t n = 0;
    for (int64_t i = 0; i < rows->n_features; i++)
        n += join->n_pairs[(int64_t)rows->x[i]];
    OJ_TRY(oj_matches_reserve(out, rows->n_features, 0, 1, err));
    out->offset[0] = 0;
    for (int64_t i = 0; i < rows->n_features; i++)
        out->offset[i + 1] =
            out->offset[i] + join->n_pairs[(int64_t)rows->x[i]];
    out->n_pairs = n;
    if (n > join->max_pairs && rows->n_features > 1)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS, "too many");
    return OJ_OK;
}

static oj_status join_rows(void *user, const struct oj_flat *rows,
                           struct oj_matches *out, struct oj_error *err)
{
    struct counted_join *join = user;
    oj_status status = count_pairs(join, rows, out, err);
    ck_assert_int_eq((int64_t)rows->x[0], join->n_joined);
    join->n_calls++;
    if (status == OJ_ERR_TOO_MANY_PAIRS)
        join->n_in_vain += join->max_pairs;
    if (status == OJ_OK)
    {
        join->n_joined += rows->n_features;
        join->n_useful += out->n_pairs;
        join->n_parts++;
    }
    return status;
}

static oj_status sample_rows(void *user, const struct oj_flat *rows,
                             struct oj_matches *out, struct oj_error *err)
{
    struct counted_join *join = user;
    oj_status status = count_pairs(join, rows, out, err);
    for (int64_t i = 1; i < rows->n_features; i++)
        ck_assert_double_lt(rows->x[i - 1], rows->x[i]);
    join->n_sampled += status == OJ_OK ? out->n_pairs : join->max_pairs;
    return status;
}

static struct counted_join make_join(int64_t n_rows, int has_sample)
{
    struct counted_join join = {
        .n_rows = n_rows, .max_pairs = MAX_PAIRS, .has_sample = has_sample};
    join.n_pairs = oj_calloc(n_rows, sizeof *join.n_pairs);
    join.x = oj_calloc(n_rows, sizeof *join.x);
    join.y = oj_calloc(n_rows, sizeof *join.y);
    ck_assert(join.n_pairs != NULL && join.x != NULL && join.y != NULL);
    for (int64_t i = 0; i < n_rows; i++)
        join.x[i] = (double)i;
    return join;
}

static void free_join(struct counted_join *join)
{
    oj_free(join->n_pairs);
    oj_free(join->x);
    oj_free(join->y);
}

/* Joins all rows in batches of `batch` rows. Returns how many pairs were
 * computed in vain. */
static int64_t join_all(struct counted_join *join, int64_t batch)
{
    struct oj_batch_parts parts = {.max_pairs = join->max_pairs,
                                   .most_per_row = join->most_per_row,
                                   .sample =
                                       join->has_sample ? sample_rows : NULL,
                                   .user = join};
    struct oj_flat_slice slice = {0};
    struct oj_matches out = {0};
    struct oj_error err = {OJ_OK, ""};
    for (int64_t begin = 0; begin < join->n_rows; begin += batch)
    {
        int64_t n_left = join->n_rows - begin;
        const struct oj_flat flat =
            oj_flat_of_points(n_left < batch ? n_left : batch, NULL,
                              join->x + begin, join->y + begin);
        for (int64_t first = 0, n; first < flat.n_features; first += n)
        {
            ck_assert_msg(oj_batch_parts_join(&parts, &flat, first, &slice,
                                              join_rows, join, &out, &n,
                                              &err) == OJ_OK,
                          "%s", err.message);
            ck_assert_int_ge(n, 1);
            ck_assert_int_eq(join->n_joined, begin + first + n);
        }
    }
    ck_assert_int_eq(join->n_joined, join->n_rows);
    ck_assert_int_eq(parts.n_pairs_again, join->n_in_vain + join->n_sampled);
    oj_batch_parts_free(&parts);
    oj_flat_slice_free(&slice);
    oj_matches_free(&out);
    return parts.n_pairs_again;
}

/* Sets the number of pairs of each row, for one kind of distribution. */
static void fill_density(struct counted_join *join, int kind)
{
    for (int64_t i = 0; i < join->n_rows; i++)
    {
        double at = (double)i / (double)join->n_rows;
        double centre = fabs(at - 0.5);
        double rate = 1.0;
        switch (kind)
        {
            case 0: /* even */
                rate = 100.0;
                break;
            case 1: /* a dense centre between sparse rows */
                rate = centre < 0.05 ? 4000.0 : 1.0;
                break;
            case 2: /* a small dense centre */
                rate = centre < 0.01 ? 5000.0 : 1.0;
                break;
            case 3: /* a density that decreases */
                rate = 1.0 + 20000.0 * exp(-40.0 * centre);
                break;
            case 4: /* dense and sparse rows in random order */
                rate = one_in(50) ? 3000.0 : 1.0;
                break;
            case 5: /* a density that increases */
                rate = exp(9.0 * at);
                break;
            case 6: /* dense only at the end */
                rate = at > 0.9 ? 3000.0 : 2.0;
                break;
            case 7: /* only single rows with many pairs */
                rate = 150000.0;
                break;
            default: /* towns */
                rate = fmod(at * 10.0, 1.0) < 0.1 ? 2500.0 : 0.5;
                break;
        }
        join->n_pairs[i] = (int64_t)(rate * between(0.5, 1.5));
    }
}

/* Fewer than 3 % of all pairs are computed in vain, for several batch sizes and
 * limits. Parts are not much smaller than necessary. */
TEST_LOOP(little_is_joined_in_vain, 0, 9)
{
    static const int64_t batches[] = {N_ROWS, N_ROWS / 3, 8192};
    int64_t n_rows = _i == 7 ? N_ROWS / 20 : N_ROWS;
    double n_useful = 0.0, n_again = 0.0;
    for (int i = 0; i < 18; i++)
    {
        int64_t batch = batches[i % 3];
        struct counted_join join = make_join(n_rows, 1);
        random_state = (uint64_t)(i / 3);
        fill_density(&join, _i);
        n_again += (double)join_all(&join, batch);
        n_useful += (double)join.n_useful;
        ck_assert_int_le(join.n_parts,
                         8 * join.n_useful / MAX_PAIRS + n_rows / batch + 40);
        free_join(&join);
    }
    printf("density %d: %.2f %% of %.0f pairs in vain\n", _i,
           100.0 * n_again / n_useful, n_useful);
    ck_assert_double_lt(n_again, 0.03 * n_useful);
}

/* Without samples, too, all rows are joined. Rows with more pairs than allowed
 * are joined one by one. */
TEST_LOOP(all_rows_are_joined, 0, 9)
{
    for (int has_sample = 0; has_sample < 2; has_sample++)
    {
        struct counted_join join = make_join(3000, has_sample);
        fill_density(&join, _i);
        join.max_pairs = 1000;
        (void)join_all(&join, 1000);
        free_join(&join);
    }
}

/* If pairs are few, none is computed in vain, batches are not split, and
 * samples are small. */
TEST(sparse_rows_are_joined_at_once)
{
    struct counted_join join = make_join(N_ROWS, 1);
    for (int64_t i = 0; i < N_ROWS; i++)
        join.n_pairs[i] = 1;
    (void)join_all(&join, 10000);
    ck_assert_int_eq(join.n_parts, 10);
    ck_assert_int_eq(join.n_in_vain, 0);
    ck_assert_int_le(join.n_sampled, N_ROWS / 128);
    free_join(&join);
}

/* The join states that a row has at most k pairs; each row has `pairs`. There
 * are as few parts as the limit allows, without a sample, and not more if the
 * rows have none. */
TEST(known_bound_of_a_row)
{
    static const struct
    {
        int64_t k, pairs, most_parts;
    } cases[] = {{1, 1, 1}, {3, 3, 1},    {4, 4, 1},
                 {5, 5, 2}, {40, 40, 10}, {40, 0, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    {
        struct counted_join join = make_join(N_ROWS, 1);
        int64_t in_vain;
        join.most_per_row = cases[i].k;
        for (int64_t row = 0; row < N_ROWS; row++)
            join.n_pairs[row] = cases[i].pairs;
        in_vain = join_all(&join, N_ROWS);
        ck_assert_int_le(join.n_parts, cases[i].most_parts);
        ck_assert_int_eq(join.n_in_vain, 0);
        if (cases[i].k <= 4)
            ck_assert_int_eq(in_vain, 0);
        free_join(&join);
    }
}

/* Rows have more pairs than the stated maximum, as multipoints may have. Parts
 * get smaller. */
TEST(broken_bound_of_a_row)
{
    struct counted_join join = make_join(N_ROWS, 0);
    join.most_per_row = 4;
    for (int64_t row = 0; row < N_ROWS; row++)
        join.n_pairs[row] = 9;
    (void)join_all(&join, N_ROWS);
    ck_assert_int_eq(join.n_joined, N_ROWS);
    free_join(&join);
}

int main(void)
{
    tests_open("batch_parts");
    return tests_run();
}
