#include "oj_flatgeobuf_sort.h"

#include "../arrays/oj_hilbert.h"
#include "../base/oj_array.h"
#include "../base/oj_threads.h"
#include "oj_flatbuffer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_ROW_BYTES 128 /* of rows in memory, in the mean */
#define LEAST_ROOM (INT64_C(16) << 20)

#define BUCKETS 32
#define BUCKET_ROOM (INT64_C(4) << 20)

#define MOST_LEVELS 16     /* of 16 nodes each: 2^64 rows */
#define NODES_AT_ONCE 4096 /* of an upper level */
#define ROWS_AT_ONCE 4096  /* from memory to the file */

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

/* A row begins with its size but for that. */
static int64_t size_at(const uint8_t *row)
{
    return 4 + (int64_t)oj_le32(row);
}

static const uint8_t *row_of(const struct oj_fgb_node *node)
{
    return (const uint8_t *)(uintptr_t)node->offset;
}

/* Nodes of n rows, one behind another, tell where these are. */
static void place_rows(struct oj_fgb_node *node, int64_t n, const uint8_t *at)
{
    for (int64_t i = 0; i < n; i++, at += size_at(at))
        node[i].offset = (uintptr_t)at;
}

static void free_memory(struct oj_fgb_unsorted *rows)
{
    oj_free(rows->bytes);
    oj_free(rows->node);
    rows->bytes = NULL;
    rows->node = NULL;
}

void oj_fgb_unsorted_free(struct oj_fgb_unsorted *rows)
{
    oj_temporary_file_close(&rows->rows);
    oj_temporary_file_close(&rows->nodes);
    free_memory(rows);
    memset(rows, 0, sizeof *rows);
}

/* All of it at once, less where that is too much: what is not used costs
 * nothing. */
static oj_status make_room(struct oj_fgb_unsorted *rows, struct oj_error *err)
{
    while ((rows->bytes = oj_malloc(rows->room, 1)) == NULL &&
           rows->room > LEAST_ROOM)
        rows->room /= 2;
    if (rows->bytes == NULL)
        return oj_fail_nomem(err, rows->room, 1);
    rows->cap_bytes = rows->room;
    rows->cap_nodes = rows->room / LEAST_ROW_BYTES;
    OJ_NEW(rows->node, rows->cap_nodes, err);
    return OJ_OK;
}

static oj_status spool_rows(struct oj_fgb_unsorted *rows, const uint8_t *bytes,
                            int64_t n_bytes, const struct oj_fgb_node *node,
                            int64_t n, struct oj_error *err)
{
    if (!rows->rows.is_open)
    {
        OJ_TRY(oj_temporary_file_open(rows->near, "rows", &rows->rows, err));
        OJ_TRY(oj_temporary_file_open(rows->near, "rows", &rows->nodes, err));
    }
    OJ_TRY(oj_temporary_file_write(&rows->rows, bytes, n_bytes, err));
    return oj_temporary_file_write(&rows->nodes, node, NODE_BYTES * n, err);
}

static oj_status spool_held(struct oj_fgb_unsorted *rows, struct oj_error *err)
{
    const struct oj_fgb_extent none = {0, 0}, n = rows->held;
    rows->held = none;
    return spool_rows(rows, rows->bytes, n.bytes, rows->node, n.rows, err);
}

oj_status oj_fgb_unsorted_add(struct oj_fgb_unsorted *rows,
                              const uint8_t *bytes, int64_t n_bytes,
                              const struct oj_fgb_node *node, int64_t n,
                              struct oj_error *err)
{
    struct oj_fgb_extent *held = &rows->held;
    if (rows->bytes == NULL)
        OJ_TRY(make_room(rows, err));
    if (held->bytes + n_bytes > rows->cap_bytes ||
        held->rows + n > rows->cap_nodes)
        OJ_TRY(spool_held(rows, err));
    rows->n.rows += n;
    rows->n.bytes += n_bytes;
    if (n_bytes > rows->cap_bytes || n > rows->cap_nodes)
        return spool_rows(rows, bytes, n_bytes, node, n, err);
    memcpy(rows->bytes + held->bytes, bytes, (size_t)n_bytes);
    memcpy(rows->node + held->rows, node, (size_t)(NODE_BYTES * n));
    place_rows(rows->node + held->rows, n, rows->bytes + held->bytes);
    held->rows += n;
    held->bytes += n_bytes;
    return OJ_OK;
}

/* ---- rows in memory --------------------------------------------------------
 */

/* Rows in order, and nodes: memory of one thread. */
struct row_run
{
    struct oj_fgb_extent n;
    uint8_t *bytes;
    struct oj_fgb_node *node;
    int64_t cap_bytes, cap_nodes;
    oj_status status;
    struct oj_error error;
};

struct sorting
{
    struct oj_fgb_unsorted *rows; /* its memory has those that are sorted */
    int file, n_threads;
    int64_t rows_at; /* in file */
    struct oj_fgb_extent written;

    /* The index: level 0 are the rows' own nodes. */
    int n_levels;
    int64_t n_level[MOST_LEVELS], level_at[MOST_LEVELS];
    int64_t first[MOST_LEVELS]; /* of all nodes */
    int level;                  /* the one that is made */

    uint64_t *order[2]; /* key and number of each row; the other */
    int64_t cap_order[2];
    struct row_run *run; /* [n_threads] */
    oj_status status;
    struct oj_error *error;
};

/* What nodes are sorted by, upwards. */
static uint32_t hilbert_sort_key(const struct sorting *s, int64_t row)
{
    return UINT32_MAX - oj_hilbert_code(s->rows->node[row].box, s->rows->box);
}

static void order_slice(int64_t first, int64_t end, void *user)
{
    const struct sorting *s = user;
    for (int64_t i = first; i < end; i++)
        s->order[0][i] = (uint64_t)hilbert_sort_key(s, i) << 32 | (uint64_t)i;
}

/* Copies n rows in an order, and their nodes. */
static oj_status gather_rows(struct row_run *run,
                             const struct oj_fgb_node *node,
                             const uint64_t *order, int64_t n,
                             struct oj_error *err)
{
    int64_t n_bytes = 0;
    for (int64_t i = 0; i < n; i++)
        n_bytes += size_at(row_of(&node[order[i] & UINT32_MAX]));
    OJ_ROOM(run->node, 0, n, run->cap_nodes, err);
    OJ_ROOM(run->bytes, 0, n_bytes, run->cap_bytes, err);
    run->n.rows = n;
    run->n.bytes = 0;
    for (int64_t i = 0; i < n; i++)
    {
        const struct oj_fgb_node *from = &node[order[i] & UINT32_MAX];
        int64_t size = size_at(row_of(from));
        memcpy(run->bytes + run->n.bytes, row_of(from), (size_t)size);
        run->node[i] = *from;
        run->node[i].offset = (uint64_t)run->n.bytes;
        run->n.bytes += size;
    }
    return OJ_OK;
}

static void gather_slice(int64_t task, int thread, void *user)
{
    const struct sorting *s = user;
    struct row_run *run = &s->run[thread];
    int64_t first = task * ROWS_AT_ONCE, n = s->rows->held.rows - first;
    run->status = gather_rows(run, s->rows->node, s->order[0] + first,
                              n < ROWS_AT_ONCE ? n : ROWS_AT_ONCE, &run->error);
}

static oj_status write_run(struct sorting *s, const struct row_run *run,
                           struct oj_error *err)
{
    const struct oj_fgb_extent at = s->written;
    for (int64_t i = 0; i < run->n.rows; i++)
        run->node[i].offset += (uint64_t)at.bytes;
    s->written.rows += run->n.rows;
    s->written.bytes += run->n.bytes;
    OJ_TRY(oj_fgb_write_at(s->file, s->level_at[0] + NODE_BYTES * at.rows,
                           run->node, NODE_BYTES * run->n.rows, err));
    return oj_fgb_write_at(s->file, s->rows_at + at.bytes, run->bytes,
                           run->n.bytes, err);
}

static void write_slice(int64_t task, int thread, void *user)
{
    struct sorting *s = user;
    struct row_run *run = &s->run[thread];
    (void)task;
    if (s->status == OJ_OK && run->status == OJ_OK)
        run->status = write_run(s, run, &run->error);
    if (s->status == OJ_OK && run->status != OJ_OK)
        s->status = oj_fail(s->error, run->status, "%s", run->error.message);
}

/* They go to the file behind those that are there. */
static oj_status sort_held(struct sorting *s, struct oj_error *err)
{
    int64_t n = s->rows->held.rows;
    for (int i = 0; i < 2; i++)
        OJ_ROOM(s->order[i], 0, n, s->cap_order[i], err);
    oj_parallel_slices(s->n_threads, n, ROWS_AT_ONCE, order_slice, s);
    oj_hilbert_sort(s->order, n);
    s->error = err;
    oj_parallel_in_order(s->n_threads, (n - 1) / ROWS_AT_ONCE + 1, gather_slice,
                         write_slice, s);
    return s->status;
}

/* ---- rows in temporary files ------------------------------------------------
 */

struct code_range
{
    struct oj_fgb_unsorted rows;
    uint32_t least, most; /* of their keys */
};

/* The rows from *at on that there is memory for, one at least; goes behind
 * them. */
static oj_status read_rows(struct oj_fgb_unsorted *to,
                           const struct oj_fgb_unsorted *from,
                           struct oj_fgb_extent *at, struct oj_error *err)
{
    const struct oj_fgb_extent none = {0, 0};
    int64_t n = from->n.bytes - at->bytes, size = 0;
    n = n < to->cap_bytes ? n : to->cap_bytes;
    to->held = none;
    OJ_TRY(oj_temporary_file_read(&from->rows, at->bytes, to->bytes, n, err));
    while (to->held.rows < to->cap_nodes && to->held.bytes + 4 <= n &&
           (size = size_at(to->bytes + to->held.bytes)) <= n - to->held.bytes)
    {
        to->held.rows++;
        to->held.bytes += size;
    }
    if (to->held.rows == 0) /* one that is larger */
    {
        OJ_ROOM(to->bytes, 0, size, to->cap_bytes, err);
        return read_rows(to, from, at, err);
    }
    OJ_TRY(oj_temporary_file_read(&from->nodes, NODE_BYTES * at->rows, to->node,
                                  NODE_BYTES * to->held.rows, err));
    place_rows(to->node, to->held.rows, to->bytes);
    at->rows += to->held.rows;
    at->bytes += to->held.bytes;
    return OJ_OK;
}

/* Those in memory, with keys from least to most. */
static oj_status deal_rows(const struct sorting *s, struct code_range *buckets,
                           uint32_t least, uint32_t most, struct oj_error *err)
{
    uint64_t width = (uint64_t)most - least + 1;
    for (int64_t i = 0; i < s->rows->held.rows; i++)
    {
        const struct oj_fgb_node *node = &s->rows->node[i];
        uint32_t key = hilbert_sort_key(s, i);
        struct code_range *to =
            &buckets[(key - least) * (uint64_t)BUCKETS / width];
        if (to->rows.n.rows == 0)
        {
            to->rows.near = s->rows->near;
            to->rows.room = BUCKET_ROOM;
            to->least = to->most = key;
        }
        to->least = key < to->least ? key : to->least;
        to->most = key > to->most ? key : to->most;
        OJ_TRY(oj_fgb_unsorted_add(&to->rows, row_of(node),
                                   size_at(row_of(node)), node, 1, err));
    }
    return OJ_OK;
}

static oj_status sort_bucket(struct sorting *s, struct code_range *from,
                             struct oj_error *err);

/* All that is in the files of one, which are then empty. */
static oj_status sort_buckets(struct sorting *s, struct code_range *from,
                              struct code_range *buckets, struct oj_error *err)
{
    struct oj_fgb_extent at = {0, 0};
    while (at.rows < from->rows.n.rows)
    {
        OJ_TRY(read_rows(s->rows, &from->rows, &at, err));
        OJ_TRY(from->least == from->most ||
                       s->rows->held.rows == from->rows.n.rows
                   ? sort_held(s, err)
                   : deal_rows(s, buckets, from->least, from->most, err));
    }
    oj_temporary_file_close(&from->rows.rows);
    oj_temporary_file_close(&from->rows.nodes);
    for (int k = 0; k < BUCKETS; k++)
    {
        if (buckets[k].rows.n.rows > 0)
            OJ_TRY(spool_held(&buckets[k].rows, err));
        free_memory(&buckets[k].rows);
    }
    for (int k = 0; k < BUCKETS; k++)
        OJ_TRY(sort_bucket(s, &buckets[k], err));
    return OJ_OK;
}

/* Rows of one key are in order. */
static oj_status sort_bucket(struct sorting *s, struct code_range *from,
                             struct oj_error *err)
{
    struct code_range *buckets;
    oj_status status;
    if (from->rows.n.rows == 0)
        return OJ_OK;
    OJ_NEW_ZEROED(buckets, BUCKETS, err);
    status = sort_buckets(s, from, buckets, err);
    for (int k = 0; k < BUCKETS; k++)
        oj_fgb_unsorted_free(&buckets[k].rows);
    oj_free(buckets);
    return status;
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
    OJ_ROOM(run->node, 0, n_below, run->cap_nodes, err);
    if (oj_read_at(s->file, s->level_at[s->level - 1] + NODE_BYTES * below,
                   run->node, NODE_BYTES * n_below) != 0)
        return oj_fail(err, OJ_ERR_IO, "cannot read what was written: %s",
                       strerror(errno));
    for (int64_t i = 0; i < n; i++)
    {
        int64_t at = i * OJ_FGB_NODE_SIZE, left = n_below - at;
        run->node[i] = node_above(
            &run->node[at], left < OJ_FGB_NODE_SIZE ? left : OJ_FGB_NODE_SIZE,
            s->first[s->level - 1] + below + at);
    }
    return oj_fgb_write_at(s->file, s->level_at[s->level] + NODE_BYTES * first,
                           run->node, NODE_BYTES * n, err);
}

/* ---- all of it -------------------------------------------------------------
 */

static oj_status sort_spooled(struct sorting *s, struct oj_error *err)
{
    struct code_range all = {.most = UINT32_MAX};
    oj_status status;
    OJ_TRY(spool_held(s->rows, err));
    all.rows = *s->rows;
    all.rows.bytes = NULL;
    all.rows.node = NULL;
    status = sort_bucket(s, &all, err);
    s->rows->rows = all.rows.rows;
    s->rows->nodes = all.rows.nodes;
    return status;
}

static oj_status sort_and_index_rows(struct sorting *s, struct oj_error *err)
{
    OJ_NEW_ZEROED(s->run, s->n_threads, err);
    OJ_TRY(s->rows->rows.is_open ? sort_spooled(s, err) : sort_held(s, err));
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
    plan_index(&s, at);
    status = sort_and_index_rows(&s, err);
    for (int i = 0; s.run != NULL && i < n_threads; i++)
    {
        oj_free(s.run[i].bytes);
        oj_free(s.run[i].node);
    }
    oj_free(s.run);
    oj_free(s.order[0]);
    oj_free(s.order[1]);
    return status;
}
