/* Compares exact sums with sums of fractions (tests/cases), in every order, and
 * with sums of 128-bit integers.
 * Kind: unit, property. */
#include "../../../algs/foundations/base/oj_exact_sum.h"

#include "../../../flatten/base/oj_alloc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random_numbers.h"
#include "../run_tests.h"

__extension__ typedef __int128 s128;

enum
{
    MOST = 64
};

static void must(oj_status status)
{
    ck_assert_int_eq(status, OJ_OK);
}

static int same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static double ulp(double x)
{
    return nextafter(fabs(x), (double)INFINITY) - fabs(x);
}

static void add_quickly(struct oj_exact_sum *sum, double x)
{
    struct oj_exact_sum before = *sum;
    if (oj_exact_sum_add_fast(sum, x))
        return;
    ck_assert_int_eq(memcmp(&before, sum, sizeof before), 0);
    must(oj_exact_sum_add(sum, x, NULL));
}

/* Returns the sum, computed in another way: as two sums that are merged, each
 * by the fast path where possible. */
static double sum_otherwise(const double *value, int n)
{
    struct oj_exact_sum part[2];
    double sum;
    memset(part, 0, sizeof part);
    for (int i = 0; i < n; i++)
        add_quickly(&part[pick(2)], value[i]);
    must(oj_exact_sum_merge(&part[0], &part[1], NULL));
    sum = oj_exact_sum_value(&part[0]);
    oj_exact_sum_clear(&part[0]);
    oj_exact_sum_clear(&part[1]);
    return sum;
}

static void check_case(const char *line, int number)
{
    double value[MOST], expected, deviation = 0.0;
    int n = 0, has_deviation;
    char *at;
    expected = strtod(line, &at);
    at += strspn(at, " |");
    has_deviation = *at != '-' || at[1] != ' ';
    if (has_deviation)
        deviation = strtod(at, &at);
    else
        at++;
    at += strspn(at, " |");
    while (*at != '\0' && *at != '\n')
    {
        ck_assert_int_lt(n, MOST);
        value[n++] = strtod(at, &at);
        at += strspn(at, " ");
    }
    for (int turn = 0; turn < 5; turn++)
    {
        struct oj_exact_sum sum = {0}, squares = {0};
        double got;
        for (int i = 0; i < n; i++)
        {
            must(oj_exact_sum_add(&sum, value[i], NULL));
            must(oj_exact_sum_add_square(&squares, value[i], NULL));
        }
        got = oj_exact_sum_value(&sum);
        ck_assert_msg(same_bits(got, expected), "case %d: %a, not %a", number,
                      got, expected);
        got = sum_otherwise(value, n);
        ck_assert_msg(same_bits(got, expected), "case %d in parts: %a, not %a",
                      number, got, expected);
        got = oj_exact_sum_deviation(&sum, &squares, n);
        if (!has_deviation)
            ck_assert(isnan(got));
        else
            ck_assert_msg(
                got == deviation || fabs(got - deviation) <= 2 * ulp(deviation),
                "case %d: deviation %a, not %a", number, got, deviation);
        oj_exact_sum_clear(&sum);
        oj_exact_sum_clear(&squares);
        for (int i = n - 1; i > 0; i--) /* another order */
        {
            int k = (int)(random_bits() % (uint64_t)(i + 1));
            double x = value[i];
            value[i] = value[k];
            value[k] = x;
        }
    }
}

TEST(unit_sums_of_fractions)
{
    FILE *file = fopen(OJ_TEST_CASES "/exact_sums.txt", "r");
    char line[4096];
    int number = 0, n_cases = 0;
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL)
    {
        number++;
        if (line[0] == '#' || line[0] == '\n')
            continue;
        check_case(line, number);
        n_cases++;
    }
    fclose(file);
    ck_assert_int_ge(n_cases, 250);
}

/* Returns the random factor m / 2^30, or with is_integer the factor m. Stores m
 * in *m. bits is the number of bits of m. */
static struct oj_exact_factor random_factor(int is_integer, int bits,
                                            int64_t *m)
{
    *m = (int64_t)(random_bits() >> (64 - bits));
    if (random_bits() % 2)
        *m = -*m;
    return (struct oj_exact_factor){.real = ldexp((double)*m, -30),
                                    .integer = *m,
                                    .is_integer = is_integer};
}

/* Sums of products, and ratios of sums, are compared with 128-bit integers.
 * Integer factors have more bits than a double. */
TEST(property_products_and_ratios)
{
    for (int trial = 0; trial < 400; trial++)
    {
        struct oj_exact_sum products = {0}, weights = {0};
        const int is_integer[2] = {pick(2), pick(2)};
        const int scale = -30 * (2 - is_integer[0] - is_integer[1]);
        s128 exact = 0, all = 0;
        double ratio, expected;
        for (int i = 1 + pick(50); i > 0; i--)
        {
            int64_t m[2];
            struct oj_exact_factor x =
                random_factor(is_integer[0], is_integer[0] ? 60 : 52, &m[0]);
            struct oj_exact_factor y = random_factor(is_integer[1], 52, &m[1]);
            exact += (s128)m[0] * m[1];
            all += m[1];
            must(oj_exact_sum_add_product(&products, x, y, NULL));
            if (is_integer[1])
                must(oj_exact_sum_add_integer(&weights, m[1], NULL));
            else
                must(oj_exact_sum_add(&weights, y.real, NULL));
        }
        ck_assert(same_bits(oj_exact_sum_value(&products),
                            ldexp((double)exact, scale)));
        ratio = oj_exact_sum_ratio(&products, &weights);
        expected = ldexp((double)exact / (double)all, is_integer[0] ? 0 : -30);
        ck_assert_msg(same_bits(ratio, expected) || all == 0, "%a, not %a",
                      ratio, expected);
        oj_exact_sum_clear(&products);
        oj_exact_sum_clear(&weights);
    }
}

static double ratio_of(double value, double weight, int n)
{
    const struct oj_exact_factor x = {.real = value}, y = {.real = weight};
    struct oj_exact_sum products = {0}, weights = {0};
    double ratio;
    for (int i = 0; i < n; i++)
    {
        must(oj_exact_sum_add_product(&products, x, y, NULL));
        must(oj_exact_sum_add(&weights, weight, NULL));
    }
    ratio = oj_exact_sum_ratio(&products, &weights);
    oj_exact_sum_clear(&products);
    oj_exact_sum_clear(&weights);
    return ratio;
}

/* The two sums are too large for doubles, but their ratio is not. */
TEST(truth_ratios_of_any_size)
{
    ck_assert(fabs(ratio_of(1e300, 1e300, 3) - 1e300) <= ulp(1e300));
    ck_assert(fabs(ratio_of(-1e-300, 1e-300, 3) + 1e-300) <= ulp(1e-300));
    ck_assert(same_bits(ratio_of(5e-324, 5e-324, 3), 5e-324));
    ck_assert(same_bits(ratio_of(0.0, 3.0, 3), 0.0));
    ck_assert(isnan(ratio_of(3.0, 0.0, 3)) || isinf(ratio_of(3.0, 0.0, 3)));
    ck_assert(isnan(ratio_of((double)NAN, 1.0, 3)));
    ck_assert(isnan(ratio_of((double)INFINITY, 0.0, 1)));
    ck_assert(
        same_bits(ratio_of(-(double)INFINITY, 2.0, 1), -(double)INFINITY));
}

/* The variance equals the square of the standard deviation, up to rounding. */
TEST(property_variance)
{
    for (int trial = 0; trial < 200; trial++)
    {
        struct oj_exact_sum sum = {0}, squares = {0};
        int n = 2 + pick(20);
        double deviation, variance;
        for (int i = 0; i < n; i++)
        {
            double x = any_size(-100, 100);
            must(oj_exact_sum_add(&sum, x, NULL));
            must(oj_exact_sum_add_square(&squares, x, NULL));
        }
        deviation = oj_exact_sum_deviation(&sum, &squares, n);
        variance = oj_exact_sum_variance(&sum, &squares, n);
        ck_assert_msg(fabs(variance - deviation * deviation) <=
                          4 * ulp(variance),
                      "%a, not %a", variance, deviation * deviation);
        oj_exact_sum_clear(&sum);
        oj_exact_sum_clear(&squares);
    }
}

/* The values are integers divided by 2^30. Their sum and the sum of their
 * squares fit into 128 bits. */
TEST(property_against_integers)
{
    for (int trial = 0; trial < 300; trial++)
    {
        struct oj_exact_sum sum = {0}, whole = {0}, squares = {0};
        s128 exact = 0, exact_squares = 0;
        int n = 1 + (int)(random_bits() % 400);
        int bits = 1 + (int)(random_bits() % 52);
        for (int i = 0; i < n; i++)
        {
            int64_t m = (int64_t)(random_bits() >> (64 - bits));
            if (random_bits() % 2)
                m = -m;
            exact += m;
            exact_squares += (s128)m * m;
            add_quickly(&sum, ldexp((double)m, -30));
            must(oj_exact_sum_add_integer(&whole, m, NULL));
            must(oj_exact_sum_add_integer_square(&squares, m, NULL));
        }
        expect(!sum.is_wide && !whole.is_wide && !squares.is_wide,
               "trial %d is wide", trial);
        ck_assert(same_bits(oj_exact_sum_value(&sum),
                            ldexp((double)exact, -30) + 0.0));
        ck_assert(same_bits(oj_exact_sum_value(&whole), (double)exact + 0.0));
        ck_assert(same_bits(oj_exact_sum_value(&squares),
                            (double)exact_squares + 0.0));
    }
}

TEST(unit_not_finite)
{
    static const double of[][3] = {{1, (double)INFINITY, 2},
                                   {1, -(double)INFINITY, 2},
                                   {(double)INFINITY, -(double)INFINITY, 0},
                                   {1, (double)NAN, 2}};
    static const double expected[] = {(double)INFINITY, -(double)INFINITY,
                                      (double)NAN, (double)NAN};
    for (int c = 0; c < 4; c++)
    {
        struct oj_exact_sum sum = {0}, squares = {0};
        double got;
        for (int i = 0; i < 3; i++)
        {
            must(oj_exact_sum_add(&sum, of[c][i], NULL));
            must(oj_exact_sum_add_square(&squares, of[c][i], NULL));
        }
        got = oj_exact_sum_value(&sum);
        ck_assert(isnan(expected[c]) ? isnan(got) : got == expected[c]);
        ck_assert(isnan(oj_exact_sum_deviation(&sum, &squares, 3)));
    }
}

TEST(degenerate_deviations)
{
    struct oj_exact_sum sum = {0}, squares = {0};
    ck_assert(isnan(oj_exact_sum_deviation(&sum, &squares, 0)));
    for (int i = 0; i < 1000; i++)
    {
        must(oj_exact_sum_add(&sum, 0.1, NULL));
        must(oj_exact_sum_add_square(&squares, 0.1, NULL));
    }
    ck_assert(oj_exact_sum_deviation(&sum, &squares, 1000) == 0.0);
    for (int i = 0; i < 1000; i++) /* the maximum double */
    {
        must(oj_exact_sum_add(
            &sum, i % 2 ? 0x1.fffffffffffffp1023 : -0x1.fffffffffffffp1023,
            NULL));
        must(oj_exact_sum_add_square(&squares, 0x1.fffffffffffffp1023, NULL));
    }
    ck_assert(isfinite(oj_exact_sum_deviation(&sum, &squares, 2000)));
    oj_exact_sum_clear(&sum);
    oj_exact_sum_clear(&squares);
}

TEST(memory_for_a_wide_sum)
{
    struct oj_exact_sum sum = {0};
    struct oj_error error;
    must(oj_exact_sum_add(&sum, 1e300, NULL));
    oj_alloc_fail_at(1);
    ck_assert_int_eq(oj_exact_sum_add(&sum, 1e-300, &error), OJ_ERR_NOMEM);
    oj_alloc_fail_at(0);
    ck_assert(oj_exact_sum_value(&sum) == 1e300);
    must(oj_exact_sum_add(&sum, 1e-300, NULL));
    must(oj_exact_sum_add(&sum, -1e300, NULL));
    ck_assert(sum.is_wide && oj_exact_sum_value(&sum) == 1e-300);
    oj_exact_sum_clear(&sum);
    oj_exact_sum_clear(&sum);
}

/* --- words -----------------------------------------------------------------
 */

/* Returns a random value whose binary exponent is between -spread and spread; a
 * few values are 0. */
static double random_value(int spread)
{
    double x = ldexp((double)(random_bits() >> 11),
                     -53 + pick(2 * spread + 1) - spread);
    if (pick(40) == 0)
        return 0.0;
    return pick(2) ? x : -x;
}

static int same_words(const struct oj_exact_sum *a,
                      const struct oj_exact_sum *b)
{
    uint64_t one[OJ_SUM_MOST_LONG_WORDS], other[OJ_SUM_MOST_LONG_WORDS];
    int n = oj_exact_sum_write_words(a, one);
    int m = oj_exact_sum_write_words(b, other);
    return n == m && memcmp(one, other, (size_t)n * sizeof *one) == 0;
}

/* Partial sums are exported as words and merged in any order. They give the
 * words and the value of the whole sum. */
TEST(property_words_put_together)
{
    static const int spreads[] = {0, 10, 60, 900};
    static const double odd[] = {(double)INFINITY, -(double)INFINITY,
                                 (double)NAN, 0x1p-1074,
                                 -0x1.fffffffffffffp1023};
    for (int trial = 0; trial < 800; trial++)
    {
        struct oj_exact_sum whole = {0}, part[3], merged = {0};
        const int spread = spreads[trial % 4];
        memset(part, 0, sizeof part);
        for (int i = pick(40); i > 0; i--)
        {
            double x = pick(100) == 0 ? odd[pick(5)] : random_value(spread);
            int k = pick(3);
            must(oj_exact_sum_add(&whole, x, NULL));
            must(oj_exact_sum_add(&part[k], x, NULL));
            /* adding a number and its negative changes nothing */
            if (pick(3) == 0)
            {
                must(oj_exact_sum_add(&part[k], 0x1p400, NULL));
                must(oj_exact_sum_add(&part[k], -0x1p400, NULL));
            }
        }
        for (int i = 0, first = pick(3); i < 3; i++)
        {
            uint64_t word[OJ_SUM_MOST_LONG_WORDS];
            int n = oj_exact_sum_write_words(&part[(first + i) % 3], word);
            must(oj_exact_sum_add_words(&merged, word, n, NULL));
        }
        ck_assert(
            same_bits(oj_exact_sum_value(&whole), oj_exact_sum_value(&merged)));
        expect(same_words(&whole, &merged), "trial %d: other words", trial);
        for (int i = 0; i < 3; i++)
            oj_exact_sum_clear(&part[i]);
        oj_exact_sum_clear(&whole);
        oj_exact_sum_clear(&merged);
    }
}

TEST(unit_integers_of_sums)
{
    static const int64_t of[] = {0,         1,          -1,        5,
                                 INT64_MAX, -INT64_MAX, INT64_MIN, 1 << 30};
    struct oj_exact_sum sum = {0};
    int64_t got;
    for (int i = 0; i < 8; i++)
    {
        must(oj_exact_sum_add_integer(&sum, of[i], NULL));
        ck_assert(oj_exact_sum_integer(&sum, &got));
        ck_assert_int_eq(got, of[i]);
        oj_exact_sum_clear(&sum);
    }
    must(oj_exact_sum_add_integer(&sum, INT64_MAX, NULL));
    must(oj_exact_sum_add_integer(&sum, 1, NULL));
    ck_assert(!oj_exact_sum_integer(&sum, &got));
    must(oj_exact_sum_add_integer(&sum, -1, NULL));
    ck_assert(oj_exact_sum_integer(&sum, &got) && got == INT64_MAX);
    must(oj_exact_sum_add(&sum, 0.5, NULL));
    ck_assert(!oj_exact_sum_integer(&sum, &got));
    must(oj_exact_sum_add(&sum, (double)NAN, NULL));
    must(oj_exact_sum_add(&sum, 0.5, NULL));
    ck_assert(!oj_exact_sum_integer(&sum, &got));
    oj_exact_sum_clear(&sum);
}

TEST(degenerate_words)
{
    struct oj_exact_sum sum = {0};
    uint64_t word[OJ_SUM_MOST_LONG_WORDS + 1] = {0};
    struct oj_error error;
    ck_assert_int_eq(oj_exact_sum_write_words(&sum, word), 0);
    must(oj_exact_sum_add_words(&sum, NULL, 0, NULL));
    must(oj_exact_sum_add(&sum, 1.5, NULL));
    must(oj_exact_sum_add(&sum, -1.5, NULL));
    ck_assert_int_eq(oj_exact_sum_write_words(&sum, word), 0);
    must(oj_exact_sum_add(&sum, (double)INFINITY, NULL));
    ck_assert_int_eq(oj_exact_sum_write_words(&sum, word), 1);
    ck_assert_int_eq((int)word[0], 1 << 8);
    /* invalid words add nothing */
    word[0] = 8 << 8;
    ck_assert_int_eq(oj_exact_sum_add_words(&sum, word, 2, &error),
                     OJ_ERR_DATA);
    word[0] = 70;
    ck_assert_int_eq(oj_exact_sum_add_words(&sum, word, 2, &error),
                     OJ_ERR_DATA);
    word[0] = 0;
    ck_assert_int_eq(
        oj_exact_sum_add_words(&sum, word, OJ_SUM_MOST_LONG_WORDS + 1, &error),
        OJ_ERR_DATA);
    ck_assert_int_eq(oj_exact_sum_add_words(&sum, word, -1, &error),
                     OJ_ERR_DATA);
    ck_assert(oj_exact_sum_value(&sum) == (double)INFINITY);
    oj_exact_sum_clear(&sum);
}

int main(void)
{
    tests_open("exact sums");
    return tests_run();
}
