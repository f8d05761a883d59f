/* Growing arrays, matches and errors.
 * Kind: unit, memory. */
#include "../run_tests.h"

#include "../../../algs/api/engine/oj_join.h"

#include <stdlib.h>
#include <string.h>

TEST(sizes_that_overflow_are_refused)
{
    ck_assert_ptr_null(oj_malloc(-1, 8));
    ck_assert_ptr_null(oj_malloc(INT64_MAX, 8));
    ck_assert_ptr_null(oj_malloc(INT64_MAX / 8 + 1, 16));
    ck_assert_ptr_null(oj_malloc((int64_t)PTRDIFF_MAX, 1));
}

TEST(arrays_start_on_a_cache_line)
{
    for (int64_t n = 0; n < 200; n++)
    {
        char *array = oj_calloc(n, 3);
        ck_assert_ptr_nonnull(array);
        ck_assert_uint_eq((uintptr_t)array % 64, 0);
        for (int64_t i = 0; i < 3 * n; i++)
            ck_assert_int_eq(array[i], 0);
        oj_free(array);
    }
    oj_free(NULL);
}

TEST(reserve_keeps_what_is_there)
{
    struct oj_error err = {OJ_OK, ""};
    int32_t *array = NULL;
    int64_t capacity = 0;
    for (int32_t i = 0; i < 1000; i++)
    {
        ck_assert_int_eq(
            oj_reserve(&array, i, i + 1, &capacity, sizeof *array, &err),
            OJ_OK);
        ck_assert_int_gt(capacity, i);
        array[i] = i;
    }
    for (int32_t i = 0; i < 1000; i++)
        ck_assert_int_eq(array[i], i);
    oj_free(array);
}

TEST(reserve_that_fails_changes_nothing)
{
    struct oj_error err = {OJ_OK, ""};
    int32_t *array = NULL, *before;
    int64_t capacity = 0, capacity_before;
    ck_assert_int_eq(oj_reserve(&array, 0, 20, &capacity, sizeof *array, &err),
                     OJ_OK);
    for (int32_t i = 0; i < 20; i++)
        array[i] = i;
    before = array;
    capacity_before = capacity;
    oj_alloc_fail_at(1);
    ck_assert_int_eq(
        oj_reserve(&array, 20, capacity + 1, &capacity, sizeof *array, &err),
        OJ_ERR_NOMEM);
    oj_alloc_fail_at(0);
    ck_assert_ptr_eq(array, before);
    ck_assert_int_eq(capacity, capacity_before);
    ck_assert_int_eq(array[19], 19);
    ck_assert_int_eq(err.status, OJ_ERR_NOMEM);
    ck_assert_ptr_nonnull(strstr(err.message, "memory"));
    ck_assert_int_eq(
        oj_reserve(&array, 20, INT64_MAX, &capacity, sizeof *array, &err),
        OJ_ERR_NOMEM);
    oj_free(array);
}

TEST(the_nth_allocation_fails)
{
    void *arrays[4];
    oj_alloc_fail_at(3);
    for (int i = 0; i < 4; i++)
        arrays[i] = oj_malloc(10, 1);
    ck_assert_int_eq(oj_alloc_fail_at(0), 4);
    ck_assert_ptr_nonnull(arrays[0]);
    ck_assert_ptr_nonnull(arrays[1]);
    ck_assert_ptr_null(arrays[2]);
    ck_assert_ptr_null(arrays[3]);
    oj_free(arrays[0]);
    oj_free(arrays[1]);
}

/* Arrays lent by a caller are used as long as they are large enough. They are
 * never freed. */
TEST(matches_in_lent_arrays)
{
    struct oj_error err = {OJ_OK, ""};
    struct oj_matches matches = {0};
    int32_t rows[4] = {0};
    double measures[4] = {0};
    oj_status status;
    ck_assert_int_eq(oj_matches_reserve(&matches, 2, 100, 1, &err), OJ_OK);
    oj_matches_use_lent_arrays(&matches, rows, measures, 4);
    ck_assert_int_eq(oj_matches_copy_lent_arrays(&(struct oj_matches){0}, &err),
                     OJ_OK);
    ck_assert_int_eq(oj_matches_reserve(&matches, 2, 4, 1, &err), OJ_OK);
    ck_assert_ptr_eq(matches.join_row, rows);
    for (int i = 0; i < 4; i++)
    {
        matches.join_row[i] = 7 + i;
        matches.measure[i] = 0.5 * i;
    }
    for (int64_t n = 1; n < 3; n++)
    {
        (void)oj_alloc_fail_at(n);
        status = oj_matches_grow(&matches, 4, 5, &err);
        (void)oj_alloc_fail_at(0);
        ck_assert_int_eq(status, OJ_ERR_NOMEM);
        ck_assert_ptr_eq(matches.join_row, rows);
    }
    ck_assert_int_eq(oj_matches_grow(&matches, 4, 5, &err), OJ_OK);
    ck_assert_ptr_ne(matches.join_row, rows);
    ck_assert_mem_eq(matches.join_row, rows, sizeof rows);
    ck_assert_mem_eq(matches.measure, measures, sizeof measures);
    oj_matches_use_lent_arrays(&matches, rows, measures, 4);
    ck_assert_int_eq(oj_matches_copy_lent_arrays(&matches, &err), OJ_OK);
    ck_assert_int_eq(matches.is_lent, 0);
    ck_assert_int_eq(matches.join_row[3], 10);
    oj_matches_use_lent_arrays(&matches, rows, measures, 4);
    oj_matches_free(&matches);
    ck_assert_int_eq(rows[3], 10);
}

TEST(matches_in_both_forms)
{
    struct oj_error err = {OJ_OK, ""};
    struct oj_matches matches = {0};
    ck_assert_int_eq(oj_matches_reserve(&matches, 2, 2, 0, &err), OJ_OK);
    ck_assert_ptr_null(matches.offset);
    matches.join_row[0] = 7;
    matches.join_row[1] = -1;
    ck_assert_int_eq(
        oj_matches_end(&matches, 0) - oj_matches_first(&matches, 0), 1);
    ck_assert_int_eq(
        oj_matches_end(&matches, 1) - oj_matches_first(&matches, 1), 0);
    ck_assert_int_eq(oj_matches_reserve(&matches, 2, 3, 1, &err), OJ_OK);
    ck_assert_ptr_nonnull(matches.offset);
    matches.offset[0] = 0;
    matches.offset[1] = 0;
    matches.offset[2] = 3;
    ck_assert_int_eq(
        oj_matches_end(&matches, 0) - oj_matches_first(&matches, 0), 0);
    ck_assert_int_eq(
        oj_matches_end(&matches, 1) - oj_matches_first(&matches, 1), 3);
    oj_matches_free(&matches);
    oj_matches_free(&matches); /* freed matches are valid and empty */
    for (int64_t n = 1; n < 8; n++)
    {
        oj_status status;
        oj_alloc_fail_at(n);
        status = oj_matches_reserve(&matches, 100, 300, 1, &err);
        oj_alloc_fail_at(0);
        oj_matches_free(&matches);
        ck_assert(status == OJ_ERR_NOMEM || n > 1);
        if (status == OJ_OK)
            break;
    }
}

TEST(errors_carry_status_and_text)
{
    struct oj_error err = {OJ_OK, ""};
    char longer[4000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    ck_assert_int_eq(oj_fail(&err, OJ_ERR_DATA, "row %d", 5), OJ_ERR_DATA);
    ck_assert_int_eq(err.status, OJ_ERR_DATA);
    ck_assert_str_eq(err.message, "row 5");
    ck_assert_int_eq(oj_fail(&err, OJ_ERR_IO, "%s", longer), OJ_ERR_IO);
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
    ck_assert_int_eq(oj_fail(NULL, OJ_ERR_ARG, "nobody asks"), OJ_ERR_ARG);
    for (int status = OJ_OK; status <= OJ_ERR_INTERNAL + 1; status++)
        ck_assert_uint_gt(strlen(oj_status_name((oj_status)status)), 0);
}

TEST(relations_that_make_no_sense)
{
    struct oj_error err = {OJ_OK, ""};
    struct oj_relation relation = oj_relation_default();
    volatile double zero = 0;
    ck_assert_int_eq(oj_relation_check(&relation, &err), OJ_OK);
    relation.max_distance = -1;
    ck_assert_int_eq(oj_relation_check(&relation, &err), OJ_ERR_ARG);
    relation.max_distance = zero / zero;
    ck_assert_int_eq(oj_relation_check(&relation, &err), OJ_ERR_ARG);
    relation.max_distance = 0;
    ck_assert_int_eq(oj_relation_check(&relation, &err), OJ_OK);
    relation.k = 0;
    ck_assert_int_eq(oj_relation_check(&relation, &err), OJ_ERR_ARG);
    ck_assert_int_eq(oj_op_find("Nearest"), OJ_OP_NEAREST);
    ck_assert_int_eq(oj_op_find("nearby"), -1);
    ck_assert_ptr_nonnull(oj_backend_find("CPU"));
    ck_assert_ptr_null(oj_backend_find("abacus"));
    ck_assert_str_eq(oj_backend_at(0)->name, "cpu");
}

int main(void)
{
    tests_open("array");
    return tests_run();
}
