/* Kept indexes through the public library: counts, near pairs and their
 * changes, files, failing allocations, and readers beside a writer.
 * Kinds: unit, memory, threads. */
#include "../../../flatten/base/oj_alloc.h"
#include "../run_tests.h"

#include "live_trial.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void fails(int status, int expected, const char *text)
{
    ck_assert_msg(status == expected &&
                      strstr(live_error.message, text) != NULL,
                  "%d %s", status, live_error.message);
}

static void apply(struct ogrjoin_live *live, int64_t n, const int64_t *id,
                  const double *x, const double *y)
{
    must(ogrjoin_live_apply(live, n, id, x, y, &live_error));
}

static struct ogrjoin_live_counts counts_of(struct ogrjoin_live *live)
{
    struct ogrjoin_live_counts counts = {.size = sizeof counts};
    must(ogrjoin_live_counts(live, &counts, &live_error));
    return counts;
}

/* --- counts --------------------------------------------------------------- */

TEST(counts)
{
    static const int64_t id[] = {7, 8, 9, 7, 11, 12, 8};
    static const double x[] = {0, 1, 2, 3, NAN, 5, NAN};
    static const double y[] = {0, 0, 0, 0, 0, INFINITY, 0};
    struct ogrjoin_live_counts c = {.size = 8};
    struct ogrjoin_live *live = NULL;
    must(ogrjoin_live_new(NULL, &live, &live_error));
    fails(ogrjoin_live_counts(live, &c, &live_error), OGRJOIN_ERR_ARG, "size");
    apply(live, 0, NULL, NULL, NULL);
    ck_assert_int_eq(ogrjoin_live_count(live), 0);
    apply(live, 7, id, x, y);
    c = counts_of(live);
    ck_assert_int_eq(c.n, 2); /* 7 and 9 */
    ck_assert_int_eq(c.n_batches, 2);
    ck_assert_int_eq(c.n_put, 2);
    ck_assert_int_eq(c.n_superseded, 2);
    ck_assert_int_eq(c.n_unknown, 3); /* 8, 11, 12 */
    ck_assert_int_eq(c.n_unjoinable, 1);
    ck_assert_int_eq(c.n_removed, 0);
    apply(live, 2, id, x + 4, y);
    c = counts_of(live);
    ck_assert_int_eq(c.n, 2);
    ck_assert_int_eq(c.n_removed, 1);
    ck_assert_int_eq(c.n_put, 3);
    ck_assert(strstr(c.tree, "quadtree") != NULL);
    ogrjoin_live_free(live);
    ogrjoin_live_free(NULL);
}

TEST(which_tree)
{
    enum
    {
        N = 3000
    };
    static int64_t id[N];
    static double x[N], y[N];
    struct ogrjoin_settings *settings = settings_of("backend=geos");
    struct ogrjoin_live *live = NULL;
    fails(ogrjoin_live_new(settings, &live, &live_error),
          OGRJOIN_ERR_UNSUPPORTED, "cpu, cuda or auto, not geos");
    ogrjoin_settings_free(settings);
    must(ogrjoin_live_new(NULL, &live, &live_error));
    for (int i = 0; i < N; i++)
    {
        id[i] = i;
        x[i] = i % 2 == 0 ? i * 1e-9 : 1e6 + i * 1e-9;
        y[i] = 0.0;
    }
    apply(live, N, id, x, y);
    ck_assert_msg(strstr(counts_of(live).tree, "kdtree: the quadtree would "
                                               "reach its depth") != NULL,
                  "%s", counts_of(live).tree);
    ogrjoin_live_free(live);
}

/* --- near pairs ------------------------------------------------------------
 */

static struct ogrjoin_pairs *near_pairs(struct ogrjoin_live *live,
                                        const char *words)
{
    struct ogrjoin_settings *settings = settings_of(words);
    struct ogrjoin_pairs *pairs = NULL;
    must(ogrjoin_live_near_pairs(live, settings, &pairs, &live_error));
    ogrjoin_settings_free(settings);
    return pairs;
}

static void expect_pair(const struct ogrjoin_pairs *pairs, int64_t i,
                        int64_t left, int64_t right, double change)
{
    ck_assert_int_eq(ogrjoin_pairs_left(pairs)[i], left);
    ck_assert_int_eq(ogrjoin_pairs_right(pairs)[i], right);
    ck_assert_double_eq(ogrjoin_pairs_value(pairs, "change")[i], change);
    ck_assert((change < 0) == isnan(ogrjoin_pairs_measure(pairs)[i]));
}

TEST(near_pairs_and_changes)
{
    static const int64_t id[] = {-5, 3, 40};
    static const double x[] = {0, 1, 5}, y[] = {0, 0, 0}, x_later[] = {9, 4, 5},
                        gone[] = {NAN};
    struct ogrjoin_settings *settings = settings_of("changes=1");
    struct ogrjoin_live *live = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    must(ogrjoin_live_new(NULL, &live, &live_error));
    apply(live, 3, id, x, y);
    fails(ogrjoin_live_near_pairs(live, settings, &pairs, &live_error),
          OGRJOIN_ERR_ARG, "max_distance");
    ogrjoin_settings_free(settings);
    pairs = near_pairs(live, "max_distance=1");
    ck_assert_int_eq(ogrjoin_pairs_count(pairs), 1);
    ck_assert_int_eq(ogrjoin_pairs_left(pairs)[0], -5);
    ck_assert_int_eq(ogrjoin_pairs_right(pairs)[0], 3);
    ck_assert_double_eq(ogrjoin_pairs_measure(pairs)[0], 1.0);
    ck_assert_ptr_null(ogrjoin_pairs_value(pairs, "change"));
    ogrjoin_pairs_free(pairs);
    pairs = near_pairs(live, "max_distance=1 changes=1");
    ck_assert_int_eq(ogrjoin_pairs_count(pairs), 1);
    expect_pair(pairs, 0, -5, 3, 1);
    ogrjoin_pairs_free(pairs);
    apply(live, 3, id, x_later, y);
    pairs = near_pairs(live, "max_distance=1 changes=1");
    ck_assert_int_eq(ogrjoin_pairs_count(pairs), 2);
    expect_pair(pairs, 0, -5, 3, -1);
    expect_pair(pairs, 1, 3, 40, 1);
    ogrjoin_pairs_free(pairs);
    pairs = near_pairs(live, "max_distance=1 changes=1");
    ck_assert_int_eq(ogrjoin_pairs_count(pairs), 0);
    ogrjoin_pairs_free(pairs);
    apply(live, 1, id + 1, gone, y);
    pairs = near_pairs(live, "max_distance=1 changes=1");
    ck_assert_int_eq(ogrjoin_pairs_count(pairs), 1);
    expect_pair(pairs, 0, 3, 40, -1);
    ogrjoin_pairs_free(pairs);
    ogrjoin_live_free(live);
}

/* --- joins -----------------------------------------------------------------
 */

static struct plain_points points;
static struct random_batch batch;
static struct plain_layer layer;
static struct input_layer input;

static void put_points_anywhere(struct ogrjoin_live *live, int n)
{
    memset(&points, 0, sizeof points);
    points.n_keys = n;
    batch.n = 0;
    for (int key = 0; key < n; key++)
        put_random_change(&batch, &points, BATCH_ANYWHERE, key);
    apply(live, batch.n, batch.id, batch.x, batch.y);
    plain_apply(&points, &batch);
}

/* Settings without effect, each with a part of its error message. */
TEST(settings_without_effect)
{
    static const char *const of_both[][2] = {
        {"op=dwithin max_distance=5 within_time=a:1", "within_time has no"},
        {"op=dwithin max_distance=5 agg=count", "agg has no effect on pairs"},
        {"op=dwithin max_distance=5 k=2", "k has no effect on op dwithin"},
        {"op=dwithin max_distance=5 tree=kdtree", "tree has no effect"},
        {"op=dwithin max_distance=5 norm=l1", "without vector"}};
    static const char *const of_near[][2] = {
        {"op=nearest max_distance=5", "op has no effect on near pairs"},
        {"max_distance=5 ties=all", "ties has no effect on op dwithin"},
        {"max_distance=5 changes=1 bearing=1", "bearing and changes do not"}};
    struct ogrjoin_live *live = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    struct ogrjoin_settings *settings;
    random_state = 6;
    must(ogrjoin_live_new(NULL, &live, &live_error));
    put_points_anywhere(live, 20);
    input_layer_make(&points, 5, 1, &input);
    for (size_t i = 0; i < sizeof of_both / sizeof *of_both; i++)
    {
        settings = settings_of(of_both[i][0]);
        fails(
            ogrjoin_live_join(live, settings, input.layer, &pairs, &live_error),
            OGRJOIN_ERR_ARG, of_both[i][1]);
        fails(ogrjoin_live_near_pairs(live, settings, &pairs, &live_error),
              OGRJOIN_ERR_ARG, of_both[i][1]);
        ogrjoin_settings_free(settings);
    }
    for (size_t i = 0; i < sizeof of_near / sizeof *of_near; i++)
    {
        settings = settings_of(of_near[i][0]);
        fails(ogrjoin_live_near_pairs(live, settings, &pairs, &live_error),
              OGRJOIN_ERR_ARG, of_near[i][1]);
        ogrjoin_settings_free(settings);
    }
    settings = settings_of("op=dwithin max_distance=5 changes=1");
    fails(ogrjoin_live_join(live, settings, input.layer, &pairs, &live_error),
          OGRJOIN_ERR_ARG, "changes has no effect on pairs");
    ogrjoin_settings_free(settings);
    ogrjoin_layer_free(input.layer);
    ogrjoin_live_free(live);
}

TEST(errors_of_joins)
{
    static const char *const words[] = {"op=dwithin max_distance=10m",
                                        "op=nearest similar=0.5", "pick=score"};
    struct ogrjoin_live *live = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    struct ogrjoin_results results = {0};
    struct ogrjoin_settings *settings;
    random_state = 5;
    must(ogrjoin_live_new(NULL, &live, &live_error));
    put_points_anywhere(live, 100);
    input_layer_make(&points, 20, 1, &input);
    for (int i = 0; i < 3; i++)
    {
        settings = settings_of(words[i]);
        ck_assert_int_eq(
            ogrjoin_live_join(live, settings, input.layer, &pairs, &live_error),
            OGRJOIN_ERR_ARG);
        ogrjoin_settings_free(settings);
    }
    settings = settings_of("op=dwithin max_distance=1000 max_pairs=10");
    ck_assert_int_eq(
        ogrjoin_live_join(live, settings, input.layer, &pairs, &live_error),
        OGRJOIN_ERR_TOO_MANY);
    ogrjoin_settings_free(settings);
    must(ogrjoin_live_join(live, NULL, input.layer, &pairs, &live_error));
    fails(ogrjoin_pairs_aggregate(pairs, "count", NULL, NULL, &results,
                                  &live_error),
          OGRJOIN_ERR_UNSUPPORTED, "kept index");
    ogrjoin_pairs_free(pairs);
    ogrjoin_layer_free(input.layer);
    ogrjoin_live_free(live);
}

/* --- failing allocations ----------------------------------------------------
 */

static const char *const join_words[] = {
    "op=nearest k=3", "op=dwithin max_distance=20 bearing=1", "op=disjoint"};

/* After every failure, joins give the pairs of the points before the batch. */
TEST(nth_allocation_of_a_batch_fails)
{
    struct ogrjoin_live *live = NULL;
    int64_t n_failed = 0;
    random_state = 11;
    must(ogrjoin_live_new(NULL, &live, &live_error));
    put_points_anywhere(live, 3000);
    for (int kind = 0; kind < N_BATCH_KINDS; kind++)
    {
        int status = OGRJOIN_ERR_NOMEM;
        batch.n = 0;
        for (int k = 0; k < (kind % 2 == 0 ? 300 : 2500); k++)
            put_random_change(&batch, &points, (enum batch_kind)kind,
                              pick(points.n_keys));
        for (int64_t n = 1; status != OGRJOIN_OK; n++)
        {
            (void)oj_alloc_fail_at(n);
            status = ogrjoin_live_apply(live, batch.n, batch.id, batch.x,
                                        batch.y, &live_error);
            (void)oj_alloc_fail_at(0);
            if (status == OGRJOIN_OK)
                break;
            ck_assert_int_eq(status, OGRJOIN_ERR_NOMEM);
            ck_assert_int_eq(ogrjoin_live_count(live), points.n);
            n_failed++;
            plain_layer_make(&points, &layer);
            input_layer_make(&points, 30, 1, &input);
            for (int i = 0; i < 3; i++)
                expect_fresh_answer(live, &layer, &input, join_words[i]);
            ogrjoin_layer_free(layer.layer);
            ogrjoin_layer_free(input.layer);
        }
        plain_apply(&points, &batch);
        ck_assert_int_eq(ogrjoin_live_count(live), points.n);
    }
    ck_assert_int_gt(n_failed, 30);
    ogrjoin_live_free(live);
}

TEST_LOOP(nth_allocation_of_a_join_fails, 0, 3)
{
    struct ogrjoin_settings *settings = settings_of(join_words[_i]);
    struct ogrjoin_live *live = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    int status = OGRJOIN_ERR_NOMEM;
    int64_t n = 0;
    random_state = 12;
    must(ogrjoin_set_number(settings, "threads", 1, &live_error));
    must(ogrjoin_live_new(settings, &live, &live_error));
    put_points_anywhere(live, 2000);
    input_layer_make(&points, 25, 1, &input);
    while (status != OGRJOIN_OK)
    {
        (void)oj_alloc_fail_at(++n);
        status =
            ogrjoin_live_join(live, settings, input.layer, &pairs, &live_error);
        (void)oj_alloc_fail_at(0);
        ck_assert(status == OGRJOIN_OK || status == OGRJOIN_ERR_NOMEM);
    }
    ck_assert_int_gt(n, 5);
    plain_layer_make(&points, &layer);
    expect_fresh_answer(live, &layer, &input, join_words[_i]);
    ogrjoin_pairs_free(pairs);
    ogrjoin_layer_free(layer.layer);
    ogrjoin_layer_free(input.layer);
    ogrjoin_live_free(live);
    ogrjoin_settings_free(settings);
}

/* --- files ------------------------------------------------------------------
 */

static char path[200];

static void name_file(void)
{
    snprintf(path, sizeof path, "/tmp/test_live_%ld.points", (long)getpid());
}

static long read_file(char *bytes, size_t size)
{
    FILE *file = fopen(path, "rb");
    long n = file != NULL ? (long)fread(bytes, 1, size, file) : -1;
    if (file != NULL)
        fclose(file);
    return n;
}

static void write_file(const char *bytes, long n)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert(fwrite(bytes, 1, (size_t)n, file) == (size_t)n);
    fclose(file);
}

TEST(saved_and_loaded)
{
    struct ogrjoin_live *live = NULL, *again = NULL;
    name_file();
    random_state = 21;
    must(ogrjoin_live_new(NULL, &live, &live_error));
    must(ogrjoin_live_save(live, path, &live_error));
    must(ogrjoin_live_load(path, NULL, &again, &live_error));
    ck_assert_int_eq(ogrjoin_live_count(again), 0);
    ogrjoin_live_free(again);
    put_points_anywhere(live, 5000);
    must(ogrjoin_live_save(live, path, &live_error));
    must(ogrjoin_live_load(path, NULL, &again, &live_error));
    ck_assert_int_eq(ogrjoin_live_count(again), 5000);
    plain_layer_make(&points, &layer);
    input_layer_make(&points, 100, 1, &input);
    for (int i = 0; i < 3; i++)
        expect_fresh_answer(again, &layer, &input, join_words[i]);
    ogrjoin_layer_free(layer.layer);
    ogrjoin_layer_free(input.layer);
    ogrjoin_live_free(again);
    ogrjoin_live_free(live);
    unlink(path);
}

/* Every changed byte and every truncation is detected. */
TEST(broken_files)
{
    static char good[4096], bad[4200];
    struct ogrjoin_live *live = NULL;
    long n;
    name_file();
    random_state = 22;
    must(ogrjoin_live_new(NULL, &live, &live_error));
    put_points_anywhere(live, 9);
    must(ogrjoin_live_save(live, path, &live_error));
    ogrjoin_live_free(live);
    live = NULL;
    n = read_file(good, sizeof good);
    ck_assert_int_eq(n, 32 + 9 * 24);
    for (long i = 0; i < n; i++)
    {
        memcpy(bad, good, (size_t)n);
        bad[i] = (char)(bad[i] ^ (1 << pick(8)));
        write_file(bad, n);
        ck_assert_int_eq(ogrjoin_live_load(path, NULL, &live, &live_error),
                         OGRJOIN_ERR_DATA);
        write_file(good, i);
        ck_assert_int_eq(ogrjoin_live_load(path, NULL, &live, &live_error),
                         OGRJOIN_ERR_DATA);
    }
    memcpy(bad, good, (size_t)n);
    write_file(bad, n + 8);
    ck_assert_int_eq(ogrjoin_live_load(path, NULL, &live, &live_error),
                     OGRJOIN_ERR_DATA);
    ck_assert_ptr_null(live);
    unlink(path);
    fails(ogrjoin_live_load(path, NULL, &live, &live_error), OGRJOIN_ERR_IO,
          "cannot be opened");
}

/* A FIFO would be waited for. */
TEST(what_is_no_file_is_not_read)
{
    struct ogrjoin_live *live = NULL;
    name_file();
    ck_assert(mkfifo(path, 0600) == 0);
    fails(ogrjoin_live_load(path, NULL, &live, &live_error), OGRJOIN_ERR_IO,
          "is no file: name one");
    unlink(path);
    fails(ogrjoin_live_load("/tmp", NULL, &live, &live_error), OGRJOIN_ERR_IO,
          "is no file: name one");
    ck_assert_ptr_null(live);
}

TEST(files_that_cannot_be_written)
{
    struct ogrjoin_live *live = NULL;
    struct stat of;
    must(ogrjoin_live_new(NULL, &live, &live_error));
    fails(ogrjoin_live_save(live, "/nonexistent/folder/x", &live_error),
          OGRJOIN_ERR_IO, "cannot be written");
    name_file();
    ck_assert(mkdir(path, 0700) == 0);
    fails(ogrjoin_live_save(live, path, &live_error), OGRJOIN_ERR_IO,
          "cannot be written");
    ck_assert(stat(path, &of) == 0 && S_ISDIR(of.st_mode));
    rmdir(path);
    ogrjoin_live_free(live);
}

/* --- as Arrow, as a layer ----------------------------------------------------
 */

TEST(as_a_layer)
{
    struct ogrjoin_live *live = NULL;
    struct ogrjoin_layer *all = NULL;
    random_state = 31;
    must(ogrjoin_live_new(NULL, &live, &live_error));
    put_points_anywhere(live, 700);
    must(ogrjoin_live_layer(live, &all, &live_error));
    ogrjoin_live_free(live);
    ck_assert_int_eq(ogrjoin_layer_count(all), 700);
    ogrjoin_layer_free(all);
}

/* --- readers and a writer ----------------------------------------------------
 */

/* All points move together in each batch. So a reader can check that its points
 * are of one instant. */
enum
{
    N_TOGETHER = 4000,
    N_INSTANTS = 60
};

struct readers
{
    struct ogrjoin_live *live;
    struct ogrjoin_settings *settings; /* settings of all joins */
    atomic_int is_done, n_joins;
};

static int64_t together_id[N_TOGETHER];
static double together_x[N_TOGETHER], together_y[N_TOGETHER];

static double place_at(int i, int instant)
{
    return (double)(i * 7 % N_TOGETHER) + 0.25 * instant;
}

static void apply_instant(struct ogrjoin_live *live, int instant)
{
    for (int i = 0; i < N_TOGETHER; i++)
    {
        together_id[i] = i;
        together_x[i] = place_at(i, instant);
        together_y[i] = (double)(i % 61);
    }
    apply(live, N_TOGETHER, together_id, together_x, together_y);
}

/* Joins a place far away with all points until r->is_done. Each distance gives
 * the x of its point, and so the instant of the point: all points of an answer
 * must be of one instant. */
static void *join_until_done(void *user)
{
    struct readers *r = user;
    static const double x = -100000.0, y = 0.0;
    struct ogrjoin_arrays a = {
        .size = sizeof a, .n_features = 1, .n_vertices = 1, .x = &x, .y = &y};
    struct ogrjoin_layer *place = NULL;
    struct ogrjoin_error err;
    ck_assert(ogrjoin_layer_from_arrays(&a, &place, &err) == OGRJOIN_OK);
    while (!atomic_load(&r->is_done))
    {
        struct ogrjoin_pairs *pairs = NULL;
        int instant = -1;
        ck_assert_msg(ogrjoin_live_join(r->live, r->settings, place, &pairs,
                                        &err) == OGRJOIN_OK,
                      "%s", err.message);
        ck_assert_int_eq(ogrjoin_pairs_count(pairs), N_TOGETHER);
        for (int64_t i = 0; i < N_TOGETHER; i++)
        {
            int64_t id = ogrjoin_pairs_right(pairs)[i];
            double d = ogrjoin_pairs_measure(pairs)[i];
            double dy = (double)(id % 61);
            double at = sqrt(d * d - dy * dy) + x;
            int k = (int)lround((at - place_at((int)id, 0)) * 4.0);
            instant = instant < 0 ? k : instant;
            if (k != instant)
                ck_abort_msg("two instants, %d and %d", instant, k);
        }
        ogrjoin_pairs_free(pairs);
        atomic_fetch_add(&r->n_joins, 1);
    }
    ogrjoin_layer_free(place);
    return NULL;
}

static const char *const reader_words[] = {
    "op=dwithin max_distance=1e6 threads=2", "op=nearest k=4000 threads=1",
    "op=dwithin max_distance=1e6 threads=1 bearing=1"};

TEST_LOOP(two_readers_and_a_writer, 0, 3)
{
    struct readers r = {.settings = settings_of(reader_words[_i])};
    pthread_t reader[2];
    int instant = 0;
    must(ogrjoin_live_new(NULL, &r.live, &live_error));
    apply_instant(r.live, 0);
    for (int i = 0; i < 2; i++)
        ck_assert(pthread_create(&reader[i], NULL, join_until_done, &r) == 0);
    while (instant < N_INSTANTS || atomic_load(&r.n_joins) < 20)
        apply_instant(r.live, ++instant);
    atomic_store(&r.is_done, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(reader[i], NULL);
    ck_assert_int_eq(ogrjoin_live_count(r.live), N_TOGETHER);
    ogrjoin_live_free(r.live);
    ogrjoin_settings_free(r.settings);
}

/* A batch does not wait for a search of near pairs that is running. The search
 * has its own index of all points. */
struct near_reader
{
    struct ogrjoin_live *live;
    atomic_int call; /* number of the running call of near pairs; 0: none */
    atomic_int is_done;
};

static void *find_near_until_done(void *user)
{
    struct near_reader *r = user;
    struct ogrjoin_settings *settings = settings_of("max_distance=1 threads=1");
    struct ogrjoin_error err;
    for (int call = 1; !atomic_load(&r->is_done); call++)
    {
        struct ogrjoin_pairs *pairs = NULL;
        atomic_store(&r->call, call);
        ck_assert_msg(ogrjoin_live_near_pairs(r->live, settings, &pairs,
                                              &err) == OGRJOIN_OK,
                      "%s", err.message);
        atomic_store(&r->call, 0);
        ogrjoin_pairs_free(pairs);
    }
    ogrjoin_settings_free(settings);
    return NULL;
}

TEST(batches_do_not_wait_for_near_pairs)
{
    enum
    {
        N = 3000,
        MANY = 5 /* one batch may end before the search begins */
    };
    static int64_t id[N];
    static double x[N], y[N];
    struct near_reader r = {0};
    pthread_t thread;
    time_t end = time(NULL) + 20;
    int call = 0, n_within = 0;
    must(ogrjoin_live_new(NULL, &r.live, &live_error));
    for (int i = 0; i < N; i++)
        id[i] = i;
    apply(r.live, N, id, x, y);
    ck_assert(pthread_create(&thread, NULL, find_near_until_done, &r) == 0);
    for (int i = 0; time(NULL) < end && n_within < MANY; i++)
    {
        double far_x = 1e5 + i, far_y = 0.0;
        int64_t far_id = N;
        int before = atomic_load(&r.call), after;
        apply(r.live, 1, &far_id, &far_x, &far_y);
        after = atomic_load(&r.call);
        if (before == 0 || before != after)
            continue;
        n_within = before == call ? n_within + 1 : 1;
        call = before;
    }
    atomic_store(&r.is_done, 1);
    pthread_join(thread, NULL);
    ck_assert_int_eq(n_within, MANY);
    ogrjoin_live_free(r.live);
}

int main(void)
{
    tests_open("live_api");
    return tests_run();
}
