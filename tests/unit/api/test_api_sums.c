/* Exact sums of groups: export as words, errors, and failing allocations.
 * Kinds: unit, memory. */
#include "../../../algs/ogrjoin.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../run_tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct ogrjoin_error err;

static void must(int status)
{
    ck_assert_msg(status == OGRJOIN_OK, "%s", err.message);
}

static void fails(int status, int expected, const char *text)
{
    ck_assert_msg(status == expected && strstr(err.message, text) != NULL,
                  "%d %s", status, err.message);
}

static const int64_t group[] = {0, 2, 2, 0, 2};
static const double value[] = {0.1, 1e300, 1e-300, 0.2, -1e300};

static int make_parts(double *out)
{
    struct ogrjoin_sums *part = NULL, *whole = NULL;
    int64_t offset[4];
    uint64_t word[3 * 71];
    static const int64_t at[] = {2, 1, 0};
    int status = ogrjoin_sums_new(3, &part, &err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_sums_new(3, &whole, &err);
    if (status == OGRJOIN_OK)
        status = ogrjoin_sums_add(part, 5, group, value, &err);
    if (status == OGRJOIN_OK)
    {
        ogrjoin_sums_words(part, offset, NULL);
        ck_assert_int_gt(offset[3], offset[2] + 1);
        /* a sum without addends has no words */
        ck_assert_int_eq(offset[2], offset[1]);
        ogrjoin_sums_words(part, offset, word);
        status = ogrjoin_sums_merge(whole, 3, at, offset, word, &err);
    }
    if (status == OGRJOIN_OK)
        status = ogrjoin_sums_merge(whole, 3, at, offset, word, &err);
    if (status == OGRJOIN_OK)
        ogrjoin_sums_values(whole, out);
    ogrjoin_sums_free(part);
    ogrjoin_sums_free(whole);
    return status;
}

TEST(unit_parts)
{
    double out[3];
    must(make_parts(out));
    ck_assert(out[0] == 2e-300 && out[1] == 0.0);
    ck_assert(out[2] == 2 * (0.1 + 0.2));
}

TEST(memory_of_sums)
{
    double out[3] = {7, 7, 7};
    int n_failed = 0;
    for (int64_t at = 1; at < 100; at++)
    {
        int status;
        oj_alloc_fail_at(at);
        status = make_parts(out);
        oj_alloc_fail_at(0);
        if (status == OGRJOIN_OK)
            break;
        ck_assert_int_eq(status, OGRJOIN_ERR_NOMEM);
        ck_assert(out[0] == 7);
        n_failed++;
    }
    ck_assert_int_ge(n_failed, 5);
}

TEST(unit_errors)
{
    static const int64_t beyond[] = {0, 3}, minus[] = {-1};
    static const int64_t integer[] = {INT64_MAX, 1};
    static const int64_t offset[] = {0, 2}, back[] = {2, 0};
    static const uint64_t word[] = {99999, 1};
    struct ogrjoin_sums *sums = NULL;
    double out[3];
    int64_t whole[3];
    fails(ogrjoin_sums_new(-1, &sums, &err), OGRJOIN_ERR_ARG, "groups is -1");
    must(ogrjoin_sums_new(3, &sums, &err));
    fails(ogrjoin_sums_add(sums, 2, beyond, value, &err), OGRJOIN_ERR_ARG,
          "group[1] is 3");
    fails(ogrjoin_sums_add_integers(sums, 1, minus, integer, &err),
          OGRJOIN_ERR_ARG, "group[0] is -1");
    fails(ogrjoin_sums_merge(sums, 1, minus, offset, word, &err),
          OGRJOIN_ERR_ARG, "group[0]");
    fails(ogrjoin_sums_merge(sums, 1, group, offset, word, &err),
          OGRJOIN_ERR_DATA, "99999");
    fails(ogrjoin_sums_merge(sums, 1, group, back, word, &err),
          OGRJOIN_ERR_DATA, "offset[1]");
    ogrjoin_sums_values(sums, out); /* the failed call has added nothing */
    ck_assert(out[0] == 0.0 && out[1] == 0.0 && out[2] == 0.0);
    must(ogrjoin_sums_add_integers(sums, 2, group, integer, &err));
    must(ogrjoin_sums_integers(sums, whole, &err));
    ck_assert(whole[0] == INT64_MAX && whole[1] == 0 && whole[2] == 1);
    must(ogrjoin_sums_add_integers(sums, 1, group, integer + 1, &err));
    fails(ogrjoin_sums_integers(sums, whole, &err), OGRJOIN_ERR_LIMIT,
          "group 0");
    ogrjoin_sums_free(sums);
    ogrjoin_sums_free(NULL);
    must(ogrjoin_sums_new(0, &sums, &err));
    must(ogrjoin_sums_add(sums, 0, NULL, NULL, &err));
    ogrjoin_sums_free(sums);
}

int main(void)
{
    tests_open("exact sums of groups");
    return tests_run();
}
