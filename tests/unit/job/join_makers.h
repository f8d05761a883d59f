/** Join sides that tests make themselves and take from the cache. Include
 *  once. */
#ifndef JOIN_MAKERS_H
#define JOIN_MAKERS_H

#include "../run_tests.h"

#include "../../../driver/job/oj_join_side_cache.h"
#include "../../../flatten/arrays/oj_matches.h"
#include "../../../flatten/base/oj_alloc.h"

#include <cpl_conv.h>
#include <cpl_string.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

enum
{
    N_POINTS = 2000, /* points of a join side */
    N_INPUT = 300,
    N_THREADS = 8,
    N_KEYS = 4
};

static inline void rest_ms(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static inline double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- sides -------------------------------------------------------------- */

/* How a side is made, and counts of what happened to it. */
struct maker
{
    int seed;
    int n_points; /* number of points; 0: N_POINTS */
    int ms;       /* milliseconds that making takes */
    int is_held;  /* 1: making lasts at least until this is 0 */
    int keep; /* -1: the cache does not keep the side, and jobs do not share it
               */
    oj_status failure;
    /* cancel flag of the thread that makes the side, or NULL */
    const int *cancel;
    int n_calls; /* how often the side was made, counted atomically */
};

static inline int is_raised(const int *flag)
{
    return flag != NULL && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

static inline double coordinate(unsigned *state)
{
    *state = *state * 1103515245u + 12345u;
    return (double)(*state >> 8 & 0xffff) / 16.0;
}

static inline oj_status fill_points(struct oj_flat_buf *buf, int seed, int n,
                                    struct oj_error *err)
{
    unsigned state = (unsigned)seed * 2654435761u + 1u;
    for (int i = 0; i < n; i++)
    {
        double x = coordinate(&state), y = coordinate(&state);
        OJ_TRY(oj_flat_buf_add_point(buf, i, x, y, err));
    }
    return OJ_OK;
}

static inline oj_status make_side(void *user, struct oj_join_side *side,
                                  const int *cancel, int *keep,
                                  struct oj_error *err)
{
    struct maker *maker = user;
    const struct oj_relation relation = oj_relation_default();
    struct oj_options options = {0};
    int n = maker->n_points > 0 ? maker->n_points : N_POINTS;
    double end = now_s() + maker->ms / 1000.0;
    __atomic_fetch_add(&maker->n_calls, 1, __ATOMIC_RELAXED);
    while (now_s() < end || is_raised(&maker->is_held))
    {
        if (is_raised(cancel) || is_raised(maker->cancel))
            return oj_fail(err, OJ_ERR_CANCELLED, "interrupted");
        rest_ms(1);
    }
    OJ_TRY(fill_points(&side->buf, maker->seed, n, err));
    if (maker->failure != OJ_OK)
        return oj_fail(err, maker->failure, "as was asked");
    side->flat = oj_flat_buf_view(&side->buf);
    options.n_threads = 1;
    options.cancel = cancel;
    *keep = maker->keep >= 0;
    return oj_join_open(&side->flat, &relation, "cpu", &options, &side->engine,
                        err);
}

/* Makes the key of side i. `state` stands for the state of its files. */
static inline struct oj_join_key make_key(int i, int state)
{
    struct oj_join_key key;
    key.identity = CSLAddString(NULL, CPLSPrintf("side %d", i));
    key.state = CSLAddString(NULL, CPLSPrintf("state %d", state));
    return key;
}

static inline oj_status take(int key_number, int state, struct maker *maker,
                             const int *cancel, struct oj_join_use *use,
                             int *is_mine, struct oj_error *err)
{
    struct oj_join_key key = make_key(key_number, state);
    oj_status status = oj_join_cache_find_or_build(NULL, &key, make_side, maker,
                                                   cancel, use, is_mine, err);
    oj_join_key_free(&key);
    return status;
}

/* Returns 1 if the side had to be made. */
static inline int take_and_end(int key_number, int state)
{
    struct maker maker = {.seed = key_number};
    struct oj_join_use use = {0};
    int is_mine;
    ck_assert_int_eq(
        take(key_number, state, &maker, NULL, &use, &is_mine, NULL), OJ_OK);
    ck_assert_int_eq(maker.n_calls, is_mine);
    oj_join_use_release(&use);
    oj_join_use_release(&use);
    return is_mine;
}

/* Empties the cache. max is its maximum size as text, or NULL for the
 * default. */
static inline void empty_cache(const char *max)
{
    CPLSetConfigOption("OGRJOIN_CACHE_MAX", max);
    oj_join_cache_clear();
    ck_assert_int_eq(oj_join_cache_counts().n_entries, 0);
}

static inline int64_t n_entries(void)
{
    return oj_join_cache_counts().n_entries;
}

/* ---- answers ------------------------------------------------------------ */

struct answers_by_key
{
    struct oj_flat_buf input;
    struct oj_flat view;
    int32_t row[N_KEYS][N_INPUT];
    double distance[N_KEYS][N_INPUT];
};

static inline void make_answers(struct answers_by_key *a)
{
    MATCHES matches = {0};
    memset(a, 0, sizeof *a);
    ck_assert_int_eq(fill_points(&a->input, 77, N_INPUT, NULL), OJ_OK);
    a->view = oj_flat_buf_view(&a->input);
    for (int key = 0; key < N_KEYS; key++)
    {
        struct maker maker = {.seed = key};
        struct oj_join_side side = {0};
        struct oj_error err;
        int keep;
        ck_assert_int_eq(make_side(&maker, &side, NULL, &keep, &err), OJ_OK);
        ck_assert_int_eq(oj_join_batch(side.engine, &a->view, &matches, &err),
                         OJ_OK);
        for (int i = 0; i < N_INPUT; i++)
        {
            a->row[key][i] = matches.join_row[i];
            a->distance[key][i] = matches.measure[i];
        }
        oj_join_side_free(&side);
    }
}

static inline int same_answer(const struct answers_by_key *a, int key,
                              const struct oj_matches *matches)
{
    return memcmp(a->row[key], matches->join_row, sizeof a->row[key]) == 0 &&
           memcmp(a->distance[key], matches->measure,
                  sizeof a->distance[key]) == 0;
}

#endif
