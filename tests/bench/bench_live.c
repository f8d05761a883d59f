/* The kept index of points: what building, batches and queries cost, with the
 * points of a generated city (nycgen.h).
 *
 *   oj_bench_live [--option value]..
 *     --n N         points (10,000,000)
 *     --tree NAME   auto
 *     --threads N   1
 *     --batches N   batches of 1 % before the second round of queries (1,000)
 *     --queries N   points that ask for what is near them (200,000)
 *     --step FT     small steps (30)
 *
 * Prints a line "LIVE .." for building, for batches in which 1 %, 10 % and all
 * of the points jump anywhere or make small steps, and for queries of a fresh
 * index and of one after many batches: the least processor seconds of three
 * runs, changes or queries a second, and what a batch costs in parts of
 * building.  Seconds are those of all threads. */
#include "nycgen.h"

#include "../../algs/live/live_search.h"
#include "../../algs/live/oj_live.h"
#include "../../flatten/base/oj_alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REPEAT 3

struct bench
{
    int64_t n, n_batches, n_queries;
    int n_threads;
    enum oj_live_tree tree;
    double step;
    struct nyc_city city;
    int32_t *blocks;
    int32_t n_blocks;
    int64_t next_place; /* point of the city that comes next */
    int64_t *id;        /* [n] of a batch, as the two that follow */
    double *x, *y;
    double *at_x, *at_y; /* [n] where each id is */
    struct oj_live *live;
    double build_s;
};

static void stop(const char *why)
{
    fprintf(stderr, "oj_bench_live: %s\n", why);
    exit(1);
}

static void must(oj_status status, const struct oj_error *err)
{
    if (status != OJ_OK)
        stop(err->message);
}

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void next_place(struct bench *b, double *x, double *y)
{
    int32_t xy[2];
    nyc_point(&b->city, b->blocks, b->n_blocks, (uint64_t)b->next_place++,
              &xy[0], &xy[1]);
    *x = xy[0] * (1.0 / NYC_ONE);
    *y = xy[1] * (1.0 / NYC_ONE);
}

/* Different for every i < 2^32, in no order. */
static uint64_t mix(uint64_t i)
{
    i = (i ^ i >> 31) * UINT64_C(0x7FB5D329728EA185);
    i = (i ^ i >> 27) * UINT64_C(0x81DADEF4BC2DD44D);
    return i ^ i >> 33;
}

/* Applies a batch, and returns the processor seconds of that alone. */
static double apply(struct bench *b, int64_t n)
{
    struct oj_error err;
    double s = processor_seconds();
    must(oj_live_apply(b->live, n, b->id, b->x, b->y, &err), &err);
    s = processor_seconds() - s;
    for (int64_t i = 0; i < n; i++)
    {
        b->at_x[b->id[i]] = b->x[i];
        b->at_y[b->id[i]] = b->y[i];
    }
    return s;
}

/* --- building --------------------------------------------------------------
 */

static void build(struct bench *b)
{
    struct oj_error err;
    struct oj_live_counts counts;
    char tree[200];
    for (int64_t i = 0; i < b->n; i++)
    {
        b->id[i] = i;
        next_place(b, &b->x[i], &b->y[i]);
    }
    for (int r = 0; r < REPEAT; r++)
    {
        double start;
        oj_live_free(b->live);
        must(oj_live_new(b->tree, b->n_threads, &b->live, &err), &err);
        start = processor_seconds();
        must(oj_live_apply(b->live, b->n, b->id, b->x, b->y, &err), &err);
        start = processor_seconds() - start;
        b->build_s = r == 0 || start < b->build_s ? start : b->build_s;
    }
    memcpy(b->at_x, b->x, (size_t)b->n * sizeof *b->x);
    memcpy(b->at_y, b->y, (size_t)b->n * sizeof *b->y);
    counts = oj_live_count(b->live);
    oj_live_explain(b->live, tree, sizeof tree);
    printf("LIVE build n=%lld s=%.3f points_per_s=%.3g pages=%lld "
           "bytes_per_point=%.0f tree=\"%s\"\n",
           (long long)b->n, b->build_s, (double)b->n / b->build_s,
           (long long)counts.n_pages, (double)counts.n_bytes / (double)b->n,
           tree);
}

/* --- batches ---------------------------------------------------------------
 */

/* n different ids, in no order. */
static void pick_ids(struct bench *b, int64_t n)
{
    int64_t stride = b->n / n,
            first = (int64_t)(mix((uint64_t)b->next_place) % (uint64_t)stride);
    for (int64_t i = 0; i < n; i++)
        b->id[i] = first + i * stride;
    for (int64_t i = n - 1; i > 0; i--)
    {
        int64_t k =
            (int64_t)(mix((uint64_t)(b->next_place + i)) % (uint64_t)(i + 1));
        int64_t id = b->id[i];
        b->id[i] = b->id[k];
        b->id[k] = id;
    }
}

static void make_batch(struct bench *b, int64_t n, int jumps)
{
    pick_ids(b, n);
    for (int64_t i = 0; i < n; i++)
    {
        uint64_t r = mix((uint64_t)(b->next_place * 31 + i));
        if (jumps)
            next_place(b, &b->x[i], &b->y[i]);
        else
        {
            b->x[i] = b->at_x[b->id[i]] +
                      b->step * ((double)(r & 0xffff) / 32768.0 - 1.0);
            b->y[i] = b->at_y[b->id[i]] +
                      b->step * ((double)(r >> 16 & 0xffff) / 32768.0 - 1.0);
        }
    }
    b->next_place += n;
}

static void measure_batches(struct bench *b, double share, int jumps)
{
    int64_t n = (int64_t)((double)b->n * share);
    double least = 0.0;
    struct oj_live_counts before = oj_live_count(b->live), after;
    for (int r = 0; r < REPEAT; r++)
    {
        double s;
        make_batch(b, n, jumps);
        s = apply(b, n);
        least = r == 0 || s < least ? s : least;
    }
    after = oj_live_count(b->live);
    printf("LIVE %s share=%g s=%.4f moves_per_s=%.3g of_building=%.3f "
           "rebuilt=%lld of %d\n",
           jumps ? "jumps" : "steps", share, least, (double)n / least,
           least / b->build_s, (long long)(after.n_rebuilt - before.n_rebuilt),
           REPEAT);
    fflush(stdout);
}

/* --- queries ---------------------------------------------------------------
 */

struct asked
{
    const char *name;
    enum oj_op op;
    int64_t k;
    double max_distance;
};

static double measure_queries(struct bench *b, const struct asked *asked,
                              int64_t *n_pairs)
{
    struct oj_relation relation = oj_relation_default();
    struct oj_flat input = {.n_features = b->n_queries, .x = b->x, .y = b->y};
    struct live_query query = {
        .relation = &relation, .input = &input, .n_threads = b->n_threads};
    struct oj_error err;
    double least = 0.0;
    relation.op = asked->op;
    relation.k = asked->k;
    relation.max_distance = asked->max_distance;
    for (int r = 0; r < REPEAT; r++)
    {
        struct live_pairs pairs = {0};
        double start = processor_seconds();
        query.state = oj_live_read(b->live);
        must(live_search_pairs(&query, &pairs, &err), &err);
        oj_live_give_back(b->live, query.state);
        start = processor_seconds() - start;
        least = r == 0 || start < least ? start : least;
        *n_pairs = pairs.n;
        live_pairs_free(&pairs);
    }
    return least;
}

static const struct asked asked[] = {{"nearest", OJ_OP_NEAREST, 1, INFINITY},
                                     {"nearest_8", OJ_OP_NEAREST, 8, INFINITY},
                                     {"dwithin_30", OJ_OP_DWITHIN, 1, 30.0}};

#define N_ASKED ((int)(sizeof asked / sizeof *asked))

static void make_queries(struct bench *b)
{
    for (int64_t i = 0; i < b->n_queries; i++)
        next_place(b, &b->x[i], &b->y[i]);
}

/* What is measured again of a fresh index of the points that there are. */
static void build_afresh(struct bench *b)
{
    struct oj_error err;
    struct oj_live *fresh = NULL;
    int64_t *id = oj_malloc(b->n, sizeof *id);
    if (id == NULL)
        stop("out of memory");
    for (int64_t i = 0; i < b->n; i++)
        id[i] = i;
    oj_live_free(b->live);
    must(oj_live_new(b->tree, b->n_threads, &fresh, &err), &err);
    must(oj_live_apply(fresh, b->n, id, b->at_x, b->at_y, &err), &err);
    oj_free(id);
    b->live = fresh;
}

static void measure_aging(struct bench *b)
{
    double old_s[N_ASKED], fresh_s;
    int64_t n_pairs[N_ASKED], n;
    struct oj_live_counts counts;
    int64_t at;
    for (int64_t i = 0; i < b->n_batches; i++)
    {
        make_batch(b, b->n / 100, 1);
        (void)apply(b, b->n / 100);
    }
    counts = oj_live_count(b->live);
    printf("LIVE aged batches=%lld pages=%lld bytes_per_point=%.0f\n",
           (long long)b->n_batches, (long long)counts.n_pages,
           (double)counts.n_bytes / (double)b->n);
    at = b->next_place;
    make_queries(b);
    for (int i = 0; i < N_ASKED; i++)
        old_s[i] = measure_queries(b, &asked[i], &n_pairs[i]);
    build_afresh(b);
    b->next_place = at;
    make_queries(b);
    for (int i = 0; i < N_ASKED; i++)
    {
        fresh_s = measure_queries(b, &asked[i], &n);
        if (n != n_pairs[i])
            stop("DIFFERENT numbers of pairs");
        printf("LIVE queries %s pairs=%lld fresh_s=%.3f queries_per_s=%.3g "
               "aged_s=%.3f of_fresh=%.3f\n",
               asked[i].name, (long long)n, fresh_s,
               (double)b->n_queries / fresh_s, old_s[i], old_s[i] / fresh_s);
    }
}

/* --- all of it -------------------------------------------------------------
 */

static int read_tree(const char *name)
{
    static const char *const names[] = {"auto", "quadtree", "kdtree"};
    for (int i = 0; i < 3; i++)
    {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    stop("tree is auto, quadtree or kdtree");
    return 0;
}

static void read_options(int argc, char **argv, struct bench *b)
{
    for (int i = 1; i + 1 < argc; i += 2)
    {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--n") == 0)
            b->n = atoll(value);
        else if (strcmp(argv[i], "--tree") == 0)
            b->tree = (enum oj_live_tree)read_tree(value);
        else if (strcmp(argv[i], "--threads") == 0)
            b->n_threads = atoi(value);
        else if (strcmp(argv[i], "--batches") == 0)
            b->n_batches = atoll(value);
        else if (strcmp(argv[i], "--queries") == 0)
            b->n_queries = atoll(value);
        else if (strcmp(argv[i], "--step") == 0)
            b->step = atof(value);
        else
            stop("options are --n, --tree, --threads, --batches, --queries and "
                 "--step");
    }
    if (argc % 2 == 0 || b->n < 1000)
        stop("an option without a value, or fewer than 1,000 points");
    if (b->n_queries > b->n)
        b->n_queries = b->n;
}

int main(int argc, char **argv)
{
    struct bench b = {.n = 10000000,
                      .n_batches = 1000,
                      .n_queries = 200000,
                      .n_threads = 1,
                      .step = 30.0};
    read_options(argc, argv, &b);
    b.city = nyc_city(1);
    b.n_blocks = nyc_land_blocks(&b.city, &b.blocks);
    b.id = oj_malloc(b.n, sizeof *b.id);
    b.x = oj_malloc(b.n, sizeof *b.x);
    b.y = oj_malloc(b.n, sizeof *b.y);
    b.at_x = oj_malloc(b.n, sizeof *b.at_x);
    b.at_y = oj_malloc(b.n, sizeof *b.at_y);
    if (b.n_blocks < 0 || b.id == NULL || b.x == NULL || b.y == NULL ||
        b.at_x == NULL || b.at_y == NULL)
        stop("out of memory");
    build(&b);
    measure_batches(&b, 0.01, 1);
    measure_batches(&b, 0.1, 1);
    measure_batches(&b, 1.0, 0);
    measure_batches(&b, 1.0, 1);
    if (b.n_batches > 0)
        measure_aging(&b);
    oj_live_free(b.live);
    free(b.blocks);
    oj_free(b.id);
    oj_free(b.x);
    oj_free(b.y);
    oj_free(b.at_x);
    oj_free(b.at_y);
    return 0;
}
