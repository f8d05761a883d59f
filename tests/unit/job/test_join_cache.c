/* The cache of join sides: which sides it drops, which it does not keep, and
 * its state after memory has run out while a side was made. test_job_shared
 * checks which sides are found. test_job_files checks that changed files
 * replace sides.
 * Kinds: unit, memory. */
#include "join_makers.h"

/* ---- sides that the cache keeps and drops -------------------------------- */

TEST(bound)
{
    struct maker maker = {.seed = 1};
    struct oj_join_use use = {0};
    char max[40];
    int is_mine;
    int64_t one;
    empty_cache(NULL);
    ck_assert(take_and_end(0, 0));
    one = oj_join_cache_counts().n_bytes;
    snprintf(max, sizeof max, "%lld", (long long)(one * 5 / 2));
    ck_assert_int_gt(one, N_POINTS * 24);
    empty_cache(max);
    ck_assert(take_and_end(1, 0));
    ck_assert(take_and_end(2, 0));
    ck_assert(!take_and_end(1, 0));
    ck_assert(take_and_end(3, 0)); /* side 2 was last used before side 1 */
    ck_assert_int_eq(n_entries(), 2);
    ck_assert(!take_and_end(1, 0));
    ck_assert(take_and_end(2, 0));
    /* a side in use is kept, and its size counts toward the limit */
    ck_assert_int_eq(take(1, 0, &maker, NULL, &use, &is_mine, NULL), OJ_OK);
    ck_assert(!is_mine);
    for (int i = 4; i < 8; i++)
        ck_assert(take_and_end(i, 0));
    ck_assert(!take_and_end(1, 0));
    ck_assert_int_eq(n_entries(), 2);
    oj_join_use_release(&use);
    /* a side larger than the limit is freed when its last user ends */
    empty_cache("1K");
    ck_assert(take_and_end(1, 0));
    ck_assert_int_eq(n_entries(), 0);
    ck_assert_int_eq(take(1, 0, &maker, NULL, &use, &is_mine, NULL), OJ_OK);
    ck_assert(!take_and_end(1, 0));
    oj_join_use_release(&use);
    ck_assert_int_eq(n_entries(), 0);
}

/* Makes a side with one line of N_POINTS vertices; *user: they have M values.
 */
static oj_status make_line(void *user, struct oj_join_side *side,
                           const int *cancel, int *keep, struct oj_error *err)
{
    const struct oj_relation relation = oj_relation_default();
    struct oj_options options = {0};
    double *x, *y;
    (void)cancel;
    *keep = 1;
    side->buf.keeps_m = *(const int *)user;
    OJ_TRY(oj_flat_buf_begin_feature(&side->buf, 0, err));
    OJ_TRY(oj_flat_buf_begin_part(&side->buf, OJ_PART_LINE, err));
    OJ_TRY(oj_flat_buf_begin_ring(&side->buf, err));
    OJ_TRY(oj_flat_buf_add_vertices(&side->buf, N_POINTS, &x, &y, err));
    for (int i = 0; i < N_POINTS; i++)
        x[i] = y[i] = i;
    OJ_TRY(oj_flat_buf_end_feature(&side->buf, err));
    side->flat = oj_flat_buf_view(&side->buf);
    options.n_threads = 1;
    return oj_join_open(&side->flat, &relation, "cpu", &options, &side->engine,
                        err);
}

/* M values count toward the size of a side. */
TEST(bytes_of_m)
{
    int64_t n_bytes[2];
    for (int keeps_m = 0; keeps_m < 2; keeps_m++)
    {
        struct oj_join_key key = make_key(0, 0);
        struct oj_join_use use = {0};
        int is_mine;
        empty_cache(NULL);
        ck_assert_int_eq(oj_join_cache_find_or_build(NULL, &key, make_line,
                                                     &keeps_m, NULL, &use,
                                                     &is_mine, NULL),
                         OJ_OK);
        oj_join_use_release(&use);
        n_bytes[keeps_m] = oj_join_cache_counts().n_bytes;
        oj_join_key_free(&key);
    }
    ck_assert_int_ge(n_bytes[1] - n_bytes[0],
                     N_POINTS * (int64_t)sizeof(double));
}

TEST(limit)
{
    int64_t quarter;
    empty_cache(NULL);
    quarter = oj_join_cache_limit();
    ck_assert_int_gt(quarter, 1 << 20);
    empty_cache("0");
    ck_assert_int_eq(oj_join_cache_limit(), 0);
    empty_cache("64M");
    ck_assert_int_eq(oj_join_cache_limit(), 64 << 20);
    empty_cache("much");
    ck_assert_int_eq(oj_join_cache_limit(), quarter);
    empty_cache("-5");
    ck_assert_int_eq(oj_join_cache_limit(), quarter);
    empty_cache("");
    ck_assert_int_eq(oj_join_cache_limit(), quarter);
}

TEST(not_kept)
{
    struct maker maker = {.seed = 1, .keep = -1};
    struct oj_join_use use = {0}, other = {0};
    int is_mine;
    empty_cache(NULL);
    ck_assert_int_eq(take(1, 0, &maker, NULL, &use, &is_mine, NULL), OJ_OK);
    ck_assert(is_mine);
    ck_assert_int_eq(n_entries(), 0);
    ck_assert(take_and_end(1, 0));
    oj_join_use_release(&use);
    /* a side without a key is not found in the cache, but a job can be given
     * it */
    maker.keep = 0;
    ck_assert_int_eq(oj_join_cache_find_or_build(NULL, NULL, make_side, &maker,
                                                 NULL, &use, &is_mine, NULL),
                     OJ_OK);
    ck_assert(is_mine);
    ck_assert_int_eq(n_entries(), 1);
    ck_assert_int_eq(oj_join_cache_find_or_build(&use, NULL, make_side, &maker,
                                                 NULL, &other, &is_mine, NULL),
                     OJ_OK);
    ck_assert(!is_mine);
    oj_join_use_release(&use);
    ck_assert_int_eq(oj_join_cache_find_or_build(&use, NULL, make_side, &maker,
                                                 NULL, &use, &is_mine, NULL),
                     OJ_OK);
    ck_assert(is_mine);
    oj_join_use_release(&use);
    ck_assert_int_eq(oj_join_use_side(&other)->flat.n_features, N_POINTS);
    oj_join_use_release(&other);
}

TEST(clear_leaves_what_is_used)
{
    struct maker maker = {.seed = 1};
    struct oj_join_use use = {0};
    int is_mine;
    empty_cache(NULL);
    ck_assert(take_and_end(2, 0));
    ck_assert_int_eq(take(1, 0, &maker, NULL, &use, &is_mine, NULL), OJ_OK);
    oj_join_cache_clear();
    ck_assert_int_eq(n_entries(), 0);
    ck_assert_int_eq(oj_join_use_side(&use)->flat.n_features, N_POINTS);
    oj_join_use_release(&use);
    ck_assert(take_and_end(1, 0));
}

/* ---- memory ------------------------------------------------------------- */

TEST(without_memory)
{
    static struct answers_by_key answer;
    struct maker maker = {.seed = 0};
    struct oj_join_key key = make_key(0, 0);
    MATCHES matches = {0};
    oj_status status = OJ_ERR_NOMEM;
    make_answers(&answer);
    empty_cache(NULL);
    for (int64_t n = 1; status != OJ_OK; n++)
    {
        struct oj_join_use use = {0};
        struct oj_error error = {OJ_OK, ""};
        int is_mine;
        oj_alloc_fail_at(n);
        status = oj_join_cache_find_or_build(NULL, &key, make_side, &maker,
                                             NULL, &use, &is_mine, &error);
        if (status == OJ_OK)
            status =
                oj_join_use_join_batch(&use, &answer.view, &matches, &error);
        oj_alloc_fail_at(0);
        ck_assert(status == OJ_OK || status == OJ_ERR_NOMEM);
        if (status != OJ_OK)
        {
            ck_assert_int_eq(error.status, OJ_ERR_NOMEM);
            ck_assert_int_eq(n_entries(), 0);
        }
        oj_join_use_release(&use);
        ck_assert_int_lt(n, 10000);
    }
    ck_assert(same_answer(&answer, 0, &matches));
    ck_assert_int_eq(n_entries(), 1);
    oj_join_key_free(&key);
    oj_flat_buf_free(&answer.input);
}

int main(void)
{
    tests_open("join_cache");
    return tests_run();
}
