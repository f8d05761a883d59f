#include "live_ids.h"

#include "../../flatten/base/oj_alloc.h"
#include "../../flatten/base/oj_parallel.h"
#include "../foundations/base/cpu_morton_order.h"

#include <string.h>

#define LEAST_BITS 6

int64_t live_ids_bytes(const struct live_ids *ids)
{
    return ids->size * (int64_t)sizeof *ids->entry;
}

/* Returns the table size for n ids: at most five of eight entries are in
 * use. */
static int64_t table_size_for_ids(int64_t n)
{
    return n + n / 5 * 3 + 4;
}

static void put_moved_entry(struct live_ids *ids,
                            const struct live_entry *entry)
{
    int64_t mask = ids->size - 1, i = live_ids_home_slot(ids, entry->id);
    while (ids->entry[i].page != LIVE_NO_ENTRY)
        i = (i + 1) & mask;
    ids->entry[i] = *entry;
}

/* Entries per task of a thread. */
#define ENTRIES_AT_ONCE 65536

static void clear_entries(int64_t first, int64_t end, void *user)
{
    struct live_entry *entry = user;
    for (int64_t i = first; i < end; i++)
        entry[i] = (struct live_entry){0, LIVE_NO_ENTRY, 0, 0};
}

oj_status live_ids_reserve(struct live_ids *ids, int n_threads, int64_t n,
                           struct oj_error *err)
{
    struct live_ids grown = *ids;
    int bits = LEAST_BITS;
    if (n > LIVE_MOST_IDS)
        return oj_fail(err, OJ_ERR_LIMIT,
                       "a kept index has at most %d points, and this batch "
                       "could make them %lld: apply smaller batches, or keep "
                       "several indexes",
                       LIVE_MOST_IDS, (long long)n);
    if (table_size_for_ids(n) <= ids->size)
        return OJ_OK;
    while ((INT64_C(1) << bits) < table_size_for_ids(n))
        bits++;
    grown.size = INT64_C(1) << bits;
    grown.shift = 64 - bits;
    OJ_NEW(grown.entry, grown.size, err);
    oj_parallel_slices(n_threads, grown.size, ENTRIES_AT_ONCE, clear_entries,
                       grown.entry);
    for (int64_t i = 0; i < ids->size; i++)
    {
        if (ids->entry[i].page != LIVE_NO_ENTRY)
            put_moved_entry(&grown, &ids->entry[i]);
    }
    oj_free(ids->entry);
    *ids = grown;
    return OJ_OK;
}

uint16_t live_ids_next_mark(struct live_ids *ids)
{
    if (ids->mark == UINT16_MAX)
    {
        for (int64_t i = 0; i < ids->size; i++)
            ids->entry[i].mark = 0;
        ids->mark = 0;
    }
    return ++ids->mark;
}

/* --- inserting -------------------------------------------------------------
 */

/* Rows are dealt to at most 2^PART_BITS parts by their ids. Fewer than
 * LEAST_FOR_PARTS rows are a single part. A task deals ROWS_OF_SLICE rows. */
#define PART_BITS 8
#define LEAST_FOR_PARTS 16384
#define ROWS_OF_SLICE 16384

struct live_dealing
{
    const struct live_ids *ids;
    struct live_ids_parts parts;
    const int64_t *id;
    int64_t *start; /* [n_slices][parts] next place for a row */
};

static int64_t part_of_row(const struct live_dealing *d, int64_t row)
{
    return live_ids_home_slot(d->ids, d->id[row]) >> d->parts.shift;
}

static void count_rows_of_slice(int64_t first, int64_t end, void *user)
{
    const struct live_dealing *d = user;
    int64_t *count = d->start + first / ROWS_OF_SLICE * d->parts.n;
    for (int64_t i = first; i < end; i++)
        count[part_of_row(d, i)]++;
}

static void distribute_rows_of_slice(int64_t first, int64_t end, void *user)
{
    const struct live_dealing *d = user;
    int64_t *next = d->start + first / ROWS_OF_SLICE * d->parts.n;
    for (int64_t i = first; i < end; i++)
        d->parts.row[next[part_of_row(d, i)]++] = (uint32_t)i;
}

oj_status live_ids_distribute_rows(const struct live_ids *ids, int n_threads,
                                   int64_t n, const int64_t *id,
                                   struct live_ids_parts *out,
                                   struct oj_error *err)
{
    int64_t n_slices = (n + ROWS_OF_SLICE - 1) / ROWS_OF_SLICE;
    int bits = 64 - ids->shift;
    int part_bits = n < LEAST_FOR_PARTS ? 0
                    : PART_BITS < bits  ? PART_BITS
                                        : bits;
    struct live_dealing d = {.ids = ids, .id = id};
    d.parts.n = INT64_C(1) << part_bits;
    d.parts.shift = bits - part_bits;
    d.parts.offset = oj_malloc(d.parts.n + 1, sizeof *d.parts.offset);
    d.parts.row = oj_malloc(n, sizeof *d.parts.row);
    d.start = oj_calloc(n_slices * d.parts.n, sizeof *d.start);
    if (d.parts.offset == NULL || d.parts.row == NULL || d.start == NULL)
    {
        live_ids_parts_free(&d.parts);
        oj_free(d.start);
        return oj_fail_nomem(err, n, sizeof *d.parts.row);
    }
    oj_parallel_slices(n_threads, n, ROWS_OF_SLICE, count_rows_of_slice, &d);
    oj_order_counts_to_positions(n_slices, d.parts.n, d.start, d.parts.offset);
    oj_parallel_slices(n_threads, n, ROWS_OF_SLICE, distribute_rows_of_slice,
                       &d);
    oj_free(d.start);
    *out = d.parts;
    return OJ_OK;
}

struct live_putting
{
    struct live_ids *ids;
    const struct live_ids_parts *parts;
    const int64_t *id;
    uint16_t mark;
    uint32_t *entry;
    uint32_t *late;  /* [rows] rows that one thread puts after all parts; the
                        rows of part p begin at parts->offset[p] */
    int64_t *n_late; /* [parts] */
    int has_repeats;
};

/* Returns the first entry in [from, end) that has the id or is free, or end if
 * there is none. */
static int64_t find_entry_or_free_slot(const struct live_ids *ids, int64_t id,
                                       int64_t from, int64_t end)
{
    while (from < end && ids->entry[from].page != LIVE_NO_ENTRY &&
           ids->entry[from].id != id)
        from++;
    return from;
}

/* Notes that the id of a row is in entry `at` of the table, and fills the entry
 * if it is free. Sets *has_repeats to 1 if a row before it had this id in this
 * batch. Returns 1 if the id is new, otherwise 0. */
static int set_entry_of_row(const struct live_putting *p, int64_t row,
                            int64_t at, int *has_repeats)
{
    struct live_entry *e = &p->ids->entry[at];
    int is_new = e->page == LIVE_NO_ENTRY;
    if (is_new)
        *e = (struct live_entry){p->id[row], LIVE_NOWHERE, 0, 0};
    *has_repeats |= e->mark == p->mark;
    e->mark = p->mark;
    p->entry[row] = (uint32_t)at;
    return is_new;
}

/* Distance in rows between prefetch and use. */
#define AHEAD 24

/* Finds or inserts the ids of a part's rows. Lists in `late` the rows whose
 * search would go on past the end of the part. */
static void put_rows_of_part(int64_t part, int thread, void *user)
{
    struct live_putting *p = user;
    int64_t first = p->parts->offset[part], end = p->parts->offset[part + 1];
    int64_t end_entry = (part + 1) << p->parts->shift, n_new = 0, n_late = 0;
    const uint32_t *row = p->parts->row;
    int has_repeats = 0;
    (void)thread;
    for (int64_t i = first; i < end; i++)
    {
        int64_t id = p->id[row[i]], at;
        if (i + 2 * AHEAD < end)
            __builtin_prefetch(&p->id[row[i + 2 * AHEAD]]);
        if (i + AHEAD < end)
            live_ids_prefetch(p->ids, p->id[row[i + AHEAD]]);
        at = find_entry_or_free_slot(p->ids, id, live_ids_home_slot(p->ids, id),
                                     end_entry);
        if (at < end_entry)
            n_new += set_entry_of_row(p, row[i], at, &has_repeats);
        else
            p->late[first + n_late++] = row[i];
    }
    p->n_late[part] = n_late;
    __atomic_fetch_add(&p->ids->n, n_new, __ATOMIC_RELAXED);
    __atomic_fetch_or(&p->has_repeats, has_repeats, __ATOMIC_RELAXED);
}

static void put_row_past_its_part(struct live_putting *p, int64_t row)
{
    struct live_ids *ids = p->ids;
    int64_t id = p->id[row], home = live_ids_home_slot(ids, id);
    int64_t at = find_entry_or_free_slot(ids, id, home, ids->size);
    if (at == ids->size)
        at = find_entry_or_free_slot(ids, id, 0, home);
    ids->n += set_entry_of_row(p, row, at, &p->has_repeats);
}

oj_status live_ids_put(struct live_ids *ids, int n_threads,
                       const struct live_ids_parts *parts, const int64_t *id,
                       uint16_t mark, uint32_t *entry, int *has_repeats,
                       struct oj_error *err)
{
    struct live_putting p = {
        .ids = ids, .parts = parts, .id = id, .mark = mark, .entry = entry};
    int64_t n = parts->offset[parts->n];
    p.late = oj_malloc(n, sizeof *p.late);
    p.n_late = oj_malloc(parts->n, sizeof *p.n_late);
    if (p.late == NULL || p.n_late == NULL)
    {
        oj_free(p.late);
        oj_free(p.n_late);
        return oj_fail_nomem(err, n, sizeof *p.late);
    }
    oj_parallel_for(n_threads, parts->n, put_rows_of_part, &p);
    for (int64_t part = 0; part < parts->n; part++)
    {
        for (int64_t i = 0; i < p.n_late[part]; i++)
            put_row_past_its_part(&p, p.late[parts->offset[part] + i]);
    }
    oj_free(p.late);
    oj_free(p.n_late);
    *has_repeats = p.has_repeats;
    return OJ_OK;
}

void live_ids_parts_free(struct live_ids_parts *parts)
{
    oj_free(parts->offset);
    oj_free(parts->row);
    memset(parts, 0, sizeof *parts);
}

/* --- removing --------------------------------------------------------------
 */

void live_ids_remove(struct live_ids *ids, int64_t entry)
{
    int64_t mask = ids->size - 1, hole = entry;
    for (int64_t i = (hole + 1) & mask; ids->entry[i].page != LIVE_NO_ENTRY;
         i = (i + 1) & mask)
    {
        int64_t home = live_ids_home_slot(ids, ids->entry[i].id);
        /* the entry stays if the hole is not between the entry's home and the
         * entry */
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        ids->entry[hole] = ids->entry[i];
        hole = i;
    }
    ids->entry[hole].page = LIVE_NO_ENTRY;
    ids->n--;
}

void live_ids_free(struct live_ids *ids)
{
    oj_free(ids->entry);
    memset(ids, 0, sizeof *ids);
}
