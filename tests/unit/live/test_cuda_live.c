/* Kept indexes of points on one, two and four devices. After every batch their
 * counts and answers equal those of an index in host memory, and of a new
 * index. After a failed batch, counts and answers are as before this batch.
 * Kinds: property, memory. */
#include "../../../algs/live/live_search.h"
#include "../../../algs/live/oj_live.h"
#include "../../../flatten/base/oj_alloc.h"
#include "../../cuda_host/host_held.h"
#include "../run_device_tests.h"

#include "../random_numbers.h"
#include "live_trial.h"

#include <dlfcn.h>

static struct plain_points points;
static struct random_batch batch;
static struct plain_layer layer;
static struct input_layer input[2];

/* Returns the number of devices for loop i: 1, 2 or 4. Returns 0 if there are
 * fewer. */
static int devices_of_loop(int i)
{
    struct oj_error err;
    int n = 0, wanted = 1 << i;
    ck_assert(module->count(&n, &err) == OJ_OK);
    return wanted <= n ? wanted : 0;
}

/* --- the module beside the pages in host memory ----------------------------
 */

struct both_indexes
{
    struct oj_gpu_live *gpu;
    struct oj_live *cpu;
};

static void open_both(int n_devices, struct both_indexes *both)
{
    struct oj_options options = {.n_threads = 1,
                                 .gpus = (UINT64_C(1) << n_devices) - 1};
    struct oj_error err;
    expect(module->live_new(&options, &both->gpu, &err) == OJ_OK, "%s",
           err.message);
    ck_assert(oj_live_new(OJ_LIVE_AUTO, 1, &both->cpu, &err) == OJ_OK);
}

static void close_both(struct both_indexes *both)
{
    module->live_free(both->gpu);
    oj_live_free(both->cpu);
}

static void expect_equal_counts(const struct both_indexes *both)
{
    struct oj_gpu_live_counts a = module->live_count(both->gpu);
    struct oj_live_counts b = oj_live_count(both->cpu);
    expect(a.n == b.n && a.n_put == b.n_put && a.n_moved == b.n_moved &&
               a.n_removed == b.n_removed && a.n_unknown == b.n_unknown &&
               a.n_unjoinable == b.n_unjoinable &&
               a.n_superseded == b.n_superseded,
           "seed %llu: %lld %lld %lld %lld %lld %lld %lld, not %lld %lld %lld "
           "%lld %lld %lld %lld",
           (unsigned long long)seed, (long long)a.n, (long long)a.n_put,
           (long long)a.n_moved, (long long)a.n_removed, (long long)a.n_unknown,
           (long long)a.n_unjoinable, (long long)a.n_superseded, (long long)b.n,
           (long long)b.n_put, (long long)b.n_moved, (long long)b.n_removed,
           (long long)b.n_unknown, (long long)b.n_unjoinable,
           (long long)b.n_superseded);
}

/* Asserts that each point of the list is in the index once, at its place. */
static void expect_points_of_list(struct oj_gpu_live *gpu)
{
    static double x[MOST_KEYS], y[MOST_KEYS];
    static unsigned char is_there[MOST_KEYS];
    struct oj_error err;
    int64_t n = 0, *id = NULL;
    double *at_x = NULL, *at_y = NULL;
    expect(module->live_points(gpu, &n, &id, &at_x, &at_y, &err) == OJ_OK, "%s",
           err.message);
    expect(n == points.n, "seed %llu: %lld points, not %d",
           (unsigned long long)seed, (long long)n, points.n);
    memset(is_there, 0, sizeof is_there);
    for (int64_t i = 0; i < n; i++)
    {
        int64_t key = id[i] + 50000;
        if (key < 0 || key >= points.n_keys || id_of_key((int)key) != id[i])
        {
            /* ids of keys that are multiples of 3 */
            uint64_t inverse = UINT64_C(0xF1DE83E19937733D);
            key = (int64_t)((uint64_t)id[i] * inverse);
        }
        ck_assert(key >= 0 && key < points.n_keys && !is_there[key] &&
                  id_of_key((int)key) == id[i]);
        is_there[key] = 1;
        x[key] = at_x[i];
        y[key] = at_y[i];
    }
    for (int key = 0; key < points.n_keys; key++)
    {
        ck_assert(is_there[key] == points.is_there[key]);
        expect(!is_there[key] ||
                   (x[key] == points.x[key] && y[key] == points.y[key]),
               "seed %llu: key %d is elsewhere", (unsigned long long)seed, key);
    }
    oj_free(id);
    oj_free(at_x);
    oj_free(at_y);
}

static void apply_to_both(const struct both_indexes *both)
{
    struct oj_error err;
    oj_status status = module->live_apply(both->gpu, batch.n, batch.id, batch.x,
                                          batch.y, &err);
    expect(status == OJ_OK, "seed %llu: %s", (unsigned long long)seed,
           err.message);
    ck_assert(oj_live_apply(both->cpu, batch.n, batch.id, batch.x, batch.y,
                            &err) == OJ_OK);
    plain_apply(&points, &batch);
}

/* Makes a join of points by distance for which the module has a kernel. */
static void random_relation(struct oj_relation *r)
{
    *r = oj_relation_default();
    if (pick(2))
        oj_relation_make_dwithin(r);
    else
        r->k = one_in(4) ? 32 : 1 + pick(9);
    r->ties = one_in(3) ? OJ_TIES_ALL : OJ_TIES_FIRST;
    if (!oj_relation_is_nearest(r) || pick(2))
        r->max_distance = one_in(6) ? 0.0 : between(0, one_in(8) ? 900 : 40);
    if (one_in(4))
        r->min_distance = between(0, 9);
    r->exclude_self = one_in(5);
    r->unordered_pairs = one_in(5) ? 1 : one_in(5) ? -1 : 0;
    r->exclude_same_geometry = one_in(6);
}

static void random_rows(int n, double *x, double *y, int64_t *fid,
                        double *max_distance)
{
    for (int i = 0; i < n; i++)
    {
        pick_place(&points, &x[i], &y[i]);
        x[i] = one_in(20) ? NAN : x[i];
        fid[i] = id_of_key(pick(points.n_keys));
        max_distance[i] = one_in(10) ? NAN : one_in(9) ? -1.0 : between(0, 30);
    }
}

static void expect_equal_lists(const struct oj_gpu_live_pairs *a,
                               const struct live_pairs *b)
{
    expect(a->n == b->n && a->n_rows == b->n_rows,
           "seed %llu: %lld pairs, not %lld", (unsigned long long)seed,
           (long long)a->n, (long long)b->n);
    for (int64_t row = 0; row <= a->n_rows; row++)
        ck_assert(a->offset[row] == b->offset[row]);
    for (int64_t i = 0; i < a->n; i++)
        expect(a->id[i] == b->id[i] &&
                   bits_of(a->distance[i]) == bits_of(b->distance[i]),
               "seed %llu: pair %lld", (unsigned long long)seed, (long long)i);
}

static int64_t expect_equal_joins(const struct both_indexes *both)
{
    enum
    {
        MOST = 5000
    };
    static double x[MOST], y[MOST], max_distance[MOST];
    static int64_t fid[MOST];
    int n = one_in(12) ? MOST : 1 + pick(60);
    struct oj_relation relation;
    struct oj_flat flat = {.n_features = n, .x = x, .y = y, .fid = fid};
    struct oj_gpu_live_rows rows = {.n = n, .x = x, .y = y, .fid = fid};
    struct live_query query = {
        .relation = &relation, .input = &flat, .n_threads = 1};
    struct oj_gpu_live_pairs a = {0};
    struct live_pairs b = {0};
    struct oj_error err;
    int64_t n_pairs;
    random_relation(&relation);
    random_rows(n, x, y, fid, max_distance);
    if (one_in(4))
        flat.max_distance = rows.max_distance = max_distance;
    query.state = oj_live_acquire_state(both->cpu);
    ck_assert(live_search_pairs(&query, &b, &err) == OJ_OK);
    oj_live_release_state(both->cpu, query.state);
    expect(module->live_join(both->gpu, &relation, &rows, 0, &a, &err) == OJ_OK,
           "seed %llu: %s", (unsigned long long)seed, err.message);
    expect_equal_lists(&a, &b);
    n_pairs = b.n;
    oj_free(a.offset);
    oj_free(a.id);
    oj_free(a.distance);
    live_pairs_free(&b);
    return n_pairs;
}

TEST_LOOP(batches, 0, 3)
{
    int n_devices = devices_of_loop(_i);
    int64_t n_pairs = 0;
    struct both_indexes both;
    if (n_devices == 0)
        return;
    EACH_ROUND(10)
    {
        memset(&points, 0, sizeof points);
        points.n_keys = one_in(5) ? MOST_KEYS : 1 + pick(4000);
        open_both(n_devices, &both);
        for (int i = 0; i < 12; i++)
        {
            make_random_batch(&batch, &points,
                              (enum batch_kind)pick(N_BATCH_KINDS));
            apply_to_both(&both);
            expect_equal_counts(&both);
            expect_points_of_list(both.gpu);
            for (int k = 0; k < 4; k++)
                n_pairs += expect_equal_joins(&both);
        }
        close_both(&both);
    }
    ck_assert_int_gt(n_pairs, 1000);
}

/* Many batches of few changes. Pages overflow and are divided, and the index is
 * seldom rebuilt. */
TEST(pages_are_used_again)
{
    EACH_ROUND(2)
    {
        struct both_indexes both;
        int64_t n_bytes = 0, n_pages, most_pages = 0;
        memset(&points, 0, sizeof points);
        points.n_keys = 20000;
        open_both(1, &both);
        batch.n = 0;
        for (int key = 0; key < points.n_keys; key++)
            put_random_change(&batch, &points, BATCH_ANYWHERE, key);
        apply_to_both(&both);
        n_pages = module->live_count(both.gpu).n_pages;
        for (int i = 0; i < 200; i++)
        {
            static const enum batch_kind kinds[] = {
                BATCH_ANYWHERE,   BATCH_ANYWHERE, BATCH_SMALL_STEPS,
                BATCH_ON_BORDERS, BATCH_MIXED,    BATCH_ONE_PLACE};
            batch.n = 0;
            for (int k = 0; k < 700; k++)
                put_random_change(&batch, &points, kinds[pick(6)],
                                  pick(points.n_keys));
            apply_to_both(&both);
            if (module->live_count(both.gpu).n_pages > most_pages)
                most_pages = module->live_count(both.gpu).n_pages;
            if (i % 20 == 0)
            {
                expect_points_of_list(both.gpu);
                (void)expect_equal_joins(&both);
            }
            if (i == 100)
                n_bytes = module->live_count(both.gpu).n_bytes;
        }
        expect_equal_counts(&both);
        ck_assert_int_gt(most_pages, n_pages + 50);
        expect(module->live_count(both.gpu).n_bytes <= n_bytes + n_bytes / 2,
               "%lld bytes, then %lld", (long long)n_bytes,
               (long long)module->live_count(both.gpu).n_bytes);
        ck_assert_int_le(module->live_count(both.gpu).n_rebuilt, 4);
        close_both(&both);
    }
}

/* Inserts points by batches into an index that may use most_bytes on each
 * device, and joins with it. Returns the status of the first failure. */
static oj_status fill_within(int n_devices, int64_t most_bytes)
{
    struct oj_options options = {.n_threads = 1,
                                 .gpus = (UINT64_C(1) << n_devices) - 1,
                                 .gpu_memory = most_bytes};
    struct both_indexes both;
    struct oj_error err;
    int64_t n, *id = NULL;
    double *x = NULL, *y = NULL;
    oj_status status;
    memset(&points, 0, sizeof points);
    points.n_keys = 30000;
    random_state = 9;
    expect(module->live_new(&options, &both.gpu, &err) == OJ_OK, "%s",
           err.message);
    ck_assert(oj_live_new(OJ_LIVE_AUTO, 1, &both.cpu, &err) == OJ_OK);
    status = OJ_OK;
    for (int first = 0; first < points.n_keys && status == OJ_OK; first += 1000)
    {
        batch.n = 0;
        for (int key = first; key < first + 1000 && key < points.n_keys; key++)
            put_random_change(&batch, &points, BATCH_ANYWHERE, key);
        status = module->live_apply(both.gpu, batch.n, batch.id, batch.x,
                                    batch.y, &err);
        if (status != OJ_OK)
            break;
        ck_assert(oj_live_apply(both.cpu, batch.n, batch.id, batch.x, batch.y,
                                &err) == OJ_OK);
        plain_apply(&points, &batch);
    }
    if (status == OJ_OK) /* reading takes memory, too */
        status = module->live_points(both.gpu, &n, &id, &x, &y, &err);
    oj_free(id);
    oj_free(x);
    oj_free(y);
    if (status == OJ_OK)
    {
        expect_points_of_list(both.gpu);
        for (int i = 0; i < 10; i++)
            (void)expect_equal_joins(&both);
    }
    close_both(&both);
    return status;
}

/* An index needs 1.5 times the memory of one device. Two devices hold it and
 * answer rightly. */
TEST(more_than_one_device_holds)
{
    int64_t bytes = 1500000;
    if (devices_of_loop(1) == 0)
        return;
    while (fill_within(2, bytes) != OJ_OK)
        bytes += bytes / 32;
    ck_assert_int_eq(fill_within(1, bytes + bytes / 2), OJ_ERR_NOMEM);
}

/* Pairs of a row are in the order of their ids, however many they are and
 * however much their ids differ: warps sort rows of up to 1,024 pairs, by keys
 * of 32 or 64 bits where ids differ by little. With any_order a row has these
 * pairs in some order. */
static void expect_sorted_rows(int64_t apart, int are_boxes, int any_order)
{
    enum
    {
        N = 1300,
        N_ROWS = 40
    };
    static int64_t id[N];
    static double x[N], y[N], max_distance[N_ROWS];
    static struct oj_box box[N_ROWS];
    int64_t first = -(N / 2) * apart;
    struct oj_options options = {.n_threads = 1, .gpus = 1};
    struct oj_relation relation = oj_relation_default();
    struct oj_gpu_live_rows rows = {.n = N_ROWS};
    struct oj_gpu_live_pairs pairs = {0};
    struct oj_gpu_live *gpu;
    struct oj_error err;
    relation.op = are_boxes ? OJ_OP_BBOX : OJ_OP_DWITHIN;
    relation.any_order = any_order;
    for (int i = 0; i < N; i++)
    {
        id[i] = first + i * 7 % N * apart;
        x[i] = i;
    }
    for (int i = 0; i < N_ROWS; i++)
    {
        /* 1 to 5, and about 32, 64, .. 1024 */
        int n = i < 5 ? i + 1 : (32 << (i - 5) / 5 % 6) + (i - 5) % 5 - 2;
        max_distance[i] = n - 1;
        box[i] = (struct oj_box){0.0, 0.0, n - 1, 0.0};
    }
    rows.box = are_boxes ? box : NULL;
    rows.x = rows.y = are_boxes ? NULL : y;
    rows.max_distance = are_boxes ? NULL : max_distance;
    ck_assert(module->live_new(&options, &gpu, &err) == OJ_OK);
    ck_assert(module->live_apply(gpu, N, id, x, y, &err) == OJ_OK);
    expect(module->live_join(gpu, &relation, &rows, 0, &pairs, &err) == OJ_OK,
           "%s", err.message);
    for (int i = 0; i < N_ROWS; i++)
    {
        static int has[N];
        int64_t at = pairs.offset[i], n = (int64_t)max_distance[i] + 1;
        memset(has, 0, sizeof has);
        ck_assert_int_eq(pairs.offset[i + 1] - at, n);
        for (int64_t k = at; k < at + n; k++)
        {
            /* 743 * 7 = 1 modulo N */
            int64_t of = (pairs.id[k] - first) / apart * 743 % N;
            ck_assert(of < n && !has[of] && id[of] == pairs.id[k]);
            has[of] = 1;
            ck_assert(any_order || k == at || pairs.id[k - 1] < pairs.id[k]);
            ck_assert(are_boxes || pairs.distance[k] == (double)of);
        }
    }
    oj_free(pairs.offset);
    oj_free(pairs.id);
    oj_free(pairs.distance);
    module->live_free(gpu);
}

TEST(rows_of_all_lengths)
{
    static const int64_t apart[] = {1, INT64_C(1) << 18, INT64_C(1) << 30,
                                    INT64_C(1) << 52};
    for (int i = 0; i < 4; i++)
    {
        for (int way = 0; way < 4; way++)
            expect_sorted_rows(apart[i], way % 2, way / 2);
    }
}

/* A row has more pairs than a warp sorts by comparisons. */
TEST(long_rows)
{
    struct both_indexes both;
    memset(&points, 0, sizeof points);
    points.n_keys = 9000;
    random_state = 3;
    open_both(devices_of_loop(1) == 2 ? 2 : 1, &both);
    batch.n = 0;
    for (int key = 0; key < points.n_keys; key++)
        put_random_change(&batch, &points,
                          key % 3 == 0 ? BATCH_ONE_PLACE : BATCH_ANYWHERE, key);
    apply_to_both(&both);
    for (int op = 0; op < 2; op++)
    {
        static const double x[] = {17.25, 0, 450}, y[] = {-3.5, 0, 400};
        struct oj_relation relation = oj_relation_default();
        struct oj_flat flat = {.n_features = 3, .x = x, .y = y};
        struct oj_gpu_live_rows rows = {.n = 3, .x = x, .y = y};
        struct live_query query = {
            .relation = &relation, .input = &flat, .n_threads = 1};
        struct oj_gpu_live_pairs a = {0};
        struct live_pairs b = {0};
        struct oj_error err;
        if (op == 0)
            oj_relation_make_dwithin(&relation);
        relation.max_distance = 400;
        relation.ties = OJ_TIES_ALL;
        query.state = oj_live_acquire_state(both.cpu);
        ck_assert(live_search_pairs(&query, &b, &err) == OJ_OK);
        oj_live_release_state(both.cpu, query.state);
        ck_assert_int_gt(b.offset[1], 2000);
        expect(module->live_join(both.gpu, &relation, &rows, 0, &a, &err) ==
                   OJ_OK,
               "%s", err.message);
        expect_equal_lists(&a, &b);
        oj_free(a.offset);
        oj_free(a.id);
        oj_free(a.distance);
        live_pairs_free(&b);
    }
    close_both(&both);
}

/* --- the library -----------------------------------------------------------
 */

static const char *const of_points[] = {
    "op=nearest",
    "op=nearest k=3 ties=all",
    "op=nearest k=7 max_distance=9",
    "op=nearest k=40 exclude_self=1",
    "op=nearest k=2 min_distance=3",
    "op=nearest k=2 bearing=1",
    "op=dwithin max_distance=12.5",
    "op=dwithin max_distance=30 min_distance=20 unordered=1",
    "op=dwithin max_distance=20 pick=nearest",
    "op=equals",
    "op=intersects",
    "op=bbox",
    "op=coveredby exclude_self=1",
    "op=within exclude_same_geometry=1",
    "op=disjoint"};

static const char *const of_shapes[] = {"op=intersects",
                                        "op=contains",
                                        "op=bbox",
                                        "op=bbox exclude_self=1",
                                        "op=dwithin max_distance=7",
                                        "op=nearest k=4 ties=all"};

#define N_OF_POINTS ((int)(sizeof of_points / sizeof *of_points))
#define N_OF_SHAPES ((int)(sizeof of_shapes / sizeof *of_shapes))

static int64_t expect_fresh_answers(struct ogrjoin_live *live, int n_joins)
{
    int64_t n = 0;
    plain_layer_make(&points, &layer);
    for (int i = 0; i < 2; i++)
        input_layer_make(&points, 1 + pick(one_in(3) ? MOST_INPUTS - 1 : 40),
                         i == 0, &input[i]);
    for (int i = 0; i < n_joins; i++)
    {
        int is_shape = one_in(3);
        n += expect_fresh_answer(live, &layer, &input[is_shape],
                                 is_shape ? of_shapes[pick(N_OF_SHAPES)]
                                          : of_points[pick(N_OF_POINTS)]);
    }
    ogrjoin_layer_free(layer.layer);
    for (int i = 0; i < 2; i++)
        ogrjoin_layer_free(input[i].layer);
    return n;
}

/* Joins that the devices support, and other joins, for which the points are
 * copied to host memory. */
TEST_LOOP(joins, 0, 3)
{
    static const char *const words[] = {"backend=cuda gpus=1",
                                        "backend=cuda gpus=3 tree=quadtree",
                                        "backend=cuda gpus=15"};
    int64_t n_pairs = 0;
    if (devices_of_loop(_i) == 0)
        return;
    EACH_ROUND(6)
    {
        struct ogrjoin_settings *settings = settings_of(words[_i]);
        struct ogrjoin_live *live = NULL;
        memset(&points, 0, sizeof points);
        points.n_keys = one_in(3) ? 1 + pick(40) : 1 + pick(6000);
        must(ogrjoin_live_new(settings, &live, &live_error));
        for (int i = 0; i < 5; i++)
        {
            make_random_batch(&batch, &points,
                              i == 0 ? BATCH_ANYWHERE
                                     : (enum batch_kind)pick(N_BATCH_KINDS));
            must(ogrjoin_live_apply(live, batch.n, batch.id, batch.x, batch.y,
                                    &live_error));
            plain_apply(&points, &batch);
            ck_assert_int_eq(ogrjoin_live_count(live), points.n);
            n_pairs += expect_fresh_answers(live, 8);
        }
        ogrjoin_live_free(live);
        ogrjoin_settings_free(settings);
    }
    ck_assert_int_gt(n_pairs, 1000);
}

TEST(settings)
{
    static const int64_t id[] = {4, 5};
    static const double x[] = {1, 2}, y[] = {0, 0};
    struct ogrjoin_live_counts counts = {.size = sizeof counts};
    struct ogrjoin_settings *s = settings_of("backend=cuda tree=kdtree");
    struct ogrjoin_live *live = NULL;
    struct ogrjoin_pairs *pairs = NULL;
    ck_assert(ogrjoin_live_new(s, &live, &live_error) ==
                  OGRJOIN_ERR_UNSUPPORTED &&
              strstr(live_error.message, "kdtree is not available") != NULL);
    ogrjoin_settings_free(s);
    s = settings_of("backend=cuda gpus=1");
    must(ogrjoin_live_new(s, &live, &live_error));
    ogrjoin_settings_free(s);
    must(ogrjoin_live_apply(live, 2, id, x, y, &live_error));
    must(ogrjoin_live_counts(live, &counts, &live_error));
    ck_assert_int_eq(counts.n, 2);
    ck_assert_int_eq(counts.n_batches, 1);
    ck_assert(strstr(counts.tree, "quadtree") != NULL && counts.n_bytes > 0);
    s = settings_of("max_distance=1");
    must(ogrjoin_live_near_pairs(live, s, &pairs, &live_error));
    ck_assert_int_eq(ogrjoin_pairs_count(pairs), 1);
    ogrjoin_pairs_free(pairs);
    ogrjoin_settings_free(s);
    s = settings_of("op=dwithin max_distance=1000 max_pairs=10");
    memset(&points, 0, sizeof points);
    points.n_keys = 50;
    random_state = 5;
    make_random_batch(&batch, &points, BATCH_ALL_GONE);
    for (int key = 0; key < points.n_keys; key++)
        put_random_change(&batch, &points, BATCH_ANYWHERE, key);
    must(ogrjoin_live_apply(live, batch.n, batch.id, batch.x, batch.y,
                            &live_error));
    plain_apply(&points, &batch);
    input_layer_make(&points, 20, 1, &input[0]);
    ck_assert_int_eq(
        ogrjoin_live_join(live, s, input[0].layer, &pairs, &live_error),
        OGRJOIN_ERR_TOO_MANY);
    ogrjoin_settings_free(s);
    ogrjoin_layer_free(input[0].layer);
    ogrjoin_live_free(live);
}

/* --- failing allocations ----------------------------------------------------
 */

static void (*fail_at)(int64_t, int64_t);
static int64_t (*module_fail_at)(int64_t);

/* Finds the functions of the emulated device. Returns 0 if the module is for
 * real devices. */
static int find_emulator(void)
{
    const char *path = getenv("OGRJOIN_CUDA_MODULE");
    void *library = path != NULL ? dlopen(path, RTLD_NOW) : NULL;
    if (library == NULL)
        return 0;
    *(void **)&fail_at = dlsym(library, "oj_host_fail_at");
    *(void **)&module_fail_at = dlsym(library, "oj_alloc_fail_at");
    return fail_at != NULL && module_fail_at != NULL;
}

/* Each allocation of device memory fails in turn, alone and with all later
 * ones. A batch is applied completely or not at all. */
static void expect_whole_batches(int n_devices, enum batch_kind kind)
{
    int n_failed = 0;
    for (int64_t at = 1;; at++)
    {
        struct both_indexes both;
        struct oj_error err;
        oj_status status;
        memset(&points, 0, sizeof points);
        points.n_keys = 1500;
        random_state = 11;
        open_both(n_devices, &both);
        batch.n = 0;
        for (int key = 0; key < points.n_keys; key += 2)
            put_random_change(&batch, &points, BATCH_ANYWHERE, key);
        apply_to_both(&both);
        batch.n = 0;
        for (int i = 0; i < 300; i++)
            put_random_change(&batch, &points, kind, pick(points.n_keys));
        fail_at(at, INT64_MAX / 2);
        status = module->live_apply(both.gpu, batch.n, batch.id, batch.x,
                                    batch.y, &err);
        fail_at(0, 0);
        if (status == OJ_OK)
            plain_apply(&points, &batch);
        else
            ck_assert_msg(status == OJ_ERR_NOMEM, "%s", err.message);
        expect_points_of_list(both.gpu);
        if (status != OJ_OK)
        {
            n_failed++;
            apply_to_both(&both); /* now the batch succeeds */
            expect_points_of_list(both.gpu);
            (void)expect_equal_joins(&both);
        }
        close_both(&both);
        if (status == OJ_OK)
            break;
    }
    ck_assert_int_gt(n_failed, 6);
}

TEST(nth_taking_fails)
{
    static const enum batch_kind kinds[] = {BATCH_ANYWHERE, BATCH_ONE_PLACE,
                                            BATCH_MIXED};
    if (!find_emulator())
        return;
    for (int i = 0; i < 3; i++)
        expect_whole_batches(1, kinds[i]);
    if (devices_of_loop(1) == 2)
        expect_whole_batches(2, BATCH_ANYWHERE);
}

int main(void)
{
    if (!device_tests_open("cuda_live"))
        return DEVICE_TESTS_SKIPPED;
    return tests_run();
}
