/* The pipeline with a fake reader, joiner and writer: the order of batches,
 * errors in every stage, cancelling, empty input, and no thread left over.
 * Kind: unit. */
#include "../run_tests.h"

#include "../../../algs/api/engine/oj_pipeline.h"
#include "../../../flatten/base/oj_alloc.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum
{
    ROWS = 7 /* rows per batch */
};

struct fake
{
    int64_t n_batches; /* batches that the reader returns */
    int64_t fail_read, fail_join, fail_write, cancel_at, stop_at; /* or -1 */
    int slow; /* 1: the reader is slow, 2: the joiner, 3: the writer */
    int cancel;
    int64_t max_pairs; /* maximum pairs of the run; 0: no limit */
    /* maximum rows of a part; more rows count as too many pairs; 0: no limit */
    int64_t most_rows;
    /* if not 0: after this number of parts, most_rows has no effect */
    int64_t any_after;
    /* hangs 1: the joiner does not return before hangs_end is 1 */
    int hangs, hangs_end;
    int late_join; /* 1: the joiner waits until others have failed */
    int has_begun, has_failed; /* 1: the joiner has begun, read() has failed */
    int n_slots;               /* number of slots, set by the first read() */
    int most_slots;            /* value to which read() sets n_slots */

    int64_t n_read, n_joined, n_written; /* numbers of batches, or of their
                                            parts */
    int64_t n_rows_written;
    int64_t number[OJ_PIPELINE_SLOTS]; /* batch in each slot */
    double x[OJ_PIPELINE_SLOTS][ROWS];
    double y[ROWS];
    pthread_t caller;
    int n_threads;  /* threads that have ended */
    int most_ahead; /* maximum number of batches that were read but not written
                     */
};

static void sleep_ms(long ms)
{
    const struct timespec t = {0, ms * 1000000};
    nanosleep(&t, NULL);
}

static void wait_until_set(const int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_RELAXED))
        sleep_ms(1);
}

static void pause_if(const struct fake *fake, int stage)
{
    const struct timespec t = {0, 300000};
    if (fake->slow == stage)
        nanosleep(&t, NULL);
}

static oj_status fake_read(void *user, int slot, struct oj_flat *flat,
                           struct oj_error *err)
{
    struct fake *fake = user;
    int64_t written = __atomic_load_n(&fake->n_written, __ATOMIC_SEQ_CST);
    pause_if(fake, 1);
    ck_assert(!pthread_equal(pthread_self(), fake->caller));
    if (fake->n_read == 0)
        fake->n_slots = fake->most_slots;
    if (fake->late_join && fake->n_read == fake->fail_read)
        wait_until_set(&fake->has_begun);
    if (fake->n_read == fake->fail_read)
    {
        __atomic_store_n(&fake->has_failed, 1, __ATOMIC_RELAXED);
        return oj_fail(err, OJ_ERR_DATA, "read %lld", (long long)fake->n_read);
    }
    memset(flat, 0, sizeof *flat);
    if (fake->n_read == fake->n_batches)
        return OJ_OK;
    if (fake->n_read - written + 1 > fake->most_ahead)
        fake->most_ahead = (int)(fake->n_read - written + 1);
    fake->number[slot] = fake->n_read;
    for (int i = 0; i < ROWS; i++)
        fake->x[slot][i] = (double)(fake->n_read * ROWS + i);
    flat->n_features = ROWS;
    flat->n_vertices = ROWS;
    flat->x = fake->x[slot];
    flat->y = fake->y;
    fake->n_read++;
    return OJ_OK;
}

/* Joins row i with join row i, for even i only. */
static oj_status fake_join(void *user, const struct oj_pipeline_part *part,
                           struct oj_matches *out, struct oj_error *err)
{
    struct fake *fake = user;
    const struct oj_flat *flat = part->flat;
    pause_if(fake, 2);
    if (fake->late_join)
    {
        __atomic_store_n(&fake->has_begun, 1, __ATOMIC_RELAXED);
        wait_until_set(&fake->has_failed);
        sleep_ms(300); /* until read() has returned, too */
    }
    if (fake->hangs)
        wait_until_set(&fake->hangs_end);
    ck_assert(!pthread_equal(pthread_self(), fake->caller));
    if (fake->n_joined == fake->fail_join)
        return oj_fail(err, OJ_ERR_NOMEM, "join %lld",
                       (long long)fake->n_joined);
    if (fake->n_joined == fake->cancel_at)
        __atomic_store_n(&fake->cancel, 1, __ATOMIC_RELAXED);
    if (fake->any_after > 0 && fake->n_joined >= fake->any_after)
        fake->most_rows = 0;
    if (fake->most_rows > 0 && flat->n_features > fake->most_rows)
        return oj_fail(err, OJ_ERR_TOO_MANY_PAIRS, "too many");
    OJ_TRY(oj_matches_reserve(out, flat->n_features, flat->n_features, 0, err));
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        int even = ((int64_t)flat->x[i] & 1) == 0;
        out->join_row[i] = even ? (int32_t)flat->x[i] : -1;
        out->measure[i] = 0;
        out->n_matched += even;
        out->n_pairs += even;
    }
    fake->n_joined++;
    return OJ_OK;
}

static oj_status fake_write(void *user, const struct oj_pipeline_part *part,
                            const struct oj_matches *matches,
                            struct oj_error *err)
{
    struct fake *fake = user;
    const struct oj_flat *flat = part->flat;
    pause_if(fake, 3);
    ck_assert(pthread_equal(pthread_self(), fake->caller));
    if (fake->n_written == fake->fail_write)
        return oj_fail(err, OJ_ERR_IO, "write %lld",
                       (long long)fake->n_written);
    ck_assert_int_eq(fake->number[part->slot], fake->n_rows_written / ROWS);
    ck_assert_int_eq(part->first_row, fake->n_rows_written % ROWS);
    ck_assert_int_eq(matches->n_rows, flat->n_features);
    for (int64_t i = 0; i < flat->n_features; i++)
    {
        int64_t row = fake->n_rows_written + i;
        ck_assert_double_eq(flat->x[i], (double)row);
        ck_assert_int_eq(matches->join_row[i], (row & 1) == 0 ? row : -1);
    }
    fake->n_rows_written += flat->n_features;
    __atomic_add_fetch(&fake->n_written, 1, __ATOMIC_SEQ_CST);
    return OJ_OK;
}

static int on_progress(int64_t n_rows, void *user)
{
    struct fake *fake = user;
    ck_assert_int_eq(n_rows, fake->n_rows_written);
    return fake->n_written == fake->stop_at;
}

static struct fake make_fake(int64_t n_batches)
{
    struct fake fake = {0};
    fake.n_batches = n_batches;
    fake.fail_read = fake.fail_join = fake.fail_write = -1;
    fake.cancel_at = fake.stop_at = -1;
    fake.n_slots = fake.most_slots = OJ_PIPELINE_SLOTS;
    return fake;
}

static void on_thread(void *user, void (*stages)(struct oj_pipeline *),
                      struct oj_pipeline *pipeline)
{
    struct fake *fake = user;
    stages(pipeline);
    __atomic_add_fetch(&fake->n_threads, 1, __ATOMIC_SEQ_CST);
}

static struct oj_pipeline_work make_work(struct fake *fake)
{
    const struct oj_pipeline_work work = {
        fake_read,     fake_join,       on_progress,    on_thread, fake,
        &fake->cancel, fake->max_pairs, &fake->n_slots, 0,         NULL,
        NULL};
    fake->caller = pthread_self();
    return work;
}

static oj_status run_pipeline(struct fake *fake,
                              struct oj_pipeline_counts *counts,
                              struct oj_error *err)
{
    const struct oj_pipeline_work work = make_work(fake);
    const struct oj_pipeline_counts no_counts = {0};
    const struct oj_pipeline_part *part;
    const struct oj_matches *matches;
    struct oj_pipeline *pipeline;
    oj_status status;
    *counts = no_counts;
    OJ_TRY(oj_pipeline_open(&work, &pipeline, err));
    do
    {
        status = oj_pipeline_next(pipeline, &part, &matches, err);
        if (status == OJ_OK && part != NULL)
            status = fake_write(fake, part, matches, err);
    } while (status == OJ_OK && part != NULL);
    return oj_pipeline_close(pipeline, status, counts, err);
}

TEST_LOOP(all_batches_arrive_in_order, 0, 4)
{
    static const int64_t numbers[] = {1, 2, 3, 4, 5, 100, 2000};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    {
        struct fake fake = make_fake(numbers[i]);
        struct oj_pipeline_counts counts;
        struct oj_error err;
        fake.slow = numbers[i] <= 100 ? _i : 0;
        ck_assert_int_eq(run_pipeline(&fake, &counts, &err), OJ_OK);
        ck_assert_int_eq(counts.n_parts, numbers[i]);
        ck_assert_int_eq(counts.n_rows, numbers[i] * ROWS);
        ck_assert_int_eq(counts.n_matched, (numbers[i] * ROWS + 1) / 2);
        ck_assert_int_eq(counts.n_pairs, counts.n_matched);
        ck_assert_int_le(fake.most_ahead, OJ_PIPELINE_SLOTS);
    }
}

/* With one slot, a batch is read only after the previous one was written. */
TEST_LOOP(one_batch_at_a_time, 0, 4)
{
    struct fake fake = make_fake(50);
    struct oj_pipeline_counts counts;
    struct oj_error err;
    fake.slow = _i;
    fake.most_slots = 1;
    fake.most_rows = 3;
    ck_assert_int_eq(run_pipeline(&fake, &counts, &err), OJ_OK);
    ck_assert_int_eq(counts.n_rows, 50 * ROWS);
    ck_assert_int_eq(fake.n_rows_written, 50 * ROWS);
    ck_assert_int_le(fake.most_ahead, 1);
}

/* A batch with too many pairs for one answer comes in parts, in order. Its slot
 * is not overwritten before its last part was written. */
TEST(too_many_pairs_come_in_parts)
{
    for (int64_t most = 1; most <= ROWS; most++)
    {
        for (int slow = 0; slow < 4; slow++)
        {
            struct fake fake = make_fake(20);
            struct oj_pipeline_counts counts;
            struct oj_error err = {OJ_OK, ""};
            fake.most_rows = most;
            fake.slow = slow;
            ck_assert_msg(run_pipeline(&fake, &counts, &err) == OJ_OK, "%s",
                          err.message);
            ck_assert_int_eq(counts.n_rows, 20 * ROWS);
            ck_assert_int_eq(fake.n_rows_written, 20 * ROWS);
            ck_assert_int_ge(counts.n_parts, 20 * ROWS / most);
        }
    }
}

TEST(a_bound_of_pairs_ends_the_run)
{
    struct fake fake = make_fake(10);
    struct oj_pipeline_counts counts;
    struct oj_error err = {OJ_OK, ""};
    fake.max_pairs = 10 * ROWS / 2 - 1;
    ck_assert_int_eq(run_pipeline(&fake, &counts, &err), OJ_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "pairs"));
    fake = make_fake(10);
    fake.max_pairs = 10 * ROWS / 2;
    ck_assert_int_eq(run_pipeline(&fake, &counts, &err), OJ_OK);
}

TEST(empty_input)
{
    struct fake fake = make_fake(0);
    struct oj_pipeline_counts counts;
    struct oj_error err;
    ck_assert_int_eq(run_pipeline(&fake, &counts, &err), OJ_OK);
    ck_assert_int_eq(counts.n_parts, 0);
    ck_assert_int_eq(counts.n_rows, 0);
}

/* One batch fails, in each stage, while stage _i is slow (0: none). */
TEST_LOOP(errors_end_the_run, 0, 4)
{
    static const oj_status expected[] = {OJ_ERR_DATA, OJ_ERR_NOMEM, OJ_ERR_IO};
    static const char *const words[] = {"read", "join", "write"};
    for (int stage = 0; stage < 3; stage++)
    {
        for (int64_t n = 0; n < 8; n++)
        {
            struct fake fake = make_fake(20);
            struct oj_pipeline_counts counts;
            struct oj_error err = {OJ_OK, ""};
            char message[32];
            fake.slow = _i;
            if (stage == 0)
                fake.fail_read = n;
            else if (stage == 1)
                fake.fail_join = n;
            else
                fake.fail_write = n;
            ck_assert_int_eq(run_pipeline(&fake, &counts, &err),
                             expected[stage]);
            snprintf(message, sizeof message, "%s %lld", words[stage],
                     (long long)n);
            ck_assert_str_eq(err.message, message);
            ck_assert_int_eq(err.status, expected[stage]);
            ck_assert_int_le(counts.n_parts, n);
            ck_assert_int_eq(counts.n_rows, counts.n_parts * ROWS);
        }
    }
}

/* The first error is returned, because later ones may follow from it. */
TEST(the_first_error_is_returned)
{
    struct fake fake = make_fake(20);
    struct oj_pipeline_counts counts;
    struct oj_error err = {OJ_OK, ""};
    fake.fail_read = 1;
    fake.fail_join = 0;
    fake.late_join = 1;
    ck_assert_int_eq(run_pipeline(&fake, &counts, &err), OJ_ERR_DATA);
    ck_assert_str_eq(err.message, "read 1");
}

/* A few rows with very many pairs make the next parts small, but not all later
 * ones. */
TEST(parts_grow_again)
{
    struct fake fake = make_fake(40);
    struct oj_pipeline_counts counts;
    struct oj_error err = {OJ_OK, ""};
    fake.most_rows = 1;
    fake.any_after = 5;
    ck_assert_int_eq(run_pipeline(&fake, &counts, &err), OJ_OK);
    ck_assert_int_eq(counts.n_rows, 40 * ROWS);
    ck_assert_int_lt(counts.n_parts, 80);
}

TEST(error_text_may_be_unwanted)
{
    struct fake fake = make_fake(20);
    struct oj_pipeline_counts counts;
    fake.fail_join = 2;
    ck_assert_int_eq(run_pipeline(&fake, &counts, NULL), OJ_ERR_NOMEM);
}

TEST_LOOP(cancel_flag_ends_the_run, 0, 4)
{
    for (int64_t n = 0; n < 6; n++)
    {
        struct fake fake = make_fake(1000000);
        struct oj_pipeline_counts counts;
        struct oj_error err = {OJ_OK, ""};
        fake.slow = _i;
        fake.cancel_at = n;
        ck_assert_int_eq(run_pipeline(&fake, &counts, &err), OJ_ERR_CANCELLED);
        ck_assert_int_le(counts.n_parts, n + OJ_PIPELINE_SLOTS);
    }
}

TEST(cancel_before_the_start)
{
    struct fake fake = make_fake(10);
    struct oj_pipeline_counts counts;
    struct oj_error err = {OJ_OK, ""};
    fake.cancel = 1;
    ck_assert_int_eq(run_pipeline(&fake, &counts, &err), OJ_ERR_CANCELLED);
    ck_assert_int_eq(counts.n_parts, 0);
    ck_assert_int_eq(fake.n_read, 0);
}

TEST(progress_can_stop_the_run)
{
    struct fake fake = make_fake(1000000);
    struct oj_pipeline_counts counts;
    struct oj_error err = {OJ_OK, ""};
    fake.stop_at = 5;
    ck_assert_int_eq(run_pipeline(&fake, &counts, &err), OJ_ERR_CANCELLED);
    ck_assert_int_eq(counts.n_parts, 5);
}

/* ---- answers on request -------------------------------------------------- */

static struct oj_pipeline *open_pipeline(struct fake *fake)
{
    const struct oj_pipeline_work work = make_work(fake);
    struct oj_pipeline *p = NULL;
    struct oj_error err = {OJ_OK, ""};
    ck_assert_msg(oj_pipeline_open(&work, &p, &err) == OJ_OK, "%s",
                  err.message);
    return p;
}

TEST(answers_are_returned_on_request)
{
    struct fake fake = make_fake(50);
    struct oj_pipeline *p = open_pipeline(&fake);
    const struct oj_pipeline_part *part;
    const struct oj_matches *matches;
    struct oj_pipeline_counts counts;
    struct oj_error err = {OJ_OK, ""};
    for (int i = 0; i < 50; i++)
    {
        ck_assert_int_eq(oj_pipeline_next(p, &part, &matches, &err), OJ_OK);
        ck_assert_ptr_nonnull(part);
        ck_assert_int_eq(fake_write(&fake, part, matches, &err), OJ_OK);
    }
    for (int i = 0; i < 3; i++)
    {
        ck_assert_int_eq(oj_pipeline_next(p, &part, &matches, &err), OJ_OK);
        ck_assert_ptr_null(part);
    }
    ck_assert_int_eq(oj_pipeline_close(p, OJ_OK, &counts, &err), OJ_OK);
    ck_assert_int_eq(counts.n_rows, 50 * ROWS);
    ck_assert_int_eq(fake.n_threads, 2);
}

/* The reader stops when all slots are full. The last answer is not counted,
 * because it is not released. */
TEST(answers_need_not_be_taken)
{
    for (int n = 0; n < 6; n++)
    {
        struct fake fake = make_fake(1000000);
        struct oj_pipeline *p = open_pipeline(&fake);
        const struct oj_pipeline_part *part;
        const struct oj_matches *matches;
        struct oj_pipeline_counts counts;
        struct oj_error err = {OJ_OK, ""};
        for (int i = 0; i < n; i++)
        {
            ck_assert_int_eq(oj_pipeline_next(p, &part, &matches, &err), OJ_OK);
            ck_assert_int_eq(fake_write(&fake, part, matches, &err), OJ_OK);
        }
        sleep_ms(20);
        ck_assert_int_eq(oj_pipeline_close(p, OJ_OK, &counts, &err), OJ_OK);
        ck_assert_int_eq(counts.n_parts, n > 0 ? n - 1 : 0);
        ck_assert_int_le(fake.n_read, OJ_PIPELINE_SLOTS + n);
        ck_assert_int_eq(fake.n_threads, 2);
    }
}

/* An error is returned at its place in the order of answers. Each further call,
 * and the function that closes the pipeline, return it again. */
TEST(an_error_is_returned_in_its_place)
{
    struct fake fake = make_fake(20);
    struct oj_pipeline *p;
    const struct oj_pipeline_part *part;
    const struct oj_matches *matches;
    struct oj_error err = {OJ_OK, ""};
    fake.fail_join = 0;
    p = open_pipeline(&fake);
    for (int i = 0; i < 2; i++)
    {
        ck_assert_int_eq(oj_pipeline_next(p, &part, &matches, &err),
                         OJ_ERR_NOMEM);
        ck_assert_ptr_null(part);
        ck_assert_str_eq(err.message, "join 0");
    }
    (void)!oj_fail(&err, OJ_ERR_IO, "a later one");
    ck_assert_int_eq(oj_pipeline_close(p, OJ_ERR_IO, NULL, &err), OJ_ERR_NOMEM);
    ck_assert_str_eq(err.message, "join 0");
    ck_assert_int_eq(oj_pipeline_close(NULL, OJ_ERR_IO, NULL, &err), OJ_ERR_IO);
}

static void *set_flag_later(void *user)
{
    sleep_ms(50);
    __atomic_store_n((int *)user, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* A caller that waits can be cancelled, whatever the stages do. */
TEST(waiting_is_cancelled)
{
    struct fake fake = make_fake(20);
    struct oj_pipeline *p;
    const struct oj_pipeline_part *part;
    const struct oj_matches *matches;
    struct oj_error err = {OJ_OK, ""};
    pthread_t thread;
    fake.hangs = 1;
    p = open_pipeline(&fake);
    ck_assert_int_eq(
        pthread_create(&thread, NULL, set_flag_later, &fake.cancel), 0);
    ck_assert_int_eq(oj_pipeline_next(p, &part, &matches, &err),
                     OJ_ERR_CANCELLED);
    __atomic_store_n(&fake.hangs_end, 1, __ATOMIC_RELAXED);
    ck_assert_int_eq(oj_pipeline_close(p, OJ_ERR_CANCELLED, NULL, &err),
                     OJ_ERR_CANCELLED);
    pthread_join(thread, NULL);
}

TEST(without_memory)
{
    struct fake fake = make_fake(1);
    const struct oj_pipeline_work work = make_work(&fake);
    struct oj_pipeline *p = NULL;
    struct oj_error err;
    oj_alloc_fail_at(1);
    ck_assert_int_eq(oj_pipeline_open(&work, &p, &err), OJ_ERR_NOMEM);
    oj_alloc_fail_at(0);
    ck_assert_ptr_null(p);
}

int main(void)
{
    tests_open("pipeline");
    return tests_run();
}
