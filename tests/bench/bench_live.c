/* Measures the kept index of points: building, batches and queries, with the
 * points of a generated city (nycgen.h).
 *
 *   oj_bench_live [--option value]..
 *     --n N         points (10,000,000)
 *     --tree NAME   auto
 *     --threads N   1
 *     --batches N   batches of 1 % before the second round of queries (1,000)
 *     --queries N   points of which the nearest are searched (200,000)
 *     --step FT     small steps (30)
 *     --gpu N       on the first N GPUs instead, with changes and queries in
 *                   their memory
 *     --gpu_memory BYTES  of each GPU at most (0: all)
 *     --measure NAME  of a GPU: all, parts (no batches of all points), batches,
 *                   queries, or papers: queries, also by the methods of G-PICS
 *                   on the first GPU (all)
 *
 * Prints a line "LIVE .." for building, for batches in which 1 %, 10 %, 50 %
 * and all of the points jump anywhere or make small steps, and for queries of a
 * new index and of one after many batches: the least processor seconds of three
 * runs, summed over threads; the least wall-clock seconds, and changes per
 * second of them; queries per processor second; and the processor seconds of a
 * batch as a fraction of those of building.
 * On one GPU the seconds are those of its clock, with points, changes and pairs
 * in its memory; on several GPUs they are wall-clock seconds. "wall_s" are
 * always wall-clock seconds. "from_host_s" are wall-clock seconds of the
 * module's function with changes or rows in host memory, "any_order_s" those of
 * queries whose pairs of a row are in no order. For the methods of
 * G-PICS "filter_s" and "refine_s" are wall-clock seconds of their two steps,
 * with pairs in the GPU's memory, which are then sorted and copied. */
#include "nycgen.h"

#include "../../algs/live/live_search.h"
#include "../../algs/live/oj_live.h"
#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_clock.h"
#include "../../flatten/base/oj_parallel.h"
#include "../gpu/gpu_resident.h"

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
    double wall_s; /* wall-clock seconds of the last batch */
    int n_gpus;    /* 0: on processors */
    int64_t gpu_memory;
    int skips_whole, skips_batches, skips_queries, asks_papers;
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

/* Sets ids and places of points first to end - 1 from the next points of the
 * city. */
static void put_places(int64_t first, int64_t end, void *user)
{
    const struct bench *b = user;
    for (int64_t i = first; i < end; i++)
    {
        int32_t xy[2];
        nyc_point(&b->city, b->blocks, b->n_blocks,
                  (uint64_t)(b->next_place + i), &xy[0], &xy[1]);
        b->id[i] = i;
        b->x[i] = xy[0] * (1.0 / NYC_ONE);
        b->y[i] = xy[1] * (1.0 / NYC_ONE);
    }
}

/* Maps integers below 2^32 one-to-one to such integers, in no apparent
 * order. */
static uint64_t mix(uint64_t i)
{
    i = (i ^ i >> 31) * UINT64_C(0x7FB5D329728EA185);
    i = (i ^ i >> 27) * UINT64_C(0x81DADEF4BC2DD44D);
    return i ^ i >> 33;
}

/* Applies a batch of n changes. Returns its processor seconds. */
static double apply(struct bench *b, int64_t n)
{
    struct oj_error err;
    double s = processor_seconds(), wall = oj_clock_seconds();
    must(oj_live_apply(b->live, n, b->id, b->x, b->y, &err), &err);
    b->wall_s = oj_clock_seconds() - wall;
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
    double wall_s = 0.0;
    for (int64_t i = 0; i < b->n; i++)
    {
        b->id[i] = i;
        next_place(b, &b->x[i], &b->y[i]);
    }
    for (int r = 0; r < REPEAT; r++)
    {
        double s;
        oj_live_free(b->live);
        must(oj_live_new(b->tree, b->n_threads, &b->live, &err), &err);
        s = apply(b, b->n);
        b->build_s = r == 0 || s < b->build_s ? s : b->build_s;
        wall_s = r == 0 || b->wall_s < wall_s ? b->wall_s : wall_s;
    }
    counts = oj_live_count(b->live);
    oj_live_explain_tree_choice(b->live, tree, sizeof tree);
    printf("LIVE build n=%lld s=%.3f wall_s=%.3f points_per_s=%.3g pages=%lld "
           "bytes_per_point=%.0f tree=\"%s\"\n",
           (long long)b->n, b->build_s, wall_s, (double)b->n / wall_s,
           (long long)counts.n_pages, (double)counts.n_bytes / (double)b->n,
           tree);
}

/* --- batches ---------------------------------------------------------------
 * */

/* Chooses n different ids, in no order. */
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
    double least = 0.0, wall_s = 0.0;
    struct oj_live_counts before = oj_live_count(b->live), after;
    for (int r = 0; r < REPEAT; r++)
    {
        double s;
        make_batch(b, n, jumps);
        s = apply(b, n);
        least = r == 0 || s < least ? s : least;
        wall_s = r == 0 || b->wall_s < wall_s ? b->wall_s : wall_s;
    }
    after = oj_live_count(b->live);
    printf("LIVE %s share=%g s=%.4f wall_s=%.4f moves_per_s=%.3g "
           "of_building=%.3f rebuilt=%lld of %d\n",
           jumps ? "jumps" : "steps", share, least, wall_s, (double)n / wall_s,
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
        query.state = oj_live_acquire_state(b->live);
        must(live_search_pairs(&query, &pairs, &err), &err);
        oj_live_release_state(b->live, query.state);
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

/* Measures a new index of the current points. */
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

/* --- a GPU -----------------------------------------------------------------
 */

struct gpu_bench
{
    struct bench *b;
    const struct oj_gpu_module *module;
    const struct gpu_resident *on_device;
    struct oj_gpu_index *index; /* owns the device's memory; one point */
    struct oj_gpu_live *live;
    void *id, *x, *y, *box; /* [n] on the device */
    double build_s;
};

/* Least seconds of several runs. */
struct least_seconds
{
    double s, wall_s;
};

static void keep_least(struct least_seconds *least, int is_first,
                       struct least_seconds now)
{
    least->s = is_first || now.s < least->s ? now.s : least->s;
    least->wall_s =
        is_first || now.wall_s < least->wall_s ? now.wall_s : least->wall_s;
}

static void *take(struct gpu_bench *g, int64_t n, size_t size)
{
    struct oj_error err;
    void *memory = NULL;
    must(g->on_device->allocate(g->index, n * (int64_t)size, &memory, &err),
         &err);
    return memory;
}

static void put(struct gpu_bench *g, void *to, const void *from, int64_t n,
                size_t size)
{
    struct oj_error err;
    must(g->on_device->copy(g->index, to, from, n * (int64_t)size, &err), &err);
}

static const struct oj_options first_gpu = {.n_threads = 8, .gpus = 1};

static void open_gpu(struct gpu_bench *g)
{
    static const double zero = 0.0;
    static const struct oj_flat point = {.n_features = 1,
                                         .n_parts = 1,
                                         .n_rings = 1,
                                         .n_vertices = 1,
                                         .part_kinds = OJ_PART_POINT,
                                         .x = &zero,
                                         .y = &zero};
    struct oj_relation relation = oj_relation_default();
    struct oj_stats stats = {0};
    struct oj_error err;
    must(oj_gpu_load(&g->module, &err), &err);
    must(gpu_resident_find(&g->on_device, &err), &err);
    must(g->module->index(&point, NULL, &relation, &first_gpu, &g->index,
                          &stats, &err),
         &err);
    g->id = take(g, g->b->n, sizeof(int64_t));
    g->x = take(g, g->b->n, sizeof(double));
    g->y = take(g, g->b->n, sizeof(double));
    g->box = take(g, g->b->n_queries, sizeof(struct oj_box));
}

static void close_gpu(struct gpu_bench *g)
{
    void *const memory[] = {g->id, g->x, g->y, g->box};
    g->module->live_free(g->live);
    for (int i = 0; i < 4; i++)
        g->on_device->release(g->index, memory[i]);
    g->module->free_index(g->index);
}

static void put_changes(struct gpu_bench *g, int64_t n)
{
    put(g, g->id, g->b->id, n, sizeof(int64_t));
    put(g, g->x, g->b->x, n, sizeof(double));
    put(g, g->y, g->b->y, n, sizeof(double));
}

/* Returns s, the seconds that the function itself measured, and the wall-clock
 * seconds since start. With several GPUs both are s, which does not include
 * copying the changes to each GPU. */
static struct least_seconds seconds_of(const struct gpu_bench *g, double start,
                                       double s)
{
    struct least_seconds of = {s, s};
    if (g->b->n_gpus == 1)
        of.wall_s = oj_clock_seconds() - start;
    return of;
}

static struct least_seconds apply_on_gpu(struct gpu_bench *g, int64_t n)
{
    struct oj_error err;
    double s = 0.0, start;
    put_changes(g, n);
    start = oj_clock_seconds();
    must(g->on_device->live_apply(g->live, n, g->id, g->x, g->y, &s, &err),
         &err);
    return seconds_of(g, start, s);
}

static struct least_seconds apply_from_host(struct gpu_bench *g, int64_t n)
{
    struct bench *b = g->b;
    struct oj_error err;
    struct least_seconds of = {0.0, -oj_clock_seconds()};
    must(g->module->live_apply(g->live, n, b->id, b->x, b->y, &err), &err);
    of.wall_s += oj_clock_seconds();
    return of;
}

static void build_on_gpu(struct gpu_bench *g)
{
    struct bench *b = g->b;
    struct oj_error err;
    struct least_seconds least = {0.0, 0.0};
    oj_parallel_slices(oj_cpu_count(), b->n, 65536, put_places, b);
    b->next_place += b->n;
    for (int r = 0; r < REPEAT; r++)
    {
        struct oj_options options = first_gpu;
        options.gpus = (UINT64_C(1) << b->n_gpus) - 1;
        options.gpu_memory = b->gpu_memory;
        g->module->live_free(g->live);
        must(g->module->live_new(&options, &g->live, &err), &err);
        keep_least(&least, r == 0, apply_on_gpu(g, b->n));
    }
    g->build_s = least.s;
    memcpy(b->at_x, b->x, (size_t)b->n * sizeof *b->x);
    memcpy(b->at_y, b->y, (size_t)b->n * sizeof *b->y);
    printf("LIVE gpu build n=%lld s=%.6f wall_s=%.6f points_per_s=%.3g "
           "pages=%lld bytes_per_point=%.0f\n",
           (long long)b->n, least.s, least.wall_s, (double)b->n / least.s,
           (long long)g->module->live_count(g->live).n_pages,
           (double)g->module->live_count(g->live).n_bytes / (double)b->n);
    fflush(stdout);
}

static void measure_batches_on_gpu(struct gpu_bench *g, double share, int jumps)
{
    struct bench *b = g->b;
    int64_t n = (int64_t)((double)b->n * share);
    struct least_seconds least = {0.0, 0.0}, from_host = {0.0, 0.0};
    for (int r = 0; r < 2 * REPEAT; r++)
    {
        make_batch(b, n, jumps);
        if (r < REPEAT)
            keep_least(&least, r == 0, apply_on_gpu(g, n));
        else
            keep_least(&from_host, r == REPEAT, apply_from_host(g, n));
        for (int64_t i = 0; i < n; i++)
        {
            b->at_x[b->id[i]] = b->x[i];
            b->at_y[b->id[i]] = b->y[i];
        }
    }
    printf("LIVE gpu %s share=%g s=%.6f wall_s=%.6f moves_per_s=%.3g "
           "of_building=%.3f from_host_s=%.6f pages=%lld\n",
           jumps ? "jumps" : "steps", share, least.s, least.wall_s,
           (double)n / least.s, least.s / g->build_s, from_host.wall_s,
           (long long)g->module->live_count(g->live).n_pages);
    fflush(stdout);
}

/* Half the width of each window, in feet. 0 means a search for a point. */
static const struct
{
    const char *name;
    double half;
} windows[] = {{"equals", 0.0}, {"window_30", 15.0}, {"window_120", 60.0}};

#define N_WINDOWS ((int)(sizeof windows / sizeof *windows))

/* Joins the rows several times. Returns OJ_ERR_NOMEM if the pairs are too many
 * for the GPU. */
static oj_status ask_gpu(struct gpu_bench *g,
                         const struct oj_relation *relation,
                         const struct oj_gpu_live_rows *rows, int64_t *n_pairs,
                         struct least_seconds *least, struct oj_error *err)
{
    for (int r = 0; r < REPEAT; r++)
    {
        double s = 0.0, start = oj_clock_seconds();
        oj_status status =
            g->on_device->live_join(g->live, relation, rows, n_pairs, &s, err);
        if (status == OJ_ERR_NOMEM)
            return status;
        must(status, err);
        keep_least(least, r == 0, seconds_of(g, start, s));
    }
    return OJ_OK;
}

static void print_queries_on_gpu(struct gpu_bench *g, const char *name,
                                 const struct oj_relation *relation,
                                 const struct oj_gpu_live_rows *rows)
{
    struct oj_relation any_order = *relation;
    struct oj_error err;
    struct least_seconds least = {0.0, 0.0}, unsorted = {0.0, 0.0};
    int64_t n_pairs = 0;
    any_order.any_order = 1;
    if (ask_gpu(g, relation, rows, &n_pairs, &least, &err) != OJ_OK ||
        ask_gpu(g, &any_order, rows, &n_pairs, &unsorted, &err) != OJ_OK)
    {
        printf("LIVE gpu queries %s n=%lld: %s\n", name, (long long)rows->n,
               err.message);
        return;
    }
    printf("LIVE gpu queries %s n=%lld pairs=%lld s=%.6f wall_s=%.6f "
           "any_order_s=%.6f queries_per_s=%.3g\n",
           name, (long long)rows->n, (long long)n_pairs, least.s, least.wall_s,
           unsorted.s, (double)rows->n / least.s);
    fflush(stdout);
}

/* Makes boxes around the places of queries. Windows of width 0 are at places of
 * points. */
static void put_windows(struct gpu_bench *g, double half)
{
    struct bench *b = g->b;
    struct oj_box *box = oj_malloc(b->n_queries, sizeof *box);
    if (box == NULL)
        stop("out of memory");
    for (int64_t i = 0; i < b->n_queries; i++)
    {
        double x = half > 0.0 ? b->x[i] : b->at_x[i];
        double y = half > 0.0 ? b->y[i] : b->at_y[i];
        box[i] = (struct oj_box){x - half, y - half, x + half, y + half};
    }
    put(g, g->box, box, b->n_queries, sizeof *box);
    oj_free(box);
}

static void measure_queries_on_gpu(struct gpu_bench *g)
{
    struct bench *b = g->b;
    struct oj_gpu_live_rows points = {.n = b->n_queries, .x = g->x, .y = g->y};
    struct oj_gpu_live_rows boxes = {.n = b->n_queries, .box = g->box};
    struct oj_relation relation = oj_relation_default();
    make_queries(b);
    put(g, g->x, b->x, b->n_queries, sizeof(double));
    put(g, g->y, b->y, b->n_queries, sizeof(double));
    for (int i = 0; i < N_ASKED; i++)
    {
        relation.op = asked[i].op;
        relation.k = asked[i].k;
        relation.max_distance = asked[i].max_distance;
        print_queries_on_gpu(g, asked[i].name, &relation, &points);
    }
    relation = oj_relation_default();
    relation.op = OJ_OP_BBOX;
    for (int i = 0; i < N_WINDOWS; i++)
    {
        put_windows(g, windows[i].half);
        print_queries_on_gpu(g, windows[i].name, &relation, &boxes);
    }
}

/* --- the methods of G-PICS ------------------------------------------------
 */

static const struct
{
    const char *name;
    enum oj_gpu_papers method;
} papers[] = {{"quadtree", OJ_GPU_GPICS_QUADTREE},
              {"kdtree", OJ_GPU_GPICS_KDTREE},
              {"quadtree_single", OJ_GPU_GPICS_QUADTREE_SINGLE},
              {"kdtree_single", OJ_GPU_GPICS_KDTREE_SINGLE}};

static void measure_paper(const struct gpu_bench *g, int paper,
                          const char *name, const struct oj_relation *relation,
                          const struct oj_flat *rows)
{
    const struct bench *b = g->b;
    const struct oj_flat side = {.n_features = b->n,
                                 .n_vertices = b->n,
                                 .part_kinds = OJ_PART_POINT,
                                 .x = b->at_x,
                                 .y = b->at_y};
    struct oj_options options = first_gpu;
    struct oj_gpu_index *index = NULL;
    struct oj_matches matches = {0};
    struct oj_stats built = {0}, stats = {0};
    struct oj_error err;
    oj_status status;
    double start;
    options.quadrant_size = 256;
    options.gpu_memory = b->gpu_memory;
    must(g->module->papers_index(papers[paper].method, &side, NULL, relation,
                                 &options, &index, &built, &err),
         &err);
    start = oj_clock_seconds();
    status = g->module->join(index, rows, &matches, &stats, &err);
    if (status == OJ_OK)
        printf("LIVE papers %s %s n=%lld pairs=%lld filter_s=%.6f "
               "refine_s=%.6f wall_s=%.6f index_s=%.6f\n",
               papers[paper].name, name, (long long)rows->n_features,
               (long long)matches.n_pairs, stats.filter_s, stats.refine_s,
               oj_clock_seconds() - start, built.index_s);
    else
        printf("LIVE papers %s %s: %s\n", papers[paper].name, name,
               err.message);
    fflush(stdout);
    oj_matches_free(&matches);
    g->module->free_index(index);
}

/* Windows as lines from one corner to the opposite one. Owner of the arrays. */
struct window_lines
{
    struct oj_flat flat;
    int64_t *one, *two; /* 0, 1, .. and 0, 2, .. */
    uint8_t *kind;
    double *x, *y;
};

static struct window_lines make_window_lines(const struct bench *b, double half)
{
    int64_t n = b->n_queries;
    struct window_lines w = {.one = oj_malloc(n + 1, sizeof *w.one),
                             .two = oj_malloc(n + 1, sizeof *w.two),
                             .kind = oj_malloc(n, sizeof *w.kind),
                             .x = oj_malloc(2 * n, sizeof *w.x),
                             .y = oj_malloc(2 * n, sizeof *w.y)};
    if (w.one == NULL || w.two == NULL || w.kind == NULL || w.x == NULL ||
        w.y == NULL)
        stop("out of memory");
    for (int64_t i = 0; i < n; i++)
    {
        double x = half > 0.0 ? b->x[i] : b->at_x[i];
        double y = half > 0.0 ? b->y[i] : b->at_y[i];
        w.kind[i] = OJ_PART_LINE;
        w.x[2 * i] = x - half;
        w.x[2 * i + 1] = x + half;
        w.y[2 * i] = y - half;
        w.y[2 * i + 1] = y + half;
    }
    for (int64_t i = 0; i <= n; i++)
    {
        w.one[i] = i;
        w.two[i] = 2 * i;
    }
    w.flat = (struct oj_flat){.n_features = n,
                              .n_parts = n,
                              .n_rings = n,
                              .n_vertices = 2 * n,
                              .part_kinds = OJ_PART_LINE,
                              .part_offset = w.one,
                              .part_kind = w.kind,
                              .ring_offset = w.one,
                              .vertex_offset = w.two,
                              .x = w.x,
                              .y = w.y};
    return w;
}

static void free_window_lines(struct window_lines *w)
{
    oj_free(w->one);
    oj_free(w->two);
    oj_free(w->kind);
    oj_free(w->x);
    oj_free(w->y);
}

/* Measures the queries of measure_queries_on_gpu(), except those with wide
 * windows. */
static void measure_papers(const struct gpu_bench *g)
{
    struct bench *b = g->b;
    const struct oj_flat points = {.n_features = b->n_queries,
                                   .n_vertices = b->n_queries,
                                   .part_kinds = OJ_PART_POINT,
                                   .x = b->x,
                                   .y = b->y};
    for (int p = 0; p < (int)(sizeof papers / sizeof *papers); p++)
    {
        struct oj_relation relation = oj_relation_default();
        for (int i = 0; i < N_ASKED; i++)
        {
            relation.op = asked[i].op;
            relation.k = asked[i].k;
            relation.max_distance = asked[i].max_distance;
            measure_paper(g, p, asked[i].name, &relation, &points);
        }
        relation = oj_relation_default();
        relation.op = OJ_OP_BBOX;
        for (int i = 0; i < N_WINDOWS - 1; i++)
        {
            struct window_lines lines = make_window_lines(b, windows[i].half);
            measure_paper(g, p, windows[i].name, &relation, &lines.flat);
            free_window_lines(&lines);
        }
    }
}

static void measure_gpu(struct bench *b)
{
    struct gpu_bench g = {.b = b};
    open_gpu(&g);
    build_on_gpu(&g);
    if (!b->skips_batches)
    {
        measure_batches_on_gpu(&g, 0.01, 1);
        measure_batches_on_gpu(&g, 0.1, 1);
    }
    if (!b->skips_batches && !b->skips_whole)
    {
        measure_batches_on_gpu(&g, 1.0, 0);
        measure_batches_on_gpu(&g, 1.0, 1);
    }
    if (!b->skips_queries)
        measure_queries_on_gpu(&g);
    if (b->asks_papers)
        measure_papers(&g);
    if (b->n_batches > 0)
    {
        for (int64_t i = 0; i < b->n_batches; i++)
        {
            make_batch(b, b->n / 100, 1);
            (void)apply_on_gpu(&g, b->n / 100);
            for (int64_t k = 0; k < b->n / 100; k++)
            {
                b->at_x[b->id[k]] = b->x[k];
                b->at_y[b->id[k]] = b->y[k];
            }
        }
        printf("LIVE gpu aged batches=%lld pages=%lld bytes_per_point=%.0f\n",
               (long long)b->n_batches,
               (long long)g.module->live_count(g.live).n_pages,
               (double)g.module->live_count(g.live).n_bytes / (double)b->n);
        measure_queries_on_gpu(&g);
    }
    close_gpu(&g);
}

/* --- the program ---------------------------------------------------------- */

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
        else if (strcmp(argv[i], "--gpu") == 0)
            b->n_gpus = atoi(value);
        else if (strcmp(argv[i], "--gpu_memory") == 0)
            b->gpu_memory = atoll(value);
        else if (strcmp(argv[i], "--measure") == 0)
        {
            b->skips_whole = strcmp(value, "parts") == 0;
            b->asks_papers = strcmp(value, "papers") == 0;
            b->skips_batches = strcmp(value, "queries") == 0 || b->asks_papers;
            b->skips_queries = strcmp(value, "batches") == 0;
        }
        else
            stop("options are --n, --tree, --threads, --batches, --queries, "
                 "--step, --gpu, --gpu_memory and --measure");
    }
    if (argc % 2 == 0 || b->n < 1000)
        stop("an option without a value, or fewer than 1,000 points");
    if (b->n_queries > b->n)
        b->n_queries = b->n;
}

static void measure_cpu(struct bench *b)
{
    build(b);
    measure_batches(b, 0.01, 1);
    measure_batches(b, 0.1, 1);
    measure_batches(b, 0.5, 1);
    measure_batches(b, 1.0, 0);
    measure_batches(b, 1.0, 1);
    if (b->n_batches > 0)
        measure_aging(b);
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
    if (b.n_gpus > 0)
        measure_gpu(&b);
    else
        measure_cpu(&b);
    oj_live_free(b.live);
    free(b.blocks);
    oj_free(b.id);
    oj_free(b.x);
    oj_free(b.y);
    oj_free(b.at_x);
    oj_free(b.at_y);
    return 0;
}
