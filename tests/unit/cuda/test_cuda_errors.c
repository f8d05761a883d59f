/* The backend cuda after failures. A cancelled join ends within a second,
 * however long it would take. After an error that persists on the device,
 * backends of the CPU still work, and auto continues with them. The last test
 * makes the device unusable. Skipped if no GPU can be used.
 * OGRJOIN_TEST_PATIENCE=s: seconds that an emulated device may take instead.
 * Kind: degenerate, large. */
#include "../references.h"

#include "../../../flatten/base/oj_alloc.h"
#include "../../gpu/gpu_resident.h"
#include "../pair_counts.h"
#include "../random_numbers.h"
#include "../run_device_tests.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct gpu_resident *on_gpu;

/* --- layers --------------------------------------------------------------- */

struct failing_join
{
    struct oj_flat_buf join_buf, input_buf;
    struct oj_flat join, input;
    struct oj_relation relation;
};

static void add_points(struct oj_flat_buf *buf, int n, int width)
{
    for (int i = 0; i < n; i++)
        add_point(buf, pick(width), pick(width));
}

static void make_sides(struct failing_join *s, int n_join, int n_input,
                       int width)
{
    memset(s, 0, sizeof *s);
    random_state = 11;
    add_points(&s->join_buf, n_join, width);
    add_points(&s->input_buf, n_input, width);
    s->join = oj_flat_buf_view(&s->join_buf);
    s->input = oj_flat_buf_view(&s->input_buf);
    s->relation = oj_relation_default();
}

static void free_sides(struct failing_join *s)
{
    oj_flat_buf_free(&s->join_buf);
    oj_flat_buf_free(&s->input_buf);
}

/* --- cancelling ----------------------------------------------------------- */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_s(double seconds)
{
    struct timespec t;
    t.tv_sec = (time_t)seconds;
    t.tv_nsec = (long)(1e9 * (seconds - (double)t.tv_sec));
    nanosleep(&t, NULL);
}

/* Returns the number of seconds that a join may run after it was cancelled. */
static double allowed_seconds(void)
{
    const char *text = getenv("OGRJOIN_TEST_PATIENCE");
    return text != NULL ? atof(text) : 1.0;
}

struct stopper
{
    int cancel;
    double at; /* time at which the flag was set */
    pthread_t thread;
};

static void *stop_later(void *user)
{
    struct stopper *stopper = user;
    sleep_s(0.5);
    stopper->at = now_s();
    __atomic_store_n(&stopper->cancel, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Starts a join (counts 0) or a count of pairs (counts 1), and sets the cancel
 * flag meanwhile. Checks the time until it ends. `what` is for messages. */
static void stop_in_time(const char *what, struct failing_join *s, int counts)
{
    struct stopper stopper = {0, 0.0, 0};
    const struct oj_options options = {.n_threads = 4,
                                       .cancel = &stopper.cancel};
    MATCHES out = {0};
    int64_t n_pairs, *count = oj_calloc(s->join.n_features, sizeof *count);
    struct oj_join *join;
    oj_status status;
    double end;
    ck_assert_ptr_nonnull(count);
    must(oj_join_open(&s->join, &s->relation, "cuda", &options, &join, &error));
    ck_assert_int_eq(
        pthread_create(&stopper.thread, NULL, stop_later, &stopper), 0);
    status = counts
                 ? count_pairs_by_feature(join, &s->input, s->join.n_features,
                                          count, &n_pairs, &error)
                 : oj_join_batch(join, &s->input, &out, &error);
    end = now_s();
    pthread_join(stopper.thread, NULL);
    printf("%s: %s %.2f s after the flag\n", what, oj_status_name(status),
           end - stopper.at);
    ck_assert_msg(status == OJ_ERR_CANCELLED ||
                      (status == OJ_OK && end < stopper.at + allowed_seconds()),
                  "%s: %s", oj_status_name(status), error.message);
    ck_assert_msg(end - stopper.at < allowed_seconds(), "%s: %.2f s", what,
                  end - stopper.at);
    oj_join_close(join);
    oj_free(count);
}

TEST(no_such_device)
{
    struct oj_gpu_device device;
    int n = 0;
    must(module->count(&n, &error));
    must(module->describe(n - 1, &device, &error));
    ck_assert_str_eq(device.why_not, "");
    ck_assert_int_eq(module->describe(n, &device, &error), OJ_ERR_NO_DEVICE);
    ck_assert_int_eq(module->describe(-1, &device, &error), OJ_ERR_NO_DEVICE);
}

/* Every point is paired with every other point, which would take minutes. */
TEST(cancelled_counts)
{
    struct failing_join s;
    make_sides(&s, 300000, 300000, 1000);
    s.relation.op = OJ_OP_DWITHIN;
    s.relation.max_distance = 3000.0;
    stop_in_time("counts", &s, 1);
    free_sides(&s);
}

/* All features are equally near, so every comparison is decided by the tie
 * rank. */
TEST(cancelled_nearest)
{
    struct failing_join s;
    make_sides(&s, 300000, 0, 1);
    s.relation.exclude_self = 1;
    s.input = s.join;
    stop_in_time("nearest other point", &s, 0);
    s.relation.k = 100;
    stop_in_time("nearest hundred", &s, 0);
    free_sides(&s);
    make_sides(&s, 20000, 0, 1);
    s.relation.exclude_self = 1;
    s.relation.ties = OJ_TIES_ALL;
    s.input = s.join;
    stop_in_time("nearest with ties", &s, 0);
    free_sides(&s);
}

/* Adds a feature of many long parts. The parts of features with different
 * shifts interleave: all boxes intersect, but no edges do. */
static void add_stripes(struct oj_flat_buf *buf, double shift)
{
    begin(buf);
    for (int i = 0; i < 4000; i++)
    {
        double x = i + shift, xy[] = {x, 0.0, x + 4000.0, 4000.0};
        add_part(buf, OJ_PART_LINE);
        add_ring(buf, 2, xy);
    }
    end(buf);
}

TEST(cancelled_lines)
{
    struct failing_join s;
    make_sides(&s, 0, 0, 1);
    for (int f = 0; f < 300; f++)
    {
        add_stripes(&s.join_buf, f / 1024.0);
        add_stripes(&s.input_buf, f / 1024.0 + 0.5);
    }
    s.join = oj_flat_buf_view(&s.join_buf);
    s.input = oj_flat_buf_view(&s.input_buf);
    s.relation.op = OJ_OP_INTERSECTS;
    stop_in_time("lines", &s, 0);
    free_sides(&s);
}

/* --- a permanent error of the device -------------------------------------- */

static oj_status open_and_join(const char *backend,
                               const struct failing_join *s, char reason[256],
                               struct oj_matches *out)
{
    const struct oj_options options = {.n_threads = 2,
                                       .n_expected = 1000000000};
    struct oj_join *join = NULL;
    oj_status status =
        oj_join_open(&s->join, &s->relation, backend, &options, &join, &error);
    if (status == OJ_OK)
        status = oj_join_batch(join, &s->input, out, &error);
    if (status == OJ_OK)
        snprintf(reason, 256, "%s: %s", oj_join_backend(join)->name,
                 oj_join_reason_for_backend(join));
    oj_join_close(join);
    return status;
}

static void assert_equal_answers(const struct oj_matches *a,
                                 const struct oj_matches *b)
{
    ck_assert_int_eq(a->n_rows, b->n_rows);
    for (int64_t i = 0; i < a->n_rows; i++)
        ck_assert(a->join_row[i] == b->join_row[i] &&
                  (a->measure[i] == b->measure[i] || a->join_row[i] < 0));
}

/* Joins points at an invalid device address. Afterwards this process cannot use
 * the device. */
static void lose_device(const struct failing_join *s)
{
    const struct oj_options options = {.n_threads = 1};
    struct oj_gpu_points points = {.n = 1000};
    struct oj_stats stats = {0};
    struct oj_gpu_index *index;
    void *memory;
    must(module->index(&s->join, NULL, &s->relation, &options, &index, &stats,
                       &error));
    must(on_gpu->allocate(index, 1000 * (int64_t)sizeof(double), &memory,
                          &error));
    points.x = points.y = (const double *)(uintptr_t)64;
    ck_assert_int_eq(on_gpu->join(index, &points, memory, NULL, NULL, &error),
                     OJ_ERR_INTERNAL);
    printf("the device says: %s\n", error.message);
    ck_assert_ptr_nonnull(strstr(error.message, "CUDA"));
    on_gpu->release(index, memory);
    module->free_index(index);
}

TEST(lost_device)
{
    struct failing_join s;
    MATCHES truth = {0}, ours = {0};
    struct oj_gpu_device device;
    char reason[256];
    make_sides(&s, 500, 3000, 100);
    s.relation.max_distance = 10.0;
    must(open_and_join("cpu", &s, reason, &truth));
    must(open_and_join("cuda", &s, reason, &ours));
    assert_equal_answers(&ours, &truth);
    lose_device(&s);
    for (int i = 0; i < 3; i++)
    {
        ck_assert_int_ne(open_and_join("cuda", &s, reason, &ours), OJ_OK);
        ck_assert_ptr_nonnull(strstr(error.message, "CUDA"));
        must(open_and_join("cpu", &s, reason, &ours));
        assert_equal_answers(&ours, &truth);
        must(open_and_join("auto", &s, reason, &ours));
        assert_equal_answers(&ours, &truth);
        printf("%s\n", reason);
        ck_assert_ptr_nonnull(strstr(reason, "cpu: no GPU: "));
    }
    must(module->describe(0, &device, &error));
    printf("GPU 0: %s\n", device.why_not);
    ck_assert_str_ne(device.why_not, "");
    free_sides(&s);
}

int main(void)
{
    if (!device_tests_open("cuda_errors"))
        return DEVICE_TESTS_SKIPPED;
    must(gpu_resident_find(&on_gpu, &error));
    return tests_run();
}
