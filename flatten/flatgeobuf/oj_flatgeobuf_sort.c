#include "oj_flatgeobuf_sort.h"

#include "../arrays/oj_hilbert.h"
#include "../base/oj_array.h"
#include "../base/oj_threads.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a block, and about those of a bucket: many rows make them large, so that
 * there are not too many places to read from. */
#define LEAST_BYTES (INT64_C(2) << 20)
#define MOST_BYTES (INT64_C(16) << 20)
#define BLOCKS 64

/* All that threads hold at once, about. */
#define MOST_HELD (INT64_C(400) << 20)

#define MOST_SAMPLES 65536
#define MOST_BUCKETS 2048
#define MOST_LEVELS 16     /* of 16 nodes each: 2^64 rows */
#define NODES_AT_ONCE 4096 /* of an upper level */

#define NODE_BYTES ((int64_t)sizeof(struct oj_fgb_node))

oj_status oj_fgb_write_at(int file, int64_t at, const void *bytes, int64_t n,
                          struct oj_error *err)
{
    if (oj_write_at(file, at, bytes, n) == 0)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_IO, "cannot write: %s", strerror(errno));
}

/* ---- rows as they come -----------------------------------------------------
 */

void oj_fgb_grow_box(double *box, const double *by)
{
    for (int i = 0; i < 2; i++)
    {
        box[i] = by[i] < box[i] ? by[i] : box[i];
        box[2 + i] = by[2 + i] > box[2 + i] ? by[2 + i] : box[2 + i];
    }
}

static int64_t block_bytes(const struct oj_fgb_unsorted *rows)
{
    int64_t n = rows->n.bytes / BLOCKS;
    return n < LEAST_BYTES ? LEAST_BYTES : n < MOST_BYTES ? n : MOST_BYTES;
}

/* Every second one goes when they are too many. */
static void add_sample(struct oj_fgb_unsorted *rows,
                       const struct oj_fgb_node *node)
{
    if (rows->n_samples == MOST_SAMPLES)
    {
        rows->n_samples /= 2;
        rows->stride *= 2;
        for (int64_t i = 0; i < rows->n_samples; i++)
            rows->sample[i] = rows->sample[2 * i];
    }
    rows->sample[rows->n_samples++] = *node;
}

static oj_status end_block(struct oj_fgb_unsorted *rows, struct oj_error *err)
{
    OJ_ROOM(rows->block, rows->n_blocks + 1, rows->n_blocks + 2,
            rows->cap_blocks, err);
    rows->block[++rows->n_blocks] = rows->n;
    return OJ_OK;
}

static oj_status begin_rows(struct oj_fgb_unsorted *rows, struct oj_error *err)
{
    OJ_NEW(rows->sample, MOST_SAMPLES, err);
    rows->stride = 1;
    OJ_ROOM(rows->block, 0, 1, rows->cap_blocks, err);
    rows->block[0] = rows->n;
    return OJ_OK;
}

oj_status oj_fgb_unsorted_add(struct oj_fgb_unsorted *rows,
                              const uint8_t *bytes, int64_t n_bytes,
                              const struct oj_fgb_node *node, int64_t n,
                              struct oj_error *err)
{
    if (rows->sample == NULL)
        OJ_TRY(begin_rows(rows, err));
    OJ_TRY(oj_temporary_file_write(&rows->rows, bytes, n_bytes, err));
    OJ_TRY(oj_temporary_file_write(&rows->nodes, node, NODE_BYTES * n, err));
    for (int64_t i =
             (rows->stride - rows->n.rows % rows->stride) % rows->stride;
         i < n; i += rows->stride - (rows->n.rows + i) % rows->stride)
        add_sample(rows, &node[i]);
    rows->n.rows += n;
    rows->n.bytes += n_bytes;
    return rows->n.bytes - rows->block[rows->n_blocks].bytes < block_bytes(rows)
               ? OJ_OK
               : end_block(rows, err);
}

void oj_fgb_unsorted_free(struct oj_fgb_unsorted *rows)
{
    oj_temporary_file_close(&rows->rows);
    oj_temporary_file_close(&rows->nodes);
    oj_free(rows->block);
    oj_free(rows->sample);
    memset(rows, 0, sizeof *rows);
}

/* ---- plan ------------------------------------------------------------------
 */

/* Rows and their nodes, before and after they are sorted: memory of one
 * thread. */
struct row_run
{
    struct oj_fgb_extent n;
    int64_t cap_rows[2], cap_bytes[2], cap_order[2];
    struct oj_fgb_node *node[2];
    uint8_t *bytes[2];
    uint64_t *order[2]; /* key and number of each; the other, then starts */
};

struct sorting
{
    struct oj_fgb_unsorted *rows;
    int file, n_threads;
    int64_t rows_at; /* in file */

    /* The index: level 0 are the rows' own nodes. */
    int n_levels;
    int64_t n_level[MOST_LEVELS], level_at[MOST_LEVELS];
    int64_t first[MOST_LEVELS]; /* of all nodes */
    int level;                  /* the one that is made */

    /* Keys from first_key[k] on, below the next bucket's, are in bucket k. */
    int n_buckets;
    uint32_t *first_key;           /* [n_buckets] */
    struct oj_fgb_extent *stretch; /* [n_blocks][n_buckets], and the end: where
                                      each begins in the sorted blocks */
    struct oj_fgb_extent *bucket;  /* [n_buckets + 1] where each begins */
    struct row_run *run;           /* [n_threads] */
};

/* What nodes are sorted by, upwards. */
static uint32_t key_of(const double *all, const struct oj_fgb_node *node)
{
    return UINT32_MAX - oj_hilbert_code(node->box, all);
}

static int compare_keys(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* A key of which there is more than a bucket has one of its own. */
static oj_status choose_buckets(struct sorting *s, struct oj_error *err)
{
    int64_t n = s->rows->n_samples,
            n_wanted = s->rows->n.bytes / block_bytes(s->rows);
    uint32_t *key, last = 0;
    n_wanted = n_wanted < MOST_BUCKETS / 2 ? n_wanted + 1 : MOST_BUCKETS / 2;
    OJ_NEW(s->first_key, MOST_BUCKETS + 2, err);
    OJ_NEW(key, n, err);
    for (int64_t i = 0; i < n; i++)
        key[i] = key_of(s->rows->box, &s->rows->sample[i]);
    qsort(key, (size_t)n, sizeof *key, compare_keys);
    s->first_key[s->n_buckets++] = 0;
    for (int64_t k = 1; k < n_wanted; k++)
    {
        uint32_t first = key[k * n / n_wanted];
        if (first == last && first < UINT32_MAX)
            first++;
        last = key[k * n / n_wanted];
        if (first > s->first_key[s->n_buckets - 1])
            s->first_key[s->n_buckets++] = first;
    }
    oj_free(key);
    return OJ_OK;
}

static int has_one_key(const struct sorting *s, int64_t k)
{
    return s->first_key[k] == UINT32_MAX ||
           (k + 1 < s->n_buckets && s->first_key[k + 1] == s->first_key[k] + 1);
}

static struct oj_fgb_extent extent_between(const struct oj_fgb_extent *at)
{
    const struct oj_fgb_extent n = {at[1].rows - at[0].rows,
                                    at[1].bytes - at[0].bytes};
    return n;
}

static void place_buckets(struct sorting *s)
{
    struct oj_fgb_extent at = {0, 0};
    for (int k = 0; k < s->n_buckets; k++)
    {
        s->bucket[k] = at;
        for (int64_t b = 0; b < s->rows->n_blocks; b++)
        {
            struct oj_fgb_extent n =
                extent_between(&s->stretch[b * s->n_buckets + k]);
            at.rows += n.rows;
            at.bytes += n.bytes;
        }
    }
    s->bucket[s->n_buckets] = at;
}

/* How many threads may hold twice the rows of any of the n blocks, or buckets,
 * that begin at at. A bucket of one key is not held. */
static int threads_for(const struct sorting *s, const struct oj_fgb_extent *at,
                       int64_t n)
{
    int64_t most = 1, n_threads;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_fgb_extent size = extent_between(&at[i]);
        int64_t held = 2 * (size.bytes + (NODE_BYTES + 8) * size.rows);
        if (held > most && (at != s->bucket || !has_one_key(s, i)))
            most = held;
    }
    n_threads = MOST_HELD / most;
    return n_threads < 1              ? 1
           : n_threads < s->n_threads ? (int)n_threads
                                      : s->n_threads;
}

/* ---- blocks and buckets ----------------------------------------------------
 */

static void free_run(struct row_run *run)
{
    for (int i = 0; i < 2; i++)
    {
        oj_free(run->node[i]);
        oj_free(run->bytes[i]);
        oj_free(run->order[i]);
    }
}

/* Adds the rows of the temporary files between two places. */
static oj_status read_run(const struct sorting *s, struct row_run *run,
                          const struct oj_fgb_extent *at, struct oj_error *err)
{
    struct oj_fgb_extent n = extent_between(at), old = run->n;
    run->n.rows += n.rows;
    run->n.bytes += n.bytes;
    for (int i = 0; i < 2; i++)
    {
        OJ_ROOM(run->node[i], old.rows, run->n.rows, run->cap_rows[i], err);
        OJ_ROOM(run->bytes[i], old.bytes, run->n.bytes, run->cap_bytes[i], err);
        OJ_ROOM(run->order[i], 0, run->n.rows, run->cap_order[i], err);
    }
    OJ_TRY(oj_temporary_file_read(&s->rows->nodes, NODE_BYTES * at->rows,
                                  run->node[0] + old.rows, NODE_BYTES * n.rows,
                                  err));
    return oj_temporary_file_read(&s->rows->rows, at->bytes,
                                  run->bytes[0] + old.bytes, n.bytes, err);
}

/* Nodes have the key above the size, of 31 bits, until they are in the file. */
static int64_t size_of(const struct oj_fgb_node *node)
{
    return (int64_t)(node->offset & UINT32_MAX);
}

static uint32_t kept_key(const struct oj_fgb_node *node)
{
    return (uint32_t)(node->offset >> 32);
}

static void sort_run(struct row_run *run)
{
    uint8_t *to = run->bytes[1];
    int64_t *from, start = 0;
    for (int64_t i = 0; i < run->n.rows; i++)
        run->order[0][i] =
            (uint64_t)kept_key(&run->node[0][i]) << 32 | (uint64_t)i;
    oj_hilbert_sort(run->order, run->n.rows);
    from = (int64_t *)run->order[1]; /* where rows begin */
    for (int64_t i = 0; i < run->n.rows; i++)
    {
        from[i] = start;
        start += size_of(&run->node[0][i]);
    }
    for (int64_t i = 0; i < run->n.rows; i++)
    {
        int64_t row = (int64_t)(run->order[0][i] & UINT32_MAX);
        int64_t size = size_of(&run->node[0][row]);
        memcpy(to, run->bytes[0] + from[row], (size_t)size);
        run->node[1][i] = run->node[0][row];
        to += size;
    }
}

/* Where the stretches of the buckets begin in a sorted block. */
static void find_stretches(const struct sorting *s, const struct row_run *run,
                           int64_t b)
{
    struct oj_fgb_extent at = s->rows->block[b],
                         *stretch = s->stretch + b * s->n_buckets;
    int k = 0;
    stretch[0] = at;
    for (int64_t i = 0; i < run->n.rows; i++)
    {
        while (k + 1 < s->n_buckets &&
               kept_key(&run->node[1][i]) >= s->first_key[k + 1])
            stretch[++k] = at;
        at.rows++;
        at.bytes += size_of(&run->node[1][i]);
    }
    while (k + 1 < s->n_buckets)
        stretch[++k] = at;
}

static oj_status sort_block(int64_t b, int thread, void *user,
                            struct oj_error *err)
{
    const struct sorting *s = user;
    const struct oj_fgb_extent *at = &s->rows->block[b], none = {0, 0};
    struct row_run *run = &s->run[thread];
    run->n = none;
    OJ_TRY(read_run(s, run, at, err));
    for (int64_t i = 0; i < run->n.rows; i++)
        run->node[0][i].offset |=
            (uint64_t)key_of(s->rows->box, &run->node[0][i]) << 32;
    sort_run(run);
    find_stretches(s, run, b);
    OJ_TRY(oj_temporary_file_change(&s->rows->nodes, NODE_BYTES * at->rows,
                                    run->node[1], NODE_BYTES * run->n.rows,
                                    err));
    return oj_temporary_file_change(&s->rows->rows, at->bytes, run->bytes[1],
                                    run->n.bytes, err);
}

/* Sorts the rows that were read, which go to the file at *at and are then none.
 */
static oj_status write_run(const struct sorting *s, struct row_run *run,
                           struct oj_fgb_extent *at, struct oj_error *err)
{
    const struct oj_fgb_extent none = {0, 0}, old = *at;
    sort_run(run);
    for (int64_t i = 0; i < run->n.rows; i++)
    {
        int64_t size = size_of(&run->node[1][i]);
        run->node[1][i].offset = (uint64_t)at->bytes;
        at->bytes += size;
    }
    at->rows += run->n.rows;
    OJ_TRY(oj_fgb_write_at(s->file, s->level_at[0] + NODE_BYTES * old.rows,
                           run->node[1], NODE_BYTES * run->n.rows, err));
    OJ_TRY(oj_fgb_write_at(s->file, s->rows_at + old.bytes, run->bytes[1],
                           run->n.bytes, err));
    run->n = none;
    return OJ_OK;
}

/* Rows of one key are in order. */
static oj_status sort_bucket(int64_t k, int thread, void *user,
                             struct oj_error *err)
{
    const struct sorting *s = user;
    struct row_run *run = &s->run[thread];
    struct oj_fgb_extent at = s->bucket[k], none = {0, 0};
    run->n = none;
    for (int64_t b = 0; b < s->rows->n_blocks; b++)
    {
        OJ_TRY(read_run(s, run, &s->stretch[b * s->n_buckets + k], err));
        if (has_one_key(s, k))
            OJ_TRY(write_run(s, run, &at, err));
    }
    return write_run(s, run, &at, err);
}

/* ---- index -----------------------------------------------------------------
 */

static void plan_index(struct sorting *s, int64_t at)
{
    int n = 0;
    s->n_level[0] = s->rows->n.rows;
    do
    {
        s->n_level[n + 1] =
            (s->n_level[n] + OJ_FGB_NODE_SIZE - 1) / OJ_FGB_NODE_SIZE;
        n++;
    } while (s->n_level[n] > 1);
    s->n_levels = n + 1;
    for (int level = n; level >= 0; level--)
    {
        s->first[level] =
            level == n ? 0 : s->first[level + 1] + s->n_level[level + 1];
        s->level_at[level] = at + NODE_BYTES * s->first[level];
    }
    s->rows_at = s->level_at[0] + NODE_BYTES * s->n_level[0];
}

/* The node above n of them, the first of which is number first. */
static struct oj_fgb_node node_above(const struct oj_fgb_node *below, int64_t n,
                                     int64_t first)
{
    struct oj_fgb_node up = {{(double)INFINITY, (double)INFINITY,
                              (double)-INFINITY, (double)-INFINITY},
                             (uint64_t)first};
    for (int64_t i = 0; i < n; i++)
        oj_fgb_grow_box(up.box, below[i].box);
    return up;
}

/* Nodes from task * NODES_AT_ONCE on of the level that is made. */
static oj_status make_nodes(int64_t task, int thread, void *user,
                            struct oj_error *err)
{
    const struct sorting *s = user;
    struct row_run *run = &s->run[thread];
    int64_t first = task * NODES_AT_ONCE, below = first * OJ_FGB_NODE_SIZE;
    int64_t n = s->n_level[s->level] - first;
    int64_t n_below = s->n_level[s->level - 1] - below;
    if (n > NODES_AT_ONCE)
    {
        n = NODES_AT_ONCE;
        n_below = n * OJ_FGB_NODE_SIZE;
    }
    OJ_ROOM(run->node[0], 0, n_below, run->cap_rows[0], err);
    if (oj_read_at(s->file, s->level_at[s->level - 1] + NODE_BYTES * below,
                   run->node[0], NODE_BYTES * n_below) != 0)
        return oj_fail(err, OJ_ERR_IO, "cannot read what was written: %s",
                       strerror(errno));
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = i * OJ_FGB_NODE_SIZE, left = n_below - at;
        run->node[0][i] =
            node_above(&run->node[0][at],
                       left < OJ_FGB_NODE_SIZE ? left : OJ_FGB_NODE_SIZE,
                       s->first[s->level - 1] + below + at);
    }
    return oj_fgb_write_at(s->file, s->level_at[s->level] + NODE_BYTES * first,
                           run->node[0], NODE_BYTES * n, err);
}

/* ---- all of it -------------------------------------------------------------
 */

static oj_status sort_all(struct sorting *s, struct oj_error *err)
{
    int64_t n = s->rows->n_blocks;
    OJ_TRY(choose_buckets(s, err));
    OJ_NEW(s->stretch, n * s->n_buckets + 1, err);
    OJ_NEW(s->bucket, s->n_buckets + 1, err);
    OJ_NEW_ZEROED(s->run, s->n_threads, err);
    s->stretch[n * s->n_buckets] = s->rows->n;
    OJ_TRY(oj_parallel_try(threads_for(s, s->rows->block, n), n, 1, sort_block,
                           s, err));
    place_buckets(s);
    OJ_TRY(oj_parallel_try(threads_for(s, s->bucket, s->n_buckets),
                           s->n_buckets, 1, sort_bucket, s, err));
    for (s->level = 1; s->level < s->n_levels; s->level++)
        OJ_TRY(oj_parallel_try(s->n_threads,
                               (s->n_level[s->level] - 1) / NODES_AT_ONCE + 1,
                               1, make_nodes, s, err));
    return OJ_OK;
}

oj_status oj_fgb_sort(struct oj_fgb_unsorted *rows, int file, int64_t at,
                      int n_threads, struct oj_error *err)
{
    struct sorting s = {.rows = rows, .file = file, .n_threads = n_threads};
    oj_status status;
    if (rows->block[rows->n_blocks].rows < rows->n.rows)
        OJ_TRY(end_block(rows, err));
    plan_index(&s, at);
    status = sort_all(&s, err);
    oj_free(s.first_key);
    oj_free(s.stretch);
    oj_free(s.bucket);
    for (int i = 0; s.run != NULL && i < n_threads; i++)
        free_run(&s.run[i]);
    oj_free(s.run);
    return status;
}
