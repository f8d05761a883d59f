/* Kept indexes of points. After every batch the tree is consistent, and every
 * join has the pairs of a new index.
 * Kinds: property, memory. */
#include "../../../flatten/base/oj_alloc.h"
#include "../run_tests.h"

#include "../random_numbers.h"
#include "live_structure.h"
#include "live_trial.h"

#include <unistd.h>

static struct plain_points points;
static struct random_batch batch;
static struct plain_layer layer;
static struct input_layer input[2];

/* --- the tree --------------------------------------------------------------
 */

/* Applies b to live and to the list, and checks the tree. Returns what
 * check_structure() has counted. */
static struct structure apply_and_check(struct oj_live *live,
                                        struct plain_points *p,
                                        const struct random_batch *b)
{
    struct oj_error err;
    struct structure s;
    oj_status status = oj_live_apply(live, b->n, b->id, b->x, b->y, &err);
    expect(status == OJ_OK, "seed %llu: %s", (unsigned long long)seed,
           err.message);
    plain_apply(p, b);
    s = check_structure(live);
    expect(s.n_points == p->n, "seed %llu: %lld points, not %d",
           (unsigned long long)seed, (long long)s.n_points, p->n);
    for (int key = 0; key < p->n_keys; key++)
    {
        int64_t at = live_ids_find(&live->ids, id_of_key(key));
        const struct live_entry *e;
        const struct live_block *block;
        expect((at >= 0) == p->is_there[key], "seed %llu: key %d",
               (unsigned long long)seed, key);
        if (at < 0)
            continue;
        e = &live->ids.entry[at];
        block = live->state->page[e->page].block;
        expect(block->x[e->slot] == p->x[key] && block->y[e->slot] == p->y[key],
               "seed %llu: key %d is elsewhere", (unsigned long long)seed, key);
    }
    return s;
}

TEST_LOOP(batches, OJ_LIVE_AUTO, OJ_LIVE_KDTREE + 1)
{
    EACH_ROUND(60)
    {
        struct oj_live *live = NULL;
        memset(&points, 0, sizeof points);
        points.n_keys = one_in(5) ? MOST_KEYS : 1 + pick(4000);
        ck_assert(oj_live_new((enum oj_live_tree)_i, 1 + pick(3), &live,
                              NULL) == OJ_OK);
        for (int i = 0; i < 12; i++)
        {
            make_random_batch(&batch, &points,
                              (enum batch_kind)pick(N_BATCH_KINDS));
            (void)apply_and_check(live, &points, &batch);
        }
        oj_live_free(live);
    }
}

/* Many batches of few changes. Pages are divided, merged and reused, and the
 * index is hardly ever rebuilt. */
TEST_LOOP(pages_are_used_again, OJ_LIVE_QUADTREE, OJ_LIVE_KDTREE + 1)
{
    EACH_ROUND(3)
    {
        struct oj_live *live = NULL;
        int64_t n_bytes = 0;
        memset(&points, 0, sizeof points);
        points.n_keys = 20000;
        ck_assert(oj_live_new((enum oj_live_tree)_i, 1, &live, NULL) == OJ_OK);
        batch.n = 0;
        for (int key = 0; key < points.n_keys; key++)
            put_random_change(&batch, &points, BATCH_ANYWHERE, key);
        (void)apply_and_check(live, &points, &batch);
        for (int i = 0; i < 300; i++)
        {
            static const enum batch_kind kinds[] = {
                BATCH_ANYWHERE, BATCH_ANYWHERE, BATCH_SMALL_STEPS,
                BATCH_ON_BORDERS, BATCH_MIXED};
            batch.n = 0;
            for (int k = 0; k < 700; k++)
                put_random_change(&batch, &points, kinds[pick(5)],
                                  pick(points.n_keys));
            if (i % 50 == 0)
                (void)apply_and_check(live, &points, &batch);
            else
            {
                ck_assert(oj_live_apply(live, batch.n, batch.id, batch.x,
                                        batch.y, NULL) == OJ_OK);
                plain_apply(&points, &batch);
            }
            if (i == 100)
                n_bytes = oj_live_count(live).n_bytes;
        }
        expect(oj_live_count(live).n_bytes <= n_bytes + n_bytes / 2,
               "%lld bytes, then %lld", (long long)n_bytes,
               (long long)oj_live_count(live).n_bytes);
        ck_assert_int_eq(oj_live_count(live).n_rebuilt, 1);
        oj_live_free(live);
    }
}

/* Applies a batch that moves n of the points anywhere. */
static int64_t bytes_after_jumps(struct oj_live *live, int n)
{
    batch.n = 0;
    for (int key = 0; key < n; key++)
        put_random_change(&batch, &points, BATCH_ANYWHERE, key);
    (void)apply_and_check(live, &points, &batch);
    return oj_live_count(live).n_bytes;
}

/* The points of a new tree are gathered in memory that is kept while batches
 * rebuild the tree one after the other: not after the first of them, and not
 * after a batch of few changes. */
TEST(rebuilds_gather_points_in_kept_memory)
{
    struct oj_live *live = NULL;
    int64_t kept, first, few;
    memset(&points, 0, sizeof points);
    points.n_keys = 20000;
    kept = 2 * points.n_keys * (int64_t)sizeof *live->gathered;
    ck_assert(oj_live_new(OJ_LIVE_QUADTREE, 2, &live, NULL) == OJ_OK);
    first = bytes_after_jumps(live, points.n_keys);
    ck_assert_int_eq(live->cap_gathered, 0);
    for (int i = 0; i < 3; i++)
    {
        const struct live_point *gathered = live->gathered;
        ck_assert_int_ge(bytes_after_jumps(live, points.n_keys),
                         kept + first / 2);
        ck_assert(live->gathered != NULL);
        ck_assert(i == 0 || live->gathered == gathered);
    }
    few = bytes_after_jumps(live, 100);
    ck_assert_int_eq(live->cap_gathered, 0);
    ck_assert_int_eq(oj_live_count(live).n_rebuilt, 4);
    ck_assert_int_ge(bytes_after_jumps(live, points.n_keys), few);
    ck_assert_int_eq(live->cap_gathered, 0);
    oj_live_free(live);
}

/* Cells of points on a line are not divided along the line. A point that moves
 * far from the line is found in its new place, whether it stays in its page or
 * not. */
TEST_LOOP(leaving_a_line, OJ_LIVE_QUADTREE, OJ_LIVE_KDTREE + 1)
{
    struct oj_live *live = NULL;
    memset(&points, 0, sizeof points);
    points.n_keys = 1600;
    ck_assert(oj_live_new((enum oj_live_tree)_i, 1, &live, NULL) == OJ_OK);
    batch.n = 0;
    for (int key = 0; key < points.n_keys; key++)
        batch_put(&batch, key, key < 800 ? 0.0 : 20.0, key % 800);
    (void)apply_and_check(live, &points, &batch);
    for (int i = 0; i < 20; i++)
    {
        int key = 800 + 37 * i;
        batch.n = 0;
        batch_put(&batch, key, i % 2 == 0 ? -100.0 - i : 5000.0, key % 800);
        (void)apply_and_check(live, &points, &batch);
    }
    oj_live_free(live);
}

/* Too many ids are refused before memory for them is allocated. */
TEST(more_ids_than_can_be_numbered)
{
    struct live_ids ids = {0};
    struct oj_error err;
    ck_assert_int_eq(live_ids_reserve(&ids, 1, INT64_C(3) << 30, &err),
                     OJ_ERR_LIMIT);
    ck_assert_int_eq(
        live_ids_reserve(&ids, 1, LIVE_MOST_IDS + INT64_C(1), &err),
        OJ_ERR_LIMIT);
    ck_assert_int_eq(ids.size, 0);
}

/* --- joins -----------------------------------------------------------------
 */

static const char *const of_points[] = {
    "op=nearest",
    "op=nearest k=3 ties=all",
    "op=nearest k=7 max_distance=9",
    "op=nearest k=40 exclude_self=1",
    "op=nearest k=2 min_distance=3",
    "op=nearest k=2 unordered=1",
    "op=nearest k=2 exclude_same_geometry=1",
    "op=nearest k=2 bearing=1",
    "op=nearest metric=sphere max_distance=1e5",
    "op=dwithin max_distance=12.5",
    "op=dwithin max_distance=0",
    "op=dwithin max_distance=30 min_distance=20 unordered=1",
    "op=dwithin max_distance=20 pick=nearest",
    "op=equals",
    "op=intersects",
    "op=within",
    "op=coveredby exclude_self=1",
    "op=disjoint"};

static const char *const of_shapes[] = {
    "op=intersects",
    "op=contains",
    "op=covers",
    "op=within",
    "op=touches",
    "op=bbox",
    "op=equals",
    "op=crosses",
    "op=disjoint",
    "relate=0FFFFFFF2",
    "op=dwithin max_distance=7",
    "op=nearest",
    "op=nearest k=4 ties=all",
    "op=nearest k=3 exclude_self=1 max_distance=40",
    "op=nearest k=3 distance_to=boundary",
    "op=dwithin max_distance=100 distance=hausdorff"};

#define N_OF_POINTS ((int)(sizeof of_points / sizeof *of_points))
#define N_OF_SHAPES ((int)(sizeof of_shapes / sizeof *of_shapes))

static void apply_to_both(struct ogrjoin_live *live, struct plain_points *p,
                          const struct random_batch *b)
{
    must(ogrjoin_live_apply(live, b->n, b->id, b->x, b->y, &live_error));
    plain_apply(p, b);
    expect(ogrjoin_live_count(live) == p->n, "seed %llu: %lld points, not %d",
           (unsigned long long)seed, (long long)ogrjoin_live_count(live), p->n);
}

/* Compares some joins with the current points. Returns the number of pairs. */
static int64_t expect_fresh_answers(struct ogrjoin_live *live, int n_joins)
{
    int64_t n = 0;
    plain_layer_make(&points, &layer);
    for (int i = 0; i < 2; i++)
        input_layer_make(&points, 1 + pick(one_in(3) ? MOST_INPUTS - 1 : 40),
                         i == 0, &input[i]);
    for (int i = 0; i < n_joins; i++)
    {
        int is_shape = pick(2);
        n += expect_fresh_answer(live, &layer, &input[is_shape],
                                 is_shape ? of_shapes[pick(N_OF_SHAPES)]
                                          : of_points[pick(N_OF_POINTS)]);
    }
    ogrjoin_layer_free(layer.layer);
    for (int i = 0; i < 2; i++)
        ogrjoin_layer_free(input[i].layer);
    return n;
}

static const char *const trees[] = {"tree=auto", "tree=quadtree",
                                    "tree=kdtree"};

TEST_LOOP(joins, 0, 3)
{
    int64_t n_pairs = 0;
    EACH_ROUND(40)
    {
        struct ogrjoin_settings *settings = settings_of(trees[_i]);
        struct ogrjoin_live *live = NULL;
        memset(&points, 0, sizeof points);
        points.n_keys = one_in(3) ? 1 + pick(40) : 1 + pick(8000);
        must(ogrjoin_live_new(settings, &live, &live_error));
        for (int i = 0; i < 6; i++)
        {
            make_random_batch(&batch, &points,
                              i == 0 ? BATCH_ANYWHERE
                                     : (enum batch_kind)pick(N_BATCH_KINDS));
            apply_to_both(live, &points, &batch);
            n_pairs += expect_fresh_answers(live, 6);
        }
        ogrjoin_live_free(live);
        ogrjoin_settings_free(settings);
    }
    ck_assert_int_gt(n_pairs, 10000);
}

int main(void)
{
    tests_open("live");
    return tests_run();
}
