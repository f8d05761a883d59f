/** Where the points of a kept index are, by their ids: a hash table with open
 *  addressing.
 *
 *  entry  [ id page slot mark | id page slot mark | ...   16 bytes each
 *
 *  An id is in the first entry from its hash on that was free when it came
 *  (linear probing); at most five of eight entries are in use.  A removal moves
 *  later entries of the run forward, so that nothing stays of it.  One thread
 *  changes the table; readers of the index never look at it.
 */
#ifndef LIVE_IDS_H
#define LIVE_IDS_H

#include "../../flatten/base/oj_hash_mix.h"
#include "../../flatten/base/oj_status.h"

#include <stdint.h>

/** Most ids.  Entries, some two an id, are numbered by 32 bits, of which the
 *  last number stands for none. */
#define LIVE_MOST_IDS (1 << 30)

/** In place of a page: the entry is free. */
#define LIVE_NO_ENTRY UINT32_MAX
/** In place of a page: the id has come with this batch. */
#define LIVE_NOWHERE (UINT32_MAX - 1)

struct live_entry
{
    int64_t id;
    uint32_t page; /**< or LIVE_NO_ENTRY, LIVE_NOWHERE */
    uint16_t slot;
    uint16_t mark; /**< of the last batch that had the id */
};

/** Owner; zeroed memory is a valid empty one. */
struct live_ids
{
    struct live_entry *entry; /**< [size] */
    int64_t size;             /**< 0, or a power of two */
    int64_t n;                /**< entries in use */
    int shift;                /**< of the hash: its upper bits are the place */
    uint16_t mark;            /**< the last that was given out */
};

/** Bytes of the table. */
int64_t live_ids_bytes(const struct live_ids *ids);

/** Makes room for n ids in all.  *is_moved is set where entries have changed
 *  their places.  On failure the table is as it was.
 *  Errors  OJ_ERR_LIMIT: more than LIVE_MOST_IDS; OJ_ERR_NOMEM */
OJ_MUST_USE oj_status live_ids_reserve(struct live_ids *ids, int64_t n,
                                       int *is_moved, struct oj_error *err);

/** A mark that no entry has. */
uint16_t live_ids_next_mark(struct live_ids *ids);

static inline int64_t live_ids_home(const struct live_ids *ids, int64_t id)
{
    return (int64_t)(oj_hash_mix(0, &id) >> ids->shift);
}

/** The entry of id, or -1. */
static inline int64_t live_ids_find(const struct live_ids *ids, int64_t id)
{
    int64_t mask = ids->size - 1;
    if (ids->size == 0)
        return -1;
    for (int64_t i = live_ids_home(ids, id);; i = (i + 1) & mask)
    {
        if (ids->entry[i].page == LIVE_NO_ENTRY)
            return -1;
        if (ids->entry[i].id == id)
            return i;
    }
}

/** The entry of id, which is LIVE_NOWHERE when it is new; there is room. */
int64_t live_ids_put(struct live_ids *ids, int64_t id);

/** Asks for the cache lines in which the search for id begins. */
static inline void live_ids_prefetch(const struct live_ids *ids, int64_t id)
{
    __builtin_prefetch(&ids->entry[live_ids_home(ids, id)], 1);
}

/** Frees an entry. Others may change their places. */
void live_ids_remove(struct live_ids *ids, int64_t entry);

void live_ids_free(struct live_ids *ids);

#endif
