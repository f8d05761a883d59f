/** Finds the page and slot of a point of a kept index by its id: a hash table
 *  with open addressing.
 *
 *  entry  [ id page slot mark | id page slot mark | ...   16 bytes each
 *
 *  An id is inserted at the first free entry from its hash on (linear probing);
 *  at most five of eight entries are in use.  A removal moves later entries of
 *  the run back, so deleted entries need no mark.  Readers of the index never
 *  use the table.
 *
 *  The threads of a batch find ids and set places at once.  They insert ids by
 *  parts: a part is a range of the entries, and of the ids whose hash leads to
 *  it. */
#ifndef LIVE_IDS_H
#define LIVE_IDS_H

#include "../../flatten/base/oj_hash_mix.h"
#include "../../flatten/base/oj_status.h"

#include <stdint.h>

/** Maximum number of ids. Entries (about two per id) are numbered by 32 bits,
 *  and the last number means none. */
#define LIVE_MOST_IDS (1 << 30)

/** Value of page: the entry is free. */
#define LIVE_NO_ENTRY UINT32_MAX
/** Value of page: the id is new in this batch and has no page yet. */
#define LIVE_NOWHERE (UINT32_MAX - 1)

struct live_entry
{
    int64_t id;
    uint32_t page; /**< page of the point, LIVE_NO_ENTRY or LIVE_NOWHERE */
    uint16_t slot;
    uint16_t mark; /**< number of the last batch with the id, from 1 on */
};

/** Owner; zeroed memory is a valid empty one. */
struct live_ids
{
    struct live_entry *entry; /**< [size] */
    int64_t size;             /**< 0, or a power of two */
    int64_t n;                /**< entries in use */
    int shift; /**< right shift of the hash; its upper bits choose the entry */
    uint16_t mark; /**< number of the current batch */
};

/** Sets page and slot of the point of an entry. Other threads may look up ids
 *  meanwhile. */
static inline void live_entry_set_page_and_slot(struct live_entry *entry,
                                                uint32_t page, int slot)
{
    __atomic_store_n(&entry->page, page, __ATOMIC_RELAXED);
    entry->slot = (uint16_t)slot;
}

/** Returns the number of bytes of the table. */
int64_t live_ids_bytes(const struct live_ids *ids);

/** Makes room for n ids in total; entries may move. After an error the table is
 *  unchanged.
 *  Errors  OJ_ERR_LIMIT: n exceeds LIVE_MOST_IDS; OJ_ERR_NOMEM */
OJ_MUST_USE oj_status live_ids_reserve(struct live_ids *ids, int n_threads,
                                       int64_t n, struct oj_error *err);

/** Returns the mark of a new batch, a number that no entry has. */
uint16_t live_ids_next_mark(struct live_ids *ids);

static inline int64_t live_ids_home_slot(const struct live_ids *ids, int64_t id)
{
    return (int64_t)(oj_hash_mix(0, &id) >> ids->shift);
}

/** Returns the entry of id, or -1. */
static inline int64_t live_ids_find(const struct live_ids *ids, int64_t id)
{
    int64_t mask = ids->size - 1;
    if (ids->size == 0)
        return -1;
    for (int64_t i = live_ids_home_slot(ids, id);; i = (i + 1) & mask)
    {
        if (__atomic_load_n(&ids->entry[i].page, __ATOMIC_RELAXED) ==
            LIVE_NO_ENTRY)
            return -1;
        if (ids->entry[i].id == id)
            return i;
    }
}

/** Rows dealt to the parts of a table by their ids. Owner. */
struct live_ids_parts
{
    int64_t n;       /**< parts */
    int shift;       /**< part of an id: its home >> shift */
    int64_t *offset; /**< [n + 1] first row of each part */
    uint32_t *row;   /**< rows of each part, ascending */
};

/** Deals n rows to parts. The table must have room for the new ids among
 *  them. */
OJ_MUST_USE oj_status live_ids_distribute_rows(const struct live_ids *ids,
                                               int n_threads, int64_t n,
                                               const int64_t *id,
                                               struct live_ids_parts *out,
                                               struct oj_error *err);

/** Finds or inserts the ids of all rows and marks their entries. A new id has
 *  the page LIVE_NOWHERE.
 *  entry       [rows] entry of each row's id
 *  has_repeats 1: some id has several rows */
OJ_MUST_USE oj_status live_ids_put(struct live_ids *ids, int n_threads,
                                   const struct live_ids_parts *parts,
                                   const int64_t *id, uint16_t mark,
                                   uint32_t *entry, int *has_repeats,
                                   struct oj_error *err);

void live_ids_parts_free(struct live_ids_parts *parts);

/** Prefetches the cache lines where the search for id begins. */
static inline void live_ids_prefetch(const struct live_ids *ids, int64_t id)
{
    __builtin_prefetch(&ids->entry[live_ids_home_slot(ids, id)], 1);
}

/** Frees an entry. Other entries may move. */
void live_ids_remove(struct live_ids *ids, int64_t entry);

void live_ids_free(struct live_ids *ids);

#endif
