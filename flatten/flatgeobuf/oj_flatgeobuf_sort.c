#include "oj_flatgeobuf_sort.h"

#include "../arrays/oj_hilbert.h"
#include "../base/oj_array.h"
#include "../base/oj_threads.h"
#include "oj_flatbuffer.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Of a block, and about those of a bucket: many rows make them large, so that
 * there are not too many places to read from. */
#define LEAST_BYTES (INT64_C(2) << 20)
#define MOST_BYTES (INT64_C(16) << 20)
#define BLOCKS 64

/* All that threads hold at once, about. */
#define MOST_HELD (INT64_C(400) << 20)

#define SAMPLES 65536
#define MOST_BUCKETS 2048
#define MOST_LEVELS 16     /* of 16 nodes each: 2^64 rows */
#define NODES_AT_ONCE 4096 /* of an upper level */
#define ROWS_AT_ONCE 4096  /* from memory to the file */

#define NODE_BYTES ((int64_t)sizeof(struct oj_fgb_node))
#define LEAST_ROW_BYTES 128 /* of rows in memory, in the mean */

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

static int64_t target_block_size(const struct oj_fgb_unsorted *rows)
{
    int64_t n = rows->n.bytes / BLOCKS;
    return n < LEAST_BYTES ? LEAST_BYTES : n < MOST_BYTES ? n : MOST_BYTES;
}

static oj_status record_end_of_block(struct oj_fgb_unsorted *rows,
                                     struct oj_error *err)
{
    OJ_ROOM(rows->block, rows->n_blocks + 1, rows->n_blocks + 2,
            rows->cap_blocks, err);
    rows->block[++rows->n_blocks] = rows->n;
    return OJ_OK;
}

/* A row begins with its size but for that. */
static int64_t size_of_row_at(const uint8_t *row)
{
    return 4 + (int64_t)oj_le32(row);
}

static const uint8_t *row_bytes_of_node(const struct oj_fgb_node *node)
{
    return (const uint8_t *)(uintptr_t)node->offset;
}

/* Nodes of n rows, one behind another, tell where these are. */
static void set_row_address_of_nodes(struct oj_fgb_node *node, int64_t n,
                                     const uint8_t *at)
{
    for (int64_t i = 0; i < n; i++, at += size_of_row_at(at))
        node[i].offset = (uintptr_t)at;
}

static void free_rows_in_memory(struct oj_fgb_unsorted *rows)
{
    oj_free(rows->bytes);
    oj_free(rows->node);
    rows->bytes = NULL;
    rows->node = NULL;
}

/* Rows to the files, those in memory before them. */
static oj_status write_rows_to_temporary_files(struct oj_fgb_unsorted *rows,
                                               const uint8_t *bytes,
                                               int64_t n_bytes,
                                               const struct oj_fgb_node *node,
                                               int64_t n, struct oj_error *err)
{
    if (rows->bytes != NULL)
    {
        OJ_TRY(oj_temporary_file_write(&rows->rows, rows->bytes, rows->n.bytes,
                                       err));
        OJ_TRY(oj_temporary_file_write(&rows->nodes, rows->node,
                                       NODE_BYTES * rows->n.rows, err));
    }
    free_rows_in_memory(rows);
    OJ_TRY(oj_temporary_file_write(&rows->rows, bytes, n_bytes, err));
    return oj_temporary_file_write(&rows->nodes, node, NODE_BYTES * n, err);
}

/* Memory is asked for once: what is not used costs nothing. */
static oj_status init_unsorted_rows(struct oj_fgb_unsorted *rows,
                                    struct oj_error *err)
{
    OJ_ROOM(rows->block, 0, 1, rows->cap_blocks, err);
    rows->block[0] = rows->n;
    if (rows->most_kept == 0)
        return OJ_OK;
    rows->bytes = oj_malloc(rows->most_kept, 1);
    rows->node =
        oj_malloc(rows->most_kept / LEAST_ROW_BYTES, sizeof *rows->node);
    if (rows->bytes == NULL || rows->node == NULL)
        free_rows_in_memory(rows);
    return OJ_OK;
}

oj_status oj_fgb_unsorted_add(struct oj_fgb_unsorted *rows,
                              const uint8_t *bytes, int64_t n_bytes,
                              const struct oj_fgb_node *node, int64_t n,
                              struct oj_error *err)
{
    struct oj_fgb_extent old = rows->n,
                         end = {old.rows + n, old.bytes + n_bytes};
    if (rows->block == NULL)
        OJ_TRY(init_unsorted_rows(rows, err));
    if (rows->bytes == NULL || end.bytes > rows->most_kept ||
        end.rows > rows->most_kept / LEAST_ROW_BYTES)
        OJ_TRY(
            write_rows_to_temporary_files(rows, bytes, n_bytes, node, n, err));
    else
    {
        memcpy(rows->bytes + old.bytes, bytes, (size_t)n_bytes);
        memcpy(rows->node + old.rows, node, (size_t)(NODE_BYTES * n));
        set_row_address_of_nodes(rows->node + old.rows, n,
                                 rows->bytes + old.bytes);
    }
    rows->n = end;
    return rows->n.bytes - rows->block[rows->n_blocks].bytes <
                   target_block_size(rows)
               ? OJ_OK
               : record_end_of_block(rows, err);
}

void oj_fgb_unsorted_free(struct oj_fgb_unsorted *rows)
{
    oj_temporary_file_close(&rows->rows);
    oj_temporary_file_close(&rows->nodes);
    free_rows_in_memory(rows);
    oj_free(rows->block);
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
    uint64_t *order[2]; /* key and number of each; the other */
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

    struct oj_fgb_extent written; /* of rows in memory: those in the file */
};

/* What nodes are sorted by, upwards. */
static uint32_t hilbert_sort_key(const double *all,
                                 const struct oj_fgb_node *node)
{
    return UINT32_MAX - oj_hilbert_code(node->box, all);
}

static int has_one_key(const struct sorting *s, int64_t k)
{
    return s->first_key[k] == UINT32_MAX ||
           (k + 1 < s->n_buckets && s->first_key[k + 1] == s->first_key[k] + 1);
}

static struct oj_fgb_extent extent_difference(const struct oj_fgb_extent *at)
{
    const struct oj_fgb_extent n = {at[1].rows - at[0].rows,
                                    at[1].bytes - at[0].bytes};
    return n;
}

static void compute_bucket_offsets(struct sorting *s)
{
    struct oj_fgb_extent at = {0, 0};
    for (int k = 0; k < s->n_buckets; k++)
    {
        s->bucket[k] = at;
        for (int64_t b = 0; b < s->rows->n_blocks; b++)
        {
            struct oj_fgb_extent n =
                extent_difference(&s->stretch[b * s->n_buckets + k]);
            at.rows += n.rows;
            at.bytes += n.bytes;
        }
    }
    s->bucket[s->n_buckets] = at;
}

/* How many threads may hold twice the rows of any of the n blocks, or buckets,
 * that begin at at. A bucket of one key is not held. */
static int threads_within_memory(const struct sorting *s,
                                 const struct oj_fgb_extent *at, int64_t n)
{
    int64_t most = 1, n_threads;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_fgb_extent size = extent_difference(&at[i]);
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

static void free_row_run(struct row_run *run)
{
    for (int i = 0; i < 2; i++)
    {
        oj_free(run->node[i]);
        oj_free(run->bytes[i]);
        oj_free(run->order[i]);
    }
}

/* Adds the rows of the temporary files between two places. */
static oj_status read_row_extent(const struct sorting *s, struct row_run *run,
                                 const struct oj_fgb_extent *at,
                                 struct oj_error *err)
{
    struct oj_fgb_extent n = extent_difference(at), old = run->n;
    run->n.rows += n.rows;
    run->n.bytes += n.bytes;
    OJ_ROOM(run->node[0], old.rows, run->n.rows, run->cap_rows[0], err);
    OJ_ROOM(run->bytes[0], old.bytes, run->n.bytes, run->cap_bytes[0], err);
    OJ_TRY(oj_temporary_file_read(&s->rows->nodes, NODE_BYTES * at->rows,
                                  run->node[0] + old.rows, NODE_BYTES * n.rows,
                                  err));
    return oj_temporary_file_read(&s->rows->rows, at->bytes,
                                  run->bytes[0] + old.bytes, n.bytes, err);
}

/* Copies n rows in an order, by numbers of their nodes, and their nodes to the
 * second half of run. */
static oj_status copy_rows_in_order(struct row_run *run,
                                    const struct oj_fgb_node *node,
                                    const uint64_t *order, int64_t n,
                                    struct oj_error *err)
{
    int64_t n_bytes = 0;
    for (int64_t i = 0; i < n; i++)
        n_bytes +=
            size_of_row_at(row_bytes_of_node(&node[order[i] & UINT32_MAX]));
    OJ_ROOM(run->node[1], 0, n, run->cap_rows[1], err);
    OJ_ROOM(run->bytes[1], 0, n_bytes, run->cap_bytes[1], err);
    run->n.rows = n;
    run->n.bytes = 0;
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_fgb_node *from = &node[order[i] & UINT32_MAX];
        int64_t size = size_of_row_at(row_bytes_of_node(from));
        memcpy(run->bytes[1] + run->n.bytes, row_bytes_of_node(from),
               (size_t)size);
        run->node[1][i] = *from;
        run->node[1][i].offset = (uint64_t)run->n.bytes;
        run->n.bytes += size;
    }
    return OJ_OK;
}

static void compute_hilbert_keys(const struct sorting *s,
                                 const struct oj_fgb_node *node,
                                 uint64_t *order, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++)
        order[i] = (uint64_t)hilbert_sort_key(s->rows->box, &node[i]) << 32 |
                   (uint64_t)i;
}

static oj_status sort_nodes_by_hilbert_key(const struct sorting *s,
                                           struct row_run *run,
                                           const struct oj_fgb_node *node,
                                           int64_t n, struct oj_error *err)
{
    for (int i = 0; i < 2; i++)
        OJ_ROOM(run->order[i], 0, n, run->cap_order[i], err);
    compute_hilbert_keys(s, node, run->order[0], 0, n);
    oj_hilbert_sort(run->order, n);
    return OJ_OK;
}

/* Those that were read. */
static oj_status sort_rows_of_run(const struct sorting *s, struct row_run *run,
                                  struct oj_error *err)
{
    set_row_address_of_nodes(run->node[0], run->n.rows, run->bytes[0]);
    OJ_TRY(sort_nodes_by_hilbert_key(s, run, run->node[0], run->n.rows, err));
    return copy_rows_in_order(run, run->node[0], run->order[0], run->n.rows,
                              err);
}

/* By a sample of the rows. A key of which there is more than a bucket has one
 * of its own. */
static oj_status choose_buckets(struct sorting *s, struct oj_error *err)
{
    struct row_run *run = s->run;
    int64_t n = s->rows->n.rows < SAMPLES ? s->rows->n.rows : SAMPLES,
            n_wanted = s->rows->n.bytes / target_block_size(s->rows);
    uint32_t last = 0;
    n_wanted = n_wanted < MOST_BUCKETS / 2 ? n_wanted + 1 : MOST_BUCKETS / 2;
    OJ_NEW(s->first_key, MOST_BUCKETS + 2, err);
    OJ_ROOM(run->node[0], 0, n, run->cap_rows[0], err);
    for (int64_t i = 0; i < n; i++)
        OJ_TRY(oj_temporary_file_read(&s->rows->nodes,
                                      NODE_BYTES * i * (s->rows->n.rows / n),
                                      &run->node[0][i], NODE_BYTES, err));
    OJ_TRY(sort_nodes_by_hilbert_key(s, run, run->node[0], n, err));
    s->first_key[s->n_buckets++] = 0;
    for (int64_t k = 1; k < n_wanted; k++)
    {
        uint32_t key = (uint32_t)(run->order[0][k * n / n_wanted] >> 32);
        uint32_t first = key == last && key < UINT32_MAX ? key + 1 : key;
        last = key;
        if (first > s->first_key[s->n_buckets - 1])
            s->first_key[s->n_buckets++] = first;
    }
    return OJ_OK;
}

/* Where the stretches of the buckets begin in a sorted block. */
static void find_bucket_stretches(const struct sorting *s,
                                  const struct row_run *run, int64_t b)
{
    struct oj_fgb_extent at = s->rows->block[b],
                         *stretch = s->stretch + b * s->n_buckets;
    int k = 0;
    stretch[0] = at;
    for (int64_t i = 0; i < run->n.rows; i++)
    {
        while (k + 1 < s->n_buckets &&
               run->order[0][i] >> 32 >= s->first_key[k + 1])
            stretch[++k] = at;
        at.rows++;
        at.bytes += size_of_row_at(
            row_bytes_of_node(&run->node[0][run->order[0][i] & UINT32_MAX]));
    }
    while (k + 1 < s->n_buckets)
        stretch[++k] = at;
}

static oj_status sort_block_on_disk(int64_t b, int thread, void *user,
                                    struct oj_error *err)
{
    const struct sorting *s = user;
    const struct oj_fgb_extent *at = &s->rows->block[b], none = {0, 0};
    struct row_run *run = &s->run[thread];
    run->n = none;
    OJ_TRY(read_row_extent(s, run, at, err));
    OJ_TRY(sort_rows_of_run(s, run, err));
    find_bucket_stretches(s, run, b);
    OJ_TRY(oj_temporary_file_change(&s->rows->nodes, NODE_BYTES * at->rows,
                                    run->node[1], NODE_BYTES * run->n.rows,
                                    err));
    return oj_temporary_file_change(&s->rows->rows, at->bytes, run->bytes[1],
                                    run->n.bytes, err);
}

/* Rows in order go to the file at *at. */
static oj_status write_sorted_rows_and_nodes(const struct sorting *s,
                                             const struct row_run *run,
                                             struct oj_fgb_extent *at,
                                             struct oj_error *err)
{
    const struct oj_fgb_extent old = *at;
    for (int64_t i = 0; i < run->n.rows; i++)
        run->node[1][i].offset += (uint64_t)old.bytes;
    at->rows += run->n.rows;
    at->bytes += run->n.bytes;
    OJ_TRY(oj_fgb_write_at(s->file, s->level_at[0] + NODE_BYTES * old.rows,
                           run->node[1], NODE_BYTES * run->n.rows, err));
    return oj_fgb_write_at(s->file, s->rows_at + old.bytes, run->bytes[1],
                           run->n.bytes, err);
}

/* Rows of one key are in order. */
static oj_status sort_and_write_bucket(int64_t k, int thread, void *user,
                                       struct oj_error *err)
{
    const struct sorting *s = user;
    const struct oj_fgb_extent none = {0, 0};
    struct row_run *run = &s->run[thread];
    struct oj_fgb_extent at = s->bucket[k];
    run->n = none;
    for (int64_t b = 0; b < s->rows->n_blocks; b++)
    {
        OJ_TRY(read_row_extent(s, run, &s->stretch[b * s->n_buckets + k], err));
        if (!has_one_key(s, k) && b + 1 < s->rows->n_blocks)
            continue;
        OJ_TRY(sort_rows_of_run(s, run, err));
        OJ_TRY(write_sorted_rows_and_nodes(s, run, &at, err));
        run->n = none;
    }
    return OJ_OK;
}

/* ---- rows in memory --------------------------------------------------------
 */

static void compute_hilbert_keys_of_slice(int64_t first, int64_t end,
                                          void *user)
{
    const struct sorting *s = user;
    compute_hilbert_keys(s, s->rows->node, s->run->order[0], first, end);
}

static oj_status copy_slice_in_order(int64_t task, int thread, void *user,
                                     struct oj_error *err)
{
    const struct sorting *s = user;
    int64_t first = task * ROWS_AT_ONCE, n = s->rows->n.rows - first;
    return copy_rows_in_order(&s->run[thread], s->rows->node,
                              s->run->order[0] + first,
                              n < ROWS_AT_ONCE ? n : ROWS_AT_ONCE, err);
}

static oj_status write_slice(int64_t task, int thread, oj_status status,
                             void *user, struct oj_error *err)
{
    struct sorting *s = user;
    (void)task;
    return status == OJ_OK ? write_sorted_rows_and_nodes(s, &s->run[thread],
                                                         &s->written, err)
                           : status;
}

static oj_status sort_rows_in_memory(struct sorting *s, struct oj_error *err)
{
    int64_t n = s->rows->n.rows;
    for (int i = 0; i < 2; i++)
        OJ_ROOM(s->run->order[i], 0, n, s->run->cap_order[i], err);
    oj_parallel_slices(s->n_threads, n, ROWS_AT_ONCE,
                       compute_hilbert_keys_of_slice, s);
    oj_hilbert_sort(s->run->order, n);
    return oj_parallel_in_order(s->n_threads, (n - 1) / ROWS_AT_ONCE + 1,
                                copy_slice_in_order, write_slice, s, err);
}

/* ---- index -----------------------------------------------------------------
 */

static void compute_index_level_offsets(struct sorting *s, int64_t at)
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
static struct oj_fgb_node parent_of_nodes(const struct oj_fgb_node *below,
                                          int64_t n, int64_t first)
{
    struct oj_fgb_node up = {{(double)INFINITY, (double)INFINITY,
                              (double)-INFINITY, (double)-INFINITY},
                             (uint64_t)first};
    for (int64_t i = 0; i < n; i++)
        oj_fgb_grow_box(up.box, below[i].box);
    return up;
}

/* Nodes from task * NODES_AT_ONCE on of the level that is made. */
static oj_status make_index_nodes_of_level(int64_t task, int thread, void *user,
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
            parent_of_nodes(&run->node[0][at],
                            left < OJ_FGB_NODE_SIZE ? left : OJ_FGB_NODE_SIZE,
                            s->first[s->level - 1] + below + at);
    }
    return oj_fgb_write_at(s->file, s->level_at[s->level] + NODE_BYTES * first,
                           run->node[0], NODE_BYTES * n, err);
}

/* ---- all of it -------------------------------------------------------------
 */

static oj_status bucket_sort_rows_on_disk(struct sorting *s,
                                          struct oj_error *err)
{
    int64_t n = s->rows->n_blocks;
    OJ_TRY(choose_buckets(s, err));
    OJ_NEW(s->stretch, n * s->n_buckets + 1, err);
    OJ_NEW(s->bucket, s->n_buckets + 1, err);
    s->stretch[n * s->n_buckets] = s->rows->n;
    OJ_TRY(oj_parallel_try(threads_within_memory(s, s->rows->block, n), n, 1,
                           sort_block_on_disk, s, err));
    compute_bucket_offsets(s);
    return oj_parallel_try(threads_within_memory(s, s->bucket, s->n_buckets),
                           s->n_buckets, 1, sort_and_write_bucket, s, err);
}

static oj_status sort_and_index_rows(struct sorting *s, struct oj_error *err)
{
    OJ_NEW_ZEROED(s->run, s->n_threads, err);
    OJ_TRY(s->rows->bytes != NULL ? sort_rows_in_memory(s, err)
                                  : bucket_sort_rows_on_disk(s, err));
    for (s->level = 1; s->level < s->n_levels; s->level++)
        OJ_TRY(oj_parallel_try(s->n_threads,
                               (s->n_level[s->level] - 1) / NODES_AT_ONCE + 1,
                               1, make_index_nodes_of_level, s, err));
    return OJ_OK;
}

oj_status oj_fgb_sort(struct oj_fgb_unsorted *rows, int file, int64_t at,
                      int n_threads, struct oj_error *err)
{
    struct sorting s = {.rows = rows, .file = file, .n_threads = n_threads};
    oj_status status;
    if (rows->block[rows->n_blocks].rows < rows->n.rows)
        OJ_TRY(record_end_of_block(rows, err));
    compute_index_level_offsets(&s, at);
    status = sort_and_index_rows(&s, err);
    oj_free(s.first_key);
    oj_free(s.stretch);
    oj_free(s.bucket);
    for (int i = 0; s.run != NULL && i < n_threads; i++)
        free_row_run(&s.run[i]);
    oj_free(s.run);
    return status;
}
