#include "oj_flatgeobuf_sort.h"

#include "../arrays/oj_hilbert.h"
#include "../base/oj_array.h"
#include "../base/oj_threads.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a block, and about those of a bucket: many rows make them large, so that
 * there are not too many places to write to. */
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

/* ---- files ----------------------------------------------------------------
 */

oj_status oj_fgb_write_at(int file, int64_t at, const void *bytes, int64_t n,
                          struct oj_error *err)
{
    const char *from = bytes;
    while (n > 0)
    {
        ssize_t n_written = pwrite(file, from, (size_t)n, (off_t)at);
        if (n_written < 0 && errno == EINTR)
            continue;
        if (n_written <= 0)
            return oj_fail(err, OJ_ERR_IO, "cannot write: %s", strerror(errno));
        from += n_written;
        at += n_written;
        n -= n_written;
    }
    return OJ_OK;
}

static oj_status read_at(int file, int64_t at, void *bytes, int64_t n,
                         struct oj_error *err)
{
    char *to = bytes;
    while (n > 0)
    {
        ssize_t n_read = pread(file, to, (size_t)n, (off_t)at);
        if (n_read < 0 && errno == EINTR)
            continue;
        if (n_read <= 0)
            return oj_fail(err, OJ_ERR_IO, "cannot read what was written: %s",
                           n_read < 0 ? strerror(errno) : "it is not there");
        to += n_read;
        at += n_read;
        n -= n_read;
    }
    return OJ_OK;
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
    int64_t n = rows->n_bytes / BLOCKS;
    return n < LEAST_BYTES ? LEAST_BYTES : n < MOST_BYTES ? n : MOST_BYTES;
}

static oj_status end_block(struct oj_fgb_unsorted *rows, struct oj_error *err)
{
    const struct oj_fgb_block *block = &rows->block[rows->n_blocks];
    int64_t at = block->at + block->n_bytes, n = NODE_BYTES * block->n_rows;
    const struct oj_fgb_block next = {at + n, 0, 0};
    OJ_TRY(oj_fgb_write_at(rows->file, at, rows->node, n, err));
    OJ_ROOM(rows->block, rows->n_blocks + 1, rows->n_blocks + 2,
            rows->cap_blocks, err);
    rows->block[++rows->n_blocks] = next;
    return OJ_OK;
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

static oj_status begin(struct oj_fgb_unsorted *rows, struct oj_error *err)
{
    OJ_NEW(rows->sample, MOST_SAMPLES, err);
    rows->stride = 1;
    OJ_ROOM(rows->block, 0, 1, rows->cap_blocks, err);
    memset(rows->block, 0, sizeof *rows->block);
    return OJ_OK;
}

oj_status oj_fgb_unsorted_add(struct oj_fgb_unsorted *rows,
                              const uint8_t *bytes, int64_t n_bytes,
                              const struct oj_fgb_node *node, int64_t n,
                              struct oj_error *err)
{
    struct oj_fgb_block *block;
    if (rows->sample == NULL)
        OJ_TRY(begin(rows, err));
    block = &rows->block[rows->n_blocks];
    OJ_ROOM(rows->node, block->n_rows, block->n_rows + n, rows->cap_nodes, err);
    OJ_TRY(oj_fgb_write_at(rows->file, block->at + block->n_bytes, bytes,
                           n_bytes, err));
    if (n > 0)
        memcpy(rows->node + block->n_rows, node, (size_t)(NODE_BYTES * n));
    for (int64_t i =
             (rows->stride - rows->n_rows % rows->stride) % rows->stride;
         i < n; i += rows->stride - (rows->n_rows + i) % rows->stride)
        add_sample(rows, &node[i]);
    block->n_bytes += n_bytes;
    block->n_rows += n;
    rows->n_bytes += n_bytes;
    rows->n_rows += n;
    return block->n_bytes < block_bytes(rows) ? OJ_OK : end_block(rows, err);
}

void oj_fgb_unsorted_free(struct oj_fgb_unsorted *rows)
{
    oj_free(rows->block);
    oj_free(rows->node);
    oj_free(rows->sample);
    memset(rows, 0, sizeof *rows);
}

/* What nodes are sorted by, upwards. */
static uint32_t key_of(const double *all, const struct oj_fgb_node *node)
{
    return UINT32_MAX - oj_hilbert_code(node->box, all);
}

/* ---- buckets ---------------------------------------------------------------
 */

/* Rows and bytes of a bucket: how many, or where they begin. */
struct extent
{
    int64_t rows, bytes;
};

struct row_run;

struct sorting
{
    const struct oj_fgb_unsorted *rows;
    int file, n_threads;
    int64_t rows_at; /* in file */

    /* The index: level 0 are the rows' own nodes. */
    int n_levels;
    int64_t n_level[MOST_LEVELS], level_at[MOST_LEVELS];
    int64_t first[MOST_LEVELS]; /* of all nodes */
    int level;                  /* the one that is made */

    /* Keys from first_key[k] on, below the next bucket's, are in bucket k. */
    int n_buckets;
    uint32_t *first_key;     /* [n_buckets] */
    struct extent *in_block; /* [n_blocks][n_buckets] */
    struct extent *bucket;   /* [n_buckets + 1] where each begins */
    struct row_run *run;     /* [n_threads] */
};

static int compare_keys(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* A key of which there is more than a bucket has one of its own. */
static oj_status choose_buckets(struct sorting *s, struct oj_error *err)
{
    int64_t n = s->rows->n_samples,
            n_wanted = s->rows->n_bytes / block_bytes(s->rows);
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

static int bucket_of(const struct sorting *s, uint32_t key)
{
    int low = 0, high = s->n_buckets; /* first_key[low] <= key */
    while (high - low > 1)
    {
        int middle = (low + high) / 2;
        if (s->first_key[middle] <= key)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static oj_status read_nodes(const struct sorting *s, int64_t b,
                            struct oj_fgb_node **out, struct oj_error *err)
{
    const struct oj_fgb_block *block = &s->rows->block[b];
    OJ_NEW(*out, block->n_rows, err);
    return read_at(s->rows->file, block->at + block->n_bytes, *out,
                   NODE_BYTES * block->n_rows, err);
}

static oj_status count_block(int64_t b, int thread, void *user,
                             struct oj_error *err)
{
    const struct sorting *s = user;
    struct extent *in = s->in_block + b * s->n_buckets;
    struct oj_fgb_node *node = NULL;
    oj_status status = read_nodes(s, b, &node, err);
    (void)thread;
    for (int64_t i = 0; status == OJ_OK && i < s->rows->block[b].n_rows; i++)
    {
        struct extent *to = &in[bucket_of(s, key_of(s->rows->box, &node[i]))];
        to->rows++;
        to->bytes += (int64_t)node[i].offset;
    }
    oj_free(node);
    return status;
}

/* From how many there are in each block to where they begin in the file. */
static void place_buckets(struct sorting *s)
{
    struct extent at = {0, 0};
    for (int k = 0; k < s->n_buckets; k++)
    {
        s->bucket[k] = at;
        for (int64_t b = 0; b < s->rows->n_blocks; b++)
        {
            struct extent *in = &s->in_block[b * s->n_buckets + k], n = *in;
            *in = at;
            at.rows += n.rows;
            at.bytes += n.bytes;
        }
    }
    s->bucket[s->n_buckets] = at;
}

/* Nodes in buckets have the key above the size, of 31 bits. */
static int64_t size_of(const struct oj_fgb_node *node)
{
    return (int64_t)(node->offset & UINT32_MAX);
}

/* ---- from blocks to buckets ------------------------------------------------
 */

/* Rows and their nodes, before and after: memory of one thread. */
struct row_run
{
    int64_t cap_rows[2], cap_bytes[2], cap_order[2], cap_at;
    struct oj_fgb_node *node[2];
    uint8_t *bytes[2];
    uint64_t *order[2]; /* key, or bucket, and number of each */
    struct extent *at;  /* of each bucket */
};

static void free_run(struct row_run *run)
{
    for (int i = 0; i < 2; i++)
    {
        oj_free(run->node[i]);
        oj_free(run->bytes[i]);
        oj_free(run->order[i]);
    }
    oj_free(run->at);
}

static oj_status make_run(struct row_run *run, int64_t n_rows, int64_t n_bytes,
                          struct oj_error *err)
{
    for (int i = 0; i < 2; i++)
    {
        OJ_ROOM(run->node[i], 0, n_rows, run->cap_rows[i], err);
        OJ_ROOM(run->bytes[i], 0, n_bytes, run->cap_bytes[i], err);
        OJ_ROOM(run->order[i], 0, n_rows, run->cap_order[i], err);
    }
    return OJ_OK;
}

static oj_status write_run(const struct sorting *s, const struct row_run *run,
                           const struct extent *from, const struct extent *n,
                           const struct extent *to, struct oj_error *err)
{
    OJ_TRY(oj_fgb_write_at(s->file, s->level_at[0] + NODE_BYTES * to->rows,
                           run->node[1] + from->rows, NODE_BYTES * n->rows,
                           err));
    return oj_fgb_write_at(s->file, s->rows_at + to->bytes,
                           run->bytes[1] + from->bytes, n->bytes, err);
}

/* Where the rows of each bucket begin in the run, and the bucket of each. */
static void place_in_run(const struct sorting *s, struct row_run *run,
                         int64_t n)
{
    struct extent sum = {0, 0};
    for (int64_t i = 0; i < n; i++)
    {
        uint32_t key = key_of(s->rows->box, &run->node[0][i]);
        int k = bucket_of(s, key);
        run->order[0][i] = (uint64_t)k;
        run->at[k].rows++;
        run->at[k].bytes += size_of(&run->node[0][i]);
        run->node[0][i].offset |= (uint64_t)key << 32;
    }
    for (int k = 0; k <= s->n_buckets; k++)
    {
        struct extent size = run->at[k];
        run->at[k] = sum;
        sum.rows += size.rows;
        sum.bytes += size.bytes;
    }
}

static oj_status spread_run(const struct sorting *s, struct row_run *run,
                            int64_t b, struct oj_error *err)
{
    const struct oj_fgb_block *block = &s->rows->block[b];
    const uint8_t *from = run->bytes[0];
    struct extent start = {0, 0};
    OJ_ROOM(run->at, 0, s->n_buckets + 1, run->cap_at, err);
    memset(run->at, 0, (size_t)(s->n_buckets + 1) * sizeof *run->at);
    place_in_run(s, run, block->n_rows);
    for (int64_t i = 0; i < block->n_rows; i++)
    {
        struct extent *to = &run->at[run->order[0][i]];
        int64_t size = size_of(&run->node[0][i]);
        run->node[1][to->rows++] = run->node[0][i];
        memcpy(run->bytes[1] + to->bytes, from, (size_t)size);
        to->bytes += size;
        from += size;
    }
    for (int k = 0; k < s->n_buckets; k++)
    {
        const struct extent n = {run->at[k].rows - start.rows,
                                 run->at[k].bytes - start.bytes};
        OJ_TRY(write_run(s, run, &start, &n, &s->in_block[b * s->n_buckets + k],
                         err));
        start = run->at[k];
    }
    return OJ_OK;
}

static oj_status spread_block(int64_t b, int thread, void *user,
                              struct oj_error *err)
{
    const struct sorting *s = user;
    const struct oj_fgb_block *block = &s->rows->block[b];
    struct row_run *run = &s->run[thread];
    OJ_TRY(make_run(run, block->n_rows, block->n_bytes, err));
    OJ_TRY(
        read_at(s->rows->file, block->at, run->bytes[0], block->n_bytes, err));
    OJ_TRY(read_at(s->rows->file, block->at + block->n_bytes, run->node[0],
                   NODE_BYTES * block->n_rows, err));
    return spread_run(s, run, b, err);
}

/* ---- the rows of a bucket --------------------------------------------------
 */

static void sort_run(struct row_run *run, int64_t n, int64_t offset)
{
    uint8_t *to = run->bytes[1];
    int64_t *from, start = 0;
    for (int64_t i = 0; i < n; i++)
        run->order[0][i] =
            (run->node[0][i].offset & ~(uint64_t)UINT32_MAX) | (uint64_t)i;
    oj_hilbert_sort(run->order, n);
    from = (int64_t *)run->order[1]; /* where rows begin */
    for (int64_t i = 0; i < n; i++)
    {
        from[i] = start;
        start += size_of(&run->node[0][i]);
    }
    for (int64_t i = 0; i < n; i++)
    {
        int64_t row = (int64_t)(run->order[0][i] & UINT32_MAX);
        int64_t size = size_of(&run->node[0][row]);
        memcpy(to, run->bytes[0] + from[row], (size_t)size);
        run->node[1][i] = run->node[0][row];
        run->node[1][i].offset = (uint64_t)offset;
        offset += size;
        to += size;
    }
}

/* Rows of one key are in order. */
static oj_status place_rows(const struct sorting *s, struct extent at,
                            int64_t end, struct oj_error *err)
{
    struct oj_fgb_node node[256];
    while (at.rows < end)
    {
        int64_t n = end - at.rows < 256 ? end - at.rows : 256;
        int64_t place = s->level_at[0] + NODE_BYTES * at.rows;
        OJ_TRY(read_at(s->file, place, node, NODE_BYTES * n, err));
        for (int64_t i = 0; i < n; i++)
        {
            int64_t size = size_of(&node[i]);
            node[i].offset = (uint64_t)at.bytes;
            at.bytes += size;
        }
        OJ_TRY(oj_fgb_write_at(s->file, place, node, NODE_BYTES * n, err));
        at.rows += n;
    }
    return OJ_OK;
}

static int has_one_key(const struct sorting *s, int64_t k)
{
    return s->first_key[k] == UINT32_MAX ||
           (k + 1 < s->n_buckets && s->first_key[k + 1] == s->first_key[k] + 1);
}

static oj_status sort_bucket(int64_t k, int thread, void *user,
                             struct oj_error *err)
{
    const struct sorting *s = user;
    const struct extent *at = &s->bucket[k], none = {0, 0};
    const struct extent n = {at[1].rows - at->rows, at[1].bytes - at->bytes};
    struct row_run *run = &s->run[thread];
    if (has_one_key(s, k))
        return place_rows(s, *at, at[1].rows, err);
    OJ_TRY(make_run(run, n.rows, n.bytes, err));
    OJ_TRY(read_at(s->file, s->level_at[0] + NODE_BYTES * at->rows,
                   run->node[0], NODE_BYTES * n.rows, err));
    OJ_TRY(
        read_at(s->file, s->rows_at + at->bytes, run->bytes[0], n.bytes, err));
    sort_run(run, n.rows, at->bytes);
    return write_run(s, run, &none, &n, at, err);
}

/* ---- index -----------------------------------------------------------------
 */

static void plan_index(struct sorting *s, int64_t at)
{
    int n = 0;
    s->n_level[0] = s->rows->n_rows;
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
    int64_t first = task * NODES_AT_ONCE, below = first * OJ_FGB_NODE_SIZE;
    int64_t n = s->n_level[s->level] - first;
    int64_t n_below = s->n_level[s->level - 1] - below;
    struct oj_fgb_node *node;
    oj_status status;
    (void)thread;
    if (n > NODES_AT_ONCE)
    {
        n = NODES_AT_ONCE;
        n_below = n * OJ_FGB_NODE_SIZE;
    }
    OJ_NEW(node, n_below, err);
    status = read_at(s->file, s->level_at[s->level - 1] + NODE_BYTES * below,
                     node, NODE_BYTES * n_below, err);
    for (int64_t i = 0; status == OJ_OK && i < n; i++)
    {
        int64_t at = i * OJ_FGB_NODE_SIZE, left = n_below - at;
        node[i] = node_above(&node[at],
                             left < OJ_FGB_NODE_SIZE ? left : OJ_FGB_NODE_SIZE,
                             s->first[s->level - 1] + below + at);
    }
    if (status == OJ_OK)
        status =
            oj_fgb_write_at(s->file, s->level_at[s->level] + NODE_BYTES * first,
                            node, NODE_BYTES * n, err);
    oj_free(node);
    return status;
}

/* ---- all of it -------------------------------------------------------------
 */

/* How many threads may hold twice so many bytes and rows each. */
static int threads_for(const struct sorting *s, int64_t n_bytes, int64_t n_rows)
{
    int64_t n = MOST_HELD / (2 * (n_bytes + (NODE_BYTES + 8) * n_rows) + 1);
    return n < 1 ? 1 : n < s->n_threads ? (int)n : s->n_threads;
}

static int threads_for_blocks(const struct sorting *s)
{
    int64_t most_bytes = 0, most_rows = 0;
    for (int64_t b = 0; b < s->rows->n_blocks; b++)
    {
        const struct oj_fgb_block *block = &s->rows->block[b];
        if (block->n_bytes > most_bytes)
            most_bytes = block->n_bytes;
        if (block->n_rows > most_rows)
            most_rows = block->n_rows;
    }
    return threads_for(s, most_bytes, most_rows);
}

static int threads_for_buckets(const struct sorting *s)
{
    struct extent most = {0, 0};
    for (int k = 0; k < s->n_buckets; k++)
    {
        int64_t n_rows = s->bucket[k + 1].rows - s->bucket[k].rows;
        int64_t n_bytes = s->bucket[k + 1].bytes - s->bucket[k].bytes;
        if (has_one_key(s, k))
            continue;
        most.rows = n_rows > most.rows ? n_rows : most.rows;
        most.bytes = n_bytes > most.bytes ? n_bytes : most.bytes;
    }
    return threads_for(s, most.bytes, most.rows);
}

static oj_status sort_all(struct sorting *s, struct oj_error *err)
{
    int64_t n = s->rows->n_blocks;
    OJ_TRY(choose_buckets(s, err));
    OJ_NEW_ZEROED(s->in_block, n * s->n_buckets, err);
    OJ_NEW(s->bucket, s->n_buckets + 1, err);
    OJ_NEW_ZEROED(s->run, s->n_threads, err);
    OJ_TRY(oj_parallel_try(s->n_threads, n, 1, count_block, s, err));
    place_buckets(s);
    OJ_TRY(oj_parallel_try(threads_for_blocks(s), n, 1, spread_block, s, err));
    OJ_TRY(oj_parallel_try(threads_for_buckets(s), s->n_buckets, 1, sort_bucket,
                           s, err));
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
    if (rows->block[rows->n_blocks].n_rows > 0)
        OJ_TRY(end_block(rows, err));
    plan_index(&s, at);
    status = sort_all(&s, err);
    oj_free(s.first_key);
    oj_free(s.in_block);
    oj_free(s.bucket);
    for (int i = 0; s.run != NULL && i < n_threads; i++)
        free_run(&s.run[i]);
    oj_free(s.run);
    return status;
}
