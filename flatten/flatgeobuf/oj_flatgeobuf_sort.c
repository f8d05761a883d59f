#include "oj_flatgeobuf_sort.h"

#include "../arrays/oj_hilbert.h"
#include "../base/oj_alloc.h"
#include "../base/oj_parallel.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* A block ends when it has 1 / BLOCKS of the bytes collected so far, but it has
 * at least LEAST_BYTES and about MOST_BYTES at most. So a bucket is read from
 * few blocks. Buckets are about as large as blocks. */
#define LEAST_BYTES (INT64_C(2) << 20)
#define MOST_BYTES (INT64_C(16) << 20)
#define BLOCKS 64

/* Approximate limit for the memory of all threads together. */
#define MOST_HELD (INT64_C(400) << 20)

#define MOST_BUCKETS 2048
/* Maximum levels of the index: nodes have 16 children, so 2^64 rows. */
#define MOST_LEVELS 16
#define NODES_AT_ONCE 4096 /* nodes of an upper level per task */

#define NODE_BYTES ((int64_t)sizeof(struct oj_flatgeobuf_node))
#define BOX_BYTES ((int64_t)(4 * sizeof(double)))

oj_status oj_flatgeobuf_write_at(int file, int64_t at, const void *bytes,
                                 int64_t n, struct oj_error *err)
{
    if (oj_write_at(file, at, bytes, n) == 0)
        return OJ_OK;
    return oj_fail(err, OJ_ERR_IO, "cannot write the rows: %s",
                   strerror(errno));
}

/* ---- collecting rows ----------------------------------------------------- */

void oj_flatgeobuf_grow_box(double *box, const double *by)
{
    for (int i = 0; i < 2; i++)
    {
        box[i] = by[i] < box[i] ? by[i] : box[i];
        box[2 + i] = by[2 + i] > box[2 + i] ? by[2 + i] : box[2 + i];
    }
}

static void copy_row_box(const struct oj_flatgeobuf_row *row, double box[4])
{
    memcpy(box, row->box, 16);
    memcpy(box + 2, row->box + (row->is_point ? 0 : 2), 16);
}

static void count_row_and_its_bytes(const struct oj_flatgeobuf_unsorted *rows,
                                    struct oj_flatgeobuf_extent *sum,
                                    const struct oj_flatgeobuf_row *row)
{
    sum->rows++;
    sum->bytes += (int64_t)sizeof *row + row->n;
    sum->in_file += row->n + (row->is_point ? rows->n_head : -BOX_BYTES);
}

static int64_t target_block_size(const struct oj_flatgeobuf_unsorted *rows)
{
    int64_t n = rows->n.bytes / BLOCKS;
    return n < LEAST_BYTES ? LEAST_BYTES : n < MOST_BYTES ? n : MOST_BYTES;
}

static oj_status record_end_of_block(struct oj_flatgeobuf_unsorted *rows,
                                     struct oj_error *err)
{
    OJ_ROOM(rows->block, rows->n_blocks + 1, rows->n_blocks + 2,
            rows->cap_blocks, err);
    rows->block[++rows->n_blocks] = rows->n;
    return OJ_OK;
}

/* Allocates all most_kept bytes at once: pages that are never written take no
 * memory. */
static oj_status init_unsorted_rows(struct oj_flatgeobuf_unsorted *rows,
                                    struct oj_error *err)
{
    OJ_ROOM(rows->block, 0, 1, rows->cap_blocks, err);
    rows->block[0] = rows->n;
    if (rows->most_kept > 0)
        rows->bytes = oj_malloc(rows->most_kept, 1);
    return OJ_OK;
}

/* Appends rows to the temporary file. If earlier rows are in memory, moves them
 * to the file first. */
static oj_status
write_rows_to_temporary_file(struct oj_flatgeobuf_unsorted *rows,
                             const uint8_t *bytes, int64_t n,
                             struct oj_error *err)
{
    if (rows->bytes != NULL)
        OJ_TRY(oj_temporary_file_write(&rows->rows, rows->bytes, rows->n.bytes,
                                       err));
    oj_free(rows->bytes);
    rows->bytes = NULL;
    return oj_temporary_file_write(&rows->rows, bytes, n, err);
}

oj_status oj_flatgeobuf_unsorted_add(struct oj_flatgeobuf_unsorted *rows,
                                     const uint8_t *bytes,
                                     const struct oj_flatgeobuf_extent *n,
                                     struct oj_error *err)
{
    if (rows->block == NULL)
        OJ_TRY(init_unsorted_rows(rows, err));
    OJ_ROOM(rows->sample, rows->n_samples, rows->n_samples + 1,
            rows->cap_samples, err);
    copy_row_box((const void *)bytes, rows->sample[rows->n_samples++]);
    if (rows->bytes == NULL || rows->n.bytes + n->bytes > rows->most_kept)
        OJ_TRY(write_rows_to_temporary_file(rows, bytes, n->bytes, err));
    else
        memcpy(rows->bytes + rows->n.bytes, bytes, (size_t)n->bytes);
    rows->n.rows += n->rows;
    rows->n.bytes += n->bytes;
    rows->n.in_file += n->in_file;
    return rows->n.bytes - rows->block[rows->n_blocks].bytes <
                   target_block_size(rows)
               ? OJ_OK
               : record_end_of_block(rows, err);
}

void oj_flatgeobuf_unsorted_free(struct oj_flatgeobuf_unsorted *rows)
{
    oj_temporary_file_close(&rows->rows);
    oj_free(rows->bytes);
    oj_free(rows->block);
    oj_free(rows->sample);
    memset(rows, 0, sizeof *rows);
}

/* ---- plan ---------------------------------------------------------------- */

/* Working memory of one thread: sorted rows in the form of the output file, and
 * their nodes. */
struct row_run
{
    struct oj_flatgeobuf_extent n;
    int64_t cap_from, cap_to, cap_node, cap_order[2];
    /* rows read from the temporary file; not used if rows are in memory */
    uint8_t *from;
    uint8_t *to;
    struct oj_flatgeobuf_node *node;
    /* [0]: pairs of key and offset (in units of 8 bytes) of each row; [1]:
     * scratch memory of the sort */
    uint64_t *order[2];
};

struct sorting
{
    struct oj_flatgeobuf_unsorted *rows;
    int file, n_threads;
    int64_t rows_at; /* offset of the rows in the output file */

    /* The index. Level 0 has one node per row. n_level: number of nodes of each
     * level; level_at: offset of the level in the output file. */
    int n_levels;
    int64_t n_level[MOST_LEVELS], level_at[MOST_LEVELS];
    /* number of the first node of each level, counted over all levels */
    int64_t first[MOST_LEVELS];
    int level; /* the level being made */

    /* Bucket k holds the rows with first_key[k] <= key < first_key[k + 1]. */
    int n_buckets;
    uint32_t *first_key; /* [n_buckets] */
    /* [n_blocks][n_buckets] where each bucket starts in each sorted block; the
     * end of the last block follows */
    struct oj_flatgeobuf_extent *stretch;
    /* [n_buckets + 1] where each bucket starts in the output */
    struct oj_flatgeobuf_extent *bucket;
    struct row_run *run; /* [n_threads] */
};

/* Returns the sort key of a row. Ascending keys are descending Hilbert codes of
 * the boxes. */
static uint32_t hilbert_sort_key(const struct sorting *s, const double *box)
{
    return UINT32_MAX - oj_hilbert_code(box, s->rows->box);
}

static int has_bucket_one_key(const struct sorting *s, int64_t k)
{
    return s->first_key[k] == UINT32_MAX ||
           (k + 1 < s->n_buckets && s->first_key[k + 1] == s->first_key[k] + 1);
}

static struct oj_flatgeobuf_extent
rows_and_bytes_between(const struct oj_flatgeobuf_extent *at)
{
    const struct oj_flatgeobuf_extent n = {at[1].rows - at[0].rows,
                                           at[1].bytes - at[0].bytes,
                                           at[1].in_file - at[0].in_file};
    return n;
}

static void compute_bucket_offsets(struct sorting *s)
{
    struct oj_flatgeobuf_extent at = {0};
    for (int k = 0; k < s->n_buckets; k++)
    {
        s->bucket[k] = at;
        for (int64_t b = 0; b < s->rows->n_blocks; b++)
        {
            struct oj_flatgeobuf_extent n =
                rows_and_bytes_between(&s->stretch[b * s->n_buckets + k]);
            at.rows += n.rows;
            at.bytes += n.bytes;
            at.in_file += n.in_file;
        }
    }
    s->bucket[s->n_buckets] = at;
}

/* Returns the number of threads such that the memory limit allows each to hold
 * two copies of any of the n blocks (or buckets) in at[]. A bucket of a single
 * key does not count, since it is processed block by block. */
static int threads_within_memory(const struct sorting *s,
                                 const struct oj_flatgeobuf_extent *at,
                                 int64_t n)
{
    int64_t most = 1, n_threads;
    for (int64_t i = 0; i < n; i++)
    {
        struct oj_flatgeobuf_extent size = rows_and_bytes_between(&at[i]);
        int64_t held =
            2 * size.bytes + size.in_file + (NODE_BYTES + 16) * size.rows;
        if (held > most && (at != s->bucket || !has_bucket_one_key(s, i)))
            most = held;
    }
    n_threads = MOST_HELD / most;
    return n_threads < 1              ? 1
           : n_threads < s->n_threads ? (int)n_threads
                                      : s->n_threads;
}

/* ---- blocks and buckets -------------------------------------------------- */

static void free_row_run(struct row_run *run)
{
    oj_free(run->from);
    oj_free(run->to);
    oj_free(run->node);
    oj_free(run->order[0]);
    oj_free(run->order[1]);
}

static oj_status reserve_sort_order(struct row_run *run, int64_t n_used,
                                    int64_t n, struct oj_error *err)
{
    for (int i = 0; i < 2; i++)
        OJ_ROOM(run->order[i], n_used, n, run->cap_order[i], err);
    return OJ_OK;
}

static struct oj_flatgeobuf_row *
row_at_position(const struct sorting *s, const struct row_run *run, int64_t at)
{
    return (void *)((s->rows->bytes != NULL ? s->rows->bytes : run->from) + at);
}

static const struct oj_flatgeobuf_row *
nth_row_of_run(const struct sorting *s, const struct row_run *run, int64_t i)
{
    return row_at_position(s, run,
                           (int64_t)(run->order[0][i] & UINT32_MAX) * 8);
}

/* Appends the rows between two positions to run. has_keys 1: the sort keys are
 * stored in the rows; 0: they are computed and stored now. */
static oj_status add_rows_to_run(const struct sorting *s, struct row_run *run,
                                 const struct oj_flatgeobuf_extent *at,
                                 int has_keys, struct oj_error *err)
{
    struct oj_flatgeobuf_extent n = rows_and_bytes_between(at), done = run->n;
    int64_t end = done.rows + n.rows, shift = at->bytes - done.bytes;
    if (s->rows->bytes == NULL)
    {
        shift = 0;
        OJ_ROOM(run->from, done.bytes, done.bytes + n.bytes, run->cap_from,
                err);
        OJ_TRY(oj_temporary_file_read(&s->rows->rows, at->bytes,
                                      run->from + done.bytes, n.bytes, err));
    }
    OJ_TRY(reserve_sort_order(run, done.rows, end, err));
    while (done.rows < end)
    {
        struct oj_flatgeobuf_row *row =
            row_at_position(s, run, done.bytes + shift);
        double box[4];
        if (!has_keys)
        {
            copy_row_box(row, box);
            row->key = hilbert_sort_key(s, box);
        }
        run->order[0][done.rows] =
            (uint64_t)row->key << 32 | (uint64_t)(done.bytes + shift) / 8;
        count_row_and_its_bytes(s->rows, &done, row);
    }
    run->n = done;
    return OJ_OK;
}

/* Chooses the limits of the buckets from the sample. A key that has more rows
 * than a bucket should have becomes a bucket of its own. */
static oj_status choose_buckets(struct sorting *s, struct oj_error *err)
{
    struct row_run *run = s->run;
    int64_t n = s->rows->n_samples,
            n_wanted = s->rows->n.bytes / target_block_size(s->rows);
    uint32_t last = 0;
    n_wanted = n_wanted < MOST_BUCKETS / 2 ? n_wanted + 1 : MOST_BUCKETS / 2;
    OJ_NEW(s->first_key, MOST_BUCKETS + 2, err);
    OJ_TRY(reserve_sort_order(run, 0, n, err));
    for (int64_t i = 0; i < n; i++)
        run->order[0][i] = (uint64_t)hilbert_sort_key(s, s->rows->sample[i])
                           << 32;
    oj_hilbert_sort(run->order, n);
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

/* Sorts block b in place and records where each bucket starts in it. */
static oj_status sort_block(int64_t b, int thread, void *user,
                            struct oj_error *err)
{
    const struct sorting *s = user;
    const struct oj_flatgeobuf_extent none = {0}, begin = s->rows->block[b];
    struct oj_flatgeobuf_extent at = begin,
                                *stretch = s->stretch + b * s->n_buckets;
    struct row_run *run = &s->run[thread];
    int k = 0;
    run->n = none;
    OJ_TRY(add_rows_to_run(s, run, &s->rows->block[b], 0, err));
    oj_hilbert_sort(run->order, run->n.rows);
    OJ_ROOM(run->to, 0, run->n.bytes, run->cap_to, err);
    stretch[0] = at;
    for (int64_t i = 0; i < run->n.rows; i++)
    {
        const struct oj_flatgeobuf_row *row = nth_row_of_run(s, run, i);
        while (k + 1 < s->n_buckets && row->key >= s->first_key[k + 1])
            stretch[++k] = at;
        memcpy(run->to + (at.bytes - begin.bytes), row, sizeof *row + row->n);
        count_row_and_its_bytes(s->rows, &at, row);
    }
    while (k + 1 < s->n_buckets)
        stretch[++k] = at;
    if (s->rows->bytes == NULL)
        return oj_temporary_file_overwrite(&s->rows->rows, begin.bytes, run->to,
                                           run->n.bytes, err);
    memcpy(s->rows->bytes + begin.bytes, run->to, (size_t)run->n.bytes);
    return OJ_OK;
}

/* Converts the sorted rows of run to the form of the output file, and makes
 * their nodes. */
static oj_status make_rows_of_file(const struct sorting *s, struct row_run *run,
                                   struct oj_error *err)
{
    struct oj_flatgeobuf_extent at = {0};
    OJ_ROOM(run->node, 0, run->n.rows, run->cap_node, err);
    OJ_ROOM(run->to, 0, run->n.in_file, run->cap_to, err);
    for (int64_t i = 0; i < run->n.rows; i++)
    {
        const struct oj_flatgeobuf_row *row = nth_row_of_run(s, run, i);
        int64_t n_head = row->is_point ? s->rows->n_head : 0;
        int64_t n_box = row->is_point ? 0 : BOX_BYTES;
        uint8_t *to = run->to + at.in_file;
        copy_row_box(row, run->node[i].box);
        run->node[i].offset = (uint64_t)at.in_file;
        memcpy(to, s->rows->head, (size_t)n_head);
        memcpy(to + n_head, (const uint8_t *)row->box + n_box,
               (size_t)(row->n - n_box));
        for (int k = 0; k < 4 && n_head > 0; k++)
            to[k] = (uint8_t)((n_head + row->n - 4) >> 8 * k);
        count_row_and_its_bytes(s->rows, &at, row);
    }
    return OJ_OK;
}

/* Writes the rows and nodes of run to the output file at *at, and advances *at.
 */
static oj_status write_rows_and_nodes(const struct sorting *s,
                                      const struct row_run *run,
                                      struct oj_flatgeobuf_extent *at,
                                      struct oj_error *err)
{
    const struct oj_flatgeobuf_extent old = *at;
    for (int64_t i = 0; i < run->n.rows; i++)
        run->node[i].offset += (uint64_t)old.in_file;
    at->rows += run->n.rows;
    at->in_file += run->n.in_file;
    OJ_TRY(oj_flatgeobuf_write_at(s->file,
                                  s->level_at[0] + NODE_BYTES * old.rows,
                                  run->node, NODE_BYTES * run->n.rows, err));
    return oj_flatgeobuf_write_at(s->file, s->rows_at + old.in_file, run->to,
                                  run->n.in_file, err);
}

/* Merges the rows of a bucket from all blocks. A bucket of a single key needs
 * no sort, so it is written block by block. */
static oj_status sort_and_write_bucket(int64_t k, int thread, void *user,
                                       struct oj_error *err)
{
    const struct sorting *s = user;
    const struct oj_flatgeobuf_extent none = {0};
    struct row_run *run = &s->run[thread];
    struct oj_flatgeobuf_extent at = s->bucket[k];
    run->n = none;
    for (int64_t b = 0; b < s->rows->n_blocks; b++)
    {
        OJ_TRY(
            add_rows_to_run(s, run, &s->stretch[b * s->n_buckets + k], 1, err));
        if (!has_bucket_one_key(s, k) && b + 1 < s->rows->n_blocks)
            continue;
        oj_hilbert_sort(run->order, run->n.rows);
        OJ_TRY(make_rows_of_file(s, run, err));
        OJ_TRY(write_rows_and_nodes(s, run, &at, err));
        run->n = none;
    }
    return OJ_OK;
}

static oj_status sort_rows_by_buckets(struct sorting *s, struct oj_error *err)
{
    int64_t n = s->rows->n_blocks;
    OJ_TRY(choose_buckets(s, err));
    OJ_NEW(s->stretch, n * s->n_buckets + 1, err);
    OJ_NEW(s->bucket, s->n_buckets + 1, err);
    s->stretch[n * s->n_buckets] = s->rows->n;
    OJ_TRY(oj_parallel_try(threads_within_memory(s, s->rows->block, n), n, 1,
                           sort_block, s, err));
    compute_bucket_offsets(s);
    return oj_parallel_try(threads_within_memory(s, s->bucket, s->n_buckets),
                           s->n_buckets, 1, sort_and_write_bucket, s, err);
}

/* ---- index --------------------------------------------------------------- */

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

/* Returns the parent of n nodes. Its offset is `first`, the number of the first
 * of these nodes. */
static struct oj_flatgeobuf_node
parent_of_nodes(const struct oj_flatgeobuf_node *below, int64_t n,
                int64_t first)
{
    struct oj_flatgeobuf_node up = {{(double)INFINITY, (double)INFINITY,
                                     (double)-INFINITY, (double)-INFINITY},
                                    (uint64_t)first};
    for (int64_t i = 0; i < n; i++)
        oj_flatgeobuf_grow_box(up.box, below[i].box);
    return up;
}

/* Makes up to NODES_AT_ONCE nodes of the current level, from number task *
 * NODES_AT_ONCE on. */
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
    OJ_ROOM(run->node, 0, n_below, run->cap_node, err);
    if (oj_read_at(s->file, s->level_at[s->level - 1] + NODE_BYTES * below,
                   run->node, NODE_BYTES * n_below) != 0)
        return oj_fail(err, OJ_ERR_IO,
                       "cannot read back the index of the file: %s",
                       strerror(errno));
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = i * OJ_FGB_NODE_SIZE, left = n_below - at;
        run->node[i] = parent_of_nodes(
            &run->node[at], left < OJ_FGB_NODE_SIZE ? left : OJ_FGB_NODE_SIZE,
            s->first[s->level - 1] + below + at);
    }
    return oj_flatgeobuf_write_at(s->file,
                                  s->level_at[s->level] + NODE_BYTES * first,
                                  run->node, NODE_BYTES * n, err);
}

/* ---- all steps ----------------------------------------------------------- */

static oj_status sort_and_index_rows(struct sorting *s, struct oj_error *err)
{
    OJ_NEW_ZEROED(s->run, s->n_threads, err);
    OJ_TRY(sort_rows_by_buckets(s, err));
    for (s->level = 1; s->level < s->n_levels; s->level++)
        OJ_TRY(oj_parallel_try(s->n_threads,
                               (s->n_level[s->level] - 1) / NODES_AT_ONCE + 1,
                               1, make_index_nodes_of_level, s, err));
    return OJ_OK;
}

oj_status oj_flatgeobuf_sort(struct oj_flatgeobuf_unsorted *rows, int file,
                             int64_t at, int n_threads, struct oj_error *err)
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
