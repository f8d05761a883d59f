#include "live_batch.h"

#include "../../flatten/base/oj_alloc.h"

#include <string.h>

/* Rows of a task: ROWS_OF_SLICE, or ROWS_OF_LARGE_SLICE in batches of at least
 * LARGE_BATCH rows. */
#define ROWS_OF_SLICE 4096
#define ROWS_OF_LARGE_SLICE 16384
#define LARGE_BATCH (1 << 20)

/* --- 1 find ----------------------------------------------------------------
 */

/* Marks the entry. Returns 1 if it has the mark already, because another row of
 * the batch has the id. */
static int test_and_mark_entry(struct live_batch *b, int64_t entry)
{
    struct live_entry *e = &b->live->ids.entry[entry];
    int has_mark;
    if (b->n_threads > 1)
        return __atomic_exchange_n(&e->mark, b->mark, __ATOMIC_RELAXED) ==
               b->mark;
    has_mark = e->mark == b->mark;
    e->mark = b->mark;
    return has_mark;
}

/* Sets b->entry for the rows of a slice. A row with an unknown id gets
 * LIVE_SUPERSEDED until add_entries_of_new_ids(). */
static void find_entries_of_slice(struct live_batch *b, int64_t first,
                                  int64_t end, struct live_rows *rows)
{
    const struct live_ids *ids = &b->live->ids;
    for (int64_t i = first; i < b->n && i < first + LIVE_AHEAD; i++)
        live_ids_prefetch(ids, b->id[i]);
    for (int64_t i = first; i < end; i++)
    {
        int64_t entry;
        if (i + LIVE_AHEAD < b->n)
            live_ids_prefetch(ids, b->id[i + LIVE_AHEAD]);
        entry = live_ids_find(ids, b->id[i]);
        b->entry[i] = entry < 0 ? LIVE_SUPERSEDED : (uint32_t)entry;
        if (entry < 0)
            rows->n_new++;
        else
            rows->has_repeats |= test_and_mark_entry(b, entry);
    }
}

/* Marks all rows of an id within a part, except the last, as
 * LIVE_SUPERSEDED. */
static void mark_superseded_rows_of_part(int64_t part, int thread, void *user)
{
    struct live_batch *b = user;
    const uint32_t *row = b->parts.row;
    int64_t n = 0;
    (void)thread;
    for (int64_t i = b->parts.offset[part + 1]; i-- > b->parts.offset[part];)
    {
        struct live_entry *e = &b->live->ids.entry[b->entry[row[i]]];
        if (e->mark == b->mark)
        {
            b->entry[row[i]] = LIVE_SUPERSEDED;
            n++;
        }
        e->mark = b->mark;
    }
    __atomic_fetch_add(&b->all.counts.n_superseded, n, __ATOMIC_RELAXED);
}

/* Adds entries for new ids. Marks all rows of an id except the last as
 * LIVE_SUPERSEDED. */
static oj_status add_entries_of_new_ids(struct live_batch *b,
                                        struct oj_error *err)
{
    struct live_ids *ids = &b->live->ids;
    OJ_TRY(live_ids_reserve(ids, b->n_threads, ids->n + b->all.n_new, err));
    OJ_TRY(live_ids_distribute_rows(ids, b->n_threads, b->n, b->id, &b->parts,
                                    err));
    if (b->all.n_new > 0)
        OJ_TRY(live_ids_put(ids, b->n_threads, &b->parts, b->id,
                            live_ids_next_mark(ids), b->entry,
                            &b->all.has_repeats, err));
    if (b->all.has_repeats)
    {
        b->mark = live_ids_next_mark(ids);
        oj_parallel_for(b->n_threads, b->parts.n, mark_superseded_rows_of_part,
                        b);
    }
    live_ids_parts_free(&b->parts);
    return OJ_OK;
}

/* Removes the new ids of a batch that has failed. */
void live_batch_remove_ids(struct live_batch *b)
{
    struct live_ids *ids = &b->live->ids;
    for (int64_t i = 0; i < b->n; i++)
    {
        int64_t entry = live_ids_find(ids, b->id[i]);
        if (entry >= 0 && ids->entry[entry].page == LIVE_NOWHERE)
            live_ids_remove(ids, entry);
    }
}

/* --- 2 classify ------------------------------------------------------------
 */

/* Counts a row and returns its place with flags. */
static uint64_t classify_row(const struct live_batch *b, int64_t i,
                             struct live_rows *rows)
{
    const struct live_entry *e;
    double x = b->x[i], y = b->y[i];
    uint64_t place;
    if (b->entry[i] == LIVE_SUPERSEDED)
        return LIVE_NO_PLACE;
    e = &b->live->ids.entry[b->entry[i]];
    place = e->page == LIVE_NOWHERE ? LIVE_NO_PLACE
                                    : LIVE_PLACE_OF(e->page, e->slot);
    if (!live_batch_can_join_point(x, y))
    {
        rows->counts.n_unjoinable += x == x;
        rows->counts.n_unknown += place == LIVE_NO_PLACE;
        rows->counts.n_removed += place != LIVE_NO_PLACE;
        rows->n_leaving += place != LIVE_NO_PLACE;
        return place == LIVE_NO_PLACE ? LIVE_NO_PLACE : place | LIVE_LEAVES;
    }
    if (place == LIVE_NO_PLACE)
    {
        rows->counts.n_put++;
        rows->n_arriving++;
        return LIVE_NO_PLACE | LIVE_ARRIVES;
    }
    rows->counts.n_moved++;
    if (live_page_may_keep_point(&b->live->state->page[e->page], x, y))
    {
        rows->n_in_place++;
        return place;
    }
    rows->n_leaving++;
    rows->n_arriving++;
    return place | LIVE_LEAVES | LIVE_ARRIVES;
}

static void prefetch_page_of_row(const struct live_batch *b, int64_t i)
{
    const struct live_entry *e;
    if (b->entry[i] == LIVE_SUPERSEDED)
        return;
    e = &b->live->ids.entry[b->entry[i]];
    if (e->page != LIVE_NOWHERE)
        __builtin_prefetch(&b->live->state->page[e->page]);
}

static void classify_slice(int64_t first, int64_t end, void *user)
{
    struct live_batch *b = user;
    struct live_rows rows = {0}; /* a local struct, which the compiler keeps in
                                    registers */
    for (int64_t i = first; i < end; i++)
    {
        int64_t next = i + 2 * LIVE_AHEAD;
        if (next < end && b->entry[next] != LIVE_SUPERSEDED)
            __builtin_prefetch(&b->live->ids.entry[b->entry[next]]);
        if (i + LIVE_AHEAD < end)
            prefetch_page_of_row(b, i + LIVE_AHEAD);
        b->place[i] = classify_row(b, i, &rows);
    }
    b->rows[first / b->rows_of_slice] = rows;
}

/* Finds the entries of a slice and classifies its rows while the entries are in
 * the cache. If the batch has new ids or repeated ids, rows are classified
 * again later. */
static void find_and_classify_slice(int64_t first, int64_t end, void *user)
{
    struct live_batch *b = user;
    struct live_rows *rows = &b->rows[first / b->rows_of_slice], found = {0};
    find_entries_of_slice(b, first, end, &found);
    if (found.n_new == 0 && !found.has_repeats)
        classify_slice(first, end, user);
    rows->n_new = found.n_new;
    rows->has_repeats = found.has_repeats;
}

/* Adds up the slices. */
static void sum_counts_of_slices(struct live_batch *b)
{
    struct live_rows all = {.counts.n_superseded = b->all.counts.n_superseded};
    for (int64_t i = 0; i < b->n_slices; i++)
    {
        struct live_rows *rows = &b->rows[i];
        rows->first_arriving = all.n_arriving;
        all.has_repeats |= rows->has_repeats;
        all.n_new += rows->n_new;
        all.n_in_place += rows->n_in_place;
        all.n_leaving += rows->n_leaving;
        all.n_arriving += rows->n_arriving;
        live_counts_add(&all.counts, &rows->counts);
    }
    b->all = all;
}

/* Allocates the arrays of rows and slices together, which makes batches of few
 * rows faster. */
static oj_status allocate_rows_and_slices(struct live_batch *b,
                                          struct oj_error *err)
{
    int64_t bytes = b->n_slices * (int64_t)sizeof *b->rows +
                    b->n * (int64_t)(sizeof *b->place + sizeof *b->entry);
    b->rows = oj_malloc(bytes, 1);
    if (b->rows == NULL)
        return oj_fail_nomem(err, bytes, 1);
    memset(b->rows, 0, (size_t)b->n_slices * sizeof *b->rows);
    b->place = (uint64_t *)(b->rows + b->n_slices);
    b->entry = (uint32_t *)(b->place + b->n);
    return OJ_OK;
}

oj_status live_batch_classify_rows(struct live_batch *b, struct oj_error *err)
{
    struct live_ids *ids = &b->live->ids;
    b->rows_of_slice = b->n < LARGE_BATCH ? ROWS_OF_SLICE : ROWS_OF_LARGE_SLICE;
    b->n_slices = (b->n + b->rows_of_slice - 1) / b->rows_of_slice;
    OJ_TRY(allocate_rows_and_slices(b, err));
    b->all.n_new = b->n;
    if (ids->n > 0)
    {
        b->mark = live_ids_next_mark(ids);
        live_batch_run_on_slices(b, find_and_classify_slice);
        sum_counts_of_slices(b);
    }
    if (b->all.n_new == 0 && !b->all.has_repeats)
        return OJ_OK;
    OJ_TRY(add_entries_of_new_ids(b, err));
    live_batch_run_on_slices(b, classify_slice);
    sum_counts_of_slices(b);
    return OJ_OK;
}
