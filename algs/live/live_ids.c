#include "live_ids.h"

#include "../../flatten/base/oj_alloc.h"

#include <string.h>

#define LEAST_BITS 6

int64_t live_ids_bytes(const struct live_ids *ids)
{
    return ids->size * (int64_t)sizeof *ids->entry;
}

/* Returns the table size for n ids: at most five of eight entries are in
 * use. */
static int64_t entries_for(int64_t n)
{
    return n + n / 5 * 3 + 4;
}

static void put_moved_entry(struct live_ids *ids,
                            const struct live_entry *entry)
{
    int64_t mask = ids->size - 1, i = live_ids_home(ids, entry->id);
    while (ids->entry[i].page != LIVE_NO_ENTRY)
        i = (i + 1) & mask;
    ids->entry[i] = *entry;
}

oj_status live_ids_reserve(struct live_ids *ids, int64_t n,
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
    if (entries_for(n) <= ids->size)
        return OJ_OK;
    while ((INT64_C(1) << bits) < entries_for(n))
        bits++;
    grown.size = INT64_C(1) << bits;
    grown.shift = 64 - bits;
    OJ_NEW(grown.entry, grown.size, err);
    /* sets page to LIVE_NO_ENTRY */
    memset(grown.entry, 0xff, (size_t)grown.size * sizeof *grown.entry);
    for (int64_t i = 0; i < grown.size; i++)
        grown.entry[i].mark = 0;
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

int64_t live_ids_put(struct live_ids *ids, int64_t id)
{
    int64_t mask = ids->size - 1, i = live_ids_home(ids, id);
    while (ids->entry[i].page != LIVE_NO_ENTRY)
    {
        if (ids->entry[i].id == id)
            return i;
        i = (i + 1) & mask;
    }
    ids->entry[i] = (struct live_entry){id, LIVE_NOWHERE, 0, 0};
    ids->n++;
    return i;
}

void live_ids_remove(struct live_ids *ids, int64_t entry)
{
    int64_t mask = ids->size - 1, hole = entry;
    for (int64_t i = (hole + 1) & mask; ids->entry[i].page != LIVE_NO_ENTRY;
         i = (i + 1) & mask)
    {
        int64_t home = live_ids_home(ids, ids->entry[i].id);
        /* stays if the hole is not between its home and its entry */
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
